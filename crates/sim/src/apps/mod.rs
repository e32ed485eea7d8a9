//! Applications on simulated nodes: a sender, a receiver, and the small services of old.
//!
//! Place: `world` calls [`App::step`] whenever its node has something new. An application
//! uses the stack as firmware does, with calls that never wait.
//! Datagrams are in [`crate::apps::readings`], messages over TCP in [`crate::apps::messages`].
//! The small services are [`Services`].

pub mod ages;
pub mod backlog;
pub mod coap;
pub mod content;
mod dialogue;
mod ends;
#[cfg(feature = "firmware")]
mod firmware;
#[cfg(not(feature = "firmware"))]
#[path = "firmware_absent.rs"]
mod firmware;
mod iperf3;
#[cfg(feature = "firmware")]
mod lines;
pub mod messages;
#[cfg(feature = "firmware")]
pub mod push;
#[cfg(not(feature = "firmware"))]
#[path = "push_absent.rs"]
pub mod push;
pub mod readings;
mod receiver;
pub mod reporter;
mod sender;
mod services;

use motet::node::Node;
use motet::time::{Duration, Instant};

#[cfg(feature = "firmware")]
use crate::Arena;

use self::coap::{CoapCollector, CoapReporter};
use self::messages::{Client, Server};
use self::push::{BlockPusher, Pusher};
use self::readings::{Readings, Sink};
use self::reporter::Reporter;

pub use self::dialogue::Application;
pub use self::ends::{Ends, Progress};
pub use self::firmware::{BlockTaker, Stored};
pub use self::receiver::Receiver;
pub use self::sender::Sender;
pub use self::services::{PORTS as SERVICE_PORTS, Services};

