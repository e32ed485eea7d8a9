//! The settings of a network.

use std::collections::BTreeSet;
use std::net::Ipv6Addr;

use motet::ble::Phy;
use motet::ip::queue::Discipline;
use motet::link::{Forwarding, IndirectConfig, Relaying};
use motet::mac::security::NetworkKey;
use motet::mac::{self, Sleep};
use motet::tcphc;
use motet::thread::CHILD_TIMEOUT;
use motet::time::Duration;
use motet::wire::LinkAddr;
use motet::wire::ieee802154::Level;
use motet_state::KeyName;

use super::tables::Tables;
use crate::air::gains::{Gains, Later};
use crate::air::noise::Noise;
use crate::air::profile::Profile;
use crate::ble;
use crate::keys::JoinSecret;
use crate::net::attack::AttackOptions;
use crate::net::counter_store::CounterStore;
use crate::net::plan;
use crate::net::topology::{self, Station, TopologyError, Tree};
use crate::streams::{Purpose, stream};

/// The settings of a network.
#[derive(Clone, Debug)]
pub struct NetworkOptions {
    /// Every random choice follows from it.
    pub seed: u64,
    /// The mesh's nodes; the first is the border router.
    pub nodes: Vec<NodeOptions>,
    /// The gain between any two of [`Self::nodes`], in their order.
    pub gains: Gains,
    /// Nodes that are never switched on: no path leads from them to the border router.
    pub left_out: BTreeSet<usize>,
    /// Motes that are off until somebody switches them on; nobody waits for them to join.
    pub absent: BTreeSet<usize>,
    /// The changes of the gains while a run goes on; the tree stays.
    pub later: Vec<Later>,
    /// The noise of other systems on the channel.
    pub interference: Option<Interference>,
    /// The hosts beyond the wire; the first gets packets for addresses that none has.
    pub hosts: Vec<HostOptions>,
    /// Chance that a frame received without error is lost nevertheless, ACKs included.
    pub frame_loss: f64,
    /// Chance that a packet is lost at the border router's wired side, either way.
    pub packet_loss: f64,
    /// Chance that a packet is lost between the border router's policy and its mesh, either way.
    pub inner_loss: f64,
    /// How motes get their addresses.
    pub joining: Joining,
    /// The settings of a fair border router; `None`: packets pass in the order of arrival, without
    /// observation.
    pub fairness: Option<motet_taim::Config>,
    /// Whether the border router lets a newer ACK take the place of one that waits there for the
    /// mesh.
    pub thins_acks: bool,
    /// Whether flows that enter the mesh have queues of their own at the border router; otherwise
    /// they share one.
    pub queues_flows: bool,
    /// The Bluetooth LE of nodes that have it ([`NodeOptions::is_ble`]), and of the border router.
    pub ble: Option<BleOptions>,
    /// Link security, where the mesh has a key.
    pub security: Option<SecurityOptions>,
    /// The Thread network, with [`Joining::Thread`]; it has a key of its own.
    pub thread: Option<ThreadOptions>,
    /// The store that keeps the nodes' frame counters from one run to the next; none: each run
    /// begins at the first one, as runs do whose frames follow from their seed.
    pub counter_store: Option<CounterStore>,
    /// Attackers: they put frames on the air without belonging to the mesh.
    pub attackers: Vec<AttackOptions>,
}

/// A Thread network.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ThreadOptions {
    /// The network key.
    pub network: NetworkKey,
    /// The key sequence to begin with.
    pub sequence: u32,
    /// Children that the router has room for.
    pub children_max: usize,
    /// How long the router keeps a child that is silent.
    pub child_timeout: Duration,
}

impl Default for ThreadOptions {
    fn default() -> Self {
        Self {
            network: NetworkKey::of_secret(b"a Thread network of Motet's lab", 0),
            sequence: 0,
            children_max: 64,
            child_timeout: CHILD_TIMEOUT,
        }
    }
}

