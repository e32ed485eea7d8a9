//! IEEE 802.15.4 frames.
//!
//! Place: after `link`; what follows a data frame is 6LoWPAN. The stack's own parser decides what
//! is well formed. Frames of version IEEE 802.15.4-2015 and secured frames, which that parser does
//! not read, go to `envelope`. If `envelope` cannot read a frame either, only its frame control
//! field is shown.
//! Source: IEEE 802.15.4-2006 §7.2, §7.3.

use std::collections::{HashMap, VecDeque};

use crc::{Algorithm, CRC_32_ISO_HDLC, Crc, NoTable};
use motet::lowpan::LinkPair;
use motet::wire::LinkAddr;
use motet::wire::ieee802154::{
    self, Address, Beacon, Command, FrameType, Header, ParseError, Version,
};

use super::addressing::Begun;
use crate::Decoder;
use crate::ending::Ending;
use crate::model::{Frame, Layer, Value, group, hex, hex8, hex16};
use crate::next::{Fcs, Next};

/// Explains a frame from its frame control on.
pub(super) fn explain<'a>(
    decoder: &mut Decoder,
    frame: &mut Frame,
    bytes: &'a [u8],
    fcs: Fcs,
) -> Next<'a> {
    let fcs = match (fcs, decoder.ending) {
        _ if frame.is_cut() => Fcs::Absent,
        (Fcs::Asked, Ending::Crc) => Fcs::Crc16,
        // Whether two bytes are metadata at all is what the trial is about.
        (Fcs::Asked, Ending::Metadata) if decoder.is_trial => Fcs::Replaced,
        (Fcs::Asked, Ending::Metadata) => Fcs::Metadata,
        (Fcs::Asked, Ending::Nothing) => Fcs::Absent,
        (fcs, _) => fcs,
    };
    frame.radio_len = radio_len(frame, bytes, fcs);
    let (mpdu, fcs_ok) = match without_fcs(bytes, fcs) {
        Ok(found) => found,
        Err(error) => return frame.malformed("mac", error.reason()),
    };
    if let (Fcs::Metadata, &[.., strength, quality]) = (fcs, bytes) {
        frame.push(measured(strength, quality));
    }
    decoder.mac_frame = Some((mpdu.to_vec(), fcs_ok));
    if fcs_ok == Some(false) {
        decoder.now.check_wrong = Some(("mac", ParseError::Fcs.reason()));
    }
    let (header, payload) = match Header::parse(mpdu) {
        Ok(found) => found,
        Err(
            error @ (ParseError::FrameType
            | ParseError::Version2015
            | ParseError::InformationElements
            | ParseError::SequenceSuppressed
            | ParseError::Security),
        ) => return Next::Envelope(mpdu, fcs_ok, error),
        Err(error) => return refused(frame, mpdu, fcs_ok, error),
    };
    hear(decoder, &header, fcs_ok);
    let repeat_of = note(decoder, Some(&header), payload, fcs_ok);
    frame.between(name(header.src), name(header.dst));
    let layer = layer_of(&header, fcs_ok, repeat_of);
    match header.frame_type {
        FrameType::Ack => {
            acknowledgment(decoder, frame, &header, layer);
            Next::End
        }
        FrameType::Beacon => {
            frame.push(layer);
            beacon(frame, &header, payload)
        }
        FrameType::Command => {
            frame.push(layer);
            command(decoder, frame, &header, payload)
        }
        FrameType::Data => {
            frame.push(layer);
            frame.say(format_args!("802.15.4 data, {} B", payload.len()));
            Next::Lowpan(link_pair(&header), payload.into())
        }
    }
}

/// Bytes on the air of a frame of which these were captured.
fn radio_len(frame: &Frame, bytes: &[u8], fcs: Fcs) -> u32 {
    let around = frame.captured_len.saturating_sub(bytes.len()) as u32;
    let len = frame.original_len.saturating_sub(around);
    match fcs {
        Fcs::Absent => len.saturating_add(FCS_LEN),
        _ => len,
    }
}

