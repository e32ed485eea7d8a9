//! A census of frames by what they carry: users' data, or control.
//!
//! Purpose: the air time that a mesh needs without any traffic of users. Frames with TCP, UDP or
//! ICMPv6 echo, and their link ACKs, are users' data. All other frames, ICMPv6 errors among them,
//! are control.
//! Place: [`crate::air::Air`] shows every frame as it goes on the air. Left out: whether frames
//! arrive.

use std::collections::{HashMap, VecDeque};

use motet::time::Duration;
use motet::wire::ieee802154::{FCS_LEN, FrameType, Header};
use motet::wire::ipv6::next_header;
use motet::wire::lorh::{self, RoutingHeaders};
use motet::wire::lowpan_dispatch::{Dispatch, classify};
use motet::wire::lowpan_nhc::Nhc;
use motet::wire::{LinkAddr, icmpv6, lowpan_frag, lowpan_iphc, tcp, udp};

use crate::air::phy;

/// The frames that a node has sent so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Sent {
    /// Frames that no user asked for, each attempt and each ACK counted.
    pub control_frames: u64,
    /// How long they were on the air.
    pub control_time: Duration,
    /// How long users' frames were.
    pub user_time: Duration,
    /// Frames that begin a packet of a user, each attempt counted.
    pub packets: u64,
    /// Bytes in them that routing has added: extension headers, tunnels, 6LoWPAN routing headers.
    pub routing_bytes: u64,
}

/// The frames that all nodes of an air have sent.
#[derive(Clone, Debug, Default)]
pub struct Census {
    /// The frames of each node, by its number.
    sent: Vec<Sent>,
    /// Whether a node's last frame that may be acknowledged was a user's.
    last: HashMap<usize, bool>,
    /// For each sender the packets whose first fragment it sent lately, and whether they are
    /// users'.
    packets: HashMap<usize, VecDeque<(Key, bool)>>,
}

/// The key of a fragmented packet among others of its sender: destination and datagram tag.
type Key = (Option<LinkAddr>, u16);

impl Census {
    /// The frames that the node at `place` has sent.
    pub fn sent(&self, place: usize) -> Sent {
        self.sent.get(place).copied().unwrap_or_default()
    }

    /// Counts a frame that goes on the air. `to`: the destination of an ACK, whose bytes have no
    /// address.
    pub fn note(&mut self, from: usize, psdu: &[u8], to: Option<usize>) {
        if self.sent.len() <= from {
            self.sent.resize(from + 1, Sent::default());
        }
        let is_users = self.is_users(from, psdu, to);
        let sent = &mut self.sent[from];
        let time = phy::air_time(psdu.len());
        if is_users {
            sent.user_time = sent.user_time + time;
        } else {
            sent.control_frames += 1;
            sent.control_time = sent.control_time + time;
        }
    }

    /// Whether a frame is a user's; counts the packet that it begins.
    fn is_users(&mut self, from: usize, psdu: &[u8], to: Option<usize>) -> bool {
        let mpdu = psdu.get(..psdu.len().saturating_sub(FCS_LEN));
        let Some(Ok((header, payload))) = mpdu.map(Header::parse) else {
            return false;
        };
        if header.frame_type == FrameType::Ack {
            let acknowledged = to.and_then(|to| self.last.get(&to));
            return acknowledged.copied().unwrap_or(false);
        }
        let is_users = header.frame_type == FrameType::Data
            && match lowpan_frag::Header::parse(payload) {
                Ok((fragment, rest)) => {
                    let key = (header.dst.map(|dst| dst.addr), fragment.datagram_tag);
                    let first = fragment.is_first().then_some(rest);
                    self.is_fragment_users(from, key, first)
                }
                Err(_) => self.begins_users_packet(from, payload),
            };
        self.last.insert(from, is_users);
        is_users
    }

    /// Later fragments are of the kind of their first, which has the headers.
    fn is_fragment_users(&mut self, from: usize, key: Key, first: Option<&[u8]>) -> bool {
        let Some(payload) = first else {
            let packets = self.packets.entry(from).or_default();
            let known = packets.iter().rev().find(|(known, _)| *known == key);
            return known.is_some_and(|(_, is_users)| *is_users);
        };
        let is_users = self.begins_users_packet(from, payload);
        let packets = self.packets.entry(from).or_default();
        if packets.len() == PACKETS_KEPT {
            packets.pop_front();
        }
        packets.push_back((key, is_users));
        is_users
    }

    fn begins_users_packet(&mut self, from: usize, payload: &[u8]) -> bool {
        let extras = users_extras(payload);
        if let (Some(extras), Some(sent)) = (extras, self.sent.get_mut(from)) {
            sent.packets += 1;
            sent.routing_bytes += extras as u64;
        }
        extras.is_some()
    }
}

/// Whether a packet that begins so, fragment headers aside, carries TCP, UDP or echo: then how
/// many bytes stand in front of that besides one header of IPv6.
fn users_extras(payload: &[u8]) -> Option<usize> {
    let rest = match payload.split_first() {
        Some((&lorh::PAGE_1, rest)) => RoutingHeaders::parse(rest).ok()?.1,
        _ => payload,
    };
    let carried = match classify(rest) {
        Ok(Dispatch::Iphc) => iphc_extras(rest),
        Ok(Dispatch::Ipv6) => ipv6_extras(rest.get(1..)?),
        _ => None,
    };
    Some(payload.len() - rest.len() + carried?)
}

/// As [`users_extras`], from a compressed IPv6 header on.
fn iphc_extras(bytes: &[u8]) -> Option<usize> {
    let (header, headers) = lowpan_iphc::Header::parse(bytes).ok()?;
    let (mut next, mut rest) = (header.next_header, headers);
    // Every turn takes bytes.
    while next.is_none() {
        match Nhc::parse(rest).ok()? {
            (Nhc::Udp(_) | Nhc::Tcp(_), _) => return Some(headers.len() - rest.len()),
            (Nhc::Ipv6, inner) => return Some(bytes.len() - inner.len() + iphc_extras(inner)?),
            (Nhc::Extension(extension), behind) => {
                (next, rest) = (extension.next_header, behind);
            }
        }
    }
    Some(headers.len() - rest.len() + protocol_extras(next?, rest)?)
}

/// As [`users_extras`], from an IPv6 header on.
fn ipv6_extras(packet: &[u8]) -> Option<usize> {
    protocol_extras(*packet.get(NEXT_HEADER_AT)?, packet.get(IPV6_HEADER_LEN..)?)
}

/// As [`users_extras`], from a header on that is not compressed.
fn protocol_extras(protocol: u8, bytes: &[u8]) -> Option<usize> {
    match protocol {
        tcp::NEXT_HEADER | udp::NEXT_HEADER => Some(0),
        icmpv6::NEXT_HEADER => ECHOES.contains(bytes.first()?).then_some(0),
        next_header::IPV6 => Some(IPV6_HEADER_LEN + ipv6_extras(bytes)?),
        next_header::HOP_BY_HOP | next_header::ROUTING | next_header::DESTINATION_OPTIONS => {
            let len = 8 * (usize::from(*bytes.get(1)?) + 1);
            Some(len + protocol_extras(*bytes.first()?, bytes.get(len..)?)?)
        }
        _ => None,
    }
}

/// Echo request and reply (RFC 4443 §4).
const ECHOES: [u8; 2] = [128, 129];

const NEXT_HEADER_AT: usize = 6;
const IPV6_HEADER_LEN: usize = 40;

/// More than a node has under way to its neighbours.
const PACKETS_KEPT: usize = 32;

#[cfg(test)]
#[path = "tests/census.rs"]
mod tests;
