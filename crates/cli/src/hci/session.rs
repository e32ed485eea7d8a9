//! A mote's life over a controller: what passes between both, its peers, and the kernel beside it.

use std::{collections::BTreeMap, ffi::OsString, net::Ipv6Addr, os::fd::AsFd as _, time};

use motet::{
    ble::{Config, DeviceAddr, GapRole, Timing},
    ip::Registration,
    link::{Ble, Link},
    wire::LinkAddr,
};
use motet_hci::{Controller, ControllerAddress, Direction};
use motet_lab::{
    Arena,
    apps::{App, Ends, Services},
    capture::Capture,
    net::{
        device::{Parts, address_of, device, lead_to},
        network::RADIO,
        plan,
        world::World,
    },
};
use motet_router::{port::PacketPort, wake};

use super::Mote;
use crate::{
    command::linux::{Signals, report, start},
    error::Error,
    live,
    output::{describe, say},
    pacer::Pacer,
};

/// A mote that runs over a controller.
pub(super) struct Session<'s, 'm> {
    place: &'s ControllerAddress,
    world: World<'m>,
    controller: Controller,
    pacer: Pacer,
    capture: Option<Capture>,
    /// The kernel at the end of its wire, and room for a packet from there.
    kernel: Option<(PacketPort, Vec<u8>)>,
    /// Devices with an open channel of IPv6, and since when.
    peers: BTreeMap<[u8; 6], time::Instant>,
}

impl<'s, 'm> Session<'s, 'm> {
    /// Starts the mote over a controller at `place`, with what is beside it.
    pub(super) fn begin(
        (place, mut controller): (&'s ControllerAddress, Controller),
        mote: &Mote,
        (port, capture): (Option<PacketPort>, Option<Capture>),
        arena: &'m Arena,
    ) -> Self {
        let address = controller.address();
        let defaults = Config::new(address, mote.role);
        let host = Config {
            phy: mote.phy,
            timing: Timing {
                interval: mote.interval,
                timeout: TIMEOUT,
                ..defaults.timing
            },
            ..defaults
        };
        let parts = Parts {
            has_tcple: mote.has_tcple,
            has_wire: port.is_some(),
        };
        let mut world = device(host, mote.sockets, parts, mote.seed, arena);
        let [connections, ..] = mote.sockets;
        let services = Services::new(connections, Ends::host(arena)).with(mote.application);
        world.set_app(0, App::Services(Box::new(services)));
        world.report(0, controller.started());
        if capture.is_some() {
            controller.keep_packets();
        }
        let pacer = Pacer::start(world.now());
        let session = Self {
            place,
            world,
            controller,
            pacer,
            capture,
            kernel: port.map(|port| {
                let room = vec![0; usize::from(port.mtu())];
                (port, room)
            }),
            peers: BTreeMap::new(),
        };
        session.introduce(address, mote.role);
        session
    }

    /// Gives the capture back.
    pub(super) fn end(self) -> Option<Capture> {
        self.capture
    }

    /// Lives until a signal comes.
    ///
    /// # Errors
    /// There is no controller of use any more.
    pub(super) fn live_alone(&mut self, signals: &Signals) -> Result<(), Error> {
        while !signals.interrupt().has_come() {
            self.turn()?;
        }
        Ok(())
    }

    /// Waits for a peer, starts `command`, which can reach the peer through the kernel, and runs
    /// until the command ends.
    ///
    /// # Errors
    /// As [`Self::live_alone`]; the command's own end, a signal, a kernel that is gone.
    pub(super) fn live_with(
        &mut self,
        command: &[OsString],
        stdout_taken: bool,
        signals: &Signals,
    ) -> Result<(), Error> {
        while !self.is_ready() {
            self.turn()?;
            signals.check()?;
        }
        let motes: Vec<Ipv6Addr> = self.peers.keys().map(|peer| address_of(*peer)).collect();
        say(&format!("this host: {}", plan::HOST));
        signals.a_command_will_run()?;
        let mut guard = start(command, &motes, stdout_taken)?;
        loop {
            self.turn()?;
            let ended = guard.try_wait().map_err(|error| {
                Error::failed(format!("lost the command: {}", describe(&error)))
            })?;
            if let Some(status) = ended {
                return report(status);
            }
            signals.check()?;
        }
    }

    /// Whether a peer has the address that a command is told: it has registered it, or had the time
    /// to make it, for some do not register.
    fn is_ready(&self) -> bool {
        let registered = self.link().into_iter().flat_map(Ble::registrations);
        let registered: Vec<_> = registered.map(Registration::iid).collect();
        self.peers.iter().any(|(peer, since)| {
            registered.contains(&LinkAddr::Device(*peer).iid()) || since.elapsed() > UNREGISTERED
        })
    }

    fn link(&self) -> Option<&Ble<'m>> {
        match self.world.node(0).link(RADIO) {
            Some(Link::Ble(link)) => Some(link),
            _ => None,
        }
    }

