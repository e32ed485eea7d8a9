//! What every command with a mesh in real time has in common: the options of a chain, and the
//! time in which its motes find each other before anything else happens.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};
use motet::{
    ble::Phy,
    link::Forwarding,
    mac::{
        Channels, Pending, Policy, Sleep,
        config::{FRAME_AGE_MAX, RETRY_DELAY_MAX},
        poll::REST_REACHABLE,
    },
    tcp::{Config, CongestionAlgorithm},
    tcphc,
    time::Duration,
};
use motet_lab::{
    air::profile::Profile,
    capture::Records,
    net::chain::{ChainOptions, HOPS_MAX, Host},
    net::network::{self, BleOptions, NetworkOptions, SecurityOptions},
    net::pacing::{self, Pacing},
    net::world::World,
};

use crate::{
    error::Error,
    interrupt::Interrupt,
    keys,
    number::{probability, whole},
};

/// The chain of motes and its air. Flatten it last: its heading holds for what follows.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Mesh and air")]
pub(crate) struct ChainArgs {
    /// Radio hops between the mote and the border router [default: 3; 1 with ble]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = whole::<u16>(1..=HOPS_MAX.into()))]
    hops: Option<u16>,

    /// Lose each frame with this probability, 0 to 1, on top of what the air does
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_negative_numbers = true, value_parser = probability)]
    pub(crate) frame_loss: f64,

    /// Lose each packet with this probability, 0 to 1, beyond the border router
    #[arg(long, value_name = "P", default_value_t = 0.0, allow_negative_numbers = true, value_parser = probability)]
    pub(crate) packet_loss: f64,

    /// Let every node hear every other: no hidden terminals
    #[arg(long)]
    pub(crate) no_hidden: bool,

    /// Let radios listen while a frame is copied into them
    #[arg(long)]
    pub(crate) no_deaf: bool,

    /// Let each node measure the pace between frames, and the border router thin ACKs; or take the
    /// pace from --hold and --retry-delay [default: auto; off with one of these]
    #[arg(long, value_name = "auto|off", value_enum, hide_possible_values = true)]
    pub(crate) pacing: Option<Pace>,

    /// Wait a random time up to this before a link retry, at most 2000: a frame may not get
    /// older [default with --pacing off: 40; 10 with cit]
    #[arg(long, value_name = "MS", allow_negative_numbers = true, value_parser = whole::<u32>(0..=FRAME_AGE_MAX.as_millis()))]
    pub(crate) retry_delay: Option<u32>,

    /// Size of a full TCP segment, in frames
    #[arg(long, value_name = "N", default_value_t = MSS_FRAMES, allow_negative_numbers = true, value_parser = whole::<u8>(1..=12))]
    pub(crate) mss_frames: u8,

    /// Compress TCP headers in the mesh: tcphc or none
    #[arg(long, value_name = "tcphc|none", value_enum, default_value_t = Compression::None, hide_possible_values = true)]
    pub(crate) compression: Compression,

    /// Radio and driver of every mote; telosb where relays are to forward without copies, else
    /// hamilton; ble: Bluetooth LE, one hop
    #[arg(
        long,
        value_name = "hamilton|telosb|nrf52840|ble",
        value_enum,
        hide_possible_values = true
    )]
    pub(crate) radio: Option<RadioKind>,

    /// Over Bluetooth LE: how fast symbols are, 1 or 2 Mb/s [default: 1M]
    #[arg(long, value_name = "1M|2M", value_enum, hide_possible_values = true)]
    phy: Option<PhyKind>,

    /// Over Bluetooth LE: time from one connection event to the next, 7.5 to 4000, in steps of
    /// 1.25 [default: 50, and less where frames are lost]
    #[arg(long, value_name = "MS", allow_negative_numbers = true, value_parser = interval)]
    interval: Option<u16>,

    /// Over Bluetooth LE: TCPlE, on a second channel; it sets the interval itself
    #[arg(long)]
    tcple: bool,

    /// How relays get a fragment from frame to frame: by copies, or without them (CIT)
    #[arg(long, value_name = "copy|cit", value_enum, default_value_t = RelayKind::Copy, hide_possible_values = true)]
    pub(crate) forwarding: RelayKind,

    /// One channel for all, or a home channel for each node
    #[arg(long, value_name = "single|multi", value_enum, default_value_t = ChannelPlan::Single, hide_possible_values = true)]
    pub(crate) channels: ChannelPlan,

    /// Keep the next frame to a neighbour this long for each hop that the last one still goes
    /// [default with --pacing off: 0; 3 to 7 with cit, by hops and channels]
    #[arg(long, value_name = "MS", allow_negative_numbers = true, value_parser = hold_ms)]
    pub(crate) hold: Option<f64>,

    /// Buffers of each TCP end, in full segments [default: 4; 8 with cit, 16 with ble]
    #[arg(long, value_name = "SEGMENTS", allow_negative_numbers = true, value_parser = whole::<u8>(1..=32))]
    pub(crate) window: Option<u8>,

    /// Let the mote sleep, and ask its parent for what waits there: at an interval (fixed:SECONDS);
    /// as TCPlp's study did, each 240 s at rest (paper); at 20 ms to 5 s, by what comes (adaptive);
    /// or when TCP expects an answer, and at rest each SECONDS (hinted:SECONDS; hinted is
    /// hinted:60). The first packet to a mote at rest waits up to that interval; Linux gives up a
    /// connection after 127 s
    #[arg(long, value_name = "POLICY", value_parser = sleep_policy)]
    pub(crate) sleep: Option<Policy>,

    /// Congestion control of simulated TCP ends: New Reno or CUBIC
    #[arg(long, value_name = "reno|cubic", value_enum, default_value_t = Congestion::Reno, hide_possible_values = true)]
    pub(crate) congestion: Congestion,

    /// Encrypt and authenticate every frame in the mesh with the key in this file (motet keys new)
    #[arg(long, value_name = "FILE")]
    pub(crate) key: Option<PathBuf>,

    /// Folder that keeps the frame counters of the key from one run to the next: a key has one, and
    /// a run at a time [default: $STATE_DIRECTORY, else ~/.local/state/motet]
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,

    /// Seed of every random choice in the air and the motes [default: 1]
    #[arg(
        long,
        value_name = "S",
        allow_negative_numbers = true,
        value_parser = whole::<u64>(0..=u64::MAX)
    )]
    pub(crate) seed: Option<u64>,
}

