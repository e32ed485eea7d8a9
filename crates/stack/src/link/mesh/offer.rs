//! How long the segments of a connection may be that fill so many frames.
//!
//! Place: the node asks before TCP announces an MSS. [`Budget`](super::Budget) answers for a
//! segment whose header is known.

use super::tcp_headers::flow;
use super::{Budget, Mesh};
use crate::link::{Segments, Shrinks};
use crate::time::Instant;
use crate::wire::tcp::{HEADER_LEN, TIMESTAMPS_LEN};
use crate::wire::tcphc;

impl Mesh<'_> {
    /// Payload and TCP options in a segment that fills the frames of
    /// [`MeshConfig::mss_frames`](super::MeshConfig::mss_frames), bytes; 0: none has room.
    ///
    /// Payload per frame is asked of the MAC, and room is left for what the first fragment
    /// grows by on later hops, so that relays never find it too long.
    pub(in crate::link) fn mss(&self, segments: &Segments, shrinks: Shrinks) -> usize {
        let budget = Budget::of(self);
        let timestamps = segments.timestamps;
        let options = if timestamps { TIMESTAMPS_LEN } else { 0 };
        let uncompressed = HEADER_LEN + options;
        let compressed = match (budget.tcphc, shrinks) {
            (None, _) | (_, Shrinks::Never) => uncompressed,
            // A peer in the mesh cuts what it sends as this node does.
            (Some(tcphc), Shrinks::ForPeer)
                if !flow(segments.header.src, segments.header.dst).within_mesh =>
            {
                tcphc.header_len_max(timestamps)
            }
            (Some(tcphc), _) => tcphc.header_len_usual(timestamps),
        };
        let lens = (compressed, uncompressed);
        match budget.payload(&segments.header, segments.to, lens) {
            0 => 0,
            // Each segment counts its options out.
            payload => payload + options,
        }
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
                Some(ports) => tcphc.carries(&flow, ports),
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
