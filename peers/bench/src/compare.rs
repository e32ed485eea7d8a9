//! Goodput by loss and window: every stack as the mote's sender and receiver against Motet on
//! the host, and at both ends; paired seeds.

use anyhow::{Result, anyhow};
use motet::time::Duration;
use rayon::prelude::*;

use crate::air::{Run, Setting, run};
use crate::endpoint::Stack;
use crate::transfer::content;

/// The role of a stack at the mote, and its peer at the host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// The stack sends to Motet.
    Sender,
    /// The stack receives from Motet.
    Receiver,
    /// The stack sends to another of its kind.
    Both,
}

impl Role {
    /// Every role.
    pub const ALL: [Self; 3] = [Self::Sender, Self::Receiver, Self::Both];

    /// As tables call it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
            Self::Both => "both",
        }
    }
}

/// One point: a stack in a role, at a loss and a window.
#[derive(Clone, Debug)]
pub struct Point {
    /// The stack that is measured.
    pub stack: Stack,
    /// Its role.
    pub role: Role,
    /// Chance that a packet is lost.
    pub loss: f64,
    /// Full segments.
    pub window_segments: usize,
    /// One run per seed, in the order of seeds.
    pub runs: Vec<Run>,
}

/// A mean and the half-width of its 95 % interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Half the width of the interval (Student's t).
    pub ci95: f64,
}

/// How long and how often.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Seeds of each point.
    pub seeds: u64,
    /// Virtual time of each run.
    pub length: Duration,
}

impl Effort {
    /// What the criteria are judged by.
    pub const FULL: Self = Self {
        seeds: 10,
        length: Duration::from_secs(120),
    };
    /// A look.
    pub const QUICK: Self = Self {
        seeds: 3,
        length: Duration::from_secs(60),
    };
}

/// Packet losses that are compared.
pub const LOSSES: [f64; 7] = [0.0, 0.01, 0.03, 0.06, 0.10, 0.15, 0.20];
/// Windows that are compared, in segments.
pub const WINDOWS: [usize; 2] = [4, 8];

/// Which points; `None`: all.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Selection {
    /// Of this role.
    pub role: Option<Role>,
    /// At this loss.
    pub loss: Option<f64>,
    /// With this window.
    pub window_segments: Option<usize>,
}

impl Selection {
    fn takes(&self, role: Role, loss: f64, window_segments: usize) -> bool {
        self.role.is_none_or(|wanted| wanted == role)
            && self.loss.is_none_or(|wanted| wanted == loss)
            && self
                .window_segments
                .is_none_or(|wanted| wanted == window_segments)
    }
}

/// Measures every point selected, on all processors.
///
/// # Errors
/// A run whose bytes were not those sent.
pub fn measure(effort: Effort, selection: &Selection) -> Result<Vec<Point>> {
    // More than the radio carries in that time.
    let content = content(effort.length.as_secs() as usize * BYTES_PER_SECOND_MAX, 1);
    let mut points = Vec::new();
    for role in Role::ALL {
        for window_segments in WINDOWS {
            for loss in LOSSES {
                if !selection.takes(role, loss, window_segments) {
                    continue;
                }
                for stack in Stack::ALL {
                    points.push((stack, role, loss, window_segments));
                }
            }
        }
    }
    let points = points.into_par_iter();
    points
        .map(|(stack, role, loss, window_segments)| {
            let runs = (1..=effort.seeds).map(|seed| {
                let (sender, receiver) = match role {
                    Role::Sender => (stack, Stack::Motet),
                    Role::Receiver => (Stack::Motet, stack),
                    Role::Both => (stack, stack),
                };
                let setting = Setting {
                    sender,
                    receiver,
                    is_upwards: role != Role::Receiver,
                    loss,
                    window_segments,
                    seed,
                };
                run(&setting, &content, effort.length)
                    .map_err(|at| anyhow!("{setting:?}: byte {at} is not the one that was sent"))
            });
            Ok(Point {
                stack,
                role,
                loss,
                window_segments,
                runs: runs.collect::<Result<_>>()?,
            })
        })
        .collect()
}

impl Point {
    /// The point's goodput, kb/s.
    pub fn goodput(&self) -> Estimate {
        estimate(self.runs.iter().map(|run| run.goodput_kbps))
    }

    /// The point's retransmissions, as a part of the segments sent.
    pub fn retransmitted(&self) -> Estimate {
        estimate(self.runs.iter().map(|run| run.retransmitted))
    }

    /// By how much `self` is above `other`, seed by seed, kb/s.
    pub fn above(&self, other: &Self) -> Estimate {
        let pairs = self.runs.iter().zip(&other.runs);
        estimate(pairs.map(|(a, b)| a.goodput_kbps - b.goodput_kbps))
    }

    /// Whether both are of one role, loss and window.
    pub fn is_beside(&self, other: &Self) -> bool {
        let key = |p: &Self| (p.role, p.window_segments, p.loss.to_bits());
        key(self) == key(other)
    }
}

/// The mean of `values` and its interval.
pub(crate) fn estimate(values: impl Iterator<Item = f64> + Clone) -> Estimate {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    let squares: f64 = values.map(|value| (value - mean).powi(2)).sum();
    let freedom = (count - 1.0).max(1.0);
    let ci95 = student_t95(freedom) * (squares / freedom / count).sqrt();
    Estimate { mean, ci95 }
}

/// Two-sided 95 % quantile of Student's t: exact at 1 and 2 degrees of freedom, elsewhere
/// Cornish and Fisher's expansion, right to 0.5 %.
fn student_t95(freedom: f64) -> f64 {
    const Z: f64 = 1.959_964;
    if freedom < 2.0 {
        return 12.706;
    }
    if freedom < 3.0 {
        return 4.303;
    }
    let (z3, z5) = (Z.powi(3), Z.powi(5));
    Z + (z3 + Z) / (4.0 * freedom) + (5.0 * z5 + 16.0 * z3 + 3.0 * Z) / (96.0 * freedom * freedom)
}

/// 250 kb/s of radio, and nothing in between.
const BYTES_PER_SECOND_MAX: usize = 31_250;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_student_s() {
        for (freedom, expected) in [(1.0, 12.706), (2.0, 4.303), (9.0, 2.262), (30.0, 2.042)] {
            let t = student_t95(freedom);
            assert!((t - expected).abs() < 0.005 * expected, "{freedom}: {t}");
        }
        let two = estimate([1.0, 3.0].into_iter());
        assert!((two.mean - 2.0).abs() < 1e-9 && (two.ci95 - 12.706).abs() < 1e-3);
    }

    #[test]
    fn every_pair_gets_its_bytes_over_the_air() {
        let content = content(100_000, 1);
        for sender in Stack::ALL {
            for receiver in Stack::ALL {
                for is_upwards in [true, false] {
                    let setting = Setting {
                        sender,
                        receiver,
                        is_upwards,
                        loss: 0.06,
                        window_segments: 4,
                        seed: 1,
                    };
                    let run = run(&setting, &content, Duration::from_secs(20));
                    let goodput = run.map(|run| run.goodput_kbps);
                    assert!(
                        goodput.is_ok_and(|kbps| kbps > 1.0),
                        "{setting:?}: {goodput:?}"
                    );
                }
            }
        }
    }
}