/// How the pace of frames is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Pace {
    Auto,
    Off,
}

/// Which radio the motes have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum RadioKind {
    Hamilton,
    #[value(name = "telosb")]
    TelosB,
    Nrf52840,
    Ble,
}

/// How fast symbols of Bluetooth LE are.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum PhyKind {
    #[value(name = "1M")]
    Le1M,
    #[value(name = "2M")]
    Le2M,
}

/// How relays forward.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum RelayKind {
    Copy,
    Cit,
}

/// What channels a mesh uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum ChannelPlan {
    Single,
    Multi,
}

/// How the congestion window answers a loss, and how it grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Congestion {
    Reno,
    Cubic,
}

impl Congestion {
    /// What the stack calls it.
    pub(crate) const fn algorithm(self) -> CongestionAlgorithm {
        match self {
            Self::Reno => CongestionAlgorithm::NewReno,
            Self::Cubic => CongestionAlgorithm::Cubic,
        }
    }
}

/// What the TCP of a simulated end does differently.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tune {
    change: fn(&mut Config),
    congestion: Congestion,
}

impl Tune {
    /// Nothing.
    pub(crate) const NONE: Self = Self {
        change: |_| {},
        congestion: Congestion::Reno,
    };

    pub(crate) fn apply(self, config: &mut Config) {
        (self.change)(config);
        config.congestion_algorithm = self.congestion.algorithm();
    }
}

/// What becomes of TCP headers in the mesh.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Compression {
    Tcphc,
    None,
}

impl Compression {
    fn mode(self) -> Option<tcphc::Mode> {
        match self {
            Self::Tcphc => Some(tcphc::Mode::Default),
            Self::None => None,
        }
    }
}

impl ChainArgs {
    /// The seed, where no scenario has another.
    pub(crate) fn seed(&self) -> u64 {
        self.seed.unwrap_or(1)
    }

    /// The records that the capture of this chain's air consists of.
    pub(crate) fn records(&self) -> Records {
        // A frame does not carry the number of its channel.
        match self.channels {
            _ if self.is_ble() => Records::Bluetooth,
            ChannelPlan::Single => Records::Frames,
            ChannelPlan::Multi => Records::TappedFrames,
        }
    }

