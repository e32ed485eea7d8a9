//! `firmware/budget.toml`: what each part of a mote may take, and what other stacks' nodes do take.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::workspace::Workspace;

/// The file's contents.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Budget {
    /// Limits of figures, by name, bytes.
    figures: BTreeMap<String, u32>,
    /// Limits of the minimal node's modules, bytes; together they are below that of the node.
    modules: BTreeMap<String, u32>,
    /// Whole nodes of others.
    peers: Vec<Peer>,
}

/// A whole node of another stack, as others have measured it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Peer {
    pub(crate) name: String,
    pub(crate) flash_bytes: u32,
    pub(crate) processor: String,
    /// What is in the image, and how it was built.
    pub(crate) contains: String,
}

impl Budget {
    pub(crate) fn read(workspace: &Workspace) -> Result<Self> {
        let path = workspace.root.join("firmware").join("budget.toml");
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let budget: Self =
            toml::from_str(&text).with_context(|| format!("{} is no budget", path.display()))?;
        for name in JUDGED {
            ensure!(
                budget.figure(name).is_some(),
                "{} has no limit of {name}",
                path.display()
            );
        }
        Ok(budget)
    }

    /// The limit of a figure.
    pub(crate) fn figure(&self, name: &str) -> Option<u32> {
        self.figures.get(name).copied()
    }

    pub(crate) fn peers(&self) -> &[Peer] {
        &self.peers
    }

    /// The minimal node's code by module, each beside its limit, and by how much it is above.
    pub(crate) fn modules(&self, code: &BTreeMap<String, i64>) -> String {
        let mut text = String::new();
        for (name, bytes) in code {
            let limit = self.modules.get(name);
            let limit_cell = limit.map_or_else(|| "-".to_owned(), u32::to_string);
            let above = limit.map_or(0, |limit| bytes - i64::from(*limit)).max(0);
            let above = mark(u32::try_from(above).unwrap_or(u32::MAX));
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name:<26}{bytes:>9}{limit_cell:>11}{above}");
        }
        text
    }
}

/// By how much a figure is above its limit, behind a table's last column; nothing where it is not.
pub(crate) fn mark(above: u32) -> String {
    match above {
        0 => String::new(),
        above => format!("  {above} above"),
    }
}

/// The figures of which a line says whether they keep to their limits.
const JUDGED: [&str; 14] = [
    "ble_ram_bytes",
    "ble_text_bytes",
    "full_node_ram_bytes",
    "full_node_text_bytes",
    "rpl_ram_bytes",
    "rpl_text_bytes",
    "security_ram_bytes",
    "security_text_bytes",
    "tcp_text_bytes",
    "tcple_ram_bytes",
    "tcple_text_bytes",
    "thread_ram_bytes",
    "thread_text_bytes",
    "over_text_bytes",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn of_this_tree() -> Budget {
        toml::from_str(include_str!("../../firmware/budget.toml")).unwrap()
    }

    #[test]
    fn every_limit_is_of_a_figure_that_is_measured() {
        let names = crate::sizes::figure_names();
        for name in of_this_tree().figures.keys() {
            assert!(names.contains(&name.as_str()), "no figure is called {name}");
        }
    }

    #[test]
    fn the_modules_together_keep_to_the_limit_of_the_node() {
        let budget = of_this_tree();
        let modules: u32 = budget.modules.values().sum();
        assert!(modules <= budget.figure("minimal_node_text_bytes").unwrap());
    }

    #[test]
    fn what_is_above_its_limit_says_by_how_much() {
        let mut budget = of_this_tree();
        budget.modules = [("tcp".to_owned(), 80)].into();
        let code = [("mac".to_owned(), 7), ("tcp".to_owned(), 90)].into();
        let lines = budget.modules(&code);
        let lines: Vec<_> = lines.lines().collect();
        assert!(lines[0].ends_with("7          -"), "{lines:?}");
        assert!(lines[1].ends_with("90         80  10 above"), "{lines:?}");
    }
}
