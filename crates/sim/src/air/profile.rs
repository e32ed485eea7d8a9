//! The time and charge that a mote's radio and its driver cost.
//!
//! Purpose: the time between a MAC's wish and the air, which decides multi-hop goodput more than
//! the bit rate does. Every constant names its source.
//! Sources: `TCPlp` §4 and §6; the CIT paper; data sheets of the AT86RF233, the CC2420 and the
//! nRF52840; TinyOS 2.1.

use motet::mac::{self, RadioCapabilities};
use motet::time::Duration;

use crate::air::energy::Currents;
use crate::air::line::Line;
use crate::air::phy;

/// A radio, the processor beside it, and the driver between them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Profile {
    /// The radio's capabilities, as the MAC has to know them.
    pub capabilities: RadioCapabilities,
    /// CPU time to copy one byte of a frame into the radio, ns.
    pub transmit_copy_ns: u64,
    /// CPU time to copy one byte of a received frame out of it, ns.
    pub receive_copy_ns: u64,
    /// CPU time from the copy of a received frame to the stack's call: interrupt to process.
    pub handle: Duration,
    /// CPU time to compress or restore one TCP header. Counted where the compressor's work is
    /// asked for; too short to move a frame.
    pub compression: Duration,
    /// CPU time for one frame sent, above the driver: MAC, 6LoWPAN and IP. Counted, and moves no
    /// frame: what a frame needs until it is on the air is in `prepare` and in the copies.
    pub frame_sent: Duration,
    /// CPU time for one frame received, above the driver; counted as that for one sent.
    pub frame_received: Duration,
    /// CPU time for one segment of TCP, made or taken; counted like those.
    pub segment: Duration,
    /// A call of AES in software, which encrypts two blocks.
    pub cipher: Duration,
    /// CPU time between a clear channel and the turnaround before the frame; the radio
    /// listens, and a frame that begins meanwhile holds the transmission back.
    pub prepare: Duration,
    /// Half the width of the uniform variation of `prepare`. Without any, motes that
    /// collided once do so for ever: nothing else in the chain would separate them.
    pub jitter: Duration,
    /// The longest time from a frame's end until the driver takes the time stamp; drawn uniformly
    /// from zero. Zero if hardware takes the time stamp. The MAC knows it as
    /// [`RadioCapabilities::stamp_delay_max`].
    pub stamp_delay_max: Duration,
    /// Time from the order to listen until a radio that sleeps does.
    pub wake: Duration,
    /// Whether the radio hears nothing while a frame is copied, in either direction.
    pub deaf: bool,
    /// Whether the radio had one buffer for both directions before [`Self::hearing`].
    pub overlaps: bool,
    /// Whether the driver reads a frame's first bytes, and reports them, before the others:
    /// what fires a frame that waits in the radio.
    pub head_first: bool,
    /// Transmit power, dBm.
    pub transmit_dbm: f64,
    /// Where 1 % of 20-byte frames are lost, dBm.
    pub sensitivity_dbm: f64,
    /// Energy above which the channel counts as busy, dBm.
    pub cca_dbm: f64,
    /// The currents of the radio's states.
    pub currents: Currents,
    /// The line between a co-processor and its host; `None`: none that takes time.
    pub line: Option<Line>,
}

