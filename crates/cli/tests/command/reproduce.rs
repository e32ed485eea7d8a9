//! `motet reproduce`: its list, its rows, and that they do not depend on chance or cores.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::common::{assert_refused, folder, has, motet, objects, run};

const KEYS: [&str; 17] = [
    "schema",
    "experiment",
    "point",
    "metric",
    "unit",
    "value",
    "low",
    "high",
    "ci95",
    "runs",
    "sets",
    "paper",
    "bound",
    "estimate",
    "role",
    "criterion",
    "pass",
];

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The rows of the cheapest experiment, run on so many cores.
fn rows_on(cores: &str, seed: &str) -> String {
    let output = motet()
        .env("RAYON_NUM_THREADS", cores)
        .args(["reproduce", "tcplp-deaf", "--json", "-", "--seed", seed])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn the_list_names_every_experiment_once() {
    let output = run(["reproduce", "--list"]);
    assert!(output.status.success());
    let list = text(&output.stdout);
    for id in [
        "tcplp-mss",
        "tcplp-window",
        "tcplp-onehop",
        "tcplp-retrydelay",
        "tcplp-hops",
        "tcplp-cwnd",
        "tcplp-model",
        "tcplp-deaf",
        "tcplp-baselines",
        "tcplp-fairness",
        "tcphc-clean",
        "tcphc-lossy",
        "tcphc-size",
        "cit-onehop",
        "cit-copying",
        "cit-throughput",
        "cit-latency",
        "combined-pacing",
        "combined-pacing-search",
        "combined-security",
        "combined-outsiders",
        "combined-update",
        "combined-ble",
        "combined-multihop",
        "combined-features",
        "combined-tcphc",
        "mesh-join",
        "mesh-repair",
        "mesh-path",
        "mesh-idle",
        "mesh-cost",
        "mesh-stable",
        "mesh-forged",
        "taim-testbed1",
        "taim-testbed2",
        "taim-udp",
        "combined-fairness",
        "combined-crowd",
        "tcplp-batching",
        "tcplp-loss",
        "tcplp-day",
        "tcplp-sleep",
        "tcplp-adaptive",
        "combined-sleepy",
        "tcple-table4",
        "tcple-goodput",
        "tcple-loss",
        "tcple-fairness",
        "tcple-energy",
        "tcple-rtt",
        "tcple-ota",
    ] {
        let lines = list
            .lines()
            .filter(|line| line.split(' ').next() == Some(id));
        assert_eq!(lines.count(), 1, "{id} in\n{list}");
    }
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    let output = run(["reproduce", "tcplp-hop"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let stderr = text(&output.stderr);
    assert!(stderr.contains("tcplp-hops"), "{stderr}");
    // Acronyms in capitals, as the papers have them.
    let output = run(["reproduce", "--list", "TCPLP-MSS", "tcplp-Hops"]);
    let listed = text(&output.stdout);
    assert!(
        output.status.success() && listed.lines().count() == 2,
        "{listed}"
    );
    let refused = run(["reproduce", "TCPLP-MSX"]);
    assert_refused(&refused, 2, &["nearest name is tcplp-mss"]);
    // One bad name among good ones: nothing runs.
    assert_refused(
        &run(["reproduce", "tcplp-deaf", "combined-secrecy"]),
        2,
        &["combined-security"],
    );
    assert_refused(&run(["reproduce", "--list", "mesh-joy"]), 2, &["mesh-join"]);
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
}

#[test]
fn rows_are_well_formed_and_the_same_on_one_core_or_two() {
    let (one, two) = (rows_on("1", "7"), rows_on("2", "7"));
    assert_eq!(one, two, "the same seed, another number of cores");
    // This run shares no seed with the first one; a start at 8 would share five of six.
    let other = rows_on("2", "1007");
    for (line, other) in one.lines().zip(other.lines()) {
        let [row, other] = [line, other].map(|line| objects(line.as_bytes()).remove(0));
        for set in [0, 1] {
            assert_ne!(
                row["sets"][set], other["sets"][set],
                "another seed shifts both sets"
            );
        }
        assert_ne!(row["sets"][0], row["sets"][1], "{line}");
        let keys: Vec<&String> = row.as_object().unwrap().keys().collect();
        assert!(KEYS.iter().all(|key| row.get(key).is_some()), "{line}");
        assert_eq!(keys.len(), KEYS.len(), "{line}");
        for set in [0, 1] {
            let values = [&row["sets"][set]["value"], &row["sets"][set]["ci95"]];
            assert!(values.iter().all(|value| value.is_number()), "{line}");
        }
        assert_eq!(row["experiment"], "tcplp-deaf");
        assert!(row["value"].is_f64() || row["value"].is_u64(), "{line}");
        assert!(row["point"].is_object(), "{line}");
        let criterion = row["criterion"].as_str();
        let is_here = criterion.is_some_and(|text| !text.starts_with("judged with --full"));
        let is_judged = row["role"] == "prediction" && is_here;
        assert_eq!(row["pass"].is_boolean(), is_judged, "{line}");
    }
}

/// The page has a row for each row of JSON, with the same figure, and says where it comes from.
#[test]
fn markdown_says_revision_date_and_command() {
    let folder = folder();
    let file = folder.path().join("rows.jsonl");
    let output = motet()
        .args([
            "reproduce",
            "TCPLP-deaf",
            "--seed",
            "7",
            "--markdown",
            "--json",
        ])
        .arg(&file)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = text(&output.stdout);
    let command = "Measured with `motet reproduce tcplp-deaf --seed 7 --markdown` on 2";
    let line = page.lines().find(|line| line.starts_with(command));
    let line = line.unwrap_or_else(|| panic!("{page}"));
    assert!(
        line.contains(" at revision ") || line.contains(" at version "),
        "{line}"
    );
    let rows = objects(&fs::read(&file).unwrap());
    let cells: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with('|'))
        .map(|line| {
            line.split(" | ")
                .map(|cell| cell.trim_matches(['|', ' ']))
                .collect()
        })
        .collect();
    assert_eq!(cells.len(), rows.len() + 2, "{page}");
    for (cells, row) in cells[2..].iter().zip(&rows) {
        assert_eq!(cells.len(), 9, "{cells:?}");
        assert!(
            cells[1].starts_with(row["metric"].as_str().unwrap()),
            "{cells:?}"
        );
        let (shown, value): (f64, _) = (cells[2].parse().unwrap(), row["value"].as_f64().unwrap());
        assert!(
            (shown - value).abs() <= value.abs() * 0.05,
            "{cells:?}: {value}"
        );
        assert_eq!(
            cells[7].starts_with("holds"),
            row["pass"] == true,
            "{cells:?}"
        );
        assert_eq!(
            cells[7].starts_with("**missed**"),
            row["pass"] == false,
            "{cells:?}"
        );
        assert_eq!(
            cells[8].contains(';'),
            row["pass"].is_boolean(),
            "{cells:?}"
        );
    }
    let refused = run(["reproduce", "tcplp-deaf", "--markdown", "--json", "-"]);
    assert_refused(&refused, 2, &["--markdown", "standard output"]);
}

#[test]
fn nothing_is_overwritten_and_no_work_is_done_in_vain() {
    let folder = folder();
    let path = folder.path().join("rows.jsonl");
    fs::write(&path, "mine").unwrap();
    let path = path.to_str().unwrap();
    let output = run(["reproduce", "tcplp-hops", "--json", path]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--force"));
    assert_eq!(fs::read_to_string(path).unwrap(), "mine");
    // Folders are made, but not where a file is.
    let nowhere = format!("{path}/rows.jsonl");
    let output = run(["reproduce", "tcplp-hops", "--json", &nowhere]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
}

#[test]
fn plots_and_a_page_are_written() {
    let folder = folder();
    let out = folder.path().join("results");
    let out = out.to_str().unwrap();
    let output = run(["reproduce", "tcplp-window", "--out", out]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let page = fs::read_to_string(format!("{out}/report.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("href=\"#tcplp-window\""));
    assert!(page.contains("criteria hold") && page.contains("not judged</summary>"));
    assert!(page.find("<svg") < page.find("<table"), "plots come first");
    assert!(fs::read_to_string(format!("{out}/tcplp-window-1.svg")).is_ok());
}

/// As in `motet reproduce … | head -1`.
#[test]
fn a_reader_that_leaves_costs_no_rows() {
    let folder = folder();
    let mut child = motet()
        .current_dir(folder.path())
        .args(["reproduce", "tcphc-size", "tcplp-retrydelay"])
        .args(["--json", "rows.jsonl", "--out", "out"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    child.wait().unwrap();
    let lines = fs::read_to_string(folder.path().join("rows.jsonl")).unwrap();
    assert!(lines.contains("\"experiment\":\"tcphc-size\""), "{lines}");
    assert!(
        lines
            .trim_end()
            .ends_with("{\"schema\":1,\"incomplete\":true,\"missing\":[\"tcplp-retrydelay\"]}")
    );
    assert!(folder.path().join("out/report.html").exists());
}

#[cfg(unix)]
#[test]
fn one_cut_short_keeps_the_rows_it_had() {
    use std::io::{BufRead as _, BufReader};
    let folder = folder();
    let mut child = motet()
        .current_dir(folder.path())
        .args(["reproduce", "tcphc-size", "tcplp-retrydelay"])
        .args(["--json", "rows.jsonl", "--out", "out"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // Its table is printed as soon as the first experiment is over.
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.by_ref().any(|line| line.unwrap().is_empty()));
    let kill = format!("kill -TERM {}", child.id());
    let killed = Command::new("sh").args(["-c", &kill]).status();
    assert!(killed.unwrap().success());
    let said: Vec<String> = lines.map(Result::unwrap).collect();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143), "{}", text(&output.stderr));
    let stderr = text(&output.stderr);
    assert!(stderr.contains("1 of 2 experiments"), "{stderr}");
    let last = said.last().unwrap();
    assert!(
        last.contains("incomplete") && last.contains("tcplp-retrydelay"),
        "{last}"
    );
    let lines = fs::read_to_string(folder.path().join("rows.jsonl")).unwrap();
    let mut rows: Vec<Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mark = rows.pop().unwrap();
    assert_eq!(
        mark,
        serde_json::json!({ "schema": 1, "incomplete": true, "missing": ["tcplp-retrydelay"] })
    );
    assert!(!rows.is_empty());
    assert!(rows.iter().all(|row| row["experiment"] == "tcphc-size"));
    let page = fs::read_to_string(folder.path().join("out/report.html")).unwrap();
    assert!(page.contains("Incomplete") && page.contains("tcplp-retrydelay"));
}

#[test]
fn a_folder_with_plots_of_before_is_asked_about() {
    let folder = folder();
    let old = folder.path().join("tcplp-hops-1.svg");
    fs::write(&old, "old").unwrap();
    let out = folder.path().to_str().unwrap();
    let output = run(["reproduce", "tcplp-window", "--out", out]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("tcplp-hops-1.svg exists"));
    let output = run(["reproduce", "tcplp-deaf", "--out", out, "--force"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!old.exists(), "it would pass for a plot of this run");
}

/// What a table's first line stands behind on a terminal is erased before. Where all is done within
/// two seconds there is no bar, and nothing to see.
#[test]
fn a_table_does_not_stand_behind_the_bar() {
    if !has("script") {
        return;
    }
    let motet = motet().get_program().to_string_lossy().into_owned();
    let command = format!("stty cols 80; {motet} reproduce tcphc-size cit-onehop --quick");
    let output = Command::new("script")
        .env("RAYON_NUM_THREADS", "1")
        .env("TERM", "xterm")
        .args(["--quiet", "--return", "--command", &command, "/dev/null"])
        .output()
        .unwrap();
    let terminal = text(&output.stdout);
    assert!(output.status.success(), "{terminal}");
    for (at, bar) in terminal.match_indices(" s left") {
        let behind = &terminal[at + bar.len()..];
        assert!(behind.starts_with("\r\x1b[2K"), "{behind:.200}");
    }
}
