//! One connection: owns all that belongs to it; the only writer of its [`State`].
//!
//! Place: a slot of [`Tcp`](super::Tcp) holds it; `input`, `ack` and `output` are its halves
//! towards the network, this file the one towards the application and the clock.
//! Left out: finding the connection of a segment, listening (`arrival`).
//!
//! The layout is kept small on purpose: windows are not scaled, so lengths take 16 bits;
//! times are milliseconds modulo 2^32; SND.WL2 is missing because an ACK below SND.UNA never
//! updates the window, so `SND.WL2 ≤ SEG.ACK` holds whenever it would be asked.

use core::net::Ipv6Addr;

use super::config::Config;
use super::congestion::Congestion;
use super::facts::{Facts, Phase, Recovery};
use super::listener::{Agreed, HalfOpen};
use super::reassembly::RecvBuffer;
use super::recovery::Scoreboard;
use super::rtt::RttEstimator;
use super::segment::Segment;
use super::send_buffer::SendBuffer;
use super::seq::SeqNum;
use super::state::State;
use super::timers::{Purpose, Timers};
use super::types::{IcmpError, RecvError, SendError};
use crate::limits::IPV6_MTU_MIN;
use crate::planted::{Bug, planted};

/// The two ends of a connection, seen from here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Endpoints {
    /// Our address.
    pub local: Ipv6Addr,
    /// The peer's address.
    pub remote: Ipv6Addr,
    /// Our port.
    pub local_port: u16,
    /// The peer's port.
    pub remote_port: u16,
}

impl Endpoints {
    /// Whether a connection can be between these ends.
    pub(super) fn are_possible(&self) -> bool {
        is_unicast(self.local)
            && is_unicast(self.remote)
            && self.local_port != 0
            && self.remote_port != 0
    }
}

pub(super) const fn is_unicast(addr: Ipv6Addr) -> bool {
    !addr.is_multicast() && !addr.is_unspecified()
}

/// The memory a connection works in, lent until [`Tcp::remove`](super::Tcp::remove).
#[derive(Debug)]
pub struct Buffers<'m> {
    /// Bytes to send.
    pub send: SendBuffer<'m>,
    /// Bytes received.
    pub recv: RecvBuffer<'m>,
}

impl<'m> Buffers<'m> {
    /// A plain ring of `send.len()` bytes, and a receive window of eight ninths of
    /// `recv.len()` (see [`recv_memory_len`](super::recv_memory_len)).
    pub fn new(send: &'m mut [u8], recv: &'m mut [u8]) -> Self {
        Self {
            send: SendBuffer::ring(send),
            recv: RecvBuffer::new(recv),
        }
    }
}

/// Why a connection ended other than by both sides closing it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The peer answered our SYN with a reset.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// Too many retransmissions or probes without an answer.
    TimedOut,
    /// Too many keepalive probes without an answer.
    KeepaliveTimedOut,
    /// No progress within [`Config::user_timeout_ms`].
    UserTimeout,
    /// The network says that the peer cannot be reached.
    Unreachable,
    /// [`Tcp::abort`](super::Tcp::abort), or data arrived after `close`.
    Aborted,
}

/// A point-in-time view of the transmission machinery, for traces and summaries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Telemetry {
    /// Congestion window, bytes.
    pub cwnd_bytes: u16,
    /// Slow start threshold, bytes.
    pub ssthresh_bytes: u16,
    /// Sent, neither acknowledged nor deemed lost, bytes.
    pub inflight_bytes: u16,
    /// The peer's window, bytes.
    pub snd_wnd_bytes: u16,
    /// Payload of a full segment to the peer, bytes, options subtracted.
    pub smss_bytes: u16,
    /// Smoothed round-trip time, ms; 0 before the first sample.
    pub srtt_ms: u32,
    /// Least round-trip time of data, ms, which forgets slowly; 0 before the first sample.
    pub rtt_min_ms: u16,
    /// Its variation, ms.
    pub rttvar_ms: u32,
    /// Retransmission timeout, doublings included, ms.
    pub rto_ms: u32,
    /// Consecutive retransmission timeouts.
    pub rto_doublings: u8,
    /// In fast recovery, or recovering from a timeout.
    pub is_recovering: bool,
}

