//! Rows that no verdict is given on, and why: the sentence is printed beside each.
//!
//! Purpose: one list of the criteria that were asked once and are no more, and of the published
//! figures that stand beside a row without a criterion. A criterion is withdrawn where the design
//! does not meet it on any seed, or where the value lies so near to the limit that its interval
//! over all runs of the full form reaches it: what such a row says is its value. None is
//! withdrawn in favour of a wider one.
//! Left out: rows that nothing was ever asked of; what too few runs leave open, see `judging`.

use super::row::{Evidence, Row, Value};

/// Rows, and why they are not judged.
struct Unjudged {
    experiment: &'static str,
    metric: &'static str,
    /// Keys and values that the row's point has, among others.
    at: &'static [(&'static str, &'static str)],
    why: &'static str,
}

const fn rows(
    experiment: &'static str,
    metric: &'static str,
    at: &'static [(&'static str, &'static str)],
    why: &'static str,
) -> Unjudged {
    Unjudged {
        experiment,
        metric,
        at,
        why,
    }
}

/// The row, without a verdict if the list has it.
pub(super) fn apply(row: Row) -> Row {
    let says_something = row.criterion.is_some() || row.paper.is_some();
    let listed = || UNJUDGED.iter().find(|entry| entry.has(&row));
    let entry = (says_something && row.evidence == Evidence::Prediction)
        .then(listed)
        .flatten();
    match entry {
        Some(entry) if row.criterion.is_some() => row.withdrawn(entry.why),
        Some(entry) => row.shown(entry.why),
        None => row,
    }
}

/// The entries that none of `rows` has a use for.
#[cfg(test)]
pub(super) fn idle(rows: &[Row]) -> Vec<String> {
    let is_idle = |entry: &&Unjudged| {
        let says = |row: &Row| row.criterion.is_some() || row.paper.is_some();
        let is_of = |row: &Row| says(row) && row.evidence == Evidence::Prediction;
        !rows.iter().any(|row| is_of(row) && entry.has(row))
    };
    let name = |entry: &Unjudged| format!("{} {} {:?}", entry.experiment, entry.metric, entry.at);
    UNJUDGED.iter().filter(is_idle).map(name).collect()
}

impl Unjudged {
    fn has(&self, row: &Row) -> bool {
        let is_there = |(key, value): &(&'static str, &'static str)| {
            row.point.get(key).map(Value::to_string).as_deref() == Some(value)
        };
        (self.experiment, self.metric) == (row.experiment, row.metric)
            && self.at.iter().all(is_there)
    }
}

const NEAR: &str = "the interval over all runs reaches the limit";
const YIELDS: &str = "sources yield by more than they need";
const STAND_IN: &str = "asked of lwIP, which `cargo xtask peers` judges; the stand-in gains less";
const MARKS: &str = "a mark is a round trip old when the source learns of it";
const RHYTHMS: &str = "a run falls into one of two rhythms by its seed, 16 and 22 kb/s, \
                       and what BLEach carries at most is a mixture of both";
const RIVALS: &str = "the rival is our model of it, and the paper names no rate of loss";
const FASTER: &str = "only the radio takes time here, in the paper a whole system";
const PLATFORM: &str = "another platform and driver";
const ATTEMPTS: &str = "the paper's figures leave no time for a retry, and each frame here has \
                        eight attempts";
const RECOVERY: &str = "RACK and probes retransmit here seconds before a timeout, which TCPlp had \
                        neither of";
const OWN_QUEUE: &str = "six segments are under way, three of them in the mote's own queue";
const COUNTED: &str = "two ends pay for each header, and fewer than five hops save less";
const RARE: &str =
    "retransmissions are too rare: their ratio varies by more than compression saves";
const DEAF: &str = "receiving 200 frames of 90 bytes takes this radio 96 % of its time";
const OWN_DATAGRAMS: &str = "a relay's own datagrams wait in one queue with those that it passes on, and \
                             have fewer hops to go, so motes behind it lose more than it does";
const OTHER_LOSS: &str = "the testbed's floor and its losses are not published";

const EVEN: &str = "motes differ by less without a policy than in the paper";
const RIVALS_LOAD: &str = "the rival is our model of it";
const SAME: &str = "both ways carry the same";
const RECOVERY_COCOA: &str = "CoCoA loses as few readings here as the others do";
const DEAF_BACKOFF: &str = "the receiver is off in the backoff, too";

