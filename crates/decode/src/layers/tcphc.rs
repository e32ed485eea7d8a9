//! Compressed TCP headers: field by field, and restored.
//!
//! Place: under `lowpan`, once a packet is whole. The stack's own rules restore a header from the
//! earlier segments of its connection in the capture. It is accepted only if the TCP checksum is
//! right. A relay passes compressed headers on unchanged: a segment heard on several hops is
//! restored once, and the result is kept for the other hops.
//! Left out: segments of a connection before its first full header in the capture; they stay
//! undecoded.

use std::collections::{HashMap, VecDeque};
use std::net::Ipv6Addr;

use motet::lowpan::TcpForm;
use motet::tcphc::{Flow, HeaderDrop, Overheard};
use motet::time::Instant;
use motet::wire::LinkAddr;
use motet::wire::ipv6::{self, Extensions};
use motet::wire::tcp::{self, Flags};
use motet::wire::tcphc::{FULL_OVERHEAD, Field as Inline, Header, Window};

use super::tcp::flag_names;
use crate::model::{Frame, Layer, Value, group, hex8, hex16};
use crate::{Decoder, FrameContext};

/// The connections whose compressed headers were heard, in both directions.
#[derive(Debug, Default)]
pub(crate) struct Compressions {
    connections: HashMap<Key, Connection>,
}

/// Both addresses, the lower first, and the context identifier.
type Key = ([Ipv6Addr; 2], u8);

#[derive(Debug)]
struct Connection {
    overheard: Overheard,
    /// When the connection was heard last, nanoseconds.
    last_ns: u64,
    recent: VecDeque<SegmentOnAir>,
}

/// A segment and where it was heard first.
#[derive(Debug)]
struct SegmentOnAir {
    /// The segment as it was on the air.
    bytes: Vec<u8>,
    from_first: bool,
    heard_from: Option<LinkAddr>,
    /// The segment's restored header.
    header: Vec<u8>,
}

/// A TCP segment within its packet.
struct Located {
    src: Ipv6Addr,
    dst: Ipv6Addr,
    /// The place of the segment in the packet.
    place: std::ops::Range<usize>,
}

impl Located {
    fn of(packet: &[u8]) -> Option<Self> {
        let (header, payload) = ipv6::Header::parse(packet).ok()?;
        let mut walk = Extensions::new(header.next_header, payload);
        while walk.next().ok()?.is_some() {}
        let end = ipv6::HEADER_LEN + payload.len();
        (walk.next_header() == tcp::NEXT_HEADER).then_some(Self {
            src: header.src,
            dst: header.dst,
            place: end - walk.rest().len()..end,
        })
    }

    /// Both addresses in order, and whether the sender is the first of them.
    fn ends(&self) -> ([Ipv6Addr; 2], bool) {
        if self.src < self.dst {
            ([self.src, self.dst], true)
        } else {
            ([self.dst, self.src], false)
        }
    }
}

/// Restores the TCP header of `packet`, a whole one, and learns from it; returns the reason where
/// it cannot.
pub(super) fn restore(
    decoder: &mut Decoder,
    frame: &mut Frame,
    packet: &mut [u8],
    form: TcpForm,
) -> Option<()> {
    let Some(located) = Located::of(packet) else {
        return Some(());
    };
    let Some(segment) = packet.get_mut(located.place.clone()) else {
        return Some(());
    };
    let now = decoder.now;
    frame.between(located.src, located.dst);
    let table = &mut decoder.compressions;
    match form {
        TcpForm::Plain => table.learn(&located, None, segment, &now),
        TcpForm::Full { cid } => table.learn(&located, Some(cid), segment, &now),
        TcpForm::Compressed if frame.is_cut() => {
            frame.say("TCP");
            frame.undecoded("tcphc", "compressed TCP header, and not all of the segment");
            return None;
        }
        TcpForm::Compressed => match table.restore(&located, segment, &now) {
            Ok(header) => {
                let room = segment.iter_mut().zip(header);
                room.for_each(|(place, byte)| *place = byte);
            }
            Err(reason) => {
                frame.say("TCP");
                frame.undecoded("tcphc", reason);
                return None;
            }
        },
    }
    Some(())
}

