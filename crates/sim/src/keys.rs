//! The key file of a network, which scenarios and commands name: one secret, from which all keys
//! follow.
//!
//! ```toml
//! secret = "…"      # 64 hexadecimal digits
//! network = 0       # which network key
//! sequence = 0      # the key sequence to begin with
//! revoked = ["…"]   # motes that are to be left behind, if there are any: 16 hexadecimal digits each
//! ```
//!
//! The network key of number N is the upper half of HMAC-SHA256(secret, "motet network" ‖ N). The
//! join key of a device is the upper half of HMAC-SHA256(secret, "motet join" ‖ its extended
//! address). Left out: making one, which needs random bytes.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use motet::join::JoinKey;
use motet::mac::security::{KEY_LEN, NetworkKey};
use motet_state::KeyName;
use serde::{Deserialize, Serialize};

/// The contents of a key file. They are never shown.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyFile {
    secret: String,
    network: u32,
    sequence: u32,
    /// Extended addresses of the motes that are to be left behind, 16 hexadecimal digits each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    revoked: Vec<String>,
}

impl std::fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyFile(..)")
    }
}

impl KeyFile {
    /// With this secret, at the begin of everything.
    pub fn new(secret: &[u8; SECRET_LEN]) -> Self {
        Self {
            secret: hex(secret),
            network: 0,
            sequence: 0,
            revoked: Vec::new(),
        }
    }

    /// Reads a key file.
    ///
    /// # Errors
    /// One sentence, where there is none, others than its owner may read it, or it is damaged.
    pub fn read(path: &Path) -> Result<Self, String> {
        parse_file(&owned_text(path)?, path)
    }

    /// Reads the text of a key file; `path` is what it is called.
    ///
    /// # Errors
    /// One sentence, where it is damaged.
    pub fn parse(text: &str, path: &Path) -> Result<Self, String> {
        parse_file(text, path)
    }

    /// The text of the file, as [`Self::read`] reads it.
    pub fn text(&self) -> String {
        let keys = toml::to_string(self).unwrap_or_default();
        format!(
            "# Whoever has this file can read this network's frames and write them. Keep it secret.\n{keys}"
        )
    }

    /// Goes on to the next link key.
    ///
    /// # Errors
    /// One sentence: there is none.
    pub fn rotate(&mut self) -> Result<(), String> {
        let next = self.sequence.checked_add(1);
        self.sequence = next.ok_or("the key sequence has come to its end: make a new key")?;
        Ok(())
    }

    /// Goes on to the next network key, which the mote with this extended address is not to get.
    ///
    /// # Errors
    /// One sentence: it has been revoked before, or there is no further key.
    pub fn revoke(&mut self, eui64: [u8; 8]) -> Result<(), String> {
        let mote = hex(&eui64);
        if self.revoked.contains(&mote) {
            return Err(format!("{mote} has been revoked before"));
        }
        let next = self.network.checked_add(1);
        self.network = next.ok_or("there is no further network key: make a new key file")?;
        self.revoked.push(mote);
        Ok(())
    }

    /// The key with which the device with this extended address joins.
    ///
    /// # Errors
    /// One sentence: the device has been revoked.
    pub fn join_key(&self, eui64: [u8; 8]) -> Result<JoinKey, String> {
        if self.is_revoked(eui64) {
            let mote = hex(&eui64);
            return Err(format!("{mote} has been revoked: it gets no key"));
        }
        Ok(self.join_secret()?.key(eui64))
    }

    /// The secret from which join keys are derived, for a registrar, which has to leave
    /// [`Self::is_revoked`] out.
    ///
    /// # Errors
    /// One sentence: the file is damaged.
    pub fn join_secret(&self) -> Result<JoinSecret, String> {
        let secret = from_hex::<SECRET_LEN>(&self.secret).ok_or("the key file is damaged")?;
        Ok(JoinSecret(secret))
    }

