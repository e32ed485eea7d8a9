//! Recovery: the reduction of cwnd at a loss or a congestion mark, its end, and its undo if it
//! proves spurious.
//!
//! However a loss is detected, the recovery is the same: halve cwnd, retransmit as the pipe drains
//! (or by PRR), and undo the reduction if the loss proves spurious. Place: between `ack`, which
//! processes acknowledgments, and `output`, which sends as cwnd allows. Left out: loss detection
//! ([`super::detection`]) and the growth of cwnd outside recovery ([`super::congestion`]).
//! Sources: RFC 5681, 6582, 6675, 9937, 3168, 3522, 3708, 8985 §7.4.

use super::control::{Algorithm, Growth};
use super::notes::Notes;
use super::prr::Prr;
use super::scoreboard::Delivery;
use super::{Loss, LossOutcome, Phase, Sender, saturated};
use crate::tcp::config::{Config, HAS_RECOVERY};
use crate::tcp::seq::SeqNum;

impl Loss {
    /// Handles a DSACK: the peer received these octets twice, because one of our retransmissions
    /// was unnecessary, or the network duplicated a packet. Returns whether the reduction was
    /// undone.
    ///
    /// The reduction is undone once DSACKs have reported every octet that was retransmitted in this
    /// recovery. A report counts once, in order, and only if it lies after the beginning of the
    /// recovery and the last report, and before the end of the recovery (RFC 3708 §3; as Linux
    /// counts `undo_retrans`).
    pub(in crate::tcp) fn on_dsack(&mut self, left: SeqNum, right: SeqNum) -> bool {
        if self.notes.has(Notes::TAIL_RESENT) && right == self.tail_end {
            // The probe was unnecessary (RFC 8985 §7.4.2). If a timeout has retransmitted the same
            // segment, too, the DSACK for that is also taken for the probe's, and undoes nothing.
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
        self.end_phase(Phase::Open);
        if self.control.on_undone() {
            let congestion = &mut self.congestion;
            congestion.cwnd = congestion.cwnd.max(self.cwnd_prior);
            congestion.ssthresh = congestion.ssthresh.max(self.ssthresh_prior);
        }
        self.scoreboard.absolve();
        true
    }

    /// New data were acknowledged: was a loss repaired by the tail loss probe (RFC 8985 §7.4)?
    /// Then it counts as one. Returns whether cwnd was reduced.
    pub(super) fn judge_tail_probe(&mut self, sender: &Sender<'_>) -> bool {
        let ahead = sender.una.offset_from(self.tail_end);
        let was_resent = self.notes.has(Notes::TAIL_RESENT);
        if !self.notes.has(Notes::TAIL_PROBED) || ahead < i32::from(was_resent) {
            return false;
        }
        self.notes.clear(Notes::TAIL_PROBED | Notes::TAIL_RESENT);
        // If there was no DSACK until now, only one of the two copies arrived.
        let is_lost = was_resent && self.phase == Phase::Open;
        if is_lost {
            self.reduce_once(sender);
        }
        is_lost
    }

    /// The peer saw a congestion mark: reacts as to a loss, once per window (RFC 3168 §6.1.2).
    pub(super) fn on_ecn_echo(&mut self, sender: &Sender<'_>) {
        let flight = sender.flight().min(u32::from(self.congestion.cwnd));
        self.reduce_once(sender);
        let ssthresh = self.congestion.ssthresh;
        self.set_cwnd(self.control.marked(flight, sender.smss, ssthresh), sender);
    }

    /// Halves cwnd without anything to send again.
    fn reduce_once(&mut self, sender: &Sender<'_>) {
        self.halve(sender);
        self.set_cwnd(self.congestion.ssthresh, sender);
        self.phase = Phase::Reduced;
        self.notes.clear(Notes::UNDO);
    }

    fn set_cwnd(&mut self, cwnd: u16, sender: &Sender<'_>) {
        if sender.config.congestion_control {
            self.congestion.cwnd = cwnd;
        }
    }

    /// Halves ssthresh, stores the values from before, and marks the end of the window.
    fn halve(&mut self, sender: &Sender<'_>) {
        // Marks and drops of one window of data count once (RFC 3168 §6.1.2). A timeout always
        // counts (RFC 5681 §3.1): by then `phase` is `Loss`, so this test does not hold it back.
        let is_counted = self.phase == Phase::Reduced && sender.una.before(self.recover);
        let can_undo = self.control.on_reduction(self.cwnd_prior, is_counted);
        if can_undo {
            self.cwnd_prior = self.congestion.cwnd;
            self.ssthresh_prior = self.congestion.ssthresh;
        }
        if HAS_RECOVERY {
            self.undo_left = 0;
            self.undo_from = sender.una;
            self.notes.put(Notes::UNDO, sender.config.undo && can_undo);
        }
        self.recover = sender.nxt;
        self.notes.clear(Notes::UNDO_TS | Notes::REO_GROWN);
        // Limited transmit sent beyond cwnd; that must not count (RFC 5681 §3.2).
        let flight = sender.flight().min(u32::from(self.congestion.cwnd));
        if !is_counted {
            self.congestion
                .reduce(self.control.reduced(flight), sender.smss);
        }
    }

    /// Fast recovery is under way from now on.
    pub(super) fn begin_recovery(&mut self, prr: Prr) {
        self.phase = Phase::Recovery;
        self.control.begin_recovery(prr);
    }

    /// The phase under way is over, and with it fast recovery; `next` counts duplicates anew.
    fn end_phase(&mut self, next: Phase) {
        self.control.end_recovery();
        self.phase = next;
        self.dup_acks = 0;
    }

    /// Begins retransmission: the first segment is sent even if cwnd does not allow it, and tail
    /// loss probing ends. `TAIL_RESENT` stays set, because a DSACK for the probe must not undo the
    /// following recovery.
    fn begin_resending(&mut self) {
        self.notes.clear(Notes::TAIL_PROBED);
        self.notes.set(Notes::FORCE_RESEND);
    }

    /// `delivered`: bytes delivered by the acknowledgment that shows the loss.
    pub(super) fn enter_recovery(&mut self, delivered: u32, sender: &Sender<'_>) {
        self.halve(sender);
        // Data SACKed earlier are not part of the flight.
        let in_flight = sender.flight() - self.scoreboard.sacked();
        self.begin_recovery(Prr::new(in_flight + delivered));
        self.begin_resending();
        self.set_cwnd(self.congestion.ssthresh, sender);
    }

    /// The retransmission timer expired (RFC 5681 §3.1, RFC 6675 §5.1, RFC 8985 §6.3).
    /// `is_first`: since data were last acknowledged; only then cwnd is halved.
    pub(in crate::tcp) fn on_timeout(
        &mut self,
        is_first: bool,
        sender: &Sender<'_>,
    ) -> LossOutcome {
        let by_time =
            sender.config.finds_by_time() && sender.has_sack && self.notes.has(Notes::RACK);
        let age_min = match by_time {
            true => u32::from(self.rack_rtt) + self.reordering_window_ms(sender),
            false => 0,
        };
        let was_resizing = self.phase == Phase::Resize;
        self.end_phase(Phase::Loss);
        self.begin_resending();
        if is_first {
            self.halve(sender);
        }
        if was_resizing {
            // Segments that were too big stay lost: an undo would mark them as in flight.
            self.notes.clear(Notes::UNDO);
        }
        self.control.on_timeout();
        self.set_cwnd(sender.smss as u16, sender);
        self.scoreboard.lose_all(sender.now_ms, age_min);
        self.recover = sender.nxt;
        LossOutcome {
            reduced: is_first,
            resends: true,
        }
    }

    /// Segments, sent up to `nxt`, were too big for the path (RFC 8201): all that is on the way is
    /// lost for certain, so that an undo would absolve it. Not a sign of congestion: cwnd stays.
    pub(in crate::tcp) fn on_too_big(&mut self, nxt: SeqNum, now_ms: u32) {
        self.scoreboard.lose_all(now_ms, 0);
        self.notes.clear(Notes::UNDO);
        self.notes.set(Notes::FORCE_RESEND);
        if !self.is_recovering() {
            self.phase = Phase::Resize;
            self.recover = nxt;
        }
    }

    /// `len` bytes from `offset` on were sent again.
    pub(in crate::tcp) fn on_resent(&mut self, offset: u32, len: u16, now_ms: u32) {
        self.notes.clear(Notes::FORCE_RESEND);
        self.scoreboard.resend(offset, len, now_ms);
    }

    /// `len` bytes were sent again because they were deemed lost: should that prove wrong, the
    /// reduction is undone. `clock`: the time that the segment bears, where timestamps are in use.
    pub(in crate::tcp) fn on_repaired(&mut self, len: u16, clock: Option<u32>) {
        if !self.notes.has(Notes::UNDO) {
            return;
        }
        if let Some(clock) = clock
            && !self.notes.has(Notes::UNDO_TS)
        {
            self.notes.set(Notes::UNDO_TS);
            self.undo_ts = clock;
        }
        self.undo_left = self.undo_left.saturating_add(len);
    }

    /// Slow start or congestion avoidance.
    /// `flight`: octets in flight just before; `smss` and `srtt_ms` as [`Sender`] has them.
    pub(in crate::tcp) fn open_window(
        &mut self,
        delivery: &Delivery,
        flight: u32,
        config: &Config,
        (smss, srtt_ms): (u32, u32),
    ) {
        if !config.congestion_control {
            return;
        }
        self.congestion.note_flight(flight);
        let most = config.slow_start_segments_max;
        if self.congestion.on_acked(delivery.acked, smss, most) {
            let growth = Growth {
                acked: delivery.acked,
                smss,
                elapsed_ms: delivery.elapsed,
                srtt_ms,
                flight,
                cwnd_prior: self.cwnd_prior,
                is_final: self.undo_left == 0,
            };
            self.control.avoid(&mut self.congestion, &growth);
        }
    }

    pub(super) fn leave_recovery(&mut self, sender: &Sender<'_>) {
        if self.phase == Phase::Recovery {
            let mut cwnd = self.congestion.ssthresh;
            if !sender.config.prr {
                // Against a burst (RFC 6582 §3.2 step 3, option 1).
                cwnd = cwnd.min(saturated(sender.flight().max(sender.smss) + sender.smss));
            }
            self.set_cwnd(cwnd, sender);
            self.reo.on_recovered();
        }
        if self.phase != Phase::Open {
            self.end_phase(Phase::Open);
        }
    }

    /// PRR: cwnd such that sending follows delivery down to ssthresh (RFC 9937 §6.2); where
    /// nothing was delivered it stays.
    pub(super) fn reduce_in_proportion(
        &mut self,
        is_safe_ack: bool,
        delivered: u32,
        sender: &Sender<'_>,
    ) {
        if !sender.config.prr || delivered == 0 {
            return;
        }
        let pipe = self.pipe(sender.flight(), sender.smss);
        let ssthresh = u32::from(self.congestion.ssthresh);
        if let Some(prr) = self.control.prr_mut() {
            let more = prr.allow(delivered, (pipe, ssthresh), sender.smss, is_safe_ack);
            self.set_cwnd(saturated(pipe + more), sender);
        }
    }
}
