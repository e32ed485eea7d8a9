//! Fairness beside any border router: packets that the kernel holds, and the rule that lets them
//! go. Packets into the mesh whose source claims to be inside it are dropped.
//!
//! Place in the data flow: between [`crate::nfqueue::Queue`] and [`motet_taim::Router`]. Packets
//! stay in the kernel; the router knows their numbers.
//!
//! Left out: the rules that fill the queue ([`crate::rules`]), and the wait for the next packet,
//! which the caller shares with whatever else it waits for.

use std::{
    io,
    os::fd::{AsFd, BorrowedFd},
    time,
};

use motet::{
    time::Instant,
    wire::{ipv6, tcp},
};
use motet_taim::{Config, Decision, Direction, Packet, PacketId, Policy, Router, Status};
use nix::errno::Errno;

use crate::{
    copies::{COPY_MARK, Copies},
    inside::Inside,
    link::index_of,
    nfqueue::{Queue, QueueCounters, QueueError},
};

/// A rule for the flows of one interface.
#[derive(Debug)]
pub struct Fair {
    queue: Queue,
    router: Router,
    /// Where the policy sends packets again.
    copies: Option<Copies>,
    /// The interface into the mesh.
    interface: u32,
    /// The origin of the router's time. The clock is CLOCK_MONOTONIC, which cannot be set.
    origin: time::Instant,
    /// The prefixes and routes behind that interface.
    inside: Inside,
    elsewhere: u64,
    forged: u64,
}

impl Fair {
    /// Takes packet queue `number` for the flows of the interface with the index `interface`.
    ///
    /// # Errors
    /// See [`QueueError`].
    pub fn open(number: u16, interface: u32, config: Config) -> Result<Self, QueueError> {
        // The kernel's queue must also have room for packets that this program has not read yet.
        let held_max = u32::try_from(config.held_max).unwrap_or(u32::MAX);
        let queue = Queue::open(number, held_max.saturating_add(UNSEEN_MAX))?;
        let copies = match config.policy {
            Policy::Relay => {
                queue.copy_whole()?;
                Some(Copies::open().map_err(|errno| match errno {
                    Errno::EPERM | Errno::EACCES => QueueError::MayNotSend,
                    other => QueueError::Io(other.into()),
                })?)
            }
            _ => None,
        };
        Ok(Self {
            queue,
            router: Router::new(config),
            copies,
            interface,
            origin: time::Instant::now(),
            inside: Inside::default(),
            elsewhere: 0,
            forged: 0,
        })
    }

    /// Drops packets from now on that another interface brings, with a source that is `inside`.
    pub fn set_inside(&mut self, inside: Inside) {
        self.inside = inside;
    }

    /// Reads the packets that the kernel reports, and releases those that may leave. Never sleeps.
    ///
    /// Returns whether there may be more to take: call it again before waiting.
    ///
    /// # Errors
    /// When the queue is broken.
    pub fn turn(&mut self) -> io::Result<bool> {
        let mut left = TURN_PACKETS_MAX;
        while left > 0 && self.take()? {
            left -= 1;
        }
        self.release()?;
        self.queue.flush()?;
        Ok(left == 0)
    }

    /// Takes one packet; returns whether there was one.
    fn take(&mut self) -> io::Result<bool> {
        let Some(packet) = self.queue.recv()? else {
            return Ok(false);
        };
        let id = packet.id;
        if packet.mark == Some(COPY_MARK) && packet.from.is_none() {
            self.queue.accept(id)?;
            return Ok(true);
        }
        // A packet from mote to mote passes twice, each time with one of its ends.
        let direction = if packet.to == Some(self.interface) {
            Some(Direction::Down)
        } else if packet.from == Some(self.interface) {
            Some(Direction::Up)
        } else {
            None
        };
        let Some(direction) = direction else {
            self.elsewhere += 1;
            self.queue.accept(id)?;
            return Ok(true);
        };
        // A packet that this machine itself sends has no input interface. A packet from mote to
        // mote enters and leaves by the mesh's interface. Before Linux 5.7 a forwarded packet has
        // no input interface here either: with any kernel version the rules of `outside` drop
        // forged ones.
        let is_from_outside = packet.from.is_some_and(|from| from != self.interface);
        if is_from_outside && self.inside.has_source_of(packet.head) {
            self.forged += 1;
            self.queue.discard(id)?;
            return Ok(true);
        }
        if packet.from == packet.to && !is_tcp(packet.head) {
            // From mote to mote: its sender is no stranger, and no policy holds it.
            self.queue.accept(id)?;
            return Ok(true);
        }
        let now = now(self.origin);
        let packet = Packet {
            id: PacketId(id.into()),
            direction,
            headers: packet.head,
            len: packet.len,
        };
        if self.router.on_packet(&packet, now) == Decision::Pass {
            self.queue.accept(id)?;
        }
        self.release()?;
        Ok(true)
    }

