//! Marks of congestion on packets whose fragments relays pass on without copying.

use super::*;
use crate::ip::queue::{Discipline, Red};
use crate::wire::lowpan_frag::{FIRST_LEN, Header as Fragment, NEXT_LEN};
use crate::wire::{ieee802154, tcp::Flags};

/// A data frame on the air.
struct Seen {
    by: usize,
    /// Whether a condition fired it.
    is_immediate: bool,
    hop: lowpan::LinkPair,
    payload: Vec<u8>,
}

impl Seen {
    fn fragment(&self) -> Option<Fragment> {
        Some(Fragment::parse(&self.payload).ok()?.0)
    }

    fn is_first(&self) -> bool {
        let fragment = self.fragment();
        fragment.is_some_and(|header| header.datagram_offset.is_none())
    }

    /// The IPHC header, as it lies in the frame.
    fn iphc(&self) -> &[u8] {
        &self.payload[if self.fragment().is_some() {
            FIRST_LEN
        } else {
            0
        }..]
    }

    /// The ECN bits: the first of what follows the two bytes, and the contexts' byte where
    /// there is one (RFC 6282 §3.1.1, §3.2.1). None are inline where traffic class and flow
    /// label are elided.
    fn ecn_bits(&self) -> u8 {
        let iphc = self.iphc();
        assert_eq!(iphc[0] >> 5, 0b011, "an IPHC header");
        if iphc[0] >> 3 & 0b11 == 0b11 {
            return 0b00;
        }
        iphc[2 + usize::from(iphc[1] >> 7)] >> 6
    }

    /// The flags of a segment that lies in this frame, or begins in it.
    fn tcp_flags(&self, world: &World) -> Option<Flags> {
        let size = self.fragment().map(|header| header.datagram_size);
        if size.is_some() && !self.is_first() {
            return None;
        }
        let contexts = world.radio_of(self.by).contexts();
        let (iphc, mut out) = (self.iphc(), [0; 160]);
        let headers = lowpan::decompress(iphc, self.hop, contexts, size, &mut out).ok()?;
        let (ip, _) = Header::parse_start(&out).ok()?;
        let segment = iphc.get(headers.compressed_len..)?;
        let is_tcp = ip.next_header == crate::wire::tcp::NEXT_HEADER;
        let parsed = crate::wire::tcp::Header::parse(segment).ok();
        parsed.filter(|_| is_tcp).map(|(header, _)| header.flags)
    }
}

/// The data frames so far, repetitions left out.
fn seen(world: &World) -> Vec<Seen> {
    let mut seen = Vec::new();
    let mut before: BTreeMap<usize, (u32, Option<u8>)> = BTreeMap::new();
    for ((by, psdu), immediate) in world.frames.iter().zip(&world.immediate) {
        let (count, sequence) = before.entry(*by).or_default();
        let is_immediate = core::mem::replace(count, *immediate) < *immediate;
        let parsed = ieee802154::Header::parse(&psdu[..psdu.len() - 2]);
        let (header, payload) = parsed.unwrap();
        let (Some(src), Some(dst)) = (header.src, header.dst) else {
            continue;
        };
        if sequence.replace(header.sequence) == Some(header.sequence) {
            continue;
        }
        seen.push(Seen {
            by: *by,
            is_immediate,
            hop: lowpan::LinkPair {
                src: src.addr,
                dst: dst.addr,
            },
            payload: payload.to_vec(),
        });
    }
    seen
}

/// Mote 4 sends to mote 1 through relays 3 and 2, neither of which copies; relay 3 marks.
fn stream_past(discipline: Discipline) -> World {
    let mut world = World::chain(4, Relaying::Fragments);
    for relay in [2, 3] {
        let Some(Link::Mesh(radio)) = world.nodes[relay].links.first_mut() else {
            panic!("a relay has a radio")
        };
        radio.settings_mut().forwarding = Forwarding::Immediate;
        if relay == 3 {
            // Every frame that waits counts: a packet's own never do, they come later.
            radio.settings_mut().mss_frames = 1;
            radio.settings_mut().discipline = discipline;
        }
    }
    transfer(&mut world, 4, 1, global(1), &bytes(20_000));
    world.run_for(Duration::from_secs(1));
    world
}

