//! Sequence numbers, which come round (RFC 9293 §3.4), compared.

/// How far `number` lies behind `other` on the circle; negative where it lies before it.
pub(super) fn distance(number: u32, other: u32) -> i32 {
    number.wrapping_sub(other) as i32
}

/// How far `number` lies behind `other`; none where it does not.
pub(crate) fn ahead(number: u32, other: u32) -> Option<u32> {
    u32::try_from(distance(number, other))
        .ok()
        .filter(|by| *by > 0)
}
