//! A mote without the feature `plain-rpl`: routing headers come and go as 6LoWPAN has them, and a
//! mesh whose root has others is not joined. `cargo xtask check features` runs it, because tests of
//! the whole workspace have all features.
#![cfg(all(feature = "rpl", not(feature = "plain-rpl")))]

use std::net::Ipv6Addr;

use motet::lowpan::{Contexts, Decompressed, LinkPair, Routing, compress_form, decompress};
use motet::random::Rng;
use motet::rpl::{Candidate, Config, MessageDrop, MessageOutcome, Rpl, RplRole};
use motet::time::Instant;
use motet::wire::LinkAddr;
use motet::wire::rpl_option::{Rpi, TYPE_9008};

const ROOT: Ipv6Addr = Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 1, 0x004d, 0x6f74, 0x6574, 0);

/// A packet of the root's own along three hops, and one from outside in a tunnel along three and
/// along one: as `lowpan/tests/routing.rs` has them of a build with both forms.
const FRAMES: [&[u8]; 3] = [
    &[
        0xf1, 0x81, 0, 1, 2, 0x7a, 0x75, 58, 0, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 3, 1, 1, 1, 1, 1,
        1, 1, 1,
    ],
    &[
        0xf1, 0x82, 0, 1, 2, 3, 0x93, 5, 3, 0xa1, 6, 63, 0x7a, 0x05, 58, 0x20, 1, 0xd, 0xb8, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 3, 1, 1, 1, 1,
    ],
    &[
        0xf1, 0x80, 0, 3, 0xa1, 6, 63, 0x7a, 0x07, 58, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 5, 1, 1, 1, 1,
    ],
];

const fn link(from: u8, to: u8) -> LinkPair {
    const fn addr(id: u8) -> LinkAddr {
        LinkAddr::Extended([0x02, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, id])
    }
    LinkPair {
        src: addr(from),
        dst: addr(to),
    }
}

fn contexts() -> Contexts {
    let mut contexts = Contexts::new();
    assert!(contexts.set(0, ROOT, 64, true));
    contexts.set_routing(Some(Routing {
        root: ROOT,
        is_compressed: true,
        option_type: TYPE_9008,
    }));
    contexts
}

fn restored(frame: &[u8], link: LinkPair) -> (Vec<u8>, Decompressed) {
    let mut out = [0; 1500];
    let done = decompress(frame, link, &contexts(), None, &mut out).unwrap();
    let packet = [&out[..done.uncompressed_len], &frame[done.compressed_len..]].concat();
    (packet, done)
}

fn compressed(packet: &[u8], done: &Decompressed, link: LinkPair) -> Vec<u8> {
    let mut out = [0; 1500];
    let again = compress_form(packet, done.forms(), link, &contexts(), &mut out).unwrap();
    assert_eq!(again.unnumbered, done.unnumbered);
    [
        &out[..again.compressed_len],
        &packet[again.uncompressed_len..],
    ]
    .concat()
}

#[test]
fn what_the_root_sends_is_written_as_it_came() {
    for (frame, link) in FRAMES.into_iter().zip([link(0, 1), link(0, 1), link(2, 3)]) {
        let (packet, done) = restored(frame, link);
        assert_eq!(packet[..1], [0x60]);
        assert_eq!(compressed(&packet, &done, link), frame, "{frame:02x?}");
    }
}

#[test]
fn an_option_comes_as_6lorh_alone() {
    let up = [
        0xf1, 0x83, 5, 3, 0x7a, 0x57, 58, 0, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 3, 1,
    ];
    let (packet, done) = restored(&up, link(1, 0));
    let expected = Rpi {
        sender_rank: 0x0300,
        ..Rpi::default()
    };
    assert_eq!(done.rpi, Some(expected));
    assert_eq!(compressed(&packet, &done, link(1, 0)), up);
    // As hop-by-hop options it stays in its packet, like every option.
    let option = [0x7a, 0x77, 0, 58, 0, 0x23, 4, 0, 0, 3, 0, 1];
    let (packet, done) = restored(&option, link(3, 0));
    assert_eq!((done.rpi, packet.len()), (None, 40 + 8 + 1));
    assert_eq!(
        restored(&compressed(&packet, &done, link(3, 0)), link(3, 0)).0,
        packet
    );
}

/// A DIO of the root with its configuration, whose flags these are.
fn dio(flags: u8) -> Vec<u8> {
    let base = [0, 240, 1, 0, 0x88, 240, 0, 0];
    let configuration = [4, 14, flags, 11, 9, 10, 8, 0, 1, 0, 0, 1, 0, 30, 0, 60];
    [&base[..], &ROOT.octets(), &configuration].concat()
}

#[test]
fn a_mesh_whose_root_does_not_compress_routing_headers_is_not_joined() {
    const DIO: u8 = 1;
    let from = Ipv6Addr::new(0xfe80, 0, 0, 0, 0x004d, 0x6f74, 0x6574, 0);
    for (flags, is_joined) in [(0x30, true), (0x20, true), (0x10, false), (0, false)] {
        let mut candidates = [const { Candidate::EMPTY }; 4];
        let config = Config {
            iid: [0, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 1],
            role: RplRole::Router,
        };
        let mut rpl = Rpl::new(&config, &mut candidates);
        let mut rng = Rng::from_seed([1, 2]);
        rpl.start(Instant::ORIGIN, &mut rng);
        let body = dio(flags);
        let heard = rpl.on_message(from, true, (DIO, &body), Instant::ORIGIN, &mut rng);
        let expected = match is_joined {
            true => Ok(MessageOutcome::Done),
            false => Err(MessageDrop::BadConfiguration),
        };
        assert_eq!(
            (heard, rpl.dodag().is_some()),
            (expected, is_joined),
            "{flags:#x}"
        );
        let refused = u16::from(!is_joined);
        assert_eq!(rpl.dropped(MessageDrop::BadConfiguration), refused);
    }
}