const CE: u8 = 0b11;

/// Whether the fragments that follow `first` in `frames` make up the rest of its packet, and
/// how many of them a condition fired.
fn rest_of(first: &Seen, frames: &[Seen]) -> usize {
    let packet = first.fragment().unwrap();
    let of_packet = frames.iter().filter(|frame| frame.by == first.by);
    let rest = of_packet
        .take_while(|frame| frame.fragment() != Some(packet))
        .filter_map(|frame| Some((frame, frame.fragment()?)))
        .filter(|(_, fragment)| fragment.datagram_tag == packet.datagram_tag);
    let (mut end, mut immediate) = (None, 0);
    for (frame, fragment) in rest {
        let at = fragment.offset_bytes();
        assert_eq!(end.unwrap_or(at), at, "in order, none left out");
        end = Some(at + frame.payload.len() - NEXT_LEN);
        immediate += usize::from(frame.is_immediate);
    }
    assert_eq!(end, Some(packet.datagram_size.into()), "up to the last");
    immediate
}

#[test]
fn a_relay_that_does_not_copy_marks_the_first_fragment_as_it_leaves() {
    let world = stream_past(Discipline::Red(Red::new(0, 2, 0, true)));
    let seen = seen(&world);
    let marks = |by| {
        let marked = move |frame: &&Seen| frame.by == by && frame.is_first();
        seen.iter().filter(marked).filter(|f| f.ecn_bits() == CE)
    };
    assert_eq!(marks(4).count(), 0, "its sender marks nothing");
    // Marked here, fired by the next fragment, and its packet whole behind it.
    let counted = world.nodes[3].ip().counters.marked;
    assert!(counted > 0 && marks(3).count() == counted as usize);
    let fired = marks(3).filter(|frame| frame.is_immediate).count();
    assert!(fired >= 3, "{fired} of {counted} left by their condition");
    let mut immediate = 0;
    for (at, frame) in seen.iter().enumerate() {
        if frame.by == 3 && frame.is_first() && frame.ecn_bits() == CE {
            immediate += rest_of(frame, &seen[at + 1..]);
        }
    }
    assert!(immediate > fired, "{immediate} of the next fragments too");
    // The next relay, which marks nothing itself, passes the marks on.
    assert_eq!(world.nodes[2].ip().counters.marked, 0);
    assert_eq!(marks(2).count(), counted as usize);
    assert!(marks(2).any(|frame| frame.is_immediate));
    // The receiver echoes them, not before the first; the sender answers that it slows down.
    let first_mark = |frame: &Seen| frame.by == 2 && frame.is_first() && frame.ecn_bits() == CE;
    let told = seen.iter().position(first_mark).unwrap();
    let says = |by: usize, flag: Flags| {
        let is_so = |frame: &Seen| {
            let flags = (frame.by == by).then(|| frame.tcp_flags(&world)).flatten();
            flags.is_some_and(|flags| flags.contains(flag) && !flags.contains(Flags::SYN))
        };
        seen.iter().position(is_so).unwrap()
    };
    let echoed = says(1, Flags::ECE);
    assert!(told < echoed && echoed < says(4, Flags::CWR));
}

#[test]
fn below_its_threshold_it_marks_nothing() {
    // No more can wait at a relay than a window: 2,048 bytes, of which a frame carries 80 if it
    // is a packet's first, and more if not.
    let window_frames = u8::try_from(2_048 / 80).unwrap();
    for discipline in [
        Discipline::DropTail,
        Discipline::Red(Red::new(window_frames, 2, 0, true)),
    ] {
        let world = stream_past(discipline);
        let seen = seen(&world);
        let firsts = || {
            seen.iter()
                .filter(|frame| frame.by == 3 && frame.is_first())
        };
        // All of a packet's frames come, so that one in two at least is fired by the next.
        let packets = firsts().count();
        let fired = firsts().filter(|frame| frame.is_immediate).count();
        assert!(packets >= 20_000 / 512, "{packets}");
        assert!(fired * 2 > packets, "{fired} of {packets}");
        assert!(firsts().all(|frame| frame.ecn_bits() != CE));
        assert_eq!(world.nodes[3].ip().counters.marked, 0);
    }
}
