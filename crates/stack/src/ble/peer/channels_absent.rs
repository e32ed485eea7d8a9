//! The channel of a connection without the feature `tcple`: IPSP's alone. See `channels`.

use crate::ble::LOCAL;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ChannelKind {
    Ip,
}

impl ChannelKind {
    pub(in crate::ble) const ALL: [Self; 1] = [Self::Ip];

    pub(in crate::ble) const fn local(self) -> u16 {
        match self {
            Self::Ip => LOCAL,
        }
    }
}

#[derive(Debug)]
pub(in crate::ble) struct PerChannel<T> {
    pub(in crate::ble) ip: T,
}

impl<T: Copy> PerChannel<T> {
    pub(super) const fn all(value: T) -> Self {
        Self { ip: value }
    }
}

impl<T> PerChannel<T> {
    pub(super) const fn get(&self, _: ChannelKind) -> &T {
        &self.ip
    }

    pub(super) const fn get_mut(&mut self, _: ChannelKind) -> &mut T {
        &mut self.ip
    }
}
