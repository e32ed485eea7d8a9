//! MLE as a router speaks it: in OpenThread's order of TLVs.

use std::net::Ipv6Addr;

use motet::lowpan::{self, LinkPair};
use motet::thread::Tlvs;
use motet::thread::mle::{self, Builder, Ends, Numbers, command, tlv_type};
use motet::thread::network_data::flag;
use motet::time::{Duration, Instant};
use motet::wire::{LinkAddr, ipv6, udp};

use super::outgoing::Outgoing;
use super::{OWN_SHORT, PREFIX_CONTEXT, Router, of_64_bits};

/// A message before it is sealed.
struct Message {
    command: u8,
    tlvs: Vec<(u8, Vec<u8>)>,
}

impl Message {
    const fn new(command: u8) -> Self {
        Self {
            command,
            tlvs: Vec::new(),
        }
    }

    fn tlv(&mut self, kind: u8, value: &[u8]) -> &mut Self {
        self.tlvs.push((kind, value.to_vec()));
        self
    }
}

impl Router {
    /// A message of a neighbour.
    pub(super) fn on_mle(&mut self, ends: Ends, mut payload: Vec<u8>, now: Instant) {
        let Ok(message) = mle::open(self.seal.network(), &ends, &mut payload) else {
            self.counters.refused += 1;
            return;
        };
        let (sender, numbers, tlvs) = (ends.sender(), message.numbers, message.tlvs);
        let child = self.children.by_extended(sender);
        // A node that starts anew may have a key sequence of the past: its challenge protects it.
        let is_search = [command::PARENT_REQUEST, command::CHILD_ID_REQUEST];
        let is_old = child.is_some_and(|child| {
            let is_old = child.is_attached && numbers <= child.mle;
            child.mle = child.mle.max(numbers);
            is_old
        });
        if is_old && !is_search.contains(&message.command) {
            self.counters.refused += 1;
            return;
        }
        match message.command {
            command::PARENT_REQUEST => self.on_parent_request(sender, tlvs, now),
            command::CHILD_ID_REQUEST => self.on_child_id_request(sender, numbers, tlvs, now),
            command::CHILD_UPDATE_REQUEST => self.on_child_update(sender, tlvs, now),
            command::DATA_REQUEST => self.on_data_request(sender, now),
            _ => {}
        }
    }

    fn on_parent_request(&mut self, sender: [u8; 8], tlvs: Tlvs<'_>, now: Instant) {
        let mask = tlvs.find(tlv_type::SCAN_MASK).and_then(<[u8]>::first);
        let asks_routers = mask.is_some_and(|mask| mask & ASKS_ROUTERS != 0);
        let (Some(challenge), true) = (tlvs.find(tlv_type::CHALLENGE), asks_routers) else {
            return;
        };
        let is_known = self
            .children
            .by_extended(sender)
            .is_some_and(|child| child.is_attached);
        // OpenThread's router is silent where it has no room.
        if !is_known && !self.children.have_room() {
            return;
        }
        let own_challenge = self.rng.next_u64().to_be_bytes();
        self.children.candidate(sender, own_challenge, now);
        let sleeps = tlvs
            .array::<1>(tlv_type::MODE)
            .is_some_and(|[mode]| mode & RECEIVER_ON == 0);
        let mut builder = Message::new(command::PARENT_RESPONSE);
        builder
            .tlv(tlv_type::SOURCE_ADDRESS, &OWN_SHORT.to_be_bytes())
            .tlv(tlv_type::LEADER_DATA, &self.leader_data())
            .tlv(
                tlv_type::LINK_FRAME_COUNTER,
                &self.seal.counter().to_be_bytes(),
            )
            .tlv(tlv_type::MLE_FRAME_COUNTER, &self.mle_counter.to_be_bytes())
            .tlv(tlv_type::RESPONSE, challenge);
        if sleeps {
            // A crystal of 20 ppm, uncertain by 10 times 10 µs: what OpenThread's simulation says.
            builder.tlv(tlv_type::CSL_ACCURACY, &[20, 10]);
        }
        builder
            .tlv(tlv_type::CHALLENGE, &own_challenge)
            .tlv(tlv_type::LINK_MARGIN, &[LINK_MARGIN])
            .tlv(tlv_type::CONNECTIVITY, &connectivity())
            .tlv(tlv_type::VERSION, &VERSION.to_be_bytes());
        let message = self.sealed(&builder, sender);
        // So that routers do not all answer at once (Thread 1.1 §4.5).
        let at = now + self.rng.uniform(ANSWERS_WITHIN);
        self.later.extend(message.map(|message| (at, message)));
    }

