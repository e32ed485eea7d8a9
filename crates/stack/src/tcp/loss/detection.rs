//! Finding losses: by time when the peer sends SACK (RFC 8985), else by counting (RFC 6675,
//! RFC 5681).
//!
//! Place: the last step of processing an acknowledgment, and the handler of the reordering timer.
//! Left out: the table of what was sent ([`super::scoreboard`]), what a loss does to cwnd
//! ([`super::reduction`]).
//! Sources: RFC 8985 §6, RFC 6675, 5681, 6582.

use super::control::Algorithm;
use super::notes::Notes;
use super::scoreboard::{DUP_THRESHOLD, Delivery};
use super::{Loss, LossOutcome, Phase, Sender};
use crate::tcp::config::HAS_SACK;
use crate::tcp::rtt::RTT_MAX_MS;
use crate::tcp::seq::SeqNum;

impl Loss {
    /// An acknowledgment was entered: looks for losses, and sets cwnd for what was delivered in
    /// this phase. Returns also how long until RACK can judge the rest, ms; 0: no such.
    ///
    /// `is_marked`: the peer echoes a congestion mark.
    pub(in crate::tcp) fn judge(
        &mut self,
        delivery: &Delivery,
        is_marked: bool,
        sender: &Sender<'_>,
    ) -> (LossOutcome, u32) {
        debug_assert_eq!(
            self.phase == Phase::Recovery,
            self.control.prr().is_some(),
            "PRR counts in fast recovery, and only there"
        );
        let is_new = delivery.acked > 0;
        let mut reduced = is_new && self.judge_tail_probe(sender);
        if is_marked && self.phase == Phase::Open {
            self.on_ecn_echo(sender);
            reduced = true;
        }
        if is_new {
            // CWR is sent with the first data after `recover`; until these are acknowledged, the
            // peer echoes the same congestion mark (RFC 3168 §6.1.2).
            let least = i32::from(self.phase == Phase::Reduced);
            if sender.una.offset_from(self.recover) >= least {
                self.leave_recovery(sender);
            }
            if self.phase == Phase::Recovery && !(HAS_SACK && sender.has_sack) {
                // A partial acknowledgment: the next hole begins here (RFC 6582 §3.2 step 3).
                self.scoreboard.lose_first(sender.smss);
                self.notes.set(Notes::FORCE_RESEND);
            }
        }
        let before = self.phase;
        let (news, wait) = self.detect(delivery.bytes, sender);
        let resends = self.phase != before;
        reduced |= resends;
        match self.phase {
            Phase::Reduced => {}
            Phase::Recovery => {
                self.reduce_in_proportion(is_new && !news, delivery.bytes, sender);
            }
            _ if is_new => {
                let flight = sender.flight() + delivery.acked;
                let scale = (sender.smss, sender.srtt_ms);
                self.open_window(delivery, flight, sender.config, scale);
            }
            _ => {}
        }
        (LossOutcome { reduced, resends }, wait)
    }

    /// RACK's reordering window is over.
    pub(in crate::tcp) fn on_reordering_timer(&mut self, sender: &Sender<'_>) -> LossOutcome {
        let before = self.phase;
        self.detect(0, sender);
        let resends = self.phase != before;
        LossOutcome {
            reduced: resends,
            resends,
        }
    }

    /// Marks what is lost by now and enters recovery if that is the first news. Returns
    /// whether there was any, and how long until RACK can judge the rest, ms; 0: no such.
    ///
    /// `delivered`: bytes that the present acknowledgment delivered.
    fn detect(&mut self, delivered: u32, sender: &Sender<'_>) -> (bool, u32) {
        let mut wait = 0;
        let news = if !(HAS_SACK && sender.has_sack) {
            // After a timeout, duplicates of its own retransmissions must not count
            // (RFC 6582 §4.1); `recover` is the SYN's number at first.
            self.phase == Phase::Open
                && self.dup_acks >= DUP_THRESHOLD
                && sender.una.after(self.recover)
                && self.scoreboard.lose_first(sender.smss)
        } else if !sender.config.finds_by_time() {
            self.scoreboard.lose_by_count(sender.smss)
        } else if self.notes.has(Notes::RACK) {
            let limit = u32::from(self.rack_rtt) + self.reordering_window_ms(sender);
            let age = sender.now_ms.wrapping_sub(self.rack_sent_at);
            let end = self.rack_end.offset_from(sender.una);
            let newest = (age, end);
            let (news, next) = self.scoreboard.lose_by_time(sender.now_ms, newest, limit);
            wait = next;
            news
        } else {
            false
        };
        if news && matches!(self.phase, Phase::Open | Phase::Reduced) {
            self.enter_recovery(delivered, sender);
        }
        (news, wait)
    }

    /// RACK's reordering window (RFC 8985 §6.2 step 4), ms.
    pub(super) fn reordering_window_ms(&self, sender: &Sender<'_>) -> u32 {
        if !self.notes.has(Notes::REORDERED)
            && (self.is_recovering() || self.scoreboard.is_sacked_beyond(sender.smss))
        {
            return 0;
        }
        let window = u32::from(self.min_rtt) * self.reo.quarters() / 4;
        match sender.srtt_ms {
            0 => window,
            srtt => window.min(srtt),
        }
    }

    /// Notes the newest transmission delivered (RFC 8985 §6.2 steps 1 to 3).
    pub(in crate::tcp) fn on_delivered(&mut self, delivery: &Delivery) {
        let age = delivery.newest_age;
        let end = delivery.base.plus(delivery.newest_end);
        let known_age = delivery.now_ms.wrapping_sub(self.rack_sent_at);
        if !self.notes.has(Notes::RACK)
            || age < known_age
            || age == known_age && end.after(self.rack_end)
        {
            self.notes.set(Notes::RACK);
            self.rack_sent_at = delivery.now_ms.wrapping_sub(age);
            self.rack_end = end;
        }
        self.rack_rtt = age.min(RTT_MAX_MS) as u16;
        if delivery.reordered {
            self.notes.set(Notes::REORDERED);
        }
    }

    /// A tail loss probe was sent, up to `end`; `resent`: something again, not new data.
    pub(in crate::tcp) fn on_tail_probe(&mut self, end: SeqNum, resent: bool) {
        self.tail_end = end;
        self.notes.set(Notes::TAIL_PROBED);
        self.notes.put(Notes::TAIL_RESENT, resent);
    }
}
