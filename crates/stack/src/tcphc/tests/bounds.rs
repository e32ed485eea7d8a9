//! The last value on each side of a rule's bound: `docs/reference/tcphc.md`, sections 3 to 6.

use std::string::String;
use std::vec::Vec;

use super::breaks::{STAMPS, Scene, attack, compressed, confirmed_echo_in, finished};
use super::driver::flow;
use super::rules::FLIGHT_MAX;
use super::table::{PORTS, at, connected, receive, segment, send, table};
use super::*;
use crate::wire::tcphc::Field;

const F: u32 = FLIGHT_MAX;

/// All that an end knows of its connections.
fn known(end: &Tcphc<'_>) -> String {
    std::format!("{:?}", end.contexts)
}

fn is_active(end: &Tcphc<'_>) -> bool {
    end.contexts.iter().any(|c| c.state() == State::Active)
}

/// A whole header under identifier `cid` in front of what `segment` holds.
fn full(cid: u8, segment: &[u8]) -> Vec<u8> {
    [&[tcphc::FULL, cid], segment].concat()
}

/// The identifier of the only connection.
fn cid_of(end: &Tcphc<'_>) -> u8 {
    let mut active = end.contexts.iter().filter(|c| c.state() == State::Active);
    active.next().unwrap().cid
}

fn header_of(segment: &[u8]) -> tcp::Header {
    tcp::Header::parse(segment).unwrap().0
}

/// A connection on links where frames expire, on which 16 bits are proof.
fn scene(mode: Mode) -> Scene {
    let mut scene = Scene::new(mode, &[], 0x5678_0000);
    expire(&mut scene);
    scene
}

fn expire(scene: &mut Scene) {
    for end in &mut scene.ends {
        end.rules.frames_expire = true;
    }
}

/// Sends `header` from `end`, which the other end must read as it is; returns its compressed form.
#[track_caller]
fn exact(scene: &mut Scene, end: usize, header: &tcp::Header, len: usize) -> tcphc::Compressed {
    let sent = finished(header, end, len);
    let bytes = scene.send_bytes(end, &sent);
    assert_eq!(scene.receive(1 - end, &bytes), Ok(sent));
    compressed(&bytes).expect("a compressed header")
}

/// The same of what the mote would send next.
#[track_caller]
fn next_ack(scene: &mut Scene) -> tcphc::Compressed {
    let header = header_of(&scene.segment(0, Flags::ACK, 0, 0));
    exact(scene, 0, &header, 0)
}

/// `len` bytes from the router that the mote has not acknowledged yet.
#[track_caller]
fn hear(scene: &mut Scene, len: u32) {
    let data = scene.send(1, Flags::ACK, 0, len as usize);
    scene.receive(0, &data).unwrap();
    scene.seq[1] = scene.seq[1].wrapping_add(len);
}

fn width(field: Field) -> u32 {
    match field {
        Field::Elided => 0,
        Field::Low8(_) => 8,
        Field::Low16(_) => 16,
        Field::Whole(_) => 32,
    }
}

/// Section 6, rule 2: until the SYN-ACK, what comes of an older connection changes nothing.
#[test]
fn only_a_syn_ack_answers_an_opener() {
    let mut mote = table(End::Mote, 2, Duration::ZERO);
    let syn = segment(0, PORTS, 700, 0, Flags::SYN, 0);
    let offered = send(&mut mote, 0, &syn, at(1)).unwrap();
    let before = known(&mote);
    let old = segment(1, PORTS, 5_000, 701, Flags::ACK, 20);
    let bytes = full(offered[1], &old);
    assert_eq!(receive(&mut mote, 0, &bytes, at(1)), Ok(old.clone()));
    assert_eq!(known(&mote), before);
    mote.on_plain(&flow(0), &old, at(1));
    assert_eq!(known(&mote), before);
    let answer = segment(1, PORTS, 9_000, 701, Flags::SYN | Flags::ACK, 0);
    let bytes = full(offered[1], &answer);
    assert_eq!(receive(&mut mote, 0, &bytes, at(1)), Ok(answer));
    assert_ne!(known(&mote), before);
}

/// Section 6, rule 3: both ends' references are those of the SYN.
#[test]
fn a_connection_that_goes_on_after_a_strangers_syn_gets_a_new_identifier() {
    let (mut ends, seq, ack) = connected();
    let first = cid_of(&ends[0]);
    let syn = segment(0, PORTS, seq + 500, 0, Flags::SYN, 0);
    let offered = send(&mut ends[0], 0, &syn, at(2)).unwrap();
    assert_ne!(offered[1], first);
    assert_eq!(receive(&mut ends[1], 1, &offered, at(2)), Ok(syn));
    let data = segment(0, PORTS, seq, ack, Flags::ACK, 40);
    let bytes = send(&mut ends[0], 0, &data, at(2)).unwrap();
    assert_eq!(bytes[0], tcphc::FULL);
    assert_ne!(bytes[1], offered[1]);
    assert_eq!(receive(&mut ends[1], 1, &bytes, at(2)), Ok(data));
}

/// Section 6, rule 6: the router and the mote count a segment by the same bounds, and the draft,
/// which has none, counts all.
#[test]
fn what_lies_beyond_its_bounds_counts_at_neither_end() {
    let f = F as i32;
    for (ahead, acks_ahead, counts) in [
        (0, 0, true),
        (f + 2, 0, true),
        (f + 3, 0, false),
        (-f, 0, true),
        (-f - 1, 0, false),
        (0, -1, true),
        (0, 1, false),
    ] {
        for mode in [Mode::Default, Mode::Draft] {
            let mut scene = Scene::new(mode, &[], 0x5678_0000);
            scene.pass(0, 40);
            let mut header = header_of(&scene.segment(1, Flags::ACK, 0, 0));
            header.seq = header.seq.wrapping_add_signed(ahead);
            header.ack = header.ack.wrapping_add_signed(acks_ahead);
            let segment = finished(&header, 1, 0);
            let counts = counts || mode == Mode::Draft;
            let name = std::format!("{mode:?} {ahead} {acks_ahead}");
            let (mut out, now) = ([0; 80], scene.now);
            let _ = scene.send(0, Flags::ACK, 0, 0);
            let before = known(&scene.ends[0]);
            let bytes = full(cid_of(&scene.ends[0]), &segment);
            scene.receive(0, &bytes).unwrap();
            assert_eq!(known(&scene.ends[0]) != before, counts, "{name}");
            let router = &mut scene.ends[1];
            let made = router.compress(&flow(1), &segment, Origin::Outside, now, &mut out);
            assert_eq!(made.is_ok(), counts, "{name}");
        }
    }
}

