//! Settings and counters of a parent of sleeping nodes, and its state of each child.

use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;

/// How packets for sleeping children are kept and sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IndirectConfig {
    /// How long a child may be silent.
    pub child_timeout: Duration,
    /// The most bytes that the packets for one child may take, with seven more for each packet. A
    /// value above the memory that all children share sets no limit: a child can use what the
    /// others leave.
    pub child_bytes_max: usize,
    /// Whether one request delivers all waiting packets; if not, one frame (as OpenThread).
    pub drain: bool,
    /// Whether frames for a child that listens stand before all others (TCPlp §9.5).
    pub priority: bool,
    /// Whether frames for children get as many attempts as other frames, in quick succession; if
    /// not, one attempt for each request.
    pub retries: bool,
    /// Whether a data frame of a child counts as a data request, too.
    pub data_asks: bool,
}

impl IndirectConfig {
    /// All that makes a child's receiver rest sooner.
    pub const DEFAULT: Self = Self {
        child_timeout: CHILD_TIMEOUT,
        child_bytes_max: usize::MAX,
        drain: true,
        priority: true,
        retries: true,
        data_asks: true,
    };
}

/// A child, borrowed from the caller; [`Child::EMPTY`] to begin with.
///
/// The small fields come first, where a Cortex-M0+ reaches them with one instruction. In the
/// compiler's order a parent is 140 B larger.
#[derive(Clone, Debug)]
#[repr(C)]
pub struct Child {
    /// How many requests the child has sent, up to 255: how much is known about its silences.
    pub(super) requests: u8,
    /// Deliveries of its first packet that broke off after it had taken a part.
    pub(super) failures: u8,
    /// Whether the entry is one of a child, or of one that has gone.
    is_used: bool,
    /// The node is no child any more, but the radio still holds its flag.
    pub(super) is_over: bool,
    /// Whether the child's flag in the radio says that packets wait.
    pub(super) is_shown: bool,
    /// Whether the delivery of its first packet broke off, and where.
    is_halted: bool,
    addr: LinkAddr,
    pub(super) heard_at: Instant,
    /// The longest time for which it was silent, forgotten over [`LULL_MEMORY`].
    pub(super) lull: Duration,
    /// Until when the child's receiver is on; the origin: it is off.
    pub(super) awake_until: Instant,
    /// When the first delivery failed after its last ACK; the origin: none did.
    pub(super) failing_since: Instant,
    halt: Progress,
}

impl Child {
    /// A free entry: all zeros, so that a static one costs no flash.
    pub const EMPTY: Self = Self {
        is_used: false,
        addr: LinkAddr::Short(0),
        is_over: false,
        is_shown: false,
        heard_at: Instant::ORIGIN,
        lull: Duration::ZERO,
        requests: 0,
        awake_until: Instant::ORIGIN,
        failures: 0,
        failing_since: Instant::ORIGIN,
        is_halted: false,
        halt: Progress::NONE,
    };

    /// A child that is heard for the first time. `is_shown`: as the radio has it of this entry.
    pub(super) const fn new(addr: LinkAddr, is_shown: bool) -> Self {
        Self {
            is_used: true,
            addr,
            is_shown,
            ..Self::EMPTY
        }
    }

    /// The address of the child; `None`: the entry is free, or the child has gone.
    pub const fn addr(&self) -> Option<LinkAddr> {
        match self.is_over {
            true => None,
            false => self.last_addr(),
        }
    }

    /// The address of the child, or of the one that has gone; `None`: the entry is free.
    pub(super) const fn last_addr(&self) -> Option<LinkAddr> {
        match self.is_used {
            true => Some(self.addr),
            false => None,
        }
    }

    /// Whether the child's receiver is on.
    pub(super) fn is_awake(&self) -> bool {
        self.awake_until != Instant::ORIGIN
    }

    /// When its receiver goes off, or it has been silent for `timeout`.
    pub(super) fn next_deadline(&self, timeout: Duration) -> Instant {
        let end = self.heard_at + timeout;
        let until = self.awake_until.if_any();
        until.map_or(end, |until| until.min(end))
    }

    /// Notes that the delivery of its first packet broke off.
    pub(super) const fn halt(&mut self, progress: Progress) {
        (self.is_halted, self.halt) = (true, progress);
    }

    /// Where the delivery of its first packet broke off.
    pub(super) fn halted(&self) -> Option<Progress> {
        self.is_halted.then_some(self.halt)
    }

    /// As [`Self::halted`]; forgets it.
    pub(super) fn take_halt(&mut self) -> Option<Progress> {
        let halted = self.halted();
        self.is_halted = false;
        halted
    }

    /// Notes that the child was heard; `is_new`: for the first time.
    pub(super) fn heard(&mut self, is_new: bool, now: Instant) {
        if !is_new {
            let gap = now.since(self.heard_at);
            let forgotten = gap.as_micros().saturating_mul(self.lull.as_micros());
            let forgotten = forgotten.checked_div(LULL_MEMORY.as_micros()).unwrap_or(0);
            self.lull = gap.max(self.lull - Duration::from_micros(forgotten));
        }
        self.heard_at = now;
    }

