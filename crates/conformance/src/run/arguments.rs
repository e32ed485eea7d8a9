//! Arguments of calls: values of a script as numbers, with C's names as on Linux.

use super::{Player, Stop, refused};
use crate::host::Errno;
use crate::script::{Call, Position, Value};

impl Player<'_> {
    pub(super) fn field(
        &self,
        at: Position,
        fields: &[Value],
        wanted: &str,
    ) -> Result<Option<i64>, Stop> {
        for field in fields {
            if let Value::Field(name, value) = field
                && name == wanted
            {
                return Ok(Some(self.number(at, value)?));
            }
        }
        Ok(None)
    }

    /// Compares a value with `[wanted]`, or `...`.
    pub(super) fn compare(
        &self,
        at: Position,
        wanted: &Value,
        seen: i64,
        what: &str,
        wrong: &mut Vec<String>,
    ) -> Result<(), Stop> {
        let wanted = first(wanted);
        if *wanted == Value::Any {
            return Ok(());
        }
        let number = self.number(at, wanted)?;
        if number != seen {
            wrong.push(format!("{what}: expected {number}, got {seen}"));
        }
        Ok(())
    }

    /// The number that a value is.
    pub(super) fn number(&self, at: Position, value: &Value) -> Result<i64, Stop> {
        match value {
            Value::Number(number) => Ok(*number),
            Value::Or(parts) => {
                let mut bits = 0;
                for part in parts {
                    bits |= self.number(at, part)?;
                }
                Ok(bits)
            }
            Value::Word(word) => match constant(word) {
                Some(number) => Ok(number),
                None => refused(at, format!("the name `{word}` is not known")),
            },
            _ => refused(at, "a number is expected here".to_owned()),
        }
    }
}

/// The arguments of a system call in a script.
pub(super) struct Args<'a> {
    pub(super) at: Position,
    pub(super) call: &'a Call,
}

impl<'a> Args<'a> {
    pub(super) fn count(&self, wanted: usize) -> Result<(), Stop> {
        let (name, seen) = (&self.call.name, self.call.args.len());
        match seen == wanted {
            true => Ok(()),
            false => refused(
                self.at,
                format!("{name} takes {wanted} arguments, not {seen}"),
            ),
        }
    }

    pub(super) fn get(&self, index: usize) -> Result<&'a Value, Stop> {
        match self.call.args.get(index) {
            Some(value) => Ok(value),
            None => refused(
                self.at,
                format!("{} lacks its argument {}", self.call.name, index + 1),
            ),
        }
    }

    pub(super) fn fd(&self, player: &Player<'_>) -> Result<i32, Stop> {
        Ok(player.number(self.at, self.get(0)?)? as i32)
    }

    pub(super) fn word(&self, index: usize) -> Result<&'a str, Stop> {
        match self.get(index)? {
            Value::Word(word) => Ok(word),
            _ => refused(self.at, format!("argument {} must be a name", index + 1)),
        }
    }

    /// Whether this argument is C's null pointer.
    pub(super) fn is_null(&self, index: usize) -> bool {
        matches!(self.call.args.get(index), Some(Value::Word(word)) if word == "NULL")
    }

    /// The bytes that an iovec list, or a msghdr with one, holds.
    pub(super) fn iov_len(&self, player: &Player<'_>, index: usize) -> Result<i64, Stop> {
        fn sum(player: &Player<'_>, at: Position, value: &Value) -> Result<Option<i64>, Stop> {
            match value {
                // An iovec: {..., length}.
                Value::Struct(parts) => match parts.as_slice() {
                    [Value::Any, len] => Ok(Some(player.number(at, len)?)),
                    parts => {
                        for part in parts {
                            if let Value::Field(name, inner) = part
                                && name == "msg_iov"
                            {
                                return sum(player, at, inner);
                            }
                        }
                        Ok(None)
                    }
                },
                Value::List(parts) => {
                    let mut total = 0;
                    for part in parts {
                        total += sum(player, at, part)?.unwrap_or(0);
                    }
                    Ok(Some(total))
                }
                _ => Ok(None),
            }
        }
        match sum(player, self.at, self.get(index)?)? {
            Some(len) => Ok(len),
            None => refused(self.at, "expected a list of {..., length}".to_owned()),
        }
    }
}

