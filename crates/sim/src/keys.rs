//! The key file of a network, which scenarios and commands name: one secret, from which all keys follow.
//!
//! ```toml
//! secret = "…"      # 64 hexadecimal digits
//! network = 0       # which network key
//! sequence = 0      # the key sequence to begin with
//! ```
//!
//! The network key of number N is the upper half of HMAC-SHA256(secret, "motet network" ‖ N).
//! Left out: making one, which needs random bytes.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use motet::mac::security::{KEY_LEN, NetworkKey};
use serde::Deserialize;

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
pub struct Keys {
    /// The network's key, from which those of its links follow.
    pub network: NetworkKey,
    /// Where the key sequence stands, as far as is known.
    pub sequence: u32,
}

impl Keys {
    /// The keys of a network key itself, at the begin of its key sequence.
    pub const fn of_network_key(bytes: [u8; KEY_LEN]) -> Self {
        Self {
            network: NetworkKey::new(bytes),
            sequence: 0,
        }
    }

    /// The network key in hexadecimal digits.
    pub fn network_key_hex(&self) -> String {
        hex(self.network.as_bytes())
    }
}

/// Reads a key file.
///
/// # Errors
/// One sentence, where there is none, others than its owner may read it, or it is damaged.
pub fn read(path: &Path) -> Result<Keys, String> {
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
    parse(&text, path)
}

/// Reads the text of a key file; `path` is what it is called.
///
/// # Errors
/// One sentence, where it is damaged.
pub fn parse(text: &str, path: &Path) -> Result<Keys, String> {
    // The parser's own words would show parts of the file.
    let contents: Option<Contents> = toml::from_str(text).ok();
    let secret = contents
        .as_ref()
        .and_then(|contents| from_hex::<SECRET_LEN>(&contents.secret));
    let (Some(contents), Some(secret)) = (contents, secret) else {
        return Err(format!(
            "{} is no key file, or damaged: motet keys new makes one",
            path.display()
        ));
    };
    Ok(Keys {
        sequence: contents.sequence,
        network: NetworkKey::of_secret(&secret, contents.network),
    })
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

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What the system says of a file, without the number of its error.
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
