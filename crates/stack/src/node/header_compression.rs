//! Where compressed paths begin and end: TCP headers of packets on their way.
//!
//! Place: between `ip` and the fragmenter, for this node's own packets and for those that a
//! border router takes from one link to another. Relays have no part in it: what came
//! compressed goes on so. Left out: contexts and rules, which are
//! [`tcphc`](crate::tcphc)'s. Source: `docs/reference/tcphc.md`.

use core::net::Ipv6Addr;

use super::Drop;
use crate::lowpan::TcpForm;
use crate::mac::Class;
use crate::tcphc::{self, Flow, Tcphc};
use crate::time::Instant;
use crate::wire::cursor::copy;
use crate::wire::ipv6::{Extensions, HEADER_LEN, Header};
use crate::wire::{tcp, tcphc as wire};

/// What happens to a packet's TCP header where it leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Onward {
    /// Its compressed path begins here, if it has one.
    Begins(tcphc::Origin),
    /// It goes on as it came.
    As(TcpForm),
}

/// What a queue remembers of a packet beside its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Mark {
    pub(super) class: Class,
    pub(super) onward: Onward,
    /// When it was queued: low bits, in units of [`TICK_SHIFT`].
    at: u32,
}

impl Mark {
    /// Of a packet that this node makes.
    pub(super) const fn own(class: Class) -> Self {
        // Its age does not matter: its header is compressed when it leaves the queue.
        Self::new(class, Onward::Begins(tcphc::Origin::Own), Instant::ORIGIN)
    }

    pub(super) const fn new(class: Class, onward: Onward, now: Instant) -> Self {
        let at = ticks(now);
        Self { class, onward, at }
    }

    /// When it was queued, if that was less than [`TICKS_MASK`] ticks before `now`.
    pub(super) const fn since(self, now: Instant) -> Instant {
        let age = ticks(now).wrapping_sub(self.at) & TICKS_MASK;
        Instant::from_micros(now.as_micros().saturating_sub((age as u64) << TICK_SHIFT))
    }

    /// As a queue keeps it.
    pub(super) const fn to_bits(self) -> u32 {
        let (kind, cid) = match self.onward {
            Onward::Begins(tcphc::Origin::Own) => (0, 0),
            Onward::Begins(tcphc::Origin::Outside) => (1, 0),
            Onward::As(TcpForm::Plain) => (2, 0),
            Onward::As(TcpForm::Full { cid }) => (3, cid),
            Onward::As(TcpForm::Compressed) => (4, 0),
        };
        let control = matches!(self.class, Class::Control) as u8;
        self.at << TICKS_AT | u32::from_be_bytes([0, 0, control << 3 | kind, cid])
    }

    /// The reverse of [`Self::to_bits`].
    pub(super) const fn from_bits(bits: u32) -> Self {
        let [_, _, kind, cid] = bits.to_be_bytes();
        Self {
            at: bits >> TICKS_AT,
            class: if kind & 8 == 0 {
                Class::Own
            } else {
                Class::Control
            },
            onward: match kind & 7 {
                0 => Onward::Begins(tcphc::Origin::Own),
                1 => Onward::Begins(tcphc::Origin::Outside),
                2 => Onward::As(TcpForm::Plain),
                3 => Onward::As(TcpForm::Full { cid }),
                _ => Onward::As(TcpForm::Compressed),
            },
        }
    }
}

const fn ticks(at: Instant) -> u32 {
    (at.as_micros() >> TICK_SHIFT) as u32 & TICKS_MASK
}

/// 2^14 µs: twenty bits come round after 4.8 hours.
const TICK_SHIFT: u32 = 14;
const TICKS_MASK: u32 = (1 << 20) - 1;
/// Above class, kind and context.
const TICKS_AT: u32 = 12;

