//! The headers around the payload of a frame that the stack does not read: those of IEEE
//! 802.15.4-2015, the auxiliary security header, multipurpose frames.
//!
//! ```text
//! frame    seq     dst PAN, dst,   auxiliary   header  payload
//! control  0 or 1  src PAN, src    security    IEs     IEs      payload  MIC
//! 1 or 2                           0, 1 to 14
//! ```
//!
//! Place: `mac` calls [`explain`] for frames that the stack's parser does not accept; the
//! information elements are in [`super::elements`]. [`crate::secured`] and [`crate::raw`]
//! decrypt. Left out: the check of a MIC without encryption by a network key. Source: IEEE
//! 802.15.4-2015 §7.2 (frame control, Table 7-2 for the PAN ids), §7.3.5 (multipurpose), §9.4
//! (auxiliary security header).

use std::borrow::Cow;

use motet::wire::LinkAddr;
use motet::wire::cursor::{Reader, Truncated};
use motet::wire::ieee802154::{
    Address, Auxiliary, FrameType, Header, Level, PAN_BROADCAST, ParseError, Version,
};

use super::addressing::{RESERVED_MODE, VERSION_2015, address, pans};
use super::elements::{self, Elements};
use super::mac::{self, link_addr};
use crate::Decoder;
use crate::model::{Audience, Field, Frame, Layer, Value, hex, hex16};
use crate::next::Next;
use crate::raw::{self, Counter, RawSealed};
use crate::secured::{self, Sealed};

/// A frame's kind, as the first three bits of its frame control say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Beacon,
    Data,
    Ack,
    Command,
    Multipurpose,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Beacon => "beacon",
            Self::Data => "data",
            Self::Ack => "ack",
            Self::Command => "command",
            Self::Multipurpose => "multipurpose",
        }
    }
}

/// The fields of a MAC header: the addresses, and what is needed to find the payload.
#[derive(Clone, Copy, Debug)]
struct Envelope {
    kind: Kind,
    version: u16,
    is_secured: bool,
    has_elements: bool,
    frame_pending: bool,
    ack_request: bool,
    pan_id_compression: bool,
    sequence: Option<u8>,
    dst_pan: Option<u16>,
    dst: Option<LinkAddr>,
    src_pan: Option<u16>,
    src: Option<LinkAddr>,
}

/// The auxiliary security header.
#[derive(Clone, Copy, Debug)]
struct Security<'a> {
    level: u8,
    key_mode: u8,
    frame_counter: Option<u32>,
    asn_in_nonce: bool,
    key_source: &'a [u8],
    key_index: Option<u8>,
}

impl Security<'_> {
    /// Bytes of the message integrity code behind the payload.
    const fn mic_len(self) -> usize {
        raw::mic_len(self.level)
    }

    const fn is_encrypted(self) -> bool {
        self.level & 4 != 0
    }

    /// The auxiliary security header as key derivation needs it.
    fn auxiliary(self) -> Result<Auxiliary, &'static str> {
        let level = Level::from_number(self.level)
            .ok_or("the payload is encrypted, and nothing shows which key is right")?;
        let is_of_network = self.key_mode == 1 || self.is_well_known();
        match (is_of_network, self.frame_counter, self.key_index) {
            (true, Some(counter), Some(key_index)) => Ok(Auxiliary {
                level,
                counter,
                key_index,
            }),
            _ => Err("the payload is encrypted with a key of another kind"),
        }
    }

    /// Whether the key is Thread's well-known one, by its source and index.
    const fn is_well_known(self) -> bool {
        matches!(self.key_source, [0xff, 0xff, 0xff, 0xff]) && matches!(self.key_index, Some(0xff))
    }

    const fn name(self) -> &'static str {
        match self.level {
            0 => "none",
            1 => "MIC-32",
            2 => "MIC-64",
            3 => "MIC-128",
            4 => "ENC",
            5 => "ENC-MIC-32",
            6 => "ENC-MIC-64",
            _ => "ENC-MIC-128",
        }
    }
}

