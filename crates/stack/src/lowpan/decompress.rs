//! Compressed headers back to IPv6, exactly.
//!
//! Place: incoming frames: an unfragmented packet, or a first fragment.
//! Left out: GHC. Source: RFC 6282.

use super::contexts::Contexts;
use super::restored::{DecompressError, Restored};
use super::routing::{self, LeadingHeaders};
use super::{First, HeaderForms, LinkPair, NEXT_HEADERS_MAX, TcpForm, Unnumbered, unabridged};
use crate::wire::ipv6::{self, next_header};
use crate::wire::lowpan_dispatch::{Dispatch, classify};
use crate::wire::lowpan_iphc;
use crate::wire::rpl_option::Rpi;
use crate::wire::udp;

/// Result of [`decompress`]: lengths before and after, and what stands beside the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decompressed {
    /// Bytes read from the frame; the packet goes on behind them, as it is.
    pub compressed_len: usize,
    /// Bytes of headers written to `out`.
    pub uncompressed_len: usize,
    /// The UDP checksum was elided and is zero in `out`, because not all of the payload is
    /// here: [`complete_udp_checksum`] is due when it is.
    pub udp_checksum_elided: bool,
    /// How the TCP header, if there is one, stands in `out`.
    pub tcp: TcpForm,
    /// RPL packet information that came with the packet, as a 6LoRH or in hop-by-hop options of
    /// its own; not in `out`.
    pub rpi: Option<Rpi>,
    /// Bytes of the packet that fragment headers do not number, less those that they number
    /// besides. Fragment headers count the packet without the headers that 6LoRH stands for, and
    /// with hop-by-hop options that were taken out. So a later fragment belongs this far behind its
    /// offset.
    pub unnumbered: Unnumbered,
}

impl Decompressed {
    /// The first fragment whose headers these are: `bytes` are `out` and what follows the headers.
    pub const fn first<'p>(&self, bytes: &'p [u8]) -> First<'p> {
        First {
            bytes,
            forms: self.forms(),
            unnumbered: self.unnumbered,
        }
    }

    /// The form of the packet's headers on the air.
    pub const fn forms(&self) -> HeaderForms {
        HeaderForms {
            tcp: self.tcp,
            rpi: self.rpi,
        }
    }
}

/// Restores the headers at the start of `bytes` (IPHC, 6LoRH and IPHC, or uncompressed IPv6)
/// into `out`.
///
/// `bytes`: a frame's payload, or what follows a FRAG1 header. `datagram_size`: that
/// header's; `None`: the whole packet is here, and its length follows from that.
///
/// # Errors
/// [`DecompressError`]; `out` then holds nothing of use.
pub fn decompress(
    bytes: &[u8],
    link: LinkPair,
    contexts: &Contexts,
    datagram_size: Option<u16>,
    out: &mut [u8],
) -> Result<Decompressed, DecompressError> {
    match classify(bytes).map_err(DecompressError::Unsupported)? {
        Dispatch::Ipv6 => uncompressed(bytes.get(1..).unwrap_or_default(), datagram_size, out),
        Dispatch::Iphc => compressed(
            &mut LeadingHeaders::none(),
            bytes,
            link,
            contexts,
            datagram_size,
            out,
        ),
        #[cfg(feature = "rpl")]
        Dispatch::Routed => {
            let (mut leading, iphc) = LeadingHeaders::parse(bytes)?;
            compressed(&mut leading, iphc, link, contexts, datagram_size, out)
        }
        Dispatch::Fragment => Err(DecompressError::Fragment),
    }
}