    fn on_child_id_request(
        &mut self,
        sender: [u8; 8],
        numbers: Numbers,
        tlvs: Tlvs<'_>,
        now: Instant,
    ) {
        let has_room = self.children.have_room();
        let Some(child) = self.children.by_extended(sender) else {
            return;
        };
        let response = tlvs.array::<8>(tlv_type::RESPONSE);
        let mode = tlvs.array::<1>(tlv_type::MODE);
        let timeout = tlvs.array::<4>(tlv_type::TIMEOUT);
        let (true, Some([mode]), Some(timeout)) = (
            response.is_some() && response == child.challenge,
            mode,
            timeout,
        ) else {
            self.counters.refused += 1;
            return;
        };
        let mut builder = Message::new(command::CHILD_ID_RESPONSE);
        builder.tlv(tlv_type::SOURCE_ADDRESS, &OWN_SHORT.to_be_bytes());
        if !child.is_attached && !has_room {
            builder.tlv(tlv_type::STATUS, &[NO_ADDRESS]);
            let message = self.sealed(&builder, sender);
            self.children.remove(sender);
            return self.push(message);
        }
        // A recording of this request is none.
        child.challenge = None;
        child.is_attached = true;
        child.mode = mode;
        child.mle = numbers;
        child.mac_counter = None;
        child.forget_waiting();
        child.heard_at = now;
        child.timeout = seconds(timeout);
        let short = child.short;
        let (is_asleep, addrs) = (child.sleeps(), child.addrs());
        self.counters.attached += 1;
        self.register(sender, tlvs);
        let leader = self.leader_data();
        let network_data = self.network_data();
        builder
            .tlv(tlv_type::LEADER_DATA, &leader)
            .tlv(tlv_type::ACTIVE_TIMESTAMP, &self.options.timestamp)
            .tlv(tlv_type::ADDRESS16, &short.to_be_bytes())
            .tlv(tlv_type::NETWORK_DATA, &network_data);
        if let Some(interval) = tlvs.find(tlv_type::SUPERVISION_INTERVAL) {
            builder.tlv(tlv_type::SUPERVISION_INTERVAL, interval);
        }
        builder.tlv(
            tlv_type::ADDRESS_REGISTRATION,
            tlvs.find(tlv_type::ADDRESS_REGISTRATION)
                .unwrap_or_default(),
        );
        let message = self.sealed(&builder, sender);
        self.answer(sender, message, is_asleep.then_some(addrs));
    }

    fn on_child_update(&mut self, sender: [u8; 8], tlvs: Tlvs<'_>, now: Instant) {
        let is_known = self
            .children
            .by_extended(sender)
            .is_some_and(|child| child.is_attached);
        let mut builder = Message::new(command::CHILD_UPDATE_RESPONSE);
        if !is_known {
            builder
                .tlv(tlv_type::SOURCE_ADDRESS, &OWN_SHORT.to_be_bytes())
                .tlv(tlv_type::STATUS, &[ERROR]);
            if let Some(challenge) = tlvs.find(tlv_type::CHALLENGE) {
                builder.tlv(tlv_type::RESPONSE, challenge);
            }
            let message = self.sealed(&builder, sender);
            return self.push(message);
        }
        self.register(sender, tlvs);
        let Some(child) = self.children.by_extended(sender) else {
            return;
        };
        child.heard_at = now;
        if let Some([mode]) = tlvs.array(tlv_type::MODE) {
            child.mode = mode;
        }
        let timeout = tlvs.array::<4>(tlv_type::TIMEOUT);
        if let Some(timeout) = timeout {
            child.timeout = seconds(timeout);
        }
        if timeout == Some([0; 4]) {
            self.children.remove(sender);
            self.counters.lost += 1;
            return;
        }
        let (mode, timeout) = (child.mode, child.timeout);
        let (is_asleep, addrs) = (child.sleeps(), child.addrs());
        let timeout = (timeout.as_micros() / 1_000_000) as u32;
        let leader = self.leader_data();
        builder.tlv(tlv_type::SOURCE_ADDRESS, &OWN_SHORT.to_be_bytes());
        if let Some(challenge) = tlvs.find(tlv_type::CHALLENGE) {
            builder
                .tlv(tlv_type::RESPONSE, challenge)
                .tlv(
                    tlv_type::LINK_FRAME_COUNTER,
                    &self.seal.counter().to_be_bytes(),
                )
                .tlv(tlv_type::MLE_FRAME_COUNTER, &self.mle_counter.to_be_bytes());
        }
        builder
            .tlv(tlv_type::MODE, &[mode])
            .tlv(tlv_type::LINK_MARGIN, &[LINK_MARGIN])
            .tlv(tlv_type::LEADER_DATA, &leader);
        if let Some(registered) = tlvs.find(tlv_type::ADDRESS_REGISTRATION) {
            builder.tlv(tlv_type::ADDRESS_REGISTRATION, registered);
        }
        builder.tlv(tlv_type::TIMEOUT, &timeout.to_be_bytes());
        let message = self.sealed(&builder, sender);
        self.answer(sender, message, is_asleep.then_some(addrs));
    }

