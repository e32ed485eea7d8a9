//! CUBIC: growth that follows a cubic function of time around the window of the last loss.
//!
//! Left out: slow start, and everything that recovery does, which are those of every algorithm;
//! `HyStart++`.
//!
//! The curve is kept as W_max and the time since it was there, which is negative before K has
//! passed: W_cubic(t) = W_max + C·(t − K)³ needs no more, and both numbers follow from a window and
//! W_max alone. If a recovery proves spurious, the curve is computed again from the restored window
//! and W_max. W_est starts again at its value at the beginning of the epoch, which is never more
//! than it was.
//!
//! W_max keeps its old value as long as the reduction may be undone: the new epoch is computed at
//! the first acknowledgment after that, and counts from the end of recovery. Times are milliseconds
//! in which the window was in use: neither idle time nor time in which application or peer left the
//! window unused counts (§4.2, §5.8). Windows are bytes: C is 0.4 segments a cubic second.
//!
//! The benefit: on a mesh with its usual window of four segments a loss leaves 2.8 of them. W_est
//! is back at four after 2.3 round trips (0.7 s where one takes 0.3 s), the curve only after K =
//! 1.44 s: there CUBIC is New Reno with other constants. The curve is ahead where windows have tens
//! of segments and round trips take 100 ms and more, as between border routers over a long path.
//! Source: RFC 9438; sections are its own.

use core::num::NonZeroU16;

use super::{Algorithm, Growth};
use crate::tcp::loss::congestion::Congestion;
use crate::tcp::loss::prr::Prr;
use crate::tcp::loss::saturated;

/// CUBIC's state of one connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp::loss) struct Cubic {
    /// W_max: what cwnd was before the last reduction that is final, or less by fast convergence;
    /// bytes. None before the first loss.
    pub(in crate::tcp::loss) w_max: Option<NonZeroU16>,
    pub(in crate::tcp::loss) stage: Stage,
}

/// The phase that decides how cwnd grows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp::loss) enum Stage {
    /// Nothing was lost, or what was lost proved spurious: an epoch begins with the next
    /// acknowledgment in congestion avoidance.
    Undisturbed {
        /// Such acknowledgments came already, but a report may yet show a loss to be spurious.
        waits: bool,
    },
    /// Fast recovery: cwnd follows the bytes delivered.
    Recovery(Prr),
    /// Recovery is over, but a report may yet show it to be spurious. An epoch begins with the
    /// first acknowledgment in congestion avoidance behind that.
    Reduced {
        /// The retransmission timer reduced cwnd.
        by_timeout: bool,
        /// Acknowledgments came in congestion avoidance: t is counted already.
        waits: bool,
    },
    Epoch(Epoch),
}

/// Congestion avoidance along one curve.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::tcp::loss) struct Epoch {
    /// t − K: since the curve was at W_max, ms; negative before it is.
    pub(in crate::tcp::loss) since_ms: i16,
    /// The window that Reno would have by now, bytes.
    pub(in crate::tcp::loss) w_est: u16,
    /// The remainder of the last step of `w_est`: parts of a byte, in cwnd-ths.
    pub(in crate::tcp::loss) w_est_part: u16,
    /// cwnd before the last reduction, bytes.
    pub(in crate::tcp::loss) cwnd_prior: u16,
}

impl Cubic {
    pub(super) const NEW: Self = Self {
        w_max: None,
        stage: Stage::Undisturbed { waits: false },
    };

    /// The last reduction, from `cwnd_prior` bytes, is final now: W_max is what cwnd was before
    /// it, or less, where a flow that gets less than before leaves room to others: fast convergence
    /// (§4.7).
    fn settle(&mut self, cwnd_prior: u16) {
        let is_less = self.w_max.is_some_and(|w_max| cwnd_prior < w_max.get());
        let w_max = match is_less {
            true => (u32::from(cwnd_prior) * 17 / 20) as u16,
            false => cwnd_prior,
        };
        self.w_max = NonZeroU16::new(w_max);
    }

    /// W_max, bytes; 0: nothing was lost yet.
    fn w_max(&self) -> u16 {
        self.w_max.map_or(0, NonZeroU16::get)
    }

