//! The transmission timer of a connection with data in flight, or with data that it may not send
//! yet.
//!
//! Place: called at the end of processing an acknowledgment ([`super::ack`]), when new data are
//! queued (`commands`), and at deadlines ([`super::clock`]). Left out: loss detection and its
//! effects ([`super::loss`]).
//! Sources: RFC 6298 §5, RFC 8985 §7.2, RFC 9293 §3.8.6.1.

use super::config::HAS_RECOVERY;
use super::connection::Connection;
use super::facts::Facts;
use super::loss::{Delivery, LossOutcome};
use super::timers::{Purpose, Timer};

impl Connection<'_> {
    /// Looks for losses, sets cwnd for what was delivered in this phase, and arms the
    /// transmission timer.
    ///
    /// `is_marked`: the peer echoes a congestion mark that was not answered yet.
    pub(super) fn move_on(&mut self, delivery: &Delivery, is_marked: bool) {
        let (outcome, wait) = self.loss.judge(delivery, is_marked, &self.sender());
        self.apply_loss_outcome(outcome);
        self.settle_timer(delivery.acked > 0, wait);
    }

    /// Applies the outcome of loss recovery to the following segments and timers.
    pub(super) fn apply_loss_outcome(&mut self, outcome: LossOutcome) {
        if outcome.resends {
            // There is something to send again: no probe has to find out.
            self.facts.clear(Facts::TAIL_PROBE_DUE);
        }
        if outcome.reduced {
            self.facts.set(Facts::CWR_DUE);
        }
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
        if !self.state().transmits() {
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
                    self.note_progress();
                }
                self.arm_timeout(Purpose::Persist);
            }
        } else if self.flight() == 0 {
            self.timers.disarm(Timer::Transmit);
        } else {
            self.arm_loss_timer();
        }
    }

    /// The round trip by which tail loss probes are timed, ms.
    fn probing_rtt_ms(&self) -> Option<u32> {
        match self.config.linux_acks() {
            true => self.rtt.srtt_ms(),
            false => self.rtt.data_srtt_ms(),
        }
    }

    /// A tail loss probe where one helps, no later than the RTO would be (RFC 8985 §7.2), else the
    /// RTO.
    pub(super) fn arm_loss_timer(&mut self) {
        let rto = self.rtt.rto_ms(self.config);
        if self.facts.has(Facts::SACK)
            && HAS_RECOVERY
            && self.config.tail_loss_probe
            && !self.is_recovering()
            && !self.loss.has_tail_probe()
            && self.loss.sacked() == 0
            && let Some(srtt) = self.probing_rtt_ms()
        {
            let mut wait = srtt * 2;
            if self.flight() <= self.payload_max() {
                wait += u32::from(self.config.peer_ack_delay_ms);
            }
            return self.arm_transmit(Purpose::TailLossProbe, wait.min(rto));
        }
        self.arm_transmit(Purpose::Retransmit, rto);
    }
}
