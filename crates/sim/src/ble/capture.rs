//! Packets as a capture holds them: link type 256, behind a header of its own.
//!
//! Source: <https://www.tcpdump.org/linktypes/LINKTYPE_BLUETOOTH_LE_LL_WITH_PHDR.html>.

use motet::ble::{DeviceAddr, Phy};
use motet::time::{Duration, Instant};

use super::Air;
use super::advertise::{CONNECT_TIME, advertisement_time};
use super::channel::frequency;
use super::connection::{CENTRAL, CONTINUATION, ConnectionEvent, PERIPHERAL};
use super::phy::crc;

/// A packet that has left the air.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packet {
    /// The device that sent it.
    pub from: usize,
    /// The device that it was for; none of an advertisement.
    pub to: Option<usize>,
    /// When the packet began on the air.
    pub start: Instant,
    /// When the packet's last bit had passed.
    pub end: Instant,
    /// The channel, 0 to 39.
    pub channel: u8,
    /// Whether the packet is of a connection; else it leads to one.
    pub is_of_connection: bool,
    /// Whether the packet was received, and if not, why.
    pub arrival: Arrival,
    /// As a capture of link type 256 holds it.
    pub bytes: Box<[u8]>,
}

/// The fate of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arrival {
    /// The packet has no single addressee.
    Nobodys,
    /// The other end slept.
    Unattended,
    /// The other end heard nothing, or bit errors.
    Lost,
    /// The other end has it.
    Received,
}

/// A packet on the air: its sender and receiver, when it ended, and its fate.
struct Flight {
    from: usize,
    to: Option<usize>,
    end: Instant,
    arrival: Arrival,
}

/// The direction field of the capture header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CapturedDirection {
    Advertising = 0,
    FromCentral = 2,
    FromPeripheral = 3,
}

impl Air {
    /// Writes the packet that is on the air in a connection event.
    pub(super) fn note_packet(
        &mut self,
        (at, end): (usize, usize),
        event: &ConnectionEvent,
        (passed, arrival): (Instant, Arrival),
    ) {
        if self.capture.is_none() && self.packets.is_none() {
            return;
        }
        let connection = &self.connections[at];
        let sender = &connection.ends[end];
        let pdu = sender.flying.as_ref().and_then(Option::as_ref);
        let (llid, bytes) = pdu.map_or((CONTINUATION, &[][..]), |pdu| (pdu.llid, &pdu.bytes[..]));
        let bits = [(sender.nesn, 2), (sender.sn, 3), (event.more[end], 4)];
        let head = bits
            .iter()
            .fold(llid, |head, (bit, at)| head | u8::from(*bit) << at);
        let packet = [&[head, bytes.len() as u8], bytes].concat();
        let way = match end {
            CENTRAL => CapturedDirection::FromCentral,
            _ => CapturedDirection::FromPeripheral,
        };
        let address = (connection.access_address, connection.crc_init);
        let phy = connection.phy;
        let flight = Flight {
            from: sender.device,
            to: Some(connection.ends[1 - end].device),
            end: passed,
            arrival,
        };
        let how = (event.channel, phy, way);
        self.write(event.begun, address, how, (&packet, flight));
    }

    /// Writes an advertisement: ADV_IND.
    pub(super) fn note_advertisement(
        &mut self,
        at: Instant,
        channel: u8,
        device: usize,
        data: &[u8],
    ) {
        let from = self.devices[device].addr;
        let head = ADV_IND | SELECTS_BY_2 | u8::from(from.is_random) << 6;
        let len = (6 + data.len()) as u8;
        let packet = [&[head, len], &reversed(from)[..], data].concat();
        let how = (channel, Phy::Le1M, CapturedDirection::Advertising);
        let flight = Flight {
            from: device,
            to: None,
            end: at + advertisement_time(data.len()),
            arrival: Arrival::Nobodys,
        };
        self.write(at, ADVERTISING, how, (&packet, flight));
    }

