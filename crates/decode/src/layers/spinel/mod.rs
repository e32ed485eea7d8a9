//! Spinel: what a host and its radio co-processor (RCP) say to each other.
//!
//! ```text
//!  0 1 2 3 4 5 6 7
//! +-+-+-+-+-+-+-+-+---------+----------+-------+
//! |1 0|IID|  TID  | command | property | value |
//! +-+-+-+-+-+-+-+-+---------+----------+-------+
//! ```
//!
//! Place: after `hdlc`, or for a record by itself; what STREAM_RAW carries is an IEEE 802.15.4
//! frame. The command shows the direction. An answer has the transaction (TID) of its request.
//! Left out: properties of NCPs; several commands in one frame.
//! Sources: Spinel's draft (draft-rquattle-spinel-unified) §2 to §4; numbers that are younger than
//! it from OpenThread's `spinel.h`.

mod names;
mod packed;
mod properties;
mod raw;
mod value;

use motet::limits::PSDU_LEN_MAX;
use motet::wire::cursor::{Reader, Truncated};

use self::packed::packed;
use self::properties::{Content, Property, property};
use self::raw::Psdu;
use self::value::{Form, fields, list};
use crate::Decoder;
use crate::model::{Audience, Field, Frame, Layer, Value};
use crate::next::{Fcs, Next};

/// Requests that have no answer yet, by interface and transaction.
#[derive(Debug)]
pub(crate) struct Transactions([Option<Request>; SLOTS]);

/// A request.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// The frame that holds it.
    number: u64,
    /// What it is about; without a property that by which it is answered.
    property: u32,
}

impl Default for Transactions {
    fn default() -> Self {
        Self([None; SLOTS])
    }
}

impl Transactions {
    /// Notes a request, so that its answer is recognised.
    fn ask(&mut self, header: u8, request: Request) {
        if let Some(slot) = self.slot(header) {
            *slot = Some(request);
        }
    }

    /// The request that a frame answers.
    fn answered_by(&mut self, header: u8) -> Option<Request> {
        self.slot(header)?.take()
    }

    /// The place of a header's interface and transaction. `None`: it has no transaction.
    fn slot(&mut self, header: u8) -> Option<&mut Option<Request>> {
        let slot = self.0.get_mut(usize::from(header & HEADER));
        slot.filter(|_| header & TID != 0)
    }
}

/// Explains a frame from its header on, without HDLC-lite.
pub(super) fn explain<'a>(decoder: &mut Decoder, frame: &mut Frame, bytes: &'a [u8]) -> Next<'a> {
    let mut r = Reader::new(bytes);
    let Ok(header) = r.u8() else {
        return frame.malformed("spinel", "Spinel frame truncated");
    };
    if header & !HEADER != FLAG {
        frame.say(format_args!("{} B, no Spinel frame", bytes.len()));
        frame.payload(bytes);
        return frame.undecoded("spinel", "no Spinel: its first byte is not 0x80 to 0xbf");
    }
    let Ok(command) = packed(&mut r) else {
        frame.push(layer(header, "header".into()));
        return frame.malformed("spinel", "Spinel command truncated");
    };
    let Some(name) = names::command(command) else {
        frame.say(format_args!("Spinel command {command}"));
        frame.push(layer(header, format!("command {command}")).hidden("command", command));
        frame.payload(r.rest());
        return frame.undecoded("spinel", format!("command {command} is unknown"));
    };
    match command >= IS {
        true => frame.between("radio", "host"),
        false => frame.between("host", "radio"),
    }
    let named = Named { command, name };
    if command <= RESET {
        let request = Request {
            number: frame.number,
            property: LAST_STATUS,
        };
        decoder.spinel.ask(header, request);
        without_property(frame, header, named, r)
    } else {
        about_property(&mut decoder.spinel, frame, header, named, r)
    }
}

/// A command that is known.
#[derive(Clone, Copy)]
struct Named {
    command: u32,
    name: &'static str,
}

/// The layer of a frame, with what its header says.
fn layer(header: u8, title: String) -> Layer {
    let (interface, tid) = (header >> 4 & 3, header & TID);
    Layer::new("spinel", title)
        .hidden("interface", interface)
        .remark("interface", (interface != 0).then_some(interface))
        .hidden("tid", tid)
        .remark("tid", (tid != 0).then_some(tid))
}

/// A command about a property.
fn about_property<'a>(
    transactions: &mut Transactions,
    frame: &mut Frame,
    header: u8,
    Named { command, name }: Named,
    mut r: Reader<'a>,
) -> Next<'a> {
    let Ok(number) = packed(&mut r) else {
        frame.push(layer(header, name.into()).hidden("command", command));
        return frame.malformed("spinel", "Spinel property truncated");
    };
    let mut answered = None;
    if command >= IS {
        answered = transactions.answered_by(header);
    } else {
        let request = Request {
            number: frame.number,
            property: number,
        };
        transactions.ask(header, request);
    }
    let known = property(number);
    let title = match known {
        Some(property) => format!("{name} {}", property.name),
        None => format!("{name} property 0x{number:x}"),
    };
    let layer = layer(header, title)
        .hidden("command", command)
        .hidden("property", number)
        .with("answers_frame", answered.map(|request| request.number));
    let Some(property) = known else {
        frame.say(format_args!("Spinel {}", layer.title));
        frame.push(layer);
        frame.payload(r.rest());
        return frame.undecoded("spinel", format!("property 0x{number:x} is unknown"));
    };
    of_property(frame, (layer, property), (command, answered), r)
}

