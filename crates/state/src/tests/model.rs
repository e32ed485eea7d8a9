//! A folder that loses its power, or refuses a step.
//!
//! It is as bad as POSIX lets a file system be: of what was not brought to the disk each name and
//! each write is there or not, whatever became of the others, and a write may have left zeros or
//! its first half.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::disk::Disk;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Name {
    Record,
    New,
    Lock,
}

#[derive(Clone, Default, Debug)]
struct Inode {
    on_disk: Vec<u8>,
    /// Writes that were not brought to the disk.
    pending: Vec<(usize, Vec<u8>)>,
}

/// What a disk holds: each name's bytes, and when its file was made.
pub(super) type OnDisk = BTreeMap<u8, (Vec<u8>, u64)>;

#[derive(Clone, Default, Debug)]
pub(super) struct Model {
    inodes: Vec<Inode>,
    names: BTreeMap<Name, usize>,
    /// What each name may be on the disk, beside what it is now.
    names_before: BTreeMap<Name, Vec<Option<usize>>>,
    steps: usize,
    stop: Option<usize>,
    fail: Option<usize>,
}

impl Model {
    pub(super) fn stops_before(&mut self, step: usize) {
        (self.steps, self.stop) = (0, Some(step));
    }

    pub(super) fn fails_at(&mut self, step: usize) {
        (self.steps, self.fail) = (0, Some(step));
    }

    /// It refuses nothing from now on.
    pub(super) fn mend(&mut self) {
        self.fail = None;
    }

    pub(super) fn has_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| self.steps > stop)
    }

    pub(super) fn has_failed(&self) -> bool {
        self.fail.is_some_and(|fail| self.steps > fail)
    }

    pub(super) fn has_new_file(&self) -> bool {
        self.names.contains_key(&Name::New)
    }

    /// Records that were begun.
    pub(super) fn records_made(&self) -> usize {
        self.inodes.len() - 1
    }

    pub(super) fn on_disk(&self) -> OnDisk {
        let files = self.names.iter().map(|(name, inode)| {
            let born = Self::born(*inode);
            (*name as u8, (self.inodes[*inode].on_disk.clone(), born))
        });
        files.collect()
    }

    /// No two files are made at one time: they stay in `inodes`.
    const fn born(inode: usize) -> u64 {
        inode as u64
    }

    /// All that the disk may hold once the power is gone.
    pub(super) fn cut(self) -> Vec<Self> {
        let mut outcomes = vec![(BTreeMap::new(), self.inodes.clone())];
        for name in [Name::Record, Name::New, Name::Lock] {
            let mut values = self.names_before.get(&name).cloned().unwrap_or_default();
            values.push(self.names.get(&name).copied());
            values.sort_unstable();
            values.dedup();
            outcomes = product(&outcomes, &values, |(names, _), inode| {
                names.extend(inode.map(|inode| (name, inode)));
            });
        }
        for (number, inode) in self.inodes.iter().enumerate() {
            for (at, bytes) in &inode.pending {
                let half = &bytes[..bytes.len() / 2];
                let left = [&[][..], half, &vec![0; bytes.len()], bytes].map(<[u8]>::to_vec);
                outcomes = product(&outcomes, &left, |(_, inodes), bytes| {
                    put(&mut inodes[number].on_disk, *at, bytes);
                });
            }
        }
        let restart = |(names, inodes): (BTreeMap<Name, usize>, Vec<Inode>)| Self {
            inodes: inodes
                .into_iter()
                .map(|inode| Inode {
                    pending: Vec::new(),
                    ..inode
                })
                .collect(),
            names,
            ..Self::default()
        };
        outcomes.into_iter().map(restart).collect()
    }

    fn step(&mut self) -> io::Result<()> {
        let step = self.steps;
        self.steps += 1;
        if self.stop.is_some_and(|stop| step >= stop) {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        match self.fail == Some(step) {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => Ok(()),
        }
    }

    fn set(&mut self, name: Name, inode: Option<usize>) {
        let before = match inode {
            Some(inode) => self.names.insert(name, inode),
            None => self.names.remove(&name),
        };
        self.names_before.entry(name).or_default().push(before);
    }

    fn make(&mut self, name: Name) -> usize {
        self.inodes.push(Inode::default());
        self.set(name, Some(self.inodes.len() - 1));
        self.inodes.len() - 1
    }

    fn bytes(&self, inode: usize) -> Vec<u8> {
        let inode = &self.inodes[inode];
        let mut bytes = inode.on_disk.clone();
        for (at, written) in &inode.pending {
            put(&mut bytes, *at, written);
        }
        bytes
    }

    /// The lock is there from the begin of a life.
    fn lock(&mut self) -> usize {
        match self.names.get(&Name::Lock) {
            Some(inode) => *inode,
            None => self.make(Name::Lock),
        }
    }

    fn sync_inode(&mut self, inode: usize) {
        self.inodes[inode].on_disk = self.bytes(inode);
        self.inodes[inode].pending.clear();
    }
}

