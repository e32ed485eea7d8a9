//! The script language: its syntax tree and its parser.
//!
//! Place: [`parse`] makes a [`Script`] of a file's text, or returns the place of the error;
//! [`crate::run`] plays it. Left out: meaning. The player decides whether a call or a command can
//! be carried out.

mod call;
mod cursor;
mod packet;
mod parser;
mod preprocess;

#[cfg(test)]
mod tests;

pub use parser::parse;

use crate::packet::TcpOption;

/// A place in a script, both counted from 1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column, in bytes, from 1.
    pub column: usize,
}

/// A text that is no script: where, and why.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyntaxError {
    /// The place of the error.
    pub at: Position,
    /// A sentence: the expected at that place, or the mistake in the text there.
    pub message: String,
}

/// A packetdrill script.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// `--name=value` lines: name without the dashes.
    pub options: Vec<(Position, String, Option<String>)>,
    /// The command before the first event.
    pub init: Option<(Position, String)>,
    /// The script's events, in order.
    pub events: Vec<Event>,
    /// The command behind the last event.
    pub cleanup: Option<(Position, String)>,
}

impl Script {
    /// Whether the script was written to be played over IPv4.
    pub fn is_for_ipv4(&self) -> bool {
        self.option("ip_version") == Some("ipv4")
    }

    /// The value of a `--name=value` line.
    pub fn option(&self, name: &str) -> Option<&str> {
        let mut values = self.options.iter().filter(|(_, known, _)| known == name);
        values.next_back()?.2.as_deref()
    }
}

/// One event of a script.
#[derive(Clone, Debug)]
pub struct Event {
    /// The event's place in the script.
    pub at: Position,
    /// The time of the event.
    pub time: Time,
    /// The action at that time.
    pub action: Action,
    /// The event's text in one line, for reports.
    pub text: String,
}

/// When an event happens; microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Time {
    /// Microseconds since the script's start.
    Absolute(u64),
    /// Microseconds since the event before.
    Relative(u64),
    /// At any time.
    Any,
    /// Between two times since the start.
    AbsoluteRange(u64, u64),
    /// Between two times since the event before.
    RelativeRange(u64, u64),
}

impl Time {
    /// The time since the script's start, µs, if the event before was at `last`; both ends of a
    /// range. `None`: any time.
    pub const fn span(self, last: u64) -> Option<(u64, u64)> {
        match self {
            Self::Absolute(at) => Some((at, at)),
            Self::Relative(after) => Some((last + after, last + after)),
            Self::AbsoluteRange(from, to) => Some((from, to)),
            Self::RelativeRange(from, to) => Some((last + from, last + to)),
            Self::Any => None,
        }
    }
}

/// The action of an event.
#[derive(Clone, Debug)]
pub enum Action {
    /// A segment for the stack.
    Inject(SegmentSpec),
    /// An ICMPv6 error for the stack.
    InjectIcmp(IcmpSpec),
    /// A segment that the stack sends.
    Expect(SegmentSpec),
    /// A call of the application.
    Call(Call),
    /// A shell command: looked up in a table, never executed.
    Command(String),
    /// Assertions, in braces.
    Code(String),
}

/// A segment as a script states it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SegmentSpec {
    /// The fields of the IPv6 header that the script states.
    pub ip: IpSpec,
    /// Source and destination port, where the script names them.
    pub ports: Option<(u16, u16)>,
    /// The flag bits, FIN lowest.
    pub flags: u16,
    /// SEG.SEQ, as the script counts it; `None`: any.
    pub seq: Option<u32>,
    /// Length of the payload, bytes.
    pub len: usize,
    /// SEG.ACK, where the script names it.
    pub ack: Option<u32>,
    /// SEG.WND, where the script names it.
    pub window: Option<u16>,
    /// Urgent pointer.
    pub urgent: u16,
    /// Options; `None`: any (`<...>`).
    pub options: Option<Vec<TcpOption>>,
}

impl SegmentSpec {
    /// The TSval that the script states, if it states one.
    pub fn timestamp(&self) -> Option<u32> {
        let mut options = self.options.iter().flatten();
        options.find_map(|option| match option {
            TcpOption::Timestamps { value, .. } => Some(*value),
            _ => None,
        })
    }
}

/// The fields of an IPv6 header that a script states; `None`: not stated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct IpSpec {
    /// ECN field.
    pub ecn: Option<EcnSpec>,
    /// Whole traffic class.
    pub traffic_class: Option<u8>,
    /// Hop limit.
    pub hop_limit: Option<u8>,
}

/// The value that a script states for the ECN field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnSpec {
    /// Exactly this.
    Is(u8),
    /// ECT(0) or ECT(1).
    Ect01,
}

/// An ICMPv6 error as a script states it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IcmpSpec {
    /// Type and code.
    pub kind: [u8; 2],
    /// MTU, for packet too big.
    pub mtu: u32,
    /// Sequence number of the quoted segment; `None`: the script quotes none.
    pub seq: Option<u32>,
    /// Bytes of payload of the quoted segment.
    pub len: usize,
}

/// A call of the application.
#[derive(Clone, Debug)]
pub struct Call {
    /// When a call that blocks must have returned, on the event's own scale.
    pub until: Option<u64>,
    /// The name of the system call.
    pub name: String,
    /// The arguments of the call.
    pub args: Vec<Value>,
    /// The expected return value.
    pub result: Value,
    /// The name of the errno that the call sets.
    pub errno: Option<String>,
}

/// An argument or a result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// `...`
    Any,
    /// A number.
    Number(i64),
    /// A name.
    Word(String),
    /// A string.
    Text(String),
    /// `a | b`
    Or(Vec<Value>),
    /// `name = value`, or `name(…) = value`.
    Field(String, Box<Value>),
    /// `name(arguments)`
    Apply(String, Vec<Value>),
    /// `[…]`
    List(Vec<Value>),
    /// `{…}`
    Struct(Vec<Value>),
}
