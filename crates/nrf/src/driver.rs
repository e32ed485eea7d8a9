//! Actions of a MAC in, reports out; between them a radio that is driven by interrupts.

mod transmit;

use motet::mac::{self, Action, RadioCapabilities, RxMeta};
use motet::time::{Duration, Instant};

use crate::counters::{Counters, count};
use crate::filter::{Filter, FilterDecision};
use crate::outputs::{Output, Outputs};
use crate::packet::{FCS_LEN, Frames, Packet, RECEIVE_COUNT};
use crate::registers::{Event, HEAD_LEN, Registers, Shortcuts, State, Task};
use crate::strength::{self, BUSY_ENERGY};
use crate::times::{ACK_AIR, AIR_TO_END, BUSY_MAX, RAMP_UP, TURNAROUND};

/// The driver's capabilities: separate buffers, ACKs and FCS by itself, time stamps by hardware.
pub const CAPABILITIES: RadioCapabilities = RadioCapabilities {
    shared_buffer: false,
    auto_ack: true,
    channel_switch: Duration::from_micros(RAMP_UP as u64),
    stamp_delay_max: Duration::ZERO,
    fcs_by_radio: true,
    // Its ACKs say of nobody that something waits: a node with it is no parent of sleeping ones.
    pending: mac::Pending::None,
    // CSMA and the wait for an ACK are the MAC's.
    assesses: false,
    takes_acks: false,
};

/// The high-frequency clock does not run from the crystal, without which the radio is beside its
/// channel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CrystalOff;

impl core::fmt::Display for CrystalOff {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("the high-frequency clock does not run from the crystal")
    }
}

impl core::error::Error for CrystalOff {}

/// The driver of one radio.
///
/// [`Self::on_interrupt`] within some 100 µs of each event keeps ACKs in time; all else may wait.
#[derive(Debug)]
pub struct Driver<R> {
    registers: R,
    frames: &'static Frames,
    filter: Filter,
    phase: Phase,
    /// The timer's count when this phase began.
    since: u32,
    /// The MAC wants silence between its own frames.
    is_asleep: bool,
    channel: u8,
    /// The channel to tune to when the air is free of our own frames.
    next_channel: Option<u8>,
    /// A frame is to be fired as soon as what is on the air has ended.
    is_fire_due: bool,
    /// Which of the two packets to transmit is loaded.
    loaded: usize,
    /// Which of them was sent last.
    sent: usize,
    received: [Option<Received>; RECEIVE_COUNT],
    /// The packet that the radio receives into.
    receiving: usize,
    /// The filter's decision, from the first bytes of the frame under way.
    decision: Option<FilterDecision>,
    /// Since when a frame has been under way without an end, as [`Self::check`] saw it.
    suspect: Option<u32>,
    /// How much too strong the radio measures at this temperature, dB.
    excess_db: i8,
    outputs: Outputs,
    /// The first bytes of the frame that is reported next have been.
    is_head_reported: bool,
    counters: Counters,
}

/// The driver's phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Asleep,
    Listening,
    Assessing,
    /// An ACK waits for its turn or is on the air.
    Answering,
    /// The loaded frame waits for its turn or is on the air.
    Sending,
}

/// How a frame was received.
#[derive(Clone, Copy, Debug)]
struct Received {
    /// The timer's count at its last bit.
    end: u32,
    rssi_dbm: i8,
    lqi: u8,
    channel: u8,
}

impl<R: Registers> Driver<R> {
    /// A radio that listens on channel 26. `frames`: for this driver alone.
    ///
    /// # Errors
    /// [`CrystalOff`], before anything is on the air.
    pub fn new(registers: R, frames: &'static Frames) -> Result<Self, CrystalOff> {
        if !registers.has_crystal() {
            return Err(CrystalOff);
        }
        let mut driver = Self {
            registers,
            frames,
            filter: Filter {
                pan: 0xffff,
                extended: [0; 8],
                short: None,
            },
            phase: Phase::Asleep,
            since: 0,
            is_asleep: false,
            channel: CHANNEL,
            next_channel: None,
            is_fire_due: false,
            loaded: 0,
            sent: 0,
            received: [None; RECEIVE_COUNT],
            receiving: 0,
            decision: None,
            suspect: None,
            excess_db: 0,
            outputs: Outputs::EMPTY,
            is_head_reported: false,
            counters: Counters::default(),
        };
        for packet in &frames.transmit {
            packet.load(&[]);
        }
        driver.measure();
        driver.registers.set_channel(CHANNEL);
        driver.registers.set_busy_energy(BUSY_ENERGY);
        driver.listen();
        Ok(driver)
    }

