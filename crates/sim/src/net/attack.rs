//! Frames of an attacker outside the mesh: forged, or recorded and replayed.
//!
//! Purpose: the frames that an attacker near a node can send, without the key but with all that it
//! can overhear: addresses, the PAN, sequence numbers, tags of fragments, the security level, the
//! key index. Place: [`World`](crate::net::world::World) takes a frame from here when an attacker's
//! next one is due, and transmits it. Left out: jamming, which no frame format prevents; attackers
//! that react to what they hear.

use std::net::Ipv6Addr;
use std::sync::Arc;

use motet::limits::PSDU_LEN_MAX;
use motet::mac::security::index;
use motet::random::Rng;
use motet::wire::icmpv6::{Echo, Message, RouterAdvertisement};
use motet::wire::ieee802154::{Auxiliary, Command, FCS_LEN, Header, Level, fcs};
use motet::wire::ndp::{NdpOption, NdpOptions, PrefixInformation};
use motet::wire::{LinkAddr, lowpan_dispatch, lowpan_frag};

use super::plan;

mod routing;

pub(crate) use routing::Overheard;

/// The settings of an attacker.
#[derive(Clone, PartialEq, Debug)]
pub struct AttackOptions {
    /// The node beside which the attacker is: the attacker hears what that node hears, and is heard
    /// by that node and by its neighbours.
    pub near: usize,
    /// Frames each second; at most [`PER_S_MAX`].
    pub per_s: f64,
    /// The frames that the attacker sends.
    pub frames: Frames,
    /// Whether its frames are for another PAN: then the only effect of the attack is the air time
    /// that it takes.
    pub is_elsewhere: bool,
}

/// The most frames that an attacker sends in a second: more than fit on the air.
pub const PER_S_MAX: f64 = 1_000.0;

/// The frames of an attacker.
#[derive(Clone, PartialEq, Debug)]
pub enum Frames {
    /// Frames of its own making.
    Forged(Forgery),
    /// These, one after the other, over and over: PSDUs with their FCS.
    Recorded(Arc<[Box<[u8]>]>),
    /// Frames that the node received from its neighbours at any time, unchanged.
    Replayed,
}

/// The purpose of a forged frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forgery {
    /// A router advertisement of the parent's, with another prefix.
    RouterAdvertisement,
    /// First fragments in a neighbour's name, with the tag of the packet under way or of the next
    /// one.
    Tag,
    /// Data frames in a neighbour's name, with the sequence number that its own next frame will
    /// have.
    Number,
    /// Data frames, each from another neighbour that does not exist.
    Source,
    /// First fragments of the longest packets, by turns from two neighbours that do not exist.
    Bodies,
    /// ACKs with any sequence number.
    Ack,
    /// Fragments in a neighbour's name, whose heads fire what waits for that neighbour.
    Head,
    /// Data requests in a neighbour's name.
    Poll,
    /// Data requests of neighbours that do not exist, each again and again.
    Children,
    /// Solicitations in a neighbour's name that end its registration.
    Solicitation,
    /// Advertisements of the parent's that call the node's address another's.
    Refusal,
    /// DAOs in the name of the node or of a mote below it: the child of nobody, or of a neighbour.
    Dao,
    /// The same, and there is no path to it any more.
    NoPath,
    /// Answers of the root's to the node's DAOs.
    DaoAck,
    /// DIS to all in a neighbour's name.
    Dis,
    /// DISs to the node alone, each from another neighbour that does not exist.
    DisToOne,
    /// DIOs in a neighbour's name, with the next version number.
    Version,
    /// DIOs in a neighbour's name, of another mode of operation.
    Mode,
    /// DIOs in a neighbour's name, with an arbitrary DTSN, the counter that asks for DAOs.
    Dtsn,
    /// DIOs in a neighbour's name, with an infinite rank (RFC 6550 §8.2.2.5).
    Poison,
    /// DIOs with a wrong rank: far too high in the parent's name, far too low in other neighbours'.
    Rank,
    /// DIOs in a neighbour's name, with another prefix.
    Prefix,
}

