//! Bluetooth LE: packets of the link layer, L2CAP, and IPv6 in SDUs of a credit-based channel.
//!
//! ```text
//! +---------------------------+----------------+--------+-----+---------+-----+
//! | channel, strength, flags  | access address | header | len | payload | CRC |
//! +---------------------------+----------------+--------+-----+---------+-----+
//!             10 B                  4 B            1 B    1 B    0-251 B   3 B
//! ```
//!
//! Place: for records of link type 256; a complete SDU is passed to the 6LoWPAN layer. A connection
//! is known from its CONNECT_IND. If that is not in the capture, the device addresses are unknown,
//! and so are IPv6 addresses that are elided from them. Left out: encrypted packets, extended
//! advertising, the coded PHY, services other than IPv6 and TCPlE, and ATT. Sources: Bluetooth Core
//! 5.4 Vol 6 Part B §2 and Vol 3 Part A §3 and §4; RFC 7668;
//! <https://www.tcpdump.org/linktypes/LINKTYPE_BLUETOOTH_LE_LL_WITH_PHDR.html>.

use std::collections::BTreeMap;

use crc::{Algorithm, CRC_24_BLE, Crc, NoTable};
use motet::lowpan::LinkPair;
use motet::wire::LinkAddr;
use motet::wire::att;
use motet::wire::cursor::{Reader, Truncated};
use motet::wire::l2cap::{DYNAMIC, Header, SIGNALLING, Signal};
use motet::wire::tcple::Sdu;

use super::mac::link_addr;
use crate::Decoder;
use crate::model::{Frame, Layer, Status, Value, hex16};
use crate::next::Next;

/// Connections that the capture shows.
#[derive(Debug, Default)]
pub(crate) struct Connections(BTreeMap<u32, Connection>);

/// A connection of Bluetooth LE.
#[derive(Debug, Default)]
struct Connection {
    /// The central and the peripheral; none where the capture begins later.
    ends: Option<[LinkAddr; 2]>,
    crc_init: Option<u32>,
    /// The two directions, that of the central first.
    ways: [DirectionState; 2],
    /// The last frame of it.
    last: u64,
    /// For each end, the channel identifier that it has given TCPlE's channel; then the end whose
    /// request for that channel has no response yet.
    tcple: [Option<u16>; 2],
    asks_for_tcple: Option<usize>,
}

impl Connection {
    /// Takes note of channels that open.
    fn note(&mut self, way: usize, signal: &Signal) {
        match signal {
            Signal::ConnectionRequest { service, end } if *service != IPSP => {
                self.tcple[way] = Some(end.channel);
                self.asks_for_tcple = Some(way);
            }
            Signal::ConnectionResponse { result, end } if self.asks_for_tcple == Some(1 - way) => {
                self.asks_for_tcple = None;
                match result {
                    0 => self.tcple[way] = Some(end.channel),
                    _ => self.tcple[1 - way] = None,
                }
            }
            _ => {}
        }
    }
}

/// One direction of a connection.
#[derive(Debug, Default)]
struct DirectionState {
    /// Sequence number and payload of the last packet.
    sent: Option<(bool, Vec<u8>)>,
    /// The L2CAP PDU that goes on, from its header.
    pdu: Vec<u8>,
    /// The SDU that goes on, and its length.
    sdu: Option<(usize, Vec<u8>)>,
}

