//! The explanation of a frame: a list of layers of named, typed fields.
//!
//! Purpose: one description, made once by the layers' modules, shown twice: [`super::text`] prints
//! it for people, serde writes it for programs.
//! Left out: any knowledge of a protocol.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::next::Next;

/// A field's value, with as much type as JSON can carry.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// Known to be absent; not printed for people.
    Null,
    /// A flag; people see its name when it is set and nothing when it is not.
    Bool(bool),
    /// A count, an identifier, a measure in the unit its key ends in.
    Number(u64),
    /// A number people read in hexadecimal, with this many digits.
    Hex(u64, usize),
    /// A measure that can be negative.
    Signed(i64),
    /// A measure with a fraction.
    Real(f64),
    /// A name or an address.
    Text(String),
    /// Bytes in hexadecimal; people see the first of them.
    Bytes(Vec<u8>),
    /// Several values.
    List(Vec<Value>),
    /// Named values: an option, a block of a header.
    Group(Vec<Field>),
}

/// A named value; measures carry their unit at the end of the key.
#[derive(Clone, PartialEq, Debug)]
pub struct Field {
    /// The name, in snake case.
    pub key: &'static str,
    /// The value.
    pub value: Value,
    /// Which readers see the field.
    pub audience: Audience,
}

/// The readers that see a field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Audience {
    /// Shown to people and to programs.
    All,
    /// Only for programs: people see the same in the title, or the field is too detailed for them.
    Programs,
    /// Only for people: the text describes what another field holds as a typed value.
    People,
}

/// One protocol's part of a frame.
#[derive(Clone, PartialEq, Debug)]
pub struct Layer {
    /// The protocol, as a program would look for it: `mac`, `iphc`, `tcp`.
    pub name: &'static str,
    /// The layer in a few words.
    pub title: String,
    /// The layer's fields, in the order of the header.
    pub fields: Vec<Field>,
}

impl Layer {
    /// A layer without fields.
    pub(super) fn new(name: &'static str, title: impl Into<String>) -> Self {
        Self {
            name,
            title: title.into(),
            fields: Vec::new(),
        }
    }

    /// Adds a field for people and programs.
    #[must_use]
    pub(super) fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.fields.push(Field {
            key,
            value: value.into(),
            audience: Audience::All,
        });
        self
    }

    /// Adds a field for programs only.
    #[must_use]
    pub(super) fn hidden(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.fields.push(Field {
            key,
            value: value.into(),
            audience: Audience::Programs,
        });
        self
    }

    /// Adds a field for people only.
    #[must_use]
    pub(super) fn remark(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.fields.push(Field {
            key,
            value: value.into(),
            audience: Audience::People,
        });
        self
    }
}

/// How far a frame could be explained.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Status {
    /// The frame was explained to its last byte, or to a payload that is the application's.
    #[default]
    Decoded,
    /// The frame holds one fragment of a datagram of which others are missing so far.
    Fragment,
    /// The frame is well formed as far as `decode` can see, but the rest is encrypted or unknown.
    Undecoded(Problem),
    /// The bytes contradict the format.
    Malformed(Problem),
}

impl Status {
    /// The word by which programs know it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Decoded => "decoded",
            Self::Fragment => "fragment",
            Self::Undecoded(_) => "undecoded",
            Self::Malformed(_) => "malformed",
        }
    }

    /// The frame's problem, if it has one.
    pub const fn problem(&self) -> Option<&Problem> {
        match self {
            Self::Decoded | Self::Fragment => None,
            Self::Undecoded(problem) | Self::Malformed(problem) => Some(problem),
        }
    }
}

/// Why a frame was not explained to its end.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Problem {
    /// The layer that gave up.
    pub layer: &'static str,
    /// The reason, in words.
    pub reason: String,
}

/// One record of a capture, explained.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Position in the file, from 1.
    pub number: u64,
    /// Capture time, nanoseconds since 1970.
    pub epoch_ns: u64,
    /// Nanoseconds since the first frame of the file; negative when the file is out of order.
    pub since_start_ns: i64,
    /// Bytes in the file.
    pub captured_len: usize,
    /// Bytes on the air; more than captured when the capture was cut short.
    pub original_len: u32,
    /// Bytes that a radio of IEEE 802.15.4 sent, with the FCS; 0 for other links.
    pub(super) radio_len: u32,
    /// Sender and receiver, by the innermost addresses.
    pub path: String,
    /// One line: the innermost layer that was understood.
    pub summary: String,
    /// The layers, the outermost first.
    pub layers: Vec<Layer>,
    /// How far it could be explained.
    pub status: Status,
}

