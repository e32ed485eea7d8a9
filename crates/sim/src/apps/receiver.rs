//! A transfer's receiving end.

use motet::node::Node;
use motet::tcp::{self, RecvError};
use motet::time::Instant;

use super::content::Content;
use super::ends::{Ends, Line, Progress, observe};

/// Reads one connection to its end.
#[derive(Debug)]
pub struct Receiver<'m> {
    port: u16,
    line: Line<'m>,
    /// All that was read, unless it is only checked.
    pub content: Vec<u8>,
    /// How many bytes were read.
    pub received: u64,
    /// How many of them over connections before this one.
    earlier: u64,
    /// The first of them that is not what it should be.
    pub differs_at: Option<u64>,
    expected: Option<Content>,
    /// The state of the connection.
    pub progress: Progress,
}

impl<'m> Receiver<'m> {
    /// Takes one connection to `port`, and keeps what it reads.
    pub fn new(port: u16, ends: Ends<'m>) -> Self {
        Self {
            port,
            line: Line::new(ends),
            content: Vec::new(),
            received: 0,
            earlier: 0,
            differs_at: None,
            expected: None,
            progress: Progress::default(),
        }
    }

    /// Takes one connection to `port`, and holds what it reads against `expected`.
    pub fn checking(port: u16, ends: Ends<'m>, expected: Content) -> Self {
        Self {
            expected: Some(expected),
            ..Self::new(port, ends)
        }
    }

    /// Takes another connection, which brings everything again, where one is lost.
    #[must_use]
    pub fn beginning_anew(mut self) -> Self {
        self.line.begin_anew();
        self
    }

    /// How many bytes were read of this connection.
    pub fn received_now(&self) -> u64 {
        self.received - self.earlier
    }

    /// The node is switched off.
    pub(super) fn switch_off(&mut self, node: &mut Node<'m>) {
        self.line.switch_off(&mut self.progress, node);
        self.begin();
    }

    /// Expects everything from the beginning.
    fn begin(&mut self) {
        self.progress.finished = None;
        self.content.clear();
        self.earlier = self.received;
    }

    fn read(&mut self, bytes: &[u8]) {
        match &mut self.expected {
            None => self.content.extend_from_slice(bytes),
            Some(expected) => {
                let difference = expected.difference(self.received - self.earlier, bytes);
                self.differs_at = self.differs_at.or(difference);
            }
        }
        self.received += bytes.len() as u64;
    }

    pub(super) fn step(&mut self, node: &mut Node<'m>, now: Instant) -> bool {
        if self.line.is_called_again(node.tcp()) {
            self.line.forget(&mut self.progress, node.tcp_mut());
            self.begin();
        }
        if self.progress.closed {
            let anew = self.line.let_go(&mut self.progress, node.tcp_mut(), now);
            if anew {
                self.begin();
            }
            return anew;
        }
        let Some(handle) = self.line.handle else {
            let handle = self.line.accept(self.port, &mut self.progress, node, now);
            return handle.is_some() || self.progress.closed;
        };
        let tcp = node.tcp_mut();
        let before = self.received;
        let mut bytes = [0; 512];
        let end = loop {
            match tcp.recv(handle, &mut bytes) {
                Ok(len) => self.read(&bytes[..len]),
                Err(error) => break error,
            }
        };
        if end == RecvError::Finished && self.progress.finished.is_none() {
            self.progress.finished = Some(now);
            tcp.shutdown(handle, now);
        }
        let connection = tcp.connection(handle);
        if self.progress.began.is_none() && connection.is_some_and(tcp::Connection::is_established)
        {
            self.progress.began = Some(now);
        }
        observe(&mut self.progress, tcp, handle, end);
        self.received != before || self.progress.closed
    }
}
