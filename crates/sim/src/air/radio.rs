//! One mote's radio chip and the driver that feeds it.
//!
//! Purpose: carries out a MAC's actions in the time a real driver takes, and reports what happened.
//! While the driver copies, the processor does nothing else and, depending on the profile, the
//! radio hears nothing.
//! Place: between `motet::mac` and the medium. [`Radio::command`] takes actions in, due times and
//! receptions come from the world, [`Radio::poll_output`] gives events back.
//! Left out: a receive buffer of more than one frame's order: frames come out in sequence.

mod address;
mod line;
mod output;
mod queue;
mod receive;
mod transmit;
mod usage;

use std::sync::Arc;

use motet::mac::{Action, RxMeta};
use motet::random::Rng;
use motet::time::{Duration, Instant};
use motet::wire::ieee802154::Header;

use crate::air::energy::Energy;
use crate::air::filter::Filter;
use crate::air::medium::{Deaf, Frame};
use crate::air::phy;
use crate::air::power::Power;
use crate::air::profile::Profile;
use crate::air::{Air, Event};

use line::Traffic;
use queue::Queue;
use receive::{Waits, head_of, with_fcs};
use transmit::Attempt;

pub use output::Output;
pub use usage::{State, Usage};

/// A radio and its driver.
#[derive(Debug)]
pub struct Radio {
    place: usize,
    /// Shared by all radios of its kind: each event looks into it.
    profile: Arc<Profile>,
    filter: Filter,
    jitter: Rng,
    cca: Power,
    asleep: bool,
    /// Whether its node is switched off.
    is_off: bool,
    activity: Activity,
    answer: Answer,
    loaded: Option<Frame>,
    /// Sequence number of the frame sent last, if it wants an ACK.
    sent: Option<u8>,
    /// Commands that wait for the radio or the processor, first to come first.
    waiting: Queue<Command>,
    unloading: Queue<(Frame, RxMeta)>,
    /// The driver has done what precedes a turnaround.
    prepared: bool,
    /// The attempt under way, where the radio makes them by itself.
    attempt: Option<Attempt>,
    /// The node that the ACK which software sends is for.
    heard_from: Option<usize>,
    cpu_free_at: Instant,
    /// The neighbours for which packets wait, as the radio's ACKs say.
    waits: Waits,
    usage: Usage,
    outputs: Queue<Output>,
    /// The line to its host, where there is one.
    traffic: Traffic,
}

/// A frame that arrived without error.
#[derive(Clone, Copy, Debug)]
pub struct IncomingFrame<'a> {
    /// The frame's bytes.
    pub frame: &'a Frame,
    /// The frame's header.
    pub header: &'a Header,
    /// How strongly it was heard.
    pub power: Power,
    /// The node that sent it.
    pub from: usize,
}

/// A moment a radio waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Due {
    /// The frame is copied into the radio.
    Copied,
    /// The assessment is over.
    Assessed,
    /// The driver has done all that precedes the turnaround.
    Prepared,
    /// The same, where nothing was assessed.
    Readied,
    /// The turnaround before a frame is over.
    Turned,
    /// The turnaround before an ACK is over.
    AnswerTurned,
    /// The first bytes of a received frame are copied out of the radio.
    HeadUnloaded,
    /// A received frame is copied out of the radio.
    Unloaded,
    /// The radio is on its new channel.
    Tuned,
    /// The radio is awake.
    Awake,
    /// The processor is free again.
    CpuFree,
    /// A step of the radio's own attempt is over: a backoff, or the wait for an ACK.
    Step,
    /// The order to send has crossed the line.
    Ordered,
    /// A report has crossed it.
    Reported,
}

impl Radio {
    /// A radio that listens, at the origin of time, at this place of the medium.
    pub fn new(
        place: usize,
        profile: impl Into<Arc<Profile>>,
        filter: Filter,
        jitter: Rng,
    ) -> Self {
        let profile = profile.into();
        Self {
            place,
            cca: Power::from_dbm(profile.cca_dbm),
            profile,
            filter,
            jitter,
            asleep: false,
            is_off: false,
            activity: Activity::Idle,
            answer: Answer::None,
            loaded: None,
            sent: None,
            waiting: Queue::new(),
            unloading: Queue::new(),
            prepared: false,
            attempt: None,
            heard_from: None,
            cpu_free_at: Instant::ORIGIN,
            waits: Waits::default(),
            usage: Usage::new(),
            outputs: Queue::new(),
            traffic: Traffic::default(),
        }
    }

