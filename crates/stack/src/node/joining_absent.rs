//! Stands in for joining in a build without the feature `join`.

use super::Node;
use crate::time::Instant;
use crate::wire::ipv6::Header;

impl Node<'_> {
    pub(super) const fn poll_joining(&self, _: Instant) {}

    pub(super) const fn takes_join(&self, _: (&Header, u8), _: &[u8], _: Instant) -> bool {
        false
    }
}