    fn on_data_request(&mut self, sender: [u8; 8], now: Instant) {
        let Some(child) = self
            .children
            .by_extended(sender)
            .filter(|child| child.is_attached)
        else {
            return;
        };
        child.heard_at = now;
        let (is_asleep, addrs) = (child.sleeps(), child.addrs());
        let network_data = self.network_data();
        let mut builder = Message::new(command::DATA_RESPONSE);
        builder
            .tlv(tlv_type::SOURCE_ADDRESS, &OWN_SHORT.to_be_bytes())
            .tlv(tlv_type::LEADER_DATA, &self.leader_data())
            .tlv(tlv_type::ACTIVE_TIMESTAMP, &self.options.timestamp)
            .tlv(tlv_type::NETWORK_DATA, &network_data);
        let message = self.sealed(&builder, sender);
        self.answer(sender, message, is_asleep.then_some(addrs));
    }

    /// Tells all neighbours that the router is there.
    pub(super) fn advertise(&mut self) {
        let mut builder = Message::new(command::ADVERTISEMENT);
        // One router, number 1: its identifier sequence, the mask of routers, its own link.
        let route = [1, 0x40, 0, 0, 0, 0, 0, 0, 0, 0x01];
        builder
            .tlv(tlv_type::SOURCE_ADDRESS, &OWN_SHORT.to_be_bytes())
            .tlv(tlv_type::LEADER_DATA, &self.leader_data())
            .tlv(tlv_type::ROUTE64, &route);
        let ends = Ends {
            src: self.link_local(),
            dst: ALL_NODES,
        };
        let message = self.sealed_to(&builder, ends, LinkAddr::BROADCAST);
        self.push(message);
    }

    /// Sends a message that could be made.
    fn push(&mut self, message: Option<Outgoing>) {
        if let Some(message) = message {
            self.transmitter.push(message);
        }
    }

    /// Sends a message to a child: at once, or when it asks if it sleeps, at these addresses.
    fn answer(&mut self, child: [u8; 8], message: Option<Outgoing>, asleep: Option<[LinkAddr; 2]>) {
        let Some(message) = message else {
            return;
        };
        match (asleep, self.children.by_extended(child)) {
            (Some(addrs), Some(child)) => {
                child.keep(vec![message]);
                self.say_pending(addrs, true);
            }
            _ => self.transmitter.push(message),
        }
    }

    /// Takes over the addresses that a child registers.
    fn register(&mut self, sender: [u8; 8], tlvs: Tlvs<'_>) {
        let Some(mut entries) = tlvs.find(tlv_type::ADDRESS_REGISTRATION) else {
            return;
        };
        let mut found = Vec::new();
        while let [first, rest @ ..] = entries {
            let is_compressed = first & COMPRESSED != 0;
            let len = if is_compressed { 8 } else { 16 };
            let Some((bytes, rest)) = rest.split_at_checked(len) else {
                break;
            };
            let bits = bytes
                .iter()
                .fold(0, |bits, byte| bits << 8 | u128::from(*byte));
            let context = self.contexts.get(first & 0x0f);
            match (is_compressed, context) {
                (true, Some(context)) => {
                    found.push(Ipv6Addr::from_bits(context.prefix().to_bits() | bits));
                }
                (true, None) => {}
                (false, _) => found.push(Ipv6Addr::from_bits(bits)),
            }
            entries = rest;
        }
        found.truncate(ADDRESSES_MAX);
        let mesh_local = of_64_bits(self.options.mesh_local);
        if let Some(child) = self.children.by_extended(sender) {
            // The address that follows from its short one needs no registration.
            let locator = LOCATOR | u128::from(child.short);
            found.push(Ipv6Addr::from_bits(mesh_local.to_bits() | locator));
            child.addresses = found;
        }
    }

    fn leader_data(&self) -> [u8; 8] {
        let [a, b, c, d] = self.partition.to_be_bytes();
        [a, b, c, d, WEIGHTING, 1, 1, OWN_ID]
    }

    /// One prefix, of this router, with a context.
    fn network_data(&self) -> Vec<u8> {
        let flags = flag::SLAAC | flag::PREFERRED | flag::DEFAULT_ROUTE | flag::ON_MESH;
        let prefix = self.options.prefix.octets();
        let mut value = vec![0, 64];
        value.extend(&prefix[..8]);
        value.extend([3 << 1 | 1, 2, 0x10 | PREFIX_CONTEXT, 64]);
        value.extend([2 << 1 | 1, 4]);
        value.extend(OWN_SHORT.to_be_bytes());
        value.extend(flags.to_be_bytes());
        let mut data = vec![1 << 1 | 1, value.len() as u8];
        data.extend(value);
        data
    }