impl Profile {
    /// Hamilton (SAMR21: Cortex-M0+ and AT86RF233) with TCPlp's driver.
    ///
    /// A full frame takes 8.2 ms with mean backoff, turnarounds and ACK: 1.12 + 1.14 (copy)
    /// + 0.13 (CCA) + 0.82 + 0.19 + 4.26 + 0.19 + 0.35.
    pub const HAMILTON: Self = Self {
        capabilities: RadioCapabilities::AT86RF233,
        // Fitted on 64.1 kb/s over one hop at d = 40 ms (TCPlp §7.1); the SPI itself would
        // need 1.6 µs: the rest is the driver.
        transmit_copy_ns: 9_000,
        // Weak: moves two hops only.
        receive_copy_ns: 12_300,
        handle: Duration::ZERO,
        // Estimate, as that of the TelosB: four cycles at 48 MHz.
        compression: Duration::from_micros(107),
        // Estimates, as that of a header: four cycles at 48 MHz for each instruction.
        frame_sent: worked(FRAME_SENT_INSTRUCTIONS, 4, 48),
        frame_received: worked(FRAME_RECEIVED_INSTRUCTIONS, 4, 48),
        segment: worked(SEGMENT_INSTRUCTIONS, 4, 48),
        // 94,000 instructions for the nine calls of a full frame (counted for a Cortex-M0+), at 48
        // MHz and an instruction a cycle: no less than that.
        cipher: Duration::from_micros(218),
        // What is missing to 8.2 ms (TCPlp §6.4).
        prepare: Duration::from_micros(820),
        // Chosen: 12 %, as interrupts and cache misses of such a driver vary.
        jitter: Duration::from_micros(100),
        stamp_delay_max: Duration::ZERO,
        // AT86RF233 data sheet §12.4: SLEEP to TRX_OFF 380 µs, TRX_OFF to RX_ON 80 µs.
        wake: Duration::from_micros(460),
        // The driver enters the transmit state before it copies.
        deaf: true,
        overlaps: false,
        head_first: false,
        transmit_dbm: 0.0,
        // AT86RF233 data sheet §12.
        sensitivity_dbm: -101.0,
        // AT86RF233 data sheet §9.6: reset value 7 is -94 + 2 · 7.
        cca_dbm: -80.0,
        currents: Currents::HAMILTON,
        line: None,
    };

    /// `TelosB` (MSP430 and CC2420): two FIFOs of one frame each, ACKs by the radio.
    ///
    /// [`tinyos`] gives the CSMA that such motes run.
    pub const TELOSB: Self = Self {
        capabilities: RadioCapabilities::CC2420,
        // CIT paper: 220 kb/s without, 148 kb/s with the copy, hence 2.21 ms for 127 B; the
        // same in both directions, and never while the other is under way.
        transmit_copy_ns: 17_400,
        receive_copy_ns: 17_400,
        // Fitted on Fig 4, where forwarding without copies is near the bound: twice as much
        // contradicts it. An event and two process switches of an MSP430 at 4 MHz.
        handle: Duration::from_micros(150),
        // Estimate: 1,285 instructions of a 64-bit machine (`docs/reference/tcphc.md`), four
        // cycles of a 16-bit processor at 4 MHz each.
        compression: Duration::from_micros(1_285),
        // Zero: the CIT and TCPHC papers ran Contiki on this radio, and their figures of energy and
        // processor time count the driver's time only.
        frame_sent: Duration::ZERO,
        frame_received: Duration::ZERO,
        segment: Duration::ZERO,
        // Estimate: as many instructions, four cycles of a 16-bit processor at 4 MHz each.
        cipher: Duration::from_micros(10_444),
        // Fitted on 220 kb/s over one hop without the copy (CIT paper, Fig 3): frame,
        // turnaround and CCA leave no more. An interrupt and the strobe over SPI.
        prepare: Duration::from_micros(30),
        jitter: Duration::from_micros(20),
        // SFD pin into a timer's capture input.
        stamp_delay_max: Duration::ZERO,
        // CC2420 data sheet §5.4 and §14: crystal 860 µs, receiver 192 µs.
        wake: Duration::from_micros(1_052),
        // The receive FIFO fills while the processor writes the other.
        deaf: false,
        overlaps: false,
        head_first: true,
        transmit_dbm: 0.0,
        // CC2420 data sheet §5.2, typical.
        sensitivity_dbm: -95.0,
        // Contiki's driver, which the paper ran on: -45 in the register, -90 dBm. The data
        // sheet's default of -77 does not sense a sender two hops away.
        cca_dbm: -90.0,
        currents: Currents::TELOSB,
        line: None,
    };

