//! The setting of a run: a chain, and changes to TCP's settings.
//!
//! Purpose: a published figure names a topology and a window; a [`Setup`] holds both, and computes
//! the length of a full segment and the bound of the radio. Left out: constants of the air, which
//! all settings share; flows, see `traffic`; the meaning of keys and their contradictions, which
//! are [`crate::scenario`]'s for experiments and files alike.

use std::net::Ipv6Addr;

use motet::mac::Policy;
use motet::mac::config::RETRY_DELAY_MAX;
use motet::tcp::Config;
use motet::tcphc;
use motet::time::Duration;

use crate::Arena;
use crate::air::gains::{ChainAir, Gains};
use crate::air::profile::Profile;
use crate::net::chain::Chain;
use crate::net::network::{NetworkOptions, NodeOptions, Parent, SecurityOptions};
use crate::net::pacing::Pacing;
use crate::net::plan;
use crate::scenario::{Document, Scenario};

use super::run::{Failure, JOIN_LIMIT};

/// A setting of the stack on a chain. The air is the calibrated one, always.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The chain, in a scenario's keys. TCP's hold for [`super::flows`]; the host's rule for ACKs
    /// for the estimate, too.
    document: Document,
    /// Settings for which a scenario has no key.
    pub beyond: SettingsWithoutKey,
    /// Buffers of a receiving mote, in segments, where they are not those of the sender.
    pub receiver_segments: Option<usize>,
    /// Changes to the TCP of the senders.
    pub sender: Tune,
    /// Changes to the TCP of the receivers.
    pub receiver: Tune,
}

/// The settings of a chain that no key of a scenario has.
#[derive(Clone, Copy, Default, Debug)]
pub struct SettingsWithoutKey {
    /// A radio that differs from all that have names.
    pub profile: Option<Profile>,
    /// A mode of header compression other than the default one.
    pub compression: Option<tcphc::Mode>,
    /// A key that is in no file.
    pub security: Option<SecurityOptions>,
}

/// The full segment of a setting, and the radio's bound.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Segment {
    /// Application bytes; of bulk packets, the frame.
    pub payload_len: usize,
    /// The goodput that no run can exceed, kb/s, where that is known.
    pub bound: Option<f64>,
    /// The goodput by the papers' arithmetic, kb/s, where that is no bound.
    pub estimate: Option<f64>,
}

impl Segment {
    /// The segment of no setting.
    pub const NONE: Self = Self {
        payload_len: 0,
        bound: None,
        estimate: None,
    };
}

/// A change of TCP's settings.
pub type Tune = fn(&mut Config);

impl Setup {
    /// `TCPlp`'s: `hops` hops upwards, MSS of five frames, window of four segments, retries after
    /// up to 40 ms.
    pub fn hops(hops: u16) -> Self {
        let document = Document::new().with("topology.chain", i64::from(hops));
        Self::of(document.with(RETRY_DELAY_KEY, RETRY_DELAY_MS))
    }

    /// `hops` hops upwards with everything as users have it that set nothing: headers as both ends
    /// agree, the border router's own policy, the host of today.
    pub fn unset(hops: u16) -> Self {
        let document = Document::new().with("topology.chain", i64::from(hops));
        let document = document.with("stack.compression", "auto");
        Self {
            document: document.with("router.policy", "auto"),
            ..Self::hops(hops)
        }
    }

    /// A chain that a document describes.
    ///
    /// Its host acknowledges every second segment or after 40 ms, begins with RFC 5681's window and
    /// has New Reno, unless the document says otherwise: the setting that the published tables were
    /// made with.
    pub fn of(document: Document) -> Self {
        let document = fixed_host(document);
        Self {
            document,
            beyond: SettingsWithoutKey::default(),
            receiver_segments: None,
            sender: as_it_is,
            receiver: as_it_is,
        }
    }

    /// With this key of a scenario.
    #[must_use]
    pub fn with(mut self, path: &str, value: impl Into<toml::Value>) -> Self {
        self.document = self.document.with(path, value);
        self
    }

    /// With this longest delay of link retries.
    #[must_use]
    pub fn retry_delay_ms(self, ms: u64) -> Self {
        self.with(RETRY_DELAY_KEY, ms as i64)
    }

    /// The setup with buffers of `segments` segments.
    #[must_use]
    pub fn window_segments(self, segments: usize) -> Self {
        self.with("stack.window_segments", segments as i64)
    }

    /// With header compression in the default mode.
    #[must_use]
    pub fn compressed(self) -> Self {
        self.with("stack.compression", "tcphc")
    }

    /// With a pace that nodes measure, of which so much counts, %; ACKs that enter the mesh are
    /// thinned or not.
    #[must_use]
    pub fn measured(mut self, percent: u8, thins_acks: bool) -> Self {
        self.document = self.document.without(RETRY_DELAY_KEY);
        self.with("stack.pace_percent", i64::from(percent))
            .with("router.thin_acks", thins_acks)
    }

