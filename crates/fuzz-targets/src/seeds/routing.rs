//! Messages and headers of RPL.

use std::net::Ipv6Addr;

use motet::wire::cursor::Writer;
use motet::wire::lorh;
use motet::wire::ndp::PrefixInformation;
use motet::wire::rpl::{
    self, Configuration, Dao, DaoAck, Dio, Dis, Metrics, RouteInformation, RplOption, RplOptions,
    Solicited, Target, Transit,
};
use motet::wire::rpl_option::{self, Rpi};
use motet::wire::source_route;

use crate::wire::{HOST, MESH};

/// Control messages with all options, from the ICMPv6 type on.
pub(super) fn messages() -> Vec<Vec<u8>> {
    let solicited = Solicited {
        instance: Some(30),
        dodag: Some(HOST),
        version: Some(240),
    };
    let ack = DaoAck {
        instance: 30,
        sequence: 241,
        status: 0,
        dodag: None,
        options: RplOptions::default(),
    };
    vec![
        control(
            rpl::Message::Dis(Dis::default()),
            &[RplOption::Solicited(solicited)],
        ),
        dio(),
        dao(),
        control(rpl::Message::DaoAck(ack), &[]),
    ]
}

fn control(message: rpl::Message<'_>, options: &[RplOption<'_>]) -> Vec<u8> {
    let mut out = [0; 200];
    let mut w = Writer::new(&mut out);
    message.emit(&mut w).expect("it fits");
    for option in options {
        option.emit(&mut w).expect("it fits");
    }
    let len = w.written();
    out[..len].to_vec()
}

fn dio() -> Vec<u8> {
    let etx = Metrics::etx_object(300);
    let configuration = Configuration {
        flags: 0x30,
        interval_doublings: 8,
        interval_min: 12,
        redundancy: 10,
        max_rank_increase: 1024,
        min_hop_rank_increase: 256,
        objective: 1,
        default_lifetime: 30,
        lifetime_unit_s: 60,
    };
    let prefix = PrefixInformation {
        prefix_len: 64,
        on_link: false,
        autonomous: true,
        router_address: true,
        valid_lifetime_s: 7200,
        preferred_lifetime_s: 3600,
        prefix: MESH,
    };
    let route = RouteInformation {
        prefix_len: 20,
        preference: 1,
        lifetime_s: 600,
        prefix: HOST,
    };
    let dio = Dio {
        instance: 30,
        version: 240,
        rank: 512,
        grounded: true,
        mode: 1,
        preference: 0,
        dtsn: 240,
        dodag: HOST,
        options: RplOptions::default(),
    };
    let options = [
        RplOption::Metrics(Metrics::parse(&etx).expect("ours")),
        RplOption::Configuration(configuration),
        RplOption::Prefix(prefix),
        RplOption::Route(route),
    ];
    control(rpl::Message::Dio(dio), &options)
}

fn dao() -> Vec<u8> {
    let target = Target {
        prefix_len: 128,
        prefix: HOST,
    };
    let transit = Transit {
        external: false,
        path_control: 0,
        sequence: 240,
        lifetime: 30,
        parent: Some(HOST),
    };
    let dao = Dao {
        instance: 30,
        ack_requested: true,
        sequence: 241,
        dodag: Some(HOST),
        options: RplOptions::default(),
    };
    let options = [
        RplOption::Target(target),
        RplOption::Descriptor(7),
        RplOption::Transit(transit),
    ];
    control(rpl::Message::Dao(dao), &options)
}

/// The RPL option, a source route, and 6LoWPAN routing headers.
pub(super) fn headers() -> [Vec<u8>; 3] {
    let rpi = Rpi {
        down: true,
        instance: 30,
        sender_rank: 513,
        ..Rpi::default()
    };
    let near = |id: u16| Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0xff, 0xfe00, id);
    let path = [near(1), near(2), near(0x303), HOST];
    let [first, rest @ ..] = &path;
    let mut route = [0; 64];
    let mut w = Writer::new(&mut route);
    source_route::emit(&mut w, 41, first, rest).expect("it fits");
    let len = w.written();
    let route = &route[..len];
    let mut out = [0; 100];
    let mut w = Writer::new(&mut out);
    lorh::emit_segments(&mut w, &MESH, &path).expect("it fits");
    lorh::emit_rpi(&mut w, rpi).expect("it fits");
    lorh::emit_tunnel(&mut w, 64, &HOST, &MESH).expect("it fits");
    let len = w.written();
    let option = rpi.header(17, rpl_option::TYPE_9008);
    [option.to_vec(), route.to_vec(), out[..len].to_vec()]
}