/// The only element of a list, or the value itself.
pub fn first(value: &Value) -> &Value {
    match value {
        Value::List(items) => match items.as_slice() {
            [only] => only,
            _ => value,
        },
        value => value,
    }
}

/// The port of a socket address, where the script has one.
pub fn port_of(value: &Value) -> Option<u16> {
    let Value::Struct(fields) = value else {
        return None;
    };
    fields.iter().find_map(|field| match field {
        Value::Field(name, value) if name.ends_with("_port") => match value.as_ref() {
            Value::Apply(_, args) => match args.as_slice() {
                [Value::Number(port)] => u16::try_from(*port).ok(),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    })
}

/// C's names for numbers, as on Linux.
pub fn constant(word: &str) -> Option<i64> {
    if let Some(errno) = Errno::of(word) {
        return Some(i64::from(errno.0));
    }
    CONSTANTS
        .iter()
        .find(|(name, _)| *name == word)
        .map(|(_, value)| *value)
}

pub(super) const SOCK_STREAM: i64 = 1;
pub(super) const SOCK_NONBLOCK: i64 = 0x800;
pub(super) const SOCK_CLOEXEC: i64 = 0x8_0000;
pub(super) const SPLICE_F_NONBLOCK: i64 = 2;
pub(super) const MSG_PEEK: i64 = 0x2;
pub(super) const MSG_DONTWAIT: i64 = 0x40;
pub(super) const MSG_NOSIGNAL: i64 = 0x4000;
pub(super) const F_GETFL: i64 = 3;
pub(super) const F_SETFL: i64 = 4;
pub(super) const O_RDWR: i64 = 2;
pub(super) const O_NONBLOCK: i64 = 0x800;

const CONSTANTS: [(&str, i64); 52] = [
    ("AF_INET", 2),
    ("AF_INET6", 10),
    ("SOCK_STREAM", SOCK_STREAM),
    ("SOCK_NONBLOCK", SOCK_NONBLOCK),
    ("SOCK_CLOEXEC", SOCK_CLOEXEC),
    ("SOCK_DGRAM", 2),
    ("IPPROTO_TCP", 6),
    ("MSG_PEEK", MSG_PEEK),
    ("MSG_DONTWAIT", MSG_DONTWAIT),
    ("MSG_NOSIGNAL", MSG_NOSIGNAL),
    ("MSG_OOB", 1),
    ("MSG_WAITALL", 0x100),
    ("MSG_EOR", 0x80),
    ("MSG_MORE", 0x8000),
    ("MSG_ZEROCOPY", 0x400_0000),
    ("MSG_FASTOPEN", 0x2000_0000),
    ("MSG_TRUNC", 0x20),
    ("SPLICE_F_MOVE", 1),
    ("SPLICE_F_NONBLOCK", SPLICE_F_NONBLOCK),
    ("SPLICE_F_MORE", 4),
    ("F_GETFL", F_GETFL),
    ("F_SETFL", F_SETFL),
    ("O_RDWR", O_RDWR),
    ("O_NONBLOCK", O_NONBLOCK),
    ("SHUT_RD", 0),
    ("SHUT_WR", 1),
    ("SHUT_RDWR", 2),
    ("POLLIN", 0x1),
    ("POLLOUT", 0x4),
    ("POLLERR", 0x8),
    ("POLLHUP", 0x10),
    ("POLLRDHUP", 0x2000),
    ("EPOLLIN", 0x1),
    ("EPOLLOUT", 0x4),
    ("EPOLLERR", 0x8),
    ("EPOLLHUP", 0x10),
    ("EPOLLRDHUP", 0x2000),
    ("EPOLLET", 1 << 31),
    ("EPOLLONESHOT", 1 << 30),
    ("EPOLL_CTL_ADD", 1),
    ("EPOLL_CTL_DEL", 2),
    ("EPOLL_CTL_MOD", 3),
    ("IPTOS_DSCP_CS0", 0),
    ("IPTOS_DSCP_CS1", 0x20),
    ("IPTOS_DSCP_CS2", 0x40),
    ("IPTOS_DSCP_CS3", 0x60),
    ("IPTOS_DSCP_CS4", 0x80),
    ("IPTOS_DSCP_CS5", 0xa0),
    ("IPTOS_DSCP_CS6", 0xc0),
    ("IPTOS_DSCP_CS7", 0xe0),
    ("IPTOS_DSCP_EF", 0xb8),
    ("IPTOS_DSCP_AF11", 0x28),
];
