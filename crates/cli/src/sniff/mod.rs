//! `motet sniff`: the frames of the real air, by a radio that acknowledges nothing.
//!
//! Place: `motet-radio` drives the radio; here its frames become a capture, and its energy scan a
//! table.

use std::time;

use clap::{ArgGroup, Args as ClapArgs};

use crate::{capture::CaptureArgs, error::Error, json::Json, number::whole};

#[cfg(unix)]
mod air;
#[cfg(unix)]
mod scan;
#[cfg(unix)]
mod source;

/// Capture the real air with an 802.15.4 radio, or measure how busy its channels are.
///
/// The radio is a co-processor (RCP): a dongle with OpenThread's ot-rcp; or a monitor interface of
/// Linux's own 802.15.4. It receives all frames of one channel, of every network, and acknowledges
/// none. A capture ends with Ctrl-C. A dongle that is unplugged meanwhile is awaited.
#[derive(Debug, ClapArgs)]
#[command(group = ArgGroup::new("work").args(["pcap", "scan"]).required(true))]
#[command(after_help = "Examples:\n  \
    motet sniff --radio 'spinel+hdlc+uart:///dev/ttyACM0' --scan\n  \
    motet sniff --radio 'spinel+hdlc+uart:///dev/ttyACM0?uart-baudrate=460800' \\\n    \
    --channel 15 --pcap - | wireshark -k -i -\n  \
    motet sniff --radio 'spinel+hdlc+uart:///dev/ttyACM0' --channel 26 \\\n    \
    --seconds 60 --pcap air.pcap")]
pub(crate) struct Args {
    /// The radio, by the URL that OpenThread's daemon takes: spinel+hdlc+uart://DEVICE or
    /// spinel+hdlc+forkpty://PROGRAM; or wpan:mon0, a monitor of Linux
    #[arg(long, value_name = "URL")]
    radio: String,

    /// The channel to listen on, 11 to 26
    #[arg(long, value_name = "N", required_unless_present = "scan", conflicts_with = "scan", allow_negative_numbers = true, value_parser = whole::<u8>(11..=26))]
    channel: Option<u8>,

    #[command(flatten)]
    capture: CaptureArgs,

    /// End the capture after this many seconds
    #[arg(long, value_name = "N", conflicts_with = "scan", allow_negative_numbers = true, value_parser = whole::<u32>(1..=u64::MAX))]
    seconds: Option<u32>,

    /// Measure the strongest signal on each channel, 11 to 26, and print a table
    #[arg(long)]
    scan: bool,

    #[command(flatten)]
    json: Json,
}

/// Captures or scans: only on Unix, where radios can be driven.
#[cfg(not(unix))]
pub(crate) fn run(_: &Args) -> Result<(), Error> {
    Err(Error::failed(
        "no radio can be driven on this system: run motet sniff on Linux or macOS",
    ))
}

/// Captures or scans.
///
/// # Errors
/// There is no such radio, or none of use; the capture cannot be written.
#[cfg(unix)]
pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let as_json = args.json.beside(args.capture.takes_stdout())?;
    let interrupt = crate::interrupt::Interrupt::install()?;
    #[cfg(target_os = "linux")]
    if args.scan && args.radio.starts_with("wpan:") {
        return Err(Error::input(source::NO_SCAN));
    }
    let channel = args.channel.unwrap_or(CHANNEL_MIN);
    let Some(radio) = air::Radio::start(&args.radio, channel, &interrupt)? else {
        return Ok(());
    };
    if args.scan {
        return scan::run(radio, as_json);
    }
    let seconds = args.seconds.map(u64::from);
    let after = seconds.map(time::Duration::from_secs);
    air::run(radio, &args.capture, after, as_json)
}

/// The first channel of 2.4 GHz.
#[cfg(unix)]
const CHANNEL_MIN: u8 = 11;
