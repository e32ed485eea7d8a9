//! 6LoWPAN: fragments, compressed headers.
//!
//! Place: under `mac`, for data frames; what follows a whole one is an IPv6 packet. The stack's
//! codecs parse and decompress; this file puts into words how a header was compressed. Sources: RFC
//! 4944 §5, RFC 6282, RFC 8138.

use std::net::Ipv6Addr;

use motet::lowpan::{
    Contexts, DecompressError, Decompressed, LinkPair, TcpForm, complete_udp_checksum, decompress,
};
use motet::wire::cursor::Reader;
use motet::wire::ipv6;
use motet::wire::lorh::{self, RoutingHeaders};
use motet::wire::lowpan_dispatch::{Dispatch, classify};
use motet::wire::lowpan_frag as frag;
use motet::wire::lowpan_iphc::{
    Destination, Header as Iphc, Iid, Multicast, Prefix, Source, Unicast,
};
use motet::wire::lowpan_nhc::{self, Nhc};
use motet::wire::rpl_option::{self, Rpi};

use super::{Decoder, header_alone, ip, mesh, tcphc};
use crate::model::{Field, Frame, Layer, Value, group, hex16};
use crate::next::Next;
use crate::reassembly::{Key, Outcome, Piece};

/// Explains the payload of a data frame; what follows is the packet, where all of it is here.
pub(super) fn explain<'a>(
    decoder: &mut Decoder,
    frame: &mut Frame,
    pair: LinkPair,
    payload: &[u8],
) -> Next<'a> {
    let Some((pair, payload)) = mesh::headers(frame, pair, payload) else {
        return Next::End;
    };
    let Some(payload) = routing_headers(decoder, frame, payload) else {
        return Next::End;
    };
    match classify(payload) {
        Err(unsupported) => {
            frame.payload(payload);
            frame.undecoded("lowpan", unsupported.reason())
        }
        Ok(Dispatch::Fragment) => fragment(decoder, frame, pair, payload),
        Ok(Dispatch::Ipv6) => {
            frame.push(uncompressed());
            Packet::plain(payload.get(1..).unwrap_or_default()).restored(decoder, frame)
        }
        Ok(Dispatch::Iphc) => match packet_of(decoder, frame, pair, payload, None) {
            Some(packet) => packet.restored(decoder, frame),
            None => Next::End,
        },
        Ok(Dispatch::Routed) => frame.undecoded("lowpan", PAGE_TWICE),
    }
}

/// Explains the 6LoWPAN routing headers in front of a compressed packet, if there are any;
/// returns what follows them.
fn routing_headers<'a>(
    decoder: &Decoder,
    frame: &mut Frame,
    payload: &'a [u8],
) -> Option<&'a [u8]> {
    let [lorh::PAGE_1, headers @ ..] = payload else {
        return Some(payload);
    };
    let (headers, rest) = match RoutingHeaders::parse(headers) {
        Ok(found) => found,
        Err(error) => {
            match error {
                lorh::ParseError::Critical => frame.undecoded("lorh", error.reason()),
                _ => frame.malformed("lorh", error.reason()),
            };
            return None;
        }
    };
    // Without the root's address an elided address is known by the bytes that the frame holds.
    let root = decoder.dodag.unwrap_or(Ipv6Addr::UNSPECIFIED);
    let root_known = decoder.dodag.is_some();
    if !headers.segments.is_empty() {
        let tunnel = headers.tunnel.as_ref();
        let reference = tunnel.map_or(root, |tunnel| tunnel.encapsulator(&root));
        let list: Vec<Value> = headers.segments.iter(reference).map(Value::from).collect();
        frame.push(
            Layer::new("lorh", format!("source route, {} to go", list.len())).with(
                if root_known {
                    "segments"
                } else {
                    "segment_ends"
                },
                list,
            ),
        );
    }
    if let Some(rpi) = headers.rpi {
        let layer = Layer::new("lorh", "RPL packet information");
        frame.push(ip::rpi_fields(layer, rpi));
    }
    if let Some(tunnel) = headers.tunnel {
        let encapsulator = tunnel.encapsulator(&root);
        frame.push(
            Layer::new("lorh", "IPv6 in IPv6")
                .with("hop_limit", tunnel.hop_limit)
                .with(
                    if root_known {
                        "encapsulator"
                    } else {
                        "encapsulator_end"
                    },
                    Some(encapsulator).filter(|addr| !addr.is_unspecified()),
                ),
        );
    }
    Some(rest)
}