    /// The node is switched off: its radio forgets everything, is silent and hears nothing.
    pub fn switch_off(&mut self, air: &mut Air, now: Instant) {
        self.is_off = true;
        self.asleep = false;
        self.activity = Activity::Idle;
        self.answer = Answer::None;
        self.loaded = None;
        self.sent = None;
        self.waiting.clear();
        self.unloading.clear();
        self.prepared = false;
        self.attempt = None;
        self.heard_from = None;
        self.cpu_free_at = now;
        self.waits = Waits::default();
        self.outputs.clear();
        self.traffic = Traffic::default();
        self.refresh(air, now);
    }

    /// The node is switched on again, [`OFF_MIN`] later or more: its radio listens on `channel`.
    pub fn switch_on(&mut self, channel: u8, air: &mut Air, now: Instant) {
        self.is_off = false;
        air.medium.set_channel(self.place, channel, now);
        self.refresh(air, now);
    }

    /// Whether its node is switched off.
    pub fn is_off(&self) -> bool {
        self.is_off
    }

    /// The MAC asks for `action`; `bytes` is the caller's buffer that the action speaks of.
    pub fn command(&mut self, action: Action, bytes: &[u8], air: &mut Air, now: Instant) {
        let frame = |len| {
            let bytes = bytes.get(..len).unwrap_or(bytes);
            match self.profile.capabilities.fcs_by_radio {
                true => with_fcs(bytes),
                false => Frame::new(bytes),
            }
        };
        match action {
            Action::Preload { len } => {
                self.waiting.push(Command::Preload(frame(len)));
                self.give_up();
            }
            Action::AssessChannel => self.waiting.push(Command::Assess),
            Action::Fire => self.waiting.push(Command::Fire),
            Action::ChangeChannel { channel } => {
                self.cancel_assessment();
                self.waiting.push(Command::Tune(channel));
            }
            Action::Transmit { len, at } => self.answer_by_software(frame(len), at, air, now),
            Action::Listen => {
                if self.asleep && self.profile.wake > Duration::ZERO {
                    self.waiting.push(Command::Wake);
                }
                self.asleep = false;
            }
            Action::Sleep => self.asleep = true,
            Action::SetPending { of, pending } => self.waits.set(of, pending),
        }
        self.proceed(air, now);
    }

    /// A moment this radio waited for has come.
    pub fn on_due(&mut self, due: Due, air: &mut Air, now: Instant) {
        if self.is_off {
            return;
        }
        match (due, self.activity) {
            (Due::Copied, Activity::Copying) => {
                self.activity = Activity::Idle;
                self.outputs.push(Output::Preloaded);
            }
            // A software ACK may have cancelled the assessment.
            (Due::Assessed, Activity::Assessing) => {
                let (energy, carrier) = air.medium.assessed(self.place, now);
                self.judge_channel(energy >= self.cca || carrier, air, now);
            }
            (Due::Prepared, Activity::Preparing) => {
                self.activity = Activity::Idle;
                let clear = !air.medium.is_receiving(self.place) && !self.is_answering();
                self.prepared = clear;
                self.on_assessed(clear, air, now);
            }
            (Due::Readied, Activity::Readying) => {
                self.prepared = true;
                self.turn_around(air, now);
            }
            (Due::Turned, Activity::Turning) => {
                self.activity = Activity::Idle;
                if let Some(frame) = self.loaded.clone() {
                    self.activity = Activity::Sending;
                    self.refresh(air, now);
                    air.transmit(self.place, frame, None, now);
                }
            }
            (Due::Awake, Activity::Waking) => self.activity = Activity::Idle,
            (Due::Tuned, Activity::Tuning(channel)) => {
                self.activity = Activity::Idle;
                air.medium.set_channel(self.place, channel, now);
            }
            (Due::Step, _) => self.on_step(air, now),
            (Due::Ordered, Activity::Ordering) => self.begin_attempt(air, now),
            (Due::Reported, _) => self.take_reports(now),
            (Due::AnswerTurned, _) => self.send_answer(air, now),
            (Due::HeadUnloaded, _) => {
                if let Some((frame, _)) = self.unloading.first() {
                    self.outputs.push(Output::Head(head_of(frame)));
                }
            }
            (Due::Unloaded, _) => {
                if let Some((frame, meta)) = self.unloading.pop() {
                    let frame = self.without_fcs(&frame);
                    self.outputs.push(Output::Frame(frame, meta));
                }
                if !self.unloading.is_empty() && self.profile.head_first {
                    self.unload_first(air, now);
                }
            }
            _ => {}
        }
        self.proceed(air, now);
    }

