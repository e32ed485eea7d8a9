//! A node's interfaces: a radio with its MAC and 6LoWPAN state, or a wire.

use crate::ip::Neighbour;
use crate::ip::ndp::{Advertised, Solicitor};
use crate::ip::queue::Discipline;
use crate::limits::{FRAME_PAYLOAD_LEN_MAX, IPV6_MTU_MIN};
use crate::lowpan::{Contexts, datagram::Datagrams, fragment::Outgoing};
use crate::mac::{Class, Mac, Received, RxMeta};
use crate::storage::packet_queue::PacketQueue;
use crate::tcphc::Tcphc;
use crate::time::{Allowance, Duration, Instant};
use crate::wire::{LinkAddr, cursor};

/// One interface of a node.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a border router has one wire beside its radio; a box would need an allocator"
)]
pub enum Interface<'m> {
    /// IEEE 802.15.4: frames.
    Radio(Radio<'m>),
    /// A point-to-point link that carries whole IPv6 packets: TUN, serial, Ethernet behind
    /// an adapter.
    Wire(Wire<'m>),
}

/// How a relay passes on a packet of several fragments.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Relaying {
    /// Each fragment as it comes (RFC 8930): little memory, little delay.
    #[default]
    Fragments,
    /// Only whole packets, which RED counts one by one; of fragments it counts the frames.
    Reassembly,
}

/// How a relay gets a fragment from the frame it came in into the one it leaves by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Forwarding {
    /// By way of the processor: the next hop waits for two copies.
    #[default]
    Copy,
    /// It waits in the radio for the next fragment, and is fired by that one's arrival
    /// ([`crate::mac::Mac::enqueue_conditional`]). A radio with one buffer copies all the same.
    Immediate,
}

/// Settings of a radio interface above its MAC.
#[derive(Clone, Copy, Debug)]
pub struct RadioConfig {
    /// How packets of others are passed on.
    pub relaying: Relaying,
    /// How their fragments are.
    pub forwarding: Forwarding,
    /// Frames that a full TCP segment may fill, each way; 0: as many as a packet may.
    ///
    /// More frames spread the headers, but one lost frame costs the whole segment: goodput
    /// rises little beyond five (TCPlp §6.1).
    pub mss_frames: u8,
    /// The only router to accept, where the tree is fixed by hand.
    pub parent: Option<LinkAddr>,
    /// Whether to look for a router. A border router is its mesh's router and does not.
    pub solicits: bool,
    /// What to advertise from the start; a relay advertises what it learns.
    pub advertised: Option<Advertised>,
    /// How long a neighbour is left alone after it took a frame; off by default.
    pub hold: Hold,
    /// How the queue of whole packets is kept short; what this node sends itself is not asked.
    pub discipline: Discipline,
}

/// After a neighbour took a frame, the next one for it waits until that frame must have left
/// the hops ahead: frames of one path no longer run into each other.
///
/// The wait is (min(hops left, 3) − 1) times [`Self::step`], counted from this node: beyond
/// three hops a frame is out of earshot. Hops left are what routing knows: upwards the rank in
/// hops, downwards the depth of what hangs below this node. Hop limits do not tell: each
/// origin chooses its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hold {
    /// Time for one frame to go one hop on; zero: hold nothing back. A full frame takes 7 ms
    /// with copies and mean backoff less what overlaps with this node's own work.
    pub step: Duration,
    /// Hops from here to the border router: frames to the router that this radio's default
    /// route leads to.
    pub hops_up: u8,
    /// Hops from here to the farthest node below: frames to every other neighbour.
    pub hops_down: u8,
}

impl Hold {
    /// How long to hold frames to a neighbour that has just taken one.
    pub(super) fn after(&self, is_router: bool) -> Duration {
        let hops = if is_router {
            self.hops_up
        } else {
            self.hops_down
        };
        let ahead = hops.min(HOPS_IN_EARSHOT).saturating_sub(1);
        self.step.saturating_mul(u64::from(ahead))
    }
}

/// Solicitations answered at once, as when the neighbours of a router all start together, and
/// milliseconds for each more: what asks more often than that is no neighbour that joins.
const ANSWERS_MAX: u8 = 32;
const ANSWERS_INTERVAL_MS: u16 = 250;

