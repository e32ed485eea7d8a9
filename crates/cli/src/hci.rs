//! `motet up --hci`: one mote over a controller of Bluetooth LE that speaks H4.
//!
//! The mote is the lab's, with the same small services; only the link layer below it is real. Its
//! clock is the wall's.

use std::{collections::BTreeSet, net::Ipv6Addr, time};

use clap::{Args as ClapArgs, ValueEnum};
use motet::{
    ble::{Config, DeviceAddr, Phy, Role, Timing},
    link::Link,
    wire::LinkAddr,
};
use motet_hci::{BadPlace, Controller, Place, Way};
use motet_lab::{
    Arena,
    apps::{App, Application, Ends, Services},
    capture::{Capture, Records},
    net::{device::device, network::RADIO, plan, world::World},
};

use crate::{capture::CaptureArgs, error::Error, interrupt::Interrupt, output::say, pacer::Pacer};

/// The controller, and what the mote is to be.
#[derive(Debug, ClapArgs)]
pub(crate) struct HciArgs {
    /// Bring up one mote over this controller of Bluetooth LE, which speaks H4: tcp:HOST:PORT or
    /// serial:PATH[,BAUD]
    #[arg(long, value_name = "PLACE", value_parser = place, requires = "role", conflicts_with_all = [
        "scenario", "hops", "frame_loss", "packet_loss", "no_hidden", "no_deaf", "retry_delay", "mss_frames",
        "compression", "radio", "forwarding", "channels", "hold", "window", "sleep", "congestion",
        "command",
    ])]
    hci: Option<Place>,

    /// With --hci: what the mote is to devices that its controller finds
    #[arg(
        long,
        value_name = "peripheral|central",
        value_enum,
        hide_possible_values = true
    )]
    role: Option<RoleName>,
}

/// What [`HciArgs::role`] names.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum RoleName {
    Peripheral,
    Central,
}

/// Reads where a controller is.
fn place(text: &str) -> Result<Place, String> {
    text.parse().map_err(|error: BadPlace| error.to_string())
}

impl HciArgs {
    /// Where the controller is, where one is asked for, and the mote's role.
    ///
    /// # Errors
    /// [`Error::Input`] for a role without a controller.
    pub(crate) fn place(&self) -> Result<Option<(&Place, Role)>, Error> {
        match (&self.hci, self.role) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(Error::input(
                "--role is an option of a mote over a controller: name --hci, or leave it out",
            )),
            (Some(place), Some(RoleName::Central)) => Ok(Some((place, Role::Central))),
            // clap has required a role.
            (Some(place), _) => Ok(Some((place, Role::Peripheral))),
        }
    }
}

/// What the mote is like.
pub(crate) struct Mote {
    pub(crate) role: Role,
    pub(crate) phy: Phy,
    /// Of a central's connections, in units of 1.25 ms.
    pub(crate) interval: u16,
    pub(crate) seed: u64,
    /// TCP connections, listeners and handshakes.
    pub(crate) sockets: [usize; 3],
    pub(crate) application: Option<Application>,
    /// Whether peers are offered TCPlE.
    pub(crate) has_tcple: bool,
}

/// Runs the mote until a signal comes.
///
/// # Errors
/// There is no controller of use at `place`, or no longer one; the capture cannot be written.
pub(crate) fn run(place: &Place, mote: &Mote, capture: &CaptureArgs) -> Result<(), Error> {
    let interrupt = Interrupt::install()?;
    let stops = interrupt.clone();
    let begun = capture.create(Records::Hci, move || stops.has_come());
    let mut begun = match begun {
        Err(_) if interrupt.has_come() => return Ok(()),
        begun => begun?,
    };
    let lived = live(place, mote, &interrupt, &mut begun);
    let kept = capture.end(begun);
    match lived {
        Ok(()) => kept.map(drop),
        Err(error) => {
            let kept_up_to_then = kept.as_ref().ok().cloned().flatten();
            let error = error.keeping(kept_up_to_then.as_slice());
            Error::all([Err(error), kept.map(drop)])
        }
    }
}

