//! Which form an outgoing segment takes, and each of its fields.
//!
//! A form is *proof* when no loss, and no overtaking within the bounds of
//! `docs/reference/tcphc.md`, makes the peer read another value; else it is *falsifiable*:
//! overtaken, it may be read as another value, and two such errors may cancel in the checksum.

use crate::time::Instant;
use crate::wire::tcp::Flags;
use crate::wire::tcphc::{CARRIED, Compressed, Field, RelativeBlocks, Window};

use super::Mode;
use super::belief::is_far;
use super::context::{Context, REPEATS, State, bit};
use super::numbers::{after, distance};
use super::rules::{Behind, Cure, FLIGHT_MAX, Rules, SEQ_BEHIND, TIMESTAMP_BEHIND};
use super::segment::Segment;
use super::windows::{Set, WindowSet};

/// The form in which `seg` goes out; `None`: with a full header.
pub(super) fn frame_for(
    context: &mut Context,
    seg: &Segment,
    rules: Rules,
    now: Instant,
) -> Option<Compressed> {
    if context.idle_s(now) >= IDLE_S && context.state() == State::Active {
        context.put(bit::UNSURE, rules.cured(Cure::Reboot));
    }
    if rules.cured(Cure::Poisoning) && is_far(context, seg) {
        context.forget_sent(seg);
        return None;
    }
    let both_have_it = match context.state() {
        // The answer named this context. The bare third ACK is whole all the same, as in the
        // draft; data in its place would take a frame more.
        State::Offered => context.has(bit::ANSWERED) && seg.payload_len() != 0,
        state => state != State::Free,
    };
    let may = both_have_it && !context.has(bit::UNSURE) && !context.has(bit::REFRESH_FULL);
    if may {
        choose(context, seg, rules, now)
    } else {
        None
    }
}

/// The smallest safe form of `seg`, or `None`: a full header.
fn choose(context: &Context, seg: &Segment, rules: Rules, now: Instant) -> Option<Compressed> {
    if !seg.is_compressible() {
        return None;
    }
    let sack = RelativeBlocks::relative_to(seg.header.ack, &seg.header.options.sack)?;
    let repeated = is_repeated(context, seg, rules);
    if repeated && !context.has(bit::HEARD) && rules.cured(Cure::Reboot) {
        return None;
    }
    let mostly = repeated || context.has(bit::REFRESH);
    let widths = match (mostly, rules.mode) {
        (true, _) => WHOLE,
        (false, Mode::Draft) if seg.timestamps().is_some() => return None,
        (false, Mode::Draft) => draft(context, seg),
        (false, _) => provable(context, seg, rules, now),
    };
    let [window, ack, seq, tsval, tsecr] = widths;
    let timestamps = seg
        .timestamps()
        .map(|(value, echo)| (field(tsval, value), field(tsecr, echo)));
    Some(Compressed {
        mostly,
        cid: context.cid,
        flags: Flags::from_bits(seg.header.flags.bits() & CARRIED.bits()),
        seq: field(seq, seg.header.seq),
        ack: field(ack, seg.header.ack),
        window: match window {
            Width::None => Window::Elided,
            Width::Low8 => Window::Low(seg.window() as u8),
            _ => Window::Whole(seg.window()),
        },
        checksum: seg.checksum,
        timestamps,
        sack,
    })
}

/// How many bits of a field go in line.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Debug)]
enum Width {
    None,
    Low8,
    Low16,
    Whole,
}

/// Window, acknowledgment and sequence number, TSval, TSecr: in the order in which strict
/// mode lets one of them be falsifiable.
type Widths = [Width; 5];

const WHOLE: Widths = [Width::Whole; 5];

/// A width, and the one to use where a falsifiable one will not do.
#[derive(Clone, Copy)]
struct Choice {
    width: Width,
    proof: Width,
}

impl Choice {
    /// The choice for a field that the segment does not have.
    const ABSENT: Self = Self {
        width: Width::None,
        proof: Width::None,
    };
    const WHOLE: Self = Self {
        width: Width::Whole,
        proof: Width::Whole,
    };

    fn is_falsifiable(self) -> bool {
        self.width < self.proof
    }

    /// Whether overtaking may turn it into a value that was never sent: low bits join high
    /// ones that they did not belong to, while an elided field turns into one sent later.
    fn is_numeric(self) -> bool {
        self.width == Width::Low8 && self.is_falsifiable()
    }

