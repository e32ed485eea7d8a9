//! A packet port to the kernel: whole IPv6 packets out and in.
//!
//! Place in the data flow: the wired interface of the border router's node. The
//! kernel's side is an interface with the host's address and a route into the
//! mesh; this side is a descriptor to poll, read and write, never blocking.
//!
//! Left out: neighbour discovery on this link (it is point to point), and any queue of our own: a
//! packet that the kernel cannot take is lost, as on any wire.
//!
//! Sources: packet(7), tuntap.rst, RFC 8200 section 3 (header), RFC 4861 and
//! RFC 3810 (what is filtered).

mod shared;

use std::{
    fmt, fs, io,
    net::{Ipv6Addr, UdpSocket},
    os::fd::{AsFd, BorrowedFd},
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    libc,
    poll::{PollFd, PollFlags, ppoll},
    sys::{prctl, time::TimeSpec},
};

use crate::{
    link::{NAME_LEN_MAX, Tun, Veth, index_of},
    namespace::Namespace,
    netlink::Netlink,
};

pub use shared::SharedNetwork;

/// The device that carries packets between the kernel and the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkKind {
    /// A TUN interface: needs access to /dev/net/tun.
    Tun,
    /// A veth pair and a packet socket: needs nothing but the namespace.
    Veth,
}

impl fmt::Display for LinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tun => "TUN",
            Self::Veth => "veth",
        })
    }
}

/// How the kernel's side of a port is set up.
#[derive(Clone, Copy, Debug)]
pub struct PortConfig<'a> {
    /// Name of the kernel's interface, at most 10 bytes.
    pub name: &'a str,
    /// The kernel's own address on it.
    pub host: Ipv6Addr,
    /// Length in bits of the prefix that is on this link: 1 to 127.
    pub host_prefix_len: u8,
    /// Further routes behind the port: prefixes and their lengths in bits.
    pub routes: &'a [(Ipv6Addr, u8)],
    /// Largest packet either way, in bytes; at least 1280 (RFC 8200 section 5).
    pub mtu: u16,
    /// `None`: TUN where it is open to us, else veth.
    pub link: Option<LinkKind>,
}

impl Default for PortConfig<'_> {
    /// `motet0`, fd6d:6f74:6574::1/64, no route, 1280 bytes, whichever link works.
    fn default() -> Self {
        Self {
            name: "motet0",
            host: Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 0, 0, 0, 0, 1),
            host_prefix_len: 64,
            routes: &[],
            mtu: MTU_MIN,
            link: None,
        }
    }
}

impl PortConfig<'_> {
    fn is_possible(&self) -> bool {
        (1..=NAME_LEN_MAX).contains(&self.name.len())
            && self.has_plain_name()
            && (1..=127).contains(&self.host_prefix_len)
            && self.mtu >= MTU_MIN
    }

    fn has_plain_name(&self) -> bool {
        !self.name.is_empty() && !self.name.contains(['/', ':', '%', '\0', ' '])
    }
}

/// Packets from the kernel that [`PacketPort::recv`] did not pass on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortDrops {
    /// Packets that are not IPv6.
    pub not_ipv6: u64,
    /// Packets shorter than their header states, or larger than the buffer of the call.
    pub truncated: u64,
    /// The kernel's own router solicitations and multicast listener reports.
    pub chatter: u64,
}

/// An open port. Its interface is deleted on drop, and by the end of the process.
pub struct PacketPort {
    device: Device,
    mtu: u16,
    drops: PortDrops,
}

enum Device {
    Tun(Tun),
    Veth(Veth),
}

impl PacketPort {
    /// Makes the kernel's interface, with address and routes, and brings it up.
    ///
    /// `namespace` is the proof that this is not the machine's own network.
    ///
    /// # Errors
    /// See [`PortError`].
    pub fn open(_namespace: &Namespace, config: &PortConfig<'_>) -> Result<Self, PortError> {
        if !config.is_possible() {
            return Err(PortError::BadConfig);
        }
        let device = open_device(config)?;
        configure(config).map_err(PortError::Configure)?;
        let neighbor = Ipv6Addr::from_bits(config.host.to_bits() ^ 1);
        Self::settled(device, config, neighbor)
    }