/// The frame's header as a layer.
fn layer_of(header: &Header, fcs_ok: Option<bool>, repeat_of: Option<u64>) -> Layer {
    Layer::new("mac", type_name(header.frame_type))
        .hidden("type", type_name(header.frame_type))
        .hidden("version", version_name(header.version))
        .with("seq", header.sequence)
        .with(
            "pan",
            header
                .dst
                .or(header.src)
                .map(|address| hex16(address.pan_id)),
        )
        .with(
            "src_pan",
            header
                .src
                .filter(|_| !header.pan_id_compression && header.dst.is_some())
                .map(|src| hex16(src.pan_id)),
        )
        .with("src", header.src.map(|src| link_addr(src.addr)))
        .with("dst", header.dst.map(|dst| link_addr(dst.addr)))
        .with("ack_request", header.ack_request)
        .with("frame_pending", header.frame_pending)
        .hidden("pan_id_compression", header.pan_id_compression)
        .hidden("fcs_ok", fcs_ok)
        .remark("fcs", fcs_ok.map(|ok| if ok { "ok" } else { "wrong" }))
        .with("repeat_of", repeat_of)
}

/// Notes between which nodes a frame goes.
pub(super) fn hear(decoder: &mut Decoder, header: &Header, fcs_ok: Option<bool>) {
    decoder.now.heard_from = header.src.map(|src| src.addr);
    decoder.now.pan = header.src.map(|src| src.pan_id);
    if fcs_ok == Some(false) {
        return;
    }
    // The sender last: it is the likelier one to send with its short address next.
    for address in [header.dst, header.src].into_iter().flatten() {
        decoder.addresses.hear(address);
    }
}

/// Notes a frame; returns the frame that it repeats.
pub(super) fn note(
    decoder: &mut Decoder,
    header: Option<&Header>,
    payload: &[u8],
    fcs_ok: Option<bool>,
) -> Option<u64> {
    let now = decoder.now;
    let header = header.filter(|_| fcs_ok != Some(false))?;
    let repeat_of = decoder
        .heard
        .repeat_of(header, payload, now.number, now.at_ns)?;
    decoder.now.repeat = true;
    // A frame that wants no acknowledgment is never a retry: a frame for all goes once to each
    // channel.
    decoder.tally.link_repeats += u64::from(header.ack_request);
    Some(repeat_of)
}

/// The frame without its FCS, and whether the FCS was right, where the capture shows it.
fn without_fcs(bytes: &[u8], fcs: Fcs) -> Result<(&[u8], Option<bool>), ParseError> {
    let shortened = |len: usize| {
        bytes
            .len()
            .checked_sub(len)
            .and_then(|len| bytes.get(..len))
            .ok_or(ParseError::Truncated)
    };
    match fcs {
        Fcs::Absent => Ok((bytes, None)),
        Fcs::Replaced => Ok((shortened(2)?, None)),
        Fcs::Metadata => {
            let is_right = bytes.last().is_some_and(|quality| quality & FCS_RIGHT != 0);
            Ok((shortened(2)?, Some(is_right)))
        }
        Fcs::Crc32 => {
            let (mpdu, fcs) = bytes.split_last_chunk().ok_or(ParseError::Truncated)?;
            Ok((mpdu, Some(fcs32(mpdu).contains(&u32::from_le_bytes(*fcs)))))
        }
        Fcs::Crc16 | Fcs::Asked => match ieee802154::check_fcs(bytes) {
            Ok(mpdu) => Ok((mpdu, Some(true))),
            Err(ParseError::Fcs) => Ok((shortened(ieee802154::FCS_LEN)?, Some(false))),
            Err(error) => Err(error),
        },
    }
}

/// The FCS of four bytes (IEEE 802.15.4-2015 §7.2.11): a shorter frame counts as filled up with
/// zeros, but not at all radios, so that there are two for it.
fn fcs32(mpdu: &[u8]) -> [u32; 2] {
    const FCS: Algorithm<u32> = CRC_32_ISO_HDLC;
    let crc = Crc::<u32, NoTable>::new(&FCS);
    let filling = [0; 4];
    let filling = filling.get(mpdu.len()..).unwrap_or_default();
    [filling, &[]].map(|filling| {
        let mut digest = crc.digest();
        digest.update(mpdu);
        digest.update(filling);
        digest.finalize()
    })
}

