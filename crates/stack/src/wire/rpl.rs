//! RPL control messages: ICMPv6 type 155.
//!
//! ```text
//! +---------------+---------------+-------------------------------+
//! |  Type = 155   |     Code      |           Checksum            |
//! +---------------+---------------+-------------------------------+
//! |             base of the message, then its options             |
//! ```
//!
//! Place: read from and written as [`icmpv6::Message::Other`](super::icmpv6::Message::Other) by
//! `rpl`. A message with a known option that is too short or too long for its type is refused as a
//! whole.
//! Left out: secured messages, P2P-RPL, storing-mode invalidation (DCO).
//! Source: RFC 6550 §6.

mod options;

use core::net::Ipv6Addr;

use super::cursor::{Full, Reader, Writer};

pub(crate) use options::{CONFIGURATION_LEN, PREFIX_HEAD, kind};
pub use options::{
    Configuration, Metric, Metrics, ParseError, RouteInformation, RplOption, RplOptions, Solicited,
    Target, Transit, configuration,
};
use options::{emit_optional_addr, optional_addr};

/// The ICMPv6 type of every control message.
pub const ICMPV6_TYPE: u8 = 155;

/// A control message of RPL (RFC 6550 §6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Message<'a> {
    /// Code 0: asks neighbours for a DIO.
    Dis(Dis<'a>),
    /// Code 1: announces a DODAG and the sender's place in it.
    Dio(Dio<'a>),
    /// Code 2: advertises destinations to the root or to a parent.
    Dao(Dao<'a>),
    /// Code 3: answers a DAO.
    DaoAck(DaoAck<'a>),
}

/// DODAG information solicitation (RFC 6550 §6.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Dis<'a> {
    /// Options, such as [`Solicited`], which limits the nodes that answer.
    pub options: RplOptions<'a>,
}

/// DODAG information object (RFC 6550 §6.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dio<'a> {
    /// `RPLInstanceID` (RFC 6550 §5.1).
    pub instance: u8,
    /// Version of the DODAG, a lollipop counter (§7.2) of the root.
    pub version: u8,
    /// Rank of the sender in the DODAG; 65,535 is infinite.
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
    /// Options behind the base object: configuration, metrics, prefixes.
    pub options: RplOptions<'a>,
}

/// Destination advertisement object (RFC 6550 §6.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dao<'a> {
    /// `RPLInstanceID` (RFC 6550 §5.1).
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
    /// `RPLInstanceID` (RFC 6550 §5.1).
    pub instance: u8,
    /// `DAOSequence` of the DAO that is answered.
    pub sequence: u8,
    /// 0: accepted; up to 127: accepted, yet another parent is better; from 128 on: rejected.
    pub status: u8,
    /// The DODAG, where the instance alone does not name it.
    pub dodag: Option<Ipv6Addr>,
    /// Options; RFC 6550 defines none for this message.
    pub options: RplOptions<'a>,
}

/// Values of [`Dio::mode`], the mode of operation (RFC 6550 §6.3.1).
pub mod mode {
    /// The DODAG keeps no downward routes.
    pub const UPWARD_ONLY: u8 = 0;
    /// Non-storing: the root alone keeps downward routes, and routes by source.
    pub const NON_STORING: u8 = 1;
    /// Storing: every router keeps downward routes.
    pub const STORING: u8 = 2;
    /// Storing, with multicast groups as destinations.
    pub const STORING_WITH_MULTICAST: u8 = 3;
}

pub(crate) mod code {
    pub(crate) const DIS: u8 = 0;
    pub(crate) const DIO: u8 = 1;
    pub(crate) const DAO: u8 = 2;
    pub(crate) const DAO_ACK: u8 = 3;
    pub(super) const SECURE: u8 = 0x80;
}

const GROUNDED: u8 = 0x80;
const ACK_REQUESTED: u8 = 0x80;
const DAO_HAS_DODAG: u8 = 0x40;
const DAO_ACK_HAS_DODAG: u8 = 0x80;

impl<'a> Message<'a> {
    /// Reads the message with this ICMPv6 code, from behind the ICMPv6 checksum on.
    ///
    /// # Errors
    /// [`ParseError`]: the whole message is to be dropped.
    pub fn parse(code: u8, body: &'a [u8]) -> Result<Self, ParseError> {
        let r = Reader::new(body);
        Ok(match code {
            code::DIS => Self::Dis(Dis::parse(r)?),
            code::DIO => Self::Dio(Dio::parse(r)?),
            code::DAO if cfg!(feature = "root") => Self::Dao(Dao::parse(r)?),
            code::DAO_ACK => Self::DaoAck(DaoAck::parse(r)?),
            code => return Err(ParseError::of_code(code)),
        })
    }

