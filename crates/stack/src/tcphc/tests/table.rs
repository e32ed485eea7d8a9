//! The table: who gets a context, who loses it, and hostile input.

use std::vec::Vec;

use proptest::prelude::*;

use super::driver::{Setup, World, flow};
use super::*;
use crate::random::Rng;

pub(super) const PORTS: (u16, u16) = (4000, 80);

pub(super) fn table(end: End, slots: usize, quiet: Duration) -> Tcphc<'static> {
    let config = Config {
        end,
        quiet,
        ..Config::default()
    };
    let contexts = std::vec![Context::EMPTY; slots].leak();
    let mut rng = Rng::from_seed([3, 4]);
    Tcphc::new(contexts, config, Instant::ORIGIN, &mut rng)
}

pub(super) fn segment(
    end: usize,
    ports: (u16, u16),
    seq: u32,
    ack: u32,
    flags: Flags,
    len: usize,
) -> Vec<u8> {
    let (src_port, dst_port) = if end == 0 { ports } else { (ports.1, ports.0) };
    let header = tcp::Header {
        src_port,
        dst_port,
        seq,
        ack,
        flags,
        window: 1000,
        ..tcp::Header::default()
    };
    let mut bytes = std::vec![0x33; tcp::HEADER_LEN + len];
    header.emit(&mut bytes).unwrap();
    let flow = flow(end);
    tcp::fill_checksum(&flow.local, &flow.remote, &mut bytes);
    bytes
}

pub(super) fn at(seconds: u64) -> Instant {
    Instant::from_micros(seconds * 1_000_000)
}

/// Compresses a segment of `end`; `None`: it travels as plain TCP.
pub(super) fn send(
    table: &mut Tcphc<'_>,
    end: usize,
    segment: &[u8],
    now: Instant,
) -> Option<Vec<u8>> {
    let mut out = [0; 80];
    let done = table
        .compress(&flow(end), segment, Origin::Own, now, &mut out)
        .ok()?;
    Some(
        [
            &out[..done.compressed_len],
            &segment[done.uncompressed_len..],
        ]
        .concat(),
    )
}

pub(super) fn receive(
    table: &mut Tcphc<'_>,
    end: usize,
    bytes: &[u8],
    now: Instant,
) -> Result<Vec<u8>, HeaderDrop> {
    let mut out = [0; 60];
    let done = table.decompress(&flow(end), bytes, now, &mut out)?;
    Ok([&out[..done.uncompressed_len], &bytes[done.compressed_len..]].concat())
}

