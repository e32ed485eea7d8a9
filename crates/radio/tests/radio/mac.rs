//! A radio as the radio of a MAC.

use std::time;

use motet::{
    mac::{Action, AttemptOutcome, Event},
    wire::LinkAddr,
};
use motet_radio::{MacRadio, Notice};
use motet_spinel::{
    Cause,
    frame::{Property, Status},
    raw::Flags,
};

use super::{Clock, clock, data, started};
use crate::dongle::Dongle;
use crate::fake::{End, Quirks};

/// What a radio has reported, in short.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Said {
    Frame(Vec<u8>, i8),
    Preloaded,
    Sent(AttemptOutcome),
    Ready,
    Restarted(Cause),
    Other,
}

struct Bench {
    _folder: tempfile::TempDir,
    dongle: Dongle,
    radio: MacRadio,
    clock: Clock,
    said: Vec<Said>,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let dongle = Dongle::new(&folder.path().join("dongle"), Quirks::default());
        let clock = clock();
        let radio = MacRadio::new(started(&dongle.url(), clock));
        Self {
            _folder: folder,
            dongle,
            radio,
            clock,
            said: Vec::new(),
        }
    }

    fn perform(&mut self, action: Action, bytes: &[u8]) {
        self.radio.perform(action, bytes, self.clock.now());
    }

    fn preload(&mut self, psdu: &[u8]) {
        self.perform(Action::Preload { len: psdu.len() }, psdu);
    }

    /// All that is reported until `last` is, which is taken for granted.
    fn until(&mut self, last: &Said) -> Vec<Said> {
        self.turn_until(|bench| bench.said.contains(last));
        std::mem::take(&mut self.said)
    }

    fn turn_until(&mut self, is_so: impl Fn(&Self) -> bool) {
        let clock = self.clock;
        for _ in 0..500 {
            let said = &mut self.said;
            let notice = self
                .radio
                .poll(clock.now(), |event| said.push(short(event)));
            match notice.unwrap() {
                Some(Notice::Ready(_)) => said.push(Said::Ready),
                Some(Notice::Restarted(cause)) => said.push(Said::Restarted(cause)),
                None => {
                    let patience = time::Duration::from_millis(20);
                    self.radio.wait(Some(patience), &[], clock.now()).unwrap();
                }
            }
            if is_so(self) {
                return;
            }
        }
        panic!("it never came; so far: {:?}", self.said);
    }
}

fn short(event: Event<'_>) -> Said {
    match event {
        Event::FrameReceived { psdu, meta } => Said::Frame(psdu.to_vec(), meta.rssi_dbm),
        Event::Preloaded => Said::Preloaded,
        Event::Sent { outcome, .. } => Said::Sent(outcome),
        _ => Said::Other,
    }
}

const ACKED: Said = Said::Sent(AttemptOutcome::Acked { pending: false });
const FAILED: Said = Said::Sent(AttemptOutcome::Failed);

#[test]
fn each_end_of_an_attempt_is_reported() {
    let mut bench = Bench::new();
    let mut can = bench.radio.capabilities();
    assert!(can.assesses && can.takes_acks && can.auto_ack && can.fcs_by_radio);
    let delay = std::mem::take(&mut can.stamp_delay_max);
    assert!((1_000..100_000).contains(&delay.as_micros()), "{delay:?}");
    let pending = AttemptOutcome::Acked { pending: true };
    for (end, outcome) in [
        (End::Acked { pending: true }, pending),
        (End::Acknowledged, pending),
        (End::Status(Status::NoAck), AttemptOutcome::NoAck),
        (End::Status(Status::ChannelBusy), AttemptOutcome::Busy),
        (End::Status(Status::NoMemory), AttemptOutcome::Failed),
    ] {
        bench.dongle.radio().ends.push_back(end);
        bench.preload(&data(1));
        assert_eq!(bench.until(&Said::Preloaded), [Said::Preloaded]);
        bench.perform(Action::Fire, &[]);
        let sent = Said::Sent(outcome);
        assert_eq!(bench.until(&sent), [sent]);
    }
    // Without a request for an ACK; and a frame may be fired again.
    let mut quiet = data(2);
    quiet[0] &= !0x20;
    bench.preload(&quiet);
    for _ in 0..2 {
        bench.perform(Action::Fire, &[]);
        let sent = Said::Sent(AttemptOutcome::Done);
        assert_eq!(bench.until(&sent).last(), Some(&sent));
    }
    assert_eq!(bench.dongle.radio().air[5..], [quiet.clone(), quiet]);
}

