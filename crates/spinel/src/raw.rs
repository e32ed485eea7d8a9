//! What [`Property::StreamRaw`](crate::frame::Property::StreamRaw) carries: frames of IEEE 802.15.4
//! to send and received, and how a transmission ended.
//!
//! Each struct may be shorter than known here, or longer: a missing field has a neutral default.

use crate::frame::Status;
use crate::packed::{Reader, Writer};

/// The longest PSDU, FCS included, bytes.
pub const PSDU_LEN_MAX: usize = 127;

/// Bytes of the FCS, which the RCP computes and checks.
pub const FCS_LEN: usize = 2;

/// A frame for the RCP to send, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request<'a> {
    /// The frame from its first byte up to its FCS, which is left out.
    pub psdu: &'a [u8],
    /// Channel to send on, and to receive on afterwards.
    pub channel: u8,
    /// Whether the channel is assessed before.
    pub csma: bool,
    /// Backoffs after which a busy channel is given up; 0: it is assessed once, at once.
    pub csma_backoffs_max: u8,
    /// Attempts after the first one that is not acknowledged.
    pub retries_max: u8,
    /// The header's frame counter is the host's.
    pub is_header_updated: bool,
    /// The frame was sent before. ot-nrf528xx leaves the key index and the frame counter alone
    /// only then.
    pub is_retransmission: bool,
    /// The host has secured the frame; the RCP does not.
    pub is_secured: bool,
    /// When to send it: µs after [`Self::base_us`]. Both 0: at once.
    pub delay_us: u32,
    /// A time of the RCP's clock, µs modulo 2^32.
    pub base_us: u32,
}

impl<'a> Request<'a> {
    /// The value to set.
    pub fn emit(&self) -> Vec<u8> {
        let with_fcs = [self.psdu, &[0; FCS_LEN]].concat();
        Writer::new()
            .data(&with_fcs)
            .u8(self.channel)
            .u8(self.csma_backoffs_max)
            .u8(self.retries_max)
            .bool(self.csma)
            .bool(self.is_header_updated)
            .bool(self.is_retransmission)
            .bool(self.is_secured)
            .u32(self.delay_us)
            .u32(self.base_us)
            .u8(self.channel)
            .finish()
    }

    /// Reads a value as an RCP does, the transmission power aside. `None`: it is malformed.
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(value);
        let with_fcs = reader.data()?;
        let channel = reader.u8()?;
        Some(Self {
            psdu: with_fcs.get(..with_fcs.len().checked_sub(FCS_LEN)?)?,
            channel,
            csma_backoffs_max: reader.u8().unwrap_or(4),
            retries_max: reader.u8().unwrap_or(15),
            csma: reader.bool().unwrap_or(true),
            is_header_updated: reader.bool().unwrap_or(false),
            is_retransmission: reader.bool().unwrap_or(false),
            is_secured: reader.bool().unwrap_or(false),
            delay_us: reader.u32().unwrap_or(0),
            base_us: reader.u32().unwrap_or(0),
        })
    }
}

/// A frame as an RCP received it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceivedFrame<'a> {
    /// The frame with its FCS; empty where the radio refused the frame.
    pub psdu: &'a [u8],
    /// Received signal strength, dBm; 127: unknown.
    pub rssi_dbm: i8,
    /// Power of the noise, dBm; -128: unknown.
    pub noise_dbm: i8,
    /// The RCP's remarks.
    pub flags: Flags,
    /// The channel it came on; 0: unknown.
    pub channel: u8,
    /// Link quality, 255 best; 0: unknown.
    pub lqi: u8,
    /// The RCP's clock at the end of the frame's start delimiter (SFD), µs.
    pub sfd_us: Option<u64>,
    /// Why the radio refused the frame, by OpenThread's numbers; 0: it did not.
    pub error: u32,
}

impl<'a> ReceivedFrame<'a> {
    /// Reads a frame from the front of a value. `None`: its bytes are cut off.
    pub fn read(reader: &mut Reader<'a>) -> Option<Self> {
        let psdu = reader.data()?;
        let rssi_dbm = reader.i8().unwrap_or(RSSI_UNKNOWN);
        let noise_dbm = reader.i8().unwrap_or(NOISE_UNKNOWN);
        let flags = Flags(reader.u16().unwrap_or(0));
        let mut phy = Reader::new(reader.data().unwrap_or_default());
        let mut vendor = Reader::new(reader.data().unwrap_or_default());
        // Key index and frame counter of the ACK.
        let _mac = reader.data();
        Some(Self {
            psdu,
            rssi_dbm,
            noise_dbm,
            flags,
            channel: phy.u8().unwrap_or(0),
            lqi: phy.u8().unwrap_or(0),
            sfd_us: phy.u64(),
            error: vendor.packed().unwrap_or(0),
        })
    }

    /// Writes a frame as an RCP does.
    pub fn write(&self, writer: Writer) -> Writer {
        let phy = Writer::new().u8(self.channel).u8(self.lqi);
        let phy = match self.sfd_us {
            Some(us) => phy.u64(us),
            None => phy,
        };
        writer
            .data(self.psdu)
            .i8(self.rssi_dbm)
            .i8(self.noise_dbm)
            .u16(self.flags.0)
            .data(&phy.finish())
            .data(&Writer::new().packed(self.error).finish())
            .data(&[0; 5])
    }

    /// The RCP's clock when the frame's last symbol was on the air, µs.
    pub fn end_us(&self) -> Option<u64> {
        // Between SFD and FCS: one byte of length, and the PSDU.
        let bytes = 1 + self.psdu.len() as u64;
        self.sfd_us.map(|us| us.saturating_add(bytes * BYTE_US))
    }
}