/// What a TI radio writes in the FCS's place.
fn measured(strength: u8, quality: u8) -> Layer {
    Layer::new("ti", "metadata in the FCS's place")
        .with("rssi_dbm", i64::from(strength as i8))
        .with("correlation", quality & !FCS_RIGHT)
        .hidden("fcs_ok", quality & FCS_RIGHT != 0)
}

/// A frame that `decode` does not read: the fields of its frame control, what its header shows
/// besides, which may end too early, and the reason.
pub(super) fn refused(
    frame: &mut Frame,
    mpdu: &[u8],
    fcs_ok: Option<bool>,
    error: ParseError,
) -> Next<'static> {
    let mut layer = Layer::new("mac", "802.15.4");
    if let [low, high, ..] = *mpdu {
        let control = u16::from_le_bytes([low, high]);
        let kind = [
            "beacon",
            "data",
            "ack",
            "command",
            "reserved",
            "multipurpose",
            "fragment",
            "extended",
        ][usize::from(control & 7)];
        frame.say(format_args!("802.15.4 {kind} frame"));
        layer = Layer::new("mac", kind)
            .hidden("type", kind)
            .hidden("version", control >> 12 & 3)
            .with("frame_control", hex16(control))
            .with("security", control & 1 << 3 != 0)
            .with("ack_request", control & 1 << 5 != 0)
            .with("information_elements", control & 1 << 9 != 0);
        layer = begun(frame, layer, &Begun::of(mpdu));
    }
    frame.push(
        layer
            .hidden("fcs_ok", fcs_ok)
            .remark("fcs", fcs_ok.map(|ok| if ok { "ok" } else { "wrong" })),
    );
    match error {
        ParseError::FrameType
        | ParseError::Version2015
        | ParseError::InformationElements
        | ParseError::SequenceSuppressed
        | ParseError::Security => frame.undecoded("mac", error.reason()),
        _ => frame.malformed("mac", error.reason()),
    }
}

/// Adds to `layer` the fields of a header that is refused.
fn begun(frame: &mut Frame, layer: Layer, begun: &Begun) -> Layer {
    if let Some(dst) = begun.dst {
        let src = begun.src.map_or_else(|| "?".to_owned(), link_addr);
        frame.between(src, link_addr(dst));
    }
    let pan = begun.dst_pan.or(begun.src_pan);
    layer
        .with("seq", begun.sequence)
        .with("pan", pan.map(hex16))
        .with("src", begun.src.map(link_addr))
        .with("dst", begun.dst.map(link_addr))
}

fn acknowledgment(decoder: &mut Decoder, frame: &mut Frame, header: &Header, layer: Layer) {
    let of = decoder
        .heard
        .acknowledged_by(header.sequence, decoder.now.at_ns);
    frame.path.clear();
    match of {
        Some(of) => frame.say(format_args!("802.15.4 ack of frame {of}")),
        None => frame.say(format_args!("802.15.4 ack, seq {}", header.sequence)),
    }
    frame.push(layer.with("acknowledges", of));
}

