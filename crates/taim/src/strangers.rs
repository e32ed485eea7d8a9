//! Packets into the mesh of those who have proven nothing: datagrams, echo requests, SYNs.
//!
//! Purpose: behind a border router that has one queue for all, a host that sends datagrams without
//! looking starves every TCP connection. So while TCP is in use, all strangers together have the
//! air for a part of the time ([`PART`]); what is more waits here, or is dropped. They share that
//! by deficit round robin over [`LANES`] queues, by pair of addresses, and the queues of one source
//! share one queue's part. Half of the queues are those of TCP, which has a part of the time of its
//! own: no datagram stands before a handshake. What a stranger makes a mote answer is charged to it
//! too. Where no packet finds room, the longest queue loses its oldest one. How long a packet takes
//! on the air is reckoned from its length: what the border router behind does with it nobody says.
//! Left out: flows of TCP that are known, which the policy holds or not; what is for a link alone,
//! which passes at once; and everything while nobody uses TCP.
//! Sources: RFC 8290 §4; Shreedhar and Varghese 1995. In the stack's own border router
//! `motet::link::FlowQueues` does the same, and more: it knows when the air is free.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::Ipv6Addr;

use motet::time::{Duration, Instant, earliest};
use motet::wire::ipv6::{self, HEADER_LEN};

use crate::router::PacketId;
use crate::sight::{Direction, FlowKey};

/// Packets of strangers that wait.
#[derive(Debug)]
pub(crate) struct Strangers {
    lanes: [Lane; LANES],
    /// The lane whose turn it is.
    turn: usize,
    /// Until when what has gone takes the strangers' part of the time: those of TCP last.
    until: [Instant; 2],
    /// When a segment of TCP last came, either way.
    tcp_at: Option<Instant>,
    /// Packets to be dropped.
    dropped: VecDeque<PacketId>,
    /// Pairs of the packets that have gone last, the oldest first: theirs are the answers.
    sent: VecDeque<Pair>,
}

/// The packets of one pair of addresses, or of several that share a lane.
#[derive(Debug, Default)]
struct Lane {
    pair: Option<Pair>,
    used: Instant,
    packets: VecDeque<Waiting>,
    bytes: usize,
    credit: i64,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    id: PacketId,
    pair: Pair,
    flow: Option<FlowKey>,
    len: usize,
}

/// Who speaks to whom.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Pair {
    peer: Ipv6Addr,
    mote: Ipv6Addr,
}

impl Pair {
    /// Of a packet; none of one that is for a link alone, or is not to be read.
    pub(crate) fn read(direction: Direction, headers: &[u8]) -> Option<Self> {
        let (header, _) = ipv6::Header::parse_start(headers).ok()?;
        let (src, dst) = (header.src, header.dst);
        let is_local = |addr: Ipv6Addr| addr.is_multicast() || addr.is_unicast_link_local();
        if is_local(src) || is_local(dst) || src.is_unspecified() {
            return None;
        }
        Some(match direction {
            Direction::Down => Self {
                peer: src,
                mote: dst,
            },
            Direction::Up => Self {
                peer: dst,
                mote: src,
            },
        })
    }

    /// The lane that it is given where others are taken.
    fn home(&self, is_tcp: bool) -> usize {
        // Its keys are constants: a stranger who aims at one lane gains nothing by it.
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        (hasher.finish() % EACH as u64) as usize + usize::from(is_tcp) * EACH
    }
}

impl Strangers {
    pub(crate) fn new() -> Self {
        Self {
            lanes: Default::default(),
            turn: 0,
            until: [Instant::ORIGIN; 2],
            tcp_at: None,
            dropped: VecDeque::new(),
            sent: VecDeque::new(),
        }
    }

    /// Packets that wait.
    pub(crate) fn len(&self) -> usize {
        self.lanes.iter().map(|lane| lane.packets.len()).sum()
    }

    /// A segment of TCP has come.
    pub(crate) fn note_tcp(&mut self, now: Instant) {
        self.tcp_at = Some(now);
    }