/// A packet, or the start of one, with its headers restored.
struct Packet {
    bytes: Vec<u8>,
    udp_checksum_elided: bool,
    tcp: TcpForm,
}

impl Packet {
    /// Bytes of a packet in which nothing was compressed.
    fn plain(bytes: &[u8]) -> Self {
        Self {
            bytes: bytes.to_vec(),
            udp_checksum_elided: false,
            tcp: TcpForm::Plain,
        }
    }

    /// The packet, all of which is here, with its TCP header and its UDP checksum restored.
    fn restored<'a>(mut self, decoder: &mut Decoder, frame: &mut Frame) -> Next<'a> {
        if self.udp_checksum_elided {
            complete_udp_checksum(&mut self.bytes);
        }
        match tcphc::restore(decoder, frame, &mut self.bytes, self.tcp) {
            Some(()) => Next::Ip(self.bytes.into()),
            None => Next::End,
        }
    }

    /// Explains the packet's headers, as far as they can be read before all of the packet is
    /// here.
    fn readable(&self) -> &[u8] {
        match self.tcp {
            TcpForm::Compressed => self.bytes.get(..ipv6::HEADER_LEN).unwrap_or_default(),
            TcpForm::Plain | TcpForm::Full { .. } => &self.bytes,
        }
    }
}

/// Restores the headers at the start of `bytes`, and describes how they were compressed.
fn packet_of(
    decoder: &Decoder,
    frame: &mut Frame,
    pair: LinkPair,
    bytes: &[u8],
    datagram_size: Option<u16>,
) -> Option<Packet> {
    let (header, rest) = match Iphc::parse(bytes) {
        Ok(found) => found,
        Err(error) => {
            frame.malformed("iphc", error.reason());
            return None;
        }
    };
    frame.push(iphc_layer(&header, bytes, rest, &decoder.contexts));
    nhc_layers(frame, header.next_header.is_none(), rest);
    let mut out = vec![0; HEADERS_LEN_MAX];
    let restored = match decompress(bytes, pair, &decoder.contexts, datagram_size, &mut out) {
        Ok(restored) => restored,
        Err(error) => {
            if error == DecompressError::Nhc(lowpan_nhc::ParseError::Unknown) {
                let iphc = bytes.get(..bytes.len() - rest.len()).unwrap_or_default();
                header_alone::show(frame, iphc, pair, &decoder.contexts);
            }
            refuse(
                frame,
                error,
                contexts_of(&header).find(|id| decoder.contexts.get(*id).is_none()),
            );
            return None;
        }
    };
    let Decompressed {
        compressed_len,
        uncompressed_len,
        udp_checksum_elided,
        tcp,
        rpi,
        ..
    } = restored;
    if let Some(layer) = frame
        .layers
        .iter_mut()
        .rev()
        .find(|layer| layer.name == "iphc")
    {
        let uncompressed_len = uncompressed_len + rpi.map_or(0, |_| rpl_option::HEADER_LEN);
        layer.title = format!("{compressed_len} B for {uncompressed_len} B of headers");
        layer
            .fields
            .push(Field::for_programs("compressed_bytes", compressed_len));
        layer
            .fields
            .push(Field::for_programs("uncompressed_bytes", uncompressed_len));
    }
    out.truncate(uncompressed_len);
    out.extend_from_slice(bytes.get(compressed_len..).unwrap_or_default());
    if let Some(rpi) = rpi {
        put_back(&mut out, rpi, option_type(&header, rest));
    }
    Some(Packet {
        bytes: out,
        udp_checksum_elided,
        tcp,
    })
}

