//! Transfers down to a mote that sleeps: an image of its firmware, and segments whose round trips
//! are timed.

use motet::limits::IPV6_MTU_MIN;
use motet::link::Child;
use motet::time::Duration;

use crate::Arena;
use crate::apps::content::Content;
use crate::apps::{App, Receiver, Sender};
use crate::experiments::run::{DRAIN_LIMIT, Failure, PORT, Run, WARM_UP, drain, joined, verify};
use crate::experiments::setup::{Segment, Setup};
use crate::experiments::traffic::Traffic;
use crate::net::network::Network;
use crate::net::run::{Next, run};

/// A transfer of this many bytes from the host to the last mote, however long that takes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Image {
    pub(super) bytes: u64,
}

/// Segments from the host to the last mote without end.
#[derive(Clone, Copy, Debug)]
pub(super) struct RoundTrips {
    /// Round trips are compared with multiples of this.
    pub(super) interval: Duration,
}

impl Traffic for Image {
    fn run(&self, setup: &Setup, seed: u64, _: u64) -> Result<Run, Failure> {
        let arena = Arena::new();
        let options = setup.network(seed)?;
        // What a parent with one child was lent for it: packets that wait, the one that is cut up,
        // the entry.
        let parent_memory = options.nodes[0].indirect_len + IPV6_MTU_MIN + size_of::<Child>();
        let mut network = joined(options, &arena)?;
        let content = Content::made([seed, 0], self.bytes);
        let pair = start(&mut network, setup, content, &arena);
        let began = network.world.now();
        drain(&mut network, &[pair], began + IMAGE_LIMIT + DRAIN_LIMIT);
        // Byte for byte, which says more than equal digests do.
        verify(&network, &pair)?;
        let seconds = network.world.now().since(began).as_micros() as f64 / 1e6;
        Ok(Run {
            figures: vec![("image", seconds), ("parent_memory", parent_memory as f64)],
            bytes: self.bytes,
            ..Run::default()
        })
    }

    fn segment(&self, _: &Setup, _: u64) -> Segment {
        Segment::NONE
    }
}

impl Traffic for RoundTrips {
    fn run(&self, setup: &Setup, seed: u64, seconds: u64) -> Result<Run, Failure> {
        let arena = Arena::new();
        let mut network = joined(setup.network(seed)?, &arena)?;
        let content = Content::endless([seed, 0]);
        let [sender, _] = start(&mut network, setup, content, &arena);
        let until = network.world.now() + WARM_UP + Duration::from_secs(seconds);
        let mut smoothed = 0;
        let mut samples = Vec::new();
        run(&mut network, until, |network| {
            let progress = network.world.app(sender).progress();
            let now = progress.map_or(0, |progress| progress.telemetry.srtt_ms);
            if smoothed > 0 && now != smoothed {
                samples.push(sample(smoothed, now));
            }
            smoothed = now;
            Next::Event
        });
        let interval = self.interval.as_millis() as f64;
        let is_near = |rtt: &&f64| {
            let off = (*rtt / interval).round().max(1.0) * interval - *rtt;
            off.abs() <= NEAR * (*rtt + off)
        };
        let near = samples.iter().filter(is_near).count();
        Ok(Run {
            figures: vec![(
                "rtt_at_multiples",
                100.0 * near as f64 / samples.len() as f64,
            )],
            ..Run::default()
        })
    }

    fn segment(&self, _: &Setup, _: u64) -> Segment {
        Segment::NONE
    }
}

/// The round trip, ms, that moved the smoothed one so: an eighth of the difference (RFC 6298 §2.3),
/// to 15 ms, since both are whole milliseconds.
fn sample(before: u32, after: u32) -> f64 {
    8.0 * f64::from(after) - 7.0 * f64::from(before)
}

/// Lets the host send `content` to the last mote; returns both.
fn start<'m>(
    network: &mut Network<'m>,
    setup: &Setup,
    content: Content,
    arena: &'m Arena,
) -> [usize; 2] {
    let pair @ [sender, receiver] = [network.host(0).unwrap_or_default(), setup.mote()];
    let ends = |node, peer: usize| network.ends(node, network.addr(peer), arena);
    let receiving = Receiver::checking(PORT, ends(receiver, sender), content.clone());
    let peer = (network.addr(receiver), PORT);
    let sending = Sender::new(content, peer, ends(sender, receiver));
    network.world.set_app(receiver, App::Receiver(receiving));
    network.world.set_app(sender, App::Sender(sending));
    pair
}

/// Five times what it may take with losses.
const IMAGE_LIMIT: Duration = Duration::from_secs(1_800);

/// How near a multiple of the interval a round trip is that counts as one, as a part of the
/// multiple.
const NEAR: f64 = 0.1;

#[cfg(test)]
mod tests {
    use motet::mac::poll::REST;

    use super::*;

    /// A fortieth of the image of `combined-sleepy`, over as many hops and with as many losses.
    #[test]
    fn an_image_arrives_whole_at_a_mote_that_sleeps() {
        for loss in [0.0, 0.1] {
            let setup = Setup::hops(3).with("stack.sleep", "hinted");
            let setup = setup.with("stack.sleep_idle_s", REST.as_millis() as f64 / 1e3);
            let setup = setup.with("wire.loss", loss);
            let image = Image { bytes: 6_000 };
            let run = image.run(&setup, 1, 0).expect("it arrives");
            // Its connection also begins and ends.
            assert!(run.figure("image") < 60.0, "{run:?}");
            assert!(run.figure("parent_memory") <= 8_192.0, "{run:?}");
        }
    }

    /// Relays pass fragments on without copies, but a parent gathers what is for a mote that
    /// sleeps.
    #[test]
    fn nothing_is_fired_over_the_last_hop_to_a_mote_that_sleeps() {
        let fired = |sleep| {
            let setup = Setup::hops(3).with("radio.profile", "nrf52840");
            let setup = setup
                .with("stack.forwarding", "cit")
                .with("stack.sleep", sleep);
            let arena = Arena::new();
            let options = setup.network(1).expect("keys that go together");
            let mut network = joined(options, &arena).expect("all join");
            let content = Content::made([1, 0], 4_000);
            let pair = start(&mut network, &setup, content, &arena);
            let limit = network.world.now() + Duration::from_secs(120);
            drain(&mut network, &[pair], limit);
            verify(&network, &pair).expect("it arrives");
            let macs = network.macs();
            macs.map(|mac| mac.counters().immediate).collect::<Vec<_>>()
        };
        let awake = fired("off");
        assert!(awake[1] > 0 && awake[2] > 0, "{awake:?}");
        let asleep = fired("adaptive");
        assert!(asleep[1] > 0 && asleep[2] == 0, "{asleep:?}");
    }

    #[test]
    fn round_trips_are_read_off_the_smoothed_ones() {
        let next = |srtt: f64, rtt: f64| (7.0 * srtt + rtt) / 8.0;
        for rtt in [100.0, 2_000.0, 4_100.0] {
            let [before, after] = [1_500.0, next(1_500.0, rtt)].map(|srtt| srtt as u32);
            assert!((sample(before, after) - rtt).abs() <= 15.0, "{rtt}");
        }
    }
}
