//! One connection: owns all that belongs to it; the only writer of its [`State`].
//!
//! Place: a slot of [`Tcp`](super::Tcp) holds it; `input`, `ack`, `output` and `path` are its
//! halves towards the network, `commands` the one towards the application, `clock` the one towards
//! time. This file has its variables, its getters, and their common code.
//! Left out: finding the connection of a segment, listening (`arrival`).
//!
//! The layout is kept small on purpose: windows are not scaled, so lengths take 16 bits; times are
//! milliseconds modulo 2^32; SND.WL2 is missing because an ACK below SND.UNA never updates the
//! window, so `SND.WL2 ≤ SEG.ACK` always holds when it would be checked.

use super::config::Config;
use super::facts::Facts;
#[cfg(feature = "linux-acks")]
use super::linux_acks::LinuxAcks;
use super::listener::Agreed;
use super::loss::{Loss, Sender};
#[cfg(feature = "tcple")]
use super::prefetched::Prefetched;
use super::reassembly::RecvBuffer;
use super::rtt::RttEstimator;
use super::segment::Segment;
use super::send_buffer::SendBuffer;
use super::seq::SeqNum;
use super::state::State;
use super::timers::{Purpose, Timers};
use super::types::{Buffers, Endpoints, Error};

/// A TCP connection. Fields have the names of RFC 9293, if it has one.
///
/// In the order in which a Cortex-M0+ reaches them with one instruction: bytes up to 31 from the
/// start, halfwords up to 62, words up to 124; the most used fields come first. With the compiler's
/// order the code is larger. `loss` is large and reached through a pointer of its own.
#[derive(Debug)]
#[repr(C)]
pub struct Connection<'m> {
    pub(super) facts: Facts,
    /// Changed by [`Self::set_state`] alone, which checks the transition.
    state: State,
    pub(super) error: Option<Error>,
    /// Timeouts or probes in a row without an answer.
    pub(super) retries: u8,
    /// Segments received and not acknowledged yet.
    pub(super) ack_count: u8,
    /// Segments still to be acknowledged one by one.
    pub(super) quick_acks: u8,
    /// Segments after a congestion mark, still to come, of which at least every second is
    /// acknowledged.
    pub(super) marked_acks: u8,
    pub(super) timers: Timers,
    /// How far the present millisecond has passed, as deadlines count it: 0 to 31.
    pub(super) now_part: u8,
    /// How often text came out of order, modulo 256; by it the SACK block that grew last is found.
    pub(super) sack_count: u8,
    pub(super) snd_wnd: u16,
    /// MSS towards the peer as the option counts it: options are subtracted per segment.
    pub(super) smss: u16,
    /// The part of the window announced last that is not filled yet.
    pub(super) rcv_wnd: u16,
    /// RCV.NXT less the last acknowledgment sent.
    pub(super) unacked: u16,
    /// The largest window the peer ever offered.
    pub(super) snd_wnd_max: u16,
    /// The MSS announced to the peer, octets.
    pub(super) rmss: u16,
    /// The present, ms modulo 2^32: [`Tcp`](super::Tcp) sets it before it calls in. Passed along
    /// as an argument it would take a register, or the stack, in half of all functions.
    pub(super) now_ms: u32,
    pub(super) config: &'m Config,
    pub(super) snd_una: SeqNum,
    pub(super) snd_nxt: SeqNum,
    pub(super) rcv_nxt: SeqNum,
    pub(super) loss: Loss,
    pub(super) send: SendBuffer<'m>,
    pub(super) recv: RecvBuffer<'m>,
    /// When each [`Timer`](super::timers::Timer) falls due, if armed; 1/32 ms modulo 2^32.
    pub(super) deadlines: [u32; 3],
    pub(super) rtt: RttEstimator,
    /// TS.Recent and when it was taken; ms.
    pub(super) ts_recent: u32,
    pub(super) ts_recent_at: u32,
    /// When data was last acknowledged, or first sent into an empty network; ms.
    progress_at: u32,
    /// Added to the present, ms, to give TSval: a random offset of each connection (RFC 7323 §5.4).
    pub(super) ts_offset: u32,
    pub(super) snd_wl1: SeqNum,
    /// The place of the peer's FIN, once seen.
    pub(super) rcv_fin: SeqNum,
    /// First octet and length of the duplicate to report (RFC 2883).
    pub(super) dsack_at: SeqNum,
    /// When a challenge ACK was last sent, ms; at first a time before any interval.
    pub(super) challenge_at: u32,
    pub(super) dsack_len: u16,
    pub(super) ends: Endpoints,
    #[cfg(feature = "linux-acks")]
    pub(super) linux_acks: LinuxAcks,
    #[cfg(feature = "tcple")]
    pub(super) prefetched: Prefetched,
    /// How long the segment under way, and the data that it acknowledges, waited on the last hop,
    /// ms.
    #[cfg(feature = "tcple")]
    pub(super) waited_ms: u16,
}

