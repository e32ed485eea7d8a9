//! The main job in real time, against the TCP of this machine's kernel.
#![cfg(target_os = "linux")]

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{Ipv6Addr, Shutdown, TcpStream, UdpSocket},
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use crate::common::{self, assert_refused, command, file, folder, report, said};

/// An ordinary user that every system has: nobody.
const NOBODY: u32 = 65534;

/// A copy of the binary where an ordinary user finds it.
fn binary(folder: &Path) -> PathBuf {
    common::copy_program(env!("CARGO_BIN_EXE_motet").as_ref(), folder, "motet")
}

fn we_are_root() -> bool {
    // The owner of our own /proc entry is our effective uid.
    use std::os::unix::fs::MetadataExt as _;
    fs::metadata("/proc/self").unwrap().uid() == 0
}

/// Runs `test` as ourselves and, where we may, as an ordinary user, at the same time.
fn as_everybody(test: impl Fn(&str, &dyn Fn() -> Command) + Sync) {
    let folder = folder();
    let binary = binary(folder.path());
    thread::scope(|scope| {
        scope.spawn(|| test("as ourselves", &|| command(&binary)));
        if we_are_root() {
            scope.spawn(|| {
                test("as nobody", &|| {
                    let mut command = command(&binary);
                    command.uid(NOBODY).gid(NOBODY);
                    command
                });
            });
        } else {
            println!("not run as uid {NOBODY}: only root may take it");
        }
    });
}

/// Every case at once: each has a namespace and an air of its own, and mostly sleeps.
#[test]
fn small_files_arrive_in_this_kernel_and_leave_it() {
    let folder = folder();
    let files = [0, 1024, 20 * 1024].map(|len| (len, file(folder.path(), len)));
    as_everybody(|who, motet| {
        let mut runs = Vec::new();
        for (len, path) in &files {
            for hops in ["1", "3"] {
                for direction in ["up", "down"] {
                    let child = motet()
                        .arg("send")
                        .arg(path)
                        .args(["--json", "--hops", hops, "--direction", direction])
                        .stdout(Stdio::piped())
                        .stderr(Stdio::piped())
                        .spawn()
                        .unwrap();
                    runs.push((len, format!("{who}, {hops} hops, {direction}"), child));
                }
            }
        }
        for (len, context, child) in runs {
            let report = report(&child.wait_with_output().unwrap());
            assert_eq!(report["bytes"], *len, "{context}: {report}");
            assert_eq!(
                report["sha256_sent"], report["sha256_received"],
                "{context}: {report}"
            );
            assert_eq!(report["virtual"], false, "{context}: {report}");
        }
    });
}

/// Interrupted mid-transfer: the exit status of a signal, one sentence, and of files only the
/// capture that was asked for.
#[test]
fn ctrl_c_leaves_the_capture_and_nothing_else() {
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
        // Mid-transfer: the capture grows under its name, and there is no other file.
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "{who}");
        assert!(folder.path().join("air.pcap").exists(), "{who}");
        interrupt(&child);
        let output = child.wait_with_output().unwrap();
        assert_refused(
            &output,
            130,
            &["interrupted", "kept up to then", "air.pcap"],
        );
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 2, "{who}: {}", said(&output));
        assert!(folder.path().join("air.pcap").exists(), "{who}");
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
        assert_eq!(output.status.code(), Some(127), "{who}: {}", said(&output));
    });
}

/// Echo, discard and chargen answer on every mote, to clients at the same time.
#[test]
fn motes_serve_echo_discard_and_chargen() {
    let folder = folder();
    // The client is this very test binary: see `client_inside_the_mesh`.
    let client = std::env::current_exe().unwrap();
    let client = common::copy_program(&client, folder.path(), "client");
    as_everybody(|who, motet| {
        let output = motet()
            .args(["up", "--hops", "2", "--"])
            .arg(&client)
            .args(["kernel::client_inside_the_mesh", "--exact"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{who}: {}", said(&output));
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(stdout.contains("1 passed"), "{who}: {}", said(&output));
    });
}

/// Talks to the motes when run by `motet up`; otherwise there is nothing to do.
#[test]
fn client_inside_the_mesh() {
    let Ok(motes) = std::env::var("MOTET_MOTES") else {
        return;
    };
    thread::scope(|scope| {
        for mote in motes.split(' ') {
            scope.spawn(move || use_services(mote.parse().unwrap()));
        }
    });
    assert_eq!(motes.split(' ').count(), 2);
}

fn use_services(mote: Ipv6Addr) {
    let [mut echo, mut discard, mut chargen] =
        [7, 9, 19].map(|port| TcpStream::connect((mote, port)).unwrap());
    for service in [&echo, &discard, &chargen] {
        // A mesh that has died fails the test instead of hanging it.
        service
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
    }
    let text = common::bytes(1024);
    for service in [&mut echo, &mut discard] {
        service.write_all(&text).unwrap();
        service.shutdown(Shutdown::Write).unwrap();
    }
    let mut got = Vec::new();
    echo.read_to_end(&mut got).unwrap();
    assert!(got == text, "{mote} echoed {} bytes", got.len());
    assert_eq!(discard.read_to_end(&mut Vec::new()).unwrap(), 0, "{mote}");
    // Datagrams: echoed at one port, thrown away without a word at the other.
    let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).unwrap();
    socket
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    for len in [0, 1, 600] {
        // Beside two streams without an end a datagram may be lost; its sender then asks again.
        let answered = (0..6).any(|_| {
            let mut answer = [0; 1_280];
            socket.send_to(&text[..len], (mote, 9)).unwrap();
            socket.send_to(&text[..len], (mote, 7)).unwrap();
            let Ok((answered, from)) = socket.recv_from(&mut answer) else {
                return false;
            };
            assert_eq!(from, (mote, 7).into());
            // The late answer to an earlier one says nothing of this one.
            answered == len && answer[..answered] == text[..len]
        });
        assert!(answered, "{mote} echoes no {len} bytes over UDP");
    }
    let mut line = [0; 74];
    chargen.read_exact(&mut line).unwrap();
    assert!(
        line.starts_with(b" !\"#$%&'()*+,-./0") && line.ends_with(b"\r\n"),
        "{mote}: {line:?}"
    );
}

/// Where no namespace may be made, the sentence says what to change, and offers `--virtual`
/// where there is such an option.
#[test]
fn a_forbidden_namespace_is_explained() {
    let folder = folder();
    let path = file(folder.path(), 1);
    let binary = binary(folder.path());
    for (command, may_be_virtual) in [("send", true), ("up", false)] {
        let script = "echo 0 > /proc/sys/user/max_net_namespaces && exec \"$@\"";
        let mut unshare = Command::new("unshare");
        unshare.args(["--user", "--map-root-user", "sh", "-c", script, "sh"]);
        unshare.arg(&binary).arg(command);
        if command == "send" {
            unshare.arg(&path);
        }
        let Ok(output) = unshare.output() else {
            println!("not run: it needs unshare(1)");
            return;
        };
        assert_refused(&output, 1, &["max_net_namespaces"]);
        assert_eq!(said(&output).contains("--virtual"), may_be_virtual);
    }
}