/// An application on a node.
#[derive(Debug, Default)]
pub enum App<'m> {
    /// No application.
    #[default]
    None,
    /// Connects, sends, closes.
    Sender(Sender<'m>),
    /// Takes one connection and reads it to its end.
    Receiver(Receiver<'m>),
    /// Echo, discard, chargen and iperf3.
    Services(Box<Services<'m>>),
    /// Sends datagrams at a constant rate.
    Readings(Readings),
    /// Receives datagrams and counts them.
    Sink(Sink<'m>),
    /// Sends messages over TCP at a constant rate.
    Client(Client<'m>),
    /// Counts such messages, and may answer them.
    Server(Server<'m>),
    /// Sends a sensor's readings over TCP, in batches.
    Reporter(Reporter<'m>),
    /// Puts a sensor's readings to a CoAP server.
    CoapReporter(CoapReporter<'m>),
    /// Takes a sensor's readings over CoAP.
    CoapCollector(CoapCollector<'m>),
    /// Brings new firmware to motes.
    Pusher(Pusher<'m>),
    /// Brings it over CoAP.
    BlockPusher(BlockPusher<'m>),
    /// Takes it over CoAP.
    BlockTaker(BlockTaker<'m>),
}

impl<'m> App<'m> {
    /// Makes all progress that is possible without waiting; returns whether there was any.
    pub fn step(&mut self, node: &mut Node<'m>, now: Instant) -> bool {
        match self {
            Self::None => false,
            Self::Sender(sender) => sender.step(node, now),
            Self::Receiver(receiver) => receiver.step(node, now),
            Self::Services(services) => services.step(node, now),
            Self::Readings(readings) => readings.step(node, now),
            Self::Sink(sink) => sink.step(node, now),
            Self::Client(client) => client.step(node, now),
            Self::Server(server) => server.step(node, now),
            Self::Reporter(reporter) => reporter.step(node, now),
            Self::CoapReporter(reporter) => reporter.step(node, now),
            Self::CoapCollector(collector) => collector.step(node, now),
            Self::Pusher(pusher) => pusher.step(node, now),
            Self::BlockPusher(pusher) => pusher.step(node, now),
            Self::BlockTaker(taker) => taker.step(node, now),
        }
    }

    /// The node is switched off: the application takes back what it lent, and will begin anew.
    pub(crate) fn switch_off(&mut self, node: &mut Node<'m>) {
        match self {
            Self::None | Self::Readings(_) => {}
            Self::Sender(sender) => sender.switch_off(node),
            Self::Receiver(receiver) => receiver.switch_off(node),
            Self::Services(services) => services.switch_off(node),
            Self::Sink(sink) => sink.switch_off(node),
            Self::Client(client) => client.switch_off(node),
            Self::Server(server) => server.switch_off(node),
            Self::Reporter(reporter) => reporter.switch_off(node),
            Self::CoapReporter(reporter) => reporter.switch_off(node),
            Self::CoapCollector(collector) => collector.switch_off(node),
            Self::Pusher(pusher) => pusher.switch_off(node),
            Self::BlockPusher(pusher) => pusher.switch_off(node),
            Self::BlockTaker(taker) => taker.switch_off(node),
        }
    }

    /// The node is switched on again.
    pub(crate) fn switch_on(&mut self, now: Instant) {
        match self {
            Self::Readings(readings) => readings.switch_on(now),
            Self::Client(client) => client.switch_on(now),
            Self::Reporter(reporter) => reporter.switch_on(now),
            Self::CoapReporter(reporter) => reporter.backlog.switch_on(now),
            _ => {}
        }
    }

    /// When the application wants to be called though its node has nothing new.
    pub fn next_deadline(&self) -> Option<Instant> {
        match self {
            Self::Sender(sender) => sender.next_deadline(),
            Self::Readings(readings) => readings.next_deadline(),
            Self::Client(client) => client.next_deadline(),
            Self::Reporter(reporter) => reporter.next_deadline(),
            Self::CoapReporter(reporter) => reporter.next_deadline(),
            Self::Services(services) => services.next_deadline(),
            Self::Pusher(pusher) => pusher.next_deadline(),
            Self::BlockPusher(pusher) => pusher.next_deadline(),
            Self::BlockTaker(taker) => taker.next_deadline(),
            _ => None,
        }
    }

    /// How long the node's processor stands still because of what the application did to its
    /// flash, since the last call.
    pub(crate) fn take_halt(&mut self) -> Duration {
        match self {
            Self::Services(services) => services.take_halt(),
            Self::BlockTaker(taker) => taker.take_halt(),
            _ => Duration::ZERO,
        }
    }

    /// What a mote's flash holds of new firmware, if it takes any.
    pub fn stored(&self, image: &[u8]) -> Option<Stored> {
        match self {
            Self::Services(services) => services.stored(image),
            Self::BlockTaker(taker) => Some(taker.stored(image)),
            _ => None,
        }
    }

    /// A mote's `/firmware`, which takes images alone that [`push::image`] made. `mss_frames`:
    /// frames of a full segment.
    #[cfg(feature = "firmware")]
    pub(crate) fn firmware(ends: Ends<'m>, mss_frames: u8) -> Self {
        let services = Services::new(FIRMWARE_CONNECTIONS, ends).only(&[]);
        let services = services.with_signed_firmware(push::demands(), mss_frames);
        Self::Services(Box::new(services))
    }

    /// The same over CoAP.
    #[cfg(feature = "firmware")]
    pub(crate) fn block_taker(arena: &'m Arena) -> Self {
        Self::BlockTaker(BlockTaker::new(push::demands(), arena))
    }

    /// How the transfer goes, if this is one end of a transfer.
    pub fn progress(&self) -> Option<&Progress> {
        match self {
            Self::Sender(sender) => Some(&sender.progress),
            Self::Receiver(receiver) => Some(&receiver.progress),
            Self::Client(client) => Some(&client.progress),
            Self::Server(server) => Some(&server.progress),
            Self::Reporter(reporter) => Some(&reporter.progress),
            _ => None,
        }
    }
}

/// Connections of a mote that takes new firmware: from the host to write and to look, from a mote
/// below it, and to one above it; one more while an old one ends.
pub const FIRMWARE_CONNECTIONS: usize = 5;
