//! From a checked file to one point of its sweep, with the checks that involve several keys.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Table, Value};

use super::attacker;
use super::battery::battery;
use super::bluetooth;
use super::defaults::{fill, filled, into, repeated, section, set};
use super::document::Document;
use super::error::{Rule, ScenarioError};
use super::fault::faults;
use super::hosts;
use super::interference::interference;
use super::keys::{self, Section};
use super::layout::Layout;
use super::model::{
    FaultSettings, FlowEnd, FlowKind, FlowSettings, PathLoss, PushSettings, RadioSettings,
    Scenario, Schedule, StackSettings, Timing, Transport, seconds,
};
use super::pace;
use super::pushes;
use super::readings;
use super::router::{self, RouterSettings};
use super::security;
use super::sleep;
use super::sources::ScenarioFiles;
use super::testbed::LeftOut;
use super::thread;
use super::wire::WireSettings;
use crate::air::gains::Gains;
use crate::net::network::{
    HostOptions, Joining, NODES_MAX, NetworkOptions, NodeOptions, Parent, Tables,
};
use crate::net::topology::Tree;
use crate::ordered;
use motet::link::MeshConfig;
use motet::mac::{self, Unfit};

impl Scenario {
    /// One point: the document with the values of the sweep at that point.
    pub(super) fn resolve(
        document: &Document,
        point: &[(String, Value)],
    ) -> Result<Self, ScenarioError> {
        let mut table = document.table.clone();
        for (path, value) in point {
            set(&mut table, path, value);
        }
        let timing: Timing = section(&table, "")?;
        check_timing(&timing)?;
        let radio: RadioSettings = section(&table, "radio")?;
        let wire: WireSettings = section(&table, "wire")?;
        let keys: TopologyKeys = section(&table, "topology")?;
        let (parents, joining) = (keys.parents.clone(), keys.joining.clone());
        let switched_on_within = seconds(keys.switch_on_s);
        let files = document.files();
        let layout = layout(&table, keys, files, &radio, timing.seed)?;
        let nodes = layout.gains.nodes();
        if nodes < 2 {
            return Err(ScenarioError::new(format!(
                "[topology] has {nodes} nodes, but must have at least the border router and a mote"
            )));
        }
        let stacks = stacks(&table, nodes)?;
        let profiles = profiles(&table);
        let left_out = LeftOut::of(&layout, &parents, &radio, &profiles)?;
        let flows = flows(&table, (nodes, left_out.last(nodes)), document.is_made)?;
        hosts::check(&flows, nodes)?;
        pushes::check_all(&flows)?;
        check_starts(&flows, &timing)?;
        let faults = faults(&table, nodes, &timing)?;
        left_out.check(&flows, &faults)?;
        let parents = Some(parents).filter(|parents| !parents.is_empty());
        let parents = parents.unwrap_or(layout.parents);
        let traffic = (&flows[..], &faults[..]);
        let mut network = bluetooth::network(&table, &radio, layout.gains, |gains| {
            network(gains, &stacks, traffic, &parents, &radio, &profiles)
        })?;
        let router = section::<RouterSettings>(&table, "router")?;
        router::lay_line(&router, &radio, &mut network.nodes)?;
        let is_ble = radio.kind == bluetooth::BLE;
        // By default packets are looked at where the air is a mesh's.
        let is_auto = !is_ble && joining != "thread";
        let mut network = NetworkOptions {
            left_out: left_out.nodes,
            later: layout.later,
            interference: interference(&table, files, nodes)?,
            hosts: hosts::hosts(&wire, &flows, &faults),
            packet_loss: wire.loss,
            inner_loss: router.loss,
            fairness: router::fairness(&router, router::is_named(&table) || is_auto)?,
            queues_flows: router.flow_queues,
            thins_acks: router::thins_acks(&router, &stacks, is_ble),
            joining: joining_named(&joining),
            ..network
        };
        check_radios(&network)?;
        let tree = tree(&network)?;
        apply_to_nodes(&mut network, &tree, &stacks, &table)?;
        add_parts(&mut network, &tree, &table, document)?;
        Ok(Self {
            timing,
            network,
            tree,
            positions: layout.positions,
            left_out: left_out.measured,
            switched_on_within,
            stacks,
            wire,
            flows,
            faults,
            battery: battery(&table)?,
        })
    }
}

