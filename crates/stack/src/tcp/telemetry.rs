//! A connection's view of its own transmission machinery.
//!
//! Place: read by traces and reports; nothing here changes anything.

use super::config::SMSS_DEFAULT;
use super::connection::Connection;

/// A point-in-time view of the transmission machinery, for traces and summaries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Telemetry {
    /// Congestion window, cwnd, bytes (RFC 5681 §2).
    pub cwnd_bytes: u16,
    /// Slow start threshold, ssthresh, bytes (RFC 5681 §3.1).
    pub ssthresh_bytes: u16,
    /// Sent, neither acknowledged nor deemed lost, bytes.
    pub inflight_bytes: u16,
    /// Send window, SND.WND, that the peer announced, bytes.
    pub snd_wnd_bytes: u16,
    /// Payload of a full segment to the peer, bytes, options subtracted.
    pub smss_bytes: u16,
    /// Smoothed round-trip time, ms; 0 before the first sample.
    pub srtt_ms: u32,
    /// Least round-trip time of data, ms, which forgets slowly; 0 before the first sample.
    pub rtt_min_ms: u16,
    /// Round-trip time variation, RTTVAR, ms (RFC 6298 §2).
    pub rttvar_ms: u32,
    /// Retransmission timeout, doublings included, ms.
    pub rto_ms: u32,
    /// Retransmission timeouts in a row, each of which doubled the RTO.
    pub rto_doublings: u8,
    /// Whether the connection is in fast recovery, or recovering from a timeout.
    pub is_recovering: bool,
}

impl Telemetry {
    /// The window, bytes, from which fast recovery does not stall on this path: three
    /// segments above the second loss of a window must be able to arrive.
    ///
    /// `bottleneck_bytes_per_s`: what the path carries; on a mesh, bandwidth over hops (up to
    /// three). The round trip is the least one: the smoothed one grows with the window.
    /// Source: TCPlp, footnote 12: 3 · MSS + 2 · B · RTT.
    pub fn window_advised_bytes(&self, bottleneck_bytes_per_s: u32) -> u32 {
        let in_flight = u64::from(bottleneck_bytes_per_s) * u64::from(self.rtt_min_ms) / 1000;
        3 * u32::from(self.smss_bytes) + 2 * in_flight.min(1 << 30) as u32
    }
}

/// Bytes between SND.UNA and SND.NXT by their state; a byte may count in several states.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UnderWay {
    /// All bytes between SND.UNA and SND.NXT.
    pub bytes: u32,
    /// Bytes that the peer's SACK blocks report as received.
    pub sacked: u32,
    /// Bytes that are deemed lost.
    pub lost: u32,
    /// Bytes that were sent again, and may be in the network.
    pub resent: u32,
}

impl Connection<'_> {
    /// The states of the bytes that are not acknowledged.
    pub fn under_way(&self) -> UnderWay {
        let [sacked, lost, resent] = self.loss.fates();
        UnderWay {
            bytes: self.flight(),
            sacked,
            lost,
            resent,
        }
    }

    /// The present values of the transmission machinery.
    pub fn telemetry(&self) -> Telemetry {
        let segments = self.config.initial_window;
        let (cwnd_bytes, ssthresh_bytes) = self.loss.windows(SMSS_DEFAULT.into(), segments);
        Telemetry {
            cwnd_bytes,
            ssthresh_bytes,
            inflight_bytes: self.pipe().min(u32::from(u16::MAX)) as u16,
            snd_wnd_bytes: self.snd_wnd,
            smss_bytes: self.payload_max() as u16,
            srtt_ms: self.rtt.srtt_ms().unwrap_or(0),
            rtt_min_ms: self.loss.min_rtt_ms(),
            rttvar_ms: self.rtt.rttvar_ms(),
            rto_ms: self.rtt.rto_ms(self.config),
            rto_doublings: self.rtt.doublings(),
            is_recovering: self.is_recovering(),
        }
    }
}
