//! TCP header compression: 20 bytes of TCP, or 60, into five to fifteen.
//!
//! Purpose: each end of a compressed path (a mote, or the router that stands for the hosts outside)
//! keeps a context per connection, and leaves out header fields that the other end can restore from
//! its own context.
//! Place: between `ip`'s packets and their frames: outgoing segments through [`Tcphc::compress`],
//! incoming ones through [`Tcphc::decompress`] once their packet is whole, plain TCP through
//! [`Tcphc::on_plain`]. Formats are [`wire::tcphc`](crate::wire::tcphc)'s.
//! Left out: signalling. A decompressor that fails sends nothing; the sender's retransmission has
//! the complete header.
//!
//! A received segment changes a context only after its TCP checksum was found right. Any segment
//! may be sent as plain TCP at any time.
//!
//! Source: `docs/reference/tcphc.md`, which separates the draft's rules from ours.

mod agreed;
mod belief;
mod choose;
mod config;
mod context;
mod counters;
mod lengths;
mod numbers;
mod overhear;
mod restore;
mod rules;
mod segment;
#[cfg(all(feature = "tcp-small", feature = "mesh", feature = "tcphc"))]
mod storage;
#[cfg(all(feature = "tcp-small", feature = "mesh", not(feature = "tcphc")))]
#[path = "storage_absent.rs"]
mod storage;
mod table;
mod validated;
mod windows;

use core::net::Ipv6Addr;

use crate::random::{KeyedHash, Rng};
use crate::time::{Duration, Instant};
use crate::wire::cursor::{Writer, copy};
use crate::wire::tcp::{self, Flags};
use crate::wire::tcphc::{self, Header, Window};

use agreed::SPELL_SHIFT;
use belief::{awaits_answer, is_acceptable, is_believable};
use choose::{frame_for, is_repeated};
pub use config::{Config, End, Mode};
pub use context::Context;
use context::{Form, State, bit};
use counters::count;
pub use counters::{HeaderDrop, TcphcCounters};
pub use overhear::Overheard;
use overhear::form_of;
use restore::rebuild;
use rules::{Cure, Rules};
use segment::Segment;
#[cfg(all(feature = "tcp-small", feature = "mesh"))]
pub(crate) use storage::Storage;
use table::{CID_MASK, hash_of};

/// One end of the compressed paths of a network.
///
/// The small fields come first, where a Cortex-M0+ reaches them with one instruction. In the
/// compiler's order a mote is 200 B larger.
#[derive(Debug)]
#[repr(C)]
pub struct Tcphc<'m> {
    /// The next context identifier to try, seven bits.
    next_cid: u8,
    rules: Rules,
    /// The interface identifier of the border router that restores headers, where the motes agree
    /// on it with their router.
    offer: Option<[u8; 8]>,
    contexts: &'m mut [Context],
    config: Config,
    hash: KeyedHash,
    /// The addresses met last and their hash, which costs as much as a fifth of a segment: a
    /// mote speaks with few.
    met: ([Ipv6Addr; 2], u32),
    /// When each quarter of the identifiers was last left behind.
    quarters: [Option<Instant>; 4],
    quiet_until: Instant,
    /// Connections in a row of this mote whose SYN arrived only plain, and when the next one may
    /// begin compressed.
    vain: (u8, Instant),
    counters: TcphcCounters,
}

/// The two ends of a connection, seen from this end of the compressed path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flow {
    /// This node, or the host outside that it stands for.
    pub local: Ipv6Addr,
    /// The final destination, even if a routing header has another one.
    pub remote: Ipv6Addr,
    /// Both are nodes of the 6LoWPAN.
    pub within_mesh: bool,
}

/// Where an outgoing segment comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// This node's TCP: it keeps to the rules.
    Own,
    /// A host outside: a segment changes a context only if its checksum and numbers are right.
    Outside,
}

/// A header in its compressed form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Compressed {
    /// Length of the compressed header, written to `out`, bytes.
    pub compressed_len: usize,
    /// Length of the TCP header that it stands for, bytes; the payload follows as it is.
    pub uncompressed_len: usize,
}

