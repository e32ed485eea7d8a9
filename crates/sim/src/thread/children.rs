//! The children of a router: who they are, and the frames that wait for those that sleep.

use std::collections::VecDeque;
use std::net::Ipv6Addr;

use motet::thread::mle::Numbers;
use motet::time::{Duration, Instant};
use motet::wire::LinkAddr;

use super::OWN_SHORT;
use super::outgoing::Outgoing;

/// One child.
#[derive(Debug)]
pub(super) struct Child {
    pub(super) extended: [u8; 8],
    pub(super) short: u16,
    pub(super) mode: u8,
    pub(super) timeout: Duration,
    pub(super) heard_at: Instant,
    pub(super) addresses: Vec<Ipv6Addr>,
    /// The numbers of its last MLE message.
    pub(super) mle: Numbers,
    /// Key sequence and counter of its last frame.
    pub(super) mac_counter: Option<(u32, u32)>,
    /// What was sent to it to prove that its answer is new, until it has answered.
    pub(super) challenge: Option<[u8; 8]>,
    /// Whether it has got a short address; before it is a candidate.
    pub(super) is_attached: bool,
    /// Whether one of its frames is under way.
    pub(super) is_served: bool,
    waiting: VecDeque<Outgoing>,
    /// How often the first of them went unacknowledged.
    failures: u8,
}

impl Child {
    pub(super) const fn sleeps(&self) -> bool {
        self.mode & RECEIVER_ON == 0
    }

    pub(super) fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    pub(super) const fn addrs(&self) -> [LinkAddr; 2] {
        [
            LinkAddr::Extended(self.extended),
            LinkAddr::Short(self.short),
        ]
    }

    /// Keeps frames of one packet until they are asked for; returns whether there was room.
    pub(super) fn keep(&mut self, frames: Vec<Outgoing>) -> bool {
        let has_room = self.waiting.len() + frames.len() <= WAITING_MAX;
        if has_room {
            let short = self.short;
            let kept = frames.into_iter().map(|frame| Outgoing {
                kept_for: Some(short),
                ..frame
            });
            self.waiting.extend(kept);
        }
        has_room
    }

    /// Drops what waits: a child that attaches anew takes nothing of before.
    pub(super) fn forget_waiting(&mut self) {
        self.waiting.clear();
        self.failures = 0;
        self.is_served = false;
    }

    /// The frame to send now that it listens.
    pub(super) fn next_frame(&mut self) -> Option<Outgoing> {
        if self.is_served {
            return None;
        }
        let mut frame = self.waiting.pop_front()?;
        frame.has_more = self.waits();
        self.is_served = true;
        Some(frame)
    }

    /// Keeps a frame that was not acknowledged for its next data request, but not for ever.
    pub(super) fn put_back(&mut self, frame: Outgoing, _now: Instant) {
        self.failures += 1;
        if self.failures < FAILURES_MAX {
            self.waiting.push_front(frame);
        } else {
            self.failures = 0;
        }
    }
}

/// All children, and candidates.
#[derive(Debug)]
pub(super) struct Children {
    all: Vec<Child>,
    max: usize,
}

impl Children {
    pub(super) const fn new(max: usize) -> Self {
        Self {
            all: Vec::new(),
            max,
        }
    }

    /// Those that are attached.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Child> {
        self.all.iter().filter(|child| child.is_attached)
    }

    /// Begins again after the radio was off; gives the addresses of those for which frames wait.
    pub(super) fn waiting(&mut self) -> impl Iterator<Item = [LinkAddr; 2]> {
        self.all
            .iter_mut()
            .for_each(|child| child.is_served = false);
        let waiting = self.all.iter().filter(|child| child.waits());
        waiting.map(Child::addrs)
    }

    /// Whether another one would find room.
    pub(super) fn have_room(&self) -> bool {
        self.iter().count() < self.max
    }

    pub(super) fn by_extended(&mut self, extended: [u8; 8]) -> Option<&mut Child> {
        let mut all = self.all.iter_mut();
        all.find(|child| child.extended == extended)
    }

    pub(super) fn by_short(&mut self, short: u16) -> Option<&mut Child> {
        let mut all = self.all.iter_mut();
        all.find(|child| child.is_attached && child.short == short)
    }

    pub(super) fn by_link(&mut self, addr: LinkAddr) -> Option<&mut Child> {
        match addr {
            LinkAddr::Extended(extended) => self.by_extended(extended),
            LinkAddr::Short(short) => self.by_short(short),
            LinkAddr::Device(_) => None,
        }
    }

    pub(super) fn by_address(&mut self, addr: Ipv6Addr) -> Option<&mut Child> {
        let mut all = self.all.iter_mut();
        all.find(|child| child.is_attached && child.addresses.contains(&addr))
    }

    /// The entry of a node that asks for a parent, new or old, with this challenge.
    pub(super) fn candidate(&mut self, extended: [u8; 8], challenge: [u8; 8], now: Instant) {
        if let Some(child) = self.by_extended(extended) {
            child.challenge = Some(challenge);
            return;
        }
        let short = self.free_short();
        self.all.push(Child {
            extended,
            short,
            mode: 0,
            timeout: CANDIDATE_FOR,
            heard_at: now,
            addresses: Vec::new(),
            mle: Numbers::default(),
            mac_counter: None,
            challenge: Some(challenge),
            is_attached: false,
            is_served: false,
            waiting: VecDeque::new(),
            failures: 0,
        });
    }

    /// A short address that nobody has.
    fn free_short(&self) -> u16 {
        let taken = |short: u16| self.all.iter().any(|child| child.short == short);
        let mut all = OWN_SHORT + 1..OWN_SHORT + CHILD_IDS;
        all.find(|short| !taken(*short)).unwrap_or(OWN_SHORT)
    }

    pub(super) fn remove(&mut self, extended: [u8; 8]) {
        self.all.retain(|child| child.extended != extended);
    }

    /// When the first of them will have been silent for too long.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let all = self.all.iter();
        all.map(|child| child.heard_at + child.timeout).min()
    }

    /// Forgets those that were silent for too long; returns how many of them were attached.
    pub(super) fn forget_silent(&mut self, now: Instant) -> u32 {
        let mut lost = 0;
        self.all.retain(|child| {
            let stays = child.heard_at + child.timeout > now;
            lost += u32::from(!stays && child.is_attached);
            stays
        });
        lost
    }
}

/// In the mode of a child: its receiver is always on.
const RECEIVER_ON: u8 = 0x08;

/// Frames that wait for one child: four packets of the longest kind.
const WAITING_MAX: usize = 64;

/// Data requests after which a frame goes unacknowledged before it is given up.
const FAILURES_MAX: u8 = 4;

/// How long a node may take from its request to its choice.
const CANDIDATE_FOR: Duration = Duration::from_secs(8);

/// Identifiers of children of one router (Thread 1.1 §5.2).
const CHILD_IDS: u16 = 512;
