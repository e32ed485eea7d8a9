//! How old pages are: a page of a revision that is not of this history proves nothing.

use std::fs;
use std::process::Command;

use anyhow::Result;

use super::Page;
use crate::workspace::Workspace;

/// Adds pages of revisions that are not of this history; returns a remark for each that is old.
///
/// A checkout without history says so: then nothing is judged.
pub(super) fn judge(
    workspace: &Workspace,
    pages: &[Page],
    faults: &mut Vec<String>,
) -> Result<Vec<String>> {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        let output = git.arg("-C").arg(&workspace.root).args(arguments).output();
        let output = output.ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    match git(&["rev-parse", "--is-shallow-repository"]).as_deref() {
        Some("false") => {}
        _ => {
            let remark = "the history is not here: no revision of docs/evidence was looked up";
            return Ok(vec![remark.to_owned()]);
        }
    }
    let mut old = Vec::new();
    for page in pages {
        let file = page.file("md");
        let Ok(text) = fs::read_to_string(workspace.root.join(&file)) else {
            faults.push(format!("{} is missing", file.display()));
            continue;
        };
        let file = file.display();
        let revisions = revisions(&text);
        if revisions.is_empty() {
            faults.push(format!("{file} names no revision"));
        }
        let mut lost = page.lost.as_ref();
        for revision in revisions {
            if git(&["merge-base", "--is-ancestor", &revision, "HEAD"]).is_none() {
                let fault =
                    format!("{file} was measured at {revision}, which is not of this history");
                match lost.take() {
                    Some(why) => old.push(format!("{fault}: {why}")),
                    None => faults.push(fault),
                }
                continue;
            }
            let mut newest = vec!["log", "-1", "--format=%H", "--"];
            newest.extend(page.measures.iter().map(String::as_str));
            let Some(newest) = git(&newest).filter(|newest| !newest.is_empty()) else {
                faults.push(format!("{file}: nothing of what it measures is here"));
                continue;
            };
            let range = format!("{revision}..{newest}");
            let behind = git(&["rev-list", "--count", &range]);
            let behind = behind.and_then(|count| count.parse::<u32>().ok());
            if let Some(behind) = behind.filter(|behind| *behind > BEHIND_MAX) {
                old.push(format!(
                    "{file} is {behind} commits older than the newest change of what it measures"
                ));
            }
        }
        if lost.is_some() {
            faults.push(format!("{file} is of this history: take `lost` from it"));
        }
    }
    Ok(old)
}

/// The revisions that a page names: after the word, in hexadecimal.
fn revisions(text: &str) -> Vec<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let named = words.windows(2).filter(|pair| pair[0] == "revision");
    let named = named.map(|pair| pair[1].trim_matches(|c: char| !c.is_ascii_alphanumeric()));
    let is_revision =
        |word: &&str| word.len() >= 7 && word.chars().all(|digit| digit.is_ascii_hexdigit());
    let mut all: Vec<String> = named.filter(is_revision).map(str::to_owned).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Commits between a page and what it measures that may pass without a remark.
const BEHIND_MAX: u32 = 200;

#[cfg(test)]
mod tests {
    use super::revisions;

    #[test]
    fn revisions_are_found_in_sentences() {
        let text = "Measured on 2026-11-26 at revision 2a4244a.\nThen at revision\n04b6a35: and a \
                    revision of words, again at revision 2a4244a with changes";
        assert_eq!(revisions(text), ["04b6a35", "2a4244a"]);
    }
}
