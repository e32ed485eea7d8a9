//! The state of a router at a moment: the one object of `status --json`, from which Prometheus'
//! text and the table are made, too.

use std::{collections::BTreeMap, net::Ipv6Addr};

use motet::{
    ip::PacketDrop, link::Link, lowpan::datagram::FragmentDrop, node::Node, time::Duration,
};
use motet_lab::net::network::RADIO;
use motet_taim::{FlowStatus, Held, MoteStatus, RoundTripSide, Status};
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
    /// The radio of a border router on real radios.
    #[serde(default)]
    pub(super) radio: Option<RadioRow>,
    /// How long the router has run.
    pub(super) uptime_s: f64,
    pub(super) policy: String,
    /// Flows that may be inside the mesh at a time: admission's W.
    pub(super) window: Option<usize>,
    /// Flows that are inside the mesh.
    pub(super) inside: Option<usize>,
    /// Time between two packets, ms, where TAiM or fair queueing spaces them.
    pub(super) spacing_ms: Option<f64>,
    /// Jain's index of the motes' goodputs, and their greatest over their least.
    pub(super) jain_1min: Option<f64>,
    pub(super) jain_10min: Option<f64>,
    pub(super) max_min_1min: Option<f64>,
    pub(super) max_min_10min: Option<f64>,
    /// The flows that got most lately, at most [`NAMED_MAX`] of them.
    pub(super) flows: Vec<FlowRow>,
    /// The motes that got most lately, at most as many; of our own border router every mote of its
    /// mesh, however many, before any other address.
    pub(super) motes: Vec<MoteRow>,
    /// The sums of all further flows, and of all further motes.
    #[serde(default)]
    pub(super) other_flows: Others,
    #[serde(default)]
    pub(super) other_motes: Others,
    pub(super) counters: Counters,
}

/// The radio of a border router.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct RadioRow {
    pub(super) url: String,
    /// Its firmware in its own words.
    pub(super) firmware: String,
    /// 16 hexadecimal digits.
    pub(super) eui64: String,
    pub(super) channel: u8,
    pub(super) pan: u16,
    /// Whether it is there now, and configured.
    pub(super) ready: bool,
    /// Times that it was configured anew: it had restarted, or was unplugged.
    pub(super) restarts: u64,
}

/// Flows or motes that have no row of their own.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(super) struct Others {
    /// How many flows or motes these are.
    pub(super) count: usize,
    #[serde(flatten)]
    pub(super) traffic: Traffic,
}

/// The figures of one flow.
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
    /// What our own border router alone knows of its motes.
    #[serde(flatten)]
    pub(super) place: MeshPosition,
}

/// Figures that a flow and a mote both have.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(super) struct Traffic {
    /// New bytes of TCP's streams, out of the mesh and into it.
    pub(super) bytes_up: u64,
    pub(super) bytes_down: u64,
    /// Goodput of both directions together.
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

/// A mote of our own border router's mesh: its name, its place, and its link to the border router
/// where it is a neighbour.
#[derive(Clone, PartialEq, Default, Debug, Serialize, Deserialize)]
pub(super) struct MeshPosition {
    #[serde(default)]
    pub(super) name: Option<String>,
    /// The mote's next hop up, by its address.
    pub(super) parent: Option<Ipv6Addr>,
    /// The mote's hops to the border router.
    pub(super) hops: Option<usize>,
    /// Received signal strength of its frames at the border router's radio, dBm.
    #[serde(default)]
    pub(super) rssi_dbm: Option<f64>,
    /// Attempts for each frame to the mote that it acknowledged.
    #[serde(default)]
    pub(super) etx: Option<f64>,
}