impl Forgery {
    /// All of them, by the names that scenarios use.
    pub const ALL: [(&'static str, Self); 22] = [
        ("ra", Self::RouterAdvertisement),
        ("tag", Self::Tag),
        ("dsn", Self::Number),
        ("source", Self::Source),
        ("bodies", Self::Bodies),
        ("ack", Self::Ack),
        ("head", Self::Head),
        ("poll", Self::Poll),
        ("children", Self::Children),
        ("ns", Self::Solicitation),
        ("na", Self::Refusal),
        ("dao", Self::Dao),
        ("no-path", Self::NoPath),
        ("dao-ack", Self::DaoAck),
        ("dis", Self::Dis),
        ("dis-to-one", Self::DisToOne),
        ("version", Self::Version),
        ("mode", Self::Mode),
        ("dtsn", Self::Dtsn),
        ("poison", Self::Poison),
        ("rank", Self::Rank),
        ("prefix", Self::Prefix),
    ];

    /// Whether only motes that find their parents by RPL hear it.
    pub const fn is_routing(self) -> bool {
        matches!(
            self,
            Self::Dao
                | Self::NoPath
                | Self::DaoAck
                | Self::Dis
                | Self::DisToOne
                | Self::Version
                | Self::Mode
                | Self::Dtsn
                | Self::Poison
                | Self::Rank
                | Self::Prefix
        )
    }
}

/// The node that an attacker is near, as far as the attacker knows it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Target {
    pub(crate) addr: LinkAddr,
    /// The node's parent first, then its children.
    pub(crate) neighbours: Vec<LinkAddr>,
    /// The level and the key sequence of the frames about it, where they are sealed.
    pub(crate) seal: Option<(Level, u32)>,
    /// The node's place in routing, from overheard messages; none without RPL.
    pub(crate) routing: Option<Overheard>,
}

/// The lowest forged frame counter: higher than any that a node of the lab reaches, so that a
/// node's table shows whether it has accepted one.
pub(crate) const COUNTER_FROM: u32 = 1 << 30;

/// More neighbours that ask than a parent has places for.
const CHILDREN: u32 = 64;

/// Frames that are kept to be played back.
const KEPT_MAX: usize = 64;

/// Makes an attacker's frames.
#[derive(Debug)]
pub(crate) struct Forger {
    frames: Frames,
    pan: u16,
    rng: Rng,
    made: u32,
    /// The last frame of each neighbour.
    heard: Vec<OverheardFrame>,
    /// Frames to be played back.
    kept: Vec<Box<[u8]>>,
}

/// The fields in clear in a neighbour's last frame.
#[derive(Clone, Copy, Debug)]
struct OverheardFrame {
    from: LinkAddr,
    sequence: u8,
    /// Datagram tag of the packet that the frame is a fragment of; none where it is encrypted.
    tag: Option<u16>,
}

impl Forger {
    pub(crate) fn new(options: &AttackOptions, rng: Rng) -> Self {
        Self {
            frames: options.frames.clone(),
            pan: match options.is_elsewhere {
                true => !plan::PAN,
                false => plan::PAN,
            },
            rng,
            made: 0,
            heard: Vec::new(),
            kept: Vec::new(),
        }
    }

    /// A frame to the node that the attacker is near, a PSDU with its FCS.
    pub(crate) fn hear(&mut self, psdu: &[u8]) {
        if self.frames == Frames::Replayed {
            return self.keep(psdu);
        }
        let mpdu = psdu.get(..psdu.len().saturating_sub(FCS_LEN));
        let parsed = mpdu.and_then(|mpdu| Header::parse_secured(mpdu).ok());
        let Some((header, auxiliary, payload)) = parsed else {
            return;
        };
        let Some(from) = header.src.map(|src| src.addr) else {
            return;
        };
        let fragment = lowpan_frag::Header::parse(payload).ok();
        let fragment = fragment.filter(|_| auxiliary.is_none());
        let before = self.heard.iter().find(|heard| heard.from == from);
        let tag = fragment.map(|(fragment, _)| fragment.datagram_tag);
        let tag = tag.or_else(|| before?.tag);
        self.heard.retain(|heard| heard.from != from);
        self.heard.push(OverheardFrame {
            from,
            sequence: header.sequence,
            tag,
        });
    }

    /// Keeps a frame, in the place of another one where there are many: some of the oldest remain.
    fn keep(&mut self, psdu: &[u8]) {
        if self.kept.len() < KEPT_MAX {
            return self.kept.push(psdu.into());
        }
        let place = self.rng.below(KEPT_MAX as u32) as usize;
        if let Some(kept) = self.kept.get_mut(place) {
            *kept = psdu.into();
        }
    }

