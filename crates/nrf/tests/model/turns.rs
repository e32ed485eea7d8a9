//! What may happen to a radio, as steps, and that its receiver runs on after any of them: for the
//! property test beside this, and for the fuzzer.

use motet::mac::{Action, Event};
use motet::time::Instant;
use motet::wire::LinkAddr;
use motet::wire::ieee802154::Header;
use motet_nrf::Filter;

use super::{Bench, OnAir};

/// One step.
#[derive(Clone, Debug)]
pub(crate) enum Turn {
    /// A frame with any length before its bytes.
    Frame {
        phr: u8,
        bytes: Vec<u8>,
        is_crc_good: bool,
    },
    /// A frame for this node.
    Mine(u8),
    /// What the node asks for: [`act`] says what the two mean.
    Act(u8, u8),
    /// Lets µs pass.
    Wait(u16),
    /// The next interrupt is lost.
    Lose,
    /// From an event to the interrupt's first line, µs.
    Latency(u8),
    /// How long an access to a register takes, in units of 10 ns.
    Access(u8),
    Poll,
    Check,
}

/// Takes the steps, and then asks for a frame: it is received and acknowledged in time.
///
/// # Panics
/// The receiver does not run on.
pub(crate) fn runs_on(mut bench: Bench, turns: impl IntoIterator<Item = Turn>) {
    bench.driver.set_filter(ME);
    let mut channel = 26;
    for turn in turns {
        if let Turn::Act(6.., value) = turn
            && (11..=26).contains(&(value % 40))
        {
            channel = value % 40;
        }
        take(&mut bench, turn);
    }
    // The processor is itself again.
    bench.latency = 2;
    bench.model.set_access(0);
    for _ in 0..3 {
        bench.run(10_000);
        bench.mend();
        bench.driver.check();
    }
    bench.driver.perform(Action::Listen, &[]);
    bench.run(10_000);
    drain(&mut bench, &[]);
    let before = bench.model.sent().len();
    let mut frame = OnAir::good(bench.model.now() + 50, &mine(77));
    frame.channel = channel;
    let end = frame.end();
    bench.model.put(frame);
    bench.run(5_000);
    assert!(drain(&mut bench, &mine(77)), "the frame is not received");
    let sent = bench.model.sent();
    assert_eq!(sent.len(), before + 1, "one ACK");
    let turnaround = sent[before].start - end;
    assert!((192..=193).contains(&turnaround), "{turnaround} µs");
}

fn mine(sequence: u8) -> Vec<u8> {
    let to = LinkAddr::Extended(ME.extended);
    let mut header = Header::data(ME.pan, to, LinkAddr::Short(3), sequence);
    header.ack_request = true;
    let mut psdu = [0; 127];
    let len = header.emit_frame(&[sequence; 20], &mut psdu).expect("fits");
    psdu[..len - 2].to_vec()
}

fn act(kind: u8, value: u8) -> Action {
    match kind {
        0 => Action::Preload { len: value.into() },
        1 => Action::AssessChannel,
        2 => Action::Fire,
        3 => Action::Transmit {
            len: value.into(),
            at: Instant::from_micros(value.into()),
        },
        4 => Action::Listen,
        5 => Action::Sleep,
        // Some of them are no channels.
        _ => Action::ChangeChannel {
            channel: value % 40,
        },
    }
}

/// Takes every report; returns whether one was this frame.
fn drain(bench: &mut Bench, wanted: &[u8]) -> bool {
    let mut psdu = [0; 127];
    let mut is_there = false;
    let now = Instant::from_micros(bench.model.now());
    while let Some(event) = bench.driver.poll(now, &mut psdu) {
        is_there |= matches!(event, Event::FrameReceived { psdu, .. } if psdu == wanted);
    }
    is_there
}

fn take(bench: &mut Bench, turn: Turn) {
    let soon = bench.model.now() + 1;
    match turn {
        Turn::Frame {
            phr,
            bytes,
            is_crc_good,
        } => bench.model.put(OnAir {
            phr,
            is_crc_good,
            ..OnAir::of(soon, bytes)
        }),
        Turn::Mine(sequence) => bench.model.put(OnAir::good(soon, &mine(sequence))),
        Turn::Act(kind, value) => bench.driver.perform(act(kind, value), &[value; 200]),
        Turn::Wait(span) => bench.run(span.into()),
        Turn::Lose => bench.lost = 1,
        Turn::Latency(latency) => bench.latency = latency.into(),
        Turn::Access(span) => bench.model.set_access(10 * u64::from(span)),
        Turn::Poll => {
            drain(bench, &[]);
        }
        Turn::Check => {
            bench.mend();
            bench.driver.check();
        }
    }
}

const ME: Filter = Filter {
    pan: 0x4d54,
    extended: [2, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 1],
    short: None,
};
