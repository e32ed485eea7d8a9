//! The key file: one secret, from which all keys of a network follow.
//!
//! ```toml
//! secret = "…"      # 64 hexadecimal digits
//! network = 0       # which network key
//! sequence = 0      # the key sequence to begin with
//! ```
//!
//! The network key of number N is the upper half of HMAC-SHA256(secret, "motet network" ‖ N).

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;

use hmac::{Hmac, KeyInit as _, Mac as _};
use motet::mac::security::{KEY_LEN, NetworkKey};
use serde::Deserialize;
use sha2::Sha256;

use crate::error::Error;
use crate::output::{describe, hex};

/// The contents of a key file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    secret: String,
    network: u32,
    sequence: u32,
}

/// What frames of a network are opened with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    /// The network's key, from which those of its links follow.
    pub(crate) network: NetworkKey,
    /// Where the key sequence stands, as far as is known.
    pub(crate) sequence: u32,
}

impl Keys {
    /// The keys of a network key itself, at the begin of its key sequence.
    pub(crate) const fn of_network_key(bytes: [u8; KEY_LEN]) -> Self {
        Self {
            network: NetworkKey::new(bytes),
            sequence: 0,
        }
    }

    /// The network key in hexadecimal digits.
    pub(crate) fn network_key_hex(&self) -> String {
        hex(self.network.as_bytes())
    }
}

/// Writes a new file with a new secret, which its owner alone may read.
///
/// # Errors
/// [`Error::Input`] where the file exists or cannot be written: its old secret is never lost.
pub(super) fn create(path: &Path) -> Result<(), Error> {
    let mut secret = [0; SECRET_LEN];
    getrandom::fill(&mut secret)
        .map_err(|error| Error::failed(format!("no random bytes from this system: {error}")))?;
    let text = format!(
        "# Whoever has this file can read this network's frames and write them. Keep it secret.\n\
         secret = \"{}\"\nnetwork = 0\nsequence = 0\n",
        hex(&secret)
    );
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(path).and_then(|mut file| {
        let written = file
            .write_all(text.as_bytes())
            .and_then(|()| file.sync_all());
        if written.is_err() {
            // Half a file is none.
            let _ = std::fs::remove_file(path);
        }
        written
    });
    written.map_err(|error| {
        let advice = match error.kind() {
            std::io::ErrorKind::AlreadyExists => ": name a new file, or remove it first",
            _ => "",
        };
        let path = path.display();
        Error::input(format!("cannot write {path}: {}{advice}", describe(&error)))
    })
}

/// Reads a key file.
///
/// # Errors
/// [`Error::Input`] where there is none, others than its owner may read it, or it is damaged.
pub(crate) fn read(path: &Path) -> Result<Keys, Error> {
    let shown = path.display();
    let cannot =
        |error: std::io::Error| Error::input(format!("cannot read {shown}: {}", describe(&error)));
    let file = File::open(path).map_err(cannot)?;
    let meta = file.metadata().map_err(cannot)?;
    if !meta.is_file() {
        return Err(Error::input(format!("{shown} is no key file")));
    }
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o077 != 0 {
        return Err(Error::input(format!(
            "others may read {shown}: chmod 600 {shown}, or make a new key"
        )));
    }
    let mut text = String::new();
    file.take(LEN_MAX)
        .read_to_string(&mut text)
        .map_err(cannot)?;
    // The parser's own words would show parts of the file.
    let contents: Option<Contents> = toml::from_str(&text).ok();
    let secret = contents
        .as_ref()
        .and_then(|contents| from_hex::<SECRET_LEN>(&contents.secret));
    let (Some(contents), Some(secret)) = (contents, secret) else {
        return Err(Error::input(format!(
            "{shown} is no key file, or damaged: motet keys new makes one"
        )));
    };
    Ok(Keys {
        sequence: contents.sequence,
        ..Keys::of_network_key(network_key(&secret, contents.network))
    })
}

/// The network key of that number.
fn network_key(secret: &[u8; SECRET_LEN], number: u32) -> [u8; KEY_LEN] {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
    mac.update(b"motet network");
    mac.update(&number.to_be_bytes());
    let hash = mac.finalize().into_bytes();
    let (_, upper) = hash.split_last_chunk().expect("32 bytes");
    *upper
}

/// Bytes of hexadecimal digits; nothing else may be in `text`.
pub(crate) fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digits: Vec<u8> = text
        .chars()
        .map(|digit| digit.to_digit(16).map(|digit| digit as u8))
        .collect::<Option<_>>()?;
    let (pairs, []) = digits.as_chunks::<2>() else {
        return None;
    };
    let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
    bytes.try_into().ok()
}

const SECRET_LEN: usize = 32;

/// No key file is longer.
const LEN_MAX: u64 = 4_096;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_not_shown() {
        let keys = Keys::of_network_key([0xab; KEY_LEN]);
        let shown = format!("{keys:?}");
        assert!(!shown.contains("ab") && !shown.contains("171"), "{shown}");
        assert_eq!(keys.network_key_hex(), "ab".repeat(KEY_LEN));
    }
}