/// Motes over Bluetooth LE: the border router is a central, and each of them a peripheral of it.
/// All motes of a network may be such, or some of them, beside a mesh.
///
/// Of the [`NodeOptions`] of such a mote hold its name, its window and its tables' places for TCP.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BleOptions {
    /// The PHY, which sets how long a byte takes.
    pub phy: Phy,
    /// The connection interval, in units of 1.25 ms.
    pub interval: u16,
    /// Whether the border router shortens that where packets are lost.
    pub is_adaptive: bool,
    /// Connection events that a mote may leave out while it has nothing to say.
    pub latency: u16,
    /// Whether data packets have a MIC, as encrypted ones do: four bytes more.
    pub has_mic: bool,
    /// How many motes have `TCPlE`, the first ones; where there are any, the border router has it
    /// too, and its interval is the one that holds.
    pub tcple_motes: usize,
    /// The largest error of a device's clock, parts per million. The seed decides each device's
    /// error.
    pub drift_ppm: u16,
    /// The mean signal strength at every receiver, dBm.
    pub rssi_dbm: f64,
    /// The standard deviation of [`Self::rssi_dbm`], dB.
    pub rssi_sigma_db: f64,
    /// The controller of every mote; the border router's has as many buffers for each mote.
    pub profile: ble::Profile,
}

impl BleOptions {
    /// 1 Mb/s, 50 ms, and the controller of an nRF52840.
    pub const DEFAULT: Self = Self {
        phy: Phy::Le1M,
        interval: 40,
        is_adaptive: true,
        latency: 0,
        has_mic: false,
        tcple_motes: 0,
        drift_ppm: 0,
        rssi_dbm: ble::RSSI_DBM,
        rssi_sigma_db: 0.0,
        profile: ble::Profile::NRF52840,
    };
}

/// Link security of a mesh over IEEE 802.15.4.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SecurityOptions {
    /// The network's key.
    pub network: NetworkKey,
    /// Which link key to begin with.
    pub sequence: u32,
    /// How frames are sealed.
    pub level: Level,
    /// After how long the border router takes the next link key; none: as a border router does
    /// otherwise, each 28 days.
    pub rotates_after: Option<Duration>,
    /// The name of the key where its counters are kept.
    pub name: Option<KeyName>,
    /// The cipher, which sets how long encryption takes.
    pub cipher: Cipher,
    /// The secret from which motes' join keys are derived, if motes join by CoJP. `None`: every
    /// node has the network key from the start.
    pub join_secret: Option<JoinSecret>,
}

impl SecurityOptions {
    /// The defaults of motes.
    pub const fn new(network: NetworkKey, sequence: u32) -> Self {
        Self {
            network,
            sequence,
            level: Level::Mic32,
            rotates_after: None,
            name: None,
            cipher: Cipher::Radio,
            join_secret: None,
        }
    }

    /// As these, but motes join by CoJP, with keys that follow from this secret.
    #[must_use]
    pub const fn joined_by(mut self, secret: JoinSecret) -> Self {
        self.join_secret = Some(secret);
        self
    }

    /// As these, with another key.
    #[must_use]
    pub const fn with_key(mut self, network: NetworkKey, sequence: u32) -> Self {
        (self.network, self.sequence, self.name) = (network, sequence, None);
        self
    }

    /// As these, with counters that are kept under the name of what the key follows from: they go
    /// on when another network key follows from it, too.
    #[must_use]
    pub const fn named(mut self, name: KeyName) -> Self {
        self.name = Some(name);
        self
    }

    /// The name of the key.
    pub fn name(&self) -> KeyName {
        self.name
            .unwrap_or_else(|| KeyName::of(self.network.as_bytes()))
    }

    /// The key that a node has.
    pub(super) fn key_of(&self, node: &NodeOptions) -> NetworkKey {
        match node.is_revoked {
            true => NetworkKey::new(*self.network.link_key(u32::MAX).as_bytes()),
            false => self.network,
        }
    }
}

/// The cipher that encrypts frames in the lab's time; their bytes are the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Cipher {
    /// The radio's AES, in line with its buffers.
    #[default]
    Radio,
    /// AES on the processor.
    Software,
}

