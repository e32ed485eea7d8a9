//! A Thread network behind `motet router`: `cargo xtask thread` builds OpenThread and runs this.
//!
//! OpenThread's border router (its POSIX host over a simulated radio co-processor) makes the
//! interface `wpan0`. Three motes of OpenThread, whose TCP is TCPlp, exchange bytes with sockets of
//! this machine's kernel: one on the border router itself, one in a network beyond. The daemon
//! stands between them with its rules, and is ended in every way while bytes move.
//!
//! Everything lives in a network of its own, which an ordinary user may make. That radio has no
//! air time and loses nothing: what is checked is that the daemon is right, not that it is fast.

#[cfg(target_os = "linux")]
mod border;
#[cfg(target_os = "linux")]
mod checks;
#[cfg(target_os = "linux")]
mod console;
#[cfg(target_os = "linux")]
mod network;
#[cfg(target_os = "linux")]
mod over;
#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
mod router;
#[cfg(target_os = "linux")]
mod serve;

use std::net::Ipv6Addr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A Thread network behind `motet router`
#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run every check
    Check {
        /// The folder in which OpenThread was built
        #[arg(long)]
        openthread: PathBuf,
        /// The command `motet`
        #[arg(long)]
        motet: PathBuf,
        /// Print one JSON object a line, one for each check
        #[arg(long)]
        json: bool,
    },
    /// Let Motet above OpenThread exchange bytes with Linux and with TCPlp
    Over {
        /// The folder in which OpenThread was built
        #[arg(long)]
        openthread: PathBuf,
        /// The program `motet-over`, built with the feature `openthread`
        #[arg(long)]
        mote: PathBuf,
        /// Print one JSON object a line, one for each check
        #[arg(long)]
        json: bool,
    },
    /// Receive whatever comes over TCP, and print its digest
    Serve { port: u16 },
    /// Send a text to a mote over TCP
    Send {
        mote: Ipv6Addr,
        port: u16,
        text: String,
    },
}

fn main() -> ExitCode {
    #[cfg(target_os = "linux")]
    {
        let done = match Arguments::parse().command {
            Command::Check {
                openthread,
                motet,
                json,
            } => checks::run(&openthread, &motet, json),
            Command::Over {
                openthread,
                mote,
                json,
            } => over::run(&openthread, &mote, json),
            Command::Serve { port } => serve::serve(port).map(|()| true),
            Command::Send { mote, port, text } => serve::send(mote, port, &text).map(|()| true),
        };
        match done {
            Ok(all_hold) => ExitCode::from(u8::from(!all_hold)),
            Err(error) => {
                eprintln!("error: {error:#}");
                ExitCode::FAILURE
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = Arguments::parse();
        eprintln!("error: this needs Linux");
        ExitCode::FAILURE
    }
}
