//! RPL control messages and their options: ICMPv6 type 155.
//!
//! ```text
//! +---------------+---------------+-------------------------------+
//! |  Type = 155   |     Code      |           Checksum            |
//! +---------------+---------------+-------------------------------+
//! |             base of the message, then its options:            |
//! +---------------+---------------+-------------------------------+
//! |     Type      |    Length     |         Length bytes          |
//! ```
//!
//! Place: read from and written as [`icmpv6::Message::Other`](super::icmpv6::Message::Other) by
//! `rpl`. A message with a known option that is too short or too long for its type is refused as
//! a whole.
//! Left out: secured messages, P2P-RPL, storing-mode invalidation (DCO).
//! Sources: RFC 6550 §6; RFC 6551 for metrics; RFC 9008 §4.1.3 and RFC 9035 §4 for flags of the
//! configuration; RFC 9010 §6.1 for what may follow a target.

use core::net::Ipv6Addr;

use super::cursor::{Full, Reader, Truncated, Writer, copy};
use super::ndp::PrefixInformation;

/// The ICMPv6 type of every control message.
pub const ICMPV6_TYPE: u8 = 155;

/// A control message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// Code 0.
    Dis(Dis<'a>),
    /// Code 1.
    Dio(Dio<'a>),
    /// Code 2.
    Dao(Dao<'a>),
    /// Code 3.
    DaoAck(DaoAck<'a>),
}

/// DODAG information solicitation (RFC 6550 §6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dis<'a> {
    /// Solicited information.
    pub options: RplOptions<'a>,
}

/// DODAG information object (RFC 6550 §6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dio<'a> {
    /// `RPLInstanceID`.
    pub instance: u8,
    /// Version of the DODAG, a lollipop counter (§7.2) of the root.
    pub version: u8,
    /// Rank of the sender.
    pub rank: u16,
    /// The DODAG reaches what its application wants reached.
    pub grounded: bool,
    /// Mode of operation, 0 to 7: see [`mod@mode`].
    pub mode: u8,
    /// Preference of the root among roots, 0 to 7.
    pub preference: u8,
    /// The sender's counter that asks for DAOs.
    pub dtsn: u8,
    /// The DODAG: an address of its root.
    pub dodag: Ipv6Addr,
    /// Configuration, metrics, prefixes.
    pub options: RplOptions<'a>,
}

/// Destination advertisement object (RFC 6550 §6.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dao<'a> {
    /// `RPLInstanceID`.
    pub instance: u8,
    /// The sender wants a DAO-ACK.
    pub ack_requested: bool,
    /// `DAOSequence`, which the DAO-ACK repeats.
    pub sequence: u8,
    /// The DODAG, where the instance alone does not name it.
    pub dodag: Option<Ipv6Addr>,
    /// Targets, and the transit information of those before it.
    pub options: RplOptions<'a>,
}

/// Answer to a DAO (RFC 6550 §6.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DaoAck<'a> {
    /// `RPLInstanceID`.
    pub instance: u8,
    /// `DAOSequence` of the DAO.
    pub sequence: u8,
    /// 0: accepted; up to 127: accepted, yet another parent is better; from 128 on: rejected.
    pub status: u8,
    /// The DODAG, where the instance alone does not name it.
    pub dodag: Option<Ipv6Addr>,
    /// None is defined.
    pub options: RplOptions<'a>,
}

/// Modes of operation ([`Dio::mode`]).
pub mod mode {
    /// No downward routes.
    pub const UPWARD_ONLY: u8 = 0;
    /// The root routes downwards.
    pub const NON_STORING: u8 = 1;
    /// Every router routes downwards.
    pub const STORING: u8 = 2;
    /// As `STORING`, with multicast.
    pub const STORING_WITH_MULTICAST: u8 = 3;
}

mod code {
    pub(super) const DIS: u8 = 0;
    pub(super) const DIO: u8 = 1;
    pub(super) const DAO: u8 = 2;
    pub(super) const DAO_ACK: u8 = 3;
    pub(super) const SECURE: u8 = 0x80;
}

const GROUNDED: u8 = 0x80;
const ACK_REQUESTED: u8 = 0x80;
const DAO_HAS_DODAG: u8 = 0x40;
const DAO_ACK_HAS_DODAG: u8 = 0x80;

/// Why bytes are not a control message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// The bytes end within the base.
    Truncated,
    /// A secured message.
    Secure,
    /// A code that this module does not read.
    Code,
    /// An option runs beyond the message.
    OptionLength,
    /// An option is too short or too long for its type, or gives a prefix of more than 128 bits.
    OptionShape,
}

impl ParseError {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Truncated => "RPL message truncated",
            Self::Secure => "secured RPL message",
            Self::Code => "RPL message of a code that is not supported",
            Self::OptionLength => "RPL option runs beyond the message",
            Self::OptionShape => "RPL option without the shape of its type",
        }
    }
}

