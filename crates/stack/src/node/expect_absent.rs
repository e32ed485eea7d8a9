//! Stands for what a sleeping node expects, in a build without the feature `sleepy`; see `expect`.

use super::Node;
use crate::time::Instant;

impl Node<'_> {
    pub(super) const fn hint(&self, _: Instant) -> bool {
        false
    }
}
