//! ZEP: IEEE 802.15.4 frames in UDP datagrams, as simulators and sniffers exchange them.
//!
//! ```text
//! v1: 'E' 'X' 1 channel device(2) mode lqi reserved(7) length           | PSDU
//! v2: 'E' 'X' 2 1 channel device(2) mode lqi time(8) seq(4) reserved(10) length | PSDU
//! v2: 'E' 'X' 2 2 seq(4)                                       (acknowledgement)
//! ```
//!
//! Place: UDP port 17754, in `udp`. Mode 1 says that the PSDU ends in its FCS, mode 0 that a
//! TI radio's metadata stand in its place.
//! Source: the dissector's description in Wireshark; big-endian throughout.

use motet::wire::cursor::{Reader, Truncated};

use crate::model::{Frame, Layer, hex16};
use crate::next::{Fcs, Next};

/// UDP port of ZEP.
pub(super) const PORT: u16 = 17_754;

/// Explains a ZEP datagram and the frame in it.
pub(super) fn explain<'a>(frame: &mut Frame, bytes: &'a [u8]) -> Next<'a> {
    let mut r = Reader::new(bytes);
    let result = match bytes {
        [b'E', b'X', 1, ..] => data(&mut r, 1),
        [b'E', b'X', 2, 1, ..] => data(&mut r, 2),
        [b'E', b'X', 2, 2, ..] => acknowledgement(&mut r).map(|layer| (layer, None)),
        [b'E', b'X', 2, 255, ..] => {
            frame.push(Layer::new("zep", "hello of a simulated node"));
            frame.say("ZEP hello");
            frame.payload(bytes.get(DATA_LEN_V2..).unwrap_or_default());
            return Next::End;
        }
        [b'E', b'X', 2, kind, ..] => {
            return frame.undecoded("zep", format!("ZEP type {kind} is unknown"));
        }
        [b'E', b'X', version, ..] => {
            return frame.undecoded("zep", format!("ZEP version {version} is unknown"));
        }
        _ => return frame.malformed("zep", "not a ZEP datagram"),
    };
    let Ok((layer, body)) = result else {
        return frame.malformed("zep", "ZEP header truncated");
    };
    frame.push(layer);
    let Some((len, fcs)) = body else {
        frame.say("ZEP acknowledgement");
        return Next::End;
    };
    match r.slice(len) {
        Ok(psdu) => Next::Mac(psdu, fcs),
        Err(Truncated) => frame.malformed(
            "zep",
            format!(
                "ZEP length {len} exceeds the {} bytes in the datagram",
                r.len()
            ),
        ),
    }
}

/// The header of a data datagram: the layer, then length of the PSDU and what it ends in.
fn data(r: &mut Reader<'_>, version: u8) -> Result<(Layer, Option<(usize, Fcs)>), Truncated> {
    r.slice(if version == 1 { 3 } else { 4 })?;
    let channel = r.u8()?;
    let device = r.u16()?;
    let (fcs, mode) = if r.u8()? == 0 {
        (Fcs::Metadata, "metadata")
    } else {
        (Fcs::Crc16, "fcs")
    };
    let lqi = r.u8()?;
    let mut layer = Layer::new("zep", format!("ZEP v{version}"))
        .hidden("version", version)
        .with("channel", channel)
        .with("device", hex16(device))
        .hidden("psdu_ends_in", mode)
        .with("lqi", lqi);
    if version == 1 {
        r.array::<7>()?;
    } else {
        let (seconds, fraction) = (r.u32()?, r.u32()?);
        let seq = r.u32()?;
        r.array::<10>()?;
        layer = layer
            .hidden("ntp_seconds", seconds)
            .hidden("ntp_fraction", fraction)
            .with("seq", seq);
    }
    let len = usize::from(r.u8()? & 0x7f);
    Ok((layer.hidden("psdu_len", len), Some((len, fcs))))
}

fn acknowledgement(r: &mut Reader<'_>) -> Result<Layer, Truncated> {
    r.array::<4>()?;
    let seq = r.u32()?;
    Ok(Layer::new("zep", "ZEP v2 acknowledgement").with("seq", seq))
}

/// Bytes of the header of a version 2 data datagram.
const DATA_LEN_V2: usize = 32;
