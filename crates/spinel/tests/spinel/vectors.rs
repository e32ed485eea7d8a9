//! Frames as other implementations write them, so that the framing is not judged by itself alone.

use motet_spinel::frame::Frame;
use motet_spinel::hdlc::{self, Decoder};

/// A name; a frame of Spinel; the same on the line by pyspinel 1.0.3, which escapes only flags and
/// escapes, and by aiospinel 1.2.0, which escapes five bytes. Both read what the other wrote.
const VECTORS: [(&str, &str, &str, &str); 12] = [
    ("reset", "800102", "7e800102eaf07e", "7e800102eaf07e"),
    ("get caps", "840205", "7e8402055ccd7e", "7e8402055ccd7e"),
    (
        "get the version of the API",
        "8602b001",
        "7e8602b00175047e",
        "7e8602b00175047e",
    ),
    (
        "set the extended address",
        "8803347e7d1113f800ff01",
        "7e8803347d5e7d5d1113f800ff019e767e",
        "7e8803347d5e7d5d7d317d337dd800ff019e767e",
    ),
    (
        "enable source match",
        "8903832601",
        "7e890383260169b47e",
        "7e890383260169b47e",
    ),
    (
        "insert a short address",
        "8a048426117e",
        "7e8a048426117d5ee36a7e",
        "7e8a0484267d317d5ee36a7e",
    ),
    (
        "remove an extended address",
        "8b0585261011121314151617",
        "7e8b0585261011121314151617a71f7e",
        "7e8b058526107d31127d3314151617a71f7e",
    ),
    (
        "send a frame",
        "8c03711000618807cdab0200010068656c6c6f00000f04000100000100000000000000000f",
        "7e8c03711000618807cdab0200010068656c6c6f00000f04000100000100000000000000000fc0c37e",
        "7e8c03711000618807cdab0200010068656c6c6f00000f04000100000100000000000000000fc0c37e",
    ),
    (
        "receive a frame",
        "8006711000618807cdab0200010068656c6c6ffef5ec8010000a000fc89d3721440000000001000005000000000000",
        "7e8006711000618807cdab0200010068656c6c6ffef5ec8010000a000fc89d3721440000000001000005000000000000956e7e",
        "7e8006711000618807cdab0200010068656c6c6ffef5ec8010000a000fc89d3721440000000001000005000000000000956e7e",
    ),
    (
        "a restart",
        "80060070",
        "7e80060070ee747e",
        "7e80060070ee747e",
    ),
    (
        "the clock",
        "8d068210fffff87e7d131100",
        "7e8d068210fffff87d5e7d5d131100c46a7e",
        "7e8d068210ffff7dd87d5e7d5d7d337d3100c46a7e",
    ),
    (
        "channels",
        "8906220b0c0d0e0f101112131415161718191a",
        "7e8906220b0c0d0e0f101112131415161718191a6fe17e",
        "7e8906220b0c0d0e0f107d31127d331415161718191a6fe17e",
    ),
];

fn bytes(hex: &str) -> Vec<u8> {
    let digits = |n| u8::from_str_radix(&hex[n..n + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(digits).collect()
}

#[test]
fn frames_are_read_and_written_as_others_do() {
    for (name, frame, pyspinel, aiospinel) in VECTORS {
        let frame = bytes(frame);
        for line in [bytes(pyspinel), bytes(aiospinel)] {
            let mut decoder = Decoder::default();
            assert_eq!(decoder.next(&mut &line[..]), Some(&frame[..]), "{name}");
        }
        let mut line = Vec::new();
        hdlc::encode(&frame, &mut line);
        assert_eq!(line, bytes(aiospinel), "{name}");
        let parsed = Frame::parse(&frame).unwrap();
        assert_eq!(parsed.emit(), frame, "{name}");
    }
}