impl Compressions {
    /// Takes a whole header; a header that names a context creates the context.
    fn learn(&mut self, located: &Located, cid: Option<u8>, segment: &[u8], now: &FrameContext) {
        let Located { src, dst, .. } = located;
        let Ok((header, _)) = tcp::Header::parse(segment) else {
            return;
        };
        if !now.countable() || !tcp::is_checksum_valid(src, dst, segment) {
            return;
        }
        let (addrs, from_first) = located.ends();
        let (first_port, second_port) = match from_first {
            true => (header.src_port, header.dst_port),
            false => (header.dst_port, header.src_port),
        };
        let ports = (first_port, second_port);
        if let Some(cid) = cid {
            self.open((addrs, cid), ports, &header, segment, now);
        }
        for ((known, known_cid), connection) in &mut self.connections {
            let is_it = *known == addrs && connection.overheard.ports() == ports;
            if is_it && cid.is_none_or(|cid| cid == *known_cid) {
                connection.learn(from_first, segment, now);
            }
        }
    }

    /// Makes room for a context, unless it is there.
    fn open(
        &mut self,
        key: Key,
        ports: (u16, u16),
        header: &tcp::Header,
        segment: &[u8],
        now: &FrameContext,
    ) {
        let known = self.connections.get(&key);
        let is_syn = header.flags.contains(Flags::SYN) && !header.flags.contains(Flags::ACK);
        let stays = known.is_some_and(|known| {
            let heard = known.recent.iter().any(|heard| heard.bytes == segment);
            known.overheard.ports() == ports && (!is_syn || heard)
        });
        if stays {
            return;
        }
        if self.connections.len() >= CONNECTIONS_MAX {
            let oldest = self.connections.iter().min_by_key(|(_, old)| old.last_ns);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                self.connections.remove(&oldest);
            }
        }
        let connection = Connection {
            overheard: Overheard::new(ports.0, ports.1),
            last_ns: now.at_ns,
            recent: VecDeque::new(),
        };
        self.connections.insert(key, connection);
    }

    /// The whole header of a segment with a compressed one.
    fn restore(
        &mut self,
        located: &Located,
        segment: &[u8],
        now: &FrameContext,
    ) -> Result<Vec<u8>, String> {
        let bytes = TcpForm::compressed(segment);
        let (header, _) = Header::parse(bytes).map_err(|error| error.reason().to_owned())?;
        let (addrs, from_first) = located.ends();
        let cid = header.cid();
        let connection = self.connections.get_mut(&(addrs, cid)).ok_or_else(|| {
            format!("context of the compressed TCP header not known: no full header of 0x{cid:02x} was heard")
        })?;
        if let Some(header) = connection.recall(from_first, bytes, now) {
            return Ok(header);
        }
        let flow = Flow {
            local: located.dst,
            remote: located.src,
            within_mesh: true,
        };
        let mut out = [0; tcp::HEADER_LEN_MAX];
        let mut overheard = connection.overheard;
        let restored = overheard.restore(&flow, from_first, bytes, now.instant(), &mut out);
        let restored = restored.map_err(unknown)?;
        let header = out.get(..restored.uncompressed_len).unwrap_or_default();
        if now.countable() {
            connection.overheard = overheard;
            connection.note(from_first, bytes, header, now);
        }
        Ok(header.to_vec())
    }
}

/// Why a header was not restored, in words.
fn unknown(error: HeaderDrop) -> String {
    format!(
        "context of the compressed TCP header not known: {}",
        error.reason()
    )
}

impl Connection {
    /// Learns from a whole header, unless this is the same segment on another hop.
    fn learn(&mut self, from_first: bool, segment: &[u8], now: &FrameContext) {
        if self.recall(from_first, segment, now).is_none() {
            self.overheard.learn(from_first, segment, now.instant());
            self.note(from_first, segment, &[], now);
        }
    }

