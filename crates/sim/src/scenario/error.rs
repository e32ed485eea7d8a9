//! What is wrong with a scenario: one sentence.

use std::fmt;
use std::path::Path;

/// One sentence that names file, key, value and what is allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScenarioError {
    file: Option<String>,
    sentence: String,
}

impl ScenarioError {
    pub(super) fn new(sentence: impl Into<String>) -> Self {
        Self {
            file: None,
            sentence: sentence.into(),
        }
    }

    /// The same, about the `number`th `[[section]]` of the file, counted from 1.
    pub(super) fn of_table(mut self, section: &str, number: usize) -> Self {
        self.sentence = format!("[[{section}]] {number}: {}", self.sentence);
        self
    }

    /// The same, about `file` unless it already speaks of another one.
    pub(super) fn within(mut self, file: &Path) -> Self {
        self.file.get_or_insert_with(|| file.display().to_string());
        self
    }
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        f.write_str(&self.sentence)
    }
}

impl std::error::Error for ScenarioError {}