    /// The step from `before`, an earlier reading of the file, to this one.
    pub fn after(&self, before: &Self) -> KeyChange {
        let numbers = |file: &Self| (file.network, file.sequence);
        if self.secret != before.secret || self.network > before.network {
            return KeyChange::Replaced;
        }
        let is_forgotten = |mote: &String| !self.revoked.contains(mote);
        let goes_back = numbers(self) < numbers(before);
        if goes_back || before.revoked.iter().any(is_forgotten) {
            return KeyChange::Back {
                network: [before.network, self.network],
                sequence: [before.sequence, self.sequence],
            };
        }
        match self.sequence == before.sequence {
            true => KeyChange::Unchanged,
            false => KeyChange::Rotated,
        }
    }

    /// Whether the device with this extended address gets no key.
    pub fn is_revoked(&self, eui64: [u8; 8]) -> bool {
        self.revoked.contains(&hex(&eui64))
    }

    /// The extended addresses of the motes that are to be left behind.
    pub fn revoked(&self) -> impl Iterator<Item = [u8; 8]> {
        self.revoked.iter().filter_map(|mote| from_hex(mote))
    }

    /// The keys by which frames are decrypted; `None` where the file is damaged.
    pub fn keys(&self) -> Option<Keys> {
        let secret = from_hex::<SECRET_LEN>(&self.secret)?;
        Some(Keys {
            network: NetworkKey::of_secret(&secret, self.network),
            sequence: self.sequence,
            name: KeyName::of(&secret),
        })
    }
}

/// The change of a key file from one reading to the next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyChange {
    /// The new file has the same keys.
    Unchanged,
    /// The same network key, and a later link key.
    Rotated,
    /// The new file has another network key.
    Replaced,
    /// An older state of the file, as from a backup: its keys were left behind, and motes that are
    /// revoked may have them. Its numbers before and now.
    Back {
        /// Identifies the network key, before and after.
        network: [u32; 2],
        /// Sequence of the link key, before and after.
        sequence: [u32; 2],
    },
}

/// The secret from which the join keys of all devices are derived. It is never shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct JoinSecret([u8; SECRET_LEN]);

impl JoinSecret {
    /// A secret of these bytes.
    pub const fn new(bytes: [u8; SECRET_LEN]) -> Self {
        Self(bytes)
    }

    /// The key with which the device with this extended address joins.
    pub fn key(&self, eui64: [u8; 8]) -> JoinKey {
        JoinKey::of_secret(&self.0, eui64)
    }
}

impl std::fmt::Debug for JoinSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JoinSecret(..)")
    }
}

/// The keys by which frames of a network are decrypted.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    /// The network's key, from which those of its links follow.
    pub network: NetworkKey,
    /// Where the key sequence stands, as far as is known.
    pub sequence: u32,
    /// The name under which counters of these keys, and of those that follow, are kept.
    pub name: KeyName,
}

impl Keys {
    /// The keys of a network key itself, at the begin of its key sequence.
    pub fn of_network_key(bytes: [u8; KEY_LEN]) -> Self {
        Self {
            network: NetworkKey::new(bytes),
            sequence: 0,
            name: KeyName::of(&bytes),
        }
    }

    /// The network key in hexadecimal digits.
    pub fn network_key_hex(&self) -> String {
        hex(self.network.as_bytes())
    }
}

/// Reads the keys of a key file.
///
/// # Errors
/// As [`KeyFile::read`].
pub fn read(path: &Path) -> Result<Keys, String> {
    parse(&owned_text(path)?, path)
}

/// Reads the keys in the text of a key file; `path` is what it is called.
///
/// # Errors
/// One sentence, where it is damaged.
pub fn parse(text: &str, path: &Path) -> Result<Keys, String> {
    let keys = parse_file(text, path)?.keys();
    keys.ok_or_else(|| damaged(path))
}

fn parse_file(text: &str, path: &Path) -> Result<KeyFile, String> {
    // The parser's own words would show parts of the file.
    let file: Option<KeyFile> = toml::from_str(text).ok();
    let file = file.filter(|file| file.keys().is_some());
    file.ok_or_else(|| damaged(path))
}

fn damaged(path: &Path) -> String {
    let shown = path.display();
    format!("{shown} is no key file, or damaged: motet keys new makes one")
}

