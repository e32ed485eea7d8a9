//! What every test of the command needs: the binary, files, and a look at its answers.
#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "what only tests for Linux use is used nowhere else"
)]

mod strict;

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

/// The command under test, with no terminal and no inherited settings of colour.
pub(crate) fn motet() -> Command {
    command(Path::new(env!("CARGO_BIN_EXE_motet")))
}

/// As [`motet`], from a copy of the binary.
pub(crate) fn command(binary: &Path) -> Command {
    let mut command = Command::new(binary);
    command
        .stdin(Stdio::null())
        .env_remove("CLICOLOR_FORCE")
        .env_remove("NO_COLOR")
        .env_remove("STATE_DIRECTORY")
        // Not the user's own.
        .env("XDG_STATE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command
}

/// Copies a program to `folder`, where every user finds it.
pub(crate) fn copy_program(program: &Path, folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    // A process of its own copies: a child forked by another test while this one writes would
    // hold the file open for writing, and the file could not be run.
    let copied = Command::new("cp").arg(program).arg(&path).status().unwrap();
    assert!(copied.success());
    path
}

/// Runs `motet` with `arguments`.
pub(crate) fn run<I: AsRef<OsStr>>(arguments: impl IntoIterator<Item = I>) -> Output {
    motet().args(arguments).output().expect("motet starts")
}

/// A folder that every user may read and write, for tests that change uid.
pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    }
    folder
}

/// A file of `len` bytes that no simple fault leaves unchanged: no two stretches alike.
pub(crate) fn file(folder: &Path, len: usize) -> PathBuf {
    let path = folder.join(format!("{len}.bin"));
    fs::write(&path, bytes(len)).unwrap();
    path
}

/// `len` bytes of a linear congruential sequence (Knuth's MMIX constants).
pub(crate) fn bytes(len: usize) -> Vec<u8> {
    let mut state = 1u64;
    std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    })
    .take(len)
    .collect()
}

/// The JSON object on the last line of stdout; panics with everything said otherwise.
pub(crate) fn report(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{}", said(output));
    let stdout = String::from_utf8(output.stdout.clone()).unwrap();
    let last = stdout.lines().last().unwrap_or_default();
    let report = objects(last.as_bytes()).pop();
    report.unwrap_or_else(|| panic!("nothing on stdout: {}", said(output)))
}

/// The JSON objects of `text`, one a line; panics where a line is no object, has a key twice
/// at any depth, or does not say the version of its keys.
pub(crate) fn objects(text: &[u8]) -> Vec<serde_json::Value> {
    let lines = std::str::from_utf8(text).expect("UTF-8").lines();
    let object = |line: &str| {
        let strict: strict::Strict =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(strict.0["schema"], 1, "{line}");
        strict.0
    };
    lines.map(object).collect()
}

/// Whether a program is installed; where it is not the test says so, but not in CI.
pub(crate) fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
    if !found {
        let is_ci = std::env::var("CI").as_deref() == Ok("true");
        assert!(!is_ci, "{program} is not installed");
        eprintln!("not run: {program} is not installed");
    }
    found
}

/// Status, stdout and stderr, for messages of failed tests.
pub(crate) fn said(output: &Output) -> String {
    format!(
        "{}\nstdout: {}\nstderr: {}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

/// Asserts an exit status and one sentence on stderr that holds `words`, with nothing on
/// stdout.
pub(crate) fn assert_refused(output: &Output, status: i32, words: &[&str]) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{}", said(output));
    assert!(output.stdout.is_empty(), "{}", said(output));
    assert_eq!(stderr.lines().count(), 1, "{}", said(output));
    assert!(stderr.starts_with("motet: "), "{}", said(output));
    for word in words {
        assert!(stderr.contains(word), "no {word:?}: {}", said(output));
    }
}
