//! A serial line: whole IPv6 packets, framed in a stream of bytes.
//!
//! The framing is SLIP's: END before and after a packet, and two bytes for each END or ESC in it.
//! The END before a packet ends whatever noise the line has brought: noise becomes a frame of its
//! own, which is no IPv6 packet, and `ip` counts it ([`crate::ip::PacketDrop::Malformed`]).
//!
//! Place: the driver hands in bytes as they come, cut anywhere, and writes bytes out when the line
//! takes more. Above the framing the line is a [`Cable`]. Left out: speed, parity and flow control,
//! which are the driver's, and a check sum: SLIP has none, so that damage within a packet is left
//! to the check sums of ICMPv6, TCP and UDP.
//!
//! Source: RFC 1055. Differs: a frame with an ESC that no ESC_END or ESC_ESC follows is dropped,
//! where the RFC's example takes the wrong byte for a byte of the packet; the frame is damaged in
//! any case.

use super::arrival::{Arrival, Pulled};
use super::{Ask, Cable, Event};
use crate::ip::Ip;
use crate::storage::whole::Whole;
use crate::wire::cursor::copy;

/// A point-to-point link over a serial line.
#[derive(Debug)]
pub struct Serial<'m> {
    /// The line above its framing: a link of whole packets.
    pub(super) cable: Cable<'m>,
    inward: Inward<'m>,
    outward: Outward<'m>,
    counters: SerialCounters,
}

/// The memory that a serial line works in.
#[derive(Debug)]
pub struct SerialMemory<'m> {
    /// The packet that is coming in, at least
    /// [`IPV6_MTU_MIN`](crate::limits::IPV6_MTU_MIN) bytes. The shorter one of this and
    /// `outward` is the link's MTU: the longest packet, without its framing.
    pub inward: &'m mut [u8],
    /// The packet that is going out, as long as `inward`.
    pub outward: &'m mut [u8],
    /// Packets that wait to go out, TCP's aside, with six bytes each.
    pub queue: &'m mut [u8],
}

/// Totals since start; all wrap at 2^32. Empty frames are not counted.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct SerialCounters {
    /// Whole frames that were handed to `ip`, which counts those that are no IPv6 packets.
    pub received: u32,
    /// Frames dropped because an ESC in them was followed by neither ESC_END nor ESC_ESC.
    pub bad_escapes: u32,
    /// Frames dropped because they were longer than the MTU.
    pub overlong: u32,
}

impl<'m> Serial<'m> {
    /// A line on which nothing has come yet.
    pub fn new(memory: SerialMemory<'m>) -> Self {
        let SerialMemory {
            inward,
            outward,
            queue,
        } = memory;
        let mtu = inward.len().min(outward.len()).min(usize::from(u16::MAX));
        debug_assert!(
            mtu >= crate::limits::IPV6_MTU_MIN,
            "an MTU of {mtu} bytes is too small for IPv6"
        );
        Self {
            cable: Cable::new(queue, mtu as u16),
            inward: Inward {
                packet: inward.get_mut(..mtu).unwrap_or_default(),
                len: 0,
                state: State::Plain,
            },
            outward: Outward {
                packet: outward,
                len: 0,
                at: 0,
            },
            counters: SerialCounters::default(),
        }
    }

    /// The longest packet it carries, bytes, without its framing.
    pub const fn mtu(&self) -> u16 {
        self.cable.mtu()
    }
}

impl<'m> Serial<'m> {
    /// The counters of the line so far.
    pub const fn counters(&self) -> &SerialCounters {
        &self.counters
    }

    /// Takes bytes up to the end of the first packet; what follows is returned as the next event.
    pub(super) fn on_bytes<'e, 's>(
        &mut self,
        bytes: &'e [u8],
    ) -> (Arrival<'m, 's>, Option<Event<'e>>) {
        let mut rest = bytes;
        while let Some((byte, after)) = rest.split_first() {
            rest = after;
            if self.inward.on_byte(*byte, &mut self.counters) {
                let hop = self.cable.hop();
                let arrival = Arrival::Gathered(self.inward.lend(), hop);
                return (arrival, Some(Event::Serial(rest)));
            }
        }
        (Arrival::Nothing, None)
    }