    /// Carries what there is, sleeps until there is more, and lets the mote's clock go on.
    fn turn(&mut self) -> Result<(), Error> {
        self.hear_kernel()?;
        let exchanged = self.exchange();
        self.note();
        exchanged.map_err(|error| failed(self.place, &error))?;
        self.tell_kernel();
        self.look_for_peers();
        let due = self.world.next_event_at();
        let nap = due.map_or(NAP, |due| NAP.min(self.pacer.until(due)));
        match &self.kernel {
            None => {
                let waited = self.controller.wait(nap);
                waited.map_err(|error| failed(self.place, &error))?;
            }
            Some((port, _)) => {
                let fds = [self.controller.as_fd(), port.as_fd()];
                let waited = wake::wait(&fds, Some(nap));
                waited.map_err(|error| live::broken(&error))?;
            }
        }
        self.world.run_until(self.pacer.turn(due));
        Ok(())
    }

    /// Carries commands and reports until neither side has any more.
    fn exchange(&mut self) -> Result<(), motet_hci::Error> {
        let Self {
            world, controller, ..
        } = self;
        loop {
            let mut acted = false;
            while let Some((action, bytes)) = world.take_command(0) {
                controller.command(action, &bytes)?;
                acted = true;
            }
            acted |= controller.poll(|event| world.report(0, event))?;
            if !acted {
                return Ok(());
            }
        }
    }

    /// Takes the kernel's packets to the mote.
    fn hear_kernel(&mut self) -> Result<(), Error> {
        let Some((port, room)) = &mut self.kernel else {
            return Ok(());
        };
        while let Some(len) = port.recv(room).map_err(|error| live::broken(&error))? {
            let packet = room.get(..len).unwrap_or_default();
            self.world.inject_at(0, packet);
        }
        Ok(())
    }

    /// Gives the kernel its packets. What it cannot take is lost, as on any wire.
    fn tell_kernel(&mut self) {
        let Some((port, _)) = &mut self.kernel else {
            return;
        };
        while let Some(packet) = self.world.take_at(0) {
            let _ = port.send(&packet);
        }
    }

    /// Writes what has passed since the last time.
    fn note(&mut self) {
        for (way, packet) in self.controller.take_packets() {
            if let Some(capture) = &mut self.capture {
                capture.hci(self.world.now(), way == Direction::ToHost, &packet);
            }
        }
    }

    /// Says which peers have come and which have gone, and lets packets go to them or no longer.
    fn look_for_peers(&mut self) {
        let Some(link) = self.link() else {
            return;
        };
        let open = link.host().connections().filter(|peer| peer.is_open());
        let open: Vec<[u8; 6]> = open.map(|peer| peer.addr().bytes).collect();
        let known: Vec<[u8; 6]> = self.peers.keys().copied().collect();
        for peer in known.iter().filter(|peer| !open.contains(peer)) {
            self.peers.remove(peer);
            say(&format!("no more IPv6 to {}", link_local(*peer)));
            self.lead_to(*peer, false);
        }
        for peer in open.iter().filter(|peer| !known.contains(peer)) {
            self.peers.insert(*peer, time::Instant::now());
            let global = match self.kernel {
                Some(_) => format!(" and {}", address_of(*peer)),
                None => String::new(),
            };
            say(&format!("IPv6 to {}{global}", link_local(*peer)));
            self.lead_to(*peer, true);
        }
    }

    fn lead_to(&mut self, peer: [u8; 6], is_there: bool) {
        if self.kernel.is_some() {
            lead_to(&mut self.world, peer, is_there);
        }
    }

    fn introduce(&self, address: DeviceAddr, role: GapRole) {
        let role = match role {
            GapRole::Central => "a central",
            GapRole::Peripheral => "a peripheral",
        };
        let DeviceAddr { bytes, is_random } = address;
        let kind = if is_random { "random" } else { "public" };
        let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let next = match self.kernel {
            Some(_) => "the command follows its first peer",
            None => "Ctrl-C ends it",
        };
        say(&format!(
            "{} is {role} with the {kind} address {}, by {}; {next}",
            link_local(address.bytes),
            bytes.join(":"),
            self.place,
        ));
    }
}

fn link_local(device: [u8; 6]) -> Ipv6Addr {
    let prefix = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0);
    plan::addr_of(prefix, LinkAddr::Device(device))
}

pub(super) fn failed(place: &ControllerAddress, error: &motet_hci::Error) -> Error {
    Error::failed(format!("{place}: {error}"))
}

/// How late a signal, or the command's end, may be noticed.
const NAP: time::Duration = time::Duration::from_millis(20);

/// After how long a peer that has not registered is thought to have its address: a solicitation and
/// its answer, and time to act on them.
const UNREGISTERED: time::Duration = time::Duration::from_secs(2);

/// The supervision timeout, in units of 10 ms: 4 s.
const TIMEOUT: u16 = 400;
