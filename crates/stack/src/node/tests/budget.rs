//! Segments fill the frames that they may, and not one more, whatever becomes of headers.

use super::*;
use crate::wire::ieee802154;
use crate::wire::lowpan_frag::{FIRST_LEN, Header as Fragment};
use std::collections::BTreeSet;

/// How a packet's TCP header travelled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Plain,
    Full,
    Mostly,
    Compressed,
}

/// A packet as its first hop carried it.
#[derive(Clone, Debug)]
struct Packet {
    form: Form,
    has_sack: bool,
    /// The MSS option, where the packet is a SYN.
    mss: Option<u16>,
    /// By their offset; one without, where it travelled whole.
    fragments: BTreeSet<Option<u8>>,
    /// Length of the uncompressed packet, bytes.
    len: u16,
}

impl Packet {
    /// What is sent again may take a frame more: its header is not the MSS's.
    fn keeps_to_its_frames(&self) -> bool {
        let longer = matches!(self.form, Form::Full | Form::Mostly);
        self.fragments.len() <= 5 + usize::from(longer)
    }
}

/// The TCP packets that a node has sent by radio since frame `from`; retries do not count.
fn packets(world: &World, node: usize, from: usize) -> Vec<Packet> {
    let mut packets = Vec::new();
    let mut tags = BTreeMap::new();
    let mut sequence = None;
    for (_, psdu) in world.frames[from..].iter().filter(|(n, _)| *n == node) {
        let parsed = ieee802154::Header::parse(&psdu[..psdu.len() - 2]);
        let Ok((header, payload)) = parsed else {
            continue;
        };
        let (Some(src), Some(dst)) = (header.src, header.dst) else {
            continue;
        };
        if sequence.replace(header.sequence) == Some(header.sequence) {
            continue;
        }
        let hop = lowpan::LinkPair {
            src: src.addr,
            dst: dst.addr,
        };
        let Ok((fragment, _)) = Fragment::parse(payload) else {
            packets.extend(packet(world, node, hop, payload, None));
            continue;
        };
        let key = fragment.datagram_tag;
        if let Some(packet) = tags.get(&key).and_then(|at| packets.get_mut(*at)) {
            let packet: &mut Packet = packet;
            packet.fragments.insert(fragment.datagram_offset);
            continue;
        }
        if fragment.datagram_offset.is_some() {
            continue;
        }
        let size = Some(fragment.datagram_size);
        if let Some(made) = packet(world, node, hop, &payload[FIRST_LEN..], size) {
            tags.insert(key, packets.len());
            packets.push(made);
        }
    }
    packets
}

/// What begins with `bytes`; `None`: not TCP.
fn packet(
    world: &World,
    node: usize,
    hop: lowpan::LinkPair,
    bytes: &[u8],
    size: Option<u16>,
) -> Option<Packet> {
    let contexts = world.radio_of(node).contexts();
    let mut out = [0; 160];
    let headers = lowpan::decompress(bytes, hop, contexts, size, &mut out).ok()?;
    let (ip, _) = Header::parse_start(&out).ok()?;
    if ip.next_header != crate::wire::tcp::NEXT_HEADER {
        return None;
    }
    let restored = &out[ipv6::HEADER_LEN..headers.uncompressed_len];
    let rest = &bytes[headers.compressed_len..];
    let (form, has_sack) = match headers.tcp {
        TcpForm::Plain => (Form::Plain, false),
        TcpForm::Full { .. } => (Form::Full, false),
        TcpForm::Compressed => match TcpForm::compressed(restored) {
            [0x8f, second, ..] => (Form::Mostly, second & 1 != 0),
            header => (Form::Compressed, header[1] & 1 != 0),
        },
    };
    let tcp = crate::wire::tcp::Header::parse(if form == Form::Plain { rest } else { restored });
    let mss = tcp.ok().and_then(|(header, _)| header.options.mss);
    Some(Packet {
        form,
        has_sack,
        mss,
        fragments: BTreeSet::from([None]),
        len: ip.payload_len + ipv6::HEADER_LEN as u16,
    })
}

const PORT: u16 = 9;

fn settings(timestamps: bool) -> &'static tcp::Config {
    Box::leak(Box::new(tcp::Config {
        timestamps,
        ..SETTINGS
    }))
}

/// Who sends to whom in a chain of three hops: a mote to the host and back, a mote to another.
const ENDS: [(usize, usize); 3] = [(3, 4), (4, 3), (3, 1)];