fn put(bytes: &mut Vec<u8>, at: usize, written: &[u8]) {
    if written.is_empty() {
        return;
    }
    let len = bytes.len().max(at + written.len());
    bytes.resize(len, 0);
    bytes[at..at + written.len()].copy_from_slice(written);
}

fn product<A: Clone, B>(all: &[A], values: &[B], with: impl Fn(&mut A, &B)) -> Vec<A> {
    let each = all.iter().flat_map(|one| {
        values.iter().map(|value| {
            let mut one = one.clone();
            with(&mut one, value);
            one
        })
    });
    each.collect()
}

impl Disk for &mut Model {
    fn read(&mut self) -> io::Result<Option<(Vec<u8>, Option<Duration>)>> {
        self.step()?;
        let found = self.names.get(&Name::Record).map(|inode| {
            let born = Duration::from_nanos(Model::born(*inode));
            (self.bytes(*inode), Some(born))
        });
        Ok(found)
    }

    fn read_lock(&mut self) -> io::Result<Vec<u8>> {
        let lock = self.lock();
        self.step()?;
        Ok(self.bytes(lock))
    }

    fn begin(&mut self) -> io::Result<Option<Duration>> {
        self.step()?;
        let inode = self.make(Name::New);
        Ok(Some(Duration::from_nanos(Model::born(inode))))
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let inode = self.names[&Name::New];
        let step = self.step();
        // A full disk takes a part of it.
        let taken = match step {
            Ok(()) => bytes,
            Err(_) => &bytes[..bytes.len() / 2],
        };
        self.inodes[inode].pending.push((0, taken.to_vec()));
        step
    }

    fn sync(&mut self) -> io::Result<()> {
        self.step()?;
        self.sync_inode(self.names[&Name::New]);
        Ok(())
    }

    fn rename(&mut self) -> io::Result<()> {
        self.step()?;
        let inode = self.names[&Name::New];
        self.set(Name::Record, Some(inode));
        self.set(Name::New, None);
        Ok(())
    }

    fn sync_folder(&mut self) -> io::Result<()> {
        self.step()?;
        self.names_before.clear();
        Ok(())
    }

    fn write_lock(&mut self, at: usize, bytes: &[u8]) -> io::Result<()> {
        self.step()?;
        let lock = self.lock();
        self.inodes[lock].pending.push((at, bytes.to_vec()));
        Ok(())
    }

    fn sync_lock(&mut self) -> io::Result<()> {
        self.step()?;
        let lock = self.lock();
        self.sync_inode(lock);
        Ok(())
    }

    fn remove(&mut self) -> io::Result<()> {
        // It is tried whenever something failed, and has no failures of its own here.
        if self.stop.is_none() && self.names.contains_key(&Name::New) {
            self.set(Name::New, None);
        }
        Ok(())
    }

    fn path(&self) -> &Path {
        "record".as_ref()
    }
}
