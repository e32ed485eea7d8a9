//! Joining, the datagram layer: the handling of CoJP datagrams, by the node's role.
//!
//! ```text
//! a hop in clear                          mac/secured         frame
//!                                         link/mesh/joining   packet
//!                                         node/joining        datagram
//!   join proxy: on to the JRC or back to the pledge, as any datagram or over the other hop
//!   pledge, JRC: it waits for the application, which calls `join::exchange`
//! ```
//!
//! Purpose: the only place that decides what to do with such a datagram. Place: the last of the
//! three files that a datagram passes. Datagrams from or to nodes with the key, beyond the
//! unsecured hop, are received and sent like any others ([`Node::send_datagram`]). Left out: the
//! contents of the datagrams, which are [`crate::join`]'s. Source: RFC 9031 §5 to §7.

use core::net::Ipv6Addr;

use super::datagram::{DatagramError, head};
use super::{Node, mesh_mut, meshes_mut};
use crate::ip::{self, ALL_NODES, InterfaceId};
use crate::join::{
    Asker, Configuration, DATAGRAM_LEN_MAX, PORT, StatelessProxy, confirming, hear, is_message,
    is_request,
};
use crate::limits::PSDU_LEN_MAX;
use crate::link::{Refusal, Reservation};
use crate::random::Rng;
use crate::remote::Remote;
use crate::time::{Allowance, Instant};
use crate::wire::cursor;
use crate::wire::ipv6::{self, Header};
use crate::wire::udp;

/// A node's part in joining (RFC 9031 §2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JoinRole {
    /// The node has the key, and accepts another one from the JRC at this address. It forwards for
    /// no pledge.
    Member(Ipv6Addr),
    /// The node has no key, and asks for one.
    Pledge,
    /// A join proxy (JP): as a member; besides, it forwards requests of neighbouring pledges to the
    /// JRC at this address.
    Proxy(Ipv6Addr),
    /// The join registrar/coordinator (JRC): it gives the key to devices that may have it.
    Jrc,
}

/// Counters of a [`JoinProxy`]; all wrap at 2^32.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct JoinCounters {
    /// Requests of pledges passed on.
    pub forwarded: u32,
    /// Answers of the JRC passed back to pledges.
    pub returned: u32,
    /// Datagrams that waited for the application.
    pub taken: u32,
    /// Datagrams dropped because they were neither request nor answer, were for another port or
    /// damaged, or answered no request that this join proxy had forwarded.
    pub refused: u32,
    /// Datagrams dropped because another one was forwarded within the last second, or still waits.
    pub rationed: u32,
}

/// Takes the datagrams about joining that come to a node: forwards them, where its role is
/// [`JoinRole::Proxy`], or keeps one for the application. See [`Node::set_join_proxy`].
#[derive(Debug)]
pub struct JoinProxy {
    role: JoinRole,
    stateless: StatelessProxy,
    requests: Allowance,
    waiting: Option<Waiting>,
    counters: JoinCounters,
}

/// A datagram for the application.
#[derive(Debug)]
struct Waiting {
    from: Remote,
    len: u8,
    bytes: [u8; DATAGRAM_LEN_MAX],
}

impl<'m> Node<'m> {
    /// Lends the node the memory with which it joins, forwards for pledges or answers them, by the
    /// [`JoinRole`] in it.
    ///
    /// A join proxy needs no further call. A pledge sends its request by [`Self::send_join`], and a
    /// JRC its answer; both receive by [`Self::recv_join`].
    pub fn set_join_proxy(&mut self, proxy: &'m mut JoinProxy) {
        self.join_proxy = Some(proxy);
        self.open_to_pledges();
    }

