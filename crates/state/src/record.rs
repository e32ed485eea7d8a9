//! The text of a record, and of the lock file's slots.
//!
//! ```text
//! # Frame counters of nodes that have a key. ...
//! motet-counters 1
//! key 0123456789abcdef             a name of the key, by which nobody learns it
//! generation 7                     counts records
//! born 1790000000.123456789        when this file was made; - where the file system keeps no such time
//! node 024d6f7465740001 0 8192 0   EUI-64, key sequence, first frame counter and first number not used
//! check 0123456789abcdef           SHA-256 of all before, upper 8 bytes
//! ```
//!
//! A record has one spelling: what is read is what would be written, byte for byte.

use std::collections::BTreeMap;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

/// The past of a node: it must not use the numbers before these again.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Past {
    /// The key sequence that it has.
    pub sequence: u32,
    /// The first frame counter that it has not used.
    pub counter: u32,
    /// The first number of its messages of joining that it has not used.
    pub number: u32,
}

impl Past {
    /// The combination of two records: the lowest counters that neither has used. If their key
    /// sequences differ, only the counters of the later one count.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let (sequence, counter) =
            (self.sequence, self.counter).max((other.sequence, other.counter));
        Self {
            sequence,
            counter,
            number: self.number.max(other.number),
        }
    }
}

/// A name of a key, by which nobody learns the key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyName([u8; 8]);

impl KeyName {
    /// The name of a secret that stays the same while key sequences go on: a network key, or the
    /// secret from which network keys are derived.
    pub fn of(secret: &[u8]) -> Self {
        Self(digest(&[b"motet counters", secret]))
    }
}

impl std::fmt::Display for KeyName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&hex(&self.0))
    }
}

/// The content of a file of counters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// The key that the counters are of.
    pub key: KeyName,
    /// Records that were begun with this one, from 1 on.
    pub generation: u64,
    /// When the file was made, since the epoch, as its file system says.
    pub born: Option<Duration>,
    /// Each node's past, by its EUI-64.
    pub nodes: BTreeMap<[u8; 8], Past>,
}

/// Why bytes are no record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// They never were one, or are not whole.
    Damaged,
    /// A record of this version.
    Version(u32),
}

impl Record {
    /// A record of a key with which nothing was sent yet.
    pub const fn new(key: KeyName) -> Self {
        Self {
            key,
            generation: 0,
            born: None,
            nodes: BTreeMap::new(),
        }
    }

    /// The record as text.
    pub fn emit(&self) -> String {
        let born = match self.born {
            Some(at) => format!("{}.{:09}", at.as_secs(), at.subsec_nanos()),
            None => "-".to_owned(),
        };
        let mut text = format!(
            "{NOTE}{VERSION}1\nkey {}\ngeneration {}\nborn {born}\n",
            self.key, self.generation
        );
        for (eui64, past) in &self.nodes {
            let Past {
                sequence,
                counter,
                number,
            } = past;
            let eui64 = hex(eui64);
            text.push_str(&format!("node {eui64} {sequence} {counter} {number}\n"));
        }
        let check = hex(&digest(&[text.as_bytes()]));
        text.push_str(&format!("check {check}\n"));
        text
    }

    /// Reads a record.
    ///
    /// # Errors
    /// Whatever [`Self::emit`] does not write, to the byte.
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let text = str::from_utf8(bytes).map_err(|_| ParseError::Damaged)?;
        let rest = text.strip_prefix(NOTE).ok_or(ParseError::Damaged)?;
        let rest = rest.strip_prefix(VERSION).ok_or(ParseError::Damaged)?;
        let (version, rest) = rest.split_once('\n').ok_or(ParseError::Damaged)?;
        match version.parse() {
            Ok(1) => {}
            Ok(other) if other > 1 => return Err(ParseError::Version(other)),
            _ => return Err(ParseError::Damaged),
        }
        let record = Self::fields(rest).ok_or(ParseError::Damaged)?;
        match record.emit() == text {
            true => Ok(record),
            false => Err(ParseError::Damaged),
        }
    }

    fn fields(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let mut field = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        let key = KeyName(from_hex(field("key")?)?);
        let generation = field("generation")?.parse().ok()?;
        let born = match field("born")? {
            "-" => None,
            at => {
                let (secs, nanos) = at.split_once('.')?;
                let nanos: u32 = nanos.parse().ok()?;
                let is_part = nanos < 1_000_000_000;
                Some(Duration::new(secs.parse().ok()?, is_part.then_some(nanos)?))
            }
        };
        let node = |line: &str| {
            let mut words = line.strip_prefix("node ")?.split(' ');
            let eui64 = from_hex(words.next()?)?;
            let mut number = || words.next()?.parse().ok();
            let past = Past {
                sequence: number()?,
                counter: number()?,
                number: number()?,
            };
            Some((eui64, past))
        };
        // The check's line ends them; `parse` compares it.
        let nodes = lines.map_while(node).collect();
        Some(Self {
            key,
            generation,
            born,
            nodes,
        })
    }
}

/// A slot of the lock file: the generation of a record that is on the disk.
pub(crate) fn slot(generation: u64) -> [u8; SLOT_LEN] {
    let check = hex(&digest(&[b"slot", &generation.to_be_bytes()]));
    let text = format!("{generation:016x} {check}\n");
    let mut slot = [0; SLOT_LEN];
    for (place, byte) in slot.iter_mut().zip(text.bytes()) {
        *place = byte;
    }
    slot
}

/// The generation in a slot, 0 where none was written; `None`: a power cut has cut the slot short.
pub(crate) fn parse_slot(bytes: &[u8]) -> Option<u64> {
    if bytes.iter().all(|byte| *byte == 0) {
        return Some(0);
    }
    let digits = str::from_utf8(bytes.get(..16)?).ok()?;
    let generation = u64::from_str_radix(digits, 16).ok()?;
    (slot(generation) == *bytes).then_some(generation)
}

fn digest(parts: &[&[u8]]) -> [u8; 8] {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    let mut upper = [0; 8];
    upper.copy_from_slice(&hasher.finalize()[..8]);
    upper
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Eight bytes of sixteen digits, in the one spelling that [`hex`] has: `emit` is compared with
/// what was read.
pub(crate) fn from_hex(digits: &str) -> Option<[u8; 8]> {
    let is_whole = digits.len() == 16 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = u64::from_str_radix(digits, 16).ok()?;
    is_whole.then_some(number.to_be_bytes())
}

/// Bytes of a slot.
pub(crate) const SLOT_LEN: usize = 34;

/// No record is longer: 65,536 nodes have half of it.
pub(crate) const LEN_MAX: u64 = 8 << 20;

const NOTE: &str = "# Frame counters of nodes that have a key. Do not change this file, or put an older one in its \
     place: a counter that is used twice betrays what was sent.\n";

const VERSION: &str = "motet-counters ";
