//! Each attack by itself: without its cure it breaks something, with it nothing.

use std::vec::Vec;

use super::driver::flow;
use super::*;
use crate::wire::tcp::SackBlock;
use crate::wire::tcphc::Field;

/// A mote and a router, what they are about to send, and the mote's window.
pub(super) struct Scene {
    pub(super) ends: [Tcphc<'static>; 2],
    pub(super) seq: [u32; 2],
    pub(super) window: u16,
    /// The window scale in the SYNs of both ends.
    pub(super) window_scale: Option<u8>,
    pub(super) timestamps: [Option<(u32, u32)>; 2],
    pub(super) now: Instant,
}

pub(super) const ISN: u32 = 0x1234_0000;

impl Scene {
    /// A connection that stands, with `router_seq` as the router's next number.
    pub(super) fn new(mode: Mode, off: &[Cure], router_seq: u32) -> Self {
        Self::with_timestamps(mode, off, router_seq, [None; 2])
    }

    pub(super) fn with_timestamps(
        mode: Mode,
        off: &[Cure],
        router_seq: u32,
        timestamps: [Option<(u32, u32)>; 2],
    ) -> Self {
        let mut scene = Self::closed(mode, off, router_seq);
        scene.timestamps = timestamps;
        scene.open()
    }

    /// Two ends without a connection.
    pub(super) fn closed(mode: Mode, off: &[Cure], router_seq: u32) -> Self {
        Self {
            ends: [End::Mote, End::Router].map(|end| fresh(mode, end, off, 3)),
            seq: [ISN, router_seq.wrapping_sub(1)],
            window: 0x1000,
            window_scale: None,
            timestamps: [None; 2],
            now: Instant::ORIGIN,
        }
    }

    pub(super) fn open(self) -> Self {
        let mut scene = self;
        for (end, flags) in [
            (0, Flags::SYN),
            (1, Flags::SYN | Flags::ACK),
            (0, Flags::ACK),
        ] {
            let bytes = scene.send(end, flags, 0, 0);
            scene.receive(1 - end, &bytes).unwrap();
            if flags.contains(Flags::SYN) {
                scene.seq[end] = scene.seq[end].wrapping_add(1);
            }
        }
        scene
    }

    pub(super) fn segment(&self, end: usize, flags: Flags, back: u32, len: usize) -> Vec<u8> {
        let ports = [4000, 80];
        let mut header = tcp::Header {
            src_port: ports[end],
            dst_port: ports[1 - end],
            seq: self.seq[end].wrapping_sub(back),
            ack: if flags.contains(Flags::ACK) {
                self.seq[1 - end]
            } else {
                0
            },
            flags,
            window: if end == 0 { self.window } else { 0x4000 },
            ..tcp::Header::default()
        };
        header.options.timestamps = self.timestamps[end];
        if flags.contains(Flags::SYN) {
            header.options.window_scale = self.window_scale;
        }
        finished(&header, end, len)
    }

    pub(super) fn send(&mut self, end: usize, flags: Flags, back: u32, len: usize) -> Vec<u8> {
        let segment = self.segment(end, flags, back, len);
        self.send_bytes(end, &segment)
    }

    pub(super) fn send_bytes(&mut self, end: usize, segment: &[u8]) -> Vec<u8> {
        let mut out = [0; 80];
        let table = &mut self.ends[end];
        let done = table
            .compress(&flow(end), segment, Origin::Own, self.now, &mut out)
            .unwrap();
        [
            &out[..done.compressed_len],
            &segment[done.uncompressed_len..],
        ]
        .concat()
    }

    pub(super) fn receive(&mut self, end: usize, bytes: &[u8]) -> Result<Vec<u8>, HeaderDrop> {
        let mut out = [0; 60];
        let table = &mut self.ends[end];
        let done = table.decompress(&flow(end), bytes, self.now, &mut out)?;
        Ok([&out[..done.uncompressed_len], &bytes[done.compressed_len..]].concat())
    }

