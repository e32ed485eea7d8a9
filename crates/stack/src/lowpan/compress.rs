//! IPv6 headers to their smallest encoding.
//!
//! Place: outgoing packets, once per hop, for identifiers may derive from the link's ends.
//! Left out: GHC, and elision of UDP checksums, which the application would have to allow.
//! Source: RFC 6282.

use core::net::Ipv6Addr;

use super::contexts::{Context, Contexts, high_64, low_64};
use super::{
    Encapsulation, HeaderForms, LinkPair, NEXT_HEADERS_MAX, PartlyCompressed, TcpForm, Unnumbered,
    routing,
};
use crate::wire::cursor::{Full, Writer};
use crate::wire::ipv6::{self, next_header};
use crate::wire::lowpan_iphc::{self, Destination, Iid, Multicast, Prefix, Source, Unicast};
use crate::wire::lowpan_nhc::{EXTENSION_LEN_MAX, Extension, Nhc, Udp};
use crate::wire::{LinkAddr, same, tcp, tcphc, udp};

/// Result of [`compress`]: how many bytes became how many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compressed {
    /// Bytes of compressed headers written to `out`.
    pub compressed_len: usize,
    /// Bytes of the packet that they stand for; the rest follows as it is.
    pub uncompressed_len: usize,
    /// How many bytes fragment headers do not number; see
    /// [`Decompressed::unnumbered`](super::Decompressed::unnumbered).
    pub unnumbered: Unnumbered,
}

/// Why a packet cannot be compressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CompressError {
    /// No IPv6 header, or bytes beyond its payload length.
    Malformed,
    /// `out` is too short for the compressed headers.
    Full,
}

impl CompressError {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Malformed => "IPv6 header does not fit its packet",
            Self::Full => "no room for the compressed header",
        }
    }
}

speaks!(CompressError);

impl From<Full> for CompressError {
    fn from(_: Full) -> Self {
        Self::Full
    }
}

/// Compresses the headers at the start of `packet` into `out`.
///
/// `packet` may be the start of a packet only (a first fragment to be forwarded): headers
/// that it does not hold whole stay as they are. The compressed headers are never longer
/// than what they stand for, so an `out` as long as `packet` always suffices; RPL packet
/// information takes nine bytes more. Where not all
/// of them fit `out`, only the first is compressed, and the others go as payload does: an
/// extension header longer than a frame must not keep its packet from being sent.
///
/// # Errors
/// [`CompressError`]; `out` then holds nothing of use.
pub fn compress(
    packet: &[u8],
    link: LinkPair,
    contexts: &Contexts,
    out: &mut [u8],
) -> Result<Compressed, CompressError> {
    compress_form(packet, HeaderForms::default(), link, contexts, out)
}

/// As [`compress`], of a packet with further information beside it: the form of its TCP header, and
/// RPL packet information, which is written in the form that the DODAG of `contexts` uses.
///
/// # Errors
///
/// [`CompressError`]; besides, [`CompressError::Malformed`] if the packet does not hold the whole
/// TCP header, and [`CompressError::Full`] if that header does not fit: it cannot go in line.
pub fn compress_form(
    packet: &[u8],
    forms: HeaderForms,
    link: LinkPair,
    contexts: &Contexts,
    out: &mut [u8],
) -> Result<Compressed, CompressError> {
    match compress_headers(packet, forms, &link, contexts, 0, out) {
        Err(CompressError::Full) if forms.tcp != TcpForm::Compressed => {
            let plain = HeaderForms {
                tcp: TcpForm::Plain,
                ..forms
            };
            compress_headers(packet, plain, &link, contexts, NEXT_HEADERS_MAX, out)
        }
        done => done,
    }
}

/// Bytes of `header` alone once compressed, whatever follows it: without the compression of that.
pub(crate) fn compressed_header_len(
    header: &ipv6::Header,
    link: LinkPair,
    contexts: &Contexts,
) -> usize {
    let mut out = [0; ipv6::HEADER_LEN];
    let mut w = Writer::new(&mut out);
    let in_line = Some(header.next_header);
    let emitted = emit_ipv6(
        &mut w,
        header,
        in_line,
        &Encapsulation::link(link),
        contexts,
    );
    emitted.map_or(ipv6::HEADER_LEN, |()| w.written())
}