/// What of `packet` an ICMPv6 error may quote: nothing of a TCP header that only its ends can
/// read. TCP has no use for such an error then.
pub(super) fn quotable(packet: &[u8], form: TcpForm) -> &[u8] {
    match form {
        TcpForm::Compressed => packet.get(..HEADER_LEN).unwrap_or_default(),
        TcpForm::Plain | TcpForm::Full { .. } => packet,
    }
}

/// Compresses the TCP header of `packet`, whose path over this radio begins here; returns the
/// form that it has then.
///
/// `room`: what a first fragment can hold of the compressed TCP header, bytes.
pub(super) fn compress(
    tcphc: Option<&mut Tcphc<'_>>,
    packet: &mut [u8],
    origin: tcphc::Origin,
    room: usize,
    now: Instant,
) -> TcpForm {
    if !wire::IS_SUPPORTED {
        return TcpForm::Plain;
    }
    let Some((tcphc, (src, dst, segment))) = tcphc.zip(segment_right_behind(packet)) else {
        return TcpForm::Plain;
    };
    let flow = flow(src, dst);
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

/// Restores the TCP header of `packet`, whose path over this radio ends here.
///
/// # Errors
/// [`Drop::TcpCompression`]; the table has counted why.
pub(super) fn restore(
    tcphc: Option<&mut Tcphc<'_>>,
    packet: &mut [u8],
    form: TcpForm,
    now: Instant,
) -> Result<(), Drop> {
    // Neither end learns from a segment that the other could not compress.
    let segment = match form {
        TcpForm::Plain => segment_right_behind(packet),
        TcpForm::Full { .. } | TcpForm::Compressed => segment_of(packet),
    };
    let Some((tcphc, (src, dst, segment))) = tcphc.zip(segment) else {
        return match form {
            TcpForm::Compressed => Err(Drop::TcpCompression),
            TcpForm::Plain | TcpForm::Full { .. } => Ok(()),
        };
    };
    let flow = flow(dst, src);
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
    taken.map_err(|_| Drop::TcpCompression)
}

/// As [`segment_of`], where nothing stands between IPv6 and TCP. Only strangers send anything
/// else, and extension headers may change the addresses that the checksum covers.
fn segment_right_behind(packet: &mut [u8]) -> Option<(Ipv6Addr, Ipv6Addr, &mut [u8])> {
    let (header, _) = Header::parse_start(packet).ok()?;
    let is_bare = header.next_header == tcp::NEXT_HEADER;
    is_bare.then(|| segment_of(packet)).flatten()
}

/// The TCP segment in `packet`, with its source and destination.
fn segment_of(packet: &mut [u8]) -> Option<(Ipv6Addr, Ipv6Addr, &mut [u8])> {
    let (header, payload) = Header::parse(packet).ok()?;
    let mut walk = Extensions::new(header.next_header, payload);
    while walk.next().ok()?.is_some() {}
    if walk.next_header() != tcp::NEXT_HEADER || header.dst.is_multicast() {
        return None;
    }
    let end = HEADER_LEN + payload.len();
    let start = end - walk.rest().len();
    Some((header.src, header.dst, packet.get_mut(start..end)?))
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

    #[test]
    fn marks_come_back() {
        let forms = [
            Onward::Begins(tcphc::Origin::Own),
            Onward::Begins(tcphc::Origin::Outside),
            Onward::As(TcpForm::Plain),
            Onward::As(TcpForm::Full { cid: 0xff }),
            Onward::As(TcpForm::Compressed),
        ];
        for onward in forms {
            for class in [Class::Own, Class::Control] {
                let queued = Instant::from_micros(5_000_000_000_000);
                let mark = Mark::new(class, onward, queued);
                assert_eq!(Mark::from_bits(mark.to_bits()), mark);
                let age = Duration::from_secs(3_600);
                let found = (queued + age).since(mark.since(queued + age));
                let tick = Duration::from_millis(17);
                assert!(found + tick > age && found < age + tick, "{found:?}");
            }
        }
    }

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
            &mut packet,
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
