//! Processing of acknowledgments: SND.UNA, the window, the scoreboard, round-trip times.
//!
//! Place: the fifth check of segment arrival, called by `input`. Left out: the scoreboard, loss
//! detection and cwnd ([`super::loss`]), and arming the timer ([`super::retransmit`]).
//! Sources: RFC 9293 §3.10.7.4, RFC 6298, 7323, 2018, 2883, 8985.

use super::SegmentDrop;
use super::config::HAS_RECOVERY;
use super::connection::Connection;
use super::facts::Facts;
use super::loss::{Delivery, NONE};
use super::rtt::RTT_MAX_MS;
use super::segment::Segment;
use super::seq::SeqNum;
use super::state::State;
use super::timers::Purpose;
use crate::wire::tcp::{Flags, SackBlock};

impl Connection<'_> {
    /// Takes in the acknowledgment, SACK blocks and window of `seg`.
    pub(super) fn accept_ack(&mut self, seg: &Segment<'_>) -> Result<(), SegmentDrop> {
        let ahead = seg.ack().offset_from(self.snd_una);
        if ahead == 1 && self.flight() == 0 && self.facts.has(Facts::WINDOW_PROBED) {
            // The peer took the probe's octet, but the window opened before it came there.
            self.snd_nxt = seg.ack();
        }
        let flight = self.flight() as i32;
        if ahead > flight || ahead < -i32::from(self.snd_wnd_max) {
            self.challenge();
            return Err(match ahead > 0 {
                true => SegmentDrop::AckOfUnsent,
                false => SegmentDrop::AckTooOld,
            });
        }
        let mut delivery = self.delivery(seg);
        if self.facts.has(Facts::SACK) {
            self.enter_sacks(seg, &mut delivery);
        }
        if ahead < 0 {
            return Ok(());
        }
        // Without SACK, duplicate ACKs are signs of loss; answers to window probes are not.
        let is_duplicate = ahead == 0
            && flight > 0
            && !self.facts.has(Facts::SACK)
            && seg.payload.is_empty()
            && !seg.has(Flags::FIN)
            && seg.window() == self.snd_wnd
            && self.snd_wnd > 0;
        self.retries_answered();
        self.update_window(seg, delivery.acked);
        self.take_in(&mut delivery);
        if ahead > 0 {
            if let Some((_, echo)) = seg.timestamps()
                && self.loss.on_echo(echo)
            {
                self.rtt.forget_backoff();
                if delivery.echo != NONE {
                    self.rtt.raise(delivery.echo);
                }
            }
        } else if is_duplicate {
            self.loss.on_duplicate();
            delivery.bytes = self.payload_max();
        }
        let is_marked =
            seg.has(Flags::ECE) && self.facts.has(Facts::ECN) && !self.facts.has(Facts::CWR_DUE);
        self.move_on(&delivery, is_marked);
        Ok(())
    }

    /// As [`Self::accept_ack`], for an acknowledgment that header prediction let through: new data,
    /// all sent once and in order, nothing selective, no recovery under way. The remaining data in
    /// flight were sent later than the delivered data, so none of them can be deemed lost. There is
    /// one exception: after an undo, an earlier delivered retransmission may be newer than they
    /// are; then RACK is run.
    pub(super) fn take_predicted_ack(&mut self, seg: &Segment<'_>) {
        let mut delivery = self.delivery(seg);
        self.take_in(&mut delivery);
        if !self.loss.is_newest(self.snd_una) {
            return self.move_on(&delivery, false);
        }
        let flight = self.flight() + delivery.acked;
        let scale = (self.payload_max(), self.rtt.srtt_ms().unwrap_or(0));
        self.loss.open_window(&delivery, flight, self.config, scale);
        self.rearm();
    }

    /// The record of an acknowledgment that arrives now.
    fn delivery(&self, seg: &Segment<'_>) -> Delivery {
        let echo = self.echo_age(seg);
        Delivery {
            base: self.snd_una,
            acked: seg.ack().since(self.snd_una),
            echo,
            elapsed: self.since_progress_ms(),
            ..self.loss.delivery(self.now_ms, echo)
        }
    }

    /// How long ago the timestamp that `seg` echoes was sent, ms, or [`NONE`].
    pub(super) fn echo_age(&self, seg: &Segment<'_>) -> u32 {
        if let Some((_, echo)) = seg.timestamps()
            && self.facts.has(Facts::TIMESTAMPS)
        {
            let age = self.now_ms.wrapping_add(self.ts_offset).wrapping_sub(echo);
            // An echo from the future, or older than any RTO, cannot be of a segment of ours.
            if age <= RTT_MAX_MS {
                return age;
            }
        }
        NONE
    }

    /// Removes acknowledged bytes from the scoreboard and the send buffer, and takes the round-trip
    /// sample.
    fn take_in(&mut self, delivery: &mut Delivery) {
        if delivery.acked > 0 {
            self.take_acked(delivery);
        }
        self.sample_rtt(delivery);
        if HAS_RECOVERY && delivery.newest_age != NONE {
            self.loss.on_delivered(delivery);
        }
    }

    /// Enters the SACK blocks of `seg`; the first one may be a DSACK (RFC 2883 §4). Blocks
    /// that make no sense, or reach beyond what was sent, are ignored.
    fn enter_sacks(&mut self, seg: &Segment<'_>, delivery: &mut Delivery) {
        let (base, flight) = (self.snd_una, self.flight() as i32);
        let ahead = seg.ack().offset_from(base);
        let offsets = |block: &SackBlock| {
            let offset = |edge| SeqNum::new(edge).offset_from(base);
            (offset(block.left), offset(block.right))
        };
        let mut blocks = seg.sack_blocks();
        let mut is_first = true;
        while let [block, rest @ ..] = blocks {
            let (left, right) = offsets(block);
            blocks = rest;
            if left < right && right <= flight {
                let is_within = |outer| {
                    let (outer_left, outer_right) = offsets(outer);
                    outer_left <= left && right <= outer_right
                };
                if HAS_RECOVERY
                    && is_first
                    && (right <= ahead || rest.first().is_some_and(is_within))
                {
                    let (from, to) = (SeqNum::new(block.left), SeqNum::new(block.right));
                    if self.loss.on_dsack(from, to) {
                        self.rtt.forget_backoff();
                    }
                }
                if left >= ahead.max(0) {
                    self.loss.on_sacked(left as u32, right as u32, delivery);
                }
            }
            is_first = false;
        }
    }

    /// The peer is alive: counting of unanswered probes starts again, except that of
    /// retransmissions, which ends only when data are acknowledged.
    pub(super) fn retries_answered(&mut self) {
        if self.flight() == 0 || self.timers.purpose() == Some(Purpose::Persist) {
            self.retries = 0;
        }
    }

    /// Updates SND.WND and SND.WL1 (RFC 9293 §3.10.7.4); an older segment must not.
    ///
    /// Differs: a segment that acknowledges new data always updates the window, even if it is a
    /// retransmission (as in Linux): it was sent after all segments with lower acknowledgment
    /// numbers. Its window counts from the new SND.UNA. The old window from the new SND.UNA would
    /// reach beyond the right edge that the peer has announced.
    pub(super) fn update_window(&mut self, seg: &Segment<'_>, acked: u32) {
        if acked == 0 && seg.seq.before(self.snd_wl1) {
            return;
        }
        let was_shut = self.snd_wnd == 0;
        self.snd_wl1 = self.snd_wl1.later(seg.seq);
        self.snd_wnd = seg.window();
        self.snd_wnd_max = self.snd_wnd_max.max(self.snd_wnd);
        if was_shut && self.snd_wnd > 0 {
            self.rtt.forget_backoff();
            self.facts.clear(Facts::PERSIST_DUE);
            if self.facts.has(Facts::WINDOW_PROBED) && seg.ack() == self.snd_una {
                // The probe's byte was refused, or this was sent before the probe came: send it
                // with the rest, not alone.
                self.snd_nxt = self.snd_una;
                self.loss.on_unsent();
            }
        }
    }

    /// Advances SND.UNA by the octets that `delivery` acknowledges.
    fn take_acked(&mut self, delivery: &mut Delivery) {
        let acked = delivery.acked;
        let data = acked.min(u32::from(self.send.len()));
        self.send.consume(data as u16);
        self.snd_una = self.snd_una.plus(acked);
        self.loss.on_acked(self.snd_una, delivery);
        self.retries = 0;
        self.note_progress();
        // A probe that waited for room is not needed any more, nor has it a timer now.
        self.facts
            .clear(Facts::WINDOW_PROBED | Facts::SOFT_ERROR | Facts::TAIL_PROBE_DUE);
        if acked > data {
            self.on_fin_acked();
        }
        self.bound_end();
        if !self.facts.has(Facts::SACK) {
            self.loss.forget_duplicates(acked, self.payload_max());
        }
    }

    fn on_fin_acked(&mut self) {
        self.facts.clear(Facts::FIN_QUEUED);
        match self.state() {
            State::FinWait1 => self.set_state(State::FinWait2),
            State::Closing => self.enter_time_wait(),
            State::LastAck => self.end(None),
            _ => {}
        }
    }

    /// One RTT sample per ACK of new data: from the echoed timestamp, also for what was
    /// retransmitted (RFC 7323 §4), else where all that it covers was sent once (Karn).
    fn sample_rtt(&mut self, delivery: &Delivery) {
        let mut rtt = delivery.round_trip();
        let is_new = delivery.acked > 0;
        if is_new && delivery.echo != NONE {
            rtt = delivery.echo;
        }
        if rtt == NONE {
            if is_new {
                self.rtt.note_repaired();
                if delivery.answers_new_data() {
                    self.rtt.forget_backoff();
                }
            }
            return;
        }
        #[cfg(feature = "tcple")]
        let rtt = self.calibrated(rtt, is_new && delivery.echo != NONE);
        match is_new {
            true if delivery.echo != NONE => self.rtt.sample_stamped(rtt),
            true => self.rtt.sample(rtt),
            false => {}
        }
        self.loss.on_round_trip(rtt.clamp(1, RTT_MAX_MS));
    }
}