/// Adds keys, Thread's router and attackers; and the room that a program's document needs.
fn add_parts(
    network: &mut NetworkOptions,
    tree: &Tree,
    table: &Table,
    document: &Document,
) -> Result<(), ScenarioError> {
    let files = document.files();
    security::apply(network, table, files)?;
    thread::apply(network, tree, table)?;
    attacker::apply(network, table, files)?;
    if document.is_made {
        make_room(network);
    }
    Ok(())
}

fn joining_named(name: &str) -> Joining {
    match name {
        "rpl" => Joining::Rpl,
        "static" => Joining::Static,
        "thread" => Joining::Thread,
        _ => Joining::Advertised,
    }
}

/// The parent of each node.
fn tree(network: &NetworkOptions) -> Result<Tree, ScenarioError> {
    let tree = network.tree();
    tree.map_err(|error| ScenarioError::new(format!("[topology] cannot work: {error}")))
}

/// # Errors
/// Settings that a node's radio cannot do: one that makes attempts by itself cannot do all.
fn check_radios(network: &NetworkOptions) -> Result<(), ScenarioError> {
    for (n, node) in network.nodes.iter().enumerate() {
        let mesh = MeshConfig {
            forwarding: node.forwarding,
            ..MeshConfig::default()
        };
        let Err(unfit) = mesh.check(&node.mac, &node.profile.capabilities) else {
            continue;
        };
        let (key, must) = match unfit {
            Unfit::Immediate => ("stack.forwarding is \"cit\"", "\"copy\""),
            Unfit::DeafBackoff => ("stack.deaf_backoff is true", "false"),
            _ => ("radio.profile", "another one"),
        };
        return Err(ScenarioError::new(format!(
            "{key}, but must be {must} at node {n}: {} (rcp)",
            unfit.reason()
        ))
        .by(Rule::OwnAttempts));
    }
    Ok(())
}

/// Gives nodes the usual room for TCP, since the number of connections is not known.
fn make_room(network: &mut NetworkOptions) {
    for node in &mut network.nodes {
        node.tables = Tables {
            connections: Tables::RELAY.connections,
            listeners: Tables::RELAY.listeners,
            half_open: Tables::RELAY.half_open,
            compressed: Tables::RELAY.compressed,
            ..node.tables
        };
    }
    network.hosts.truncate(1);
    for host in &mut network.hosts {
        *host = HostOptions {
            delay: host.delay,
            labels: host.labels,
            ..HostOptions::new("host")
        };
    }
}

/// Measures something, and samples it neither never nor for ever.
fn check_timing(timing: &Timing) -> Result<(), ScenarioError> {
    if timing.warmup_s >= timing.duration_s {
        return Err(ScenarioError::new(format!(
            "warmup_s is {}, but must be less than duration_s, which is {}",
            timing.warmup_s, timing.duration_s
        )));
    }
    if timing.sample_s > 0.0 && timing.sample_s < SAMPLE_S_MIN {
        return Err(ScenarioError::new(format!(
            "sample_s is {}, but must be 0 or at least {SAMPLE_S_MIN}",
            timing.sample_s
        )));
    }
    Ok(())
}

/// Every flow begins before the end.
fn check_starts(flows: &[FlowSettings], timing: &Timing) -> Result<(), ScenarioError> {
    let late = |flow: &&FlowSettings| flow.start_s >= timing.duration_s;
    match flows.iter().zip(1..).find(|(flow, _)| late(flow)) {
        None => Ok(()),
        Some((late, number)) => Err(ScenarioError::new(format!(
            "flow.start_s is {}, but must be less than duration_s, which is {}",
            late.start_s, timing.duration_s
        ))
        .of_table("flow", number)),
    }
}

