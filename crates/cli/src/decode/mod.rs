//! `motet decode`: explains a capture frame by frame.
//!
//! ```text
//! capture -> link -> (tap, zep) -> mac -> lowpan -> ip -> icmpv6 -> rpl
//!                 -> bluetooth  -------> lowpan
//!  records            envelope   reassembly, tcphc    -> tcp     -> conversation
//!                                                     -> udp     -> coap, zep
//! ```
//!
//! Each module adds its layer to a [`model::Frame`] and calls the next; `text` prints the
//! frame for people, serde for programs. The parsers are the stack's own (`motet::wire`,
//! `motet::lowpan`), so that what this command calls malformed is what a node drops.
//! Left out: what is above TCP.

mod bluetooth;
mod capture;
mod coap;
mod conversation;
mod elements;
mod envelope;
mod icmpv6;
mod ip;
mod link;
mod lowpan;
mod mac;
mod model;
mod pcapng;
mod ranges;
mod reassembly;
mod rpl;
mod secured;
mod summary;
mod tap;
mod tcp;
mod tcphc;
#[cfg(test)]
mod tests;
mod text;
mod udp;
mod zep;

use std::io::{self, BufWriter, Write};
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};

use motet::lowpan::Contexts;
use motet::wire::LinkAddr;

use self::capture::{Capture, CaptureError, Record};
use self::model::{Frame, Status};
use self::summary::Tally;
use self::text::Look;
use crate::error::Error;
use crate::keys::{self, Keys};
use crate::output::{self, Versioned};

/// Explain a capture frame by frame: 802.15.4, Bluetooth LE, 6LoWPAN, IPv6, TCP, RPL, CoAP.
///
/// Reads pcap and pcapng files of IEEE 802.15.4 (with or without FCS, PHY or TAP header), Bluetooth LE (link
/// type 256), raw IP, Ethernet and Linux cooked captures, and ZEP datagrams in them. Fragments are
/// reassembled and explained with the last of them.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  motet decode air.pcap\n  \
                        motet decode air.pcap --context 0=fd00::/64 --summary\n  \
                        motet decode air.pcap --json | jq 'select(.status == \"malformed\")'")]
pub(crate) struct Args {
    /// The capture file; `-` reads standard input.
    #[arg(value_name = "FILE.pcap")]
    file: PathBuf,

    /// Print one JSON object per frame and line.
    #[arg(long)]
    json: bool,

    /// Print only the closing summary: conversations, and what could not be decoded.
    #[arg(long)]
    summary: bool,

    /// A header compression context that the capture does not show being announced.
    #[arg(long, value_name = "ID=PREFIX/LEN", value_parser = parse_context)]
    context: Vec<Context>,

    /// Decrypt 802.15.4 frames: a key file, or a network key.
    ///
    /// A network key has 32 hexadecimal digits; that of a Thread network does as well. Only frames with
    /// their sender's extended address can be decrypted.
    #[arg(long, value_name = "FILE|KEY")]
    key: Option<String>,
}

/// A 6LoWPAN context (RFC 6282 §3.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Context {
    id: u8,
    prefix: Ipv6Addr,
    len: u8,
}

fn parse_context(text: &str) -> Result<Context, String> {
    let parts = || {
        let (id, rest) = text.split_once('=')?;
        let (prefix, len) = rest.split_once('/').unwrap_or((rest, "64"));
        Some(Context {
            id: id.parse().ok()?,
            prefix: prefix.parse().ok()?,
            len: len.parse().ok()?,
        })
    };
    match parts() {
        Some(context) if context.id > 15 => Err("the identifier must be 0 to 15".into()),
        Some(context) if context.len > 128 => Err("the prefix length must be 0 to 128".into()),
        Some(context) => Ok(context),
        None => Err("expected an identifier and a prefix, such as 0=fd00::/64".into()),
    }
}

/// The keys that `--key` names: digits or a file.
fn keys(text: &str) -> Result<Keys, Error> {
    match keys::from_hex(text) {
        Some(bytes) => Ok(Keys::of_network_key(bytes)),
        None => keys::read(Path::new(text)),
    }
}

