//! Where the motes are: three branches of four, as a scenario's links.

use std::fmt::Write as _;

use crate::air::gains::ChainAir;

/// How the twelve motes hang together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Layout {
    /// Three chains of four motes.
    Branches,
    /// The same, but in the third branch the last two motes hang at the second one: four motes have
    /// nobody below them, and may sleep.
    FourEnds,
}

impl Layout {
    /// The motes that have nobody below them.
    pub(super) const fn ends(self) -> &'static [usize] {
        match self {
            Self::Branches => &[4, 8, 12],
            Self::FourEnds => &[4, 8, 11, 12],
        }
    }

    /// The parent of each mote.
    pub(super) fn parents(self) -> Vec<usize> {
        (1..NODES).map(|mote| self.parent(mote)).collect()
    }

    fn parent(self, mote: usize) -> usize {
        match (mote % 4, self, mote) {
            (1, ..) => 0,
            (_, Self::FourEnds, 12) => 10,
            _ => mote - 1,
        }
    }

    /// Hops between two nodes.
    fn apart(self, from: usize, to: usize) -> usize {
        let up = |node: usize| -> Vec<usize> {
            let above = |node: &usize| (*node > 0).then(|| self.parent(*node));
            std::iter::successors(Some(node), above).collect()
        };
        let (from, to) = (up(from), up(to));
        let shared = from.iter().rev().zip(to.iter().rev());
        let shared = shared.take_while(|(a, b)| a == b).count();
        from.len() + to.len() - 2 * shared
    }

    /// The value of `topology.links`: neighbours and neighbours of neighbours hear each other as
    /// in the calibrated chain; across the border router as well.
    pub(super) fn links(self) -> String {
        let air = ChainAir::CALIBRATED;
        let mut links = String::from("[");
        for from in 0..NODES {
            for to in (0..NODES).filter(|to| *to != from) {
                let gain = match self.apart(from, to) {
                    1 => air.one_hop_db,
                    2 => air.two_hops_db,
                    _ => air.beyond_db,
                };
                // Nothing fails that writes to a string.
                let _ = write!(links, "[{from}, {to}, {gain:.1}], ");
            }
        }
        links + "]"
    }
}

/// Twelve motes and the border router.
const NODES: usize = 13;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_meet_at_the_border_router() {
        let apart = |from, to| Layout::Branches.apart(from, to);
        assert_eq!(
            [apart(0, 1), apart(0, 4), apart(1, 5), apart(4, 8)],
            [1, 4, 2, 8]
        );
        assert_eq!([apart(2, 4), apart(9, 12), apart(12, 12)], [2, 3, 0]);
        let apart = |from, to| Layout::FourEnds.apart(from, to);
        assert_eq!([apart(11, 12), apart(10, 12), apart(0, 12)], [2, 1, 3]);
    }
}
