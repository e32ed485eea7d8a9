//! The vectors of the proposal that this follows, byte for byte: read from where they are.
//!
//! They were made by the rules before the cures, so those are taken away here; with them, the
//! same segments must still come out as they went in.

use std::path::PathBuf;
use std::string::String;
use std::vec::Vec;

use super::*;
use crate::wire::tcp::HEADER_LEN;

const NODE: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0x200, 0xff, 0xfe00, 1);
const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0x200, 0xff, 0xfe00, 2);

fn hex(text: &str) -> Vec<u8> {
    (0..text.len() / 2)
        .map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap())
        .collect()
}

/// A file of the shared data, or `None` where it is not there and need not be.
fn shared(path: &str) -> Option<String> {
    let root = std::env::var_os("MOTET_SHARED").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared")),
        PathBuf::from,
    );
    let file = root.join(path);
    if let Ok(text) = std::fs::read_to_string(&file) {
        return Some(text);
    }
    let ci = std::env::var("CI").is_ok_and(|ci| ci == "true");
    assert!(!ci, "{} is missing; set MOTET_SHARED", file.display());
    std::println!("not run: {} is missing; set MOTET_SHARED", file.display());
    None
}

/// One vector: its title, the TCP segment, the compressed header, the payload.
struct Vector {
    title: String,
    segment: Vec<u8>,
    header: Vec<u8>,
    payload: Vec<u8>,
    is_lost: bool,
}

fn vectors() -> Option<Vec<Vector>> {
    let text = shared("spec/tcphc_vectors.txt")?;
    let lines: Vec<&str> = text.lines().collect();
    let mut vectors = Vec::new();
    for lines in lines.windows(3) {
        let (Some((_, segment)), Some((_, compressed))) =
            (lines[1].split_once(" B: "), lines[2].split_once(" B: "))
        else {
            continue;
        };
        if !lines[1].starts_with("  uncompressed") {
            continue;
        }
        let (header, payload) = compressed.split_once(" | ").unwrap();
        let payload = payload.split_whitespace().next().unwrap().trim_matches('-');
        vectors.push(Vector {
            title: lines[0].into(),
            segment: hex(segment),
            header: hex(header),
            payload: hex(payload),
            is_lost: compressed.ends_with("(lost)"),
        });
    }
    assert_eq!(vectors.len(), 24, "V1 to V20, V8 twice, V21 three times");
    Some(vectors)
}

/// The checksum is always there and decides.
#[test]
fn every_vector_parses_to_its_lengths_and_is_emitted_again() {
    for v in vectors().unwrap_or_default() {
        let bytes = [&v.header[..], &v.payload].concat();
        let lengths = tcphc::lengths(&bytes).unwrap_or_else(|e| panic!("{}: {e:?}", v.title));
        assert_eq!(lengths.compressed, v.header.len(), "{}", v.title);
        assert_eq!(
            lengths.uncompressed + v.payload.len(),
            v.segment.len(),
            "{}",
            v.title
        );
        let (header, _) = Header::parse(&bytes).unwrap();
        let mut out = [0; tcphc::HEADER_LEN_MAX];
        let mut w = Writer::new(&mut out);
        header.emit(&mut w).unwrap();
        let len = w.written();
        assert_eq!(out[..len], v.header, "{}", v.title);
    }
}

#[test]
fn malformed_vectors_are_refused() {
    let Some(text) = shared("spec/tcphc_vectors.txt") else {
        return;
    };
    let mut refused = 0;
    for line in text
        .lines()
        .filter_map(|line| line.strip_prefix("malformed "))
    {
        let (bytes, reason) = line.split_once(" -> ").unwrap();
        let expected: &[tcphc::ParseError] = match reason {
            "trunc" => &[tcphc::ParseError::Truncated],
            "MH modes" => &[tcphc::ParseError::MostlyModes],
            "reserved" => &[tcphc::ParseError::Reserved],
            "nhc" => &[tcphc::ParseError::Unknown],
            "offset" => &[tcphc::ParseError::DataOffset],
            other => panic!("unknown reason {other}"),
        };
        assert_eq!(
            tcphc::lengths(&hex(bytes)).err().as_ref(),
            expected.first(),
            "{line}"
        );
        refused += 1;
    }
    assert_eq!(refused, 7);
}

