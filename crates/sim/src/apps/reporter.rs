//! A sensor's readings over one TCP connection, in batches.
//!
//! Place: a variant of [`crate::apps::App`]; a [`Server`](super::messages::Server) reads them, and
//! tolerates missing ones. If the connection is lost, another one follows; readings that TCP had
//! accepted and not delivered are lost.

use std::net::Ipv6Addr;

use motet::node::Node;
use motet::time::{Instant, earliest};

use crate::apps::backlog::Backlog;
use crate::apps::ends::{Ends, Line, Progress, observe};

/// Makes readings, and sends them.
#[derive(Debug)]
pub struct Reporter<'m> {
    to: (Ipv6Addr, u16),
    line: Line<'m>,
    /// Readings that wait to be sent.
    pub backlog: Backlog,
    /// The reading that TCP is taking, and how much of it has been taken.
    unsent: Vec<u8>,
    taken: usize,
    /// Readings handed to TCP over this connection.
    pub handed: u64,
    /// The state of the connection.
    pub progress: Progress,
}

impl<'m> Reporter<'m> {
    /// Sends what `backlog` makes to a port of somebody.
    pub fn new(to: (Ipv6Addr, u16), ends: Ends<'m>, backlog: Backlog) -> Self {
        let mut line = Line::new(ends);
        line.begin_anew();
        Self {
            to,
            line,
            backlog,
            unsent: Vec::new(),
            taken: 0,
            handed: 0,
            progress: Progress::default(),
        }
    }

    /// When the next reading is due, or it tries again to connect.
    pub fn next_deadline(&self) -> Option<Instant> {
        earliest(self.backlog.next_deadline(), self.line.next_deadline())
    }

    /// The node is switched off.
    pub(super) fn switch_off(&mut self, node: &mut Node<'m>) {
        self.line.switch_off(&mut self.progress, node);
        self.begin();
    }

    /// The node is switched on again.
    pub(super) fn switch_on(&mut self, now: Instant) {
        self.backlog.switch_on(now);
    }

    /// Knows nothing of the connection before.
    fn begin(&mut self) {
        self.unsent.clear();
        self.taken = 0;
        self.handed = 0;
    }

    pub(crate) fn step(&mut self, node: &mut Node<'m>, now: Instant) -> bool {
        let made = self.backlog.make(now);
        if self.progress.closed {
            let anew = self.line.let_go(&mut self.progress, node.tcp_mut(), now);
            if anew {
                self.begin();
            }
            return made || anew;
        }
        let Some(handle) = self.line.handle else {
            let handle = self.line.connect(self.to, &mut self.progress, node, now);
            return made || handle.is_some() || self.progress.closed;
        };
        let tcp = node.tcp_mut();
        let mut has_written = false;
        loop {
            if self.taken == self.unsent.len() {
                let Some(reading) = self.backlog.take() else {
                    break;
                };
                self.unsent.clear();
                self.taken = 0;
                let len = self.backlog.sensor().reading_len;
                reading.emit(len, &mut self.unsent);
                self.handed += 1;
            }
            let rest = self.unsent.get(self.taken..).unwrap_or_default();
            match tcp.send(handle, rest, now) {
                Ok(taken) if taken > 0 => self.taken += taken,
                _ => break,
            }
            has_written = true;
        }
        // No answer is expected; the call only finds out whether the connection has ended.
        let end = match tcp.recv(handle, &mut [0; 16]) {
            Ok(_) => return true,
            Err(end) => end,
        };
        observe(&mut self.progress, tcp, handle, end);
        made || has_written || self.progress.closed
    }
}
