//! The router as a border router itself: of a mesh on the lab's air, in real time, joined to the
//! network that it was started in.

use std::{
    net::Ipv6Addr,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time,
};

use motet::time::Duration;
use motet_lab::{
    Arena,
    keys::KeyFile,
    net::{
        moves,
        network::{Network, NetworkOptions},
        plan,
    },
};
use motet_router::{
    port::{LinkKind, PacketPort, PortConfig, PortError, SharedNetwork},
    wake::Wake,
};
use motet_taim::Config;

use super::{
    Args,
    reread::reread,
    serve,
    snapshot::{MeshPosition, Snapshot},
    snapshot_channel,
};
use crate::{
    chain,
    error::Error,
    hosts::host_name,
    interrupt::Interrupt,
    keys,
    live::Live,
    output::{describe, say},
    state,
    up::linux::{self as up, Faults, Mesh},
};

/// Runs the mesh and its router until a signal ends them.
pub(super) fn run(scenario: &Path, args: &Args) -> Result<(), Error> {
    let (tun, connections, shared) = (&args.tun, args.connections, &args.shared);
    // Read before the mesh gets the key: a later change of the file is noticed at the next SIGHUP.
    let keys = args.key.as_deref().map(KeyFile::read).transpose();
    let keys = keys.map_err(Error::input)?;
    let (mesh, fairness) = mesh(scenario, args)?;
    let prefix = args.prefix.unwrap_or(plan::MESH_PREFIX);
    let (interrupt, hung_up) = match args.key {
        Some(_) => Interrupt::install_beside_hangup()?,
        None => (Interrupt::install()?, Arc::default()),
    };
    let prefixes = prefixes(&mesh.options, prefix)?;
    let port = open(tun, &prefixes)?;
    let wake = Wake::new().map_err(|error| Error::failed(describe(&error)))?;
    let (snapshot_server, snapshot_client) = snapshot_channel::open(wake.bell());
    let socket = serve::open_doors(shared.socket.as_deref(), shared.metrics, &snapshot_client)?;
    let arena = Arena::new();
    let network = Network::under(prefix, mesh.options, &arena, || interrupt.has_come());
    let mut network =
        network.map_err(|error| Error::input(format!("there is no such mesh: {error}")))?;
    let nodes = network.mesh_nodes();
    let scenario = &mesh.scenario;
    up::serve(
        scenario,
        &mut network,
        &arena,
        connections,
        up::Service::Application(None),
    );
    up::switch_on(scenario, &mut network, &arena);
    let joined = chain::join(
        &mut network.world,
        nodes,
        scenario.join_max(),
        mesh.join_advice,
        &interrupt,
    );
    if interrupt.has_come() {
        return Ok(());
    }
    joined?;
    let mut live = Live::over(port, network.world.now());
    let place = socket.as_ref().map(|socket| socket.path().display());
    say(&format!(
        "{} for {} motes below {} by {tun}{}",
        fairness.policy.name(),
        nodes - 1,
        shown(&prefixes),
        place.map_or(String::new(), |path| format!(", status at {path}")),
    ));
    let mut faults = Faults::begin(scenario, &mut network);
    let (began, mut known) = (time::Instant::now(), keys);
    while !interrupt.has_come() {
        live.turn(&mut network.world, NAP, |_, _| {})?;
        faults.pass(&mut network, &arena);
        if hung_up.swap(false, Ordering::Relaxed)
            && let Some((path, known)) = args.key.as_deref().zip(known.as_mut())
        {
            say(&reread(path, known, &mut network, NOT_BY_COJP));
        }
        snapshot_server.answer(|| look(&mut network, tun, began.elapsed()));
    }
    network.world.end_fairness();
    // What was held leaves by the wire, which has a delay of its own.
    let end = network.world.now() + FAREWELL;
    while network.world.now() < end {
        live.turn(&mut network.world, NAP, |_, _| {})?;
    }
    Ok(())
}

