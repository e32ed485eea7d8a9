//! Every key of a scenario file: its name, what it may be, its default, what it means.
//!
//! Place: the one table behind the reader, its error messages, the sweeps and
//! `docs/reference/scenarios.md`.

use super::error::{ScenarioError, shown};
use super::stack_keys::STACK_KEYS;
use super::tables::NODE_LAST;
pub(super) use super::tables::SECTIONS;
use toml::Value;

/// A key of a section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// As TOML; none: required, or absent by choice.
    pub(super) default: Option<&'static str>,
    pub(super) doc: &'static str,
    /// The key's option on a command line, where it has one.
    pub(super) flag: Option<Argument>,
    /// The only radio with which it means anything; none: it means something with each.
    pub(super) only: Option<RadioKind>,
    /// The part that a node needs to have for it to do anything; none: every node's will do.
    pub(super) needs: Option<Part>,
}

/// A node's part in a scenario, as far as keys ask for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// The node is an end of TCP connections.
    Ends,
    Sends,
    Receives,
    /// A path of TCP in the mesh ends here, the border router's included.
    Compresses,
    Relays,
    /// Relays, with a radio that can keep a frame.
    Keeps,
    /// Has two hops ahead of it, so that it can wait for the second one.
    Paces,
    /// Sleeps, and asks its parent at a fixed interval.
    AsksRegularly,
    /// Sleeps, and asks its parent when an answer is expected.
    TakesHints,
    Sleeps,
    /// Others sleep that may ask it for their packets.
    ServesSleepers,
    /// A node that sleeps, or its parent.
    SharesSleep,
}

/// The kinds of radio, as `radio.kind` names them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RadioKind {
    Ieee802154,
    Ble,
}

/// The option of a key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Argument {
    /// The option's name, without the dashes.
    pub(super) name: &'static str,
    /// The placeholder of its value in help, the choices divided by bars. Empty: the option has no
    /// value, and sets the contrary of the key's default.
    pub(super) value: &'static str,
    /// The option's help.
    pub(super) help: &'static str,
    /// The key's default as shown in help; an option that repeats it has no effect.
    pub(super) shown: Option<&'static str>,
    /// The largest whole number, where a file may have larger ones.
    pub(super) max: Option<i64>,
    /// The value is a multiple of this.
    pub(super) step: Option<f64>,
    /// The error for a value that the key may not have.
    pub(super) refusal: Option<&'static str>,
}

/// The type of a key's value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Text,
    /// A file, relative to the scenario's folder.
    File,
    Flag,
    Integer(i64, i64),
    Number(f64, f64),
    Choice(&'static [&'static str]),
    /// A list of `[x, y]` in metres.
    Positions,
    /// A list of `[from, to, gain in dB]`.
    Links,
    /// A list of node numbers.
    Nodes,
    /// "host", or the number of a mesh node.
    End,
}

/// A table of the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section {
    /// Empty for the top of the file.
    pub(super) name: &'static str,
    /// `[[name]]`, as often as wanted.
    pub(super) repeated: bool,
    pub(super) doc: &'static str,
    pub(super) keys: &'static [Key],
}

pub(super) const fn key(
    name: &'static str,
    kind: Kind,
    default: Option<&'static str>,
    doc: &'static str,
) -> Key {
    Key {
        name,
        kind,
        default,
        // A build that documents nothing has none of the text.
        doc: if cfg!(feature = "documentation") {
            doc
        } else {
            ""
        },
        flag: None,
        only: None,
        needs: None,
    }
}

use Kind::{Choice, End, File, Flag, Integer, Links, Nodes, Number, Positions, Text};

/// Keys that belong to all points of a sweep.
pub(super) const UNSWEPT: [&str; 4] = ["name", "seed", "seeds", "radio.kind"];

impl Section {
    /// The table of this name.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        SECTIONS.iter().find(|section| section.name == name)
    }

    /// The key of this name; `[[node]]` also has all of `[stack]`'s.
    pub(super) fn key(&self, name: &str) -> Option<&'static Key> {
        self.all_keys().find(|key| key.name == name)
    }

    /// All keys of the section.
    pub(super) fn all_keys(&self) -> impl Iterator<Item = &'static Key> {
        let borrowed: &[Key] = if self.name == "node" { STACK_KEYS } else { &[] };
        self.keys.iter().chain(borrowed)
    }

    /// The full name of a key in it, as sweeps have it.
    pub(super) fn path(&self, key: &str) -> String {
        if self.name.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.name)
        }
    }
}

impl Key {
    /// A key that Bluetooth LE has no use for.
    pub(super) const fn only_802_15_4(mut self) -> Self {
        self.only = Some(RadioKind::Ieee802154);
        self
    }

    /// A key that only Bluetooth LE has.
    pub(super) const fn only_ble(mut self) -> Self {
        self.only = Some(RadioKind::Ble);
        self
    }

    /// A key that does something only at nodes with this part.
    pub(super) const fn needs(mut self, part: Part) -> Self {
        self.needs = Some(part);
        self
    }

    /// The default as a value. A plan asks for a hundred of them: a whole reader of TOML for each
    /// would take most of its time, and the forms that defaults have are few.
    pub(super) fn default_value(&self) -> Option<Value> {
        let text = self.default?;
        if let Some(rest) = text.strip_prefix('"') {
            return rest.strip_suffix('"').map(Value::from);
        }
        match text {
            "true" => Some(Value::Boolean(true)),
            "false" => Some(Value::Boolean(false)),
            "[]" => Some(Value::Array(Vec::new())),
            _ if text.contains('.') => text.parse().ok().map(Value::Float),
            _ => text.parse().ok().map(Value::Integer),
        }
    }

