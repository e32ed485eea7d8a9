//! `motet decode`: explains a capture frame by frame.
//!
//! Place: `motet-decode` explains the frames; this file opens captures and prints the explanations.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anstream::{AutoStream, ColorChoice};
use motet_decode::{Capture, CaptureError, Context, Decoder, Ending, Frame, Look};

use crate::error::Error;
use crate::grid;
use crate::keys::CaptureKeys;
use crate::output::{self, Versioned};

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
    /// The capture file; `-` reads standard input.
    #[arg(value_name = "FILE.pcap")]
    file: PathBuf,

    /// The file holds the bytes of a serial line with Spinel, and is no capture.
    ///
    /// It may hold either direction or both, from any moment on. It has no times: all frames are at
    /// 0 s.
    #[arg(long)]
    spinel: bool,

    /// Print one JSON object per frame and line.
    #[arg(long)]
    json: bool,

    /// Print only the closing summary: conversations, and what could not be decoded.
    #[arg(long)]
    summary: bool,

    /// A header compression context that the capture does not show being announced.
    #[arg(long, value_name = "ID=PREFIX/LEN", value_parser = str::parse::<Context>)]
    context: Vec<Context>,

    /// Decrypt 802.15.4 frames and Thread's messages: a key file, a network key, or a dataset.
    ///
    /// A network key has 32 hexadecimal digits. A dataset is what ot-ctl dataset active -x prints
    /// of a Thread network: its digits, a file with them, or - for standard input. Where frames
    /// have short addresses, the extended ones are learned from the capture. No key is shown.
    ///
    /// With raw: in front, the digits are the AES key of the frames themselves, as Contiki-NG's
    /// llsec and Wi-SUN's group keys are; also where frames name no key. It may be given several
    /// times.
    #[arg(long, value_name = "FILE|KEY|DATASET|raw:KEY")]
    key: Vec<String>,

    /// The key index of frames that a raw key is for; the first belongs to the first raw key.
    ///
    /// Without it a raw key is tried for every frame.
    #[arg(long, value_name = "N")]
    key_index: Vec<u8>,

    /// What 802.15.4 frames end in where the link type says: in an FCS.
    ///
    /// A radio by TI puts signal strength and correlation in the FCS's place, and some programs
    /// leave it out. auto finds it out from the first frames.
    #[arg(long, value_enum, default_value = "auto")]
    fcs: FcsKind,
}

/// What the frames of a capture end in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum FcsKind {
    /// What the first frames show.
    Auto,
    /// The FCS.
    Crc,
    /// The metadata of a TI radio (CC24xx and later) in the FCS's place.
    Ti,
    /// Nothing.
    None,
}

impl FcsKind {
    /// What the frames of `capture` end in.
    pub(crate) fn ending(self, capture: &mut Capture) -> Ending {
        match self {
            Self::Auto => capture.ending(),
            Self::Crc => Ending::Crc,
            Self::Ti => Ending::Metadata,
            Self::None => Ending::Nothing,
        }
    }
}

/// Runs `motet decode`.
///
/// # Errors
/// [`Error::Input`] where the file is not a capture, is damaged, or has a link type that `decode`
/// does not read; the frames before the damage are printed.
pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let unreadable = |error: CaptureError| unreadable(&args.file, &error);
    if args.key.iter().any(|key| key == "-") && args.file.as_os_str() == "-" {
        return Err(Error::input(
            "the capture and --key cannot both be standard input: name a file for one of them",
        ));
    }
    let keys = CaptureKeys::read(&args.key, &args.key_index)?;
    let mut capture = open_file(&args.file, args.spinel).map_err(unreadable)?;
    let mut decoder = keys.decoder(&args.context);
    decoder.end_frames_in(args.fcs.ending(&mut capture));
    if !args.key.is_empty() && is_read_twice(&args.file) {
        decoder = informed(
            decoder,
            open_file(&args.file, args.spinel).map_err(unreadable)?,
        );
    }
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

/// Why a capture cannot be read (further).
pub(crate) fn unreadable(file: &Path, error: &CaptureError) -> Error {
    let file = match file.as_os_str() == "-" {
        true => "standard input".into(),
        false => file.display().to_string(),
    };
    Error::input(format!("cannot decode {file}: {error}"))
}

/// Whether the capture can be read twice: it is a file, not a pipe and nothing that grows.
pub(crate) fn is_read_twice(file: &Path) -> bool {
    file.as_os_str() != "-" && file.metadata().is_ok_and(|file| file.is_file())
}

/// A decoder that knows what `capture` shows, so that frames are opened that are ahead of the
/// message which explains them.
pub(crate) fn informed(mut decoder: Decoder, mut capture: Capture) -> Decoder {
    // What cannot be read is reported when the frames are shown.
    while let Some(Ok(record)) = capture.next_record() {
        decoder.decode(&record);
    }
    decoder.rewound()
}

/// Opens a file, or standard input where the path is `-`.
pub(crate) fn open_file(path: &Path, is_spinel: bool) -> Result<Capture, CaptureError> {
    let input: Box<dyn Read> = if path.as_os_str() == "-" {
        Box::new(io::stdin())
    } else {
        let file = File::open(path).map_err(CaptureError::Io)?;
        if file.metadata().map_err(CaptureError::Io)?.is_dir() {
            return Err(CaptureError::Io(io::ErrorKind::IsADirectory.into()));
        }
        Box::new(file)
    };
    match is_spinel {
        true => Capture::of_serial_line(input),
        false => Capture::new(input),
    }
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
            json: args.json,
            frames: !args.summary,
            at_once: args.file.as_os_str() == "-",
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
