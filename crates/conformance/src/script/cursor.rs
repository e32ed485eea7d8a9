//! Walking over a script's text, character by character, with a position for error messages.
//!
//! The language's tokens depend on their context (`S.` is flags, `0...0.2` two times), so there
//! is no list of tokens: each reader takes what its context allows.

use super::{Position, SyntaxError};

/// A place in a text.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    text: &'a str,
    offset: usize,
    line: usize,
    line_start: usize,
}

impl<'a> Cursor<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self {
            text,
            offset: 0,
            line: 1,
            line_start: 0,
        }
    }

    pub(super) const fn position(&self) -> Position {
        Position {
            line: self.line,
            column: self.offset - self.line_start + 1,
        }
    }

    pub(super) const fn offset(&self) -> usize {
        self.offset
    }

    /// The text from `offset` up to here.
    pub(super) fn since(&self, offset: usize) -> &'a str {
        self.text.get(offset..self.offset).unwrap_or_default()
    }

    pub(super) fn rest(&self) -> &'a str {
        self.text.get(self.offset..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.offset += next.len_utf8();
        if next == '\n' {
            self.line += 1;
            self.line_start = self.offset;
        }
        Some(next)
    }

    /// Skips blanks and comments.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            if rest.starts_with(char::is_whitespace) {
                self.next();
            } else if rest.starts_with("//") || rest.starts_with('#') {
                while self.peek().is_some_and(|c| c != '\n') {
                    self.next();
                }
            } else if rest.starts_with("/*") {
                let len = rest.find("*/").map_or(rest.len(), |at| at + 2);
                let end = self.offset + len;
                while self.offset < end {
                    self.next();
                }
            } else {
                return;
            }
        }
    }

    pub(super) fn is_at_end(&mut self) -> bool {
        self.skip_blanks();
        self.rest().is_empty()
    }

    /// Whether `token` follows; blanks before it are skipped.
    pub(super) fn sees(&mut self, token: &str) -> bool {
        self.skip_blanks();
        self.rest().starts_with(token)
    }

    /// Takes `token` if it follows.
    pub(super) fn take(&mut self, token: &str) -> bool {
        let sees = self.sees(token);
        if sees {
            for _ in token.chars() {
                self.next();
            }
        }
        sees
    }

    pub(super) fn expect(&mut self, token: &str) -> Result<(), SyntaxError> {
        match self.take(token) {
            true => Ok(()),
            false => Err(self.expected(&format!("`{token}`"))),
        }
    }

    /// Takes characters as long as `pleases` holds of them.
    pub(super) fn take_while(&mut self, pleases: impl Fn(char) -> bool) -> &'a str {
        let start = self.offset;
        while self.peek().is_some_and(&pleases) {
            self.next();
        }
        self.since(start)
    }

    /// A name, if one follows.
    pub(super) fn word(&mut self) -> Option<&'a str> {
        self.skip_blanks();
        if !self.peek().is_some_and(is_word_start) {
            return None;
        }
        Some(self.take_while(is_word))
    }

    /// Takes the name `word`, whole, if it follows.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let before = *self;
        if self.word() == Some(word) {
            return true;
        }
        *self = before;
        false
    }

    /// An unsigned number up to `max`, decimal or hexadecimal.
    pub(super) fn number(&mut self, what: &str, max: u64) -> Result<u64, SyntaxError> {
        self.skip_blanks();
        let before = *self;
        let digits = self.take_while(|c| c.is_ascii_alphanumeric());
        let value = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => digits.parse(),
        };
        match value {
            Ok(value) if value <= max => Ok(value),
            Ok(value) => Err(before.error(&format!("{what} {value} is above {max}"))),
            Err(_) => Err(before.expected(what)),
        }
    }

    /// The text between here (behind the opening mark) and `end`, which is taken too.
    pub(super) fn until(&mut self, end: &str) -> Result<&'a str, SyntaxError> {
        let before = *self;
        let Some(len) = self.rest().find(end) else {
            return Err(before.error(&format!("expected a closing `{end}` before the end")));
        };
        let text = self.rest().get(..len).unwrap_or_default();
        let stop = self.offset + len + end.len();
        while self.offset < stop {
            self.next();
        }
        Ok(text)
    }

    pub(super) fn error(&self, message: &str) -> SyntaxError {
        SyntaxError {
            at: self.position(),
            message: message.to_owned(),
        }
    }

    /// An error: `what` should be here.
    pub(super) fn expected(&self, what: &str) -> SyntaxError {
        let mut here = *self;
        here.skip_blanks();
        let found: String = here
            .rest()
            .chars()
            .take_while(|c| !c.is_whitespace())
            .take(20)
            .collect();
        let found = match found.is_empty() {
            true => "the end of the script".to_owned(),
            false => format!("`{found}`"),
        };
        here.error(&format!("expected {what}, found {found}"))
    }
}

fn is_word_start(c: char) -> bool {
    c.is_ascii_alphabetic() || c == '_'
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}
