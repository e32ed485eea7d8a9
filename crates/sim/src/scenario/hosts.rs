//! The stacks of a host, and the ports of each flow.
//!
//! Purpose: a flow has ports of its own, and one stack listens on few of them. A host with more
//! flows has several stacks behind one address; the wire selects the stack by the port.

use motet::limits::TCP_LISTENERS_MAX;
use motet::time::Duration;

use super::error::ScenarioError;
use super::model::{FaultSettings, FlowEnd, FlowKind, FlowSettings};
use super::wire::WireSettings;
use crate::net::network::{HostOptions, Part};

/// The host of a scenario, in as many stacks as its flows need.
pub(super) fn hosts(
    wire: &WireSettings,
    flows: &[FlowSettings],
    faults: &[FaultSettings],
) -> Vec<HostOptions> {
    let mut stacks: Vec<Vec<usize>> = vec![Vec::new()];
    for (flow, stack) in (0..).zip(stack_numbers(flows)) {
        stacks.resize(stacks.len().max(stack + 1), Vec::new());
        if is_hosts(&flows[flow]) {
            stacks[stack].push(flow);
        }
    }
    let of_stack = |(number, own): (usize, Vec<usize>)| {
        let ends = own.first().zip(own.last());
        let part = ends.filter(|_| number > 0).map(|(first, last)| Part {
            host: 0,
            ports: [port(FlowKind::Bulk, *last), port(FlowKind::Bulk, *first)],
        });
        let sockets = own.len().max(1);
        let received = own.iter().map(|flow| &flows[*flow]);
        let received = received.filter(|flow| flow.to == FlowEnd::Host);
        let spare: usize = received.map(|flow| flow.places_received(faults) - 1).sum();
        // Pushes are the first stack's: one connection to write, and one to look.
        let is_push = |flow: &&FlowSettings| flow.push.is_some() && flow.is_tcp();
        let pushes = flows.iter().filter(is_push).filter(|_| number == 0);
        let spare = spare + 2 * pushes.count();
        HostOptions {
            delay: Duration::from_micros((wire.delay_ms * 1e3) as u64),
            connections: sockets + spare,
            listeners: sockets,
            half_open: sockets + spare,
            part,
            labels: wire.is_linux(),
            ..HostOptions::new("host")
        }
    };
    stacks.into_iter().enumerate().map(of_stack).collect()
}

/// For each flow the number of the host's stack that serves it, if the host does.
pub(super) fn stack_numbers(flows: &[FlowSettings]) -> impl Iterator<Item = usize> {
    let mut served = 0;
    flows.iter().map(move |flow| {
        if !is_hosts(flow) {
            return 0;
        }
        served += 1;
        (served - 1) / TCP_LISTENERS_MAX
    })
}

/// The port on which flow `number` is received.
pub(super) fn port(kind: FlowKind, number: usize) -> u16 {
    // Lossless: `check` has refused more flows.
    let number = number as u16;
    match kind {
        FlowKind::Udp => UDP_PORT
            .checked_add(number)
            .unwrap_or_else(|| LOW_PORT + (number - (u16::MAX - UDP_PORT) - 1)),
        FlowKind::Bulk
        | FlowKind::Periodic
        | FlowKind::Request
        | FlowKind::Readings
        | FlowKind::Push => TCP_PORT - number,
    }
}

/// Refuses more flows than there are ports, and more than a mote's TCP has room for.
pub(super) fn check(flows: &[FlowSettings], nodes: usize) -> Result<(), ScenarioError> {
    if flows.len() > FLOWS_MAX {
        return Err(ScenarioError::new(format!(
            "there are {} [[flow]] tables, but there may be at most {FLOWS_MAX}",
            flows.len()
        )));
    }
    let (mut ends, mut received) = (vec![0; nodes], vec![0; nodes]);
    for flow in flows.iter().filter(|flow| flow.is_tcp()) {
        for end in [flow.from, flow.to] {
            if let FlowEnd::Node(node) = end {
                ends[node] += 1;
            }
        }
        if let FlowEnd::Node(node) = flow.to {
            received[node] += 1;
        }
    }
    let too_many = |counts: &[usize], most: usize| {
        let node = counts.iter().position(|count| *count > most)?;
        Some((node, counts[node]))
    };
    if let Some((node, count)) = too_many(&received, TCP_LISTENERS_MAX) {
        return Err(ScenarioError::new(format!(
            "{count} flows over TCP go to node {node}, but the TCP of a mote listens on at most \
             {TCP_LISTENERS_MAX} ports, one for each"
        )));
    }
    if let Some((node, count)) = too_many(&ends, CONNECTIONS_MAX) {
        return Err(ScenarioError::new(format!(
            "node {node} is an end of {count} flows over TCP, but the TCP of a mote has at most \
             {CONNECTIONS_MAX} connections"
        )));
    }
    Ok(())
}

/// Whether one of the host's TCP stacks is an end of it, by a port of its own.
fn is_hosts(flow: &FlowSettings) -> bool {
    flow.is_tcp() && flow.push.is_none() && [flow.from, flow.to].contains(&FlowEnd::Host)
}

/// The ports of flows lie below the dynamic ports, 49,152 and up (RFC 6335 §6).
const FLOWS_MAX: usize = 40_000;

/// The capacity of `motet::tcp::Memory`.
const CONNECTIONS_MAX: usize = 255;

/// The port of the first flow; each further flow has the next lower one. No dissector of Wireshark
/// uses the ports from some 35,300 up to this one, so Wireshark shows the contents as data and not
/// as a malformed message of some protocol.
const TCP_PORT: u16 = 44_320;

/// The first UDP port. 6LoWPAN compresses the ports 0xf0b0 to 0xf0bf to four bits (RFC 6282
/// §4.3.1).
const UDP_PORT: u16 = 0xf0b2;

/// The first of the ports that are used after the highest one.
const LOW_PORT: u16 = 1_024;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flow_has_a_port_of_its_own() {
        for kind in [FlowKind::Udp, FlowKind::Bulk] {
            let ports = (0..FLOWS_MAX).map(|number| port(kind, number));
            let ports: std::collections::BTreeSet<u16> = ports.collect();
            assert_eq!(ports.len(), FLOWS_MAX);
            assert!(!ports.contains(&0));
        }
        assert!(port(FlowKind::Request, 0) < 0xc000);
        assert!(port(FlowKind::Request, FLOWS_MAX - 1) >= LOW_PORT);
    }
}
