//! The air at one node, in one word: a frame touches that of hundreds of nodes which can do
//! nothing with it.

use crate::air::power::Power;

/// Everything on a node's channel that reaches it, its channel, and whether each change there
/// has to be accounted for.
///
/// Bit 63: attentive; 56 to 62: channel; below: attowatts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Field(u64);

/// What the upper bits of a field have to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Tuned(u64);

impl Field {
    /// Silence on a channel.
    pub(super) fn new(channel: u8) -> Self {
        Self(Tuned::to(channel).0 << POWER_BITS)
    }

    pub(super) fn channel(self) -> u8 {
        // Lossless: seven bits are left.
        (self.0 << 1 >> (POWER_BITS + 1)) as u8
    }

    /// Whether nothing has to be done there but to add what comes on this channel.
    pub(super) fn only_adds(self, tuned: Tuned) -> bool {
        self.0 >> POWER_BITS == tuned.0
    }

    /// Whether it is on this channel, attentive or not.
    pub(super) fn is_on(self, tuned: Tuned) -> bool {
        (self.0 & !ATTENTIVE) >> POWER_BITS == tuned.0
    }

    pub(super) fn is_attentive(self) -> bool {
        self.0 & ATTENTIVE != 0
    }

    pub(super) fn set_attentive(&mut self, is_attentive: bool) {
        self.0 = self.0 & !ATTENTIVE | if is_attentive { ATTENTIVE } else { 0 };
    }

    pub(super) fn incident(self) -> Power {
        Power::from_attowatts(self.0 & POWER)
    }

    /// A signal begins; it is at most [`SIGNAL_MAX`], of which a thousand leave the channel alone.
    pub(super) fn add(&mut self, signal: Power) {
        self.0 = self.0.wrapping_add(signal.attowatts());
    }

    /// A signal that had begun ends.
    pub(super) fn take(&mut self, signal: Power) {
        debug_assert!(self.incident() >= signal, "more left the air than had come");
        self.0 = self.0.wrapping_sub(signal.attowatts());
    }
}

impl Tuned {
    pub(super) fn to(channel: u8) -> Self {
        Self(u64::from(channel & CHANNEL))
    }
}

/// What a receiver takes of any one signal, -11.5 dBm: a thousand such would be sensed by all.
pub(super) const SIGNAL_MAX: Power = Power::from_attowatts((1 << (POWER_BITS - 10)) - 1);

const POWER_BITS: u32 = 56;
const POWER: u64 = (1 << POWER_BITS) - 1;
const ATTENTIVE: u64 = 1 << 63;
const CHANNEL: u8 = 0x7f;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_channel_and_attention_do_not_touch_each_other() {
        let mut field = Field::new(26);
        for _ in 0..1024 {
            field.add(SIGNAL_MAX);
        }
        field.set_attentive(true);
        assert_eq!(field.channel(), 26);
        assert!(field.is_attentive() && field.is_on(Tuned::to(26)));
        assert!(!field.only_adds(Tuned::to(26)) && !field.is_on(Tuned::to(11)));
        assert_eq!(field.incident().attowatts(), 1024 * SIGNAL_MAX.attowatts());
        for _ in 0..1024 {
            field.take(SIGNAL_MAX);
        }
        field.set_attentive(false);
        assert!(field.only_adds(Tuned::to(26)) && field == Field::new(26));
    }
}
