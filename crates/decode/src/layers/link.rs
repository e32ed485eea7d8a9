//! Finds the first header that this project can read, by the capture's link type.
//!
//! Place: after `capture`; the next layer is an IEEE 802.15.4 frame, or the packet that the
//! EtherType names.
//! Left out: what Ethernet carries besides IP.
//! Sources: the registry of link-layer header types at tcpdump.org; IEEE 802.15.4-2006 §6.3 for the
//! PHY header; the crate `etherparse` for Ethernet.

use etherparse::{EtherType, Ethernet2HeaderSlice, SingleVlanHeaderSlice};
use motet::wire::cursor::{Reader, Truncated};

use crate::capture::LinkType;
use crate::model::{Frame, Layer, hex, hex8, hex16};
use crate::next::{Fcs, Next};

impl LinkType {
    /// IEEE 802.15.4 frames that end in their FCS.
    pub(crate) const IEEE802154: Self = Self(195);
    /// IEEE 802.15.4 behind preamble, start-of-frame delimiter and length.
    pub(crate) const IEEE802154_NONASK_PHY: Self = Self(215);
    /// IEEE 802.15.4 frames without FCS.
    pub(crate) const IEEE802154_NOFCS: Self = Self(230);
    /// IEEE 802.15.4 frames behind a list of what the receiver knows about them.
    pub(crate) const IEEE802154_TAP: Self = Self(283);
    /// Bluetooth LE's link layer behind a header that says how each packet was received.
    pub(crate) const BLUETOOTH_LE: Self = Self(256);
    /// Bluetooth LE's link layer from the access address on.
    pub(crate) const BLUETOOTH_LE_BARE: Self = Self(251);
    /// Packets of Bluetooth LE as Nordic's nRF Sniffer writes them.
    pub(crate) const NORDIC_BLE: Self = Self(272);
    /// A header with fields about the packet and the link type of what follows.
    pub(crate) const PPI: Self = Self(192);
    /// An address family in the byte order of the machine that captured it, and an IP packet; or
    /// Spinel, where a program wrote it without a link type.
    pub(crate) const NULL: Self = Self(0);
    /// The first of the link types for private use; here Spinel, with or without HDLC-lite.
    pub(crate) const USER_FIRST: u32 = 147;
    /// The last of them.
    pub(crate) const USER_LAST: u32 = 162;
    /// Bytes of a serial line from flag to flag; not a number of the registry, which has 16 bits.
    pub(crate) const SERIAL_LINE: Self = Self(1 << 16);
    pub(crate) const ETHERNET: Self = Self(1);
    pub(crate) const LINUX_SLL: Self = Self(113);
    pub(crate) const LINUX_SLL2: Self = Self(276);
    pub(crate) const IPV4: Self = Self(228);
    pub(crate) const IPV6: Self = Self(229);
    /// Bare IP packets. The registry's number is 101; 12 and 14 are what `DLT_RAW` was on the
    /// systems that wrote it without translation.
    pub(crate) const RAW: [Self; 3] = [Self(101), Self(12), Self(14)];

    /// The link types that can be decoded, for people.
    pub(crate) const SUPPORTED: &str = "IEEE 802.15.4 (195, 215, 230, 283), Bluetooth LE (251, 256, \
                                        272), PPI (192), raw IP (12, 14, 101, 228, 229), \
                                        loopback (0), Ethernet (1), Linux cooked (113, 276) and \
                                        Spinel (0, 147 to 162)";

    /// Whether frames of the type can be explained.
    pub fn is_supported(self) -> bool {
        [
            Self::NULL,
            Self::SERIAL_LINE,
            Self::IEEE802154,
            Self::IEEE802154_NONASK_PHY,
            Self::IEEE802154_NOFCS,
            Self::IEEE802154_TAP,
            Self::BLUETOOTH_LE,
            Self::BLUETOOTH_LE_BARE,
            Self::NORDIC_BLE,
            Self::PPI,
            Self::ETHERNET,
            Self::LINUX_SLL,
            Self::LINUX_SLL2,
            Self::IPV4,
            Self::IPV6,
        ]
        .contains(&self)
            || Self::RAW.contains(&self)
            || (Self::USER_FIRST..=Self::USER_LAST).contains(&self.0)
    }
}