/// As [`compress_form`], with `headers` of the further headers counted as compressed already.
fn compress_headers(
    packet: &[u8],
    forms: HeaderForms,
    link: &LinkPair,
    contexts: &Contexts,
    headers: usize,
    out: &mut [u8],
) -> Result<Compressed, CompressError> {
    let (header, payload) =
        ipv6::Header::parse_start(packet).map_err(|_| CompressError::Malformed)?;
    let left = usize::from(header.payload_len);
    if payload.len() > left {
        return Err(CompressError::Malformed);
    }
    let mut w = Writer::new(out);
    let mut form = forms.tcp;
    let mut begun = PartlyCompressed {
        header,
        rest: payload,
        encapsulation: Encapsulation::link(*link),
        #[cfg(all(feature = "rpl", feature = "plain-rpl"))]
        option: None,
        unnumbered: Unnumbered::default(),
    };
    let routes = headers < NEXT_HEADERS_MAX;
    routing::begin(&mut begun, forms.rpi, routes, contexts, &mut w)?;
    let header = &begun.header;
    let mut chain = Chain {
        rest: begun.rest,
        left: (left + begun.rest.len()).saturating_sub(payload.len()),
        headers,
        tcp: form,
    };
    let mut step = chain.take(header.next_header);
    let in_line = step.is_none().then_some(header.next_header);
    emit_begun(&mut w, &begun, in_line, contexts)?;
    // Of what follows the header that has just been written.
    begun.encapsulation = Encapsulation::ipv6((begun.header.src, begun.header.dst));
    while let Some(this) = step {
        step = this
            .next_header
            .and_then(|next_header| chain.take(next_header));
        let in_line = this.next_header.filter(|_| step.is_none());
        match this.what {
            HeaderKind::Extension { kind, body } => {
                Nhc::Extension(Extension {
                    kind,
                    next_header: in_line,
                    body,
                })
                .emit(&mut w)?;
            }
            HeaderKind::Ipv6(bytes) => {
                let inner = ipv6::Header::parse_start(bytes);
                let (inner, _) = inner.map_err(|_| CompressError::Malformed)?;
                Nhc::Ipv6.emit(&mut w)?;
                emit_ipv6(&mut w, &inner, in_line, &begun.encapsulation, contexts)?;
                begun.encapsulation = Encapsulation::ipv6((inner.src, inner.dst));
            }
            HeaderKind::Udp(udp) => Nhc::Udp(udp).emit(&mut w)?,
            HeaderKind::Tcp(header) => {
                form.emit(header, &mut w)?;
                form = TcpForm::Plain;
            }
        }
    }
    if tcphc::IS_SUPPORTED && form == TcpForm::Compressed {
        return Err(CompressError::Malformed);
    }
    Ok(Compressed {
        compressed_len: w.written(),
        uncompressed_len: packet.len() - chain.rest.len(),
        unnumbered: begun.unnumbered,
    })
}

/// Writes the IPv6 header, and the RPL option where one comes right behind it. `next_header`: what
/// follows both, in line.
fn emit_begun(
    w: &mut Writer<'_>,
    begun: &PartlyCompressed<'_>,
    next_header: Option<u8>,
    contexts: &Contexts,
) -> Result<(), Full> {
    #[cfg(all(feature = "rpl", feature = "plain-rpl"))]
    if let Some(body) = &begun.option {
        emit_ipv6(w, &begun.header, None, &begun.encapsulation, contexts)?;
        let option = Extension {
            kind: next_header::HOP_BY_HOP,
            next_header,
            body,
        };
        return Nhc::Extension(option).emit(w);
    }
    emit_ipv6(
        w,
        &begun.header,
        next_header,
        &begun.encapsulation,
        contexts,
    )
}

/// The headers behind the first one, as far as they can be compressed.
struct Chain<'a> {
    /// The available bytes behind the headers taken so far.
    rest: &'a [u8],
    /// Length of the rest of the packet by its length fields, bytes; more than `rest` in a first
    /// fragment.
    left: usize,
    headers: usize,
    /// The form of the TCP header.
    tcp: TcpForm,
}

