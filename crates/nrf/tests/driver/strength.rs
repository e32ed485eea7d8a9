//! How strong signals are, and what that decides.

use super::*;

/// IEEE 802.15.4-2006 §6.9.9: at most 10 dB above the sensitivity that it asks for, -85 dBm.
#[test]
fn a_channel_is_busy_from_75_dbm_below_a_milliwatt_on() {
    for (dbm, is_clear) in [(-60, false), (-74, false), (-76, true), (-90, true)] {
        let mut bench = bench();
        let mut noise = OnAir::good(bench.model.now(), &[0; 100]);
        (noise.dbm, noise.is_noise) = (dbm, true);
        bench.model.put(noise);
        bench.driver.perform(Action::AssessChannel, &[]);
        bench.run(1_000);
        assert_eq!(all(&mut bench), [Seen::Assessed(is_clear)], "{dbm} dBm");
    }
}

/// The radio measures up to 3 dB too much in the cold, and too little in the heat (erratum 153).
#[test]
fn strength_and_quality_are_the_same_at_any_temperature() {
    for celsius in -40..=105 {
        for quarter in 0..4 {
            let mut bench = bench();
            bench.model.set_heat(4 * celsius + quarter);
            // The second check sees what the first has measured.
            bench.driver.check();
            bench.driver.check();
            for (dbm, lqi) in [(-88, 16), (-60, 128), (-29, 252), (-20, 255)] {
                let mut frame = OnAir::good(bench.model.now() + 50, &data(MINE, 1, 10));
                frame.dbm = dbm;
                bench.model.put(frame);
                bench.run(3_000);
                let seen = all(&mut bench);
                let Some(Seen::Frame(_, meta)) = seen.last() else {
                    panic!("{seen:?}");
                };
                let case = format!("{celsius} °C and {quarter} quarters");
                assert_eq!((meta.rssi_dbm, meta.lqi), (dbm, lqi), "{case}");
            }
        }
    }
}

/// What a node is started with is measured before its first frame.
#[test]
fn a_cold_start_is_measured_at_once() {
    let model = Model::new(0);
    model.set_heat(4 * -40);
    let mut bench = Bench::of(model, Box::leak(Box::new(Frames::new())));
    bench.driver.set_filter(ME);
    bench.run(100);
    hear(&bench, &data(MINE, 1, 10));
    bench.run(3_000);
    let seen = all(&mut bench);
    let Some(Seen::Frame(_, meta)) = seen.last() else {
        panic!("{seen:?}");
    };
    assert_eq!((meta.rssi_dbm, meta.lqi), (-60, 128));
}

#[test]
fn frames_and_acks_have_the_power_that_is_set() {
    // (what is asked for, what the radio has)
    let cases = [
        (None, 0),
        (Some(i8::MIN), -40),
        (Some(-41), -40),
        (Some(-21), -40),
        (Some(-20), -20),
        (Some(-1), -4),
        (Some(0), 0),
        (Some(1), 0),
        (Some(2), 2),
        (Some(5), 5),
        (Some(8), 8),
        (Some(i8::MAX), 8),
    ];
    for (asked, dbm) in cases {
        let mut bench = bench();
        if let Some(asked) = asked {
            assert_eq!(bench.driver.set_power_dbm(asked), dbm);
        }
        hear(&bench, &data(MINE, 1, 10));
        bench.run(3_000);
        bench.driver.perform(Action::Preload { len: 30 }, &[9; 30]);
        bench.driver.perform(Action::Fire, &[]);
        bench.run(3_000);
        let powers: Vec<_> = bench.model.sent().iter().map(|sent| sent.dbm).collect();
        assert_eq!(powers, [dbm; 2], "{asked:?}");
    }
}