    /// Whether the child has been silent for longer than it ever is: it may be off, or have gone. A
    /// child that has asked once may rest for as long as any, which each further request makes half
    /// as likely. `timeout`: how long a child may be silent.
    pub(super) fn is_overdue(&self, timeout: Duration, now: Instant) -> bool {
        let requests = u32::from(self.requests.saturating_sub(1));
        let assumed_us = timeout.as_micros() / LULL_SHARE;
        let assumed_us = assumed_us.checked_shr(requests).unwrap_or(0);
        let lull = self.lull.max(Duration::from_micros(assumed_us));
        self.addr().is_some() && now.since(self.heard_at) > lull.saturating_mul(2) + OVERDUE_MIN
    }

    pub(super) fn is(&self, addr: &LinkAddr) -> bool {
        self.addr().is_some_and(|child| child.is(addr))
    }

    /// Whether this was the entry of `addr`, which the radio still knows.
    pub(super) fn is_over_of(&self, addr: &LinkAddr) -> bool {
        self.is_over && self.last_addr().is_some_and(|former| former.is(addr))
    }
}

/// The progress of the delivery of a packet. An interrupted delivery resumes at this point, with
/// the same tag and the same sequence number, so that a child that has received the frame with the
/// missing ACK recognises the duplicate.
///
/// Source: OpenThread keeps the same of a child's frame between requests (`IndirectSender`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Progress {
    pub(super) tag: u16,
    /// Check sum of the packet as it is cut into frames, which may differ the next time: a header
    /// may then be compressed otherwise.
    pub(super) digest: u16,
    /// Frames that the child has acknowledged.
    pub(super) taken: u8,
    /// The sequence number of the next frame, if that was already sent without an ACK.
    pub(super) dsn: Option<u8>,
    /// When the last frame was acknowledged or given up.
    pub(super) at: Instant,
}

impl Progress {
    /// No delivery has broken off.
    pub(super) const NONE: Self = Self {
        tag: 0,
        digest: 0,
        taken: 0,
        dsn: None,
        at: Instant::ORIGIN,
    };

    /// Whether the child still has the frames of this packet that it has acknowledged.
    pub(super) fn is_known(&self, digest: u16, now: Instant) -> bool {
        self.digest == digest && self.is_recent(now)
    }

    /// Whether the child still has the frames that it has acknowledged, of whatever packet.
    pub(super) fn is_recent(&self, now: Instant) -> bool {
        now.since(self.at) < KNOWN
    }
}

/// How long a child surely remembers the fragments that it has: it forgets them 4 s after the last
/// one (`REASSEMBLY_TIMEOUT`), and the attempts at the next one take less than 1 s.
const KNOWN: Duration = Duration::from_secs(3);

/// Counters of packets for children; all wrap at 2^32.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct IndirectCounters {
    /// Data requests received (IEEE 802.15.4-2006 §7.3.4).
    pub requests: u32,
    /// Data requests by which a node became a child.
    pub children: u32,
    /// Data requests of unknown nodes for which the table had no room.
    pub strangers: u32,
    /// Children that were not heard for too long, asked for as long and acknowledged nothing, began
    /// anew, or made place for others.
    pub gone: u32,
    /// Packets kept for sleeping children.
    pub kept: u32,
    /// Packets that took the place of an older copy of theirs, or were left out for it; they do not
    /// count as kept again.
    pub merged: u32,
    /// Packets of which a child has acknowledged all frames.
    pub delivered: u32,
    /// Deliveries that broke off because a frame was not acknowledged.
    pub failed: u32,
    /// Deliveries that went on with a frame which the child may have: it takes that one for a
    /// repeated fragment where its MAC has forgotten the sequence number by then.
    pub resumed: u32,
    /// Packets that were not kept because there was no room.
    pub full: u32,
    /// Packets dropped with their child, to make room for others, because deliveries broke off too
    /// often, or because their route led elsewhere by then.
    pub dropped: u32,
}

/// A silence is forgotten over so long: a child may rest for minutes after minutes in which it
/// asked ten times a second.
const LULL_MEMORY: Duration = Duration::from_secs(2_400);

/// The silence assumed of a new child is the silence that it is allowed, divided by this: twice the
/// fifth part of the default is the time for which a child rests at
/// [`REST`](crate::mac::poll::REST).
const LULL_SHARE: u64 = 5;

/// No child is overdue sooner: it may have been there for no longer, or miss a request.
const OVERDUE_MIN: Duration = Duration::from_secs(5);

/// How long a child may be silent: two polls and a half at [`REST`](crate::mac::poll::REST).
pub(super) const CHILD_TIMEOUT: Duration = Duration::from_secs(600);
