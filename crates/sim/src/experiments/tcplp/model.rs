//! The models of section 8 compared with measured goodput.
//!
//! With few losses, equation 2 gives the goodput as the window over the round-trip time, which
//! holds for any full window; and equation 1 depends on the loss alone. So no row here counts as a
//! prediction. With many losses equation 2 would be a prediction, but it is wrong there.

use crate::experiments::Results;
use crate::experiments::metric::{GOODPUT, LOSS, RTT};
use crate::experiments::row::Row;

use super::delay::{DELAYS, delay_point};

/// Shorter delays over three hops lose more than the 3 % up to which models are judged.
const MODEL_DELAY_MIN: u64 = 10;

pub(super) fn rows(results: &Results<'_>) -> Vec<Row> {
    let (mut second, mut first) = (Vec::new(), Vec::new());
    for case in results.cases() {
        let [goodput, loss, rtt] =
            [GOODPUT, LOSS, RTT].map(|metric| results.mean(&case.point, metric));
        let payload_len = results.segment(&case.point).payload_len as f64;
        let path = crate::experiments::model::Path {
            mss_bytes: payload_len,
            rtt_s: rtt / 1e3,
            loss,
            window: case.setup.window() as f64,
        };
        let lossy = (DELAYS.iter().take_while(|d| **d < MODEL_DELAY_MIN))
            .any(|delay| case.point == delay_point(3, *delay));
        let derived = |name, value| results.derived(case.point.clone(), (name, "1"), value);
        let row = derived("eq2_over_measured", path.buffer_limited_kbps() / goodput);
        let judged = |row: Row, criterion: fn(Row) -> Row| {
            if lossy { row } else { criterion(row) }.identity()
        };
        second.push(judged(row, |row| row.between(0.8, 1.2)));
        // Equation 1 is undefined for a loss of zero. After n segments without a loss, the loss is
        // below 3/n with 95 % confidence; this value gives a lower limit of the goodput.
        let bytes: u64 = results.runs(&case.point).map(|run| run.bytes).sum();
        let path = crate::experiments::model::Path {
            loss: loss.max(3.0 * payload_len / bytes as f64),
            ..path
        };
        let row = derived("eq1_over_measured", path.loss_limited_kbps() / goodput);
        first.push(judged(row, |row| row.at_least(2.0)));
    }
    second.extend(first);
    second
}
