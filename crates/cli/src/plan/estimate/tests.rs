use std::path::Path;
use std::sync::atomic::AtomicU64;

use motet::time::Instant;
use motet_lab::scenario::{Captures, FlowKind, Overrides, Plan, Session, Watch};

use super::*;

fn measured(bytes_per_s: f64, block_longest_s: f64) -> Measured {
    Measured {
        bytes_per_s,
        block_longest_s,
        held: true,
        delivery: None,
        latency_p95_ms: None,
    }
}

/// Runs of 1,000 bytes a second, but for what an air's seed makes of it.
fn runs(part_of_time: f64, noise: impl Fn(u64) -> f64) -> Trials {
    let rate =
        |seed| 1_000.0 / part_of_time / (1.0 + 0.05 * ((seed % 3) as f64 - 1.0) + noise(seed));
    (1..=RUNS)
        .map(|seed| Ok(measured(rate(seed), 9.0)))
        .collect()
}

fn answer(base: &Unmodified, trials: impl Fn(&Setting) -> Trials) -> Result<Answer, Error> {
    let settings = Setting::all(base);
    let trials: Vec<Trials> = settings.iter().map(trials).collect();
    Answer::of(100_000, base, &settings, &trials)
}

/// A leaf one hop away that polls each second.
fn asleep() -> Unmodified {
    Unmodified {
        poll_s: Some(1.0),
        is_leaf: true,
        ..Unmodified::new(1)
    }
}

fn tried<'a>(answer: &'a Answer, setting: &str) -> &'a Tried {
    let mut tried = answer.tried.iter();
    tried.find(|tried| tried.setting == setting).expect(setting)
}

#[test]
fn the_range_holds_the_runs_and_the_best_setting_is_named() {
    let base = asleep();
    let settings = Setting::all(&base);
    for setting in &settings {
        assert!(setting.update.is_leaf, "all of one mesh");
    }
    let answer = answer(&base, |setting| match setting.update.poll_s {
        None => runs(0.25, |_| 0.0),
        _ => runs(1.0, |_| 0.0),
    });
    let answer = answer.unwrap();
    let [low, high] = answer.seconds.unwrap();
    assert!(low < 95.0 && high > 105.0, "{low} {high}");
    assert!(!answer.may_time_out);
    assert_eq!(answer.best.as_deref(), Some(AWAKE));
    assert!(answer.as_good.is_empty());
    assert!(
        answer
            .poll_costs_s
            .is_some_and(|cost| (74.0..76.0).contains(&cost))
    );
    assert_eq!(answer.tried.len(), settings.len() - 1);
}

#[test]
fn what_may_be_chance_helps_nobody() {
    let base = Unmodified::new(1);
    // 4 % less in the mean, by one run of the eight.
    let lucky = |seed: u64| if seed == 3 { -0.3 } else { 0.0 };
    let chance = answer(&base, |setting| match setting.update.relays {
        true => runs(1.0, lucky),
        false => runs(1.0, |_| 0.0),
    });
    let chance = chance.unwrap();
    let relay = tried(&chance, RELAY);
    assert!(
        relay.of_now.is_some_and(|part| part < HELPS) && !relay.helps,
        "{relay:?}"
    );
    assert_eq!(chance.best, None);
    // The same seeds make the same difference to both: 3 % less with each is no chance.
    let sure = answer(&base, |setting| match setting.update.relays {
        true => runs(0.97, |_| 0.0),
        false => runs(1.0, |_| 0.0),
    });
    assert_eq!(sure.unwrap().best.as_deref(), Some(RELAY));
    // Of two that help alike, both are named.
    let alike = answer(&base, |setting| {
        let wobble =
            |sign: f64| move |seed: u64| sign * if seed.is_multiple_of(2) { 0.02 } else { -0.02 };
        match (setting.update.relays, setting.update.readers) {
            (true, _) => runs(0.8, wobble(1.0)),
            (_, 0) => runs(0.802, wobble(-1.0)),
            _ => runs(1.0, |_| 0.0),
        }
    });
    let alike = alike.unwrap();
    assert!(
        alike.best.is_some() && alike.as_good.len() == 1,
        "{alike:?}"
    );
}