    /// The next frame, a PSDU with its FCS; of no bytes where there is none.
    #[expect(clippy::too_many_lines, reason = "an arm for each kind of frame")]
    pub(crate) fn next(&mut self, target: &Target) -> Box<[u8]> {
        let made = self.made;
        self.made = made.wrapping_add(1);
        let kind = match &self.frames {
            Frames::Recorded(frames) => return one_of(frames, made),
            Frames::Replayed => return one_of(&self.kept, self.rng.next_u32()),
            Frames::Forged(kind) => *kind,
        };
        let names = &target.neighbours;
        let named = names.get(made as usize % names.len().max(1));
        let named = named.copied().unwrap_or(target.addr);
        let number = self.rng.next_u32();
        if kind.is_routing() {
            return self.next_routing(kind, target, (made, number));
        }
        let heard = self.heard.iter().find(|heard| heard.from == named);
        let sequence = heard.map_or(made as u8, |heard| heard.sequence.wrapping_add(1));
        let tag = heard.and_then(|heard| heard.tag);
        let tag = tag.map_or(made as u16, |tag| tag.wrapping_add((made / 2 % 2) as u16));
        let data = |to, from| Header::data(self.pan, to, from, sequence);
        let (header, payload) = match kind {
            Forgery::RouterAdvertisement => {
                let parent = names.first().copied().unwrap_or(target.addr);
                let header = data(LinkAddr::BROADCAST, parent);
                (header, advertisement(parent))
            }
            Forgery::Tag => {
                let payload = first_fragment(600, tag, target.addr);
                (data(target.addr, named), payload)
            }
            Forgery::Number => (data(target.addr, named), vec![lowpan_dispatch::IPV6]),
            Forgery::Source => {
                let from = stranger(number);
                (data(target.addr, from), echo(from, target.addr))
            }
            Forgery::Bodies => {
                let payload = first_fragment(1_280, number as u16, target.addr);
                (data(target.addr, stranger(made % 2)), payload)
            }
            Forgery::Ack if self.pan == plan::PAN => {
                return with_fcs(&Header::ack(number as u8, false), &[]);
            }
            // ACKs name no PAN: as little for somebody else.
            Forgery::Ack => {
                let header = Header {
                    ack_request: false,
                    ..data(LinkAddr::Short(1), LinkAddr::Short(2))
                };
                return with_fcs(&header, &[]);
            }
            Forgery::Head => (data(target.addr, named), later_fragment(tag)),
            Forgery::Poll | Forgery::Children => {
                let (from, sequence) = match kind {
                    Forgery::Poll => (named, sequence),
                    _ => (stranger(number % CHILDREN), made as u8),
                };
                let header = Header::command(self.pan, target.addr, from, sequence);
                let mut identifier = [0; 8];
                let len = Command::DataRequest.emit(&mut identifier);
                let len = len.unwrap_or_default();
                (header, identifier[..len].to_vec())
            }
            Forgery::Refusal => {
                let parent = names.first().copied().unwrap_or(target.addr);
                let payload = routing::refusal(parent, target.addr, made);
                (data(target.addr, parent), payload)
            }
            _ => {
                let payload = routing::solicitation(named, target.addr, made);
                (data(target.addr, named), payload)
            }
        };
        match target.seal {
            None => with_fcs(&header, &payload),
            Some(seal) => {
                let is_command = matches!(kind, Forgery::Poll | Forgery::Children);
                self.sealed(&header, payload, seal, is_command)
            }
        }
    }

    /// The next message of RPL; none where nothing is known of the node's DODAG yet.
    fn next_routing(&mut self, kind: Forgery, target: &Target, turn: (u32, u32)) -> Box<[u8]> {
        let overheard = target.routing.as_ref();
        let forged = overheard.and_then(|overheard| overheard.forge(kind, target.addr, turn));
        let Some(forged) = forged else {
            return Box::default();
        };
        let heard = self.heard.iter().find(|heard| heard.from == forged.from);
        let (made, _) = turn;
        let sequence = heard.map_or(made as u8, |heard| heard.sequence.wrapping_add(1));
        let header = Header::data(self.pan, forged.to, forged.from, sequence);
        match target.seal {
            None => with_fcs(&header, &forged.packet),
            Some(seal) => self.sealed(&header, forged.packet, seal, false),
        }
    }

