//! Data packets cut L2CAP PDUs wherever they like: within the header and within an SDU's length,
//! too.
//!
//! Source: Bluetooth Core 5.4 Vol 3 Part A §7.2.1.

use super::*;
use proptest::prelude::*;

/// The connections of the tests with two.
const HANDLES: [Handle; 2] = [Handle(7), Handle(8)];

impl Bench {
    /// A PDU in pieces that end at `ends`, each but the first behind an empty continuation.
    fn cut(&mut self, whole: &[u8], ends: &[usize]) -> Change {
        let mut from = 0;
        let mut change = Change::Nothing;
        for end in ends.iter().copied().chain([whole.len()]) {
            if from > 0 {
                assert_eq!(self.data(false, &[]), Change::Nothing);
            }
            assert_eq!(change, Change::Nothing, "before its end");
            change = self.data(from == 0, &whole[from..end]);
            from = end;
        }
        change
    }

    /// A data packet on one of two connections.
    fn data_of(&mut self, handle: Handle, is_first: bool, bytes: &[u8]) -> Change {
        self.tell(Event::Data {
            handle,
            is_first,
            bytes,
        })
    }
}

/// The frame of an SDU that one K-frame holds.
fn whole_frame(sdu: &[u8]) -> Vec<u8> {
    let frame = [&(sdu.len() as u16).to_le_bytes()[..], sdu].concat();
    pdu(LOCAL, &frame)
}

/// Each way of cutting the first eight bytes once or twice.
fn cuts() -> impl Iterator<Item = [usize; 2]> {
    (1..8).flat_map(|first| (first..8).map(move |second| [first, second]))
}

#[test]
fn an_sdu_may_be_cut_anywhere() {
    let sdu = pattern(40);
    for ends in cuts() {
        let mut bench = Bench::open(6, 247);
        let change = bench.cut(&whole_frame(&sdu), &ends);
        let expected = Change::Sdu {
            which: ChannelKind::Ip,
            peer: 0,
            len: 40,
        };
        assert_eq!(change, expected, "{ends:?}");
        assert_eq!(bench.received(40), sdu, "{ends:?}");
        assert_eq!(bench.dropped(ChannelDrop::CutPdu), 0, "{ends:?}");
        assert!(bench.is_open());
    }
    // Byte by byte, and a packet that holds nothing at all to begin with.
    let whole = whole_frame(&sdu);
    let mut bench = Bench::open(6, 247);
    let ends: Vec<usize> = (1..whole.len()).collect();
    let change = bench.cut(&whole, &ends);
    assert!(matches!(change, Change::Sdu { len: 40, .. }), "{change:?}");
    assert_eq!(bench.data(true, &[]), Change::Nothing);
    let change = bench.data(false, &whole);
    assert!(matches!(change, Change::Sdu { len: 40, .. }), "{change:?}");
    assert_eq!(bench.dropped(ChannelDrop::CutPdu), 0);
}

#[test]
fn a_signal_may_be_cut_anywhere() {
    for ends in cuts() {
        let mut bench = Bench::open(6, 247);
        let signal = Signal::Credits {
            channel: 0x55,
            credits: 5,
        };
        let mut out = [0; 30];
        let mut w = Writer::new(&mut out);
        signal.emit(9, &mut w).unwrap();
        let len = w.written();
        bench.cut(&pdu(SIGNALLING, &out[..len]), &ends);
        let credits = bench.host.connections().next().unwrap().credits();
        assert_eq!(credits, 11, "{ends:?}");
        // Nor does one that is rejected depend on how it comes.
        bench.cut(&pdu(SIGNALLING, &[0x17, 3, 2, 0, 0x23, 0]), &ends);
        let reason = reject::NOT_UNDERSTOOD;
        assert_eq!(bench.answer(), (3, Signal::Reject { reason }), "{ends:?}");
    }
}

#[cfg(feature = "tcple")]
#[test]
fn an_attribute_may_be_cut_anywhere() {
    use crate::wire::att;
    use crate::wire::tcple::Characteristic;
    for ends in cuts() {
        let mut bench = Bench::new(GapRole::Peripheral);
        bench.host.offer_tcple(1_000);
        bench.tell(Event::Disconnected {
            handle: HANDLE,
            reason: 8,
        });
        bench.tell(connected(THERE, GapRole::Peripheral));
        let asks = att::Pdu::ReadByType {
            uuid: Characteristic::UUID,
        };
        let mut out = [0; 30];
        let mut w = Writer::new(&mut out);
        asks.emit(&mut w).unwrap();
        let len = w.written();
        bench.cut(&pdu(att::CHANNEL, &out[..len]), &ends);
        let (channel, value) = bench.pdus.pop_front().expect("an answer");
        assert_eq!(channel, att::CHANNEL);
        assert!(matches!(att::Pdu::parse(&value), att::Pdu::Value(_)));
    }
}