/// The segment travels as plain TCP, next header 6.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Plain;

impl Plain {
    /// The consequence for the segment, in a few English words.
    pub const fn reason(&self) -> &'static str {
        "the segment travels as plain TCP"
    }
}

speaks!(Plain);

/// Lengths of a restored header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Restored {
    /// Length of the compressed header, bytes; the payload follows it.
    pub compressed_len: usize,
    /// Length of the TCP header written to `out`, bytes.
    pub uncompressed_len: usize,
}

impl<'m> Tcphc<'m> {
    /// A compressor over borrowed contexts: one per connection that shall be compressed.
    pub fn new(contexts: &'m mut [Context], config: Config, now: Instant, rng: &mut Rng) -> Self {
        contexts.fill(Context::EMPTY);
        let hash = rng.keyed_hash();
        let addresses = hash_of(&hash, [Ipv6Addr::UNSPECIFIED; 2]);
        Self {
            contexts,
            config,
            rules: Rules::of(&config),
            hash,
            met: ([Ipv6Addr::UNSPECIFIED; 2], addresses),
            next_cid: rng.next_u32() as u8 & CID_MASK,
            quarters: [None; 4],
            quiet_until: now + config.quiet,
            offer: None,
            vain: (0, now),
            counters: TcphcCounters::default(),
        }
    }

