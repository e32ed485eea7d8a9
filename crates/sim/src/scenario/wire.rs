//! `[wire]`: the link between the border router and the host, and the host's TCP.

use motet::tcp::{Config, CongestionAlgorithm};
use serde::Deserialize;

use super::keys::Kind::{Choice, Flag, Integer, Number};
use super::keys::{Section, key};
use super::stack_keys::CONGESTIONS;

/// The keys of `[wire]`.
pub(super) const SECTION: Section = Section {
    name: "wire",
    repeated: false,
    doc: "The link between the border router and the host, and the host's TCP: Linux's, as far as these keys do not say otherwise (`cargo xtask interop kernel` compares it with the kernel). Beside the keys it has SACK, RFC 7323's timestamps, ECN and a least retransmission timeout of 200 ms.",
    keys: &[
        key(
            "delay_ms",
            Number(0.0, 60_000.0),
            Some("20.0"),
            "One way, milliseconds.",
        ),
        key(
            "loss",
            Number(0.0, 1.0),
            Some("0.0"),
            "Chance that a packet is lost at the border router, either way.",
        )
        .flag(
            "packet-loss",
            "P",
            "Lose each packet with this probability, 0 to 1, beyond the border router",
        )
        .showing("0"),
        key(
            "host_ack_delay_ms",
            Integer(0, 500),
            None,
            "Longest wait of the host's ACK for company, milliseconds. Left out beside `host_ack_every`: 40.",
        ),
        key(
            "host_ack_every",
            Integer(1, 255),
            None,
            "The host acknowledges every n-th full segment at once. Left out beside `host_ack_delay_ms`: 2. Without both the host acknowledges as Linux does: the first 16 segments, and each that has PSH or is the second full one, at once; others after 40 to 200 ms, by the time between segments and the round trip; and its TCP packets have flow labels.",
        ),
        key(
            "initial_window",
            Integer(0, 10),
            Some("10"),
            "Initial congestion window of the host, segments: Linux has RFC 6928's ten; 0: RFC 5681's 2 to 4 by segment size.",
        ),
        key(
            "rack",
            Flag,
            Some("true"),
            "Whether the host finds losses by times of transmission (RFC 8985), where the mote sends SACK.",
        ),
        key(
            "congestion",
            Choice(&CONGESTIONS),
            Some("\"cubic\""),
            "The host's congestion control, as `stack.congestion`; CUBIC is Linux's default.",
        ),
    ],
};

/// The keys of `[wire]`.
#[derive(Clone, PartialEq, Debug, Deserialize)]
pub struct WireSettings {
    /// Delay of a packet each way, ms.
    pub delay_ms: f64,
    /// The probability that a packet is lost on the wire, 0 to 1.
    pub loss: f64,
    /// The host's longest wait before an ACK, ms; `None`: Linux's, or 40 beside `host_ack_every`.
    pub host_ack_delay_ms: Option<u16>,
    /// Every n-th segment is acknowledged at once by the host; `None`: as Linux does, or every
    /// second beside `host_ack_delay_ms`.
    pub host_ack_every: Option<u8>,
    /// The host's initial window, segments; 0: the RFC's.
    pub initial_window: u8,
    /// Whether the host uses RACK (RFC 8985).
    pub rack: bool,
    /// The host's congestion control: "reno" or "cubic".
    pub congestion: String,
}

impl WireSettings {
    /// Gives the host's settings to its TCP.
    pub fn apply(&self, config: &mut Config) {
        config.linux_acks = self.is_linux();
        config.ack_delay_ms = self.host_ack_delay_ms.unwrap_or(LINUX_ACK_DELAY_MS);
        config.ack_every = self.ack_every();
        config.initial_window = self.initial_window;
        config.rack = self.rack;
        if let Some(algorithm) = CongestionAlgorithm::named(&self.congestion) {
            config.congestion_algorithm = algorithm;
        }
    }

    /// Whether the host acknowledges, and labels its flows, as Linux does.
    pub(super) fn is_linux(&self) -> bool {
        self.host_ack_delay_ms.is_none() && self.host_ack_every.is_none()
    }

    /// Full segments for each ACK of the host, at most.
    pub fn ack_every(&self) -> u8 {
        self.host_ack_every.unwrap_or(LINUX_ACK_EVERY)
    }
}

/// The shortest wait of Linux's ACKs, ms.
const LINUX_ACK_DELAY_MS: u16 = 40;

/// Linux acknowledges each second full segment at once, as RFC 9293 §3.8.6.3 asks.
const LINUX_ACK_EVERY: u8 = 2;
