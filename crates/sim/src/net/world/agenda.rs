//! The next deadline of each node, and its entry in the calendar.
//!
//! Purpose: the calendar cannot cancel events, so about half of the deadlines are obsolete when
//! they come. Place: apart from the nodes. With thousands of nodes, a node is not in the cache when
//! its deadline comes; an obsolete deadline touches only sixteen bytes here, and not the node.

use motet::time::{Duration, Instant};

/// When nodes are called, by node.
#[derive(Debug)]
pub(super) struct Agenda {
    calls: Vec<Call>,
}

/// When one node is called; [`NEVER`] where it need not be.
#[derive(Clone, Copy, Debug)]
struct Call {
    /// The earliest of its deadlines in the calendar.
    planned: Instant,
    /// The deadline that the node wanted when it was called last.
    wanted: Instant,
}

/// The meaning of a deadline that has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    /// The node wants to be called now.
    Due,
    /// The node wants to be called at this time, and needs a deadline for it.
    Later(Instant),
    /// Another deadline stands for it, or it wants nothing.
    Overtaken,
}

impl Agenda {
    pub(super) fn new(nodes: usize) -> Self {
        let (planned, wanted) = (NEVER, NEVER);
        Self {
            calls: vec![Call { planned, wanted }; nodes],
        }
    }

    /// The node has been called and wants the next call at `wanted`. Gives the deadline that the
    /// calendar needs for that, if it has none as early.
    pub(super) fn plan(
        &mut self,
        node: usize,
        wanted: Option<Instant>,
        now: Instant,
    ) -> Option<Instant> {
        let call = &mut self.calls[node];
        call.wanted = wanted.unwrap_or(NEVER);
        // A node that asks for a moment already past waits for an event; time moves on in any case.
        let at = wanted?.max(now + TICK);
        let is_earlier = at < call.planned;
        is_earlier.then(|| {
            call.planned = at;
            at
        })
    }

    /// The node was called but could not return its deadline: it is unknown until the next call.
    pub(super) fn doubt(&mut self, node: usize) {
        self.calls[node].wanted = Instant::ORIGIN;
    }

    /// A deadline of the node has come.
    pub(super) fn turn(&mut self, node: usize, now: Instant) -> Turn {
        let call = &mut self.calls[node];
        if call.planned > now {
            return Turn::Overtaken;
        }
        call.planned = NEVER;
        match call.wanted {
            NEVER => Turn::Overtaken,
            wanted if wanted <= now => Turn::Due,
            wanted => {
                call.planned = wanted;
                Turn::Later(wanted)
            }
        }
    }
}

const NEVER: Instant = Instant::from_micros(u64::MAX);

/// The shortest time between two calls of a node.
const TICK: Duration = Duration::from_micros(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_micros(us)
    }

    #[test]
    fn only_an_earlier_deadline_needs_another_entry() {
        let mut agenda = Agenda::new(2);
        assert_eq!(agenda.plan(1, None, at(0)), None);
        assert_eq!(agenda.plan(1, Some(at(50)), at(0)), Some(at(50)));
        assert_eq!(agenda.plan(1, Some(at(70)), at(1)), None);
        assert_eq!(agenda.plan(1, Some(at(20)), at(2)), Some(at(20)));
        assert_eq!(
            agenda.plan(0, Some(at(1)), at(2)),
            Some(at(3)),
            "not twice at a time"
        );
    }

    #[test]
    fn a_deadline_that_was_overtaken_calls_nobody() {
        let mut agenda = Agenda::new(1);
        agenda.plan(0, Some(at(50)), at(0));
        agenda.plan(0, Some(at(20)), at(1));
        assert_eq!(agenda.turn(0, at(20)), Turn::Due);
        agenda.plan(0, Some(at(80)), at(20));
        assert_eq!(agenda.turn(0, at(50)), Turn::Overtaken, "that of 80 stands");
        assert_eq!(agenda.turn(0, at(80)), Turn::Due);
        agenda.plan(0, None, at(80));
        assert_eq!(agenda.turn(0, at(90)), Turn::Overtaken);
    }

    #[test]
    fn a_node_that_wants_more_time_gets_another_entry() {
        let mut agenda = Agenda::new(1);
        agenda.plan(0, Some(at(20)), at(0));
        assert_eq!(
            agenda.plan(0, Some(at(90)), at(10)),
            None,
            "that of 20 stands"
        );
        assert_eq!(agenda.turn(0, at(20)), Turn::Later(at(90)));
        assert_eq!(agenda.turn(0, at(90)), Turn::Due);
    }

    #[test]
    fn a_node_that_could_not_answer_is_called() {
        let mut agenda = Agenda::new(1);
        agenda.plan(0, Some(at(20)), at(0));
        agenda.plan(0, Some(at(90)), at(10));
        agenda.doubt(0);
        assert_eq!(agenda.turn(0, at(20)), Turn::Due);
    }
}
