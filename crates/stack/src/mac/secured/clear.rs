//! Frames in clear beside a key: datagrams of CoJP for nodes that have no key yet, and messages of
//! MLE, which are sealed above the MAC.

use crate::mac::Mac;
use crate::mac::counters::FrameDrop;
use crate::mac::queue::{Class, Frame, FrameSlot};
use crate::time::Instant;
use crate::wire::LinkAddr;
use crate::wire::ieee802154::Header;
#[cfg(feature = "thread")]
use crate::wire::ieee802154::Version;

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

    /// Whether a frame in clear may be queued.
    pub(crate) fn may_send_in_clear(&self) -> bool {
        self.queue.count(FrameSlot::is_in_clear) == 0
    }

    /// The header of a message of MLE: as others send it, from the extended address.
    pub(in crate::mac) const fn dress(&self, header: &mut Header) {
        header.version = Version::V2006;
        if let Some(src) = &mut header.src {
            src.addr = LinkAddr::Extended(self.config.extended);
        }
    }
}

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
            slot.is_clear = true;
        }
        self.counters.accepted = self.counters.accepted.wrapping_add(1);
        Ok(())
    }
}
