//! The pace that a node finds for itself: how far apart frames to one neighbour start.
//!
//! What a frame took here, from the assessment to its ACK, it will take at each hop on. So the next
//! one for that neighbour starts as many such exchanges after it as there are hops in earshot. No
//! time is set by hand: an exchange follows the length of frames, the radio and its driver.
//! Place: [`outward`](super::outward) leaves the neighbour alone for that long, and
//! [`onward`](super::onward) lets a relay lag behind. How long an exchange took stands beside the
//! neighbour that it was with, in the MAC, whose retries begin with the same time. A source whose
//! frames need many attempts yields to the others that its router serves, and one that sleeps waits
//! until nothing of its last frame can disturb the next: an attempt in vain costs it more than time.
//! Left out: frames for all, and for children that sleep; nobody passes those on.

use super::Forwarding;
use super::config::Manner;
use crate::mac::Mac;
use crate::time::Duration;

/// What a frame took that a neighbour acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Took {
    /// From the assessment of the channel to the ACK.
    pub(super) exchange: Duration,
    /// Its copy into the radio.
    pub(super) copy: Duration,
}

impl Manner {
    /// From the start of a frame that a neighbour took to that of the next one for it. Zero where
    /// it goes no further, and where nobody knows how far. `is_router`: whether it goes up from there.
    pub(super) fn pace(&self, is_router: bool, took: Took, mac: &Mac<'_>) -> Duration {
        let copies = self.relays_copy(mac);
        let earshot = match (mac.config().channels.is_single(), copies) {
            (false, _) => HOPS_APART,
            (true, true) => HOPS_IN_STEP,
            (true, false) => HOPS_OUT_OF_EARSHOT,
        };
        let hops = self.hold.hops(is_router).min(earshot);
        if hops < 2 {
            return Duration::ZERO;
        }
        if mac.sleeps() {
            return self.part(self.patience(is_router, took, mac));
        }
        let mut wait = took.exchange.saturating_mul(hops.into());
        if copies {
            // A relay takes a frame, copies it twice and passes it on, and only then takes the next.
            let passed_on = took.exchange.saturating_mul(2) + took.copy.saturating_mul(2);
            wait = wait.max(passed_on);
            if hops == HOPS_IN_STEP {
                wait = wait + mac.backoff_beside_copy();
            }
        }
        self.part(wait)
    }

    /// The wait of a source that sleeps: its frame has left the earshot of its router by then, with all
    /// that each relay needs for it. It is less than half as fast as others; its radio is off meanwhile.
    fn patience(&self, is_router: bool, took: Took, mac: &Mac<'_>) -> Duration {
        let earshot = match mac.config().channels.is_single() {
            true => HOPS_OUT_OF_EARSHOT,
            false => HOPS_APART,
        };
        let hops = self.hold.hops(is_router).min(earshot);
        let copies = match self.relays_copy(mac) {
            true => took.copy.saturating_mul(2),
            false => Duration::ZERO,
        };
        let hop = took.exchange + self.step(took.exchange, mac) + copies;
        hop.saturating_mul(hops.into())
    }

    /// How long a relay waits before it passes on a fragment of a packet of which more follow, from
    /// when it has it. Of three links in a row the first, the third and the second then have their turn
    /// one after the other, and relays copy while others send; without, the second follows the first
    /// as soon as it can, and the third meets the next frame of the first.
    pub(super) fn lag(&self, exchange: Duration, mac: &Mac<'_>) -> Duration {
        self.part(self.step(exchange, mac))
    }

    /// The same, whole.
    fn step(&self, exchange: Duration, mac: &Mac<'_>) -> Duration {
        let path = self.hold.hops_up.saturating_add(self.hold.hops_down);
        let is_in_step = path >= HOPS_IN_STEP && mac.config().channels.is_single();
        match is_in_step && self.relays_copy(mac) {
            true => Duration::from_micros(exchange.as_micros() * 2 / 5),
            false => Duration::ZERO,
        }
    }