    /// `len` bytes go from `end` and are acknowledged.
    pub(super) fn pass(&mut self, end: usize, len: usize) {
        let data = self.send(end, Flags::ACK, 0, len);
        self.receive(1 - end, &data).unwrap();
        self.seq[end] = self.seq[end].wrapping_add(len as u32);
        let ack = self.send(1 - end, Flags::ACK, 0, 0);
        self.receive(end, &ack).unwrap();
    }

    /// Whether `bytes`, sent by the mote as `segment`, come out as something else.
    pub(super) fn is_misread(&mut self, bytes: &[u8], segment: &[u8]) -> bool {
        self.receive(1, bytes).is_ok_and(|read| read != segment)
    }
}

pub(super) fn fresh(mode: Mode, end: End, off: &[Cure], seed: u64) -> Tcphc<'static> {
    let config = Config {
        mode,
        end,
        quiet: Duration::ZERO,
        frames_expire: false,
        ..Config::default()
    };
    let contexts = std::vec![Context::EMPTY; 2].leak();
    let mut table = Tcphc::new(
        contexts,
        config,
        Instant::ORIGIN,
        &mut Rng::from_seed([seed, 1]),
    );
    table.without(off);
    table
}

pub(super) fn finished(header: &tcp::Header, end: usize, len: usize) -> Vec<u8> {
    let mut bytes = std::vec![0x5a; header.header_len() + len];
    header.emit(&mut bytes).unwrap();
    let flow = flow(end);
    tcp::fill_checksum(&flow.local, &flow.remote, &mut bytes);
    bytes
}

/// Runs `breaks` without the cure and with it.
#[track_caller]
pub(super) fn attack(cure: Cure, breaks: impl Fn(&[Cure]) -> bool) {
    assert!(
        breaks(&[cure]),
        "{cure:?}: the attack does nothing without the cure either"
    );
    assert!(!breaks(&[]), "{cure:?} does not cure");
}

/// 0xffffffff and 0 sum up the same: an elided acknowledgment number, overtaken by one byte.
#[test]
fn zero_and_all_ones() {
    attack(Cure::Zero, |off| {
        let mut scene = Scene::new(Mode::Strict, off, 0xffff_ffff);
        scene.pass(0, 40);
        scene.window = 0x2000;
        let segment = scene.segment(0, Flags::ACK, 0, 0);
        let late = scene.send_bytes(0, &segment);
        scene.pass(1, 1);
        scene.is_misread(&late, &segment)
    });
}

/// With two blocks an error in an elided acknowledgment number counts five times: of 13,107
/// bytes, a multiple of 65,535.
#[test]
fn sack_multiplies_an_error() {
    attack(Cure::SackMultiplies, |off| {
        let mut scene = Scene::new(Mode::Strict, off, 0x5678_0000);
        scene.pass(0, 40);
        scene.window = 0x2000;
        let (plain, _) = tcp::Header::parse(&scene.segment(0, Flags::ACK, 0, 0))
            .map(|(header, rest)| (header, rest.len()))
            .unwrap();
        let mut header = plain;
        for left in [100, 300] {
            let left = header.ack.wrapping_add(left);
            header.options.sack.push(SackBlock {
                left,
                right: left + 50,
            });
        }
        let segment = finished(&header, 0, 0);
        let late = scene.send_bytes(0, &segment);
        scene.pass(1, 13_107);
        scene.is_misread(&late, &segment)
    });
}

/// Sixteen bits of a segment that is 65,536 bytes old are read one too high, as the checksum
/// counts, and a window that has closed by one makes up for it.
#[test]
fn a_segment_of_the_period_before() {
    attack(Cure::Lifetime, |off| {
        let mut scene = Scene::new(Mode::Strict, off, 0x5678_0000);
        scene.pass(0, 4096);
        scene.pass(0, 4096);
        let segment = scene.segment(0, Flags::ACK, 0, 0);
        let late = scene.send_bytes(0, &segment);
        for _ in 0..16 {
            scene.pass(0, 4096);
        }
        scene.window -= 1;
        scene.pass(0, 0);
        let now = scene.send(0, Flags::ACK, 0, 0);
        scene.receive(1, &now).unwrap();
        scene.is_misread(&late, &segment)
    });
}

