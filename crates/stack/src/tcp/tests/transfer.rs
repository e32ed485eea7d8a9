//! Two engines over links of every temper: what is sent arrives, once, in order.

use super::super::{Config, Error, Handle, ListenerHandle, RecvError, SendError, State};
use super::*;

/// The result of a simulated transfer.
pub(in crate::tcp) struct Outcome {
    pub(in crate::tcp) seconds: f64,
    pub(in crate::tcp) net: Net,
    pub(in crate::tcp) client: Handle,
}

/// Client to server: `len` bytes with these settings over this link, closed by the client.
pub(in crate::tcp) fn transfer(config: Config, link: Link, len: usize, seed: u64) -> Outcome {
    transfer_in(Net::new(link, seed), config, len, (4096, 4096))
}

pub(in crate::tcp) fn transfer_in(
    mut net: Net,
    config: Config,
    len: usize,
    (send, window): (usize, u16),
) -> Outcome {
    let config = leak(config);
    let start = net.now_us;
    let listener: ListenerHandle = net.hosts[1].listen(None, PORT, config).unwrap();
    let now = net.now();
    let client = net.hosts[0]
        .connect(
            US,
            (PEER, PORT),
            buffers(send, window),
            config,
            Offer::UNBOUNDED,
            now,
        )
        .unwrap();
    let server = net.hosts[1]
        .accept(listener, buffers(send, window), now)
        .unwrap();
    let data = pattern(0, len);
    let (mut written, mut received, mut finished) = (0, Vec::<u8>::new(), false);
    let mut shut = false;
    let mut done_at = None;
    for _ in 0..400_000 {
        let now = net.now();
        while written < len {
            match net.hosts[0].send(client, &data[written..], now) {
                Ok(count) => written += count,
                Err(SendError::BufferFull) => break,
                Err(error) => panic!("send: {error:?}"),
            }
        }
        if written == len && !shut {
            net.hosts[0].shutdown(client, now);
            shut = true;
        }
        let mut out = [0; 700];
        loop {
            match net.hosts[1].recv(server, &mut out) {
                Ok(count) => received.extend(&out[..count]),
                Err(RecvError::Empty) => break,
                Err(RecvError::Finished) => {
                    if !finished {
                        finished = true;
                        done_at = Some(net.now_us);
                        net.hosts[1].shutdown(server, now);
                    }
                    break;
                }
                Err(error) => panic!("recv: {error:?}"),
            }
        }
        let state = net.hosts[0].connection(client).unwrap().state();
        if finished && matches!(state, State::TimeWait | State::Closed) {
            break;
        }
        assert!(
            net.step(),
            "stuck: {written} written, {} received",
            received.len()
        );
        assert!(received.len() <= len);
    }
    assert!(
        received == data,
        "what arrives is what was sent, {} of {len}",
        received.len()
    );
    let error = net.hosts[0].connection(client).unwrap().error();
    assert_eq!(error, None::<Error>);
    let seconds = (done_at.expect("done") - start) as f64 / 1e6;
    Outcome {
        seconds,
        net,
        client,
    }
}

fn mote() -> Config {
    Config {
        rmss: 474,
        smss: 474,
        accept_window: 1896,
        ..Config::DEFAULT
    }
}

#[test]
fn every_size_arrives() {
    for len in [0, 1, 461, 462, 463, 1024, 20_480, 100_000] {
        transfer(mote(), CLEAN, len, 1);
    }
}

