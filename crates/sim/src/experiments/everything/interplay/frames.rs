//! Captures of a run, as far as the checks of requirements need them.
//!
//! Purpose: one [`Heard`] for each frame or packet, as `motet-decode` explains it, with the mesh's
//! key or without it.
//! Left out: what follows from many of them, which is `rules`'s.

use std::net::Ipv6Addr;

use motet::mac::security::NetworkKey;
use motet_decode::{Audience, Decoder, Field, Frame, Layer, Value};

use crate::air::phy;
use crate::capture::Tape;
use crate::net::plan;

/// What a frame is to the MAC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Kind {
    #[default]
    Other,
    Data,
    Ack,
}

/// A frame or a packet of a capture.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard {
    /// When its first symbol left.
    pub(super) at_us: u64,
    /// When its last one did, of a frame of the mesh.
    pub(super) over_us: u64,
    pub(super) kind: Kind,
    /// The number that its ACK has, too.
    pub(super) sequence: Option<u64>,
    /// The nodes of the link; none of a packet on the wire, or of a frame to all.
    pub(super) from: Option<usize>,
    pub(super) to: Option<usize>,
    /// Whether the link repeats a frame.
    pub(super) is_repeat: bool,
    /// Whether a child asks its parent for what waits.
    pub(super) is_request: bool,
    /// Whether anything above the MAC can be read.
    pub(super) is_readable: bool,
    pub(super) fragment: Option<Fragment>,
    /// Whether a TCP header in this frame is compressed.
    pub(super) is_compressed: bool,
    /// How long it is then, bytes.
    pub(super) header_len: Option<u64>,
    /// The connection that a packet of Bluetooth LE's is of: its access address.
    pub(super) connection: Option<String>,
    /// What TCPlE says in it.
    pub(super) tcple: Option<Tcple>,
    pub(super) segment: Option<Segment>,
}

/// TCPlE's part of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Tcple {
    /// A prefetched segment, with its sender's number of the connection.
    Ahead(u64),
    /// So many bytes of what was prefetched of a connection have been sent by TCP; none: they are
    /// obsolete.
    Release(u64, u64),
    Other,
}

/// A fragment's place in its datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fragment {
    pub(super) is_first: bool,
    pub(super) tag: u64,
    pub(super) offset: u64,
}

/// A segment, in the frame that made its datagram whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Segment {
    pub(super) src: (Ipv6Addr, u64),
    pub(super) dst: (Ipv6Addr, u64),
    pub(super) seq: u32,
    pub(super) ack: Option<u64>,
    pub(super) len: u32,
    pub(super) flags: Vec<String>,
    /// Whether its packet was marked: CE.
    pub(super) is_marked: bool,
    pub(super) is_sum_right: bool,
}

impl Segment {
    pub(super) fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|own| own == flag)
    }

    /// What tells a segment from others of its connection: its ends, numbers and length.
    pub(super) fn key(&self) -> Key {
        (self.src, self.dst, self.seq, self.ack, self.len)
    }
}

/// As [`Segment::key`].
pub(super) type Key = ((Ipv6Addr, u64), (Ipv6Addr, u64), u32, Option<u64>, u32);

/// What was written, explained: with a key or without one, where motes have this prefix.
pub(super) fn read(tape: &Tape, key: Option<NetworkKey>, prefix: Ipv6Addr) -> Vec<Heard> {
    let Ok(mut capture) = motet_decode::Capture::of_bytes(tape.bytes()) else {
        return Vec::new();
    };
    let given = [(0, prefix), (1, plan::WIRED_PREFIX)];
    let given = given.map(|(id, prefix)| motet_decode::Context {
        id,
        prefix,
        len: 64,
    });
    let mut decoder = Decoder::new(&given);
    if let Some(key) = key {
        decoder.open_with(key, 0);
    }
    decoder.end_frames_in(capture.ending());
    let mut heard = Vec::new();
    while let Some(Ok(record)) = capture.next_record() {
        heard.push(Heard::of(&decoder.decode(&record)));
    }
    heard
}

