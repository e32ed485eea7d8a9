//! `motet mote`: a mote over a real radio.
//!
//! It is a node as those of `motet up`, with the same small services; only its air is real.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use motet_lab::apps::SERVICE_PORTS;

use crate::{
    chain::{Sleep, sleep_policy},
    error::Error,
    number::{pan, whole},
};

/// Be a mote, over an 802.15.4 radio at this machine.
///
/// The mote joins the mesh of a border router within reach, such as motet router --radio, answers
/// ping, and serves echo (TCP and UDP port 7), discard (TCP and UDP 9), chargen (TCP 19) and
/// iperf3's TCP test (5201). It passes on the packets of others, and keeps those for motes that
/// sleep; with --sleep it sleeps itself. With --thread it joins a Thread network in their place, as
/// a child of the router that it hears best. It runs until Ctrl-C. The radio is a co-processor
/// (RCP): a dongle with OpenThread's ot-rcp; or an interface of Linux's own 802.15.4, wpan:wpan0,
/// which carries no key and does not sleep. One that is unplugged is awaited, and connections go
/// on afterwards.
#[derive(Debug, ClapArgs)]
#[command(after_help = "Examples:\n  \
    motet mote --radio spinel+hdlc+uart:///dev/ttyACM0 --key team.key --port 7\n  \
    motet mote --radio spinel+hdlc+uart:///dev/ttyACM0 --key k --sleep hinted:20\n  \
    motet mote --radio spinel+hdlc+uart:///dev/ttyACM0 --join-key own --pan abcd\n  \
    motet mote --radio 'spinel+hdlc+forkpty://ot-rcp?forkpty-arg=2' --pan 0xabcd\n  \
    motet mote --radio spinel+hdlc+uart:///dev/ttyACM0 --thread home.dataset\n  \
    motet mote --radio wpan:wpan0 --pan 0xabcd")]
pub(crate) struct Args {
    /// The radio, by the URL that OpenThread's daemon takes: spinel+hdlc+uart://DEVICE or
    /// spinel+hdlc+forkpty://PROGRAM; or wpan:wpan0, an interface of Linux
    #[arg(long, value_name = "URL")]
    radio: String,

    /// The mesh's channel, 11 to 26
    #[arg(long, value_name = "N", default_value_t = 26, allow_negative_numbers = true, value_parser = whole::<u8>(11..=26))]
    channel: u8,

    /// The mesh's PAN identifier, such as 0xabcd; where there is a key it follows from that
    #[arg(long, value_name = "ID", value_parser = pan)]
    pan: Option<u16>,

    /// Encrypt and authenticate every frame with the key in this file
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,

    /// Ask for the network's key by CoJP (RFC 9031), with the mote's own key in this file, as motet
    /// keys device prints it: of a router with --joining cojp, in the PAN that --pan names
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    join_key: Option<PathBuf>,

    /// Join the Thread network with this dataset, which ot-ctl dataset active -x and Home Assistant
    /// print: its hexadecimal digits, a file that holds them, or - for standard input
    #[arg(long, value_name = "DATASET", conflicts_with_all = ["channel", "pan", "key", "join_key", "no_rpl"])]
    thread: Option<String>,

    /// Folder that keeps the frame counters of the key from one run to the next [default:
    /// $STATE_DIRECTORY, else ~/.local/state/motet]
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,

    /// Be a host below a 6LoWPAN router that speaks no RPL, such as Linux's: register with the
    /// first one that answers, and pass nothing on
    #[arg(long, conflicts_with_all = ["sleep", "join_key"])]
    no_rpl: bool,

    /// Serve this port alone, of 7, 9, 19 and 5201; may be repeated
    #[arg(long = "port", value_name = "N", allow_negative_numbers = true, value_parser = port)]
    ports: Vec<u16>,

    /// Sleep, and ask the parent for what waits there: at an interval (fixed:SECONDS); as TCPlp's
    /// study did, each 240 s at rest (paper); at 20 ms to 5 s, by what comes (adaptive); or when
    /// TCP expects an answer, and at rest each SECONDS (hinted:SECONDS; hinted is hinted:60). The
    /// first packet to a mote at rest waits up to that interval
    #[arg(long, value_name = "POLICY", value_parser = sleep_policy)]
    sleep: Option<Sleep>,

