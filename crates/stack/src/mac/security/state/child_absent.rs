//! Security of a node that is no child in a Thread network, built without the feature `thread`.

use super::Security;

impl Security<'_> {
    pub(in crate::mac) const fn is_child(&self) -> bool {
        false
    }

    pub(in crate::mac) const fn has_no_parent(&self) -> bool {
        false
    }

    pub(in crate::mac) const fn extended_of(&self, _: u16) -> Option<[u8; 8]> {
        None
    }

    pub(super) const fn refuses(&self, _: [u8; 8]) -> bool {
        false
    }
}
