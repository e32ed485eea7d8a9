//! The key that opens a capture: of a key file, a network key, or the dataset of a Thread network.
//!
//! Place: `motet decode --key`. The stack reads datasets.

use std::io::Read as _;
use std::net::Ipv6Addr;
use std::path::Path;

use motet::mac::security::{KEY_LEN, NetworkKey};
use motet::thread::Dataset;
use motet_decode::{Context, Decoder};

use super::{Keys, from_hex, read};
use crate::error::Error;
use crate::files;

/// What opens the frames of a capture.
#[derive(Clone, Copy, Debug)]
struct CaptureKey {
    /// The key of the network.
    network: NetworkKey,
    /// Where its key sequence stands, as far as is known.
    sequence: u32,
    /// The mesh-local prefix of a Thread network, which is its 6LoWPAN context 0.
    mesh_local_prefix: Option<Ipv6Addr>,
}

impl CaptureKey {
    /// Reads what a user named: the digits of a network key or of a dataset, a file with either, a
    /// key file, or `-`, which is standard input.
    ///
    /// # Errors
    /// [`Error::Input`]: it is none of these.
    fn read(named: &str) -> Result<Self, Error> {
        if named == "-" {
            let mut text = String::new();
            let input = std::io::stdin().take(TEXT_LEN_MAX);
            // Bytes that are no text are no digits either.
            let _ = { input }.read_to_string(&mut text);
            return Self::of_digits(&text, "standard input");
        }
        let path = Path::new(named);
        if from_hex::<16>(named).is_some() || is_digits(named) && !path.exists() {
            return Self::of_digits(named, "--key");
        }
        // A key file must be closed to others, so its own reader opens it.
        let content = files::read(path).unwrap_or_default();
        match std::str::from_utf8(&content) {
            Ok(text) if is_digits(text) => Self::of_digits(text, named),
            _ => read(path).map(Self::from),
        }
    }

    /// The key in `text`, the digits of a network key or of a dataset, which comes from `origin`.
    fn of_digits(text: &str, origin: &str) -> Result<Self, Error> {
        if let Some(bytes) = from_hex(text.trim()) {
            return Ok(Keys::of_network_key(bytes).into());
        }
        let dataset = Dataset::parse_hex(text).map_err(|error| {
            let reason = error.reason();
            Error::input(format!(
                "{origin} holds neither a network key of 32 hexadecimal digits nor a dataset as \
                 dataset active -x prints it: {reason}"
            ))
        })?;
        let [a, b, c, d, e, f, g, h] = dataset.mesh_local_prefix;
        Ok(Self {
            network: dataset.network,
            sequence: 0,
            mesh_local_prefix: Some(Ipv6Addr::from([
                a, b, c, d, e, f, g, h, 0, 0, 0, 0, 0, 0, 0, 0,
            ])),
        })
    }
}

/// All that opens the frames of a capture.
#[derive(Debug, Default)]
pub(crate) struct CaptureKeys {
    network: Option<CaptureKey>,
    raw: Vec<RawKey>,
}

/// The AES key of frames, and their key index.
#[derive(Clone, Copy)]
struct RawKey {
    bytes: [u8; KEY_LEN],
    index: Option<u8>,
}

impl std::fmt::Debug for RawKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RawKey(..)")
    }
}

impl CaptureKeys {
    /// Reads what users named by `--key` and `--key-index`.
    ///
    /// # Errors
    /// [`Error::Input`]: one is no key, there are two network keys, or an index without a raw key.
    pub(crate) fn read(named: &[String], indices: &[u8]) -> Result<Self, Error> {
        let mut keys = Self::default();
        let mut indices = indices.iter();
        for named in named {
            if let Some(digits) = named.strip_prefix(RAW) {
                let bytes = from_hex(digits.trim()).ok_or_else(|| {
                    Error::input("--key raw: must be followed by 32 hexadecimal digits")
                })?;
                let index = indices.next().copied();
                keys.raw.push(RawKey { bytes, index });
            } else if keys.network.replace(CaptureKey::read(named)?).is_some() {
                return Err(Error::input(
                    "--key names two network keys: leave one out, or write raw: in front of an AES key",
                ));
            }
        }
        match indices.next() {
            Some(index) => Err(Error::input(format!(
                "--key-index {index} needs a key of its own, such as --key raw:00112233445566778899aabbccddeeff"
            ))),
            None => Ok(keys),
        }
    }

    /// A decoder that has these keys, and the contexts given or known with them.
    pub(crate) fn decoder(&self, given: &[Context]) -> Decoder {
        let mesh_local = self.network.and_then(|key| key.mesh_local_prefix);
        // The context that every node of a Thread network knows.
        let mesh_local = mesh_local.map(|prefix| Context {
            id: 0,
            prefix,
            len: 64,
        });
        let contexts: Vec<Context> = mesh_local
            .into_iter()
            .chain(given.iter().copied())
            .collect();
        let mut decoder = Decoder::new(&contexts);
        if let Some(key) = self.network {
            decoder.open_with(key.network, key.sequence);
        }
        for key in &self.raw {
            decoder.open_with_raw(key.bytes, key.index);
        }
        decoder
    }
}

impl From<Keys> for CaptureKey {
    fn from(keys: Keys) -> Self {
        Self {
            network: keys.network,
            sequence: keys.sequence,
            mesh_local_prefix: None,
        }
    }
}

/// Whether `text` is nothing but hexadecimal digits, and what `ot-ctl` prints behind them.
fn is_digits(text: &str) -> bool {
    let text = text.trim();
    let text = text.strip_suffix("Done").unwrap_or(text);
    let mut letters = text.chars().filter(|letter| !letter.is_whitespace());
    letters.clone().next().is_some() && letters.all(|letter| letter.is_ascii_hexdigit())
}

/// A dataset has at most 508 digits.
const TEXT_LEN_MAX: u64 = 65_536;

/// In front of an AES key that is of no known network.
const RAW: &str = "raw:";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_told_from_names_of_files() {
        for text in ["00ff", " 00FF\r\nDone\r\n", "00 ff"] {
            assert!(is_digits(text), "{text}");
        }
        for text in [
            "",
            "Done",
            "team.key",
            "00fg",
            "> dataset active -x\n00ff\nDone",
        ] {
            assert!(!is_digits(text), "{text}");
        }
    }
}