fn layout(
    table: &Table,
    keys: TopologyKeys,
    files: ScenarioFiles<'_>,
    radio: &RadioSettings,
    seed: u64,
) -> Result<Layout, ScenarioError> {
    // A negative one: the scenario's.
    let seed = u64::try_from(keys.seed).unwrap_or(seed);
    let ways = [
        keys.chain.is_some(),
        keys.positions.is_some(),
        keys.floor.is_some(),
        keys.links.is_some(),
        keys.matrix.is_some(),
        keys.k7.is_some(),
        keys.peripherals.is_some(),
    ];
    match ways.into_iter().filter(|is_given| *is_given).count() {
        0 => {
            return Err(ScenarioError::new(format!(
                "[topology] has no nodes, but must have one of {WAYS}"
            )));
        }
        1 => {}
        _ => {
            return Err(ScenarioError::new(format!(
                "[topology] has several of {WAYS}, but must have exactly one"
            )));
        }
    }
    if let Some(hops) = keys.chain {
        return Ok(Layout::chain(hops, keys.hidden));
    }
    if let Some(motes) = keys.peripherals {
        return Ok(Layout::star(motes));
    }
    if let Some(positions) = keys.positions {
        if positions.len() > NODES_MAX {
            return Err(ScenarioError::new(format!(
                "topology.positions has {} nodes, but must have at most {NODES_MAX}",
                positions.len()
            )));
        }
        return Ok(Layout::positions(
            positions,
            section(table, "path_loss")?,
            seed,
        ));
    }
    if let Some(motes) = keys.floor {
        let loss: PathLoss = section(table, "path_loss")?;
        return Layout::floor((motes, keys.floor_hops), loss, &radio.profile(), seed);
    }
    if let Some(links) = keys.links {
        return Layout::links(&links);
    }
    if let Some(file) = keys.matrix {
        return Layout::matrix(&files.read("topology.matrix", &file)?);
    }
    // The last of the ways.
    let file = files.read("topology.k7", &keys.k7.unwrap_or_default())?;
    let hour = Some(keys.k7_hour).filter(|hour| *hour >= 0.0);
    let place = (radio.channel, keys.root);
    Layout::k7(&file, place, hour, radio.profile().noise_dbm())
}

/// Applies the tables of nodes to everything beyond their stacks.
fn apply_to_nodes(
    network: &mut NetworkOptions,
    tree: &Tree,
    stacks: &[StackSettings],
    table: &Table,
) -> Result<(), ScenarioError> {
    sleep::apply(network, tree, stacks, table)?;
    bluetooth::apply_to_nodes(network, &repeated(table, "node"))
}

fn network(
    gains: Gains,
    stacks: &[StackSettings],
    (flows, faults): (&[FlowSettings], &[FaultSettings]),
    parents: &[usize],
    radio: &RadioSettings,
    profiles: &BTreeMap<usize, String>,
) -> Result<NetworkOptions, ScenarioError> {
    let motes = gains.nodes() - 1;
    if !parents.is_empty() && parents.len() != motes {
        return Err(ScenarioError::new(format!(
            "topology.parents has {} numbers, but must have {motes}, one for each mote",
            parents.len()
        )));
    }
    let over_tcp = || flows.iter().filter(|flow| flow.is_tcp());
    let nodes = stacks.iter().enumerate().map(|(n, stack)| {
        let mut node = NodeOptions::new(n.to_string());
        if n == 0 {
            node.tables = Tables::border_router(motes);
        }
        let profile = profiles.get(&n).unwrap_or(&radio.profile);
        let parent = n.checked_sub(1).and_then(|mote| parents.get(mote));
        node.parent = parent.map_or(Parent::Shortest, |parent| Parent::Node(*parent));
        node.profile = radio.profile_of(profile);
        node.channel = radio.channel;
        stack.apply_to_node(&mut node);
        if radio.channels == "multi" {
            node.mac.channels = mac::Channels::ALL;
        }
        let ends = over_tcp().flat_map(|flow| [flow.from, flow.to]);
        let sockets = ends.filter(|end| *end == FlowEnd::Node(n)).count().max(1);
        let here = over_tcp().filter(|flow| flow.to == FlowEnd::Node(n));
        let spare: usize = here.map(|flow| flow.places_received(faults) - 1).sum();
        // What enters by the border router takes its places there, one each way.
        let pushes = over_tcp().filter(|flow| flow.push.is_some()).count();
        node.tables = Tables {
            connections: sockets + spare,
            listeners: sockets,
            half_open: sockets + spare,
            // The border router compresses for the host.
            compressed: if n == 0 {
                over_tcp().count() + pushes
            } else {
                0
            },
            ..node.tables
        };
        node
    });
    let nodes = nodes.collect();
    Ok(NetworkOptions {
        frame_loss: radio.frame_loss,
        ..NetworkOptions::new(nodes, gains)
    })
}

