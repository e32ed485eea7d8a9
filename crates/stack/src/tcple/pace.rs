//! Which connection interval a central asks for, from what crosses the links to its peers and the
//! delay of the ACKs of their data.
//!
//! The interval is 1.25 times the sum of the time on the air of a round's data, retransmissions
//! included, and of the round trip to the host, or a whole part of that (§IV). So the ACKs have
//! arrived when the next event begins.
//!
//! Differs: the central cannot read a TCP window. It assumes for the next round twice the data of
//! the last one, the most by which slow start can grow, and at most the peer's buffer. The round
//! trip to the host is measured at the central, from data to their ACK, instead of Eq 2. Events of
//! several peripherals are in one interval, so that they do not drift into one another: the
//! interval includes the data of all of them. And the new interval is rounded to a permitted value
//! before it is compared with the present one: the threshold 0.8 is 1/1.25, so without that any
//! rounding error would cause requests for ever.
//!
//! The paper's peers send, through a buffer of five packets. Where a peer receives, or has more
//! buffers, its data may fill such an interval, which holds few packets. So all bytes are counted
//! that cross a link, in either direction: a link that is nearly full has the interval that the
//! central chooses without TCPlE. None is longer: a lost packet ends its event, and the paper's
//! rule would make an interval longer where packets are lost, and their round trip with it.
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
    /// Bytes that crossed the link in either direction; they fade with each decision.
    crossed: u32,
}

/// What a decision about the interval takes from one peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Need {
    /// Time on the air of the data of a round, retransmissions included, µs.
    pub(crate) data_us: u32,
    /// Round-trip time beyond this link: from data passed on to their ACK, µs.
    pub(crate) round_trip_us: u32,
    /// Bytes that crossed the link in either direction in [`Present::elapsed`].
    pub(crate) crossed: u32,
}

/// What a decision about the interval takes from the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Present {
    /// The present interval, in units of 1.25 ms.
    pub(crate) interval: u16,
    /// The interval that the central chooses without TCPlE, in units of 1.25 ms.
    pub(crate) plain: u16,
    /// Whether `plain` is shorter than usual because packets are lost.
    pub(crate) is_lossy: bool,
    /// Whether packets go at 2 Mb/s, else at 1 Mb/s.
    pub(crate) is_2m: bool,
    /// Time in which [`Need::crossed`] crossed.
    pub(crate) elapsed: Duration,
}

impl Pace {
    /// Memory for it.
    pub(super) const EMPTY: Self = Self {
        predictor: Predictor::EMPTY,
        rssi: 0,
        round: 0,
        last_round: 0,
        round_trip_us: 0,
        crossed: 0,
    };

    pub(super) const NEW: Self = Self {
        predictor: Predictor::NEW,
        rssi: RSSI_FIRST,
        round: 0,
        last_round: 0,
        round_trip_us: 0,
        crossed: 0,
    };

    /// An SDU with a segment came from the peer, or was released.
    pub(crate) const fn on_data(&mut self, len: u16) {
        self.round = self.round.saturating_add(len);
    }

    /// Bytes cross the link, in either direction.
    pub(crate) const fn on_crossing(&mut self, len: usize) {
        self.crossed = self.crossed.saturating_add(len as u32);
    }