/// One header of a packet, with what compression needs to know about it.
struct ParsedHeader<'a> {
    what: HeaderKind<'a>,
    /// Length of the uncompressed header, bytes.
    len: usize,
    /// The next header behind it; `None` when a payload follows.
    next_header: Option<u8>,
}

enum HeaderKind<'a> {
    Extension {
        kind: u8,
        body: &'a [u8],
    },
    /// From the header on: taken apart, it is four times as long as the others.
    Ipv6(&'a [u8]),
    Udp(Udp),
    Tcp(&'a [u8]),
}

impl<'a> Chain<'a> {
    /// Takes the header of type `kind` off, if it can be compressed.
    fn take(&mut self, kind: u8) -> Option<ParsedHeader<'a>> {
        if self.headers == NEXT_HEADERS_MAX {
            return None;
        }
        let step = match kind {
            udp::NEXT_HEADER => self.udp(),
            tcp::NEXT_HEADER if tcphc::IS_SUPPORTED => self.tcp(),
            next_header::IPV6 => self.ipv6(),
            kind if ipv6::is_extension(kind) => self.extension(kind),
            _ => None,
        }?;
        self.rest = self.rest.get(step.len..)?;
        self.left = self.left.checked_sub(step.len)?;
        // Behind a fragment header may stand any part of a packet, not the header it names.
        self.headers = match kind {
            next_header::FRAGMENT => NEXT_HEADERS_MAX,
            _ => self.headers + 1,
        };
        Some(step)
    }

    /// A datagram that ends before its packet keeps its header, for its length is not implied.
    fn udp(&self) -> Option<ParsedHeader<'a>> {
        let &[a, b, c, d, e, f, g, h] = self.rest.first_chunk()?;
        let ports = udp::Header {
            src_port: u16::from_be_bytes([a, b]),
            dst_port: u16::from_be_bytes([c, d]),
        };
        let udp = Udp {
            ports,
            checksum: Some(u16::from_be_bytes([g, h])),
        };
        let len_implied = usize::from(u16::from_be_bytes([e, f])) == self.left;
        let step = ParsedHeader {
            what: HeaderKind::Udp(udp),
            len: udp::HEADER_LEN,
            next_header: None,
        };
        len_implied.then_some(step)
    }

    fn tcp(&self) -> Option<ParsedHeader<'a>> {
        let len = self.tcp.header_len(self.rest)?;
        Some(ParsedHeader {
            what: HeaderKind::Tcp(self.rest.get(..len)?),
            len,
            next_header: None,
        })
    }

    fn ipv6(&self) -> Option<ParsedHeader<'a>> {
        let (inner, _) = ipv6::Header::parse_start(self.rest).ok()?;
        let len_implied = usize::from(inner.payload_len) + ipv6::HEADER_LEN == self.left;
        let step = ParsedHeader {
            what: HeaderKind::Ipv6(self.rest),
            len: ipv6::HEADER_LEN,
            next_header: Some(inner.next_header),
        };
        len_implied.then_some(step)
    }

    fn extension(&self, kind: u8) -> Option<ParsedHeader<'a>> {
        let header = ipv6::Extensions::new(kind, self.rest).next().ok()??;
        let body = match (kind, header.bytes) {
            (next_header::FRAGMENT, [_, body @ ..]) => body,
            (next_header::HOP_BY_HOP | next_header::DESTINATION_OPTIONS, [_, _, options @ ..]) => {
                without_padding(options)
            }
            (_, [_, _, body @ ..]) => body,
            _ => return None,
        };
        let step = ParsedHeader {
            what: HeaderKind::Extension { kind, body },
            len: header.bytes.len(),
            next_header: Some(header.next_header),
        };
        (body.len() <= EXTENSION_LEN_MAX).then_some(step)
    }
}