    /// Gives back what [`Self::set_join_proxy`] was lent.
    pub fn take_join_proxy(&mut self) -> Option<&'m mut JoinProxy> {
        let proxy = self.join_proxy.take();
        self.open_to_pledges();
        proxy
    }

    /// The join proxy that [`Self::set_join_proxy`] was lent, to look at.
    pub fn join_proxy(&self) -> Option<&JoinProxy> {
        self.join_proxy.as_deref()
    }

    /// Takes the key that a JRC gave: the links that were without one begin to send.
    /// `stored`: the last reservation of frame counters that the node stored, also before a reboot.
    /// `role`: what it does for pledges.
    pub fn unlock(
        &mut self,
        given: &Configuration,
        stored: Option<Reservation>,
        role: JoinRole,
        now: Instant,
    ) {
        self.polled_at = None;
        let Self {
            links,
            rng,
            join_proxy,
            ..
        } = self;
        let key = (given.network, given.sequence);
        for mesh in meshes_mut(links).filter(|mesh| mesh.is_locked()) {
            mesh.unlock(key, stored, now, rng);
        }
        if let Some(proxy) = join_proxy {
            proxy.set_role(role);
        }
        self.open_to_pledges();
    }

    /// Notes the key that a JRC has announced. The node goes over to it when it hears the
    /// first frame of that key's sequence; a border router by
    /// [`rotate_key`](crate::link::Mesh::rotate_key).
    pub fn expect_key(&mut self, given: &Configuration) {
        for mesh in meshes_mut(self.links) {
            mesh.expect_key((given.network, given.sequence));
        }
    }

    fn open_to_pledges(&mut self) {
        let serves = self
            .join_proxy
            .as_ref()
            .is_some_and(|it| it.serves_pledges());
        for mesh in meshes_mut(self.links) {
            mesh.serve_pledges(serves);
        }
    }

    /// Copies the datagram about joining that waits into `out`; returns its sender, and its length.
    /// `out` has room for any of them with [`DATAGRAM_LEN_MAX`] bytes.
    pub fn recv_join(&mut self, out: &mut [u8]) -> Option<(Remote, usize)> {
        self.join_proxy.as_mut()?.take(out)
    }

    /// Sends a datagram about joining: in clear where `remote` is link-local, and to all in reach
    /// where it is `ff02::1`. Poll the node afterwards.
    ///
    /// # Errors
    /// [`DatagramError`]; nothing was sent.
    pub fn send_join(
        &mut self,
        remote: &Remote,
        datagram: &[u8],
        now: Instant,
    ) -> Result<(), DatagramError> {
        let iid = match remote.addr {
            ALL_NODES => None,
            addr if addr.is_unicast_link_local() => Some(ip::iid_of(&addr)),
            _ => return self.send_datagram(*remote, PORT, datagram),
        };
        self.polled_at = None;
        let on_link = InterfaceId::of_zone(remote.zone);
        let id = on_link.unwrap_or_else(|| self.ip.first_link());
        // Only a mesh link has neighbours without a key.
        let mesh = mesh_mut(self.links, id).ok_or(DatagramError::NoRoute)?;
        let src = self.ip.source_for(&remote.addr, id);
        let src = src.ok_or(DatagramError::NoAddress)?;
        let mut packet = [0; PACKET_LEN_MAX];
        let ports = (PORT, PORT);
        let start = head((src, remote.addr), ports, HOP_LIMIT, datagram);
        let start = start.ok_or(DatagramError::TooLong)?;
        let len = start.len() + datagram.len();
        let room = packet.get_mut(..len).ok_or(DatagramError::TooLong)?;
        let (first, rest) = room.split_at_mut(start.len());
        first.copy_from_slice(&start);
        rest.copy_from_slice(datagram);
        let sent = mesh.send_in_clear(iid, packet.get(..len).unwrap_or_default(), now);
        sent.map_err(|refusal| match refusal {
            Refusal::TooBig { .. } => DatagramError::TooLong,
            Refusal::Full | Refusal::Congestion => DatagramError::QueueFull,
        })
    }

    /// Deals with what neighbours have sent in clear.
    pub(super) fn poll_joining(&mut self, now: Instant) {
        if self.join_proxy.is_none() {
            return;
        }
        for id in self.interface_ids() {
            self.poll_neighbour(id, now);
        }
    }

    fn poll_neighbour(&mut self, id: InterfaceId, now: Instant) {
        let mut packet = [0; PACKET_LEN_MAX];
        let mesh = mesh_mut(self.links, id);
        let Some((iid, len)) = mesh.and_then(|mesh| mesh.take_in_clear(&mut packet)) else {
            return;
        };
        let packet = packet.get(..len).unwrap_or_default();
        let Some((src, datagram)) = unwrap(packet) else {
            if let Some(proxy) = &mut self.join_proxy {
                count(&mut proxy.counters.refused);
            }
            return;
        };
        let remote = Remote {
            addr: src,
            port: PORT,
            zone: id.zone(),
        };
        let mut out = [0; DATAGRAM_LEN_MAX];
        let proxy = self.join_proxy.as_mut();
        let errand = proxy.and_then(|it| it.on_neighbour((iid, remote), datagram, now, &mut out));
        if let Some((jrc, len)) = errand {
            let datagram = out.get(..len).unwrap_or_default();
            // A failure is ignored: the pledge repeats its request.
            let _is_sent = self.send_datagram((jrc, PORT), PORT, datagram);
        }
        self.news_at = Some(now + super::TICK);
    }

    /// Deals with a datagram for this node if it is about joining; returns whether it is.
    pub(super) fn takes_join(
        &mut self,
        (header, zone): (&Header, u8),
        datagram: &[u8],
        now: Instant,
    ) -> bool {
        let Some(proxy) = self.join_proxy.as_mut() else {
            return false;
        };
        let parsed = udp::Header::parse(datagram).ok();
        let Some((ports, payload)) = parsed.filter(|(ports, _)| ports.dst_port == PORT) else {
            return false;
        };
        let remote = Remote {
            addr: header.src,
            port: ports.src_port,
            zone,
        };
        let is_whole = udp::is_checksum_valid(&header.src, &header.dst, datagram);
        if !is_whole || !proxy.is_meant(&remote, payload) {
            return false;
        }
        let mut out = [0; DATAGRAM_LEN_MAX];
        if let Some(((iid, zone), len)) = proxy.on_remote(remote, payload, now, &mut out) {
            let pledge = Remote {
                addr: ip::link_local(iid),
                port: PORT,
                zone,
            };
            // A failure is ignored: the pledge repeats its request.
            let _is_sent = self.send_join(&pledge, out.get(..len).unwrap_or_default(), now);
        }
        true
    }
}

