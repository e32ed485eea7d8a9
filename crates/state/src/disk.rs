//! The steps of a file system that a record needs, one by one, so that tests can stop between any
//! two.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::error::Error;
use crate::record::{KeyName, LEN_MAX, SLOT_LEN};

/// A folder with three files of one name: the record, the next one, which is `new`, and the lock,
/// which is written in place. The tests have one that loses its power.
pub(crate) trait Disk {
    /// The record's bytes, and when its file was made.
    fn read(&mut self) -> io::Result<Option<(Vec<u8>, Option<Duration>)>>;
    /// The lock's bytes.
    fn read_lock(&mut self) -> io::Result<Vec<u8>>;
    /// Makes the next file, in the place of one that was left; says when it was made.
    fn begin(&mut self) -> io::Result<Option<Duration>>;
    /// Writes into the next file.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()>;
    /// Brings the next file's bytes to the disk.
    fn sync(&mut self) -> io::Result<()>;
    /// Gives the next file the record's name.
    fn rename(&mut self) -> io::Result<()>;
    /// Brings names to the disk.
    fn sync_folder(&mut self) -> io::Result<()>;
    /// Writes into the lock.
    fn write_lock(&mut self, at: usize, bytes: &[u8]) -> io::Result<()>;
    /// Brings the lock's bytes to the disk.
    fn sync_lock(&mut self) -> io::Result<()>;
    /// Removes the next file, if there is one.
    fn remove(&mut self) -> io::Result<()>;
    /// The path of the record.
    fn path(&self) -> &Path;
}

/// A folder of this machine, whose lock is held.
#[derive(Debug)]
pub(crate) struct Folder {
    folder: PathBuf,
    record: PathBuf,
    new: PathBuf,
    lock: File,
    lock_path: PathBuf,
    file: Option<File>,
}

impl Folder {
    /// Makes the folder, where there is none, and takes the lock.
    pub(crate) fn open(folder: &Path, key: KeyName, name: &str) -> Result<Self, Error> {
        let cannot = |what, path: &Path, error| Error::Io(what, path.to_owned(), error);
        let folder = folder.join("counters");
        if !name.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "no letters and digits");
            return Err(cannot("make", &folder.join(name), error));
        }
        make(&folder).map_err(|error| cannot("make", &folder, error))?;
        let folder = folder
            .canonicalize()
            .map_err(|error| cannot("find", &folder, error))?;
        if is_open_to_others(&folder).map_err(|error| cannot("read", &folder, error))? {
            let error = io::Error::new(
                io::ErrorKind::PermissionDenied,
                "others may write to it (chmod go-w)",
            );
            return Err(cannot("use", &folder, error));
        }
        // A folder's own name may not be on the disk yet, whoever has made it.
        for above in folder.ancestors().skip(1) {
            let _ = File::open(above).and_then(|above| above.sync_all());
        }
        let path = |end: &str| folder.join(format!("{key}-{name}{end}"));
        let lock_path = path(".lock");
        let lock = open_lock(&lock_path).map_err(|error| cannot("write", &lock_path, error))?;
        take(&lock).map_err(|error| match error {
            TryLockError::WouldBlock => Error::InUse(path("")),
            TryLockError::Error(error) => cannot("lock", &lock_path, error),
        })?;
        Ok(Self {
            record: path(""),
            new: path(".new"),
            folder,
            lock,
            lock_path,
            file: None,
        })
    }
}

/// Takes the lock. A lock that was let go can stay taken for some milliseconds: a process that is
/// being started has a copy of the file until it runs its own program (fork(2) and execve(2)).
fn take(lock: &File) -> Result<(), TryLockError> {
    const TRIES: u32 = 50;
    const BETWEEN_TRIES: Duration = Duration::from_millis(10);
    for _ in 1..TRIES {
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => thread::sleep(BETWEEN_TRIES),
            taken => return taken,
        }
    }
    lock.try_lock()
}

impl Folder {
    /// Refuses where the lock's path no longer names the held lock: another process can be in then.
    fn check_lock(&self) -> io::Result<()> {
        let found = fs::metadata(&self.lock_path).ok();
        let held = self.lock.metadata()?;
        match found.is_some_and(|found| is_one_file(&found, &held)) {
            true => Ok(()),
            false => Err(io::Error::other("its lock file was removed meanwhile")),
        }
    }
}

