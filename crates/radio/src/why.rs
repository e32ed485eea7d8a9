//! A system's error within a sentence.

use std::{fmt, io};

/// What the system says, without its number and without a capital.
pub(crate) struct Why<'a>(pub(crate) &'a io::Error);

impl fmt::Display for Why<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        let text = text.split(" (os error").next().unwrap_or_default();
        let mut chars = text.chars();
        let first = chars.next().map(|first| first.to_lowercase().to_string());
        write!(f, "{}{}", first.unwrap_or_default(), chars.as_str())
    }
}
