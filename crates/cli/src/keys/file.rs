//! Makes and changes key files, which [`motet_lab::keys`] describes and reads.
//!
//! A file is changed by writing a new one and renaming it to the old name: until the new file is
//! complete and synced, the old one stays in place. A symbolic link stays; its target is replaced.
//! A file with further names (hard links) is refused: a program that reads it by another name would
//! keep the old key.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use motet::join::JoinKey;
use motet_lab::keys::{self, KeyFile, Keys, SECRET_LEN};

use crate::error::Error;
use crate::files;
use crate::output::describe;

/// Writes a new file with a new secret, which its owner alone may read.
///
/// # Errors
/// [`Error::Input`] where the file exists or cannot be written: its old secret is never lost.
pub(super) fn create(path: &Path) -> Result<(), Error> {
    let mut secret = [0; SECRET_LEN];
    getrandom::fill(&mut secret)
        .map_err(|error| Error::failed(format!("no random bytes from this system: {error}")))?;
    let text = KeyFile::new(&secret).text();
    let written = begin(path).and_then(|mut file| {
        let written = finish(&mut file, &text);
        if written.is_err() {
            // Half a file is none.
            let _ = fs::remove_file(path);
        }
        written
    });
    written.map_err(|error| {
        let advice = match error.kind() {
            io::ErrorKind::AlreadyExists => ": name a new file, or remove it first",
            _ => "",
        };
        let path = path.display();
        Error::input(format!("cannot write {path}: {}{advice}", describe(&error)))
    })?;
    settle(path)
}

/// Reads a device's own join key, as `motet keys device` prints it.
///
/// # Errors
/// [`Error::Input`] where there is none.
pub(crate) fn read_join_key(path: &Path) -> Result<JoinKey, Error> {
    let content = files::read(path)?;
    let text = String::from_utf8_lossy(&content);
    let key = keys::from_hex(text.trim()).map(JoinKey::new);
    key.ok_or_else(|| {
        Error::input(format!(
            "{} holds no device's own key: put the 32 hexadecimal digits there that motet keys device prints",
            path.display()
        ))
    })
}

/// Changes a key file: the old one stands until the new one is whole.
///
/// # Errors
/// [`Error::Input`] where it cannot be read or written, or `change` refuses.
pub(super) fn change(
    path: &Path,
    change: impl FnOnce(&mut KeyFile) -> Result<(), String>,
) -> Result<(), Error> {
    // If the file does not exist, the reader below reports that.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    KeyFile::read(path).map_err(Error::input)?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    // Its name keeps other commands from changing the key meanwhile.
    let mut file = begin(&new).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Error::input(format!(
            "{} is there: another command changes the key, or was stopped while it did; remove it",
            new.display()
        )),
        _ => cannot_write(&new, &error),
    })?;
    let named = write_changed(path, &mut file, change)
        .and_then(|()| fs::rename(&new, path).map_err(|error| cannot_write(path, &error)));
    if named.is_err() {
        let _ = fs::remove_file(&new);
    }
    named?;
    settle(path)
}

/// Writes into `new` what `change` makes of the file at `path`, for the same readers.
fn write_changed(
    path: &Path,
    new: &mut File,
    change: impl FnOnce(&mut KeyFile) -> Result<(), String>,
) -> Result<(), Error> {
    let mut keys = KeyFile::read(path).map_err(Error::input)?;
    take_over_owner(path, new)?;
    change(&mut keys).map_err(Error::input)?;
    finish(new, &keys.text()).map_err(|error| cannot_write(path, &error))
}

/// Gives `new` the owner and the permissions of the file at `path`, and its group where that may do
/// anything with it.
///
/// # Errors
/// [`Error::Input`] where this user may not, or the file has another name.
#[cfg(unix)]
fn take_over_owner(path: &Path, new: &File) -> Result<(), Error> {
    use std::os::unix::fs::{MetadataExt as _, fchown};
    let cannot = |error: io::Error| cannot_write(path, &error);
    let (old, own) = (
        fs::metadata(path).map_err(cannot)?,
        new.metadata().map_err(cannot)?,
    );
    let shown = path.display();
    if old.nlink() > 1 {
        let others = old.nlink() - 1;
        let names = if others == 1 { "name" } else { "names" };
        return Err(Error::input(format!(
            "{shown} has {others} other {names} (hard links), by which the old key would stay: \
             let one name be a file of its own, and the others symbolic links to it"
        )));
    }
    if old.uid() != own.uid() {
        fchown(new, Some(old.uid()), None).map_err(|_| {
            Error::input(format!(
                "{shown} is another user's, who could not read the changed file: run this command \
                 as its owner"
            ))
        })?;
    }
    // Where the group may do nothing it does not matter which one it is.
    let of_group = old.mode() & 0o070;
    let moved = match old.gid() == own.gid() {
        true => Ok(()),
        false => fchown(new, None, Some(old.gid())),
    };
    if moved.is_err() && of_group != 0 {
        return Err(Error::input(format!(
            "{shown} is open to a group that this user is not in, and that could not use the changed file: \
             run this command as one of that group, or close the file to it (chmod g= {shown})"
        )));
    }
    new.set_permissions(old.permissions()).map_err(cannot)
}

#[cfg(not(unix))]
fn take_over_owner(_: &Path, _: &File) -> Result<(), Error> {
    Ok(())
}

/// Begins a file that is not there yet, which its owner alone may read.
fn begin(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Writes all of a file, down to the disk.
fn finish(file: &mut File, text: &str) -> io::Result<()> {
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

/// Brings the file's name to the disk: before that a power cut may give the old file back.
fn settle(path: &Path) -> Result<(), Error> {
    #[cfg(unix)]
    {
        let folder = path.parent();
        let folder = folder.filter(|folder| !folder.as_os_str().is_empty());
        let synced = File::open(folder.unwrap_or(Path::new("."))).and_then(|file| file.sync_all());
        match synced {
            // Not every file system can, and some folders may be written to but not read.
            Err(error)
                if !matches!(
                    error.kind(),
                    io::ErrorKind::InvalidInput
                        | io::ErrorKind::Unsupported
                        | io::ErrorKind::PermissionDenied
                ) =>
            {
                return Err(Error::failed(format!(
                    "{} is written, but may not outlive a power cut: {}",
                    path.display(),
                    describe(&error)
                )));
            }
            _ => {}
        }
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

fn cannot_write(path: &Path, error: &io::Error) -> Error {
    let path = path.display();
    Error::input(format!("cannot write {path}: {}", describe(error)))
}

/// Reads a key file.
///
/// # Errors
/// [`Error::Input`] where there is none, others than its owner may read it, or it is damaged.
pub(crate) fn read(path: &Path) -> Result<Keys, Error> {
    keys::read(path).map_err(Error::input)
}
