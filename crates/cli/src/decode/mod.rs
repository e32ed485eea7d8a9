//! `motet decode FILE.pcap`: explain a capture frame by frame.

use crate::error::Error;

/// Explain a capture frame by frame.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: motet decode air.pcap")]
pub(crate) struct Args {}

pub(crate) fn run(_: &Args) -> Result<(), Error> {
    Err(Error::failed("not built yet"))
}
