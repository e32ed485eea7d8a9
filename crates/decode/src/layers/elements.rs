//! Information elements of IEEE 802.15.4-2015: fields of a frame beside its payload.
//!
//! ```text
//! header:  length 0-6,  id 7-14,    type 15 = 0     each 16 bits, least significant byte
//! payload: length 0-10, group 11-14, type 15 = 1    first, then `length` bytes of content
//! nested:  length 0-7,  id 8-14,    type 15 = 0     within a payload element MLME
//!          length 0-10, id 11-14,   type 15 = 1
//! ```
//!
//! Place: under [`super::envelope`]. Left out: the content of most elements, which is shown as
//! bytes beside the element's name.
//! Source: IEEE 802.15.4-2015 §7.4; RFC 8137 for the IETF's element.

use motet::wire::cursor::Reader;

use super::nested::{cut, known, nested};
use super::wisun;
use crate::model::{Field, Frame, Layer, Value, group, hex8, hex16};

/// How far the elements could be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Elements<'a> {
    /// The elements were read to their end. One of them may hold a packet of 6LoWPAN.
    Done(Option<&'a [u8]>),
    /// The header's elements were read; those of the payload are encrypted with the payload.
    Encrypted,
}

/// Explains the elements from the end of the addresses on; leaves `r` behind them.
///
/// # Errors
/// How the bytes contradict the format, in words.
pub(super) fn explain<'a>(
    frame: &mut Frame,
    r: &mut Reader<'a>,
    is_encrypted: bool,
) -> Result<Elements<'a>, &'static str> {
    let mut elements = Vec::new();
    let payload_follows = header_elements(r, &mut elements);
    show(frame, "header", elements);
    if !payload_follows? {
        return Ok(Elements::Done(None));
    }
    if is_encrypted {
        return Ok(Elements::Encrypted);
    }
    of_payload(frame, r).map(Elements::Done)
}

/// Explains the elements of the payload; returns the packet of 6LoWPAN in one of them, if there
/// is one.
///
/// # Errors
/// How the bytes contradict the format, in words.
pub(super) fn of_payload<'a>(
    frame: &mut Frame,
    r: &mut Reader<'a>,
) -> Result<Option<&'a [u8]>, &'static str> {
    let mut elements = Vec::new();
    let read = payload_elements(r, &mut elements);
    show(frame, "payload", elements);
    read
}

/// Shows the elements that could be read, also where the next one is broken.
fn show(frame: &mut Frame, title: &'static str, elements: Vec<Value>) {
    if !elements.is_empty() {
        frame.push(Layer::new("ie", title).with("elements", elements));
    }
}

/// Reads the header's elements; returns whether payload elements follow.
fn header_elements(r: &mut Reader<'_>, elements: &mut Vec<Value>) -> Result<bool, &'static str> {
    while !r.is_empty() {
        let descriptor = r.u16_le().map_err(cut)?;
        if descriptor >> 15 != 0 {
            return Err("a payload element among those of the header");
        }
        let (id, len) = (descriptor >> 7 & 0xff, usize::from(descriptor & 0x7f));
        let ends = [HEADER_TERMINATION_1, HEADER_TERMINATION_2].contains(&id);
        if ends && len > 0 {
            return Err("an information element that ends the header, but has a content");
        }
        let content = r.slice(len).map_err(cut)?;
        let name = named(HEADER_NAMES, id);
        let fields = match id {
            TIME_CORRECTION => time_correction(content),
            CSL => csl(content),
            VENDOR => vendor(content),
            WISUN => wisun::header(content),
            _ => None,
        };
        elements.push(element(name, id, content, fields));
        if ends {
            return Ok(id == HEADER_TERMINATION_1);
        }
    }
    Ok(false)
}

fn payload_elements<'a>(
    r: &mut Reader<'a>,
    elements: &mut Vec<Value>,
) -> Result<Option<&'a [u8]>, &'static str> {
    let mut packet = None;
    while !r.is_empty() {
        let descriptor = r.u16_le().map_err(cut)?;
        if descriptor >> 15 == 0 {
            return Err("a header element among those of the payload");
        }
        let (id, len) = (descriptor >> 11 & 0xf, usize::from(descriptor & 0x7ff));
        let content = r.slice(len).map_err(cut)?;
        let name = named(PAYLOAD_NAMES, id);
        if id == MLME {
            let nested = nested_elements(content)?;
            elements.push(group([
                ("element", name.into()),
                ("id", hex8(id as u8)),
                ("nested", Value::List(nested)),
            ]));
            continue;
        }
        let fields = match id {
            PAYLOAD_VENDOR => vendor(content),
            PAYLOAD_WISUN => wisun::payload(content),
            MPX => multiplexed(content).map(|(multiplex, of)| {
                packet = (multiplex == MULTIPLEX_LOWPAN).then_some(of).or(packet);
                known([("multiplex", hex16(multiplex)), ("len", of.len().into())])
            }),
            _ => None,
        };
        elements.push(element(name, id, content, fields));
        if id == PAYLOAD_TERMINATION {
            break;
        }
    }
    Ok(packet)
}

