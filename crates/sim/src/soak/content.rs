//! The content of sessions: noise that tells from where in which session each byte is.

/// Bytes at the front that say which session sends.
pub(crate) const NAME_LEN: usize = 4;

/// The endless content of one session: its number, then noise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Content {
    key: u64,
    name: u32,
}

impl Content {
    /// The content of session `name` in the run with this seed.
    pub(crate) fn new(seed: u64, name: u32) -> Self {
        Self {
            key: mix(seed ^ mix(u64::from(name) + 1)),
            name,
        }
    }

    /// Writes what stands at `place` and behind it.
    pub(crate) fn fill(&self, place: u64, out: &mut [u8]) {
        for (byte, at) in out.iter_mut().zip(place..) {
            *byte = self.byte(at);
        }
    }

    /// The first place from `place` on where `bytes` differ from the content.
    pub(crate) fn differs(&self, place: u64, bytes: &[u8]) -> Option<u64> {
        bytes
            .iter()
            .zip(place..)
            .find(|(byte, at)| **byte != self.byte(*at))
            .map(|(_, at)| at)
    }

    fn byte(&self, at: u64) -> u8 {
        match self.name.to_be_bytes().get(at as usize) {
            Some(byte) => *byte,
            None => mix(self.key ^ (at >> 3)).to_le_bytes()[at as usize & 7],
        }
    }
}

/// The finaliser of `SplitMix64` (Steele, Lea, Flood, 2014): every bit of the input changes half
/// of the output. Far faster than the stack's SipHash, and nobody is to be kept from guessing.
const fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_names_its_session_and_no_byte_may_be_elsewhere() {
        let content = Content::new(7, 0x0102_0304);
        let mut all = [0; 300];
        content.fill(0, &mut all);
        assert_eq!(all[..NAME_LEN], [1, 2, 3, 4]);
        assert_eq!(content.differs(0, &all), None);
        assert_eq!(content.differs(100, &all[100..]), None);
        // One byte too many, one too few, another session, another run.
        assert!(content.differs(100, &all[101..]).is_some());
        assert!(content.differs(101, &all[100..200]).is_some());
        assert!(Content::new(7, 5).differs(4, &all[4..]).is_some());
        assert!(Content::new(8, 0x0102_0304).differs(4, &all[4..]).is_some());
    }
}
