//! cwnd when something is lost, or marked, or proves neither: entering, leaving and undoing
//! recovery.
//!
//! Whatever finds a loss, what follows is one recovery: halve, send again what is due as the
//! pipe drains (or by PRR), and undo it all if it proves spurious. Place: between `ack`,
//! which knows what came, and `output`, which asks what cwnd allows. Left out: finding losses
//! ([`super::detection`]) and the arithmetic of cwnd in the open ([`super::congestion`]).
//! Sources: RFC 5681, 6582, 6675, 9937, 3168, 3522, 3708, 8985 §7.4.

use super::congestion::saturated;
use super::notes::Notes;
use super::scoreboard::Delivery;
use super::{Growth, Loss, Phase};
use crate::tcp::connection::Connection;
use crate::tcp::facts::Facts;
use crate::tcp::segment::Segment;
use crate::tcp::seq::SeqNum;

impl Loss {
    /// The peer received these octets twice: one of our retransmissions was not needed, or
    /// the network doubled something. Returns whether the reduction was undone.
    ///
    /// The reduction is taken back when every octet sent again in this recovery was reported
    /// so. Reports count once and in order, and only of what the recovery is about: behind
    /// its beginning or the last report, and before its end (RFC 3708 §3; as Linux counts
    /// `undo_retrans`).
    pub(in crate::tcp) fn on_dsack(&mut self, left: SeqNum, right: SeqNum) -> bool {
        if self.notes.has(Notes::TAIL_RESENT) && right == self.tail_end {
            // The probe was needless (RFC 8985 §7.4.2). Should a timeout have sent that segment
            // again, too, its report is taken for this one's, and undoes nothing.
            self.notes.clear(Notes::TAIL_PROBED | Notes::TAIL_RESENT);
            return false;
        }
        // Once per reduction, not once per round trip (RFC 8985 §6.2 step 4): all that is
        // needless was sent in one or the other, and nothing has to be kept of a round.
        if !self.notes.has(Notes::REO_GROWN) {
            self.notes.set(Notes::REO_GROWN);
            self.reo.grow();
        }
        if left.before(self.undo_from) || right.after(self.recover) {
            return false;
        }
        self.undo_from = right;
        let len = right.since(left).min(u32::from(self.undo_left));
        self.undo_left -= len as u16;
        len > 0 && self.undo_left == 0 && self.undo()
    }

    /// Eifel detection: an ACK of new data that echoes a time, `echo`, before the first
    /// retransmission acknowledges the original (RFC 3522). Returns whether the reduction was
    /// undone.
    pub(in crate::tcp) fn on_echo(&mut self, echo: u32) -> bool {
        self.notes.has(Notes::UNDO_TS)
            && self.is_recovering()
            && (echo.wrapping_sub(self.undo_ts) as i32) < 0
            && self.undo()
    }

    /// Takes the reduction back, if it can be: nothing was lost.
    fn undo(&mut self) -> bool {
        if !self.notes.has(Notes::UNDO) {
            return false;
        }
        self.notes
            .clear(Notes::UNDO | Notes::UNDO_TS | Notes::FORCE_RESEND);
        let congestion = &mut self.congestion;
        congestion.cwnd = congestion.cwnd.max(self.undo_cwnd);
        congestion.ssthresh = congestion.ssthresh.max(self.undo_ssthresh);
        self.forget_reduction();
        self.scoreboard.absolve();
        self.phase = Phase::Open;
        self.dup_acks = 0;
        self.undo_left = 0;
        true
    }
}

