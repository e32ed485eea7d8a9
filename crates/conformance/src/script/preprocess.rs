//! Conditional lines: `#ifdef STANDARD`, `#else`, `#endif`.
//!
//! Lines that do not count become empty, so that positions stay. Any other `#` starts a
//! comment, as it does in the language itself.

use super::{Position, SyntaxError};

/// Names that count as defined: where a suite has several variants, ours is the standard's.
const DEFINED: [&str; 1] = ["STANDARD"];

/// `text` with the lines that do not count left empty.
pub(super) fn preprocess(text: &str) -> Result<String, SyntaxError> {
    // Whether the lines of each open condition count, and where it began.
    let mut open: Vec<(bool, usize)> = Vec::new();
    let mut out = String::with_capacity(text.len());
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let at = Position {
            line: index + 1,
            column: 1 + line.len() - line.trim_start().len(),
        };
        let mut words = line.split_whitespace();
        let directive = words.next().unwrap_or("");
        let error = |message: &str| SyntaxError {
            at,
            message: message.to_owned(),
        };
        match directive {
            "#ifdef" | "#ifndef" => {
                let name = words
                    .next()
                    .ok_or_else(|| error("expected a name behind the directive"))?;
                open.push((DEFINED.contains(&name) == (directive == "#ifdef"), at.line));
            }
            "#else" => match open.last_mut() {
                Some((counts, _)) => *counts = !*counts,
                None => return Err(error("#else without #ifdef")),
            },
            "#endif" => {
                open.pop().ok_or_else(|| error("#endif without #ifdef"))?;
            }
            "#if" | "#elif" => return Err(error("expected #ifdef, #ifndef, #else or #endif")),
            _ if open.iter().all(|(counts, _)| *counts) => {
                out.push_str(line);
                continue;
            }
            _ => {}
        }
        out.push('\n');
    }
    match open.pop() {
        Some((_, line)) => Err(SyntaxError {
            at: Position { line, column: 1 },
            message: "#ifdef without #endif".to_owned(),
        }),
        None => Ok(out),
    }
}
