//! The keys of a scenario for people: the page of the reference, drawn for a terminal.
//!
//! Place: `motet run --keys`. The lab has the page as Markdown.

use crate::error::Error;
use crate::grid::{columns, folded};
use crate::output::{self, BOLD, DIM};

/// Prints the page.
pub(super) fn print(markdown: &str) -> Result<(), Error> {
    lines(markdown, columns()).iter().try_for_each(output::line)
}

/// The page's lines, at most `width` columns wide.
fn lines(markdown: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut paragraph = String::new();
    let mut is_code = false;
    for line in markdown.lines().chain([""]) {
        let is_prose = !is_code && !line.is_empty() && !line.starts_with(['#', '|', '<', '`']);
        if is_prose || !is_code && line.starts_with('`') && !line.starts_with("```") {
            let gap = if paragraph.is_empty() { "" } else { " " };
            paragraph = format!("{paragraph}{gap}{}", plain(line));
            continue;
        }
        if !paragraph.is_empty() {
            lines.extend(folded(&std::mem::take(&mut paragraph), width, 0));
        }
        match line {
            _ if line.starts_with("```") => is_code = !is_code,
            _ if is_code => lines.push(format!("    {line}")),
            _ if line.starts_with('<') || line.starts_with("|--") => {}
            _ if line.starts_with('|') => lines.extend(key(line, width)),
            _ if line.starts_with('#') => {
                let title = plain(line.trim_start_matches(['#', ' ']));
                lines.push(format!("{BOLD}{title}{BOLD:#}"));
            }
            _ if lines.last().is_some_and(String::is_empty) => {}
            _ => lines.push(String::new()),
        }
    }
    lines
}

/// A key: its name, what it may be and its default, then what it means.
fn key(row: &str, width: usize) -> Vec<String> {
    let row = row.trim_start_matches("| ").trim_end_matches(" |");
    let cells: Vec<String> = row.splitn(4, " | ").map(plain).collect();
    let [name, value, default, meaning] = &cells[..] else {
        return Vec::new();
    };
    // The heads of the table say nothing here.
    if name == "key" {
        return Vec::new();
    }
    let default = match default.trim() {
        "" => String::new(),
        default => format!("; {default} by default"),
    };
    let mut lines = folded(&format!("{name}  {value}{default}"), width, INDENT);
    if let Some(first) = lines.first_mut() {
        let rest = first.strip_prefix(name.as_str()).unwrap_or_default();
        *first = format!("{BOLD}{name}{BOLD:#}{DIM}{rest}{DIM:#}");
    }
    let meaning = format!("{}{meaning}", " ".repeat(INDENT));
    lines.extend(folded(&meaning, width, INDENT));
    lines
}

fn plain(text: &str) -> String {
    text.replace("**", "").replace('`', "")
}

/// Blanks before what a key means.
const INDENT: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_fits_a_terminal_and_has_no_marks() {
        let lines = lines(&motet_lab::scenario::documentation(), 80);
        let text = anstream::adapter::strip_str(&lines.join("\n")).to_string();
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
            assert!(
                !line.contains('`') && !line.starts_with(['#', '|']),
                "{line}"
            );
        }
        assert!(text.contains("retry_delay_ms"), "{text}");
        assert!(text.contains("\n    [topology]\n    chain = 3\n"), "{text}");
    }
}
