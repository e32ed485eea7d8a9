//! Explains captures of low-power wireless networks, frame by frame.
//!
//! ```text
//! capture -> link -> (tap, zep) -> mac -> lowpan -> ip -> icmpv6 -> rpl
//!                 -> hdlc -> spinel -> mac
//!                 -> bluetooth  -------> lowpan
//!  records            envelope   reassembly, tcphc    -> tcp     -> conversation
//!                                                     -> udp     -> coap, zep, thread
//! ```
//!
//! Each layer's module adds its layer to a [`Frame`] and returns what follows: the next layer's
//! number and its bytes. `layers` alone knows which layer a number names, and calls it; so a new
//! layer is a file of its own and a line in `layers.rs`. [`Look`] prints the frame for people,
//! serde for programs. The parsers are the stack's own (`motet::wire`, `motet::lowpan`), so a frame
//! is reported as malformed exactly if a node would drop it. Data flow: [`Capture`] takes bytes
//! apart into records, [`Decoder`] makes a [`Frame`] of each, and a [`Summary`] at the end. Left
//! out: protocols above TCP; files and terminals, which the caller handles.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

/// The example of the README, compiled with the documentation's own.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod addresses;
mod capture;
mod conversation;
mod diagnosis;
mod ending;
mod layers;
mod line;
mod mask;
mod model;
mod next;
mod odd_pcap;
mod pcapng;
mod ranges;
mod raw;
mod reassembly;
mod secured;
mod summary;
#[cfg(test)]
mod tests;
mod text;

use std::io::{self, Write};
use std::net::Ipv6Addr;
use std::str::FromStr;

use motet::limits::PSDU_LEN_MAX;
use motet::lowpan::Contexts;
use motet::mac::security::{KEY_LEN, NetworkKey};
use motet::wire::{LinkAddr, ieee802154};

pub use self::capture::{Capture, CaptureError, LinkType, Record};
pub use self::diagnosis::{Diagnosis, Examiner, Seen, SeenFlow, SeenLink};
pub use self::ending::Ending;
pub use self::model::{Audience, Field, Frame, Layer, Problem, Status, Value};
pub use self::summary::Summary;
pub use self::text::{COLUMNS, Look};

use self::addresses::Addresses;
use self::secured::Keys;
use self::summary::Tally;

/// A 6LoWPAN context (RFC 6282 §3.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Context {
    /// The context's identifier, 0 to 15.
    pub id: u8,
    /// The prefix that it stands for.
    pub prefix: Ipv6Addr,
    /// Bits of the prefix that count, 0 to 128.
    pub len: u8,
}

impl FromStr for Context {
    type Err = &'static str;

    /// Reads one as `0=fd00::/64`; without a length it is 64.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = || {
            let (id, rest) = text.split_once('=')?;
            let (prefix, len) = rest.split_once('/').unwrap_or((rest, "64"));
            Some(Self {
                id: id.parse().ok()?,
                prefix: prefix.parse().ok()?,
                len: len.parse().ok()?,
            })
        };
        match parts() {
            Some(context) if context.id > 15 => Err("the identifier must be 0 to 15"),
            Some(context) if context.len > 128 => Err("the prefix length must be 0 to 128"),
            Some(context) => Ok(context),
            None => Err("expected an identifier and a prefix, such as 0=fd00::/64"),
        }
    }
}

/// Explains the capture `bytes` both ways, for people and for programs, as `motet decode` and
/// `motet diagnose` would; returns the number of frames before its end, or before what cannot be
/// read.
///
/// For the fuzzer: bytes of any kind give explanations or an error in words, never a panic.
///
/// # Errors
/// Those of writing to `out`.
pub fn explain(bytes: Vec<u8>, out: &mut dyn Write) -> io::Result<u64> {
    let mut capture = match Capture::of_bytes(bytes) {
        Ok(capture) => capture,
        Err(error) => return writeln!(out, "{error}").map(|()| 0),
    };
    let mut decoder = Decoder::new(&[]);
    decoder.open_with(NetworkKey::new([0; KEY_LEN]), 0);
    decoder.open_with_raw([1; KEY_LEN], None);
    decoder.end_frames_in(capture.ending());
    let look = Look::PLAIN;
    let mut examiner = Examiner::new();
    while let Some(record) = capture.next_record() {
        let frame = match record {
            Ok(record) => decoder.decode(&record),
            Err(error) => {
                writeln!(out, "{error}")?;
                break;
            }
        };
        examiner.observe(&frame);
        look.frame(out, &frame)?;
        serde_json::to_writer(&mut *out, &frame)?;
    }
    let summary = decoder.summary();
    summary.print(look, out)?;
    serde_json::to_writer(&mut *out, &summary)?;
    writeln!(out, "{:?}", examiner.seen())?;
    let diagnosis = examiner.conclude();
    diagnosis.print_findings(look, out)?;
    serde_json::to_writer(&mut *out, &diagnosis)?;
    Ok(decoder.tally.frames)
}

