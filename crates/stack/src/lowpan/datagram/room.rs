//! Which packet gets a record and a body, and which one it replaces.

use super::record::{Coverage, LIFETIME, Record, State};
use super::{Datagrams, FragmentDrop, FragmentHandling, Key};
use crate::limits::IS_RELAY;
use crate::lowpan::TcpForm;
use crate::lowpan::routing::RecordRouting;
use crate::storage::least;
use crate::time::{Allowance, Duration, Instant};
use crate::wire::LinkAddr;

impl Datagrams<'_> {
    /// Makes a record, and a body if it needs one, for a packet of `len` bytes not seen before.
    pub(super) fn open(
        &mut self,
        (key, len): (Key, usize),
        handling: FragmentHandling,
        is_known: bool,
        now: Instant,
    ) -> Result<u8, FragmentDrop> {
        if len > self.packet_len_max(handling) {
            return Err(FragmentDrop::TooLarge);
        }
        let sender = (key.from, is_known);
        // Both are found before anybody makes way: no packet is given up for one that is refused.
        let body = match handling {
            FragmentHandling::Reassemble => Some(
                self.find_body(sender, now)
                    .or_else(|reason| self.overtake(sender, now).ok_or(reason))?,
            ),
            FragmentHandling::Forward { .. } => None,
        };
        let freed = body.and_then(|body| body.after);
        let FreeSlot { index, after } = self.find_record(sender, freed, now)?;
        let follows = self.was_served(key.from, now);
        for record in freed.into_iter().chain(after) {
            self.evict(record);
        }
        let state = match (handling, body) {
            (FragmentHandling::Forward { next_hop }, _) if IS_RELAY => State::Forwarding {
                next_hop,
                tag: self.new_tag(),
            },
            (FragmentHandling::Reassemble, Some(body)) => State::Gathering { body: body.index },
            _ => return Err(FragmentDrop::NoBody),
        };
        let record = self
            .records
            .get_mut(usize::from(index))
            .ok_or(FragmentDrop::TableFull)?;
        *record = Record {
            key,
            state,
            tcp: TcpForm::Plain,
            routing: RecordRouting::NOTHING,
            is_known,
            grows: false,
            follows,
            coverage: Coverage::NONE,
            heard_at: now,
            give_up_at: now + LIFETIME,
        };
        Ok(index)
    }

    /// A record that is free, is `freed` with a body, or may be taken. One neighbour gets three
    /// of four at most.
    fn find_record(
        &self,
        sender: Sender,
        freed: Option<u8>,
        now: Instant,
    ) -> Result<FreeSlot, FragmentDrop> {
        let quota = (self.records.len() * 3 / 4).max(1);
        let is_used = |index: u8, record: &Record| record.is_active() && Some(index) != freed;
        let of_sender = |record: &Record| record.key.from.is(&sender.0);
        let used = (0..u8::MAX).zip(self.records.iter());
        let held = used.filter(|(index, record)| of_sender(record) && is_used(*index, record));
        if held.count() >= quota {
            let index = self.victim(Holding::Record, Some(sender.0), sender, now);
            return index.map(FreeSlot::of).ok_or(FragmentDrop::NeighborQuota);
        }
        // Never used before done with, and of those the one done with first.
        let rank = |record: &Record| record.heard_at.rank(u8::from(record.state != State::Free));
        let ranks = (0..u8::MAX).zip(self.records.iter());
        let ranks = ranks.map(|(index, record)| (!is_used(index, record)).then(|| rank(record)));
        if let Some(index) = least(ranks) {
            return Ok(FreeSlot::of(index as u8));
        }
        let index = self.victim(Holding::Record, None, sender, now);
        index.map(FreeSlot::of).ok_or(FragmentDrop::TableFull)
    }

    /// A body that is free or may be taken. One neighbour gets all but one, if there are two.
    fn find_body(&self, sender: Sender, now: Instant) -> Result<FreeSlot, FragmentDrop> {
        let (from, _) = sender;
        let bodies = self.bodies.len().checked_div(self.body_len).unwrap_or(0);
        let bodies = u8::try_from(bodies).unwrap_or(u8::MAX);
        let quota = usize::from(bodies.saturating_sub(1).max(1));
        let of_sender = |record: &&Record| record.key.from.is(&from) && record.body().is_some();
        let (of, reason) = if self.records.iter().filter(of_sender).count() < quota {
            let taken = |body| self.records.iter().any(|r| r.body() == Some(body));
            if let Some(index) = (0..bodies).find(|&body| !taken(body)) {
                return Ok(FreeSlot { index, after: None });
            }
            (None, FragmentDrop::NoBody)
        } else if bodies < 2 {
            (Some(from), FragmentDrop::NoBody)
        } else {
            (Some(from), FragmentDrop::NeighborQuota)
        };
        let victim = self.victim(Holding::Body, of, sender, now).ok_or(reason)?;
        let body = self.records.get(usize::from(victim)).and_then(Record::body);
        Ok(FreeSlot {
            index: body.ok_or(reason)?,
            after: Some(victim),
        })
    }

    /// Takes the body of a neighbour that had a packet reassembled just before, for a neighbour
    /// that had none for [`SERVED_FOR`]. Otherwise senders that keep a link busy starve others,
    /// whose first fragments never find a body free, and which therefore send ever more rarely.
    fn overtake(&mut self, (from, is_known): Sender, now: Instant) -> Option<FreeSlot> {
        let holds_one = |record: &Record| record.key.from.is(&from) && record.body().is_some();
        if !is_known || self.records.iter().any(holds_one) || self.was_served(from, now) {
            return None;
        }
        let (victim, body) = (0..u8::MAX)
            .zip(self.records.iter())
            .filter(|(_, record)| record.follows)
            .find_map(|(index, record)| match record.state {
                State::Gathering { body } => Some((index, body)),
                _ => None,
            })?;
        self.overtakings.take(now).then_some(FreeSlot {
            index: body,
            after: Some(victim),
        })
    }

    /// Whether a packet of this neighbour was whole, or went on, not long ago.
    fn was_served(&self, from: LinkAddr, now: Instant) -> bool {
        self.records.iter().any(|record| {
            record.key.from.is(&from)
                && matches!(
                    record.state,
                    State::Over { lost: false } | State::Passed { .. }
                )
                && now.since(record.heard_at) < SERVED_FOR
        })
    }

    /// The record of the packet that matters least among those that may be replaced by a new one of
    /// `sender`: packets of one neighbour, or of any.
    fn victim(
        &self,
        holding: Holding,
        of: Option<LinkAddr>,
        (_, is_known): Sender,
        now: Instant,
    ) -> Option<u8> {
        let may_go = |record: &Record| {
            let is_spared_for = match (is_known, record.is_known) {
                (true, false) => Duration::ZERO,
                (false, true) => STALE_AFTER,
                _ if record.grows => PAUSE_MAX,
                _ => BURST_MAX,
            };
            record.holds(holding)
                && of.is_none_or(|from| record.key.from.is(&from))
                && now.since(record.heard_at) >= is_spared_for
        };
        let rank = |record: &Record| {
            let class = u8::from(record.is_known) << 1 | u8::from(record.grows);
            record.heard_at.rank(class)
        };
        let ranks = self.records.iter().take(u8::MAX.into());
        let ranks = ranks.map(|record| may_go(record).then(|| rank(record)));
        least(ranks).map(|index| index as u8)
    }

    /// Gives up the packet of a record, unless that was done.
    fn evict(&mut self, index: u8) {
        if let Some(record) = self.records.get_mut(usize::from(index))
            && record.is_active()
        {
            record.state = State::Over { lost: true };
            self.counters.drop(FragmentDrop::Evicted);
        }
    }
}

