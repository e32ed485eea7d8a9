//! Options of RPL's control messages.
//!
//! ```text
//! +---------------+---------------+-------------------------------+
//! |     Type      |    Length     |         Length bytes          |
//! +---------------+---------------+-------------------------------+
//! ```
//!
//! Place: inside the messages of [`rpl`](super). An option that is too short or too long for its
//! type makes its message malformed. Left out: options of P2P-RPL, which are
//! [`RplOption::Other`].
//! Sources: RFC 6550 §6.7; RFC 6551 for metrics; RFC 9008 §4.1.3 and RFC 9035 §3 for flags of the
//! configuration; RFC 9010 §6.1 for what may follow a target.

use core::net::Ipv6Addr;

use crate::wire::cursor::{Full, Reader, Truncated, Writer, copy};
use crate::wire::ndp::PrefixInformation;

/// Why bytes are not a control message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ParseError {
    /// The bytes end within the base.
    Truncated,
    /// A message with RPL's own security, which is not read (RFC 6550 §6.1).
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
            let (kind, body) = split(&mut r).ok_or(ParseError::OptionLength)?;
            if !has_shape(kind, body) {
                return Err(ParseError::OptionShape);
            }
        }
        Ok(Self(bytes))
    }

    /// The options as on the wire.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// The options in order, without padding.
    pub fn iter(&self) -> impl Iterator<Item = RplOption<'a>> + use<'a> {
        self.bodies().filter_map(|(kind, body)| match kind {
            kind::PAD1 | kind::PADN => None,
            _ => RplOption::parse(kind, body).ok(),
        })
    }

    /// Type and body of each option, padding included: for readers of a few fields, which stay
    /// where they are.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = (u8, &'a [u8])> + use<'a> {
        let mut r = Reader::new(self.0);
        core::iter::from_fn(move || split(&mut r))
    }
}

/// Type and body of the next option; `None`: it runs beyond the bytes, or there is none.
fn split<'a>(r: &mut Reader<'a>) -> Option<(u8, &'a [u8])> {
    let kind = r.u8().ok()?;
    let len = match kind {
        kind::PAD1 => 0,
        _ => r.u8().ok()?,
    };
    Some((kind, r.slice(usize::from(len)).ok()?))
}

/// Whether the body of an option is as its type says.
fn has_shape(kind: u8, body: &[u8]) -> bool {
    match kind {
        kind::PAD1 | kind::PADN => true,
        kind::METRICS => Metrics::parse(body).is_ok(),
        kind::CONFIGURATION => body.len() == CONFIGURATION_LEN,
        kind::SOLICITED => body.len() == SOLICITED_LEN,
        kind::PREFIX => body.len() == usize::from(PREFIX_LEN) && body.first() <= Some(&128),
        // A mote acts on none of what else there is: its builds leave that unread.
        _ => !cfg!(feature = "root") || RplOption::parse(kind, body).is_ok(),
    }
}

