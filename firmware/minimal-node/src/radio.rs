//! A made-up 802.15.4 radio, as plain as memory-mapped ones are: a block of registers whose
//! accesses are volatile, so that nothing the stack computes for it can be optimised away.
//!
//! Place: stands where a device's own radio driver would. Left out: power, calibration,
//! interrupts (the loop polls).

/// What the radio has to say.
pub enum Interrupt {
    /// A frame with a good FCS lies in the receive buffer.
    Received {
        /// PSDU bytes, FCS included; at most 127.
        len: usize,
        /// Signal strength, dBm.
        rssi_dbm: i8,
        /// Link quality, 0 to 255.
        lqi: u8,
    },
    /// The last symbol has left the antenna.
    TransmitDone,
    /// Clear-channel assessment is over.
    ChannelAssessed {
        /// Whether the channel was idle.
        clear: bool,
    },
}

/// What the radio can be told, with the register's codes.
#[derive(Clone, Copy)]
#[repr(u32)]
pub enum Command {
    /// Receive until told otherwise.
    Listen = 1,
    /// Power down.
    Sleep = 2,
    /// One clear-channel assessment; ends in [`Interrupt::ChannelAssessed`].
    AssessChannel = 3,
    /// Send the loaded frame now; ends in [`Interrupt::TransmitDone`].
    Fire = 4,
    /// Send the loaded frame when the clock reaches the argument.
    FireAt = 5,
    /// Tune to the channel in the argument.
    ChangeChannel = 6,
}

/// The one handle to the radio.
pub struct Radio {
    /// High half of the 64-bit clock.
    clock_wraps: u32,
    /// The clock's low half at its last reading.
    clock_us: u32,
}

impl Radio {
    /// The radio; called once, by `main`.
    #[expect(
        clippy::new_without_default,
        reason = "there is one radio, not a default one"
    )]
    pub fn new() -> Self {
        Self {
            clock_wraps: 0,
            clock_us: 0,
        }
    }

    /// Microseconds since power-on. Must be read at least once in 71 minutes.
    pub fn now_us(&mut self) -> u64 {
        let clock_us = read(CLOCK_US);
        if clock_us < self.clock_us {
            self.clock_wraps = self.clock_wraps.wrapping_add(1);
        }
        self.clock_us = clock_us;
        (u64::from(self.clock_wraps) << 32) | u64::from(clock_us)
    }

    /// Takes the pending interrupt, if any.
    pub fn interrupt(&mut self) -> Option<Interrupt> {
        let cause = read(INTERRUPT);
        write(INTERRUPT, cause);
        match cause {
            1 => Some(Interrupt::Received {
                len: (read(FRAME_LEN) & 0x7f) as usize,
                rssi_dbm: read(RSSI_DBM) as i8,
                lqi: read(LQI) as u8,
            }),
            2 => Some(Interrupt::TransmitDone),
            3 | 4 => Some(Interrupt::ChannelAssessed { clear: cause == 3 }),
            _ => None,
        }
    }

    /// Copies the received PSDU out of the receive FIFO.
    pub fn read_frame(&mut self, psdu: &mut [u8]) {
        for byte in psdu {
            *byte = read(FIFO) as u8;
        }
    }

    /// Copies a PSDU into the transmit FIFO.
    pub fn load_frame(&mut self, psdu: &[u8]) {
        for &byte in psdu {
            write(FIFO, u32::from(byte));
        }
    }

    /// Gives a command; `argument` is 0 where it takes none.
    pub fn command(&mut self, command: Command, argument: u32) {
        write(ARGUMENT, argument);
        write(COMMAND, command as u32);
    }

    /// A seed from the radio's noise, as real ones offer it.
    pub fn seed(&mut self) -> [u64; 2] {
        let word = || (u64::from(read(RANDOM)) << 32) | u64::from(read(RANDOM));
        [word(), word()]
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

fn read(register: usize) -> u32 {
    // SAFETY: `register` is one of the constants above, all inside the mapped block.
    unsafe { REGISTERS.add(register).read_volatile() }
}

fn write(register: usize, value: u32) {
    // SAFETY: as in `read`; no register write has an effect on memory.
    unsafe { REGISTERS.add(register).write_volatile(value) }
}
