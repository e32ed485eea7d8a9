//! RADIO, TIMER and PPI of an nRF52840, as far as the driver sees them, in steps of a microsecond.
//!
//! Times are those of the Product Specification (§6.20.15): ramp-up 40 µs, ramp-down 21 µs after
//! sending, an assessment of 8 symbols; and two of Nordic's own models of the registers: an event
//! 22 µs after the last bit at the receiver's antenna, the first bit 1 µs after START. (Nordic's
//! driver counts 23 µs for both together.)
//! Left out: fading, capture, and all but the fast ramp-up.
#![allow(dead_code, reason = "each test binary uses a part of what they share")]

mod air;
mod bench;
mod memory;
pub(crate) mod turns;

use std::cell::{RefCell, RefMut};
use std::rc::Rc;

use memory::Memory;
use motet_nrf::{Event, HEAD_LEN, Packet, Registers, Shortcuts, State, Task};

pub(crate) use air::OnAir;
pub(crate) use bench::Bench;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Chip {
    Disabled,
    RxRampUp,
    RxIdle,
    Rx,
    Assessing,
    RxRampDown,
    TxRampUp,
    Tx,
    TxRampDown,
}

#[derive(Debug)]
struct Inner {
    now: u64,
    /// The timer's count at time 0.
    offset: u32,
    chip: Chip,
    /// When the chip leaves its state by itself.
    until: Option<u64>,
    events: Vec<Event>,
    shortcuts: Shortcuts,
    packet: Option<&'static Packet>,
    memory: Memory,
    /// What START took.
    started: Option<&'static Packet>,
    /// The frame that is being received: its number, and since when the receiver has run.
    listens_since: u64,
    channel: u8,
    tuned: u8,
    /// TXPOWER, and what of it the last ramp-up took, dBm.
    power_dbm: i8,
    sending_dbm: i8,
    /// CCAEDTHRES.
    busy_energy: u8,
    compare: Option<u32>,
    captured: u32,
    is_crc_good: bool,
    /// RSSISAMPLE, with its sign.
    rssi_dbm: i8,
    /// Whether the high-frequency clock runs from the crystal.
    has_crystal: bool,
    /// How hot it is, quarters of 1 °C.
    heat: i32,
    /// How hot it was when that was last measured; `None`: a chip that is set up measures it.
    measured_heat: Option<i32>,
    air: Vec<OnAir>,
    sent: Vec<OnAir>,
    sending: Vec<u8>,
    faults: Vec<String>,
    /// How long the processor takes for one access to a register, ns.
    access_ns: u64,
    /// What its accesses have taken beyond whole microseconds, ns.
    spent_ns: u64,
}

/// A handle to the model: the driver has one, the test another.
#[derive(Clone, Debug)]
pub(crate) struct Model(Rc<RefCell<Inner>>);

impl Model {
    /// A chip that has just been set up, its timer this far at time 0.
    pub(crate) fn new(offset: u32) -> Self {
        Self(Rc::new(RefCell::new(Inner {
            now: 0,
            offset,
            chip: Chip::Disabled,
            until: None,
            events: Vec::new(),
            shortcuts: Shortcuts::None,
            packet: None,
            memory: Memory::default(),
            started: None,
            listens_since: 0,
            channel: 0,
            tuned: 0,
            power_dbm: 0,
            sending_dbm: 0,
            busy_energy: 0,
            compare: None,
            captured: 0,
            is_crc_good: false,
            rssi_dbm: 0,
            has_crystal: true,
            heat: ROOM,
            measured_heat: None,
            air: Vec::new(),
            sent: Vec::new(),
            sending: Vec::new(),
            faults: Vec::new(),
            access_ns: 0,
            spent_ns: 0,
        })))
    }

    /// From now on each access to a register takes this long, and what happens at the radio
    /// happens between two of them.
    pub(crate) fn set_access(&self, access_ns: u64) {
        self.0.borrow_mut().access_ns = access_ns;
    }

    /// From now on the high-frequency clock runs from the crystal, or not.
    pub(crate) fn set_crystal(&self, has_crystal: bool) {
        self.0.borrow_mut().has_crystal = has_crystal;
    }