/// Section 4: after 60 s of silence.
#[test]
fn after_a_minute_of_silence_a_header_goes_whole() {
    for (seconds, is_whole) in [(59, false), (60, true)] {
        let (mut ends, seq, ack) = connected();
        let data = segment(0, PORTS, seq, ack, Flags::ACK, 40);
        let bytes = send(&mut ends[0], 0, &data, at(1)).unwrap();
        assert_eq!(receive(&mut ends[1], 1, &bytes, at(1)), Ok(data));
        let data = segment(0, PORTS, seq + 40, ack, Flags::ACK, 40);
        let bytes = send(&mut ends[0], 0, &data, at(1 + seconds)).unwrap();
        assert_eq!(bytes[0] == tcphc::FULL, is_whole, "{seconds}");
    }
}

/// The counts of a silence do not run into what else is known of a connection.
#[test]
fn a_silence_of_weeks_ends_no_connection() {
    let mut scene = scene(Mode::Default);
    scene.pass(0, 40);
    scene.now = Instant::from_micros(0x30000 << 24);
    for _ in 0..3 {
        scene.pass(0, 40);
    }
    assert!(scene.ends.iter().all(is_active));
    assert_eq!(width(next_ack(&mut scene).ack), 0);
}

/// Section 3: equal upper bytes are left out, whatever became of the segment before.
#[test]
fn the_draft_leaves_out_equal_upper_bytes() {
    for (by, bits) in [
        (0, 0),
        (1, 8),
        (0xff, 8),
        (0x100, 16),
        (0xff00, 16),
        (0x1_0000, 32),
    ] {
        let moved = |at: usize| {
            let mut scene = Scene::new(Mode::Draft, &[], 0x5678_0000);
            // Lower bytes of 0, so that what is added stays in its byte.
            scene.seq = [0x2000_0000, 0x6000_0000];
            let base = header_of(&scene.segment(0, Flags::ACK, 0, 0));
            let sent = finished(&base, 0, 0);
            let _lost = scene.send_bytes(0, &sent);
            scene
                .receive(1, &full(cid_of(&scene.ends[1]), &sent))
                .unwrap();
            scene.seq[at] += by;
            next_ack(&mut scene)
        };
        assert_eq!(width(moved(0).seq), bits, "{by}");
        assert_eq!(width(moved(1).ack), bits, "{by}");
    }
    for (window, expected) in [
        (0x1000, Window::Elided),
        (0x10ff, Window::Low(0xff)),
        (0x1100, Window::Whole(0x1100)),
    ] {
        let mut scene = Scene::new(Mode::Draft, &[], 0x5678_0000);
        scene.pass(0, 40);
        scene.window = window;
        assert_eq!(next_ack(&mut scene).window, expected);
    }
}

/// Section 3: the draft has no timestamps.
#[test]
fn the_draft_sends_timestamps_in_whole_headers() {
    let stamps = [Some(STAMPS), Some((STAMPS.1, STAMPS.0))];
    let mut scene = Scene::with_timestamps(Mode::Draft, &[], 0x5678_0000, stamps);
    for _ in 0..3 {
        let data = scene.segment(0, Flags::ACK, 0, 40);
        let bytes = scene.send_bytes(0, &data);
        assert_eq!(bytes[0], tcphc::FULL);
        assert_eq!(scene.receive(1, &bytes), Ok(data));
        scene.seq[0] += 40;
    }
}

/// Section 6, rule 13: with the second end of a spell of 2^24 µs, and again once something was
/// heard.
#[test]
fn an_echo_goes_whole_with_the_second_end_of_a_spell_in_silence() {
    let (ours, theirs) = STAMPS;
    // The first spell ends after 16.8 s, the second after 33.6 s, the third after 50.3 s.
    for (heard_s, sent_s, is_whole) in [
        (20, 20, false),
        (20, 33, false),
        (20, 34, false),
        (20, 50, false),
        (20, 51, true),
        (33, 50, false),
        (33, 51, true),
    ] {
        let mut scene = confirmed_echo_in(Mode::Default, &[]);
        let mut round = |heard_s: u64, sent_s: u64, ticks: u32| {
            scene.now = at(heard_s);
            scene.timestamps[1] = Some((theirs + ticks, ours + 10));
            hear(&mut scene, 48);
            scene.now = at(sent_s);
            scene.timestamps[0] = Some((ours + 10 + ticks, theirs + ticks));
            let (_, echo) = next_ack(&mut scene).timestamps.unwrap();
            width(echo) == 32
        };
        assert_eq!(round(heard_s, sent_s, 20), is_whole, "{heard_s} {sent_s}");
        assert!(!round(sent_s, sent_s, 40), "{heard_s} {sent_s}");
    }
}

/// Section 6, rule 13: 8,192 ticks behind the latest that was heard.
#[test]
fn an_echo_goes_whole_when_it_is_8193_ticks_old() {
    let (ours, theirs) = STAMPS;
    for (ticks, is_whole) in [(8_192, false), (8_193, true)] {
        let mut scene = confirmed_echo_in(Mode::Default, &[]);
        scene.timestamps[1] = Some((theirs + ticks, ours + 10));
        hear(&mut scene, 48);
        scene.timestamps[0] = Some((ours + 20, theirs));
        let (_, echo) = next_ack(&mut scene).timestamps.unwrap();
        assert_eq!(width(echo) == 32, is_whole, "{ticks}");
    }
}

/// What both ends read a number against: from 64 ticks or 96 bytes behind with 8 bits, and from
/// 16,384 ticks or 32,768 bytes behind with 16.
#[test]
fn numbers_are_as_short_as_what_the_peer_may_hold_allows() {
    let (ours, theirs) = STAMPS;
    for (by, bits) in [
        (0, 0),
        (1, 8),
        (191, 8),
        (192, 16),
        (49_151, 16),
        (49_152, 32),
        (-64, 8),
        (-65, 16),
        (-16_384, 16),
        (-16_385, 32),
    ] {
        let mut scene = confirmed_echo_in(Mode::InOrder, &[]);
        let value = (ours + 10).wrapping_add_signed(by);
        scene.timestamps[0] = Some((value, theirs));
        let (value, _) = next_ack(&mut scene).timestamps.unwrap();
        assert_eq!(width(value), bits, "{by}");
    }
    for (by, bits) in [
        (0, 0),
        (1, 8),
        (159, 8),
        (160, 16),
        (32_767, 16),
        (32_768, 32),
    ] {
        let mut scene = scene(Mode::InOrder);
        scene.pass(0, 40);
        scene.seq[0] += by;
        assert_eq!(width(next_ack(&mut scene).seq), bits, "{by}");
    }
}

