//! Files that people write or others recorded: refused in words or read, never a panic.

use std::path::Path;
use std::time::Duration;

use motet_conformance::run::{Judge, run};
use motet_conformance::script;
use motet_lab::air::k7;
use motet_lab::scenario::{Overrides, Plan};
use motet_state::record::{KeyName, Past, Record};

/// A scenario, read and checked at every point of its sweep, not run.
pub(crate) fn scenario(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let file = Path::new("fuzz.toml");
        if let Err(error) = Plan::parse(text, file, Overrides::default()) {
            assert!(!error.to_string().is_empty());
        }
    }
}

/// Parses `bytes` as a connectivity trace (K7).
pub(crate) fn trace(bytes: &[u8]) {
    if let Ok(trace) = k7::read(bytes, 20) {
        let _gains = trace.mean(-95.0, 127);
        let _replay = trace.replay(0, -95.0, 127);
    }
}

/// A topology of another simulator: refused in one line, or a scenario in TOML, which the lab reads
/// or refuses in words.
pub(crate) fn topology(bytes: &[u8]) {
    match motet_cli::imported(bytes) {
        Ok(text) => {
            let table = text.parse::<toml::Table>();
            assert!(table.is_ok(), "{table:?}\n{text}");
            scenario(text.as_bytes());
        }
        Err(refused) => assert!(
            !refused.is_empty() && !refused.contains('\n'),
            "{refused:?}"
        ),
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

/// A record of frame counters: whatever is read must be written in the same bytes.
pub(crate) fn counters(bytes: &[u8]) {
    if let Ok(record) = Record::parse(bytes) {
        assert_eq!(record.emit().as_bytes(), bytes);
    }
}

/// Seeds: records of two motes, complete and damaged.
pub(crate) fn records() -> Vec<Vec<u8>> {
    let mut record = Record::new(KeyName::of(b"a key"));
    record.generation = 7;
    record.born = Some(Duration::new(1_790_000_000, 5));
    for (last, counter) in [(1, 8_192), (2, u32::MAX)] {
        let past = Past {
            sequence: 3,
            counter,
            number: 64,
        };
        record.nodes.insert([2, 0, 0, 0, 0, 0, 0, last], past);
    }
    let whole = record.emit();
    record.born = None;
    let later = whole.replace("counters 1", "counters 2");
    let short = whole[..whole.len() / 2].to_owned();
    [whole, record.emit(), later, short]
        .map(String::into_bytes)
        .into()
}

/// A capture file, explained for people and for programs.
pub(crate) fn capture(bytes: &[u8]) {
    let mut text = Vec::new();
    let explained = motet_decode::explain(bytes.to_vec(), &mut text);
    assert!(explained.is_ok(), "memory takes every byte");
    assert!(std::str::from_utf8(&text).is_ok());
}
