//! Captures that begin as pcap files do, and whose records have longer headers.
//!
//! Place: before `capture` reads the first record. Red Hat 6.1 and Nokia's IPSO wrote such files
//! with the usual number at their begin; only the records show it, as they fit one after the other
//! with no other length.

/// What kind of file it is, if not the usual one; `head`: what follows the first four bytes, as
/// far as it is here.
pub(super) fn kind(magic: [u8; 4], head: &[u8]) -> Option<&'static str> {
    let records = head.get(HEADER_LEN - magic.len()..)?;
    if records.is_empty() || fits(magic, records, USUAL_LEN) {
        return None;
    }
    if fits(magic, records, RED_HAT_LEN) {
        return Some("it is in a pcap format of Red Hat Linux 6.1; convert it with editcap");
    }
    fits(magic, records, NOKIA_LEN)
        .then_some("it is in a pcap format of Nokia's routers; convert it with editcap")
}

/// Whether records with headers of this length follow one another.
fn fits(magic: [u8; 4], mut records: &[u8], header_len: usize) -> bool {
    let is_little = matches!(magic, [0xd4 | 0x4d, ..]);
    for count in 0..ENOUGH {
        if records.is_empty() {
            return count > 0;
        }
        let word = |at: usize| {
            let bytes: [u8; 4] = records.get(at..at + 4)?.try_into().ok()?;
            Some(match is_little {
                true => u32::from_le_bytes(bytes),
                false => u32::from_be_bytes(bytes),
            })
        };
        let (Some(fraction), Some(len), Some(original_len)) = (word(4), word(8), word(12)) else {
            return count >= ENOUGH / 2;
        };
        if fraction >= NS_PER_S || len > original_len || len > LEN_MAX {
            return false;
        }
        match records.get(header_len + len as usize..) {
            Some(rest) => records = rest,
            None => return count >= ENOUGH / 2,
        }
    }
    true
}

/// Of the file.
const HEADER_LEN: usize = 24;
/// Of a record: seconds, their fraction, captured and original length.
const USUAL_LEN: usize = 16;
/// With interface, protocol, and kind of packet.
const RED_HAT_LEN: usize = 24;
/// With four bytes of Nokia's.
const NOKIA_LEN: usize = 20;
const NS_PER_S: u32 = 1_000_000_000;
const LEN_MAX: u32 = 262_144;
/// Records that tell.
const ENOUGH: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header_len: usize, count: u32) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_LEN - 4];
        for number in 0..count {
            for word in [1_700_000_000 + number, 5, 60, 60] {
                bytes.extend(word.to_le_bytes());
            }
            bytes.resize(bytes.len() + header_len - USUAL_LEN, 3);
            bytes.resize(bytes.len() + 60, 0xaa);
        }
        bytes
    }

    #[test]
    fn the_length_of_record_headers_shows_by_what_fits() {
        let magic = [0xd4, 0xc3, 0xb2, 0xa1];
        for count in [0, 1, 2, 20] {
            assert_eq!(kind(magic, &file(USUAL_LEN, count)), None);
        }
        for count in [1, 2, 20] {
            assert!(
                kind(magic, &file(RED_HAT_LEN, count))
                    .unwrap()
                    .contains("Red Hat")
            );
            assert!(
                kind(magic, &file(NOKIA_LEN, count))
                    .unwrap()
                    .contains("Nokia")
            );
        }
        // A usual file that is cut, or whose records are broken, stays what it is.
        let mut broken = file(USUAL_LEN, 3);
        broken.truncate(broken.len() - 9);
        assert_eq!(kind(magic, &broken), None);
        broken[30] = 0xff;
        assert_eq!(kind(magic, &broken), None);
    }
}
