//! A transfer's sending end.

use std::net::Ipv6Addr;

use motet::node::Node;
use motet::tcp::{self, Handle, RecvError};
use motet::time::{Instant, earliest};

use super::content::Content;
use super::ends::{Ends, Line, Progress, observe};

/// Sends a content over one connection.
#[derive(Debug)]
pub struct Sender<'m> {
    content: Content,
    taken: u64,
    /// When the sender begins to send, as long as that is to come.
    from: Option<Instant>,
    until: Instant,
    to: (Ipv6Addr, u16),
    line: Line<'m>,
    /// The state of the connection.
    pub progress: Progress,
}

impl<'m> Sender<'m> {
    /// Sends `content` to the address and port `to`, as soon as the node has an address of its own.
    pub fn new(content: impl Into<Content>, to: (Ipv6Addr, u16), ends: Ends<'m>) -> Self {
        Self {
            content: content.into(),
            taken: 0,
            from: None,
            until: Instant::from_micros(u64::MAX),
            to,
            line: Line::new(ends),
            progress: Progress::default(),
        }
    }

    /// Connects at once, and sends nothing before `from`.
    #[must_use]
    pub fn from(mut self, from: Instant) -> Self {
        self.from = Some(from);
        self
    }

    /// Sends no more from `until` on, and closes when what it has sent has arrived.
    #[must_use]
    pub fn until(mut self, until: Instant) -> Self {
        self.until = until;
        self
    }

    /// Sends everything again over another connection where one is lost.
    #[must_use]
    pub fn beginning_anew(mut self) -> Self {
        self.line.begin_anew();
        self
    }

    /// When the sender begins to send, or tries again to connect.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        earliest(self.from, self.line.next_deadline())
    }

    /// The node is switched off.
    pub(super) fn switch_off(&mut self, node: &mut Node<'m>) {
        if self.progress.finished.is_none() {
            self.line.switch_off(&mut self.progress, node);
            self.taken = 0;
        }
    }

    /// Bytes that the stack has taken so far, acknowledged or not.
    pub fn taken(&self) -> u64 {
        self.taken
    }

    pub(super) fn step(&mut self, node: &mut Node<'m>, now: Instant) -> bool {
        self.from = self.from.filter(|from| now < *from);
        if self.progress.closed {
            let anew = self.line.let_go(&mut self.progress, node.tcp_mut(), now);
            self.taken = if anew { 0 } else { self.taken };
            return anew;
        }
        let Some(handle) = self.line.handle else {
            let handle = self.line.connect(self.to, &mut self.progress, node, now);
            return handle.is_some() || self.progress.closed;
        };
        let tcp = node.tcp_mut();
        let before = self.taken;
        let is_over = now >= self.until;
        let has_begun = self.from.is_none();
        while has_begun
            && !is_over
            && let rest @ [_, ..] = self.content.piece(self.taken)
            && let Ok(taken) = tcp.send(handle, rest, now)
        {
            self.taken += taken as u64;
        }
        if (is_over || self.taken == self.content.len()) && may_send(tcp, handle) {
            tcp.shutdown(handle, now);
        }
        // The peer should send nothing; bytes that it does send are discarded.
        let mut ignored = [0; 64];
        let end = loop {
            match tcp.recv(handle, &mut ignored) {
                Ok(_) => {}
                Err(error) => break error,
            }
        };
        if end == RecvError::Finished && self.progress.finished.is_none() {
            self.progress.finished = Some(now);
        }
        observe(&mut self.progress, tcp, handle, end);
        self.taken != before || self.progress.closed
    }
}

fn may_send(tcp: &tcp::Tcp<'_>, handle: Handle) -> bool {
    tcp.connection(handle)
        .is_some_and(tcp::Connection::may_send)
}