/// Explains a record of link type 256.
pub(super) fn explain<'a>(decoder: &mut Decoder, frame: &mut Frame, bytes: &[u8]) -> Next<'a> {
    let mut r = Reader::new(bytes);
    let header = (|| {
        let (channel, signal) = (r.u8()?, r.u8()?);
        let _noise_offences_reference = r.array::<6>()?;
        Ok::<_, Truncated>((channel, signal, r.u16_le()?, r.array::<4>()?))
    })();
    let Ok((channel, signal, flags, address)) = header else {
        return frame.malformed("ble_rf", "Bluetooth LE header truncated");
    };
    let address = u32::from_le_bytes(address);
    let (phy, kind) = (flags >> 14, flags >> 7 & 7);
    frame.push(
        Layer::new("ble_rf", "")
            .with("frequency_mhz", 2_402 + 2 * u64::from(channel))
            .with(
                "phy",
                ["1M", "2M", "coded", "?"][usize::from(phy)].to_owned(),
            )
            .with(
                "signal_dbm",
                (flags & HAS_SIGNAL != 0).then(|| Value::Signed(i64::from(signal as i8))),
            ),
    );
    if flags & DEWHITENED == 0 || phy > 1 {
        return frame.undecoded("ble_rf", "whitened, or of the coded PHY");
    }
    let packet = r.rest();
    let split = packet.split_last_chunk::<3>();
    let Some((pdu, check)) = split.filter(|(pdu, _)| pdu.len() >= 2) else {
        return frame.malformed("ble_ll", "packet truncated");
    };
    let is_advertising = address == ADVERTISING;
    let init = match is_advertising {
        true => Some(CRC_ADVERTISING),
        false => decoder.ble.0.get(&address).and_then(|known| known.crc_init),
    };
    // A receiver that checked it knows, too.
    let is_wrong = match init {
        Some(init) => check_sum(init, pdu) != *check,
        None => flags & CRC_CHECKED != 0 && flags & CRC_RIGHT == 0,
    };
    if is_wrong {
        return frame.malformed("ble_ll", "the check sum does not match");
    }
    let (&[head, len], payload) = pdu.split_first_chunk().unwrap_or((&[0, 0], &[]));
    if usize::from(len) != payload.len() {
        return frame.malformed("ble_ll", "the length does not fit the packet");
    }
    match (is_advertising, kind) {
        (true, 0) => decoder.ble.advertisement(frame, head, payload),
        (false, 2 | 3) => data(
            decoder,
            frame,
            (address, usize::from(kind - 2)),
            head,
            payload,
        ),
        _ => frame.undecoded("ble_ll", format!("packet type {kind}")),
    }
}

impl Connections {
    /// A packet on an advertising channel.
    fn advertisement(&mut self, frame: &mut Frame, head: u8, payload: &[u8]) -> Next<'static> {
        let device = |mut bytes: [u8; 6]| {
            bytes.reverse();
            LinkAddr::Device(bytes)
        };
        let mut r = Reader::new(payload);
        let kind = head & 0x0f;
        let Ok(first) = r.array::<6>().map(device) else {
            return frame.malformed("ble_ll", "advertisement truncated");
        };
        let name = ADVERTISEMENTS.get(usize::from(kind)).copied();
        let Some(name) = name.filter(|name| !name.is_empty()) else {
            return frame.undecoded("ble_ll", format!("advertising packet type {kind}"));
        };
        let layer = Layer::new("ble_ll", name).with("from", link_addr(first));
        frame.between(link_addr(first), "all");
        frame.say(name);
        if kind != CONNECT_IND {
            let data = Some(r.rest().to_vec()).filter(|data| !data.is_empty());
            frame.push(match data {
                Some(data) => layer.hidden("data", data.as_slice()),
                None => layer,
            });
            return Next::End;
        }
        let fields = (|| {
            let to = device(r.array()?);
            let (address, init) = (r.array::<4>()?, r.array::<3>()?);
            let _window = r.u8()?;
            let (_offset, interval, latency, timeout) =
                (r.u16_le()?, r.u16_le()?, r.u16_le()?, r.u16_le()?);
            Ok::<_, Truncated>((to, address, init, [interval, latency, timeout]))
        })();
        let Ok((to, address, [a, b, c], [interval, latency, timeout])) = fields else {
            frame.push(layer);
            return frame.malformed("ble_ll", "CONNECT_IND truncated");
        };
        let address = u32::from_le_bytes(address);
        frame.between(link_addr(first), link_addr(to));
        frame.say(name);
        frame.push(
            layer
                .with("to", link_addr(to))
                .with("access_address", format!("0x{address:08x}"))
                .with("interval_us", 1_250 * u64::from(interval))
                .with("latency", u64::from(latency))
                .with("timeout_ms", 10 * u64::from(timeout)),
        );
        let connection = self.of(address, frame.number);
        *connection = Connection {
            ends: Some([first, to]),
            crc_init: Some(u32::from_le_bytes([a, b, c, 0])),
            last: frame.number,
            ..Connection::default()
        };
        Next::End
    }

    /// A connection, known so far or not; the one that is silent for longest makes room.
    fn of(&mut self, address: u32, number: u64) -> &mut Connection {
        if self.0.len() >= CONNECTIONS_MAX && !self.0.contains_key(&address) {
            let oldest = self.0.iter().min_by_key(|(_, known)| known.last);
            if let Some(oldest) = oldest.map(|(address, _)| *address) {
                self.0.remove(&oldest);
            }
        }
        let connection = self.0.entry(address).or_default();
        connection.last = number;
        connection
    }
}

