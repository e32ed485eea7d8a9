//! Registration of addresses: what a host asks of its router, and what a router answers.

use super::*;
use crate::ip::neighbor_cache::Request;
use crate::ip::{Iid, RegistrationRefusal as Refusal};
use crate::wire::ndp::{AddressRegistration, NdpOption, NdpOptions, registration};

/// What a neighbour solicitation to the border router says, node 1 being its neighbour.
#[derive(Clone, Copy)]
struct Asked<'a> {
    from: LinkAddr,
    src: Ipv6Addr,
    target: Ipv6Addr,
    options: &'a [NdpOption<'a>],
}

fn local(n: usize) -> Ipv6Addr {
    ip::link_local(link(n).iid())
}

/// A request of node `n` in the form of RFC 8505.
fn request(owner: &[u8], tid: u8, lifetime_min: u16) -> AddressRegistration<'_> {
    AddressRegistration {
        status: 0,
        opaque: 0,
        opaque_use: 0,
        reachable: true,
        transaction: Some(tid),
        lifetime_min,
        owner,
    }
}

fn emitted(options: &[NdpOption<'_>], out: &mut [u8; 200]) -> usize {
    let mut w = crate::wire::cursor::Writer::new(out);
    options
        .iter()
        .for_each(|option| option.emit(&mut w).unwrap());
    w.written()
}

/// A border router with node 1, which hears what it says; nothing is asked of node 1 itself.
fn border_router() -> World {
    let mut world = World::chain(1, Relaying::Fragments);
    for node in [0, 1] {
        let Some(Link::Mesh(mesh)) = world.nodes[node].links.first_mut() else {
            panic!("a mesh");
        };
        while mesh.neighbor_cache_mut().poll_change().is_some() {}
    }
    world
}

/// Sends a solicitation to the border router, and returns the neighbour advertisements that it
/// queues within a second: where to, of what, and with which status.
fn answers(world: &mut World, asked: Asked<'_>) -> Vec<(Ipv6Addr, Ipv6Addr, Option<u8>)> {
    let answered = answered(world, asked).into_iter();
    let status = |registration: Option<Said>| registration.map(|said| said.status);
    answered
        .map(|(dst, target, said)| (dst, target, status(said)))
        .collect()
}

/// What of a registration an answer repeats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Said {
    status: u8,
    reachable: bool,
    transaction: Option<u8>,
    lifetime_min: u16,
}

/// As [`answers`], with the registration itself.
fn answered(world: &mut World, asked: Asked<'_>) -> Vec<(Ipv6Addr, Ipv6Addr, Option<Said>)> {
    let mut options = [0; 200];
    let len = emitted(asked.options, &mut options);
    let message = Message::NeighborSolicitation {
        target: asked.target,
        options: NdpOptions::parse(&options[..len]).unwrap(),
    };
    let mut bytes = [0; 300];
    let len = ip::icmp::write(&message, asked.src, local(0), 255, &mut bytes).unwrap();
    let hop = lowpan::LinkPair {
        src: asked.from,
        dst: link(0),
    };
    let mut payload = [0; PSDU_LEN_MAX];
    let none = lowpan::Contexts::new();
    let headers = lowpan::compress(&bytes[..len], hop, &none, &mut payload).unwrap();
    let rest = &bytes[headers.uncompressed_len..len];
    let payload = [&payload[..headers.compressed_len], rest].concat();
    world.sequence += 1;
    let frame = frame_from(hop.src, hop.dst, world.sequence as u8, &payload);
    let before = world.frames.len();
    world.at(Duration::ZERO, 0, RADIO, Pending::Frame(frame));
    world.run_for(Duration::from_secs(1));
    let mut out = Vec::new();
    for (_, frame) in world.frames[before..].iter().filter(|(node, _)| *node == 0) {
        let Some(answer) = advertisement(world, frame) else {
            continue;
        };
        // A frame that nothing acknowledges is repeated.
        if !out.contains(&answer) {
            out.push(answer);
        }
    }
    out
}

