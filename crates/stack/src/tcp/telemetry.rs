//! What a connection tells of its transmission machinery.
//!
//! Place: read by traces and reports; nothing here changes anything.

use super::config::SMSS_DEFAULT;
use super::connection::Connection;

/// A point-in-time view of the transmission machinery, for traces and summaries.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Telemetry {
    /// Congestion window, bytes.
    pub cwnd_bytes: u16,
    /// Slow start threshold, bytes.
    pub ssthresh_bytes: u16,
    /// Sent, neither acknowledged nor deemed lost, bytes.
    pub inflight_bytes: u16,
    /// The peer's window, bytes.
    pub snd_wnd_bytes: u16,
    /// Payload of a full segment to the peer, bytes, options subtracted.
    pub smss_bytes: u16,
    /// Smoothed round-trip time, ms; 0 before the first sample.
    pub srtt_ms: u32,
    /// Least round-trip time of data, ms, which forgets slowly; 0 before the first sample.
    pub rtt_min_ms: u16,
    /// Its variation, ms.
    pub rttvar_ms: u32,
    /// Retransmission timeout, doublings included, ms.
    pub rto_ms: u32,
    /// Consecutive retransmission timeouts.
    pub rto_doublings: u8,
    /// In fast recovery, or recovering from a timeout.
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

/// What was sent and is not acknowledged, bytes; some may be more than one of these.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UnderWay {
    /// All of it.
    pub bytes: u32,
    /// What the peer holds out of order, as its SACK blocks say.
    pub sacked: u32,
    /// What is deemed lost.
    pub lost: u32,
    /// What was sent again, and may be on its way.
    pub resent: u32,
}

impl Connection<'_> {
    /// What has become of what is not acknowledged.
    pub fn under_way(&self) -> UnderWay {
        let [sacked, lost, resent] = self.loss.fates();
        UnderWay {
            bytes: self.flight(),
            sacked,
            lost,
            resent,
        }
    }

    /// What the transmission machinery knows.
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
