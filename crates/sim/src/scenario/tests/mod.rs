//! Scenarios: read, refused, run.

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};

use super::document::Document;
use super::*;

mod bluetooth;
mod bounds;
mod fairness;
mod flows;
mod hostile;
mod made;
mod mixed;
mod pace;
mod pushes;
mod reachable;
mod readings;
mod refusals;
mod runs;
mod security;
mod sessions;
mod settings;
mod sleep;

fn plan(text: &str) -> Result<Plan, ScenarioError> {
    let file = Path::new("test.toml");
    Document::parse(text, file)
        .and_then(|document| Plan::new(document, Overrides::default()))
        .map_err(|error| error.within(file))
}

fn results(plan: &Plan) -> Vec<RunResult> {
    let (stop, done_ms) = (AtomicBool::new(false), AtomicU64::new(0));
    let watch = Watch {
        stop: &stop,
        done_ms: &done_ms,
    };
    plan.run(&watch, Captures::default())
}

const CHAIN: &str = "duration_s = 10\nwarmup_s = 2\n[topology]\nchain = 2\n[[flow]]\n";

#[test]
fn every_default_is_a_value_its_key_may_have() {
    for section in keys::SECTIONS {
        for key in section.keys {
            if let Some(default) = key.default {
                let value = key.default_value();
                let value = value.unwrap_or_else(|| panic!("{}: {default} is no value", key.name));
                let as_toml: toml::Table = format!("v = {default}").parse().unwrap();
                assert_eq!(as_toml.get("v"), Some(&value), "{}", key.name);
                assert!(key.accept(&value).is_ok(), "{} = {default}", key.name);
            }
        }
    }
}

#[test]
fn the_documentation_is_in_step() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/scenarios.md");
    let text = documentation();
    if std::env::var_os("MOTET_WRITE_DOCS").is_some() {
        std::fs::write(&file, &text).unwrap();
    }
    let written = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        written == text,
        "docs/reference/scenarios.md is not in step: MOTET_WRITE_DOCS=1 cargo test -p motet-lab documentation"
    );
}
