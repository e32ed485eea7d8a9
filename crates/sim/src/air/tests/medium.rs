//! The medium: collisions, capture, hidden terminals, sensing.

use super::*;
use motet::random::Rng;
use motet::time::Duration;

const FULL: usize = 127;

fn at(us: u64) -> Instant {
    Instant::from_micros(us)
}

/// Nodes whose gains are given by name of the pair; 0 dBm, noise of an AT86RF233.
fn air(nodes: usize, gain_db: impl FnMut(usize, usize) -> f64) -> Medium {
    let placement = Placement {
        transmit_dbm: 0.0,
        noise_dbm: -101.4,
        channel: 26,
    };
    Medium::new(&Gains::from_fn(nodes, gain_db), &vec![placement; nodes])
}

fn is_silent(medium: &mut Medium) -> bool {
    let fields = [11, 26].map(|channel| medium.fields.on(channel).0.to_vec());
    let mut fields = fields.iter().flatten();
    fields.all(|field| field.incident() == Power::ZERO)
}

fn frame(len: usize) -> Frame {
    Frame::new(&vec![0x55; len])
}

fn end(start: u64, len: usize) -> Instant {
    at(start) + phy::air_time(len)
}

/// The survival of a frame at node 0 from node 1 while node 2 sends one, later by `offset`.
fn survival_against(
    signal_db: f64,
    interferer_db: f64,
    offset: u64,
    len: usize,
) -> (Option<f64>, Option<f64>) {
    let mut medium = air(3, |from, to| match (from, to) {
        (1, 0) => signal_db,
        (2, 0) => interferer_db,
        _ => f64::NEG_INFINITY,
    });
    let first = medium.start(1, frame(FULL), Some(0), at(0));
    let second = medium.start(2, frame(len), Some(0), at(offset));
    let mut ends = [(end(0, FULL), first, 1), (end(offset, len), second, 2)];
    ends.sort_by_key(|(when, ..)| *when);
    let mut survivals = [None; 3];
    for (when, id, from) in ends {
        let mut receptions = Vec::new();
        medium.finish(id, when, &mut receptions).unwrap();
        survivals[from] = receptions.first().map(|reception| reception.survival);
    }
    (survivals[1], survivals[2])
}

#[test]
fn a_frame_alone_arrives_and_leaves_silence() {
    let mut medium = air(2, |_, _| -60.0);
    let id = medium.start(0, frame(FULL), Some(1), at(0));
    assert!(medium.is_receiving(1));
    let mut receptions = Vec::new();
    let finished = medium.finish(id, end(0, FULL), &mut receptions).unwrap();
    assert_eq!(finished.fate, Fate::Arriving);
    assert_eq!(receptions.len(), 1);
    assert!(receptions[0].survival == 1.0 && receptions[0].intended);
    assert!(is_silent(&mut medium));
    assert!(medium.finish(id, end(0, FULL), &mut receptions).is_none());
}

#[test]
fn collisions_are_judged_by_power_offset_and_length() {
    // (signal, interferer, later by µs, its bytes, signal's survival, interferer's)
    let cases = [
        (
            "equal power, one hidden from the other",
            -62.0,
            -62.0,
            1_000,
            FULL,
            0.0..1e-3,
            None,
        ),
        (
            "6 dB weaker: lives with the loss of 3",
            -62.0,
            -68.0,
            1_000,
            FULL,
            0.98..1.0,
            None,
        ),
        (
            "2 dB weaker: a coin's chance under 3 dB of co-channel loss",
            -62.0,
            -64.0,
            1_000,
            FULL,
            0.2..0.6,
            None,
        ),
        (
            "10 dB stronger, after the preamble: both lost",
            -62.0,
            -52.0,
            1_000,
            FULL,
            0.0..1e-6,
            None,
        ),
        (
            "10 dB stronger, within the preamble: captures",
            -62.0,
            -52.0,
            100,
            FULL,
            -1.0..0.0,
            Some(0.99),
        ),
        (
            "touches the last bytes only",
            -62.0,
            -62.0,
            4_256 - 4,
            20,
            0.5..1.0,
            None,
        ),
        (
            "an ACK is an interferer as any other",
            -62.0,
            -62.0,
            2_000,
            5,
            0.1..0.4,
            None,
        ),
    ];
    for (name, signal, interferer, offset, len, expected, other) in cases {
        let (first, second) = survival_against(signal, interferer, offset, len);
        let first = first.unwrap_or(-0.5);
        assert!(
            expected.contains(&first) || (expected.end == 1.0 && first == 1.0),
            "{name}: {first}"
        );
        match other {
            None => assert_eq!(second, None, "{name}"),
            Some(least) => assert!(second.unwrap() >= least, "{name}: {second:?}"),
        }
    }
}

