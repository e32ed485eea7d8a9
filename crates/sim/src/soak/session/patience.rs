//! The timeouts that are failures in a run whose network delivers every packet.

use motet::tcp::{Connection, Error, State};
use motet::time::{Duration, Instant};

use super::{Session, Sessions};

/// The progress of a session's data: how much of it the peer has acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    /// Bytes that the peer has not acknowledged.
    left: u16,
    /// When that last changed, or the state did, by the node's clock.
    at: Instant,
    /// Whether the peer's window is shut.
    is_shut: bool,
}

impl Progress {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            left: 0,
            at: now,
            is_shut: false,
        }
    }

    /// Starts the wait anew: the connection's state has changed.
    pub(super) fn restart(&mut self, now: Instant) {
        self.at = now;
    }

    /// Notes what is left of a connection that is not over.
    pub(super) fn look(&mut self, connection: &Connection<'_>, now: Instant) {
        let left = connection.unacknowledged();
        if left != self.left {
            self.at = now;
        }
        self.left = left;
        self.is_shut = connection.telemetry().snd_wnd_bytes == 0;
    }
}

impl Sessions<'_> {
    /// Where every packet arrives, a connection times out only when nobody is there; or when it
    /// is closed, and its peer has kept the window shut for as long as it waits then.
    ///
    /// `before`: its last state; `limits`: as [`Self::gentle`].
    pub(super) fn excuse(
        &self,
        number: usize,
        error: Error,
        before: State,
        limits: [Option<Duration>; 2],
    ) -> Result<(), String> {
        let is_timeout = matches!(
            error,
            Error::TimedOut | Error::KeepaliveTimedOut | Error::UserTimeout
        );
        let session = &self.all[number];
        let only_delivers = matches!(before, State::FinWait1 | State::Closing | State::LastAck);
        let Progress { at, is_shut, .. } = session.progress;
        let limit = limits.get(session.host).copied().flatten();
        let waited = self.now.since(at) + TICK;
        if only_delivers && is_shut && limit.is_some_and(|limit| waited >= limit) {
            return Ok(());
        }
        let peer = session.peer.and_then(|peer| self.all.get(peer));
        // A connection that no application accepts in time gets no acknowledgments.
        let accepted_by = session.opened + ACCEPT_MAX;
        let is_there = |peer: &&Session| {
            !peer.is_over && peer.state.is_synchronized() && peer.opened <= accepted_by
        };
        match peer.filter(is_there).filter(|_| is_timeout) {
            None => Ok(()),
            Some(peer) => Err(format!(
                "session {number} ended by {error:?}, but its peer is in {:?} and every packet arrives",
                peer.state
            )),
        }
    }
}

/// An application that accepts no later makes nobody wait too long.
const ACCEPT_MAX: Duration = Duration::from_secs(3);

/// The time by which a timer may be early in the eyes of the run: TCP counts milliseconds.
const TICK: Duration = Duration::from_millis(2);
