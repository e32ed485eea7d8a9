//! ICMPv6: echo, errors, neighbour discovery; other messages are named by their type.
//!
//! Place: under `ip`. Router advertisements teach the decoder its 6LoWPAN contexts.
//! Sources: RFC 4443, RFC 4861, RFC 6775.

use std::net::IpAddr;

use motet::wire::icmpv6::{self, Echo, Message, RouterAdvertisement};
use motet::wire::ndp::{NdpOption, NdpOptions, PrefixInformation, registration};

use super::ip::about;
use super::mac::link_addr;
use crate::Decoder;
use crate::model::{Field, Frame, Layer, Value, group, hex, hex8, hex16};
use crate::next::{Control, Next, Upper};

/// Explains a message.
pub(super) fn explain<'a>(decoder: &mut Decoder, frame: &mut Frame, upper: Upper<'a>) -> Next<'a> {
    let message = match Message::parse(upper.bytes) {
        Ok(message) => message,
        Err(error) => {
            frame.say_broken("ICMPv6");
            return frame.malformed("icmpv6", error.reason());
        }
    };
    let checksum_ok = match (upper.src, upper.dst) {
        (IpAddr::V6(src), IpAddr::V6(dst)) if !frame.is_cut() => {
            Some(icmpv6::is_checksum_valid(&src, &dst, upper.bytes))
        }
        _ => None,
    };
    let description = describe(&message);
    frame.say(format_args!("ICMPv6 {}", description.summary));
    let mut layer = Layer::new("icmpv6", description.name)
        .hidden("type", upper.bytes.first().copied())
        .hidden("code", upper.bytes.get(1).copied());
    layer.fields.extend(description.fields);
    frame.push(
        layer
            .hidden("checksum_ok", checksum_ok)
            .remark("checksum_wrong", checksum_ok == Some(false)),
    );
    if let Message::RouterAdvertisement(advertisement) = message
        && decoder.now.countable()
        && checksum_ok != Some(false)
    {
        learn(decoder, &advertisement);
    }
    let intact = checksum_ok != Some(false);
    match message {
        Message::Other { kind, code, body } => {
            return Next::Control(Control {
                kind,
                code,
                body,
                intact,
            });
        }
        Message::EchoRequest(echo) | Message::EchoReply(echo) => frame.payload(echo.data),
        _ => {}
    }
    conclude(frame, intact);
    Next::End
}

/// Concludes the frame with the message as a whole, once all inside is explained; `intact`: the
/// checksum is not known to be wrong.
///
/// No network card fills in this checksum, unlike those of TCP and UDP. So a wrong one was sent
/// wrong, or was damaged.
pub(super) fn conclude(frame: &mut Frame, intact: bool) {
    if !intact {
        frame.malformed("icmpv6", "ICMPv6 checksum wrong");
    }
}

/// Remembers the contexts a router announces, as every node of the mesh does.
fn learn(decoder: &mut Decoder, advertisement: &RouterAdvertisement<'_>) {
    for option in advertisement.options.iter() {
        if let NdpOption::Context(context) = option {
            decoder.learn_context(
                context.id,
                context.prefix,
                context.prefix_len,
                context.compress,
            );
        }
    }
}

/// A message in words.
struct Description {
    name: String,
    summary: String,
    fields: Vec<Field>,
}

fn describe(message: &Message<'_>) -> Description {
    let layer = Layer::new("", "");
    match message {
        Message::DestinationUnreachable { code, invoking } => error(
            &format!("destination unreachable: {}", unreachable_reason(*code)),
            layer,
            invoking,
        ),
        Message::PacketTooBig { mtu, invoking } => error(
            &format!("packet too big, MTU {mtu}"),
            layer.hidden("mtu", *mtu),
            invoking,
        ),
        Message::TimeExceeded { code: 0, invoking } => {
            error("time exceeded: hop limit", layer, invoking)
        }
        Message::TimeExceeded { invoking, .. } => {
            error("time exceeded: reassembly time", layer, invoking)
        }
        Message::ParameterProblem {
            code,
            pointer,
            invoking,
        } => error(
            &format!("parameter problem: {}", problem(*code)),
            layer.with("pointer", *pointer),
            invoking,
        ),
        Message::EchoRequest(echo) => describe_echo("echo request", echo),
        Message::EchoReply(echo) => describe_echo("echo reply", echo),
        Message::RouterSolicitation { options } => ndp("router solicitation", "", layer, options),
        Message::RouterAdvertisement(advertisement) => describe_router(advertisement),
        Message::NeighborSolicitation { target, options } => ndp(
            "neighbor solicitation",
            &format!(" for {target}"),
            layer.with("target", *target),
            options,
        ),
        Message::NeighborAdvertisement {
            flags,
            target,
            options,
        } => ndp(
            "neighbor advertisement",
            &format!(" of {target}"),
            advertised(*flags, layer.with("target", *target)),
            options,
        ),
        Message::Redirect {
            target,
            destination,
            options,
        } => {
            let layer = layer
                .with("target", *target)
                .with("destination", *destination);
            ndp("redirect", &format!(" for {destination}"), layer, options)
        }
        Message::Other { kind, code, .. } => describe_other(*kind, *code),
    }
}

/// A message of a type that the stack itself does not read.
fn describe_other(kind: u8, code: u8) -> Description {
    let name = type_name(kind);
    Description {
        summary: name.clone(),
        name,
        // For people only: `explain` gives programs the code of every message.
        fields: Layer::new("", "").remark("code", hex8(code)).fields,
    }
}

