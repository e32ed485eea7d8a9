//! The executor's clock as a node counts time.

use embassy_time::TICK_HZ;
use motet::time::Instant;

/// The time of the executor's clock, also in an interrupt: the one that reports of a radio name.
#[cfg_attr(
    not(feature = "offload"),
    expect(unreachable_pub, reason = "`offload` has it for chips")
)]
pub fn now() -> Instant {
    Instant::from_micros(embassy_time::Instant::now().as_micros())
}

/// The first tick of the clock that is not before `at`: one earlier, nothing would be due yet.
pub(crate) fn tick_of(at: Instant) -> embassy_time::Instant {
    // Beyond any deadline where it saturates: at 32,768 Hz after a thousand years.
    let scaled = at.as_micros().saturating_mul(TICK_HZ / COMMON);
    embassy_time::Instant::from_ticks(div_ceil(scaled, (MICROS_HZ / COMMON) as u32))
}

/// `value` divided by `by`, at most 2^24, rounded up.
///
/// Byte after byte: a division of 64 bits, or of 128, would be a kilobyte of a mote's flash.
fn div_ceil(value: u64, by: u32) -> u64 {
    let (mut quotient, mut rest) = (0, 0);
    for byte in value.to_be_bytes() {
        let part = rest << 8 | u32::from(byte);
        quotient = quotient << 8 | u64::from(part / by);
        rest = part % by;
    }
    quotient + u64::from(rest > 0)
}

const MICROS_HZ: u64 = 1_000_000;

/// The greatest common divisor of ticks a second and microseconds a second.
const COMMON: u64 = {
    let (mut a, mut b) = (MICROS_HZ, TICK_HZ);
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_tick_is_before_its_time() {
        let divisors = [1, 3, 125, 15_625, 1_000_000, 1 << 24];
        let values = [
            0,
            1,
            15_624,
            15_625,
            15_626,
            1 << 32,
            u64::MAX - 1,
            u64::MAX,
        ];
        for by in divisors {
            for value in values {
                assert_eq!(
                    div_ceil(value, by),
                    value.div_ceil(by.into()),
                    "{value} / {by}"
                );
            }
        }
        for micros in [0, 1, 30, 31, 999_999, 1_000_000, 86_400_000_000] {
            let exact = (u128::from(micros) * u128::from(TICK_HZ)).div_ceil(1_000_000);
            let tick = tick_of(Instant::from_micros(micros)).as_ticks();
            assert_eq!(u128::from(tick), exact, "{micros} µs");
        }
    }
}
