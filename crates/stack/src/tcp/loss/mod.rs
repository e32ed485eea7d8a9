//! Loss recovery and congestion control: which bytes in flight are lost, when they are sent again,
//! and how much may be in flight.
//!
//! [`Loss`] alone owns the scoreboard, the state of RACK, the tail loss probes, the phase of
//! recovery, the values that an undo restores, and cwnd. Its fields are private to this folder, so
//! no other code can change them.
//!
//! Events go in. Bytes were sent: [`Loss::on_sent`], [`Loss::on_tail_probe`], [`Loss::on_resent`],
//! [`Loss::on_repaired`]. An acknowledgment came: [`Loss::on_sacked`], [`Loss::on_dsack`],
//! [`Loss::on_acked`], [`Loss::on_delivered`], [`Loss::on_echo`], and last [`Loss::judge`]. A timer
//! expired: [`Loss::on_timeout`], [`Loss::on_reordering_timer`]. Segments were too big for the
//! path: [`Loss::on_too_big`]. An event whose handling also depends on settings, segment size or
//! sequence numbers passes a [`Sender`], the present values of the connection.
//!
//! Results are cwnd, the pipe, the segment that is due, and whether a recovery is under way; an
//! event returns a [`LossOutcome`], or whether it undid a reduction.
//!
//! Place: between `ack`, which processes acknowledgments, and `output`, which chooses the next
//! segment. Left out: round trips ([`super::rtt`]), arming timers ([`super::clock`],
//! [`super::retransmit`]).
//!
//! | file | what |
//! |---|---|
//! | `scoreboard` | what was sent, what arrived, what to send again |
//! | `detection` | what is lost: by time, by counting |
//! | `reduction` | entering, leaving and undoing recovery |
//! | `notes` | what is remembered in one bit each |
//! | `reordering` | how wide RACK's reordering window is |
//! | `congestion` | cwnd and ssthresh: slow start, and what is common to reductions |
//! | `prr` | what fast recovery counts |
//! | `control` | the algorithms of congestion control: New Reno, CUBIC |
//!
//! To add an algorithm: a file in `control`, and an entry in the list of its `mod.rs`.

mod congestion;
pub(super) mod control;
mod detection;
mod notes;
mod prr;
mod reduction;
mod reordering;
mod scoreboard;

#[cfg(test)]
mod tests;

use super::config::Config;
use super::seq::SeqNum;
use congestion::{Congestion, initial_window};
use control::{Algorithm, Control};
use notes::Notes;
use reordering::Reordering;
use scoreboard::Scoreboard;

pub use control::CongestionAlgorithm;
pub(super) use scoreboard::{Delivery, NONE};

/// The phase of loss recovery (RFC 5681 §3.2, RFC 6582).
// Numbered from 1 on: a place without a connection is then all zeros, and a static one costs no
// flash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    /// No data are known to be lost.
    Open = 1,
    /// cwnd was reduced for a congestion mark, and is not reduced again for one until `recover`.
    Reduced,
    /// Fast recovery, until SND.UNA reaches `recover`.
    Recovery,
    /// After a timeout, until `recover`.
    Loss,
    /// Sending again, in smaller segments, what was too big for the path, until `recover`.
    Resize,
}

/// The state of a connection that loss recovery reads when it handles an event.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender<'c> {
    pub(super) config: &'c Config,
    /// SND.UNA: the oldest octet not acknowledged.
    pub(super) una: SeqNum,
    /// SND.NXT: the next octet to be sent.
    pub(super) nxt: SeqNum,
    /// The present, ms modulo 2^32.
    pub(super) now_ms: u32,
    /// Payload of a full segment, bytes.
    pub(super) smss: u32,
    /// SRTT, ms; 0: not known.
    pub(super) srtt_ms: u32,
    /// SACK is in use (RFC 2018).
    pub(super) has_sack: bool,
}

impl Sender<'_> {
    /// Octets sent and not acknowledged.
    fn flight(&self) -> u32 {
        self.nxt.since(self.una)
    }
}

/// The outcome of an acknowledgment or timer in loss recovery.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct LossOutcome {
    /// cwnd was reduced: CWR is to be sent, where ECN is in use (RFC 3168 §6.1.2).
    pub(super) reduced: bool,
    /// A recovery began, and with it something is to be sent again.
    pub(super) resends: bool,
}