/// The protocol and the bytes of a frame of an upper layer that one element holds whole
/// (IEEE 802.15.9-2016 §7.2).
fn multiplexed(content: &[u8]) -> Option<(u16, &[u8])> {
    let mut r = Reader::new(content);
    let is_whole = r.u8().ok()? & 7 == 0;
    let multiplex = r.u16_le().ok().filter(|_| is_whole)?;
    Some((multiplex, r.rest()))
}

/// The nested elements of an MLME element.
fn nested_elements(content: &[u8]) -> Result<Vec<Value>, &'static str> {
    let mut elements = Vec::new();
    nested(content, |is_long, id, content| {
        let names = if is_long { LONG_NAMES } else { SHORT_NAMES };
        let is_synchronization = !is_long && id == TSCH_SYNCHRONIZATION;
        let fields = is_synchronization
            .then(|| synchronization(content))
            .flatten();
        elements.push(element(named(names, id), id, content, fields));
    })?;
    Ok(elements)
}

/// An element by name, with its content as fields where they are known, else as bytes.
fn element(name: &'static str, id: u16, content: &[u8], fields: Option<Vec<Field>>) -> Value {
    let Value::Group(mut shown) = group([("element", name.into()), ("id", hex8(id as u8))]) else {
        return Value::Null;
    };
    match fields {
        Some(fields) => shown.extend(fields),
        None if content.is_empty() => {}
        None => shown.extend(known([("data", content.into())])),
    }
    Value::Group(shown)
}

/// A time correction: bits 0 to 11 are a signed number of microseconds; bit 15 set is a NACK (the
/// frame was not accepted).
fn time_correction(content: &[u8]) -> Option<Vec<Field>> {
    let [low, high] = *content else { return None };
    let word = u16::from_le_bytes([low, high]);
    let correction = (word << 4).cast_signed() >> 4;
    Some(known([
        ("correction_us", i64::from(correction).into()),
        ("nack", (word >> 15 != 0).into()),
    ]))
}

/// Phase and period in units of ten symbols, and in frames that wake up when the payload comes.
fn csl(content: &[u8]) -> Option<Vec<Field>> {
    let mut r = Reader::new(content);
    let (phase, period) = (r.u16_le().ok()?, r.u16_le().ok()?);
    let rendezvous = if r.is_empty() {
        None
    } else {
        Some(r.u16_le().ok()?)
    };
    r.is_empty().then(|| {
        known([
            ("phase", phase.into()),
            ("period", period.into()),
            ("rendezvous", rendezvous.into()),
        ])
    })
}

fn vendor(content: &[u8]) -> Option<Vec<Field>> {
    let (oui, data) = content.split_first_chunk::<3>()?;
    let [low, middle, high] = oui.map(u64::from);
    Some(known([
        ("oui", Value::Hex(high << 16 | middle << 8 | low, 6)),
        ("data", data.into()),
    ]))
}

/// The absolute slot number and the join metric.
fn synchronization(content: &[u8]) -> Option<Vec<Field>> {
    let (asn, metric) = content.split_first_chunk::<5>()?;
    let [metric] = *metric else { return None };
    let asn = asn
        .iter()
        .rev()
        .fold(0, |asn, byte| asn << 8 | u64::from(*byte));
    Some(known([("asn", asn.into()), ("join_metric", metric.into())]))
}