impl Cipher {
    /// The duration of a call of the cipher, which encrypts two blocks.
    pub fn call(self, profile: &Profile) -> Duration {
        match self {
            // CC2420 data sheet, table 8: a block takes 14 µs. The copy of the frame into the radio
            // is charged separately. No figure was found for the AT86RF233, which also transfers
            // each block over SPI.
            Self::Radio => Duration::from_micros(2 * 14),
            Self::Software => profile.cipher,
        }
    }
}

/// Noise that was recorded, and who hears it.
#[derive(Clone, PartialEq, Debug)]
pub struct Interference {
    /// The recording; runs begin anywhere in it.
    pub noise: Noise,
    /// The nodes that hear it; none: all.
    pub nodes: Vec<usize>,
    /// Whether all hear the same moment of it.
    pub together: bool,
}

impl Interference {
    /// The noise at `node` in the run seeded with `seed`.
    pub(super) fn at(&self, node: usize, seed: u64) -> Option<Noise> {
        let hears = self.nodes.is_empty() || self.nodes.contains(&node);
        // Lossless: nodes have 16-bit numbers.
        let place = if self.together { 0 } else { node as u32 };
        let mut rng = stream(seed, place, Purpose::Interference);
        let shift = rng.next_u64() % self.noise.len().as_micros();
        hears.then(|| self.noise.shifted(Duration::from_micros(shift)))
    }
}

/// One node of the mesh.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// The node's name in errors and reports.
    pub name: String,
    /// The node's next hop towards the border router, which itself has none.
    pub parent: Parent,
    /// Radio and driver; its transmit power is here too.
    pub profile: Profile,
    /// 11 to 26; a mesh that shall hold together is on one.
    pub channel: u8,
    /// Settings of the MAC; identity and channel are set from the node's place in the mesh.
    pub mac: mac::Config,
    /// How packets of several fragments are passed on.
    pub relaying: Relaying,
    /// How a fragment to be passed on gets from one frame into the next.
    pub forwarding: Forwarding,
    /// Frames that a full segment may fill, each way.
    pub mss_frames: u8,
    /// How TCP headers are compressed, where this node is an end of their path; `None`: not.
    pub compression: Option<tcphc::Mode>,
    /// Whether the node agrees on compression with its border router, or with its motes; otherwise
    /// the whole network compresses.
    pub agrees_on_compression: bool,
    /// How much of the wait between two frames to a neighbour that the stack measures, %; 0: it
    /// measures none, and link retries wait for as long as the MAC's settings say.
    pub pace_percent: u8,
    /// Where none is measured: the wait before the next frame to a neighbour, for each hop that the
    /// last one still has to go, by the tree; zero: no wait.
    pub pacing_step: Duration,
    /// How its queue of whole packets is kept short.
    pub discipline: Discipline,
    /// Buffers of a TCP end on this node, in full segments.
    pub window_segments: usize,
    /// Where [`Joining::Rpl`] holds: whether it knows no RPL, and registers with a router that
    /// speaks for it.
    pub is_leaf: bool,
    /// Whether the node does without `TCPlE`, over Bluetooth LE with `TCPlE`.
    pub lacks_tcple: bool,
    /// Whether the mote is a peripheral over Bluetooth LE ([`NetworkOptions::ble`]), and has no
    /// other radio.
    pub is_ble: bool,
    /// How the node sleeps, if it does: only where nobody's packets pass it. The others are then
    /// parents of such nodes.
    pub sleep: Option<Sleep>,
    /// How the node keeps packets for nodes that sleep, where there are any.
    pub indirect: IndirectConfig,
    /// Bytes of the packets that are kept for sleeping nodes.
    pub indirect_len: usize,
    /// Whether the node's datagram tags begin just before they wrap; otherwise they begin anywhere.
    pub tags_wrap: bool,
    /// The host at the node's address: this stack, or the caller, by
    /// [`inject_at`](crate::net::world::World::inject_at) and
    /// [`take_at`](crate::net::world::World::take_at) (needs [`Joining::Static`]). Its packets
    /// count one hop to the node.
    pub transport: Host,
    /// Where the mesh has a key: whether this node has another one, as one that was left behind
    /// when all others got a new one.
    pub is_revoked: bool,
    /// The memory of its tables.
    pub tables: Tables,
}

