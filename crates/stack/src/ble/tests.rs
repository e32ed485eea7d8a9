//! Hosts above controllers that lose nothing and take no time, and above the test's own hand.

use super::*;
use crate::wire::cursor::Writer;
use crate::wire::l2cap::{End, Header, Intervals, SIGNALLING, Signal, reject, result};
use std::boxed::Box;
use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;

const HERE: DeviceAddr = device(1);
const THERE: DeviceAddr = device(2);
const HANDLE: Handle = Handle(7);
const NOW: Instant = Instant::from_micros(5_000_000);
const TIMING: Timing = Timing {
    interval: 40,
    latency: 0,
    timeout: 200,
};

const fn device(n: u8) -> DeviceAddr {
    DeviceAddr {
        bytes: [0xc0, 0, 0, 0, 0, n],
        is_random: true,
    }
}

fn memory(len: usize) -> &'static mut [u8] {
    Box::leak(vec![0; len].into_boxed_slice())
}

fn host(config: Config, places: usize) -> Host<'static> {
    let place = || {
        Peer::new(PeerMemory {
            inward: memory(INWARD_LEN),
            outward: memory(IPV6_MTU_MIN),
            queue: memory(3000),
        })
    };
    let peers: Vec<_> = std::iter::repeat_with(place).take(places).collect();
    Host::new(config, Box::leak(peers.into_boxed_slice()))
}

fn connected(peer: DeviceAddr, role: GapRole) -> Event<'static> {
    Event::Connected {
        status: 0,
        handle: HANDLE,
        role,
        peer,
        timing: TIMING,
    }
}

/// A host with a connection, whose commands are all carried out.
struct Bench {
    host: Host<'static>,
    commands: Vec<Action>,
    /// PDUs that left, put together.
    pdus: VecDeque<(u16, Vec<u8>)>,
    part: Vec<u8>,
    completes: bool,
    packet_len: usize,
}

impl Bench {
    fn new(role: GapRole) -> Self {
        Self::with_packets(role, 251)
    }

    fn with_packets(role: GapRole, packet_len: u16) -> Self {
        let mut bench = Self {
            host: host(Config::new(HERE, role), 1),
            commands: Vec::new(),
            pdus: VecDeque::new(),
            part: Vec::new(),
            completes: true,
            packet_len: packet_len.into(),
        };
        bench.tell(Event::Started {
            packet_len,
            packets: 10,
        });
        bench.tell(connected(THERE, role));
        bench.tell(Event::DataLength {
            handle: HANDLE,
            sent: 251,
            received: 251,
        });
        bench
    }

    /// A peripheral whose central has opened the channel, with these credits and MPS.
    fn open(credits: u16, mps: u16) -> Self {
        let mut bench = Self::new(GapRole::Peripheral);
        let end = End {
            channel: 0x55,
            mtu: 1280,
            mps,
            credits,
        };
        bench.signal(1, Signal::ConnectionRequest { service: IPSP, end });
        let (_, answer) = bench.answer();
        assert!(matches!(
            answer,
            Signal::ConnectionResponse {
                result: result::SUCCESS,
                ..
            }
        ));
        assert_eq!(bench.host.find(|addr| *addr == THERE), Some(0));
        bench
    }

    fn tell(&mut self, event: Event<'_>) -> Change {
        self.tell_at(event, NOW)
    }

    fn tell_at(&mut self, event: Event<'_>, now: Instant) -> Change {
        let change = self.host.on_event(event, now);
        self.act(now);
        change
    }

