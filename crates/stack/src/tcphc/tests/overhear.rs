//! Someone who listens reads what the receiver reads.

use std::vec::Vec;

use super::table::{PORTS, at, connected, receive, segment, send};
use super::*;

/// Lets `ear` hear what `end` sent; returns the whole segment as it reads it.
fn hear(
    ear: &mut Overheard,
    end: usize,
    bytes: &[u8],
    now: Instant,
) -> Result<Vec<u8>, HeaderDrop> {
    let mut out = [0; 60];
    let flow = driver::flow(1 - end);
    let done = ear.restore(&flow, end == 0, bytes, now, &mut out)?;
    let payload = &bytes[done.compressed_len..];
    Ok([&out[..done.uncompressed_len], payload].concat())
}

#[test]
fn a_listener_reads_what_the_receivers_read() {
    let (mut ends, mut seq, ack) = connected();
    let mut ear = Overheard::new(PORTS.0, PORTS.1);
    assert_eq!(ear.ports(), PORTS);
    let mut compressed = 0;
    for step in 0..300 {
        let (now, end) = (at(1 + step as u64), step % 2);
        let len = if end == 0 { step * 7 % 40 } else { 0 };
        let sent = match end {
            0 => segment(0, PORTS, seq, ack, Flags::ACK, len),
            _ => segment(1, PORTS, ack, seq, Flags::ACK, 0),
        };
        seq = seq.wrapping_add(len as u32);
        let bytes = send(&mut ends[end], end, &sent, now).expect("there is a context");
        if step < 2 || bytes[0] == tcphc::FULL {
            ear.learn(end == 0, &sent, now);
        } else {
            compressed += 1;
            assert_eq!(hear(&mut ear, end, &bytes, now), Ok(sent.clone()));
        }
        // Some acknowledgments are lost behind the listener.
        if end == 0 || step % 7 != 0 {
            assert_eq!(receive(&mut ends[1 - end], 1 - end, &bytes, now), Ok(sent));
        }
    }
    assert!(compressed > 290, "{compressed}");
}

#[test]
fn who_comes_late_reads_nothing_wrong() {
    let (mut ends, seq, ack) = connected();
    let mut ear = Overheard::new(PORTS.0, PORTS.1);
    let data = segment(0, PORTS, seq, ack, Flags::ACK, 20);
    let bytes = send(&mut ends[0], 0, &data, at(2)).unwrap();
    assert_eq!(
        hear(&mut ear, 0, &bytes, at(2)),
        Err(HeaderDrop::NoReference)
    );
    let mut full = std::vec![tcphc::FULL, 0];
    full.extend_from_slice(&data);
    assert_eq!(hear(&mut ear, 0, &full, at(2)), Err(HeaderDrop::NoContext));
    // References of another connection: the checksum tells.
    ear.learn(true, &segment(0, PORTS, 77, 99, Flags::ACK, 3), at(2));
    ear.learn(false, &segment(1, PORTS, 99, 80, Flags::ACK, 0), at(2));
    assert_eq!(hear(&mut ear, 0, &bytes, at(2)), Err(HeaderDrop::Checksum));
}