#[test]
fn broken_runs_are_said_and_lengthen_no_range() {
    let base = Unmodified::new(1);
    let mut broken = runs(1.0, |_| 0.0);
    broken[2] = Err("no block has arrived".to_owned());
    if let Ok(one) = &mut broken[5] {
        (one.held, one.bytes_per_s) = (false, 1.0);
    }
    let now = answer(&base, |setting| match setting.update.relays {
        true => vec![Err("no block has arrived".to_owned()); RUNS as usize],
        false if setting.name == NOW => broken.clone(),
        false => runs(0.5, |_| 0.0),
    });
    let now = now.unwrap();
    assert_eq!((now.runs, now.broken, now.may_time_out), (RUNS, 2, true));
    assert!(now.seconds.unwrap()[1] < 140.0, "{:?}", now.seconds);
    let relay = tried(&now, RELAY);
    assert_eq!(
        (relay.broken, relay.seconds, relay.helps),
        (RUNS, None, false)
    );
    assert!(relay.why.is_some());
    assert!(now.best.is_some());
    // What breaks more often does not help, however quick it is otherwise.
    let rash = answer(&base, |setting| match setting.name == NOW {
        true => runs(1.0, |_| 0.0),
        false => broken
            .iter()
            .cloned()
            .map(|one| {
                one.map(|one| Measured {
                    bytes_per_s: 9_000.0,
                    ..one
                })
            })
            .collect(),
    });
    assert_eq!(rash.unwrap().best, None);
}

#[test]
fn a_setting_with_which_a_block_outlasts_the_sender_helps_nobody() {
    let base = Unmodified::new(1);
    let slow = |setting: &Setting| {
        let longer = setting.update.block_bytes > base.block_bytes;
        let (rate, longest_s) = if longer {
            (1_300.0, 120.0)
        } else {
            (1_000.0, 30.0)
        };
        (1..=RUNS).map(|_| Ok(measured(rate, longest_s))).collect()
    };
    let slow = answer(&base, slow).unwrap();
    assert_eq!(slow.best, None);
    let longer = slow.tried.iter().find(|tried| tried.broken > 0).unwrap();
    assert_eq!(longer.broken, RUNS);
    assert!(longer.why.as_ref().unwrap().contains("120 s"), "{longer:?}");
    assert!(!slow.may_time_out);
}

#[test]
fn where_nothing_gets_through_the_setting_that_does_is_named() {
    let base = asleep();
    let broken = || vec![Err("no block has arrived".to_owned()); RUNS as usize];
    let now = answer(&base, |setting| match setting.update.poll_s {
        None => runs(0.25, |_| 0.0),
        _ if setting.update.relays => {
            let mut most = runs(0.2, |_| 0.0);
            most[0] = Err("no block has arrived".to_owned());
            most
        }
        _ => broken(),
    });
    let now = now.unwrap();
    assert_eq!(
        (now.broken, now.seconds, now.poll_costs_s),
        (RUNS, None, None)
    );
    assert_eq!(
        now.best.as_deref(),
        Some(AWAKE),
        "the one that breaks least"
    );
    assert!(tried(&now, RELAY).helps);
}

#[test]
fn few_runs_give_no_range_and_prove_nothing() {
    let base = Unmodified::new(1);
    let but = |whole: usize, mut trials: Trials| {
        let broken = Err("no block has arrived".to_owned());
        trials
            .iter_mut()
            .skip(whole)
            .for_each(|trial| *trial = broken.clone());
        trials
    };
    for (whole, has_range, is_compared) in [(2, false, false), (3, true, false), (4, true, true)] {
        let few = answer(&base, |setting| match setting.update.relays {
            true => but(whole, runs(0.96, |_| 0.0)),
            false => but(whole, runs(1.0, |_| 0.0)),
        });
        let few = few.unwrap();
        assert_eq!(few.seconds.is_some(), has_range, "{whole}");
        assert_eq!(tried(&few, RELAY).helps, is_compared, "{whole}");
    }
}

/// One block of the longest kind, and the shorter an update the less even its time.
#[test]
fn a_short_update_has_a_wide_range() {
    let (trials, base) = (runs(1.0, |_| 0.0), Unmodified::new(1));
    let settings = [Setting {
        name: NOW.to_owned(),
        update: base,
    }];
    let width = |image| {
        let answer = Answer::of(image, &base, &settings, std::slice::from_ref(&trials)).unwrap();
        let [low, high] = answer.seconds.unwrap();
        (high - low) / (high + low)
    };
    assert!(width(1_000_000) < 0.15, "{}", width(1_000_000));
    assert!(width(20_000) > 0.3, "{}", width(20_000));
    let tiny = Answer::of(1_000, &base, &settings, &[trials]).unwrap();
    assert_eq!(tiny.seconds.unwrap()[1], 9.0);
}

