//! Finding losses: by time when the peer sends SACK (RFC 8985), else by counting (RFC 6675,
//! RFC 5681).
//!
//! Place: last of what an acknowledgment does, and where the reordering timer calls in. Left out:
//! the table of what was sent ([`super::scoreboard`]), what a loss does to cwnd
//! ([`super::reduction`]).
//! Sources: RFC 8985 §6, RFC 6675, 5681, 6582.

use super::notes::Notes;
use super::scoreboard::{DUP_THRESHOLD, Delivery};
use super::{Loss, Phase};
use crate::tcp::connection::Connection;
use crate::tcp::facts::Facts;
use crate::tcp::rtt::RTT_MAX_MS;
use crate::tcp::seq::SeqNum;

impl Connection<'_> {
    /// Looks for losses, and sets cwnd for what was delivered in this phase. Returns how long
    /// until RACK can judge the rest, ms; 0: no such.
    pub(in crate::tcp) fn judge(&mut self, delivery: &Delivery) -> u32 {
        let is_new = delivery.acked > 0;
        if is_new {
            // CWR goes out with what is sent behind `recover`; until that is acknowledged,
            // the peer echoes the same mark (RFC 3168 §6.1.2).
            let least = i32::from(self.loss.phase == Phase::Reduced);
            if self.snd_una.offset_from(self.loss.recover) >= least {
                self.leave_recovery();
            }
            if self.loss.phase == Phase::Recovery && !self.facts.has(Facts::SACK) {
                // A partial acknowledgment: the next hole begins here (RFC 6582 §3.2 step 3).
                self.loss.scoreboard.lose_first(self.payload_max());
                self.loss.notes.set(Notes::FORCE_RESEND);
            }
        }
        let (news, wait) = self.detect_losses(delivery.bytes);
        match self.loss.phase {
            Phase::Reduced => {}
            Phase::Recovery => self.reduce_in_proportion(is_new && !news, delivery.bytes),
            _ if is_new => self.open_window(delivery),
            _ => {}
        }
        wait
    }

    /// Marks what is lost by now and enters recovery if that is the first news. Returns
    /// whether there was any, and how long until RACK can judge the rest, ms; 0: no such.
    ///
    /// `delivered`: bytes that the present acknowledgment delivered.
    pub(in crate::tcp) fn detect_losses(&mut self, delivered: u32) -> (bool, u32) {
        let mut wait = 0;
        let news = if !self.facts.has(Facts::SACK) {
            // After a timeout, duplicates of its own retransmissions must not count
            // (RFC 6582 §4.1); `recover` is the SYN's number at first.
            self.loss.phase == Phase::Open
                && self.loss.dup_acks >= DUP_THRESHOLD
                && self.snd_una.after(self.loss.recover)
                && self.loss.scoreboard.lose_first(self.payload_max())
        } else if !self.config.rack {
            self.loss.scoreboard.lose_by_count(self.payload_max())
        } else if self.loss.notes.has(Notes::RACK) {
            let limit = u32::from(self.loss.rack_rtt) + self.reordering_window_ms();
            let age = self.now_ms.wrapping_sub(self.loss.rack_sent_at);
            let end = self.loss.rack_end.offset_from(self.snd_una);
            let (news, next) = self
                .loss
                .scoreboard
                .lose_by_time(self.now_ms, (age, end), limit);
            wait = next;
            news
        } else {
            false
        };
        if news && matches!(self.loss.phase, Phase::Open | Phase::Reduced) {
            self.enter_recovery(delivered);
        }
        (news, wait)
    }

    /// RACK's reordering window (RFC 8985 §6.2 step 4), ms.
    pub(in crate::tcp) fn reordering_window_ms(&self) -> u32 {
        if !self.loss.notes.has(Notes::REORDERED)
            && (self.is_recovering() || self.loss.scoreboard.is_sacked_beyond(self.payload_max()))
        {
            return 0;
        }
        let quarters = self.loss.reo.quarters();
        let window = u32::from(self.loss.min_rtt) * quarters / 4;
        window.min(self.rtt.srtt_ms().unwrap_or(window))
    }

    /// Bytes in the network, as far as is known.
    pub(in crate::tcp) fn pipe(&self) -> u32 {
        let smss = match self.facts.has(Facts::SACK) {
            true => 0,
            false => self.payload_max(),
        };
        self.loss.pipe(self.flight(), smss)
    }
}

impl Loss {
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
