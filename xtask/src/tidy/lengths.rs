//! How long functions and files are.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::{EXCUSE, FILE_LINES_MAX, FUNCTION_LINES_MAX, Source, is_for_tests};

/// Reports what in `source` is too long.
pub(super) fn judge(source: &Source, faults: &mut Vec<String>) {
    let path = source.path.display();
    let mut found = Found {
        lines: source.text.lines().collect(),
        too_long: Vec::new(),
        lines_of_tests: 0,
    };
    found.visit_file(&source.syntax);
    for (name, line, lines) in found.too_long {
        faults.push(format!(
            "{path}:{line}: `{name}` has {lines} lines, more than {FUNCTION_LINES_MAX}; divide it, or say why not in a comment in it: `{EXCUSE}…`"
        ));
    }
    let lines = found.lines.len() - found.lines_of_tests;
    if lines > FILE_LINES_MAX {
        faults.push(format!(
            "{path}: {lines} lines besides its tests, more than {FILE_LINES_MAX}"
        ));
    }
}

struct Found<'s> {
    lines: Vec<&'s str>,
    /// Name, first line and length of each function that nothing excuses.
    too_long: Vec<(String, usize, usize)>,
    lines_of_tests: usize,
}

impl Found<'_> {
    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let first = signature.fn_token.span().start().line;
        let last = block.brace_token.span.close().end().line;
        let lines = last + 1 - first;
        let inside = self.lines.get(first..last).unwrap_or_default();
        let excused = inside
            .iter()
            .any(|line| line.trim_start().starts_with(EXCUSE));
        if lines > FUNCTION_LINES_MAX && !excused {
            self.too_long
                .push((signature.ident.to_string(), first, lines));
        }
    }

    fn skip(&mut self, item: &impl Spanned) {
        let span = item.span();
        self.lines_of_tests += span.end().line + 1 - span.start().line;
    }
}

impl<'ast> Visit<'ast> for Found<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        match is_for_tests(&item.attrs) {
            true => self.skip(item),
            false => visit::visit_item_mod(self, item),
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if is_for_tests(&item.attrs) {
            return self.skip(item);
        }
        self.function(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if is_for_tests(&item.attrs) {
            return self.skip(item);
        }
        self.function(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
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
    fn a_function_beyond_a_screen_needs_a_reason() {
        let function = |lines: usize, inside: &str| {
            let body = "    g();\n".repeat(lines - 2 - usize::from(!inside.is_empty()));
            format!("/// Doc.\n#[inline]\nfn f() {{\n{inside}{body}}}\n")
        };
        assert_eq!(faults_of(&function(70, "")), [""; 0]);
        let [fault] = &faults_of(&function(71, ""))[..] else {
            panic!("one fault");
        };
        assert!(fault.starts_with("a.rs:3: `f` has 71 lines"), "{fault}");
        let reason = "    // Longer than a screen: one table.\n";
        assert_eq!(faults_of(&function(90, reason)), [""; 0]);
        let method = format!(
            "impl S {{\n{}}}",
            function(71, "").replace("/// Doc.\n", "")
        );
        assert_eq!(faults_of(&method).len(), 1);
        let test = format!("#[cfg(test)]\nmod tests {{\n{}}}", function(99, ""));
        assert_eq!(faults_of(&test), [""; 0]);
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