/// When so many bytes of an update are answered, s: by a run of the whole of it, and not by the
/// rate of a part.
fn whole_s(update: &Unmodified, image: u64, seed: u64, limit_s: u64) -> f64 {
    let document = update.document(limit_s);
    let plan = Plan::parse(&document, Path::new(""), Overrides::default()).unwrap();
    let scenario = plan.points.into_iter().next().unwrap().scenario;
    let mut session = Session::open(scenario, seed, Captures::default(), || false).unwrap();
    let (stop, done_ms) = (AtomicBool::new(false), AtomicU64::new(0));
    let watch = Watch {
        stop: &stop,
        done_ms: &done_ms,
    };
    for tenth in 1..=10 * limit_s {
        let at = Instant::from_micros(100_000 * tenth);
        session.advance(at, &watch);
        let result = session.result();
        let mut flows = result.flows.iter();
        let flow = flows.find(|flow| flow.likeness.kind == FlowKind::Request);
        let Some((flow, [_, answered])) = flow.and_then(|flow| Some((flow, flow.messages?))) else {
            continue;
        };
        if answered * update.block_bytes >= image {
            assert_eq!(flow.connections_lost, Some(0), "{update:?}");
            let longest_s = flow.latency_max_ms.unwrap() / 1e3;
            assert!(longest_s <= TIMEOUT_S, "{longest_s} s, {update:?}");
            return tenth as f64 / 10.0;
        }
    }
    panic!("no {image} bytes in {limit_s} s: {update:?}");
}

/// Whole updates by other seeds than a plan's: of several lengths, over several hops, in several
/// airs. `cargo xtask check long` tries all ten of them, with all runs of a plan.
#[test]
fn updates_that_no_plan_has_run_take_as_long_as_it_says() {
    let of = |hops, readers, frame_loss, poll_s: Option<f64>, block_bytes| Unmodified {
        readers,
        frame_loss,
        poll_s,
        is_leaf: poll_s.is_some(),
        block_bytes,
        ..Unmodified::new(hops)
    };
    let mut updates = vec![
        (300_000, of(2, 0, 3, Some(1.0), 8_192)),
        (900_000, of(1, 12, 3, None, 8_192)),
        (900_000, of(2, 12, 3, None, 8_192)),
        (900_000, of(3, 12, 3, None, 8_192)),
        (700_000, of(4, 12, 3, None, 8_192)),
        (450_000, of(3, 12, 10, None, 8_192)),
        (900_000, of(1, 12, 3, Some(0.5), 8_192)),
        (900_000, of(3, 0, 3, None, 8_192)),
        (600_000, of(2, 12, 3, None, 32_768)),
        (900_000, of(5, 12, 0, None, 8_192)),
    ];
    let is_long = std::env::var_os("MOTET_LONG").is_some();
    let runs = if is_long { RUNS } else { WHOLE_MIN as u64 };
    if !is_long {
        updates.truncate(1);
    }
    let count = updates.len();
    let stop = AtomicBool::new(false);
    let (mut inside, mut widest) = (0, 0.0_f64);
    for (number, (image, update)) in (1..).zip(updates) {
        let now = Setting {
            name: NOW.to_owned(),
            update,
        };
        let trials: Trials = (1..=runs).map(|seed| now.run(seed, &stop)).collect();
        let answer = Answer::of(image, &update, &[now], &[trials]).unwrap();
        let [low, high] = answer.seconds.unwrap();
        let took = whole_s(&update, image, 100 + number, 2 * high.ceil() as u64);
        let mean = f64::midpoint(low, high);
        println!(
            "{image} bytes, {} hops: {low:.1} to {high:.1} s, took {took:.1}",
            update.hops
        );
        inside += usize::from((low..=high).contains(&took));
        widest = widest.max((high - low) / 2.0 / mean);
    }
    println!(
        "{inside} of {count} inside, the widest range is ± {:.1} %",
        100.0 * widest
    );
    // One of ten may be outside.
    assert!(
        inside >= count - count / 10 && widest <= 0.25,
        "{inside} {widest}"
    );
}

#[test]
fn what_carries_nothing_is_said() {
    let failed = answer(&Unmodified::new(1), |_| {
        vec![Err("no block has arrived".to_owned()); RUNS as usize]
    });
    assert!(
        failed
            .unwrap_err()
            .to_string()
            .contains("no block has arrived")
    );
}
