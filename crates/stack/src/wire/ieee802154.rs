//! IEEE 802.15.4 frames of versions 2003 and 2006.
//!
//! ```text
//!       2        1      0/2     0/2/8     0/2     0/2/8              2
//! +----------+-----+---------+-------+---------+-------+---------+-----+
//! | frame    | seq | dst PAN |  dst  | src PAN |  src  | payload | FCS |
//! | control  |     |         |       |         |       |         |     |
//! +----------+-----+---------+-------+---------+-------+---------+-----+
//!   bits: type 0-2, security 3, pending 4, ack request 5, PAN id compression 6,
//!         sequence suppression 8 and IEs 9 (2015), dst mode 10-11, version 12-13,
//!         src mode 14-15.  Every field is least significant byte first.
//! ```
//!
//! Place: between the radio's bytes and `mac`. [`check_fcs`] first, then [`Header::parse`];
//! [`Beacon`] and [`Command`] read the payloads of their frames.
//! Left out: the 2015 version, information elements and, without the feature `security`, secured
//! frames. They are recognised, and refused each with its own reason.
//! Source: IEEE 802.15.4-2006 §7.2, §7.3.

mod beacon;
mod command;
#[cfg(feature = "security")]
mod security;

pub use beacon::{Beacon, GuaranteedSlot, Superframe};
pub use command::Command;
#[cfg(feature = "security")]
pub use security::{Auxiliary, Level};

use super::LinkAddr;
use super::cursor::{Full, Reader, Truncated, Writer};
use crate::limits::PSDU_LEN_MAX;

/// Bytes of the frame check sequence.
pub const FCS_LEN: usize = 2;
/// Bytes of an acknowledgment frame, FCS included.
pub const ACK_LEN: usize = 5;
/// Bytes of the longest header: two extended addresses, two PAN ids.
pub const HEADER_LEN_MAX: usize = 23;
/// The PAN id that every node accepts.
pub const PAN_BROADCAST: u16 = 0xffff;

/// The MAC header: everything before the payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Beacon, data, acknowledgment or MAC command (§7.2.1.1.1).
    pub frame_type: FrameType,
    /// Which edition of the standard the frame keeps to.
    pub version: Version,
    /// The sender has more for this receiver (§7.2.1.1.3).
    pub frame_pending: bool,
    /// The sender waits for an acknowledgment.
    pub ack_request: bool,
    /// Leave out the source PAN id; takes effect only where both PANs are the same.
    pub pan_id_compression: bool,
    /// Data (or beacon) sequence number.
    pub sequence: u8,
    /// Destination; `None` means the PAN coordinator, except in beacons and acknowledgments.
    pub dst: Option<Address>,
    /// Source; `None` means the PAN coordinator, except in acknowledgments.
    pub src: Option<Address>,
}

/// A link address within its PAN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Address {
    /// PAN identifier; [`PAN_BROADCAST`] stands for all PANs.
    pub pan_id: u16,
    /// Short (16 bits) or extended (64 bits) address.
    pub addr: LinkAddr,
}

/// The frame types of 2006.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameType {
    /// Sent by coordinators; carries the superframe specification.
    Beacon,
    /// Carries an SDU of the layer above.
    Data,
    /// Acknowledges one frame by its sequence number.
    Ack,
    /// Carries a MAC command: see [`Command`].
    Command,
}

/// Frame versions that are understood.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// IEEE 802.15.4-2003: what any receiver understands.
    V2003,
    /// IEEE 802.15.4-2006: frames that a receiver of 2003 does not understand.
    V2006,
}

