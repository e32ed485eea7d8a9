//! The few rtnetlink requests that set up one link.
//!
//! Each request asks for an acknowledgement and waits for it, so an error
//! belongs to its request.
//!
//! Sources: netlink(7), rtnetlink(7).

use std::{
    io,
    net::Ipv6Addr,
    os::fd::{AsRawFd, OwnedFd},
};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::{
    AddressFamily, RouteNetlinkMessage,
    address::{AddressAttribute, AddressHeaderFlags, AddressMessage, AddressScope},
    link::{
        AfSpecInet6, AfSpecUnspec, In6AddrGenMode, InfoData, InfoKind, InfoVeth, LinkAttribute,
        LinkFlags, LinkInfo, LinkMessage,
    },
    route::{
        RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope,
        RouteType,
    },
};
use nix::sys::socket::{
    AddressFamily as Family, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket,
};

/// One end of a veth pair.
#[derive(Clone, Copy)]
pub(crate) struct VethEnd<'a> {
    pub(crate) name: &'a str,
    pub(crate) mac: [u8; 6],
}

/// A route netlink socket. It stays in the network namespace it was opened in.
pub(crate) struct Netlink {
    socket: OwnedFd,
}

impl Netlink {
    pub(crate) fn open() -> io::Result<Self> {
        let socket = socket(
            Family::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::NetlinkRoute,
        )?;
        Ok(Self { socket })
    }

    pub(crate) fn set_up(&self, index: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        self.request(RouteNetlinkMessage::SetLink(link), 0)
    }

    pub(crate) fn set_mtu(&self, index: u32, mtu: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.attributes = vec![LinkAttribute::Mtu(mtu)];
        self.request(RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Makes a veth pair, both ends down and without neighbour discovery.
    pub(crate) fn create_veth(
        &self,
        host: VethEnd<'_>,
        port: VethEnd<'_>,
        mtu: u32,
    ) -> io::Result<()> {
        let mut link = end_of_veth(host, mtu);
        link.attributes.push(LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Veth),
            LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(end_of_veth(port, mtu)))),
        ]));
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.request(RouteNetlinkMessage::NewLink(link), flags)
    }

    /// Keeps a link that is still down from taking a link-local address.
    pub(crate) fn no_link_local_address(&self, index: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        let mode = AfSpecInet6::AddrGenMode(In6AddrGenMode::None);
        let ipv6 = AfSpecUnspec::Inet6(vec![mode]);
        link.attributes = vec![LinkAttribute::AfSpecUnspec(vec![ipv6])];
        self.request(RouteNetlinkMessage::SetLink(link), 0)
    }

    /// Deletes a link, and with one end of a veth pair the other.
    pub(crate) fn delete_link(&self, index: u32) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        self.request(RouteNetlinkMessage::DelLink(link), 0)
    }

    /// Adds an address that is usable at once: no duplicate address detection.
    pub(crate) fn add_address(
        &self,
        index: u32,
        address: Ipv6Addr,
        prefix_len: u8,
    ) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet6;
        message.header.prefix_len = prefix_len;
        message.header.flags = AddressHeaderFlags::Nodad;
        message.header.scope = AddressScope::Universe;
        message.header.index = index;
        message.attributes = vec![AddressAttribute::Address(address.into())];
        self.request(
            RouteNetlinkMessage::NewAddress(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }

    /// Adds a route to `prefix` straight out of the link: its far end takes all.
    pub(crate) fn add_route(&self, index: u32, prefix: Ipv6Addr, prefix_len: u8) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = AddressFamily::Inet6;
        message.header.destination_prefix_length = prefix_len;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Universe;
        message.header.kind = RouteType::Unicast;
        message.attributes = vec![
            RouteAttribute::Destination(RouteAddress::Inet6(prefix)),
            RouteAttribute::Oif(index),
        ];
        self.request(
            RouteNetlinkMessage::NewRoute(message),
            NLM_F_CREATE | NLM_F_EXCL,
        )
    }

    fn request(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        let mut request = NetlinkMessage::new(header, NetlinkPayload::InnerMessage(message));
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        send(self.socket.as_raw_fd(), &bytes, MsgFlags::empty())?;
        self.wait_for_ack()
    }

    /// Reads until the acknowledgement. None of the requests above has any other
    /// answer, and the socket has joined no group.
    fn wait_for_ack(&self) -> io::Result<()> {
        /// An acknowledgement quotes the request; ours are far smaller.
        const ANSWER_LEN_MAX: usize = 8192;
        let mut answer = vec![0; ANSWER_LEN_MAX];
        let len = loop {
            match recv(self.socket.as_raw_fd(), &mut answer, MsgFlags::empty()) {
                Err(nix::errno::Errno::EINTR) => {}
                other => break other?,
            }
        };
        let answer = answer.get(..len).unwrap_or_default();
        match NetlinkMessage::<RouteNetlinkMessage>::deserialize(answer).map(|m| m.payload) {
            Ok(NetlinkPayload::Error(error)) if error.code.is_none() => Ok(()),
            Ok(NetlinkPayload::Error(error)) => Err(error.to_io()),
            _ => Err(io::Error::other("unexpected answer from rtnetlink")),
        }
    }
}

fn end_of_veth(end: VethEnd<'_>, mtu: u32) -> LinkMessage {
    let mut link = LinkMessage::default();
    link.header.flags = LinkFlags::Noarp;
    link.header.change_mask = LinkFlags::Noarp;
    link.attributes = vec![
        LinkAttribute::IfName(end.name.to_owned()),
        LinkAttribute::Address(end.mac.to_vec()),
        LinkAttribute::Mtu(mtu),
    ];
    link
}