    /// Carries out what the host wants.
    fn act(&mut self, now: Instant) {
        let mut out = [0; 1400];
        while let Some(action) = self.host.poll_action(now, &mut out) {
            let Action::Data {
                handle,
                is_first,
                len,
            } = action
            else {
                self.commands.push(action);
                self.host.on_event(Event::Answered { status: 0 }, now);
                continue;
            };
            assert!(len <= self.packet_len, "a packet of {len} bytes");
            assert_eq!(is_first, self.part.is_empty());
            self.part.extend_from_slice(&out[..len]);
            let (header, rest) = Header::parse(&self.part).unwrap();
            assert!(rest.len() <= usize::from(header.len));
            if rest.len() == usize::from(header.len) {
                self.pdus.push_back((header.channel, rest.to_vec()));
                self.part.clear();
            }
            if self.completes {
                let packets = 1;
                self.host
                    .on_event(Event::Completed { handle, packets }, now);
            }
        }
    }

    /// A PDU of the peer's in one data packet.
    fn pdu(&mut self, channel: u16, payload: &[u8]) -> Change {
        let bytes = pdu(channel, payload);
        self.data(true, &bytes)
    }

    fn data(&mut self, is_first: bool, bytes: &[u8]) -> Change {
        self.tell(Event::Data {
            handle: HANDLE,
            is_first,
            bytes,
        })
    }

    fn signal(&mut self, identifier: u8, signal: Signal) -> Change {
        let mut out = [0; 30];
        let mut w = Writer::new(&mut out);
        signal.emit(identifier, &mut w).unwrap();
        let len = w.written();
        self.pdu(SIGNALLING, &out[..len])
    }

    /// The next signal that the host has sent.
    fn answer(&mut self) -> (u8, Signal) {
        let (channel, bytes) = self.pdus.pop_front().expect("a signal");
        assert_eq!(channel, SIGNALLING);
        Signal::parse(&bytes).unwrap()
    }

    /// An SDU of the peer's, cut to K-frames with so much payload.
    fn sdu(&mut self, sdu: &[u8], mps: usize) -> Change {
        let mut whole = (sdu.len() as u16).to_le_bytes().to_vec();
        whole.extend_from_slice(sdu);
        let mut change = Change::Nothing;
        for frame in whole.chunks(mps) {
            change = self.pdu(LOCAL, frame);
        }
        change
    }

    fn send(&mut self, sdu: &[u8]) {
        self.host.peers[0].outward[..sdu.len()].copy_from_slice(sdu);
        self.host.begin(0, ChannelKind::Ip, 0, sdu.len() as u16);
        self.act(NOW);
    }

    fn dropped(&self, reason: ChannelDrop) -> u32 {
        self.host.counters().dropped(reason)
    }

    fn received(&self, len: u16) -> &[u8] {
        &self.host.peers[0].inward[SDU_HEADROOM..SDU_HEADROOM + usize::from(len)]
    }

    fn is_open(&self) -> bool {
        self.host.connections().any(Connection::is_open)
    }
}

fn pdu(channel: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u16).to_le_bytes().to_vec();
    bytes.extend_from_slice(&channel.to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n * 7 + 3) as u8).collect()
}

#[test]
fn a_peripheral_advertises_ipsp_until_it_is_connected_and_after() {
    let mut bench = Bench::new(GapRole::Peripheral);
    let on = Action::SetAdvertising { is_on: true };
    let interval = bench.host.config().advertising_interval;
    assert_eq!(
        bench.commands[..3],
        [
            Action::SetAdvertisingParameters { interval },
            Action::SetAdvertisingData { len: 7 },
            on
        ]
    );
    assert!(bench.commands.contains(&Action::SetDataLength {
        handle: HANDLE,
        octets: 251,
        time_us: 2120
    }));
    bench.commands.clear();
    bench.tell(Event::Disconnected {
        handle: HANDLE,
        reason: 8,
    });
    assert_eq!(bench.commands, [on]);
}

