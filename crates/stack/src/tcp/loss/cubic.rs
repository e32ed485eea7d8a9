//! CUBIC: growth that follows a cubic function of time around the window of the last loss.
//!
//! Place: [`Loss`] calls in for what an acknowledgment does in congestion avoidance. Left out: slow
//! start, and everything that recovery does, which are those of every algorithm; `HyStart++`.
//!
//! A connection that does not use it pays no byte of memory. The curve is kept as W_max and the
//! time since it was there, which is negative before K has passed: W_cubic(t) = W_max + C·(t − K)³
//! needs no more, and both numbers follow from a window and W_max alone. So three halfwords serve,
//! whose place fast recovery takes: `Loss::numbers`. What recovery forgets when it proves spurious,
//! the restored window and W_max tell again, but for W_est, which starts where its epoch did: that
//! is never more than it was.
//!
//! W_max stays the old one until the reduction cannot be undone any more: the new epoch is computed
//! with the first acknowledgment behind that, and counts from the end of recovery. Times are
//! milliseconds in which the window was in use: neither idle time nor time in which application or
//! peer left the window unused counts (§4.2, §5.8). Windows are bytes: C is 0.4 segments a cubic
//! second.
//!
//! What it is worth: a loss leaves 2.8 of four segments, a mesh's usual window. W_est is back at
//! four after 2.3 round trips (0.7 s where one takes 0.3 s), the curve only after K = 1.44 s: there
//! CUBIC is New Reno with other constants. The curve is ahead where windows have tens of segments
//! and round trips take 100 ms and more, as between border routers over a long path. Source: RFC
//! 9438; sections are its own.

use super::{Growth, Loss, saturated};

/// What a loss leaves of `flight` bytes: β is 0.7 (§4.6).
pub(super) const fn reduced(flight: u32) -> u32 {
    flight * 7 / 10
}

impl Loss {
    /// Grows cwnd in congestion avoidance.
    pub(super) fn avoid_by_cubic(&mut self, growth: &Growth) {
        let (cwnd, smss) = (u32::from(self.congestion.cwnd).max(1), growth.smss);
        if growth.flight < cwnd / 2 {
            // Not what this window allows: neither grows nor counts (§5.8; RFC 7661 §4.2's half).
            return;
        }
        if self.undo_left > 0 {
            // A report may yet take the reduction back. Recovery ends here: t is 0.
            self.numbers[SINCE] = WAITS;
            return;
        }
        if self.undo_cwnd != 0 || self.numbers[CWND_PRIOR] == 0 {
            self.begin_epoch(cwnd, growth);
        } else {
            let since = i32::from(self.numbers[SINCE] as i16);
            let since = since.saturating_add_unsigned(growth.elapsed_ms);
            self.numbers[SINCE] = since.min(SINCE_MAX) as u16;
        }
        let since = i32::from(self.numbers[SINCE] as i16);
        let acked = growth.acked.min(cwnd);
        // §4.3: as fast as Reno, whose windows are halved, grows on average.
        let step = match self.numbers[W_EST] < self.numbers[CWND_PRIOR] {
            true => (smss * 9 + 8) / 17,
            false => smss,
        };
        let grown = acked * step + u32::from(self.undo_ssthresh).min(cwnd);
        let w_est = u32::from(self.numbers[W_EST]) + grown / cwnd;
        self.undo_ssthresh = (grown % cwnd) as u16;
        self.numbers[W_EST] = saturated(w_est);
        let next = if self.w_cubic(since, smss) < w_est {
            cwnd.max(w_est)
        } else {
            // §4.4, §4.5: towards where the curve will be in a round trip.
            let target = self.w_cubic(since.saturating_add_unsigned(growth.srtt_ms), smss);
            let more = target.saturating_sub(cwnd).min(cwnd / 2);
            cwnd + more * acked / cwnd
        };
        self.congestion.cwnd = saturated(next);
    }

    /// Congestion avoidance begins at `cwnd`: behind a reduction, behind one that was undone, or
    /// behind a slow start that found no loss.
    fn begin_epoch(&mut self, cwnd: u32, growth: &Growth) {
        let mut cwnd_prior = u32::from(self.undo_cwnd);
        self.settle();
        let mut w_max = u32::from(self.congestion.kept);
        let mut w_est = cwnd;
        if cwnd_prior == 0 {
            w_est = cwnd.min(self.congestion.ssthresh.into());
            cwnd_prior = w_max.max(cwnd);
            if w_max == 0 {
                w_max = cwnd;
            }
        } else if self.numbers[CWND_PRIOR] == 0 || w_max < cwnd {
            // Behind a timeout K is 0 (§4.8).
            w_max = cwnd;
        }
        self.congestion.kept = saturated(w_max);
        self.undo_ssthresh = 0;
        let time = root(w_max.abs_diff(cwnd), growth.smss);
        let mut since = if w_max > cwnd { -time } else { time };
        if self.numbers[SINCE] == WAITS {
            since = since
                .saturating_add_unsigned(growth.elapsed_ms)
                .min(SINCE_MAX);
        }
        self.numbers = [since as u16, saturated(w_est), saturated(cwnd_prior)];
    }

    /// The last reduction, if it was not undone, is final now: W_max is what cwnd was before it, or
    /// less, where a flow that gets less than before leaves room to others: fast convergence
    /// (§4.7).
    pub(super) fn settle(&mut self) {
        let cwnd_prior = core::mem::take(&mut self.undo_cwnd);
        if cwnd_prior != 0 {
            let w_max = &mut self.congestion.kept;
            *w_max = match cwnd_prior < *w_max {
                true => (u32::from(cwnd_prior) * 17 / 20) as u16,
                false => cwnd_prior,
            };
        }
    }

    /// W_cubic (§4.2), bytes, `since` ms after the curve is at W_max.
    pub(super) fn w_cubic(&self, since: i32, smss: u32) -> u32 {
        let (w_max, away) = (u32::from(self.congestion.kept), cube(since, smss));
        match since < 0 {
            true => w_max.saturating_sub(away),
            false => w_max + away,
        }
    }
}

/// Where each of [`Loss::numbers`] stands: t − K, ms, negative before the curve is at W_max; the
/// window that Reno would have by now, bytes; and cwnd before the last reduction, bytes, or 0: no
/// epoch has begun, or the last reduction was a timeout's.
const SINCE: usize = 0;
const W_EST: usize = 1;
const CWND_PRIOR: usize = 2;

/// In the place of t − K: recovery is over, and the epoch begins with the next acknowledgment.
const WAITS: u16 = 1 << 15;

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