/// The frames of IEEE 802.15.4 in a capture of any kind, each with its FCS, at most 127 bytes. One
/// that was received with a wrong FCS has a wrong one.
///
/// # Errors
/// The capture, or a kind of record in it, cannot be read.
pub fn mac_frames(bytes: Vec<u8>) -> Result<Vec<Box<[u8]>>, CaptureError> {
    let mut capture = Capture::of_bytes(bytes)?;
    let mut decoder = Decoder::new(&[]);
    decoder.end_frames_in(capture.ending());
    let mut frames: Vec<Box<[u8]>> = Vec::new();
    while let Some(record) = capture.next_record() {
        let record = record?;
        if !record.link_type.is_supported() {
            return Err(CaptureError::LinkType(record.link_type));
        }
        let Some((mut psdu, fcs_ok)) = decoder.mac_frame(&record) else {
            continue;
        };
        let fcs = ieee802154::fcs(&psdu) ^ u16::from(fcs_ok == Some(false));
        psdu.extend(fcs.to_le_bytes());
        if psdu.len() <= PSDU_LEN_MAX {
            frames.push(psdu.into());
        }
    }
    Ok(frames)
}

/// Explains records in the order of a capture, by what is remembered from frame to frame.
pub struct Decoder {
    contexts: Contexts,
    /// Each context as it was when it was first known.
    first_contexts: Contexts,
    /// The root's address, as the last DIO gave it.
    dodag: Option<Ipv6Addr>,
    reassembly: reassembly::Reassembly,
    compressions: layers::tcphc::Compressions,
    conversations: conversation::Conversations,
    heard: layers::mac::RecentFrames,
    /// The nodes of each PAN.
    addresses: Addresses,
    /// The keys by which secured frames are decrypted.
    keys: Option<Keys>,
    /// Keys of no known network, by which secured frames are decrypted.
    raw_keys: raw::RawKeys,
    /// Keys in the frame in hand, which are not to be shown.
    secrets: Vec<Vec<u8>>,
    ble: layers::bluetooth::Connections,
    /// What frames end in where their link type does not say.
    ending: Ending,
    /// Frames are decoded to find that out: nothing is believed about their FCS.
    is_trial: bool,
    /// The last frame of IEEE 802.15.4, without its FCS, and whether that was right.
    mac_frame: Option<(Vec<u8>, Option<bool>)>,
    spinel: layers::spinel::Transactions,
    tally: Tally,
    /// About the frame in hand.
    now: FrameContext,
}

/// The frame around inner layers, as far as they need it.
#[derive(Clone, Copy, Debug, Default)]
struct FrameContext {
    number: u64,
    at_ns: u64,
    /// The link sender, where the link has one.
    heard_from: Option<LinkAddr>,
    /// The sender's PAN, where the link has one.
    pan: Option<u16>,
    /// Whether the frame was heard before: a retry of the link.
    repeat: bool,
    /// The layer at which a check sum of the link is wrong, and the reason in words.
    check_wrong: Option<(&'static str, &'static str)>,
    /// Packets around this one; hostile captures could nest them without end.
    depth: u8,
}

impl FrameContext {
    /// Whether the frame counts for what is learned: contexts, fragments, conversations.
    const fn countable(&self) -> bool {
        !self.repeat && self.check_wrong.is_none()
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder")
            .field("tally", &self.tally)
            .finish()
    }
}

impl Decoder {
    /// A decoder that has seen nothing yet, with header compression contexts that the capture does
    /// not show being announced.
    pub fn new(given: &[Context]) -> Self {
        let mut contexts = Contexts::new();
        for context in given {
            contexts.set(context.id, context.prefix, context.len, true);
        }
        Self {
            first_contexts: contexts.clone(),
            contexts,
            dodag: None,
            reassembly: reassembly::Reassembly::default(),
            compressions: layers::tcphc::Compressions::default(),
            conversations: conversation::Conversations::default(),
            heard: layers::mac::RecentFrames::default(),
            addresses: Addresses::default(),
            keys: None,
            raw_keys: raw::RawKeys::default(),
            secrets: Vec::new(),
            ble: layers::bluetooth::Connections::default(),
            ending: Ending::default(),
            is_trial: false,
            mac_frame: None,
            spinel: layers::spinel::Transactions::default(),
            tally: Tally::default(),
            now: FrameContext::default(),
        }
    }

