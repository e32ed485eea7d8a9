//! Settings of a connection: each constant with its default, unit and source.
//!
//! Place: shared by reference between connections; a firmware keeps it in flash (`static SETTINGS:
//! Config = Config { nagle: false, ..Config::DEFAULT };`).
//! Left out: buffer sizes, which are the lengths of the memory the caller lends.

use super::loss::control::CongestionAlgorithm;

/// Settings of a connection: its features, and how long it waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The largest segment we ask the peer to send: the MSS option's value, bytes.
    ///
    /// IPv6's minimum MTU less 60 (RFC 9293 §3.7.1, MUST-67); a mesh sets fewer, a multiple
    /// of what a frame carries.
    pub rmss: u16,
    /// The largest segment we send whatever the peer would take, bytes; counted as the MSS
    /// option is, before the options of each segment are subtracted.
    pub smss: u16,
    /// Frames that a full segment may fill on a mesh, each way; 0: as many as its link says
    /// ([`mss_frames`](crate::link::MeshConfig::mss_frames)).
    ///
    /// For connections that carry much, such as those of new firmware: longer segments need fewer
    /// ACKs and headers. [`rmss`](Self::rmss) and [`smss`](Self::smss) bound them all the same.
    pub mss_frames: u8,
    /// The window promised in a SYN-ACK when no buffers were lent in advance, bytes: what the
    /// receive buffer will hold that `accept` lends.
    pub accept_window: u16,
    /// The initial window, segments; 0 means RFC 5681 §3.1's 2 to 4 by segment size.
    pub initial_window: u8,
    /// Growth of cwnd for one ACK in slow start, segments at most: 1 by RFC 5681 §3.1; 2 is
    /// RFC 3465's L, and Linux has no limit.
    pub slow_start_segments_max: u8,
    /// The DSCP of segments (RFC 2474), six bits; resets and SYN cookies have 0. On a mesh
    /// anything but 0 costs an octet of each packet (RFC 6282 §3.2.1).
    pub dscp: u8,

    /// RTO before the first sample, ms (RFC 6298 §2.1), and least RTO while only the
    /// handshake was measured, whose segments are far shorter on the air than data.
    pub rto_initial_ms: u16,
    /// Least RTO once a segment of data was measured, ms.
    ///
    /// RFC 6298 §2.4 has 1 s, to allow for delayed ACKs of up to 500 ms. As in BSD and Linux,
    /// `rto_slop_ms` covers these, so that after a loss on a mesh with an RTT of 0.3 s the air is
    /// not idle for another 0.7 s.
    pub rto_min_ms: u16,
    /// Greatest RTO, ms (RFC 6298 §2.5: at least 60 s).
    pub rto_max_ms: u16,
    /// Added to `SRTT + 4·RTTVAR`, ms: with a steady RTT the RTTVAR goes to zero, and a delayed ACK
    /// (40 to 200 ms) or a link retry must not look like a loss. From BSD. Without timestamps, when
    /// a backed-off RTO stays in force after a repair, only the rest of it is doubled, and the slop
    /// is added once.
    pub rto_slop_ms: u16,
    /// Retransmissions of one segment before the connection fails (TCPlp and BSD: 12).
    pub retransmissions_max: u8,
    /// Retransmissions of a SYN or SYN-ACK before the attempt fails. RFC 9293 §3.8.3 asks
    /// for three minutes: with a first RTO of 1 s, seven reach 255 s.
    pub syn_retransmissions_max: u8,

    /// Acknowledge every n-th segment with data at once; 1: each. RFC 9293 §3.8.6.3 SHOULD
    /// not exceed 2; on a mesh, fewer ACKs are goodput (`docs`). Of eight segments from a mark of
    /// congestion on, at least every second is acknowledged.
    pub ack_every: u8,
    /// Segments acknowledged one by one behind a gap or a duplicate; 0: none. While the path
    /// loses, the peer sends little at once, and a delayed ACK, or the loss of one that stands
    /// for two, costs it most. RFC 5681 §4.2 asks for one at least every second segment; 16 as
    /// Linux.
    pub quick_acks: u8,
    /// Longest wait of an ACK for company, ms; 0: none. At most 500 (RFC 9293, MUST-58).
    pub ack_delay_ms: u16,

    /// Acknowledge as Linux does, instead of by [`Self::ack_every`], [`Self::quick_acks`] and
    /// [`Self::ack_delay_ms`]: for a simulated host. The first 16 segments, and each that has PSH
    /// or is the second full one, at once; others after 40 to 200 ms, by the time between
    /// segments. The timers of what it sends are Linux's, too: [`Self::rto_min_ms`] bounds the
    /// variation's part of the RTO instead of being added as [`Self::rto_slop_ms`] is, and the
    /// round trip of the handshake counts as one of data.
    #[cfg(feature = "linux-acks")]
    pub linux_acks: bool,

    /// Keepalive: idle time before the first probe, s; 0: off (RFC 9293, MUST-25).
    pub keepalive_idle_s: u16,
    /// Keepalive: time between two probes, s.
    pub keepalive_interval_s: u16,
    /// Keepalive: unanswered probes before the connection fails.
    pub keepalive_probes: u8,
    /// Time without progress on sent data before the connection fails, ms; 0: only
    /// [`Self::retransmissions_max`] counts (RFC 9293 §3.9.1, RFC 5482).
    pub user_timeout_ms: u32,
    /// Time in TIME-WAIT, ms: twice the MSL (RFC 9293 §3.4.2 says 4 minutes; 60 s is the
    /// usage of Linux and BSD).
    pub time_wait_ms: u32,
    /// A SYN that starts behind everything a connection in TIME-WAIT received, by timestamp or
    /// number, takes its place (RFC 9293 MAY-2, RFC 6191); off: it gets a challenge ACK.
    pub time_wait_reuse: bool,
    /// Time without progress before a connection that is closed gives up, ms: after `close`, or
    /// once both sides have ended, until all is acknowledged. 0: for ever, while the peer answers.
    ///
    /// A peer whose window stays shut, and that answers every probe, must not end a connection in
    /// use (RFC 9293 §3.8.6.1, MUST-37). But the memory of a connection that no application uses
    /// any more should be freed, which RFC 6429 §3 leaves to the implementation. 5 minutes are the
    /// default user timeout of RFC 9293 §3.9.1, and above the 100 s that RFC 1122 §4.2.3.5
    /// requires.
    pub close_timeout_ms: u32,
    /// Time in FIN-WAIT-2 after `close` (not `shutdown`), ms; 0: for ever.
    pub fin_wait_2_ms: u32,
    /// At most one challenge ACK per this time and connection, ms (RFC 5961 §7); of a handshake
    /// with a listener, at most three for each SYN-ACK, and while it waits for `accept`. 0: any
    /// number.
    pub challenge_interval_ms: u16,
    /// Half-open connections: time for the application to `accept` an established one, ms; twice
    /// that where no slot is free.
    pub accept_timeout_ms: u16,

    /// Nagle's algorithm (RFC 9293 §3.7.4).
    pub nagle: bool,
    /// Offer and use timestamps, with PAWS (RFC 7323).
    ///
    /// Without the feature `timestamps` it has no effect.
    pub timestamps: bool,
    /// Offer and use selective acknowledgments (RFC 2018).
    ///
    /// Without the feature `sack` it has no effect.
    pub sack: bool,
    /// Report duplicates with DSACK (RFC 2883).
    ///
    /// Without the feature `sack` it has no effect.
    pub dsack: bool,
    /// Send new data on the first duplicate ACKs (RFC 3042).
    pub limited_transmit: bool,
    /// Find losses by the times of transmission, when the peer sends SACK (RFC 8985);
    /// otherwise by counting (RFC 6675, RFC 5681).
    ///
    /// Without the feature `recovery` it has no effect.
    pub rack: bool,
    /// Probe for tail losses before the RTO (RFC 8985 §7).
    ///
    /// Without the feature `recovery` it has no effect.
    pub tail_loss_probe: bool,
    /// The delayed ACK of a peer, ms, that a tail loss probe of one segment allows for
    /// (RFC 8985 §7.2: 200).
    pub peer_ack_delay_ms: u16,
    /// Proportional rate reduction in recovery (RFC 9937).
    pub prr: bool,
    /// Undo the window reduction of a recovery that proves spurious (RFC 3522, RFC 3708).
    ///
    /// Without the feature `recovery` it has no effect.
    pub undo: bool,
    /// Negotiate and use explicit congestion notification (RFC 3168).
    ///
    /// Without the feature `ecn` it has no effect.
    pub ecn: bool,
    /// How cwnd answers a loss, and how it grows. Best chosen before the connection begins: another
    /// algorithm than the one so far starts as if nothing had been lost.
    pub congestion_algorithm: CongestionAlgorithm,
    /// Whether there is congestion control; off only to measure its effect.
    pub congestion_control: bool,
    /// Take the short way for the segments that a bulk transfer is made of.
    ///
    /// Without the feature `prediction` it has no effect.
    pub header_prediction: bool,
    /// How soon a sleeping node polls for an answer.
    #[cfg(feature = "sleepy")]
    pub economy: Economy,
}

