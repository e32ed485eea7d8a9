//! The length of a connection's segments that fill a given number of frames.
//!
//! Place: the node computes it before TCP announces an MSS. [`Budget`](super::Budget) has the
//! length of a segment whose header is known.

use super::tcp_headers::flow;
use super::{Budget, Mesh};
use crate::link::Segments;
use crate::time::Instant;
use crate::wire::tcp::{HEADER_LEN, TIMESTAMPS_LEN};
use crate::wire::tcphc;

impl Mesh<'_> {
    /// Payload and TCP options in a segment that fills the frames of
    /// [`MeshConfig::mss_frames`](super::MeshConfig::mss_frames), or as many as the connection
    /// says, bytes; 0: no segment fits. The first value is for segments that this node sends, the
    /// second for those that its peer sends.
    ///
    /// The payload per frame comes from the MAC. Room is left for the growth of the first fragment
    /// on later hops, so that it never becomes too long for a relay.
    pub(in crate::link) fn mss(&self, segments: &Segments, is_carried: bool) -> [usize; 2] {
        let budget = Budget::of(self).filling(segments.frames);
        let timestamps = segments.timestamps;
        let options = if timestamps { TIMESTAMPS_LEN } else { 0 };
        let uncompressed = HEADER_LEN + options;
        let (own, peers) = match budget.tcphc.filter(|_| is_carried) {
            None => (uncompressed, uncompressed),
            Some(tcphc) => {
                let usual = tcphc.header_len_usual(timestamps);
                // A peer in the mesh cuts its segments in the same way as this node.
                match flow(segments.header.src, segments.header.dst).within_mesh {
                    true => (usual, usual),
                    false => (usual, tcphc.header_len_max(timestamps)),
                }
            }
        };
        let ways = [(own, budget.overhead.up), (peers, budget.overhead.down)];
        ways.map(|(compressed, overhead)| {
            let lens = (compressed, uncompressed);
            match budget.payload(&segments.header, segments.to, lens, overhead) {
                0 => 0,
                // Each segment counts its options out.
                payload => payload + options,
            }
        })
    }

    /// Whether the headers of a connection are compressed here. `ports`: its local and its remote
    /// one, where the peer chose both.
    pub(in crate::link) fn is_carried(
        &self,
        segments: &Segments,
        ports: Option<(u16, u16)>,
        now: Instant,
    ) -> bool {
        Budget::of(self).tcphc.is_some_and(|tcphc| {
            let flow = flow(segments.header.src, segments.header.dst);
            match ports {
                None => tcphc.would_carry(&flow, now),
                Some(ports) => tcphc.carries(&flow, ports, now),
            }
        })
    }

    /// The most bytes that a connection may have in flight.
    pub(in crate::link) fn flight_max(&self) -> u16 {
        match Budget::of(self).tcphc {
            Some(_) => tcphc::FLIGHT_MAX,
            None => u16::MAX,
        }
    }
}
