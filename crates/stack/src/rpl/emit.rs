//! Writes RPL control messages as bytes.

use core::net::Ipv6Addr;

#[cfg(feature = "leaves")]
use super::iid::Iid;
use super::{ControlMessage, Dodag, Rpl};
use crate::wire::cursor::{Full, Writer};
#[cfg(feature = "root")]
use crate::wire::rpl::DaoAck;
use crate::wire::rpl::{Dao, Dio, Dis, Metrics, PREFIX_HEAD, RplOptions, Target, Transit};

impl Rpl<'_> {
    /// Writes a message from its ICMPv6 type on, with a zero checksum.
    ///
    /// # Errors
    /// [`Full`] where it does not fit, or this node has no DODAG to speak of.
    pub fn emit(&self, message: ControlMessage, w: &mut Writer<'_>) -> Result<(), Full> {
        match message {
            ControlMessage::Dis => Dis::default().emit(w),
            ControlMessage::Dio { full } => self.emit_dio(full, w),
            ControlMessage::Dao => self.emit_own_dao(self.lifetime_units(), w),
            ControlMessage::NoPath => self.emit_own_dao(0, w),
            #[cfg(feature = "leaves")]
            ControlMessage::Leaf => self.emit_leaf_dao(w),
            #[cfg(feature = "root")]
            ControlMessage::DaoAck { sequence, status } => {
                let dodag = self.dodag.as_ref().ok_or(Full)?;
                let ack = DaoAck {
                    instance: dodag.instance,
                    sequence,
                    status,
                    dodag: None,
                    options: RplOptions::default(),
                };
                ack.emit(w)
            }
        }
    }

    fn emit_dio(&self, full: bool, w: &mut Writer<'_>) -> Result<(), Full> {
        let dodag = self.dodag.as_ref().ok_or(Full)?;
        let dio = Dio {
            instance: dodag.instance,
            version: dodag.version,
            // A leaf advertises an infinite rank (RFC 6550 §8.5).
            rank: if self.is_router() {
                self.rank
            } else {
                super::INFINITE_RANK
            },
            grounded: dodag.grounded,
            mode: dodag.mode,
            preference: dodag.preference,
            dtsn: self.dtsn,
            dodag: dodag.id,
            options: RplOptions::default(),
        };
        dio.emit(w)?;
        // Metrics go wherever a rank goes: without them a path would seem to cost its rank.
        if dodag.has_metrics && dio.rank != super::INFINITE_RANK {
            Metrics::emit_etx(self.cost, w)?;
        }
        if full {
            dodag.configuration.emit(w)?;
            if let Some(prefix) = dodag.prefix {
                prefix.emit(w, PREFIX_HEAD)?;
            }
        }
        Ok(())
    }

    fn emit_own_dao(&self, lifetime: u8, w: &mut Writer<'_>) -> Result<(), Full> {
        let dodag = self.dodag.as_ref().ok_or(Full)?;
        let parent = self.parent.and_then(|parent| self.candidates.find(parent));
        let parent = parent.map(|parent| match parent.rank() <= dodag.unit() {
            true => dodag.id,
            false => dodag.addr_of(parent.iid),
        });
        let transit = Transit {
            external: false,
            path_control: PATH_CONTROL,
            sequence: self.dao.path_sequence,
            lifetime,
            parent: parent.filter(|_| !dodag.is_storing()),
        };
        let to_acknowledge = (self.dao.sequence, lifetime > 0);
        emit_dao(dodag, to_acknowledge, (dodag.addr_of(self.iid), transit), w)
    }

    /// The DAO about the leaf that is on its way.
    #[cfg(feature = "leaves")]
    fn emit_leaf_dao(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let dodag = self.dodag.as_ref().ok_or(Full)?;
        let leaf = self.leaves.leaf.as_ref().ok_or(Full)?;
        // No shorter than the registration (RFC 9010 §9.2.1); all ones would be for ever.
        let unit_s = u32::from(dodag.configuration.lifetime_unit_s).max(1);
        let units = (u32::from(leaf.lifetime_min) * 60).div_ceil(unit_s);
        let transit = Transit {
            external: true,
            path_control: PATH_CONTROL,
            sequence: leaf.sequence,
            lifetime: units.min(u32::from(u8::MAX - 1)) as u8,
            parent: Some(dodag.addr_of(self.iid)),
        };
        let route = (dodag.addr_of(Iid::of(&leaf.iid)), transit);
        emit_dao(dodag, (self.leaves.sequence(), true), route, w)
    }
}

/// Writes a DAO of one route. `to_acknowledge`: its sequence, and whether the root is to answer.
fn emit_dao(
    dodag: &Dodag,
    (sequence, ack_requested): (u8, bool),
    (addr, transit): (Ipv6Addr, Transit),
    w: &mut Writer<'_>,
) -> Result<(), Full> {
    // A local instance is named by its DODAG, too (RFC 6550 §6.4.1).
    let is_local = dodag.instance >= 128;
    let dao = Dao {
        instance: dodag.instance,
        ack_requested,
        sequence,
        dodag: is_local.then_some(dodag.id),
        options: RplOptions::default(),
    };
    dao.emit(w)?;
    let target = Target {
        prefix_len: 128,
        prefix: addr,
    };
    target.emit(w)?;
    transit.emit(w)
}

/// The one parent is the most preferred (RFC 6550 §9.9).
const PATH_CONTROL: u8 = 0x80;