/// Probes say a window three times that the peer does not take from them.
#[test]
fn probes_are_no_news() {
    attack(Cure::Probes, |off| {
        let mut scene = Scene::new(Mode::Default, off, 0x5678_0000);
        scene.pass(0, 40);
        scene.window = 0x2000;
        for _ in 0..3 {
            let probe = scene.send(0, Flags::ACK, 1, 0);
            scene.receive(1, &probe).unwrap();
        }
        let next = scene.send(0, Flags::ACK, 0, 0);
        scene.receive(1, &next).is_err()
    });
}

/// A mostly compressed header that comes again late, when the window has moved on.
#[test]
fn a_late_copy_of_a_refresh() {
    attack(Cure::LateRefresh, |off| {
        let mut scene = Scene::new(Mode::Default, off, 0x5678_0000);
        scene.pass(0, 40);
        // Something was heard in between, so that it is no full header.
        let refresh = scene.send(0, Flags::ACK, 40, 40);
        assert_eq!(refresh[0], 0x8f);
        scene.receive(1, &refresh).unwrap();
        scene.window = 0x2000;
        scene.pass(1, 30);
        for _ in 0..3 {
            scene.pass(0, 40);
        }
        scene.receive(1, &refresh).unwrap();
        let next = scene.send(0, Flags::ACK, 0, 0);
        scene.receive(1, &next).is_err()
    });
}

/// A context made in mid-connection by a header that is lost.
#[test]
fn a_context_that_only_one_end_has() {
    attack(Cure::Recreated, |off| {
        let mut scene = Scene::new(Mode::Default, off, 0x5678_0000);
        scene.ends[0] = fresh(Mode::Default, End::Mote, off, 4);
        let _lost = scene.send(0, Flags::ACK, 0, 0);
        let next = scene.send(0, Flags::ACK, 0, 0);
        scene.receive(1, &next).is_err()
    });
}

/// The router starts again: a retransmission must get through without its context.
#[test]
fn a_retransmission_makes_the_context_again() {
    attack(Cure::Reboot, |off| {
        let mut scene = Scene::new(Mode::Default, off, 0x5678_0000);
        scene.pass(0, 40);
        scene.ends[1] = fresh(Mode::Default, End::Router, off, 4);
        let _unknown = scene.send(0, Flags::ACK, 0, 40);
        let again = scene.send(0, Flags::ACK, 0, 40);
        scene.receive(1, &again).is_err()
    });
}

/// A SYN whose full header does not fit the first frame goes plain, and makes no context.
#[test]
fn a_syn_that_does_not_fit() {
    attack(Cure::Fit, |off| {
        let mut table = fresh(Mode::Default, End::Mote, off, 3);
        let syn = tcp::Header {
            flags: Flags::SYN,
            ..tcp::Header::default()
        };
        let syn = finished(&syn, 0, 0);
        let mut short = [0; 21];
        let now = Instant::ORIGIN;
        let plain = table.compress(&flow(0), &syn, Origin::Own, now, &mut short);
        assert_eq!(plain, Err(Plain));
        table
            .contexts
            .iter()
            .any(|context| context.state() != State::Free)
    });
}

/// One segment far away, and those after it must not be read by it.
#[test]
fn a_reference_far_away() {
    attack(Cure::Poisoning, |off| {
        let mut scene = Scene::new(Mode::Default, off, 0x5678_0000);
        scene.pass(0, 40);
        scene.pass(1, 40);
        let here = scene.seq;
        scene.seq[1] = here[1].wrapping_add(1 << 24);
        let far = scene.send(1, Flags::ACK, 0, 0);
        scene.receive(0, &far).unwrap();
        scene.seq = here;
        // The next from where the connection is, and the one after that.
        let next = scene.send(1, Flags::ACK, 0, 40);
        let first = scene.receive(0, &next).is_ok();
        scene.seq[1] = scene.seq[1].wrapping_add(40);
        let next = scene.send(1, Flags::ACK, 0, 40);
        !first || scene.receive(0, &next).is_err() || next.len() > 40 + 20
    });
}