impl Telemetry {
    /// The window, bytes, from which fast recovery does not stall on this path: three
    /// segments above the second loss of a window must be able to arrive.
    ///
    /// `bottleneck_bytes_per_s`: what the path carries; on a mesh, bandwidth over hops (up to
    /// three). The round trip is the least one: the smoothed one grows with the window.
    /// Source: TCPlp, footnote 12: 3 · MSS + 2 · B · RTT.
    pub fn window_advised_bytes(&self, bottleneck_bytes_per_s: u32) -> u32 {
        let in_flight = u64::from(bottleneck_bytes_per_s) * u64::from(self.rtt_min_ms) / 1000;
        3 * u32::from(self.smss_bytes) + 2 * in_flight.min(1 << 30) as u32
    }
}

/// A TCP connection. Fields bear RFC 9293's names where it has some.
///
/// In the order in which a Cortex-M0+ reaches them with one instruction: bytes up to 31 from
/// the start, halfwords up to 62, words up to 124; what is used most comes first. Left to the
/// compiler the code is larger.
#[derive(Debug)]
#[repr(C)]
pub struct Connection<'m> {
    pub(super) facts: Facts,
    pub(super) state: State,
    pub(super) error: Option<Error>,
    /// Timeouts or probes in a row without an answer.
    pub(super) retries: u8,
    /// Segments received and not acknowledged yet.
    pub(super) ack_count: u8,
    /// Segments still to be acknowledged one by one.
    pub(super) quick_acks: u8,
    pub(super) snd_wnd: u16,
    /// MSS towards the peer as the option counts it: options are subtracted per segment.
    pub(super) smss: u16,
    pub(super) congestion: Congestion,
    /// The part of the window announced last that is not filled yet.
    pub(super) rcv_wnd: u16,
    /// RCV.NXT less the last acknowledgment sent.
    pub(super) unacked: u16,
    /// The largest window the peer ever offered.
    pub(super) snd_wnd_max: u16,
    pub(super) recovery: Recovery,
    pub(super) config: &'m Config,
    pub(super) snd_una: SeqNum,
    pub(super) snd_nxt: SeqNum,
    pub(super) rcv_nxt: SeqNum,
    pub(super) recv: RecvBuffer<'m>,
    pub(super) timers: Timers,
    pub(super) rtt: RttEstimator,
    /// TS.Recent and when it was taken; ms.
    pub(super) ts_recent: u32,
    pub(super) ts_recent_at: u32,
    /// When data was last acknowledged, or first sent into an empty network; ms.
    pub(super) progress_at: u32,
    /// Our timestamp clock's offset.
    pub(super) ts_offset: u32,
    pub(super) snd_wl1: SeqNum,
    /// The place of the peer's FIN, once seen.
    pub(super) rcv_fin: SeqNum,
    pub(super) send: SendBuffer<'m>,
    /// First octet and length of the duplicate to report (RFC 2883).
    pub(super) dsack_at: SeqNum,
    pub(super) dsack_len: u16,
    /// MSS that we announced.
    pub(super) rmss: u16,
    /// Offset behind RCV.NXT of the octet received out of order last: its block goes first.
    pub(super) sack_first: u16,
    /// When a challenge ACK was last sent, ms.
    pub(super) challenge_at: u32,
    pub(super) scoreboard: Scoreboard,
    pub(super) ends: Endpoints,
}