/// One option of a control message (RFC 6550 §6.7).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RplOption<'a> {
    /// Type 2: DAG metric container.
    Metrics(Metrics<'a>),
    /// Type 3: route information (RFC 6550 §6.7.5).
    Route(RouteInformation),
    /// Type 4: configuration of the DODAG (RFC 6550 §6.7.6).
    Configuration(Configuration),
    /// Type 5: a target that a DAO advertises (RFC 6550 §6.7.7).
    Target(Target),
    /// Type 6: transit information about the targets before it (RFC 6550 §6.7.8).
    Transit(Transit),
    /// Type 7: which DODAG a DIS asks about (RFC 6550 §6.7.9).
    Solicited(Solicited),
    /// Type 8: prefix information, as in a router advertisement.
    Prefix(PrefixInformation),
    /// Type 9: descriptor of the target before it.
    Descriptor(u32),
    /// An option of another type.
    Other {
        /// Option type, 0 to 255.
        kind: u8,
        /// The bytes behind the length field: up to 255.
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

/// The DODAG configuration, which the root decides, handed on unchanged (RFC 6550 §6.7.6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Configuration {
    /// [`mod@configuration`], and more that is only handed on.
    pub flags: u8,
    /// `DIOIntervalDoublings`: the longest interval of DIOs is the shortest doubled so often.
    pub interval_doublings: u8,
    /// `DIOIntervalMin`: binary logarithm of the shortest interval of DIOs, milliseconds.
    pub interval_min: u8,
    /// `DIORedundancyConstant` of Trickle (RFC 6206 §4.1); 0: a DIO is never suppressed.
    pub redundancy: u8,
    /// `MaxRankIncrease`: how far a node's rank may grow above the lowest it has had in a version
    /// of the DODAG; 0: without limit.
    pub max_rank_increase: u16,
    /// `MinHopRankIncrease`: the unit of whole ranks.
    pub min_hop_rank_increase: u16,
    /// Objective code point: 0 for OF0, 1 for MRHOF.
    pub objective: u16,
    /// Default lifetime of routes, in `lifetime_unit_s`; 255: for ever.
    pub default_lifetime: u8,
    /// `LifetimeUnit`: the unit of lifetimes, seconds.
    pub lifetime_unit_s: u16,
}

/// Flags of [`Configuration::flags`], defined for modes of operation 0 to 6.
pub mod configuration {
    /// T: routing artifacts are compressed as RFC 8138 says (RFC 9035 §3).
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
    /// Lifetime in units of the DODAG configuration; 0: the route is gone; 255: for ever.
    pub lifetime: u8,
    /// The parent, in non-storing mode.
    pub parent: Option<Ipv6Addr>,
}

/// Which nodes a DIS asks to answer (RFC 6550 §6.7.9). A field that is `None` matches anything.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Solicited {
    /// `RPLInstanceID` (RFC 6550 §5.1).
    pub instance: Option<u8>,
    /// The DODAG, named by an address of its root.
    pub dodag: Option<Ipv6Addr>,
    /// Version of the DODAG, a lollipop counter (RFC 6550 §7.2).
    pub version: Option<u8>,
}

pub(crate) mod kind {
    pub(super) const PAD1: u8 = 0;
    pub(super) const PADN: u8 = 1;
    pub(crate) const METRICS: u8 = 2;
    pub(super) const ROUTE: u8 = 3;
    pub(crate) const CONFIGURATION: u8 = 4;
    pub(super) const TARGET: u8 = 5;
    pub(super) const TRANSIT: u8 = 6;
    pub(crate) const SOLICITED: u8 = 7;
    pub(crate) const PREFIX: u8 = 8;
    pub(super) const DESCRIPTOR: u8 = 9;
}

/// Bytes of a configuration behind type and length.
pub(crate) const CONFIGURATION_LEN: usize = 14;

/// Bytes of a solicitation behind type and length.
const SOLICITED_LEN: usize = 19;

/// Bytes of prefix information behind type and length: as many as in neighbour discovery.
const PREFIX_LEN: u8 = 30;

