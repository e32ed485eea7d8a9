//! On this machine's own file system: what was put back, is damaged, missing, or another process's.

use std::fs;
use std::path::{Path, PathBuf};

use super::{NODE, OTHER, STEP, counter, key};
use crate::{Counters, Error, KeyName, Past};

fn open(folder: &Path) -> Result<Counters, Error> {
    Counters::open(folder, key(), "node")
}

/// Lives once, and keeps one bound more.
fn live(folder: &Path) -> u32 {
    let mut counters = open(folder).unwrap();
    let bound = counters.past(NODE).counter + STEP;
    counters.keep(NODE, counter(bound)).unwrap();
    bound
}

fn record(folder: &Path) -> PathBuf {
    folder.join("counters").join(format!("{}-node", key()))
}

fn refused(folder: &Path) -> String {
    open(folder).unwrap_err().to_string()
}

#[test]
fn counters_outlive_the_process_and_keys_and_nodes_have_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("not/there");
    assert_eq!([live(&state), live(&state)], [STEP, 2 * STEP]);
    let mut counters = open(&state).unwrap();
    assert_eq!(counters.past(OTHER), Past::default());
    let both = [(NODE, counter(9 * STEP)), (OTHER, counter(1))];
    counters.keep_all(both).unwrap();
    let other = Counters::open(&state, KeyName::of(b"another key"), "node").unwrap();
    assert_eq!(other.past(NODE), Past::default());
    drop(counters);
    let counters = open(&state).unwrap();
    assert_eq!(counters.past(NODE), counter(9 * STEP));
    assert_eq!(counters.past(OTHER), counter(1));
    let text = fs::read_to_string(counters.path()).unwrap();
    assert!(text.contains("node 4d6f746574000001 0 73728 0\n"), "{text}");
    assert!(Counters::open(&state, key(), "../node").is_err());
}

#[test]
fn two_processes_do_not_have_one_record() {
    let folder = tempfile::tempdir().unwrap();
    let counters = open(folder.path()).unwrap();
    assert!(matches!(open(folder.path()), Err(Error::InUse(_))));
    assert!(refused(folder.path()).contains("is in use"));
    drop(counters);
    open(folder.path()).unwrap();
}

/// Whatever of the folder is put back, by whatever means, it is refused.
#[test]
fn what_was_put_back_is_refused() {
    let copies: &[(&str, &str, &str)] = &[
        ("the record", "cp -p $r $k/r", "cp -p $k/r $r"),
        ("the record, in its place", "cp $r $k/r", "cat $k/r > $r"),
        ("the record, moved", "cp -p $r $k/r", "mv $k/r $r"),
        (
            "a further name of the record",
            "ln $r $k/r",
            "mv -f $k/r $r",
        ),
        ("both files", "cp -p $r* $k", "cp -p $k/* $f"),
        ("the folder", "cp -a $f $k/f", "rm -r $f && cp -a $k/f $f"),
        ("the folder's files", "cp -a $f $k/f", "cp -a $k/f/. $f"),
        (
            "the folder, by tar",
            "tar -C $f -cf $k/t .",
            "tar -C $f -xf $k/t",
        ),
        (
            "further names of all",
            "cp -al $f $k/f",
            "rm -r $f && mv $k/f $f",
        ),
        // Of one generation before: its file may have the same number again.
        (
            "the one before",
            "cp -p $r $k/r && :",
            "cp -p $k/r $r && cp -p $k/r $r",
        ),
    ];
    for (what, keep, back) in copies {
        let all = tempfile::tempdir().unwrap();
        let state = all.path().join("state");
        let kept = all.path().join("kept");
        fs::create_dir(&kept).unwrap();
        live(&state);
        let shell = |words: &str| {
            let set = format!(
                "set -e; r={}; f={}; k={}; {words}",
                record(&state).display(),
                state.join("counters").display(),
                kept.display()
            );
            let status = std::process::Command::new("sh").args(["-c", &set]).status();
            assert!(status.unwrap().success(), "{what}: {words}");
        };
        shell(keep);
        live(&state);
        live(&state);
        shell(back);
        let said = refused(&state);
        assert!(
            said.contains("is a copy or an older state"),
            "{what}: {said}"
        );
        assert!(said.contains("motet keys new"), "{said}");
    }
}

