//! The router as the border router of a real mesh: its radio is at this machine, and a TUN
//! interface leads to the network that it was started in.

use std::{
    collections::BTreeMap,
    net::Ipv6Addr,
    sync::{Arc, atomic::Ordering},
    time,
};

use motet_lab::{
    Arena,
    keys::{KeyFile, hex},
    net::{outside::Role, plan},
};
use motet_router::wake::Wake;
use motet_taim::Config;

use super::{
    Args, Compression, Joining, air,
    gate::Gate,
    names::Names,
    reread::reread,
    serve,
    snapshot::{MeshPosition, RadioRow, Snapshot},
    snapshot_channel,
};
use crate::{
    error::Error,
    interrupt::Interrupt,
    output::{describe, say},
    radio_node::{RadioNode, Start},
    state,
};

/// Runs the router until a signal ends it.
///
/// # Errors
/// There is no radio of use, or no longer one; no interface to the mesh can be made; the key cannot
/// be read, or its counters not be kept.
pub(super) fn run(url: &str, args: &Args) -> Result<(), Error> {
    let (tun, shared) = (&args.tun, &args.shared);
    let prefix = args.prefix.unwrap_or(plan::MESH_PREFIX);
    // Read before the node gets the key: a later change of the file is noticed at the next SIGHUP.
    let keys = args.key.as_deref().map(KeyFile::read).transpose();
    let mut known = keys.map_err(Error::input)?;
    let (interrupt, hung_up) = match args.key {
        Some(_) => Interrupt::install_beside_hangup()?,
        None => (Interrupt::install()?, Arc::default()),
    };
    let arena = Arena::new();
    let start = Start {
        thread: None,
        radio: url,
        channel: args.channel,
        pan: args.pan,
        key: args.key.as_ref(),
        join_key: None,
        registers: known.as_ref().filter(|_| args.joining == Joining::Cojp),
        state: args.state.as_ref(),
        role: Role::Router {
            prefix,
            motes: MOTES_MAX,
            offers_compression: args.compression == Compression::Auto,
        },
        // It serves nothing itself.
        sockets: [0; 3],
    };
    let Some(mut node) = RadioNode::start(&start, &interrupt, &arena)? else {
        return Ok(());
    };
    let port = air::open(tun, &[prefix])?;
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
    let (_, pan) = node.channel_and_pan();
    let mut names = Names::read(state::folder(args.state.as_deref()).as_deref(), pan);
    let mut named_at = began;
    while !interrupt.has_come() {
        gate.turn(&mut node, NAP)?;
        if hung_up.swap(false, Ordering::Relaxed)
            && let Some((path, known)) = args.key.as_deref().zip(known.as_mut())
        {
            say(&reread(path, known, &mut node, BY_HAND));
        }
        // In the order in which motes come, whoever asks when.
        if named_at.elapsed() >= NAME_EVERY {
            named_at = time::Instant::now();
            let motes = node.world.node(0).routes_down();
            motes.for_each(|step| drop(names.of(eui64_of(step.child))));
        }
        snapshot_server.answer(|| {
            let uptime = began.elapsed();
            let mut snapshot = look(&mut gate, &node, (tun, prefix), &mut names, uptime);
            snapshot.radio = Some(radio(&node, url));
            snapshot
        });
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
    names: &mut Names,
    uptime: time::Duration,
) -> Snapshot {
    let status = gate.status(node.world.now());
    let motes = motes(node, prefix, names);
    let mut snapshot = Snapshot::of_mesh(&status, tun, uptime, &motes);
    snapshot.counters.add_node(node.world.node(0));
    snapshot
}

/// The radio now.
fn radio(node: &RadioNode<'_>, url: &str) -> RadioRow {
    let (info, (channel, pan)) = (node.info(), node.channel_and_pan());
    let (ready, restarts) = node.readiness();
    RadioRow {
        url: url.to_owned(),
        firmware: info.firmware.clone(),
        eui64: hex(&info.eui64),
        channel,
        pan,
        ready,
        restarts,
    }
}

/// The motes that the root knows a way to: each with its name, its parent, its distance, and its
/// link to the root where it is a neighbour.
fn motes(
    node: &RadioNode<'_>,
    prefix: Ipv6Addr,
    names: &mut Names,
) -> BTreeMap<Ipv6Addr, MeshPosition> {
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
        let eui64 = eui64_of(*mote);
        let hops = hops(*mote);
        let quality = node.quality(eui64).filter(|_| hops == Some(1));
        let place = MeshPosition {
            name: names.of(eui64),
            parent: Some(addr(*parent)),
            hops,
            rssi_dbm: quality.map(|quality| quality.rssi_dbm),
            etx: quality.and_then(|quality| quality.etx),
        };
        (addr(*mote), place)
    };
    parents.iter().map(place).collect()
}

/// The EUI-64 from which an interface identifier is made (RFC 4291, appendix A).
const fn eui64_of(iid: [u8; 8]) -> [u8; 8] {
    let [first, rest @ ..] = iid;
    let [b, c, d, e, f, g, h] = rest;
    [first ^ 2, b, c, d, e, f, g, h]
}

/// Why motes cannot get another key.
const BY_HAND: &str = "motes that have it from the start must be given another one by hand (--joining is not \
                       cojp)";

/// Motes that the root has room for.
const MOTES_MAX: usize = 256;

/// How late a mote may get its name.
const NAME_EVERY: time::Duration = time::Duration::from_secs(1);

/// How long the node lives on behind a signal.
const FAREWELL: time::Duration = time::Duration::from_millis(100);

/// How late a signal, or a question for the status, may be noticed.
const NAP: time::Duration = time::Duration::from_millis(20);
