//! Nodes that sleep, and their parents: their settings from `[stack]` and `[[node]]`.
//!
//! Left out: flows; a sleeping mote may have any flow.

use motet::link::IndirectConfig;
use motet::mac::{Policy, Sleep};
use motet::time::Duration;
use toml::Table;

use super::defaults::repeated;
use super::error::{Rule, ScenarioError};
use super::model::{StackSettings, seconds};
use crate::net::network::NetworkOptions;
use crate::net::topology::Tree;

/// Applies the settings of sleep: the selected nodes sleep, and their parents keep packets for
/// them.
///
/// # Errors
/// A setting makes a node sleep that cannot, or a key contradicts another.
pub(super) fn apply(
    network: &mut NetworkOptions,
    tree: &Tree,
    stacks: &[StackSettings],
    table: &Table,
) -> Result<(), ScenarioError> {
    let told = told_to_sleep(table);
    for (n, stack) in stacks.iter().enumerate() {
        // A peripheral sleeps by its connection.
        if network.nodes[n].is_ble {
            continue;
        }
        let is_end = n > 0 && tree.children(n) == 0;
        if let Some((_, number)) = told.iter().find(|(id, _)| *id == n)
            && !is_end
        {
            let who = match n {
                0 => "the border router, which is always on".to_owned(),
                _ => format!("node {n}, through which packets of others pass"),
            };
            return Err(ScenarioError::new(format!(
                "node.sleep is \"{}\", but must be \"off\" at {who}",
                stack.sleep
            ))
            .of_node(*number, Some(n)));
        }
        if let Some(policy) = policy(stack).filter(|_| is_end) {
            check(stack, tree.parent(n).and_then(|parent| stacks.get(parent)))?;
            let parent = tree.parent(n).and_then(|parent| network.nodes.get(parent));
            let radio = parent.map(|parent| parent.profile.capabilities);
            if radio.is_some_and(|radio| !radio.says_pending()) {
                return Err(ScenarioError::new(format!(
                    "stack.sleep, or node.sleep, is \"{}\" for node {n}, but must be \"off\" where the \
                     parent's radio cannot say that something waits (telosb)",
                    stack.sleep
                ))
                .by(Rule::NoPending));
            }
            network.nodes[n].sleep = Some(Sleep {
                drained: stack.drain,
                rides: stack.data_asks,
                answer_timeout: Duration::from_millis(stack.poll_timeout_ms),
                ..Sleep::new(policy)
            });
        }
        network.nodes[n].indirect_len = stack.indirect_bytes;
        network.nodes[n].indirect = IndirectConfig {
            child_timeout: seconds(stack.child_timeout_s),
            child_bytes_max: stack.child_bytes.unwrap_or(usize::MAX),
            drain: stack.drain,
            priority: stack.indirect_priority,
            retries: stack.indirect_retries,
            data_asks: stack.data_asks,
        };
    }
    Ok(())
}

/// The nodes with `sleep` in a `[[node]]` table, and the number of that table.
fn told_to_sleep(table: &Table) -> Vec<(usize, usize)> {
    let tables = repeated(table, "node").into_iter().zip(1..);
    let told = tables.filter_map(|(node, number)| {
        let id = usize::try_from(node.get("id")?.as_integer()?).ok()?;
        let is_told = node.get("sleep")?.as_str()? != "off";
        is_told.then_some((id, number))
    });
    told.collect()
}

fn policy(stack: &StackSettings) -> Option<Policy> {
    match stack.sleep.as_str() {
        "fixed" => Some(Policy::Fixed(seconds(stack.sleep_interval_s))),
        "paper" => Some(Policy::Paper),
        "adaptive" => Some(Policy::Adaptive),
        "hinted" => Some(Policy::Hinted(seconds(stack.sleep_idle_s))),
        _ => None,
    }
}

/// Checks the settings that a mote which sleeps and its parent must agree on.
fn check(stack: &StackSettings, parent: Option<&StackSettings>) -> Result<(), ScenarioError> {
    let Some(parent) = parent else {
        return Ok(());
    };
    if stack.sleep == "fixed" && stack.sleep_interval_s >= parent.child_timeout_s {
        return Err(ScenarioError::new(format!(
            "sleep_interval_s is {}, but must be less than child_timeout_s, which is {}: its parent \
             forgets a mote that is silent for so long",
            stack.sleep_interval_s, parent.child_timeout_s
        )));
    }
    if stack.sleep == "hinted" && stack.sleep_idle_s >= parent.child_timeout_s {
        return Err(ScenarioError::new(format!(
            "sleep_idle_s is {}, but must be less than child_timeout_s, which is {}: its parent forgets \
             a mote that is silent for so long",
            stack.sleep_idle_s, parent.child_timeout_s
        )));
    }
    let rest_s = motet::mac::poll::REST.as_millis() as f64 / 1e3;
    if stack.sleep == "paper" && rest_s >= parent.child_timeout_s {
        return Err(ScenarioError::new(format!(
            "child_timeout_s is {}, but must be more than {rest_s}, the interval at which a mote with \
             sleep \"{}\" asks at rest",
            parent.child_timeout_s, stack.sleep
        )));
    }
    if stack.drain != parent.drain {
        return Err(ScenarioError::new(format!(
            "drain is {} at a mote that sleeps, but must be {}, as at its parent",
            stack.drain, parent.drain
        )));
    }
    if let Some(bytes) = parent.child_bytes
        && bytes > parent.indirect_bytes
    {
        return Err(ScenarioError::new(format!(
            "child_bytes is {bytes}, but must be at most indirect_bytes, which is {}",
            parent.indirect_bytes
        )));
    }
    Ok(())
}
