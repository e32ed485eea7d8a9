//! A virtual radio with natural delays, driving one `Mac` in virtual time.

use std::collections::VecDeque;
use std::vec::Vec;

use crate::mac::config::{ACK_AIR_TIME, TURNAROUND};
use crate::mac::*;
use crate::time::Duration;
use crate::wire::ieee802154::{FrameType, check_fcs, fcs};

pub(super) const PAN: u16 = 0x4d54;
pub(super) const ME: [u8; 8] = [2, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 1];
pub(super) const PEER: LinkAddr = LinkAddr::Extended([2, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 2]);
pub(super) const OTHER: LinkAddr = LinkAddr::Extended([2, 0x4d, 0x6f, 0x74, 0x65, 0x74, 0, 3]);

/// Both ways of buffering; ACKs by software, unlike the profiles.
pub(super) const SHARED: RadioCapabilities = RadioCapabilities {
    auto_ack: false,
    ..RadioCapabilities::AT86RF233
};
pub(super) const SEPARATE: RadioCapabilities = RadioCapabilities {
    auto_ack: false,
    ..RadioCapabilities::CC2420
};

/// More frames than any bench queues.
const POLLS_MAX: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    Preloaded,
    Assessed(bool),
    Done,
    Ack(u8),
    /// Of a radio that makes attempts by itself; its frame left at this instant.
    #[cfg(feature = "offload")]
    Sent(AttemptOutcome, Instant),
}

pub(super) struct Bench {
    pub mac: Mac<'static>,
    pub rng: Rng,
    pub now: Instant,
    pub actions: Vec<(Instant, Action)>,
    /// The PSDUs that the radio was told to send, and when.
    pub fired: Vec<(Instant, Vec<u8>)>,
    pub outcomes: Vec<Outcome>,
    /// Results of the coming channel assessments; clear when empty.
    pub clear: VecDeque<bool>,
    /// Whether the coming frames are acknowledged; yes when empty.
    pub acked: VecDeque<bool>,
    /// What the coming ACKs say of more that waits; nothing when empty.
    pub more: VecDeque<bool>,
    /// How the coming attempts of a radio that makes them by itself end; well when empty.
    #[cfg(feature = "offload")]
    pub attempts: VecDeque<AttemptOutcome>,
    /// Whether a neighbour never acknowledges.
    pub absent: fn(LinkAddr) -> bool,
    /// Whether the radio does what it is asked, and may insist on being asked in order.
    pub honest: bool,
    /// Which of the radio's answers get lost.
    pub swallow: Option<fn(Answer) -> bool>,
    /// What a copy into the radio takes.
    pub copy_us_per_byte: u64,
    /// Whether bounds of frame counters can be stored, and those that were asked for.
    #[cfg(feature = "security")]
    pub stores: bool,
    #[cfg(feature = "security")]
    pub reservations: Vec<security::Reservation>,
    pending: Vec<(Instant, Answer)>,
    loaded: Option<Vec<u8>>,
}

impl Bench {
    pub(super) fn new(radio: RadioCapabilities, seed: u64) -> Self {
        Self::with(Config::new(PAN, ME), radio, 16, 4, seed)
    }

    pub(super) fn with(
        config: Config,
        radio: RadioCapabilities,
        slots: usize,
        neighbors: usize,
        seed: u64,
    ) -> Self {
        let mut rng = Rng::from_seed([seed, 0]);
        let slots = std::vec![FrameSlot::EMPTY; slots].leak();
        let neighbors = std::vec![Neighbor::EMPTY; neighbors].leak();
        Self {
            mac: Mac::new(config, radio, slots, neighbors, &mut rng).unwrap(),
            rng,
            now: Instant::from_micros(1_000_000),
            actions: Vec::new(),
            fired: Vec::new(),
            outcomes: Vec::new(),
            clear: VecDeque::new(),
            acked: VecDeque::new(),
            more: VecDeque::new(),
            #[cfg(feature = "offload")]
            attempts: VecDeque::new(),
            absent: |_| false,
            honest: true,
            swallow: None,
            copy_us_per_byte: 9,
            #[cfg(feature = "security")]
            stores: true,
            #[cfg(feature = "security")]
            reservations: Vec::new(),
            pending: Vec::new(),
            loaded: None,
        }
    }

    pub(super) fn send(&mut self, to: LinkAddr, token: u16) {
        self.enqueue(to, token, &token.to_be_bytes(), Class::Control)
            .unwrap();
    }

    pub(super) fn enqueue(
        &mut self,
        to: LinkAddr,
        token: u16,
        payload: &[u8],
        class: Class,
    ) -> Result<(), FrameDrop> {
        let since = self.now;
        self.mac.enqueue(&Frame {
            to,
            token,
            payload,
            class,
            since,
        })
    }

    /// Runs until nothing is left to happen, or for ten virtual seconds.
    pub(super) fn run(&mut self) {
        let end = self.now + Duration::from_secs(10);
        self.run_until(|bench| bench.now >= end);
    }