    /// Radio hops.
    pub(crate) fn hops(&self) -> u16 {
        match self.is_ble() {
            true => 1,
            false => self.hops.unwrap_or(HOPS),
        }
    }

    fn is_ble(&self) -> bool {
        self.radio == Some(RadioKind::Ble)
    }

    /// Bluetooth LE, where that is the radio.
    fn ble(&self) -> Option<BleOptions> {
        let defaults = BleOptions::DEFAULT;
        self.is_ble().then(|| BleOptions {
            phy: self.phy(),
            interval: self.interval(),
            is_adaptive: self.interval.is_none(),
            tcple_motes: if self.tcple { usize::MAX } else { 0 },
            ..defaults
        })
    }

    /// Whether TCPlE is there.
    pub(crate) const fn has_tcple(&self) -> bool {
        self.tcple
    }

    /// How fast symbols of Bluetooth LE are.
    pub(crate) fn phy(&self) -> Phy {
        match self.phy {
            Some(PhyKind::Le2M) => Phy::Le2M,
            Some(PhyKind::Le1M) | None => Phy::Le1M,
        }
    }

    /// From one connection event to the next, in units of 1.25 ms.
    pub(crate) fn interval(&self) -> u16 {
        self.interval.unwrap_or(BleOptions::DEFAULT.interval)
    }

    /// What the key makes of the mesh's frames, where one is named.
    ///
    /// # Errors
    /// [`Error::Input`] where the key cannot be read.
    pub(crate) fn security(&self) -> Result<Option<SecurityOptions>, Error> {
        let keys = self.key.as_deref().map(keys::read).transpose()?;
        Ok(keys.map(|keys| SecurityOptions::new(keys.network, keys.sequence).named(keys.name)))
    }

    /// The mesh that the options describe, its host outside.
    ///
    /// # Errors
    /// As [`Self::security`].
    pub(crate) fn network(&self) -> Result<NetworkOptions, Error> {
        let options = self.options(Host::Outside, self.security()?);
        Ok(options.network())
    }

    /// The chain that the options describe, with `host` at the wire's end.
    ///
    /// `security`: [`Self::security`].
    pub(crate) fn options(&self, host: Host, security: Option<SecurityOptions>) -> ChainOptions {
        let mut options = ChainOptions {
            hops: self.hops(),
            seed: self.seed(),
            frame_loss: self.frame_loss,
            packet_loss: self.packet_loss,
            hidden: !self.no_hidden,
            deaf: !self.no_deaf,
            mss_frames: self.mss_frames,
            compression: self.compression.mode(),
            profile: self.profile(),
            forwarding: match self.forwarding {
                RelayKind::Copy => Forwarding::Copy,
                RelayKind::Cit => Forwarding::Immediate,
            },
            channels: match self.channels {
                ChannelPlan::Single => Channels::SINGLE,
                ChannelPlan::Multi => Channels::ALL,
            },
            host,
            ble: self.ble(),
            sleep: self.sleep.map(Sleep::new),
            security,
            ..ChainOptions::default()
        };
        if self.is_immediate() {
            let pacing = Pacing::best(options.hops, options.forwarding, options.channels);
            options = pacing.on(options);
        }
        if self.is_paced() {
            options.pace_percent = 100;
            options.thins_acks = true;
            options.hold_step = Duration::ZERO;
            options.retry_delay = RETRY_DELAY_MAX;
        }
        if self.is_ble() {
            options.window_segments = BLE_WINDOW_SEGMENTS;
        }
        if let Some(ms) = self.retry_delay {
            options.retry_delay = Duration::from_millis(ms.into());
        }
        if let Some(ms) = self.hold {
            options.hold_step = Duration::from_micros((ms * 1e3) as u64);
        }
        if let Some(segments) = self.window {
            options.window_segments = segments.into();
        }
        options
    }

    /// Whether relays forward without copies.
    fn is_immediate(&self) -> bool {
        self.forwarding == RelayKind::Cit && !self.profile().capabilities.shared_buffer
    }

    /// Whether nodes find their pace: unless it is set by hand, or the radio has none.
    fn is_paced(&self) -> bool {
        match self.pacing {
            Some(pacing) => pacing == Pace::Auto,
            None => !self.is_ble() && !self.is_paced_by_hand(),
        }
    }

