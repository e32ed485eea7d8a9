//! Restores headers from compressed fields.
//!
//! Place: incoming MH and CH. A restored header is only a guess until its checksum is found right,
//! and changes no context before.

use crate::wire::checksum::Checksum;
use crate::wire::cursor::copy;
use crate::wire::tcp::{self, Flags, Header, Options};
use crate::wire::tcphc::{Compressed, Field, Window};

use super::context::{Context, bit};
use super::numbers::after;
use super::rules::{Behind, Cure, FLIGHT_MAX, Rules, SEQ_BEHIND, TIMESTAMP_BEHIND};
use super::segment::Segment;
use super::{Flow, HeaderDrop, Mode};

/// Writes the restored header of `frame` to `out`, with its checksum, which must be right; returns
/// its length, and the parsed segment.
pub(super) fn rebuild(
    context: &Context,
    flow: &Flow,
    frame: &Compressed,
    payload: &[u8],
    rules: Rules,
    out: &mut [u8],
) -> Result<(usize, Segment), HeaderDrop> {
    let header = restore(context, frame, rules)?;
    let len = header.emit(out).map_err(|_| HeaderDrop::Full)?;
    let field = out.get_mut(CHECKSUM_AT..).unwrap_or_default();
    copy(field, &frame.checksum.to_be_bytes());
    if !sums_up(flow, out.get(..len).ok_or(HeaderDrop::Full)?, payload) {
        return Err(HeaderDrop::Checksum);
    }
    let seg = Segment::restored(header, frame.checksum, payload.len());
    Ok((len, seg))
}

fn sums_up(flow: &Flow, header: &[u8], payload: &[u8]) -> bool {
    let len = header.len() + payload.len();
    let (src, dst) = (&flow.remote, &flow.local);
    let mut sum = Checksum::pseudo_header(src, dst, tcp::NEXT_HEADER, len);
    sum.add(header);
    sum.add(payload);
    sum.sum() == 0xffff
}

/// The header that `frame` stands for, checksum apart.
///
/// # Errors
/// [`HeaderDrop::NoReference`], [`HeaderDrop::EchoUnsent`].
fn restore(context: &Context, frame: &Compressed, rules: Rules) -> Result<Header, HeaderDrop> {
    let (seq, ack) = match rules.mode {
        Mode::Draft => (
            from_upper(frame.seq, context.reference(bit::R_SEQ, context.r_tsval))?,
            from_upper(frame.ack, context.reference(bit::R_ACK, context.r_tsecr))?,
        ),
        _ => {
            let r_seq = context.reference(bit::R_SEQ, context.r_seq);
            (
                from_window(frame.seq, r_seq, SEQ_BEHIND)?,
                acked(context, frame.ack)?,
            )
        }
    };
    let mut options = Options::NONE;
    if let Some((value, echo)) = frame.timestamps {
        let r_tsval = context.reference(bit::R_TS, context.r_tsval);
        options.timestamps = Some((
            from_window(value, r_tsval, TIMESTAMP_BEHIND)?,
            echoed(context, echo, rules)?,
        ));
    }
    options.sack = frame.sack.absolute(ack);
    let (local, remote) = context.ports;
    Ok(Header {
        src_port: remote,
        dst_port: local,
        seq,
        ack,
        flags: frame.flags.with(Flags::ACK),
        window: window(context, frame.window, rules)?,
        urgent: 0,
        options,
    })
}

/// The only value with these low bits from `behind` below the reference on.
fn from_window(field: Field, reference: Option<u32>, behind: Behind) -> Result<u32, HeaderDrop> {
    if let Field::Whole(value) = field {
        return Ok(value);
    }
    let reference = reference.ok_or(HeaderDrop::NoReference)?;
    let nearest = |low: u32, mask: u32, behind: u32| {
        let lowest = reference.wrapping_sub(behind);
        lowest.wrapping_add(low.wrapping_sub(lowest) & mask)
    };
    Ok(match field {
        Field::Low8(low) => nearest(u32::from(low), 0xff, behind.of_8),
        Field::Low16(low) => nearest(u32::from(low), 0xffff, behind.of_16),
        _ => reference,
    })
}

/// An echo jumps by as long as its peer was silent, whatever the age of the segments that it
/// overtakes: theirs would be read a period too high. What is echoed was sent from here.
fn echoed(context: &Context, field: Field, rules: Rules) -> Result<u32, HeaderDrop> {
    let reference = context.reference(bit::R_TSECR, context.r_tsecr);
    let echo = from_window(field, reference, TIMESTAMP_BEHIND)?;
    let is_guess = matches!(field, Field::Low8(_) | Field::Low16(_));
    // An end that joined late has sent nothing yet, and what passed uncounted may be echoed.
    let is_bounded = context.has(bit::U_TS) && !context.has(bit::UNCOUNTED);
    let unsent = after(echo, context.u_tsval) && after(echo, context.r_tsecr);
    if is_guess && is_bounded && unsent && rules.cured(Cure::Echo) {
        return Err(HeaderDrop::EchoUnsent);
    }
    Ok(echo)
}

/// The highest value with these low bits that was sent from here. With 16 bits it may lie
/// ahead of what is known to have been sent, should this end have joined late.
fn acked(context: &Context, field: Field) -> Result<u32, HeaderDrop> {
    let sent = context.reference(bit::U_SEQ, context.u_seq);
    match field {
        Field::Elided => context
            .reference(bit::R_ACK, context.r_ack)
            .ok_or(HeaderDrop::NoReference),
        Field::Low8(_) => from_window(
            field,
            sent,
            Behind {
                of_8: 0xff,
                of_16: 0,
            },
        ),
        Field::Low16(_) => from_window(
            field,
            sent,
            Behind {
                of_8: 0,
                of_16: 0xffff - FLIGHT_MAX,
            },
        ),
        Field::Whole(ack) => Ok(ack),
    }
}

fn window(context: &Context, window: Window, rules: Rules) -> Result<u16, HeaderDrop> {
    if let Window::Whole(window) = window {
        return Ok(window);
    }
    let reference = context.r_window;
    if !context.has(bit::R_WINDOW) || reference == u16::MAX && rules.mode != Mode::Draft {
        return Err(HeaderDrop::NoReference);
    }
    Ok(match window {
        Window::Low(low) => reference & 0xff00 | u16::from(low),
        Window::High(high) => u16::from(high) << 8 | reference & 0xff,
        _ => reference,
    })
}

/// The draft's rule: a field that is not in line has the value of the previous segment.
fn from_upper(field: Field, before: Option<u32>) -> Result<u32, HeaderDrop> {
    if let Field::Whole(value) = field {
        return Ok(value);
    }
    let before = before.ok_or(HeaderDrop::NoReference)?;
    Ok(match field {
        Field::Low8(low) => before & !0xff | u32::from(low),
        Field::Low16(low) => before & !0xffff | u32::from(low),
        _ => before,
    })
}

const CHECKSUM_AT: usize = 16;
