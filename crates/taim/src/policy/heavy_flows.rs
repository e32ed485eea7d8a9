//! The classification of flows as heavy, which contend for a mesh, or light, which use it only now
//! and then.
//!
//! Purpose: where many flows send as much as they can, a policy shares the air among them. With one
//! or two such flows no sharing is needed, and holding a flow that sends little costs its users
//! time without a benefit for others. A flow is light until it has moved an eighth of the bytes of
//! the busiest flow; it is light again when it moves less, but is not silent. Only streamed bytes
//! count, not requests and responses, which wait for one another and leave the air to others. A
//! flow that rests for half of the time, with all its data acknowledged, is light however much it
//! moves: it gets all that it needs. A flow that falls silent keeps its class for [`CLAIM`],
//! because a starving flow shows nothing but timeouts. A flow that streams full segments without a
//! rest wants more, and is heavy with far less. Beside its class, a flow may be silent: for half of
//! the time its answer is awaited longer than the mesh takes ([`HeavyFlows::note_late`]). Motes
//! that try in vain to open a flow count, too, where a heavy one keeps them out. Source: Motet's
//! own.

use motet::time::{Duration, Instant};

use crate::flow::SegmentEffect;
use crate::flows::{FlowId, Flows};
use crate::segment::{Direction, Segment};

/// Which flows of a router are heavy.
#[derive(Debug, Default)]
pub(crate) struct HeavyFlows {
    /// The load of each flow, by its place in the table.
    loads: Vec<Load>,
    /// Heavy flows when last counted, with those that became heavy since and without those that
    /// ended.
    heavy: usize,
    /// How many of these move more out of the mesh than into it, when last counted.
    heavy_up: usize,
    busiest: Busiest,
    /// When the flows are looked at again.
    looks_at: Option<Instant>,
    /// Whether a crowd stays one for [`CROWD_FOR`] after all of its flows but two seem to want
    /// little.
    is_patient: bool,
    /// Whether the flows of a crowd were still one when they were looked at.
    is_crowd: bool,
    /// For how many steps in a row one of two heavy flows has starved.
    starving: u8,
    /// Until when two flows contend, of which one starved.
    is_unfair_until: Option<Instant>,
    /// Whether they did when the flows were looked at.
    is_unfair: bool,
    /// Whether a flow out of the mesh was one of the crowd when the flows were looked at, and still
    /// wanted more than it got.
    is_up_starved: bool,
    /// Motes that try in vain to open a flow, and when these are counted again.
    shut_out: usize,
    counts_at: Option<Instant>,
    /// Steps for which the air may still be left to them; none: they have had it.
    left: u8,
    /// When that is given to them anew, where they have had it.
    gives_at: Option<Instant>,
}

/// The flow that moves the most, with which others are compared.
#[derive(Clone, Copy, Debug, Default)]
struct Busiest {
    /// The bytes that it moves.
    moves: u64,
    /// It counts as one that moves this much at least, except where [`Load::floor`] says otherwise.
    floor: u64,
    /// Whether all flows that do not rest move [`ALL_MIN`] together.
    is_of_many: bool,
}

/// How much a flow moves, and how much of the time it rests.
#[derive(Clone, Copy, Debug, Default)]
struct Load {
    /// When the flow was last heard of; none: it does not count.
    last: Option<Instant>,
    is_heavy: bool,
    /// Whether it is among [`HeavyFlows::heavy_up`].
    is_counted_up: bool,
    /// Bytes of streams that it has moved, by direction.
    moved: [Moved; 2],
    /// How many of them came in segments that were not full.
    partial: Moved,
    /// When its last full segment came.
    full_at: Option<Instant>,
    /// Whether in this step a full segment came soon behind another one, or again.
    is_train: bool,
    /// The same of the last 64 steps, a bit each.
    trains: u64,
    /// How long it rested, in the step that runs and, weighed alike, before.
    rested: Duration,
    /// How long answers took that came late, in the step that runs and, weighed alike, before.
    late: Duration,
    /// Time of all steps that have ended since it was first heard of, weighed alike.
    known: Duration,
    /// Whether the flow was heard of in this step.
    is_heard: bool,
    /// Steps as a heavy flow, up to [`ESTABLISHED`].
    steps: u8,
    /// Whether the flow was heard of in the last sixteen steps, a bit each.
    heard: u16,
    /// Until when the flow counts as one of the crowd that it was part of.
    crowd_until: Option<Instant>,
}

/// Bytes that a flow has moved.
#[derive(Clone, Copy, Debug, Default)]
struct Moved {
    /// Bytes of the step that runs.
    fresh: u64,
    /// Bytes of earlier steps, each step weighing an eighth less than the next.
    recent: u64,
}

/// The facts about a segment by which its flow is classified.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sign {
    pub(crate) direction: Direction,
    /// Bytes of a stream that it moves: see [`SegmentEffect::streamed`].
    pub(crate) streamed: u32,
    /// How many full segments it stands for: see [`SegmentEffect::full`].
    pub(crate) full: u8,
    /// How long nothing was under way before it: see [`SegmentEffect::rested`].
    pub(crate) rested: Duration,
}

impl Sign {
    pub(super) fn of(segment: &Segment, news: &SegmentEffect) -> Self {
        Self {
            direction: segment.direction,
            streamed: news.streamed,
            full: news.full,
            rested: news.rested,
        }
    }
}

