//! The pace that a node finds for itself: how far apart frames to one neighbour start.
//!
//! A frame takes about the same time at each further hop as here, from the assessment to its ACK.
//! So the next frame for that neighbour starts as many such exchanges later as there are hops in
//! earshot. No time is set by hand: an exchange follows the length of frames, the radio and its
//! driver. Place: [`outward`](super::outward) leaves the neighbour alone for that long, and
//! [`forward`](super::forward) delays a relay's frame by a lag that the relay learns from the time
//! between arriving frames; [`pace_search`](super::pace_search) tries whether a slower source does
//! better. The time of an exchange is stored with the neighbour's entry in the MAC, whose retries
//! begin with the same delay. A source whose frames need many attempts slows down in favour of the
//! other sources at its router. A sleeping source waits until its last frame cannot disturb the
//! next one any more, because a failed attempt costs it energy. Left out: broadcast frames and
//! frames for sleeping children, which are not forwarded. A packet that follows no other closely is
//! not paced either: the path ahead of it is empty.

use super::Forwarding;
use super::config::MeshSettings;
use crate::mac::config::CCA;
use crate::mac::{Flow, Mac, Outcome};
use crate::time::{Duration, Instant};
use crate::wire::LinkAddr;

/// Durations of the last frame that a neighbour acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExchangeTimes {
    /// Time from the assessment of the channel to the end of the ACK.
    pub(super) exchange: Duration,
    /// The time of the frame's copy from the processor into the radio.
    pub(super) copy: Duration,
}

impl MeshSettings {
    /// Time from the start of a frame that a neighbour has acknowledged to the start of the next
    /// one for it. Zero where the frame goes no further, or where the number of hops is unknown.
    /// `is_router`: whether the frame goes up from the neighbour.
    pub(super) fn pace(&self, is_router: bool, took: ExchangeTimes, mac: &Mac<'_>) -> Duration {
        let copies = self.relays_copy(mac);
        let earshot = match (mac.config().channels.is_single(), copies) {
            (false, _) => HOPS_APART,
            (true, true) if lags(took) => HOPS_IN_STEP,
            (true, _) => HOPS_OUT_OF_EARSHOT,
        };
        let hops = self.pacing.hops(is_router).min(earshot);
        if hops < 2 {
            return Duration::ZERO;
        }
        if mac.sleeps() {
            return self.part(self.patience(is_router, took, mac));
        }
        // Over two hops the source is at once behind its relay: with so little less an early frame
        // finds the channel busy, and a pace that is a twentieth too quick costs a tenth.
        let next = match copies || self.pacing.hops(is_router) == 2 {
            true => took.exchange,
            false => self.fired(took.exchange, mac),
        };
        let mut wait = took.exchange + next.saturating_mul(u64::from(hops - 1));
        if copies {
            // A relay takes a frame, copies it twice and passes it on, and only then takes the
            // next.
            let passed_on = took.exchange.saturating_mul(2) + took.copy.saturating_mul(2);
            wait = wait.max(passed_on);
            if hops == HOPS_IN_STEP && lags(took) && mac.copies_beside_backoff() {
                wait = wait + mac.backoff() + fraction(took.exchange, 1, SLACK);
            }
        }
        self.part(wait)
    }

    /// The duration of an exchange at a relay whose frame is fired by the next one: without an
    /// assessment.
    fn fired(&self, exchange: Duration, mac: &Mac<'_>) -> Duration {
        match mac.config().assessed {
            true => exchange - CCA,
            false => exchange,
        }
    }

    /// The extra time that a source leaves free once for each packet. On a path of exactly three
    /// links whose relays do not copy, frames follow each other without a gap, and a frame of the
    /// border router into the mesh finds its neighbour receiving another frame. In a gap of the
    /// longest first backoff it finds the air free. On longer paths the time of a fourth exchange
    /// is free anyway.
    pub(super) fn gap(&self, is_router: bool, mac: &Mac<'_>) -> Duration {
        let is_full = is_router
            && self.pacing.hops_down == 0
            && self.pacing.hops_up == HOPS_IN_STEP
            && mac.config().channels.is_single()
            && !self.relays_copy(mac);
        match is_full {
            true => self.part(mac.backoff().saturating_mul(2)),
            false => Duration::ZERO,
        }
    }

