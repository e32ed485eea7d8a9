//! Network data in words: what the leader of a Thread network tells all its nodes.
//!
//! Prefixes are read by the stack's own codec; services and commissioning data, of which a child
//! has no need, are read here.
//! Source: Thread 1.1 §5.18; the service of DNS and SRP as in OpenThread (`DnsSrpUnicast`).

use std::net::Ipv6Addr;

use motet::thread::Tlvs;
use motet::thread::network_data::{BorderRouter, NetworkData, Prefix, flag};
use motet::wire::cursor::{Reader, Truncated};

use super::dataset;
use super::values::{content_of, typed};
use crate::model::{Value, group, hex, hex16};

/// The TLVs of network data.
///
/// # Errors
/// [`Truncated`]: one is longer than the bytes that are left.
pub(super) fn values(bytes: &[u8]) -> Result<Vec<Value>, Truncated> {
    // Of one TLV at a time, so that prefixes stay in their place.
    let mut prefixes = NetworkData::parse(bytes)?;
    let mut values = Vec::new();
    for (kind, value) in Tlvs::parse(bytes)? {
        let fields = match kind >> 1 {
            PREFIX => prefix_value(&prefixes.next().ok_or(Truncated)?),
            COMMISSIONING => content_of("commissioning_bytes", value, dataset::values(value)?),
            SERVICE => service_value(&Service::read(value)?),
            other => group([("tlv", other.into()), ("bytes", hex(value, "").into())]),
        };
        values.push(typed(with_stable(fields, kind), kind >> 1));
    }
    Ok(values)
}

/// The mesh-local prefix, where a server of DNS or SRP gives its address: that is one of the mesh.
pub(super) fn mesh_local_prefix(bytes: &[u8]) -> Option<Ipv6Addr> {
    let tlvs = Tlvs::parse(bytes).ok()?;
    let services = tlvs.filter(|(kind, _)| kind >> 1 == SERVICE);
    let mut services = services.filter_map(|(_, value)| Service::read(value).ok());
    services.find_map(|service| {
        let is_unicast = service.enterprise.is_none() && service.data == [DNS_SRP_UNICAST];
        let mut servers = service.servers.filter(|_| is_unicast);
        servers.find_map(|(kind, value)| match (kind >> 1, value) {
            (SERVER, [_, _, addr_and_port @ ..]) if addr_and_port.len() == 18 => {
                let addr: [u8; 16] = *addr_and_port.first_chunk()?;
                Some(prefix_of(Ipv6Addr::from(addr)))
            }
            _ => None,
        })
    })
}

/// The first 64 bits of an address, as a prefix.
fn prefix_of(addr: Ipv6Addr) -> Ipv6Addr {
    Ipv6Addr::from_bits(addr.to_bits() >> 64 << 64)
}

fn prefix_value(prefix: &Prefix<'_>) -> Value {
    let routers = prefix.border_routers().map(|router| {
        group([
            ("border_router", hex16(router.rloc16)),
            ("preference", preference(router).into()),
            ("slaac", router.is(flag::SLAAC).into()),
            ("preferred", router.is(flag::PREFERRED).into()),
            ("dhcp", router.is(DHCP).into()),
            ("configures", router.is(CONFIGURES).into()),
            ("default_route", router.is(flag::DEFAULT_ROUTE).into()),
            ("on_mesh", router.is(flag::ON_MESH).into()),
            ("dns", router.is(flag::DNS).into()),
        ])
    });
    let routes = prefix.external_routes().map(|router| {
        group([
            ("route_by", hex16(router.rloc16)),
            ("preference", preference(router).into()),
        ])
    });
    let details: Vec<Value> = routers.chain(routes).collect();
    group([
        ("prefix", format!("{}/{}", prefix.addr, prefix.bits).into()),
        ("context", prefix.context().map(|context| context.id).into()),
        ("by", details.into()),
    ])
}

/// Two bits with a sign, at the top of the flags (RFC 4191 §2.1).
const fn preference(router: BorderRouter) -> &'static str {
    match router.flags >> 14 {
        0b01 => "high",
        0b00 => "medium",
        0b11 => "low",
        _ => "reserved",
    }
}

/// A service that servers in the network offer.
struct Service<'a> {
    id: u8,
    /// Whose service it is; `None`: Thread's own.
    enterprise: Option<u32>,
    data: &'a [u8],
    servers: Tlvs<'a>,
}

impl<'a> Service<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, Truncated> {
        let mut r = Reader::new(bytes);
        let first = r.u8()?;
        let enterprise = match first & 0x80 {
            0 => Some(r.u32()?),
            _ => None,
        };
        let len = r.u8()?;
        Ok(Self {
            id: first & 0x0f,
            enterprise,
            data: r.slice(len.into())?,
            servers: Tlvs::parse(r.rest())?,
        })
    }
}

fn service_value(service: &Service<'_>) -> Value {
    let servers = service
        .servers
        .map(|(kind, value)| match (kind >> 1, value) {
            (SERVER, [high, low, data @ ..]) => group([
                ("server", hex16(u16::from_be_bytes([*high, *low]))),
                ("server_data", hex(data, "").into()),
            ]),
            (other, value) => group([("tlv", other.into()), ("bytes", hex(value, "").into())]),
        });
    group([
        ("service", service.id.into()),
        ("enterprise", service.enterprise.into()),
        ("service_data", hex(service.data, "").into()),
        ("servers", servers.collect::<Vec<_>>().into()),
    ])
}

/// Says of a TLV that it stays when its source leaves for a short time.
fn with_stable(fields: Value, kind: u8) -> Value {
    let Value::Group(mut fields) = fields else {
        return fields;
    };
    let stable = group([("stable", (kind & 1 != 0).into())]);
    if let Value::Group(stable) = stable {
        fields.extend(stable);
    }
    Value::Group(fields)
}

/// Types of network data.
const PREFIX: u8 = 1;
const COMMISSIONING: u8 = 4;
const SERVICE: u8 = 5;
const SERVER: u8 = 6;

/// Flags of a border router that a child has no need of.
const DHCP: u16 = 0x0800;
const CONFIGURES: u16 = 0x0400;

/// Service data of a DNS and SRP server that gives its own address.
const DNS_SRP_UNICAST: u8 = 0x5d;
