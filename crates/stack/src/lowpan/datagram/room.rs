//! Whose packet gets a record and a body, and whose makes way for it.

use super::record::{Coverage, LIFETIME, Record, State};
use super::{Datagrams, Drop, Key, Role};
use crate::lowpan::TcpForm;
use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;

impl Datagrams<'_> {
    /// Makes a record, and a body if it needs one, for a packet not seen before.
    pub(super) fn open(
        &mut self,
        key: Key,
        role: Role,
        is_known: bool,
        now: Instant,
    ) -> Result<u8, Drop> {
        let size = usize::from(key.size);
        if size > self.packet_len_max(role) {
            return Err(Drop::TooLarge);
        }
        let index = self.take_record((key.from, is_known), now)?;
        let state = match role {
            Role::Reassemble => State::Gathering {
                body: self.take_body((key.from, is_known), now)?,
            },
            Role::Forward { next_hop } => State::Forwarding {
                next_hop,
                tag: self.new_tag(),
            },
        };
        let record = self
            .records
            .get_mut(usize::from(index))
            .ok_or(Drop::TableFull)?;
        *record = Record {
            key,
            state,
            tcp: TcpForm::Plain,
            is_known,
            grows: false,
            coverage: Coverage::NONE,
            heard_at: now,
            give_up_at: now + LIFETIME,
        };
        Ok(index)
    }

    /// A record that is free or may be taken. One neighbour gets three of four at most.
    fn take_record(&mut self, sender: Sender, now: Instant) -> Result<u8, Drop> {
        let (from, _) = sender;
        let quota = (self.records.len() * 3 / 4).max(1);
        let any = Holding::Record;
        if self.count(any, from) >= quota {
            let (index, _) = self
                .evict(any, Some(from), sender, now)
                .ok_or(Drop::NeighborQuota)?;
            return Ok(index);
        }
        // Never used before done with, and of those the one done with first.
        let done = (0..u8::MAX)
            .zip(self.records.iter())
            .filter(|(_, record)| !record.is_active())
            .min_by_key(|(_, record)| (record.state != State::Free, record.heard_at));
        if let Some((index, _)) = done {
            return Ok(index);
        }
        let (index, _) = self.evict(any, None, sender, now).ok_or(Drop::TableFull)?;
        Ok(index)
    }

    /// A body that is free or may be taken. One neighbour gets all but one, if there are two.
    fn take_body(&mut self, sender: Sender, now: Instant) -> Result<u8, Drop> {
        let (from, _) = sender;
        let bodies = self.bodies.len().checked_div(self.body_len).unwrap_or(0);
        let bodies = u8::try_from(bodies).unwrap_or(u8::MAX);
        let quota = usize::from(bodies.saturating_sub(1).max(1));
        let (of, reason) = if self.count(Holding::Body, from) < quota {
            let taken = |body| self.records.iter().any(|r| r.body() == Some(body));
            if let Some(body) = (0..bodies).find(|&body| !taken(body)) {
                return Ok(body);
            }
            (None, Drop::NoBody)
        } else if bodies < 2 {
            (Some(from), Drop::NoBody)
        } else {
            (Some(from), Drop::NeighborQuota)
        };
        let evicted = self.evict(Holding::Body, of, sender, now);
        evicted.and_then(|(_, body)| body).ok_or(reason)
    }

    /// How much a neighbour holds.
    fn count(&self, holding: Holding, from: LinkAddr) -> usize {
        self.records
            .iter()
            .filter(|record| record.key.from == from && record.holds(holding))
            .count()
    }

    /// Gives up the packet that matters least among those that make way for a new one of
    /// `sender`, of one neighbour or of any; returns its record and body.
    fn evict(
        &mut self,
        holding: Holding,
        of: Option<LinkAddr>,
        (_, is_known): Sender,
        now: Instant,
    ) -> Option<(u8, Option<u8>)> {
        let may_go = |record: &Record| {
            let is_spared_for = match (is_known, record.is_known) {
                (true, false) => Duration::ZERO,
                (false, true) => STALE_AFTER,
                _ if record.grows => PAUSE_MAX,
                _ => BURST_MAX,
            };
            record.holds(holding)
                && of.is_none_or(|from| record.key.from == from)
                && now.since(record.heard_at) >= is_spared_for
        };
        let (index, record) = (0..u8::MAX)
            .zip(self.records.iter_mut())
            .filter(|(_, record)| may_go(record))
            .min_by_key(|(_, record)| (record.is_known, record.grows, record.heard_at))?;
        let body = record.body();
        record.state = State::Over { lost: true };
        self.counters.drop(Drop::Evicted);
        Some((index, body))
    }
}

/// What a packet takes up.
#[derive(Clone, Copy, Debug)]
enum Holding {
    Record,
    Body,
}

impl Record {
    const fn holds(&self, holding: Holding) -> bool {
        match holding {
            Holding::Record => self.is_active(),
            Holding::Body => self.body().is_some(),
        }
    }
}

/// After this long without a fragment any other packet may have a record's place, even a
/// stranger's: longer than all attempts of one frame (0.7 s), so that a live packet is not
/// robbed.
pub const STALE_AFTER: Duration = Duration::from_secs(1);

/// After this long its like may have the place of a packet that had begun to grow: some five
/// frames of a path on which only every third hop may send, or as many attempts of one.
pub const PAUSE_MAX: Duration = Duration::from_millis(250);

/// And of one of which a first fragment is all that has come: the next follows it in 8 ms over
/// a hop, in three times that along a path.
pub const BURST_MAX: Duration = Duration::from_millis(20);

/// A neighbour, and whether it is known to be there.
type Sender = (LinkAddr, bool);
