//! Router discovery where it meets the interfaces: what an advertisement changes, and what
//! this node advertises itself.
//!
//! Sources: RFC 4861 §6, RFC 6775 §5.4, §6.3 and §8.1 (a relay passes on what it learnt).

use core::net::Ipv6Addr;

use super::header_compression::Mark;
use super::interface::Radio;
use crate::ip::ndp::{Advertised, Due, Said};
use crate::ip::{self, ALL_NODES, Address, InterfaceId, Ip, Neighbour, NextHop, Prefix};
use crate::limits::{CONTEXTS_MAX, IPV6_MTU_MIN};
use crate::lowpan::LinkPair;
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

/// The neighbour that a discovery message with this `header` came from over `link`. `None` where
/// it did not come from the link itself, as its hop limit proves, or not from the neighbour
/// whose address it bears: identifiers derive from link addresses (RFC 4861 §6.1 and §7.1,
/// RFC 6775 §5.2).
pub(super) fn sender(
    ip: &Ip<'_>,
    interface: InterfaceId,
    header: &ipv6::Header,
    link: Option<LinkPair>,
) -> Option<LinkAddr> {
    let from = link?.src;
    let back = NextHop {
        interface,
        neighbour: Neighbour::One(from.iid()),
    };
    let is_its_own = header.src.is_unspecified()
        || (ip::iid_of(&header.src) == from.iid()
            && ip.next_hop(&header.src, interface) == Some(back));
    (header.hop_limit == HOP_LIMIT && is_its_own).then_some(from)
}

