//! H4: packets in a stream of bytes, each after a byte that gives its type.
//!
//! H4 cannot resynchronise. After a lost or an extra byte, any byte of a packet may be read as a
//! type. This is noticed at the first byte that is no valid type.
//!
//! Source: Bluetooth Core 5.4 Vol 4 Part A.

use crate::Error;

/// H4's packet indicators (Bluetooth Core, vol. 4, part A, §2).
pub(crate) const COMMAND: u8 = 1;
pub(crate) const DATA: u8 = 2;
const SYNCHRONOUS: u8 = 3;
pub(crate) const EVENT: u8 = 4;
const ISOCHRONOUS: u8 = 5;

/// Cuts a stream to packets.
#[derive(Debug, Default)]
pub(crate) struct Cutter {
    bytes: Vec<u8>,
    /// Bytes of it that have been handed out.
    taken: usize,
}

impl Cutter {
    /// Takes bytes that came over the line.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.taken);
        self.taken = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole packet: its kind, and the bytes behind that.
    ///
    /// # Errors
    /// The bytes are not the beginning of a packet, or its length is impossible.
    pub(crate) fn next(&mut self) -> Result<Option<(u8, &[u8])>, Error> {
        let rest = self.bytes.get(self.taken..).unwrap_or_default();
        let Some((kind, rest)) = rest.split_first() else {
            return Ok(None);
        };
        let len = match (*kind, rest) {
            (EVENT, [_, len, ..]) => 2 + usize::from(*len),
            (SYNCHRONOUS, [_, _, len, ..]) => 3 + usize::from(*len),
            (DATA, [_, _, low, high, ..]) => 4 + usize::from(u16::from_le_bytes([*low, *high])),
            // The two upper bits are reserved.
            (ISOCHRONOUS, [_, _, low, high, ..]) => {
                4 + usize::from(u16::from_le_bytes([*low, *high & 0x3f]))
            }
            (EVENT | SYNCHRONOUS | DATA | ISOCHRONOUS, _) => return Ok(None),
            (other, _) => return Err(Error::OutOfStep(other)),
        };
        if len > PACKET_LEN_MAX {
            return Err(Error::TooLong(len));
        }
        let Some(packet) = rest.get(..len) else {
            return Ok(None);
        };
        self.taken += 1 + len;
        Ok(Some((*kind, packet)))
    }
}

/// Longer than any packet that a controller of Bluetooth LE gives its host, whose data are at most
/// 251 bytes of an isochronous or other packet on the air; some put several together.
const PACKET_LEN_MAX: usize = 4_096;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(cutter: &mut Cutter) -> Vec<(u8, Vec<u8>)> {
        std::iter::from_fn(|| {
            let packet = cutter.next().unwrap();
            packet.map(|(kind, packet)| (kind, packet.to_vec()))
        })
        .collect()
    }

    #[test]
    fn packets_come_out_however_the_stream_is_cut() {
        let stream = [
            &[4, 0x0e, 4, 1, 3, 0x0c, 0][..],
            &[2, 0x40, 0x20, 3, 0, 7, 8, 9],
            &[5, 1, 0, 1, 0, 9],
            &[4, 0x13, 0],
        ];
        let expected: Vec<(u8, Vec<u8>)> = stream.iter().map(|p| (p[0], p[1..].to_vec())).collect();
        let bytes = stream.concat();
        for cut in 1..bytes.len() {
            let mut cutter = Cutter::default();
            let mut found = Vec::new();
            for piece in bytes.chunks(cut) {
                cutter.push(piece);
                found.extend(all(&mut cutter));
            }
            assert_eq!(found, expected, "in pieces of {cut}");
        }
    }

    #[test]
    fn a_stream_out_of_step_is_noticed() {
        for byte in [0, COMMAND, 6, 0xff] {
            let mut cutter = Cutter::default();
            cutter.push(&[4, 0x13, 0, byte]);
            assert!(cutter.next().unwrap().is_some());
            assert!(matches!(cutter.next(), Err(Error::OutOfStep(found)) if found == byte));
        }
        let mut cutter = Cutter::default();
        cutter.push(&[2, 0, 0, 0xff, 0xff]);
        assert!(matches!(cutter.next(), Err(Error::TooLong(65_539))));
    }

    proptest! {
        #[test]
        fn nothing_in_a_stream_is_held_for_ever(bytes in prop::collection::vec(any::<u8>(), 0..9_000)) {
            let mut cutter = Cutter::default();
            for piece in bytes.chunks(64) {
                cutter.push(piece);
                while let Ok(Some(_)) = cutter.next() {}
                if cutter.next().is_err() {
                    return Ok(());
                }
                prop_assert!(cutter.bytes.len() - cutter.taken <= PACKET_LEN_MAX + 64);
            }
        }
    }
}
