//! One crowd at work: its network, its connections, and what became of them.

use std::sync::Arc;

use anyhow::{Result, anyhow, bail, ensure};
use motet::time::{Duration, Instant};
use motet_lab::Arena;
use motet_lab::apps::{self, App};
use motet_lab::net::fairness::Fairness;
use motet_lab::net::network::{Host, HostOptions, Network, NetworkOptions};
use motet_lab::net::plan;
use motet_lab::net::topology::Tree;
use motet_lab::streams::{Purpose, stream};
use motet_taim::Config;

use super::{CrowdRun, Fate, FlowRun, Occupant, Setting};
use crate::air::{Air, Flow, HOST_PORT, Line, Size};
use crate::endpoint::{MSS, Stack};
use crate::transfer::{Sender, content};

/// Runs one crowd, and measures `length` of virtual time, handshakes included.
///
/// # Errors
/// The network cannot be built, bytes differ from those sent, or the packets that left the border
/// router's policy are not those that entered it.
pub fn run(setting: &Setting, length: Duration) -> Result<CrowdRun> {
    let from = Instant::ORIGIN + setting.scene.late;
    let until = from + length;
    let contents = Contents::new(setting, until);
    let arena = Arena::new();
    let options = setting.network()?;
    let tree = options.tree()?;
    let network = Network::new(options, &arena)?;
    let ends = |mote| network.ends(mote, plan::HOST, &arena);
    let ends = (0..=setting.motes()).map(ends).collect();
    let mut crowd = Crowd {
        setting,
        contents: &contents,
        ends,
        arena: &arena,
        air: Air::new(network.world),
        until,
    };
    let starts = setting.starts();
    let (early, late) = starts.split_at(starts.partition_point(|(at, _)| *at < from));
    crowd.begin(early);
    crowd.air.run_until(from);
    let before = crowd.read();
    crowd.begin(late);
    let half = Duration::from_micros(length.as_micros() / 2);
    crowd.air.run_until(from + half);
    let halves = crowd.read();
    crowd.air.run_until(until);
    crowd.judged([&before, &halves], &tree, length)
}

/// A crowd at work.
struct Crowd<'m, 'c> {
    setting: &'c Setting,
    contents: &'c Contents,
    /// Settings and memory of Motet's own motes, by mote.
    ends: Vec<apps::Ends<'m>>,
    arena: &'m Arena,
    air: Air<'m, 'c>,
    until: Instant,
}

impl Crowd<'_, '_> {
    /// Lets motes begin at their times.
    fn begin(&mut self, starts: &[(Instant, usize)]) {
        for (at, mote) in starts {
            self.air.run_until(*at);
            let line = self.setting.line(*mote);
            let content = self.contents.of(*mote);
            if line.sender.is_none() {
                let (bytes, to) = (Arc::<[u8]>::from(content), (plan::HOST, line.port));
                let sender = apps::Sender::new(bytes, to, self.ends[*mote]);
                self.air.world.add_app(*mote, App::Sender(sender));
            }
            let sender = Sender::new(content, self.until);
            self.air.connect(&line, sender, self.arena);
        }
    }

    /// How many bytes of each flow the host has read.
    fn read(&self) -> Vec<usize> {
        self.air.flows.iter().map(Flow::received).collect()
    }

    /// What became of the flows. `before`, `half`: what the host had read when the measured time
    /// began, and when half of it was over.
    fn judged(
        mut self,
        [before, half]: [&[usize]; 2],
        tree: &Tree,
        length: Duration,
    ) -> Result<CrowdRun> {
        let world = &mut self.air.world;
        world.end_fairness();
        let is_balanced = world.fairness().is_none_or(Fairness::is_balanced);
        ensure!(is_balanced, "the policy has lost a packet, or made one");
        let mut flows = Vec::new();
        for (number, flow) in self.air.flows.iter_mut().enumerate() {
            let at = |read: &[usize]| read.get(number).copied().unwrap_or(0);
            let mote = flow.line.mote;
            let occupant = self.setting.occupant(mote);
            if let Some(at) = flow.receiver.differs_from(self.contents.of(mote)) {
                bail!("mote {mote}: byte {at} is not the one that was sent");
            }
            let apps = self.air.world.apps(mote);
            let bytes = flow.received() - at(before);
            flows.push(FlowRun {
                mote,
                occupant,
                hops: tree.depth(mote),
                goodput_kbps: bytes as f64 * 8.0 / length.as_millis() as f64,
                fate: match flow.has_given_up() || apps.iter().any(has_given_up) {
                    true => Fate::GaveUp,
                    false if flow.received() == at(half) => Fate::Silent,
                    false => Fate::Lives,
                },
                retransmitted: occupant.stack().map(|_| flow.sender.retransmitted()),
            });
        }
        Ok(CrowdRun::judged(self.setting.seed, flows))
    }
}

