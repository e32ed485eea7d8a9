//! Which of the held packets go now.
//!
//! Each policy keeps its own state for each flow, by the flow's place in the table. The router
//! calls the policy for each arriving packet, to decide whether it is held, and then repeatedly for
//! the flow whose first held packet leaves next. No policy lets a packet wait for longer than
//! [`HOLD_MAX`].

mod admission;
mod answers;
mod heavy_flows;
mod paced;
mod relay;
mod share;
mod turn;

use motet::time::{Duration, Instant};

use self::admission::Gate;
use self::paced::Pacer;
pub(crate) use self::relay::{Relay, Verdict};
use crate::config::Policy;
use crate::flow::{Flow, HeldPacket, SegmentEffect};
use crate::flows::{FlowId, Flows};
use crate::segment::{Direction, Segment};

/// A policy with its state.
#[derive(Debug)]
pub(crate) enum Rule {
    None,
    Admission(Gate),
    Paced(Pacer),
    /// It decides by packets: the router asks it itself.
    Relay(Relay),
}

impl Rule {
    pub(crate) fn new(policy: Policy) -> Self {
        match policy {
            Policy::None => Self::None,
            Policy::Auto => Self::Admission(Gate::auto()),
            Policy::Admission(admission) => Self::Admission(Gate::new(admission)),
            Policy::Taim(taim) => Self::Paced(Pacer::taim(taim)),
            Policy::Fq(fq) => Self::Paced(Pacer::fq(fq)),
            Policy::Relay => Self::Relay(Relay::default()),
        }
    }

    /// Whether a segment of this flow may have to wait: only where many flows contend, and
    /// those alone.
    pub(crate) fn holds(&self, id: FlowId, segment: &Segment) -> bool {
        match self {
            Self::None | Self::Relay(_) => false,
            Self::Admission(gate) => gate.holds(id, segment),
            Self::Paced(pacer) => pacer.holds(id),
        }
    }

    /// Takes note of a segment that has come.
    pub(crate) fn on_segment(
        &mut self,
        id: FlowId,
        flow: &Flow,
        segment: &Segment,
        news: &SegmentEffect,
        now: Instant,
    ) {
        match self {
            Self::None | Self::Relay(_) => {}
            Self::Admission(gate) => gate.on_segment(id, flow, segment, news, now),
            Self::Paced(pacer) => pacer.on_segment(id, flow, segment, (news, now)),
        }
    }

    /// Whether an arriving segment passes at once, if no packet of its flow is held.
    pub(crate) fn admits(&mut self, id: FlowId, now: Instant) -> bool {
        match self {
            Self::None | Self::Relay(_) => true,
            Self::Admission(gate) => gate.admits(id, now),
            Self::Paced(pacer) => pacer.admits(now),
        }
    }

    /// A segment that it admitted has gone. `is_news`: the other end has anything new by it.
    pub(crate) fn on_pass(
        &mut self,
        id: FlowId,
        flow: &Flow,
        segment: &Segment,
        is_news: bool,
        now: Instant,
    ) {
        match self {
            Self::None | Self::Relay(_) => {}
            Self::Admission(gate) => gate.on_pass(id, flow, is_news, now),
            Self::Paced(pacer) => {
                let size = (flow.segments(segment), segment.packet_len as u64);
                pacer.on_pass(id, size, now);
            }
        }
    }

    /// A packet waits from now on.
    pub(crate) fn on_held(&mut self, id: FlowId, flow: &Flow, direction: Direction, now: Instant) {
        match self {
            Self::None | Self::Relay(_) => {}
            Self::Admission(gate) => gate.on_held(id, flow, now),
            Self::Paced(pacer) => pacer.on_held(id, direction, now),
        }
    }

    /// A packet waits no more. `is_news`: the other end has anything new by it.
    pub(crate) fn on_released(
        &mut self,
        id: FlowId,
        flow: &Flow,
        (direction, is_news): (Direction, bool),
        packet: &HeldPacket,
        now: Instant,
    ) {
        match self {
            Self::None => {}
            Self::Relay(relay) => relay.on_released(id, now),
            Self::Admission(gate) => gate.on_released(id, flow, (packet, is_news), now),
            Self::Paced(pacer) => pacer.on_released(id, flow, direction, packet, now),
        }
    }

    /// A flow without held packets is removed.
    pub(crate) fn on_forgotten(&mut self, id: FlowId) {
        match self {
            Self::None => {}
            Self::Relay(relay) => relay.on_forgotten(id),
            Self::Admission(gate) => gate.on_forgotten(id),
            Self::Paced(pacer) => pacer.on_forgotten(id),
        }
    }

    /// The flow and the direction whose first packet goes now.
    pub(crate) fn next(&mut self, flows: &Flows, now: Instant) -> Option<(FlowId, Direction)> {
        match self {
            Self::None => None,
            Self::Admission(gate) => Some((gate.next(flows, now)?, Direction::Down)),
            Self::Relay(relay) => Some((relay.next(now)?, Direction::Down)),
            Self::Paced(pacer) => pacer.next(flows, now),
        }
    }

    /// When another packet may go, if nothing comes before.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        match self {
            Self::None => None,
            Self::Relay(relay) => relay.next_deadline(),
            Self::Admission(gate) => gate.next_deadline(),
            Self::Paced(pacer) => pacer.next_deadline(),
        }
    }

    /// Flows that may be inside the mesh.
    pub(crate) fn window(&self) -> Option<usize> {
        match self {
            Self::Admission(gate) => Some(gate.window()),
            Self::None | Self::Paced(_) | Self::Relay(_) => None,
        }
    }

    /// Flows that are inside the mesh.
    pub(crate) fn inside(&self) -> Option<usize> {
        match self {
            Self::Admission(gate) => Some(gate.inside()),
            Self::None | Self::Paced(_) | Self::Relay(_) => None,
        }
    }

    /// Time between two packets that leave, where the policy has one.
    pub(crate) const fn spacing(&self) -> Option<Duration> {
        match self {
            Self::Paced(pacer) => Some(pacer.spacing()),
            Self::None | Self::Admission(_) | Self::Relay(_) => None,
        }
    }

    /// The policy that sends segments again.
    pub(crate) const fn relay(&self) -> Option<&Relay> {
        match self {
            Self::Relay(relay) => Some(relay),
            _ => None,
        }
    }

    /// Packets that were let go before their turn.
    pub(crate) const fn early(&self) -> u64 {
        match self {
            Self::Admission(gate) => gate.early,
            Self::Paced(pacer) => pacer.early,
            Self::None | Self::Relay(_) => 0,
        }
    }
}

/// How long a packet waits at most, whatever others do.
const HOLD_MAX: Duration = Duration::from_secs(60);
