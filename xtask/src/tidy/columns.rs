//! How wide comments are: rustfmt leaves them as they are.

use super::{COMMENT_COLUMNS_MAX, Source};

/// Reports each line of `source` that is a comment and too wide. Tables and what stands in a fence
/// of code may be wider, and so may the crates whose comments become documents of C and of Python.
pub(super) fn judge(source: &Source, faults: &mut Vec<String>) {
    if ["crates/capi", "python"]
        .iter()
        .any(|folder| source.path.starts_with(folder))
    {
        return;
    }
    let path = source.path.display();
    let mut fenced = false;
    for (at, line) in source.text.lines().enumerate() {
        let Some(text) = line.trim_start().strip_prefix("//") else {
            fenced = false;
            continue;
        };
        let text = text.trim_start_matches(['/', '!']).trim_start();
        fenced ^= text.starts_with("```");
        let columns = line.chars().count();
        if columns > COMMENT_COLUMNS_MAX && !fenced && !text.starts_with('|') {
            let line = at + 1;
            faults.push(format!(
                "{path}:{line}: a comment of {columns} columns, more than {COMMENT_COLUMNS_MAX}"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_code_may_be_wide_and_prose_may_not() {
        let wide = "wide ".repeat(20) + "!";
        let text =
            format!("//! | {wide}\n//! ```text\n//! {wide}\n//! ```\n/// {wide}\nfn f() {{}}\n");
        let source = Source {
            path: "a.rs".into(),
            syntax: syn::parse_file(&text).expect("Rust"),
            text,
        };
        let mut faults = Vec::new();
        judge(&source, &mut faults);
        assert_eq!(faults, ["a.rs:5: a comment of 105 columns, more than 100"]);
    }
}
