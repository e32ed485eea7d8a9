//! [`Error`]: why a call failed, and which [`ErrorKind`] that is.

use core::fmt;

use embedded_io_async::ErrorKind;
use motet::node::{ConnectError, DatagramError};
use motet::tcp::{self, ListenError, OpenError, RecvError, SendError};

/// The reason that a call failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// The peer has no listener at that port.
    Refused,
    /// The peer reset the connection.
    Reset,
    /// The peer, or a resolver, has not answered in time.
    TimedOut,
    /// The network says that the peer cannot be reached.
    Unreachable,
    /// The connection was aborted at this end.
    Aborted,
    /// This end has said that it sends no more.
    Closed,
    /// The connection does not exist any more.
    NotConnected,
    /// Every connection, listener or port of the [`Resources`](crate::Resources) is in use.
    NoSlot,
    /// The link's queue is full, or no port is left for another connection.
    Busy,
    /// No route leads to the address, or no address of this node fits it.
    NoRoute,
    /// Port 0, or an address that cannot be an end of a connection.
    Address,
    /// An IPv4 address: this stack speaks IPv6 alone.
    NotIpv6,
    /// The port is in use at this node.
    InUse,
    /// No such name, or nobody to ask for it.
    UnknownName,
    /// The resolver failed or refused three times.
    Resolver,
    /// The name is none, or a resolver's answer is.
    Malformed,
    /// A datagram longer than a packet may be, or than the queue of the
    /// [`Resources`](crate::Resources).
    TooLong,
    /// The call does not exist here.
    Unsupported,
}

impl Error {
    /// The meaning of the error, in a few English words.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Refused => "connection refused",
            Self::Reset => "connection reset by the peer",
            Self::TimedOut => "no answer in time",
            Self::Unreachable => "the peer cannot be reached",
            Self::Aborted => "connection aborted",
            Self::Closed => "this end has closed the connection for sending",
            Self::NotConnected => "no such connection",
            Self::NoSlot => "every connection, listener or port is in use",
            Self::Busy => "no room now",
            Self::NoRoute => "no route leads there",
            Self::Address => "address or port cannot be an end of a connection",
            Self::NotIpv6 => "not an IPv6 address",
            Self::InUse => "the port is in use",
            Self::UnknownName => "no such name",
            Self::Resolver => "the resolver failed or refused",
            Self::Malformed => "malformed name or answer",
            Self::TooLong => "datagram longer than a packet or the queue may be",
            Self::Unsupported => "not supported",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl core::error::Error for Error {}

impl embedded_io_async::Error for Error {
    fn kind(&self) -> ErrorKind {
        match self {
            Self::Refused => ErrorKind::ConnectionRefused,
            Self::Reset => ErrorKind::ConnectionReset,
            Self::TimedOut => ErrorKind::TimedOut,
            Self::Aborted => ErrorKind::ConnectionAborted,
            Self::Closed => ErrorKind::BrokenPipe,
            Self::NotConnected => ErrorKind::NotConnected,
            Self::NoSlot | Self::Busy => ErrorKind::OutOfMemory,
            Self::NoRoute | Self::Unreachable => ErrorKind::AddrNotAvailable,
            Self::Address | Self::TooLong => ErrorKind::InvalidInput,
            Self::InUse => ErrorKind::AddrInUse,
            Self::UnknownName => ErrorKind::NotFound,
            Self::Resolver => ErrorKind::Other,
            Self::Malformed => ErrorKind::InvalidData,
            Self::NotIpv6 | Self::Unsupported => ErrorKind::Unsupported,
        }
    }
}

impl From<tcp::Error> for Error {
    fn from(error: tcp::Error) -> Self {
        match error {
            tcp::Error::Refused => Self::Refused,
            tcp::Error::Reset => Self::Reset,
            tcp::Error::TimedOut | tcp::Error::KeepaliveTimedOut | tcp::Error::UserTimeout => {
                Self::TimedOut
            }
            tcp::Error::Unreachable => Self::Unreachable,
            tcp::Error::Aborted => Self::Aborted,
        }
    }
}

impl From<ConnectError> for Error {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::NoRoute | ConnectError::NoAddress => Self::NoRoute,
            ConnectError::Tcp(error) => error.into(),
        }
    }
}

impl From<OpenError> for Error {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::NoSlot => Self::NoSlot,
            OpenError::NoListener => Self::NotConnected,
            OpenError::Address => Self::Address,
            OpenError::NoPort => Self::Busy,
            OpenError::InUse => Self::InUse,
        }
    }
}

impl From<ListenError> for Error {
    fn from(error: ListenError) -> Self {
        match error {
            ListenError::NoPlace => Self::NoSlot,
            ListenError::InUse => Self::InUse,
            ListenError::Address => Self::Address,
        }
    }
}

impl From<DatagramError> for Error {
    fn from(error: DatagramError) -> Self {
        match error {
            DatagramError::NoRoute | DatagramError::NoAddress => Self::NoRoute,
            DatagramError::TooLong => Self::TooLong,
            DatagramError::QueueFull => Self::Busy,
        }
    }
}

/// Why a write failed; `None`: it has to wait.
pub(crate) fn of_send(error: SendError) -> Option<Error> {
    match error {
        SendError::BufferFull => None,
        SendError::Closing => Some(Error::Closed),
        SendError::Failed(error) => Some(error.into()),
        SendError::NoConnection => Some(Error::NotConnected),
    }
}

/// The result of a read without bytes: `Ok(0)` at the end of the stream; `None`: it has to wait.
pub(crate) fn of_recv(error: RecvError) -> Option<Result<usize, Error>> {
    match error {
        RecvError::Empty => None,
        RecvError::Finished => Some(Ok(0)),
        RecvError::Failed(error) => Some(Err(error.into())),
        RecvError::NoConnection => Some(Err(Error::NotConnected)),
    }
}
