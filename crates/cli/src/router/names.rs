//! The names of a real mesh's motes: mote1, mote2, and so on, in the order in which they came.
//!
//! A mote keeps its name over restarts of the router, by a file beside its frame counters: a line
//! for each mote, its EUI-64 in hexadecimal digits.

use std::{
    fs,
    path::{Path, PathBuf},
};

use motet_lab::keys::hex;

use crate::{files::write_error, hosts::host_name, keys::from_hex, output::say};

/// The names, and where they are kept.
#[derive(Debug)]
pub(super) struct Names {
    /// The motes' EUI-64s; the first one is mote1.
    motes: Vec<[u8; 8]>,
    file: Option<PathBuf>,
}

impl Names {
    /// The names that were given before in a mesh with this PAN identifier. `folder`: where they
    /// are kept, if anywhere.
    pub(super) fn read(folder: Option<&Path>, pan: u16) -> Self {
        let file = folder.map(|folder| folder.join(format!("motes-{pan:04x}")));
        let kept = file.as_ref().and_then(|file| fs::read_to_string(file).ok());
        let motes = kept.unwrap_or_default();
        Self {
            motes: motes.lines().filter_map(from_hex).take(NAMES_MAX).collect(),
            file,
        }
    }

    /// The name of a mote, which gets one now unless it has one. `None`: there are too many.
    pub(super) fn of(&mut self, eui64: [u8; 8]) -> Option<String> {
        let known = self.motes.iter().position(|mote| *mote == eui64);
        let place = match known {
            Some(place) => place,
            None if self.motes.len() >= NAMES_MAX => return None,
            None => {
                self.motes.push(eui64);
                self.keep();
                self.motes.len() - 1
            }
        };
        Some(host_name(&(place + 1).to_string()))
    }

    /// Writes the file anew. If that is not possible, that is said once.
    fn keep(&mut self) {
        let Some(file) = &self.file else {
            return;
        };
        let lines: String = self.motes.iter().map(|mote| hex(mote) + "\n").collect();
        let new = file.with_extension("new");
        let written = fs::write(&new, lines).and_then(|()| fs::rename(&new, file));
        if let Err(error) = written {
            let why = write_error(file, &error);
            say(&format!("{why}; the next router names the motes anew"));
            self.file = None;
        }
    }
}

/// More than a root has motes: those that have gone keep their names.
const NAMES_MAX: usize = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    const MOTES: [[u8; 8]; 2] = [[2, 0, 0, 0, 0, 0, 0, 9], [2, 0, 0, 0, 0, 0, 0, 4]];

    #[test]
    fn a_mote_keeps_its_name_from_one_router_to_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let names = |motes: &[[u8; 8]]| {
            let mut names = Names::read(Some(folder.path()), 0xabcd);
            let given = motes.iter().map(|mote| names.of(*mote).unwrap());
            given.collect::<Vec<_>>()
        };
        assert_eq!(
            names(&[MOTES[0], MOTES[1], MOTES[0]]),
            ["mote1", "mote2", "mote1"]
        );
        assert_eq!(names(&[MOTES[1], MOTES[0]]), ["mote2", "mote1"]);
        let mut other = Names::read(Some(folder.path()), 0xabce);
        assert_eq!(other.of(MOTES[1]).as_deref(), Some("mote1"));
    }

    #[test]
    fn names_are_given_where_nothing_can_be_kept_and_to_a_bounded_number() {
        let folder = tempfile::tempdir().unwrap();
        let mut names = Names::read(Some(&folder.path().join("none")), 0xabcd);
        for n in 0..NAMES_MAX {
            let [.., high, low] = n.to_be_bytes();
            assert!(names.of([2, 0, 0, 0, 0, 1, high, low]).is_some());
        }
        assert_eq!(names.of(MOTES[0]), None);
    }
}