impl Connection<'_> {
    /// Was a loss repaired by the tail loss probe (RFC 8985 §7.4)? Then it counts as one.
    pub(in crate::tcp) fn judge_tail_probe(&mut self, seg: &Segment<'_>) {
        let ahead = seg.ack().offset_from(self.loss.tail_end);
        let notes = &mut self.loss.notes;
        let was_resent = notes.has(Notes::TAIL_RESENT);
        if !notes.has(Notes::TAIL_PROBED) || ahead < i32::from(was_resent) {
            return;
        }
        notes.clear(Notes::TAIL_PROBED | Notes::TAIL_RESENT);
        // Without a DSACK by now, only one of the two copies arrived.
        if was_resent && self.loss.phase == Phase::Open {
            self.reduce_once();
        }
    }

    /// The peer saw a congestion mark: react as to a loss, once per window (RFC 3168 §6.1.2).
    pub(in crate::tcp) fn on_congestion_echo(&mut self) {
        if self.loss.phase == Phase::Open && !self.facts.has(Facts::CWR_DUE) {
            let flight = self.flight().min(u32::from(self.loss.congestion.cwnd));
            let algorithm = self.config.congestion_algorithm;
            self.reduce_once();
            let ssthresh = self.loss.congestion.ssthresh;
            self.set_cwnd(algorithm.marked(flight, self.payload_max(), ssthresh));
        }
    }

    /// Halves cwnd without anything to send again.
    fn reduce_once(&mut self) {
        self.halve();
        self.set_cwnd(self.loss.congestion.ssthresh);
        self.loss.phase = Phase::Reduced;
        self.loss.notes.clear(Notes::UNDO);
        if cfg!(feature = "router") {
            // No timeout's.
            self.loss.numbers = [1; 3];
        }
    }

    fn set_cwnd(&mut self, cwnd: u16) {
        if self.config.congestion_control {
            self.loss.congestion.cwnd = cwnd;
        }
    }

    /// Halves ssthresh, remembers what was before, and marks the window's end.
    fn halve(&mut self) {
        // Marks and drops of one window of data count once (RFC 3168 §6.1.2), but a timeout
        // counts always (RFC 5681 §3.1): its phase is another by now.
        let is_counted =
            self.loss.phase == Phase::Reduced && self.snd_una.before(self.loss.recover);
        let algorithm = self.config.congestion_algorithm;
        let can_undo = algorithm.precede_reduction(&mut self.loss, is_counted);
        if can_undo {
            self.loss.undo_cwnd = self.loss.congestion.cwnd;
            self.loss.undo_ssthresh = self.loss.congestion.ssthresh;
        }
        self.loss.undo_left = 0;
        self.loss.undo_from = self.snd_una;
        self.loss.recover = self.snd_nxt;
        self.loss
            .notes
            .put(Notes::UNDO, self.config.undo && can_undo);
        self.loss.notes.clear(Notes::UNDO_TS | Notes::REO_GROWN);
        self.facts.set(Facts::CWR_DUE);
        // Limited transmit sent beyond cwnd; that must not count (RFC 5681 §3.2).
        let flight = self.flight().min(u32::from(self.loss.congestion.cwnd));
        if !is_counted {
            let smss = self.payload_max();
            self.loss.congestion.reduce(algorithm, flight, smss);
        }
    }

    /// Something is to be sent again, whatever cwnd says; probes are over. That one was a
    /// retransmission stays known: its DSACK says nothing of what follows.
    fn begin_resending(&mut self, phase: Phase) {
        self.loss.phase = phase;
        self.facts.clear(Facts::TAIL_PROBE_DUE);
        self.loss.notes.clear(Notes::TAIL_PROBED);
        self.loss.notes.set(Notes::FORCE_RESEND);
    }

    /// `delivered`: bytes that the acknowledgment delivered which tells of the loss.
    pub(in crate::tcp) fn enter_recovery(&mut self, delivered: u32) {
        self.halve();
        // What was SACKed before counts no more.
        let in_flight = self.flight() - self.loss.scoreboard.sacked();
        self.begin_resending(Phase::Recovery);
        self.loss.numbers = [0, 0, saturated(in_flight + delivered)];
        self.set_cwnd(self.loss.congestion.ssthresh);
    }

    /// The retransmission timer expired (RFC 5681 §3.1, RFC 6675 §5.1, RFC 8985 §6.3).
    pub(in crate::tcp) fn enter_loss(&mut self) {
        let by_time =
            self.config.rack && self.facts.has(Facts::SACK) && self.loss.notes.has(Notes::RACK);
        let age_min = match by_time {
            true => u32::from(self.loss.rack_rtt) + self.reordering_window_ms(),
            false => 0,
        };
        let was_resizing = self.loss.phase == Phase::Resize;
        self.begin_resending(Phase::Loss);
        if self.retries == 0 {
            self.halve();
        }
        if was_resizing {
            // What was too big for the path stays so: an undo would absolve it.
            self.loss.notes.clear(Notes::UNDO);
        }
        if cfg!(feature = "router") {
            self.loss.numbers = [0; 3];
        }
        self.set_cwnd(self.payload_max() as u16);
        self.loss.scoreboard.lose_all(self.now_ms, age_min);
        self.loss.recover = self.snd_nxt;
        self.loss.dup_acks = 0;
    }

    /// Segments were too big for the path (RFC 8201): all that is on the way is lost for certain,
    /// so that an undo would absolve it. Not a sign of congestion: cwnd stays.
    pub(in crate::tcp) fn enter_resize(&mut self) {
        self.loss.scoreboard.lose_all(self.now_ms, 0);
        self.loss.notes.clear(Notes::UNDO);
        self.loss.notes.set(Notes::FORCE_RESEND);
        if !self.loss.is_recovering() {
            self.loss.phase = Phase::Resize;
            self.loss.recover = self.snd_nxt;
        }
    }

    /// `len` bytes from `offset` on were sent again. `is_probe`: not because they were lost.
    pub(in crate::tcp) fn on_resent(&mut self, offset: u32, len: u16, is_probe: bool) {
        self.loss.notes.clear(Notes::FORCE_RESEND);
        self.loss.scoreboard.resend(offset, len, self.now_ms);
        if is_probe || !self.loss.notes.has(Notes::UNDO) {
            return;
        }
        if !self.loss.notes.has(Notes::UNDO_TS) && self.facts.has(Facts::TIMESTAMPS) {
            self.loss.notes.set(Notes::UNDO_TS);
            self.loss.undo_ts = self.now_ms.wrapping_add(self.ts_offset);
        }
        self.loss.undo_left = self.loss.undo_left.saturating_add(len);
    }

    /// Slow start or congestion avoidance, for what `delivery` acknowledged.
    pub(in crate::tcp) fn open_window(&mut self, delivery: &Delivery) {
        if !self.config.congestion_control {
            return;
        }
        let growth = Growth {
            acked: delivery.acked,
            smss: self.payload_max(),
            elapsed_ms: delivery.elapsed,
            srtt_ms: self.rtt.srtt_ms().unwrap_or(0),
            flight: self.flight() + delivery.acked,
        };
        let congestion = &mut self.loss.congestion;
        congestion.note_flight(growth.flight);
        let most = self.config.slow_start_segments_max;
        if congestion.on_acked(growth.acked, growth.smss, most) {
            let algorithm = self.config.congestion_algorithm;
            algorithm.avoid(&mut self.loss, &growth);
        }
    }

    pub(in crate::tcp) fn leave_recovery(&mut self) {
        if self.loss.phase == Phase::Recovery {
            let smss = self.payload_max();
            let mut cwnd = self.loss.congestion.ssthresh;
            if !self.config.prr {
                // Against a burst (RFC 6582 §3.2 step 3, option 1).
                cwnd = cwnd.min(saturated(self.flight().max(smss) + smss));
            }
            self.set_cwnd(cwnd);
            self.loss.reo.on_recovered();
        }
        if self.loss.phase != Phase::Open {
            self.loss.phase = Phase::Open;
            self.loss.dup_acks = 0;
        }
    }

    /// PRR: cwnd such that sending follows delivery down to ssthresh (RFC 9937 §6.2); where
    /// nothing was delivered it stays.
    pub(in crate::tcp) fn reduce_in_proportion(&mut self, is_safe_ack: bool, delivered: u32) {
        if !self.config.prr || delivered == 0 {
            return;
        }
        let smss = self.payload_max();
        let [total, out, start] = &mut self.loss.numbers;
        *total = saturated(u32::from(*total) + delivered);
        let total = u32::from(*total);
        let (out, start) = (u32::from(*out), u32::from(*start).max(1));
        let ssthresh = u32::from(self.loss.congestion.ssthresh);
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
}
