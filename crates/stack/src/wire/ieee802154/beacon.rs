//! Beacons.
//!
//! Place: what a beacon frame carries, behind [`Header`](super::Header).
//! Left out: superframes; this stack sends none and only reads them.
//! Source: IEEE 802.15.4-2006 §7.2.2.1.

use super::{ParseError, reversed};
use crate::wire::LinkAddr;
use crate::wire::cursor::{Full, Reader, Writer};

/// The payload of a beacon frame (§7.2.2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Beacon<'a> {
    /// How the superframe is laid out.
    pub superframe: Superframe,
    /// The coordinator accepts GTS requests.
    pub gts_permit: bool,
    /// Bit `i`: slot `i` of the GTS list is for receiving only. Zero without a list.
    pub gts_directions: u8,
    /// At most seven descriptors of 3 bytes; see [`Self::guaranteed_slots`].
    pub gts: &'a [[u8; 3]],
    /// Short addresses with data pending, as on the air: least significant byte first.
    pub pending_short: &'a [[u8; 2]],
    /// Extended addresses with data pending, as on the air: least significant byte first.
    pub pending_extended: &'a [[u8; 8]],
    /// Beacon payload, for the layer above.
    pub payload: &'a [u8],
}

/// The superframe specification, 16 bits (§7.2.2.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Superframe {
    /// Beacon interval exponent; 15: no periodic beacons.
    pub beacon_order: u8,
    /// Active portion exponent, 0 to 15; 15: no active portion.
    pub superframe_order: u8,
    /// The last slot of the contention access period.
    pub final_cap_slot: u8,
    /// The coordinator sleeps early (battery life extension).
    pub battery_life_extension: bool,
    /// The sender is the PAN coordinator.
    pub pan_coordinator: bool,
    /// Whether the coordinator accepts associations.
    pub association_permit: bool,
}

/// One guaranteed time slot (§7.2.2.1.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GuaranteedSlot {
    /// The device that owns it.
    pub device: u16,
    /// First superframe slot, 0 to 15.
    pub start: u8,
    /// Length, 0 to 15 superframe slots.
    pub len: u8,
    /// The device receives in it; otherwise it transmits.
    pub receive: bool,
}

impl Superframe {
    const fn from_bits(bits: u16) -> Self {
        Self {
            beacon_order: bits as u8 & 15,
            superframe_order: bits as u8 >> 4,
            final_cap_slot: (bits >> 8) as u8 & 15,
            battery_life_extension: bits & 1 << 12 != 0,
            pan_coordinator: bits & 1 << 14 != 0,
            association_permit: bits & 1 << 15 != 0,
        }
    }

    const fn bits(self) -> u16 {
        (self.beacon_order & 15) as u16
            | ((self.superframe_order & 15) as u16) << 4
            | ((self.final_cap_slot & 15) as u16) << 8
            | (self.battery_life_extension as u16) << 12
            | (self.pan_coordinator as u16) << 14
            | (self.association_permit as u16) << 15
    }
}

impl<'a> Beacon<'a> {
    /// Reads the payload of a beacon frame.
    ///
    /// # Errors
    /// [`ParseError::Truncated`], [`ParseError::PendingAddresses`].
    pub fn parse(payload: &'a [u8]) -> Result<Self, ParseError> {
        let mut r = Reader::new(payload);
        let superframe = Superframe::from_bits(r.u16_le()?);
        let gts_spec = r.u8()?;
        let gts_count = usize::from(gts_spec & 7);
        let gts_directions = if gts_count == 0 { 0 } else { r.u8()? & 0x7f };
        let gts = r.slice(gts_count * 3)?.as_chunks().0;
        let pending_spec = r.u8()?;
        let (short, extended) = (
            usize::from(pending_spec & 7),
            usize::from(pending_spec >> 4 & 7),
        );
        if short + extended > PENDING_MAX {
            return Err(ParseError::PendingAddresses);
        }
        Ok(Self {
            superframe,
            gts_permit: gts_spec & 0x80 != 0,
            gts_directions,
            gts,
            pending_short: r.slice(short * 2)?.as_chunks().0,
            pending_extended: r.slice(extended * 8)?.as_chunks().0,
            payload: r.rest(),
        })
    }

    /// Writes the payload of a beacon frame; returns its length.
    ///
    /// # Errors
    /// [`Full`] when `out` is too short or a list longer than its count field says.
    pub fn emit(&self, out: &mut [u8]) -> Result<usize, Full> {
        let pending = self.pending_short.len() + self.pending_extended.len();
        if self.gts.len() > 7 || pending > PENDING_MAX {
            return Err(Full);
        }
        let mut w = Writer::new(out);
        w.u16_le(self.superframe.bits())?;
        w.u8(self.gts.len() as u8 | u8::from(self.gts_permit) << 7)?;
        if !self.gts.is_empty() {
            w.u8(self.gts_directions & 0x7f)?;
        }
        w.put(self.gts.as_flattened())?;
        w.u8(self.pending_short.len() as u8 | (self.pending_extended.len() as u8) << 4)?;
        w.put(self.pending_short.as_flattened())?;
        w.put(self.pending_extended.as_flattened())?;
        w.put(self.payload)?;
        Ok(w.written())
    }

    /// The guaranteed time slots, in order.
    pub fn guaranteed_slots(&self) -> impl Iterator<Item = GuaranteedSlot> + '_ {
        let directions = self.gts_directions;
        self.gts
            .iter()
            .zip(0u32..8)
            .map(move |(&[low, high, slots], index)| GuaranteedSlot {
                device: u16::from_le_bytes([low, high]),
                start: slots & 15,
                len: slots >> 4,
                receive: directions >> index & 1 != 0,
            })
    }

    /// The addresses with data pending: short ones first.
    pub fn pending(&self) -> impl Iterator<Item = LinkAddr> + '_ {
        let short = self
            .pending_short
            .iter()
            .map(|a| LinkAddr::Short(u16::from_le_bytes(*a)));
        short.chain(
            self.pending_extended
                .iter()
                .map(|a| LinkAddr::Extended(reversed(*a))),
        )
    }
}

const PENDING_MAX: usize = 7;