impl Config {
    /// Everything on, times as documented at each field.
    pub const DEFAULT: Self = Self {
        rmss: 1220,
        smss: 1220,
        mss_frames: 0,
        accept_window: 1848,
        initial_window: 0,
        slow_start_segments_max: 1,
        dscp: 0,
        rto_initial_ms: 1000,
        rto_min_ms: 200,
        rto_max_ms: 60_000,
        rto_slop_ms: 200,
        retransmissions_max: 12,
        syn_retransmissions_max: 7,
        ack_every: 2,
        quick_acks: 16,
        ack_delay_ms: 100,
        #[cfg(feature = "linux-acks")]
        linux_acks: false,
        keepalive_idle_s: 0,
        keepalive_interval_s: 75,
        keepalive_probes: 8,
        user_timeout_ms: 0,
        time_wait_ms: 60_000,
        time_wait_reuse: true,
        close_timeout_ms: 300_000,
        fin_wait_2_ms: 60_000,
        challenge_interval_ms: 500,
        accept_timeout_ms: 30_000,
        nagle: true,
        timestamps: true,
        sack: true,
        dsack: true,
        limited_transmit: true,
        rack: true,
        tail_loss_probe: true,
        peer_ack_delay_ms: 200,
        prr: true,
        undo: true,
        ecn: true,
        congestion_algorithm: CongestionAlgorithm::NewReno,
        congestion_control: true,
        header_prediction: true,
        #[cfg(feature = "sleepy")]
        economy: Economy::Balanced,
    };
}