#[test]
fn frames_come_without_their_fcs() {
    let mut bench = Bench::new();
    let now_us = bench.dongle.now_us();
    bench
        .dongle
        .radio()
        .hears(&data(7), Flags::default(), now_us);
    let frame = Said::Frame(data(7), -20);
    assert_eq!(bench.until(&frame), [frame]);
}

#[test]
fn an_attempt_that_was_given_up_is_not_reported() {
    let mut bench = Bench::new();
    bench.dongle.radio().ends.push_back(End::Unanswered);
    bench.preload(&data(1));
    bench.perform(Action::Fire, &[]);
    // A line that is slow: the MAC tries another frame before the answer.
    bench.preload(&data(2));
    bench.perform(Action::Fire, &[]);
    let expected = [Said::Preloaded, Said::Preloaded, ACKED];
    assert_eq!(bench.until(&ACKED), expected);
    assert_eq!(bench.dongle.radio().air, [data(1), data(2)]);
    assert_eq!(bench.radio.radio().session().counters().failed, 1);
}

#[test]
fn an_attempt_waits_for_a_radio_that_is_gone() {
    let mut bench = Bench::new();
    bench.dongle.radio().ends.push_back(End::Unanswered);
    bench.preload(&data(1));
    bench.perform(Action::Fire, &[]);
    assert_eq!(bench.until(&Said::Preloaded), [Said::Preloaded]);
    bench.dongle.unplug();
    let gone = Said::Restarted(Cause::Line);
    // What the radio had is lost with it.
    assert_eq!(bench.until(&gone), [FAILED, gone]);
    bench.perform(Action::Fire, &[]);
    // The MAC gives an attempt up and makes another one.
    bench.preload(&data(2));
    bench.perform(Action::Fire, &[]);
    assert_eq!(bench.until(&Said::Preloaded), [Said::Preloaded]);
    // What was asked of it meanwhile is there when it is.
    bench.perform(Action::ChangeChannel { channel: 20 }, &[]);
    let of = Some(LinkAddr::Short(7));
    bench.perform(Action::SetPending { of, pending: true }, &[]);
    bench.dongle.plug();
    assert_eq!(bench.until(&ACKED), [Said::Ready, ACKED]);
    assert_eq!(bench.dongle.radio().air.last(), Some(&data(2)));
    assert!(bench.dongle.radio().has(Property::PhyChan, &[20]));
    bench.turn_until(|bench| bench.dongle.radio().short == [7]);
}

#[test]
fn children_are_known_to_the_radio() {
    let mut bench = Bench::new();
    let extended = LinkAddr::Extended([1, 2, 3, 4, 5, 6, 7, 8]);
    for (of, pending) in [
        (LinkAddr::Short(5), true),
        (extended, true),
        (LinkAddr::Short(5), false),
    ] {
        let of = Some(of);
        bench.perform(Action::SetPending { of, pending }, &[]);
    }
    bench.turn_until(|bench| {
        let radio = bench.dongle.radio();
        radio.short.is_empty() && radio.extended == [[1, 2, 3, 4, 5, 6, 7, 8]]
    });
}

#[test]
fn a_receiver_that_is_off_is_on_for_each_frame() {
    let mut bench = Bench::new();
    let is_on = |bench: &Bench| bench.dongle.radio().has(Property::RawStreamEnabled, &[1]);
    bench.perform(Action::Sleep, &[]);
    bench.turn_until(|bench| !is_on(bench));
    bench.preload(&data(1));
    bench.perform(Action::Fire, &[]);
    assert_eq!(bench.until(&ACKED), [Said::Preloaded, ACKED]);
    bench.turn_until(|bench| !is_on(bench));
    // Off while a frame is sent: after it.
    bench.perform(Action::Listen, &[]);
    bench.perform(Action::Fire, &[]);
    bench.perform(Action::Sleep, &[]);
    assert_eq!(bench.until(&ACKED), [ACKED]);
    bench.turn_until(|bench| !is_on(bench));
    bench.perform(Action::Listen, &[]);
    bench.turn_until(is_on);
}