#[derive(Deserialize)]
struct FlowKeys {
    kind: FlowKind,
    from: Value,
    to: Value,
    bytes: u64,
    interval_s: f64,
    message_bytes: usize,
    answer_bytes: usize,
    queue: usize,
    batch: usize,
    start_s: f64,
    motes: Vec<i64>,
    schedule: Schedule,
    transport: Transport,
    block_bytes: usize,
    mss_frames: u8,
}

#[derive(Deserialize)]
struct TopologyKeys {
    chain: Option<u16>,
    peripherals: Option<usize>,
    hidden: bool,
    positions: Option<Vec<[f64; 2]>>,
    links: Option<Vec<(usize, usize, f64)>>,
    matrix: Option<String>,
    k7: Option<String>,
    k7_hour: f64,
    root: usize,
    parents: Vec<usize>,
    joining: String,
    floor: Option<usize>,
    floor_hops: usize,
    seed: i64,
    switch_on_s: f64,
}

fn stacks(table: &Table, nodes: usize) -> Result<Vec<StackSettings>, ScenarioError> {
    let base = filled(table, "stack")?;
    let empty = Table::new();
    let given = table
        .get("stack")
        .and_then(Value::as_table)
        .unwrap_or(&empty);
    let mut changes: BTreeMap<usize, (usize, Table)> = BTreeMap::new();
    for (mut change, number) in repeated(table, "node").into_iter().zip(1..) {
        let wrong = |sentence: String| Err(ScenarioError::new(sentence).of_node(number, None));
        let id = change.remove("id").and_then(|id| id.as_integer());
        let Some(id) = id.and_then(|id| usize::try_from(id).ok()) else {
            return wrong("there is no node.id, but it must say which node this is".to_owned());
        };
        if id >= nodes {
            return wrong(format!(
                "node.id is {id}, but must be the number of a node, 0 to {}",
                nodes - 1
            ));
        }
        if changes.insert(id, (number, change)).is_some() {
            return wrong(format!(
                "node.id is {id}, as in another [[node]], but one must do"
            ));
        }
    }
    let mut common: Option<StackSettings> = None;
    let stack_of = |id| {
        let Some((number, change)) = changes.remove(&id) else {
            // Read once for all nodes that have no table of their own.
            return match &common {
                Some(common) => Ok(common.clone()),
                None => checked(base.clone(), given, &Table::new())
                    .inspect(|stack| common = Some(stack.clone())),
            };
        };
        let (mut stack, mut given) = (base.clone(), given.clone());
        stack.extend(change.clone());
        given.extend(change.clone());
        checked(stack, &given, &change).map_err(|error| error.of_node(number, Some(id)))
    };
    let stacks = (0..nodes).map(stack_of).collect::<Result<Vec<_>, _>>()?;
    let is_compressed = stacks.iter().any(|stack| stack.compression == "tcphc");
    let oldest = stacks.iter().map(|stack| stack.frame_age_ms).max();
    match oldest {
        Some(age) if is_compressed && age > AGE_MAX_MS => Err(ScenarioError::new(format!(
            "frame_age_ms is {age}, but must be at most {AGE_MAX_MS} where compression is \
             \"tcphc\": what it leaves out rests on the age of frames"
        ))),
        _ => Ok(stacks),
    }
}

/// The settings in a table of `[stack]`'s keys: a retry must not be delayed beyond the frame's
/// lifetime. `stack`: with defaults; `given`: without; `change`: the keys in a `[[node]]`. An error
/// about a default names the `[[node]]` if there is one.
fn checked(stack: Table, given: &Table, change: &Table) -> Result<StackSettings, ScenarioError> {
    let mut settings: StackSettings = into("stack", stack)?;
    let is_of_node = |key: &str| change.contains_key(key) || !given.contains_key(key);
    let name = |key: &str| match !change.is_empty() && is_of_node(key) {
        true => "node",
        false => "stack",
    };
    if pace::is_measured(given, name)? {
        settings.retry_delay_ms = settings.retry_delay_ms.min(settings.frame_age_ms);
    } else {
        settings.pace_percent = 0;
    }
    let (delay, age) = (settings.retry_delay_ms, settings.frame_age_ms);
    if delay > age {
        return Err(ScenarioError::new(format!(
            "{}.retry_delay_ms is {delay}, but must be at most {}.frame_age_ms, which is \
             {age}: the MAC drops a frame that has been with it for longer",
            name("retry_delay_ms"),
            name("frame_age_ms")
        )));
    }
    Ok(settings)
}

