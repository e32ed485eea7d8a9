//! A parent that was given up and is heard again; and neighbours behind a radio that does not know
//! what became of frames.

use std::vec::Vec;

use super::lab::{iid, link_local};
use super::messages::{Bench, says};
use crate::rpl::iid::Iid;
use crate::rpl::{ControlMessage, Destination, FrameReport, RplRole};
use crate::time::{Duration, Instant};

const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

const UNKNOWN: FrameReport = FrameReport {
    attempts: 1,
    unsent: 0,
    acknowledged: None,
};

/// The frames of RPL to neighbour 0, and when.
struct Watched {
    bench: Bench,
    tried: Vec<Instant>,
}

impl Watched {
    /// A router that has lost its only parent, 0, and has told its children.
    fn bereft() -> Self {
        let mut bench = Bench::joined(RplRole::Router);
        while bench.rpl.parent().is_some() {
            bench
                .rpl
                .on_sent(iid(0), FrameReport::of(8, false), bench.now);
            bench.poll();
        }
        bench.run(s(2));
        bench.sent.clear();
        Self {
            bench,
            tried: Vec::new(),
        }
    }

    /// A frame of 0 comes each `every`, for `span`; of the frames to it those pass that `passes`
    /// says, by their number.
    fn hears(&mut self, every: Duration, span: Duration, mut passes: impl FnMut(usize) -> bool) {
        let until = self.bench.now + span;
        while self.bench.now < until {
            self.bench.rpl.on_heard(iid(0), self.bench.now);
            let next = self.bench.now + every;
            while self.bench.now < next {
                self.bench.poll();
                for (to, _) in core::mem::take(&mut self.bench.sent) {
                    if to == Destination::Neighbour(iid(0)) {
                        let passed = passes(self.tried.len());
                        self.tried.push(self.bench.now);
                        let report = FrameReport::of(if passed { 1 } else { 8 }, passed);
                        self.bench.rpl.on_sent(iid(0), report, self.bench.now);
                    }
                }
                self.bench.run(ms(10));
            }
        }
    }
}

#[test]
fn a_parent_that_is_heard_again_is_tried_at_once_and_is_the_parent_again() {
    let mut mote = Watched::bereft();
    assert_eq!(mote.bench.rpl.parent(), None);
    let back = mote.bench.now;
    mote.hears(ms(500), ms(500), |_| true);
    assert_eq!(mote.bench.rpl.parent(), Some(iid(0)));
    let first = mote.tried[0].since(back);
    assert!((ms(40)..=ms(100)).contains(&first), "{first:?}");
    // A DIO is a frame, too.
    let mut mote = Watched::bereft();
    mote.bench.dio(&says(0, 128)).unwrap();
    mote.hears(ms(500), ms(500), |_| true);
    assert_eq!(mote.bench.rpl.parent(), Some(iid(0)));
}

/// While nothing is heard nothing is tried, but once a minute.
#[test]
fn a_parent_that_is_not_heard_again_is_left_alone() {
    let mut mote = Watched::bereft();
    mote.bench.run(s(50));
    let to_it = |(to, _): &&(Destination, ControlMessage)| *to == Destination::Neighbour(iid(0));
    assert_eq!(mote.bench.sent.iter().filter(to_it).count(), 0);
}

/// A link that passes frames one way only, or a stranger that sends in the parent's name.
#[test]
fn a_parent_that_is_heard_and_takes_nothing_is_tried_ever_more_seldom() {
    const SPAN_S: usize = 600;
    for every in [50, 400, 1_000, 3_000, 8_000, 9_000, 20_000] {
        let mut mote = Watched::bereft();
        mote.hears(ms(every), s(SPAN_S as u64), |_| false);
        let most = 4 + SPAN_S / 8;
        let tried = mote.tried.len();
        assert!((5..=most).contains(&tried), "each {every} ms: {tried}");
        assert_eq!(mote.bench.rpl.parent(), None);
    }
    // The first ones follow each other as the wait doubles.
    let mut mote = Watched::bereft();
    mote.hears(ms(50), s(60), |_| false);
    let waits: Vec<_> = mote
        .tried
        .windows(2)
        .map(|pair| pair[1].since(pair[0]).as_micros() / 1_000_000)
        .collect();
    assert!(waits[0] < 3 && waits[1] >= 1 && waits[2] >= 3, "{waits:?}");
    assert!(waits[3..].iter().all(|wait| *wait >= 7), "{waits:?}");
}