/// Runs `motet decode`.
///
/// # Errors
/// [`Error::Input`] where the file is not a capture, is damaged, or has a link type that `decode`
/// does not read; the frames before the damage are printed.
pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let unreadable = |error: CaptureError| {
        let file = if args.file.as_os_str() == "-" {
            "standard input".into()
        } else {
            args.file.display().to_string()
        };
        Error::input(format!("cannot decode {file}: {error}"))
    };
    let keys = args.key.as_deref().map(keys).transpose()?;
    let mut capture = Capture::open(&args.file).map_err(unreadable)?;
    let mut decoder = Decoder::new(&args.context);
    decoder.keys = keys;
    let mut printer = Printer::new(args);
    let ended = loop {
        match capture.next_record() {
            None => break Ok(()),
            Some(Err(error)) => break Err(unreadable(error)),
            Some(Ok(record)) => {
                if decoder.tally.frames == 0 && !record.link_type.is_supported() {
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
    if ended.is_ok() || decoder.tally.frames > 0 {
        printer
            .summary(&decoder)
            .map_err(|error| output::stdout_error(&error))?;
    }
    ended
}

/// Explains the capture `bytes` both ways, for people and for programs, as `motet decode`
/// would; returns the number of frames before its end, or before what cannot be read.
///
/// For the fuzzer: bytes of any kind give explanations or an error in words, never a panic.
///
/// # Errors
/// Those of writing to `out`.
pub fn explain(bytes: Vec<u8>, out: &mut dyn Write) -> io::Result<u64> {
    let mut capture = match Capture::new(Box::new(io::Cursor::new(bytes))) {
        Ok(capture) => capture,
        Err(error) => return writeln!(out, "{error}").map(|()| 0),
    };
    let mut decoder = Decoder::new(&[]);
    decoder.keys = Some(Keys::of_network_key([0; 16]));
    let look = Look::plain();
    while let Some(record) = capture.next_record() {
        let frame = match record {
            Ok(record) => decoder.decode(&record),
            Err(error) => {
                writeln!(out, "{error}")?;
                break;
            }
        };
        look.frame(out, &frame)?;
        serde_json::to_writer(&mut *out, &frame)?;
    }
    let summary = summary::Summary::of(&decoder);
    summary.print(look, out)?;
    serde_json::to_writer(&mut *out, &summary)?;
    Ok(decoder.tally.frames)
}

/// What goes to standard output, in which form.
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
            look: Look::of_stdout(),
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
        let summary = summary::Summary::of(decoder);
        if !self.json {
            summary.print(self.look, &mut self.out)?;
        } else if !self.frames {
            serde_json::to_writer(&mut self.out, &Versioned::new(&summary))?;
            writeln!(self.out)?;
        }
        self.out.flush()
    }
}

/// What is remembered from frame to frame.
struct Decoder {
    contexts: Contexts,
    /// The root's address, as the last DIO gave it.
    dodag: Option<Ipv6Addr>,
    reassembly: reassembly::Reassembly,
    compressions: tcphc::Compressions,
    conversations: conversation::Conversations,
    heard: mac::Heard,
    /// What secured frames are opened with.
    keys: Option<Keys>,
    ble: bluetooth::Connections,
    tally: Tally,
    /// About the frame in hand.
    now: Now,
}

/// What inner layers need to know about the frame around them.
#[derive(Clone, Copy, Debug, Default)]
struct Now {
    number: u64,
    at_ns: u64,
    /// The link sender, where the link has one.
    heard_from: Option<LinkAddr>,
    /// The same frame has been heard before: a retry of the link.
    repeat: bool,
    /// The FCS does not match.
    fcs_wrong: bool,
    /// Packets around this one; hostile captures could nest them without end.
    depth: u8,
}

impl Now {
    /// Whether the frame counts for what is learned: contexts, fragments, conversations.
    const fn countable(&self) -> bool {
        !self.repeat && !self.fcs_wrong
    }
}

impl Decoder {
    fn new(given: &[Context]) -> Self {
        let mut contexts = Contexts::new();
        for context in given {
            contexts.set(context.id, context.prefix, context.len, true);
        }
        Self {
            contexts,
            dodag: None,
            reassembly: reassembly::Reassembly::default(),
            compressions: tcphc::Compressions::default(),
            conversations: conversation::Conversations::default(),
            heard: mac::Heard::default(),
            keys: None,
            ble: bluetooth::Connections::default(),
            tally: Tally::default(),
            now: Now::default(),
        }
    }

    /// Explains the next record.
    fn decode(&mut self, record: &Record) -> Frame {
        let number = self.tally.frames + 1;
        self.now = Now {
            number,
            at_ns: record.epoch_ns,
            ..Now::default()
        };
        let start_ns = *self.tally.start_ns.get_or_insert(record.epoch_ns);
        let mut frame = Frame {
            number,
            epoch_ns: record.epoch_ns,
            since_start_ns: record.epoch_ns.wrapping_sub(start_ns).cast_signed(),
            captured_len: record.data.len(),
            original_len: record.original_len,
            path: String::new(),
            summary: String::new(),
            layers: Vec::new(),
            status: Status::Decoded,
        };
        link::explain(self, &mut frame, record);
        self.conclude(&mut frame);
        self.tally.count(&frame);
        frame
    }

    /// What the frame as a whole says about the problem met inside.
    fn conclude(&self, frame: &mut Frame) {
        if frame.is_cut()
            && let Status::Malformed(problem) = &frame.status
        {
            // The rest was not captured, so nothing says whether it was well formed.
            frame.undecoded(
                problem.layer,
                format!("cut by the capture's snap length ({})", problem.reason),
            );
        } else if self.now.fcs_wrong {
            // The content is a guess; what seems wrong in it is a consequence.
            let wrong = motet::wire::ieee802154::ParseError::Fcs.reason();
            frame.malformed(
                "mac",
                match frame.status.problem() {
                    Some(problem) => format!("{wrong}; besides, {}", problem.reason),
                    None => wrong.to_owned(),
                },
            );
        }
        if frame.summary.is_empty() {
            frame.say("?");
        }
        if let Status::Malformed(_) = frame.status {
            frame.summary.push_str("  [malformed]");
        }
    }
}
