//! IPv6 fragmentation at the node: fragments for this node are reassembled, and this node's own
//! packets are fragmented if they exceed the MTU of a link.
//!
//! Place: `deliver` passes in fragments, and takes complete packets back. ICMPv6 answers and
//! datagrams to be sent pass here. Left out: TCP segments, whose length TCP chooses, and forwarded
//! packets, which only their source may fragment. Source: RFC 8200 §4.5, §5.

use super::Node;
use crate::ip::icmp::{self, ErrorKind};
use crate::ip::{self, Fragment, FragmentSlot, Fragments, Gathered, NextHop};
use crate::limits::REASSEMBLED_LEN_MAX;
use crate::link::{Class, Hop, Refusal};
use crate::time::Instant;
use crate::wire::cursor::copy;
use crate::wire::ipv6::{self, Header, next_header};
use crate::wire::ipv6_fragment::{self, FragmentHeader};

impl<'m> Node<'m> {
    /// Lends memory for IPv6 packets that come in fragments, one slot for each packet. Without it
    /// such packets are dropped. Answers to them are as long, and wait in the links' queues.
    pub fn lend_fragments(&mut self, slots: &'m mut [FragmentSlot]) {
        self.fragments = Some(Fragments::new(slots));
    }

    /// Packets that come in fragments, to look at; `None`: no memory was lent.
    pub const fn fragments(&self) -> Option<&Fragments<'m>> {
        self.fragments.as_ref()
    }

    /// Sends ICMPv6 errors to the sources of packets whose reassembly has timed out.
    pub(super) fn poll_fragments(&mut self, now: Instant) {
        let Some(mut fragments) = self.fragments.take() else {
            return;
        };
        let before = fragments.counters().timed_out;
        while let Some((id, header, first)) = fragments.expire(now) {
            self.refuse(id, ErrorKind::ReassemblyTimeExceeded, &header, first, now);
        }
        // Those without their first fragment are given up in silence.
        for _ in 0..fragments.counters().timed_out.wrapping_sub(before) {
            self.ip.counters.count(ip::PacketDrop::Fragment);
        }
        self.fragments = Some(fragments);
    }

    /// When the next packet's time is over.
    pub(super) fn fragments_deadline(&self) -> Option<Instant> {
        self.fragments.as_ref()?.next_deadline()
    }

    /// A fragment for this node.
    // Not inlined: a reassembled packet is delivered from here, and other packets should not need
    // the stack space for that.
    #[inline(never)]
    pub(super) fn on_fragment(&mut self, header: &Header, packet: &[u8], hop: &Hop, now: Instant) {
        let Some(mut fragments) = self.fragments.take() else {
            return self.ip.counters.count(ip::PacketDrop::Fragment);
        };
        self.gather(&mut fragments, (header, packet), hop, now);
        self.fragments = Some(fragments);
    }

    fn gather(
        &mut self,
        fragments: &mut Fragments<'m>,
        (header, packet): (&Header, &[u8]),
        hop: &Hop,
        now: Instant,
    ) {
        let payload = packet.get(ipv6::HEADER_LEN..).unwrap_or_default();
        let Some(fragment) = Fragment::find(header, payload) else {
            return self.ip.counters.count(ip::PacketDrop::Fragment);
        };
        let before = *fragments.counters();
        let gathered = fragments.on_fragment(&fragment, hop.ingress.interface, now);
        if fragments.counters().lost() != before.lost() {
            self.ip.counters.count(ip::PacketDrop::Fragment);
        }
        match gathered {
            Gathered::Nothing => {}
            Gathered::Problem { code, pointer } => {
                let kind = ErrorKind::ParameterProblem { code, pointer };
                self.refuse(hop.ingress.interface, kind, header, packet, now);
            }
            Gathered::Whole(index) => {
                if let Some((header, packet)) = fragments.packet(index) {
                    // A part of a part is dropped here: its slots are away.
                    let outcome = self.on_local((&header, true), packet, &hop.ingress, now);
                    self.conclude(outcome, (&header, packet), hop, now);
                }
                fragments.release(index);
            }
        }
    }

    /// Queues a packet of this node's own, in fragments if it is longer than the MTU of the link,
    /// as the answer to a fragmented packet may be.
    ///
    /// # Errors
    /// [`Refusal::TooBig`] above [`REASSEMBLED_LEN_MAX`], or if the link's queue is too short for
    /// all of it; [`Refusal::Full`] if the queue has no room now. Nothing is queued then.
    pub(super) fn queue_or_cut(
        &mut self,
        hop: NextHop,
        head: &icmp::Head,
        data: &[u8],
        class: Class,
    ) -> Result<(), Refusal> {
        let Self { links, rng, .. } = self;
        let link = links.get_mut(usize::from(hop.interface.0));
        let link = link.ok_or(Refusal::Full)?;
        let mtu = match link.queue([head, data], class) {
            Err(Refusal::TooBig { mtu }) => mtu,
            outcome => return outcome,
        };
        if head.len() + data.len() > REASSEMBLED_LEN_MAX {
            return Err(Refusal::TooBig { mtu });
        }
        let part_len = UPPER_LEN + data.len();
        let step = (mtu as usize).saturating_sub(HEADERS_LEN).max(UNIT) & !(UNIT - 1);
        let pieces = part_len.div_ceil(step);
        let bytes = part_len + pieces * HEADERS_LEN;
        if !link.may_hold(pieces, bytes) {
            // It has none when nothing else waits there.
            return Err(Refusal::TooBig { mtu });
        }
        if !link.has_room(pieces, bytes) {
            return Err(Refusal::Full);
        }
        let identification = rng.next_u32();
        for start in (0..part_len).step_by(step) {
            let end = part_len.min(start + step);
            let place = FragmentHeader {
                next_header: next_header_of(head),
                offset: start as u16,
                more: end < part_len,
                identification,
            };
            let front = front(head, place, end - start);
            // The first one begins with the upper layer's header.
            let (front, data) = match start {
                0 => (front.as_slice(), data.get(..end - UPPER_LEN)),
                _ => (
                    front.get(..HEADERS_LEN).unwrap_or_default(),
                    data.get(start - UPPER_LEN..end - UPPER_LEN),
                ),
            };
            link.queue([front, data.unwrap_or_default()], class)?;
        }
        Ok(())
    }
}

