//! A scenario as it is run: one point of a sweep, every default filled in.

use serde::{Deserialize, Serialize};

use super::battery::Battery;
use super::wire::WireSettings;
use crate::air::profile::Profile;
use crate::net::network::{NetworkOptions, NodeOptions};
use crate::net::topology::Tree;
use motet::ip::queue::{Discipline, Red};
use motet::link::{Forwarding, Relaying};
use motet::mac;
use motet::tcp::CongestionAlgorithm;
use motet::tcphc;
use motet::time::Duration;

/// One point of a scenario's sweep, without the seed: each seed gives a run of it.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Length, warm-up and other times.
    pub timing: Timing,
    /// Nodes, gains and host; the seed is the run's.
    pub network: NetworkOptions,
    /// The parent of each node.
    pub tree: Tree,
    /// The positions of the nodes, metres, if the scenario has them.
    pub positions: Option<Vec<[f64; 2]>>,
    /// The nodes of a testbed from which no path leads to the border router: they are off.
    pub left_out: Vec<usize>,
    /// The time within which all nodes are switched on.
    pub switched_on_within: Duration,
    /// Stack settings of each node.
    pub stacks: Vec<StackSettings>,
    /// The link to the host.
    pub wire: WireSettings,
    /// The flows of the scenario.
    pub flows: Vec<FlowSettings>,
    /// The faults.
    pub faults: Vec<FaultSettings>,
    /// The battery of motes, where its life is asked for.
    pub battery: Option<Battery>,
}

/// The keys at the top of a file.
#[derive(Clone, Debug, Deserialize)]
pub struct Timing {
    /// The scenario's title; may be empty.
    pub name: String,
    /// Virtual time of a run, s.
    pub duration_s: f64,
    /// The time at the beginning that figures leave out, s.
    pub warmup_s: f64,
    /// The time within which all motes must join, s.
    pub join_s: f64,
    /// Time between samples, s; 0: by the duration.
    pub sample_s: f64,
    /// The first seed.
    pub seed: u64,
    /// How many seeds, from the first one on.
    pub seeds: u64,
}

/// The keys of `[path_loss]`.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct PathLoss {
    /// Exponent of the log-distance model.
    pub(super) exponent: f64,
    /// Loss at one metre, dB.
    pub(super) loss_1m_db: f64,
    /// Shadowing between pairs of nodes, dB.
    pub(super) shadowing_db: f64,
    /// Spread of the nodes themselves, dB.
    pub(super) node_db: f64,
}

/// The keys of `[radio]`.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RadioSettings {
    /// The kind of radio: "802.15.4" or "ble".
    pub(super) kind: String,
    /// The PHY of Bluetooth LE: "1M" or "2M".
    pub(super) phy: String,
    /// Time between connection events, ms.
    pub(super) interval_ms: f64,
    /// Whether losses shorten that interval.
    pub(super) adaptive: bool,
    /// Connection events that a mote may leave out.
    pub(super) latency: u16,
    /// Whether data packets have a MIC.
    pub(super) mic: bool,
    /// Whether all nodes have TCPlE.
    pub(super) tcple: bool,
    /// How far clocks may be off.
    pub(super) drift_ppm: u16,
    /// Signal strength at every receiver.
    pub(super) rssi_dbm: f64,
    /// The standard deviation of the signal strength, dB.
    pub(super) rssi_sigma_db: f64,
    /// The name of the radio's and driver's profile.
    pub(super) profile: String,
    /// Whether the radio is deaf while it copies, if the profile is.
    pub(super) deaf: bool,
    /// The channel, 11 to 26.
    pub(super) channel: u8,
    /// "single": one channel for all; "multi": a home channel for each node.
    pub(super) channels: String,
    /// Transmit power, dBm.
    pub(super) transmit_dbm: f64,
    /// The probability that a frame is lost besides, 0 to 1.
    pub(super) frame_loss: f64,
}

