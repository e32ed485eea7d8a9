//! Which mote gets the image from whom.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::{Ipv6Addr, SocketAddrV6},
};

use super::mote::Source;

/// Who gets it from this host, and who from which mote.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Tree {
    /// Those that this host sends to, the one with the longest way below it first.
    pub(super) roots: Vec<SocketAddrV6>,
    below: BTreeMap<SocketAddrV6, Vec<SocketAddrV6>>,
    /// Motes and their parents, of those that are one another's source.
    neighbours: BTreeSet<(SocketAddrV6, SocketAddrV6)>,
}

impl Tree {
    /// Each gets it from this host, in this order.
    pub(super) fn flat(motes: &[SocketAddrV6]) -> Self {
        Self {
            roots: motes.to_vec(),
            ..Self::default()
        }
    }

    /// Each gets it from the nearest mote above it that gets it, too, and otherwise from this host.
    /// Parents that go round in a circle lead nowhere.
    pub(super) fn of(motes: &[SocketAddrV6], parents: &[(Ipv6Addr, Option<Ipv6Addr>)]) -> Self {
        let parents: BTreeMap<_, _> = parents.iter().copied().collect();
        let mut tree = Self::default();
        for mote in motes {
            let mut above = *mote.ip();
            // No way is longer than there are motes.
            let source = (0..parents.len()).find_map(|_| {
                above = parents.get(&above).copied().flatten()?;
                let mut targets = motes.iter();
                targets.find(|target| *target.ip() == above && *target != mote)
            });
            match source.filter(|source| !tree.leads(**source, *mote)) {
                Some(source) => {
                    tree.below.entry(*source).or_default().push(*mote);
                    if parents.get(mote.ip()).copied().flatten() == Some(*source.ip()) {
                        tree.neighbours.insert((*mote, *source));
                    }
                }
                None => tree.roots.push(*mote),
            }
        }
        let height = |mote: &SocketAddrV6| std::cmp::Reverse(tree.height(*mote));
        let mut sorted = tree.clone();
        sorted.roots.sort_by_key(height);
        for below in sorted.below.values_mut() {
            below.sort_by_key(height);
        }
        sorted
    }

    /// Those that get it from this mote, the one with the longest way below it first.
    pub(super) fn below(&self, mote: SocketAddrV6) -> Vec<SocketAddrV6> {
        self.below.get(&mote).cloned().unwrap_or_default()
    }

    /// Those that get it from another mote, and from which. A neighbour is reached without any
    /// route by its link-local address.
    pub(super) fn followers(&self) -> impl Iterator<Item = (SocketAddrV6, Source)> {
        self.below.iter().flat_map(|(source, below)| {
            below.iter().map(|mote| {
                let is_neighbour = self.neighbours.contains(&(*mote, *source));
                let addr = match is_neighbour {
                    true => SocketAddrV6::new(link_local(*source.ip()), source.port(), 0, 0),
                    false => *source,
                };
                let source = *source;
                (*mote, Source { mote: source, addr })
            })
        })
    }

    /// Whether `to` is reached, as far as the tree is known, only by way of `from` itself: then
    /// `from` cannot get it from there.
    fn leads(&self, to: SocketAddrV6, from: SocketAddrV6) -> bool {
        let below = self.below(from);
        below
            .iter()
            .any(|mote| *mote == to || self.leads(to, *mote))
    }

    fn height(&self, mote: SocketAddrV6) -> usize {
        let below = self.below(mote);
        below
            .iter()
            .map(|mote| 1 + self.height(*mote))
            .max()
            .unwrap_or(0)
    }
}

/// The link-local address with the same interface identifier (RFC 6775 §5.2).
fn link_local(addr: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c, d] = addr.segments();
    Ipv6Addr::new(0xfe80, 0, 0, 0, a, b, c, d)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mote(number: u16) -> SocketAddrV6 {
        SocketAddrV6::new(addr(number), 80, 0, 0)
    }

    fn addr(number: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, number)
    }

    fn tree(motes: &[u16], parents: &[(u16, u16)]) -> Tree {
        let motes: Vec<_> = motes.iter().copied().map(mote).collect();
        let parents: Vec<_> = parents
            .iter()
            .map(|(mote, parent)| (addr(*mote), (*parent > 0).then(|| addr(*parent))))
            .collect();
        Tree::of(&motes, &parents)
    }

    #[test]
    fn each_gets_it_from_the_nearest_above_that_gets_it() {
        let parents = [(1, 0), (2, 1), (3, 2), (4, 0), (5, 1)];
        let all = tree(&[4, 1, 2, 3, 5], &parents);
        assert_eq!(all.roots, [mote(1), mote(4)]);
        assert_eq!(all.below(mote(1)), [mote(2), mote(5)]);
        assert_eq!(all.below(mote(2)), [mote(3)]);
        let some = tree(&[3, 1], &parents);
        assert_eq!(some.roots, [mote(1)]);
        assert_eq!(some.below(mote(1)), [mote(3)]);
        assert_eq!(tree(&[9], &parents).roots, [mote(9)]);
    }

    #[test]
    fn a_circle_of_parents_leaves_nobody_out() {
        let circle = tree(&[1, 2, 3], &[(1, 2), (2, 3), (3, 1)]);
        assert_eq!(circle.roots.len(), 1);
        let below: usize = circle.below.values().map(Vec::len).sum();
        assert_eq!(below, 2);
        let own = tree(&[1], &[(1, 1)]);
        assert_eq!(own.roots, [mote(1)]);
    }
}
