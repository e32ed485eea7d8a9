//! Messages over one TCP connection, made at a constant rate, with or without answers.
//!
//! Place: variants of [`crate::apps::App`]. A message carries its number and the instant it was
//! made, so that its receiver knows whether all came, in order, and how long they took.
//! Left out: a queue of messages. A message that falls due while the last one is still being
//! written, or waits for its answer, is not made: the application has no memory for it.

use std::net::Ipv6Addr;

use motet::node::Node;
use motet::random::Rng;
use motet::tcp::{Handle, Tcp};
use motet::time::{Duration, Instant, earliest};

use crate::apps::ends::{Ends, Line, Progress, observe};
use crate::apps::readings::Tally;

/// How long messages are, and how often there is one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Bytes of a message, at least [`MESSAGE_LEN_MIN`].
    pub message_len: usize,
    /// Bytes of the answer to it; none: it is not answered.
    pub answer_len: usize,
    /// Time from one message to the next.
    pub interval: Duration,
}

/// Makes messages, and reads the answers.
#[derive(Debug)]
pub struct Client<'m> {
    to: (Ipv6Addr, u16),
    line: Line<'m>,
    shape: Shape,
    next: Instant,
    until: Instant,
    unsent: UnsentBytes,
    /// When the message was made whose answer is awaited, and how much of that has come.
    awaited: Option<(Instant, usize)>,
    sent: u32,
    /// Messages that were due.
    pub due: u64,
    /// Answers that came, as old as the message that each answers.
    pub tally: Tally,
    /// Bytes came that were not sent, or not in that order.
    pub is_broken: bool,
    /// The state of the connection.
    pub progress: Progress,
}

/// Reads messages, and answers them.
#[derive(Debug)]
pub struct Server<'m> {
    port: u16,
    line: Line<'m>,
    shape: Shape,
    unsent: UnsentBytes,
    /// The number of the next message.
    next: u32,
    /// Whether messages may be missing, which nobody has sent.
    skips: bool,
    /// Messages that came over this connection.
    pub(crate) current: u64,
    /// The beginning of the message that is coming in.
    head: [u8; MESSAGE_LEN_MIN],
    read: usize,
    /// Messages that came.
    pub tally: Tally,
    /// Bytes came that were not sent, or not in that order.
    pub is_broken: bool,
    /// The state of the connection.
    pub progress: Progress,
}

/// Bytes that wait for TCP to take them.
#[derive(Debug, Default)]
struct UnsentBytes {
    bytes: Vec<u8>,
    taken: usize,
}

impl UnsentBytes {
    fn is_empty(&self) -> bool {
        self.taken == self.bytes.len()
    }

    fn put(&mut self, number: u32, made_at: Instant, len: usize) {
        let head = number.to_be_bytes().into_iter();
        let head = head.chain(made_at.as_micros().to_be_bytes());
        let body = (MESSAGE_LEN_MIN..len).map(|place| filler(number, place));
        // Bytes that TCP has accepted need not be kept.
        self.bytes.drain(..std::mem::take(&mut self.taken));
        self.bytes.extend(head.chain(body).take(len));
    }

    fn write(&mut self, tcp: &mut Tcp<'_>, handle: Handle, now: Instant) -> bool {
        let before = self.taken;
        while let Some(rest @ [_, ..]) = self.bytes.get(self.taken..)
            && let Ok(taken) = tcp.send(handle, rest, now)
        {
            self.taken += taken;
        }
        self.taken != before
    }
}

impl<'m> Client<'m> {
    /// Makes messages for a port of somebody, the first within one interval from `from`: motes
    /// are not in step.
    pub fn new(
        to: (Ipv6Addr, u16),
        ends: Ends<'m>,
        shape: Shape,
        from: Instant,
        rng: &mut Rng,
    ) -> Self {
        let shape = shape.valid();
        Self {
            to,
            line: Line::new(ends),
            shape,
            next: from + rng.uniform(shape.interval),
            until: Instant::from_micros(u64::MAX),
            unsent: UnsentBytes::default(),
            awaited: None,
            sent: 0,
            due: 0,
            tally: Tally::default(),
            is_broken: false,
            progress: Progress::default(),
        }
    }

