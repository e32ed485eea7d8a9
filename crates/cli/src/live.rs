//! The simulated air joined to this machine's kernel, in real time.
//!
//! The main thread runs the world: it sleeps until the air's next event or a packet from
//! the kernel, lets the air catch up with the clock, and carries packets both ways.

use std::{fs, io, net::Ipv6Addr, time};

use motet::time::Instant;
use motet_lab::{net::plan, net::world::World};
use motet_router::{
    namespace::{self, Namespace},
    port::{self, PacketPort, PortConfig},
};

use crate::{
    error::Error,
    output::describe,
    pacer::{Lateness, Pacer},
};

/// Moves this process into a private network namespace; call it before any thread exists.
///
/// # Errors
/// One sentence that says what this system would have to allow; `way_out` ends it.
pub(crate) fn enter_namespace(way_out: &str) -> Result<Namespace, Error> {
    namespace::enter().map_err(|error| Error::failed(format!("{error}{way_out}")))
}

/// Opens the kernel's end of the wire, which leads to these prefixes of 64 bits.
///
/// # Errors
/// One sentence that says why there is no link to the kernel; `way_out` ends it.
pub(crate) fn open_port(
    namespace: &Namespace,
    prefixes: &[Ipv6Addr],
    way_out: &str,
) -> Result<PacketPort, Error> {
    let routes: Vec<_> = prefixes.iter().map(|it| (*it, PREFIX_LEN)).collect();
    let config = PortConfig {
        host: plan::HOST,
        host_prefix_len: PREFIX_LEN,
        routes: &routes,
        ..PortConfig::default()
    };
    let port = PacketPort::open(namespace, &config)
        .map_err(|error| Error::failed(format!("{error}{way_out}")))?;
    // Not fatal where a container mounts /proc/sys read-only.
    let _ = fs::write("/proc/sys/net/ipv4/ip_local_port_range", LOCAL_PORTS);
    Ok(port)
}

/// The kernel at the end of the wire, and the clock on the wall.
#[derive(Debug)]
pub(crate) struct Live {
    port: PacketPort,
    pacer: Pacer,
    buffer: Vec<u8>,
}

impl Live {
    /// Opens the kernel's end of the wire to the motes under `prefixes`, and lets the air's clock
    /// go on from `now`.
    ///
    /// # Errors
    /// One sentence that says why there is no link to the kernel; `way_out` ends it.
    pub(crate) fn start(
        namespace: &Namespace,
        prefixes: &[Ipv6Addr],
        now: Instant,
        way_out: &str,
    ) -> Result<Self, Error> {
        Ok(Self::over(open_port(namespace, prefixes, way_out)?, now))
    }

    /// As [`Self::start`], over a port that is open, wherever it leads. Nothing else is touched.
    pub(crate) fn over(port: PacketPort, now: Instant) -> Self {
        // Without it wake-ups are up to 50 µs later, which the summary then shows.
        let _ = port::precise_timers();
        let buffer = vec![0; usize::from(port.mtu())];
        Self {
            port,
            pacer: Pacer::start(now),
            buffer,
        }
    }

    /// Lets the air live on: sleeps until its next event, a packet from the kernel or for
    /// `nap` at most, then runs what is due and carries what is there. `watch` sees each
    /// packet, either way.
    ///
    /// # Errors
    /// When the link to the kernel breaks.
    pub(crate) fn turn(
        &mut self,
        world: &mut World<'_>,
        nap: time::Duration,
        mut watch: impl FnMut(&[u8], Instant),
    ) -> Result<(), Error> {
        let due = world.next_event_at();
        let nap = due.map_or(nap, |due| nap.min(self.pacer.until(due)));
        self.port.wait(Some(nap)).map_err(|error| broken(&error))?;
        world.run_until(self.pacer.turn(due));
        while let Some(len) = self
            .port
            .recv(&mut self.buffer)
            .map_err(|error| broken(&error))?
        {
            let packet = self.buffer.get(..len).unwrap_or_default();
            watch(packet, world.now());
            world.inject_packet(packet);
        }
        while let Some(packet) = world.take_packet() {
            watch(&packet, world.now());
            // What the kernel cannot take is lost, as on any wire; a link that is gone for
            // good shows when we read from it.
            let _ = self.port.send(&packet);
        }
        Ok(())
    }

    /// The air's clock at a moment of the wall clock.
    pub(crate) fn at(&self, wall: time::Instant) -> Instant {
        self.pacer.at(wall)
    }

    /// How late the host has been.
    pub(crate) fn lateness(&self) -> Lateness {
        self.pacer.lateness()
    }
}

pub(crate) fn broken(error: &io::Error) -> Error {
    Error::failed(format!("the link to the kernel broke: {}", describe(error)))
}

/// Where clients' ports come from, TCP's and UDP's: a stretch of which no dissector of
/// Wireshark's claims a port, so that payloads are shown as data.
const LOCAL_PORTS: &str = "50000 54327";

/// All prefixes of the plan are /64.
const PREFIX_LEN: u8 = 64;
