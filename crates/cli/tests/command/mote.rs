//! `motet mote` with a radio that the tests play on a pseudo-terminal, and no router in reach.

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _},
    path::Path,
    process::{Child, ChildStderr, Stdio},
    time::Duration,
};

use motet_spinel::frame::{Property, Status};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use crate::common::{assert_refused, folder, motet, run};
use crate::dongle::Dongle;
use crate::fake::{End, Quirks};

/// A mote that has begun.
struct Mote {
    child: Child,
    stderr: BufReader<ChildStderr>,
    said: String,
}

impl Mote {
    fn start(dongle: &Dongle, arguments: &[&str]) -> Self {
        // No other radio has its address.
        dongle.radio().ends = [End::Status(Status::NoAck); PROBES].into();
        let mut child = motet()
            .args(["mote", "--radio", &dongle.url()])
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("motet starts");
        let mut stderr = BufReader::new(child.stderr.take().expect("piped"));
        let mut said = String::new();
        stderr.read_line(&mut said).expect("a line");
        Self {
            child,
            stderr,
            said,
        }
    }

    /// Ends it, once it has sent so many frames.
    fn end_after(mut self, dongle: &Dongle, frames: usize) {
        for _ in 0..1_200 {
            if dongle.radio().air.len() >= frames {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let pid = Pid::from_raw(self.child.id().cast_signed());
        kill(pid, Signal::SIGINT).expect("it runs");
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).expect("text");
        let status = self.child.wait().expect("it ends");
        assert_eq!((status.code(), rest.as_str()), (Some(0), ""));
        assert!(dongle.radio().air.len() >= frames, "it sent too little");
        // They went to itself.
        for probe in dongle.radio().air.drain(..PROBES) {
            assert_eq!(probe[5..13], probe[13..21], "{probe:x?}");
            assert_eq!(probe[21..], [4], "a data request: {probe:x?}");
        }
    }
}

/// Frames that a mote sends to itself before it starts.
const PROBES: usize = 3;

/// A radio that acknowledges frames to this one's address has the same EUI-64.
#[test]
fn a_radio_whose_address_another_one_has_is_refused() {
    let folder = folder();
    let dongle = Dongle::new(&folder.path().join("dongle"), Quirks::default());
    let refused = run(["mote", "--radio", &dongle.url(), "--pan", "abcd"]);
    assert_refused(&refused, 1, &["18b4300000000001", "another EUI-64"]);
    let addressed = |psdu: &Vec<u8>| psdu[5..13] == [1, 0, 0, 0, 0, 0x30, 0xb4, 0x18];
    let radio = dongle.radio();
    assert!(radio.air.len() >= 2 && radio.air.iter().all(addressed));
}

/// Chips whose memory was erased would all have one address.
#[test]
fn a_radio_without_an_eui64_is_refused() {
    let folder = folder();
    let dongle = Dongle::new(&folder.path().join("dongle"), Quirks::default());
    for blank in [0, 0xff] {
        let hwaddr = Property::Hwaddr.number();
        dongle.radio().properties.insert(hwaddr, vec![blank; 8]);
        let refused = run(["mote", "--radio", &dongle.url(), "--pan", "abcd"]);
        assert_refused(&refused, 1, &["no EUI-64 of its own"]);
        assert_eq!(dongle.radio().air.len(), 0);
    }
}

/// A radio that hangs is not said to have restarted.
#[test]
fn a_radio_that_does_not_answer_is_told_from_one_that_has_restarted() {
    let folder = folder();
    let dongle = Dongle::new(&folder.path().join("dongle"), Quirks::default());
    let mut mote = Mote::start(&dongle, &["--pan", "abcd"]);
    dongle.radio().is_deaf = true;
    let mut line = String::new();
    mote.stderr.read_line(&mut line).expect("a line");
    assert!(
        line.starts_with("motet: the radio does not answer"),
        "{line}"
    );
    dongle.radio().is_deaf = false;
    line.clear();
    mote.stderr.read_line(&mut line).expect("a line");
    assert_eq!(line, "motet: the radio is ready again\n");
    mote.child.kill().expect("it runs");
    let _ = mote.child.wait();
}

/// One ACK may be another frame's with the same number.
#[test]
fn a_single_ack_is_no_other_radio() {
    let folder = folder();
    let dongle = Dongle::new(&folder.path().join("dongle"), Quirks::default());
    let silence = End::Status(Status::NoAck);
    let ack = End::Acked { pending: false };
    dongle.radio().ends = [ack, silence, silence, silence, silence].into();
    let mut child = motet()
        .args(["mote", "--radio", &dongle.url(), "--pan", "abcd"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("motet starts");
    let mut line = String::new();
    let stderr = child.stderr.take().expect("piped");
    BufReader::new(stderr).read_line(&mut line).expect("a line");
    child.kill().expect("it runs");
    let _ = child.wait();
    assert!(line.starts_with("motet: a mote by"), "{line}");
}

#[test]
fn a_mote_looks_for_a_router_on_its_channel_and_in_its_pan() {
    let folder = folder();
    let dongle = Dongle::new(&folder.path().join("dongle"), Quirks::default());
    let mote = Mote::start(&dongle, &["--channel", "20", "--pan", "0xabcd"]);
    let expected =
        "motet: a mote by OPENTHREAD/; SIMULATION, on channel 20 in PAN 0xabcd; Ctrl-C ends it\n";
    assert_eq!(mote.said, expected);
    mote.end_after(&dongle, PROBES + 1);
    let radio = dongle.radio();
    assert!(radio.has(Property::PhyChan, &[20]));
    assert!(radio.has(Property::MacPanid, &[0xcd, 0xab]));
    assert!(radio.has(Property::MacPromiscuous, &[0]));
    // To all of the PAN, in the clear.
    assert_eq!(radio.air[0][0] & 8, 0);
    assert_eq!(radio.air[0][3..7], [0xcd, 0xab, 0xff, 0xff]);
}

/// The frame counters of secured frames to all nodes, from an extended address.
fn counters(dongle: &Dongle) -> Vec<u32> {
    let radio = dongle.radio();
    let counter = |psdu: &Vec<u8>| {
        let control = u16::from_le_bytes([psdu[0], psdu[1]]);
        assert_eq!(control & 0xcc48, 0xc848, "{psdu:x?}");
        u32::from_le_bytes(psdu[16..20].try_into().unwrap())
    };
    radio.air.iter().map(counter).collect()
}

#[test]
fn a_mote_with_a_key_uses_no_frame_counter_twice() {
    let folder = folder();
    let dongle = Dongle::new(&folder.path().join("dongle"), Quirks::default());
    let (key, state) = (folder.path().join("a.key"), folder.path().join("state"));
    let [key, state] = [&key, &state].map(|path: &std::path::PathBuf| path.to_str().unwrap());
    assert!(run(["keys", "new", key]).status.success());
    let arguments = ["--key", key, "--state", state];
    let mote = Mote::start(&dongle, &arguments);
    let said = mote.said.clone();
    mote.end_after(&dongle, PROBES + 2);
    assert!(Path::new(state).is_dir());
    let before = counters(&dongle);
    dongle.radio().air.clear();
    let mote = Mote::start(&dongle, &arguments);
    // The PAN follows from the key.
    assert_eq!(mote.said, said);
    mote.end_after(&dongle, PROBES + 2);
    let after = counters(&dongle);
    assert!(
        before.iter().max() < after.iter().min(),
        "{before:?}, {after:?}"
    );
}

#[test]
fn counters_that_cannot_be_kept_are_refused() {
    let folder = folder();
    let dongle = Dongle::new(&folder.path().join("dongle"), Quirks::default());
    let (key, state) = (folder.path().join("a.key"), folder.path().join("file"));
    fs::write(&state, "").unwrap();
    let [key, state] = [&key, &state].map(|path: &std::path::PathBuf| path.to_str().unwrap());
    assert!(run(["keys", "new", key]).status.success());
    let url = dongle.url();
    let refused = run(["mote", "--radio", &url, "--key", key, "--state", state]);
    assert_refused(&refused, 2, &[state]);
    assert!(dongle.radio().air.is_empty());
}

#[test]
fn what_is_no_dataset_of_a_thread_network_is_refused_with_a_reason() {
    let key = format!("0510{}", "11".repeat(16));
    let whole = format!("0e080000000000010000000300000f{key}0708fd000db8000000000102abcd");
    let without_key = whole.replace(&key, "");
    let other_channel = whole.replace("00000f", "000001");
    for (dataset, why) in [
        ("nothing-of-the-kind", "hexadecimal"),
        (&whole[..whole.len() - 2], "ends too early"),
        (&without_key, "network key"),
        (&other_channel, "channel"),
    ] {
        let radio = "spinel+hdlc+forkpty:///nowhere";
        let arguments = ["mote", "--radio", radio, "--thread", dataset];
        assert_refused(&run(arguments), 2, &[why, "ot-ctl dataset active -x"]);
    }
}
