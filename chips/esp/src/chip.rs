//! Attempts of a radio that assesses once, and reports no more than done or failed.

use embassy_futures::select::{Either, select};
use embassy_time::{Duration, Timer, with_timeout};
use motet::limits::PSDU_LEN_MAX;
use motet::time::Instant;
use motet_embassy::mac::{AttemptOutcome, Pending, RadioCapabilities, RxMeta};
use motet_embassy::offload::{Chip, Settings, now};

use crate::raw::{ACK_US, FCS_LEN, Raw, asks_for_ack, before};
use crate::reports::{Reports, Transmission};

/// The driver of `esp-radio`, as far as it is used here.
pub trait Hardware {
    /// Sets the configuration, which counts from the next transmission or the next start of the
    /// receiver on.
    fn configure(&mut self, configuration: &Configuration);

    /// Starts the receiver, where it is off. Ends a transmission, and a wait for an ACK.
    fn listen(&mut self);

    /// Assesses the channel, and sends a frame with room for its FCS if it is clear.
    fn transmit(&mut self, psdu: &[u8]);

    /// The oldest frame of the queue. Starts the receiver anew, so that a frame on its way is lost.
    fn take(&mut self) -> Option<Raw>;

    /// The ACK of the last transmission.
    fn ack(&self) -> Option<Raw>;

    /// 32 random bits.
    fn random(&mut self) -> u32;
}

/// The settings of a radio.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Configuration {
    /// PAN identifier.
    pub pan: u16,
    /// Short address; 0xfffe: none.
    pub short: u16,
    /// EUI-64, most significant byte first.
    pub extended: [u8; 8],
    /// Channel, 11 to 26.
    pub channel: u8,
    /// The receiver is switched on again after each frame.
    pub is_listening: bool,
}

/// What radio and adaptor do by themselves.
pub const CAPABILITIES: RadioCapabilities = RadioCapabilities {
    stamp_delay_max: motet::time::Duration::from_millis(5),
    // Its ACKs say always that something waits.
    pending: Pending::None,
    ..RadioCapabilities::OFFLOADING
};

/// A radio of the ESP32-C6 or ESP32-H2.
pub struct Esp<H> {
    hardware: H,
    reports: &'static Reports,
    configuration: Configuration,
    be_min: u8,
    be_max: u8,
    csma_backoffs_max: u8,
}

impl<H: Hardware> Esp<H> {
    /// `reports`: those of this radio's interrupt.
    pub const fn new(hardware: H, reports: &'static Reports) -> Self {
        Self {
            hardware,
            reports,
            configuration: Configuration {
                pan: 0xffff,
                short: NO_SHORT,
                extended: [0; 8],
                channel: 26,
                is_listening: true,
            },
            be_min: 3,
            be_max: 5,
            csma_backoffs_max: 4,
        }
    }

    fn configure(&mut self) {
        self.hardware.configure(&self.configuration);
    }

    async fn back_off(&mut self, exponent: u8) {
        let periods = self.hardware.random() & !(u32::MAX << exponent.min(8));
        Timer::after(Duration::from_micros(u64::from(periods) * BACKOFF_US)).await;
    }

    /// One assessment, the frame, and the wait for its ACK.
    async fn attempt(&mut self, psdu: &[u8]) -> (AttemptOutcome, Instant) {
        // Of an attempt before.
        let _late = self.reports.take_transmission();
        let mut frame = [0; PSDU_LEN_MAX];
        let len = psdu.len() + FCS_LEN;
        let start = now();
        let Some((place, _)) = frame.split_at_mut_checked(psdu.len()) else {
            return (AttemptOutcome::Failed, start);
        };
        place.copy_from_slice(psdu);
        let Some(frame) = frame.get(..len) else {
            return (AttemptOutcome::Failed, start);
        };
        self.hardware.transmit(frame);
        let limit = Duration::from_micros(air_us(len) + REST_MAX_US);
        let ended = match with_timeout(limit, self.reports.transmission()).await {
            Ok(ended) => Some(ended),
            Err(_) => {
                // The radio waits 200 ms for an ACK, and reports get lost: what is under way ends.
                self.hardware.listen();
                self.reports.take_transmission()
            }
        };
        // A frame that was fetched when the transmission began is not reported.
        self.reports.look(now());
        let Some((how, at)) = ended else {
            let outcome = match asks_for_ack(psdu) {
                true => AttemptOutcome::NoAck,
                false => AttemptOutcome::Failed,
            };
            return (outcome, now());
        };
        match how {
            Transmission::Done if !asks_for_ack(psdu) => (AttemptOutcome::Done, at),
            Transmission::Done => {
                let ack = self.hardware.ack();
                let pending = ack.is_none_or(|ack| ack.is_pending());
                (AttemptOutcome::Acked { pending }, before(at, ACK_US))
            }
            Transmission::Failed => {
                // It waits for the end of a frame that is on its way in.
                let start = start.max(self.reports.last_frame());
                (why_failed(psdu, at.since(start)), at)
            }
        }
    }
}

