//! The lab for a browser: `motet-lab` behind functions that JavaScript calls.
//!
//! Purpose: [`Lab`] is one run that is advanced, changed and looked at; [`run`] is what
//! `motet run --json` does. Numbers go out as typed arrays, rows of equal length one after the
//! other; texts and captures as they are. What is wrong with a scenario is the lab's own sentence,
//! thrown as an `Error`. Place: a web worker owns this. It copies what a page shows; nothing here
//! draws. Left out: a clock. The page says how far time shall go.

mod lab;
mod links;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Mutex, PoisonError};

use motet_lab::report;
use motet_lab::scenario::{self, Captures, Overrides, Plan, Watch};
use wasm_bindgen::JsError;
use wasm_bindgen::prelude::wasm_bindgen;

pub use lab::{Lab, fate_names, sort_names, state_names};
pub use links::{Layout, layout};

/// Matrices, traces and the like, by the names that a scenario has for them.
#[wasm_bindgen]
#[derive(Debug, Default)]
pub struct Files(scenario::Files);

#[wasm_bindgen]
impl Files {
    /// No file.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives the file of this name.
    pub fn add(&mut self, name: String, bytes: Vec<u8>) {
        self.0 = std::mem::take(&mut self.0).with(name, bytes);
    }

    /// Gives the frames of the capture of this name, as `frames` of the module that explains packs
    /// them: each behind an octet with its length.
    pub fn add_frames(&mut self, name: String, packed: &[u8]) {
        let mut frames = Vec::new();
        let mut rest = packed;
        while let Some((&len, behind)) = rest.split_first() {
            let Some((frame, next)) = behind.split_at_checked(usize::from(len)) else {
                break;
            };
            frames.push(Box::from(frame));
            rest = next;
        }
        self.0 = std::mem::take(&mut self.0).with_frames(name, Ok(frames));
    }

    /// Says why the capture of this name cannot be read.
    pub fn refuse(&mut self, name: String, why: String) {
        self.0 = std::mem::take(&mut self.0).with_frames(name, Err(why));
    }
}

/// Runs a whole scenario, with every point of its sweep and every seed, and gives what
/// `motet run --json -` prints.
///
/// `seeds` and `duration_s`, s, take the place of the scenario's.
///
/// # Errors
/// The lab's sentence about the scenario.
#[wasm_bindgen]
pub fn run(
    text: &str,
    name: &str,
    files: &Files,
    seeds: Option<u32>,
    duration_s: Option<f64>,
) -> Result<String, JsError> {
    let overrides = Overrides {
        seeds: seeds.map(u64::from),
        duration_s,
        ..Overrides::default()
    };
    let plan = plan(text, name, files, overrides)?;
    let watching = Watching::default();
    let results = plan.run(&watching.watch(), Captures::default());
    Ok(report::json_lines(&plan, &results))
}

/// Where and why the lab panicked, which ends it; empty before that.
#[wasm_bindgen]
pub fn panicked() -> String {
    let said = PANICKED.lock().unwrap_or_else(PoisonError::into_inner);
    said.clone()
}

/// Keeps what a panic says, since JavaScript is told no more than that there was one.
#[wasm_bindgen(start)]
pub fn listen_for_panics() {
    std::panic::set_hook(Box::new(|info| {
        let mut said = PANICKED.lock().unwrap_or_else(PoisonError::into_inner);
        *said = info.to_string();
    }));
}

/// A run that nobody stops, and whose progress nobody asks for.
#[derive(Debug, Default)]
struct Watching {
    stop: AtomicBool,
    done_ms: AtomicU64,
}

impl Watching {
    fn watch(&self) -> Watch<'_> {
        Watch {
            stop: &self.stop,
            done_ms: &self.done_ms,
        }
    }
}

/// The plan of a scenario; `name` is what its file is called.
fn plan(text: &str, name: &str, files: &Files, overrides: Overrides) -> Result<Plan, JsError> {
    let plan = Plan::parse_with(text, Path::new(name), files.0.clone(), overrides);
    plan.map_err(|error| JsError::new(&error.to_string()))
}

static PANICKED: Mutex<String> = Mutex::new(String::new());