/// A packet of a connection; `way`: whose, the central's or the peripheral's.
fn data<'a>(
    decoder: &mut Decoder,
    frame: &mut Frame,
    (address, way): (u32, usize),
    head: u8,
    payload: &[u8],
) -> Next<'a> {
    let connection = decoder.ble.of(address, frame.number);
    let ends = connection.ends;
    let names = ["central", "peripheral"];
    let name = |end: usize| ends.map_or_else(|| names[end].to_owned(), |ends| link_addr(ends[end]));
    frame.between(name(way), name(1 - way));
    let sequence = head & 8 != 0;
    let sent = (sequence, payload.to_vec());
    let way_of = &mut connection.ways[way];
    let is_repeat = way_of.sent.as_ref() == Some(&sent) && !payload.is_empty();
    way_of.sent = Some(sent);
    decoder.now.repeat = is_repeat;
    let kind = match (head & 3, payload) {
        (1, []) => "empty",
        (1, _) => "continuation",
        (2, _) => "start",
        (3, _) => "control",
        _ => "reserved",
    };
    frame.say(kind);
    frame.push(
        Layer::new("ble_ll", kind)
            .with("access_address", format!("0x{address:08x}"))
            .with("sn", u64::from(sequence))
            .with("nesn", u64::from(head >> 2 & 1))
            .with("more_data", head & 16 != 0)
            .with("repeat", is_repeat),
    );
    match head & 3 {
        3 => control(frame, payload),
        0 => frame.malformed("ble_ll", "LLID 0 is reserved"),
        // Nothing new, and where it was cut off before, it still is.
        _ if payload.is_empty() || is_repeat => Next::End,
        llid => gather(decoder, frame, (address, way), llid == 2, payload),
    }
}

fn control(frame: &mut Frame, payload: &[u8]) -> Next<'static> {
    let Some(opcode) = payload.first() else {
        return frame.malformed("ble_ll", "control packet without an opcode");
    };
    let known = CONTROLS.iter().find(|(code, _)| code == opcode);
    let name = known.map_or("LL control", |(_, name)| name);
    frame.say(name);
    frame.push(Layer::new("ble_control", name).with("opcode", hex16((*opcode).into())));
    Next::End
}

/// Adds a packet to the L2CAP PDU that goes on.
fn gather<'a>(
    decoder: &mut Decoder,
    frame: &mut Frame,
    (address, way): (u32, usize),
    is_first: bool,
    payload: &[u8],
) -> Next<'a> {
    let connection = decoder.ble.of(address, frame.number);
    let pdu = &mut connection.ways[way].pdu;
    match is_first {
        true => pdu.clear(),
        false if pdu.is_empty() => {
            return frame.undecoded("l2cap", "the beginning of this PDU is missing");
        }
        false => {}
    }
    pdu.extend_from_slice(payload);
    let Some((header, body)) = Header::parse(pdu) else {
        frame.status = Status::Fragment;
        return Next::End;
    };
    let len = usize::from(header.len);
    if body.len() < len {
        frame.status = Status::Fragment;
        frame.say(format_args!("{} of {len} B of an L2CAP PDU", body.len()));
        return Next::End;
    }
    let body = body.get(..len).unwrap_or_default().to_vec();
    let is_longer = pdu.len() > len + 4;
    pdu.clear();
    frame.push(
        Layer::new("l2cap", format!("{len} B"))
            .with("channel", hex16(header.channel))
            .hidden("len", len),
    );
    if is_longer {
        return frame.malformed("l2cap", "more bytes than the PDU's header says");
    }
    match header.channel {
        SIGNALLING => {
            if let Ok((_, signal)) = Signal::parse(&body) {
                decoder.ble.of(address, frame.number).note(way, &signal);
            }
            signal(frame, &body)
        }
        att::CHANNEL => {
            let opcode = body.first().copied().unwrap_or_default();
            frame.say("ATT");
            frame.push(Layer::new("att", "ATT").with("opcode", hex16(opcode.into())));
            Next::End
        }
        channel if DYNAMIC.contains(&channel) => {
            k_frame(decoder, frame, (address, way, channel), &body)
        }
        channel => frame.undecoded("l2cap", format!("channel 0x{channel:04x}")),
    }
}

