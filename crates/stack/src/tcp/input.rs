//! Segment arrival, checks in the order of RFC 9293 §3.10.7.
//!
//! Place: `arrival` has verified the checksum, parsed the header and found the connection. Each
//! step is a named function; the first one that returns a `SegmentDrop` ends the processing. Left
//! out: the effects of acknowledgments ([`super::ack`]); LISTEN and the half-open
//! ([`super::listener`]); the third check (security) and the sixth (urgent data, which we deliver
//! in line: RFC 9293 §3.8.5 requires the urgent pointer, but no known peer of a mote uses it, and
//! RFC 6093 advises applications against it).
//! Sources: RFC 9293 §3.10.7.3 and .4, RFC 5961, RFC 7323 §5, RFC 3168, RFC 2883.

use super::SegmentDrop;
use super::config::{HAS_ECN, HAS_PREDICTION, HAS_SACK};
use super::connection::Connection;
use super::facts::Facts;
#[cfg(feature = "linux-acks")]
use super::linux_acks::{Circumstances, Verdict};
use super::loss::{NONE, saturated};
use super::segment::Segment;
use super::seq::SeqNum;
use super::state::State;
use super::timers::Timer;
use super::types::Error;
use crate::wire::tcp::Flags;
#[cfg(feature = "sleepy")]
use crate::wire::tcp::TIMESTAMPS_LEN;