pub(super) fn beacon(frame: &mut Frame, header: &Header, payload: &[u8]) -> Next<'static> {
    frame.path = name(header.src);
    frame.say("802.15.4 beacon");
    let beacon = match Beacon::parse(payload) {
        Ok(beacon) => beacon,
        Err(error) => return frame.malformed("beacon", error.reason()),
    };
    let superframe = beacon.superframe;
    let slots = beacon.guaranteed_slots().map(|slot| {
        group([
            ("device", hex16(slot.device)),
            ("start", slot.start.into()),
            ("len", slot.len.into()),
            ("receive", slot.receive.into()),
        ])
    });
    frame.push(
        Layer::new("beacon", "superframe")
            .with("beacon_order", superframe.beacon_order)
            .with("superframe_order", superframe.superframe_order)
            .with("final_cap_slot", superframe.final_cap_slot)
            .with("battery_life_extension", superframe.battery_life_extension)
            .with("pan_coordinator", superframe.pan_coordinator)
            .with("association_permit", superframe.association_permit)
            .with("gts_permit", beacon.gts_permit)
            .with("guaranteed_slots", slots.collect::<Vec<_>>())
            .with(
                "pending",
                beacon
                    .pending()
                    .map(|addr| Value::Text(link_addr(addr)))
                    .collect::<Vec<_>>(),
            ),
    );
    frame.payload(beacon.payload);
    Next::End
}

pub(super) fn command(
    decoder: &mut Decoder,
    frame: &mut Frame,
    header: &Header,
    payload: &[u8],
) -> Next<'static> {
    let command = match Command::parse(payload) {
        Ok(command) => command,
        Err(ParseError::CommandId) => {
            return frame.undecoded("command", ParseError::CommandId.reason());
        }
        Err(error) => return frame.malformed("command", error.reason()),
    };
    if decoder.now.countable() {
        learn(decoder, header, &command);
    }
    let layer = |title: &'static str| Layer::new("command", title);
    let layer = match command {
        Command::AssociationRequest { capability } => {
            layer("association request").with("capability", hex8(capability))
        }
        Command::AssociationResponse { short_addr, status } => layer("association response")
            .with("short_addr", hex16(short_addr))
            .with("status", status),
        Command::DisassociationNotification { cause } => {
            layer("disassociation notification").with("cause", cause)
        }
        Command::DataRequest => layer("data request"),
        Command::PanIdConflict => layer("PAN id conflict"),
        Command::OrphanNotification => layer("orphan notification"),
        Command::BeaconRequest => layer("beacon request"),
        Command::CoordinatorRealignment {
            pan_id,
            coordinator,
            channel,
            short_addr,
            channel_page,
        } => layer("coordinator realignment")
            .with("new_pan", hex16(pan_id))
            .with("coordinator", hex16(coordinator))
            .with("channel", channel)
            .with("short_addr", hex16(short_addr))
            .with("channel_page", channel_page),
        Command::GtsRequest { characteristics } => {
            layer("guaranteed time slot request").with("characteristics", hex8(characteristics))
        }
    };
    frame.say(format_args!("802.15.4 {}", layer.title));
    frame.push(layer);
    Next::End
}

/// Learns the short addresses that a coordinator gives, and its own (IEEE 802.15.4-2006 §7.3.2,
/// §7.3.8).
fn learn(decoder: &mut Decoder, header: &Header, command: &Command) {
    let mut note = |pan_id, short, address: Option<Address>| {
        if let Some(LinkAddr::Extended(extended)) = address.map(|address| address.addr) {
            decoder.addresses.learn(pan_id, short, extended);
        }
    };
    match *command {
        Command::AssociationResponse {
            short_addr,
            status: 0,
        } => {
            if let Some(dst) = header.dst {
                note(dst.pan_id, short_addr, header.dst);
            }
        }
        Command::CoordinatorRealignment {
            pan_id,
            coordinator,
            short_addr,
            ..
        } => {
            note(pan_id, coordinator, header.src);
            note(pan_id, short_addr, header.dst);
        }
        _ => {}
    }
}

/// A link address as people write it: `0x1234`, `02:4d:6f:74:65:74:00:01`.
pub(super) fn link_addr(addr: LinkAddr) -> String {
    match addr {
        LinkAddr::BROADCAST => "broadcast".into(),
        LinkAddr::Short(short) => format!("0x{short:04x}"),
        LinkAddr::Extended(bytes) => hex(&bytes, ":"),
        LinkAddr::Device(bytes) => hex(&bytes, ":"),
    }
}

fn name(address: Option<Address>) -> String {
    address.map_or_else(|| "coordinator".into(), |address| link_addr(address.addr))
}