    /// As [`Self::open`], in the network that this process was started in: a TUN interface, to
    /// which `config.routes` lead.
    ///
    /// An interface that is there already must be a TUN interface made for this user, up, with the
    /// MTU and the routes of `config`: nothing is changed about it, and no capability is needed.
    /// One that is not there is made, which takes `CAP_NET_ADMIN`, and vanishes with the port.
    /// Nothing else of the network is changed.
    ///
    /// # Errors
    /// See [`PortError`].
    pub fn open_shared(_: SharedNetwork, config: &PortConfig<'_>) -> Result<Self, PortError> {
        // No room for the name of a second end is needed.
        let is_name = config.name.len() < libc::IFNAMSIZ && config.has_plain_name();
        if !is_name || !(1..=128).contains(&config.host_prefix_len) || config.mtu < MTU_MIN {
            return Err(PortError::BadConfig);
        }
        let was_there = index_of(config.name).is_ok();
        let refused = |error| PortError::NotOurs {
            error,
            name: config.name.to_owned(),
            preparation: shared::preparation(config),
        };
        let device = Tun::open(config.name).map(Device::Tun).map_err(refused)?;
        if was_there {
            let missing = shared::missing(config).map_err(PortError::Configure)?;
            if !missing.is_empty() {
                return Err(PortError::NotPrepared {
                    missing: missing.join(" and "),
                    preparation: shared::preparation(config),
                });
            }
            return Ok(Self {
                device,
                mtu: config.mtu,
                drops: PortDrops::default(),
            });
        }
        configure(config).map_err(|error| match error.raw_os_error() {
            Some(libc::EEXIST) => PortError::RouteTaken,
            _ => PortError::Configure(error),
        })?;
        let route = config.routes.first().map(|(prefix, _)| *prefix);
        let neighbor = Ipv6Addr::from_bits(route.unwrap_or(config.host).to_bits() ^ 1);
        Self::settled(device, config, neighbor)
    }

    /// The port of `device`, once packets pass from the host to `neighbor` and back.
    fn settled(
        device: Device,
        config: &PortConfig<'_>,
        neighbor: Ipv6Addr,
    ) -> Result<Self, PortError> {
        let mut port = Self {
            device,
            mtu: config.mtu,
            drops: PortDrops::default(),
        };
        match port.settle(config.host, neighbor) {
            Ok(true) => Ok(port),
            Ok(false) => Err(PortError::Silent),
            Err(error) => Err(PortError::Configure(error)),
        }
    }

    /// Takes the next packet from the kernel, if there is one.
    ///
    /// `buf`: at least the MTU. Returns the packet's length: a complete IPv6 packet, header first,
    /// without padding. It also returns `None` after it has discarded [`RECV_DROPS_MAX`] packets:
    /// call it again.
    ///
    /// The error of the descriptor: for example `ENETDOWN`, when another process takes the
    /// interface down.
    pub fn recv(&mut self, buf: &mut [u8]) -> io::Result<Option<usize>> {
        for _ in 0..RECV_DROPS_MAX {
            let received = match &mut self.device {
                Device::Tun(tun) => tun.recv(buf),
                Device::Veth(veth) => veth.recv(buf),
            };
            let len = match received {
                Ok(len) => len,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            match classify(buf.get(..len).unwrap_or_default()) {
                Arrival::Packet { len } => return Ok(Some(len)),
                Arrival::NotIpv6 => self.drops.not_ipv6 += 1,
                Arrival::Truncated => self.drops.truncated += 1,
                Arrival::Chatter { .. } => self.drops.chatter += 1,
            }
        }
        Ok(None)
    }

    /// Gives the kernel one whole IPv6 packet.
    ///
    /// # Errors
    /// `InvalidInput` if it is no IPv6 packet of at most the MTU; else what the
    /// descriptor reports. `WouldBlock` and `ENOBUFS` mean that this packet is
    /// lost, as on a full wire; the next may pass.
    pub fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        let is_whole = matches!(
            classify(packet),
            Arrival::Packet { len } | Arrival::Chatter { len } if len == packet.len()
        );
        if !is_whole || packet.len() > usize::from(self.mtu) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "not one whole IPv6 packet within the MTU",
            ));
        }
        match &mut self.device {
            Device::Tun(tun) => tun.send(packet),
            Device::Veth(veth) => veth.send(packet),
        }
    }

    /// Sleeps until a packet is there or `timeout` has passed; `None` is for ever.
    ///
    /// Returns whether there is something to `recv`. A signal ends the wait early with `false`:
    /// check the flag that the signal's handler sets. [`precise_timers`] says how late the wake-up
    /// may be.
    ///
    /// # Errors
    /// What ppoll(2) reports, except `EINTR`.
    pub fn wait(&self, timeout: Option<Duration>) -> io::Result<bool> {
        let mut fds = [PollFd::new(self.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut fds, timeout.map(TimeSpec::from_duration), None) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::EINTR) => Ok(false),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Which kind of link was opened.
    pub fn kind(&self) -> LinkKind {
        match self.device {
            Device::Tun(_) => LinkKind::Tun,
            Device::Veth(_) => LinkKind::Veth,
        }
    }

    /// Largest packet either way, in bytes.
    pub fn mtu(&self) -> u16 {
        self.mtu
    }

    /// Packets that `recv` has not passed on so far, by reason.
    pub fn drops(&self) -> PortDrops {
        self.drops
    }
}

