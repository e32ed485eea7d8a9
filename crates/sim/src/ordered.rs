//! Ordered sets, maps and lists from code that is small.
//!
//! Purpose: where the lab puts a scenario in order, once. The standard library sorts stably, and
//! collects into its ordered sets and maps, by 4 KB of code for each type of element; the page
//! downloads all of it. Left out: what a run does for each frame.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// The set of these.
pub(crate) fn set<T: Ord>(items: impl IntoIterator<Item = T>) -> BTreeSet<T> {
    let mut set = BTreeSet::new();
    set.extend(items);
    set
}

/// The map of these; of a key that comes twice the last value.
pub(crate) fn map<K: Ord, V>(items: impl IntoIterator<Item = (K, V)>) -> BTreeMap<K, V> {
    let mut map = BTreeMap::new();
    map.extend(items);
    map
}

/// Sorts by a key; of equal keys the first stays the first.
pub(crate) fn sort_by_key<T, K: Ord>(items: &mut Vec<T>, key: impl Fn(&T) -> K) {
    let order = order(items.len(), &|one, other| {
        key(&items[one]).cmp(&key(&items[other]))
    });
    let mut taken: Vec<Option<T>> = items.drain(..).map(Some).collect();
    items.extend(order.into_iter().filter_map(|place| taken[place].take()));
}

/// The places of `len` items in their order: one code for all types.
fn order(len: usize, compare: &dyn Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut places: Vec<usize> = (0..len).collect();
    places.sort_by(|one, other| compare(*one, *other));
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_that_of_the_standard_library() {
        let pairs: Vec<(u32, u32)> = (0..500).map(|n| (n * n * 37 % 23, n)).collect();
        let (mut ours, mut theirs) = (pairs.clone(), pairs.clone());
        sort_by_key(&mut ours, |(key, _)| *key);
        theirs.sort_by_key(|(key, _)| *key);
        assert_eq!(ours, theirs);
        assert_eq!(set(pairs.clone()), pairs.iter().copied().collect());
        assert_eq!(map(pairs.clone()), pairs.into_iter().collect());
    }
}
