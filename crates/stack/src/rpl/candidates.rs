//! Neighbours that may become the parent: the contents of their DIOs, and the quality of the links.
//!
//! Slots are borrowed. A neighbour that has never acknowledged a frame is a stranger: it may not
//! exist, since source addresses can be made up. A stranger is no parent before it acknowledges,
//! and where no slot is free it takes at most one from neighbours that have; the parent's slot is
//! never taken.

use super::MessageDrop;
use super::iid::Iid;
use super::objective::{ETX_UNIT, INFINITE_RANK};
use crate::time::Instant;

/// A slot for one neighbour; [`Candidate::EMPTY`] to begin with.
#[derive(Clone, Debug)]
pub struct Candidate {
    standing: Standing,
    pub(super) iid: Iid,
    /// The neighbour's rank; [`INFINITE_RANK`] where it leads nowhere, or belongs to an older
    /// version.
    pub(super) rank: u16,
    /// The cost of the neighbour's path: from its metric container, else its rank.
    pub(super) base: u16,
    /// The neighbour's DTSN; when the parent increments its own, a DAO is due (RFC 6550 §9.6).
    pub(super) dtsn: u8,
    attempts: u8,
    successes: u8,
    /// Frames given up since it last acknowledged one.
    unanswered: u8,
    /// Frames to it in the last eight seconds, about: every four of them halve it.
    load: u8,
    /// Of the parent, the DISs to it that are left, unless it answers: a message in its name counts
    /// only if its answer confirms it; [`LATER`] while neighbours are asked before. Of another
    /// neighbour, [`CLAIMS`] while it claims a newer version and waits to be asked, then [`ASKED`].
    pub(super) questions: u8,
    /// Signal strength of its messages, dBm, an average in which the last ones count most; 0: not
    /// known.
    signal_dbm: i8,
    /// Whether a frame of it came since the last frame to it was sent, while it is gone.
    is_heard: bool,
    /// Trials of it since it was silent, or took several frames: more than one where its frames
    /// come, and hardly any arrives.
    trials: u8,
    /// When the neighbour's last message came, while it is gone its last frame, in [`ticks`].
    heard: u32,
    /// When the last frame to it was reported, in [`ticks`].
    pub(super) tested: u32,
}

/// The standing of a slot's neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Standing {
    /// The slot has no neighbour.
    Nobody,
    /// A neighbour that has never acknowledged a frame.
    Stranger,
    /// A neighbour that has acknowledged a frame.
    Proven,
}

impl Candidate {
    /// An empty slot: all zeros, so that a static one costs no flash.
    pub const EMPTY: Self = Self {
        standing: Standing::Nobody,
        iid: Iid::NONE,
        rank: 0,
        base: 0,
        dtsn: 0,
        attempts: 0,
        successes: 0,
        unanswered: 0,
        load: 0,
        questions: 0,
        signal_dbm: 0,
        is_heard: false,
        trials: 0,
        heard: 0,
        tested: 0,
    };

    const fn is_known(&self) -> bool {
        !matches!(self.standing, Standing::Nobody)
    }

    /// The interface identifier of the neighbour.
    pub const fn iid(&self) -> [u8; 8] {
        self.iid.octets()
    }

    /// The neighbour's rank in its last DIO; [`INFINITE_RANK`]: it is no way to the root.
    pub const fn rank(&self) -> u16 {
        self.rank
    }

    /// Whether the neighbour has ever acknowledged a frame.
    pub const fn is_proven(&self) -> bool {
        matches!(self.standing, Standing::Proven)
    }

    /// Expected transmissions per delivered frame, in units of 1/128 (RFC 6551 §4.3.2); `u16::MAX`
    /// where it takes none.
    ///
    /// Attempts per success over the last 16 to 32 successes, one success in two attempts added: a
    /// neighbour that nothing is known of counts as two transmissions, one that never acknowledged
    /// ever worse, and one that is weak as up to eight until frames have shown more. Frames that
    /// were given up since the last success count on top, up to three transmissions.
    pub fn etx(&self) -> u16 {
        match u16::from(self.unanswered) {
            _ if self.is_gone() => u16::MAX,
            unanswered => {
                let penalty = (3 * ETX_UNIT * unanswered).checked_div(self.gone_after());
                self.mean_etx() + penalty.unwrap_or(0)
            }
        }
    }

