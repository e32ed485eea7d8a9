//! What build scripts say of the tree that they are in, judged by git.

use std::fs;
use std::path::Path;
use std::process::Command;

#[path = "../revision.rs"]
mod revision;

const SOURCES: [&str; 2] = ["src", "../Cargo.toml"];

/// All in one test: the folder that a process is in is its own only as long as nobody else changes it.
#[test]
fn a_tree_is_clean_changed_or_unknown() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("package");
    fs::create_dir_all(package.join("src")).unwrap();
    for file in ["build.rs", "src/lib.rs", "README.md", "../Cargo.toml"] {
        fs::write(package.join(file), "").unwrap();
    }
    std::env::set_current_dir(&package).unwrap();
    // Above the temporary folder there may be a repository, whose build.rs is not this one.
    assert_eq!(revision::of(&SOURCES, 7), None);

    git(folder.path(), &["init", "--quiet"]);
    assert_eq!(revision::of(&SOURCES, 7), None, "nothing is in it yet");

    git(folder.path(), &["add", "."]);
    git(folder.path(), &["commit", "--quiet", "--message", "One"]);
    let commit = git(folder.path(), &["rev-parse", "HEAD"]);
    for digits in [7, 12] {
        assert_eq!(revision::of(&SOURCES, digits).unwrap(), commit[..digits]);
    }
    fs::write("README.md", "no figure depends on it").unwrap();
    assert_eq!(revision::of(&SOURCES, 7).unwrap(), commit[..7]);

    for changed in ["src/lib.rs", "src/new.rs", "../Cargo.toml"] {
        let before = fs::read(changed).ok();
        fs::write(changed, "// changed").unwrap();
        let expected = format!("{}{}", &commit[..7], revision::CHANGED);
        assert_eq!(revision::of(&SOURCES, 7).unwrap(), expected, "{changed}");
        match before {
            Some(bytes) => fs::write(changed, bytes).unwrap(),
            None => fs::remove_file(changed).unwrap(),
        }
    }
    assert_eq!(revision::of(&SOURCES, 7).unwrap(), commit[..7]);
}

/// What git prints; the user's own settings are left out.
fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Test", "-c", "user.email=test@example.org"])
        .args([
            "-c",
            "commit.gpgsign=false",
            "-c",
            "core.hooksPath=/dev/null",
        ])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout)
        .unwrap()
        .trim_end()
        .to_owned()
}
