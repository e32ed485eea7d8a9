//! The channels that a connection may have: IPSP's and TCPlE's.

use crate::ble::LOCAL;

/// A channel of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ChannelKind {
    /// IPSP's channel, for IPv6 packets.
    Ip,
    /// TCPlE's channel, where both ends offer it.
    Tcple,
}

impl ChannelKind {
    /// Both channels.
    pub(in crate::ble) const ALL: [Self; 2] = [Self::Ip, Self::Tcple];

    /// The channel identifier by which this end calls the channel.
    pub(in crate::ble) const fn local(self) -> u16 {
        match self {
            Self::Ip => LOCAL,
            Self::Tcple => LOCAL + 1,
        }
    }
}

/// A value for each channel.
#[derive(Debug)]
pub(in crate::ble) struct PerChannel<T> {
    pub(in crate::ble) ip: T,
    pub(in crate::ble) tcple: T,
}

impl<T: Copy> PerChannel<T> {
    pub(super) const fn all(value: T) -> Self {
        Self {
            ip: value,
            tcple: value,
        }
    }
}

impl<T> PerChannel<T> {
    pub(super) const fn get(&self, which: ChannelKind) -> &T {
        match which {
            ChannelKind::Ip => &self.ip,
            ChannelKind::Tcple => &self.tcple,
        }
    }

    pub(super) const fn get_mut(&mut self, which: ChannelKind) -> &mut T {
        match which {
            ChannelKind::Ip => &mut self.ip,
            ChannelKind::Tcple => &mut self.tcple,
        }
    }
}
