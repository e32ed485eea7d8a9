//! Messages as bytes.

use core::net::Ipv6Addr;

use super::{Outgoing, Rpl};
use crate::wire::cursor::{Full, Writer};
use crate::wire::rpl::{
    Dao, DaoAck, Dio, Dis, Message, Metrics, RplOption, RplOptions, Target, Transit,
};

impl Rpl<'_> {
    /// Writes a message from its ICMPv6 type on, with a zero checksum. `leaves`: nodes without RPL
    /// that this router speaks for, at addresses of the DODAG's prefix (RFC 9010).
    ///
    /// # Errors
    /// [`Full`] where it does not fit, or this node has no DODAG to speak of.
    pub fn emit(
        &self,
        message: Outgoing,
        leaves: &[Ipv6Addr],
        w: &mut Writer<'_>,
    ) -> Result<(), Full> {
        match message {
            Outgoing::Dis => Message::Dis(Dis::default()).emit(w),
            Outgoing::Dio { full } => self.emit_dio(full, w),
            Outgoing::Dao => self.emit_dao(self.lifetime_units(), leaves, w),
            Outgoing::NoPath => self.emit_dao(0, &[], w),
            Outgoing::DaoAck { sequence, status } => {
                let dodag = self.dodag.as_ref().ok_or(Full)?;
                let ack = DaoAck {
                    instance: dodag.instance,
                    sequence,
                    status,
                    dodag: None,
                    options: RplOptions::default(),
                };
                Message::DaoAck(ack).emit(w)
            }
        }
    }

    fn emit_dio(&self, full: bool, w: &mut Writer<'_>) -> Result<(), Full> {
        let dodag = self.dodag.as_ref().ok_or(Full)?;
        let dio = Dio {
            instance: dodag.instance,
            version: dodag.version,
            // A leaf says no rank (RFC 6550 §8.5).
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
        Message::Dio(dio).emit(w)?;
        // Metrics go wherever a rank goes: without them a path would seem to cost its rank.
        if dodag.has_metrics {
            let etx = Metrics::etx_object(self.cost);
            let metrics = Metrics::parse(&etx).map_err(|_| Full)?;
            RplOption::Metrics(metrics).emit(w)?;
        }
        if full {
            RplOption::Configuration(dodag.configuration).emit(w)?;
            if let Some(prefix) = dodag.prefix {
                RplOption::Prefix(prefix).emit(w)?;
            }
        }
        Ok(())
    }

    fn emit_dao(&self, lifetime: u8, leaves: &[Ipv6Addr], w: &mut Writer<'_>) -> Result<(), Full> {
        let dodag = self.dodag.as_ref().ok_or(Full)?;
        let own = dodag.addr_of(self.iid);
        // A local instance is named by its DODAG, too (RFC 6550 §6.4.1).
        let is_local = dodag.instance >= 128;
        let dao = Dao {
            instance: dodag.instance,
            ack_requested: lifetime > 0,
            sequence: self.dao.sequence,
            dodag: is_local.then_some(dodag.id),
            options: RplOptions::default(),
        };
        Message::Dao(dao).emit(w)?;
        let parent = self.parent.and_then(|parent| self.candidates.find(parent));
        let parent = parent.map(|parent| match parent.rank() <= dodag.unit() {
            true => dodag.id,
            false => dodag.addr_of(parent.iid()),
        });
        let transit = |external: bool, parent: Option<Ipv6Addr>| {
            RplOption::Transit(Transit {
                external,
                path_control: PATH_CONTROL,
                sequence: self.dao.path_sequence,
                lifetime,
                parent: parent.filter(|_| !dodag.is_storing()),
            })
        };
        target(own, w)?;
        transit(false, parent).emit(w)?;
        for leaf in leaves {
            target(*leaf, w)?;
        }
        match leaves {
            [] => Ok(()),
            _ => transit(true, Some(own)).emit(w),
        }
    }
}

fn target(addr: Ipv6Addr, w: &mut Writer<'_>) -> Result<(), Full> {
    RplOption::Target(Target {
        prefix_len: 128,
        prefix: addr,
    })
    .emit(w)
}

/// The one parent is the most preferred (RFC 6550 §9.9).
const PATH_CONTROL: u8 = 0x80;