/// The type of the RPL option right behind `header`, compressed or in line.
fn option_type(header: &Iphc, rest: &[u8]) -> u8 {
    let kind = match (header.next_header, Nhc::parse(rest)) {
        (None, Ok((Nhc::Extension(extension), _))) => extension.body.first(),
        _ => rest.get(2),
    };
    kind.copied().unwrap_or(rpl_option::TYPE_6553)
}

/// Puts the RPL option that decompression took out of `packet` back where it stood.
fn put_back(packet: &mut Vec<u8>, rpi: Rpi, kind: u8) {
    let Some([_, _, _, _, high, low, next_header, ..]) = packet.first_chunk_mut::<40>() else {
        return;
    };
    let payload_len = u16::from_be_bytes([*high, *low]).wrapping_add(8);
    [*high, *low] = payload_len.to_be_bytes();
    let option = rpi.header(*next_header, kind);
    *next_header = ipv6::next_header::HOP_BY_HOP;
    packet.splice(ipv6::HEADER_LEN..ipv6::HEADER_LEN, option);
}

/// Marks the frame as undecoded where `decode` lacks a context or a feature, and as malformed
/// where the bytes contradict the format.
fn refuse(frame: &mut Frame, error: DecompressError, unknown: Option<u8>) -> Next<'static> {
    match error {
        DecompressError::Context => {
            let id = unknown.map_or_else(|| "N".to_owned(), |id| id.to_string());
            frame.undecoded(
                "iphc",
                format!("{}; give it with --context {id}=PREFIX/LEN", error.reason()),
            )
        }
        DecompressError::Unsupported(_) | DecompressError::Nhc(lowpan_nhc::ParseError::Unknown) => {
            frame.undecoded("iphc", error.reason())
        }
        _ => frame.malformed("iphc", error.reason()),
    }
}

fn fragment<'a>(
    decoder: &mut Decoder,
    frame: &mut Frame,
    pair: LinkPair,
    payload: &[u8],
) -> Next<'a> {
    let (header, rest) = match frag::Header::parse(payload) {
        Ok(found) => found,
        Err(error) => return frame.malformed("fragment", error.reason()),
    };
    let name = if header.is_first() {
        "first fragment"
    } else {
        "fragment"
    };
    frame.push(
        Layer::new("fragment", name)
            .hidden("first", header.is_first())
            .with("datagram_tag", hex16(header.datagram_tag))
            .with("datagram_size", header.datagram_size)
            .with("offset", header.offset_bytes()),
    );
    frame.say(format_args!(
        "6LoWPAN {name} 0x{:04x}, {} of {} B",
        header.datagram_tag,
        header.offset_bytes(),
        header.datagram_size
    ));
    let packet = if header.is_first() {
        match first_fragment(decoder, frame, pair, rest, header.datagram_size) {
            Some(packet) => packet,
            None => return Next::End,
        }
    } else {
        Packet::plain(rest)
    };
    if !header.is_first() {
        frame.payload(rest);
    }
    frame.status = crate::Status::Fragment;
    if decoder.now.countable() && !frame.is_cut() {
        return add(decoder, frame, pair, &header, &packet);
    }
    Next::End
}

/// Explains a first fragment, from the first byte of the IPv6 header on.
fn first_fragment(
    decoder: &Decoder,
    frame: &mut Frame,
    pair: LinkPair,
    rest: &[u8],
    datagram_size: u16,
) -> Option<Packet> {
    let rest = routing_headers(decoder, frame, rest)?;
    let packet = match classify(rest) {
        Ok(Dispatch::Ipv6) => {
            frame.push(uncompressed());
            Packet::plain(rest.get(1..).unwrap_or_default())
        }
        Ok(Dispatch::Iphc) => packet_of(decoder, frame, pair, rest, Some(datagram_size))?,
        Ok(Dispatch::Fragment) => {
            frame.malformed("fragment", "a fragment within a fragment");
            return None;
        }
        Ok(Dispatch::Routed) => {
            frame.undecoded("lowpan", PAGE_TWICE);
            return None;
        }
        Err(unsupported) => {
            frame.undecoded("lowpan", unsupported.reason());
            return None;
        }
    };
    ip::begins(frame, packet.readable());
    Some(packet)
}

