//! A device that offers nothing, in a build without the feature `tcple`: see `attributes`.

use super::{ChannelKind, Connection};
use crate::ble::IPSP;
use crate::wire::cursor::Full;

#[derive(Clone, Copy, Debug)]
pub(in crate::ble) struct Attributes;

impl Attributes {
    pub(in crate::ble) const NONE: Self = Self;

    pub(super) const fn which_of(&self, service: u16) -> Option<ChannelKind> {
        match service {
            IPSP => Some(ChannelKind::Ip),
            _ => None,
        }
    }

    pub(super) const fn service_of(&self, _: ChannelKind) -> Option<u16> {
        Some(IPSP)
    }
}

impl Connection {
    pub(super) const fn emit_attribute(&mut self, _: &mut [u8]) -> Result<Option<usize>, Full> {
        Ok(None)
    }
}
