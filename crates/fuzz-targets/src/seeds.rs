//! Inputs to start from, made by our own emitters.

mod routing;

use std::net::Ipv6Addr;

use motet::lowpan::fragment::Fragmenter;
use motet::lowpan::{Contexts, HeaderForms, LinkPair, compress};
use motet::random::Rng;
use motet::wire::icmpv6::{self, Echo, Message};
use motet::wire::ipv6::{self, TrafficClass};
use motet::wire::tcp::{Flags, Header, Options, SackBlock, fill_checksum};
use motet::wire::{LinkAddr, cursor::Writer, ieee802154, lorh, tcphc, udp};

use crate::wire::{HOST, MESH};

/// For [`crate::wire::run`]: the number of a parser, then the bytes to parse.
pub(crate) fn wire() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    let mut seed = |parser: u8, bytes: &[u8]| seeds.push([&[parser], bytes].concat());
    for (n, frame) in frames().iter().enumerate() {
        seed(0, &frame[..frame.len() - 2]);
        let (_, payload) = ieee802154::Header::parse(&frame[..frame.len() - 2]).expect("ours");
        match n {
            0 | 1 => seed(1, payload),
            _ => {
                seed(2, payload);
                seed(3, payload.get(10..).unwrap_or_default());
            }
        }
    }
    for packet in packets() {
        seed(4, &packet);
        let upper = &packet[ipv6::HEADER_LEN..];
        match packet[6] {
            58 => seed(5, upper),
            17 => seed(6, upper),
            _ => seed(7, upper),
        }
    }
    for segment in segments() {
        let (header, _) = Header::parse(&segment).expect("ours");
        let tcp = &segment[..header.header_len()];
        let mut out = [0; 100];
        let mut w = Writer::new(&mut out);
        let full = tcphc::Header::Full { cid: 3, tcp };
        full.emit(&mut w).expect("it fits");
        let len = w.written();
        seed(8, &out[..len]);
    }
    for message in routing::messages() {
        seed(9, &[&message[1..2], &message[4..]].concat());
    }
    let [option, route, headers] = routing::headers();
    seed(10, &option);
    seed(11, &route);
    seed(12, &headers);
    seeds
}

/// For [`crate::wire::headers`]: flags, then a frame's payload.
pub(crate) fn headers() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for packet in packets() {
        for flags in [0, 3, 8 | 2] {
            seeds.push([&[flags], &compressed(&packet)[..]].concat());
        }
        seeds.push([&[0, 0x41], &packet[..]].concat());
        // A tunnel along a source route, and a packet in a DODAG of the other form.
        let [_, _, routing] = routing::headers();
        let headers = compressed(&packet);
        for flags in [128 | 64 | 8, 64 | 8] {
            let parts = [&[flags, lorh::PAGE_1], &routing[..], &headers[..]];
            seeds.push(parts.concat());
        }
    }
    seeds
}

/// For [`crate::node::run`]: each frame or packet as one event.
pub(crate) fn node() -> Vec<Vec<u8>> {
    let frames = frames();
    let mut seeds: Vec<Vec<u8>> = frames
        .iter()
        .map(|frame| node_input([&frame[..]]))
        .collect();
    seeds.push(node_input(frames.iter().map(Vec::as_slice)));
    for packet in packets() {
        let len = (packet.len() as u16).to_be_bytes();
        seeds.push([&[0, 10, 4, len[0], len[1]], &packet[..]].concat());
    }
    seeds
}