    /// Gives back the memory it was lent.
    pub fn into_memory(self) -> &'m mut [Context] {
        self.contexts
    }

    /// Counters of headers sent, restored and dropped.
    pub const fn counters(&self) -> &TcphcCounters {
        &self.counters
    }

    /// Whether the ends of a connection agree on compression.
    #[cfg(any(feature = "sleepy", feature = "thread"))]
    pub(crate) const fn is_agreed(&self) -> bool {
        self.config.learned
    }

    /// Whether this end advertises to its mesh that it restores headers.
    pub(crate) fn is_offering(&self) -> bool {
        self.config.learned && self.config.end == End::Router
    }

    /// Takes what the router of this mote says: the interface identifier of the border router that
    /// restores headers; `None`: there is none, or not every relay passes them.
    pub(crate) fn set_offer(&mut self, offer: Option<[u8; 8]>) {
        if self.offer != offer {
            self.offer = offer;
            self.vain = (0, Instant::ORIGIN);
        }
    }

    /// A SYN arrived only plain: what the way up does not pass, or the border router not restore,
    /// other connections need not try for a time that doubles.
    fn begin_later(&mut self, now: Instant) {
        let times = (self.vain.0 + 1).min(VAIN_MAX);
        let wait = Duration::from_micros(1 << (SPELL_SHIFT + u32::from(times)));
        self.vain = (times, now + wait);
    }

    /// Whether a connection is compressed, or will be if it is being accepted. `ports`: the local
    /// and the remote one.
    #[cfg(feature = "tcp-small")]
    pub(crate) fn carries(&self, flow: &Flow, ports: (u16, u16), now: Instant) -> bool {
        let found = self.find_ports(&self.key(flow), ports);
        match found.and_then(|at| self.contexts.get(at)) {
            Some(context) => !context.agreement.is_plain(),
            // The peer's SYN was plain, as a host's is, and the answer will be an offer.
            None => self.config.learned && self.would_carry(flow, now),
        }
    }

    /// Whether a connection that begins now will be compressed, provided that the peer has room.
    pub(crate) fn would_carry(&self, flow: &Flow, now: Instant) -> bool {
        let key = self.key(flow);
        self.may_begin(flow, now) && self.has_cid(now) && self.free_slot(&key, now).is_some()
    }

    /// Compresses the header of an outgoing `segment` (header and payload, checksum in place) into
    /// `out`, whose length is the most that the first frame can hold.
    ///
    /// # Errors
    ///
    /// [`Plain`]: the segment has to be sent as it is, and counts as sent.
    pub fn compress(
        &mut self,
        flow: &Flow,
        segment: &[u8],
        origin: Origin,
        now: Instant,
        out: &mut [u8],
    ) -> Result<Compressed, Plain> {
        let compressed = self.try_compress(flow, segment, origin, now, out);
        if compressed.is_err() {
            count(&mut self.counters.sent, 3);
        }
        compressed
    }

    fn try_compress(
        &mut self,
        flow: &Flow,
        segment: &[u8],
        origin: Origin,
        now: Instant,
        out: &mut [u8],
    ) -> Result<Compressed, Plain> {
        let seg = Segment::parse(segment).ok_or(Plain)?;
        if origin == Origin::Outside && !tcp::is_checksum_valid(&flow.local, &flow.remote, segment)
        {
            return Err(Plain);
        }
        let (at, goes_plain) = self.admit(flow, &seg, origin, now).ok_or(Plain)?;
        let rules = self.rules;
        let context = self.contexts.get_mut(at).ok_or(Plain)?;
        let frame = frame_for(context, &seg, rules, now);
        let header_len = usize::from(seg.header_len);
        let (header, form) = match &frame {
            Some(frame) => (Header::Compressed(*frame), usize::from(!frame.mostly) + 1),
            None => {
                let tcp = segment.get(..header_len).unwrap_or_default();
                let cid = context.cid;
                (Header::Full { cid, tcp }, 0)
            }
        };
        let explicit = frame.is_none_or(|frame| frame.window != Window::Elided);
        let mut w = Writer::new(out);
        let has_room = header.emit(&mut w).is_ok();
        let fits = has_room && !goes_plain;
        let compressed_len = w.written();
        if !has_room && seg.has(Flags::SYN) && rules.cured(Cure::Fit) {
            context.set_state(State::Free);
            return Err(Plain);
        }
        if form == 0 && !seg.has(Flags::SYN) && context.state() != State::Offered {
            // It may make the context at the peer, which then does not know what this end had sent.
            context.put(bit::EDGE, !rules.cured(Cure::Joined));
        }
        if seg.has(Flags::RST) {
            // Its receiver may think it a stranger's: nothing may count on it.
            context.end_if(seg.seq() == context.u_seq || seg.seq() == context.r_ack);
        } else {
            context.on_sent(&seg, explicit || !fits, rules, now);
            context.put(bit::REFRESH | bit::REFRESH_FULL, false);
            after_sending(context, &seg);
        }
        if !fits {
            return Err(Plain);
        }
        count(&mut self.counters.sent, form);
        Ok(Compressed {
            compressed_len,
            uncompressed_len: header_len,
        })
    }

    /// The context of an outgoing segment, made if need be, and whether the segment goes plain all
    /// the same. `None`: it has none, or must not count.
    fn admit(
        &mut self,
        flow: &Flow,
        seg: &Segment,
        origin: Origin,
        now: Instant,
    ) -> Option<(usize, bool)> {
        let key = self.meet(flow);
        let ports = (seg.header.src_port, seg.header.dst_port);
        let at = self.context_to_send(&key, ports, seg, flow, now)?;
        let (rules, is_agreed) = (self.rules, self.config.learned);
        let speaks = self.speaks_with(flow);
        if is_agreed && speaks {
            self.offer_again(at, &key, flow, now);
        }
        let context = self.contexts.get_mut(at)?;
        if origin == Origin::Outside && !is_believable(context, seg, rules) {
            if seg.timestamps().is_some() && rules.cured(Cure::Uncounted) {
                context.put(bit::UNCOUNTED, true);
            }
            return None;
        }
        let goes_plain = is_agreed && goes_plain(context, seg, speaks, rules, now);
        Some((at, goes_plain))
    }

    /// Restores the header at the start of `bytes`, a whole packet from its NHC byte on, into
    /// `out` (60 bytes always suffice), and learns from it. `flow`: `local` is the destination.
    ///
    /// # Errors
    /// [`HeaderDrop`]; then nothing has changed.
    pub fn decompress(
        &mut self,
        flow: &Flow,
        bytes: &[u8],
        now: Instant,
        out: &mut [u8],
    ) -> Result<Restored, HeaderDrop> {
        let restored = self.try_decompress(flow, bytes, now, out);
        self.count_restored(restored)
    }

    fn try_decompress(
        &mut self,
        flow: &Flow,
        bytes: &[u8],
        now: Instant,
        out: &mut [u8],
    ) -> Result<Restored, HeaderDrop> {
        let (frame, payload) = Header::parse(bytes).map_err(HeaderDrop::Malformed)?;
        let compressed_len = bytes.len() - payload.len();
        let uncompressed_len = match frame {
            Header::Full { cid, tcp } => {
                let segment = bytes.get(tcphc::FULL_OVERHEAD..).unwrap_or_default();
                if copy(out, tcp) != tcp.len() {
                    return Err(HeaderDrop::Full);
                }
                self.take_full(flow, cid, segment, now)?;
                tcp.len()
            }
            Header::Compressed(frame) => self.take_compressed(flow, &frame, payload, now, out)?,
        };
        Ok(Restored {
            compressed_len,
            uncompressed_len,
        })
    }

    /// Learns from an incoming `segment` that came with a full header naming context `cid`;
    /// there is nothing to restore. `flow`: `local` is the destination.
    ///
    /// # Errors
    /// [`HeaderDrop`]; then nothing has changed.
    pub(crate) fn on_full(
        &mut self,
        flow: &Flow,
        cid: u8,
        segment: &[u8],
        now: Instant,
    ) -> Result<(), HeaderDrop> {
        let taken = self.take_full(flow, cid, segment, now);
        self.count_restored(taken)
    }

    fn take_full(
        &mut self,
        flow: &Flow,
        cid: u8,
        segment: &[u8],
        now: Instant,
    ) -> Result<(), HeaderDrop> {
        let seg = Segment::parse(segment).ok_or(HeaderDrop::BadTcp)?;
        if !tcp::is_checksum_valid(&flow.remote, &flow.local, segment) {
            return Err(HeaderDrop::Checksum);
        }
        let key = self.meet(flow);
        let at = self.context_received(&key, cid, &seg, now);
        if self.learn(at, &seg, Form::Full, now) {
            self.agree(at);
        }
        Ok(())
    }

    fn take_compressed(
        &mut self,
        flow: &Flow,
        frame: &tcphc::Compressed,
        payload: &[u8],
        now: Instant,
        out: &mut [u8],
    ) -> Result<usize, HeaderDrop> {
        let key = self.meet(flow);
        let at = self
            .find_cid(&key, frame.cid)
            .ok_or(HeaderDrop::NoContext)?;
        let context = self.contexts.get(at).ok_or(HeaderDrop::NoContext)?;
        let (len, seg) = rebuild(context, flow, frame, payload, self.rules, out)?;
        self.learn(Some(at), &seg, form_of(frame), now);
        self.agree(Some(at));
        Ok(len)
    }

    fn count_restored<T>(&mut self, taken: Result<T, HeaderDrop>) -> Result<T, HeaderDrop> {
        match taken {
            Ok(_) => self.counters.restored = self.counters.restored.wrapping_add(1),
            Err(reason) => count(&mut self.counters.drops, reason.index()),
        }
        taken
    }

    /// Learns from an incoming `segment` that came as plain TCP. `flow`: `local` is the
    /// destination. It goes to TCP, or out, whatever this finds.
    pub fn on_plain(&mut self, flow: &Flow, segment: &[u8], now: Instant) {
        let Some(seg) = Segment::parse(segment) else {
            return;
        };
        let key = self.meet(flow);
        let ports = (seg.header.dst_port, seg.header.src_port);
        let Some(at) = self.find_ports(&key, ports) else {
            return;
        };
        if !tcp::is_checksum_valid(&flow.remote, &flow.local, segment) {
            return;
        }
        let Some(context) = self.contexts.get_mut(at) else {
            return;
        };
        if seg.has(Flags::SYN) {
            match self.config.learned {
                true if on_plain_syn(context, &seg, (self.config.end, self.rules, now)) => {
                    self.begin_later(now);
                }
                // A connection that is opened plain, or answered so, stays plain.
                false if context.state() == State::Offered => context.set_state(State::Free),
                _ => {}
            }
            return;
        }
        if awaits_answer(context, self.rules) {
            return;
        }
        let is_learned = self.learn(Some(at), &seg, Form::Full, now);
        let Some(context) = self.contexts.get_mut(at) else {
            return;
        };
        if self.config.learned && !is_learned {
            return;
        }
        // A plain segment confirms the data that it acknowledges, but not that its sender has a
        // context: an end without a context accepts full headers only.
        if self.rules.cured(Cure::Recreated) {
            context.put(bit::UNSURE, true);
        }
        // A header as long as this one may not have fitted its frame.
        let says = usize::from(seg.header_len) <= LEN_SURE && !seg.has(Flags::RST);
        if self.config.learned && says {
            context.agreement.go_plain(now);
        }
    }

    /// The other end has sent a compressed or a full header.
    fn agree(&mut self, at: Option<usize>) {
        self.vain = (0, Instant::ORIGIN);
        if let Some(context) = at.and_then(|at| self.contexts.get_mut(at)) {
            context.agreement.go_compressed();
        }
    }

    /// Updates a context from a validated segment; returns whether the segment counts.
    fn learn(&mut self, at: Option<usize>, seg: &Segment, form: Form, now: Instant) -> bool {
        let rules = self.rules;
        let Some(context) = at.and_then(|at| self.contexts.get_mut(at)) else {
            return false;
        };
        if form == Form::Full && !is_acceptable(context, seg, rules) {
            return false;
        }
        if seg.has(Flags::RST) {
            context.end_if(seg.seq() == context.r_seq || seg.seq() == context.u_ack);
            return true;
        }
        context.on_validated(seg, form, rules, now);
        if !seg.has(Flags::SYN) {
            context.go_on();
        }
        context.end_if(context.is_closed());
        true
    }
}

