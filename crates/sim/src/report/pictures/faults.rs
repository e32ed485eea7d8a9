//! What broke in a run, and how it mended: the faults of its scenario, each with the longest time
//! in which a bulk flow brought nothing behind it.

use std::fmt::Write as _;

use super::theme::escape;
use crate::scenario::{FaultSettings, FlowResult, Point, RunResult};

/// A table of the faults; nothing where there are none.
pub(super) fn table(point: &Point, run: &RunResult) -> String {
    let mut faults: Vec<&FaultSettings> = point.scenario.faults.iter().collect();
    if faults.is_empty() {
        return String::new();
    }
    faults.sort_by(|one, other| one.at_s.total_cmp(&other.at_s));
    let mut text = String::from(
        "<table><tr><th>s</th><th>what broke</th><th>bulk flow silent longest <small>s</small></th>\
         <th>which</th><th>motes that changed parents</th></tr>",
    );
    let end_s = point.scenario.timing.duration_s;
    for fault in &faults {
        // Those of the same moment share what follows.
        let mut later = faults.iter().map(|next| next.at_s);
        let until_s = later.find(|at_s| *at_s > fault.at_s).unwrap_or(end_s);
        let span = [fault.at_s, until_s];
        let silences = run.flows.iter().filter(|flow| is_bulk(flow));
        let silences = silences.filter_map(|flow| Some((run.silence_s(flow.flow, span)?, flow)));
        let longest = silences.max_by(|(one, _), (other, _)| one.total_cmp(other));
        let (silent, which) = match longest {
            Some((silent_s, flow)) => (
                format!("{silent_s:.1}"),
                format!("{} → {}", flow.from, flow.to),
            ),
            None => Default::default(),
        };
        let moved = run.moves.iter();
        let moved = moved.filter(|step| (span[0]..span[1]).contains(&step.at_s));
        let _ = write!(
            text,
            "<tr><td>{:.1}</td><td>{}</td><td>{silent}</td><td>{}</td><td>{}</td></tr>",
            fault.at_s,
            escape(&shown(fault)),
            escape(&which),
            moved.count()
        );
    }
    text + "</table>"
}

/// A fault in words.
fn shown(fault: &FaultSettings) -> String {
    let lasts = fault
        .for_s
        .map_or("for good".to_owned(), |for_s| format!("for {for_s} s"));
    match fault.to {
        None => format!("node {} off {lasts}", fault.node),
        Some(to) => format!(
            "link between {} and {to} at {} dB {lasts}",
            fault.node, fault.gain_db
        ),
    }
}

/// A flow that sends all it can, without an end: silence is no sign of one that has nothing to
/// send.
const fn is_bulk(flow: &FlowResult) -> bool {
    flow.messages.is_none() && flow.finished_s.is_none() && flow.resent_bytes.is_none()
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, AtomicU64};

    use super::*;
    use crate::scenario::{Captures, Overrides, Plan, Watch};

    #[test]
    fn a_fault_has_the_silence_behind_it() {
        let text = "duration_s = 40\nwarmup_s = 5\n[topology]\nchain = 2\n[[flow]]\nfrom = 2\n\
                    [[flow]]\nkind = \"periodic\"\nfrom = 2\ninterval_s = 30\n\
                    [[fault]]\nkind = \"reboot\"\nnode = 1\nat_s = 12\nfor_s = 3\n";
        let plan = Plan::parse(text, Path::new(""), Overrides::default()).unwrap();
        let (stop, done_ms) = (AtomicBool::new(false), AtomicU64::new(0));
        let watch = Watch {
            stop: &stop,
            done_ms: &done_ms,
        };
        let results = plan.run(&watch, Captures::default());
        let shown = table(&plan.points[0], &results[0]);
        let twice = format!("{text}[[fault]]\nkind = \"reboot\"\nnode = 2\nat_s = 12\nfor_s = 1\n");
        let twice = Plan::parse(&twice, Path::new(""), Overrides::default()).unwrap();
        let of_both = table(&twice.points[0], &results[0]);
        assert!(
            shown.contains("<td>12.0</td><td>node 1 off for 3 s</td>"),
            "{shown}"
        );
        // The periodic flow is silent for longer, and has nothing to say.
        assert!(shown.contains("<td>2 → host</td>"), "{shown}");
        let silent = shown.split("for 3 s</td><td>").nth(1).unwrap();
        let silent: f64 = silent.split('<').next().unwrap().parse().unwrap();
        assert!((3.0..20.0).contains(&silent), "{silent} s");
        // Both of a moment have what follows.
        let of_both = of_both.matches(&format!("<td>{silent:.1}</td>")).count();
        assert_eq!(of_both, 2);
    }
}