/// A neighbour advertisement in a frame: destination, target, and what it says of a registration.
fn advertisement(world: &World, frame: &[u8]) -> Option<(Ipv6Addr, Ipv6Addr, Option<Said>)> {
    let (header, payload) =
        crate::wire::ieee802154::Header::parse(&frame[..frame.len() - 2]).ok()?;
    let hop = lowpan::LinkPair {
        src: header.src?.addr,
        dst: header.dst?.addr,
    };
    let contexts = world.radio_of(0).contexts();
    let mut out = [0; 300];
    let headers = lowpan::decompress(payload, hop, contexts, None, &mut out).ok()?;
    let rest = &payload[headers.compressed_len..];
    let len = headers.uncompressed_len + rest.len();
    out[headers.uncompressed_len..len].copy_from_slice(rest);
    let (header, message) = Header::parse(&out[..len]).ok()?;
    match Message::parse(message) {
        Ok(Message::NeighborAdvertisement {
            target, options, ..
        }) => {
            let said = options.iter().find_map(|option| match option {
                NdpOption::AddressRegistration(registration) => Some(Said {
                    status: registration.status,
                    reachable: registration.reachable,
                    transaction: registration.transaction,
                    lifetime_min: registration.lifetime_min,
                }),
                _ => None,
            });
            Some((header.dst, target, said))
        }
        _ => None,
    }
}

/// A request of a neighbour with the EUI-64 of node `n`, in the form of RFC 8505.
fn ask(world: &mut World, n: usize, tid: u8, lifetime_min: u16) -> Option<u8> {
    let owner = eui(n);
    let options = [
        NdpOption::SourceLinkAddr(link(n)),
        NdpOption::AddressRegistration(request(&owner, tid, lifetime_min)),
    ];
    let asked = Asked {
        from: link(n),
        src: local(n),
        target: global(n),
        options: &options,
    };
    match answers(world, asked)[..] {
        [(dst, target, status)] => {
            assert_eq!((dst, target), (local(n), global(n)));
            status
        }
        ref others => panic!("{others:?}"),
    }
}

fn mesh_mut(world: &mut World, node: usize) -> &mut Mesh<'static> {
    match world.nodes[node].links.first_mut() {
        Some(Link::Mesh(mesh)) => mesh,
        _ => panic!("node {node} has a mesh"),
    }
}

fn changes(world: &mut World) -> Vec<(Iid, u16, bool)> {
    let mesh = mesh_mut(world, 0);
    let changes = core::iter::from_fn(|| mesh.neighbor_cache_mut().poll_change());
    changes
        .map(|c| (c.iid, c.lifetime_min, c.is_routed))
        .collect()
}

#[test]
fn every_mote_registers_with_its_router_and_renews_before_that_ends() {
    let mut world = World::chain(2, Relaying::Fragments);
    for n in [1, 2] {
        let router = world.radio_of(n - 1);
        assert!(router.is_registered(link(n).iid()), "mote {n}");
        assert_eq!(router.registrations().count(), 1);
        assert_eq!(router.registration_counters().accepted, 1);
    }
    // Relays reach themselves by routes.
    assert_eq!(changes(&mut world), [(link(1).iid(), 60, false)]);
    world.run_for(Duration::from_secs(3 * 60 * 60));
    let counters = world.radio_of(0).registration_counters();
    assert!((4..=5).contains(&counters.accepted), "{counters:?}");
    assert_eq!(counters.expired, 0);
    // Two changes between two calls are one.
    assert_eq!(changes(&mut world), [(link(1).iid(), 60, false)]);
    // One that has gone is forgotten within the hour.
    let now = world.now;
    world.deaf = Some((0, now..now + Duration::from_secs(24 * 60 * 60)));
    world.run_for(Duration::from_secs(61 * 60));
    assert_eq!(changes(&mut world), [(link(1).iid(), 0, false)]);
    assert!(!world.radio_of(0).is_registered(link(1).iid()));
}

/// RFC 8505 §5.5, §5.6 and §6.2: both forms, with and without a transaction.
#[test]
fn both_forms_of_a_request_are_answered_in_their_own() {
    let mut world = border_router();
    let plain = AddressRegistration {
        transaction: None,
        reachable: false,
        ..request(&[0; 8], 0, 10)
    };
    for (n, src, target, registration) in [
        (2, local(2), global(2), request(&[0; 8], 240, 10)),
        (3, global(3), local(0), plain),
    ] {
        let owner = eui(n);
        let registration = AddressRegistration {
            owner: &owner,
            ..registration
        };
        let options = [
            NdpOption::SourceLinkAddr(link(n)),
            NdpOption::AddressRegistration(registration),
        ];
        let asked = Asked {
            from: link(n),
            src,
            target,
            options: &options,
        };
        let said = Said {
            status: registration::SUCCESS,
            reachable: registration.reachable,
            transaction: registration.transaction,
            lifetime_min: 10,
        };
        assert_eq!(
            answered(&mut world, asked),
            [(local(n), target, Some(said))]
        );
    }
    assert_eq!(world.radio_of(0).registration_counters().accepted, 3);
}