/// `options` without their padding, where it is one option at the very end, of seven bytes
/// at most, that the other side restores bit for bit (RFC 6282 §4.2).
fn without_padding(options: &[u8]) -> &[u8] {
    let mut rest = options;
    let mut was_padding = false;
    while let Some((kind, tail)) = rest.split_first() {
        let data_len = match (*kind, tail.first()) {
            (ipv6::option::PAD_1, _) => None,
            (_, Some(len)) => Some(usize::from(*len)),
            (_, None) => return options,
        };
        let len = data_len.map_or(1, |len| len + 2);
        let Some((option, after)) = rest.split_at_checked(len) else {
            return options;
        };
        let padding = *kind <= ipv6::option::PAD_N;
        if after.is_empty() && padding && !was_padding && len <= 7 {
            let zeros = option.iter().skip(2).all(|byte| *byte == 0);
            let kept = options.get(..options.len() - len).unwrap_or(options);
            return if zeros { kept } else { options };
        }
        was_padding = padding;
        rest = after;
    }
    options
}

fn emit_ipv6(
    w: &mut Writer<'_>,
    header: &ipv6::Header,
    next_header: Option<u8>,
    encapsulation: &Encapsulation,
    contexts: &Contexts,
) -> Result<(), Full> {
    let mut compressed = lowpan_iphc::Header {
        traffic_class: header.traffic_class,
        flow_label: header.flow_label,
        next_header,
        hop_limit: header.hop_limit,
        src: Source::Unspecified,
        dst: Destination::Unicast(Unicast::Full(header.dst)),
    };
    if header.src != Ipv6Addr::UNSPECIFIED {
        let src = unicast(&header.src, &encapsulation.src, contexts);
        compressed.src = Source::Unicast(src);
    }
    compressed.dst = match header.dst.is_multicast() {
        true => Destination::Multicast(multicast(&header.dst, contexts)),
        false => Destination::Unicast(unicast(&header.dst, &encapsulation.dst, contexts)),
    };
    compressed.emit(w)
}

/// The shortest form of `addr`; of equal ones that without context, then the lowest context,
/// for context 0 alone costs no identifier. Forms differ by two bytes or more, identifiers
/// cost one, so source and destination may choose apart.
fn unicast(addr: &Ipv6Addr, elided: &[u8; 8], contexts: &Contexts) -> Unicast {
    let iid = low_64(*addr);
    let [.., high, low] = iid;
    let short = u16::from_be_bytes([high, low]);
    let forms = [
        (Iid::Elided, *elided),
        (Iid::Short(short), LinkAddr::Short(short).iid()),
        (Iid::Inline(iid), iid),
    ];
    let link_local = same(&high_64(*addr), &LINK_LOCAL);
    for (form, bits) in &forms {
        if link_local && same(bits, &iid) {
            return Unicast::Known {
                prefix: Prefix::LinkLocal,
                iid: *form,
            };
        }
        let restores = |(_, context): &(u8, &Context)| context.expand(bits) == *addr;
        if let Some((id, _)) = contexts.compressing().find(restores) {
            return Unicast::Known {
                prefix: Prefix::Context(id),
                iid: *form,
            };
        }
    }
    Unicast::Full(*addr)
}

/// The upper half of a link-local address, `fe80::/64`.
const LINK_LOCAL: [u8; 8] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0];

fn multicast(addr: &Ipv6Addr, contexts: &Contexts) -> Multicast {
    let octets = addr.octets();
    let behind_flags = octets.iter().skip(2);
    let zeros = behind_flags.take_while(|octet| **octet == 0).count();
    match octets {
        [_, 2, .., group] if zeros >= 13 => Multicast::Bits8(group),
        [_, flags, .., a, b, c] if zeros >= 11 => Multicast::Bits32([flags, a, b, c]),
        [_, flags, .., a, b, c, d, e] if zeros >= 9 => Multicast::Bits48([flags, a, b, c, d, e]),
        [_, flags, riid, len, prefix @ .., a, b, c, d] => {
            let holds = |(_, context): &(u8, &Context)| {
                let known = context.multicast_prefix();
                context.prefix_len() == len && known.is_some_and(|known| same(&known, &prefix))
            };
            match contexts.compressing().find(holds) {
                Some((context, _)) => Multicast::Prefix {
                    context,
                    bits: [flags, riid, a, b, c, d],
                },
                None => Multicast::Full(*addr),
            }
        }
    }
}
