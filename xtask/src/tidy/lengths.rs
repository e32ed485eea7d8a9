//! How long files are.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::{FILE_LINES_MAX, Source, is_for_tests};

/// Reports a `source` that is too long.
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

    fn faults_of(text: &str) -> Vec<String> {
        let source = Source {
            path: "a.rs".into(),
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
        assert_eq!(faults_of(&(items.repeat(600) + &tests)), [""; 0]);
        assert_eq!(
            faults_of(&(items.repeat(601) + &tests)),
            ["a.rs: 601 lines besides its tests, more than 600"]
        );
    }
}