    /// Makes none from `until` on.
    #[must_use]
    pub fn until(mut self, until: Instant) -> Self {
        self.until = until;
        self
    }

    /// Goes on over another connection where one is lost.
    #[must_use]
    pub fn beginning_anew(mut self) -> Self {
        self.line.begin_anew();
        self
    }

    /// When the next one is due, or it tries again to connect.
    pub fn next_deadline(&self) -> Option<Instant> {
        earliest(self.due_at(), self.line.next_deadline())
    }

    fn due_at(&self) -> Option<Instant> {
        (self.next < self.until && !self.progress.closed).then_some(self.next)
    }

    /// The node is switched off.
    pub(super) fn switch_off(&mut self, node: &mut Node<'m>) {
        self.line.switch_off(&mut self.progress, node);
        self.begin();
    }

    /// The node is switched on again: no message was made in between.
    pub(super) fn switch_on(&mut self, now: Instant) {
        self.next = self.shape.next_after(self.next, now);
    }

    /// Knows nothing of the connection before.
    fn begin(&mut self) {
        self.unsent = UnsentBytes::default();
        self.awaited = None;
        self.sent = 0;
    }

    pub(crate) fn step(&mut self, node: &mut Node<'m>, now: Instant) -> bool {
        if self.progress.closed {
            let anew = self.line.let_go(&mut self.progress, node.tcp_mut(), now);
            if anew {
                self.begin();
            }
            return anew;
        }
        let Some(handle) = self.line.handle else {
            let handle = self.line.connect(self.to, &mut self.progress, node, now);
            if handle.is_none() {
                self.leave_out(now);
            }
            return handle.is_some() || self.progress.closed;
        };
        let made = self.make(now);
        let tcp = node.tcp_mut();
        let written = self.unsent.write(tcp, handle, now);
        let before = self.tally.bytes;
        let mut bytes = [0; 512];
        let end = loop {
            match tcp.recv(handle, &mut bytes) {
                Ok(len) => self.read_answer(&bytes[..len], now),
                Err(error) => break error,
            }
        };
        observe(&mut self.progress, tcp, handle, end);
        made || written || self.tally.bytes != before || self.progress.closed
    }

    /// Makes a message if one is due; returns whether one was.
    fn make(&mut self, now: Instant) -> bool {
        if !self.leave_out(now) {
            return false;
        }
        if self.unsent.is_empty() && self.awaited.is_none() {
            self.unsent.put(self.sent, now, self.shape.message_len);
            self.sent += 1;
            self.awaited = (self.shape.answer_len > 0).then_some((now, 0));
        }
        true
    }

    /// Counts a message that is due, and makes none; returns whether one was due.
    fn leave_out(&mut self, now: Instant) -> bool {
        let is_due = self.due_at().is_some_and(|due| due <= now);
        if is_due {
            self.due += 1;
            self.next = self.shape.next_after(self.next, now);
        }
        is_due
    }

    fn read_answer(&mut self, bytes: &[u8], now: Instant) {
        self.tally.bytes += bytes.len() as u64;
        let Some((made_at, read)) = &mut self.awaited else {
            self.is_broken |= !bytes.is_empty();
            return;
        };
        let number = self.sent.wrapping_sub(1);
        let places = (*read..)
            .zip(bytes)
            .skip_while(|(place, _)| *place < MESSAGE_LEN_MIN);
        let is_other = |(place, byte): (usize, &u8)| *byte != filler(number, place);
        self.is_broken |= places.into_iter().any(is_other);
        *read += bytes.len();
        if *read >= self.shape.answer_len {
            self.is_broken |= *read > self.shape.answer_len;
            self.tally.count(*made_at, now);
            self.awaited = None;
        }
    }
}

