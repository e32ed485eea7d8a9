//! Frames as MACs count them, channels of Bluetooth LE, and what must hold of the counts.

use motet::ble::ChannelDrop;
use motet::link::{Ble, Indirect, Link, Mesh};
use motet::lowpan::datagram;
use motet::mac::{FrameDrop, Mac};
use motet::node::Node;
use motet::time::{Duration, Instant};

use super::seals::SealTally;
use crate::net::network::{BESIDE, RADIO};

/// Frames as MACs count them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frames {
    /// Passed to the layer above.
    pub(super) received: u64,
    /// Sent until they were acknowledged or given up, or still waiting.
    pub(super) sent: u64,
    /// Attempts at a frame on the air.
    pub(super) attempts: u64,
    /// Fragments that repeat others.
    pub(super) repeated: u64,
    /// Fragments that contradict others.
    pub(super) contradicting: u64,
    /// The counters of motes that sleep, and of their parents.
    pub(super) sleep: SleepTally,
    /// The counters of link security.
    pub(super) seals: SealTally,
}

/// Motes that sleep and their parents, in numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SleepTally {
    /// Requests of motes that were acknowledged.
    pub polls: u64,
    /// Requests of motes that were given up.
    pub failed: u64,
    /// Times that what was promised did not come.
    pub unanswered: u64,
    /// Requests that parents heard, forged ones among them.
    pub requests: u64,
    /// How many of these came from nodes for which there was no room.
    pub strangers: u64,
    /// Packets kept for sleeping nodes.
    pub kept: u64,
    /// How many of these were delivered.
    pub delivered: u64,
    /// How many of these were dropped.
    pub dropped: u64,
    /// Deliveries that went on with a frame which the mote may have.
    pub resumed: u64,
}

impl SleepTally {
    fn of(mesh: &Mesh<'_>) -> Self {
        let polls = mesh.mac().poll_counters();
        let of_children = mesh.indirect().map(|indirect| *indirect.counters());
        let of_children = of_children.unwrap_or_default();
        Self {
            polls: polls.polls.into(),
            failed: polls.failed.into(),
            unanswered: polls.unanswered.into(),
            requests: of_children.requests.into(),
            strangers: of_children.strangers.into(),
            kept: of_children.kept.into(),
            delivered: of_children.delivered.into(),
            dropped: of_children.dropped.into(),
            resumed: of_children.resumed.into(),
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.polls += other.polls;
        self.failed += other.failed;
        self.unanswered += other.unanswered;
        self.requests += other.requests;
        self.strangers += other.strangers;
        self.kept += other.kept;
        self.delivered += other.delivered;
        self.dropped += other.dropped;
        self.resumed += other.resumed;
    }
}

impl Frames {
    pub(super) fn of(node: &Node<'_>) -> Self {
        let Some(Link::Mesh(radio)) = node.link(RADIO) else {
            return Self::default();
        };
        let counters = radio.mac().counters();
        let given_up = [
            FrameDrop::NoAck,
            FrameDrop::ChannelBusy,
            FrameDrop::RadioSilent,
            FrameDrop::TooOld,
            FrameDrop::Silent,
        ];
        let given_up: u32 = given_up.iter().map(|why| counters.dropped(*why)).sum();
        let dropped = |why| u64::from(radio.datagrams().counters().dropped(why));
        Self {
            received: u64::from(counters.received),
            sent: u64::from(counters.delivered + given_up) + radio.mac().queue_len() as u64,
            attempts: u64::from(counters.transmissions),
            repeated: dropped(datagram::FragmentDrop::Duplicate),
            contradicting: dropped(datagram::FragmentDrop::Overlap),
            sleep: SleepTally::of(radio),
            seals: SealTally::of(radio.mac()),
        }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.sent += other.sent;
        self.attempts += other.attempts;
        self.repeated += other.repeated;
        self.contradicting += other.contradicting;
        self.sleep.add(&other.sleep);
        self.seals.add(&other.seals);
    }
}

/// Checks a MAC's counters, at any time: every frame is delivered, dropped or queued, every frame
/// that a condition fired was delivered or is sent again, and none has waited for its condition
/// longer than it may.
pub(super) fn check(node: &Node<'_>, now: Instant) -> Result<(), String> {
    if let Some(Link::Ble(ble)) = node.link(BESIDE) {
        check_channels(ble)?;
    }
    let radio = match node.link(RADIO) {
        Some(Link::Mesh(radio)) => radio,
        Some(Link::Ble(ble)) => return check_channels(ble),
        _ => return Ok(()),
    };
    let mac: &Mac<'_> = radio.mac();
    let counters = mac.counters();
    let dropped: u32 = DROPS.iter().map(|why| counters.dropped(*why)).sum();
    let ended = counters.delivered + dropped + mac.queue_len() as u32;
    if counters.accepted != ended {
        return Err(format!(
            "frames were queued that nobody knows of: {counters:?}"
        ));
    }
    let fired = counters.immediate_delivered + counters.immediate_failed;
    if counters.immediate != fired && counters.immediate != fired + 1 {
        return Err(format!(
            "frames were fired that nobody knows of: {counters:?}"
        ));
    }
    if let Some(indirect) = radio.indirect() {
        check_children(indirect)?;
    }
    match mac.waits_until() {
        Some(until) if until + LATE_MAX < now => Err(format!(
            "a frame waits for another since {} ms after its time",
            now.since(until).as_millis()
        )),
        _ => Ok(()),
    }
}

/// Checks a parent, at any time: every packet that it kept was delivered, was dropped, or waits.
fn check_children(indirect: &Indirect<'_>) -> Result<(), String> {
    let counters = indirect.counters();
    let ended = counters.delivered + counters.dropped;
    if counters.kept != ended + indirect.waiting() as u32 {
        return Err(format!(
            "packets were kept for children that nobody knows of: {counters:?}, {} wait",
            indirect.waiting()
        ));
    }
    Ok(())
}

/// Checks a host of Bluetooth LE whose peers are ours: no channel had to be closed because of what
/// a peer sent, and each segment that came ahead of its time is counted by its fate.
fn check_channels(ble: &Ble<'_>) -> Result<(), String> {
    let counters = ble.host().counters();
    if let Some(why) = FAULTS.iter().find(|why| counters.dropped(**why) > 0) {
        return Err(format!("of a peer's making: {}", why.reason()));
    }
    match ble.tcple_counters() {
        Some(tcple) if tcple.held < tcple.passed_on + tcple.dropped => Err(format!(
            "more segments went on or were dropped than were held: {tcple:?}"
        )),
        _ => Ok(()),
    }
}

/// The faults that no host of ours inflicts on another.
const FAULTS: [ChannelDrop; 7] = [
    ChannelDrop::MalformedSignal,
    ChannelDrop::UnknownSignal,
    ChannelDrop::SduTooLong,
    ChannelDrop::FrameTooLong,
    ChannelDrop::NoCredit,
    ChannelDrop::CreditOverflow,
    ChannelDrop::BadReport,
];

/// Why frames that were queued are not sent.
const DROPS: [FrameDrop; 7] = [
    FrameDrop::TooOld,
    FrameDrop::Silent,
    FrameDrop::NoAck,
    FrameDrop::ChannelBusy,
    FrameDrop::RadioSilent,
    FrameDrop::Cancelled,
    FrameDrop::NoCounter,
];

/// An attempt at another frame ends first: backoffs of at most 37 ms, copies, a frame, its ACK.
const LATE_MAX: Duration = Duration::from_millis(100);
