//! Power cuts between any two steps, disks that refuse any step, and files that were put back.

#[cfg(target_os = "linux")]
mod ext4;
#[cfg(target_os = "linux")]
mod files;
mod model;

use std::collections::BTreeSet;

use proptest::prelude::*;

use self::model::Model;
use crate::record::{self, KeyName, ParseError, Past, Record};
use crate::store::Store;

const NODE: [u8; 8] = *b"Motet\0\0\x01";
const OTHER: [u8; 8] = *b"Motet\0\0\x02";
const STEP: u32 = 8_192;

fn key() -> KeyName {
    KeyName::of(b"a key")
}

fn counter(counter: u32) -> Past {
    Past {
        counter,
        ..Past::default()
    }
}

/// A life of a node: it opens its record, and keeps bounds until the disk fails or three are kept.
/// Returns the highest bound that it may use counters below.
fn live(disk: &mut Model) -> u32 {
    let Ok(mut store) = Store::open(&mut *disk, key()) else {
        return 0;
    };
    let mut bound = store.past(NODE).counter;
    for _ in 0..3 {
        if store.keep_all([(NODE, counter(bound + STEP))]).is_err() {
            break;
        }
        bound += STEP;
    }
    bound
}

/// What a node that starts again finds.
fn found(disk: &mut Model, what: &str) -> u32 {
    match Store::open(&mut *disk, key()) {
        Ok(store) => store.past(NODE).counter,
        Err(error) => panic!("{what}: {error}"),
    }
}

/// Whatever a disk without power keeps of what was not brought to it, nothing that was kept is
/// lost, and no node is refused for a power cut. Two in a row, each before any step.
#[test]
fn no_power_cut_gives_a_counter_back() {
    let mut seen = BTreeSet::new();
    let mut disks = vec![(Model::default(), 0)];
    let mut cuts = 0_u64;
    for _ in 0..2 {
        for (disk, used) in std::mem::take(&mut disks) {
            for step in 0.. {
                let mut lived = disk.clone();
                lived.stops_before(step);
                let bound = live(&mut lived).max(used);
                let is_over = !lived.has_stopped();
                for mut left in lived.cut() {
                    cuts += 1;
                    let what = format!("before step {step}");
                    let again = found(&mut left, &what);
                    assert!(again >= bound, "{what}: {again} after {bound}");
                    if seen.insert(left.on_disk()) {
                        disks.push((left, bound));
                    }
                }
                if is_over {
                    break;
                }
            }
        }
    }
    assert!(cuts > 1_000, "{cuts}");
}

/// A disk that refuses one step grants nothing, and leaves no half file; later bounds are kept
/// again, and no power cut after that gives one back.
#[test]
fn no_step_that_fails_gives_a_counter_back() {
    let mut failures = 0;
    for step in 0.. {
        let mut disk = Model::default();
        disk.fails_at(step);
        // The first time the disk is empty, or the lock cannot be read.
        let bound = live(&mut disk);
        let has_failed = disk.has_failed();
        assert!(!disk.has_new_file(), "step {step} left a file");
        failures += usize::from(has_failed);
        for mut left in disk.clone().cut() {
            let again = found(&mut left, "after a failure and a power cut");
            assert!(again >= bound, "step {step}: {again} after {bound}");
        }
        disk.mend();
        let again = found(&mut disk, "after a failure");
        assert!(again >= bound, "step {step}: {again} after {bound}");
        let later = live(&mut disk);
        assert_eq!(later, again + 3 * STEP, "step {step}");
        if !has_failed {
            break;
        }
    }
    // Two of opening, and eight each time.
    assert!(failures >= 20, "{failures}");
}

/// A store that goes on after a step has failed keeps what it is asked for next.
#[test]
fn a_store_goes_on_after_a_step_that_failed() {
    for step in 2..9 {
        let mut disk = Model::default();
        disk.fails_at(step);
        let mut store = Store::open(&mut disk, key()).unwrap();
        let first = store.keep_all([(NODE, counter(STEP))]);
        assert!(first.is_err(), "step {step}");
        store.keep_all([(NODE, counter(STEP))]).unwrap();
        store.keep_all([(NODE, counter(2 * STEP))]).unwrap();
        for mut left in disk.cut() {
            assert_eq!(found(&mut left, "after a failure"), 2 * STEP, "step {step}");
        }
    }
}

#[test]
fn what_is_kept_takes_no_write_and_never_goes_back() {
    let mut disk = Model::default();
    let mut store = Store::open(&mut disk, key()).unwrap();
    let past = Past {
        sequence: 5,
        counter: 2 * STEP,
        number: 7,
    };
    store.keep_all([(NODE, past), (OTHER, counter(1))]).unwrap();
    store.keep_all([(NODE, past)]).unwrap();
    let lower = Past {
        counter: STEP,
        number: 3,
        ..past
    };
    store.keep_all([(NODE, lower)]).unwrap();
    assert_eq!(store.past(NODE), past);
    assert!(store.keep_all([(NODE, counter(u32::MAX))]).is_err());
    // A later key sequence begins anew.
    let next = Past {
        sequence: 6,
        counter: 0,
        number: 7,
    };
    store.keep_all([(NODE, next)]).unwrap();
    assert_eq!((store.past(NODE), store.past(OTHER)), (next, counter(1)));
    drop(store);
    assert_eq!(disk.records_made(), 2);
}

#[test]
fn a_record_has_one_spelling_and_no_other_is_read() {
    let mut record = Record::new(key());
    record.generation = 3;
    record.born = Some(std::time::Duration::new(1_790_000_000, 5));
    record.nodes.insert(NODE, counter(STEP));
    let text = record.emit();
    assert_eq!(Record::parse(text.as_bytes()), Ok(record.clone()));
    for wrong in [
        String::new(),
        text.replace("node", "Node"),
        text.replace(" 8192 ", " 08192 "),
        text.replace(" 8192 ", " 8193 "),
        text.replace("generation 3", "generation 4"),
        text.replace('\n', "\r\n"),
        format!("{text}\n"),
        text.trim_end().to_owned(),
    ] {
        assert_eq!(
            Record::parse(wrong.as_bytes()),
            Err(ParseError::Damaged),
            "{wrong}"
        );
    }
    for len in 0..text.len() {
        assert_eq!(
            Record::parse(&text.as_bytes()[..len]),
            Err(ParseError::Damaged)
        );
    }
    let later = text.replace("counters 1\n", "counters 2\nanything");
    assert_eq!(Record::parse(later.as_bytes()), Err(ParseError::Version(2)));
}

proptest! {
    #[test]
    fn no_byte_of_a_record_can_change(at in 0_usize..1_000, byte: u8, counter: u32) {
        let mut record = Record::new(key());
        record.nodes.insert(NODE, Past { counter, ..Past::default() });
        let mut text = record.emit().into_bytes();
        let at = at % text.len();
        let is_other = std::mem::replace(&mut text[at], byte) != byte;
        let parsed = Record::parse(&text);
        prop_assert_eq!(parsed.is_err(), is_other);
    }

    #[test]
    fn a_slot_is_whole_or_none(generation: u64, len in 0_usize..=record::SLOT_LEN) {
        let slot = record::slot(generation);
        let read = record::parse_slot(&slot[..len]);
        let whole = (len == record::SLOT_LEN).then_some(generation);
        prop_assert_eq!(read, if len == 0 { Some(0) } else { whole });
    }
}