/// Two ACKs with one TSval, the second lost: the echo of the first confirms the second. The
/// window has closed by what the acknowledgment number rose.
#[test]
fn segments_that_share_a_timestamp() {
    attack(Cure::SharedTimestamp, |off| {
        let (ours, theirs) = (1_000_000, 5_000_000);
        let stamps = [Some((ours, theirs)), Some((theirs, ours))];
        let mut scene = Scene::with_timestamps(Mode::Default, off, 0x5678_0000, stamps);
        scene.timestamps[0] = Some((ours + 1000, theirs));
        let first = scene.send(0, Flags::ACK, 0, 0);
        let data = scene.send(1, Flags::ACK, 0, 48);
        scene.receive(0, &data).unwrap();
        scene.receive(1, &first).unwrap();
        scene.seq[1] += 48;
        scene.window -= 48;
        let _lost = scene.send(0, Flags::ACK, 0, 0);
        scene.timestamps[1] = Some((theirs + 1, ours + 1000));
        let echo = scene.send(1, Flags::ACK, 0, 0);
        scene.receive(0, &echo).unwrap();
        scene.timestamps[0] = Some((ours + 1001, theirs));
        let segment = scene.segment(0, Flags::ACK, 0, 0);
        let next = scene.send_bytes(0, &segment);
        scene.is_misread(&next, &segment)
    });
}

/// A SYN comes again, with the time of its sending, and only TCP takes note: the echo confirms
/// to its sender what the context here does not hold. The window that a SYN cannot scale makes
/// up for it.
#[test]
fn a_syn_that_comes_again() {
    attack(Cure::RepeatedSyn, |off| {
        let (ours, theirs) = (1_000_000, 5_000_000);
        let mut scene = Scene::closed(Mode::InOrder, off, 0x5678_0001);
        scene.timestamps = [Some((ours, 0)), Some((theirs, ours + 3072))];
        let syn = scene.send(0, Flags::SYN, 0, 0);
        scene.receive(1, &syn).unwrap();
        scene.timestamps[0] = Some((ours + 3072, 0));
        let again = scene.send(0, Flags::SYN, 0, 0);
        scene.receive(1, &again).unwrap();
        scene.seq[0] += 1;
        let answer = scene.send(1, Flags::SYN | Flags::ACK, 0, 0);
        scene.receive(0, &answer).unwrap();
        scene.seq[1] += 1;
        // The third ACK and what follows are lost but for the last: its window is hoped for.
        scene.window = 0x1000 - 3072;
        scene.timestamps[0] = Some((ours + 3073, theirs));
        for _ in 0..3 {
            let _lost = scene.send(0, Flags::ACK, 0, 0);
        }
        let segment = scene.segment(0, Flags::ACK, 0, 0);
        let last = scene.send_bytes(0, &segment);
        scene.is_misread(&last, &segment)
    });
}

