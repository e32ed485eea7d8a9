//! Files that people write or others recorded: refused in words or read, never a panic.

use std::path::Path;

use motet_conformance::run::{Judge, run};
use motet_conformance::script;
use motet_lab::air::k7;
use motet_lab::scenario::{Overrides, Plan};

/// A scenario, read and checked at every point of its sweep, not run.
pub(crate) fn scenario(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let file = Path::new("fuzz.toml");
        if let Err(error) = Plan::parse(text, file, Overrides::default()) {
            assert!(!error.to_string().is_empty());
        }
    }
}

/// A connectivity trace.
pub(crate) fn trace(bytes: &[u8]) {
    if let Ok(trace) = k7::read(bytes, 20) {
        let _gains = trace.mean(-95.0, 127);
        let _replay = trace.replay(0, -95.0, 127);
    }
}

/// A packetdrill script, played where it can be read.
pub(crate) fn script(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    // Hours of virtual time cost real time; the fuzzer need not find them.
    let is_long = |script: &script::Script| script.events.len() > 60;
    if script::parse(text).is_ok_and(|script| !is_long(&script)) {
        let _verdict = run(text, &Judge::default());
    }
}

/// A capture file, explained for people and for programs.
pub(crate) fn capture(bytes: &[u8]) {
    let mut text = Vec::new();
    let explained = motet_decode::explain(bytes.to_vec(), &mut text);
    assert!(explained.is_ok(), "memory takes every byte");
    assert!(std::str::from_utf8(&text).is_ok());
}
