//! Strangers beside connections, for a few seeds each: the whole is judged by `motet reproduce`.

use super::*;
use crate::cases::some_of;
use crate::net::network::Joining;
use crate::net::strangers::StrangerPacket;
use crate::stats::mean;
use motet_taim::{Config, Fq, Policy};

use super::rows::{FLOWS, FORGED, chain};

const SECONDS: u64 = 60;

/// The time of requests varies by a fifth from one mean of three seeds to the next.
const SEEDS: std::ops::Range<u64> = 1..9;

fn runs(traffic: ChainTraffic, setup: &Setup, is_rpl: bool) -> Vec<Run> {
    let run = |seed| {
        traffic.run_in(setup, (seed, SECONDS), |options| {
            if is_rpl {
                options.joining = Joining::Rpl;
            }
        })
    };
    SEEDS.map(|seed| run(seed).unwrap()).collect()
}

/// Part of bulk, part of requests answered and their time, against the same without strangers.
fn ratios(strangers: &[Strangers], hops: u16, is_rpl: bool) -> Vec<(f64, f64, f64)> {
    let setup = chain(hops);
    let [alone, two] = [1, 2].map(|bulk| runs(ChainTraffic::flows(bulk), &setup, is_rpl));
    let judge = |strangers: &Strangers| {
        let own = runs(ChainTraffic::strangers(*strangers), &setup, is_rpl);
        let bulk = own
            .iter()
            .zip(&alone)
            .map(|(run, alone)| bulk_ratio(run, alone));
        let asked = own
            .iter()
            .zip(&two)
            .map(|(run, two)| request_ratios(run, two));
        let (parts, times): (Vec<f64>, Vec<f64>) = asked.unzip();
        (mean(&bulk.collect::<Vec<_>>()), mean(&parts), mean(&times))
    };
    strangers.iter().map(judge).collect()
}

/// What one host sends once left TCP nothing at all.
#[test]
fn one_stranger_leaves_connections_their_half() {
    for (hops, is_rpl) in some_of([(3, false), (1, false), (2, true)], 2) {
        for (strangers, (bulk, answered, time)) in FLOWS.iter().zip(ratios(&FLOWS, hops, is_rpl)) {
            let what = format!("{strangers:?}, {hops} hops: {bulk}, {answered}, {time}");
            assert!(bulk >= 0.45 && answered >= 0.95 && time <= 2.0, "{what}");
        }
    }
}

#[test]
fn many_forged_sources_are_no_worse_than_eight() {
    let all = ratios(&FORGED, 3, false);
    let [eight, many] = [all[0], all[1]];
    assert!(
        many.0 >= 0.95 * eight.0 && many.0 >= 0.45,
        "{eight:?}, {many:?}"
    );
    assert!(many.1 >= 0.95 && many.2 <= 2.0, "{eight:?}, {many:?}");
}

/// With one queue for all the same fails: what is tested is what makes the difference.
#[test]
fn one_queue_for_all_starves_connections() {
    let flood = Strangers::one(StrangerPacket::Datagrams(200), 20.0);
    let starved = ChainTraffic {
        queues_flows: false,
        ..ChainTraffic::strangers(flood)
    };
    let setup = chain(3);
    let [alone, starved] = [ChainTraffic::flows(1), starved].map(|own| runs(own, &setup, false));
    let bulk = starved
        .iter()
        .zip(&alone)
        .map(|(run, alone)| bulk_ratio(run, alone));
    assert!(mean(&bulk.collect::<Vec<_>>()) < 0.2);
}

/// Goodput of all bulk, part of requests answered, and the slowest reader's time for nineteen of
/// twenty.
fn under(policy: Policy, hops: u16, (bulk, is_up): (usize, bool)) -> [f64; 3] {
    let traffic = ChainTraffic {
        is_up,
        readers: 4,
        ..ChainTraffic::flows(bulk)
    };
    let run = |seed| {
        let run = traffic.run_in(&chain(hops), (seed, SECONDS), |options| {
            options.fairness = Some(Config::new(policy));
        });
        let run = run.unwrap();
        let part = run.figure(ANSWERED) / run.figure(ASKED);
        [run.goodput_kbps(), part, run.figure(LATENCY_P95)]
    };
    let runs: Vec<[f64; 3]> = SEEDS.map(run).collect();
    [0, 1, 2].map(|place| mean(&runs.iter().map(|run| run[place]).collect::<Vec<_>>()))
}

/// `admission` once halved a download beside readers, whose answers took a minute; fair queueing
/// with a long spacing left a single flow a kilobit a second.
#[test]
fn no_policy_costs_one_flow_or_two_or_their_readers_anything() {
    let slow = Policy::Fq(Fq {
        spacing: Duration::from_millis(150),
    });
    let named = Policy::NAMES
        .iter()
        .skip(1)
        .map(|name| name.parse().unwrap());
    let policies: Vec<Policy> = named.chain([slow]).collect();
    let cases = [
        (3, 1, false),
        (1, 1, false),
        (3, 2, false),
        (1, 2, true),
        (3, 1, true),
    ];
    for (hops, bulk, is_up) in some_of(cases, 2) {
        let [goodput, part, p95] = under(Policy::None, hops, (bulk, is_up));
        for policy in &policies {
            let own = under(*policy, hops, (bulk, is_up));
            let what = format!(
                "{policy:?}, {hops} hops, {bulk}, up: {is_up}: {own:?} for {goodput}, {part}, {p95}"
            );
            assert!(own[0] >= 0.95 * goodput, "{what}");
            assert!(own[1] >= 0.9 * part && own[2] <= 2.0 * p95, "{what}");
        }
    }
}