impl Moved {
    const fn sum(&self) -> u64 {
        self.recent + self.fresh
    }

    /// Ends a step of the moving average.
    fn age(&mut self) {
        // Rounded up: the last byte is forgotten, too.
        self.recent = self.recent - self.recent.div_ceil(PAST) + std::mem::take(&mut self.fresh);
    }
}

impl Load {
    /// The bytes that the flow moves in its busier direction.
    fn moves(&self) -> u64 {
        let [up, down] = &self.moved;
        up.sum().max(down.sum())
    }

    /// Whether it moves no less out of the mesh than into it.
    const fn is_up(&self) -> bool {
        let [up, down] = &self.moved;
        up.sum() >= down.sum()
    }

    /// Whether the flow rested for half of the time that it is known, and of a step at the least.
    fn rests(&self) -> bool {
        self.rested.saturating_mul(2) >= self.known.max(STEP)
    }

    /// Whether the flow is heavy beside the busiest one.
    fn is_busy(&self, busiest: &Busiest) -> bool {
        let moves = self.moves();
        let most = busiest.moves.max(self.floor(busiest));
        moves > 0 && moves * LIGHT_PART >= most && !self.rests()
    }

    /// Whether the flow is held back by the mesh, and not by what its sender has to send: full
    /// segments follow one another, but for an eighth of the bytes, and it does not rest. It counts
    /// down to a part of the busiest flow that is smaller than that of others.
    fn is_insatiable(&self, busiest: &Busiest) -> bool {
        let moves = self.moves();
        self.streams()
            && !self.rests()
            && self.is_bulk()
            && moves * LIGHT_PART >= MOST_MIN
            && moves * STARVED_PART >= busiest.moves
    }

    const fn streams(&self) -> bool {
        self.trains.count_ones() >= TRAINS_MIN
    }

    /// Whether its bytes come in full segments, but for an eighth. Readings do not, and a flow that
    /// has sent them alone is heavy beside nobody.
    fn is_bulk(&self) -> bool {
        self.partial.sum() * LIGHT_PART <= self.moves()
    }

    /// What the busiest flow moves at least, where this flow is compared with it. There is no floor
    /// where many flows fill the mesh, each of them slowly: this flow is heard of often, or was
    /// heavy before.
    fn floor(&self, busiest: &Busiest) -> u64 {
        let is_steady = self.is_heavy || self.heard.count_ones() >= HEARD_MIN;
        match busiest.is_of_many && is_steady {
            true => 0,
            false => busiest.floor,
        }
    }

    /// Whether the flow is heavy, or streams without a rest.
    fn wants_more(&self) -> bool {
        self.is_heavy || self.moves() > 0 && !self.rests()
    }

    /// Ends a step of the moving average.
    fn age(&mut self) {
        self.moved.iter_mut().for_each(Moved::age);
        self.partial.age();
        let forget = |span: Duration| Duration::from_micros(span.as_micros() * (PAST - 1) / PAST);
        self.rested = forget(self.rested);
        self.late = forget(self.late);
        if self.last.is_some() {
            self.known = forget(self.known + STEP);
        }
    }

    /// Steps without a segment have passed, too.
    fn pass_silent(&mut self, steps: u64) {
        (0..steps.min(SILENT_STEPS_MAX)).for_each(|_| self.age());
        // Lossless: it is no more than the bits of `trains`.
        let steps = steps.min(SILENT_STEPS_MAX) as u32;
        self.heard = self.heard.checked_shl(steps).unwrap_or(0);
        self.trains = self.trains.checked_shl(steps).unwrap_or(0);
    }

    /// Judges it behind a step.
    fn judge(&mut self, busiest: &Busiest) {
        let is_heard = std::mem::take(&mut self.is_heard);
        self.heard = self.heard << 1 | u16::from(is_heard);
        self.trains = self.trains << 1 | u64::from(std::mem::take(&mut self.is_train));
        let is_known = self.steps < ESTABLISHED || self.heard.count_ones() >= HEARD_MIN;
        if self.is_busy(busiest) || self.is_insatiable(busiest) {
            self.is_heavy = true;
        } else if is_heard && (is_known || self.rests()) {
            self.is_heavy = false;
        }
        self.steps = match self.is_heavy {
            true => self.steps.saturating_add(1).min(ESTABLISHED),
            false => 0,
        };
    }
}

impl HeavyFlows {
    /// A classification by which a crowd stays one for a while: a flow that starves among others
    /// sends so little that it seems light, and two that are left would have the air to themselves.
    pub(super) fn patient() -> Self {
        Self {
            is_patient: true,
            busiest: Busiest {
                floor: MOST_MIN,
                ..Busiest::default()
            },
            left: LEFT_MAX,
            ..Self::default()
        }
    }

    /// Whether there are more heavy flows than can share the air by themselves: more than two, two
    /// of which one has starved for [`STARVING_MIN`] steps, or any beside which motes try in vain
    /// to connect. Flows into the mesh alone do not contend where the classification is `patient`:
    /// the border router's queues share the air among them. A flow out of the mesh that starves
    /// seems light, and still counts.
    pub(crate) const fn contend(&self) -> bool {
        let can_queue = self.is_patient && self.heavy_up == 0 && !self.is_up_starved;
        !can_queue && (self.heavy > FEW || self.is_crowd || self.is_unfair || self.keeps_out())
    }