/// Adds a fragment to its datagram; what follows is the packet, when the fragment completes it.
fn add<'a>(
    decoder: &mut Decoder,
    frame: &mut Frame,
    pair: LinkPair,
    header: &frag::Header,
    packet: &Packet,
) -> Next<'a> {
    let key = Key {
        src: pair.src,
        dst: pair.dst,
        tag: header.datagram_tag,
        size: header.datagram_size,
    };
    let piece = Piece {
        offset: header.offset_bytes(),
        bytes: &packet.bytes,
        udp_checksum_elided: packet.udp_checksum_elided,
        tcp: packet.tcp,
        frame: decoder.now.number,
        at_ns: decoder.now.at_ns,
    };
    match decoder.reassembly.add(key, piece) {
        Outcome::Incomplete { have } => {
            frame.push(
                Layer::new(
                    "datagram",
                    format!("{have} of {} B so far", header.datagram_size),
                )
                .hidden("seen_bytes", have),
            );
        }
        Outcome::Copy => frame.push(Layer::new("datagram", "these bytes are here already")),
        Outcome::BeyondEnd => {
            frame.malformed("fragment", "6LoWPAN fragment reaches beyond its datagram");
        }
        Outcome::Complete {
            packet,
            frames,
            udp_checksum_elided,
            tcp,
        } => {
            frame.status = crate::Status::Decoded;
            let list = frames
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" ");
            frame.push(
                Layer::new(
                    "datagram",
                    format!("{} B reassembled from frames {list}", packet.len()),
                )
                .hidden("seen_bytes", packet.len())
                .hidden(
                    "frames",
                    frames.into_iter().map(Value::from).collect::<Vec<_>>(),
                ),
            );
            let packet = Packet {
                bytes: packet,
                udp_checksum_elided,
                tcp,
            };
            return packet.restored(decoder, frame);
        }
    }
    Next::End
}

fn uncompressed() -> Layer {
    Layer::new("lowpan", "IPv6, not compressed")
}

fn iphc_layer(header: &Iphc, bytes: &[u8], rest: &[u8], contexts: &Contexts) -> Layer {
    let mut r = Reader::new(bytes);
    let base = r.u16().unwrap_or(0);
    let traffic = [
        "in line",
        "ECN and flow label in line",
        "ECN and DSCP in line",
        "elided",
    ][usize::from(base >> 11 & 3)];
    let mut list: Vec<u8> = contexts_of(header).collect();
    list.dedup();
    let known = list.into_iter().map(|id| {
        let prefix = contexts
            .get(id)
            .map(|context| format!("{}/{}", context.prefix(), context.prefix_len()));
        group([("context", id.into()), ("prefix", prefix.into())])
    });
    Layer::new("iphc", "")
        .with("base", hex16(base))
        .with("traffic", traffic)
        .with(
            "next_header",
            header
                .next_header
                .map_or_else(|| "compressed".to_owned(), ip::protocol_name),
        )
        .hidden("hop_limit", header.hop_limit)
        .remark("hop_limit", Some("in line").filter(|_| base >> 8 & 3 == 0))
        .hidden("context_ids", base & 0x80 != 0)
        .with("src", source_words(header.src))
        .with("dst", destination_words(header.dst))
        .hidden("iphc_bytes", bytes.len() - rest.len())
        .with("contexts", known.collect::<Vec<_>>())
}

