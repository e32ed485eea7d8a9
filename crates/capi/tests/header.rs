//! The committed header is what cbindgen makes of the sources, and C99.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn the_committed_header_is_what_cbindgen_makes() {
    let config = cbindgen::Config::from_file(here("cbindgen.toml")).expect("a configuration");
    let mut builder = cbindgen::Builder::new().with_config(config);
    for source in [
        "errno", "config", "node", "events", "record", "security", "join", "sleep", "sockets",
        "tcp", "udp",
    ] {
        builder = builder.with_src(here(&format!("src/{source}.rs")));
    }
    let mut made = Vec::new();
    builder
        .generate()
        .expect("sources that parse")
        .write(&mut made);
    // What is said of safety is said to Rust: C has no other functions.
    let made = String::from_utf8(made).expect("text");
    let made = without_safety(&made);
    let path = here("include/motet.h");
    if env::var_os("MOTET_WRITE_HEADER").is_some() {
        fs::write(&path, &made).expect("writable");
    }
    let committed = fs::read_to_string(&path).expect("a header");
    assert!(
        committed == made,
        "include/motet.h is not what the sources say: MOTET_WRITE_HEADER=1 cargo test -p motet-c \
         --test header"
    );
}

/// Leaves the sections `# Safety` out of the comments.
fn without_safety(header: &str) -> String {
    let mut lines = Vec::new();
    let mut is_safety = false;
    for line in header.lines() {
        is_safety |= line.trim() == "* # Safety";
        if line.trim() == "*/" {
            if is_safety && lines.last().is_some_and(|last: &&str| last.trim() == "*") {
                lines.pop();
            }
            is_safety = false;
        }
        if !is_safety {
            lines.push(line);
        }
    }
    lines.join("\n") + "\n"
}

#[test]
fn the_header_is_c99_without_a_warning() {
    let source = "#include <motet.h>\n#include <motet.h>\nint motet_is_c99;\n";
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("c99.c");
    fs::write(&file, source).expect("writable");
    compile(&file, None, &[]);
}

/// RIOT itself is not there: declarations stand for what the example uses of it.
#[test]
fn the_example_for_riot_is_c99_without_a_warning() {
    let example = here("../../examples/riot");
    // What `motet keys` prints of a key file.
    let keys = tempfile::tempdir().expect("a folder");
    let network = "static const uint8_t network_key[16] = {1, 2};\nstatic const uint32_t key_sequence = 1;\n\
                   static const uint16_t pan = 0x1234;\n";
    for (name, text) in [("key.h", network), ("join_key.h", "{0x01, 0x02}\n")] {
        fs::write(keys.path().join(name), text).expect("writable");
    }
    let include = format!("-I{}", keys.path().display());
    for wanted in [
        &[][..],
        &["-DMESH_SLEEP"],
        &["-DMESH_KEY"],
        &["-DMESH_JOIN", "-DMESH_SLEEP", "-DPAN=0x1234"],
    ] {
        let arguments = [&[&*include][..], wanted].concat();
        for file in ["main.c", "mesh.c", "counters.c", "radio.c"] {
            compile(&example.join(file), Some(&example.join("stub")), &arguments);
        }
    }
}

fn compile(file: &Path, stub: Option<&Path>, arguments: &[&str]) {
    let mut compiler = Command::new("cc");
    compiler
        .args(["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"])
        .arg("-I")
        .arg(here("include"))
        .args(stub.iter().flat_map(|stub| [Path::new("-I"), stub]))
        .args(arguments)
        .arg("-fsyntax-only")
        .arg(file);
    let output = compiler
        .output()
        .expect("a C compiler: apt-get install gcc");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}
