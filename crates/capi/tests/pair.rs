//! Compiles `pair.c` against the header and the archive, and runs it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

#[test]
fn two_nodes_of_a_c_program_exchange_bytes() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("pair");
    let mut compiler = Command::new("cc");
    compiler
        .args([
            "-std=c99",
            "-Wall",
            "-Wextra",
            "-pedantic",
            "-Werror",
            "-O1",
            "-g",
        ])
        .arg("-I")
        .arg(here.join("include"))
        .arg(here.join("tests/pair.c"))
        .arg(archive())
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program);
    let output = compiler
        .output()
        .expect("a C compiler: apt-get install gcc");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    let output = Command::new(&program).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{:?}: {said}", output.status);
}

/// The archive that was built with this test: cargo leaves it among the dependencies.
fn archive() -> PathBuf {
    let test = env::current_exe().expect("a test has a file");
    let folder = test.parent().expect("in a folder");
    let files = fs::read_dir(folder).expect("readable").flatten();
    let archives = files.filter(|file| {
        let name = file.file_name();
        let name = name.to_string_lossy();
        name.starts_with("libmotet_c") && name.ends_with(".a")
    });
    // Older ones are of other features or revisions.
    let newest = archives.max_by_key(|file| file.metadata().and_then(|data| data.modified()).ok());
    newest.expect("an archive beside the test").path()
}
