//! The application at either end: one sends all it has, the other reads it.

use motet::time::Instant;
use motet::wire::ipv6;
use motet::wire::tcp::{self, Flags};

use crate::endpoint::{Endpoint, MSS};

/// Sends until the content is over, or the time is.
#[derive(Debug)]
pub struct Sender<'c> {
    content: &'c [u8],
    until: Instant,
    /// Bytes that its stack has taken.
    pub taken: usize,
    shut: bool,
    highest: Option<u32>,
    retransmissions: u64,
    segments: u64,
}

/// Reads until the sender has finished, then closes too.
#[derive(Debug, Default)]
pub struct Receiver {
    /// What it has read.
    pub content: Vec<u8>,
    /// When the end of the content was read.
    pub finished: Option<Instant>,
    /// When bytes were read last.
    pub last_read: Option<Instant>,
}

impl<'c> Sender<'c> {
    /// Sends `content`, but no more from `until` on.
    pub fn new(content: &'c [u8], until: Instant) -> Self {
        Self {
            content,
            until,
            taken: 0,
            shut: false,
            highest: None,
            retransmissions: 0,
            segments: 0,
        }
    }

    /// Hands over what fits; closes behind the last byte.
    pub fn step(&mut self, end: &mut dyn Endpoint, now: Instant) {
        let mut ignored = [0; 64];
        while end.recv(&mut ignored, now) > 0 {}
        if self.shut || !end.status().may_send {
            return;
        }
        let over = now >= self.until;
        let rest = self.content.get(self.taken..).unwrap_or_default();
        if !over && !rest.is_empty() {
            // The stack's buffer bounds it: more than one window is never looked at.
            self.taken += end.send(&rest[..rest.len().min(WRITE_LEN_MAX)], now);
        }
        if over || self.taken == self.content.len() {
            end.shutdown(now);
            self.shut = true;
        }
    }

    /// Looks at a packet that its stack sends: one that begins before the last one's end is
    /// sent again. Counted here because not every stack counts.
    pub fn note_sent(&mut self, packet: &[u8]) {
        let Some((seq, len)) = data_of(packet) else {
            return;
        };
        debug_assert!(len <= u32::from(MSS), "{len} bytes in a segment");
        self.segments += 1;
        let end = seq.wrapping_add(len);
        match self.highest {
            Some(highest) if (end.wrapping_sub(highest) as i32) <= 0 => self.retransmissions += 1,
            _ => self.highest = Some(end),
        }
    }

    /// Data segments sent again.
    pub fn retransmissions(&self) -> u64 {
        self.retransmissions
    }

    /// Data segments sent, repetitions included.
    pub fn segments(&self) -> u64 {
        self.segments
    }

    /// Data segments sent again, as a part of all sent.
    pub fn retransmitted(&self) -> f64 {
        self.retransmissions as f64 / self.segments.max(1) as f64
    }
}

impl Receiver {
    /// Reads what there is; closes when the peer has.
    pub fn step(&mut self, end: &mut dyn Endpoint, now: Instant) {
        let mut bytes = [0; 512];
        loop {
            match end.recv(&mut bytes, now) {
                0 => break,
                len => {
                    self.content.extend_from_slice(&bytes[..len]);
                    self.last_read = Some(now);
                }
            }
        }
        if self.finished.is_none() && end.status().finished {
            self.finished = Some(now);
            end.shutdown(now);
        }
    }

    /// The first place where what it has read is not what was sent.
    pub fn differs_from(&self, content: &[u8]) -> Option<usize> {
        let longer = (self.content.len() > content.len()).then_some(content.len());
        let mut pairs = self.content.iter().zip(content);
        pairs.position(|(a, b)| a != b).or(longer)
    }
}

/// Sequence number and length of a packet's data; `None`: it has none.
fn data_of(packet: &[u8]) -> Option<(u32, u32)> {
    let (_, segment): (_, &[u8]) = packet.split_at_checked(ipv6::HEADER_LEN)?;
    let (header, data) = tcp::Header::parse(segment).ok()?;
    let carries = !data.is_empty() && !header.flags.contains(Flags::SYN);
    carries.then_some((header.seq, data.len() as u32))
}

/// Content that shows every gap and repetition: no two windows of it are alike.
pub fn content(len: usize, seed: u64) -> Vec<u8> {
    let mut rng = motet::random::Rng::from_seed([seed, 3]);
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend(rng.next_u64().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// More than any window here.
const WRITE_LEN_MAX: usize = 8_192;
