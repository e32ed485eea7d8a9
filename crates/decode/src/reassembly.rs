//! 6LoWPAN fragments put together again (RFC 4944 §5.3), each hop by itself.
//!
//! Place: under `lowpan`; gets fragments with the first one already decompressed.
//! Left out: the stack's own reassembly, which is sized for motes and forgets early; a capture
//! is explained with as much memory as it takes, within [`DATAGRAMS_MAX`].

use std::collections::HashMap;

use motet::lowpan::TcpForm;
use motet::wire::LinkAddr;

use super::ranges::Ranges;

/// The fields in which all fragments of one datagram agree (RFC 4944 §5.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Key {
    /// The sender's address on the link.
    pub(super) src: LinkAddr,
    /// The receiver's address on the link.
    pub(super) dst: LinkAddr,
    /// `datagram_tag`.
    pub(super) tag: u16,
    /// `datagram_size`.
    pub(super) size: u16,
}

/// A fragment's contribution to the uncompressed packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    /// Where the piece belongs, in bytes from the start of the packet.
    pub(super) offset: usize,
    /// The bytes of the piece.
    pub(super) bytes: &'a [u8],
    /// Whether the header in it leaves the UDP checksum to the receiver.
    pub(super) udp_checksum_elided: bool,
    /// The form that a TCP header in the piece has.
    pub(super) tcp: TcpForm,
    /// The number of the frame that the piece came in.
    pub(super) frame: u64,
    /// When the frame was captured, nanoseconds.
    pub(super) at_ns: u64,
}

/// The outcome of a fragment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// Other fragments are missing.
    Incomplete {
        /// Bytes of the packet seen so far.
        have: usize,
    },
    /// The fragment's bytes are here already.
    Copy,
    /// The fragment completed the datagram.
    Complete {
        /// The IPv6 packet.
        packet: Vec<u8>,
        /// The numbers of the frames that it came in.
        frames: Vec<u64>,
        /// Whether the UDP checksum is still to be computed.
        udp_checksum_elided: bool,
        /// The form of its TCP header, if it has one.
        tcp: TcpForm,
    },
    /// The fragment reaches beyond the datagram's size.
    BeyondEnd,
}

/// Datagrams under reassembly, and those done lately.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    datagrams: HashMap<Key, Datagram>,
    /// Datagrams given up with bytes missing.
    pub(super) abandoned: u64,
}

#[derive(Debug)]
struct Datagram {
    bytes: Vec<u8>,
    seen: Ranges,
    frames: Vec<u64>,
    udp_checksum_elided: bool,
    tcp: TcpForm,
    last_ns: u64,
}

impl Datagram {
    fn new(size: u16) -> Self {
        Self {
            bytes: vec![0; usize::from(size)],
            seen: Ranges::default(),
            frames: Vec::new(),
            udp_checksum_elided: false,
            tcp: TcpForm::Plain,
            last_ns: 0,
        }
    }

    fn is_complete(&self) -> bool {
        self.seen.len() == self.bytes.len() as u64
    }

    /// Whether bytes seen before differ from those of `piece` at `start..end`.
    fn contradicts(&self, start: i64, end: i64, piece: &[u8]) -> bool {
        self.seen.iter().any(|(left, right)| {
            (left.max(start)..right.min(end)).any(|at| {
                let here = usize::try_from(at).ok().and_then(|at| self.bytes.get(at));
                let there = usize::try_from(at - start)
                    .ok()
                    .and_then(|at| piece.get(at));
                here != there
            })
        })
    }
}

impl Reassembly {
    /// Adds a fragment.
    pub(super) fn add(&mut self, key: Key, piece: Piece<'_>) -> Outcome {
        let end = piece.offset + piece.bytes.len();
        if end > usize::from(key.size) {
            return Outcome::BeyondEnd;
        }
        self.make_room(key, piece.at_ns);
        let datagram = self
            .datagrams
            .entry(key)
            .or_insert_with(|| Datagram::new(key.size));
        let (start, stop) = (piece.offset as i64, end as i64);
        if datagram.contradicts(start, stop, piece.bytes) {
            // The tag is in use again: the old datagram will not be completed any more
            // (RFC 4944 §5.3: discard what overlaps, start with the new fragment).
            self.abandoned += u64::from(!datagram.is_complete());
            *datagram = Datagram::new(key.size);
        }
        datagram.last_ns = piece.at_ns;
        if datagram.seen.insert(start, stop) == 0 {
            return Outcome::Copy;
        }
        if let Some(room) = datagram.bytes.get_mut(piece.offset..end) {
            room.copy_from_slice(piece.bytes);
        }
        datagram.frames.push(piece.frame);
        datagram.udp_checksum_elided |= piece.udp_checksum_elided;
        if piece.offset == 0 {
            datagram.tcp = piece.tcp;
        }
        if datagram.is_complete() {
            Outcome::Complete {
                packet: datagram.bytes.clone(),
                frames: datagram.frames.clone(),
                udp_checksum_elided: datagram.udp_checksum_elided,
                tcp: datagram.tcp,
            }
        } else {
            Outcome::Incomplete {
                have: usize::try_from(datagram.seen.len()).unwrap_or(usize::MAX),
            }
        }
    }