/// Radios that differ from `[radio]`'s, by node.
fn profiles(table: &Table) -> BTreeMap<usize, String> {
    let own = |node: &Table| {
        let id = node.get("id")?.as_integer()?;
        let profile = node.get("profile")?.as_str()?;
        Some((usize::try_from(id).ok()?, profile.to_owned()))
    };
    ordered::map(repeated(table, "node").iter().filter_map(own))
}

/// `last`: the node that -1 means. `may_be_none`: a document of a program may have no flow, because
/// the program itself sends.
fn flows(
    table: &Table,
    (nodes, last): (usize, usize),
    may_be_none: bool,
) -> Result<Vec<FlowSettings>, ScenarioError> {
    let Some(section) = Section::named("flow") else {
        return Ok(Vec::new());
    };
    let flows = repeated(table, "flow");
    if flows.is_empty() && !may_be_none {
        return Err(ScenarioError::new(
            "there is no [[flow]], but at least one is needed",
        ));
    }
    let motes: Vec<usize> = (1..nodes).collect();
    let mut all = Vec::new();
    for (mut flow, number) in flows.into_iter().zip(1..) {
        readings::fill(&mut flow);
        pushes::fill(&mut flow);
        let keys: FlowKeys = into("flow", fill(section, flow))?;
        let spread = flow_of(&keys, (nodes, last))
            .and_then(|flow| pushes::spread(flow, &keys.motes, &motes, all.len()))
            .map_err(|error: ScenarioError| error.of_table("flow", number))?;
        all.extend(spread);
    }
    Ok(all)
}

fn flow_of(keys: &FlowKeys, (nodes, last): (usize, usize)) -> Result<FlowSettings, ScenarioError> {
    let end = |name: &str, value: &Value| match value.as_integer() {
        // A key's kind has refused all other texts.
        None => Ok(FlowEnd::Host),
        Some(keys::LAST) => Ok(FlowEnd::Node(last)),
        Some(node) => usize::try_from(node)
            .ok()
            .filter(|node| (1..nodes).contains(node))
            .map(FlowEnd::Node)
            .ok_or_else(|| {
                ScenarioError::new(format!(
                    "flow.{name} is {node}, but must be \"host\" or the number of a mote, 1 to {}",
                    nodes - 1
                ))
            }),
    };
    let (from, to) = (end("from", &keys.from)?, end("to", &keys.to)?);
    if from == to {
        return Err(ScenarioError::new(format!(
            "flow.from and flow.to are both {from}, but must differ"
        )));
    }
    if keys.kind == FlowKind::Udp && keys.message_bytes > DATAGRAM_LEN_MAX {
        return Err(ScenarioError::new(format!(
            "flow.message_bytes is {}, but must be at most {DATAGRAM_LEN_MAX} with flow.kind \"udp\"",
            keys.message_bytes
        )));
    }
    let flow = FlowSettings {
        kind: keys.kind,
        from,
        to,
        bytes: keys.bytes,
        interval_s: keys.interval_s,
        message_bytes: keys.message_bytes,
        answer_bytes: keys.answer_bytes,
        queue: keys.queue,
        batch: keys.batch,
        start_s: keys.start_s,
        push: (keys.kind == FlowKind::Push).then_some(PushSettings {
            first: 0,
            motes: 0,
            schedule: keys.schedule,
            transport: keys.transport,
            block_bytes: keys.block_bytes,
            mss_frames: keys.mss_frames,
        }),
    };
    readings::check(&flow)?;
    Ok(flow)
}

/// The ways to say where nodes are.
const WAYS: &str = "chain, positions, floor, links, matrix, k7 and peripherals";

/// More samples than a plot has pixels, ten times over, in a run of a minute.
const SAMPLE_S_MIN: f64 = 0.01;

/// How old frames may be where TCP headers are compressed (`docs/reference/tcphc.md`), ms.
const AGE_MAX_MS: u64 = mac::config::FRAME_AGE_MAX.as_millis();

/// Payload of a datagram that fits the least MTU of IPv6 with every header.
const DATAGRAM_LEN_MAX: usize = 1_024;
