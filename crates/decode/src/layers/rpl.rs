//! RPL control messages: ICMPv6 type 155.
//!
//! Place: under `icmpv6`. The stack's codec reads base and options; this file puts them into
//! words, up to the first option that is malformed. A DIO teaches the decoder the root's address.
//! Left out: the secured variants' contents, routing decisions.
//! Sources: RFC 6550 §6; RFC 6551; RFC 9009 for DCO; RFC 9010 §7 for the status of a DAO-ACK.

use motet::wire::rpl::{
    Configuration, Dao, DaoAck, Dio, Message, Metric, Metrics, ParseError, RplOption, RplOptions,
    configuration, mode,
};

pub(super) use motet::wire::rpl::ICMPV6_TYPE;

use super::{Decoder, icmpv6};
use crate::model::{Frame, Layer, Value, group, hex8, hex16};
use crate::next::{Control, Next};

/// Explains a control message.
pub(super) fn explain<'a>(
    decoder: &mut Decoder,
    frame: &mut Frame,
    control: Control<'_>,
) -> Next<'a> {
    let Control {
        code, body, intact, ..
    } = control;
    let name = name_of(code);
    frame.say(format_args!("RPL {name}"));
    let (base, list) = body.split_at(base_len(code, body).min(body.len()));
    let layer = match Message::parse(code, base) {
        Ok(Message::Dis(_)) => dis(base),
        Ok(Message::Dio(message)) => {
            if intact && decoder.now.countable() {
                decoder.dodag = Some(message.dodag);
            }
            dio(&message)
        }
        Ok(Message::Dao(message)) => dao(&message),
        Ok(Message::DaoAck(message)) => dao_ack(&message),
        Err(error) => {
            frame.push(Layer::new("rpl", name.clone()));
            return match error {
                ParseError::Secure => frame.undecoded("rpl", error.reason()),
                ParseError::Code => frame.undecoded("rpl", format!("RPL code 0x{code:02x}")),
                _ => frame.malformed("rpl", format!("{name} truncated")),
            };
        }
    };
    let (list, problem) = options(list);
    frame.push(Layer {
        title: name,
        ..layer.with("options", list)
    });
    match problem {
        Ok(()) => Next::End,
        Err(reason) => frame.malformed("rpl", reason),
    }
}

/// Bytes of a message in front of its options.
fn base_len(code: u8, body: &[u8]) -> usize {
    let has_dodag = |flag| body.get(1).is_some_and(|flags| flags & flag != 0);
    match code {
        DIS => 2,
        DIO => 24,
        DAO if has_dodag(0x40) => 20,
        DAO_ACK if has_dodag(0x80) => 20,
        DAO | DAO_ACK => 4,
        _ => body.len(),
    }
}

fn name_of(code: u8) -> String {
    let plain = match code & !SECURE {
        DIS => "DIS",
        DIO => "DIO",
        DAO => "DAO",
        DAO_ACK => "DAO-ACK",
        4 => "P2P-DRO",
        5 => "P2P-DRO-ACK",
        7 => "DCO",
        8 => "DCO-ACK",
        10 if code == 0x8a => "consistency check",
        other => return format!("message 0x{other:02x}"),
    };
    if code & SECURE != 0 {
        format!("secure {plain}")
    } else {
        plain.to_owned()
    }
}

/// DODAG information solicitation (RFC 6550 §6.2).
fn dis(base: &[u8]) -> Layer {
    Layer::new("rpl", "").hidden("flags", base.first().copied().map(hex8))
}

/// DODAG information object (§6.3).
fn dio(dio: &Dio<'_>) -> Layer {
    let mode = match dio.mode {
        mode::UPWARD_ONLY => "no downward routes",
        mode::NON_STORING => "non-storing",
        mode::STORING => "storing",
        mode::STORING_WITH_MULTICAST => "storing with multicast",
        _ => "unassigned",
    };
    Layer::new("rpl", "")
        .with("instance", dio.instance)
        .with("version", dio.version)
        .with("rank", dio.rank)
        .with("grounded", dio.grounded)
        .with("mode", mode)
        .with("preference", dio.preference)
        .with("dtsn", dio.dtsn)
        .with("dodag", dio.dodag)
}

/// Destination advertisement object (§6.4).
fn dao(dao: &Dao<'_>) -> Layer {
    Layer::new("rpl", "")
        .with("instance", dao.instance)
        .with("sequence", dao.sequence)
        .with("ack_requested", dao.ack_requested)
        .with("dodag", dao.dodag)
}

/// Acknowledgement of a DAO (§6.5).
fn dao_ack(ack: &DaoAck<'_>) -> Layer {
    let meaning = match ack.status {
        0 => "accepted",
        1..=127 => "accepted, another parent suggested",
        _ => "rejected",
    };
    Layer::new("rpl", "")
        .with("instance", ack.instance)
        .with("sequence", ack.sequence)
        .with("status", ack.status)
        .with("meaning", meaning)
        .with("dodag", ack.dodag)
}

