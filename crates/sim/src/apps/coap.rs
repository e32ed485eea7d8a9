//! CoAP on a node: a sensor's readings in blocks, and the server that takes them.
//!
//! Place: variants of [`crate::apps::App`]. The readings of a batch are one body, cut into blocks
//! wherever they end; a reading is read where all its blocks have come.

use std::net::Ipv6Addr;

use motet::node::Node;
use motet::random::Rng;
use motet::time::{Duration, Instant, earliest};
use motet::udp::Inbox;

use crate::Arena;
use crate::apps::backlog::{Backlog, Reading};
use crate::apps::readings::{Tally, take_inbox};
use crate::coap::receiver::Receiver;
use crate::coap::sender::{Block, Sender};
use crate::coap::timing::Timing;

/// Makes readings, and puts them to a server.
#[derive(Debug)]
pub struct CoapReporter<'m> {
    to: (Ipv6Addr, u16),
    inbox: Option<Inbox<'m>>,
    /// Readings that wait to be sent.
    pub backlog: Backlog,
    /// The state of CoAP's requests.
    pub sender: Sender,
    block_len: usize,
    body: u16,
    number: u32,
    /// Bytes of the body that are in no block yet.
    bytes: Vec<u8>,
    /// A request that the node had no room for, and when to try again.
    held: Option<(Vec<u8>, Instant)>,
    rng: Rng,
}

/// Takes readings that come over CoAP.
#[derive(Debug)]
pub struct CoapCollector<'m> {
    inbox: Option<Inbox<'m>>,
    clients: Vec<Client>,
}

/// One client, as its server sees it.
#[derive(Debug)]
struct Client {
    addr: Ipv6Addr,
    receiver: Receiver,
    body: Body,
    tally: Tally,
    is_broken: bool,
}

/// The body that comes in.
#[derive(Debug)]
struct Body {
    reading_len: usize,
    block_len: usize,
    /// The body's number, and the number of its next block.
    next: Option<(u16, u32)>,
    /// The beginning of a reading whose end is to come.
    partial: Vec<u8>,
}

impl<'m> CoapReporter<'m> {
    /// Puts what `backlog` makes in blocks of `block_len` bytes; without `timing` unconfirmed.
    pub fn new(
        to: (Ipv6Addr, u16),
        backlog: Backlog,
        block_len: usize,
        timing: Option<Timing>,
        mut rng: Rng,
        arena: &'m Arena,
    ) -> Self {
        Self {
            to,
            inbox: Some(inbox(CLIENT_PORT, arena)),
            backlog,
            sender: Sender::new(PATH, timing, &mut rng),
            block_len,
            body: 0,
            number: 0,
            bytes: Vec::new(),
            held: None,
            rng,
        }
    }

    /// When a reading or a retransmission is due.
    pub fn next_deadline(&self) -> Option<Instant> {
        let held = self.held.as_ref().map(|(_, at)| *at);
        let due = earliest(self.backlog.next_deadline(), self.sender.next_deadline());
        earliest(due, held)
    }

    /// Readings that have left the queue and are not given up, the block under way included.
    pub fn under_way(&self) -> u64 {
        let blocks = usize::from(!self.sender.is_idle() || self.held.is_some());
        (self.bytes.len() + blocks * self.block_len).div_ceil(self.backlog.sensor().reading_len)
            as u64
    }

    pub(super) fn switch_off(&mut self, node: &mut Node<'m>) {
        self.inbox = take_inbox(node).or(self.inbox.take());
        self.bytes.clear();
        self.held = None;
    }

    pub(crate) fn step(&mut self, node: &mut Node<'m>, now: Instant) -> bool {
        if let Some(inbox) = self.inbox.take() {
            node.set_inbox(inbox);
            return true;
        }
        let before = self.sender.answer_until();
        let mut acted = self.backlog.make(now);
        acted |= self.receive(node, now);
        if self.held.as_ref().is_some_and(|(_, at)| now >= *at)
            && let Some((request, _)) = self.held.take()
        {
            self.transmit(request, node, now);
        }
        if let Some(again) = self.sender.on_due(now).map(<[u8]>::to_vec) {
            self.transmit(again, node, now);
            acted = true;
        }
        while self.sender.is_idle()
            && self.held.is_none()
            && let Some(block) = self.next_block()
        {
            let request = self.sender.send(&block, now, &mut self.rng);
            self.transmit(request, node, now);
            acted = true;
        }
        let until = self.sender.answer_until();
        if until != before {
            node.expect_answer(until);
            acted = true;
        }
        acted
    }

    fn receive(&mut self, node: &mut Node<'m>, now: Instant) -> bool {
        let mut bytes = [0; MESSAGE_LEN_MAX];
        let mut acted = false;
        while let Some(datagram) = node.inbox_mut().and_then(|inbox| inbox.recv(&mut bytes)) {
            acted |= self.sender.on_message(&bytes[..datagram.len], now);
        }
        acted
    }

    fn transmit(&mut self, request: Vec<u8>, node: &mut Node<'m>, now: Instant) {
        if node.send_datagram(self.to, CLIENT_PORT, &request).is_err() {
            self.held = Some((request, now + HELD_FOR));
        }
    }

    /// The next block of the body under way, or the first one of another.
    fn next_block(&mut self) -> Option<Block> {
        let len = self.backlog.sensor().reading_len;
        // One byte more than a block holds shows that another block follows.
        while self.bytes.len() <= self.block_len
            && let Some(reading) = self.backlog.take()
        {
            reading.emit(len, &mut self.bytes);
        }
        if self.bytes.is_empty() {
            return None;
        }
        let more = self.bytes.len() > self.block_len;
        let rest = self.bytes.split_off(self.bytes.len().min(self.block_len));
        let block = Block {
            body: self.body,
            number: self.number,
            more,
            len: self.block_len,
            bytes: std::mem::replace(&mut self.bytes, rest),
        };
        (self.body, self.number) = match more {
            true => (self.body, self.number + 1),
            false => (self.body.wrapping_add(1), 0),
        };
        Some(block)
    }
}