#[test]
fn what_is_advertised_is_what_a_central_looks_for() {
    let mut out = [0; 31];
    let mut gap = Gap::Data;
    let config = Config::new(HERE, GapRole::Peripheral);
    let Some(Action::SetAdvertisingData { len }) = gap.poll(&config, true, NOW, &mut out) else {
        panic!("no data");
    };
    let advertised = &out[..len];
    assert_eq!(advertised, [2, 1, 6, 3, 3, 0x20, 0x18]);
    let cases: [(&str, &[u8], bool); 6] = [
        ("ours", advertised, true),
        ("the second of three", &[7, 2, 1, 2, 0x20, 0x18, 5, 5], true),
        ("another service", &[3, 3, 0x0f, 0x18], false),
        ("a name", &[3, 9, 0x20, 0x18], false),
        ("a field that is cut", &[5, 3, 0x20, 0x18], false),
        ("nothing", &[], false),
    ];
    for (name, data, found) in cases {
        let mut central = host(Config::new(THERE, GapRole::Central), 1);
        let mut scan = |event| {
            central.on_event(event, NOW);
            let mut actions = Vec::new();
            let mut out = [0; 40];
            while let Some(action) = central.poll_action(NOW, &mut out) {
                actions.push(action);
                central.on_event(Event::Answered { status: 0 }, NOW);
            }
            actions
        };
        let started = scan(Event::Started {
            packet_len: 251,
            packets: 8,
        });
        assert_eq!(started.last(), Some(&Action::SetScan { is_on: true }));
        let actions = scan(Event::Advertised(Advertisement {
            from: HERE,
            is_connectable: true,
            rssi: -40,
            data,
        }));
        let connects = matches!(actions[..], [Action::SetScan { is_on: false }, Action::Connect { peer, .. }] if peer == HERE);
        assert_eq!(connects, found, "{name}: {actions:?}");
    }
}

#[test]
fn a_central_whose_connecting_fails_or_is_refused_looks_again() {
    let mut bench = Bench::new(GapRole::Central);
    bench.tell(Event::Disconnected {
        handle: HANDLE,
        reason: 8,
    });
    assert_eq!(
        bench.commands.last(),
        Some(&Action::SetScan { is_on: true })
    );
    bench.tell(Event::Advertised(Advertisement {
        from: THERE,
        is_connectable: true,
        rssi: -40,
        data: &[3, 3, 0x20, 0x18],
    }));
    assert!(matches!(
        bench.commands.last(),
        Some(Action::Connect { .. })
    ));
    let late = bench.host.next_deadline().expect("it gives up");
    bench.act(late);
    assert_eq!(bench.commands.last(), Some(&Action::CancelConnect));
    let failed = Event::Connected {
        status: 2,
        handle: Handle(0),
        role: GapRole::Central,
        peer: THERE,
        timing: TIMING,
    };
    bench.tell_at(failed, late);
    assert_eq!(
        bench.commands.last(),
        Some(&Action::SetScan { is_on: true })
    );
}

#[test]
fn a_central_opens_the_channel_and_asks_again_after_a_refusal() {
    let mut bench = Bench::new(GapRole::Central);
    let (first, signal) = bench.answer();
    let end = End {
        channel: LOCAL,
        mtu: 1280,
        mps: 1282,
        credits: 12,
    };
    assert_eq!(signal, Signal::ConnectionRequest { service: 0x23, end });
    let refusal = Signal::ConnectionResponse {
        result: result::NO_RESOURCES,
        end: End { channel: 0, ..end },
    };
    bench.signal(first, refusal);
    bench.act(NOW);
    assert!(bench.pdus.is_empty(), "it waits");
    let later = bench.host.next_deadline().unwrap();
    assert_eq!(later.since(NOW), Duration::from_secs(1));
    bench.act(later);
    let (second, signal) = bench.answer();
    assert_eq!(signal, Signal::ConnectionRequest { service: 0x23, end });
    assert_ne!(first, second);
    // The answer to the first request is none to the second.
    bench.signal(first, refusal);
    assert_eq!(bench.dropped(ChannelDrop::StrayAnswer), 1);
    let accepted = Signal::ConnectionResponse {
        result: result::SUCCESS,
        end: End {
            channel: 0x41,
            mtu: 1280,
            mps: 247,
            credits: 6,
        },
    };
    assert_eq!(bench.signal(second, accepted), Change::Up);
    assert!(bench.is_open());
}

