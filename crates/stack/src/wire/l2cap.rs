//! L2CAP's formats on an LE connection: the basic header, and the signals of its fixed channel.
//!
//! Place: between `ble`, which keeps the channels, and the bytes of HCI's data packets.
//! Left out: SDUs, which are counted in two bytes at the start of their first K-frame, and the
//! signals of BR/EDR and of enhanced credit-based channels: they are [`SignalError::Unknown`].
//!
//! Everything is little-endian. Sources: Bluetooth Core 5.4 Vol 3 Part A §3.1, §3.4 and §4.

use super::cursor::{Full, Reader, Writer};

/// Bytes of the basic header.
pub const HEADER_LEN: usize = 4;

/// The channel of signals on an LE connection (§2.1).
pub const SIGNALLING: u16 = 0x0005;
/// The first and the last channel that is allocated as it is needed (§2.1).
pub const DYNAMIC: core::ops::RangeInclusive<u16> = 0x0040..=0x007f;

/// The longest signal on an LE connection, with its header: the signalling MTU (§4).
pub const SIGNAL_LEN_MAX: usize = 23;

/// The smallest MTU and MPS of a credit-based channel, bytes (§4.22).
pub const MTU_MIN: u16 = 23;

/// The basic header of a PDU.
///
/// ```text
///   2       2
/// +-------+-------+------------------+
/// | length| CID   | payload          |
/// +-------+-------+------------------+
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Length of the payload, bytes.
    pub len: u16,
    /// The channel, as its receiver calls it.
    pub channel: u16,
}

impl Header {
    /// The header at the start of `bytes`.
    pub fn parse(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let mut r = Reader::new(bytes);
        let (len, channel) = (r.u16_le().ok()?, r.u16_le().ok()?);
        Some((Self { len, channel }, r.rest()))
    }

    /// Writes the header.
    ///
    /// # Errors
    /// [`Full`].
    pub fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        w.u16_le(self.len)?;
        w.u16_le(self.channel)
    }
}

/// The intervals that a peripheral asks the central for (§4.20).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Intervals {
    /// The shortest and the longest interval, in units of 1.25 ms.
    pub min: u16,
    /// The longest interval, in units of 1.25 ms.
    pub max: u16,
    /// Events that the peripheral may leave out.
    pub latency: u16,
    /// Supervision timeout, in units of 10 ms.
    pub timeout: u16,
}

/// One end of a credit-based channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct End {
    /// The channel, as this end calls it.
    pub channel: u16,
    /// The longest SDU that it takes, bytes.
    pub mtu: u16,
    /// The longest payload of a K-frame that it takes, bytes.
    pub mps: u16,
    /// K-frames that it takes before it gives more credits.
    pub credits: u16,
}

/// A signal of the LE signalling channel (§4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// A signal was not understood, or cannot be carried out (0x01).
    Reject {
        /// Why the signal was rejected: one of [`mod@reject`].
        reason: u16,
    },
    /// Ends a channel (0x06); channels as their own ends call them.
    DisconnectionRequest {
        /// The channel, as the receiver of the request calls it.
        destination: u16,
        /// The channel, as the sender of the request calls it.
        source: u16,
    },
    /// The answer (0x07), with the names of the request.
    DisconnectionResponse {
        /// The channel, as the receiver of the request calls it.
        destination: u16,
        /// The channel, as the sender of the request calls it.
        source: u16,
    },
    /// A peripheral asks for another interval (0x12).
    ParameterRequest(Intervals),
    /// The central's answer to [`Self::ParameterRequest`] (0x13).
    ParameterResponse {
        /// 0: the central accepts the parameters; 1: it rejects them.
        result: u16,
    },
    /// Asks for a credit-based channel (0x14).
    ConnectionRequest {
        /// Simplified protocol/service multiplexer (SPSM) of the service, 1 to 0xff.
        service: u16,
        /// The end of the channel at the sender of the request.
        end: End,
    },
    /// Answer to [`Self::ConnectionRequest`] (0x15).
    ConnectionResponse {
        /// One of [`result`]; unless it is success, `end` has no meaning.
        result: u16,
        /// The channel end of the sender of this response.
        end: End,
    },
    /// More K-frames may come (0x16).
    Credits {
        /// The channel, as the sender of this calls it.
        channel: u16,
        /// How many more credits, 1 to 65,535.
        credits: u16,
    },
}

/// Reasons of [`Signal::Reject`] (§4.1).
pub mod reject {
    /// The signal's code is unknown.
    pub const NOT_UNDERSTOOD: u16 = 0;
    /// Longer than the signalling MTU.
    pub const TOO_LONG: u16 = 1;
    /// The signal names a channel that does not exist.
    pub const INVALID_CHANNEL: u16 = 2;
}

