//! IPv6 packets with their extension headers; IPv4 headers as far as ZEP needs them.
//!
//! Place: after `link` or `lowpan`; the protocol number selects the next layer. Left out:
//! reassembly of IP fragments, which no node of this project accepts. Sources: RFC 8200; RFC 6553
//! and RFC 6554 for RPL's option and source route; the crate `etherparse` for IPv4.

use std::net::Ipv6Addr;

use etherparse::Ipv4HeaderSlice;
use motet::wire::ipv6::{
    self, Ecn, ExtensionHeader, Extensions, Header, TrafficClass, next_header,
};
use motet::wire::rpl_option::{self, Rpi};
use motet::wire::source_route::{self, SourceRoute};
use motet::wire::{icmpv6 as wire_icmpv6, tcp as wire_tcp, udp as wire_udp};

use crate::Decoder;
use crate::model::{Frame, Layer, Value, group, hex8};
use crate::next::{Next, Upper};

/// Explains an IP packet of either version.
pub(super) fn explain<'a>(decoder: &mut Decoder, frame: &mut Frame, packet: &'a [u8]) -> Next<'a> {
    decoder.now.depth += 1;
    if decoder.now.depth > DEPTH_MAX {
        return frame.undecoded("ip", "packets nested too deeply");
    }
    match packet.first().map(|first| first >> 4) {
        Some(4) => explain_v4(frame, packet),
        _ => explain_v6(frame, packet),
    }
}

fn explain_v6<'a>(frame: &mut Frame, packet: &'a [u8]) -> Next<'a> {
    let parsed = if frame.is_cut() {
        Header::parse_start(packet)
    } else {
        Header::parse(packet)
    };
    let (header, payload) = match parsed {
        Ok(found) => found,
        Err(error) => {
            frame.say_broken("IPv6");
            frame.layers.extend(source_alone(packet));
            return frame.malformed("ipv6", error.reason());
        }
    };
    let payload = payload
        .get(..usize::from(header.payload_len))
        .unwrap_or(payload);
    frame.between(header.src, header.dst);
    frame.say("IPv6");
    frame.push(v6_layer(
        &header,
        packet
            .get(..ipv6::HEADER_LEN + payload.len())
            .unwrap_or(packet),
    ));
    let mut extensions = Extensions::new(header.next_header, payload);
    let mut dst = header.dst;
    loop {
        match extensions.next() {
            Ok(None) => break,
            Ok(Some(extension)) => {
                match source_route_of(&extension) {
                    Some(Ok(route)) => {
                        frame.push(source_route_layer(&extension, &route, &header.dst));
                        if route.segments_left > 0 {
                            dst = route.addr(route.len(), &header.dst).unwrap_or(dst);
                        }
                    }
                    Some(Err(error)) => return frame.malformed("extension", error.reason()),
                    None => frame.push(extension_layer(&extension)),
                }
                if extension.kind == next_header::FRAGMENT && is_part(&extension) {
                    frame.say("IPv6 fragment");
                    return frame.undecoded("fragment", "IPv6 fragments are not reassembled");
                }
            }
            Err(error) => return frame.malformed("ipv6", error.reason()),
        }
    }
    let walked = payload.len() - extensions.rest().len();
    let upper = Upper {
        src: header.src.into(),
        dst: dst.into(),
        bytes: extensions.rest(),
        len: usize::from(header.payload_len).saturating_sub(walked),
    };
    Next::Protocol(extensions.next_header(), upper)
}

/// The sender, as far as a header that is not whole names it.
fn source_alone(packet: &[u8]) -> Option<Layer> {
    let src: [u8; 16] = *packet.get(SOURCE_AT..)?.first_chunk()?;
    let is_v6 = packet.first()? >> 4 == 6;
    let src = Ipv6Addr::from(src);
    is_v6.then(|| Layer::new("ipv6", format!("{src} → ?")).hidden("src", src))
}

fn v6_layer(header: &Header, packet: &[u8]) -> Layer {
    let TrafficClass(class) = header.traffic_class;
    Layer::new("ipv6", format!("{} → {}", header.src, header.dst))
        .hidden("src", header.src)
        .hidden("dst", header.dst)
        .with("hop_limit", header.hop_limit)
        .hidden("traffic_class", hex8(class))
        .hidden("dscp", header.traffic_class.dscp())
        .hidden("ecn", ecn_name(header.traffic_class.ecn()))
        .remark(
            "dscp",
            Some(header.traffic_class.dscp()).filter(|dscp| *dscp != 0),
        )
        .remark(
            "ecn",
            Some(ecn_name(header.traffic_class.ecn())).filter(|_| class & 3 != 0),
        )
        .hidden("flow_label", Value::Hex(header.flow_label.into(), 5))
        .remark(
            "flow_label",
            Some(Value::Hex(header.flow_label.into(), 5)).filter(|_| header.flow_label != 0),
        )
        .with("payload_len", header.payload_len)
        .hidden("next_header", header.next_header)
        .with("next", protocol_name(header.next_header))
        .hidden("packet", packet)
}