impl<'m> Connection<'m> {
    pub(super) fn new(
        ends: Endpoints,
        buffers: Buffers<'m>,
        config: &'m Config,
        iss: SeqNum,
        ts_offset: u32,
    ) -> Self {
        Self {
            ends,
            config,
            send: buffers.send,
            recv: buffers.recv,
            facts: Facts::NONE,
            state: State::Closed,
            error: None,
            retries: 0,
            ack_count: 0,
            quick_acks: 0,
            snd_una: iss,
            snd_nxt: iss,
            snd_wl1: SeqNum::new(0),
            snd_wnd: 0,
            snd_wnd_max: 0,
            smss: SMSS_DEFAULT.min(config.smss).max(SMSS_MIN),
            rmss: config.rmss,
            congestion: Congestion::new(u32::from(SMSS_DEFAULT), config),
            rtt: RttEstimator::NEW,
            scoreboard: Scoreboard::NEW,
            recovery: Recovery::new(iss),
            timers: Timers::NEW,
            progress_at: 0,
            rcv_nxt: SeqNum::new(0),
            rcv_wnd: 0,
            unacked: 0,
            rcv_fin: SeqNum::new(0),
            ts_recent: 0,
            ts_recent_at: 0,
            ts_offset,
            dsack_at: SeqNum::new(0),
            dsack_len: 0,
            sack_first: 0,
            challenge_at: 0,
        }
    }

    /// Where it stands.
    pub const fn state(&self) -> State {
        self.state
    }

    /// Why it ended, if not by both sides closing.
    pub const fn error(&self) -> Option<Error> {
        self.error
    }

    /// Both ends.
    pub const fn endpoints(&self) -> Endpoints {
        self.ends
    }

    /// The handshake is done and neither side has closed or failed.
    pub fn is_established(&self) -> bool {
        self.state == State::Established
    }

    /// The handshake is under way.
    pub const fn is_connecting(&self) -> bool {
        matches!(self.state, State::SynSent | State::SynReceived)
    }

    /// Bytes that `send` would take now; 0 also when the application has closed.
    pub fn can_send(&self) -> u16 {
        match self.may_send() {
            true => self.send.room(),
            false => 0,
        }
    }

    /// Bytes that `recv` would give now.
    pub const fn can_recv(&self) -> u16 {
        self.recv.len()
    }

    /// Whether the connection takes data to send, now or when there is room.
    pub const fn may_send(&self) -> bool {
        self.state.may_send() && !self.facts.has(Facts::FIN_QUEUED)
    }

    /// Whether data may still arrive, or wait to be read.
    pub const fn may_recv(&self) -> bool {
        !self.recv.is_empty() || self.state.may_receive()
    }

    /// The peer has sent everything (its FIN arrived in order) or is gone.
    pub const fn peer_closed(&self) -> bool {
        !self.state.may_receive()
    }

    /// Bytes handed over and not acknowledged yet; 0: the peer's TCP has it all.
    pub fn unacknowledged(&self) -> u16 {
        self.send.len()
    }

    /// What both sides offered; nothing yet while our SYN is on its way.
    pub fn agreed(&self) -> Agreed {
        let facts = match self.state {
            State::SynSent => Facts::NONE,
            _ => self.facts,
        };
        Agreed {
            timestamps: facts.has(Facts::TIMESTAMPS),
            sack: facts.has(Facts::SACK),
            ecn: facts.has(Facts::ECN),
        }
    }

