//! Radios that cannot be used: one sentence that says what to do, and the exit status.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use super::rig::{Bench, KEY, Node, PAN, PATIENCE, Parts, program, run};
use crate::interop::report::{Report, Row};

/// All that needs no air.
pub(super) fn all(parts: &Parts, report: &mut Report) -> Result<()> {
    let bench = Bench::new(parts, "refusals")?;
    for (check, kind, status, words) in FAKES {
        let radio = fake(&bench, kind);
        report.add(refused(check, &mut mote(&bench, &radio), *status, words)?);
    }
    let absent = "spinel+hdlc+uart:///dev/motet-has-no-such-line";
    let absent = refused(
        "no such device",
        &mut mote(&bench, absent),
        2,
        "there is no",
    );
    report.add(absent?);
    let found = not_permitted(&bench);
    report.add(found.unwrap_or_else(|error| {
        Row::failed("no permission: the group is named", format!("{error:#}"))
    }));
    report.add(in_use(&bench)?);
    Ok(())
}

/// What a check is called, fake.py's kind, the exit status, and words of the sentence.
const FAKES: &[(&str, &str, i32, &str)] = &[
    ("an NCP and no RCP", "ncp", 1, "an NCP and no RCP"),
    ("API version 3", "old", 1, "too old"),
    ("firmware that wants a younger host", "new", 1, "too new"),
    (
        "nothing answers: asks for the baud rate after 2 s",
        "silent",
        1,
        "baud rate",
    ),
    (
        "firmware that crashes in a loop",
        "crashes",
        1,
        "again and again",
    ),
    (
        "a program that ends in a loop",
        "ends",
        1,
        "again and again",
    ),
    (
        "a channel that the radio has not",
        "few-channels",
        2,
        "no channel 26",
    ),
    ("a shell answers", "babble", 1, "no Spinel"),
    ("a bootloader answers", "bootloader", 1, "bootloader"),
];

/// The URL of a fake radio.
fn fake(bench: &Bench<'_>, kind: &str) -> String {
    let python = bench.parts.python.display().to_string();
    program(&python, &["-B", &bench.script("fake.py"), kind])
}

fn mote(bench: &Bench<'_>, radio: &str) -> Command {
    let mut command = bench.motet();
    command.args(["mote", "--pan", PAN, "--radio", radio]);
    command
}

/// Whether the command ends by itself with this status and one sentence with these words.
fn refused(check: &str, command: &mut Command, wanted: i32, words: &str) -> Result<Row> {
    let began = Instant::now();
    let mut node = Node::start("the command", command)?;
    let status = node.status(PATIENCE)?;
    let took = began.elapsed();
    let said = node.all_said();
    Ok(verdict(check, status, wanted, &said, words).note(format!(
        "{} ({:.1} s)",
        sentences(&said).join(" / "),
        took.as_secs_f64()
    )))
}

fn verdict(check: &str, status: Option<i32>, wanted: i32, said: &[String], words: &str) -> Row {
    let sentences = sentences(said);
    let is_one_sentence = sentences.len() == 1 && sentences.iter().all(|line| line.contains(words));
    let value = status.map_or(-1.0, f64::from);
    let pass = status == Some(wanted) && is_one_sentence;
    Row::new(format!("refused: {check}"), value, "status", pass)
}

/// What the command said; a radio that is a program may have words of its own.
fn sentences(said: &[String]) -> Vec<&str> {
    let of_motet = said.iter().filter(|line| line.starts_with("motet: "));
    of_motet.map(String::as_str).collect()
}

/// A device of a group that the user is not in.
fn not_permitted(bench: &Bench<'_>) -> Result<Row> {
    const CHECK: &str = "no permission: the group is named";
    let is_root = run(Command::new("id").arg("-u"))?.trim() == "0";
    if !is_root {
        let (path, group) = foreign_line()?;
        let radio = format!("spinel+hdlc+uart://{}", path.display());
        return refused(CHECK, &mut mote(bench, &radio), 1, &group);
    }
    // Root may do everything: the command runs as nobody, who must find its way to the link.
    let (group, nobody) = ("dialout", "65534");
    let device = bench.folder.join("foreign");
    let _dongle = dongle(bench, &device, &["--group", group, "--mode", "660"])?;
    let device = fs::read_link(&device)?;
    let copy = Reachable::new(&bench.parts.motet)?;
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid", nobody, "--regid", nobody, "--clear-groups"])
        .args(["--inh-caps=-all", "--bounding-set=-all"])
        .arg(copy.0.join("motet"))
        .args(["mote", "--pan", PAN, "--radio"])
        .arg(format!("spinel+hdlc+uart://{}", device.display()))
        .current_dir("/");
    refused(CHECK, &mut command, 1, group)
}