    fn mean_etx(&self) -> u16 {
        let attempts = (u16::from(self.attempts) + prior_attempts(self.signal_dbm)) * ETX_UNIT;
        let successes = u16::from(self.successes) + PRIOR_SUCCESSES;
        attempts.checked_div(successes).unwrap_or(0)
    }

    /// The least ETX that the link may have as far as is known: one transmission of a strong
    /// stranger, else that of its frames so far with one success more.
    pub(super) fn etx_at_best(&self) -> u16 {
        let prior = prior_attempts(self.signal_dbm) / 2;
        let attempts = (u16::from(self.attempts) + prior) * ETX_UNIT;
        let successes = u16::from(self.successes) + 2;
        attempts.checked_div(successes).unwrap_or(0).max(ETX_UNIT)
    }

    /// Frames given up since it last acknowledged one.
    pub(super) const fn unanswered(&self) -> u8 {
        self.unanswered
    }

    /// Whether the neighbour is gone: it acknowledged none of the last frames, and there were too
    /// many of them for a bad link to explain it: with an ETX of 2 a frame of eight attempts fails
    /// once in 250 times, with 8 once in 3.
    pub(super) fn is_gone(&self) -> bool {
        u16::from(self.unanswered) >= self.gone_after()
    }

    fn gone_after(&self) -> u16 {
        (self.mean_etx() / ETX_UNIT).clamp(GONE_MIN, GONE_MAX)
    }

    /// How weak its signal is, in four grades.
    pub(super) const fn weakness(&self) -> u8 {
        weakness(self.signal_dbm)
    }

    /// Time since its last message, in [`ticks`].
    pub(super) fn silence(&self, now: Instant) -> u32 {
        ticks(now).saturating_sub(self.heard)
    }

    /// Whether enough frames go to the neighbour to disturb one another on their way.
    pub(super) fn is_loaded(&self, now: Instant) -> bool {
        self.load_at(now) >= LOADED
    }

    fn load_at(&self, now: Instant) -> u8 {
        let halvings = (ticks(now) / 4).saturating_sub(self.tested / 4);
        self.load.checked_shr(halvings).unwrap_or(0)
    }

    /// Whether too few frames have shown how good the link is; of a neighbour that was gone:
    /// whether it was heard since.
    pub(super) fn is_untested(&self) -> bool {
        match self.is_gone() {
            true => self.is_heard,
            false => self.attempts < TESTED_ATTEMPTS,
        }
    }

    /// Whether a neighbour that was gone is heard again, and was not tried since: it may be back,
    /// and the next frame to it finds out.
    pub(super) fn may_be_back(&self) -> bool {
        self.is_heard && self.trials == 0 && self.is_proven() && self.is_gone()
    }

    /// A frame of the neighbour came.
    fn hear(&mut self, now: Instant) {
        let now = ticks(now);
        if now.saturating_sub(self.heard) >= VAIN_TICKS {
            // It was away, so what was tried meanwhile shows nothing.
            self.trials = 0;
        }
        self.is_heard = true;
        self.heard = now;
    }

    /// A frame to the neighbour is sent: what was heard of it before says nothing of what becomes
    /// of that.
    pub(super) fn test(&mut self, now: Instant) {
        self.tested = ticks(now);
        self.trials = match self.is_heard && self.is_gone() {
            true => self.trials.saturating_add(1),
            false => self.trials,
        };
        self.is_heard = false;
    }

    /// Whether a frame may show anything, `idle` steps after the last: it leads somewhere, and was
    /// not just tried in vain.
    pub(super) fn is_worth_testing(&self, idle: u32) -> bool {
        self.rank != INFINITE_RANK
            && match () {
                () if self.is_vain() => self.is_heard && idle >= VAIN_TICKS,
                () if self.is_gone() => {
                    (self.is_heard && idle >= self.trial_wait()) || idle >= GONE_TICKS
                }
                () => true,
            }
    }

