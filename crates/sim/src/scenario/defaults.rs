//! Tables of a checked file: defaults filled in, swept values set.

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::error::ScenarioError;
use super::keys::{SECTIONS, Section};
use super::typed::typed;

/// A table with its defaults, as its type.
pub(super) fn section<T: DeserializeOwned>(table: &Table, name: &str) -> Result<T, ScenarioError> {
    into(name, filled(table, name)?)
}

pub(super) fn into<T: DeserializeOwned>(name: &str, table: Table) -> Result<T, ScenarioError> {
    // Every value has been checked. An error here means that the table of keys is wrong, for which
    // there is a test.
    typed(table).map_err(|error| ScenarioError::new(format!("[{name}] cannot be used: {error}")))
}

pub(super) fn filled(table: &Table, name: &str) -> Result<Table, ScenarioError> {
    let Some(section) = Section::named(name) else {
        return Err(ScenarioError::new(format!("there is no table [{name}]")));
    };
    let given = if name.is_empty() {
        Some(table)
    } else {
        table.get(name).and_then(Value::as_table)
    };
    Ok(fill(section, given.cloned().unwrap_or_default()))
}

pub(super) fn fill(section: &Section, mut table: Table) -> Table {
    for key in section.keys {
        if table.contains_key(key.name) {
            continue;
        }
        let default = key.default_value();
        if let Some(default) = default.and_then(|value| key.accept(&value).ok()) {
            table.insert(key.name.to_owned(), default);
        }
    }
    table
}

pub(super) fn repeated(table: &Table, name: &str) -> Vec<Table> {
    let tables = table.get(name).and_then(Value::as_array);
    tables
        .into_iter()
        .flatten()
        .filter_map(|table| table.as_table().cloned())
        .collect()
}

/// Sets a key by its full name; `flow.KEY` in all flows. Alternatives of a topology exclude
/// each other, hence a swept one replaces what the file has.
pub(super) fn set(table: &mut Table, path: &str, value: &Value) {
    let Some((section, name)) = path.rsplit_once('.') else {
        table.insert(path.to_owned(), value.clone());
        return;
    };
    let repeated = SECTIONS
        .iter()
        .any(|known| known.name == section && known.repeated);
    let entry = table.entry(section).or_insert_with(|| {
        if repeated {
            Value::Array(Vec::new())
        } else {
            Value::Table(Table::new())
        }
    });
    match entry {
        Value::Table(inner) => {
            inner.insert(name.to_owned(), value.clone());
        }
        Value::Array(all) => {
            for inner in all.iter_mut().filter_map(Value::as_table_mut) {
                inner.insert(name.to_owned(), value.clone());
            }
        }
        _ => {}
    }
}
