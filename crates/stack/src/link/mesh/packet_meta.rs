//! The notes that a queue of a mesh link keeps on a packet beside its bytes.

use crate::link::arrival::TcpEgress;
use crate::lowpan::TcpForm;
use crate::mac::Class;
use crate::tcphc;
use crate::time::Instant;
use crate::wire::rpl_option::Rpi;

/// The notes that a queue keeps on a packet beside its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::link) struct PacketMeta {
    pub(in crate::link) class: Class,
    pub(in crate::link) egress: TcpEgress,
    pub(in crate::link) way: RplDirection,
    /// When the packet was queued: low bits, in units of [`TICK_SHIFT`].
    at: u32,
}

/// How a packet goes through the DODAG.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::link) enum RplDirection {
    /// The packet begins its way through the DODAG here, if it has one.
    Begins,
    /// The packet came with an RPL option; `rank_error`: the option says that the packet may be in
    /// a loop.
    Up {
        /// The R flag of the option (RFC 6550 §11.2).
        rank_error: bool,
    },
    /// The packet follows a source route: its destination is the next neighbour.
    Routed,
}

impl RplDirection {
    /// The way of a packet that goes on with this RPL option, or without one.
    pub(in crate::link) const fn with(option: Option<Rpi>) -> Self {
        match option {
            Some(option) => Self::Up {
                rank_error: option.is_looping(),
            },
            None => Self::Begins,
        }
    }
}

impl PacketMeta {
    /// The notes on a packet that this node makes itself.
    pub(in crate::link) const fn own(class: Class) -> Self {
        // Its age does not matter: its header is compressed when it leaves the queue.
        Self::new(
            class,
            TcpEgress::Begins(tcphc::Origin::Own),
            Instant::ORIGIN,
        )
    }

    pub(in crate::link) const fn new(class: Class, egress: TcpEgress, now: Instant) -> Self {
        let at = ticks(now);
        Self {
            class,
            egress,
            way: RplDirection::Begins,
            at,
        }
    }

    /// The same, of a packet that is on this way.
    pub(in crate::link) const fn on_way(self, way: RplDirection) -> Self {
        Self { way, ..self }
    }

    /// Whether both go the same way, whenever they were queued.
    #[cfg(feature = "entry")]
    pub(super) fn is_alike(self, other: Self) -> bool {
        let at = self.at;
        self == Self { at, ..other }
    }

    /// Whether packets of both go on alike.
    #[cfg(feature = "sleepy")]
    pub(super) fn goes_as(self, other: Self) -> bool {
        (self.egress, self.way) == (other.egress, other.way)
    }

    /// The same, of a packet that goes on in this form.
    #[cfg(feature = "sleepy")]
    pub(super) const fn going(self, egress: TcpEgress) -> Self {
        Self { egress, ..self }
    }

    /// The same, of a packet that is queued now.
    #[cfg(feature = "sleepy")]
    pub(in crate::link) const fn since_now(self, now: Instant) -> Self {
        Self {
            at: ticks(now),
            ..self
        }
    }

    /// When the packet was queued, if that was less than [`TICKS_MASK`] ticks before `now`.
    pub(in crate::link) const fn since(self, now: Instant) -> Instant {
        let age = ticks(now).wrapping_sub(self.at) & TICKS_MASK;
        Instant::from_micros(now.as_micros().saturating_sub((age as u64) << TICK_SHIFT))
    }

    /// The metadata in the form in which a queue keeps them.
    pub(in crate::link) const fn to_bits(self) -> u32 {
        let (kind, cid) = match self.egress {
            TcpEgress::Begins(tcphc::Origin::Own) => (0, 0),
            TcpEgress::Begins(tcphc::Origin::Outside) => (1, 0),
            TcpEgress::As(TcpForm::Plain) => (2, 0),
            TcpEgress::As(TcpForm::Full { cid }) => (3, cid),
            TcpEgress::As(TcpForm::Compressed) => (4, 0),
        };
        let control = matches!(self.class, Class::Control) as u8;
        let way = match self.way {
            RplDirection::Begins => 0,
            RplDirection::Up { rank_error: false } => 1,
            RplDirection::Up { rank_error: true } => 2,
            RplDirection::Routed => 3,
        };
        let kind = way << 4 | control << 3 | kind;
        self.at << TICKS_AT | u32::from_be_bytes([0, 0, kind, cid])
    }

    /// Undoes [`Self::to_bits`].
    pub(in crate::link) const fn from_bits(bits: u32) -> Self {
        let [_, _, kind, cid] = bits.to_be_bytes();
        Self {
            at: bits >> TICKS_AT,
            class: if kind & 8 == 0 {
                Class::Own
            } else {
                Class::Control
            },
            egress: match kind & 7 {
                0 => TcpEgress::Begins(tcphc::Origin::Own),
                1 => TcpEgress::Begins(tcphc::Origin::Outside),
                2 => TcpEgress::As(TcpForm::Plain),
                3 => TcpEgress::As(TcpForm::Full { cid }),
                _ => TcpEgress::As(TcpForm::Compressed),
            },
            way: match kind >> 4 & 3 {
                0 => RplDirection::Begins,
                3 => RplDirection::Routed,
                flag => RplDirection::Up {
                    rank_error: flag == 2,
                },
            },
        }
    }
}

const fn ticks(at: Instant) -> u32 {
    (at.as_micros() >> TICK_SHIFT) as u32 & TICKS_MASK
}

/// 2^14 µs: eighteen bits come round after 71 minutes.
const TICK_SHIFT: u32 = 14;
const TICKS_MASK: u32 = (1 << 18) - 1;
/// Above way, class, kind and context.
const TICKS_AT: u32 = 14;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Duration;

    #[test]
    fn marks_come_back() {
        let forms = [
            TcpEgress::Begins(tcphc::Origin::Own),
            TcpEgress::Begins(tcphc::Origin::Outside),
            TcpEgress::As(TcpForm::Plain),
            TcpEgress::As(TcpForm::Full { cid: 0xff }),
            TcpEgress::As(TcpForm::Compressed),
        ];
        for egress in forms {
            for class in [Class::Own, Class::Control] {
                let queued = Instant::from_micros(5_000_000_000_000);
                let meta = PacketMeta::new(class, egress, queued);
                let up = [false, true].map(|rank_error| RplDirection::Up { rank_error });
                for way in [RplDirection::Begins, RplDirection::Routed]
                    .into_iter()
                    .chain(up)
                {
                    let meta = meta.on_way(way);
                    assert_eq!(PacketMeta::from_bits(meta.to_bits()), meta);
                }
                let age = Duration::from_secs(3_600);
                let found = (queued + age).since(meta.since(queued + age));
                let tick = Duration::from_millis(17);
                assert!(found + tick > age && found < age + tick, "{found:?}");
            }
        }
    }
}
