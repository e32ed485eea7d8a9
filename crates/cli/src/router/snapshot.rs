//! What is known of a router at a moment: the one object of `status --json`, which Prometheus'
//! text and the table say too.

use std::net::Ipv6Addr;

use motet::time::Duration;
use motet_taim::{FlowStatus, Held, MoteStatus, Side, Status};
use serde::{Deserialize, Serialize};

use crate::output::SCHEMA;

/// A router at a moment.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Snapshot {
    pub(super) schema: u32,
    /// The interface into the mesh.
    pub(super) interface: String,
    /// Number of the packet queue; none of our own border router.
    pub(super) nfqueue: Option<u16>,
    /// How long the router has run.
    pub(super) uptime_s: f64,
    pub(super) policy: String,
    /// Flows that may be inside the mesh at a time: admission's W.
    pub(super) window: Option<usize>,
    /// Flows that are inside the mesh.
    pub(super) inside: Option<usize>,
    /// Between two packets, where TAiM or fair queueing spaces them.
    pub(super) spacing_ms: Option<f64>,
    /// Jain's index of the motes' goodputs, and their greatest over their least.
    pub(super) jain_1min: Option<f64>,
    pub(super) jain_10min: Option<f64>,
    pub(super) max_min_1min: Option<f64>,
    pub(super) max_min_10min: Option<f64>,
    /// The flows that got most lately, at most [`NAMED_MAX`] of them.
    pub(super) flows: Vec<FlowRow>,
    /// The motes that got most lately, at most as many; of our own border router every mote besides.
    pub(super) motes: Vec<MoteRow>,
    /// What all further flows have together, and all further motes.
    #[serde(default)]
    pub(super) other_flows: Others,
    #[serde(default)]
    pub(super) other_motes: Others,
    pub(super) counters: Counters,
}

/// Flows or motes that have no row of their own.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(super) struct Others {
    /// How many.
    pub(super) count: usize,
    #[serde(flatten)]
    pub(super) traffic: Traffic,
}

/// One flow.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct FlowRow {
    pub(super) mote: Ipv6Addr,
    pub(super) mote_port: u16,
    pub(super) peer: Ipv6Addr,
    pub(super) peer_port: u16,
    #[serde(flatten)]
    pub(super) traffic: Traffic,
    pub(super) mesh_rtt_ms: Option<f64>,
    pub(super) mesh_rtt_variation_ms: Option<f64>,
    pub(super) wired_rtt_ms: Option<f64>,
    pub(super) wired_rtt_variation_ms: Option<f64>,
    /// How long nothing has come of it.
    pub(super) idle_s: f64,
    /// Whether an end has closed it.
    pub(super) over: bool,
}

/// One mote, with all its flows.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct MoteRow {
    pub(super) mote: Ipv6Addr,
    /// Flows that are known now.
    pub(super) flows: usize,
    #[serde(flatten)]
    pub(super) traffic: Traffic,
    /// Of our own border router: the mote's next hop up, by its address.
    pub(super) parent: Option<Ipv6Addr>,
    /// Of our own border router: the mote's hops to it.
    pub(super) hops: Option<usize>,
}

/// What flows and motes have in common.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(super) struct Traffic {
    /// New bytes of TCP's streams, out of the mesh and into it.
    pub(super) bytes_up: u64,
    pub(super) bytes_down: u64,
    /// Of both ways.
    pub(super) goodput_1min_kbps: f64,
    pub(super) goodput_10min_kbps: f64,
    pub(super) packets: u64,
    pub(super) retransmissions: u64,
    /// Packets that are held now; those that were and have gone, and how long.
    pub(super) held_now: usize,
    pub(super) held_packets: u64,
    pub(super) held_s: f64,
    pub(super) held_longest_ms: f64,
}

/// Events, counted since the router began.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(super) struct Counters {
    pub(super) packets: u64,
    /// No TCP, or not to be read: passed at once.
    pub(super) others: u64,
    /// Of no known flow: passed at once.
    pub(super) strangers: u64,
    pub(super) held: u64,
    pub(super) released: u64,
    pub(super) flows: u64,
    pub(super) table_full: u64,
    pub(super) mote_full: u64,
    pub(super) queue_full: u64,
    pub(super) released_early: u64,
    pub(super) strays: u64,
    pub(super) clock_steps: u64,
    /// Times that the kernel could not report packets, and let them pass.
    pub(super) overruns: u64,
    /// Packets that the kernel gave up while they were held: an interface went down.
    pub(super) gone: u64,
    /// Packets of other interfaces.
    pub(super) elsewhere: u64,
    /// Packets from outside with a source inside, which were dropped.
    #[serde(default)]
    pub(super) forged: u64,
    /// Times that the rules were put in again.
    pub(super) rules_restored: u64,
}

