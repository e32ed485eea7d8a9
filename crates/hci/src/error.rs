//! Why there is no controller, or no longer one.

use std::{fmt, io};

/// Why a controller cannot be used any more.
#[derive(Debug)]
pub enum Error {
    /// The controller cannot be reached.
    Unreachable(io::Error),
    /// The stream to it broke, or ended.
    Gone(io::Error),
    /// A command has no answer.
    Silent,
    /// This byte is not one with which a packet begins.
    OutOfStep(u8),
    /// A packet is longer than any that H4 carries here.
    TooLong(usize),
    /// An event's parameters are not those of its code.
    Malformed(u8),
    /// The controller is older than Bluetooth 4.1: its HCI_Version.
    Version(u8),
    /// The controller refused this command of its initialization, with this status.
    Refused(&'static str, u8),
    /// The caller gave up waiting.
    GivenUp,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(why) => write!(f, "the controller cannot be reached: {why}"),
            Self::Gone(why) => write!(f, "the controller is gone: {why}"),
            Self::Silent => write!(
                f,
                "the controller does not answer: see whether it speaks H4, and at this speed"
            ),
            Self::OutOfStep(byte) => write!(
                f,
                "H4 is out of step: no packet begins with {byte:#04x}; reset the controller and start again"
            ),
            Self::TooLong(len) => write!(
                f,
                "H4 is out of step: a packet of {len} bytes; reset the controller and start again"
            ),
            Self::Malformed(code) => write!(
                f,
                "the controller sent an event {code:#04x} that is not HCI's"
            ),
            Self::Version(version) => write!(
                f,
                "the controller speaks {}, and IPv6 needs Bluetooth 4.1 or later",
                Version(*version)
            ),
            Self::Refused(command, status) => write!(
                f,
                "the controller refused {command} with status {status:#04x}: it has no Bluetooth LE that can be used"
            ),
            Self::GivenUp => write!(f, "the controller had not started yet"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Unreachable(why) | Self::Gone(why) => Some(why),
            _ => None,
        }
    }
}

/// HCI's number of a version (Bluetooth Assigned Numbers §2.1).
struct Version(u8);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 7] = ["1.0b", "1.1", "1.2", "2.0", "2.1", "3.0", "4.0"];
        match NAMES.get(usize::from(self.0)) {
            Some(name) => write!(f, "Bluetooth {name}"),
            None => write!(f, "HCI version {}", self.0),
        }
    }
}