/// Why a frame is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// The bytes end within the header or a fixed field.
    Truncated,
    /// The PSDU is longer than 127 bytes (`aMaxPHYPacketSize`).
    TooLong,
    /// The frame check sequence does not match.
    Fcs,
    /// Frame types 4 to 7: reserved, multipurpose, fragment, extended.
    FrameType,
    /// Frame version 3, which is reserved.
    ReservedVersion,
    /// Frame version 2 (IEEE 802.15.4-2015).
    Version2015,
    /// Information elements, which IEEE 802.15.4-2015 added.
    InformationElements,
    /// The sequence number is left out (2015).
    SequenceSuppressed,
    /// The frame is secured in a way that the called function or this build does not read.
    Security,
    /// Addressing mode 1, which is reserved.
    ReservedAddressingMode,
    /// PAN id compression without both addresses (§7.2.1.1.5).
    PanIdCompression,
    /// Addresses that this frame type must have are missing, or it must not have them.
    Addressing,
    /// Bytes follow a frame that should have ended.
    TrailingBytes,
    /// More than seven pending addresses in a beacon (§7.2.2.1.6).
    PendingAddresses,
    /// MAC command frame identifier 0, or above 9.
    CommandId,
    /// A MAC command of another length than its identifier asks for.
    CommandLength,
}

impl ParseError {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Truncated => "802.15.4 frame truncated",
            Self::TooLong => "802.15.4 frame longer than 127 bytes",
            Self::Fcs => "802.15.4 FCS wrong",
            Self::FrameType => "802.15.4 frame type reserved or not supported",
            Self::ReservedVersion => "802.15.4 frame version reserved",
            Self::Version2015 => "802.15.4-2015 frames are not supported",
            Self::InformationElements => "802.15.4 information elements are not supported",
            Self::SequenceSuppressed => "802.15.4 sequence number suppression is not supported",
            Self::Security => "802.15.4 security is not supported",
            Self::ReservedAddressingMode => "802.15.4 addressing mode reserved",
            Self::PanIdCompression => "802.15.4 PAN id compression without both addresses",
            Self::Addressing => "802.15.4 addresses do not suit the frame type",
            Self::TrailingBytes => "802.15.4 bytes behind the end of the frame",
            Self::PendingAddresses => "802.15.4 beacon with more than 7 pending addresses",
            Self::CommandId => "802.15.4 MAC command unknown",
            Self::CommandLength => "802.15.4 MAC command of wrong length",
        }
    }
}

speaks!(ParseError);

impl From<Truncated> for ParseError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

const SECURITY: u16 = 1 << 3;
const FRAME_PENDING: u16 = 1 << 4;
const ACK_REQUEST: u16 = 1 << 5;
const PAN_ID_COMPRESSION: u16 = 1 << 6;
const SEQUENCE_SUPPRESSION: u16 = 1 << 8;
const INFORMATION_ELEMENTS: u16 = 1 << 9;
const DST_MODE_AT: u32 = 10;
const VERSION_AT: u32 = 12;
const SRC_MODE_AT: u32 = 14;

impl Header {
    /// A data frame within one PAN, as this stack sends it: PAN id compressed, version 2003
    /// (nothing of 2006 is needed, and everyone reads it).
    pub const fn data(pan_id: u16, dst: LinkAddr, src: LinkAddr, sequence: u8) -> Self {
        Self {
            frame_type: FrameType::Data,
            version: Version::V2003,
            frame_pending: false,
            ack_request: !dst.is_broadcast(),
            pan_id_compression: true,
            sequence,
            dst: Some(Address { pan_id, addr: dst }),
            src: Some(Address { pan_id, addr: src }),
        }
    }

    /// A MAC command to one node of the same PAN; the rest as [`Self::data`].
    pub const fn command(pan_id: u16, dst: LinkAddr, src: LinkAddr, sequence: u8) -> Self {
        Self {
            frame_type: FrameType::Command,
            ..Self::data(pan_id, dst, src, sequence)
        }
    }

    /// The acknowledgment of frame `sequence`.
    pub const fn ack(sequence: u8, frame_pending: bool) -> Self {
        Self {
            frame_type: FrameType::Ack,
            version: Version::V2003,
            frame_pending,
            ack_request: false,
            pan_id_compression: false,
            sequence,
            dst: None,
            src: None,
        }
    }