/// A frame, its forwarding and the forwarding after that exclude each other (TCPlp §7.2).
const HOPS_IN_EARSHOT: u8 = 3;

impl Default for RadioConfig {
    fn default() -> Self {
        Self {
            relaying: Relaying::Fragments,
            forwarding: Forwarding::Copy,
            mss_frames: 5,
            parent: None,
            solicits: true,
            advertised: None,
            hold: Hold::default(),
            discipline: Discipline::DropTail,
        }
    }
}

/// The memory a radio interface works in.
#[derive(Debug)]
pub struct RadioMemory<'m> {
    /// The packet being fragmented: [`IPV6_MTU_MIN`] bytes.
    pub outgoing: &'m mut [u8],
    /// Datagrams being reassembled or passed on.
    pub datagrams: Datagrams<'m>,
    /// Packets waiting to be sent.
    pub queue: PacketQueue<'m>,
}

/// A radio interface.
#[derive(Debug)]
pub struct Radio<'m> {
    pub(super) config: RadioConfig,
    pub(super) mac: Mac<'m>,
    pub(super) contexts: Contexts,
    /// TCP header compression, where the network has it.
    pub(super) tcphc: Option<&'m mut Tcphc<'m>>,
    pub(super) outgoing: Outgoing<'m>,
    /// Of the packet in `outgoing`.
    pub(super) outgoing_class: Class,
    /// Since when that packet has been here, as its frames count it.
    pub(super) outgoing_since: Instant,
    /// The tag of a packet that was given up on its link, until its source has got an error.
    pub(super) undelivered: Option<u16>,
    pub(super) datagrams: Datagrams<'m>,
    pub(super) queue: PacketQueue<'m>,
    pub(super) solicitor: Solicitor,
    /// Solicitations that are answered: of strangers, and of neighbours that acknowledge. So
    /// made-up sources leave the router's answers to its own neighbours alone.
    answers: [Allowance; 2],
    pub(super) advertised: Option<Advertised>,
    /// The frame whose packet is dealt with when its ACK has left.
    pub(super) kept: Option<Kept>,
}

/// A received frame, kept: its ACK is due a turnaround after its end, and the work that its
/// packet makes would come in between.
#[derive(Debug)]
pub(super) struct Kept {
    src: LinkAddr,
    dst: LinkAddr,
    pending: bool,
    meta: RxMeta,
    len: u8,
    payload: [u8; FRAME_PAYLOAD_LEN_MAX],
}

impl Kept {
    /// A copy of `frame`; `None` where it is longer than any that the MAC lets through.
    pub(super) fn of(frame: &Received<'_>) -> Option<Self> {
        let len = u8::try_from(frame.payload.len()).ok()?;
        let mut payload = [0; FRAME_PAYLOAD_LEN_MAX];
        let fits = frame.payload.len() <= payload.len();
        cursor::copy(&mut payload, frame.payload);
        fits.then_some(Self {
            src: frame.src,
            dst: frame.dst,
            pending: frame.pending,
            meta: frame.meta,
            len,
            payload,
        })
    }

    /// The frame as it came.
    pub(super) fn frame(&self) -> Received<'_> {
        Received {
            src: self.src,
            dst: self.dst,
            payload: self
                .payload
                .get(..usize::from(self.len))
                .unwrap_or_default(),
            pending: self.pending,
            meta: self.meta,
        }
    }
}

impl<'m> Radio<'m> {
    /// An interface over a MAC and borrowed memory.
    pub fn new(config: RadioConfig, mac: Mac<'m>, memory: RadioMemory<'m>) -> Self {
        Self {
            config,
            mac,
            contexts: Contexts::default(),
            tcphc: None,
            outgoing: Outgoing::new(memory.outgoing),
            outgoing_class: Class::Control,
            outgoing_since: Instant::ORIGIN,
            undelivered: None,
            datagrams: memory.datagrams,
            queue: memory.queue,
            solicitor: Solicitor::new(config.parent.map(LinkAddr::iid)),
            answers: [const { Allowance::new(ANSWERS_MAX, ANSWERS_INTERVAL_MS) }; 2],
            advertised: config.advertised,
            kept: None,
        }
    }