impl Frame {
    /// Sets the summary: sender, receiver, and one line about the frame.
    pub(super) fn say(&mut self, what: impl fmt::Display) {
        let gap = if self.path.is_empty() { "" } else { "  " };
        self.summary = format!("{}{gap}{what}", self.path);
    }

    /// Sets the frame's sender and receiver, as the layers known so far have them.
    pub(super) fn between(&mut self, src: impl fmt::Display, dst: impl fmt::Display) {
        self.path = format!("{src} → {dst}");
    }

    /// Whether the capture holds only the first bytes of the frame.
    pub(super) fn is_cut(&self) -> bool {
        (self.captured_len as u64) < u64::from(self.original_len)
    }

    /// Sets the summary of a frame in which a header ends too early, or contradicts its format.
    pub(super) fn say_broken(&mut self, protocol: &str) {
        let what = if self.is_cut() { "cut" } else { "malformed" };
        self.say(format_args!("{protocol}, {what}"));
    }

    /// Adds the next layer inwards.
    pub(super) fn push(&mut self, layer: Layer) {
        self.layers.push(layer);
    }

    /// Adds bytes that no layer reads further.
    pub(super) fn payload(&mut self, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.push(
                Layer::new("payload", format!("{} B", bytes.len()))
                    .hidden("len", bytes.len())
                    .with("data", Value::Bytes(bytes.to_vec())),
            );
        }
    }

    /// Ends the explanation: the bytes contradict the format.
    pub(super) fn malformed(
        &mut self,
        layer: &'static str,
        reason: impl Into<String>,
    ) -> Next<'static> {
        self.status = Status::Malformed(Problem {
            layer,
            reason: reason.into(),
        });
        Next::End
    }

    /// Ends the explanation: the rest is encrypted or of an unknown kind.
    pub(super) fn undecoded(
        &mut self,
        layer: &'static str,
        reason: impl Into<String>,
    ) -> Next<'static> {
        self.status = Status::Undecoded(Problem {
            layer,
            reason: reason.into(),
        });
        Next::End
    }
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(value) | Self::Hex(value, _) => serializer.serialize_u64(*value),
            Self::Signed(value) => serializer.serialize_i64(*value),
            Self::Real(value) => serializer.serialize_f64(*value),
            Self::Text(value) => serializer.serialize_str(value),
            Self::Bytes(value) => serializer.serialize_str(&hex(value, "")),
            Self::List(values) => serializer.collect_seq(values),
            Self::Group(fields) => {
                serializer.collect_map(fields.iter().map(|field| (field.key, &field.value)))
            }
        }
    }
}

impl Serialize for Layer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.fields.len() + 2))?;
        map.serialize_entry("layer", self.name)?;
        map.serialize_entry("title", &self.title)?;
        for field in self
            .fields
            .iter()
            .filter(|field| field.audience != Audience::People)
        {
            map.serialize_entry(field.key, &field.value)?;
        }
        map.end()
    }
}

impl Serialize for Frame {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let problem = self.status.problem();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("frame", &self.number)?;
        map.serialize_entry("time_s", &(self.since_start_ns as f64 / 1e9))?;
        map.serialize_entry("epoch_ns", &self.epoch_ns)?;
        map.serialize_entry("captured_len", &self.captured_len)?;
        map.serialize_entry("original_len", &self.original_len)?;
        map.serialize_entry("status", self.status.name())?;
        map.serialize_entry("problem_layer", &problem.map(|problem| problem.layer))?;
        map.serialize_entry("reason", &problem.map(|problem| &problem.reason))?;
        map.serialize_entry("summary", &self.summary)?;
        map.serialize_entry("layers", &self.layers)?;
        map.end()
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => Ok(()),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Number(value) => write!(f, "{value}"),
            Self::Hex(value, digits) => write!(f, "0x{value:0digits$x}"),
            Self::Signed(value) => write!(f, "{value}"),
            Self::Real(value) => write!(f, "{value}"),
            Self::Text(value) => f.write_str(value),
            Self::Bytes(value) => f.write_str(&preview(value)),
            Self::List(values) => join(f, values.iter().map(ToString::to_string)),
            Self::Group(fields) => {
                // The first field names the thing, the others describe it.
                let mut parts = fields.iter().flat_map(Field::for_people);
                f.write_str(&parts.next().unwrap_or_default())?;
                let rest: Vec<String> = parts.collect();
                if rest.is_empty() {
                    Ok(())
                } else {
                    write!(f, " ({})", rest.join(", "))
                }
            }
        }
    }
}

