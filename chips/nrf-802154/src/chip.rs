//! What Nordic's driver reports, as outcomes of attempts.

use core::future::Future;

use embassy_time::{Duration, Timer};
use motet::limits::PSDU_LEN_MAX;
use motet::time::Instant;
use motet::wire::LinkAddr;
use motet_embassy::mac::{AttemptOutcome, Pending, RadioCapabilities, RxMeta};
use motet_embassy::offload::{Chip, Settings, now};

use crate::clock::Clock;

/// The driver, as far as it is used here. Frames have no FCS.
pub trait Hardware {
    /// Sets the addresses that the radio answers to. `extended`: most significant byte first.
    fn set_addresses(&mut self, pan: u16, extended: [u8; 8], short: Option<u16>);

    /// Tunes to a channel, 11 to 26.
    fn set_channel(&mut self, channel: u8);

    /// Whether the receiver is on while nothing else happens. False: the driver refused it now.
    fn set_listening(&mut self, is_listening: bool) -> bool;

    /// Sets the frame pending bit of the ACKs to a neighbour. False: its table is full.
    fn set_pending(&mut self, of: LinkAddr, is_pending: bool) -> bool;

    /// The next frame; `None`: the receiver could not be switched on. May be dropped.
    fn receive(&mut self, psdu: &mut [u8]) -> impl Future<Output = Option<Meta>>;

    /// Sends a frame with CSMA-CA; gives its ACK, where it asks for one.
    fn transmit(
        &mut self,
        psdu: &[u8],
        ack: &mut [u8],
    ) -> impl Future<Output = Result<Option<Meta>, Failure>>;
}

/// How a frame was received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meta {
    /// Bytes without FCS.
    pub len: usize,
    /// Signal strength, dBm.
    pub rssi_dbm: i8,
    /// Link quality, 255 best.
    pub lqi: u8,
    /// When its last symbol came, by the driver's clock, µs.
    pub stamp_us: Option<u64>,
}

/// Why a transmission failed: the driver's own reasons.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// No assessment found the channel clear.
    BusyChannel,
    /// The driver was busy with a frame of another node, and took none.
    NotScheduled,
    /// Bluetooth had the radio all the time.
    TimeslotDenied,
    /// No ACK came in time.
    NoAck,
    /// Another frame came in the place of the ACK.
    InvalidAck,
    /// Bluetooth took the radio away meanwhile.
    TimeslotEnded,
    /// Any other reason: another order, no memory, a frame that is too long.
    Other,
}

impl Failure {
    /// The outcome of the attempt.
    pub const fn outcome(self) -> AttemptOutcome {
        match self {
            // Not sent, and nothing is known of the link.
            Self::BusyChannel | Self::NotScheduled | Self::TimeslotDenied => AttemptOutcome::Busy,
            Self::NoAck | Self::InvalidAck => AttemptOutcome::NoAck,
            Self::TimeslotEnded | Self::Other => AttemptOutcome::Failed,
        }
    }
}

/// What driver and radio do by themselves.
pub const CAPABILITIES: RadioCapabilities = RadioCapabilities {
    // The distance of the two clocks is known only after the first frames.
    stamp_delay_max: motet::time::Duration::from_millis(5),
    pending: Pending::PerNeighbour,
    ..RadioCapabilities::OFFLOADING
};

/// A radio under Nordic's driver.
///
/// Its backoffs are the driver's: exponents 3 to 5, four backoffs after the first one.
#[derive(Debug)]
pub struct Nordic<H> {
    hardware: H,
    clock: Clock,
    channel: u8,
    is_listening: bool,
}

impl<H: Hardware> Nordic<H> {
    /// A radio without addresses, on channel 26, its receiver off.
    pub const fn new(hardware: H) -> Self {
        Self {
            hardware,
            clock: Clock::new(),
            channel: 26,
            is_listening: false,
        }
    }
}

impl<H: Hardware> Chip for Nordic<H> {
    fn capabilities(&self) -> RadioCapabilities {
        CAPABILITIES
    }

    fn set_up(&mut self, settings: &Settings) {
        let Settings {
            pan,
            extended,
            short,
            ..
        } = *settings;
        self.hardware.set_addresses(pan, extended, short);
    }

    fn set_channel(&mut self, channel: u8) {
        // The driver panics at another one.
        if (11..=26).contains(&channel) {
            self.channel = channel;
            self.hardware.set_channel(channel);
        }
    }

    fn set_listening(&mut self, is_listening: bool) {
        self.is_listening = is_listening;
        // One that was refused follows the next transmission.
        let _now_or_later = self.hardware.set_listening(is_listening);
    }

    fn set_pending(&mut self, of: LinkAddr, is_pending: bool) {
        // A neighbour without a place hears that nothing waits, and asks again later.
        let _has_place = self.hardware.set_pending(of, is_pending);
    }

    async fn receive(&mut self, psdu: &mut [u8; PSDU_LEN_MAX]) -> (usize, RxMeta) {
        loop {
            match self.hardware.receive(psdu).await {
                Some(meta) => {
                    let received = RxMeta {
                        rssi_dbm: meta.rssi_dbm,
                        lqi: meta.lqi,
                        channel: self.channel,
                        at: self.clock.map(meta.stamp_us, now()),
                    };
                    return (meta.len, received);
                }
                None => Timer::after(AGAIN).await,
            }
        }
    }

    async fn transmit(&mut self, psdu: &[u8]) -> (AttemptOutcome, Instant) {
        let mut ack = [0; PSDU_LEN_MAX];
        let ended = self.hardware.transmit(psdu, &mut ack).await;
        let now = now();
        if !self.is_listening {
            let _now_or_later = self.hardware.set_listening(false);
        }
        match ended {
            Ok(Some(meta)) => {
                let [control, ..] = ack;
                let pending = control & PENDING != 0;
                let ack_end = self.clock.map(meta.stamp_us, now).as_micros();
                let end = Instant::from_micros(ack_end.saturating_sub(ACK_US));
                (AttemptOutcome::Acked { pending }, end)
            }
            Ok(None) => (AttemptOutcome::Done, now),
            Err(failure) => (failure.outcome(), now),
        }
    }
}

/// The frame pending bit, in an ACK's first byte (IEEE 802.15.4-2006 §7.2.1.1.3).
const PENDING: u8 = 0x10;

/// From a frame's last symbol to that of its ACK: a turnaround and 11 bytes, µs.
const ACK_US: u64 = 192 + 11 * 32;

/// The time after which a refused order is tried again.
const AGAIN: Duration = Duration::from_millis(1);