impl Disk for Folder {
    fn read(&mut self) -> io::Result<Option<(Vec<u8>, Option<Duration>)>> {
        let file = match File::open(&self.record) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        let born = born(&file)?;
        let mut bytes = Vec::new();
        file.take(LEN_MAX).read_to_end(&mut bytes)?;
        Ok(Some((bytes, born)))
    }

    fn read_lock(&mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.lock.seek(SeekFrom::Start(0))?;
        let mut slots = (&self.lock).take(2 * SLOT_LEN as u64);
        slots.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn begin(&mut self) -> io::Result<Option<Duration>> {
        self.check_lock()?;
        self.remove()?;
        let file = secret(OpenOptions::new().write(true).create_new(true)).open(&self.new)?;
        let born = born(&file)?;
        self.file = Some(file);
        Ok(born)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file
            .as_mut()
            .map_or(Ok(()), |file| file.write_all(bytes))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.as_ref().map_or(Ok(()), File::sync_all)
    }

    fn rename(&mut self) -> io::Result<()> {
        self.check_lock()?;
        fs::rename(&self.new, &self.record)
    }

    fn sync_folder(&mut self) -> io::Result<()> {
        let synced = File::open(&self.folder).and_then(|folder| folder.sync_all());
        // Not every file system can, and only Unix opens a folder as a file.
        let cannot = |error: &io::Error| {
            let kinds = [io::ErrorKind::InvalidInput, io::ErrorKind::Unsupported];
            !cfg!(unix) || kinds.contains(&error.kind())
        };
        match synced {
            Err(error) if !cannot(&error) => return Err(error),
            _ => {}
        }
        // FAT has a file's length and first cluster beside its name: they are the file's to write.
        self.file.take().map_or(Ok(()), |file| file.sync_all())
    }

    fn write_lock(&mut self, at: usize, bytes: &[u8]) -> io::Result<()> {
        self.lock.seek(SeekFrom::Start(at as u64))?;
        self.lock.write_all(bytes)
    }

    fn sync_lock(&mut self) -> io::Result<()> {
        self.lock.sync_all()
    }

    fn remove(&mut self) -> io::Result<()> {
        self.file = None;
        match fs::remove_file(&self.new) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn path(&self) -> &Path {
        &self.record
    }
}

/// The creation time of a file, which no copy has, and which no program can set. `None` if the file
/// system does not keep it.
///
/// It is read by the system call statx(2): the standard library supports the creation time with
/// some C libraries only, and a record may be read by programs with another one.
#[cfg(target_os = "linux")]
fn born(file: &File) -> io::Result<Option<Duration>> {
    use rustix::fs::{AtFlags, StatxFlags, statx};
    let wanted = StatxFlags::BTIME;
    let found = match statx(file, "", AtFlags::EMPTY_PATH, wanted) {
        Err(rustix::io::Errno::NOSYS) => return Ok(None),
        found => found?,
    };
    let at = found.stx_btime;
    let has_it = StatxFlags::from_bits_retain(found.stx_mask).contains(wanted);
    let seconds = u64::try_from(at.tv_sec).ok().filter(|_| has_it);
    Ok(seconds.map(|seconds| Duration::new(seconds, at.tv_nsec)))
}

#[cfg(not(target_os = "linux"))]
fn born(file: &File) -> io::Result<Option<Duration>> {
    let made = file.metadata()?.created().ok();
    Ok(made.and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok()))
}

/// Whether two paths are the same file, as far as the system can tell.
#[cfg(unix)]
fn is_one_file(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

#[cfg(not(unix))]
fn is_one_file(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    a.file_type() == b.file_type()
}

/// Whether others than its owner may write to a folder, and so remove what is in it.
fn is_open_to_others(folder: &Path) -> io::Result<bool> {
    #[cfg(unix)]
    {
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(folder)?.permissions());
        Ok(mode & 0o022 != 0)
    }
    #[cfg(not(unix))]
    fs::metadata(folder).map(|_| false)
}

fn make(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    secret(&mut options).open(path)
}

/// Lets nobody but the file's owner read it.
fn secret(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}