    fn link_local(&self) -> Ipv6Addr {
        let iid = LinkAddr::Extended(self.options.extended).iid();
        Ipv6Addr::from_bits(LINK_LOCAL | u128::from(u64::from_be_bytes(iid)))
    }

    /// A message to one neighbour.
    fn sealed(&mut self, message: &Message, to: [u8; 8]) -> Option<Outgoing> {
        let to = LinkAddr::Extended(to);
        let dst = LINK_LOCAL | u128::from(u64::from_be_bytes(to.iid()));
        let ends = Ends {
            src: self.link_local(),
            dst: Ipv6Addr::from_bits(dst),
        };
        self.sealed_to(message, ends, to)
    }

    fn sealed_to(&mut self, message: &Message, ends: Ends, to: LinkAddr) -> Option<Outgoing> {
        let numbers = Numbers {
            sequence: self.seal.sequence,
            counter: self.mle_counter,
        };
        let mut sealed = vec![0; MESSAGE_MAX];
        let mut builder = Builder::new(message.command, &mut sealed);
        for (kind, value) in &message.tlvs {
            builder.tlv(*kind, &[value]);
        }
        let len = builder.seal(self.seal.network(), &ends, numbers).ok()?;
        self.mle_counter += 1;
        sealed.truncate(len);
        let packet = datagram(ends, &sealed);
        let from = LinkAddr::Extended(self.options.extended);
        let link = LinkPair { src: from, dst: to };
        let mut payload = vec![0; packet.len()];
        let done = lowpan::compress(&packet, link, &self.contexts, &mut payload).ok()?;
        payload.truncate(done.compressed_len);
        payload.extend_from_slice(packet.get(done.uncompressed_len..)?);
        Some(Outgoing {
            pan: self.options.pan,
            from,
            to,
            payload,
            is_secured: false,
            has_more: false,
            kept_for: None,
        })
    }
}

/// The packet of a message.
fn datagram(ends: Ends, message: &[u8]) -> Vec<u8> {
    let len = udp::HEADER_LEN + message.len();
    let header = ipv6::Header {
        traffic_class: ipv6::TrafficClass::default(),
        flow_label: 0,
        payload_len: len as u16,
        next_header: udp::NEXT_HEADER,
        hop_limit: u8::MAX,
        src: ends.src,
        dst: ends.dst,
    };
    let mut packet = vec![0; ipv6::HEADER_LEN + udp::HEADER_LEN];
    let (ip, datagram) = packet.split_at_mut(ipv6::HEADER_LEN);
    let ports = udp::Header {
        src_port: mle::PORT,
        dst_port: mle::PORT,
    };
    let written = header
        .emit(ip)
        .and_then(|_| ports.emit(message.len(), datagram));
    debug_assert!(written.is_ok(), "headers have these lengths");
    packet.extend_from_slice(message);
    if let Some(datagram) = packet.get_mut(ipv6::HEADER_LEN..) {
        udp::fill_checksum(&ends.src, &ends.dst, datagram);
    }
    packet
}

/// Connectivity (Thread 1.1 §4.5.13): priority 0, no other router, leader cost 0, one router; a
/// buffer of 1,280 bytes and one datagram for each child that sleeps.
const fn connectivity() -> [u8; 10] {
    [0, 0, 0, 0, 0, 1, 1, 0x05, 0x00, 1]
}

fn seconds(timeout: [u8; 4]) -> Duration {
    let seconds = u32::from_be_bytes(timeout).clamp(TIMEOUT_MIN_S, TIMEOUT_MAX_S);
    Duration::from_secs(seconds.into())
}

/// The bit in a scan mask that asks routers.
const ASKS_ROUTERS: u8 = 0x80;
const RECEIVER_ON: u8 = 0x08;
/// In an address registration: an interface identifier below a context.
const COMPRESSED: u8 = 0x80;
const ADDRESSES_MAX: usize = 4;
/// Status TLV: an error.
const ERROR: u8 = 1;
/// Status TLV: there is no address left.
const NO_ADDRESS: u8 = 2;
/// Thread 1.3.1, as OpenThread of today says.
const VERSION: u16 = 5;
const WEIGHTING: u8 = 64;
const OWN_ID: u8 = 1;
/// dB above the receiver's floor, as OpenThread's simulated radios have it.
const LINK_MARGIN: u8 = 80;
const ANSWERS_WITHIN: Duration = Duration::from_millis(500);
const TIMEOUT_MIN_S: u32 = 1;
const TIMEOUT_MAX_S: u32 = 1 << 20;
const MESSAGE_MAX: usize = 200;
const LINK_LOCAL: u128 = 0xfe80 << 112;
/// The interface identifier that a short address follows.
const LOCATOR: u128 = 0xff_fe00_0000;
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

#[cfg(test)]
#[path = "tests/messages.rs"]
mod tests;
