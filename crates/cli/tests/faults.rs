//! Faults of a scenario, as people meet them: in a table, in a live mesh, in an error.
#![cfg(target_os = "linux")]

mod common;

use std::fs;

use common::{folder, has, motet, said};

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
    let told = String::from_utf8_lossy(&output.stderr);
    for what in ["mote 2 is switched off", "mote 2 is switched on again"] {
        assert!(told.contains(what), "{told}");
    }
}
