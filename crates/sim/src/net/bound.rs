//! An upper bound of goodput that no run can exceed: from the least time that a segment takes on
//! the air, at its source and in the processors on its way.
//!
//! Purpose: every measured goodput of one flow is compared with it. Estimates, which good settings
//! exceed, are in [`estimate`](crate::net::estimate).
//!
//! **Air.** Take a segment's exchanges over three links in a row, two where each link has a channel
//! of its own: its frames over each link, and its share of ACKs back. There is a least time from
//! the start of one exchange to that of the next: no node sends, receives or is deaf twice at once;
//! no neighbour of a receiver sends during its frame; an assessment sees no frame. Each exchange
//! has one successor and one predecessor, so that all of them take at least as long as the cheapest
//! assignment of successors. A cyclic order of the exchanges is one such assignment. The cheapest
//! assignment need not be a cyclic order, so its cost is a lower bound.
//!
//! **Source.** Its frames follow one another, each with its backoff, its copy, its assessment and
//! its link ACK. **Processors** copy one frame at a time. The largest of these times counts.
//!
//! A short run may have short backoffs by chance: see [`Luck`]. And a stretch of a run begins with
//! bytes in flight that were sent before it: see [`Path::of_stretch_kbps`].
//!
//! Sources: `TCPlp` §7.2 (three hops exclude each other); Conditional immediate transmission, §2,
//! for [`raw_kbps`].

use motet::mac::config::BE_MIN;
use motet::time::Duration;
use motet::wire::ieee802154::FCS_LEN;

use crate::air::phy;
use crate::air::profile::Profile;
use crate::net::circulation::cheapest;
use crate::net::estimate::SegmentFrames;

/// A chain of nodes, as far as it bounds the goodput of one flow from one end to the other.
#[derive(Clone, PartialEq, Debug)]
pub struct Path {
    /// Radio and driver of every node, or of the source where they differ.
    pub profile: Profile,
    /// Radio hops of the path.
    pub hops: usize,
    /// Whether relays fire frames without backoff and assessment.
    pub is_immediate: bool,
    /// Whether every link has a channel of its own.
    pub is_multi_channel: bool,
    /// Whether an assessment hears a sender two hops away.
    pub senses_two_hops: bool,
    /// The backoff exponent of a first attempt.
    pub be_min: u8,
    /// Payload and frames of a full segment, and of an ACK.
    pub segment: SegmentFrames,
    /// Segments that the receiver acknowledges with one ACK. `None`: ACKs may be left out on their
    /// way, and none counts.
    pub ack_every: Option<u8>,
    /// Whether the nodes differ, or hear each other unevenly: then only the source's own time is
    /// known, since its frames follow one another whatever the others do.
    pub source_only: bool,
}

/// The backoffs that chance may spare a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Luck {
    /// Nothing: backoffs and the variation of drivers take their mean.
    Mean,
    /// So much that one in three million runs of so many frames has more. Only backoffs that are
    /// longer than the standard's vary by more than the rest of a frame leaves room for.
    Rare(u64),
    /// All of it: every backoff is zero, and drivers are as fast as they ever are.
    Best,
}

impl Luck {
    /// The luck to assume of a source that sends `frames` frames: from [`LUCK_FRAMES`] on, chance
    /// evens out, the more the more frames there are.
    pub const fn of(frames: u64) -> Self {
        if frames >= LUCK_FRAMES {
            Self::Rare(frames)
        } else {
            Self::Best
        }
    }
}

/// Frames of a source from which on their backoffs take what backoffs take on average.
pub const LUCK_FRAMES: u64 = 1_000;

/// A part of a run, whose goodput is measured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stretch {
    /// How long it is, s.
    pub seconds: f64,
    /// Bytes that the flow delivered in that time.
    pub bytes: u64,
    /// Bytes that may have been under way when it began: the sender's window, or none where the
    /// connection was opened within it.
    pub in_flight: u64,
}

impl Path {
    /// The highest goodput of one flow that goes on for ever, kb/s.
    pub fn kbps(&self, luck: Luck) -> f64 {
        let others = match self.source_only {
            true => [0.0; 2],
            false => [self.processors(luck), self.air(luck)],
        };
        let time_ns = others
            .into_iter()
            .fold(self.source(luck).max(1.0), f64::max);
        self.segment.payload_len as f64 * 8e6 / time_ns
    }

    /// The highest goodput that a stretch of a run can show, kb/s: the bytes in flight when it
    /// began are added to what the path carries.
    pub fn of_stretch_kbps(&self, stretch: &Stretch) -> f64 {
        let payload = self.segment.payload_len.max(1) as u64;
        let frames = stretch.bytes / payload * self.segment.frames.len() as u64;
        let before = match stretch.seconds > 0.0 {
            true => stretch.in_flight as f64 / 125.0 / stretch.seconds,
            false => 0.0,
        };
        self.kbps(Luck::of(frames)) + before
    }