/// Where a mote's packets go first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Parent {
    /// Along the path of fewest expected transmissions.
    #[default]
    Shortest,
    /// To this mesh node.
    Node(usize),
}

/// A host beyond the wire.
#[derive(Clone, PartialEq, Debug)]
pub struct HostOptions {
    /// The host's name in errors and reports.
    pub name: String,
    /// One-way delay between it and the border router.
    pub delay: Duration,
    /// A node of this world, or the caller's.
    pub kind: Host,
    /// TCP connections it has room for.
    pub connections: usize,
    /// TCP ports it has room to listen on.
    pub listeners: usize,
    /// TCP handshakes it has room for that nobody has accepted yet.
    pub half_open: usize,
    /// Whether its TCP connections have flow labels, as Linux's have.
    pub labels: bool,
    /// The host that this is a part of; none: a host of its own.
    pub part: Option<Part>,
}

/// One more stack behind the address of a host: what listens on more ports than one stack can.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// The host's number.
    pub host: usize,
    /// The first and the last of the TCP ports, at either end, that are this stack's.
    pub ports: [u16; 2],
}

/// The host at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Host {
    /// A node with this stack.
    Virtual,
    /// The caller, with packets: a kernel.
    Outside,
}

/// How motes get addresses, contexts and default routes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Joining {
    /// By router advertisement, hop by hop: [`super::Network::join`] waits for it.
    #[default]
    Advertised,
    /// They have them from the start: large meshes need minutes otherwise.
    Static,
    /// By RPL: motes find their parents themselves, and the border router is the root.
    Rpl,
    /// By MLE: the border router is a Thread router ([`NetworkOptions::thread`]), and all motes are
    /// its children.
    Thread,
}

impl NodeOptions {
    /// A node with `TCPlp`'s hardware and settings.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            parent: Parent::Shortest,
            profile: Profile::HAMILTON,
            channel: plan::CHANNEL,
            mac: mac::Config::new(plan::PAN, [0; 8]),
            relaying: Relaying::Fragments,
            forwarding: Forwarding::Copy,
            mss_frames: 5,
            compression: None,
            agrees_on_compression: false,
            pace_percent: 0,
            pacing_step: Duration::ZERO,
            discipline: Discipline::DropTail,
            window_segments: 4,
            is_leaf: false,
            lacks_tcple: false,
            is_ble: false,
            sleep: None,
            indirect: IndirectConfig::DEFAULT,
            indirect_len: INDIRECT_LEN,
            tags_wrap: false,
            transport: Host::Virtual,
            is_revoked: false,
            tables: Tables::RELAY,
        }
    }

    /// The node as the arithmetic of links and trees sees it.
    pub(crate) fn station(&self) -> Station<'_> {
        Station {
            name: &self.name,
            parent: match self.parent {
                Parent::Shortest => None,
                Parent::Node(parent) => Some(parent),
            },
            transmit_dbm: self.profile.transmit_dbm,
            noise_dbm: self.profile.noise_dbm(),
            channel: self.channel,
        }
    }
}

impl HostOptions {
    /// A simulated host 20 ms away.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            delay: HOST_DELAY,
            kind: Host::Virtual,
            connections: 8,
            listeners: Tables::RELAY.listeners,
            half_open: Tables::RELAY.half_open,
            labels: false,
            part: None,
        }
    }
}

impl NetworkOptions {
    /// A mesh of such nodes with one simulated host.
    pub fn new(nodes: Vec<NodeOptions>, gains: Gains) -> Self {
        Self {
            seed: 1,
            nodes,
            left_out: BTreeSet::new(),
            absent: BTreeSet::new(),
            gains,
            later: Vec::new(),
            interference: None,
            hosts: vec![HostOptions::new("host")],
            frame_loss: 0.0,
            packet_loss: 0.0,
            inner_loss: 0.0,
            joining: Joining::Advertised,
            thread: None,
            fairness: None,
            thins_acks: false,
            queues_flows: true,
            ble: None,
            security: None,
            counter_store: None,
            attackers: Vec::new(),
        }
    }

