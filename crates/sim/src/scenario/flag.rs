//! Keys as options of a command line: what `motet send` and `motet up` take beside a file.
//!
//! Place: a key's option stands in the table of keys, so that a new key becomes an option at once.
//! Left out: parsing a command line, and options that are no key.

use toml::Value;

use super::document::Document;
use super::keys::Kind::{self, Integer, Number};
use super::keys::{Argument, Key, SECTIONS, Section};

/// A key that a command line may set by an option.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    section: &'static Section,
    key: &'static Key,
    flag: Argument,
}

impl Key {
    /// The key with an option.
    pub(super) const fn flag(
        mut self,
        name: &'static str,
        value: &'static str,
        help: &'static str,
    ) -> Self {
        self.flag = Some(Argument {
            name,
            value,
            help,
            shown: None,
            max: None,
            step: None,
            refusal: None,
        });
        self
    }

    /// The key with an option whose help shows the key's default.
    pub(super) const fn showing(mut self, default: &'static str) -> Self {
        if let Some(flag) = &mut self.flag {
            flag.shown = Some(default);
        }
        self
    }

    /// The key with an option that takes no larger number.
    pub(super) const fn up_to(mut self, max: i64) -> Self {
        if let Some(flag) = &mut self.flag {
            flag.max = Some(max);
        }
        self
    }

    /// The key with an option that takes multiples of this number.
    pub(super) const fn in_steps(mut self, step: f64) -> Self {
        if let Some(flag) = &mut self.flag {
            flag.step = Some(step);
        }
        self
    }

    /// The key with an option that says this of a wrong value.
    pub(super) const fn refusing(mut self, refusal: &'static str) -> Self {
        if let Some(flag) = &mut self.flag {
            flag.refusal = Some(refusal);
        }
        self
    }
}

impl Setting {
    /// All of them, in the order of the documentation.
    pub fn all() -> impl Iterator<Item = Self> {
        let keys = SECTIONS
            .iter()
            .flat_map(|section| section.keys.iter().map(move |key| (section, key)));
        keys.filter_map(|(section, key)| {
            let flag = key.flag?;
            Some(Self { section, key, flag })
        })
    }

    /// The key's full name.
    pub fn path(&self) -> String {
        self.section.path(self.key.name)
    }

    /// The option's name, without the dashes.
    pub const fn name(&self) -> &'static str {
        self.flag.name
    }

    /// The key's help.
    pub const fn help(&self) -> &'static str {
        self.flag.help
    }

    /// The placeholder of its value in help; none where it has no value.
    pub fn value_name(&self) -> Option<&'static str> {
        Some(self.flag.value).filter(|value| !value.is_empty())
    }

    /// The names that it may have for a value: those that stand for the value in help, else all of
    /// the key. None where its values have no names.
    pub fn choices(&self) -> Option<Vec<&'static str>> {
        let Kind::Choice(all) = self.key.kind else {
            return None;
        };
        Some(match self.flag.value.contains('|') {
            true => self.flag.value.split('|').collect(),
            false => all.to_vec(),
        })
    }

    /// The default that help shows.
    pub const fn shown_default(&self) -> Option<&'static str> {
        self.flag.shown
    }

    /// The key's value for the text of an option.
    ///
    /// # Errors
    /// What the text must be.
    pub fn read(&self, text: &str) -> Result<Value, String> {
        let kind = match (self.key.kind, self.flag.max) {
            (Integer(min, max), Some(lower)) => Integer(min, max.min(lower)),
            (kind, _) => kind,
        };
        let value = match kind {
            Integer(..) => text.parse().ok().map(Value::Integer),
            Number(..) => text.parse().ok().map(Value::Float),
            _ => Some(Value::from(text)),
        };
        let accepted = value.and_then(|value| kind.accept(&value));
        let accepted = accepted.filter(|value| self.is_in_steps(value));
        accepted.ok_or_else(|| match (self.flag.refusal, kind) {
            (Some(refusal), _) => refusal.to_owned(),
            (None, Number(0.0, 1.0)) => "a probability lies between 0 and 1".to_owned(),
            (None, kind) => format!("it must be {}", kind.allowed()),
        })
    }

    fn is_in_steps(&self, value: &Value) -> bool {
        let steps = self.flag.step.zip(value.as_float());
        steps.is_none_or(|(step, value)| (value / step).fract() == 0.0)
    }

    /// The contrary of the key's default.
    fn contrary(&self) -> Value {
        let default = self.key.default_value();
        Value::Boolean(default.and_then(|value| value.as_bool()) != Some(true))
    }
}

impl Document {
    /// Sets the key of an option, from its text, or for an option without a value to the contrary
    /// of the key's default. An option that only repeats the default shown in help sets nothing.
    ///
    /// # Errors
    /// As [`Setting::read`].
    pub fn say(&mut self, setting: &Setting, text: Option<&str>) -> Result<(), String> {
        let value = match text {
            Some(text) => setting.read(text)?,
            None => setting.contrary(),
        };
        let shown = setting.flag.shown.and(setting.key.default_value());
        if shown.as_ref() == Some(&value) {
            return Ok(());
        }
        self.set(&setting.path(), value)
            .map_err(|error| error.to_string())
    }
}
