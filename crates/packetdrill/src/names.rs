//! C's numbers for socket options, as the host's names for them.

/// The name of an option; `None`: this stack has none like it.
pub(crate) fn option(level: i32, name: i32) -> Option<&'static str> {
    TABLE
        .iter()
        .find(|(l, n, _)| (*l, *n) == (level, name))
        .map(|(_, _, text)| *text)
}

/// FreeBSD's bound on the time to connect; Linux has no number for it.
const TCP_KEEPINIT: i32 = 128;
/// FreeBSD's switch for segments without options; Linux has no number for it.
const TCP_NOOPT: i32 = 8;

const TABLE: [(i32, i32, &str); 22] = [
    (libc::SOL_SOCKET, libc::SO_REUSEADDR, "SO_REUSEADDR"),
    (libc::SOL_SOCKET, libc::SO_REUSEPORT, "SO_REUSEPORT"),
    (libc::SOL_SOCKET, libc::SO_TYPE, "SO_TYPE"),
    (libc::SOL_SOCKET, libc::SO_ERROR, "SO_ERROR"),
    (libc::SOL_SOCKET, libc::SO_SNDBUF, "SO_SNDBUF"),
    (libc::SOL_SOCKET, libc::SO_RCVBUF, "SO_RCVBUF"),
    (libc::SOL_SOCKET, libc::SO_KEEPALIVE, "SO_KEEPALIVE"),
    (libc::SOL_SOCKET, libc::SO_LINGER, "SO_LINGER"),
    (libc::SOL_SOCKET, libc::SO_ACCEPTCONN, "SO_ACCEPTCONN"),
    (libc::IPPROTO_TCP, libc::TCP_NODELAY, "TCP_NODELAY"),
    (libc::IPPROTO_TCP, libc::TCP_MAXSEG, "TCP_MAXSEG"),
    (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, "TCP_KEEPIDLE"),
    (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, "TCP_KEEPINTVL"),
    (libc::IPPROTO_TCP, libc::TCP_KEEPCNT, "TCP_KEEPCNT"),
    (libc::IPPROTO_TCP, TCP_KEEPINIT, "TCP_KEEPINIT"),
    (libc::IPPROTO_TCP, TCP_NOOPT, "TCP_NOOPT"),
    (
        libc::IPPROTO_TCP,
        libc::TCP_USER_TIMEOUT,
        "TCP_USER_TIMEOUT",
    ),
    (
        libc::IPPROTO_IPV6,
        libc::IPV6_UNICAST_HOPS,
        "IPV6_UNICAST_HOPS",
    ),
    (libc::IPPROTO_IPV6, libc::IPV6_TCLASS, "IPV6_TCLASS"),
    (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, "IPV6_V6ONLY"),
    (libc::IPPROTO_IP, libc::IP_TTL, "IP_TTL"),
    (libc::IPPROTO_IP, libc::IP_TOS, "IP_TOS"),
];
