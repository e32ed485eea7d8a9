//! The adaptor on a radio that tests play.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use embassy_time::{Duration, MockDriver};
use motet::limits::PSDU_LEN_MAX;
use motet::time::Instant;
use motet_embassy::mac::AttemptOutcome;
use motet_embassy::offload::{Chip, Settings};

use crate::chip::{Configuration, Esp, Hardware};
use crate::raw::Raw;
use crate::reports::{Reports, Transmission};

/// One clock for all tests of the process.
static TURN: Mutex<()> = Mutex::new(());

/// What becomes of a transmission.
#[derive(Clone, Copy)]
enum Fate {
    /// The assessment finds the channel busy, so many µs after the order.
    Busy {
        after_us: u64,
    },
    Sent,
    Acked {
        control: u8,
    },
    /// The radio waits for an ACK, and reports after that.
    Unanswered,
    /// Its report is lost, or comes after 200 ms.
    Silent,
}

struct Played {
    reports: &'static Reports,
    fates: VecDeque<Fate>,
    /// What the interrupt reports, and when.
    due: Vec<(u64, Transmission)>,
    ack: Option<Raw>,
    queue: VecDeque<Raw>,
    /// When each transmission was ordered.
    ordered: Vec<u64>,
    psdu: Vec<u8>,
    listens: u32,
    configuration: Option<Configuration>,
    random: u32,
}

impl Hardware for &RefCell<Played> {
    fn configure(&mut self, configuration: &Configuration) {
        self.borrow_mut().configuration = Some(*configuration);
    }

    fn listen(&mut self) {
        let mut played = self.borrow_mut();
        played.listens += 1;
        // As `esp-radio` does it: what is under way has failed.
        if !played.due.is_empty() {
            played.due.clear();
            played.reports.on_transmission(Transmission::Failed, now());
        }
    }

    fn transmit(&mut self, psdu: &[u8]) {
        let mut played = self.borrow_mut();
        let start = now().as_micros();
        played.ordered.push(start);
        played.psdu = psdu.to_vec();
        // Ramp-up and assessment, then preamble, delimiter, PHR and frame.
        let end = start + 200 + (6 + psdu.len() as u64) * 32;
        let (at, how) = match played.fates.pop_front().expect("no transmission is due") {
            Fate::Busy { after_us } => (start + after_us, Transmission::Failed),
            Fate::Sent => (end, Transmission::Done),
            Fate::Acked { control } => {
                played.ack = Some(raw(&[control, 0, psdu[2]], -70, 200));
                (end + 544, Transmission::Done)
            }
            Fate::Unanswered => (end + 900, Transmission::Failed),
            Fate::Silent => (end + 200_000, Transmission::Failed),
        };
        played.due.push((at, how));
    }

    fn take(&mut self) -> Option<Raw> {
        self.borrow_mut().queue.pop_front()
    }

    fn ack(&self) -> Option<Raw> {
        self.borrow().ack
    }

    fn random(&mut self) -> u32 {
        self.borrow().random
    }
}

struct Bench {
    _turn: MutexGuard<'static, ()>,
    played: RefCell<Played>,
}

impl Bench {
    fn new(fates: &[Fate]) -> Self {
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        MockDriver::get().reset();
        MockDriver::get().advance(Duration::from_secs(1));
        let played = RefCell::new(Played {
            reports: Box::leak(Box::new(Reports::new())),
            fates: fates.iter().copied().collect(),
            due: Vec::new(),
            ack: None,
            queue: VecDeque::new(),
            ordered: Vec::new(),
            psdu: Vec::new(),
            listens: 0,
            configuration: None,
            random: 0,
        });
        Self {
            _turn: turn,
            played,
        }
    }

    fn chip(&self) -> Esp<&RefCell<Played>> {
        let reports = self.played.borrow().reports;
        Esp::new(&self.played, reports)
    }

