//! A parent whose radio is off for a while: how soon traffic goes on when it is back.

use motet::mac::security::NetworkKey;
use motet::time::{Duration, Instant};

use super::measure;
use crate::Arena;
use crate::air::gains::{ChainAir, Gains, Later};
use crate::net::network::{
    Host, HostOptions, Joining, Network, NetworkOptions, NodeOptions, SecurityOptions,
};
use crate::net::plan;

/// Which way datagrams go, one each 100 ms, before, while and after the radio is off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Traffic {
    /// From the last mote to the host: the mote notices that its parent is gone.
    Up,
    /// From the host to the last mote and back, too.
    Both,
}

/// What happens to the node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Outage {
    /// Its radio neither sends nor hears.
    Mute,
    /// It is switched off, and begins anew.
    Reboot,
}

/// A chain of so many hops, of which node `off` is away for `span`; all have a key or none.
#[derive(Clone, Copy, Debug)]
struct Case {
    hops: usize,
    off: usize,
    outage: Outage,
    traffic: Traffic,
    has_key: bool,
    span: Duration,
}

impl Case {
    fn options(&self, seed: u64) -> NetworkOptions {
        let nodes = (0..=self.hops).map(|n| NodeOptions::new(n.to_string()));
        let security = self
            .has_key
            .then(|| SecurityOptions::new(NetworkKey::new([1; 16]), 0));
        NetworkOptions {
            seed,
            joining: Joining::Rpl,
            security,
            hosts: vec![HostOptions {
                kind: Host::Outside,
                ..HostOptions::new("host")
            }],
            // Only neighbours hear each other, so that there is no other way.
            ..NetworkOptions::new(
                nodes.collect(),
                Gains::from_fn(self.hops + 1, |a, b| match a.abs_diff(b) {
                    1 => ChainAir::CALIBRATED.one_hop_db,
                    _ => f64::NEG_INFINITY,
                }),
            )
        }
    }

    /// The time from the node's return to the first datagram that then comes to the host, seconds.
    fn seconds(&self, seed: u64) -> f64 {
        let arena = Arena::new();
        let options = self.options(seed);
        let gains = options.gains.clone();
        let mut network = Network::new(options, &arena).unwrap();
        assert!(network.join(Duration::from_secs(60)), "{self:?} {seed}");
        let mut round = 0;
        let off_at = network.world.now() + Duration::from_secs(20);
        self.exchange(&mut network, off_at, &mut round, false);
        let on_at = off_at + self.span;
        match self.outage {
            Outage::Mute => network
                .world
                .change_later(mutes(&gains, self.off, on_at, off_at)),
            Outage::Reboot => network.switch_off(self.off),
        }
        self.exchange(&mut network, on_at, &mut round, false);
        if self.outage == Outage::Reboot {
            network.switch_on(self.off, &arena);
        }
        let limit = on_at + Duration::from_secs(60);
        self.exchange(&mut network, limit, &mut round, true);
        network.world.now().since(on_at).as_micros() as f64 / 1e6
    }

    /// Sends on until this instant, or until the first datagram comes.
    fn exchange(&self, network: &mut Network<'_>, until: Instant, round: &mut u16, awaits: bool) {
        while network.world.take_packet().is_some() {}
        let first = *round;
        let mote = network.addr(self.hops);
        while network.world.now() < until {
            *round += 1;
            let sequence = round.to_be_bytes();
            // Without a way up it is refused, or lost.
            let _ = network.world.with_node(self.hops, |node, _| {
                node.send_datagram((plan::HOST, 9), 9, &sequence)
            });
            if self.traffic == Traffic::Both {
                let request = measure::echo_request(mote, *round);
                network.world.inject_packet(&request);
            }
            let next = (network.world.now() + Duration::from_millis(100)).min(until);
            while network.world.now() < next {
                let step = (network.world.now() + Duration::from_millis(1)).min(next);
                network.world.run_until(step);
                while let Some(packet) = network.world.take_packet() {
                    if awaits && number(&packet) > Some(first) {
                        return;
                    }
                }
            }
        }
    }
}

/// The number of a datagram, or of an echo.
fn number(packet: &[u8]) -> Option<u16> {
    match measure::echo_reply(packet) {
        Some((_, round)) => Some(round),
        None => packet.last_chunk().map(|bytes| u16::from_be_bytes(*bytes)),
    }
}

/// No frame of a node arrives, and none arrives there, between these instants.
fn mutes(gains: &Gains, node: usize, on_at: Instant, off_at: Instant) -> Vec<Later> {
    let others = (0..gains.nodes()).filter(|other| *other != node);
    let pairs = others.flat_map(|other| [(node, other), (other, node)]);
    let changes = pairs.flat_map(|(from, to)| {
        let db = gains.get(from, to).unwrap_or(f64::NEG_INFINITY);
        [(off_at, f64::NEG_INFINITY), (on_at, db)].map(|(at, db)| Later { at, from, to, db })
    });
    changes.collect()
}

/// The times of several seeds, in order.
fn times(case: Case) -> Vec<f64> {
    let mut times: Vec<f64> = (1..=9).map(|seed| case.seconds(seed)).collect();
    times.sort_by(f64::total_cmp);
    println!("{case:?}: {times:.2?}");
    times
}

fn cases(outage: Outage, traffic: Traffic) -> impl Iterator<Item = Case> {
    [(1, 0), (2, 0), (2, 1)]
        .into_iter()
        .flat_map(move |(hops, off)| {
            [false, true].map(|has_key| Case {
                hops,
                off,
                outage,
                traffic,
                has_key,
                span: Duration::from_secs(5),
            })
        })
}

/// A mote that gave its parent up hears its frames, and tries it at once. The parent, for its part,
/// leaves a mote alone for up to a second that took nothing.
#[test]
fn a_parent_that_sends_when_it_is_back_is_tried_at_once() {
    for case in cases(Outage::Mute, Traffic::Both) {
        let times = times(case);
        assert!(times[4] < 1.6 && times[8] < 5.0, "{case:?}: {times:.2?}");
    }
}

/// One that has nothing to send has to be asked, which the mote does every second or two.
#[test]
fn a_parent_that_is_silent_when_it_is_back_serves_once_it_is_asked() {
    for case in cases(Outage::Mute, Traffic::Up) {
        let times = times(case);
        assert!(times[4] < 2.5 && times[8] < 10.0, "{case:?}: {times:.2?}");
    }
}

#[test]
fn a_parent_that_reboots_serves_soon() {
    for case in cases(Outage::Reboot, Traffic::Up) {
        let times = times(case);
        assert!(times[4] < 4.0 && times[8] < 10.0, "{case:?}: {times:.2?}");
    }
}
