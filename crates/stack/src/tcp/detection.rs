//! Finding losses, and the timer that waits for them.
//!
//! Losses are found by time when the peer sends SACK (RFC 8985), else by counting (RFC 6675,
//! RFC 5681). Place: last of what an acknowledgment does, and where timers call in. Left out:
//! the table of what was sent ([`super::recovery`]), what a loss does to cwnd
//! ([`super::reduction`]).
//! Sources: RFC 8985 §6 and §7, RFC 6675, 5681, 6582, 6298 §5.

use super::connection::Connection;
use super::facts::{Facts, Phase};
use super::recovery::{DUP_THRESHOLD, Delivery};
use super::timers::{Purpose, Timer};

impl Connection<'_> {
    /// Looks for losses, sets cwnd for what was delivered in this phase, and arms the
    /// transmission timer.
    pub(super) fn move_on(&mut self, delivery: &Delivery) {
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
        let (news, wait) = self.detect_losses(delivery.bytes);
        match self.recovery.phase {
            Phase::Reduced => {}
            Phase::Recovery => self.reduce_in_proportion(is_new && !news, delivery.bytes),
            _ if is_new => self.open_window(delivery.acked),
            _ => {}
        }
        self.settle_timer(is_new, wait);
    }

    /// Marks what is lost by now and enters recovery if that is the first news. Returns
    /// whether there was any, and how long until RACK can judge the rest, ms; 0: no such.
    ///
    /// `delivered`: bytes that the present acknowledgment delivered.
    pub(super) fn detect_losses(&mut self, delivered: u32) -> (bool, u32) {
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
            let age = self.now_ms.wrapping_sub(self.recovery.rack_sent_at);
            let end = self.recovery.rack_end.offset_from(self.snd_una);
            let (news, next) = self.scoreboard.lose_by_time(self.now_ms, (age, end), limit);
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
    pub(super) fn reordering_window_ms(&self) -> u32 {
        if !self.facts.has(Facts::REORDERED)
            && (self.is_recovering() || self.scoreboard.is_sacked_beyond(self.payload_max()))
        {
            return 0;
        }
        let quarters = u32::from(self.recovery.reo_quarters_more) + 1;
        let window = u32::from(self.recovery.min_rtt) * quarters / 4;
        window.min(self.rtt.srtt_ms().unwrap_or(window))
    }

    /// Arms the transmission timer after an acknowledgment: afresh when data were
    /// acknowledged (RFC 6298 §5.3), or when its present purpose is over.
    fn settle_timer(&mut self, is_new: bool, wait: u32) {
        if wait > 0 {
            self.arm_transmit(Purpose::Reordering, wait);
        } else if is_new
            || match self.timers.purpose() {
                Some(Purpose::Retransmit) => false,
                // No probes in recovery (RFC 8985 §7.2).
                Some(Purpose::TailLossProbe) => self.is_recovering(),
                _ => true,
            }
            || self.snd_wnd == 0
        {
            self.rearm();
        }
    }

    /// Arms the transmission timer for what the connection waits for now.
    pub(super) fn rearm(&mut self) {
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
                    self.progress_at = self.now_ms;
                }
                self.arm_timeout(Purpose::Persist);
            }
        } else if self.flight() == 0 {
            self.timers.disarm(Timer::Transmit);
        } else {
            self.arm_loss_timer();
        }
    }

    /// A tail loss probe where one helps (RFC 8985 §7.2), else the RTO.
    pub(super) fn arm_loss_timer(&mut self) {
        let rto = self.rtt.rto_ms(self.config);
        if self.facts.has(Facts::SACK)
            && self.config.tail_loss_probe
            && !self.is_recovering()
            && !self.facts.has(Facts::TAIL_PROBED)
            && self.scoreboard.sacked() == 0
            && let Some(srtt) = self.rtt.data_srtt_ms()
        {
            let mut wait = srtt * 2;
            if self.flight() <= self.payload_max() {
                wait += u32::from(self.config.peer_ack_delay_ms);
            }
            if wait < rto {
                return self.arm_transmit(Purpose::TailLossProbe, wait);
            }
        }
        self.arm_transmit(Purpose::Retransmit, rto);
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
