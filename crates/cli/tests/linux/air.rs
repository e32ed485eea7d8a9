//! A mesh of the lab, and the packets that are on its air.

use std::{collections::HashMap, net::Ipv6Addr};

use motet::{
    limits::MESH_PACKET_LEN_MAX,
    lowpan::{
        Contexts, LinkPair, Routing,
        datagram::{Datagrams, FragmentHandling, FragmentOutcome, Key, Record},
        decompress,
    },
    random::Rng,
    rpl::{Root, RplRole},
    time::{Duration, Instant},
    wire::{
        LinkAddr, icmpv6,
        ieee802154::{self, FrameType, Header},
        lowpan_frag,
        rpl_option::{Rpi, TYPE_6553, TYPE_9008},
    },
};
use motet_lab::{
    Arena,
    air::gains::Gains,
    capture::{Records, Tape},
    net::{
        network::{Host, HostOptions, Joining, Network, NetworkOptions, NodeOptions, RADIO},
        plan,
    },
};

/// How a DODAG's routing looks on the air: the flags of its configuration (RFC 9035 §3, RFC 9008
/// §4.1.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Form {
    /// T: routing headers are compressed by RFC 8138.
    pub(crate) is_compressed: bool,
    /// The type of the RPL option.
    pub(crate) option_type: u8,
}

impl Form {
    /// Uncompressed routing headers: the bytes of a packet are those on the air.
    pub(crate) const PLAIN: Self = Self {
        is_compressed: false,
        option_type: TYPE_9008,
    };

    pub(crate) const OLD: Self = Self {
        is_compressed: false,
        option_type: TYPE_6553,
    };

    pub(crate) const COMPRESSED: Self = Self {
        is_compressed: true,
        option_type: TYPE_9008,
    };

    fn flags(self) -> u8 {
        u8::from(self.is_compressed) << 5 | u8::from(self.option_type == TYPE_9008) << 4
    }
}

/// A packet that has taken one hop.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct OnAir {
    pub(crate) from: u16,
    pub(crate) to: u16,
    pub(crate) packet: Vec<u8>,
    /// Packet information of RPL, which is no part of the packet here.
    pub(crate) rpi: Option<Rpi>,
}

/// A chain that RPL has formed, behind a host that the judge plays.
pub(crate) struct Mesh<'m> {
    pub(crate) network: Network<'m>,
    air: Tape,
    /// All that was on the air, as a capture file.
    pub(crate) capture: Vec<u8>,
    decoder: Decoder,
    sequence: u8,
}

impl<'m> Mesh<'m> {
    /// A chain of so many hops in which nobody hears more than its neighbours.
    pub(crate) fn chain(arena: &'m Arena, hops: usize, form: Form) -> Self {
        let nodes = (0..=hops).map(|n| NodeOptions::new(n.to_string()));
        let gains = Gains::from_fn(hops + 1, |from, to| match from.abs_diff(to) {
            1 => -60.0,
            _ => f64::NEG_INFINITY,
        });
        let mut options = NetworkOptions::new(nodes.collect(), gains);
        options.joining = Joining::Rpl;
        options.hosts = vec![HostOptions {
            kind: Host::Outside,
            delay: Duration::ZERO,
            ..HostOptions::new("host")
        }];
        let mut network = Network::new(options, arena).expect("a chain is possible");
        let mut root = Root::new(plan::MESH_PREFIX);
        root.configuration.flags = form.flags();
        let steps = arena.alloc_slice_fill_copy(hops + 1, None);
        network.world.with_node(0, |node, now| {
            node.start_rpl(RADIO, RplRole::Root(root), &mut [], steps, now);
        });
        let air = Tape::default();
        let capture = air.capture(Records::Frames).expect("memory takes all");
        network.world.set_capture(Some(capture));
        assert!(network.join(Duration::from_secs(120)), "{form:?}: no mesh");
        let mut mesh = Self {
            network,
            air,
            capture: Vec::new(),
            decoder: Decoder::new(form),
            sequence: 0,
        };
        let _ = mesh.listen(Duration::from_secs(2));
        mesh
    }

    /// What is on the air, unicast, in the next time.
    pub(crate) fn listen(&mut self, time: Duration) -> Vec<OnAir> {
        let until = self.network.world.now() + time;
        self.network.world.run_until(until);
        let bytes = self.air.take();
        self.capture.extend(&bytes);
        self.decoder.decode(&bytes)
    }

    /// Gives the border router a packet from outside. Returns what it causes on the air, and what
    /// comes out to the host.
    pub(crate) fn send(&mut self, packet: &[u8]) -> (Vec<OnAir>, Vec<Vec<u8>>) {
        self.network.world.inject_packet(packet);
        let heard = self.listen(Duration::from_secs(4));
        let came = std::iter::from_fn(|| self.network.world.take_packet());
        let came = came.map(Vec::from).collect();
        (heard, came)
    }

    /// Puts a packet, in one frame and without any compression, on the air: as if `from` sent it to
    /// its neighbour `to`. Returns what `to` sends then.
    pub(crate) fn forge(&mut self, from: u16, to: u16, packet: &[u8]) -> Vec<OnAir> {
        const IPV6_DISPATCH: u8 = 0x41;
        self.sequence = self.sequence.wrapping_add(1);
        let (src, dst) = (plan::link_addr(from), plan::link_addr(to));
        let header = Header::data(plan::PAN, dst, src, self.sequence);
        let payload = [&[IPV6_DISPATCH], packet].concat();
        let mut psdu = [0; 127];
        let len = header.emit_frame(&payload, &mut psdu);
        let len = len.expect("one frame holds a forged packet");
        while !self.network.world.transmit_at(from.into(), &psdu[..len]) {
            let _ = self.listen(Duration::from_millis(10));
        }
        let mut heard = self.listen(Duration::from_secs(1));
        heard.retain(|hop| hop.from == to);
        heard
    }
}

