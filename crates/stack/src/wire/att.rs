//! The one exchange of the Attribute Protocol that finds TCPlE's channel: reading a characteristic
//! by its UUID.
//!
//! Place: between `ble` and the bytes of ATT's fixed channel on an LE connection. Left out:
//! everything else of ATT and GATT. A server answers each other request with an error, as it must.
//!
//! Everything is little-endian. Source: Bluetooth Core 5.4 Vol 3 Part F §3.4.

use super::cursor::{Full, Reader, Writer};

/// The channel of ATT on an LE connection (Core 5.4 Vol 3 Part A §2.1).
pub const CHANNEL: u16 = 0x0004;

/// The longest PDU before both ends have agreed on more: the MTU of ATT on LE (Vol 3 Part F
/// §3.2.8).
pub const PDU_LEN_MAX: usize = 23;

/// A PDU of the Attribute Protocol, as far as TCPlE needs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pdu<'a> {
    /// Asks for the values of a characteristic, among all handles (0x08).
    ReadByType {
        /// UUID of the characteristic, 128 bits, least significant byte first.
        uuid: [u8; 16],
    },
    /// Answer to [`Self::ReadByType`] (0x09): the value of the first characteristic found.
    Value(&'a [u8]),
    /// A request was refused (0x01).
    Error {
        /// The opcode of the request.
        request: u8,
        /// Error code: one of [`mod@reason`].
        reason: u8,
    },
    /// Another request, which has to be refused.
    OtherRequest {
        /// Opcode of the request, which an error repeats.
        opcode: u8,
    },
    /// A command, a notification, or the response to a request of another host: it needs no answer.
    Other,
}

const ERROR: u8 = 0x01;
const READ_BY_TYPE: u8 = 0x08;
const READ_BY_TYPE_ANSWER: u8 = 0x09;

/// Error codes of [`Pdu::Error`] (Core 5.4 Vol 3 Part F §3.4.1.1).
pub mod reason {
    /// The server does not support the request: Request Not Supported.
    pub const UNSUPPORTED: u8 = 0x06;
    /// No attribute of that type in the range: Attribute Not Found.
    pub const NOT_FOUND: u8 = 0x0a;
}

/// The handle of the one characteristic that a server here has.
const HANDLE: u16 = 0x0003;

/// Whether a PDU with this opcode is a request: those of the table in §3.4.8 that have an answer.
const fn is_request(opcode: u8) -> bool {
    matches!(
        opcode,
        0x02 | 0x04 | 0x06 | 0x08 | 0x0a | 0x0c | 0x0e | 0x10 | 0x12 | 0x16 | 0x18 | 0x20
    )
}

impl<'a> Pdu<'a> {
    /// The PDU in `bytes`; [`Self::Other`] for anything that needs no answer, malformed PDUs
    /// included.
    pub fn parse(bytes: &'a [u8]) -> Self {
        Self::read(bytes).unwrap_or(match bytes.first() {
            Some(opcode) if is_request(*opcode) => Self::OtherRequest { opcode: *opcode },
            _ => Self::Other,
        })
    }

    fn read(bytes: &'a [u8]) -> Option<Self> {
        let mut r = Reader::new(bytes);
        match r.u8().ok()? {
            READ_BY_TYPE => {
                let (first, last) = (r.u16_le().ok()?, r.u16_le().ok()?);
                let uuid = r.rest().try_into().ok()?;
                (first <= HANDLE && HANDLE <= last).then_some(Self::ReadByType { uuid })
            }
            READ_BY_TYPE_ANSWER => {
                let len = usize::from(r.u8().ok()?);
                let (_, value) = r.rest().get(..len)?.split_at_checked(2)?;
                Some(Self::Value(value))
            }
            ERROR => {
                let (request, _handle) = (r.u8().ok()?, r.u16_le().ok()?);
                let reason = r.u8().ok()?;
                Some(Self::Error { request, reason })
            }
            _ => None,
        }
    }

    /// Writes it; [`Self::Other`] writes nothing.
    ///
    /// # Errors
    /// [`Full`].
    pub fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        match *self {
            Self::ReadByType { uuid } => {
                w.u8(READ_BY_TYPE)?;
                w.u16_le(0x0001)?;
                w.u16_le(0xffff)?;
                w.put(&uuid)
            }
            Self::Value(value) => {
                w.put(&[READ_BY_TYPE_ANSWER, value.len() as u8 + 2])?;
                w.u16_le(HANDLE)?;
                w.put(value)
            }
            Self::Error { request, reason } => {
                w.put(&[ERROR, request])?;
                w.u16_le(0)?;
                w.u8(reason)
            }
            Self::OtherRequest { .. } | Self::Other => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exchange_looks_as_the_specification_has_it() {
        let uuid = [0x5a; 16];
        let asks = [&[0x08, 1, 0, 0xff, 0xff][..], &uuid].concat();
        let cases: [(Pdu<'_>, &[u8]); 3] = [
            (Pdu::ReadByType { uuid }, &asks),
            (Pdu::Value(&[1, 2, 3]), &[0x09, 5, 3, 0, 1, 2, 3]),
            (
                Pdu::Error {
                    request: 0x08,
                    reason: reason::NOT_FOUND,
                },
                &[0x01, 0x08, 0, 0, 0x0a],
            ),
        ];
        for (pdu, bytes) in cases {
            let mut out = [0; PDU_LEN_MAX];
            let mut w = Writer::new(&mut out);
            pdu.emit(&mut w).unwrap();
            let len = w.written();
            assert_eq!(&out[..len], bytes);
            assert_eq!(Pdu::parse(bytes), pdu);
        }
    }

    #[test]
    fn what_is_cut_or_unknown_is_a_request_or_needs_no_answer() {
        let request = |bytes: &[u8]| matches!(Pdu::parse(bytes), Pdu::OtherRequest { .. });
        assert!(request(&[0x02, 23, 0]), "an MTU");
        assert!(
            request(&[0x08, 1, 0, 0xff, 0xff, 0x00, 0x28]),
            "a UUID of 16 bits"
        );
        assert!(request(&[0x08]));
        assert_eq!(Pdu::parse(&[]), Pdu::Other);
        assert_eq!(Pdu::parse(&[0x52, 1, 0]), Pdu::Other, "a command");
        assert_eq!(Pdu::parse(&[0x09, 9, 3, 0]), Pdu::Other);
    }
}