/// Results of [`Signal::ConnectionResponse`] (§4.23).
pub mod result {
    /// The channel is open at both ends.
    pub const SUCCESS: u16 = 0;
    /// The SPSM names no service of this device.
    pub const UNKNOWN_SERVICE: u16 = 2;
    /// No memory for it now.
    pub const NO_RESOURCES: u16 = 4;
    /// A channel that cannot be allocated.
    pub const INVALID_SOURCE: u16 = 9;
    /// A channel that is there already.
    pub const SOURCE_TAKEN: u16 = 10;
    /// An MTU or MPS that the service cannot use.
    pub const UNACCEPTABLE: u16 = 11;
}

/// Why a signal is not one of [`Signal`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SignalError {
    /// Shorter than its header says, or a request that has not the bytes it needs.
    Malformed,
    /// A code that this stack does not know; `identifier` is what a reject must repeat.
    Unknown {
        /// The identifier of the signal.
        identifier: u8,
    },
}

impl SignalError {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Malformed => "malformed L2CAP signal",
            Self::Unknown { .. } => "unknown L2CAP signal",
        }
    }
}

speaks!(SignalError);

impl From<super::cursor::Truncated> for SignalError {
    fn from(_: super::cursor::Truncated) -> Self {
        Self::Malformed
    }
}

mod code {
    pub(super) const REJECT: u8 = 0x01;
    pub(super) const DISCONNECTION_REQUEST: u8 = 0x06;
    pub(super) const DISCONNECTION_RESPONSE: u8 = 0x07;
    pub(super) const PARAMETER_REQUEST: u8 = 0x12;
    pub(super) const PARAMETER_RESPONSE: u8 = 0x13;
    pub(super) const CONNECTION_REQUEST: u8 = 0x14;
    pub(super) const CONNECTION_RESPONSE: u8 = 0x15;
    pub(super) const CREDITS: u8 = 0x16;
}

impl Signal {
    /// The signal that is the payload of a PDU on [`SIGNALLING`], and its identifier. On LE a PDU
    /// holds one signal (§4).
    ///
    /// # Errors
    /// [`SignalError`].
    pub fn parse(bytes: &[u8]) -> Result<(u8, Self), SignalError> {
        let mut r = Reader::new(bytes);
        let (code, identifier, len) = (r.u8()?, r.u8()?, r.u16_le()?);
        if usize::from(len) != r.len() {
            return Err(SignalError::Malformed);
        }
        let mut word = || r.u16_le().map_err(SignalError::from);
        let signal = match code {
            // A reject may hold more, by its reason.
            code::REJECT => Self::Reject { reason: word()? },
            code::DISCONNECTION_REQUEST => Self::DisconnectionRequest {
                destination: word()?,
                source: word()?,
            },
            code::DISCONNECTION_RESPONSE => Self::DisconnectionResponse {
                destination: word()?,
                source: word()?,
            },
            code::PARAMETER_REQUEST => Self::ParameterRequest(Intervals {
                min: word()?,
                max: word()?,
                latency: word()?,
                timeout: word()?,
            }),
            code::PARAMETER_RESPONSE => Self::ParameterResponse { result: word()? },
            code::CONNECTION_REQUEST => Self::ConnectionRequest {
                service: word()?,
                end: End {
                    channel: word()?,
                    mtu: word()?,
                    mps: word()?,
                    credits: word()?,
                },
            },
            code::CONNECTION_RESPONSE => Self::ConnectionResponse {
                end: End {
                    channel: word()?,
                    mtu: word()?,
                    mps: word()?,
                    credits: word()?,
                },
                result: word()?,
            },
            code::CREDITS => Self::Credits {
                channel: word()?,
                credits: word()?,
            },
            _ => return Err(SignalError::Unknown { identifier }),
        };
        let is_whole = r.is_empty() || code == code::REJECT;
        is_whole
            .then_some((identifier, signal))
            .ok_or(SignalError::Malformed)
    }