/// What a router does not believe passes plain and is not counted, but the mote echoes its
/// timestamp. Another segment with that timestamp is lost: the echo must not confirm it.
#[test]
fn a_timestamp_that_passed_uncounted() {
    attack(Cure::Uncounted, |off| {
        let (ours, theirs) = (1_000_000, 5_000_000);
        let stamps = [Some((ours, theirs)), Some((theirs, ours))];
        let mut scene = Scene::with_timestamps(Mode::InOrder, off, 0x5678_0000, stamps);
        let answer = |scene: &Scene, window| {
            let segment = scene.segment(1, Flags::ACK, 0, 0);
            let (mut header, _) = tcp::Header::parse(&segment).unwrap();
            header.window = window;
            finished(&header, 1, 0)
        };
        // The router has not seen these bytes, so it does not believe their acknowledgment.
        let _unseen = scene.send(0, Flags::ACK, 0, 48);
        scene.seq[0] += 48;
        scene.timestamps[1] = Some((theirs + 1000, ours));
        let plain = answer(&scene, 0x4000);
        let mut out = [0; 80];
        let now = Instant::ORIGIN;
        let made = scene.ends[1].compress(&flow(1), &plain, Origin::Outside, now, &mut out);
        assert_eq!(made, Err(Plain));
        scene.ends[0].on_plain(&flow(0), &plain, now);
        let again = scene.send(0, Flags::ACK, 48, 48);
        scene.receive(1, &again).unwrap();
        let more = scene.send(0, Flags::ACK, 0, 48);
        scene.receive(1, &more).unwrap();
        scene.seq[0] += 48;
        let lost = answer(&scene, 0x4000 - 48);
        let _lost = scene.send_bytes(1, &lost);
        scene.timestamps[0] = Some((ours + 1, theirs + 1000));
        let echo = scene.send(0, Flags::ACK, 0, 0);
        scene.receive(1, &echo).unwrap();
        scene.timestamps[1] = Some((theirs + 1001, ours));
        let segment = answer(&scene, 0x4000 - 48);
        let last = scene.send_bytes(1, &segment);
        scene.receive(0, &last).is_ok_and(|read| read != segment)
    });
}

/// First timestamps of the mote and of the router.
pub(super) const STAMPS: (u32, u32) = (1_000_000, 5_000_000);

/// A connection on links where frames expire, in which echoes need not be whole.
fn confirmed_echo(off: &[Cure]) -> Scene {
    confirmed_echo_in(Mode::Default, off)
}

pub(super) fn confirmed_echo_in(mode: Mode, off: &[Cure]) -> Scene {
    let (ours, theirs) = STAMPS;
    let stamps = [Some((ours, theirs)), Some((theirs, ours))];
    let mut scene = Scene::with_timestamps(mode, off, 0x5678_0000, stamps);
    for end in &mut scene.ends {
        end.rules.frames_expire = true;
    }
    scene.timestamps = [Some((ours + 10, theirs)), Some((theirs, ours + 10))];
    scene.pass(0, 48);
    scene
}

/// The router was silent for a while, so the mote's echo jumps; the acknowledgment before
/// that is overtaken and would be read a period too high. A window one off makes up for it.
#[test]
fn an_echo_that_jumped() {
    attack(Cure::Echo, |off| {
        let (ours, theirs) = STAMPS;
        let mut scene = confirmed_echo(off);
        let data = |scene: &mut Scene, at: u32| {
            scene.timestamps[1] = Some((theirs + at, ours + 10));
            let data = scene.send(1, Flags::ACK, 0, 48);
            scene.receive(0, &data).unwrap();
            scene.seq[1] += 48;
        };
        data(&mut scene, 1000);
        scene.timestamps[0] = Some((ours + 1010, theirs + 1000));
        let segment = scene.segment(0, Flags::ACK, 0, 0);
        let overtaken = scene.send_bytes(0, &segment);
        data(&mut scene, 18_517);
        scene.timestamps[0] = Some((ours + 1020, theirs + 18_517));
        scene.window -= 1;
        let next = scene.send(0, Flags::ACK, 0, 0);
        scene.receive(1, &next).unwrap();
        scene.is_misread(&overtaken, &segment)
    });
}

