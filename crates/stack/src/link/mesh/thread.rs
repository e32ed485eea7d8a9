//! A child of a Thread network, seen from its link.
//!
//! ```text
//! a frame in clear, or a datagram of port 19788   → thread::Child → a datagram in a frame in clear
//!                                                         └→ MAC: addresses, key, counters
//!                                                         └→ contexts, IP addresses, default route
//! ```
//!
//! Purpose: carries out what [`Child`] decides; it stands in the place of neighbour discovery,
//! which is off. No other frames in clear enter a mesh with a key, those of nodes that join aside.
//! Left out: fragments in clear, which Thread does not have.

use super::Mesh;
use super::inward::restore;
use crate::ip::{self, Ip, Neighbour, NextHop};
use crate::limits::PSDU_LEN_MAX;
use crate::link::LinkDrop;
use crate::link::arrival::Scratch;
use crate::lowpan::LinkPair;
use crate::mac::security::Security;
use crate::mac::{FrameDrop, Outcome, Received};
use crate::random::Rng;
use crate::thread::mle::{self, Ends};
use crate::thread::network_data::Context;
use crate::thread::{Child, MleDrop, ThreadUnfit};
#[cfg(feature = "sleepy")]
use crate::time::Duration;
use crate::time::Instant;
use crate::wire::cursor::Writer;
use crate::wire::ipv6::{self, Header};
use crate::wire::udp;
use crate::wire::{LinkAddr, cursor};

impl<'m> Mesh<'m> {
    /// Makes this node a child of a Thread network, before the link is given to a node, and after
    /// [`Self::set_security`] with the key of the same network. It is awake or asleep as
    /// [`Self::set_sleep`] has it.
    ///
    /// # Errors
    /// [`ThreadUnfit`]: what is missing, or in the way; the link is then of no use.
    pub fn set_thread(&mut self, child: &'m mut Child) -> Result<(), ThreadUnfit> {
        match self.tcphc.as_deref() {
            Some(tcphc) if !tcphc.is_agreed() => return Err(ThreadUnfit::TcpHeaders),
            // No router of Thread's offers it.
            _ => self.tcphc = None,
        }
        let security = self.mac.security_mut().ok_or(ThreadUnfit::NoKey)?;
        if !security.set_child() {
            return Err(ThreadUnfit::FewNeighbours);
        }
        self.discovery.be_quiet();
        self.thread = Some(child);
        Ok(())
    }

