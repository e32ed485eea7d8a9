//! Bursts as Linux hands them to a device: PSH where one large packet would end.
//!
//! Place: the profile `linux` alone, once all segments of one instant are there. Linux passes new
//! data down in packets of several segments, of half of cwnd at most, and sets PSH on each packet
//! of two segments or more; the device that cuts such a packet up leaves PSH on its last segment.
//! RFC 9293 §3.9.1.2 leaves PSH within a write to the sender.

use super::edge::Flow;
use super::{FIN, Host, Packet, RST, SYN};
use crate::packet::PSH;

/// Segments of new data, one behind the other.
struct Burst {
    flow: Flow,
    /// The sequence number behind the burst, and how many segments the burst has.
    next: u32,
    count: usize,
    /// The position of the last of them in the queue of sent segments.
    last: usize,
}

impl Host<'_> {
    /// Marks the bursts among the segments sent now: those from the place `first` on.
    pub(super) fn push_bursts(&mut self, first: usize) {
        let mut bursts: Vec<Burst> = Vec::new();
        for at in first..self.sent.len() {
            let Some((flow, seq, next)) = self.news(at) else {
                continue;
            };
            let most = self.burst_max(flow);
            match bursts.last_mut() {
                Some(burst)
                    if (burst.flow, burst.next, burst.last + 1) == (flow, seq, at)
                        && burst.count < most =>
                {
                    burst.next = next;
                    burst.count += 1;
                    burst.last = at;
                }
                _ => bursts.push(Burst {
                    flow,
                    next,
                    count: 1,
                    last: at,
                }),
            }
        }
        for burst in bursts.iter().filter(|burst| burst.count > 1) {
            self.push(burst.last);
        }
    }

    /// Flow, first and next sequence number of the packet at `at`, if it bears new data.
    fn news(&mut self, at: usize) -> Option<(Flow, u32, u32)> {
        let (packet, payload) = Packet::parse(&self.sent.get(at)?.bytes)?;
        let segment = &packet.segment;
        if payload.is_empty() || segment.has(SYN | FIN | RST) {
            return None;
        }
        let flow = (packet.dst, segment.dst_port, segment.src_port);
        let next = segment.seq.wrapping_add(payload.len() as u32);
        self.edge
            .is_news(flow, next)
            .then_some((flow, segment.seq, next))
    }

    fn burst_max(&mut self, flow: Flow) -> usize {
        let handle = self.stream_of(flow).map(|stream| stream.handle);
        let connection = handle.and_then(|handle| self.tcp.connection(handle));
        let segments = connection.map_or(0, |connection| {
            let seen = connection.telemetry();
            seen.cwnd_bytes / seen.smss_bytes.max(1)
        });
        usize::from(segments / 2).max(1)
    }

    /// Sets PSH on the packet at `at`.
    fn push(&mut self, at: usize) {
        if let Some(sent) = self.sent.get_mut(at)
            && let Some((mut packet, payload)) = Packet::parse(&sent.bytes)
        {
            packet.segment.flags |= PSH;
            let bytes = packet.emit(payload);
            sent.bytes = bytes;
        }
    }
}
