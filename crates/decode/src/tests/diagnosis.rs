//! Faults that the lab plants are named from its capture alone, and clean runs give no alarm.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};

use motet_lab::capture::{Capture as LabCapture, Records};
use motet_lab::scenario::{Captures, Overrides, Plan, Watch};
use serde_json::Value;

use super::super::{Capture, Decoder, Examiner, Look};

/// The findings in the air of a scenario: code and sentence of each, worst first.
fn findings(scenario: &str) -> Vec<(String, String)> {
    let plan = Plan::parse(scenario, Path::new("s.toml"), Overrides::default())
        .unwrap_or_else(|error| panic!("{scenario}: {error}"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("air.pcap");
    let file = std::fs::File::create(&path).unwrap();
    let air = LabCapture::stream(Box::new(file), Records::TappedFrames).unwrap();
    let watch = Watch {
        stop: &AtomicBool::new(false),
        done_ms: &AtomicU64::new(0),
    };
    let captures = Captures {
        air: Some(air),
        ..Captures::default()
    };
    plan.run(&watch, captures);
    let mut capture = Capture::of_bytes(std::fs::read(&path).unwrap()).unwrap();
    let mut decoder = Decoder::new(&[]);
    let mut examiner = Examiner::new();
    while let Some(record) = capture.next_record() {
        examiner.observe(&decoder.decode(&record.unwrap()));
    }
    let diagnosis = examiner.conclude();
    let mut page = Vec::new();
    diagnosis.print_findings(Look::PLAIN, &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(
        page.lines().all(|line| line.chars().count() <= 110),
        "{page}"
    );
    let value = serde_json::to_value(&diagnosis).unwrap();
    let list = value["findings"].as_array().unwrap().clone();
    let text = |finding: &Value, key: &str| finding[key].as_str().unwrap().to_owned();
    list.iter()
        .map(|one| (text(one, "code"), text(one, "sentence")))
        .collect()
}

fn scenario(top: &str, chain: u32, parts: &str) -> String {
    format!("duration_s = 30\n{top}[topology]\nchain = {chain}\n{parts}[[flow]]\n")
}

#[test]
fn planted_faults_are_named() {
    let fault = |kind: &str, more: &str| {
        format!("[[fault]]\nkind = \"{kind}\"\nnode = 2\nat_s = 10\n{more}")
    };
    let attacker = |kind: &str| format!("[[attacker]]\nnear = 2\nkind = \"{kind}\"\n");
    let cases: [(String, &str, &str); 12] = [
        (fault("off", ""), "silent", "00:02"),
        (fault("reboot", ""), "reboot", "00:02"),
        (
            fault("link", "to = 1\nfor_s = 15\n"),
            "broken-link",
            "00:02 → 02:4d:6f:74:65:74:00:01",
        ),
        (attacker("ra"), "flood", "router advertisement"),
        (attacker("ra"), "contradiction", "prefixes"),
        (attacker("na"), "refused", "duplicate address"),
        (attacker("ns"), "flood", "neighbor solicitation"),
        (attacker("ack"), "stray-acks", "acknowledgments"),
        (attacker("bodies"), "incomplete", "never completed"),
        (attacker("source"), "invented-nodes", "nodes"),
        (attacker("children"), "invented-nodes", "nodes"),
        (attacker("poll"), "impostor", "in the name of"),
    ];
    for (parts, code, word) in cases {
        let found = findings(&scenario("", 3, &parts));
        let is_named = found
            .iter()
            .any(|(of, text)| of == code && text.contains(word));
        assert!(is_named, "{parts}: {found:#?}");
    }
}

/// Two branches whose ends do not hear each other.
const TREE: &str = "links = [[0, 1, -68], [1, 0, -68], [0, 2, -68], [2, 0, -68], [1, 3, -68], [3, 1, -68], \
                    [1, 4, -68], [4, 1, -68], [2, 5, -68], [5, 2, -68]]\nparents = [0, 0, 1, 1, 2]\n";
/// Four motes around the border router, which hear one another.
const STAR: &str = "links = [[0, 1, -70], [1, 0, -70], [0, 2, -70], [2, 0, -70], [0, 3, -70], [3, 0, -70], \
                    [1, 2, -80], [2, 1, -80], [1, 3, -80], [3, 1, -80], [2, 3, -80], [3, 2, -80]]\n";

#[test]
fn faults_in_a_tree_are_named() {
    let two = "[[flow]]\nfrom = 3\n[[flow]]\nfrom = 5\n";
    let cases = [
        // The capture ends where nobody speaks any more.
        (
            "kind = \"off\"\nnode = 4\n",
            "[[flow]]\nfrom = 4\n",
            "silent",
            "00:04",
        ),
        // Nobody sends to it meanwhile. Its first sequence number is drawn: with seed 903 it nearly
        // follows the last one, and nothing shows the restart.
        ("kind = \"reboot\"\nnode = 3\n", two, "reboot", "00:03"),
    ];
    for (fault, flows, code, word) in cases {
        let text = format!(
            "seed = 904\nduration_s = 45\n[topology]\n{TREE}[[fault]]\n{fault}at_s = 12\n{flows}"
        );
        let found = findings(&text);
        let is_named = found
            .iter()
            .any(|(of, text)| of == code && text.contains(word));
        assert!(is_named, "{fault}: {found:#?}");
    }
    // The same signal, far weaker: at the edge of what is received, and where frames arrive as before.
    for (gain_db, is_fault) in [(-102.0, true), (-98.5, false)] {
        let weak = format!(
            "seed = 905\nduration_s = 45\n[topology]\n{TREE}[[fault]]\nkind = \"link\"\nnode = 5\nto = 2\nat_s = 12\n\
             for_s = 25\ngain_db = {gain_db:?}\n{two}"
        );
        let found = findings(&weak);
        let is_named =
            |(of, text): &(String, String)| of == "weak-link" && text.contains("00:05 was heard");
        assert_eq!(
            found.iter().any(is_named),
            is_fault,
            "{gain_db}: {found:#?}"
        );
    }
    let lossy =
        "seed = 984\nduration_s = 60\n[topology]\nchain = 2\n[radio]\nframe_loss = 0.3\n[[flow]]\n";
    let found = findings(lossy);
    assert!(found.iter().any(|(of, _)| of == "retries"), "{found:#?}");
    let slow =
        "seed = 982\nduration_s = 60\n[topology]\nchain = 3\n[wire]\ndelay_ms = 1200\n[[flow]]\n";
    let found = findings(slow);
    let is_named = |(_, text): &(String, String)| text.contains("longer than the first RTO");
    assert!(found.iter().any(is_named), "{found:#?}");
}

#[test]
fn what_is_usual_is_no_alarm() {
    let cases = [
        // Each request is answered at once, by a segment of full length.
        "seed = 705\nduration_s = 60\njoin_s = 200\n[topology]\nchain = 3\njoining = \"rpl\"\n[[flow]]\nkind = \"request\"\n\
         from = \"host\"\nto = 3\n"
            .to_owned(),
        // A window closes for a moment.
        "seed = 711\nduration_s = 60\n[topology]\nchain = 2\n[radio]\nprofile = \"telosb\"\n[[flow]]\nfrom = \"host\"\n\
         to = 2\n[[flow]]\n"
            .to_owned(),
        format!(
            "seed = 703\nduration_s = 60\n[topology]\n{STAR}[[flow]]\nfrom = 1\n[[flow]]\nfrom = 2\n[[flow]]\nfrom = 3\n"
        ),
    ];
    for case in cases {
        let found = findings(&case);
        assert!(found.is_empty(), "{case}: {found:#?}");
    }
}

/// A share of the losses that TCP makes up for by its pace, and ACKs that wait for a child.
#[test]
fn collisions_and_sleep_are_no_alarm() {
    for seed in [702, 12_702, 22_702] {
        // The ends of the branches do not hear each other. Of their packets about a fifth is never
        // whole, which is where the alarm begins: other headers may bring a seed above it.
        let tree = format!(
            "seed = {seed}\nduration_s = 40\n[topology]\n{TREE}[stack]\ncompression = \"none\"\n[[flow]]\nfrom = 3\n\
             [[flow]]\nfrom = 5\nto = \"host\"\n"
        );
        let found = findings(&tree);
        assert!(found.is_empty(), "{seed}: {found:#?}");
        // A child asks often while an answer is due, and sleeps longer than its RTO.
        let asleep = format!(
            "seed = {seed}\nduration_s = 90\n[topology]\n{STAR}[stack]\nsleep = \"adaptive\"\n[[flow]]\nkind = \"periodic\"\n\
             from = 2\ninterval_s = 5\nmessage_bytes = 200\n[[flow]]\nkind = \"periodic\"\nfrom = 3\ninterval_s = 7\n\
             message_bytes = 900\n"
        );
        let found = findings(&asleep);
        assert!(found.is_empty(), "{seed}: {found:#?}");
        // The border router sends to two children in turn.
        let down = format!(
            "seed = {seed}\nduration_s = 30\n[topology]\n{TREE}[[flow]]\nfrom = \"host\"\nto = 3\n[[flow]]\nfrom = \"host\"\n\
             to = 5\n"
        );
        let found = findings(&down);
        assert!(
            found.iter().all(|(of, _)| of != "impostor"),
            "{seed}: {found:#?}"
        );
    }
}

#[test]
fn what_goes_wrong_in_tcp_is_told_by_its_cause() {
    let cases = [
        (
            "[wire]\nloss = 0.08\ndelay_ms = 20\n",
            "retransmissions",
            "beyond",
        ),
        ("[wire]\ndelay_ms = 1500\n", "retransmissions", "RTO below"),
        (
            "[stack]\nwindow_segments = 1\n",
            "one-by-one",
            "one segment at a time",
        ),
    ];
    for (parts, code, word) in cases {
        let found = findings(&scenario("", 2, parts));
        let is_named = found
            .iter()
            .any(|(of, text)| of == code && text.contains(word));
        assert!(is_named, "{parts}: {found:#?}");
    }
}

#[test]
fn forged_routing_is_named_by_what_it_contradicts() {
    for (kind, word) in [
        ("version", "version"),
        ("mode", "another mode"),
        ("prefix", "prefixes"),
        ("rank", "rank"),
        ("dtsn", "DTSN"),
        ("dao", "changing parents"),
        ("no-path", "no-path"),
        ("dis", "DIS"),
    ] {
        let parts = format!("joining = \"rpl\"\n[[attacker]]\nnear = 2\nkind = \"{kind}\"\n");
        let found = findings(&scenario("join_s = 40\n", 3, &parts));
        let is_named = found.iter().any(|(_, text)| text.contains(word));
        assert!(is_named, "{kind}: {found:#?}");
    }
}

/// Scenarios and seeds on which no threshold was tuned: chains of each length and direction, floors,
/// datagrams, readings, Thread, compressed headers.
#[test]
fn clean_runs_of_other_kinds_give_no_alarm() {
    let flow = "[[flow]]\n";
    let floor = "duration_s = 120\n[topology]\nfloor = 9\nfloor_hops = 2\njoining = \"rpl\"\n[[flow]]\nfrom = 9\n\
                 to = \"host\"\nbytes = 30000\n";
    let cases = [
        ("[topology]\nchain = 1\n", flow),
        ("[topology]\nchain = 5\njoining = \"rpl\"\n", flow),
        (
            "[topology]\nchain = 2\n",
            "[[flow]]\nfrom = \"host\"\nto = 2\n",
        ),
        (
            "[topology]\nchain = 2\n",
            "[[flow]]\nkind = \"udp\"\nfrom = 2\nto = \"host\"\n",
        ),
        (
            "[topology]\nchain = 3\n[stack]\ncompression = \"tcphc\"\n",
            flow,
        ),
        ("[topology]\nchain = 1\njoining = \"thread\"\n", flow),
    ];
    let mut alarms = Vec::new();
    for seed in [11, 12, 13] {
        for (top, flow) in cases {
            let text = format!("seed = {seed}\nduration_s = 60\n{top}{flow}");
            // A capture that was opened with no key says so.
            let found = findings(&text);
            alarms.extend(found.into_iter().filter(|(code, _)| code != "encrypted"));
        }
        alarms.extend(findings(&format!("seed = {seed}\n{floor}")));
    }
    assert!(alarms.len() <= 1, "{alarms:#?}");
}

#[test]
fn clean_runs_give_no_alarm() {
    let mut alarms = Vec::new();
    for seed in 1..=5 {
        for chain in [1, 3] {
            let top = format!("seed = {seed}\n");
            alarms.extend(findings(&scenario(&top, chain, "")));
        }
    }
    assert!(alarms.len() <= 1, "{alarms:#?}");
}
