//! Whether a mote had more to send, by the time behind an acknowledgment after which its data come.

use motet::time::Duration;

use super::{ANSWER_MAX, Flow};
use crate::rtt::Rtt;

impl Flow {
    /// Whether the mote had nothing more to send: its last bytes came in less than half a segment,
    /// and all are acknowledged. What comes later is no answer to the acknowledgment. Readings
    /// each few seconds once made the mesh seem as slow as that, and so their flows never rested.
    pub(super) fn has_no_more(&self) -> bool {
        self.ends_short && !self.awaits_ack()
    }

    /// Whether the mote has sent all that it had, as far as is known: its last new bytes were the
    /// end of a message, and all have passed as acknowledged.
    pub(crate) fn has_sent_all(&self) -> bool {
        self.was_tail && !self.awaits_ack()
    }

    /// How long the mesh takes at most for an answer, as far as is known.
    pub(super) fn answer_max(&self) -> Duration {
        let opening = || self.opening_timeout();
        self.mesh.timeout().or_else(opening).unwrap_or(ANSWER_MAX)
    }

    /// The timeout by the round trip through the mesh that opened the flow, where that is known.
    fn opening_timeout(&self) -> Option<Duration> {
        self.opened_in.and_then(|took| Rtt::of(took).timeout())
    }

    /// Whether data that came `took` after an acknowledgment are no answer to it: the mesh took far
    /// less when the flow was opened. Of a flow whose opening was not seen nothing is known.
    pub(crate) fn is_own_time(&self, took: Duration) -> bool {
        took > ANSWER_MAX && self.is_pause(took)
    }

    /// Whether data that came `took` after an acknowledgment came long behind it: after twice the
    /// timeout of the flow's opening.
    pub(super) fn is_pause(&self, took: Duration) -> bool {
        let opening = self.opening_timeout();
        opening.is_some_and(|opening| took > opening.saturating_mul(2))
    }
}