/// Data heard, then nothing for so long that the peer's clock has gone round when it speaks
/// again: an echo of before, overtaken, would be read as what the peer has sent by now. It is
/// the same whether nothing was heard, or only what recovery does not echo.
#[test]
fn an_echo_that_grew_old() {
    for is_silent in [true, false] {
        attack(Cure::OldEcho, |off| {
            let (ours, theirs) = STAMPS;
            let mut scene = confirmed_echo(off);
            let stamp = |scene: &mut Scene, at: u32, echo: u32| {
                scene.now = Instant::from_micros(u64::from(at) * 1_000);
                scene.timestamps[0] = Some((ours + at, theirs + echo));
                scene.timestamps[1] = Some((theirs + at, ours + 10));
            };
            let data = |scene: &mut Scene| {
                let data = scene.send(1, Flags::ACK, 0, 48);
                scene.receive(0, &data).unwrap();
                scene.seq[1] += 48;
            };
            stamp(&mut scene, 1_000, 0);
            data(&mut scene);
            for at in (7_000..=63_000).step_by(8_000) {
                stamp(&mut scene, at, 1_000);
                if !is_silent {
                    data(&mut scene);
                }
                let unanswered = scene.send(0, Flags::ACK, 0, 48);
                scene.receive(1, &unanswered).unwrap();
                scene.seq[0] += 48;
            }
            let segment = scene.segment(0, Flags::ACK, 0, 0);
            let overtaken = scene.send_bytes(0, &segment);
            stamp(&mut scene, 67_000, 1_000);
            data(&mut scene);
            stamp(&mut scene, 67_100, 67_000);
            scene.window -= 1;
            let next = scene.send(0, Flags::ACK, 0, 0);
            scene.receive(1, &next).unwrap();
            scene.is_misread(&overtaken, &segment)
        });
    }
}

/// What neither end learned from, such as a segment behind extension headers, is echoed whole;
/// what the router alone did not count is no reason to refuse its echo.
#[test]
fn an_echo_of_what_was_not_counted() {
    let (ours, theirs) = STAMPS;
    for is_learned in [false, true] {
        let mut scene = confirmed_echo(&[]);
        scene.timestamps[1] = Some((theirs + 90, ours + 10));
        let overtaken = scene.send(1, Flags::ACK, 0, 0);
        scene.timestamps[1] = Some((theirs + 100, ours + 10));
        if is_learned {
            // Bytes that the router has not seen.
            scene.seq[0] += 48;
            let plain = scene.segment(1, Flags::ACK, 0, 0);
            scene.seq[0] -= 48;
            let _unseen = scene.send(0, Flags::ACK, 0, 48);
            let (mut out, now) = ([0; 80], Instant::ORIGIN);
            let made = scene.ends[1].compress(&flow(1), &plain, Origin::Outside, now, &mut out);
            assert_eq!(made, Err(Plain));
            scene.ends[0].on_plain(&flow(0), &plain, now);
            scene.seq[0] += 48;
        }
        scene.receive(0, &overtaken).unwrap();
        scene.timestamps[0] = Some((ours + 100, theirs + 100));
        for _ in 0..2 {
            let segment = scene.segment(0, Flags::ACK, 0, 48);
            let bytes = scene.send_bytes(0, &segment);
            assert_eq!(scene.receive(1, &bytes), Ok(segment), "{is_learned}");
            scene.seq[0] += 48;
        }
    }
}

/// The compressed form of what was sent.
pub(super) fn compressed(bytes: &[u8]) -> Option<tcphc::Compressed> {
    match Header::parse(bytes) {
        Ok((Header::Compressed(frame), _)) => Some(frame),
        _ => None,
    }
}

/// A router that has started again knows what was sent by the first acknowledgment that it sees.
/// What was on its way then is acknowledged in 16 bits: a number beyond all that the router knows
/// of.
#[test]
fn sixteen_bits_acknowledge_what_an_end_that_joined_late_has_not_seen() {
    let mut scene = Scene::new(Mode::Default, &[], 0x5678_0000);
    scene.pass(0, 40);
    scene.pass(1, 40);
    let on_its_way = scene.send(1, Flags::ACK, 0, 1000);
    scene.ends[1] = fresh(Mode::Default, End::Router, &[], 4);
    for end in &mut scene.ends {
        end.rules.frames_expire = true;
    }
    let _unknown = scene.send(0, Flags::ACK, 0, 40);
    let again = scene.send(0, Flags::ACK, 0, 40);
    scene.receive(1, &again).unwrap();
    scene.seq[0] += 40;
    scene.receive(0, &on_its_way).unwrap();
    scene.seq[1] += 1000;
    let segment = scene.segment(0, Flags::ACK, 0, 0);
    let bytes = scene.send_bytes(0, &segment);
    let frame = compressed(&bytes).expect("a compressed header");
    assert!(matches!(frame.ack, Field::Low16(_)), "{frame:?}");
    assert_eq!(scene.receive(1, &bytes), Ok(segment));
}

