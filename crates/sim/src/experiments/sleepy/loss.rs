//! Packets lost at the border router (`TCPlp` §9.4).

use super::anemometers::Anemometers;
use super::{COAP, COCOA, COCOA_DRAFT, CPU, OTHERS, RADIO, RELIABILITY, TCP, case, lossy};
use crate::experiments::metric::RETRANSMISSIONS;
use crate::experiments::row::{Point, Row};
use crate::experiments::{Case, Results};

fn point(transport: &'static str, loss: u64) -> Point {
    lossy(transport, "paper", loss)
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, transport) in [TCP, COAP, COCOA, COCOA_DRAFT] {
        for loss in LOSSES {
            let traffic = Anemometers {
                transport,
                loss,
                ..Anemometers::NIGHT
            };
            cases.push(case(point(name, loss), traffic));
        }
    }
    cases
}

pub(super) fn rows(results: &Results<'_>) -> Vec<Row> {
    let mut rows = Vec::new();
    let at = |loss| Point::default().with("loss", crate::experiments::row::Value::Hundredths(loss));
    let reliability = |name, loss| results.mean(&point(name, loss), RELIABILITY);
    let [tcp, coap, cocoa] = [TCP, COAP, COCOA].map(|(name, _)| name);
    let behind = |other| reliability(other, 15) - reliability(cocoa, 15);
    rows.push(
        results
            .least(
                at(15),
                ("cocoa_behind", "%"),
                [tcp, coap].map(behind).into(),
            )
            .at_least(5.0),
    );
    let ahead = reliability(coap, 21) - reliability(tcp, 21);
    rows.push(
        results
            .derived(at(21), ("coap_ahead", "%"), ahead)
            .at_least(0.0),
    );
    let again = |name| results.mean(&point(name, 21), RETRANSMISSIONS);
    let fewer = again(tcp) / again(coap);
    let name = ("retransmissions_over_coap", "1");
    rows.push(results.derived(at(21), name, fewer).at_most(1.0));
    for loss in LOSSES.into_iter().filter(|loss| *loss <= 15) {
        for (metric, name) in [(RADIO, "radio_over_coap"), (CPU, "cpu_over_coap")] {
            let duty = |transport| results.mean(&point(transport, loss), metric);
            let share = duty(tcp) / duty(coap);
            let row = results
                .derived(at(loss), (name, "1"), share)
                .between(0.7, 1.3);
            // Without loss these are the runs of tcplp-batching.
            rows.push(if loss == 0 { row.repeat() } else { row });
        }
    }
    for loss in LOSSES {
        for (name, _) in [TCP, COAP, COCOA, COCOA_DRAFT] {
            let at = point(name, loss);
            let row = results.row(&at, RELIABILITY);
            rows.push(match loss {
                0 if name == tcp || name == coap => row.at_least(99.0).repeat(),
                3..=12 if name == tcp || name == coap => row.at_least(99.0),
                15 if name == tcp || name == coap => row.at_least(97.0),
                _ => row,
            });
            rows.push(results.row(&at, RADIO));
            rows.push(results.row(&at, CPU));
            rows.push(results.row(&at, RETRANSMISSIONS));
        }
        let row = results.row(&point(tcp, loss), OTHERS);
        rows.push(match loss {
            3..=15 => row.between(10.0, 60.0),
            _ => row,
        });
    }
    rows
}

const LOSSES: [u64; 8] = [0, 3, 6, 9, 12, 15, 18, 21];
