//! A scenario in keys and values: every key known, every value one that its key may have.
//!
//! Place: a file is read into one; a command line and an experiment put one together key by key.
//! Whoever made it, `resolve` makes of it what is run.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::bluetooth;
use super::defaults::{section, set};
use super::error::{ScenarioError, shown};
use super::keys::{self, Section};
use super::made;
use super::model::Scenario;
use super::relevance;
use super::sources::{Files, ScenarioFiles, Source, read_text};
use crate::net::network::BleOptions;

/// A scenario, checked key by key; defaults are not filled in yet.
#[derive(Clone, Debug)]
pub struct Document {
    pub(super) file: PathBuf,
    pub(super) table: Table,
    /// Keys to sweep over, with their values, in the order of the file.
    pub(super) sweep: Vec<(String, Vec<Value>)>,
    /// The files that the document names and the caller gave.
    pub(super) given: Files,
    /// The document comes from a program and not from a file. It may have no flow, and keys without
    /// effect, because the program itself sends.
    pub(super) is_made: bool,
    /// The first refused value among those set by [`Self::with`].
    refused: Option<ScenarioError>,
}

impl Default for Document {
    fn default() -> Self {
        Self::new()
    }
}

/// Documents that a program puts together.
impl Document {
    /// A document without any key.
    pub fn new() -> Self {
        Self {
            file: PathBuf::new(),
            table: Table::new(),
            sweep: Vec::new(),
            given: Files::new(),
            is_made: true,
            refused: None,
        }
    }

    /// Sets a key, by its full name; `flow.KEY` sets the key of all flows.
    ///
    /// # Errors
    /// There is no such key, or it may not have this value.
    pub fn set(&mut self, path: &str, value: impl Into<Value>) -> Result<(), ScenarioError> {
        let (section, name) = path.rsplit_once('.').unwrap_or(("", path));
        let Some(section) = Section::named(section) else {
            return Err(ScenarioError::new(format!(
                "there is no table [{}]",
                shown(section)
            )));
        };
        let value = check_value(section, name, &value.into())?;
        set(&mut self.table, path, &value);
        Ok(())
    }

    /// The document with this key set; [`Self::scenario`] reports the error if the key may not have
    /// the value.
    #[must_use]
    pub fn with(mut self, path: &str, value: impl Into<Value>) -> Self {
        if let Err(error) = self.set(path, value) {
            self.refused.get_or_insert(error);
        }
        self
    }

    /// The document with one more flow; [`Self::with`] sets its keys.
    #[must_use]
    pub fn with_flow(mut self) -> Self {
        let flows = self.table.entry("flow");
        if let Value::Array(flows) = flows.or_insert_with(|| Value::Array(Vec::new())) {
            flows.push(Value::Table(Table::new()));
        }
        self
    }

    /// The value of a key, by its full name; none where it has its default.
    pub fn get(&self, path: &str) -> Option<&Value> {
        let (section, name) = path.rsplit_once('.').unwrap_or(("", path));
        match section {
            "" => self.table.get(name),
            section => self.table.get(section)?.as_table()?.get(name),
        }
    }

    /// The document with nothing said of this key.
    #[must_use]
    pub fn without(mut self, path: &str) -> Self {
        if let Some((section, name)) = path.rsplit_once('.')
            && let Some(table) = self.table.get_mut(section).and_then(Value::as_table_mut)
        {
            table.remove(name);
        }
        self
    }

    /// The scenario that is run: every default filled in.
    ///
    /// # Errors
    /// A value that [`Self::with`] was refused; keys that contradict each other.
    pub fn scenario(&self) -> Result<Scenario, ScenarioError> {
        if let Some(refused) = &self.refused {
            return Err(refused.clone());
        }
        made::check(self)?;
        bluetooth::check(self)?;
        made::check_buffers(self)?;
        Scenario::resolve(self, &[])
    }
}

/// Parts of a document alone.
impl Document {
    /// Bluetooth LE as these keys describe it, whatever the radio is.
    ///
    /// # Errors
    /// As [`Self::scenario`].
    pub fn ble(&self) -> Result<BleOptions, ScenarioError> {
        let document = self.clone().with("radio.kind", bluetooth::BLE);
        bluetooth::options(&section(&document.table, "radio")?)
    }
}

/// Documents that are files.
impl Document {
    pub(super) fn read(file: &Path) -> Result<Self, ScenarioError> {
        let text = read_text(file, Source::Scenario)?;
        Self::parse(&text, file).map_err(|error| error.within(file))
    }