    fn make_proof(&mut self) {
        self.width = self.proof;
    }
}

/// Whether the segment's numbers lie behind those sent already: a retransmission, a probe, a
/// keepalive. The peer's references may be what is wrong.
pub(super) fn is_repeated(context: &Context, seg: &Segment, rules: Rules) -> bool {
    if !context.has(bit::U_SEQ) {
        return false;
    }
    if rules.cured(Cure::Probes) {
        after(context.u_seq, seg.seq())
    } else {
        seg.payload_len() != 0 && !after(seg.end(), context.u_seq)
    }
}

/// The shortest widths that no loss makes wrong (but for a window left out on hope), within
/// what the mode allows.
fn provable(context: &Context, seg: &Segment, rules: Rules, now: Instant) -> Widths {
    let l_seq = context.l_seq();
    let mut choices = [
        window_choice(context, seg.window()),
        ack_choice(context, seg, rules),
        interval(seg.seq(), l_seq, context.u_seq, SEQ_BEHIND, rules),
        Choice::ABSENT,
        Choice::ABSENT,
    ];
    let [_, _, seq, tsval, tsecr] = &mut choices;
    if let Some((value, echo)) = seg.timestamps() {
        let (l_tsval, l_tsecr) = (context.l_tsval(), context.l_tsecr());
        *tsval = interval(value, l_tsval, context.u_tsval, TIMESTAMP_BEHIND, rules);
        *tsecr = interval(echo, l_tsecr, context.u_tsecr, TIMESTAMP_BEHIND, rules);
        // The echoed timestamp did not update the contexts at either end, so the peer could not
        // restore a part of it.
        let within = context.has(bit::R_TS) && !after(echo, context.r_tsval);
        let is_old = is_old_echo(context, echo, now) && rules.cured(Cure::OldEcho);
        if !within && rules.cured(Cure::Echo) || is_old {
            *tsecr = Choice::WHOLE;
        }
    }
    if rules.mode == Mode::Default && seg.occupies() {
        // Payload must never land elsewhere.
        seq.make_proof();
    }
    let falsifiable = choices.iter().filter(|c| c.is_falsifiable()).count();
    match rules.mode {
        Mode::Default if falsifiable > 1 && rules.cured(Cure::NeverSent) => {
            for choice in choices.iter_mut().filter(|c| c.is_numeric()) {
                choice.make_proof();
            }
        }
        Mode::Strict => {
            let others = choices.iter_mut().filter(|c| c.is_falsifiable()).skip(1);
            others.for_each(Choice::make_proof);
        }
        _ => {}
    }
    choices.map(|choice| choice.width)
}

/// Whether a truncated `echo` could be restored wrongly at the peer: when it arrives, the value one
/// period higher might also be a timestamp that the peer has already sent. That is impossible if
/// `echo` is at most [`ECHO_BEHIND`] older than the latest timestamp heard, and that was heard at
/// most 33.6 s ago: with the lifetimes of two frames this makes 58,100 ticks, and a period is
/// 65,536.
fn is_old_echo(context: &Context, echo: u32, now: Instant) -> bool {
    context.unheard_spells(now) > 1 || context.r_tsval.wrapping_sub(echo) > ECHO_BEHIND
}

/// `value` among what the peer may hold as reference: anything from `lowest`, known to be
/// there, to `highest`, the last one sent.
fn interval(value: u32, lowest: Option<u32>, highest: u32, behind: Behind, rules: Rules) -> Choice {
    let whole = Choice::WHOLE;
    let Some(lowest) = lowest else {
        return whole;
    };
    if is_near_zero(value, rules) {
        return whole;
    }
    let fits = |behind: u32, period: i32| {
        let behind = behind as i32;
        distance(value, highest) >= -behind && distance(value, lowest) < period - behind
    };
    let proof = if fits(behind.of_16, 1 << 16) && rules.halves_are_proof() {
        Width::Low16
    } else {
        Width::Whole
    };
    let width = if value == highest && value == lowest {
        Width::None
    } else if fits(behind.of_8, 1 << 8) {
        Width::Low8
    } else {
        proof
    };
    Choice { width, proof }
}

