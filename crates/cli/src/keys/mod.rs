//! `motet keys`: makes and changes the secret of a network, and shows analysers its key.
//!
//! Place: the key file is read by the commands that take `--key`.
//! Source: the rule by which link keys follow from a network key, Thread 1.1 §7.1.4.

mod dataset;
mod file;

use std::path::{Path, PathBuf};

use clap::Subcommand;
use sha2::{Digest as _, Sha256};

pub(crate) use self::dataset::CaptureKeys;
pub(crate) use self::file::{read, read_join_key};
use motet_lab::keys::{KeyFile, hex};
use motet_lab::net::network::{NetworkOptions, SecurityOptions};

use crate::error::Error;
use crate::output;
pub(crate) use motet_lab::keys::{Keys, from_hex};

/// Make and change the secret key of a network, and show Wireshark how to read its frames.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  motet keys new team.key\n  motet keys rotate team.key\n  motet keys network team.key --format c > key.h\n  motet decode air.pcap --key team.key\n  \
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
    /// Print a device's own join key, which goes into its memory.
    ///
    /// It follows from the secret of the key file and the device's address. With it the device asks
    /// a registrar for the key of the network (RFC 9031); it opens no frame.
    Device {
        /// The key file.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The device's extended address, 16 hexadecimal digits; colons and dashes may divide them.
        #[arg(value_name = "EUI64", value_parser = eui64)]
        mote: Eui64,
        /// As 32 hexadecimal digits, or as an array for a source of C or Rust.
        #[arg(long, value_name = "FORMAT", default_value = "hex")]
        format: KeyFormat,
    },
    /// Print the network key itself for a device's firmware, with the key sequence and the PAN
    /// identifier.
    ///
    /// Whoever has it can read the network's frames and write them. A device with it joins a router
    /// that has the key file; it follows rotations by itself, but not a revocation. Never put it on
    /// a device whose stored frame counters are lost.
    Network {
        /// The key file.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// As hexadecimal digits, or as constants for a source of C or Rust.
        #[arg(long, value_name = "FORMAT", default_value = "hex")]
        format: KeyFormat,
    },
    /// Go on to the next link key: motes follow a border router that has it.
    ///
    /// A router that runs reads the file again at SIGHUP: motet router --air, --radio.
    Rotate {
        /// The key file.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Go on to the next network key, and note the mote that is not to get it.
    ///
    /// A router that runs reads the file again at SIGHUP, and gives the new key to motes that have
    /// joined by CoJP; others have to be given it. Frames from before are read with a copy of the
    /// old file alone.
    Revoke {
        /// The key file.
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// The mote's extended address, 16 hexadecimal digits; colons and dashes may divide them.
        #[arg(value_name = "EUI64", value_parser = eui64)]
        mote: Eui64,
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

/// How a key is printed.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum KeyFormat {
    /// C99.
    C,
    /// Rust.
    Rust,
    /// Digits.
    Hex,
}

/// Runs `motet keys`.
///
/// # Errors
/// [`Error::Input`] where the file is there already, or is none that can be read.
pub(crate) fn run(args: &Args) -> Result<(), Error> {
    match &args.command {
        Command::New { file } => file::create(file),
        Command::Device { file, mote, format } => {
            let key = KeyFile::read(file).and_then(|keys| keys.join_key(mote.0));
            let key = key.map_err(Error::input)?;
            output::line(&match format {
                KeyFormat::Hex => hex(key.as_bytes()),
                KeyFormat::C => format!("{{{}}}", list(key.as_bytes())),
                KeyFormat::Rust => format!("[{}]", list(key.as_bytes())),
            })
        }
        Command::Network { file, format } => output::line(constants(&read(file)?, *format)),
        Command::Rotate { file } => file::change(file, KeyFile::rotate),
        Command::Revoke { file, mote } => file::change(file, |keys| keys.revoke(mote.0)),
        Command::Wireshark { file } => {
            let key = read(file)?.network_key_hex();
            let setting = format!("uat:ieee802154_keys:\"{key}\",\"0\",\"Thread hash\"");
            output::line(&setting)
        }
    }
}

/// Bytes as sources of C and Rust have them.
fn list(bytes: &[u8]) -> String {
    let bytes = bytes.iter().map(|byte| format!("{byte:#04x}"));
    bytes.collect::<Vec<_>>().join(", ")
}

/// What a device with the network's key is given.
fn constants(keys: &Keys, format: KeyFormat) -> String {
    let (sequence, pan) = (keys.sequence, pan_of(keys));
    let bytes = list(keys.network.as_bytes());
    match format {
        KeyFormat::Hex => {
            let network = keys.network_key_hex();
            format!("network key {network}\nsequence {sequence}\npan {pan:#06x}")
        }
        KeyFormat::C => format!(
            "static const uint8_t network_key[16] = {{{bytes}}};\n\
             static const uint32_t key_sequence = {sequence};\n\
             static const uint16_t pan = {pan:#06x};"
        ),
        KeyFormat::Rust => format!(
            "const NETWORK_KEY: [u8; 16] = [{bytes}];\n\
             const KEY_SEQUENCE: u32 = {sequence};\n\
             const PAN: u16 = {pan:#06x};"
        ),
    }
}

/// The PAN identifier of all nodes with a key: it follows from the name of the key, which stays
/// when the key is rotated.
pub(crate) fn pan_of(keys: &Keys) -> u16 {
    let digest = Sha256::digest(format!("motet PAN {}", keys.name));
    let mut pairs = digest.as_chunks::<2>().0.iter();
    // 0xffff is no PAN's.
    let found = pairs.find_map(|pair| Some(u16::from_be_bytes(*pair)).filter(|pan| *pan != 0xffff));
    found.unwrap_or(0)
}

/// Gives a mesh the key of a file, in the place of a scenario's.
///
/// # Errors
/// [`Error::Input`] where the key cannot be read, or the mesh is one of Bluetooth LE.
pub(crate) fn give(options: &mut NetworkOptions, file: &Path) -> Result<(), Error> {
    let Keys {
        network,
        sequence,
        name,
    } = read(file)?;
    if !options.has_mesh() {
        return Err(Error::input(
            "--key must be left out with radio.kind \"ble\", which has security of its own",
        ));
    }
    let security = match options.security {
        Some(security) if security.join_secret.is_some() => {
            let secret = KeyFile::read(file).and_then(|file| file.join_secret());
            let security = security.with_key(network, sequence);
            security.joined_by(secret.map_err(Error::input)?)
        }
        Some(security) => security.with_key(network, sequence),
        None => SecurityOptions::new(network, sequence),
    };
    options.security = Some(security.named(name));
    Ok(())
}

/// An extended address, most significant byte first.
#[derive(Clone, Copy, Debug)]
struct Eui64([u8; 8]);

fn eui64(text: &str) -> Result<Eui64, String> {
    let digits = text.replace([':', '-'], "");
    let bytes = from_hex(&digits).map(Eui64);
    bytes.ok_or_else(|| "an extended address has 16 hexadecimal digits".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pan_identifier_follows_from_the_key_and_outlives_its_rotation() {
        let mut file = KeyFile::new(&[7; motet_lab::keys::SECRET_LEN]);
        let first = pan_of(&file.keys().unwrap());
        file.rotate().unwrap();
        file.revoke([1; 8]).unwrap();
        assert_eq!(pan_of(&file.keys().unwrap()), first);
        let other = KeyFile::new(&[8; motet_lab::keys::SECRET_LEN]);
        assert_ne!(pan_of(&other.keys().unwrap()), first);
    }

    #[test]
    fn a_device_is_given_what_the_router_has() {
        let mut file = KeyFile::new(&[7; motet_lab::keys::SECRET_LEN]);
        file.rotate().unwrap();
        let keys = file.keys().unwrap();
        let (key, pan) = (keys.network.as_bytes(), pan_of(&keys));
        let bytes = key.map(|byte| format!("0x{byte:02x}")).join(", ");
        let says = |format, parts: [String; 3]| {
            let said = constants(&keys, format);
            for part in parts {
                assert!(said.contains(&part), "{part} is not in {said}");
            }
        };
        says(
            KeyFormat::C,
            [
                format!("network_key[16] = {{{bytes}}};\n"),
                "key_sequence = 1;\n".into(),
                format!("pan = {pan:#06x};"),
            ],
        );
        says(
            KeyFormat::Rust,
            [
                format!("NETWORK_KEY: [u8; 16] = [{bytes}];\n"),
                "KEY_SEQUENCE: u32 = 1;\n".into(),
                format!("PAN: u16 = {pan:#06x};"),
            ],
        );
        says(
            KeyFormat::Hex,
            [
                keys.network_key_hex(),
                "sequence 1\n".into(),
                format!("pan {pan:#06x}"),
            ],
        );
    }
}
