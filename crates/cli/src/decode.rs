//! `motet decode`: explains a capture frame by frame.
//!
//! Place: `motet-decode` explains the frames, [`Source`] opens the capture; this file prints the
//! explanations.

use std::io::{self, BufWriter, Write};

use anstream::{AutoStream, ColorChoice};
use motet_decode::{CaptureError, Decoder, Frame, Look};

use crate::error::Error;
use crate::grid;
use crate::json::Json;
use crate::output::{self, Versioned};
use crate::source::Source;

/// Explain a capture frame by frame: 802.15.4, Bluetooth LE, 6LoWPAN, IPv6, TCP, RPL, CoAP, Spinel.
///
/// Reads pcap and pcapng files of IEEE 802.15.4 (with or without FCS, TI's metadata in its place,
/// PHY, TAP or PPI header), Bluetooth LE (link types 251, 256 and nRF Sniffer's 272), raw IP,
/// loopback, Ethernet and Linux cooked captures, and ZEP datagrams in them. Fragments are
/// reassembled and explained with the last of them.
///
/// Spinel, which a dongle with ot-rcp speaks, is read from captures of a private link type (147 to
/// 162) or of none (0), a frame in each packet, with or without HDLC-lite; and with --spinel from
/// the bytes of its serial line.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  motet decode air.pcap\n  \
                        motet decode air.pcap --context 0=fd00::/64 --summary\n  \
                        motet decode air.pcap --json | jq 'select(.status == \"malformed\")'\n  \
                        motet decode home.pcap --key \"$(ot-ctl dataset active -x)\"\n  \
                        motet decode llsec.pcap --key raw:00112233445566778899aabbccddeeff\n  \
                        motet decode --spinel dongle.log")]
pub(crate) struct Args {
    #[command(flatten)]
    source: Source,

    /// The file holds the bytes of a serial line with Spinel, and is no capture.
    ///
    /// It may hold either direction or both, from any moment on. It has no times: all frames are at
    /// 0 s.
    #[arg(long)]
    spinel: bool,

    #[command(flatten)]
    json: Json,

    /// Print only the closing summary: conversations, and what could not be decoded.
    #[arg(long)]
    summary: bool,
}

/// Runs `motet decode`.
///
/// # Errors
/// [`Error::Input`] where the file is not a capture, is damaged, or has a link type that `decode`
/// does not read; the frames before the damage are printed.
pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let unreadable = |error: CaptureError| args.source.unreadable(&error);
    let (mut capture, mut decoder) = args.source.open(args.spinel)?;
    let mut printer = Printer::new(args);
    let ended = loop {
        match capture.next_record() {
            None => break Ok(()),
            Some(Err(error)) => break Err(unreadable(error)),
            Some(Ok(record)) => {
                if decoder.frames() == 0 && !record.link_type.is_supported() {
                    break Err(unreadable(CaptureError::LinkType(record.link_type)));
                }
                let frame = decoder.decode(&record);
                printer
                    .frame(&frame)
                    .map_err(|error| output::stdout_error(&error))?;
            }
        }
    };
    // Where nothing could be read there is nothing to sum up.
    if ended.is_ok() || decoder.frames() > 0 {
        printer
            .summary(&decoder)
            .map_err(|error| output::stdout_error(&error))?;
    }
    ended
}

/// As fits standard output: colour where it is a terminal and `NO_COLOR` is not set.
pub(crate) fn look_of_stdout() -> Look {
    let stdout = io::stdout();
    let colour = AutoStream::choice(&stdout) != ColorChoice::Never;
    Look {
        colour,
        columns: grid::columns(),
    }
}

/// Prints frames to standard output, in the form asked for.
struct Printer {
    out: BufWriter<io::Stdout>,
    look: Look,
    json: bool,
    frames: bool,
    /// Standard input may be live; then every frame is shown when it comes.
    at_once: bool,
}

impl Printer {
    fn new(args: &Args) -> Self {
        Self {
            look: look_of_stdout(),
            out: BufWriter::new(io::stdout()),
            json: args.json.is_on(),
            frames: !args.summary,
            at_once: args.source.is_stdin(),
        }
    }

    fn frame(&mut self, frame: &Frame) -> io::Result<()> {
        if !self.frames {
            return Ok(());
        }
        if self.json {
            serde_json::to_writer(&mut self.out, &Versioned::new(frame))?;
            writeln!(self.out)?;
        } else {
            self.look.frame(&mut self.out, frame)?;
        }
        if self.at_once {
            self.out.flush()
        } else {
            Ok(())
        }
    }

    /// Prints the summary; with `--json` only on request, so that each line is a frame.
    fn summary(&mut self, decoder: &Decoder) -> io::Result<()> {
        let summary = decoder.summary();
        if !self.json {
            summary.print(self.look, &mut self.out)?;
        } else if !self.frames {
            serde_json::to_writer(&mut self.out, &Versioned::new(&summary))?;
            writeln!(self.out)?;
        }
        self.out.flush()
    }
}
