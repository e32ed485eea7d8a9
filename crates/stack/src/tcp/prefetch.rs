//! Segments that are handed out before TCP may send them, for a link that brings them closer to the
//! peer meanwhile.
//!
//! Place: `link` asks when TCP has nothing to send. Such a segment counts as unsent: no timer runs
//! for it, it is no part of the flight, and what TCP sends later is what it would have sent anyway.
//! It is within the peer's window and within what cwnd may become in the next round trip. Sent
//! later as it was handed out, the link knows it again. Left out: a FIN, what is sent again, and
//! segments that are not full.

use super::Tcp;
use super::ahead::Ahead;
use super::connection::Connection;
use super::facts::Facts;
use super::output::{Kind, Plan};
use super::segment::Head;
use super::types::{Endpoints, Outgoing};
use crate::time::Instant;
use crate::wire::tcp::Flags;

/// What there is to hand out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Offered {
    /// A segment was written.
    Segment(Outgoing),
    /// There are data, but no more of them may be handed out now.
    Later,
    Nothing,
}

impl Tcp<'_> {
    /// Writes a segment of new data that may not be sent yet.
    ///
    /// `is_wanted`: whether one between these ends helps. `len_max`: octets that may be handed out
    /// altogether, of each connection.
    pub(crate) fn poll_ahead(
        &mut self,
        now: Instant,
        mut is_wanted: impl FnMut(&Endpoints) -> bool,
        len_max: u16,
        out: &mut [u8],
    ) -> Offered {
        self.set_now(now);
        let mut offered = Offered::Nothing;
        for slot in self.memory.connections.iter_mut() {
            let Some(connection) = &mut slot.0 else {
                continue;
            };
            if !connection.has_more_than_flight() || !is_wanted(&connection.ends) {
                continue;
            }
            offered = Offered::Later;
            if let Some(plan) = connection.plan_ahead(len_max)
                && let Some(outgoing) = connection.emit_ahead(plan, out)
            {
                return Offered::Segment(outgoing);
            }
        }
        offered
    }

    /// The segment that comes next waited so long on the last hop, with the data that it
    /// acknowledges, ms.
    pub(crate) const fn note_waited(&mut self, waited_ms: u16) {
        self.waited_ms = waited_ms;
    }
}

impl Connection<'_> {
    /// Whether there are a full segment of data that are not sent, and data on the way: only then
    /// an ACK is waited for that lets more go.
    fn has_more_than_flight(&self) -> bool {
        let full = self.payload_max();
        let unsent = self.unsent().saturating_sub(u32::from(self.ahead.len));
        self.state().transmits() && self.flight() > 0 && unsent >= full && full > 0
    }

    fn plan_ahead(&self, len_max: u16) -> Option<Plan> {
        let full = self.payload_max();
        let ahead = u32::from(self.ahead.len);
        let end = self.flight() + ahead + full;
        let cwnd = u32::from(self.loss.cwnd());
        // Slow start doubles; else a round trip brings a segment.
        let next = match self.loss.is_slow_start() {
            true => cwnd * 2,
            false => cwnd + full,
        };
        let fits = ahead + full <= u32::from(len_max)
            && ahead + full <= self.unsent()
            && self.flight() + ahead + full <= u32::from(self.send.len())
            && end <= u32::from(self.snd_wnd)
            && end <= next;
        let is_calm = !self.is_recovering() && !self.facts.has(Facts::CWR_DUE | Facts::PERSIST_DUE);
        // The link tells the segments of a connection apart by where they begin.
        let is_alike = ahead == 0 || full == u32::from(self.ahead.segment_len);
        (fits && is_alike && is_calm).then_some(Plan {
            offset: self.flight() + ahead,
            len: full as u16,
            kind: Kind::New,
        })
    }

    fn emit_ahead(&mut self, plan: Plan, out: &mut [u8]) -> Option<Outgoing> {
        let seq = self.snd_una.plus(plan.offset);
        let mut head = Head::new(&self.ends, seq, self.rcv_nxt);
        self.fill_options(&mut head);
        let mut flags = Flags::ACK | self.data_flags(plan);
        if self.facts.has(Facts::ECHO_CE) {
            flags = flags | Flags::ECE;
        }
        let payload = Some((&self.send, plan.offset as u16));
        // Of the window only what was announced: nothing here counts as sent.
        let len = head.finish(&self.ends, (flags, self.rcv_wnd), payload, plan.len, out)?;
        if self.ahead.len == 0 {
            self.ahead.since_ms = self.now_ms;
        }
        self.ahead.segment_len = plan.len;
        self.ahead.len = self.ahead.len.saturating_add(plan.len);
        Some(Outgoing {
            src: self.ends.local,
            dst: self.ends.remote,
            zone: self.ends.zone,
            ecn: 0,
            dscp: self.config.dscp,
            len,
            cause: None,
        })
    }

    /// A segment is sent: either what was handed out first, or something that makes the link drop
    /// it all.
    pub(super) fn count_ahead(&mut self, plan: Plan) {
        let ahead = &mut self.ahead;
        let is_next = plan.kind == Kind::New && ahead.len > 0 && plan.len == ahead.segment_len;
        *ahead = match is_next {
            true => Ahead {
                len: ahead.len.saturating_sub(plan.len),
                was_out_ms: u16::try_from(self.now_ms.wrapping_sub(ahead.since_ms))
                    .unwrap_or(u16::MAX),
                ..*ahead
            },
            false => Ahead::default(),
        };
    }

    /// How much shorter a round trip was than the `sample`, ms, without what the packets waited;
    /// `is_echo`: it counts from when the segment was written, else from when it was sent.
    pub(super) fn calibrated(&mut self, sample: u32, is_echo: bool) -> u32 {
        let waited = core::mem::take(&mut self.waited_ms);
        let waited = match is_echo {
            true => waited,
            false => waited.saturating_sub(self.ahead.was_out_ms),
        };
        self.rtt.note_waited(waited);
        sample.saturating_sub(u32::from(waited))
    }
}