    /// Reads the header of `mpdu`, a frame without its FCS; returns it and the payload.
    ///
    /// # Errors
    /// [`ParseError`]; every one means that the frame is dropped.
    pub fn parse(mpdu: &[u8]) -> Result<(Self, &[u8]), ParseError> {
        let (header, _, r) = Self::read(mpdu, false)?;
        Ok((header, r.rest()))
    }

    /// Reads a header up to its addresses; returns whether the frame is secured, and what follows.
    // Two callers where frames may be secured, one otherwise.
    #[cfg_attr(not(feature = "security"), inline(always))]
    fn read(mpdu: &[u8], may_be_secured: bool) -> Result<(Self, bool, Reader<'_>), ParseError> {
        let mut r = Reader::new(mpdu);
        let control = r.u16_le()?;
        let frame_type = match control & 7 {
            0 => FrameType::Beacon,
            1 => FrameType::Data,
            2 => FrameType::Ack,
            3 => FrameType::Command,
            _ => return Err(ParseError::FrameType),
        };
        let is_secured = control & SECURITY != 0;
        let version = version(control, may_be_secured)?;
        let sequence = r.u8()?;
        let dst_mode = Mode::from_control(control, DST_MODE_AT)?;
        let src_mode = Mode::from_control(control, SRC_MODE_AT)?;
        check_addressing(frame_type, dst_mode, src_mode)?;
        let pan_id_compression = control & PAN_ID_COMPRESSION != 0;
        if pan_id_compression && (dst_mode == Mode::None || src_mode == Mode::None) {
            return Err(ParseError::PanIdCompression);
        }
        let dst = parse_address(&mut r, dst_mode, None)?;
        let shared = dst.filter(|_| pan_id_compression).map(|dst| dst.pan_id);
        let src = parse_address(&mut r, src_mode, shared)?;
        if frame_type == FrameType::Ack && !r.is_empty() {
            return Err(ParseError::TrailingBytes);
        }
        let header = Self {
            frame_type,
            version,
            frame_pending: control & FRAME_PENDING != 0,
            ack_request: control & ACK_REQUEST != 0,
            pan_id_compression,
            sequence,
            dst,
            src,
        };
        Ok((header, is_secured, r))
    }

    /// How many bytes [`Self::emit`] writes: 3 to [`HEADER_LEN_MAX`].
    pub fn header_len(&self) -> usize {
        let address = |address: Option<Address>| match address {
            None => 0,
            Some(Address {
                addr: LinkAddr::Short(_),
                ..
            }) => 4,
            Some(Address {
                addr: LinkAddr::Extended(_),
                ..
            }) => 10,
            #[cfg(feature = "ble")]
            Some(Address {
                addr: LinkAddr::Device(_),
                ..
            }) => 0,
        };
        let saved = if self.compresses_pan_id() { 2 } else { 0 };
        3 + address(self.dst) + address(self.src) - saved
    }

    /// Payload bytes that fit a frame with this header.
    pub fn payload_len_max(&self) -> usize {
        PSDU_LEN_MAX - FCS_LEN - self.header_len()
    }

