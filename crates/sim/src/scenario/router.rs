//! `[router]`: what makes the border router fair.

use motet::time::Duration;
use motet_taim::{Admission, Config, Fq, Policy, Taim, Window};
use serde::Deserialize;
use toml::Table;

use super::error::ScenarioError;
use super::keys::Kind::{Choice, Flag, Integer, Number};
use super::keys::{Section, key};
use super::model::{RadioSettings, StackSettings};
use crate::air::line::Line;
use crate::air::profile::Profile;
use crate::net::network::NodeOptions;

/// The keys of `[router]`.
pub(super) const SECTION: Section = Section {
    name: "router",
    repeated: false,
    doc: "What makes the border router fair to the flows that pass it. By itself it gives each flow into the mesh a queue and a share of the air; a policy besides holds TCP's packets for a while. Neither alters a packet. A policy drops none, but for `relay`, which drops the duplicate ACKs that it has answered. The queues do when all of `packet_queue_bytes` is taken: the oldest packet of the longest queue, so that a host that sends without looking loses its own. What is not TCP shares four queues, and a quarter of the air while TCP is in use; so do connections that no mote has answered yet. `thin_acks` makes fewer of TCP's ACKs. `docs/reference/fairness.md` says which policy is for what.",
    keys: &[
        key(
            "policy",
            Choice(&Policy::NAMES),
            Some("\"auto\""),
            "Which packets it holds: none; by need (`auto`: none while few flows share the air, as `admission` where more than two send all they can; it is no default over Bluetooth LE alone or in a Thread network); those into the mesh, so that few flows are inside at a time (`admission`); all, one leaving after the other, those of the slowest flow first (`taim`, and `taim-literal` as the paper has it); all, flows in turn (`fq`); those into the mesh, so that each flow has two segments inside, of which lost ones are sent again from here (`relay`).",
        ),
        key(
            "flow_queues",
            Flag,
            Some("true"),
            "Whether each flow into the mesh has a queue and a share of the air; otherwise all share one queue.",
        ),
        key(
            "thin_acks",
            Flag,
            None,
            "Whether a newer ACK takes the place of one that waits for the mesh, while fragments keep coming from there: for up to 500 ms. Left out: where node 0 has `pacing` `auto`. Duplicates, SACK, ECN's echo, changes of the window alone, SYN, FIN and RST never wait. `motet run --json` has `acks_thinned`.",
        ).only_802_15_4(),
        key(
            "loss",
            Number(0.0, 1.0),
            Some("0.0"),
            "Chance that a packet is lost between the border router's policy and its mesh, either way, as if a link on its path had given it up: what `relay` sends again, while it sees nothing of `wire.loss`.",
        ),
        key(
            "w",
            Integer(0, 65_535),
            Some("0"),
            "`admission` only: how many flows are inside the mesh at a time; 0: as the size of their segments allows.",
        ),
        key(
            "spacing_ms",
            Number(0.1, 10_000.0),
            Some("35.0"),
            "`taim`, `taim-literal` and `fq` only: from one packet that leaves to the next, milliseconds; with `taim` where it begins.",
        ),
        key(
            "line_kbps",
            Number(57.6, 480_000.0),
            None,
            "Speed of the serial line between the border router and its radio, kb/s, with ten bits a byte: 115.2 to 1000 for a UART, 12000 for USB. The radio is then a co-processor (`rcp`), whatever `radio.profile` is: orders to send and what was heard queue on the line, in Spinel's form; link ACKs, backoffs and assessments are its own.",
        ).only_802_15_4(),
        key(
            "line_ms",
            Number(0.0, 20.0),
            Some("0.0"),
            "`line_kbps` only: what each message takes besides, milliseconds: interrupts, schedulers, USB's polls.",
        ).only_802_15_4(),
    ],
};

