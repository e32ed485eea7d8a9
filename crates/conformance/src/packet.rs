//! TCP segments in IPv6 packets as scripts speak of them: every option in its place.
//!
//! Place: between scripts, which state options byte for byte, and the engine, whose
//! [`motet::wire::tcp`] types deliberately forget layout. Left out: extension headers.

use std::fmt;
use std::net::Ipv6Addr;

use motet::wire::{icmpv6, ipv6, tcp};

/// One TCP option, padding included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TcpOption {
    /// No operation: one byte of padding.
    Nop,
    /// End of the list; also the padding behind it.
    Eol,
    /// Maximum segment size, bytes.
    Mss(u16),
    /// Window scale shift.
    WindowScale(u8),
    /// SACK permitted.
    SackOk,
    /// SACK blocks: left and right edges.
    Sack(Vec<(u32, u32)>),
    /// Timestamps.
    Timestamps {
        /// TSval, the sender's clock.
        value: u32,
        /// TSecr, the echoed TSval.
        echo: u32,
    },
    /// Anything else, by kind and body.
    Other(u8, Vec<u8>),
}

impl TcpOption {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Nop => out.push(1),
            Self::Eol => out.push(0),
            Self::Mss(mss) => {
                out.extend([2, 4]);
                out.extend(mss.to_be_bytes());
            }
            Self::WindowScale(shift) => out.extend([3, 3, *shift]),
            Self::SackOk => out.extend([4, 2]),
            Self::Sack(blocks) => {
                out.extend([5, 2 + 8 * blocks.len() as u8]);
                for (left, right) in blocks {
                    out.extend(left.to_be_bytes());
                    out.extend(right.to_be_bytes());
                }
            }
            Self::Timestamps { value, echo } => {
                out.extend([8, 10]);
                out.extend(value.to_be_bytes());
                out.extend(echo.to_be_bytes());
            }
            Self::Other(kind, body) => {
                out.extend([*kind, 2 + body.len() as u8]);
                out.extend(body);
            }
        }
    }

    fn typed(kind: u8, body: &[u8]) -> Self {
        match (kind, body) {
            (2, &[a, b]) => Self::Mss(u16::from_be_bytes([a, b])),
            (3, &[shift]) => Self::WindowScale(shift),
            (4, []) => Self::SackOk,
            (5, body) if !body.is_empty() && body.len() % 8 == 0 => Self::Sack(
                body.as_chunks::<8>()
                    .0
                    .iter()
                    .map(|&[a, b, c, d, e, f, g, h]| {
                        let left = u32::from_be_bytes([a, b, c, d]);
                        (left, u32::from_be_bytes([e, f, g, h]))
                    })
                    .collect(),
            ),
            (8, &[a, b, c, d, e, f, g, h]) => Self::Timestamps {
                value: u32::from_be_bytes([a, b, c, d]),
                echo: u32::from_be_bytes([e, f, g, h]),
            },
            (kind, body) => Self::Other(kind, body.to_vec()),
        }
    }
}

impl fmt::Display for TcpOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nop => write!(f, "nop"),
            Self::Eol => write!(f, "eol"),
            Self::Mss(mss) => write!(f, "mss {mss}"),
            Self::WindowScale(shift) => write!(f, "wscale {shift}"),
            Self::SackOk => write!(f, "sackOK"),
            Self::Sack(blocks) => {
                write!(f, "sack")?;
                for (left, right) in blocks {
                    write!(f, " {left}:{right}")?;
                }
                Ok(())
            }
            Self::Timestamps { value, echo } => write!(f, "TS val {value} ecr {echo}"),
            Self::Other(kind, body) => write!(f, "kind-{kind} {body:02x?}"),
        }
    }
}

/// Bytes of an option list.
pub fn encode_options(options: &[TcpOption]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for option in options {
        option.put(&mut bytes);
    }
    bytes
}