/// To the checksum 0x0000 and 0xffff are the same, so numbers on both sides of 0 go whole.
#[test]
fn numbers_within_a_period_of_sixteen_bits_around_zero_go_whole() {
    for (number, bits) in [
        (0xfffe_ffff, 0),
        (0xffff_0000, 32),
        (0xffff, 32),
        (0x1_0000, 0),
    ] {
        let mut scene = Scene::new(Mode::InOrder, &[], number);
        scene.pass(0, 40);
        assert_eq!(width(next_ack(&mut scene).ack), bits, "{number:#x}");
    }
}

/// Section 3: a mesh has F bytes in flight at most, so what is acknowledged beyond that is older
/// than the receiver takes it to be.
#[test]
fn an_acknowledgment_that_lags_by_more_than_a_flight_goes_whole() {
    for (behind, is_whole) in [(F, false), (F + 1, true)] {
        let mut scene = scene(Mode::InOrder);
        let header = header_of(&scene.segment(0, Flags::ACK, 0, 0));
        let chunks = [4096, 4096, 4096, 4096, behind - F];
        chunks.into_iter().for_each(|len| hear(&mut scene, len));
        let frame = exact(&mut scene, 0, &header, 0);
        assert_eq!(width(frame.ack) == 32, is_whole, "{behind}");
    }
}

/// Section 6, rule 1: 16 bits for spans up to 32,767. A span is what an acknowledgment lies behind
/// the highest one, and a flight; however far the window reaches.
#[test]
fn sixteen_bits_acknowledge_within_a_span_of_32767() {
    for window in [0x4000, 0xffff] {
        for (behind, bits) in [(F - 1, 16), (F, 32)] {
            let mut scene = scene(Mode::InOrder);
            scene.window = window;
            let mut header = header_of(&scene.segment(0, Flags::ACK, 0, 0));
            (0..4).for_each(|_| hear(&mut scene, 4096));
            next_ack(&mut scene);
            header.ack = scene.seq[1] - behind;
            let frame = exact(&mut scene, 0, &header, 0);
            assert_eq!(width(frame.ack), bits, "{window:#x} {behind}");
        }
    }
}

/// Eight bits where all windows that were ever given end within 158 bytes, in their scale.
#[test]
fn eight_bits_acknowledge_within_small_windows() {
    for (scale, windows, bits) in [
        (None, [158, 158], 8),
        (None, [159, 159], 16),
        // The byte that is acknowledged beside it has moved the edge nearer.
        (None, [159, 100], 8),
        (None, [160, 100], 16),
        (None, [100, 159], 16),
        (Some(2), [39, 39], 8),
        (Some(2), [40, 40], 16),
        (Some(2), [39, 40], 16),
        (Some(2), [40, 39], 16),
    ] {
        let mut scene = Scene::closed(Mode::InOrder, &[], 0x5678_0000);
        scene.window_scale = scale;
        scene.window = windows[0];
        let mut scene = scene.open();
        expire(&mut scene);
        hear(&mut scene, 1);
        scene.window = windows[1];
        assert_eq!(
            width(next_ack(&mut scene).ack),
            bits,
            "{scale:?} {windows:?}"
        );
    }
}

/// Section 6, rule 1: the peer may know the connection by this whole header alone, and not what
/// was given before.
#[test]
fn no_eight_bits_acknowledge_between_a_whole_header_and_a_confirmation() {
    let mut scene = Scene::closed(Mode::InOrder, &[], 0x5678_0000);
    scene.window = 100;
    let mut scene = scene.open();
    expire(&mut scene);
    scene.pass(0, 40);
    let bits = |scene: &mut Scene| {
        hear(scene, 10);
        width(next_ack(scene).ack)
    };
    assert_eq!(bits(&mut scene), 8);
    let urgent = scene.send(0, Flags::ACK | Flags::URG, 0, 0);
    assert_eq!(urgent[0], tcphc::FULL);
    scene.receive(1, &urgent).unwrap();
    assert_eq!(bits(&mut scene), 16);
    scene.pass(0, 40);
    assert_eq!([bits(&mut scene), bits(&mut scene)], [8, 8]);
}

/// Section 6, rule 4. An acknowledgment of eight bits is overtaken by so much data that it reads
/// 256 too high and an elided sequence number 65,279, which the checksum does not tell.
#[test]
fn a_short_acknowledgment_hides_another_error() {
    attack(Cure::ShortAck, |off| {
        let mut scene = Scene::new(Mode::Strict, off, 0x5678_0000);
        // Two windows since this went out: the peer may hold either, so that they go whole.
        let data = scene.send(0, Flags::ACK, 0, 40);
        scene.receive(1, &data).unwrap();
        scene.seq[0] += 40;
        scene.window = 100;
        let update = scene.send(0, Flags::ACK, 0, 0);
        scene.receive(1, &update).unwrap();
        let ack = scene.send(1, Flags::ACK, 0, 0);
        scene.receive(0, &ack).unwrap();
        // The larger one has passed.
        for _ in 0..5 {
            hear(&mut scene, 1000);
        }
        let passed = scene.send(0, Flags::ACK, 0, 0);
        scene.receive(1, &passed).unwrap();
        hear(&mut scene, 40);
        let segment = scene.segment(0, Flags::ACK, 0, 0);
        let overtaken = scene.send_bytes(0, &segment);
        for len in [4096; 15].into_iter().chain([65_279 - 15 * 4096]) {
            scene.pass(0, len);
        }
        for _ in 0..3 {
            scene.pass(1, 100);
        }
        scene.is_misread(&overtaken, &segment)
    });
}

