//! How connections between the engines come about.

use motet::tcp::{Buffers, Handle, Offer, OpenError};

use super::{ADDRS, CLIENT, FIRST_PORT, Host, PORT, Pipe};
use crate::soak::settings::Behaviour;

impl<'m> Pipe<'m> {
    pub(super) fn listen(&mut self, host: usize) -> Result<(), String> {
        let Host { tcp, config, .. } = &mut self.hosts[host];
        let listener = tcp.listen(None, PORT, config);
        let listener = listener.map_err(|error| format!("listen failed: {error:?}"))?;
        self.hosts[host].listener = Some(listener);
        self.settle(host)
    }

    /// Accepts waiting connections, or lends buffers in advance to the next ones.
    pub(super) fn accept(&mut self, host: usize) -> Result<bool, String> {
        let Some(listener) = self.hosts[host].listener else {
            return Ok(false);
        };
        let is_lent = self
            .sessions
            .live()
            .any(|(_, session)| session.host == host && session.is_listening());
        let waits = self.hosts[host].tcp.can_accept(listener);
        let lends = self.hosts[host].lends_early && !is_lent && !self.is_quiet;
        if !waits && !lends {
            return Ok(false);
        }
        let buffers = self.lend(host);
        let clock = self.clock(host);
        let accepted = self.hosts[host].tcp.accept(listener, buffers, clock.local);
        let handle = match accepted {
            Ok(handle) => handle,
            Err(rejected) => {
                self.hosts[host].lender.take_back(rejected.buffers);
                return Ok(false);
            }
        };
        let behaviour = self.behaviour();
        let kind = (true, self.hosts[host].lender.by_reference);
        let tcp = &self.hosts[host].tcp;
        self.sessions
            .open((host, handle), behaviour, kind, tcp, clock.now)?;
        Ok(true)
    }

    /// Buffers for a connection, those of an earlier one where there are some.
    fn lend(&mut self, host: usize) -> Buffers<'m> {
        let lender = &mut self.hosts[host].lender;
        for buffers in self.sessions.take_returned(host) {
            lender.take_back(buffers);
        }
        lender.lend()
    }

    fn behaviour(&mut self) -> Behaviour {
        let mut behaviour = Behaviour::draw(&mut self.dice, BYTES_MAX, self.span);
        if self.is_quiet {
            behaviour.hurry(0);
        }
        behaviour
    }

    pub(super) fn connect(&mut self) -> Result<(), String> {
        let number = self.tally.connects;
        self.tally.connects += 1;
        // The first one is the client's, whose numbers were aimed at.
        let host = match number {
            0 => CLIENT,
            _ => self.dice.range(0, 1) as usize,
        };
        self.connect_from(host, FIRST_PORT + number as u16, PORT)
    }

    /// Both sides at once, each to the port of the other: the SYNs cross.
    pub(super) fn connect_both(&mut self) -> Result<(), String> {
        let port = FIRST_PORT + self.tally.connects as u16;
        self.tally.connects += 1;
        self.connect_from(0, port, port)?;
        self.connect_from(1, port, port)
    }

    /// The ports of a connection that ended well, again.
    pub(super) fn connect_again(&mut self) -> Result<(), String> {
        let Some((host, local, remote)) = self.sessions.reusable() else {
            return Ok(());
        };
        self.connect_from(host, local, remote)
    }

    fn connect_from(&mut self, host: usize, local: u16, remote: u16) -> Result<(), String> {
        let buffers = self.lend(host);
        let clock = self.clock(host);
        let Host { tcp, config, .. } = &mut self.hosts[host];
        let ends = ((ADDRS[host], local), (ADDRS[1 - host], remote));
        let opened = tcp.connect_from(
            ends.0,
            ends.1,
            buffers,
            config,
            Offer::UNBOUNDED,
            clock.local,
        );
        let handle: Handle = match opened {
            Ok(handle) => handle,
            Err(rejected) => match rejected.error {
                OpenError::NoSlot | OpenError::InUse => {
                    self.hosts[host].lender.take_back(rejected.buffers);
                    return Ok(());
                }
                error => return Err(format!("connect failed: {error:?}")),
            },
        };
        let behaviour = self.behaviour();
        let kind = (false, self.hosts[host].lender.by_reference);
        let tcp = &self.hosts[host].tcp;
        self.sessions
            .open((host, handle), behaviour, kind, tcp, clock.now)?;
        self.settle(host)
    }
}

/// Bytes that a session sends, at most.
const BYTES_MAX: u32 = 200_000;
