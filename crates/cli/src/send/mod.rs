//! `motet send FILE`: a file from a mote to a TCP socket of this machine, or back.

mod kernel;
mod report;

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use crate::{error::Error, files, output};

/// Send a file over TCP between a simulated mote and this machine's kernel, and verify it
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The mote is --hops radio hops of IEEE 802.15.4 away from the border router. Its frames
cross a simulated air in real time; beyond the border router they are packets of a
private network namespace, and the far end is a socket of this machine's own kernel.

Examples:
  motet send README.md                        three hops, the file leaves the mote
  motet send README.md --hops 1 --pcap air.pcap
  motet send README.md --virtual --json       no privileges, no waiting, deterministic")]
pub(crate) struct Args {
    /// The file to send
    file: PathBuf,

    #[command(flatten)]
    chain: ChainArgs,

    /// Which way the file travels: up leaves the mote, down reaches it
    #[arg(long, value_name = "up|down", value_enum, default_value_t = Direction::Up, hide_possible_values = true)]
    direction: Direction,

    /// Write the air as a capture that Wireshark reads
    #[arg(long, value_name = "PATH")]
    pcap: Option<PathBuf>,

    /// Overwrite an existing capture
    #[arg(long, requires = "pcap")]
    force: bool,

    /// Run in virtual time against a host with this same stack instead of the kernel
    #[arg(long = "virtual")]
    in_virtual_time: bool,

    /// Print one JSON object instead of the summary
    #[arg(long)]
    json: bool,
}

/// The chain of motes and its air.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct ChainArgs {
    /// Radio hops between the mote and the border router
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=HOPS_MAX))]
    pub(crate) hops: u8,

    /// Lose each frame with this probability, 0 to 1, on top of what the air does
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = probability)]
    pub(crate) frame_loss: f64,

    /// Lose each packet with this probability, 0 to 1, beyond the border router
    #[arg(long, value_name = "P", default_value_t = 0.0, value_parser = probability)]
    pub(crate) packet_loss: f64,

    /// Let every node hear every other: no hidden terminals
    #[arg(long)]
    pub(crate) no_hidden: bool,

    /// Let radios listen while a frame is copied into them
    #[arg(long)]
    pub(crate) no_deaf: bool,

    /// Wait a random time up to this before a link retry
    #[arg(long, value_name = "MS", default_value_t = 40, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(crate) retry_delay: u32,

    /// Size of a full TCP segment, in frames
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=12))]
    pub(crate) mss_frames: u8,

    /// Buffers of each TCP end, in full segments
    #[arg(long, value_name = "SEGMENTS", default_value_t = 4, value_parser = clap::value_parser!(u8).range(1..=32))]
    pub(crate) window: u8,

    /// Seed of every random choice in the air and the motes
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
}

/// Beyond this the address plan has no numbers left.
const HOPS_MAX: i64 = 32;

/// Which way the file travels: from the mote to the host, or from the host to the mote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Direction {
    Up,
    Down,
}

fn probability(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if (0.0..=1.0).contains(&value) => Ok(value),
        _ => Err("a probability lies between 0 and 1".to_owned()),
    }
}

/// Sends the file and reports.
pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let content = files::read(&args.file)?;
    let pcap = match &args.pcap {
        Some(path) => Some(files::NewFile::create(path, args.force)?),
        None => None,
    };
    let _ = (content, pcap);
    Ok(())
}