/// The peer reads an acknowledgment number below what it has sent itself; how far that may
/// be ahead is bounded by the windows it was given, and by [`FLIGHT_MAX`].
fn ack_choice(context: &Context, seg: &Segment, rules: Rules) -> Choice {
    let ack = seg.header.ack;
    let highest = context.u_ack;
    let whole = Choice::WHOLE;
    // The acknowledged number must have been sent, as far as this end has seen, and recently.
    let within = context.has(bit::R_SEQ) && !after(ack, context.r_seq);
    if !within || context.r_seq.wrapping_sub(ack) > FLIGHT_MAX || is_near_zero(ack, rules) {
        return whole;
    }
    let step_back = if context.has(bit::U_ACK) {
        distance(highest, ack).max(0) as u32
    } else {
        0
    };
    let by_flight = step_back.saturating_add(FLIGHT_MAX);
    let by_edge = context.edge_beyond(ack, seg.window());
    let span = by_edge.map_or(by_flight, |edge| by_flight.min(edge.saturating_add(1)));
    let proof = if span <= ACK_SPAN_16 && rules.halves_are_proof() {
        Width::Low16
    } else {
        Width::Whole
    };
    let short = by_edge.is_some() && span <= ACK_SPAN_8;
    let elided = context.has(bit::U_ACK) && ack == highest && context.l_ack() == Some(highest);
    // An error in it moves every SACK edge too, and such multiples may cancel.
    let alone = seg.header.options.sack.is_empty() || !rules.cured(Cure::SackMultiplies);
    let width = match (elided && alone, short) {
        (true, _) => Width::None,
        (false, true) => Width::Low8,
        (false, false) => proof,
    };
    let proof = if short && !rules.cured(Cure::ShortAck) {
        Width::Low8
    } else {
        proof
    };
    Choice { width, proof }
}

fn window_choice(context: &Context, window: u16) -> Choice {
    let held = context.set(Set::Held);
    let hoped = window == context.last_window && context.repeats() >= REPEATS;
    let width = match held {
        // To the checksum it is the same as 0.
        _ if window == u16::MAX => Width::Whole,
        WindowSet::One(only) if only == window => Width::None,
        _ if hoped => Width::None,
        WindowSet::One(only) if shares_high(only >> 8, window) => Width::Low8,
        WindowSet::High(high) if shares_high(u16::from(high), window) => Width::Low8,
        _ => Width::Whole,
    };
    Choice {
        width,
        proof: Width::Whole,
    }
}

fn shares_high(high: u16, window: u16) -> bool {
    high == window >> 8 && high != 0xff
}

/// Where 0x0000 and 0xffff, equal to the checksum, are each other's neighbours.
fn is_near_zero(value: u32, rules: Rules) -> bool {
    value.wrapping_add(1 << 16) < 2 << 16 && rules.cured(Cure::Zero)
}

/// The draft's rule: compares the upper bytes with those of the previous segment, whether or not it
/// arrived. The previous values are kept in the fields that other modes use for timestamps.
fn draft(context: &Context, seg: &Segment) -> Widths {
    if !context.has(bit::U_SEQ) {
        return WHOLE;
    }
    let width = |value: u32, before: u32| match value ^ before {
        0 => Width::None,
        1..=0xff => Width::Low8,
        0x100..=0xffff => Width::Low16,
        _ => Width::Whole,
    };
    let window = width(u32::from(seg.window()), u32::from(context.last_window));
    let window = if window == Width::Low16 {
        Width::Whole
    } else {
        window
    };
    [
        window,
        width(seg.header.ack, context.u_tsecr),
        width(seg.header.seq, context.u_tsval),
        Width::None,
        Width::None,
    ]
}

fn field(width: Width, value: u32) -> Field {
    match width {
        Width::None => Field::Elided,
        Width::Low8 => Field::Low8(value as u8),
        Width::Low16 => Field::Low16(value as u16),
        Width::Whole => Field::Whole(value),
    }
}

/// Ticks by which an echo sent in part may lag behind what was heard: recovery from a loss
/// holds echoes back (RFC 7323 §4.3).
const ECHO_BEHIND: u32 = 8_192;

/// The largest spans for which 8 and 16 bits of an acknowledgment number do; the rest of the
/// period is for segments that overtake.
const ACK_SPAN_8: u32 = 159;
const ACK_SPAN_16: u32 = 32_767;

/// Idle for this long, the peer's context may be gone.
const IDLE_S: u32 = 60;
