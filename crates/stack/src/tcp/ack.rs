//! What an acknowledgment changes: window, scoreboard, RTT, cwnd, recovery, timers.
//!
//! Place: the fifth check of segment arrival, called by `input`; the timers call in for
//! losses found by time. Left out: the table of what was sent ([`super::recovery`]) and the
//! arithmetic of cwnd ([`super::congestion`]).
//!
//! Losses are found by time when the peer sends SACK (RFC 8985), else by counting (RFC 6675,
//! RFC 5681); whatever finds them, what follows is one recovery: halve, send again what is
//! due as the pipe drains (or by PRR, RFC 9937), and undo it all if it proves spurious.
//! Sources: RFC 9293 §3.10.7.4, RFC 5681, 6582, 6675, 8985, 9937, 3522, 3708, 2883.

use super::Drop;
use super::congestion::saturated;
use super::connection::Connection;
use super::facts::{Facts, Phase};
use super::recovery::{DUP_THRESHOLD, Delivery, NONE};
use super::segment::Segment;
use super::seq::SeqNum;
use super::state::State;
use super::timers::{Purpose, Timer};
use crate::planted::{Bug, planted};
use crate::wire::tcp::{Flags, SackBlock};

impl Connection<'_> {
    /// Takes in the acknowledgment, SACK blocks and window of `seg`.
    pub(super) fn accept_ack(&mut self, seg: &Segment<'_>, now_ms: u32) -> Result<(), Drop> {
        let ahead = seg.ack().offset_from(self.snd_una);
        let flight = self.flight() as i32;
        if ahead > flight || ahead < -i32::from(self.snd_wnd_max) {
            self.challenge(now_ms);
            return Err(match ahead > 0 {
                true => Drop::AckOfUnsent,
                false => Drop::AckTooOld,
            });
        }
        if planted(Bug::SequenceWrap) && seg.ack().get() < self.snd_una.get() {
            return Ok(());
        }
        let mut delivery = self.delivery(seg, now_ms);
        if self.facts.has(Facts::SACK) {
            self.enter_sacks(seg, &mut delivery);
        }
        if ahead < 0 {
            return Ok(());
        }
        // Without SACK, these tell of losses; answers to window probes do not.
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
            self.undo_by_timestamp(seg);
            self.judge_tail_probe(seg);
        } else if is_duplicate {
            self.recovery.dup_acks = self.recovery.dup_acks.saturating_add(1);
            delivery.bytes = self.payload_max();
        }
        if seg.has(Flags::ECE) && self.facts.has(Facts::ECN) {
            self.on_congestion_echo();
        }
        self.move_on(&delivery);
        Ok(())
    }

    /// As [`Self::accept_ack`], for an acknowledgment that header prediction let through:
    /// new data, all sent once and in order, nothing selective, no recovery under way. What
    /// is left was sent later than what arrived, so that none of it can be deemed lost.
    pub(super) fn take_predicted_ack(&mut self, seg: &Segment<'_>, now_ms: u32) {
        let mut delivery = self.delivery(seg, now_ms);
        self.take_in(&mut delivery);
        self.open_window(delivery.acked);
        self.rearm(now_ms);
    }

    /// The record of an acknowledgment that arrives at `now_ms`.
    fn delivery(&self, seg: &Segment<'_>, now_ms: u32) -> Delivery {
        let echo = self.echo_age(seg, now_ms);
        let mut age_min = u32::from(self.recovery.min_rtt);
        if echo != NONE {
            age_min = age_min.max(echo);
        }
        Delivery {
            base: self.snd_una,
            acked: seg.ack().since(self.snd_una),
            echo,
            ..self.scoreboard.delivery(now_ms, age_min)
        }
    }

    /// How long ago the timestamp that `seg` echoes was sent, ms, or [`NONE`].
    pub(super) fn echo_age(&self, seg: &Segment<'_>, now_ms: u32) -> u32 {
        if let Some((_, echo)) = seg.timestamps()
            && self.facts.has(Facts::TIMESTAMPS)
        {
            let age = now_ms.wrapping_add(self.ts_offset).wrapping_sub(echo);
            // An echo from the future, or older than any RTO, is the peer's invention.
            if age <= RTT_MAX_MS {
                return age;
            }
        }
        NONE
    }

    /// Takes what was acknowledged off the scoreboard and the send buffer, and the times that
    /// it tells.
    fn take_in(&mut self, delivery: &mut Delivery) {
        if delivery.acked > 0 {
            self.take_acked(delivery);
        }
        self.sample_rtt(delivery);
        if delivery.newest_age != NONE {
            self.update_rack(delivery);
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
                if is_first && (right <= ahead || rest.first().is_some_and(is_within)) {
                    self.on_dsack(SeqNum::new(block.left), SeqNum::new(block.right));
                }
                if left >= ahead.max(0) {
                    self.scoreboard.sack(left as u32, right as u32, delivery);
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

    /// SND.WND, SND.WL1 (RFC 9293 §3.10.7.4; no older segment may update).
    ///
    /// Differs: whatever acknowledges new data was sent after all that acknowledged less, a
    /// retransmission too, and its window counts from the new SND.UNA: with the old one, the
    /// sum would lie beyond what the peer promised (as Linux does).
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
            if self.facts.take(Facts::WINDOW_PROBED) && seg.ack() == self.snd_una {
                // The probe's byte was refused: send it with the rest, not alone.
                self.snd_nxt = self.snd_una;
                self.scoreboard.clear();
            }
        }
    }

    /// Advances SND.UNA.
    fn take_acked(&mut self, delivery: &mut Delivery) {
        let (acked, now_ms) = (delivery.acked, delivery.now_ms);
        self.scoreboard.acknowledge(acked, delivery);
        let data = acked.min(u32::from(self.send.len()));
        let spoilt = planted(Bug::SendBufferTrimmed) && self.is_recovering();
        self.send.consume(data as u16 + u16::from(spoilt));
        self.snd_una = self.snd_una.plus(acked);
        if self.recovery.phase == Phase::Open && self.snd_una.after(self.recovery.recover) {
            // Keeps up, so that the comparison never wraps; what a DSACK reports from now on
            // is about something else.
            self.recovery.recover = self.snd_una.minus(1);
            self.recovery.undo_left = 0;
        }
        self.retries = 0;
        self.progress_at = now_ms;
        // A probe that waited for room is not needed any more, nor has it a timer now.
        self.facts
            .clear(Facts::WINDOW_PROBED | Facts::SOFT_ERROR | Facts::TAIL_PROBE_DUE);
        if acked > data {
            self.on_fin_acked(now_ms);
        }
        if !self.facts.has(Facts::SACK) && self.recovery.dup_acks > 0 {
            // What the duplicates stood for is acknowledged now; the hole itself was not.
            let segments = acked / self.payload_max().max(1);
            let left = u32::from(self.recovery.dup_acks).saturating_sub(segments.saturating_sub(1));
            self.recovery.dup_acks = left as u8;
        }
    }

    fn on_fin_acked(&mut self, now_ms: u32) {
        self.facts.clear(Facts::FIN_QUEUED);
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                if self.facts.has(Facts::READ_CLOSED) {
                    self.arm_fin_wait_2(now_ms);
                }
            }
            State::Closing => self.enter_time_wait(now_ms),
            State::LastAck if planted(Bug::LastAckIgnored) => {}
            State::LastAck => self.end(None),
            _ => {}
        }
    }

    /// One RTT sample per ACK of new data: from the echoed timestamp, also for what was
    /// retransmitted (RFC 7323 §4), else from a segment sent once (Karn).
    fn sample_rtt(&mut self, delivery: &Delivery) {
        let mut rtt = delivery.rtt;
        let is_new = delivery.acked > 0;
        if is_new && delivery.echo != NONE {
            rtt = delivery.echo;
        }
        if rtt == NONE {
            return;
        }
        if is_new {
            self.rtt.sample(rtt);
        }
        let rtt = rtt.clamp(1, RTT_MAX_MS);
        let min = u32::from(self.recovery.min_rtt);
        // The least RTT of the recent past: it rises by 1/64 of the way per sample.
        let next = match rtt.checked_sub(min) {
            Some(above) if min != 0 => min + (above >> 6),
            _ => rtt,
        };
        self.recovery.min_rtt = next as u16;
    }

    /// Notes the newest transmission delivered (RFC 8985 §6.2 steps 1 to 3).
    fn update_rack(&mut self, delivery: &Delivery) {
        let age = delivery.newest_age;
        let end = delivery.base.plus(delivery.newest_end);
        let known_age = delivery.now_ms.wrapping_sub(self.recovery.rack_sent_at);
        if !self.facts.has(Facts::RACK)
            || age < known_age
            || age == known_age && end.after(self.recovery.rack_end)
        {
            self.facts.set(Facts::RACK);
            self.recovery.rack_sent_at = delivery.now_ms.wrapping_sub(age);
            self.recovery.rack_end = end;
        }
        self.recovery.rack_rtt = age.min(RTT_MAX_MS) as u16;
        if delivery.reordered {
            self.facts.set(Facts::REORDERED);
        }
    }

    /// The peer received these octets twice: one of our retransmissions was not needed, or
    /// the network doubled something.
    ///
    /// The reduction is taken back when every octet sent again in this recovery was reported
    /// so. Reports count once and in order, and only of what the recovery is about: behind
    /// its beginning or the last report, and before its end (RFC 3708 §3; as Linux counts
    /// `undo_retrans`).
    fn on_dsack(&mut self, left: SeqNum, right: SeqNum) {
        if self.facts.has(Facts::TAIL_RESENT) {
            self.facts.clear(Facts::TAIL_PROBED | Facts::TAIL_RESENT);
        }
        let recovery = &mut self.recovery;
        recovery.reo_quarters = (recovery.reo_quarters + 1).min(REO_QUARTERS_MAX);
        recovery.reo_persist = REO_PERSIST;
        if left.before(recovery.undo_from) || right.after(recovery.recover) {
            return;
        }
        recovery.undo_from = right;
        let len = right.since(left).min(u32::from(recovery.undo_left));
        recovery.undo_left -= len as u16;
        if len > 0 && recovery.undo_left == 0 {
            self.undo();
        }
    }

    /// Eifel detection: an ACK of new data that echoes a time before the first
    /// retransmission acknowledges the original (RFC 3522).
    fn undo_by_timestamp(&mut self, seg: &Segment<'_>) {
        if let Some((_, echo)) = seg.timestamps()
            && self.facts.has(Facts::UNDO_TS)
            && self.is_recovering()
            && (echo.wrapping_sub(self.recovery.undo_ts) as i32) < 0
        {
            self.undo();
        }
    }

    /// Takes the reduction back; nothing was lost.
    fn undo(&mut self) {
        if !self.facts.take(Facts::UNDO) {
            return;
        }
        self.facts.clear(Facts::UNDO_TS | Facts::FORCE_RESEND);
        let congestion = &mut self.congestion;
        congestion.cwnd = congestion.cwnd.max(self.recovery.undo_cwnd);
        congestion.ssthresh = congestion.ssthresh.max(self.recovery.undo_ssthresh);
        self.scoreboard.absolve();
        self.recovery.phase = Phase::Open;
        self.recovery.dup_acks = 0;
        self.recovery.undo_left = 0;
        self.rtt.forget_backoff();
    }

    /// Was a loss repaired by the tail loss probe (RFC 8985 §7.4)? Then it counts as one.
    fn judge_tail_probe(&mut self, seg: &Segment<'_>) {
        if !self.facts.has(Facts::TAIL_PROBED) || seg.ack().before(self.recovery.tail_end) {
            return;
        }
        if !self.facts.has(Facts::TAIL_RESENT) {
            self.facts.clear(Facts::TAIL_PROBED);
        } else if seg.ack().after(self.recovery.tail_end) {
            // Without a DSACK by now, only one of the two copies arrived.
            self.facts.clear(Facts::TAIL_PROBED | Facts::TAIL_RESENT);
            if self.recovery.phase == Phase::Open {
                self.reduce_once();
            }
        }
    }

    /// The peer saw a congestion mark: react as to a loss, once per window (RFC 3168 §6.1.2).
    fn on_congestion_echo(&mut self) {
        if self.recovery.phase == Phase::Open && !self.facts.has(Facts::CWR_DUE) {
            self.reduce_once();
        }
    }

    /// Halves cwnd without anything to send again.
    fn reduce_once(&mut self) {
        self.halve();
        self.set_cwnd(self.congestion.ssthresh);
        self.recovery.phase = Phase::Reduced;
        self.facts.clear(Facts::UNDO);
    }

    fn set_cwnd(&mut self, cwnd: u16) {
        if self.config.congestion_control {
            self.congestion.cwnd = cwnd;
        }
    }

    /// Halves ssthresh, remembers what was before, and marks the window's end.
    fn halve(&mut self) {
        self.recovery.undo_cwnd = self.congestion.cwnd;
        self.recovery.undo_ssthresh = self.congestion.ssthresh;
        self.recovery.undo_left = 0;
        self.recovery.undo_from = self.snd_una;
        self.recovery.recover = self.snd_nxt;
        self.facts.put(Facts::UNDO, self.config.undo);
        self.facts.clear(Facts::UNDO_TS);
        self.facts.set(Facts::CWR_DUE);
        // Limited transmit sent beyond cwnd; that must not count (RFC 5681 §3.2).
        let flight = self.flight().min(u32::from(self.congestion.cwnd));
        self.congestion.halve(flight, self.payload_max());
    }

    /// Something is to be sent again, whatever cwnd says; probes are over.
    fn begin_resending(&mut self, phase: Phase) {
        self.recovery.phase = phase;
        self.facts
            .clear(Facts::TAIL_PROBED | Facts::TAIL_RESENT | Facts::TAIL_PROBE_DUE);
        self.facts.set(Facts::FORCE_RESEND);
    }

    /// `delivered`: bytes that the acknowledgment delivered which tells of the loss.
    fn enter_recovery(&mut self, delivered: u32) {
        self.halve();
        // What was SACKed before counts no more.
        let in_flight = self.flight() - self.scoreboard.sacked();
        self.recovery.prr_start = saturated(in_flight + delivered);
        self.recovery.prr_delivered = 0;
        self.recovery.prr_out = 0;
        self.begin_resending(Phase::Recovery);
        self.set_cwnd(self.congestion.ssthresh);
    }

    /// The retransmission timer expired (RFC 5681 §3.1, RFC 6675 §5.1, RFC 8985 §6.3).
    pub(super) fn enter_loss(&mut self, now_ms: u32) {
        if self.retries == 0 {
            self.halve();
        }
        self.set_cwnd(self.payload_max() as u16);
        let by_time = self.config.rack && self.facts.has_all(Facts::SACK | Facts::RACK);
        let age_min = match by_time {
            true => u32::from(self.recovery.rack_rtt) + self.reordering_window_ms(),
            false => 0,
        };
        self.scoreboard.lose_all(now_ms, age_min);
        self.recovery.recover = self.snd_nxt;
        self.recovery.dup_acks = 0;
        self.begin_resending(Phase::Loss);
    }

    /// Looks for losses, sets cwnd for what was delivered in this phase, and arms the
    /// transmission timer.
    fn move_on(&mut self, delivery: &Delivery) {
        let is_new = delivery.acked > 0;
        if is_new {
            // CWR goes out with what is sent behind `recover`; until that is acknowledged,
            // the peer echoes the same mark (RFC 3168 §6.1.2).
            let least = i32::from(self.recovery.phase == Phase::Reduced);
            if self.snd_una.offset_from(self.recovery.recover) >= least {
                self.leave_recovery();
            }
            if self.recovery.phase == Phase::Recovery && !self.facts.has(Facts::SACK) {
                // A partial acknowledgment: the next hole begins here (RFC 6582 §3.2 step 3).
                self.scoreboard.lose_first(self.payload_max());
                self.facts.set(Facts::FORCE_RESEND);
            }
        }
        let (news, wait) = self.detect_losses(delivery.bytes, delivery.now_ms);
        match self.recovery.phase {
            Phase::Reduced => {}
            Phase::Recovery => self.reduce_in_proportion(is_new && !news, delivery.bytes),
            _ if is_new => self.open_window(delivery.acked),
            _ => {}
        }
        self.settle_timer(is_new, wait, delivery.now_ms);
    }

    /// Slow start or congestion avoidance, for `acked` octets.
    fn open_window(&mut self, acked: u32) {
        if self.config.congestion_control {
            let smss = self.payload_max();
            self.congestion.on_acked(acked, smss, self.config);
        }
    }

    fn leave_recovery(&mut self) {
        if self.recovery.phase == Phase::Recovery {
            let smss = self.payload_max();
            let mut cwnd = self.congestion.ssthresh;
            if !self.config.prr {
                // Against a burst (RFC 6582 §3.2 step 3, option 1).
                cwnd = cwnd.min(saturated(self.flight().max(smss) + smss));
            }
            self.set_cwnd(cwnd);
            let persist = &mut self.recovery.reo_persist;
            *persist = persist.saturating_sub(1);
            if *persist == 0 {
                self.recovery.reo_quarters = 1;
            }
        }
        if self.recovery.phase != Phase::Open {
            self.recovery.phase = Phase::Open;
            self.recovery.dup_acks = 0;
        }
    }

    /// PRR: cwnd such that sending follows delivery down to ssthresh (RFC 9937 §6.2).
    fn reduce_in_proportion(&mut self, is_safe_ack: bool, delivered: u32) {
        if !self.config.prr {
            return;
        }
        let smss = self.payload_max();
        let recovery = &mut self.recovery;
        recovery.prr_delivered = saturated(u32::from(recovery.prr_delivered) + delivered);
        let total = u32::from(recovery.prr_delivered);
        let out = u32::from(recovery.prr_out);
        let start = u32::from(recovery.prr_start).max(1);
        let ssthresh = u32::from(self.congestion.ssthresh);
        let pipe = self.pipe();
        let mut more = if pipe > ssthresh {
            let share = (total * ssthresh).div_ceil(start);
            share.saturating_sub(out)
        } else {
            let mut more = total.saturating_sub(out).max(delivered);
            if is_safe_ack {
                more += smss;
            }
            more.min(ssthresh - pipe)
        };
        if out == 0 {
            more = more.max(smss);
        }
        self.set_cwnd(saturated(pipe + more));
    }

    /// Marks what is lost by now and enters recovery if that is the first news. Returns
    /// whether there was any, and how long until RACK would judge the next, ms; 0: no such.
    ///
    /// `delivered`: bytes that the present acknowledgment delivered.
    pub(super) fn detect_losses(&mut self, delivered: u32, now_ms: u32) -> (bool, u32) {
        let mut wait = 0;
        let news = if !self.facts.has(Facts::SACK) {
            // After a timeout, duplicates of its own retransmissions must not count
            // (RFC 6582 §4.1); `recover` is the SYN's number at first.
            self.recovery.phase == Phase::Open
                && self.recovery.dup_acks >= DUP_THRESHOLD
                && self.snd_una.after(self.recovery.recover)
                && self.scoreboard.lose_first(self.payload_max())
        } else if !self.config.rack {
            self.scoreboard.lose_by_count(self.payload_max())
        } else if self.facts.has(Facts::RACK) {
            let limit = u32::from(self.recovery.rack_rtt) + self.reordering_window_ms();
            let age = now_ms.wrapping_sub(self.recovery.rack_sent_at);
            let end = self.recovery.rack_end.offset_from(self.snd_una);
            let (news, next) = self.scoreboard.lose_by_time(now_ms, (age, end), limit);
            wait = next;
            news
        } else {
            false
        };
        if news && matches!(self.recovery.phase, Phase::Open | Phase::Reduced) {
            self.enter_recovery(delivered);
        }
        (news, wait)
    }

    /// RACK's reordering window (RFC 8985 §6.2 step 4), ms.
    fn reordering_window_ms(&self) -> u32 {
        if !self.facts.has(Facts::REORDERED)
            && (self.is_recovering() || self.scoreboard.is_sacked_beyond(self.payload_max()))
        {
            return 0;
        }
        let window = u32::from(self.recovery.min_rtt) * u32::from(self.recovery.reo_quarters) / 4;
        window.min(self.rtt.srtt_ms().unwrap_or(window))
    }

    /// Arms the transmission timer after an acknowledgment: afresh when data were
    /// acknowledged (RFC 6298 §5.3), or when its present purpose is over.
    fn settle_timer(&mut self, is_new: bool, wait: u32, now_ms: u32) {
        if wait > 0 {
            self.arm_transmit(Purpose::Reordering, wait, now_ms);
        } else if is_new
            || !matches!(
                self.timers.purpose(),
                Some(Purpose::Retransmit | Purpose::TailLossProbe)
            )
            || self.snd_wnd == 0
        {
            self.rearm(now_ms);
        }
    }

    /// Arms the transmission timer for what the connection waits for now.
    pub(super) fn rearm(&mut self, now_ms: u32) {
        if !self.state.transmits() {
            if !self.is_connecting() {
                self.timers.disarm(Timer::Transmit);
            }
            return;
        }
        let waits_for_window = if self.flight() > 0 {
            self.snd_wnd == 0
        } else {
            self.unsent() > 0 && self.new_data_len() == 0
        };
        if waits_for_window {
            if self.timers.purpose() != Some(Purpose::Persist) {
                if self.flight() == 0 {
                    self.progress_at = now_ms;
                }
                self.arm_persist(now_ms);
            }
        } else if self.flight() == 0 {
            self.timers.disarm(Timer::Transmit);
        } else {
            self.arm_loss_timer(now_ms);
        }
    }

    /// A tail loss probe where one helps (RFC 8985 §7.2), else the RTO.
    pub(super) fn arm_loss_timer(&mut self, now_ms: u32) {
        let rto = self.rtt.rto_ms(self.config);
        if self.facts.has(Facts::SACK)
            && self.config.tail_loss_probe
            && self.recovery.phase == Phase::Open
            && !self.facts.has(Facts::TAIL_PROBED)
            && self.scoreboard.sacked() == 0
            && let Some(srtt) = self.rtt.data_srtt_ms()
        {
            let mut wait = srtt * 2;
            if self.flight() <= self.payload_max() {
                wait += u32::from(self.config.peer_ack_delay_ms);
            }
            if wait < rto {
                return self.arm_transmit(Purpose::TailLossProbe, wait, now_ms);
            }
        }
        self.arm_transmit(Purpose::Retransmit, rto, now_ms);
    }

    /// Bytes in the network, as far as is known.
    pub(super) fn pipe(&self) -> u32 {
        let held = match self.facts.has(Facts::SACK) {
            true => 0,
            false => u32::from(self.recovery.dup_acks) * self.payload_max(),
        };
        let gone = self.scoreboard.gone() + held;
        self.flight().saturating_sub(gone)
    }
}

/// Longest believable round trip, ms.
pub(super) const RTT_MAX_MS: u32 = 60_000;
/// The reordering window grows to this many quarters of the least RTT; SRTT bounds it too.
const REO_QUARTERS_MAX: u8 = 16;
/// Recoveries that an enlarged reordering window is kept for (RFC 8985 §6.2 step 4).
const REO_PERSIST: u8 = 16;