/// Loss recovery and congestion control of one connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub(super) struct Loss {
    phase: Phase,
    /// Duplicate ACKs in a row, without SACK; each shows that one segment left the network.
    dup_acks: u8,
    /// RACK: how wide the reordering window is.
    reo: Reordering,
    notes: Notes,
    congestion: Congestion,
    /// Octets sent again in this recovery that no DSACK has called unnecessary yet.
    undo_left: u16,
    /// RACK: the round trip of the newest segment delivered, ms.
    rack_rtt: u16,
    /// Least round trip, ms; drifts up slowly. 0: none yet.
    min_rtt: u16,
    /// cwnd and ssthresh before the last reduction, bytes: what an undo restores.
    cwnd_prior: u16,
    ssthresh_prior: u16,
    control: Control,
    /// SND.NXT when the window was last reduced.
    recover: SeqNum,
    /// TSval of the recovery's first retransmission.
    undo_ts: u32,
    /// SND.NXT at the tail loss probe.
    tail_end: SeqNum,
    /// Least first octet of a DSACK that counts for an undo.
    undo_from: SeqNum,
    /// RACK: behind the newest segment delivered, and when that was sent, ms.
    rack_end: SeqNum,
    rack_sent_at: u32,
    scoreboard: Scoreboard,
}

impl Loss {
    /// The state of a connection before its handshake.
    pub(super) const fn new(algorithm: CongestionAlgorithm) -> Self {
        Self {
            phase: Phase::Open,
            dup_acks: 0,
            reo: Reordering::NEW,
            notes: Notes::NONE,
            congestion: Congestion::NEW,
            undo_left: 0,
            rack_rtt: 0,
            min_rtt: 0,
            cwnd_prior: 0,
            ssthresh_prior: 0,
            control: Control::new(algorithm),
            recover: SeqNum::new(0),
            undo_ts: 0,
            tail_end: SeqNum::new(0),
            undo_from: SeqNum::new(0),
            rack_end: SeqNum::new(0),
            rack_sent_at: 0,
            scoreboard: Scoreboard::NEW,
        }
    }

    // ---- events ----

    /// Nothing was sent yet: everything begins at `iss`.
    pub(super) fn begin_at(&mut self, iss: SeqNum) {
        self.recover = iss;
        self.tail_end = iss;
        self.undo_from = iss;
        self.rack_end = iss;
    }

    /// The handshake is done: sets the initial window to `segments` segments of `smss` bytes, or
    /// (0) by RFC 5681 §3.1.
    pub(super) fn begin(&mut self, smss: u32, segments: u8) {
        self.congestion.begin(smss, segments);
    }

    /// The settings ask for this algorithm; see [`Control::choose`].
    pub(super) fn choose(&mut self, algorithm: CongestionAlgorithm) {
        self.control.choose(algorithm);
    }

    /// New data go into an empty network.
    pub(super) fn on_idle_over(&mut self) {
        self.congestion.forget_flight();
        // Its age may wrap while nothing is sent.
        self.notes.clear(Notes::RACK);
    }

    /// The network was empty for more than an RTO; initial window as for [`Self::begin`].
    pub(super) fn restart(&mut self, smss: u32, segments: u8) {
        self.congestion.restart(smss, segments);
        self.control.on_idle();
    }

    /// `len` new bytes were sent.
    pub(super) fn on_sent(&mut self, len: u16, now_ms: u32) {
        self.scoreboard.push(len, now_ms);
    }

    /// PRR: counts `len` bytes, new or not, sent in recovery.
    pub(super) fn count_out(&mut self, len: u16) {
        if let Some(prr) = self.control.prr_mut() {
            prr.count_out(len);
        }
    }

    /// The record of an acknowledgment that arrives now, and acknowledges nothing yet.
    ///
    /// `echo`: how long ago the timestamp that it echoes was sent, ms, or [`NONE`].
    pub(super) fn delivery(&self, now_ms: u32, echo: u32) -> Delivery {
        let mut age_min = u32::from(self.min_rtt);
        if echo != NONE {
            age_min = age_min.max(echo);
        }
        self.scoreboard.delivery(now_ms, age_min)
    }

    /// The peer holds the bytes between two offsets.
    pub(super) fn on_sacked(&mut self, left: u32, right: u32, delivery: &mut Delivery) {
        self.scoreboard.sack(left, right, delivery);
    }

    /// SND.UNA moved on by [`Delivery::acked`] to `una`.
    pub(super) fn on_acked(&mut self, una: SeqNum, delivery: &mut Delivery) {
        self.scoreboard.acknowledge(delivery.acked, delivery);
        if self.phase == Phase::Open && una.after(self.recover) {
            // Keeps up, so that the comparison never wraps; what a DSACK reports from now on
            // is about something else.
            self.recover = una.minus(1);
            self.undo_left = 0;
        }
    }

    /// A duplicate ACK, where there is no SACK.
    pub(super) fn on_duplicate(&mut self) {
        self.dup_acks = self.dup_acks.saturating_add(1);
    }