/// `[stack]`, with what `[[node]]` changes.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct StackSettings {
    /// Frames of a full segment.
    pub mss_frames: u8,
    /// TCP's buffers, in full segments.
    pub window_segments: usize,
    /// Largest random wait before a link retry, d, ms (TCPlp §7.1).
    pub retry_delay_ms: u64,
    /// The longest stay of a frame in the MAC, ms.
    pub frame_age_ms: u64,
    /// Part of the pace that the stack measures, %; 0: it measures none.
    pub pace_percent: u8,
    /// The hold rule's time per hop, ms.
    pub hold_ms: f64,
    /// The queue's discipline: "droptail", "red" or "red-drop".
    pub queue: String,
    /// The MAC's attempts at a frame.
    pub link_attempts: u8,
    /// macMinBE (IEEE 802.15.4).
    pub be_min: u8,
    /// macMaxBE (IEEE 802.15.4).
    pub be_max: u8,
    /// macMaxCSMABackoffs (IEEE 802.15.4).
    pub csma_backoffs: u8,
    /// macAckWaitDuration, µs.
    pub ack_wait_us: u64,
    /// Whether the radio sleeps in the backoff.
    pub deaf_backoff: bool,
    /// Frames in the MAC's queue.
    pub queue_frames: usize,
    /// Bytes of whole packets that wait for the MAC's queue.
    pub packet_queue_bytes: usize,
    /// The unit that relays pass on: "fragments", or whole packets after "reassembly".
    pub relaying: String,
    /// The way of a fragment through a relay: "copy", or "cit" (conditional immediate
    /// transmission).
    pub forwarding: String,
    /// Compression of TCP headers: "none", "tcphc" or "auto".
    pub compression: String,
    /// Every n-th segment is acknowledged at once.
    pub ack_every: u8,
    /// Longest wait of an ACK, ms.
    pub ack_delay_ms: u16,
    /// Initial window, segments; 0: the RFC's.
    pub initial_window: u8,
    /// The least retransmission timeout (RFC 6298), ms.
    pub rto_min_ms: u16,
    /// Whether Nagle's algorithm is on.
    pub nagle: bool,
    /// Whether TCP timestamps are on (RFC 7323).
    pub timestamps: bool,
    /// Whether selective acknowledgments are on (RFC 2018).
    pub sack: bool,
    /// Whether RACK is on (RFC 8985).
    pub rack: bool,
    /// Tail loss probes (RFC 8985 §7).
    pub tail_loss_probe: bool,
    /// Whether limited transmit is on (RFC 3042).
    pub limited_transmit: bool,
    /// Explicit congestion notification (RFC 3168).
    pub ecn: bool,
    /// Congestion control: "reno" or "cubic".
    pub congestion: String,
    /// Whether there is congestion control at all.
    pub congestion_control: bool,
    /// "off", or a policy of nodes that sleep.
    pub sleep: String,
    /// Time between requests where the policy is "fixed", s.
    pub sleep_interval_s: f64,
    /// Time between requests at rest where the policy is "hinted", s.
    pub sleep_idle_s: f64,
    /// How long to listen for what was promised, ms.
    pub poll_timeout_ms: u64,
    /// Whether a request brings all that waits.
    pub drain: bool,
    /// Whether data is a request.
    pub data_asks: bool,
    /// Whether frames for children go first.
    pub indirect_priority: bool,
    /// Whether frames for children are tried again soon.
    pub indirect_retries: bool,
    /// Bytes of packets that wait for children.
    pub indirect_bytes: usize,
    /// Bytes of packets that wait for one child; `None`: bounded by `indirect_bytes` alone.
    pub child_bytes: Option<usize>,
    /// How long a child may be silent, s.
    pub child_timeout_s: f64,
}

