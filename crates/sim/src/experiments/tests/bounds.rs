//! No run exceeds its bound.

use std::collections::BTreeMap;

use super::super::{
    Case, Experiment, all, ble, cit, everything, fair, mesh, outsiders, security, sleepy, tcple,
    update,
};
use crate::cases::{is_long, some_of};

/// Every setting of few hops that has a bound, once, and the longest of bulk packets.
fn bounded() -> Vec<Case> {
    let is_bulk =
        |experiment: &Experiment| cit::EXPERIMENTS.iter().any(|own| own.id == experiment.id);
    let cases = all().into_iter().flat_map(|experiment| {
        let hops: &[usize] = if is_bulk(&experiment) {
            &[1, 2, 6]
        } else {
            &[1, 2, 3]
        };
        let mut cases = (experiment.cases)();
        cases.retain(|case| hops.contains(&case.setup.mote()));
        cases
    });
    let of_setup: BTreeMap<String, Case> = cases
        .filter(|case| case.segment(SECONDS).bound.is_some())
        .map(|case| (format!("{:?} {:?}", case.setup, case.traffic), case))
        .collect();
    of_setup.into_values().collect()
}

#[test]
fn no_run_exceeds_its_bound() {
    use rayon::prelude::*;
    let cases = bounded();
    assert!(cases.len() > 40, "{} settings", cases.len());
    let cases = some_of(cases, 16);
    let shares: Vec<f64> = cases
        .par_iter()
        .map(|case| {
            let Case {
                point,
                setup,
                traffic,
            } = case;
            let bound = case.segment(SECONDS).bound.unwrap_or(f64::NAN);
            let run = traffic.run(setup, 50_001, SECONDS);
            let run = run.unwrap_or_else(|failure| panic!("{point}: {failure}"));
            let share = run.goodput_kbps() / bound;
            assert!(share <= 1.0, "{point}: {share} of {bound} kb/s");
            share
        })
        .collect();
    let nearest = shares.into_iter().fold(0.0, f64::max);
    // The nearest of all need not be among some of them.
    assert!(
        nearest > 0.95 || !is_long(),
        "{nearest}: bounds that nothing comes near"
    );
}

/// Of one flow over a chain there is a bound beside what the papers add up, which is none; of
/// two there is no bound.
#[test]
fn one_flow_has_a_bound_and_two_have_none() {
    let is_chain = |experiment: &Experiment| {
        let others = cit::EXPERIMENTS.iter().chain(&mesh::EXPERIMENTS);
        let others = others.chain(&fair::EXPERIMENTS);
        let mut others = others
            .chain(&ble::EXPERIMENTS)
            .chain(&tcple::EXPERIMENTS)
            .chain(&sleepy::EXPERIMENTS)
            .chain(&security::EXPERIMENTS)
            .chain(&outsiders::EXPERIMENTS)
            .chain(&update::EXPERIMENTS)
            .chain(&everything::EXPERIMENTS);
        others.all(|other| other.id != experiment.id)
    };
    for experiment in all().into_iter().filter(is_chain) {
        for case in (experiment.cases)() {
            let segment = case.segment(SECONDS);
            let is_two = format!("{:?}", case.traffic).contains("Two");
            let bound = (segment.bound.is_none(), segment.estimate.is_none());
            assert_eq!(bound, (is_two, false), "{}: {:?}", case.point, case.traffic);
        }
    }
}

/// Time that is measured, s.
const SECONDS: u64 = 5;