    fn reports(&self) -> &'static Reports {
        self.played.borrow().reports
    }

    /// Runs a future to its end, at most for two seconds.
    fn run<T>(&self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        for _ in 0..200_000 {
            let mut cx = Context::from_waker(Waker::noop());
            if let Poll::Ready(value) = future.as_mut().poll(&mut cx) {
                return value;
            }
            MockDriver::get().advance(Duration::from_micros(10));
            let now = now();
            let mut played = self.played.borrow_mut();
            let reports = played.reports;
            played.due.retain(|(at, how)| {
                let is_due = *at <= now.as_micros();
                if is_due {
                    reports.on_transmission(*how, now);
                }
                !is_due
            });
        }
        panic!("it waits for good");
    }

    fn transmit(&self, psdu: &[u8]) -> (AttemptOutcome, Instant) {
        self.run(self.chip().transmit(psdu))
    }
}

fn now() -> Instant {
    Instant::from_micros(embassy_time::Instant::now().as_micros())
}

fn raw(frame: &[u8], rssi_dbm: i8, lqi: u8) -> Raw {
    let mut data = [0; 129];
    data[0] = frame.len() as u8 + 2;
    data[1..][..frame.len()].copy_from_slice(frame);
    data[1 + frame.len()] = rssi_dbm as u8;
    data[2 + frame.len()] = lqi;
    Raw { data, channel: 26 }
}

/// A data frame of 40 bytes that asks for an ACK, and one that asks for none.
const ASKS: [u8; 40] = frame(0x61);
const ASKS_NOT: [u8; 40] = frame(0x41);

const fn frame(control: u8) -> [u8; 40] {
    let mut frame = [7; 40];
    frame[0] = control;
    frame[1] = 0x88;
    frame
}

/// Its time on the air, FCS included, µs.
const AIR_US: u64 = 48 * 32;

#[test]
fn an_acked_frame_has_the_time_of_its_own_end() {
    for (control, pending) in [(0x12, true), (0x02, false)] {
        let bench = Bench::new(&[Fate::Acked { control }]);
        let (outcome, at) = bench.transmit(&ASKS);
        assert_eq!(outcome, AttemptOutcome::Acked { pending });
        let played = bench.played.borrow();
        let end = played.ordered[0] + 200 + AIR_US;
        // The report is read up to 10 µs late here.
        assert!((end..end + 10).contains(&at.as_micros()));
        // With room for the FCS.
        assert_eq!(played.psdu[..40], ASKS);
        assert_eq!(played.psdu[40..], [0, 0]);
    }
}

#[test]
fn a_busy_channel_is_assessed_again_after_a_longer_backoff() {
    let busy = Fate::Busy { after_us: 250 };
    let bench = Bench::new(&[busy, busy, busy, Fate::Sent]);
    bench.played.borrow_mut().random = u32::MAX;
    let start = now().as_micros();
    let (outcome, _) = bench.transmit(&ASKS_NOT);
    assert_eq!(outcome, AttemptOutcome::Done);
    // 7, 15, 31 and 31 periods of 320 µs, and the answers of 250 µs before.
    let expected = [7, 22, 53, 84].map(|periods| periods * 320);
    for (index, (at, wait)) in bench
        .played
        .borrow()
        .ordered
        .iter()
        .zip(expected)
        .enumerate()
    {
        let wait = wait + index as u64 * 250;
        assert!((wait..wait + 100).contains(&(at - start)), "{at} {wait}");
    }
    assert_eq!(bench.played.borrow().ordered.len(), 4);
}

#[test]
fn a_channel_that_stays_busy_is_given_up_after_the_macs_backoffs() {
    let busy = Fate::Busy { after_us: 250 };
    let bench = Bench::new(&[busy; 3]);
    let mut chip = bench.chip();
    chip.set_up(&Settings {
        pan: 0x4d54,
        extended: [1, 2, 3, 4, 5, 6, 7, 8],
        short: None,
        be_min: 0,
        be_max: 5,
        csma_backoffs_max: 2,
    });
    assert_eq!(bench.run(chip.transmit(&ASKS)).0, AttemptOutcome::Busy);
    assert_eq!(bench.played.borrow().ordered.len(), 3);
    let configuration = bench.played.borrow().configuration;
    assert_eq!(
        configuration.map(|all| (all.pan, all.short)),
        Some((0x4d54, 0xfffe))
    );
}

#[test]
fn a_frame_without_an_ack_is_not_sent_again() {
    let bench = Bench::new(&[Fate::Unanswered]);
    assert_eq!(bench.transmit(&ASKS).0, AttemptOutcome::NoAck);
    assert_eq!(bench.played.borrow().ordered.len(), 1);
    assert_eq!(bench.played.borrow().listens, 0);
}