/// A layer for each compressed next header, as far as the headers can be read.
fn nhc_layers(frame: &mut Frame, mut compressed: bool, mut bytes: &[u8]) {
    for _ in 0..ipv6::EXTENSIONS_MAX {
        if !compressed {
            return;
        }
        let Ok((nhc, rest)) = Nhc::parse(bytes) else {
            // The decompressor reports the reason.
            return;
        };
        let first = bytes.first().copied().unwrap_or(0);
        bytes = rest;
        let layer = Layer::new("nhc", "")
            .hidden("base", first)
            .hidden("protocol", protocol(&nhc));
        compressed = match nhc {
            Nhc::Udp(udp) => {
                let ports =
                    ["in line", "dst 8 bits", "src 8 bits", "4 bits each"][usize::from(first & 3)];
                let checksum = if udp.checksum.is_some() {
                    "in line"
                } else {
                    "elided"
                };
                frame.push(
                    titled(layer, "UDP")
                        .with("ports", ports)
                        .with("checksum", checksum),
                );
                false
            }
            Nhc::Ipv6 => {
                frame.push(titled(layer, "IPv6 within"));
                match Iphc::parse(bytes) {
                    Ok((header, rest)) => {
                        bytes = rest;
                        header.next_header.is_none()
                    }
                    Err(_) => return,
                }
            }
            Nhc::Tcp(tcp) => {
                frame.layers.extend(tcphc::layer(tcp.header));
                false
            }
            Nhc::Extension(extension) => {
                frame.push(
                    titled(layer, &ip::protocol_name(extension.kind))
                        .with("body_bytes", extension.body.len()),
                );
                extension.next_header.is_none()
            }
        };
    }
}

fn titled(layer: Layer, title: &str) -> Layer {
    Layer {
        title: title.to_owned(),
        ..layer
    }
}

const fn protocol(nhc: &Nhc<'_>) -> u8 {
    match nhc {
        Nhc::Udp(_) => motet::wire::udp::NEXT_HEADER,
        Nhc::Tcp(_) => motet::wire::tcp::NEXT_HEADER,
        Nhc::Ipv6 => ipv6::next_header::IPV6,
        Nhc::Extension(extension) => extension.kind,
    }
}

fn source_words(src: Source) -> String {
    match src {
        Source::Unspecified => "unspecified".into(),
        Source::Unicast(unicast) => unicast_words(unicast),
    }
}

fn destination_words(dst: Destination) -> String {
    match dst {
        Destination::Unicast(unicast) => unicast_words(unicast),
        Destination::Multicast(multicast) => match multicast {
            Multicast::Full(_) => "multicast in line".into(),
            Multicast::Bits48(_) => "multicast 48 bits in line".into(),
            Multicast::Bits32(_) => "multicast 32 bits in line".into(),
            Multicast::Bits8(_) => "multicast 8 bits in line".into(),
            Multicast::Prefix { context, .. } => {
                format!("multicast context {context} + 48 bits in line")
            }
        },
    }
}

fn unicast_words(unicast: Unicast) -> String {
    match unicast {
        Unicast::Full(_) => "in line".into(),
        Unicast::Known { prefix, iid } => {
            let prefix = match prefix {
                Prefix::LinkLocal => "link-local".to_owned(),
                Prefix::Context(id) => format!("context {id}"),
            };
            let iid = match iid {
                Iid::Inline(_) => "64 bits in line",
                Iid::Short(_) => "16 bits in line",
                Iid::Elided => "link address",
            };
            format!("{prefix} + {iid}")
        }
    }
}

/// The contexts a header refers to, source first.
fn contexts_of(header: &Iphc) -> impl Iterator<Item = u8> + use<> {
    [
        context_of_source(header.src),
        context_of_destination(header.dst),
    ]
    .into_iter()
    .flatten()
}

const fn context_of_source(src: Source) -> Option<u8> {
    match src {
        Source::Unicast(Unicast::Known {
            prefix: Prefix::Context(id),
            ..
        }) => Some(id),
        _ => None,
    }
}

const fn context_of_destination(dst: Destination) -> Option<u8> {
    match dst {
        Destination::Unicast(Unicast::Known {
            prefix: Prefix::Context(id),
            ..
        })
        | Destination::Multicast(Multicast::Prefix { context: id, .. }) => Some(id),
        _ => None,
    }
}

/// Room for restored headers: more than any frame's can grow to.
const HEADERS_LEN_MAX: usize = 2_048;

const PAGE_TWICE: &str = "6LoWPAN routing headers where none can stand";