    /// TCP connections that it serves at a time; of more, one that is idle for 10 s yields
    #[arg(long, value_name = "N", default_value_t = 4, allow_negative_numbers = true, value_parser = whole::<usize>(1..=64))]
    connections: usize,
}

/// Checks that a mote has a service there.
fn port(text: &str) -> Result<u16, String> {
    let found = SERVICE_PORTS.iter().find(|port| port.to_string() == text);
    found.copied().ok_or_else(|| {
        "a mote serves 7 (echo), 9 (discard), 19 (chargen) and 5201 (iperf3)".to_owned()
    })
}

/// Runs the mote until a signal comes: only on Linux, where its counters are kept.
#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: &Args) -> Result<(), Error> {
    Err(Error::failed(
        "a mote's radio can be driven on Linux only: run motet mote there",
    ))
}

/// Runs the mote until a signal comes.
///
/// # Errors
/// There is no radio of use, or no longer one; the key cannot be read, or its counters not be kept.
#[cfg(target_os = "linux")]
pub(crate) fn run(args: &Args) -> Result<(), Error> {
    linux::run(args)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{net::Ipv6Addr, time};

    use motet_lab::{
        Arena,
        apps::{App, Ends, Services},
        net::outside::Role,
    };

    use super::Args;
    use crate::{
        error::Error,
        interrupt::Interrupt,
        output::say,
        radio_node::{LONELY_S, RadioNode, Start, read_dataset},
        up::linux as up,
    };

    pub(super) fn run(args: &Args) -> Result<(), Error> {
        let interrupt = Interrupt::install()?;
        let arena = Arena::new();
        let dataset = args.thread.as_deref().map(read_dataset).transpose()?;
        let start = Start {
            radio: &args.radio,
            channel: dataset.map_or(args.channel, |dataset| dataset.channel),
            pan: args.pan,
            thread: dataset.as_ref(),
            key: args.key.as_ref(),
            join_key: args.join_key.as_ref(),
            registers: None,
            state: args.state.as_ref(),
            role: match (args.sleep, args.no_rpl || dataset.is_some()) {
                (Some(sleep), _) => Role::Sleeper(sleep.policy()),
                (None, true) => Role::Host,
                (None, false) => Role::Mote,
            },
            sockets: [args.connections, LISTENERS, HALF_OPEN],
        };
        let Some(mut node) = RadioNode::start(&start, &interrupt, &arena)? else {
            return Ok(());
        };
        let services = Services::new(args.connections, Ends::host(&arena));
        let services = match &args.ports[..] {
            [] => services,
            ports => services.only(ports),
        };
        node.world.set_app(0, App::Services(Box::new(services)));
        let rest = args.sleep.map(|sleep| sleep.policy().rest());
        say(&format!("{}; Ctrl-C ends it", node.introduction()));
        if let Some(latency) = up::latency(&[rest]) {
            say(&latency);
        }
        let mut known: Vec<Ipv6Addr> = Vec::new();
        // Once for each time without an address; a Thread child speaks for itself.
        let mut lonely_since = dataset.is_none().then(time::Instant::now);
        while !interrupt.has_come() {
            node.turn(&[], NAP)?;
            node.watch_thread(&interrupt)?;
            let addresses: Vec<_> = node.addresses().collect();
            for addr in addresses.iter().filter(|addr| !known.contains(addr)) {
                say(&format!("it is {addr}"));
            }
            for addr in known.iter().filter(|addr| !addresses.contains(addr)) {
                say(&format!("it is no longer {addr}"));
            }
            if known.is_empty() != addresses.is_empty() {
                lonely_since = addresses.is_empty().then(time::Instant::now);
            }
            if lonely_since.is_some_and(|since| since.elapsed() >= LONELY) {
                lonely_since = None;
                say(&node.loneliness());
            }
            known = addresses;
        }
        node.leave_thread()
    }

    const LONELY: time::Duration = time::Duration::from_secs(LONELY_S);

    /// How late a signal may be noticed.
    const NAP: time::Duration = time::Duration::from_millis(20);

    const LISTENERS: usize = 8;
    const HALF_OPEN: usize = 8;
}
