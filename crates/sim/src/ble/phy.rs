//! How long packets are on the air, and what is checked of them.
//!
//! Source: Bluetooth Core 5.4 Vol 6 Part B §2.

use motet::ble::Phy;
use motet::time::Duration;

/// From the end of a packet to the beginning of the next one (§4.1.1).
pub const T_IFS: Duration = Duration::from_micros(150);

/// The longest payload of a data packet, MIC aside, bytes.
pub const PAYLOAD_LEN_MAX: usize = 251;

/// The duration of a byte on the air, µs.
const fn byte_us(phy: Phy) -> u64 {
    match phy {
        Phy::Le1M => 8,
        Phy::Le2M => 4,
    }
}

/// Preamble and access address: what a receiver must hear to hear a packet at all, bytes.
pub const fn sync_len(phy: Phy) -> usize {
    match phy {
        Phy::Le1M => 1 + 4,
        Phy::Le2M => 2 + 4,
    }
}

/// All bytes of a data packet with so much payload, and a MIC of four bytes behind it where the
/// connection counts with one: an empty packet has none.
pub const fn packet_len(payload: usize, phy: Phy, has_mic: bool) -> usize {
    let mic = if has_mic && payload > 0 { 4 } else { 0 };
    sync_len(phy) + 2 + payload + mic + 3
}

/// How long such a packet is on the air.
pub const fn air_time(payload: usize, phy: Phy, has_mic: bool) -> Duration {
    Duration::from_micros(packet_len(payload, phy, has_mic) as u64 * byte_us(phy))
}

/// The check sum of a packet, header and payload, as its three bytes are sent (§3.1.1).
pub fn crc(init: u32, bytes: &[u8]) -> [u8; 3] {
    let mut state = init & 0x00ff_ffff;
    for byte in bytes {
        for bit in 0..8 {
            let feedback = (state >> 23 ^ u32::from(byte >> bit)) & 1;
            state = state << 1 & 0x00ff_ffff;
            if feedback == 1 {
                state ^= POLYNOMIAL;
            }
        }
    }
    // The highest bit of the register is sent first, as the lowest bit of the first byte.
    let [_, a, b, c] = state.to_be_bytes();
    [a, b, c].map(u8::reverse_bits)
}

/// x^24 + x^10 + x^9 + x^6 + x^4 + x^3 + x + 1.
const POLYNOMIAL: u32 = 0x00_065b;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_limits() {
        // Of `ble_limits.py bounds`: an empty packet, and one of 251 bytes without and with a MIC.
        let cases = [(Phy::Le1M, 80, 2088, 2120), (Phy::Le2M, 44, 1048, 1064)];
        for (phy, empty, full, with_mic) in cases {
            assert_eq!(air_time(0, phy, false).as_micros(), empty);
            assert_eq!(air_time(0, phy, true).as_micros(), empty);
            assert_eq!(air_time(251, phy, false).as_micros(), full);
            assert_eq!(air_time(251, phy, true).as_micros(), with_mic);
        }
    }

    #[test]
    fn a_flipped_bit_changes_the_check_sum() {
        let packet = [0x02, 0x03, 1, 2, 3];
        let good = crc(0x55_5555, &packet);
        for byte in 0..packet.len() {
            for bit in 0..8 {
                let mut damaged = packet;
                damaged[byte] ^= 1 << bit;
                assert_ne!(crc(0x55_5555, &damaged), good);
            }
        }
    }
}
