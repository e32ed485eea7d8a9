//! Compiles programs of C against the header, one of them with the archive, and runs them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

#[test]
fn two_nodes_of_a_c_program_exchange_bytes() {
    let archive = archive();
    let link = [
        archive.as_os_str(),
        "-lpthread".as_ref(),
        "-ldl".as_ref(),
        "-lm".as_ref(),
    ];
    run("pair.c", &link, &[]);
}

/// With the example's storage, in a folder of this machine.
#[test]
fn nodes_with_a_key_use_no_counter_twice_over_restarts_and_failures() {
    let archive = archive();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/c/file_storage.c");
    let link = [
        example.as_os_str(),
        archive.as_os_str(),
        "-lpthread".as_ref(),
        "-ldl".as_ref(),
        "-lm".as_ref(),
        "-Wno-unused-function".as_ref(),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    run("secured.c", &link, &[folder.path().as_os_str()]);
}

#[test]
fn the_service_of_the_example_for_riot_loses_nothing_for_want_of_room() {
    let stub = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/riot/stub");
    // What only the example's own main calls is left out.
    let sections = ["-ffunction-sections", "-Wl,--gc-sections", "-I"].map(OsStr::new);
    run(
        "riot.c",
        &[&sections[..], &[stub.as_os_str()]].concat(),
        &[],
    );
}

#[test]
fn the_flash_of_the_example_for_riot_loses_no_counter_wherever_the_power_is_cut() {
    let stub = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/riot/stub");
    run("flash.c", &["-I".as_ref(), stub.as_os_str()], &[]);
}

/// Compiles a file of this folder with these arguments behind it, and runs it with others.
fn run(file: &str, arguments: &[&OsStr], words: &[&OsStr]) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
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
        .arg(here.join("tests").join(file))
        .args(arguments)
        .arg("-o")
        .arg(&program);
    let output = compiler
        .output()
        .expect("a C compiler: apt-get install gcc");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    let output = Command::new(&program)
        .args(words)
        .output()
        .expect("it runs");
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
