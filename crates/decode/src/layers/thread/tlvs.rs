//! The TLVs of MLE in words.
//!
//! Each is a group of fields, the first of which is named by the TLV; programs find its type in the
//! last one. A value of a length that its type does not have is shown as bytes.
//! Source: Thread 1.1 §4.5; 80 to 90 as in OpenThread.

use std::net::Ipv6Addr;

use motet::thread::mle::tlv_type;
use motet::wire::cursor::{Reader, Truncated};

use super::values::{content_of, typed};
use super::{dataset, network_data};
use crate::model::{Audience, Field, Value, group, hex, hex8, hex16};

/// A TLV.
pub(super) fn value(kind: u8, bytes: &[u8]) -> Value {
    let fields = known(kind, bytes).unwrap_or_else(|Truncated| other(kind, bytes));
    typed(fields, kind)
}

/// A TLV that is not taken apart.
fn other(kind: u8, bytes: &[u8]) -> Value {
    let name = match name(kind) {
        Some(name) => Value::from(name),
        None => kind.into(),
    };
    group([("tlv", name), ("bytes", hex(bytes, "").into())])
}

fn known(kind: u8, bytes: &[u8]) -> Result<Value, Truncated> {
    let r = &mut Reader::new(bytes);
    let fields = match kind {
        tlv_type::SOURCE_ADDRESS => group([("source_address", hex16(r.u16()?))]),
        tlv_type::MODE => mode(r.u8()?),
        tlv_type::TIMEOUT => group([("timeout_s", r.u32()?.into())]),
        tlv_type::CHALLENGE => group([("challenge", all(r))]),
        tlv_type::RESPONSE => group([("response", all(r))]),
        tlv_type::LINK_FRAME_COUNTER => group([("link_frame_counter", r.u32()?.into())]),
        tlv_type::MLE_FRAME_COUNTER => group([("mle_frame_counter", r.u32()?.into())]),
        tlv_type::ROUTE64 => route(r)?,
        tlv_type::ADDRESS16 => group([("address16", hex16(r.u16()?))]),
        tlv_type::LEADER_DATA => leader_data(r)?,
        tlv_type::NETWORK_DATA => {
            let content = network_data::values(all_of(r))?;
            content_of("network_data_bytes", bytes, content)
        }
        tlv_type::TLV_REQUEST => request(all_of(r)),
        tlv_type::SCAN_MASK => scan_mask(r.u8()?),
        tlv_type::CONNECTIVITY => connectivity(r)?,
        tlv_type::LINK_MARGIN => group([("link_margin_db", r.u8()?.into())]),
        tlv_type::STATUS => status(r.u8()?),
        tlv_type::VERSION => group([("version", r.u16()?.into())]),
        tlv_type::ADDRESS_REGISTRATION => registrations(r)?,
        CHANNEL => group([("page", r.u8()?.into()), ("channel", r.u16()?.into())]),
        PAN => group([("pan", hex16(r.u16()?))]),
        tlv_type::ACTIVE_TIMESTAMP => dataset::timestamp("active_timestamp_s", r)?,
        PENDING_TIMESTAMP => dataset::timestamp("pending_timestamp_s", r)?,
        tlv_type::ACTIVE_DATASET => {
            content_of("active_dataset_bytes", bytes, dataset::values(all_of(r))?)
        }
        PENDING_DATASET => content_of("pending_dataset_bytes", bytes, dataset::values(all_of(r))?),
        DISCOVERY => content_of("thread_discovery_bytes", bytes, dataset::values(all_of(r))?),
        tlv_type::SUPERVISION_INTERVAL => group([("supervision_interval_s", r.u16()?.into())]),
        CSL_CHANNEL => group([
            ("csl_page", r.u8()?.into()),
            ("csl_channel", r.u16()?.into()),
        ]),
        CSL_TIMEOUT => group([("csl_timeout_s", r.u32()?.into())]),
        tlv_type::CSL_ACCURACY => group([
            ("csl_accuracy_ppm", r.u8()?.into()),
            // In units of 10 µs.
            ("uncertainty_us", (u16::from(r.u8()?) * 10).into()),
        ]),
        _ => return Err(Truncated),
    };
    match r.is_empty() {
        true => Ok(fields),
        false => Err(Truncated),
    }
}

fn mode(mode: u8) -> Value {
    group([
        ("mode", hex8(mode)),
        ("receiver_always_on", (mode & 8 != 0).into()),
        ("secure_data_requests", (mode & 4 != 0).into()),
        ("full_thread_device", (mode & 2 != 0).into()),
        ("full_network_data", (mode & 1 != 0).into()),
    ])
}

/// What the receiver is asked for.
fn request(wanted: &[u8]) -> Value {
    let names = wanted.iter().map(|kind| match name(*kind) {
        Some(name) => Value::from(name),
        None => (*kind).into(),
    });
    let types = wanted.iter().map(|kind| Value::from(*kind));
    Value::Group(vec![
        Field {
            key: "tlv_request",
            value: names.collect::<Vec<_>>().into(),
            audience: Audience::All,
        },
        Field::for_programs("types", types.collect::<Vec<_>>()),
    ])
}

fn status(status: u8) -> Value {
    let status = match status {
        1 => Value::from("error"),
        status => status.into(),
    };
    group([("status", status)])
}

fn scan_mask(mask: u8) -> Value {
    group([
        ("scan_mask", hex8(mask)),
        ("routers", (mask & 0x80 != 0).into()),
        ("end_devices", (mask & 0x40 != 0).into()),
    ])
}