impl Snapshot {
    /// `status` of a router on `interface`.
    pub(super) fn of(status: &Status, interface: &str, uptime: std::time::Duration) -> Self {
        let fairness = &status.fairness;
        let flows = status.flows.iter().map(FlowRow::of);
        let (flows, other_flows) = named(flows, |row| &row.traffic);
        let motes = status.motes.iter().map(MoteRow::of);
        let (motes, other_motes) = named(motes, |row| &row.traffic);
        Self {
            schema: SCHEMA,
            interface: interface.to_owned(),
            nfqueue: None,
            uptime_s: uptime.as_millis() as f64 / 1e3,
            policy: status.policy.to_owned(),
            window: status.window,
            inside: status.inside,
            spacing_ms: status.spacing.map(ms),
            jain_1min: fairness.jain_1min,
            jain_10min: fairness.jain_10min,
            max_min_1min: fairness.max_min_1min,
            max_min_10min: fairness.max_min_10min,
            flows,
            motes,
            other_flows,
            other_motes,
            counters: Counters::of(&status.counters),
        }
    }

    /// The row of the mote with that address; a new one where no flow of it has passed. Rows are in
    /// the order of addresses.
    pub(super) fn mote(&mut self, addr: Ipv6Addr) -> &mut MoteRow {
        let place = self.motes.binary_search_by_key(&addr, |row| row.mote);
        let place = place.unwrap_or_else(|place| {
            self.motes.insert(place, MoteRow::silent(addr));
            place
        });
        &mut self.motes[place]
    }
}

impl FlowRow {
    fn of(flow: &FlowStatus) -> Self {
        let side = |side: &Side| (side.rtt.map(ms), side.variation.map(ms));
        let (mesh_rtt_ms, mesh_rtt_variation_ms) = side(&flow.mesh);
        let (wired_rtt_ms, wired_rtt_variation_ms) = side(&flow.wired);
        Self {
            mote: flow.key.mote,
            mote_port: flow.key.mote_port,
            peer: flow.key.peer,
            peer_port: flow.key.peer_port,
            traffic: Traffic {
                bytes_up: flow.bytes_up,
                bytes_down: flow.bytes_down,
                goodput_1min_kbps: flow.goodput_1min_bps / 1e3,
                goodput_10min_kbps: flow.goodput_10min_bps / 1e3,
                packets: flow.packets,
                retransmissions: flow.retransmissions,
                ..Traffic::held(&flow.held)
            },
            mesh_rtt_ms,
            mesh_rtt_variation_ms,
            wired_rtt_ms,
            wired_rtt_variation_ms,
            idle_s: flow.idle.as_millis() as f64 / 1e3,
            over: flow.is_over,
        }
    }
}

impl MoteRow {
    /// A mote that has sent nothing.
    fn silent(addr: Ipv6Addr) -> Self {
        Self {
            mote: addr,
            flows: 0,
            traffic: Traffic::default(),
            parent: None,
            hops: None,
        }
    }

    fn of(mote: &MoteStatus) -> Self {
        Self {
            flows: mote.flows,
            traffic: Traffic {
                bytes_up: mote.bytes_up,
                bytes_down: mote.bytes_down,
                goodput_1min_kbps: mote.goodput_1min_bps / 1e3,
                goodput_10min_kbps: mote.goodput_10min_bps / 1e3,
                packets: mote.packets,
                retransmissions: mote.retransmissions,
                ..Traffic::held(&mote.held)
            },
            ..Self::silent(mote.addr)
        }
    }
}

/// The rows that got most lately, in their order, and the sum of the others: a stranger can make up
/// any number of flows.
fn named<T>(rows: impl Iterator<Item = T>, of: impl Fn(&T) -> &Traffic) -> (Vec<T>, Others) {
    let mut rows: Vec<(usize, T)> = rows.enumerate().collect();
    let mut others = Others::default();
    if rows.len() > NAMED_MAX {
        rows.sort_by(|(_, a), (_, b)| of(b).rank().total_cmp(&of(a).rank()));
        for (_, row) in rows.drain(NAMED_MAX..) {
            others.count += 1;
            others.traffic.add(of(&row));
        }
        rows.sort_by_key(|(place, _)| *place);
    }
    (rows.into_iter().map(|(_, row)| row).collect(), others)
}

