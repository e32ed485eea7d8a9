//! Frames in clear in a network with a key: of nodes that join, and of MLE, which seals its
//! messages itself.
//!
//! Place: part of [`Mac`], beside [`super::secured`], which refuses all others.

#[cfg(any(feature = "join", feature = "thread"))]
use super::queue::{Class, Frame, FrameSlot, Secret};
use super::secured::extended;
#[cfg(feature = "join")]
use super::security::{NetworkKey, Reservation};
use super::{FrameDrop, Mac, Received, RxMeta};
#[cfg(any(feature = "join", feature = "thread"))]
use crate::time::Instant;
use crate::wire::LinkAddr;
#[cfg(feature = "thread")]
use crate::wire::ieee802154::Version;
use crate::wire::ieee802154::{FrameType, Header};

impl Mac<'_> {
    /// Takes a frame in clear: one for all, if this node serves nodes without a key; one for this
    /// node alone, if it has no key itself.
    ///
    /// # Errors
    /// [`FrameDrop::Unsecured`]: any other.
    pub(super) fn hear_in_clear<'a>(
        &mut self,
        header: &Header,
        (src, dst): (LinkAddr, LinkAddr),
        payload: &'a [u8],
        meta: RxMeta,
    ) -> Result<Received<'a>, FrameDrop> {
        let is_child = self.guard.is_child();
        let is_wanted = match dst.is_broadcast() {
            _ if is_child => true,
            true => self.serves_pledges(),
            false => self.guard.is_locked(),
        };
        extended(src).ok_or(FrameDrop::BadSource)?;
        if !is_wanted || header.frame_type != FrameType::Data {
            return Err(FrameDrop::Unsecured);
        }
        if header.ack_request && !dst.is_broadcast() {
            self.owe_acknowledgment(header.sequence, meta.at);
        }
        Ok(Received {
            src,
            dst,
            payload,
            pending: header.frame_pending,
            meta,
        })
    }

    const fn serves_pledges(&self) -> bool {
        #[cfg(feature = "join")]
        return self.serves_pledges;
        #[cfg(not(feature = "join"))]
        return false;
    }
}

#[cfg(feature = "join")]
impl Mac<'_> {
    /// Whether the node has no key yet.
    pub(crate) fn is_locked(&self) -> bool {
        self.guard.is_locked()
    }

    /// Whether frames in clear for all are handed up from now on: those of nodes that have no key
    /// yet.
    pub(crate) const fn serve_pledges(&mut self, serves: bool) {
        self.serves_pledges = serves;
    }

    /// Takes the key of the network, where the node has none.
    pub(crate) fn unlock(
        &mut self,
        network: NetworkKey,
        sequence: u32,
        stored: Option<Reservation>,
    ) {
        if let Some(security) = self.security_mut() {
            security.unlock(network, sequence, stored);
        }
    }

    /// Notes the network key that will take the place of the one in force.
    pub(crate) fn expect_key(&mut self, network: NetworkKey, sequence: u32) {
        if let Some(security) = self.security_mut() {
            security.expect(network, sequence);
        }
    }
}

#[cfg(feature = "thread")]
impl Mac<'_> {
    /// This node's own short address, and the extended and the short one of its parent; `None`: it
    /// has no parent.
    pub(crate) fn set_place(&mut self, own: Option<u16>, parent: Option<([u8; 8], u16)>) {
        self.config.short = own;
        self.config.short_source = own.is_some();
        if let Some(security) = self.security_mut() {
            security.set_parent(parent);
        }
    }

    /// Whether a message of MLE may be sealed and queued: one waits at a time, and its counter must
    /// be stored.
    pub(crate) fn may_send_in_clear(&self) -> bool {
        let has_counter = self.security().is_none_or(|it| !it.has_no_counter());
        has_counter && self.queue.count(FrameSlot::is_in_clear) == 0
    }

    /// The header of a message of MLE: as others send it, from the extended address.
    pub(super) const fn dress(&self, header: &mut Header) {
        header.version = Version::V2006;
        if let Some(src) = &mut header.src {
            src.addr = LinkAddr::Extended(self.config.extended);
        }
    }
}

#[cfg(any(feature = "join", feature = "thread"))]
impl Mac<'_> {
    /// Queues a frame that is not sealed. No outcome follows.
    ///
    /// # Errors
    /// As [`Self::enqueue`]'s. One such frame waits at a time.
    pub(crate) fn send_in_clear(
        &mut self,
        to: LinkAddr,
        payload: &[u8],
        now: Instant,
    ) -> Result<(), FrameDrop> {
        let frame = Frame {
            to,
            token: 0,
            payload,
            class: Class::Control,
            since: now,
        };
        let waits = self.queue.count(FrameSlot::is_in_clear) > 0;
        let own = LinkAddr::Extended(self.config.extended);
        let len_max = Header::data(self.config.pan, to, own, 0).payload_len_max();
        let pushed = match payload.len() > len_max {
            true => Err(FrameDrop::BadLength),
            false if waits => Err(FrameDrop::QueueFull),
            false => self.queue.push(&frame).ok_or(FrameDrop::QueueFull),
        };
        let index = pushed.inspect_err(|&reason| self.counters.drop(reason))?;
        if let Some(slot) = self.queue.get_mut(index) {
            slot.secret = Secret::Clear;
        }
        self.counters.accepted = self.counters.accepted.wrapping_add(1);
        Ok(())
    }
}
