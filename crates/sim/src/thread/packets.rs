//! IPv6 packets in and out of secured frames: seals, compressed headers, fragments.

use std::net::Ipv6Addr;

use motet::lowpan::{self, LinkPair};
use motet::mac::security::{self, NetworkKey, Software, index, sequence_of};
use motet::time::{Duration, Instant};
use motet::wire::LinkAddr;
use motet::wire::ieee802154::{Auxiliary, FrameType, Header, Level};
use motet::wire::{ipv6, lowpan_frag, udp};

use super::outgoing::Outgoing;
use super::{OWN_SHORT, Router};
use motet::thread::mle;

/// What seals the router's frames, and opens those of others.
#[derive(Debug)]
pub(super) struct Seal {
    network: NetworkKey,
    pub(super) sequence: u32,
    counter: u32,
    extended: [u8; 8],
}

impl Seal {
    pub(super) const fn new(network: NetworkKey, sequence: u32, extended: [u8; 8]) -> Self {
        Self {
            network,
            sequence,
            counter: 0,
            extended,
        }
    }

    pub(super) const fn network(&self) -> &NetworkKey {
        &self.network
    }

    /// The counter of the next frame.
    pub(super) const fn counter(&self) -> u32 {
        self.counter
    }

    /// Goes on to a later key sequence.
    pub(super) fn go_on(&mut self, sequence: u32) {
        self.sequence = self.sequence.max(sequence);
    }

    /// The bytes of a frame, without its FCS; none where they are too many.
    pub(super) fn frame(&mut self, frame: &Outgoing, number: u8) -> Option<Vec<u8>> {
        let header = Header {
            frame_pending: frame.has_more,
            ..Header::data(frame.pan, frame.to, frame.from, number)
        };
        let mut bytes = vec![0; MPDU_MAX];
        if !frame.is_secured {
            let len = header.emit(&mut bytes).ok()?;
            bytes.truncate(len);
            bytes.extend_from_slice(&frame.payload);
            return (bytes.len() <= MPDU_MAX).then_some(bytes);
        }
        let auxiliary = Auxiliary {
            level: Level::Mic32,
            counter: self.counter,
            key_index: index(self.sequence),
        };
        self.counter += 1;
        let len = header.emit_secured(&auxiliary, &mut bytes).ok()?;
        bytes.truncate(len);
        let mut body = frame.payload.clone();
        body.extend([0; Level::Mic32.mic_len()]);
        let cipher = Software::new(&self.network.link_key(self.sequence));
        security::seal(&cipher, self.extended, auxiliary, &bytes, &mut body)?;
        bytes.extend(body);
        (bytes.len() <= MPDU_MAX).then_some(bytes)
    }

    /// The numbers and the payload of a secured frame, if its seal is right.
    pub(super) fn open(
        &self,
        mpdu: &[u8],
        (header, head_len): (&Header, usize),
        auxiliary: Auxiliary,
        sender: [u8; 8],
    ) -> Option<((u32, u32), Vec<u8>)> {
        // The identifier of a command goes in clear.
        let is_command = header.frame_type == FrameType::Command;
        let (head, body) = mpdu.split_at_checked(head_len + usize::from(is_command))?;
        let sequence = sequence_of(auxiliary.key_index, self.sequence)?;
        let cipher = Software::new(&self.network.link_key(sequence));
        let mut body = body.to_vec();
        let opened = security::open(&cipher, sender, auxiliary, head, &mut body).ok()?;
        let command = head.last().copied().filter(|_| is_command);
        let payload = command.into_iter().chain(opened.iter().copied()).collect();
        Some(((sequence, auxiliary.counter), payload))
    }
}

/// Packets that come in fragments.
#[derive(Debug, Default)]
pub(super) struct Gathering(Vec<Part>);

#[derive(Debug)]
struct Part {
    from: LinkAddr,
    tag: u16,
    packet: Vec<u8>,
    /// Bytes that have come.
    filled: usize,
    began: Instant,
}

