//! Packets on Bluetooth LE's advertising channels.
//!
//! Place: `bluetooth` calls [`explain`] for packets with the access address of advertising, and
//! keeps the connection that a CONNECT_IND begins. Left out: the structures in advertising data.
//! Source: Bluetooth Core 5.4 Vol 6 Part B §2.3.

use motet::wire::LinkAddr;
use motet::wire::cursor::{Reader, Truncated};

use super::mac::link_addr;
use crate::model::{Frame, Layer, Value, hex16};

/// The connection that a CONNECT_IND begins.
pub(super) struct Connect {
    /// The access address of its packets.
    pub(super) address: u32,
    /// The central and the peripheral.
    pub(super) ends: [LinkAddr; 2],
    /// What the register of its check sums begins with.
    pub(super) crc_init: u32,
}

/// Explains the PDU with the header byte `head`.
pub(super) fn explain(frame: &mut Frame, head: u8, payload: &[u8]) -> Option<Connect> {
    let kind = head & 0x0f;
    let Some(name) = KINDS.get(usize::from(kind)) else {
        frame.undecoded("ble_ll", format!("advertising packet type {kind}"));
        return None;
    };
    let layer = Layer::new("ble_ll", *name);
    let mut r = Reader::new(payload);
    let read = match kind {
        CONNECT_IND => connect(frame, layer, &mut r),
        ADV_DIRECT_IND | SCAN_REQ => two(frame, layer, &mut r),
        ADV_EXT_IND | AUX_CONNECT_RSP => extended(frame, layer, &mut r),
        _ => one(frame, layer, &mut r),
    };
    if let Ok(found) = read {
        return found;
    }
    frame.push(Layer::new("ble_ll", *name));
    frame.say(name);
    frame.malformed("ble_ll", format!("{name} truncated"));
    None
}

/// The sender and its data.
fn one(frame: &mut Frame, layer: Layer, r: &mut Reader<'_>) -> Result<Option<Connect>, Truncated> {
    let from = device(r)?;
    frame.between(link_addr(from), "all");
    frame.say(&layer.title);
    frame.push(with_data(layer.with("from", link_addr(from)), r));
    Ok(None)
}

/// The sender and whom it means.
fn two(frame: &mut Frame, layer: Layer, r: &mut Reader<'_>) -> Result<Option<Connect>, Truncated> {
    let [from, to] = [device(r)?, device(r)?].map(link_addr);
    frame.between(&from, &to);
    frame.say(&layer.title);
    frame.push(with_data(layer.with("from", from).with("to", to), r));
    Ok(None)
}

fn connect(
    frame: &mut Frame,
    layer: Layer,
    r: &mut Reader<'_>,
) -> Result<Option<Connect>, Truncated> {
    let ends = [device(r)?, device(r)?];
    let address = u32::from_le_bytes(r.array()?);
    let [a, b, c] = r.array()?;
    let _window = r.u8()?;
    let (_offset, interval) = (r.u16_le()?, r.u16_le()?);
    let (latency, timeout) = (r.u16_le()?, r.u16_le()?);
    let [from, to] = ends.map(link_addr);
    frame.between(&from, &to);
    frame.say(&layer.title);
    frame.push(
        layer
            .with("from", from)
            .with("to", to)
            .with("access_address", format!("0x{address:08x}"))
            .with("interval_us", 1_250 * u64::from(interval))
            .with("latency", u64::from(latency))
            .with("timeout_ms", 10 * u64::from(timeout)),
    );
    Ok(Some(Connect {
        address,
        ends,
        crc_init: u32::from_le_bytes([a, b, c, 0]),
    }))
}

/// The header of extended advertising, of whose fields each may be absent (§2.3.4).
fn extended(
    frame: &mut Frame,
    layer: Layer,
    r: &mut Reader<'_>,
) -> Result<Option<Connect>, Truncated> {
    let len_and_mode = r.u8()?;
    let mut header = Reader::new(r.slice(usize::from(len_and_mode & 0x3f))?);
    let flags = if header.is_empty() { 0 } else { header.u8()? };
    let mut address = |bit: u8| match flags & bit {
        0 => Ok(None),
        _ => device(&mut header).map(link_addr).map(Some),
    };
    let (from, to) = (address(1)?, address(2)?);
    let set = match flags & 8 {
        0 => None,
        _ => {
            header.slice(usize::from(flags & 4 != 0))?;
            Some(header.u16_le()?)
        }
    };
    let name = |end: &Option<String>, other: &str| end.clone().unwrap_or_else(|| other.to_owned());
    frame.between(name(&from, "?"), name(&to, "all"));
    frame.say(&layer.title);
    let layer = layer
        .with("from", from)
        .with("to", to)
        .with("mode", len_and_mode >> 6)
        .with("set", set.map(hex16));
    frame.push(with_data(layer, r));
    Ok(None)
}

fn with_data(layer: Layer, r: &Reader<'_>) -> Layer {
    match r.rest() {
        [] => layer,
        data => layer.hidden("data", Value::Bytes(data.to_vec())),
    }
}

fn device(r: &mut Reader<'_>) -> Result<LinkAddr, Truncated> {
    let mut bytes: [u8; 6] = r.array()?;
    bytes.reverse();
    Ok(LinkAddr::Device(bytes))
}

const ADV_DIRECT_IND: u8 = 1;
const SCAN_REQ: u8 = 3;
const CONNECT_IND: u8 = 5;
const ADV_EXT_IND: u8 = 7;
const AUX_CONNECT_RSP: u8 = 8;

/// Names of PDUs by type.
const KINDS: [&str; 9] = [
    "ADV_IND",
    "ADV_DIRECT_IND",
    "ADV_NONCONN_IND",
    "SCAN_REQ",
    "SCAN_RSP",
    "CONNECT_IND",
    "ADV_SCAN_IND",
    "ADV_EXT_IND",
    "AUX_CONNECT_RSP",
];