fn signal(frame: &mut Frame, body: &[u8]) -> Next<'static> {
    let (identifier, signal) = match Signal::parse(body) {
        Ok(found) => found,
        Err(error) => return frame.malformed("l2cap", error.reason()),
    };
    let layer = |title: &str| Layer::new("l2cap_signal", title).with("identifier", identifier);
    let (title, layer) = match signal {
        Signal::Reject { reason } => ("reject", layer("reject").with("reason", hex16(reason))),
        Signal::DisconnectionRequest { .. } => ("disconnect", layer("disconnect")),
        Signal::DisconnectionResponse { .. } => ("disconnected", layer("disconnected")),
        Signal::ParameterRequest(_) => ("parameters", layer("parameters")),
        Signal::ParameterResponse { result } => (
            "parameters",
            layer("parameters").with("result", hex16(result)),
        ),
        Signal::ConnectionRequest { service, end } => {
            let layer = layer("connect").with("service", hex16(service));
            let layer = layer.with("channel", hex16(end.channel));
            let layer = layer
                .with("mtu", u64::from(end.mtu))
                .with("mps", u64::from(end.mps));
            ("connect", layer.with("credits", u64::from(end.credits)))
        }
        Signal::ConnectionResponse { result, end } => {
            let layer = layer("connected").with("result", hex16(result));
            let layer = layer.with("channel", hex16(end.channel));
            let layer = layer
                .with("mtu", u64::from(end.mtu))
                .with("mps", u64::from(end.mps));
            ("connected", layer.with("credits", u64::from(end.credits)))
        }
        Signal::Credits { channel, credits } => {
            let layer = layer("credits").with("channel", hex16(channel));
            ("credits", layer.with("credits", u64::from(credits)))
        }
    };
    frame.say(format_args!("L2CAP {title}"));
    frame.push(layer);
    Next::End
}

/// Adds a K-frame to the SDU that goes on.
fn k_frame<'a>(
    decoder: &mut Decoder,
    frame: &mut Frame,
    (address, way, channel): (u32, usize, u16),
    body: &[u8],
) -> Next<'a> {
    let connection = decoder.ble.of(address, frame.number);
    let ends = connection.ends.unwrap_or([LinkAddr::Device([0; 6]); 2]);
    let is_tcple = connection.tcple[1 - way] == Some(channel);
    let slot = &mut connection.ways[way].sdu;
    let (len, mut sdu) = match slot.take() {
        Some((len, mut sdu)) => {
            sdu.extend_from_slice(body);
            (len, sdu)
        }
        None => match body.split_first_chunk() {
            Some((len, start)) => (usize::from(u16::from_le_bytes(*len)), start.to_vec()),
            None => return frame.malformed("l2cap", "K-frame without the length of its SDU"),
        },
    };
    if sdu.len() > len {
        return frame.malformed("l2cap", "more bytes than the SDU's length says");
    }
    if sdu.len() < len {
        frame.status = Status::Fragment;
        frame.say(format_args!("{} of {len} B of an SDU", sdu.len()));
        *slot = Some((len, std::mem::take(&mut sdu)));
        return Next::End;
    }
    let pair = LinkPair {
        src: ends[way],
        dst: ends[1 - way],
    };
    decoder.now.heard_from = Some(pair.src);
    match is_tcple {
        true => tcple(frame, pair, &sdu),
        false => Next::Lowpan(pair, sdu.into()),
    }
}

