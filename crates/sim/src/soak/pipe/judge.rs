//! Checks of two engines, after every event and in the end.

use motet::tcp::State;

use super::{ADDRS, Host, PORT, Pipe};
use crate::soak::rest;

impl Pipe<'_> {
    /// Whatever is outstanding has a timer.
    pub(super) fn check_timers(&self, host: usize) -> Result<(), String> {
        let tcp = &self.hosts[host].tcp;
        if tcp.next_deadline().is_none()
            && let Some((number, state)) = self.sessions.outstanding(host, tcp)
        {
            return Err(format!(
                "session {number} of node {host} waits in {state:?} without a timer"
            ));
        }
        Ok(())
    }

    /// Checks that an end that has shut its window announces when it opens again (RFC 9293
    /// §3.8.6.2.2).
    pub(super) fn check_windows(&self, host: usize) -> Result<(), String> {
        let Host {
            tcp,
            config,
            lender,
            ..
        } = &self.hosts[host];
        let window = lender.window;
        let here = self
            .sessions
            .live()
            .filter(|(_, session)| session.host == host);
        for (number, session) in here {
            let (local, remote) = session.ports;
            let Some(connection) = tcp.connection(session.handle) else {
                continue;
            };
            let is_open = matches!(
                connection.state(),
                State::Established | State::FinWait1 | State::FinWait2
            );
            let Some(announced) = self.monitor.window((host, local, remote)) else {
                continue;
            };
            let room = window.saturating_sub(connection.can_recv());
            let step = config.rmss.min(window / 2).max(1);
            let is_shut = announced < step.min(MSS_LEAST);
            if is_open && is_shut && room.saturating_sub(announced) >= step {
                return Err(format!(
                    "session {number} of node {host} announced a window of {announced} and now has room for {room}, but does not say so"
                ));
            }
        }
        Ok(())
    }

    /// The engine has counted what was seen to happen.
    pub(super) fn check_counters(&self, host: usize) -> Result<(), String> {
        let counted = self.hosts[host].tcp.counters();
        let counts = &self.hosts[host].counts;
        let limited = |counts: &[u32]| -> Vec<u16> {
            counts
                .iter()
                .map(|n| u16::try_from(*n).unwrap_or(u16::MAX))
                .collect()
        };
        let pairs = [
            ("segments received", counted.received == counts.received),
            ("segments sent", counted.sent == counts.sent),
            ("drops", counted.drops[..] == limited(&counts.drops)),
            (
                "retransmissions",
                counted.retransmissions[..] == limited(&counts.again),
            ),
        ];
        match pairs.iter().find(|(_, same)| !same) {
            None => Ok(()),
            Some((what, _)) => Err(format!(
                "node {host} has miscounted its {what}: {counted:?}, but {counts:?}"
            )),
        }
    }

    /// All is over: nothing waits, everything was counted, every place is free again.
    pub(super) fn check_rest(&mut self) -> Result<(), String> {
        for host in 0..2 {
            let tcp = &self.hosts[host].tcp;
            if let Some(at) = tcp.next_deadline() {
                let left = at.since(self.clock(host).local);
                return Err(format!(
                    "all connections are over, but node {host} still has a timer, in {} ms",
                    left.as_millis()
                ));
            }
            self.check_counters(host)?;
            self.check_places(host)?;
        }
        if !self.calendar.is_empty() {
            return Err("all connections are over, but something is still to happen".into());
        }
        Ok(())
    }

    /// See [`rest::check_places`].
    fn check_places(&mut self, host: usize) -> Result<(), String> {
        let local = self.clock(host).local;
        let Host {
            tcp,
            places,
            config,
            ..
        } = &mut self.hosts[host];
        let listener = (ADDRS[host], PORT);
        rest::check_places(tcp, *places, listener, config, local)
            .map_err(|what| format!("node {host}: {what}"))
    }
}

/// A window below this is shut for every MSS.
const MSS_LEAST: u16 = 64;