    /// Sets the addresses that the radio answers to; until then it knows none.
    pub fn set_filter(&mut self, filter: Filter) {
        self.filter = filter;
    }

    /// Sends from the next frame on with the most power that is not above this, or with the least;
    /// returns which, dBm. Until then it is 0 dBm.
    pub fn set_power_dbm(&mut self, dbm: i8) -> i8 {
        let power_dbm = strength::power_dbm(dbm);
        self.registers.set_power_dbm(power_dbm);
        power_dbm
    }

    /// The counts of frames and interrupts so far.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// The registers, for a model's sake.
    pub const fn registers(&self) -> &R {
        &self.registers
    }

    /// Carries out an action; `bytes` holds its frame.
    pub fn perform(&mut self, action: Action, bytes: &[u8]) {
        // What has happened already comes before what is asked for now.
        self.on_interrupt();
        match action {
            Action::Preload { len } => {
                // The other one may be on the air.
                self.loaded = 1 - self.sent.min(1);
                self.to_transmit()
                    .load(bytes.get(..len).unwrap_or_default());
                self.report(Output::Preloaded);
            }
            Action::AssessChannel => self.assess(),
            Action::Fire => self.fire(),
            // The driver acknowledges by itself: a MAC that knows that asks for none.
            Action::Transmit { .. } => {}
            Action::Listen => {
                self.is_asleep = false;
                if self.phase == Phase::Asleep {
                    self.listen();
                }
            }
            Action::Sleep => {
                self.is_asleep = true;
                let is_idle = matches!(self.phase, Phase::Listening | Phase::Assessing);
                // What waits for the end of a reception is sent first.
                if is_idle && !self.is_fire_due {
                    self.sleep();
                }
            }
            Action::ChangeChannel { channel } => self.change_channel(channel),
            // Asked for only where the capabilities say that the driver can.
            Action::SetPending { .. } => {}
        }
    }

    /// Deals with what has happened at the radio; returns whether anything had.
    pub fn on_interrupt(&mut self) -> bool {
        let clear = self.take(Event::ChannelClear);
        let busy = self.take(Event::ChannelBusy);
        if (clear || busy) && self.phase == Phase::Assessing {
            self.report(Output::Assessed { clear });
            self.listen();
        }
        let head = self.take(Event::HeadMatch);
        if head && self.phase == Phase::Listening {
            self.decision = Some(self.judge(HEAD_LEN));
        }
        let end = self.take(Event::PhyEnd);
        if end {
            match self.phase {
                Phase::Sending => {
                    let end = self.registers.captured();
                    self.report(Output::Sent { end });
                    self.settle(end.wrapping_add(TURNAROUND));
                }
                Phase::Answering => {
                    self.counters.acks = self.counters.acks.wrapping_add(1);
                    self.settle(self.registers.captured().wrapping_add(TURNAROUND));
                }
                Phase::Listening => self.on_frame(),
                // The end of a frame that was given up.
                Phase::Assessing | Phase::Asleep => {}
            }
        }
        clear || busy || head || end
    }

    /// Makes up for interrupts that were lost, for a radio that is stuck, and for the temperature.
    /// Call it once in a while: each second, say.
    pub fn check(&mut self) {
        self.measure();
        if !self.registers.has_crystal() {
            count(&mut self.counters.crystal_off);
        }
        if self.on_interrupt() {
            count(&mut self.counters.lost_interrupts);
        }
        let now = self.registers.count();
        let age = now.wrapping_sub(self.since);
        let is_stuck = match self.phase {
            Phase::Asleep => false,
            Phase::Listening => {
                let is_receiving = self.is_receiving();
                let since = *self.suspect.get_or_insert(now);
                self.suspect = self.suspect.filter(|_| is_receiving);
                let is_endless = is_receiving && now.wrapping_sub(since) > BUSY_MAX;
                is_endless || matches!(self.registers.state(), State::Disabled | State::ReceiveIdle)
            }
            Phase::Assessing | Phase::Answering | Phase::Sending => age > BUSY_MAX,
        };
        // What has ended since the first look is an event, too, and not a radio that is stuck.
        if is_stuck && !self.on_interrupt() {
            count(&mut self.counters.restarts);
            self.is_fire_due = false;
            self.restart();
        }
    }

    /// Whether [`Self::poll`] has a report.
    pub fn has_report(&self) -> bool {
        self.outputs.first().is_some()
    }