#[test]
fn a_request_without_an_answer_ends_the_connection() {
    let mut bench = Bench::new(GapRole::Central);
    bench.answer();
    let late = bench.host.next_deadline().unwrap();
    assert_eq!(late.since(NOW), Duration::from_secs(10));
    bench.act(late);
    assert_eq!(bench.dropped(ChannelDrop::NoAnswer), 1);
    assert!(
        matches!(bench.commands.last(), Some(Action::Disconnect { handle, .. }) if *handle == HANDLE)
    );
}

#[test]
fn channels_that_cannot_be_are_refused_with_their_reason() {
    let good = End {
        channel: 0x40,
        mtu: 1280,
        mps: 247,
        credits: 6,
    };
    let cases = [
        (0x24, good, result::UNKNOWN_SERVICE),
        (IPSP, End { channel: 5, ..good }, result::INVALID_SOURCE),
        (
            IPSP,
            End {
                channel: 0x80,
                ..good
            },
            result::INVALID_SOURCE,
        ),
        (IPSP, End { mtu: 1279, ..good }, result::UNACCEPTABLE),
        (IPSP, End { mps: 22, ..good }, result::UNACCEPTABLE),
    ];
    for (service, end, expected) in cases {
        let mut bench = Bench::new(GapRole::Peripheral);
        bench.signal(9, Signal::ConnectionRequest { service, end });
        let (identifier, answer) = bench.answer();
        assert_eq!(identifier, 9);
        assert!(
            matches!(answer, Signal::ConnectionResponse { result, .. } if result == expected),
            "{end:?}: {answer:?}"
        );
        assert!(!bench.is_open());
    }
    for (channel, expected) in [(0x55, result::SOURCE_TAKEN), (0x56, result::NO_RESOURCES)] {
        let mut bench = Bench::open(6, 247);
        let end = End { channel, ..good };
        bench.signal(9, Signal::ConnectionRequest { service: IPSP, end });
        let (_, answer) = bench.answer();
        assert!(matches!(answer, Signal::ConnectionResponse { result, .. } if result == expected));
        assert!(bench.is_open());
    }
}

#[test]
fn sdus_come_whole_however_they_are_cut() {
    for (len, mps) in [
        (1, 247),
        (245, 247),
        (246, 247),
        (1280, 247),
        (1280, 1282),
        (60, 1),
    ] {
        let mut bench = Bench::open(6, 247);
        let sdu = pattern(len);
        let mut whole = (len as u16).to_le_bytes().to_vec();
        whole.extend_from_slice(&sdu);
        if whole.len().div_ceil(mps) > usize::from(CREDITS) {
            whole.truncate(0);
        }
        for (n, frame) in whole.chunks(mps).enumerate() {
            let bytes = pdu(LOCAL, frame);
            let (first, rest) = bytes.split_at(4 + n % 2);
            let mut change = bench.data(true, first);
            for piece in rest.chunks(27) {
                change = bench.data(false, piece);
            }
            let is_last = (n + 1) * mps >= whole.len();
            let expected = match is_last {
                true => Change::Sdu {
                    which: ChannelKind::Ip,
                    peer: 0,
                    len: len as u16,
                },
                false => Change::Nothing,
            };
            assert_eq!(change, expected, "{len} bytes by {mps}, frame {n}");
            if is_last {
                assert_eq!(bench.received(len as u16), sdu);
            }
        }
    }
}

