//! The sender's side: records of prefetched segments, which the peer's link holds and TCP has not
//! sent yet (TCPlE §V).
//!
//! TCP counts none of them as sent: its timers, its window and its flight are what they would be.
//! When TCP sends one of them, unchanged, the link sends a release in its place. Any other segment
//! of the connection makes the peer drop the segments that it holds of it. This end knows that
//! without an answer, since the channel keeps order.

use super::segment::{Flow, Segment};
use crate::limits::IPV6_MTU_MIN;
use crate::wire::tcple::Sdu;

/// Records of the segments prefetched to one peer.
#[derive(Debug)]
pub(crate) struct PrefetchRecords {
    records: [Option<Record>; RECORDS_MAX],
    /// Fillers that may still be sent before the next segment.
    fillers: u8,
    next_flow: u8,
}

/// A prefetched segment, which the peer holds.
#[derive(Clone, Copy, Debug)]
struct Record {
    of: Flow,
    /// The number of the flow in TCPlE's SDUs.
    flow: u8,
    seq: u32,
    len: u16,
}

impl PrefetchRecords {
    pub(crate) const NONE: Self = Self {
        records: [None; RECORDS_MAX],
        fillers: 0,
        next_flow: 0,
    };

    /// Whether another segment can be noted, at a peer that holds `held_len` bytes: it has a place
    /// for each whole packet of them, and a short segment takes one too.
    pub(crate) fn has_room(&self, held_len: u16) -> bool {
        let places = usize::from(held_len) / IPV6_MTU_MIN;
        self.records.iter().flatten().count() < places.min(RECORDS_MAX)
    }

    /// Records a segment that is prefetched; returns its SDU's header. `None`: there is no room, or
    /// the segment may not be prefetched.
    pub(crate) fn note(&mut self, segment: &Segment) -> Option<Sdu> {
        if segment.len == 0 || !segment.is_plain {
            return None;
        }
        let mut known = self.records.iter().flatten();
        let known = known.rfind(|record| record.of == segment.flow);
        let flow = known.map(|record| record.flow);
        let flow = flow.unwrap_or_else(|| {
            self.next_flow = self.next_flow.wrapping_add(1);
            self.next_flow
        });
        let free = self.records.iter_mut().find(|record| record.is_none())?;
        *free = Some(Record {
            of: segment.flow,
            flow,
            seq: segment.seq,
            len: segment.len,
        });
        Some(Sdu::Prefetched { flow })
    }

    /// TCP sends this segment: the release that replaces it, if the peer holds it as the next one.
    pub(crate) fn release(&mut self, segment: &Segment) -> Option<Sdu> {
        let records = self.records.iter().flatten();
        let first = *records.clone().find(|record| record.of == segment.flow)?;
        let is_it = first.seq == segment.seq && first.len == segment.len && segment.is_plain;
        if !is_it {
            self.forget(segment.flow);
            return None;
        }
        if let Some(place) = self.records.iter_mut().find(|record| {
            record.is_some_and(|record| record.of == segment.flow && record.seq == segment.seq)
        }) {
            *place = None;
        }
        self.pack();
        Some(Sdu::Release {
            flow: first.flow,
            bytes: first.len,
        })
    }

    fn forget(&mut self, flow: Flow) {
        for record in &mut self.records {
            record.take_if(|record| record.of == flow);
        }
        self.pack();
    }

    /// Keeps the records in the order in which they came.
    fn pack(&mut self) {
        let mut present = self.records.iter().flatten().copied();
        let mut packed = [None; RECORDS_MAX];
        for place in &mut packed {
            *place = present.next();
        }
        self.records = packed;
    }

    /// The channel is closed: the peer has dropped all segments.
    pub(crate) const fn end(&mut self) {
        *self = Self {
            next_flow: self.next_flow,
            ..Self::NONE
        };
    }

    /// A segment was sent: allows the fillers that keep the event going until its ACK is processed.
    pub(crate) const fn allow_fillers(&mut self) {
        self.fillers = FILLERS_MAX;
    }

    /// Takes the right to send one filler.
    pub(crate) const fn take_filler(&mut self) -> bool {
        match self.fillers.checked_sub(1) {
            Some(left) => {
                self.fillers = left;
                true
            }
            None => false,
        }
    }
}

/// Segments prefetched to one peer at most; the peer's memory is the tighter bound.
const RECORDS_MAX: usize = 4;

/// Empty packets that keep an event going for the 2 to 3 ms that an ACK takes to be dealt with
/// (§V): a pair of them takes 0.5 ms at 1 Mb/s.
const FILLERS_MAX: u8 = 5;
