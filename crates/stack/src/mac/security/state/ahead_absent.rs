//! Stands in for what is computed before a frame has come in a build without the feature `cit`: no
//! frame fires another, so nothing is.

use super::Security;
use crate::time::Instant;
use crate::wire::ieee802154::Auxiliary;

#[derive(Debug, Default)]
pub(super) struct Ahead;

impl Ahead {
    pub(super) const fn forget(&self) {}
}

impl Security<'_> {
    pub(in crate::mac) const fn prepare(&self, _: [u8; 8]) {}

    pub(in crate::mac) const fn peek(
        &self,
        _: [u8; 8],
        _: &Auxiliary,
        _: u8,
        _: Instant,
    ) -> Option<u8> {
        None
    }

    pub(in crate::mac) const fn peek_again(&self, _: [u8; 8], _: &Auxiliary, _: u8) -> Option<u8> {
        None
    }
}
