//! What this stack emits, as tshark reads it.

use std::fs::File;
use std::net::Ipv6Addr;
use std::path::Path;
use std::process::Command;

use motet::lowpan::fragment::{FIRST_SLACK, Fragmenter};
use motet::lowpan::{Contexts, HeaderForms, LinkPair, Routing, compress};
use motet::wire::cursor::Writer;
use motet::wire::icmpv6;
use motet::wire::ieee802154::Header;
use motet::wire::ipv6::{self, TrafficClass, next_header};
use motet::wire::lorh::{self, RoutingHeaders};
use motet::wire::ndp::{AddressRegistration, NdpOption, NdpOptions, PrefixInformation};
use motet::wire::rpl::{
    Configuration, Dao, DaoAck, Dio, Dis, Message, Metrics, RouteInformation, RplOption,
    RplOptions, Solicited, Target, Transit, configuration, mode,
};
use motet::wire::rpl_option::{Rpi, TYPE_6553, TYPE_9008};
use motet::wire::source_route;
use motet::wire::{LinkAddr, lowpan_frag, tcp, udp};
use pcap_file::DataLink;
use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};

const A: LinkAddr = LinkAddr::Extended([0x02, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 1]);
const B: LinkAddr = LinkAddr::Extended([0x02, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 2]);
const SHORT: LinkAddr = LinkAddr::Short(0x1234);
const MESH: &str = "fd6d:6f74:6574:1::";
const HOST: &str = "fd6d:6f74:6574::";

