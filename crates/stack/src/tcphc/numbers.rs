//! Sequence numbers and timestamps, compared modulo 2^32, and the 16 bits that their distances
//! are kept in.

/// A distance too large to matter, or none.
pub(super) const UNKNOWN: u16 = u16::MAX;

/// Signed distance from `b` to `a`, modulo 2^32.
pub(super) const fn distance(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b) as i32
}

/// Whether `a` lies after `b`.
pub(super) const fn after(a: u32, b: u32) -> bool {
    distance(a, b) > 0
}

/// `from` less `by`; `None` where `by` is [`UNKNOWN`].
pub(super) const fn behind(from: u32, by: u16) -> Option<u32> {
    match by {
        UNKNOWN => None,
        by => Some(from.wrapping_sub(by as u32)),
    }
}

/// How far `value` lies behind `from`, which it does not exceed.
pub(super) fn behind_by(from: u32, value: u32) -> u16 {
    clip(from.wrapping_sub(value))
}

/// A distance as it is kept.
pub(super) fn clip(value: u32) -> u16 {
    value.min(u32::from(UNKNOWN)) as u16
}

/// Adds to a distance that is kept.
pub(super) fn grow(behind: &mut u16, by: u32) {
    *behind = clip(u32::from(*behind).saturating_add(by));
}
