//! Whether a TCP engine is as empty in the end as it was in the beginning.

use std::net::Ipv6Addr;

use motet::tcp::{Buffers, Config, IncomingSegment, Offer, Tcp};
use motet::time::Instant;
use motet::wire::tcp::{Flags, Header, fill_checksum};

/// A table's worth of new handshakes and connections fits: nothing old is left in it.
///
/// `places`: connections and half-open connections that it has room for.
pub(super) fn check_places<'m>(
    tcp: &mut Tcp<'m>,
    places: [usize; 2],
    listener: (Ipv6Addr, u16),
    config: &'m Config,
    local: Instant,
) -> Result<(), String> {
    let [connections, half_open] = places;
    let before = tcp.counters().syn_cookies;
    for number in 0..half_open {
        let syn = stranger_segment(number as u32, listener, Flags::SYN, (1, 0));
        let incoming = IncomingSegment {
            src: stranger(number as u32),
            dst: listener.0,
            zone: 0,
            ecn: 0,
            offer: Offer::UNBOUNDED,
            bytes: &syn,
        };
        let taken = tcp.on_segment(&incoming, local);
        if taken.is_err() || tcp.counters().syn_cookies != before {
            return Err(format!(
                "only {number} of {half_open} half-open places are free in the end"
            ));
        }
    }
    for number in 0..connections {
        let buffers = Buffers::new(&mut [], &mut []);
        let to = (stranger(number as u32), listener.1);
        if let Err(rejected) = tcp.connect(listener.0, to, buffers, config, Offer::UNBOUNDED, local)
        {
            return Err(format!(
                "only {number} of {connections} places for connections are free in the end: {:?}",
                rejected.error
            ));
        }
    }
    Ok(())
}

/// The address of a node that takes no part in the run.
pub(super) fn stranger(number: u32) -> Ipv6Addr {
    Ipv6Addr::new(0xfd6d, 0xbad, 0, 0, 0, 0, 0, number as u16)
}

/// A segment of a stranger to a listener.
pub(super) fn stranger_segment(
    number: u32,
    listener: (Ipv6Addr, u16),
    flags: Flags,
    (seq, ack): (u32, u32),
) -> Box<[u8]> {
    let header = Header {
        src_port: 4_000,
        dst_port: listener.1,
        seq,
        ack,
        flags,
        window: 1_000,
        ..Header::default()
    };
    segment(&header, &[], &stranger(number), &listener.0)
}

/// A segment as on the wire.
pub(super) fn segment(
    header: &Header,
    payload: &[u8],
    src: &Ipv6Addr,
    dst: &Ipv6Addr,
) -> Box<[u8]> {
    let mut bytes = vec![0; HEADER_LEN_MAX];
    let len = header.emit(&mut bytes).unwrap_or(0);
    bytes.truncate(len);
    bytes.extend(payload);
    fill_checksum(src, dst, &mut bytes);
    bytes.into()
}

/// Four bits of 32-bit words.
const HEADER_LEN_MAX: usize = 60;