    /// Gives back what [`Self::set_thread`] was lent.
    pub fn take_thread(&mut self) -> Option<&'m mut Child> {
        self.thread.take()
    }

    /// The child of a Thread network that this node is, to look at.
    pub fn thread(&self) -> Option<&Child> {
        self.thread.as_deref()
    }

    /// Leaves the Thread network; poll the node afterwards.
    pub fn leave_thread(&mut self) {
        if let Some(child) = &mut self.thread {
            child.leave();
        }
    }

    /// A frame in clear: one message of MLE, or nothing.
    pub(super) fn on_clear(
        &mut self,
        frame: &Received<'_>,
        Scratch(bytes): &mut Scratch,
        now: Instant,
    ) {
        let link = LinkPair {
            src: frame.src,
            dst: frame.dst,
        };
        let contexts = &self.discovery.contexts;
        let restored = restore(contexts, frame.payload, link, None, bytes);
        let Ok((len, _)) = restored else {
            return self.count(LinkDrop::InClear);
        };
        let packet = bytes.get_mut(..len).unwrap_or_default();
        let Some((header, datagram)) = Header::parse(packet).ok() else {
            return self.count(LinkDrop::InClear);
        };
        let at = packet.len().min(ipv6::HEADER_LEN);
        let end = at + datagram.len();
        let is_its_own = header.src == ip::link_local(frame.src.iid());
        if header.next_header != udp::NEXT_HEADER || !is_its_own {
            return self.count(LinkDrop::InClear);
        }
        let datagram = packet.get_mut(at..end).unwrap_or_default();
        match self.on_mle(&header, datagram, Some(frame.meta.rssi_dbm), now) {
            // What nobody has sealed neither ends the wait for a frame nor asks for the next one.
            Some(true) => self.mac.on_poll_data(frame.src, frame.pending, now),
            Some(false) => {}
            None => self.count(LinkDrop::InClear),
        }
    }

    /// A UDP datagram for this node; returns whether it was believed, if it was one of MLE, which
    /// ends here.
    pub(crate) fn on_mle(
        &mut self,
        header: &Header,
        datagram: &mut [u8],
        rssi_dbm: Option<i8>,
        now: Instant,
    ) -> Option<bool> {
        let child = self.thread.as_deref_mut()?;
        let (ports, payload) = udp::Header::parse(datagram).ok()?;
        if ports.dst_port != mle::PORT {
            return None;
        }
        let is_local = header.src.is_unicast_link_local()
            && header.hop_limit == ip::ndp::HOP_LIMIT
            && udp::is_checksum_valid(&header.src, &header.dst, datagram);
        if !is_local {
            child.count(MleDrop::NotLocal);
            return Some(false);
        }
        let len = payload.len();
        let payload = datagram.get_mut(udp::HEADER_LEN..udp::HEADER_LEN + len);
        let ends = Ends {
            src: header.src,
            dst: header.dst,
        };
        let taken = child.on_message(&ends, payload.unwrap_or_default(), rssi_dbm, now);
        let is_believed = taken.is_ok();
        if let Ok(Some(prefixes)) = taken {
            let contexts = &mut self.discovery.contexts;
            (1..16).for_each(|id| contexts.remove(id));
            for prefix in prefixes {
                if let Some(context) = prefix.context()
                    && context.id > 0
                {
                    let Context {
                        id,
                        bits,
                        compresses,
                    } = context;
                    contexts.set(id, prefix.addr, bits, compresses);
                }
            }
        }
        Some(is_believed)
    }

    /// As [`Self::on_mle`], of a datagram that came in secured frames, as one in fragments does.
    #[inline(never)]
    pub(crate) fn takes_mle(&mut self, header: &Header, datagram: &[u8], now: Instant) -> bool {
        let mut copy = [0; DATAGRAM_LEN_MAX];
        match copy.get_mut(..datagram.len()) {
            Some(copy) => {
                cursor::copy(copy, datagram);
                self.on_mle(header, copy, None, now).is_some()
            }
            None => false,
        }
    }

    /// Lets the child do what is due, and carries it out.
    pub(super) fn poll_thread(&mut self, ip: &mut Ip<'_>, now: Instant, rng: &mut Rng) {
        let (sleeps, unkept) = (self.mac.sleeps(), self.unkept());
        let Some(child) = self.thread.as_deref_mut() else {
            return;
        };
        let sequence = self.mac.security().map_or(0, Security::sequence);
        child.note(sleeps, sequence, unkept);
        child.poll(now, rng);
        #[cfg(feature = "sleepy")]
        if !child.awaits_answer() {
            self.mac.solicit_until(Instant::ORIGIN);
        }
        if child.take_news() {
            self.follow_child(ip, now);
        }
        self.send_mle(now, rng);
    }

    /// When the child has something to do: not while the MAC takes no message of it.
    pub(super) fn thread_deadline(&self) -> Option<Instant> {
        let child = self.thread.as_deref()?;
        match self.mac.may_send_in_clear() {
            true => child.next_deadline(),
            false => child.next_step(),
        }
    }

    /// Writes the messages that are due, one at a time.
    fn send_mle(&mut self, now: Instant, rng: &mut Rng) {
        let Some(child) = self.thread.as_deref_mut() else {
            return;
        };
        if !child.has_message() || !self.mac.may_send_in_clear() {
            return;
        }
        let Some(counter) = self.mac.security_mut().and_then(Security::take_counter) else {
            return;
        };
        let mut packet = [0; HEADERS_LEN + PSDU_LEN_MAX];
        let room = packet.get_mut(HEADERS_LEN..).unwrap_or_default();
        let Ok((ends, len)) = child.write(counter, now, rng, room) else {
            return;
        };
        let payload_len = ((udp::HEADER_LEN + len) as u16).to_be_bytes();
        let port = mle::PORT.to_be_bytes();
        let mut w = Writer::new(&mut packet);
        let parts: [&[u8]; 9] = [
            &[0x60, 0, 0, 0],
            &payload_len,
            &[udp::NEXT_HEADER, ip::ndp::HOP_LIMIT],
            &ends.src.octets(),
            &ends.dst.octets(),
            &port,
            &port,
            &payload_len,
            &[0; 2],
        ];
        let written = parts.iter().try_for_each(|part| w.put(part));
        debug_assert!(written.is_ok(), "there is room for two headers");
        let datagram = packet.get_mut(ipv6::HEADER_LEN..HEADERS_LEN + len);
        let datagram = datagram.unwrap_or_default();
        udp::fill_checksum(&ends.src, &ends.dst, datagram);
        let to = (!ends.dst.is_multicast()).then(|| ip::iid_of(&ends.dst));
        let packet = packet.get(..HEADERS_LEN + len).unwrap_or_default();
        // If it finds no room, it is as if it were lost: the child repeats it.
        let _is_sent = self.send_in_clear(to, packet, now);
        #[cfg(feature = "sleepy")]
        self.await_reply(to.is_none(), now);
    }

    /// Polls for the answer of the parent, or listens for the answers of all.
    #[cfg(feature = "sleepy")]
    fn await_reply(&mut self, is_to_all: bool, now: Instant) {
        self.mac.solicit_until(now + REPLY_MAX);
        if is_to_all {
            self.mac.listen_until(now + REPLY_MAX);
        }
    }

    /// Takes over what has changed: addresses, the parent, its key and its counters.
    fn follow_child(&mut self, ip: &mut Ip<'_>, now: Instant) {
        let Some(child) = self.thread.as_deref_mut() else {
            return;
        };
        let is_anew = child.take_recount();
        let (tie, place) = (child.tie(), child.place());
        let parent = place.map(|place| (place.parent.extended, place.parent.rloc16));
        self.mac.set_place(place.map(|place| place.rloc16), parent);
        if let Some(security) = self.mac.security_mut() {
            security.rotate(child.sequence(), now);
            let binding = child.binding();
            let binding = binding.map(|(it, next)| (it, (next.sequence, next.counter)));
            security.bind(binding, is_anew, now);
        }
        self.mac.keep(tie);
        let Some(place) = place else {
            // Addresses last, for the connections that have them.
            return;
        };
        let id = self.discovery.id;
        let mesh_local = child.mesh_local_prefix();
        let context = child.mesh_local(&[0; 8]);
        self.discovery.contexts.set(0, context, 64, true);
        ip.set_mesh_local(mesh_local);
        let router = LinkAddr::Short(place.parent.rloc16).iid();
        ip.set_default_route(Some(NextHop {
            interface: id,
            neighbour: Neighbour::One(router),
        }));
        ip.replace_addresses(id, child.addresses());
    }

    /// Frames that the parent has promised to this node while it slept, and not sent, modulo 256.
    const fn unkept(&self) -> u8 {
        #[cfg(feature = "sleepy")]
        return self.mac.poll_counters().unanswered as u8;
        #[cfg(not(feature = "sleepy"))]
        return 0;
    }

    /// The parent has sent an authentic frame.
    pub(super) fn note_heard(&mut self, now: Instant) {
        let unkept = self.unkept();
        if let Some(child) = &mut self.thread {
            child.on_heard(unkept, now);
        }
    }

    /// Tells the child what became of a frame to its parent.
    pub(super) fn note_sent(&mut self, outcome: &Outcome, now: Instant) {
        // Whatever else keeps a frame here is not the parent's fault.
        let was_lost = outcome.reason == Some(FrameDrop::NoAck);
        if outcome.delivered || was_lost {
            self.note_taken(outcome.to, outcome.delivered, now);
        }
    }

    pub(super) fn note_taken(&mut self, by: LinkAddr, was_taken: bool, now: Instant) {
        if let Some(child) = &mut self.thread
            && child.tie().is_some_and(|tie| tie.is(&by))
        {
            child.on_sent(was_taken, now);
        }
    }

    /// The neighbour that takes a packet: in a Thread network the parent takes those for all.
    pub(super) fn taker(&self, neighbour: LinkAddr) -> LinkAddr {
        let parent = self.thread.as_ref().and_then(|child| child.tie());
        parent
            .filter(|_| neighbour.is_broadcast())
            .unwrap_or(neighbour)
    }
}

/// How long an answer may take, or answers to all.
#[cfg(feature = "sleepy")]
const REPLY_MAX: Duration = Duration::from_millis(1_500);

/// The longest datagram of MLE: with a dataset of 254 bytes, and as much network data.
const DATAGRAM_LEN_MAX: usize = 640;

/// Bytes before a message of MLE.
const HEADERS_LEN: usize = ipv6::HEADER_LEN + udp::HEADER_LEN;