    /// The bound for a run of which nothing is known but how long it is measured.
    pub fn of_seconds_kbps(&self, seconds: u64, in_flight: u64) -> f64 {
        let seconds = seconds as f64;
        self.of_stretch_kbps(&Stretch {
            seconds,
            bytes: (self.kbps(Luck::Mean) * 125.0 * seconds) as u64,
            in_flight,
        })
    }

    /// Time from one full segment of the source to its next, ns.
    fn source(&self, luck: Luck) -> f64 {
        let backoff = self.backoff(luck);
        let is_shared = self.profile.capabilities.shared_buffer;
        let frame = |len: &usize| {
            let copy = self.transmit_copy(*len);
            // A copy into the one buffer follows the backoff; another one overlaps it.
            let before = match is_shared {
                true => backoff + copy,
                false => backoff.max(copy),
            };
            before + ns(phy::CCA) + self.prepare(luck) + exchange(*len)
        };
        self.segment.frames.iter().map(frame).sum::<i64>() as f64
    }

    /// The mean of the first backoffs, ns.
    fn backoff(&self, luck: Luck) -> i64 {
        let periods = 1_i64 << self.be_min.min(8);
        let mean = ns(phy::UNIT_BACKOFF) * (periods - 1) / 2;
        match luck {
            Luck::Rare(frames) if self.be_min > BE_MIN => {
                // That of a uniform distribution over so many values.
                let variance = (periods * periods - 1) as f64 / 12.0;
                let of_mean = (variance / frames.max(1) as f64).sqrt();
                let spared = ns(phy::UNIT_BACKOFF) as f64 * of_mean * DEVIATIONS;
                (mean - spared as i64).max(0)
            }
            Luck::Mean | Luck::Rare(_) => mean,
            Luck::Best => 0,
        }
    }

    /// The time that the processor of an end, or of a relay, works for one segment, ns. One that is
    /// deaf while it copies does nothing else meanwhile: that is counted in the air.
    fn processors(&self, luck: Luck) -> f64 {
        if self.profile.deaf {
            return 0.0;
        }
        let sent = |len: &usize| self.transmit_copy(*len) + self.prepare(luck);
        let received = |len: &usize| self.receive_copy(*len) + ns(self.profile.handle);
        let link_ack = self.receive_copy(phy::ACK_LEN);
        let sum = |lens: &[usize], of: &dyn Fn(&usize) -> i64| lens.iter().map(of).sum::<i64>();
        let (frames, acks) = (&self.segment.frames, &self.segment.ack_frames);
        let every = self.ack_every.map_or(f64::INFINITY, f64::from);
        let per_segment = |ns: i64| ns as f64 / every;
        let end =
            sum(frames, &|len| sent(len) + link_ack) as f64 + per_segment(sum(acks, &received));
        if self.hops < 2 {
            return end;
        }
        let fires = match self.is_immediate {
            true => self.prepare(luck),
            false => 0,
        };
        let relay = sum(frames, &|len| sent(len) - fires + received(len) + link_ack) as f64
            + per_segment(sum(acks, &|len| sent(len) + received(len) + link_ack));
        end.max(relay)
    }

    /// The time that the exchanges of one segment take of the air that they share, ns.
    fn air(&self, luck: Luck) -> f64 {
        let links = self.hops.min(match self.is_multi_channel {
            true => 2,
            false => 3,
        });
        // The links behind the source, and those behind a relay.
        let places = match self.hops > links {
            true => 0..2,
            false => 1..2,
        };
        places
            .map(|begins| self.air_of(links, begins == 1, luck))
            .fold(0.0, f64::max)
    }

    /// The time that the exchanges take of the air over `links` links in a row, ns. `from_source`:
    /// the first sender makes the frames.
    fn air_of(&self, links: usize, from_source: bool, luck: Luck) -> f64 {
        let mut exchanges: Vec<Exchange> = Vec::new();
        let mut counts: Vec<u64> = Vec::new();
        let mut add = |exchange: Exchange, count: u64| match exchanges
            .iter()
            .position(|known| *known == exchange)
        {
            Some(place) => counts[place] += count,
            None => {
                exchanges.push(exchange);
                counts.push(count);
            }
        };
        let every = self.ack_every.map_or(1, |every| u64::from(every.max(1)));
        for link in 1..=links {
            let is_fired = self.is_immediate && !(from_source && link == links);
            for len in &self.segment.frames {
                add(self.exchange([link, link - 1], *len, is_fired, luck), every);
            }
            if self.ack_every.is_some() {
                for len in &self.segment.ack_frames {
                    add(self.exchange([link - 1, link], *len, false, luck), 1);
                }
            }
        }
        let least = cheapest(&counts, |a, b| self.gap(&exchanges[a], &exchanges[b]));
        least as f64 / every as f64
    }

