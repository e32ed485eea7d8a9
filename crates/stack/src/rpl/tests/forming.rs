//! Whole meshes: they form, stay, and mend.

use std::vec::Vec;

use super::lab::{Lab, PREFIX, addr, chain, floor};
use crate::time::Duration;

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Seconds until the root reaches `count` motes; fails after `most`.
fn joined_s(lab: &mut Lab, count: usize, most: u64) -> f64 {
    let start = lab.now;
    let all = lab.run_while(start + s(most), |lab| lab.reachable() < count);
    assert!(all, "{} of {count} after {most} s", lab.reachable());
    lab.now.since(start).as_micros() as f64 / 1e6
}

#[test]
fn motes_form_a_mesh_near_the_best_tree() {
    for seed in 0..5 {
        let mut lab = Lab::new(floor(31, 3.0, 0.7, seed), seed);
        lab.switch_all_on();
        let joined = joined_s(&mut lab, 30, 15);
        lab.run(s(600));
        let ratio = lab.etx_ratio();
        assert!(ratio < 1.1, "seed {seed}: joined {joined} s, ETX {ratio}");
        assert_eq!(lab.in_loops(), []);
        for node in 1..31 {
            lab.send_up(node);
        }
        lab.run(s(5));
        assert!(lab.nodes[0].arrived >= 28, "{}", lab.nodes[0].arrived);
    }
}

#[test]
fn a_chain_learns_its_addresses_and_routes() {
    let mut lab = Lab::new(chain(6, 0.95), 1);
    lab.switch_all_on();
    joined_s(&mut lab, 5, 15);
    lab.run(s(60));
    for node in 1..6 {
        let it = &lab.nodes[node];
        assert_eq!(it.parent, Some(node - 1));
        assert_eq!(it.prefix, Some(PREFIX));
        assert_eq!(it.rpl.address(), Some(addr(node)));
        assert!(it.rpl.is_reachable(), "node {node}");
        assert_eq!(
            lab.path_to(addr(node)).unwrap(),
            (1..=node).collect::<Vec<_>>()
        );
    }
}