#[test]
fn credits_come_back_before_they_run_out() {
    let mut bench = Bench::open(6, 247);
    let sdu = pattern(1280);
    for round in 0..50 {
        let change = bench.sdu(&sdu, 247);
        assert!(matches!(change, Change::Sdu { len: 1280, .. }), "{round}");
        let (_, signal) = bench.answer();
        assert_eq!(
            signal,
            Signal::Credits {
                channel: LOCAL,
                credits: 6
            }
        );
    }
    assert!(bench.is_open());
}

#[test]
fn a_broken_rule_closes_the_channel_and_says_why() {
    let long = pattern(1281);
    let cases: [(ChannelDrop, &[&[u8]]); 5] = [
        (ChannelDrop::SduTooLong, &[&[1, 5, 0]]),
        (ChannelDrop::FrameTooLong, &[&[3, 0, 1, 2, 3, 4]]),
        (ChannelDrop::FrameTooLong, &[&[3, 0, 1, 2], &[3, 4]]),
        (ChannelDrop::FrameTooLong, &[&long[..], &[0; 2]]),
        (ChannelDrop::CutPdu, &[&[3]]),
    ];
    for (reason, frames) in cases {
        let mut bench = Bench::open(6, 247);
        for frame in frames {
            let frame = match frame.len() {
                1281 => [&[0, 5][..], frame].concat(),
                _ => frame.to_vec(),
            };
            bench.pdu(LOCAL, &frame);
        }
        assert_eq!(bench.dropped(reason), 1, "{reason:?}");
        assert!(!bench.is_open(), "{reason:?}");
        let (identifier, signal) = bench.answer();
        let ends = (0x55, LOCAL);
        assert_eq!(
            signal,
            Signal::DisconnectionRequest {
                destination: ends.0,
                source: ends.1
            },
            "{reason:?}"
        );
        // What the peer sent meanwhile does nothing; then it may begin anew.
        bench.pdu(LOCAL, &[1, 0, 1]);
        bench.signal(
            identifier,
            Signal::DisconnectionResponse {
                destination: ends.0,
                source: ends.1,
            },
        );
        let end = End {
            channel: 0x55,
            mtu: 1280,
            mps: 247,
            credits: 1,
        };
        let request = Signal::ConnectionRequest { service: IPSP, end };
        assert_eq!(bench.signal(3, request), Change::Up);
    }
}

#[test]
fn a_frame_without_credit_closes_the_channel() {
    let mut bench = Bench::open(6, 247);
    // No room for signals: no credit goes back.
    bench.completes = false;
    let mut frames = 0;
    while bench.is_open() {
        bench.pdu(LOCAL, &[1, 0, 9]);
        frames += 1;
        assert!(frames < 300, "it never ends");
    }
    assert_eq!(bench.dropped(ChannelDrop::NoCredit), 1);
}

#[test]
fn credits_past_65535_close_the_channel_and_others_are_counted() {
    let mut bench = Bench::open(6, 247);
    let credits = |channel, credits| Signal::Credits { channel, credits };
    bench.signal(4, credits(0x55, u16::MAX - 6));
    assert!(bench.is_open());
    bench.signal(5, credits(0x56, 1));
    bench.signal(6, credits(0x55, 0));
    assert_eq!(bench.dropped(ChannelDrop::MalformedSignal), 2);
    assert!(bench.is_open());
    bench.signal(7, credits(0x55, 1));
    assert_eq!(bench.dropped(ChannelDrop::CreditOverflow), 1);
    assert!(!bench.is_open());
    // What the peer sent before it heard of the end is nobody's fault.
    bench.signal(8, credits(0x55, 1));
    assert_eq!(bench.dropped(ChannelDrop::MalformedSignal), 2);
}

