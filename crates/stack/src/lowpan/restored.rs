//! The headers of a packet as they are restored, one behind the other.
//!
//! Place: [`decompress`](super::decompress) reads what is compressed and puts it here.
//! Left out: the order in which headers may come. Source: RFC 6282.

use core::net::Ipv6Addr;

use super::contexts::{Context, Contexts};
use super::{Encapsulation, NEXT_HEADERS_MAX, TcpForm};
use crate::wire::checksum::Checksum;
use crate::wire::cursor::{Full, Writer, copy};
use crate::wire::ipv6::{self, next_header};
#[cfg(feature = "rpl")]
use crate::wire::lorh;
use crate::wire::lowpan_dispatch::Unsupported;
use crate::wire::lowpan_iphc::{self, Destination, Iid, Multicast, Prefix, Source, Unicast};
use crate::wire::lowpan_nhc::{self, Extension, Nhc, Tcp, Udp, next_header_of};
use crate::wire::{LinkAddr, tcphc, udp};

/// Why a frame cannot be decompressed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DecompressError {
    /// A format that is recognised, but not read.
    Unsupported(Unsupported),
    /// A fragment header: reassembly comes first.
    Fragment,
    /// The compressed IPv6 header is malformed.
    Iphc(lowpan_iphc::ParseError),
    /// A compressed next header is malformed.
    Nhc(lowpan_nhc::ParseError),
    /// The uncompressed IPv6 header is malformed.
    Ipv6(ipv6::ParseError),
    /// A 6LoWPAN routing header is malformed, or unknown and critical.
    #[cfg(feature = "rpl")]
    Lorh(lorh::ParseError),
    /// A 6LoWPAN routing header that counts on the root's address, which is not known.
    #[cfg(feature = "rpl")]
    NoRoot,
    /// A source route of more than [`ROUTE_HOPS_MAX`](crate::limits::ROUTE_HOPS_MAX) hops.
    #[cfg(feature = "rpl")]
    RouteLength,
    /// A context that is not defined.
    Context,
    /// A multicast address from a context of more than 64 bits.
    MulticastPrefix,
    /// An extension header whose length is no multiple of eight, and may not be padded.
    ExtensionLength,
    /// More headers than one packet needs.
    TooManyHeaders,
    /// The packet is longer than its datagram size, or than a length field can tell.
    DatagramSize,
    /// A UDP checksum elided behind a routing header: the final destination is not known.
    ChecksumBehindRouting,
    /// The headers do not fit `out`.
    Full,
}

impl DecompressError {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Unsupported(unsupported) => unsupported.reason(),
            Self::Fragment => "6LoWPAN fragment within a packet",
            Self::Iphc(error) => error.reason(),
            Self::Nhc(error) => error.reason(),
            Self::Ipv6(error) => error.reason(),
            #[cfg(feature = "rpl")]
            Self::Lorh(error) => error.reason(),
            #[cfg(feature = "rpl")]
            Self::NoRoot => "root of the 6LoWPAN routing header unknown",
            #[cfg(feature = "rpl")]
            Self::RouteLength => "source route with too many hops",
            Self::Context => "6LoWPAN context unknown",
            Self::MulticastPrefix => "6LoWPAN context too long for a multicast address",
            Self::ExtensionLength => "compressed extension header of impossible length",
            Self::TooManyHeaders => "too many compressed headers",
            Self::DatagramSize => "packet longer than its datagram size",
            Self::ChecksumBehindRouting => "UDP checksum elided behind a routing header",
            Self::Full => "no room for the decompressed header",
        }
    }
}

speaks!(DecompressError);

impl From<lowpan_iphc::ParseError> for DecompressError {
    fn from(error: lowpan_iphc::ParseError) -> Self {
        Self::Iphc(error)
    }
}

impl From<lowpan_nhc::ParseError> for DecompressError {
    fn from(error: lowpan_nhc::ParseError) -> Self {
        Self::Nhc(error)
    }
}

