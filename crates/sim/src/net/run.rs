//! The run loop: lets a world go on, and somebody look at it in between.
//!
//! Purpose: what scenarios, experiments and the soak do while time passes. Each says what it
//! sees, and how far the world goes before it looks again.

use motet::time::Instant;

use super::network::Network;
use super::world::World;

/// What is to happen before the next look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// One event.
    Event,
    /// Everything up to an instant.
    At(Instant),
    /// Nothing: the run is over.
    Over,
}

/// Looks at `run`, lets its world go on as the look says, and so on, until the look says that
/// the run is over; says whether it did. Otherwise the world's time is `until` in the end.
pub fn run<'m, R: AsMut<World<'m>>>(
    run: &mut R,
    until: Instant,
    mut look: impl FnMut(&mut R) -> Next,
) -> bool {
    loop {
        let next = look(run);
        let world = run.as_mut();
        match next {
            Next::Over => return true,
            Next::Event if world.step(until) => {}
            Next::At(at) if world.now() < until => world.run_until(at.min(until)),
            Next::Event | Next::At(_) => {
                world.run_until(until);
                return false;
            }
        }
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
