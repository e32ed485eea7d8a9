//! The bound's arithmetic: its published figures, and its reference in another language.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use motet::random::Rng;

use super::*;

/// A full segment of so many frames, as the reference has it.
fn segment(frames: usize, is_compressed: bool) -> SegmentFrames {
    let (payload_len, first, ack) = match is_compressed {
        true => (453, 115, 47),
        false => (429, 112, 68),
    };
    let mut lens = vec![124; frames];
    lens[0] = first;
    lens[frames - 1] = 127;
    SegmentFrames {
        payload_len: payload_len + 96 * frames - 96 * 5,
        frames: lens,
        ack_frames: vec![ack],
        acks_per_segment: 0.5,
    }
}

fn path(profile: Profile, frames: usize, is_compressed: bool) -> Path {
    Path {
        senses_two_hops: profile == Profile::TELOSB,
        profile,
        hops: 1,
        is_immediate: false,
        is_multi_channel: false,
        be_min: 3,
        segment: segment(frames, is_compressed),
        ack_every: Some(2),
        source_only: false,
    }
}

/// Hops from 1 to 6 and the kb/s of three and more, ACKs for every second and for every
/// eighth segment, and none at all.
#[test]
fn the_bounds_are_those_of_the_table() {
    let telosb = || path(Profile::TELOSB, 5, true);
    let with = |path: Path, is_immediate, is_multi_channel| Path {
        is_immediate,
        is_multi_channel,
        ..path
    };
    let hamilton = || path(Profile::HAMILTON, 5, false);
    let every = |second, eighth| [(Some(2), second), (Some(8), eighth)];
    let second = |second| [(Some(2), second); 2];
    let none = |none| [(None, none); 2];
    let cases = [
        (hamilton(), 1, second(85.7)),
        (hamilton(), 2, every(49.4, 51.7)),
        (hamilton(), 3, every(40.8, 41.8)),
        (hamilton(), 6, every(40.8, 41.8)),
        (hamilton(), 3, none(42.2)),
        (path(Profile::HAMILTON, 12, false), 1, second(91.2)),
        (path(Profile::HAMILTON, 12, false), 2, second(54.3)),
        (path(Profile::HAMILTON, 12, false), 3, every(44.2, 44.7)),
        (path(Profile::HAMILTON, 5, true), 1, second(90.3)),
        (path(Profile::HAMILTON, 5, true), 2, second(52.7)),
        (path(Profile::HAMILTON, 5, true), 4, second(43.2)),
        (telosb(), 1, second(101.3)),
        (telosb(), 2, second(68.7)),
        (telosb(), 3, second(47.6)),
        (with(telosb(), false, true), 2, second(70.6)),
        (with(telosb(), false, true), 5, second(70.6)),
        (with(telosb(), true, false), 1, second(101.3)),
        (with(telosb(), true, false), 2, second(69.8)),
        (with(telosb(), true, false), 3, every(51.2, 53.2)),
        (with(telosb(), true, false), 6, every(51.2, 53.2)),
        (with(telosb(), true, false), 3, none(53.9)),
        (with(telosb(), true, true), 2, second(71.7)),
        (with(telosb(), true, true), 6, every(71.7, 74.4)),
        (with(telosb(), true, true), 3, none(75.3)),
    ];
    for (path, hops, expected) in cases {
        for (ack_every, expected) in expected {
            let path = Path {
                hops,
                ack_every,
                ..path.clone()
            };
            let bound = path.kbps(Luck::Mean);
            assert!(
                (bound - expected).abs() < 0.051,
                "{bound} for {expected}: {path:?}"
            );
        }
    }
}

/// A full frame alone takes three hops at least so long on its way.
#[test]
fn a_frame_takes_three_hops_as_long_as_the_best_order_needs() {
    for (profile, is_immediate, is_multi_channel, least, most) in [
        (Profile::HAMILTON, false, false, 16.3, 16.5),
        (Profile::TELOSB, true, false, 13.5, 13.8),
        (Profile::TELOSB, true, true, 9.6, 9.8),
    ] {
        let path = Path {
            hops: 3,
            is_immediate,
            is_multi_channel,
            ack_every: None,
            segment: SegmentFrames {
                frames: vec![124],
                ..segment(2, true)
            },
            ..path(profile, 5, true)
        };
        let ms = path.air(Luck::Mean) / 1e6;
        assert!((least..most).contains(&ms), "{ms} ms: {path:?}");
    }
}

