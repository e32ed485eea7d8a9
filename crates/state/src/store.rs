//! Reading a record, and putting the next one in its place.

use std::io;
use std::path::Path;

use crate::disk::{Disk, Folder};
use crate::error::Error;
use crate::record::{self, KeyName, ParseError, Past, Record, SLOT_LEN};

/// The counters of one or several nodes with one key, in one file. No other process can open the
/// file while this value exists.
#[derive(Debug)]
pub struct Counters(Store<Folder>);

impl Counters {
    /// Opens the file `name` of the key `key` below `folder`, and makes what is missing. A node
    /// that is in no file begins at zero: this is its first use of the key, unless its file was
    /// deleted.
    ///
    /// `name`: letters and digits that tell this file from others of the same key, such as the
    /// node's EUI-64. No node may be in two files.
    ///
    /// # Errors
    /// Every [`Error`] but [`Error::Back`].
    pub fn open(folder: &Path, key: KeyName, name: &str) -> Result<Self, Error> {
        Store::open(Folder::open(folder, key, name)?, key).map(Self)
    }

    /// The counters from which a node continues.
    pub fn past(&self, eui64: [u8; 8]) -> Past {
        self.0.past(eui64)
    }

    /// Keeps a node's past; it is on the disk when this returns. What is kept already takes no
    /// write.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Back`]: then nothing is used that was not kept before.
    pub fn keep(&mut self, eui64: [u8; 8], past: Past) -> Result<(), Error> {
        self.keep_all([(eui64, past)])
    }

    /// As [`Self::keep`], of several nodes by one write.
    ///
    /// # Errors
    /// As [`Self::keep`].
    pub fn keep_all(
        &mut self,
        nodes: impl IntoIterator<Item = ([u8; 8], Past)>,
    ) -> Result<(), Error> {
        self.0.keep_all(nodes)
    }

    /// The path of the file of counters.
    pub fn path(&self) -> &Path {
        self.0.disk.path()
    }
}

#[derive(Debug)]
pub(crate) struct Store<D> {
    pub(crate) disk: D,
    /// The record on the disk.
    record: Record,
    /// Generation of the newest record that was begun.
    generation: u64,
    /// The lock's slots, as they are on the disk; `None` where one was cut short.
    slots: [Option<u64>; 2],
}

impl<D: Disk> Store<D> {
    pub(crate) fn open(mut disk: D, key: KeyName) -> Result<Self, Error> {
        let path = disk.path().to_owned();
        let cannot_read = |error| Error::Io("read", path.clone(), error);
        let slots = slots(&disk.read_lock().map_err(cannot_read)?);
        // A power cut leaves at most one of them cut short: the other one is written then.
        let witness = match slots {
            [None, None] => return Err(Error::Damaged(path.with_extension("lock"))),
            [a, b] => a.max(b).unwrap_or(0),
        };
        let record = match disk.read().map_err(cannot_read)? {
            None if witness > 0 => return Err(Error::Gone(path)),
            None => Record::new(key),
            Some((bytes, born)) => {
                let record = Record::parse(&bytes).map_err(|error| match error {
                    ParseError::Damaged => Error::Damaged(path.clone()),
                    ParseError::Version(version) => Error::Foreign(path.clone(), version),
                })?;
                if record.key != key {
                    return Err(Error::Damaged(path));
                }
                // One of a system without such times is known by its generation alone.
                let is_other = record.born.is_some() && record.born != born;
                if is_other && born.is_none() {
                    let why =
                        "this system does not say when files were made, and another one wrote it";
                    return Err(cannot_read(io::Error::new(io::ErrorKind::Unsupported, why)));
                }
                if is_other || record.generation < witness {
                    return Err(Error::PutBack(path));
                }
                record
            }
        };
        // Half a record that a power cut has left is of no use. Where it stays, `begin` removes it.
        let _ = disk.remove();
        Ok(Self {
            disk,
            generation: record.generation,
            record,
            slots,
        })
    }

    pub(crate) fn past(&self, eui64: [u8; 8]) -> Past {
        self.record.nodes.get(&eui64).copied().unwrap_or_default()
    }

    pub(crate) fn keep_all(
        &mut self,
        nodes: impl IntoIterator<Item = ([u8; 8], Past)>,
    ) -> Result<(), Error> {
        let mut next = self.record.clone();
        for (eui64, past) in nodes {
            let before = self.past(eui64);
            if past.sequence < before.sequence {
                return Err(Error::Back(self.disk.path().to_owned()));
            }
            next.nodes.insert(eui64, before.and(past));
        }
        if next.nodes == self.record.nodes {
            let noted = self.slots.iter().flatten().max().copied();
            return match noted.unwrap_or(0) < self.record.generation {
                // The lock could not be written after the last one.
                true => self.testify(),
                false => Ok(()),
            };
        }
        // One that failed may be on the disk nevertheless: no generation is of two records.
        self.generation += 1;
        next.generation = self.generation;
        match replace(&mut self.disk, &mut next) {
            Ok(()) => self.record = next,
            Err(error) => {
                // Nobody needs it, and a full disk needs the room.
                let _ = self.disk.remove();
                return Err(Error::Io("write", self.disk.path().to_owned(), error));
            }
        }
        self.testify()
    }

    /// Notes in the lock which record is on the disk now.
    fn testify(&mut self) -> Result<(), Error> {
        let [a, b] = self.slots;
        // The newest one, and any that is whole beside one that is not, stays.
        let place = usize::from(a.is_some() && (b.is_none() || b < a));
        let (at, slot) = (place * SLOT_LEN, record::slot(self.record.generation));
        self.slots[place] = None;
        let written = self.disk.write_lock(at, &slot);
        let written = written.and_then(|()| self.disk.sync_lock());
        written.map_err(|error| Error::Io("write", self.disk.path().to_owned(), error))?;
        self.slots[place] = Some(self.record.generation);
        Ok(())
    }
}

/// Puts `next` in the place of the record.
fn replace(disk: &mut impl Disk, next: &mut Record) -> io::Result<()> {
    next.born = disk.begin()?;
    disk.write(next.emit().as_bytes())?;
    disk.sync()?;
    disk.rename()?;
    disk.sync_folder()
}

fn slots(lock: &[u8]) -> [Option<u64>; 2] {
    let (first, second) = lock.split_at(lock.len().min(SLOT_LEN));
    [first, second].map(record::parse_slot)
}
