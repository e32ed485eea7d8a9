//! Which algorithm controls congestion.
//!
//! Place: [`Loss`] asks where New Reno and CUBIC differ. Left out: what either does
//! ([`super::congestion`], `cubic`).

use super::{Growth, Loss};
#[cfg(feature = "router")]
use super::{cubic, saturated};

/// How cwnd answers a loss, and how it grows in congestion avoidance. Slow start and recovery are
/// those of RFC 5681, 6675 and 9937 with each.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CongestionAlgorithm {
    /// Half of what was in flight; then a segment for each cwnd acknowledged (RFC 5681).
    NewReno,
    /// Seven tenths; then a cubic function of time (RFC 9438).
    #[cfg(feature = "router")]
    Cubic,
}

impl CongestionAlgorithm {
    /// Every algorithm that is built in.
    pub const ALL: &[Self] = &[
        Self::NewReno,
        #[cfg(feature = "router")]
        Self::Cubic,
    ];

    /// Its name, for settings and summaries.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NewReno => "reno",
            #[cfg(feature = "router")]
            Self::Cubic => "cubic",
        }
    }

    /// The one of this name, if it is built in.
    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|algorithm| algorithm.name() == name)
    }

    /// What a loss leaves of `flight` bytes.
    pub(super) const fn reduced(self, flight: u32) -> u32 {
        match self {
            Self::NewReno => flight / 2,
            #[cfg(feature = "router")]
            Self::Cubic => cubic::reduced(flight),
        }
    }

    /// cwnd behind a congestion mark that found `flight` bytes outstanding, where a loss would
    /// leave `ssthresh`: at least one segment of `smss` (RFC 9438 §4.6), with New Reno two.
    #[cfg_attr(
        not(feature = "router"),
        expect(unused_variables, reason = "New Reno answers without")
    )]
    pub(super) fn marked(self, flight: u32, smss: u32, ssthresh: u16) -> u16 {
        match self {
            Self::NewReno => ssthresh,
            #[cfg(feature = "router")]
            Self::Cubic => saturated(cubic::reduced(flight).max(smss)).min(ssthresh),
        }
    }

    /// cwnd is about to be reduced. `is_counted`: it was already, for a mark in the same window;
    /// then CUBIC, whose curve is about the window before both, keeps that. Returns whether what
    /// cwnd is now can take the place of what an undo restores.
    #[cfg_attr(
        not(feature = "router"),
        expect(unused_variables, reason = "New Reno answers without")
    )]
    pub(super) fn precede_reduction(self, loss: &mut Loss, is_counted: bool) -> bool {
        match self {
            Self::NewReno => true,
            #[cfg(feature = "router")]
            Self::Cubic => {
                if !is_counted {
                    loss.settle();
                }
                !is_counted
            }
        }
    }

    /// Congestion avoidance.
    pub(super) fn avoid(self, loss: &mut Loss, growth: &Growth) {
        match self {
            Self::NewReno => loss.congestion.avoid(growth),
            #[cfg(feature = "router")]
            Self::Cubic => loss.avoid_by_cubic(growth),
        }
    }
}