fn target(to: usize) -> Ipv6Addr {
    if to == 4 { HOST } else { global(to) }
}

/// The node whose radio a stream of `from` enters by.
fn first_hop(from: usize) -> usize {
    if from == 4 { 0 } else { from }
}

/// A stream in `world`; returns its packets, none of which took more than five frames.
fn stream(world: &mut World, (from, to): (usize, usize), timestamps: bool) -> Vec<Packet> {
    let began = world.frames.len();
    let ends = (from, to, (target(to), PORT + world.frames.len() as u16));
    transfer_with(world, ends, &bytes(8_000), settings(timestamps));
    let packets = packets(world, first_hop(from), began);
    let fits = |packet: &Packet| packet.fragments.len() <= 5;
    assert!(packets.iter().all(fits), "{ends:?} {packets:?}");
    packets
}

/// Bytes of the longest, of which a stream has many.
fn longest(packets: &[Packet]) -> u16 {
    let longest = packets.iter().map(|packet| packet.len).max().unwrap();
    let full = packets.iter().filter(|packet| packet.len == longest);
    assert!(full.count() >= 12, "most segments are full: {packets:?}");
    longest
}

fn longest_of(compressing: &[usize], ends: (usize, usize), timestamps: bool) -> u16 {
    let mut world = World::compressing(3, Relaying::Fragments, compressing);
    longest(&stream(&mut world, ends, timestamps))
}

#[test]
fn bulk_fills_five_frames_whatever_its_headers_became() {
    for ends in ENDS {
        let plain = [false, true].map(|timestamps| longest_of(&[], ends, timestamps));
        assert_eq!(plain[0], plain[1], "{ends:?}");
        let compressed = [false, true].map(|timestamps| longest_of(&[0, 1, 3], ends, timestamps));
        let grown = compressed.map(|len| len - plain[0]);
        // First fragments end on a unit. Whoever knows its headers counts on 13 bytes, 20 with
        // timestamps; a host is told of what is sure: 9 and 14.
        let expected = if ends.0 == 4 { [8, 16] } else { [16, 24] };
        assert_eq!(grown, expected, "{ends:?}");
    }
}

#[test]
fn segments_to_and_from_a_plain_peer_are_as_long_as_without() {
    let cases: [((usize, usize), &[usize]); 5] = [
        ((3, 4), &[1, 3]),
        ((4, 3), &[1, 3]),
        ((3, 4), &[0, 1]),
        ((4, 3), &[0, 1]),
        // Motes do not agree among each other.
        ((3, 1), &[0, 1, 3]),
    ];
    for (ends, compressing) in cases {
        for timestamps in [false, true] {
            let plain = longest_of(&[], ends, timestamps);
            let mut world = World::agreeing(3, Relaying::Fragments, compressing);
            let packets = stream(&mut world, ends, timestamps);
            assert_eq!(longest(&packets), plain, "{ends:?} {timestamps}");
            assert!(packets.iter().all(|packet| packet.form == Form::Plain));
        }
    }
}

/// The offer is known before the connection: the MSS counts on it, and so does each segment.
#[test]
fn the_mss_counts_on_what_the_router_offers() {
    for (ends, grown) in [((3, 4), 24), ((4, 3), 16), ((3, 0), 24), ((0, 3), 24)] {
        let plain = longest_of(&[], ends, true);
        let mut world = World::agreeing(3, Relaying::Fragments, &[0, 3]);
        let packets = stream(&mut world, ends, true);
        assert_eq!(longest(&packets), plain + grown, "{ends:?}");
        let kept = packets.iter().all(Packet::keeps_to_its_frames);
        assert!(kept, "{ends:?}: {packets:?}");
        if ends == (3, 4) {
            // A host cannot ask how long a header will be: 14 of 32 bytes are sure to be saved.
            let headers = (ipv6::HEADER_LEN + 20) as u16;
            let told = packets.iter().find_map(|packet| packet.mss);
            assert_eq!(told, Some(plain - headers + 16));
        }
    }
}

