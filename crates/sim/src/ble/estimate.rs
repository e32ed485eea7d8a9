//! The goodput that the air of one connection allows a flow of segments.

use motet::ble::Phy;

use super::phy::{PAYLOAD_LEN_MAX, T_IFS, air_time};

/// Segments that each leave in an SDU of their own, and are acknowledged in the same connection
/// event.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SduTimes {
    /// The PHY, which sets how long a byte takes.
    pub phy: Phy,
    /// Whether data packets have a MIC.
    pub has_mic: bool,
    /// Segments that one ACK acknowledges.
    pub ack_every: u8,
}

impl SduTimes {
    /// The goodput of segments with `data_len` bytes of data, kb/s, in an event that never ends and
    /// loses nothing. `sdu_len`, `ack_len`: bytes of the SDU of a segment, and of that of an ACK.
    ///
    /// Each packet with data is answered by one that is empty, or brings an ACK.
    pub fn goodput_kbps(&self, data_len: usize, sdu_len: usize, ack_len: usize) -> f64 {
        let us = |len| air_time(len, self.phy, self.has_mic).as_micros() as f64;
        let (empty, gaps) = (us(0), 2.0 * T_IFS.as_micros() as f64);
        let all = HEADERS_LEN + sdu_len;
        let (full, rest) = (all / PAYLOAD_LEN_MAX, all % PAYLOAD_LEN_MAX);
        let mut time = full as f64 * (us(PAYLOAD_LEN_MAX) + gaps + empty);
        if rest > 0 {
            time += us(rest) + gaps + empty;
        }
        time += (us(HEADERS_LEN + ack_len) - empty) / f64::from(self.ack_every.max(1));
        data_len as f64 * 8_000.0 / time
    }
}

/// L2CAP's header, and the length of the SDU (Core 5.4 Vol 3 Part A §3.4).
const HEADERS_LEN: usize = 4 + 2;

#[cfg(test)]
mod tests {
    use super::*;

    /// `ble_limits.py bounds`: five packets of 251 bytes, link-local addresses in 3 bytes,
    /// encrypted.
    #[test]
    fn goodput_is_that_of_the_limits() {
        let cases = [
            (Phy::Le1M, 1, 758.0),
            (Phy::Le1M, 2, 766.0),
            (Phy::Le2M, 1, 1350.0),
            (Phy::Le2M, 2, 1362.0),
        ];
        for (phy, ack_every, expected) in cases {
            let times = SduTimes {
                phy,
                has_mic: true,
                ack_every,
            };
            let kbps = times.goodput_kbps(1210, 1210 + 23, 23);
            assert!((kbps / expected - 1.0).abs() < 0.02, "{phy:?}: {kbps}");
        }
    }
}