    /// From now on it is so hot, quarters of 1 °C.
    pub(crate) fn set_heat(&self, heat: i32) {
        self.0.borrow_mut().heat = heat;
    }

    /// The radio, for one access to a register, after the time that the access takes.
    fn access(&self) -> RefMut<'_, Inner> {
        let mut inner = self.0.borrow_mut();
        inner.spent_ns += inner.access_ns;
        while inner.spent_ns >= 1_000 {
            inner.spent_ns -= 1_000;
            inner.step();
        }
        inner
    }

    pub(crate) fn now(&self) -> u64 {
        self.0.borrow().now
    }

    /// Puts a frame of another node on the air.
    pub(crate) fn put(&self, frame: OnAir) {
        self.0.borrow_mut().air.push(frame);
    }

    /// What this radio has sent.
    pub(crate) fn sent(&self) -> Vec<OnAir> {
        self.0.borrow().sent.clone()
    }

    /// What no driver may do, and did.
    fn faults(&self) -> Vec<String> {
        self.0.borrow().faults.clone()
    }

    /// Whether an event that raises the interrupt is set.
    pub(crate) fn is_interrupting(&self) -> bool {
        let inner = self.0.borrow();
        inner.events.iter().any(|event| *event != Event::FrameStart)
    }

    /// A microsecond.
    pub(crate) fn step(&self) {
        self.0.borrow_mut().step();
    }
}

impl Inner {
    fn count(&self) -> u32 {
        self.offset.wrapping_add(self.now as u32)
    }

    fn raise(&mut self, event: Event) {
        if event == Event::PhyEnd {
            self.captured = self.count();
        }
        if !self.events.contains(&event) {
            self.events.push(event);
        }
    }

    fn go(&mut self, chip: Chip, for_us: Option<u64>) {
        self.chip = chip;
        self.until = for_us.map(|span| self.now + span);
    }

    fn step(&mut self) {
        self.now += 1;
        if self.until == Some(self.now) {
            self.leave();
        }
        if self.compare == Some(self.count()) {
            self.trigger(Task::TransmitEnable);
        }
        if self.chip == Chip::Rx {
            self.receive();
        }
        // What is over, and no assessment looks back at any more.
        let now = self.now;
        self.air
            .retain(|frame| frame.end() + ASSESS_US + AIR_TO_EVENT_US > now);
    }

    /// The end of a state that ends by itself.
    fn leave(&mut self) {
        match self.chip {
            Chip::RxRampUp => {
                self.go(Chip::RxIdle, None);
                match self.shortcuts {
                    Shortcuts::Receive => self.trigger(Task::Start),
                    Shortcuts::Assess => self.go(Chip::Assessing, Some(ASSESS_US)),
                    Shortcuts::None | Shortcuts::Transmit => {}
                }
            }
            Chip::Assessing => {
                let is_busy = |frame: &OnAir| {
                    frame.start < self.now
                        && self.now - ASSESS_US < frame.end()
                        && frame.channel == self.tuned
                        // A carrier is enough; what is none needs energy.
                        && (!frame.is_noise || self.energy_of(frame) > self.busy_energy.into())
                };
                let event = match self.air.iter().any(is_busy) {
                    true => Event::ChannelBusy,
                    false => Event::ChannelClear,
                };
                self.go(Chip::RxIdle, None);
                self.raise(event);
            }
            Chip::TxRampUp => {
                if self.shortcuts == Shortcuts::Transmit {
                    self.send();
                }
            }
            Chip::Tx => self.end_sending(),
            Chip::RxRampDown | Chip::TxRampDown => self.on_disabled(),
            Chip::Disabled | Chip::RxIdle | Chip::Rx => {}
        }
    }

    /// The energy that the radio measures, in its units.
    fn energy_of(&self, frame: &OnAir) -> i16 {
        (i16::from(frame.dbm + self.excess_db()) - ENERGY_FLOOR_DBM).max(0)
    }