    /// A packet has come that goes into the mesh; says whether it passes at once. `flow`: where it
    /// is TCP's.
    pub(crate) fn admits(
        &mut self,
        id: PacketId,
        (pair, flow): (Pair, Option<FlowKey>),
        len: usize,
        now: Instant,
    ) -> bool {
        let place = self.lane_of(&pair, flow.is_some(), now);
        if self.len() == 0 && !self.must_wait(place, now) {
            self.note_sent(pair);
            self.charge(place, air(len), now);
            return true;
        }
        let lane = &mut self.lanes[place];
        lane.bytes += len;
        lane.packets.push_back(Waiting {
            id,
            pair,
            flow,
            len,
        });
        while self.len() > PACKETS_MAX || self.bytes() > BYTES_MAX {
            self.drop_longest();
        }
        false
    }

    /// A packet has come out of the mesh that is of no known flow: it may answer a stranger, who
    /// pays.
    pub(crate) fn on_answer(&mut self, pair: &Pair, is_tcp: bool, len: usize, now: Instant) {
        if self.sent.contains(pair) {
            let place = self.own_lane(pair, is_tcp).unwrap_or(pair.home(is_tcp));
            self.charge(place, ANSWER_WEIGHT * air(len), now);
        }
    }

    /// Takes out what waits of a flow, the oldest first: it is known from now on.
    pub(crate) fn take_flow(&mut self, flow: &FlowKey, mut take: impl FnMut(PacketId)) {
        for lane in &mut self.lanes {
            lane.packets.retain(|waiting| {
                let is_of = waiting.flow == Some(*flow);
                if is_of {
                    lane.bytes -= waiting.len;
                    take(waiting.id);
                }
                !is_of
            });
        }
    }

    /// Takes out all that waits.
    pub(crate) fn take_all(&mut self, mut take: impl FnMut(PacketId)) {
        for lane in &mut self.lanes {
            lane.packets.drain(..).for_each(|waiting| take(waiting.id));
            lane.bytes = 0;
        }
    }

    /// The next packet that goes now.
    pub(crate) fn next(&mut self, now: Instant) -> Option<PacketId> {
        let is_next =
            |place: usize| !self.lanes[place].packets.is_empty() && !self.must_wait(place, now);
        if !(0..LANES).any(is_next) {
            return None;
        }
        // Each round gives every lane credit: the longest packet has it after a few.
        for _ in 0..ROUNDS_MAX * LANES {
            let place = self.turn;
            if self.must_wait(place, now) {
                self.turn = (place + 1) % LANES;
                continue;
            }
            let share = self.share(place);
            let lane = &mut self.lanes[place];
            if lane.credit > 0
                && let Some(first) = lane.packets.pop_front()
            {
                lane.bytes -= first.len;
                self.note_sent(first.pair);
                self.charge(place, air(first.len), now);
                return Some(first.id);
            }
            lane.credit = match lane.packets.is_empty() {
                true => lane.credit.min(0),
                false => (lane.credit + share).min(share),
            };
            self.turn = (place + 1) % LANES;
        }
        debug_assert!(false, "no lane's debt is larger than that");
        None
    }