/// For [`crate::serial::run`]: each packet in a frame, whole or byte by byte, and all of them
/// behind noise, an overlong frame and a wrong escape.
pub(crate) fn serial() -> Vec<Vec<u8>> {
    let framed = |packet: &[u8], op: u8| {
        let len = packet.len().min(255);
        [&[10, op, len as u8], &packet[..len], &[255]].concat()
    };
    let mut seeds = Vec::new();
    for packet in packets() {
        seeds.push(framed(&packet, 0xfc));
        seeds.push(framed(&packet, 0));
    }
    let mut all: Vec<u8> = vec![0, 2, 4, 1, 2, 3, 0xc0, 9];
    for packet in packets() {
        all.extend(framed(&packet, 20 << 2));
        all.extend([0, 0xfd, 0x55, 8, 0, 3]);
        all.extend([0, 0xfe, 5, 0xc0, 1, 0xdb, 0, 0xdb, 1]);
    }
    seeds.push(all);
    seeds
}

/// For [`crate::ble::run`]: a channel that opens, each packet as an SDU on it, credits, what closes
/// it, and signals that cannot be.
pub(crate) fn ble() -> Vec<Vec<u8>> {
    let opened = |role: u8, mps: u8| match role {
        0 => vec![0, 224, 0, 1, 1, 1, mps, 200],
        _ => vec![1, 224, 1, 1, mps, 200, 0],
    };
    let sdu = |packet: &[u8]| {
        // IPv6 as it is: dispatch 0x41.
        let len = packet.len().min(250);
        [&[6, len as u8 + 1, 0x41], &packet[..len], &[0, 10, 9]].concat()
    };
    let mut seeds = Vec::new();
    for packet in packets() {
        seeds.push([opened(0, 45), sdu(&packet)].concat());
        seeds.push([opened(1, 255), sdu(&packet)].concat());
    }
    let mut all = opened(0, 45);
    for packet in packets() {
        all.extend(sdu(&packet));
        all.extend([2, 0, 9, 11, 4, 0, 10, 15]);
    }
    for tail in [
        &[3, 11, 9, 9][..],
        &[6, 3, 1, 2, 3, 200, 4],
        &[2, 255, 255, 2, 255, 255, 4],
        &[8, 0, 4, 3, 1, 2, 3, 9, 0, 2, 1, 2],
        &[5, 6, 0x17, 3, 2, 0, 0x23, 0, 12, 13, 0, 251],
        // Headers that are cut: by a packet of three bytes, then by the next PDU.
        &[15, 6, 6, 3, 1, 2, 3, 0, 15, 2, 5, 6, 0x17, 3, 2, 0, 0x23, 0],
        &[9, 1, 3, 1, 0, 0x40, 9, 1, 7, 2, 0, 0x40, 0, 1, 0, 9],
    ] {
        let mut seed = all.clone();
        seed.extend_from_slice(tail);
        seeds.push(seed);
    }
    seeds
}

/// The input of the target `node` that hears `frames`, FCS and all, one after the other.
pub fn node_input<'a>(frames: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut input = vec![0];
    for frame in frames {
        let frame = &frame[..frame.len().min(127)];
        input.extend([50, 5 | 8, frame.len() as u8]);
        input.extend(frame);
    }
    input
}

/// For targets whose input is a program: chance, in lengths from nothing to a long one.
pub(crate) fn programs() -> Vec<Vec<u8>> {
    let mut rng = Rng::from_seed([11, 12]);
    let lengths = [0, 4, 16, 64, 64, 200, 200, 600];
    lengths
        .iter()
        .map(|len| (0..*len).map(|_| small(&mut rng)).collect())
        .collect()
}

