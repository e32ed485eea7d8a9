//! Packets as Nordic's nRF Sniffer for Bluetooth LE hands them over.
//!
//! ```text
//! version 0: 0xbe 0xef  packet id  counter(2)  unused(2)  length(1)               | meta | packet
//! version 1: board  header length (6)  length(1)  version  counter(2)  packet id  10 | meta | packet
//! versions 2, 3: board  length(2)  version  counter(2)  packet id                 10 | meta | packet
//! meta: flags  channel  strength  event counter(2)  time(4)
//! ```
//!
//! Place: for records of link type 272; what follows is a packet from its access address on.
//! Everything is little-endian; the time is since the packet before (versions below 3), or that
//! of the packet's first bit, in microseconds. Source: the description of the format by its maker
//! on tcpdump.org's list of link types (2017), and Wireshark for the versions since.

use motet::wire::cursor::{Reader, Truncated};

use crate::model::{Frame, Layer, Value};
use crate::next::{Next, Packet, Way};

/// Explains a record of link type 272.
pub(super) fn explain<'a>(frame: &mut Frame, bytes: &'a [u8]) -> Next<'a> {
    let mut r = Reader::new(bytes);
    let read = match bytes {
        [0xbe, 0xef, ..] => legacy(&mut r),
        _ => current(&mut r),
    };
    let Ok(header) = read else {
        return frame.malformed("nordic", "nRF Sniffer header truncated");
    };
    frame.push(header.layer());
    if header.version > VERSION_LAST {
        return frame.undecoded("nordic", format!("version {}", header.version));
    }
    let len = usize::from(header.len).checked_sub(META_LEN);
    if header.version > 0 && !frame.is_cut() && len != Some(r.len()) {
        return frame.malformed("nordic", "the length does not fit the record");
    }
    let is_data = match header.version {
        0 | 1 => r.rest().get(..4) != Some(ADVERTISING.as_slice()),
        _ => header.id == DATA,
    };
    let way = match header.flags & FROM_CENTRAL {
        0 => Way::Peripheral,
        _ => Way::Central,
    };
    Next::Bluetooth(Packet {
        bytes: r.rest(),
        is_coded: header.phy() == PHY_CODED,
        is_right: Some(header.flags & CRC_RIGHT != 0),
        way: is_data.then_some(way),
        // With a right MIC the sniffer knew the key, and the payload is in clear.
        is_encrypted: is_data && header.flags & (ENCRYPTED | MIC_RIGHT) == ENCRYPTED,
        channel: header.channel,
    })
}

struct Header {
    version: u8,
    board: Option<u8>,
    counter: u16,
    id: u8,
    len: u16,
    flags: u8,
    channel: u8,
    strength: u8,
    event: u16,
    time_us: u32,
}

fn legacy(r: &mut Reader<'_>) -> Result<Header, Truncated> {
    let _marker = r.u16()?;
    let (id, counter) = (r.u8()?, r.u16_le()?);
    let _unused = r.u16()?;
    let len = u16::from(r.u8()?);
    meta(r, 0, None, (counter, id, len))
}

fn current(r: &mut Reader<'_>) -> Result<Header, Truncated> {
    let board = r.u8()?;
    let (first, second, version) = (r.u8()?, r.u8()?, r.u8()?);
    let (counter, id) = (r.u16_le()?, r.u8()?);
    let len = match version {
        1 => u16::from(second),
        _ => u16::from_le_bytes([first, second]),
    };
    let _meta_len = r.u8()?;
    meta(r, version, Some(board), (counter, id, len))
}

fn meta(
    r: &mut Reader<'_>,
    version: u8,
    board: Option<u8>,
    (counter, id, len): (u16, u8, u16),
) -> Result<Header, Truncated> {
    Ok(Header {
        version,
        board,
        counter,
        id,
        len,
        flags: r.u8()?,
        channel: r.u8()?,
        strength: r.u8()?,
        event: r.u16_le()?,
        time_us: u32::from_le_bytes(r.array()?),
    })
}

impl Header {
    const fn phy(&self) -> u8 {
        self.flags >> 4 & 7
    }

    fn layer(&self) -> Layer {
        let time = match self.version {
            3.. => "time_us",
            _ => "since_last_us",
        };
        let phy = ["1M", "2M", "coded"].get(usize::from(self.phy()));
        Layer::new("nordic", "")
            .with("channel", self.channel)
            .with("phy", phy.copied().unwrap_or("?"))
            .with("signal_dbm", Value::Signed(-i64::from(self.strength)))
            .hidden("version", self.version)
            .hidden("board", self.board)
            .hidden("counter", self.counter)
            .hidden("packet_id", self.id)
            .hidden("crc_ok", self.flags & CRC_RIGHT != 0)
            .hidden("event", self.event)
            .hidden(time, self.time_us)
    }
}

/// Bytes between the header and the packet.
const META_LEN: usize = 10;
const VERSION_LAST: u8 = 3;
/// Packet ids of versions 2 and later: 2 is an advertising channel's.
const DATA: u8 = 6;

const CRC_RIGHT: u8 = 1;
const FROM_CENTRAL: u8 = 2;
const ENCRYPTED: u8 = 4;
const MIC_RIGHT: u8 = 8;
const PHY_CODED: u8 = 2;

/// The access address of advertising channels, as it is on the air.
const ADVERTISING: [u8; 4] = [0xd6, 0xbe, 0x89, 0x8e];
