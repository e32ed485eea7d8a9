//! Compression and restoring of TCP headers, at the two ends of a compressed path.
//!
//! Place: between `ip` and the fragmenter, for this node's own packets and for those that a border
//! router takes from one link to another. Relays have no part in it: they forward compressed
//! headers unchanged. Left out: contexts and rules, which are [`tcphc`](crate::tcphc)'s. Source:
//! `docs/reference/tcphc.md`.

use core::net::Ipv6Addr;

use crate::link::LinkDrop;
use crate::lowpan::TcpForm;
use crate::tcphc::{self, Flow, Tcphc};
use crate::time::Instant;
use crate::wire::cursor::copy;
use crate::wire::ipv6::{Extensions, HEADER_LEN, Header};
use crate::wire::{tcp, tcphc as wire};

/// Compresses the TCP header of a packet whose path over this link begins here; returns the
/// form that it has then.
///
/// `header`: the IPv6 header in `packet`. `room`: the most bytes of a compressed TCP header that
/// fit a first fragment.
pub(super) fn compress(
    tcphc: Option<&mut Tcphc<'_>>,
    (header, packet): (&Header, &mut [u8]),
    origin: tcphc::Origin,
    room: usize,
    now: Instant,
) -> TcpForm {
    if !wire::IS_SUPPORTED {
        return TcpForm::Plain;
    }
    let Some((tcphc, segment)) = tcphc.zip(segment_right_behind(header, packet)) else {
        return TcpForm::Plain;
    };
    let flow = flow(header.src, header.dst);
    let mut header = [0; wire::HEADER_LEN_MAX];
    let out = header.get_mut(..room.min(wire::HEADER_LEN_MAX));
    match tcphc.compress(&flow, segment, origin, now, out.unwrap_or_default()) {
        Ok(made) => {
            let header = header.get(..made.compressed_len).unwrap_or_default();
            TcpForm::put(header, made.uncompressed_len, segment)
        }
        Err(tcphc::Plain) => TcpForm::Plain,
    }
}

/// Restores the TCP header of a packet whose path over this link ends here.
///
/// `header`: of IPv6, as it stands in `packet`.
///
/// # Errors
/// [`LinkDrop::TcpCompression`]; the table has counted why.
pub(super) fn restore(
    tcphc: Option<&mut Tcphc<'_>>,
    (header, packet): (&Header, &mut [u8]),
    form: TcpForm,
    now: Instant,
) -> Result<(), LinkDrop> {
    // A plain segment updates the contexts only in the form that the compressor at the other end
    // can read, so that both ends update theirs from the same segments.
    let segment = match form {
        TcpForm::Plain => segment_right_behind(header, packet),
        TcpForm::Full { .. } | TcpForm::Compressed => segment_of(header, packet),
    };
    let Some((tcphc, segment)) = tcphc.zip(segment) else {
        return match form {
            TcpForm::Compressed => Err(LinkDrop::TcpCompression),
            TcpForm::Plain | TcpForm::Full { .. } => Ok(()),
        };
    };
    let flow = flow(header.dst, header.src);
    let taken = match form {
        TcpForm::Plain => {
            tcphc.on_plain(&flow, segment, now);
            Ok(())
        }
        TcpForm::Full { cid } => tcphc.on_full(&flow, cid, segment, now),
        TcpForm::Compressed => {
            let mut header = [0; tcp::HEADER_LEN_MAX];
            let bytes = TcpForm::compressed(segment);
            let restored = tcphc.decompress(&flow, bytes, now, &mut header);
            restored.map(|restored| {
                copy(
                    segment,
                    header.get(..restored.uncompressed_len).unwrap_or_default(),
                );
            })
        }
    };
    taken.map_err(|_| LinkDrop::TcpCompression)
}

/// As [`segment_of`], where nothing stands between IPv6 and TCP. Only strangers send anything
/// else, and extension headers may change the addresses that the checksum covers.
fn segment_right_behind<'p>(header: &Header, packet: &'p mut [u8]) -> Option<&'p mut [u8]> {
    let is_bare = header.next_header == tcp::NEXT_HEADER;
    is_bare.then(|| segment_of(header, packet)).flatten()
}

/// The TCP segment in `packet`.
fn segment_of<'p>(header: &Header, packet: &'p mut [u8]) -> Option<&'p mut [u8]> {
    let end = HEADER_LEN + usize::from(header.payload_len);
    let mut walk = Extensions::new(header.next_header, packet.get(HEADER_LEN..end)?);
    while walk.next().ok()?.is_some() {}
    if walk.next_header() != tcp::NEXT_HEADER || header.dst.is_multicast() {
        return None;
    }
    let start = end - walk.rest().len();
    packet.get_mut(start..end)
}

/// A connection as its compressor here sees it.
// Not inlined: it has several callers, and one copy saves flash.
#[inline(never)]
pub(super) fn flow(local: Ipv6Addr, remote: Ipv6Addr) -> Flow {
    // A mesh has one prefix, and link-local addresses are of one link anyway.
    let within_mesh = local.octets().first_chunk::<8>() == remote.octets().first_chunk();
    Flow {
        local,
        remote,
        within_mesh,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    /// A SYN, behind destination options or not, as it leaves for the mesh.
    fn form_of_syn(options: &[u8], next_header: u8) -> TcpForm {
        let (src, dst) = (
            Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1),
            Ipv6Addr::LOCALHOST,
        );
        let dst = Ipv6Addr::from(u128::from(dst) | 0xfd01 << 112);
        let header = tcp::Header {
            flags: tcp::Flags::SYN,
            ..tcp::Header::default()
        };
        let tcp_at = HEADER_LEN + options.len();
        let mut packet = std::vec![0; tcp_at + tcp::HEADER_LEN];
        header.emit(&mut packet[tcp_at..]).unwrap();
        tcp::fill_checksum(&src, &dst, &mut packet[tcp_at..]);
        packet[HEADER_LEN..tcp_at].copy_from_slice(options);
        let ipv6 = Header {
            traffic_class: crate::wire::ipv6::TrafficClass(0),
            flow_label: 0,
            payload_len: (packet.len() - HEADER_LEN) as u16,
            next_header,
            hop_limit: 64,
            src,
            dst,
        };
        ipv6.emit(&mut packet).unwrap();
        let mut contexts = [tcphc::Context::EMPTY; 1];
        let mut rng = crate::random::Rng::from_seed([1, 2]);
        let config = tcphc::Config {
            end: tcphc::End::Router,
            quiet: Duration::ZERO,
            ..tcphc::Config::DEFAULT
        };
        let now = Instant::ORIGIN;
        let mut table = Tcphc::new(&mut contexts, config, now, &mut rng);
        compress(
            Some(&mut table),
            (&ipv6, &mut packet),
            tcphc::Origin::Outside,
            90,
            now,
        )
    }

    #[test]
    fn what_has_extension_headers_goes_plain() {
        assert_ne!(form_of_syn(&[], tcp::NEXT_HEADER), TcpForm::Plain);
        let destination_options = [tcp::NEXT_HEADER, 0, 1, 4, 0, 0, 0, 0];
        assert_eq!(form_of_syn(&destination_options, 60), TcpForm::Plain);
    }
}