/// Takes an advertisement from `router` (its address, and its link's) if it comes from the
/// router of this interface or there is none yet: default route, prefix, contexts. What it
/// changes holds only once the router has confirmed it (see [`ip::ndp`]). A relay tells its own
/// neighbours when that changes anything. `to_one`: whether it was sent to this node alone.
pub(super) fn on_advertisement(
    radio: &mut Radio<'_>,
    ip: &mut Ip<'_>,
    interface: InterfaceId,
    router: (Ipv6Addr, LinkAddr),
    (advertisement, to_one): (&RouterAdvertisement<'_>, bool),
    now: Instant,
    rng: &mut Rng,
) {
    let (addr, neighbour) = router;
    let lease = lease(advertisement);
    let had_router = radio.solicitor.router().is_some();
    let said = Said {
        lease,
        change: change(radio, advertisement),
        to_one,
    };
    if !radio.solicitor.on_advertisement(addr, said, now, rng) {
        return;
    }
    let has_router = lease > Duration::ZERO;
    if has_router {
        ip.set_default_route(Some(NextHop {
            interface,
            neighbour: Neighbour::One(neighbour.iid()),
        }));
    } else {
        ip.clear_default_route(interface);
        radio.contexts.stop_compressing();
    }
    let mut changed = take_prefix(radio, ip, interface, advertisement) || had_router != has_router;
    for option in advertisement.options.iter() {
        if let NdpOption::Context(context) = option {
            changed |= radio.contexts.learn(&context);
        }
    }
    if changed && ip.forwards() {
        announce(radio, ip, interface, now);
    }
}

/// How long all that an advertisement says holds: its shortest lifetime above zero, so that
/// it is asked for again before any of it ends. Zero where the sender is no default router.
fn lease(advertisement: &RouterAdvertisement<'_>) -> Duration {
    let router_s = u32::from(advertisement.router_lifetime_s);
    let lifetimes = advertisement.options.iter().map(|option| match option {
        NdpOption::Prefix(information) if is_usable(&information) => information.valid_lifetime_s,
        NdpOption::Context(context) => u32::from(context.lifetime_min) * 60,
        _ => 0,
    });
    let shortest_s = lifetimes.filter(|s| *s > 0).fold(router_s, u32::min);
    Duration::from_secs(u64::from(shortest_s))
}

/// Whether addresses may be formed from a prefix (RFC 4862 §5.5.3).
fn is_usable(information: &PrefixInformation) -> bool {
    information.autonomous
        && information.prefix_len == 64
        && !information.prefix.is_unicast_link_local()
        && !information.prefix.is_multicast()
}

/// What an advertisement would change here, boiled down to a number; `None`: nothing.
fn change(radio: &Radio<'_>, advertisement: &RouterAdvertisement<'_>) -> Option<u32> {
    let had = radio.advertised.map(|advertised| advertised.prefix);
    let prefix = prefix_of(had, advertisement);
    let mut digest = 0;
    let mut note = |word: u32, prefix: Option<Ipv6Addr>| {
        let octets = prefix.map(|prefix| prefix.octets()).unwrap_or_default();
        for byte in word.to_be_bytes().into_iter().chain(octets) {
            // FNV-1a.
            digest = (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        }
        digest |= 1;
    };
    if prefix != had {
        note(0, prefix);
    }
    for option in advertisement.options.iter() {
        if let NdpOption::Context(context) = option
            && radio.contexts.would_change(&context)
        {
            let [compress, ends] = [context.compress, context.lifetime_min == 0].map(u8::from);
            let word = [compress, ends, context.id, context.prefix_len];
            note(u32::from_be_bytes(word), Some(context.prefix));
        }
    }
    (digest != 0).then_some(digest)
}

/// The prefix to have after an advertisement: that which the interface has if it is among
/// several.
fn prefix_of(had: Option<Ipv6Addr>, advertisement: &RouterAdvertisement<'_>) -> Option<Ipv6Addr> {
    let mut prefix = had;
    let mut confirmed = false;
    for option in advertisement.options.iter() {
        let NdpOption::Prefix(information) = option else {
            continue;
        };
        let listed = Some(ip::with_iid(&information.prefix, [0; 8]));
        if !is_usable(&information) {
            continue;
        }
        match information.valid_lifetime_s {
            0 if listed == prefix => prefix = None,
            0 => {}
            _ if listed == had => (prefix, confirmed) = (had, true),
            _ if !confirmed => (prefix, confirmed) = (listed, true),
            _ => {}
        }
    }
    prefix
}

/// Forms the address of the prefix advertised. One prefix at a time: a new one ends the old, so
/// that addresses never pile up. Returns whether the prefix changed.
fn take_prefix(
    radio: &mut Radio<'_>,
    ip: &mut Ip<'_>,
    interface: InterfaceId,
    advertisement: &RouterAdvertisement<'_>,
) -> bool {
    let had = radio.advertised.map(|advertised| advertised.prefix);
    let prefix = prefix_of(had, advertisement);
    if let Some(old) = had.filter(|_| prefix != had) {
        ip.remove_addresses(interface, Prefix { addr: old, len: 64 });
    }
    if let Some(prefix) = prefix {
        let addr = ip::with_iid(&prefix, radio.mac.source().iid());
        ip.add_address(Address { addr, interface });
    }
    radio.advertised = prefix.map(|prefix| Advertised {
        prefix,
        lifetime: Duration::ZERO,
    });
    prefix != had
}

/// How long what this node advertises still holds: a border router says, a relay counts down.
fn lifetime_left(radio: &Radio<'_>, advertised: &Advertised, now: Instant) -> Duration {
    if !radio.config.solicits {
        return advertised.lifetime;
    }
    let expires = radio.solicitor.expires();
    expires.map_or(Duration::ZERO, |at| at.since(now))
}

/// Queues an advertisement of what `radio` knows to `to`; nothing where it never knew a prefix. A
/// solicitation is answered, too, where this node is no router any more: its silence would not
/// prove that while it acknowledges frames.
pub(super) fn advertise(
    radio: &mut Radio<'_>,
    ip: &Ip<'_>,
    interface: InterfaceId,
    to: Ipv6Addr,
    now: Instant,
) {
    let Some(advertised) = radio.advertised else {
        return;
    };
    let seconds = lifetime_left(radio, &advertised, now).as_secs();
    let mut bytes = [0; OPTIONS_LEN_MAX];
    let mut w = Writer::new(&mut bytes);
    let prefix = PrefixInformation {
        prefix_len: 64,
        on_link: false,
        autonomous: true,
        router_address: false,
        valid_lifetime_s: seconds,
        preferred_lifetime_s: seconds,
        prefix: advertised.prefix,
    };
    // The options fit by construction, so none is left out.
    let _ = NdpOption::SourceLinkAddr(radio.mac.source()).emit(&mut w);
    // Without lifetime they would be withdrawn, and what they name with them.
    if seconds > 0 {
        let _ = NdpOption::Prefix(prefix).emit(&mut w);
        for (id, context) in radio.contexts.iter() {
            let option = NdpOption::Context(LowpanContext {
                id,
                compress: context.compress(),
                prefix_len: context.prefix_len(),
                lifetime_min: seconds.div_ceil(60).min(u32::from(u16::MAX)) as u16,
                prefix: context.prefix(),
            });
            let _ = option.emit(&mut w);
        }
    }
    let _ = NdpOption::Mtu(IPV6_MTU_MIN as u32).emit(&mut w);
    let len = w.written();
    let options = bytes
        .get(..len)
        .and_then(|bytes| NdpOptions::parse(bytes).ok());
    let message = Message::RouterAdvertisement(RouterAdvertisement {
        hop_limit: ip.hop_limit(),
        flags: 0,
        router_lifetime_s: seconds.min(u32::from(u16::MAX)) as u16,
        reachable_ms: 0,
        retransmit_ms: 0,
        options: options.unwrap_or_default(),
    });
    send(radio, ip, interface, to, &message);
}

/// Answers a solicitation for this node's own address `target`: to its source, or to all nodes
/// where its source is the unspecified address.
pub(super) fn own_up(
    radio: &mut Radio<'_>,
    ip: &Ip<'_>,
    interface: InterfaceId,
    asker: Ipv6Addr,
    target: Ipv6Addr,
) {
    let (to, solicited) = match asker.is_unspecified() {
        true => (ALL_NODES, 0),
        false => (asker, SOLICITED),
    };
    let router = if ip.forwards() { ROUTER } else { 0 };
    let mut bytes = [0; 16];
    let option = NdpOption::TargetLinkAddr(radio.mac.source());
    let advertisement = Message::NeighborAdvertisement {
        flags: router | solicited | OVERRIDE,
        target,
        options: only(option, &mut bytes),
    };
    send(radio, ip, interface, to, &advertisement);
}

/// Flags of a neighbour advertisement (RFC 4861 §4.4).
const ROUTER: u8 = 0x80;
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;

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
        Some(Due::Expired) => {
            ip.clear_default_route(interface);
            radio.contexts.stop_compressing();
            if ip.forwards() {
                announce(radio, ip, interface, now);
            }
        }
        Some(Due::Solicit(to)) => {
            let mut bytes = [0; 16];
            let options = only(NdpOption::SourceLinkAddr(radio.mac.source()), &mut bytes);
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

/// Tells all neighbours at once that this node can route for them, or can no longer.
pub(super) fn announce(radio: &mut Radio<'_>, ip: &Ip<'_>, interface: InterfaceId, now: Instant) {
    advertise(radio, ip, interface, ALL_NODES, now);
}

/// A list of one option, which `bytes` must hold; one of a link address does.
fn only<'a>(option: NdpOption<'_>, bytes: &'a mut [u8; 16]) -> NdpOptions<'a> {
    let mut w = Writer::new(bytes);
    let emitted = option.emit(&mut w);
    debug_assert!(emitted.is_ok(), "the option is too long");
    let len = w.written();
    let list = bytes.get(..len).map(NdpOptions::parse);
    list.and_then(Result::ok).unwrap_or_default()
}

/// Queues a discovery message for a neighbour or for all of them.
fn send(
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
        radio
            .queue
            .push(packet, Mark::own(Class::Control).to_bits());
    }
}