fn uncompressed(
    packet: &[u8],
    datagram_size: Option<u16>,
    out: &mut [u8],
) -> Result<Decompressed, DecompressError> {
    let (mut header, rest) = ipv6::Header::parse_start(packet).map_err(DecompressError::Ipv6)?;
    let size = ipv6::HEADER_LEN + usize::from(header.payload_len);
    let expected = datagram_size.map_or(packet.len(), usize::from);
    if size != expected || ipv6::HEADER_LEN + rest.len() > size {
        return Err(DecompressError::DatagramSize);
    }
    let mut leading = LeadingHeaders::none();
    let (next, behind) = routing::take_option(&mut leading, Some(header.next_header), rest);
    let option_len = rest.len() - behind.len();
    header.payload_len = header.payload_len.saturating_sub(option_len as u16);
    header.next_header = next.unwrap_or(header.next_header);
    header.emit(out)?;
    Ok(Decompressed {
        compressed_len: 1 + ipv6::HEADER_LEN + option_len,
        uncompressed_len: ipv6::HEADER_LEN,
        udp_checksum_elided: false,
        tcp: TcpForm::Plain,
        rpi: leading.rpi(),
        unnumbered: leading.unnumbered(),
    })
}

/// `leading`: the routing headers in front of `bytes`.
fn compressed(
    leading: &mut LeadingHeaders<'_>,
    bytes: &[u8],
    link: LinkPair,
    contexts: &Contexts,
    datagram_size: Option<u16>,
    out: &mut [u8],
) -> Result<Decompressed, DecompressError> {
    let (mut iphc, mut rest) = lowpan_iphc::Header::parse(bytes)?;
    (iphc.next_header, rest) = routing::take_option(leading, iphc.next_header, rest);
    let mut packet = Restored::new(out);
    routing::restore(leading, &mut packet, (&iphc, rest), link, contexts)?;
    let mut more = iphc.next_header.is_none();
    for _ in 0..NEXT_HEADERS_MAX {
        if !more {
            break;
        }
        (rest, more) = packet.next(rest, contexts)?;
    }
    if more {
        return Err(DecompressError::TooManyHeaders);
    }
    let here = packet.len + rest.len();
    let unnumbered = leading.unnumbered();
    let total = datagram_size.map_or(here, |size| unabridged(usize::from(size), unnumbered));
    if here > total {
        return Err(DecompressError::DatagramSize);
    }
    packet.fill_lengths(total)?;
    let is_whole = here == total;
    if let Some(at) = packet.elided_at {
        if packet.is_routed {
            return Err(DecompressError::ChecksumBehindRouting);
        }
        if is_whole {
            packet.fill_udp_checksum(at, rest);
        }
    }
    Ok(Decompressed {
        compressed_len: leading.len() + bytes.len() - rest.len(),
        uncompressed_len: packet.len,
        udp_checksum_elided: packet.elided_at.is_some() && !is_whole,
        tcp: packet.tcp,
        rpi: leading.rpi(),
        unnumbered,
    })
}

/// Computes the UDP checksum of a whole `packet` from which it was elided.
///
/// Walks to the innermost IPv6 header; leaves a packet alone that holds no UDP datagram, or
/// one with a checksum (over IPv6 none is zero, RFC 8200 §8.1).
pub fn complete_udp_checksum(packet: &mut [u8]) {
    let mut at = 0;
    for _ in 0..NEXT_HEADERS_MAX {
        let Some(Ok((header, payload))) = packet.get(at..).map(ipv6::Header::parse) else {
            return;
        };
        let mut walk = ipv6::Extensions::new(header.next_header, payload);
        while let Ok(Some(_)) = walk.next() {}
        let start = at + ipv6::HEADER_LEN + payload.len() - walk.rest().len();
        let end = at + ipv6::HEADER_LEN + payload.len();
        match walk.next_header() {
            next_header::IPV6 => at = start,
            udp::NEXT_HEADER => {
                let datagram = packet.get_mut(start..end).unwrap_or_default();
                if udp::checksum_field(datagram) == Some(0) {
                    udp::fill_checksum(&header.src, &header.dst, datagram);
                }
                return;
            }
            _ => return,
        }
    }
}