fn addr(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn on(prefix: &str, link: LinkAddr) -> Ipv6Addr {
    let iid = u64::from_be_bytes(link.iid());
    Ipv6Addr::from(u128::from(addr(prefix)) | u128::from(iid))
}

fn contexts() -> Contexts {
    let mut contexts = Contexts::new();
    assert!(contexts.set(0, addr(MESH), 64, true) && contexts.set(1, addr(HOST), 64, true));
    contexts
}

fn udp(src: Ipv6Addr, dst: Ipv6Addr, ports: (u16, u16)) -> Vec<u8> {
    let (src_port, dst_port) = ports;
    let mut datagram = vec![0x5a; udp::HEADER_LEN + 5];
    udp::Header { src_port, dst_port }
        .emit(5, &mut datagram)
        .unwrap();
    udp::fill_checksum(&src, &dst, &mut datagram);
    datagram
}

fn segment(src: Ipv6Addr, dst: Ipv6Addr, payload_len: usize) -> Vec<u8> {
    let header = tcp::Header {
        src_port: 49153,
        dst_port: 80,
        seq: 1000,
        ack: 2000,
        flags: tcp::Flags::ACK | tcp::Flags::PSH,
        window: 1848,
        urgent: 0,
        options: tcp::Options {
            timestamps: Some((7, 8)),
            ..tcp::Options::NONE
        },
    };
    let mut segment = vec![0x61; header.header_len() + payload_len];
    header.emit(&mut segment).unwrap();
    tcp::fill_checksum(&src, &dst, &mut segment);
    segment
}

fn packet(header: &ipv6::Header, payload: &[u8]) -> Vec<u8> {
    let header = ipv6::Header {
        payload_len: payload.len() as u16,
        ..*header
    };
    let mut packet = vec![0; ipv6::HEADER_LEN];
    header.emit(&mut packet).unwrap();
    packet.extend(payload);
    packet
}

/// Packets of every form, each with the link it takes.
fn packets() -> Vec<(Vec<u8>, LinkPair)> {
    let extended = LinkPair { src: A, dst: B };
    let short = LinkPair {
        src: SHORT,
        dst: LinkAddr::Short(0x0007),
    };
    let base = ipv6::Header {
        traffic_class: TrafficClass(0),
        flow_label: 0,
        payload_len: 0,
        next_header: udp::NEXT_HEADER,
        hop_limit: 64,
        src: on("fe80::", A),
        dst: on("fe80::", B),
    };
    let mut packets = Vec::new();
    let mut add = |header: ipv6::Header, link| {
        let datagram = udp(header.src, header.dst, (40000, 0xf0a0));
        packets.push((packet(&header, &datagram), link));
    };
    for (class, label) in [
        (0, 0),
        (3, 0),
        (0xb9, 0),
        (2, 0xabcde),
        (0, 7),
        (0xff, 0xfffff),
    ] {
        add(
            ipv6::Header {
                traffic_class: TrafficClass(class),
                flow_label: label,
                ..base
            },
            extended,
        );
    }
    for hop_limit in [1, 2, 255] {
        add(ipv6::Header { hop_limit, ..base }, extended);
    }
    for (src, dst) in [
        (on("fe80::", A), addr("fe80::1")),
        (addr("fe80::ff:fe00:99"), on("fe80::", B)),
        (on(MESH, A), on(MESH, B)),
        (on(MESH, A), addr("fd6d:6f74:6574::1")),
        (on(HOST, A), addr("fd6d:6f74:6574:1::ff:fe00:99")),
        (on(MESH, A), addr("2001:db8::1")),
        (Ipv6Addr::UNSPECIFIED, addr("ff02::2")),
        (on("fe80::", A), addr("ff05::1:3")),
        (on("fe80::", A), addr("ff02::1:ff00:1234")),
        (on(MESH, A), addr("ff35:40:fd6d:6f74:6574:1:0:7")),
        (on("fe80::", A), addr("ff02:0:1::1")),
    ] {
        add(ipv6::Header { src, dst, ..base }, extended);
    }
    add(
        ipv6::Header {
            src: on(MESH, SHORT),
            dst: on("fe80::", LinkAddr::Short(7)),
            ..base
        },
        short,
    );
    for ports in [
        (1000, 2000),
        (1000, 0xf055),
        (0xf055, 2000),
        (0xf0b1, 0xf0be),
    ] {
        packets.push((packet(&base, &udp(base.src, base.dst, ports)), extended));
    }
    // Hop-by-hop options with padding (RPL's), destination options, an inner packet.
    let datagram = udp(base.src, base.dst, (0xf0b1, 0xf0be));
    let options = [
        &[60, 0, 0x63, 4, 0, 0x1e, 1, 0, 17, 0, 1, 4, 0, 0, 0, 0][..],
        &datagram,
    ];
    packets.push((
        packet(
            &ipv6::Header {
                next_header: 0,
                ..base
            },
            &options.concat(),
        ),
        extended,
    ));
    let inner = packet(&base, &datagram);
    let outer = ipv6::Header {
        next_header: 41,
        src: on(MESH, A),
        dst: on(MESH, B),
        ..base
    };
    packets.push((packet(&outer, &inner), extended));
    let to_host = ipv6::Header {
        traffic_class: TrafficClass(2),
        next_header: tcp::NEXT_HEADER,
        src: on(MESH, A),
        dst: addr("fd6d:6f74:6574::1"),
        ..base
    };
    packets.push((
        packet(&to_host, &segment(to_host.src, to_host.dst, 20)),
        extended,
    ));
    packets
}

/// The frames of one packet: alone if it fits, else in fragments.
fn frames(packet: &[u8], link: LinkPair, sequence: u8) -> Vec<Vec<u8>> {
    let mut headers = [0; 127];
    let done = compress(packet, link, &contexts(), &mut headers).unwrap();
    let headers = &headers[..done.compressed_len];
    let mac = Header::data(0x4d54, link.dst, link.src, sequence);
    let frame = |payload: &[&[u8]]| {
        let mut psdu = [0; 127];
        let len = mac.emit_frame(&payload.concat(), &mut psdu).unwrap();
        psdu[..len].to_vec()
    };
    let rest = &packet[done.uncompressed_len..];
    if headers.len() + rest.len() <= mac.payload_len_max() {
        return vec![frame(&[headers, rest])];
    }
    let mut fragment = lowpan_frag::Header {
        datagram_size: packet.len() as u16,
        datagram_tag: 77,
        datagram_offset: None,
    };
    let mut head = [0; 5];
    let mut frames = Vec::new();
    let mut at = 0;
    while at < packet.len() {
        let len = fragment.emit(&mut head).unwrap();
        let end = packet.len().min(at + 80);
        let body = if at == 0 {
            [headers, &packet[done.uncompressed_len..end]].concat()
        } else {
            packet[at..end].to_vec()
        };
        frames.push(frame(&[&head[..len], &body]));
        at = end;
        fragment.datagram_offset = Some((at / 8) as u8);
    }
    frames
}

fn write(path: &Path, frames: &[Vec<u8>]) {
    let header = PcapHeader {
        datalink: DataLink::IEEE802_15_4,
        ..PcapHeader::default()
    };
    let mut writer = PcapWriter::with_header(File::create(path).unwrap(), header).unwrap();
    for (second, frame) in (0..).zip(frames) {
        let at = std::time::Duration::from_secs(second);
        writer
            .write_packet(&PcapPacket::new(at, frame.len() as u32, frame))
            .unwrap();
    }
}

/// One line a frame, `field|field|...`; `None` where tshark is not installed.
fn tshark(path: &Path, fields: &[&str]) -> Option<Vec<String>> {
    let mut command = Command::new("tshark");
    command
        .arg("-r")
        .arg(path)
        .args(["-T", "fields", "-E", "separator=|"]);
    for (id, prefix) in [MESH, HOST].into_iter().enumerate() {
        command.args(["-o", &format!("6lowpan.context{id}:{prefix}/64")]);
    }
    // By itself tshark takes the dispatch of page 1 for another protocol's.
    command.args(["-d", "wpan.panid==0x4d54,6lowpan"]);
    for checked in ["udp.check_checksum", "tcp.check_checksum"] {
        command.args(["-o", &format!("{checked}:TRUE")]);
    }
    for field in fields {
        command.args(["-e", field]);
    }
    let Ok(output) = command.output() else {
        let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
        assert!(!ci, "tshark is not installed");
        println!("not run: tshark is not installed");
        return None;
    };
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(str::to_owned).collect())
}

