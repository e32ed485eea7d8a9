//! Loss recovery from within: its parts one by one, and what only its own folder may look at.

#[cfg(feature = "cubic")]
mod cubic;
mod events;
mod recovery;
mod scoreboard;
mod tail_probe;

use super::Loss;
use crate::tcp::SeqNum;

impl Loss {
    /// SND.NXT when the window was last reduced.
    pub(in crate::tcp) fn recover(&self) -> SeqNum {
        self.recover
    }
}