/// The keys of one `[[flow]]`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FlowSettings {
    /// The kind of traffic.
    pub kind: FlowKind,
    /// The sender.
    pub from: FlowEnd,
    /// The receiver.
    pub to: FlowEnd,
    /// How much; 0: as much as the time allows.
    pub bytes: u64,
    /// Time between two messages or datagrams, s.
    pub interval_s: f64,
    /// Bytes of each message.
    pub message_bytes: usize,
    /// Bytes of an answer.
    pub answer_bytes: usize,
    /// Readings that may wait in the sensor's queue.
    pub queue: usize,
    /// Readings that wait before they are sent.
    pub batch: usize,
    /// When the flow begins, s.
    pub start_s: f64,
    /// The push that the flow is one mote's part of, with kind `push`.
    pub push: Option<PushSettings>,
}

/// What all motes of a push have in common.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct PushSettings {
    /// The place, among the scenario's flows, of the push's first mote.
    pub first: usize,
    /// How many motes it has.
    pub motes: usize,
    /// Which mote gets the image when.
    pub schedule: Schedule,
    /// What carries it.
    pub transport: Transport,
    /// Bytes of a block, over CoAP.
    pub block_bytes: usize,
    /// Frames of a full segment, over TCP.
    pub mss_frames: u8,
}

/// Which mote gets an image when.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// One after another.
    Sequential,
    /// All at once.
    Parallel,
    /// Each from the mote above it.
    Tree,
}

/// What carries an image.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// HTTP over TCP.
    Tcp,
    /// CoAP by Block1 (RFC 7959).
    Coap,
    /// CoAP by Q-Block1 (RFC 9177).
    Qblock,
}

/// The keys of one `[[fault]]`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FaultSettings {
    /// The kind of fault.
    pub kind: FaultKind,
    /// The node that it happens to.
    pub node: usize,
    /// The other end of a link that changes; none of other faults.
    pub to: Option<usize>,
    /// The link's gain both ways, dB.
    pub gain_db: f64,
    /// When the fault begins, s.
    pub at_s: f64,
    /// How long it lasts, s; none: for ever.
    pub for_s: Option<f64>,
}

/// The kinds of fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FaultKind {
    /// A node is switched off.
    Off,
    /// The same, for a moment.
    Reboot,
    /// A link becomes better or worse.
    Link,
}

/// The kinds of traffic.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FlowKind {
    /// As much as TCP takes.
    Bulk,
    /// Messages over TCP.
    Periodic,
    /// Messages over TCP, each answered.
    Request,
    /// Datagrams.
    Udp,
    /// A sensor's readings, in batches.
    Readings,
    /// New firmware.
    Push,
}

impl FlowKind {
    /// As a scenario has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::Periodic => "periodic",
            Self::Request => "request",
            Self::Udp => "udp",
            Self::Readings => "readings",
            Self::Push => "push",
        }
    }
}

impl FlowSettings {
    /// Whether TCP carries it.
    pub fn is_tcp(&self) -> bool {
        match &self.push {
            Some(push) => push.transport == Transport::Tcp,
            None => self.kind != FlowKind::Udp,
        }
    }
}

/// One end of a flow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum FlowEnd {
    /// The wired host.
    Host,
    /// A mesh node.
    Node(usize),
}

impl Scenario {
    /// How long its motes may take to join.
    pub fn join_max(&self) -> Duration {
        seconds(self.timing.join_s)
    }
}