impl<'m> Connection<'m> {
    pub(super) fn new(
        ends: &Endpoints,
        mut buffers: Buffers<'m>,
        config: &'m Config,
        (now_ms, now_part): (u32, u8),
    ) -> Self {
        buffers.clear();
        Self {
            ends: *ends,
            config,
            now_ms,
            send: buffers.send,
            recv: buffers.recv,
            facts: Facts::at_first(),
            state: State::Closed,
            error: None,
            retries: 0,
            ack_count: 0,
            quick_acks: 0,
            marked_acks: 0,
            snd_una: SeqNum::new(0),
            snd_nxt: SeqNum::new(0),
            snd_wl1: SeqNum::new(0),
            snd_wnd: 0,
            snd_wnd_max: 0,
            smss: config.smss,
            rmss: config.rmss,
            loss: Loss::new(config.congestion_algorithm),
            rtt: RttEstimator::NEW,
            timers: Timers::NEW,
            now_part,
            deadlines: [0; 3],
            progress_at: 0,
            rcv_nxt: SeqNum::new(0),
            rcv_wnd: 0,
            unacked: 0,
            rcv_fin: SeqNum::new(0),
            ts_recent: 0,
            ts_recent_at: 0,
            ts_offset: 0,
            dsack_at: SeqNum::new(0),
            dsack_len: 0,
            sack_count: 0,
            challenge_at: now_ms.wrapping_sub(u32::from(u16::MAX)),
            #[cfg(feature = "linux-acks")]
            linux_acks: LinuxAcks::default(),
            #[cfg(feature = "tcple")]
            prefetched: Prefetched::default(),
            #[cfg(feature = "tcple")]
            waited_ms: 0,
        }
    }

    /// The state (RFC 9293 §3.3.2).
    pub const fn state(&self) -> State {
        self.state
    }

    /// Enters a state, or stays in it. A debug build checks the transition by RFC 9293 Figure 5:
    /// [`State::may_become`].
    pub(super) fn set_state(&mut self, next: State) {
        debug_assert!(
            self.state == next || self.state.may_become(next),
            "no transition of RFC 9293: {:?} to {next:?}",
            self.state
        );
        self.state = next;
    }

    /// Why the connection ended, if not by both sides closing.
    pub const fn error(&self) -> Option<Error> {
        self.error
    }

    /// Addresses and ports of both ends.
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

    /// The options that both sides offered; none yet while our SYN is on its way.
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

    /// The settings in use: the ones given at opening, or by
    /// [`Tcp::set_config`](super::Tcp::set_config).
    pub const fn config(&self) -> &'m Config {
        self.config
    }

    /// Whether the application has given the handle back.
    pub(super) const fn is_orphan(&self) -> bool {
        self.facts.has(Facts::ORPHANED)
    }

    pub(super) fn is_between(&self, ends: &Endpoints) -> bool {
        self.ends == *ends
    }

    /// Whether this connection, in TIME-WAIT, gives way to a new incarnation (RFC 9293
    /// §3.10.7.4, RFC 6191 §2) that begins with `syn`: it starts behind everything the old one
    /// received, by timestamp or by number.
    pub(super) fn gives_way_to(&self, syn: &Segment<'_>) -> bool {
        if self.state != State::TimeWait || !self.config.time_wait_reuse {
            return false;
        }
        match syn.timestamps() {
            Some((value, _)) if self.facts.has(Facts::TIMESTAMPS) => {
                let newer = value.wrapping_sub(self.ts_recent) as i32;
                newer > 0 || newer == 0 && syn.seq.after(self.rcv_nxt)
            }
            _ => syn.seq.after(self.rcv_nxt),
        }
    }

    // ---- progress: what the limits of a connection's patience count from ----

    /// Notes progress: data were acknowledged, or something begins to wait for an answer.
    pub(super) fn note_progress(&mut self) {
        self.progress_at = self.now_ms;
    }

    /// Takes `ms` off the time since progress was last made.
    pub(super) fn forgive(&mut self, ms: u32) {
        self.progress_at = self.progress_at.wrapping_add(ms);
    }

    /// When progress was last made ([`Self::note_progress`]), ms modulo 2^32.
    #[cfg(feature = "sleepy")]
    pub(super) const fn progress_at(&self) -> u32 {
        self.progress_at
    }

    /// Time since progress was last made ([`Self::note_progress`]), ms.
    pub(super) fn since_progress_ms(&self) -> u32 {
        self.now_ms.wrapping_sub(self.progress_at)
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
        self.loss.is_recovering()
    }

    /// Bytes in the network, as far as is known.
    pub(super) fn pipe(&self) -> u32 {
        self.loss.pipe(self.flight(), self.payload_max())
    }

    /// The state of the connection that loss recovery needs.
    pub(super) fn sender(&self) -> Sender<'m> {
        Sender {
            config: self.config,
            una: self.snd_una,
            nxt: self.snd_nxt,
            now_ms: self.now_ms,
            smss: self.payload_max(),
            srtt_ms: self.rtt.srtt_ms().unwrap_or(0),
            has_sack: self.facts.has(Facts::SACK),
        }
    }

    /// Arms [`Timer::Transmit`](super::timers::Timer) for an RTO from now, or the next window
    /// probe.
    pub(super) fn arm_timeout(&mut self, purpose: Purpose) {
        let wait = match purpose {
            Purpose::Persist => self.rtt.probe_ms(self.config),
            _ => self.rtt.rto_ms(self.config),
        };
        self.arm_transmit(purpose, wait);
    }
}
