//! The choice of the next segment, and writing it.
//!
//! Place: `departure` calls [`Connection::plan`] for the segment that a connection wants to send,
//! checks that the link has room for it, and only then calls [`Connection::emit`], which writes the
//! segment and counts it as sent. A plan changes nothing. Left out: IPv6, and any queue: segments
//! are pulled.
//! Sources: RFC 9293 §3.8.6 (window, silly windows, Nagle), RFC 5681, RFC 3042, RFC 7323.

use super::RetransmissionCause as Cause;
use super::config::HAS_SACK;
use super::connection::Connection;
use super::facts::Facts;
use super::loss::Phase;
use super::segment::{Head, PlannedHeader};
use super::seq::SeqNum;
use super::state::State;
use super::timers::{Purpose, Timer};
use super::types::{Endpoints, OutgoingSegment};
use crate::wire::tcp::Flags;

/// One segment that a connection would send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    /// Offset of the first octet from SND.UNA.
    pub(super) offset: u32,
    /// Octets of data and FIN.
    pub(super) len: u16,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Reset,
    Syn,
    New,
    Again(Cause),
    Keepalive,
    Ack,
}

impl Plan {
    const fn bare(kind: Kind) -> Self {
        Self {
            offset: 0,
            len: 0,
            kind,
        }
    }

    /// Whether the peer is to acknowledge it, and it is sent again until then.
    pub(super) const fn is_insisted_on(&self) -> bool {
        matches!(self.kind, Kind::Syn | Kind::New | Kind::Again(_))
    }
}