    /// Writes the header; returns its length.
    ///
    /// # Errors
    /// [`Full`] when `out` is too short.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, Full> {
        let mut w = Writer::new(out);
        w.u16_le(self.control())?;
        w.u8(self.sequence)?;
        emit_address(&mut w, self.dst, true)?;
        emit_address(&mut w, self.src, !self.compresses_pan_id())?;
        Ok(w.written())
    }

    /// Writes header, `payload` and FCS: the PSDU as it goes on the air. Returns its length.
    ///
    /// # Errors
    /// [`Full`] when `out` is too short or the frame longer than 127 bytes.
    pub fn emit_frame(&self, payload: &[u8], out: &mut [u8]) -> Result<usize, Full> {
        let mpdu_len = self.emit_mpdu(payload, out)?;
        append_fcs(mpdu_len, out)
    }

    /// Writes header and `payload`, without the FCS. Returns their length.
    ///
    /// # Errors
    /// [`Full`] when `out` is too short or the frame, with an FCS, longer than 127 bytes.
    pub(crate) fn emit_mpdu(&self, payload: &[u8], out: &mut [u8]) -> Result<usize, Full> {
        let mpdu_len = self.header_len() + payload.len();
        if mpdu_len + FCS_LEN > PSDU_LEN_MAX {
            return Err(Full);
        }
        let header_len = self.emit(out)?;
        let mut w = Writer::new(out.get_mut(header_len..).unwrap_or_default());
        w.put(payload)?;
        Ok(mpdu_len)
    }

    fn compresses_pan_id(&self) -> bool {
        match (self.dst, self.src) {
            (Some(dst), Some(src)) => self.pan_id_compression && dst.pan_id == src.pan_id,
            _ => false,
        }
    }

    fn control(&self) -> u16 {
        let frame_type = match self.frame_type {
            FrameType::Beacon => 0,
            FrameType::Data => 1,
            FrameType::Ack => 2,
            FrameType::Command => 3,
        };
        let version = match self.version {
            Version::V2003 => 0,
            Version::V2006 => 1,
        };
        let bit = |set: bool, bit: u16| if set { bit } else { 0 };
        frame_type
            | bit(self.frame_pending, FRAME_PENDING)
            | bit(self.ack_request, ACK_REQUEST)
            | bit(self.compresses_pan_id(), PAN_ID_COMPRESSION)
            | (Mode::of(self.dst) as u16) << DST_MODE_AT
            | version << VERSION_AT
            | (Mode::of(self.src) as u16) << SRC_MODE_AT
    }
}