impl<'m> CoapCollector<'m> {
    /// Takes readings of `reading_len` bytes in blocks of `block_len` from these clients.
    pub fn new(
        clients: &[Ipv6Addr],
        reading_len: usize,
        block_len: usize,
        arena: &'m Arena,
    ) -> Self {
        let client = |addr: &Ipv6Addr| Client {
            addr: *addr,
            receiver: Receiver::default(),
            body: Body {
                reading_len,
                block_len,
                next: None,
                partial: Vec::new(),
            },
            tally: Tally::default(),
            is_broken: false,
        };
        Self {
            inbox: Some(inbox(crate::coap::PORT, arena)),
            clients: clients.iter().map(client).collect(),
        }
    }

    /// The bytes from a client, and whether they all were as that client had sent them.
    pub fn tally(&self, addr: Ipv6Addr) -> Option<(&Tally, bool)> {
        let client = self.clients.iter().find(|client| client.addr == addr)?;
        Some((&client.tally, !client.is_broken))
    }

    pub(super) fn switch_off(&mut self, node: &mut Node<'m>) {
        self.inbox = take_inbox(node).or(self.inbox.take());
    }

    pub(crate) fn step(&mut self, node: &mut Node<'m>, now: Instant) -> bool {
        if let Some(inbox) = self.inbox.take() {
            node.set_inbox(inbox);
            return true;
        }
        let mut bytes = [0; MESSAGE_LEN_MAX];
        let mut acted = false;
        while let Some(datagram) = node.inbox_mut().and_then(|inbox| inbox.recv(&mut bytes)) {
            acted = true;
            let mut clients = self.clients.iter_mut();
            let Some(client) = clients.find(|client| client.addr == datagram.from.addr) else {
                continue;
            };
            let Some(heard) = client.receiver.on_message(&bytes[..datagram.len]) else {
                continue;
            };
            if let Some(answer) = heard.answer {
                // A client asks again where there was no room for it.
                let _ = node.send_datagram(datagram.from, datagram.port, &answer);
            }
            if let Some((body, number, bytes)) = heard.block {
                client.take(body, number, &bytes, now);
            }
        }
        acted
    }
}

impl Client {
    fn take(&mut self, body: u16, number: u32, bytes: &[u8], now: Instant) {
        self.tally.bytes += bytes.len() as u64;
        for reading in self.body.readings(body, number, bytes) {
            match Reading::parse(&reading) {
                Some(reading) => self.tally.count(reading.made_at, now),
                None => self.is_broken = true,
            }
        }
    }
}

impl Body {
    /// The readings that this block completes.
    fn readings(&mut self, body: u16, number: u32, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut bytes = bytes;
        if self.next != Some((body, number)) {
            self.partial.clear();
            // What begins in a block that has not come cannot be read.
            let offset = number as usize * self.block_len;
            let skipped = offset.next_multiple_of(self.reading_len) - offset;
            bytes = bytes.get(skipped..).unwrap_or_default();
        }
        self.next = Some((body, number.wrapping_add(1)));
        self.partial.extend(bytes);
        let whole = self.partial.len() - self.partial.len() % self.reading_len;
        let readings: Vec<u8> = self.partial.drain(..whole).collect();
        let readings = readings.chunks(self.reading_len);
        readings.map(<[u8]>::to_vec).collect()
    }
}

fn inbox(port: u16, arena: &Arena) -> Inbox<'_> {
    let memory = arena.alloc_slice_fill_copy(INBOX_LEN, 0);
    Inbox::new(arena.alloc_slice_copy(&[port]), memory)
}

/// The resource that takes readings.
const PATH: &str = "r";

/// Clients' own: 6LoWPAN compresses it to four bits.
const CLIENT_PORT: u16 = 0xf0b1;

const INBOX_LEN: usize = 8_192;

/// More than a packet of the mesh has.
const MESSAGE_LEN_MAX: usize = 1_280;

/// How long a datagram waits for room in the queue.
const HELD_FOR: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of the readings that a server takes out of those blocks of a body which come.
    fn taken(readings: u32, block_len: usize, lost: &[usize]) -> Vec<u32> {
        let mut bytes = Vec::new();
        for number in 0..readings {
            let made_at = Instant::ORIGIN;
            Reading { number, made_at }.emit(82, &mut bytes);
        }
        let mut body = Body {
            reading_len: 82,
            block_len,
            next: None,
            partial: Vec::new(),
        };
        let blocks = bytes.chunks(block_len).enumerate();
        let come = blocks.filter(|(number, _)| !lost.contains(number));
        let readings = come.flat_map(|(number, block)| body.readings(0, number as u32, block));
        readings
            .map(|bytes| Reading::parse(&bytes).expect("whole").number)
            .collect()
    }

    #[test]
    fn a_lost_block_costs_the_readings_that_have_a_part_in_it() {
        for block_len in [64, 82, 100, 454, 1_024] {
            assert_eq!(taken(64, block_len, &[]).len(), 64, "{block_len}");
            let left = taken(64, block_len, &[1]);
            let touched = |number: &u32| {
                let begin = *number as usize * 82;
                begin < 2 * block_len && begin + 82 > block_len
            };
            let expected: Vec<u32> = (0..64).filter(|number| !touched(number)).collect();
            assert_eq!(left, expected, "{block_len}");
        }
        assert_eq!(taken(12, 454, &[0, 2]), [6, 7, 8, 9, 10]);
    }
}
