//! `motet send FILE`: a file from a mote to a TCP socket of this machine, or back.

#[cfg(target_os = "linux")]
mod flow;
#[cfg(target_os = "linux")]
mod kernel;
mod report;
mod trace;
mod transfer;
mod virtual_host;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use clap::{Args as ClapArgs, ValueEnum};
use motet_lab::{
    Arena,
    keys::hex,
    net::bound::Stretch,
    net::chain::{Chain, Host},
    net::network::NetworkOptions,
    scenario::{Scenario, StackSettings},
};

use self::{
    report::{LatenessReport, Report, rounded},
    trace::Trace,
    transfer::{Outcome, Transfer},
};
use crate::{
    capture::{self, CaptureArgs, WRITTEN},
    chain::{self, ChainArgs},
    error::{Error, PartialOutput},
    files,
    interrupt::Interrupt,
    json::Json,
    output::Out,
    pacer::Lateness,
    progress::Progress,
    targets,
};

/// Send a file over TCP between a simulated mote and this machine's kernel, and verify it
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
The mote is --hops radio hops of IEEE 802.15.4 away from the border router. Its frames \
cross a simulated air in real time; beyond the border router they are packets of a \
private network namespace, and the far end is a socket of this machine's own kernel.

Examples:
  motet send README.md                    three hops, the file leaves the mote
  motet send README.md --hops 1 --pcap air.pcap
  motet send README.md --virtual --json   no privileges, no waiting
  motet send README.md --trace tcp.jsonl  what TCP does, line by line
  motet send README.md --virtual --sleep hinted   a mote that sleeps
  motet send README.md --pcap - | wireshark -k -i -

With --pcap - the summary goes to standard error. Ctrl-C keeps what capture and trace hold by \
then. The frame-time estimate is what the frames' times suggest, added up; good settings may \
exceed it over several hops, but nothing exceeds the bound, bound_kbps of the JSON object.

A trace has one JSON object on each line; time_s is seconds of the air's clock, as in a \
capture:
  \"event\":\"state\"           whenever one of these changes: cwnd, ssthresh,
                            inflight, snd_wnd (bytes), srtt_ms, rttvar_ms
                            (null before the first round trip), rto_ms (ms)
  \"event\":\"retransmission\"  for each segment sent again, with its cause

It shows the TCP that sends the file, and the mote's where that is the kernel's.")]
pub(crate) struct Args {
    /// The file to send
    file: PathBuf,

    /// Which way the file travels: up leaves the mote, down reaches it
    #[arg(long, value_name = "up|down", value_enum, default_value_t = Direction::Up, hide_possible_values = true)]
    direction: Direction,

    #[command(flatten)]
    capture: CaptureArgs,

    /// Write how the sending TCP's windows and timers change, and what it sends again
    #[arg(long, value_name = "PATH", group = WRITTEN)]
    trace: Option<PathBuf>,

    /// Run in virtual time against a host with this same stack instead of the kernel
    #[arg(long = "virtual", conflicts_with = "state")]
    in_virtual_time: bool,

    #[command(flatten)]
    json: Json,

    #[command(flatten)]
    chain: ChainArgs,
}

/// Which way the file travels: from the mote to the host, or from the host to the mote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Direction {
    Up,
    Down,
}

