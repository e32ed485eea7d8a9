//! No run exceeds its bound.

use std::collections::BTreeMap;

use super::super::{Case, Experiment, all, cit};

/// Every setting that has a bound, once; of bulk packets, which take long, the paper's own and
/// the longest and shortest relayed ones.
fn bounded() -> Vec<Case> {
    let is_bulk =
        |experiment: &Experiment| cit::EXPERIMENTS.iter().any(|own| own.id == experiment.id);
    let cases = all().into_iter().flat_map(|experiment| {
        let hops: &[u16] = if is_bulk(&experiment) {
            &[1, 2, 6]
        } else {
            &[1]
        };
        let mut cases = (experiment.cases)();
        cases.retain(|case| hops.contains(&case.setup.chain.hops));
        cases
    });
    let of_setup: BTreeMap<String, Case> = cases
        .filter(|case| case.segment().bound.is_some())
        .map(|case| (format!("{:?} {:?}", case.setup, case.traffic), case))
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
        .map(|case| {
            let Case {
                point,
                setup,
                traffic,
            } = case;
            let bound = case.segment().bound.unwrap_or(f64::NAN);
            let run = traffic.run(setup, 50_001, 5);
            let run = run.unwrap_or_else(|failure| panic!("{point}: {failure}"));
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
    let is_tcp =
        |experiment: &Experiment| cit::EXPERIMENTS.iter().all(|own| own.id != experiment.id);
    for experiment in all().into_iter().filter(is_tcp) {
        for case in (experiment.cases)() {
            if case.setup.chain.hops > 1 {
                let segment = case.segment();
                assert!(
                    segment.bound.is_none() && segment.estimate.is_some(),
                    "{}",
                    case.point
                );
            }
        }
    }
}