/// For [`crate::connection::run`]: chance, and connections that end with bytes in every buffer
/// and are followed by others.
pub(crate) fn connections() -> Vec<Vec<u8>> {
    let mut seeds = programs();
    let text = |seq, len| [0, seq, len, 1];
    let ways: [&[u8]; 4] = [
        &[],                   // aborted
        &[7, 0, 0, 1],         // reset by the peer
        &[15, 1],              // closed with unread bytes
        &[15, 6, 15, 7, 0, 1], // the listener closed; a leap of the clock
    ];
    for (passive, slices, silent) in [(0, 0, 0), (0, 1, 8), (1, 0, 8), (1, 1, 0)] {
        for way in ways {
            let mut seed = vec![2 | 4 | 8 | passive, 0, 1, 0, 0, 0, slices];
            seed.extend([12, 100, 15, 5, 40]);
            for (seq, len) in [(0, 20), (100, 30), (240, 30)] {
                seed.extend(text(seq, len));
            }
            seed.extend(way);
            let again = 3 | silent | passive << 4 | 32;
            seed.extend([15, again, 9, 9, 9, 9]);
            seed.extend([text(50, 10), text(0, 25)].concat());
            seed.extend([13, 60, 12, 10, 15, 4, 2, 5, 100, 0, 0, 8, 15, 1]);
            seeds.push(seed);
        }
    }
    seeds
}

/// For [`crate::mote::run`]: chance, and a program for each thing that a mote does.
pub(crate) fn mote() -> Vec<Vec<u8>> {
    let mut seeds = programs();
    let text = [0x55; 250];
    let block = |head: &[u8], body: &[u8]| [head, &[body.len() as u8], body].concat();
    // Fragments to be passed on, each fired by the next unless its backoff ends first; then whole
    // frames, heard by their head. Several times, a second apart, each with a tag of its own.
    let mut relay = vec![0];
    for round in 0..6 {
        for (frame, op) in frames().iter().zip([128, 128 | 64, 0, 64, 0]) {
            let (_, payload) = ieee802154::Header::parse(&frame[..frame.len() - 2]).expect("ours");
            let mut payload = payload.to_vec();
            if payload[0] & 0xc0 == 0xc0 {
                payload[3] ^= round;
            }
            relay.extend(block(&[op], &payload));
        }
        relay.extend([2, 3, 232]);
    }
    seeds.push(relay);
    // A connection, another in its buffers that the network ends, and one to smaller segments.
    let mut connects = vec![0, 5, 0, 4, 0x12, 0];
    connects.extend(block(&[5, 1], &text));
    connects.extend([4, 0x10, 0, 5, 4, 5, 0, 3, 0, 4, 60, 5, 4, 5, 0, 4, 0x12, 0]);
    for _ in 0..6 {
        connects.extend(block(&[5, 1], &text));
    }
    connects.extend([3 | 8, 5, 0, 60, 4, 0x10, 0]);
    // The same with a radio that makes attempts by itself: busy, without an ACK, then in order.
    let mut attempts = vec![128 | 64 | 32, 7, 27, 2, 0, 50, 7, 15, 2, 0, 50, 7, 255];
    attempts.extend(&connects[1..]);
    seeds.extend([connects, attempts]);
    // A connection accepted, and closed by both.
    let mut accepts = vec![0, 5, 8, 4 | 8, 0x02, 0];
    accepts.extend(block(&[4, 0x10], b"hello"));
    accepts.extend([5, 2, 5, 3, 4, 0x11, 0, 5, 4]);
    seeds.push(accepts);
    // Datagrams: for open ports, closed ones, a wrong one, more than fit, and one of our own.
    let mut datagrams = vec![0];
    for op in [1, 1 | 16, 1 | 32, 1 | 128, 1] {
        datagrams.extend(block(&[op], &text[..200]));
    }
    datagrams.extend([5, 6, 5, 6, 5, 6]);
    datagrams.extend(block(&[5, 5], b"answer"));
    seeds.push(datagrams);
    // Packets for another mote while the radio does not send, and then does.
    let mut queue = vec![0, 7, 1];
    for _ in 0..14 {
        queue.extend(block(&[1 | 8 | 64], &text[..60]));
    }
    queue.extend([7, 31, 2, 1, 0]);
    seeds.push(queue);
    // A router with a prefix.
    let mut prefix = vec![
        3, 4, 64, 0x40, 0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff, 0, 0, 0, 0,
    ];
    prefix.extend(MESH.octets());
    seeds.push([vec![0, 2, 0, 50], block(&[6, 7, 8], &prefix), vec![2, 3, 0]].concat());
    seeds
}