/// Whether a segment goes plain where compression is agreed: the other end is plain, nobody offers
/// to restore headers any more, or it is the turn of this repetition.
fn goes_plain(
    context: &mut Context,
    seg: &Segment,
    speaks: bool,
    rules: Rules,
    now: Instant,
) -> bool {
    if !speaks {
        context.agreement.end(now);
    }
    let is_vain = is_repeated(context, seg, rules) && !context.has(bit::HEARD);
    context.agreement.is_plain() || is_vain && context.agreement.repeat(seg.seq())
}

/// A SYN, or the answer to one, came plain where compression is agreed; returns whether it answers
/// a SYN of this end that arrived only plain.
fn on_plain_syn(context: &mut Context, seg: &Segment, at: (End, Rules, Instant)) -> bool {
    let (end, rules, now) = at;
    let is_same = context.peer_isn == seg.seq() as u16;
    if end == End::Router && !is_same {
        // The mote has another connection on these ports.
        context.set_state(State::Free);
    } else if !seg.has(Flags::ACK) {
        // The SYN of a host is always plain, and may be a stranger's: it says nothing.
        if end == End::Router {
            context.agreement.go_plain(now);
        }
    } else if !awaits_answer(context, rules) {
        context.agreement.go_plain(now);
    } else if seg.ack() == Some(context.u_seq) {
        // The router has no room, or the answer did not come from there. It may have later.
        let is_vain = context.agreement.answer_plain(now);
        context.join_late();
        context.on_validated(seg, Form::Full, rules, now);
        context.put(bit::UNSURE, true);
        return is_vain;
    }
    false
}

fn after_sending(context: &mut Context, seg: &Segment) {
    match context.state() {
        State::Offered if seg.has(Flags::SYN) => {
            // The scale counts from here; a SYN's own window is not scaled, which only makes
            // the bound wider.
            if let Some(shift) = seg.header.options.window_scale {
                context.set_shift(shift);
            }
        }
        State::Offered if !context.has(bit::ANSWERED) => {}
        _ => context.go_on(),
    }
    context.end_if(context.is_closed());
}

/// 64 spells, 18 minutes, between two attempts.
const VAIN_MAX: u8 = 6;

/// The longest TCP header that fits any first frame whole: 20 bytes, and 20 of options.
const LEN_SURE: usize = 40;

#[cfg(test)]
mod tests;
