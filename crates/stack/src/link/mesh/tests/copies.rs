//! What is a copy, and what is not.

use super::*;
use crate::wire::cursor::copy;
use crate::wire::ipv6::TrafficClass;
use crate::wire::tcp::{Options, fill_checksum};
use core::net::Ipv6Addr;
use std::vec;
use std::vec::Vec;

/// The fields of a test's segment.
#[derive(Clone, Copy)]
pub(in crate::link::mesh) struct Made {
    pub(in crate::link::mesh) src: u16,
    pub(in crate::link::mesh) port: u16,
    pub(in crate::link::mesh) seq: u32,
    pub(in crate::link::mesh) ack: u32,
    pub(in crate::link::mesh) flags: Flags,
    pub(in crate::link::mesh) stamp: Option<u32>,
    pub(in crate::link::mesh) payload: &'static [u8],
    pub(in crate::link::mesh) class: u8,
    pub(in crate::link::mesh) label: u32,
    /// An extension header before TCP: its kind.
    pub(in crate::link::mesh) extension: Option<u8>,
}

impl Made {
    pub(in crate::link::mesh) const SYN: Self = Self {
        src: 1,
        port: 1_000,
        seq: 7,
        ack: 0,
        flags: Flags::SYN,
        stamp: None,
        payload: &[],
        class: 0,
        label: 3,
        extension: None,
    };

    const DATA: Self = Self {
        ack: 99,
        flags: Flags::ACK,
        payload: b"some bytes",
        ..Self::SYN
    };
}

/// The place of the first of these packets of which `newer` is a copy.
fn first_copied<'a>(newer: &[u8], older: impl Iterator<Item = &'a [u8]>) -> Option<usize> {
    copied(newer, older.map(|older| (true, older))).map(|(nth, _)| nth)
}

pub(in crate::link::mesh) fn packet(made: &Made) -> Vec<u8> {
    let src = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, made.src);
    let dst = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
    let mut options = Options::NONE;
    options.timestamps = made.stamp.map(|value| (value, 0));
    let header = TcpHeader {
        src_port: made.port,
        dst_port: 7,
        seq: made.seq,
        ack: made.ack,
        flags: made.flags,
        window: 1_000,
        urgent: 0,
        options,
    };
    let mut segment = vec![0; header.header_len() + made.payload.len()];
    let at = header.emit(&mut segment).unwrap();
    copy(&mut segment[at..], made.payload);
    fill_checksum(&src, &dst, &mut segment);
    let extension: Vec<u8> = match made.extension {
        Some(_) => vec![tcp::NEXT_HEADER, 0, 1, 4, 0, 0, 0, 0],
        None => Vec::new(),
    };
    let ip = Ipv6Header {
        traffic_class: TrafficClass(made.class),
        flow_label: made.label,
        payload_len: (extension.len() + segment.len()) as u16,
        next_header: made.extension.unwrap_or(tcp::NEXT_HEADER),
        hop_limit: 64,
        src,
        dst,
    };
    let mut bytes = vec![0; 40];
    ip.emit(&mut bytes).unwrap();
    [bytes, extension, segment].concat()
}

fn is_copy(older: &Made, newer: &Made) -> bool {
    first_copied(&packet(newer), [&packet(older)[..]].into_iter()) == Some(0)
}