/// Preamble, start-of-frame delimiter and length, then the frame.
pub(super) fn phy_header<'a>(frame: &mut Frame, bytes: &'a [u8]) -> Next<'a> {
    let mut r = Reader::new(bytes);
    let header = (|| Ok::<_, Truncated>((r.array::<4>()?, r.u8()?, r.u8()?)))();
    let Ok((preamble, delimiter, length)) = header else {
        return frame.malformed("phy", "PHY header truncated");
    };
    let length = usize::from(length & 0x7f);
    frame.push(
        Layer::new("phy", "O-QPSK PHY header")
            .hidden("preamble", preamble.as_slice())
            .with("delimiter", hex8(delimiter))
            .with("frame_length", length),
    );
    if delimiter != START_OF_FRAME {
        return frame.malformed(
            "phy",
            format!("start-of-frame delimiter 0x{delimiter:02x}, not 0xa7"),
        );
    }
    match r.slice(length) {
        Ok(psdu) => Next::Mac(psdu, Fcs::Crc16),
        Err(Truncated) => frame.malformed(
            "phy",
            format!("PHY length {length} exceeds the {} captured bytes", r.len()),
        ),
    }
}

pub(super) fn ethernet<'a>(frame: &mut Frame, bytes: &'a [u8]) -> Next<'a> {
    let Ok(header) = Ethernet2HeaderSlice::from_slice(bytes) else {
        return frame.malformed("ethernet", "Ethernet header truncated");
    };
    let mut ether_type = header.ether_type();
    let mut payload = bytes.get(header.slice().len()..).unwrap_or_default();
    let mut vlan = None;
    if ether_type == EtherType::VLAN_TAGGED_FRAME {
        let Ok(tag) = SingleVlanHeaderSlice::from_slice(payload) else {
            return frame.malformed("ethernet", "VLAN tag truncated");
        };
        vlan = Some(tag.vlan_identifier().value());
        ether_type = tag.ether_type();
        payload = payload.get(tag.slice().len()..).unwrap_or_default();
    }
    frame.push(
        Layer::new("ethernet", "")
            .with("src", hex(&header.source(), ":"))
            .with("dst", hex(&header.destination(), ":"))
            .with("vlan", vlan)
            .with("ether_type", hex16(ether_type.0)),
    );
    Next::Ether("ethernet", ether_type.0, payload)
}

/// The address family in front of packets of BSD's and macOS's loopback interface.
pub(super) fn loopback<'a>(frame: &mut Frame, bytes: &'a [u8]) -> Next<'a> {
    let Some((family, packet)) = bytes.split_first_chunk() else {
        return frame.malformed("loopback", "loopback header truncated");
    };
    // The number is below 256, so the byte order does not matter.
    let family = u32::from_be_bytes(*family).min(u32::from_le_bytes(*family));
    frame.push(Layer::new("loopback", "").with("family", family));
    match family {
        AF_INET | AF_INET6_LINUX | AF_INET6_BSD | AF_INET6_FREEBSD | AF_INET6_DARWIN => {
            Next::Ip(packet.into())
        }
        _ => frame.undecoded("loopback", format!("address family {family} is not IP")),
    }
}

/// The header that `tcpdump -i any` wrote for decades (Linux cooked capture, SLL).
pub(super) fn linux_sll<'a>(frame: &mut Frame, bytes: &'a [u8]) -> Next<'a> {
    match sll(bytes) {
        Ok((cooked, payload)) => cooked.explain(frame, payload),
        Err(Truncated) => frame.malformed("sll", "Linux cooked header truncated"),
    }
}

/// The header that `tcpdump -i any` writes today (Linux cooked capture v2, SLL2).
pub(super) fn linux_sll2<'a>(frame: &mut Frame, bytes: &'a [u8]) -> Next<'a> {
    match sll2(bytes) {
        Ok((cooked, payload)) => cooked.explain(frame, payload),
        Err(Truncated) => frame.malformed("sll", "Linux cooked header truncated"),
    }
}

/// A Linux cooked header of either version.
struct Cooked {
    protocol: u16,
    /// The type of the interface's hardware (`ARPHRD_…`).
    hardware: u16,
    /// The number of the interface, which version 1 does not have.
    interface: Option<u32>,
}

// By hand: `etherparse` refuses the types of hardware that it does not know.
fn sll(bytes: &[u8]) -> Result<(Cooked, &[u8]), Truncated> {
    let mut r = Reader::new(bytes);
    let _packet_type = r.u16()?;
    let hardware = r.u16()?;
    // Length and bytes of the sender's address.
    let _sender = r.array::<10>()?;
    let cooked = Cooked {
        protocol: r.u16()?,
        hardware,
        interface: None,
    };
    Ok((cooked, r.rest()))
}

fn sll2(bytes: &[u8]) -> Result<(Cooked, &[u8]), Truncated> {
    let mut r = Reader::new(bytes);
    let protocol = r.u16()?;
    let _reserved = r.u16()?;
    let cooked = Cooked {
        protocol,
        interface: Some(r.u32()?),
        hardware: r.u16()?,
    };
    // Packet type, length and bytes of the sender's address.
    let _sender = r.array::<10>()?;
    Ok((cooked, r.rest()))
}

