//! Which segments may change a context at all.
//!
//! Purpose: a host outside, or a forger in its name, may send anything; a segment whose numbers
//! its connection cannot have is passed on, but counts for nothing. Place: before a context
//! learns, at the compressor and, by the same bounds, at the decompressor. Left out: the
//! checksum, which was verified before. Source: `docs/reference/tcphc.md`, section 6.

use crate::wire::tcp::Flags;

use super::context::{Context, FAR, State, bit};
use super::numbers::{after, distance};
use super::rules::{Cure, FLIGHT_MAX, Rules};
use super::segment::Segment;

/// Whether only a SYN-ACK may update the context: any other segment belongs to an older connection.
pub(super) fn awaits_answer(context: &Context, rules: Rules) -> bool {
    context.state() == State::Offered
        && context.has(bit::OPENER)
        && !context.has(bit::ANSWERED)
        && rules.cured(Cure::OldLife)
}

/// Whether the segment lies too far from the last one sent to be read against it.
pub(super) fn is_far(context: &Context, seg: &Segment) -> bool {
    let far = |a, b| distance(a, b).unsigned_abs() > FAR;
    context.has(bit::U_SEQ) && far(seg.end(), context.u_seq)
        || context.has(bit::U_ACK) && seg.ack().is_some_and(|ack| far(ack, context.u_ack))
}

/// Whether a host outside may have sent this segment: it acknowledges only data that passed here,
/// and keeps to the windows that it was given. A segment that fails is forwarded, and changes
/// nothing.
pub(super) fn is_believable(context: &Context, seg: &Segment, rules: Rules) -> bool {
    if !rules.cured(Cure::Poisoning) || seg.has(Flags::SYN) {
        return true;
    }
    let acks_unseen =
        context.has(bit::R_SEQ) && seg.ack().is_some_and(|ack| after(ack, context.r_seq));
    !acks_unseen && keeps_to_windows(seg, context.reference(bit::R_ACK, context.r_ack))
}

/// The same check at the other end of the path, for a segment that came with a full header or
/// uncompressed: both ends must ignore the same segments.
pub(super) fn is_acceptable(context: &Context, seg: &Segment, rules: Rules) -> bool {
    if !rules.cured(Cure::Poisoning) || seg.has(Flags::SYN) {
        return true;
    }
    let sent = match context.has(bit::JOINED) {
        true => context.u_seq.wrapping_add(FLIGHT_MAX),
        false => context.u_seq,
    };
    let acks_unsent = context.has(bit::U_SEQ) && seg.ack().is_some_and(|ack| after(ack, sent));
    !acks_unsent && keeps_to_windows(seg, context.reference(bit::U_ACK, context.u_ack))
}

/// `acked`: the highest acknowledgment number that its sender was given.
fn keeps_to_windows(seg: &Segment, acked: Option<u32>) -> bool {
    acked.is_none_or(|acked| {
        let beyond = distance(seg.end(), acked);
        let below = distance(seg.seq(), acked);
        beyond <= FLIGHT_MAX as i32 + 2 && below >= -(FLIGHT_MAX as i32)
    })
}
