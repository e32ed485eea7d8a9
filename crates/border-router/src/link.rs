//! The two kinds of link to the kernel: how each is opened.
//!
//! TUN carries packets as they are. A veth pair carries Ethernet frames: the kernel's end has the
//! address, a packet socket sits on the other end, and the kernel strips and adds the Ethernet
//! header there (`SOCK_DGRAM`, packet(7)). Neighbour discovery is off, so the kernel sends its
//! frames to the host end's own address. IPv6 at the far end would ignore frames with that
//! address, but it is off. Frames towards the kernel carry the same address.

use std::{
    ffi::c_char,
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    mem,
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd},
        unix::fs::OpenOptionsExt,
    },
};

use nix::{
    libc,
    net::if_::if_nametoindex,
    sys::socket::{LinkAddr, MsgFlags, SockaddrLike, bind, recv, sendto},
};

use crate::netlink::{Netlink, VethEnd};

/// A TUN interface: the descriptor is the interface; closing it deletes it.
pub(crate) struct Tun {
    file: File,
}

impl Tun {
    /// Makes TUN interface `name`, down.
    pub(crate) fn open(name: &str) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open("/dev/net/tun")?;
        let mut request = interface_request(name)?;
        // Both constants fit: 0x1001.
        request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as i16;
        // SAFETY: the descriptor is open, and TUNSETIFF reads and writes one
        // `ifreq`, which `request` is and stays for the whole call.
        unsafe { ioctl::tun_set_iff(file.as_raw_fd(), &raw mut request) }?;
        Ok(Self { file })
    }

    pub(crate) fn recv(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.file.read(buf)
    }

    pub(crate) fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        self.file.write(packet).map(drop)
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// A veth pair with a packet socket on the end that is ours. Deleted on drop.
pub(crate) struct Veth {
    socket: OwnedFd,
    /// The host end's address on our end's interface: where packets are sent to.
    to_host: LinkAddr,
    /// Opened in the pair's own namespace, and so usable from any thread.
    netlink: Netlink,
    index: u32,
}

impl Veth {
    /// Makes a pair whose host end is `name`, down; our own end is up.
    pub(crate) fn open(name: &str, mtu: u32) -> io::Result<Self> {
        let port_name = port_end_name(name);
        let netlink = Netlink::open()?;
        let host = VethEnd {
            name,
            mac: HOST_MAC,
        };
        let port = VethEnd {
            name: &port_name,
            mac: PORT_MAC,
        };
        netlink.create_veth(host, port, mtu)?;
        let (index, port_index) = (index_of(name)?, index_of(&port_name)?);
        let to_host = link_address(port_index, HOST_MAC)?;
        let link = Self {
            socket: packet_socket()?,
            to_host,
            netlink,
            index,
        };
        link.prepare(name, &port_name, port_index)?;
        Ok(link)
    }

    fn prepare(&self, host_name: &str, port_name: &str, port_index: u32) -> io::Result<()> {
        self.netlink.no_link_local_address(port_index)?;
        // Failing is not fatal where a container mounts /proc/sys read-only: the far end has no
        // address, and its IPv6 sees that all frames carry another host's address.
        let switch = format!("/proc/sys/net/ipv6/conf/{port_name}/disable_ipv6");
        let _ = fs::write(switch, "1");
        // The far end is our own parser: it wants checksums filled in, and
        // packets no larger than the MTU.
        for feature in [
            ethtool::SET_TX_CHECKSUM,
            ethtool::SET_TSO,
            ethtool::SET_GSO,
            ethtool::SET_GRO,
        ] {
            ethtool::switch_off(self.socket.as_fd(), host_name, feature)?;
        }
        // Up before bound: binding to an interface that is down leaves ENETDOWN to
        // be read.
        self.netlink.set_up(port_index)?;
        let here = link_address(port_index, PORT_MAC)?;
        Ok(bind(self.socket.as_raw_fd(), &here)?)
    }

    pub(crate) fn recv(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        Ok(recv(self.socket.as_raw_fd(), buf, MsgFlags::MSG_DONTWAIT)?)
    }

