//! What the MAC remembers of each neighbour: sequence numbers heard, links used.
//!
//! Entries are borrowed slots. When all are taken the least recently used makes place,
//! first one of those this node never sent to: forged source addresses push each other out.

use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;

/// One neighbour, borrowed from the caller; [`Neighbor::EMPTY`] to begin with.
#[derive(Clone, Debug)]
pub struct Neighbor {
    /// Whether this is anybody's entry.
    known: bool,
    addr: LinkAddr,
    /// The last sequence number that was to be acknowledged.
    dsn: Option<u8>,
    /// When `dsn` was first heard.
    dsn_at: Instant,
    used_at: Instant,
    attempts: u16,
    successes: u16,
    /// No new frame to this neighbour before then.
    held_until: Instant,
}

impl Neighbor {
    /// A slot with nobody in it: all zeros, so that a static one costs no flash.
    pub const EMPTY: Self = Self {
        known: false,
        addr: LinkAddr::Short(0),
        dsn: None,
        dsn_at: Instant::ORIGIN,
        used_at: Instant::ORIGIN,
        attempts: 0,
        successes: 0,
        held_until: Instant::ORIGIN,
    };

    /// Whose entry this is.
    pub const fn addr(&self) -> Option<LinkAddr> {
        if self.known { Some(self.addr) } else { None }
    }

    fn is(&self, addr: LinkAddr) -> bool {
        self.known && self.addr == addr
    }

    /// Expected transmissions per delivered frame in units of 1/128, as RPL's ETX metric
    /// has it (RFC 6551 §4.3.2); `None` before the first success.
    ///
    /// Counted over the last [`ETX_WINDOW`] attempts or so: at that many both counts halve.
    pub fn etx(&self) -> Option<u16> {
        let etx = (u32::from(self.attempts) * 128).checked_div(u32::from(self.successes))?;
        Some(u16::try_from(etx).unwrap_or(u16::MAX))
    }
}

#[derive(Debug)]
pub(super) struct Neighbors<'m> {
    table: &'m mut [Neighbor],
}

impl<'m> Neighbors<'m> {
    pub(super) fn new(table: &'m mut [Neighbor]) -> Self {
        for entry in table.iter_mut() {
            *entry = Neighbor::EMPTY;
        }
        Self { table }
    }

    pub(super) fn find(&self, addr: LinkAddr) -> Option<&Neighbor> {
        self.table.iter().find(|entry| entry.is(addr))
    }

    /// Whether `src` repeats the frame it sent last; remembers `dsn` if not.
    ///
    /// Only frames to be acknowledged are repeated, so only those are asked about. With a
    /// table of no entries nothing is ever a duplicate.
    pub(super) fn is_duplicate(
        &mut self,
        src: LinkAddr,
        dsn: u8,
        now: Instant,
        lifetime: Duration,
    ) -> bool {
        let repeats = self.repeats(src, dsn, now, lifetime);
        let Some(entry) = self.entry(src, now) else {
            return false;
        };
        if repeats {
            return true;
        }
        entry.dsn = Some(dsn);
        entry.dsn_at = now;
        false
    }

    /// Whether a frame with `dsn` from `src` would be a repetition.
    pub(super) fn repeats(&self, src: LinkAddr, dsn: u8, now: Instant, lifetime: Duration) -> bool {
        self.find(src)
            .is_some_and(|entry| entry.dsn == Some(dsn) && now.since(entry.dsn_at) < lifetime)
    }

    /// Counts one attempt over the link to `addr`.
    pub(super) fn record(&mut self, addr: LinkAddr, acknowledged: bool, now: Instant) {
        let Some(entry) = self.entry(addr, now) else {
            return;
        };
        if entry.attempts >= ETX_WINDOW {
            entry.attempts /= 2;
            entry.successes /= 2;
        }
        entry.attempts += 1;
        entry.successes += u16::from(acknowledged);
    }

    pub(super) fn hold(&mut self, addr: LinkAddr, until: Instant, now: Instant) {
        if let Some(entry) = self.entry(addr, now) {
            entry.held_until = until;
        }
    }

    pub(super) fn held_until(&self, addr: LinkAddr) -> Instant {
        self.find(addr)
            .map_or(Instant::ORIGIN, |entry| entry.held_until)
    }

    fn entry(&mut self, addr: LinkAddr, now: Instant) -> Option<&mut Neighbor> {
        let known = self.table.iter().any(|entry| entry.is(addr));
        let entry = if known {
            self.table.iter_mut().find(|entry| entry.is(addr))?
        } else {
            let rank = |entry: &Neighbor| (entry.known, entry.attempts > 0, entry.used_at);
            let entry = self.table.iter_mut().min_by_key(|entry| rank(entry))?;
            *entry = Neighbor {
                known: true,
                addr,
                ..Neighbor::EMPTY
            };
            entry
        };
        entry.used_at = now;
        Some(entry)
    }
}

/// Attempts after which old ones count half. Chosen arbitrarily: some tens of packets.
pub const ETX_WINDOW: u16 = 128;
