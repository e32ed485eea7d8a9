//! RPL control messages: ICMPv6 type 155.
//!
//! Place: under `icmpv6`. Left out: the secured variants' contents, routing decisions.
//! Sources: RFC 6550 §6; RFC 9009 for DCO.

use std::net::Ipv6Addr;

use motet::wire::cursor::{Reader, Truncated};

use super::model::{Frame, Layer, Value, group, hex8};

/// ICMPv6 type of every RPL control message.
pub(super) const ICMPV6_TYPE: u8 = 155;

/// Explains the body of a control message, behind the ICMPv6 checksum.
pub(super) fn explain(frame: &mut Frame, code: u8, body: &[u8]) {
    let name = name_of(code);
    frame.say(format_args!("RPL {name}"));
    if code & SECURE != 0 {
        frame.push(Layer::new("rpl", name));
        return frame.undecoded("rpl", "secured RPL message");
    }
    let mut r = Reader::new(body);
    let base = match code {
        DIS => dis(&mut r),
        DIO => dio(&mut r),
        DAO => dao(&mut r),
        DAO_ACK => dao_ack(&mut r),
        _ => {
            frame.push(Layer::new("rpl", name));
            return frame.undecoded("rpl", format!("RPL code 0x{code:02x}"));
        }
    };
    let Ok(layer) = base else {
        let reason = format!("{name} truncated");
        frame.push(Layer::new("rpl", name));
        return frame.malformed("rpl", reason);
    };
    let (list, problem) = options(r);
    frame.push(Layer {
        title: name,
        ..layer.with("options", list)
    });
    if let Err(reason) = problem {
        frame.malformed("rpl", reason);
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
fn dis(r: &mut Reader<'_>) -> Result<Layer, Truncated> {
    let (flags, _reserved) = (r.u8()?, r.u8()?);
    Ok(Layer::new("rpl", "").hidden("flags", hex8(flags)))
}

/// DODAG information object (§6.3).
fn dio(r: &mut Reader<'_>) -> Result<Layer, Truncated> {
    let (instance, version, rank) = (r.u8()?, r.u8()?, r.u16()?);
    let mode = r.u8()?;
    let dtsn = r.u8()?;
    let _flags_and_reserved = r.u16()?;
    let dodag = Ipv6Addr::from(r.array::<16>()?);
    let mode_of_operation = match mode >> 3 & 7 {
        0 => "no downward routes",
        1 => "non-storing",
        2 => "storing",
        3 => "storing with multicast",
        _ => "unassigned",
    };
    Ok(Layer::new("rpl", "")
        .with("instance", instance)
        .with("version", version)
        .with("rank", rank)
        .with("grounded", mode & 0x80 != 0)
        .with("mode", mode_of_operation)
        .with("preference", mode & 7)
        .with("dtsn", dtsn)
        .with("dodag", dodag))
}

/// Destination advertisement object (§6.4).
fn dao(r: &mut Reader<'_>) -> Result<Layer, Truncated> {
    let (instance, flags, _reserved, sequence) = (r.u8()?, r.u8()?, r.u8()?, r.u8()?);
    let dodag = if flags & 0x40 != 0 {
        Some(Ipv6Addr::from(r.array::<16>()?))
    } else {
        None
    };
    Ok(Layer::new("rpl", "")
        .with("instance", instance)
        .with("sequence", sequence)
        .with("ack_requested", flags & 0x80 != 0)
        .with("dodag", dodag))
}

/// Acknowledgement of a DAO (§6.5).
fn dao_ack(r: &mut Reader<'_>) -> Result<Layer, Truncated> {
    let (instance, flags, sequence, status) = (r.u8()?, r.u8()?, r.u8()?, r.u8()?);
    let dodag = if flags & 0x80 != 0 {
        Some(Ipv6Addr::from(r.array::<16>()?))
    } else {
        None
    };
    let meaning = match status {
        0 => "accepted",
        1..=127 => "accepted, another parent suggested",
        _ => "rejected",
    };
    Ok(Layer::new("rpl", "")
        .with("instance", instance)
        .with("sequence", sequence)
        .with("status", status)
        .with("meaning", meaning)
        .with("dodag", dodag))
}

/// The options up to the first that runs beyond the message (§6.7).
fn options(mut r: Reader<'_>) -> (Vec<Value>, Result<(), String>) {
    let mut list = Vec::new();
    while let Ok(kind) = r.u8() {
        if kind == PAD1 {
            continue;
        }
        let body = r.u8().and_then(|len| r.slice(usize::from(len)));
        let Ok(body) = body else {
            return (list, Err(format!("option {kind} runs beyond the message")));
        };
        match option(kind, body) {
            Ok(Some(value)) => list.push(value),
            Ok(None) => {}
            Err(Truncated) => {
                return (
                    list,
                    Err(format!("option {kind} is too short for its type")),
                );
            }
        }
    }
    (list, Ok(()))
}

fn option(kind: u8, body: &[u8]) -> Result<Option<Value>, Truncated> {
    let mut r = Reader::new(body);
    Ok(Some(match kind {
        PADN => return Ok(None),
        3 => {
            let (len, flags, lifetime) = (r.u8()?, r.u8()?, r.u32()?);
            let prefix = prefix(r.rest(), len)?;
            let preference = flags >> 3 & 3;
            group([
                ("route", prefix),
                ("preference", preference.into()),
                ("lifetime_s", lifetime.into()),
            ])
        }
        4 => {
            let (_flags, doublings, min, redundancy) = (r.u8()?, r.u8()?, r.u8()?, r.u8()?);
            let (max_rank_increase, min_hop_rank_increase, ocp) = (r.u16()?, r.u16()?, r.u16()?);
            let (_reserved, default_lifetime, lifetime_unit) = (r.u8()?, r.u8()?, r.u16()?);
            group([
                ("dio_interval_min", min.into()),
                ("dio_interval_doublings", doublings.into()),
                ("redundancy", redundancy.into()),
                ("max_rank_increase", max_rank_increase.into()),
                ("min_hop_rank_increase", min_hop_rank_increase.into()),
                ("objective", ocp.into()),
                ("default_lifetime", default_lifetime.into()),
                ("lifetime_unit_s", lifetime_unit.into()),
            ])
        }
        5 => {
            let (_flags, len) = (r.u8()?, r.u8()?);
            group([("target", prefix(r.rest(), len)?)])
        }
        6 => {
            let (flags, control, sequence, lifetime) = (r.u8()?, r.u8()?, r.u8()?, r.u8()?);
            // Non-storing mode names the parent, storing mode does not.
            let parent = r.array::<16>().ok().map(Ipv6Addr::from);
            group([
                ("transit_sequence", sequence.into()),
                ("external", (flags & 0x80 != 0).into()),
                ("path_control", hex8(control)),
                ("lifetime_units", lifetime.into()),
                ("parent", parent.into()),
            ])
        }
        8 => {
            let (len, flags, valid, preferred) = (r.u8()?, r.u8()?, r.u32()?, r.u32()?);
            let _reserved = r.u32()?;
            group([
                ("prefix", prefix(r.rest(), len)?),
                ("on_link", (flags & 0x80 != 0).into()),
                ("autonomous", (flags & 0x40 != 0).into()),
                ("router_address", (flags & 0x20 != 0).into()),
                ("valid_s", valid.into()),
                ("preferred_s", preferred.into()),
            ])
        }
        _ => group([("option", kind.into()), ("data", body.into())]),
    }))
}

/// A prefix of `len` bits of which only the significant bytes need be there.
fn prefix(bytes: &[u8], len: u8) -> Result<Value, Truncated> {
    if len > 128 {
        return Err(Truncated);
    }
    let significant = bytes.get(..usize::from(len.div_ceil(8))).ok_or(Truncated)?;
    let mut address = [0; 16];
    for (to, from) in address.iter_mut().zip(significant) {
        *to = *from;
    }
    Ok(Value::Text(format!("{}/{len}", Ipv6Addr::from(address))))
}

const DIS: u8 = 0;
const DIO: u8 = 1;
const DAO: u8 = 2;
const DAO_ACK: u8 = 3;
/// Set in the code of secured messages.
const SECURE: u8 = 0x80;
const PAD1: u8 = 0;
const PADN: u8 = 1;
