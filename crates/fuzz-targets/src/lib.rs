//! The fuzz targets: one plain function per target, and seeds made by our own emitters.
//!
//! Place: `fuzz/fuzz_targets` wraps each function for libFuzzer; the tests here run the same
//! functions over the committed corpora and over captures, on any compiler. A target panics
//! on what must never happen: a parser's panic, an invariant that does not hold.
//! Left out: the fuzzer itself, and judging output that is merely wrong (tests do that).

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

/// The example of the README, compiled with the documentation's own.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod ble;
mod connection;
mod datagrams;
mod driven;
mod fairness;
mod firmware;
mod fragments;
mod input;
mod join;
mod mesh;
mod mote;
mod node;
mod overheard;
mod radio;
mod sealed;
mod seeds;
mod serial;
mod spinel;
mod tcphc;
mod text;
mod thread;
mod wire;

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name of the libFuzzer binary and of its folder in `fuzz/corpus`.
    pub name: &'static str,
    /// Runs one input.
    pub run: fn(&[u8]),
    /// Inputs to start from.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All fuzz targets.
pub const TARGETS: [Target; 25] = [
    Target {
        name: "wire",
        run: wire::run,
        seeds: seeds::wire,
    },
    Target {
        name: "headers",
        run: wire::headers,
        seeds: seeds::headers,
    },
    Target {
        name: "datagrams",
        run: datagrams::run,
        seeds: seeds::programs,
    },
    Target {
        name: "fragments",
        run: fragments::run,
        seeds: fragments::seeds,
    },
    Target {
        name: "tcphc",
        run: tcphc::run,
        seeds: seeds::programs,
    },
    Target {
        name: "node",
        run: node::run,
        seeds: seeds::node,
    },
    Target {
        name: "ble",
        run: ble::run,
        seeds: seeds::ble,
    },
    Target {
        name: "serial",
        run: serial::run,
        seeds: seeds::serial,
    },
    Target {
        name: "mote",
        run: mote::run,
        seeds: seeds::mote,
    },
    Target {
        name: "radio",
        run: radio::run,
        seeds: radio::seeds,
    },
    Target {
        name: "spinel",
        run: spinel::run,
        seeds: spinel::seeds,
    },
    Target {
        name: "firmware",
        run: firmware::run,
        seeds: firmware::seeds,
    },
    Target {
        name: "sealed",
        run: sealed::run,
        seeds: sealed::seeds,
    },
    Target {
        name: "join",
        run: join::run,
        seeds: join::seeds,
    },
    Target {
        name: "thread",
        run: thread::run,
        seeds: thread::seeds,
    },
    Target {
        name: "mesh",
        run: mesh::run,
        seeds: mesh::seeds,
    },
    Target {
        name: "connection",
        run: connection::run,
        seeds: seeds::connections,
    },
    Target {
        name: "fairness",
        run: fairness::run,
        seeds: fairness::seeds,
    },
    Target {
        name: "scenario",
        run: text::scenario,
        seeds: seeds::scenarios,
    },
    Target {
        name: "counters",
        run: text::counters,
        seeds: text::records,
    },
    Target {
        name: "trace",
        run: text::trace,
        seeds: seeds::traces,
    },
    Target {
        name: "import",
        run: text::topology,
        seeds: seeds::topologies,
    },
    Target {
        name: "script",
        run: text::script,
        seeds: seeds::scripts,
    },
    Target {
        name: "overheard",
        run: overheard::run,
        seeds: overheard::seeds,
    },
    Target {
        name: "decode",
        run: text::capture,
        seeds: seeds::captures,
    },
];

/// Runs `input` through the target called `name`.
///
/// # Panics
/// There is no such target, or the target found a defect.
pub fn run(name: &str, input: &[u8]) {
    let target = TARGETS.iter().find(|target| target.name == name);
    (target.expect("a target's name").run)(input);
}

/// The counts that an input of the target `mote` reaches.
pub fn reach(input: &[u8]) -> Reached {
    mote::reach(input)
}

pub use mote::Reached;
pub use seeds::node_input;
