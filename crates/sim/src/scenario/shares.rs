//! The share of each flow in the energy of the nodes on its path.

use crate::scenario::NodeResult;

/// Energy by flow, mJ; `flows`: for each flow the mesh nodes that it passes, and the bytes that it
/// carried.
///
/// A node's energy, listening included, is shared among the flows that pass it by the bytes that
/// each carried, evenly where none carried any. The energy of nodes that no flow passes is not
/// counted.
pub(super) fn energy_mj(flows: &[(&[usize], u64)], nodes: &[NodeResult]) -> Vec<f64> {
    let flows: Vec<(Vec<usize>, u64)> = flows
        .iter()
        .map(|(path, bytes)| (once_each(path), *bytes))
        .collect();
    let mut carried = vec![(0_u64, 0_u64); nodes.len()];
    for (path, bytes) in &flows {
        for node in path {
            let (sum, flows) = &mut carried[*node];
            (*sum, *flows) = (*sum + bytes, *flows + 1);
        }
    }
    let share = |node: usize, bytes: u64| {
        let counts = &nodes[node].counts;
        let (sum, flows) = carried[node];
        let share = match sum {
            0 => 1.0 / flows as f64,
            sum => bytes as f64 / sum as f64,
        };
        share * (counts.radio_mj + counts.cpu_mj)
    };
    let of = |(path, bytes): &(Vec<usize>, u64)| path.iter().map(|node| share(*node, *bytes)).sum();
    flows.iter().map(of).collect()
}

/// A path between two motes may pass a node up and down again, which has one energy.
fn once_each(path: &[usize]) -> Vec<usize> {
    let mut nodes = Vec::new();
    for node in path {
        if !nodes.contains(node) {
            nodes.push(*node);
        }
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_shared_by_the_bytes_carried() {
        let node = |radio_mj| {
            let mut node = NodeResult::default();
            node.counts.radio_mj = radio_mj;
            node
        };
        let nodes = [node(40.0), node(30.0), node(20.0), node(10.0)];
        let flows: [(&[usize], u64); 3] = [(&[1, 0], 300), (&[2, 0], 100), (&[2], 0)];
        assert_eq!(energy_mj(&flows, &nodes), [60.0, 30.0, 0.0]);
        assert_eq!(
            energy_mj(&[(&[1, 0, 1, 2], 5)], &nodes),
            [90.0],
            "each once"
        );
        let idle: [(&[usize], u64); 2] = [(&[1, 0], 0), (&[0], 0)];
        assert_eq!(energy_mj(&idle, &nodes), [50.0, 20.0]);
    }
}
