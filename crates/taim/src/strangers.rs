//! Unsolicited packets into the mesh: datagrams, echo requests, SYNs.
//!
//! Purpose: behind a border router with one common queue, a host that sends datagrams without
//! congestion control starves every TCP connection. So while TCP is in use, all strangers together
//! get a limited share of the air time ([`PART`]); excess packets wait here, or are dropped. The
//! share is divided by deficit round robin over [`LANES`] queues, by address pair, and all queues
//! of one source together count as one queue. Half of the queues are for TCP packets, which have a
//! share of their own, so that no datagram delays a handshake. A mote's answer to a stranger is
//! charged to the stranger, too. If a packet finds no room, the longest queue loses its oldest
//! packet, and no packet waits longer than [`WAITS_MAX`]. The air time of a packet is estimated
//! from its length, since the border router's processing of it is unknown. A packet that answers
//! one of the mote's own is no stranger's: it passes at once.
//! Left out: connections whose handshake is complete, which the policy holds or not; what is for a
//! link alone, which passes at once; and everything while no known connection is in use.
//! Sources: RFC 8290 §4; Shreedhar and Varghese 1995. In the stack's own border router
//! `motet::link::FlowQueues` does the same, and more: it knows when the air is free.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};

use motet::time::{Duration, Instant, earliest};
use motet::wire::ipv6::HEADER_LEN;

use crate::recent::Recent;
use crate::router::PacketId;
use crate::segment::{FlowKey, Pair};

/// Packets of strangers that wait.
#[derive(Debug)]
pub(crate) struct Strangers {
    lanes: [PairQueue; LANES],
    /// The lane whose turn it is.
    turn: usize,
    /// The times until which the share of strangers is used up: of other packets, then of TCP
    /// packets.
    until: [Instant; 2],
    /// When a segment of a known connection last came, either way.
    tcp_at: Option<Instant>,
    /// Packets that may wait.
    packets_max: usize,
    /// Packets to be dropped.
    dropped: VecDeque<PacketId>,
    /// Pairs whose stranger has sent packets into the mesh, and how many packets back count as
    /// answers.
    spoken: Recent<u8>,
    /// Pairs whose mote has sent an unsolicited packet, and how many packets may pass as answers.
    asked: Recent<u8>,
}

/// The packets of one pair of addresses, or of several that share a lane.
#[derive(Debug, Default)]
struct PairQueue {
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
    since: Instant,
}

impl Strangers {
    /// Queues with room for `packets_max` packets; with none, all strangers pass.
    pub(crate) fn new(packets_max: usize) -> Self {
        Self {
            lanes: Default::default(),
            turn: 0,
            until: [Instant::ORIGIN; 2],
            tcp_at: None,
            packets_max,
            dropped: VecDeque::new(),
            spoken: Recent::new(SPOKEN_FOR),
            asked: Recent::new(ASKED_FOR),
        }
    }

    /// Whether strangers may have to wait.
    pub(crate) const fn are_queued(&self) -> bool {
        self.packets_max > 0
    }

    /// Packets that wait.
    pub(crate) fn len(&self) -> usize {
        self.lanes.iter().map(|lane| lane.packets.len()).sum()
    }

    /// A segment of a known connection has come.
    pub(crate) fn note_tcp(&mut self, now: Instant) {
        self.tcp_at = Some(now);
    }

