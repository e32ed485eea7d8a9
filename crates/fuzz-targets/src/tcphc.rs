//! TCP header compression: a rejected packet changes nothing.
//!
//! Two receivers start alike. Well-formed packets go to both; damage and junk go to one receiver
//! alone. As long as it rejects them, both must go on restoring the same headers.

use std::net::Ipv6Addr;

use motet::random::Rng;
use motet::tcphc::{Config, Context, End, Flow, Origin, Restored, Tcphc};
use motet::time::{Duration, Instant};
use motet::wire::tcp::{Flags, Header, Options, fill_checksum};

use crate::input::Input;
use crate::wire::{HOST, MESH};

/// Plays one sender and two receivers.
pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let [mut a, mut b, mut c] = [[Context::EMPTY; 3]; 3];
    let start = Instant::ORIGIN;
    let config = |end| Config {
        end,
        quiet: Duration::from_millis(1),
        ..Config::default()
    };
    let make =
        |contexts, end| Tcphc::new(contexts, config(end), start, &mut Rng::from_seed([3, 4]));
    let mut world = World {
        sender: make(&mut a, End::Mote),
        twins: [make(&mut b, End::Router), make(&mut c, End::Router)],
        now: start + Duration::from_secs(1),
        seq: 1000,
        ack: 5000,
        last: Vec::new(),
    };
    while !input.is_empty() {
        world.step(&mut input);
    }
}

struct World<'m> {
    sender: Tcphc<'m>,
    twins: [Tcphc<'m>; 2],
    now: Instant,
    seq: u32,
    ack: u32,
    /// The packet sent last, as compressed.
    last: Vec<u8>,
}

impl World<'_> {
    fn step(&mut self, input: &mut Input<'_>) {
        match input.u8() & 7 {
            0..=2 => self.send(input),
            3 | 4 => self.damage(input),
            5 => {
                let junk = input.block().to_vec();
                self.try_alone(&junk);
            }
            6 => self.answer(input),
            _ => self.now += Duration::from_millis(u64::from(input.u16())),
        }
    }

    /// A segment of one of two connections.
    fn segment(&mut self, input: &mut Input<'_>, outward: bool) -> Vec<u8> {
        let kind = input.u8();
        let payload = vec![kind; usize::from(input.u8() & 15)];
        self.seq = self.seq.wrapping_add(u32::from(input.u8()));
        self.ack = self.ack.wrapping_add(u32::from(input.u8()));
        let flags = match kind & 7 {
            0 => Flags::SYN,
            1 => Flags::SYN | Flags::ACK,
            2 => Flags::FIN | Flags::ACK,
            3 => Flags::ACK | Flags::PSH,
            4 => Flags::RST | Flags::ACK,
            _ => Flags::ACK,
        };
        let stamps = (kind & 8 != 0).then_some((self.seq >> 3, self.ack >> 3));
        let (mine, theirs) = (4000 + u16::from(kind >> 7), 80);
        let (src_port, dst_port) = match outward {
            true => (mine, theirs),
            false => (theirs, mine),
        };
        let header = Header {
            src_port,
            dst_port,
            seq: if outward { self.seq } else { self.ack },
            ack: if outward { self.ack } else { self.seq },
            flags,
            window: u16::from(input.u8() & 3) * 1000,
            options: Options {
                timestamps: stamps,
                ..Options::default()
            },
            ..Header::default()
        };
        let mut out = vec![0; 60];
        let len = header.emit(&mut out).expect("60 bytes suffice");
        out.truncate(len);
        out.extend(payload);
        let (src, dst) = match outward {
            true => (MOTE, HOST),
            false => (HOST, MOTE),
        };
        fill_checksum(&src, &dst, &mut out);
        out
    }

    /// Sends a segment of the sender to both receivers.
    fn send(&mut self, input: &mut Input<'_>) {
        let segment = self.segment(input, true);
        let mut out = [0; 100];
        let sent = self
            .sender
            .compress(&OUT, &segment, Origin::Own, self.now, &mut out);
        match sent {
            Ok(done) => {
                self.last = out[..done.compressed_len].to_vec();
                self.last.extend(&segment[done.uncompressed_len..]);
                let packet = self.last.clone();
                self.restore_both(&packet);
            }
            Err(_plain) => {
                for twin in &mut self.twins {
                    twin.on_plain(&BACK, &segment, self.now);
                }
            }
        }
    }

    /// Lets both receivers send the same segment; they must compress it alike.
    fn answer(&mut self, input: &mut Input<'_>) {
        let segment = self.segment(input, false);
        let mut outs = [[0; 100]; 2];
        let [one, other] = &mut self.twins;
        let [first, second] = &mut outs;
        let sent = [
            one.compress(&BACK, &segment, Origin::Own, self.now, first),
            other.compress(&BACK, &segment, Origin::Own, self.now, second),
        ];
        assert_eq!(sent[0], sent[1]);
        assert_eq!(outs[0], outs[1]);
        match sent[0] {
            Ok(done) => {
                let mut packet = outs[0][..done.compressed_len].to_vec();
                packet.extend(&segment[done.uncompressed_len..]);
                let mut out = [0; 60];
                let _dropped = self.sender.decompress(&OUT, &packet, self.now, &mut out);
            }
            Err(_plain) => self.sender.on_plain(&OUT, &segment, self.now),
        }
    }

    fn damage(&mut self, input: &mut Input<'_>) {
        let mut packet = self.last.clone();
        for _ in 0..=input.u8() & 3 {
            let at = usize::from(input.u8());
            if let Some(byte) = packet.get_mut(at) {
                *byte ^= input.u8();
            }
        }
        packet.truncate(packet.len().saturating_sub(usize::from(input.u8() & 1)));
        self.try_alone(&packet);
    }

    /// Hands a packet to one receiver. If it accepts the packet, the other receiver gets the packet
    /// as well, and must restore the same header.
    fn try_alone(&mut self, packet: &[u8]) {
        let [one, other] = &mut self.twins;
        let mut outs = [[0; 60]; 2];
        let [first, second] = &mut outs;
        if let Ok(restored) = one.decompress(&BACK, packet, self.now, first) {
            check(&restored, packet);
            let also = other.decompress(&BACK, packet, self.now, second);
            assert_eq!(also, Ok(restored));
            assert_eq!(outs[0], outs[1]);
        }
    }

    fn restore_both(&mut self, packet: &[u8]) {
        let mut outs = [[0; 60]; 2];
        let mut results = Vec::new();
        for (twin, out) in self.twins.iter_mut().zip(&mut outs) {
            results.push(twin.decompress(&BACK, packet, self.now, out));
        }
        assert_eq!(results[0], results[1], "junk has changed a receiver");
        if let Ok(restored) = &results[0] {
            check(restored, packet);
            assert_eq!(outs[0], outs[1], "junk has changed a receiver");
        }
    }
}

fn check(restored: &Restored, packet: &[u8]) {
    assert!(restored.compressed_len <= packet.len());
    assert!(restored.uncompressed_len <= 60);
}

const MOTE: Ipv6Addr = {
    let [a, b, c, d, ..] = MESH.segments();
    Ipv6Addr::new(a, b, c, d, 0, 0, 0, 7)
};
/// From the mote's end, and from the router's.
const OUT: Flow = Flow {
    local: MOTE,
    remote: HOST,
    within_mesh: false,
};
const BACK: Flow = Flow {
    local: HOST,
    remote: MOTE,
    within_mesh: false,
};
