//! Reassembly: fragments of any shape in any order, against a plain model of what they hold.

use std::collections::HashMap;

use motet::lowpan::datagram::{Datagrams, FragmentHandling, FragmentOutcome, Key, Record};
use motet::lowpan::{First, HeaderForms};
use motet::random::Rng;
use motet::time::{Duration, Instant};

use crate::input::Input;
use crate::wire::address;

/// The value of each byte in the fragment that brought it first.
type Model = HashMap<(u16, u16, bool), HashMap<usize, u8>>;

/// Feeds a table; a packet that comes out holds only bytes that went in.
pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let any_order = input.flag();
    let (mut records, mut bodies) = ([const { Record::EMPTY }; 3], vec![0; 2 * BODY_LEN]);
    let mut rng = Rng::from_seed([1, 2]);
    let mut table = Datagrams::new(&mut records, &mut bodies, BODY_LEN, any_order, &mut rng);
    let mut model = Model::new();
    let mut now = Instant::ORIGIN;
    while !input.is_empty() {
        now += Duration::from_millis(u64::from(input.u8()) * 40);
        let op = input.u8();
        let key = Key {
            from: address(true, op >> 6),
            tag: u16::from(op >> 4 & 1),
            size: u16::from(input.u8()) * 4 + 8,
        };
        let outcome = match op & 7 {
            0..=2 => {
                let piece = input.block();
                note(&mut model, key, 0, piece);
                let next_hop = address(true, 9);
                let handling = match op & 8 {
                    0 => FragmentHandling::Reassemble,
                    _ => FragmentHandling::Forward { next_hop },
                };
                let first = First {
                    bytes: piece,
                    forms: HeaderForms::default(),
                    unnumbered: unnumbered(key),
                };
                table.on_first(key, first, handling, op & 64 == 0, now)
            }
            3..=5 => {
                // A header whose offset is zero does not parse.
                let offset = usize::from(input.u8()).max(1) * 8;
                let piece = input.block();
                let place = offset.saturating_add_signed(unnumbered(key).into());
                note(&mut model, key, place, piece);
                table.on_next(key, offset, piece, now)
            }
            6 => {
                table.expire(now);
                assert!(table.next_deadline().is_none_or(|at| at > now));
                continue;
            }
            _ => {
                let tag = table.new_tag();
                table.fragment_lost(tag.wrapping_sub(u16::from(input.u8() & 3)));
                continue;
            }
        };
        if let FragmentOutcome::Complete(id) = outcome {
            let (mut whole, _) = table.lend(id).expect("it is whole");
            let packet = whole.packet();
            let len = usize::from(key.size).saturating_add_signed(unnumbered(key).into());
            assert_eq!(packet.len(), len);
            let known = &model[&(key.tag, key.size, key.from == address(true, 0))];
            for (at, byte) in packet.iter().enumerate() {
                assert!(known.contains_key(&at), "byte {at} never came: {byte}");
            }
            table.give_back(whole);
        }
        assert!(table.len() <= 3);
    }
    table.expire(now + Duration::from_secs(3600));
    assert!(table.is_empty(), "a packet is kept for ever");
}

/// How much more of a packet there is than fragment headers number: some packets have routing
/// headers, others an option that is taken out.
const fn unnumbered(key: Key) -> i16 {
    match (key.tag, key.size) {
        (0, _) => 0,
        (_, ..300) => 56,
        _ => -8,
    }
}

fn note(model: &mut Model, key: Key, offset: usize, piece: &[u8]) {
    let known = model
        .entry((key.tag, key.size, key.from == address(true, 0)))
        .or_default();
    for (at, byte) in piece.iter().enumerate() {
        known.entry(offset + at).or_insert(*byte);
    }
}

const BODY_LEN: usize = 400;