#[test]
fn what_leads_to_nothing_is_counted() {
    let mut bench = Bench::open(6, 247);
    bench.pdu(0x0004, &[2, 23, 0]);
    bench.pdu(0x0041, &[1, 0, 1]);
    assert_eq!(bench.dropped(ChannelDrop::UnknownChannel), 2);
    bench.data(false, &[1, 2, 3]);
    bench.data(false, &[]);
    assert_eq!(bench.dropped(ChannelDrop::StrayContinuation), 1);
    // A header that is not whole before the next PDU begins, and a byte too many.
    bench.data(true, &[1, 0, 0x40]);
    assert_eq!(bench.dropped(ChannelDrop::CutPdu), 0);
    bench.data(true, &[1, 0, 4, 0, 9, 9]);
    assert_eq!(bench.dropped(ChannelDrop::CutPdu), 2);
    bench.pdu(SIGNALLING, &[0x17, 3, 2, 0, 0x23, 0]);
    assert_eq!(bench.dropped(ChannelDrop::UnknownSignal), 1);
    let rejection = |reason| Signal::Reject { reason };
    assert_eq!(bench.answer(), (3, rejection(reject::NOT_UNDERSTOOD)));
    bench.pdu(
        SIGNALLING,
        &[
            0x14, 4, 50, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
        ],
    );
    assert_eq!(bench.answer(), (4, rejection(reject::TOO_LONG)));
    bench.pdu(SIGNALLING, &[]);
    bench.pdu(SIGNALLING, &[0x14]);
    assert_eq!(bench.dropped(ChannelDrop::MalformedSignal), 3);
    let unknown = Signal::DisconnectionRequest {
        destination: 0x77,
        source: 0x55,
    };
    bench.signal(5, unknown);
    assert_eq!(bench.answer(), (5, rejection(reject::INVALID_CHANNEL)));
    bench.tell(Event::Data {
        handle: Handle(99),
        is_first: true,
        bytes: &[0, 0, 4, 0],
    });
    bench.tell(Event::Disconnected {
        handle: Handle(99),
        reason: 8,
    });
    assert_eq!(bench.dropped(ChannelDrop::UnknownConnection), 2);
    bench.tell(Event::Completed {
        handle: HANDLE,
        packets: 9,
    });
    assert_eq!(bench.dropped(ChannelDrop::BadReport), 1);
    assert!(bench.is_open(), "none of it closed the channel");
    assert!(bench.pdus.is_empty());
}

#[test]
fn an_sdu_cut_by_the_end_of_its_connection_is_counted() {
    let mut bench = Bench::open(6, 247);
    bench.pdu(LOCAL, &[9, 0, 1, 2, 3]);
    bench.tell(Event::Disconnected {
        handle: HANDLE,
        reason: 8,
    });
    assert_eq!(bench.dropped(ChannelDrop::CutSdu), 1);
    assert!(bench.host.connections().next().is_none());
}

#[test]
fn the_peer_may_end_the_channel() {
    let mut bench = Bench::open(6, 247);
    bench.pdu(LOCAL, &[9, 0, 1, 2, 3]);
    let (destination, source) = (LOCAL, 0x55);
    let wrong = Signal::DisconnectionRequest {
        destination,
        source: 0x56,
    };
    bench.signal(4, wrong);
    assert!(bench.pdus.is_empty() && bench.is_open());
    let request = Signal::DisconnectionRequest {
        destination,
        source,
    };
    bench.signal(5, request);
    let answer = Signal::DisconnectionResponse {
        destination,
        source,
    };
    assert_eq!(bench.answer(), (5, answer));
    assert!(!bench.is_open());
    assert_eq!(bench.dropped(ChannelDrop::CutSdu), 1);
}

