//! Who a mote is in a network whose addresses are random: kept in a file, so that the mote comes
//! back as the same one.
//!
//! ```text
//! # A mote's place in a Thread network. ...
//! motet-identity 1
//! extended 024d6f7465740001      its extended address
//! interface 8e19bd33c1d4a502     the interface identifier of its address that stays
//! parent 8e6744d435fb07bc 7000 7001   its parent's addresses, its own short one; - where none
//! ```
//!
//! Place: beside the counters, of which [`crate::Counters`] takes care by the extended address. A
//! file that is lost or damaged makes a new mote of it, whose counters begin at 0 under another
//! address: nothing is used twice. Left out: addresses that the network gives anew at each start.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::record::{self, KeyName};

/// Who a mote is in one network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Identity {
    /// The extended address, most significant byte first.
    pub extended: [u8; 8],
    /// The interface identifier of the address that stays.
    pub interface: [u8; 8],
    /// Where it was attached last.
    pub parent: Option<Parent>,
}

/// A parent, and what it has given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parent {
    /// The parent's extended address.
    pub extended: [u8; 8],
    /// The parent's short address.
    pub short: u16,
    /// The short address that it gave to the mote.
    pub given: u16,
}

impl Parent {
    fn emit(&self) -> String {
        let Self {
            extended,
            short,
            given,
        } = self;
        format!("{} {short:04x} {given:04x}", record::hex(extended))
    }

    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        let extended = record::from_hex(words.next()?)?;
        let mut short = || u16::from_str_radix(words.next()?, 16).ok();
        Some(Self {
            extended,
            short: short()?,
            given: short()?,
        })
    }
}

impl Identity {
    /// The identity as text.
    pub fn emit(&self) -> String {
        let Self {
            extended,
            interface,
            parent,
        } = self;
        let parent = parent.map_or_else(|| "-".to_owned(), |parent| parent.emit());
        format!(
            "{NOTE}{VERSION}\nextended {}\ninterface {}\nparent {parent}\n",
            record::hex(extended),
            record::hex(interface)
        )
    }

    /// Reads what [`Self::emit`] writes; `None`: it is something else.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(NOTE)?.strip_prefix(VERSION)?;
        let mut lines = rest.strip_prefix('\n')?.lines();
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let identity = Self {
            extended: record::from_hex(field("extended")?)?,
            interface: record::from_hex(field("interface")?)?,
            parent: match field("parent")? {
                "-" => None,
                parent => Some(Parent::parse(parent)?),
            },
        };
        (identity.emit() == text).then_some(identity)
    }
}

/// The file of an identity.
#[derive(Clone, Debug)]
pub struct IdentityFile(PathBuf);

impl IdentityFile {
    /// The file of the mote `name` in the network with the key `key`, below `folder`. `name`: what
    /// tells motes of one network apart, such as the EUI-64 of a radio.
    pub fn new(folder: &Path, key: KeyName, name: &str) -> Self {
        Self(folder.join("identities").join(format!("{key}-{name}")))
    }

    /// What is kept; `None`: nothing, or nothing that can be read as an identity.
    ///
    /// # Errors
    /// [`Error::Io`]: there is a file that cannot be read.
    pub fn read(&self) -> Result<Option<Identity>, Error> {
        match fs::read(&self.0) {
            Ok(bytes) => Ok(str::from_utf8(&bytes).ok().and_then(Identity::parse)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::Io("read", self.0.clone(), error)),
        }
    }

    /// Keeps an identity in the place of the one before; that one stays until this one is whole.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn keep(&self, identity: &Identity) -> Result<(), Error> {
        let new = self.0.with_extension("new");
        let write = || {
            if let Some(folder) = self.0.parent() {
                fs::create_dir_all(folder)?;
            }
            let mut file = File::create(&new)?;
            file.write_all(identity.emit().as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &self.0)
        };
        write().map_err(|error| Error::Io("write", self.0.clone(), error))
    }
}

const NOTE: &str =
    "# A mote's place in a Thread network. Without this file the mote joins as a new one.\n";

const VERSION: &str = "motet-identity 1";

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: Identity = Identity {
        extended: [2, 0x4d, 3, 4, 5, 6, 7, 8],
        interface: [0x8e; 8],
        parent: Some(Parent {
            extended: [9; 8],
            short: 0x7000,
            given: 0x7001,
        }),
    };

    #[test]
    fn an_identity_has_one_spelling() {
        let text = OURS.emit();
        assert_eq!(Identity::parse(&text), Some(OURS));
        let alone = Identity {
            parent: None,
            ..OURS
        };
        assert_eq!(Identity::parse(&alone.emit()), Some(alone));
        for (from, to) in [
            ("identity 1", "identity 2"),
            ("024d", "024D"),
            (" 7001", " 07001"),
            ("parent 09", "parent 9"),
            ("\ninterface", "\n\ninterface"),
        ] {
            let other = text.replacen(from, to, 1);
            assert_ne!(other, text, "{from}");
            assert_eq!(Identity::parse(&other), None, "{other}");
        }
        assert_eq!(Identity::parse(&text[..text.len() - 1]), None);
    }

    #[test]
    fn what_is_kept_is_read_and_what_is_damaged_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = IdentityFile::new(folder.path(), KeyName::of(b"key"), "radio");
        assert_eq!(file.read().unwrap(), None);
        file.keep(&OURS).unwrap();
        assert_eq!(file.read().unwrap(), Some(OURS));
        let moved = Identity {
            parent: None,
            ..OURS
        };
        file.keep(&moved).unwrap();
        assert_eq!(file.read().unwrap(), Some(moved));
        fs::write(&file.0, "half").unwrap();
        assert_eq!(file.read().unwrap(), None);
        fs::remove_file(&file.0).unwrap();
        fs::create_dir(&file.0).unwrap();
        assert!(file.read().is_err());
    }
}