/// A mote and a router with a connection between them, and the next numbers.
pub(super) fn connected() -> ([Tcphc<'static>; 2], u32, u32) {
    let mut ends = [End::Mote, End::Router].map(|end| table(end, 2, Duration::ZERO));
    let (seq, ack) = (0x1234_0000, 0x5678_0000);
    let steps = [
        (0, segment(0, PORTS, seq, 0, Flags::SYN, 0)),
        (
            1,
            segment(1, PORTS, ack, seq + 1, Flags::SYN | Flags::ACK, 0),
        ),
        (0, segment(0, PORTS, seq + 1, ack + 1, Flags::ACK, 0)),
    ];
    for (end, segment) in steps {
        let bytes = send(&mut ends[end], end, &segment, at(1)).unwrap();
        assert_eq!(bytes[0], 0x01, "the opening travels whole");
        let got = receive(&mut ends[1 - end], 1 - end, &bytes, at(1));
        assert_eq!(got, Ok(segment));
    }
    (ends, seq + 1, ack + 1)
}

/// A context identifier in every segment, chosen by who opens.
#[test]
fn identifiers_say_who_chose_them() {
    for (end, node) in [(End::Mote, 0), (End::Router, 1)] {
        let mut table = table(end, 1, Duration::ZERO);
        let syn = segment(node, PORTS, 7, 0, Flags::SYN, 0);
        let bytes = send(&mut table, node, &syn, at(1)).unwrap();
        assert_eq!(bytes[1] & 0x80 != 0, end == End::Router);
    }
    // Between two motes the lower address has the lower half.
    for node in [0, 1] {
        let mut table = table(End::Mote, 1, Duration::ZERO);
        let within = Flow {
            within_mesh: true,
            ..flow(node)
        };
        let syn = segment(node, PORTS, 7, 0, Flags::SYN, 0);
        let mut out = [0; 80];
        let done = table.compress(&within, &syn, Origin::Own, at(1), &mut out);
        assert!(done.is_ok());
        assert_eq!(out[1] & 0x80 != 0, node == 1);
    }
}

#[test]
fn connections_open_plain_after_a_start() {
    let mut table = table(End::Mote, 1, REUSE_AFTER);
    let syn = segment(0, PORTS, 7, 0, Flags::SYN, 0);
    assert_eq!(send(&mut table, 0, &syn, at(119)), None);
    assert!(send(&mut table, 0, &syn, at(120)).is_some());
    assert_eq!(table.counters().sent, [1, 0, 0, 1]);
}

#[test]
fn a_full_table_leaves_newcomers_plain_until_a_context_is_idle() {
    let mut table = table(End::Mote, 2, Duration::ZERO);
    let syn = |port| segment(0, (port, 80), 7, 0, Flags::SYN, 0);
    assert!(send(&mut table, 0, &syn(1), at(1)).is_some());
    assert!(send(&mut table, 0, &syn(2), at(30)).is_some());
    assert_eq!(send(&mut table, 0, &syn(3), at(60)), None);
    assert!(
        send(&mut table, 0, &syn(3), at(63)).is_some(),
        "1 was idle for a minute"
    );
    assert_eq!(send(&mut table, 0, &syn(4), at(64)), None, "2 was not");
}

#[test]
fn one_node_takes_no_more_than_its_share() {
    let config = Config {
        end: End::Router,
        quiet: Duration::ZERO,
        contexts_per_remote: 2,
        ..Config::default()
    };
    let contexts = std::vec![Context::EMPTY; 4].leak();
    let mut table = Tcphc::new(contexts, config, at(0), &mut Rng::from_seed([3, 4]));
    let syn = |port| segment(1, (port, 80), 7, 0, Flags::SYN, 0);
    for (port, fits) in [(1, true), (2, true), (3, false)] {
        assert_eq!(
            send(&mut table, 1, &syn(port), at(1)).is_some(),
            fits,
            "{port}"
        );
    }
}

#[test]
fn identifiers_rest_before_they_come_again() {
    let mut table = table(End::Mote, 1, Duration::ZERO);
    let mut used = std::collections::BTreeMap::new();
    let mut refused = 0;
    for second in 0..600u64 {
        // Each closes at once by a reset, and its slot goes to the next.
        let port = second as u16 + 1;
        let syn = segment(0, (port, 80), 7, 0, Flags::SYN, 0);
        let Some(bytes) = send(&mut table, 0, &syn, at(second)) else {
            refused += 1;
            continue;
        };
        let rst = segment(0, (port, 80), 8, 0, Flags::RST, 0);
        send(&mut table, 0, &rst, at(second)).unwrap();
        if let Some(before) = used.insert(bytes[1], second) {
            assert!(second - before >= 120, "{} after {before}", second);
        }
    }
    assert!(refused < 600 - 128, "{refused}");
}

#[test]
fn a_header_that_does_not_fit_goes_plain() {
    let mut table = table(End::Mote, 1, Duration::ZERO);
    let syn = segment(0, PORTS, 7, 0, Flags::SYN, 0);
    let mut short = [0; 21];
    let done = table.compress(&flow(0), &syn, Origin::Own, at(1), &mut short);
    assert_eq!(done, Err(Plain));
    let ack = segment(0, PORTS, 8, 9, Flags::ACK, 0);
    let next = send(&mut table, 0, &ack, at(2)).unwrap();
    assert_eq!(
        next[0], 0x01,
        "the peer has no context: a whole header makes one"
    );
}

/// Sequence and acknowledgment number and window: low bytes, or nothing; no deltas.
#[test]
fn headers_are_as_long_as_promised() {
    let ([mut mote, mut router], mut seq, ack) = connected();
    let data = Flags::ACK | Flags::PSH;
    for round in 0..6 {
        let segment_up = segment(0, PORTS, seq, ack, data, 40);
        let up = send(&mut mote, 0, &segment_up, at(2)).unwrap();
        seq += 40;
        assert_eq!(receive(&mut router, 1, &up, at(2)), Ok(segment_up));
        let segment_down = segment(1, PORTS, ack, seq, Flags::ACK, 0);
        let down = send(&mut router, 1, &segment_down, at(2)).unwrap();
        assert_eq!(receive(&mut mote, 0, &down, at(2)), Ok(segment_down));
        if round > 3 {
            assert_eq!((up.len() - 40, down.len()), (7, 7));
        }
    }
}

/// No signalling: one retransmission repairs.
#[test]
fn a_lost_context_costs_one_retransmission() {
    for lost in [0, 1] {
        let (mut ends, seq, ack) = connected();
        ends[lost] = table([End::Mote, End::Router][lost], 2, Duration::ZERO);
        // Identifiers start at random: by bad luck at the old one, and it costs one more.
        ends[lost].next_cid ^= 1;
        let first = segment(0, PORTS, seq, ack, Flags::ACK, 40);
        let bytes = send(&mut ends[0], 0, &first, at(2)).unwrap();
        if lost == 1 {
            assert_eq!(
                receive(&mut ends[1], 1, &bytes, at(2)),
                Err(HeaderDrop::NoContext)
            );
        }
        let again = send(&mut ends[0], 0, &first, at(3)).unwrap();
        assert_eq!(again[0], 0x01, "nothing was heard since: all of it again");
        assert_eq!(receive(&mut ends[1], 1, &again, at(3)), Ok(first));
        let answer = segment(1, PORTS, ack, seq + 40, Flags::ACK, 0);
        let bytes = send(&mut ends[1], 1, &answer, at(3)).unwrap();
        assert_eq!(receive(&mut ends[0], 0, &bytes, at(3)), Ok(answer));
    }
}

#[test]
fn what_comes_from_outside_is_checked_before_it_counts() {
    let (mut ends, seq, ack) = connected();
    let before = std::format!("{:?}", ends[1].contexts);
    let mut damaged = segment(1, PORTS, ack, seq, Flags::ACK, 9);
    damaged[25] ^= 1;
    let far = segment(1, PORTS, ack.wrapping_add(100_000), seq, Flags::ACK, 9);
    let unsent = segment(1, PORTS, ack, seq + 1, Flags::ACK, 9);
    for (name, segment) in [
        ("damaged", damaged),
        ("far", far),
        ("acks what never came", unsent),
    ] {
        let mut out = [0; 80];
        let done = ends[1].compress(&flow(1), &segment, Origin::Outside, at(2), &mut out);
        assert_eq!(done, Err(Plain), "{name}");
        assert_eq!(std::format!("{:?}", ends[1].contexts), before, "{name}");
    }
}

#[test]
fn connections_that_are_over_leave_their_slot() {
    let (mut ends, seq, ack) = connected();
    let fin = Flags::ACK | Flags::FIN;
    for (end, segment) in [
        (0, segment(0, PORTS, seq, ack, fin, 0)),
        (1, segment(1, PORTS, ack, seq + 1, fin, 0)),
        (0, segment(0, PORTS, seq + 1, ack + 1, Flags::ACK, 0)),
    ] {
        let bytes = send(&mut ends[end], end, &segment, at(2)).unwrap();
        assert!(receive(&mut ends[1 - end], 1 - end, &bytes, at(2)).is_ok());
    }
    for end in &ends {
        let over = end
            .contexts
            .iter()
            .filter(|c| c.state() == State::Quarantine);
        assert_eq!(over.count(), 1);
    }
}

/// Whose numbers are not those that its receiver waits for: that one ignores it (RFC 5961 §3).
#[test]
fn a_strangers_reset_ends_nothing() {
    let data = Flags::ACK | Flags::PSH;
    for (from, off) in [(1, 100), (1, -100), (0, 100)] {
        let (mut ends, seq, ack) = connected();
        let number = [seq, ack][from].wrapping_add_signed(off);
        let other = [ack, seq][from];
        let rst = segment(from, PORTS, number, other, Flags::RST | Flags::ACK, 0);
        if let Some(bytes) = send(&mut ends[from], from, &rst, at(2)) {
            assert_eq!(
                receive(&mut ends[1 - from], 1 - from, &bytes, at(2)),
                Ok(rst)
            );
        }
        for end in &mut ends {
            let states: Vec<State> = end.contexts.iter().map(Context::state).collect();
            assert!(states.contains(&State::Active), "{from} {off}: {states:?}");
            let syn = segment(0, (7, 80), 7, 0, Flags::SYN, 0);
            end.contexts[0].set_state(State::Active);
            end.contexts[0].touch(at(2));
            assert_eq!(send(end, 0, &syn, at(3)), None, "nor does it free a slot");
        }
        // And what follows travels as before.
        let next = segment(0, PORTS, seq, ack, data, 40);
        let bytes = send(&mut ends[0], 0, &next, at(3)).unwrap();
        assert_eq!(bytes[0] & 0xf0, 0xc0, "{from} {off}");
        assert_eq!(receive(&mut ends[1], 1, &bytes, at(3)), Ok(next));
    }
}

/// Full headers for the opening, resets, URG; whole fields for what is sent again.
///
/// A reset with the right number ends the context at both ends; if the connection goes on all
/// the same, so does the context.
#[test]
fn a_reset_parks_a_context_until_its_connection_goes_on() {
    let (mut ends, seq, ack) = connected();
    let rst = segment(1, PORTS, ack, seq, Flags::RST | Flags::ACK, 0);
    let bytes = send(&mut ends[1], 1, &rst, at(2)).unwrap();
    assert_eq!(bytes[0], tcphc::FULL, "resets travel whole");
    assert_eq!(receive(&mut ends[0], 0, &bytes, at(2)), Ok(rst));
    let is = |end: &Tcphc<'_>, state| end.contexts.iter().any(|c| c.state() == state);
    assert!(ends.iter().all(|end| is(end, State::Quarantine)));
    let data = segment(0, PORTS, seq, ack, Flags::ACK, 40);
    let bytes = send(&mut ends[0], 0, &data, at(2)).unwrap();
    assert_eq!(receive(&mut ends[1], 1, &bytes, at(2)), Ok(data));
    assert!(ends.iter().all(|end| is(end, State::Active)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Arbitrary bytes, and headers with some bits turned: no panic, and no change without a
    /// checksum that verifies.
    #[test]
    fn hostile_input_changes_nothing(
        mut bytes in prop::collection::vec(any::<u8>(), 0..90), kind in 0u8..5, turned: (u8, u8), cid: bool,
    ) {
        let (mut ends, seq, ack) = connected();
        let known = ends[1].contexts[1].cid;
        assert_ne!(ends[1].contexts[1].state(), State::Free);
        if kind == 4 {
            let whole = segment(0, PORTS, seq, ack, Flags::ACK, 20);
            bytes = send(&mut ends[0], 0, &whole, at(2)).unwrap();
            let at = usize::from(turned.0) % bytes.len();
            bytes[at] ^= turned.1;
        } else if let Some(first) = bytes.first_mut() {
            *first = match kind { 0 => *first, 1 => 0x01, 2 => 0x8f, _ => *first & 0x0f | 0xc0 };
            if let (true, Some(at)) = (cid, bytes.get_mut(if kind == 1 { 1 } else { 2 })) {
                *at = known;
            }
        }
        let before = std::format!("{:?}", ends[1].contexts);
        match receive(&mut ends[1], 1, &bytes, at(2)) {
            Ok(restored) => {
                let flow = flow(1);
                prop_assert!(tcp::is_checksum_valid(&flow.remote, &flow.local, &restored));
            }
            Err(_) => prop_assert_eq!(std::format!("{:?}", ends[1].contexts), before),
        }
        // And as plain TCP, and as something from outside to be compressed.
        let mut out = [0; 80];
        ends[0].on_plain(&flow(0), &bytes, at(3));
        let _ = ends[0].compress(&flow(0), &bytes, Origin::Outside, at(3), &mut out);
        let _ = ends[0].compress(&flow(0), &bytes, Origin::Own, at(3), &mut out[..7]);
    }
}

#[test]
fn no_loss_and_no_more_than_two_timeouts() {
    for setup in driver::traffic() {
        let mut world = World::new(
            Setup {
                trouble: 0,
                ..setup
            },
            |_| {},
        );
        world.run(3_000);
        let seen = world.seen;
        assert!(seen.timeouts <= 2, "{setup:?}: {seen:?}");
        assert_eq!(seen.dropped, 0, "{setup:?}: {seen:?}");
    }
}