    /// Whether heavy flows keep more than [`FEW`] motes from opening a flow. Motes that reach
    /// nobody would try for good: they are given [`LEFT_MAX`] steps, and the next ones much later.
    const fn keeps_out(&self) -> bool {
        self.is_patient && self.heavy > 0 && self.shut_out > FEW && self.left > 0
    }

    /// The motes that heavy flows keep from opening a flow.
    pub(crate) const fn kept_out(&self) -> usize {
        match self.keeps_out() {
            true => self.shut_out,
            false => 0,
        }
    }

    /// Counts the motes that are kept from opening a flow, once a step.
    pub(crate) fn count_shut_out(&mut self, flows: &Flows, now: Instant) {
        if self.is_patient && self.counts_at.is_none_or(|at| now >= at) {
            self.counts_at = Some(now + STEP);
            if self.gives_at.is_some_and(|at| now >= at) {
                (self.left, self.gives_at) = (LEFT_MAX, None);
            }
            if self.keeps_out() && self.contend() {
                self.left -= 1;
                self.gives_at.get_or_insert(now + GIVEN_EVERY);
            }
            self.shut_out = flows.shut_out(now);
        }
    }

    /// Whether a flow is heavy.
    pub(crate) fn is_heavy(&self, id: FlowId) -> bool {
        self.is_heavy_at(id.index())
    }

    /// Whether full segments of the flow have followed one another in several of the last seconds.
    pub(crate) fn streams(&self, id: FlowId) -> bool {
        self.loads.get(id.index()).is_some_and(Load::streams)
    }

    /// Whether the flow at this place of the table is heavy.
    pub(crate) fn is_heavy_at(&self, place: usize) -> bool {
        self.loads.get(place).is_some_and(|load| load.is_heavy)
    }

    /// Whether a late answer of the flow was awaited for half of the time that is remembered.
    pub(crate) fn is_silent(&self, id: FlowId) -> bool {
        let remembered = STEP.saturating_mul(PAST - 1);
        let late = self.loads.get(id.index()).map(|load| load.late);
        late.is_some_and(|late| late.saturating_mul(2) >= remembered)
    }

    /// An answer of the flow took longer than the mesh takes.
    pub(crate) fn note_late(&mut self, id: FlowId, took: Duration) {
        let load = self.load(id);
        // One that was asked for long ago counts for the time that is remembered.
        load.late = (load.late + took).min(load.known + STEP);
    }

    /// Whether a flow wants more than it gets, however little that is: it is heavy, or streams
    /// without a rest.
    pub(crate) fn wants_more(&self, id: FlowId) -> bool {
        self.loads.get(id.index()).is_some_and(Load::wants_more)
    }

    /// A segment has come. Returns whether its flow is new here, or was silent for [`CLAIM`]; it is
    /// known with the first segment out of the mesh.
    pub(crate) fn on_segment(&mut self, id: FlowId, sign: Sign, now: Instant) -> bool {
        self.look(now);
        let load = self.load(id);
        let is_up = sign.direction == Direction::Up;
        let is_stale = load.last.is_some_and(|last| now.since(last) >= CLAIM);
        let is_new = is_up && (load.last.is_none() || is_stale);
        if is_stale {
            self.on_over(id);
        }
        let load = self.load(id);
        if is_up {
            load.last = Some(now);
            load.is_heard = true;
        }
        // A rest that began long ago counts for the time that is remembered.
        load.rested = (load.rested + sign.rested).min(load.known + STEP);
        let streamed = u64::from(sign.streamed);
        load.moved[sign.direction as usize].fresh += streamed;
        if sign.full > 0 {
            let before = load.full_at.replace(now);
            load.is_train |= sign.full > 1 || before.is_some_and(|at| now.since(at) < TRAIN_GAP);
        }
        load.partial.fresh += if sign.full > 0 { 0 } else { streamed };
        let load = *load;
        self.busiest.moves = self.busiest.moves.max(load.moves());
        if load.last.is_some() && !load.is_heavy && load.is_busy(&self.busiest) {
            let load = self.load(id);
            load.is_heavy = true;
            load.is_counted_up = load.is_up();
            let is_up = load.is_counted_up;
            self.heavy += 1;
            self.heavy_up += usize::from(is_up);
        }
        is_new
    }

    /// A flow is over, or forgotten: it does not count any more.
    pub(crate) fn on_over(&mut self, id: FlowId) {
        let load = std::mem::take(self.load(id));
        self.starving = 0;
        self.heavy -= usize::from(load.is_heavy).min(self.heavy);
        self.heavy_up -= usize::from(load.is_counted_up).min(self.heavy_up);
    }

