//! A mesh on one channel, in a build without the feature `channels`: see `channels`.

use super::{Action, Mac};
use crate::time::Instant;

/// The channels that a mesh uses. Without the feature `channels` it has one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Channels;

impl Channels {
    /// One channel for all nodes: [`super::Config::channel`].
    pub const SINGLE: Self = Self;

    /// Whether the set has one channel only.
    pub const fn is_single(self) -> bool {
        true
    }

    pub(crate) const fn after(self, _: Option<u8>) -> Option<u8> {
        None
    }
}

impl Mac<'_> {
    pub(crate) const fn home(&self) -> u8 {
        self.config.channel
    }

    pub(super) fn poll_channel(&mut self, _: Instant) -> Option<Action> {
        self.tune(self.config.channel)
    }
}