#[test]
fn interference_is_weighed_by_how_long_it_lasts() {
    // 2.4 dB of margin less 3: -0.6 dB, where a whole 127-byte frame is lost 43 times of 100.
    let whole = survival_against(-62.0, -64.4, 161, FULL).0.unwrap();
    let half = survival_against(-62.0, -64.4, 2_224, FULL).0.unwrap();
    assert!(whole < half && half < 1.0, "{whole} {half}");
    // The frame's latter half has the square root of the whole's chance.
    assert!((half * half - whole).abs() < 0.02, "{whole} {half}");
}

#[test]
fn a_receiver_locked_on_a_foreign_frame_misses_its_own() {
    // Node 1 hears 3 faintly, two hops away, and then its neighbour 0 much stronger.
    let mut medium = air(4, |from, to| match from.abs_diff(to) {
        1 => -62.0,
        2 => -87.0,
        _ => f64::NEG_INFINITY,
    });
    medium.start(3, frame(FULL), Some(2), at(0));
    let own = medium.start(0, frame(FULL), Some(1), at(500));
    let mut receptions = Vec::new();
    let finished = medium.finish(own, end(500, FULL), &mut receptions).unwrap();
    assert_eq!(finished.fate, Fate::LockedOnAnother);
    assert!(receptions.iter().all(|reception| reception.at != 1));
}

#[test]
fn deafness_names_its_reason_at_start_and_in_the_middle() {
    let mut medium = air(2, |_, _| -60.0);
    let mut receptions = Vec::new();
    medium.set_hearing(1, Some(Deaf::Copying), at(0));
    let id = medium.start(0, frame(20), Some(1), at(10));
    medium.set_hearing(1, None, at(20));
    let finished = medium.finish(id, end(10, 20), &mut receptions).unwrap();
    assert_eq!(finished.fate, Fate::Deaf(Deaf::Copying));

    let id = medium.start(0, frame(20), Some(1), at(5_000));
    medium.set_hearing(1, Some(Deaf::Transmitting), at(5_300));
    let finished = medium.finish(id, end(5_000, 20), &mut receptions).unwrap();
    assert_eq!(finished.fate, Fate::Deaf(Deaf::Transmitting));
    assert!(receptions.is_empty());
}

#[test]
fn sensing_averages_energy_and_knows_carriers() {
    // Node 0 hears 1 loudly and 2 faintly.
    let mut medium = air(3, |from, to| match (from, to) {
        (1, 0) => -62.0,
        (2, 0) => -87.0,
        _ => f64::NEG_INFINITY,
    });
    let threshold = Power::from_dbm(-80.0);
    medium.assess(0, at(0));
    let (silence, carrier) = medium.assessed(0, at(128));
    assert!((silence.dbm() + 101.4).abs() < 0.1 && !carrier);

    // A loud frame that began in the last tenth of the assessment still passes -80 dBm ...
    medium.assess(0, at(1_000));
    let loud = medium.start(1, frame(20), None, at(1_115));
    let (energy, carrier) = medium.assessed(0, at(1_128));
    assert!(energy > threshold && carrier, "{}", energy.dbm());
    medium.finish(loud, end(1_115, 20), &mut Vec::new());

    // ... a frame from two hops away never does, yet is known as a carrier.
    let faint = medium.start(2, frame(FULL), None, at(10_000));
    medium.assess(0, at(10_500));
    let (energy, carrier) = medium.assessed(0, at(10_628));
    assert!(energy < threshold && carrier, "{}", energy.dbm());
    medium.finish(faint, end(10_000, FULL), &mut Vec::new());
}

#[test]
fn channels_keep_frames_apart_and_powers_in_order() {
    let mut medium = air(3, |_, _| -60.0);
    medium.set_channel(1, 15, at(0));
    let other = medium.start(0, frame(FULL), Some(1), at(0));
    assert!(!medium.is_receiving(1) && medium.is_receiving(2));
    // Tuning into a frame on the air hears its power, not its bits.
    medium.set_channel(1, 26, at(1_000));
    assert!(!medium.is_receiving(1));
    medium.assess(1, at(1_000));
    assert!(medium.assessed(1, at(1_128)).0 > Power::from_dbm(-61.0));
    medium.set_channel(2, 11, at(2_000));
    let mut receptions = Vec::new();
    let finished = medium.finish(other, end(0, FULL), &mut receptions).unwrap();
    assert_eq!(finished.fate, Fate::Unheard);
    assert!(receptions.is_empty());
    assert!(is_silent(&mut medium));
}

#[test]
fn the_order_in_which_interferers_begin_changes_nothing() {
    let survival = |order: [usize; 4]| {
        let mut medium = air(6, |from, to| {
            if to == 0 {
                -60.0 - 7.3 * from as f64
            } else {
                f64::NEG_INFINITY
            }
        });
        let own = medium.start(1, frame(FULL), Some(0), at(0));
        for from in order {
            medium.start(from, frame(FULL), None, at(1_000));
        }
        let mut receptions = Vec::new();
        medium.finish(
            own,
            at(0) + phy::air_time(FULL) + Duration::ZERO,
            &mut receptions,
        );
        receptions[0].survival.to_bits()
    };
    assert_eq!(survival([2, 3, 4, 5]), survival([5, 3, 2, 4]));
}

