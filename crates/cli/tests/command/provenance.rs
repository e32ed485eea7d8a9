//! Results say where they come from, and `motet run` repeats them.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::common::{self, assert_refused, folder, motet, said};

const SWEEP: &str = "duration_s = 8\nwarmup_s = 2\nseeds = 2\n[topology]\nmatrix = \"gains.csv\"\n\
    [[flow]]\n[sweep]\nstack.retry_delay_ms = [0, 40]\n";

const GAINS: &str = "- -60 -\n-60 - -60\n- -60 -\n";

fn motet_in(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = motet();
    command.current_dir(folder).args(arguments);
    command.output().unwrap()
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

/// The lines of results but the first, which names their command.
fn without_provenance(text: &str) -> &str {
    text.split_once('\n').unwrap().1
}

/// A folder with a scenario, and with its results in `study`.
fn studied(arguments: &[&str]) -> tempfile::TempDir {
    let folder = folder();
    fs::write(folder.path().join("s.toml"), SWEEP).unwrap();
    fs::write(folder.path().join("gains.csv"), GAINS).unwrap();
    let all = [&["run", "s.toml", "--out", "study"], arguments].concat();
    let output = motet_in(folder.path(), &all);
    assert!(output.status.success(), "{}", said(&output));
    folder
}

#[test]
fn a_run_is_repeated_from_its_results_alone() {
    let folder = studied(&["--seed", "7", "--duration", "6"]);
    let first = read(folder.path(), "study/results.jsonl");
    let line = &common::objects(first.as_bytes())[0];
    assert_eq!(line["record"], "provenance");
    assert_eq!(line["command"], "motet run s.toml --seed 7 --duration 6");
    assert_eq!(line["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(line["seeds"], serde_json::json!([7, 8]));
    assert_eq!(line["files"]["gains.csv"].as_str().unwrap().len(), 64);
    let date = line["date"].as_str().unwrap();
    assert!(date.len() == 10 && date.starts_with("20"), "{date}");
    // The scenario's own file has done its work: its text is in the results.
    fs::remove_file(folder.path().join("s.toml")).unwrap();
    let again = ["run", "study/results.jsonl", "--out", "again"];
    let output = motet_in(folder.path(), &again);
    assert!(output.status.success(), "{}", said(&output));
    let again = read(folder.path(), "again/results.jsonl");
    assert_eq!(without_provenance(&again), without_provenance(&first));
    // A repetition is repeated as well, and the command line may change it.
    let output = motet_in(
        folder.path(),
        &["run", "again/results.jsonl", "--seeds", "1", "--json", "-"],
    );
    assert!(output.status.success(), "{}", said(&output));
    let seeds = common::objects(&output.stdout);
    assert!(
        seeds
            .iter()
            .all(|line| line["record"] != "run" || line["seed"] == 7)
    );
    let page = read(folder.path(), "study/report.html");
    for words in [
        "motet run s.toml --seed 7",
        "<summary>Scenario</summary>",
        date,
    ] {
        assert!(page.contains(words), "{words}");
    }
}

#[test]
fn results_that_cannot_be_repeated_are_refused() {
    let folder = studied(&[]);
    let inside = folder.path();
    let results = "study/results.jsonl";
    fs::write(inside.join("gains.csv"), GAINS.replace("-60", "-61")).unwrap();
    let changed = motet_in(inside, &["run", results]);
    assert_refused(&changed, 2, &["gains.csv has changed", results]);
    fs::remove_file(inside.join("gains.csv")).unwrap();
    let gone = motet_in(inside, &["run", results]);
    assert_refused(&gone, 2, &["gains.csv", "no such file"]);
    fs::write(inside.join("gains.csv"), GAINS).unwrap();
    let text = read(inside, results);
    for (name, text, words) in [
        (
            "rows.jsonl",
            without_provenance(&text).to_owned(),
            "does not say where it comes from",
        ),
        (
            "new.jsonl",
            text.replacen("\"schema\":1", "\"schema\":2", 1),
            "keys of version 2",
        ),
        (
            "cut.jsonl",
            text[..40].to_owned(),
            "its first line is no JSON",
        ),
    ] {
        fs::write(inside.join(name), text).unwrap();
        assert_refused(&motet_in(inside, &["run", name]), 2, &[name, words]);
    }
    let same = motet_in(inside, &["run", results, "--out", "study", "--force"]);
    assert_refused(&same, 2, &["is what is read"]);
}

#[test]
fn rows_of_experiments_say_their_command_and_are_no_scenario() {
    let folder = folder();
    let arguments = ["reproduce", "tcplp-window", "--seed", "5", "--out", "out"];
    let output = motet_in(folder.path(), &arguments);
    assert!(output.status.success(), "{}", said(&output));
    let text = read(folder.path(), "out/results.jsonl");
    let lines = common::objects(text.as_bytes());
    let command = "motet reproduce tcplp-window --seed 5";
    assert_eq!(lines[0]["command"], command);
    let seeds = &lines[0]["experiments"]["tcplp-window"]["seeds"];
    assert_eq!(seeds[0][0], 5, "{seeds}");
    assert!(
        lines[1..]
            .iter()
            .all(|row| row["experiment"] == "tcplp-window")
    );
    assert!(read(folder.path(), "out/report.html").contains(command));
    let refused = motet_in(folder.path(), &["run", "out/results.jsonl"]);
    assert_refused(&refused, 2, &["out/results.jsonl has no scenario", command]);
}