/// Both ends send at once while frames are lost, so that data carry SACK blocks.
#[test]
fn sack_blocks_on_data_make_no_segment_longer() {
    for timestamps in [false, true] {
        let mut with_sack = 0;
        for lost in 0..12 {
            let mut world = World::compressing(2, Relaying::Fragments, &[0, 2]);
            let mut both = Both::open(&mut world, timestamps);
            // Deaf for longer than a frame's attempts last.
            let at = world.now + Duration::from_millis(150 * lost);
            world.deaf = Some((1, at..at + Duration::from_millis(700)));
            both.exchange(&mut world, 10_000);
            for node in [0, 2] {
                for packet in packets(&world, node, 0) {
                    assert!(packet.keeps_to_its_frames(), "{lost} {node}: {packet:?}");
                    let full = packet.form == Form::Compressed && packet.fragments.len() == 5;
                    with_sack += usize::from(packet.has_sack && full);
                }
            }
        }
        assert!(with_sack > 0, "{timestamps}");
    }
}

/// Messages of every length, each way in turn: none takes more frames than it would plain, and
/// some one less.
#[test]
fn requests_and_responses_take_fewer_frames() {
    let mut frames = [0, 0];
    for len in (80..900).step_by(7) {
        let mut count = [0, 0];
        for (compressing, count) in [&[][..], &[0, 2]].into_iter().zip(&mut count) {
            let mut world = World::compressing(2, Relaying::Fragments, compressing);
            let mut both = Both::open(&mut world, true);
            let began = world.frames.len();
            for _ in 0..3 {
                both.send(&mut world, 0, len);
                both.send(&mut world, 1, len);
            }
            for node in [0, 2] {
                let sent = packets(&world, node, began);
                // Whether an acknowledgment rides along is a matter of time.
                let data = sent.iter().filter(|packet| packet.len > BARE_LEN);
                *count += data.map(|packet| packet.fragments.len()).sum::<usize>();
            }
        }
        assert!(count[1] <= count[0], "{len}: {count:?}");
        frames = [frames[0] + count[0], frames[1] + count[1]];
    }
    assert!(frames[1] * 100 <= frames[0] * 95, "{frames:?}");
}

/// Bytes of an acknowledgment with timestamps.
const BARE_LEN: u16 = 40 + 20 + 12;

/// A connection between mote 2 and the host.
struct Both {
    nodes: [usize; 2],
    handles: [tcp::Handle; 2],
}

impl Both {
    fn open(world: &mut World, timestamps: bool) -> Self {
        let settings = settings(timestamps);
        let now = world.now;
        let buffers = || Buffers::new(memory(0, 2048), memory(0, 2304));
        let tcp = world.nodes[3].tcp_mut();
        let listener = tcp.listen(None, PORT, settings).unwrap();
        let mote = world.nodes[2]
            .connect((HOST, PORT), buffers(), settings, now)
            .unwrap();
        world.run_for(Duration::from_secs(1));
        let now = world.now;
        let host = world.nodes[3]
            .tcp_mut()
            .accept(listener, buffers(), now)
            .unwrap();
        Self {
            nodes: [2, 3],
            handles: [mote, host],
        }
    }

    /// A message from one end to the other, which reads it.
    fn send(&mut self, world: &mut World, from: usize, len: usize) {
        let now = world.now;
        let tcp = world.nodes[self.nodes[from]].tcp_mut();
        assert_eq!(tcp.send(self.handles[from], &bytes(len), now), Ok(len));
        let mut received = 0;
        for _ in 0..1_000 {
            received += self.receive(world, 1 - from);
            if received == len {
                return;
            }
            world.run_for(Duration::from_millis(2));
        }
        panic!("{received} of {len}");
    }

    fn receive(&mut self, world: &mut World, at: usize) -> usize {
        let mut room = [0; 2048];
        let tcp = world.nodes[self.nodes[at]].tcp_mut();
        tcp.recv(self.handles[at], &mut room).unwrap_or(0)
    }

    /// So much from each end to the other, at once.
    fn exchange(&mut self, world: &mut World, len: usize) {
        let data = bytes(len);
        let (mut sent, mut received) = ([0; 2], [0; 2]);
        for _ in 0..40_000 {
            for end in [0, 1] {
                let now = world.now;
                let tcp = world.nodes[self.nodes[end]].tcp_mut();
                sent[end] += tcp
                    .send(self.handles[end], &data[sent[end]..], now)
                    .unwrap_or(0);
                received[end] += self.receive(world, end);
            }
            if received == [len; 2] {
                return;
            }
            world.run_for(Duration::from_millis(2));
        }
        panic!("{received:?} of {len}");
    }
}
