//! The limits of a router, and its policy.

use std::fmt;
use std::str::FromStr;

use motet::time::Duration;

/// A router's limits, and its policy.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Config {
    /// The policy by which packets are held.
    pub policy: Policy,
    /// Flows that are known at a time.
    pub flows_max: usize,
    /// Flows of one mote that are known at a time: no mote fills the table alone.
    pub flows_per_mote_max: usize,
    /// Packets that are held at a time.
    pub held_max: usize,
    /// Packets of one flow and direction that are held at a time.
    pub held_per_flow_max: usize,
    /// The most packets of strangers, which belong to no known TCP flow, that wait at a time for
    /// the strangers' share of the air while TCP is in use; further packets are dropped. Zero:
    /// strangers pass at once. Useful beside a border router with one common queue.
    pub strangers_max: usize,
}

/// The policies by which packets are held.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Policy {
    /// None is held: flows are only observed.
    None,
    /// None is held while few flows share the air; where they are a crowd, [`Self::Admission`] as
    /// it sets itself. Acknowledgments show which it is: more than two flows that send as much as
    /// they can, or starve. A crowd stays one for a minute when two flows of it are left.
    #[default]
    Auto,
    /// Flow admission: packets into the mesh wait, so that only a limited number of flows are
    /// inside it.
    Admission(Admission),
    /// TAiM: the packets of all flows leave one at a time, those of the slowest flow first.
    Taim(Taim),
    /// Fair queueing: the packets of all flows leave one at a time, the flows in turn.
    Fq(Fq),
    /// What the mesh loses of a flow into it is sent again from here: see [`Router::poll_copy`].
    /// Each flow has two segments in the mesh at a time, and the others wait.
    ///
    /// [`Router::poll_copy`]: crate::Router::poll_copy
    Relay,
}

/// How flow admission is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Admission {
    /// How many flows may be inside the mesh at a time.
    pub window: Window,
}

/// How many flows may be inside the mesh at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Window {
    /// As many as keep the flows even.
    #[default]
    Adaptive,
    /// This many flows.
    Fixed(u16),
}

/// The settings of TAiM.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Taim {
    /// Whether Algorithm 1 is followed literally; otherwise its faults are corrected.
    pub literal: bool,
    /// Time between two packets at the start: the paper's `Dinit`.
    pub spacing: Duration,
    /// Whether the spacing follows Algorithm 1 each minute, or stays.
    pub adapts: bool,
}

/// How fair queueing is set.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Fq {
    /// Time between two packets that leave.
    pub spacing: Duration,
}

impl Config {
    /// Room for strangers that is enough: a few packets for each queue, of the mesh's longest.
    pub const STRANGERS_MAX: usize = 256;

    /// `policy` within the usual limits.
    pub const fn new(policy: Policy) -> Self {
        Self {
            policy,
            flows_max: 8_192,
            flows_per_mote_max: 64,
            held_max: 16_384,
            held_per_flow_max: 128,
            strangers_max: 0,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self::new(Policy::default())
    }
}

impl Policy {
    /// The names of policies, in scenarios and on the command line.
    pub const NAMES: [&'static str; 7] = [
        "none",
        "auto",
        "admission",
        "taim",
        "taim-literal",
        "fq",
        "relay",
    ];

    /// The policy's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Admission(_) => "admission",
            Self::Taim(Taim { literal: false, .. }) => "taim",
            Self::Taim(Taim { literal: true, .. }) => "taim-literal",
            Self::Fq(_) => "fq",
            Self::Relay => "relay",
        }
    }
}

impl Default for Taim {
    fn default() -> Self {
        Self {
            literal: false,
            spacing: SPACING,
            adapts: true,
        }
    }
}

impl Default for Fq {
    fn default() -> Self {
        Self { spacing: SPACING }
    }
}

/// The paper gives no value for `Dinit`. This one was best in the lab on meshes without loss.
const SPACING: Duration = Duration::from_millis(35);

/// A name that no policy has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnknownPolicy(
    /// The name that is no policy's.
    pub String,
);

impl fmt::Display for UnknownPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Policy::NAMES.join(", ");
        write!(f, "there is no policy `{}`: choose one of {names}", self.0)
    }
}

impl std::error::Error for UnknownPolicy {}

impl FromStr for Policy {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        match name {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            "admission" => Ok(Self::Admission(Admission::default())),
            "taim" => Ok(Self::Taim(Taim::default())),
            "taim-literal" => Ok(Self::Taim(Taim {
                literal: true,
                ..Taim::default()
            })),
            "fq" => Ok(Self::Fq(Fq::default())),
            "relay" => Ok(Self::Relay),
            _ => Err(UnknownPolicy(name.to_owned())),
        }
    }
}