impl<H: Hardware> Chip for Esp<H> {
    fn capabilities(&self) -> RadioCapabilities {
        CAPABILITIES
    }

    fn set_up(&mut self, settings: &Settings) {
        self.configuration.pan = settings.pan;
        self.configuration.short = settings.short.unwrap_or(NO_SHORT);
        self.configuration.extended = settings.extended;
        self.be_min = settings.be_min;
        self.be_max = settings.be_max;
        self.csma_backoffs_max = settings.csma_backoffs_max;
        self.configure();
    }

    fn set_channel(&mut self, channel: u8) {
        if (11..=26).contains(&channel) {
            self.configuration.channel = channel;
            self.configure();
        }
    }

    fn set_listening(&mut self, is_listening: bool) {
        self.configuration.is_listening = is_listening;
        self.configure();
        if is_listening {
            self.hardware.listen();
        }
    }

    async fn receive(&mut self, psdu: &mut [u8; PSDU_LEN_MAX]) -> (usize, RxMeta) {
        loop {
            // To look starts a receiver that has stopped, which was seen on devices.
            let at = match select(self.reports.frame(), Timer::after(LOOK_EVERY)).await {
                Either::First(at) => at,
                Either::Second(()) => now(),
            };
            let raw = self.hardware.take();
            if let Some(parsed) = raw.and_then(|raw| raw.parse(at, psdu)) {
                return parsed;
            }
        }
    }

    async fn transmit(&mut self, psdu: &[u8]) -> (AttemptOutcome, Instant) {
        let mut exponent = self.be_min;
        for _ in 0..self.csma_backoffs_max {
            self.back_off(exponent).await;
            let ended = self.attempt(psdu).await;
            if ended.0 != AttemptOutcome::Busy {
                return ended;
            }
            exponent = exponent.saturating_add(1).min(self.be_max);
        }
        self.back_off(exponent).await;
        self.attempt(psdu).await
    }
}

/// Why a transmission failed that took so long: it was not sent where the time was too short for
/// that.
fn why_failed(psdu: &[u8], took: motet::time::Duration) -> AttemptOutcome {
    let is_short = took.as_micros() < air_us(psdu.len() + FCS_LEN);
    match (is_short, asks_for_ack(psdu)) {
        (true, _) => AttemptOutcome::Busy,
        (false, true) => AttemptOutcome::NoAck,
        // It waits for nothing after the frame: unknown.
        (false, false) => AttemptOutcome::Failed,
    }
}

/// The time of a frame on the air, with preamble, delimiter and PHR. `len`: with its FCS, bytes.
const fn air_us(len: usize) -> u64 {
    (6 + len as u64) * 32
}

/// What says that a node has no short address.
const NO_SHORT: u16 = 0xfffe;

/// A backoff period, 20 symbols, µs.
const BACKOFF_US: u64 = 320;

/// The most that a transmission takes besides its frame: the end of a frame on its way in and its
/// ACK (4,800 µs), an assessment, the wait for an ACK (864 µs), and late interrupts.
const REST_MAX_US: u64 = 7_500;

/// The time after which a receiver without a frame is started anew.
const LOOK_EVERY: Duration = Duration::from_secs(1);