impl From<Full> for DecompressError {
    fn from(_: Full) -> Self {
        Self::Full
    }
}

/// The outer IPv6 header, one more within a tunnel, and a length field for each further header.
const LENGTHS_MAX: usize = NEXT_HEADERS_MAX + 1 + cfg!(feature = "rpl") as usize;

/// The headers restored so far.
pub(super) struct Restored<'a> {
    out: &'a mut [u8],
    pub(super) len: usize,
    /// Length fields that wait for the packet's length: where each stands, and from where on
    /// it counts. Of 16 bits, which headers never fill: the call stack is deepest here.
    lengths: [(u16, u16); LENGTHS_MAX],
    lengths_len: usize,
    /// Source and destination in the innermost IPv6 header.
    pub(super) ends: (Ipv6Addr, Ipv6Addr),
    /// A routing header stands behind that one: its destination is not the last.
    pub(super) is_routed: bool,
    /// Where the UDP header stands whose checksum was elided.
    pub(super) elided_at: Option<usize>,
    /// The form of the TCP header.
    pub(super) tcp: TcpForm,
}

impl<'a> Restored<'a> {
    pub(super) fn new(out: &'a mut [u8]) -> Self {
        Self {
            out,
            len: 0,
            lengths: [(0, 0); LENGTHS_MAX],
            lengths_len: 0,
            ends: (Ipv6Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED),
            is_routed: false,
            elided_at: None,
            tcp: TcpForm::Plain,
        }
    }