/// Events, counted since the router began.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize)]
pub(super) struct Counters {
    pub(super) packets: u64,
    /// No TCP, or not to be read.
    pub(super) others: u64,
    /// Packets of no known flow.
    pub(super) strangers: u64,
    /// Packets of these two kinds that were dropped because TCP needs the air.
    #[serde(default)]
    pub(super) dropped: u64,
    /// Segments that the policy relay sent again, and duplicate ACKs that it so answered.
    #[serde(default)]
    pub(super) resent: u64,
    #[serde(default)]
    pub(super) swallowed: u64,
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
    /// Packets out of our own mesh that were given up half put together, because others needed
    /// their memory.
    #[serde(default)]
    pub(super) evicted: u64,
    /// Fragments out of our own mesh that found no memory to put their packet together in.
    #[serde(default)]
    pub(super) no_memory: u64,
    /// Times that the rules were put in again.
    pub(super) rules_restored: u64,
}

impl Snapshot {
    /// `status` of a router on `interface`, beside another border router.
    pub(super) fn of(status: &Status, interface: &str, uptime: std::time::Duration) -> Self {
        Self::of_mesh(status, interface, uptime, &BTreeMap::new())
    }

    /// `status` of our own border router, of a mesh of these motes. Each has a row, with all that
    /// it got.
    pub(super) fn of_mesh(
        status: &Status,
        interface: &str,
        uptime: std::time::Duration,
        mesh: &BTreeMap<Ipv6Addr, MeshPosition>,
    ) -> Self {
        let fairness = &status.fairness;
        let flows = status.flows.iter().map(FlowRow::of);
        let (flows, other_flows) = named(flows, |row| &row.traffic, |_| false);
        let motes = status.motes.iter().map(MoteRow::of);
        let mut motes: BTreeMap<_, _> = motes.map(|row| (row.mote, row)).collect();
        for (addr, place) in mesh {
            let row = motes.entry(*addr).or_insert_with(|| MoteRow::silent(*addr));
            row.place = place.clone();
        }
        let is_ours = |row: &MoteRow| mesh.contains_key(&row.mote);
        let (motes, other_motes) = named(motes.into_values(), |row| &row.traffic, is_ours);
        Self {
            schema: SCHEMA,
            interface: interface.to_owned(),
            nfqueue: None,
            radio: None,
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
}

impl FlowRow {
    fn of(flow: &FlowStatus) -> Self {
        let side = |side: &RoundTripSide| (side.rtt.map(ms), side.variation.map(ms));
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
            place: MeshPosition::default(),
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
/// any number of flows. Rows of which `keeps` says so are named in any case.
fn named<T>(
    rows: impl Iterator<Item = T>,
    of: impl Fn(&T) -> &Traffic,
    keeps: impl Fn(&T) -> bool,
) -> (Vec<T>, Others) {
    let mut rows: Vec<(usize, T)> = rows.enumerate().collect();
    let mut others = Others::default();
    if rows.len() > NAMED_MAX {
        let rank = |row: &T| (keeps(row), of(row).rank());
        rows.sort_by(|(_, a), (_, b)| {
            let ((a_kept, a_rank), (b_kept, b_rank)) = (rank(a), rank(b));
            b_kept.cmp(&a_kept).then(b_rank.total_cmp(&a_rank))
        });
        let kept = rows.partition_point(|(_, row)| keeps(row));
        for (_, row) in rows.drain(kept.max(NAMED_MAX)..) {
            others.count += 1;
            others.traffic.add(of(&row));
        }
        rows.sort_by_key(|(place, _)| *place);
    }
    (rows.into_iter().map(|(_, row)| row).collect(), others)
}

impl Traffic {
    /// The order of rows: by goodput of the last minutes, then by all bytes.
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
            dropped: counters.dropped,
            resent: counters.resent,
            swallowed: counters.swallowed,
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

    /// Adds what our own border router counts.
    pub(super) fn add_node(&mut self, node: &Node<'_>) {
        self.forged = node.ip().counters.dropped(PacketDrop::ForgedSource).into();
        if let Some(Link::Mesh(mesh)) = node.link(RADIO) {
            let fragments = mesh.datagrams().counters();
            self.evicted = fragments.dropped(FragmentDrop::Evicted).into();
            let refused = [
                FragmentDrop::NoBody,
                FragmentDrop::TableFull,
                FragmentDrop::NeighborQuota,
            ];
            let refused = refused.map(|why| u64::from(fragments.dropped(why)));
            self.no_memory = refused.iter().sum();
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
pub(super) mod tests {
    use super::*;
    use motet_taim::{Config, FlowKey, Router};

    const UPTIME: std::time::Duration = std::time::Duration::from_secs(3);

    /// The address of mote `n`.
    pub(in crate::router) fn mote(n: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, n)
    }

    /// The status of a router that knows `flows` flows, each of a mote of its own, which has
    /// carried `bytes_of` bytes.
    fn crowd(flows: u16, bytes_of: impl Fn(u16) -> u64) -> Status {
        let mut status = Router::new(Config::default()).status(motet::time::Instant::ORIGIN);
        for n in 0..flows {
            let bytes_up = bytes_of(n);
            // Over a minute, and not evenly.
            let rate = bytes_up as f64 * 8.0 / 60.0;
            status.flows.push(FlowStatus {
                key: FlowKey {
                    mote: mote(n),
                    mote_port: 7,
                    peer: Ipv6Addr::LOCALHOST,
                    peer_port: n,
                },
                bytes_up,
                bytes_down: 0,
                goodput_1min_bps: rate,
                goodput_10min_bps: rate,
                mesh: RoundTripSide::default(),
                wired: RoundTripSide::default(),
                packets: 2,
                retransmissions: 0,
                held: Held::default(),
                idle: Duration::ZERO,
                is_over: false,
            });
            status.motes.push(MoteStatus {
                addr: mote(n),
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
        status
    }

    /// The router with `flows` flows, of which these have carried bytes.
    pub(in crate::router) fn crowded(flows: u16, bytes_of: impl Fn(u16) -> u64) -> Snapshot {
        Snapshot::of(&crowd(flows, bytes_of), "wpan0", UPTIME)
    }

    /// A thousand bytes each hundredth.
    pub(in crate::router) fn few_carry(n: u16) -> u64 {
        if n.is_multiple_of(100) { 1_000 } else { 0 }
    }

    #[test]
    fn so_many_flows_are_named_and_the_rest_is_summed_up() {
        let few = crowded(NAMED_MAX as u16, few_carry);
        assert_eq!((few.flows.len(), few.other_flows.count), (NAMED_MAX, 0));
        let many = crowded(8_192, few_carry);
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

    /// All 300 motes of a mesh have their rows, with what they got and where they are, however many
    /// addresses strangers make up, and whatever those got.
    #[test]
    fn strangers_push_no_mote_of_the_mesh_out() {
        let mesh: BTreeMap<_, _> = (0..300_u16)
            .map(|n| {
                let place = MeshPosition {
                    parent: n.checked_sub(1).map(mote),
                    hops: Some(usize::from(n) + 1),
                    ..MeshPosition::default()
                };
                (mote(n), place)
            })
            .collect();
        // Mote 299 is silent, and has no flow.
        for known in [299, 2_000] {
            let is_ours = |n: u16| n < 299;
            let mut status = crowd(known, |n| if is_ours(n) { u64::from(n) } else { 5_000 });
            status.motes.retain(|row| row.addr != mote(299));
            let snapshot = Snapshot::of_mesh(&status, "motet0", UPTIME, &mesh);
            let motes = snapshot.motes.iter().map(|row| row.mote);
            assert!(motes.eq(mesh.keys().copied()), "{}", snapshot.motes.len());
            for (n, row) in snapshot.motes.iter().enumerate() {
                let bytes = if n < 299 { n as u64 } else { 0 };
                assert_eq!(row.traffic.bytes_up, bytes, "{n}");
                assert_eq!(row.place.hops, Some(n + 1));
            }
            let others = usize::from(known.saturating_sub(300));
            assert_eq!(snapshot.other_motes.count, others);
            assert_eq!(snapshot.other_motes.traffic.packets, 2 * others as u64);
        }
    }
}