fn named(names: &[(u16, &'static str)], id: u16) -> &'static str {
    let found = names.iter().find(|(known, _)| *known == id);
    found.map_or("unknown", |(_, name)| name)
}

const VENDOR: u16 = 0x00;
const CSL: u16 = 0x1a;
const TIME_CORRECTION: u16 = 0x1e;
const WISUN: u16 = 0x2a;
/// Payload elements follow.
const HEADER_TERMINATION_1: u16 = 0x7e;
/// The payload follows.
const HEADER_TERMINATION_2: u16 = 0x7f;

const HEADER_NAMES: &[(u16, &str)] = &[
    (VENDOR, "vendor specific"),
    (CSL, "CSL"),
    (0x1b, "RIT"),
    (0x1c, "DSME PAN descriptor"),
    (0x1d, "rendezvous time"),
    (TIME_CORRECTION, "time correction"),
    (0x21, "extended DSME PAN descriptor"),
    (0x22, "fragment sequence context description"),
    (0x23, "simplified superframe specification"),
    (0x24, "simplified GTS specification"),
    (0x25, "LECIM capabilities"),
    (0x26, "TRLE descriptor"),
    (0x27, "RCC capabilities"),
    (0x28, "RCCN descriptor"),
    (0x29, "global time"),
    (WISUN, "Wi-SUN"),
    (0x2b, "DA"),
    (HEADER_TERMINATION_1, "header termination 1"),
    (HEADER_TERMINATION_2, "header termination 2"),
];

const MPX: u16 = 0x3;
/// 6LoWPAN's number among EtherTypes, which the element's multiplex IDs are.
const MULTIPLEX_LOWPAN: u16 = 0xa0ed;
const MLME: u16 = 0x1;
const PAYLOAD_VENDOR: u16 = 0x2;
const PAYLOAD_WISUN: u16 = 0x4;
const PAYLOAD_TERMINATION: u16 = 0xf;

const PAYLOAD_NAMES: &[(u16, &str)] = &[
    (0x0, "ESDU"),
    (MLME, "MLME"),
    (PAYLOAD_VENDOR, "vendor specific"),
    (MPX, "MPX"),
    (PAYLOAD_WISUN, "Wi-SUN"),
    (0x5, "IETF"),
    (PAYLOAD_TERMINATION, "payload termination"),
];

const TSCH_SYNCHRONIZATION: u16 = 0x1a;

const SHORT_NAMES: &[(u16, &str)] = &[
    (TSCH_SYNCHRONIZATION, "TSCH synchronization"),
    (0x1b, "TSCH slotframe and link"),
    (0x1c, "TSCH timeslot"),
    (0x1d, "hopping timing"),
    (0x1e, "enhanced beacon filter"),
    (0x1f, "MAC metrics"),
    (0x20, "all MAC metrics"),
    (0x21, "coexistence specification"),
    (0x22, "SUN device capabilities"),
    (0x23, "SUN FSK generic PHY"),
    (0x24, "mode switch parameter"),
    (0x25, "PHY parameter change"),
    (0x26, "O-QPSK PHY mode"),
    (0x27, "PCA allocation"),
    (0x28, "LECIM DSSS operating mode"),
    (0x29, "LECIM FSK operating mode"),
    (0x2b, "TVWS PHY operating mode description"),
    (0x2c, "TVWS device capabilities"),
    (0x2d, "TVWS device category"),
    (0x2e, "TVWS device identification"),
    (0x2f, "TVWS device location"),
    (0x30, "TVWS channel information query"),
    (0x31, "TVWS channel information source"),
    (0x32, "CTM"),
    (0x33, "timestamp"),
    (0x34, "timestamp difference"),
    (0x35, "TMCTP specification"),
    (0x36, "RCC PHY operating mode"),
];

const LONG_NAMES: &[(u16, &str)] = &[(0x8, "vendor specific"), (0x9, "channel hopping")];