    /// The pace of a source whose router takes frames from others too: slower, the more attempts a frame
    /// needs. Two sources at full pace send twice what their relay passes on; each then fails with every
    /// second attempt, and frames are given up. `etx`: attempts for each frame, in units of 1/128.
    pub(super) fn yielding(&self, is_router: bool, pace: Duration, etx: u16) -> Duration {
        let is_source = is_router && self.hold.hops_down == 0;
        let more = match is_source {
            true => etx.saturating_sub(ETX_ALONE),
            false => 0,
        };
        let times = (ETX_ONE + u64::from(more) * YIELD).min(ETX_ONE * SLOWEST);
        Duration::from_micros(pace.as_micros().saturating_mul(times) / ETX_ONE)
    }

    fn relays_copy(&self, mac: &Mac<'_>) -> bool {
        self.forwarding == Forwarding::Copy || !mac.can_preload()
    }

    fn part(&self, wait: Duration) -> Duration {
        let percent = u64::from(self.hold.pace_percent);
        Duration::from_micros(wait.as_micros().saturating_mul(percent) / 100)
    }
}

/// One attempt a frame.
const ETX_ONE: u64 = 128;

/// Alone on a chain of four hops a source needs up to one attempt and a half a frame at the pace
/// that suits it (measured); beside another at the same pace, more than two.
const ETX_ALONE: u16 = 196;

/// By how much of itself the pace slows for each attempt more: at full pace two sources would need a
/// good half of one more, and half of their pace suits both.
const YIELD: u64 = 5;

/// Four sources share a router; more of them fail now and then.
const SLOWEST: u64 = 4;

/// With a channel for each link: a relay cannot take a frame while it passes on another.
const HOPS_APART: u8 = 2;

/// Relays that copy, and lag behind, keep three links in a row from disturbing each other.
const HOPS_IN_STEP: u8 = 3;

/// Where a frame fires the one before it, all links are in use at short intervals: a receiver then
/// locks on frames from two hops away, so that a frame disturbs one three hops behind it.
const HOPS_OUT_OF_EARSHOT: u8 = 4;