    /// The header of this segment, if it was heard from another node, or is a link's repeat.
    fn recall(&self, from_first: bool, bytes: &[u8], now: &FrameContext) -> Option<Vec<u8>> {
        let heard = self.recent.iter().rev().find(|heard| {
            let again = !now.countable() || heard.heard_from != now.heard_from;
            again && heard.from_first == from_first && heard.bytes == bytes
        })?;
        Some(heard.header.clone())
    }

    fn note(&mut self, from_first: bool, bytes: &[u8], header: &[u8], now: &FrameContext) {
        self.last_ns = now.at_ns;
        if self.recent.len() >= RECENT_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(SegmentOnAir {
            bytes: bytes.to_vec(),
            from_first,
            heard_from: now.heard_from,
            header: header.to_vec(),
        });
    }
}

impl FrameContext {
    fn instant(&self) -> Instant {
        Instant::from_micros(self.at_ns / 1_000)
    }
}

/// A compressed header in words; `None` where it is none.
pub(super) fn layer(bytes: &[u8]) -> Option<Layer> {
    let (header, _) = Header::parse(bytes).ok()?;
    let uncompressed_len = header.uncompressed_len();
    let base = bytes.first().copied().unwrap_or_default();
    let title = |form: &str, len: usize| format!("{form}, {len} B for {uncompressed_len} B");
    let layer = |form, len| {
        Layer::new("tcphc", title(form, len))
            .hidden("base", base)
            .hidden("protocol", tcp::NEXT_HEADER)
            .hidden("form", form)
            .hidden("compressed_bytes", len)
            .hidden("uncompressed_bytes", uncompressed_len)
            .with("cid", hex8(header.cid()))
    };
    let frame = match &header {
        Header::Full { tcp, .. } => return Some(layer("full header", tcp.len() + FULL_OVERHEAD)),
        Header::Compressed(frame) => frame,
    };
    let compressed_len = motet::wire::tcphc::lengths(bytes).ok()?.compressed;
    let form = match frame.mostly {
        true => "mostly compressed header",
        false => "compressed header",
    };
    let timestamps = frame
        .timestamps
        .map(|(value, echo)| group([("tsval", inline(value)), ("tsecr", inline(echo))]));
    let blocks = frame.sack.as_slice().iter().map(|block| {
        group([
            ("sack_offset", block.offset.into()),
            ("sack_len", block.len.into()),
        ])
    });
    let names = flag_names(frame.flags).into_iter().map(Value::from);
    Some(
        layer(form, compressed_len)
            .with("seq", inline(frame.seq))
            .with("ack", inline(frame.ack))
            .with(
                "window",
                match frame.window {
                    Window::Elided => Value::from(ELIDED),
                    Window::Low(low) => parts("low 8 bits", u64::from(low)),
                    Window::High(high) => parts("high 8 bits", u64::from(high)),
                    Window::Whole(window) => parts("whole", u64::from(window)),
                },
            )
            .with("flags", names.collect::<Vec<_>>())
            .with("checksum", hex16(frame.checksum))
            .with("timestamps", timestamps.into_iter().collect::<Vec<_>>())
            .with("sack", blocks.collect::<Vec<_>>()),
    )
}

/// How much of a field is in line, and what.
fn inline(field: Inline) -> Value {
    match field {
        Inline::Elided => Value::from(ELIDED),
        Inline::Low8(low) => parts("low 8 bits", u64::from(low)),
        Inline::Low16(low) => parts("low 16 bits", u64::from(low)),
        Inline::Whole(value) => parts("whole", u64::from(value)),
    }
}

fn parts(mode: &str, value: u64) -> Value {
    Value::Text(format!("{mode} {value}"))
}

const ELIDED: &str = "elided";

/// Contexts remembered at once.
const CONNECTIONS_MAX: usize = 1_024;

/// Segments of a connection that may still be on their way over other hops.
const RECENT_MAX: usize = 64;