    /// Writes the signal with its header, without the basic header before it.
    ///
    /// # Errors
    /// [`Full`].
    pub fn emit(&self, identifier: u8, w: &mut Writer<'_>) -> Result<(), Full> {
        let mut words = [0; 5];
        let [a, b, c, d, e] = &mut words;
        let (code, count) = match *self {
            Self::Reject { reason } => {
                *a = reason;
                (code::REJECT, 1)
            }
            Self::DisconnectionRequest {
                destination,
                source,
            } => {
                (*a, *b) = (destination, source);
                (code::DISCONNECTION_REQUEST, 2)
            }
            Self::DisconnectionResponse {
                destination,
                source,
            } => {
                (*a, *b) = (destination, source);
                (code::DISCONNECTION_RESPONSE, 2)
            }
            Self::ParameterRequest(asked) => {
                (*a, *b, *c, *d) = (asked.min, asked.max, asked.latency, asked.timeout);
                (code::PARAMETER_REQUEST, 4)
            }
            Self::ParameterResponse { result } => {
                *a = result;
                (code::PARAMETER_RESPONSE, 1)
            }
            Self::ConnectionRequest { service, end } => {
                (*a, *b, *c, *d, *e) = (service, end.channel, end.mtu, end.mps, end.credits);
                (code::CONNECTION_REQUEST, 5)
            }
            Self::ConnectionResponse { result, end } => {
                (*a, *b, *c, *d, *e) = (end.channel, end.mtu, end.mps, end.credits, result);
                (code::CONNECTION_RESPONSE, 5)
            }
            Self::Credits { channel, credits } => {
                (*a, *b) = (channel, credits);
                (code::CREDITS, 2)
            }
        };
        w.put(&[code, identifier])?;
        w.u16_le(2 * count)?;
        let mut words = words.iter().take(usize::from(count));
        words.try_for_each(|word| w.u16_le(*word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: End = End {
        channel: 0x41,
        mtu: 1280,
        mps: 247,
        credits: 10,
    };

    #[test]
    fn signals_look_as_the_specification_has_them() {
        let cases: [(Signal, &[u8]); 8] = [
            (
                Signal::Reject {
                    reason: reject::INVALID_CHANNEL,
                },
                &[1, 7, 2, 0, 2, 0],
            ),
            (
                Signal::DisconnectionRequest {
                    destination: 0x40,
                    source: 0x41,
                },
                &[6, 7, 4, 0, 0x40, 0, 0x41, 0],
            ),
            (
                Signal::DisconnectionResponse {
                    destination: 0x40,
                    source: 0x41,
                },
                &[7, 7, 4, 0, 0x40, 0, 0x41, 0],
            ),
            (
                Signal::ParameterRequest(Intervals {
                    min: 6,
                    max: 40,
                    latency: 4,
                    timeout: 500,
                }),
                &[0x12, 7, 8, 0, 6, 0, 40, 0, 4, 0, 0xf4, 1],
            ),
            (
                Signal::ParameterResponse { result: 1 },
                &[0x13, 7, 2, 0, 1, 0],
            ),
            (
                Signal::ConnectionRequest {
                    service: 0x23,
                    end: END,
                },
                &[0x14, 7, 10, 0, 0x23, 0, 0x41, 0, 0, 5, 247, 0, 10, 0],
            ),
            (
                Signal::ConnectionResponse {
                    result: result::UNKNOWN_SERVICE,
                    end: END,
                },
                &[0x15, 7, 10, 0, 0x41, 0, 0, 5, 247, 0, 10, 0, 2, 0],
            ),
            (
                Signal::Credits {
                    channel: 0x41,
                    credits: 0x1234,
                },
                &[0x16, 7, 4, 0, 0x41, 0, 0x34, 0x12],
            ),
        ];
        for (signal, bytes) in cases {
            let mut out = [0; SIGNAL_LEN_MAX];
            let mut w = Writer::new(&mut out);
            signal.emit(7, &mut w).unwrap();
            let len = w.written();
            assert_eq!(&out[..len], bytes, "{signal:?}");
            assert_eq!(Signal::parse(bytes), Ok((7, signal)));
            // Cut anywhere, or one byte too long, it is none.
            for cut in 0..bytes.len() {
                assert_eq!(Signal::parse(&bytes[..cut]), Err(SignalError::Malformed));
            }
            assert_eq!(
                Signal::parse(&out[..len + 1]),
                Err(SignalError::Malformed),
                "{signal:?}"
            );
        }
    }

    #[test]
    fn a_reject_may_hold_data_and_an_unknown_code_keeps_its_identifier() {
        let reject = [1, 9, 4, 0, 1, 0, 23, 0];
        let expected = Signal::Reject {
            reason: reject::TOO_LONG,
        };
        assert_eq!(Signal::parse(&reject), Ok((9, expected)));
        let enhanced = [0x17, 3, 2, 0, 0x23, 0];
        let unknown = SignalError::Unknown { identifier: 3 };
        assert_eq!(Signal::parse(&enhanced), Err(unknown));
    }

    #[test]
    fn a_header_names_the_length_and_the_channel() {
        let header = Header {
            len: 247,
            channel: 0x40,
        };
        let mut out = [0; HEADER_LEN];
        header.emit(&mut Writer::new(&mut out)).unwrap();
        assert_eq!(out, [247, 0, 0x40, 0]);
        assert_eq!(Header::parse(&out), Some((header, &[][..])));
        assert_eq!(Header::parse(&out[..3]), None);
    }
}
