//! Captures of any kind and key, their diagnosis, and what scenarios are made of.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use crate::common::{folder, motet, run};

fn report(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/reports");
    root.join(name)
}

fn text(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn refused(arguments: &[&str], words: &str) {
    let output = run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
    assert!(errors.contains(words), "{arguments:?}: {errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
}

/// A capture of the lab's air, whose mote 2 is switched off.
fn capture(folder: &Path) -> String {
    let scenario = folder.join("off.toml");
    let text = "duration_s = 20\n[topology]\nchain = 3\n[[fault]]\nkind = \"off\"\nnode = 2\nat_s = 8\n[[flow]]\n";
    fs::write(&scenario, text).unwrap();
    // The folder of the capture is made.
    let air = folder.join("new/air.pcap");
    let output = motet()
        .arg("run")
        .arg(&scenario)
        .arg("--pcap")
        .arg(&air)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    air.to_str().unwrap().to_owned()
}

#[test]
fn captures_of_the_field_are_read_by_themselves() {
    if !report("ti-fcs.pcap").exists() {
        return;
    }
    let decode = |name: &str, more: &[&str]| {
        text(
            &motet()
                .arg("decode")
                .arg(report(name))
                .args(more)
                .output()
                .unwrap(),
        )
    };
    let ti = decode("ti-fcs.pcap", &[]);
    assert_eq!(ti.matches("echo request seq 1").count(), 2, "{ti}");
    assert_eq!(ti.matches("[malformed]").count(), 1, "{ti}");
    let as_crc = decode("ti-fcs.pcap", &["--fcs", "crc"]);
    assert_eq!(as_crc.matches("[malformed]").count(), 3, "{as_crc}");
    let ble = decode("ble-crc-vouched.pcap", &[]);
    assert_eq!(ble.matches("ADV_IND").count(), 6, "{ble}");
    assert!(decode("nordic-ble-272.pcap", &[]).contains("01:02:03:04:05:06"));
    let key = "raw:000102030405060708090a0b0c0d0e0f";
    let raw = decode("raw-key-implicit.pcap", &["--key", key]);
    assert_eq!(raw.matches("ICMPv6 echo request").count(), 2, "{raw}");
    assert!(!raw.contains("000102030405"), "{raw}");
    let summary = decode(
        "raw-key-implicit.pcap",
        &["--summary", "--key", "raw:00000000000000000000000000000000"],
    );
    assert!(summary.contains("no key opens it"), "{summary}");
}

#[test]
fn keys_that_are_none_are_refused() {
    let zero = "raw:00000000000000000000000000000000";
    refused(
        &["decode", "x.pcap", "--key", "raw:12"],
        "32 hexadecimal digits",
    );
    refused(
        &["decode", "x.pcap", "--key-index", "2"],
        "--key-index 2 needs a key",
    );
    refused(
        &[
            "decode",
            "x.pcap",
            "--key",
            zero,
            "--key-index",
            "1",
            "--key-index",
            "2",
        ],
        "--key-index 2",
    );
    refused(&["decode", "x.pcap", "--fcs", "no"], "crc");
}

#[test]
fn a_diagnosis_names_the_mote_that_is_off() {
    let folder = folder();
    let air = capture(folder.path());
    let page = text(
        &motet()
            .args(["diagnose", &air])
            .env("COLUMNS", "80")
            .output()
            .unwrap(),
    );
    assert!(page.contains("fell silent"), "{page}");
    assert!(
        page.lines().all(|line| line.chars().count() <= 80),
        "{page}"
    );
    let json = text(&run(["diagnose", &air, "--json"]));
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let codes = value["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["code"].as_str());
    assert!(codes.clone().any(|code| code == Some("silent")), "{json}");
    let frames = value["findings"][0]["frames"].as_array().unwrap();
    assert!(!frames.is_empty(), "{json}");
    refused(&["diagnose", "none.pcap"], "no such file");
    // A pipe, cut in the middle: what came before is judged, and the cut is said.
    let bytes = fs::read(&air).unwrap();
    let mut child = motet()
        .args(["diagnose", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(&bytes[..bytes.len() - 7])
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stdout).contains("fell silent"));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cut short"));
}

/// Runs a scenario that comes by standard input.
fn run_scenario(scenario: &str) -> Output {
    let mut child = motet()
        .args(["run", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(scenario.as_bytes())
        .unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn what_is_imported_and_replayed_runs() {
    let folder = folder();
    let air = capture(folder.path());
    let replayed = text(&run(["replay", &air]));
    assert!(replayed.contains("parents = [0, 1, 2]"), "{replayed}");
    assert!(
        text(&run_scenario(&replayed)).contains("\"record\""),
        "{replayed}"
    );
    let gains = folder.path().join("a.gains");
    fs::write(&gains, "gain 1 2 -60\ngain 2 1 -60\nnoise 1 -105 4\n").unwrap();
    let out = folder.path().join("made/by/import.toml");
    let output = motet()
        .arg("import")
        .arg(&gains)
        .arg("--out")
        .arg(&out)
        .output()
        .unwrap();
    assert!(text(&output).is_empty());
    let imported = fs::read_to_string(&out).unwrap();
    assert!(
        imported.contains("[0, 1, -60.00]") && imported.contains("# Not taken over"),
        "{imported}"
    );
    assert!(
        text(&run_scenario(&imported)).contains("\"record\""),
        "{imported}"
    );
    let again = motet()
        .arg("import")
        .arg(&gains)
        .arg("--out")
        .arg(&out)
        .output()
        .unwrap();
    assert_eq!(again.status.code(), Some(2));
    refused(&["import", "/dev/null"], "it is empty");
    if report("otns-two-floors.yaml").exists() {
        let otns = text(
            &motet()
                .arg("import")
                .arg(report("otns-two-floors.yaml"))
                .output()
                .unwrap(),
        );
        assert!(text(&run_scenario(&otns)).contains("\"record\""), "{otns}");
    }
}

#[test]
fn an_attacker_plays_what_decode_reads() {
    if !report("ti-fcs.pcap").exists() {
        return;
    }
    let attack = |file: &Path| {
        format!(
            "duration_s = 8\n[topology]\nchain = 1\n[[attacker]]\nnear = 1\nkind = \"pcap\"\nfile = {file:?}\n[[flow]]\n"
        )
    };
    assert!(
        run_scenario(&attack(&report("ti-fcs.pcap")))
            .status
            .success()
    );
    let output = run_scenario(&attack(&report("nordic-ble-272.pcap")));
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no frame of IEEE 802.15.4"));
}

#[test]
fn shells_complete_the_experiments() {
    for shell in ["bash", "fish", "zsh"] {
        let script = text(&run(["completions", shell]));
        assert!(
            script.contains("tcplp-hops"),
            "no IDs for reproduce in {shell}"
        );
    }
}
