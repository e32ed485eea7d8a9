//! What Python has, as a scenario: a path, a TOML text, or a dict.

use std::collections::BTreeMap;
use std::path::Path;

use motet_lab::scenario::{Files, Overrides, Plan, ScenarioError as Wrong};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
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
    let files = files
        .into_iter()
        .fold(Files::new(), |files, (name, bytes)| files.with(name, bytes));
    let py = source.py();
    let pool = pool::own()?;
    let read = |make: Box<dyn FnOnce() -> Result<Plan, Wrong> + Send>| {
        // A matrix of thousands of nodes takes seconds: other threads of Python go on.
        py.detach(|| pool.install(make))
    };
    let plan = match kind {
        "path" => {
            let path: String = source.extract()?;
            read(Box::new(move || {
                Plan::read_with(Path::new(&path), files, overrides)
            }))
        }
        "text" => {
            let text: String = source.extract()?;
            read(Box::new(move || {
                Plan::parse_with(&text, Path::new(HERE), files, overrides)
            }))
        }
        _ => {
            let table = table(source.cast::<PyDict>()?)?;
            read(Box::new(move || {
                Plan::of_table(table, Path::new(HERE), files, overrides)
            }))
        }
    };
    plan.map_err(|error| ScenarioError::new_err(error.to_string()))
}

/// A number that replaces one of the scenario's.
pub(crate) fn whole(name: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<u64>> {
    let Some(value) = value else { return Ok(None) };
    value.extract().map(Some).map_err(|_| {
        let value = shown(value);
        ScenarioError::new_err(format!(
            "{name} is {value}, but must be a whole number, 0 or more"
        ))
    })
}

fn table(dict: &Bound<'_, PyDict>) -> PyResult<Table> {
    match value("scenario", dict, 0)? {
        Value::Table(table) => Ok(table),
        _ => Err(ScenarioError::new_err("a scenario must be a dict")),
    }
}

/// The value that a key has, `path` from the top.
fn value(path: &str, found: &Bound<'_, PyAny>, depth: usize) -> PyResult<Value> {
    if depth > DEPTH_MAX {
        return Err(ScenarioError::new_err(format!(
            "{path} is deeper than any key of a scenario"
        )));
    }
    if found.is_instance_of::<PyBool>() {
        return Ok(Value::Boolean(found.extract()?));
    }
    if found.is_instance_of::<PyInt>() {
        return found.extract().map(Value::Integer).map_err(|_| {
            let found = shown(found);
            ScenarioError::new_err(format!("{path} is {found}, but must fit 64 bits"))
        });
    }
    if found.is_instance_of::<PyFloat>() {
        return Ok(Value::Float(found.extract()?));
    }
    if found.is_instance_of::<PyString>() {
        let text: String = found.extract().map_err(|_| not_text(path))?;
        return Ok(Value::String(text));
    }
    if let Ok(dict) = found.cast::<PyDict>() {
        let mut table = Table::new();
        for (key, inner) in dict {
            let key: String = key.extract().map_err(|_| not_text(path))?;
            let path = match depth {
                0 => key.clone(),
                _ => format!("{path}.{key}"),
            };
            table.insert(key, value(&path, &inner, depth + 1)?);
        }
        return Ok(Value::Table(table));
    }
    if found.is_instance_of::<PyList>() || found.is_instance_of::<PyTuple>() {
        let items = found.try_iter()?;
        let items = items.map(|item| value(path, &item?, depth + 1));
        return Ok(Value::Array(items.collect::<PyResult<_>>()?));
    }
    // What numpy calls a number or an array has these.
    for name in ["tolist", "__index__", "__fspath__"] {
        if let Ok(plain) = found.call_method0(name) {
            return value(path, &plain, depth + 1);
        }
    }
    let kind = found.get_type().name()?;
    Err(ScenarioError::new_err(format!(
        "{path} is of type {kind}, but must be a number, a text, a flag, a list or a dict; leave out what has no value"
    )))
}

fn not_text(path: &str) -> PyErr {
    ScenarioError::new_err(format!("{path} has a key or a text that is none in UTF-8"))
}

/// The beginning of a value, on one line.
fn shown(value: &Bound<'_, PyAny>) -> String {
    let text = value.repr().map(|text| text.to_string());
    let text = text.unwrap_or_else(|_| "what cannot be shown".to_owned());
    let beginning: String = text.chars().take(SHOWN_MAX).collect();
    beginning.escape_debug().to_string()
}

/// What a scenario that has no file is called, in errors and as its title.
const HERE: &str = "scenario";

/// A table in a list in a table has values at the fourth level, and positions are lists of lists.
const DEPTH_MAX: usize = 8;

const SHOWN_MAX: usize = 80;