/// Section 4: a far-away acknowledgment number takes with it what the peer was known to hold.
#[test]
fn numbers_go_whole_until_something_is_confirmed_after_a_far_one() {
    let mut scene = scene(Mode::Default);
    scene.pass(0, 40);
    scene.pass(1, 40);
    let header = header_of(&scene.segment(1, Flags::ACK, 0, 0));
    let far = tcp::Header {
        ack: header.ack - (1 << 20),
        ..header
    };
    for header in [&far, &header] {
        let bytes = scene.send_bytes(1, &finished(header, 1, 0));
        assert_eq!(bytes[0], tcphc::FULL);
    }
    let bytes = scene.send_bytes(1, &finished(&header, 1, 40));
    let frame = compressed(&bytes).expect("a compressed header");
    assert_eq!(width(frame.seq), 32);
}

/// The same of timestamps, should the far segment have none.
#[test]
fn timestamps_go_whole_after_a_far_segment_without_any() {
    let mut scene = confirmed_echo_in(Mode::InOrder, &[]);
    let mut header = header_of(&scene.segment(1, Flags::ACK, 0, 0));
    header.ack -= 40_000;
    header.options.timestamps = None;
    let far = full(cid_of(&scene.ends[0]), &finished(&header, 1, 0));
    scene.receive(0, &far).unwrap();
    let answer = scene.send(0, Flags::ACK, 0, 40);
    assert_eq!(answer[0], tcphc::FULL);
    scene.receive(1, &answer).unwrap();
    scene.seq[0] += 40;
    let (value, echo) = next_ack(&mut scene).timestamps.unwrap();
    assert_eq!((width(value), width(echo)), (32, 32));
}

/// Karn's ambiguity: of data that went out twice nobody knows which copy was acknowledged, and
/// the Internet may have turned round their order before the router saw them.
#[test]
fn the_acknowledgment_of_data_sent_twice_confirms_nothing() {
    let mut scene = scene(Mode::InOrder);
    scene.pass(0, 40);
    scene.pass(1, 40);
    let mut old = header_of(&scene.segment(1, Flags::ACK, 0, 0));
    // The router acknowledges 40 bytes more in data that are lost, and not in their copy.
    let more = scene.send(0, Flags::ACK, 0, 40);
    scene.receive(1, &more).unwrap();
    scene.seq[0] += 40;
    let _lost = scene.send(1, Flags::ACK, 0, 48);
    old.seq = scene.seq[1];
    let copy = scene.send_bytes(1, &finished(&old, 1, 48));
    scene.receive(0, &copy).unwrap();
    scene.seq[1] += 48;
    next_ack(&mut scene);
    let header = header_of(&scene.segment(1, Flags::ACK, 0, 0));
    assert_ne!(width(exact(&mut scene, 1, &header, 0).ack), 0);
}

/// A receiver takes no window from a compressed header with an older acknowledgment number.
#[test]
fn windows_of_old_acknowledgments_are_no_news() {
    let mut scene = scene(Mode::Default);
    scene.pass(0, 40);
    scene.pass(1, 40);
    scene.window = 0x2000;
    let header = header_of(&scene.segment(0, Flags::ACK, 0, 0));
    let old = tcp::Header {
        ack: header.ack - 20,
        ..header
    };
    for _ in 0..3 {
        exact(&mut scene, 0, &old, 0);
    }
    let frame = exact(&mut scene, 0, &header, 0);
    assert_eq!(frame.window, Window::Whole(0x2000));
}

/// What was sent first, and not acknowledged, confirms first: a flight that never ends would
/// confirm nothing otherwise. A probe, which holds no data, changes nothing about it.
#[test]
fn the_first_unacknowledged_data_confirm() {
    let mut scene = scene(Mode::InOrder);
    scene.pass(0, 40);
    hear(&mut scene, 40);
    let data = scene.send(0, Flags::ACK, 0, 40);
    scene.receive(1, &data).unwrap();
    scene.seq[0] += 40;
    let answer = scene.send(1, Flags::ACK, 0, 0);
    let more = scene.send(0, Flags::ACK, 0, 40);
    scene.receive(1, &more).unwrap();
    scene.seq[0] += 40;
    let probe = scene.send(0, Flags::ACK, 1, 0);
    scene.receive(1, &probe).unwrap();
    scene.receive(0, &answer).unwrap();
    assert_eq!(width(next_ack(&mut scene).ack), 0);
}

/// The same of timestamps and their echoes.
#[test]
fn the_first_timestamp_without_an_echo_confirms() {
    let (ours, theirs) = STAMPS;
    let mut scene = confirmed_echo_in(Mode::InOrder, &[]);
    scene.timestamps[1] = Some((theirs + 5, ours + 10));
    hear(&mut scene, 40);
    for ticks in [20, 30] {
        scene.timestamps[0] = Some((ours + ticks, theirs + 5));
        next_ack(&mut scene);
    }
    scene.timestamps[1] = Some((theirs + 5, ours + 20));
    let echo = scene.send(1, Flags::ACK, 0, 0);
    scene.receive(0, &echo).unwrap();
    let frame = next_ack(&mut scene);
    assert_eq!(width(frame.ack), 0);
    assert_eq!(width(frame.timestamps.unwrap().1), 0);
}

/// Each refused header is counted under its reason.
#[test]
fn refused_headers_are_counted_by_their_reason() {
    let (mut ends, seq, ack) = connected();
    let mut damaged = full(
        cid_of(&ends[1]),
        &segment(0, PORTS, seq, ack, Flags::ACK, 9),
    );
    damaged[25] ^= 1;
    for times in 1..=2 {
        let refused = receive(&mut ends[1], 1, &damaged, at(2));
        assert_eq!(refused, Err(HeaderDrop::Checksum));
        let counters = ends[1].counters();
        assert_eq!(counters.dropped(HeaderDrop::Checksum), times);
        assert_eq!(counters.dropped(HeaderDrop::NoContext), 0);
    }
}

/// Sections "MSS" and 5: bytes by mode, without timestamps and with them.
#[cfg(feature = "tcp-small")]
#[test]
fn an_mss_counts_on_these_lengths() {
    for (mode, usual, max) in [
        (Mode::Default, [7, 12], [11, 18]),
        (Mode::InOrder, [7, 12], [11, 18]),
        (Mode::Strict, [9, 14], [11, 18]),
        (Mode::Draft, [7, 34], [11, 34]),
    ] {
        let scene = Scene::closed(mode, &[], 0x5678_0000);
        let [mote, _] = &scene.ends;
        let lengths = [false, true].map(|timestamps| mote.header_len_usual(timestamps));
        assert_eq!(lengths, usual, "{mode:?}");
        let lengths = [false, true].map(|timestamps| mote.header_len_max(timestamps));
        assert_eq!(lengths, max, "{mode:?}");
    }
}

