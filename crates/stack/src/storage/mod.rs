//! Fixed memory: rings over borrowed bytes. Knows no protocol.

#[cfg(any(feature = "entry", feature = "sleepy"))]
pub(crate) mod keyed_queues;
pub(crate) mod packet_queue;
pub(crate) mod ring;
pub(crate) mod whole;

/// The place of the least of these ranks, and of equal ones the first. What has no rank is left
/// out; `u64::MAX` is none.
// By hand: `min_by_key`, which passes entries on beside their ranks, takes 80 B more of a mote for
// each table.
pub(crate) fn least(ranks: impl Iterator<Item = Option<u64>>) -> Option<usize> {
    let (mut place, mut least) = (None, u64::MAX);
    for (at, rank) in ranks.enumerate() {
        if let Some(rank) = rank
            && rank < least
        {
            (place, least) = (Some(at), rank);
        }
    }
    place
}
