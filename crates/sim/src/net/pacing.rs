//! How chains of `TelosB`-like radios are paced: one set of settings for each way of forwarding.
//!
//! Purpose: experiments and `motet send --forwarding cit --pacing off` take their settings from
//! here, so that both run with the same settings. Source: the best of one search for both ways of
//! forwarding, on goodput with TCPHC, calibrated air, nothing lost on purpose: hold 0, 3, 4, 5 and
//! 7 ms a hop; ACK every second, fourth and sixth segment; windows of 4, 6, 8 and 10 segments; 1,
//! 2, 3, 4 and 6 hops, one channel and several. An ACK on its way down costs a chain of data frames
//! several frame times, so few ACKs and a window that fills the path without queues win everywhere;
//! the hold differs. Left out: radios with one buffer, whose settings are `TCPlp`'s.

use motet::link::Forwarding;
use motet::mac::Channels;
use motet::tcp::Config;
use motet::time::Duration;

/// Settings of a chain and of the TCP at its ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pacing {
    /// The hold rule's time per hop.
    pub pacing_step: Duration,
    /// The longest wait before a link retry: a neighbour that is away, or a hidden one's frame,
    /// is over sooner.
    pub retry_delay: Duration,
    /// Buffers of TCP's ends, in full segments: what the path holds, and little more.
    pub window_segments: usize,
    /// Segments that one ACK acknowledges.
    pub ack_every: u8,
    /// The longest wait of an ACK, ms: as long as RFC 9293 §3.8.6.3 allows.
    pub ack_delay_ms: u16,
    /// The sender's first window, in segments: the receiver's rule answers it at once (RFC 6928
    /// allows ten).
    pub initial_window: u8,
}

impl Pacing {
    /// The best settings known for `hops` hops.
    pub const fn best(hops: u16, forwarding: Forwarding, channels: Channels) -> Self {
        let is_single = channels.is_single();
        let hold_ms = match (forwarding, is_single, hops) {
            // A frame and its ACK take 5 ms; the copy of the next one, 2.2 ms, comes on top.
            (Forwarding::Immediate, true, ..3) => 3,
            (Forwarding::Immediate, true, 3) => 4,
            (Forwarding::Immediate, true, _) => 7,
            (Forwarding::Immediate, false, ..4) => 3,
            (Forwarding::Immediate, false, _) => 4,
            (Forwarding::Copy, true, _) => 0,
            (Forwarding::Copy, false, _) => 7,
        };
        Self {
            pacing_step: Duration::from_millis(hold_ms),
            retry_delay: Duration::from_millis(10),
            window_segments: 8,
            ack_every: ACK_EVERY,
            ack_delay_ms: ACK_DELAY_MS,
            initial_window: INITIAL_WINDOW,
        }
    }
}

/// The receiver's rule, and the longest wait that RFC 9293 §3.8.6.3 allows.
pub fn receiver(config: &mut Config) {
    config.ack_every = ACK_EVERY;
    config.ack_delay_ms = ACK_DELAY_MS;
}

/// The sender begins with a window that the receiver's rule answers at once (RFC 6928 allows
/// ten segments).
pub fn sender(config: &mut Config) {
    config.initial_window = INITIAL_WINDOW;
}

/// More than RFC 9293's SHOULD of two: see the search.
const ACK_EVERY: u8 = 6;

/// As long as RFC 9293 §3.8.6.3 allows.
const ACK_DELAY_MS: u16 = 500;

/// The window of a connection that begins, segments: the receiver's rule acknowledges these at
/// once.
const INITIAL_WINDOW: u8 = 8;
