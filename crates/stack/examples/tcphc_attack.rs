//! Attacks TCP header compression: traffic of every kind over paths of every kind, each
//! restored header held against the one that was sent.
//!
//! `cargo run --release -p motet --example tcphc_attack -- --segments 10000000`; `--row N`
//! runs one row of the table by itself.

use motet::tcphc::Mode;
use motet::{random, tcphc, time, wire};

#[path = "../src/tcphc/tests/driver/mod.rs"]
mod driver;

use driver::{Seen, Setup, World};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let mut segments = 1_000_000;
    let mut seed = 1;
    let mut only = None;
    while let Some(name) = arguments.next() {
        let value = arguments.next().and_then(|value| value.parse().ok());
        match (name.as_str(), value) {
            ("--segments", Some(value)) => segments = value,
            ("--seed", Some(value)) => seed = value,
            ("--row", Some(value)) => only = Some(value),
            _ => {
                eprintln!("usage: tcphc_attack [--segments N] [--seed N] [--row N]");
                std::process::exit(2);
            }
        }
    }
    println!("{segments} segments per mode and kind of path, seed {seed}");
    println!(
        "{:10} {:12} {:>9} {:>9} {:>8} {:>6} {:>6} {:>6}   mean B ACK / data",
        "mode", "path", "sent", "exact", "dropped", "data", "never", "other"
    );
    let mut failed = false;
    let mut row = 0;
    for mode in [Mode::Default, Mode::InOrder, Mode::Strict, Mode::Draft] {
        for reordering in [false, true] {
            row += 1;
            if only.is_some_and(|only| only != row) {
                continue;
            }
            let seen = attack(mode, reordering, segments, seed);
            report(mode, reordering, &seen);
            failed |= match (mode, reordering) {
                (Mode::Draft, _) => seen.silent() * 1000 < seen.exact,
                (Mode::Default, true) => seen.wrong_data + seen.never_sent != 0,
                (Mode::InOrder, true) => false,
                _ => seen.silent() != 0,
            };
        }
    }
    std::process::exit(i32::from(failed));
}

/// Every kind of traffic on one kind of path.
fn attack(mode: Mode, reordering: bool, segments: u64, seed: u64) -> Seen {
    let mut seen = Seen::default();
    let traffic = driver::traffic();
    let losses: [u32; 5] = [0, 20, 50, 100, 300];
    let runs = (traffic.len() * losses.len()) as u64;
    for (at, traffic) in traffic.iter().enumerate() {
        for (row, loss) in losses.into_iter().enumerate() {
            let setup = Setup {
                mode,
                loss,
                reorder: if reordering { 300 } else { 0 },
                late: if reordering { 150 } else { 0 },
                // Draft mode has no options, and its errors need no trouble.
                timestamps: traffic.timestamps && mode != Mode::Draft,
                seed: seed * 1000 + (at * losses.len() + row) as u64,
                ..*traffic
            };
            let mut world = World::new(setup, |_| {});
            world.run(segments / runs + 1);
            seen.add(&world.seen);
        }
    }
    seen
}

fn report(mode: Mode, reordering: bool, seen: &Seen) {
    let mean = |has_payload: usize| {
        seen.bytes[has_payload] as f64 / seen.forms[2][has_payload].max(1) as f64
    };
    println!(
        "{:10} {:12} {:9} {:9} {:8} {:6} {:6} {:6}   {:.2} / {:.2}",
        format!("{mode:?}"),
        if reordering { "reordering" } else { "in order" },
        seen.sent,
        seen.exact,
        seen.dropped,
        seen.wrong_data,
        seen.never_sent,
        seen.wrong,
        mean(0),
        mean(1),
    );
}
