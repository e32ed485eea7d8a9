//! A node's role in RPL, a root's settings of its DODAG, and the DODAG as a node knows it.

use core::net::Ipv6Addr;

use super::iid::Iid;
use crate::wire::ndp::PrefixBytes;
#[cfg(feature = "root")]
use crate::wire::ndp::PrefixInformation;
use crate::wire::rpl::{Configuration, configuration, mode};
use crate::wire::rpl_option::{TYPE_6553, TYPE_9008};

/// A node's role in the DODAG (RFC 6550 §2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RplRole {
    /// The root of its own DODAG; only where the feature `router` is on.
    #[cfg(feature = "root")]
    Root(Root),
    /// A mote that neighbours may choose as their parent.
    Router,
    /// A mote that is no parent.
    Leaf,
}

/// A root's settings of its DODAG.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Root {
    /// The /64 of the mesh. The root's own address in it is the DODAG's identifier.
    pub prefix: Ipv6Addr,
    /// Seconds that addresses of the prefix are valid; all ones: for ever.
    pub prefix_lifetime_s: u32,
    /// `RPLInstanceID`, below 128: it is spared where headers are compressed when it is 0.
    pub instance: u8,
    /// Whether DIOs carry the ETX of the path in a metric container. Without one, which is 8 bytes
    /// less, the rank stands for it (RFC 6719 §3.5): then `min_hop_rank_increase` should be 128,
    /// the unit of ETX.
    pub has_metrics: bool,
    /// Values of the DODAG configuration option (RFC 6550 §6.7.6): timers, ranks, lifetimes, flags.
    pub configuration: Configuration,
}

impl Root {
    /// For meshes of 30 to 100 motes that shall be there within seconds. `prefix`: their /64.
    ///
    /// | parameter | here | RFC 6550 | Contiki-NG | RIOT | why |
    /// |---|---|---|---|---|---|
    /// | `interval_min` | 9: 512 ms | 3: 8 ms | 12: 4.1 s | 3 | ten DIOs of 3.5 ms fit ten times into its half, and a DODAG ten hops deep stands after 5 s |
    /// | `interval_doublings` | 11: 17.5 min | 20: 2.3 h | 8: 17.5 min | 20 | a mote idles at 4 DIOs an hour |
    /// | `redundancy` | 10 | 10 | 0: never suppress | 10 | the first DIOs of a dense floor |
    /// | `min_hop_rank_increase` | 256 | 256 | 128 | 256 | a whole rank has a low byte of 0, which RFC 8138 spares in every packet on its way up |
    /// | `max_rank_increase` | 2,048 | 0 | 1,024 | 0 | a count to infinity ends after 8 transmissions |
    /// | `default_lifetime` | 30 of 60 s | – | 30 of 60 s | 5 of 60 s | a DAO every 15 to 22 minutes |
    pub const fn new(prefix: Ipv6Addr) -> Self {
        Self {
            prefix,
            prefix_lifetime_s: u32::MAX,
            instance: 0,
            has_metrics: true,
            configuration: Configuration {
                flags: configuration::COMPRESSED | configuration::RPI_0X23,
                interval_doublings: 11,
                interval_min: 9,
                redundancy: 10,
                max_rank_increase: 8 * RANK_UNIT,
                min_hop_rank_increase: RANK_UNIT,
                objective: 1,
                default_lifetime: 30,
                lifetime_unit_s: 60,
            },
        }
    }
}

/// A node's role and interface identifier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Config {
    /// The interface identifier of this node on the mesh.
    pub iid: [u8; 8],
    /// The node's role in the DODAG.
    pub role: RplRole,
}

/// The DODAG that a node is in, or was last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dodag {
    /// `DODAGID`: the address of the root.
    pub id: Ipv6Addr,
    /// `RPLInstanceID` (RFC 6550 §5.1); from 128 on: a local instance.
    pub instance: u8,
    /// `DODAGVersionNumber`: a lollipop counter that the root increments (RFC 6550 §7.2).
    pub version: u8,
    /// Mode of operation: see [`mod@mode`].
    pub mode: u8,
    /// Preference of the root among roots, 0 to 7.
    pub preference: u8,
    /// The DODAG reaches what its application wants reached.
    pub grounded: bool,
    /// Whether DIOs carry a metric container.
    pub has_metrics: bool,
    /// Values of the DODAG configuration option (RFC 6550 §6.7.6), which the root chose.
    pub configuration: Configuration,
    /// The prefix from which motes form addresses, where DIOs give one.
    pub prefix: Option<PrefixBytes>,
}

impl Dodag {
    /// The upper half of the addresses of its nodes: of the prefix that DIOs give, else of the
    /// root's address.
    pub fn prefix(&self) -> Ipv6Addr {
        self.prefix.as_ref().map_or(self.id, PrefixBytes::prefix)
    }

    /// The address of the node with this interface identifier.
    pub(super) fn addr_of(&self, iid: Iid) -> Ipv6Addr {
        iid.within(&self.prefix())
    }

    /// Whether routing headers are compressed as RFC 8138 says (T flag, RFC 9035).
    pub const fn is_compressed(&self) -> bool {
        self.configuration.flags & configuration::COMPRESSED != 0
    }

    /// The type of the RPL option: 0x23 where the configuration says so (RFC 9008 §4.1.3), else
    /// 0x63 (RFC 6553).
    pub const fn option_type(&self) -> u8 {
        match self.configuration.flags & configuration::RPI_0X23 {
            0 => TYPE_6553,
            _ => TYPE_9008,
        }
    }

    /// `MinHopRankIncrease`, which is the root's rank, too.
    pub(super) const fn unit(&self) -> u16 {
        self.configuration.min_hop_rank_increase
    }

    pub(super) const fn is_storing(&self) -> bool {
        self.mode >= mode::STORING
    }
}

#[cfg(feature = "root")]
impl Root {
    /// The DODAG of a root that begins.
    pub(super) fn dodag(&self, iid: Iid) -> Dodag {
        let lifetime = self.prefix_lifetime_s;
        let information = PrefixInformation {
            prefix_len: 64,
            on_link: false,
            autonomous: true,
            router_address: false,
            valid_lifetime_s: lifetime,
            preferred_lifetime_s: lifetime,
            prefix: Iid::NONE.within(&self.prefix),
        };
        Dodag {
            id: iid.within(&self.prefix),
            instance: self.instance,
            version: crate::wire::lollipop::INITIAL,
            mode: mode::NON_STORING,
            preference: 0,
            grounded: true,
            has_metrics: self.has_metrics,
            configuration: Configuration {
                flags: self.configuration.flags | ALWAYS,
                ..self.configuration
            },
            prefix: Some(information.into()),
        }
    }
}

/// Flags that a DODAG of this build has: without the feature `plain-rpl` routing headers are
/// compressed.
#[cfg(feature = "root")]
const ALWAYS: u8 = match cfg!(feature = "plain-rpl") {
    true => 0,
    false => configuration::COMPRESSED,
};

/// A whole rank, of one transmission at least.
const RANK_UNIT: u16 = 256;
