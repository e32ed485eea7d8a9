//! Experiments as data: settings that a scenario file sweeps over.
//!
//! Purpose: a scenario file beside the experiment's functions holds the settings: chain, keys and
//! one flow. `motet run` runs the same file, with its own defaults for TCP's tables and its own
//! figures. Each point of the sweep is a case.
//! Left out: settings that are no product of lists, and traffic that a scenario's flows cannot
//! express.

use toml::Value;

use super::flows::Flows;
use super::row::{KEYS, Point};
use super::setup::Setup;
use super::{Case, row};
use crate::scenario::{Document, FlowEnd, FlowKind, ScenarioError};

/// The cases of a file of this crate, in the order of its sweep.
pub(super) fn cases(text: &str) -> Vec<Case> {
    read(text).expect("a test reads every file of this crate")
}

fn read(text: &str) -> Result<Vec<Case>, ScenarioError> {
    let (swept, points) = Document::points(text)?;
    let case = |document: Document| {
        let flows = document.scenario()?.flows;
        debug_assert!(flows.iter().all(|flow| flow.kind == FlowKind::Bulk));
        let is_down = flows.iter().any(|flow| flow.from == FlowEnd::Host);
        let keys = swept
            .iter()
            .filter_map(|path| key(path, document.get(path)?));
        let point = keys.fold(Point::default(), |point, (key, value)| {
            point.with(key, value)
        });
        let case = Case::new(point, Setup::of(document));
        Ok(match is_down {
            true => case.traffic(Flows::Down),
            false => case,
        })
    };
    points.into_iter().map(case).collect()
}

/// The key and value of a swept key in the point of a row.
fn key(path: &str, value: &Value) -> Option<(&'static str, row::Value)> {
    let name = match path {
        "topology.chain" => "hops",
        _ => path.rsplit('.').next()?,
    };
    let key = KEYS.iter().find(|key| **key == name)?;
    let whole = u64::try_from(value.as_integer()?).ok()?;
    Some((key, row::Value::Whole(whole)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::experiments::tcplp;
    use crate::scenario::{Overrides, Plan};

    /// Every file is a scenario that `motet run` takes, and has a case for each point, told from
    /// the others by what is swept.
    #[test]
    fn every_file_is_a_scenario_with_a_case_for_each_point() {
        for text in tcplp::FILES {
            let plan = Plan::parse(text, Path::new("file.toml"), Overrides::default());
            let plan = plan.unwrap_or_else(|error| panic!("{error}"));
            let cases = read(text).unwrap();
            assert_eq!(cases.len(), plan.points.len());
            for (case, point) in cases.iter().zip(&plan.points) {
                assert_eq!(case.point.iter().count(), point.values.len(), "{text}");
                let network = case.setup.network(1).unwrap();
                assert_eq!(network.nodes.len(), point.scenario.network.nodes.len());
                let both = network.nodes.iter().zip(&point.scenario.network.nodes);
                for (node, other) in both {
                    assert_eq!(node.mac.retry_delay_max, other.mac.retry_delay_max);
                    assert_eq!(node.window_segments, other.window_segments);
                }
            }
        }
    }
}
