//! The content of a transfer, and the check of what arrived.
//!
//! Purpose: bytes that a sender reads off as it goes and a receiver holds against what it
//! reads, so that a transfer without an end needs no memory that grows.
//! Place: [`crate::apps`] sends and checks it.

use std::sync::Arc;

use motet::random::Rng;

/// The bytes of a transfer.
#[derive(Clone, Debug)]
pub struct Content {
    source: Source,
    len: u64,
}

#[derive(Clone, Debug)]
enum Source {
    Given(Arc<[u8]>),
    Made {
        seed: [u64; 2],
        /// The block made last, and its number.
        block: Box<[u8; BLOCK_LEN]>,
        number: u64,
    },
}

impl Content {
    /// `len` bytes in which nothing repeats, so that what is moved, lost or doubled shows;
    /// they follow from `seed` and are made as they are needed.
    pub fn made(seed: [u64; 2], len: u64) -> Self {
        let source = Source::Made {
            seed,
            block: Box::new(block(seed, 0)),
            number: 0,
        };
        Self { source, len }
    }

    /// Content without an end.
    pub fn endless(seed: [u64; 2]) -> Self {
        Self::made(seed, u64::MAX)
    }

    /// How many bytes there are.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the content has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Some of the bytes from place `at` on; none only at the end.
    pub fn piece(&mut self, at: u64) -> &[u8] {
        let rest = usize::try_from(self.len.saturating_sub(at)).unwrap_or(usize::MAX);
        let from_here = match &mut self.source {
            Source::Given(bytes) => usize::try_from(at).ok().and_then(|at| bytes.get(at..)),
            Source::Made {
                seed,
                block: made,
                number,
            } => {
                let wanted = at / BLOCK_LEN as u64;
                if wanted != *number {
                    **made = block(*seed, wanted);
                    *number = wanted;
                }
                made.get((at % BLOCK_LEN as u64) as usize..)
            }
        };
        let from_here = from_here.unwrap_or_default();
        &from_here[..rest.min(from_here.len())]
    }

    /// The first place at which `bytes`, which stand at `at`, differ from it; what is beyond
    /// the end differs.
    pub fn difference(&mut self, at: u64, bytes: &[u8]) -> Option<u64> {
        let mut place = at;
        let mut rest = bytes;
        while !rest.is_empty() {
            let piece = self.piece(place);
            let common = piece.len().min(rest.len());
            let equal = piece.iter().zip(rest).take_while(|(a, b)| a == b).count();
            if common == 0 || equal < common {
                return Some(place + equal as u64);
            }
            place += common as u64;
            rest = &rest[common..];
        }
        None
    }
}

impl From<Arc<[u8]>> for Content {
    fn from(bytes: Arc<[u8]>) -> Self {
        Self {
            len: bytes.len() as u64,
            source: Source::Given(bytes),
        }
    }
}

fn block([a, b]: [u64; 2], number: u64) -> [u8; BLOCK_LEN] {
    let mut rng = Rng::from_seed([a, b ^ number.rotate_left(32)]);
    let mut bytes = [0; BLOCK_LEN];
    for word in bytes.as_chunks_mut().0 {
        *word = rng.next_u64().to_le_bytes();
    }
    bytes
}

/// About a segment: what is made at a time.
const BLOCK_LEN: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;

    fn read(content: &mut Content, from: u64, len: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while bytes.len() < len {
            let piece = content.piece(from + bytes.len() as u64);
            if piece.is_empty() {
                break;
            }
            let take = piece.len().min(len - bytes.len());
            bytes.extend_from_slice(&piece[..take]);
        }
        bytes
    }

    #[test]
    fn any_place_has_its_bytes_whatever_was_read_before() {
        let mut content = Content::endless([3, 4]);
        let whole = read(&mut content, 0, 5_000);
        for (from, len) in [(4_000, 900), (0, 10), (511, 2), (1_024, 1_500)] {
            assert_eq!(read(&mut content, from, len), whole[from as usize..][..len]);
        }
        let far = u64::from(u32::MAX) * 4_096;
        assert_eq!(read(&mut content, far, 64).len(), 64);
        let blocks: Vec<&[u8]> = whole.chunks(64).collect();
        let different = blocks.iter().collect::<std::collections::BTreeSet<_>>();
        assert_eq!(different.len(), blocks.len(), "nothing repeats");
    }

    #[test]
    fn what_differs_is_found() {
        let given: Arc<[u8]> = read(&mut Content::made([1, 2], 1_300), 0, 9_999).into();
        assert_eq!(given.len(), 1_300);
        let contents = [
            Content::made([1, 2], 1_300),
            Content::from(Arc::clone(&given)),
        ];
        for mut content in contents {
            assert_eq!(content.difference(0, &given), None);
            assert_eq!(content.difference(600, &given[600..]), None);
            let mut wrong = given.to_vec();
            wrong[1_100] ^= 1;
            assert_eq!(content.difference(0, &wrong), Some(1_100));
            assert_eq!(content.difference(1_299, &[given[1_299], 0]), Some(1_300));
            assert!(content.piece(1_300).is_empty() && content.piece(u64::MAX).is_empty());
        }
    }
}
