//! What a radio cannot do of what its settings ask for.
//!
//! Place: constructors ask before anything starts. Left out: settings that have no effect with some
//! radios, as their documentation says.

use super::config::Config;
use super::radio::{OFFLOADS, RadioCapabilities};

/// Why a radio does not fit the settings of its link: what a radio cannot do is refused at the
/// start. Radios that neither assess the channel nor take ACKs by themselves fit all settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Unfit {
    /// The radio assesses the channel or takes ACKs by itself, and the build is without the feature
    /// `offload`.
    NotBuilt,
    /// [`Forwarding::Immediate`](crate::link::Forwarding::Immediate) fires a frame within a
    /// turnaround (192 µs) of another one, without a backoff. A radio that assesses the channel or
    /// takes ACKs by itself does not know such an order.
    Immediate,
    /// [`Config::assessed`] is off, and the radio assesses by itself.
    Unassessed,
    /// [`Config::deaf_backoff`] is on, and the backoff is the radio's.
    DeafBackoff,
    /// The radio assesses the channel by itself and leaves its ACKs to software
    /// ([`RadioCapabilities::auto_ack`] off): no ACK could leave while it backs off.
    SoftwareAcks,
}

impl Unfit {
    /// The reason in words.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::NotBuilt => "this build lacks the feature offload, which the radio needs",
            Self::Immediate => "a radio that makes attempts by itself cannot send a frame at once",
            Self::Unassessed => "the radio assesses the channel by itself, and shall not",
            Self::DeafBackoff => "the radio backs off by itself, and shall sleep meanwhile",
            Self::SoftwareAcks => {
                "no ACK of software can leave while the radio backs off by itself"
            }
        }
    }
}

speaks!(Unfit);

impl RadioCapabilities {
    /// Whether the radio can do what these settings ask for.
    ///
    /// # Errors
    /// What it cannot do.
    pub const fn check(&self, config: &Config) -> Result<(), Unfit> {
        if (self.assesses || self.takes_acks) && !OFFLOADS {
            return Err(Unfit::NotBuilt);
        }
        if self.assesses {
            if !self.auto_ack {
                return Err(Unfit::SoftwareAcks);
            }
            if !config.assessed {
                return Err(Unfit::Unassessed);
            }
            if config.deaf_backoff {
                return Err(Unfit::DeafBackoff);
            }
        }
        Ok(())
    }
}
