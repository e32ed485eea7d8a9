//! Which channel a connection event is on: channel selection algorithm #2.
//!
//! Source: Bluetooth Core 5.4 Vol 6 Part B §4.5.8.3.

/// Data channels in use, one bit each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChannelMap(u64);

impl ChannelMap {
    /// All 37 data channels.
    pub const ALL: Self = Self((1 << DATA_CHANNELS) - 1);

    /// These channels; `None` where there are fewer than two.
    pub fn of(bits: u64) -> Option<Self> {
        let map = Self(bits & Self::ALL.0);
        (map.0.count_ones() >= 2).then_some(map)
    }

    /// The map as a packet holds it: the lowest channel is the lowest bit of the first byte.
    pub const fn to_bytes(self) -> [u8; 5] {
        let [a, b, c, d, e, ..] = self.0.to_le_bytes();
        [a, b, c, d, e]
    }

    /// The channel of event `counter` on the connection with this access address.
    pub fn channel(self, access_address: u32, counter: u16) -> u8 {
        let random = pseudo_random(identifier(access_address), counter);
        let unmapped = random % DATA_CHANNELS;
        if self.0 >> unmapped & 1 == 1 {
            return unmapped as u8;
        }
        let index = (u32::from(random) * self.0.count_ones()) >> 16;
        let mut used = (0..DATA_CHANNELS as u8).filter(|channel| self.0 >> channel & 1 == 1);
        used.nth(index as usize).unwrap_or_default()
    }
}

/// How many channels carry data.
pub const DATA_CHANNELS: u16 = 37;

/// The radio frequency of a channel, in steps of 2 MHz from 2,402 MHz: the advertising channels lie
/// at both ends and in between (Vol 6 Part B §1.4.1).
pub const fn frequency(channel: u8) -> u8 {
    match channel {
        37 => 0,
        38 => 12,
        39 => 39,
        0..=10 => channel + 1,
        _ => channel + 2,
    }
}

const fn identifier(access_address: u32) -> u16 {
    (access_address >> 16) as u16 ^ access_address as u16
}

fn pseudo_random(identifier: u16, counter: u16) -> u16 {
    let mixed = (0..3).fold(counter ^ identifier, |value: u16, _| {
        let [high, low] = value.to_be_bytes();
        let permuted = u16::from_be_bytes([high.reverse_bits(), low.reverse_bits()]);
        permuted.wrapping_mul(17).wrapping_add(identifier)
    });
    mixed ^ identifier
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vol 6 Part C §3.
    const SAMPLE: u32 = 0x8e89_bed6;

    #[test]
    fn channels_are_those_of_the_sample_data() {
        assert_eq!(identifier(SAMPLE), 0x305f);
        for (counter, random, channel) in
            [(0, 56857, 25), (1, 1685, 20), (2, 38301, 6), (3, 27475, 21)]
        {
            assert_eq!(pseudo_random(0x305f, counter), random);
            assert_eq!(ChannelMap::ALL.channel(SAMPLE, counter), channel);
        }
    }

    #[test]
    fn unused_channels_are_mapped_as_in_the_sample_data() {
        let map = ChannelMap::of(0x1e_00e0_0600).unwrap();
        for (counter, random, channel) in [(6, 10975, 23), (7, 5490, 9), (8, 46970, 34)] {
            assert_eq!(pseudo_random(0x305f, counter), random);
            assert_eq!(map.channel(SAMPLE, counter), channel);
        }
        assert_eq!(map.to_bytes(), [0, 6, 0xe0, 0, 0x1e]);
        assert_eq!(ChannelMap::of(1), None);
    }

    #[test]
    fn every_channel_has_a_frequency_of_its_own() {
        let mut all: Vec<u8> = (0..40).map(frequency).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..40));
    }
}
