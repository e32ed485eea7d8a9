//! Error numbers, and which one each failure is.

use motet::node::{ConnectError, DatagramError};
use motet::tcp::{self, ListenError, OpenError, RecvError, SendError};

/// No such address.
pub const MOTET_ENOENT: i32 = 2;
/// No such socket: it was closed, is of another kind, or is another node's. Or no such node.
pub const MOTET_EBADF: i32 = 9;
/// Nothing now: try again after a change.
pub const MOTET_EAGAIN: i32 = 11;
/// The memory is smaller than motet_node_size says.
pub const MOTET_ENOMEM: i32 = 12;
/// A null pointer, or one that is misaligned.
pub const MOTET_EFAULT: i32 = 14;
/// A value that cannot be.
pub const MOTET_EINVAL: i32 = 22;
/// Every connection, listener or port is in use.
pub const MOTET_ENFILE: i32 = 23;
/// This end has closed the connection for sending.
pub const MOTET_EPIPE: i32 = 32;
/// Longer than a packet may be, or than the configuration's queue_len.
pub const MOTET_EMSGSIZE: i32 = 90;
/// The port is in use.
pub const MOTET_EADDRINUSE: i32 = 98;
/// No address of this node fits.
pub const MOTET_EADDRNOTAVAIL: i32 = 99;
/// No route leads there.
pub const MOTET_ENETUNREACH: i32 = 101;
/// The connection was aborted at this end.
pub const MOTET_ECONNABORTED: i32 = 103;
/// The peer reset the connection.
pub const MOTET_ECONNRESET: i32 = 104;
/// The connection is over.
pub const MOTET_ENOTCONN: i32 = 107;
/// The peer does not answer.
pub const MOTET_ETIMEDOUT: i32 = 110;
/// The peer has no listener at that port.
pub const MOTET_ECONNREFUSED: i32 = 111;
/// The network says that the peer cannot be reached.
pub const MOTET_EHOSTUNREACH: i32 = 113;

/// Why a call failed: one of the numbers above.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Errno(pub(crate) i32);

impl Errno {
    /// The negative number that C gets.
    pub(crate) const fn code(self) -> i32 {
        -self.0
    }
}

/// The return value for C: a count, or a negative error number.
pub(crate) fn code(result: Result<i32, Errno>) -> i32 {
    result.unwrap_or_else(Errno::code)
}

/// A count of bytes for C.
pub(crate) fn count(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}

impl From<tcp::Error> for Errno {
    fn from(error: tcp::Error) -> Self {
        Self(match error {
            tcp::Error::Refused => MOTET_ECONNREFUSED,
            tcp::Error::Reset => MOTET_ECONNRESET,
            tcp::Error::TimedOut | tcp::Error::KeepaliveTimedOut | tcp::Error::UserTimeout => {
                MOTET_ETIMEDOUT
            }
            tcp::Error::Unreachable => MOTET_EHOSTUNREACH,
            tcp::Error::Aborted => MOTET_ECONNABORTED,
        })
    }
}

impl From<OpenError> for Errno {
    fn from(error: OpenError) -> Self {
        Self(match error {
            OpenError::NoSlot | OpenError::NoPort => MOTET_ENFILE,
            OpenError::NoListener => MOTET_EBADF,
            OpenError::Address => MOTET_EINVAL,
            OpenError::InUse => MOTET_EADDRINUSE,
        })
    }
}

impl From<ConnectError> for Errno {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::NoRoute => Self(MOTET_ENETUNREACH),
            ConnectError::NoAddress => Self(MOTET_EADDRNOTAVAIL),
            ConnectError::Tcp(error) => error.into(),
        }
    }
}

impl From<ListenError> for Errno {
    fn from(error: ListenError) -> Self {
        Self(match error {
            ListenError::NoPlace => MOTET_ENFILE,
            ListenError::InUse => MOTET_EADDRINUSE,
            ListenError::Address => MOTET_EINVAL,
        })
    }
}

impl From<SendError> for Errno {
    fn from(error: SendError) -> Self {
        match error {
            SendError::BufferFull => Self(MOTET_EAGAIN),
            SendError::Closing => Self(MOTET_EPIPE),
            SendError::Failed(error) => error.into(),
            SendError::NoConnection => Self(MOTET_ENOTCONN),
        }
    }
}

impl From<RecvError> for Errno {
    fn from(error: RecvError) -> Self {
        match error {
            // A finished stream is no failure: its caller gets 0.
            RecvError::Empty | RecvError::Finished => Self(MOTET_EAGAIN),
            RecvError::Failed(error) => error.into(),
            RecvError::NoConnection => Self(MOTET_ENOTCONN),
        }
    }
}

impl From<DatagramError> for Errno {
    fn from(error: DatagramError) -> Self {
        Self(match error {
            DatagramError::NoRoute => MOTET_ENETUNREACH,
            DatagramError::NoAddress => MOTET_EADDRNOTAVAIL,
            DatagramError::TooLong => MOTET_EMSGSIZE,
            DatagramError::QueueFull => MOTET_EAGAIN,
        })
    }
}
