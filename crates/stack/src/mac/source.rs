//! The source address that frames bear, the room that their headers leave, and whether this node is
//! the source of most.

use super::{Config, Mac};
use crate::wire::LinkAddr;
use crate::wire::ieee802154::Header;

impl Config {
    /// The source address of this interface's data frames.
    #[inline(always)]
    pub(crate) const fn source(&self) -> LinkAddr {
        match self.short {
            Some(short) if self.short_source => LinkAddr::Short(short),
            _ => LinkAddr::Extended(self.extended),
        }
    }
}

impl Mac<'_> {
    /// Payload bytes of one frame to `to`, with the addresses this interface would use.
    pub fn payload_len_max(&self, to: LinkAddr) -> usize {
        self.sealed_len_max(&Header::data(self.config.pan, to, self.source_to(to), 0))
    }

    /// Payload bytes of a frame with this header, if this interface sealed it.
    #[inline(always)]
    pub(crate) fn sealed_len_max(&self, header: &Header) -> usize {
        header
            .payload_len_max()
            .saturating_sub(self.guard.overhead())
    }

    /// As [`Config::source`].
    // Not inlined: one copy for its callers spares a mote 330 B, one with all parts 530 B.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub(crate) fn source(&self) -> LinkAddr {
        self.config.source()
    }

    /// Whether this node itself sent most of the last frames that go to `to`.
    pub(crate) fn is_mostly_own(&self, to: LinkAddr) -> bool {
        self.neighbors.is_mostly_of(to, self.source())
    }

    /// The source address of a frame to `to`: in a Thread network as long as that one is.
    pub(crate) fn source_to(&self, to: LinkAddr) -> LinkAddr {
        match to {
            #[cfg(feature = "thread")]
            LinkAddr::Extended(_) if self.guard.is_child() => {
                LinkAddr::Extended(self.config.extended)
            }
            _ => self.source(),
        }
    }
}