/// What tshark should say of `packet`, in the order of [`FIELDS`].
fn expected(packet: &[u8]) -> String {
    let mut columns = vec![Vec::new(); 6];
    let mut at = 0;
    let (kind, upper) = loop {
        let (ip, payload) = ipv6::Header::parse(&packet[at..]).unwrap();
        let row = [
            ip.src.to_string(),
            ip.dst.to_string(),
            format!("0x{:08x}", ip.traffic_class.0),
            format!("0x{:06x}", ip.flow_label),
            ip.hop_limit.to_string(),
            ip.payload_len.to_string(),
        ];
        for (column, value) in columns.iter_mut().zip(row) {
            column.push(value);
        }
        let mut walk = ipv6::Extensions::new(ip.next_header, payload);
        while walk.next().unwrap().is_some() {}
        if walk.next_header() != next_header::IPV6 {
            break (walk.next_header(), walk.rest());
        }
        at = packet.len() - walk.rest().len();
    };
    let ports = match kind {
        udp::NEXT_HEADER => {
            let ports = udp::Header::parse(upper).unwrap().0;
            format!("{}|{}|1||", ports.src_port, ports.dst_port)
        }
        _ => {
            let seq = tcp::Header::parse(upper).unwrap().0.seq;
            format!("|||{seq}|1")
        }
    };
    let columns: Vec<String> = columns.into_iter().map(|column| column.join(",")).collect();
    format!("1|{}|{ports}|", columns.join("|"))
}

const FIELDS: [&str; 13] = [
    "wpan.fcs_ok",
    "ipv6.src",
    "ipv6.dst",
    "ipv6.tclass",
    "ipv6.flow",
    "ipv6.hlim",
    "ipv6.plen",
    "udp.srcport",
    "udp.dstport",
    "udp.checksum.status",
    "tcp.seq_raw",
    "tcp.checksum.status",
    "_ws.malformed",
];

#[test]
fn tshark_reads_what_we_emit() {
    let mut all = Vec::new();
    let mut expectations = Vec::new();
    let mut packets = packets();
    // Last, one that takes several frames.
    let ip = ipv6::Header::parse(&packets.last().unwrap().0).unwrap().0;
    packets.push((
        packet(&ip, &segment(ip.src, ip.dst, 300)),
        LinkPair { src: A, dst: B },
    ));
    for (sequence, (packet, link)) in (0..).zip(&packets) {
        let frames = frames(packet, *link, sequence);
        // Fragments before the last carry no packet yet.
        expectations.extend(vec![String::from("1||||||||||||"); frames.len() - 1]);
        expectations.push(expected(packet));
        all.extend(frames);
    }
    assert!(all.len() > packets.len() + 2, "fragments too");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("emitted.pcap");
    write(&path, &all);
    let Some(lines) = tshark(&path, &FIELDS) else {
        return;
    };
    assert_eq!(lines.len(), all.len());
    for ((line, expected), frame) in lines.iter().zip(&expectations).zip(&all) {
        assert_eq!(line, expected, "{frame:02x?}");
    }
}

const ROOT: &str = "fd6d:6f74:6574:1::1";

