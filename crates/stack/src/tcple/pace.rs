//! Which connection interval a central asks for, from the peer's data rate and the delay of its
//! ACKs.
//!
//! The interval is 1.25 times the sum of the time on the air of a round's data, retransmissions
//! included, and of the round trip to the host (§IV). So the ACKs have arrived when the next event
//! begins.
//!
//! Differs: the central cannot read a TCP window. It assumes for the next round twice the data of
//! the last one, the most by which slow start can grow, and at most the peer's buffer. The round
//! trip to the host is measured at the central, from data to their ACK, instead of Eq 2. Events of
//! several peripherals are in one interval, so that they do not drift into one another: the
//! interval includes the data of all of them. And the new interval is rounded to a permitted value
//! before it is compared with the present one: the threshold 0.8 is 1/1.25, so without that any
//! rounding error would cause requests for ever.
//! Source: Performant TCP over BLE, §IV.

use super::predictor::{ONE, PLACES, Predictor};
use crate::time::Duration;

/// A central's measurements of one peer.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    predictor: Predictor,
    rssi: i8,
    /// Bytes since the last ACK passed, and in the round before that.
    round: u16,
    last_round: u16,
    /// Time from data to their ACK beyond this link, µs, smoothed; 0: not measured yet.
    round_trip_us: u32,
}

/// The times that make up a round of a peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Need {
    /// Time on the air of the data, retransmissions included.
    pub(crate) data: Duration,
    /// Round-trip time beyond this link: from data passed on to their ACK.
    pub(crate) round_trip: Duration,
}

impl Pace {
    /// Memory for it.
    pub(super) const EMPTY: Self = Self {
        predictor: Predictor::EMPTY,
        rssi: 0,
        round: 0,
        last_round: 0,
        round_trip_us: 0,
    };

    pub(super) const NEW: Self = Self {
        predictor: Predictor::NEW,
        rssi: RSSI_FIRST,
        round: 0,
        last_round: 0,
        round_trip_us: 0,
    };

    /// An SDU with a segment came from the peer, or was released.
    pub(crate) const fn on_data(&mut self, len: u16) {
        self.round = self.round.saturating_add(len);
    }

    /// An ACK passes to the peer, `round_trip` after its data.
    pub(crate) fn on_ack(&mut self, round_trip: Duration) {
        if self.round > 0 {
            self.last_round = core::mem::take(&mut self.round);
        }
        let sample = u32::try_from(round_trip.as_micros()).unwrap_or(u32::MAX);
        self.round_trip_us = match self.round_trip_us {
            0 => sample,
            before => before - before / 8 + sample / 8,
        };
    }

    /// Notes the strength of the peer's signal, dBm.
    pub(crate) const fn on_rssi(&mut self, rssi: i8) {
        self.rssi = rssi;
    }

    /// Notes how many packets of a connection event were good and bad; returns whether the interval
    /// is to be computed anew.
    pub(crate) fn on_event(&mut self, good: u16, bad: u16) -> bool {
        self.predictor.on_event((good, bad), self.rssi)
    }

    /// The times of the next round. `is_2m`: at 2 Mb/s, else at 1 Mb/s.
    pub(crate) fn need(&self, is_2m: bool) -> Need {
        let sent = self
            .last_round
            .max(self.round)
            .saturating_mul(2)
            .min(BUFFER_LEN);
        let errors = self.predictor.errors();
        let pair_us = if is_2m { PAIR_2M_US } else { PAIR_1M_US };
        let without_errors_us = (u64::from(sent) * pair_us) << PLACES;
        // Errors stay below one: some pass.
        let passing = u64::from((ONE - errors).unsigned_abs());
        let data_us = without_errors_us.checked_div(passing * PDU_LEN);
        Need {
            data: Duration::from_micros(data_us.unwrap_or_default()),
            round_trip: Duration::from_micros(self.round_trip_us.into()),
        }
    }
}

/// The interval for peers with these needs, in units of 1.25 ms; `None`: keep `current`.
pub(crate) fn interval(needs: impl Iterator<Item = Need>, current: u16) -> Option<u16> {
    let none = (0, 0, 0);
    let (data, trip, peers) = needs.fold(none, |(data, trip, peers), need| {
        let longest = need.round_trip.as_micros().max(trip);
        (data + need.data.as_micros(), longest, peers + 1)
    });
    let shortest = SHORTEST.max(EACH * peers);
    let sum = data + trip;
    let target = (sum * 5 / 4).div_ceil(UNIT_US);
    // Not `clamp`, which links a panic.
    let target = u16::try_from(target)
        .unwrap_or(u16::MAX)
        .max(shortest)
        .min(LONGEST.max(shortest));
    let now = u64::from(current) * UNIT_US;
    let is_off = sum * 10 < now * 8 || sum * 10 > now * 9;
    (is_off && target != current).then_some(target)
}

/// The buffer of a peer's BLE stack, bytes (§VI.A).
const BUFFER_LEN: u16 = 1280;

/// Bytes of a full packet, and what it takes with the empty one that answers it and both spaces,
/// µs.
const PDU_LEN: u64 = 251;
const PAIR_1M_US: u64 = 2468;
const PAIR_2M_US: u64 = 1392;

/// A unit of an interval, µs; the shortest interval there is, 7.5 ms; and the longest that serves a
/// flow, half a second.
const UNIT_US: u64 = 1_250;
const SHORTEST: u16 = 6;
const LONGEST: u16 = 400;

/// The least part of an interval that each of several peers has, 3.75 ms (in units of 1.25 ms): a
/// full packet with its answer, and the pause that a controller needs between two connections. With
/// less no full packet would ever find room.
const EACH: u16 = 3;

/// Signal strength before the controller's first report, dBm.
const RSSI_FIRST: i8 = -60;
