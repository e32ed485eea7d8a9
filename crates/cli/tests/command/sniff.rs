//! `motet sniff` with a radio that the tests play on a pseudo-terminal.

use std::{
    fs::{self, File},
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
    process::{Child, ChildStderr, Stdio},
    time::{Duration, SystemTime},
};

use motet::wire::ieee802154::check_fcs;
use motet_spinel::{
    frame::{Property, Status},
    raw::Flags,
};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use pcap_file::{DataLink, pcap::PcapReader};

use crate::common::{assert_refused, folder, motet, report, run, said};
use crate::dongle::Dongle;
use crate::fake::Quirks;

/// A data frame of 11 bytes.
const FRAME: [u8; 11] = [0x61, 0x88, 7, 0xcd, 0xab, 2, 0, 1, 0, b'h', b'i'];

/// A capture that has begun, on channel 15.
struct Sniffer {
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Sniffer {
    fn start(dongle: &Dongle, arguments: &[&str]) -> Self {
        let mut child = motet()
            .args(["sniff", "--channel", "15", "--radio", &dongle.url()])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("motet starts");
        let stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut sniffer = Self { child, stderr };
        sniffer.says("OPENTHREAD/; SIMULATION listens on channel 15");
        sniffer
    }

    /// Waits for a line that contains `words`.
    fn says(&mut self, words: &str) {
        let mut said = String::new();
        while !said.contains(words) {
            said.clear();
            let len = self.stderr.read_line(&mut said).expect("a line");
            assert!(len > 0, "it ended, and never said: {words}");
        }
    }

    /// What it has printed when it ends.
    fn end(mut self) -> (i32, String, String) {
        let (mut out, mut err) = (String::new(), String::new());
        let mut stdout = self.child.stdout.take().expect("piped");
        stdout.read_to_string(&mut out).expect("text");
        self.stderr.read_to_string(&mut err).expect("text");
        let status = self.child.wait().expect("it ends");
        (status.code().expect("no signal killed it"), out, err)
    }

    fn interrupt(self) -> (i32, String, String) {
        let pid = Pid::from_raw(self.child.id().cast_signed());
        kill(pid, Signal::SIGINT).expect("it runs");
        self.end()
    }
}

fn hear(dongle: &Dongle, psdu: &[u8]) {
    let now_us = dongle.now_us();
    dongle.radio().hears(psdu, Flags::default(), now_us);
}

fn wait_until(is_so: impl Fn() -> bool) {
    for _ in 0..600 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("it never happened");
}

/// The records of a capture: time since 1970, channel, dBm and PSDU of each.
fn records(path: &Path) -> Vec<(Duration, u8, f32, Vec<u8>)> {
    let mut reader = PcapReader::new(File::open(path).unwrap()).unwrap();
    assert_eq!(reader.header().datalink, DataLink::from(283));
    let mut records = Vec::new();
    while let Some(record) = reader.next_packet() {
        let record = record.unwrap();
        // Version, length; FCS type, signal strength and channel: 4 + 8 + 8 + 8 bytes.
        let (tap, psdu) = record.data.split_at(28);
        assert_eq!(tap[..4], [0, 0, 28, 0]);
        let dbm = f32::from_le_bytes(tap[16..20].try_into().unwrap());
        records.push((record.timestamp, tap[24], dbm, psdu.to_vec()));
    }
    records
}

#[test]
fn frames_are_captured_with_their_channel_strength_and_time() {
    let folder = folder();
    let dongle = Dongle::new(&folder.path().join("dongle"), Quirks::default());
    let path = folder.path().join("air.pcap");
    let sniffer = Sniffer::start(&dongle, &["--pcap", path.to_str().unwrap()]);
    assert!(dongle.radio().has(Property::MacPromiscuous, &[2]));
    assert!(dongle.radio().has(Property::PhyChan, &[15]));
    hear(&dongle, &FRAME);
    hear(&dongle, &[2, 0, 7]);
    wait_until(|| path.exists() && records(&path).len() == 2);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let (status, out, err) = sniffer.interrupt();
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    assert!(out.starts_with("2 frames in "), "{out}");
    assert!(out.ends_with(" s on channel 15\n"), "{out}");
    let records = records(&path);
    for ((at, channel, dbm, psdu), sent) in records.iter().zip([&FRAME[..], &[2, 0, 7]]) {
        assert_eq!((*channel, *dbm), (15, -20.0));
        assert_eq!(check_fcs(psdu), Ok(sent));
        let age = now.clone().unwrap().saturating_sub(*at);
        assert!(age < Duration::from_secs(60), "{age:?}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_ends_a_capture() {
    let folder = folder();
    let dongle = Dongle::new(&folder.path().join("dongle"), Quirks::default());
    let mut sniffer = Sniffer::start(&dongle, &["--pcap", "-"]);
    let mut header = [0; 24];
    let mut stdout = sniffer.child.stdout.take().unwrap();
    stdout.read_exact(&mut header).unwrap();
    drop(stdout);
    while sniffer.child.try_wait().unwrap().is_none() {
        hear(&dongle, &FRAME);
        std::thread::sleep(Duration::from_millis(20));
    }
    let status = sniffer.child.wait().unwrap();
    assert_eq!(status.code(), Some(0));
    let mut err = String::new();
    sniffer.stderr.read_to_string(&mut err).unwrap();
    assert!(err.ends_with(" s on channel 15\n"), "{err}");
    assert!(!err.starts_with("0 frames"), "{err}");
}

#[test]
fn a_dongle_that_is_unplugged_goes_on_afterwards() {
    let folder = folder();
    let mut dongle = Dongle::new(&folder.path().join("dongle"), Quirks::default());
    let path = folder.path().join("air.pcap");
    let arguments = ["--pcap", path.to_str().unwrap(), "--seconds", "600"];
    let mut sniffer = Sniffer::start(&dongle, &arguments);
    hear(&dongle, &FRAME);
    wait_until(|| path.exists());
    dongle.unplug();
    sniffer.says("the radio is gone: plug it in again, or press Ctrl-C");
    dongle.plug();
    sniffer.says("the radio is ready again");
    hear(&dongle, &FRAME);
    wait_until(|| records(&path).len() == 2);
    let (status, out, _) = sniffer.interrupt();
    assert_eq!(status, 0);
    assert!(out.starts_with("2 frames in "), "{out}");
}

#[test]
fn a_capture_ends_by_itself_where_that_is_asked_for() {
    let folder = folder();
    let dongle = Dongle::new(&folder.path().join("dongle"), Quirks::default());
    let path = folder.path().join("air.pcap");
    let arguments = ["--pcap", path.to_str().unwrap(), "--seconds", "1"];
    let (status, out, _) = Sniffer::start(&dongle, &arguments).end();
    assert_eq!(status, 0);
    assert!(out.starts_with("0 frames in 1."), "{out}");
    assert!(records(&path).is_empty());
    // Once more: the file is there.
    let again = run([
        "sniff",
        "--channel",
        "15",
        "--radio",
        &dongle.url(),
        "--pcap",
        path.to_str().unwrap(),
    ]);
    assert_refused(&again, 2, &["air.pcap exists", "--force"]);
}

#[test]
fn a_scan_shows_each_channel() {
    let folder = folder();
    let dongle = Dongle::new(&folder.path().join("dongle"), Quirks::default());
    let url = dongle.url();
    let shown = run(["sniff", "--radio", &url, "--scan"]);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.status.success(), "{}", said(&shown));
    assert_eq!(text.lines().count(), 17, "{text}");
    let bar = "#".repeat(20);
    let expected = format!("     26  2480   -60  {bar}");
    assert_eq!(text.lines().last(), Some(expected.as_str()));
    // A radio with fewer channels.
    dongle.radio().properties.insert(0x22, vec![11, 12, 25]);
    let scan = report(&run(["sniff", "--radio", &url, "--scan", "--json"]));
    let channels = scan["channels"].as_array().unwrap();
    let numbers: Vec<_> = channels.iter().map(|one| &one["channel"]).collect();
    assert_eq!(numbers, [11, 12, 25]);
    assert_eq!(channels[2]["mhz"], 2_475);
    assert_eq!(channels[2]["dbm"], -60);
}

#[test]
fn radios_of_no_use_are_refused() {
    let folder = folder();
    let dongle = Dongle::new(&folder.path().join("dongle"), Quirks::default());
    let path = folder.path().join("air.pcap");
    let refused = |url: &str, status, words: &[&str]| {
        let path = path.to_str().unwrap();
        let output = run(["sniff", "--channel", "20", "--radio", url, "--pcap", path]);
        assert_refused(&output, status, words);
        assert!(!fs::exists(path).unwrap());
    };
    dongle.radio().properties.insert(0x22, vec![11, 12]);
    refused(&dongle.url(), 2, &["no channel 20: choose one of 11 to 12"]);
    dongle.radio().properties.insert(0x22, (11..=26).collect());
    dongle.radio().quirks.refuses = Some((Property::MacPromiscuous, Status::InvalidArgument));
    refused(&dongle.url(), 1, &["refused a setting, MacPromiscuous"]);
    dongle.radio().is_deaf = true;
    refused(&dongle.url(), 1, &["has not answered for 2 s", "baud rate"]);
    refused(
        "spinel+hdlc+uart:///dev/none",
        2,
        &["there is no /dev/none"],
    );
    refused("spinel+hdlc+uart:///dev/null", 2, &["is no serial line"]);
    refused(
        "/dev/ttyACM0",
        2,
        &["--radio: a radio is at spinel+hdlc+uart"],
    );
    #[cfg(target_os = "linux")]
    refused("wpan:none", 2, &["there is no interface none", "iwpan dev"]);
    refused(
        "spinel+hdlc+forkpty:///bin/sh?forkpty-arg=-c&forkpty-arg=exit 4",
        1,
        &["/bin/sh ends again and again (exit status: 4)"],
    );
}