speaks!(ParseError);

impl From<Truncated> for ParseError {
    fn from(_: Truncated) -> Self {
        Self::Truncated
    }
}

impl<'a> Message<'a> {
    /// Reads the message with this ICMPv6 code, from behind the ICMPv6 checksum on.
    ///
    /// # Errors
    /// [`ParseError`]: the whole message is to be dropped.
    pub fn parse(code: u8, body: &'a [u8]) -> Result<Self, ParseError> {
        let mut r = Reader::new(body);
        Ok(match code {
            code::DIS => {
                let _flags_and_reserved = r.u16()?;
                Self::Dis(Dis {
                    options: RplOptions::parse(r.rest())?,
                })
            }
            code::DIO => Self::Dio(Dio::parse(r)?),
            code::DAO => Self::Dao(Dao::parse(r)?),
            code::DAO_ACK => Self::DaoAck(DaoAck::parse(r)?),
            code if code & code::SECURE != 0 => return Err(ParseError::Secure),
            _ => return Err(ParseError::Code),
        })
    }

    /// Appends the message, from its ICMPv6 type on, with a zero checksum, which
    /// [`icmpv6::fill_checksum`](super::icmpv6::fill_checksum) completes. More options may
    /// follow.
    ///
    /// # Errors
    /// [`Full`] when it does not fit.
    pub fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let (code, options) = match self {
            Self::Dis(dis) => (code::DIS, dis.options),
            Self::Dio(dio) => (code::DIO, dio.options),
            Self::Dao(dao) => (code::DAO, dao.options),
            Self::DaoAck(ack) => (code::DAO_ACK, ack.options),
        };
        w.put(&[ICMPV6_TYPE, code, 0, 0])?;
        match self {
            Self::Dis(_) => w.put(&[0, 0]),
            Self::Dio(dio) => dio.emit(w),
            Self::Dao(dao) => dao.emit(w),
            Self::DaoAck(ack) => ack.emit(w),
        }?;
        w.put(options.as_bytes())
    }
}

impl<'a> Dio<'a> {
    fn parse(mut r: Reader<'a>) -> Result<Self, ParseError> {
        let [instance, version] = r.array()?;
        let rank = r.u16()?;
        let [flags, dtsn, _, _] = r.array()?;
        Ok(Self {
            instance,
            version,
            rank,
            grounded: flags & GROUNDED != 0,
            mode: flags >> 3 & 7,
            preference: flags & 7,
            dtsn,
            dodag: Ipv6Addr::from(r.array::<16>()?),
            options: RplOptions::parse(r.rest())?,
        })
    }

    fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let grounded = if self.grounded { GROUNDED } else { 0 };
        let flags = grounded | (self.mode & 7) << 3 | self.preference & 7;
        w.put(&[self.instance, self.version])?;
        w.u16(self.rank)?;
        w.put(&[flags, self.dtsn, 0, 0])?;
        w.put(&self.dodag.octets())
    }
}

impl<'a> Dao<'a> {
    fn parse(mut r: Reader<'a>) -> Result<Self, ParseError> {
        let [instance, flags, _, sequence] = r.array()?;
        Ok(Self {
            instance,
            ack_requested: flags & ACK_REQUESTED != 0,
            sequence,
            dodag: optional_addr(&mut r, flags & DAO_HAS_DODAG != 0)?,
            options: RplOptions::parse(r.rest())?,
        })
    }

    fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let ack = if self.ack_requested { ACK_REQUESTED } else { 0 };
        let dodag = self.dodag.map_or(0, |_| DAO_HAS_DODAG);
        w.put(&[self.instance, ack | dodag, 0, self.sequence])?;
        emit_optional_addr(w, self.dodag)
    }
}

impl<'a> DaoAck<'a> {
    fn parse(mut r: Reader<'a>) -> Result<Self, ParseError> {
        let [instance, flags, sequence, status] = r.array()?;
        Ok(Self {
            instance,
            sequence,
            status,
            dodag: optional_addr(&mut r, flags & DAO_ACK_HAS_DODAG != 0)?,
            options: RplOptions::parse(r.rest())?,
        })
    }

    fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let dodag = self.dodag.map_or(0, |_| DAO_ACK_HAS_DODAG);
        w.put(&[self.instance, dodag, self.sequence, self.status])?;
        emit_optional_addr(w, self.dodag)
    }
}

fn optional_addr(r: &mut Reader<'_>, is_there: bool) -> Result<Option<Ipv6Addr>, Truncated> {
    Ok(match is_there {
        true => Some(Ipv6Addr::from(r.array::<16>()?)),
        false => None,
    })
}

fn emit_optional_addr(w: &mut Writer<'_>, addr: Option<Ipv6Addr>) -> Result<(), Full> {
    addr.map_or(Ok(()), |addr| w.put(&addr.octets()))
}

