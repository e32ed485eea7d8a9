//! The layer behind a layer: by which numbering it is named, its number there, and its bytes.
//!
//! Place: every layer returns a [`Next`]; [`crate::layers`] looks the number up and calls the
//! layer. Left out: which layer a number names. No layer knows that.

use std::borrow::Cow;
use std::net::IpAddr;

use motet::lowpan::LinkPair;
use motet::wire::ieee802154::ParseError;

use crate::capture::LinkType;
use crate::conversation::End;

/// The payload of a layer, and the numbering that names its protocol.
#[derive(Debug)]
pub(super) enum Next<'a> {
    /// Nothing, or nothing that can be read.
    End,
    /// A frame by the link type of its record.
    Link(LinkType, &'a [u8]),
    /// Bytes of a serial line from one flag of HDLC-lite to the next.
    Hdlc(&'a [u8]),
    /// A frame of Spinel.
    Spinel(Cow<'a, [u8]>),
    /// A packet by its EtherType; the first is the layer that names it.
    Ether(&'static str, u16, &'a [u8]),
    /// A packet of Bluetooth LE, from its access address on.
    Bluetooth(Packet<'a>),
    /// A frame of IEEE 802.15.4, and what it ends in.
    Mac(&'a [u8], Fcs),
    /// A frame of IEEE 802.15.4 without its FCS that the parser for 2006 refuses: whether the FCS
    /// was right, and why it is refused.
    Envelope(&'a [u8], Option<bool>, ParseError),
    /// The payload of a link between two addresses: 6LoWPAN.
    Lowpan(LinkPair, Cow<'a, [u8]>),
    /// An IP packet of either version.
    Ip(Cow<'a, [u8]>),
    /// The payload of an IP packet, by protocol number.
    Protocol(u8, Upper<'a>),
    /// The body of an ICMPv6 message, by type.
    Control(Control<'a>),
    /// The payload of a UDP datagram, by its ends: source, then destination.
    Datagram([End; 2], &'a [u8]),
}

/// The bytes behind the payload of a captured frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fcs {
    /// The frame check sequence of two bytes.
    Crc16,
    /// Four bytes, as in the SUN PHYs; not verified.
    Crc32,
    /// No bytes.
    Absent,
    /// Two bytes in which some receivers put their measurements.
    Replaced,
    /// Two bytes as TI's CC24xx and later radios write them: the signal strength, then the
    /// receiver's word on the FCS in bit 7 and a correlation value.
    Metadata,
    /// What the caller of the decoder says ([`crate::Ending`]): the link type leaves it open.
    Asked,
}

/// A packet of Bluetooth LE, and what its receiver said about it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet<'a> {
    /// The access address and all behind it, with the check sum, if that was captured.
    pub(super) bytes: &'a [u8],
    /// On the coded PHY a byte behind the access address says how the rest is coded.
    pub(super) is_coded: bool,
    /// Whether the check sum was right, if the receiver says so.
    pub(super) is_right: Option<bool>,
    /// The sender of a packet of a connection, if known.
    pub(super) way: Option<Way>,
    /// Whether the payload is encrypted, as far as the receiver says.
    pub(super) is_encrypted: bool,
    /// The channel as the receiver counts them.
    pub(super) channel: u8,
}

/// The sender of a packet of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    Central,
    Peripheral,
}

/// The payload of an IP packet, with the packet's two addresses.
#[derive(Clone, Copy, Debug)]
pub(super) struct Upper<'a> {
    /// Source address.
    pub(super) src: IpAddr,
    /// Destination address, the last one of a source route.
    pub(super) dst: IpAddr,
    /// The bytes of the upper layer, as far as they were captured.
    pub(super) bytes: &'a [u8],
    /// The length of the upper layer by the headers around it.
    pub(super) len: usize,
}

/// An ICMPv6 message of a type that ICMPv6 itself does not take apart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Control<'a> {
    /// ICMPv6's type.
    pub(super) kind: u8,
    /// ICMPv6's code.
    pub(super) code: u8,
    /// The bytes behind the checksum.
    pub(super) body: &'a [u8],
    /// The checksum is not known to be wrong.
    pub(super) intact: bool,
}