/// An administrator's commands change no counter: owner, mode, times, a further name, and where the
/// folder is.
#[test]
fn what_changes_no_byte_is_no_copy() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let mut bound = live(&state);
    for words in [
        "touch $r",
        "chmod 640 $r",
        "chown $(id -u) $r",
        "ln $r further",
        "mv state moved && mv moved state",
    ] {
        let set = format!("r={}; {words}", record(&state).display());
        let mut shell = std::process::Command::new("sh");
        let run = shell.args(["-c", &set]).current_dir(folder.path()).output();
        let run = run.unwrap();
        assert!(run.status.success(), "{words}: {run:?}");
        bound += STEP;
        assert_eq!(live(&state), bound, "{words}");
    }
}

#[test]
fn what_is_damaged_or_gone_is_refused_and_never_begins_at_zero() {
    let damages: &[Damage] = &[
        ("empty", |path| fs::write(path, "").unwrap(), "is damaged"),
        ("short", |path| shorten(path), "is damaged"),
        (
            "zeros",
            |path| fs::write(path, [0; 300]).unwrap(),
            "is damaged",
        ),
        (
            "other",
            |path| fs::write(path, "hello\n").unwrap(),
            "is damaged",
        ),
        ("gone", |path| fs::remove_file(path).unwrap(), "is missing"),
        (
            "later",
            |path| rewrite(path, "motet-counters 1", "motet-counters 7"),
            "has version 7",
        ),
        (
            "edited",
            |path| rewrite(path, " 8192 ", " 0 "),
            "is damaged",
        ),
        (
            "both slots of the lock",
            |path| fs::write(path.with_file_name(format!("{}-node.lock", key())), [7; 68]).unwrap(),
            "is damaged",
        ),
    ];
    for (what, damage, words) in damages {
        let folder = tempfile::tempdir().unwrap();
        live(folder.path());
        damage(&record(folder.path()));
        let said = refused(folder.path());
        assert!(said.contains(words), "{what}: {said}");
        // It stays so.
        assert!(refused(folder.path()).contains(words), "{what}");
    }
}

/// What it is, how it is done, and what is said of it.
type Damage = (&'static str, fn(&Path), &'static str);

fn shorten(path: &Path) {
    let bytes = fs::read(path).unwrap();
    fs::write(path, &bytes[..bytes.len() - 9]).unwrap();
}

fn rewrite(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).unwrap();
    assert!(text.contains(from));
    fs::write(path, text.replace(from, to)).unwrap();
}

/// A removed lock lets a second process in. The first process once undid the second one's counters.
#[test]
fn a_process_whose_lock_was_removed_keeps_nothing_more() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = open(folder.path()).unwrap();
    first.keep(NODE, counter(STEP)).unwrap();
    let lock = format!("{}.lock", record(folder.path()).display());
    fs::remove_file(lock).unwrap();
    let mut second = open(folder.path()).unwrap();
    second.keep(NODE, counter(3 * STEP)).unwrap();
    let refused = first.keep(NODE, counter(2 * STEP)).unwrap_err().to_string();
    assert!(refused.contains("its lock file was removed"), "{refused}");
    drop((first, second));
    assert_eq!(open(folder.path()).unwrap().past(NODE), counter(3 * STEP));
}

#[test]
#[cfg(unix)]
fn a_folder_that_others_may_write_to_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    live(folder.path());
    let counters = folder.path().join("counters");
    for (mode, is_good) in [(0o770, false), (0o702, false), (0o755, true)] {
        fs::set_permissions(&counters, fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(open(folder.path()).is_ok(), is_good, "{mode:o}");
    }
}

/// A system that knows no time of making may have written it.
#[test]
fn a_record_without_the_time_of_its_file_is_known_by_its_generation() {
    let folder = tempfile::tempdir().unwrap();
    live(folder.path());
    let mut text = fs::read_to_string(record(folder.path())).unwrap();
    let parsed = crate::record::Record::parse(text.as_bytes()).unwrap();
    assert!(parsed.born.is_some(), "{text}");
    text = crate::record::Record {
        born: None,
        ..parsed
    }
    .emit();
    fs::write(record(folder.path()), text).unwrap();
    assert_eq!(live(folder.path()), 2 * STEP);
    assert_eq!(live(folder.path()), 3 * STEP);
}
