//! Joining, the packet layer: packets in unsecured frames between a node without a key and its
//! neighbours with the key.
//!
//! Purpose: handles the only unsecured frames that a mesh with a key accepts. Each holds a whole
//! packet between link-local addresses. One packet is kept unchanged until the node takes it; no
//! other state is kept, and no such packet reaches IP. Place: the second of the three files that a
//! datagram of CoJP crosses, between `mac/secured`, which takes and sends the frames, and
//! `node/joining`, which handles the datagram; this file decompresses and compresses headers. Left
//! out: the contents of the packets; fragments. Source: RFC 9031 §5 and §7, of which the link is
//! that of 6TiSCH.

use core::net::Ipv6Addr;

use super::Mesh;
use super::inward::restore;
use crate::ip::{self, ALL_NODES, Iid};
use crate::limits::PSDU_LEN_MAX;
use crate::link::LinkDrop;
use crate::lowpan::LinkPair;
use crate::mac::security::{NetworkKey, Reservation, Security};
use crate::mac::{FrameDrop, Received};
use crate::random::Rng;
use crate::time::Instant;
use crate::wire::cursor::copy;
use crate::wire::ipv6::Header;

/// A frame in clear that waits.
#[derive(Debug)]
pub(super) struct WaitingFrame {
    link: LinkPair,
    len: u8,
    bytes: [u8; PSDU_LEN_MAX],
}

impl Mesh<'_> {
    /// Whether the node has no key yet.
    pub(crate) fn is_locked(&self) -> bool {
        self.mac.is_locked()
    }

    /// Frames that were dropped since they are sealed with a key that this node has not.
    pub(crate) fn unknown_keys(&self) -> u32 {
        self.mac.counters().dropped(FrameDrop::UnknownKey)
    }

    /// The sequence of the link key in force.
    pub(crate) fn key_sequence(&self) -> u32 {
        self.mac.security().map_or(0, Security::sequence)
    }

    /// Whether frames of nodes without a key are taken from now on.
    pub(crate) const fn serve_pledges(&mut self, serves: bool) {
        self.mac.serve_pledges(serves);
    }

    /// Takes the key of the network, where the node has none, and looks for a router then.
    pub(crate) fn unlock(
        &mut self,
        (network, sequence): (NetworkKey, u32),
        stored: Option<Reservation>,
        now: Instant,
        rng: &mut Rng,
    ) {
        self.mac.unlock(network, sequence, stored);
        self.heard_in_clear = None;
        if self.mac.take_news() {
            self.discovery.ask_again(now, rng);
        }
    }

    /// Notes the network key that will take the place of the one in force.
    pub(crate) fn expect_key(&mut self, (network, sequence): (NetworkKey, u32)) {
        self.mac.expect_key(network, sequence);
    }

    /// Filters a frame that the MAC hands up at once. In a mesh with a key such a frame is in
    /// clear, since sealed ones are opened later: one is kept until [`Self::take_in_clear`],
    /// further ones are dropped.
    pub(super) fn without_clear<'f>(
        &mut self,
        received: Option<Received<'f>>,
    ) -> Option<Received<'f>> {
        let frame = received?;
        if self.mac.security().is_none() || self.is_child() {
            return Some(frame);
        }
        if self.heard_in_clear.is_some() {
            self.count(LinkDrop::InClear);
            return None;
        }
        let mut heard = WaitingFrame {
            link: LinkPair {
                src: frame.src,
                dst: frame.dst,
            },
            len: 0,
            bytes: [0; PSDU_LEN_MAX],
        };
        heard.len = copy(&mut heard.bytes, frame.payload) as u8;
        self.heard_in_clear = Some(heard);
        None
    }

    /// The packet of the frame that was kept, in `out`: its sender, and its length. One that is not
    /// between the two ends of the hop is dropped.
    pub(crate) fn take_in_clear(&mut self, out: &mut [u8]) -> Option<(Iid, usize)> {
        let heard = self.heard_in_clear.take()?;
        let len = self.unpack(&heard, out);
        if len.is_none() {
            self.count(LinkDrop::InClear);
        }
        Some((heard.link.src.iid(), len?))
    }

    /// Whether this node is a child of a Thread network, where frames in clear have another
    /// purpose.
    const fn is_child(&self) -> bool {
        #[cfg(feature = "thread")]
        return self.thread.is_some();
        #[cfg(not(feature = "thread"))]
        return false;
    }

    fn unpack(&self, heard: &WaitingFrame, out: &mut [u8]) -> Option<usize> {
        let payload = heard.bytes.get(..usize::from(heard.len))?;
        let contexts = &self.discovery.contexts;
        let (len, _) = restore(contexts, payload, heard.link, None, out).ok()?;
        let (header, _) = Header::parse(out.get(..len)?).ok()?;
        let [src, dst] = ends(heard.link);
        ((header.src, header.dst) == (src, dst)).then_some(len)
    }
}

/// The addresses that packets in clear over a hop have.
fn ends(link: LinkPair) -> [Ipv6Addr; 2] {
    [link.src, link.dst].map(|addr| match addr.is_broadcast() {
        true => ALL_NODES,
        false => ip::link_local(addr.iid()),
    })
}