    /// The link address of mesh node `n`.
    pub(crate) fn link_addr(&self, n: usize) -> LinkAddr {
        // Lossless: nodes have 16-bit numbers.
        let number = n as u16;
        match self.is_ble(n) {
            true => LinkAddr::Device(plan::device_addr(number).bytes),
            false => plan::link_addr(number),
        }
    }

    /// Whether node `n` is on the air of Bluetooth LE alone: such a mote, or the border router of
    /// nothing else.
    pub fn is_ble(&self, n: usize) -> bool {
        match n {
            0 => self.ble.is_some() && !self.has_mesh(),
            _ => self.nodes.get(n).is_some_and(|node| node.is_ble),
        }
    }

    /// Whether there is a mesh of IEEE 802.15.4.
    pub fn has_mesh(&self) -> bool {
        self.ble.is_none() || self.nodes.iter().skip(1).any(|node| !node.is_ble)
    }

    /// Whether the border router has both kinds of radio.
    pub fn is_mixed(&self) -> bool {
        self.ble.is_some() && self.has_mesh()
    }

    /// The prefixes of 64 bits that motes have addresses under, where the mesh has this one.
    pub fn prefixes(&self, prefix: Ipv6Addr) -> Vec<Ipv6Addr> {
        let over_ble = self.is_mixed().then(|| plan::prefix_over_ble(prefix));
        std::iter::once(prefix).chain(over_ble).collect()
    }

    /// How many motes are on the air of Bluetooth LE.
    pub fn ble_motes(&self) -> usize {
        self.nodes.iter().filter(|node| node.is_ble).count()
    }

    /// The address of node `n` where the mesh has this prefix of 64 bits; of a border router, on
    /// its mesh if it has one.
    pub(crate) fn addr(&self, prefix: Ipv6Addr, n: usize) -> Ipv6Addr {
        let prefix = match n > 0 && self.is_ble(n) && self.is_mixed() {
            true => plan::prefix_over_ble(prefix),
            false => prefix,
        };
        plan::addr_of(prefix, self.link_addr(n))
    }

    /// Whether any node sleeps.
    pub fn has_sleepers(&self) -> bool {
        self.nodes.iter().any(|node| node.sleep.is_some())
    }

    /// The address of host `number`: of the host that it is part of.
    pub(crate) fn host_addr(&self, number: usize) -> Ipv6Addr {
        let part = self.hosts.get(number).and_then(|host| host.part);
        plan::host_addr(part.map_or(number, |part| part.host))
    }

    /// The tree that [`super::Network::new`] would build.
    ///
    /// # Errors
    /// [`TopologyError`], naming the node.
    pub fn tree(&self) -> Result<Tree, TopologyError> {
        match self.is_mixed() {
            // The air of IEEE 802.15.4 has nothing of motes that are on the other one.
            true => {
                let gains = self.gains.apart(|n| n > 0 && self.is_ble(n), Some(0.0));
                topology::tree(&self.stations(), &gains, &self.left_out)
            }
            false => topology::tree(&self.stations(), &self.gains, &self.left_out),
        }
    }

    /// The nodes from which no path leads to the border router.
    pub fn without_path(&self) -> BTreeSet<usize> {
        topology::without_path(&self.stations(), &self.gains)
    }

    fn stations(&self) -> Vec<Station<'_>> {
        self.nodes.iter().map(NodeOptions::station).collect()
    }
}

/// Every mote hears the border router and is heard by it: gains for a network over Bluetooth LE,
/// which does not use the air of 802.15.4.
pub fn star(motes: usize) -> Gains {
    Gains::from_fn(motes + 1, |from, to| match from == 0 || to == 0 {
        true => 0.0,
        false => f64::NEG_INFINITY,
    })
}

/// Two windows of four segments and as much again; with the packet being cut up and the children
/// below 8 KiB.
const INDIRECT_LEN: usize = 6 * 1_024;

/// One way: decides at how many segments a larger window stops to help (`TCPlp` Fig 5).
pub const HOST_DELAY: Duration = Duration::from_millis(20);
