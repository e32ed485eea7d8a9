//! `motet keys`: makes the secret of a network, and shows analysers its key.
//!
//! Place: the key file is read by the commands that take `--key`.
//! Source: Thread 1.1 §7.1.4, by whose rule link keys follow from a network key.

mod file;

use std::path::PathBuf;

use clap::Subcommand;

pub(crate) use self::file::read;
use crate::error::Error;
use crate::output;
pub(crate) use motet_lab::keys::{Keys, from_hex};

/// Make the secret key of a network, and show Wireshark how to read its frames.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  motet keys new team.key\n  motet decode air.pcap --key team.key\n  \
                  tshark -r air.pcap -o \"$(motet keys wireshark team.key)\""
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a key file, which its owner alone may read.
    New {
        /// The file to make; one that exists is left alone.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Print the setting by which Wireshark and tshark decrypt the network's frames.
    ///
    /// One entry does for all rotations of the key: the key sequence is followed by Thread's rule.
    Wireshark {
        /// The key file.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// Runs `motet keys`.
///
/// # Errors
/// [`Error::Input`] where the file is there already, or is none that can be read.
pub(crate) fn run(args: &Args) -> Result<(), Error> {
    match &args.command {
        Command::New { file } => file::create(file),
        Command::Wireshark { file } => {
            let key = read(file)?.network_key_hex();
            let setting = format!("uat:ieee802154_keys:\"{key}\",\"0\",\"Thread hash\"");
            output::line(&setting)
        }
    }
}
