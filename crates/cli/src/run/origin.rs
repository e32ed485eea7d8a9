//! What is run: a scenario, or once more the scenario of results.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::sync::Arc;

use motet_lab::report::{Inputs, Origin, Provenance};
use motet_lab::scenario::{Overrides, Plan};

use super::Args;
use crate::capture::is_stdout;
use crate::error::Error;
use crate::files;
use crate::keys;
use crate::provenance;

/// Reads the plan and says where its results will come from.
///
/// # Errors
/// [`Error::Input`] for a scenario that is refused, for results that name none, and for files that
/// have changed since those results were written.
pub(super) fn read(args: &Args, file: &Path) -> Result<(Plan, Provenance), Error> {
    let overrides = Overrides {
        seed: args.seed,
        seeds: args.seeds,
        layout_seed: args.layout_seed,
        duration_s: args.duration,
        ..Overrides::default()
    };
    let origin = origin(file)?;
    let plan = match &origin {
        Some(origin) => Plan::parse(&origin.scenario, &origin.inputs.scenario, overrides),
        None if is_stdout(file) => {
            let text = files::read(file)?;
            Plan::parse(&String::from_utf8_lossy(&text), file, overrides)
        }
        None => Plan::read(file, overrides),
    };
    let mut plan = plan.map_err(|error| Error::input(error.to_string()))?;
    if let Some(origin) = &origin {
        compare(file, &origin.inputs)?;
    }
    let recorded = origin.as_ref().map(|origin| &origin.inputs);
    let scenario = recorded.map_or(file, |inputs| &inputs.scenario);
    let recorded = recorded.and_then(|inputs| inputs.key.as_deref());
    let key = args.key.as_deref().or(recorded);
    let inputs = provenance::inputs(scenario, key, &plan.files);
    let provenance = provenance::of(command(args, file), Some(inputs));
    if let Some(key) = key {
        for point in &mut plan.points {
            keys::give(&mut Arc::make_mut(&mut point.scenario).network, key)?;
        }
        plan.files.push(key.to_owned());
    }
    if origin.is_some() {
        // What a run reads is never overwritten.
        plan.files.push(scenario.to_owned());
    }
    Ok((plan, provenance))
}

/// Where results come from; `None` of a scenario.
fn origin(file: &Path) -> Result<Option<Origin>, Error> {
    // A pipe can be read only once.
    if !file.is_file() {
        return Ok(None);
    }
    let Ok(opened) = File::open(file) else {
        return Ok(None);
    };
    let mut first = Vec::new();
    let mut bytes = BufReader::new(opened).take(LINE_MAX);
    let Ok(_) = bytes.read_until(b'\n', &mut first) else {
        return Ok(None);
    };
    let first = String::from_utf8_lossy(&first);
    if !Origin::is_results(&first) {
        return Ok(None);
    }
    let origin = Origin::read(&first);
    let refused = |why| Error::input(format!("{} {why}", file.display()));
    origin.map(Some).map_err(refused)
}

/// Refuses files that are not as they were: other results would be called the same.
fn compare(results: &Path, inputs: &Inputs) -> Result<(), Error> {
    let results = results.display();
    for (path, digest) in &inputs.others {
        match provenance::digest(Path::new(path)) {
            Some(now) if now == *digest => {}
            Some(_) => {
                return Err(Error::input(format!(
                    "{path} has changed since {results} was written; run the scenario itself"
                )));
            }
            None => {
                return Err(Error::input(format!(
                    "{path} cannot be read, and {results} was made from it"
                )));
            }
        }
    }
    Ok(())
}

/// The command without where its results go.
fn command(args: &Args, file: &Path) -> String {
    let mut command = format!("motet run {}", file.display());
    if let Some(seed) = args.seed {
        let _ = write!(command, " --seed {seed}");
    }
    if let Some(seeds) = args.seeds {
        let _ = write!(command, " --seeds {seeds}");
    }
    if let Some(seed) = args.layout_seed {
        let _ = write!(command, " --layout-seed {seed}");
    }
    if let Some(duration) = args.duration {
        let _ = write!(command, " --duration {duration}");
    }
    if args.reachable {
        command.push_str(" --reachable");
    }
    if let Some(key) = &args.key {
        let _ = write!(command, " --key {}", key.display());
    }
    command
}

/// No scenario is longer.
const LINE_MAX: u64 = 64 << 20;
