//! Why a radio cannot be used.

use std::fmt;

use motet::time::Duration;

use crate::frame::{Property, Status};

/// Why a radio cannot be used, as a sentence that says what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// No request was answered for this time.
    NoAnswer(Duration),
    /// It speaks another major version of Spinel than 4.
    OtherProtocol {
        /// Its version: major and minor.
        version: (u32, u32),
    },
    /// It speaks Spinel, and hands out no raw frames.
    NotAnRcp {
        /// The firmware in its own words.
        firmware: String,
    },
    /// The firmware is older than RCP API version 4.
    TooOld {
        /// The firmware in its own words.
        firmware: String,
        /// Its version of the API; `None`: it has none.
        api: Option<u32>,
    },
    /// The firmware wants a younger host.
    TooNew {
        /// The firmware in its own words.
        firmware: String,
        /// The least version of the API that it wants of its host.
        least: u32,
    },
    /// The radio does not have this channel.
    NoSuchChannel {
        /// The channel that is wanted.
        channel: u8,
        /// Those that it has.
        channels: Vec<u8>,
    },
    /// The radio refused a setting without which it cannot be used.
    Refused {
        /// Which one.
        property: Property,
        /// Why.
        status: Status,
    },
    /// The radio restarts again and again.
    KeepsRestarting {
        /// Why it did the last time; `None`: the line to it went away.
        last: Option<Status>,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoAnswer(silence) => write!(
                f,
                "the radio has not answered for {} s: see whether its firmware is ot-rcp, and whether it speaks at this baud rate",
                silence.as_secs()
            ),
            Self::OtherProtocol {
                version: (major, minor),
            } => write!(
                f,
                "the radio speaks Spinel {major}.{minor}, and version 4 is needed: flash a current ot-rcp"
            ),
            Self::NotAnRcp { firmware } => write!(
                f,
                "the radio's firmware is an NCP and no RCP ({firmware}): flash ot-rcp"
            ),
            Self::TooOld { firmware, api } => {
                write!(
                    f,
                    "the radio's firmware is too old ({firmware}, RCP API version "
                )?;
                match api {
                    Some(api) => write!(f, "{api}")?,
                    None => f.write_str("unknown")?,
                }
                f.write_str(
                    "): flash an ot-rcp of 2021 or later, whose RCP API version is at least 4",
                )
            }
            Self::TooNew { firmware, least } => write!(
                f,
                "the radio's firmware is too new ({firmware}): it wants a host of RCP API version {least}, and this one is of {HOST_API}: flash an older ot-rcp"
            ),
            Self::NoSuchChannel { channel, channels } => write!(
                f,
                "the radio has no channel {channel}: choose one of {}",
                Channels(channels)
            ),
            Self::Refused { property, status } => write!(
                f,
                "the radio refused a setting, {property:?}: {status}: flash a current ot-rcp"
            ),
            Self::KeepsRestarting { last } => {
                f.write_str("the radio restarts again and again (")?;
                match last {
                    Some(status) => write!(f, "{status}")?,
                    None => f.write_str("it vanishes from its line")?,
                }
                f.write_str("): see to its power and its cable, or flash another firmware")
            }
        }
    }
}

impl std::error::Error for Error {}

/// Channels for people: runs of them as a span.
struct Channels<'a>(&'a [u8]);

impl fmt::Display for Channels<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut runs: Vec<(u8, u8)> = Vec::new();
        for channel in self.0 {
            match runs.last_mut() {
                Some((_, last)) if last.checked_add(1) == Some(*channel) => *last = *channel,
                _ => runs.push((*channel, *channel)),
            }
        }
        for (n, (first, last)) in runs.iter().enumerate() {
            let comma = if n > 0 { ", " } else { "" };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                _ => write!(f, "{comma}{first} to {last}")?,
            }
        }
        Ok(())
    }
}

/// The RCP API version that this host is written against. It uses nothing younger than
/// [`API_MIN`].
pub(crate) const HOST_API: u32 = 11;

/// The least RCP API version of a firmware; OpenThread's own host has required it since 2021.
pub(crate) const API_MIN: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_say_what_to_do() {
        let firmware = || "OPENTHREAD/1".to_owned();
        let channels: Vec<u8> = (11..=26).collect();
        for (error, sentence) in [
            (
                Error::NoAnswer(Duration::from_secs(2)),
                "the radio has not answered for 2 s: see whether its firmware is ot-rcp, and whether it speaks at this baud rate",
            ),
            (
                Error::NotAnRcp {
                    firmware: firmware(),
                },
                "the radio's firmware is an NCP and no RCP (OPENTHREAD/1): flash ot-rcp",
            ),
            (
                Error::TooOld {
                    firmware: firmware(),
                    api: Some(3),
                },
                "the radio's firmware is too old (OPENTHREAD/1, RCP API version 3): flash an ot-rcp of 2021 or later, whose RCP API version is at least 4",
            ),
            (
                Error::NoSuchChannel {
                    channel: 27,
                    channels,
                },
                "the radio has no channel 27: choose one of 11 to 26",
            ),
            (
                Error::NoSuchChannel {
                    channel: 2,
                    channels: vec![1, 3, 4, 5, 255],
                },
                "the radio has no channel 2: choose one of 1, 3 to 5, 255",
            ),
            (
                Error::KeepsRestarting {
                    last: Some(Status::ResetCrash),
                },
                "the radio restarts again and again (its firmware crashed, status 116): see to its power and its cable, or flash another firmware",
            ),
            (
                Error::Refused {
                    property: Property::MacPanid,
                    status: Status::InvalidState,
                },
                "the radio refused a setting, MacPanid: that cannot be done now, status 4: flash a current ot-rcp",
            ),
        ] {
            assert_eq!(error.to_string(), sentence);
        }
    }
}
