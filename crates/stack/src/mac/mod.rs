//! IEEE 802.15.4 medium access: unslotted CSMA-CA in software, immediate ACKs, link retries.
//!
//! Place: between a radio driver and 6LoWPAN. Events go in by [`Mac::on_event`], which hands
//! up the frames for this node; payloads to send go in by [`Mac::enqueue`] once there is
//! [`Mac::room`]; actions for the radio come out of [`Mac::poll_action`], and what became of
//! each frame out of [`Mac::poll_outcome`].
//!
//! One frame is under way at a time. An attempt is: backoff with the radio listening, copy
//! into the radio, channel assessment, frame, wait for the ACK. After a failed attempt a
//! uniformly random delay lets a hidden neighbour finish (TCPlp §7.1); meanwhile frames are
//! received and acknowledged as ever. Every wait ends by an event or a deadline.
//!
//! With the feature `sleepy` a node may sleep between the frames that wait for it at its parent
//! (`poll`), and be the parent of such nodes (`pending`).
//! With the feature `security` it may have a key (`secured`).
//! Left out: slotted mode, association; what a radio does by itself (`offload`, a feature).
//!
//! Sources: IEEE 802.15.4-2006 §7.5.1.4 (CSMA-CA), §7.5.6 (transmission, reception, ACKs);
//! TCPlp §4 and §7.1 for software CSMA and the retry delay.
//!
#![doc = include_str!("deadlines.md")]

mod acknowledge;
#[cfg(feature = "channels")]
mod channels;
#[cfg(not(feature = "channels"))]
#[path = "channels_absent.rs"]
mod channels;
pub mod config;
mod counters;
mod csma;
mod flow;
mod immediate;
#[cfg(feature = "security")]
mod in_clear;
mod marking_threshold;
mod neighbor;
#[cfg(feature = "pace")]
mod neighbor_timing;
#[cfg(not(feature = "pace"))]
#[path = "neighbor_timing_absent.rs"]
mod neighbor_timing;
mod neighbourhood;
mod offload;
mod outcome;
#[cfg(feature = "sleepy")]
mod pending;
#[cfg(not(feature = "sleepy"))]
#[path = "pending_absent.rs"]
mod pending;
#[cfg(feature = "sleepy")]
pub mod poll;
#[cfg(not(feature = "sleepy"))]
#[path = "poll_absent.rs"]
mod poll;
mod queue;
mod radio;
mod receive;
mod retry;
#[cfg(feature = "security")]
mod secured;
#[cfg(not(feature = "security"))]
#[path = "secured_absent.rs"]
mod secured;
#[cfg(feature = "security")]
pub mod security;
mod source;
mod state;
mod unfit;

pub use channels::Channels;
pub use config::Config;
pub use counters::{FrameDrop, MacCounters};
pub(crate) use flow::Flow;
#[cfg(feature = "mesh")]
pub(crate) use immediate::FLUSH_AFTER;
pub use immediate::{Condition, Protocol};
pub use neighbor::Neighbor;
pub use outcome::Outcome;
#[cfg(feature = "sleepy")]
pub(crate) use pending::PollingFrame;
#[cfg(feature = "sleepy")]
pub use poll::{Policy, PollCounters, Sleep};
pub use queue::{Class, Frame, FrameSlot};
pub use radio::{Action, AttemptOutcome, Event, Pending, RadioCapabilities, RxMeta};
#[cfg(feature = "security")]
pub(crate) use secured::Opened;
pub use unfit::Unfit;

use crate::random::Rng;
use crate::time::{Duration, Instant, earliest};
use crate::wire::LinkAddr;
#[cfg(test)]
use crate::wire::ieee802154::Header;
use acknowledge::Acknowledgment;
use csma::Csma;
use immediate::Waiting;
use marking_threshold::MarkingThreshold;
use neighbor::Neighbors;
use pending::Serving;
use poll::Poll;
use queue::{FrameQueue, NIL};
use secured::Guard;
use state::State;

