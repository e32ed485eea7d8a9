//! Whatever is on the air, whatever is asked and whenever an interrupt is lost: the receiver runs on.

mod model;

use model::{Bench, OnAir};
use motet::mac::{Action, Event};
use motet::time::Instant;
use motet::wire::LinkAddr;
use motet::wire::ieee802154::Header;
use motet_nrf::Filter;
use proptest::collection::vec;
use proptest::prelude::*;

const ME: Filter = Filter {
    pan: 0x4d54,
    extended: [2, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 1],
    short: None,
};

#[derive(Clone, Debug)]
enum Turn {
    /// A frame with any length before its bytes.
    Frame {
        phr: u8,
        bytes: Vec<u8>,
        is_crc_good: bool,
    },
    /// A frame for this node.
    Mine(u8),
    Act(u8, u8),
    Wait(u16),
    Lose,
    Latency(u8),
    Poll,
    Check,
}

fn turn() -> impl Strategy<Value = Turn> {
    prop_oneof![
        (any::<u8>(), vec(any::<u8>(), 0..140), any::<bool>()).prop_map(
            |(phr, bytes, is_crc_good)| Turn::Frame {
                phr,
                bytes,
                is_crc_good
            }
        ),
        any::<u8>().prop_map(Turn::Mine),
        (0..7u8, any::<u8>()).prop_map(|(kind, value)| Turn::Act(kind, value)),
        (0..6_000u16).prop_map(Turn::Wait),
        Just(Turn::Lose),
        any::<u8>().prop_map(Turn::Latency),
        Just(Turn::Poll),
        Just(Turn::Check),
    ]
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
            start: soon,
            phr,
            psdu: bytes,
            channel: 26,
            is_crc_good,
        }),
        Turn::Mine(sequence) => bench.model.put(OnAir::good(soon, &mine(sequence))),
        Turn::Act(kind, value) => bench.driver.perform(act(kind, value), &[value; 200]),
        Turn::Wait(span) => bench.run(span.into()),
        Turn::Lose => bench.lost = 1,
        Turn::Latency(latency) => bench.latency = latency.into(),
        Turn::Poll => {
            drain(bench, &[]);
        }
        Turn::Check => {
            bench.mend();
            bench.driver.check();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn the_receiver_runs_on(turns in vec(turn(), 0..60), offset in any::<u32>()) {
        let mut bench = Bench::new(offset);
        bench.driver.set_filter(ME);
        let mut channel = 26;
        for turn in turns {
            if let Turn::Act(6.., value) = turn && (11..=26).contains(&(value % 40)) {
                channel = value % 40;
            }
            take(&mut bench, turn);
        }
        // The processor is itself again.
        bench.latency = 2;
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
        prop_assert!(drain(&mut bench, &mine(77)));
        let sent = bench.model.sent();
        prop_assert_eq!(sent.len(), before + 1);
        prop_assert_eq!(sent[before].start, end + 192);
        prop_assert_eq!(bench.model.faults(), [""; 0]);
    }
}