/// The options in `bytes`; what is malformed ends the list as [`TcpOption::Other`].
pub fn decode_options(bytes: &[u8]) -> Vec<TcpOption> {
    let mut options = Vec::new();
    let mut rest = bytes;
    while let Some((kind, behind)) = rest.split_first() {
        match kind {
            0 => options.push(TcpOption::Eol),
            1 => options.push(TcpOption::Nop),
            kind => {
                let Some((body, behind)) = behind.split_first().and_then(|(len, behind)| {
                    behind.split_at_checked(usize::from(*len).checked_sub(2)?)
                }) else {
                    options.push(TcpOption::Other(*kind, behind.to_vec()));
                    return options;
                };
                options.push(TcpOption::typed(*kind, body));
                rest = behind;
                continue;
            }
        }
        rest = behind;
    }
    options
}

/// FIN, SYN, RST, PSH, ACK, URG, ECE, CWR, AE in the order of the wire, and what scripts
/// call them.
pub const FLAG_NAMES: [(u16, char); 9] = [
    (0x001, 'F'),
    (0x002, 'S'),
    (0x004, 'R'),
    (0x008, 'P'),
    (0x010, '.'),
    (0x020, 'U'),
    (0x040, 'E'),
    (0x080, 'W'),
    (0x100, 'A'),
];

/// The SYN flag.
pub const SYN: u16 = 0x002;
/// The FIN flag.
pub const FIN: u16 = 0x001;
/// The RST flag.
pub const RST: u16 = 0x004;
/// The PSH flag.
pub const PSH: u16 = 0x008;
/// The ACK flag.
pub const ACK: u16 = 0x010;

/// A TCP segment; its payload counts only by length.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// SEG.SEQ: the sequence number.
    pub seq: u32,
    /// SEG.ACK; 0 without the flag.
    pub ack: u32,
    /// The twelve flag bits, FIN lowest.
    pub flags: u16,
    /// SEG.WND as on the wire.
    pub window: u16,
    /// Urgent pointer.
    pub urgent: u16,
    /// Options in order.
    pub options: Vec<TcpOption>,
    /// Length of the payload, bytes.
    pub len: usize,
}

impl Segment {
    /// Whether the segment acknowledges and carries no text.
    pub const fn is_bare_ack(&self) -> bool {
        self.len == 0 && self.has(ACK) && !self.has(SYN | RST)
    }

    /// Whether any of `flags` is set.
    pub const fn has(&self, flags: u16) -> bool {
        self.flags & flags != 0
    }

    /// TSval and TSecr, if there are any.
    pub fn timestamps(&self) -> Option<(u32, u32)> {
        self.options.iter().find_map(|option| match option {
            TcpOption::Timestamps { value, echo } => Some((*value, *echo)),
            _ => None,
        })
    }

    /// The window scale shift, if it is offered.
    pub fn window_scale(&self) -> Option<u8> {
        self.options.iter().find_map(|option| match option {
            TcpOption::WindowScale(shift) => Some(*shift),
            _ => None,
        })
    }

    fn emit(&self, src: Ipv6Addr, dst: Ipv6Addr, payload: &[u8]) -> Vec<u8> {
        let options = encode_options(&self.options);
        let words = (20 + options.len()) / 4;
        let mut out = Vec::with_capacity(20 + options.len() + payload.len());
        out.extend(self.src_port.to_be_bytes());
        out.extend(self.dst_port.to_be_bytes());
        out.extend(self.seq.to_be_bytes());
        out.extend(self.ack.to_be_bytes());
        out.extend(((words as u16) << 12 | self.flags & 0xfff).to_be_bytes());
        out.extend(self.window.to_be_bytes());
        out.extend([0, 0]);
        out.extend(self.urgent.to_be_bytes());
        out.extend(options);
        out.extend(payload);
        tcp::fill_checksum(&src, &dst, &mut out);
        out
    }
}

/// Flags as scripts write them.
pub fn flags_text(flags: u16) -> String {
    // Scripts put letters first and the dot last.
    let mut text: String = FLAG_NAMES
        .iter()
        .filter(|(bit, name)| flags & bit != 0 && *name != '.')
        .map(|(_, name)| name)
        .collect();
    if flags & ACK != 0 {
        text.push('.');
    }
    if text.is_empty() {
        text.push('-');
    }
    text
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = self.seq.wrapping_add(self.len as u32);
        write!(
            f,
            "{} {}:{end}({})",
            flags_text(self.flags),
            self.seq,
            self.len
        )?;
        if self.has(ACK) || self.ack != 0 {
            write!(f, " ack {}", self.ack)?;
        }
        write!(f, " win {}", self.window)?;
        if self.urgent != 0 {
            write!(f, " urg {}", self.urgent)?;
        }
        if !self.options.is_empty() {
            let list: Vec<String> = self.options.iter().map(ToString::to_string).collect();
            write!(f, " <{}>", list.join(","))?;
        }
        Ok(())
    }
}