/// The medium access of one IEEE 802.15.4 interface.
///
/// In the order in which a Cortex-M0+ reaches the fields with one instruction: bytes up to 31 from
/// the start, halfwords up to 62, words up to 124. In the compiler's order a mote is 150 B larger,
/// one with all parts 470 B.
#[derive(Debug)]
#[repr(C)]
pub struct Mac<'m> {
    /// Slot of the frame under way; [`NIL`] in [`State::Idle`] only.
    current: u8,
    /// Slot of the frame that is in the radio, or [`NIL`].
    loaded: u8,
    /// Whether the frame's header says that another one follows (the frame pending bit).
    promises: bool,
    /// Whether the frame under way was fired by its condition.
    is_immediate: bool,
    /// Whether it was acknowledged.
    is_acknowledged: bool,
    /// The next frame's sequence number.
    dsn: u8,
    csma: Csma,
    /// The radio's last order: to listen or to sleep. `None`: none yet.
    listening: Option<bool>,
    /// The channel to which the radio was tuned last; `None`: not tuned yet.
    tuned: Option<u8>,
    /// The next channel for a broadcast frame that goes out on all channels.
    sweep: Option<u8>,
    /// How full the queue may be before packets are marked.
    marking_threshold: MarkingThreshold,
    /// Whether the node passes on the requests of nodes without a key.
    #[cfg(feature = "join")]
    serves_pledges: bool,
    queue: FrameQueue<'m>,
    neighbors: Neighbors<'m>,
    state: State,
    config: Config,
    radio: RadioCapabilities,
    /// The ACK owed to a neighbour.
    acknowledgment: Acknowledgment,
    /// The frame that waits for its condition.
    waiting: Waiting,
    /// Indirect transmission, on a parent's side: what its ACKs tell sleeping children.
    serving: Serving,
    /// Indirect transmission, on a child's side: when to ask the parent, and when to listen.
    poll: Poll,
    /// The interframe spacing: no frame is fired before, a turnaround ahead of its first symbol.
    spaced_until: Instant,
    /// When the attempt under way assessed the channel, or was fired without.
    started: Instant,
    /// When the radio was last asked to take a frame, and then how long that took.
    copy_began: Instant,
    copied: Duration,
    outcome: Option<Outcome>,
    /// Link security, where the node has a key.
    guard: Guard<'m>,
    counters: MacCounters,
}

/// A data frame for the layer above.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received<'a> {
    /// The neighbour that sent the frame over this hop.
    pub src: LinkAddr,
    /// This node's address as the frame had it, or [`LinkAddr::BROADCAST`].
    pub dst: LinkAddr,
    /// MAC payload: what follows the header, without FCS.
    pub payload: &'a [u8],
    /// The sender has more for us (frame pending bit).
    pub pending: bool,
    /// Signal strength, channel and time of the frame.
    pub meta: RxMeta,
}

impl<'m> Mac<'m> {
    /// An interface over borrowed queue slots (at most 255 are used) and neighbour entries
    /// (with none, repeated frames are not recognised and ETX is not counted).
    ///
    /// `rng` also takes in [`Config::extended`], so that nodes with one seed go their own ways.
    ///
    /// # Errors
    /// What the radio cannot do, and the settings ask for.
    // Inlined, so that a radio that is known when the node is built costs no check.
    #[inline(always)]
    pub fn new(
        config: Config,
        radio: RadioCapabilities,
        slots: &'m mut [FrameSlot],
        neighbors: &'m mut [Neighbor],
        rng: &mut Rng,
    ) -> Result<Self, Unfit> {
        radio.check(&config)?;
        Ok(Self::of(config, radio, slots, neighbors, rng))
    }

    /// As [`Self::new`], of settings that are known to fit.
    pub(crate) fn of(
        config: Config,
        radio: RadioCapabilities,
        slots: &'m mut [FrameSlot],
        neighbors: &'m mut [Neighbor],
        rng: &mut Rng,
    ) -> Self {
        rng.personalize(u64::from_be_bytes(config.extended));
        let doubts = config.acknowledged && config.backs_off_from_silent;
        Self {
            config,
            radio,
            queue: FrameQueue::new(slots),
            marking_threshold: MarkingThreshold::NONE,
            neighbors: Neighbors::new(neighbors, doubts),
            counters: MacCounters::default(),
            state: State::Idle,
            csma: Csma::default(),
            current: NIL,
            waiting: Waiting::NONE,
            loaded: NIL,
            promises: false,
            started: Instant::ORIGIN,
            copy_began: Instant::ORIGIN,
            copied: Duration::ZERO,
            is_immediate: false,
            is_acknowledged: false,
            // Random, so that a reboot does not look like a repetition (§7.5.6.1).
            dsn: rng.next_u32() as u8,
            acknowledgment: Acknowledgment::None,
            outcome: None,
            serving: Serving::OFF,
            poll: Poll::OFF,
            guard: Guard::default(),
            #[cfg(feature = "join")]
            serves_pledges: false,
            tuned: None,
            sweep: None,
            listening: None,
            spaced_until: Instant::ORIGIN,
        }
    }

    /// Gives back the queue slots and neighbour entries it was lent.
    pub fn into_memory(self) -> (&'m mut [FrameSlot], &'m mut [Neighbor]) {
        (self.queue.into_memory(), self.neighbors.into_memory())
    }