#[test]
fn a_central_grants_times_that_can_be() {
    let asked = |min, max, latency, timeout| Intervals {
        min,
        max,
        latency,
        timeout,
    };
    let cases = [
        (asked(6, 12, 0, 100), true),
        (asked(6, 3200, 0, 801), true),
        (asked(6, 3200, 0, 800), false),
        (asked(5, 12, 0, 100), false),
        (asked(12, 6, 0, 100), false),
        (asked(6, 12, 500, 3200), false),
        (asked(6, 12, 0, 9), false),
        (asked(6, 3201, 0, 3200), false),
    ];
    for (intervals, is_granted) in cases {
        let mut bench = Bench::new(GapRole::Central);
        bench.answer();
        bench.commands.clear();
        bench.signal(3, Signal::ParameterRequest(intervals));
        let result = u16::from(!is_granted);
        assert_eq!(bench.answer(), (3, Signal::ParameterResponse { result }));
        let updates = bench
            .commands
            .iter()
            .any(|action| matches!(action, Action::Update { .. }));
        assert_eq!(updates, is_granted, "{intervals:?}");
    }
    let mut bench = Bench::new(GapRole::Peripheral);
    bench.signal(3, Signal::ParameterRequest(asked(6, 12, 0, 100)));
    let reason = reject::NOT_UNDERSTOOD;
    assert_eq!(bench.answer(), (3, Signal::Reject { reason }));
}

#[test]
fn an_sdu_goes_as_one_frame_where_the_peer_takes_it_so_else_in_whole_packets() {
    for (mps, packet_len) in [
        (1282, 251),
        (247, 251),
        (512, 251),
        (247, 27),
        (1282, 27),
        (23, 251),
    ] {
        let mut bench = Bench::with_packets(GapRole::Peripheral, packet_len);
        let end = End {
            channel: 0x55,
            mtu: 1280,
            mps,
            credits: 100,
        };
        bench.signal(1, Signal::ConnectionRequest { service: IPSP, end });
        bench.answer();
        let sdu = pattern(1280);
        bench.send(&sdu);
        let frames: Vec<_> = bench.pdus.drain(..).collect();
        let mut whole = Vec::new();
        for (n, (channel, frame)) in frames.iter().enumerate() {
            assert_eq!(*channel, 0x55);
            assert!(frame.len() <= usize::from(mps));
            let is_last = n + 1 == frames.len();
            assert!(
                is_last || mps < 247 || (frame.len() + 4) % 251 == 0,
                "{mps}: a frame of {} bytes",
                frame.len()
            );
            whole.extend_from_slice(frame);
        }
        assert_eq!(whole[..2], 1280_u16.to_le_bytes());
        assert_eq!(whole[2..], sdu);
        assert_eq!(
            usize::from(100 - bench.host.connections().next().unwrap().credits()),
            frames.len()
        );
        if mps == 1282 {
            assert_eq!(frames.len(), 1);
        }
        assert_eq!(bench.host.counters().sdus_sent, 1);
    }
}

#[test]
fn what_is_offered_fills_whole_packets() {
    for (mps, expected) in [(1282, 5 * 251 - 6), (247, 5 * 247 - 2), (512, 2 * 498 - 2)] {
        let bench = Bench::open(6, mps);
        assert_eq!(bench.host.sdu_len_max(Some(0)), expected, "{mps}");
    }
    let mut bench = Bench::open(6, 247);
    bench.tell(Event::DataLength {
        handle: HANDLE,
        sent: 27,
        received: 27,
    });
    assert_eq!(bench.host.sdu_len_max(Some(0)), 1280, "short packets");
    assert_eq!(bench.host.sdu_len_max(None), 1280, "nobody there");
}

#[test]
fn nothing_leaves_without_credit_or_room() {
    let mut bench = Bench::open(2, 247);
    let sdu = pattern(1280);
    bench.send(&sdu);
    assert_eq!(bench.pdus.len(), 2);
    assert!(!bench.host.is_ready(0));
    bench.signal(
        2,
        Signal::Credits {
            channel: 0x55,
            credits: 4,
        },
    );
    assert_eq!(bench.pdus.len(), 6);
    assert!(!bench.host.is_ready(0), "no credit for another one");
    assert!(!bench.host.is_stalled(0, NOW));
    assert!(bench.host.is_stalled(0, NOW + STALLED_AFTER));
    bench.signal(
        3,
        Signal::Credits {
            channel: 0x55,
            credits: 100,
        },
    );
    assert!(bench.host.is_ready(0));
    assert!(!bench.host.is_stalled(0, NOW + STALLED_AFTER));
    bench.completes = false;
    bench.send(&sdu);
    bench.send(&sdu);
    assert_eq!(bench.pdus.len(), 6 + 10, "as many as the controller holds");
    assert!(!bench.host.is_ready(0));
    bench.completes = true;
    bench.tell(Event::Completed {
        handle: HANDLE,
        packets: 10,
    });
    assert_eq!(bench.pdus.len(), 6 + 12);
}