    pub(super) fn parse(text: &str, file: &Path) -> Result<Self, ScenarioError> {
        let raw = text
            .parse()
            .map_err(|error: toml::de::Error| syntax(text, &error))?;
        Self::of_table(raw, file)
    }

    pub(super) fn of_table(mut raw: Table, file: &Path) -> Result<Self, ScenarioError> {
        let sweep = match raw.remove("sweep") {
            None => Vec::new(),
            Some(Value::Table(sweep)) => check_sweep("", sweep)?,
            Some(_) => return Err(ScenarioError::new("sweep must be a table, write [sweep]")),
        };
        Ok(Self {
            file: file.to_owned(),
            table: check_top(raw)?,
            sweep,
            given: Files::new(),
            is_made: false,
            refused: None,
        })
    }

    /// Checks that every key has an effect beside the others.
    pub(super) fn check(&self) -> Result<(), ScenarioError> {
        relevance::check(self)?;
        bluetooth::check(self)
    }

    /// Sweeps over these keys, too; they replace those of the same name.
    pub(super) fn sweep_over(&mut self, more: Table) -> Result<(), ScenarioError> {
        for (path, values) in check_sweep("", more)? {
            match self.sweep.iter_mut().find(|(swept, _)| *swept == path) {
                Some((_, old)) => *old = values,
                None => self.sweep.push((path, values)),
            }
        }
        Ok(())
    }
}

impl Document {
    /// The same, with these files given.
    pub(super) fn with_files(mut self, given: Files) -> Self {
        self.keep(given);
        self
    }

    /// Takes these files for those that it names.
    pub(super) fn keep(&mut self, given: Files) {
        self.given = given;
    }

    /// Where the files are that it names.
    pub(super) fn files(&self) -> ScenarioFiles<'_> {
        ScenarioFiles {
            folder: self.file.parent().unwrap_or(Path::new(".")),
            given: &self.given,
        }
    }

    /// The files on disk that it names, in any point of its sweep.
    pub(super) fn files_on_disk(&self) -> Vec<PathBuf> {
        let files = self.files();
        let names = self.names().into_iter();
        let on_disk = names.filter(|name| !files.given.has(name));
        on_disk.map(|name| files.folder.join(name)).collect()
    }

    /// The files that it names in any point of its sweep, as it names them.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names = names_in(&self.table);
        let is_file = |path: &str| keys::find(path).is_some_and(|(_, key)| key.kind.is_file());
        let swept = self.sweep.iter().filter(|(path, _)| is_file(path));
        let values = swept.flat_map(|(_, values)| values);
        names.extend(values.filter_map(|value| value.as_str().map(str::to_owned)));
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The document with its sweep and all that a command line has changed, as TOML.
    pub(super) fn text(&self) -> String {
        let sweep = self.sweep.iter().cloned();
        let sweep: Table = sweep
            .map(|(path, values)| (path, Value::Array(values)))
            .collect();
        let mut table = self.table.clone();
        if !sweep.is_empty() {
            table.insert("sweep".to_owned(), Value::Table(sweep));
        }
        table.to_string()
    }
}

/// The files that the keys of a scenario name.
pub(super) fn names_in(table: &Table) -> Vec<String> {
    let mut names = Vec::new();
    for section in keys::SECTIONS {
        let tables: Vec<&Table> = match table.get(section.name) {
            Some(Value::Array(all)) => all.iter().filter_map(Value::as_table).collect(),
            given => given.and_then(Value::as_table).into_iter().collect(),
        };
        for key in section.keys.iter().filter(|key| key.kind.is_file()) {
            let found = tables.iter().filter_map(|table| table.get(key.name));
            names.extend(found.filter_map(|value| value.as_str().map(str::to_owned)));
        }
    }
    names
}

fn syntax(text: &str, error: &toml::de::Error) -> ScenarioError {
    let line = error.span().map_or(1, |span| {
        let before = text.get(..span.start).unwrap_or(text);
        before.matches('\n').count() + 1
    });
    let message = error.message().replace('\n', ", ");
    let message = shown(&message);
    ScenarioError::new(format!("line {line} is not TOML: {message}"))
}

