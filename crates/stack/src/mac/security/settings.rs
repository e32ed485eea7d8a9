//! Settings of link security, and its counters.

use super::counter::Reservation;
use super::engine::Engine;
use super::keys::NetworkKey;
use crate::time::Duration;
use crate::wire::ieee802154::Level;

/// Settings of link security (IEEE 802.15.4-2006 §7.5.8).
#[derive(Clone, Debug)]
pub struct SecurityConfig {
    /// The key of the network.
    pub network: NetworkKey,
    /// Which of its link keys to begin with.
    pub sequence: u32,
    /// How frames are sealed; frames of a lower level are refused.
    pub level: Level,
    /// The first frame counter: 0 for a node that has never sent with this network key.
    pub counter: u32,
    /// The AES implementation: in software or in hardware.
    pub engine: Engine,
    /// After how long this node takes the next key, which the others then follow: a border router
    /// alone does so, [`ROTATES_AFTER`]. It does at half of its frame counters, too.
    pub rotates_after: Option<Duration>,
    /// How long the previous key stays valid.
    pub guard_time: Duration,
}

impl SecurityConfig {
    /// The defaults of a mote that has never sent with this key.
    pub const fn new(network: NetworkKey, sequence: u32) -> Self {
        Self {
            network,
            sequence,
            level: Level::Mic32,
            counter: 0,
            engine: Engine::Software,
            rotates_after: None,
            guard_time: GUARD_TIME,
        }
    }

    /// Goes on where the node was that stored this last. Its counters go on too when the sequence
    /// was set to a later one meanwhile.
    #[must_use]
    pub fn resume(mut self, stored: Reservation) -> Self {
        self.sequence = self.sequence.max(stored.sequence);
        self.counter = self.counter.max(stored.counter);
        self
    }
}

/// Counters of link security; all wrap at 2^32. Frames refused are among the
/// [`MacCounters`](crate::mac::MacCounters).
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct SecurityCounters {
    /// Frames sealed: each copy into the radio counts, so a retry may count again.
    pub sealed: u32,
    /// Frames whose MIC was right.
    pub opened: u32,
    /// Calls of the cipher, of two blocks each: what the processor has spent on frames.
    pub cipher_calls: u32,
    /// Link keys derived from the network key and expanded.
    pub keys_made: u32,
    /// Challenges sent to neighbours that have to prove that they are there now.
    pub challenges: u32,
    /// Answers sent to challenges of neighbours.
    pub answers: u32,
    /// Frames sent to neighbours that had an earlier key.
    pub reminders: u32,
    /// Neighbours that have answered a challenge.
    pub proven: u32,
    /// Neighbours that found no entry, because all are of parents and children.
    pub turned_away: u32,
    /// Times that this node took a later link key.
    pub rotations: u32,
    /// Times that the host could not store a bound.
    pub storage_failures: u32,
    /// Heads that fired nothing after a forgery in their sender's name.
    pub muted_heads: u32,
    /// Times that a parent acknowledged, but answered no challenge: its ACKs then count for
    /// nothing.
    pub parents_lost: u32,
}

/// Time from one key to the next (Thread 1.1 §7.1.5: 672 h).
pub const ROTATES_AFTER: Duration = Duration::from_secs(28 * 24 * 3_600);

/// A node that sleeps asks its parent every 240 s, and learns of a new key by what it gets then.
pub const GUARD_TIME: Duration = Duration::from_secs(600);
