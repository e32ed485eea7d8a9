//! The error of a scenario: one sentence.

use std::fmt;
use std::path::Path;

/// One sentence that names file, key, value and what is allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScenarioError {
    file: Option<String>,
    sentence: String,
    rule: Option<Rule>,
}

/// A rule that settings break together. Whoever has other names for settings than a file, as a
/// command line has, says it in those.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Rule {
    /// The radio is Bluetooth LE, and these keys are of IEEE 802.15.4.
    OfMesh(Vec<String>),
    /// The radio is not Bluetooth LE, and these keys are.
    OfBle(Vec<String>),
    /// `TCPlE` sets the connection interval, which is given besides.
    IntervalOfTcple,
    /// Relays are to forward without copies, and no radio can keep a frame while another comes.
    SharedBuffer,
    /// Something is asked of a radio that makes attempts by itself, and cannot do it.
    OwnAttempts,
    /// A time of the pace is set by hand, and the pace is measured.
    PaceByHand,
    /// A mote is to sleep, and its parent's radio cannot say that something waits.
    NoPending,
}

impl ScenarioError {
    pub(super) fn new(sentence: impl Into<String>) -> Self {
        Self {
            file: None,
            sentence: sentence.into(),
            rule: None,
        }
    }

    /// The same, of a rule that has a name.
    pub(super) fn by(mut self, rule: Rule) -> Self {
        self.rule = Some(rule);
        self
    }

    /// Which rule is broken, where it has a name.
    pub const fn rule(&self) -> Option<&Rule> {
        self.rule.as_ref()
    }

    /// The same, about the `number`th `[[section]]` of the file, counted from 1.
    pub(super) fn of_table(mut self, section: &str, number: usize) -> Self {
        self.sentence = format!("[[{section}]] {number}: {}", self.sentence);
        self
    }

    /// The same, about the `number`th `[[node]]` of the file, which has this id: the place of an
    /// entry alone reads as the number of a node.
    pub(super) fn of_node(mut self, number: usize, id: Option<usize>) -> Self {
        let id = id.map_or(String::new(), |id| format!(" (id {id})"));
        self.sentence = format!("[[node]] {number}{id}: {}", self.sentence);
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
            write!(f, "{}: ", escaped(file))?;
        }
        f.write_str(&escaped(&self.sentence))
    }
}

/// A part of a file, as an error shows it: its beginning, on one line.
pub(super) fn shown(what: impl fmt::Display) -> String {
    let text = escaped(&what.to_string());
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Without anything that breaks a line or speaks to a terminal.
fn escaped(text: &str) -> String {
    let is_plain = |c: char| c == '\'' || c == '"' || c == '\\';
    text.chars()
        .map(|c| match is_plain(c) {
            true => c.to_string(),
            false => c.escape_debug().to_string(),
        })
        .collect()
}

/// Characters of a key or a value: enough to find it by.
const SHOWN_MAX: usize = 80;

impl std::error::Error for ScenarioError {}