    /// Steps from one trial of a neighbour that is heard, but takes no frame, to the next one: none
    /// at first, then one, and twice as many each time.
    fn trial_wait(&self) -> u32 {
        let doublings = self.trials.saturating_sub(1).min(TRIAL_DOUBLINGS_MAX);
        u32::from(self.trials > 0) << doublings
    }

    /// Whether a question to the neighbour may be answered.
    pub(super) fn may_answer(&self) -> bool {
        !self.is_gone() && !self.is_vain()
    }

    /// Whether the neighbour may be made up: a stranger that has taken none of several frames.
    const fn is_vain(&self) -> bool {
        !self.is_proven() && self.attempts >= VAIN_ATTEMPTS
    }

    /// The higher the value, the sooner the slot is reused for another neighbour. Upper 16 bits: 0
    /// for a proven neighbour, 1 for a stranger, 2 for one without a path to the root. Lower 16
    /// bits: the cost of its path.
    fn badness(&self) -> u32 {
        let class = match self.is_proven() {
            _ if self.rank == INFINITE_RANK || self.is_gone() || self.is_vain() => 2,
            false => 1,
            true => 0,
        };
        class << 16 | u32::from(self.base.saturating_add(self.etx()))
    }
}

/// The neighbours of one node.
#[derive(Debug)]
pub(super) struct Candidates<'m> {
    slots: &'m mut [Candidate],
}

impl<'m> Candidates<'m> {
    pub(super) fn new(slots: &'m mut [Candidate]) -> Self {
        let mut candidates = Self { slots };
        candidates.clear();
        candidates
    }