impl Gathering {
    /// Takes a fragment; gives the packet once it is whole.
    fn add(
        &mut self,
        header: lowpan_frag::Header,
        (from, bytes): (LinkAddr, &[u8]),
        first: Option<&[u8]>,
        now: Instant,
    ) -> Option<Vec<u8>> {
        self.0.retain(|part| part.began + GATHERED_WITHIN > now);
        let size = usize::from(header.datagram_size);
        let tag = header.datagram_tag;
        let is_it = |part: &Part| part.from == from && part.tag == tag && part.packet.len() == size;
        if !self.0.iter().any(is_it) && self.0.len() < GATHERED_MAX {
            self.0.push(Part {
                from,
                tag,
                packet: vec![0; size],
                filled: 0,
                began: now,
            });
        }
        let at = self.0.iter().position(is_it)?;
        let part = self.0.get_mut(at)?;
        let bytes = first.unwrap_or(bytes);
        let place = header.offset_bytes()..header.offset_bytes() + bytes.len();
        part.packet.get_mut(place)?.copy_from_slice(bytes);
        part.filled += bytes.len();
        let is_whole = part.filled >= size;
        is_whole.then(|| self.0.swap_remove(at).packet)
    }
}

/// The destination of a packet.
pub(super) fn destination(packet: &[u8]) -> Option<Ipv6Addr> {
    Some(ipv6::Header::parse_start(packet).ok()?.0.dst)
}

impl Router {
    /// The payload of a data frame; `sender`: whose seal it has.
    pub(super) fn on_payload(
        &mut self,
        payload: &[u8],
        (src, dst): (LinkAddr, LinkAddr),
        sender: Option<[u8; 8]>,
        now: Instant,
    ) {
        let link = LinkPair { src, dst };
        let packet = match lowpan_frag::Header::parse(payload) {
            Ok((header, rest)) => {
                let first = header.is_first().then(|| {
                    let size = Some(header.datagram_size);
                    self.restored(rest, link, size)
                });
                match first {
                    Some(None) => None,
                    first => {
                        let first = first.flatten();
                        self.gathering
                            .add(header, (src, rest), first.as_deref(), now)
                    }
                }
            }
            Err(_) => self.restored(payload, link, None),
        };
        if let Some(packet) = packet {
            self.on_whole(packet, sender, now);
        }
    }

    /// A packet, or its beginning, with its headers as they are.
    fn restored(&self, bytes: &[u8], link: LinkPair, size: Option<u16>) -> Option<Vec<u8>> {
        let mut out = vec![0; PACKET_MAX];
        let done = lowpan::decompress(bytes, link, &self.contexts, size, &mut out).ok()?;
        out.truncate(done.uncompressed_len);
        out.extend_from_slice(bytes.get(done.compressed_len..)?);
        if done.udp_checksum_elided {
            lowpan::complete_udp_checksum(&mut out);
        }
        Some(out)
    }

    /// A packet from the air.
    fn on_whole(&mut self, mut packet: Vec<u8>, sender: Option<[u8; 8]>, now: Instant) {
        let Ok((header, payload)) = ipv6::Header::parse_start(&packet) else {
            return;
        };
        let is_mle = header.next_header == udp::NEXT_HEADER
            && header.hop_limit == u8::MAX
            && header.src.is_unicast_link_local()
            && payload.get(2..4) == Some(&mle::PORT.to_be_bytes());
        if is_mle {
            let ends = mle::Ends {
                src: header.src,
                dst: header.dst,
            };
            let payload = payload.get(udp::HEADER_LEN..).unwrap_or_default().to_vec();
            return self.on_mle(ends, payload, now);
        }
        let (src, dst) = (header.src, header.dst);
        let child = sender.and_then(|sender| self.children.by_extended(sender));
        let Some(child) = child.filter(|child| child.is_attached) else {
            self.counters.refused += 1;
            return;
        };
        child.heard_at = now;
        // No packet from an address that the child has not registered.
        let is_its_own = child.addresses.contains(&src);
        if !is_its_own || header.hop_limit <= 1 || dst.is_unicast_link_local() || dst.is_multicast()
        {
            self.counters.dropped += 1;
            return;
        }
        if let Some(hops) = packet.get_mut(HOP_LIMIT_AT) {
            *hops -= 1;
        }
        if self.children.by_address(dst).is_some() {
            let is_sent = self.send_to(dst, &packet);
            self.counters.dropped += u32::from(!is_sent);
        } else {
            self.outside.push_back(packet);
        }
    }