    /// The next report; `psdu` takes the bytes of a frame.
    pub fn poll<'a>(&mut self, now: Instant, psdu: &'a mut [u8; 127]) -> Option<mac::Event<'a>> {
        let first = self.outputs.first()?;
        if let Output::Frame { index } = first
            && let Some(packet) = self.head(index)
        {
            self.is_head_reported = true;
            let head = packet.copy(psdu, HEAD_LEN);
            return Some(mac::Event::FrameHead { head });
        }
        self.outputs.remove_first();
        Some(match first {
            Output::Preloaded => mac::Event::Preloaded,
            Output::Assessed { clear } => mac::Event::ChannelAssessed { clear },
            Output::Sent { end } => mac::Event::TransmitDone {
                at: self.instant(end, now),
            },
            Output::Frame { index } => {
                self.is_head_reported = false;
                let packet = self.frames.receive.get(index)?;
                let received = self.received.get_mut(index)?.take()?;
                let len = packet.len().saturating_sub(FCS_LEN);
                let meta = RxMeta {
                    rssi_dbm: received.rssi_dbm,
                    lqi: received.lqi,
                    channel: received.channel,
                    at: self.instant(received.end, now),
                };
                let psdu = packet.copy(psdu, len);
                mac::Event::FrameReceived { psdu, meta }
            }
        })
    }

    /// The frame whose first bytes are to be reported by themselves.
    fn head(&self, index: usize) -> Option<&'static Packet> {
        let packet = self.frames.receive.get(index)?;
        let is_long = packet.len() > HEAD_LEN + FCS_LEN;
        (is_long && !self.is_head_reported).then_some(packet)
    }

    /// The time at which the timer's count was `count`, less than 71 minutes ago.
    fn instant(&mut self, count: u32, now: Instant) -> Instant {
        let late = self.registers.count().wrapping_sub(count);
        Instant::from_micros(now.as_micros().saturating_sub(late.into()))
    }

    fn measure(&mut self) {
        self.excess_db = strength::excess_db(self.registers.heat());
    }

    fn take(&mut self, event: Event) -> bool {
        let is_set = self.registers.is_set(event);
        if is_set {
            self.registers.clear(event);
            // What the radio had written by then is read from now on.
            self.registers.fence();
        }
        is_set
    }

    fn report(&mut self, output: Output) {
        if !self.outputs.push(output) {
            count(&mut self.counters.lost_reports);
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.since = self.registers.count();
        self.suspect = None;
    }

    /// Whether a frame is on its way in.
    fn is_receiving(&self) -> bool {
        self.phase == Phase::Listening && self.registers.is_set(Event::FrameStart)
    }

    /// Gives a packet to the radio for its next start, with what was written to it; whatever is
    /// read from it has been read.
    fn hand_over(&mut self, packet: &'static Packet) {
        self.registers.set_packet(packet);
        self.registers.fence();
    }

    fn to_transmit(&self) -> &'static Packet {
        let [first, second] = &self.frames.transmit;
        match self.loaded {
            0 => first,
            _ => second,
        }
    }

    fn to_receive(&self) -> &'static Packet {
        let [first, ..] = &self.frames.receive;
        self.frames.receive.get(self.receiving).unwrap_or(first)
    }

    fn assess(&mut self) {
        self.outputs.forget_assessment();
        if matches!(self.phase, Phase::Answering | Phase::Sending) || self.is_receiving() {
            return self.report(Output::Assessed { clear: false });
        }
        self.enter(Phase::Assessing);
        self.ramp_up_by(Shortcuts::Assess);
        // The end of another one, until the radio went down, is none of this one.
        self.registers.clear(Event::ChannelClear);
        self.registers.clear(Event::ChannelBusy);
    }

    fn change_channel(&mut self, channel: u8) {
        if !(11..=26).contains(&channel) {
            return;
        }
        self.outputs.forget_assessment();
        let age = self.registers.count().wrapping_sub(self.since);
        self.next_channel = Some(channel);
        let is_busy = matches!(self.phase, Phase::Answering | Phase::Sending);
        if !is_busy || age > BUSY_MAX {
            self.is_fire_due = false;
            self.restart();
        }
    }

    /// Our frame is out. `next`: the count at which another one may begin.
    fn settle(&mut self, next: u32) {
        self.registers.transmit_at(None);
        if let Some(channel) = self.next_channel.take() {
            self.tune(channel);
        }
        match self.take_fire() {
            true => self.send(next),
            false if self.is_asleep => self.sleep(),
            false => self.listen(),
        }
    }

    fn tune(&mut self, channel: u8) {
        self.channel = channel;
        self.registers.set_channel(channel);
    }

    /// Listens on, or fires what waited for the end of the frame that ended at this count.
    fn listen_on(&mut self, end: u32) {
        match self.take_fire() {
            // Whoever that frame was for answers it.
            true => self.send(end.wrapping_add(TURNAROUND + ACK_AIR + TURNAROUND)),
            false => self.listen(),
        }
    }

    fn listen(&mut self) {
        self.enter(Phase::Listening);
        self.decision = None;
        self.registers.clear(Event::FrameStart);
        self.registers.clear(Event::HeadMatch);
        self.hand_over(self.to_receive());
        self.registers.set_shortcuts(Shortcuts::Receive);
        // With the shortcuts set, a radio on its way down comes up again by itself.
        match self.registers.state() {
            State::ReceiveIdle => self.registers.trigger(Task::Start),
            State::Disabled => self.registers.trigger(Task::ReceiveEnable),
            State::RampingUp | State::RampingDown => {}
            State::Receiving | State::Transmitting => self.registers.trigger(Task::Disable),
        }
    }

    fn sleep(&mut self) {
        self.enter(Phase::Asleep);
        self.ramp_down();
    }

    /// Lets the radio go down, and stay there. One that is down, or on its way, is let alone.
    fn ramp_down(&mut self) {
        self.registers.set_shortcuts(Shortcuts::None);
        match self.registers.state() {
            State::Disabled | State::RampingDown => {}
            _ => self.registers.trigger(Task::Disable),
        }
    }

    /// Begins anew, whatever the radio does.
    fn restart(&mut self) {
        self.registers.transmit_at(None);
        if let Some(channel) = self.next_channel.take() {
            self.tune(channel);
        }
        if self.is_asleep {
            return self.sleep();
        }
        self.enter(Phase::Listening);
        self.decision = None;
        self.hand_over(self.to_receive());
        self.ramp_up_by(Shortcuts::Receive);
        // Whatever ended until the radio went down.
        for event in [Event::FrameStart, Event::HeadMatch, Event::PhyEnd] {
            self.registers.clear(event);
        }
    }

    /// Ramps up anew, with shortcuts that lead from a disabled radio to one that receives.
    fn ramp_up_by(&mut self, shortcuts: Shortcuts) {
        self.registers.set_shortcuts(shortcuts);
        match self.registers.state() {
            State::Disabled => self.registers.trigger(Task::ReceiveEnable),
            // It comes up by the shortcuts.
            State::RampingDown => {}
            _ => self.registers.trigger(Task::Disable),
        }
    }

    fn judge(&self, len: usize) -> FilterDecision {
        let mut head = [0; HEAD_LEN];
        self.filter.judge(self.to_receive().copy(&mut head, len))
    }

    /// A frame has ended at the antenna.
    fn on_frame(&mut self) {
        let end = self.registers.captured().wrapping_sub(AIR_TO_END);
        let len = self.to_receive().len();
        let counters = &mut self.counters;
        if !self.registers.is_crc_good() {
            count(&mut counters.bad_crc);
            return self.listen_on(end);
        }
        if !(ACK_LEN..=127).contains(&len) {
            count(&mut counters.bad_length);
            return self.listen_on(end);
        }
        let decision = match self.decision.take() {
            Some(decision) => decision,
            None => self.judge((len - FCS_LEN).min(HEAD_LEN)),
        };
        if !decision.is_for_node {
            count(&mut self.counters.filtered);
            return self.listen_on(end);
        }
        let taken = self.receiving;
        let is_free =
            |(index, received): &(usize, &Option<Received>)| *index != taken && received.is_none();
        let Some((next, _)) = self.received.iter().enumerate().find(is_free) else {
            count(&mut self.counters.overruns);
            return self.listen_on(end);
        };
        if let Some(place) = self.received.get_mut(taken) {
            let excess_db = self.excess_db;
            // In the place of the FCS.
            let quality = self
                .frames
                .receive
                .get(taken)
                .map(|packet| packet.get(1 + len - FCS_LEN));
            *place = Some(Received {
                end,
                rssi_dbm: strength::true_dbm(self.registers.rssi_dbm(), excess_db),
                lqi: strength::lqi(quality.unwrap_or(0), excess_db),
                channel: self.channel,
            });
        }
        self.receiving = next;
        self.report(Output::Frame { index: taken });
        match decision.answer {
            Some(sequence) => self.answer(sequence, end),
            None => self.listen_on(end),
        }
    }
}

/// The channel of TCPlp's testbed, as `motet::mac` has it.
const CHANNEL: u8 = 26;

/// An ACK's PSDU, FCS included, bytes.
const ACK_LEN: usize = 5;