    /// Looks at the flows, where it is time.
    pub(crate) fn look(&mut self, now: Instant) {
        let at = *self.looks_at.get_or_insert(now + STEP);
        if now < at {
            return;
        }
        self.looks_at = Some(now + STEP);
        // Nobody looks while nothing passes: what moved before would else count as if it had moved
        // just now.
        let silent = now.since(at).as_micros() / STEP.as_micros();
        for load in &mut self.loads {
            load.age();
            load.pass_silent(silent);
        }
        let most = self.loads.iter().map(Load::moves).max();
        let restless = self.loads.iter().filter(|load| !load.rests());
        let all: u64 = restless.map(Load::moves).sum();
        self.busiest.moves = most.unwrap_or(0);
        self.busiest.is_of_many = all >= ALL_MIN;
        self.heavy = 0;
        self.heavy_up = 0;
        let mut starves = false;
        for load in &mut self.loads {
            load.is_counted_up = false;
            let Some(last) = load.last else { continue };
            load.judge(&self.busiest);
            load.is_heavy &= now.since(last) < CLAIM;
            starves |= load.is_heavy && load.is_bulk() && !load.is_busy(&self.busiest);
            self.heavy += usize::from(load.is_heavy);
            load.is_counted_up = load.is_heavy && load.is_up();
            self.heavy_up += usize::from(load.is_counted_up);
        }
        self.starving = match starves && self.heavy == FEW && silent == 0 {
            true => self.starving.saturating_add(1),
            false => 0,
        };
        if self.starving >= STARVING_MIN {
            self.is_unfair_until = Some(now + CROWD_FOR);
        }
        let until = self.is_unfair_until;
        self.is_unfair = self.heavy == FEW && until.is_some_and(|until| now < until);
        if self.is_patient {
            self.remember(now);
        }
    }

    /// Notes which flows are a crowd, and whether those of one still are: more than one flow is
    /// heavy, and with those that want more, whichever they are, there are more than few. Flows
    /// that starve may have reconnected, and so may those that win. Other heavy flows do not
    /// inherit the crowd, of which one starves or more than one is heavy.
    fn remember(&mut self, now: Instant) {
        let is_crowd = self.heavy > FEW;
        let mut members = 0;
        let mut heavy = 0;
        let mut starves = false;
        self.is_up_starved = false;
        for load in &mut self.loads {
            if is_crowd && load.is_heavy {
                load.crowd_until = Some(now + CROWD_FOR);
            }
            let was_member = load.crowd_until.is_some_and(|until| now < until);
            members += usize::from(was_member || load.wants_more());
            heavy += usize::from(was_member && load.is_heavy);
            let is_starved = was_member && !load.is_heavy && load.wants_more();
            starves |= is_starved;
            self.is_up_starved |= is_starved && load.is_up();
        }
        self.is_crowd = members > FEW && self.heavy > 1 && (heavy > 1 || starves);
    }

    /// When the flows are looked at again: flows that contend now may not do so then.
    pub(crate) const fn looks_at(&self) -> Option<Instant> {
        self.looks_at
    }

    fn load(&mut self, id: FlowId) -> &mut Load {
        if self.loads.len() <= id.index() {
            self.loads.resize(id.index() + 1, Load::default());
        }
        &mut self.loads[id.index()]
    }
}

/// A flow that was silent for longer does not count, and has no claim to what it left
/// unused.
pub(super) const CLAIM: Duration = Duration::from_secs(120);

/// So few heavy flows share the air by themselves: nothing of theirs is held.
const FEW: usize = 2;

/// Steps in a row that one of two heavy flows must starve before both contend. One that misses a
/// few seconds behind a timeout is none: two motes in a row were then held in one run of 13, and
/// carried a fifth less.
const STARVING_MIN: u8 = 8;

/// How long a flow is remembered as one of a crowd.
const CROWD_FOR: Duration = Duration::from_secs(60);

/// Steps for which the air is left at most to motes that try to open a flow.
const LEFT_MAX: u8 = 60;

/// Time from the first of these steps until as many are given anew.
const GIVEN_EVERY: Duration = Duration::from_secs(600);

/// How often the flows are looked at.
const STEP: Duration = Duration::from_secs(1);

/// After so many steps nothing of a flow's past is left: it has as many bits.
const SILENT_STEPS_MAX: u64 = 64;

/// The part of a flow's past that each step forgets: one in this many.
const PAST: u64 = 8;

/// What the busiest flow of `auto` counts as moving at least, weighted: 200 bytes a second. Else
/// readings each ten seconds would contend where nobody else sends up: nothing shows their rest,
/// for what comes after an acknowledgment looks like a slow answer to it.
const MOST_MIN: u64 = 1_600;

/// What all flows move together where there is no such floor, weighted alike: 400 bytes a second.
/// The lab's floors of thirty motes carry 1,100 in segments of 38 bytes.
const ALL_MIN: u64 = 3_200;

/// A flow is light that moves less than such a part of what the busiest one moves.
const LIGHT_PART: u64 = 8;

/// A full segment that comes so soon behind another one is of the same train. Of readings each
/// comes alone.
const TRAIN_GAP: Duration = Duration::from_millis(500);

/// A flow streams that had trains in so many of the last 64 steps: in more than one of eight.
const TRAINS_MIN: u32 = 9;

/// A flow that streams without a rest is heavy down to such a part of what the busiest one moves:
/// beside an nRF52840 at the border router one over eight hops has a thirtieth.
const STARVED_PART: u64 = 64;

/// The steps as a heavy flow after which silence is no sign that a flow is light.
const ESTABLISHED: u8 = 30;

