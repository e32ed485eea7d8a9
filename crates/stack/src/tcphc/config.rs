//! Settings of one end of compressed paths.

use crate::time::Duration;

/// Settings, the same for a whole network but for `end`.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// Which fields may be left out.
    pub mode: Mode,
    /// Which end of compressed paths this node is.
    pub end: End,
    /// The time after a start in which connections open without compression, since a peer may still
    /// use contexts from before a reboot. Zero if there was no earlier start.
    pub quiet: Duration,
    /// Whether every link discards frames older than 10 s and than 8,192 timestamp ticks;
    /// otherwise 16 bits do not prove which period a number belongs to, and 32 are sent.
    pub frames_expire: bool,
    /// Contexts that one remote node may take; the others of its connections are plain.
    pub contexts_per_remote: u8,
    /// Whether the two ends of a connection agree on compression; otherwise the whole network has
    /// it, and this node compresses towards everybody. Agreed, a mote compresses only towards its
    /// border router and the hosts beyond, while it has heard its router's offer
    /// ([`Mesh::set_tcphc`](crate::link::Mesh::set_tcphc)); a border router only where the mote has
    /// sent such a header in the same connection.
    pub learned: bool,
}

impl Config {
    /// A mote's, in a network that has it everywhere.
    pub const DEFAULT: Self = Self {
        mode: Mode::Default,
        end: End::Mote,
        quiet: REUSE_AFTER,
        frames_expire: true,
        contexts_per_remote: 8,
        learned: false,
    };

    /// A mote's that compresses where its border router offers it. A border router whose motes may
    /// sleep takes these with [`End::Router`] and without `frames_expire`: packets for motes that
    /// sleep wait for longer than frames live.
    pub const AGREED: Self = Self {
        learned: true,
        ..Self::DEFAULT
    };
}

impl Default for Config {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// How much may be left out. The format and the decompressor are the same in all but the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Mode {
    /// Payload never lands at a wrong offset and no value comes out that was never sent,
    /// whatever is lost, duplicated or reordered; an overtaken acknowledgment may come out as
    /// a later one.
    #[default]
    Default,
    /// Exact whatever is lost, on paths that keep the order.
    InOrder,
    /// Exact, or dropped, whatever is reordered.
    Strict,
    /// The draft's own rule, which misreads after a mere loss; to reproduce the paper only.
    Draft,
}

/// Which end of compressed paths a node is. It decides from which half of the context
/// identifiers an end chooses, so that two ends that open at once never choose the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum End {
    /// A node of the 6LoWPAN.
    #[default]
    Mote,
    /// A router that stands for hosts outside.
    Router,
}

/// How long an identifier, or a connection that is over, rests.
pub(super) const REUSE_AFTER: Duration = Duration::from_secs(120);
