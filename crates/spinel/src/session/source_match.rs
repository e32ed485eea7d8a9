//! Source matching: the tables of neighbours for which a frame waits, by which the radio sets the
//! frame pending bit of its ACKs.
//!
//! The session keeps the wanted entries and those that the radio has, and sends the difference.
//! When a table is full, source matching is switched off: every ACK to a poll then has the bit. A
//! child may listen in vain, and misses nothing. Once fewer entries are wanted than did not fit,
//! the tables are written anew.

use std::collections::BTreeSet;

use crate::frame::Status;
use crate::packed::Writer;

/// A neighbour that polls.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Peer {
    /// By its short address.
    Short(u16),
    /// By its extended address, big endian.
    Extended([u8; 8]),
}

impl Peer {
    pub(super) const fn is_short(self) -> bool {
        matches!(self, Self::Short(_))
    }

    pub(super) fn emit(self, writer: Writer) -> Writer {
        match self {
            Self::Short(short) => writer.u16(short),
            Self::Extended(extended) => writer.eui64(extended),
        }
    }
}

/// One request that changes a table.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Change {
    Insert(Peer),
    Remove(Peer),
    /// A whole table, of which these are all.
    Replace {
        is_short: bool,
        peers: Vec<Peer>,
    },
}

#[derive(Clone, Debug, Default)]
pub(super) struct SourceMatch {
    wanted: BTreeSet<Peer>,
    applied: BTreeSet<Peer>,
    /// Whether `applied` is known to be what the table of short addresses holds, and that of
    /// extended ones.
    is_known: [bool; 2],
    /// How many were wanted when a table was full.
    full_at: Option<usize>,
    /// A table was full, and is being written anew.
    is_refilling: bool,
}

impl SourceMatch {
    pub(super) fn set(&mut self, peer: Peer, is_pending: bool) {
        if is_pending {
            self.wanted.insert(peer);
        } else {
            self.wanted.remove(&peer);
        }
    }

    pub(super) fn replace(&mut self, peers: impl IntoIterator<Item = Peer>) {
        self.wanted = peers.into_iter().collect();
    }

    /// Whether source matching is on.
    pub(super) const fn is_enabled(&self) -> bool {
        self.full_at.is_none() && !self.is_refilling
    }

    /// The radio has forgotten everything.
    pub(super) fn forget(&mut self) {
        self.applied.clear();
        self.is_known = [false; 2];
        (self.full_at, self.is_refilling) = (None, false);
    }

    pub(super) fn next(&self) -> Option<Change> {
        if self.full_at.is_some_and(|full| self.wanted.len() >= full) {
            return None;
        }
        let [is_short_known, is_extended_known] = self.is_known;
        if !is_short_known || !is_extended_known {
            let is_short = !is_short_known;
            let room = if is_short { SHORT_MAX } else { EXTENDED_MAX };
            let peers = self.wanted.iter().copied();
            let peers = peers.filter(|peer| peer.is_short() == is_short);
            return Some(Change::Replace {
                is_short,
                peers: peers.take(room).collect(),
            });
        }
        let mut surplus = self.applied.difference(&self.wanted);
        let mut missing = self.wanted.difference(&self.applied);
        let remove = surplus.next().map(|peer| Change::Remove(*peer));
        remove.or_else(|| missing.next().map(|peer| Change::Insert(*peer)))
    }

    pub(super) fn on_result(&mut self, change: &Change, result: Result<(), Status>) {
        match (change, result) {
            (Change::Insert(peer), Ok(()) | Err(Status::Already)) => {
                self.applied.insert(*peer);
            }
            // What cannot be removed is not there.
            (Change::Remove(peer), _) => {
                self.applied.remove(peer);
            }
            (Change::Replace { is_short, peers }, result)
                if result.is_ok() || (peers.is_empty() && result != Err(Status::NoMemory)) =>
            {
                self.applied.retain(|peer| peer.is_short() != *is_short);
                self.applied.extend(peers);
                self.is_known[usize::from(!is_short)] = true;
                if self.is_known == [true; 2] && self.full_at.take().is_some() {
                    self.is_refilling = true;
                }
            }
            (Change::Insert(_) | Change::Replace { .. }, _) => {
                self.forget();
                self.full_at = Some(self.wanted.len());
            }
        }
        // Not before the last entry: an ACK to it would say that nothing waits.
        if self.is_refilling && self.next().is_none() {
            self.is_refilling = false;
        }
    }
}