const fn type_name(kind: FrameType) -> &'static str {
    match kind {
        FrameType::Beacon => "beacon",
        FrameType::Data => "data",
        FrameType::Ack => "ack",
        FrameType::Command => "command",
    }
}

const fn version_name(version: Version) -> u16 {
    match version {
        Version::V2003 => 0,
        Version::V2006 => 1,
    }
}

/// The addresses from which interface identifiers derive; an absent one is the PAN
/// coordinator's, which a capture does not know.
pub(super) fn link_pair(mac: &Header) -> LinkPair {
    let addr =
        |address: Option<Address>| address.map_or(LinkAddr::Short(0), |address| address.addr);
    LinkPair {
        src: addr(mac.src),
        dst: addr(mac.dst),
    }
}

/// The latest frames: to recognise link retries and acknowledgments.
#[derive(Debug, Default)]
pub(crate) struct RecentFrames {
    latest: HashMap<LinkAddr, Latest>,
    /// Frames that want an acknowledgment, oldest first: out of earshot of one another,
    /// senders overlap.
    awaiting_ack: VecDeque<Awaiting>,
}

#[derive(Debug)]
struct Latest {
    header: Header,
    payload: Vec<u8>,
    number: u64,
    at_ns: u64,
}

#[derive(Debug)]
struct Awaiting {
    sequence: u8,
    number: u64,
    at_ns: u64,
}

impl RecentFrames {
    /// The frame that this one repeats, if it was the sender's last: a retry of the link, or
    /// (over ZEP) the same frame on its way to another node. Notes this frame.
    ///
    /// A retry has the sequence number and the bytes of the first attempt, except the frame pending
    /// bit, which may have changed in between.
    fn repeat_of(
        &mut self,
        header: &Header,
        payload: &[u8],
        number: u64,
        at_ns: u64,
    ) -> Option<u64> {
        if header.ack_request {
            if self.awaiting_ack.len() >= AWAITING_MAX {
                self.awaiting_ack.pop_front();
            }
            self.awaiting_ack.push_back(Awaiting {
                sequence: header.sequence,
                number,
                at_ns,
            });
        }
        let src = header.src?.addr;
        let header = Header {
            frame_pending: false,
            ..*header
        };
        if self.latest.len() >= SENDERS_MAX && !self.latest.contains_key(&src) {
            self.latest.clear();
        }
        let is_repeat = |latest: &&mut Latest| {
            latest.header == header
                && latest.payload == payload
                && at_ns.saturating_sub(latest.at_ns) < REPEAT_WITHIN_NS
        };
        if let Some(latest) = self.latest.get_mut(&src).filter(is_repeat) {
            latest.at_ns = at_ns;
            return Some(latest.number);
        }
        let latest = Latest {
            header,
            payload: payload.to_vec(),
            number,
            at_ns,
        };
        self.latest.insert(src, latest);
        None
    }

    /// The frame that an acknowledgment heard now is for.
    pub(super) fn acknowledged_by(&self, sequence: u8, at_ns: u64) -> Option<u64> {
        let found = self.awaiting_ack.iter().rev().find(|awaiting| {
            awaiting.sequence == sequence && at_ns.saturating_sub(awaiting.at_ns) < ACK_WITHIN_NS
        });
        found.map(|awaiting| awaiting.number)
    }
}

/// The bit by which a TI radio says that the FCS was right (CC2420 data sheet, AUTOCRC).
const FCS_RIGHT: u8 = 0x80;
const FCS_LEN: u32 = 2;
/// Retries come within some milliseconds, at most hundreds; sequence numbers come again after
/// 256 frames, and with the same bytes only by design.
const REPEAT_WITHIN_NS: u64 = 1_000_000_000;
/// An acknowledgment follows within 864 µs on the air; simulated nodes take longer.
const ACK_WITHIN_NS: u64 = 20_000_000;
/// Frames that may be on the air at once, and be acknowledged in any order.
const AWAITING_MAX: usize = 8;
/// Senders remembered; beyond, all are forgotten.
const SENDERS_MAX: usize = 4_096;