/// An IPv6 packet with a TCP segment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// Source address.
    pub src: Ipv6Addr,
    /// Destination address.
    pub dst: Ipv6Addr,
    /// Traffic class: DSCP and, in the low two bits, ECN.
    pub traffic_class: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// The segment.
    pub segment: Segment,
}

/// The hop limit of packets that say nothing else.
pub const HOP_LIMIT: u8 = 64;

impl Packet {
    /// Reads a packet; `None`: it is no plain TCP segment in IPv6.
    pub fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (header, upper) = ipv6::Header::parse(bytes).ok()?;
        if header.next_header != tcp::NEXT_HEADER {
            return None;
        }
        let (fixed, _) = upper.split_first_chunk::<20>()?;
        let [
            s1,
            s2,
            d1,
            d2,
            q1,
            q2,
            q3,
            q4,
            a1,
            a2,
            a3,
            a4,
            o1,
            o2,
            w1,
            w2,
            _,
            _,
            u1,
            u2,
        ] = *fixed;
        let offset_flags = u16::from_be_bytes([o1, o2]);
        let head = usize::from(offset_flags >> 12) * 4;
        let (options, payload) = (upper.get(20..head)?, upper.get(head..)?);
        let segment = Segment {
            src_port: u16::from_be_bytes([s1, s2]),
            dst_port: u16::from_be_bytes([d1, d2]),
            seq: u32::from_be_bytes([q1, q2, q3, q4]),
            ack: u32::from_be_bytes([a1, a2, a3, a4]),
            flags: offset_flags & 0xfff,
            window: u16::from_be_bytes([w1, w2]),
            urgent: u16::from_be_bytes([u1, u2]),
            options: decode_options(options),
            len: payload.len(),
        };
        let packet = Self {
            src: header.src,
            dst: header.dst,
            traffic_class: header.traffic_class.0,
            hop_limit: header.hop_limit,
            segment,
        };
        Some((packet, payload))
    }

    /// Writes the packet around `payload`, checksum and all.
    pub fn emit(&self, payload: &[u8]) -> Vec<u8> {
        let upper = self.segment.emit(self.src, self.dst, payload);
        in_ipv6(
            (self.src, self.dst),
            (self.traffic_class, self.hop_limit),
            tcp::NEXT_HEADER,
            &upper,
        )
    }
}

/// An ICMPv6 error message about a packet from `src` to `dst`: the quoted packet starts with
/// an IPv6 header and `quoted`, the first bytes of its TCP header.
pub fn icmp_error(
    src: Ipv6Addr,
    dst: Ipv6Addr,
    kind: [u8; 2],
    word: u32,
    quoted: &[u8],
) -> Vec<u8> {
    let inner = in_ipv6((dst, src), (0, HOP_LIMIT), tcp::NEXT_HEADER, quoted);
    let mut message = vec![kind[0], kind[1], 0, 0];
    message.extend(word.to_be_bytes());
    message.extend(inner);
    icmpv6::fill_checksum(&src, &dst, &mut message);
    in_ipv6((src, dst), (0, HOP_LIMIT), icmpv6::NEXT_HEADER, &message)
}

/// Puts an upper-layer unit into an IPv6 packet.
///
/// `ends`: source and destination. `marks`: traffic class and hop limit.
pub fn in_ipv6(
    ends: (Ipv6Addr, Ipv6Addr),
    marks: (u8, u8),
    next_header: u8,
    upper: &[u8],
) -> Vec<u8> {
    let mut out = Vec::with_capacity(40 + upper.len());
    out.extend((6 << 28 | u32::from(marks.0) << 20).to_be_bytes());
    out.extend((upper.len() as u16).to_be_bytes());
    out.extend([next_header, marks.1]);
    out.extend(ends.0.octets());
    out.extend(ends.1.octets());
    out.extend(upper);
    out
}