/// A list of options, each of which has been checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RplOptions<'a>(&'a [u8]);

impl<'a> RplOptions<'a> {
    /// Checks all options in `bytes`.
    ///
    /// # Errors
    /// [`ParseError::OptionLength`] or [`ParseError::OptionShape`]: the whole message is to be
    /// dropped.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ParseError> {
        let mut r = Reader::new(bytes);
        while !r.is_empty() {
            split(&mut r)?;
        }
        Ok(Self(bytes))
    }

    /// The options as on the wire.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// The options in order, without padding.
    pub fn iter(&self) -> impl Iterator<Item = RplOption<'a>> + use<'a> {
        let mut r = Reader::new(self.0);
        core::iter::from_fn(move || {
            while !r.is_empty() {
                if let option @ Some(_) = split(&mut r).ok()? {
                    return option;
                }
            }
            None
        })
    }
}

/// The next option; `None`: padding.
fn split<'a>(r: &mut Reader<'a>) -> Result<Option<RplOption<'a>>, ParseError> {
    let kind = r.u8()?;
    if kind == kind::PAD1 {
        return Ok(None);
    }
    let len = r.u8().map_err(|_| ParseError::OptionLength)?;
    let body = r.slice(usize::from(len));
    let body = body.map_err(|_| ParseError::OptionLength)?;
    if kind == kind::PADN {
        return Ok(None);
    }
    let option = RplOption::parse(kind, body);
    Ok(Some(option.map_err(|_| ParseError::OptionShape)?))
}

/// One option of a control message (RFC 6550 §6.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RplOption<'a> {
    /// Type 2: DAG metric container.
    Metrics(Metrics<'a>),
    /// Type 3: route information.
    Route(RouteInformation),
    /// Type 4: DODAG configuration.
    Configuration(Configuration),
    /// Type 5: RPL target.
    Target(Target),
    /// Type 6: transit information.
    Transit(Transit),
    /// Type 7: solicited information.
    Solicited(Solicited),
    /// Type 8: prefix information, as in a router advertisement.
    Prefix(PrefixInformation),
    /// Type 9: descriptor of the target before it.
    Descriptor(u32),
    /// Anything else.
    Other {
        /// Option type.
        kind: u8,
        /// What follows the length field: up to 255 bytes.
        body: &'a [u8],
    },
}

/// Outside destinations that the sender reaches (RFC 6550 §6.7.5, RFC 4191 §2.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouteInformation {
    /// Leading bits of `prefix` that are valid, 0 to 128.
    pub prefix_len: u8,
    /// Preference, 2 bits: 1 high, 0 medium, 3 low, 2 reserved.
    pub preference: u8,
    /// Seconds; all ones: for ever.
    pub lifetime_s: u32,
    /// The prefix, with zeros behind.
    pub prefix: Ipv6Addr,
}

/// What the root decides for its DODAG, handed on unchanged (RFC 6550 §6.7.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Configuration {
    /// [`mod@configuration`], and more that is only handed on.
    pub flags: u8,
    /// `DIOIntervalDoublings`: the longest interval of DIOs is the shortest doubled so often.
    pub interval_doublings: u8,
    /// `DIOIntervalMin`: binary logarithm of the shortest interval of DIOs, milliseconds.
    pub interval_min: u8,
    /// `DIORedundancyConstant`; 0: never suppress.
    pub redundancy: u8,
    /// `MaxRankIncrease`; 0: no limit.
    pub max_rank_increase: u16,
    /// `MinHopRankIncrease`: the unit of whole ranks.
    pub min_hop_rank_increase: u16,
    /// Objective code point: 0 for OF0, 1 for MRHOF.
    pub objective: u16,
    /// Default lifetime of routes, in `lifetime_unit_s`; 255: for ever.
    pub default_lifetime: u8,
    /// Seconds.
    pub lifetime_unit_s: u16,
}

/// Flags of [`Configuration::flags`], defined for modes of operation 0 to 6.
pub mod configuration {
    /// T: routing artifacts are compressed as RFC 8138 says (RFC 9035 §4).
    pub const COMPRESSED: u8 = 0x20;
    /// The RPL option has type 0x23, not 0x63 (RFC 9008 §4.1.3).
    pub const RPI_0X23: u8 = 0x10;
    /// A: a node must authenticate itself before it may be a router (RFC 6550 §6.7.6).
    pub const AUTHENTICATED: u8 = 0x08;
    /// `PathControlSize`, less one: the bits of path control that are used (RFC 6550 §6.7.6).
    pub const PATH_CONTROL_SIZE: u8 = 0x07;
}

