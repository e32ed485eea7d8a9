//! Why a node cannot be put above a driver.

use core::fmt;

/// Why a node cannot be put above a driver.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OverError {
    /// The driver carries frames, not packets: its
    /// [`hardware_address`](embassy_net_driver::Driver::hardware_address) is not
    /// [`Ip`](embassy_net_driver::HardwareAddress::Ip).
    Medium,
    /// The driver's packets, or those of the [`PacketResources`](crate::PacketResources), are
    /// shorter than the 1,280 bytes of IPv6 (RFC 8200 §5).
    Mtu,
    /// More addresses than a node has room for
    /// ([`ADDRESSES_MAX`](motet::limits::ADDRESSES_MAX)).
    Addresses,
}

impl OverError {
    /// The reason in words.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Medium => "the driver carries frames, not IP packets",
            Self::Mtu => "packets shorter than the 1,280 bytes of IPv6",
            Self::Addresses => "more addresses than a node has room for",
        }
    }
}

impl fmt::Display for OverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl core::error::Error for OverError {}
