//! `motet send FILE`: a file from a mote to a TCP socket of this machine, or back.

#[cfg(target_os = "linux")]
mod flow;
#[cfg(target_os = "linux")]
mod kernel;
mod report;
mod transfer;
mod virtual_host;

use std::{path::PathBuf, sync::Arc};

use clap::{Args as ClapArgs, ValueEnum};
use motet::time::Duration;
use motet_lab::{
    Arena,
    bound::SegmentFrames,
    chain::{Chain, ChainOptions, HOPS_MAX, Host},
    plan,
};

use self::{
    report::{LatenessReport, Report, hex, rounded},
    transfer::{Outcome, Transfer},
};
use crate::{error::Error, files, interrupt::Interrupt, pacer::Lateness, progress::Progress};

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
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=i64::from(HOPS_MAX)))]
    pub(crate) hops: u16,

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

impl ChainArgs {
    /// The chain they describe, with `host` at the wire's end.
    pub(crate) fn options(&self, host: Host) -> ChainOptions {
        ChainOptions {
            hops: self.hops,
            seed: self.seed,
            frame_loss: self.frame_loss,
            packet_loss: self.packet_loss,
            hidden: !self.no_hidden,
            deaf: !self.no_deaf,
            retry_delay: Duration::from_millis(self.retry_delay.into()),
            mss_frames: self.mss_frames,
            window_segments: self.window.into(),
            host,
            ..ChainOptions::default()
        }
    }
}

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
    let content: Arc<[u8]> = files::read(&args.file)?.into();
    // The namespace before anything that could start a thread.
    let far = Far::enter(args.in_virtual_time)?;
    let interrupt = Interrupt::install()?;
    let capture = args
        .pcap
        .as_deref()
        .map(|path| files::create_capture(path, args.force))
        .transpose()?;
    let arena = Arena::new();
    let mut chain = Chain::new(args.chain.options(far.host()), &arena);
    chain.world.set_capture(capture);
    let bar = Progress::new(content.len() as u64, !args.json);
    let mut transfer = Transfer::new(chain, Arc::clone(&content), args.direction, interrupt, bar);
    let (outcome, lateness) = far.carry(&mut transfer, &arena)?;
    let Transfer { mut chain, bar, .. } = transfer;
    drop(bar);
    if let (Some(path), Some(capture)) = (&args.pcap, chain.world.take_capture()) {
        files::keep_capture(capture, path, args.force)?;
    }
    let report = report(args, &content, &chain, &outcome, lateness);
    report.print(args.json)?;
    if report.matches() {
        Ok(())
    } else {
        Err(Error::failed(
            "what arrived differs from the file, please report this with the seed",
        ))
    }
}

/// What is at the far end of the wire.
enum Far {
    /// A host with this stack, in virtual time.
    Virtual,
    /// This machine's kernel, in a namespace of ours.
    #[cfg(target_os = "linux")]
    Kernel(motet_router::namespace::Namespace),
}

impl Far {
    #[cfg(target_os = "linux")]
    fn enter(in_virtual_time: bool) -> Result<Self, Error> {
        if in_virtual_time {
            Ok(Self::Virtual)
        } else {
            crate::live::enter_namespace().map(Self::Kernel)
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn enter(in_virtual_time: bool) -> Result<Self, Error> {
        if in_virtual_time {
            Ok(Self::Virtual)
        } else {
            Err(Error::failed("real time needs Linux, use --virtual"))
        }
    }

    fn host(&self) -> Host {
        match self {
            Self::Virtual => Host::Virtual,
            #[cfg(target_os = "linux")]
            Self::Kernel(_) => Host::Outside,
        }
    }

    fn carry<'m>(
        &self,
        transfer: &mut Transfer<'m>,
        arena: &'m Arena,
    ) -> Result<(Outcome, Option<Lateness>), Error> {
        match self {
            Self::Virtual => Ok((virtual_host::carry(transfer, arena)?, None)),
            #[cfg(target_os = "linux")]
            Self::Kernel(namespace) => {
                let (outcome, lateness) = kernel::carry(transfer, namespace, arena)?;
                Ok((outcome, Some(lateness)))
            }
        }
    }
}

fn report(
    args: &Args,
    content: &[u8],
    chain: &Chain<'_>,
    outcome: &Outcome,
    lateness: Option<Lateness>,
) -> Report {
    let bytes = content.len() as u64;
    let frames_by_hop = chain.frames_by_hop();
    let sender = &outcome.sender;
    Report {
        bytes,
        sha256_sent: hex(&transfer::sha256(content)),
        sha256_received: hex(&outcome.sha256_received),
        hops: args.chain.hops,
        seconds: rounded(outcome.duration.as_micros() as f64 / 1e6),
        goodput_kbps: rounded(transfer::kbps(bytes, outcome.duration)),
        bound_kbps: rounded(bound_kbps(chain)),
        rtt_ms: sender.rtt_ms.map(rounded),
        segments: outcome.segments_sent,
        segments_lost: outcome
            .segments_sent
            .saturating_sub(outcome.segments_received),
        retransmissions: sender.retransmissions.iter().map(|(_, count)| count).sum(),
        timeouts: sender.timeouts,
        link_retries: chain.link_retries(),
        frames: frames_by_hop.iter().sum(),
        direction: match args.direction {
            Direction::Up => "up",
            Direction::Down => "down",
        },
        in_virtual_time: args.in_virtual_time,
        retransmissions_by_cause: sender.retransmissions.iter().copied().collect(),
        frames_by_hop,
        lateness: lateness.map(LatenessReport::from),
        pcap: args.pcap.as_ref().map(|path| path.display().to_string()),
        seed: args.chain.seed,
    }
}

/// The goodput that the times of the frames alone would allow: nothing lost, nobody waiting,
/// every second segment acknowledged.
fn bound_kbps(chain: &Chain<'_>) -> f64 {
    let options = chain.options();
    let mss = chain.world.node(chain.mote()).mss(&plan::HOST);
    let payload_len = usize::from(mss).saturating_sub(TIMESTAMPS_LEN);
    let frames = usize::from(options.mss_frames.max(1));
    let fragment_headers = if frames > 1 { 5 * frames - 1 } else { 0 };
    // Times are proportional to lengths, so it does not matter which frame is the short one.
    let bytes = frames * MAC_LEN + fragment_headers + HEADERS_LEN + payload_len;
    let segment = SegmentFrames {
        payload_len,
        frames: vec![bytes / frames; frames],
        ack_frames: vec![MAC_LEN + HEADERS_LEN],
        acks_per_segment: 0.5,
    };
    let mut profile = options.profile;
    if !options.deaf {
        // Such a radio takes the next frame while the last one is on the air.
        profile.transmit_copy_ns = 0;
    }
    segment.goodput_kbps(&profile, BE_MIN, options.hops.into())
}

/// Timestamps and their padding in each segment (RFC 7323 appendix A).
const TIMESTAMPS_LEN: usize = 12;

/// MAC header and FCS with extended addresses, as in every capture of these chains.
const MAC_LEN: usize = 23;

/// Compressed IPv6 header at the first hop, where it is shortest, and TCP header.
const HEADERS_LEN: usize = 12 + 32;

/// The first backoff exponent (IEEE 802.15.4-2006 macMinBE).
const BE_MIN: u8 = 3;