/// Asked before a segment is made, the length is that of the header that leaves.
#[test]
fn a_header_becomes_as_long_as_was_said() {
    let mut mote = table(End::Mote, 1, REUSE_AFTER);
    let data = segment(0, PORTS, 8, 9, Flags::ACK, 20);
    let header = &data[..tcp::HEADER_LEN];
    for (second, len) in [(119, 20), (120, 22)] {
        assert_eq!(mote.would_carry(&flow(0), at(second)), second == 120);
        assert_eq!(mote.header_len(&flow(0), header, at(second)), len);
        let sent = send(&mut mote, 0, &data, at(second));
        assert_eq!(sent.map_or(20, |bytes| bytes.len() - 20), len);
    }
    let ([mut mote, mut router], mut seq, ack) = connected();
    for _ in 0..4 {
        let data = segment(0, PORTS, seq, ack, Flags::ACK, 20);
        let said = mote.header_len(&flow(0), &data[..tcp::HEADER_LEN], at(2));
        let bytes = send(&mut mote, 0, &data, at(2)).unwrap();
        assert_eq!(bytes.len() - 20, said);
        assert_eq!(receive(&mut router, 1, &bytes, at(2)), Ok(data));
        seq += 20;
        let answer = segment(1, PORTS, ack, seq, Flags::ACK, 0);
        let bytes = send(&mut router, 1, &answer, at(2)).unwrap();
        assert_eq!(receive(&mut mote, 0, &bytes, at(2)), Ok(answer));
    }
    let urgent = segment(0, PORTS, seq, ack, Flags::ACK | Flags::URG, 20);
    let said = mote.header_len(&flow(0), &urgent[..tcp::HEADER_LEN], at(2));
    assert_eq!(said, 22, "what no compressed header can express");
}

/// Section 6, rule 11: of what an end that joined late sends first nobody knows whether a segment
/// before had its timestamp. An acknowledgment that was turned round with the next one is lost.
#[test]
fn the_first_timestamp_of_an_end_that_joined_late_confirms_nothing() {
    let (ours, theirs) = STAMPS;
    let mut scene = confirmed_echo_in(Mode::InOrder, &[]);
    scene.ends[1] = breaks::fresh(Mode::InOrder, End::Router, &[], 4);
    expire(&mut scene);
    scene.timestamps[1] = Some((theirs + 50, ours + 10));
    let old = header_of(&scene.segment(1, Flags::ACK, 0, 0));
    let newest = tcp::Header {
        ack: old.ack + 40,
        ..old
    };
    let _unknown = scene.send(0, Flags::ACK, 0, 40);
    let _lost = scene.send_bytes(1, &finished(&newest, 1, 0));
    let copy = scene.send_bytes(1, &finished(&old, 1, 0));
    scene.receive(0, &copy).unwrap();
    scene.timestamps[0] = Some((ours + 20, theirs + 50));
    let _refused = scene.send(0, Flags::ACK, 0, 40);
    let again = scene.send(0, Flags::ACK, 0, 40);
    scene.receive(1, &again).unwrap();
    let next = tcp::Header {
        options: tcp::Options {
            timestamps: Some((theirs + 60, ours + 20)),
            ..old.options
        },
        ..newest
    };
    // The answer to what came again goes whole, and is lost.
    let _lost = scene.send_bytes(1, &finished(&next, 1, 0));
    assert_ne!(width(exact(&mut scene, 1, &next, 0).ack), 0);
}

/// Plain TCP is legal at any time: a SYN-ACK that comes again so takes no context away.
#[test]
fn a_plain_answer_that_comes_again_ends_nothing() {
    let (mut ends, seq, ack) = connected();
    let answer = segment(1, PORTS, ack - 1, seq, Flags::SYN | Flags::ACK, 0);
    ends[0].on_plain(&flow(0), &answer, at(2));
    let data = segment(0, PORTS, seq, ack, Flags::ACK, 40);
    let bytes = send(&mut ends[0], 0, &data, at(2)).unwrap();
    assert_eq!(bytes[0] & 0xf0, 0xc0);
    assert_eq!(receive(&mut ends[1], 1, &bytes, at(2)), Ok(data));
}

/// Section 6, rule 9: behind the last byte that came, or behind the last one acknowledged, between
/// which some may be missing.
#[test]
fn a_reset_with_either_number_that_is_waited_for_ends_a_context() {
    for (back, ends) in [(0, true), (40, true), (20, false)] {
        let mut scene = scene(Mode::Default);
        scene.pass(0, 40);
        hear(&mut scene, 40);
        let reset = scene.segment(1, Flags::RST | Flags::ACK, back, 0);
        let bytes = full(cid_of(&scene.ends[0]), &reset);
        scene.receive(0, &bytes).unwrap();
        assert_eq!(!is_active(&scene.ends[0]), ends, "{back}");
    }
}

/// Section 4: the opening goes whole up to the third ACK.
#[test]
fn what_is_sent_before_the_third_ack_goes_whole() {
    let mut scene = Scene::closed(Mode::Default, &[], 0x5678_0000);
    let syn = scene.send(0, Flags::SYN, 0, 0);
    scene.receive(1, &syn).unwrap();
    scene.seq[0] += 1;
    let _answer = scene.send(1, Flags::SYN | Flags::ACK, 0, 0);
    scene.seq[1] += 1;
    for _ in 0..3 {
        assert_eq!(scene.send(1, Flags::ACK, 0, 40)[0], tcphc::FULL);
        scene.seq[1] += 40;
    }
}

/// An echo that goes back, in a segment whose own timestamp is new, confirms no later echo.
#[test]
fn a_timestamp_confirms_the_echo_that_went_with_it() {
    let (ours, theirs) = STAMPS;
    let mut scene = confirmed_echo_in(Mode::InOrder, &[]);
    scene.timestamps[1] = Some((theirs + 5, ours + 10));
    hear(&mut scene, 40);
    scene.timestamps[0] = Some((ours + 10, theirs + 5));
    let _lost = scene.send(0, Flags::ACK, 0, 0);
    scene.timestamps[0] = Some((ours + 20, theirs));
    next_ack(&mut scene);
    scene.timestamps[1] = Some((theirs + 6, ours + 20));
    let echo = scene.send(1, Flags::ACK, 0, 0);
    scene.receive(0, &echo).unwrap();
    scene.timestamps[0] = Some((ours + 30, theirs + 5));
    assert_eq!(width(next_ack(&mut scene).timestamps.unwrap().1), 8);
}

