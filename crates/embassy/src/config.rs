//! The settings of one mote, given before it starts.

use core::net::Ipv6Addr;

use embassy_time::Duration;
use motet::link::MeshConfig;
use motet::{ip, mac, tcp};

use crate::parts::SOCKETS;

/// Settings of a mote and of its sockets.
///
/// [`Self::mesh`] gives values for all of them; change what is to differ.
#[derive(Clone, Debug)]
pub struct Config {
    /// Settings of the MAC; its EUI-64 is replaced by the one given to [`new`](crate::new).
    pub mac: mac::Config,
    /// Settings of the link above the MAC.
    pub mesh: MeshConfig,
    /// Settings of IP. To pass packets on takes the feature `router`, which is on by default.
    pub ip: ip::Config,
    /// Settings of every connection. Its `accept_window` is replaced by what the buffers of the
    /// [`Resources`](crate::Resources) hold.
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

impl Config {
    /// A leaf of the PAN `pan`: it passes no packets on.
    ///
    /// Unlike [`tcp::Config::DEFAULT`], an answer goes out without waiting for more to send, a peer
    /// that is gone is noticed within two minutes, and a connection without progress ends after
    /// one: a slot of a device is worth more than the rare peer that comes back.
    pub fn mesh(pan: u16) -> Self {
        Self {
            mac: mac::Config::new(pan, [0; 8]),
            mesh: MeshConfig::default(),
            ip: ip::Config::default(),
            tcp: SOCKETS,
            connect_timeout: Duration::from_secs(30),
            slot_timeout: Duration::from_secs(5),
            names: &[],
            resolver: None,
            resolve_timeout: Duration::from_secs(3),
        }
    }
}