/// Explains `mpdu`, a frame without its FCS that the stack's parser refuses with `error`.
pub(super) fn explain<'a>(
    decoder: &mut Decoder,
    frame: &mut Frame,
    mpdu: &'a [u8],
    fcs_ok: Option<bool>,
    error: ParseError,
) -> Next<'a> {
    let mut r = Reader::new(mpdu);
    let envelope = match read(&mut r) {
        Ok(Some(envelope)) => envelope,
        Ok(None) => return mac::refused(frame, mpdu, fcs_ok, error),
        Err(error) => return mac::refused(frame, mpdu, fcs_ok, error),
    };
    let security = match envelope.is_secured.then(|| security(&mut r)).transpose() {
        Ok(security) => security,
        Err(Truncated) => return mac::refused(frame, mpdu, fcs_ok, ParseError::Truncated),
    };
    let header = envelope.header();
    match &header {
        Some(header) => mac::hear(decoder, header, fcs_ok),
        None => decoder.now.heard_from = envelope.src,
    }
    // Without a sequence number a repeat looks like another frame with the same content.
    let numbered = header.as_ref().filter(|_| envelope.sequence.is_some());
    let repeat_of = mac::note(decoder, numbered, r.rest(), fcs_ok);
    let of = (envelope.kind == Kind::Ack).then(|| {
        let sequence = envelope.sequence?;
        decoder.heard.acknowledged_by(sequence, decoder.now.at_ns)
    });
    envelope.say(frame, r.len(), of.flatten());
    let layer = envelope.layer(fcs_ok).with("acknowledges", of.flatten());
    frame.push(layer.with("repeat_of", repeat_of));
    if let Some(security) = security {
        frame.push(security_layer(security));
    }
    let inside = Inside {
        envelope: &envelope,
        security,
        header: header.as_ref(),
    };
    inside.explain(decoder, frame, mpdu, mpdu.len() - r.len())
}

/// A frame whose header is read.
#[derive(Clone, Copy)]
struct Inside<'a> {
    envelope: &'a Envelope,
    security: Option<Security<'a>>,
    /// The header in the terms of 2006, where it has any.
    header: Option<&'a Header>,
}

