//! What a queue of a mesh link remembers of a packet beside its bytes.

use crate::link::arrival::Onward;
use crate::lowpan::TcpForm;
use crate::mac::Class;
use crate::tcphc;
use crate::time::Instant;

/// What a queue remembers of a packet beside its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::link) struct Mark {
    pub(in crate::link) class: Class,
    pub(in crate::link) onward: Onward,
    /// When it was queued: low bits, in units of [`TICK_SHIFT`].
    at: u32,
}

impl Mark {
    /// Of a packet that this node makes.
    pub(in crate::link) const fn own(class: Class) -> Self {
        // Its age does not matter: its header is compressed when it leaves the queue.
        Self::new(class, Onward::Begins(tcphc::Origin::Own), Instant::ORIGIN)
    }

    pub(in crate::link) const fn new(class: Class, onward: Onward, now: Instant) -> Self {
        let at = ticks(now);
        Self { class, onward, at }
    }

    /// When it was queued, if that was less than [`TICKS_MASK`] ticks before `now`.
    pub(in crate::link) const fn since(self, now: Instant) -> Instant {
        let age = ticks(now).wrapping_sub(self.at) & TICKS_MASK;
        Instant::from_micros(now.as_micros().saturating_sub((age as u64) << TICK_SHIFT))
    }

    /// As a queue keeps it.
    pub(in crate::link) const fn to_bits(self) -> u32 {
        let (kind, cid) = match self.onward {
            Onward::Begins(tcphc::Origin::Own) => (0, 0),
            Onward::Begins(tcphc::Origin::Outside) => (1, 0),
            Onward::As(TcpForm::Plain) => (2, 0),
            Onward::As(TcpForm::Full { cid }) => (3, cid),
            Onward::As(TcpForm::Compressed) => (4, 0),
        };
        let control = matches!(self.class, Class::Control) as u8;
        self.at << TICKS_AT | u32::from_be_bytes([0, 0, control << 3 | kind, cid])
    }

    /// The reverse of [`Self::to_bits`].
    pub(in crate::link) const fn from_bits(bits: u32) -> Self {
        let [_, _, kind, cid] = bits.to_be_bytes();
        Self {
            at: bits >> TICKS_AT,
            class: if kind & 8 == 0 {
                Class::Own
            } else {
                Class::Control
            },
            onward: match kind & 7 {
                0 => Onward::Begins(tcphc::Origin::Own),
                1 => Onward::Begins(tcphc::Origin::Outside),
                2 => Onward::As(TcpForm::Plain),
                3 => Onward::As(TcpForm::Full { cid }),
                _ => Onward::As(TcpForm::Compressed),
            },
        }
    }
}

const fn ticks(at: Instant) -> u32 {
    (at.as_micros() >> TICK_SHIFT) as u32 & TICKS_MASK
}

/// 2^14 µs: twenty bits come round after 4.8 hours.
const TICK_SHIFT: u32 = 14;
const TICKS_MASK: u32 = (1 << 20) - 1;
/// Above class, kind and context.
const TICKS_AT: u32 = 12;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    #[test]
    fn marks_come_back() {
        let forms = [
            Onward::Begins(tcphc::Origin::Own),
            Onward::Begins(tcphc::Origin::Outside),
            Onward::As(TcpForm::Plain),
            Onward::As(TcpForm::Full { cid: 0xff }),
            Onward::As(TcpForm::Compressed),
        ];
        for onward in forms {
            for class in [Class::Own, Class::Control] {
                let queued = Instant::from_micros(5_000_000_000_000);
                let mark = Mark::new(class, onward, queued);
                assert_eq!(Mark::from_bits(mark.to_bits()), mark);
                let age = Duration::from_secs(3_600);
                let found = (queued + age).since(mark.since(queued + age));
                let tick = Duration::from_millis(17);
                assert!(found + tick > age && found < age + tick, "{found:?}");
            }
        }
    }
}
