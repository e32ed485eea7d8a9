//! Parsers: nothing panics, and what a parser yields is written and read back the same.

use std::net::Ipv6Addr;

use motet::lowpan::{self, Contexts, LinkPair, complete_udp_checksum};
use motet::wire::cursor::Writer;
use motet::wire::ndp::NdpOptions;
use motet::wire::{
    LinkAddr, icmpv6, ieee802154, ipv6, lowpan_dispatch, lowpan_frag, lowpan_iphc, lowpan_nhc, tcp,
    tcphc, udp,
};

use crate::input::Input;

/// One of the parsers of [`motet::wire`], chosen by the first byte.
pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let parser = input.u8();
    let bytes = input.rest();
    match parser % PARSERS {
        0 => ieee802154(bytes),
        1 => dispatch_and_fragment(bytes),
        2 => iphc(bytes),
        3 => nhc(bytes),
        4 => ipv6(bytes),
        5 => icmpv6(bytes),
        6 => udp(bytes),
        7 => tcp(bytes),
        _ => tcphc(bytes),
    }
}

/// How many parsers [`run`] chooses from.
pub(crate) const PARSERS: u8 = 9;

fn ieee802154(bytes: &[u8]) {
    let _checked = ieee802154::check_fcs(bytes);
    let Ok((header, payload)) = ieee802154::Header::parse(bytes) else {
        return;
    };
    let mut out = [0; 300];
    if let Ok(len) = header.emit_frame(payload, &mut out) {
        let mpdu = ieee802154::check_fcs(&out[..len]).expect("its own FCS");
        let again = ieee802154::Header::parse(mpdu).expect("what was written is read");
        assert_eq!(again, (header, payload));
    }
}

fn dispatch_and_fragment(bytes: &[u8]) {
    let _kind = lowpan_dispatch::classify(bytes);
    if let Ok((header, _)) = lowpan_frag::Header::parse(bytes) {
        let mut out = [0; 8];
        let len = header.emit(&mut out).expect("five bytes at most");
        let again = lowpan_frag::Header::parse(&out[..len]).expect("what was written is read");
        assert_eq!(again.0, header);
    }
}

fn iphc(bytes: &[u8]) {
    if let Ok((header, _)) = lowpan_iphc::Header::parse(bytes) {
        let mut out = [0; 64];
        let mut w = Writer::new(&mut out);
        header
            .emit(&mut w)
            .expect("an IPHC header is at most 41 bytes");
        let len = w.written();
        let again = lowpan_iphc::Header::parse(&out[..len]).expect("what was written is read");
        assert_eq!(again.0, header);
    }
}

fn nhc(bytes: &[u8]) {
    if let Ok((header, _)) = lowpan_nhc::Nhc::parse(bytes) {
        let mut out = [0; 300];
        let mut w = Writer::new(&mut out);
        header
            .emit(&mut w)
            .expect("at most a type, a length and 255 bytes");
        let len = w.written();
        let again = lowpan_nhc::Nhc::parse(&out[..len]).expect("what was written is read");
        assert_eq!(again.0, header);
    }
}

fn ipv6(bytes: &[u8]) {
    let Ok((header, payload)) = ipv6::Header::parse(bytes) else {
        let _start = ipv6::Header::parse_start(bytes);
        return;
    };
    let mut out = [0; ipv6::HEADER_LEN];
    header.emit(&mut out).expect("40 bytes");
    let again = ipv6::Header::parse_start(&out).expect("what was written is read");
    assert_eq!(again.0, header);
    let mut walk = ipv6::Extensions::new(header.next_header, payload);
    while let Ok(Some(extension)) = walk.next() {
        let options = ipv6::options(extension.bytes);
        assert!(options.count() <= extension.bytes.len());
    }
}

