//! A transfer's receiving end.

use motet::node::Node;
use motet::tcp::{self, Handle, RecvError};
use motet::time::Instant;

use super::content::Content;
use super::ends::{Ends, Progress, accept, observe};

/// Reads one connection to its end.
#[derive(Debug)]
pub struct Receiver<'m> {
    port: u16,
    ends: Ends<'m>,
    handle: Option<Handle>,
    /// All that was read, unless it is only checked.
    pub content: Vec<u8>,
    /// How many bytes were read.
    pub received: u64,
    /// The first of them that is not what it should be.
    pub differs_at: Option<u64>,
    expected: Option<Content>,
    /// How it goes.
    pub progress: Progress,
}

impl<'m> Receiver<'m> {
    /// Takes one connection to `port`, and keeps what it reads.
    pub fn new(port: u16, ends: Ends<'m>) -> Self {
        Self {
            port,
            ends,
            handle: None,
            content: Vec::new(),
            received: 0,
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

    fn read(&mut self, bytes: &[u8]) {
        match &mut self.expected {
            None => self.content.extend_from_slice(bytes),
            Some(expected) => {
                let difference = expected.difference(self.received, bytes);
                self.differs_at = self.differs_at.or(difference);
            }
        }
        self.received += bytes.len() as u64;
    }

    pub(super) fn step(&mut self, node: &mut Node<'m>, now: Instant) -> bool {
        if self.progress.closed {
            return false;
        }
        let Some(handle) = self.handle else {
            self.handle = accept(&mut self.ends, self.port, &mut self.progress, node, now);
            return self.handle.is_some() || self.progress.closed;
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