impl Connection<'_> {
    /// A segment for this connection; whether it was predicted. An error is the reason why it (or
    /// the rest of it) was dropped; after [`SegmentDrop::UnacceptableAck`] the caller sends a
    /// reset.
    pub(super) fn on_segment(&mut self, seg: &mut Segment<'_>) -> Result<bool, SegmentDrop> {
        #[cfg(feature = "sleepy")]
        self.facts.clear(Facts::HAS_CONNECTED);
        match self.state() {
            State::Closed | State::Listen => Err(SegmentDrop::NoConnection),
            State::SynSent => self.arrive_in_syn_sent(seg).map(|()| false),
            _ if HAS_PREDICTION && self.config.header_prediction && self.is_predicted(seg) => {
                self.take_predicted(seg);
                Ok(true)
            }
            _ => self.arrive(seg).map(|()| false),
        }
    }

    // ---- RFC 9293 §3.10.7.4: other states ----

    fn arrive(&mut self, seg: &mut Segment<'_>) -> Result<(), SegmentDrop> {
        if self.state() == State::SynReceived && seg.seq.plus(1) == self.rcv_nxt {
            self.hear_syn_again(seg);
        }
        let opens = self.state() == State::SynReceived;
        // Judged before anything is cut off the segment, taken when its ACK is as good as it.
        let is_latest = self.reaches_last_ack(seg);
        self.check_segment(seg)?;
        self.check_ack(seg)?;
        if is_latest {
            self.note_timestamp(seg);
        }
        self.put_off_keepalive();
        self.note_congestion_marks(seg);
        self.accept_text(seg)?;
        if opens {
            // Text that came with the SYN of a simultaneous open (RFC 9293 §3.10.7.3).
            let grown = self.recv.insert(0, &[]);
            self.receive(grown);
            if grown > 0 {
                self.delay_ack(grown as usize);
            }
        }
        self.accept_fin();
        Ok(())
    }

    /// A segment that starts with the SYN of a simultaneous open, which is known.
    fn hear_syn_again(&mut self, seg: &mut Segment<'_>) {
        if !seg.has(Flags::SYN) {
            return;
        }
        // What one SYN of the peer's did not offer, the peer may not use.
        self.facts.keep_offered(&seg.header().options, seg.mss);
        if self.timestamp_ahead(seg).is_some_and(|ahead| ahead >= 0) {
            self.note_timestamp(seg);
        }
        // With an ACK it answers ours; without, it lies before the window.
        if seg.has(Flags::ACK) {
            seg.strip_syn();
        }
    }

    /// Checks one to four: the timestamp is not old (PAWS), part of the segment is in the window,
    /// and it is neither RST nor SYN. Trims the part before the window.
    fn check_segment(&mut self, seg: &mut Segment<'_>) -> Result<(), SegmentDrop> {
        if !seg.has(Flags::RST) {
            self.check_timestamps(seg)?;
        }
        match seg.check(self.rcv_nxt, self.recv.window()) {
            Ok(()) => {}
            Err(SegmentDrop::OutsideWindow) => return Err(self.answer_unacceptable(seg)),
            Err(reason) => {
                match reason {
                    SegmentDrop::ConnectionReset => self.on_reset(),
                    SegmentDrop::NoAck => {}
                    // An RST whose number is not RCV.NXT, or a SYN: its data are not accepted (RFC
                    // 5961 §3, §4).
                    _ => self.challenge(),
                }
                return Err(reason);
            }
        }
        let known = self.rcv_nxt.offset_from(seg.seq);
        if known > 0 {
            self.trim_front(seg, known.unsigned_abs());
        }
        Ok(())
    }

    /// Whether `seg` covers what was acknowledged last: its timestamp is the one to echo
    /// (RFC 7323 §4.3).
    fn reaches_last_ack(&self, seg: &Segment<'_>) -> bool {
        let last_ack_sent = self.rcv_nxt.minus(u32::from(self.unacked));
        !seg.seq.after(last_ack_sent) && seg.seq.plus(seg.seq_len()).after(last_ack_sent.minus(1))
    }

    /// Sets TS.Recent. Only once the ACK proved that the segment is the peer's: else one
    /// from anybody, with a timestamp far ahead, would shut the peer out for days.
    fn note_timestamp(&mut self, seg: &Segment<'_>) {
        if let (true, Some((value, _))) = (self.facts.has(Facts::TIMESTAMPS), seg.timestamps()) {
            self.ts_recent = value;
            self.ts_recent_at = self.now_ms;
            self.facts.clear(Facts::TS_OUTDATED);
        }
    }

    /// How far TSval of `seg` lies ahead of TS.Recent; `None`: there should be one.
    fn timestamp_ahead(&self, seg: &Segment<'_>) -> Option<i32> {
        if !self.facts.has(Facts::TIMESTAMPS) {
            return Some(0);
        }
        let (value, _) = seg.timestamps()?;
        Some(value.wrapping_sub(self.ts_recent) as i32)
    }

    /// PAWS (RFC 7323 §5.3). A SYN need not bear a timestamp: a peer that has started anew may
    /// not offer them, and is to be challenged (RFC 5961 §4).
    fn check_timestamps(&mut self, seg: &Segment<'_>) -> Result<(), SegmentDrop> {
        let ahead = self.timestamp_ahead(seg);
        if ahead.is_none() && !seg.has(Flags::SYN) {
            return Err(SegmentDrop::NoTimestamp);
        }
        if ahead.is_none_or(|ahead| ahead >= 0) || self.facts.has(Facts::TS_OUTDATED) {
            return Ok(());
        }
        match seg.seq_len() {
            // Two ends that disagree must not answer each other for ever.
            0 => self.challenge(),
            _ => self.facts.set(Facts::ACK_DUE),
        }
        Err(SegmentDrop::OldTimestamp)
    }

    /// No part of the segment is in the window: an ACK informs the peer of RCV.NXT, unless the
    /// segment is an RST.
    fn answer_unacceptable(&mut self, seg: &Segment<'_>) -> SegmentDrop {
        if seg.has(Flags::RST) {
            return SegmentDrop::OutsideWindow;
        }
        if seg.payload.is_empty() && !seg.has(Flags::FIN) {
            // Both ends probed a shut window at the same time, and both probes were accepted, which
            // neither end knows: the peer's ACKs have the sequence number before its probe. Such an
            // ACK is processed; otherwise each end would refuse the other's for ever
            // (draft-gont-tcpm-tcp-seq-validation).
            if self.facts.has(Facts::WINDOW_PROBED)
                && seg.has(Flags::ACK)
                && seg.seq.plus(1) == self.rcv_nxt
            {
                let _ = self.accept_ack(seg);
            }
            self.challenge();
            return SegmentDrop::OutsideWindow;
        }
        if seg.seq.before(self.rcv_nxt) {
            // Before a shut window, part of it may be new: that is not kept.
            let known = self.rcv_nxt.since(seg.seq);
            self.note_duplicate(seg.seq, seg.seq_len().min(known));
            if !self.config.linux_acks() {
                self.quick_acks = self.config.quick_acks;
            }
            #[cfg(feature = "linux-acks")]
            self.linux_acks.on_duplicate(self.rcv_wnd);
            // Our ACK was lost, and perhaps also an earlier ACK of the peer. A peer retransmits at
            // most one window; a segment from farther back may be forged.
            if known <= u32::from(self.recv.capacity()) && self.is_plausible_ack(seg) {
                // If our ACK echoed an older timestamp, the peer would measure a round trip as long
                // as its timeout; RFC 7323 §4.3 requires SEG.SEQ <= Last.ACK.sent only.
                self.note_timestamp(seg);
                // Differs from RFC 9293 §3.10.7.4, which drops the whole segment: a new
                // acknowledgment is processed, as in BSD; otherwise data that have arrived are
                // retransmitted.
                if self.state().transmits() && seg.ack().after(self.snd_una) {
                    let _ = self.accept_ack(seg);
                }
            }
        }
        self.facts.set(Facts::ACK_DUE);
        if self.state() == State::TimeWait && seg.has(Flags::FIN) {
            self.enter_time_wait();
        }
        SegmentDrop::OutsideWindow
    }

    /// Whether the ACK is in the range that RFC 5961 §5.2 accepts.
    fn is_plausible_ack(&self, seg: &Segment<'_>) -> bool {
        let oldest = self.snd_una.minus(u32::from(self.snd_wnd_max));
        seg.has(Flags::ACK) && !seg.ack().after(self.snd_nxt) && !seg.ack().before(oldest)
    }

    /// Cuts `count` octets that we have; they count as a duplicate (RFC 2883 §4.1).
    fn trim_front(&mut self, seg: &mut Segment<'_>, count: u32) {
        self.note_duplicate(seg.seq, count);
        seg.is_known = true;
        seg.strip_front(count);
    }

    fn note_duplicate(&mut self, at: SeqNum, len: u32) {
        if self.config.dsack && self.facts.has(Facts::SACK) && len > 0 {
            self.facts.set(Facts::DSACK_DUE | Facts::ACK_DUE);
            self.dsack_at = at;
            self.dsack_len = len.min(u32::from(u16::MAX)) as u16;
        }
    }

    /// Ends the connection: a reset came whose SEG.SEQ is RCV.NXT.
    fn on_reset(&mut self) {
        let error = match self.state() {
            State::SynReceived => Some(Error::Refused),
            State::Closing | State::LastAck | State::TimeWait => None,
            _ => Some(Error::Reset),
        };
        self.end(error);
    }

    /// Fifth: the acknowledgment. SYN-RECEIVED ends here.
    fn check_ack(&mut self, seg: &Segment<'_>) -> Result<(), SegmentDrop> {
        if self.state() == State::SynReceived {
            if seg.ack() != self.snd_nxt {
                return Err(SegmentDrop::UnacceptableAck);
            }
            self.establish(seg);
        }
        self.accept_ack(seg)
    }

    /// Begins to echo a congestion mark (CE), at once, until the peer sends CWR (RFC 3168 §6.1.3).
    fn note_congestion_marks(&mut self, seg: &Segment<'_>) {
        if !self.facts.has(Facts::ECN) {
            return;
        }
        if seg.has(Flags::CWR) {
            self.facts.clear(Facts::ECHO_CE);
        }
        if !seg.is_ce {
            return;
        }
        self.marked_acks = MARKED_ACKS;
        if !self.facts.has(Facts::ECHO_CE) {
            self.facts.set(Facts::ECHO_CE | Facts::ACK_DUE);
        }
    }

    /// Seventh: text goes into the receive ring, in order or not.
    fn accept_text(&mut self, seg: &mut Segment<'_>) -> Result<(), SegmentDrop> {
        if !self.state().may_receive() {
            // CLOSE-WAIT and later: the peer has sent its FIN; whatever this is, ignore it.
            if seg.has(Flags::FIN) || !seg.payload.is_empty() {
                self.facts.set(Facts::ACK_DUE);
            }
            return Ok(());
        }
        if self.facts.has(Facts::READ_CLOSED) && !seg.payload.is_empty() {
            self.end_with_reset(Error::Aborted);
            return Err(SegmentDrop::DataAfterClose);
        }
        let gap = seg.seq.since(self.rcv_nxt);
        if seg.has(Flags::FIN) && !self.facts.has(Facts::FIN_SEEN) {
            let fin = seg.seq.plus(seg.payload.len() as u32);
            let offset = gap + seg.payload.len() as u32;
            if offset <= u32::from(self.recv.window()) {
                self.facts.set(Facts::FIN_SEEN);
                self.rcv_fin = fin;
            }
            self.facts.set(Facts::ACK_DUE);
        }
        if seg.payload.is_empty() {
            return Ok(());
        }
        #[cfg(feature = "sleepy")]
        self.note_stream(seg);
        #[cfg(feature = "linux-acks")]
        self.linux_acks.note_end(seg.has(Flags::PSH));
        let mut data = seg.payload;
        if self.facts.has(Facts::FIN_SEEN) {
            // Nothing may follow the FIN.
            let most = self.rcv_fin.offset_from(seg.seq).max(0) as usize;
            data = data.get(..most).unwrap_or(data);
        }
        let gap = gap.min(u32::from(u16::MAX));
        if HAS_SACK && !seg.is_known {
            // RFC 2883 §4.2: of several parts held already, the first is reported.
            let (held, to) = self.recv.next_range(gap);
            let to = to.min(gap + data.len() as u32);
            self.note_duplicate(self.rcv_nxt.plus(held), to.saturating_sub(held));
        }
        self.store(gap, data);
        Ok(())
    }

    /// Notes whether the peer probably has more to send, by the length and the PSH flag of a data
    /// segment.
    #[cfg(feature = "sleepy")]
    fn note_stream(&mut self, seg: &Segment<'_>) {
        let is_full = seg.payload.len() + TIMESTAMPS_LEN >= usize::from(self.rmss);
        self.facts
            .put(Facts::STREAMS, is_full || !seg.has(Flags::PSH));
        // Without timestamps this field is free, and holds the time of the peer's last segment.
        if !self.facts.has(Facts::TIMESTAMPS) {
            self.ts_recent_at = self.now_ms;
        }
    }

    /// Stores text `gap` octets behind RCV.NXT and decides when to acknowledge it.
    fn store(&mut self, gap: u32, data: &[u8]) {
        let had_gaps = self.recv.has_gaps();
        let grown = self.recv.insert(gap, data);
        self.receive(grown);
        if HAS_SACK && gap > 0 {
            self.sack_count = self.sack_count.wrapping_add(1);
            self.recv.note_latest(gap, self.sack_count);
        }
        let all = grown as usize >= data.len();
        if had_gaps || !all {
            // RFC 5681 §4.2: a gap, or part of one filled, is reported at once.
            self.facts.set(Facts::ACK_DUE);
            if !self.config.linux_acks() {
                self.facts.put(Facts::GAP_FILLED, grown > 0);
                self.quick_acks = self.config.quick_acks;
            }
        } else {
            self.delay_ack(data.len());
        }
    }

    /// RCV.NXT moves on by `grown` octets of text.
    fn receive(&mut self, grown: u32) {
        self.rcv_nxt = self.rcv_nxt.plus(grown);
        self.rcv_wnd = self.rcv_wnd.saturating_sub(grown as u16);
        self.unacked = saturated(u32::from(self.unacked) + grown);
    }

    /// The delayed ACK (RFC 9293 §3.8.6.3).
    fn delay_ack(&mut self, len: usize) {
        #[cfg(feature = "linux-acks")]
        if self.config.linux_acks {
            return self.delay_ack_as_linux(len);
        }
        self.ack_count = self.ack_count.saturating_add(u8::from(len > 0));
        let is_quick = self.quick_acks > 0;
        self.quick_acks -= u8::from(is_quick);
        let mut every = self.config.ack_every;
        if HAS_ECN && self.marked_acks > 0 {
            every = every.min(2);
            self.marked_acks -= 1;
        }
        if is_quick || self.ack_count >= every || self.config.ack_delay_ms == 0 {
            self.facts.set(Facts::ACK_DUE);
        } else if !self.timers.is_armed(Timer::Ack) {
            self.arm(Timer::Ack, u32::from(self.config.ack_delay_ms));
        }
    }

    /// The delayed ACK of Linux.
    #[cfg(feature = "linux-acks")]
    fn delay_ack_as_linux(&mut self, len: usize) {
        let at = Circumstances {
            now_ms: self.now_ms,
            rto_ms: self.rtt.rto_ms(self.config),
            srtt_ms: self.rtt.srtt_ms(),
            unacked: self.unacked,
            window: self.rcv_wnd,
            segment: saturated(self.payload_max()),
        };
        let len = len.min(usize::from(u16::MAX)) as u16;
        match self.linux_acks.on_text(len, at) {
            Verdict::Now => self.facts.set(Facts::ACK_DUE),
            Verdict::Wait(ms) => self.wait_for_company(ms),
        }
    }

    /// Lets the ACK wait for `ms`, or as long as it waits already if that is less; one that has
    /// waited nearly long enough goes at once.
    #[cfg(feature = "linux-acks")]
    fn wait_for_company(&mut self, ms: u32) {
        let left = self.left_ms(Timer::Ack);
        match left {
            Some(left) if left <= ms / 4 => self.facts.set(Facts::ACK_DUE),
            Some(left) if left <= ms => {}
            _ => self.arm(Timer::Ack, ms),
        }
    }

    /// Eighth: the FIN, once everything before it is here.
    fn accept_fin(&mut self) {
        if !self.facts.has(Facts::FIN_SEEN)
            || self.rcv_fin != self.rcv_nxt
            || !self.state().may_receive()
        {
            return;
        }
        self.rcv_nxt = self.rcv_nxt.plus(1);
        self.facts.set(Facts::ACK_DUE);
        match self.state() {
            State::Established => self.set_state(State::CloseWait),
            State::FinWait1 => {
                self.set_state(State::Closing);
                self.bound_end();
            }
            State::FinWait2 => self.enter_time_wait(),
            _ => {}
        }
    }

    // ---- RFC 9293 §3.10.7.3: SYN-SENT ----

    fn arrive_in_syn_sent(&mut self, seg: &mut Segment<'_>) -> Result<(), SegmentDrop> {
        let acknowledges = seg.has(Flags::ACK);
        let is_ours = acknowledges && seg.ack() == self.snd_nxt;
        if seg.has(Flags::RST) {
            if !is_ours {
                return Err(SegmentDrop::InexactReset);
            }
            self.end(Some(Error::Refused));
            return Err(SegmentDrop::ConnectionReset);
        }
        if acknowledges && !is_ours {
            return Err(SegmentDrop::UnacceptableAck);
        }
        if !seg.has(Flags::SYN) {
            return Err(SegmentDrop::NoSyn);
        }
        self.rcv_nxt = seg.seq.plus(1);
        self.take_syn_options(seg);
        let ecn = Flags::ECE | Flags::CWR;
        // In a simultaneous open neither side sends ECE alone, so there is no ECN.
        let agreed = self.facts.has(Facts::ECN)
            && acknowledges
            && self.retries == 0
            && seg.flags.bits() & ecn.bits() == Flags::ECE.bits();
        self.facts.put(Facts::ECN, agreed);
        // In a SYN those flags negotiate; they echo no congestion (RFC 3168 §6.1.1).
        seg.flags = seg.flags.without(ecn);
        seg.strip_syn();
        if !acknowledges {
            // Its text waits until the connection is established; its FIN comes again.
            self.recv.keep(0, seg.payload);
            self.set_state(State::SynReceived);
            self.facts.set(Facts::SYN_DUE);
            return Ok(());
        }
        self.establish(seg);
        self.facts.set(Facts::ACK_DUE);
        self.accept_ack(seg)?;
        self.accept_text(seg)?;
        self.accept_fin();
        Ok(())
    }

    /// Takes the peer's MSS, as far as settings and link allow, and what both sides offered.
    fn take_syn_options(&mut self, syn: &Segment<'_>) {
        self.smss = syn.mss.min(self.smss);
        // So far the facts were those that our SYN offered; keep those that the peer's SYN offers,
        // too.
        self.facts.keep_offered(&syn.header().options, self.smss);
        self.note_timestamp(syn);
    }

    /// Our SYN is acknowledged by `seg`: data may flow.
    fn establish(&mut self, seg: &Segment<'_>) {
        self.snd_una = self.snd_nxt;
        self.timers.disarm(Timer::Transmit);
        self.facts.clear(Facts::SYN_DUE);
        let rtt = self.echo_age(seg);
        if rtt != NONE {
            // The echoed timestamp shows which SYN was answered, so the RTO of 3 s after a
            // retransmitted SYN (RFC 6298 §5.7) is not needed.
            self.rtt.sample_handshake(rtt);
        } else if self.retries > 0 {
            self.rtt.distrust();
        } else {
            self.rtt.sample_handshake(self.since_progress_ms());
        }
        self.retries = 0;
        self.begin(seg.seq, seg.window());
    }

    /// Data may flow: the handshake is done.
    ///
    /// `wl1`, `window`: number and window of the peer's segment that says so.
    pub(super) fn begin(&mut self, wl1: SeqNum, window: u16) {
        self.snd_wl1 = wl1;
        self.snd_wnd = window;
        self.snd_wnd_max = window;
        let segments = self.config.initial_window;
        self.loss.begin(self.payload_max(), segments);
        self.note_progress();
        self.set_state(State::Established);
        if self.facts.has(Facts::FIN_QUEUED) {
            self.set_state(State::FinWait1);
        }
        self.put_off_keepalive();
        self.bound_end();
    }

    // ---- header prediction ----

    /// A segment of a bulk transfer in one direction: nothing but the next data, or nothing
    /// but an acknowledgment of data sent, and nothing out of the ordinary on our side.
    /// Whatever this accepts, [`Self::take_predicted`] treats as the checks in full would.
    fn is_predicted(&self, seg: &Segment<'_>) -> bool {
        const RARE: u32 = Facts::FIN_SEEN | Facts::READ_CLOSED | Facts::WINDOW_PROBED;
        let control = seg.flags.without(Flags::PSH).bits();
        self.state() == State::Established
            && control == Flags::ACK.bits()
            && !seg.is_ce
            && seg.seq == self.rcv_nxt
            && seg.window() > 0
            && self.snd_wnd > 0
            && self.timestamp_ahead(seg).is_some_and(|ahead| ahead >= 0)
            && seg.sack_blocks().is_empty()
            && !self.facts.has(RARE)
            && self.loss.is_plain()
            && if seg.payload.is_empty() {
                seg.ack().after(self.snd_una) && !seg.ack().after(self.snd_nxt)
            } else {
                seg.ack() == self.snd_una
                    && self.flight() == 0
                    && self.unsent() == 0
                    && !self.recv.has_gaps()
                    && seg.payload.len() <= usize::from(self.recv.window())
            }
    }

    /// Does what [`Self::arrive`] does to a predicted segment, without its tests.
    fn take_predicted(&mut self, seg: &Segment<'_>) {
        if self.reaches_last_ack(seg) {
            self.note_timestamp(seg);
        }
        self.update_window(seg, seg.ack().since(self.snd_una));
        self.put_off_keepalive();
        if seg.payload.is_empty() {
            self.take_predicted_ack(seg);
        } else {
            self.retries_answered();
            #[cfg(feature = "sleepy")]
            self.note_stream(seg);
            #[cfg(feature = "linux-acks")]
            self.linux_acks.note_end(seg.has(Flags::PSH));
            self.store(0, seg.payload);
        }
    }

    // ---- shared ----

    /// A challenge ACK, at most one per [`Config::challenge_interval_ms`] (RFC 5961 §3 to §5, §7);
    /// the limit is per connection, so that an attacker cannot learn about one connection by a
    /// flood on another.
    ///
    /// [`Config::challenge_interval_ms`]: super::Config::challenge_interval_ms
    pub(super) fn challenge(&mut self) {
        let since = self.now_ms.wrapping_sub(self.challenge_at);
        let interval = u32::from(self.config.challenge_interval_ms);
        if since < interval {
            return;
        }
        self.facts.set(Facts::ACK_DUE);
        self.challenge_at = self.now_ms;
    }
}

/// Segments after a congestion mark of which at least every second is acknowledged (RFC 5681 §4.2),
/// however few ACKs the configuration asks for: their sender has just halved its window, and with
/// `ack_every` above 2 would often wait for the delayed ACK. Found by `combined-pacing`, with two
/// flows.
const MARKED_ACKS: u8 = 8;