#[test]
fn replayed_noise_takes_its_toll_and_makes_the_channel_busy() {
    let mut medium = air(2, |_, _| -80.0);
    // One loud millisecond in ten.
    let trace = format!("-60\n{}", "-98\n".repeat(9));
    medium.set_noise(1, Some(Noise::read(trace.as_bytes(), 0.0).unwrap()));
    let mut survival = |start| {
        let id = medium.start(0, frame(FULL), Some(1), at(start));
        let mut receptions = Vec::new();
        medium
            .finish(id, end(start, FULL), &mut receptions)
            .unwrap();
        receptions.first().map(|reception| reception.survival)
    };
    assert_eq!(survival(10_500), None, "the preamble is not found");
    assert_eq!(survival(22_000), Some(1.0), "all of it is in the quiet");
    let hit = survival(37_000).unwrap();
    assert!(hit < 0.01, "a burst in the middle: {hit}");
    for (from, dbm) in [(40_100, -60.0), (40_936, -63.0), (45_000, -98.0)] {
        medium.assess(1, at(from));
        let (power, carrier) = medium.assessed(1, at(from + 128));
        assert!(
            (power.dbm() - dbm).abs() < 0.1 && !carrier,
            "{from}: {power:?}"
        );
    }
}

#[test]
fn a_gain_changes_with_the_next_frame() {
    let mut medium = air(3, |_, _| -60.0);
    let first = medium.start(0, frame(FULL), Some(1), at(0));
    medium.set_gain(0, 1, -300.0);
    medium.set_gain(2, 1, -70.0);
    let finished = medium.finish(first, end(0, FULL), &mut Vec::new()).unwrap();
    assert_eq!(finished.fate, Fate::Arriving);
    assert!(is_silent(&mut medium));
    let second = medium.start(0, frame(FULL), Some(1), at(10_000));
    let finished = medium
        .finish(second, end(10_000, FULL), &mut Vec::new())
        .unwrap();
    assert_eq!(finished.fate, Fate::TooWeak);
    let louder = medium.power(2, 1).unwrap().dbm();
    assert!((louder + 70.0).abs() < 0.01, "{louder}");
}

/// Ten nodes talk over each other, each to its neighbour, some of them weakly.
fn babble(asks_all: bool) -> (Medium, Vec<Reception>) {
    let mut medium = air(10, |from, to| {
        -70.0 - 4.0 * (from * 7 + to * 7) as f64 % 60.0 / 4.0 * from.abs_diff(to) as f64 / 2.0
    });
    medium.ask_all(asks_all);
    let mut rng = Rng::from_seed([3, 4]);
    let (mut receptions, mut ends): (_, Vec<(Instant, FrameId)>) = (Vec::new(), Vec::new());
    let mut now = at(0);
    for round in 0..4_000 {
        now += Duration::from_micros(u64::from(rng.below(1_500)));
        ends.sort_by_key(|(when, _)| *when);
        while let Some((when, id)) = ends.first().copied().filter(|(when, _)| *when <= now) {
            medium.finish(id, when, &mut receptions).unwrap();
            ends.remove(0);
        }
        let from = round % 10;
        medium.set_interest(
            (from + 3) % 10,
            [Interest::Nothing, Interest::All][round / 7 % 2],
        );
        let id = medium.start(from, frame(40), Some((from + 1) % 10), now);
        ends.push((now + phy::air_time(40), id));
    }
    (medium, receptions)
}

#[test]
fn who_is_not_asked_for_knows_only_whether_a_frame_is_certain() {
    let (all, asked) = (babble(true).1, babble(false).1);
    let sure = |reception: &&Reception| reception.survival < 1.0 || reception.intended;
    let both = all.iter().filter(sure).zip(asked.iter().filter(sure));
    for (one, other) in both.clone() {
        assert_eq!((one.at, one.intended), (other.at, other.intended));
        if one.intended {
            assert_eq!(one.survival.to_bits(), other.survival.to_bits());
        } else {
            assert!(other.survival < 1.0 && one.survival <= other.survival);
        }
    }
    assert_eq!(all.iter().filter(sure).count(), both.clone().count());
    assert_eq!(asked.iter().filter(sure).count(), both.clone().count());
    let partial = both.filter(|(one, other)| one.survival < other.survival);
    assert!(
        partial.count() > 100,
        "some are worth no more than their first stretch"
    );
    assert!(
        asked.len() < all.len(),
        "those who do not want to know are left out"
    );
}