    /// nRF52840: the radio takes frames from RAM and puts them there; its driver acknowledges
    /// within the interrupt, which is as good as hardware.
    pub const NRF52840: Self = Self {
        capabilities: RadioCapabilities {
            shared_buffer: false,
            auto_ack: true,
            // Product specification §6.20: fast ramp-up.
            channel_switch: Duration::from_micros(40),
            // Nordic's driver matches the sources of frames.
            pending: mac::Pending::PerNeighbour,
            ..RadioCapabilities::CC2420
        },
        transmit_copy_ns: 0,
        receive_copy_ns: 0,
        handle: Duration::ZERO,
        // Estimate, as that of the TelosB: two cycles at 64 MHz.
        compression: Duration::from_micros(40),
        // As those of the Hamilton: two cycles at 64 MHz.
        frame_sent: worked(FRAME_SENT_INSTRUCTIONS, 2, 64),
        frame_received: worked(FRAME_RECEIVED_INSTRUCTIONS, 2, 64),
        segment: worked(SEGMENT_INSTRUCTIONS, 2, 64),
        // As the Hamilton's, at 64 MHz.
        cipher: Duration::from_micros(163),
        // Chosen: an interrupt of a processor at 64 MHz and what it has to set.
        prepare: Duration::from_micros(60),
        jitter: Duration::from_micros(30),
        // Event into a timer's capture register, by PPI.
        stamp_delay_max: Duration::ZERO,
        // Product specification §5.4.4 and §6.20: crystal 360 µs, fast ramp-up 40 µs.
        wake: Duration::from_micros(400),
        deaf: false,
        overlaps: false,
        head_first: true,
        transmit_dbm: 0.0,
        // Product specification §6.20.15.
        sensitivity_dbm: -100.0,
        // Default of Nordic's 802.15.4 driver.
        cca_dbm: -75.0,
        currents: Currents::NRF52840,
        line: None,
    };

    /// A radio co-processor: an nRF52840 whose firmware backs off, assesses, and takes ACKs by
    /// itself, as `ot-rcp` does, without the line to its host. The same seam as a dongle's: the MAC
    /// hears how an attempt ended.
    pub const RCP: Self = Self {
        capabilities: RadioCapabilities {
            channel_switch: Self::NRF52840.capabilities.channel_switch,
            pending: mac::Pending::PerNeighbour,
            ..RadioCapabilities::OFFLOADING
        },
        // Its host hears of whole frames.
        head_first: false,
        ..Self::NRF52840
    };

    /// A driver with no cost at all on a radio with separate buffers: what the standard
    /// alone allows. ACKs come from software in no time.
    pub const IDEAL: Self = Self {
        capabilities: RadioCapabilities {
            shared_buffer: false,
            auto_ack: false,
            channel_switch: Duration::ZERO,
            ..RadioCapabilities::CC2420
        },
        transmit_copy_ns: 0,
        receive_copy_ns: 0,
        handle: Duration::ZERO,
        compression: Duration::ZERO,
        frame_sent: Duration::ZERO,
        frame_received: Duration::ZERO,
        segment: Duration::ZERO,
        cipher: Duration::ZERO,
        prepare: Duration::ZERO,
        jitter: Duration::ZERO,
        stamp_delay_max: Duration::ZERO,
        wake: Duration::ZERO,
        deaf: false,
        overlaps: false,
        head_first: false,
        transmit_dbm: 0.0,
        sensitivity_dbm: -101.0,
        cca_dbm: -80.0,
        currents: Currents::HAMILTON,
        line: None,
    };

    /// This profile with a radio that listens while frames are copied: two buffers, and a driver
    /// that changes state only to fire.
    #[must_use]
    pub const fn hearing(mut self) -> Self {
        self.deaf = false;
        self.overlaps |= self.capabilities.shared_buffer;
        self.capabilities.shared_buffer = false;
        self
    }

    /// The noise floor, dBm.
    pub fn noise_dbm(&self) -> f64 {
        self.sensitivity_dbm - phy::NOISE_BELOW_SENSITIVITY_DB
    }

