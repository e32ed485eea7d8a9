//! `motet soak`: what it prints, and that it repeats itself.

use serde_json::Value;

use crate::common::run;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn summary(arguments: &[&str]) -> Value {
    let output = run(arguments);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one object")
}

#[test]
fn the_summary_is_one_object_that_a_seed_determines() {
    let arguments = ["soak", "--seconds", "5000", "--seed", "1", "--json"];
    let first = summary(&arguments);
    assert_eq!(first, summary(&arguments));
    assert_eq!(first["complete"], true);
    assert_eq!(first["failures"], Value::Array(Vec::new()));
    assert!(first["seconds"].as_f64() >= Some(5000.0), "{first}");
    let transitions = first["transitions"].as_array().expect("a list");
    assert_eq!(transitions.len(), 21);
    let seen = transitions.iter().filter(|t| t["seen"].as_u64() > Some(0));
    assert!(seen.count() > 10, "{first}");
    let absent = transitions.iter().filter(|t| !t["absent"].is_null());
    assert_eq!(absent.count(), 1);
}

/// The command that a failure prints: the seed's run and no other.
#[test]
fn one_second_is_one_run() {
    let alone = summary(&["soak", "--seconds", "1", "--seed", "3", "--json"]);
    assert_eq!(alone["runs"], 1);
    let both = summary(&["soak", "--seconds", "700", "--seed", "2", "--json"]);
    assert!(both["runs"].as_u64() > Some(1));
}

#[test]
fn people_get_a_table_and_bad_input_one_sentence() {
    let table = text(&run(["soak", "--seconds", "1"]).stdout);
    assert!(table.starts_with("1 run,"), "{table}");
    assert!(table.trim_end().ends_with("clean"), "{table}");
    assert!(table.contains("SYN-RECEIVED  ESTABLISHED"), "{table}");
    for wrong in [["--seconds", "0"], ["--seed", "-1"], ["--seconds", "soon"]] {
        let output = run(["soak", wrong[0], wrong[1]]);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert_eq!(text(&output.stderr).lines().count(), 1, "{wrong:?}");
    }
    // It exists in the build of the proof alone.
    assert_eq!(run(["soak", "--plant", "1"]).status.code(), Some(2));
}

/// Every count of the JSON summary is on the page, below what repeats it.
#[test]
fn markdown_says_command_and_every_count() {
    let page = text(&run(["soak", "--seconds", "1", "--seed", "3", "--markdown"]).stdout);
    let command = "Measured with `motet soak --seconds 1 --seed 3 --markdown` on 2";
    assert!(page.lines().any(|line| line.starts_with(command)), "{page}");
    assert!(
        page.contains("1 runs") && page.contains("Every run is clean."),
        "{page}"
    );
    let summary = summary(&["soak", "--seconds", "1", "--seed", "3", "--json"]);
    for (what, count) in summary["counts"].as_object().unwrap() {
        assert!(
            page.contains(&format!("| {what} | {count} |")),
            "{what} in {page}"
        );
    }
    let transitions = summary["transitions"].as_array().unwrap();
    let rows = page.lines().filter(|line| line.split(" | ").count() == 4);
    assert_eq!(rows.count(), transitions.len() + 1, "{page}");
}