/// Entries in a request that writes a whole table; the others are inserted one by one. Such a
/// request is shorter than one to send a frame, 148 bytes. A simulated RCP drops one of 184 bytes
/// as a framing error, and a real one may have as little room.
const SHORT_MAX: usize = 50;
const EXTENDED_MAX: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    /// A radio with this many places in each table.
    struct Table(Vec<Peer>, usize);

    impl Table {
        fn take(&mut self, change: &Change) -> Result<(), Status> {
            match change {
                Change::Insert(peer) => {
                    let is_full = self.alike(peer.is_short()) == self.1;
                    (!is_full)
                        .then(|| self.0.push(*peer))
                        .ok_or(Status::NoMemory)
                }
                Change::Remove(peer) => {
                    let place = self.0.iter().position(|known| known == peer);
                    self.0.remove(place.ok_or(Status::NotFound)?);
                    Ok(())
                }
                Change::Replace { is_short, peers } => {
                    self.0.retain(|peer| peer.is_short() != *is_short);
                    for peer in peers {
                        self.take(&Change::Insert(*peer))?;
                    }
                    Ok(())
                }
            }
        }

        fn alike(&self, is_short: bool) -> usize {
            let alike = self.0.iter().filter(|peer| peer.is_short() == is_short);
            alike.count()
        }
    }

    /// Applies all changes; returns the number of requests.
    fn settle(matching: &mut SourceMatch, table: &mut Table) -> usize {
        let mut requests = 0;
        while let Some(change) = matching.next() {
            let result = table.take(&change);
            matching.on_result(&change, result);
            requests += 1;
            assert!(requests < 2_000, "it never rests");
        }
        requests
    }

    #[test]
    fn only_differences_are_sent() {
        let (mut matching, mut table) = (SourceMatch::default(), Table(Vec::new(), 10));
        let (one, two) = (Peer::Short(1), Peer::Extended([2; 8]));
        matching.set(one, true);
        assert_eq!(settle(&mut matching, &mut table), 2);
        assert_eq!(table.0, [one]);
        matching.set(two, true);
        matching.set(one, true);
        assert_eq!(settle(&mut matching, &mut table), 1);
        assert_eq!(table.0, [one, two]);
        matching.set(one, false);
        matching.set(Peer::Short(9), false);
        assert_eq!(settle(&mut matching, &mut table), 1);
        assert_eq!(table.0, [two]);
        matching.replace([one]);
        assert_eq!(settle(&mut matching, &mut table), 2);
        assert_eq!(table.0, [one]);
        matching.forget();
        table.0.clear();
        assert_eq!(settle(&mut matching, &mut table), 2);
        assert_eq!(table.0, [one]);
    }

    #[test]
    fn a_full_table_is_switched_off_until_fewer_are_wanted() {
        let (mut matching, mut table) = (SourceMatch::default(), Table(Vec::new(), 3));
        for short in 0..3 {
            matching.set(Peer::Short(short), true);
            settle(&mut matching, &mut table);
            assert!(matching.is_enabled());
        }
        matching.set(Peer::Short(3), true);
        settle(&mut matching, &mut table);
        assert!(!matching.is_enabled());
        // One more, and one less: still too many, and nothing is sent.
        matching.set(Peer::Short(4), true);
        matching.set(Peer::Short(0), false);
        assert_eq!(settle(&mut matching, &mut table), 0);
        assert!(!matching.is_enabled());
        matching.set(Peer::Short(1), false);
        assert_eq!(settle(&mut matching, &mut table), 2);
        assert!(matching.is_enabled());
        assert_eq!(table.0, [2, 3, 4].map(Peer::Short));
    }

    #[test]
    fn a_large_table_is_switched_on_when_it_is_whole() {
        let (mut matching, mut table) = (SourceMatch::default(), Table(Vec::new(), 100));
        matching.replace((0..101).map(Peer::Short));
        settle(&mut matching, &mut table);
        assert!(!matching.is_enabled());
        matching.set(Peer::Short(100), false);
        while let Some(change) = matching.next() {
            assert!(!matching.is_enabled());
            let result = table.take(&change);
            matching.on_result(&change, result);
        }
        assert!(matching.is_enabled());
        assert_eq!(table.0.len(), 100);
        // It stays on while entries come and go.
        matching.set(Peer::Short(5), false);
        assert!(matching.is_enabled());
    }

    #[test]
    fn a_table_that_cannot_be_set_whole_is_empty_at_first() {
        let mut matching = SourceMatch::default();
        for is_short in [true, false] {
            let change = matching.next().unwrap();
            assert_eq!(
                change,
                Change::Replace {
                    is_short,
                    peers: vec![]
                }
            );
            matching.on_result(&change, Err(Status::PropertyNotFound));
        }
        assert!(matching.is_enabled() && matching.next().is_none());
    }

    #[test]
    fn large_tables_are_written_in_one_request_and_many() {
        let (mut matching, mut table) = (SourceMatch::default(), Table(Vec::new(), 1_000));
        matching.replace((0..1_000).map(Peer::Short));
        assert_eq!(settle(&mut matching, &mut table), 2 + 1_000 - SHORT_MAX);
        assert_eq!(table.0.len(), 1_000);
    }
}
