//! What happens at the radio while the driver is at its registers.

use super::*;

/// A microsecond for each access to a register: far more than the chip takes.
const ACCESS_NS: u64 = 1_000;

/// A frame's end between any two lines of [`motet_nrf::Driver::check`].
#[test]
fn a_frame_that_ends_during_a_check_is_received_and_acknowledged() {
    for before_end in 0..30 {
        let mut bench = bench();
        let end = hear(&bench, &data(MINE, 1, 10));
        bench.run(end + PHY_END_US - before_end - bench.model.now());
        bench.model.set_access(ACCESS_NS);
        bench.driver.check();
        bench.model.set_access(0);
        bench.run(3_000);
        let seen = frames(&all(&mut bench));
        assert_eq!(seen, [data(MINE, 1, 10)], "{before_end} µs before its end");
        assert_eq!(
            bench.model.sent().len(),
            1,
            "{before_end} µs before its end"
        );
        assert_eq!(bench.driver.counters().restarts, 0);
    }
}

/// A frame's end, or an assessment's, between any two lines of a change of channel.
#[test]
fn a_change_of_channel_leaves_no_event_of_the_old_one() {
    for before_end in 0..40 {
        let mut bench = bench();
        let end = hear(&bench, &data(MINE, 1, 10));
        bench.run(end + PHY_END_US - before_end - bench.model.now());
        change_slowly(&mut bench);
        for seen in all(&mut bench) {
            let Seen::Frame(_, meta) = seen else { continue };
            assert_eq!(meta.channel, 26, "{before_end} µs before its end");
        }
        is_heard_on_11(&mut bench);

        let mut bench = super::bench();
        bench.driver.perform(Action::AssessChannel, &[]);
        bench.run(ASSESSED_US - before_end);
        change_slowly(&mut bench);
        all(&mut bench);
        // What is left of the first assessment does not answer the second.
        bench.driver.perform(Action::AssessChannel, &[]);
        assert_eq!(all(&mut bench), [], "{before_end} µs before its end");
        bench.run(1_000);
        assert_eq!(all(&mut bench), [Seen::Assessed(true)]);
        is_heard_on_11(&mut bench);
    }
}

/// Changes to channel 11 with slow registers, and with no interrupt meanwhile.
fn change_slowly(bench: &mut Bench) {
    bench.model.set_access(ACCESS_NS);
    bench
        .driver
        .perform(Action::ChangeChannel { channel: 11 }, &[]);
    bench.model.set_access(0);
    // An ACK that is under way ends first.
    bench.run(1_000);
}

fn is_heard_on_11(bench: &mut Bench) {
    let before = bench.model.sent().len();
    let mut frame = OnAir::good(bench.model.now(), &data(MINE, 2, 0));
    frame.channel = 11;
    bench.model.put(frame);
    bench.run(3_000);
    let sent = bench.model.sent();
    assert_eq!(sent.len(), before + 1);
    assert_eq!(sent[before].channel, 11);
}

/// An assessment's end between any two lines of the next one.
#[test]
fn an_assessment_is_not_answered_by_the_one_before() {
    for before_end in 0..40 {
        let mut bench = bench();
        bench.run(1_000);
        // Its end is heard by the first assessment alone.
        let mut frame = OnAir::good(bench.model.now(), &[0; 2]);
        frame.start = bench.model.now() + 60 - (frame.end() - frame.start);
        bench.model.put(frame);
        bench.driver.perform(Action::AssessChannel, &[]);
        bench.run(ASSESSED_US - before_end);
        bench.model.set_access(ACCESS_NS);
        bench.driver.perform(Action::AssessChannel, &[]);
        bench.model.set_access(0);
        bench.run(1_000);
        assert_eq!(all(&mut bench), [Seen::Assessed(true)], "{before_end} µs");
    }
}

/// The model counts a DISABLE on the way down as a fault.
#[test]
fn a_radio_on_its_way_down_is_not_sent_down_again() {
    let asked = [
        Action::AssessChannel,
        Action::Fire,
        Action::Listen,
        Action::Sleep,
        Action::ChangeChannel { channel: 26 },
    ];
    for (first, then) in asked.iter().flat_map(|a| asked.map(|b| (*a, b))) {
        for after_end in 0..70 {
            let mut bench = bench();
            bench.driver.perform(Action::Preload { len: 30 }, &[9; 30]);
            bench.driver.perform(Action::Fire, &[]);
            bench.run(192 + (6 + 32) * 32 + after_end);
            bench.driver.perform(first, &[]);
            bench.driver.perform(then, &[]);
            bench.run(3_000);
            bench.driver.perform(Action::Listen, &[]);
            bench.run(100);
            hear(&bench, &data(MINE, 1, 10));
            bench.run(3_000);
            let seen = frames(&all(&mut bench));
            assert_eq!(seen.len(), 1, "{first:?}, {then:?}, {after_end} µs");
        }
    }
}

/// From a frame's last bit to the event, with a microsecond for good measure.
const PHY_END_US: u64 = 23;

/// From an assessment's start to its end, while the radio listens: down, up, 8 symbols.
const ASSESSED_US: u64 = 1 + 40 + 128;
