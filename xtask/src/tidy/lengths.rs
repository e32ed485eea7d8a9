//! How long files are, and whether Clippy judges how long their functions are.

use std::path::Path;

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::{FILE_LINES_MAX, Source, is_for_tests};

/// What the root of each crate of the workspace says to Clippy. It is no lint of the workspace,
/// because many a test is a long table.
const JUDGED: &str = "#![cfg_attr(not(test), warn(clippy::too_many_lines))]";

/// Reports a `source` that is too long, and the root of a crate whose functions nobody judges.
pub(super) fn judge(source: &Source, faults: &mut Vec<String>) {
    let mut tests = Tests { lines: 0 };
    tests.visit_file(&source.syntax);
    let lines = source.text.lines().count() - tests.lines;
    if lines > FILE_LINES_MAX {
        let path = source.path.display();
        faults.push(format!(
            "{path}: {lines} lines besides its tests, more than {FILE_LINES_MAX}"
        ));
    }
    if is_root(&source.path) && !source.text.lines().any(|line| line == JUDGED) {
        let path = source.path.display();
        faults.push(format!("{path}: the root of a crate without {JUDGED}"));
    }
}

/// Whether a file is the root of a crate of the top workspace. The other workspaces have no such
/// tests, and name the lint in their Cargo.toml.
fn is_root(path: &Path) -> bool {
    let is_of_workspace = path.starts_with("crates") || path.starts_with("xtask");
    is_of_workspace && (path.ends_with("src/lib.rs") || path.ends_with("src/main.rs"))
}

/// What a file has of tests.
struct Tests {
    lines: usize,
}

impl Tests {
    fn count(&mut self, item: &impl Spanned) {
        let span = item.span();
        self.lines += span.end().line + 1 - span.start().line;
    }
}

impl<'ast> Visit<'ast> for Tests {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        match is_for_tests(&item.attrs) {
            true => self.count(item),
            false => visit::visit_item_mod(self, item),
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        match is_for_tests(&item.attrs) {
            true => self.count(item),
            false => visit::visit_item_fn(self, item),
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        match is_for_tests(&item.attrs) {
            true => self.count(item),
            false => visit::visit_impl_item_fn(self, item),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults_of(path: &str, text: &str) -> Vec<String> {
        let source = Source {
            path: path.into(),
            text: text.to_owned(),
            syntax: syn::parse_file(text).expect("Rust"),
        };
        let mut faults = Vec::new();
        judge(&source, &mut faults);
        faults
    }

    #[test]
    fn a_file_is_measured_without_its_tests() {
        let items = "const A: u8 = 1;\n";
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", items.repeat(500));
        assert_eq!(faults_of("a.rs", &(items.repeat(600) + &tests)), [""; 0]);
        assert_eq!(
            faults_of("a.rs", &(items.repeat(601) + &tests)),
            ["a.rs: 601 lines besides its tests, more than 600"]
        );
    }

    #[test]
    fn the_root_of_a_crate_has_its_functions_judged() {
        let root = "crates/stack/src/lib.rs";
        assert_eq!(faults_of(root, &format!("{JUDGED}\n")), [""; 0]);
        let said = "the root of a crate without";
        assert_eq!(
            faults_of(root, "const A: u8 = 1;\n"),
            [format!("{root}: {said} {JUDGED}")]
        );
        assert_eq!(faults_of("web/lab/src/lib.rs", ""), [""; 0]);
    }
}
