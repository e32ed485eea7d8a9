//! Strangers beside the daemon, for a few seeds each.

use super::super::chain_traffic::{FLOWS, FORGED, bulk_ratio, chain, request_ratios};
use super::*;
use crate::cases::some_of;
use crate::net::strangers::{StrangerPacket, Strangers};
use crate::stats::mean;

const SECONDS: u64 = 60;

const SEEDS: std::ops::Range<u64> = 1..6;

fn runs(traffic: ChainTraffic, policy: Option<Policy>, hops: u16) -> Vec<Run> {
    let daemon = Daemon { traffic, policy };
    let run = |seed| daemon.run(&chain(hops), seed, SECONDS).unwrap();
    SEEDS.map(run).collect()
}

/// Part of bulk, part of requests answered and their time, against the same without strangers.
fn judge(strangers: &[Strangers], policy: Option<Policy>, hops: u16) -> Vec<[f64; 3]> {
    let [alone, two] = [1, 2].map(|bulk| runs(ChainTraffic::flows(bulk), policy, hops));
    let of = |strangers: &Strangers| {
        let own = runs(ChainTraffic::strangers(*strangers), policy, hops);
        let bulk = own
            .iter()
            .zip(&alone)
            .map(|(run, alone)| bulk_ratio(run, alone));
        let bulk: Vec<f64> = bulk.collect();
        let asked = own
            .iter()
            .zip(&two)
            .map(|(run, two)| request_ratios(run, two));
        let (parts, times): (Vec<f64>, Vec<f64>) = asked.unzip();
        [mean(&bulk), mean(&parts), mean(&times)]
    };
    strangers.iter().map(of).collect()
}

/// Those that take more than they may.
fn too_much_for(policy: Policy, hops: u16) -> Vec<String> {
    let judged = judge(&FLOWS, Some(policy), hops);
    let is_borne =
        |&[bulk, answered, time]: &[f64; 3]| bulk >= 0.45 && answered >= 0.95 && time <= 2.0;
    let all = FLOWS.iter().zip(&judged);
    let unborne = all.filter(|(_, figures)| !is_borne(figures));
    unborne
        .map(|(strangers, figures)| format!("{policy:?}, {hops} hops, {strangers:?}: {figures:?}"))
        .collect()
}

/// Whatever the policy, the daemon's queues keep strangers off the border router's.
#[test]
fn one_stranger_leaves_connections_behind_a_daemon_their_half() {
    let own = [1, 2].map(|hops| (Policy::default(), hops));
    let others = Policy::NAMES.map(|name| (name.parse().unwrap(), 3));
    let unborne: Vec<String> = some_of(others.into_iter().chain(own), 3)
        .into_iter()
        .flat_map(|(policy, hops)| too_much_for(policy, hops))
        .collect();
    assert!(unborne.is_empty(), "{unborne:#?}");
}

#[test]
fn many_forged_sources_do_a_daemons_mesh_no_more_harm_than_eight() {
    let [eight, many] = judge(&FORGED, Some(Policy::default()), 3)[..] else {
        panic!("two");
    };
    assert!(
        many[0] >= 0.95 * eight[0] && many[0] >= 0.45,
        "{eight:?}, {many:?}"
    );
    assert!(many[1] >= 0.95 && many[2] <= 2.0, "{eight:?}, {many:?}");
}

/// What is tested is what makes the difference: without the daemon connections starve.
#[test]
fn without_a_daemon_one_queue_starves_connections() {
    let flood = [Strangers::one(StrangerPacket::Datagrams(200), 20.0)];
    let [[bulk, ..]] = judge(&flood, None, 3)[..] else {
        panic!("one");
    };
    assert!(bulk < 0.2, "{bulk}");
}