#[test]
fn connections_do_not_mix_what_they_gather() {
    let whole = [whole_frame(&pattern(40)), whole_frame(&pattern(90)[50..])];
    for ends in cuts() {
        let mut bench = Bench::open(6, 247);
        let [first, second] = HANDLES;
        bench.host = host(Config::new(HERE, GapRole::Peripheral), 2);
        bench.tell(Event::Started {
            packet_len: 251,
            packets: 10,
        });
        for (n, handle) in (10..).zip(HANDLES) {
            bench.tell(Event::Connected {
                status: 0,
                handle,
                role: GapRole::Peripheral,
                peer: device(n),
                timing: TIMING,
            });
            let asks = [0x14, 1, 10, 0, 0x23, 0, 0x55, 0, 0, 5, 247, 0, 6, 0];
            let up = bench.data_of(handle, true, &pdu(SIGNALLING, &asks));
            assert_eq!(up, Change::Up);
        }
        let mut from = 0;
        for end in ends {
            for (handle, whole) in HANDLES.into_iter().zip(&whole) {
                bench.data_of(handle, from == 0, &whole[from..end]);
            }
            from = end;
        }
        for (peer, (handle, whole)) in [second, first]
            .into_iter()
            .zip(whole.iter().rev())
            .enumerate()
        {
            let change = bench.data_of(handle, false, &whole[from..]);
            let (which, peer) = (ChannelKind::Ip, 1 - peer);
            let len = 40;
            assert_eq!(change, Change::Sdu { which, peer, len }, "{ends:?}");
            let inward = &bench.host.peers[peer].inward;
            assert_eq!(inward[SDU_HEADROOM..][..40], whole[6..], "{ends:?}");
        }
    }
}

#[test]
fn a_pdu_that_begins_within_a_header_costs_what_was_under_way() {
    let sdu = pattern(40);
    let whole = whole_frame(&sdu);
    for end in 0..4 {
        // No SDU was under way: none can be wrong.
        let mut bench = Bench::open(6, 247);
        bench.data(true, &whole[..end]);
        let change = bench.data(true, &whole);
        assert!(matches!(change, Change::Sdu { len: 40, .. }), "{end}");
        assert_eq!(bench.received(40), sdu);
        assert_eq!(bench.dropped(ChannelDrop::CutPdu), 1, "{end}");
        assert!(bench.is_open());
        // Of one that was a part is missing.
        let mut bench = Bench::open(6, 247);
        bench.pdu(LOCAL, &[9, 0, 1, 2, 3]);
        bench.data(true, &whole[..end]);
        let change = bench.pdu(LOCAL, &[7, 8, 9]);
        assert_eq!(change, Change::Nothing, "{end}");
        assert_eq!(bench.dropped(ChannelDrop::CutPdu), 1, "{end}");
        assert_eq!(bench.dropped(ChannelDrop::CutSdu), 1, "{end}");
        assert!(!bench.is_open());
    }
    // Behind the header the channel is known, within the SDU's length, too.
    for end in 4..8 {
        let mut bench = Bench::open(6, 247);
        bench.data(true, &whole[..end]);
        bench.pdu(SIGNALLING, &[0x16, 4, 4, 0, 0x55, 0, 1, 0]);
        assert_eq!(bench.dropped(ChannelDrop::CutSdu), 1, "{end}");
        assert!(!bench.is_open());
    }
}

/// What a peer sends: a channel's PDU.
fn any_pdu() -> impl Strategy<Value = Vec<u8>> {
    let payload = || prop::collection::vec(any::<u8>(), 0..30);
    prop_oneof![
        payload().prop_map(|sdu| whole_frame(&sdu)),
        // A K-frame that begins an SDU of two, or goes on with one, or is wrong.
        payload().prop_map(|sdu| pdu(LOCAL, &[&[40, 0], &sdu[..]].concat())),
        payload().prop_map(|frame| pdu(LOCAL, &frame)),
        payload().prop_map(|bytes| pdu(SIGNALLING, &bytes)),
        (1u16..9).prop_map(|credits| {
            let [low, high] = credits.to_le_bytes();
            pdu(SIGNALLING, &[0x16, 4, 4, 0, 0x55, 0, low, high])
        }),
        (any::<u16>(), payload()).prop_map(|(channel, bytes)| pdu(channel, &bytes)),
    ]
}

proptest! {
    /// How PDUs are cut changes nothing of what becomes of them.
    #[test]
    fn cutting_changes_nothing(
        script in prop::collection::vec((any_pdu(), prop::collection::vec(0usize..40, 0..6)), 0..20),
    ) {
        let mut whole = Bench::open(6, 247);
        let mut cut = Bench::open(6, 247);
        for (pdu, ends) in script {
            let expected = whole.data(true, &pdu);
            let mut ends: Vec<usize> = ends.into_iter().map(|end| end.min(pdu.len())).collect();
            ends.sort_unstable();
            let mut from = 0;
            let mut changes = Vec::new();
            for (n, end) in ends.into_iter().chain([pdu.len()]).enumerate() {
                let change = cut.data(n == 0, &pdu[from..end]);
                changes.extend((change != Change::Nothing).then_some(change));
                from = end;
            }
            let expected_changes: Vec<Change> =
                (expected != Change::Nothing).then_some(expected).into_iter().collect();
            prop_assert_eq!(changes, expected_changes);
            if let Change::Sdu { len, .. } = expected {
                prop_assert_eq!(cut.received(len), whole.received(len));
            }
            prop_assert_eq!(cut.host.counters(), whole.host.counters());
            // Credits may go back sooner, between the pieces.
            prop_assert_eq!(cut.is_open(), whole.is_open());
        }
    }
}