/// The text of a file that its owner alone may read.
fn owned_text(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let cannot = |error: std::io::Error| format!("cannot read {shown}: {}", describe(&error));
    let file = File::open(path).map_err(cannot)?;
    let meta = file.metadata().map_err(cannot)?;
    if !meta.is_file() {
        return Err(format!("{shown} is no key file"));
    }
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o077 != 0 {
        return Err(format!(
            "others may read {shown}: chmod 600 {shown}, or make a new key"
        ));
    }
    let mut text = String::new();
    file.take(LEN_MAX)
        .read_to_string(&mut text)
        .map_err(cannot)?;
    Ok(text)
}

/// Bytes of hexadecimal digits; nothing else may be in `text`.
pub fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
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

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The system's words about a file, without the number of its error.
fn describe(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        kind => kind.to_string(),
    }
}

/// Bytes of the secret.
pub const SECRET_LEN: usize = 32;

/// No key file is longer.
const LEN_MAX: u64 = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_file_goes_on_and_never_back() {
        let path = Path::new("team.key");
        let mut file = KeyFile::new(&[0x5a; SECRET_LEN]);
        let first = parse(&file.text(), path).unwrap();
        file.rotate().unwrap();
        let second = parse(&file.text(), path).unwrap();
        assert_eq!((first.sequence, second.sequence), (0, 1));
        assert_eq!(first.network, second.network);
        file.revoke([1; 8]).unwrap();
        let third = parse(&file.text(), path).unwrap();
        assert_eq!(third.sequence, 1);
        assert_ne!(third.network, second.network);
        assert!(
            file.revoke([1; 8])
                .unwrap_err()
                .contains("0101010101010101")
        );
        file.revoke([2; 8]).unwrap();
        assert_ne!(parse(&file.text(), path).unwrap().network, third.network);
        file.sequence = u32::MAX;
        assert!(file.rotate().is_err());
        assert_eq!(format!("{file:?}"), "KeyFile(..)");
        assert!(parse("secret = 1", path).is_err());
    }

    #[test]
    fn a_file_that_goes_back_is_told_from_one_that_goes_on() {
        let first = KeyFile::new(&[0x5a; SECRET_LEN]);
        let step = |change: &dyn Fn(&mut KeyFile)| {
            let mut file = first.clone();
            change(&mut file);
            file
        };
        let rotated = step(&|file| file.rotate().unwrap());
        let revoked = step(&|file| file.revoke([1; 8]).unwrap());
        let forgotten = step(&|file| file.network = 1);
        let other = KeyFile::new(&[0xa5; SECRET_LEN]);
        let back = |network, sequence| KeyChange::Back { network, sequence };
        for (case, before, now, step) in [
            ("the same", &first, &first, KeyChange::Unchanged),
            ("rotated", &first, &rotated, KeyChange::Rotated),
            ("revoked", &first, &revoked, KeyChange::Replaced),
            (
                "revoked after a rotation",
                &rotated,
                &revoked,
                KeyChange::Replaced,
            ),
            ("another secret", &revoked, &other, KeyChange::Replaced),
            (
                "before the rotation",
                &rotated,
                &first,
                back([0; 2], [1, 0]),
            ),
            (
                "before the revocation",
                &revoked,
                &first,
                back([1, 0], [0; 2]),
            ),
            (
                "without those revoked",
                &revoked,
                &forgotten,
                back([1; 2], [0; 2]),
            ),
        ] {
            assert_eq!(now.after(before), step, "{case}");
        }
    }

    #[test]
    fn each_device_joins_with_a_key_of_its_own() {
        let mut file = KeyFile::new(&[0x5a; SECRET_LEN]);
        let first = file.join_key([1; 8]).unwrap();
        assert_ne!(first, file.join_key([2; 8]).unwrap());
        assert_ne!(first.as_bytes(), file.keys().unwrap().network.as_bytes());
        file.revoke([2; 8]).unwrap();
        assert_eq!(file.join_key([1; 8]).unwrap(), first);
        assert!(file.join_key([2; 8]).unwrap_err().contains("revoked"));
    }

    #[test]
    fn keys_are_not_shown() {
        let keys = Keys::of_network_key([0xab; KEY_LEN]);
        let shown = format!("{keys:?}");
        assert!(!shown.contains("ab") && !shown.contains("171"), "{shown}");
        assert_eq!(keys.network_key_hex(), "ab".repeat(KEY_LEN));
    }
}
