//! The facts that a context learns from a segment whose checksum verifies: the receiving half, and
//! what the segment confirms about the sending half.

use crate::time::Instant;

use super::Mode;
use super::context::{Context, FAR, Form, bit};
use super::numbers::{UNKNOWN, after, behind, distance, grow};
use super::rules::{Cure, Rules};
use super::segment::Segment;
use super::windows::{Set, WindowSet};
use crate::wire::tcp::Flags;

impl Context {
    /// Updates the context from a segment with a valid checksum.
    pub(super) fn on_validated(&mut self, seg: &Segment, form: Form, rules: Rules, now: Instant) {
        self.touch(now);
        self.put_unheard_spells(0);
        let far = self.is_far(seg) && form != Form::Compressed && rules.cured(Cure::Poisoning);
        if far {
            self.put(bit::R_SEQ | bit::R_ACK | bit::R_TS | bit::R_WINDOW, false);
            self.put(bit::R_TSECR | bit::L_SEQ | bit::L_TSVAL, false);
            self.put(bit::REFRESH_FULL, true);
        }
        let end = seg.end();
        let known = self.has(bit::R_SEQ);
        if known && self.is_repeated(seg, rules) {
            self.put(bit::REFRESH, true);
        }
        let old_seq = known && after(self.r_seq, end);
        if self.step(bit::R_SEQ, self.r_seq, end).is_some() {
            self.r_seq = end;
        }
        let old_ack = seg.ack().is_some_and(|ack| self.take_ack(ack, form));
        let older = match form {
            Form::Compressed => old_seq || old_ack,
            _ => old_ack && rules.cured(Cure::LateRefresh),
        };
        if !older || !self.has(bit::R_WINDOW) {
            self.r_window = seg.window();
            self.put(bit::R_WINDOW, true);
        }
        if rules.mode == Mode::Draft {
            (self.r_tsval, self.r_tsecr) = (seg.header.seq, seg.header.ack);
            self.r_window = seg.window();
        } else {
            self.take_timestamps(seg, rules);
        }
        if seg.has(Flags::FIN) {
            self.put(bit::FIN_HEARD, true);
        }
        self.agreement.hear();
        self.put(bit::HEARD, true);
        self.put(bit::UNSURE, false);
    }

    /// Whether the peer repeats itself, so that perhaps our segments fail (cure 2).
    fn is_repeated(&self, seg: &Segment, rules: Rules) -> bool {
        if rules.cured(Cure::Probes) {
            after(self.r_seq, seg.end()) || seg.occupies() && after(self.r_seq, seg.seq())
        } else {
            seg.payload_len() != 0 && !after(seg.end(), self.r_seq)
        }
    }

    fn is_far(&self, seg: &Segment) -> bool {
        let far = |a, b| distance(a, b).unsigned_abs() > FAR;
        self.has(bit::R_SEQ) && far(seg.end(), self.r_seq)
            || self.has(bit::R_ACK) && seg.ack().is_some_and(|ack| far(ack, self.r_ack))
    }

    /// Takes an acknowledgment number; returns whether it is an old one.
    fn take_ack(&mut self, ack: u32, form: Form) -> bool {
        if !self.has(bit::U_SEQ) && form != Form::Compressed {
            self.u_seq = ack;
            self.put(bit::U_SEQ | bit::JOINED, true);
        } else if self.has(bit::JOINED) && after(ack, self.u_seq) {
            // Everything acknowledged was sent, by the end that was there before.
            grow(&mut self.pair.0, ack.wrapping_sub(self.u_seq));
            self.u_seq = ack;
        }
        let old = self.has(bit::R_ACK) && after(self.r_ack, ack);
        if !old {
            self.r_ack = ack;
            self.put(bit::R_ACK, true);
        }
        let sent = self.has(bit::U_SEQ) && !after(ack, self.u_seq);
        if sent && self.u_seq.wrapping_sub(ack) <= FAR {
            self.put(bit::L_SEQ, true);
        }
        if self.has(bit::FIN_SENT) && ack == self.u_seq {
            self.put(bit::OUR_FIN_ACKED, true);
        }
        if let Some(end) = behind(self.u_seq, self.pair.0)
            && sent
            && !after(end, ack)
        {
            let since = self.set(Set::SincePair);
            self.confirm_ack(self.pair.1, since);
            self.pair.0 = UNKNOWN;
        }
        old
    }

    /// The peer has validated a segment with this acknowledgment number or a later one, and
    /// holds one of these windows.
    fn confirm_ack(&mut self, ack_behind: u16, windows: WindowSet) {
        self.l_ack_behind = self.l_ack_behind.min(ack_behind);
        self.put_set(Set::Held, windows);
        self.put(bit::EDGE, true);
    }

    /// A SYN, or the answer to one, came again: TCP will echo its timestamp, which its sender
    /// then takes for one that is known here.
    pub(super) fn take_repeated_syn(&mut self, seg: &Segment, rules: Rules) {
        if let Some((value, _)) = seg.timestamps()
            && rules.cured(Cure::RepeatedSyn)
            && self.step(bit::R_TS, self.r_tsval, value).is_some()
        {
            self.r_tsval = value;
        }
    }

    fn take_timestamps(&mut self, seg: &Segment, rules: Rules) {
        let Some((value, echo)) = seg.timestamps() else {
            return;
        };
        if self.step(bit::R_TS, self.r_tsval, value).is_some() {
            self.r_tsval = value;
        }
        if seg.ack().is_some() {
            if self.step(bit::R_TSECR, self.r_tsecr, echo).is_some() {
                self.r_tsecr = echo;
            }
            let sent = self.has(bit::U_TS) && !after(echo, self.u_tsval);
            self.put(bit::L_TSVAL, self.has(bit::L_TSVAL) || sent);
            if let Some(value) = behind(self.u_tsval, self.tpair.0)
                && (sent || !rules.cured(Cure::SharedTimestamp))
                && !after(value, echo)
            {
                let since = self.set(Set::SinceTpair);
                self.confirm_ack(self.tpair.2, since);
                self.l_tsecr_behind = self.l_tsecr_behind.min(self.tpair.1);
                self.tpair.0 = UNKNOWN;
            }
        }
    }
}