    /// Gives the verdicts that are due.
    fn release(&mut self) -> io::Result<()> {
        if let Some(copies) = &mut self.copies {
            while let Some(copy) = self.router.poll_copy(now(self.origin)) {
                copies.send(copy);
            }
        }
        while let Some(PacketId(id)) = self.router.poll(now(self.origin)) {
            // The kernel's number, of 32 bits.
            self.queue.accept(id as u32)?;
        }
        while let Some(PacketId(id)) = self.router.poll_dropped() {
            self.queue.discard(id as u32)?;
        }
        Ok(())
    }

    /// How long until [`Self::turn`] has something to do though no packet has come; `None` is for
    /// ever.
    pub fn due_in(&self) -> Option<time::Duration> {
        let due = self.router.next_deadline()?;
        let wait = due.since(now(self.origin));
        Some(time::Duration::from_micros(wait.as_micros()))
    }

    /// Lets all held packets go at once, and holds none from now on.
    ///
    /// # Errors
    /// When the queue is broken.
    pub fn release_all(&mut self) -> io::Result<()> {
        self.router.release_all();
        self.release()?;
        self.queue.flush()
    }

    /// Lets all go and gives the queue up: see [`Queue::close`].
    ///
    /// # Errors
    /// When the queue is broken.
    pub fn close(mut self) -> io::Result<()> {
        self.release_all()?;
        self.queue.close()
    }

    /// All that is known of flows and motes.
    pub fn status(&mut self) -> Status {
        self.router.status(now(self.origin))
    }

    /// The queue's counters.
    pub fn counters(&self) -> FairCounters {
        FairCounters {
            queue: self.queue.counters(),
            elsewhere: self.elsewhere,
            forged: self.forged,
            unsent: self.copies.as_ref().map_or(0, Copies::failed),
        }
    }
}

/// Whether the first next header of a packet is TCP.
fn is_tcp(head: &[u8]) -> bool {
    let parsed = ipv6::Header::parse_start(head);
    parsed.is_ok_and(|(header, _)| header.next_header == tcp::NEXT_HEADER)
}

/// Counters beside those of the router itself.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct FairCounters {
    /// The packet queue's counters.
    pub queue: QueueCounters,
    /// Packets of other interfaces, which a rule of somebody's sends here: they passed at once.
    pub elsewhere: u64,
    /// Packets from outside with a source inside (BCP 38): they were dropped. Counts only packets
    /// that reached the queue: [`crate::outside::Filter::dropped`] counts the others.
    pub forged: u64,
    /// Copies of lost packets that the kernel refused to send.
    pub unsent: u64,
}

/// The descriptor, for a poll of several: readable when there is a packet.
impl AsFd for Fair {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.queue.as_fd()
    }
}

/// The index of the interface `name`, where there is one.
pub fn interface_index(name: &str) -> Option<u32> {
    index_of(name).ok()
}

fn now(origin: time::Instant) -> Instant {
    // Lossless: 64 bits hold half a million years of microseconds.
    Instant::from_micros(origin.elapsed().as_micros() as u64)
}

/// How many packets one turn takes: deadlines and signals wait no longer.
const TURN_PACKETS_MAX: usize = 256;

/// How many packets may wait in the kernel for this program to see them.
const UNSEEN_MAX: u32 = 4_096;