#[test]
fn a_sender_that_acknowledges_nothing_is_not_registered() {
    let mut world = border_router();
    assert_eq!(ask(&mut world, 5, 240, 60), Some(registration::SUCCESS));
    assert!(!world.radio_of(0).is_registered(link(5).iid()));
    world.run_for(Duration::from_secs(2));
    assert_eq!(changes(&mut world), []);
    assert_eq!(world.radio_of(0).registration_counters().expired, 1);
}

/// A neighbour's own solicitations, repeated by somebody else.
#[test]
fn replayed_requests_change_nothing() {
    let mut world = border_router();
    let iid = link(1).iid();
    let until = |world: &World| {
        let entry = world.radio_of(0).registrations().next();
        entry.map(Registration::expires)
    };
    let begin = until(&world);
    world.run_for(Duration::from_secs(60));
    // The mote's own, once more; and a removal from before it restarted.
    assert_eq!(ask(&mut world, 1, 240, 60), Some(registration::MOVED));
    assert_eq!(until(&world), begin);
    assert_eq!(ask(&mut world, 1, 239, 0), Some(registration::MOVED));
    let router = world.radio_of(0);
    assert!(router.is_registered(iid));
    assert_eq!(router.registration_counters().refused(Refusal::Stale), 2);
    assert_eq!(changes(&mut world), []);
}

/// Somebody ends a mote's registration in its name: the answer goes to the mote, which renews it.
#[test]
fn a_registration_that_was_ended_in_its_name_is_made_again() {
    let mut world = border_router();
    assert_eq!(ask(&mut world, 1, 241, 0), Some(registration::SUCCESS));
    assert_eq!(changes(&mut world), [(link(1).iid(), 0, false)]);
    world.run_for(Duration::from_secs(10));
    assert_eq!(changes(&mut world), [(link(1).iid(), 60, false)]);
}

#[test]
fn a_flood_of_made_up_neighbours_ends_nobodys_registration() {
    let mut world = border_router();
    for n in 0..60 {
        let owner = eui(n + 10);
        let options = [
            NdpOption::SourceLinkAddr(link(n + 10)),
            NdpOption::AddressRegistration(request(&owner, 240, u16::MAX)),
        ];
        let asked = Asked {
            from: link(n + 10),
            src: local(n + 10),
            target: global(n + 10),
            options: &options,
        };
        let answered = answers(&mut world, asked);
        assert!(answered.len() <= 1);
    }
    let router = world.radio_of(0);
    let held: Vec<_> = router.registrations().map(Registration::iid).collect();
    assert_eq!(held, [link(1).iid()]);
    assert_eq!(router.registration_counters().refused(Refusal::Full), 0);
    assert_eq!(changes(&mut world), []);
    // Who acknowledges finds room in between.
    world.run_for(Duration::from_secs(3 * 60 * 60));
    assert!(world.radio_of(0).is_registered(link(1).iid()));
}

#[test]
fn what_is_no_registration_is_dropped_or_answered_as_such() {
    let lladdr = NdpOption::SourceLinkAddr(link(2));
    let owner = eui(2);
    let aro = NdpOption::AddressRegistration(request(&owner, 240, 60));
    let stranger = Ipv6Addr::new(0xfd66, 0, 0, 0, 0, 0, 0, 1);
    let elsewhere = ip::with_iid(&stranger, link(2).iid());
    type Case<'a> = (
        &'a str,
        Ipv6Addr,
        Ipv6Addr,
        &'a [NdpOption<'a>],
        Option<Option<u8>>,
    );
    let none: Option<Option<u8>> = None;
    let off_link = Some(Some(registration::TOPOLOGY));
    let cases: [Case<'_>; 9] = [
        (
            "two of them",
            local(2),
            global(2),
            &[lladdr, aro, aro],
            none,
        ),
        (
            "nobody's",
            Ipv6Addr::UNSPECIFIED,
            global(2),
            &[lladdr, aro],
            none,
        ),
        ("of a group", local(2), ip::ALL_NODES, &[lladdr, aro], none),
        (
            "of nothing",
            local(2),
            Ipv6Addr::UNSPECIFIED,
            &[lladdr, aro],
            none,
        ),
        ("without a link address", local(2), global(2), &[aro], none),
        (
            "of a neighbour's address",
            local(2),
            global(3),
            &[lladdr, aro],
            off_link,
        ),
        (
            "of another prefix",
            local(2),
            elsewhere,
            &[lladdr, aro],
            off_link,
        ),
        (
            "of a link-local address",
            local(2),
            local(2),
            &[lladdr, aro],
            Some(Some(0)),
        ),
        (
            "without any, of ours",
            local(2),
            local(0),
            &[lladdr],
            Some(None),
        ),
    ];
    for (name, src, target, options, expected) in cases {
        let mut world = border_router();
        let asked = Asked {
            from: link(2),
            src,
            target,
            options,
        };
        let answered = answers(&mut world, asked);
        let expected: Vec<_> = expected
            .map(|status| (local(2), target, status))
            .into_iter()
            .collect();
        assert_eq!(answered, expected, "{name}");
        let held = world.radio_of(0).registrations().count();
        assert_eq!(held, 1, "{name}: but that of node 1");
        let counters = &world.nodes[0].ip().counters;
        let dropped = counters.dropped(ip::PacketDrop::BadNdp)
            + counters.dropped(ip::PacketDrop::IgnoredIcmp);
        assert_eq!(dropped, u32::from(expected.is_empty()), "{name}");
    }
}

