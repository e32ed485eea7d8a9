//! Documents that a program puts together: further checks beside those of a file, and defaults for
//! a chain that a command line describes.
//!
//! Purpose: a chain on a command line should work well, so its defaults depend on its other
//! settings. A file compares settings, so its defaults are independent of each other.

use motet::link::Forwarding;
use motet::mac::Channels;
use toml::{Table, Value};

use super::bluetooth::BLE;
use super::defaults::section;
use super::document::Document;
use super::error::{Rule, ScenarioError};
use super::model::RadioSettings;
use super::pace;
use crate::net::pacing::Pacing;

/// # Errors
/// `TCPlE` beside an interval: a file may sweep over the one and keep the other.
pub(super) fn check(document: &Document) -> Result<(), ScenarioError> {
    let has_tcple = document.get("radio.tcple").and_then(Value::as_bool) == Some(true);
    match document.get("radio.interval_ms") {
        Some(interval) if is_ble(document) && has_tcple => Err(ScenarioError::new(format!(
            "radio.interval_ms is {interval}, but must be left out where radio.tcple is true, which \
             sets the interval itself"
        ))
        .by(Rule::IntervalOfTcple)),
        _ => Ok(()),
    }
}

/// # Errors
/// Relays that must not copy, with a radio that cannot do without: the relays of a file copy then.
pub(super) fn check_buffers(document: &Document) -> Result<(), ScenarioError> {
    if is_immediate(document) && has_shared_buffer(document)? {
        return Err(ScenarioError::new(
            "stack.forwarding is \"cit\", but must be \"copy\" with a radio that has one buffer for \
             both directions (hamilton)",
        )
        .by(Rule::SharedBuffer));
    }
    Ok(())
}

impl Document {
    /// Fills in good settings, for a chain of motes or, over Bluetooth LE, for one mote, where the
    /// document has none.
    #[must_use]
    pub fn completed(mut self) -> Self {
        if is_ble(&self) {
            if self.hops().is_none_or(|hops| hops == 1) {
                self = self.without("topology.chain");
                self = self.or("topology.peripherals", 1);
            }
            if self.get("radio.interval_ms").is_some() {
                self = self.or("radio.adaptive", false);
            }
            return self.or("stack.window_segments", BLE_WINDOW_SEGMENTS);
        }
        let joining = self.get("topology.joining").and_then(Value::as_str);
        let hops = match joining {
            // A router's children are one hop away.
            Some("thread") => 1,
            _ => HOPS,
        };
        self = self.or("topology.chain", i64::from(hops));
        if !is_immediate(&self) {
            return self;
        }
        self = self.or("radio.profile", "telosb");
        match has_shared_buffer(&self) {
            Ok(false) => self.completed_immediate(),
            _ => self,
        }
    }

    /// With the times, buffers and rules of TCP that are best for copy-free forwarding.
    fn completed_immediate(mut self) -> Self {
        let hops = self.hops().unwrap_or(HOPS);
        let channels = match self.get("radio.channels").and_then(Value::as_str) {
            Some("multi") => Channels::ALL,
            _ => Channels::SINGLE,
        };
        let pacing = Pacing::best(hops, Forwarding::Immediate, channels);
        let stack = self.table.get("stack").and_then(Value::as_table);
        let stack = stack.unwrap_or(&Table::new()).clone();
        let is_by_hand = pace::is_measured(&stack, |_| "stack") == Ok(false);
        let [hold, retry_delay, window] = chain_keys(&pacing);
        if is_by_hand {
            self = self.or(hold.0, hold.1).or(retry_delay.0, retry_delay.1);
        }
        self = self.or(window.0, window.1);
        if !self.table.contains_key("flow") {
            return self;
        }
        let keys = tcp_keys(&pacing).into_iter();
        keys.fold(self, |document, (path, value)| document.or(path, value))
    }

    /// Sets all keys of the chain from these settings; settings of TCP at its ends are left out.
    #[must_use]
    pub fn paced(self, pacing: &Pacing) -> Self {
        let keys = chain_keys(pacing).into_iter();
        let document = keys.fold(self, |document, (path, value)| document.with(path, value));
        document.with("wire.host_ack_every", i64::from(pacing.ack_every))
    }

    /// Sets this key, unless the document has it.
    fn or(self, path: &str, value: impl Into<Value>) -> Self {
        match self.get(path) {
            Some(_) => self,
            None => self.with(path, value),
        }
    }

    /// The hops of a chain.
    fn hops(&self) -> Option<u16> {
        let hops = self.get("topology.chain")?.as_integer()?;
        u16::try_from(hops).ok()
    }
}

/// The keys of a chain for such settings.
fn chain_keys(pacing: &Pacing) -> [(&'static str, Value); 3] {
    let hold_ms = pacing.pacing_step.as_micros() as f64 / 1e3;
    let retry_delay_ms = i64::try_from(pacing.retry_delay.as_millis()).unwrap_or(i64::MAX);
    let segments = i64::try_from(pacing.window_segments).unwrap_or(i64::MAX);
    [
        ("stack.hold_ms", hold_ms.into()),
        ("stack.retry_delay_ms", retry_delay_ms.into()),
        ("stack.window_segments", segments.into()),
    ]
}

/// The keys of the mote's TCP for such settings. The host is nobody's to configure.
fn tcp_keys(pacing: &Pacing) -> [(&'static str, i64); 3] {
    let (every, delay_ms) = (pacing.ack_every.into(), pacing.ack_delay_ms.into());
    [
        ("stack.ack_every", every),
        ("stack.ack_delay_ms", delay_ms),
        ("stack.initial_window", pacing.initial_window.into()),
    ]
}

fn is_ble(document: &Document) -> bool {
    document.get("radio.kind").and_then(Value::as_str) == Some(BLE)
}

fn is_immediate(document: &Document) -> bool {
    document.get("stack.forwarding").and_then(Value::as_str) == Some("cit")
}

/// Whether the radio has one buffer for both directions, whatever its driver makes of that.
fn has_shared_buffer(document: &Document) -> Result<bool, ScenarioError> {
    let radio: RadioSettings = section(&document.table, "radio")?;
    Ok(radio.unchanged_profile().capabilities.shared_buffer)
}

/// The default number of hops of a chain.
const HOPS: u16 = 3;

/// The default size of the buffers of a TCP end over Bluetooth LE, in full segments: the host is 20
/// ms away, and at 2 Mb/s the air carries five segments meanwhile, there and back.
const BLE_WINDOW_SEGMENTS: i64 = 16;
