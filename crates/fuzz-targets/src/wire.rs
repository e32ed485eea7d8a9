//! Parsers: nothing panics, and what a parser yields is written and read back the same.

use std::net::Ipv6Addr;

use motet::lowpan::{self, Contexts, HeaderForms, LinkPair, Routing, complete_udp_checksum};
use motet::wire::cursor::{Full, Writer};
use motet::wire::ndp::NdpOptions;
use motet::wire::rpl_option::{self, Rpi};
use motet::wire::source_route::{self, SourceRoute};
use motet::wire::{
    LinkAddr, icmpv6, ieee802154, ipv6, lorh, lowpan_dispatch, lowpan_frag, lowpan_iphc,
    lowpan_mesh, lowpan_nhc, rpl, tcp, tcphc, udp,
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
        8 => tcphc(bytes),
        9 => rpl(bytes),
        10 => rpl_option(bytes),
        11 => source_route(bytes),
        _ => lorh(bytes),
    }
}

/// How many parsers [`run`] chooses from.
pub(crate) const PARSERS: u8 = 13;

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
    let _broadcast = lowpan_mesh::Broadcast::parse(bytes);
    if let Ok((header, _)) = lowpan_mesh::Header::parse(bytes) {
        let mut out = [0; lowpan_mesh::LEN_MAX];
        let len = header.emit(&mut out).expect("18 bytes at most");
        let again = lowpan_mesh::Header::parse(&out[..len]).expect("what was written is read");
        assert_eq!(again.0, header);
    }
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
        for option in options.iter() {
            let again = written(bytes.len() + 8, |w| option.emit(w));
            let again = NdpOptions::parse(&again).expect("what was written is read");
            assert!(again.iter().eq([option]));
        }
    }
}