fn icmpv6(bytes: &[u8]) {
    if let Ok(message) = icmpv6::Message::parse(bytes) {
        let mut out = vec![0; bytes.len() + 64];
        if let Ok(len) = message.emit(&mut out) {
            let again = icmpv6::Message::parse(&out[..len]).expect("what was written is read");
            assert_eq!(again, message);
        }
    }
    if let Ok(options) = NdpOptions::parse(bytes) {
        assert!(options.iter().count() <= bytes.len() / 8);
    }
}

fn udp(bytes: &[u8]) {
    if let Ok((header, payload)) = udp::Header::parse(bytes) {
        let mut out = [0; 8];
        header.emit(payload.len(), &mut out).expect("eight bytes");
    }
}

fn tcp(bytes: &[u8]) {
    let Ok((header, _)) = tcp::Header::parse(bytes) else {
        return;
    };
    let mut out = [0; 60];
    if let Ok(len) = header.emit(&mut out) {
        let again = tcp::Header::parse(&out[..len]).expect("what was written is read");
        assert_eq!(again.0, header);
    }
}

fn tcphc(bytes: &[u8]) {
    let _lengths = tcphc::lengths(bytes);
    if let Ok((header, _)) = tcphc::Header::parse(bytes) {
        let mut out = [0; 128];
        let mut w = Writer::new(&mut out);
        header
            .emit(&mut w)
            .expect("60 bytes of TCP and what goes before");
        let len = w.written();
        let again = tcphc::Header::parse(&out[..len]).expect("what was written is read");
        assert_eq!(again.0, header);
    }
}

/// Header decompression of a whole packet: what comes out is a packet, and survives being
/// compressed and decompressed again.
pub(crate) fn headers(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let kind = input.u8();
    let link = LinkPair {
        src: address(kind & 1 == 0, 1),
        dst: match kind >> 1 & 3 {
            0 => LinkAddr::BROADCAST,
            one => address(one == 1, 2),
        },
    };
    let mut contexts = Contexts::new();
    if kind & 8 != 0 {
        contexts.set(0, MESH, 64, true);
        contexts.set(5, HOST, 128, kind & 16 != 0);
    }
    let size = (kind & 32 != 0).then(|| input.u16());
    let bytes = input.rest();
    let mut packet = vec![0; 2048 + bytes.len()];
    let Ok(done) = lowpan::decompress(bytes, link, &contexts, size, &mut packet) else {
        return;
    };
    let payload = &bytes[done.compressed_len..];
    packet.truncate(done.uncompressed_len);
    packet.extend(payload);
    let whole = match size {
        None => packet.len(),
        Some(size) => usize::from(size),
    };
    let (header, _) = ipv6::Header::parse_start(&packet).expect("an IPv6 header");
    assert_eq!(ipv6::HEADER_LEN + usize::from(header.payload_len), whole);
    if size.is_some() {
        return;
    }
    if done.udp_checksum_elided {
        complete_udp_checksum(&mut packet);
    }
    let mut small = vec![0; packet.len()];
    let compressed = lowpan::compress(&packet, link, &contexts, &mut small).expect("it fits");
    assert!(compressed.compressed_len <= compressed.uncompressed_len);
    small.truncate(compressed.compressed_len);
    small.extend(&packet[compressed.uncompressed_len..]);
    let mut again = vec![0; packet.len() + 64];
    let restored = lowpan::decompress(&small, link, &contexts, None, &mut again)
        .expect("what was compressed is decompressed");
    again.truncate(restored.uncompressed_len);
    again.extend(&small[restored.compressed_len..]);
    assert_eq!(again, packet);
}

pub(crate) fn address(extended: bool, n: u8) -> LinkAddr {
    match extended {
        true => LinkAddr::Extended([2, 0, 0, 0, 0, 0, 0, n]),
        false => LinkAddr::Short(u16::from(n)),
    }
}

/// The mesh's prefix.
pub(crate) const MESH: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 0);
/// A host beyond the mesh.
pub(crate) const HOST: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