    /// How much too strong a signal is measured: erratum 153 of the nRF52840.
    fn excess_db(&self) -> i8 {
        // (not hotter than, °C; how much is to be added to a figure that counts downwards)
        const STEPS: [(i32, i8); 6] = [(-30, 3), (-10, 2), (10, 1), (30, 0), (50, -1), (70, -2)];
        let step = STEPS.iter().find(|(celsius, _)| self.heat <= 4 * celsius);
        step.map_or(-3, |(_, excess)| *excess)
    }

    fn on_disabled(&mut self) {
        self.go(Chip::Disabled, None);
        if matches!(self.shortcuts, Shortcuts::Receive | Shortcuts::Assess) {
            self.trigger(Task::ReceiveEnable);
        }
    }

    fn send(&mut self) {
        self.started = self.packet;
        let Some(psdu) = self.memory.psdu() else {
            let fault = "a packet was sent before a fence".to_owned();
            return self.faults.push(fault);
        };
        if !(ACK_LEN..=127).contains(&psdu.len()) {
            let fault = format!("{} bytes were sent, which are no frame", psdu.len());
            self.faults.push(fault);
        }
        self.sending = psdu;
        let on_air = (HEADER_BYTES + self.sending.len() as u64) * BYTE_US;
        self.go(Chip::Tx, Some(START_TO_AIR_US + on_air));
    }

    fn end_sending(&mut self) {
        let psdu = std::mem::take(&mut self.sending);
        if self.started.map(memory::psdu_of).as_ref() != Some(&psdu) {
            self.faults
                .push("a frame was changed while it was on the air".to_owned());
        }
        let on_air = (HEADER_BYTES + psdu.len() as u64) * BYTE_US;
        self.sent.push(OnAir {
            channel: self.tuned,
            dbm: self.sending_dbm,
            ..OnAir::of(self.now - on_air, psdu)
        });
        self.raise(Event::PhyEnd);
        self.trigger(Task::Disable);
    }

    /// Whatever of a frame has come by now.
    fn receive(&mut self) {
        let (since, tuned, now) = (self.listens_since, self.tuned, self.now);
        let is_heard =
            |frame: &&OnAir| frame.start >= since && frame.channel == tuned && !frame.is_noise;
        // The first one locks the receiver until its end.
        let Some(frame) = self.air.iter().filter(is_heard).min_by_key(|f| f.start) else {
            return;
        };
        let frame = frame.clone();
        let at = |bytes: u64| frame.start + bytes * BYTE_US + AIR_TO_EVENT_US;
        if now == at(HEADER_BYTES) {
            self.raise(Event::FrameStart);
        }
        if frame.received_len() > HEAD_LEN && now == at(HEADER_BYTES + HEAD_LEN as u64) {
            self.write(&frame, HEAD_LEN);
            self.raise(Event::HeadMatch);
        }
        if now == frame.end() + AIR_TO_EVENT_US {
            self.write(&frame, frame.received_len());
            self.is_crc_good = frame.is_crc_good && frame.phr >= 2;
            self.rssi_dbm = frame.dbm + self.excess_db();
            // In the place of the FCS.
            if let (Some(packet), len @ 2..) = (self.started, frame.received_len()) {
                let quality = self.energy_of(&frame) as u8;
                self.memory.write(packet, 1 + len - 2, quality);
            }
            self.go(Chip::RxIdle, None);
            self.raise(Event::PhyEnd);
            if self.shortcuts == Shortcuts::Transmit {
                self.trigger(Task::Disable);
            }
        }
    }

    fn write(&mut self, frame: &OnAir, len: usize) {
        let Some(packet) = self.started else { return };
        self.memory.write(packet, 0, frame.phr);
        for index in 0..len {
            let byte = frame.psdu.get(index).copied().unwrap_or(0);
            self.memory.write(packet, 1 + index, byte);
        }
    }

    /// Without it the radio is beside its channel, for others, too.
    fn need_crystal(&mut self) {
        if !self.has_crystal {
            self.faults.push("a ramp-up without the crystal".to_owned());
        }
    }

