//! `motet up`: a mesh of motes to talk to, in a network of one's own.

use std::ffi::OsString;

use clap::Args as ClapArgs;

use crate::{
    chain::{CaptureArgs, ChainArgs},
    error::Error,
};

/// Bring up a chain of motes and run a command that can reach them
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Every mote answers ping and serves TCP echo (port 7), discard (9) and chargen (19). The \
command, or a shell, runs in a private network namespace; its exit status is ours. It finds \
the motes' addresses, nearest first, in the variable MOTET_MOTES.

Examples:
  motet up                                a shell; leave it to end the mesh
  motet up --hops 2 -- ping -c 3 fd6d:6f74:6574:1:4d:6f74:6574:2")]
pub(crate) struct Args {
    #[command(flatten)]
    chain: ChainArgs,

    #[command(flatten)]
    capture: CaptureArgs,

    /// Command to run, with its arguments; your shell when there is none
    #[arg(value_name = "CMD", last = true)]
    command: Vec<OsString>,
}

/// Brings the mesh up, and runs the command.
#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: &Args) -> Result<(), Error> {
    Err(Error::failed(
        "the motes are joined to a Linux kernel: run motet up on Linux",
    ))
}

/// Brings the mesh up, and runs the command.
#[cfg(target_os = "linux")]
pub(crate) fn run(args: &Args) -> Result<(), Error> {
    linux::run(args)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{
        ffi::OsString,
        io::Write as _,
        os::unix::process::ExitStatusExt as _,
        process::{Child, Command, ExitStatus},
        time::Duration,
    };

    use motet_lab::{
        Arena,
        app::{App, Services},
        chain::{Chain, Host},
        plan,
        world::World,
    };

    use super::Args;
    use crate::{
        chain,
        error::Error,
        interrupt::Interrupt,
        live::{self, Live},
        output::describe,
    };

    /// Without the kernel there is nothing to run a command beside.
    const NO_OTHER_WAY: &str = "";

    /// How late the command's end, or a signal, may be noticed.
    const NAP: Duration = Duration::from_millis(20);

    pub(super) fn run(args: &Args) -> Result<(), Error> {
        let namespace = live::enter_namespace(NO_OTHER_WAY)?;
        let interrupt = Interrupt::install()?;
        let capture = args.capture.create(&args.chain)?;
        let arena = Arena::new();
        args.chain.warn();
        let mut chain = Chain::new(args.chain.options(Host::Outside), &arena);
        chain.world.set_capture(capture);
        for mote in 1..=chain.mote() {
            let services = Services::new(CONNECTIONS_MAX, chain.mote_ends(&arena));
            chain.world.set_app(mote, App::Services(services));
        }
        chain::join(&mut chain, &interrupt)?;
        let motes: Vec<String> = (1..=args.chain.hops)
            .map(|mote| plan::mesh_addr(mote).to_string())
            .collect();
        let mut live = Live::start(&namespace, chain.world.now(), NO_OTHER_WAY)?;
        introduce(&motes);
        let mut child = start(&args.command, &motes)?;
        let outcome = attend(&mut child, &mut live, &mut chain.world, &interrupt);
        if outcome.is_err() {
            // It must not outlive the mesh; this fails where it has ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
        let status = outcome?;
        args.capture.keep(&mut chain)?;
        report(status)
    }

    /// Runs the mesh until the command ends.
    fn attend(
        child: &mut Child,
        live: &mut Live,
        world: &mut World<'_>,
        interrupt: &Interrupt,
    ) -> Result<ExitStatus, Error> {
        loop {
            live.turn(world, NAP, |_, _| {})?;
            let ended = child.try_wait().map_err(|error| {
                Error::failed(format!("lost the command: {}", describe(&error)))
            })?;
            if let Some(status) = ended {
                return Ok(status);
            }
            match interrupt.take() {
                // Ctrl-C is the command's business.
                None | Some(signal_hook::consts::SIGINT) => {}
                Some(signal) => return Err(Error::Signal(signal)),
            }
        }
    }

    /// Says on stderr who is there: stdout belongs to the command.
    fn introduce(motes: &[String]) {
        let mut stderr = std::io::stderr().lock();
        for (index, mote) in motes.iter().enumerate() {
            let hops = index + 1;
            let plural = if hops == 1 { "" } else { "s" };
            let _ = writeln!(stderr, "mote {hops}: {mote} ({hops} hop{plural})");
        }
        let _ = writeln!(
            stderr,
            "this host: {}; the motes answer ping, TCP 7, 9 and 19",
            plan::HOST
        );
    }

    fn start(command: &[OsString], motes: &[String]) -> Result<Child, Error> {
        let shell = std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
        let (program, arguments) = command.split_first().unwrap_or((&shell, &[]));
        Command::new(program)
            .args(arguments)
            .env("MOTET_MOTES", motes.join(" "))
            .spawn()
            .map_err(|error| {
                Error::input(format!(
                    "cannot run {}: {}, check its name",
                    program.display(),
                    describe(&error)
                ))
            })
    }

    /// The command's exit status as ours, as a shell would report it.
    fn report(status: ExitStatus) -> Result<(), Error> {
        let code = status
            .code()
            .or_else(|| status.signal().map(|signal| 128 + signal));
        match code.and_then(|code| u8::try_from(code).ok()) {
            Some(0) => Ok(()),
            Some(code) => Err(Error::Child(code)),
            None => Err(Error::failed("the command ended without an exit status")),
        }
    }

    /// Connections that a mote serves at a time.
    const CONNECTIONS_MAX: usize = 4;
}
