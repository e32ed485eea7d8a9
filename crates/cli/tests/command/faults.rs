//! Faults of a scenario, as people meet them: in a table, in a live mesh, in an error.
#![cfg(target_os = "linux")]

use std::fs;

use crate::common::{self, folder, has, motet, said};

#[test]
fn a_reboot_shows_in_the_table() {
    let folder = folder();
    let scenario = folder.path().join("reboot.toml");
    let text = "duration_s = 60\nwarmup_s = 0\n[topology]\nchain = 2\n[[flow]]\nbytes = 20000\n\
                [[fault]]\nkind = \"reboot\"\nnode = 2\nat_s = 3\n";
    fs::write(&scenario, text).unwrap();
    let output = motet().arg("run").arg(&scenario).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let table = String::from_utf8_lossy(&output.stdout);
    assert!(table.contains("anew 1×"), "{table}");
    // The last mote went and came back, to the same parent.
    let last = table
        .lines()
        .find(|line| line.trim_start().starts_with("2  "));
    let cells: Vec<&str> = last.unwrap_or_default().split_whitespace().collect();
    assert_eq!(cells.get(1..3), Some(&["1", "2"][..]), "{table}");
    assert!(table.contains("moves"), "{table}");
}

#[test]
fn an_impossible_fault_is_bad_input() {
    let folder = folder();
    let scenario = folder.path().join("bad.toml");
    let text = "[topology]\nchain = 2\n[[flow]]\n[[fault]]\nkind = \"off\"\nnode = 7\nat_s = 1\n";
    fs::write(&scenario, text).unwrap();
    for command in [&["run"][..], &["up", "--scenario"]] {
        let mut motet = motet();
        let output = motet.args(command).arg(&scenario).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", said(&output));
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains("[[fault]] 1: fault.node is 7"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
}

/// The scenario that users are shown: whatever dies in it, the transfer arrives whole, and every mote
/// names its parent.
#[test]
fn the_mesh_of_the_scenarios_mends_itself() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/mesh.toml");
    let output = motet().args(["run", file, "--json", "-"]).output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let records = |kind: &str| -> Vec<serde_json::Value> {
        let all = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        all.filter(|line: &serde_json::Value| line["record"] == kind)
            .collect()
    };
    let flows = records("flow");
    assert_eq!(flows[0]["outcome"], "complete", "{}", flows[0]);
    assert_eq!(flows[0]["connections_lost"], 0, "{}", flows[0]);
    for node in &records("node")[1..31] {
        let is_off = node["node"] == 14;
        assert_eq!(node["rank"].is_null(), is_off, "{node}");
        assert_eq!(node["etx"].is_null(), is_off, "{node}");
        for key in [
            "parent",
            "hops",
            "joined_s",
            "parent_changes",
            "control_frames",
        ] {
            assert!(node[key].is_number(), "{key}: {node}");
        }
    }
    let has_gone = |step: &serde_json::Value| step["node"] == 14 && step["to"].is_null();
    assert!(records("move").iter().any(has_gone));
}

/// One sentence each, naming the key.
#[test]
fn what_no_mesh_can_have_is_bad_input() {
    let folder = folder();
    let scenario = folder.path().join("bad.toml");
    let fault = |keys: &str| format!("[topology]\nchain = 2\n[[flow]]\n[[fault]]\n{keys}\n");
    let off = "kind = \"off\"\nnode = 1\n";
    let link = "kind = \"link\"\nnode = 1\n";
    let floor = |keys: &str| format!("[topology]\njoining = \"rpl\"\n{keys}\n[[flow]]\n");
    let cases = [
        (fault("kind = \"off\"\nnode = 7\nat_s = 1"), "fault.node"),
        (fault("kind = \"off\"\nat_s = 1"), "fault.node"),
        (fault("node = 1\nat_s = 1"), "fault.kind"),
        (fault("kind = \"melt\"\nnode = 1\nat_s = 1"), "kind"),
        (fault(off), "fault.at_s"),
        (fault(&format!("{off}at_s = 1e6")), "fault.at_s"),
        (fault(&format!("{off}at_s = -1")), "at_s"),
        (fault(&format!("{off}at_s = nan")), "at_s"),
        (fault(&format!("{off}at_s = 1\nfor_s = 0")), "for_s"),
        (fault(&format!("{off}at_s = 1\nfor_s = inf")), "for_s"),
        (fault(&format!("{off}at_s = 1\nto = 2")), "to"),
        (fault(&format!("{off}at_s = 1\ngain_db = -90")), "gain_db"),
        (fault(&format!("{link}at_s = 1")), "fault.to"),
        (fault(&format!("{link}at_s = 1\nto = 1")), "fault.to"),
        (fault(&format!("{link}at_s = 1\nto = 9")), "fault.to"),
        (
            fault(&format!("{link}at_s = 1\nto = 2\ngain_db = nan")),
            "gain_db",
        ),
        (
            fault(&format!("{link}at_s = 1\nto = 2\ngain_db = 40")),
            "gain_db",
        ),
        (floor("floor = 3\nfloor_hops = 9"), "floor_hops"),
        (floor("floor = 30\nfloor_hops = 0"), "floor_hops"),
        (floor("floor = 0"), "floor"),
        (floor("chain = 2\nfloor_hops = 2"), "floor_hops"),
        (floor("chain = 2\nswitch_on_s = -1"), "switch_on_s"),
    ];
    for (text, words) in cases {
        fs::write(&scenario, &text).unwrap();
        let output = motet().arg("run").arg(&scenario).output().unwrap();
        common::assert_refused(&output, 2, &["bad.toml", words]);
    }
}

/// Motes that are switched on find their parents, and answer ping, echo and a transfer.
#[test]
fn a_mesh_that_forms_itself_comes_up_beside_the_kernel() {
    if !has("ping") || !has("nc") {
        return;
    }
    let folder = folder();
    let scenario = folder.path().join("rpl.toml");
    let text = "[topology]\nfloor = 12\nfloor_hops = 3\njoining = \"rpl\"\nswitch_on_s = 2\n\
                [path_loss]\nshadowing_db = 4\n[[flow]]\n";
    fs::write(&scenario, text).unwrap();
    let script = "for mote in $MOTET_MOTES; do
            for try in 1 2 3 4 5; do ping -c 1 -W 2 $mote > /dev/null && break; done
            for try in 1 2 3; do echo $mote | nc -N -w 20 $mote 7 && break; done
        done
        head -c 20000 /dev/zero | nc -N -w 60 ${MOTET_MOTES##* } 7 | wc -c";
    let output = motet()
        .args(["up", "--scenario"])
        .arg(&scenario)
        .args(["--", "sh", "-c", script])
        .output()
        .unwrap();
    let motes = (1..=12).map(|mote| format!("fd6d:6f74:6574:1:4d:6f74:6574:{mote:x}\n"));
    let expected = motes.chain(["20000\n".to_owned()]).collect::<String>();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(stdout, expected, "{}", said(&output));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("hops, by way of mote "), "{stderr}");
}

/// The mote answers, is silent while it is off, and answers again.
#[test]
fn a_live_mesh_has_its_faults() {
    if !has("ping") {
        return;
    }
    let folder = folder();
    let scenario = folder.path().join("off.toml");
    let text = "[topology]\nchain = 2\nswitch_on_s = 2\n[[flow]]\n\
                [[fault]]\nkind = \"off\"\nnode = 2\nat_s = 2\nfor_s = 3\n";
    fs::write(&scenario, text).unwrap();
    let script = "M=${MOTET_MOTES##* }\nasks() { ping -c 1 -W 1 $M > /dev/null && echo yes || echo no; }\n\
                  asks; sleep 2; asks; sleep 4; asks";
    let output = motet()
        .args(["up", "--scenario"])
        .arg(&scenario)
        .args(["--", "sh", "-c", script])
        .output()
        .unwrap();
    let answers = String::from_utf8_lossy(&output.stdout);
    assert_eq!(answers, "yes\nno\nyes\n", "{}", said(&output));
    let stderr = String::from_utf8_lossy(&output.stderr);
    for what in ["mote 2 is switched off", "mote 2 is switched on again"] {
        assert!(stderr.contains(what), "{stderr}");
    }
}