/// Type and length of prefix information.
pub(crate) const PREFIX_HEAD: [u8; 2] = [kind::PREFIX, PREFIX_LEN];

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
            // A mote acts on none of what else there is: its builds leave that unread.
            _ if !cfg!(feature = "root")
                && !matches!(
                    kind,
                    kind::METRICS | kind::CONFIGURATION | kind::SOLICITED | kind::PREFIX
                ) =>
            {
                return Ok(Self::Other { kind, body });
            }
            kind::ROUTE => Self::Route(RouteInformation::parse(&mut r)?),
            kind::CONFIGURATION => Self::Configuration(Configuration::of(r.chunk()?)),
            kind::TARGET => Self::Target(Target::parse(&mut r)?),
            kind::TRANSIT => Self::Transit(Transit::parse(&mut r)?),
            kind::SOLICITED => Self::Solicited(Solicited::of(r.chunk()?)),
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
            Self::Prefix(prefix) => prefix.emit(w, PREFIX_HEAD),
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
    /// Reads the body of an option.
    pub(crate) fn of(body: &[u8; CONFIGURATION_LEN]) -> Self {
        let [
            flags,
            interval_doublings,
            interval_min,
            redundancy,
            words @ ..,
        ] = *body;
        let [
            rank_0,
            rank_1,
            hop_0,
            hop_1,
            objective_0,
            objective_1,
            lifetimes @ ..,
        ] = words;
        let [_, default_lifetime, unit_0, unit_1] = lifetimes;
        Self {
            flags,
            interval_doublings,
            interval_min,
            redundancy,
            max_rank_increase: u16::from_be_bytes([rank_0, rank_1]),
            min_hop_rank_increase: u16::from_be_bytes([hop_0, hop_1]),
            objective: u16::from_be_bytes([objective_0, objective_1]),
            default_lifetime,
            lifetime_unit_s: u16::from_be_bytes([unit_0, unit_1]),
        }
    }

    pub(crate) fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let timers = [self.interval_doublings, self.interval_min, self.redundancy];
        w.put(&[kind::CONFIGURATION, 14, self.flags])?;
        w.put(&timers)?;
        let words = [
            self.max_rank_increase,
            self.min_hop_rank_increase,
            self.objective,
            u16::from(self.default_lifetime),
            self.lifetime_unit_s,
        ];
        w.put(words.map(u16::to_be_bytes).as_flattened())
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

    /// Appends the option of one address.
    pub(crate) fn emit_addr(addr: &Ipv6Addr, w: &mut Writer<'_>) -> Result<(), Full> {
        w.put(&[kind::TARGET, 18, 0, 128])?;
        w.put(&addr.octets())
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
        let path = [self.path_control, self.sequence, self.lifetime];
        Self::emit_path(self.external, path, self.parent.as_ref(), w)
    }

    /// Appends the option. `path`: path control, path sequence, path lifetime.
    pub(crate) fn emit_path(
        external: bool,
        [control, sequence, lifetime]: [u8; 3],
        parent: Option<&Ipv6Addr>,
        w: &mut Writer<'_>,
    ) -> Result<(), Full> {
        let len = if parent.is_some() { 20 } else { 4 };
        let flags = if external { EXTERNAL } else { 0 };
        w.put(&[kind::TRANSIT, len, flags, control, sequence, lifetime])?;
        emit_optional_addr(w, parent)
    }
}

impl Solicited {
    fn of([instance, flags, dodag @ .., version]: &[u8; SOLICITED_LEN]) -> Self {
        Self {
            instance: (flags & INSTANCE_MATTERS != 0).then_some(*instance),
            dodag: (flags & DODAG_MATTERS != 0).then_some(Ipv6Addr::from(*dodag)),
            version: (flags & VERSION_MATTERS != 0).then_some(*version),
        }
    }

    /// Whether the body of an option asks the nodes of this DODAG, in this instance and version.
    pub(crate) fn includes(body: &[u8], id: (u8, &Ipv6Addr, u8)) -> bool {
        let Ok([instance, flags, dodag @ .., version]) = <&[u8; SOLICITED_LEN]>::try_from(body)
        else {
            return false;
        };
        (flags & INSTANCE_MATTERS == 0 || *instance == id.0)
            && (flags & DODAG_MATTERS == 0 || *dodag == id.1.octets())
            && (flags & VERSION_MATTERS == 0 || *version == id.2)
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

pub(super) fn optional_addr(
    r: &mut Reader<'_>,
    is_there: bool,
) -> Result<Option<Ipv6Addr>, Truncated> {
    Ok(match is_there {
        true => Some(Ipv6Addr::from(*r.chunk::<16>()?)),
        false => None,
    })
}

pub(super) fn emit_optional_addr(w: &mut Writer<'_>, addr: Option<&Ipv6Addr>) -> Result<(), Full> {
    addr.map_or(Ok(()), |addr| w.put(&addr.octets()))
}

/// The objects of a DAG metric container, whose lengths have been checked (RFC 6551 §2.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metrics<'a>(&'a [u8]);

/// One object of a DAG metric container.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Metric<'a> {
    /// `Routing-MC-Type` (RFC 6551 §2.1), such as [`Metrics::ETX`].
    pub kind: u8,
    /// Five reserved bits, P, C, O, R, three bits A, four bits Prec.
    pub flags: u16,
    /// The object's body, which the type defines.
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

    /// Appends an option that holds the ETX of a path as its only object.
    pub(crate) fn emit_etx(etx: u16, w: &mut Writer<'_>) -> Result<(), Full> {
        emit_other(w, kind::METRICS, &Self::etx_object(etx))
    }

    /// The objects as on the wire.
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }

    /// The objects, in the order of the container.
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