/// The bytes before a fragment of `len` bytes of a packet that begins with `head`: both headers,
/// then the upper layer's.
fn front(head: &icmp::Head, place: FragmentHeader, len: usize) -> [u8; HEADERS_LEN + UPPER_LEN] {
    let mut front = [0; HEADERS_LEN + UPPER_LEN];
    let (fixed, upper) = head.split_at(ipv6::HEADER_LEN);
    copy(&mut front, fixed);
    let len = ipv6_fragment::HEADER_LEN + len;
    let [_, _, _, _, len_high, len_low, next_header, ..] = &mut front;
    [*len_high, *len_low] = (len as u16).to_be_bytes();
    *next_header = next_header::FRAGMENT;
    let rest = front.get_mut(ipv6::HEADER_LEN..).unwrap_or_default();
    copy(rest, &place.emit());
    let rest = rest
        .get_mut(ipv6_fragment::HEADER_LEN..)
        .unwrap_or_default();
    copy(rest, upper);
    front
}

const fn next_header_of(head: &icmp::Head) -> u8 {
    let [_, _, _, _, _, _, next_header, ..] = *head;
    next_header
}

/// Length of an IPv6 header and a fragment header, bytes.
const HEADERS_LEN: usize = ipv6::HEADER_LEN + ipv6_fragment::HEADER_LEN;

/// Length of a UDP or ICMPv6 header, bytes.
const UPPER_LEN: usize = size_of::<icmp::Head>() - ipv6::HEADER_LEN;

/// The unit of offsets, bytes.
const UNIT: usize = 8;
