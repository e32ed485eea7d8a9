//! The form in which the TCP header of a packet for a sleeping child travels, kept from delivery to
//! delivery.
//!
//! Place: [`indirect`](super::indirect) asks for it as it takes a packet to cut it up. Left out:
//! the compressor, which is [`tcphc`](crate::tcphc)'s.
//! Source: `docs/reference/tcphc.md`, section 7.

use super::{Mesh, PacketMeta, link_addr};
use crate::ip::{self, Ip};
use crate::link::arrival::TcpEgress;
use crate::lowpan::TcpForm;
use crate::tcphc::Tcphc;
use crate::time::Instant;
use crate::wire::ipv6::Header;
use crate::wire::tcphc as wire;

impl Mesh<'_> {
    /// Compresses the TCP header of the packet for a child in the fragmenter's buffer, and keeps it
    /// so: a second delivery is the same packet, not a retransmission. Where compression is not
    /// agreed, a copy that comes later has to find the header as TCP made it.
    pub(super) fn keep_form(
        &mut self,
        ip: &Ip<'_>,
        (key, len): (u8, usize),
        hop: Option<(Header, ip::Neighbour)>,
        meta: PacketMeta,
        now: Instant,
    ) -> PacketMeta {
        let TcpEgress::Begins(origin) = meta.egress else {
            return meta;
        };
        let tcphc = self.tcphc.as_deref().filter(|_| wire::IS_SUPPORTED);
        let is_agreed = tcphc.is_some_and(Tcphc::is_agreed);
        let hop = hop.and_then(|(header, to)| Some((header, to, link_addr(to)?)));
        let Some((header, to, neighbour)) = hop.filter(|_| is_agreed) else {
            return meta;
        };
        let departure = self.departure(ip, &header, (to, neighbour), &meta);
        let form = self.compress(len, (&header, &departure), origin, now);
        let meta = meta.going(TcpEgress::As(form));
        // It is still as TCP made it, and a copy may take its place.
        if form == TcpForm::Plain {
            return meta;
        }
        let packet = self.outgoing.buffer().get(..len).unwrap_or_default();
        if let Some(indirect) = self.indirect.as_deref_mut() {
            let bytes_max = usize::MAX;
            let put = (indirect.queues).replace((key, 0), packet, meta.to_bits(), bytes_max);
            debug_assert!(put, "it is as long as before");
        }
        meta
    }
}