    pub(crate) fn send(&mut self, packet: &[u8]) -> io::Result<()> {
        sendto(
            self.socket.as_raw_fd(),
            packet,
            &self.to_host,
            MsgFlags::MSG_DONTWAIT,
        )?;
        Ok(())
    }

    pub(crate) fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Veth {
    fn drop(&mut self) {
        // A drop can report no error, and the pair ends with its namespace in any case.
        let _ = self.netlink.delete_link(self.index);
    }
}

pub(crate) fn index_of(name: &str) -> io::Result<u32> {
    Ok(if_nametoindex(name)?)
}

/// The longest interface name, in bytes, that leaves room for the port end's.
pub(crate) const NAME_LEN_MAX: usize = libc::IFNAMSIZ - 1 - PORT_SUFFIX.len();

const PORT_SUFFIX: &str = "-port";

/// Locally administered, made up: the pair never meets another network.
const HOST_MAC: [u8; 6] = [0x02, 0x6d, 0x6f, 0x74, 0x65, 0x01];
const PORT_MAC: [u8; 6] = [0x02, 0x6d, 0x6f, 0x74, 0x65, 0x02];

fn port_end_name(name: &str) -> String {
    format!("{name}{PORT_SUFFIX}")
}

/// A packet socket that receives nothing until it is bound to an interface.
fn packet_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers are passed; the result is checked below. nix has no
    // name for "no protocol yet", which is what keeps other links' packets out.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` was just made and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The socket address of `mac` on interface `index`, for IPv6 packets.
///
/// A socket bound to one protocol, other than to all of them, never sees what
/// leaves through its interface, its own packets included.
fn link_address(index: u32, mac: [u8; 6]) -> io::Result<LinkAddr> {
    // SAFETY: an all-zero `sockaddr_ll` is a valid value of that plain C struct.
    let mut address: libc::sockaddr_ll = unsafe { mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_IPV6 as u16).to_be();
    address.sll_ifindex = index.try_into().map_err(io::Error::other)?;
    address.sll_halen = mac.len() as u8;
    for (to, from) in address.sll_addr.iter_mut().zip(mac) {
        *to = from;
    }
    let len = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the pointer is to a live, initialized `sockaddr_ll` of length
    // `len`, which `from_raw` copies.
    unsafe { LinkAddr::from_raw((&raw const address).cast(), Some(len)) }
        .ok_or_else(|| io::Error::other("a link address was refused"))
}

/// An `ifreq` for interface `name`, all else zero.
fn interface_request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: an all-zero `ifreq` is a valid value of that plain C struct.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as c_char;
    }
    Ok(request)
}

mod ioctl {
    use std::ffi::c_int;

    use nix::libc;

    // `linux/if_tun.h` declares it with an int and takes an `ifreq`.
    nix::ioctl_readwrite_bad!(
        tun_set_iff,
        nix::request_code_write!(b'T', 202, size_of::<c_int>()),
        libc::ifreq
    );
    // `SIOCETHTOOL`, `linux/sockios.h`; libc names it on some targets only.
    nix::ioctl_readwrite_bad!(ethtool, 0x8946, libc::ifreq);
}

mod ethtool {
    use std::{
        io,
        os::fd::{AsRawFd, BorrowedFd},
    };

    // `linux/ethtool.h`.
    pub(super) const SET_TX_CHECKSUM: u32 = 0x17;
    pub(super) const SET_TSO: u32 = 0x1f;
    pub(super) const SET_GSO: u32 = 0x24;
    pub(super) const SET_GRO: u32 = 0x2c;

    /// `struct ethtool_value`.
    #[repr(C)]
    struct Value {
        command: u32,
        data: u32,
    }

    /// Any socket will do: the request names its interface.
    pub(super) fn switch_off(socket: BorrowedFd<'_>, name: &str, feature: u32) -> io::Result<()> {
        let mut value = Value {
            command: feature,
            data: 0,
        };
        let mut request = super::interface_request(name)?;
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        // SAFETY: the descriptor is open, `request` is one `ifreq`, and its data
        // pointer leads to a `struct ethtool_value`, which is what all commands
        // above read; both outlive the call.
        unsafe { super::ioctl::ethtool(socket.as_raw_fd(), &raw mut request) }?;
        Ok(())
    }
}
