//! Frames as the radio leaves them in memory.

use motet::time::Instant;
use motet_embassy::mac::RxMeta;

/// A frame as the radio left it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Raw {
    /// The PHR, which counts the FCS; then the frame, and in the place of its FCS the signal
    /// strength in dBm and the link quality.
    pub data: [u8; RAW_LEN],
    /// Channel, 11 to 26.
    pub channel: u8,
}

impl Raw {
    /// Copies the frame without its FCS into `psdu`. `at`: when it was reported. `None`: it has no
    /// possible length.
    pub(crate) fn parse(&self, at: Instant, psdu: &mut [u8]) -> Option<(usize, RxMeta)> {
        let frame = self.frame()?;
        psdu.get_mut(..frame.len())?.copy_from_slice(frame);
        let place = |offset| self.data.get(1 + frame.len() + offset).copied();
        let meta = RxMeta {
            rssi_dbm: place(0)?.cast_signed(),
            lqi: place(1)?,
            channel: self.channel,
            at: match is_answered(frame) {
                // Reported when the ACK that the radio sends was out.
                true => before(at, ACK_US),
                false => at,
            },
        };
        Some((frame.len(), meta))
    }

    /// Of an ACK, whether it says that something waits.
    pub(crate) fn is_pending(&self) -> bool {
        let [control, ..] = self.frame().unwrap_or_default() else {
            return false;
        };
        control & PENDING != 0
    }

    fn frame(&self) -> Option<&[u8]> {
        let [phr, rest @ ..] = &self.data;
        let len = usize::from(phr & 0x7f).checked_sub(FCS_LEN)?;
        rest.get(..len).filter(|frame| frame.len() >= HEAD_LEN)
    }
}

/// Whether a frame asks for an ACK.
pub(crate) fn asks_for_ack(psdu: &[u8]) -> bool {
    matches!(psdu, [control, ..] if control & ACK_REQUEST != 0)
}

/// Whether the radio answers a frame that it was sent: enhanced ACKs, those of frame version 2, are
/// off.
fn is_answered(psdu: &[u8]) -> bool {
    let is_old = matches!(psdu, [_, control, ..] if control & VERSION < VERSION_2);
    asks_for_ack(psdu) && is_old
}

/// An earlier time.
pub(crate) fn before(at: Instant, us: u64) -> Instant {
    Instant::from_micros(at.as_micros().saturating_sub(us))
}

/// The longest frame, and its PHR, as `esp-radio` keeps them.
const RAW_LEN: usize = 129;

pub(crate) const FCS_LEN: usize = 2;

/// Frame control and sequence number.
const HEAD_LEN: usize = 3;

/// From a frame's last symbol to that of its ACK: a turnaround and 11 bytes, µs.
pub(crate) const ACK_US: u64 = 192 + 11 * 32;

// Frame control (IEEE 802.15.4-2006 §7.2.1.1): the first byte, and the second one.
const PENDING: u8 = 0x10;
const ACK_REQUEST: u8 = 0x20;
const VERSION: u8 = 0x30;
const VERSION_2: u8 = 0x20;