impl<'m> Server<'m> {
    /// Takes one connection to `port`, with messages of this shape.
    pub fn new(port: u16, ends: Ends<'m>, shape: Shape) -> Self {
        Self {
            port,
            line: Line::new(ends),
            shape: shape.valid(),
            unsent: UnsentBytes::default(),
            next: 0,
            skips: false,
            current: 0,
            head: [0; MESSAGE_LEN_MIN],
            read: 0,
            tally: Tally::default(),
            is_broken: false,
            progress: Progress::default(),
        }
    }

    /// Takes another connection where one is lost.
    #[must_use]
    pub fn beginning_anew(mut self) -> Self {
        self.line.begin_anew();
        self
    }

    /// Takes readings of [`super::backlog`]: some were lost before they were sent, and numbers go
    /// on over another connection.
    #[must_use]
    pub fn skipping(mut self) -> Self {
        self.skips = true;
        self
    }

    /// The node is switched off.
    pub(super) fn switch_off(&mut self, node: &mut Node<'m>) {
        self.line.switch_off(&mut self.progress, node);
        self.begin();
    }

    /// Knows nothing of the connection before.
    fn begin(&mut self) {
        self.unsent = UnsentBytes::default();
        self.read = 0;
        self.current = 0;
        if !self.skips {
            self.next = 0;
        }
    }

    pub(crate) fn step(&mut self, node: &mut Node<'m>, now: Instant) -> bool {
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
        let before = self.tally.bytes;
        let mut bytes = [0; 512];
        let end = loop {
            match node.tcp_mut().recv(handle, &mut bytes) {
                Ok(len) => self.read(&bytes[..len], now),
                Err(error) => break error,
            }
        };
        let tcp = node.tcp_mut();
        let written = self.unsent.write(tcp, handle, now);
        observe(&mut self.progress, tcp, handle, end);
        written || self.tally.bytes != before || self.progress.closed
    }

    fn read(&mut self, bytes: &[u8], now: Instant) {
        self.tally.bytes += bytes.len() as u64;
        for byte in bytes {
            match self.head.get_mut(self.read) {
                Some(place) => *place = *byte,
                None => self.is_broken |= *byte != filler(self.number(), self.read),
            }
            self.read += 1;
            if self.read == self.shape.message_len {
                self.finish(now);
            }
        }
    }

    /// The last byte of a message has come.
    fn finish(&mut self, now: Instant) {
        self.read = 0;
        let number = self.number();
        self.is_broken |= number < self.next || (number > self.next && !self.skips);
        self.next = number.wrapping_add(1);
        self.current += 1;
        let made_at = self.head[4..].first_chunk().copied();
        let made_at = Instant::from_micros(made_at.map_or(0, u64::from_be_bytes));
        self.tally.count(made_at, now);
        if self.shape.answer_len > 0 {
            self.unsent.put(number, now, self.shape.answer_len);
        }
    }

    fn number(&self) -> u32 {
        let number = self.head.first_chunk().copied();
        number.map_or(0, u32::from_be_bytes)
    }
}

impl Shape {
    fn valid(self) -> Self {
        Self {
            message_len: self.message_len.max(MESSAGE_LEN_MIN),
            interval: self.interval.max(Duration::from_micros(1)),
            ..self
        }
    }

    /// The first moment after `now` of those that are an interval apart, `next` among them.
    fn next_after(&self, mut next: Instant, now: Instant) -> Instant {
        while next <= now {
            next += self.interval;
        }
        next
    }
}

/// The byte at a place of a message, behind its head.
pub(super) fn filler(number: u32, place: usize) -> u8 {
    // The value depends on the message and on the place, so that a repeated message or a missing
    // byte is noticed.
    (number.wrapping_mul(31) as usize).wrapping_add(place) as u8
}

/// A number and an instant.
pub const MESSAGE_LEN_MIN: usize = 12;
