//! A radio co-processor as the tests play it, with what firmware in the field does.

use std::collections::{BTreeMap, VecDeque};

use motet_spinel::frame::{Command, Frame, Header, Property, Status};
use motet_spinel::hdlc::{self, Decoder};
use motet_spinel::packed::{Reader, Writer};
use motet_spinel::raw::{Flags, ReceivedFrame, Request};

/// What is odd about a radio.
#[derive(Clone, Debug)]
pub(crate) struct Quirks {
    /// How often it tells a restart.
    pub(crate) told: usize,
    /// Sends this between its frames.
    pub(crate) noise: Vec<u8>,
    /// Its structs hold no more than firmware of 2020 wrote.
    pub(crate) has_short_structs: bool,
    /// Before each answer comes one with another transaction, and one about another property.
    pub(crate) mixes: bool,
    /// Writes its own key index and frame counter over those of secured frames, as ot-nrf528xx.
    pub(crate) stamps: bool,
    /// Places in its tables of children.
    pub(crate) places: usize,
    /// Refuses to set this.
    pub(crate) refuses: Option<(Property, Status)>,
    /// Crashes when it is told this.
    pub(crate) crashes_at: Option<Property>,
    /// Its clock at the host's zero, µs, and how much faster it goes.
    pub(crate) clock_us: u64,
    pub(crate) clock_ppm: i64,
    /// Only 32 bits of the clock are counted.
    pub(crate) has_short_clock: bool,
}

/// How a transmission ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    Acked {
        pending: bool,
    },
    /// Only the status.
    Acknowledged,
    Status(Status),
    /// Never.
    Unanswered,
}

pub(crate) struct Fake {
    pub(crate) quirks: Quirks,
    pub(crate) properties: BTreeMap<u32, Vec<u8>>,
    decoder: Decoder,
    /// Bytes for the host, and when they leave.
    pub(crate) sent: VecDeque<(u64, Vec<u8>)>,
    /// Every request but questions, in order.
    pub(crate) told: Vec<(Command, Property, Vec<u8>)>,
    pub(crate) asked: Vec<Property>,
    pub(crate) resets: usize,
    /// Frames as they were on the air.
    pub(crate) air: Vec<Vec<u8>>,
    pub(crate) requests: Vec<(u8, bool, bool, u32, u32)>,
    /// How the next transmissions end; then all are acknowledged.
    pub(crate) ends: VecDeque<End>,
    pub(crate) short: Vec<u16>,
    pub(crate) extended: Vec<[u8; 8]>,
    /// The transmission that goes on: its transaction, and when it ends.
    flight: Option<(u8, u64, End, u8)>,
    /// When a scan ends.
    scans_until: u64,
    /// Properties whose answers are lost, once each.
    pub(crate) loses: Vec<Property>,
    pub(crate) is_deaf: bool,
    rssi_dbm: i8,
}

impl Default for Quirks {
    fn default() -> Self {
        Self {
            told: 2,
            noise: Vec::new(),
            has_short_structs: false,
            mixes: false,
            stamps: false,
            places: 10,
            refuses: None,
            crashes_at: None,
            clock_us: 0x0011_4421_379d,
            clock_ppm: 0,
            has_short_clock: false,
        }
    }
}

pub(crate) const EUI64: [u8; 8] = [0x18, 0xb4, 0x30, 0, 0, 0, 0, 1];

impl Fake {
    pub(crate) fn new(quirks: Quirks) -> Self {
        let caps = [5, 12, 24, 34, 513, 64, 65];
        let caps = caps.iter().fold(Writer::new(), |all, cap| all.packed(*cap));
        let properties = [
            (1, vec![4, 3]),
            (2, b"OPENTHREAD/; SIMULATION\0".to_vec()),
            (3, vec![3]),
            (5, caps.finish()),
            (8, EUI64.to_vec()),
            (0x22, (11..=26).collect()),
            (0xb0, vec![11]),
            (0xb1, vec![4]),
            (0x120b, vec![0x7f]),
        ];
        Self {
            quirks,
            properties: properties.into(),
            decoder: Decoder::default(),
            sent: VecDeque::new(),
            told: Vec::new(),
            asked: Vec::new(),
            resets: 0,
            air: Vec::new(),
            requests: Vec::new(),
            ends: VecDeque::new(),
            short: Vec::new(),
            extended: Vec::new(),
            flight: None,
            scans_until: 0,
            loses: Vec::new(),
            is_deaf: false,
            rssi_dbm: -20,
        }
    }