/// Section 1: the high byte of a window alone, which no compressor here sends.
#[test]
fn the_high_byte_of_a_window_is_understood() {
    let mut scene = scene(Mode::Default);
    scene.window = 0x1234;
    scene.pass(0, 40);
    scene.window = 0x5634;
    let sent = scene.segment(0, Flags::ACK, 0, 0);
    let bytes = scene.send_bytes(0, &sent);
    let mut frame = compressed(&bytes).unwrap();
    assert_eq!(frame.window, Window::Whole(0x5634));
    frame.window = Window::High(0x56);
    let mut out = [0; tcphc::HEADER_LEN_MAX];
    let mut w = Writer::new(&mut out);
    Header::Compressed(frame).emit(&mut w).unwrap();
    let len = w.written();
    assert_eq!(scene.receive(1, &out[..len]), Ok(sent));
}

/// Section 4: what no compressed header can express goes whole: an urgent pointer, and options in
/// another layout.
#[test]
fn what_no_compressed_header_expresses_goes_whole() {
    let mut scene = scene(Mode::Default);
    scene.pass(0, 40);
    let mut urgent = header_of(&scene.segment(0, Flags::ACK, 0, 0));
    urgent.urgent = 5;
    let mut odd = scene.segment(0, Flags::ACK, 0, 0);
    // Timestamps before their padding, which belongs in front of them.
    odd.extend([8, 10, 0, 0, 0, 9, 0, 0, 0, 8, 1, 1]);
    odd[12] = 0x80;
    let flow = flow(0);
    tcp::fill_checksum(&flow.local, &flow.remote, &mut odd);
    for sent in [finished(&urgent, 0, 0), odd] {
        let bytes = scene.send_bytes(0, &sent);
        assert_eq!(bytes[0], tcphc::FULL);
        assert_eq!(scene.receive(1, &bytes), Ok(sent));
    }
}

/// A flow from the router to the mote whose address has these upper and lower halves.
fn flow_to(upper: u16, lower: u16) -> Flow {
    Flow {
        local: driver::ROUTER,
        remote: Ipv6Addr::new(0x2001, 0xdb8, 0, upper, 0, 0, 0, lower),
        within_mesh: false,
    }
}

/// A SYN from port `port` along `flow`; whether it has a context.
fn opens(table: &mut Tcphc<'_>, flow: &Flow, port: u16, now: Instant) -> bool {
    let syn = segment(1, (80, port), 7, 0, Flags::SYN, 0);
    let mut out = [0; 80];
    table
        .compress(flow, &syn, Origin::Own, now, &mut out)
        .is_ok()
}

/// Which nodes have a context, by the lower half of their addresses.
fn shares(slots: usize, contexts_per_remote: u8) -> Tcphc<'static> {
    let config = Config {
        end: End::Router,
        quiet: Duration::ZERO,
        contexts_per_remote,
        ..Config::default()
    };
    let contexts = std::vec![Context::EMPTY; slots].leak();
    Tcphc::new(contexts, config, at(0), &mut Rng::from_seed([3, 4]))
}

/// Contexts belong to both addresses, all of them, and to the ports.
#[test]
fn connections_are_told_apart_by_every_part_of_their_addresses() {
    let mut table = shares(4, 8);
    let flows = [flow_to(1, 1), flow_to(1, 2), flow_to(2, 1)];
    for (taken, flow) in flows.iter().enumerate() {
        assert!(opens(&mut table, flow, 9, at(1)));
        let used = table.contexts.iter().filter(|c| c.state() != State::Free);
        assert_eq!(used.count(), taken + 1);
    }
    assert!(opens(&mut table, &flows[0], 10, at(1)));
    assert!(!opens(&mut table, &flows[0], 11, at(1)), "no slot is left");
}

/// Section 2: a share is that of one node. Who has taken it gets no slot of another node's, but may
/// have its own again once it is idle; who has not may have any that is.
#[test]
fn shares_are_counted_by_node() {
    let [one, two, three] = [1, 2, 3].map(|node| flow_to(0, node));
    let mut table = shares(2, 1);
    assert!(opens(&mut table, &one, 1, at(1)));
    assert!(opens(&mut table, &two, 1, at(1)), "another node's share");
    assert!(!opens(&mut table, &one, 2, at(1)));
    assert!(opens(&mut table, &one, 1, at(50)), "the SYN again");
    // The second node's is idle, and still not for the first.
    assert!(!opens(&mut table, &one, 2, at(70)));
    assert!(opens(&mut table, &three, 1, at(70)));
    assert!(opens(&mut table, &one, 2, at(130)), "in place of its own");
}

/// Section 2: after 60 s idle.
#[test]
fn a_slot_may_be_taken_after_a_minute() {
    for (second, may) in [(60, false), (61, true)] {
        let mut table = shares(1, 8);
        assert!(opens(&mut table, &flow_to(0, 1), 1, at(1)));
        assert_eq!(opens(&mut table, &flow_to(0, 1), 2, at(second)), may);
    }
}

/// Section 2: an identifier rests 120 s, and the table goes round all 128.
#[test]
fn identifiers_that_are_all_used_at_once_rest_two_minutes() {
    let mut table = table(End::Mote, 1, Duration::ZERO);
    table.next_cid = 32;
    let mut open = |port: u16, second: u64| {
        let syn = segment(0, (port, 80), 7, 0, Flags::SYN, 0);
        let bytes = send(&mut table, 0, &syn, at(second))?;
        let rst = segment(0, (port, 80), 8, 0, Flags::RST, 0);
        send(&mut table, 0, &rst, at(second)).unwrap();
        Some(bytes[1])
    };
    // A quarter of them begins its rest when the last of it is taken: the second one first.
    let taken_at = |port| if port < 96 { 1 } else { 100 };
    let mut used: Vec<u8> = (0..128)
        .filter_map(|port| open(port, taken_at(port)))
        .collect();
    used.sort_unstable();
    assert!(used.into_iter().eq(0..128));
    for (second, may) in [(100, false), (120, false), (121, true)] {
        assert_eq!(open(200, second).is_some(), may, "{second}");
    }
}

