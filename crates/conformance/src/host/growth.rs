//! Slow start as in Linux: cwnd grows by as many segments as an ACK acknowledges.
//!
//! Place: the profile `linux` alone, before the engine takes an ACK. RFC 5681 §3.1 lets cwnd grow
//! by one segment for each ACK, which is the engine's rule and the profile's setting; Linux counts
//! every segment that the ACK acknowledges, except those that earlier SACK blocks, or duplicate
//! ACKs without SACK, have already reported. So the limit of the engine's growth is set anew before
//! each ACK.

use motet::tcp::Config;

use super::edge::Flow;
use super::{ACK, Host, SYN};
use crate::packet::Segment;

impl Host<'_> {
    /// Bounds the growth of cwnd by the segments that `segment` acknowledges.
    pub(super) fn lend_growth(&mut self, flow: Flow, segment: &Segment) {
        if !segment.has(ACK) || segment.has(SYN) {
            return;
        }
        let acked = self.edge.acknowledge(flow, segment.ack);
        let Some(handle) = self.stream_of(flow).map(|stream| stream.handle) else {
            return;
        };
        let Some(connection) = self.tcp.connection(handle) else {
            return;
        };
        let seen = connection.telemetry();
        let known = connection.under_way().bytes - u32::from(seen.inflight_bytes);
        let news = acked.saturating_sub(known);
        let segments = news.div_ceil(u32::from(seen.smss_bytes.max(1)));
        let config = Config {
            slow_start_segments_max: segments.clamp(1, 255) as u8,
            ..*connection.config()
        };
        if config != *connection.config() {
            let config = self.arena.alloc(config);
            self.tcp.set_config(handle, config, self.now);
        }
    }
}