    /// What its clock shows.
    pub(crate) fn clock(&self, now_us: u64) -> u64 {
        let gained = i128::from(now_us) * i128::from(self.quirks.clock_ppm) / 1_000_000;
        let shown = self
            .quirks
            .clock_us
            .wrapping_add((i128::from(now_us) + gained) as u64);
        if self.quirks.has_short_clock {
            shown & 0xffff_ffff
        } else {
            shown
        }
    }

    pub(crate) fn has(&self, property: Property, value: &[u8]) -> bool {
        self.properties.get(&property.number()).map(Vec::as_slice) == Some(value)
    }

    fn is_on(&self, property: Property) -> bool {
        self.has(property, &[1])
    }

    /// Restarts, and says so.
    pub(crate) fn restart(&mut self, status: u8, now_us: u64) {
        for set in [0x20, 0x21, 0x34, 0x35, 0x36, 0x37, 0x38, 0x1303] {
            self.properties.remove(&set);
        }
        self.short.clear();
        self.extended.clear();
        (self.flight, self.scans_until) = (None, 0);
        for _ in 0..self.quirks.told {
            self.answer(0, Command::Is, Property::LastStatus, &[status], now_us);
        }
    }

    pub(crate) fn on_bytes(&mut self, mut bytes: &[u8], now_us: u64) {
        let mut decoder = std::mem::take(&mut self.decoder);
        while let Some(frame) = decoder.next(&mut bytes) {
            assert!(frame.len() <= REQUEST_LEN_MAX, "too long for real firmware");
            let frame = Frame::parse(frame).expect("the host sends only frames");
            if !self.is_deaf {
                self.on_frame(&frame, now_us);
            }
        }
        self.decoder = decoder;
        let dropped = self.decoder.counters().bytes_dropped;
        assert_eq!(dropped, 0, "the host sends nothing but frames");
    }

    fn on_frame(&mut self, frame: &Frame<'_>, now_us: u64) {
        let transaction = frame.header.transaction;
        let property = frame.property;
        match frame.command {
            Command::Reset => {
                assert_eq!((transaction, frame.value), (0, &[2][..]));
                self.resets += 1;
                self.restart(112, now_us);
                return;
            }
            Command::Get => self.asked.push(property),
            command => self.told.push((command, property, frame.value.to_vec())),
        }
        assert_ne!(transaction, 0, "a request without a transaction");
        if self.quirks.crashes_at == Some(property) {
            return self.restart(116, now_us);
        }
        if let Some(n) = self.loses.iter().position(|lost| *lost == property) {
            self.loses.remove(n);
            return;
        }
        if property == Property::StreamRaw {
            return self.on_transmission(transaction, frame.value, now_us);
        }
        let (property, value) = match self.result(frame, now_us) {
            Ok(value) => (property, value),
            Err(status) => {
                let status = Writer::new().packed(status.number()).finish();
                (Property::LastStatus, status)
            }
        };
        let command = match frame.command {
            Command::Insert if property != Property::LastStatus => Command::Inserted,
            Command::Remove if property != Property::LastStatus => Command::Removed,
            _ => Command::Is,
        };
        if self.quirks.mixes {
            let other = transaction % 15 + 1;
            self.answer(other, command, property, &value, now_us);
            self.answer(transaction, command, Property::PhyTxPower, &[7], now_us);
            self.answer(0, command, Property::Other(999), &[7], now_us);
        }
        self.answer(transaction, command, property, &value, now_us);
    }

