//! Stands in for thinning in a build without the feature `entry`: no packet enters a mesh here.

use super::{Mesh, PacketMeta};
use crate::ip::Ip;
use crate::time::{Deadlines, Instant};
use crate::wire::LinkAddr;

impl Mesh<'_> {
    pub(super) const fn keeps_back(
        &self,
        _: [&[u8]; 2],
        _: PacketMeta,
        _: &mut Ip<'_>,
        _: Instant,
    ) -> bool {
        false
    }

    pub(super) const fn queue_due(&self, _: &mut Ip<'_>, _: Instant) {}

    pub(super) const fn note_fragment(&self, _: LinkAddr, _: Instant) {}

    pub(super) const fn add_thinning_deadlines(&self, _: &mut Deadlines) {}
}