fn explain_v4<'a>(frame: &mut Frame, packet: &'a [u8]) -> Next<'a> {
    let Ok(header) = Ipv4HeaderSlice::from_slice(packet) else {
        return frame.malformed("ipv4", "IPv4 header truncated or malformed");
    };
    let (src, dst) = (header.source_addr(), header.destination_addr());
    let protocol = header.protocol().0;
    frame.between(src, dst);
    frame.say("IPv4");
    frame.push(
        Layer::new("ipv4", format!("{src} → {dst}"))
            .hidden("src", src.to_string())
            .hidden("dst", dst.to_string())
            .with("ttl", header.ttl())
            .with("total_len", header.total_len())
            .hidden("protocol", protocol)
            .with("next", protocol_name(protocol)),
    );
    let header_len = header.slice().len();
    let total_len = usize::from(header.total_len());
    let available = packet.len().min(total_len);
    let Some(bytes) = packet
        .get(header_len..available)
        .filter(|_| packet.len() >= total_len || frame.is_cut())
    else {
        return frame.malformed("ipv4", "IPv4 payload shorter than its length field");
    };
    if header.more_fragments() || header.fragments_offset().value() != 0 {
        return frame.undecoded("ipv4", "IPv4 fragments are not reassembled");
    }
    let upper = Upper {
        src: src.into(),
        dst: dst.into(),
        bytes,
        len: total_len.saturating_sub(header_len),
    };
    match protocol {
        wire_tcp::NEXT_HEADER | wire_udp::NEXT_HEADER => Next::Protocol(protocol, upper),
        _ => frame.undecoded("ipv4", format!("{} in IPv4", protocol_name(protocol))),
    }
}

/// Explains what a packet carries by a protocol that no layer reads.
pub(super) fn not_read<'a>(frame: &mut Frame, protocol: u8, upper: Upper<'_>) -> Next<'a> {
    frame.payload(upper.bytes);
    if protocol == next_header::NONE {
        frame.say("IPv6, no next header");
        return Next::End;
    }
    let name = protocol_name(protocol);
    frame.say(format_args!("IPv6, {name}"));
    frame.undecoded("ipv6", format!("{name} is not decoded"))
}

/// RPL's source routing header, where the extension header is one.
fn source_route_of<'a>(
    extension: &ExtensionHeader<'a>,
) -> Option<Result<SourceRoute<'a>, source_route::ParseError>> {
    let is_one = extension.kind == next_header::ROUTING
        && extension.bytes.get(2) == Some(&source_route::TYPE);
    is_one.then(|| SourceRoute::parse(extension.bytes))
}

fn source_route_layer(
    extension: &ExtensionHeader<'_>,
    route: &SourceRoute<'_>,
    dst: &Ipv6Addr,
) -> Layer {
    let addrs: Vec<Value> = route.addrs(*dst).map(Value::from).collect();
    extension_layer(extension).with("addresses", addrs)
}

/// RPL packet information, as an option (RFC 6553) or compressed (RFC 8138).
pub(super) fn rpi_fields(layer: Layer, rpi: Rpi) -> Layer {
    layer
        .with("rpl_instance", rpi.instance)
        .with("down", rpi.down)
        .with("rank_error", rpi.rank_error)
        .with("forwarding_error", rpi.forwarding_error)
        .with("sender_rank", rpi.sender_rank)
}

fn extension_layer(extension: &ExtensionHeader<'_>) -> Layer {
    let layer = Layer::new("extension", protocol_name(extension.kind))
        .hidden("kind", extension.kind)
        .hidden("len", extension.bytes.len())
        .hidden("next_header", extension.next_header)
        .hidden("bytes", extension.bytes);
    match (extension.kind, extension.bytes) {
        (next_header::HOP_BY_HOP | next_header::DESTINATION_OPTIONS, bytes) => {
            let options = ipv6::options(bytes).map(|option| match option {
                Ok(option) => header_option(option.kind, option.data),
                Err(error) => Value::from(error.reason()),
            });
            layer.with("options", options.collect::<Vec<_>>())
        }
        (next_header::ROUTING, [_, _, kind, segments_left, ..]) => layer
            .with("routing_type", *kind)
            .with("segments_left", *segments_left),
        (next_header::FRAGMENT, [_, _, high, low, a, b, c, d]) => layer
            .with("offset", u16::from_be_bytes([*high, *low]) & !7)
            .with("more", low & 1 != 0)
            .with(
                "identification",
                Value::Hex(u32::from_be_bytes([*a, *b, *c, *d]).into(), 8),
            ),
        _ => layer,
    }
}

