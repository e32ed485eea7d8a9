//! Frames of IEEE 802.15.4 as they cross the line: to send, received, and how sending ended.
//!
//! Each struct may be shorter than known here, or longer: its length counts.

use motet::wire::cursor::{Reader, Truncated};
use motet::wire::ieee802154::{self, ParseError};

use super::packed::data;
use super::value::{Form, field, fields};
use crate::model::{Audience, Field, Value};
use crate::next::Fcs;

/// A frame of IEEE 802.15.4 and what it ends in.
#[derive(Debug)]
pub(super) struct Psdu<'a> {
    /// The frame; empty where there is none.
    pub(super) bytes: &'a [u8],
    pub(super) fcs: Fcs,
}

/// A frame for the radio to send, and how.
pub(super) fn request<'a>(r: &mut Reader<'a>, out: &mut Vec<Field>) -> Result<Psdu<'a>, Truncated> {
    let bytes = data(r)?;
    out.push(Field::for_programs("psdu_len", bytes.len()));
    fields(&REQUEST, r, out)?;
    // The radio writes the FCS.
    let fcs = Fcs::Replaced;
    Ok(Psdu { bytes, fcs })
}

/// A frame as the radio received it.
pub(super) fn received<'a>(
    r: &mut Reader<'a>,
    out: &mut Vec<Field>,
) -> Result<Psdu<'a>, Truncated> {
    let bytes = data(r)?;
    out.push(Field::for_programs("psdu_len", bytes.len()));
    fields(&RECEIVED, r, out)?;
    let mut flags = 0;
    if !r.is_empty() {
        flags = r.u16_le()?;
        let set = FLAGS.iter().filter(|(bit, _)| flags & bit != 0);
        let names: Vec<Value> = set.map(|(_, name)| Value::from(*name)).collect();
        out.push(Field::for_programs("flags", flags));
        out.push(field("flags", names, Audience::People));
    }
    let mut part = |known: &[(&'static str, Form)], out: &mut Vec<Field>| {
        if r.is_empty() {
            return Ok(());
        }
        fields(known, &mut Reader::new(data(r)?), out)
    };
    part(&PHY, out)?;
    let (mut vendor, mut mac) = (Vec::new(), Vec::new());
    part(&VENDOR, &mut vendor)?;
    part(&MAC, &mut mac)?;
    // An error of 0 is none.
    let is_refused = vendor.iter().any(|field| field.value != Value::Number(0));
    show(vendor, is_refused, out);
    // Key and counter of an ACK that is not secured say nothing.
    show(mac, flags & ACKED_SECURED != 0, out);
    let fcs = fcs_of(bytes, flags);
    Ok(Psdu { bytes, fcs })
}

/// Adds fields, for programs alone where they say nothing to people.
fn show(fields: Vec<Field>, is_telling: bool, out: &mut Vec<Field>) {
    out.extend(fields.into_iter().map(|mut field| {
        if !is_telling {
            field.audience = Audience::Programs;
        }
        field
    }));
}

/// What is behind the status of a transmission: the ACK, where there is one.
pub(super) fn report<'a>(
    status: u32,
    r: &mut Reader<'a>,
    out: &mut Vec<Field>,
) -> Result<Psdu<'a>, Truncated> {
    fields(&REPORT, r, out)?;
    let none = Psdu {
        bytes: &[],
        fcs: Fcs::Absent,
    };
    if status != 0 || r.is_empty() {
        return Ok(none);
    }
    // Where no ACK was asked for, its length is 0 and the rest says nothing.
    let mut ack = Vec::new();
    let psdu = received(r, &mut ack)?;
    if !psdu.bytes.is_empty() {
        out.append(&mut ack);
    }
    fields(&SECURED, r, out)?;
    Ok(psdu)
}

/// Whether the last two bytes are the FCS. The radio has checked it, and some radios put other
/// bytes in its place.
fn fcs_of(psdu: &[u8], flags: u16) -> Fcs {
    match ieee802154::check_fcs(psdu) {
        Err(ParseError::Fcs) if flags & BAD_FCS == 0 => Fcs::Replaced,
        _ => Fcs::Crc16,
    }
}

const REQUEST: [(&str, Form); 11] = [
    ("channel", Form::U8),
    ("csma_backoffs_max", Form::U8),
    ("retries_max", Form::U8),
    ("csma", Form::Bool),
    ("header_updated", Form::Bool),
    ("retransmission", Form::Bool),
    ("secured", Form::Bool),
    ("delay_us", Form::U32),
    ("base_us", Form::U32),
    ("channel_afterwards", Form::U8),
    ("power_dbm", Form::I8(None)),
];

const RECEIVED: [(&str, Form); 2] = [
    ("rssi_dbm", Form::I8(Some(127))),
    ("noise_dbm", Form::I8(Some(-128))),
];

const PHY: [(&str, Form); 3] = [
    ("channel", Form::U8),
    ("lqi", Form::U8),
    // The radio's clock at the end of the start-of-frame delimiter.
    ("sfd_us", Form::U64),
];

/// Why the radio refused the frame, by OpenThread's numbers.
const VENDOR: [(&str, Form); 1] = [("error", Form::Packed)];

const MAC: [(&str, Form); 2] = [
    ("ack_key_index", Form::U8),
    ("ack_frame_counter", Form::U32),
];

const REPORT: [(&str, Form); 2] = [("ack_pending", Form::Bool), ("header_updated", Form::Bool)];

/// By which key and counter the radio secured the frame.
const SECURED: [(&str, Form); 2] = [("key_index", Form::U8), ("frame_counter", Form::U32)];

/// The radio's remarks.
const FLAGS: [(u16, &str); 5] = [
    (1, "sent by this radio"),
    (BAD_FCS, "FCS wrong"),
    (8, "duplicate"),
    (0x10, "acknowledged with frame pending"),
    (ACKED_SECURED, "acknowledged by a secured ACK"),
];

const BAD_FCS: u16 = 4;
const ACKED_SECURED: u16 = 0x20;