    /// Runs up to this instant, and no further.
    #[cfg(feature = "sleepy")]
    pub(super) fn run_to(&mut self, at: Instant) {
        loop {
            self.poll();
            let event = self.pending.iter().map(|&(at, _)| at).min();
            if earliest(event, self.mac.next_deadline()).is_none_or(|next| next > at) {
                self.now = at;
                return self.poll();
            }
            self.advance();
        }
    }

    /// Goes to the next event or deadline; false when there is none.
    pub(super) fn advance(&mut self) -> bool {
        let event = self.pending.iter().map(|&(at, _)| at).min();
        let Some(next) = earliest(event, self.mac.next_deadline()) else {
            return false;
        };
        self.now = next.max(self.now);
        if event == Some(next) {
            let at = self.pending.iter().position(|&(at, _)| at == next).unwrap();
            let (_, answer) = self.pending.remove(at);
            self.answer(answer);
        }
        true
    }

    /// Stops right after the polling that led there; false when nothing more happens before.
    pub(super) fn run_until(&mut self, reached: impl Fn(&Self) -> bool) -> bool {
        loop {
            self.poll();
            if reached(self) {
                return true;
            }
            if !self.advance() {
                return false;
            }
        }
    }

    pub(super) fn poll(&mut self) {
        let mut out = [0; 127];
        let mut polls = 0;
        loop {
            while let Some(action) = self.mac.poll_action(self.now, &mut self.rng, &mut out) {
                self.actions.push((self.now, action));
                self.carry_out(action, &out);
            }
            #[cfg(feature = "security")]
            if let Some(asked) = self.mac.poll_reservation(self.now) {
                self.reservations.push(asked);
                self.mac.on_reserved(asked, self.stores, self.now);
                continue;
            }
            match self.mac.poll_outcome() {
                Some(outcome) => self.outcomes.push(outcome),
                // Of a proof that is not worth an attempt there is no outcome.
                None if polls < POLLS_MAX && self.is_due() => polls += 1,
                None => break,
            }
        }
        if let Some(at) = self.mac.next_deadline() {
            assert!(
                at > self.now,
                "deadline {at:?} passed at {:?}: {:?}",
                self.now,
                self.mac
            );
        }
    }

    fn carry_out(&mut self, action: Action, out: &[u8]) {
        let us = Duration::from_micros;
        let owes = self
            .pending
            .iter()
            .any(|(_, a)| !matches!(a, Answer::Ack(_)));
        let interrupts = matches!(action, Action::Transmit { .. });
        assert!(
            !self.honest || interrupts || !owes,
            "{action:?} before the last is answered"
        );
        match action {
            Action::Preload { len } => {
                self.loaded = Some(out[..len].to_vec());
                self.answer_later(us(self.copy_us_per_byte * len as u64), Answer::Preloaded);
            }
            Action::AssessChannel => {
                let clear = self.clear.pop_front().unwrap_or(true);
                self.answer_later(us(128), Answer::Assessed(clear));
            }
            Action::Fire => {
                let psdu = self.loaded.clone().expect("something is preloaded");
                let air = TURNAROUND + us(32 * (6 + self.with_fcs(&psdu).len() as u64));
                let whole = self.with_fcs(&psdu);
                let header = header_of(check_fcs(&whole).unwrap());
                let is_absent = header.dst.is_some_and(|dst| (self.absent)(dst.addr));
                let is_heard = header.ack_request && !is_absent;
                if !self.attempt(&header, is_heard, air) {
                    self.answer_later(air, Answer::Done);
                    self.acknowledge(&header, is_heard, air);
                }
                if self.mac.radio.shared_buffer {
                    self.loaded = None;
                }
                self.fired.push((self.now, psdu));
            }
            Action::Transmit { len, at } => {
                let ack = self.with_fcs(&out[..len]);
                let (header, _) = Header::parse(check_fcs(&ack).unwrap()).unwrap();
                assert_eq!((ack.len(), header.frame_type), (5, FrameType::Ack));
                // As the contract has it: cancels an assessment, spoils a shared buffer.
                self.pending
                    .retain(|(_, answer)| !matches!(answer, Answer::Assessed(_)));
                if self.mac.radio.shared_buffer {
                    self.loaded = None;
                }
                self.answer_later(at.since(self.now) + ACK_AIR_TIME, Answer::Done);
            }
            Action::Listen
            | Action::Sleep
            | Action::ChangeChannel { .. }
            | Action::SetPending { .. } => {}
        }
    }

    /// The neighbour's ACK of a frame that takes `air` from now.
    fn acknowledge(&mut self, header: &Header, is_heard: bool, air: Duration) {
        if is_heard && self.acked.pop_front().unwrap_or(true) {
            let ack = air + TURNAROUND + ACK_AIR_TIME + Duration::from_micros(50);
            self.answer_later(ack, Answer::Ack(header.sequence));
        }
    }

