//! A mote that sleeps, and one that keeps packets for others that do.

use core::fmt;

use motet::limits::MESH_PACKET_LEN_MAX;
use motet::link::{Child, Indirect, IndirectConfig, Link};
use motet::mac::{Policy, Sleep};
use motet::time::Instant;
use static_cell::{ConstStaticCell, StaticCell};

use crate::runner::{Radio, Runner};
use crate::stack::{LINK, Stack};

/// Why a mote cannot sleep as it was asked to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SleepError {
    /// The mote passes on the packets of others, or keeps packets for motes that sleep.
    PassesOn,
    /// The time between requests is zero.
    NoInterval,
    /// The time for which it listens for a promised packet is zero.
    NoAnswerTimeout,
}

impl SleepError {
    /// The reason in words.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::PassesOn => "a mote that passes packets on or keeps them for others cannot sleep",
            Self::NoInterval => "the time between requests is zero",
            Self::NoAnswerTimeout => "the time to listen for a promised packet is zero",
        }
    }
}

impl fmt::Display for SleepError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl core::error::Error for SleepError {}

/// Why a mote cannot keep packets for others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ServeError {
    /// The radio sends ACKs by itself and cannot set their frame pending bit
    /// ([`RadioCapabilities::pending`](crate::mac::RadioCapabilities::pending)).
    NoPending,
    /// The mote sleeps itself.
    Sleeps,
}

impl ServeError {
    /// The reason in words.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NoPending => "the radio cannot say in its ACKs that something waits",
            Self::Sleeps => "a mote that sleeps cannot keep packets for others",
        }
    }
}

impl fmt::Display for ServeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl core::error::Error for ServeError {}

/// The memory of a mote that keeps packets for neighbours that sleep, for one static. `CHILDREN`:
/// such neighbours; `BYTES`: of packets that wait for them, with seven more for each packet.
pub struct Sleepers<const CHILDREN: usize, const BYTES: usize> {
    memory: ConstStaticCell<Memory<CHILDREN, BYTES>>,
    indirect: StaticCell<Indirect<'static>>,
}

struct Memory<const CHILDREN: usize, const BYTES: usize> {
    children: [Child; CHILDREN],
    packets: [u8; BYTES],
    outgoing: [u8; MESH_PACKET_LEN_MAX],
}

impl<const CHILDREN: usize, const BYTES: usize> Sleepers<CHILDREN, BYTES> {
    /// Memory that no mote uses yet. It takes no flash.
    #[expect(
        clippy::new_without_default,
        reason = "it is for a static, which needs a constant"
    )]
    pub const fn new() -> Self {
        Self {
            memory: ConstStaticCell::new(Memory {
                children: [const { Child::EMPTY }; CHILDREN],
                packets: [0; BYTES],
                outgoing: [0; MESH_PACKET_LEN_MAX],
            }),
            indirect: StaticCell::new(),
        }
    }
}

impl<const CHILDREN: usize, const BYTES: usize> fmt::Debug for Sleepers<CHILDREN, BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sleepers").finish_non_exhaustive()
    }
}

impl<R: Radio> Runner<R> {
    /// Keeps packets for neighbours that sleep, from before the mote runs. It has to be a router of
    /// its mesh: [`ip::Config::forwards`](motet::ip::Config::forwards) is set,
    /// [`MeshConfig::solicits`](motet::link::MeshConfig::solicits) is not,
    /// [`Node::start_rpl`](motet::node::Node::start_rpl) is called, and the
    /// [`Resources`](crate::Resources) have `REGISTRATIONS` for its neighbours.
    ///
    /// # Errors
    /// [`ServeError`]; the memory is not used then.
    ///
    /// # Panics
    /// When `memory` is in use already.
    pub fn serve_sleepers<const CHILDREN: usize, const BYTES: usize>(
        &mut self,
        memory: &'static Sleepers<CHILDREN, BYTES>,
        config: IndirectConfig,
    ) -> Result<(), ServeError> {
        let radio = self.radio.capabilities();
        if !radio.says_pending() {
            return Err(ServeError::NoPending);
        }
        let mut state = self.stack.state();
        let Some(Link::Mesh(mesh)) = state.node.link_mut(LINK) else {
            return Ok(());
        };
        if mesh.mac().sleep().is_some() {
            return Err(ServeError::Sleeps);
        }
        let Memory {
            children,
            packets,
            outgoing,
        } = memory.memory.take();
        let indirect = Indirect::new(config, children, packets, outgoing);
        mesh.serve_sleepers(memory.indirect.init(indirect));
        Ok(())
    }
}

impl Stack {
    /// Makes the mote sleep, or with `None` stay awake, from now on. Its receiver stays on until a
    /// router has answered and become its parent. It asks that one at the times of the policy, by
    /// frames of its own: the application asks nothing.
    ///
    /// # Errors
    /// [`SleepError`]; nothing has changed then.
    pub fn set_sleep(self, sleep: Option<Sleep>) -> Result<(), SleepError> {
        if let Some(sleep) = &sleep {
            check(sleep)?;
        }
        if sleep.is_some() && self.passes_on() {
            return Err(SleepError::PassesOn);
        }
        let mut state = self.state();
        let Some(Link::Mesh(mesh)) = state.node.link_mut(LINK) else {
            return Ok(());
        };
        if sleep.is_some() && mesh.indirect().is_some() {
            return Err(SleepError::PassesOn);
        }
        mesh.set_sleep(sleep);
        state.kick();
        Ok(())
    }

    /// Says that the answer to a datagram comes by `until` or not at all: until then a mote that
    /// sleeps asks its parent ten times a second, where its policy is [`Policy::Hinted`] or
    /// [`Policy::Paper`]. `None`: no answer is expected any more. What TCP expects the mote knows.
    pub fn expect_answer(self, until: Option<embassy_time::Instant>) {
        let mut state = self.state();
        let until = until.map(|until| Instant::from_micros(until.as_micros()));
        state.node.expect_answer(until);
        state.kick();
    }
}

const fn check(sleep: &Sleep) -> Result<(), SleepError> {
    let interval = match sleep.policy {
        Policy::Fixed(interval) | Policy::Hinted(interval) => Some(interval),
        Policy::Paper | Policy::Adaptive => None,
    };
    if let Some(interval) = interval
        && interval.as_micros() == 0
    {
        return Err(SleepError::NoInterval);
    }
    if sleep.answer_timeout.as_micros() == 0 {
        return Err(SleepError::NoAnswerTimeout);
    }
    Ok(())
}