/// The last step of opening a port.
impl PacketPort {
    /// Waits until the link carries packets both ways; returns whether it does.
    ///
    /// The kernel finishes two things in workers of its own, after netlink has
    /// acknowledged them: the route that makes the host's address local, and, of
    /// the end of a veth pair that came up first, the queue that sends. Packets
    /// until then are lost without a trace, and a SYN lost costs a second. So one
    /// of the kernel's datagrams is reflected until it comes back.
    fn settle(&mut self, host: Ipv6Addr, neighbor: Ipv6Addr) -> io::Result<bool> {
        let socket = UdpSocket::bind((host, 0))?;
        socket.connect((neighbor, DISCARD_PORT))?;
        socket.set_read_timeout(Some(SETTLE_ROUND))?;
        let mut buf = vec![0; self.mtu.into()];
        let give_up = Instant::now() + SETTLE_MAX;
        while Instant::now() < give_up {
            // Refusals here mean the same as silence: not yet.
            let _ = socket.send(&[]);
            self.wait(Some(SETTLE_ROUND))?;
            while let Some(len) = self.recv(&mut buf)? {
                if let Some(packet) = buf.get_mut(..len).and_then(reflect) {
                    let _ = self.send(packet);
                }
            }
            // Sleeps for a round unless the datagram is back.
            if socket.recv(&mut []).is_ok() {
                self.drops = PortDrops::default();
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Turns a UDP datagram round: addresses and ports swapped, which leaves its
/// checksum right. `None` for anything else.
fn reflect(packet: &mut [u8]) -> Option<&[u8]> {
    const NEXT_HEADER_UDP: u8 = 17;
    let (header, datagram) = packet.split_first_chunk_mut::<IPV6_HEADER_LEN>()?;
    if header[6] != NEXT_HEADER_UDP {
        return None;
    }
    let (source, destination) = header[8..].split_at_mut(16);
    source.swap_with_slice(destination);
    let ports = datagram.first_chunk_mut::<4>()?;
    ports.rotate_left(2);
    Some(packet)
}

/// The descriptor, for a poll of several: readable when there is a packet.
impl AsFd for PacketPort {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.device {
            Device::Tun(tun) => tun.as_fd(),
            Device::Veth(veth) => veth.as_fd(),
        }
    }
}

impl fmt::Debug for PacketPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketPort")
            .field("kind", &self.kind())
            .field("mtu", &self.mtu)
            .field("drops", &self.drops)
            .finish()
    }
}

/// Makes the kernel wake this thread at the requested moment, not up to 50 µs later.
///
/// Linux lets every timer of a thread be 50 µs late, to wake the processor less
/// often; that is a sixth of an 802.15.4 backoff period. Call it once in the
/// thread that calls [`PacketPort::wait`]; threads and children started later
/// inherit it.
///
/// # Errors
/// What prctl(2) reports.
pub fn precise_timers() -> io::Result<()> {
    /// Zero would restore the default.
    const SLACK_NS: u64 = 1;
    Ok(prctl::set_timerslack(SLACK_NS)?)
}

fn open_device(config: &PortConfig<'_>) -> Result<Device, PortError> {
    let tun = || Tun::open(config.name).map(Device::Tun);
    let veth = || Veth::open(config.name, config.mtu.into()).map(Device::Veth);
    match config.link {
        Some(LinkKind::Tun) => tun().map_err(PortError::Tun),
        Some(LinkKind::Veth) => veth().map_err(PortError::Veth),
        None => tun().or_else(|tun| veth().map_err(|veth| PortError::NoLink { tun, veth })),
    }
}

fn configure(config: &PortConfig<'_>) -> io::Result<()> {
    let netlink = Netlink::open()?;
    let index = index_of(config.name)?;
    // Enables IPv6 on the interface, for machines whose new interfaces start without it. A failed
    // write is ignored: IPv6 is usually on already, and if it is not, adding the address fails
    // below.
    let switch = format!("/proc/sys/net/ipv6/conf/{}/disable_ipv6", config.name);
    let _ = fs::write(switch, "0");
    netlink.set_mtu(index, config.mtu.into())?;
    netlink.set_up(index)?;
    netlink.add_address(index, config.host, config.host_prefix_len)?;
    for (prefix, prefix_len) in config.routes {
        netlink.add_route(index, *prefix, *prefix_len)?;
    }
    Ok(())
}

/// Why there is no port. `Display` is one sentence for the user.
#[derive(Debug)]
pub enum PortError {
    /// A name that is empty, too long or no interface name, an MTU below 1280, or
    /// a prefix with no room for a second address.
    BadConfig,
    /// A TUN device was requested and refused.
    Tun(io::Error),
    /// A veth pair was requested and refused.
    Veth(io::Error),
    /// Neither kind of link could be opened.
    NoLink {
        /// The error of opening TUN.
        tun: io::Error,
        /// The error of making a veth pair.
        veth: io::Error,
    },
    /// The link is there but would not take its address or routes.
    Configure(io::Error),
    /// All is set up, yet no packet passes.
    Silent,
    /// The TUN interface of a shared network belongs to others, or may not be made.
    NotOurs {
        /// The kernel's error.
        error: io::Error,
        /// The interface's name.
        name: String,
        /// The commands that make it for this user.
        preparation: String,
    },
    /// The TUN interface that is there is not ready, and is not changed.
    NotPrepared {
        /// The property that the interface lacks, as a clause.
        missing: String,
        /// The commands that make it for this user.
        preparation: String,
    },
    /// The prefix of a shared network has a route already.
    RouteTaken,
}

impl fmt::Display for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadConfig => write!(
                f,
                "a port needs an interface name of 1 to {NAME_LEN_MAX} bytes, an MTU of at least {MTU_MIN} bytes and a prefix of 1 to 127 bits"
            ),
            Self::Tun(error) => write!(
                f,
                "cannot open a TUN interface ({error}): load the module tun and allow access to /dev/net/tun"
            ),
            Self::Veth(error) => write!(
                f,
                "cannot open a veth pair ({error}): load the modules veth and af_packet"
            ),
            Self::NoLink { tun, veth } => write!(
                f,
                "cannot open a link to the kernel (TUN: {tun}; veth: {veth}): allow access to /dev/net/tun or load the modules veth and af_packet"
            ),
            Self::Configure(error) => write!(
                f,
                "cannot set up the link to the kernel ({error}): check that IPv6 is enabled (ipv6.disable=0)"
            ),
            Self::NotOurs {
                error,
                name,
                preparation,
            } => match error.raw_os_error() {
                Some(libc::EBUSY) => write!(
                    f,
                    "another program uses the interface {name}: end it, or choose another name"
                ),
                Some(libc::EINVAL) => write!(
                    f,
                    "there is an interface {name} that is no TUN interface: choose another name"
                ),
                Some(libc::EPERM | libc::EACCES) => write!(
                    f,
                    "this user may not use a TUN interface {name}: as root, `{preparation}`"
                ),
                _ => write!(
                    f,
                    "cannot open the TUN interface {name} ({error}): load the module tun and allow access to /dev/net/tun"
                ),
            },
            Self::NotPrepared {
                missing,
                preparation,
            } => write!(
                f,
                "the interface {missing}, and is not changed because it was there: as root, `{preparation}`"
            ),
            Self::RouteTaken => f.write_str(
                "the mesh's prefix or the host's address has a route already: choose another prefix",
            ),
            Self::Silent => f.write_str(
                "the link to the kernel is set up but carries no packets: check for packet filters in new namespaces"
            ),
        }
    }
}

