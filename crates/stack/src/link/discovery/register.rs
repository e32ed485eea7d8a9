//! Registration of addresses: this node's with its router, and its neighbours' with this node.
//!
//! A request names its address in one of two ways. If the router supports EARO, the target address
//! is registered, and the source address is link-local (RFC 8505 §5.5 and §5.6). Otherwise the
//! source address is registered, and the target is the router's own address (RFC 6775 §5.5). A
//! link-local address derives from its sender's link address and is unique with it. So its
//! registration is answered but not stored, and this node never registers one. Answers go to the
//! sender's link-local address, which needs no route.

use core::net::Ipv6Addr;

use super::{Discovery, Draft, OVERRIDE, ROUTER, Received, SOLICITED, must_fit};
use crate::ip::neighbor_cache::{IS_ROUTER, Request};
use crate::ip::registering_node::{LIFETIME_MIN, Outcome};
use crate::ip::{self, Iid, Ip, Neighbour, PacketDrop, Prefix, RegistrationRefusal};
use crate::random::Rng;
use crate::storage::packet_queue::PacketQueue;
use crate::time::Instant;
use crate::wire::LinkAddr;
use crate::wire::icmpv6::kind::{NEIGHBOR_ADVERTISEMENT, NEIGHBOR_SOLICITATION};
use crate::wire::ndp::{
    AddressRegistration, NdpOptions, emit_link_addr, kind, link_addr, registration,
};