#[test]
fn luck_raises_a_bound_and_bytes_in_flight_do() {
    for path in [
        path(Profile::HAMILTON, 5, false),
        path(Profile::IDEAL, 5, false),
    ] {
        let [mean, best] = [Luck::Mean, Luck::Best].map(|luck| path.kbps(luck));
        assert!(mean < best, "{mean} and {best}");
        let stretch = |bytes, in_flight| {
            path.of_stretch_kbps(&Stretch {
                seconds: 2.0,
                bytes,
                in_flight,
            })
        };
        // Of 429 bytes in five frames each.
        assert_eq!(stretch(199 * 429, 0), best);
        assert_eq!(stretch(200 * 429, 0), mean);
        assert!((stretch(200 * 429, 1_000) - mean - 4.0).abs() < 1e-9);
    }
}

/// A path drawn at random, and the same as the reference takes it.
fn drawn(rng: &mut Rng) -> (Path, String) {
    let mut any = |count: u32| rng.below(count);
    let chosen = [
        Profile::HAMILTON,
        Profile::TELOSB,
        Profile::NRF52840,
        Profile::IDEAL,
    ];
    let mut profile = chosen[any(4) as usize];
    if any(2) == 0 {
        profile.transmit_copy_ns = u64::from(any(20_000));
        profile.receive_copy_ns = u64::from(any(20_000));
        profile.handle = Duration::from_micros(any(300).into());
        profile.prepare = Duration::from_micros(any(1_000).into());
        profile.deaf = any(2) == 0;
        profile.capabilities.shared_buffer = any(2) == 0;
        profile.capabilities.channel_switch = Duration::from_micros(any(100).into());
    }
    let frames = 2 + any(11) as usize;
    let is_compressed = any(2) == 0;
    let path = Path {
        hops: 1 + any(6) as usize,
        is_immediate: any(2) == 0,
        is_multi_channel: any(3) == 0,
        senses_two_hops: any(2) == 0,
        be_min: any(6) as u8,
        segment: segment(frames, is_compressed),
        ack_every: Some(1 + any(9) as u8).filter(|_| any(5) > 0),
        source_only: false,
        profile,
    };
    let us = |time: Duration| time.as_micros();
    let radio = serde_json::json!([
        profile.transmit_copy_ns as f64 / 1e3,
        profile.receive_copy_ns as f64 / 1e3,
        us(profile.handle),
        us(profile.prepare),
        us(profile.jitter),
        profile.deaf,
        profile.capabilities.shared_buffer,
        us(profile.capabilities.channel_switch),
        path.senses_two_hops,
    ]);
    let point = serde_json::json!([
        radio,
        path.hops,
        frames,
        is_compressed,
        path.ack_every.map_or(0.0, |every| 1.0 / f64::from(every)),
        path.is_immediate,
        path.is_multi_channel,
        path.be_min,
    ]);
    (path, point.to_string())
}

/// The reference, or `None` where it is not there and need not be.
fn reference() -> Option<PathBuf> {
    let root = std::env::var_os("MOTET_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let file = root.join("spec/pacing_bound.py");
    let has_python = Command::new("python3").arg("--version").output().is_ok();
    let missing = match (has_python, file.is_file()) {
        (true, true) => return Some(file),
        (false, _) => "python3 is missing".to_owned(),
        (true, false) => format!("{} is missing; set MOTET_SHARED", file.display()),
    };
    let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!ci, "{missing}");
    println!("not run: {missing}");
    None
}

#[test]
fn the_bounds_are_those_of_the_reference_at_drawn_points() {
    let Some(file) = reference() else { return };
    let mut rng = Rng::from_seed([19, 1]);
    let drawn: Vec<(Path, String)> = (0..200).map(|_| drawn(&mut rng)).collect();
    let mut python = Command::new("python3")
        .args(["-B", "-c", include_str!("reference.py")])
        .arg(file)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it was there");
    let mut points = python.stdin.take().expect("it is piped");
    let lines: Vec<&str> = drawn.iter().map(|(_, point)| point.as_str()).collect();
    let writing = lines.join("\n");
    points.write_all(writing.as_bytes()).unwrap();
    drop(points);
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    let answers = String::from_utf8(output.stdout).unwrap();
    assert_eq!(answers.lines().count(), drawn.len());
    for ((path, point), answer) in drawn.iter().zip(answers.lines()) {
        let expected: f64 = answer.parse().unwrap();
        let bound = path.kbps(Luck::Mean);
        assert!(
            (bound / expected - 1.0).abs() < 1e-6,
            "{bound}, the reference has {expected}: {point}"
        );
    }
}
