//! The papers' arithmetic: goodput estimated from frame times.
//!
//! Purpose: an estimate counts mean backoffs, and adds up times that overlap over several hops.
//! Good settings and lucky runs exceed it; what nothing exceeds is in
//! [`bound`](crate::net::bound).
//! Sources: `TCPlp` §6.4 (one hop) and §7.2 (B, B/2, B/3 by hops: a frame, its forwarding
//! and the forwarding after that exclude each other).

use motet::time::Duration;

use crate::air::phy;
use crate::air::profile::Profile;

/// The frames of one full segment and of its acknowledgment on the air, with its headers as they
/// mostly are.
#[derive(Clone, PartialEq, Debug)]
pub struct SegmentFrames {
    /// Application bytes in the segment.
    pub payload_len: usize,
    /// PSDU bytes of each of its frames.
    pub frames: Vec<usize>,
    /// PSDU bytes of each frame of a pure ACK.
    pub ack_frames: Vec<usize>,
    /// ACKs per segment: one half where every second segment is acknowledged.
    pub acks_per_segment: f64,
}

impl SegmentFrames {
    /// Time on the link of a segment and its share of an ACK, with mean backoffs.
    pub fn time(&self, profile: &Profile, be_min: u8) -> Duration {
        let sum = |frames: &[usize]| -> u64 {
            frames
                .iter()
                .map(|len| profile.cycle(*len, be_min).as_micros())
                .sum()
        };
        let acks = self.acks_per_segment * sum(&self.ack_frames) as f64;
        Duration::from_micros(sum(&self.frames) + acks as u64)
    }

    /// The paper's estimate of the goodput over `hops` hops of one channel, kb/s.
    ///
    /// It adds up times that overlap: the sender's backoff and copy, and the frames and ACKs of
    /// others. Good settings come close to it or exceed it.
    pub fn estimate_kbps(&self, profile: &Profile, be_min: u8, hops: usize) -> f64 {
        let time_us = self.time(profile, be_min).as_micros().max(1) as f64;
        let one_hop = self.payload_len as f64 * 8_000.0 / time_us;
        one_hop / hops.clamp(1, 3) as f64
    }
}

/// How frames get over a chain, as far as it decides what they wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// Radio hops of the path.
    pub hops: usize,
    /// Whether relays fire frames without backoff and assessment.
    pub is_immediate: bool,
    /// Whether every link has a channel of its own.
    pub is_multi_channel: bool,
}

impl SegmentFrames {
    /// The goodput over `route` with radios whose buffers are separate and mean backoffs, kb/s:
    /// copies then overlap with the frames of others, but for those of a source that the backoff
    /// leaves no time for. An estimate: backoffs of one frame overlap with others.
    pub fn routed_estimate_kbps(&self, profile: &Profile, be_min: u8, route: Route) -> f64 {
        let slots = (1 << be_min.min(8)) - 1;
        let backoff = Duration::from_micros(phy::UNIT_BACKOFF.as_micros() * slots / 2);
        let air = exchange;
        let careful = |len| backoff + phy::CCA + profile.prepare + air(len);
        let source = |len| {
            let copy = profile.transmit_copy(len);
            careful(len) + copy.max(backoff) - backoff
        };
        let hop = |len| match (route.is_immediate, route.is_multi_channel) {
            (false, _) => careful(len),
            (true, false) => air(len),
            (true, true) => {
                let switch = profile.capabilities.channel_switch;
                air(len) + switch + switch
            }
        };
        // Frames of three hops in a row exclude each other; on channels of their own only
        // those that a relay receives and sends.
        let sharing = route
            .hops
            .clamp(1, if route.is_multi_channel { 2 } else { 3 });
        let time = |len: usize| match sharing {
            1 => source(len),
            _ => source(len).max(hop(len).saturating_mul(sharing as u64)),
        };
        let sum =
            |frames: &[usize]| -> u64 { frames.iter().map(|len| time(*len).as_micros()).sum() };
        let acks = self.acks_per_segment * sum(&self.ack_frames) as f64;
        let total = sum(&self.frames) as f64 + acks;
        self.payload_len as f64 * 8_000.0 / total.max(1.0)
    }
}

/// A frame and its link ACK on the air, with the turnaround before each.
fn exchange(psdu_len: usize) -> Duration {
    phy::TURNAROUND + phy::air_time(psdu_len) + phy::TURNAROUND + phy::air_time(phy::ACK_LEN)
}

#[cfg(test)]
mod tests {
    #[test]
    fn relayed_estimates_are_those_of_the_arithmetic() {
        // Of `spec/bounds.py`, with nothing for the driver: TCPHC's segments and ACKs.
        let segment = SegmentFrames {
            payload_len: 483,
            frames: vec![127; 5],
            ack_frames: vec![36],
            acks_per_segment: 0.5,
        };
        let ideal = Profile::IDEAL;
        for (hops, is_immediate, is_multi_channel, expected) in [
            (3, false, false, 39.2),
            (6, false, true, 58.8),
            (3, true, false, 49.5),
            (6, true, true, 74.3),
            (4, true, false, 49.5),
        ] {
            let route = Route {
                hops,
                is_immediate,
                is_multi_channel,
            };
            let bound = segment.routed_estimate_kbps(&ideal, 3, route);
            assert!((bound / expected - 1.0).abs() < 0.005, "{route:?}: {bound}");
        }
    }

    use super::*;

    #[test]
    fn five_full_frames_give_the_published_estimate() {
        let segment = SegmentFrames {
            payload_len: 462,
            frames: vec![127; 5],
            ack_frames: vec![127],
            acks_per_segment: 0.5,
        };
        let bound = segment.estimate_kbps(&Profile::HAMILTON, 3, 1);
        assert!((bound - 82.0).abs() < 0.5, "{bound}, TCPlp §6.4 has 82");
        for (hops, divisor) in [(1, 1.0), (2, 2.0), (3, 3.0), (4, 3.0), (10, 3.0)] {
            let expected = bound / divisor;
            assert!((segment.estimate_kbps(&Profile::HAMILTON, 3, hops) - expected).abs() < 1e-9);
        }
        let short = SegmentFrames {
            ack_frames: vec![57],
            ..segment
        };
        let bound = short.estimate_kbps(&Profile::HAMILTON, 3, 1);
        assert!(
            (84.0..86.5).contains(&bound),
            "{bound}: 86.3 where time is proportional to length"
        );
    }
}
