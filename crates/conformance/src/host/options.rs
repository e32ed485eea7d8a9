//! Socket options.

use motet::tcp::{Connection, State};

use super::settings::{Profile, Settings};
use super::{Errno, Fail, Host, Kind};
use crate::packet::HOP_LIMIT;

/// The settings of a socket; accepted connections inherit those of their listener.
#[derive(Clone, Debug)]
pub struct SocketOptions {
    /// Bytes of the receive buffer, before it is rounded up.
    pub recv_space: u32,
    /// Bytes of the send buffer.
    pub send_space: u32,
    /// Whether Nagle's algorithm is off (`TCP_NODELAY`).
    pub nodelay: bool,
    /// Whether keepalive is on (`SO_KEEPALIVE`).
    pub keepalive: bool,
    /// Keepalive's idle time and interval, s, and its number of probes.
    pub keepalive_times: (u16, u16, u8),
    /// Bound on the time to connect, ms; 0: none.
    pub connect_timeout_ms: u32,
    /// Bound on the time without progress, ms; 0: none.
    pub user_timeout_ms: u32,
    /// The largest segment both ways, bytes (`TCP_MAXSEG`).
    pub mss_max: Option<u16>,
    /// `TCP_NOOPT`: segments bear no options.
    pub no_options: bool,
    /// `SO_LINGER`: `None` is off; else the seconds.
    pub linger: Option<u32>,
    /// Hop limit of what is sent.
    pub hop_limit: u8,
    /// Traffic class of what is sent, without ECN.
    pub traffic_class: u8,
}

impl SocketOptions {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            recv_space: settings.recv_space,
            send_space: settings.send_space,
            nodelay: !settings.config.nagle,
            keepalive: false,
            keepalive_times: settings.keepalive,
            connect_timeout_ms: settings.connect_timeout_ms,
            user_timeout_ms: settings.config.user_timeout_ms,
            mss_max: None,
            no_options: false,
            linger: None,
            hop_limit: HOP_LIMIT,
            traffic_class: 0,
        }
    }
}

/// The MSS that a socket without a connection reports (RFC 9293 MUST-15 for IPv4).
const MSS_UNCONNECTED: u16 = 536;

/// Data of a full segment to the peer, and of its options the timestamps, bytes; `None` before
/// the peer's SYN is there.
fn mss_in_use(connection: Option<&Connection<'_>>) -> Option<(u16, u16)> {
    let connection = connection?;
    let is_told = !matches!(
        connection.state(),
        State::Closed | State::Listen | State::SynSent
    );
    let stamps = if connection.agreed().timestamps {
        12
    } else {
        0
    };
    is_told.then(|| (connection.telemetry().smss_bytes, stamps))
}

/// The value of an option.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionValue {
    /// An `int`.
    Number(i64),
    /// `struct linger`.
    Linger(bool, u32),
}