    fn exchange(&self, [from, to]: [usize; 2], len: usize, is_fired: bool, luck: Luck) -> Exchange {
        let assessed = ns(phy::CCA) + self.prepare(luck) + ns(phy::TURNAROUND);
        let switch = match self.is_multi_channel {
            true => ns(self.profile.capabilities.channel_switch),
            false => 0,
        };
        let deaf = |copy: i64| if self.profile.deaf { copy } else { 0 };
        let frame = ns(phy::air_time(len));
        let before = match is_fired {
            true => ns(phy::TURNAROUND),
            false => assessed,
        };
        Exchange {
            from,
            to,
            frame,
            before: before + deaf(self.transmit_copy(len)) + switch,
            assessed: (!is_fired).then_some(assessed),
            sender_busy: frame + ANSWER + deaf(self.receive_copy(phy::ACK_LEN)) + switch,
            receiver_busy: frame + ANSWER.max(deaf(self.receive_copy(len))),
        }
    }

    /// The least time from the start of `a`'s frame to that of `b`'s, if `b` starts no earlier.
    fn gap(&self, a: &Exchange, b: &Exchange) -> i64 {
        let mut least = 0;
        for (node, busy) in [(a.from, a.sender_busy), (a.to, a.receiver_busy)] {
            if node == b.from {
                least = least.max(busy + b.before);
            } else if node == b.to {
                least = least.max(busy);
            }
        }
        if self.is_multi_channel {
            return least;
        }
        let is_next = |x: usize, y: usize| x.abs_diff(y) == 1;
        let senses =
            |x: usize, y: usize| is_next(x, y) || (self.senses_two_hops && x.abs_diff(y) == 2);
        let mut after = |rule: bool, time: i64| {
            if rule {
                least = least.max(time);
            }
        };
        // A frame where the other one is to be heard.
        after(is_next(a.from, b.to) || is_next(b.from, a.to), a.frame);
        // `b`'s frame over `a`'s link ACK.
        after(is_next(b.from, a.from), a.frame + ANSWER);
        // `a`'s link ACK over `b`'s frame, which is over before it or begins after it.
        let before_ack = a.frame + ns(phy::TURNAROUND) - b.frame;
        after(is_next(a.to, b.to), before_ack.clamp(0, a.frame + ANSWER));
        if let Some(assessed) = b.assessed {
            after(senses(a.from, b.from), a.frame + assessed);
            let hears_ack = senses(a.to, b.from) && a.to != b.from;
            after(hears_ack, a.frame + ANSWER + assessed);
        }
        least
    }

    /// The driver's time between a clear channel and the turnaround.
    fn prepare(&self, luck: Luck) -> i64 {
        let varies = match luck {
            Luck::Mean | Luck::Rare(_) => 0,
            Luck::Best => ns(self.profile.jitter),
        };
        (ns(self.profile.prepare) - varies).max(0)
    }

    const fn transmit_copy(&self, len: usize) -> i64 {
        self.profile.transmit_copy_ns as i64 * len as i64
    }

    const fn receive_copy(&self, len: usize) -> i64 {
        self.profile.receive_copy_ns as i64 * len as i64
    }
}

/// A frame and its link ACK, seen from the start of the frame; ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Exchange {
    from: usize,
    to: usize,
    /// How long the frame is on the air.
    frame: i64,
    /// How long before it the sender does nothing else.
    before: i64,
    /// How long before it the channel is assessed; none where it is fired.
    assessed: Option<i64>,
    /// Until the sender may do something else.
    sender_busy: i64,
    /// How long until the receiver may do something else.
    receiver_busy: i64,
}

/// The turnaround after a frame, and its link ACK, ns.
const ANSWER: i64 = ns(phy::TURNAROUND) + ns(phy::air_time(phy::ACK_LEN));

/// Standard deviations of the mean that chance does not exceed, but in one of 3.5 million runs.
const DEVIATIONS: f64 = 5.0;

const fn ns(time: Duration) -> i64 {
    time.as_micros() as i64 * 1_000
}

/// A frame and its link ACK on the air, with the turnaround before each, ns.
const fn exchange(psdu_len: usize) -> i64 {
    ns(phy::TURNAROUND) + ns(phy::air_time(psdu_len)) + ANSWER
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

#[cfg(test)]
#[path = "tests/path.rs"]
mod tests;
