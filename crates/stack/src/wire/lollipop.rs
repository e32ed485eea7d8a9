//! Sequence counters of RPL ("lollipops"), by which a receiver distinguishes a restart from an
//! increment.
//!
//! A counter begins at [`INITIAL`] in the straight part, the values 128 to 255, and passes that
//! once; after 255 it cycles through 0 to 127, the circular part. Versions of a DODAG, DTSN, path
//! sequences and the transaction ID of a registration (RFC 8505 §5.2) are such counters.
//! Source: RFC 6550 §7.2.

use core::cmp::Ordering;

/// Where a counter begins after a restart: near the end of the straight part.
pub const INITIAL: u8 = 240;

/// The first value of the straight part, and how many values the circular part has.
pub const STRAIGHT: u8 = 128;

/// Counters further apart than this do not follow one another (`SEQUENCE_WINDOW`).
pub const WINDOW: u8 = 16;

/// The counter that follows `counter`: 255 and 127 are both followed by 0.
pub const fn next(counter: u8) -> u8 {
    match counter {
        0x7f | 0xff => 0,
        _ => counter + 1,
    }
}

/// Compares two counters: `Greater` if `a` is newer than `b`. `None`: the two are too far apart to
/// compare, as after a node has lost its counter.
pub fn compare(a: u8, b: u8) -> Option<Ordering> {
    let newer_if = |is_newer| match is_newer {
        true => Ordering::Greater,
        false => Ordering::Less,
    };
    match (a >= STRAIGHT, b >= STRAIGHT) {
        // 256 + b - a, modulo 256: steps from the straight part into the circular one.
        (true, false) => Some(newer_if(b.wrapping_sub(a) > WINDOW)),
        (false, true) => Some(newer_if(a.wrapping_sub(b) <= WINDOW)),
        (true, true) => (a.abs_diff(b) <= WINDOW).then(|| a.cmp(&b)),
        (false, false) => {
            let ahead = a.wrapping_sub(b) % STRAIGHT;
            let behind = b.wrapping_sub(a) % STRAIGHT;
            match (ahead, behind) {
                (0, _) => Some(Ordering::Equal),
                (1..=WINDOW, _) => Some(Ordering::Greater),
                (_, 1..=WINDOW) => Some(Ordering::Less),
                _ => None,
            }
        }
    }
}

/// Whether `a` is newer than `b`.
pub fn is_newer(a: u8, b: u8) -> bool {
    compare(a, b) == Some(Ordering::Greater)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn examples() {
        use Ordering::{Equal, Greater, Less};
        for (a, b, order) in [
            // RFC 6550 §7.2 gives these two: 240 and 5 are 21 apart, 250 and 5 are 11.
            (240, 5, Some(Greater)),
            (250, 5, Some(Less)),
            (5, 250, Some(Greater)),
            (240, 240, Some(Equal)),
            (255, 240, Some(Greater)),
            (240, 0, Some(Less)),
            (239, 0, Some(Greater)),
            (127, 0, Some(Less)),
            (0, 127, Some(Greater)),
            (16, 0, Some(Greater)),
            (17, 0, None),
            (111, 0, None),
            (112, 0, Some(Less)),
            (128, 144, Some(Less)),
            (128, 145, None),
            (128, 255, None),
        ] {
            assert_eq!(compare(a, b), order, "{a} to {b}");
        }
        assert_eq!([next(240), next(255), next(127)], [241, 0, 0]);
    }

    proptest! {
        #[test]
        fn either_side_sees_the_same(a: u8, b: u8) {
            prop_assert_eq!(compare(a, b), compare(b, a).map(Ordering::reverse));
            prop_assert_eq!(compare(a, b) == Some(Ordering::Equal), a == b);
        }

        #[test]
        fn steps_lead_forward(start: u8, steps in 1u8..=WINDOW) {
            let later = (0..steps).fold(start, |counter, _| next(counter));
            prop_assert!(is_newer(later, start));
        }
    }
}
