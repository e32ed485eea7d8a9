//! Sends one frame after the other: backoff, assessment, attempts and ACKs (IEEE 802.15.4-2006
//! §7.5.1.4).

use std::collections::VecDeque;

use motet::mac::{Action, Event};
use motet::random::Rng;
use motet::time::{Duration, Instant};
use motet::wire::ieee802154::fcs;

use super::outgoing::Outgoing;
use super::packets::Seal;

/// What the transmitter waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Idle,
    Backoff(Instant),
    Assessing,
    Loading,
    Sending,
    Ack(Instant),
}

#[derive(Debug)]
pub(super) struct Transmitter {
    fcs_by_radio: bool,
    rng: Rng,
    queue: VecDeque<Outgoing>,
    current: Option<(Outgoing, Vec<u8>)>,
    phase: Phase,
    attempts: u32,
    busy: u32,
    number: u8,
    actions: VecDeque<Action>,
    done: VecDeque<(Outgoing, bool)>,
}

impl Transmitter {
    pub(super) fn new(fcs_by_radio: bool, mut rng: Rng) -> Self {
        Self {
            fcs_by_radio,
            number: rng.next_u32() as u8,
            rng,
            queue: VecDeque::new(),
            current: None,
            phase: Phase::Idle,
            attempts: 0,
            busy: 0,
            actions: VecDeque::new(),
            done: VecDeque::new(),
        }
    }

    /// Begins again after the radio was off: frames that were to be sent are lost.
    pub(super) fn restart(&mut self) {
        self.queue.clear();
        self.actions.clear();
        self.done.clear();
        self.current = None;
        self.phase = Phase::Idle;
    }

    /// Sends a frame behind all others; one that finds no room is lost, as in any router.
    pub(super) fn push(&mut self, frame: Outgoing) {
        match self.queue.len() < QUEUE_MAX {
            true => self.queue.push_back(frame),
            false => self.done.push_back((frame, false)),
        }
    }

    /// Sends a frame before all others: its receiver listens now.
    pub(super) fn push_first(&mut self, frame: Outgoing) {
        self.queue.push_front(frame);
    }

    /// How many more frames there is room for.
    pub(super) fn room(&self) -> usize {
        QUEUE_MAX.saturating_sub(self.queue.len())
    }

    /// A frame that has come to an end, and whether it was acknowledged, or needs no ACK.
    pub(super) fn take_done(&mut self) -> Option<(Outgoing, bool)> {
        self.done.pop_front()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        match self.phase {
            Phase::Backoff(at) | Phase::Ack(at) => Some(at),
            _ => None,
        }
    }

    pub(super) fn on_time(&mut self, now: Instant) {
        match self.phase {
            Phase::Backoff(at) if at <= now => {
                self.phase = Phase::Assessing;
                self.actions.push_back(Action::AssessChannel);
            }
            Phase::Ack(at) if at <= now => self.fail(now),
            _ => {}
        }
    }

    pub(super) fn on_event(&mut self, event: Event<'_>, now: Instant) {
        match (event, self.phase) {
            (Event::ChannelAssessed { clear: true }, Phase::Assessing) => {
                let len = self.current.as_ref().map_or(0, |(_, psdu)| psdu.len());
                self.phase = Phase::Loading;
                self.actions.push_back(Action::Preload { len });
            }
            (Event::ChannelAssessed { clear: false }, Phase::Assessing) => {
                self.busy += 1;
                match self.busy <= BACKOFFS_MAX {
                    true => self.back_off(now),
                    false => self.fail(now),
                }
            }
            (Event::Preloaded, Phase::Loading) => {
                self.phase = Phase::Sending;
                self.actions.push_back(Action::Fire);
            }
            (Event::TransmitDone { at }, Phase::Sending) => {
                let wants_ack = self
                    .current
                    .as_ref()
                    .is_some_and(|(frame, _)| !frame.to.is_broadcast());
                match wants_ack {
                    true => self.phase = Phase::Ack(at + ACK_WAIT),
                    false => self.end(true),
                }
            }
            _ => {}
        }
    }

    /// An ACK of this number has come.
    pub(super) fn on_ack(&mut self, number: u8, _now: Instant) {
        if matches!(self.phase, Phase::Ack(_)) && number == self.number {
            self.end(true);
        }
    }

    /// The next order to the radio, with its bytes in `out`.
    pub(super) fn poll_action(
        &mut self,
        now: Instant,
        seal: &mut Seal,
        out: &mut [u8],
    ) -> Option<Action> {
        if self.phase == Phase::Idle {
            self.begin(now, seal);
        }
        let action = self.actions.pop_front()?;
        if let (Action::Preload { .. }, Some((_, psdu))) = (action, &self.current) {
            out.get_mut(..psdu.len())?.copy_from_slice(psdu);
        }
        Some(action)
    }

    /// Takes the next frame, and gives it its numbers.
    fn begin(&mut self, now: Instant, seal: &mut Seal) {
        while let Some(frame) = self.queue.pop_front() {
            self.number = self.number.wrapping_add(1);
            let Some(mut psdu) = seal.frame(&frame, self.number) else {
                self.done.push_back((frame, false));
                continue;
            };
            if !self.fcs_by_radio {
                psdu.extend(fcs(&psdu).to_le_bytes());
            }
            self.current = Some((frame, psdu));
            (self.attempts, self.busy) = (0, 0);
            return self.back_off(now);
        }
    }

    fn back_off(&mut self, now: Instant) {
        let exponent = (BE_MIN + self.busy).min(BE_MAX);
        let slots = self.rng.below(1 << exponent);
        self.phase = Phase::Backoff(now + BACKOFF.saturating_mul(slots.into()));
        self.on_time(now);
    }

    /// An attempt has failed.
    fn fail(&mut self, now: Instant) {
        self.attempts += 1;
        self.busy = 0;
        match self.attempts <= RETRIES_MAX {
            true => self.back_off(now),
            false => self.end(false),
        }
    }

    fn end(&mut self, is_delivered: bool) {
        self.phase = Phase::Idle;
        if let Some((frame, _)) = self.current.take() {
            self.done.push_back((frame, is_delivered));
        }
    }
}

/// `aUnitBackoffPeriod`: 20 symbols.
const BACKOFF: Duration = Duration::from_micros(320);
const BE_MIN: u32 = 3;
const BE_MAX: u32 = 5;
const BACKOFFS_MAX: u32 = 4;
/// As OpenThread has it: 15 retries to nodes that listen always.
const RETRIES_MAX: u32 = 15;
/// `macAckWaitDuration`, 54 symbols, and some for a driver that copies.
const ACK_WAIT: Duration = Duration::from_micros(2_000);
/// Frames that wait for the air.
const QUEUE_MAX: usize = 128;