fn describe_echo(name: &str, echo: &Echo<'_>) -> Description {
    let layer = Layer::new("", "").with("id", hex16(echo.identifier));
    Description {
        name: name.into(),
        summary: format!("{name} seq {}", echo.sequence),
        fields: layer.with("seq", echo.sequence).fields,
    }
}

/// Describes a router advertisement (RFC 4861 §4.2).
fn describe_router(advertisement: &RouterAdvertisement<'_>) -> Description {
    let layer = Layer::new("", "")
        .with("hop_limit", advertisement.hop_limit)
        .with("flags", hex8(advertisement.flags))
        .with("router_lifetime_s", advertisement.router_lifetime_s)
        .with("reachable_ms", advertisement.reachable_ms)
        .with("retransmit_ms", advertisement.retransmit_ms);
    ndp("router advertisement", "", layer, &advertisement.options)
}

/// Adds the flags of a neighbour's advertisement (RFC 4861 §4.4).
fn advertised(flags: u8, layer: Layer) -> Layer {
    layer
        .with("router", flags & 0x80 != 0)
        .with("solicited", flags & 0x40 != 0)
        .with("override", flags & 0x20 != 0)
}

/// The reason of a Destination Unreachable message (RFC 4443 §3.1).
fn unreachable_reason(code: u8) -> &'static str {
    match code {
        0 => "no route",
        1 => "prohibited",
        2 => "beyond scope",
        3 => "address",
        4 => "port",
        5 => "source address policy",
        6 => "route rejected",
        _ => "unknown reason",
    }
}

/// The problem of a Parameter Problem message (RFC 4443 §3.4).
fn problem(code: u8) -> &'static str {
    match code {
        0 => "header field",
        1 => "next header",
        2 => "option",
        _ => "other",
    }
}

/// The name of a message that this file does not take apart, by its number in the IANA registry.
fn type_name(kind: u8) -> String {
    let name = match kind {
        130 => "MLD query",
        131 => "MLD report",
        132 => "MLD done",
        143 => "MLDv2 report",
        155 => "RPL",
        157 => "duplicate address request",
        158 => "duplicate address confirmation",
        _ => return format!("type {kind}"),
    };
    name.to_owned()
}

fn error(name: &str, layer: Layer, invoking: &[u8]) -> Description {
    Description {
        name: name.into(),
        summary: name.into(),
        fields: layer
            .with("about", about(invoking))
            .hidden("invoking", invoking)
            .fields,
    }
}

fn ndp(name: &str, detail: &str, layer: Layer, options: &NdpOptions<'_>) -> Description {
    let list: Vec<Value> = options.iter().map(|option| option_value(&option)).collect();
    Description {
        name: name.into(),
        summary: format!("{name}{detail}"),
        fields: layer.with("options", list).fields,
    }
}

/// RFC 6775 §8.2, RFC 8505 §9.3.
fn registration_status(status: u8) -> String {
    let meaning = match status {
        registration::SUCCESS => "success",
        registration::DUPLICATE => "duplicate address",
        registration::FULL => "neighbor cache full",
        registration::MOVED => "moved",
        registration::REMOVED => "removed",
        5 => "validation requested",
        6 => "duplicate source address",
        7 => "invalid source address",
        registration::TOPOLOGY => "topologically incorrect",
        9 => "registry saturated",
        10 => "validation failed",
        other => return format!("status {other}"),
    };
    meaning.to_owned()
}

/// A prefix information option, which RPL's messages have in the same form (RFC 6550 §6.7.10).
pub(super) fn prefix_value(prefix: &PrefixInformation) -> Value {
    group([
        (
            "prefix",
            format!("{}/{}", prefix.prefix, prefix.prefix_len).into(),
        ),
        ("on_link", prefix.on_link.into()),
        ("autonomous", prefix.autonomous.into()),
        ("router_address", prefix.router_address.into()),
        ("valid_s", prefix.valid_lifetime_s.into()),
        ("preferred_s", prefix.preferred_lifetime_s.into()),
    ])
}

fn option_value(option: &NdpOption<'_>) -> Value {
    match option {
        NdpOption::SourceLinkAddr(addr) => group([("source_link_addr", link_addr(*addr).into())]),
        NdpOption::TargetLinkAddr(addr) => group([("target_link_addr", link_addr(*addr).into())]),
        NdpOption::Prefix(prefix) => prefix_value(prefix),
        NdpOption::Mtu(mtu) => group([("mtu", (*mtu).into())]),
        NdpOption::AddressRegistration(registration) => group([
            (
                "registration",
                registration_status(registration.status).into(),
            ),
            ("owner", hex(registration.owner, ":").into()),
            ("lifetime_min", registration.lifetime_min.into()),
            ("reachable", registration.reachable.into()),
            ("transaction", registration.transaction.into()),
            ("opaque", hex8(registration.opaque)),
        ]),
        NdpOption::Context(context) => group([
            ("context", context.id.into()),
            (
                "prefix",
                format!("{}/{}", context.prefix, context.prefix_len).into(),
            ),
            ("compress", context.compress.into()),
            ("lifetime_min", context.lifetime_min.into()),
        ]),
        NdpOption::BorderRouter(router) => group([
            ("border_router", router.addr.into()),
            ("version", router.version.into()),
            ("lifetime_min", router.lifetime_min.into()),
        ]),
        // Ethernet's form of the link address options.
        NdpOption::RestoresTcp { router } => group([("restores_tcp", hex(router, ":").into())]),
        NdpOption::Other { kind: 1, body } => group([("source_link_addr", hex(body, ":").into())]),
        NdpOption::Other { kind: 2, body } => group([("target_link_addr", hex(body, ":").into())]),
        NdpOption::Other { kind, body } => {
            group([("option", (*kind).into()), ("data", (*body).into())])
        }
    }
}
