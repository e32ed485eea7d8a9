//! A transfer's TCP connection as the kernel's end of the wire shows it.
//!
//! Purpose: the figures of a connection whose sender or receiver is a kernel, which does not
//! publish them per connection. Sees whole IPv6 packets. Left out: packets of all other
//! connections.

use motet::{
    tcp::SeqNum,
    time::{Duration, Instant},
    wire::tcp::{self, Flags},
};

/// Counts the segments of one connection, and times some of those with data.
#[derive(Debug)]
pub(super) struct Flow {
    /// The receiver's port: segments to it carry the data, segments from it acknowledge.
    receiver_port: u16,
    /// When the first segment passed.
    began: Option<Instant>,
    /// Segments from the sender.
    segments: u64,
    /// The sequence number after the last one seen.
    end: Option<SeqNum>,
    /// The segment being timed, by the acknowledgement that covers it, and when it passed.
    /// One at a time, and never one that was sent twice (Karn, RFC 6298 §3).
    timed: Option<(SeqNum, Instant)>,
    /// Round trips timed, and their sum.
    rtt_samples: u64,
    rtt_total: Duration,
}

impl Flow {
    /// The connection whose receiver has `receiver_port`.
    pub(super) fn new(receiver_port: u16) -> Self {
        Self {
            receiver_port,
            began: None,
            segments: 0,
            end: None,
            timed: None,
            rtt_samples: 0,
            rtt_total: Duration::ZERO,
        }
    }

    /// A packet passes, either way.
    pub(super) fn on_packet(&mut self, packet: &[u8], now: Instant) {
        let Some((header, data)) = segment(packet) else {
            return;
        };
        if header.dst_port == self.receiver_port {
            self.began.get_or_insert(now);
            self.segments += 1;
            self.time(SeqNum::new(header.seq), data.len(), now);
        } else if header.src_port == self.receiver_port && header.flags.contains(Flags::ACK) {
            self.on_ack(SeqNum::new(header.ack), now);
        }
    }

    /// When the first segment from the sender passed.
    pub(super) fn began(&self) -> Option<Instant> {
        self.began
    }

    /// Segments from the sender that have passed.
    pub(super) fn segments(&self) -> u64 {
        self.segments
    }

    /// Mean round-trip time beyond the wire, milliseconds.
    pub(super) fn rtt_ms(&self) -> Option<f64> {
        let mean = self.rtt_total.as_micros().checked_div(self.rtt_samples)?;
        Some(mean as f64 / 1_000.0)
    }

    fn time(&mut self, seq: SeqNum, data_len: usize, now: Instant) {
        let Ok(len @ 1..) = u32::try_from(data_len) else {
            return;
        };
        let end = seq.plus(len);
        if self.end.is_none_or(|seen| end.after(seen)) {
            self.end = Some(end);
            self.timed.get_or_insert((end, now));
        } else {
            // The segment was sent again: an acknowledgement could now answer either
            // transmission.
            self.timed = None;
        }
    }

    fn on_ack(&mut self, ack: SeqNum, now: Instant) {
        if let Some((end, sent)) = self.timed
            && !ack.before(end)
        {
            self.timed = None;
            self.rtt_samples += 1;
            self.rtt_total = self.rtt_total + now.since(sent);
        }
    }
}

/// The TCP header and data of an IPv6 packet without extension headers.
fn segment(packet: &[u8]) -> Option<(tcp::Header, &[u8])> {
    const IPV6_HEADER_LEN: usize = 40;
    let (ip, segment) = packet.split_at_checked(IPV6_HEADER_LEN)?;
    if ip.get(6) != Some(&tcp::NEXT_HEADER) {
        return None;
    }
    tcp::Header::parse(segment).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENDER: u16 = 49_152;
    const RECEIVER: u16 = 4_242;

    fn packet(ports: (u16, u16), seq: u32, ack: u32, data_len: usize) -> Vec<u8> {
        let header = tcp::Header {
            src_port: ports.0,
            dst_port: ports.1,
            seq,
            ack,
            flags: Flags::ACK,
            window: 1848,
            urgent: 0,
            options: tcp::Options::NONE,
        };
        let mut bytes = vec![0; 40 + tcp::HEADER_LEN + data_len];
        bytes[6] = tcp::NEXT_HEADER;
        header.emit(&mut bytes[40..]).unwrap();
        bytes
    }

    #[test]
    fn segments_are_counted_and_timed() {
        let mut flow = Flow::new(RECEIVER);
        let at = |flow: &mut Flow, ms: u64, packet: Vec<u8>| {
            flow.on_packet(&packet, Instant::ORIGIN + Duration::from_millis(ms));
        };
        let data = |seq| packet((SENDER, RECEIVER), seq, 1, 400);
        let ack = |ack| packet((RECEIVER, SENDER), 1, ack, 0);
        // A handshake's ACK carries no data; the sequence numbers wrap on the way.
        let start = u32::MAX - 500;
        at(&mut flow, 5, packet((SENDER, RECEIVER), start, 1, 0));
        at(&mut flow, 10, data(start));
        at(&mut flow, 20, data(start.wrapping_add(400)));
        at(&mut flow, 25, packet((9, 10), 0, 0, 100));
        at(&mut flow, 30, ack(start));
        assert_eq!((flow.segments(), flow.rtt_ms()), (3, None));
        at(&mut flow, 110, ack(start.wrapping_add(800)));
        assert_eq!((flow.segments(), flow.rtt_ms()), (3, Some(100.0)));
        assert_eq!(flow.began(), Some(Instant::from_micros(5_000)));

        // The segment was sent twice: it is counted, not timed.
        at(&mut flow, 200, data(start.wrapping_add(800)));
        at(&mut flow, 900, data(start.wrapping_add(800)));
        at(&mut flow, 950, ack(start.wrapping_add(1200)));
        assert_eq!((flow.segments(), flow.rtt_ms()), (5, Some(100.0)));
    }

    #[test]
    fn what_is_no_segment_is_ignored() {
        let mut flow = Flow::new(RECEIVER);
        let whole = packet((SENDER, RECEIVER), 0, 0, 1);
        for len in 0..60 {
            flow.on_packet(&whole[..len], Instant::ORIGIN);
        }
        let mut udp = whole;
        udp[6] = 17;
        flow.on_packet(&udp, Instant::ORIGIN);
        assert_eq!(flow.segments(), 0);
    }
}
