//! Numbers of the command line, and what may stand there in words.

use std::ops::RangeInclusive;

/// Reads a whole number within `range`.
pub(crate) fn whole<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        let number = number.and_then(|number| T::try_from(number).ok());
        let (min, max) = (range.start(), range.end());
        number.ok_or_else(|| match *max {
            u64::MAX => format!("it must be a whole number from {min} up"),
            max => format!("it must be a whole number from {min} to {max}"),
        })
    }
}

/// Reads a PAN identifier: four hexadecimal digits, with or without 0x.
pub(crate) fn pan(text: &str) -> Result<u16, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let pan = u16::from_str_radix(digits, 16).ok();
    let pan = pan.filter(|pan| *pan != 0xffff && !digits.starts_with('+'));
    pan.ok_or_else(|| {
        "a PAN identifier has four hexadecimal digits, such as 0xabcd, and is not 0xffff".to_owned()
    })
}

/// Seeds of runs that count up from the first, and that a scenario can write (TOML's integers
/// have 64 bits with sign).
pub(crate) const SEEDS: RangeInclusive<u64> = 0..=i64::MAX as u64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_stand_there_is_said_in_words() {
        let hops = whole::<u16>(1..=32);
        assert_eq!((hops("1"), hops("32")), (Ok(1), Ok(32)));
        for wrong in [
            "0",
            "33",
            "-1",
            "three",
            "1.5",
            "",
            "99999999999999999999999",
        ] {
            let sentence = "it must be a whole number from 1 to 32".to_owned();
            assert_eq!(hops(wrong), Err(sentence), "{wrong}");
        }
        let seed = whole::<u64>(0..=u64::MAX);
        let up = "it must be a whole number from 0 up".to_owned();
        assert_eq!(
            (seed("18446744073709551615"), seed("-1")),
            (Ok(u64::MAX), Err(up))
        );
        // A range wider than the type refuses as one that is not.
        assert!(whole::<u8>(0..=1000)("256").is_err());
    }

    #[test]
    fn pan_identifiers_are_hexadecimal() {
        assert_eq!(pan("0xabcd"), Ok(0xabcd));
        assert_eq!(pan("4d54"), Ok(0x4d54));
        for wrong in ["", "0x", "ffff", "0xFFFF", "12345", "+123", "pan", "-1"] {
            assert!(pan(wrong).is_err(), "{wrong}");
        }
    }
}