/// A reset of a connection that is not known, or the answer to a SYN that did not come by, makes no
/// context at either end.
#[test]
fn resets_and_answers_make_no_context() {
    for flags in [Flags::RST, Flags::RST | Flags::ACK, Flags::SYN | Flags::ACK] {
        let sent = segment(0, PORTS, 7, 9, flags, 0);
        let mut mote = table(End::Mote, 1, Duration::ZERO);
        assert_eq!(send(&mut mote, 0, &sent, at(1)), None);
        let mut router = table(End::Router, 1, Duration::ZERO);
        let bytes = full(3, &sent);
        assert_eq!(receive(&mut router, 1, &bytes, at(1)), Ok(sent));
        let mut contexts = mote.contexts.iter().chain(router.contexts.iter());
        assert!(contexts.all(|c| c.state() == State::Free));
    }
}

/// The identifier of a connection that lives goes to a new connection only, and that of one that is
/// over to any.
#[test]
fn an_identifier_in_use_goes_to_new_connections_only() {
    for (flags, is_over, moves) in [
        (Flags::ACK, false, false),
        (Flags::SYN, false, true),
        (Flags::ACK, true, true),
    ] {
        let (mut ends, _, _) = connected();
        let cid = cid_of(&ends[1]);
        let context = ends[1].contexts.iter_mut().find(|c| c.cid == cid).unwrap();
        context.end_if(is_over);
        let other = segment(0, (4001, 80), 7, 9, flags, 0);
        let bytes = full(cid, &other);
        assert_eq!(receive(&mut ends[1], 1, &bytes, at(2)), Ok(other));
        let ports: Vec<_> = ends[1].contexts.iter().filter(|c| c.cid == cid).collect();
        let has_moved = ports.iter().any(|context| context.ports == (80, 4001));
        assert_eq!(has_moved, moves, "{flags:?} {is_over}");
    }
}

/// A router starts again and gives a connection the identifier of before by chance. The mote does
/// not get the whole header with a new window, and holds the old one.
#[test]
fn windows_go_whole_under_an_identifier_that_came_again_by_chance() {
    let ends = [End::Mote, End::Router].map(|end| table(end, 2, Duration::ZERO));
    let mut ends = ends;
    let steps = [
        (1, segment(1, PORTS, 700, 0, Flags::SYN, 0)),
        (0, segment(0, PORTS, 900, 701, Flags::SYN | Flags::ACK, 0)),
        (1, segment(1, PORTS, 701, 901, Flags::ACK, 0)),
        (0, segment(0, PORTS, 901, 701, Flags::ACK, 40)),
    ];
    for (end, segment) in steps {
        let bytes = send(&mut ends[end], end, &segment, at(1)).unwrap();
        assert_eq!(
            receive(&mut ends[1 - end], 1 - end, &bytes, at(1)),
            Ok(segment)
        );
    }
    let cid = cid_of(&ends[1]);
    ends[1] = table(End::Router, 2, Duration::ZERO);
    ends[1].next_cid = cid & CID_MASK;
    let mut header = header_of(&segment(1, PORTS, 701, 941, Flags::ACK, 0));
    header.window = 2000;
    let sent = finished(&header, 1, 0);
    let lost = send(&mut ends[1], 1, &sent, at(2)).unwrap();
    assert_eq!(lost[..2], [tcphc::FULL, cid]);
    // The mote repeats itself, and says all of it.
    let hint = segment(1, PORTS, 701, 941, Flags::ACK, 0);
    ends[0].on_plain(&flow(0), &hint, at(2));
    let again = segment(0, PORTS, 901, 701, Flags::ACK, 40);
    let bytes = full(cid, &again);
    assert_eq!(receive(&mut ends[1], 1, &bytes, at(2)), Ok(again));
    let lost = send(&mut ends[1], 1, &sent, at(2)).unwrap();
    assert_eq!(lost[0], 0x8f, "the answer to what came again");
    let bytes = send(&mut ends[1], 1, &sent, at(2)).unwrap();
    assert_eq!(receive(&mut ends[0], 0, &bytes, at(2)), Ok(sent));
}

/// The first answer to a SYN counts; one that comes again makes the mote say all of it again.
#[test]
fn an_answer_that_comes_again_is_answered_whole() {
    let mut mote = table(End::Mote, 1, Duration::ZERO);
    let syn = segment(0, PORTS, 700, 0, Flags::SYN, 0);
    let cid = send(&mut mote, 0, &syn, at(1)).unwrap()[1];
    let answer = |isn| segment(1, PORTS, isn, 701, Flags::SYN | Flags::ACK, 0);
    for isn in [900, 1_900] {
        let bytes = full(cid, &answer(isn));
        receive(&mut mote, 0, &bytes, at(1)).unwrap();
        assert_eq!(mote.contexts[0].r_seq, 901);
    }
    for len in [0, 20] {
        let sent = segment(0, PORTS, 701, 901, Flags::ACK, len);
        send(&mut mote, 0, &sent, at(1)).unwrap();
    }
    // Only under the identifier of the connection.
    for (cid, form) in [(cid ^ 1, 0xc0), (cid, 0x8f)] {
        let bytes = full(cid, &answer(900));
        receive(&mut mote, 0, &bytes, at(1)).unwrap();
        let sent = segment(0, PORTS, 721, 901, Flags::ACK, 0);
        let bytes = send(&mut mote, 0, &sent, at(1)).unwrap();
        assert_eq!(bytes[0] & (form | 0xf0), form, "{form:#x}");
    }
}

/// A whole header 32,768 from the last numbers is one of the same connection; further away it makes
/// both ends begin anew.
#[test]
fn a_whole_header_far_away_is_answered_whole() {
    for (back, is_far) in [(32_768, false), (32_769, true)] {
        let mut scene = scene(Mode::Default);
        scene.pass(0, 40);
        scene.pass(1, 40);
        let mut header = header_of(&scene.segment(1, Flags::ACK, 0, 0));
        header.ack -= back;
        let bytes = full(cid_of(&scene.ends[0]), &finished(&header, 1, 0));
        scene.receive(0, &bytes).unwrap();
        let answer = scene.send(0, Flags::ACK, 0, 40);
        assert_eq!(answer[0] == tcphc::FULL, is_far, "{back}");
    }
}

/// References are not wrong for ever where a connection goes on from numbers far back.
#[test]
fn a_connection_that_goes_on_from_far_back_is_compressed_again() {
    let mut scene = scene(Mode::InOrder);
    for _ in 0..3 {
        scene.pass(0, 40);
        scene.pass(1, 40);
    }
    scene.seq[0] -= 40_000;
    scene.pass(1, 40);
    for _ in 0..4 {
        scene.pass(0, 40);
        scene.pass(1, 40);
    }
    assert_eq!(width(next_ack(&mut scene).seq), 0);
    let header = header_of(&scene.segment(1, Flags::ACK, 0, 0));
    assert_eq!(width(exact(&mut scene, 1, &header, 0).ack), 0);
}