impl JoinProxy {
    /// `rng`: draws the secret with which a join proxy marks its tokens.
    pub fn new(role: JoinRole, rng: &mut Rng) -> Self {
        Self {
            role,
            stateless: StatelessProxy::new(rng),
            requests: Allowance::new(1, REQUEST_INTERVAL_MS),
            waiting: None,
            counters: JoinCounters::default(),
        }
    }

    /// The node's role in joining.
    pub const fn role(&self) -> JoinRole {
        self.role
    }

    fn set_role(&mut self, role: JoinRole) {
        self.role = role;
        self.waiting = None;
    }

    /// Whether the node wants frames in clear that are for all.
    const fn serves_pledges(&self) -> bool {
        matches!(self.role, JoinRole::Proxy(_) | JoinRole::Jrc)
    }

    /// Counts of requests, answers and drops.
    pub const fn counters(&self) -> &JoinCounters {
        &self.counters
    }

    /// Takes a datagram that a neighbour sent in clear, over the link that `remote` names. Writes
    /// into `out` what goes to the JRC; returns the JRC's address, and the length.
    pub(super) fn on_neighbour(
        &mut self,
        (iid, remote): ([u8; 8], Remote),
        datagram: &[u8],
        now: Instant,
        out: &mut [u8],
    ) -> Option<(Ipv6Addr, usize)> {
        let JoinRole::Proxy(jrc) = self.role else {
            self.keep_of_neighbour(remote, datagram);
            return None;
        };
        let forwarded = self
            .stateless
            .outward((iid, remote.zone), datagram, now, out);
        let Some(len) = forwarded else {
            count(&mut self.counters.refused);
            return None;
        };
        // Last, so that only requests count.
        if !self.requests.take(now) {
            count(&mut self.counters.rationed);
            return None;
        }
        count(&mut self.counters.forwarded);
        Some((jrc, len))
    }