/// A folder with the command where everybody may run it, whatever the folder of its build.
struct Reachable(PathBuf);

impl Reachable {
    fn new(motet: &Path) -> Result<Self> {
        let name = format!("motet-interop-{}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0)?;
        let copy = folder.0.join("motet");
        fs::copy(motet, &copy).with_context(|| format!("cannot write {}", copy.display()))?;
        run(Command::new("chmod").args(["-R", "a+rX"]).arg(&folder.0))?;
        Ok(folder)
    }
}

impl Drop for Reachable {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A device of this machine that its group may use and this user may not, and the group's name.
fn foreign_line() -> Result<(PathBuf, String)> {
    let is_foreign = |path: &PathBuf| {
        fs::metadata(path).is_ok_and(|metadata| {
            metadata.file_type().is_char_device()
                && metadata.mode() & 0o066 == 0o060
                && metadata.gid() != 0
        }) && fs::File::options()
            .read(true)
            .write(true)
            .open(path)
            .is_err()
    };
    let entries = fs::read_dir("/dev").context("no /dev")?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let path = paths.find(is_foreign);
    let path = path.context("not tried: this machine has no device of a foreign group")?;
    let group = run(Command::new("stat").args(["-c", "%G"]).arg(&path))?;
    Ok((path, group.trim().to_owned()))
}

/// A fake RCP behind a device at `path`.
fn dongle(bench: &Bench<'_>, path: &Path, options: &[&str]) -> Result<Node> {
    let mut command = Command::new(&bench.parts.python);
    command
        .args(["-B", &bench.script("fake.py"), "good", "--device"])
        .arg(path)
        .args(options);
    let node = Node::start("a fake radio", &mut command)?;
    let until = Instant::now() + PATIENCE;
    while fs::symlink_metadata(path).is_err() {
        ensure!(Instant::now() < until, "there is no fake radio");
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(node)
}

/// A device that another `motet` has.
fn in_use(bench: &Bench<'_>) -> Result<Row> {
    let device = bench.folder.join("dongle");
    let _dongle = dongle(bench, &device, &[])?;
    let radio = format!("spinel+hdlc+uart://{}", device.display());
    let mut first = Node::start("the first mote", &mut mote(bench, &radio))?;
    first.await_line("Ctrl-C ends it")?;
    refused(
        "in use",
        &mut mote(bench, &radio),
        1,
        "in use by another program",
    )
}

/// Two radios of one EUI-64: with a key, whose counters they would share, and without one.
pub(super) fn twins(parts: &Parts, report: &mut Report) -> Result<()> {
    for (name, options) in [
        ("with a key", ["--key", KEY]),
        ("in the clear", ["--pan", PAN]),
    ] {
        let bench = Bench::new(parts, &format!("twins {name}"))?;
        let _router = bench.router(&bench.radio(1, &[]), &options)?;
        let line = ["--eui64", TWIN];
        let mut first = bench.mote(&bench.radio(2, &line), &options)?;
        first.address()?;
        let mut second = bench.mote(&bench.radio(3, &line), &options)?;
        // One that is not refused goes on for ever.
        let status = second.status(TWINS_PATIENCE)?;
        second.end();
        let said = second.all_said();
        let check = format!("two radios of one EUI-64, {name}");
        // Refused at once where both are here, and by what is heard where they are not.
        let wanted = status.filter(|status| *status == 1).unwrap_or(2);
        let row = verdict(&check, status, wanted, &said, TWIN);
        report.add(row.note(sentences(&said).join(" / ")));
    }
    Ok(())
}

const TWIN: &str = "18b4300000000007";
const TWINS_PATIENCE: Duration = Duration::from_secs(30);