    /// Takes one of the answers to solicitations that `from` may have now; `None`: too many.
    pub(super) fn may_answer(&mut self, from: LinkAddr, now: Instant) -> Option<()> {
        let [strangers, neighbours] = &mut self.answers;
        let allowed = match self.mac.is_trusted(from) {
            true => neighbours.take(now),
            false => strangers.take(now),
        };
        allowed.then_some(())
    }

    /// Contexts for header compression; a border router sets them before it starts.
    pub fn contexts_mut(&mut self) -> &mut Contexts {
        &mut self.contexts
    }

    /// Turns TCP header compression on, before the radio is given to a node, whose TCP then
    /// keeps its windows short; a build without the feature `tcphc` leaves it off.
    pub fn set_tcphc(&mut self, tcphc: &'m mut Tcphc<'m>) {
        self.tcphc = Some(tcphc);
    }

    /// TCP header compression, where it is on.
    pub fn tcphc(&self) -> Option<&Tcphc<'m>> {
        self.tcphc.as_deref()
    }

    /// The MAC below.
    pub const fn mac(&self) -> &Mac<'m> {
        &self.mac
    }

    /// Whether a whole packet waits for the air behind the one being fragmented.
    pub fn has_packet_waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Fragmented packets under way, and what became of others.
    pub const fn datagrams(&self) -> &Datagrams<'m> {
        &self.datagrams
    }
}

/// Where frames for a neighbour go. `None` where the link has none of this name: no other node is
/// alone on it, and the identifier that all nodes answer to belongs to no single node.
pub(super) fn link_addr(neighbour: Neighbour) -> Option<LinkAddr> {
    match neighbour {
        Neighbour::Only => None,
        Neighbour::All => Some(LinkAddr::BROADCAST),
        Neighbour::One(iid) => Some(LinkAddr::from_iid(iid)).filter(|addr| !addr.is_broadcast()),
    }
}

impl Interface<'_> {
    /// Whether there can be such a neighbour on this link.
    pub(super) fn reaches(&self, neighbour: Neighbour) -> bool {
        match self {
            Self::Radio(_) => link_addr(neighbour).is_some(),
            Self::Wire(_) => true,
        }
    }

    /// The longest packet it carries, bytes.
    pub(super) fn mtu(&self) -> u32 {
        match self {
            Self::Radio(_) => IPV6_MTU_MIN as u32,
            Self::Wire(wire) => u32::from(wire.mtu),
        }
    }
}

/// A wired interface.
#[derive(Debug)]
pub struct Wire<'m> {
    pub(super) queue: PacketQueue<'m>,
    pub(super) mtu: u16,
}

impl<'m> Wire<'m> {
    /// A wire that carries packets of up to `mtu` bytes, at least [`IPV6_MTU_MIN`].
    pub fn new(queue: PacketQueue<'m>, mtu: u16) -> Self {
        Self {
            queue,
            mtu: mtu.max(IPV6_MTU_MIN as u16),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_neighbour_has_the_address_of_all() {
        let all = Neighbour::One(LinkAddr::BROADCAST.iid());
        assert_eq!(link_addr(all), None);
        assert_eq!(link_addr(Neighbour::Only), None);
        assert_eq!(link_addr(Neighbour::All), Some(LinkAddr::BROADCAST));
        for addr in [LinkAddr::Short(7), LinkAddr::Extended([2; 8])] {
            assert_eq!(link_addr(Neighbour::One(addr.iid())), Some(addr));
        }
    }

    #[test]
    fn a_neighbour_is_left_alone_while_its_forwards_are_in_earshot() {
        let hold = |hops_up, hops_down| Hold {
            step: Duration::from_millis(7),
            hops_up,
            hops_down,
        };
        for (hops, ms) in [(0, 0), (1, 0), (2, 7), (3, 14), (4, 14), (255, 14)] {
            let expected = Duration::from_millis(ms);
            assert_eq!(hold(hops, 0).after(true), expected, "{hops} hops up");
            assert_eq!(hold(0, hops).after(false), expected, "{hops} hops down");
        }
        assert_eq!(Hold::default().after(true), Duration::ZERO);
    }
}
