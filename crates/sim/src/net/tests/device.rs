//! Two motes whose controllers are the test's: it carries reports and commands between each mote
//! and a controller on an air of its own.

use std::net::Ipv6Addr;

use motet::ble::{self, Config, DeviceAddr, GapRole};
use motet::ip::icmp;
use motet::link::Link;
use motet::random::Rng;
use motet::time::{Duration, Instant};
use motet::wire::LinkAddr;
use motet::wire::icmpv6::{Echo, Message};
use motet::wire::ipv6::Header;

use super::super::network::RADIO;
use super::super::world::World;
use super::{Parts, address_of, device, lead_to};
use crate::Arena;
use crate::apps::content::Content;
use crate::apps::{App, Ends, Receiver, Sender};
use crate::ble::{Air, Conditions, Profile};
use crate::net::plan;

/// Lets both worlds and the air go on until `until`.
fn run(worlds: &mut [World<'_>; 2], air: &mut Air, until: Instant) {
    loop {
        let mut acted = false;
        for (mote, world) in worlds.iter_mut().enumerate() {
            while let Some((action, bytes)) = world.take_command(0) {
                air.command(mote, action, &bytes);
                acted = true;
            }
            while let Some(report) = air.poll_report(mote) {
                report.tell(|event| world.report(0, event));
                acted = true;
            }
        }
        if acted {
            continue;
        }
        let nexts = worlds.iter().map(World::next_event_at);
        let next = nexts.chain([air.next_at()]).flatten().min();
        let next = next.filter(|next| *next < until).unwrap_or(until);
        air.step(next);
        let now = air.now();
        worlds.iter_mut().for_each(|world| world.run_until(now));
        if now >= until {
            return;
        }
    }
}

fn addr(mote: u16) -> DeviceAddr {
    plan::device_addr(mote)
}

#[test]
fn two_motes_over_controllers_outside_exchange_a_stream_by_link_local_addresses() {
    let arena = Arena::new();
    let host = |mote, role| Config::new(addr(mote), role);
    let mut worlds = [
        device(
            host(1, GapRole::Central),
            [2, 1, 1],
            Parts::default(),
            1,
            &arena,
        ),
        device(
            host(2, GapRole::Peripheral),
            [2, 1, 1],
            Parts::default(),
            2,
            &arena,
        ),
    ];
    let devices = [1, 2].map(|mote| (addr(mote), Profile::NRF52840));
    let conditions = Conditions::with_error(0.0);
    let mut air = Air::new(&devices, conditions, Rng::from_seed([7; 2]));
    run(&mut worlds, &mut air, Instant::from_micros(3_000_000));
    for world in &worlds {
        let Some(Link::Ble(link)) = world.node(0).link(RADIO) else {
            panic!("it has no other link");
        };
        assert!(link.host().connections().any(ble::Connection::is_open));
    }
    // The peripheral has an address of the central's prefix.
    assert!(worlds[1].node(0).global_address().is_some());

    let content = Content::made([9; 2], 100_000);
    let link_local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0);
    let central = plan::addr_of(link_local, LinkAddr::Device(addr(1).bytes));
    let receiver = Receiver::checking(4_000, Ends::host(&arena), content.clone());
    worlds[0].set_app(0, App::Receiver(receiver));
    let sender = Sender::new(content, (central, 4_000), Ends::host(&arena));
    worlds[1].set_app(0, App::Sender(sender));
    run(&mut worlds, &mut air, Instant::from_micros(10_000_000));
    let App::Receiver(receiver) = worlds[0].app(0) else {
        panic!("it was given one");
    };
    assert_eq!(
        (receiver.received, receiver.progress.error),
        (100_000, None)
    );
    let finished = receiver.progress.finished.unwrap();
    let took = finished.since(Instant::from_micros(3_000_000));
    assert!(took < Duration::from_secs(3), "{took:?}");
}

/// An echo request, or the answer to one.
fn echo(message_of: fn(Echo<'static>) -> Message<'static>, [src, dst]: [Ipv6Addr; 2]) -> Vec<u8> {
    let echo = Echo {
        identifier: 1,
        sequence: 2,
        data: &[3; 20],
    };
    let mut packet = vec![0; 68];
    icmp::write(&message_of(echo), src, dst, 64, &mut packet).unwrap();
    packet
}

#[test]
fn a_wire_leads_to_the_central_and_by_it_to_peers_that_are_there() {
    let arena = Arena::new();
    let host = |mote, role| Config::new(addr(mote), role);
    let wired = Parts {
        has_wire: true,
        ..Parts::default()
    };
    let mut worlds = [
        device(host(1, GapRole::Central), [2, 1, 1], wired, 1, &arena),
        device(
            host(2, GapRole::Peripheral),
            [2, 1, 1],
            Parts::default(),
            2,
            &arena,
        ),
    ];
    let devices = [1, 2].map(|mote| (addr(mote), Profile::NRF52840));
    let mut air = Air::new(
        &devices,
        Conditions::with_error(0.0),
        Rng::from_seed([7; 2]),
    );
    run(&mut worlds, &mut air, Instant::from_micros(3_000_000));
    let peer = address_of(addr(2).bytes);
    let Some(Link::Ble(link)) = worlds[0].node(0).link(RADIO) else {
        panic!("it has such a link");
    };
    let iid = LinkAddr::Device(addr(2).bytes).iid();
    assert!(link.registrations().any(|one| one.iid() == iid));

    let ask = echo(Message::EchoRequest, [plan::HOST, peer]);
    let mut until = 3_000_000;
    for (is_there, answer) in [
        (false, None),
        (true, Some(echo(Message::EchoReply, [peer, plan::HOST]))),
        (false, None),
    ] {
        lead_to(&mut worlds[0], addr(2).bytes, is_there);
        worlds[0].inject_at(0, &ask);
        until += 500_000;
        run(&mut worlds, &mut air, Instant::from_micros(until));
        let mut came = worlds[0].take_at(0).expect("somebody answers");
        assert_eq!(worlds[0].take_at(0), None);
        match answer {
            Some(answer) => {
                // What two routers leave of it.
                came[7] = 64;
                assert_eq!(&came[8..], &answer[8..]);
            }
            None => {
                let (header, message) = Header::parse(&came).unwrap();
                assert_eq!(header.src, plan::ROUTER_WIRED);
                let message = Message::parse(message).unwrap();
                let is_told = matches!(message, Message::DestinationUnreachable { .. });
                assert!(is_told, "{message:?}");
            }
        }
    }
}