    /// The wait of a source that sleeps: its frame has left the earshot of its router by then, with
    /// all that each relay needs for it. It is less than half as fast as others; its radio is off
    /// meanwhile.
    fn patience(&self, is_router: bool, took: ExchangeTimes, mac: &Mac<'_>) -> Duration {
        let earshot = match mac.config().channels.is_single() {
            true => HOPS_OUT_OF_EARSHOT,
            false => HOPS_APART,
        };
        let hops = self.pacing.hops(is_router).min(earshot);
        let copies = match self.relays_copy(mac) {
            true => took.copy.saturating_mul(2),
            false => Duration::ZERO,
        };
        let hop = took.exchange + self.step(took.exchange, mac) + copies;
        hop.saturating_mul(hops.into())
    }

    /// The delay, from its reception, after which a relay forwards a fragment that is followed by
    /// more of its packet. With the delay the first, the third and the second of three links in a
    /// row send in this order, and relays copy while others send. Without it the second link sends
    /// right after the first, and the third link's frame collides with the next frame of the first.
    ///
    /// In a flow the lag follows from the time `apart` between arriving frames: the relay's frame
    /// begins two thirds of that time after the arriving frame, at any pace of the source. `took`:
    /// the times of an exchange with the next hop, and of the copy of the arriving frame.
    ///
    /// The lag is no longer than a few copies: a radio that has frames in its processor's memory
    /// copies nothing, and whatever its relay waits for only adds to the frame's way.
    pub(super) fn lag(
        &self,
        took: ExchangeTimes,
        apart: Option<Duration>,
        mac: &Mac<'_>,
    ) -> Duration {
        let longest = took.copy.saturating_mul(LAG_COPIES);
        let step = self.step(took.exchange, mac).min(longest);
        let out_of_earshot = took.exchange.saturating_mul(HOPS_OUT_OF_EARSHOT.into());
        let Some(apart) = apart.filter(|apart| step > Duration::ZERO && *apart < out_of_earshot)
        else {
            return self.part(step);
        };
        let copy = fraction(took.copy, 3, 5);
        let until_sent = match mac.copies_beside_backoff() {
            true => copy.max(mac.backoff()),
            false => copy + mac.backoff(),
        };
        let lag = fraction(apart, 2, 3) - (took.exchange + took.copy + until_sent);
        lag.min(fraction(took.exchange, 7, 8)).min(longest)
    }

    /// The pace of a relay at which frames arrive `apart` from each other. At a relay that does not
    /// copy each arriving frame fires the one that waits; its own pace matters only for frames that
    /// have queued up. If that pace were longer than `apart`, the next frame would arrive before
    /// the relay may send, and fire nothing.
    pub(super) fn following(
        &self,
        pace: Duration,
        apart: Option<Duration>,
        mac: &Mac<'_>,
    ) -> Duration {
        let Some(apart) = apart.filter(|_| !self.relays_copy(mac)) else {
            return pace;
        };
        // Not `clamp`, which links a panic where the optimiser does not see the order of its
        // bounds.
        apart.max(fraction(pace, 3, 4)).min(fraction(pace, 5, 4))
    }

    /// How long a relay lags while the time between arriving frames is unknown.
    fn step(&self, exchange: Duration, mac: &Mac<'_>) -> Duration {
        let path = self.pacing.hops_up.saturating_add(self.pacing.hops_down);
        let is_in_step = path >= HOPS_IN_STEP && mac.config().channels.is_single();
        match is_in_step && self.relays_copy(mac) {
            true => fraction(exchange, 2, 5),
            false => Duration::ZERO,
        }
    }