#[cfg(test)]
#[path = "tests/pace.rs"]
mod edges;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::mesh::{Hold, MeshConfig};
    use crate::mac::{Channels, Config, RadioCapabilities};
    use crate::random::Rng;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    fn mac(shared_buffer: bool, is_single: bool) -> Mac<'static> {
        let mut config = Config::new(1, [1; 8]);
        if !is_single {
            config.channels = Channels::ALL;
        }
        let radio = RadioCapabilities {
            shared_buffer,
            ..RadioCapabilities::CC2420
        };
        Mac::new(config, radio, &mut [], &mut [], &mut Rng::from_seed([1, 2]))
    }

    fn manner(forwarding: Forwarding, hops_up: u8, hops_down: u8) -> Manner {
        Manner::of(&MeshConfig {
            forwarding,
            hold: Hold {
                pace_percent: 100,
                hops_up,
                hops_down,
                ..Hold::default()
            },
            ..MeshConfig::default()
        })
    }

    /// From start to start: as many exchanges as hops in earshot, two with a channel for each link;
    /// two copies more between the exchanges of a relay that copies.
    #[test]
    fn a_pace_follows_from_what_a_frame_took() {
        // Mean backoff, µs: half of seven periods.
        const BACKOFF: u64 = 1_120;
        for (hops, shared, is_single, copy_ms, us) in [
            (0, true, true, 0, 0),
            (1, true, true, 2, 0),
            (2, true, true, 0, 10_000),
            (2, true, true, 2, 14_000),
            (2, false, true, 2, 14_000),
            (3, true, true, 2, 15_000),
            (3, true, true, 3, 16_000),
            (3, false, true, 2, 15_000 + BACKOFF),
            (255, true, true, 2, 15_000),
            (2, false, false, 0, 10_000),
            (255, false, false, 2, 14_000),
        ] {
            let took = Took {
                exchange: MS(5),
                copy: MS(copy_ms),
            };
            let mac = mac(shared, is_single);
            let pace = |manner: &Manner| manner.pace(true, took, &mac).as_micros();
            let mut manner = manner(Forwarding::Copy, hops, 0);
            assert_eq!(pace(&manner), us, "{hops} {shared} {is_single} {copy_ms}");
            manner.hold.pace_percent = 50;
            assert_eq!(pace(&manner), us / 2);
            // Nobody knows how far it is downwards.
            assert_eq!(manner.pace(false, took, &mac), MS(0));
        }
    }

    /// A source slows where its router is taken by others, a relay and a border router never do.
    #[test]
    fn a_source_yields_to_others() {
        for (hops_down, is_router, etx, percent) in [
            (0, true, 0, 100),
            (0, true, 128, 100),
            (0, true, 196, 100),
            (0, true, 197, 103),
            (0, true, 225, 213),
            (0, true, 300, 400),
            (0, true, u16::MAX, 400),
            (1, true, 300, 100),
            (0, false, 300, 100),
        ] {
            let manner = manner(Forwarding::Copy, 3, hops_down);
            let pace = manner.yielding(is_router, MS(100), etx).as_micros();
            assert_eq!(pace / 1_000, percent, "{hops_down} {is_router} {etx}");
        }
        let zero = manner(Forwarding::Copy, 1, 0).yielding(true, MS(0), 300);
        assert_eq!(zero, MS(0));
    }

    /// Frames that fire each other follow closely: four hops, and no copies.
    #[cfg(feature = "cit")]
    #[test]
    fn without_copies_four_hops_are_in_earshot() {
        let took = Took {
            exchange: MS(5),
            copy: MS(2),
        };
        for (hops, is_single, ms) in [
            (2, true, 10),
            (3, true, 15),
            (4, true, 20),
            (9, true, 20),
            (9, false, 10),
        ] {
            let manner = manner(Forwarding::Immediate, hops, 0);
            let mac = mac(false, is_single);
            assert_eq!(manner.pace(true, took, &mac), MS(ms), "{hops}");
            assert_eq!(manner.lag(MS(5), &mac), MS(0));
        }
    }

    /// A source that sleeps waits until its frame, each relay's two copies and its lag included, is four
    /// hops on; with a channel for each link, two.
    #[cfg(feature = "sleepy")]
    #[test]
    fn a_source_that_sleeps_is_patient() {
        let took = Took {
            exchange: MS(5),
            copy: MS(1),
        };
        for (hops, is_single, ms) in [
            (1, true, 0),
            (2, true, 14),
            (3, true, 27),
            (4, true, 36),
            (200, true, 36),
            (200, false, 14),
        ] {
            let manner = manner(Forwarding::Copy, hops, 0);
            let mut mac = mac(true, is_single);
            mac.set_sleep(Some(crate::mac::Sleep::new(crate::mac::Policy::Hinted)));
            assert_eq!(manner.pace(true, took, &mac), MS(ms), "{hops} {is_single}");
            assert_eq!(manner.pace(false, took, &mac), MS(0));
        }
    }

    /// Relays lag behind where three links in a row share a channel and frames are copied.
    #[test]
    fn relays_of_three_hops_lag_behind() {
        for (up, down, is_single, ms) in [
            (1, 1, true, 0),
            (0, 2, true, 0),
            (1, 2, true, 2),
            (2, 1, true, 2),
            (200, 200, true, 2),
            (2, 1, false, 0),
        ] {
            let manner = manner(Forwarding::Copy, up, down);
            let mac = mac(true, is_single);
            assert_eq!(manner.lag(MS(5), &mac), MS(ms), "{up} {down}");
        }
    }
}