/// An acknowledgment number far from the last one makes references meaningless at both ends: its
/// segment and the answer to it travel whole, one that is merely old does not.
#[test]
fn a_far_acknowledgment_and_its_answer_travel_whole() {
    for (back, is_far) in [
        (100, false),
        (32_768, false),
        (32_769, true),
        (1 << 24, true),
    ] {
        let mut scene = Scene::new(Mode::Default, &[], 0x5678_0000);
        scene.pass(0, 40);
        scene.pass(1, 40);
        let mut header = tcp::Header::parse(&scene.segment(1, Flags::ACK, 0, 0))
            .unwrap()
            .0;
        header.ack = header.ack.wrapping_sub(back);
        let old = finished(&header, 1, 0);
        let bytes = scene.send_bytes(1, &old);
        assert_eq!(compressed(&bytes).is_none(), is_far, "{back}");
        assert_eq!(scene.receive(0, &bytes), Ok(old));
        let segment = scene.segment(0, Flags::ACK, 0, 40);
        let answer = scene.send_bytes(0, &segment);
        assert_eq!(
            compressed(&answer).is_none(),
            is_far,
            "the answer to {back}"
        );
        assert_eq!(scene.receive(1, &answer), Ok(segment));
    }
}

/// To the checksum a window of 65,535 is one of 0: no other window is read by it. An elided 0 that
/// a 65,535 overtakes is refused.
#[test]
fn a_window_of_all_ones_is_no_reference() {
    for mode in [Mode::Default, Mode::InOrder, Mode::Strict] {
        let mut scene = Scene::new(mode, &[], 0x5678_0000);
        scene.window = 0;
        for _ in 0..4 {
            scene.pass(0, 40);
        }
        let segment = scene.segment(0, Flags::ACK, 0, 0);
        let overtaken = scene.send_bytes(0, &segment);
        let frame = compressed(&overtaken).expect("a compressed header");
        assert_eq!(frame.window, Window::Elided);
        scene.window = u16::MAX;
        let update = scene.send(0, Flags::ACK, 0, 0);
        scene.receive(1, &update).unwrap();
        let read = scene.receive(1, &overtaken);
        assert_eq!(read, Err(HeaderDrop::NoReference), "{mode:?}");
    }
}

/// Nor does a sender count on it: the window goes whole each time, and so does one with the same
/// upper byte.
#[test]
fn windows_beside_all_ones_go_whole() {
    for mode in [Mode::Default, Mode::InOrder, Mode::Strict] {
        for windows in [[0xffff, 0xffff], [0xffff, 0xff20], [0xff10, 0xff20]] {
            let mut scene = Scene::new(mode, &[], 0x5678_0000);
            for at in 0..12 {
                scene.window = windows[at % 2];
                let segment = scene.segment(0, Flags::ACK, 0, 40);
                let data = scene.send_bytes(0, &segment);
                if let Some(frame) = compressed(&data) {
                    let whole = Window::Whole(scene.window);
                    assert_eq!(frame.window, whole, "{mode:?}, {windows:x?}, {at}");
                }
                assert_eq!(scene.receive(1, &data), Ok(segment));
                scene.seq[0] += 40;
                let ack = scene.send(1, Flags::ACK, 0, 0);
                scene.receive(0, &ack).unwrap();
            }
        }
    }
}