/// A destination that a DAO advertises (RFC 6550 §6.7.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// Leading bits of `prefix` that are valid, 0 to 128.
    pub prefix_len: u8,
    /// The prefix, with zeros behind.
    pub prefix: Ipv6Addr,
}

/// How the targets before it are reached (RFC 6550 §6.7.8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transit {
    /// E: the sender learnt the targets outside this RPL instance.
    pub external: bool,
    /// Which of several parents is preferred.
    pub path_control: u8,
    /// `PathSequence`, a lollipop counter (§7.2): the newest transit wins.
    pub sequence: u8,
    /// In units of the configuration's; 0: the route is gone; 255: for ever.
    pub lifetime: u8,
    /// The parent, in non-storing mode.
    pub parent: Option<Ipv6Addr>,
}

/// Which nodes a DIS asks to answer (RFC 6550 §6.7.9). A field that is `None` matches anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Solicited {
    /// `RPLInstanceID`.
    pub instance: Option<u8>,
    /// The DODAG.
    pub dodag: Option<Ipv6Addr>,
    /// Version of the DODAG.
    pub version: Option<u8>,
}

mod kind {
    pub(super) const PAD1: u8 = 0;
    pub(super) const PADN: u8 = 1;
    pub(super) const METRICS: u8 = 2;
    pub(super) const ROUTE: u8 = 3;
    pub(super) const CONFIGURATION: u8 = 4;
    pub(super) const TARGET: u8 = 5;
    pub(super) const TRANSIT: u8 = 6;
    pub(super) const SOLICITED: u8 = 7;
    pub(super) const PREFIX: u8 = 8;
    pub(super) const DESCRIPTOR: u8 = 9;
}

/// Bytes of prefix information behind type and length: as many as in neighbour discovery.
const PREFIX_LEN: u8 = 30;
/// `ROVRsz`: units of 8 bytes of a registration's owner behind a target (RFC 9010 §6.1).
const OWNER_UNITS: u8 = 0x0f;
const EXTERNAL: u8 = 0x80;
const VERSION_MATTERS: u8 = 0x80;
const INSTANCE_MATTERS: u8 = 0x40;
const DODAG_MATTERS: u8 = 0x20;

impl<'a> RplOption<'a> {
    /// `Truncated` also where bytes are left over.
    fn parse(kind: u8, body: &'a [u8]) -> Result<Self, Truncated> {
        let mut r = Reader::new(body);
        let option = match kind {
            kind::ROUTE => Self::Route(RouteInformation::parse(&mut r)?),
            kind::CONFIGURATION => Self::Configuration(Configuration::parse(&mut r)?),
            kind::TARGET => Self::Target(Target::parse(&mut r)?),
            kind::TRANSIT => Self::Transit(Transit::parse(&mut r)?),
            kind::SOLICITED => Self::Solicited(Solicited::parse(&mut r)?),
            kind::DESCRIPTOR => Self::Descriptor(r.u32()?),
            kind::METRICS => return Metrics::parse(body).map(Self::Metrics),
            kind::PREFIX => {
                let prefix = PrefixInformation::parse(body).map(Self::Prefix);
                return prefix.ok_or(Truncated);
            }
            _ => return Ok(Self::Other { kind, body }),
        };
        r.is_empty().then_some(option).ok_or(Truncated)
    }

    /// Appends the option.
    ///
    /// # Errors
    /// [`Full`] when it does not fit, or a body has more than 255 bytes.
    pub fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        match *self {
            Self::Metrics(metrics) => emit_other(w, kind::METRICS, metrics.as_bytes()),
            Self::Route(route) => route.emit(w),
            Self::Configuration(configuration) => configuration.emit(w),
            Self::Target(target) => target.emit(w),
            Self::Transit(transit) => transit.emit(w),
            Self::Solicited(solicited) => solicited.emit(w),
            Self::Prefix(prefix) => prefix.emit(w, [kind::PREFIX, PREFIX_LEN]),
            Self::Descriptor(descriptor) => {
                w.put(&[kind::DESCRIPTOR, 4])?;
                w.u32(descriptor)
            }
            Self::Other { kind, body } => emit_other(w, kind, body),
        }
    }
}

fn emit_other(w: &mut Writer<'_>, kind: u8, body: &[u8]) -> Result<(), Full> {
    let len = u8::try_from(body.len()).map_err(|_| Full)?;
    w.put(&[kind, len])?;
    w.put(body)
}

/// A prefix of `len` bits in all but the last `behind` of the bytes: in as many as hold its bits
/// or in more, up to 16.
fn prefix(r: &mut Reader<'_>, len: u8, behind: usize) -> Result<Ipv6Addr, Truncated> {
    let field = r.slice(r.len().checked_sub(behind).ok_or(Truncated)?)?;
    let mut octets = [0; 16];
    let significant = octets.get_mut(..bytes_of(len)).ok_or(Truncated)?;
    if field.len() > 16 || copy(significant, field) < significant.len() {
        return Err(Truncated);
    }
    if let Some(last) = significant.last_mut() {
        *last &= 0xff << (len.wrapping_neg() & 7);
    }
    Ok(Ipv6Addr::from(octets))
}