/// The kind of memory that a packet takes up.
#[derive(Clone, Copy, Debug)]
enum Holding {
    Record,
    Body,
}

/// A record or a body for a new packet.
#[derive(Clone, Copy, Debug)]
struct FreeSlot {
    index: u8,
    /// The record whose packet is to be replaced.
    after: Option<u8>,
}

impl FreeSlot {
    /// A record that is to be taken.
    const fn of(index: u8) -> Self {
        let after = Some(index);
        Self { index, after }
    }
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
/// stranger's: longer than all attempts of one frame (0.9 s), so that a live packet is not
/// robbed.
pub(crate) const STALE_AFTER: Duration = Duration::from_secs(1);

/// After this long its like may have the place of a packet that had begun to grow: some five
/// frames of a path on which only every third hop may send, or as many attempts of one.
pub(crate) const PAUSE_MAX: Duration = Duration::from_millis(250);

/// As above, for a packet of which only a first fragment has come. The next fragment follows in 8
/// ms over a hop and in three times that along a path, or, if its first attempt fails, after a
/// retry delay of up to 40 ms, a backoff and its own air time.
pub const BURST_MAX: Duration = Duration::from_millis(60);

/// A neighbour that had no packet put together for so long may take another's body: TCP's least
/// timeout after a loss, so that each of its tries is one.
const SERVED_FOR: Duration = Duration::from_secs(1);

/// Limit on these replacements: a few at once, then one a second, since a neighbour's name can be
/// forged, and each time another sender loses a packet.
pub(super) const OVERTAKINGS: Allowance = Allowance::new(4, 1_000);

/// A neighbour, and whether it is known to be there.
type Sender = (LinkAddr, bool);