/// A flow that was heavy for long becomes light only if it was heard of in at least this many of
/// the last sixteen steps; and so does a slow flow become heavy among many.
const HEARD_MIN: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// The sign of a segment that brings `streamed` bytes, right behind another one.
    fn sign(streamed: u32) -> Sign {
        Sign {
            direction: Direction::Up,
            streamed,
            full: 0,
            rested: Duration::ZERO,
        }
    }

    /// The classification after `seconds` seconds in which flows moved up `bytes` each.
    fn after(seconds: u64, bytes: impl Fn(u32, u64) -> Option<u32>, flows: u32) -> HeavyFlows {
        let mut loads = HeavyFlows::default();
        for second in 0..seconds {
            let now = Instant::ORIGIN + Duration::from_secs(1_000 + second);
            for flow in 0..flows {
                if let Some(bytes) = bytes(flow, second) {
                    loads.on_segment(FlowId::at(flow), sign(bytes), now);
                }
            }
        }
        loads
    }

    #[test]
    fn flows_that_are_alike_contend() {
        for flows in 0..6 {
            let loads = after(60, |_, _| Some(38), flows);
            assert_eq!(loads.heavy, flows as usize);
            assert_eq!(loads.contend(), flows > 2);
        }
    }

    /// Of a crowd two flows may be left that seem to want much: for a minute it stays a crowd where
    /// that was asked for, but one flow alone is none.
    #[test]
    fn a_crowd_is_remembered_for_a_minute() {
        for (is_patient, left, expected) in [
            (true, 2, [true, true, false]),
            (true, 1, [true, false, false]),
            (false, 2, [true, false, false]),
        ] {
            let mut loads = HeavyFlows {
                is_patient,
                ..HeavyFlows::default()
            };
            let mut contended = Vec::new();
            for second in 0..160 {
                let now = Instant::ORIGIN + Duration::from_secs(1_000 + second);
                for flow in 0..3 {
                    // From then on the others want little.
                    let wants_much = second < 20 || flow < left;
                    let sign = sign(if wants_much { 1_000 } else { 1 });
                    loads.on_segment(FlowId::at(flow), sign, now);
                }
                if [20, 60, 159].contains(&second) {
                    contended.push(loads.contend());
                }
            }
            assert_eq!(contended, expected, "{is_patient} {left}");
        }
    }

    /// Motes that are kept from opening a flow are a crowd beside flows that are heavy: for a
    /// minute of each ten, whoever they are. Beside downloads alone nothing is held, and no minute
    /// used up.
    #[test]
    fn motes_that_try_in_vain_are_a_crowd_for_a_while() {
        let start = Instant::ORIGIN + Duration::from_secs(1_000);
        let (up, down) = (Direction::Up, Direction::Down);
        for (motes, direction, expected) in [
            (2, up, [0, 0, 0]),
            (6, up, [60, 0, 60]),
            (6, down, [0, 0, 0]),
        ] {
            let mut loads = HeavyFlows::patient();
            let mut held = [0; 3];
            for second in 0..900 {
                let now = start + Duration::from_secs(second);
                // Two that have the air, and one that moves a little all the time.
                for (flow, bytes) in [(0, 4_000), (1, 4_000), (2, 40)] {
                    loads.on_segment(FlowId::at(flow), sign(bytes), now);
                    if direction == down {
                        loads.on_over(FlowId::at(flow));
                        let sign = Sign {
                            direction,
                            ..sign(bytes)
                        };
                        loads.on_segment(FlowId::at(flow), sign, now);
                    }
                }
                let before = start + Duration::from_secs(second - second.min(4));
                loads.count_shut_out(&Flows::of_motes_that_try(motes, true, before), now);
                held[second as usize / 300] += u32::from(loads.contend());
            }
            let is_near = |(held, expected): (&u32, u32)| held.abs_diff(expected) <= 4;
            assert!(held.iter().zip(expected).all(is_near), "{motes}: {held:?}");
        }
    }

    /// Late answers that are awaited for half of the time make a flow silent, a few do not; seconds
    /// later that is forgotten.
    #[test]
    fn a_flow_is_silent_that_keeps_answering_late() {
        for (took_ms, every, expected) in [(600, 1, true), (400, 1, false), (900, 2, false)] {
            let mut loads = HeavyFlows::patient();
            let mut silent = Vec::new();
            for second in 0..60 {
                let now = Instant::ORIGIN + Duration::from_secs(1_000 + second);
                loads.on_segment(FlowId::at(0), sign(400), now);
                if second < 40 && second % every == 0 {
                    loads.note_late(FlowId::at(0), Duration::from_millis(took_ms));
                }
                if [2, 39, 59].contains(&second) {
                    silent.push(loads.is_silent(FlowId::at(0)));
                }
            }
            assert_eq!(silent, [false, expected, false], "{took_ms} {every}");
        }
        assert!(!HeavyFlows::patient().is_silent(FlowId::at(7)), "unknown");
    }

    /// Uploads that starved beside downloads once seemed light, so that nothing was held any more,
    /// and they starved for good. Uploads that never were of a crowd make none of downloads.
    #[test]
    fn uploads_that_starve_beside_downloads_still_contend() {
        for (begins_with, ends_with, expected) in [
            (1_000, 100, [true, true]),
            (1_000, 1_000, [true, true]),
            (100, 100, [false, false]),
            (1_000, 0, [true, false]),
        ] {
            let mut loads = HeavyFlows::patient();
            let mut contended = Vec::new();
            for second in 0..60 {
                let now = Instant::ORIGIN + Duration::from_secs(1_000 + second);
                for flow in 0..6 {
                    let up = if second < 15 { begins_with } else { ends_with };
                    let up = if flow < 3 { up } else { 0 };
                    loads.on_segment(FlowId::at(flow), sign(up), now);
                    let down = Sign {
                        direction: Direction::Down,
                        ..sign(if flow < 3 { 0 } else { 2_000 })
                    };
                    loads.on_segment(FlowId::at(flow), down, now);
                }
                if second == 15 && ends_with == 0 {
                    (0..3).for_each(|flow| loads.on_over(FlowId::at(flow)));
                }
                if [14, 59].contains(&second) {
                    contended.push(loads.contend());
                }
            }
            assert_eq!(contended, expected, "{begins_with} {ends_with}");
        }
    }

    /// Two flows that come after a crowd are none, nor are two of it whose others are over.
    #[test]
    fn a_crowd_is_not_inherited() {
        for (over, is_left, expected) in [(1, true, false), (3, false, false), (0, true, true)] {
            let mut loads = HeavyFlows::patient();
            let at = |second: u64| Instant::ORIGIN + Duration::from_secs(1_000 + second);
            for second in 0..20 {
                for flow in 0..3 {
                    loads.on_segment(FlowId::at(flow), sign(1_000), at(second));
                }
            }
            (0..over).for_each(|flow| loads.on_over(FlowId::at(flow)));
            for second in 20..40 {
                // The first of those that are left wants little, or two others come.
                for (flow, bytes) in [(0, 1), (1, 1_000), (2, 1_000)] {
                    let flow = if is_left { flow } else { flow + 3 };
                    if flow >= over {
                        loads.on_segment(FlowId::at(flow), sign(bytes), at(second));
                    }
                }
            }
            assert_eq!(loads.heavy, 2, "{over}");
            assert_eq!(loads.contend(), expected, "{over}");
        }
    }

    /// A flow of a crowd that starves, and reconnects, still counts as one of three.
    #[test]
    fn a_crowd_goes_on_when_one_that_starves_reconnects() {
        for (bytes, expected) in [(10, true), (0, false)] {
            let mut loads = HeavyFlows::patient();
            let at = |second: u64| Instant::ORIGIN + Duration::from_secs(1_000 + second);
            for second in 0..40 {
                for flow in 0..3 {
                    let (flow, bytes) = match (flow, second >= 20) {
                        (0, true) => (3, bytes),
                        _ => (flow, 1_000),
                    };
                    loads.on_segment(FlowId::at(flow), sign(bytes), at(second));
                }
                if second == 20 {
                    loads.on_over(FlowId::at(0));
                }
            }
            assert_eq!((loads.heavy, loads.contend()), (2, expected), "{bytes}");
        }
    }

    /// Uploads one after another: the two that win are new connections, the one that starves is
    /// not.
    #[test]
    fn a_crowd_goes_on_when_those_that_win_reconnect() {
        for (bytes, expected) in [(10, true), (0, false)] {
            let mut loads = HeavyFlows::patient();
            let at = |second: u64| Instant::ORIGIN + Duration::from_secs(1_000 + second);
            for second in 0..40 {
                for flow in 0..3 {
                    let (flow, bytes) = match (flow, second >= 20) {
                        (0, true) => (0, bytes),
                        (_, true) => (flow + 3, 1_000),
                        _ => (flow, 1_000),
                    };
                    if bytes > 0 {
                        loads.on_segment(FlowId::at(flow), sign(bytes), at(second));
                    }
                }
                if second == 20 {
                    let over = if bytes > 0 { 1 } else { 0 };
                    (over..3).for_each(|flow| loads.on_over(FlowId::at(flow)));
                }
            }
            assert_eq!((loads.heavy, loads.contend()), (2, expected), "{bytes}");
        }
    }

    /// Twelve motes with a reading each ten seconds once were a crowd where nobody else sent up,
    /// and their acknowledgments were held for up to a minute.
    #[test]
    fn readings_are_no_crowd_of_auto_where_nobody_else_sends() {
        let mut loads = HeavyFlows::patient();
        for second in 0..120 {
            let now = Instant::ORIGIN + Duration::from_secs(1_000 + second);
            for flow in (0..12).filter(|flow| second % 10 == u64::from(flow % 10)) {
                loads.on_segment(FlowId::at(flow), sign(64), now);
            }
            assert!(!loads.contend(), "{second}");
        }
        assert_eq!(loads.heavy, 0);
    }

    /// Thirty motes that shared a full mesh once were none, for each of them moved less than an
    /// eighth of the floor. A hundred that send as much in all with a reading each ten seconds are
    /// none, nor are three slow ones, which fill no mesh.
    #[test]
    fn slow_flows_are_a_crowd_of_auto_where_they_fill_the_mesh() {
        for (flows, every, bytes, expected) in [
            (30, 2, 40, true),
            (30, 1, 20, true),
            (100, 10, 64, false),
            (3, 2, 40, false),
        ] {
            let mut loads = HeavyFlows::patient();
            for second in 0..120 {
                let now = Instant::ORIGIN + Duration::from_secs(1_000 + second);
                for flow in (0..flows).filter(|flow| (second + u64::from(*flow)) % every == 0) {
                    loads.on_segment(FlowId::at(flow), sign(bytes), now);
                }
                assert!(expected || !loads.contend(), "{flows} {every} {second}");
            }
            assert_eq!(loads.contend(), expected, "{flows} {every}");
            let heavy = if expected { flows as usize } else { 0 };
            assert_eq!(loads.heavy, heavy, "{flows} {every}");
        }
    }

    /// Where nothing else passes, nobody looks at the flows in between. Two motes with a reading
    /// each five seconds once counted as moving four times as much, and were a crowd with a
    /// download.
    #[test]
    fn a_silence_makes_no_flow_heavier() {
        for (every, most) in [(1, 576), (5, 140), (70, 64)] {
            let mut loads = HeavyFlows::patient();
            for second in (0..900).step_by(every) {
                let now = Instant::ORIGIN + Duration::from_secs(1_000 + second);
                loads.on_segment(FlowId::at(0), sign(64), now);
            }
            let moves = loads.loads.first().map(Load::moves);
            let least = if every == 1 { 400 } else { 0 };
            assert!(
                moves.is_some_and(|moves| (least..=most).contains(&moves)),
                "{every}: {moves:?}"
            );
        }
    }

    #[test]
    fn those_that_ask_now_and_then_are_none() {
        for every in [1, 3, 10, 30] {
            let bytes = |flow: u32, second: u64| match flow {
                0 => Some(1_000),
                _ => (second % every == u64::from(flow) % every).then_some(64),
            };
            let loads = after(120, bytes, 9);
            assert_eq!(loads.heavy, 1, "each {every} s");
        }
    }

    /// Two flows once had the mesh to themselves for good.
    #[test]
    fn those_that_starve_still_contend() {
        let bytes = |_: u32, second: u64| (second < 20).then_some(400);
        let mut starved = after(20, bytes, 6);
        for second in 20..100 {
            let now = Instant::ORIGIN + Duration::from_secs(1_000 + second);
            for flow in 0..2 {
                starved.on_segment(FlowId::at(flow), sign(2_000), now);
            }
            // What it sends again after a timeout says that it starves.
            if second % 40 == 39 {
                starved.on_segment(FlowId::at(5), sign(2 * 400), now);
            }
        }
        assert_eq!(starved.heavy, 6);
        let late = Instant::ORIGIN + Duration::from_secs(1_000 + 300);
        starved.look(late);
        assert_eq!(starved.heavy, 0, "silent for minutes");
    }

    #[test]
    fn one_that_is_over_counts_no_more() {
        let mut loads = after(10, |_, _| Some(38), 3);
        loads.on_over(FlowId::at(1));
        loads.on_over(FlowId::at(1));
        assert_eq!((loads.heavy, loads.contend()), (2, false));
    }

    /// A flow may have turned round between its counting and its end.
    #[test]
    fn a_flow_that_has_turned_round_ends_as_it_was_counted() {
        let mut loads = HeavyFlows::patient();
        let now = Instant::ORIGIN + Duration::from_secs(1_000);
        let down = Sign {
            direction: Direction::Down,
            ..sign(10_000)
        };
        for flow in 0..4 {
            loads.on_segment(FlowId::at(flow), sign(5_000), now);
        }
        assert_eq!((loads.heavy, loads.heavy_up), (4, 4));
        loads.on_segment(FlowId::at(0), down, now);
        loads.on_over(FlowId::at(0));
        assert_eq!((loads.heavy, loads.heavy_up), (3, 3));
        let later = now + Duration::from_secs(2);
        for flow in 1..4 {
            loads.on_segment(FlowId::at(flow), down, later);
        }
        loads.look(later + STEP);
        assert_eq!((loads.heavy, loads.heavy_up), (3, 0));
        // It sends more out of the mesh again, and was not counted as such.
        loads.on_segment(FlowId::at(1), sign(50_000), later + STEP);
        loads.on_segment(FlowId::at(4), sign(50_000), later + STEP);
        assert_eq!((loads.heavy, loads.heavy_up), (4, 1));
        loads.on_over(FlowId::at(1));
        assert_eq!((loads.heavy, loads.heavy_up), (3, 1));
    }

    /// Whoever asks eight motes something each second once counted eight heavy flows.
    #[test]
    fn those_that_rest_are_none_however_many() {
        let mut loads = HeavyFlows::default();
        for second in 0..60 {
            let now = Instant::ORIGIN + Duration::from_secs(1_000 + second);
            for flow in 0..8 {
                let asks = Sign {
                    direction: Direction::Down,
                    streamed: 64,
                    full: 0,
                    rested: Duration::from_micros(600_000),
                };
                loads.on_segment(FlowId::at(flow), asks, now);
                loads.on_segment(FlowId::at(flow), sign(64), now);
            }
        }
        assert_eq!(loads.heavy, 0);
        assert!(!loads.wants_more(FlowId::at(0)));
    }

    /// The bytes that a flow had moved at first once counted for eleven seconds, and in whole
    /// numbers seven of them for ever.
    #[test]
    fn those_that_only_ask_after_their_beginning_are_none_soon() {
        let mut loads = HeavyFlows::default();
        for second in 0..60 {
            let now = Instant::ORIGIN + Duration::from_secs(1_000 + second);
            for flow in 0..8 {
                let asks = Sign {
                    direction: Direction::Up,
                    streamed: if second < 2 { 64 } else { 0 },
                    full: 0,
                    rested: Duration::from_micros(if second == 0 { 100_000 } else { 600_000 }),
                };
                loads.on_segment(FlowId::at(flow), asks, now);
            }
            assert!(second < 6 || loads.heavy == 0, "after {second} s");
        }
        let moves = loads.loads.iter().map(Load::moves);
        assert_eq!(moves.sum::<u64>(), 0);
    }

    /// An hour's rest once made flows light for a minute of the busiest sending.
    #[test]
    fn those_that_have_rested_for_long_contend_soon_when_they_stream() {
        let mut loads = HeavyFlows::default();
        let begin = Instant::ORIGIN + Duration::from_secs(1_000);
        for second in 0..30 {
            let now = begin + Duration::from_secs(second);
            for flow in 0..6 {
                let rested = match second {
                    0..20 => Duration::from_millis(900),
                    20 => Duration::from_secs(100),
                    _ => Duration::ZERO,
                };
                let rests = Sign {
                    rested,
                    ..sign(1_000)
                };
                loads.on_segment(FlowId::at(flow), rests, now);
            }
            assert!(second >= 20 || loads.heavy == 0, "after {second} s");
        }
        assert_eq!(loads.heavy, 6);
    }

    /// Two flows over many hops once had a twelfth each of what one had beside the border router,
    /// and no policy saw a crowd. Those that rest, whose segments are short, or that send one at a
    /// time want little, and a trickle is no flow that starves.
    #[test]
    fn those_that_starve_from_the_beginning_contend() {
        for (full, rested_ms, every, bytes, expected) in [
            (2, 0, 1, 900, 3),
            (2, 0, 3, 900, 3),
            (2, 0, 8, 900, 1),
            (2, 700, 1, 900, 1),
            (1, 0, 1, 450, 1),
            (0, 0, 1, 900, 1),
            (2, 0, 3, 30, 1),
        ] {
            let mut loads = HeavyFlows::patient();
            for second in 0..60 {
                let now = Instant::ORIGIN + Duration::from_secs(1_000 + second);
                loads.on_segment(FlowId::at(0), sign(9_000), now);
                for flow in (1..3).filter(|_| second % every == 0) {
                    let starved = Sign {
                        full,
                        rested: Duration::from_millis(rested_ms * every),
                        ..sign(bytes)
                    };
                    loads.on_segment(FlowId::at(flow), starved, now);
                }
            }
            assert_eq!(loads.heavy, expected, "{full} {rested_ms} {every} {bytes}");
        }
    }

    /// Of two uploads one once had nothing for as long as the other lasted. For a minute after one
    /// starved both contend; two that share the air unevenly, but not that much, do not.
    #[test]
    fn two_flows_contend_of_which_one_starves() {
        for (bytes, expected) in [(900, true), (2_000, false)] {
            let mut loads = HeavyFlows::patient();
            let mut contended = Vec::new();
            for second in 0..160 {
                let now = Instant::ORIGIN + Duration::from_secs(1_000 + second);
                let both = if second < 40 { bytes } else { 5_000 };
                for (flow, bytes) in [(0, 9_000.max(both)), (1, both)] {
                    let full = Sign {
                        full: 2,
                        ..sign(bytes)
                    };
                    loads.on_segment(FlowId::at(flow), full, now);
                }
                if [39, 80, 159].contains(&second) {
                    contended.push(loads.contend());
                }
            }
            assert_eq!(contended, [expected, expected, false], "{bytes}");
        }
    }

    /// One that sends next to nothing for some seconds, as behind a timeout, starves no longer than
    /// that.
    #[test]
    fn a_pause_of_one_of_two_flows_is_no_starving() {
        for (pause_s, expected) in [(14, false), (40, true)] {
            let mut loads = HeavyFlows::patient();
            let mut has_contended = false;
            for second in 0..120 {
                let now = Instant::ORIGIN + Duration::from_secs(1_000 + second);
                let is_paused = (40..40 + pause_s).contains(&second);
                for (flow, bytes) in [(0, 9_000), (1, if is_paused { 1 } else { 4_000 })] {
                    let full = Sign {
                        full: 2,
                        ..sign(bytes)
                    };
                    loads.on_segment(FlowId::at(flow), full, now);
                }
                has_contended |= loads.contend();
            }
            assert_eq!(has_contended, expected, "{pause_s}");
        }
    }

    /// Where nobody else sends, a mote with a reading each ten seconds is heavy. A download that
    /// begins was then one of two flows of which one starves, and was held for up to 24 s.
    #[test]
    fn a_reader_does_not_starve_beside_a_download() {
        let mut loads = HeavyFlows::patient();
        for second in 0..80 {
            let now = Instant::ORIGIN + Duration::from_secs(1_000 + second);
            if second % 10 == 0 {
                loads.on_segment(FlowId::at(0), sign(220), now);
            }
            if second == 72 {
                assert_eq!(loads.heavy, 1, "the reader alone");
            }
            if second >= 73 {
                let down = Sign {
                    direction: Direction::Down,
                    full: 2,
                    ..sign(10_000)
                };
                loads.on_segment(FlowId::at(1), down, now);
                loads.on_segment(FlowId::at(1), sign(0), now);
            }
            assert!(!loads.contend(), "{second}");
        }
    }

    /// A connection for each question does not contend with a flow that sends much.
    #[test]
    fn one_that_has_just_come_is_light_until_it_has_sent_much() {
        let mut loads = after(20, |flow, _| (flow == 0).then_some(1_000), 1);
        let now = Instant::ORIGIN + Duration::from_secs(1_020);
        for flow in 1..9 {
            loads.on_segment(FlowId::at(flow), sign(64), now);
        }
        assert_eq!(loads.heavy, 1);
        assert!(!loads.is_heavy(FlowId::at(1)) && loads.wants_more(FlowId::at(1)));
        for flow in 1..9 {
            loads.on_segment(FlowId::at(flow), sign(1_000), now);
        }
        assert_eq!(loads.heavy, 9);
    }
}