impl std::error::Error for PortError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::BadConfig | Self::Silent | Self::NotPrepared { .. } | Self::RouteTaken => None,
            Self::Tun(error)
            | Self::Veth(error)
            | Self::Configure(error)
            | Self::NotOurs { error, .. } => Some(error),
            Self::NoLink { veth, .. } => Some(veth),
        }
    }
}

/// An arrival on a link.
#[derive(Debug, PartialEq, Eq)]
enum Arrival {
    /// An IPv6 packet of `len` bytes, perhaps followed by padding.
    Packet {
        len: usize,
    },
    /// A packet that the kernel sends on its own account, of no use to a mesh.
    Chatter {
        len: usize,
    },
    NotIpv6,
    Truncated,
}

/// Looks at the fixed IPv6 header only (RFC 8200 section 3).
fn classify(bytes: &[u8]) -> Arrival {
    if bytes.first().is_none_or(|byte| byte >> 4 != 6) {
        return Arrival::NotIpv6;
    }
    let Some(header) = bytes.first_chunk::<IPV6_HEADER_LEN>() else {
        return Arrival::Truncated;
    };
    let len = IPV6_HEADER_LEN + usize::from(u16::from_be_bytes([header[4], header[5]]));
    if bytes.len() < len {
        return Arrival::Truncated;
    }
    let destination: &[u8] = &header[24..];
    if destination == ALL_ROUTERS.octets() || destination == MLDV2_ROUTERS.octets() {
        Arrival::Chatter { len }
    } else {
        Arrival::Packet { len }
    }
}

