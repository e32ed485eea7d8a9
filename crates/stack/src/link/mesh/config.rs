//! Settings of a mesh link, above its MAC.

use crate::ip::ndp::Advertised;
use crate::ip::queue::Discipline;
use crate::mac::{self, RadioCapabilities, Unfit};
use crate::time::Duration;
use crate::wire::LinkAddr;

/// How a relay passes on a packet of several fragments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Relaying {
    /// Each fragment as it comes (RFC 8930): little memory, little delay.
    #[default]
    Fragments,
    /// Only whole packets, which RED counts one by one; of fragments it counts the frames.
    Reassembly,
}

/// How a relay gets a fragment from the frame it came in into the one it leaves by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Forwarding {
    /// The processor copies the fragment: the next hop waits for two copies.
    #[default]
    Copy,
    /// The fragment waits in the radio for the next one, whose arrival fires it
    /// ([`crate::mac::Mac::enqueue_conditional`]). A radio with one buffer copies all the same; one
    /// that assesses the channel or takes ACKs by itself is refused ([`Unfit::Immediate`]).
    Immediate,
}

/// Settings of a [`Mesh`](super::Mesh) link.
#[derive(Clone, Copy, Debug)]
pub struct MeshConfig {
    /// How packets of other nodes are passed on.
    pub relaying: Relaying,
    /// How fragments of other nodes' packets get from frame to frame.
    pub forwarding: Forwarding,
    /// Frames that a full TCP segment may fill, each way; 0: as many as a packet may.
    ///
    /// More frames spread the headers, but one lost frame costs the whole segment: goodput
    /// rises little beyond five (TCPlp §6.1).
    pub mss_frames: u8,
    /// The only router to accept, where the tree is fixed by hand.
    pub parent: Option<LinkAddr>,
    /// Whether to look for a router. A border router is its mesh's router and does not.
    pub solicits: bool,
    /// Whether addresses are registered on this link (RFC 6775 as amended by RFC 8505): this
    /// node's with its router, and its neighbours' with this node where it forwards and has memory
    /// for them. Without, its messages are those of RFC 4861 with contexts.
    pub registers: bool,
    /// The information to advertise from the start; a relay advertises what it learns.
    pub advertised: Option<Advertised>,
    /// How long a neighbour is left alone after it has acknowledged a frame; by default the time is
    /// measured ([`Pacing::MEASURED`]).
    pub pacing: Pacing,
    /// How the queue of whole packets is kept short. It does not concern this node's own packets.
    /// Where the pace is measured, a crowded relay marks packets, also its own, whatever the
    /// discipline.
    pub discipline: Discipline,
}

impl MeshConfig {
    /// Whether a radio can do what these settings, and those of its MAC, ask for.
    ///
    /// # Errors
    /// What it cannot do.
    pub const fn check(&self, mac: &mac::Config, radio: &RadioCapabilities) -> Result<(), Unfit> {
        if radio.is_offloading() && matches!(self.forwarding, Forwarding::Immediate) {
            return Err(Unfit::Immediate);
        }
        radio.check(mac)
    }
}

/// After a neighbour has acknowledged a frame, the next frame for it waits until the first frame
/// should be out of earshot, so that frames of one path do not collide.
///
/// The wait is measured where [`Self::pace_percent`] asks for it; the module `pace` describes how.
/// Otherwise it is set by hand: (min(hops left, 3) − 1) times [`Self::step`].
///
/// The number of hops left comes from routing: upwards the rank in hops, downwards the depth of the
/// subtree below this node. The hop limit of packets cannot be used, since each source chooses its
/// own. If routing does not know the number, frames do not wait. Where the wait is measured, a
/// border router also rests between frames of what it sends down; the module `rests` describes why.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pacing {
    /// Part of the measured wait, %; 0: the wait is not measured. Use it together with doubling
    /// retries ([`retry_doubles`](crate::mac::Config::retry_doubles)). A build without the feature
    /// `pace` measures none, and uses [`Self::step`].
    pub pace_percent: u8,
    /// If the wait is not measured: the time for one frame to travel one hop; zero: no wait. A full
    /// frame takes 7 ms, copies and the mean backoff included, less the part that overlaps with
    /// this node's own work.
    pub step: Duration,
    /// Hops from this node to the border router: for frames to the router of the default route over
    /// this link.
    pub hops_up: u8,
    /// Hops from here to the farthest node below: frames to every other neighbour. With RPL it is
    /// taken from the source route of the last packet down.
    pub hops_down: u8,
}