    /// Handles a packet into the mesh; returns whether it passes at once. `flow`: the flow of a TCP
    /// packet.
    pub(crate) fn admits(
        &mut self,
        id: PacketId,
        (pair, flow): (Pair, Option<FlowKey>),
        len: usize,
        now: Instant,
    ) -> bool {
        self.drop_stale(now);
        let waits = |lane: &PairQueue| lane.packets.iter().any(|own| own.pair == pair);
        if self.is_asked(pair, now) && !self.lanes.iter().any(waits) {
            return true;
        }
        let place = self.lane_of(&pair, flow.is_some(), now);
        if !self.has_waiting(place / EACH) && !self.must_wait(place, now) {
            self.let_in(pair, now);
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
            since: now,
        });
        while self.len() > self.packets_max {
            self.drop_longest(|lane| lane.packets.len());
        }
        while self.bytes() > BYTES_MAX {
            self.drop_longest(|lane| lane.bytes);
        }
        false
    }

    /// A stranger's packet goes into the mesh: a few that come back answer it.
    fn let_in(&mut self, pair: Pair, now: Instant) {
        let answers = self.spoken.get(&pair, now).unwrap_or(0);
        let answers = answers.saturating_add(ANSWERS_EACH).min(ANSWERS_MAX);
        self.spoken.put(pair, answers, now);
    }

    /// Handles a packet of no known flow that comes out of the mesh. It is either the answer to a
    /// stranger's packet, and is charged to that stranger, or a request of its mote, whose answers
    /// may then pass.
    pub(crate) fn on_up(&mut self, pair: Pair, is_tcp: bool, len: usize, now: Instant) {
        let answers = self.spoken.get(&pair, now);
        if let Some(left) = answers.and_then(|left| left.checked_sub(1)) {
            self.spoken.put(pair, left, now);
            let place = self.own_lane(&pair, is_tcp).unwrap_or(home(&pair, is_tcp));
            self.charge(place, ANSWER_WEIGHT * air(len), now);
        } else {
            let before = self.asked.get(&pair, now).unwrap_or(0);
            let answers = before.saturating_add(ANSWERS_EACH).min(ANSWERS_MAX);
            self.asked.put(pair, answers, now);
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
        self.drop_stale(now);
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
                self.let_in(first.pair, now);
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
        // Never silent: a deadline that is due would call this again at once.
        None
    }

    /// When [`Self::next`] may next release or drop a packet without an arrival.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let unused = self.tcp_at.map(|at| at + IN_USE_FOR);
        let until = [0, 1].map(|kind| Some(self.until[kind]).filter(|_| self.has_waiting(kind)));
        let until = earliest(until[0], until[1])?;
        let firsts = self.lanes.iter().filter_map(|lane| lane.packets.front());
        let stale = firsts.map(|first| first.since + WAITS_MAX).min();
        earliest(earliest(Some(until), unused), stale)
    }

    /// The next packet that is to be dropped.
    pub(crate) fn poll_dropped(&mut self) -> Option<PacketId> {
        self.dropped.pop_front()
    }

    /// Packets that are to be dropped.
    pub(crate) fn dropped(&self) -> usize {
        self.dropped.len()
    }

    /// Whether the mote of a pair has sent something that this answers; it may be used up.
    fn is_asked(&mut self, pair: Pair, now: Instant) -> bool {
        let Some(left) = self
            .asked
            .get(&pair, now)
            .and_then(|left| left.checked_sub(1))
        else {
            return false;
        };
        self.asked.put(pair, left, now);
        true
    }

    fn bytes(&self) -> usize {
        self.lanes.iter().map(|lane| lane.bytes).sum()
    }

    /// Whether packets of a kind wait: TCP's, or others.
    fn has_waiting(&self, kind: usize) -> bool {
        let lanes = self.lanes.iter().skip(kind * EACH).take(EACH);
        lanes.map(|lane| lane.packets.len()).sum::<usize>() > 0
    }

    fn must_wait(&self, place: usize, now: Instant) -> bool {
        self.is_tcp_in_use(now) && now < self.until[place / EACH]
    }

    fn is_tcp_in_use(&self, now: Instant) -> bool {
        self.tcp_at.is_some_and(|at| now.since(at) < IN_USE_FOR)
    }

    /// The lane that is kept for a pair, one that no other has used lately, or the one that it
    /// shares.
    fn lane_of(&mut self, pair: &Pair, is_tcp: bool, now: Instant) -> usize {
        let own = self.own_lane(pair, is_tcp);
        let home = home(pair, is_tcp);
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
        let lane = &mut self.lanes[place];
        if now.since(lane.used) >= KEPT_FOR {
            // Its debt has expired.
            lane.credit = lane.credit.max(0);
        }
        lane.used = now;
        place
    }

    /// The lane that is kept for a pair.
    fn own_lane(&self, pair: &Pair, is_tcp: bool) -> Option<usize> {
        let mut places = (0..LANES).filter(|place| (*place >= EACH) == is_tcp);
        places.find(|place| self.lanes[*place].pair == Some(*pair))
    }

    /// Drops the oldest packet of the queue that is the longest by this measure.
    fn drop_longest(&mut self, len: impl Fn(&PairQueue) -> usize) {
        let longest = self.lanes.iter_mut().max_by_key(|lane| len(lane));
        if let Some(lane) = longest
            && let Some(first) = lane.packets.pop_front()
        {
            lane.bytes -= first.len;
            self.dropped.push_back(first.id);
        }
    }

    /// Drops packets that have waited longer than `WAITS_MAX`.
    fn drop_stale(&mut self, now: Instant) {
        for lane in &mut self.lanes {
            while let Some(first) = lane.packets.front()
                && now.since(first.since) >= WAITS_MAX
            {
                lane.bytes -= first.len;
                self.dropped.push_back(first.id);
                lane.packets.pop_front();
            }
        }
    }

    fn share(&self, place: usize) -> i64 {
        let source = |lane: &PairQueue| lane.pair.map(|pair| pair.peer);
        let own = source(&self.lanes[place]);
        let of_source = |lane: &&PairQueue| !lane.packets.is_empty() && source(lane) == own;
        let busy = self.lanes.iter().filter(of_source).count() as i64;
        SHARE / busy.max(1)
    }

    /// Charges a packet to its queue and to the strangers' part of the time, where that has a
    /// bound.
    fn charge(&mut self, place: usize, air: u64, now: Instant) {
        if !self.is_tcp_in_use(now) {
            return;
        }
        let lane = &mut self.lanes[place];
        // Lossless: a packet has 64 KiB at most.
        lane.credit = (lane.credit - air as i64).max(-DEBT_MAX);
        let span = Duration::from_micros(air * BYTE_US * PART);
        let until = &mut self.until[place / EACH];
        *until = ((*until).max(now) + span).min(now + LEAD_MAX);
    }
}

