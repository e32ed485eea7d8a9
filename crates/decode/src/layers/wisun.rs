//! Wi-SUN's information elements: what a field area network says of its timing, channels and keys.
//!
//! Place: the content of two elements that [`super::elements`] reads, one of the header and one of
//! the payload. Left out: explicit channel plans and elements of nodes that sleep, which are shown
//! as bytes.
//! Source: Wi-SUN FAN Technical Profile 1.1, §6.3.2.1; the numbers are those of Wireshark's
//! dissector, which tests compare with.

use motet::wire::cursor::Reader;

use super::nested::{known, nested};
use crate::model::{Field, Value, hex8};

/// The element of the header: an octet that names it, and its content.
pub(super) fn header(content: &[u8]) -> Option<Vec<Field>> {
    let (sub_id, content) = content.split_first()?;
    let mut r = Reader::new(content);
    let (name, fields) = match sub_id {
        0x01 => {
            let kind = r.u8().ok()? & 0xf;
            let shown = [("frame_type", frame_type(kind)), ("ufsi", u24(&mut r)?)];
            ("unicast timing", known(shown))
        }
        0x02 => {
            let slot = r.u16_le().ok()?;
            let shown = [("slot", slot.into()), ("interval_offset_ms", u24(&mut r)?)];
            ("broadcast timing", known(shown))
        }
        0x03 => {
            let (tx, rx) = (r.u8().ok()?, r.u8().ok()?);
            let shown = [("transmit_ms", tx.into()), ("receive_ms", rx.into())];
            ("flow control", known(shown))
        }
        0x04 => {
            let level = i64::from(r.u8().ok()?) + RSL_LEAST_DBM;
            ("received signal level", known([("rsl_dbm", level.into())]))
        }
        0x09 => {
            let eui64 = r.slice(8).ok()?;
            ("EAPOL authenticator", known([("eui64", eui64.into())]))
        }
        _ => ("unknown", known([("data", r.rest().into())])),
    };
    Some(titled(*sub_id, name, fields))
}

/// The elements nested in that of the payload.
pub(super) fn payload(content: &[u8]) -> Option<Vec<Field>> {
    let mut elements = Vec::new();
    nested(content, |is_long, id, content| {
        let read = match (is_long, id) {
            (true, 0x1) => Some(("unicast schedule", unicast(content))),
            (true, 0x2) => Some(("broadcast schedule", broadcast(content))),
            (false, 0x04) => Some(("PAN information", pan(content))),
            (false, 0x05) => {
                let name = String::from_utf8_lossy(content).into_owned();
                Some(("network name", Some(known([("name", name.into())]))))
            }
            (false, 0x06) => Some(("PAN version", version(content))),
            (false, 0x07) => Some(("GTK hash", hashes(content))),
            _ => None,
        };
        let (name, fields) = read.unwrap_or(("unknown", None));
        let fields = fields.unwrap_or_else(|| known([("data", content.into())]));
        elements.push(Value::Group(titled(id as u8, name, fields)));
    })
    .ok()?;
    Some(known([("nested", Value::List(elements))]))
}

fn titled(id: u8, name: &'static str, fields: Vec<Field>) -> Vec<Field> {
    let mut all = known([("sub_id", hex8(id)), ("sub_element", name.into())]);
    all.extend(fields);
    all
}

fn unicast(content: &[u8]) -> Option<Vec<Field>> {
    let mut r = Reader::new(content);
    schedule(&mut r)
}

fn broadcast(content: &[u8]) -> Option<Vec<Field>> {
    let mut r = Reader::new(content);
    let interval = r.u16_le().ok().map(u32::from)? | u32::from(r.u16_le().ok()?) << 16;
    let id = r.u16_le().ok()?;
    let mut fields = known([("interval_ms", interval.into()), ("schedule_id", id.into())]);
    fields.extend(schedule(&mut r)?);
    Some(fields)
}

/// Dwell time, clock, and which channels in which order.
fn schedule(r: &mut Reader<'_>) -> Option<Vec<Field>> {
    let (dwell, drift, accuracy) = (r.u8().ok()?, r.u8().ok()?, r.u8().ok()?);
    let control = r.u8().ok()?;
    let mut fields = known([
        ("dwell_ms", dwell.into()),
        ("drift_ppm", drift.into()),
        ("accuracy_10us", accuracy.into()),
        ("channel_plan", (control & 7).into()),
        ("channel_function", (control >> 3 & 7).into()),
    ]);
    if control & 7 == 0 {
        let (domain, class) = (r.u8().ok()?, r.u8().ok()?);
        fields.extend(known([
            ("domain", domain.into()),
            ("operating_class", class.into()),
        ]));
    }
    if !r.is_empty() {
        fields.extend(known([("data", r.rest().into())]));
    }
    Some(fields)
}

fn pan(content: &[u8]) -> Option<Vec<Field>> {
    let mut r = Reader::new(content);
    let (size, cost) = (r.u16_le().ok()?, r.u16_le().ok()?);
    let flags = r.u8().ok()?;
    Some(known([
        ("size", size.into()),
        ("routing_cost", cost.into()),
        ("parents_schedule", (flags & 1 != 0).into()),
        ("rpl", (flags >> 1 & 1 != 0).into()),
        ("tps_version", (flags >> 5).into()),
    ]))
}

fn version(content: &[u8]) -> Option<Vec<Field>> {
    let version = Reader::new(content).u16_le().ok()?;
    Some(known([("version", version.into())]))
}

/// Of each of four group keys the last eight octets of its SHA-256; zeros: there is none.
fn hashes(content: &[u8]) -> Option<Vec<Field>> {
    let hashes = content.chunks_exact(8).map(Value::from);
    (content.len() == 32).then(|| known([("hashes", Value::List(hashes.collect()))]))
}

fn frame_type(kind: u8) -> Value {
    match FRAME_TYPES.get(usize::from(kind)) {
        Some(name) => (*name).into(),
        None => kind.into(),
    }
}

/// Three octets, the least significant first.
fn u24(r: &mut Reader<'_>) -> Option<Value> {
    let low = u32::from(r.u16_le().ok()?);
    Some((low | u32::from(r.u8().ok()?) << 16).into())
}

const FRAME_TYPES: [&str; 8] = [
    "PAN advertisement",
    "PAN advertisement solicit",
    "PAN configuration",
    "PAN configuration solicit",
    "data",
    "ack",
    "EAPOL",
    "extended",
];

/// What a level of 0 stands for.
const RSL_LEAST_DBM: i64 = -174;
