//! What Python has, as a scenario: a path, a TOML text, or a dict.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use motet_lab::scenario::{Files, Overrides, Plan, ScenarioError as Wrong};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use toml::{Table, Value};

use crate::ScenarioError;
use crate::pool;

/// The plan of what Python has; `kind` says what `source` is.
pub(crate) fn plan(
    source: &Bound<'_, PyAny>,
    kind: &str,
    overrides: Overrides,
    files: BTreeMap<String, Vec<u8>>,
) -> PyResult<Plan> {
    let files = given(files);
    let py = source.py();
    let pool = pool::own()?;
    let read = |make: Box<dyn FnOnce() -> Result<Plan, Wrong> + Send>| {
        // A matrix of thousands of nodes takes seconds: other threads of Python go on.
        py.detach(|| pool.install(make))
    };
    let plan = match kind {
        "path" => {
            let path: PathBuf = source.extract().map_err(|_| not_text("the path"))?;
            read(Box::new(move || Plan::read_with(&path, files, overrides)))
        }
        "text" => {
            let text: String = source.extract().map_err(|_| not_text("the scenario"))?;
            read(Box::new(move || {
                Plan::parse_with(&text, Path::new(HERE), files, overrides)
            }))
        }
        _ => {
            let table = table("scenario", source.cast::<PyDict>()?)?;
            let has_sweep = !overrides.sweep.is_empty() || table.contains_key("sweep");
            let make = move || Plan::of_table(table, Path::new(HERE), files, overrides);
            match has_sweep {
                true => read(Box::new(make)),
                // One point keeps to this thread: to wake another would take longer than most plans.
                false => py.detach(make),
            }
        }
    };
    let kept = py.detach(|| {
        plan.and_then(|mut plan| {
            plan.keep_files()?;
            Ok(plan)
        })
    });
    kept.map_err(|error| ScenarioError::new_err(error.to_string()))
}

/// Files that are given as bytes, by name.
pub(crate) fn given(files: BTreeMap<String, Vec<u8>>) -> Files {
    let files = files.into_iter();
    files.fold(Files::new(), |files, (name, bytes)| files.with(name, bytes))
}

/// The table that a dict is; `name` is what errors call the dict.
pub(crate) fn table(name: &str, dict: &Bound<'_, PyDict>) -> PyResult<Table> {
    let mut reader = Reader { left: VALUES_MAX };
    reader.table(name, dict, 0)
}

/// Takes values out of Python.
struct Reader {
    /// How many more there may be: a list may hold itself a thousand times.
    left: usize,
}

impl Reader {
    /// The value that a key has, `path` from the top.
    fn value(&mut self, path: &str, found: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
        if depth > DEPTH_MAX {
            return Err(ScenarioError::new_err(format!(
                "{path} is deeper than any key of a scenario"
            )));
        }
        self.count(path, 1)?;
        if let Some(plain) = plain(path, found)? {
            return Ok(plain);
        }
        if let Ok(dict) = found.cast::<PyDict>() {
            return self.table(path, dict, depth).map(Value::Table);
        }
        if found.is_instance_of::<PyList>() || found.is_instance_of::<PyTuple>() {
            self.room(path, found.len()?)?;
            let items = found.try_iter()?;
            let items = items.map(|item| self.value(path, &item?, depth + 1));
            return Ok(Value::Array(items.collect::<PyResult<_>>()?));
        }
        // What numpy calls a number or an array has these; an array says how large it is first.
        let size = found.getattr("size").and_then(|size| size.extract());
        self.room(path, size.unwrap_or(0))?;
        for name in ["tolist", "__index__", "__fspath__"] {
            if let Ok(plain) = found.call_method0(name) {
                return self.value(path, &plain, depth + 1);
            }
        }
        if let Ok(mapping) = found.cast::<PyMapping>() {
            let dict = PyDict::new(found.py());
            dict.update(mapping)?;
            return self.table(path, &dict, depth).map(Value::Table);
        }
        let kind = found.get_type().name()?;
        Err(ScenarioError::new_err(format!(
            "{path} is of type {kind}, but must be a number, a text, a flag, a list or a dict; leave out what has no value"
        )))
    }

    fn table(&mut self, path: &str, dict: &Bound<'_, PyDict>, depth: usize) -> PyResult<Table> {
        let mut table = Table::new();
        for (key, inner) in dict {
            if !key.is_instance_of::<PyString>() {
                let key = shown(&key);
                return Err(ScenarioError::new_err(format!(
                    "{path} has the key {key}, but every key must be a text"
                )));
            }
            let key: String = key.extract().map_err(|_| not_text(path))?;
            let path = match depth {
                0 => key.clone(),
                _ => format!("{path}.{key}"),
            };
            let path: String = path.escape_debug().take(SHOWN_MAX).collect();
            table.insert(key, self.value(&path, &inner, depth + 1)?);
        }
        Ok(table)
    }

    fn count(&mut self, path: &str, values: usize) -> PyResult<()> {
        self.room(path, values)?;
        self.left -= values;
        Ok(())
    }

    fn room(&self, path: &str, values: usize) -> PyResult<()> {
        if values <= self.left {
            return Ok(());
        }
        Err(ScenarioError::new_err(format!(
            "{path} has more values than any scenario"
        )))
    }
}

/// A flag, a number or a text; nothing if it is something else.
fn plain(path: &str, found: &Bound<'_, PyAny>) -> PyResult<Option<Value>> {
    if found.is_instance_of::<PyBool>() {
        return Ok(Some(Value::Boolean(found.extract()?)));
    }
    if found.is_instance_of::<PyInt>() {
        let number = found.extract().map_err(|_| {
            let found = shown(found);
            ScenarioError::new_err(format!("{path} is {found}, but must fit 64 bits"))
        });
        return Ok(Some(Value::Integer(number?)));
    }
    if found.is_instance_of::<PyFloat>() {
        return Ok(Some(Value::Float(found.extract()?)));
    }
    if found.is_instance_of::<PyString>() {
        let text: String = found.extract().map_err(|_| not_text(path))?;
        return Ok(Some(Value::String(text)));
    }
    Ok(None)
}

fn not_text(path: &str) -> PyErr {
    ScenarioError::new_err(format!(
        "{path} has a key or a text that cannot be written in UTF-8"
    ))
}

/// The beginning of a value, on one line.
pub(crate) fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map(|text| text.to_string());
    let text = text.unwrap_or_else(|_| "what cannot be shown".to_owned());
    let line = |char: char| if char.is_control() { ' ' } else { char };
    text.chars().take(SHOWN_MAX).map(line).collect()
}

/// What a scenario that has no file is called, in errors and as its title.
const HERE: &str = "scenario";

/// A table in a list in a table has values at the fourth level, and positions are lists of lists.
const DEPTH_MAX: usize = 8;

/// Values of a scenario: all 10,000 points of a sweep, and thousands of positions, are far fewer.
const VALUES_MAX: usize = 1_000_000;

const SHOWN_MAX: usize = 80;
