//! Arrival of segments: finds the connection of a segment, and handles segments without one.
//!
//! Place: `node` hands in what `ip` found to be for this node; a connection's segments go to
//! [`super::input`]. Here lie demultiplexing, passive opens and resets to strangers. Left out: the
//! half-open table's entries and cookies themselves ([`super::listener`]).
//! Sources: RFC 9293 §3.10.7.1 and .2, RFC 4987, RFC 6191, RFC 5927.

use core::net::Ipv6Addr;

use super::config::{Config, HAS_COOKIES, HAS_SACK, HAS_TIMESTAMPS};
use super::facts::Facts;
use super::listener::{self, HalfOpen, Stage, cookie, possible, possible_mut};
use super::reply::Reply;
use super::segment::Segment;
use super::seq::SeqNum;
use super::types::{Endpoints, IcmpError, IncomingSegment, count};
use super::{SegmentDrop, Tcp};
use crate::time::Instant;
use crate::wire::cursor::Reader;
use crate::wire::tcp::{self as wire, Flags, Header};

impl<'m> Tcp<'m> {
    /// A TCP segment for an address of ours.
    ///
    /// # Errors
    /// Why it, or the rest of it, was dropped; counted already.
    // Out of line: inside its one caller, the two fight for a Cortex-M0+'s eight registers.
    #[inline(never)]
    pub fn on_segment(
        &mut self,
        incoming: &IncomingSegment<'_>,
        now: Instant,
    ) -> Result<(), SegmentDrop> {
        self.set_now(now);
        self.counters.received = self.counters.received.wrapping_add(1);
        let result = self.arrive(incoming);
        if let Err(reason) = result {
            count(self.counters.drops.get_mut(reason as usize));
        }
        result
    }

    /// An ICMPv6 error came about a segment of ours.
    ///
    /// `local`, `remote`: source and destination of the quoted packet; `zone`: theirs, as
    /// [`Endpoints::zone`]; `quoted`: its TCP header, at least the first eight bytes. What was not
    /// sent by a connection of ours, or is not on the way, is ignored (RFC 5927 §4).
    pub fn on_icmp_error(
        &mut self,
        local: &Ipv6Addr,
        remote: &Ipv6Addr,
        zone: u8,
        quoted: &[u8],
        error: IcmpError,
        now: Instant,
    ) {
        self.on_undelivered(local, remote, zone, quoted, Some(error), now);
    }

    /// A segment of ours did not arrive. `error`: what an ICMPv6 message said of it; `None`: this
    /// node's own link gave it up. The other arguments are those of [`Self::on_icmp_error`].
    // Out of line: inside its one caller, the two fight for a Cortex-M0+'s eight registers.
    #[inline(never)]
    pub(crate) fn on_undelivered(
        &mut self,
        local: &Ipv6Addr,
        remote: &Ipv6Addr,
        zone: u8,
        quoted: &[u8],
        error: Option<IcmpError>,
        now: Instant,
    ) {
        self.set_now(now);
        let mut reader = Reader::new(quoted);
        let (Ok(local_port), Ok(remote_port), Ok(seq)) = (reader.u16(), reader.u16(), reader.u32())
        else {
            return;
        };
        let ends = Endpoints {
            local: *local,
            remote: *remote,
            local_port,
            remote_port,
            zone,
        };
        if let Some(connection) = self.find(&ends) {
            let seq = SeqNum::new(seq);
            match error {
                Some(error) => connection.on_icmp_error(seq, error),
                None => connection.on_given_up(seq),
            }
        }
    }