    /// Congestion avoidance begins: behind a reduction, behind one that was undone, or behind a
    /// slow start that found no loss.
    fn begin_epoch(&mut self, congestion: &Congestion, growth: &Growth) -> Epoch {
        let cwnd = congestion.cwnd.max(1);
        let (w_est, cwnd_prior, waits) = match self.stage {
            Stage::Reduced { by_timeout, waits } => {
                self.settle(growth.cwnd_prior);
                if by_timeout || self.w_max() < cwnd {
                    // Behind a timeout K is 0 (§4.8).
                    self.w_max = NonZeroU16::new(cwnd);
                }
                (cwnd, growth.cwnd_prior, waits)
            }
            stage => {
                if self.w_max.is_none() {
                    self.w_max = NonZeroU16::new(cwnd);
                }
                let w_est = cwnd.min(congestion.ssthresh);
                let waits = stage == Stage::Undisturbed { waits: true };
                (w_est, cwnd.max(self.w_max()), waits)
            }
        };
        let w_max = self.w_max();
        let time = root(w_max.abs_diff(cwnd).into(), growth.smss);
        let since = if w_max > cwnd { -time } else { time };
        let mut epoch = Epoch {
            since_ms: since as i16,
            w_est,
            w_est_part: 0,
            cwnd_prior,
        };
        if waits {
            epoch.pass(growth.elapsed_ms);
        }
        epoch
    }

    /// W_cubic (§4.2), bytes, `since_ms` after the curve is at W_max.
    pub(in crate::tcp::loss) fn w_cubic(&self, since_ms: i32, smss: u32) -> u32 {
        let (w_max, away) = (u32::from(self.w_max()), cube(since_ms, smss));
        match since_ms < 0 {
            true => w_max.saturating_sub(away),
            false => w_max + away,
        }
    }

    /// cwnd behind an acknowledgment in `epoch`, bytes.
    fn follow(&self, epoch: &mut Epoch, cwnd: u32, growth: &Growth) -> u32 {
        let (smss, acked) = (growth.smss, growth.acked.min(cwnd));
        let w_est = epoch.grow_w_est(acked, cwnd, smss);
        let since_ms = i32::from(epoch.since_ms);
        if self.w_cubic(since_ms, smss) < w_est {
            return cwnd.max(w_est);
        }
        // §4.4, §4.5: towards where the curve will be in a round trip.
        let target = self.w_cubic(since_ms.saturating_add_unsigned(growth.srtt_ms), smss);
        let more = target.saturating_sub(cwnd).min(cwnd / 2);
        cwnd + more * acked / cwnd
    }
}

impl Algorithm for Cubic {
    /// Multiplies by β_cubic, which is 0.7 (§4.6).
    fn reduced(&self, flight: u32) -> u32 {
        flight * 7 / 10
    }

    /// At least one segment (§4.6), where a loss would leave two.
    fn marked(&self, flight: u32, smss: u32, ssthresh: u16) -> u16 {
        saturated(self.reduced(flight).max(smss)).min(ssthresh)
    }

    /// The curve is about the window before a mark and a loss of the same window of data.
    fn on_reduction(&mut self, cwnd_prior: u16, is_counted: bool) -> bool {
        if is_counted {
            return false;
        }
        if self.stage.is_reduced() {
            self.settle(cwnd_prior);
        }
        self.stage = Stage::REDUCED;
        true
    }

    fn begin_recovery(&mut self, prr: Prr) {
        self.stage = Stage::Recovery(prr);
    }

    fn prr(&self) -> Option<&Prr> {
        match &self.stage {
            Stage::Recovery(prr) => Some(prr),
            _ => None,
        }
    }

    fn prr_mut(&mut self) -> Option<&mut Prr> {
        match &mut self.stage {
            Stage::Recovery(prr) => Some(prr),
            _ => None,
        }
    }

    fn end_recovery(&mut self) {
        if let Stage::Recovery(_) = self.stage {
            self.stage = Stage::REDUCED;
        }
    }

    fn on_timeout(&mut self) {
        self.stage = match self.stage.is_reduced() {
            true => Stage::Reduced {
                by_timeout: true,
                waits: false,
            },
            false => Stage::UNDISTURBED,
        };
    }