impl Host<'_> {
    /// Sets an option, by its name in C.
    ///
    /// # Errors
    /// [`Fail::Errno`]: `ENOPROTOOPT` for an option that this stack does not have.
    pub fn set_option(&mut self, fd: i32, name: &str, value: OptionValue) -> Result<(), Fail> {
        let file = self.files.get_mut(&fd).ok_or(Errno::EBADF)?;
        if matches!(file.kind, Kind::Epoll(_) | Kind::Pipe(_)) {
            return Err(Errno::ENOTSOCK.into());
        }
        let freebsd = self.settings.lender() == Profile::FreeBsd;
        let linger = match value {
            OptionValue::Linger(on, seconds) => Some(on.then_some(seconds)),
            OptionValue::Number(_) => None,
        };
        let number = match value {
            OptionValue::Number(number) => number,
            OptionValue::Linger(..) => 0,
        };
        let apply = |options: &mut SocketOptions| -> Result<(), Errno> {
            let positive = |max: i64| match number {
                1.. if number <= max => Ok(number),
                _ => Err(Errno::EINVAL),
            };
            match name {
                "SO_REUSEADDR" | "SO_REUSEPORT" | "IPV6_V6ONLY" | "SO_TIMESTAMP" => {}
                "SO_RCVBUF" => options.recv_space = positive(1 << 24)? as u32,
                "SO_SNDBUF" => options.send_space = positive(1 << 24)? as u32,
                "SO_KEEPALIVE" => options.keepalive = number != 0,
                "SO_LINGER" => options.linger = linger.ok_or(Errno::EINVAL)?,
                "TCP_NODELAY" => options.nodelay = number != 0,
                "TCP_MAXSEG" => options.mss_max = Some(positive(65_535)? as u16),
                "TCP_NOOPT" if freebsd => options.no_options = number != 0,
                "TCP_KEEPIDLE" => options.keepalive_times.0 = positive(65_535)? as u16,
                "TCP_KEEPINTVL" => options.keepalive_times.1 = positive(65_535)? as u16,
                "TCP_KEEPCNT" => options.keepalive_times.2 = positive(255)? as u8,
                "TCP_KEEPINIT" => options.connect_timeout_ms = positive(4_000_000)? as u32 * 1000,
                "TCP_USER_TIMEOUT" => options.user_timeout_ms = number.max(0) as u32,
                "IPV6_UNICAST_HOPS" | "IP_TTL" => {
                    options.hop_limit = match number {
                        -1 => HOP_LIMIT,
                        _ => positive(255)? as u8,
                    };
                }
                "IPV6_TCLASS" | "IP_TOS" => {
                    options.traffic_class = u8::try_from(number).map_err(|_| Errno::EINVAL)?;
                }
                _ => return Err(Errno::ENOPROTOOPT),
            }
            Ok(())
        };
        apply(&mut file.options)?;
        let mut handles = Vec::new();
        match &mut file.kind {
            Kind::Connected(stream) => {
                apply(&mut stream.options)?;
                handles.push((stream.handle, stream.options.clone(), stream.opening));
            }
            Kind::Listening { waiting, .. } => {
                for stream in waiting {
                    apply(&mut stream.options)?;
                    handles.push((stream.handle, stream.options.clone(), stream.opening));
                }
            }
            Kind::Fresh | Kind::Epoll(_) | Kind::Pipe(_) => {}
        }
        for (handle, options, opening) in handles {
            let config = self.config(&options, opening);
            self.tcp.set_config(handle, config, self.now);
        }
        self.pump();
        Ok(())
    }

    /// Reads an option, by its name in C.
    ///
    /// # Errors
    /// As [`Self::set_option`].
    pub fn option(&mut self, fd: i32, name: &str) -> Result<OptionValue, Fail> {
        let file = self.files.get_mut(&fd).ok_or(Errno::EBADF)?;
        let freebsd = self.settings.lender() == Profile::FreeBsd;
        let (options, recv_space) = match &file.kind {
            Kind::Connected(stream) => (&stream.options, stream.recv_space),
            Kind::Epoll(_) | Kind::Pipe(_) => return Err(Errno::ENOTSOCK.into()),
            _ => (&file.options, file.options.recv_space),
        };
        let number = match name {
            "SO_ERROR" => {
                return Ok(OptionValue::Number(match self.take_error(fd)? {
                    Some(errno) => i64::from(errno.0),
                    None => 0,
                }));
            }
            "SO_LINGER" => {
                let linger = options.linger;
                return Ok(OptionValue::Linger(linger.is_some(), linger.unwrap_or(0)));
            }
            "SO_TYPE" => 1,
            "SO_ACCEPTCONN" => i64::from(matches!(file.kind, Kind::Listening { .. })),
            "SO_REUSEADDR" => 1,
            "SO_RCVBUF" => i64::from(recv_space),
            "SO_SNDBUF" => i64::from(options.send_space),
            // FreeBSD gives back the option's own bit.
            "SO_KEEPALIVE" => i64::from(options.keepalive) * if freebsd { 8 } else { 1 },
            "TCP_NODELAY" => i64::from(options.nodelay) * if freebsd { 4 } else { 1 },
            "TCP_MAXSEG" => {
                let smss = self.settings.config.smss;
                let asked = options.mss_max.unwrap_or(smss).min(smss);
                let in_use = match &file.kind {
                    Kind::Connected(stream) => mss_in_use(self.tcp.connection(stream.handle)),
                    _ => None,
                };
                // FreeBSD does not count the timestamps.
                i64::from(match (in_use, self.settings.lender()) {
                    (Some((payload, stamps)), Profile::FreeBsd) => payload + stamps,
                    (Some((payload, _)), _) => payload,
                    (None, Profile::Motet) => asked,
                    // Both systems report the value for IPv4; Linux the one that was set, if one
                    // was.
                    (None, Profile::Linux) => options.mss_max.unwrap_or(MSS_UNCONNECTED),
                    (None, _) => MSS_UNCONNECTED,
                })
            }
            "TCP_KEEPIDLE" => i64::from(options.keepalive_times.0),
            "TCP_KEEPINTVL" => i64::from(options.keepalive_times.1),
            "TCP_KEEPCNT" => i64::from(options.keepalive_times.2),
            "TCP_KEEPINIT" => i64::from(options.connect_timeout_ms / 1000),
            "TCP_USER_TIMEOUT" => i64::from(options.user_timeout_ms),
            "IPV6_UNICAST_HOPS" | "IP_TTL" => i64::from(options.hop_limit),
            "IPV6_TCLASS" | "IP_TOS" => i64::from(options.traffic_class),
            _ => return Err(Errno::ENOPROTOOPT.into()),
        };
        Ok(OptionValue::Number(number))
    }
}
