//! Sizes and times as people write them.

use std::ops::RangeInclusive;

/// Reads a number of bytes: a whole number, with k or M (1,000), or with Ki or Mi (1,024).
pub(super) fn bytes(text: &str, range: RangeInclusive<u64>) -> Result<u64, String> {
    let units = [
        ("Ki", 1 << 10),
        ("Mi", 1 << 20),
        ("k", 1_000),
        ("M", 1_000_000),
        ("", 1),
    ];
    let of = |(unit, factor): &(&str, u64)| {
        let number = text.strip_suffix(unit)?;
        let is_plain = number.bytes().all(|byte| byte.is_ascii_digit());
        number
            .parse::<u64>()
            .ok()
            .filter(|_| is_plain)?
            .checked_mul(*factor)
    };
    let read = units.iter().find_map(of);
    read.filter(|bytes| range.contains(bytes)).ok_or_else(|| {
        let (min, max) = (range.start(), range.end());
        format!("it must be a size from {min} to {max} bytes, such as 900k or 8Ki")
    })
}

/// Reads a poll period, and gives it in seconds.
pub(super) fn period(text: &str) -> Result<f64, String> {
    let (number, factor) = match text.strip_suffix("ms") {
        Some(number) => (Some(number), 1e-3),
        None => (text.strip_suffix('s'), 1.0),
    };
    let seconds = number.and_then(|number| number.parse::<f64>().ok());
    let seconds = seconds.map(|seconds| seconds * factor);
    let seconds = seconds.filter(|seconds| (0.05..=10.0).contains(seconds));
    seconds.ok_or_else(|| "it must be a time from 50ms to 10s, such as 500ms or 1s".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_a_thousand_or_of_1024() {
        let size = |text| bytes(text, 1..=20_000_000);
        let read = [
            ("900k", 900_000),
            ("8Ki", 8_192),
            ("1M", 1_000_000),
            ("1Mi", 1 << 20),
            ("7", 7),
        ];
        for (text, expected) in read {
            assert_eq!(size(text), Ok(expected), "{text}");
        }
        for wrong in [
            "",
            "k",
            "-1",
            "+1",
            "1.5k",
            "8kB",
            "0",
            "21M",
            "99999999999999999999M",
        ] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn periods_have_a_unit() {
        assert_eq!((period("1s"), period("250ms")), (Ok(1.0), Ok(0.25)));
        for wrong in ["", "1", "s", "-1s", "11s", "10ms", "nans", "1 s"] {
            assert!(period(wrong).is_err(), "{wrong}");
        }
    }
}