    fn is_paced_by_hand(&self) -> bool {
        self.hold.is_some() || self.retry_delay.is_some()
    }

    /// What the TCP of a simulated receiver does differently.
    pub(crate) fn receiver(&self) -> Tune {
        self.tune(pacing::receiver)
    }

    /// What the TCP of a simulated sender does differently.
    pub(crate) fn sender(&self) -> Tune {
        self.tune(pacing::sender)
    }

    /// `pacing`: what else an end does differently where relays forward without copies.
    fn tune(&self, pacing: fn(&mut Config)) -> Tune {
        Tune {
            change: if self.is_immediate() { pacing } else { |_| {} },
            congestion: self.congestion,
        }
    }
}

impl ChainArgs {
    fn profile(&self) -> Profile {
        match (self.radio, self.forwarding) {
            (Some(RadioKind::Hamilton | RadioKind::Ble), _) | (None, RelayKind::Copy) => {
                Profile::HAMILTON
            }
            (Some(RadioKind::TelosB), _) | (None, RelayKind::Cit) => Profile::TELOSB,
            (Some(RadioKind::Nrf52840), _) => Profile::NRF52840,
        }
    }

    /// # Errors
    /// [`Error::Input`] for relays that must not copy, with a radio that cannot do without; for
    /// options that the radio has no use for; for a pace that is set both ways.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.is_ble() {
            if self.tcple && self.interval.is_some() {
                return Err(Error::input(
                    "TCPlE sets the interval itself: leave out --interval or --tcple",
                ));
            }
            return match self.foreign_to_ble() {
                Some(option) => Err(Error::input(format!(
                    "{option} is an option of IEEE 802.15.4: leave it out with --radio ble"
                ))),
                None => Ok(()),
            };
        }
        if self.phy.is_some() || self.interval.is_some() || self.tcple {
            return Err(Error::input(
                "--phy, --interval and --tcple are options of Bluetooth LE: name --radio ble, or leave them out",
            ));
        }
        if self.forwarding == RelayKind::Cit && !self.is_immediate() {
            return Err(Error::input(
                "this radio has one buffer for both directions, so its relays have to copy: name \
                 --radio telosb, which has two, or leave out --forwarding cit",
            ));
        }
        if self.is_paced() && self.is_paced_by_hand() {
            return Err(Error::input(
                "with --pacing auto no time is set by hand: leave out --hold and --retry-delay",
            ));
        }
        let radio = self.profile().capabilities;
        if self.sleep.is_some() && radio.auto_ack && radio.pending == Pending::None {
            return Err(Error::input(
                "with this radio no parent can say that something waits, so no mote can sleep: name \
                 --radio hamilton or nrf52840, or leave out --sleep",
            ));
        }
        Ok(())
    }

    /// The first option that is there and has no meaning for Bluetooth LE.
    fn foreign_to_ble(&self) -> Option<&'static str> {
        let options = [
            (self.hops.is_some_and(|hops| hops > 1), "--hops above 1"),
            (self.no_hidden, "--no-hidden"),
            (self.no_deaf, "--no-deaf"),
            (self.retry_delay.is_some(), "--retry-delay"),
            (self.mss_frames != MSS_FRAMES, "--mss-frames"),
            (self.compression != Compression::None, "--compression"),
            (self.forwarding != RelayKind::Copy, "--forwarding"),
            (self.channels != ChannelPlan::Single, "--channels"),
            (self.pacing.is_some(), "--pacing"),
            (self.hold.is_some(), "--hold"),
            (self.sleep.is_some(), "--sleep"),
            (self.key.is_some(), "--key"),
            (self.state.is_some(), "--state"),
        ];
        let mut given = options.into_iter().filter(|(is_given, _)| *is_given);
        given.next().map(|(_, option)| option)
    }

    /// Advice for a chain in which nothing arrives any more.
    pub(crate) fn advice(&self) -> &'static str {
        let has_losses = self.frame_loss > 0.0 || self.packet_loss > 0.0;
        // Frames that are held for so long are too old by the time when they may go.
        match self.hold {
            Some(ms) if ms > HOLD_USUAL_MAX_MS => "lower --hold",
            _ if has_losses => "lower the losses or --hops",
            _ => "lower --hops",
        }
    }
}

