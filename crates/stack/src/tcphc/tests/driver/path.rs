//! Through the compressor, along the path, through the decompressor, and before the judge.

use std::vec;
use std::vec::Vec;

use crate::tcphc::Origin;
use crate::wire::tcp::{self, Flags, Header};
use crate::wire::tcphc;

use super::{World, flow};

/// A segment on its way.
#[derive(Clone)]
pub(super) struct Flight {
    connection: usize,
    /// Which life of the connection it belongs to.
    life: u32,
    is_plain: bool,
    sent_at_us: u64,
    bytes: Vec<u8>,
    /// Header as sent, checksum included.
    truth: Vec<u8>,
    /// Not of TCP's own making: for the contexts only.
    is_junk: bool,
}

impl World {
    pub(super) fn transmit(
        &mut self,
        at: usize,
        end: usize,
        mut header: Header,
        len: u32,
        is_junk: bool,
    ) {
        let now_us = self.now_us;
        let connection = &mut self.connections[at];
        let life = connection.life;
        let peer = &mut connection.peers[end];
        (header.src_port, header.dst_port) = peer.ports;
        if let Some(clock) = &peer.ts
            && !header.flags.contains(Flags::RST)
        {
            let value = clock
                .offset
                .wrapping_add((now_us / 1000 / clock.tick_ms) as u32);
            let echo = if header.flags.contains(Flags::ACK) {
                clock.recent
            } else {
                0
            };
            header.options.timestamps = Some((value, echo));
        }
        if !is_junk {
            peer.history.push(header);
        }
        let mut segment = vec![0; header.header_len() + len as usize];
        let header_len = header.emit(&mut segment).unwrap();
        for byte in &mut segment[header_len..] {
            *byte = self.dice.0 as u8;
        }
        if let Some(first) = segment[header_len..].first_mut() {
            *first = self.dice.next() as u8;
        }
        let flow = flow(end);
        tcp::fill_checksum(&flow.local, &flow.remote, &mut segment);
        let truth = segment[..header_len].to_vec();
        let origin = if end == 0 {
            Origin::Own
        } else {
            Origin::Outside
        };
        let mut out = [0; 80];
        let now = self.now();
        let compressed = self.boxes[end].compress(&flow, &segment, origin, now, &mut out);
        self.seen.sent += 1;
        let has_payload = usize::from(len != 0);
        let (is_plain, bytes) = match compressed {
            Ok(done) => {
                let form = match out[0] {
                    0x01 => 0,
                    0x8f => 1,
                    _ => {
                        self.seen.bytes[has_payload] += done.compressed_len as u64;
                        2
                    }
                };
                self.seen.forms[form][has_payload] += 1;
                self.seen.short += u64::from(done.compressed_len <= 6);
                let bytes = [&out[..done.compressed_len], &segment[header_len..]].concat();
                let lengths = tcphc::lengths(&bytes).unwrap();
                assert_eq!(lengths.uncompressed, header_len);
                (false, bytes)
            }
            Err(_) => {
                self.seen.forms[3][has_payload] += 1;
                (true, segment)
            }
        };
        let flight = Flight {
            connection: at,
            life,
            is_plain,
            sent_at_us: now_us,
            bytes,
            truth,
            is_junk,
        };
        self.launch(1 - end, flight);
    }

    fn launch(&mut self, to: usize, flight: Flight) {
        if self.dice.chance(self.setup.late) {
            let delay = 5 + self.dice.below(self.setup.late_by);
            self.late.push((2 * delay, to, flight.clone()));
        }
        if self.dice.chance(self.setup.loss) {
            return;
        }
        let queue = &mut self.path[to];
        let mut at = queue.len();
        if self.dice.chance(self.setup.reorder) {
            at = at.saturating_sub(1 + self.dice.below(2) as usize);
        }
        let twice = self.dice.chance(self.setup.loss / 4);
        if twice {
            queue.insert(at, flight.clone());
        }
        queue.insert(at, flight);
    }

    pub(super) fn deliver(&mut self, end: usize) {
        let Some(flight) = self.path[end].pop_front() else {
            return;
        };
        // What links do where frames expire: see `Config::frames_expire`.
        if self.setup.frames_expire && self.now_us - flight.sent_at_us > FRAME_AGE_MAX_US {
            return;
        }
        let flow = flow(end);
        let now = self.now();
        let header_len = flight.truth.len();
        if flight.is_plain {
            self.boxes[end].on_plain(&flow, &flight.bytes, now);
        } else {
            let mut out = [0; 60];
            let Ok(done) = self.boxes[end].decompress(&flow, &flight.bytes, now, &mut out) else {
                self.seen.dropped += 1;
                return;
            };
            let restored = &out[..done.uncompressed_len];
            if restored != &flight.truth[..] {
                self.judge(end, &flight, restored);
                return;
            }
        }
        self.seen.exact += 1;
        let connection = &self.connections[flight.connection];
        if flight.is_junk || connection.life != flight.life {
            return;
        }
        let (header, _) = Header::parse(&flight.truth).unwrap();
        let payload = (flight.bytes.len()
            - if flight.is_plain {
                header_len
            } else {
                tcphc::lengths(&flight.bytes).unwrap().compressed
            }) as u32;
        self.on_segment(flight.connection, end, &header, payload);
    }

    /// Counts a header that was restored wrongly without notice, by how much harm it does.
    fn judge(&mut self, end: usize, flight: &Flight, restored: &[u8]) {
        let (sent, _) = Header::parse(&flight.truth).unwrap();
        let (read, _) = Header::parse(restored).unwrap();
        let lengths = tcphc::lengths(&flight.bytes).unwrap();
        let occupies = flight.bytes.len() > lengths.compressed || sent.flags.contains(Flags::FIN);
        if occupies && sent.seq != read.seq {
            self.seen.wrong_data += 1;
            return;
        }
        let history = &self.connections[flight.connection].peers[1 - end].history;
        if self.connections[flight.connection].life != flight.life {
            self.seen.wrong += 1;
            return;
        }
        let was = |matches: &dyn Fn(&Header) -> bool| history.iter().any(matches);
        let all_sent = (read.seq == sent.seq
            || was(&|h| h.seq == read.seq || read.seq.wrapping_sub(h.seq) <= self.setup.mss + 1))
            && was(&|h| h.ack == read.ack)
            && was(&|h| h.window == read.window)
            && was(&|h| h.options.timestamps.map(|t| t.0) == read.options.timestamps.map(|t| t.0))
            && was(&|h| h.options.timestamps.map(|t| t.1) == read.options.timestamps.map(|t| t.1));
        if all_sent {
            self.seen.wrong += 1;
        } else {
            self.seen.never_sent += 1;
        }
    }
}

/// 8,192 ticks of the fastest timestamp clock here.
const FRAME_AGE_MAX_US: u64 = 8_192_000;