    /// The flow to a neighbour that has just taken one frame more.
    pub(super) fn flow(
        &self,
        is_router: bool,
        took: ExchangeTimes,
        outcome: &Outcome,
        now: Instant,
        mac: &Mac<'_>,
    ) -> Flow {
        let known = mac.flow(outcome.to);
        let follows = self.follows(known, outcome.token, outcome.started, took.exchange);
        let is_source = self.is_source(is_router, outcome.to, now, mac);
        Flow {
            token: outcome.token,
            // A sleeping node sends several gathered packets, so even its first packet is part of a
            // flow.
            follows: follows || mac.sleeps(),
            taken_at: now,
            contends: is_source && self.effort(outcome.to, mac) > ETX_CONTENDED,
            is_near: is_source && follows && self.pacing.hops(is_router) < 2 && !mac.sleeps(),
            is_orderly: false,
        }
    }

    /// Whether a frame of packet `token`, which began or arrived at `at`, is part of a flow:
    /// whether the previous packet, or its answer, may still be on the path. `known`: the record of
    /// packets to the same neighbour.
    pub(super) fn follows(&self, known: Flow, token: u16, at: Instant, exchange: Duration) -> bool {
        match known.token == token {
            true => known.follows,
            false => at.since(known.taken_at) < self.answered(exchange),
        }
    }

    /// When a packet may have been answered.
    pub(super) fn answered(&self, exchange: Duration) -> Duration {
        let path = self.pacing.hops_up.saturating_add(self.pacing.hops_down);
        exchange.saturating_mul(ANSWERED * u64::from(path.min(PATH_MAX)))
    }

    /// The pace of a source that shares its router, `to`, with other sources: the more attempts a
    /// frame needs, the slower. Two sources at full pace send twice as many frames as their relay
    /// can forward; every second attempt then fails, and frames are given up.
    pub(super) fn yielding(
        &self,
        is_router: bool,
        (pace, took): (Duration, ExchangeTimes),
        to: LinkAddr,
        now: Instant,
        mac: &Mac<'_>,
    ) -> Duration {
        let may_yield =
            self.is_source(is_router, to, now, mac) || self.meets_others(is_router, to, now, mac);
        if !may_yield {
            return pace;
        }
        let times = times(self.effort(to, mac));
        // What is for the relay itself has no pace, but takes the relay's time from others.
        let is_for_relay = pace == Duration::ZERO && self.pacing.hops(is_router) > 1;
        match is_for_relay && times > ETX_ONE {
            true => fraction(took.exchange, times, ETX_ONE),
            false => fraction(pace, times, ETX_ONE),
        }
    }

    /// Whether nobody contends with the flow to `to`, so that its frames need no long backoffs: it
    /// goes up, no packet of several frames comes down against it, and its frames are kept apart by
    /// the pace of this node or of their one source, or nobody else is heard. Frames that go down
    /// do not get short backoffs: a border router sends for many, and motes that ask and answer
    /// beside it would lose. `pace_of`: the time from frame to frame, and that of an exchange.
    pub(super) fn is_orderly(
        &self,
        is_router: bool,
        pace_of: (Duration, Duration),
        to: LinkAddr,
        now: Instant,
        mac: &Mac<'_>,
    ) -> bool {
        let (pace, exchange) = pace_of;
        let is_passed_on = mac.apart(to, now).is_some() && !mac.is_shared(to);
        is_router
            && !mac.sends_fragments(to, now)
            && (pace > exchange || is_passed_on || mac.is_alone(to))
    }

    /// Whether a source searches for a slower pace that suits it better
    /// ([`pace_search`](super::pace_search)). With a channel for each link a frame has just the
    /// time that its relay needs to pass it on, and a frame that comes too early finds no receiver.
    /// On one channel the order of links counts for more, and relays learn that order.
    pub(super) fn may_search(
        &self,
        is_router: bool,
        to: LinkAddr,
        now: Instant,
        mac: &Mac<'_>,
    ) -> bool {
        self.is_source(is_router, to, now, mac) && !mac.config().channels.is_single()
    }

