//! Stands in for the queues of flows in a build without the feature `entry`: no packet enters a
//! mesh here.

use super::{Mesh, PacketMeta};
use crate::ip::Ip;
use crate::link::arrival::{Refusal, TcpEgress};
use crate::time::{Deadlines, Instant};

impl Mesh<'_> {
    #[expect(clippy::unused_self, reason = "a router has queues")]
    pub(super) const fn has_entering(&self) -> bool {
        false
    }

    pub(super) fn waiting_before(&self, _: [&[u8]; 2], _: TcpEgress) -> usize {
        self.queue.len()
    }

    pub(super) fn push_forwarded(
        &mut self,
        parts: [&[u8]; 2],
        meta: PacketMeta,
        _: &mut Ip<'_>,
        _: Instant,
    ) -> Result<(), Refusal> {
        self.push(parts, meta)
    }

    #[expect(clippy::unused_self, reason = "a router has queues")]
    pub(super) const fn next_entering(&mut self, _: &mut Ip<'_>, _: Instant) -> bool {
        false
    }

    #[expect(clippy::unused_self, reason = "a router has queues")]
    pub(super) const fn takes_own_turn(&mut self) -> bool {
        false
    }

    #[expect(clippy::unused_self, reason = "a router has queues")]
    pub(super) const fn is_entering_turn(&self) -> bool {
        false
    }

    #[expect(clippy::unused_self, reason = "a router has queues")]
    pub(super) const fn give_entering_turn(&mut self) {}

    #[expect(clippy::unused_self, reason = "a router has queues")]
    pub(super) const fn has_few_ahead(&self) -> bool {
        true
    }

    #[expect(clippy::unused_self, reason = "a router has queues")]
    pub(super) const fn charge_frame(&mut self, _: usize) {}

    #[expect(clippy::unused_self, reason = "a router has queues")]
    pub(super) const fn end_entering_deadline(&mut self) {}

    #[expect(clippy::unused_self, reason = "a router has queues")]
    pub(super) const fn add_entering_deadlines(&self, _: &mut Deadlines) {}

    #[expect(clippy::unused_self, reason = "a router has queues")]
    pub(super) const fn note_leaving(&mut self, _: &[u8], _: Instant) {}
}
