//! Link-layer addresses, and the interface identifiers that derive from them.

/// A link-layer address of IEEE 802.15.4, in canonical (big-endian) order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum LinkAddr {
    /// 16-bit short address, assigned within the PAN.
    Short(u16),
    /// EUI-64.
    Extended([u8; 8]),
}

impl LinkAddr {
    /// The address every node in the PAN accepts (IEEE 802.15.4-2006 §7.2.1.4).
    pub const BROADCAST: Self = Self::Short(0xffff);

    /// The IPv6 interface identifier that belongs to this address.
    ///
    /// EUI-64 with the universal/local bit inverted, or `0000:00ff:fe00:XXXX`
    /// (RFC 4291 appendix A; RFC 6282 §3.2.2).
    pub const fn iid(self) -> [u8; 8] {
        match self {
            Self::Short(short) => {
                let [high, low] = short.to_be_bytes();
                [0, 0, 0, 0xff, 0xfe, 0, high, low]
            }
            Self::Extended([first, a, b, c, d, e, f, g]) => [first ^ 0x02, a, b, c, d, e, f, g],
        }
    }

    /// The link address that [`Self::iid`] maps to `iid`.
    pub const fn from_iid(iid: [u8; 8]) -> Self {
        match iid {
            [0, 0, 0, 0xff, 0xfe, 0, high, low] => Self::Short(u16::from_be_bytes([high, low])),
            [first, a, b, c, d, e, f, g] => Self::Extended([first ^ 0x02, a, b, c, d, e, f, g]),
        }
    }

    /// Whether frames to this address have no single receiver, hence no ACK and no retry.
    pub const fn is_broadcast(self) -> bool {
        matches!(self, Self::Short(0xffff))
    }
}
