//! The bounds within which a truncated number is read, and the safeguards that apply.
//!
//! Purpose: the bounds that both ends read by, and the cures by their names. Place: the
//! compressor chooses forms by it, the decompressor restores by it; they must agree, for
//! nothing of it is on the air. Source: `docs/reference/tcphc.md`, sections 3 and 6.

use crate::wire::tcphc;

use super::{Config, Mode};

/// The settings by which both ends choose and read forms of headers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) mode: Mode,
    pub(super) frames_expire: bool,
    /// Which cures a test has taken away: bits by [`Cure`].
    #[cfg(test)]
    pub(super) cures_off: u32,
}

/// A safeguard that an attack on the first version of the rules has added;
/// `docs/reference/tcphc.md` has each attack under this name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cure {
    SharedTimestamp,
    Probes,
    SackMultiplies,
    Lifetime,
    Zero,
    NeverSent,
    Poisoning,
    LateRefresh,
    Recreated,
    Reboot,
    Fit,
    ShortAck,
    Joined,
    OldLife,
    RepeatedSyn,
    Uncounted,
    Echo,
    OldEcho,
}

impl Rules {
    pub(super) const fn of(config: &Config) -> Self {
        Self {
            mode: config.mode,
            frames_expire: config.frames_expire,
            #[cfg(test)]
            cures_off: 0,
        }
    }

    /// Whether `cure` applies: always, but in draft mode and for tests.
    pub(super) const fn cured(self, cure: Cure) -> bool {
        #[cfg(test)]
        if self.cures_off >> cure as u32 & 1 != 0 {
            return false;
        }
        let _ = cure;
        !matches!(self.mode, Mode::Draft)
    }

    pub(super) const fn halves_are_proof(self) -> bool {
        self.frames_expire || !self.cured(Cure::Lifetime)
    }
}

/// How far below its reference a number is looked for, with 8 and with 16 bits of it.
#[derive(Clone, Copy)]
pub(super) struct Behind {
    pub(super) of_8: u32,
    pub(super) of_16: u32,
}

pub(super) const SEQ_BEHIND: Behind = Behind {
    of_8: 96,
    of_16: 32_768,
};
pub(super) const TIMESTAMP_BEHIND: Behind = Behind {
    of_8: 64,
    of_16: 16_384,
};

pub(super) const FLIGHT_MAX: u32 = tcphc::FLIGHT_MAX as u32;