/// Sends the file and reports.
pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let as_json = args.json.beside(args.capture.takes_stdout())?;
    let content: Arc<[u8]> = files::read(&args.file)?.into();
    let outputs = [args.capture.file(), args.trace.as_deref()];
    let outputs: Vec<&Path> = outputs.into_iter().flatten().collect();
    targets::check(&outputs, &[&args.file], args.capture.force)?;
    let scenario = args
        .chain
        .mesh_with_flow(args.direction == Direction::Down)?;
    let mut options = scenario.network.clone();
    args.chain.secure(&mut options)?;
    // The namespace before anything that could start a thread.
    let far = Far::enter(args.in_virtual_time)?;
    far.join(&mut options, &args.chain)?;
    let interrupt = Interrupt::install()?;
    let stops = interrupt.clone();
    let stops = move || stops.has_come();
    let capture = args.capture.create(capture::records(&options), stops);
    let capture = capture.map_err(|error| interrupt.check().err().unwrap_or(error))?;
    let trace = args.create_trace()?;
    let arena = Arena::new();
    let advice = chain::advice(&options);
    let sleeps = options.has_sleepers();
    let chain = Chain::of(options, scenario.wire.ack_every(), &arena);
    let mut chain =
        chain.map_err(|error| Error::input(format!("there is no such mesh: {error}")))?;
    chain.world.set_capture(capture);
    let bar = Progress::new(content.len() as u64, true);
    let travels = (Arc::clone(&content), args.direction);
    let mut transfer = Transfer::new(chain, &scenario, travels, interrupt, bar);
    transfer.trace = trace;
    transfer.advice = advice;
    let carried = far.carry(&mut transfer, &arena);
    let spent = transfer.spent().filter(|_| sleeps);
    let Transfer {
        mut chain,
        bar,
        trace,
        ..
    } = transfer;
    drop(bar);
    // The files of a transfer that failed are kept too: they may show the reason.
    let kept = [
        args.capture.finish(&mut chain.world),
        args.keep_trace(trace),
    ];
    let (outcome, lateness) = match carried {
        Ok(carried) => carried,
        Err(error) => return stopped(error, kept),
    };
    let report = Report {
        radio_duty: spent.map(|(duty, _)| rounded(duty)),
        energy_mj: spent.map(|(_, energy_mj)| rounded(energy_mj)),
        ..report(args, &content, (&scenario, &chain), &outcome, lateness)
    };
    let out = match args.capture.takes_stdout() {
        true => Out::Stderr,
        false => Out::Stdout,
    };
    let shown = report.print(as_json, out);
    let judged = if report.matches() {
        Ok(())
    } else {
        Err(Error::failed(
            "what arrived differs from the file, please report this with the seed",
        ))
    };
    let kept = kept.into_iter().map(|kept| kept.map(drop));
    Error::all([judged, shown].into_iter().chain(kept))
}

/// The error for a transfer that did not come to its end: the reason, the files that are whole up
/// to that moment, and those that could not be written.
fn stopped(error: Error, kept: [Result<Option<PartialOutput<'_>>, Error>; 2]) -> Result<(), Error> {
    let whole = kept
        .iter()
        .filter_map(|kept| kept.as_ref().ok().copied().flatten());
    let error = error.with_partial_output(&whole.collect::<Vec<_>>());
    let lost = kept.into_iter().map(|kept| kept.map(drop));
    Error::all([Err(error)].into_iter().chain(lost))
}

impl Args {
    /// Begins the trace, where the command line names one.
    fn create_trace(&self) -> Result<Option<Trace>, Error> {
        let Some(path) = &self.trace else {
            return Ok(None);
        };
        if path.as_os_str() == "-" {
            return Err(Error::input("a trace goes to a file, name one"));
        }
        Trace::create(path, self.capture.force).map(Some)
    }

    /// Ends the trace, where there is one.
    fn keep_trace(&self, trace: Option<Trace>) -> Result<Option<PartialOutput<'_>>, Error> {
        trace.map_or(Ok(()), Trace::finish)?;
        Ok(self.trace.as_deref().map(PartialOutput::File))
    }
}

/// Advice where the kernel cannot take part: the end of a sentence.
const OR_VIRTUAL: &str = ", or use --virtual";

