//! The adaptor on a driver that tests play.

use std::collections::VecDeque;
use std::future::{Future, pending};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use embassy_time::{Duration, MockDriver};
use motet::limits::PSDU_LEN_MAX;
use motet::wire::LinkAddr;
use motet_embassy::mac::AttemptOutcome;
use motet_embassy::offload::{Chip, Settings};

use crate::chip::{Failure, Hardware, Meta, Nordic};

/// One clock for all tests of the process.
static TURN: Mutex<()> = Mutex::new(());

/// The clock, at `us`.
fn clock_at(us: u64) -> (MutexGuard<'static, ()>, &'static MockDriver) {
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let clock = MockDriver::get();
    clock.reset();
    clock.advance(Duration::from_micros(us));
    (turn, clock)
}

/// Runs a future to its end, at most for a second.
fn run<T>(clock: &MockDriver, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    for _ in 0..10_000 {
        let mut cx = Context::from_waker(Waker::noop());
        if let Poll::Ready(value) = future.as_mut().poll(&mut cx) {
            return value;
        }
        clock.advance(Duration::from_micros(100));
    }
    panic!("it waits for good");
}

#[derive(Default)]
struct Played {
    /// What the driver answers to each transmission; with the first byte of the ACK.
    answers: VecDeque<Result<Option<(u8, Meta)>, Failure>>,
    frames: VecDeque<Option<(Vec<u8>, Meta)>>,
    sent: Vec<Vec<u8>>,
    log: Vec<String>,
}

impl Hardware for &mut Played {
    fn set_addresses(&mut self, pan: u16, extended: [u8; 8], short: Option<u16>) {
        self.log
            .push(format!("{pan:04x} {extended:02x?} {short:?}"));
    }

    fn set_channel(&mut self, channel: u8) {
        self.log.push(format!("channel {channel}"));
    }

    fn set_listening(&mut self, is_listening: bool) -> bool {
        self.log.push(format!("listening {is_listening}"));
        true
    }

    fn set_pending(&mut self, of: LinkAddr, is_pending: bool) -> bool {
        self.log.push(format!("{of:?} {is_pending}"));
        true
    }

    async fn receive(&mut self, psdu: &mut [u8]) -> Option<Meta> {
        let Some(next) = self.frames.pop_front() else {
            return pending().await;
        };
        let (frame, meta) = next?;
        psdu[..frame.len()].copy_from_slice(&frame);
        Some(meta)
    }

    async fn transmit(&mut self, psdu: &[u8], ack: &mut [u8]) -> Result<Option<Meta>, Failure> {
        self.sent.push(psdu.to_vec());
        let answer = self.answers.pop_front().expect("no transmission is due");
        Ok(answer?.map(|(control, meta)| {
            ack[0] = control;
            meta
        }))
    }
}

fn meta(len: usize, stamp_us: Option<u64>) -> Meta {
    Meta {
        len,
        rssi_dbm: -61,
        lqi: 190,
        stamp_us,
    }
}

#[test]
fn a_frame_comes_with_the_channel_and_the_time_of_its_last_symbol() {
    let (_turn, clock) = clock_at(10_000);
    let mut played = Played::default();
    // The first one is read without delay, the second one 400 µs late; between them the receiver
    // is refused once.
    played
        .frames
        .push_back(Some((vec![1; 20], meta(20, Some(3_000)))));
    played.frames.push_back(None);
    played
        .frames
        .push_back(Some((vec![2; 125], meta(125, Some(3_600)))));
    let mut chip = Nordic::new(&mut played);
    chip.set_channel(15);
    let mut psdu = [0; PSDU_LEN_MAX];
    let (len, heard) = run(clock, chip.receive(&mut psdu));
    assert_eq!((len, heard.at.as_micros(), heard.channel), (20, 10_000, 15));
    assert_eq!((heard.rssi_dbm, heard.lqi), (-61, 190));
    let (len, heard) = run(clock, chip.receive(&mut psdu));
    assert_eq!((len, heard.at.as_micros()), (125, 10_600));
    assert_eq!(psdu[..125], [2; 125]);
    assert_eq!(clock.now_us(), 11_000);
}

#[test]
fn an_acked_frame_ended_a_turnaround_and_an_ack_before() {
    let (_turn, clock) = clock_at(50_000);
    let mut played = Played::default();
    played
        .answers
        .push_back(Ok(Some((0x12, meta(3, Some(7_000))))));
    played
        .answers
        .push_back(Ok(Some((0x02, meta(3, Some(7_000))))));
    let mut chip = Nordic::new(&mut played);
    let (outcome, at) = run(clock, chip.transmit(&[0x61, 0x88, 9, 1, 2]));
    assert_eq!(outcome, AttemptOutcome::Acked { pending: true });
    assert_eq!(at.as_micros(), 50_000 - 544);
    let (outcome, _) = run(clock, chip.transmit(&[0x61, 0x88, 10, 1, 2]));
    assert_eq!(outcome, AttemptOutcome::Acked { pending: false });
    assert_eq!(played.sent[0], [0x61, 0x88, 9, 1, 2]);
}

#[test]
fn what_was_not_sent_is_busy_and_what_was_not_answered_is_no_ack() {
    let (_turn, clock) = clock_at(0);
    let expected = [
        (Ok(None), AttemptOutcome::Done),
        (Err(Failure::BusyChannel), AttemptOutcome::Busy),
        (Err(Failure::NotScheduled), AttemptOutcome::Busy),
        (Err(Failure::TimeslotDenied), AttemptOutcome::Busy),
        (Err(Failure::NoAck), AttemptOutcome::NoAck),
        (Err(Failure::InvalidAck), AttemptOutcome::NoAck),
        (Err(Failure::TimeslotEnded), AttemptOutcome::Failed),
        (Err(Failure::Other), AttemptOutcome::Failed),
    ];
    for (answer, outcome) in expected {
        let mut played = Played::default();
        played.answers.push_back(answer);
        let mut chip = Nordic::new(&mut played);
        let ended = run(clock, chip.transmit(&[0x61, 0x88, 9]));
        assert_eq!(ended.0, outcome, "{answer:?}");
        // Retries are the MAC's.
        assert_eq!(played.sent.len(), 1);
    }
}

#[test]
fn orders_reach_the_driver_and_a_receiver_that_is_off_is_so_after_a_frame() {
    let (_turn, clock) = clock_at(0);
    let mut played = Played::default();
    played.answers.push_back(Ok(None));
    let mut chip = Nordic::new(&mut played);
    chip.set_up(&Settings {
        pan: 0x4d54,
        extended: [1, 2, 3, 4, 5, 6, 7, 8],
        short: None,
        be_min: 3,
        be_max: 5,
        csma_backoffs_max: 4,
    });
    chip.set_channel(26);
    // The driver would panic.
    chip.set_channel(27);
    chip.set_pending(LinkAddr::Short(7), true);
    chip.set_listening(false);
    run(clock, chip.transmit(&[0x41, 0x88, 9]));
    let expected = [
        "4d54 [01, 02, 03, 04, 05, 06, 07, 08] None",
        "channel 26",
        "Short(7) true",
        "listening false",
        "listening false",
    ];
    assert_eq!(played.log, expected);
}

trait NowUs {
    fn now_us(&self) -> u64;
}

impl NowUs for MockDriver {
    fn now_us(&self) -> u64 {
        embassy_time::Instant::now().as_micros()
    }
}