/// A request of node 1 that another node's name is under.
#[test]
fn a_request_in_another_nodes_name_is_answered_as_a_duplicate() {
    let mut world = border_router();
    let other = eui(9);
    let options = [
        NdpOption::SourceLinkAddr(link(1)),
        NdpOption::AddressRegistration(request(&other, 5, 60)),
    ];
    let asked = Asked {
        from: link(1),
        src: local(1),
        target: global(1),
        options: &options,
    };
    let expected = [(local(1), global(1), Some(registration::DUPLICATE))];
    assert_eq!(answers(&mut world, asked), expected);
    let router = world.radio_of(0);
    let refused = router.registration_counters().refused(Refusal::Duplicate);
    assert_eq!((refused, router.registrations().count()), (1, 1));
}

#[test]
fn a_full_table_says_so() {
    let mut world = border_router();
    // Three places are left, and these soon wait for their owners' acknowledgements.
    for n in 5..8 {
        let owner = eui(n);
        let request = Request {
            iid: link(n).iid(),
            owner,
            is_by_right: true,
            lifetime_min: 60,
            tid: Some(240),
            is_routed: true,
            instance: None,
        };
        let now = world.now;
        let neighbor_cache = mesh_mut(&mut world, 0).neighbor_cache_mut();
        assert_eq!(neighbor_cache.register(&request, true, now), Ok(()));
    }
    assert_eq!(ask(&mut world, 9, 240, 60), Some(registration::FULL));
    // A removal makes room.
    assert_eq!(ask(&mut world, 5, 241, 0), Some(registration::SUCCESS));
    assert_eq!(ask(&mut world, 9, 240, 60), Some(registration::SUCCESS));
}

/// Which version of the border router's information node 1 goes by, and its context 0.
fn known(world: &World) -> (Option<Ipv6Addr>, Ipv6Addr) {
    let context = world.radio_of(1).contexts().get(0).unwrap();
    (world.nodes[1].global_address(), context.prefix())
}

/// An advertisement of the border router with this version, whose context 0 is `context`, reaches
/// node 1: sent to all, or to it alone.
fn advertise(world: &mut World, version: u32, context: Ipv6Addr, to_all: bool) {
    use crate::wire::icmpv6::RouterAdvertisement;
    use crate::wire::ndp::{BorderRouter, LowpanContext, PrefixInformation};
    let prefix = PrefixInformation {
        prefix_len: 64,
        on_link: false,
        autonomous: true,
        router_address: false,
        valid_lifetime_s: 7_200,
        preferred_lifetime_s: 7_200,
        prefix: MESH,
    };
    let context = LowpanContext {
        id: 0,
        compress: true,
        prefix_len: 64,
        lifetime_min: 120,
        prefix: context,
    };
    let border = BorderRouter {
        version,
        lifetime_min: 120,
        addr: global(0),
    };
    let options = [
        NdpOption::Prefix(prefix),
        NdpOption::Context(context),
        NdpOption::BorderRouter(border),
    ];
    let mut bytes = [0; 200];
    let len = emitted(&options, &mut bytes);
    let message = Message::RouterAdvertisement(RouterAdvertisement {
        hop_limit: 64,
        flags: 0,
        router_lifetime_s: 7_200,
        reachable_ms: 0,
        retransmit_ms: 0,
        options: NdpOptions::parse(&bytes[..len]).unwrap(),
    });
    let (dst, to) = match to_all {
        true => (ip::ALL_NODES, LinkAddr::BROADCAST),
        false => (local(1), link(1)),
    };
    let mut bytes = [0; 200];
    let len = ip::icmp::write(&message, local(0), dst, 255, &mut bytes).unwrap();
    let hop = lowpan::LinkPair {
        src: link(0),
        dst: to,
    };
    let mut payload = [0; 200];
    let none = lowpan::Contexts::new();
    let headers = lowpan::compress(&bytes[..len], hop, &none, &mut payload).unwrap();
    let rest = &bytes[headers.uncompressed_len..len];
    let payload = [&payload[..headers.compressed_len], rest].concat();
    world.sequence += 1;
    let frame = frame_from(hop.src, hop.dst, world.sequence as u8, &payload);
    world.at(Duration::ZERO, 1, RADIO, Pending::Frame(frame));
    world.run_for(Duration::from_millis(20));
}