    /// Handles the end of a frame that this radio transmitted, with this header.
    pub fn on_sent(&mut self, header: Option<&Header>, air: &mut Air, now: Instant) {
        if self.is_off {
            return;
        }
        if let Answer::Sending { by_software } = self.answer {
            self.answer = Answer::None;
            if by_software {
                let at = self.notice(now);
                self.outputs.push(Output::TransmitDone(at));
            }
            self.resume_fire(phy::TURNAROUND, air, now);
        } else {
            self.activity = Activity::Idle;
            self.sent = header
                .filter(|header| header.ack_request)
                .map(|header| header.sequence);
            let at = self.notice(now);
            match self.attempt {
                Some(_) => self.await_ack(at, air, now),
                None => self.outputs.push(Output::TransmitDone(at)),
            }
        }
        self.proceed(air, now);
    }

    /// A frame the radio was locked on has ended; `None` when it had errors.
    pub fn on_reception(&mut self, heard: Option<IncomingFrame<'_>>, air: &mut Air, now: Instant) {
        if self.is_off {
            return;
        }
        if let Some(heard) = heard {
            self.accept(&heard, air, now);
        }
        let with_its_ack = phy::TURNAROUND + phy::air_time(phy::ACK_LEN) + phy::TURNAROUND;
        self.resume_fire(with_its_ack, air, now);
        self.proceed(air, now);
    }

    /// Whether the radio neither does anything for the MAC nor has anything to report to it.
    pub fn is_idle(&self, now: Instant) -> bool {
        matches!(self.activity, Activity::Idle)
            && !self.is_answering()
            && self.waiting.is_empty()
            && self.unloading.is_empty()
            && !self.has_output()
            && self.traffic.is_empty()
            && self.cpu_free_at <= now
    }

    /// Whether events wait for the MAC.
    pub fn has_output(&self) -> bool {
        !self.outputs.is_empty()
    }

    /// The next report to the MAC. Once the MAC has got a frame's first bytes, the others are
    /// copied: a frame that it fires upon them does not wait for that.
    pub fn poll_output(&mut self, air: &mut Air, now: Instant) -> Option<Output> {
        let output = self.outputs.pop()?;
        if let (Output::Head(head), Some((frame, _))) = (&output, self.unloading.first()) {
            let rest = frame.psdu().len().saturating_sub(head.psdu().len());
            self.unload(rest, Due::Unloaded, air, now);
        }
        Some(output)
    }

    /// Until when the processor is busy.
    pub fn cpu_free_at(&self) -> Instant {
        self.cpu_free_at
    }

    /// The energy that the radio and its processor have used up to `now`.
    pub fn energy(&self, now: Instant) -> Energy {
        let Profile {
            currents,
            transmit_dbm,
            deaf,
            ..
        } = &*self.profile;
        Energy::of(&self.usage(now), currents, *transmit_dbm, *deaf)
    }

    /// How long it was in each state up to `now`.
    pub fn usage(&self, now: Instant) -> Usage {
        let mut usage = self.usage;
        usage.enter(usage.state, now);
        usage
    }

    /// The radio's state at this moment.
    pub fn state_now(&self) -> State {
        self.usage.state
    }

    /// Begins every waiting command that need not wait any longer.
    fn proceed(&mut self, air: &mut Air, now: Instant) {
        while let Some(command) = self.waiting.first()
            && self.may_begin(command, air, now)
        {
            if let Some(command) = self.waiting.pop() {
                self.begin(command, air, now);
            }
        }
        self.refresh(air, now);
    }

    fn may_begin(&self, command: &Command, air: &mut Air, now: Instant) -> bool {
        let busy = !matches!(self.activity, Activity::Idle) || self.is_answering();
        if busy || (self.profile.deaf && !self.unloading.is_empty()) {
            return false;
        }
        // The driver looks whether a frame is coming in before it leaves the channel.
        if let Command::Tune(_) = command {
            return !air.medium.is_receiving(self.place);
        }
        if let Command::Preload(_) = command {
            if now < self.cpu_free_at {
                air.calendar.schedule(
                    self.cpu_free_at,
                    Event::Radio {
                        place: self.place,
                        due: Due::CpuFree,
                    },
                );
                return false;
            }
            // The driver waits for the end of a reception before it changes state.
            return !(self.profile.deaf && air.medium.is_receiving(self.place));
        }
        true
    }