    /// Whether this node is the source of the frames that it sends up to `to`: it has no nodes
    /// below it, or no fragment from below has been forwarded to `to` lately, or few beside its
    /// own. Otherwise a router with an idle child, or with one that sends readings, would never
    /// slow down, and starve the other sources at its own router.
    fn is_source(&self, is_router: bool, to: LinkAddr, now: Instant, mac: &Mac<'_>) -> bool {
        let has_idle_child = || mac.apart(to, now).is_none() || mac.is_mostly_own(to);
        is_router && (self.pacing.hops_down == 0 || has_idle_child())
    }

    /// Whether this node is the border router, and packets of several frames come up from `to`
    /// against those that it sends down: it is one of several sources then. A flow down alone may
    /// need as many attempts for its own frames ahead, and gains nothing by going slower.
    fn meets_others(&self, is_router: bool, to: LinkAddr, now: Instant, mac: &Mac<'_>) -> bool {
        !is_router && self.pacing.hops_up == 0 && mac.sends_fragments(to, now)
    }

    /// The cost of a frame for `to`, in 1/128 of an attempt. With a channel for each link only
    /// senders to the same neighbour make its channel busy, so there a busy channel counts as a
    /// failed attempt. Otherwise, of two sources, the one whose frames come first would see no
    /// failures, and never slow down.
    fn effort(&self, to: LinkAddr, mac: &Mac<'_>) -> u16 {
        let effort = match mac.config().channels.is_single() {
            true => mac.etx(to),
            false => mac.effort(to),
        };
        effort.unwrap_or(0)
    }

    fn relays_copy(&self, mac: &Mac<'_>) -> bool {
        self.forwarding == Forwarding::Copy || !mac.can_preload()
    }

    fn part(&self, wait: Duration) -> Duration {
        let percent = u64::from(self.pacing.pace_percent);
        fraction(wait, percent, 100)
    }
}

/// Whether the copy of a frame takes so much of its exchange that relays lag behind.
fn lags(took: ExchangeTimes) -> bool {
    took.copy.saturating_mul(COPY_PART) >= took.exchange
}

/// A span times `times`, divided by `of`, which is not zero.
// Not inlined: one copy for its fourteen callers saves 280 B.
#[inline(never)]
pub(super) const fn fraction(span: Duration, times: u64, of: u64) -> Duration {
    Duration::from_micros(
        match span.as_micros().saturating_mul(times).checked_div(of) {
            Some(us) => us,
            None => 0,
        },
    )
}

/// The factor by which the pace of a source grows that needs so much `effort` for a frame, both in
/// 1/128.
///
/// Of two sources, one that slowed down to a quarter once left the air to the other, whose frames
/// then failed too seldom to make it slow down, too. So half of the pace comes soon, and less comes
/// late. It does not stay at half: a lone source at just that pace once lost the first attempt at
/// each frame to its own last one, three hops ahead.
fn times(effort: u16) -> u64 {
    let more = |least: u16| u64::from(effort.saturating_sub(least));
    let soon = (ETX_ONE + more(ETX_ALONE) * YIELD).min(2 * ETX_ONE);
    (soon + more(ETX_HALVED) / 2).min(ETX_ONE * SLOWEST)
}

/// Exchanges for each hop in which a packet is answered, or its last fragment at least is far away.
/// Half of it costs one flow over four hops a tenth, where its window now and then leaves a gap.
const ANSWERED: u64 = 16;

/// Longer paths than that count as this long: a packet is then answered after three seconds.
const PATH_MAX: u8 = 32;

/// An ETX of one attempt for each frame, in units of 1/128 (RFC 6551 §4.3.2).
const ETX_ONE: u64 = 128;

/// The ETX of a single source, in 1/128. At its best pace on a chain of four hops it needs up to
/// 1.5 attempts a frame (measured); beside another source at the same pace, more than 2.
const ETX_ALONE: u16 = 196;