impl Inside<'_> {
    /// Explains what is behind the header, which ends `at` bytes into `mpdu`.
    fn explain<'m>(
        self,
        decoder: &mut Decoder,
        frame: &mut Frame,
        mpdu: &'m [u8],
        at: usize,
    ) -> Next<'m> {
        // Of a frame that was cut, what stands last is no MIC.
        let mic_len = match frame.is_cut() {
            true => 0,
            false => self.security.map_or(0, Security::mic_len),
        };
        let end = mpdu.len().checked_sub(mic_len).filter(|end| at <= *end);
        let Some((content, mic)) = end.and_then(|end| mpdu.split_at_checked(end)) else {
            return frame.malformed("security", "the frame ends within its MIC");
        };
        let security = self.security.filter(|security| security.is_encrypted());
        let mut r = Reader::new(content.get(at..).unwrap_or_default());
        let mut elements = Elements::Done(None);
        if self.envelope.has_elements {
            elements = match elements::explain(frame, &mut r, security.is_some()) {
                Ok(elements) => elements,
                Err(reason) => return frame.malformed("ie", reason),
            };
        }
        if !mic.is_empty() {
            let is_right = match security {
                Some(_) => None,
                None => self.check(decoder, frame, mpdu, at),
            };
            let layer = Layer::new("mic", hex(mic, "")).hidden("mic", mic);
            frame.push(layer.with("right", is_right));
        }
        if security.is_none() {
            return match elements {
                Elements::Done(Some(packet)) => self.payload(decoder, frame, packet.into()),
                _ => self.payload(decoder, frame, r.rest().into()),
            };
        }
        if frame.is_cut() {
            frame.payload(r.rest());
            return frame.undecoded(
                "security",
                "the payload is encrypted, and was not captured whole",
            );
        }
        let opened = self.open(decoder, frame, mpdu, content.len() - r.len());
        match (opened, elements) {
            (Ok(payload), Elements::Done(_)) => self.payload(decoder, frame, payload.into()),
            (Ok(payload), Elements::Encrypted) => {
                let mut r = Reader::new(&payload);
                match elements::of_payload(frame, &mut r) {
                    Ok(Some(packet)) => self.payload(decoder, frame, packet.to_vec().into()),
                    Ok(None) => self.payload(decoder, frame, r.rest().to_vec().into()),
                    Err(reason) => frame.malformed("ie", reason),
                }
            }
            (Err(reason), _) => {
                frame.payload(r.rest());
                frame.undecoded("security", reason)
            }
        }
    }

    /// The payload in clear of a frame whose payload begins `at` bytes into `mpdu`.
    fn open(
        self,
        decoder: &mut Decoder,
        frame: &mut Frame,
        mpdu: &[u8],
        at: usize,
    ) -> Result<Vec<u8>, &'static str> {
        let security = self.security.ok_or("the frame is not secured")?;
        // The identifier of a command goes in clear.
        let identifier_len = usize::from(self.envelope.kind == Kind::Command);
        let split = mpdu.split_at_checked(at + identifier_len);
        let (header, body) = split.ok_or("the frame ends before what it encrypts")?;
        let sender = self.envelope.sender();
        let sender = sender.ok_or("the payload is encrypted, and the frame names no sender");
        let mut closed = "the payload is encrypted";
        if !decoder.raw_keys.is_empty() {
            let sealed = raw_sealed(frame, security, sender?, [header, body])?;
            match decoder.raw_keys.open(&mut decoder.addresses, sealed) {
                Ok((source, opened)) => {
                    name_sender(frame, sealed.sender, source);
                    return Ok([header.get(at..).unwrap_or_default(), &opened].concat());
                }
                Err(reason) => closed = reason,
            }
        }
        let keys = decoder.keys.as_mut().ok_or(closed)?;
        let sealed = Sealed {
            sender: sender?,
            auxiliary: security.auxiliary()?,
            header,
            body,
        };
        let opened = match security.is_well_known() {
            true => secured::open_well_known(sealed)
                .ok_or("the payload is encrypted, and Thread's well-known key does not open it")?,
            false => {
                let (source, opened) = keys.open(&mut decoder.addresses, sealed)?;
                name_sender(frame, sealed.sender, source);
                opened
            }
        };
        Ok([header.get(at..).unwrap_or_default(), &opened].concat())
    }

    /// Whether the MIC of a frame in clear, whose header ends `at` bytes into `mpdu`, is right,
    /// if a key is known that could be its own.
    fn check(
        self,
        decoder: &mut Decoder,
        frame: &mut Frame,
        mpdu: &[u8],
        at: usize,
    ) -> Option<bool> {
        let security = self.security.filter(|_| !decoder.raw_keys.is_empty())?;
        let (header, body) = mpdu.split_at_checked(at)?;
        let sealed = raw_sealed(frame, security, self.envelope.sender()?, [header, body]).ok()?;
        let opened = decoder.raw_keys.open(&mut decoder.addresses, sealed);
        Some(opened.is_ok())
    }

    /// Explains the payload in clear.
    fn payload<'m>(
        self,
        decoder: &mut Decoder,
        frame: &mut Frame,
        payload: Cow<'m, [u8]>,
    ) -> Next<'m> {
        match (self.envelope.kind, self.header) {
            (Kind::Data, Some(header)) if !payload.is_empty() => {
                Next::Lowpan(mac::link_pair(header), payload)
            }
            (Kind::Command, Some(header)) => mac::command(decoder, frame, header, &payload),
            (Kind::Beacon, Some(header)) if self.envelope.version < VERSION_2015 => {
                mac::beacon(frame, header, &payload)
            }
            _ => {
                frame.payload(&payload);
                Next::End
            }
        }
    }
}

/// A frame as raw keys open it: with TSCH the slot number of the receiver's header is in the nonce.
fn raw_sealed<'a>(
    frame: &Frame,
    security: Security<'_>,
    sender: Address,
    [header, body]: [&'a [u8]; 2],
) -> Result<RawSealed<'a>, &'static str> {
    let slot = || {
        let fields = frame.layers.iter().flat_map(|layer| &layer.fields);
        let mut slots = fields.filter(|field| field.key == "asn");
        match slots.next().map(|field| &field.value) {
            Some(Value::Number(slot)) => Ok(Counter::Slot(*slot)),
            _ => Err("the payload is encrypted with a slot number that the capture does not show"),
        }
    };
    let counter = match security.frame_counter {
        Some(counter) if !security.asn_in_nonce => Counter::Frame(counter),
        _ => slot()?,
    };
    Ok(RawSealed {
        sender,
        level: security.level,
        counter,
        key_index: security.key_index,
        header,
        body,
    })
}