    fn begin(&mut self, command: Command, air: &mut Air, now: Instant) {
        let (activity, span, due) = match command {
            Command::Preload(frame) => {
                let copy = self.profile.transmit_copy(frame.psdu().len());
                self.loaded = Some(frame);
                self.occupy(copy, now);
                (Activity::Copying, copy, Due::Copied)
            }
            Command::Assess => {
                air.medium.set_hearing(self.place, None, now);
                air.medium.assess(self.place, now);
                (Activity::Assessing, phy::CCA, Due::Assessed)
            }
            Command::Fire if self.profile.capabilities.assesses => {
                let len = self.loaded.as_ref().map_or(0, |frame| frame.psdu().len());
                let there_at = self.order_crosses(len, now);
                if there_at == now {
                    self.begin_attempt(air, now);
                    return;
                }
                (Activity::Ordering, there_at.since(now), Due::Ordered)
            }
            Command::Fire if self.prepared => {
                self.turn_around(air, now);
                return;
            }
            Command::Fire => (Activity::Readying, self.prepare(), Due::Readied),
            Command::Wake => {
                self.usage.waking = self.usage.waking + self.profile.wake;
                (Activity::Waking, self.profile.wake, Due::Awake)
            }
            Command::Tune(channel) => (
                Activity::Tuning(channel),
                self.profile.capabilities.channel_switch,
                Due::Tuned,
            ),
        };
        self.activity = activity;
        air.calendar.schedule(
            now + span,
            Event::Radio {
                place: self.place,
                due,
            },
        );
    }

    /// Gives the processor so much more to do; says when it will have done it.
    pub(crate) fn occupy(&mut self, span: Duration, now: Instant) -> Instant {
        self.cpu_free_at = self.cpu_free_at.max(now) + span;
        self.usage.cpu = self.usage.cpu + span;
        self.cpu_free_at
    }

    /// The stamp of what has just ended: late where software takes it, since the processor has
    /// something else to do first.
    fn notice(&mut self, now: Instant) -> Instant {
        let late_max = self.profile.stamp_delay_max;
        if late_max == Duration::ZERO {
            return now;
        }
        let at = now + self.jitter.uniform(late_max);
        self.cpu_free_at = self.cpu_free_at.max(at);
        at
    }

    fn is_answering(&self) -> bool {
        !matches!(self.answer, Answer::None)
    }

    /// Updates the medium and the energy account with the present state of the radio.
    fn refresh(&mut self, air: &mut Air, now: Instant) {
        air.medium.set_interest(self.place, self.interest());
        let state = self.state();
        if state == self.usage.state {
            return;
        }
        self.usage.enter(state, now);
        air.note_state(self.place, state, now);
        let deaf = match state {
            State::Listen | State::Assess | State::Prepare => None,
            State::Sleep => Some(Deaf::Sleeping),
            State::Copy => self.profile.deaf.then_some(Deaf::Copying),
            State::Unload => Some(Deaf::Unloading),
            State::Turnaround | State::Transmit => Some(Deaf::Transmitting),
        };
        air.medium.set_hearing(self.place, deaf, now);
    }

    fn state(&self) -> State {
        match (&self.answer, self.activity) {
            _ if self.is_off => State::Sleep,
            (Answer::Sending { .. }, _) | (_, Activity::Sending) => State::Transmit,
            (Answer::Turning { .. }, _)
            | (_, Activity::Turning | Activity::Tuning(_) | Activity::Waking) => State::Turnaround,
            _ if self.profile.deaf && !self.unloading.is_empty() => State::Unload,
            (_, Activity::Copying) => State::Copy,
            (_, Activity::Preparing | Activity::Readying) => State::Prepare,
            (_, Activity::Assessing) => State::Assess,
            (_, Activity::Holding | Activity::Attempting | Activity::Ordering) => State::Listen,
            (_, Activity::Idle) if self.asleep => State::Sleep,
            (_, Activity::Idle) => State::Listen,
        }
    }
}

/// The state of the transmitting side.
#[derive(Clone, Copy, Debug)]
enum Activity {
    Idle,
    Copying,
    Assessing,
    Preparing,
    /// The same, with nothing assessed before.
    Readying,
    /// Ready to fire, but a frame is coming in.
    Holding,
    Turning,
    Sending,
    /// In an attempt of the radio's own, a backoff or the wait for the ACK.
    Attempting,
    /// The order to send is on the line.
    Ordering,
    Tuning(u8),
    Waking,
}

/// An immediate ACK on its way out, independent of the frame that may wait behind it.
#[derive(Clone, Debug)]
enum Answer {
    None,
    Turning {
        ack: Frame,
        to: Option<usize>,
        by_software: bool,
    },
    Sending {
        by_software: bool,
    },
}

#[derive(Clone, Debug)]
enum Command {
    Preload(Frame),
    Assess,
    Fire,
    Tune(u8),
    Wake,
}

/// The shortest time that a radio is off: all that it waited for before is over by then.
pub const OFF_MIN: Duration = Duration::from_millis(100);

#[cfg(test)]
#[path = "tests/radio.rs"]
mod tests;
