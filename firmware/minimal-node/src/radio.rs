//! A driver for a made-up 802.15.4 radio, as plain as memory-mapped ones are: a block of
//! registers whose accesses are volatile, so that nothing the stack computes for it can be
//! optimised away.
//!
//! Place: stands where a device's own driver would, between registers and [`motet::mac`].
//! Left out: power, calibration, interrupts (the main loop polls).

use motet::mac::{Action, Event, RadioCapabilities, RxMeta};
use motet::time::Instant;

/// The one handle to the radio.
pub struct Radio {
    /// High half of the 64-bit clock.
    clock_wraps: u32,
    /// The clock's low half at its last reading.
    clock_us: u32,
    /// Where the radio is tuned.
    channel: u8,
    /// A frame has been copied in and the MAC has not heard of it.
    preloaded: bool,
}

impl Radio {
    /// Separate buffers, ACKs by software: the case in which the stack has most to do.
    pub const CAPABILITIES: RadioCapabilities = RadioCapabilities {
        auto_ack: false,
        ..RadioCapabilities::CC2420
    };

    /// The radio; called once, by `main`.
    #[expect(
        clippy::new_without_default,
        reason = "there is one radio, not a default one"
    )]
    pub fn new() -> Self {
        Self {
            clock_wraps: 0,
            clock_us: 0,
            channel: 0,
            preloaded: false,
        }
    }

    /// Time since power-on. Must be read at least once in 71 minutes.
    pub fn now(&mut self) -> Instant {
        let clock_us = read(CLOCK_US);
        if clock_us < self.clock_us {
            self.clock_wraps = self.clock_wraps.wrapping_add(1);
        }
        self.clock_us = clock_us;
        Instant::from_micros((u64::from(self.clock_wraps) << 32) | u64::from(clock_us))
    }

    /// A seed from the radio's noise, as real ones offer it.
    pub fn seed(&self) -> [u64; 2] {
        let word = || (u64::from(self.noise()) << 32) | u64::from(self.noise());
        [word(), word()]
    }

    /// A word of that noise.
    pub fn noise(&self) -> u32 {
        read(RANDOM)
    }

    /// This device's EUI-64, from its maker.
    pub fn eui64(&self) -> [u8; 8] {
        let word = || u64::from(read(SERIAL));
        ((word() << 32) | word()).to_be_bytes()
    }

    /// Programs an interrupt at `deadline`, or none.
    pub fn wake_at(&mut self, deadline: Option<Instant>) {
        write(WAKE_US, deadline.map_or(0, |at| at.as_micros() as u32));
    }

    /// The radio's next report, if any. `psdu` takes a received frame.
    pub fn event<'a>(&mut self, psdu: &'a mut [u8; 127]) -> Option<Event<'a>> {
        if core::mem::take(&mut self.preloaded) {
            return Some(Event::Preloaded);
        }
        let cause = read(INTERRUPT);
        write(INTERRUPT, cause);
        match cause {
            RECEIVED => {
                let psdu = psdu.get_mut(..(read(FRAME_LEN) & 0x7f) as usize)?;
                for byte in &mut *psdu {
                    *byte = read(FIFO) as u8;
                }
                let meta = RxMeta {
                    rssi_dbm: read(RSSI_DBM) as i8,
                    lqi: read(LQI) as u8,
                    channel: self.channel,
                    at: self.now(),
                };
                Some(Event::FrameReceived { psdu, meta })
            }
            TRANSMITTED => Some(Event::TransmitDone { at: self.now() }),
            CLEAR => Some(Event::ChannelAssessed { clear: true }),
            BUSY => Some(Event::ChannelAssessed { clear: false }),
            _ => None,
        }
    }

    /// Carries out an action of the MAC; `out` holds the frame that the action names.
    pub fn perform(&mut self, action: Action, out: &[u8]) {
        match action {
            Action::Preload { len } => {
                load(out.get(..len));
                self.preloaded = true;
            }
            Action::AssessChannel => write(COMMAND, ASSESS),
            Action::Fire => write(COMMAND, FIRE),
            Action::Transmit { len, at } => {
                load(out.get(..len));
                write(ARGUMENT, at.as_micros() as u32);
                write(COMMAND, FIRE_AT);
            }
            Action::Listen => write(COMMAND, LISTEN),
            Action::Sleep => write(COMMAND, SLEEP),
            Action::ChangeChannel { channel } => {
                self.channel = channel;
                write(ARGUMENT, u32::from(channel));
                write(COMMAND, TUNE);
            }
            // No packets wait here for nodes that sleep.
            Action::SetPending { .. } => {}
        }
    }
}

/// Copies a PSDU into the transmit FIFO.
fn load(psdu: Option<&[u8]>) {
    for &byte in psdu.unwrap_or_default() {
        write(FIFO, u32::from(byte));
    }
}

// The block's layout: each register is one 32-bit word.
const REGISTERS: *mut u32 = 0x4200_0000 as *mut u32;
const INTERRUPT: usize = 0;
const FRAME_LEN: usize = 1;
const RSSI_DBM: usize = 2;
const LQI: usize = 3;
const CLOCK_US: usize = 4;
const ARGUMENT: usize = 5;
const COMMAND: usize = 6;
const FIFO: usize = 7;
const RANDOM: usize = 8;
const SERIAL: usize = 9;
const WAKE_US: usize = 10;

// Causes in the interrupt register.
const RECEIVED: u32 = 1;
const TRANSMITTED: u32 = 2;
const CLEAR: u32 = 3;
const BUSY: u32 = 4;

// Codes of the command register.
const LISTEN: u32 = 1;
const SLEEP: u32 = 2;
const ASSESS: u32 = 3;
const FIRE: u32 = 4;
const FIRE_AT: u32 = 5;
const TUNE: u32 = 6;

fn read(register: usize) -> u32 {
    // SAFETY: `register` is one of the constants above, all inside the mapped block.
    unsafe { REGISTERS.add(register).read_volatile() }
}

fn write(register: usize, value: u32) {
    // SAFETY: as in `read`; no register write has an effect on memory.
    unsafe { REGISTERS.add(register).write_volatile(value) }
}
