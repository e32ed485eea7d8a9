//! What a radio allows: goodput bounds and estimates from frame times.
//!
//! Purpose: the figures that every measured goodput stands beside. A bound ([`Link::bound_kbps`],
//! [`raw_kbps`]) is what nothing can exceed, whatever the luck of a run: it counts the shortest
//! backoff, the least variation of a driver, and the fewest headers. An estimate
//! ([`SegmentFrames`]) is the papers' arithmetic: mean backoffs, and times added up that overlap
//! over several hops. Good settings and lucky runs exceed it.
//! Sources: `TCPlp` §6.4 (one hop) and §7.2 (B, B/2, B/3 by hops: a frame, its forwarding
//! and the forwarding after that exclude each other).

use motet::limits::PSDU_LEN_MAX;
use motet::mac;
use motet::time::Duration;
use motet::wire::ieee802154::FCS_LEN;

use crate::air::phy;
use crate::air::profile::Profile;

/// A chain's links, as far as they bound the goodput of one flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Link {
    /// Radio and driver of every node.
    pub profile: Profile,
    /// Whether radios hear nothing while frames are copied; if not, copies cost no time.
    pub deaf: bool,
    /// Payload bytes of a frame, fragment headers and all above it included.
    pub frame_payload_len: usize,
    /// Frames of a segment, at most.
    pub segment_frames: usize,
    /// Whether TCP headers are compressed.
    pub is_compressed: bool,
    /// Radio hops.
    pub hops: usize,
}

impl Link {
    /// The highest goodput of one flow, kb/s: no run exceeds it, short or long.
    ///
    /// The source's frames follow one another, each with its copy or the spacing of frames,
    /// its assessment, preparation and link ACK. Over several hops each relay besides receives
    /// what it sends, and never does both at once. Left out, since luck can spare them: backoffs,
    /// retries, the receiver's ACKs, and every header field that some compression elides.
    ///
    /// It holds from a connection's opening on. A stretch within a run may begin with a window
    /// of bytes that came before it.
    pub fn bound_kbps(&self) -> f64 {
        let source = self.shortest_cycle();
        let relay = exchange(PSDU_LEN_MAX) - phy::TURNAROUND;
        let frame = match self.hops {
            0 | 1 => source,
            _ => source.max(relay.saturating_mul(2)),
        };
        let time_us = frame.as_micros() as f64 * self.segment_frames.max(1) as f64;
        self.segment_payload_len() as f64 * 8_000.0 / time_us
    }

    /// The shortest time from one full frame of a sender to its next.
    fn shortest_cycle(&self) -> Duration {
        let copy = match self.deaf || !self.profile.capabilities.shared_buffer {
            true => self.profile.transmit_copy(PSDU_LEN_MAX),
            false => Duration::ZERO,
        };
        let spacing = mac::config::LIFS - phy::TURNAROUND - phy::CCA;
        let prepare = self.profile.prepare - self.profile.jitter.min(self.profile.prepare);
        copy.max(spacing) + phy::CCA + prepare + exchange(PSDU_LEN_MAX)
    }

    /// More application bytes than any segment carries.
    fn segment_payload_len(&self) -> usize {
        let frames = self.segment_frames.max(1);
        let fragments = match frames {
            1 => 0,
            _ => FRAG_1_LEN + FRAG_N_LEN * (frames - 1),
        };
        let tcp = match self.is_compressed {
            true => TCPHC_LEN_MIN,
            false => NEXT_HEADER_LEN + TCP_HEADER_LEN,
        };
        let headers = fragments + IPHC_LEN_MIN + tcp;
        (self.frame_payload_len * frames).saturating_sub(headers)
    }
}

/// What one full segment and its acknowledgment are on the air, with its headers as they mostly
/// are.
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
    /// Radio hops.
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

/// Bits of an MPDU, FCS left out, that frames one turnaround apart carry over `hops` hops,
/// kb/s: nodes that all hear each other share one channel; with a channel for each link, a
/// relay only cannot send while it receives.
///
/// Source: Conditional immediate transmission, §2.
pub fn raw_kbps(psdu_len: usize, hops: usize, is_multi_channel: bool) -> f64 {
    let frame = phy::air_time(psdu_len) + phy::TURNAROUND;
    let one_hop = (psdu_len - FCS_LEN) as f64 * 8_000.0 / frame.as_micros() as f64;
    let sharing = if is_multi_channel { hops.min(2) } else { hops };
    one_hop / sharing.max(1) as f64
}

/// FRAG1 and FRAGN (RFC 4944 §5.3).
const FRAG_1_LEN: usize = 4;
const FRAG_N_LEN: usize = 5;

/// IPHC with everything elided but a next header that no compression takes (RFC 6282 §3.1).
const IPHC_LEN_MIN: usize = 2;
const NEXT_HEADER_LEN: usize = 1;

/// Without options.
const TCP_HEADER_LEN: usize = 20;

/// A compressed TCP header's format and context, no field following.
const TCPHC_LEN_MIN: usize = 2;

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

    #[test]
    fn raw_bounds_are_the_papers() {
        for (hops, is_multi, expected) in [
            (1, false, 225.0),
            (1, true, 225.0),
            (2, true, 112.5),
            (6, true, 112.5),
            (6, false, 37.5),
        ] {
            let bound = raw_kbps(127, hops, is_multi);
            assert!((bound / expected - 1.0).abs() < 0.002, "{hops}: {bound}");
        }
    }

    use super::*;

    /// A mean backoff is no bound: over a short run a sender may well draw nothing but zeros.
    #[test]
    fn a_sender_whose_backoffs_are_all_zero_stays_below_the_bound() {
        for profile in [
            Profile::HAMILTON,
            Profile::TELOSB,
            Profile::NRF52840,
            Profile::IDEAL,
        ] {
            let link = Link {
                profile,
                deaf: true,
                frame_payload_len: 104,
                segment_frames: 5,
                is_compressed: false,
                hops: 1,
            };
            let frame_us = profile.cycle(PSDU_LEN_MAX, 0).as_micros() as f64;
            let lucky = 462.0 * 8_000.0 / (5.0 * frame_us);
            let bound = link.bound_kbps();
            assert!(
                lucky < bound && bound < 1.08 * lucky,
                "{lucky} and {bound} kb/s"
            );
        }
    }

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