    fn result(&mut self, frame: &Frame<'_>, now_us: u64) -> Result<Vec<u8>, Status> {
        let property = frame.property;
        let number = property.number();
        if frame.command == Command::Get {
            if property == Property::RcpTimestamp {
                return Ok(self.clock(now_us).to_le_bytes().to_vec());
            }
            let value = self.properties.get(&number).cloned();
            return value.ok_or(Status::PropertyNotFound);
        }
        if let Some((refused, status)) = self.quirks.refuses
            && refused == property
        {
            return Err(status);
        }
        if property != Property::PhyEnabled && !self.is_on(Property::PhyEnabled) {
            return Err(Status::InvalidState);
        }
        let mut reader = Reader::new(frame.value);
        match (frame.command, property) {
            (Command::Set, Property::SrcMatchShort) => {
                self.short = std::iter::from_fn(|| reader.u16()).collect();
                return Err(self.full_or_ok(self.short.len()));
            }
            (Command::Set, Property::SrcMatchExtended) => {
                self.extended = std::iter::from_fn(|| reader.eui64()).collect();
                return Err(self.full_or_ok(self.extended.len()));
            }
            (Command::Insert, Property::SrcMatchShort) => {
                if self.short.len() == self.quirks.places {
                    return Err(Status::NoMemory);
                }
                self.short.push(reader.u16().unwrap());
            }
            (Command::Insert, Property::SrcMatchExtended) => {
                if self.extended.len() == self.quirks.places {
                    return Err(Status::NoMemory);
                }
                self.extended.push(reader.eui64().unwrap());
            }
            (Command::Remove, Property::SrcMatchShort) => {
                let short = reader.u16().unwrap();
                self.short.retain(|known| *known != short);
            }
            (Command::Remove, Property::SrcMatchExtended) => {
                let extended = reader.eui64().unwrap();
                self.extended.retain(|known| *known != extended);
            }
            (Command::Set, Property::MacScanMask) if frame.value.len() != 1 => {
                return Err(Status::InvalidArgument);
            }
            (Command::Set, Property::MacScanState) => {
                assert!(self.flight.is_none(), "a scan during a transmission");
                self.scan(now_us);
            }
            (Command::Set, _) => {
                assert!(self.flight.is_none(), "a setting during a transmission");
                assert!(now_us >= self.scans_until, "a setting during a scan");
                self.properties.insert(number, frame.value.to_vec());
            }
            _ => return Err(Status::InvalidCommand),
        }
        Ok(frame.value.to_vec())
    }

    fn full_or_ok(&self, len: usize) -> Status {
        if len > self.quirks.places {
            Status::NoMemory
        } else {
            Status::Ok
        }
    }

    fn scan(&mut self, now_us: u64) {
        let channel = self.properties[&0x31][0];
        let period_ms = Reader::new(&self.properties[&0x32]).u16().unwrap();
        let until = now_us + u64::from(period_ms) * 1_000;
        self.scans_until = until;
        let found = [channel, (-60_i8) as u8];
        self.answer(0, Command::Is, Property::EnergyScanResult, &found, until);
        self.answer(0, Command::Is, Property::MacScanState, &[0], until);
    }

    fn on_transmission(&mut self, transaction: u8, value: &[u8], now_us: u64) {
        let request = Request::parse(value).expect("a request to send");
        assert_eq!(request.retries_max, 0);
        assert!(request.csma && request.csma_backoffs_max == 4);
        // As firmware does: a second one takes the place of the first one.
        assert!(self.flight.is_none(), "two frames at a time");
        if !self.is_on(Property::RawStreamEnabled) {
            return self.answer(transaction, Command::Is, Property::LastStatus, &[4], now_us);
        }
        let mut psdu = request.psdu.to_vec();
        let is_secured = psdu[0] & 8 != 0;
        if self.quirks.stamps && is_secured && !request.is_retransmission {
            stamp(&mut psdu);
        }
        self.requests.push((
            request.channel,
            request.is_retransmission,
            request.is_secured,
            request.delay_us,
            request.base_us,
        ));
        let sequence = psdu[2];
        let wants_ack = psdu[0] & 0x20 != 0;
        let air_us = 32 * (6 + psdu.len() as u64 + 2);
        self.air.push(psdu);
        let end = self.ends.pop_front().unwrap_or(if wants_ack {
            End::Acked { pending: false }
        } else {
            End::Status(Status::Ok)
        });
        let acked_us = if wants_ack { ACK_US } else { 0 };
        let ends_at = now_us + u64::from(request.delay_us) + air_us + acked_us;
        self.flight = Some((transaction, ends_at, end, sequence));
    }

