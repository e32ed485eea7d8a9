//! What is stated in more than one place is stated alike.

use std::fs;
use std::path::Path;

fn project_file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The value of the first line `KEY = "VALUE"`.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let value = line.trim().strip_prefix(key)?.trim_start();
        let value = value.strip_prefix('=')?.trim();
        value.strip_prefix('"')?.strip_suffix('"')
    })
}

/// The pinned toolchain is the oldest one supported, so that all of CI tests that promise.
#[test]
fn the_minimum_rust_version_is_the_one_that_is_tested() {
    let pinned = project_file("rust-toolchain.toml");
    let pinned = value(&pinned, "channel").expect("a channel");
    let mut stated = 0;
    for manifest in ["Cargo.toml", "firmware/Cargo.toml"] {
        let text = project_file(manifest);
        let Some(minimum) = value(&text, "rust-version") else {
            continue;
        };
        stated += 1;
        assert!(
            pinned == minimum || pinned.strip_prefix(minimum) == Some(".0"),
            "{manifest} states {minimum}, rust-toolchain.toml {pinned}"
        );
        for document in ["README.md", "CONTRIBUTING.md"] {
            let wanted = format!("Rust {minimum}");
            let text = project_file(document);
            assert!(text.contains(&wanted), "{document} does not say {wanted}");
        }
    }
    assert!(stated > 0, "no manifest states a rust-version");
}