    /// Writes a request for a connection: CONNECT_IND. `wait`: from the earliest first event to
    /// that of this connection.
    pub(super) fn note_connect(
        &mut self,
        number: usize,
        at: Instant,
        (channel, wait): (u8, Duration),
    ) {
        let connection = &self.connections[number];
        let [central, peripheral] =
            [CENTRAL, PERIPHERAL].map(|end| self.devices[connection.ends[end].device].addr);
        let randoms = u8::from(central.is_random) << 6 | u8::from(peripheral.is_random) << 7;
        let mut packet = vec![CONNECT_IND | SELECTS_BY_2 | randoms, 34];
        packet.extend_from_slice(&reversed(central));
        packet.extend_from_slice(&reversed(peripheral));
        packet.extend_from_slice(&connection.access_address.to_le_bytes());
        let [a, b, c, _] = connection.crc_init.to_le_bytes();
        packet.extend_from_slice(&[a, b, c, WINDOW_SIZE]);
        let offset = (wait.as_micros() / 1_250) as u16;
        let timing = connection.timing;
        for word in [offset, timing.interval, timing.latency, timing.timeout] {
            packet.extend_from_slice(&word.to_le_bytes());
        }
        packet.extend_from_slice(&connection.map.to_bytes());
        packet.push(HOP);
        let how = (channel, Phy::Le1M, CapturedDirection::Advertising);
        let [from, to] = [CENTRAL, PERIPHERAL].map(|end| connection.ends[end].device);
        let flight = Flight {
            from,
            to: Some(to),
            end: at + CONNECT_TIME,
            arrival: Arrival::Received,
        };
        self.write(at, ADVERTISING, how, (&packet, flight));
    }

    fn write(
        &mut self,
        at: Instant,
        (access_address, crc_init): (u32, u32),
        (channel, phy, way): (u8, Phy, CapturedDirection),
        (packet, flight): (&[u8], Flight),
    ) {
        if self.capture.is_none() && self.packets.is_none() {
            return;
        }
        let rssi = self
            .signal
            .told((flight.from, flight.to.unwrap_or(flight.from)));
        let phy = match phy {
            Phy::Le1M => 0,
            Phy::Le2M => 1,
        };
        let flags: u16 = GOOD | (way as u16) << 7 | phy << 14;
        let mut record = vec![frequency(channel), rssi as u8, 0, 0];
        record.extend_from_slice(&access_address.to_le_bytes());
        record.extend_from_slice(&flags.to_le_bytes());
        record.extend_from_slice(&access_address.to_le_bytes());
        record.extend_from_slice(packet);
        record.extend_from_slice(&crc(crc_init, packet));
        if let Some(capture) = &mut self.capture {
            capture.packet(at, &record);
        }
        if let Some(packets) = &mut self.packets {
            packets.push(Packet {
                from: flight.from,
                to: flight.to,
                start: at,
                end: flight.end,
                channel,
                is_of_connection: way != CapturedDirection::Advertising,
                arrival: flight.arrival,
                bytes: record.into(),
            });
        }
    }
}

/// An address in the order of the air.
fn reversed(addr: DeviceAddr) -> [u8; 6] {
    let mut bytes = addr.bytes;
    bytes.reverse();
    bytes
}

const ADV_IND: u8 = 0;
const CONNECT_IND: u8 = 5;
/// Both ends know channel selection algorithm #2.
const SELECTS_BY_2: u8 = 0x20;
/// In units of 1.25 ms.
const WINDOW_SIZE: u8 = 1;
/// A hop of five, which algorithm #2 has no use for, and a clock that is up to 50 ppm off.
const HOP: u8 = 5 | 5 << 5;
/// Access address and first value of the check sum of what is no connection's.
const ADVERTISING: (u32, u32) = (0x8e89_bed6, 0x55_5555);
/// Dewhitened; signal strength and reference access address are there; the check sum was checked
/// and is right.
const GOOD: u16 = 0x0001 | 0x0002 | 0x0010 | 0x0400 | 0x0800;
