//! What every command with a mesh in real time has in common: the options of a chain, and the
//! time in which its motes find each other before anything else happens.

use clap::{Args as ClapArgs, ValueEnum};
use motet::{
    link::Forwarding,
    mac::{Channels, config::FRAME_AGE_MAX},
    tcp::{Config, CongestionAlgorithm},
    tcphc,
    time::Duration,
};
use motet_lab::{
    air::profile::Profile,
    capture::Records,
    net::chain::{ChainOptions, HOPS_MAX, Host},
    net::network,
    net::pacing::{self, Pacing},
    net::world::World,
};

use crate::{
    error::Error,
    interrupt::Interrupt,
    number::{probability, whole},
};

/// The chain of motes and its air. Flatten it last: its heading holds for what follows.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Mesh and air")]
pub(crate) struct ChainArgs {
    /// Radio hops between the mote and the border router
    #[arg(long, value_name = "N", default_value_t = 3, allow_negative_numbers = true, value_parser = whole::<u16>(1..=HOPS_MAX.into()))]
    pub(crate) hops: u16,

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

    /// Wait a random time up to this before a link retry, at most 2000: a frame may not get
    /// older [default: 40; 10 with cit]
    #[arg(long, value_name = "MS", allow_negative_numbers = true, value_parser = whole::<u32>(0..=FRAME_AGE_MAX.as_millis()))]
    pub(crate) retry_delay: Option<u32>,

    /// Size of a full TCP segment, in frames
    #[arg(long, value_name = "N", default_value_t = 5, allow_negative_numbers = true, value_parser = whole::<u8>(1..=12))]
    pub(crate) mss_frames: u8,

    /// Compress TCP headers in the mesh: tcphc or none
    #[arg(long, value_name = "tcphc|none", value_enum, default_value_t = Compression::None, hide_possible_values = true)]
    pub(crate) compression: Compression,

    /// Radio and driver of every mote; telosb where relays are to forward without copies, else
    /// hamilton
    #[arg(
        long,
        value_name = "hamilton|telosb|nrf52840",
        value_enum,
        hide_possible_values = true
    )]
    pub(crate) radio: Option<RadioKind>,

    /// How relays get a fragment from frame to frame: by copies, or without them (CIT)
    #[arg(long, value_name = "copy|cit", value_enum, default_value_t = RelayKind::Copy, hide_possible_values = true)]
    pub(crate) forwarding: RelayKind,

    /// One channel for all, or a home channel for each node
    #[arg(long, value_name = "single|multi", value_enum, default_value_t = ChannelPlan::Single, hide_possible_values = true)]
    pub(crate) channels: ChannelPlan,

    /// Keep the next frame to a neighbour this long for each hop that the last one still goes
    /// [default: 0; 3 to 7 with cit, by hops and channels]
    #[arg(long, value_name = "MS", allow_negative_numbers = true, value_parser = hold_ms)]
    pub(crate) hold: Option<f64>,

    /// Buffers of each TCP end, in full segments [default: 4; 8 with cit]
    #[arg(long, value_name = "SEGMENTS", allow_negative_numbers = true, value_parser = whole::<u8>(1..=32))]
    pub(crate) window: Option<u8>,

    /// Congestion control of simulated TCP ends: New Reno or CUBIC
    #[arg(long, value_name = "reno|cubic", value_enum, default_value_t = Congestion::Reno, hide_possible_values = true)]
    pub(crate) congestion: Congestion,

    /// Seed of every random choice in the air and the motes [default: 1]
    #[arg(
        long,
        value_name = "S",
        allow_negative_numbers = true,
        value_parser = whole::<u64>(0..=u64::MAX)
    )]
    pub(crate) seed: Option<u64>,
}

/// Which radio the motes have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum RadioKind {
    Hamilton,
    #[value(name = "telosb")]
    TelosB,
    Nrf52840,
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
            ChannelPlan::Single => Records::Frames,
            ChannelPlan::Multi => Records::TappedFrames,
        }
    }

    /// The chain that the options describe, with `host` at the wire's end.
    pub(crate) fn options(&self, host: Host) -> ChainOptions {
        let mut options = ChainOptions {
            hops: self.hops,
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
            ..ChainOptions::default()
        };
        if self.is_immediate() {
            let pacing = Pacing::best(options.hops, options.forwarding, options.channels);
            options = pacing.on(options);
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
            (Some(RadioKind::Hamilton), _) | (None, RelayKind::Copy) => Profile::HAMILTON,
            (Some(RadioKind::TelosB), _) | (None, RelayKind::Cit) => Profile::TELOSB,
            (Some(RadioKind::Nrf52840), _) => Profile::NRF52840,
        }
    }

    /// # Errors
    /// [`Error::Input`] for relays that must not copy, with a radio that cannot do without.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.forwarding == RelayKind::Cit && !self.is_immediate() {
            return Err(Error::input(
                "this radio has one buffer for both directions, so its relays have to copy: name \
                 --radio telosb, which has two, or leave out --forwarding cit",
            ));
        }
        Ok(())
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

fn hold_ms(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1_000.0).contains(&value) => Ok(value),
        _ => Err("the hold is 0 to 1000 ms".to_owned()),
    }
}

/// Brings a mesh up, in virtual time: every mote among the first `nodes` nodes of `world` finds
/// its address and route within `limit`.
///
/// # Errors
/// When a mote does not, with `advice`; when a signal comes.
pub(crate) fn join(
    world: &mut World<'_>,
    nodes: usize,
    limit: Duration,
    advice: &str,
    interrupt: &Interrupt,
) -> Result<(), Error> {
    let give_up = world.now() + limit;
    while !network::join(world, nodes, LOOK_EVERY) {
        interrupt.check()?;
        // Time passes even when nothing happens.
        let next = world.now() + LOOK_EVERY;
        world.run_until(next);
        if next > give_up {
            return Err(Error::failed(format!(
                "the motes found no way to the border router, {advice}"
            )));
        }
    }
    interrupt.check()
}

/// The longest hold that is of any use: a full frame goes one hop in 7 ms.
const HOLD_USUAL_MAX_MS: f64 = 50.0;

/// How long the motes of a chain may take to find the border router. Some 0.3 s a hop where
/// nothing is lost.
pub(crate) const JOIN_MAX: Duration = Duration::from_secs(120);

/// Advice for a chain whose motes do not find the border router in time.
pub(crate) const JOIN_ADVICE: &str = "lower --frame-loss, --hold or --hops";

/// Virtual time between two looks for a signal.
const LOOK_EVERY: Duration = Duration::from_secs(1);
