//! The router as the border router of a real mesh: its radio is at this machine, and a TUN
//! interface leads to the network that it was started in.

use std::{collections::BTreeMap, net::Ipv6Addr, time};

use motet::ip::PacketDrop;
use motet_lab::{
    Arena,
    net::{outside::Role, plan},
};
use motet_router::wake::Wake;
use motet_taim::Config;

use super::{
    Args, air,
    gate::Gate,
    serve,
    snapshot::{MeshPosition, Snapshot},
    snapshot_channel,
};
use crate::{
    error::Error,
    interrupt::Interrupt,
    output::{describe, say},
    radio_node::{RadioNode, Start},
};

/// Runs the router until a signal ends it.
///
/// # Errors
/// There is no radio of use, or no longer one; no interface to the mesh can be made; the key cannot
/// be read, or its counters not be kept.
pub(super) fn run(url: &str, args: &Args) -> Result<(), Error> {
    let (tun, shared) = (&args.tun, &args.shared);
    let prefix = args.prefix.unwrap_or(plan::MESH_PREFIX);
    let interrupt = Interrupt::install()?;
    let arena = Arena::new();
    let start = Start {
        radio: url,
        channel: args.channel,
        pan: args.pan,
        key: args.key.as_ref(),
        state: args.state.as_ref(),
        role: Role::Router {
            prefix,
            motes: MOTES_MAX,
        },
        // It serves nothing itself.
        sockets: [0; 3],
    };
    let Some(mut node) = RadioNode::start(&start, &interrupt, &arena)? else {
        return Ok(());
    };
    let port = air::open(tun, prefix)?;
    let wake = Wake::new().map_err(|error| Error::failed(describe(&error)))?;
    let (snapshot_server, snapshot_client) = snapshot_channel::open(wake.bell());
    let socket = serve::open_doors(shared.socket.as_deref(), shared.metrics, &snapshot_client)?;
    let door = socket.as_ref().map(|socket| socket.path().display());
    say(&format!(
        "{prefix}/64 lies behind {tun}, {}{}",
        node.place(),
        door.map_or(String::new(), |path| format!(", status at {path}")),
    ));
    let began = time::Instant::now();
    let config = shared.policy().map(Config::new).unwrap_or_default();
    let mut gate = Gate::new(port, config);
    while !interrupt.has_come() {
        gate.turn(&mut node, NAP)?;
        snapshot_server.answer(|| look(&mut gate, &node, (tun, prefix), began.elapsed()));
    }
    gate.open(&mut node);
    // What was held leaves by the air.
    let end = time::Instant::now() + FAREWELL;
    while time::Instant::now() < end {
        gate.turn(&mut node, NAP)?;
    }
    Ok(())
}

/// The router now, with each mote's place in the mesh.
fn look(
    gate: &mut Gate,
    node: &RadioNode<'_>,
    (tun, prefix): (&str, Ipv6Addr),
    uptime: time::Duration,
) -> Snapshot {
    let status = gate.status(node.world.now());
    let mut snapshot = Snapshot::of_mesh(&status, tun, uptime, &motes(node, prefix));
    let counters = &node.world.node(0).ip().counters;
    snapshot.counters.forged = counters.dropped(PacketDrop::ForgedSource).into();
    snapshot
}

/// The motes that the root knows a way to, each with its parent and its distance.
fn motes(node: &RadioNode<'_>, prefix: Ipv6Addr) -> BTreeMap<Ipv6Addr, MeshPosition> {
    let addr = |iid: [u8; 8]| {
        let mut octets = prefix.octets();
        octets[8..].copy_from_slice(&iid);
        Ipv6Addr::from(octets)
    };
    let steps = node.world.node(0).routes_down();
    let parents: BTreeMap<_, _> = steps.map(|step| (step.child, step.parent)).collect();
    let hops = |mote: [u8; 8]| {
        let way = std::iter::successors(parents.get(&mote), |parent| parents.get(*parent));
        // One that goes in a circle leads nowhere.
        Some(way.take(MOTES_MAX).count()).filter(|hops| *hops < MOTES_MAX)
    };
    let place = |(mote, parent): (&[u8; 8], &[u8; 8])| {
        let (parent, hops) = (Some(addr(*parent)), hops(*mote));
        (addr(*mote), MeshPosition { parent, hops })
    };
    parents.iter().map(place).collect()
}

/// Motes that the root has room for.
const MOTES_MAX: usize = 256;

/// How long the node lives on behind a signal.
const FAREWELL: time::Duration = time::Duration::from_millis(100);

/// How late a signal, or a question for the status, may be noticed.
const NAP: time::Duration = time::Duration::from_millis(20);