/// An option of a hop-by-hop or destination options header; RPL's by name (RFC 6553 §3).
fn header_option(kind: u8, data: &[u8]) -> Value {
    match (kind, Rpi::parse_content(data)) {
        (rpl_option::TYPE_6553 | rpl_option::TYPE_9008, Ok(rpi)) => {
            Value::Group(rpi_fields(Layer::new("", ""), rpi).fields)
        }
        _ => group([("option", hex8(kind)), ("data", data.into())]),
    }
}

/// Whether a fragment header belongs to a packet in pieces; a lone one is harmless (RFC 6946).
fn is_part(extension: &ExtensionHeader<'_>) -> bool {
    matches!(extension.bytes, [_, _, high, low, ..] if *high != 0 || low & !6 != 0)
}

/// The packet that caused an error message, in words; it is rarely whole.
pub(super) fn about(packet: &[u8]) -> Option<String> {
    let (header, payload) = Header::parse_start(packet).ok()?;
    let ports = match (header.next_header, payload) {
        (wire_tcp::NEXT_HEADER | wire_udp::NEXT_HEADER, [a, b, c, d, ..]) => {
            format!(
                " {} → {}",
                u16::from_be_bytes([*a, *b]),
                u16::from_be_bytes([*c, *d])
            )
        }
        _ => String::new(),
    };
    Some(format!(
        "{} → {} {}{ports}",
        header.src,
        header.dst,
        protocol_name(header.next_header)
    ))
}

/// Says of a first fragment whose packet it begins: in words, and for programs.
pub(super) fn begins(frame: &mut Frame, packet: &[u8]) {
    let mut layers = frame.layers.iter_mut();
    if let Some(layer) = layers.rfind(|layer| layer.name == "fragment") {
        let shown = std::mem::replace(layer, Layer::new("fragment", ""));
        *layer = ends(shown, packet);
    }
    if let Some(about) = about(packet) {
        frame.summary = format!("{}  of {about}", frame.summary);
    }
}

/// Adds to `layer`, for programs, the ends of a packet of which only the start is here. Of a packet
/// within another one: those of the inner one, as far as it is here.
fn ends(layer: Layer, packet: &[u8]) -> Layer {
    ends_within(layer, packet, 0)
}

/// As [`ends`], of a packet that is within so many others.
fn ends_within(layer: Layer, packet: &[u8], depth: u8) -> Layer {
    let Ok((header, payload)) = Header::parse_start(packet) else {
        return layer;
    };
    let mut extensions = Extensions::new(header.next_header, payload);
    while let Ok(Some(_)) = extensions.next() {}
    let (protocol, rest) = (extensions.next_header(), extensions.rest());
    let is_inner = protocol == next_header::IPV6 && depth < DEPTH_MAX;
    if is_inner && Header::parse_start(rest).is_ok() {
        return ends_within(layer, rest, depth + 1);
    }
    let mut layer = layer
        .hidden("packet_src", header.src)
        .hidden("packet_dst", header.dst)
        .hidden("packet_protocol", protocol);
    if let wire_tcp::NEXT_HEADER | wire_udp::NEXT_HEADER = protocol {
        let found = ports("", rest).map(|ports| ports.fields);
        layer.fields.extend(found.unwrap_or_default());
    }
    layer
}

/// The ports at the start of a TCP or UDP header that is not whole.
pub(super) fn ports(layer: &'static str, bytes: &[u8]) -> Option<Layer> {
    let (&[a, b, c, d], _) = bytes.split_first_chunk()?;
    let [src, dst] = [[a, b], [c, d]].map(u16::from_be_bytes);
    Some(
        Layer::new(layer, format!("{src} → {dst}"))
            .hidden("src_port", src)
            .hidden("dst_port", dst),
    )
}

const fn ecn_name(ecn: Ecn) -> &'static str {
    match ecn {
        Ecn::NotEct => "not ECT",
        Ecn::Ect0 => "ECT(0)",
        Ecn::Ect1 => "ECT(1)",
        Ecn::Ce => "CE",
    }
}

/// The name of a next header value.
pub(super) fn protocol_name(protocol: u8) -> String {
    match protocol {
        next_header::HOP_BY_HOP => "hop-by-hop options".into(),
        1 => "ICMP".into(),
        wire_tcp::NEXT_HEADER => "TCP".into(),
        wire_udp::NEXT_HEADER => "UDP".into(),
        next_header::IPV6 => "IPv6".into(),
        next_header::ROUTING => "routing header".into(),
        next_header::FRAGMENT => "fragment header".into(),
        wire_icmpv6::NEXT_HEADER => "ICMPv6".into(),
        next_header::NONE => "nothing".into(),
        next_header::DESTINATION_OPTIONS => "destination options".into(),
        next_header::MOBILITY => "mobility header".into(),
        other => format!("protocol {other}"),
    }
}

/// Where the source address is in an IPv6 header (RFC 8200 §3).
const SOURCE_AT: usize = 8;

/// Packets within packets that are explained: a tunnel within ZEP within a tunnel.
const DEPTH_MAX: u8 = 4;