/// The options up to the first that is malformed (§6.7).
fn options(mut bytes: &[u8]) -> (Vec<Value>, Result<(), String>) {
    let mut list = Vec::new();
    while let [kind, tail @ ..] = bytes {
        let len = match (*kind, tail) {
            (PAD1, _) => 1,
            (_, [len, ..]) => 2 + usize::from(*len),
            (_, []) => 2,
        };
        let Some((one, rest)) = bytes.split_at_checked(len) else {
            return (list, Err(format!("option {kind} runs beyond the message")));
        };
        match RplOptions::parse(one) {
            Ok(one) => list.extend(one.iter().map(option)),
            Err(_) => {
                let data = one.get(2..).unwrap_or_default();
                list.push(group([("option", (*kind).into()), ("data", data.into())]));
                let reason = format!("option {kind} is too short or too long for its type");
                return (list, Err(reason));
            }
        }
        bytes = rest;
    }
    (list, Ok(()))
}

fn option(option: RplOption<'_>) -> Value {
    match option {
        RplOption::Metrics(metrics) => {
            let list: Vec<Value> = metrics.iter().map(|metric| metric_value(&metric)).collect();
            group([("metrics", list.into())])
        }
        RplOption::Route(route) => group([
            (
                "route",
                format!("{}/{}", route.prefix, route.prefix_len).into(),
            ),
            ("preference", route.preference.into()),
            ("lifetime_s", route.lifetime_s.into()),
        ]),
        RplOption::Configuration(configuration) => configuration_value(&configuration),
        RplOption::Target(target) => group([(
            "target",
            format!("{}/{}", target.prefix, target.prefix_len).into(),
        )]),
        RplOption::Transit(transit) => group([
            ("transit_sequence", transit.sequence.into()),
            ("external", transit.external.into()),
            ("path_control", hex8(transit.path_control)),
            ("lifetime_units", transit.lifetime.into()),
            ("parent", transit.parent.into()),
        ]),
        RplOption::Solicited(solicited) => group([
            ("solicited", "information".into()),
            ("instance", solicited.instance.into()),
            ("dodag", solicited.dodag.into()),
            ("version", solicited.version.into()),
        ]),
        RplOption::Prefix(prefix) => icmpv6::prefix_value(&prefix),
        RplOption::Descriptor(descriptor) => {
            group([("descriptor", Value::Hex(descriptor.into(), 8))])
        }
        RplOption::Other { kind, body } => group([("option", kind.into()), ("data", body.into())]),
    }
}

/// The DODAG configuration option, which the root sets (RFC 6550 §6.7.6).
fn configuration_value(it: &Configuration) -> Value {
    let objective = match it.objective {
        0 => "OF0".to_owned(),
        1 => "MRHOF".to_owned(),
        other => format!("code point {other}"),
    };
    let is_set = |flag| Value::from(it.flags & flag != 0);
    group([
        ("dio_interval_min", it.interval_min.into()),
        ("dio_interval_doublings", it.interval_doublings.into()),
        ("redundancy", it.redundancy.into()),
        ("max_rank_increase", it.max_rank_increase.into()),
        ("min_hop_rank_increase", it.min_hop_rank_increase.into()),
        ("objective", it.objective.into()),
        ("objective_name", objective.into()),
        ("default_lifetime", it.default_lifetime.into()),
        ("lifetime_unit_s", it.lifetime_unit_s.into()),
        ("compressed", is_set(configuration::COMPRESSED)),
        ("rpl_option_0x23", is_set(configuration::RPI_0X23)),
        ("authenticated", is_set(configuration::AUTHENTICATED)),
        (
            "path_control_size",
            (it.flags & configuration::PATH_CONTROL_SIZE).into(),
        ),
    ])
}

/// An object of a metric container (RFC 6551).
fn metric_value(metric: &Metric<'_>) -> Value {
    let name = match metric.kind {
        1 => "node state",
        2 => "node energy",
        3 => "hop count",
        4 => "throughput",
        5 => "latency",
        6 => "link quality level",
        Metrics::ETX => "ETX",
        8 => "link color",
        _ => "unknown",
    };
    let etx = match (metric.kind, metric.body) {
        (Metrics::ETX, [high, low, ..]) => {
            Some(f64::from(u16::from_be_bytes([*high, *low])) / 128.0)
        }
        _ => None,
    };
    group([
        ("metric", name.into()),
        ("etx", etx.into()),
        ("kind", metric.kind.into()),
        ("flags", hex16(metric.flags)),
        ("data", metric.body.into()),
    ])
}

const DIS: u8 = 0;
const DIO: u8 = 1;
const DAO: u8 = 2;
const DAO_ACK: u8 = 3;
/// Set in the code of secured messages.
const SECURE: u8 = 0x80;
const PAD1: u8 = 0;
