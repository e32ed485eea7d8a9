//! The offer to restore compressed TCP headers, on its way from the border router to the motes.
//!
//! Purpose: a border router that restores them says so in its advertisements, and a router passes
//! that on only while its own router says so, too. So a mote that hears it knows that every relay
//! on its way up passes such headers. Place: beside prefix and contexts; the link hands the offer
//! to its compressor. Left out: what is compressed towards whom, which is the compressor's.
//! Source: `docs/reference/tcphc.md`, section 7.

use super::Discovery;
use crate::ip::Iid;
use crate::time::Instant;
use crate::wire::LinkAddr;

/// What is known of the offer.
#[derive(Debug)]
pub(super) struct Offer {
    /// The identifier of the border router that restores headers.
    router: Option<Iid>,
    /// The neighbour that said so; `None`: this node itself, or the network's setup.
    from: Option<Iid>,
    /// Whether this node's last advertisement said so.
    told: Option<bool>,
}

impl Offer {
    pub(super) const NONE: Self = Self {
        router: None,
        from: None,
        told: None,
    };

    /// Notes what an advertisement of this node says.
    pub(super) const fn tell(&mut self, said: Option<Iid>) {
        self.told = Some(said.is_some());
    }

    /// The neighbour that said so has gone, or another one took its place.
    pub(super) fn end(&mut self) {
        self.router.take_if(|_| self.from.is_some());
    }
}

impl Discovery<'_> {
    /// The border router that restores headers of this node and of those below it.
    pub(in crate::link) fn offer(&self) -> Option<Iid> {
        let from = self.offer.from.as_ref();
        let is_way_up = from.is_none_or(|from| self.solicitor.is_way_up(from));
        self.offer.router.filter(|_| is_way_up)
    }

    /// Headers are restored by `router`: this node, or the one that the network's setup names.
    pub(in crate::link) const fn set_offer(&mut self, router: LinkAddr) {
        self.offer.router = Some(router.iid());
        self.offer.from = None;
    }

    /// This node restores headers.
    pub(in crate::link) const fn offer_own(&mut self) {
        self.set_offer(self.source);
    }

    /// The router `from` offers this; returns whether neighbours were told something else.
    pub(super) fn hear_offer(&mut self, said: Option<Iid>, from: Iid) -> bool {
        if self.offer.from.is_some() || self.offer.router.is_none() {
            self.offer.router = said;
            self.offer.from = Some(from);
        }
        let now = self.offer().is_some();
        self.offer.told.is_some_and(|told| told != now)
    }

    /// RPL has another parent than the one whose offer is known: it is asked for its own.
    pub(super) fn ask_for_offer(&mut self, now: Instant) {
        if self.offer.router.is_some() && self.offer().is_none() {
            self.solicitor.hasten(now);
        }
    }
}