impl Pacing {
    /// The measured wait, whole. RPL finds out how far frames go; without it
    /// [`hops_up`](Self::hops_up) and [`hops_down`](Self::hops_down) are settings. Until one of
    /// them is known, nothing waits.
    pub const MEASURED: Self = Self {
        pace_percent: if IS_PACED { 100 } else { 0 },
        step: Duration::ZERO,
        hops_up: 0,
        hops_down: 0,
    };

    pub(super) const fn is_measured(&self) -> bool {
        IS_PACED && self.pace_percent > 0
    }

    /// Stores the number of hops that a packet still has to go downwards, from its source route: no
    /// router below the root has another source for it.
    pub(super) const fn note_down(&mut self, hops: Option<u8>) {
        if let Some(hops) = hops {
            self.hops_down = hops;
        }
    }

    pub(super) const fn hops(&self, is_router: bool) -> u8 {
        if is_router {
            self.hops_up
        } else {
            self.hops_down
        }
    }

    /// Whether there may be motes that do not hear this node and send to its neighbours: it is the
    /// border router, and packets go over more than one hop, or, with RPL, once went.
    pub(super) const fn has_hidden(&self) -> bool {
        self.hops_up == 0 && self.hops_down > 1
    }

    /// How long to hold frames to a neighbour that has just acknowledged one.
    pub(super) fn after(&self, is_router: bool) -> Duration {
        let ahead = self.hops(is_router).min(HOPS_IN_EARSHOT).saturating_sub(1);
        self.step.saturating_mul(u64::from(ahead))
    }
}

/// Whether this build measures its pace.
const IS_PACED: bool = cfg!(feature = "pace");

/// A frame, its forwarding and the forwarding after that exclude each other (TCPlp §7.2).
const HOPS_IN_EARSHOT: u8 = 3;

/// The settings of a [`MeshConfig`] that are needed after the start.
#[derive(Debug)]
pub(crate) struct MeshSettings {
    pub(crate) relaying: Relaying,
    pub(crate) forwarding: Forwarding,
    pub(crate) mss_frames: u8,
    pub(crate) pacing: Pacing,
    pub(crate) discipline: Discipline,
}

impl MeshSettings {
    pub(super) const fn of(config: &MeshConfig) -> Self {
        Self {
            relaying: config.relaying,
            forwarding: config.forwarding,
            mss_frames: config.mss_frames,
            pacing: config.pacing,
            discipline: config.discipline,
        }
    }
}

impl Default for MeshConfig {
    fn default() -> Self {
        Self {
            relaying: Relaying::Fragments,
            forwarding: Forwarding::Copy,
            mss_frames: 5,
            parent: None,
            solicits: true,
            registers: true,
            advertised: None,
            pacing: Pacing::MEASURED,
            discipline: Discipline::DropTail,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_neighbour_is_left_alone_while_its_forwards_are_in_earshot() {
        let pacing = |hops_up, hops_down| Pacing {
            step: Duration::from_millis(7),
            hops_up,
            hops_down,
            ..Pacing::default()
        };
        for (hops, ms) in [(0, 0), (1, 0), (2, 7), (3, 14), (4, 14), (255, 14)] {
            let expected = Duration::from_millis(ms);
            assert_eq!(pacing(hops, 0).after(true), expected, "{hops} hops up");
            assert_eq!(pacing(0, hops).after(false), expected, "{hops} hops down");
        }
        assert_eq!(Pacing::default().after(true), Duration::ZERO);
    }
}
