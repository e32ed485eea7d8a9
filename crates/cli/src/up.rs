//! `motet up`: a mesh of motes to talk to, in a network of one's own.

use std::ffi::OsString;

use clap::Args as ClapArgs;

use crate::{error::Error, send::ChainArgs};

/// Bring up a chain of motes and run a command that can reach them
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Every mote answers ping and serves TCP echo (port 7), discard (9) and chargen (19). The
command, or a shell, runs in a private network namespace; its exit status is ours.

Examples:
  motet up                                    a shell; leave it to end the mesh
  motet up --hops 2 -- ping -c 3 fd6d:6f74:6574:1:4f:6574:7400:2")]
pub(crate) struct Args {
    #[command(flatten)]
    chain: ChainArgs,

    /// Command to run, with its arguments; your shell when there is none
    #[arg(value_name = "CMD", last = true)]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let _ = args;
    Ok(())
}