impl StackSettings {
    /// The name of its congestion control.
    pub fn congestion_name(&self) -> &'static str {
        CongestionAlgorithm::named(&self.congestion).map_or("", CongestionAlgorithm::name)
    }

    /// Gives them to a node, but for what sleeps and what runs on it.
    pub(super) fn apply_to_node(&self, node: &mut NodeOptions) {
        node.pace_percent = self.pace_percent;
        node.pacing_step = Duration::from_micros((self.hold_ms * 1e3) as u64);
        self.apply_to_mac(&mut node.mac);
        node.discipline = match self.queue.as_str() {
            "red" => Discipline::Red(Red::MOTE),
            "red-drop" => Discipline::Red(Red::MOTE.dropping()),
            _ => Discipline::DropTail,
        };
        node.relaying = if self.relaying == "reassembly" {
            Relaying::Reassembly
        } else {
            Relaying::Fragments
        };
        if self.forwarding == "cit" {
            node.forwarding = Forwarding::Immediate;
        }
        node.compression = (self.compression != "none").then(tcphc::Mode::default);
        node.agrees_on_compression = self.compression == "auto";
        node.mss_frames = self.mss_frames;
        node.window_segments = self.window_segments;
        node.tables.queue_frames = self.queue_frames;
        node.tables.packet_queue_len = self.packet_queue_bytes;
    }

    fn apply_to_mac(&self, mac: &mut mac::Config) {
        mac.retry_delay_max = Duration::from_millis(self.retry_delay_ms);
        mac.frame_age_max = Duration::from_millis(self.frame_age_ms);
        mac.attempts_max = self.link_attempts;
        mac.be_min = self.be_min;
        mac.be_max = self.be_max;
        mac.csma_backoffs_max = self.csma_backoffs;
        mac.ack_wait = Duration::from_micros(self.ack_wait_us);
        mac.deaf_backoff = self.deaf_backoff;
    }
}

impl StackSettings {
    /// Gives them to the TCP of a node, as far as they are TCP's.
    pub fn apply(&self, config: &mut motet::tcp::Config) {
        config.ack_every = self.ack_every;
        config.ack_delay_ms = self.ack_delay_ms;
        config.initial_window = self.initial_window;
        config.rto_min_ms = self.rto_min_ms;
        config.nagle = self.nagle;
        config.timestamps = self.timestamps;
        config.sack = self.sack;
        config.rack = self.rack;
        config.tail_loss_probe = self.tail_loss_probe;
        config.limited_transmit = self.limited_transmit;
        config.ecn = self.ecn;
        if let Some(algorithm) = CongestionAlgorithm::named(&self.congestion) {
            config.congestion_algorithm = algorithm;
        }
        config.congestion_control = self.congestion_control;
    }
}

impl RadioSettings {
    /// The profile of every node that has none of its own.
    pub(super) fn profile(&self) -> Profile {
        self.profile_of(&self.profile)
    }

    /// The profile as its name has it, without the scenario's changes.
    pub(super) fn unchanged_profile(&self) -> Profile {
        profile_named(&self.profile)
    }

    /// The profile of this name with what the other keys change.
    pub(super) fn profile_of(&self, name: &str) -> Profile {
        let profile = profile_named(name);
        let profile = if self.deaf {
            profile
        } else {
            profile.hearing()
        };
        Profile {
            transmit_dbm: self.transmit_dbm,
            ..profile
        }
    }
}

fn profile_named(name: &str) -> Profile {
    match name {
        "ideal" => Profile::IDEAL,
        "nrf52840" => Profile::NRF52840,
        "rcp" => Profile::RCP,
        "telosb" => Profile::TELOSB,
        _ => Profile::HAMILTON,
    }
}

impl std::fmt::Display for FlowEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Host => f.write_str("host"),
            Self::Node(node) => write!(f, "{node}"),
        }
    }
}

impl Serialize for FlowEnd {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Host => serializer.serialize_str("host"),
            Self::Node(node) => serializer.serialize_u64(*node as u64),
        }
    }
}

impl<'de> Deserialize<'de> for FlowEnd {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "lowercase")]
        enum Name {
            Host,
        }
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum End {
            Node(usize),
            Named(Name),
        }
        Ok(match End::deserialize(deserializer)? {
            End::Node(node) => Self::Node(node),
            End::Named(Name::Host) => Self::Host,
        })
    }
}

/// A time of a scenario's, to the microsecond below.
pub(super) fn seconds(seconds: f64) -> Duration {
    Duration::from_micros((seconds * 1e6) as u64)
}