/// Frames to packets, as the nodes of the mesh would have it.
struct Decoder {
    contexts: Contexts,
    /// By receiver: the packets that it gathers.
    tables: HashMap<u16, Datagrams<'static>>,
    /// By transmitter: its last frame, so that a repeated one counts once.
    last: HashMap<u16, Vec<u8>>,
    /// Whether the file header has come.
    is_begun: bool,
}

impl Decoder {
    fn new(form: Form) -> Self {
        let mut contexts = plan::contexts();
        contexts.set_routing(Some(Routing {
            root: plan::mesh_addr(0),
            is_compressed: form.is_compressed,
            option_type: form.option_type,
        }));
        Self {
            contexts,
            tables: HashMap::new(),
            last: HashMap::new(),
            is_begun: false,
        }
    }

    fn decode(&mut self, capture: &[u8]) -> Vec<OnAir> {
        const FILE_HEADER_LEN: usize = 24;
        const RECORD_HEADER_LEN: usize = 16;
        let skipped = if self.is_begun { 0 } else { FILE_HEADER_LEN };
        self.is_begun = true;
        let mut rest = &capture[skipped..];
        let mut found = Vec::new();
        while let Some((head, behind)) = rest.split_at_checked(RECORD_HEADER_LEN) {
            let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|n| head[at + n]));
            let at = u64::from(word(0)) * 1_000_000 + u64::from(word(4));
            let (psdu, behind) = behind.split_at(word(8) as usize);
            rest = behind;
            found.extend(self.frame(psdu, Instant::from_micros(at)));
        }
        found
    }

    fn frame(&mut self, psdu: &[u8], now: Instant) -> Option<OnAir> {
        let mpdu = ieee802154::check_fcs(psdu).ok()?;
        let (header, payload) = Header::parse(mpdu).ok()?;
        let (src, dst) = (header.src?.addr, header.dst?.addr);
        let (from, to) = (number(src)?, number(dst)?);
        let is_repeated = self.last.insert(from, mpdu.to_vec()).as_deref() == Some(mpdu);
        if header.frame_type != FrameType::Data || is_repeated {
            return None;
        }
        let (packet, rpi) = self.packet(payload, LinkPair { src, dst }, to, now)?;
        Some(OnAir {
            from,
            to,
            packet,
            rpi,
        })
    }

    /// The packet that is whole with this frame.
    fn packet(
        &mut self,
        payload: &[u8],
        link: LinkPair,
        to: u16,
        now: Instant,
    ) -> Option<(Vec<u8>, Option<Rpi>)> {
        let table = self.tables.entry(to).or_insert_with(table);
        let mut out = vec![0; 400];
        let Ok((header, rest)) = lowpan_frag::Header::parse(payload) else {
            let done = decompress(payload, link, &self.contexts, None, &mut out).ok()?;
            out.truncate(done.uncompressed_len);
            out.extend(&payload[done.compressed_len..]);
            return Some((out, done.rpi));
        };
        let size = header.datagram_size;
        let key = Key {
            from: link.src,
            tag: header.datagram_tag,
            size,
        };
        let verdict = match header.datagram_offset {
            None => {
                let done = decompress(rest, link, &self.contexts, Some(size), &mut out).ok()?;
                out.truncate(done.uncompressed_len);
                out.extend(&rest[done.compressed_len..]);
                table.on_first(
                    key,
                    done.first(&out),
                    FragmentHandling::Reassemble,
                    true,
                    now,
                )
            }
            Some(_) => table.on_next(key, header.offset_bytes(), rest, now),
        };
        let FragmentOutcome::Complete(record) = verdict else {
            return None;
        };
        let (mut whole, beside) = table.lend(record)?;
        let packet = whole.packet().to_vec();
        table.give_back(whole);
        Some((packet, beside.rpi))
    }
}

/// Memory for the rest of the process: there are a few of them.
fn table() -> Datagrams<'static> {
    const BODIES: usize = 4;
    let records = vec![Record::EMPTY; 8].leak();
    let bodies = vec![0; BODIES * MESH_PACKET_LEN_MAX].leak();
    let mut rng = Rng::from_seed([1, 2]);
    Datagrams::new(records, bodies, MESH_PACKET_LEN_MAX, false, &mut rng)
}

/// The node of the plan with this link address.
fn number(addr: LinkAddr) -> Option<u16> {
    match addr {
        LinkAddr::Extended(eui64) => {
            let [.., high, low] = eui64;
            let number = u16::from_be_bytes([high, low]);
            (plan::eui64(number) == eui64).then_some(number)
        }
        LinkAddr::Short(_) | LinkAddr::Device(_) => None,
    }
}

/// An echo request of `len` bytes.
pub(crate) fn ping(src: Ipv6Addr, dst: Ipv6Addr, len: usize, sequence: u16) -> Vec<u8> {
    let mut packet = vec![0; len];
    packet[0] = 0x60;
    packet[4..6].copy_from_slice(&((len - 40) as u16).to_be_bytes());
    packet[6..8].copy_from_slice(&[icmpv6::NEXT_HEADER, 64]);
    packet[8..24].copy_from_slice(&src.octets());
    packet[24..40].copy_from_slice(&dst.octets());
    packet[40] = 128;
    packet[46..48].copy_from_slice(&sequence.to_be_bytes());
    for (at, byte) in packet.iter_mut().enumerate().skip(48) {
        *byte = (at * 7) as u8;
    }
    icmpv6::fill_checksum(&src, &dst, &mut packet[40..]);
    packet
}
