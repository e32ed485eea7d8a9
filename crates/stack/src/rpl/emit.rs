//! Writes RPL control messages as bytes.

use super::iid::Iid;
use super::{ControlMessage, Dodag, Rpl};
use crate::wire::cursor::{Full, Writer};
use crate::wire::rpl::{Dao, Dio, Dis, Metrics, PREFIX_HEAD, Target, Transit};
#[cfg(feature = "root")]
use crate::wire::rpl::{DaoAck, RplOptions};

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
        // A leaf advertises an infinite rank (RFC 6550 §8.5).
        let rank = match self.is_router() {
            true => self.rank,
            false => super::INFINITE_RANK,
        };
        let flags = Dio::flags(dodag.grounded, dodag.mode, dodag.preference);
        let bytes = [dodag.instance, dodag.version, flags, self.dtsn];
        Dio::emit_base(bytes, rank, &dodag.id, w)?;
        // Metrics go wherever a rank goes: without them a path would seem to cost its rank.
        if dodag.has_metrics && rank != super::INFINITE_RANK {
            Metrics::emit_etx(self.cost, w)?;
        }
        if full {
            dodag.configuration.emit(w)?;
            if let Some(prefix) = &dodag.prefix {
                prefix.emit(w, PREFIX_HEAD)?;
            }
        }
        Ok(())
    }

    fn emit_own_dao(&self, lifetime: u8, w: &mut Writer<'_>) -> Result<(), Full> {
        let dodag = self.dodag.as_ref().ok_or(Full)?;
        let parent = self.parent.and_then(|parent| self.candidates.find(parent));
        let below_root;
        let parent = match parent {
            Some(parent) if parent.rank() > dodag.unit() => {
                below_root = dodag.addr_of(parent.iid);
                Some(&below_root)
            }
            parent => parent.map(|_| &dodag.id),
        };
        let to_acknowledge = (self.dao.sequence, lifetime > 0);
        emit_dao(dodag, to_acknowledge, self.iid, w)?;
        let path = [PATH_CONTROL, self.dao.path_sequence, lifetime];
        Transit::emit_path(false, path, parent.filter(|_| !dodag.is_storing()), w)
    }

    /// The DAO about the leaf that is on its way.
    #[cfg(feature = "leaves")]
    fn emit_leaf_dao(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let dodag = self.dodag.as_ref().ok_or(Full)?;
        let leaf = self.leaves.leaf.as_ref().ok_or(Full)?;
        // No shorter than the registration (RFC 9010 §9.2.1); all ones would be for ever.
        let unit_s = u32::from(dodag.configuration.lifetime_unit_s).max(1);
        let units = (u32::from(leaf.lifetime_min) * 60).div_ceil(unit_s);
        let lifetime = units.min(u32::from(u8::MAX - 1)) as u8;
        emit_dao(dodag, (self.leaves.sequence(), true), Iid::of(&leaf.iid), w)?;
        let path = [PATH_CONTROL, leaf.sequence, lifetime];
        Transit::emit_path(true, path, Some(&dodag.addr_of(self.iid)), w)
    }
}

/// Writes a DAO up to its target's transit information. `to_acknowledge`: its sequence, and whether
/// the root is to answer.
fn emit_dao(
    dodag: &Dodag,
    (sequence, ack_requested): (u8, bool),
    target: Iid,
    w: &mut Writer<'_>,
) -> Result<(), Full> {
    // A local instance is named by its DODAG, too (RFC 6550 §6.4.1).
    let id = Some(&dodag.id).filter(|_| dodag.instance >= 128);
    Dao::emit_base((dodag.instance, ack_requested, sequence), id, w)?;
    Target::emit_addr(&dodag.addr_of(target), w)
}

/// The one parent is the most preferred (RFC 6550 §9.9).
const PATH_CONTROL: u8 = 0x80;
