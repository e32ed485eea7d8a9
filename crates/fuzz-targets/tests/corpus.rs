//! Every committed input, every seed and every frame of the captures goes through its target.

use std::fs::{self, File};
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use motet::random::Rng;
use motet_fuzz_targets::{Reached, TARGETS, node_input, reach, run};
use pcap_file::pcap::PcapReader;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(self::files(&path)),
            false => files.push(path),
        }
    }
    files.sort();
    files
}

#[test]
fn the_committed_corpora_find_nothing() {
    for target in TARGETS {
        let files = files(&corpus().join(target.name));
        assert!(!files.is_empty(), "{} has no corpus", target.name);
        for file in files {
            println!("{}", file.display());
            (target.run)(&fs::read(&file).unwrap());
        }
    }
}

#[test]
fn the_seeds_are_committed_and_reach_behind_the_parsers() {
    for target in TARGETS {
        let known: Vec<Vec<u8>> = files(&corpus().join(target.name))
            .iter()
            .map(|file| fs::read(file).unwrap())
            .collect();
        for seed in (target.seeds)() {
            assert!(
                known.contains(&seed),
                "a seed of {} is missing: run `cargo xtask fuzz --seeds`",
                target.name
            );
            (target.run)(&seed);
        }
    }
}

/// A target that stops at the door proves nothing: its corpus comes to each part of a mote.
#[test]
fn the_corpus_reaches_what_a_mote_does() {
    let mut all = Reached::default();
    for file in files(&corpus().join("mote")) {
        let Reached {
            software_acks,
            routers,
            connects,
            accepts,
            recycled,
            path_errors,
            datagrams,
            congestion,
            immediate,
            attempts,
        } = reach(&fs::read(&file).unwrap());
        all.software_acks += software_acks;
        all.routers += routers;
        all.connects += connects;
        all.accepts += accepts;
        all.recycled += recycled;
        all.path_errors += path_errors;
        all.datagrams += datagrams;
        all.congestion += congestion;
        all.immediate += immediate;
        all.attempts += attempts;
    }
    println!("{all:?}");
    assert!(all.software_acks > 0 && all.routers > 0, "{all:?}");
    assert!(all.connects > 0 && all.accepts > 0, "{all:?}");
    assert!(all.recycled > 0 && all.path_errors > 1, "{all:?}");
    assert!(all.datagrams > 1 && all.congestion > 0, "{all:?}");
    assert!(all.immediate > 0 && all.attempts > 0, "{all:?}");
}

/// What the fuzzer would try first, where there is none: seeds with parts changed, cut out and
/// put together.
#[test]
fn chance_finds_nothing() {
    let mut rng = Rng::from_seed([3, 1]);
    for target in TARGETS
        .iter()
        .filter(|target| PROGRAMS.contains(&target.name))
    {
        let seeds = (target.seeds)();
        let some = |rng: &mut Rng| seeds[rng.below(seeds.len() as u32) as usize].clone();
        for number in 0..ROUNDS {
            let mut input = some(&mut rng);
            for _ in 0..=rng.below(8) {
                let at = rng.below(input.len() as u32 + 1) as usize;
                match rng.below(4) {
                    0 => input.truncate(at),
                    1 => input.extend(some(&mut rng).iter().skip(7).take(60)),
                    2 => input.insert(at, rng.below(16) as u8),
                    _ => {
                        if let Some(byte) = input.get_mut(at) {
                            *byte = rng.below(256) as u8;
                        }
                    }
                }
            }
            let run = catch_unwind(|| (target.run)(&input));
            assert!(run.is_ok(), "{} {number}: {input:?}", target.name);
        }
    }
}

/// Targets whose input is a program.
const PROGRAMS: [&str; 10] = [
    "connection",
    "datagrams",
    "tcphc",
    "node",
    "mote",
    "mesh",
    "sealed",
    "serial",
    "spinel",
    "ble",
];

/// Inputs by chance for each.
const ROUNDS: u32 = 2_000;

#[test]
fn captures_find_nothing() {
    let root = std::env::var_os("MOTET_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let captures = root.join("data/captures");
    let ci = std::env::var_os("CI").is_some();
    if !captures.is_dir() {
        assert!(!ci, "{} is missing; set MOTET_SHARED", captures.display());
        println!(
            "not run: {} is missing; set MOTET_SHARED",
            captures.display()
        );
        return;
    }
    let mut count = 0;
    for file in files(&captures) {
        run("decode", &fs::read(&file).unwrap());
        let frames = frames(&file);
        count += frames.len();
        for frame in &frames {
            for parser in 0..9 {
                run("wire", &[&[parser], &frame[..]].concat());
            }
            run("headers", &[&[8], &frame[..]].concat());
            run("node", &node_input([&frame[..]]));
        }
        run("node", &node_input(frames.iter().map(Vec::as_slice)));
    }
    assert!(count > 100, "only {count} frames in the captures");
}

/// The records of a pcap file; of anything else, none.
fn frames(file: &Path) -> Vec<Vec<u8>> {
    let Ok(mut reader) = PcapReader::new(File::open(file).unwrap()) else {
        return Vec::new();
    };
    let mut frames = Vec::new();
    while let Some(Ok(record)) = reader.next_packet() {
        frames.push(record.data.into_owned());
    }
    frames
}
