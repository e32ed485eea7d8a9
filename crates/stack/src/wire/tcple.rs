//! TCPlE's formats: the one octet and more in front of each SDU of its channel, and the
//! characteristic that names that channel.
//!
//! Place: between `link`, which decides what a segment becomes, and the bytes of SDUs. Behind the
//! header of all but [`Sdu::Release`] and [`Sdu::Filler`] is a packet with compressed headers, as
//! on the channel of IPSP.
//!
//! ```text
//!   plain     | 0 | packet                    ACK     | 1 | waited, ms (2) | packet
//!   prefetched| 2 | flow | packet             release | 3 | flow | bytes (2)
//!   filler    | 4 | anything
//! ```
//!
//! Differs: the paper shows no type octet; without it a peer that lacks TCPlE would read the
//! waiting time as the beginning of a packet. Source: Performant TCP over BLE, §V and Fig 6, with
//! what it leaves open decided here.

use super::cursor::{Full, Reader, Truncated, Writer};

/// The longest header in front of a packet.
pub const HEADER_LEN_MAX: usize = 3;

/// An SDU of the channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sdu {
    /// A packet to be delivered at once. Segments held for the same connection of this peer are
    /// dropped.
    Plain,
    /// A packet that acknowledges, and how long it and the data that it acknowledges waited, ms.
    Ack {
        /// How long the ACK waited for the link at its sender, ms.
        waited_ms: u16,
    },
    /// A segment that its TCP may not send yet: to be held.
    Prefetched {
        /// The number by which [`Self::Release`] names the connection.
        flow: u8,
    },
    /// TCP has sent this many bytes of the held segments.
    Release {
        /// The connection, as [`Self::Prefetched`] named it.
        flow: u8,
        /// Bytes of data, from the oldest segment held on; 0: nothing held of it is wanted any
        /// more.
        bytes: u16,
    },
    /// No content: it keeps a connection event going.
    Filler,
}

const PLAIN: u8 = 0;
const ACK: u8 = 1;
const PREFETCHED: u8 = 2;
const RELEASE: u8 = 3;
const FILLER: u8 = 4;

impl Sdu {
    /// The SDU that begins with `bytes`, and the packet behind its header.
    ///
    /// # Errors
    /// [`Truncated`]: too short, or of a type that this version has not.
    pub fn parse(bytes: &[u8]) -> Result<(Self, &[u8]), Truncated> {
        let mut r = Reader::new(bytes);
        let sdu = match r.u8()? {
            PLAIN => Self::Plain,
            ACK => Self::Ack {
                waited_ms: r.u16()?,
            },
            PREFETCHED => Self::Prefetched { flow: r.u8()? },
            RELEASE => Self::Release {
                flow: r.u8()?,
                bytes: r.u16()?,
            },
            FILLER => Self::Filler,
            _ => return Err(Truncated),
        };
        Ok((sdu, r.rest()))
    }

    /// Writes it.
    ///
    /// # Errors
    /// [`Full`].
    pub fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        match *self {
            Self::Plain => w.u8(PLAIN),
            Self::Ack { waited_ms } => {
                w.u8(ACK)?;
                w.u16(waited_ms)
            }
            Self::Prefetched { flow } => w.put(&[PREFETCHED, flow]),
            Self::Release { flow, bytes } => {
                w.put(&[RELEASE, flow])?;
                w.u16(bytes)
            }
            Self::Filler => w.u8(FILLER),
        }
    }
}

/// The facts about a device that the characteristic holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Characteristic {
    /// The service of the channel: an SPSM from 0x0080 to 0x00ff.
    pub service: u16,
    /// Bytes of prefetched segments that the device holds.
    pub held_len: u16,
}

/// The version of these formats that the characteristic names.
const VERSION: u8 = 1;

/// SPSMs that are allocated as they are needed (Core 5.4 Vol 3 Part A §4.22).
const SERVICES: core::ops::RangeInclusive<u16> = 0x0080..=0x00ff;

impl Characteristic {
    /// Length of the characteristic's value, bytes.
    pub const LEN: usize = 5;

    /// UUID of the characteristic, least significant byte first, as ATT sends it:
    /// 0c6f3d1a-5e0b-4b0e-9a53-6d6f74657401, drawn for this purpose.
    pub const UUID: [u8; 16] = 0x0c6f_3d1a_5e0b_4b0e_9a53_6d6f_7465_7401_u128.to_le_bytes();

    /// Parses a value; `None`: of another version, or of an impossible service.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let mut r = Reader::new(value);
        let version = r.u8().ok()?;
        let (service, held_len) = (r.u16_le().ok()?, r.u16_le().ok()?);
        let is_known = version == VERSION && SERVICES.contains(&service);
        is_known.then_some(Self { service, held_len })
    }

    /// The value, as a server of ATT sends it.
    pub const fn value(&self) -> [u8; Self::LEN] {
        let ([a, b], [c, d]) = (self.service.to_le_bytes(), self.held_len.to_le_bytes());
        [VERSION, a, b, c, d]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sdus_look_as_they_are_drawn() {
        let cases: [(Sdu, &[u8]); 5] = [
            (Sdu::Plain, &[0]),
            (Sdu::Ack { waited_ms: 0x1234 }, &[1, 0x12, 0x34]),
            (Sdu::Prefetched { flow: 7 }, &[2, 7]),
            (
                Sdu::Release {
                    flow: 7,
                    bytes: 1200,
                },
                &[3, 7, 4, 0xb0],
            ),
            (Sdu::Filler, &[4]),
        ];
        for (sdu, bytes) in cases {
            let mut out = [0; 8];
            let mut w = Writer::new(&mut out);
            sdu.emit(&mut w).unwrap();
            let len = w.written();
            assert_eq!(&out[..len], bytes, "{sdu:?}");
            let packet = [bytes, &[0x7a, 0x33]].concat();
            assert_eq!(Sdu::parse(&packet), Ok((sdu, &[0x7a, 0x33][..])));
            for cut in 0..len {
                assert!(Sdu::parse(&bytes[..cut]).is_err(), "{sdu:?} cut at {cut}");
            }
        }
        assert!(Sdu::parse(&[5, 0, 0]).is_err());
    }

    #[test]
    fn a_characteristic_of_another_version_or_service_is_none() {
        let this = Characteristic {
            service: 0x0080,
            held_len: 2560,
        };
        assert_eq!(this.value(), [1, 0x80, 0, 0, 0x0a]);
        assert_eq!(Characteristic::parse(&this.value()), Some(this));
        assert_eq!(Characteristic::parse(&[2, 0x80, 0, 0, 0x0a]), None);
        assert_eq!(Characteristic::parse(&[1, 0x23, 0, 0, 0x0a]), None);
        assert_eq!(Characteristic::parse(&[1, 0x80, 0, 0]), None);
    }
}
