//! Router discovery where it meets the interfaces: what an advertisement changes, and what
//! this node advertises itself.
//!
//! Sources: RFC 4861 §6, RFC 6775 §5.4, §6.3 and §8.1 (a relay passes on what it learnt).

use core::net::Ipv6Addr;

use super::interface::Radio;
use crate::ip::{self, ALL_NODES, Address, InterfaceId, Ip, NextHop, Prefix, ndp::Due};
use crate::limits::{CONTEXTS_MAX, IPV6_MTU_MIN};
use crate::mac::Class;
use crate::random::Rng;
use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;
use crate::wire::cursor::Writer;
use crate::wire::icmpv6::{Message, RouterAdvertisement};
use crate::wire::ipv6;
use crate::wire::ndp::{LowpanContext, NdpOption, NdpOptions, PrefixInformation};

/// Neighbour discovery messages start with 255 hops: one that arrives with fewer came from
/// beyond the link (RFC 4861 §6.1).
pub(super) const HOP_LIMIT: u8 = 255;

/// Longest advertisement: header, prefix, MTU, link address and every context in long form.
const OPTIONS_LEN_MAX: usize = 32 + 8 + 16 + 24 * CONTEXTS_MAX;

/// What a router tells its mesh.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Advertised {
    /// The /64 from which motes form addresses.
    pub prefix: Ipv6Addr,
    /// How long it, the contexts and the default route hold.
    pub lifetime: Duration,
}

impl Advertised {
    /// RFC 6775 §9's scale is hours: meshes are stable, and each refresh costs frames.
    pub const LIFETIME: Duration = Duration::from_secs(2 * 60 * 60);
}

/// Takes over an advertisement that the solicitor accepted. Returns whether what this node
/// advertises itself has changed.
pub(super) fn configure(
    radio: &mut Radio<'_>,
    ip: &mut Ip<'_>,
    interface: InterfaceId,
    router: LinkAddr,
    advertisement: &RouterAdvertisement<'_>,
) -> bool {
    let lifetime = Duration::from_secs(u64::from(advertisement.router_lifetime_s));
    let is_router = lifetime > Duration::ZERO;
    let next_hop = NextHop {
        interface,
        neighbour: Some(router),
    };
    ip.set_default_route(is_router.then_some(next_hop));
    let mut changed = false;
    for option in advertisement.options.iter() {
        match option {
            NdpOption::Prefix(information) => {
                changed |= take_prefix(radio, ip, interface, &information, lifetime);
            }
            NdpOption::Context(context) => changed |= radio.contexts.learn(&context),
            _ => {}
        }
    }
    changed
}

/// Forms or forgets the address of an autonomous /64 (RFC 4862 §5.5.3).
fn take_prefix(
    radio: &mut Radio<'_>,
    ip: &mut Ip<'_>,
    interface: InterfaceId,
    information: &PrefixInformation,
    lifetime: Duration,
) -> bool {
    let prefix = Prefix {
        addr: information.prefix,
        len: 64,
    };
    let is_usable = information.autonomous
        && information.prefix_len == 64
        && !information.prefix.is_unicast_link_local()
        && !information.prefix.is_multicast();
    if !is_usable {
        return false;
    }
    if information.valid_lifetime_s == 0 {
        ip.remove_addresses(interface, prefix);
        return radio
            .advertised
            .take_if(|a| prefix.contains(&a.prefix))
            .is_some();
    }
    let addr = ip::with_iid(&information.prefix, radio.mac.source().iid());
    ip.add_address(Address { addr, interface });
    let advertised = Some(Advertised {
        prefix: information.prefix,
        lifetime,
    });
    core::mem::replace(&mut radio.advertised, advertised) != advertised
}

/// Queues an advertisement of what `radio` knows to `to`; nothing where it knows no prefix.
pub(super) fn advertise(radio: &mut Radio<'_>, ip: &Ip<'_>, interface: InterfaceId, to: Ipv6Addr) {
    let Some(advertised) = radio.advertised else {
        return;
    };
    let mut bytes = [0; OPTIONS_LEN_MAX];
    let mut w = Writer::new(&mut bytes);
    let seconds = advertised.lifetime.as_micros() / 1_000_000;
    let prefix = PrefixInformation {
        prefix_len: 64,
        on_link: false,
        autonomous: true,
        router_address: false,
        valid_lifetime_s: seconds as u32,
        preferred_lifetime_s: seconds as u32,
        prefix: advertised.prefix,
    };
    // The options fit by construction, so none is left out.
    let _ = NdpOption::SourceLinkAddr(radio.mac.source()).emit(&mut w);
    let _ = NdpOption::Prefix(prefix).emit(&mut w);
    for (id, context) in radio.contexts.iter() {
        let option = NdpOption::Context(LowpanContext {
            id,
            compress: context.compress(),
            prefix_len: context.prefix_len(),
            lifetime_min: (seconds / 60).min(u64::from(u16::MAX)) as u16,
            prefix: context.prefix(),
        });
        let _ = option.emit(&mut w);
    }
    let _ = NdpOption::Mtu(IPV6_MTU_MIN as u32).emit(&mut w);
    let len = w.written();
    let options = bytes
        .get(..len)
        .and_then(|bytes| NdpOptions::parse(bytes).ok());
    let message = Message::RouterAdvertisement(RouterAdvertisement {
        hop_limit: ip.hop_limit(),
        flags: 0,
        router_lifetime_s: seconds.min(u64::from(u16::MAX)) as u16,
        reachable_ms: 0,
        retransmit_ms: 0,
        options: options.unwrap_or_default(),
    });
    send(radio, ip, interface, to, &message);
}

/// Does what the solicitor finds due.
pub(super) fn poll(
    radio: &mut Radio<'_>,
    ip: &mut Ip<'_>,
    interface: InterfaceId,
    now: Instant,
    rng: &mut Rng,
) {
    match radio.solicitor.poll(now, rng) {
        None => {}
        Some(Due::Expired) => ip.set_default_route(None),
        Some(Due::Solicit(to)) => {
            let mut bytes = [0; 16];
            let mut w = Writer::new(&mut bytes);
            let _ = NdpOption::SourceLinkAddr(radio.mac.source()).emit(&mut w);
            let len = w.written();
            let options = bytes
                .get(..len)
                .and_then(|bytes| NdpOptions::parse(bytes).ok());
            let options = options.unwrap_or_default();
            send(
                radio,
                ip,
                interface,
                to,
                &Message::RouterSolicitation { options },
            );
        }
    }
}

/// Tells all neighbours at once that this node can route for them.
pub(super) fn announce(radio: &mut Radio<'_>, ip: &Ip<'_>, interface: InterfaceId) {
    advertise(radio, ip, interface, ALL_NODES);
}

/// Queues a discovery message for a neighbour or for all of them.
pub(super) fn send(
    radio: &mut Radio<'_>,
    ip: &Ip<'_>,
    interface: InterfaceId,
    to: Ipv6Addr,
    message: &Message<'_>,
) {
    let Some(src) = ip.source_for(&to, interface) else {
        return;
    };
    let mut packet = [0; ipv6::HEADER_LEN + 16 + OPTIONS_LEN_MAX];
    if let Ok(len) = ip::icmp::write(message, src, to, HOP_LIMIT, &mut packet) {
        let packet = packet.get(..len).unwrap_or_default();
        // A full queue drops it; the solicitor asks again.
        radio.queue.push(packet, Class::Control as u32);
    }
}