    /// Builds a secured frame without the key: random bytes take the place of the ciphertext and
    /// the MIC.
    fn sealed(
        &mut self,
        header: &Header,
        mut payload: Vec<u8>,
        (level, sequence): (Level, u32),
        is_command: bool,
    ) -> Box<[u8]> {
        let clear_len = usize::from(is_command);
        payload.resize(payload.len() + level.mic_len(), 0);
        for byte in payload.iter_mut().skip(clear_len) {
            *byte = self.rng.next_u32() as u8;
        }
        let auxiliary = Auxiliary {
            level,
            counter: COUNTER_FROM.wrapping_add(self.made),
            key_index: index(sequence),
        };
        let mut out = [0; PSDU_LEN_MAX];
        let header_len = header
            .emit_secured(&auxiliary, &mut out)
            .unwrap_or_default();
        let len = (header_len + payload.len()).min(PSDU_LEN_MAX - FCS_LEN);
        let body = &mut out[header_len..len];
        body.copy_from_slice(&payload[..body.len()]);
        let sum = fcs(&out[..len]).to_le_bytes();
        [&out[..len], &sum].concat().into()
    }
}

/// One of these frames, or none.
fn one_of(frames: &[Box<[u8]>], number: u32) -> Box<[u8]> {
    let frame = frames.get(number as usize % frames.len().max(1));
    frame.cloned().unwrap_or_default()
}

/// A frame without link security, with its FCS.
fn with_fcs(header: &Header, payload: &[u8]) -> Box<[u8]> {
    let mut out = [0; PSDU_LEN_MAX];
    let room = header.payload_len_max().min(payload.len());
    let len = header.emit_frame(&payload[..room], &mut out);
    out[..len.unwrap_or_default()].into()
}

/// A neighbour that does not exist.
fn stranger(number: u32) -> LinkAddr {
    let [a, b, c, d] = number.to_be_bytes();
    LinkAddr::Extended([2, 0xaa, 0, 0, a, b, c, d])
}

fn link_local(addr: LinkAddr) -> Ipv6Addr {
    plan::addr_of(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), addr)
}

/// An uncompressed packet, after the dispatch byte for uncompressed IPv6.
fn uncompressed(message: &Message<'_>, src: Ipv6Addr, dst: Ipv6Addr, hop_limit: u8) -> Vec<u8> {
    let mut out = vec![0; PSDU_LEN_MAX];
    out[0] = lowpan_dispatch::IPV6;
    let len = motet::ip::icmp::write(message, src, dst, hop_limit, &mut out[1..]);
    out.truncate(1 + len.unwrap_or_default());
    out
}

fn echo(from: LinkAddr, to: LinkAddr) -> Vec<u8> {
    let request = Message::EchoRequest(Echo {
        identifier: 1,
        sequence: 2,
        data: &[7; 8],
    });
    uncompressed(&request, link_local(from), link_local(to), 64)
}

/// A router advertisement that announces another prefix.
fn advertisement(from: LinkAddr) -> Vec<u8> {
    let options = routing::ndp_options(&[NdpOption::Prefix(WRONG_PREFIX)]);
    let message = Message::RouterAdvertisement(RouterAdvertisement {
        hop_limit: 64,
        flags: 0,
        router_lifetime_s: 1_800,
        reachable_ms: 0,
        retransmit_ms: 0,
        options: NdpOptions::parse(&options).unwrap_or_default(),
    });
    uncompressed(&message, link_local(from), motet::ip::ALL_NODES, 255)
}

/// A prefix that no router of the lab has.
const WRONG_PREFIX: PrefixInformation = PrefixInformation {
    prefix_len: 64,
    on_link: false,
    autonomous: true,
    router_address: false,
    valid_lifetime_s: 3_600,
    preferred_lifetime_s: 3_600,
    prefix: Ipv6Addr::new(0xfd66, 0x6f72, 0x6765, 0x64, 0, 0, 0, 0),
};

/// The first of the fragments of a packet of `size` bytes.
fn first_fragment(size: u16, tag: u16, to: LinkAddr) -> Vec<u8> {
    let mut payload = fragment(size, tag, None);
    let dst = plan::addr_of(plan::MESH_PREFIX, to);
    let message = Message::EchoRequest(Echo {
        identifier: 1,
        sequence: 2,
        data: &[7; 16],
    });
    payload.extend(uncompressed(&message, plan::HOST, dst, 64));
    // Fragments count in eights, the dispatch not among them.
    payload.truncate(payload.len() / 8 * 8 - 8 + 5);
    payload
}

/// One of the later fragments.
fn later_fragment(tag: u16) -> Vec<u8> {
    let mut payload = fragment(600, tag, Some(80));
    payload.extend([7; 64]);
    payload
}

fn fragment(size: u16, tag: u16, offset: Option<u8>) -> Vec<u8> {
    let header = lowpan_frag::Header {
        datagram_size: size,
        datagram_tag: tag,
        datagram_offset: offset,
    };
    let mut out = [0; 8];
    let len = header.emit(&mut out).unwrap_or_default();
    out[..len].to_vec()
}
