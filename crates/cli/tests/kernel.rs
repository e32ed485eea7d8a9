//! The main job in real time, against the TCP of this machine's kernel.
#![cfg(target_os = "linux")]

mod common;

use std::{
    fs,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use common::{assert_refused, command, file, folder, report, said};

/// An ordinary user that every system has: nobody.
const NOBODY: u32 = 65534;

/// A copy of the binary where an ordinary user finds it.
fn binary(folder: &Path) -> PathBuf {
    let path = folder.join("motet");
    fs::copy(env!("CARGO_BIN_EXE_motet"), &path).unwrap();
    path
}

fn we_are_root() -> bool {
    // The owner of our own /proc entry is our effective uid.
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Runs `arguments` as ourselves and, where we may, as an ordinary user; the files written
/// must be all there is afterwards.
fn as_everybody(test: impl Fn(&str, &dyn Fn() -> Command)) {
    let folder = folder();
    let binary = binary(folder.path());
    test("as ourselves", &|| command(&binary));
    if we_are_root() {
        test("as nobody", &|| {
            let mut command = command(&binary);
            command.uid(NOBODY).gid(NOBODY);
            command
        });
    } else {
        println!("not run as uid {NOBODY}: only root may take it");
    }
}

#[test]
fn small_files_arrive_in_this_kernel_and_leave_it() {
    let folder = folder();
    as_everybody(|who, motet| {
        for (len, hops) in [(1024, "1"), (1024, "3"), (20 * 1024, "1"), (20 * 1024, "3")] {
            for direction in ["up", "down"] {
                let path = file(folder.path(), len);
                let output = motet()
                    .arg("send")
                    .arg(&path)
                    .args(["--json", "--hops", hops, "--direction", direction])
                    .output()
                    .unwrap();
                let report = report(&output);
                assert_eq!(report["bytes"], len, "{who}: {report}");
                assert_eq!(
                    report["sha256_sent"], report["sha256_received"],
                    "{who}: {report}"
                );
                assert_eq!(report["virtual"], false, "{who}: {report}");
            }
        }
    });
}

#[test]
fn an_empty_file_arrives() {
    let folder = folder();
    let path = file(folder.path(), 0);
    as_everybody(|who, motet| {
        for direction in ["up", "down"] {
            let output = motet()
                .arg("send")
                .arg(&path)
                .args(["--json", "--direction", direction])
                .output()
                .unwrap();
            let report = report(&output);
            assert_eq!(
                report["sha256_sent"], report["sha256_received"],
                "{who}: {report}"
            );
        }
    });
}

/// Interrupted mid-transfer: the exit status of a signal, one sentence, no file left.
#[test]
fn ctrl_c_leaves_nothing_behind() {
    as_everybody(|who, motet| {
        let folder = folder();
        let path = file(folder.path(), 250 * 1024);
        let child = motet()
            .arg("send")
            .arg(&path)
            .arg("--pcap")
            .arg(folder.path().join("air.pcap"))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        thread::sleep(Duration::from_millis(1500));
        // Mid-transfer: the capture is being written, under another name.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "{who}");
        interrupt(&child);
        let output = child.wait_with_output().unwrap();
        assert_refused(&output, 130, &["interrupted"]);
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "{who}: {}",
            said(&output)
        );
        assert!(!Path::new("/sys/class/net/motet0").exists(), "{who}");
    });
}

fn interrupt(child: &Child) {
    // The shell's own `kill`: no package needed.
    let kill = format!("kill -INT {}", child.id());
    assert!(
        Command::new("sh")
            .args(["-c", &kill])
            .status()
            .unwrap()
            .success()
    );
}

/// A command inside `motet up` decides the exit status, and reaches every mote.
#[test]
fn up_runs_a_command_beside_the_motes() {
    as_everybody(|who, motet| {
        let output = motet()
            .args(["up", "--hops", "1", "--", "sh", "-c", "exit 7"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(7), "{who}: {}", said(&output));
        let output = motet()
            .args(["up", "--hops", "1", "--", "/no/such/command"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{who}: {}", said(&output));
    });
}