/// Two ends, with the context identifier that the vectors have.
struct Pair {
    ends: [Tcphc<'static>; 2],
}

impl Pair {
    fn new(mode: Mode, cid: u8, off: &[Cure]) -> Self {
        let ends = [End::Mote, End::Router].map(|end| {
            let config = Config {
                mode,
                end,
                quiet: Duration::ZERO,
                ..Config::default()
            };
            let contexts = std::boxed::Box::leak(std::boxed::Box::new([Context::EMPTY; 2]));
            let mut rng = Rng::from_seed([1, 2]);
            let mut tcphc = Tcphc::new(contexts, config, Instant::ORIGIN, &mut rng);
            tcphc.next_cid = cid & CID_MASK;
            tcphc.without(off);
            tcphc
        });
        Self { ends }
    }

    /// Sends `segment` from `end`; returns the compressed header.
    fn pass(&mut self, end: usize, segment: &[u8], is_lost: bool, high: bool) -> Vec<u8> {
        // The vectors' router chose identifiers for a connection that the node opened.
        let sides = [(NODE, ROUTER), (ROUTER, NODE)];
        let flow = |end: usize| Flow {
            local: sides[end].0,
            remote: sides[end].1,
            within_mesh: false,
        };
        self.ends[end].config.end = if high { End::Router } else { End::Mote };
        let mut out = [0; tcphc::HEADER_LEN_MAX];
        let now = Instant::ORIGIN;
        let done = self.ends[end].compress(&flow(end), segment, Origin::Own, now, &mut out);
        let done = done.expect("compressed");
        let header = out[..done.compressed_len].to_vec();
        if !is_lost {
            let bytes = [&header[..], &segment[done.uncompressed_len..]].concat();
            let mut restored = [0; 60];
            let other = &mut self.ends[1 - end];
            let done = other.decompress(&flow(1 - end), &bytes, now, &mut restored);
            let done = done.expect("restored");
            assert_eq!(
                restored[..done.uncompressed_len],
                segment[..done.uncompressed_len]
            );
        }
        header
    }
}

fn segment(
    seq: u32,
    ack: u32,
    flags: Flags,
    window: u16,
    end: usize,
    ports: (u16, u16),
) -> tcp::Header {
    let (src_port, dst_port) = if end == 0 { ports } else { (ports.1, ports.0) };
    tcp::Header {
        src_port,
        dst_port,
        seq,
        ack,
        flags,
        window,
        ..tcp::Header::default()
    }
}

fn with(header: &tcp::Header, payload: &[u8], end: usize) -> Vec<u8> {
    let mut bytes = std::vec![0; header.header_len() + payload.len()];
    let len = header.emit(&mut bytes).unwrap();
    bytes[len..].copy_from_slice(payload);
    let (src, dst) = if end == 0 {
        (NODE, ROUTER)
    } else {
        (ROUTER, NODE)
    };
    tcp::fill_checksum(&src, &dst, &mut bytes);
    bytes
}

/// Replays a list of vectors: each goes from the end that its ports say.
fn replay(pair: &mut Pair, vectors: &[Vector], node_port: u16, exact: bool, high: bool) {
    for v in vectors {
        let src_port = u16::from_be_bytes([v.segment[0], v.segment[1]]);
        let end = usize::from(src_port != node_port);
        let header = pair.pass(end, &v.segment, v.is_lost, high);
        if exact {
            assert_eq!(header, v.header, "{}", v.title);
        }
    }
}

const ALL: &[Cure] = &[
    Cure::SharedTimestamp,
    Cure::Probes,
    Cure::SackMultiplies,
    Cure::Lifetime,
    Cure::Zero,
    Cure::NeverSent,
    Cure::Poisoning,
    Cure::LateRefresh,
    Cure::Recreated,
    Cure::Reboot,
    Cure::Fit,
    Cure::ShortAck,
    Cure::Joined,
    Cure::OldLife,
];

/// Full headers for the opening, resets, URG; whole fields for what is sent again.
#[test]
fn in_order_session() {
    let Some(vectors) = vectors() else { return };
    for exact in [true, false] {
        let off = if exact { ALL } else { &[] };
        let mut pair = Pair::new(Mode::InOrder, 5, off);
        replay(&mut pair, &vectors[..16], 0xf0b0, exact, false);
    }
}

/// Options: timestamps and SACK compressed, those of SYNs in full headers.
#[test]
fn session_with_timestamps() {
    let Some(vectors) = vectors() else { return };
    for exact in [true, false] {
        let off = if exact { ALL } else { &[] };
        let mut pair = Pair::new(Mode::Default, 0x81, off);
        let ports = (49155, 8883);
        let (isn, irs) = (0x5a5a_0000u32, 0x7fff_ff00u32);
        let mut handshake = [
            (
                0,
                segment(isn, 0, Flags::SYN, 2048, 0, ports),
                (1000, 0),
                Some(48),
            ),
            (
                1,
                segment(irs, isn + 1, Flags::SYN | Flags::ACK, 64240, 1, ports),
                (0xffff_ff00, 1000),
                Some(1440),
            ),
            (
                0,
                segment(isn + 1, irs + 1, Flags::ACK, 2048, 0, ports),
                (1003, 0xffff_ff00),
                None,
            ),
        ];
        for (end, header, timestamps, mss) in &mut handshake {
            header.options.timestamps = Some(*timestamps);
            header.options.mss = *mss;
            pair.pass(*end, &with(header, &[], *end), false, true);
        }
        replay(&mut pair, &vectors[16..20], 49155, exact, true);
        // Four segments, of which the first and the third are lost.
        for (at, lost) in [true, false, true, false].into_iter().enumerate() {
            let seq = isn + 1 + 64 * (2 + at as u32);
            let mut header = segment(seq, irs + 1, Flags::ACK, 2048, 0, ports);
            let value = if at == 0 { 1400 } else { 1405 };
            header.options.timestamps = Some((value, 0x90));
            pair.pass(0, &with(&header, &[0; 64], 0), lost, true);
        }
        replay(&mut pair, &vectors[20..21], 49155, exact, true);
    }
}

#[test]
fn the_same_segment_in_three_modes() {
    let Some(vectors) = vectors() else { return };
    let modes = [Mode::InOrder, Mode::Default, Mode::Strict];
    for (mode, v) in modes.into_iter().zip(&vectors[21..]) {
        for exact in [true, false] {
            let off = if exact { ALL } else { &[] };
            let mut pair = Pair::new(mode, 7, off);
            let ports = (0xf0b0, 0x50);
            let (isn, irs) = (0x0102_0304u32, 0x0a0b_0c0du32);
            let data = Flags::ACK | Flags::PSH;
            let steps: [(usize, tcp::Header, &[u8]); 5] = [
                (0, segment(isn, 0, Flags::SYN, 2048, 0, ports), &[]),
                (
                    1,
                    segment(irs, isn + 1, Flags::SYN | Flags::ACK, 4096, 1, ports),
                    &[],
                ),
                (
                    0,
                    segment(isn + 1, irs + 1, Flags::ACK, 2048, 0, ports),
                    &[],
                ),
                (0, segment(isn + 1, irs + 1, data, 2048, 0, ports), b"abcd"),
                (
                    1,
                    segment(irs + 1, isn + 5, Flags::ACK, 4096, 1, ports),
                    &[],
                ),
            ];
            for (end, header, payload) in steps {
                pair.pass(end, &with(&header, payload, end), false, false);
            }
            assert_eq!(v.segment.len(), HEADER_LEN + 4);
            replay(&mut pair, core::slice::from_ref(v), 0xf0b0, exact, false);
        }
    }
}

/// The one line of the proposal that shows the draft's rule failing: an ACK is lost that moved
/// the acknowledgment number up and the window down by the same amount.
#[test]
fn the_draft_misreads_after_one_loss_and_no_other_mode_does() {
    for mode in [Mode::Draft, Mode::Default, Mode::InOrder, Mode::Strict] {
        let mut pair = Pair::new(mode, 5, &[]);
        let ports = (0xf0b0, 0x50);
        let (s, r) = (0x1000_ffc1u32, 0x2000_ff01u32);
        let ack = |ack, window| with(&segment(s, ack, Flags::ACK, window, 0, ports), &[], 0);
        let data = with(&segment(r, s, Flags::ACK, 1024, 1, ports), &[7; 48], 1);
        let syn = with(&segment(s - 1, 0, Flags::SYN, 1000, 0, ports), &[], 0);
        let syn_ack = segment(r - 1, s, Flags::SYN | Flags::ACK, 1024, 1, ports);
        pair.pass(0, &syn, false, false);
        pair.pass(1, &with(&syn_ack, &[], 1), false, false);
        pair.pass(0, &ack(r, 1000), false, false);
        pair.pass(0, &ack(r, 1000), false, false);
        pair.pass(1, &data, false, false);
        pair.pass(0, &ack(r + 48, 952), true, false);
        let last = ack(r + 48, 952);
        let header = pair.pass(0, &last, true, false);
        let flow = Flow {
            local: ROUTER,
            remote: NODE,
            within_mesh: false,
        };
        let mut out = [0; 60];
        let read = pair.ends[1].decompress(&flow, &header, Instant::ORIGIN, &mut out);
        let misread = read.is_ok() && out[..HEADER_LEN] != last[..];
        assert_eq!(misread, mode == Mode::Draft, "{mode:?}");
    }
}