#[test]
fn every_temper_of_link_delivers() {
    let links = [
        ("loss 1 %", Link { loss: 10, ..CLEAN }),
        ("loss 10 %", Link { loss: 100, ..CLEAN }),
        ("loss 30 %", Link { loss: 300, ..CLEAN }),
        (
            "duplicates",
            Link {
                duplicate: 300,
                ..CLEAN
            },
        ),
        (
            "reordering",
            Link {
                reorder: 300,
                ..CLEAN
            },
        ),
        (
            "all",
            Link {
                loss: 60,
                duplicate: 60,
                reorder: 200,
                ..CLEAN
            },
        ),
        (
            "slow",
            Link {
                rate: 3000,
                loss: 20,
                ..CLEAN
            },
        ),
        (
            "marks",
            Link {
                mark_ce: 100,
                loss: 10,
                ..CLEAN
            },
        ),
    ];
    for (name, link) in links {
        for seed in 0..6 {
            std::println!("{name}, seed {seed}");
            transfer(mote(), link, 30_000, seed);
        }
    }
}

/// Every switch off, alone and all together: the stream still arrives over a bad link.
#[test]
fn every_feature_can_be_off() {
    let on = mote();
    let bare = Config {
        nagle: false,
        timestamps: false,
        sack: false,
        dsack: false,
        limited_transmit: false,
        rack: false,
        tail_loss_probe: false,
        prr: false,
        undo: false,
        ecn: false,
        congestion_control: false,
        header_prediction: false,
        ack_delay_ms: 0,
        ..on
    };
    let cases = [
        ("all on", on),
        ("nagle", Config { nagle: false, ..on }),
        (
            "timestamps",
            Config {
                timestamps: false,
                ..on
            },
        ),
        ("sack", Config { sack: false, ..on }),
        (
            "sack and timestamps",
            Config {
                sack: false,
                timestamps: false,
                ..on
            },
        ),
        ("dsack", Config { dsack: false, ..on }),
        (
            "limited transmit",
            Config {
                limited_transmit: false,
                ..on
            },
        ),
        ("rack", Config { rack: false, ..on }),
        (
            "rack and tail loss probe",
            Config {
                rack: false,
                tail_loss_probe: false,
                ..on
            },
        ),
        (
            "tail loss probe",
            Config {
                tail_loss_probe: false,
                ..on
            },
        ),
        ("prr", Config { prr: false, ..on }),
        ("undo", Config { undo: false, ..on }),
        ("ecn", Config { ecn: false, ..on }),
        (
            "congestion control",
            Config {
                congestion_control: false,
                ..on
            },
        ),
        (
            "header prediction",
            Config {
                header_prediction: false,
                ..on
            },
        ),
        (
            "delayed ack",
            Config {
                ack_delay_ms: 0,
                ..on
            },
        ),
        ("everything", bare),
    ];
    let link = Link {
        loss: 60,
        duplicate: 20,
        reorder: 60,
        mark_ce: 30,
        ..CLEAN
    };
    for (name, config) in cases {
        for seed in 10..14 {
            std::println!("off: {name}, seed {seed}");
            transfer(config, link, 20_000, seed);
        }
    }
}

#[test]
fn a_clean_link_sees_no_retransmission() {
    let outcome = transfer(
        mote(),
        Link {
            rate: 10_000,
            ..CLEAN
        },
        100_000,
        3,
    );
    let counters = outcome.net.hosts[0].counters();
    assert_eq!(
        counters.retransmissions,
        [0; super::super::RetransmissionCause::COUNT]
    );
    assert_eq!(counters.drops, [0; SegmentDrop::COUNT]);
    // 100 kB at 10 kB/s, headers and handshake on top.
    assert!(outcome.seconds < 11.5, "{} s", outcome.seconds);
}

#[test]
fn time_wait_ends_and_nothing_is_left_to_do() {
    let mut outcome = transfer(mote(), CLEAN, 100, 1);
    for _ in 0..100 {
        if !outcome.net.step() {
            break;
        }
    }
    assert!(!outcome.net.step(), "both engines sleep for good");
    let state = outcome.net.hosts[0]
        .connection(outcome.client)
        .unwrap()
        .state();
    assert_eq!(state, State::Closed);
    assert!(outcome.net.hosts[0].remove(outcome.client).is_some());
    assert!(
        outcome.net.hosts[0].connection(outcome.client).is_none(),
        "stale"
    );
}