/// All of them, in the order of the command's list.
const UNJUDGED: &[Unjudged] = &[
    rows(
        "tcplp-hops",
        "goodput_7_over_4_segments",
        &[("hops", "4")],
        "a relay queues 16 frames, which is three segments",
    ),
    rows("tcplp-baselines", "goodput", &[], PLATFORM),
    rows(
        "taim-testbed1",
        "max_min",
        &[("policy", "taim")],
        OTHER_LOSS,
    ),
    rows(
        "taim-testbed1",
        "max_min_over_none",
        &[("design", "b")],
        EVEN,
    ),
    rows("taim-testbed2", "max_min_over_none", &[], EVEN),
    rows(
        "taim-testbed2",
        "max_min",
        &[("policy", "taim")],
        OTHER_LOSS,
    ),
    rows("taim-testbed1", "jain", &[("policy", "none")], OTHER_LOSS),
    rows(
        "taim-testbed1",
        "max_min",
        &[("policy", "none")],
        OTHER_LOSS,
    ),
    rows("taim-testbed2", "jain", &[("policy", "none")], OTHER_LOSS),
    rows(
        "taim-testbed2",
        "max_min",
        &[("policy", "none")],
        OTHER_LOSS,
    ),
    rows(
        "taim-testbed1",
        "makespan_ratio",
        &[("policy", "admission"), ("design", "a")],
        "as long as without a policy, neither shorter nor longer",
    ),
    rows(
        "taim-testbed1",
        "makespan_ratio",
        &[("policy", "admission"), ("design", "b")],
        NEAR,
    ),
    rows(
        "taim-testbed2",
        "makespan_ratio",
        &[("policy", "admission"), ("design", "b")],
        NEAR,
    ),
    rows(
        "taim-testbed2",
        "makespan_ratio",
        &[("policy", "admission"), ("design", "b12")],
        NEAR,
    ),
    rows(
        "taim-testbed1",
        "total_rto_ratio",
        &[("policy", "admission"), ("design", "a")],
        "no window gives both no more timeouts and no more time",
    ),
    rows(
        "taim-testbed1",
        "total_rto_ratio",
        &[("policy", "admission"), ("design", "b")],
        NEAR,
    ),
    rows(
        "taim-testbed2",
        "total_rto_ratio",
        &[("policy", "admission"), ("design", "a")],
        NEAR,
    ),
    rows(
        "taim-testbed2",
        "total_rto_ratio",
        &[("policy", "admission"), ("design", "b")],
        "every fifth frame is lost, with a policy and without",
    ),
    rows(
        "taim-testbed1",
        "max_min_windows",
        &[("policy", "admission"), ("design", "b12")],
        NEAR,
    ),
    rows(
        "taim-udp",
        "knee_rate",
        &[],
        "one of eight rates that were tried; the deliveries below and above it are judged",
    ),
    rows("taim-udp", "bottleneck_rank", &[], OWN_DATAGRAMS),
    rows(
        "tcphc-clean",
        "time_saved",
        &[("hops", "5")],
        "a mote here spends less time besides frames than Contiki, which would dilute the gain",
    ),
    rows(
        "tcphc-clean",
        "energy_saved",
        &[("hops", "5")],
        "no radio sleeps: it follows the time",
    ),
    rows(
        "tcphc-clean",
        "cpu_time_over_none",
        &[("hops", "4")],
        COUNTED,
    ),
    rows(
        "tcphc-clean",
        "cpu_time_over_none",
        &[("hops", "3")],
        COUNTED,
    ),
    rows(
        "tcphc-clean",
        "cpu_time_over_none",
        &[("hops", "2")],
        COUNTED,
    ),
    rows(
        "tcphc-clean",
        "cpu_time_over_none",
        &[("hops", "1")],
        COUNTED,
    ),
    rows(
        "tcphc-lossy",
        "time_saved_less_that_alone",
        &[],
        "waiting for a timer takes the same time with compression and without",
    ),
    rows("tcphc-lossy", "retransmissions_over_none", &[], RARE),
    rows(
        "combined-multihop",
        "latency_over_copy",
        &[("hops", "6"), ("flow", "request of 300 B")],
        "a relay keeps a fragment until the next one comes",
    ),
    rows(
        "combined-update",
        "done_ratio",
        &[
            ("flow", "unmodified"),
            ("design", "frames"),
            ("loss", "0.1"),
        ],
        STAND_IN,
    ),
    rows(
        "combined-pacing",
        "goodput_over_one_flow",
        &[("design", "hold, ACKs")],
        NEAR,
    ),
    rows(
        "combined-pacing",
        "goodput",
        &[
            ("hops", "3"),
            ("forwarding", "cit"),
            ("channels", "single"),
            ("ack_every", "8"),
            ("design", "measured"),
        ],
        NEAR,
    ),
    rows(
        "combined-pacing",
        "goodput",
        &[
            ("hops", "3"),
            ("channels", "multi"),
            ("ack_every", "8"),
            ("design", "measured"),
        ],
        "a source finds its pace by trying, and some seconds of each minute pass before",
    ),
    rows(
        "combined-pacing",
        "goodput",
        &[
            ("hops", "6"),
            ("channels", "multi"),
            ("ack_every", "8"),
            ("design", "measured"),
        ],
        "a source finds its pace by trying, and some seconds of each minute pass before",
    ),
    rows(
        "combined-pacing",
        "goodput",
        &[
            ("hops", "6"),
            ("channels", "multi"),
            ("design", "measured, thinned"),
        ],
        "a source finds its pace by trying, and some seconds of each minute pass before",
    ),
    rows(
        "combined-pacing",
        "goodput_over_measured",
        &[
            ("hops", "6"),
            ("channels", "multi"),
            ("design", "measured, 95 %"),
        ],
        "here a pace that is 5 % too quick costs 7 %",
    ),
    rows(
        "combined-pacing",
        "goodput_over_measured",
        &[
            ("hops", "4"),
            ("forwarding", "copy"),
            ("design", "measured, 105 %"),
        ],
        NEAR,
    ),
    rows(
        "combined-pacing",
        "goodput_over_measured",
        &[
            ("hops", "4"),
            ("forwarding", "copy"),
            ("design", "measured, 115 %"),
        ],
        NEAR,
    ),
    rows(
        "combined-pacing",
        "goodput_over_measured",
        &[
            ("hops", "3"),
            ("channels", "multi"),
            ("design", "measured, 95 %"),
        ],
        NEAR,
    ),
    rows(
        "combined-pacing",
        "goodput_over_by_hand",
        &[
            ("forwarding", "copy"),
            ("compression", "tcphc"),
            ("loss", "0.05"),
        ],
        NEAR,
    ),
    rows(
        "combined-pacing",
        "goodput_over_one_flow",
        &[("design", "measured"), ("flow", "two")],
        YIELDS,
    ),
    rows(
        "combined-pacing",
        "loss",
        &[
            ("forwarding", "copy"),
            ("compression", "tcphc"),
            ("flow", "two"),
        ],
        MARKS,
    ),
    rows(
        "combined-pacing",
        "loss",
        &[
            ("forwarding", "cit"),
            ("channels", "single"),
            ("flow", "two"),
        ],
        MARKS,
    ),
    rows(
        "tcple-table4",
        "arrival_time",
        &[("design", "naive"), ("size", "1000")],
        "the paper counts from the first ACK, and this from any moment of an interval",
    ),
    rows("tcple-goodput", "goodput", &[("design", "tcple")], FASTER),
    rows(
        "tcple-goodput",
        "goodput",
        &[("design", "chip")],
        RIVALS_LOAD,
    ),
    rows("tcple-goodput", "goodput", &[("design", "bleach")], RHYTHMS),
    rows("tcple-goodput", "tcple_over_this", &[], FASTER),
    rows(
        "tcple-goodput",
        "goodput_over_offered_or_most",
        &[("design", "bleach")],
        RHYTHMS,
    ),
    rows(
        "tcple-loss",
        "goodput_lost_at_most",
        &[("design", "tcplp-ble")],
        RIVALS,
    ),
    rows(
        "tcple-loss",
        "goodput_lost_at_most",
        &[("design", "chip")],
        RIVALS,
    ),
    rows(
        "tcple-loss",
        "goodput_lost_at_most",
        &[("design", "bleach")],
        RIVALS,
    ),
    rows(
        "tcple-energy",
        "goodput_over_shortest_interval",
        &[],
        "two full packets fit into 7.5 ms, and not a whole buffer",
    ),
    rows(
        "tcple-energy",
        "energy_saved_by_latency",
        &[],
        "the published energies are not those of a second with all its events",
    ),
    rows(
        "mesh-cost",
        "goodput_ratio",
        &[],
        "floors differ by more than the 3 % that it allows",
    ),
    rows("tcplp-loss", "cocoa_behind", &[], RECOVERY_COCOA),
    rows("tcplp-loss", "coap_ahead", &[], RECOVERY),
    rows(
        "tcplp-loss",
        "radio_over_coap",
        &[("loss", "0.09")],
        RECOVERY,
    ),
    rows(
        "tcplp-loss",
        "radio_over_coap",
        &[("loss", "0.12")],
        RECOVERY,
    ),
    rows(
        "tcplp-loss",
        "radio_over_coap",
        &[("loss", "0.15")],
        RECOVERY,
    ),
    rows("tcplp-loss", "cpu_over_coap", &[("loss", "0.09")], RECOVERY),
    rows("tcplp-loss", "cpu_over_coap", &[("loss", "0.12")], RECOVERY),
    rows("tcplp-loss", "cpu_over_coap", &[("loss", "0.15")], RECOVERY),
    rows("tcplp-loss", "other_retransmissions", &[], RECOVERY),
    rows(
        "tcplp-loss",
        "reliability",
        &[("transport", "coap"), ("loss", "0.12")],
        NEAR,
    ),
    rows(
        "tcplp-loss",
        "reliability",
        &[("transport", "coap"), ("loss", "0.15")],
        NEAR,
    ),
    rows(
        "tcplp-day",
        "reliability",
        &[("transport", "coap-unrel"), ("batch", "1")],
        ATTEMPTS,
    ),
    rows(
        "tcplp-day",
        "radio_duty_cycle",
        &[("transport", "coap-unrel")],
        ATTEMPTS,
    ),
    rows("tcplp-day", "radio_single_over_batch", &[], ATTEMPTS),
    rows("tcplp-day", "cost_of_reliability", &[], ATTEMPTS),
    rows("tcplp-day", "radio_apart", &[], RECOVERY),
    rows(
        "tcplp-day",
        "cpu_duty_cycle",
        &[],
        "what an application computes is not in the lab",
    ),
    rows(
        "tcplp-sleep",
        "goodput_over_up",
        &[("interval_ms", "20")],
        "a request each 20 ms takes the mote's time to send",
    ),
    rows(
        "tcplp-sleep",
        "goodput_over_up",
        &[("interval_ms", "300")],
        SAME,
    ),
    rows(
        "tcplp-sleep",
        "goodput_over_up",
        &[("interval_ms", "500")],
        NEAR,
    ),
    rows(
        "tcplp-adaptive",
        "rtt",
        &[("direction", "up"), ("policy", "adaptive")],
        OWN_QUEUE,
    ),
    rows("tcplp-adaptive", "goodput_over_up", &[], SAME),
    rows(
        "tcplp-adaptive",
        "goodput_over_always_on",
        &[],
        "three requests follow each ACK",
    ),
    rows("tcplp-adaptive", "idle_duty", &[], DEAF_BACKOFF),
    rows(
        "combined-sleepy",
        "reliability_over_coap",
        &[("loss", "0.09")],
        NEAR,
    ),
    rows(
        "combined-sleepy",
        "reliability_over_coap",
        &[("loss", "0.12")],
        NEAR,
    ),
    rows(
        "combined-sleepy",
        "idle_duty",
        &[("policy", "adaptive")],
        DEAF_BACKOFF,
    ),
    rows(
        "combined-sleepy",
        "awake",
        &[("policy", "one-frame")],
        "OpenThread's mote also waits for its host, which is not in the lab",
    ),
    rows(
        "combined-security",
        "attack_ratio",
        &[("attack", "all"), ("aim", "this PAN")],
        "eight attackers at once; each alone costs at most 2 %",
    ),
    rows(
        "combined-outsiders",
        "lost_to_strangers",
        &[("attack", "source"), ("rate", "200"), ("design", "given")],
        DEAF,
    ),
    rows(
        "combined-outsiders",
        "lost_to_strangers",
        &[("attack", "source"), ("rate", "200"), ("design", "rpl")],
        DEAF,
    ),
    rows(
        "combined-outsiders",
        "joined",
        &[("attack", "source"), ("rate", "200"), ("design", "rpl")],
        DEAF,
    ),
    rows(
        "combined-outsiders",
        "requests_beside",
        &[
            ("hops", "3"),
            ("design", "given"),
            ("size", "1000"),
            ("rate", "3"),
        ],
        NEAR,
    ),
];

#[cfg(test)]
#[path = "tests/unjudged.rs"]
mod tests;