/// A byte that is small half of the time: choices lie there.
fn small(rng: &mut Rng) -> u8 {
    match rng.below(2) {
        0 => rng.below(8) as u8,
        _ => rng.below(256) as u8,
    }
}

/// Scenarios: one of each section.
pub(crate) fn scenarios() -> Vec<Vec<u8>> {
    let texts = [
        "[topology]\nshape = \"chain\"\nhops = 3\n\n[[flow]]\nfrom = 3\nto = \"router\"\nbytes = 1000\n",
        "seed = 7\nduration_s = 5\n\n[radio]\nloss = 0.1\n\n[sweep]\n\"radio.loss\" = [0.0, 0.1]\n",
        "[topology]\nshape = \"grid\"\nrows = 2\ncolumns = 3\n",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Topologies of OTNS, Cooja and TOSSIM, and tables of places and links.
pub(crate) fn topologies() -> Vec<Vec<u8>> {
    let texts = [
        "network:\n    pos-shift: [10, 0, 0]\nnodes:\n    - id: 7\n      type: sed\n      pos: [100, 100, 0]\n    \
         - {id: 3, type: br, pos: [200, 100, 30]}\n",
        "<simconf><simulation><title>Grid</title><radiomedium>org.contikios.cooja.radiomediums.UDGM\
         <transmitting_range>50</transmitting_range><success_ratio_rx>0.9</success_ratio_rx></radiomedium>\
         <motetype>x<identifier>m1</identifier><description>Sink</description></motetype>\
         <mote><interface_config>a.Position<x>0</x><y>0</y></interface_config>\
         <interface_config>a.MoteID<id>1</id></interface_config>\
         <motetype_identifier>m1</motetype_identifier></mote>\
         <mote><interface_config>a.Position<pos x=\"40\" y=\"0\"/></interface_config></mote>\
         </simulation></simconf>",
        "<simconf><simulation><radiomedium>org.contikios.cooja.radiomediums.DirectedGraphMedium\
         <edge><source>0</source><dest>x<radio>1</radio><ratio>0.8</ratio></dest></edge></radiomedium>\
         <mote><interface_config>Position<x>0</x><y>0</y></interface_config></mote>\
         <mote><interface_config>Position<x>1</x><y>0</y></interface_config></mote></simulation></simconf>",
        "gain 10 2 -65.0\ngain 2 10 -66\nnoise 2 -105 4\n",
        "id,x,y,floor\n1,0,0,2\n2,3.5,4,2\n",
        "src;dst;PDR\na;b;1.0\nb;a;0.5\n",
        "from,to,rssi\n1,2,-70\n",
        "from,to,etx\n1,2,1.5\n",
    ];
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// Connectivity traces in the K7 format.
pub(crate) fn traces() -> Vec<Vec<u8>> {
    let head = "{\"location\": \"here\", \"node_count\": 2}\n\
                datetime,src,dst,channel,mean_rssi,pdr,tx_count\n";
    let rows = "2018-01-11 16:32:22,0,1,20,-79.5,1.0,100\n\
                2018-01-11 16:42:22,1,0,20,-80.5,0.75,100\n";
    [head.to_owned(), format!("{head}{rows}")]
        .map(String::into_bytes)
        .into()
}

/// Scripts: a handshake, and one of each kind of line.
pub(crate) fn scripts() -> Vec<Vec<u8>> {
    let open = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 bind(3, ..., ...) = 0\n\
                +0 listen(3, 1) = 0\n+0 < S 0:0(0) win 8000 <mss 1000,sackOK,eol,eol>\n\
                +0 > S. 0:0(0) ack 1 <...>\n+.1 < . 1:1(0) ack 1 win 8000\n\
                +0 accept(3, ..., ...) = 4\n";
    let more = "+0 write(4, ..., 100) = 100\n+0 > P. 1:101(100) ack 1\n\
                +.1 < [1:101(100)] icmp unreachable packet_too_big mtu 1280\n\
                +0 `sysctl -w net.inet.tcp.sack.enable=1`\n\
                +0 %{ assert tcpi_state == TCP_ESTABLISHED }%\n+0...1 read(4, ..., 10) = 10\n";
    [
        open.to_owned(),
        format!("--tolerance_usecs=1000\n{open}{more}"),
    ]
    .map(String::into_bytes)
    .into()
}

/// Captures: our frames with their FCS, the packets in them, and both in the newer format.
pub(crate) fn captures() -> Vec<Vec<u8>> {
    let (frames, packets) = (frames(), packets());
    vec![
        pcap(LINKTYPE_IEEE802_15_4, &frames),
        pcap(LINKTYPE_RAW, &packets),
        pcapng(LINKTYPE_IEEE802_15_4, &frames),
        pcapng(LINKTYPE_RAW, &packets),
        pcap(LINKTYPE_IEEE802_15_4, &[]),
    ]
}

/// A capture of 802.15.4 frames, which end in their FCS.
pub(crate) fn air_capture(frames: &[Vec<u8>]) -> Vec<u8> {
    pcap(LINKTYPE_IEEE802_15_4, frames)
}

/// A file of the pcap format: one record per frame, a millisecond apart.
fn pcap(link_type: u16, frames: &[Vec<u8>]) -> Vec<u8> {
    let words = [0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65_535, u32::from(link_type)];
    let mut out: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    for (n, frame) in frames.iter().enumerate() {
        let len = frame.len() as u32;
        for word in [1_500_000_000, 1000 * n as u32, len, len] {
            out.extend(word.to_le_bytes());
        }
        out.extend(frame);
    }
    out
}

/// A file of the pcapng format: a section, an interface, a packet block per frame.
fn pcapng(link_type: u16, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut block = |kind: u32, body: &[u8]| {
        let padding = body.len().next_multiple_of(4) - body.len();
        let len = (12 + body.len() + padding) as u32;
        out.extend(kind.to_le_bytes());
        out.extend(len.to_le_bytes());
        out.extend(body);
        out.extend(vec![0; padding]);
        out.extend(len.to_le_bytes());
    };
    let section = [
        0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255,
    ];
    block(0x0a0d_0d0a, &section);
    let [low, high] = link_type.to_le_bytes();
    block(1, &[low, high, 0, 0, 255, 255, 0, 0]);
    for (n, frame) in frames.iter().enumerate() {
        let len = frame.len() as u32;
        let words: [u32; 5] = [0, 0, 1000 * n as u32, len, len];
        let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        body.extend(frame);
        block(6, &body);
    }
    out
}

/// The registry's numbers of frames with an FCS, and of bare IP packets.
const LINKTYPE_IEEE802_15_4: u16 = 195;
const LINKTYPE_RAW: u16 = 101;

/// TCP segments with every option we send.
fn segments() -> Vec<Vec<u8>> {
    let options = |timestamps, sack: &[(u32, u32)]| {
        let mut options = Options {
            timestamps,
            ..Options::default()
        };
        for (left, right) in sack {
            options.sack.push(SackBlock {
                left: *left,
                right: *right,
            });
        }
        options
    };
    let syn = Options {
        mss: Some(474),
        sack_permitted: true,
        timestamps: Some((1, 0)),
        ..Options::default()
    };
    let list = [
        (Flags::SYN, syn, 0),
        (Flags::ACK, options(Some((2, 1)), &[]), 40),
        (Flags::ACK | Flags::PSH, options(None, &[]), 100),
        (Flags::ACK, options(Some((3, 1)), &[(9, 20), (30, 40)]), 0),
        (Flags::FIN | Flags::ACK, options(None, &[]), 0),
    ];
    list.into_iter()
        .map(|(flags, options, len)| {
            let header = Header {
                src_port: 49_200,
                dst_port: 7,
                seq: 1000,
                ack: 2000,
                flags,
                window: 1848,
                options,
                ..Header::default()
            };
            let mut out = vec![0; 60];
            let head = header.emit(&mut out).expect("60 bytes suffice");
            out.truncate(head);
            out.resize(head + len, 0x55);
            fill_checksum(&HOST, &ROUTER, &mut out);
            out
        })
        .collect()
}

/// IPv6 packets of each upper layer, from the host to the router's own address.
fn packets() -> Vec<Vec<u8>> {
    let mut upper: Vec<(u8, Vec<u8>)> = segments().into_iter().map(|tcp| (6, tcp)).collect();
    let echo = Echo {
        identifier: 1,
        sequence: 2,
        data: &[7; 20],
    };
    let mut icmp = vec![0; 64];
    let len = Message::EchoRequest(echo).emit(&mut icmp).expect("it fits");
    icmp.truncate(len);
    icmpv6::fill_checksum(&HOST, &ROUTER, &mut icmp);
    upper.push((58, icmp));
    let header = udp::Header {
        src_port: 61_616,
        dst_port: 5683,
    };
    let mut datagram = vec![0; 30];
    header.emit(22, &mut datagram).expect("eight bytes");
    udp::fill_checksum(&HOST, &ROUTER, &mut datagram);
    upper.push((17, datagram));
    upper
        .into_iter()
        .map(|(next_header, upper)| {
            let header = ipv6::Header {
                traffic_class: TrafficClass(0),
                flow_label: 0,
                payload_len: upper.len() as u16,
                next_header,
                hop_limit: 64,
                src: HOST,
                dst: ROUTER,
            };
            let mut out = vec![0; ipv6::HEADER_LEN];
            header.emit(&mut out).expect("40 bytes");
            out.extend(upper);
            out
        })
        .collect()
}

/// The headers of `packet` compressed, and the rest as it is.
fn compressed(packet: &[u8]) -> Vec<u8> {
    let mut contexts = Contexts::new();
    contexts.set(0, MESH, 64, true);
    let mut out = vec![0; packet.len()];
    let done = compress(packet, LINK, &contexts, &mut out).expect("it fits");
    out.truncate(done.compressed_len);
    out.extend(&packet[done.uncompressed_len..]);
    out
}

/// Frames of a packet in two fragments, then of one packet each.
fn frames() -> Vec<Vec<u8>> {
    let mut buffer = [0; 1280];
    let mut outgoing = Fragmenter::new(&mut buffer);
    let packets = packets();
    let longest = packets.iter().max_by_key(|p| p.len()).expect("some");
    let mut frames = Vec::new();
    let contexts = Contexts::new();
    outgoing.buffer()[..longest.len()].copy_from_slice(longest);
    outgoing
        .start(longest.len(), HeaderForms::default(), LINK, 77, 90, 0)
        .expect("a packet");
    let mut out = [0; 90];
    while let Some(len) = outgoing.next(&contexts, &mut out).expect("it fits") {
        frames.push(frame(&out[..len]));
    }
    for packet in &packets {
        let payload = compressed(packet);
        if payload.len() <= 96 {
            frames.push(frame(&payload));
        }
    }
    frames
}

fn frame(payload: &[u8]) -> Vec<u8> {
    let mut out = [0; 127];
    let header = ieee802154::Header::data(0x4d54, LINK.dst, LINK.src, 9);
    let len = header.emit_frame(payload, &mut out).expect("it fits");
    out[..len].to_vec()
}

const LINK: LinkPair = LinkPair {
    src: LinkAddr::Extended([2, 0, 0, 0, 0, 0, 0, 2]),
    dst: LinkAddr::Extended([2, 0, 0, 0, 0, 0, 0, 1]),
};
const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
