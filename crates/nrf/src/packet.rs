//! Memory that the radio reads and writes by itself.

use core::sync::atomic::{AtomicU8, Ordering};

/// A length and a PSDU, as the radio has them in memory.
///
/// The bytes are atomics because the radio changes them behind the compiler's back.
#[derive(Debug)]
pub struct Packet {
    bytes: [AtomicU8; PACKET_LEN],
}

/// All packets of one driver.
#[derive(Debug)]
pub struct Frames {
    pub(crate) receive: [Packet; RECEIVE_COUNT],
    /// One is on the air while the other is loaded.
    pub(crate) transmit: [Packet; 2],
    pub(crate) answer: Packet,
}

impl Frames {
    /// Empty ones, for a static.
    #[expect(
        clippy::new_without_default,
        reason = "it is for a static, which needs a constant"
    )]
    pub const fn new() -> Self {
        Self {
            receive: [const { Packet::new() }; RECEIVE_COUNT],
            transmit: [const { Packet::new() }; 2],
            answer: Packet::new(),
        }
    }
}

impl Packet {
    const fn new() -> Self {
        Self {
            bytes: [const { AtomicU8::new(0) }; PACKET_LEN],
        }
    }

    /// The packet's address, for the radio.
    pub fn address(&self) -> u32 {
        self.bytes.as_ptr().addr() as u32
    }

    /// Writes a byte as the radio does; the length has number 0.
    pub fn set(&self, index: usize, value: u8) {
        if let Some(byte) = self.bytes.get(index) {
            byte.store(value, Ordering::Relaxed);
        }
    }

    /// Reads a byte as the radio does.
    pub fn get(&self, index: usize) -> u8 {
        let byte = self.bytes.get(index);
        byte.map_or(0, |byte| byte.load(Ordering::Relaxed))
    }

    /// The length that stands in front: of the PSDU, FCS included; 0 to 255 where it was received.
    pub fn len(&self) -> usize {
        self.get(0).into()
    }

    /// Whether the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies a frame in; the radio appends the FCS. Of what is longer than a frame it takes none.
    pub(crate) fn load(&self, mpdu: &[u8]) {
        let mpdu = match mpdu.len() {
            ..=MPDU_LEN_MAX => mpdu,
            _ => &[],
        };
        for (byte, value) in self.bytes.iter().skip(1).zip(mpdu) {
            byte.store(*value, Ordering::Relaxed);
        }
        self.set(0, (mpdu.len() + FCS_LEN) as u8);
    }

    /// Copies the first bytes of the PSDU out; returns those.
    pub(crate) fn copy<'a>(&self, to: &'a mut [u8], len: usize) -> &'a [u8] {
        let to = to.get_mut(..len).unwrap_or_default();
        for (to, byte) in to.iter_mut().zip(self.bytes.iter().skip(1)) {
            *to = byte.load(Ordering::Relaxed);
        }
        to
    }
}

/// Frames that wait for the node: what three neighbours send while a task computes for 10 ms.
pub(crate) const RECEIVE_COUNT: usize = 4;

/// The FCS, which the radio makes and checks.
pub(crate) const FCS_LEN: usize = 2;

/// A PSDU at the longest (IEEE 802.15.4-2006 table 22), without its FCS.
const MPDU_LEN_MAX: usize = 127 - FCS_LEN;

/// A length and a PSDU, in whole words.
const PACKET_LEN: usize = 128;
