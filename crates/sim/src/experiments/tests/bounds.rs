//! No run exceeds its bound.

use std::collections::BTreeMap;

use super::super::run::run;
use super::super::setup::Traffic;
use super::super::{Case, all};

/// Every setting that has a bound, once; of bulk packets, which take long, the paper's own and
/// the longest and shortest relayed ones.
fn bounded() -> Vec<Case> {
    let cases = all()
        .into_iter()
        .flat_map(|experiment| (experiment.cases)());
    let is_asked = |case: &Case| match case.setup.traffic {
        Traffic::Bulk(bulk) => {
            bulk.measure == crate::experiments::bulk::Measure::Throughput
                && [1, 2, 6].contains(&case.setup.chain.hops)
        }
        Traffic::Up | Traffic::Down | Traffic::Motes => case.setup.chain.hops == 1,
        _ => false,
    };
    let of_setup: BTreeMap<String, Case> = cases
        .filter(is_asked)
        .map(|case| (format!("{:?}", case.setup), case))
        .collect();
    of_setup.into_values().collect()
}

#[test]
fn no_run_exceeds_its_bound() {
    use rayon::prelude::*;
    let cases = bounded();
    assert!(cases.len() > 40, "{} settings", cases.len());
    let shares: Vec<f64> = cases
        .par_iter()
        .map(|Case { point, setup }| {
            let bound = setup.segment().bound.unwrap_or(f64::NAN);
            let run = run(setup, 50_001, 5).unwrap_or_else(|failure| panic!("{point}: {failure}"));
            let share = run.goodput_kbps() / bound;
            assert!(share <= 1.0, "{point}: {share} of {bound} kb/s");
            share
        })
        .collect();
    let nearest = shares.into_iter().fold(0.0, f64::max);
    assert!(nearest > 0.95, "{nearest}: bounds that nothing comes near");
}

/// What the papers add up for several hops is no bound, and has another name.
#[test]
fn several_hops_have_an_estimate_and_no_bound() {
    for case in all()
        .into_iter()
        .flat_map(|experiment| (experiment.cases)())
    {
        let Case { point, setup } = &case;
        let is_tcp = !matches!(setup.traffic, Traffic::Bulk(_));
        if is_tcp && setup.chain.hops > 1 {
            let segment = setup.segment();
            assert!(
                segment.bound.is_none() && segment.estimate.is_some(),
                "{point}"
            );
        }
    }
}