/// Says which node a short address stands for.
fn name_sender(frame: &mut Frame, sender: Address, source: [u8; 8]) {
    let mut layers = frame.layers.iter_mut().rev();
    let layer = layers.find(|layer| layer.name == "security");
    if let (Some(layer), LinkAddr::Short(_)) = (layer, sender.addr) {
        layer.fields.push(Field {
            key: "sender",
            value: link_addr(LinkAddr::Extended(source)).into(),
            audience: Audience::All,
        });
    }
}

/// Reads up to the end of the addresses; `None` for a frame of a kind that `decode` does not
/// read.
fn read(r: &mut Reader<'_>) -> Result<Option<Envelope>, ParseError> {
    let first = r.u8()?;
    let kind = match first & 7 {
        0 => Kind::Beacon,
        1 => Kind::Data,
        2 => Kind::Ack,
        3 => Kind::Command,
        5 => return multipurpose(r, first),
        _ => return Ok(None),
    };
    let control = u16::from_le_bytes([first, r.u8()?]);
    let bit = |at: u32| control >> at & 1 != 0;
    let version = control >> 12 & 3;
    // Frames from before 2015 have two reserved bits here, and frames from before 2006 another
    // form of security.
    if version == 3 || version < VERSION_2015 && (bit(8) || bit(9)) || version == 0 && bit(3) {
        return Ok(None);
    }
    let mut envelope = Envelope {
        kind,
        version,
        is_secured: bit(3),
        has_elements: bit(9),
        frame_pending: bit(4),
        ack_request: bit(5),
        pan_id_compression: bit(6),
        sequence: (!bit(8)).then(|| r.u8()).transpose()?,
        dst_pan: None,
        dst: None,
        src_pan: None,
        src: None,
    };
    let modes = [control >> 10 & 3, control >> 14];
    if modes.contains(&RESERVED_MODE) {
        return Err(ParseError::ReservedAddressingMode);
    }
    let [has_dst_pan, has_src_pan] = pans(version, modes, envelope.pan_id_compression);
    envelope.dst_pan = has_dst_pan.then(|| r.u16_le()).transpose()?;
    envelope.dst = address(r, modes[0])?;
    envelope.src_pan = has_src_pan.then(|| r.u16_le()).transpose()?;
    envelope.src = address(r, modes[1])?;
    Ok(Some(envelope))
}

/// A multipurpose frame's control field has one byte or two, with bits of its own (§7.3.5).
fn multipurpose(r: &mut Reader<'_>, first: u8) -> Result<Option<Envelope>, ParseError> {
    let is_long = first & 1 << 3 != 0;
    let second = if is_long { r.u8()? } else { 0 };
    let bit = |at: u32| second >> at & 1 != 0;
    let modes = [first >> 4 & 3, first >> 6].map(u16::from);
    if modes.contains(&RESERVED_MODE) {
        return Err(ParseError::ReservedAddressingMode);
    }
    let version = u16::from(second >> 4 & 3);
    if version != 0 {
        return Err(ParseError::ReservedVersion);
    }
    let sequence = (!bit(2)).then(|| r.u8()).transpose()?;
    let dst_pan = bit(0).then(|| r.u16_le()).transpose()?;
    Ok(Some(Envelope {
        kind: Kind::Multipurpose,
        version,
        is_secured: bit(1),
        has_elements: bit(7),
        frame_pending: bit(3),
        ack_request: bit(6),
        pan_id_compression: false,
        sequence,
        dst_pan,
        dst: address(r, modes[0])?,
        src_pan: None,
        src: address(r, modes[1])?,
    }))
}

fn security<'a>(r: &mut Reader<'a>) -> Result<Security<'a>, Truncated> {
    let control = r.u8()?;
    let key_mode = control >> 3 & 3;
    let frame_counter = match control & 1 << 5 {
        0 => Some(u32::from_le_bytes(r.array()?)),
        _ => None,
    };
    let key_source = r.slice([0, 0, 4, 8][usize::from(key_mode)])?;
    let key_index = (key_mode > 0).then(|| r.u8()).transpose()?;
    Ok(Security {
        level: control & 7,
        key_mode,
        frame_counter,
        asn_in_nonce: control & 1 << 6 != 0,
        key_source,
        key_index,
    })
}