#[test]
fn a_radio_that_does_not_report_listens_again_within_milliseconds() {
    for (psdu, expected) in [
        (&ASKS, AttemptOutcome::NoAck),
        (&ASKS_NOT, AttemptOutcome::Failed),
    ] {
        let bench = Bench::new(&[Fate::Silent]);
        let start = now().as_micros();
        assert_eq!(bench.transmit(psdu).0, expected);
        assert_eq!(bench.played.borrow().listens, 1);
        let took = now().as_micros() - start;
        assert!(took < AIR_US + 8_000, "{took} µs");
    }
}

#[test]
fn a_report_of_the_attempt_before_is_none_of_this_one() {
    let bench = Bench::new(&[Fate::Acked { control: 2 }]);
    bench.reports().on_transmission(Transmission::Failed, now());
    let (outcome, _) = bench.transmit(&ASKS);
    assert_eq!(outcome, AttemptOutcome::Acked { pending: false });
}

#[test]
fn a_frame_that_waited_for_one_on_its_way_in_is_busy() {
    // The other frame ends 3,000 µs after the order, the assessment 250 µs later.
    let bench = Bench::new(&[Fate::Busy { after_us: 3_250 }, Fate::Sent]);
    let reports = bench.reports();
    let start = now();
    let both = async {
        let mut chip = bench.chip();
        let other = async {
            embassy_time::Timer::after(Duration::from_micros(3_000)).await;
            reports.on_frame(now());
        };
        embassy_futures::join::join(chip.transmit(&ASKS_NOT), other)
            .await
            .0
    };
    assert_eq!(bench.run(both).0, AttemptOutcome::Done);
    assert_eq!(bench.played.borrow().ordered.len(), 2);
    assert!(now().since(start).as_micros() < 6_000);
}

#[test]
fn a_frame_has_the_time_of_its_end_before_the_ack_that_answers_it() {
    let bench = Bench::new(&[]);
    let at = now();
    for frame in [&ASKS, &ASKS_NOT] {
        bench
            .played
            .borrow_mut()
            .queue
            .push_back(raw(frame, -88, 120));
        bench.reports().on_frame(at);
    }
    let mut chip = bench.chip();
    let mut psdu = [0; PSDU_LEN_MAX];
    let (len, meta) = bench.run(chip.receive(&mut psdu));
    assert_eq!(psdu[..len], ASKS);
    assert_eq!((meta.rssi_dbm, meta.lqi, meta.channel), (-88, 120, 26));
    assert_eq!(at.since(meta.at).as_micros(), 544);
    let (len, meta) = bench.run(chip.receive(&mut psdu));
    assert_eq!(psdu[..len], ASKS_NOT);
    assert_eq!(meta.at, at);
}

#[test]
fn a_frame_without_a_report_is_found_within_a_second() {
    let bench = Bench::new(&[]);
    bench
        .played
        .borrow_mut()
        .queue
        .push_back(raw(&ASKS_NOT, -88, 120));
    let start = now();
    let mut psdu = [0; PSDU_LEN_MAX];
    let (len, _) = bench.run(bench.chip().receive(&mut psdu));
    assert_eq!(psdu[..len], ASKS_NOT);
    assert_eq!(now().since(start).as_micros(), 1_000_000);
}

#[test]
fn frames_of_impossible_lengths_are_passed_over() {
    let bench = Bench::new(&[]);
    for phr in [0, 1, 2, 4, 128, 130] {
        let mut bad = raw(&ASKS, -88, 120);
        bad.data[0] = phr;
        bench.played.borrow_mut().queue.push_back(bad);
        bench.reports().on_frame(now());
    }
    let mut longest = raw(&[0x41; 125], -88, 120);
    assert_eq!(longest.data[0], 127);
    // The bit above the length is reserved.
    longest.data[0] = 0xff;
    bench.played.borrow_mut().queue.push_back(longest);
    bench.reports().on_frame(now());
    let mut psdu = [0; PSDU_LEN_MAX];
    let (len, meta) = bench.run(bench.chip().receive(&mut psdu));
    assert_eq!((len, meta.rssi_dbm, meta.lqi), (125, -88, 120));
}
