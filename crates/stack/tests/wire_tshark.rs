//! What this stack emits, as tshark reads it.

use std::fs::File;
use std::net::Ipv6Addr;
use std::path::Path;
use std::process::Command;

use motet::lowpan::{Contexts, LinkPair, compress};
use motet::wire::ieee802154::Header;
use motet::wire::ipv6::{self, TrafficClass};
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
        if walk.next_header() != ipv6::next_header::IPV6 {
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
