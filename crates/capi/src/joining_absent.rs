//! An archive without the feature `join`: see `joining`.

use motet::node::Node;
use motet::random::Rng;
use motet::time::Instant;

pub(crate) struct Joining;

impl Joining {
    pub(crate) const fn new(_: &mut Rng) -> Self {
        Self
    }

    pub(crate) const fn poll(&mut self, _: &mut Node<'static>, _: Instant) -> bool {
        false
    }

    pub(crate) const fn or_deadline(&self, other: Option<Instant>) -> Option<Instant> {
        other
    }
}

#[cfg(feature = "security")]
impl Joining {
    pub(crate) fn wanted(
        &mut self,
        frames: Option<motet::mac::security::Reservation>,
    ) -> Option<crate::record::motet_reservation> {
        frames.map(|frames| crate::record::motet_reservation {
            sequence: frames.sequence,
            counter: frames.counter,
            requests: 0,
        })
    }

    pub(crate) const fn on_answer(
        &mut self,
        _: crate::record::motet_reservation,
        _: bool,
        _: Instant,
    ) -> bool {
        true
    }
}
