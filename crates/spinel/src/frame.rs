//! Spinel's frames: a header, a command and, behind all commands but one, a property and its value.
//!
//! ```text
//!  0 1 2 3 4 5 6 7
//! +-+-+-+-+-+-+-+-+---------+----------+-------+
//! |1 0|IID|  TID  | command | property | value |
//! +-+-+-+-+-+-+-+-+---------+----------+-------+
//! ```
//!
//! Command and property are packed numbers ([`Reader::packed`]).
//!
//! Source: Spinel's draft (draft-rquattle-spinel-unified) §2 and §4; numbers that are younger than
//! it from OpenThread's `spinel.h`.

use std::fmt;

use crate::packed::{Reader, Writer};

/// The first byte of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Header {
    /// The interface (IID), 0 to 3: which of several radios behind one line. Usually 0.
    pub interface: u8,
    /// The transaction (TID), 1 to 15: an answer has that of its request. 0: there is none.
    pub transaction: u8,
}

impl Header {
    /// The largest number of a transaction.
    pub const TRANSACTION_MAX: u8 = 15;

    /// `None`: not a header of Spinel.
    pub const fn parse(byte: u8) -> Option<Self> {
        if byte & 0xc0 != FLAG {
            return None;
        }
        Some(Self {
            interface: byte >> 4 & 3,
            transaction: byte & 15,
        })
    }

    /// As it goes over the line; of both numbers only the bits that fit.
    pub const fn emit(self) -> u8 {
        FLAG | (self.interface & 3) << 4 | self.transaction & 15
    }
}

/// A frame that is about a property.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame<'a> {
    /// Interface and transaction.
    pub header: Header,
    /// Kind of request or answer.
    pub command: Command,
    /// What it is about; for a reset [`Property::LastStatus`], and not on the line.
    pub property: Property,
    /// The property's value, or the kind of a reset.
    pub value: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Reads a frame as [`crate::hdlc::Decoder`] gives it. `None`: it is malformed.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let header = Header::parse(reader.u8()?)?;
        let command = Command::from(reader.packed()?);
        let property = match command {
            Command::Noop | Command::Reset => Property::LastStatus,
            _ => reader.packed()?.into(),
        };
        Some(Self {
            header,
            command,
            property,
            value: reader.rest(),
        })
    }

    /// The frame's bytes, to be framed by [`crate::hdlc::encode`].
    pub fn emit(&self) -> Vec<u8> {
        let writer = Writer::new()
            .u8(self.header.emit())
            .packed(self.command.number());
        let writer = match self.command {
            Command::Noop | Command::Reset => writer,
            _ => writer.packed(self.property.number()),
        };
        writer.rest(self.value).finish()
    }
}