    /// Ends what ends by now.
    pub(crate) fn poll(&mut self, now_us: u64) {
        let Some((transaction, ends_at, end, sequence)) = self.flight else {
            return;
        };
        if now_us < ends_at {
            return;
        }
        self.flight = None;
        let writer = match end {
            End::Unanswered => return,
            End::Status(status) => Writer::new()
                .packed(status.number())
                .bool(false)
                .bool(false),
            End::Acknowledged => Writer::new().u8(0).bool(true).bool(false).data(&[]),
            End::Acked { pending } => {
                let first = if pending { 0x12 } else { 0x02 };
                let ack = [first, 0, sequence, 0xaa, 0xbb];
                // The ACK's end is the end of the transmission.
                let sfd_us = self.clock(ends_at - 32 * (1 + ack.len() as u64));
                let heard = self.heard(&ack, sfd_us, Flags::default());
                let writer = Writer::new().u8(0).bool(pending).bool(false);
                self.write(&heard, writer)
            }
        };
        let value = writer.finish();
        if self.quirks.mixes {
            let other = transaction % 15 + 1;
            self.answer(
                other,
                Command::Is,
                Property::LastStatus,
                &[17, 0, 0],
                now_us,
            );
        }
        self.answer(
            transaction,
            Command::Is,
            Property::LastStatus,
            &value,
            now_us,
        );
    }

    fn heard<'a>(&self, psdu: &'a [u8], sfd_us: u64, flags: Flags) -> ReceivedFrame<'a> {
        ReceivedFrame {
            psdu,
            rssi_dbm: self.rssi_dbm,
            noise_dbm: -128,
            flags,
            channel: 15,
            lqi: 200,
            sfd_us: Some(sfd_us),
            error: 0,
        }
    }

    fn write(&self, heard: &ReceivedFrame<'_>, writer: Writer) -> Writer {
        if self.quirks.has_short_structs {
            let writer = writer.data(heard.psdu).i8(heard.rssi_dbm).i8(-128);
            return writer.u16(heard.flags.0).data(&[heard.channel, heard.lqi]);
        }
        // One field more than is known.
        heard.write(writer).data(b"younger")
    }

    /// Hears a frame whose last symbol is on the air now.
    pub(crate) fn hears(&mut self, psdu: &[u8], flags: Flags, now_us: u64) {
        if !self.is_on(Property::RawStreamEnabled) {
            return;
        }
        // The clock may have begun after the frame.
        let began = now_us.saturating_sub(32 * (1 + psdu.len() as u64 + 2));
        self.hears_at(psdu, flags, self.clock(began), now_us);
    }

    /// Hears a frame, and gives it this time.
    pub(crate) fn hears_at(&mut self, psdu: &[u8], flags: Flags, sfd_us: u64, now_us: u64) {
        let psdu = [psdu, &[0xaa, 0xbb]].concat();
        let heard = self.heard(&psdu, sfd_us, flags);
        let value = self.write(&heard, Writer::new()).finish();
        let transaction = if self.quirks.mixes { 9 } else { 0 };
        self.answer(
            transaction,
            Command::Is,
            Property::StreamRaw,
            &value,
            now_us,
        );
    }

    pub(crate) fn says(&mut self, property: Property, value: &[u8], now_us: u64) {
        self.answer(0, Command::Is, property, value, now_us);
    }

    fn answer(
        &mut self,
        transaction: u8,
        command: Command,
        property: Property,
        value: &[u8],
        at_us: u64,
    ) {
        let header = Header {
            interface: 0,
            transaction,
        };
        let frame = Frame {
            header,
            command,
            property,
            value,
        };
        let mut line = self.quirks.noise.clone();
        hdlc::encode(&frame.emit(), &mut line);
        self.sent.push_back((at_us, line));
    }

    /// When it does something by itself.
    pub(crate) fn deadline(&self) -> Option<u64> {
        self.flight.map(|(_, ends_at, ..)| ends_at)
    }
}

/// The longest frame that firmware has to take: to send 127 bytes.
const REQUEST_LEN_MAX: usize = 148;

/// Turnaround and ACK.
pub(crate) const ACK_US: u64 = 192 + 11 * 32;

/// What ot-nrf528xx does to a frame with key identifier mode 1: 16-bit addresses in one PAN.
fn stamp(psdu: &mut [u8]) {
    let control = 9;
    if psdu[control] >> 3 & 3 == 1 {
        psdu[control + 1..control + 5].copy_from_slice(&77_u32.to_le_bytes());
        psdu[control + 5] = 9;
    }
}