/// A source whose frames need more attempts than this contends with others, and waits for longer
/// before each retry. So none of three sources that are hidden from each other starves.
const ETX_CONTENDED: u16 = 2 * ETX_ONE as u16;

/// The pace slows by this many times itself for each attempt more: at full pace two sources would
/// need a good half of one attempt more, and half of their pace suits both.
const YIELD: u64 = 5;

/// From so many attempts a frame on, in 1/128, a source is slower than at half of its pace, by half
/// of the pace for each attempt more.
const ETX_HALVED: u16 = 224;

/// Four sources share a router; more of them fail now and then.
const SLOWEST: u64 = 4;

/// Where radios take frames during the backoff, a pace that is longer by so small a part of an
/// exchange carries as much, and a little less is still enough (chosen on a chain of three hops).
const SLACK: u64 = 7;

/// With a channel for each link: a relay cannot take a frame while it passes on another.
const HOPS_APART: u8 = 2;

/// A lag lasts no longer than so many copies of a frame.
const LAG_COPIES: u64 = 4;

/// The least part of an exchange that a copy takes where relays lag: one in this many.
const COPY_PART: u64 = 8;

/// Relays that copy, and lag behind, keep three links in a row from disturbing each other.
const HOPS_IN_STEP: u8 = 3;

/// Where a frame fires the one before it, or copies take no time, all links are in use at short
/// intervals: a receiver then locks on frames from two hops away, so that a frame disturbs one
/// three hops behind it.
const HOPS_OUT_OF_EARSHOT: u8 = 4;

