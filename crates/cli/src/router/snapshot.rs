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
    pub(super) flows: Vec<FlowRow>,
    pub(super) motes: Vec<MoteRow>,
    pub(super) counters: Counters,
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
    /// Times that the rules were put in again.
    pub(super) rules_restored: u64,
}

impl Snapshot {
    /// `status` of a router on `interface`.
    pub(super) fn of(status: &Status, interface: &str, uptime: std::time::Duration) -> Self {
        let fairness = &status.fairness;
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
            flows: status.flows.iter().map(FlowRow::of).collect(),
            motes: status.motes.iter().map(MoteRow::of).collect(),
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

impl Traffic {
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

fn ms(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1e3
}