    /// Takes back the memory of the packet that came last.
    pub(super) fn give_back(&mut self, whole: Whole<'m>) {
        (self.inward.packet, _) = whole.into_memory();
    }

    /// Writes the next bytes for the line: of the packet that is going out, else of the next one.
    /// Returns how many.
    ///
    /// A packet takes several calls where `out` is short. TCP is asked for a segment only when the
    /// packet before has left.
    pub(super) fn poll_bytes(
        &mut self,
        ip: &mut Ip<'_>,
        pull: impl FnMut(&Ip<'_>, Ask<'_, 'm>, &mut [u8]) -> Option<Pulled>,
        out: &mut [u8],
    ) -> Option<usize> {
        let Self { cable, outward, .. } = self;
        if outward.len == 0 {
            outward.len = cable.poll_packet(ip, pull, outward.packet)?;
        }
        let len = outward.emit(out);
        (len > 0).then_some(len)
    }
}

/// The frame that is coming in.
#[derive(Debug)]
struct Inward<'m> {
    packet: &'m mut [u8],
    /// Bytes of `packet` that have come.
    len: u16,
    state: State,
}

/// The meaning of the next byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// A byte of the packet, or the beginning of two that stand for one.
    Plain,
    /// The second one of two.
    Escaped,
    /// A part of a frame that was dropped: there may be more of it.
    Dropped,
}

impl<'m> Inward<'m> {
    /// Takes a byte of the line; returns whether it ended a frame that holds something.
    fn on_byte(&mut self, byte: u8, counters: &mut SerialCounters) -> bool {
        let byte = match (self.state, byte) {
            (_, END) => return self.end(counters),
            (State::Dropped, _) => return false,
            (State::Plain, ESC) => {
                self.state = State::Escaped;
                return false;
            }
            (State::Plain, byte) => byte,
            (State::Escaped, ESC_END) => END,
            (State::Escaped, ESC_ESC) => ESC,
            (State::Escaped, _) => {
                count(&mut counters.bad_escapes);
                self.state = State::Dropped;
                return false;
            }
        };
        match self.packet.get_mut(usize::from(self.len)) {
            Some(place) => {
                *place = byte;
                self.len += 1;
                self.state = State::Plain;
            }
            None => {
                count(&mut counters.overlong);
                self.state = State::Dropped;
            }
        }
        false
    }

    /// Ends a frame; returns whether there is a packet to be lent.
    fn end(&mut self, counters: &mut SerialCounters) -> bool {
        match core::mem::replace(&mut self.state, State::Plain) {
            State::Plain if self.len > 0 => {
                count(&mut counters.received);
                return true;
            }
            State::Escaped => count(&mut counters.bad_escapes),
            State::Plain | State::Dropped => {}
        }
        self.len = 0;
        false
    }

    /// The packet that has come, with the memory it lies in.
    fn lend(&mut self) -> Whole<'m> {
        let memory = core::mem::take(&mut self.packet);
        Whole::new(memory, 0, core::mem::replace(&mut self.len, 0), 0)
    }
}

/// The packet that is going out.
#[derive(Debug)]
struct Outward<'m> {
    packet: &'m mut [u8],
    /// Bytes of `packet`; 0: none is going out.
    len: usize,
    /// The next position to write: END, each byte of the packet, END.
    at: usize,
}

impl Outward<'_> {
    /// Writes as much as fits; returns how many bytes that is.
    fn emit(&mut self, out: &mut [u8]) -> usize {
        let packet = self.packet.get(..self.len).unwrap_or_default();
        let mut written = 0;
        loop {
            let byte = self.at.checked_sub(1).and_then(|at| packet.get(at));
            let symbol = match byte {
                None => &[END][..],
                Some(&END) => &[ESC, ESC_END],
                Some(&ESC) => &[ESC, ESC_ESC],
                Some(byte) => core::slice::from_ref(byte),
            };
            let room = out.get_mut(written..).unwrap_or_default();
            if room.len() < symbol.len() {
                return written;
            }
            written += copy(room, symbol);
            if self.at > self.len {
                (self.len, self.at) = (0, 0);
                return written;
            }
            self.at += 1;
        }
    }
}