/// RFC 6775 §8.1.3: what is older than what is known is dropped and counted, however often it comes
/// to all; what is newer holds as soon as the router has confirmed it.
#[test]
fn an_older_version_is_dropped_and_a_newer_one_holds_when_it_is_confirmed() {
    let other = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 0);
    // (version, whether it is older than the 1 that is known)
    for (version, is_older) in [
        (0, true),
        (0xffff_ffff, true),
        (0x8000_0002, true),
        (2, false),
        (0x8000_0000, false),
    ] {
        let mut world = World::chain(1, Relaying::Fragments);
        let before = known(&world);
        assert_eq!(before, (Some(global(1)), MESH));
        let start = world.now;
        world.deaf = Some((0, start..start + Duration::from_secs(60)));
        for n in 1..=5 {
            advertise(&mut world, version, other, true);
            let counters = &world.nodes[1].ip().counters;
            let dropped = counters.dropped(ip::PacketDrop::BadNdp);
            assert_eq!(dropped, if is_older { n } else { 0 }, "{version:x}");
            assert_eq!(known(&world), before, "{version:x}");
        }
        if is_older {
            continue;
        }
        for _ in 0..10 {
            advertise(&mut world, version, other, false);
            world.run_for(Duration::from_secs(1));
        }
        assert_eq!(known(&world), (Some(global(1)), other), "{version:x}");
    }
}

/// A router that has begun anew has lost the registration, and part of its configuration: the
/// registration does not wait until that is confirmed, which needs a router that is asked about it.
#[test]
fn a_reminder_that_changes_something_hastens_the_registration_too() {
    let other = Ipv6Addr::new(0xfd77, 0, 0, 0, 0, 0, 0, 0);
    for context in [MESH, other] {
        let mut world = World::chain(1, Relaying::Fragments);
        world.run_for(Duration::from_secs(120));
        let accepted = |world: &World| world.radio_of(0).registration_counters().accepted;
        let before = accepted(&world);
        advertise(&mut world, 1, context, false);
        world.run_for(Duration::from_secs(10));
        assert_eq!(accepted(&world), before + 1, "{context}");
    }
}

/// A thousand solicitations of strangers, to the router alone and to all: the answers are few, the
/// rest is counted, and a neighbour that acknowledges is answered meanwhile.
#[test]
fn a_flood_of_solicitations_is_answered_within_bounds() {
    for to_all in [true, false] {
        let mut world = border_router();
        let frames = world.frames.len();
        let options = NdpOptions::default();
        let message = Message::RouterSolicitation { options };
        let (dst, to) = match to_all {
            true => (ip::ALL_ROUTERS, LinkAddr::BROADCAST),
            false => (local(0), link(0)),
        };
        for n in 0..1_000usize {
            let from = LinkAddr::Extended([2, 0, 0, 0, 9, 9, (n / 256) as u8, n as u8]);
            let mut bytes = [0; 100];
            let src = ip::link_local(from.iid());
            let len = ip::icmp::write(&message, src, dst, 255, &mut bytes).unwrap();
            let hop = lowpan::LinkPair { src: from, dst: to };
            let mut payload = [0; PSDU_LEN_MAX];
            let none = lowpan::Contexts::new();
            let headers = lowpan::compress(&bytes[..len], hop, &none, &mut payload).unwrap();
            let rest = &bytes[headers.uncompressed_len..len];
            let payload = [&payload[..headers.compressed_len], rest].concat();
            let frame = frame_from(from, to, n as u8, &payload);
            world.at(Duration::ZERO, 0, RADIO, Pending::Frame(frame));
            world.run_for(Duration::from_millis(10));
        }
        let dropped = world.nodes[0]
            .ip()
            .counters
            .dropped(ip::PacketDrop::TooMany);
        // 32 at once and four a second for ten seconds.
        assert!((900..=968).contains(&dropped), "{to_all}: {dropped}");
        let sent = world.frames[frames..].iter();
        let sent = sent
            .filter(|(node, frame)| *node == 0 && frame.len() > 5)
            .count();
        assert!((1..=700).contains(&sent), "{to_all}: {sent} frames");
        assert!(world.radio_of(0).is_registered(link(1).iid()));
    }
}