/// An RCP's remarks on a frame that it received.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u16);

impl Flags {
    /// This RCP sent the frame.
    pub const SENT: Self = Self(1);
    /// Its FCS is wrong.
    pub const BAD_FCS: Self = Self(4);
    /// It came before.
    pub const DUPLICATE: Self = Self(8);
    /// It was acknowledged, with the frame pending bit.
    pub const ACKED_PENDING: Self = Self(0x10);
    /// It was acknowledged by a secured ACK.
    pub const ACKED_SECURED: Self = Self(0x20);

    /// Whether any of `other` is set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// The answer to a [`Request`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Report<'a> {
    /// How it ended.
    pub status: Status,
    /// The ACK had the frame pending bit.
    pub pending: bool,
    /// The ACK; `None` where there is none, or where the RCP does not hand it out.
    pub ack: Option<ReceivedFrame<'a>>,
}

impl<'a> Report<'a> {
    /// Reads the value of [`LastStatus`](crate::frame::Property::LastStatus). `None`: it is
    /// malformed.
    pub fn parse(value: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(value);
        let status = Status::from(reader.packed()?);
        let pending = reader.bool();
        let _is_header_updated = reader.bool();
        let ack = match status {
            Status::Ok => ReceivedFrame::read(&mut reader).filter(|ack| !ack.psdu.is_empty()),
            _ => None,
        };
        Some(Self {
            status,
            pending: pending.unwrap_or(false),
            ack,
        })
    }
}

/// Time of a byte on the air at 250 kb/s, µs.
pub(crate) const BYTE_US: u64 = 32;

const RSSI_UNKNOWN: i8 = 127;
const NOISE_UNKNOWN: i8 = -128;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn whatever_is_cut_off_of_a_received_frame_has_a_default() {
        let heard = ReceivedFrame {
            psdu: &[0x41, 0x88, 7, 1, 2, 0, 0],
            rssi_dbm: -20,
            noise_dbm: -90,
            flags: Flags::ACKED_PENDING,
            channel: 15,
            lqi: 200,
            sfd_us: Some(0x4421_379d),
            error: 0,
        };
        let whole = heard.write(Writer::new()).finish();
        for len in 0..=whole.len() {
            let read = ReceivedFrame::read(&mut Reader::new(&whole[..len]));
            let Some(read) = read else {
                assert!(len < 2 + heard.psdu.len(), "{len}");
                continue;
            };
            assert_eq!(read.psdu, heard.psdu);
            assert_eq!(read.rssi_dbm, if len < 10 { 127 } else { -20 });
            assert_eq!(read.noise_dbm, if len < 11 { -128 } else { -90 });
            // Structs are there whole or not at all.
            let (channel, us) = if len < 25 {
                (0, None)
            } else {
                (15, heard.sfd_us)
            };
            assert_eq!((read.channel, read.sfd_us), (channel, us), "{len}");
        }
        // A struct of an older firmware: channel and link quality only.
        let short = Writer::new()
            .data(heard.psdu)
            .i8(-20)
            .i8(-90)
            .u16(0)
            .data(&[15, 200])
            .finish();
        let read = ReceivedFrame::read(&mut Reader::new(&short)).unwrap();
        assert_eq!((read.channel, read.lqi, read.sfd_us), (15, 200, None));
        assert_eq!(read.end_us(), None);
        assert_eq!(heard.end_us(), Some(0x4421_379d + 8 * 32));
    }

    #[test]
    fn an_rcp_takes_defaults_for_what_a_request_leaves_out() {
        let value = Writer::new().data(&[1, 2, 3, 0, 0]).u8(15).finish();
        let request = Request::parse(&value).unwrap();
        assert_eq!((request.psdu, request.channel), (&[1, 2, 3][..], 15));
        assert!(request.csma && !request.is_secured);
        for wrong in [&[][..], &[1, 0, 9, 15], &[2, 0, 9, 15], &[2, 0, 9, 9]] {
            assert_eq!(Request::parse(wrong), None, "{wrong:x?}");
        }
    }

    #[test]
    fn an_old_firmwares_report_lacks_fields() {
        let report = Report::parse(&[17]).unwrap();
        assert_eq!(
            (report.status, report.pending, report.ack),
            (Status::NoAck, false, None)
        );
        let report = Report::parse(&[0, 1]).unwrap();
        assert_eq!(
            (report.status, report.pending, report.ack),
            (Status::Ok, true, None)
        );
        assert_eq!(Report::parse(&[]), None);
        assert_eq!(Report::parse(&[0x80]), None);
    }

    proptest! {
        #[test]
        fn requests_are_read_as_they_are_written(
            psdu in prop::collection::vec(any::<u8>(), 0..126),
            (channel, csma_backoffs_max, retries_max) in any::<(u8, u8, u8)>(),
            (csma, is_header_updated, is_retransmission, is_secured) in any::<(bool, bool, bool, bool)>(),
            (delay_us, base_us) in any::<(u32, u32)>(),
        ) {
            let request = Request {
                psdu: &psdu, channel, csma, csma_backoffs_max, retries_max, is_header_updated,
                is_retransmission, is_secured, delay_us, base_us,
            };
            let value = request.emit();
            prop_assert_eq!(Request::parse(&value), Some(request));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Report::parse(&bytes);
            let _ = Request::parse(&bytes);
            if let Some(heard) = ReceivedFrame::read(&mut Reader::new(&bytes)) {
                let written = heard.write(Writer::new()).finish();
                prop_assert_eq!(ReceivedFrame::read(&mut Reader::new(&written)), Some(heard));
            }
        }
    }
}