/// A frame that routing emits, and what tshark should say of some of its fields.
struct Routed {
    name: &'static str,
    frame: Vec<u8>,
    fields: Vec<(&'static str, String)>,
}

fn routed<const N: usize>(
    name: &'static str,
    frame: Vec<u8>,
    fields: [(&'static str, &str); N],
) -> Routed {
    let fields = fields.map(|(field, value)| (field, value.to_owned()));
    Routed {
        name,
        frame,
        fields: fields.to_vec(),
    }
}

/// An IPv6 header between link-local addresses.
fn between(src: LinkAddr, dst: Ipv6Addr, next_header: u8) -> ipv6::Header {
    ipv6::Header {
        traffic_class: TrafficClass(0),
        flow_label: 0,
        payload_len: 0,
        next_header,
        hop_limit: 64,
        src: on("fe80::", src),
        dst,
    }
}

fn one_frame(packet: &[u8]) -> Vec<u8> {
    let [frame] = frames(packet, LinkPair { src: A, dst: B }, 1)
        .try_into()
        .unwrap();
    frame
}

/// A control message from A to all RPL nodes.
fn control(message: Message<'_>, options: &[RplOption<'_>]) -> Vec<u8> {
    let header = between(A, addr("ff02::1a"), icmpv6::NEXT_HEADER);
    let mut out = [0; 300];
    let mut w = Writer::new(&mut out);
    message.emit(&mut w).unwrap();
    for option in options {
        option.emit(&mut w).unwrap();
    }
    let len = w.written();
    icmpv6::fill_checksum(&header.src, &header.dst, &mut out[..len]);
    one_frame(&packet(&header, &out[..len]))
}

fn dio() -> Message<'static> {
    Message::Dio(Dio {
        instance: 0x1e,
        version: 241,
        rank: 0x0280,
        grounded: true,
        mode: mode::NON_STORING,
        preference: 5,
        dtsn: 242,
        dodag: addr(ROOT),
        options: RplOptions::default(),
    })
}

fn dios() -> Vec<Routed> {
    let etx = Metrics::etx_object(0x0180);
    let configuration = Configuration {
        flags: configuration::COMPRESSED | configuration::RPI_0X23 | 3,
        interval_doublings: 8,
        interval_min: 12,
        redundancy: 10,
        max_rank_increase: 1024,
        min_hop_rank_increase: 256,
        objective: 1,
        default_lifetime: 30,
        lifetime_unit_s: 60,
    };
    let information = PrefixInformation {
        prefix_len: 64,
        on_link: false,
        autonomous: true,
        router_address: true,
        valid_lifetime_s: 7200,
        preferred_lifetime_s: 3600,
        prefix: addr(ROOT),
    };
    let route = RouteInformation {
        prefix_len: 32,
        preference: 3,
        lifetime_s: 600,
        prefix: addr("2001:db8::"),
    };
    vec![
        routed(
            "DIO",
            control(
                dio(),
                &[
                    RplOption::Configuration(configuration),
                    RplOption::Metrics(Metrics::parse(&etx).unwrap()),
                ],
            ),
            [
                ("icmpv6.rpl.dio.instance", "30"),
                ("icmpv6.rpl.dio.version", "241"),
                ("icmpv6.rpl.dio.rank", "640"),
                ("icmpv6.rpl.dio.flag.g", "1"),
                ("icmpv6.rpl.dio.flag.mop", "0x01"),
                ("icmpv6.rpl.dio.flag.preference", "5"),
                ("icmpv6.rpl.dio.dtsn", "242"),
                ("icmpv6.rpl.dio.dagid", ROOT),
                ("icmpv6.rpl.opt.config.pcs", "3"),
                ("icmpv6.rpl.opt.config.interval_double", "8"),
                ("icmpv6.rpl.opt.config.interval_min", "12"),
                ("icmpv6.rpl.opt.config.redundancy", "10"),
                ("icmpv6.rpl.opt.config.max_rank_inc", "1024"),
                ("icmpv6.rpl.opt.config.min_hop_rank_inc", "256"),
                ("icmpv6.rpl.opt.config.ocp", "1"),
                ("icmpv6.rpl.opt.config.def_lifetime", "30"),
                ("icmpv6.rpl.opt.config.lifetime_unit", "60"),
                ("icmpv6.rpl.opt.metric.type", "7"),
                ("icmpv6.rpl.opt.metric.flag.c", "0"),
                ("icmpv6.rpl.opt.metric.flag.r", "0"),
                ("icmpv6.rpl.opt.metric.flag.a", "0"),
                ("icmpv6.rpl.opt.metric.etx.object.etx", "384"),
            ],
        ),
        routed(
            "prefixes",
            control(
                dio(),
                &[RplOption::Prefix(information), RplOption::Route(route)],
            ),
            [
                ("icmpv6.rpl.opt.prefix.length", "64"),
                ("icmpv6.rpl.opt.prefix.flag.l", "0"),
                ("icmpv6.rpl.opt.config.flag.a", "1"),
                ("icmpv6.rpl.opt.config.flag.r", "1"),
                ("icmpv6.rpl.opt.prefix.valid_lifetime", "7200"),
                ("icmpv6.rpl.opt.prefix.preferred_lifetime", "3600"),
                ("icmpv6.rpl.opt.prefix", ROOT),
                ("icmpv6.rpl.opt.route.prefix_length", "32"),
                ("icmpv6.rpl.opt.route.pref", "3"),
                ("icmpv6.rpl.opt.route.lifetime", "600"),
                ("icmpv6.rpl.opt.route.prefix", "2001:db8::"),
            ],
        ),
    ]
}

fn other_messages() -> Vec<Routed> {
    let target = Target {
        prefix_len: 128,
        prefix: addr("fd6d:6f74:6574:1::7"),
    };
    let transit = Transit {
        external: true,
        path_control: 0x80,
        sequence: 243,
        lifetime: 20,
        parent: Some(addr("fd6d:6f74:6574:1::5")),
    };
    let dao = Dao {
        instance: 0x1e,
        ack_requested: true,
        sequence: 9,
        dodag: Some(addr(ROOT)),
        options: RplOptions::default(),
    };
    let ack = DaoAck {
        instance: 0x1e,
        sequence: 9,
        status: 130,
        dodag: None,
        options: RplOptions::default(),
    };
    let solicited = Solicited {
        instance: Some(0x1e),
        dodag: Some(addr(ROOT)),
        version: None,
    };
    vec![
        routed(
            "DAO",
            control(
                Message::Dao(dao),
                &[
                    RplOption::Target(target),
                    RplOption::Descriptor(0x0102_0304),
                    RplOption::Transit(transit),
                ],
            ),
            [
                ("icmpv6.rpl.dao.instance", "30"),
                ("icmpv6.rpl.dao.flag.k", "1"),
                ("icmpv6.rpl.dao.flag.d", "1"),
                ("icmpv6.rpl.dao.sequence", "9"),
                ("icmpv6.rpl.dao.dodagid", ROOT),
                ("icmpv6.rpl.opt.target.prefix_length", "128"),
                ("icmpv6.rpl.opt.target.prefix", "fd6d:6f74:6574:1::7"),
                ("icmpv6.rpl.opt.targetdesc.descriptor", "0x01020304"),
                ("icmpv6.rpl.opt.transit.flag.e", "1"),
                ("icmpv6.rpl.opt.transit.pathctl", "128"),
                ("icmpv6.rpl.opt.transit.pathseq", "243"),
                ("icmpv6.rpl.opt.transit.pathlifetime", "20"),
                ("icmpv6.rpl.opt.transit.parent", "fd6d:6f74:6574:1::5"),
            ],
        ),
        routed(
            "DAO-ACK",
            control(Message::DaoAck(ack), &[]),
            [
                ("icmpv6.rpl.daoack.instance", "30"),
                ("icmpv6.rpl.daoack.flag.d", "0"),
                ("icmpv6.rpl.daoack.sequence", "9"),
                ("icmpv6.rpl.daoack.status", "130"),
            ],
        ),
        routed(
            "DIS",
            control(
                Message::Dis(Dis::default()),
                &[RplOption::Solicited(solicited)],
            ),
            [
                ("icmpv6.rpl.opt.solicited.instance", "30"),
                ("icmpv6.rpl.opt.solicited.flag.v", "0"),
                ("icmpv6.rpl.opt.solicited.flag.i", "1"),
                ("icmpv6.rpl.opt.solicited.flag.d", "1"),
                ("icmpv6.rpl.opt.solicited.dodagid", ROOT),
            ],
        ),
    ]
}

fn registration() -> Routed {
    let registration = NdpOption::AddressRegistration(AddressRegistration {
        status: 2,
        opaque: 0,
        opaque_use: 0,
        reachable: true,
        transaction: Some(7),
        lifetime_min: 300,
        owner: &[0x02, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 1],
    });
    let header = between(A, on("fe80::", B), icmpv6::NEXT_HEADER);
    let mut options = [0; 16];
    registration.emit(&mut Writer::new(&mut options)).unwrap();
    let message = icmpv6::Message::NeighborAdvertisement {
        flags: 0x40,
        target: on(MESH, A),
        options: NdpOptions::parse(&options).unwrap(),
    };
    let mut out = [0; 100];
    let len = message.emit(&mut out).unwrap();
    icmpv6::fill_checksum(&header.src, &header.dst, &mut out[..len]);
    routed(
        "EARO",
        one_frame(&packet(&header, &out[..len])),
        [
            ("icmpv6.opt.aro.status", "2"),
            ("icmpv6.opt.aro.registration_lifetime", "300"),
            ("icmpv6.opt.aro.eui64", "02:4d:6f:74:65:74:00:01"),
        ],
    )
}

const RPI: Rpi = Rpi {
    down: true,
    rank_error: false,
    forwarding_error: true,
    instance: 0x1e,
    sender_rank: 0x0280,
};

/// The path of the packets that are routed: the first is their destination now.
fn path() -> [Ipv6Addr; 4] {
    let second = LinkAddr::Short(0x0203);
    [
        on(MESH, B),
        on(MESH, SHORT),
        on(MESH, second),
        addr("2001:db8::9"),
    ]
}

fn source_route(next_header: u8) -> Vec<u8> {
    let [first, rest @ ..] = path();
    let mut out = [0; 100];
    let mut w = Writer::new(&mut out);
    source_route::emit(&mut w, next_header, &first, &rest).unwrap();
    let len = w.written();
    out[..len].to_vec()
}

/// Extension headers as they are.
fn headers() -> Vec<Routed> {
    let datagram = udp(addr(ROOT), path()[3], (40000, 0xf0a0));
    let header = ipv6::Header {
        src: addr(ROOT),
        ..between(A, path()[0], next_header::ROUTING)
    };
    let route = packet(&header, &[source_route(17), datagram].concat());
    let options = |kind: u8| {
        let header = ipv6::Header {
            next_header: next_header::HOP_BY_HOP,
            ..between(A, on("fe80::", B), 0)
        };
        let datagram = udp(header.src, header.dst, (40000, 0xf0a0));
        one_frame(&packet(
            &header,
            &[RPI.header(17, kind).to_vec(), datagram].concat(),
        ))
    };
    let option = [
        ("ipv6.opt.rpl.flag.o", "1"),
        ("ipv6.opt.rpl.flag.r", "0"),
        ("ipv6.opt.rpl.flag.f", "1"),
        ("ipv6.opt.rpl.instance_id", "0x1e"),
        ("ipv6.opt.rpl.sender_rank", "0x0280"),
        ("udp.checksum.status", "1"),
    ];
    let [_, second, third, last] = path();
    vec![
        routed("option 0x63", options(TYPE_6553), option),
        // This type is not known to every tshark.
        routed(
            "option 0x23",
            options(TYPE_9008),
            [("udp.checksum.status", "1")],
        ),
        routed(
            "source route",
            one_frame(&route),
            [
                ("ipv6.routing.type", "3"),
                ("ipv6.routing.segleft", "3"),
                ("ipv6.routing.rpl.cmprI", "9"),
                ("ipv6.routing.rpl.cmprE", "0"),
                (
                    "ipv6.routing.rpl.full_address",
                    &format!("{second},{third},{last}"),
                ),
                ("udp.checksum.status", "1"),
            ],
        ),
    ]
}

/// 6LoWPAN routing headers in front of a packet for the last of the path.
fn compressed_headers() -> Vec<Routed> {
    let inner = ipv6::Header {
        src: addr("fd6d:6f74:6574::1"),
        ..between(A, path()[3], udp::NEXT_HEADER)
    };
    let inner = packet(&inner, &udp(inner.src, inner.dst, (40000, 0xf0a0)));
    let mut headers = [0; 100];
    let done = compress(
        &inner,
        LinkPair { src: A, dst: B },
        &contexts(),
        &mut headers,
    )
    .unwrap();
    let rest = [
        &headers[..done.compressed_len],
        &inner[done.uncompressed_len..],
    ]
    .concat();
    let frame = |emit: &dyn Fn(&mut Writer<'_>)| {
        let mut out = [0; 100];
        let mut w = Writer::new(&mut out);
        emit(&mut w);
        let len = w.written();
        let payload = [&[lorh::PAGE_1], &out[..len], &rest].concat();
        let mut psdu = [0; 127];
        let mac = Header::data(0x4d54, B, A, 1);
        let len = mac.emit_frame(&payload, &mut psdu).unwrap();
        psdu[..len].to_vec()
    };
    let root = addr(ROOT);
    let short = Rpi {
        instance: 0,
        sender_rank: 0x0300,
        ..RPI
    };
    vec![
        routed(
            "down",
            frame(&|w| {
                lorh::emit_segments(w, &root, &path()).unwrap();
                lorh::emit_rpi(w, RPI).unwrap();
                lorh::emit_tunnel(w, 63, &root, &root).unwrap();
            }),
            [
                ("6lowpan.pagenb", "1"),
                ("6lowpan.rhtype", "0x0003,0x0001,0x0004,0x0005,0x0006"),
                ("6lowpan.6loRH.bitO", "1"),
                ("6lowpan.6loRH.bitF", "1"),
                ("6lowpan.6loRH.bitI", "0"),
                ("6lowpan.6loRH.bitK", "0"),
                ("6lowpan.rpl.instance", "0x1e"),
                ("6lowpan.rhhop.limit", "63"),
                ("udp.checksum.status", "1"),
            ],
        ),
        routed(
            "up",
            frame(&|w| {
                lorh::emit_rpi(w, short).unwrap();
                lorh::emit_tunnel(w, 64, &on(MESH, A), &root).unwrap();
            }),
            [
                ("6lowpan.rhtype", "0x0005,0x0006"),
                ("6lowpan.6loRH.bitI", "1"),
                ("6lowpan.6loRH.bitK", "1"),
                ("6lowpan.rhElength", "9"),
                ("ipv6.dst", "2001:db8::9"),
                ("udp.checksum.status", "1"),
            ],
        ),
    ]
}

#[test]
fn tshark_reads_what_routing_emits() {
    let mut all = dios();
    all.extend(other_messages());
    all.push(registration());
    all.extend(headers());
    all.extend(compressed_headers());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("routing.pcap");
    let frames: Vec<_> = all.iter().map(|routed| routed.frame.clone()).collect();
    write(&path, &frames);
    let mut fields = vec!["wpan.fcs_ok", "_ws.malformed"];
    for (field, _) in all.iter().flat_map(|routed| &routed.fields) {
        if !fields.contains(field) {
            fields.push(field);
        }
    }
    let Some(lines) = tshark(&path, &fields) else {
        return;
    };
    assert_eq!(lines.len(), all.len());
    let mut wrong = Vec::new();
    for (line, routed) in lines.iter().zip(&all) {
        let values: Vec<&str> = line.split('|').collect();
        if values[..2] != ["1", ""] {
            wrong.push(format!("{}: {line}", routed.name));
        }
        for (field, expected) in &routed.fields {
            let at = fields.iter().position(|known| known == field).unwrap();
            if number(values[at]) != number(expected) {
                wrong.push(format!("{}: {field} is {}", routed.name, values[at]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The payloads of a packet's frames, as a node in a DODAG cuts it.
fn routed_payloads(packet: &[u8], rpi: Option<Rpi>, is_compressed: bool, tag: u16) -> Vec<Vec<u8>> {
    let mut contexts = contexts();
    contexts.set_routing(Some(Routing {
        root: addr(ROOT),
        is_compressed,
        option_type: TYPE_6553,
    }));
    let mut buffer = [0; 1500];
    buffer[..packet.len()].copy_from_slice(packet);
    let mut outgoing = Fragmenter::new(&mut buffer);
    let forms = HeaderForms {
        rpi,
        ..HeaderForms::default()
    };
    let mac = Header::data(0x4d54, B, A, 1);
    let (len, len_max) = (packet.len(), mac.payload_len_max());
    let link = LinkPair { src: A, dst: B };
    outgoing
        .start(len, forms, link, tag, len_max, FIRST_SLACK)
        .unwrap();
    let mut payload = [0; 127];
    let mut payloads = Vec::new();
    while let Some(len) = outgoing.next(&contexts, &mut payload).unwrap() {
        payloads.push(payload[..len].to_vec());
    }
    payloads
}

fn data_frame(payload: &[u8]) -> Vec<u8> {
    let mut psdu = [0; 127];
    let mac = Header::data(0x4d54, B, A, 1);
    let len = mac.emit_frame(payload, &mut psdu).unwrap();
    psdu[..len].to_vec()
}

/// A first fragment without the 6LoWPAN routing headers in it: this tshark knows them only in front
/// of whole packets.
fn without_routing_headers(payload: &[u8]) -> Vec<u8> {
    let head = lowpan_frag::FIRST_LEN;
    match lowpan_frag::Header::parse(payload) {
        Ok((header, [lorh::PAGE_1, headers @ ..])) if header.is_first() => {
            let (_, rest) = RoutingHeaders::parse(headers).unwrap();
            [&payload[..head], rest].concat()
        }
        _ => payload.to_vec(),
    }
}

/// Fragments of routed packets: what tshark puts together has its lengths and checksums right.
#[test]
fn tshark_reassembles_routed_fragments() {
    let inner_to = |to: Ipv6Addr, len: usize| {
        let header = ipv6::Header {
            src: addr("2001:db8::1"),
            next_header: tcp::NEXT_HEADER,
            ..between(A, to, tcp::NEXT_HEADER)
        };
        packet(&header, &segment(header.src, to, len))
    };
    let [first, .., last] = path();
    let mut all = Vec::new();
    let mut expectations = Vec::new();
    for (len, rpi) in [
        (20, Some(RPI)),
        (300, None),
        (301, Some(RPI)),
        (1180, Some(RPI)),
    ] {
        let inner = inner_to(last, len);
        let outer = ipv6::Header {
            src: addr(ROOT),
            ..between(A, first, next_header::ROUTING)
        };
        let tunnel = packet(
            &outer,
            &[source_route(next_header::IPV6), inner.clone()].concat(),
        );
        let up = ipv6::Header {
            src: on(MESH, A),
            ..between(A, addr("fd6d:6f74:6574::1"), tcp::NEXT_HEADER)
        };
        let up = packet(&up, &segment(up.src, up.dst, len));
        for (name, packet, is_compressed, payload_len, dst) in [
            // tshark shows the inner packet alone where 6LoRH stands for the outer one.
            (
                "down, 6LoRH",
                &tunnel,
                true,
                inner.len() - 40,
                last.to_string(),
            ),
            (
                "down, next headers",
                &tunnel,
                false,
                tunnel.len() - 40 + rpi.map_or(0, |_| 8),
                format!("{first},{last}"),
            ),
            (
                "up, 6LoRH",
                &up,
                true,
                up.len() - 40,
                "fd6d:6f74:6574::1".to_owned(),
            ),
            (
                "up, next headers",
                &up,
                false,
                up.len() - 40 + rpi.map_or(0, |_| 8),
                "fd6d:6f74:6574::1".to_owned(),
            ),
        ] {
            let tag = expectations.len() as u16;
            let payloads = routed_payloads(packet, rpi, is_compressed, tag);
            for _ in 1..payloads.len() {
                expectations.push((name, String::from("1||||")));
            }
            let payload_len = match is_compressed || packet == &up {
                true => payload_len.to_string(),
                false => format!("{payload_len},{}", inner.len() - 40),
            };
            expectations.push((name, format!("1|{dst}|{payload_len}|1|")));
            all.extend(payloads);
        }
    }
    assert!(all.len() > 80, "{} frames", all.len());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("as-sent.pcap");
    let frames: Vec<_> = all.iter().map(|payload| data_frame(payload)).collect();
    write(&path, &frames);
    let Some(lines) = tshark(&path, &["wpan.fcs_ok", "_ws.malformed"]) else {
        return;
    };
    assert!(lines.iter().all(|line| line == "1|"), "{lines:?}");
    let path = folder.path().join("fragments.pcap");
    let without = |payload: &Vec<u8>| data_frame(&without_routing_headers(payload));
    let frames: Vec<_> = all.iter().map(without).collect();
    write(&path, &frames);
    let fields = [
        "wpan.fcs_ok",
        "ipv6.dst",
        "ipv6.plen",
        "tcp.checksum.status",
        "_ws.malformed",
    ];
    let Some(lines) = tshark(&path, &fields) else {
        return;
    };
    assert_eq!(lines.len(), all.len());
    for (line, (name, expected)) in lines.iter().zip(&expectations) {
        assert_eq!(line, expected, "{name}");
    }
}

/// A field's value, in decimal where tshark writes it in hexadecimal.
fn number(text: &str) -> String {
    let digits = text.strip_prefix("0x");
    let value = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
    value.map_or_else(|| text.to_owned(), |value| value.to_string())
}