/// A command without property: a reset names its kind.
fn without_property<'a>(
    frame: &mut Frame,
    header: u8,
    Named { command, name }: Named,
    mut r: Reader<'a>,
) -> Next<'a> {
    let layer = layer(header, name.into()).hidden("command", command);
    // Old firmware knows no kinds, and its hosts write none.
    let mut found = Vec::new();
    let known = if command == RESET { &RESETS[..] } else { &[] };
    let read = fields(known, &mut r, &mut found);
    conclude(frame, layer, found, r);
    match read {
        Ok(()) => Next::End,
        Err(Truncated) => frame.malformed("spinel", "the kind of the reset is cut off"),
    }
}

/// The value of a property that is known.
fn of_property<'a>(
    frame: &mut Frame,
    (mut layer, property): (Layer, &Property),
    (command, request): (u32, Option<Request>),
    mut r: Reader<'a>,
) -> Next<'a> {
    let is_secret = matches!(property.content, Content::Secrets(_));
    if !is_secret && !r.is_empty() {
        layer = layer.hidden("value", r.rest());
    }
    let mut found = Vec::new();
    let none = Psdu {
        bytes: &[],
        fcs: Fcs::Absent,
    };
    let is_empty = r.is_empty();
    let read = match property.content {
        // A request to read has no value.
        _ if command == GET => Ok(none),
        Content::List(key, form) => list(key, form, &mut r, &mut found).map(|()| none),
        // Nothing where something belongs.
        Content::Fields([(_, Form::Text)]) if is_empty => Ok(none),
        _ if is_empty => Err(Truncated),
        Content::Fields(known) | Content::Secrets(known) => {
            fields(known, &mut r, &mut found).map(|()| none)
        }
        Content::Status => status(request, &mut r, &mut found),
        Content::Raw if command >= IS => raw::received(&mut r, &mut found),
        Content::Raw => raw::request(&mut r, &mut found),
    };
    let further = if is_secret { Reader::new(&[]) } else { r };
    conclude(frame, layer, found, further);
    match read {
        Err(Truncated) => {
            let reason = format!("the value of {} is cut off", property.name);
            frame.malformed("spinel", reason)
        }
        Ok(psdu) if psdu.bytes.is_empty() => Next::End,
        Ok(psdu) if psdu.bytes.len() > PSDU_LEN_MAX => {
            frame.malformed("spinel", "a PSDU of more than 127 B")
        }
        Ok(psdu) => Next::Mac(psdu.bytes, psdu.fcs),
    }
}

/// How a request ended. Behind the status of a transmission is the ACK.
fn status<'a>(
    request: Option<Request>,
    r: &mut Reader<'a>,
    out: &mut Vec<Field>,
) -> Result<Psdu<'a>, Truncated> {
    let mut peek = *r;
    let status = packed(&mut peek)?;
    fields(&STATUS, r, out)?;
    match request {
        Some(request) if request.property != STREAM_RAW => Ok(Psdu {
            bytes: &[],
            fcs: Fcs::Absent,
        }),
        // Without its request, more bytes than a status show a transmission.
        _ => raw::report(status, r, out),
    }
}

/// Ends the layer: its fields, what is left over, and one line about it.
fn conclude(frame: &mut Frame, mut layer: Layer, found: Vec<Field>, rest: Reader<'_>) {
    let texts: Vec<String> = found.iter().flat_map(Field::for_people).collect();
    let mut line = [vec![layer.title.clone()], texts].concat().join(", ");
    if let Some((end, _)) = line.char_indices().nth(LINE_LEN_MAX) {
        line.truncate(end);
        line.push('…');
    }
    frame.say(format_args!("Spinel {line}"));
    layer.fields.extend(found);
    if !rest.is_empty() {
        layer.fields.push(Field {
            key: "further",
            value: Value::Bytes(rest.rest().to_vec()),
            audience: Audience::All,
        });
    }
    frame.push(layer);
}

const STATUS: [(&str, Form); 1] = [("status", Form::Status)];
const RESETS: [(&str, Form); 1] = [(
    "kind",
    Form::Named(&["unknown", "platform", "stack", "bootloader"]),
)];

/// The two bits that begin each frame, the bits behind them, and the transaction's.
const FLAG: u8 = 0x80;
const HEADER: u8 = 0x3f;
const TID: u8 = 0x0f;
/// Four interfaces with sixteen transactions.
const SLOTS: usize = 64;

const RESET: u32 = 1;
const GET: u32 = 2;
const IS: u32 = 6;
const LAST_STATUS: u32 = 0;
const STREAM_RAW: u32 = 0x71;

/// Letters of a value in the line about a frame; its layer shows all.
const LINE_LEN_MAX: usize = 72;