    /// `acked` bytes in segments of `smss` were acknowledged, where there is no SACK: what the
    /// duplicates stood for is among them; the hole itself was not.
    pub(super) fn forget_duplicates(&mut self, acked: u32, smss: u32) {
        if self.dup_acks > 0 {
            let segments = acked / smss.max(1);
            let left = u32::from(self.dup_acks).saturating_sub(segments.saturating_sub(1));
            self.dup_acks = left as u8;
        }
    }

    /// A round trip of `rtt` ms: the least one of the recent past rises by 1/64 of the way per
    /// sample.
    pub(super) fn on_round_trip(&mut self, rtt: u32) {
        let min = u32::from(self.min_rtt);
        let next = match rtt.checked_sub(min) {
            Some(above) if min != 0 => min + (above >> 6),
            _ => rtt,
        };
        self.min_rtt = next as u16;
    }

    /// Forgets data whose sending was taken back: they did not fit the window.
    pub(super) fn on_unsent(&mut self) {
        self.scoreboard.clear();
    }

    /// The connection ended: deems all data in flight lost.
    pub(super) fn give_up(&mut self) {
        self.scoreboard.give_up();
    }

    // ---- answers ----

    /// The congestion window, cwnd, bytes (RFC 5681 §2).
    pub(super) const fn cwnd(&self) -> u16 {
        self.congestion.cwnd
    }

    /// The congestion window and the slow start threshold, bytes; until the handshake is done,
    /// what a connection with segments of `smss` bytes begins with, as [`Self::begin`].
    pub(super) fn windows(&self, smss: u32, segments: u8) -> (u16, u16) {
        let Congestion { cwnd, ssthresh, .. } = self.congestion;
        match cwnd {
            0 => (initial_window(smss, segments), u16::MAX),
            _ => (cwnd, ssthresh),
        }
    }

    /// The least round trip of the recent past, ms; 0: none is known.
    pub(super) const fn min_rtt_ms(&self) -> u16 {
        self.min_rtt
    }

    /// Whether a round trip without losses doubles cwnd.
    #[cfg(feature = "tcple")]
    pub(super) const fn is_slow_start(&self) -> bool {
        self.congestion.cwnd < self.congestion.ssthresh
    }

    pub(super) const fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether data are being sent again, or may have to be.
    pub(super) const fn is_recovering(&self) -> bool {
        !matches!(self.phase, Phase::Open | Phase::Reduced)
    }

    /// Whether all data in flight were sent once, no probe is out, and nothing is SACKed or deemed
    /// lost.
    pub(super) fn is_plain(&self) -> bool {
        self.phase == Phase::Open
            && self.dup_acks == 0
            && !self.has_tail_probe()
            && self.scoreboard.is_plain()
    }

    /// Whether RACK knows of nothing newer than what `una` acknowledges.
    pub(super) fn is_newest(&self, una: SeqNum) -> bool {
        !self.notes.has(Notes::RACK) || self.rack_end == una
    }

    /// Whether a tail loss probe is out.
    pub(super) const fn has_tail_probe(&self) -> bool {
        self.notes.has(Notes::TAIL_PROBED)
    }

    /// Whether the first retransmission of a recovery is to go, whatever cwnd allows.
    pub(super) const fn is_forced(&self) -> bool {
        self.notes.has(Notes::FORCE_RESEND)
    }

    /// Whether this fast recovery has sent something, new or not.
    pub(super) fn has_sent(&self) -> bool {
        self.control.prr().is_some_and(|prr| prr.sent > 0)
    }

    /// The first bytes lost and not sent again since: offset and length; 0: none.
    pub(super) fn first_due(&self) -> (u32, u16) {
        self.scoreboard.first_due()
    }

    /// Forwards to [`Scoreboard::first_doubtful`], which explains the result.
    pub(super) fn first_doubtful(&self) -> (u32, u16) {
        self.scoreboard.first_doubtful()
    }

    /// Bytes sent together last; 0: nothing is on the way.
    pub(super) fn tail_len(&self) -> u32 {
        self.scoreboard.tail_len()
    }

    /// Bytes the peer holds out of order.
    pub(super) fn sacked(&self) -> u32 {
        self.scoreboard.sacked()
    }

    /// Forwards to [`Scoreboard::fates`], which explains the result.
    pub(super) fn fates(&self) -> [u32; 3] {
        self.scoreboard.fates()
    }

    /// Bytes of `flight` that are in the network, as far as is known. `smss`: what each
    /// duplicate ACK, none of which is counted where there is SACK, stands for.
    pub(super) fn pipe(&self, flight: u32, smss: u32) -> u32 {
        let gone = self.scoreboard.gone() + u32::from(self.dup_acks) * smss;
        flight.saturating_sub(gone)
    }
}

/// `bytes`, or as many as a window without scaling can have.
#[inline(never)]
pub(super) fn saturated(bytes: u32) -> u16 {
    bytes.min(u32::from(u16::MAX)) as u16
}
