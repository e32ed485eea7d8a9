//! Proportional rate reduction: the counters by which fast recovery sends in proportion to
//! delivery.
//!
//! Place: part of the state of each algorithm of congestion control, while a fast recovery is under
//! way. Left out: the beginning and the end of a recovery ([`super::reduction`]).
//! Source: RFC 9937 §6; names of its own variables in parentheses.

use core::num::NonZeroU16;

use super::saturated;

/// The counters of one fast recovery, bytes (RFC 9937 §6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Prr {
    /// Bytes delivered since the recovery began (`prr_delivered`).
    pub(super) delivered: u16,
    /// Bytes sent since the recovery began, new or not (`prr_out`).
    pub(super) sent: u16,
    /// Bytes in the network when the recovery began (`RecoverFS`).
    pub(super) start: NonZeroU16,
}

impl Prr {
    /// Counters of a recovery that begins with `start` bytes in the network.
    pub(super) fn new(start: u32) -> Self {
        Self {
            delivered: 0,
            sent: 0,
            start: NonZeroU16::new(saturated(start)).unwrap_or(NonZeroU16::MIN),
        }
    }

    /// Counts `len` bytes that were sent (`prr_out`).
    pub(super) fn count_out(&mut self, len: u16) {
        self.sent = self.sent.saturating_add(len);
    }

    /// An acknowledgment delivered `delivered` bytes, and leaves `pipe` in the network. Returns
    /// how many may be sent now, such that sending follows delivery down to `ssthresh`.
    ///
    /// `smss`: payload of a full segment, bytes. `is_safe_ack`: the acknowledgment is of new data
    /// and shows no further loss (`SafeACK`).
    pub(super) fn allow(
        &mut self,
        delivered: u32,
        (pipe, ssthresh): (u32, u32),
        smss: u32,
        is_safe_ack: bool,
    ) -> u32 {
        self.delivered = saturated(u32::from(self.delivered) + delivered);
        let total = u32::from(self.delivered);
        let (sent, start) = (u32::from(self.sent), u32::from(self.start.get()));
        let mut more = if pipe > ssthresh {
            let share = (total * ssthresh).div_ceil(start);
            share.saturating_sub(sent)
        } else {
            let mut more = total.saturating_sub(sent).max(delivered);
            if is_safe_ack {
                more += smss;
            }
            more.min(ssthresh - pipe)
        };
        if sent == 0 {
            more = more.max(smss);
        }
        more
    }
}