/// The frame version, or why the frame cannot be read: the most telling reason first.
fn version(control: u16, may_be_secured: bool) -> Result<Version, ParseError> {
    let version = control >> VERSION_AT & 3;
    if version == 3 {
        return Err(ParseError::ReservedVersion);
    }
    // In versions 0 and 1 these two are reserved and sent as zero (2015, §7.2.2.7, §7.2.2.8).
    if control & INFORMATION_ELEMENTS != 0 {
        return Err(ParseError::InformationElements);
    }
    if control & SEQUENCE_SUPPRESSION != 0 {
        return Err(ParseError::SequenceSuppressed);
    }
    if control & SECURITY != 0 && !may_be_secured {
        return Err(ParseError::Security);
    }
    match version {
        0 => Ok(Version::V2003),
        1 => Ok(Version::V2006),
        _ => Err(ParseError::Version2015),
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    None = 0,
    Short = 2,
    Extended = 3,
}

impl Mode {
    const fn from_control(control: u16, at: u32) -> Result<Self, ParseError> {
        match control >> at & 3 {
            0 => Ok(Self::None),
            1 => Err(ParseError::ReservedAddressingMode),
            2 => Ok(Self::Short),
            _ => Ok(Self::Extended),
        }
    }

    const fn of(address: Option<Address>) -> Self {
        match address {
            None => Self::None,
            Some(Address {
                addr: LinkAddr::Short(_),
                ..
            }) => Self::Short,
            Some(Address {
                addr: LinkAddr::Extended(_),
                ..
            }) => Self::Extended,
            #[cfg(feature = "ble")]
            Some(Address {
                addr: LinkAddr::Device(_),
                ..
            }) => Self::None,
        }
    }
}

/// §7.2.1.1.6 and §7.2.1.1.8, §7.2.2: which addresses each frame type has.
fn check_addressing(frame_type: FrameType, dst: Mode, src: Mode) -> Result<(), ParseError> {
    let suits = match frame_type {
        FrameType::Ack => dst == Mode::None && src == Mode::None,
        FrameType::Beacon => dst == Mode::None && src != Mode::None,
        FrameType::Data | FrameType::Command => dst != Mode::None || src != Mode::None,
    };
    if suits {
        Ok(())
    } else {
        Err(ParseError::Addressing)
    }
}

fn parse_address(
    r: &mut Reader<'_>,
    mode: Mode,
    shared_pan_id: Option<u16>,
) -> Result<Option<Address>, Truncated> {
    if mode == Mode::None {
        return Ok(None);
    }
    let pan_id = match shared_pan_id {
        Some(pan_id) => pan_id,
        None => r.u16_le()?,
    };
    let addr = match mode {
        Mode::Extended => LinkAddr::Extended(reversed(*r.chunk()?)),
        _ => LinkAddr::Short(r.u16_le()?),
    };
    Ok(Some(Address { pan_id, addr }))
}

fn emit_address(w: &mut Writer<'_>, address: Option<Address>, pan_id: bool) -> Result<(), Full> {
    let Some(address) = address else {
        return Ok(());
    };
    // No frame of 802.15.4 holds a Bluetooth address: `Mode::of` says that there is none.
    #[cfg(feature = "ble")]
    if let LinkAddr::Device(_) = address.addr {
        return Ok(());
    }
    if pan_id {
        w.u16_le(address.pan_id)?;
    }
    match address.addr {
        LinkAddr::Short(short) => w.u16_le(short),
        LinkAddr::Extended(extended) => w.put(&reversed(extended)),
        #[cfg(feature = "ble")]
        LinkAddr::Device(_) => Ok(()),
    }
}

/// Converts between canonical order and the order on the air.
const fn reversed(bytes: [u8; 8]) -> [u8; 8] {
    u64::from_be_bytes(bytes).to_le_bytes()
}

/// The frame check sequence over `mpdu`: ITU-T CRC-16, bits reversed, initially zero
/// ("CRC-16/KERMIT"); stored least significant byte first.
///
/// No table: 512 bytes of flash (or 32, and two look-ups) buy little here, for this closed
/// form of eight shift-register steps takes about ten instructions a byte, under 0.1 ms for
/// the longest frame at 16 MHz. Radios with a CRC unit never call it.
pub fn fcs(mpdu: &[u8]) -> u16 {
    mpdu.iter().fold(0, |crc, byte| {
        let low = (crc as u8) ^ byte;
        let mixed = u16::from(low ^ (low << 4));
        (mixed << 8 | crc >> 8) ^ mixed >> 4 ^ mixed << 3
    })
}

/// Writes the FCS behind the first `mpdu_len` bytes of `out`; returns the length of both.
///
/// # Errors
/// [`Full`] when `out` has no room for it.
pub(crate) fn append_fcs(mpdu_len: usize, out: &mut [u8]) -> Result<usize, Full> {
    let fcs = fcs(out.get(..mpdu_len).unwrap_or_default());
    Writer::new(out.get_mut(mpdu_len..).unwrap_or_default()).u16_le(fcs)?;
    Ok(mpdu_len + FCS_LEN)
}

/// Checks the FCS of `psdu` and takes it off; returns the frame without it.
///
/// # Errors
/// [`ParseError::Truncated`], [`ParseError::TooLong`], [`ParseError::Fcs`].
pub fn check_fcs(psdu: &[u8]) -> Result<&[u8], ParseError> {
    if psdu.len() > PSDU_LEN_MAX {
        return Err(ParseError::TooLong);
    }
    let (mpdu, field) = psdu
        .split_last_chunk::<FCS_LEN>()
        .ok_or(ParseError::Truncated)?;
    if u16::from_le_bytes(*field) == fcs(mpdu) {
        Ok(mpdu)
    } else {
        Err(ParseError::Fcs)
    }
}

#[cfg(test)]
#[path = "tests/ieee802154.rs"]
mod tests;
