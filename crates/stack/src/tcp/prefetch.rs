//! Prefetching (TCPlE §V): segments that the link gets before TCP may send them, and moves closer
//! to the peer in the meantime.
//!
//! Place: `link` polls for them when TCP has nothing to send. Such a segment counts as unsent: no
//! timer runs for it, it is no part of the flight, and TCP later sends the same segments as without
//! prefetching. It lies within the peer's window, and within the cwnd that is possible in the next
//! round trip. If TCP later sends the segment unchanged, the link recognises it. Left out: a FIN,
//! retransmissions, and segments that are not full.

use super::Tcp;
use super::connection::Connection;
use super::facts::Facts;
use super::output::{Kind, Plan};
use super::prefetched::Prefetched;
use super::segment::Head;
use super::types::{Endpoints, OutgoingSegment};
use crate::time::Instant;
use crate::wire::tcp::Flags;

/// The segment that [`Tcp::poll_prefetch`] has found to hand out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Prefetch {
    /// A segment of new data was written.
    Segment(OutgoingSegment),
    /// Unsent data wait, but no segment of them may be handed out now.
    Later,
    Nothing,
}

impl Tcp<'_> {
    /// Writes a segment of new data that may not be sent yet.
    ///
    /// `is_wanted`: whether the link prefetches segments between these ends. `len_max`: octets of
    /// each connection that may be handed out and not sent.
    pub(crate) fn poll_prefetch(
        &mut self,
        now: Instant,
        mut is_wanted: impl FnMut(&Endpoints) -> bool,
        len_max: u16,
        out: &mut [u8],
    ) -> Prefetch {
        self.set_now(now);
        let mut offered = Prefetch::Nothing;
        for slot in self.memory.connections.iter_mut() {
            let Some(connection) = &mut slot.0 else {
                continue;
            };
            if !connection.has_more_than_flight() || !is_wanted(&connection.ends) {
                continue;
            }
            offered = Prefetch::Later;
            if let Some(plan) = connection.plan_prefetch(len_max)
                && let Some(outgoing) = connection.emit_prefetch(plan, out)
            {
                return Prefetch::Segment(outgoing);
            }
        }
        offered
    }

    /// Sets the time that the next segment to arrive, and the data that it acknowledges, waited on
    /// the last hop; ms.
    pub(crate) const fn note_waited(&mut self, waited_ms: u16) {
        self.waited_ms = waited_ms;
    }
}

impl Connection<'_> {
    /// Whether there are a full segment of unsent data, and data in flight: only then an ACK is
    /// awaited that will let more go.
    fn has_more_than_flight(&self) -> bool {
        let full = self.payload_max();
        let unsent = self.unsent().saturating_sub(u32::from(self.prefetched.len));
        self.state().transmits() && self.flight() > 0 && unsent >= full && full > 0
    }

    fn plan_prefetch(&self, len_max: u16) -> Option<Plan> {
        let full = self.payload_max();
        let prefetched = u32::from(self.prefetched.len);
        let end = self.flight() + prefetched + full;
        let cwnd = u32::from(self.loss.cwnd());
        // Slow start doubles; else a round trip brings a segment.
        let next = match self.loss.is_slow_start() {
            true => cwnd * 2,
            false => cwnd + full,
        };
        let fits = prefetched + full <= u32::from(len_max)
            && prefetched + full <= self.unsent()
            && self.flight() + prefetched + full <= u32::from(self.send.len())
            && end <= u32::from(self.snd_wnd)
            && end <= next;
        let is_calm = !self.is_recovering() && !self.facts.has(Facts::CWR_DUE | Facts::PERSIST_DUE);
        // The link identifies the segments of a connection by their first sequence number.
        let is_alike = prefetched == 0 || full == u32::from(self.prefetched.segment_len);
        (fits && is_alike && is_calm).then_some(Plan {
            offset: self.flight() + prefetched,
            len: full as u16,
            kind: Kind::New,
        })
    }

    fn emit_prefetch(&mut self, plan: Plan, out: &mut [u8]) -> Option<OutgoingSegment> {
        let seq = self.snd_una.plus(plan.offset);
        let mut head = Head::new(&self.ends, seq, self.rcv_nxt);
        self.fill_options(&mut head);
        let mut flags = Flags::ACK | self.data_flags(plan);
        if self.facts.has(Facts::ECHO_CE) {
            flags = flags | Flags::ECE;
        }
        let payload = Some((&self.send, plan.offset as u16));
        // Announces no more than the window already announced: this segment does not count as sent.
        let len = head.finish(&self.ends, (flags, self.rcv_wnd), payload, plan.len, out)?;
        if self.prefetched.len == 0 {
            self.prefetched.since_ms = self.now_ms;
        }
        self.prefetched.segment_len = plan.len;
        self.prefetched.len = self.prefetched.len.saturating_add(plan.len);
        Some(OutgoingSegment {
            src: self.ends.local,
            dst: self.ends.remote,
            zone: self.ends.zone,
            ecn: 0,
            dscp: self.config.dscp,
            len,
            cause: None,
        })
    }

    /// Counts a segment that is sent: either the first one handed out, or another one, which makes
    /// the link drop all that were handed out.
    pub(super) fn count_prefetched(&mut self, plan: Plan) {
        let prefetched = &mut self.prefetched;
        let is_next =
            plan.kind == Kind::New && prefetched.len > 0 && plan.len == prefetched.segment_len;
        *prefetched = match is_next {
            true => Prefetched {
                len: prefetched.len.saturating_sub(plan.len),
                was_out_ms: u16::try_from(self.now_ms.wrapping_sub(prefetched.since_ms))
                    .unwrap_or(u16::MAX),
                ..*prefetched
            },
            false => Prefetched::default(),
        };
    }

    /// The round trip of `sample` ms without the time that its packets waited, ms. `is_echo`: the
    /// sample counts from when the segment was written, else from when TCP sent it.
    pub(super) fn calibrated(&mut self, sample: u32, is_echo: bool) -> u32 {
        let waited = core::mem::take(&mut self.waited_ms);
        let waited = match is_echo {
            true => waited,
            false => waited.saturating_sub(self.prefetched.was_out_ms),
        };
        self.rtt.note_waited(waited);
        sample.saturating_sub(u32::from(waited))
    }
}