/// It is the parent again for a moment, each time: no more often than its frames would be tried.
#[test]
fn a_parent_that_takes_one_frame_of_many_makes_no_mote_change_each_second() {
    let mut mote = Watched::bereft();
    let mut changes = 0;
    let until = mote.bench.now + s(120);
    while mote.bench.now < until {
        let had = mote.bench.rpl.parent();
        mote.hears(ms(100), ms(100), |_| true);
        let has = mote.bench.rpl.parent();
        changes += usize::from(had != has);
        // No frame after the trial passes.
        while mote.bench.rpl.parent().is_some() {
            mote.bench
                .rpl
                .on_sent(iid(0), FrameReport::of(8, false), mote.bench.now);
            mote.bench.poll();
        }
    }
    assert!((4..=2 + 120 / 7).contains(&changes), "{changes}");
}

/// What never acknowledged a frame has no claim to be tried at once.
#[test]
fn a_stranger_that_is_heard_again_waits() {
    let mut bench = Bench::new(RplRole::Router);
    bench.dio(&says(1, 300)).unwrap();
    for _ in 0..12 {
        bench
            .rpl
            .on_sent(iid(1), FrameReport::of(8, false), bench.now);
    }
    bench.run(s(2));
    bench.sent.clear();
    bench.rpl.on_heard(iid(1), bench.now);
    bench.run(s(4));
    let is_probe = |(to, _): &(Destination, ControlMessage)| *to == Destination::Neighbour(iid(1));
    assert!(!bench.sent.iter().any(is_probe));
}

/// A probe that never went out measures no link; the air is full, so the next one waits longer.
#[test]
fn a_probe_that_found_the_channel_busy_shows_only_that_the_air_is_full() {
    let unsent = |acknowledged| FrameReport {
        attempts: u8::from(acknowledged),
        unsent: 8 - u8::from(acknowledged),
        acknowledged: Some(acknowledged),
    };
    for acknowledged in [false, true] {
        let mut bench = Bench::new(RplRole::Router);
        bench.dio(&says(1, 300)).unwrap();
        bench.run(s(1));
        assert_eq!(bench.rpl.probed, Some(Iid::of(&iid(1))));
        bench.rpl.on_sent(iid(1), unsent(acknowledged), bench.now);
        bench.poll();
        let candidate = bench.rpl.candidates().next().unwrap();
        let etx = if acknowledged { 192 } else { 256 };
        assert_eq!((candidate.etx(), candidate.unanswered()), (etx, 0));
        assert_eq!(candidate.is_proven(), acknowledged);
        assert_eq!(bench.rpl.probe_doublings, 1);
    }
}

/// Reports each frame to a neighbour as of unknown outcome; 0 answers each question while `answers`.
fn blindly(bench: &mut Bench, span: Duration, answers: bool) -> usize {
    let until = bench.now + span;
    let mut questions = 0;
    while bench.now < until {
        for (to, message) in core::mem::take(&mut bench.sent) {
            let Destination::Neighbour(to) = to else {
                continue;
            };
            bench.rpl.on_sent(to, UNKNOWN, bench.now);
            if message == ControlMessage::Dis && to == iid(0) {
                questions += 1;
                if answers {
                    let answer = says(0, 128).bytes();
                    bench.message(link_local(0), false, &answer).unwrap();
                }
            }
        }
        bench.run(ms(10));
    }
    questions
}

#[test]
fn over_a_radio_that_knows_nothing_of_frames_answers_show_who_is_there() {
    let mut bench = Bench::new(RplRole::Router);
    bench.dio(&says(0, 128)).unwrap();
    let asked = blindly(&mut bench, s(2), true);
    assert_eq!((bench.rpl.parent(), asked), (Some(iid(0)), 1));
    // Frames measure nothing, whatever becomes of them; and each 45 s or so the parent is asked.
    for _ in 0..1_000 {
        bench.rpl.on_sent(iid(0), UNKNOWN, bench.now);
    }
    let asked = blindly(&mut bench, s(600), true);
    assert!((8..=20).contains(&asked), "{asked}");
    assert_eq!(bench.rpl.parent(), Some(iid(0)));
    let candidate = bench.rpl.candidates().next().unwrap();
    assert!(candidate.etx() < 192);
    // It is gone when it has left some questions without an answer, and back with an answer.
    blindly(&mut bench, s(75), false);
    assert_eq!(bench.rpl.parent(), None);
    bench.rpl.on_heard(iid(0), bench.now);
    blindly(&mut bench, s(2), true);
    assert_eq!(bench.rpl.parent(), Some(iid(0)));
}

#[test]
fn a_neighbour_that_never_answers_is_no_parent() {
    let mut bench = Bench::new(RplRole::Router);
    bench.dio(&says(0, 128)).unwrap();
    let asked = blindly(&mut bench, s(60), false);
    assert!((3..=12).contains(&asked), "{asked}");
    assert_eq!(bench.rpl.parent(), None);
}
