//! Which flows crowd a mesh, and which only use it now and then.
//!
//! Purpose: where many flows send as much as they can, a policy shares the air among them. Where
//! one or two do, nothing is to be shared, and to hold a flow that sends little costs its users
//! time and gives nobody anything. So each flow is heavy or light: it is light where it moves less
//! than an eighth of what the busiest flow moves, and is heard of
//! nevertheless. A flow that falls silent stays what it was for [`CLAIM`]: one that starves has
//! nothing to show but timeouts.
//! Source: Motet's own.

use motet::time::{Duration, Instant};

use crate::flow::News;
use crate::flows::FlowId;
use crate::sight::Segment;

/// How much the flows of a router do.
#[derive(Debug, Default)]
pub(crate) struct Crowd {
    /// By place in the table.
    loads: Vec<Load>,
    /// Heavy flows when last counted, with those that came since and without those that ended.
    heavy: usize,
    /// When the flows are looked at again.
    looks_at: Option<Instant>,
}

/// What a flow does.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    /// When it was last heard of; none: it is no part of the crowd.
    last: Option<Instant>,
    is_heavy: bool,
    /// Bytes that it has moved in the step that runs: those that it brought, and those of the other
    /// end that it acknowledged.
    fresh: [u64; 2],
    /// The same of steps before, each weighing an eighth less than the next.
    recent: [u64; 2],
    /// Whether it was heard of in this step.
    is_heard: bool,
    /// Steps as a heavy flow, up to [`ESTABLISHED`].
    steps: u8,
    /// Whether it was heard of in the last sixteen steps, a bit each.
    heard: u16,
}

impl Load {
    /// What it moves the way in which it moves more.
    fn recent(&self) -> u64 {
        self.recent.iter().copied().max().unwrap_or(0)
    }

    /// Ends a step in which the busiest flow has come to `most`.
    fn judge(&mut self, most: u64) {
        let is_heard = std::mem::take(&mut self.is_heard);
        self.heard = self.heard << 1 | u16::from(is_heard);
        let is_light = self.recent() * LIGHT_PART < most;
        let is_known = self.steps < ESTABLISHED || self.heard.count_ones() >= HEARD_MIN;
        if !is_light {
            self.is_heavy = true;
        } else if is_heard && is_known {
            self.is_heavy = false;
        }
        self.steps = match self.is_heavy {
            true => self.steps.saturating_add(1).min(ESTABLISHED),
            false => 0,
        };
    }
}

/// Bytes that a segment out of the mesh moves: those that it brings, and those that it acknowledges.
/// What it sends again counts twice: a flow that starves has nothing else to show.
pub(super) fn moved(segment: &Segment, news: &News) -> [u64; 2] {
    let again = match news.is_retransmission && news.new_bytes == 0 {
        true => 2 * segment.payload_len,
        false => 0,
    };
    [
        news.new_bytes.saturating_add(again),
        news.newly_acknowledged,
    ]
    .map(u64::from)
}

impl Crowd {
    /// Whether there are more heavy flows than share the air by themselves.
    pub(crate) const fn is_crowd(&self) -> bool {
        self.heavy > FEW
    }

    /// Whether a flow is heavy. One that has just come is, until it is known better.
    pub(crate) fn is_heavy(&self, id: FlowId) -> bool {
        self.is_heavy_at(id.index())
    }

    /// The same of the flow at this place of the table.
    pub(crate) fn is_heavy_at(&self, place: usize) -> bool {
        let load = self.loads.get(place);
        load.is_none_or(|load| load.is_heavy || load.last.is_none())
    }

    /// A segment has come out of the mesh; `counts`: what of its bytes, those that it brings and
    /// those that it acknowledges. Returns whether its flow is new here, or was silent for
    /// [`CLAIM`].
    pub(crate) fn on_segment(&mut self, id: FlowId, counts: [u64; 2], now: Instant) -> bool {
        self.look(now);
        let load = self.load(id);
        let is_new = load.last.is_none_or(|last| now.since(last) >= CLAIM);
        if is_new {
            let was_heavy = load.last.is_some() && load.is_heavy;
            *load = Load {
                is_heavy: true,
                ..Load::default()
            };
            self.heavy += usize::from(!was_heavy);
        }
        let load = self.load(id);
        load.last = Some(now);
        load.is_heard = true;
        for (sum, count) in load.fresh.iter_mut().zip(counts) {
            *sum += count;
        }
        is_new
    }

