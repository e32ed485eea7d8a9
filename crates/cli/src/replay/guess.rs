//! What a capture does not say of its network: a guess at it, and how to make a better one.

use std::collections::BTreeMap;

use motet_decode::Seen;

/// What a capture does not say of a network.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Guess {
    /// Of two nodes, the lower number first: the share of frames that arrive, one way.
    pub(super) delivery: BTreeMap<(usize, usize), f64>,
    /// The part of the loss that all links have: noise at every receiver, which leaves signals as
    /// strong as they are.
    pub(super) even_loss: f64,
    /// How nodes with a common neighbour hear each other that were never heard to talk.
    pub(super) apart: Apart,
    /// Whether nodes do not wait for one another although the link between them loses nothing.
    pub(super) is_faint: bool,
    pub(super) profile: &'static str,
    /// Whether the delay before retries is named, which turns pacing off.
    pub(super) names_delay: bool,
    /// What the wire beyond the border router loses.
    pub(super) wire_loss: f64,
    /// Which run of the scenario.
    pub(super) seed: u64,
}

impl Guess {
    /// Links that lose nothing; those that are hardly taken lose what they lose, or routing would
    /// have taken them.
    pub(super) fn of(seen: &Seen) -> Self {
        let pairs = pairs(seen, &Vec::from_iter(0..seen.nodes.len()), Part::Whole);
        let busiest = pairs.values().map(|(_, attempts)| *attempts);
        let busiest = busiest.fold(0.0, f64::max);
        let delivery = |(frames, attempts): (f64, f64)| match attempts * 20.0 >= busiest {
            true => 1.0,
            false => (frames / attempts.max(1.0)).sqrt().min(0.99),
        };
        Self {
            delivery: pairs
                .iter()
                .map(|(pair, counts)| (*pair, delivery(*counts)))
                .collect(),
            even_loss: 0.0,
            apart: Apart::Overheard,
            is_faint: false,
            profile: PROFILES[0],
            names_delay: true,
            wire_loss: 0.0,
            seed: 1,
        }
    }

    /// As if the links lost every attempt that failed.
    pub(super) fn lossy(&self, seen: &Pairs) -> Option<Self> {
        let mut guess = self.clone();
        for (pair, (frames, attempts)) in seen {
            guess
                .delivery
                .insert(*pair, (frames / attempts.max(1.0)).sqrt());
        }
        guess.even_loss = guess.least_loss(seen);
        (guess.even_loss >= 0.01).then_some(guess)
    }

    /// What the best link loses: no more than its retries show.
    fn least_loss(&self, seen: &Pairs) -> f64 {
        let shown = seen.values().filter(|(frames, _)| *frames >= FRAMES_MIN);
        let shown = shown.map(|(frames, attempts)| (frames / attempts).sqrt());
        let best = self.delivery.values().copied().chain(shown);
        (1.0 - best.fold(0.0, f64::max)).clamp(0.0, 0.9)
    }

    /// With links that lose more where the lab lost less than was seen, and less where it lost
    /// more.
    pub(super) fn nearer(&self, seen: &Pairs, lab: &Pairs) -> Self {
        let mut guess = self.clone();
        for (pair, delivery) in &mut guess.delivery {
            if let (Some((frames, attempts)), Some((lab_frames, lab_attempts))) =
                (seen.get(pair), lab.get(pair))
                && *frames >= FRAMES_MIN
                && *lab_frames >= FRAMES_MIN
            {
                let change = (frames / attempts) / (lab_frames / lab_attempts);
                // An attempt succeeds where the frame arrives and its ACK does.
                *delivery = (*delivery * change.sqrt()).clamp(0.25, 1.0);
            }
        }
        if guess.even_loss > 0.0 {
            guess.even_loss = guess.least_loss(seen);
        }
        guess
    }
}

/// How well two nodes hear each other.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Apart {
    /// Not at all.
    Unheard,
    /// They read each other's frames where the air is free, and do not wait for one another.
    Overheard,
    /// They wait for one another.
    Sensed,
}

impl Apart {
    pub(super) const ALL: [Self; 3] = [Self::Unheard, Self::Overheard, Self::Sensed];

    /// The gain between them, dB; none where there is no link.
    pub(super) fn gain_db(self) -> Option<f64> {
        match self {
            Self::Unheard => None,
            Self::Overheard => Some(OVERHEARD_DB),
            Self::Sensed => Some(-75.0),
        }
    }
}

/// Frames and attempts between two nodes, both ways.
pub(super) type Pairs = BTreeMap<(usize, usize), (f64, f64)>;

/// What part of a capture.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Part {
    Whole,
    /// What follows the first flow's begin.
    Settled,
}

/// Frames and attempts by pairs; `number`: the number of each node.
pub(super) fn pairs(seen: &Seen, number: &[usize], part: Part) -> Pairs {
    let mut pairs = Pairs::new();
    for link in &seen.links {
        let (Some(from), Some(to)) = (number.get(link.from), number.get(link.to)) else {
            continue;
        };
        let (frames, attempts) = match part {
            Part::Whole => (link.frames, link.attempts),
            Part::Settled => link.settled,
        };
        let pair = pairs
            .entry((*from.min(to), *from.max(to)))
            .or_insert((0.0, 0.0));
        *pair = (pair.0 + frames, pair.1 + attempts);
    }
    pairs
}

/// A signal that is read where the air is free, and that nobody waits for.
pub(super) const OVERHEARD_DB: f64 = -87.0;
/// Radios that are tried: one whose driver copies frames, one that sends from memory.
pub(super) const PROFILES: [&str; 2] = ["hamilton", "nrf52840"];
/// Frames below which a share says nothing.
pub(super) const FRAMES_MIN: f64 = 20.0;