impl Traffic {
    /// What comes before what: goodput of the last minutes, which nobody has alone, then all bytes.
    fn rank(&self) -> f64 {
        let bytes = self.bytes_up + self.bytes_down;
        let lately = self.goodput_1min_kbps + self.goodput_10min_kbps;
        // No flow carries 10^15 bytes.
        lately + bytes as f64 / 1e15
    }

    fn add(&mut self, other: &Self) {
        self.bytes_up += other.bytes_up;
        self.bytes_down += other.bytes_down;
        self.goodput_1min_kbps += other.goodput_1min_kbps;
        self.goodput_10min_kbps += other.goodput_10min_kbps;
        self.packets += other.packets;
        self.retransmissions += other.retransmissions;
        self.held_now += other.held_now;
        self.held_packets += other.held_packets;
        self.held_s += other.held_s;
        self.held_longest_ms = self.held_longest_ms.max(other.held_longest_ms);
    }

    fn held(held: &Held) -> Self {
        Self {
            held_now: held.now,
            held_packets: held.packets,
            held_s: held.time.as_micros() as f64 / 1e6,
            held_longest_ms: ms(held.longest),
            ..Self::default()
        }
    }
}

impl Counters {
    fn of(counters: &motet_taim::Counters) -> Self {
        Self {
            packets: counters.packets,
            others: counters.others,
            strangers: counters.strangers,
            held: counters.held,
            released: counters.released,
            flows: counters.flows,
            table_full: counters.table_full,
            mote_full: counters.mote_full,
            queue_full: counters.queue_full,
            released_early: counters.released_early,
            strays: counters.strays,
            clock_steps: counters.clock_steps,
            ..Self::default()
        }
    }
}

/// Flows, and motes, that are named: all of a large mesh, and what a page shows or a database of
/// metrics bears.
pub(super) const NAMED_MAX: usize = 256;

fn ms(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use motet_taim::{Config, FlowKey, Router};

    /// The status of a router that knows so many flows, each of a mote of its own; every hundredth
    /// carries bytes.
    pub(in crate::router) fn crowded(flows: u16) -> Snapshot {
        let mut status = Router::new(Config::default()).status(motet::time::Instant::ORIGIN);
        for n in 0..flows {
            let mote = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, n);
            let (bytes_up, rate) = if n % 100 == 0 {
                (1_000, 80.0)
            } else {
                (0, 0.0)
            };
            status.flows.push(FlowStatus {
                key: FlowKey {
                    mote,
                    mote_port: 7,
                    peer: Ipv6Addr::LOCALHOST,
                    peer_port: n,
                },
                bytes_up,
                bytes_down: 0,
                goodput_1min_bps: rate,
                goodput_10min_bps: rate,
                mesh: Side::default(),
                wired: Side::default(),
                packets: 2,
                retransmissions: 0,
                held: Held::default(),
                idle: Duration::ZERO,
                is_over: false,
            });
            status.motes.push(MoteStatus {
                addr: mote,
                flows: 1,
                bytes_up,
                bytes_down: 0,
                goodput_1min_bps: rate,
                goodput_10min_bps: rate,
                packets: 2,
                retransmissions: 0,
                held: Held::default(),
            });
        }
        Snapshot::of(&status, "wpan0", std::time::Duration::from_secs(3))
    }

    #[test]
    fn so_many_flows_are_named_and_the_rest_is_summed_up() {
        let few = crowded(NAMED_MAX as u16);
        assert_eq!((few.flows.len(), few.other_flows.count), (NAMED_MAX, 0));
        let many = crowded(8_192);
        assert_eq!(many.flows.len(), NAMED_MAX);
        assert_eq!(many.motes.len(), NAMED_MAX);
        assert_eq!(many.other_flows.count, 8_192 - NAMED_MAX);
        assert_eq!(many.other_flows.traffic.packets, 2 * (8_192 - 256));
        assert_eq!(many.other_flows, many.other_motes);
        // Those that carry bytes are among those named, in the order of their keys.
        let carrying = many.flows.iter().filter(|row| row.traffic.bytes_up > 0);
        assert_eq!(carrying.count(), 82);
        assert!(many.flows.is_sorted_by_key(|row| (row.mote, row.peer_port)));
        let text = serde_json::to_vec(&many).unwrap();
        assert!(text.len() < 1 << 20, "{} bytes", text.len());
        let read: Snapshot = serde_json::from_slice(&text).unwrap();
        assert_eq!(read, many);
    }
}