#[cfg(test)]
#[path = "tests/pace.rs"]
mod edges;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::mesh::{MeshConfig, Pacing};
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
        Mac::new(config, radio, &mut [], &mut [], &mut Rng::from_seed([1, 2])).unwrap()
    }

    fn settings(forwarding: Forwarding, hops_up: u8, hops_down: u8) -> MeshSettings {
        MeshSettings::of(&MeshConfig {
            forwarding,
            pacing: Pacing {
                pace_percent: 100,
                hops_up,
                hops_down,
                ..Pacing::default()
            },
            ..MeshConfig::default()
        })
    }

    /// The pace, from start to start of two frames: as many exchanges as hops in earshot, two with
    /// a channel for each link; two copies more between the exchanges of a relay that copies.
    #[test]
    fn a_pace_follows_from_what_a_frame_took() {
        // Mean backoff, half of seven periods, and a seventh of an exchange, µs.
        const SPARE: u64 = 1_120 + 714;
        for (hops, shared, is_single, copy_ms, us) in [
            (0, true, true, 0, 0),
            (1, true, true, 2, 0),
            (2, true, true, 0, 10_000),
            // Relays whose copies take no time do not lag, and four hops are in earshot.
            (3, true, true, 0, 15_000),
            (3, false, true, 0, 15_000),
            (4, false, true, 0, 20_000),
            (255, true, true, 0, 20_000),
            (2, true, true, 2, 14_000),
            (2, false, true, 2, 14_000),
            (3, true, true, 2, 15_000),
            (3, true, true, 3, 16_000),
            (3, false, true, 2, 15_000 + SPARE),
            (255, true, true, 2, 15_000),
            (2, false, false, 0, 10_000),
            (255, false, false, 2, 14_000),
        ] {
            let took = ExchangeTimes {
                exchange: MS(5),
                copy: MS(copy_ms),
            };
            let mac = mac(shared, is_single);
            let pace = |settings: &MeshSettings| settings.pace(true, took, &mac).as_micros();
            let mut settings = settings(Forwarding::Copy, hops, 0);
            assert_eq!(pace(&settings), us, "{hops} {shared} {is_single} {copy_ms}");
            settings.pacing.pace_percent = 50;
            assert_eq!(pace(&settings), us / 2);
            // Nobody knows how far it is downwards.
            assert_eq!(settings.pace(false, took, &mac), MS(0));
        }
    }

    /// A source slows the more, the more its frames cost.
    #[test]
    fn a_source_yields_to_others() {
        for (effort, percent) in [
            (0, 100),
            (128, 100),
            (196, 100),
            (197, 103),
            (221, 197),
            (222, 200),
            (225, 200),
            (352, 250),
            (u16::MAX, 400),
        ] {
            assert_eq!(times(effort) * 100 / ETX_ONE, percent, "{effort}");
        }
    }

    /// Frames that fire each other follow closely: four hops, no copies, and no assessment but that
    /// of the first.
    #[cfg(feature = "cit")]
    #[test]
    fn without_copies_four_hops_are_in_earshot() {
        let took = ExchangeTimes {
            exchange: MS(5),
            copy: MS(2),
        };
        // Each assessment takes 128 µs.
        for (hops, is_single, us) in [
            (2, true, 10_000),
            (2, false, 10_000),
            (3, true, 15_000 - 2 * 128),
            (4, true, 20_000 - 3 * 128),
            (9, true, 20_000 - 3 * 128),
            (9, false, 10_000 - 128),
        ] {
            let settings = settings(Forwarding::Immediate, hops, 0);
            let mac = mac(false, is_single);
            let pace = settings.pace(true, took, &mac);
            assert_eq!(pace.as_micros(), us, "{hops}");
            assert_eq!(settings.lag(took, Some(MS(16)), &mac), MS(0));
        }
    }

    /// A source whose path has three links without copies leaves room for the longest first backoff
    /// once for each packet, scaled by its pace; other sources do not.
    #[cfg(feature = "cit")]
    #[test]
    fn a_full_path_has_a_gap_for_what_comes_the_other_way() {
        const BACKOFF_MAX: u64 = 7 * 320;
        for (forwarding, up, down, is_single, is_router, us) in [
            (Forwarding::Immediate, 3, 0, true, true, BACKOFF_MAX),
            (Forwarding::Immediate, 2, 0, true, true, 0),
            (Forwarding::Immediate, 4, 0, true, true, 0),
            (Forwarding::Immediate, 3, 1, true, true, 0),
            (Forwarding::Immediate, 3, 0, true, false, 0),
            (Forwarding::Immediate, 3, 0, false, true, 0),
            (Forwarding::Copy, 3, 0, true, true, 0),
        ] {
            let mut settings = settings(forwarding, up, down);
            let mac = mac(false, is_single);
            assert_eq!(settings.gap(is_router, &mac).as_micros(), us, "{up} {down}");
            settings.pacing.pace_percent = 50;
            assert_eq!(settings.gap(is_router, &mac).as_micros(), us / 2);
        }
    }

    /// A source that sleeps waits until its frame, each relay's two copies and its lag included, is
    /// four hops on; with a channel for each link, two.
    #[cfg(feature = "sleepy")]
    #[test]
    fn a_source_that_sleeps_is_patient() {
        let took = ExchangeTimes {
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
            let settings = settings(Forwarding::Copy, hops, 0);
            let mut mac = mac(true, is_single);
            let policy = crate::mac::Policy::Hinted(crate::mac::poll::REST);
            mac.set_sleep(Some(crate::mac::Sleep::new(policy)));
            assert_eq!(
                settings.pace(true, took, &mac),
                MS(ms),
                "{hops} {is_single}"
            );
            assert_eq!(settings.pace(false, took, &mac), MS(0));
        }
    }

    /// A relay that lags has its turn two thirds of the way from one frame that comes to the next,
    /// at any pace of the source, unless they come too far apart to be in earshot.
    #[test]
    fn a_lag_is_learned_from_how_far_apart_frames_come() {
        let settings = settings(Forwarding::Copy, 2, 1);
        let took = ExchangeTimes {
            exchange: MS(5),
            copy: MS(2),
        };
        // A copy of 1.2 ms after a backoff of 1.12, or beside it.
        for (shared, apart_us, us) in [
            (true, 12_000, 0),
            (true, 15_000, 680),
            (true, 18_000, 2_680),
            (true, 19_999, 4_012),
            (true, 20_000, 2_000),
            (false, 15_000, 1_800),
            (false, 18_000, 3_800),
            (false, 19_999, 4_375),
        ] {
            let mac = mac(shared, true);
            let apart = Some(Duration::from_micros(apart_us));
            let lag = settings.lag(took, apart, &mac);
            assert_eq!(lag.as_micros(), us, "{shared} {apart_us}");
        }
        let several = mac(true, false);
        assert_eq!(settings.lag(took, Some(MS(18)), &several), MS(0));
        // No longer than four copies, and none where a copy takes no time.
        for (copy_us, apart, us) in [
            (0, Some(MS(18)), 0),
            (0, None, 0),
            (100, Some(MS(18)), 400),
            (100, None, 400),
        ] {
            let took = ExchangeTimes {
                copy: Duration::from_micros(copy_us),
                ..took
            };
            let lag = settings.lag(took, apart, &mac(false, true));
            assert_eq!(lag.as_micros(), us, "{copy_us} {apart:?}");
        }
    }

    /// A relay that is fired by what comes has the pace of that; one that copies has its own.
    #[cfg(feature = "cit")]
    #[test]
    fn a_relay_without_copies_follows_what_comes() {
        let mac = mac(false, false);
        for (forwarding, apart, us) in [
            (Forwarding::Immediate, Some(10_000), 10_000),
            (Forwarding::Immediate, Some(11_500), 11_500),
            (Forwarding::Immediate, Some(3_000), 7_500),
            (Forwarding::Immediate, Some(40_000), 12_500),
            (Forwarding::Immediate, None, 10_000),
            (Forwarding::Copy, Some(11_500), 10_000),
        ] {
            let settings = settings(forwarding, 2, 1);
            let apart = apart.map(Duration::from_micros);
            let pace = settings.following(MS(10), apart, &mac);
            assert_eq!(pace.as_micros(), us, "{forwarding:?} {apart:?}");
        }
    }

    /// Short backoffs are for what goes up, and is kept apart; packets that come down against it
    /// end them.
    #[test]
    fn a_flow_is_orderly_that_nobody_contends_with() {
        const ROUTER: LinkAddr = LinkAddr::Short(1);
        let settings = settings(Forwarding::Copy, 2, 0);
        let config = Config::new(1, [1; 8]);
        let radio = RadioCapabilities::CC2420;
        let mut known = [const { crate::mac::Neighbor::EMPTY }; 2];
        let mut mac = Mac::new(
            config,
            radio,
            &mut [],
            &mut known,
            &mut Rng::from_seed([1, 2]),
        )
        .unwrap();
        let now = Instant::from_micros(9_000_000);
        let is_orderly = |mac: &Mac<'_>, is_router, pace| {
            settings.is_orderly(is_router, (MS(pace), MS(5)), ROUTER, now, mac)
        };
        for (is_router, pace, expected) in [
            (true, 10, true),
            (true, 5, false),
            (true, 0, false),
            (false, 10, false),
        ] {
            assert_eq!(
                is_orderly(&mac, is_router, pace),
                expected,
                "{is_router} {pace}"
            );
        }
        mac.note_flow(ROUTER, Flow::NONE);
        mac.note_fragment(ROUTER, now);
        assert!(!is_orderly(&mac, true, 10));
    }

    /// Relays lag behind where three links in a row share a channel and frames are copied.
    #[test]
    fn relays_of_three_hops_lag_behind() {
        let took = ExchangeTimes {
            exchange: MS(5),
            copy: MS(2),
        };
        for (up, down, is_single, ms) in [
            (1, 1, true, 0),
            (0, 2, true, 0),
            (1, 2, true, 2),
            (2, 1, true, 2),
            (200, 200, true, 2),
            (2, 1, false, 0),
        ] {
            let settings = settings(Forwarding::Copy, up, down);
            let mac = mac(true, is_single);
            assert_eq!(settings.lag(took, None, &mac), MS(ms), "{up} {down}");
        }
    }
}