    /// Time to copy a frame into the radio.
    pub const fn transmit_copy(&self, psdu_len: usize) -> Duration {
        Duration::from_micros((self.transmit_copy_ns * psdu_len as u64 + 500) / 1_000)
    }

    /// Time to copy a frame out of the radio.
    pub const fn receive_copy(&self, psdu_len: usize) -> Duration {
        Duration::from_micros((self.receive_copy_ns * psdu_len as u64 + 500) / 1_000)
    }

    /// Mean time from one frame to the next of a sender whose first attempts all succeed:
    /// backoff, copy, assessment, preparation, frame, ACK, with both turnarounds. Backoff and
    /// copy are as long as the interframe spacing asks, at least.
    ///
    /// `be_min`: the backoff exponent of a first attempt.
    pub fn cycle(&self, psdu_len: usize, be_min: u8) -> Duration {
        let spacing = match psdu_len > mac::config::SIFS_PSDU_LEN_MAX {
            true => mac::config::LIFS,
            false => mac::config::SIFS,
        };
        let least = (spacing - phy::TURNAROUND - phy::CCA).as_micros();
        let copy = self.transmit_copy(psdu_len).as_micros();
        let slots = 1u64 << be_min.min(8);
        let before = |slot: u64| (phy::UNIT_BACKOFF.as_micros() * slot + copy).max(least);
        Duration::from_micros((0..slots).map(before).sum::<u64>() / slots)
            + phy::CCA
            + self.prepare
            + phy::TURNAROUND
            + phy::air_time(psdu_len)
            + phy::TURNAROUND
            + phy::air_time(phy::ACK_LEN)
    }
}

/// The time of `instructions` instructions.
const fn worked(instructions: u64, cycles_each: u64, mhz: u64) -> Duration {
    Duration::from_micros((instructions * cycles_each + mhz / 2) / mhz)
}

/// `frame_sent` and `frame_received` of `cargo xtask peers`, counted on x86-64. The radios compute
/// the frame check sequence.
const FRAME_SENT_INSTRUCTIONS: u64 = 7_667;
const FRAME_RECEIVED_INSTRUCTIONS: u64 = 4_136;

/// The mean of `bulk_send` and `bulk_receive` there, each with half an ACK.
const SEGMENT_INSTRUCTIONS: u64 = 2_324;

/// `config` with the CSMA of TinyOS on a CC2420, rounded to unit backoffs.
///
/// Initial backoff 10 + U{0..309} jiffies of 1/32768 s, mean 5.0 ms: BE 5, mean 5.0. After a
/// busy channel 10 + U{0..69}, mean 1.35 ms: BE 3, mean 1.1. Assessments have no limit; the
/// ACK may come within 256 jiffies; `BLIP_L2_RETRIES` 5 and `BLIP_L2_DELAY` 103 ms, which we
/// draw from [0, 206] since our delay is random.
pub fn tinyos(config: &mac::Config) -> mac::Config {
    mac::Config {
        be_min: 5,
        // BE after a busy channel is the lesser of BE + 1 and this.
        be_max: 3,
        csma_backoffs_max: u8::MAX,
        attempts_max: 6,
        retry_delay_max: Duration::from_millis(206),
        ack_wait: Duration::from_micros(7_812),
        ..config.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_frame_takes_what_was_measured() {
        let full = Profile::HAMILTON.cycle(127, 3).as_micros();
        assert!(
            (8_150..=8_250).contains(&full),
            "{full} µs, TCPlp §6.4 has 8.2 ms"
        );
        // 6,240 and an eighth of the unit backoff by which the shortest backoff has to grow.
        assert_eq!(Profile::IDEAL.cycle(127, 3).as_micros(), 6_280);
        assert_eq!(Profile::IDEAL.cycle(18, 3).as_micros(), 6_240 - 109 * 32);
        let copy = Profile::TELOSB.transmit_copy(127).as_micros();
        assert_eq!(copy, 2_210, "the CIT paper has 2.21 ms");
    }
}