fn emit_prefix(w: &mut Writer<'_>, prefix: Ipv6Addr, len: u8) -> Result<(), Full> {
    w.put(prefix.octets().get(..bytes_of(len)).ok_or(Full)?)
}

const fn bytes_of(bits: u8) -> usize {
    bits.div_ceil(8) as usize
}

impl RouteInformation {
    fn parse(r: &mut Reader<'_>) -> Result<Self, Truncated> {
        let [prefix_len, flags] = r.array()?;
        Ok(Self {
            prefix_len,
            preference: flags >> 3 & 3,
            lifetime_s: r.u32()?,
            prefix: prefix(r, prefix_len, 0)?,
        })
    }

    /// The prefix in whole units of eight bytes, as in a router advertisement (RFC 4191 §2.3):
    /// some readers know no other.
    fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let prefix_bytes = bytes_of(self.prefix_len).next_multiple_of(8);
        let flags = (self.preference & 3) << 3;
        let len = 6 + prefix_bytes as u8;
        w.put(&[kind::ROUTE, len, self.prefix_len, flags])?;
        w.u32(self.lifetime_s)?;
        w.put(self.prefix.octets().get(..prefix_bytes).ok_or(Full)?)
    }
}

impl Configuration {
    fn parse(r: &mut Reader<'_>) -> Result<Self, Truncated> {
        let [flags, interval_doublings, interval_min, redundancy] = r.array()?;
        let (max_rank_increase, min_hop_rank_increase) = (r.u16()?, r.u16()?);
        let objective = r.u16()?;
        let [_, default_lifetime] = r.array()?;
        Ok(Self {
            flags,
            interval_doublings,
            interval_min,
            redundancy,
            max_rank_increase,
            min_hop_rank_increase,
            objective,
            default_lifetime,
            lifetime_unit_s: r.u16()?,
        })
    }

    fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        w.put(&[kind::CONFIGURATION, 14, self.flags])?;
        w.put(&[self.interval_doublings, self.interval_min, self.redundancy])?;
        w.u16(self.max_rank_increase)?;
        w.u16(self.min_hop_rank_increase)?;
        w.u16(self.objective)?;
        w.put(&[0, self.default_lifetime])?;
        w.u16(self.lifetime_unit_s)
    }
}

impl Target {
    fn parse(r: &mut Reader<'_>) -> Result<Self, Truncated> {
        let [flags, prefix_len] = r.array()?;
        let owner_len = usize::from(flags & OWNER_UNITS) * 8;
        let prefix = prefix(r, prefix_len, owner_len)?;
        let _owner = r.slice(owner_len)?;
        Ok(Self { prefix_len, prefix })
    }

    fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let len = 2 + bytes_of(self.prefix_len) as u8;
        w.put(&[kind::TARGET, len, 0, self.prefix_len])?;
        emit_prefix(w, self.prefix, self.prefix_len)
    }
}

impl Transit {
    fn parse(r: &mut Reader<'_>) -> Result<Self, Truncated> {
        let [flags, path_control, sequence, lifetime] = r.array()?;
        let has_parent = !r.is_empty();
        Ok(Self {
            external: flags & EXTERNAL != 0,
            path_control,
            sequence,
            lifetime,
            parent: optional_addr(r, has_parent)?,
        })
    }

    fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let len = if self.parent.is_some() { 20 } else { 4 };
        let flags = if self.external { EXTERNAL } else { 0 };
        w.put(&[kind::TRANSIT, len, flags, self.path_control])?;
        w.put(&[self.sequence, self.lifetime])?;
        emit_optional_addr(w, self.parent)
    }
}

impl Solicited {
    fn parse(r: &mut Reader<'_>) -> Result<Self, Truncated> {
        let [instance, flags] = r.array()?;
        let dodag = Ipv6Addr::from(r.array::<16>()?);
        let version = r.u8()?;
        Ok(Self {
            instance: (flags & INSTANCE_MATTERS != 0).then_some(instance),
            dodag: (flags & DODAG_MATTERS != 0).then_some(dodag),
            version: (flags & VERSION_MATTERS != 0).then_some(version),
        })
    }

    fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let flags = self.instance.map_or(0, |_| INSTANCE_MATTERS)
            | self.dodag.map_or(0, |_| DODAG_MATTERS)
            | self.version.map_or(0, |_| VERSION_MATTERS);
        w.put(&[kind::SOLICITED, 19, self.instance.unwrap_or(0), flags])?;
        w.put(&self.dodag.unwrap_or(Ipv6Addr::UNSPECIFIED).octets())?;
        w.u8(self.version.unwrap_or(0))
    }
}