impl Connection<'_> {
    /// The next segment this connection would send now, if any.
    // Out of line: inside its one caller, the two fight for a Cortex-M0+'s eight registers.
    #[inline(never)]
    pub(super) fn plan(&self) -> Option<Plan> {
        let facts = self.facts;
        if facts.has(Facts::RESET_DUE) {
            return Some(Plan::bare(Kind::Reset));
        }
        if facts.has(Facts::SYN_DUE) && self.is_connecting() {
            return Some(Plan::bare(Kind::Syn));
        }
        // In a simultaneous open a challenge ACK may be due.
        if matches!(self.state(), State::Closed | State::Listen | State::SynSent) {
            return None;
        }
        if self.state().transmits() {
            let plan = self
                .plan_probe()
                .or_else(|| self.plan_retransmission())
                .or_else(|| self.plan_new())
                .or_else(|| self.plan_doubtful());
            if plan.is_some() {
                return plan;
            }
        }
        if facts.has(Facts::KEEPALIVE_DUE) {
            return Some(Plan::bare(Kind::Keepalive));
        }
        facts.has(Facts::ACK_DUE).then_some(Plan::bare(Kind::Ack))
    }

    /// A tail loss probe that a timer has requested: new data if there are any, else a
    /// retransmission.
    fn plan_probe(&self) -> Option<Plan> {
        let flight = self.flight();
        if self.facts.has(Facts::PERSIST_DUE) {
            // With some window, silly-window avoidance held data back long enough.
            let room = u32::from(self.snd_wnd).saturating_sub(flight).max(1);
            let len = room.min(self.unsent()).min(self.payload_max()) as u16;
            return Some(match (flight, len) {
                (0, 0) => Plan::bare(Kind::Ack),
                (0, len) => Plan {
                    offset: 0,
                    len,
                    kind: Kind::New,
                },
                _ => Plan {
                    offset: 0,
                    len: 1,
                    kind: Kind::Again(Cause::WindowProbe),
                },
            });
        }
        if !self.facts.has(Facts::TAIL_PROBE_DUE) {
            return None;
        }
        let len = self.sendable_len();
        if len > 0 {
            return Some(Plan {
                offset: flight,
                len,
                kind: Kind::New,
            });
        }
        let len = self.loss.tail_len().min(self.payload_max());
        (len > 0).then_some(Plan {
            offset: flight - len,
            len: len as u16,
            kind: Kind::Again(Cause::TailLossProbe),
        })
    }

    /// The next segment that is deemed lost, as far as cwnd allows; the first of a recovery at
    /// once.
    fn plan_retransmission(&self) -> Option<Plan> {
        let (offset, len) = self.loss.first_due();
        if len == 0 {
            return None;
        }
        let len = self.clip(offset, len);
        if !self.loss.is_forced()
            && self.pipe() + u32::from(len) > u32::from(self.loss.cwnd())
            && self.pipe() > 0
        {
            return None;
        }
        let cause = match self.loss.phase() {
            Phase::Loss => Cause::Timeout,
            Phase::Resize => Cause::PacketTooBig,
            _ if !self.facts.has(Facts::SACK) && self.loss.has_sent() => Cause::PartialAck,
            _ if !self.facts.has(Facts::SACK) => Cause::DuplicateAcks,
            _ if self.config.finds_by_time() => Cause::Rack,
            _ => Cause::Sack,
        };
        Some(Plan {
            offset,
            len,
            kind: Kind::Again(cause),
        })
    }

    /// As much of `len` octets from `offset` on as one segment takes.
    fn clip(&self, offset: u32, len: u16) -> u16 {
        let full = self.payload_max();
        // A FIN takes no room in the packet, but only where it is the next octet.
        let fin = offset + full == u32::from(self.send.len());
        u32::from(len).min(full + u32::from(fin)) as u16
    }

    /// New data, or the FIN.
    fn plan_new(&self) -> Option<Plan> {
        match self.new_data_len() {
            0 => None,
            len => Some(Plan {
                offset: self.flight(),
                len,
                kind: Kind::New,
            }),
        }
    }

    /// RFC 6675 §4 `NextSeg` rule 3, when nothing better can be sent.
    fn plan_doubtful(&self) -> Option<Plan> {
        if !HAS_SACK || self.loss.phase() != Phase::Recovery || self.config.finds_by_time() {
            return None;
        }
        let (offset, len) = self.loss.first_doubtful();
        let len = self.clip(offset, len);
        let fits = len > 0 && self.pipe() + u32::from(len) <= u32::from(self.loss.cwnd());
        fits.then_some(Plan {
            offset,
            len,
            kind: Kind::Again(Cause::Sack),
        })
    }

    /// Octets of new data (and FIN) that may be sent now: within the peer's window and cwnd,
    /// and worth a segment.
    pub(super) fn new_data_len(&self) -> u16 {
        let len = u32::from(self.sendable_len());
        if len == 0 {
            return 0;
        }
        if self.flight() + len <= u32::from(self.loss.cwnd()) {
            // Whatever of it left the network makes more room yet.
            return len as u16;
        }
        let inflight = match self.is_recovering() || self.config.limited_transmit {
            true => self.limited_pipe(),
            false => self.flight(),
        };
        if inflight > 0 && inflight + len > u32::from(self.loss.cwnd()) {
            return 0;
        }
        len as u16
    }

    /// The pipe, with no more than two duplicate ACKs' worth taken off before recovery
    /// (RFC 3042).
    fn limited_pipe(&self) -> u32 {
        match self.is_recovering() {
            true => self.pipe(),
            false => {
                let extra = self.payload_max() * 2;
                self.pipe().max(self.flight().saturating_sub(extra))
            }
        }
    }

    /// Octets that window, segment size, Nagle and the sender's half of silly-window
    /// avoidance let go (RFC 9293 §3.8.6.2.1, §3.7.4).
    fn sendable_len(&self) -> u16 {
        let unsent = self.unsent();
        if unsent == 0 {
            return 0;
        }
        let flight = self.flight();
        let room = u32::from(self.snd_wnd).saturating_sub(flight);
        let full = self.payload_max();
        // A FIN rides along with a full last segment: it takes no room in the packet.
        let fin = u32::from(self.facts.has(Facts::FIN_QUEUED) && unsent <= full + 1);
        let len = unsent.min(full + fin).min(room);
        let is_last = len == unsent;
        let may_be_short = flight == 0 || !self.config.nagle || self.facts.has(Facts::FIN_QUEUED);
        let goes = len >= full
            || is_last && may_be_short
            || len > 0 && may_be_short && len >= u32::from(self.snd_wnd_max / 2);
        if goes { len as u16 } else { 0 }
    }

    /// Data of a full segment now: the MSS less the options it will carry, and one octet at least.
    pub(super) fn payload_max(&self) -> u32 {
        u32::from(self.smss.saturating_sub(self.options_len()).max(1))
    }

    fn options_len(&self) -> u16 {
        // With SACK blocks, the worst case: segments of one flight stay equally long.
        let sack = match self.sack_is_due() {
            true => 4 + 8 * self.sack_places() as u16,
            false => 0,
        };
        self.timestamps_len() + sack
    }

    /// Octets that timestamps take of each segment, either way (RFC 7323 appendix A).
    fn timestamps_len(&self) -> u16 {
        match self.facts.has(Facts::TIMESTAMPS) {
            true => 12,
            false => 0,
        }
    }

    /// Whether ranges wait to be reported by SACK.
    fn sack_is_due(&self) -> bool {
        self.facts.has(Facts::SACK)
            && !self.facts.has(Facts::RESET_DUE)
            && (self.recv.has_gaps() || self.facts.has(Facts::DSACK_DUE))
    }

    /// SACK blocks that fit behind the other options.
    fn sack_places(&self) -> usize {
        if self.facts.has(Facts::TIMESTAMPS) {
            3
        } else {
            4
        }
    }

    /// Writes the planned segment to `out`, checksum and all, and counts it sent. `None` when
    /// `out` is too short. `payload_max`: as for
    /// [`poll_segment_within`](super::Tcp::poll_segment_within).
    pub(super) fn emit(
        &mut self,
        mut plan: Plan,
        payload_max: &mut impl FnMut(&Endpoints, &PlannedHeader<'_>) -> u16,
        out: &mut [u8],
    ) -> Option<OutgoingSegment> {
        let sends_data = matches!(plan.kind, Kind::New | Kind::Again(_));
        let seq = match plan.kind {
            // A peer that refuses a window probe also refuses a segment with a sequence number
            // after it, and with that its acknowledgment (RFC 9293 §3.10.7.4): with both windows
            // shut neither end would make progress.
            Kind::Reset | Kind::Ack if self.facts.has(Facts::WINDOW_PROBED) => self.snd_una,
            Kind::Reset | Kind::Ack => self.snd_nxt,
            Kind::Keepalive => self.snd_una.minus(1),
            _ => self.snd_una.plus(plan.offset),
        };
        let is_first_syn = self.state() == State::SynSent;
        let ack = if is_first_syn {
            SeqNum::new(0)
        } else {
            self.rcv_nxt
        };
        let mut head = Head::new(&self.ends, seq, ack);
        let mut flags = Flags::ACK;
        let mut window = 0;
        let mut data = 0;
        if plan.kind == Kind::Reset {
            flags = Flags::RST | Flags::ACK;
        } else {
            window = self.window_to_announce();
        }
        if plan.kind == Kind::Syn {
            flags = self.fill_syn(&mut head);
        } else {
            // A reset bears the timestamps too (RFC 7323 §3.2).
            self.fill_options(&mut head);
            if self.facts.has(Facts::ECHO_CE) && plan.kind != Kind::Reset {
                flags = flags | Flags::ECE;
            }
        }
        if plan.kind == Kind::New {
            let header = head.planned((flags, window), plan.len, self.config.mss_frames);
            let most = payload_max(&self.ends, &header);
            // A FIN takes no room in the packet.
            let end = plan.offset + u32::from(plan.len);
            let fin = u16::from(end > u32::from(self.send.len()));
            if plan.len - fin > most {
                plan.len = most;
            }
        }
        if sends_data {
            flags = flags | self.data_flags(plan);
            data = plan.len - u16::from(flags.contains(Flags::FIN));
        }
        let payload = Some((&self.send, plan.offset as u16));
        let len = head.finish(&self.ends, (flags, window), payload, data, out)?;
        let (is_ect, cause) = (self.is_ect(plan), self.cause(plan));
        self.account(plan, flags, window);
        #[cfg(feature = "tcple")]
        self.count_prefetched(plan);
        Some(OutgoingSegment {
            src: self.ends.local,
            dst: self.ends.remote,
            zone: self.ends.zone,
            ecn: if is_ect { ECN_ECT0 } else { 0 },
            dscp: self.config.dscp,
            len,
            cause,
        })
    }

    /// Why the planned segment is sent again, if it is.
    fn cause(&self, plan: Plan) -> Option<Cause> {
        match plan.kind {
            Kind::Again(cause) => Some(cause),
            Kind::Syn if self.retries > 0 => Some(Cause::Handshake),
            _ => None,
        }
    }

    /// Whether the planned segment may carry ECT: only data sent for the first time
    /// (RFC 3168 §6.1.1 to §6.1.5).
    fn is_ect(&self, plan: Plan) -> bool {
        plan.kind == Kind::New && self.facts.has(Facts::ECN) && !self.facts.has(Facts::PERSIST_DUE)
    }

    /// Options and flags of a SYN, or of the SYN-ACK of a simultaneous open: what we offer,
    /// or agree upon, is noted in the facts.
    fn fill_syn(&self, head: &mut Head) -> Flags {
        let facts = self.facts;
        let clock = self.now_ms.wrapping_add(self.ts_offset);
        head.push_syn_options(self.rmss, facts, (clock, self.ts_recent));
        match self.state() {
            State::SynReceived => Flags::SYN | Flags::ACK,
            // A SYN sent again asks for no ECN: a middlebox may have dropped it for that
            // (RFC 3168 §6.1.1.1).
            _ if facts.has(Facts::ECN) && self.retries == 0 => Flags::SYN | Flags::ECE | Flags::CWR,
            _ => Flags::SYN,
        }
    }

    pub(super) fn data_flags(&self, plan: Plan) -> Flags {
        let mut flags = Flags::EMPTY;
        let end = plan.offset + u32::from(plan.len);
        let held = u32::from(self.send.len());
        if end > held {
            flags = Flags::FIN;
        }
        if end >= held && plan.offset < held {
            // Nothing more to hand over right now: the peer's application should look.
            flags = flags | Flags::PSH;
        }
        let cwr = Facts::CWR_DUE | Facts::ECN;
        if plan.kind == Kind::New && self.facts.has_all(cwr) {
            flags = flags | Flags::CWR;
        }
        flags
    }

    pub(super) fn fill_options(&self, head: &mut Head) {
        if self.facts.has(Facts::TIMESTAMPS) {
            head.push_padded_timestamps((self.now_ms.wrapping_add(self.ts_offset), self.ts_recent));
        }
        if self.sack_is_due() {
            self.fill_sack(head);
        }
    }

    /// SACK blocks: the duplicate to report, if any; then the range that grew last; then the
    /// others, those reported last first (RFC 2018 §4, RFC 2883 §4).
    fn fill_sack(&self, head: &mut Head) {
        let mut blocks = 0;
        if self.facts.has(Facts::DSACK_DUE) {
            let right = self.dsack_at.plus(u32::from(self.dsack_len));
            head.push_sack(self.dsack_at, right);
            blocks = 1;
        }
        let mut key = 0;
        while blocks < self.sack_places() {
            let (found, (start, end)) = self.recv.next_by_age(self.sack_count, key);
            if end == 0 {
                return;
            }
            head.push_sack(self.rcv_nxt.plus(start), self.rcv_nxt.plus(end));
            blocks += 1;
            key = found + 1;
        }
    }

    /// SEG.WND. Its right edge never moves back, and moves on only by at least a segment or half of
    /// the buffer: the receiver's part of silly window avoidance (RFC 9293 §3.8.6.2.2).
    ///
    /// The ACK of a segment that fills a gap announces the old window. After it, and while each
    /// segment is acknowledged after a gap or a duplicate, the window grows in steps of a quarter
    /// of the buffer, or of one segment if a quarter is less than two segments. Each step is a
    /// window update (RFC 5681 §4.2): the peer often waits only for that ACK, and one of several
    /// updates gets through.
    fn window_to_announce(&self) -> u16 {
        let window = self.recv.window();
        if !self.is_gain(window) || self.facts.has(Facts::GAP_FILLED) {
            return self.rcv_wnd.min(window);
        }
        if self.quick_acks == 0 {
            return window;
        }
        let (segment, quarter) = (self.peer_segment(), self.recv.capacity() / 4);
        let step = if quarter / 2 < segment {
            segment
        } else {
            quarter
        };
        self.rcv_wnd.saturating_add(step).min(window)
    }

    /// Whether `window` is worth an announcement, after the last one announced.
    fn is_gain(&self, window: u16) -> bool {
        window.saturating_sub(self.rcv_wnd) >= self.gain_min()
    }

    /// The least gain of the window that is worth telling: a full segment or half the buffer.
    pub(super) fn gain_min(&self) -> u16 {
        let half = self.recv.capacity() / 2;
        self.peer_segment().min(half).max(1)
    }

    /// Data of the peer's full segments: the MSS less the timestamps in them. A buffer is often
    /// a whole number of those.
    fn peer_segment(&self) -> u16 {
        self.rmss.saturating_sub(self.timestamps_len())
    }

    /// Updates the connection's state for a segment that was sent.
    fn account(&mut self, plan: Plan, flags: Flags, window: u16) {
        self.rcv_wnd = window;
        if flags.contains(Flags::ACK) {
            #[cfg(feature = "linux-acks")]
            self.linux_acks
                .on_ack_sent(plan.len > 0, self.unacked > 0, self.now_ms);
            self.unacked = 0;
            self.ack_count = 0;
            self.timers.disarm(Timer::Ack);
            self.facts.clear(Facts::ACK_DUE | Facts::DSACK_DUE);
            let is_filled = self.facts.take(Facts::GAP_FILLED);
            let is_urgent = is_filled || self.quick_acks > 0;
            if is_urgent && self.state().may_receive() && self.is_gain(self.recv.window()) {
                // The application has read what the gap held back.
                self.facts.set(Facts::ACK_DUE);
            }
        }
        match plan.kind {
            Kind::Reset => self.facts.clear(Facts::RESET_DUE | Facts::ACK_DUE),
            Kind::Syn => {
                self.facts.clear(Facts::SYN_DUE);
                if self.timers.purpose().is_none() {
                    self.arm_timeout(Purpose::Retransmit);
                }
            }
            Kind::Keepalive => self.facts.clear(Facts::KEEPALIVE_DUE),
            Kind::Ack => self.facts.clear(Facts::PERSIST_DUE),
            Kind::New => self.account_new(plan),
            Kind::Again(cause) => self.account_again(plan, cause),
        }
        let sends_data = matches!(plan.kind, Kind::New | Kind::Again(_));
        if sends_data {
            self.loss.count_out(plan.len);
        }
    }

    fn account_new(&mut self, plan: Plan) {
        let was_empty = self.flight() == 0;
        if was_empty {
            let idle = self.since_progress_ms();
            self.loss.on_idle_over();
            if idle > self.rtt.rto_ms(self.config) && self.config.congestion_control {
                let segments = self.config.initial_window;
                self.loss.restart(self.payload_max(), segments);
            }
            if !self.facts.has(Facts::PERSIST_DUE) {
                self.note_progress();
                // The count so far was of unanswered keepalives.
                self.retries = 0;
            }
        }
        self.loss.on_sent(plan.len, self.now_ms);
        self.snd_nxt = self.snd_nxt.plus(u32::from(plan.len));
        self.facts.clear(Facts::CWR_DUE | Facts::WINDOW_PROBED);
        if self.facts.take(Facts::PERSIST_DUE) {
            self.facts.put(Facts::WINDOW_PROBED, self.snd_wnd == 0);
            if self.snd_wnd > 0 {
                self.arm_timeout(Purpose::Retransmit);
            }
            return;
        }
        if self.facts.take(Facts::TAIL_PROBE_DUE) {
            self.loss.on_tail_probe(self.snd_nxt, false);
            return;
        }
        if was_empty || matches!(self.timers.purpose(), None | Some(Purpose::TailLossProbe)) {
            self.arm_loss_timer();
        }
    }

    fn account_again(&mut self, plan: Plan, cause: Cause) {
        let is_probe = matches!(cause, Cause::WindowProbe | Cause::TailLossProbe);
        self.loss.on_resent(plan.offset, plan.len, self.now_ms);
        if !is_probe {
            let clock = self.now_ms.wrapping_add(self.ts_offset);
            let clock = self.facts.has(Facts::TIMESTAMPS).then_some(clock);
            self.loss.on_repaired(plan.len, clock);
        }
        match cause {
            Cause::WindowProbe => return self.facts.clear(Facts::PERSIST_DUE),
            Cause::TailLossProbe => {
                self.facts.clear(Facts::TAIL_PROBE_DUE);
                return self.loss.on_tail_probe(self.snd_nxt, true);
            }
            _ => {}
        }
        if self.timers.purpose().is_none() {
            self.arm_timeout(Purpose::Retransmit);
        }
    }
}

/// ECN-capable transport, codepoint 0, in the ECN field (RFC 3168 §5).
const ECN_ECT0: u8 = 2;
