//! Which layer a number names: the one file that calls the layers.
//!
//! A layer explains its header and returns the [`Next`]; it calls none. A new layer is a file of
//! its own with an `explain` that returns a [`Next`], and a line here: by link type, EtherType, IP
//! protocol, ICMPv6 type or UDP port.

mod addressing;
mod advertisement;
pub(crate) mod bluetooth;
mod coap;
mod elements;
mod envelope;
mod hdlc;
mod header_alone;
mod icmpv6;
mod ip;
mod link;
mod lowpan;
pub(crate) mod mac;
mod mesh;
mod nested;
mod nordic;
mod radio;
mod rpl;
pub(crate) mod spinel;
mod tap;
mod tcp;
pub(crate) mod tcphc;
mod thread;
mod udp;
mod wisun;
mod zep;

pub(crate) use self::link::of_open_ending;

use etherparse::EtherType;
use motet::wire::{icmpv6 as wire_icmpv6, ipv6, tcp as wire_tcp, udp as wire_udp};

use crate::Decoder;
use crate::capture::{LinkType, Record};
use crate::conversation::End;
use crate::model::Frame;
use crate::next::{Control, Fcs, Next, Upper};

/// Explains a record from its link layer inwards.
pub(super) fn explain(decoder: &mut Decoder, frame: &mut Frame, record: &Record) {
    walk(decoder, frame, Next::Link(record.link_type, &record.data));
}

/// Decodes the remaining layers one after the other. The depth is bounded by the number of layers,
/// and for packets within packets by [`ip::explain`].
fn walk(decoder: &mut Decoder, frame: &mut Frame, next: Next<'_>) {
    let next = match next {
        Next::End => return,
        Next::Link(link_type, bytes) => of_link_type(frame, link_type, bytes),
        Next::Hdlc(bytes) => hdlc::explain(frame, bytes),
        Next::Spinel(bytes) => {
            let next = spinel::explain(decoder, frame, &bytes);
            return walk(decoder, frame, next);
        }
        Next::Ether(layer, number, payload) => of_ether_type(frame, layer, number, payload),
        Next::Bluetooth(packet) => bluetooth::explain(decoder, frame, packet),
        Next::Mac(bytes, fcs) => mac::explain(decoder, frame, bytes, fcs),
        Next::Envelope(mpdu, fcs_ok, refusal) => {
            envelope::explain(decoder, frame, mpdu, fcs_ok, refusal)
        }
        Next::Lowpan(pair, payload) => {
            let next = lowpan::explain(decoder, frame, pair, &payload);
            return walk(decoder, frame, next);
        }
        Next::Ip(packet) => {
            let next = ip::explain(decoder, frame, &packet);
            return walk(decoder, frame, next);
        }
        Next::Protocol(number, upper) => of_protocol(decoder, frame, number, upper),
        Next::Control(control) => of_icmp_type(decoder, frame, control),
        Next::Datagram(ends, payload) => of_ports(decoder, frame, ends, payload),
    };
    walk(decoder, frame, next);
}

/// The layer for a link type (the registry at tcpdump.org).
fn of_link_type<'a>(frame: &mut Frame, link_type: LinkType, bytes: &'a [u8]) -> Next<'a> {
    match link_type {
        LinkType::IEEE802154 => Next::Mac(bytes, Fcs::Asked),
        LinkType::IEEE802154_NOFCS => Next::Mac(bytes, Fcs::Absent),
        LinkType::IEEE802154_NONASK_PHY => link::phy_header(frame, bytes),
        LinkType::IEEE802154_TAP => tap::explain(frame, bytes),
        LinkType::BLUETOOTH_LE => radio::explain(frame, bytes),
        LinkType::BLUETOOTH_LE_BARE => radio::bare(bytes),
        LinkType::NORDIC_BLE => nordic::explain(frame, bytes),
        LinkType::PPI => link::per_packet(frame, bytes),
        LinkType::ETHERNET => link::ethernet(frame, bytes),
        LinkType::LINUX_SLL => link::linux_sll(frame, bytes),
        LinkType::LINUX_SLL2 => link::linux_sll2(frame, bytes),
        LinkType::IPV4 | LinkType::IPV6 => Next::Ip(bytes.into()),
        raw if LinkType::RAW.contains(&raw) => Next::Ip(bytes.into()),
        LinkType::NULL if !hdlc::is_spinel(bytes) => link::loopback(frame, bytes),
        LinkType::SERIAL_LINE => Next::Hdlc(bytes),
        LinkType::NULL | LinkType(LinkType::USER_FIRST..=LinkType::USER_LAST) => {
            hdlc::record(bytes)
        }
        LinkType(other) => {
            let supported = LinkType::SUPPORTED;
            frame.undecoded(
                "link",
                format!("link type {other}; supported are {supported}"),
            )
        }
    }
}

/// Explains what the EtherType announces.
fn of_ether_type<'a>(
    frame: &mut Frame,
    layer: &'static str,
    number: u16,
    payload: &'a [u8],
) -> Next<'a> {
    match EtherType(number) {
        EtherType::IPV4 | EtherType::IPV6 => Next::Ip(payload.into()),
        EtherType(link::ETHER_IEEE802154 | link::ETHER_ENCAPSULATED) => {
            Next::Mac(payload, Fcs::Asked)
        }
        EtherType::ARP => frame.undecoded(layer, "ARP"),
        _ => frame.undecoded(layer, format!("EtherType 0x{number:04x} is not IP")),
    }
}

/// The layer for a protocol number, which is also IPv6's next header.
fn of_protocol<'a>(
    decoder: &mut Decoder,
    frame: &mut Frame,
    number: u8,
    upper: Upper<'a>,
) -> Next<'a> {
    match number {
        wire_tcp::NEXT_HEADER => tcp::explain(decoder, frame, upper),
        wire_udp::NEXT_HEADER => udp::explain(decoder, frame, upper),
        wire_icmpv6::NEXT_HEADER => icmpv6::explain(decoder, frame, upper),
        ipv6::next_header::IPV6 => Next::Ip(upper.bytes.into()),
        other => ip::not_read(frame, other, upper),
    }
}

/// Explains a message of ICMPv6 by its type.
fn of_icmp_type<'a>(decoder: &mut Decoder, frame: &mut Frame, control: Control<'a>) -> Next<'a> {
    let next = match control.kind {
        rpl::ICMPV6_TYPE => rpl::explain(decoder, frame, control),
        _ => {
            frame.payload(control.body);
            Next::End
        }
    };
    icmpv6::conclude(frame, control.intact);
    next
}

/// Explains a datagram by its UDP ports.
fn of_ports<'a>(
    decoder: &mut Decoder,
    frame: &mut Frame,
    ends: [End; 2],
    payload: &'a [u8],
) -> Next<'a> {
    let ports = ends.map(|(_, port)| port);
    if ports.contains(&coap::PORT) {
        coap::explain(frame, payload)
    } else if ports.contains(&thread::PORT) {
        thread::explain(decoder, frame, ends, payload)
    } else if ports.contains(&thread::MANAGEMENT_PORT) {
        thread::hide_keys(decoder, payload);
        coap::explain(frame, payload)
    } else if ports.contains(&zep::PORT) {
        zep::explain(frame, payload)
    } else {
        frame.payload(payload);
        Next::End
    }
}
