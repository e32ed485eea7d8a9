//! Operational datasets, and other TLVs of network management, in words. Keys are not shown.
//!
//! Source: Thread 1.1 §8.10.1.

use std::net::Ipv6Addr;

use motet::thread::Tlvs;
use motet::wire::cursor::{Reader, Truncated};

use super::values::typed;
use crate::model::{Value, group, hex, hex16};

/// The TLVs of a dataset.
///
/// # Errors
/// [`Truncated`]: one is longer than the bytes that are left.
pub(super) fn values(bytes: &[u8]) -> Result<Vec<Value>, Truncated> {
    let tlvs = Tlvs::parse(bytes)?;
    Ok(tlvs
        .map(|(kind, bytes)| {
            let fields = known(kind, bytes).unwrap_or_else(|Truncated| other(kind, bytes));
            typed(fields, kind)
        })
        .collect())
}

/// The mesh-local prefix of a dataset.
pub(super) fn mesh_local_prefix(bytes: &[u8]) -> Option<Ipv6Addr> {
    let prefix: [u8; 8] = Tlvs::parse(bytes).ok()?.array(MESH_LOCAL_PREFIX)?;
    Some(prefix_addr(prefix))
}

/// The keys in a dataset, which are not to be shown.
pub(super) fn secrets(bytes: &[u8]) -> Vec<Vec<u8>> {
    let tlvs = Tlvs::parse(bytes).into_iter().flatten();
    tlvs.filter(|(kind, value)| is_secret(*kind) && value.len() == KEY_LEN)
        .map(|(_, value)| value.to_vec())
        .collect()
}

/// A time in seconds since 1970, in which fractions and the flag of an authoritative clock follow.
pub(super) fn timestamp(name: &'static str, r: &mut Reader<'_>) -> Result<Value, Truncated> {
    let value = u64::from_be_bytes(r.array()?);
    let ticks = value >> 1 & 0x7fff;
    Ok(group([
        (name, (value >> 16).into()),
        ("ticks", Some(ticks).filter(|ticks| *ticks != 0).into()),
        ("authoritative", (value & 1 != 0).into()),
    ]))
}

fn known(kind: u8, bytes: &[u8]) -> Result<Value, Truncated> {
    let r = &mut Reader::new(bytes);
    let fields = match kind {
        0 => group([("channel", channel(r)?.into())]),
        1 => group([("pan", hex16(r.u16()?))]),
        2 => group([("extended_pan", hex(&r.array::<8>()?, "").into())]),
        3 => group([("network_name", printable(r).into())]),
        PSKC => group([("pskc", not_shown(r))]),
        NETWORK_KEY => group([("network_key", not_shown(r))]),
        MESH_LOCAL_PREFIX => {
            let prefix = prefix_addr(r.array()?);
            group([("mesh_local_prefix", format!("{prefix}/64").into())])
        }
        8 => group([("steering_data", rest(r).into())]),
        9 => group([("border_agent", hex16(r.u16()?))]),
        10 => group([("commissioner_id", printable(r).into())]),
        11 => group([("commissioner_session", hex16(r.u16()?))]),
        12 => group([
            ("key_rotation_hours", r.u16()?.into()),
            ("policy_flags", rest(r).into()),
        ]),
        14 => timestamp("active_timestamp_s", r)?,
        15 => group([("commissioner_udp_port", r.u16()?.into())]),
        18 => group([("joiner_udp_port", r.u16()?.into())]),
        51 => timestamp("pending_timestamp_s", r)?,
        52 => group([("delay_ms", r.u32()?.into())]),
        53 => {
            let mut masks = Vec::new();
            while !r.is_empty() {
                let (page, len) = (r.u8()?, r.u8()?);
                masks.push(group([
                    ("channel_mask", hex(r.slice(len.into())?, "").into()),
                    ("page", page.into()),
                ]));
            }
            group([("channel_masks", masks.into())])
        }
        74 => group([("wakeup_channel", channel(r)?.into())]),
        128 => group([
            ("discovery_request_version", (r.u8()? >> 4).into()),
            ("flags", rest(r).into()),
        ]),
        129 => group([
            ("discovery_response_version", (r.u8()? >> 4).into()),
            ("flags", rest(r).into()),
        ]),
        _ => return Err(Truncated),
    };
    match r.is_empty() {
        true => Ok(fields),
        false => Err(Truncated),
    }
}

/// A TLV that is not taken apart; a secret of a wrong length is one too.
fn other(kind: u8, bytes: &[u8]) -> Value {
    let value = match is_secret(kind) {
        true => not_shown(&mut Reader::new(bytes)),
        false => hex(bytes, "").into(),
    };
    group([("tlv", kind.into()), ("bytes", value)])
}

/// A channel, behind its page.
fn channel(r: &mut Reader<'_>) -> Result<String, Truncated> {
    match r.u8()? {
        0 => Ok(r.u16()?.to_string()),
        page => Ok(format!("{} of page {page}", r.u16()?)),
    }
}

fn prefix_addr([a, b, c, d, e, f, g, h]: [u8; 8]) -> Ipv6Addr {
    Ipv6Addr::from([a, b, c, d, e, f, g, h, 0, 0, 0, 0, 0, 0, 0, 0])
}

fn not_shown(r: &mut Reader<'_>) -> Value {
    let len = r.len();
    let _ = r.slice(len);
    format!("{len} B, not shown").into()
}

fn rest(r: &mut Reader<'_>) -> String {
    hex(r.slice(r.len()).unwrap_or_default(), "")
}

/// Text from the network, without what a terminal could take for a command.
fn printable(r: &mut Reader<'_>) -> String {
    String::from_utf8_lossy(r.slice(r.len()).unwrap_or_default())
        .chars()
        .map(|letter| if letter.is_control() { '·' } else { letter })
        .collect()
}

const fn is_secret(kind: u8) -> bool {
    matches!(kind, PSKC | NETWORK_KEY)
}

const PSKC: u8 = 4;
const NETWORK_KEY: u8 = 5;
const MESH_LOCAL_PREFIX: u8 = 7;
/// Bytes of either key.
const KEY_LEN: usize = 16;