/// Numbers with names; others are kept as they are.
macro_rules! numbers {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $variant:ident = $number:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name {
            $($(#[$about])* $variant,)*
            /// One that is not known here.
            Other(u32),
        }

        impl $name {
            /// Its number on the line.
            pub const fn number(self) -> u32 {
                match self {
                    $(Self::$variant => $number,)*
                    Self::Other(number) => number,
                }
            }

            #[cfg(test)]
            const ALL: &[Self] = &[$(Self::$variant),*];
        }

        impl From<u32> for $name {
            fn from(number: u32) -> Self {
                match number {
                    $($number => Self::$variant,)*
                    number => Self::Other(number),
                }
            }
        }
    };
}

numbers! {
    /// Kind of request or answer.
    Command {
        /// Nothing; answered by a status.
        Noop = 0,
        /// To the RCP: begin anew.
        Reset = 1,
        /// To the RCP: read a property.
        Get = 2,
        /// To the RCP: write a property.
        Set = 3,
        /// To the RCP: add to a list.
        Insert = 4,
        /// To the RCP: remove from a list.
        Remove = 5,
        /// From the RCP: the property's value.
        Is = 6,
        /// From the RCP: an entry was added to a list.
        Inserted = 7,
        /// From the RCP: an entry was removed from a list.
        Removed = 8,
    }
}

numbers! {
    /// What a frame is about, in brackets the form of its value.
    Property {
        /// How the last request ended, or why the RCP restarted (`i`: [`Status`]).
        LastStatus = 0,
        /// Version of Spinel (`ii`: major, minor).
        ProtocolVersion = 1,
        /// The firmware in words (text that ends in NUL).
        NcpVersion = 2,
        /// Which protocol is spoken above the radio (`i`; 3: Thread).
        InterfaceType = 3,
        /// What the firmware can do (list of `i`).
        Caps = 5,
        /// EUI-64 of the chip (`E`).
        Hwaddr = 8,
        /// Whether the radio is on (`b`).
        PhyEnabled = 0x20,
        /// Channel (`C`).
        PhyChan = 0x21,
        /// Channels that the radio has (list of `C`).
        PhyChanSupported = 0x22,
        /// Threshold of the channel's assessment (`c`, dBm).
        PhyCcaThreshold = 0x24,
        /// Transmission power (`c`, dBm).
        PhyTxPower = 0x25,
        /// Power on the channel now (`c`, dBm).
        PhyRssi = 0x26,
        /// The weakest signal that can be received (`c`, dBm).
        PhyRxSensitivity = 0x27,
        /// Whether a scan goes on (`C`; 0: none, 2: of energy).
        MacScanState = 0x30,
        /// Channels to scan (list of `C`); an RCP takes only one.
        MacScanMask = 0x31,
        /// How long to scan a channel (`S`, ms).
        MacScanPeriod = 0x32,
        /// Extended address (`E`).
        MacLaddr = 0x34,
        /// Short address (`S`; 0xffff or 0xfffe: none).
        MacSaddr = 0x35,
        /// PAN identifier (`S`).
        MacPanid = 0x36,
        /// Whether frames are received, acknowledged and sent (`b`).
        RawStreamEnabled = 0x37,
        /// Which frames are received beyond those for this node (`C`).
        MacPromiscuous = 0x38,
        /// What a scan found (`Cc`: channel, strongest power in dBm).
        EnergyScanResult = 0x39,
        /// Whether the receiver is on while nothing else goes on (`b`).
        RxOnWhenIdle = 0x3b,
        /// Receive at a time (`XLC`: start and duration in µs, channel).
        ReceiveAt = 0x3d,
        /// Text for developers (bytes).
        StreamDebug = 0x70,
        /// Frames of IEEE 802.15.4 ([`crate::raw`]).
        StreamRaw = 0x71,
        /// Version of what an RCP offers its host (`i`).
        RcpApiVersion = 0xb0,
        /// The least version that a host has to know (`i`).
        RcpMinHostApiVersion = 0xb1,
        /// Keys for frames that the RCP secures itself (`CCddd`).
        RcpMacKey = 0x800,
        /// Frame counter for frames that the RCP secures itself (`Lb`).
        RcpMacFrameCounter = 0x801,
        /// The RCP's clock (`X`, µs).
        RcpTimestamp = 0x802,
        /// Accuracy of the RCP's clock (`C`, ppm).
        CslAccuracy = 0x804,
        /// Uncertainty of transmissions at a time (`C`, 10 µs).
        CslUncertainty = 0x805,
        /// What the radio does without its host (`i`, bits).
        RadioCaps = 0x120b,
        /// Whether the frame pending bit of ACKs depends on the tables (`b`). While it is off, all
        /// ACKs to polls have it.
        SrcMatchEnabled = 0x1303,
        /// Short addresses for which something waits (list of `S`).
        SrcMatchShort = 0x1304,
        /// Extended addresses for which something waits (list of `E`).
        SrcMatchExtended = 0x1305,
    }
}

numbers! {
    /// How a request ended, or why the RCP restarted.
    Status {
        /// As it should.
        Ok = 0,
        /// It failed, without a reason.
        Failure = 1,
        /// This firmware does not do it.
        Unimplemented = 2,
        /// A value that it does not take.
        InvalidArgument = 3,
        /// Not now.
        InvalidState = 4,
        /// Not this command.
        InvalidCommand = 5,
        /// Not behind this interface.
        InvalidInterface = 6,
        /// A defect of the firmware.
        InternalError = 7,
        /// Refused for security.
        SecurityError = 8,
        /// It cannot be read.
        ParseError = 9,
        /// It is being done already.
        InProgress = 10,
        /// No room is left.
        NoMemory = 11,
        /// Something else goes on.
        Busy = 12,
        /// Not this property.
        PropertyNotFound = 13,
        /// It was dropped.
        Dropped = 14,
        /// It is empty.
        Empty = 15,
        /// It is too big.
        TooBig = 16,
        /// A frame was not acknowledged.
        NoAck = 17,
        /// The channel was never found clear.
        ChannelBusy = 18,
        /// It was there already.
        Already = 19,
        /// It is not in the list.
        NotFound = 20,
        /// Restart: power came.
        ResetPowerOn = 112,
        /// Restart: by its pin.
        ResetExternal = 113,
        /// Restart: its software did it, as after a request.
        ResetSoftware = 114,
        /// Restart: a fault of the processor.
        ResetFault = 115,
        /// Restart: the firmware crashed.
        ResetCrash = 116,
        /// Restart: an assertion of the firmware failed.
        ResetAssert = 117,
        /// Restart: for a reason that is not in this list.
        ResetOther = 118,
        /// Restart: for an unknown reason.
        ResetUnknown = 119,
        /// Restart: its watchdog ran out.
        ResetWatchdog = 120,
    }
}

impl Status {
    /// Reads the value of [`Property::LastStatus`].
    pub fn parse(value: &[u8]) -> Option<Self> {
        Reader::new(value).packed().map(Self::from)
    }

    /// Whether it reports a restart of the RCP.
    pub const fn is_restart(self) -> bool {
        matches!(self.number(), 112..=120)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Ok => "done",
            Self::Failure => "it failed",
            Self::Unimplemented => "the firmware does not do that",
            Self::InvalidArgument => "the firmware does not take this value",
            Self::InvalidState => "that cannot be done now",
            Self::InvalidCommand => "the firmware does not know the command",
            Self::InvalidInterface => "the firmware has no such interface",
            Self::InternalError => "a defect of the firmware",
            Self::SecurityError => "the firmware refuses it for security",
            Self::ParseError => "the firmware cannot read the request",
            Self::InProgress => "that goes on already",
            Self::NoMemory => "the firmware has no room left",
            Self::Busy => "the radio is busy",
            Self::PropertyNotFound => "the firmware does not know the property",
            Self::Dropped => "it was dropped",
            Self::Empty => "there is nothing",
            Self::TooBig => "it is too big",
            Self::NoAck => "no acknowledgement came",
            Self::ChannelBusy => "the channel was busy",
            Self::Already => "that is so already",
            Self::NotFound => "it is not in the list",
            Self::ResetPowerOn => "power came",
            Self::ResetExternal => "its reset pin was pulled",
            Self::ResetSoftware => "its software restarted it",
            Self::ResetFault => "a fault of its processor",
            Self::ResetCrash => "its firmware crashed",
            Self::ResetAssert => "an assertion of its firmware failed",
            Self::ResetOther => "another reason",
            Self::ResetUnknown => "an unknown reason",
            Self::ResetWatchdog => "its watchdog ran out",
            Self::Other(number) => return write!(f, "status {number}"),
        };
        write!(f, "{text}, status {}", self.number())
    }
}