/// The host at the far end of the wire.
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
            crate::live::enter_namespace(OR_VIRTUAL).map(Self::Kernel)
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn enter(in_virtual_time: bool) -> Result<Self, Error> {
        if in_virtual_time {
            Ok(Self::Virtual)
        } else {
            Err(Error::failed(format!(
                "the kernel takes part on Linux only: send from there{OR_VIRTUAL}"
            )))
        }
    }

    /// Puts it in the place of the mesh's host, and keeps the frame counters where the mesh has a
    /// key. In virtual time nothing does: its frames follow from the seed, and are the same each
    /// time.
    fn join(&self, options: &mut NetworkOptions, chain: &ChainArgs) -> Result<(), Error> {
        match self {
            Self::Virtual => {}
            #[cfg(target_os = "linux")]
            Self::Kernel(_) => {
                let (folder, security) = (chain.state.as_deref(), options.security.as_ref());
                options.counter_store =
                    crate::state::counter_store(folder, security, options.nodes.len())?;
                for host in &mut options.hosts {
                    host.kind = Host::Outside;
                }
            }
        }
        Ok(())
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

/// The goodput that no run over these hops exceeds, kb/s.
fn bound_kbps(chain: &Chain<'_>, direction: Direction, seconds: f64, bytes: u64) -> Option<f64> {
    let path = chain.path(direction == Direction::Up).map(|path| {
        path.of_stretch_kbps(&Stretch {
            seconds,
            bytes,
            in_flight: 0,
        })
    });
    path.or(chain.ble_bound_kbps()).map(rounded)
}

fn report(
    args: &Args,
    content: &[u8],
    (scenario, chain): (&Scenario, &Chain<'_>),
    outcome: &Outcome,
    lateness: Option<Lateness>,
) -> Report {
    let bytes = content.len() as u64;
    let frames_by_hop = chain.frames_by_hop();
    let sender = &outcome.sender;
    let seconds = outcome.duration.as_micros() as f64 / 1e6;
    Report {
        bytes,
        sha256_sent: hex(&transfer::sha256(content)),
        sha256_received: hex(&outcome.sha256_received),
        // Lossless: a chain has 32 hops at most.
        hops: chain.mote() as u16,
        seconds: rounded(seconds),
        goodput_kbps: rounded(transfer::kbps(bytes, outcome.duration)),
        bound_kbps: bound_kbps(chain, args.direction, seconds, bytes),
        rtt_ms: sender.rtt_ms.map(rounded),
        segments: outcome.segments_sent,
        segments_lost: outcome
            .segments_sent
            .saturating_sub(outcome.segments_received),
        retransmissions: sender.retransmissions.iter().map(|(_, count)| count).sum(),
        timeouts: sender.timeouts,
        link_retries: chain.link_retries(),
        frames: frames_by_hop.iter().sum(),
        estimate_kbps: rounded(chain.estimate_kbps()),
        direction: match args.direction {
            Direction::Up => "up",
            Direction::Down => "down",
        },
        sender: match (args.direction, args.in_virtual_time) {
            (Direction::Up, _) => "mote",
            (Direction::Down, false) => "kernel",
            (Direction::Down, true) => "host",
        },
        in_virtual_time: args.in_virtual_time,
        retransmissions_by_cause: sender.retransmissions.iter().copied().collect(),
        frames_by_hop,
        window_segments: chain.window_segments(),
        congestion: scenario
            .stacks
            .last()
            .map_or("", StackSettings::congestion_name),
        window_advised_segments: sender.telemetry.map(|telemetry| {
            let bottleneck_bytes_per_s = (chain.estimate_kbps() * 125.0) as u32;
            let advised = telemetry.window_advised_bytes(bottleneck_bytes_per_s);
            advised.div_ceil(u32::from(telemetry.smss_bytes.max(1)))
        }),
        lateness: lateness.map(LatenessReport::from),
        pcap: args
            .capture
            .pcap
            .as_ref()
            .map(|path| path.display().to_string()),
        trace: args.trace.as_ref().map(|path| path.display().to_string()),
        seed: args.chain.seed(),
        radio_duty: None,
        energy_mj: None,
    }
}