    fn arrive(&mut self, incoming: &IncomingSegment<'_>) -> Result<(), SegmentDrop> {
        if !wire::is_checksum_valid(&incoming.src, &incoming.dst, incoming.bytes) {
            return Err(SegmentDrop::Checksum);
        }
        let mut header = Header::default();
        let Ok(payload) = header.read(incoming.bytes) else {
            return Err(SegmentDrop::Malformed);
        };
        self.keep_to(incoming.offer);
        header.window = header.window.min(self.window_max());
        let ends = Endpoints {
            local: incoming.dst,
            remote: incoming.src,
            local_port: header.dst_port,
            remote_port: header.src_port,
            zone: incoming.zone,
        };
        let is_ce = incoming.ecn & 3 == ECN_CE;
        let mut segment = Segment::new(&header, payload, is_ce, incoming.offer);
        let control = Flags::SYN | Flags::ACK | Flags::RST;
        let opens = segment.flags.bits() & control.bits() == Flags::SYN.bits()
            && self.listener_of(&ends).is_some_and(|l| self.can_serve(l.0));
        #[cfg(feature = "tcple")]
        let waited_ms = core::mem::take(&mut self.waited_ms);
        let result = match self.find(&ends) {
            Some(connection) if !(opens && connection.gives_way_to(&segment)) => {
                #[cfg(feature = "tcple")]
                {
                    connection.waited_ms = waited_ms;
                }
                let arrived = connection.on_segment(&mut segment);
                if arrived == Ok(true) {
                    self.counters.predicted = self.counters.predicted.wrapping_add(1);
                }
                arrived.map(|_| ())
            }
            over => {
                let outlived = over.map(|connection| {
                    connection.end(None);
                    connection.snd_nxt
                });
                self.arrive_without_connection(&ends, &mut segment, outlived)
            }
        };
        if let Err(SegmentDrop::NoConnection | SegmentDrop::UnacceptableAck) = result {
            self.reset(&ends, &segment);
        }
        result
    }

    /// A segment for a listener, or for no socket at all (RFC 9293 §3.10.7.1 and .2). The caller
    /// answers `NoConnection` and `UnacceptableAck` with a reset.
    ///
    /// `outlived`: SND.NXT of an earlier incarnation whose TIME-WAIT this SYN ended.
    fn arrive_without_connection(
        &mut self,
        ends: &Endpoints,
        segment: &mut Segment<'_>,
        outlived: Option<SeqNum>,
    ) -> Result<(), SegmentDrop> {
        // A connection has ends that can be; of a stranger that is not known.
        if !ends.are_possible() {
            return Err(SegmentDrop::Address);
        }
        let listener = self.listener_of(ends).ok_or(SegmentDrop::NoConnection)?;
        if let Some(index) = self.half_open_of(ends) {
            return self.arrive_half_open(index, segment, listener);
        }
        if segment.has(Flags::RST) {
            return Err(SegmentDrop::NoConnection);
        }
        if segment.has(Flags::ACK) {
            return self.arrive_with_cookie(ends, segment, listener);
        }
        if !segment.has(Flags::SYN) {
            return Err(SegmentDrop::NoSyn);
        }
        if !self.can_serve(listener.0) {
            return Err(SegmentDrop::NoSlot);
        }
        let (mut iss, ts_offset) = self.initial_numbers(ends);
        if let Some(snd_nxt) = outlived {
            // Behind everything the peer may still have of the last incarnation.
            iss = iss.later(snd_nxt.plus(1 << 16));
        }
        let agreed = listener::agree(listener.1, segment);
        let mut entry = self.half_open(ends, segment, listener, agreed);
        entry.iss = iss;
        entry.set_stage(Stage::SynAckDue);
        entry.arm(listener.1, self.present());
        if self.enter(&entry, false).is_none() {
            if !HAS_COOKIES || segment.mss < cookie::MSS_MIN {
                // No cookie can carry so small an MSS, and a larger one would exceed what the peer
                // takes.
                return Err(SegmentDrop::HalfOpenFull);
            }
            self.send_cookie(ends, segment, listener, agreed, ts_offset);
        }
        Ok(())
    }