/// The two bits that begin each frame.
const FLAG: u8 = 0x80;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_and_numbers_belong_together() {
        for property in Property::ALL {
            assert_eq!(Property::from(property.number()), *property);
        }
        for command in Command::ALL {
            assert_eq!(Command::from(command.number()), *command);
        }
        for status in Status::ALL {
            assert_eq!(Status::from(status.number()), *status);
            let number = format!(", status {}", status.number());
            assert!(status.to_string().ends_with(&number));
        }
        let restarts = (0..300).filter(|number| Status::from(*number).is_restart());
        assert!(restarts.eq(112..=120));
        assert_eq!(Property::from(99), Property::Other(99));
        assert_eq!(Property::Other(99).number(), 99);
    }

    #[test]
    fn a_reset_has_no_property() {
        let reset = Frame {
            header: Header::default(),
            command: Command::Reset,
            property: Property::LastStatus,
            value: &[2],
        };
        assert_eq!(reset.emit(), [0x80, 1, 2]);
        assert_eq!(Frame::parse(&reset.emit()), Some(reset));
    }

    #[test]
    fn what_is_no_frame_is_refused() {
        for wrong in [
            &[][..],
            &[0x81],
            &[0x81, 0x82],
            &[0x81, 6],
            &[0x81, 6, 0x80],
            &[0x41, 6, 0],
            &[0xc1, 6, 0],
        ] {
            assert_eq!(Frame::parse(wrong), None, "{wrong:x?}");
        }
    }

    proptest! {
        #[test]
        fn frames_are_read_as_they_are_written(
            (interface, transaction) in (0_u8..4, 0_u8..16),
            (command, property) in (1_u32..300, 0_u32..5_000),
            value in prop::collection::vec(any::<u8>(), 0..50),
        ) {
            let property = match command {
                1 => Property::LastStatus,
                _ => Property::from(property),
            };
            let frame = Frame {
                header: Header { interface, transaction },
                command: command.into(),
                property,
                value: &value,
            };
            let bytes = frame.emit();
            prop_assert_eq!(Frame::parse(&bytes), Some(frame));
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..50)) {
            if let Some(frame) = Frame::parse(&bytes) {
                let again = frame.emit();
                prop_assert_eq!(Frame::parse(&again), Some(frame));
            }
        }
    }
}
