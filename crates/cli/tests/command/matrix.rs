//! The main job in virtual time: every file arrives bit for bit, whatever the air loses.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use crate::common::{file, folder, motet, report, run};

const SIZES: [usize; 5] = [0, 1, 1024, 20 * 1024, 250 * 1024];
const HOPS: [&str; 4] = ["1", "2", "3", "5"];
const LOSSES: [&str; 3] = ["0", "0.05", "0.1"];
const DIRECTIONS: [&str; 2] = ["up", "down"];

struct Case {
    len: usize,
    hops: &'static str,
    loss: &'static str,
    direction: &'static str,
}

#[test]
fn every_file_arrives_bit_for_bit() {
    let folder = folder();
    let files: BTreeMap<usize, PathBuf> = SIZES
        .iter()
        .map(|len| (*len, file(folder.path(), *len)))
        .collect();
    let mut cases = Vec::new();
    // The long ones first, so that no core is left with one of them at the end.
    for len in SIZES.into_iter().rev() {
        for hops in HOPS.into_iter().rev() {
            for loss in LOSSES {
                for direction in DIRECTIONS {
                    cases.push(Case {
                        len,
                        hops,
                        loss,
                        direction,
                    });
                }
            }
        }
    }
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                    carry(case, &files[&case.len]);
                }
            });
        }
    });
}

fn carry(case: &Case, path: &PathBuf) {
    let Case {
        len,
        hops,
        loss,
        direction,
    } = case;
    let arguments = [
        "--virtual",
        "--json",
        "--hops",
        hops,
        "--frame-loss",
        loss,
        "--direction",
        direction,
    ];
    let output = motet()
        .arg("send")
        .arg(path)
        .args(arguments)
        .output()
        .unwrap();
    let report = report(&output);
    let context = format!("motet send {len}.bin {}: {report}", arguments.join(" "));
    assert_eq!(report["bytes"], *len, "{context}");
    assert_eq!(
        report["sha256_sent"], report["sha256_received"],
        "{context}"
    );
    assert_eq!(report["hops"].to_string(), *hops, "{context}");
    if *len > 0 {
        let (goodput, bound) = (&report["goodput_kbps"], &report["bound_kbps"]);
        let (goodput, bound) = (goodput.as_f64().unwrap(), bound.as_f64().unwrap());
        assert!(0.0 < goodput && goodput <= bound, "{context}");
    }
}

#[test]
fn a_file_arrives_over_relays_that_do_not_copy() {
    let folder = folder();
    let path = file(folder.path(), 20 * 1024);
    let path = path.to_str().unwrap();
    let capture = folder.path().join("air.pcap");
    for channels in ["single", "multi"] {
        for radio in ["telosb", "nrf52840"] {
            let output = run([
                "send",
                path,
                "--virtual",
                "--json",
                "--hops",
                "3",
                "--forwarding",
                "cit",
                "--channels",
                channels,
                "--radio",
                radio,
                "--hold",
                "5",
                "--frame-loss",
                "0.05",
                "--pcap",
                capture.to_str().unwrap(),
                "--force",
            ]);
            // Several channels: the link type that names them.
            let expected: u32 = if channels == "multi" { 283 } else { 195 };
            let bytes = std::fs::read(&capture).unwrap();
            assert_eq!(bytes[20..24], expected.to_le_bytes());
            assert!(output.status.success(), "{channels}, {radio}");
        }
    }
}

/// The bound holds for the fastest settings of every radio and way of forwarding.
#[test]
fn nothing_exceeds_the_bound() {
    let folder = folder();
    let path = file(folder.path(), 30 * 1024);
    let path = path.to_str().unwrap();
    let settings = [
        "--hops 1 --no-deaf --window 12 --mss-frames 12",
        "--hops 1 --radio nrf52840 --window 12",
        "--hops 1 --radio telosb --window 12",
        "--hops 2 --mss-frames 12 --window 8 --hold 7 --retry-delay 5",
        "--hops 3 --hold 7 --retry-delay 10 --window 6",
        "--hops 2 --forwarding cit --channels multi --compression tcphc",
        "--hops 4 --forwarding cit --channels multi --compression tcphc --direction down",
        "--hops 4 --no-hidden",
    ];
    for setting in settings {
        let mut arguments = vec!["send", path, "--virtual", "--json"];
        arguments.extend(setting.split(' '));
        let report = report(&run(&arguments));
        let [goodput, bound] = ["goodput_kbps", "bound_kbps"].map(|key| report[key].as_f64());
        assert!(
            0.0 < goodput.unwrap() && goodput < bound,
            "{setting}: {report}"
        );
    }
}

/// An image of firmware for a mote that sleeps, three hops away: whole, in the time that it may take, and for
/// how much.
#[test]
fn an_image_arrives_at_a_mote_that_sleeps() {
    let folder = folder();
    let path = file(folder.path(), 250 * 1_000);
    let path = path.to_str().unwrap();
    for (loss, seconds_max) in [("0", 180.0), ("0.1", 360.0)] {
        let options = "--direction down --hops 3 --sleep hinted --virtual --json --packet-loss";
        let mut arguments = vec!["send", path];
        arguments.extend(options.split(' ').chain([loss]));
        let report = report(&run(&arguments));
        assert_eq!(report["sha256_sent"], report["sha256_received"], "{report}");
        let figure = |key: &str| report[key].as_f64().unwrap_or(f64::NAN);
        assert!(figure("seconds") <= seconds_max, "{loss}: {report}");
        let duty = figure("radio_duty");
        assert!(0.0 < duty && duty < 1.0, "{loss}: {report}");
        assert!(figure("energy_mj") > 0.0, "{loss}: {report}");
    }
}
