//! `motet attach`, and the names of motes beside `motet up`.
#![cfg(target_os = "linux")]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use crate::common::{motet, said};

/// The nearest mote.
const MOTE: &str = "fd6d:6f74:6574:1:4d:6f74:6574:1";

/// The command of `up` and that of `attach` find motes by their names, and one that runs elsewhere
/// does not.
#[test]
fn motes_have_names_beside_their_mesh_and_in_an_attached_shell() {
    let output = motet()
        .args(["up", "--hops", "1", "--", "cat", "/etc/hosts"])
        .output()
        .unwrap();
    let expected = format!("# motes of motet up\n{MOTE}\tmote1\n");
    let hosts = String::from_utf8_lossy(&output.stdout);
    assert!(hosts.ends_with(&expected), "{}", said(&output));
    assert!(hosts.starts_with(&fs::read_to_string("/etc/hosts").unwrap_or_default()));
    assert!(!fs::read_to_string("/etc/hosts").unwrap().contains(MOTE));
    let mut up = motet()
        .args(["up", "--hops", "1", "--", "sh", "-c"])
        .arg("echo ready; read end")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(up.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let attach = |script: &str| {
        let process = up.id().to_string();
        let script = ["--", "sh", "-c", script];
        motet()
            .arg("attach")
            .arg(process)
            .args(script)
            .output()
            .unwrap()
    };
    let output = attach("echo $MOTET_MOTES; cat /etc/hosts");
    let found = String::from_utf8_lossy(&output.stdout);
    let found: Vec<&str> = found.lines().collect();
    assert_eq!(found.first().copied(), Some(MOTE), "{}", said(&output));
    assert!(
        found.contains(&format!("{MOTE}\tmote1").as_str()),
        "{}",
        said(&output)
    );
    let output = attach("exit 7");
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    drop(up.stdin.take());
    up.wait().unwrap();
}