    fn trigger(&mut self, task: Task) {
        match (task, self.chip) {
            (Task::TransmitEnable, Chip::Disabled) => {
                self.tuned = self.channel;
                self.sending_dbm = self.power_dbm;
                self.need_crystal();
                self.go(Chip::TxRampUp, Some(RAMP_UP_US));
            }
            (Task::ReceiveEnable, Chip::Disabled) => {
                self.tuned = self.channel;
                self.need_crystal();
                self.go(Chip::RxRampUp, Some(RAMP_UP_US));
            }
            (Task::Start, Chip::RxIdle) => {
                self.started = self.packet;
                self.listens_since = self.now;
                self.go(Chip::Rx, None);
            }
            // It says once more that it is disabled.
            (Task::Disable, Chip::Disabled) => self.on_disabled(),
            (Task::Disable, Chip::TxRampUp | Chip::Tx) => {
                self.go(Chip::TxRampDown, Some(TX_RAMP_DOWN_US));
            }
            (Task::Disable, Chip::RxRampUp | Chip::RxIdle | Chip::Rx | Chip::Assessing) => {
                self.go(Chip::RxRampDown, Some(RX_RAMP_DOWN_US));
            }
            // Among them DISABLE on the way down, which the Product Specification leaves open.
            (task, chip) => self.faults.push(format!("{task:?} while {chip:?}")),
        }
    }
}

impl Registers for Model {
    fn trigger(&mut self, task: Task) {
        self.access().trigger(task);
    }

    fn is_set(&self, event: Event) -> bool {
        self.access().events.contains(&event)
    }

    fn clear(&mut self, event: Event) {
        self.access().events.retain(|set| *set != event);
    }

    fn set_shortcuts(&mut self, shortcuts: Shortcuts) {
        self.access().shortcuts = shortcuts;
    }

    fn set_packet(&mut self, packet: &'static Packet) {
        let mut inner = self.access();
        inner.packet = Some(packet);
        inner.memory.forget();
    }

    fn fence(&mut self) {
        let inner = &mut *self.access();
        inner.memory.fence(inner.packet);
    }

    fn set_channel(&mut self, channel: u8) {
        self.access().channel = channel;
    }

    fn set_power_dbm(&mut self, dbm: i8) {
        self.access().power_dbm = dbm;
    }

    fn set_busy_energy(&mut self, energy: u8) {
        self.access().busy_energy = energy;
    }

    fn state(&self) -> State {
        match self.access().chip {
            Chip::Disabled => State::Disabled,
            Chip::RxRampUp | Chip::TxRampUp => State::RampingUp,
            Chip::RxIdle => State::ReceiveIdle,
            Chip::Rx | Chip::Assessing => State::Receiving,
            Chip::Tx => State::Transmitting,
            Chip::RxRampDown | Chip::TxRampDown => State::RampingDown,
        }
    }

    fn is_crc_good(&self) -> bool {
        self.access().is_crc_good
    }

    fn rssi_dbm(&self) -> i8 {
        self.access().rssi_dbm
    }

    fn has_crystal(&self) -> bool {
        self.access().has_crystal
    }

    fn heat(&mut self) -> i32 {
        let mut inner = self.access();
        let heat = inner.heat;
        inner.measured_heat.replace(heat).unwrap_or(heat)
    }

    fn count(&mut self) -> u32 {
        self.access().count()
    }

    fn captured(&self) -> u32 {
        self.access().captured
    }

    fn transmit_at(&mut self, count: Option<u32>) {
        self.access().compare = count;
    }
}

/// A byte on the air, µs.
pub(crate) const BYTE_US: u64 = 32;
/// Preamble, delimiter and length, bytes.
pub(crate) const HEADER_BYTES: u64 = 6;
/// The shortest frame's PSDU, bytes.
const ACK_LEN: usize = 5;
/// ED_RSSIOFFS of the nRF52840.
const ENERGY_FLOOR_DBM: i16 = -92;
/// 20 °C, in quarters.
const ROOM: i32 = 80;
const RAMP_UP_US: u64 = 40;
const TX_RAMP_DOWN_US: u64 = 21;
const RX_RAMP_DOWN_US: u64 = 1;
const ASSESS_US: u64 = 128;
const START_TO_AIR_US: u64 = 1;
const AIR_TO_EVENT_US: u64 = 22;