#[test]
fn a_frame_that_left_in_part_is_finished_before_a_signal() {
    let mut bench = Bench::with_packets(GapRole::Peripheral, 27);
    let end = End {
        channel: 0x55,
        mtu: 1280,
        mps: 512,
        credits: 100,
    };
    bench.signal(1, Signal::ConnectionRequest { service: IPSP, end });
    bench.answer();
    bench.completes = false;
    // Ten packets of a K-frame that needs nineteen.
    bench.send(&pattern(1000));
    assert!(bench.pdus.is_empty());
    let request = Signal::DisconnectionRequest {
        destination: LOCAL,
        source: 0x55,
    };
    bench.signal(2, request);
    bench.completes = true;
    // The bench itself checks that a PDU goes on where it was.
    bench.tell(Event::Completed {
        handle: HANDLE,
        packets: 10,
    });
    let channels: Vec<u16> = bench.pdus.iter().map(|(channel, _)| *channel).collect();
    assert_eq!(channels, [0x55, SIGNALLING], "the rest of the SDU is gone");
}

#[test]
fn each_connection_has_its_share_of_the_controller() {
    let mut host = host(Config::new(HERE, GapRole::Central), 2);
    host.on_event(
        Event::Started {
            packet_len: 251,
            packets: 8,
        },
        NOW,
    );
    for n in 0..2 {
        let event = Event::Connected {
            status: 0,
            handle: Handle(n),
            role: GapRole::Central,
            peer: device(10 + n as u8),
            timing: TIMING,
        };
        host.on_event(event, NOW);
    }
    let end = End {
        channel: 0x40,
        mtu: 1280,
        mps: 247,
        credits: 100,
    };
    for peer in host.peers.iter_mut() {
        let connection = peer.connection.as_mut().unwrap();
        connection.open(ChannelKind::Ip, end, NOW);
        connection.outgoing.begin(ChannelKind::Ip, 0, 1280);
    }
    let mut sent = [0; 2];
    let mut out = [0; 300];
    while let Some(action) = host.poll_action(NOW, &mut out) {
        match action {
            Action::Data { handle, .. } => sent[usize::from(handle.0)] += 1,
            _ => {
                host.on_event(Event::Answered { status: 0 }, NOW);
            }
        }
    }
    assert_eq!(sent, [4, 4]);
}

#[test]
fn a_refused_command_is_counted_and_goes_no_further() {
    let mut host = host(Config::new(HERE, GapRole::Peripheral), 1);
    host.on_event(
        Event::Started {
            packet_len: 251,
            packets: 8,
        },
        NOW,
    );
    let mut out = [0; 40];
    for status in [0, 0, 0x0c] {
        assert!(host.poll_action(NOW, &mut out).is_some());
        assert_eq!(host.poll_action(NOW, &mut out), None, "one at a time");
        host.on_event(Event::Answered { status }, NOW);
    }
    assert_eq!(host.counters().dropped(ChannelDrop::CommandRefused), 1);
    assert_eq!(host.poll_action(NOW, &mut out), None);
    let later = host.next_deadline().unwrap();
    assert_eq!(
        host.poll_action(later, &mut out),
        Some(Action::SetAdvertising { is_on: true })
    );
}

mod cuts;