    /// With a mote that sleeps so.
    #[must_use]
    pub fn asleep(self, policy: Policy) -> Self {
        let seconds = |interval: Duration| interval.as_micros() as f64 / 1e6;
        match policy {
            Policy::Fixed(interval) => self
                .with("stack.sleep", "fixed")
                .with("stack.sleep_interval_s", seconds(interval)),
            Policy::Paper => self.with("stack.sleep", "paper"),
            Policy::Adaptive => self.with("stack.sleep", "adaptive"),
            Policy::Hinted(rest) => self
                .with("stack.sleep", "hinted")
                .with("stack.sleep_idle_s", seconds(rest)),
        }
    }

    /// With these settings of a chain.
    #[must_use]
    pub fn paced(mut self, pacing: &Pacing) -> Self {
        self.document = self.document.paced(pacing);
        self
    }

    /// Buffers of a TCP end, in full segments.
    pub fn window(&self) -> usize {
        let scenario = self.scenario();
        let stacks = scenario.map(|scenario| scenario.stacks);
        stacks.map_or(0, |stacks| stacks[0].window_segments)
    }

    /// The mote at the far end, as many hops away as its number says.
    pub fn mote(&self) -> usize {
        let hops = self.document.get("topology.chain");
        hops.and_then(toml::Value::as_integer).unwrap_or_default() as usize
    }

    /// The network of a run with this seed.
    ///
    /// # Errors
    /// Keys that do not go together.
    pub fn network(&self, seed: u64) -> Result<NetworkOptions, Failure> {
        let mut network = self.scenario()?.network;
        network.seed = seed;
        for node in &mut network.nodes {
            node.profile = self.beyond.profile.unwrap_or(node.profile);
            node.compression = self.beyond.compression.or(node.compression);
        }
        network.security = self.beyond.security;
        if self.document.get("router.policy").is_none() {
            // The published tables were made without a policy.
            network.fairness = None;
        }
        Ok(network)
    }

    /// The scenario that the keys make.
    ///
    /// # Errors
    /// As [`Self::network`].
    pub(super) fn scenario(&self) -> Result<Scenario, Failure> {
        let scenario = self.document.scenario();
        let mut scenario = scenario.map_err(|error| Failure::Topology(error.to_string()))?;
        if self.document.get("stack.compression").is_none() {
            // The published tables were made without, unless they say so.
            let agreeing = scenario.network.nodes.iter_mut();
            for node in agreeing.filter(|node| node.agrees_on_compression) {
                node.compression = None;
            }
        }
        Ok(scenario)
    }

    /// A full segment of the flow between mote and host, and the bound of its goodput by the radio
    /// in a run that measures for `seconds`, from the lab's own frame times.
    pub fn segment(&self, seconds: u64) -> Segment {
        self.segment_to(plan::HOST, seconds)
    }

    /// The same of the flow between mote and `peer`: host, or the chain's other end.
    ///
    /// The papers' arithmetic takes mean backoffs, and over more hops adds up the times of three,
    /// although backoffs and copies of one overlap with frames of another: an estimate, which good
    /// settings exceed.
    pub(super) fn segment_to(&self, peer: Ipv6Addr, seconds: u64) -> Segment {
        let arena = Arena::new();
        let every = self.scenario().map(|scenario| scenario.wire.ack_every());
        let (Ok(network), Ok(every)) = (self.network(1), every) else {
            return Segment::NONE;
        };
        let Ok(mut chain) = Chain::of(network, every, &arena) else {
            return Segment::NONE;
        };
        chain.join(JOIN_LIMIT);
        let [sender, receiver] = [self.sender, self.receiver].map(|tune| {
            let mut config = Config::default();
            tune(&mut config);
            config
        });
        let timestamps = sender.timestamps && receiver.timestamps;
        let every = receiver.ack_every.max(every);
        let path = chain.path_to(peer, timestamps, Some(every));
        let bound = path.map(|path| {
            let segments = chain.window_segments() as u64;
            path.of_seconds_kbps(seconds, segments * path.segment.payload_len as u64)
        });
        Segment {
            payload_len: chain.segment_payload_len(),
            bound,
            estimate: Some(chain.estimate_kbps()),
        }
    }
}

/// Adds a mote beside node `of` of a chain, with the same parent.
///
/// The two motes sense each other, and have the same distance to all other nodes.
pub(super) fn add_sibling(options: &mut NetworkOptions, of: usize) {
    let sibling = options.nodes.len();
    options.nodes.push(NodeOptions {
        name: "sibling".into(),
        parent: Parent::Node(of - 1),
        ..options.nodes[of].clone()
    });
    let place = |node| if node == sibling { of } else { node };
    options.gains = Gains::along(sibling + 1, place, ChainAir::CALIBRATED);
}

/// The longest wait before a link retry, `TCPlp`'s, ms.
const RETRY_DELAY_KEY: &str = "stack.retry_delay_ms";
const RETRY_DELAY_MS: i64 = RETRY_DELAY_MAX.as_millis() as i64;

/// With the host of the published tables, where the document names none.
fn fixed_host(document: Document) -> Document {
    let keys: [(&str, toml::Value); 4] = [
        ("wire.host_ack_every", 2.into()),
        ("wire.host_ack_delay_ms", 40.into()),
        ("wire.initial_window", 0.into()),
        ("wire.congestion", "reno".into()),
    ];
    keys.into_iter().fold(document, |document, (path, value)| {
        match document.get(path) {
            Some(_) => document,
            None => document.with(path, value),
        }
    })
}

/// Changes nothing.
pub fn as_it_is(_: &mut Config) {}