fn check_top(raw: Table) -> Result<Table, ScenarioError> {
    let mut checked = Table::new();
    for (name, value) in raw {
        let kept = match (Section::named(&name), value) {
            (Some(section), Value::Table(table)) if !section.repeated => {
                Value::Table(check_section(section, table)?)
            }
            (Some(section), Value::Array(tables)) if section.repeated => {
                let tables: Result<Vec<Value>, ScenarioError> = (1..)
                    .zip(tables)
                    .map(|(number, table)| match table {
                        Value::Table(table) => {
                            let id = id_of(&table);
                            let of_entry = |error: ScenarioError| match section.name {
                                "node" => error.of_node(number, id),
                                name => error.of_table(name, number),
                            };
                            check_section(section, table)
                                .map(Value::Table)
                                .map_err(of_entry)
                        }
                        _ => Err(not_a_table(section)),
                    })
                    .collect();
                Value::Array(tables?)
            }
            (Some(section), _) => return Err(not_a_table(section)),
            (None, value) => check_value(top(), &name, &value)?,
        };
        checked.insert(name, kept);
    }
    Ok(checked)
}

/// The id of a `[[node]]`, where it has a legal one.
pub(super) fn id_of(node: &Table) -> Option<usize> {
    usize::try_from(node.get("id")?.as_integer()?).ok()
}

fn not_a_table(section: &Section) -> ScenarioError {
    let name = section.name;
    ScenarioError::new(if section.repeated {
        format!("{name} must be a list of tables, write [[{name}]]")
    } else {
        format!("{name} must be a table, write [{name}]")
    })
}

fn check_section(section: &Section, table: Table) -> Result<Table, ScenarioError> {
    table
        .into_iter()
        .map(|(name, value)| Ok((name.clone(), check_value(section, &name, &value)?)))
        .collect()
}

/// The value of a key in the form the model has.
pub(super) fn check_value(
    section: &Section,
    name: &str,
    value: &Value,
) -> Result<Value, ScenarioError> {
    let Some(key) = section.key(name) else {
        return Err(unknown_key(section, name));
    };
    key.accept(value).map_err(|allowed| {
        let path = section.path(name);
        let value = shown(value);
        ScenarioError::new(format!("{path} is {value}, but must be {allowed}"))
    })
}

/// The value of a key that stands above all tables, in the form the model has.
pub(super) fn check_top_value(name: &str, value: &Value) -> Result<Value, ScenarioError> {
    check_value(top(), name, value)
}

fn unknown_key(section: &Section, name: &str) -> ScenarioError {
    if section.name.is_empty() {
        let sections = keys::SECTIONS.iter().map(|section| section.name);
        let known = section.all_keys().map(|key| key.name);
        let all = known.chain(sections.filter(|name| !name.is_empty()));
        let all: Vec<&str> = all.chain(["sweep"]).collect();
        return keys::unknown("key", name, all.into_iter());
    }
    let known: Vec<&str> = section.all_keys().map(|key| key.name).collect();
    let what = format!("key in [{}] called", section.name);
    keys::unknown(&what, name, known.into_iter())
}

/// `[sweep]`: dotted keys, quoted or not, each with a list of values.
fn check_sweep(prefix: &str, sweep: Table) -> Result<Vec<(String, Vec<Value>)>, ScenarioError> {
    let mut all = Vec::new();
    for (name, value) in sweep {
        let path = format!("{prefix}{name}");
        match value {
            Value::Table(inner) => all.extend(check_sweep(&format!("{path}."), inner)?),
            Value::Array(values) => all.push((path.clone(), check_values(&path, &values)?)),
            other => {
                return Err(ScenarioError::new(format!(
                    "sweep.{} is {}, but must be a list of values",
                    shown(path),
                    shown(other)
                )));
            }
        }
    }
    Ok(all)
}

fn check_values(path: &str, values: &[Value]) -> Result<Vec<Value>, ScenarioError> {
    let found = keys::find(path).filter(|(section, _)| section.name != "node");
    let Some((section, key)) = found else {
        let known: Vec<String> = keys::sweepable().collect();
        if keys::nearest(path, known.iter().map(String::as_str)).is_none() {
            return Err(ScenarioError::new(format!(
                "there is no key to sweep called `{}`, only {}",
                shown(path),
                keys::sweepable_by_table()
            )));
        }
        return Err(keys::unknown(
            "key to sweep called",
            path,
            known.iter().map(String::as_str),
        ));
    };
    if keys::UNSWEPT.contains(&path) {
        return Err(ScenarioError::new(format!(
            "{path} cannot be swept: seed and seeds run every point, name is the title of all, and each \
             radio.kind needs keys of its own"
        )));
    }
    if values.is_empty() {
        return Err(ScenarioError::new(format!(
            "sweep.{path} is an empty list, but must have at least one value"
        )));
    }
    values
        .iter()
        .map(|value| check_value(section, key.name, value))
        .collect()
}

fn top() -> &'static Section {
    &keys::SECTIONS[0]
}