/// What motes send.
struct Contents {
    all: Vec<u8>,
    /// Bytes of each mote's.
    len: usize,
}

impl Contents {
    /// More than any mote can send until then.
    fn new(setting: &Setting, until: Instant) -> Self {
        let seconds = until.since(Instant::ORIGIN).as_secs() as usize;
        let len = seconds * BYTES_PER_SECOND_MAX;
        let all = content(len + setting.motes() * CONTENT_SHIFT, setting.seed);
        Self { all, len }
    }

    /// A mote's: at no place the bytes of another one.
    fn of(&self, mote: usize) -> &[u8] {
        &self.all[mote * CONTENT_SHIFT..][..self.len]
    }
}

impl Setting {
    fn motes(&self) -> usize {
        self.scene.place.motes().into()
    }

    fn occupant(&self, mote: usize) -> Occupant {
        self.occupants[(mote - 1) % self.occupants.len()]
    }

    /// The place's network, with the caller at the motes that are not Motet's and at the host.
    fn network(&self) -> Result<NetworkOptions> {
        let options = self.scene.place.network(self.radio, self.seed);
        let mut options = options.map_err(|error| anyhow!("{error}"))?;
        options.hosts = vec![HostOptions {
            kind: Host::Outside,
            ..HostOptions::new("host")
        }];
        options.fairness = Some(Config::new(self.policy));
        for (mote, node) in options.nodes.iter_mut().enumerate().skip(1) {
            if self.occupant(mote).stack().is_some() {
                node.transport = Host::Outside;
                // What compresses TCP headers is Motet's.
                node.compression = None;
            }
        }
        Ok(options)
    }

    /// When each mote begins, and which: the command to start takes a while to reach all.
    fn starts(&self) -> Vec<(Instant, usize)> {
        let start = |mote: usize| {
            // Lossless: places have a few motes.
            let mut rng = stream(self.seed, mote as u32, Purpose::Application);
            let late = match mote.is_multiple_of(2) {
                true => self.scene.late,
                false => Duration::ZERO,
            };
            (Instant::ORIGIN + late + rng.uniform(SIGNAL_WITHIN), mote)
        };
        let mut starts: Vec<_> = (1..=self.motes()).map(start).collect();
        starts.sort_unstable();
        starts
    }

    fn line(&self, mote: usize) -> Line {
        // Lossless: places have a few motes.
        let number = mote as u16;
        Line {
            mote,
            addr: plan::mesh_addr(number),
            port: HOST_PORT + number,
            sender: self.occupant(mote).stack(),
            receiver: Stack::Motet,
            is_upwards: true,
            sizes: SIZES,
            seed: self.seed << SEED_SHIFT | u64::from(number),
        }
    }
}

/// Whether an application's connection is over.
fn has_given_up(app: &App<'_>) -> bool {
    matches!(app, App::Sender(sender) if sender.progress.closed)
}

/// More than a radio carries in a second, bytes.
const BYTES_PER_SECOND_MAX: usize = 16_000;

/// How far the bytes of one flow are moved against those of the mote before, bytes.
const CONTENT_SHIFT: usize = 64;

/// Bits of a stack's seed that tell motes of a run apart.
const SEED_SHIFT: u32 = 16;

/// Of a mote's end as where nothing is set, and of a host's. A window of as many of the mote's
/// own segments would not do for the host: those of a mote that compresses headers are longer, and
/// of four only three fit.
const SIZES: [Size; 2] = [
    Size {
        mss: MSS,
        window_segments: 4,
    },
    Size {
        mss: 1_220,
        window_segments: 16,
    },
];

const SIGNAL_WITHIN: Duration = Duration::from_secs(1);