    /// Takes what the radio reports; returns a frame that is for this node.
    pub fn on_event<'a>(
        &mut self,
        event: Event<'a>,
        now: Instant,
        rng: &mut Rng,
    ) -> Option<Received<'a>> {
        match event {
            Event::FrameReceived { psdu, meta } => return self.on_frame(psdu, meta, now),
            Event::FrameHead { head } => self.on_head(head, now),
            Event::Preloaded => self.on_preloaded(now),
            Event::ChannelAssessed { clear } => self.on_channel_assessed(clear, now, rng),
            Event::TransmitDone { at } => self.on_transmit_done(at, now, rng),
            Event::Sent { outcome, at } => self.on_sent(outcome, at, now, rng),
        }
        None
    }

    /// The radio's next action; call until `None` after each event and deadline.
    ///
    /// `out`: at least 127 bytes; holds the frame that the action speaks of.
    pub fn poll_action(&mut self, now: Instant, rng: &mut Rng, out: &mut [u8]) -> Option<Action> {
        self.expire(now, rng);
        if let Some(action) = self.poll_acknowledgment(now, out) {
            return Some(action);
        }
        if self.acknowledgment.is_on_air() {
            return None;
        }
        self.poll_parent(now);
        self.poll_security(now, rng);
        self.start_attempt(now, rng);
        self.poll_receiver(now)
            .or_else(|| self.poll_attempt(now, out))
            .or_else(|| self.may_arm().then(|| self.arm(now, out)).flatten())
    }

    /// When [`Self::poll_action`] has something to do though no event came. An instant in
    /// the past means at once.
    pub fn next_deadline(&self) -> Option<Instant> {
        let answer = self.state.answer_until();
        match self.acknowledgment {
            Acknowledgment::OnAir { until } => return earliest(Some(until), answer),
            Acknowledgment::Due { .. } if !self.state.is_firing() => return Some(Instant::ORIGIN),
            _ if self.tuned.is_none() || self.listening.is_none() => return Some(Instant::ORIGIN),
            _ => {}
        }
        let own = earliest(self.attempt_deadline(answer), self.poll_deadline());
        self.guard.or_deadline(own)
    }

    /// When the attempt under way, or the next one, goes on. `answer`: when the radio's is overdue.
    fn attempt_deadline(&self, answer: Option<Instant>) -> Option<Instant> {
        match self.state {
            State::Idle if self.outcome.is_some() => None,
            State::Idle => {
                let next = self.next_start(Instant::ORIGIN).map(|(at, _)| at);
                match self.guard.is_waiting() {
                    true => next,
                    false => earliest(next, self.waiting_deadline()),
                }
            }
            State::Backoff { until } if self.may_preload_early() => {
                Some(until.min(Instant::ORIGIN))
            }
            State::Backoff { until } if self.is_ready() => Some(self.may_assess_at(until)),
            State::Backoff { until } => Some(until),
            State::Clear | State::Triggered => Some(Instant::ORIGIN),
            _ => answer,
        }
    }

    /// The result of the frame that was under way. The next frame starts only after this
    /// has been called, so that no result is lost.
    pub fn poll_outcome(&mut self) -> Option<Outcome> {
        self.outcome.take()
    }

    /// Frames of `class` that [`Self::enqueue`] would take now.
    pub fn room(&self, class: Class) -> usize {
        // Frames would wait for a key or a parent, and fill the queue.
        if self.guard.is_closed() {
            return 0;
        }
        self.slots(class).saturating_sub(self.queue.len())
    }

    /// How many of the queue's slots frames of this class may take.
    fn slots(&self, class: Class) -> usize {
        let children = self.serving.reserved();
        let control = children.saturating_add(usize::from(self.config.reserve_control));
        let kept = match class {
            #[cfg(feature = "sleepy")]
            Class::Indirect => 0,
            Class::Control => children,
            Class::Forward => control,
            Class::Own => control.saturating_add(usize::from(self.config.reserve_forward)),
        };
        // A small queue keeps nothing back: at least one slot serves every class.
        let capacity = self.queue.capacity();
        capacity.saturating_sub(kept).max(1).min(capacity)
    }

    /// Queues a frame.
    ///
    /// # Errors
    /// [`FrameDrop::QueueFull`], [`FrameDrop::BadLength`]; counted.
    pub fn enqueue(&mut self, frame: &Frame<'_>) -> Result<(), FrameDrop> {
        self.push(frame)?;
        self.release_to(frame.to);
        Ok(())
    }

    /// Queues a frame; returns its slot.
    fn push(&mut self, frame: &Frame<'_>) -> Result<u8, FrameDrop> {
        let len = frame.payload.len();
        let pushed = if len == 0 || len > self.payload_len_max(frame.to) {
            Err(FrameDrop::BadLength)
        } else if self.room(frame.class) == 0 {
            Err(FrameDrop::QueueFull)
        } else {
            self.queue.push(frame).ok_or(FrameDrop::QueueFull)
        };
        if frame.class == Class::Forward {
            let slots = self.slots(Class::Forward);
            match pushed {
                Ok(_) => self.marking_threshold.note_queued(slots),
                Err(FrameDrop::QueueFull) => self.marking_threshold.note_lost(slots),
                Err(_) => {}
            }
        }
        match pushed {
            Ok(_) => self.counters.accepted = self.counters.accepted.wrapping_add(1),
            Err(reason) => self.counters.drop(reason),
        }
        pushed
    }

    /// Takes back the queued frames with this token, except one that is under way: their
    /// datagram is lost anyway. One that waits for its condition is not under way, even while
    /// the radio takes it. No outcome follows. Returns how many there were.
    pub fn cancel(&mut self, token: u16) -> usize {
        if let State::Arming { .. } = self.state {
            let of_token = |slot: &FrameSlot| slot.token == token;
            if self.queue.get(self.current).is_some_and(of_token) {
                // The radio still owes its answer, then about nothing.
                self.current = NIL;
            }
        }
        let mut count = 0;
        loop {
            let current = self.current;
            let found = self
                .queue
                .iter()
                .find(|&(i, slot)| i != current && slot.token == token);
            let Some((index, _)) = found else {
                return count;
            };
            self.forget(index);
            self.counters.drop(FrameDrop::Cancelled);
            count += 1;
        }
    }

    /// Frames waiting or under way.
    pub fn queue_len(&self) -> usize {
        self.queue.len()
    }

    /// As [`Self::queue_len`], without frames that are passed on.
    #[cfg(feature = "entry")]
    pub(crate) fn own_len(&self) -> usize {
        self.queue.count(|slot| !slot.is_passed_on)
    }

    /// Keeps what is known of the neighbour `addr`, however many others are heard.
    pub fn keep(&mut self, addr: Option<LinkAddr>) {
        self.neighbors.keep(addr);
        self.keep_parent(addr);
        self.poll.follow(addr);
    }

    /// The radio's capabilities.
    pub(crate) const fn radio(&self) -> &RadioCapabilities {
        &self.radio
    }

    /// The settings that this interface works with.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Frames sent, received and discarded since start.
    pub const fn counters(&self) -> &MacCounters {
        &self.counters
    }

    /// The entry of a neighbour, with its ETX.
    pub fn neighbor(&self, addr: LinkAddr) -> Option<&Neighbor> {
        self.neighbors.find(addr)
    }

    /// Tunes and listens, first of all and after the radio failed to answer; sleeps in the
    /// backoff where that is asked for.
    fn poll_receiver(&mut self, now: Instant) -> Option<Action> {
        if let Some(action) = self.poll_channel(now) {
            return Some(action);
        }
        let backoff = matches!(self.state, State::Backoff { until } if now < until);
        let is_deaf = backoff && self.config.deaf_backoff;
        let listen = !is_deaf && (self.is_awake(now) || self.needs_receiver(now));
        if self.listening == Some(listen) {
            return None;
        }
        self.listening = Some(listen);
        Some(if listen {
            Action::Listen
        } else {
            Action::Sleep
        })
    }

    /// Tunes to `channel`, unless the radio is there.
    fn tune(&mut self, channel: u8) -> Option<Action> {
        if self.tuned == Some(channel) {
            return None;
        }
        self.tuned = Some(channel);
        Some(Action::ChangeChannel { channel })
    }

    /// Whether the receiver is on though no frame is under way: a child of a Thread network that
    /// sleeps and has no parent listens only for answers.
    fn is_awake(&self, now: Instant) -> bool {
        #[cfg(feature = "thread")]
        let rests_alone = self.guard.is_child();
        #[cfg(not(feature = "thread"))]
        let rests_alone = false;
        self.poll.is_awake(rests_alone, now)
    }

    /// Whether the attempt under way has the channel assessed, or a frame on the air or its ACK to
    /// come; one that backs off has not.
    fn needs_receiver(&self, now: Instant) -> bool {
        match self.state {
            State::Idle | State::Preloading { .. } | State::Arming { .. } => false,
            State::Backoff { until } => self.is_ready() && now >= self.may_assess_at(until),
            _ => true,
        }
    }

    /// Removes a frame from the queue, and from the radio as far as we remember.
    fn forget(&mut self, index: u8) {
        self.queue.remove(index);
        if self.loaded == index {
            self.loaded = NIL;
        }
        if self.waiting.slot == index {
            self.choose();
        }
    }
}

#[cfg(test)]
mod tests;