/// A connection interval in ms, in units of 1.25 ms.
fn interval(text: &str) -> Result<u16, String> {
    let units = text.parse::<f64>().map(|ms| ms / 1.25);
    match units {
        Ok(units) if (6.0..=3_200.0).contains(&units) && units.fract() == 0.0 => Ok(units as u16),
        _ => Err("a connection interval is 7.5 to 4000 ms, in steps of 1.25 ms".to_owned()),
    }
}

/// A policy of a mote that sleeps, as the command line names it.
fn sleep_policy(text: &str) -> Result<Policy, String> {
    let seconds = |text: &str| {
        let seconds = text.parse::<f64>().ok()?;
        let is_allowed = (SLEEP_MIN_S..=SLEEP_MAX_S).contains(&seconds);
        is_allowed.then(|| Duration::from_micros((seconds * 1e6) as u64))
    };
    match text.split_once(':') {
        None if text == "paper" => Ok(Policy::Paper),
        None if text == "adaptive" => Ok(Policy::Adaptive),
        None if text == "hinted" => Ok(Policy::Hinted(REST_REACHABLE)),
        Some((name @ ("fixed" | "hinted"), text)) => {
            let interval = seconds(text).ok_or_else(|| {
                format!("the interval must be {SLEEP_MIN_S} to {SLEEP_MAX_S} seconds")
            })?;
            Ok(match name {
                "fixed" => Policy::Fixed(interval),
                _ => Policy::Hinted(interval),
            })
        }
        _ => Err("must be fixed:SECONDS, paper, adaptive, hinted or hinted:SECONDS".to_owned()),
    }
}

/// The shortest and the longest interval of a mote that sleeps, s: one frame's exchange, and half
/// the time that its parent keeps it.
const SLEEP_MIN_S: f64 = 0.01;
const SLEEP_MAX_S: f64 = 300.0;

fn hold_ms(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1_000.0).contains(&value) => Ok(value),
        _ => Err("the hold is 0 to 1000 ms".to_owned()),
    }
}

/// Brings a mesh up, in virtual time: every mote among the first `nodes` nodes of `world` finds
/// its address and route within `limit`, at one time or another: in a large mesh there is hardly a
/// moment without a mote that changes its parent.
///
/// # Errors
/// When motes do not: which, and what each one lacks, with `advice` if there is any; when a signal
/// comes.
pub(crate) fn join(
    world: &mut World<'_>,
    nodes: usize,
    limit: Duration,
    advice: &str,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let give_up = world.now() + limit;
    let mut arrivals = network::Arrivals::default();
    while !network::arrive(world, &mut arrivals, nodes, LOOK_EVERY) {
        interrupt.check()?;
        // Time passes even when nothing happens.
        let next = world.now() + LOOK_EVERY;
        world.run_until(next);
        if next > give_up {
            let missing = arrivals.describe_missing(world, nodes);
            let advice = match advice {
                "" => String::new(),
                advice => format!("; {advice}"),
            };
            return Err(Error::failed(format!(
                "not all motes found a way to the border router within {} s: {missing}{advice}",
                limit.as_millis() / 1_000
            )));
        }
    }
    interrupt.check()
}

/// Buffers of a TCP end over Bluetooth LE, where nobody says how large: the host is 20 ms away, and
/// at 2 Mb/s the air carries five segments meanwhile, there and back.
const BLE_WINDOW_SEGMENTS: usize = 16;

/// Hops of a chain, where nobody says how many.
const HOPS: u16 = 3;

/// Frames of a full segment, where nobody says how many.
const MSS_FRAMES: u8 = 5;

/// The longest hold that is of any use: a full frame goes one hop in 7 ms.
const HOLD_USUAL_MAX_MS: f64 = 50.0;

/// How long the motes of a chain may take to find the border router. Some 0.3 s a hop where
/// nothing is lost.
pub(crate) const JOIN_MAX: Duration = Duration::from_secs(120);

/// Advice for a chain whose motes do not find the border router in time.
pub(crate) const JOIN_ADVICE: &str = "lower --frame-loss, --hold or --hops";

/// Virtual time between two looks for a signal.
const LOOK_EVERY: Duration = Duration::from_secs(1);
