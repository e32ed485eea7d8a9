//! The settings of one node, given before it starts.

use core::net::Ipv6Addr;

use embassy_time::Duration;
#[cfg(feature = "mesh")]
use motet::link::MeshConfig;
#[cfg(feature = "mesh")]
use motet::mac;
use motet::{ip, tcp};

/// Settings of a mote of a mesh.
///
/// [`Self::mesh`] gives values for all of them; change what is to differ.
#[cfg(feature = "mesh")]
#[derive(Clone, Debug)]
pub struct Config {
    /// Settings of the MAC; its EUI-64 is replaced by the one given to [`new`](crate::new).
    pub mac: mac::Config,
    /// Settings of the link above the MAC.
    pub mesh: MeshConfig,
    /// Settings of all above the link. To pass packets on (`stack.ip`) takes the feature `router`,
    /// which is on by default.
    pub stack: StackConfig,
}

#[cfg(feature = "mesh")]
impl Config {
    /// A leaf of the PAN `pan`: it passes no packets on.
    pub fn mesh(pan: u16) -> Self {
        Self {
            mac: mac::Config::new(pan, [0; 8]),
            mesh: MeshConfig::default(),
            stack: StackConfig::frames(),
        }
    }
}

/// Settings of what is above a node's link: IP, TCP, names, and how long sockets wait.
#[derive(Clone, Debug)]
pub struct StackConfig {
    /// Settings of IP. A node above another stack passes nothing on.
    pub ip: ip::Config,
    /// Settings of every connection. Its `accept_window` is replaced by what the buffers of the
    /// node's resources hold.
    pub tcp: tcp::Config,
    /// How long `connect` waits for the peer.
    pub connect_timeout: Duration,
    /// How long `connect` waits for a connection to become free, as those of dropped sockets do
    /// once their bytes have arrived.
    pub slot_timeout: Duration,
    /// Names that are known without asking; letters match in either case.
    pub names: &'static [(&'static str, Ipv6Addr)],
    /// The DNS server that is asked for other names, at port 53; `None`: names that are not listed
    /// do not resolve.
    pub resolver: Option<Ipv6Addr>,
    /// How long a resolver is given for an answer; it is asked three times.
    pub resolve_timeout: Duration,
}

impl StackConfig {
    /// For a link of frames, as a mesh is.
    ///
    /// Unlike [`tcp::Config::DEFAULT`], an answer goes out without waiting for more to send, a peer
    /// that is gone is noticed within two minutes, and a connection without progress ends after
    /// one: a slot of a device is worth more than the rare peer that comes back.
    pub fn frames() -> Self {
        Self {
            ip: ip::Config::default(),
            tcp: tcp::Config {
                nagle: false,
                keepalive_idle_s: 90,
                keepalive_interval_s: 10,
                keepalive_probes: 3,
                user_timeout_ms: 60_000,
                close_timeout_ms: 60_000,
                ..tcp::Config::DEFAULT
            },
            connect_timeout: Duration::from_secs(30),
            slot_timeout: Duration::from_secs(5),
            names: &[],
            resolver: None,
            resolve_timeout: Duration::from_secs(3),
        }
    }

    /// For whole packets above another stack. Beside [`Self::frames`]: time stamps would take 1 %
    /// of a slow link and are off; behind a gap two segments are acknowledged one by one, because
    /// each ACK takes the time of a part of the peer's next segment; and cwnd grows by two segments
    /// for an ACK that stands for two (RFC 3465). Measured by `cargo xtask interop over`.
    pub fn packets() -> Self {
        let mut config = Self::frames();
        config.tcp.timestamps = false;
        config.tcp.quick_acks = 2;
        config.tcp.slow_start_segments_max = 2;
        config
    }
}