/// The mote's life, from the controller's start to a signal.
fn live(
    place: &Place,
    mote: &Mote,
    interrupt: &Interrupt,
    capture: &mut Option<Capture>,
) -> Result<(), Error> {
    // The lower bits of the seed tell motes on one air apart.
    let nameless = plan::device_addr(mote.seed as u16).bytes;
    let started = Controller::start(place, nameless, || interrupt.has_come());
    let mut controller = match started {
        Err(motet_hci::Error::GivenUp) => return Ok(()),
        started => started.map_err(|error| failed(place, &error))?,
    };
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
    let arena = Arena::new();
    let mut world = device(host, mote.sockets, mote.has_tcple, mote.seed, &arena);
    let [connections, ..] = mote.sockets;
    let services = Services::new(connections, Ends::host(&arena)).with(mote.application);
    world.set_app(0, App::Services(services));
    world.report(0, controller.started());
    if capture.is_some() {
        controller.keep_packets();
    }
    introduce(place, address, mote.role);
    let mut pacer = Pacer::start(world.now());
    let mut peers = BTreeSet::new();
    while !interrupt.has_come() {
        let exchanged = exchange(&mut world, &mut controller);
        note(&world, &mut controller, capture);
        exchanged.map_err(|error| failed(place, &error))?;
        name_peers(&world, &mut peers);
        let due = world.next_event_at();
        let nap = due.map_or(NAP, |due| NAP.min(pacer.until(due)));
        controller
            .wait(nap)
            .map_err(|error| failed(place, &error))?;
        world.run_until(pacer.turn(due));
    }
    Ok(())
}

/// Carries commands and reports until neither side has any more.
fn exchange(world: &mut World<'_>, controller: &mut Controller) -> Result<(), motet_hci::Error> {
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

/// Writes what has passed since the last time.
fn note(world: &World<'_>, controller: &mut Controller, capture: &mut Option<Capture>) {
    for (way, packet) in controller.take_packets() {
        if let Some(capture) = capture {
            capture.hci(world.now(), way == Way::ToHost, &packet);
        }
    }
}

/// Prints which peers have come, and which have gone.
fn name_peers(world: &World<'_>, known: &mut BTreeSet<[u8; 6]>) {
    let Some(Link::Ble(link)) = world.node(0).link(RADIO) else {
        return;
    };
    let open = link.host().connections().filter(|peer| peer.is_open());
    let open: BTreeSet<[u8; 6]> = open.map(|peer| peer.addr().bytes).collect();
    if open == *known {
        return;
    }
    for peer in open.difference(known) {
        say(&format!("IPv6 to {}", link_local(*peer)));
    }
    for peer in known.difference(&open) {
        say(&format!("no more IPv6 to {}", link_local(*peer)));
    }
    *known = open;
}

fn introduce(place: &Place, address: DeviceAddr, role: Role) {
    let role = match role {
        Role::Central => "a central",
        Role::Peripheral => "a peripheral",
    };
    let DeviceAddr { bytes, is_random } = address;
    let kind = if is_random { "random" } else { "public" };
    let bytes: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    say(&format!(
        "{} is {role} with the {kind} address {}, by {place}; Ctrl-C ends it",
        link_local(address.bytes),
        bytes.join(":"),
    ));
}

fn link_local(device: [u8; 6]) -> Ipv6Addr {
    let prefix = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0);
    plan::addr_of(prefix, LinkAddr::Device(device))
}

fn failed(place: &Place, error: &motet_hci::Error) -> Error {
    Error::failed(format!("{place}: {error}"))
}

/// How late a signal may be noticed.
const NAP: time::Duration = time::Duration::from_millis(20);

/// The supervision timeout, in units of 10 ms: 4 s.
const TIMEOUT: u16 = 400;