/// An SDU of TCPlE's channel.
fn tcple<'a>(frame: &mut Frame, pair: LinkPair, sdu: &[u8]) -> Next<'a> {
    let Ok((kind, packet)) = Sdu::parse(sdu) else {
        return frame.malformed("tcple", "not a type of TCPlE's");
    };
    let layer = |name: &str| Layer::new("tcple", name).with("type", name);
    let layer = match kind {
        Sdu::Plain => layer("plain"),
        Sdu::Ack { waited_ms } => layer("ACK").with("waited_ms", u64::from(waited_ms)),
        Sdu::Prefetched { flow } => layer("ahead").with("flow", u64::from(flow)),
        Sdu::Release { flow, bytes } => layer("release")
            .with("flow", u64::from(flow))
            .with("bytes", u64::from(bytes)),
        Sdu::Filler => layer("filler"),
    };
    frame.push(layer);
    match kind {
        Sdu::Release { bytes, .. } => frame.say(format_args!("TCPlE releases {bytes} B")),
        Sdu::Filler => frame.say("TCPlE filler"),
        _ => return Next::Lowpan(pair, packet.to_vec().into()),
    }
    Next::End
}

/// The service of IPv6.
const IPSP: u16 = 0x0023;

const ADVERTISING: u32 = 0x8e89_bed6;
const CRC_ADVERTISING: u32 = 0x55_5555;

const DEWHITENED: u16 = 1;
const HAS_SIGNAL: u16 = 2;
const CRC_CHECKED: u16 = 0x0400;
const CRC_RIGHT: u16 = 0x0800;

/// The check sum of a packet, header and payload, as its three bytes are on the air: the register
/// begins with `init` (Vol 6 Part B §3.1.1).
fn check_sum(init: u32, pdu: &[u8]) -> [u8; 3] {
    const BLE: Algorithm<u32> = CRC_24_BLE;
    let crc = Crc::<u32, NoTable>::new(&BLE);
    let mut digest = crc.digest_with_initial(init);
    digest.update(pdu);
    let [a, b, c, _] = digest.finalize().to_le_bytes();
    [a, b, c]
}

const CONNECT_IND: u8 = 5;
/// Names of advertising PDUs by type; an empty name stands for one that is not read further.
const ADVERTISEMENTS: [&str; 7] = [
    "ADV_IND",
    "",
    "ADV_NONCONN_IND",
    "",
    "SCAN_RSP",
    "CONNECT_IND",
    "ADV_SCAN_IND",
];

/// Control packets by opcode (Vol 6 Part B §2.4.2).
const CONTROLS: [(u8, &str); 12] = [
    (0x00, "LL_CONNECTION_UPDATE_IND"),
    (0x01, "LL_CHANNEL_MAP_IND"),
    (0x02, "LL_TERMINATE_IND"),
    (0x07, "LL_UNKNOWN_RSP"),
    (0x08, "LL_FEATURE_REQ"),
    (0x09, "LL_FEATURE_RSP"),
    (0x0c, "LL_VERSION_IND"),
    (0x14, "LL_LENGTH_REQ"),
    (0x15, "LL_LENGTH_RSP"),
    (0x16, "LL_PHY_REQ"),
    (0x17, "LL_PHY_RSP"),
    (0x18, "LL_PHY_UPDATE_IND"),
];

/// Connections remembered at once; each holds at most two PDUs and two SDUs of 64 KiB.
const CONNECTIONS_MAX: usize = 128;

#[cfg(test)]
mod tests {
    use super::*;

    /// The lab computes what it sends bit by bit.
    #[test]
    fn the_check_sum_is_the_one_that_a_controller_sends() {
        for init in [CRC_ADVERTISING, 0, 1, 0x80_0000, 0x12_3456] {
            for pdu in [&b"123456789"[..], &[], &[0x02, 0x00]] {
                assert_eq!(check_sum(init, pdu), motet_lab::ble::phy::crc(init, pdu));
            }
        }
        let [a, b, c] = check_sum(CRC_ADVERTISING, b"123456789");
        assert_eq!(u32::from_le_bytes([a, b, c, 0]), CRC_24_BLE.check);
    }
}