/// The objects of a DAG metric container, whose lengths have been checked (RFC 6551 §2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metrics<'a>(&'a [u8]);

/// One object of a DAG metric container.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metric<'a> {
    /// `Routing-MC-Type`, such as [`Metrics::ETX`].
    pub kind: u8,
    /// Five reserved bits, P, C, O, R, three bits A, four bits Prec.
    pub flags: u16,
    /// What the object says.
    pub body: &'a [u8],
}

impl<'a> Metrics<'a> {
    /// The type of the object that holds an ETX (RFC 6551 §4.3.2).
    pub const ETX: u8 = 7;

    /// Checks the lengths of all objects in `bytes`.
    ///
    /// # Errors
    /// [`Truncated`] when one runs beyond the bytes.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Truncated> {
        let mut r = Reader::new(bytes);
        while !r.is_empty() {
            Metric::parse(&mut r)?;
        }
        Ok(Self(bytes))
    }

    /// The one object that holds the ETX of a path as a metric: additive and not recorded, in
    /// units of 1/128 transmission.
    pub const fn etx_object(etx: u16) -> [u8; 6] {
        let [high, low] = etx.to_be_bytes();
        [Self::ETX, 0, 0, 2, high, low]
    }

    /// The objects as on the wire.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// The objects in order.
    pub fn iter(&self) -> impl Iterator<Item = Metric<'a>> + use<'a> {
        let mut r = Reader::new(self.0);
        core::iter::from_fn(move || Metric::parse(&mut r).ok())
    }

    /// The ETX of the path, in units of 1/128 transmission, where the container holds it as a
    /// metric: neither as a constraint nor recorded hop by hop.
    pub fn etx(&self) -> Option<u16> {
        let is_etx = |metric: &Metric<'_>| {
            metric.kind == Self::ETX && metric.flags & (CONSTRAINT | RECORDED) == 0
        };
        Reader::new(self.iter().find(is_etx)?.body).u16().ok()
    }
}

const CONSTRAINT: u16 = 1 << 9;
const RECORDED: u16 = 1 << 7;

