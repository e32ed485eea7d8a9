//! Codes of a list of requirements that a stranger does not have: a letter, a hyphen and two
//! digits, or `E`, a digit, a point and a digit. Text names the thing instead, or the section of
//! its paper.

use std::fs;

use anyhow::{Context, Result};

use crate::workspace::Workspace;

/// Notes each code in the Rust and Markdown among `files`, from the project's folder.
pub(super) fn judge(
    workspace: &Workspace,
    files: &[String],
    faults: &mut Vec<String>,
) -> Result<()> {
    let is_text = |file: &&String| file.ends_with(".rs") || file.ends_with(".md");
    for file in files.iter().filter(is_text) {
        let text = fs::read_to_string(workspace.root.join(file))
            .with_context(|| format!("cannot read {file}"))?;
        for (at, line) in text.lines().enumerate() {
            for code in codes(line) {
                let line = at + 1;
                faults.push(format!(
                    "{file}:{line}: `{code}` is a code: name the thing, or its paper's section"
                ));
            }
        }
    }
    Ok(())
}

fn codes(line: &str) -> impl Iterator<Item = &str> {
    let stays = |letter: char| letter.is_alphanumeric() || "-._+".contains(letter);
    line.split(move |letter| !stays(letter))
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| match word.as_bytes() {
            [b'E', a, b'.', b] => a.is_ascii_digit() && b.is_ascii_digit(),
            [letter, b'-', a, b] => {
                letter.is_ascii_uppercase() && a.is_ascii_digit() && b.is_ascii_digit()
            }
            _ => false,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_found_and_what_resembles_one_is_not() {
        let [letter, experiment] = [("M", "-01"), ("E2", ".8")].map(|(a, b)| format!("{a}{b}"));
        let line =
            format!("({letter}, {experiment}): RFC 9293's MUST-20 on a Cortex-M0+, T-1, {letter}.");
        assert_eq!(
            codes(&line).collect::<Vec<_>>(),
            [&letter, &experiment, &letter]
        );
        assert_eq!(codes("`1e2.8` ISO-8859-15 A-123 0xE2.8").count(), 0);
    }
}