/// An acknowledgment of what was never sent moves nothing and confirms nothing.
#[test]
fn an_acknowledgment_of_what_was_never_sent_counts_for_nothing() {
    let mut scene = scene(Mode::InOrder);
    scene.pass(0, 40);
    hear(&mut scene, 40);
    let _lost = scene.send(0, Flags::ACK, 0, 40);
    scene.seq[0] += 40;
    let mut header = header_of(&scene.segment(1, Flags::ACK, 0, 0));
    header.ack += 1000;
    exact(&mut scene, 1, &header, 0);
    // Neither seems repeated what follows, nor is what was lost left out of it.
    let frame = next_ack(&mut scene);
    assert!(!frame.mostly);
    assert_ne!(width(frame.ack), 0);
}

/// Section 6, rule 10: of SYNs that come in another order the latest timestamp counts.
#[test]
fn a_syn_that_comes_late_takes_no_timestamp_back() {
    let mut scene = Scene::closed(Mode::InOrder, &[], 0x5678_0001);
    let mut syns = Vec::new();
    for value in [1_000_000, 1_003_072] {
        scene.timestamps[0] = Some((value, 0));
        syns.push(scene.send(0, Flags::SYN, 0, 0));
    }
    for at in [0, 1, 0] {
        scene.receive(1, &syns[at]).unwrap();
    }
    let mut opening = scene.ends[1]
        .contexts
        .iter()
        .filter(|c| c.state() == State::Offered);
    assert_eq!(opening.next().unwrap().r_tsval, 1_003_072);
}

/// Section 6, rule 10, of the answer to a SYN: under the identifier of its connection.
#[test]
fn an_answer_that_comes_again_brings_its_timestamp() {
    let (ours, theirs) = STAMPS;
    let mut scene = confirmed_echo_in(Mode::InOrder, &[]);
    let cid = cid_of(&scene.ends[0]);
    let mut answer = header_of(&scene.segment(1, Flags::SYN | Flags::ACK, 49, 0));
    answer.options.timestamps = Some((theirs + 500, ours));
    let answer = finished(&answer, 1, 0);
    for (cid, heard) in [(cid ^ 1, theirs), (cid, theirs + 500)] {
        scene.receive(0, &full(cid, &answer)).unwrap();
        let mut active = scene.ends[0].contexts.iter();
        assert!(active.any(|context| context.r_tsval == heard));
    }
}

/// Section 6, rule 11: the echo of what passed uncounted is no proof of what was sent.
#[test]
fn the_echo_of_what_was_not_counted_confirms_nothing() {
    let (ours, theirs) = STAMPS;
    // As the first echo of all.
    let mut scene = Scene::closed(Mode::InOrder, &[], 0x5678_0001);
    scene.timestamps = [Some((ours, 0)), Some((theirs, ours))];
    for (end, flags) in [(0, Flags::SYN), (1, Flags::SYN | Flags::ACK)] {
        let bytes = scene.send(end, flags, 0, 0);
        scene.receive(1 - end, &bytes).unwrap();
        scene.seq[end] += 1;
    }
    scene.timestamps[0] = Some((ours + 1, theirs + 1000));
    let third = scene.send(0, Flags::ACK, 0, 0);
    scene.receive(1, &third).unwrap();
    scene.timestamps[1] = Some((theirs + 1100, ours + 1));
    let _lost = scene.send(1, Flags::ACK, 0, 0);
    scene.timestamps[1] = Some((theirs + 1150, ours + 1));
    let header = header_of(&scene.segment(1, Flags::ACK, 0, 0));
    exact(&mut scene, 1, &header, 0);

    // Behind a segment that was counted, and is lost.
    let mut scene = confirmed_echo_in(Mode::InOrder, &[]);
    let data = scene.send(0, Flags::ACK, 0, 40);
    scene.receive(1, &data).unwrap();
    scene.seq[0] += 40;
    scene.timestamps[1] = Some((theirs + 20, ours + 10));
    let _lost = scene.send(1, Flags::ACK, 0, 0);
    scene.timestamps[0] = Some((ours + 20, theirs + 1000));
    next_ack(&mut scene);
    scene.timestamps[1] = Some((theirs + 30, ours + 20));
    let header = header_of(&scene.segment(1, Flags::ACK, 0, 0));
    assert_ne!(width(exact(&mut scene, 1, &header, 0).ack), 0);
}

/// Windows that share their upper byte go in one byte, however many there are.
#[test]
fn windows_with_one_upper_byte_go_in_their_lower_byte() {
    let mut scene = scene(Mode::InOrder);
    scene.pass(0, 40);
    for low in 1..=4 {
        scene.window = 0x1000 | u16::from(low);
        assert_eq!(next_ack(&mut scene).window, Window::Low(low));
    }
}

/// A window is hoped for after it went out three times in line; while it was left out because the
/// peer was known to hold it, it did not.
#[test]
fn windows_left_out_do_not_count_as_sent() {
    let (ours, theirs) = STAMPS;
    let mut scene = confirmed_echo_in(Mode::InOrder, &[]);
    let old = header_of(&scene.segment(1, Flags::ACK, 0, 0));
    let data = scene.send(0, Flags::ACK, 0, 40);
    scene.receive(1, &data).unwrap();
    scene.seq[0] += 40;
    // The echo of this one confirms its window, and the acknowledgment of the data both again.
    scene.window = 0x2000;
    scene.timestamps[0] = Some((ours + 20, theirs));
    assert_eq!(next_ack(&mut scene).window, Window::Whole(0x2000));
    let echo = tcp::Header {
        options: tcp::Options {
            timestamps: Some((theirs, ours + 20)),
            ..old.options
        },
        ..old
    };
    exact(&mut scene, 1, &echo, 0);
    for _ in 0..3 {
        assert_eq!(next_ack(&mut scene).window, Window::Elided);
    }
    scene.timestamps[1] = Some((theirs, ours + 20));
    let ack = scene.send(1, Flags::ACK, 0, 0);
    scene.receive(0, &ack).unwrap();
    assert_eq!(next_ack(&mut scene).window, Window::Whole(0x2000));
}