impl Field {
    /// A field for programs only.
    pub(super) fn for_programs(key: &'static str, value: impl Into<Value>) -> Self {
        Self {
            key,
            value: value.into(),
            audience: Audience::Programs,
        }
    }

    /// The field as text for people: `hop limit 64`. A list of groups gives one text for each
    /// group; an empty or false value gives none.
    pub fn for_people(&self) -> Vec<String> {
        // A unit reads better behind its number than inside the name.
        let (name, unit) = UNITS
            .iter()
            .find_map(|(suffix, unit)| Some((self.key.strip_suffix(suffix)?, *unit)))
            .unwrap_or((self.key, ""));
        let name = name.replace('_', " ");
        match &self.value {
            _ if self.audience == Audience::Programs => Vec::new(),
            Value::Null | Value::Bool(false) => Vec::new(),
            Value::Bool(true) => vec![name],
            Value::List(values) if values.is_empty() => Vec::new(),
            Value::List(values) if values.iter().all(|value| matches!(value, Value::Group(_))) => {
                values.iter().map(ToString::to_string).collect()
            }
            // Bytes speak for themselves.
            value @ Value::Bytes(_) if self.key == "data" => vec![value.to_string()],
            value => vec![format!("{name} {value}{unit}")],
        }
    }
}

fn join(f: &mut fmt::Formatter<'_>, parts: impl Iterator<Item = String>) -> fmt::Result {
    for (position, part) in parts.enumerate() {
        let separator = if position == 0 { "" } else { ", " };
        write!(f, "{separator}{part}")?;
    }
    Ok(())
}

/// Bytes as hexadecimal pairs with `separator` between them.
pub(super) fn hex(bytes: &[u8], separator: &str) -> String {
    bytes
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<Vec<_>>()
        .join(separator)
}

/// The first bytes in hexadecimal, and as text where they are printable ASCII.
fn preview(bytes: &[u8]) -> String {
    let head = bytes.get(..PREVIEW_LEN).unwrap_or(bytes);
    let more = if head.len() < bytes.len() { " …" } else { "" };
    // Never print what a terminal could take for a command.
    let ascii: String = head
        .iter()
        .map(|byte| {
            if (0x20..0x7f).contains(byte) {
                char::from(*byte)
            } else {
                '·'
            }
        })
        .collect();
    let text = if ascii.chars().all(|letter| letter == '·') {
        String::new()
    } else {
        format!("  \"{ascii}\"")
    };
    format!("{}{more}{text}", hex(head, " "))
}

/// Bytes of a payload people see; it fits a line of a terminal.
const PREVIEW_LEN: usize = 20;

/// Key endings that name a unit, and what people read behind the number.
const UNITS: &[(&str, &str)] = &[
    ("_dbm", " dBm"),
    ("_db", " dB"),
    ("_us", " µs"),
    ("_ms", " ms"),
    ("_ns", " ns"),
    ("_s", " s"),
    ("_bytes", " B"),
    ("_khz", " kHz"),
];

macro_rules! value_from {
    ($($from:ty => |$value:ident| $to:expr),* $(,)?) => {
        $(impl From<$from> for Value {
            fn from($value: $from) -> Self {
                $to
            }
        })*
    };
}

value_from! {
    bool => |value| Self::Bool(value),
    u8 => |value| Self::Number(u64::from(value)),
    u16 => |value| Self::Number(u64::from(value)),
    u32 => |value| Self::Number(u64::from(value)),
    u64 => |value| Self::Number(value),
    usize => |value| Self::Number(value as u64),
    i8 => |value| Self::Signed(i64::from(value)),
    i64 => |value| Self::Signed(value),
    f64 => |value| Self::Real(value),
    &str => |value| Self::Text(value.to_owned()),
    String => |value| Self::Text(value),
    std::net::Ipv6Addr => |value| Self::Text(value.to_string()),
    &[u8] => |value| Self::Bytes(value.to_vec()),
    Vec<u8> => |value| Self::Bytes(value),
    Vec<Value> => |value| Self::List(value),
    Vec<Field> => |value| Self::Group(value),
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A 16-bit number people read in hexadecimal.
pub(super) fn hex16(value: u16) -> Value {
    Value::Hex(u64::from(value), 4)
}

/// An 8-bit number people read in hexadecimal.
pub(super) fn hex8(value: u8) -> Value {
    Value::Hex(u64::from(value), 2)
}

/// A group of fields, as an option or a block of a header is.
pub(super) fn group(fields: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    Value::Group(
        fields
            .into_iter()
            .map(|(key, value)| Field {
                key,
                value,
                audience: Audience::All,
            })
            .collect(),
    )
}
