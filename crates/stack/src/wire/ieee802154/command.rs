//! MAC commands.
//!
//! Place: what a MAC command frame carries, behind [`Header`](super::Header).
//! Left out: association itself.
//! Source: IEEE 802.15.4-2006 §7.3.

use super::ParseError;
use crate::wire::cursor::{Full, Writer};

/// A MAC command (§7.3), without its frame header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    /// A device asks to join the PAN (§7.3.1).
    AssociationRequest {
        /// Alternate PAN coordinator 0, device type 1, power source 2, receiver on when
        /// idle 3, security 6, allocate address 7.
        capability: u8,
    },
    /// The answer to an association request.
    AssociationResponse {
        /// The address given, or `0xffff`.
        short_addr: u16,
        /// 0: associated; 1: PAN at capacity; 2: access denied.
        status: u8,
    },
    /// Either side ends the association.
    DisassociationNotification {
        /// 1: the coordinator wants it; 2: the device wants it.
        cause: u8,
    },
    /// A device asks its coordinator for pending data.
    DataRequest,
    /// Two PANs share an identifier.
    PanIdConflict,
    /// A device has lost its coordinator.
    OrphanNotification,
    /// Asks coordinators for a beacon.
    BeaconRequest,
    /// A coordinator answers an orphan, or changes the PAN's settings.
    CoordinatorRealignment {
        /// The PAN identifier from now on.
        pan_id: u16,
        /// The short address of the coordinator.
        coordinator: u16,
        /// The channel number from now on, 11 to 26 at 2.4 GHz.
        channel: u8,
        /// The orphan's short address, or `0xffff`.
        short_addr: u16,
        /// Channel page; absent from 2003.
        channel_page: Option<u8>,
    },
    /// A device asks for, or gives back, a guaranteed time slot.
    GtsRequest {
        /// Length 0-3, receive-only 4, allocate 5.
        characteristics: u8,
    },
}

impl Command {
    /// Reads the payload of a MAC command frame.
    ///
    /// # Errors
    /// [`ParseError::Truncated`] without an identifier, [`ParseError::CommandId`],
    /// [`ParseError::CommandLength`].
    pub fn parse(payload: &[u8]) -> Result<Self, ParseError> {
        let (id, body) = payload.split_first().ok_or(ParseError::Truncated)?;
        Ok(match (id, body) {
            (1, &[capability]) => Self::AssociationRequest { capability },
            (2, &[low, high, status]) => Self::AssociationResponse {
                short_addr: u16::from_le_bytes([low, high]),
                status,
            },
            (3, &[cause]) => Self::DisassociationNotification { cause },
            (4, []) => Self::DataRequest,
            (5, []) => Self::PanIdConflict,
            (6, []) => Self::OrphanNotification,
            (7, []) => Self::BeaconRequest,
            (8, &[a, b, c, d, channel, e, f, ref page @ ..]) if page.len() < 2 => {
                Self::CoordinatorRealignment {
                    pan_id: u16::from_le_bytes([a, b]),
                    coordinator: u16::from_le_bytes([c, d]),
                    channel,
                    short_addr: u16::from_le_bytes([e, f]),
                    channel_page: page.first().copied(),
                }
            }
            (9, &[characteristics]) => Self::GtsRequest { characteristics },
            (1..=9, _) => return Err(ParseError::CommandLength),
            _ => return Err(ParseError::CommandId),
        })
    }

    /// Writes the payload of a MAC command frame; returns its length.
    ///
    /// # Errors
    /// [`Full`] when `out` is too short.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, Full> {
        let mut w = Writer::new(out);
        match *self {
            Self::AssociationRequest { capability } => w.put(&[1, capability])?,
            Self::AssociationResponse { short_addr, status } => {
                w.u8(2)?;
                w.u16_le(short_addr)?;
                w.u8(status)?;
            }
            Self::DisassociationNotification { cause } => w.put(&[3, cause])?,
            Self::DataRequest => w.u8(4)?,
            Self::PanIdConflict => w.u8(5)?,
            Self::OrphanNotification => w.u8(6)?,
            Self::BeaconRequest => w.u8(7)?,
            Self::CoordinatorRealignment {
                pan_id,
                coordinator,
                channel,
                short_addr,
                channel_page,
            } => {
                w.u8(8)?;
                w.u16_le(pan_id)?;
                w.u16_le(coordinator)?;
                w.u8(channel)?;
                w.u16_le(short_addr)?;
                w.put(channel_page.as_slice())?;
            }
            Self::GtsRequest { characteristics } => w.put(&[9, characteristics])?,
        }
        Ok(w.written())
    }
}