impl Cooked {
    fn explain<'a>(self, frame: &mut Frame, payload: &'a [u8]) -> Next<'a> {
        frame.push(
            Layer::new("sll", "Linux cooked capture")
                .with("interface", self.interface)
                .hidden("hardware", self.hardware)
                .with("protocol", hex16(self.protocol)),
        );
        match self.holds_mac() {
            true => Next::Mac(payload, Fcs::Asked),
            false => Next::Ether("sll", self.protocol, payload),
        }
    }

    /// Whether a frame of IEEE 802.15.4 follows: by its protocol, or because an interface of that
    /// kind carries nothing else but IP.
    const fn holds_mac(&self) -> bool {
        let is_ip = matches!(self.protocol, ETHER_IPV4 | ETHER_IPV6);
        let is_mac = matches!(self.hardware, ARPHRD_IEEE802154 | ARPHRD_IEEE802154_MONITOR);
        self.protocol == ETHER_IEEE802154 || is_mac && !is_ip
    }
}

/// The frame of IEEE 802.15.4 in a record whose link type leaves open what frames end in.
pub(crate) fn of_open_ending(link_type: LinkType, bytes: &[u8]) -> Option<&[u8]> {
    match link_type {
        LinkType::IEEE802154 => Some(bytes),
        LinkType::LINUX_SLL | LinkType::LINUX_SLL2 => {
            let read = [sll, sll2][usize::from(link_type == LinkType::LINUX_SLL2)];
            let (cooked, payload) = read(bytes).ok()?;
            cooked.holds_mac().then_some(payload)
        }
        LinkType::PPI => match ppi(bytes) {
            Some((_, LinkType::IEEE802154, payload)) => Some(payload),
            _ => None,
        },
        LinkType::ETHERNET => match bytes.get(12..14)? {
            [0x80, 0x9a] | [0x00, 0xf6] => bytes.get(14..),
            _ => None,
        },
        _ => None,
    }
}

/// The header of link type 192 (Per-Packet Information): version, flags, length and link type, then
/// fields about the packet, of which none is read.
pub(super) fn per_packet<'a>(frame: &mut Frame, bytes: &'a [u8]) -> Next<'a> {
    let Some((fields, link_type, payload)) = ppi(bytes) else {
        return frame.malformed("ppi", "the PPI header does not fit the record");
    };
    let layer = Layer::new("ppi", "per-packet information").with("link_type", link_type.0);
    frame.push(match fields {
        [] => layer,
        fields => layer.with("fields", fields),
    });
    match link_type {
        // A header in itself would let a hostile capture nest them without end.
        LinkType::PPI => frame.malformed("ppi", "PPI within PPI"),
        link_type => Next::Link(link_type, payload),
    }
}

/// The fields of a PPI header, the link type of what follows, and that.
fn ppi(bytes: &[u8]) -> Option<(&[u8], LinkType, &[u8])> {
    let mut r = Reader::new(bytes);
    let (version, _flags, len) = (r.u8().ok()?, r.u8().ok()?, r.u16_le().ok()?);
    let link_type = u32::from_le_bytes(r.array().ok()?);
    let fields = r.slice(usize::from(len).checked_sub(PPI_LEN)?).ok()?;
    (version == 0).then_some((fields, LinkType(link_type), r.rest()))
}

/// Bytes of a PPI header before its fields.
const PPI_LEN: usize = 8;

/// `ETH_P_IEEE802154` of Linux, which is no number on the air.
pub(super) const ETHER_IEEE802154: u16 = 0x00f6;
/// The EtherType that Wireshark reads as a frame of IEEE 802.15.4.
pub(super) const ETHER_ENCAPSULATED: u16 = 0x809a;
const ETHER_IPV4: u16 = 0x0800;
const ETHER_IPV6: u16 = 0x86dd;
/// Types of hardware by Linux (`if_arp.h`): an interface of IEEE 802.15.4, and one that hears all.
const ARPHRD_IEEE802154: u16 = 804;
const ARPHRD_IEEE802154_MONITOR: u16 = 805;

/// Address families of IPv4 and, by system, of IPv6.
const AF_INET: u32 = 2;
const AF_INET6_LINUX: u32 = 10;
const AF_INET6_BSD: u32 = 24;
const AF_INET6_FREEBSD: u32 = 28;
const AF_INET6_DARWIN: u32 = 30;

/// Start-of-frame delimiter of the 2.4 GHz O-QPSK PHY (IEEE 802.15.4-2006 §6.3.2).
const START_OF_FRAME: u8 = 0xa7;
