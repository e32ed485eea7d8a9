//! Error numbers, as libc on Linux counts them.

/// An error number with a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Errno(pub i32);

macro_rules! errnos {
    ($($name:ident = $value:literal,)*) => {
        /// The error numbers that sockets give.
        #[expect(missing_docs, reason = "they bear libc's names")]
        impl Errno {
            $(pub const $name: Self = Self($value);)*

            /// The name in C, such as `ECONNRESET`.
            pub const fn name(self) -> &'static str {
                match self.0 {
                    $($value => stringify!($name),)*
                    _ => "an unknown error",
                }
            }

            /// The number of a name.
            pub fn of(name: &str) -> Option<Self> {
                match name {
                    $(stringify!($name) => Some(Self::$name),)*
                    "EWOULDBLOCK" => Some(Self::EAGAIN),
                    _ => None,
                }
            }
        }
    };
}

errnos! {
    EPERM = 1,
    ENOENT = 2,
    EINTR = 4,
    EIO = 5,
    EBADF = 9,
    EAGAIN = 11,
    ENOMEM = 12,
    EACCES = 13,
    EFAULT = 14,
    EEXIST = 17,
    EINVAL = 22,
    EMFILE = 24,
    ESPIPE = 29,
    EPIPE = 32,
    EDEADLK = 35,
    ENOSYS = 38,
    ENOTSOCK = 88,
    EDESTADDRREQ = 89,
    EMSGSIZE = 90,
    EPROTOTYPE = 91,
    ENOPROTOOPT = 92,
    EPROTONOSUPPORT = 93,
    EOPNOTSUPP = 95,
    EAFNOSUPPORT = 97,
    EADDRINUSE = 98,
    EADDRNOTAVAIL = 99,
    ENETUNREACH = 101,
    ECONNABORTED = 103,
    ECONNRESET = 104,
    ENOBUFS = 105,
    EISCONN = 106,
    ENOTCONN = 107,
    ETIMEDOUT = 110,
    ECONNREFUSED = 111,
    EHOSTUNREACH = 113,
    EALREADY = 114,
    EINPROGRESS = 115,
}
