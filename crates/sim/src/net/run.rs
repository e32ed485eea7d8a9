//! The run loop: advances a world, and calls a function that inspects it in between.
//!
//! Purpose: scenarios, experiments and the soak all advance their worlds by it. Their functions
//! decide how far the world runs before the next call.

use motet::time::Instant;

use super::network::Network;
use super::world::World;

/// The step before the next look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Let one event happen.
    Event,
    /// Everything up to an instant.
    At(Instant),
    /// Nothing: the run is over.
    Over,
}

/// Calls `look`, runs the world as far as its result says, and so on, until `look` returns
/// `Next::Over` or the time is `until`. Returns whether `look` has ended the run.
pub fn run<'m, R: AsMut<World<'m>>>(
    run: &mut R,
    until: Instant,
    look: impl FnMut(&mut R) -> Next,
) -> bool {
    Stretch::new(until).go(run, until, look) == Some(Ended::Over)
}

/// A run up to an instant that can be interrupted and resumed. The results do not depend on when
/// and how often that is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stretch {
    until: Instant,
    /// The step that the last look asked for, if it has not happened yet.
    next: Option<Next>,
}

/// The way in which a stretch ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// The look said that the run is over.
    Over,
    /// The stretch's time has passed.
    Late,
}

impl Stretch {
    /// A stretch that ends at `until` at the latest.
    pub fn new(until: Instant) -> Self {
        Self { until, next: None }
    }

    /// Goes on up to `to`, as [`run`] does; says how the stretch ended, if it has.
    pub fn go<'m, R: AsMut<World<'m>>>(
        &mut self,
        run: &mut R,
        to: Instant,
        mut look: impl FnMut(&mut R) -> Next,
    ) -> Option<Ended> {
        let until = self.until;
        let stop = until.min(to);
        loop {
            let next = self.next.take().unwrap_or_else(|| look(run));
            let world = run.as_mut();
            let due = match next {
                Next::Over => return Some(Ended::Over),
                Next::Event if world.step(stop) => continue,
                Next::At(at) if world.now() < until => at.min(until),
                Next::Event | Next::At(_) => until,
            };
            let has_looked_last = matches!(next, Next::Event) || world.now() >= until;
            world.run_until(due.min(stop));
            if stop < due {
                self.next = Some(next);
                return None;
            }
            if has_looked_last {
                return Some(Ended::Late);
            }
        }
    }

    /// Looks at the run before it goes on: what was due next may have changed.
    pub(crate) fn look_anew(&mut self) {
        self.next = None;
    }
}

impl<'m> AsMut<World<'m>> for World<'m> {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

impl<'m> AsMut<World<'m>> for Network<'m> {
    fn as_mut(&mut self) -> &mut World<'m> {
        &mut self.world
    }
}