impl Heard {
    fn of(frame: &Frame) -> Self {
        let mut heard = Self {
            at_us: frame.epoch_ns / 1_000,
            ..Self::default()
        };
        heard.over_us = heard.at_us + phy::air_time(frame.captured_len).as_micros();
        let mut around = (Ipv6Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED, false);
        for layer in &frame.layers {
            match layer.name {
                "mac" => {
                    heard.from = text(layer, "src").and_then(node_of);
                    heard.to = text(layer, "dst").and_then(node_of);
                    heard.is_repeat = number(layer, "repeat_of").is_some();
                    heard.sequence = number(layer, "seq");
                    heard.kind = match layer.title.as_str() {
                        "data" => Kind::Data,
                        "ack" => Kind::Ack,
                        _ => Kind::Other,
                    };
                }
                "command" => heard.is_request = layer.title == "data request",
                "fragment" => {
                    heard.fragment = Some(Fragment {
                        is_first: flag(layer, "first") == Some(true),
                        tag: number(layer, "datagram_tag").unwrap_or_default(),
                        offset: number(layer, "offset").unwrap_or_default(),
                    });
                }
                "tcphc" => {
                    heard.is_compressed = true;
                    heard.header_len = number(layer, "compressed_bytes");
                }
                "ble_ll" => heard.connection = text(layer, "access_address").map(str::to_owned),
                "tcple" => heard.tcple = Some(Tcple::of(layer)),
                "ipv6" => around = packet(layer),
                "tcp" => heard.segment = segment(layer, around),
                _ => {}
            }
            let is_above = ["fragment", "iphc", "lowpan", "ipv6", "tcphc", "tcp", "udp"];
            heard.is_readable |= is_above.contains(&layer.name);
        }
        heard
    }
}

impl Tcple {
    fn of(layer: &Layer) -> Self {
        let [flow, bytes] = ["flow", "bytes"].map(|key| number(layer, key).unwrap_or_default());
        match text(layer, "type") {
            Some("ahead") => Self::Ahead(flow),
            Some("release") => Self::Release(flow, bytes),
            _ => Self::Other,
        }
    }
}

/// Source, destination, and whether it is marked.
fn packet(layer: &Layer) -> (Ipv6Addr, Ipv6Addr, bool) {
    let addr = |key| text(layer, key).and_then(|text| text.parse().ok());
    let addr = |key| addr(key).unwrap_or(Ipv6Addr::UNSPECIFIED);
    (addr("src"), addr("dst"), text(layer, "ecn") == Some("CE"))
}

fn segment(layer: &Layer, (src, dst, is_marked): (Ipv6Addr, Ipv6Addr, bool)) -> Option<Segment> {
    let small = |key| number(layer, key).and_then(|value| u32::try_from(value).ok());
    let flags = match field(layer, "flags")? {
        Value::List(names) => names.iter().filter_map(name).collect(),
        _ => return None,
    };
    Some(Segment {
        src: (src, number(layer, "src_port")?),
        dst: (dst, number(layer, "dst_port")?),
        seq: small("seq")?,
        ack: number(layer, "ack"),
        len: small("len")?,
        flags,
        is_marked,
        is_sum_right: flag(layer, "checksum_ok") == Some(true),
    })
}

/// The value for programs: people may see another under the same name.
fn field<'l>(layer: &'l Layer, key: &str) -> Option<&'l Value> {
    let is_it = |field: &&Field| field.key == key && field.audience != Audience::People;
    let found = layer.fields.iter().find(is_it);
    found.map(|field| &field.value)
}

fn number(layer: &Layer, key: &str) -> Option<u64> {
    match field(layer, key)? {
        Value::Number(number) | Value::Hex(number, _) => Some(*number),
        _ => None,
    }
}

fn text<'l>(layer: &'l Layer, key: &str) -> Option<&'l str> {
    match field(layer, key)? {
        Value::Text(text) => Some(text),
        _ => None,
    }
}

fn flag(layer: &Layer, key: &str) -> Option<bool> {
    match field(layer, key)? {
        Value::Bool(flag) => Some(*flag),
        _ => None,
    }
}

fn name(value: &Value) -> Option<String> {
    match value {
        Value::Text(name) => Some(name.clone()),
        _ => None,
    }
}

/// The mesh node of an extended address in words.
fn node_of(addr: &str) -> Option<usize> {
    let bytes: Vec<u8> = addr
        .split(':')
        .map_while(|byte| u8::from_str_radix(byte, 16).ok())
        .collect();
    let [.., high, low] = <[u8; 8]>::try_from(bytes).ok()?;
    Some(usize::from(u16::from_be_bytes([high, low])))
}