    /// Appends the message, from its ICMPv6 type on, with a zero checksum, which
    /// [`icmpv6::fill_checksum`](super::icmpv6::fill_checksum) completes. More options may
    /// follow.
    ///
    /// # Errors
    /// [`Full`] when it does not fit.
    pub fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        match self {
            Self::Dis(dis) => dis.emit(w),
            Self::Dio(dio) => dio.emit(w),
            Self::Dao(dao) => dao.emit(w),
            Self::DaoAck(ack) => ack.emit(w),
        }
    }
}

impl ParseError {
    pub(crate) const fn of_code(code: u8) -> Self {
        match code & code::SECURE {
            0 => Self::Code,
            _ => Self::Secure,
        }
    }
}

impl<'a> Dis<'a> {
    pub(crate) fn parse(mut r: Reader<'a>) -> Result<Self, ParseError> {
        let _flags_and_reserved = r.u16()?;
        Ok(Self {
            options: RplOptions::parse(r.rest())?,
        })
    }

    /// As [`Message::emit`].
    pub(crate) fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        w.put(&[ICMPV6_TYPE, code::DIS, 0, 0, 0, 0])?;
        w.put(self.options.as_bytes())
    }
}

impl<'a> Dio<'a> {
    pub(crate) fn parse(mut r: Reader<'a>) -> Result<Self, ParseError> {
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
            dodag: Ipv6Addr::from(*r.chunk::<16>()?),
            options: RplOptions::parse(r.rest())?,
        })
    }

    /// As [`Message::emit`].
    pub(crate) fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let flags = Self::flags(self.grounded, self.mode, self.preference);
        let bytes = [self.instance, self.version, flags, self.dtsn];
        Self::emit_base(bytes, self.rank, &self.dodag, w)?;
        w.put(self.options.as_bytes())
    }

    /// The byte of G, MOP and Prf.
    pub(crate) const fn flags(grounded: bool, mode: u8, preference: u8) -> u8 {
        let grounded = if grounded { GROUNDED } else { 0 };
        grounded | (mode & 7) << 3 | preference & 7
    }

    /// Appends the message up to its options.
    pub(crate) fn emit_base(
        [instance, version, flags, dtsn]: [u8; 4],
        rank: u16,
        dodag: &Ipv6Addr,
        w: &mut Writer<'_>,
    ) -> Result<(), Full> {
        let [high, low] = rank.to_be_bytes();
        let head = [ICMPV6_TYPE, code::DIO, 0, 0];
        let place = [instance, version, high, low];
        w.put([head, place, [flags, dtsn, 0, 0]].as_flattened())?;
        w.put(&dodag.octets())
    }
}

impl<'a> Dao<'a> {
    pub(crate) fn parse(mut r: Reader<'a>) -> Result<Self, ParseError> {
        let [instance, flags, _, sequence] = r.array()?;
        Ok(Self {
            instance,
            ack_requested: flags & ACK_REQUESTED != 0,
            sequence,
            dodag: optional_addr(&mut r, flags & DAO_HAS_DODAG != 0)?,
            options: RplOptions::parse(r.rest())?,
        })
    }

    /// As [`Message::emit`].
    pub(crate) fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let bytes = (self.instance, self.ack_requested, self.sequence);
        Self::emit_base(bytes, self.dodag.as_ref(), w)?;
        w.put(self.options.as_bytes())
    }

    /// Appends the message up to its options.
    pub(crate) fn emit_base(
        (instance, ack_requested, sequence): (u8, bool, u8),
        dodag: Option<&Ipv6Addr>,
        w: &mut Writer<'_>,
    ) -> Result<(), Full> {
        let ack = if ack_requested { ACK_REQUESTED } else { 0 };
        let has_dodag = dodag.map_or(0, |_| DAO_HAS_DODAG);
        let base = [instance, ack | has_dodag, 0, sequence];
        w.put([[ICMPV6_TYPE, code::DAO, 0, 0], base].as_flattened())?;
        emit_optional_addr(w, dodag)
    }
}

impl<'a> DaoAck<'a> {
    pub(crate) fn parse(mut r: Reader<'a>) -> Result<Self, ParseError> {
        let [instance, flags, sequence, status] = r.array()?;
        Ok(Self {
            instance,
            sequence,
            status,
            dodag: optional_addr(&mut r, flags & DAO_ACK_HAS_DODAG != 0)?,
            options: RplOptions::parse(r.rest())?,
        })
    }

    /// As [`Message::emit`].
    pub(crate) fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let dodag = self.dodag.map_or(0, |_| DAO_ACK_HAS_DODAG);
        let base = [self.instance, dodag, self.sequence, self.status];
        w.put([[ICMPV6_TYPE, code::DAO_ACK, 0, 0], base].as_flattened())?;
        emit_optional_addr(w, self.dodag.as_ref())?;
        w.put(self.options.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::ndp::PrefixInformation;
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