    /// Restores the header that `bytes` begin with; returns what follows it, and whether that is
    /// a compressed header too.
    pub(super) fn next<'b>(
        &mut self,
        bytes: &'b [u8],
        contexts: &Contexts,
    ) -> Result<(&'b [u8], bool), DecompressError> {
        let (nhc, rest) = Nhc::parse(bytes)?;
        let more = match nhc {
            Nhc::Extension(extension) => {
                self.is_routed |= extension.kind == next_header::ROUTING;
                self.extension(&extension, rest)?;
                extension.next_header.is_none()
            }
            Nhc::Ipv6 => {
                let (iphc, rest) = lowpan_iphc::Header::parse(rest)?;
                let encapsulation = Encapsulation::ipv6(self.ends);
                self.iphc((&iphc, rest), encapsulation, contexts)?;
                return Ok((rest, iphc.next_header.is_none()));
            }
            Nhc::Udp(udp) => {
                self.elided_at = udp.checksum.is_none().then_some(self.len);
                self.udp(&udp)?;
                false
            }
            Nhc::Tcp(tcp) if tcphc::IS_SUPPORTED => {
                self.tcp = self.tcp(&tcp)?;
                false
            }
            Nhc::Tcp(_) => return Err(DecompressError::Nhc(lowpan_nhc::ParseError::Unknown)),
        };
        Ok((rest, more))
    }

    /// A writer behind what is there.
    pub(super) fn writer(&mut self) -> Writer<'_> {
        Writer::new(self.out.get_mut(self.len..).unwrap_or_default())
    }

    fn length_due(&mut self, at: usize, counts_from: usize) -> Result<(), DecompressError> {
        let slot = self
            .lengths
            .get_mut(self.lengths_len)
            .ok_or(DecompressError::TooManyHeaders)?;
        *slot = (at as u16, counts_from as u16);
        self.lengths_len += 1;
        Ok(())
    }

    /// Appends the IPv6 header that `iphc` stands for. `rest`: what follows that.
    pub(super) fn iphc(
        &mut self,
        (iphc, rest): (&lowpan_iphc::Header, &[u8]),
        encapsulation: Encapsulation,
        contexts: &Contexts,
    ) -> Result<(), DecompressError> {
        let mut header = BLANK;
        restore_header((iphc, rest), encapsulation, contexts, &mut header)?;
        self.ipv6(&header)
    }

    /// Appends an IPv6 header, whose length is filled in later.
    pub(super) fn ipv6(&mut self, header: &ipv6::Header) -> Result<(), DecompressError> {
        self.length_due(self.len + 4, self.len + ipv6::HEADER_LEN)?;
        let at = self.len;
        self.len += header.emit(self.out.get_mut(at..).unwrap_or_default())?;
        self.ends = (header.src, header.dst);
        self.is_routed = false;
        Ok(())
    }

    fn extension(&mut self, extension: &Extension<'_>, rest: &[u8]) -> Result<(), DecompressError> {
        let next_header = following(extension.next_header, rest)?;
        let mut w = self.writer();
        w.u8(next_header)?;
        if extension.kind == next_header::FRAGMENT {
            w.put(extension.body)?;
        } else {
            let len = (extension.body.len() + 2).next_multiple_of(8);
            let padding = len - 2 - extension.body.len();
            let padded = matches!(
                extension.kind,
                next_header::HOP_BY_HOP | next_header::DESTINATION_OPTIONS
            );
            if padding != 0 && !padded {
                return Err(DecompressError::ExtensionLength);
            }
            w.u8((len / 8 - 1) as u8)?;
            w.put(extension.body)?;
            w.put(PADDINGS.get(padding).copied().unwrap_or_default())?;
        }
        self.len += w.written();
        Ok(())
    }

    fn udp(&mut self, udp: &Udp) -> Result<(), DecompressError> {
        self.length_due(self.len + 4, self.len)?;
        let mut w = self.writer();
        w.u16(udp.ports.src_port)?;
        w.u16(udp.ports.dst_port)?;
        w.u16(0)?;
        w.u16(udp.checksum.unwrap_or(0))?;
        self.len += w.written();
        Ok(())
    }

    fn tcp(&mut self, tcp: &Tcp<'_>) -> Result<TcpForm, DecompressError> {
        let mut w = self.writer();
        let form = TcpForm::lay_out(tcp, &mut w)?;
        self.len += w.written();
        Ok(form)
    }

    /// Fills in every length field of a packet of `total` bytes.
    pub(super) fn fill_lengths(&mut self, total: usize) -> Result<(), DecompressError> {
        for (at, counts_from) in self.lengths.iter().take(self.lengths_len) {
            let len = total
                .checked_sub(usize::from(*counts_from))
                .and_then(|len| u16::try_from(len).ok())
                .ok_or(DecompressError::DatagramSize)?;
            copy(
                self.out.get_mut(usize::from(*at)..).unwrap_or_default(),
                &len.to_be_bytes(),
            );
        }
        Ok(())
    }

    pub(super) fn fill_udp_checksum(&mut self, at: usize, payload: &[u8]) {
        let udp = self.out.get(at..self.len).unwrap_or_default();
        let len = udp.len() + payload.len();
        let (src, dst) = self.ends;
        let mut sum = Checksum::pseudo_header(&src, &dst, udp::NEXT_HEADER, len);
        sum.add(udp);
        sum.add(payload);
        // A checksum of zero would mean "no checksum" (RFC 8200 §8.1).
        let checksum = if sum.finish() == 0 {
            0xffff
        } else {
            sum.finish()
        };
        copy(
            self.out.get_mut(at + 6..).unwrap_or_default(),
            &checksum.to_be_bytes(),
        );
    }
}

/// Padding options by length, 0 to 7 bytes.
const PADDINGS: [&[u8]; 8] = [
    &[],
    &[0],
    &[1, 0],
    &[1, 1, 0],
    &[1, 2, 0, 0],
    &[1, 3, 0, 0, 0],
    &[1, 4, 0, 0, 0, 0],
    &[1, 5, 0, 0, 0, 0, 0],
];

/// A header to be restored.
pub(super) const BLANK: ipv6::Header = ipv6::Header {
    traffic_class: ipv6::TrafficClass(0),
    flow_label: 0,
    payload_len: 0,
    next_header: 0,
    hop_limit: 0,
    src: Ipv6Addr::UNSPECIFIED,
    dst: Ipv6Addr::UNSPECIFIED,
};