#[test]
fn a_segment_sent_again_is_a_copy() {
    let (syn, data) = (Made::SYN, Made::DATA);
    let fin = Made {
        flags: Flags::FIN | Flags::ACK,
        payload: &[],
        ..data
    };
    let syn_ack = Made {
        flags: Flags::SYN | Flags::ACK,
        ..syn
    };
    for (name, older, newer) in [
        (
            "a SYN",
            syn,
            Made {
                stamp: Some(5),
                ..syn
            },
        ),
        (
            "ECN is asked for no more",
            Made {
                flags: Flags::SYN | Flags::ECE | Flags::CWR,
                ..syn
            },
            syn,
        ),
        (
            "without options",
            Made {
                stamp: Some(5),
                ..syn
            },
            syn,
        ),
        (
            "a SYN-ACK",
            syn_ack,
            Made {
                label: 4,
                ..syn_ack
            },
        ),
        ("data", data, Made { ack: 120, ..data }),
        ("data, no longer ECT", Made { class: 2, ..data }, data),
        (
            "data of another class",
            data,
            Made {
                class: 0xb8,
                ..data
            },
        ),
        ("a FIN", fin, fin),
        (
            "behind options",
            Made {
                extension: Some(60),
                ..data
            },
            Made {
                extension: Some(60),
                ..data
            },
        ),
    ] {
        assert!(is_copy(&older, &newer), "{name}");
    }
}

#[test]
fn other_segments_are_none() {
    let (syn, data) = (Made::SYN, Made::DATA);
    let ack = Made {
        payload: &[],
        ..data
    };
    let reset = Made {
        flags: Flags::RST,
        ..syn
    };
    for (name, older, newer) in [
        ("another attempt", syn, Made { seq: 8, ..syn }),
        ("another flow", syn, Made { port: 1_001, ..syn }),
        ("another host", syn, Made { src: 3, ..syn }),
        (
            "a SYN and a SYN-ACK",
            syn,
            Made {
                flags: Flags::SYN | Flags::ACK,
                ..syn
            },
        ),
        ("the next bytes", data, Made { seq: 17, ..data }),
        (
            "more of them",
            data,
            Made {
                payload: b"some bytes and more",
                ..data
            },
        ),
        (
            "others",
            data,
            Made {
                payload: b"same bytes",
                ..data
            },
        ),
        (
            "pushed",
            data,
            Made {
                flags: Flags::ACK | Flags::PSH,
                ..data
            },
        ),
        ("pure ACKs", ack, ack),
        ("resets", reset, reset),
        (
            "a mark would be lost",
            Made { class: 3, ..data },
            Made { class: 2, ..data },
        ),
        (
            "other headers before",
            data,
            Made {
                extension: Some(60),
                ..data
            },
        ),
        (
            "fragments",
            Made {
                extension: Some(44),
                ..data
            },
            Made {
                extension: Some(44),
                ..data
            },
        ),
    ] {
        assert!(!is_copy(&older, &newer), "{name}");
    }
    assert!(
        is_copy(&Made { class: 3, ..data }, &Made { class: 3, ..data }),
        "marked again"
    );
}

#[test]
fn a_damaged_packet_is_no_copy() {
    let older = packet(&Made::DATA);
    let newer = packet(&Made {
        ack: 120,
        ..Made::DATA
    });
    assert_eq!(first_copied(&newer, [&older[..]].into_iter()), Some(0));
    // Where the acknowledgment stands: the segment could still be that of `older`.
    let mut damaged = newer.clone();
    damaged[40 + 11] ^= 1;
    assert_eq!(first_copied(&damaged, [&older[..]].into_iter()), None);
    for len in 0..newer.len() {
        assert_eq!(
            first_copied(&newer[..len], [&older[..]].into_iter()),
            None,
            "{len}"
        );
        assert_eq!(
            first_copied(&newer, [&older[..len]].into_iter()),
            None,
            "{len}"
        );
    }
}

#[test]
fn the_place_is_that_of_the_first_copy() {
    let other = packet(&Made {
        port: 1_001,
        ..Made::SYN
    });
    let (old, new) = (
        packet(&Made::SYN),
        packet(&Made {
            stamp: Some(5),
            ..Made::SYN
        }),
    );
    let older = [&other[..], &[], &[9; 60], &old, &old];
    assert_eq!(first_copied(&new, older.into_iter()), Some(3));
    assert_eq!(first_copied(&new, older[..3].iter().copied()), None);
}