/// The lane that a pair is given where others are taken.
fn home(pair: &Pair, is_tcp: bool) -> usize {
    // Its keys are constants, so a stranger can aim at the lane that others share, as it can fill
    // all.
    let mut hasher = DefaultHasher::new();
    pair.hash(&mut hasher);
    (hasher.finish() % EACH as u64) as usize + usize::from(is_tcp) * EACH
}

/// How long a packet of `len` bytes is on the air, in bytes: compression takes most of its headers
/// away.
fn air(len: usize) -> u64 {
    let payload = (len.saturating_sub(HEADER_LEN) + COMPRESSED_LEN) as u64;
    HOPS * (payload + payload.div_ceil(FRAME_LEN) * FRAME_OVERHEAD)
}

/// Queues of strangers.
const LANES: usize = 8;

/// How many of these are TCP's; all others have as many.
const EACH: usize = LANES / 2;

/// An answer costs this many times its own air: it goes against the stream.
const ANSWER_WEIGHT: u64 = 2;

/// Bytes of packets that wait, at most.
const BYTES_MAX: usize = 64 << 10;

/// The longest wait of a packet: by then its sender has given it up, or sent it again.
const WAITS_MAX: Duration = Duration::from_secs(5);

/// While TCP is in use, each kind of strangers (TCP, others) gets one part in this many of the air
/// time, as computed by [`air`]; a single connection uses some 60 % by the same computation. The
/// stack's own border router grants a quarter; behind one common queue that would lose every tenth
/// request.
const PART: u64 = 8;

/// The time for which TCP counts as in use after its last segment: longer than readers rest, and
/// than a timeout that has grown.
const IN_USE_FOR: Duration = Duration::from_secs(60);

/// How long a lane is kept for a pair that sends nothing.
const KEPT_FOR: Duration = Duration::from_secs(4);

/// Air of a lane in one round, in bytes: a segment of five frames over three hops.
const SHARE: i64 = 3_000;

/// How far ahead strangers may have used their part: shorter than the longest wait, so that one
/// packet of each queue is let in before the others in it are too old.
const LEAD_MAX: Duration = Duration::from_millis(4_900);

/// How far a lane may be in debt: by two of the longest packets of the mesh.
const DEBT_MAX: i64 = 8 * SHARE;

/// The rounds after which a lane with that debt and an eighth of a share has credit.
const ROUNDS_MAX: usize = 200;

/// The least time for which a packet out of the mesh can count as the answer to a stranger.
const SPOKEN_FOR: Duration = Duration::from_secs(30);

/// The least time for which a packet into the mesh can count as the answer to a mote.
const ASKED_FOR: Duration = Duration::from_secs(10);

/// Packets that may answer one packet: a block in several datagrams, or an acknowledgment and,
/// later, a response.
const ANSWERS_EACH: u8 = 3;

/// Packets of one pair that may still be answers, at most.
const ANSWERS_MAX: u8 = 24;

/// Hops that a packet has before it, at most three of which exclude each other. How many there are
/// is not known.
const HOPS: u64 = 3;

/// A byte on the air of IEEE 802.15.4 at 2.4 GHz.
const BYTE_US: u64 = 32;

/// The cost of a frame beside its payload, in bytes: backoff, preamble, header, checksum, ACK,
/// copies.
const FRAME_OVERHEAD: u64 = 100;

/// The usual payload of a frame, bytes.
const FRAME_LEN: u64 = 96;

/// Compressed headers of a packet.
const COMPRESSED_LEN: usize = 8;
