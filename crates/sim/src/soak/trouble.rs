//! The troubles of two engines in the course of a run.

use motet::time::{Duration, Instant};

use super::dice::Dice;
use super::outsiders;

/// Something that happens at a moment of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trouble {
    /// One side opens a connection to the other's listener.
    Connect,
    /// Both open one to each other at once.
    Simultaneous,
    /// Somebody opens one between ports that served before.
    Reuse,
    /// Nothing gets through: one way (0 or 1) or both (2).
    Cut {
        /// One way (0 or 1) or both (2).
        ways: usize,
        /// How long the cut takes.
        len: Duration,
    },
    /// The pipe gets other delays and faults.
    Change,
    /// A node reboots and forgets everything.
    Reboot,
    /// A node does nothing for a while, and is late for all its timers.
    Suspend {
        /// How long the node does nothing.
        len: Duration,
    },
    /// Both are idle for days.
    Leap {
        /// How long both are idle.
        len: Duration,
        /// How many seconds to wait until they are idle.
        tries: u32,
    },
    /// SYNs from strangers.
    Flood {
        /// How many segments are sent.
        segments: u32,
    },
    /// Segments of a known connection, invented by somebody off the path.
    Forge {
        /// How many segments are sent.
        segments: u32,
    },
}

impl Trouble {
    /// Whether no packet is lost by it, and no node.
    pub(crate) const fn is_gentle(self) -> bool {
        matches!(
            self,
            Self::Connect
                | Self::Simultaneous
                | Self::Reuse
                | Self::Leap { .. }
                | Self::Forge { .. }
        )
    }
}

/// Draws the troubles of a run of `span`, and their times.
pub(crate) fn draw(dice: &mut Dice, span: Duration) -> Vec<(Instant, Trouble)> {
    let mut all = vec![(Instant::ORIGIN, Trouble::Connect)];
    // Half of the runs are about one connection at a time: nothing else hides a lost timer.
    let most = if dice.chance(0.5) { 3 } else { 20 };
    let count = dice.range(0, most);
    for _ in 0..count {
        let at = Instant::ORIGIN + dice.span(span);
        all.push((at, one(dice)));
    }
    all
}

/// The troubles by strangers in the run of this seed, and their times; none in half of the runs.
/// Where no packet is to be lost they only forge segments: a flood of SYNs leaves no place for
/// others.
pub(crate) fn strangers(seed: u64, span: Duration, is_gentle: bool) -> Vec<(Instant, Trouble)> {
    let mut dice = Dice::new(seed, outsiders::PURPOSE);
    if !dice.chance(0.5) {
        return Vec::new();
    }
    let one = |dice: &mut Dice| {
        let at = Instant::ORIGIN + dice.span(span);
        let segments = dice.scale(1, 200);
        let what = match dice.chance(0.5) && !is_gentle {
            true => Trouble::Flood { segments },
            false => Trouble::Forge { segments },
        };
        (at, what)
    };
    (0..dice.range(1, 4)).map(|_| one(&mut dice)).collect()
}

fn one(dice: &mut Dice) -> Trouble {
    match dice.range(0, 19) {
        0..=5 => Trouble::Connect,
        6..=7 => Trouble::Simultaneous,
        8 => Trouble::Reuse,
        9..=11 => Trouble::Cut {
            ways: dice.range(0, 2) as usize,
            len: dice.scale_ms(10, 300_000),
        },
        12..=13 => Trouble::Change,
        14 => Trouble::Reboot,
        15 => Trouble::Suspend {
            len: dice.scale_ms(1, 3_600_000),
        },
        16 => Trouble::Leap {
            len: leap(dice),
            tries: 60,
        },
        17..=18 => Trouble::Flood {
            segments: dice.scale(1, 200),
        },
        _ => Trouble::Forge {
            segments: dice.scale(1, 200),
        },
    }
}

/// A long time: some are near where 31 and 32 bits of milliseconds end.
fn leap(dice: &mut Dice) -> Duration {
    let hours = u64::from(dice.scale(1, 60 * 24));
    let long = Duration::from_secs(hours * 3_600);
    let jitter = dice.span(Duration::from_secs(60));
    dice.pick(&[
        long,
        Duration::from_millis(1 << 31) + jitter,
        Duration::from_millis(1 << 32) - jitter,
    ])
}
