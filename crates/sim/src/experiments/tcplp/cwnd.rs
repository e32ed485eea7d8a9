//! Congestion window and retransmissions (figure 7): `cwnd.toml`.

use crate::experiments::Results;
use crate::experiments::metric::{CWND, FAST, LOSS, TIMEOUTS};
use crate::experiments::row::Row;

use super::at;

use super::delay::delay_point;

const CWND_DELAYS: [u64; 5] = [0, 5, 30, 40, 100];

pub(super) fn rows(results: &Results<'_>) -> Vec<Row> {
    let mean = |delay, metric| results.mean(&delay_point(3, delay), metric);
    let ratio = |name, value| results.derived(at("hops", 3), (name, "1"), value);
    let mut rows = vec![
        results.row(&delay_point(3, 0), CWND).at_least(0.85),
        // The fit is in `tcplp-retrydelay`.
        results.row(&delay_point(3, 0), LOSS).paper(0.06).repeat(),
        ratio(
            "fast_retransmissions_40_over_0",
            mean(40, FAST) / mean(0, FAST),
        )
        .at_most(0.333),
        results
            .derived(
                at("hops", 3),
                ("timeouts_40_less_0", TIMEOUTS.unit),
                mean(40, TIMEOUTS) - mean(0, TIMEOUTS),
            )
            .paper(0.0)
            .at_most(0.0)
            .about("at d = 40 not more than at 0 (TCPlp 7.3: no fewer either)"),
    ];
    for metric in [FAST, TIMEOUTS, CWND, LOSS] {
        for delay in CWND_DELAYS {
            let is_shown = delay == 0 && [CWND.name, LOSS.name].contains(&metric.name);
            if is_shown {
                continue;
            }
            let row = results.row(&delay_point(3, delay), metric);
            let is_repeat = metric.name == LOSS.name && [30, 40].contains(&delay);
            rows.push(if is_repeat { row.repeat() } else { row });
        }
    }
    rows
}
