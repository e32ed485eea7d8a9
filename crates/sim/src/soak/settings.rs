//! The settings that vary from run to run: of TCP, of applications, of faults.

use motet::tcp::Config;
use motet::time::Duration;

use super::dice::Dice;
use crate::net::faults::Faults;

/// The behaviour of an application on its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Behaviour {
    /// Bytes to send: none, or enough to hold the session's number.
    pub(crate) total: u64,
    /// Bytes handed over at once.
    pub(crate) chunk: u32,
    /// Pause between two chunks.
    pub(crate) pause: Duration,
    /// The way in which the application reads.
    pub(crate) reading: Reading,
    /// The way in which the application ends.
    pub(crate) ending: Ending,
    /// Keeps its handle until TIME-WAIT is over.
    pub(crate) stays: bool,
}

/// The way in which an application reads.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reading {
    /// Reads all that is there at once.
    Eager,
    /// A little, now and then: the window closes and opens by small steps.
    Sips {
        /// At most this many bytes.
        bytes: u16,
        /// Then none for so long.
        every: Duration,
    },
    /// Nothing for a while: the window shuts.
    Stalls {
        /// Time from the opening to the stall.
        from: Duration,
        /// How long the stall takes.
        len: Duration,
    },
}

/// The way in which an application ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ending {
    /// Half-close behind the last byte, and read on.
    Shutdown,
    /// Full close once both sides are done.
    CloseWhenDone,
    /// Full close behind the last byte, whatever the peer still has to say.
    CloseWhenSent,
    /// Full close at some time after opening.
    CloseAt(Duration),
    /// A reset at some time after opening.
    AbortAt(Duration),
    /// At the end of the run only.
    Linger,
}

impl Reading {
    /// The time between two reads.
    pub(crate) const fn interval(self) -> Duration {
        match self {
            Self::Sips { every, .. } => every,
            _ => Duration::ZERO,
        }
    }
}

impl Behaviour {
    /// An application that sends up to `bytes_max` and has come to its end within about `span`.
    pub(crate) fn draw(dice: &mut Dice, bytes_max: u32, span: Duration) -> Self {
        let total = if dice.chance(0.2) {
            0
        } else {
            dice.scale(4, bytes_max)
        };
        let pause = if dice.chance(0.6) {
            Duration::ZERO
        } else {
            dice.scale_ms(1, 20_000)
        };
        let at = Duration::from_millis(1) + dice.span(span);
        let ending = match dice.range(0, 19) {
            0..=8 => Ending::Shutdown,
            9..=12 => Ending::CloseWhenDone,
            13..=14 => Ending::CloseWhenSent,
            15 => Ending::CloseAt(at),
            16 => Ending::AbortAt(at),
            _ => Ending::Linger,
        };
        Self {
            total: u64::from(total),
            chunk: dice.scale(1, 2_048),
            pause,
            reading: Reading::draw(dice, span),
            ending,
            stays: dice.chance(0.3),
        }
    }

    /// From now on the application only does what is needed to end.
    pub(crate) fn hurry(&mut self, taken: u64) {
        self.total = self.total.min(taken + HURRY_BYTES_MAX);
        self.chunk = 1_024;
        self.pause = Duration::ZERO;
        self.reading = Reading::Eager;
        self.ending = Ending::Shutdown;
    }
}

impl Reading {
    fn draw(dice: &mut Dice, span: Duration) -> Self {
        match dice.range(0, 9) {
            0..=4 => Self::Eager,
            5..=7 => Self::Sips {
                bytes: dice.scale(1, 2_048) as u16,
                every: dice.scale_ms(1, 5_000),
            },
            _ => Self::Stalls {
                from: dice.span(Duration::from_secs(5)),
                len: dice.span(span),
            },
        }
    }
}

/// Settings of TCP, any that a firmware may choose.
pub(crate) fn config(dice: &mut Dice, window: u16) -> Config {
    let mss = dice.scale(64, 1_220) as u16;
    let rto_min_ms = dice.scale(50, 1_000) as u16;
    let rto_max_ms = dice.scale(u32::from(rto_min_ms).max(3_000), 60_000) as u16;
    let sometimes = |dice: &mut Dice, value: u32| if dice.chance(0.25) { value } else { 0 };
    let user_timeout_ms = dice.scale(10_000, 300_000);
    let keepalive_idle_s = dice.scale(1, 120);
    let close_timeout_ms = dice.scale(10_000, 600_000);
    let close_timeout_ms = sometimes(dice, close_timeout_ms);
    Config {
        rmss: mss,
        smss: dice.scale(64, 1_220) as u16,
        accept_window: window,
        initial_window: dice.pick(&[0, 0, 1, 2, 4, 10]),
        rto_initial_ms: dice.scale(200, 3_000) as u16,
        rto_min_ms,
        rto_max_ms,
        rto_slop_ms: dice.pick(&[0, 50, 200]),
        retransmissions_max: dice.range(3, 12) as u8,
        syn_retransmissions_max: dice.range(0, 7) as u8,
        ack_every: dice.range(1, 4) as u8,
        quick_acks: dice.pick(&[0, 1, 16, 255]),
        ack_delay_ms: dice.pick(&[0, 10, 40, 100, 200, 500]),
        keepalive_idle_s: sometimes(dice, keepalive_idle_s) as u16,
        keepalive_interval_s: dice.range(1, 30) as u16,
        keepalive_probes: dice.range(1, 8) as u8,
        close_timeout_ms,
        user_timeout_ms: sometimes(dice, user_timeout_ms),
        time_wait_ms: dice.scale(1_000, 240_000),
        time_wait_reuse: dice.chance(0.7),
        // Zero, for ever, is allowed, but then a vanished peer keeps a connection for ever too.
        fin_wait_2_ms: dice.scale(1_000, 60_000),
        challenge_interval_ms: dice.pick(&[0, 100, 500]),
        accept_timeout_ms: dice.scale(1_000, 60_000) as u16,
        peer_ack_delay_ms: dice.pick(&[0, 40, 200]),
        nagle: dice.chance(0.5),
        timestamps: dice.chance(0.7),
        sack: dice.chance(0.7),
        dsack: dice.chance(0.7),
        limited_transmit: dice.chance(0.7),
        rack: dice.chance(0.6),
        tail_loss_probe: dice.chance(0.7),
        prr: dice.chance(0.7),
        undo: dice.chance(0.7),
        ecn: dice.chance(0.5),
        congestion_control: dice.chance(0.9),
        header_prediction: dice.chance(0.7),
        ..Config::DEFAULT
    }
}

/// The faults that a network may have.
pub(crate) fn faults(dice: &mut Dice) -> Faults {
    let sometimes = |dice: &mut Dice, most: f64| {
        let share = f64::from(dice.range(0, 1_000)) / 1_000.0;
        if dice.chance(0.5) { share * most } else { 0.0 }
    };
    Faults {
        loss: sometimes(dice, 0.3),
        duplication: sometimes(dice, 0.2),
        reordering: sometimes(dice, 0.3),
        corruption: sometimes(dice, 0.1),
        lag: dice.scale_ms(1, 3_000),
    }
}

/// Bytes that an application in a hurry still sends.
pub(crate) const HURRY_BYTES_MAX: u64 = 500;