    /// An ACK passes to the peer, `round_trip` after its data.
    pub(crate) fn on_ack(&mut self, round_trip: Duration) {
        if self.round > 0 {
            self.last_round = core::mem::take(&mut self.round);
        }
        let sample = round_trip.as_micros().min(ROUND_TRIP_MAX_US) as u32;
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

    /// The times of the next round, and what has crossed.
    pub(crate) fn need(&mut self, is_2m: bool) -> Need {
        let sent = self.last_round.max(self.round).saturating_mul(2);
        let sent = u32::from(sent.min(BUFFER_LEN));
        let without_errors_us = sent * pair_us(is_2m) / PDU_LEN;
        // Errors stay below one: some pass. A buffer's time has 14 bits.
        let passing = (ONE - self.predictor.errors()).unsigned_abs() >> (PLACES - 16);
        let data_us = (without_errors_us << 16).checked_div(passing);
        let crossed = self.crossed;
        self.crossed -= crossed / FADING;
        Need {
            data_us: data_us.unwrap_or_default(),
            round_trip_us: self.round_trip_us,
            crossed,
        }
    }
}

/// The interval for peers with these needs, in units of 1.25 ms; `None`: keep the present one.
pub(crate) fn interval(needs: impl Iterator<Item = Need>, present: Present) -> Option<u16> {
    let (mut data, mut round, mut busiest, mut peers) = (0, 0, 0, 0);
    for need in needs {
        data += need.data_us;
        round = (need.data_us + need.round_trip_us).max(round);
        busiest = need.crossed.max(busiest);
        peers += 1;
    }
    let shortest = SHORTEST.max(EACH * peers);
    let longest = u32::from(present.plain).min(LONGEST).max(shortest);
    let round = round.max(data);
    // As many as a round takes at the longest interval.
    let intervals = quotient(round, longest * UNIT_US).max(1);
    // A fifth of the last one is left over: of a single one, the slack of a quarter.
    let target = quotient(round * 5, (intervals * 5 - 1) * UNIT_US);
    let mut target = target.max(shortest).min(longest);
    // One that is hardly shorter holds fewer packets, and saves hardly any time.
    if intervals > 1 && target * 8 > longest * 7 {
        target = longest;
    }
    let now = u32::from(present.interval);
    let (target, is_off) = match present.has_room(busiest, target, peers) {
        true => (target, target < now || target * 8 > now * 9),
        false => (longest, longest != now),
    };
    is_off.then_some(target as u16)
}

/// A quotient, rounded up.
fn quotient(of: u32, by: u32) -> u32 {
    (of + by - 1).checked_div(by).unwrap_or_default()
}

impl Present {
    /// Whether an interval, in units of 1.25 ms, has room to spare in each of `peers` parts for a
    /// peer whose link `crossed` bytes crossed in the elapsed time.
    fn has_room(&self, crossed: u32, interval: u32, peers: u32) -> bool {
        let interval_us = interval * UNIT_US;
        let part = interval_us.checked_div(peers).unwrap_or_default();
        let packets = part
            .saturating_sub(PAUSE_US)
            .checked_div(pair_us(self.is_2m));
        let packets = packets.unwrap_or_default();
        let used = if self.is_lossy { USED_LOSSY } else { USED };
        let room = u64::from(packets * PDU_LEN * used / 32) * self.elapsed.as_micros();
        u64::from(crossed) * u64::from(interval_us) < room
    }
}

/// The buffer of a peer's BLE stack, bytes (§VI.A).
const BUFFER_LEN: u16 = 1280;

/// Bytes of a full packet.
const PDU_LEN: u32 = 251;

/// How long a full packet takes with the empty one that answers it and both spaces, µs.
const fn pair_us(is_2m: bool) -> u32 {
    if is_2m { 1392 } else { 2468 }
}

/// A unit of an interval, µs; the shortest interval there is, 7.5 ms; and the longest that serves a
/// flow, half a second.
const UNIT_US: u32 = 1_250;
const SHORTEST: u32 = 6;
const LONGEST: u32 = 400;

/// The least part of an interval that each of several peers has, 3.75 ms (in units of 1.25 ms): a
/// full packet with its answer, and the pause that a controller needs between two connections. With
/// less no full packet would ever find room.
const EACH: u32 = 3;

/// The longest round trip that is measured, µs: data are remembered for no longer.
const ROUND_TRIP_MAX_US: u64 = 2_500_000;

/// The pause that a controller needs between two connections, µs.
const PAUSE_US: u32 = 300;

/// Parts of 32 of an interval's packets beyond which a link counts as full: usually, and where
/// losses end events early. A peer with the paper's buffer takes 26 at the interval of its own.
const USED: u32 = 27;
const USED_LOSSY: u32 = 16;

/// What crossed fades by this part of it with each decision, and so does the time.
pub(crate) const FADING: u32 = 32;

/// Signal strength before the controller's first report, dBm.
const RSSI_FIRST: i8 = -60;