impl<'a> Metric<'a> {
    fn parse(r: &mut Reader<'a>) -> Result<Self, Truncated> {
        let (kind, flags) = (r.u8()?, r.u16()?);
        let len = usize::from(r.u8()?);
        let body = r.slice(len)?;
        Ok(Self { kind, flags, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::vec::Vec;

    const ROOT: Ipv6Addr = Ipv6Addr::new(0xfd6d, 0x6f74, 0x6574, 1, 0, 0, 0, 1);

    const CONFIGURATION: Configuration = Configuration {
        flags: configuration::COMPRESSED | configuration::RPI_0X23,
        interval_doublings: 8,
        interval_min: 12,
        redundancy: 10,
        max_rank_increase: 1024,
        min_hop_rank_increase: 128,
        objective: 1,
        default_lifetime: 30,
        lifetime_unit_s: 60,
    };

    fn written(emit: impl Fn(&mut Writer<'_>) -> Result<(), Full>) -> Vec<u8> {
        let mut out = [0; 300];
        let mut w = Writer::new(&mut out);
        emit(&mut w).unwrap();
        let len = w.written();
        assert_eq!(emit(&mut Writer::new(&mut out[..len - 1])), Err(Full));
        out[..len].to_vec()
    }

    fn listed(bytes: &[u8]) -> Result<Vec<RplOption<'_>>, ParseError> {
        Ok(RplOptions::parse(bytes)?.iter().collect())
    }

    #[test]
    fn dio_byte_for_byte() {
        let options = written(|w| RplOption::Configuration(CONFIGURATION).emit(w));
        let dio = Dio {
            instance: 0x1e,
            version: 240,
            rank: 0x0180,
            grounded: true,
            mode: mode::NON_STORING,
            preference: 3,
            dtsn: 241,
            dodag: ROOT,
            options: RplOptions::parse(&options).unwrap(),
        };
        let bytes = written(|w| Message::Dio(dio).emit(w));
        assert_eq!(bytes[..4], [155, 1, 0, 0]);
        assert_eq!(bytes[4..12], [0x1e, 240, 1, 0x80, 0x8b, 241, 0, 0]);
        assert_eq!(bytes[12..28], ROOT.octets());
        assert_eq!(
            bytes[28..],
            [4, 14, 0x30, 8, 12, 10, 4, 0, 0, 128, 0, 1, 0, 30, 0, 60]
        );
        assert_eq!(Message::parse(1, &bytes[4..]), Ok(Message::Dio(dio)));
    }

    #[test]
    fn every_message_round_trips() {
        let options = written(|w| RplOption::Descriptor(0x0102_0304).emit(w));
        let options = RplOptions::parse(&options).unwrap();
        for (options, dodag) in [(options, None), (RplOptions::default(), Some(ROOT))] {
            let dao = Dao {
                instance: 1,
                ack_requested: dodag.is_some(),
                sequence: 3,
                dodag,
                options,
            };
            let ack = DaoAck {
                instance: 1,
                sequence: 3,
                status: 130,
                dodag,
                options,
            };
            for (code, message) in [
                (0, Message::Dis(Dis { options })),
                (2, Message::Dao(dao)),
                (3, Message::DaoAck(ack)),
            ] {
                let bytes = written(|w| message.emit(w));
                assert_eq!(bytes[..4], [155, code, 0, 0]);
                assert_eq!(Message::parse(code, &bytes[4..]), Ok(message));
            }
        }
    }

    #[test]
    fn every_option_byte_for_byte() {
        let information = PrefixInformation {
            prefix_len: 64,
            on_link: false,
            autonomous: true,
            router_address: true,
            valid_lifetime_s: 1,
            preferred_lifetime_s: 2,
            prefix: ROOT,
        };
        let prefix = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0);
        let etx = Metrics::etx_object(0x0100);
        let [root, all] = [ROOT.octets(), [0xff; 16]];
        let cases: [(RplOption<'_>, &[&[u8]]); 11] = [
            (
                RplOption::Metrics(Metrics::parse(&etx).unwrap()),
                &[&[2, 6, 7, 0, 0, 2, 1, 0]],
            ),
            (
                RplOption::Route(RouteInformation {
                    prefix_len: 32,
                    preference: 3,
                    lifetime_s: 0x01020304,
                    prefix,
                }),
                &[&[3, 14, 32, 0x18, 1, 2, 3, 4, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0]],
            ),
            (
                RplOption::Configuration(CONFIGURATION),
                &[&[4, 14, 0x30, 8, 12, 10, 4, 0, 0, 128, 0, 1, 0, 30, 0, 60]],
            ),
            (
                RplOption::Target(Target {
                    prefix_len: 128,
                    prefix: ROOT,
                }),
                &[&[5, 18, 0, 128], &root],
            ),
            (
                RplOption::Target(Target {
                    prefix_len: 0,
                    prefix: Ipv6Addr::UNSPECIFIED,
                }),
                &[&[5, 2, 0, 0]],
            ),
            (
                RplOption::Transit(Transit {
                    external: true,
                    path_control: 0xc0,
                    sequence: 241,
                    lifetime: 30,
                    parent: Some(ROOT),
                }),
                &[&[6, 20, 0x80, 0xc0, 241, 30], &root],
            ),
            (
                RplOption::Transit(Transit {
                    external: false,
                    path_control: 0,
                    sequence: 5,
                    lifetime: 0,
                    parent: None,
                }),
                &[&[6, 4, 0, 0, 5, 0]],
            ),
            (
                RplOption::Solicited(Solicited {
                    instance: Some(30),
                    dodag: Some(Ipv6Addr::from(all)),
                    version: Some(9),
                }),
                &[&[7, 19, 30, 0xe0], &all, &[9]],
            ),
            (
                RplOption::Prefix(information),
                &[
                    &[8, 30, 64, 0x60, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0],
                    &root,
                ],
            ),
            (RplOption::Descriptor(7), &[&[9, 4, 0, 0, 0, 7]]),
            (
                RplOption::Other {
                    kind: 200,
                    body: &[1, 2],
                },
                &[&[200, 2, 1, 2]],
            ),
        ];
        let mut all = Vec::new();
        for (option, bytes) in &cases {
            assert_eq!(written(|w| option.emit(w)), bytes.concat(), "{option:?}");
            // Padding between options is skipped.
            all.extend([0, 1, 3, 0, 0, 0]);
            all.extend(bytes.concat());
        }
        assert_eq!(listed(&all), Ok(cases.map(|(option, _)| option).to_vec()));
    }

    #[test]
    fn refused() {
        let dio = [0; 24];
        let with = |tail: &[u8]| [&dio[..], tail].concat();
        let cases: [(&str, u8, Vec<u8>, ParseError); 16] = [
            ("nothing", 0, [].to_vec(), ParseError::Truncated),
            ("half a DIO", 1, [0; 23].to_vec(), ParseError::Truncated),
            ("DAO", 2, [0, 0x40, 0, 0, 1].to_vec(), ParseError::Truncated),
            (
                "DAO-ACK",
                3,
                [0, 0x80, 0, 0].to_vec(),
                ParseError::Truncated,
            ),
            ("secure DIO", 0x81, dio.to_vec(), ParseError::Secure),
            ("DCO", 7, dio.to_vec(), ParseError::Code),
            ("no length", 1, with(&[4]), ParseError::OptionLength),
            (
                "beyond the end",
                1,
                with(&[9, 4, 0, 0, 0]),
                ParseError::OptionLength,
            ),
            (
                "short configuration",
                1,
                with(&[&[4, 13][..], &[0; 13]].concat()),
                ParseError::OptionShape,
            ),
            (
                "129 bits",
                1,
                with(&[&[5, 19, 0, 129][..], &[0; 17]].concat()),
                ParseError::OptionShape,
            ),
            (
                "half a target",
                1,
                with(&[5, 3, 0, 9, 0]),
                ParseError::OptionShape,
            ),
            (
                "half a parent",
                1,
                with(&[6, 5, 0, 0, 0, 0, 1]),
                ParseError::OptionShape,
            ),
            (
                "half a solicitation",
                1,
                with(&[7, 2, 0, 0]),
                ParseError::OptionShape,
            ),
            (
                "half a prefix",
                1,
                with(&[8, 2, 64, 0]),
                ParseError::OptionShape,
            ),
            (
                "half a route",
                1,
                with(&[3, 5, 0, 0, 0, 0, 0]),
                ParseError::OptionShape,
            ),
            (
                "metric beyond its container",
                1,
                with(&[2, 5, 7, 0, 0, 2, 1]),
                ParseError::OptionShape,
            ),
        ];
        for (name, code, body, error) in cases {
            assert_eq!(Message::parse(code, &body), Err(error), "{name}");
        }
    }

    #[test]
    fn a_target_may_be_followed_by_its_owner_and_hold_more_bits_than_it_says() {
        let whole = [
            5, 18, 0x80, 20, 0x20, 1, 0xdd, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
        ];
        let mut owned = [&whole[..], &[7; 8]].concat();
        (owned[1], owned[2]) = (26, 0x81);
        let target = RplOption::Target(Target {
            prefix_len: 20,
            prefix: Ipv6Addr::new(0x2001, 0xd000, 0, 0, 0, 0, 0, 0),
        });
        assert_eq!(listed(&whole), Ok([target].to_vec()));
        assert_eq!(listed(&owned), Ok([target].to_vec()));
        owned[2] = 0x82;
        assert_eq!(
            listed(&owned),
            Ok([target].to_vec()),
            "a prefix of 8 bytes and an owner of 16"
        );
        owned[2] = 0;
        assert_eq!(listed(&owned), Err(ParseError::OptionShape));
    }

    #[test]
    fn options_too_long_for_their_type_are_refused() {
        for (kind, len) in [
            (2, 1),
            (3, 23),
            (4, 15),
            (5, 19),
            (6, 5),
            (6, 21),
            (7, 20),
            (8, 31),
            (9, 5),
        ] {
            let bytes = [&[kind, len][..], &[0; 31][..usize::from(len)]].concat();
            assert_eq!(listed(&bytes), Err(ParseError::OptionShape), "{kind}");
        }
    }

    #[test]
    fn etx_is_read_where_it_is_the_metric_of_the_path() {
        let hops = [3, 0, 0, 2, 0, 1];
        let etx = Metrics::etx_object(0x1234);
        let both = [hops, etx].concat();
        assert_eq!(Metrics::parse(&both).unwrap().etx(), Some(0x1234));
        assert_eq!(Metrics::parse(&hops).unwrap().etx(), None);
        for (name, flags) in [("constraint", [0x02, 0]), ("recorded", [0, 0x80])] {
            let mut etx = etx;
            [etx[1], etx[2]] = flags;
            assert_eq!(Metrics::parse(&etx).unwrap().etx(), None, "{name}");
        }
    }

    proptest! {
        #[test]
        fn parse_never_panics_and_what_it_yields_round_trips(
            code in 0u8..5, base in 0usize..5,
            options in prop::collection::vec(
                (0u8..11, 0usize..3, prop::collection::vec(any::<u8>(), 0..34)), 0..4,
            ),
        ) {
            let mut body = [[0; 4].as_slice(), &[0xc0; 20]].concat();
            body.truncate([2, 24, 4, 4, 0][base]);
            for (kind, cut, data) in options {
                body.extend([kind, (data.len() + cut / 2) as u8]);
                body.extend(data);
            }
            if let Ok(message) = Message::parse(code, &body) {
                let bytes = written(|w| message.emit(w));
                prop_assert_eq!(Message::parse(code, &bytes[4..]), Ok(message));
                for option in listed(options_of(message)).unwrap() {
                    let again = written(|w| option.emit(w));
                    prop_assert_eq!(listed(&again), Ok([option].to_vec()));
                }
            }
        }
    }

    fn options_of(message: Message<'_>) -> &[u8] {
        match message {
            Message::Dis(dis) => dis.options,
            Message::Dio(dio) => dio.options,
            Message::Dao(dao) => dao.options,
            Message::DaoAck(ack) => ack.options,
        }
        .as_bytes()
    }
}
