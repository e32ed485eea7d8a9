//! Traces in which some nodes have no path to the border router.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::scenario::{Captures, Overrides, Plan, RunResult, Watch};

/// Seven nodes: 2, 3 and 5 in a row, 6 alone with 4, of which 3 hears nothing but is heard.
const TRACE: &str = "{}\ndatetime,src,dst,channel,mean_rssi,pdr,tx_count\n";

fn plan(keys: &str, flow: &str) -> Result<Plan, String> {
    let links = [(2, 3), (3, 2), (3, 5), (5, 3), (4, 6), (6, 4), (3, 4)];
    let rows =
        links.map(|(from, to)| format!("2018-01-31 23:59:58,{from},{to},26,-60.0,1.0,100\n"));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(
        folder.path().join("t.k7"),
        format!("{TRACE}{}", rows.concat()),
    )
    .unwrap();
    let text = format!(
        "duration_s = 10\nwarmup_s = 1\n[topology]\nk7 = \"t.k7\"\n{keys}\n[[flow]]\n{flow}\n"
    );
    let path = folder.path().join("s.toml");
    Plan::parse(&text, Path::new(&path), Overrides::default()).map_err(|error| error.to_string())
}

fn run(plan: &Plan) -> RunResult {
    let (stop, done_ms) = (AtomicBool::new(false), AtomicU64::new(0));
    let watch = Watch {
        stop: &stop,
        done_ms: &done_ms,
    };
    plan.run(&watch, Captures::default()).remove(0)
}

#[test]
fn nodes_without_a_path_are_off_and_named() {
    for joining in ["advertised", "rpl"] {
        let plan = plan(&format!("root = 2\njoining = \"{joining}\""), "").unwrap();
        let scenario = &plan.points[0].scenario;
        assert_eq!(
            scenario.left_out,
            [4, 6],
            "gaps in the numbers are not named"
        );
        let run = run(&plan);
        assert!(run.failure.is_none(), "{:?}", run.failure);
        // The last node that takes part sends, over two hops.
        assert!(run.flows[0].name().contains("5 → host"));
        assert!(run.flows[0].goodput_kbps > 10.0, "{:?}", run.flows[0]);
        for node in [1, 2, 4, 6] {
            assert_eq!(run.nodes[node].counts.transmissions, 0, "{node}");
        }
    }
}

#[test]
fn what_has_no_path_is_refused_by_its_number() {
    let refusal = |keys: &str, flow: &str| plan(keys, flow).unwrap_err();
    let alone = refusal("", "");
    assert!(alone.contains("most nodes hear node 3"), "{alone}");
    let far = refusal("root = 7", "");
    assert!(
        far.contains("topology.root is 7, but must be the number of a node of the trace, 0 to 6"),
        "{far}"
    );
    let off = refusal("root = 2", "from = 6");
    assert!(
        off.contains("flow.from is 6, but must be a node from which a path"),
        "{off}"
    );
    let fault = refusal("root = 2", "[[fault]]\nkind = \"off\"\nnode = 4\nat_s = 2");
    assert!(fault.contains("fault.node is 4"), "{fault}");
    let chain = Plan::parse(
        "[topology]\nchain = 2\nroot = 1\n[[flow]]\n",
        Path::new("s.toml"),
        Overrides::default(),
    );
    assert!(
        chain
            .unwrap_err()
            .to_string()
            .contains("topology.root is 1, but must be left out without topology.k7")
    );
}