    /// When [`Self::next`] may give a packet though none has come.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let unused = self.tcp_at.map(|at| at + IN_USE_FOR);
        let waits = |first: usize| {
            let lanes = self.lanes.iter().skip(first).take(EACH);
            lanes.map(|lane| lane.packets.len()).sum::<usize>() > 0
        };
        let until = [0, 1].map(|kind| Some(self.until[kind]).filter(|_| waits(kind * EACH)));
        let until = earliest(until[0], until[1])?;
        earliest(Some(until), unused)
    }

    /// The next packet that is to be dropped.
    pub(crate) fn poll_dropped(&mut self) -> Option<PacketId> {
        self.dropped.pop_front()
    }

    /// Packets that are to be dropped.
    pub(crate) fn dropped(&self) -> usize {
        self.dropped.len()
    }

    fn note_sent(&mut self, pair: Pair) {
        if self.sent.len() >= SENT_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back(pair);
    }

    fn bytes(&self) -> usize {
        self.lanes.iter().map(|lane| lane.bytes).sum()
    }

    fn must_wait(&self, place: usize, now: Instant) -> bool {
        let in_use = self.tcp_at.is_some_and(|at| now.since(at) < IN_USE_FOR);
        in_use && now < self.until[place / EACH]
    }

    /// The lane that is kept for a pair, one that no other has used lately, or the one that it
    /// shares.
    fn lane_of(&mut self, pair: &Pair, is_tcp: bool, now: Instant) -> usize {
        let own = self.own_lane(pair, is_tcp);
        let home = pair.home(is_tcp);
        let first = usize::from(is_tcp) * EACH;
        let place = own.unwrap_or_else(|| {
            let is_free = |place: &usize| {
                let lane = &self.lanes[*place];
                let is_over = lane.pair.is_none() || now.since(lane.used) >= KEPT_FOR;
                lane.packets.is_empty() && is_over
            };
            // Packets of one pair stay in one lane.
            let waits = self.lanes[home].packets.iter().any(|own| own.pair == *pair);
            let free = [home].into_iter().chain(first..first + EACH).find(is_free);
            match free.filter(|_| !waits) {
                Some(place) => {
                    self.lanes[place].pair = Some(*pair);
                    self.lanes[place].credit = 0;
                    place
                }
                None => home,
            }
        });
        self.lanes[place].used = now;
        place
    }

    /// The lane that is kept for a pair.
    fn own_lane(&self, pair: &Pair, is_tcp: bool) -> Option<usize> {
        let mut places = (0..LANES).filter(|place| (*place >= EACH) == is_tcp);
        places.find(|place| self.lanes[*place].pair == Some(*pair))
    }

    fn drop_longest(&mut self) {
        let longest = self.lanes.iter_mut().max_by_key(|lane| lane.bytes);
        if let Some(lane) = longest
            && let Some(first) = lane.packets.pop_front()
        {
            lane.bytes -= first.len;
            self.dropped.push_back(first.id);
        }
    }

    fn share(&self, place: usize) -> i64 {
        let source = |lane: &Lane| lane.pair.map(|pair| pair.peer);
        let own = source(&self.lanes[place]);
        let of_source = |lane: &&Lane| !lane.packets.is_empty() && source(lane) == own;
        let busy = self.lanes.iter().filter(of_source).count() as i64;
        SHARE / busy.max(1)
    }

    fn charge(&mut self, place: usize, air: u64, now: Instant) {
        let lane = &mut self.lanes[place];
        // Lossless: a packet has 64 KiB at most.
        lane.credit = (lane.credit - air as i64).max(-DEBT_MAX);
        let span = Duration::from_micros(air * BYTE_US * PART);
        let until = &mut self.until[place / EACH];
        *until = (*until).max(now) + span;
    }
}

/// How long a packet of so many bytes is on the air, in bytes: compression takes most of its
/// headers away.
fn air(len: usize) -> u64 {
    let payload = (len.saturating_sub(HEADER_LEN) + COMPRESSED_LEN) as u64;
    HOPS * (payload + payload.div_ceil(FRAME_LEN) * FRAME_OVERHEAD)
}

/// Queues of strangers.
const LANES: usize = 8;

/// Of these, TCP's, and as many of all others.
const EACH: usize = LANES / 2;

/// So many times its own air an answer costs: it goes against the stream.
const ANSWER_WEIGHT: u64 = 2;

/// Packets of strangers that wait, and their bytes, at most.
const PACKETS_MAX: usize = 256;
const BYTES_MAX: usize = 64 << 10;

/// Strangers have the air for one such part of the time while TCP is in use, by the measure of
/// [`air`], by which a connection alone has it for six tenths.
const PART: u64 = 4;

/// TCP is in use for so long behind its last segment: longer than a timeout or two.
const IN_USE_FOR: Duration = Duration::from_secs(10);

/// How long a lane is kept for a pair that sends nothing.
const KEPT_FOR: Duration = Duration::from_secs(4);

/// Air of a lane in one round, in bytes: a segment of five frames over three hops.
const SHARE: i64 = 3_000;

/// How far a lane may be in debt: by two of the longest packets of the mesh.
const DEBT_MAX: i64 = 8 * SHARE;

/// After so many rounds a lane with that debt and an eighth of a share has credit.
const ROUNDS_MAX: usize = 200;

/// Packets whose answers are awaited: more than the mesh takes in a few round trips.
const SENT_MAX: usize = 32;

/// Hops that a packet has before it, at most three of which exclude each other: nobody says how
/// many.
const HOPS: u64 = 3;

/// A byte on the air of IEEE 802.15.4 at 2.4 GHz.
const BYTE_US: u64 = 32;

/// What a frame costs beside its payload, in bytes: backoff, preamble, header, checksum, ACK,
/// copies.
const FRAME_OVERHEAD: u64 = 100;

/// What a frame carries, about.
const FRAME_LEN: u64 = 96;

/// Compressed headers of a packet.
const COMPRESSED_LEN: usize = 8;