const fn count(counter: &mut u32) {
    *counter = counter.wrapping_add(1);
}

/// Ends a frame, and begins one.
const END: u8 = 0xc0;
/// Begins two bytes that stand for one.
const ESC: u8 = 0xdb;
/// Stands for END, behind ESC (RFC 1055).
const ESC_END: u8 = 0xdc;
/// Stands for ESC, behind ESC (RFC 1055).
const ESC_ESC: u8 = 0xdd;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip;
    use crate::limits::IPV6_MTU_MIN;
    use crate::link::Hop;
    use proptest::prelude::*;
    use std::boxed::Box;
    use std::vec;
    use std::vec::Vec;

    fn memory(len: usize) -> &'static mut [u8] {
        Box::leak(vec![0; len].into_boxed_slice())
    }

    fn line() -> Serial<'static> {
        Serial::new(SerialMemory {
            inward: memory(MTU),
            outward: memory(MTU),
            queue: memory(4 * MTU),
        })
    }

    /// The packets that come of bytes, handed in as one event each.
    fn received(line: &mut Serial<'static>, events: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        for event in events {
            let mut rest = Some(Event::Serial(event));
            while let Some(Event::Serial(bytes)) = rest.take() {
                let arrival;
                (arrival, rest) = line.on_bytes(bytes);
                if let Some(Event::Serial(left)) = rest {
                    assert!(left.len() < bytes.len(), "the event never ends");
                }
                match arrival {
                    Arrival::Gathered(mut whole, Hop { .. }) => {
                        packets.push(whole.packet().to_vec());
                        line.give_back(whole);
                    }
                    Arrival::Nothing => assert!(rest.is_none()),
                    other => panic!("{other:?}"),
                }
            }
        }
        packets
    }

    /// The bytes on the line for these packets, pulled in pieces of at most `room` bytes.
    fn sent(line: &mut Serial<'_>, packets: &[&[u8]], room: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut ip = Ip::new(ip::Config::default(), &mut []);
        let mut out = vec![0; room];
        for packet in packets {
            line.cable.queue([packet, &[]]).unwrap();
            while let Some(len) = line.poll_bytes(&mut ip, |_, _, _| None, &mut out) {
                assert!(len > 0 && len <= room);
                bytes.extend_from_slice(&out[..len]);
            }
        }
        bytes
    }

    fn encoded(packet: &[u8]) -> Vec<u8> {
        sent(&mut line(), &[packet], 4 * MTU)
    }

    /// A packet, and what RFC 1055 makes of it with an END before it.
    const FRAMES: [(&[u8], &[u8]); 6] = [
        (&[1, 2, 3], &[0xc0, 1, 2, 3, 0xc0]),
        (&[0xc0], &[0xc0, 0xdb, 0xdc, 0xc0]),
        (&[0xdb], &[0xc0, 0xdb, 0xdd, 0xc0]),
        (&[0xdc, 0xdd], &[0xc0, 0xdc, 0xdd, 0xc0]),
        (&[0xdb, 0xdc], &[0xc0, 0xdb, 0xdd, 0xdc, 0xc0]),
        (
            &[0xc0, 7, 0xdb, 0xc0],
            &[0xc0, 0xdb, 0xdc, 7, 0xdb, 0xdd, 0xdb, 0xdc, 0xc0],
        ),
    ];

    #[test]
    fn packets_are_framed_as_rfc_1055_says() {
        for (packet, frame) in FRAMES {
            assert_eq!(encoded(packet), frame);
            assert_eq!(received(&mut line(), &[frame]), [packet]);
        }
    }

    #[test]
    fn a_frame_may_be_cut_anywhere() {
        let all: Vec<u8> = (0..=255).collect();
        let bytes = [encoded(&all), encoded(&[0xdb, 0xc0]), encoded(&[5; 40])].concat();
        let expected = [&all[..], &[0xdb, 0xc0], &[5; 40]];
        for at in 0..=bytes.len() {
            let (first, second) = bytes.split_at(at);
            assert_eq!(received(&mut line(), &[first, second]), expected, "at {at}");
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        let mut line = line();
        assert_eq!(received(&mut line, &single), expected);
        assert_eq!(line.counters().received, 3);
    }

    #[test]
    fn noise_is_a_frame_of_its_own_and_empty_frames_are_none() {
        let mut line = line();
        let noise = [9, 8, 7];
        let frame = encoded(&[1; 50]);
        let bytes = [&noise[..], &frame, &[END; 5], &frame].concat();
        let packets = received(&mut line, &[&bytes]);
        assert_eq!(packets, [&noise[..], &[1; 50], &[1; 50]]);
        let counters = SerialCounters {
            received: 3,
            ..SerialCounters::default()
        };
        assert_eq!(*line.counters(), counters);
    }

    #[test]
    fn a_frame_with_a_wrong_escape_is_dropped_and_counted_once() {
        let wrong: [&[u8]; 5] = [
            &[1, ESC, 1, 2, END],
            &[ESC, ESC, 5, END],
            // An escape at the frame's end; the END ends it all the same.
            &[1, 2, ESC, END],
            &[ESC, END],
            &[1, ESC, 0, ESC, 0, ESC, END],
        ];
        let frame = encoded(&[0xc0, 3]);
        for bytes in wrong {
            let mut line = line();
            let packets = received(&mut line, &[bytes, &frame[1..]]);
            assert_eq!(packets, [[0xc0, 3]], "after {bytes:?}");
            let counters = *line.counters();
            assert_eq!((counters.bad_escapes, counters.overlong), (1, 0));
            assert_eq!(counters.received, 1);
        }
    }

    #[test]
    fn a_frame_beyond_the_mtu_is_dropped_and_counted_once() {
        for (len, fits) in [
            (MTU - 1, true),
            (MTU, true),
            (MTU + 1, false),
            (5000, false),
        ] {
            let mut line = line();
            // Each byte takes two on the line: the limit is that of the packet.
            let long = [vec![END], [ESC, ESC_ESC].repeat(len), vec![END]].concat();
            let next = [1, 2, 3, END];
            let packets = received(&mut line, &[&long, &next]);
            let expected = match fits {
                true => vec![vec![ESC; len], vec![1, 2, 3]],
                false => vec![vec![1, 2, 3]],
            };
            assert_eq!(packets, expected, "{len} bytes");
            let counters = *line.counters();
            assert_eq!(counters.overlong, u32::from(!fits));
            assert_eq!(
                (counters.bad_escapes, counters.received),
                (0, expected.len() as u32)
            );
        }
    }

    #[test]
    fn the_shorter_memory_is_the_mtu() {
        for (inward, outward, mtu) in [(1280, 1500, 1280), (1500, 1280, 1280), (1500, 1400, 1400)] {
            let mut line = Serial::new(SerialMemory {
                inward: memory(inward),
                outward: memory(outward),
                queue: memory(4000),
            });
            assert_eq!(line.mtu(), mtu);
            let mtu = usize::from(mtu);
            assert!(line.cable.queue([&vec![0; mtu], &[]]).is_ok());
            assert!(line.cable.queue([&vec![0; mtu], &[1]]).is_err());
            let bytes = [vec![1; mtu + 1], vec![END]].concat();
            assert_eq!(received(&mut line, &[&bytes]).len(), 0);
            assert_eq!(line.counters().overlong, 1);
        }
    }

    /// Nothing is dropped because `out` is short, and TCP is not asked before the packet has left.
    #[test]
    fn a_packet_leaves_in_as_many_pieces_as_it_takes() {
        let packet: Vec<u8> = [END, 1, ESC, 2].repeat(MTU / 4);
        let whole = encoded(&packet);
        assert_eq!(whole.len(), 2 + MTU * 3 / 2);
        for room in [2, 3, 7, 64, 1000, 1280, 1919, 1922, 3000] {
            let mut line = line();
            let bytes = sent(&mut line, &[&packet, &packet], room);
            assert_eq!(bytes, [&whole[..], &whole].concat(), "pieces of {room}");
        }
        let mut line = line();
        let mut ip = Ip::new(ip::Config::default(), &mut []);
        let mut out = [0; 1280];
        line.cable.queue([&packet, &[]]).unwrap();
        let pull = |_: &Ip<'_>, _: Ask<'_, '_>, _: &mut [u8]| panic!("too early");
        // Two bytes that stand for one stay together.
        assert_eq!(line.poll_bytes(&mut ip, pull, &mut out), Some(1279));
        assert_eq!(line.poll_bytes(&mut ip, pull, &mut out), Some(643));
        let mut asked = 0;
        let pull = |_: &Ip<'_>, _: Ask<'_, '_>, room: &mut [u8]| {
            assert_eq!(room.len(), MTU, "room for a whole segment");
            asked += 1;
            None
        };
        assert_eq!(line.poll_bytes(&mut ip, pull, &mut out), None);
        assert_eq!(asked, 1);
    }

    proptest! {
        /// Whatever comes before, a packet framed by this link arrives; and so does every other
        /// one, however the line cuts the bytes.
        #[test]
        fn packets_arrive_behind_any_noise(
            pieces in prop::collection::vec((noise(), packet()), 1..6),
            cuts in prop::collection::vec(1usize..60, 1..20),
        ) {
            let (mut near, mut far) = (line(), line());
            let mut bytes = Vec::new();
            for (noise, packet) in &pieces {
                bytes.extend_from_slice(noise);
                bytes.extend(sent(&mut near, &[packet], 1280));
            }
            let mut events = Vec::new();
            let (mut rest, mut cuts) = (&bytes[..], cuts.iter().cycle());
            while !rest.is_empty() {
                let (event, later) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
                events.push(event);
                rest = later;
            }
            let packets = received(&mut far, &events);
            prop_assert_eq!(far.counters().received as usize, packets.len());
            let mut packets = packets.iter();
            for (_, packet) in &pieces {
                prop_assert!(packets.any(|arrived| arrived == packet), "{:?} is lost", packet);
            }
        }
    }

    fn noise() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            Just(Vec::new()),
            prop::collection::vec(byte(), 0..80),
            prop::collection::vec(any::<u8>(), 1300..1400),
        ]
    }

    fn packet() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(byte(), 1..=MTU)
    }

    /// Half of them bytes that mean something to the framing.
    fn byte() -> impl Strategy<Value = u8> {
        prop_oneof![
            any::<u8>(),
            prop::sample::select(&[END, ESC, ESC_END, ESC_ESC][..]),
        ]
    }

    /// A SLIP codec by other hands reads what this one writes, and the reverse.
    #[test]
    fn another_codec_agrees() {
        let all: Vec<u8> = (0..=255).cycle().take(MTU).collect();
        let packets: Vec<&[u8]> = FRAMES
            .iter()
            .map(|(packet, _)| *packet)
            .chain([&all[..]])
            .collect();
        for packet in packets {
            let ours = encoded(packet);
            let mut theirs = Vec::new();
            let mut encoder = slip_codec::SlipEncoder::new(true);
            encoder.encode(packet, &mut theirs).unwrap();
            assert_eq!(ours, theirs);
            assert_eq!(received(&mut line(), &[&theirs]), [packet]);
            let (mut decoder, mut decoded) = (slip_codec::SlipDecoder::new(), Vec::new());
            // The END before the packet ends an empty frame.
            let mut source = &ours[..];
            while decoded.is_empty() {
                decoder.decode(&mut source, &mut decoded).unwrap();
            }
            assert_eq!(decoded, packet);
        }
    }

    const MTU: usize = IPV6_MTU_MIN;
}