fn security_layer(security: Security<'_>) -> Layer {
    let source = Some(security.key_source).filter(|source| !source.is_empty());
    Layer::new("security", security.name())
        .with("level", security.level)
        .with("key_id_mode", security.key_mode)
        .with("frame_counter", security.frame_counter)
        .with("frame_counter_suppressed", security.frame_counter.is_none())
        .with("asn_in_nonce", security.asn_in_nonce)
        .with("key_source", source.map(|source| hex(source, "")))
        .with("key_index", security.key_index)
}

impl Envelope {
    /// The sender, and the PAN that it is in as far as the frame says.
    fn sender(&self) -> Option<Address> {
        let pan_id = self.src_pan.or(self.dst_pan).unwrap_or(PAN_BROADCAST);
        self.src.map(|addr| Address { pan_id, addr })
    }

    /// The same header in the terms of 2006, as far as they go, for the layers inside and for
    /// recognising repeats. Both work without a PAN id or a sequence number.
    fn header(&self) -> Option<Header> {
        let frame_type = match self.kind {
            Kind::Beacon => FrameType::Beacon,
            Kind::Data => FrameType::Data,
            Kind::Command => FrameType::Command,
            Kind::Ack | Kind::Multipurpose => return None,
        };
        Some(Header {
            frame_type,
            version: Version::V2006,
            frame_pending: self.frame_pending,
            ack_request: self.ack_request,
            pan_id_compression: self.pan_id_compression,
            sequence: self.sequence.unwrap_or(0),
            dst: self.dst.map(|addr| Address {
                pan_id: self.dst_pan.unwrap_or(PAN_BROADCAST),
                addr,
            }),
            src: self.sender(),
        })
    }

    /// Sets the frame's summary: sender, receiver and kind, as far as the header shows them.
    fn say(&self, frame: &mut Frame, len: usize, acknowledges: Option<u64>) {
        let name = |addr: Option<LinkAddr>| addr.map_or_else(|| "?".to_owned(), link_addr);
        match (self.src, self.dst) {
            (None, None) => frame.path.clear(),
            (src, dst) => frame.between(name(src), name(dst)),
        }
        let kind = self.kind.name();
        match (self.kind, acknowledges, self.sequence) {
            (Kind::Ack, Some(of), _) => frame.say(format_args!("802.15.4 ack of frame {of}")),
            (Kind::Ack, None, Some(seq)) => frame.say(format_args!("802.15.4 ack, seq {seq}")),
            (Kind::Beacon, ..) if self.version == VERSION_2015 => {
                frame.say("802.15.4 enhanced beacon");
            }
            (Kind::Data | Kind::Multipurpose, ..) => {
                frame.say(format_args!("802.15.4 {kind}, {len} B"));
            }
            _ => frame.say(format_args!("802.15.4 {kind}")),
        }
    }

    fn layer(&self, fcs_ok: Option<bool>) -> Layer {
        let title = match (self.kind, self.version) {
            (Kind::Multipurpose, _) => "multipurpose".to_owned(),
            (kind, VERSION_2015) => format!("{}, 2015", kind.name()),
            (kind, _) => kind.name().to_owned(),
        };
        Layer::new("mac", title)
            .hidden("type", self.kind.name())
            .hidden("version", self.version)
            .with("seq", self.sequence)
            .with("sequence_suppressed", self.sequence.is_none())
            .with("pan", self.dst_pan.or(self.src_pan).map(hex16))
            .with(
                "src_pan",
                self.src_pan.filter(|_| self.dst_pan.is_some()).map(hex16),
            )
            .with("src", self.src.map(link_addr))
            .with("dst", self.dst.map(link_addr))
            .with("ack_request", self.ack_request)
            .with("frame_pending", self.frame_pending)
            .hidden("security", self.is_secured)
            .hidden("information_elements", self.has_elements)
            .hidden("pan_id_compression", self.pan_id_compression)
            .hidden("fcs_ok", fcs_ok)
            .remark("fcs", fcs_ok.map(|ok| if ok { "ok" } else { "wrong" }))
    }
}
