//! The frames of a connection's full segments on the air, by the stack's own arithmetic.
//!
//! Purpose: bounds and estimates count frames, whose number and length follow from the MSS, the
//! headers and the fragmenter. Left out: fields of a header that only some segments have.

use std::net::Ipv6Addr;

use motet::limits::{IPV6_MTU_MIN, PSDU_LEN_MAX};
use motet::lowpan::fragment::{FIRST_SLACK, Fragmenter};
use motet::lowpan::{LinkPair, TcpForm};
use motet::wire::{self, cursor::Writer, tcphc::Field};

use crate::net::estimate::SegmentFrames;
use crate::net::network;
use crate::net::plan;
use crate::net::world::World;

/// A connection, seen from its end in the mesh.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segments {
    /// The mesh node that makes the frames.
    pub from: usize,
    /// The mesh node that takes them.
    pub next: usize,
    /// The address of the other end.
    pub peer: Ipv6Addr,
    /// Whether segments carry timestamps.
    pub timestamps: bool,
    /// Whether their TCP headers are compressed.
    pub is_compressed: bool,
}

impl Segments {
    /// Application bytes of a full segment; 0 before the node has joined.
    pub fn payload_len(&self, world: &World<'_>) -> usize {
        let mss = world.node(self.from).mss((self.peer, 0), self.timestamps);
        usize::from(mss).saturating_sub(self.options_len())
    }

    /// A full segment and its ACK.
    pub fn frames(&self, world: &World<'_>, acks_per_segment: f64) -> SegmentFrames {
        let (payload_len, frames) = self.full(world);
        SegmentFrames {
            payload_len,
            frames,
            ack_frames: self.frame_lens(world, 0, Fields::Usual),
            acks_per_segment,
        }
    }

    /// Payload and frames of a full segment, which the stack cuts so that it fills no frame more
    /// than its setting says: where the usual header would take one more, the header is shorter, or
    /// the payload, of a node that compresses the headers of other connections only.
    fn full(&self, world: &World<'_>) -> (usize, Vec<usize>) {
        let longest = self.payload_len(world);
        let usual = self.frame_lens(world, longest, Fields::Usual);
        if !network::compresses(world, self.from) {
            return (longest, usual);
        }
        let compressed = Self {
            is_compressed: true,
            ..*self
        };
        let fewest = compressed.frame_lens(world, longest, Fields::Elided);
        let fits = |frames: &Vec<usize>| frames.len() <= fewest.len();
        match (fits(&usual), self.is_compressed) {
            (true, _) => (longest, usual),
            (false, true) => (longest, fewest),
            (false, false) => {
                let shorter = (0..longest).rev();
                let mut cut = shorter.map(|len| (len, self.frame_lens(world, len, Fields::Usual)));
                cut.find(|(_, frames)| fits(frames))
                    .unwrap_or((longest, usual))
            }
        }
    }

    const fn options_len(&self) -> usize {
        if self.timestamps { TIMESTAMPS_LEN } else { 0 }
    }

    /// PSDU bytes of the frames of a segment with `payload_len` bytes of data. `fields`: those of a
    /// compressed header.
    fn frame_lens(&self, world: &World<'_>, payload_len: usize, fields: Fields) -> Vec<usize> {
        // Lossless: there are at most 2^16 nodes.
        let link_addr = |node: usize| plan::link_addr(node as u16);
        let link = LinkPair {
            src: link_addr(self.from),
            dst: link_addr(self.next),
        };
        let Some(mac) = network::mac(world, self.from) else {
            return Vec::new();
        };
        let frame_payload_len_max = mac.payload_len_max(link.dst);
        let overhead = PSDU_LEN_MAX - frame_payload_len_max;
        let src = plan::mesh_addr(self.from as u16);
        let packet = sample_packet(src, self.peer, self.options_len() + payload_len);
        let mut memory = [0; IPV6_MTU_MIN];
        memory[..packet.len()].copy_from_slice(&packet);
        let tcp = match self.is_compressed {
            true => self.compress_sample(&mut memory[IPV6_HEADER_LEN..packet.len()], fields),
            false => TcpForm::Plain,
        };
        let mut outgoing = Fragmenter::new(&mut memory);
        let len = packet.len();
        let started = outgoing.start(len, tcp.into(), link, 0, frame_payload_len_max, FIRST_SLACK);
        debug_assert!(started.is_ok(), "the MSS fits the packet's buffer");
        let mut out = [0; PSDU_LEN_MAX];
        let contexts = plan::contexts();
        std::iter::from_fn(|| outgoing.next(&contexts, &mut out).ok().flatten())
            .map(|len| len + overhead)
            .collect()
    }

    /// Gives `segment` a compressed header with these fields.
    fn compress_sample(&self, segment: &mut [u8], fields: Fields) -> TcpForm {
        let half = match fields {
            Fields::Usual => Field::Low16(0),
            Fields::Elided => Field::Elided,
        };
        let header = wire::tcphc::Header::Compressed(wire::tcphc::Compressed {
            seq: half,
            timestamps: self.timestamps.then_some((half, half)),
            ..wire::tcphc::Compressed::default()
        });
        let mut bytes = [0; wire::tcphc::HEADER_LEN_MAX];
        let mut w = Writer::new(&mut bytes);
        let emitted = header.emit(&mut w);
        debug_assert!(emitted.is_ok(), "the longest header fits");
        let len = w.written();
        TcpForm::put(&bytes[..len], header.uncompressed_len(), segment)
    }
}

/// Fields of a compressed header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fields {
    /// Those that most segments have where every form may be elided that the default mode lets:
    /// sequence number and timestamps in 16 bits each.
    Usual,
    /// None: no header is shorter.
    Elided,
}

/// A TCP segment's packet as far as its length and compression go: ECN-capable, no flow
/// label, hop limit 64.
fn sample_packet(src: Ipv6Addr, dst: Ipv6Addr, tcp_payload_len: usize) -> Vec<u8> {
    const TCP: u8 = 6;
    const HOP_LIMIT: u8 = 64;
    const ECT_0: u8 = 2;
    let payload_len = (TCP_HEADER_LEN + tcp_payload_len) as u16;
    let [high, low] = payload_len.to_be_bytes();
    let mut packet = vec![0x60, ECT_0 << 4, 0, 0, high, low, TCP, HOP_LIMIT];
    packet.extend(src.octets());
    packet.extend(dst.octets());
    packet.resize(packet.len() + usize::from(payload_len), 0);
    packet
}

const IPV6_HEADER_LEN: usize = 40;

/// Bytes of a TCP header without options.
const TCP_HEADER_LEN: usize = 20;

/// Bytes of each segment that the timestamps option takes (RFC 7323 appendix A).
const TIMESTAMPS_LEN: usize = 12;
