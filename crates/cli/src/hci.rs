//! `motet up --hci`: one mote over a controller of Bluetooth LE that speaks H4.
//!
//! The mote is the lab's, with the same small services; only the link layer below it is real. Its
//! clock is the wall's. With a command a central is a border router: its wire leads to the kernel
//! of the network that the command runs in.

mod session;

use std::ffi::OsString;

use clap::{Args as ClapArgs, ValueEnum};
use motet::ble::{GapRole, Phy};
use motet_hci::{BadPlace, Controller, ControllerAddress};
use motet_lab::{Arena, apps::Application, capture::Records, net::plan};

use self::session::Session;
use crate::{
    capture::CaptureArgs, chain::FOREIGN_TO_CONTROLLER, command::linux::Signals, error::Error,
    flags, live,
};

/// The controller, and what the mote is to be.
#[derive(Debug, ClapArgs)]
pub(crate) struct HciArgs {
    /// Bring up one mote over this controller of Bluetooth LE, which speaks H4: tcp:HOST:PORT or
    /// serial:PATH[,BAUD]
    #[arg(long, value_name = "PLACE", value_parser = place, requires = "role",
        conflicts_with = "scenario", conflicts_with_all = FOREIGN_TO_CONTROLLER,
        conflicts_with_all = no_use())]
    hci: Option<ControllerAddress>,

    /// With --hci: what the mote is to devices that its controller finds
    #[arg(
        long,
        value_name = "peripheral|central",
        value_enum,
        hide_possible_values = true
    )]
    role: Option<RoleName>,
}

/// The roles that [`HciArgs::role`] names.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum RoleName {
    Peripheral,
    Central,
}

/// Options of a chain that a mote over a controller has no use for: all but those of Bluetooth LE.
fn no_use() -> impl Iterator<Item = &'static str> {
    let names = flags::names().into_iter();
    names.filter(|name| !["phy", "interval", "tcple"].contains(name))
}

/// Reads where a controller is.
fn place(text: &str) -> Result<ControllerAddress, String> {
    text.parse().map_err(|error: BadPlace| error.to_string())
}

impl HciArgs {
    /// Where the controller is, where one is asked for, and the mote's role.
    ///
    /// # Errors
    /// [`Error::Input`] for a role without a controller.
    pub(crate) fn place(&self) -> Result<Option<(&ControllerAddress, GapRole)>, Error> {
        match (&self.hci, self.role) {
            (None, None) => Ok(None),
            (None, Some(_)) => Err(Error::input(
                "--role is an option of a mote over a controller: name --hci, or leave it out",
            )),
            (Some(place), Some(RoleName::Central)) => Ok(Some((place, GapRole::Central))),
            // clap has required a role.
            (Some(place), _) => Ok(Some((place, GapRole::Peripheral))),
        }
    }
}

/// The settings of the mote.
pub(crate) struct Mote {
    pub(crate) role: GapRole,
    pub(crate) phy: Phy,
    /// Interval of a central's connections, in units of 1.25 ms.
    pub(crate) interval: u16,
    pub(crate) seed: u64,
    /// TCP connections, listeners and handshakes.
    pub(crate) sockets: [usize; 3],
    pub(crate) application: Option<Application>,
    /// Whether peers are offered TCPlE.
    pub(crate) has_tcple: bool,
}

/// Runs the mote until a signal comes, or with a command until that ends.
///
/// # Errors
/// There is no controller of use at `place`, or no longer one; the capture cannot be written; what
/// the command needs is not there, or it failed.
pub(crate) fn run(
    place: &ControllerAddress,
    mote: &Mote,
    capture: &CaptureArgs,
    command: &[OsString],
) -> Result<(), Error> {
    let signals = Signals::listen()?;
    // The lower bits of the seed tell motes on one air apart.
    let nameless = plan::device_addr(mote.seed as u16).bytes;
    let interrupt = signals.interrupt();
    let controller = match Controller::start(place, nameless, || interrupt.has_come()) {
        Err(motet_hci::Error::GivenUp) => return stopped(&signals, command),
        started => started.map_err(|error| session::failed(place, &error))?,
    };
    // The controller is reached by this machine's network, and the command gets one of its own.
    let namespace = match command {
        [] => None,
        _ => Some(live::enter_namespace("")?),
    };
    let stops = signals.clone();
    let begun = match capture.create(Records::Hci, move || stops.is_due()) {
        Err(_) if interrupt.has_come() => return stopped(&signals, command),
        begun => begun?,
    };
    let port = match &namespace {
        None => None,
        Some(namespace) => Some(live::open_port(namespace, &[plan::MESH_PREFIX], "")?),
    };
    let arena = Arena::new();
    let is_alone = command.is_empty();
    let mut session = Session::begin((place, controller), mote, (port, begun), &arena);
    let lived = match is_alone {
        true => session.live_alone(&signals),
        false => session.live_with(command, capture.takes_stdout(), &signals),
    };
    let kept = capture.end(session.end());
    match lived {
        Ok(()) => kept.map(drop),
        Err(error) => {
            let kept_up_to_then = kept.as_ref().ok().cloned().flatten();
            let error = error.with_partial_output(kept_up_to_then.as_slice());
            Error::all([Err(error), kept.map(drop)])
        }
    }
}

/// How a mote ends that a signal has stopped: as wished, unless there is a command that it was to
/// run.
fn stopped(signals: &Signals, command: &[OsString]) -> Result<(), Error> {
    match command {
        [] => Ok(()),
        _ => signals.check(),
    }
}