    /// Opens frames that are encrypted with the keys that follow from a network key by Thread's
    /// rule; `sequence` is where the key sequence stands, as far as is known.
    pub fn open_with(&mut self, network: NetworkKey, sequence: u32) {
        self.keys = Some(Keys::new(network, sequence));
    }

    /// Opens frames that are secured with this AES key itself: without an `index` whatever key a
    /// frame names, with one only those that name it, and those that name none (implicit mode).
    /// Several may be given.
    pub fn open_with_raw(&mut self, key: [u8; KEY_LEN], index: Option<u8>) {
        self.raw_keys.add(key, index);
    }

    /// Says what frames of IEEE 802.15.4 end in where their link type leaves it open
    /// ([`Capture::ending`] finds it out).
    pub const fn end_frames_in(&mut self, ending: Ending) {
        self.ending = ending;
    }

    /// A decoder for the same capture from its begin, which knows from the start what this one has
    /// learned on the way: whose a short address is, key sequences, header compression contexts.
    ///
    /// So frames are opened that are ahead of the message that explains them.
    #[must_use]
    pub fn rewound(self) -> Self {
        Self {
            contexts: self.first_contexts,
            addresses: self.addresses,
            keys: self.keys.map(Keys::rewound),
            raw_keys: self.raw_keys.rewound(),
            ending: self.ending,
            ..Self::new(&[])
        }
    }

    /// Takes over a header compression context.
    fn learn_context(&mut self, id: u8, prefix: Ipv6Addr, len: u8, compress: bool) {
        if self.first_contexts.get(id).is_none() {
            self.first_contexts.set(id, prefix, len, compress);
        }
        self.contexts.set(id, prefix, len, compress);
    }

    /// How many frames it has explained.
    pub fn frames(&self) -> u64 {
        self.tally.frames
    }

    /// The counts over all frames decoded so far.
    pub fn summary(&self) -> Summary {
        Summary::of(self)
    }

    /// The frame of IEEE 802.15.4 in a record, whatever is around it: without its FCS, and
    /// whether that was right, where the capture says it. Nothing where the record holds none, or
    /// not all of it.
    pub fn mac_frame(&mut self, record: &Record) -> Option<(Vec<u8>, Option<bool>)> {
        self.mac_frame = None;
        self.decode(record);
        let is_whole = record.data.len() as u64 >= u64::from(record.original_len);
        self.mac_frame.take().filter(|_| is_whole)
    }

    /// Explains the next record.
    pub fn decode(&mut self, record: &Record) -> Frame {
        let number = self.tally.frames + 1;
        self.now = FrameContext {
            number,
            at_ns: record.epoch_ns,
            ..FrameContext::default()
        };
        let start_ns = *self.tally.start_ns.get_or_insert(record.epoch_ns);
        let mut frame = Frame {
            number,
            epoch_ns: record.epoch_ns,
            since_start_ns: record.epoch_ns.wrapping_sub(start_ns).cast_signed(),
            captured_len: record.data.len(),
            original_len: record.original_len,
            radio_len: 0,
            path: String::new(),
            summary: String::new(),
            layers: Vec::new(),
            status: Status::Decoded,
        };
        layers::explain(self, &mut frame, record);
        self.conclude(&mut frame);
        self.hide_secrets(&mut frame);
        self.tally.count(&frame);
        frame
    }

    /// Leaves keys out of what is shown.
    fn hide_secrets(&mut self, frame: &mut Frame) {
        let mut secrets = std::mem::take(&mut self.secrets);
        secrets.extend(
            self.keys
                .iter()
                .map(|keys| keys.network.as_bytes().to_vec()),
        );
        secrets.extend(self.raw_keys.secrets());
        mask::hide(frame, &secrets);
    }

    /// Concludes the frame as a whole from the problem met inside it.
    fn conclude(&self, frame: &mut Frame) {
        if frame.is_cut()
            && let Status::Malformed(problem) = &frame.status
        {
            // The rest was not captured, so nothing says whether it was well formed.
            frame.undecoded(
                problem.layer,
                format!("cut by the capture's snap length ({})", problem.reason),
            );
        } else if let Some((layer, wrong)) = self.now.check_wrong {
            // The content is a guess; what seems wrong in it is a consequence.
            frame.malformed(
                layer,
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
