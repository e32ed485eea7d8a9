//! The kernel's own file system, cut from its power after each step: the disk's bytes at that
//! moment are mounted anew, and its journal is played back.

use std::cell::{Cell, RefCell};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use super::{NODE, STEP, counter, key};
use crate::Counters;
use crate::disk::{Disk, Folder};
use crate::store::Store;

/// A folder on a disk that is copied after each step, with the bound that was kept by then.
struct Filmed {
    folder: Folder,
    image: PathBuf,
    kept: Rc<Cell<u32>>,
    copies: Rc<RefCell<Vec<(PathBuf, u32)>>>,
}

impl Filmed {
    fn film<T>(&mut self, step: impl FnOnce(&mut Folder) -> io::Result<T>) -> io::Result<T> {
        let done = step(&mut self.folder);
        let mut copies = self.copies.borrow_mut();
        let copy = self.image.with_extension(copies.len().to_string());
        std::fs::copy(&self.image, &copy)?;
        copies.push((copy, self.kept.get()));
        done
    }
}

impl Disk for Filmed {
    fn read(&mut self) -> io::Result<Option<(Vec<u8>, Option<Duration>)>> {
        self.film(Disk::read)
    }
    fn read_lock(&mut self) -> io::Result<Vec<u8>> {
        self.film(Disk::read_lock)
    }
    fn begin(&mut self) -> io::Result<Option<Duration>> {
        self.film(Disk::begin)
    }
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.film(|folder| folder.write(bytes))
    }
    fn sync(&mut self) -> io::Result<()> {
        self.film(Disk::sync)
    }
    fn rename(&mut self) -> io::Result<()> {
        self.film(Disk::rename)
    }
    fn sync_folder(&mut self) -> io::Result<()> {
        self.film(Disk::sync_folder)
    }
    fn write_lock(&mut self, at: usize, bytes: &[u8]) -> io::Result<()> {
        self.film(|folder| folder.write_lock(at, bytes))
    }
    fn sync_lock(&mut self) -> io::Result<()> {
        self.film(Disk::sync_lock)
    }
    fn remove(&mut self) -> io::Result<()> {
        self.film(Disk::remove)
    }
    fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// A disk in a file, mounted while this lives.
struct Mounted(PathBuf);

impl Mounted {
    fn of(image: &Path, at: &Path) -> Option<Self> {
        std::fs::create_dir_all(at).ok()?;
        let mount = |command: &mut Command| command.output().is_ok_and(|it| it.status.success());
        mount(Command::new("mount").args(["-o", "loop"]).args([image, at]))
            .then(|| Self(at.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn ext4_that_loses_its_power_after_any_step_gives_no_counter_back() {
    let all = tempfile::tempdir().unwrap();
    let (image, place) = (all.path().join("image"), all.path().join("disk"));
    let mut make = Command::new("mkfs.ext4");
    let made = make.args(["-q", "-F"]).arg(&image).arg("8M").output();
    let made = made.is_ok_and(|made| made.status.success());
    let Some(disk) = made.then(|| Mounted::of(&image, &place)).flatten() else {
        println!("not run: it needs root, mkfs.ext4 and a loop device");
        return;
    };
    let (kept, copies) = (Rc::new(Cell::new(0)), Rc::default());
    for _ in 0..2 {
        let filmed = Filmed {
            folder: Folder::open(&place, key(), "node").unwrap(),
            image: image.clone(),
            kept: kept.clone(),
            copies: Rc::clone(&copies),
        };
        let mut store = Store::open(filmed, key()).unwrap();
        for _ in 0..2 {
            let bound = store.past(NODE).counter + STEP;
            store.keep_all([(NODE, counter(bound))]).unwrap();
            kept.set(bound);
        }
    }
    drop(disk);
    let copies = copies.take();
    assert!(copies.len() >= 30, "{}", copies.len());
    for (step, (copy, bound)) in copies.iter().enumerate() {
        let disk = Mounted::of(copy, &place).expect("the journal is played back");
        let counters = Counters::open(&place, key(), "node");
        let found = counters.as_ref().map(|it| it.past(NODE).counter);
        let found = found.unwrap_or_else(|error| panic!("after step {step}: {error}"));
        assert!(
            found >= *bound,
            "after step {step}: {found} where {bound} was kept"
        );
        drop(counters);
        drop(disk);
    }
}
