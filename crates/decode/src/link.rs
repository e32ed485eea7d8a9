//! From a capture's link type to the first header this project knows.
//!
//! Place: after `capture`; calls `mac` for IEEE 802.15.4 frames and `ip` for packets.
//! Left out: what Ethernet carries besides IP.
//! Sources: the registry of link-layer header types at tcpdump.org; IEEE 802.15.4-2006 §6.3
//! for the PHY header; the crate `etherparse` for Ethernet.

use etherparse::{EtherType, Ethernet2HeaderSlice, SingleVlanHeaderSlice};
use motet::wire::cursor::{Reader, Truncated};

use super::Decoder;
use super::capture::{LinkType, Record};
use super::mac::Fcs;
use super::model::{Frame, Layer, Value, hex, hex8, hex16};

impl LinkType {
    /// IEEE 802.15.4 frames that end in their FCS.
    pub(super) const IEEE802154: Self = Self(195);
    /// The same behind preamble, start-of-frame delimiter and length.
    pub(super) const IEEE802154_NONASK_PHY: Self = Self(215);
    /// IEEE 802.15.4 frames without FCS.
    pub(super) const IEEE802154_NOFCS: Self = Self(230);
    /// IEEE 802.15.4 frames behind a list of what the receiver knows about them.
    pub(super) const IEEE802154_TAP: Self = Self(283);
    /// Bluetooth LE's link layer behind a header that says how each packet was received.
    pub(super) const BLUETOOTH_LE: Self = Self(256);
    const ETHERNET: Self = Self(1);
    const LINUX_SLL: Self = Self(113);
    const LINUX_SLL2: Self = Self(276);
    const IPV4: Self = Self(228);
    const IPV6: Self = Self(229);
    /// Bare IP packets. The registry's number is 101; 12 and 14 are what `DLT_RAW` was on the
    /// systems that wrote it without translation.
    const RAW: [Self; 3] = [Self(101), Self(12), Self(14)];

    /// What can be decoded, for people.
    pub(super) const SUPPORTED: &str = "IEEE 802.15.4 (195, 215, 230, 283), Bluetooth LE (256), raw IP \
                                        (12, 14, 101, 228, 229), Ethernet (1) and Linux cooked \
                                        (113, 276)";

    /// Whether frames of the type can be explained.
    pub fn is_supported(self) -> bool {
        [
            Self::IEEE802154,
            Self::IEEE802154_NONASK_PHY,
            Self::IEEE802154_NOFCS,
            Self::IEEE802154_TAP,
            Self::BLUETOOTH_LE,
            Self::ETHERNET,
            Self::LINUX_SLL,
            Self::LINUX_SLL2,
            Self::IPV4,
            Self::IPV6,
        ]
        .contains(&self)
            || Self::RAW.contains(&self)
    }
}

/// Explains a record from its link layer inwards.
pub(super) fn explain(decoder: &mut Decoder, frame: &mut Frame, record: &Record) {
    let bytes = record.data.as_slice();
    match record.link_type {
        LinkType::IEEE802154 => super::mac::explain(decoder, frame, bytes, Fcs::Crc16),
        LinkType::IEEE802154_NOFCS => super::mac::explain(decoder, frame, bytes, Fcs::Absent),
        LinkType::IEEE802154_NONASK_PHY => phy_header(decoder, frame, bytes),
        LinkType::IEEE802154_TAP => super::tap::explain(decoder, frame, bytes),
        LinkType::BLUETOOTH_LE => super::bluetooth::explain(decoder, frame, bytes),
        LinkType::ETHERNET => ethernet(decoder, frame, bytes),
        LinkType::LINUX_SLL => linux_sll(decoder, frame, bytes),
        LinkType::LINUX_SLL2 => linux_sll2(decoder, frame, bytes),
        LinkType::IPV4 | LinkType::IPV6 => super::ip::explain(decoder, frame, bytes),
        raw if LinkType::RAW.contains(&raw) => super::ip::explain(decoder, frame, bytes),
        LinkType(other) => {
            frame.undecoded(
                "link",
                format!("link type {other}; supported are {}", LinkType::SUPPORTED),
            );
        }
    }
}

/// Preamble, start-of-frame delimiter and length, then the frame.
fn phy_header(decoder: &mut Decoder, frame: &mut Frame, bytes: &[u8]) {
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
        Ok(psdu) => super::mac::explain(decoder, frame, psdu, Fcs::Crc16),
        Err(Truncated) => {
            frame.malformed(
                "phy",
                format!("PHY length {length} exceeds the {} captured bytes", r.len()),
            );
        }
    }
}

fn ethernet(decoder: &mut Decoder, frame: &mut Frame, bytes: &[u8]) {
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
    ether_payload(decoder, frame, "ethernet", ether_type.0, payload);
}

/// What `tcpdump -i any` wrote for decades.
fn linux_sll(decoder: &mut Decoder, frame: &mut Frame, bytes: &[u8]) {
    // By hand: `etherparse` refuses the types of hardware that it does not know.
    let mut r = Reader::new(bytes);
    let header = (|| {
        // Packet type, hardware type, length and bytes of the sender's address.
        let _sender = r.array::<14>()?;
        r.u16()
    })();
    let Ok(protocol) = header else {
        return frame.malformed("sll", "Linux cooked header truncated");
    };
    frame.push(Layer::new("sll", "Linux cooked capture").with("protocol", hex16(protocol)));
    ether_payload(decoder, frame, "sll", protocol, r.rest());
}

/// What `tcpdump -i any` writes today.
fn linux_sll2(decoder: &mut Decoder, frame: &mut Frame, bytes: &[u8]) {
    let mut r = Reader::new(bytes);
    let header = (|| {
        let protocol = r.u16()?;
        let _reserved = r.u16()?;
        let interface = r.u32()?;
        // Hardware type, packet type, length and bytes of the sender's address.
        let _rest = r.array::<12>()?;
        Ok::<_, Truncated>((protocol, interface))
    })();
    let Ok((protocol, interface)) = header else {
        return frame.malformed("sll", "Linux cooked header truncated");
    };
    frame.push(
        Layer::new("sll", "Linux cooked capture")
            .with("interface", interface)
            .with("protocol", hex16(protocol)),
    );
    ether_payload(decoder, frame, "sll", protocol, r.rest());
}

fn ether_payload(
    decoder: &mut Decoder,
    frame: &mut Frame,
    layer: &'static str,
    ether_type: u16,
    payload: &[u8],
) {
    match EtherType(ether_type) {
        EtherType::IPV4 | EtherType::IPV6 => super::ip::explain(decoder, frame, payload),
        // IEEE 802.15.4 frames on a Linux monitor interface, without FCS.
        EtherType(0x00f6) => super::mac::explain(decoder, frame, payload, Fcs::Absent),
        EtherType::ARP => frame.undecoded(layer, "ARP"),
        _ => frame.undecoded(layer, format!("EtherType 0x{ether_type:04x} is not IP")),
    }
}

/// Start-of-frame delimiter of the 2.4 GHz O-QPSK PHY (IEEE 802.15.4-2006 §6.3.2).
const START_OF_FRAME: u8 = 0xa7;

/// Bytes that no layer of `decode` reads further.
pub(super) fn payload(frame: &mut Frame, bytes: &[u8]) {
    if !bytes.is_empty() {
        frame.push(
            Layer::new("payload", format!("{} B", bytes.len()))
                .hidden("len", bytes.len())
                .with("data", Value::Bytes(bytes.to_vec())),
        );
    }
}
