//! Scenarios beside measurements that others reported: what `docs/reference/reports.md` says of them.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};

use motet_lab::scenario::{Captures, Overrides, Plan, RunResult, Watch};

/// All runs of a file of `scenarios/`, in the order of its sweep.
fn runs(name: &str) -> Vec<RunResult> {
    let file: PathBuf = [env!("CARGO_MANIFEST_DIR"), "../../scenarios", name]
        .iter()
        .collect();
    let text = std::fs::read_to_string(&file).expect("the scenario is there");
    let plan = Plan::parse(&text, Path::new(name), Overrides::default()).expect("it is valid");
    let (stop, done_ms) = (AtomicBool::new(false), AtomicU64::new(0));
    let watch = Watch {
        stop: &stop,
        done_ms: &done_ms,
    };
    plan.run(&watch, Captures::default())
}

/// Within 3 %: a change of the stack that moves a figure farther changes the page, too.
fn assert_near(value: f64, stated: f64, what: &str) {
    assert!(
        (value / stated - 1.0).abs() < 0.03,
        "{what}: {value}, not {stated}: docs/reference/reports.md says otherwise"
    );
}

#[test]
fn datagrams_through_a_serial_line_are_as_many_as_the_page_says() {
    let runs = runs("serial-line.toml");
    let stated = [74.0, 61.7, 52.9, 41.3];
    assert_eq!(runs.len(), stated.len());
    for (run, stated) in runs.iter().zip(stated) {
        assert_near(run.flows[0].goodput_kbps, stated, "kb/s");
    }
}

#[test]
fn updates_take_as_long_as_the_page_says() {
    for (name, stated) in [
        ("update-awake.toml", &[236.0, 120.8][..]),
        ("update-asleep.toml", &[120.5, 120.5, 140.1, 316.0]),
    ] {
        let runs = runs(name);
        assert_eq!(runs.len(), stated.len(), "{name}");
        for (run, stated) in runs.iter().zip(stated) {
            assert!(run.flows[0].intact, "{name}");
            let seconds = run.flows[0].finished_s.expect("the whole image");
            assert_near(seconds, *stated, name);
        }
    }
}