    /// The settings in use.
    pub const fn config(&self) -> &'m Config {
        self.config
    }

    /// What the transmission machinery knows.
    pub fn telemetry(&self) -> Telemetry {
        Telemetry {
            cwnd_bytes: self.congestion.cwnd,
            ssthresh_bytes: self.congestion.ssthresh,
            inflight_bytes: self.pipe().min(u32::from(u16::MAX)) as u16,
            snd_wnd_bytes: self.snd_wnd,
            smss_bytes: self.payload_max() as u16,
            srtt_ms: self.rtt.srtt_ms().unwrap_or(0),
            rtt_min_ms: self.recovery.min_rtt,
            rttvar_ms: self.rtt.rttvar_ms(),
            rto_ms: self.rtt.rto_ms(self.config),
            rto_doublings: self.rtt.doublings(),
            is_recovering: self.is_recovering(),
        }
    }

    // ---- commands of the application ----

    /// Starts an active open.
    pub(super) fn open(&mut self, now_ms: u32) {
        self.state = State::SynSent;
        self.snd_nxt = self.snd_una.plus(1);
        self.progress_at = now_ms;
        self.facts.set(Facts::SYN_DUE);
        // The settings may change before the answer comes; what was offered does not.
        self.note_agreed(Agreed {
            timestamps: self.config.timestamps,
            sack: self.config.sack,
            ecn: self.config.ecn,
        });
    }

    /// Notes what both sides offered or, in SYN-SENT, this side.
    fn note_agreed(&mut self, agreed: Agreed) {
        let noted = u32::from(agreed.timestamps) * Facts::TIMESTAMPS
            + u32::from(agreed.sack) * Facts::SACK
            + u32::from(agreed.ecn) * Facts::ECN;
        self.facts.clear(Facts::AGREED);
        self.facts.set(noted);
    }

    /// Waits in LISTEN for a handshake of a listener, given by its index.
    pub(super) fn wait_for(&mut self, listener: u8) {
        self.state = State::Listen;
        self.ends.remote_port = u16::from(listener);
    }

    /// Whether it waits for a handshake of this listener.
    pub(super) fn waits_for(&self, listener: u8) -> bool {
        self.state == State::Listen && self.ends.remote_port == u16::from(listener)
    }

    /// Continues a handshake that ended as a [`HalfOpen`] entry.
    pub(super) fn take_over(
        &mut self,
        entry: &HalfOpen,
        ends: Endpoints,
        ts_offset: u32,
        now_ms: u32,
    ) {
        let agreed = entry.agreed();
        self.ends = ends;
        self.ts_offset = ts_offset;
        self.note_agreed(agreed);
        // Whoever retransmitted a SYN-ACK knows nothing of the round trip.
        if entry.was_resent() {
            self.rtt.distrust();
        }
        self.smss = entry.smss.min(self.config.smss).max(SMSS_MIN);
        // From here on it only says what a window update is worth, which RFC 9293 §3.8.6.2.2
        // counts in Eff.snd.MSS: that of the link too.
        self.rmss = self.config.rmss.min(self.smss);
        self.snd_una = entry.iss.plus(1);
        self.snd_nxt = self.snd_una;
        self.rcv_nxt = entry.irs.plus(1);
        self.ts_recent = entry.ts_recent;
        self.ts_recent_at = now_ms;
        // Nobody was promised more than there is, unless the settings were wrong.
        self.rcv_wnd = self.recv.window();
        self.recovery = Recovery::new(entry.iss);
        self.begin(entry.irs, entry.window(), now_ms);
        // Data that came too early were dropped: ask for them.
        self.facts.put(Facts::ACK_DUE, entry.has_missed_data());
        // The rest of the segment that ended the handshake may yet be dropped.
        self.on_data_queued(now_ms);
    }

    /// Data or a FIN were handed over: should the window be shut, probing begins.
    pub(super) fn on_data_queued(&mut self, now_ms: u32) {
        if self.state.transmits() && self.timers.purpose().is_none() {
            self.rearm(now_ms);
        }
    }

    /// Whether data can be taken to send.
    pub(super) fn check_send(&self) -> Result<(), SendError> {
        match self.error {
            Some(error) => Err(SendError::Failed(error)),
            None if self.may_send() => Ok(()),
            None => Err(SendError::Closing),
        }
    }

    /// Whether there is something to read.
    pub(super) fn check_recv(&self) -> Result<(), RecvError> {
        match self.error {
            _ if !self.recv.is_empty() => Ok(()),
            Some(error) => Err(RecvError::Failed(error)),
            None if self.state.may_receive() && !self.facts.has(Facts::READ_CLOSED) => {
                Err(RecvError::Empty)
            }
            None => Err(RecvError::Finished),
        }
    }

    /// Gives the buffers back and becomes an orphan, in CLOSED or TIME-WAIT only.
    pub(super) fn release(&mut self) -> Option<Buffers<'m>> {
        if !matches!(self.state, State::Closed | State::TimeWait) {
            return None;
        }
        self.facts.set(Facts::ORPHANED);
        let send = core::mem::replace(&mut self.send, SendBuffer::ring(&mut []));
        let recv = core::mem::replace(&mut self.recv, RecvBuffer::new(&mut []));
        Some(Buffers { send, recv })
    }

    pub(super) fn into_buffers(self) -> Buffers<'m> {
        Buffers {
            send: self.send,
            recv: self.recv,
        }
    }

    /// Whether the application has given the handle back.
    pub(super) const fn is_orphan(&self) -> bool {
        self.facts.has(Facts::ORPHANED)
    }

    pub(super) fn is_between(&self, ends: &Endpoints) -> bool {
        self.ends.local_port == ends.local_port
            && self.ends.remote_port == ends.remote_port
            && self.ends.remote == ends.remote
            && self.ends.local == ends.local
    }

    /// Whether a SYN may replace this connection in TIME-WAIT (RFC 6191 §2).
    pub(super) fn gives_way_to(&self, syn: &Segment<'_>) -> bool {
        match syn.timestamps() {
            Some((value, _)) if self.facts.has(Facts::TIMESTAMPS) => {
                let newer = value.wrapping_sub(self.ts_recent) as i32;
                newer > 0 || newer == 0 && syn.seq.after(self.rcv_nxt)
            }
            _ => syn.seq.after(self.rcv_nxt),
        }
    }

    /// The network says that a segment of ours, which began at `seq`, did not get through.
    pub(super) fn on_icmp_error(&mut self, seq: SeqNum, error: IcmpError, now_ms: u32) {
        if seq.before(self.snd_una) || !seq.before(self.snd_nxt) {
            return;
        }
        match error {
            IcmpError::PacketTooBig(mtu) => self.on_packet_too_big(mtu, now_ms),
            // RFC 5461 §4: while connecting, believe it; later, an established path may
            // recover, and anybody may forge ICMP.
            IcmpError::Hard if self.is_connecting() => self.end(Some(Error::Unreachable)),
            IcmpError::Hard | IcmpError::Soft => self.facts.set(Facts::SOFT_ERROR),
        }
    }

    /// RFC 8201: sends smaller segments from now on, and again what was too big.
    fn on_packet_too_big(&mut self, mtu: u32, now_ms: u32) {
        let mss = mtu.saturating_sub(PACKET_OVERHEAD).min(u32::from(u16::MAX)) as u16;
        // Below IPv6's minimum is forged or for a fragmenting router (RFC 8201 §4).
        if mtu < IPV6_MTU_MIN as u32 || mss >= self.smss {
            return;
        }
        self.smss = mss;
        if self.state.transmits() && self.flight() > 0 {
            self.scoreboard.lose_all(now_ms, 0);
            self.facts.set(Facts::FORCE_RESEND);
            if matches!(self.recovery.phase, Phase::Open | Phase::Reduced) {
                // Not a sign of congestion: cwnd stays.
                self.recovery.phase = Phase::Resize;
                self.recovery.recover = self.snd_nxt;
            }
        }
    }

    /// Copies received bytes out; may announce the window that this opens.
    pub(super) fn read(&mut self, out: &mut [u8]) -> usize {
        let count = self.recv.read(out);
        self.announce_window();
        count
    }

    /// As [`Self::read`], for bytes looked at in place.
    pub(super) fn consume(&mut self, count: u16) {
        self.recv.consume(count);
        self.announce_window();
    }

    /// The application has no more to send: a FIN follows the data. Before the handshake's
    /// end too: RFC 9293 §3.10.4 deletes the connection then, which `close` does.
    pub(super) fn shutdown(&mut self) {
        if !self.may_send() {
            return;
        }
        match self.state {
            State::Established => self.state = State::FinWait1,
            State::CloseWait => self.state = State::LastAck,
            _ => {}
        }
        self.facts.set(Facts::FIN_QUEUED);
    }

    /// The application neither sends nor reads any more.
    pub(super) fn close(&mut self, now_ms: u32) {
        if matches!(self.state, State::Listen | State::SynSent) {
            return self.end(None);
        }
        self.shutdown();
        self.facts.set(Facts::READ_CLOSED);
        if !self.recv.is_empty() && self.state.is_synchronized() && self.state != State::TimeWait {
            // RFC 9293 §3.10.4 via RFC 1122 §4.2.2.13: unread data are lost; say so.
            return self.abort();
        }
        if self.state == State::FinWait2 {
            self.arm_fin_wait_2(now_ms);
        }
    }

    /// Ends at once, with a reset where the peer knows the connection.
    pub(super) fn abort(&mut self) {
        let reset = !matches!(
            self.state,
            State::Closed | State::Listen | State::SynSent | State::TimeWait
        );
        if self.state != State::Closed {
            self.end(Some(Error::Aborted));
        }
        self.facts.put(Facts::RESET_DUE, reset);
    }

    /// Enters CLOSED; nothing is sent or awaited any more.
    // Out of line: inlined, it would stand at each of its many callers.
    #[inline(never)]
    pub(super) fn end(&mut self, error: Option<Error>) {
        if self.state == State::SynSent {
            self.facts.clear(Facts::AGREED);
        }
        self.state = State::Closed;
        self.error = error;
        self.timers.disarm_all();
        self.scoreboard.give_up();
        self.facts.clear(
            Facts::ACK_DUE
                | Facts::SYN_DUE
                | Facts::PERSIST_DUE
                | Facts::TAIL_PROBE_DUE
                | Facts::KEEPALIVE_DUE,
        );
    }

    /// Whether the slot can be freed: closed, and its reset (if any) is out.
    pub(super) const fn is_over(&self) -> bool {
        matches!(self.state, State::Closed) && !self.facts.has(Facts::RESET_DUE)
    }

    // ---- what output and ack share ----

    /// FlightSize: octets sent and not acknowledged.
    pub(super) fn flight(&self) -> u32 {
        self.snd_nxt.since(self.snd_una)
    }

    /// Octets, FIN included, that were handed over and not sent yet.
    pub(super) fn unsent(&self) -> u32 {
        let queued = u32::from(self.send.len()) + u32::from(self.facts.has(Facts::FIN_QUEUED));
        queued.saturating_sub(self.flight())
    }

    pub(super) const fn is_recovering(&self) -> bool {
        !matches!(self.recovery.phase, Phase::Open | Phase::Reduced)
    }

    /// Arms the retransmission timer afresh.
    pub(super) fn arm_rto(&mut self, now_ms: u32) {
        self.arm_transmit(Purpose::Retransmit, self.rtt.rto_ms(self.config), now_ms);
    }

    pub(super) fn arm_persist(&mut self, now_ms: u32) {
        self.arm_transmit(Purpose::Persist, self.rtt.rto_ms(self.config), now_ms);
    }

    /// Arms [`Timer::Transmit`], no later than the user timeout.
    pub(super) fn arm_transmit(&mut self, purpose: Purpose, wait_ms: u32, now_ms: u32) {
        let mut wait = wait_ms;
        if self.config.user_timeout_ms != 0 {
            let elapsed = now_ms.wrapping_sub(self.progress_at);
            wait = wait.min(self.config.user_timeout_ms.saturating_sub(elapsed));
        }
        self.timers.arm_transmit(purpose, now_ms.wrapping_add(wait));
    }

    /// Sends an ACK when reading has opened the window by two segments and a quarter of the
    /// buffer, by half the buffer, or from nothing to one segment: the receiver's half of
    /// silly-window avoidance, and no more ACKs than a wide window needs.
    fn announce_window(&mut self) {
        if !self.state.may_receive() || self.is_connecting() || planted(Bug::WindowUpdateLost) {
            return;
        }
        let (window, half) = (self.recv.window(), self.recv.capacity() / 2);
        let gain = window.saturating_sub(self.rcv_wnd);
        let was_shut = self.rcv_wnd < self.rmss.min(half);
        let step = self.rmss.saturating_mul(2).max(half / 2).min(half);
        if gain >= step || was_shut && gain >= self.rmss.min(half) {
            self.facts.set(Facts::ACK_DUE);
        }
    }
}

/// The MSS of a peer that sends no MSS option over IPv6 (RFC 9293 §3.7.1, MUST-15).
pub(super) const SMSS_DEFAULT: u16 = 1220;
/// Least MSS we obey, bytes: 40 of options and 24 of data. A peer that asks for less, by
/// error or malice, would make us send mostly headers.
pub(super) const SMSS_MIN: u16 = 64;
/// IPv6 and TCP headers without options: what an MSS leaves out.
const PACKET_OVERHEAD: u32 = 60;