    /// A flow is over, or forgotten: it is no part of the crowd.
    pub(crate) fn on_over(&mut self, id: FlowId) {
        let load = std::mem::take(self.load(id));
        self.heavy -= usize::from(load.last.is_some() && load.is_heavy).min(self.heavy);
    }

    /// Looks at the flows, where it is time.
    pub(crate) fn look(&mut self, now: Instant) {
        let at = *self.looks_at.get_or_insert(now + STEP);
        if now < at {
            return;
        }
        self.looks_at = Some(now + STEP);
        for load in &mut self.loads {
            for (recent, fresh) in load.recent.iter_mut().zip(load.fresh) {
                *recent = *recent - *recent / 8 + fresh;
            }
        }
        let most = self.loads.iter().map(Load::recent).max().unwrap_or(0);
        self.heavy = 0;
        for load in &mut self.loads {
            let Some(last) = load.last else { continue };
            load.judge(most);
            load.fresh = [0; 2];
            self.heavy += usize::from(load.is_heavy && now.since(last) < CLAIM);
        }
    }

    fn load(&mut self, id: FlowId) -> &mut Load {
        if self.loads.len() <= id.index() {
            self.loads.resize(id.index() + 1, Load::default());
        }
        &mut self.loads[id.index()]
    }
}

/// A flow that was silent for longer is no part of the crowd, and has no claim to what it left
/// unused.
const CLAIM: Duration = Duration::from_secs(120);

/// So few heavy flows are no crowd: nothing of theirs is held.
const FEW: usize = 2;

/// How often the flows are looked at.
const STEP: Duration = Duration::from_secs(1);

/// A flow is light that moves less than such a part of what the busiest one moves.
const LIGHT_PART: u64 = 8;

/// After so many steps as a heavy flow silence is no sign that a flow is light.
const ESTABLISHED: u8 = 30;

/// A flow that was heavy for long is light when it was heard of in so many of sixteen steps.
const HEARD_MIN: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// A crowd that is told each second what flows move up.
    fn crowd(seconds: u64, bytes: impl Fn(u32, u64) -> Option<u64>, flows: u32) -> Crowd {
        let mut crowd = Crowd::default();
        for second in 0..seconds {
            let now = Instant::ORIGIN + Duration::from_secs(1_000 + second);
            for flow in 0..flows {
                if let Some(bytes) = bytes(flow, second) {
                    crowd.on_segment(FlowId::test(flow), [bytes, 0], now);
                }
            }
        }
        crowd
    }

    #[test]
    fn flows_that_are_alike_are_a_crowd() {
        for flows in 0..6 {
            let crowd = crowd(60, |_, _| Some(38), flows);
            assert_eq!(crowd.heavy, flows as usize);
            assert_eq!(crowd.is_crowd(), flows > 2);
        }
    }

    #[test]
    fn those_that_ask_now_and_then_are_none() {
        for every in [1, 3, 10, 30] {
            let bytes = |flow: u32, second: u64| match flow {
                0 => Some(1_000),
                _ => (second % every == u64::from(flow) % every).then_some(64),
            };
            let crowd = crowd(120, bytes, 9);
            assert_eq!(crowd.heavy, 1, "each {every} s");
        }
    }

    /// Two flows once had the mesh to themselves for good.
    #[test]
    fn those_that_starve_still_are_a_crowd() {
        let bytes = |_: u32, second: u64| (second < 20).then_some(400);
        let mut starved = crowd(20, bytes, 6);
        for second in 20..100 {
            let now = Instant::ORIGIN + Duration::from_secs(1_000 + second);
            for flow in 0..2 {
                starved.on_segment(FlowId::test(flow), [2_000, 0], now);
            }
            // What it sends again after a timeout says that it starves.
            if second % 40 == 39 {
                starved.on_segment(FlowId::test(5), [2 * 400, 0], now);
            }
        }
        assert_eq!(starved.heavy, 6);
        let late = Instant::ORIGIN + Duration::from_secs(1_000 + 300);
        starved.look(late);
        assert_eq!(starved.heavy, 0, "silent for minutes");
    }

    #[test]
    fn one_that_is_over_counts_no_more() {
        let mut crowd = crowd(10, |_, _| Some(38), 3);
        crowd.on_over(FlowId::test(1));
        crowd.on_over(FlowId::test(1));
        assert_eq!((crowd.heavy, crowd.is_crowd()), (2, false));
    }
}
