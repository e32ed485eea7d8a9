//! Objective functions: the cost of the path over a neighbour, and the rank that follows from it.
//!
//! With MRHOF costs count 1/128 of an expected transmission, as RFC 6551 §4.3.2 counts ETX: without
//! a metric container the neighbour's rank is the cost of its path (RFC 6719 §3.5). With one, a
//! transmission is a whole rank, so that the order of ranks is that of costs: a path of many good
//! hops may be better than one of few bad hops. With OF0 costs are ranks.
//! Sources: RFC 6719 (MRHOF) and RFC 6552 (OF0).

use crate::wire::rpl::Configuration;

/// The rank of a node that is no way to the root (`INFINITE_RANK`, RFC 6550 §17).
pub const INFINITE_RANK: u16 = 0xffff;

/// One transmission in the unit of ETX, 1/128 (RFC 6551 §4.3.2).
pub const ETX_UNIT: u16 = 128;

/// The highest ETX of a link to a new parent (`MAX_LINK_METRIC`, RFC 6719 §5, where it is 512). A
/// parent whose link becomes worse is kept until there is a better one. A sparse mesh may have only
/// links that need up to eight attempts a frame.
pub(super) const LINK_ETX_MAX: u16 = 8 * ETX_UNIT;

/// Paths of a higher cost are not used (`MAX_PATH_COST`, RFC 6719 §5).
pub(super) const PATH_COST_MAX: u16 = 32_768;

/// The parent is changed at once if another candidate's path is cheaper by at least this much
/// (`PARENT_SWITCH_THRESHOLD`, RFC 6719 §5: 1.5 transmissions).
pub(super) const SWITCH_THRESHOLD: u16 = 192;

/// How a node chooses its parent: what the DODAG's configuration names by a code point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Objective {
    /// Code point 0: few hops, worse links counting as more.
    Of0,
    /// Code point 1: least ETX over the path, with hysteresis.
    Mrhof,
}

impl Objective {
    /// `None`: unknown here. Such a DODAG is joined as a leaf (RFC 6550 §8.5), by least ETX.
    pub(super) const fn of(configuration: &Configuration) -> Option<Self> {
        match configuration.objective {
            0 => Some(Self::Of0),
            1 => Some(Self::Mrhof),
            _ => None,
        }
    }

    /// The objective function of a DODAG, least ETX where its code point is unknown.
    pub(super) fn or_least_etx(configuration: &Configuration) -> Self {
        Self::of(configuration).unwrap_or(Self::Mrhof)
    }

    /// The cost of the path over a neighbour that advertises the cost `base`, by a link with this
    /// ETX; `u16::MAX` means no link. `None`: the path must not be used.
    pub(super) fn path_cost(self, base: u16, etx: u16, unit: u16) -> Option<u16> {
        if etx == u16::MAX {
            return None;
        }
        let step = match self {
            // RFC 6552 §4.1: 1 for a perfect link, 9 (`MAXIMUM_STEP_OF_RANK`) at the worst.
            Self::Of0 => {
                let thirds = 3 * etx.min(LINK_ETX_MAX) / ETX_UNIT;
                unit.saturating_mul(thirds.saturating_sub(2).clamp(1, 9))
            }
            Self::Mrhof => etx,
        };
        base.checked_add(step).filter(|cost| *cost <= PATH_COST_MAX)
    }

    /// The rank of a node whose path costs `cost` and whose parent has `parent_rank`: never less
    /// than the next whole rank above the parent's (RFC 6719 §3.3, RFC 6550 §3.5.2).
    /// `has_metrics`: costs are those of metric containers, in which the root's is 0.
    pub(super) fn rank(self, cost: u16, parent_rank: u16, unit: u16, has_metrics: bool) -> u16 {
        let rank = match has_metrics {
            true => u32::from(cost) * u32::from(unit) / u32::from(ETX_UNIT) + u32::from(unit),
            false => u32::from(cost),
        };
        let rank = u16::try_from(rank).unwrap_or(INFINITE_RANK);
        let whole = dag_rank(parent_rank, unit).saturating_add(1);
        rank.max(whole.saturating_mul(unit))
    }
}

/// `DAGRank`: whole ranks of `unit` (MinHopRankIncrease) each (RFC 6550 §3.5.1).
pub fn dag_rank(rank: u16, unit: u16) -> u16 {
    rank.checked_div(unit).unwrap_or(INFINITE_RANK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_and_ranks() {
        use Objective::{Mrhof, Of0};
        for (name, objective, base, etx, unit, cost) in [
            ("a perfect link", Mrhof, 128, 128, 128, Some(256)),
            ("1.5 transmissions", Mrhof, 256, 192, 128, Some(448)),
            ("a bad link", Mrhof, 128, LINK_ETX_MAX, 128, Some(1152)),
            ("no link", Mrhof, 128, u16::MAX, 128, None),
            ("no link", Of0, 128, u16::MAX, 128, None),
            ("the longest path", Mrhof, 32_640, 128, 128, Some(32_768)),
            ("a longer one", Mrhof, 32_641, 128, 128, None),
            ("no path", Mrhof, INFINITE_RANK, 128, 128, None),
            ("a perfect hop", Of0, 256, 128, 256, Some(512)),
            ("two transmissions", Of0, 256, 256, 256, Some(256 * 5)),
            ("the worst hop", Of0, 256, LINK_ETX_MAX, 256, Some(256 * 10)),
        ] {
            assert_eq!(objective.path_cost(base, etx, unit), cost, "{name}");
        }
        for (cost, parent, unit, rank) in [
            (256, 128, 128, 256),
            (300, 200, 128, 300),
            // A metric container may count less than ranks do.
            (128, 128, 128, 256),
            (140, 255, 128, 256),
            (500, 256, 256, 512),
            (600, 0xff80, 128, 0xff80 + 0x7f),
        ] {
            assert_eq!(
                Mrhof.rank(cost, parent, unit, false),
                rank,
                "{cost} {parent}"
            );
        }
        // With metrics 1.5 transmissions are one and a half ranks more than the root has.
        for (cost, parent, rank) in [(192, 256, 640), (128, 256, 512), (1024, 640, 2304)] {
            assert_eq!(Mrhof.rank(cost, parent, 256, true), rank, "{cost}");
        }
        assert_eq!(Mrhof.rank(PATH_COST_MAX, 256, 256, true), INFINITE_RANK);
        assert_eq!(dag_rank(383, 128), 2);
        assert_eq!(dag_rank(383, 0), INFINITE_RANK);
    }
}