    /// The value in the form the model has, if it is one this key may have.
    ///
    /// # Errors
    /// What is allowed, in words.
    pub(super) fn accept(&self, value: &Value) -> Result<Value, String> {
        self.kind.accept(value).ok_or_else(|| self.kind.allowed())
    }
}

impl Kind {
    /// Whether the key's value names a file to read.
    pub(super) fn is_file(self) -> bool {
        matches!(self, File)
    }

    pub(super) fn accept(self, value: &Value) -> Option<Value> {
        let whole = |value: &Value, min, max| {
            let number = value.as_integer()?;
            (min..=max)
                .contains(&number)
                .then_some(Value::Integer(number))
        };
        match self {
            Text | File => value.as_str().map(|_| value.clone()),
            Flag => value.as_bool().map(Value::Boolean),
            Integer(min, max) => whole(value, min, max),
            Number(min, max) => {
                let number = value.as_float().or(value.as_integer().map(|n| n as f64))?;
                (min..=max)
                    .contains(&number)
                    .then_some(Value::Float(number))
            }
            Choice(names) => names.contains(&value.as_str()?).then(|| value.clone()),
            Positions => list(value, |position| {
                let metre = |value: &Value| Number(-1e6, 1e6).accept(value);
                let pair = list(position, metre)?;
                (pair.as_array()?.len() == 2).then_some(pair)
            }),
            Links => list(value, |link| match &link.as_array()?[..] {
                [from, to, gain] => Some(Value::Array(vec![
                    whole(from, 0, NODE_LAST)?,
                    whole(to, 0, NODE_LAST)?,
                    Number(-1e3, 0.0).accept(gain)?,
                ])),
                _ => None,
            }),
            Nodes => list(value, |node| whole(node, 0, NODE_LAST)),
            End => match value {
                Value::String(text) => (text == HOST).then(|| value.clone()),
                _ => whole(value, LAST, NODE_LAST),
            },
        }
    }

    /// The allowed values, to follow "must be".
    pub(super) fn allowed(self) -> String {
        match self {
            Text => "text in quotes".to_owned(),
            File => "the name of a file in quotes".to_owned(),
            Flag => "true or false".to_owned(),
            Integer(min, i64::MAX) => format!("a whole number from {min} up"),
            Integer(min, max) => format!("a whole number from {min} to {max}"),
            Number(min, max) => format!("a number from {min} to {max}"),
            Choice(names) => {
                let names: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
                names.join(" or ")
            }
            Positions => "a list of [x, y] in metres".to_owned(),
            Links => "a list of [from, to, gain in dB, -1000 to 0]".to_owned(),
            Nodes => "a list of node numbers".to_owned(),
            End => "\"host\" or the number of a node".to_owned(),
        }
    }
}

/// [`Kind::End`]: the last node.
pub(super) const LAST: i64 = -1;
/// [`Kind::End`]: the wired host.
pub(super) const HOST: &str = "host";

fn list(value: &Value, accept: impl Fn(&Value) -> Option<Value>) -> Option<Value> {
    let items: Option<Vec<Value>> = value.as_array()?.iter().map(accept).collect();
    items.map(Value::Array)
}

/// The name among `known` that `unknown` was probably meant to be.
pub(super) fn nearest<'a>(unknown: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (strsim::jaro_winkler(unknown, name), name))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        // The first of equals: names are in the order of the documentation.
        .fold(None, |best: Option<(f64, &str)>, next| match best {
            Some(best) if best.0 >= next.0 => Some(best),
            _ => Some(next),
        })
        .map(|(_, name)| name)
}

/// The key of a full name, as in sweeps.
pub(super) fn find(path: &str) -> Option<(&'static Section, &'static Key)> {
    let (section, name) = path.rsplit_once('.').unwrap_or(("", path));
    let section = Section::named(section)?;
    Some((section, section.key(name)?))
}

/// All full names that a sweep may have.
pub(super) fn sweepable() -> impl Iterator<Item = String> {
    SECTIONS
        .iter()
        .filter(|section| section.name != "node")
        .flat_map(|section| section.keys.iter().map(|key| section.path(key.name)))
        .filter(|path| !UNSWEPT.contains(&path.as_str()))
}

/// The keys that can be swept, in a few words: those without a table, and the names of the tables.
pub(super) fn sweepable_by_table() -> String {
    let (plain, of_tables): (Vec<String>, Vec<String>) =
        sweepable().partition(|path| !path.contains('.'));
    let tables = of_tables.iter().filter_map(|path| path.split('.').next());
    let mut tables: Vec<String> = tables.map(|table| format!("{table}.…")).collect();
    tables.dedup();
    format!(
        "{}, and the keys {}, which `motet run --keys` lists",
        plain.join(", "),
        tables.join(", ")
    )
}

/// An unknown name, with the nearest known one.
pub(super) fn unknown<'a>(
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'a str> + Clone,
) -> ScenarioError {
    let nearest = nearest(name, known.clone());
    let name = shown(name);
    match nearest {
        Some(near) => ScenarioError::new(format!(
            "there is no {what} `{name}`, did you mean `{near}`?"
        )),
        None => {
            let all: Vec<&str> = known.collect();
            let (listed, rest) = all.split_at(all.len().min(LISTED_MAX));
            let more = match rest.len() {
                0 => String::new(),
                more => format!(" and {more} more, which `motet run --keys` lists"),
            };
            let listed = listed.join(", ");
            ScenarioError::new(format!("there is no {what} `{name}`, only {listed}{more}"))
        }
    }
}

/// Names that an error lists at most.
const LISTED_MAX: usize = 60;

/// Jaro and Winkler's likeness below which a guess would only confuse.
const LIKENESS_MIN: f64 = 0.75;