/// The bytes that `emit` writes, at most `len_max`.
fn written(len_max: usize, emit: impl FnOnce(&mut Writer<'_>) -> Result<(), Full>) -> Vec<u8> {
    let mut out = vec![0; len_max];
    let mut w = Writer::new(&mut out);
    emit(&mut w).expect("it fits");
    let len = w.written();
    out.truncate(len);
    out
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

/// A control message behind its ICMPv6 code.
fn rpl(bytes: &[u8]) {
    let Some((code, body)) = bytes.split_first() else {
        return;
    };
    let Ok(message) = rpl::Message::parse(*code, body) else {
        return;
    };
    let again = written(body.len() + 8, |w| message.emit(w));
    assert_eq!(rpl::Message::parse(again[1], &again[4..]), Ok(message));
    let options = match message {
        rpl::Message::Dis(dis) => dis.options,
        rpl::Message::Dio(dio) => dio.options,
        rpl::Message::Dao(dao) => dao.options,
        rpl::Message::DaoAck(ack) => ack.options,
    };
    for option in options.iter() {
        let again = written(300, |w| option.emit(w));
        let again = rpl::RplOptions::parse(&again).expect("what was written is read");
        assert!(again.iter().eq([option]));
        if let rpl::RplOption::Metrics(metrics) = option {
            assert!(metrics.etx().is_none() || metrics.iter().count() > 0);
        }
    }
}

fn rpl_option(bytes: &[u8]) {
    let _content = Rpi::parse_content(bytes);
    if let Some((kind, rpi)) = Rpi::parse(bytes) {
        let again = rpi.header(bytes[0], kind);
        assert_eq!(Rpi::parse(&again), Some((kind, rpi)));
    }
}

/// A source routing header: a packet is advanced along it to its end, and its addresses are written
/// and read again.
fn source_route(bytes: &[u8]) {
    let Ok(route) = SourceRoute::parse(bytes) else {
        return;
    };
    let addrs: Vec<Ipv6Addr> = route.addrs(MESH).collect();
    assert_eq!(addrs.len(), route.len());
    let mut packet = [&[0; 24][..], &MESH.octets(), bytes].concat();
    packet[6] = ipv6::next_header::ROUTING;
    let mut advanced = 0;
    while source_route::advance(&mut packet).is_some() {
        advanced += 1;
    }
    assert_eq!(advanced, route.segments_left);
    let mut out = vec![0; 5000];
    let mut w = Writer::new(&mut out);
    if source_route::emit(&mut w, route.next_header, &MESH, &addrs).is_ok() {
        let len = w.written();
        let again = SourceRoute::parse(&out[..len]).expect("what was written is read");
        assert!(again.addrs(MESH).eq(addrs));
    }
}

/// 6LoWPAN routing headers (6LoRH): each one that is read is written and read again, and must be
/// equal.
fn lorh(bytes: &[u8]) {
    let Ok((headers, rest)) = lorh::RoutingHeaders::parse(bytes) else {
        return;
    };
    assert!(rest.len() <= bytes.len());
    if let Some(rpi) = headers.rpi {
        let again = written(8, |w| lorh::emit_rpi(w, rpi));
        let (again, _) = lorh::RoutingHeaders::parse(&again).expect("what was written is read");
        assert_eq!(again.rpi, Some(rpi));
    }
    if let Some(tunnel) = headers.tunnel {
        let encapsulator = tunnel.encapsulator(&MESH);
        let hop_limit = tunnel.hop_limit;
        let again = written(20, |w| {
            lorh::emit_tunnel(w, hop_limit, &encapsulator, &MESH)
        });
        let (again, _) = lorh::RoutingHeaders::parse(&again).expect("what was written is read");
        let again = again.tunnel.expect("a tunnel");
        assert_eq!(again.hop_limit, tunnel.hop_limit);
        assert_eq!(again.encapsulator(&MESH), encapsulator);
    }
    let path: Vec<Ipv6Addr> = headers.segments.iter(MESH).collect();
    assert_eq!(path.is_empty(), headers.segments.is_empty());
    let again = written(path.len() * 18, |w| lorh::emit_segments(w, &MESH, &path));
    let (again, _) = lorh::RoutingHeaders::parse(&again).expect("what was written is read");
    assert!(again.segments.iter(MESH).eq(path));
}

/// Header decompression of a whole packet: the result is a packet that stays the same when it is
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
    let routing = Routing {
        root: MESH,
        is_compressed: kind & 128 != 0,
        option_type: rpl_option::TYPE_9008,
    };
    contexts.set_routing((kind & 64 != 0).then_some(routing));
    let size = (kind & 32 != 0).then(|| input.u16());
    let bytes = input.rest();
    let mut packet = vec![0; 4096 + bytes.len()];
    let Ok(done) = lowpan::decompress(bytes, link, &contexts, size, &mut packet) else {
        return;
    };
    let payload = &bytes[done.compressed_len..];
    packet.truncate(done.uncompressed_len);
    packet.extend(payload);
    let whole = match size {
        None => packet.len(),
        Some(size) => usize::from(size).saturating_add_signed(done.unnumbered.into()),
    };
    let (header, _) = ipv6::Header::parse_start(&packet).expect("an IPv6 header");
    assert_eq!(ipv6::HEADER_LEN + usize::from(header.payload_len), whole);
    if size.is_some() {
        return;
    }
    if done.udp_checksum_elided {
        complete_udp_checksum(&mut packet);
    }
    let (mut again, forms) = through(&packet, done.forms(), link, &contexts);
    if again != packet {
        // 6LoRH forgets the addresses that a packet has visited, and only those.
        assert!(
            contexts
                .routing()
                .is_some_and(|routing| routing.is_compressed)
        );
        packet = again;
        (again, _) = through(&packet, forms, link, &contexts);
    }
    assert_eq!(again, packet);
}

/// A packet compressed and restored, and what goes with it then.
fn through(
    packet: &[u8],
    forms: HeaderForms,
    link: LinkPair,
    contexts: &Contexts,
) -> (Vec<u8>, HeaderForms) {
    // The RPL option takes nine bytes at most.
    let mut small = vec![0; packet.len() + 9];
    let compressed = lowpan::compress_form(packet, forms, link, contexts, &mut small);
    let compressed = compressed.expect("it fits");
    assert!(compressed.compressed_len <= compressed.uncompressed_len + 9);
    small.truncate(compressed.compressed_len);
    small.extend(&packet[compressed.uncompressed_len..]);
    let mut again = vec![0; packet.len() + 64];
    let restored = lowpan::decompress(&small, link, contexts, None, &mut again)
        .expect("what was compressed is decompressed");
    again.truncate(restored.uncompressed_len);
    again.extend(&small[restored.compressed_len..]);
    if contexts.routing().is_some() {
        assert_eq!(restored.rpi, forms.rpi);
    }
    (again, restored.forms())
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
