//! Bluetooth LE: packets of the link layer, L2CAP, and IPv6 in SDUs of a credit-based channel.
//!
//! Place: for the packets that `radio` and `nordic` find; a complete SDU is passed to the 6LoWPAN
//! layer, packets on advertising channels to `advertisement`. A connection is known from its
//! CONNECT_IND. If that is not in the capture, the device addresses are unknown, and so are IPv6
//! addresses that are elided from them. Left out: encrypted packets, services other than IPv6 and
//! TCPlE, and ATT. Sources: Bluetooth Core 5.4 Vol 6 Part B §2 and Vol 3 Part A §3 and §4; RFC
//! 7668.

use std::collections::BTreeMap;

use crc::{Algorithm, CRC_24_BLE, Crc, NoTable};
use motet::lowpan::LinkPair;
use motet::wire::LinkAddr;
use motet::wire::att;
use motet::wire::l2cap::{DYNAMIC, Header, SIGNALLING, Signal};
use motet::wire::tcple::Sdu;

use super::advertisement;
use super::mac::link_addr;
use crate::Decoder;
use crate::model::{Frame, Layer, Status, hex16};
use crate::next::{Next, Packet, Way};

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
    /// The last packet: its channel, whose it was (0: the central's), when it came.
    event: [u64; 3],
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

/// Explains a packet from its access address on.
pub(super) fn explain<'a>(
    decoder: &mut Decoder,
    frame: &mut Frame,
    packet: Packet<'_>,
) -> Next<'a> {
    let Some((address, mut rest)) = packet.bytes.split_first_chunk() else {
        return frame.malformed("ble_ll", "packet truncated");
    };
    let address = u32::from_le_bytes(*address);
    if packet.is_coded {
        rest = rest.get(CODING_LEN..).unwrap_or_default();
    }
    let Some((&[head, len], _)) = rest.split_first_chunk() else {
        return frame.malformed("ble_ll", "packet truncated");
    };
    let is_advertising = address == ADVERTISING;
    // Of the packets of a connection some have a byte more, which their length does not count.
    let more = usize::from(!is_advertising && head & CTE_PRESENT != 0);
    let len = HEADER_LEN + more + usize::from(len);
    let (pdu, check) = rest.split_at_checked(len).unwrap_or((rest, &[]));
    let payload = pdu.get(HEADER_LEN + more..).unwrap_or_default();
    if !frame.is_cut() && (pdu.len() < len || check.len() != CHECK_LEN) {
        return frame.malformed("ble_ll", "the length does not fit the packet");
    }
    let init = match is_advertising {
        true => Some(CRC_ADVERTISING),
        false => decoder.ble.0.get(&address).and_then(|known| known.crc_init),
    };
    // A receiver that checked it saw the bits of the air; what is in the file may be made up.
    let is_right = match (packet.is_right, init) {
        (None, Some(init)) if check.len() == CHECK_LEN => check_sum(init, pdu) == *check,
        (said, _) => said.unwrap_or(true),
    };
    if !is_right {
        decoder.now.check_wrong = Some(("ble_ll", "the check sum does not match"));
    }
    if is_advertising {
        if let Some(connect) = advertisement::explain(frame, head, payload)
            && is_right
        {
            *decoder.ble.of(connect.address, frame.number) = Connection {
                ends: Some(connect.ends),
                crc_init: Some(connect.crc_init),
                last: frame.number,
                ..Connection::default()
            };
        }
        return Next::End;
    }
    let way = decoder.ble.way_of(address, frame, packet);
    data(
        decoder,
        frame,
        (address, way),
        head,
        (payload, packet.is_encrypted),
    )
}

impl Connections {
    /// Whose packet this is: 0 for the central. Where the receiver does not say it, it follows
    /// from the rule that the central begins each event, on a channel of its own, and the two
    /// take turns.
    fn way_of(&mut self, address: u32, frame: &Frame, packet: Packet<'_>) -> usize {
        let connection = self.of(address, frame.number);
        let at_ns = frame.epoch_ns;
        let [channel, way, last_ns] = connection.event;
        let goes_on = channel == u64::from(packet.channel)
            && at_ns.saturating_sub(last_ns) < EVENT_PAUSE_NS
            && last_ns > 0;
        let way = match packet.way {
            Some(Way::Central) => 0,
            Some(Way::Peripheral) => 1,
            None if goes_on => 1 - way,
            None => 0,
        };
        connection.event = [packet.channel.into(), way, at_ns];
        usize::from(way == 1)
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
    (payload, is_encrypted): (&[u8], bool),
) -> Next<'a> {
    let is_wrong = decoder.now.check_wrong.is_some();
    let connection = decoder.ble.of(address, frame.number);
    let ends = connection.ends;
    let names = ["central", "peripheral"];
    let name = |end: usize| ends.map_or_else(|| names[end].to_owned(), |ends| link_addr(ends[end]));
    frame.between(name(way), name(1 - way));
    let sequence = head & 8 != 0;
    let sent = (sequence, payload.to_vec());
    let way_of = &mut connection.ways[way];
    let is_repeat = way_of.sent.as_ref() == Some(&sent) && !payload.is_empty();
    if !is_wrong {
        way_of.sent = Some(sent);
    }
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
    if is_encrypted && !payload.is_empty() {
        frame.payload(payload);
        return frame.undecoded("ble_ll", "the payload is encrypted");
    }
    match head & 3 {
        // What is wrong is shown, and put together with nothing.
        1 | 2 if is_wrong => Next::End,
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

/// Bytes in front of a PDU's payload.
const HEADER_LEN: usize = 2;
const CHECK_LEN: usize = 3;
/// On the coded PHY, the byte that says how the rest is coded.
const CODING_LEN: usize = 1;
/// The header's bit for a byte about a constant tone extension.
const CTE_PRESENT: u8 = 0x20;
/// An event is over when nothing follows for so long; the pause within it is 150 µs, intervals
/// are at least 7.5 ms.
const EVENT_PAUSE_NS: u64 = 4_000_000;

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