/// How many unwanted packets one `recv` reads past before it returns.
pub const RECV_DROPS_MAX: usize = 16;

/// How long opening looks for the first packet: twice what Linux may put off a
/// link's activation (`linkwatch_schedule_work`); milliseconds as a rule.
const SETTLE_MAX: Duration = Duration::from_secs(2);
const SETTLE_ROUND: Duration = Duration::from_millis(1);

/// The port of RFC 863. No program listens there: the datagrams go no further than this port.
const DISCARD_PORT: u16 = 9;

/// The smallest MTU that IPv6 allows, in bytes (RFC 8200 section 5).
const MTU_MIN: u16 = 1280;

const IPV6_HEADER_LEN: usize = 40;

/// Where router solicitations go (RFC 4861 section 4.1).
const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);

/// Where multicast listener reports go (RFC 3810 section 5.2.14).
const MLDV2_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16);

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(destination: &str, payload_len: u16, carried: usize) -> Vec<u8> {
        let mut bytes = vec![0; IPV6_HEADER_LEN + carried];
        bytes[0] = 0x60;
        bytes[4..6].copy_from_slice(&payload_len.to_be_bytes());
        let destination: Ipv6Addr = destination.parse().expect("an address");
        bytes[24..40].copy_from_slice(&destination.octets());
        bytes
    }

    #[test]
    fn only_whole_ipv6_packets_for_the_mesh_pass() {
        let mut ipv4 = packet("fd00::1", 8, 8);
        ipv4[0] = 0x45;
        let cases = [
            ("empty", vec![], Arrival::NotIpv6),
            ("IPv4", ipv4, Arrival::NotIpv6),
            ("version only", vec![0x60], Arrival::Truncated),
            (
                "one byte short of a header",
                packet("fd00::1", 0, 0)[..39].to_vec(),
                Arrival::Truncated,
            ),
            (
                "header alone",
                packet("fd00::1", 0, 0),
                Arrival::Packet { len: 40 },
            ),
            (
                "one byte short",
                packet("fd00::1", 9, 8),
                Arrival::Truncated,
            ),
            (
                "exact",
                packet("fd00::1", 8, 8),
                Arrival::Packet { len: 48 },
            ),
            (
                "padded",
                packet("fd00::1", 8, 14),
                Arrival::Packet { len: 48 },
            ),
            (
                "largest length",
                packet("fd00::1", 0xffff, 8),
                Arrival::Truncated,
            ),
            (
                "router solicitation",
                packet("ff02::2", 8, 8),
                Arrival::Chatter { len: 48 },
            ),
            (
                "listener report",
                packet("ff02::16", 8, 8),
                Arrival::Chatter { len: 48 },
            ),
            (
                "all nodes",
                packet("ff02::1", 8, 8),
                Arrival::Packet { len: 48 },
            ),
            (
                "all routers of the realm",
                packet("ff03::2", 8, 8),
                Arrival::Packet { len: 48 },
            ),
        ];
        for (name, bytes, expected) in cases {
            assert_eq!(classify(&bytes), expected, "{name}");
        }
    }

    #[test]
    fn only_udp_is_reflected() {
        let mut bytes = packet("fd00::1", 12, 12);
        bytes[6] = 17;
        bytes[8..24].copy_from_slice(&[0xaa; 16]);
        bytes[40..44].copy_from_slice(&[1, 2, 3, 4]);
        let turned = reflect(&mut bytes).expect("a UDP datagram");
        assert_eq!(turned[24..40], [0xaa; 16]);
        assert_eq!(turned[40..44], [3, 4, 1, 2]);
        let back = reflect(&mut bytes).expect("a UDP datagram").to_vec();
        assert_eq!(back[8..24], [0xaa; 16]);
        let mut cut = packet("fd00::1", 3, 3);
        cut[6] = 17;
        assert_eq!(reflect(&mut cut), None, "no room for ports");
        assert_eq!(reflect(&mut packet("fd00::1", 12, 12)), None, "no UDP");
        assert_eq!(reflect(&mut []), None);
    }
}