    /// Sends a packet to the child with this address, now or when it asks; returns whether it has
    /// a way and room.
    pub(super) fn send_to(&mut self, dst: Ipv6Addr, packet: &[u8]) -> bool {
        let Some(short) = self.children.by_address(dst).map(|child| child.short) else {
            return false;
        };
        let to = LinkAddr::Short(short);
        let Some(frames) = self.frames(to, packet) else {
            return false;
        };
        let Some(child) = self.children.by_short(short) else {
            return false;
        };
        if child.sleeps() {
            let (is_kept, addrs) = (child.keep(frames), child.addrs());
            self.say_pending(addrs, true);
            return is_kept;
        }
        let has_room = self.transmitter.room() >= frames.len();
        if has_room {
            frames
                .into_iter()
                .for_each(|frame| self.transmitter.push(frame));
        }
        has_room
    }

    /// The secured frames of a packet.
    fn frames(&mut self, to: LinkAddr, packet: &[u8]) -> Option<Vec<Outgoing>> {
        let from = LinkAddr::Short(OWN_SHORT);
        let link = LinkPair { src: from, dst: to };
        let mut headers = vec![0; packet.len() + HEADERS_SPARE];
        let done = lowpan::compress(packet, link, &self.contexts, &mut headers).ok()?;
        headers.truncate(done.compressed_len);
        let rest = packet.get(done.uncompressed_len..)?;
        let pan = self.options.pan;
        let outgoing = |payload| Outgoing {
            pan,
            from,
            to,
            payload,
            is_secured: true,
            has_more: false,
            kept_for: None,
        };
        if headers.len() + rest.len() <= PAYLOAD_MAX {
            headers.extend_from_slice(rest);
            return Some(vec![outgoing(headers)]);
        }
        self.tag = self.tag.wrapping_add(1);
        let header = |offset: usize| lowpan_frag::Header {
            datagram_size: packet.len() as u16,
            datagram_tag: self.tag,
            datagram_offset: (offset > 0).then_some((offset / 8) as u8),
        };
        let mut frames = Vec::new();
        let mut at = done.uncompressed_len;
        // All fragments but the last end at a multiple of eight bytes of the packet.
        let room = PAYLOAD_MAX.checked_sub(lowpan_frag::FIRST_LEN + headers.len())?;
        let mut end = (at + room) / 8 * 8;
        let mut start = headers;
        let mut offset = 0;
        loop {
            let header = header(offset);
            let mut payload = vec![0; lowpan_frag::NEXT_LEN];
            let len = header.emit(&mut payload).ok()?;
            payload.truncate(len);
            payload.append(&mut start);
            payload.extend_from_slice(packet.get(at..end.min(packet.len()))?);
            frames.push(outgoing(payload));
            if end >= packet.len() {
                return Some(frames);
            }
            (at, offset) = (end, end);
            end += (PAYLOAD_MAX - lowpan_frag::NEXT_LEN) / 8 * 8;
        }
    }
}

/// A frame without its FCS.
const MPDU_MAX: usize = 125;
/// What a secured frame with short addresses holds: header 9, security 6, MIC 4.
const PAYLOAD_MAX: usize = MPDU_MAX - 9 - Auxiliary::LEN - Level::Mic32.mic_len();
const PACKET_MAX: usize = 2_048;
/// Compressed headers are no longer than what they stand for, but for some bytes.
const HEADERS_SPARE: usize = 16;
/// Where the hop limit is in an IPv6 header.
const HOP_LIMIT_AT: usize = 7;
/// Packets that are gathered at a time, and how long one may take.
const GATHERED_MAX: usize = 32;
const GATHERED_WITHIN: Duration = Duration::from_secs(5);
