//! The cheapest circulation: each of many things has one successor and one predecessor.
//!
//! Purpose: [`bound`](crate::net::bound) asks for the least time that a segment's exchanges take
//! in any order. An order that repeats gives each exchange one successor; the cheapest assignment
//! of successors costs no more than the cheapest order.
//! Method: successive shortest paths (Bellman and Ford, since costs of paths back are negative).
//! Costs are whole nanoseconds, so that equal ones compare equal.

/// The least sum of `cost(a, b)` over all pairs of a kind and its successor's, where `counts[a]`
/// things of kind `a` exist; each has one successor and one predecessor.
pub(super) fn cheapest(counts: &[u64], cost: impl Fn(usize, usize) -> i64) -> i64 {
    let kinds = counts.len();
    let mut network = Network::new(2 * kinds + 2);
    let (source, sink) = (2 * kinds, 2 * kinds + 1);
    for (kind, count) in counts.iter().enumerate() {
        network.add(source, kind, *count, 0);
        network.add(kinds + kind, sink, *count, 0);
        for (successor, others) in counts.iter().enumerate() {
            let most = *count.min(others);
            network.add(kind, kinds + successor, most, cost(kind, successor));
        }
    }
    let mut total = 0;
    while let Some((length, flow)) = network.augment(source, sink) {
        total += length * flow as i64;
    }
    total
}

struct Network {
    nodes: usize,
    /// Each followed by its way back.
    arcs: Vec<Arc>,
}

struct Arc {
    from: usize,
    to: usize,
    room: u64,
    cost: i64,
}

impl Network {
    const fn new(nodes: usize) -> Self {
        Self {
            nodes,
            arcs: Vec::new(),
        }
    }

    fn add(&mut self, from: usize, to: usize, room: u64, cost: i64) {
        for (from, to, room, cost) in [(from, to, room, cost), (to, from, 0, -cost)] {
            self.arcs.push(Arc {
                from,
                to,
                room,
                cost,
            });
        }
    }

    /// Sends as much as one shortest path takes; returns its length, and how much that was.
    fn augment(&mut self, source: usize, sink: usize) -> Option<(i64, u64)> {
        let mut shortest: Vec<Option<(i64, usize)>> = vec![None; self.nodes];
        shortest[source] = Some((0, usize::MAX));
        loop {
            let mut is_settled = true;
            for (number, arc) in self.arcs.iter().enumerate() {
                let Some((before, _)) = shortest[arc.from].filter(|_| arc.room > 0) else {
                    continue;
                };
                let length = before + arc.cost;
                if shortest[arc.to].is_none_or(|(known, _)| length < known) {
                    shortest[arc.to] = Some((length, number));
                    is_settled = false;
                }
            }
            if is_settled {
                break;
            }
        }
        let (length, _) = shortest[sink]?;
        let mut path = Vec::new();
        let mut at = sink;
        while at != source {
            let (_, arc) = shortest[at]?;
            path.push(arc);
            at = self.arcs[arc].from;
        }
        let flow = path.iter().map(|arc| self.arcs[*arc].room).min()?;
        for arc in path {
            self.arcs[arc].room -= flow;
            self.arcs[arc ^ 1].room += flow;
        }
        Some((length, flow))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least over all assignments, by trying them all.
    fn tried(things: &[usize], left: &mut Vec<usize>, costs: &[Vec<i64>]) -> i64 {
        let Some((first, rest)) = things.split_first() else {
            return 0;
        };
        (0..left.len())
            .map(|place| {
                let successor = left.swap_remove(place);
                let sum = costs[*first][successor] + tried(rest, left, costs);
                left.push(successor);
                let last = left.len() - 1;
                left.swap(place, last);
                sum
            })
            .min()
            .unwrap_or(0)
    }

    #[test]
    fn no_assignment_is_cheaper() {
        let mut rng = motet::random::Rng::from_seed([7, 7]);
        for round in 0..200 {
            let counts: Vec<u64> = (0..3).map(|_| u64::from(rng.below(3))).collect();
            let costs: Vec<Vec<i64>> = (0..3)
                .map(|_| (0..3).map(|_| i64::from(rng.below(50))).collect())
                .collect();
            let things: Vec<usize> = (0..3)
                .flat_map(|kind| (0..counts[kind]).map(move |_| kind))
                .collect();
            let least = tried(&things, &mut things.clone(), &costs);
            let found = cheapest(&counts, |a, b| costs[a][b]);
            assert_eq!(found, least, "{round}: {counts:?} {costs:?}");
        }
    }
}
