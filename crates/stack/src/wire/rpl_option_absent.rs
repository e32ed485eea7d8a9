//! The RPL option where the feature `rpl` is off: there is none.

/// RPL packet information, which no packet has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rpi {}

impl Rpi {
    pub(crate) const fn is_looping(self) -> bool {
        match self {}
    }
}