/// The mesh of a scenario, with the key and the policy of the command line before its own.
fn mesh(scenario: &Path, args: &Args) -> Result<(Mesh, Config), Error> {
    let mut mesh = Mesh::of_scenario(scenario, None)?;
    if let Some(key) = &args.key {
        keys::give(&mut mesh.options, key)?;
    }
    mesh.make_room(args.connections);
    let fairness = match (args.shared.policy(), mesh.options.fairness) {
        (Some(policy), _) => Config::new(policy),
        (None, of_scenario) => of_scenario.unwrap_or_default(),
    };
    mesh.options.fairness = Some(fairness);
    let nodes = mesh.options.nodes.len();
    let security = mesh.options.security.as_ref();
    mesh.options.counter_store = state::counter_store(args.state.as_deref(), security, nodes)?;
    Ok((mesh, fairness))
}

/// The prefixes of motes where the mesh has `first`: that of motes over Bluetooth LE is the next.
fn prefixes(options: &NetworkOptions, first: Ipv6Addr) -> Result<Vec<Ipv6Addr>, Error> {
    let all = options.prefixes(first);
    let site = |prefix: &Ipv6Addr| prefix.to_bits() >> (128 - SITE_LEN);
    match all.iter().find(|other| site(other) != site(&first)) {
        None => Ok(all),
        Some(other) => Err(Error::input(format!(
            "--prefix is {first}/{PREFIX_LEN}, so that motes over Bluetooth LE would have the next \
             one, {other}/{PREFIX_LEN}, which is another site's: leave room behind it for one more"
        ))),
    }
}

/// Prefixes, as one says them.
fn shown(prefixes: &[Ipv6Addr]) -> String {
    let each = prefixes.iter().map(|it| format!("{it}/{PREFIX_LEN}"));
    each.collect::<Vec<_>>().join(" and ")
}

/// The door into the network that this process was started in, with a route to each prefix of
/// motes, of 64 bits.
pub(super) fn open(tun: &str, prefixes: &[Ipv6Addr]) -> Result<PacketPort, Error> {
    let routes: Vec<_> = prefixes.iter().map(|it| (*it, PREFIX_LEN)).collect();
    let config = PortConfig {
        name: tun,
        host: plan::HOST,
        host_prefix_len: 128,
        routes: &routes,
        link: Some(LinkKind::Tun),
        ..PortConfig::default()
    };
    PacketPort::open_shared(SharedNetwork::as_the_user_asks(), &config).map_err(|error| match error
    {
        PortError::BadConfig => Error::input(format!("{tun:?} is no name for an interface")),
        error => Error::failed(error.to_string()),
    })
}

/// The router now, with each mote's place in the mesh, those without traffic included.
fn look(network: &mut Network<'_>, tun: &str, uptime: time::Duration) -> Snapshot {
    let now = network.world.now();
    let status = match network.world.fairness_mut() {
        Some(fairness) => fairness.status(now),
        // Not so: `run` has set it.
        None => motet_taim::Router::new(Config::default()).status(now),
    };
    let motes = (1..network.mesh_nodes()).map(|mote| {
        let way = moves::way_up(network, mote);
        let first = way.as_ref().and_then(|way| way.first());
        let place = MeshPosition {
            name: Some(host_name(network.name(mote))),
            parent: first.map(|parent| network.addr(*parent)),
            hops: way.as_ref().map(Vec::len),
            ..MeshPosition::default()
        };
        (network.addr(mote), place)
    });
    let mut snapshot = Snapshot::of_mesh(&status, tun, uptime, &motes.collect());
    snapshot.counters.add_node(network.world.node(0));
    snapshot
}

/// Why motes cannot get another key.
const NOT_BY_COJP: &str = "motes that have it from the start must be given another one by hand (security.joining is \
                           not \"cojp\")";

/// How late a signal, or a question for the status, may be noticed.
const NAP: time::Duration = time::Duration::from_millis(20);

/// How long the air lives on behind a signal.
const FAREWELL: Duration = Duration::from_millis(100);

/// Meshes have prefixes of 64 bits.
const PREFIX_LEN: u8 = 64;

/// A site has a prefix of 48 bits (RFC 6177).
const SITE_LEN: u32 = 48;