    /// A segment for a handshake: in SYN-RECEIVED or, while it waits for `accept`, in ESTABLISHED.
    // Out of line: inside its one caller, the two fight for a Cortex-M0+'s eight registers.
    #[inline(never)]
    fn arrive_half_open(
        &mut self,
        index: usize,
        segment: &mut Segment<'_>,
        listener: (u8, &'m Config),
    ) -> Result<(), SegmentDrop> {
        let now = self.present();
        let config = listener.1;
        let window = self.window_to_promise(listener.0, config);
        let may_wait = self.may_wait(listener.0);
        let Some(entry) = possible_mut(self.memory.half_open).get_mut(index) else {
            return Err(SegmentDrop::HalfOpenFull);
        };
        let is_done = entry.stage() == Stage::Ready;
        let judged = entry.judge(segment, window);
        match judged {
            // Its SYN-ACK goes out again, and this comes again.
            Ok(()) if !is_done && !may_wait => return Err(SegmentDrop::HalfOpenFull),
            Ok(()) => {
                entry.note_timestamp(segment);
                if !is_done {
                    entry.measure(config, now);
                    entry.on_acknowledged(segment.window(), config, now);
                }
                return self.on_ready(index, segment);
            }
            Err(SegmentDrop::OutsideWindow | SegmentDrop::SynInWindow)
                if entry.is_syn_again(segment) =>
            {
                entry.on_syn_again(segment, listener::agree(config, segment));
                return Ok(());
            }
            Err(SegmentDrop::OutsideWindow) if segment.has(Flags::RST) => {}
            Err(SegmentDrop::ConnectionReset) => entry.set_stage(Stage::Free),
            // Back to LISTEN: the peer has started anew, and sends its SYN again.
            Err(SegmentDrop::SynInWindow) if !is_done => entry.set_stage(Stage::Free),
            Err(SegmentDrop::UnacceptableAck | SegmentDrop::NoAck | SegmentDrop::NoTimestamp) => {}
            Err(_) => entry.challenge(config),
        }
        judged
    }

    /// A handshake is done: the connection that it makes continues with the segment that ended it.
    fn on_ready(&mut self, index: usize, segment: &mut Segment<'_>) -> Result<(), SegmentDrop> {
        let Some(entry) = possible(self.memory.half_open).get(index) else {
            return Err(SegmentDrop::HalfOpenFull);
        };
        if let Some(slot) = self.waiting_for(entry.listener()) {
            self.hand_over_entry(index, slot);
            let connection = self.at_mut(slot).ok_or(SegmentDrop::NoConnection)?;
            return connection.on_segment(segment).map(|_| ());
        }
        if segment.payload.is_empty() && !segment.has(Flags::FIN) {
            return Ok(());
        }
        if let Some(entry) = possible_mut(self.memory.half_open).get_mut(index) {
            entry.miss_data();
        }
        Err(SegmentDrop::NotAccepted)
    }

    /// The connection in a slot takes over a half-open entry, whose place is free then.
    pub(super) fn hand_over_entry(&mut self, index: usize, slot: usize) {
        let Some(place) = possible_mut(self.memory.half_open).get_mut(index) else {
            return;
        };
        let entry = *place;
        place.set_stage(Stage::Free);
        self.hand_over(&entry, slot);
    }

    /// The connection in a slot continues a handshake that is done.
    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    fn hand_over(&mut self, entry: &HalfOpen, slot: usize) {
        let (_, ts_offset) = self.initial_numbers(&entry.ends);
        let window_max = self.window_max();
        if let Some(connection) = self.at_mut(slot) {
            connection.recv.limit(window_max);
            connection.take_over(entry, ts_offset);
        }
    }

    /// Whether another connection of a listener could be accepted: buffers or a free slot wait for
    /// it. If not, a SYN is dropped: the peer tries again, whereas a reset would make it give up.
    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    fn can_serve(&self, listener: u8) -> bool {
        self.waiting_for(listener).is_some() || self.free_slot().is_some()
    }

    /// Whether a handshake of `listener` that is done may wait in the table, or need not. One of
    /// each listener always may: what waits for one application delays no other's.
    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    fn may_wait(&self, listener: u8) -> bool {
        if self.waiting_for(listener).is_some() || self.first_ready(listener).is_none() {
            return true;
        }
        let mut taken = 0;
        for entry in possible(self.memory.half_open) {
            taken += usize::from(entry.stage() == Stage::Ready);
        }
        // The places of those that have none.
        for (index, place) in (0..).zip(possible(self.memory.listeners).iter()) {
            let needs_one = place.config.is_some() && self.first_ready(index).is_none();
            taken += usize::from(needs_one);
        }
        taken < possible(self.memory.half_open).len()
    }

    /// An ACK for a port that is listened on, of no known handshake: the answer to a cookie?
    fn arrive_with_cookie(
        &mut self,
        ends: &Endpoints,
        segment: &mut Segment<'_>,
        listener: (u8, &'m Config),
    ) -> Result<(), SegmentDrop> {
        if !HAS_COOKIES {
            return Err(SegmentDrop::UnacceptableAck);
        }
        let iss = segment.ack().minus(1);
        let irs = segment.seq.minus(1);
        // A guess has one chance in 2^24: it gets that chance only while a peer may hold a cookie.
        let (sent_at, now_ms) = (self.cookie_sent_at, self.now_ms);
        self.cookie_sent_at = sent_at.filter(|at| now_ms.wrapping_sub(*at) < cookie::LIFETIME_MS);
        let valid = cookie::claims(iss, now_ms)
            .filter(|_| self.cookie_sent_at.is_some() && !segment.has(Flags::SYN))
            .filter(|(period, mss)| self.cookie(ends, irs, *period, *mss) == iss);
        let (_, mss) = valid.ok_or(SegmentDrop::UnacceptableAck)?;
        let mut agreed = Facts::NONE;
        if let Some((_, echo)) = segment.timestamps()
            && HAS_TIMESTAMPS
            && listener.1.timestamps
        {
            agreed.set(Facts::TIMESTAMPS);
            agreed.put(Facts::SACK, echo & 1 == 1 && listener.1.sack && HAS_SACK);
        }
        let mut entry = self.half_open(ends, segment, listener, agreed);
        entry.iss = iss;
        entry.irs = irs;
        entry.smss = cookie::mss(mss);
        entry.on_acknowledged(segment.window(), listener.1, self.present());
        if let Some(slot) = self.waiting_for(listener.0) {
            // It needs no place in a table that others may have filled.
            self.hand_over(&entry, slot);
            let connection = self.at_mut(slot).ok_or(SegmentDrop::NoConnection)?;
            return connection.on_segment(segment).map(|_| ());
        }
        if !self.may_wait(listener.0) {
            return Err(SegmentDrop::HalfOpenFull);
        }
        let index = self.enter(&entry, true).ok_or(SegmentDrop::HalfOpenFull)?;
        self.on_ready(index, segment)
    }

    /// A handshake that `segment` begins, or ends by a cookie.
    // Not inlined: it has several callers, and one copy saves flash.
    #[inline(never)]
    fn half_open(
        &self,
        ends: &Endpoints,
        segment: &Segment<'_>,
        listener: (u8, &'m Config),
        agreed: Facts,
    ) -> HalfOpen {
        let rmss = listener.1.rmss.min(segment.rmss);
        let mut entry = HalfOpen::new(ends, listener.0, agreed, rmss);
        entry.irs = segment.seq;
        entry.smss = segment.mss;
        if agreed.has(Facts::TIMESTAMPS)
            && let Some((value, _)) = segment.timestamps()
        {
            entry.ts_recent = value;
        }
        entry
    }

    /// Enters a handshake in a place of the table: a free one, or, when the peer has proven that
    /// it exists (`proven`), one of a peer that has not.
    fn enter(&mut self, entry: &HalfOpen, proven: bool) -> Option<usize> {
        let entries = possible_mut(self.memory.half_open);
        let free = entries.iter().position(HalfOpen::is_free);
        let place = free.or_else(|| {
            proven.then(|| {
                entries
                    .iter()
                    .position(|entry| entry.stage() != Stage::Ready)
            })?
        });
        *entries.get_mut(place?)? = *entry;
        place
    }

    /// Answers a SYN without keeping anything of it.
    fn send_cookie(
        &mut self,
        ends: &Endpoints,
        segment: &Segment<'_>,
        listener: (u8, &Config),
        agreed: Facts,
        ts_offset: u32,
    ) {
        let index = cookie::mss_index(segment.mss);
        let iss = self.cookie(ends, segment.seq, cookie::period(self.now_ms), index);
        // The lowest bit of our timestamp remembers whether the peer takes SACK.
        let clock = self.now_ms.wrapping_add(ts_offset) & !1 | u32::from(agreed.has(Facts::SACK));
        let (value, _) = segment.timestamps().unwrap_or_default();
        count(Some(&mut self.counters.syn_cookies));
        self.cookie_sent_at = Some(self.now_ms);
        let window = self.window_to_promise(listener.0, listener.1);
        let reply = self.begin_reply(ends);
        reply.seq = iss;
        reply.ack = segment.seq.plus(1);
        reply.flags = Flags::SYN | Flags::ACK;
        reply.window = window;
        reply.mss = listener.1.rmss.min(segment.rmss);
        reply.timestamps = (clock, value);
        // Without timestamps, nothing could remember more.
        if agreed.has(Facts::TIMESTAMPS) {
            reply.agreed = agreed;
        }
    }

    fn cookie(&self, ends: &Endpoints, irs: SeqNum, period: u32, mss_index: u32) -> SeqNum {
        // The top bit keeps cookies apart from ISNs and ports, whose salt is 0.
        let salt = 1 << 63 | u64::from(period << 8 | mss_index) << 32 | u64::from(irs.get());
        cookie::make(period, mss_index, self.hash_ends(ends, salt))
    }

    /// A reset for a segment that belongs to nothing (RFC 9293 §3.10.7.1).
    fn reset(&mut self, ends: &Endpoints, segment: &Segment<'_>) {
        if segment.has(Flags::RST) {
            return;
        }
        let reply = self.begin_reply(ends);
        if segment.has(Flags::ACK) {
            reply.seq = segment.ack();
            reply.flags = Flags::RST;
        } else {
            reply.ack = segment.seq.plus(segment.seq_len());
            reply.flags = Flags::RST | Flags::ACK;
        }
    }

    /// A reply to be filled in, which then waits to be polled. One that waited already is
    /// lost, and counted: strangers cost one place, not a queue; and the older one may wait
    /// for a way out that never opens.
    fn begin_reply(&mut self, ends: &Endpoints) -> &mut Reply {
        if self.reply.is_some() {
            count(Some(&mut self.counters.replies_lost));
        }
        let reply = self.reply.insert(Reply::EMPTY);
        reply.ends = *ends;
        reply
    }

    /// Frames of a full segment ([`Config::mss_frames`]) of the connection that `segment` is for or
    /// begins; 0: as many as the link says. `ends`: the segment's destination and source.
    // Out of line: inside its one caller, the two fight for a Cortex-M0+'s eight registers.
    #[inline(never)]
    pub(crate) fn mss_frames(
        &mut self,
        (local, remote): (&Ipv6Addr, &Ipv6Addr),
        zone: u8,
        segment: &[u8],
    ) -> u8 {
        let mut reader = Reader::new(segment);
        let (Ok(remote_port), Ok(local_port)) = (reader.u16(), reader.u16()) else {
            return 0;
        };
        let ends = Endpoints {
            local: *local,
            remote: *remote,
            local_port,
            remote_port,
            zone,
        };
        let config = self.find(&ends).map(|connection| connection.config);
        let config = config.or_else(|| self.listener_of(&ends).map(|listener| listener.1));
        config.map_or(0, |config| config.mss_frames)
    }

    /// The listener for a destination: one bound to the address goes before one for all.
    pub(super) fn listener_of(&self, ends: &Endpoints) -> Option<(u8, &'m Config)> {
        let mut found = None;
        for (index, listener) in possible(self.memory.listeners).iter().enumerate() {
            if let Some(config) = listener.config
                && listener.port == ends.local_port
            {
                if listener.local == ends.local {
                    return Some((index as u8, config));
                }
                if listener.local == Ipv6Addr::UNSPECIFIED {
                    found = Some((index as u8, config));
                }
            }
        }
        found
    }

    fn half_open_of(&self, ends: &Endpoints) -> Option<usize> {
        let mut entries = possible(self.memory.half_open).iter();
        entries.position(|entry| !entry.is_free() && entry.ends == *ends)
    }
}

/// Congestion experienced, in the ECN field (RFC 3168 §5).
const ECN_CE: u8 = 3;