/// The keys of `[router]`.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub(super) struct RouterSettings {
    /// The name of a [`motet_taim::Policy`].
    pub(super) policy: String,
    /// Flows that admission lets inside at a time; 0: it finds out.
    pub(super) w: u16,
    /// Whether newer ACKs take the place of those that wait; left out: where the pace is measured.
    pub(super) thin_acks: Option<bool>,
    /// Whether flows into the mesh have queues of their own.
    pub(super) flow_queues: bool,
    /// Chance that a packet is lost between policy and mesh.
    pub(super) loss: f64,
    /// Time between two packets that leave, ms.
    pub(super) spacing_ms: f64,
    /// Speed of the line to the radio, kb/s; left out: none that takes time.
    pub(super) line_kbps: Option<f64>,
    /// What each message on the line takes besides, ms.
    pub(super) line_ms: f64,
}

/// Puts the border router's radio behind its line, where it has one.
///
/// # Errors
/// A delay of a line that there is not.
pub(super) fn lay_line(
    router: &RouterSettings,
    radio: &RadioSettings,
    nodes: &mut [NodeOptions],
) -> Result<(), ScenarioError> {
    let Some(kbps) = router.line_kbps else {
        return match router.line_ms > 0.0 {
            true => Err(ScenarioError::new(format!(
                "router.line_ms is {}, but must be left out without router.line_kbps",
                router.line_ms
            ))),
            false => Ok(()),
        };
    };
    let delay = Duration::from_micros((router.line_ms * 1e3) as u64);
    if let Some(root) = nodes.first_mut() {
        root.profile = Profile {
            // Lossless: at least 57,600.
            line: Some(Line::of((kbps * 1e3) as u64, delay)),
            ..radio.profile_of("rcp")
        };
    }
    Ok(())
}

/// Whether ACKs are thinned: as the file says, else where the border router measures its pace.
pub(super) fn thins_acks(router: &RouterSettings, stacks: &[StackSettings], is_ble: bool) -> bool {
    let is_paced = stacks.first().is_some_and(|stack| stack.pace_percent > 0);
    router.thin_acks.unwrap_or(is_paced && !is_ble)
}

/// Whether a scenario names a policy, be it "none".
pub(super) fn is_named(table: &Table) -> bool {
    let router = table.get("router");
    router.is_some_and(|router| router.get("policy").is_some())
}

/// The policy of `[router]`; unless one is named nothing looks at packets.
pub(super) fn fairness(
    router: &RouterSettings,
    is_named: bool,
) -> Result<Option<Config>, ScenarioError> {
    let spacing = Duration::from_micros((router.spacing_ms * 1e3) as u64);
    let has_default_spacing = router.spacing_ms == SPACING_MS;
    let policy = match router.policy.parse() {
        Ok(Policy::Admission(_)) => Policy::Admission(Admission {
            window: match router.w {
                0 => Window::Adaptive,
                window => Window::Fixed(window),
            },
        }),
        Ok(Policy::Taim(taim)) => Policy::Taim(Taim { spacing, ..taim }),
        Ok(Policy::Fq(_)) => Policy::Fq(Fq { spacing }),
        Ok(policy @ (Policy::Auto | Policy::None | Policy::Relay)) => policy,
        Err(error) => return Err(ScenarioError::new(format!("router.policy: {error}"))),
    };
    let is_paced = matches!(policy, Policy::Taim(_) | Policy::Fq(_));
    let refused = |key: &str, value: f64, policies: &str| {
        Err(ScenarioError::new(format!(
            "router.{key} is {value}, but must be left out: only {policies} has it, and \
             router.policy is \"{}\"",
            router.policy
        )))
    };
    if router.w > 0 && !matches!(policy, Policy::Admission(_)) {
        return refused("w", router.w.into(), "admission");
    }
    if !has_default_spacing && !is_paced {
        return refused("spacing_ms", router.spacing_ms, "taim, taim-literal or fq");
    }
    Ok(is_named.then(|| Config::new(policy)))
}

/// The default of `router.spacing_ms`, ms.
const SPACING_MS: f64 = 35.0;