/// How a sleeping node weighs energy against the delay of its peer's answers. A node that is always
/// on hears an answer at once.
#[cfg(feature = "sleepy")]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Economy {
    /// Asks from three quarters of a round trip on, then every half round trip: an answer waits for
    /// half a round trip, and one second at most.
    LowestEnergy,
    /// Asks when the answer may have come, and four times in a round trip from then on; ten times a
    /// second at least where answers to several segments are due.
    #[default]
    Balanced,
    /// Asks at the shortest interval from the moment that something was sent.
    LowestLatency,
}

impl Config {
    /// Whether losses are found by time.
    pub(super) const fn finds_by_time(&self) -> bool {
        HAS_RECOVERY && self.rack
    }

    /// Whether ACKs and timers are Linux's.
    pub(super) const fn linux_acks(&self) -> bool {
        #[cfg(feature = "linux-acks")]
        return self.linux_acks;
        #[cfg(not(feature = "linux-acks"))]
        false
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Whether this build has selective acknowledgments (RFC 2018, 2883, 6675).
pub(super) const HAS_SACK: bool = cfg!(feature = "sack");
/// Whether it finds losses by time, probes for those of the tail, and undoes needless reductions
/// (RFC 8985, 3522, 3708).
pub(super) const HAS_RECOVERY: bool = cfg!(feature = "recovery");
/// Whether it has explicit congestion notification (RFC 3168).
pub(super) const HAS_ECN: bool = cfg!(feature = "ecn");
/// Whether it takes connections of peers (RFC 9293 §3.10.7.2).
pub(super) const HAS_LISTEN: bool = cfg!(feature = "listen");
/// Whether it has a short way for the segments of a bulk transfer.
pub(super) const HAS_PREDICTION: bool = cfg!(feature = "prediction");
/// Whether it has SYN cookies (RFC 4987 §3.6).
pub(super) const HAS_COOKIES: bool = cfg!(feature = "syn-cookies");
/// Whether it has timestamps, and with them PAWS (RFC 7323).
pub(super) const HAS_TIMESTAMPS: bool = cfg!(feature = "timestamps");

/// The MSS of a peer that sends no MSS option over IPv6 (RFC 9293 §3.7.1, MUST-15).
pub(super) const SMSS_DEFAULT: u16 = 1220;
/// Least MSS of a peer with which SACK is used: 40 bytes of options and 24 of data.
///
/// A smaller MSS is obeyed, too (RFC 9293 MUST-16); options reduce the payload (RFC 6691). But each
/// data segment has at least one octet, so that the stream advances: with timestamps, which RFC
/// 7323 §3.2 requires in each segment once negotiated, an MSS below 13 is exceeded by up to 12
/// octets. A peer with a small MSS gets many segments, like one with a small window; neither costs
/// memory.
pub(super) const SMSS_FOR_OPTIONS: u16 = 64;