    pub(super) const fn into_memory(self) -> &'m mut [Candidate] {
        self.slots
    }

    pub(super) fn clear(&mut self) {
        for slot in self.slots.iter_mut() {
            *slot = Candidate::EMPTY;
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Candidate> {
        self.slots.iter().filter(|slot| slot.is_known())
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Candidate> {
        self.slots.iter_mut().filter(|slot| slot.is_known())
    }

    pub(super) fn find(&self, iid: Iid) -> Option<&Candidate> {
        self.iter().find(|slot| slot.iid == iid)
    }

    pub(super) fn find_mut(&mut self, iid: Iid) -> Option<&mut Candidate> {
        self.iter_mut().find(|slot| slot.iid == iid)
    }

    /// The entry of `iid`, which has sent a message with a path of cost `base` in a frame of such a
    /// strength; made where there is room for it.
    ///
    /// # Errors
    /// [`MessageDrop::NoRoom`]: every slot holds a better neighbour, or the parent.
    pub(super) fn heard(
        &mut self,
        iid: Iid,
        (base, signal_dbm): (u16, i8),
        parent: Option<Iid>,
        now: Instant,
    ) -> Result<&mut Candidate, MessageDrop> {
        let slots = &mut *self.slots;
        let known = slots
            .iter()
            .position(|slot| slot.is_known() && slot.iid == iid);
        let index = known.or_else(|| victim(slots, (base, signal_dbm), parent));
        let slot = index.and_then(|index| slots.get_mut(index));
        let slot = slot.ok_or(MessageDrop::NoRoom)?;
        if known.is_none() {
            *slot = Candidate {
                standing: Standing::Stranger,
                iid,
                signal_dbm,
                ..Candidate::EMPTY
            };
        }
        slot.signal_dbm = average_signal(slot.signal_dbm, signal_dbm);
        slot.hear(now);
        Ok(slot)
    }

    /// A frame of `from` came, of whatever kind. Returns whether that is news: it was gone, and is
    /// worth another frame.
    pub(super) fn heard_again(&mut self, from: Iid, now: Instant) -> bool {
        let gone = self.find_mut(from).filter(|slot| slot.is_gone());
        gone.is_some_and(|slot| {
            slot.hear(now);
            slot.is_worth_testing(ticks(now).saturating_sub(slot.tested))
        })
    }

    /// How many neighbours wait to be asked about the newer version that they claim.
    pub(super) fn claims(&self) -> usize {
        self.iter().filter(|slot| slot.questions == CLAIMS).count()
    }

    /// No question is left, and none is out.
    pub(super) fn end_questions(&mut self) {
        for slot in self.slots.iter_mut() {
            slot.questions = 0;
        }
    }

    /// Links count by their frames alone from now on, however strong their signals are.
    pub(super) fn forget_signals(&mut self) {
        for slot in self.slots.iter_mut() {
            slot.signal_dbm = 0;
        }
    }

    /// The link to `to` counts as one of three transmissions from now on.
    pub(super) fn doubt(&mut self, to: Iid) {
        if let Some(slot) = self.find_mut(to) {
            slot.attempts = 3 * WINDOW_SUCCESSES;
            slot.successes = WINDOW_SUCCESSES;
            slot.load = 0;
        }
    }

    /// A frame for `to` was acknowledged after `attempts` attempts, or given up after as many.
    ///
    /// Under load only half of the retries count: they are due to neighbouring frames of the same
    /// flow, and would occur on any other path, too. `is_settled`: the link has already been
    /// measured without load; while motes join, the load is not this flow's.
    pub(super) fn on_sent(
        &mut self,
        to: Iid,
        (attempts, acknowledged): (u8, bool),
        is_settled: bool,
        now: Instant,
    ) {
        let Some(slot) = self.find_mut(to).filter(|_| attempts > 0) else {
            return;
        };
        if acknowledged && slot.is_gone() {
            // The neighbour is back after it was gone; measurements from before mean little.
            slot.attempts = 0;
            slot.successes = 0;
        }
        while slot.attempts >= WINDOW_ATTEMPTS || slot.successes >= WINDOW_SUCCESSES {
            slot.attempts /= 2;
            slot.successes /= 2;
        }
        slot.load = slot.load_at(now).saturating_add(1);
        let counted = match acknowledged && is_settled && slot.load >= LOADED {
            true => attempts.div_ceil(2),
            false => attempts,
        };
        slot.attempts += counted.min(ATTEMPTS_MAX);
        slot.tested = ticks(now);
        match acknowledged {
            true => {
                slot.standing = Standing::Proven;
                slot.successes += 1;
                slot.unanswered = 0;
                if slot.successes >= BACK_SUCCESSES {
                    slot.trials = 0;
                }
            }
            false => {
                if !slot.is_gone() {
                    // Until now it took frames, so that it was heard is no news.
                    slot.is_heard = false;
                }
                slot.unanswered = slot.unanswered.saturating_add(1);
            }
        }
    }
}

/// Which slot a newcomer takes whose path costs `base`, and whose frames are of such a strength.
fn victim(
    slots: &[Candidate],
    (base, signal_dbm): (u16, i8),
    parent: Option<Iid>,
) -> Option<usize> {
    let (mut worst, mut badness) = (None, 0);
    for (index, slot) in slots.iter().enumerate() {
        if !slot.is_known() {
            return Some(index);
        }
        if parent != Some(slot.iid) && slot.badness() >= badness {
            (worst, badness) = (Some(index), slot.badness());
        }
    }
    let is_no_way = badness >> 16 == 2;
    let cost = base.saturating_add(prior_attempts(signal_dbm) * ETX_UNIT);
    worst.filter(|_| is_no_way || cost < badness as u16)
}

/// The signal strength to keep of a neighbour after one more message, dBm; 0: not known.
fn average_signal(known: i8, new: i8) -> i8 {
    if known == 0 || new == 0 {
        return new;
    }
    // A quarter of what is new, and 1 dB at least: fading is no change of place.
    let change = i16::from(new) - i16::from(known);
    let step = (change + 3 * change.signum()) / 4;
    known.saturating_add(step as i8)
}

/// Time in steps of 2^20 µs, a little over a second: 136 years in four bytes.
pub(super) fn ticks(now: Instant) -> u32 {
    (now.as_micros() >> 20) as u32
}

/// The attempts for one success that are assumed of a link before frames have shown anything.
/// `signal_dbm`: how strong its frames come in.
const fn prior_attempts(signal_dbm: i8) -> u16 {
    match weakness(signal_dbm) {
        0 => 2,
        1 => 3,
        2 => 5,
        _ => 8,
    }
}

/// The grade of a link by its signal, 0 (the strongest) to 3. The steps are those by which Thread
/// grades links, 20 dB and 10 dB above the noise of a receiver, which is about -98 dBm at 2.4 GHz,
/// and one between 10 dB and what is just heard (Thread 1.1 §4.7, IEEE 802.15.4-2006 §6.5.3.3).
const fn weakness(signal_dbm: i8) -> u8 {
    match signal_dbm {
        ..-94 => 3,
        -94..-88 => 2,
        -88..-78 => 1,
        -78.. => 0,
    }
}

/// The values of [`Candidate::questions`] of the parent: how often a DIS is sent to it to confirm a
/// message, until it answers, and that it is asked anew after the claimants.
pub(super) const QUESTIONS: u8 = 3;
pub(super) const LATER: u8 = QUESTIONS + 1;

/// The values of [`Candidate::questions`] of a neighbour that claims a newer version.
pub(super) const ASKED: u8 = LATER + 1;
pub(super) const CLAIMS: u8 = ASKED + 1;

const PRIOR_SUCCESSES: u16 = 1;

/// Where either is reached both counts halve: half an hour of an idle link, a second of a transfer.
const WINDOW_ATTEMPTS: u8 = 160;
const WINDOW_SUCCESSES: u8 = 32;

/// About two frames a second: no probes and readings, but a transfer or its acknowledgments.
const LOADED: u8 = 12;

/// The most attempts that one frame counts as, so that counts stay below 256; no MAC tries more
/// often.
const ATTEMPTS_MAX: u8 = 64;

/// Attempts after which a link's ETX is more than a guess.
const TESTED_ATTEMPTS: u8 = 24;

/// Attempts in vain after which a stranger is taken for made up: three frames, mostly.
const VAIN_ATTEMPTS: u8 = 12;

/// Time after which a neighbour that was tried in vain is tried again, in steps of 1.05 s: a
/// stranger that speaks, and one that was there before and is silent.
const VAIN_TICKS: u32 = 8;
const GONE_TICKS: u32 = 60;

/// How often the wait between trials of a neighbour that was there before, and speaks, is doubled:
/// up to that for strangers. So whoever sends in such a neighbour's name wastes no more of this
/// node's frames than a stranger does.
const TRIAL_DOUBLINGS_MAX: u8 = 3;

/// Frames that a neighbour which was gone has to take before its next trial is its first again: a
/// link over which one frame of several passes is not to make a mote change its place each second.
const BACK_SUCCESSES: u8 = 8;

/// Frames given up in a row after which a neighbour counts as gone: at least, and at most.
const GONE_MIN: u16 = 3;
const GONE_MAX: u16 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;
    use std::vec;
    use std::vec::Vec;

    const NOW: Instant = Instant::from_micros(5_000_000);

    fn iid(n: u8) -> Iid {
        Iid::of(&[0, 0, 0, 0xff, 0xfe, 0, 0, n])
    }

    /// Lets `n` say that its path costs `rank`; whether it has a slot then.
    fn says(candidates: &mut Candidates<'_>, n: u8, rank: u16, parent: Option<u8>) -> bool {
        let slot = candidates.heard(iid(n), (rank, 0), parent.map(iid), NOW);
        slot.map(|slot| (slot.rank, slot.base) = (rank, rank))
            .is_ok()
    }

    fn listed(candidates: &Candidates<'_>) -> Vec<u8> {
        let mut all: Vec<u8> = candidates.iter().map(|slot| slot.iid.octets()[7]).collect();
        all.sort_unstable();
        all
    }

    #[test]
    fn etx_follows_the_attempts() {
        for (name, frames, etx) in [
            ("nothing known", &[][..], 256),
            ("one at once", &[(1, true)][..], 192),
            ("four at once", &[(1, true); 4][..], 153),
            ("half are lost", &[(2, true); 20][..], 256),
            ("never acknowledged", &[(8, false)][..], 1280 + 48),
            ("twice never", &[(4, false); 2][..], 1280 + 96),
            (
                "gone",
                &[[(1, true); 20].as_slice(), &[(8, false); 3]].concat(),
                u16::MAX,
            ),
            (
                "unlucky",
                &[(4, true), (8, false), (8, false), (8, false)][..],
                1920 + 144,
            ),
            ("no attempt at all", &[(0, false); 9][..], 256),
            // Counts that have reached 160 attempts or 32 successes halve before the next frame.
            ("160 attempts", &[(8, true); 21][..], 960),
            ("32 successes", &[(1, true); 33][..], 135),
            // A MAC that tried more than any does must not make the counts wrap.
            ("absurd", &[(255, false), (255, true)][..], 8320),
        ] {
            let mut slots = [Candidate::EMPTY];
            let mut candidates = Candidates::new(&mut slots);
            assert!(says(&mut candidates, 1, 128, None));
            for (attempts, acknowledged) in frames {
                candidates.on_sent(iid(1), (*attempts, *acknowledged), false, NOW);
            }
            assert_eq!(candidates.find(iid(1)).unwrap().etx(), etx, "{name}");
        }
    }

    #[test]
    fn weak_neighbours_count_as_bad_until_frames_have_shown_more() {
        let etx_at = |dbm: i8, frames: usize| {
            let mut slots = [Candidate::EMPTY];
            let mut candidates = Candidates::new(&mut slots);
            candidates.heard(iid(1), (256, dbm), None, NOW).unwrap();
            for _ in 0..frames {
                candidates.on_sent(iid(1), (1, true), false, NOW);
            }
            candidates.find(iid(1)).unwrap().etx()
        };
        let unknown = [0, -60, -85, -90, -97].map(|dbm| etx_at(dbm, 0) / ETX_UNIT);
        assert_eq!(unknown, [2, 2, 3, 5, 8]);
        assert!(etx_at(-97, 24) < 2 * ETX_UNIT, "frames count for more");
        // A crowd of far neighbours near the root leaves the slots to those at hand.
        let mut slots = vec![Candidate::EMPTY; 2];
        let mut candidates = Candidates::new(&mut slots);
        let heard = [(1, 256, -97), (2, 256, -97), (3, 512, -60), (4, 256, -97)];
        for (n, base, dbm) in heard {
            let _ = candidates.heard(iid(n), (base, dbm), None, NOW);
        }
        assert!(candidates.find(iid(3)).is_some());
        assert!(candidates.find(iid(4)).is_none());
    }

    #[test]
    fn the_strength_of_a_signal_is_followed_to_the_end() {
        let mut slots = [Candidate::EMPTY];
        let mut candidates = Candidates::new(&mut slots);
        let mut heard = |dbm| {
            let slot = candidates.heard(iid(1), (128, dbm), None, NOW);
            slot.unwrap().signal_dbm
        };
        for (dbm, first) in [
            (-85, -85),
            (-88, -86),
            (-85, -87),
            (-60, -78),
            (-90, -68),
            (-128, -100),
            (127, -64),
        ] {
            assert_eq!(heard(dbm), first, "{dbm}");
            let last = (0..20).map(|_| heard(dbm)).last();
            assert_eq!(last, Some(dbm));
        }
    }

    #[test]
    fn a_good_link_forgets_its_past() {
        let mut slots = [Candidate::EMPTY];
        let mut candidates = Candidates::new(&mut slots);
        says(&mut candidates, 1, 128, None);
        for _ in 0..20 {
            candidates.on_sent(iid(1), (4, true), false, NOW);
        }
        assert!(candidates.find(iid(1)).unwrap().etx() > 480);
        for _ in 0..200 {
            candidates.on_sent(iid(1), (1, true), false, NOW);
        }
        assert!(candidates.find(iid(1)).unwrap().etx() < 140);
    }

    #[test]
    fn strangers_take_no_parents_slot_and_one_of_the_proven() {
        let mut slots = vec![Candidate::EMPTY; 4];
        let mut candidates = Candidates::new(&mut slots);
        for n in 1..=4 {
            assert!(says(&mut candidates, n, 1000 * u16::from(n), Some(4)));
            candidates.on_sent(iid(n), (1, true), false, NOW);
        }
        // 4 is the parent though its path is the longest, so 3 gives way; and 2 never does.
        for n in 10..100 {
            let has_slot = says(&mut candidates, n, 500 - u16::from(n), Some(4));
            assert!(has_slot, "{n}");
            assert_eq!(listed(&candidates), [1, 2, 4, n]);
        }
        // A worse newcomer than the stranger finds no room.
        assert!(!says(&mut candidates, 101, 500, Some(4)));
        // A stranger that was tried in vain gives way to any.
        for _ in 0..3 {
            candidates.on_sent(iid(99), (8, false), false, NOW);
        }
        assert!(says(&mut candidates, 102, 9000, Some(4)));
        assert_eq!(listed(&candidates), [1, 2, 4, 102]);
    }

    #[test]
    fn a_poisoned_or_silent_neighbour_gives_way_first() {
        let mut slots = vec![Candidate::EMPTY; 3];
        let mut candidates = Candidates::new(&mut slots);
        for n in 1..=3 {
            says(&mut candidates, n, 128 * u16::from(n), Some(1));
            candidates.on_sent(iid(n), (1, true), false, NOW);
        }
        says(&mut candidates, 2, INFINITE_RANK, Some(1));
        assert!(says(&mut candidates, 4, 2000, Some(1)));
        assert_eq!(listed(&candidates), [1, 3, 4]);
        let mut none = [];
        assert!(!says(&mut Candidates::new(&mut none), 1, 128, None));
    }

    #[test]
    fn heard_again_is_tried_again_and_measured_anew() {
        let mut slots = [Candidate::EMPTY];
        let mut candidates = Candidates::new(&mut slots);
        says(&mut candidates, 1, 128, None);
        let later = NOW + Duration::from_secs(60);
        for _ in 0..9 {
            candidates.on_sent(iid(1), (8, false), false, later);
        }
        let it = candidates.find(iid(1)).unwrap();
        assert_eq!((it.etx(), it.is_untested()), (u16::MAX, false));
        let slot = candidates.heard(iid(1), (128, 0), None, later + Duration::from_secs(5));
        assert!(slot.unwrap().is_untested());
        candidates.on_sent(iid(1), (1, true), false, later);
        assert_eq!(candidates.find(iid(1)).unwrap().etx(), 192);
    }

    #[test]
    fn borrowed_slots_begin_empty() {
        let mut slots = [Candidate::EMPTY];
        assert!(says(&mut Candidates::new(&mut slots), 1, 128, None));
        assert!(listed(&Candidates::new(&mut slots)).is_empty());
    }

    #[test]
    fn a_newcomer_must_cost_less_than_whom_it_replaces() {
        let mut slots = [Candidate::EMPTY];
        let mut candidates = Candidates::new(&mut slots);
        assert!(says(&mut candidates, 1, 500, None));
        assert!(!says(&mut candidates, 2, 500, None));
        assert!(says(&mut candidates, 3, 499, None));
    }

    #[test]
    fn a_link_is_tested_after_24_attempts() {
        let mut slots = [Candidate::EMPTY];
        let mut candidates = Candidates::new(&mut slots);
        says(&mut candidates, 1, 128, None);
        for _ in 0..23 {
            candidates.on_sent(iid(1), (1, true), false, NOW);
        }
        assert!(candidates.find(iid(1)).unwrap().is_untested());
        candidates.on_sent(iid(1), (1, true), false, NOW);
        assert!(!candidates.find(iid(1)).unwrap().is_untested());
    }

    #[test]
    fn twelve_frames_are_a_load_that_halves_every_four_seconds() {
        const FOUR_STEPS_US: u64 = 4 << 20;
        let then = |halvings: u64| Instant::from_micros(FOUR_STEPS_US * (10 + halvings));
        let mut slots = [Candidate::EMPTY];
        let mut candidates = Candidates::new(&mut slots);
        says(&mut candidates, 1, 128, None);
        for frame in 1..=47 {
            candidates.on_sent(iid(1), (1, true), false, then(0));
            let it = candidates.find(iid(1)).unwrap();
            assert_eq!(it.is_loaded(then(0)), frame >= 12, "{frame}");
            assert_eq!(it.is_loaded(then(1)), frame >= 24, "{frame}");
        }
        // Three attempts count as two from the twelfth frame on.
        let attempts = |frames: usize| {
            let mut slots = [Candidate::EMPTY];
            let mut candidates = Candidates::new(&mut slots);
            says(&mut candidates, 1, 128, None);
            for _ in 0..frames {
                candidates.on_sent(iid(1), (3, true), true, NOW);
            }
            candidates.find(iid(1)).unwrap().attempts
        };
        assert_eq!([attempts(11), attempts(12), attempts(13)], [33, 35, 37]);
    }

    /// A neighbour that was tried in vain, or is gone: whether it is worth another frame so many
    /// steps after the last one, heard since or not.
    #[test]
    fn whom_no_frame_reached_is_tried_again_after_a_while() {
        let worth = |frames: &[(u8, bool)], is_heard: bool, idle: u32| {
            let mut slots = [Candidate::EMPTY];
            let mut candidates = Candidates::new(&mut slots);
            says(&mut candidates, 1, 128, None);
            for frame in frames {
                candidates.on_sent(iid(1), *frame, false, NOW);
            }
            if is_heard {
                candidates.heard(iid(1), (128, 0), None, NOW).unwrap();
            }
            let slot = candidates.find(iid(1)).unwrap();
            assert!(!slot.is_gone() || slot.is_untested() == is_heard);
            slot.is_worth_testing(idle)
        };
        let (gone, vain) = (
            &[&[(1, true)], &[(1, false); 8][..]].concat()[..],
            &[(4, false); 3],
        );
        for (name, frames, is_heard, idle, is_worth) in [
            (
                "11 attempts",
                &[(4, false), (4, false), (3, false)][..],
                false,
                0,
                true,
            ),
            ("in vain", vain, false, 7, false),
            ("in vain, and silent", vain, false, 100, false),
            ("in vain, and heard", vain, true, 7, false),
            ("in vain, and heard", vain, true, 8, true),
            ("gone and silent", gone, false, 8, false),
            ("gone and silent", gone, false, 59, false),
            ("gone and silent", gone, false, 60, true),
            ("gone and heard", gone, true, 0, true),
            ("gone and heard", gone, true, 60, true),
        ] {
            assert_eq!(worth(frames, is_heard, idle), is_worth, "{name} {idle}");
        }
    }

    /// The steps between trials of one that is heard and takes nothing, and that they begin anew
    /// after it was silent, or has taken several frames.
    #[test]
    fn trials_of_one_that_is_heard_are_ever_further_apart() {
        let after = |steps: u64| NOW + Duration::from_micros(steps << 20);
        let mut slots = [Candidate::EMPTY];
        let mut candidates = Candidates::new(&mut slots);
        says(&mut candidates, 1, 128, None);
        candidates.on_sent(iid(1), (1, true), false, NOW);
        for _ in 0..8 {
            candidates.on_sent(iid(1), (1, false), false, NOW);
        }
        let wait = |candidates: &mut Candidates<'_>, now: Instant| {
            let is_news = candidates.heard_again(iid(1), now);
            let slot = candidates.find_mut(iid(1)).unwrap();
            let least = (0..60).find(|idle| slot.is_worth_testing(*idle));
            assert_eq!(is_news, least == Some(0), "{least:?}");
            slot.test(now);
            least
        };
        let waits: Vec<_> = (0..7).map(|_| wait(&mut candidates, NOW)).collect();
        assert_eq!(waits, [0, 1, 2, 4, 8, 8, 8].map(Some));
        assert_eq!(wait(&mut candidates, after(7)), Some(8), "not long silent");
        assert_eq!(
            wait(&mut candidates, after(15)),
            Some(0),
            "silent for 8 steps"
        );
        for (taken, least) in [(7, 1), (8, 0)] {
            for acknowledged in [true, false] {
                for _ in 0..if acknowledged { taken } else { 8 } {
                    candidates.on_sent(iid(1), (1, acknowledged), false, after(15));
                }
            }
            assert_eq!(wait(&mut candidates, after(15)), Some(least), "{taken}");
        }
    }
}
