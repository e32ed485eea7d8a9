//! Link-layer addresses, and the interface identifiers that derive from them.

/// A link-layer address, in canonical (big-endian) order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LinkAddr {
    /// 16-bit short address, assigned within the PAN.
    Short(u16),
    /// 64-bit extended address, an EUI-64.
    Extended([u8; 8]),
    /// The 48 bits of a Bluetooth device.
    #[cfg(feature = "ble")]
    Device([u8; 6]),
}

/// Whether two EUI-64s, or two interface identifiers, are the same.
// As slices: compared as numbers, both are put together byte by byte at each call.
#[cfg_attr(target_pointer_width = "32", inline(never))]
pub(crate) fn same(one: &[u8; 8], other: &[u8; 8]) -> bool {
    one.as_slice() == other.as_slice()
}

impl LinkAddr {
    /// The address every node in the PAN accepts (IEEE 802.15.4-2006 §7.2.1.4).
    pub const BROADCAST: Self = Self::Short(0xffff);

    /// The IPv6 interface identifier that belongs to this address.
    ///
    /// EUI-64 with the universal/local bit inverted, or `0000:00ff:fe00:XXXX`
    /// (RFC 4291 appendix A; RFC 6282 §3.2.2).
    #[cfg_attr(
        feature = "ble",
        doc = "A Bluetooth device's 48 bits have ff:fe in their middle, and no bit is changed \
               (RFC 7668 §3.2.2)."
    )]
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub const fn iid(self) -> [u8; 8] {
        match self {
            Self::Short(short) => {
                let [high, low] = short.to_be_bytes();
                [0, 0, 0, 0xff, 0xfe, 0, high, low]
            }
            Self::Extended([first, a, b, c, d, e, f, g]) => [first ^ 0x02, a, b, c, d, e, f, g],
            #[cfg(feature = "ble")]
            Self::Device([a, b, c, d, e, f]) => [a, b, c, 0xff, 0xfe, d, e, f],
        }
    }

    /// The link address of IEEE 802.15.4 that [`Self::iid`] maps to `iid`.
    pub const fn from_iid(iid: [u8; 8]) -> Self {
        match iid {
            [0, 0, 0, 0xff, 0xfe, 0, high, low] => Self::Short(u16::from_be_bytes([high, low])),
            [first, a, b, c, d, e, f, g] => Self::Extended([first ^ 0x02, a, b, c, d, e, f, g]),
        }
    }

    /// `==` in one copy where code is short: comparing eight bytes takes some fifty of it.
    #[cfg_attr(target_pointer_width = "32", inline(never))]
    pub(crate) fn is(&self, other: &Self) -> bool {
        self == other
    }

    /// Whether frames to this address have no single receiver, hence no ACK and no retry.
    pub const fn is_broadcast(self) -> bool {
        matches!(self, Self::Short(0xffff))
    }
}