impl Discovery<'_> {
    /// Whether this node keeps its neighbours' registrations.
    pub(super) const fn takes_registrations(&self) -> bool {
        self.registers && self.neighbors.is_open()
    }

    /// The registration in a solicitation; it counts only beside its sender's link address (RFC
    /// 8505 §5.5).
    ///
    /// # Errors
    ///
    /// The solicitation has two registration options, or its source is unspecified.
    pub(super) fn registration<'a>(
        &self,
        received: &Received<'a>,
    ) -> Result<Option<AddressRegistration<'a>>, PacketDrop> {
        if !IS_ROUTER || received.message.kind != NEIGHBOR_SOLICITATION {
            return Ok(None);
        }
        let options = received.message.options();
        let registration = only_registration(options)?;
        if !self.registers || registration.is_none() {
            return Ok(None);
        }
        let is_senders = |(kind, body): (u8, &[u8])| {
            let addr = link_addr(body).filter(|_| kind == kind::SOURCE_LINK_ADDR);
            addr.is_some_and(|addr| received.ingress.from == Neighbour::One(addr.iid()))
        };
        match received.header.src == Ipv6Addr::UNSPECIFIED {
            true => Err(PacketDrop::BadNdp),
            false => Ok(registration.filter(|_| options.bodies().any(is_senders))),
        }
    }

    /// The identifier of the addresses of a neighbour with this EUI-64, which on some links has a
    /// bit inverted.
    const fn iid_of(&self, eui64: [u8; 8]) -> Iid {
        match self.source {
            #[cfg(feature = "ble")]
            LinkAddr::Device(_) => eui64,
            _ => LinkAddr::Extended(eui64).iid(),
        }
    }

    /// Decides on the registration that the neighbour `from` requests by a solicitation for
    /// `target`, and answers.
    pub(super) fn on_registration(
        &mut self,
        received: &Received<'_>,
        (from, target): (Iid, Ipv6Addr),
        asked: &AddressRegistration<'_>,
        queue: &mut PacketQueue<'_>,
        ip: &Ip<'_>,
        now: Instant,
    ) -> Result<(), PacketDrop> {
        if target.is_multicast() || target == Ipv6Addr::UNSPECIFIED {
            return Err(PacketDrop::BadNdp);
        }
        let is_of_router = ip.owns(&target, self.id);
        let mut to = ip::link_local(from);
        let is_router = ip.forwards() || self.is_border();
        if !self.takes_registrations() || !is_router {
            // Answers like a router without support for registrations.
            if !is_of_router {
                return Err(PacketDrop::IgnoredIcmp);
            }
            self.may_answer(received.is_trusted, now)?;
            self.own_up(queue, ip, &to, target);
            return Ok(());
        }
        self.may_answer(received.is_trusted, now)?;
        let address = match is_of_router {
            true => received.header.src,
            false => target,
        };
        let eui64 = <[u8; 8]>::try_from(asked.owner).ok();
        let derived = eui64.map(|eui64| self.iid_of(eui64));
        let in_mesh = |prefix: &Ipv6Addr| {
            Prefix {
                addr: *prefix,
                len: 64,
            }
            .contains(&address)
        };
        let outcome = if address == to {
            Ok(())
        } else if !ip::has_iid(&address, &from) || !self.prefix().is_some_and(in_mesh) {
            let reason = RegistrationRefusal::NotOnLink;
            self.neighbors.refuse(reason);
            Err(reason)
        } else {
            let request = Request {
                iid: from,
                owner: folded(asked.owner),
                is_by_right: derived == Some(from),
                lifetime_min: asked.lifetime_min,
                tid: asked.transaction,
                // Without a transaction ID, the newer of two routers' registrations could not be
                // determined.
                is_routed: asked.reachable && asked.transaction.is_some(),
                instance: (asked.opaque_use == OPAQUE_IS_INSTANCE).then_some(asked.opaque),
            };
            self.neighbors.register(&request, received.is_trusted, now)
        };
        let status = outcome.map_or_else(RegistrationRefusal::status, |()| registration::SUCCESS);
        // The address belongs to another node, so the answer goes to the sender's EUI-64-based
        // link-local address (RFC 6775 §6.5.2).
        if let (registration::DUPLICATE, true, Some(iid)) = (status, is_of_router, derived) {
            to = ip::link_local(iid);
        }
        self.answer_registration(
            queue,
            ip,
            (to, target),
            &AddressRegistration { status, ..*asked },
        );
        Ok(())
    }

    /// Ends the registration of the neighbour with identifier `iid`, because another router has a
    /// newer one. Sends the neighbour an unsolicited answer with status "moved" (RFC 8505 §5.7).
    #[cfg(feature = "leaves")]
    pub(in crate::link) fn end_registration(
        &mut self,
        iid: Iid,
        queue: &mut PacketQueue<'_>,
        ip: &Ip<'_>,
    ) {
        let Some(((owner, transaction), prefix)) = self.neighbors.forget(iid).zip(self.prefix())
        else {
            return;
        };
        let answer = AddressRegistration {
            status: registration::MOVED,
            opaque: 0,
            opaque_use: 0,
            reachable: true,
            transaction,
            lifetime_min: 0,
            owner: &owner,
        };
        let (to, target) = (ip::link_local(iid), ip::with_iid(prefix, iid));
        self.answer_registration(queue, ip, (to, target), &answer);
    }

    /// If the neighbour `from`, whose packet was forwarded, is not registered here, informs it:
    /// this node has probably restarted, and the neighbour does not know that its registration is
    /// lost.
    #[cfg(feature = "leaves")]
    pub(in crate::link) fn remind(
        &mut self,
        (from, is_trusted): (Iid, bool),
        queue: &mut PacketQueue<'_>,
        ip: &Ip<'_>,
        now: Instant,
    ) {
        let is_stranger = self.takes_registrations() && !self.neighbors.holds(from);
        if is_stranger && self.may_answer(is_trusted, now).is_ok() {
            self.advertise(queue, ip, ip::link_local(from), now);
        }
    }

    /// Sends `answer` about the registration of `target`.
    fn answer_registration(
        &self,
        queue: &mut PacketQueue<'_>,
        ip: &Ip<'_>,
        (to, target): (Ipv6Addr, Ipv6Addr),
        answer: &AddressRegistration<'_>,
    ) {
        let mut packet = Draft::new();
        let flags = ROUTER | SOLICITED | OVERRIDE;
        let mut w = packet.about(NEIGHBOR_ADVERTISEMENT, flags, &target);
        must_fit(answer.emit(&mut w));
        let len = w.written();
        self.send(queue, ip, &to, len, &mut packet);
    }

    /// Registers with the router from now on, where this node has an address of another's making.
    /// `moved`: router or address are new; `left`: the router before, which may forget this node.
    pub(super) fn register_from_now(
        &mut self,
        left: Option<Ipv6Addr>,
        moved: bool,
        queue: &mut PacketQueue<'_>,
        now: Instant,
        rng: &mut Rng,
    ) {
        if !self.registers || self.solicitor.is_led() || self.prefix().is_none() {
            return self.registering_node.stop();
        }
        if let Some(router) = left.filter(|_| self.registering_node.is_active()) {
            let tid = self.registering_node.next_tid();
            self.ask(queue, &router, (tid, 0), false);
        }
        if moved || !self.registering_node.is_active() {
            self.registering_node.start(now, rng);
        }
    }

    /// Sends the request that is due.
    pub(super) fn poll_registrant(
        &mut self,
        queue: &mut PacketQueue<'_>,
        ip: &Ip<'_>,
        now: Instant,
    ) {
        let Some(tid) = self.registering_node.poll(now) else {
            return;
        };
        if let Some(router) = self.solicitor.router() {
            self.ask(queue, router, (tid, LIFETIME_MIN), !ip.forwards());
        }
        if self.registering_node.is_in_trouble() {
            self.solicitor.loosen(now);
        }
    }

    /// Sends `router` a request to register this node's address, or with lifetime 0 to remove it.
    fn ask(
        &self,
        queue: &mut PacketQueue<'_>,
        router: &Ipv6Addr,
        (tid, lifetime_min): (u8, u16),
        reachable: bool,
    ) {
        let Some(prefix) = self.prefix() else {
            return;
        };
        let iid = self.source.iid();
        let address = ip::with_iid(prefix, iid);
        let (mut src, mut target) = (address, *router);
        if self.is_router_extended {
            (src, target) = (ip::link_local(iid), address);
        }
        let request = AddressRegistration {
            status: registration::SUCCESS,
            opaque: 0,
            opaque_use: 0,
            reachable,
            transaction: Some(tid),
            lifetime_min,
            owner: &self.eui64,
        };
        let mut packet = Draft::new();
        let mut w = packet.about(NEIGHBOR_SOLICITATION, 0, &target);
        must_fit(emit_link_addr(&mut w, kind::SOURCE_LINK_ADDR, self.source));
        must_fit(request.emit(&mut w));
        let len = w.written();
        packet.send(queue, src, router, len);
    }

    /// The answer of this node's router to its request.
    pub(super) fn on_answer(
        &mut self,
        (src, options): (Ipv6Addr, NdpOptions<'_>),
        ip: &mut Ip<'_>,
        now: Instant,
        rng: &mut Rng,
    ) -> Result<(), PacketDrop> {
        let answer = only_registration(options)?;
        let is_ours = answer.is_none_or(|answer| answer.owner == self.eui64.as_slice());
        if self.solicitor.router() != Some(&src) || !is_ours {
            return Err(PacketDrop::IgnoredIcmp);
        }
        match self.registering_node.on_answer(answer.as_ref(), now, rng) {
            Outcome::Accepted => {
                self.solicitor.firm();
                self.add_address(ip);
            }
            Outcome::Duplicate => {
                if let Some(addr) = self.prefix() {
                    ip.remove_addresses(
                        self.id,
                        Prefix {
                            addr: *addr,
                            len: 64,
                        },
                    );
                }
            }
            Outcome::Pending => {}
        }
        Ok(())
    }
}

/// The opaque field of a registration holds an instance of RPL (I field, RFC 9010 §9.2.1).
const OPAQUE_IS_INSTANCE: u8 = 1;

/// The one registration among `options`.
///
/// # Errors
/// There are two.
fn only_registration(
    options: NdpOptions<'_>,
) -> Result<Option<AddressRegistration<'_>>, PacketDrop> {
    let mut registrations = options.bodies().filter_map(|(kind, body)| match kind {
        kind::ADDRESS_REGISTRATION => AddressRegistration::parse(body),
        _ => None,
    });
    let first = registrations.next();
    match registrations.next() {
        None => Ok(first),
        Some(_) => Err(PacketDrop::BadNdp),
    }
}

/// An owner (ROVR) in eight bytes, for comparison: an EUI-64 as it is. Longer ones are not verified
/// anyway, so a short digest will do.
fn folded(owner: &[u8]) -> [u8; 8] {
    let (parts, _) = owner.as_chunks::<8>();
    let fold = |folded: u64, part: &[u8; 8]| folded.rotate_left(8) ^ u64::from_be_bytes(*part);
    parts.iter().fold(0, fold).to_be_bytes()
}