    /// Datagrams that are not complete now.
    pub(super) fn pending(&self) -> u64 {
        self.datagrams
            .values()
            .filter(|datagram| !datagram.is_complete())
            .count() as u64
    }

    /// Forgets the datagram of `key` if it is too old, and the oldest of all if they are many.
    fn make_room(&mut self, key: Key, now_ns: u64) {
        let too_old = self
            .datagrams
            .get(&key)
            .is_some_and(|old| now_ns.saturating_sub(old.last_ns) > TIMEOUT_NS);
        let victim = if too_old {
            Some(key)
        } else if self.datagrams.len() >= DATAGRAMS_MAX && !self.datagrams.contains_key(&key) {
            self.datagrams
                .iter()
                .min_by_key(|(_, old)| old.last_ns)
                .map(|(key, _)| *key)
        } else {
            None
        };
        let dropped = victim.and_then(|victim| self.datagrams.remove(&victim));
        self.abandoned += u64::from(dropped.is_some_and(|old| !old.is_complete()));
    }
}

/// A datagram whose last fragment is older than this is another one (RFC 4944 §5.3: at most
/// 60 s), by the clock of the capture.
const TIMEOUT_NS: u64 = 60_000_000_000;
/// Datagrams remembered at once; at 2,047 bytes each, 4 MiB.
const DATAGRAMS_MAX: usize = 2_048;

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: Key = Key {
        src: LinkAddr::Short(1),
        dst: LinkAddr::Short(2),
        tag: 7,
        size: 20,
    };

    fn piece(offset: usize, bytes: &[u8], frame: u64) -> Piece<'_> {
        Piece {
            offset,
            bytes,
            udp_checksum_elided: false,
            tcp: TcpForm::Plain,
            frame,
            at_ns: frame * 1_000_000,
        }
    }

    #[test]
    fn completes_in_any_order() {
        let whole: Vec<u8> = (0..20).collect();
        let mut table = Reassembly::default();
        assert_eq!(
            table.add(KEY, piece(16, &whole[16..], 1)),
            Outcome::Incomplete { have: 4 }
        );
        assert_eq!(
            table.add(KEY, piece(0, &whole[..8], 2)),
            Outcome::Incomplete { have: 12 }
        );
        assert_eq!(table.add(KEY, piece(0, &whole[..8], 3)), Outcome::Copy);
        assert_eq!(table.pending(), 1);
        let Outcome::Complete { packet, frames, .. } = table.add(KEY, piece(8, &whole[8..16], 4))
        else {
            panic!("complete")
        };
        assert_eq!((packet, frames), (whole, vec![1, 2, 4]));
        assert_eq!((table.pending(), table.abandoned), (0, 0));
    }

    #[test]
    fn a_tag_used_again_starts_anew() {
        let mut table = Reassembly::default();
        table.add(KEY, piece(0, &[1; 8], 1));
        assert_eq!(
            table.add(KEY, piece(0, &[2; 16], 2)),
            Outcome::Incomplete { have: 16 }
        );
        assert_eq!(table.abandoned, 1);
        let Outcome::Complete { packet, .. } = table.add(KEY, piece(16, &[3; 4], 3)) else {
            panic!()
        };
        assert_eq!(packet[..8], [2; 8]);
        // Once a datagram is complete, the next one with its tag abandons nothing.
        table.add(KEY, piece(0, &[4; 8], 4));
        assert_eq!(table.abandoned, 1);
    }

    #[test]
    fn fragments_a_minute_apart_are_not_of_one_datagram() {
        let mut table = Reassembly::default();
        table.add(KEY, piece(0, &[1; 8], 1));
        let late = Piece {
            at_ns: 62_000_000_000,
            ..piece(8, &[1; 12], 2)
        };
        assert_eq!(table.add(KEY, late), Outcome::Incomplete { have: 12 });
        assert_eq!(table.abandoned, 1);
    }

    #[test]
    fn beyond_the_end_is_refused() {
        let mut table = Reassembly::default();
        assert_eq!(table.add(KEY, piece(16, &[0; 5], 1)), Outcome::BeyondEnd);
        assert_eq!(table.pending(), 0);
    }

    #[test]
    fn memory_is_bounded() {
        let mut table = Reassembly::default();
        for tag in 0..10_000 {
            table.add(Key { tag, ..KEY }, piece(0, &[0; 8], u64::from(tag)));
        }
        assert_eq!(table.pending() as usize, DATAGRAMS_MAX);
        assert_eq!(table.abandoned as usize, 10_000 - DATAGRAMS_MAX);
    }
}