/// Restores a [`BLANK`] header from what `iphc` stands for; its payload length stays zero. `rest`:
/// the bytes after the compressed header, which give the next header if that is elided.
// Not a result with the header: that would be copied twice.
pub(super) fn restore_header(
    (iphc, rest): (&lowpan_iphc::Header, &[u8]),
    encapsulation: Encapsulation,
    contexts: &Contexts,
    header: &mut ipv6::Header,
) -> Result<(), DecompressError> {
    header.traffic_class = iphc.traffic_class;
    header.flow_label = iphc.flow_label;
    header.next_header = following(iphc.next_header, rest)?;
    header.hop_limit = iphc.hop_limit;
    if let Source::Unicast(src) = &iphc.src {
        unicast(src, &encapsulation.src, contexts, &mut header.src)?;
    }
    match &iphc.dst {
        Destination::Unicast(dst) => {
            unicast(dst, &encapsulation.dst, contexts, &mut header.dst)?;
        }
        Destination::Multicast(dst) => multicast(dst, contexts, &mut header.dst)?,
    }
    Ok(())
}

/// The next header value: in line, or that of the NHC in front of `rest`.
fn following(in_line: Option<u8>, rest: &[u8]) -> Result<u8, lowpan_nhc::ParseError> {
    match in_line {
        Some(next_header) => Ok(next_header),
        None => next_header_of(*rest.first().ok_or(lowpan_nhc::ParseError::Truncated)?),
    }
}

/// Writes the address to `addr`: within a result it would be copied twice.
fn unicast(
    form: &Unicast,
    elided: &[u8; 8],
    contexts: &Contexts,
    addr: &mut Ipv6Addr,
) -> Result<(), DecompressError> {
    let (prefix, iid) = match form {
        Unicast::Full(full) => {
            *addr = *full;
            return Ok(());
        }
        Unicast::Known { prefix, iid } => (prefix, iid),
    };
    let derived;
    let iid = match iid {
        Iid::Inline(iid) => iid,
        Iid::Short(short) => {
            derived = LinkAddr::Short(*short).iid();
            &derived
        }
        Iid::Elided => elided,
    };
    let context = match prefix {
        Prefix::Context(id) => contexts.get(*id).ok_or(DecompressError::Context)?,
        Prefix::LinkLocal => &Context::LINK_LOCAL,
    };
    *addr = context.expand(iid);
    Ok(())
}

/// As [`unicast`].
fn multicast(
    form: &Multicast,
    contexts: &Contexts,
    addr: &mut Ipv6Addr,
) -> Result<(), DecompressError> {
    let mut octets = [0; 16];
    let [all_ones, first, riid, len, prefix @ .., _, _, _, _] = &mut octets;
    *all_ones = 0xff;
    let (flags, group): (u8, &[u8]) = match form {
        Multicast::Full(full) => {
            *addr = *full;
            return Ok(());
        }
        Multicast::Bits8(group) => (2, core::slice::from_ref(group)),
        Multicast::Bits32([flags, group @ ..]) => (*flags, group),
        Multicast::Bits48([flags, group @ ..]) => (*flags, group),
        Multicast::Prefix {
            context,
            bits: [flags, rendezvous, group @ ..],
        } => {
            let context = contexts.get(*context).ok_or(DecompressError::Context)?;
            let known = context.multicast_prefix();
            *prefix = known.ok_or(DecompressError::MulticastPrefix)?;
            (*riid, *len) = (*rendezvous, context.prefix_len());
            (*flags, group)
        }
    };
    *first = flags;
    let at = octets.len().saturating_sub(group.len());
    copy(octets.get_mut(at..).unwrap_or_default(), group);
    *addr = Ipv6Addr::from(octets);
    Ok(())
}