    /// A reduction that is final stays.
    fn on_undone(&mut self) -> bool {
        let was_reduced = self.stage.is_reduced();
        self.stage = Stage::UNDISTURBED;
        was_reduced
    }

    /// Behind the slow start that follows, congestion avoidance begins anew.
    fn on_idle(&mut self) {
        if !self.stage.is_reduced() {
            self.stage = Stage::UNDISTURBED;
        }
    }

    fn avoid(&mut self, congestion: &mut Congestion, growth: &Growth) {
        let cwnd = u32::from(congestion.cwnd).max(1);
        if growth.flight < cwnd / 2 {
            // The window was not used, so it neither grows nor does its time count (§5.8; the half
            // is from RFC 7661 §3).
            return;
        }
        if !growth.is_final {
            // The reduction may still be undone. The epoch begins at the end of recovery, so t is 0
            // now.
            return self.stage.wait();
        }
        let mut epoch = match self.stage {
            Stage::Epoch(mut epoch) => {
                epoch.pass(growth.elapsed_ms);
                epoch
            }
            _ => self.begin_epoch(congestion, growth),
        };
        let next = self.follow(&mut epoch, cwnd, growth);
        self.stage = Stage::Epoch(epoch);
        congestion.cwnd = saturated(next);
    }
}

impl Stage {
    const UNDISTURBED: Self = Self::Undisturbed { waits: false };
    const REDUCED: Self = Self::Reduced {
        by_timeout: false,
        waits: false,
    };

    /// Whether cwnd was reduced, and an undo can restore it.
    fn is_reduced(&self) -> bool {
        matches!(self, Self::Recovery(_) | Self::Reduced { .. })
    }

    /// An acknowledgment came in congestion avoidance, too early for an epoch.
    fn wait(&mut self) {
        if let Self::Undisturbed { waits } | Self::Reduced { waits, .. } = self {
            *waits = true;
        }
    }
}

impl Epoch {
    /// `elapsed_ms` passed in which the window was in use.
    fn pass(&mut self, elapsed_ms: u32) {
        let since = i32::from(self.since_ms).saturating_add_unsigned(elapsed_ms);
        self.since_ms = since.min(SINCE_MAX) as i16;
    }

    /// §4.3: as fast as Reno, whose windows are halved, grows on average. Returns W_est, bytes.
    fn grow_w_est(&mut self, acked: u32, cwnd: u32, smss: u32) -> u32 {
        let step = match self.w_est < self.cwnd_prior {
            true => (smss * 9 + 8) / 17,
            false => smss,
        };
        let grown = acked * step + u32::from(self.w_est_part).min(cwnd);
        let w_est = u32::from(self.w_est) + grown / cwnd;
        self.w_est_part = (grown % cwnd) as u16;
        self.w_est = saturated(w_est);
        w_est
    }
}

/// Longest time from W_max that is kept, ms: by then the curve is 64 KiB away from it even
/// with segments of 24 bytes, the least there are.
const SINCE_MAX: i32 = i16::MAX as i32;

/// C·|`ms`|³ in bytes: 0.4·10⁻⁹ · `ms`³ · `smss`.
///
/// In 32 bits: the cube loses 13 bits on the way and 9 at its end, and 2²² · 0.4 · 10⁻⁹ is
/// 1/596.05. So it is too small by `smss`/596 and 0.2% at most; what does not fit 16 bits is only
/// large.
#[inline(never)]
fn cube(ms: i32, smss: u32) -> u32 {
    let ms = ms.unsigned_abs().min(SINCE_MAX as u32);
    let cube = (((ms * ms) >> 13) * ms) >> 9;
    cube.saturating_mul(smss) / 596
}

/// The least time, ms, in which the curve covers `bytes`: the cube root of bytes/C.
fn root(bytes: u32, smss: u32) -> i32 {
    let mut below = 0;
    let mut bit = 1 << 14;
    while bit > 0 {
        if cube(below | bit, smss) < bytes {
            below |= bit;
        }
        bit >>= 1;
    }
    (below + i32::from(bytes > 0)).min(SINCE_MAX)
}