    /// Whether a datagram to the port of CoAP, from `remote`, may be about joining. All others are
    /// for the application.
    pub(super) fn is_meant(&self, remote: &Remote, datagram: &[u8]) -> bool {
        match self.role {
            JoinRole::Proxy(jrc) | JoinRole::Member(jrc) => {
                remote.addr == jrc && is_message(datagram)
            }
            JoinRole::Jrc => hear(datagram).is_ok() || confirming(datagram).is_some(),
            JoinRole::Pledge => false,
        }
    }

    /// Takes a datagram of which [`Self::is_meant`] is true. Writes into `out` what goes to a
    /// neighbour, if anything; returns which neighbour, and the length.
    pub(super) fn on_remote(
        &mut self,
        remote: Remote,
        datagram: &[u8],
        now: Instant,
        out: &mut [u8],
    ) -> Option<(Asker, usize)> {
        if is_request(datagram) || !matches!(self.role, JoinRole::Proxy(_)) {
            self.keep(remote, datagram);
            return None;
        }
        let returned = self.stateless.homeward(datagram, now, out);
        count(match returned {
            Some(_) => &mut self.counters.returned,
            None => &mut self.counters.refused,
        });
        returned
    }

    /// Keeps a datagram in clear, where it may be about a key.
    fn keep_of_neighbour(&mut self, from: Remote, datagram: &[u8]) {
        let is_wanted = match self.role {
            JoinRole::Jrc => hear(datagram).is_ok(),
            JoinRole::Pledge => is_message(datagram),
            JoinRole::Proxy(_) | JoinRole::Member(_) => false,
        };
        match is_wanted {
            true => self.keep(from, datagram),
            false => count(&mut self.counters.refused),
        }
    }

    fn keep(&mut self, from: Remote, datagram: &[u8]) {
        if datagram.len() > DATAGRAM_LEN_MAX {
            return count(&mut self.counters.refused);
        }
        if self.waiting.is_some() {
            return count(&mut self.counters.rationed);
        }
        count(&mut self.counters.taken);
        let mut bytes = [0; DATAGRAM_LEN_MAX];
        let len = cursor::copy(&mut bytes, datagram) as u8;
        self.waiting = Some(Waiting { from, len, bytes });
    }

    /// The datagram that waits: from where, and its length in `out`.
    pub(super) fn take(&mut self, out: &mut [u8]) -> Option<(Remote, usize)> {
        let waiting = self.waiting.take()?;
        let bytes = waiting.bytes.get(..usize::from(waiting.len))?;
        Some((waiting.from, cursor::copy(out, bytes)))
    }
}

/// The datagram in a packet, and its source; `None` where it is for another port, or damaged.
fn unwrap(packet: &[u8]) -> Option<(Ipv6Addr, &[u8])> {
    let (header, rest) = Header::parse(packet).ok()?;
    let is_whole = header.next_header == udp::NEXT_HEADER
        && udp::is_checksum_valid(&header.src, &header.dst, rest);
    let (ports, datagram) = udp::Header::parse(rest).ok().filter(|_| is_whole)?;
    ((ports.src_port, ports.dst_port) == (PORT, PORT)).then_some((header.src, datagram))
}

fn count(counter: &mut u32) {
    *counter = counter.wrapping_add(1);
}

/// The packet goes one hop, and a compressed header holds this limit in two bits (RFC 6282 §3.1.1).
const HOP_LIMIT: u8 = 255;

/// Bytes of a packet that came in one frame, decompressed.
const PACKET_LEN_MAX: usize = ipv6::HEADER_LEN + udp::HEADER_LEN + PSDU_LEN_MAX;

/// Time between two requests that a join proxy passes on, ms.
const REQUEST_INTERVAL_MS: u16 = 1_000;