    /// What a radio answers that makes attempts by itself, or waits for ACKs; whether it does.
    #[cfg(feature = "offload")]
    fn attempt(&mut self, header: &Header, is_heard: bool, air: Duration) -> bool {
        let radio = self.mac.radio;
        if !radio.is_offloading() {
            return false;
        }
        let backoff = Duration::from_micros(if radio.assesses { 1_120 } else { 0 });
        let end = self.now + backoff + air;
        let takes_ack = header.ack_request && radio.takes_acks;
        let mut more = || AttemptOutcome::Acked {
            pending: self.more.pop_front().unwrap_or(false),
        };
        let natural = match (takes_ack, is_heard) {
            (true, true) => more(),
            (true, false) => AttemptOutcome::NoAck,
            (false, _) => AttemptOutcome::Done,
        };
        let outcome = self.attempts.pop_front().unwrap_or(natural);
        let until = match outcome {
            AttemptOutcome::Acked { .. } | AttemptOutcome::NoAck => {
                backoff + air + TURNAROUND + ACK_AIR_TIME
            }
            AttemptOutcome::Busy => Duration::from_millis(12),
            AttemptOutcome::Done | AttemptOutcome::Unknown | AttemptOutcome::Failed => {
                backoff + air
            }
        };
        self.answer_later(until, Answer::Sent(outcome, end));
        let is_sent = !matches!(outcome, AttemptOutcome::Busy | AttemptOutcome::Failed);
        if is_sent && !radio.takes_acks {
            self.acknowledge(header, is_heard, backoff + air);
        }
        true
    }

    #[cfg(not(feature = "offload"))]
    fn attempt(&mut self, _: &Header, _: bool, _: Duration) -> bool {
        false
    }

    /// What goes on the air of the bytes that the radio was given.
    fn with_fcs(&self, bytes: &[u8]) -> Vec<u8> {
        let mut psdu = bytes.to_vec();
        if self.mac.radio.fcs_by_radio {
            psdu.extend(fcs(bytes).to_le_bytes());
        }
        psdu
    }

    fn answer_later(&mut self, wait: Duration, answer: Answer) {
        if !self.swallow.is_some_and(|swallow| swallow(answer)) {
            self.pending.push((self.now + wait, answer));
        }
    }

    fn answer(&mut self, answer: Answer) {
        match answer {
            Answer::Preloaded => self.event(Event::Preloaded),
            Answer::Assessed(clear) => self.event(Event::ChannelAssessed { clear }),
            Answer::Done => self.event(Event::TransmitDone { at: self.now }),
            #[cfg(feature = "offload")]
            Answer::Sent(outcome, at) => self.event(Event::Sent { outcome, at }),
            Answer::Ack(dsn) => {
                let mut psdu = [0; 5];
                let more = self.more.pop_front().unwrap_or(false);
                Header::ack(dsn, more).emit_frame(&[], &mut psdu).unwrap();
                let kept = 2 * usize::from(self.mac.radio.fcs_by_radio);
                let len = psdu.len() - kept;
                assert!(self.hear(&psdu[..len]).is_none());
            }
        }
    }

    fn is_due(&self) -> bool {
        let next = self.mac.next_deadline();
        next.is_some_and(|at| at <= self.now)
    }

    pub(super) fn event(&mut self, event: Event<'_>) {
        assert_eq!(self.mac.on_event(event, self.now, &mut self.rng), None);
    }

    /// A frame that ended this very moment.
    pub(super) fn hear<'a>(&mut self, psdu: &'a [u8]) -> Option<Received<'a>> {
        let meta = RxMeta {
            rssi_dbm: -60,
            lqi: 255,
            channel: 26,
            at: self.now,
        };
        self.mac
            .on_event(Event::FrameReceived { psdu, meta }, self.now, &mut self.rng)
    }

    pub(super) fn count(&self, wanted: impl Fn(Action) -> bool) -> usize {
        self.actions
            .iter()
            .filter(|&&(_, action)| wanted(action))
            .count()
    }

    pub(super) fn acks_sent(&self) -> Vec<Instant> {
        let at = |&(_, action)| match action {
            Action::Transmit { at, .. } => Some(at),
            _ => None,
        };
        self.actions.iter().filter_map(at).collect()
    }

    pub(super) fn preloads(&self) -> usize {
        self.count(|action| matches!(action, Action::Preload { .. }))
    }
}

/// The header of a frame, sealed or not.
pub(super) fn header_of(mpdu: &[u8]) -> Header {
    #[cfg(feature = "security")]
    return Header::parse_secured(mpdu).unwrap().0;
    #[cfg(not(feature = "security"))]
    Header::parse(mpdu).unwrap().0
}

pub(super) fn data(src: LinkAddr, dst: LinkAddr, dsn: u8, payload: &[u8]) -> Vec<u8> {
    frame(Header::data(PAN, dst, src, dsn), payload)
}

pub(super) fn frame(header: Header, payload: &[u8]) -> Vec<u8> {
    let mut out = [0; 127];
    let len = header.emit_frame(payload, &mut out).unwrap();
    out[..len].to_vec()
}