/// The routers that there are, and how well the sender hears each.
fn route(r: &mut Reader<'_>) -> Result<Value, Truncated> {
    let sequence = r.u8()?;
    let mask = u64::from_be_bytes(r.array()?);
    let assigned = (0..64_u8).filter(|id| mask >> (63 - id) & 1 != 0);
    let mut routers = Vec::new();
    for id in assigned {
        let entry = r.u8()?;
        routers.push(group([
            ("router", id.into()),
            ("link_out", (entry >> 6).into()),
            ("link_in", (entry >> 4 & 3).into()),
            ("cost", (entry & 0x0f).into()),
        ]));
    }
    Ok(group([
        ("route_id_sequence", sequence.into()),
        ("routers", routers.into()),
    ]))
}

fn leader_data(r: &mut Reader<'_>) -> Result<Value, Truncated> {
    Ok(group([
        ("partition", Value::Hex(r.u32()?.into(), 8)),
        ("weighting", r.u8()?.into()),
        ("data_version", r.u8()?.into()),
        ("stable_data_version", r.u8()?.into()),
        ("leader_router", r.u8()?.into()),
    ]))
}

/// How well a router is connected; the last two fields are for children that sleep.
fn connectivity(r: &mut Reader<'_>) -> Result<Value, Truncated> {
    // Two bits with a sign, at the top.
    let priority = r.u8()?.cast_signed() >> 6;
    let mut fields = vec![
        ("parent_priority", i64::from(priority).into()),
        ("neighbors_of_quality_3", r.u8()?.into()),
        ("neighbors_of_quality_2", r.u8()?.into()),
        ("neighbors_of_quality_1", r.u8()?.into()),
        ("leader_cost", r.u8()?.into()),
        ("id_sequence", r.u8()?.into()),
        ("active_routers", r.u8()?.into()),
    ];
    if !r.is_empty() {
        fields.push(("buffer_bytes", r.u16()?.into()));
        fields.push(("datagrams", r.u8()?.into()));
    }
    Ok(group(fields))
}

/// The addresses of a child.
fn registrations(r: &mut Reader<'_>) -> Result<Value, Truncated> {
    let mut entries = Vec::new();
    while !r.is_empty() {
        entries.push(registration(r)?);
    }
    Ok(group([
        ("address_registration", entries.len().into()),
        ("entries", entries.into()),
    ]))
}

/// An address of a child: the interface identifier behind a context's prefix, or all of it.
fn registration(r: &mut Reader<'_>) -> Result<Value, Truncated> {
    let control = r.u8()?;
    if control & 0x80 != 0 {
        return Ok(group([
            ("iid", hex(r.slice(8)?, "").into()),
            ("context", (control & 0x0f).into()),
        ]));
    }
    Ok(group([(
        "address",
        Ipv6Addr::from(r.array::<16>()?).into(),
    )]))
}

/// All bytes that are left, in hexadecimal.
fn all(r: &mut Reader<'_>) -> Value {
    hex(all_of(r), "").into()
}

fn all_of<'a>(r: &mut Reader<'a>) -> &'a [u8] {
    r.slice(r.len()).unwrap_or_default()
}

/// The name of a type, as a request for it has it too.
fn name(kind: u8) -> Option<&'static str> {
    Some(match kind {
        tlv_type::SOURCE_ADDRESS => "source address",
        tlv_type::MODE => "mode",
        tlv_type::TIMEOUT => "timeout",
        tlv_type::CHALLENGE => "challenge",
        tlv_type::RESPONSE => "response",
        tlv_type::LINK_FRAME_COUNTER => "link frame counter",
        6 => "link quality",
        7 => "network parameter",
        tlv_type::MLE_FRAME_COUNTER => "MLE frame counter",
        tlv_type::ROUTE64 => "route",
        tlv_type::ADDRESS16 => "address16",
        tlv_type::LEADER_DATA => "leader data",
        tlv_type::NETWORK_DATA => "network data",
        tlv_type::TLV_REQUEST => "TLV request",
        tlv_type::SCAN_MASK => "scan mask",
        tlv_type::CONNECTIVITY => "connectivity",
        tlv_type::LINK_MARGIN => "link margin",
        tlv_type::STATUS => "status",
        tlv_type::VERSION => "version",
        tlv_type::ADDRESS_REGISTRATION => "address registration",
        CHANNEL => "channel",
        PAN => "PAN",
        tlv_type::ACTIVE_TIMESTAMP => "active timestamp",
        PENDING_TIMESTAMP => "pending timestamp",
        tlv_type::ACTIVE_DATASET => "active dataset",
        PENDING_DATASET => "pending dataset",
        DISCOVERY => "Thread discovery",
        tlv_type::SUPERVISION_INTERVAL => "supervision interval",
        CSL_CHANNEL => "CSL channel",
        CSL_TIMEOUT => "CSL timeout",
        tlv_type::CSL_ACCURACY => "CSL accuracy",
        87 => "link metrics query",
        88 => "link metrics management",
        89 => "link metrics report",
        90 => "link probe",
        252 => "time request",
        253 => "time parameter",
        _ => return None,
    })
}

const CHANNEL: u8 = 20;
const PAN: u8 = 21;
const PENDING_TIMESTAMP: u8 = 23;
pub(super) const PENDING_DATASET: u8 = 25;
const DISCOVERY: u8 = 26;
const CSL_CHANNEL: u8 = 80;
const CSL_TIMEOUT: u8 = 85;
