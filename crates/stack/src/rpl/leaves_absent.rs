//! Stands in for leaves in a build without the feature `leaves`: this node speaks for none.

use super::{Rpl, RplAction};
use crate::random::Rng;
use crate::time::Instant;
use crate::wire::rpl::DaoAck;

#[derive(Debug)]
pub(super) struct State;

impl State {
    pub(super) const NEW: Self = Self;

    pub(super) const fn at(&self) -> Option<Instant> {
        None
    }

    pub(super) const fn has_news(&self) -> bool {
        false
    }

    pub(super) const fn lose(&mut self) {}

    pub(super) const fn on_ack(&mut self, _: &DaoAck<'_>) -> bool {
        false
    }
}

impl Rpl<'_> {
    pub(super) const fn poll_leaves(&mut self, _: Instant, _: &mut Rng) -> Option<RplAction> {
        None
    }
}
