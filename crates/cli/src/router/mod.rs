//! `motet router`: a border router whose motes get equal shares.

use std::{
    net::{Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
};

use clap::{ArgGroup, Args as ClapArgs, Subcommand};

use crate::{
    error::Error,
    json::Json,
    number::{pan, whole},
};

#[cfg(target_os = "linux")]
mod air;
#[cfg(target_os = "linux")]
mod gate;
#[cfg(target_os = "linux")]
mod metrics;
#[cfg(target_os = "linux")]
mod names;
#[cfg(target_os = "linux")]
mod nfqueue;
#[cfg(target_os = "linux")]
mod radio;
#[cfg(target_os = "linux")]
mod reread;
#[cfg(target_os = "linux")]
mod serve;
#[cfg(target_os = "linux")]
mod snapshot;
#[cfg(target_os = "linux")]
mod snapshot_channel;
#[cfg(target_os = "linux")]
mod socket_path;
#[cfg(target_os = "linux")]
mod status;
#[cfg(target_os = "linux")]
mod table;

/// Make the motes behind a border router share its air fairly
#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
#[command(override_usage = "motet router [OPTIONS] --nfqueue <N|auto>\n       \
                           motet router [OPTIONS] --air <SCENARIO.toml>\n       \
                           motet router [OPTIONS] --radio <URL>\n       \
                           motet router <COMMAND>")]
#[command(group = ArgGroup::new("kind").args(["nfqueue", "air", "radio"]).required(true))]
#[command(after_help = "\
Beside any border router for 6LoWPAN, Thread's included: the kernel hands over the IPv6 packets of \
its interface by a packet queue, and the policy says when each of TCP goes on. No packet is altered, \
and no segment of an established connection is dropped, but for duplicate ACKs that --policy relay has \
answered. What enters the mesh unasked besides \
(datagrams, echo requests, SYNs) has a part of the air while a connection is in use: what is more waits, \
and is dropped and counted where 256 packets or 64 KiB wait, or it has waited for five seconds; with \
--policy none it passes. A packet from outside with a source inside is dropped, too. Both ends stay as \
they are. Needs root, or the capability CAP_NET_ADMIN, with --policy relay CAP_NET_RAW, too.

If the daemon is killed, the packets that it held are lost and all others pass. SIGTERM and Ctrl-C \
end it in order: nothing is lost, and the rules that it has put in are taken out.

With --air it is a border router itself, of a scenario's mesh on the lab's air in real time, in the \
network that it is started in: a TUN interface leads to the motes. Each flow into the mesh has a queue \
and its share of the air, and where all of them are full the longest one drops its oldest packet. \
Each mote answers ping, echo (TCP and UDP port 7), discard (TCP and UDP 9), chargen (TCP 19) and \
iperf3's TCP test (5201). Root is not needed where the interface was made for this user.

With --radio it is the border router of a real mesh, by a radio co-processor (OpenThread's ot-rcp): the \
root of RPL, to which motes such as those of motet mote join. The policy holds packets as ever, and flows \
into the mesh have queues of their own. Packets for motes that sleep wait here. A radio that is unplugged is awaited.

Examples:
  motet router --nfqueue 5 --interface wpan0 --rules install
  motet router --nfqueue 5 --interface wpan0 --rules print
  motet router --nfqueue 5 --interface wpan0 --metrics [::1]:9119
  motet router --air scenarios/office.toml --tun mesh0 --prefix fd12:3456:1::/64
  motet router --radio spinel+hdlc+uart:///dev/ttyACM0 --key team.key
  motet router status --watch")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,

    /// Number of the packet queue that the rules fill; auto: one that follows from the interface's
    /// name
    #[arg(long, value_name = "N|auto", requires = "interface", allow_negative_numbers = true, value_parser = queue)]
    nfqueue: Option<QueueNumber>,

    /// Interface into the mesh
    #[arg(long, value_name = "IF", requires = "nfqueue")]
    interface: Option<String>,

    /// What becomes of the packet filter's rules, which fill the queue: yours alone, unless said
    #[arg(long, value_name = "WHAT", requires = "nfqueue")]
    rules: Option<Rules>,

    /// Be the border router of this scenario's mesh, in real time
    #[arg(long, value_name = "SCENARIO.toml", group = "mesh")]
    air: Option<PathBuf>,

    /// Be the border router of a real mesh, by this radio: spinel+hdlc+uart://DEVICE or
    /// spinel+hdlc+forkpty://PROGRAM, as OpenThread's daemon takes it; or wpan:wpan0, an interface
    /// of Linux, which carries no key
    #[arg(long, value_name = "URL", group = "mesh")]
    radio: Option<String>,

    /// The real mesh's channel, 11 to 26
    #[arg(long, value_name = "N", requires = "radio", conflicts_with = "air", default_value_t = 26, allow_negative_numbers = true, value_parser = whole::<u8>(11..=26))]
    channel: u8,

    /// The real mesh's PAN identifier, such as 0xabcd; where there is a key it follows from that
    #[arg(long, value_name = "ID", requires = "radio", conflicts_with = "air", value_parser = pan)]
    pan: Option<u16>,

    /// Encrypt and authenticate every frame in the mesh with the key in this file; SIGHUP rereads
    /// it
    #[arg(long, value_name = "FILE", requires = "mesh")]
    key: Option<PathBuf>,

    /// How motes of the real mesh get the key: they have it from the start (provisioned), or each
    /// asks this router for it by CoJP (RFC 9031) with a key of its own, unless it is revoked
    /// (cojp)
    #[arg(long, value_name = "HOW", requires_all = ["radio", "key"], conflicts_with = "air", default_value = "provisioned", hide_possible_values = true)]
    joining: Joining,

    /// TCP headers in the real mesh: auto (compressed by motes that can) or none (all plain, for
    /// captures that Wireshark must read)
    #[arg(
        long,
        value_name = "HOW",
        requires = "radio",
        conflicts_with = "air",
        default_value = "auto",
        hide_possible_values = true
    )]
    compression: Compression,

    /// Folder that keeps the frame counters of the key from one run to the next: a key has one, and
    /// a run at a time [default: $STATE_DIRECTORY, else ~/.local/state/motet]
    #[arg(long, value_name = "DIR", requires = "mesh")]
    state: Option<PathBuf>,

    /// TUN interface to the mesh: made here, unless it is there and belongs to this user
    #[arg(long, value_name = "NAME", requires = "mesh", default_value = "motet0")]
    tun: String,

    /// The motes' prefix, of 64 bits; those over Bluetooth LE beside a mesh have the next one
    #[arg(long, value_name = "P", requires = "mesh", value_parser = prefix)]
    prefix: Option<Ipv6Addr>,

    /// TCP connections that each mote serves at a time; of more, one that is idle for 10 s yields
    #[arg(long, value_name = "N", requires = "air", default_value_t = 4, allow_negative_numbers = true, value_parser = whole::<usize>(1..=64))]
    connections: usize,

    #[command(flatten)]
    shared: Shared,
}

/// Options of both kinds of router.
#[derive(Debug, ClapArgs)]
struct Shared {
    /// How packets are chosen: auto (the default: none is held while few flows share the air, else
    /// as admission holds them), admission, taim, taim-literal, fq, none, or relay (segments that
    /// the mesh has lost are sent again from here); with --air it goes before what the scenario
    /// says
    #[arg(long, value_name = "POLICY", value_parser = policy)]
    policy: Option<String>,

    /// Where `motet router status` asks; the default lies in /run/motet
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// Serve Prometheus there, below /metrics
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<SocketAddr>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Rules {
    /// Put them in, and take them out at the end
    Install,
    /// Show the commands, and do nothing else
    Print,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Compression {
    Auto,
    None,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
enum Joining {
    Provisioned,
    Cojp,
}

#[derive(Debug, Subcommand)]
enum Command {
    Status(StatusArgs),
}

/// Show what each mote gets of a running router
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Of each mote and each flow: new bytes, goodput over one minute and ten, round trips on either side \
of the router, packets held and for how long, segments sent again. Of our own border router (--air, --radio) also each \
mote's name, distance and parent, and with --radio the radio with its firmware, and of the motes next to it the signal \
strength (the mean of some frames) and the attempts for each acknowledged frame (ETX).

Examples:
  motet router status --watch
  motet router status --hosts | sudo tee -a /etc/hosts")]
struct StatusArgs {
    #[command(flatten)]
    json: Json,

    /// Show it anew every second, until Ctrl-C
    #[arg(long)]
    watch: bool,

    /// Print the addresses and names of the motes as /etc/hosts has them
    #[arg(long, conflicts_with_all = ["json", "watch"])]
    hosts: bool,

    /// Where the router answers, if not where it does by default
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

#[cfg(target_os = "linux")]
impl Shared {
    /// The policy that the command line names.
    fn policy(&self) -> Option<motet_taim::Policy> {
        // The name was checked when the command line was read.
        self.policy.as_ref()?.parse().ok()
    }
}

/// The number of the packet queue: as given, or made from the interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum QueueNumber {
    Given(u16),
    OfInterface,
}

fn queue(text: &str) -> Result<QueueNumber, String> {
    if text == "auto" {
        return Ok(QueueNumber::OfInterface);
    }
    let number = whole::<u16>(0..=65_535)(text).map(QueueNumber::Given);
    number.map_err(|error| format!("{error}, or auto"))
}

/// Checks the name of a policy.
fn policy(name: &str) -> Result<String, String> {
    /// As `motet_taim::Policy` has them, which a test compares: elsewhere than on Linux the crate
    /// is no part of this program.
    const NAMES: [&str; 7] = [
        "none",
        "auto",
        "admission",
        "taim",
        "taim-literal",
        "fq",
        "relay",
    ];
    match NAMES.contains(&name) {
        true => Ok(name.to_owned()),
        false => Err(format!("a policy is one of {}", NAMES.join(", "))),
    }
}

/// Reads a prefix that motes can have: 64 bits, of addresses that are routed.
fn prefix(text: &str) -> Result<Ipv6Addr, String> {
    let addr = text.strip_suffix("/64").and_then(|addr| addr.parse().ok());
    let is_whole = |addr: &Ipv6Addr| addr.to_bits() << 64 == 0;
    let is_routed = |addr: &Ipv6Addr| {
        !addr.is_multicast() && !addr.is_unicast_link_local() && !addr.is_unspecified()
    };
    addr.filter(|addr| is_whole(addr) && is_routed(addr))
        .ok_or_else(|| "a mesh's prefix is like fd12:3456:789a:1::/64".to_owned())
}

/// Each mote's next hop up, as the router at `socket`, or the one that is found, knows it.
#[cfg(target_os = "linux")]
pub(crate) fn parents(socket: Option<&Path>) -> Result<Vec<(Ipv6Addr, Option<Ipv6Addr>)>, Error> {
    status::parents(socket)
}

/// Each mote's next hop up.
#[cfg(not(target_os = "linux"))]
pub(crate) fn parents(_: Option<&Path>) -> Result<Vec<(Ipv6Addr, Option<Ipv6Addr>)>, Error> {
    Err(Error::failed(
        "motet's router runs on Linux: push by another schedule than tree",
    ))
}

/// Runs the router, or shows the status of one.
#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: &Args) -> Result<(), Error> {
    Err(Error::failed(
        "a border router's packets are Linux's: run motet router on Linux",
    ))
}

/// Runs the router, or shows the status of one.
#[cfg(target_os = "linux")]
pub(crate) fn run(args: &Args) -> Result<(), Error> {
    if let Some(scenario) = args.air.as_deref().filter(|_| args.command.is_none()) {
        return air::run(scenario, args);
    }
    if let Some(url) = args.radio.as_deref().filter(|_| args.command.is_none()) {
        return radio::run(url, args);
    }
    match (&args.command, args.nfqueue, &args.interface) {
        (Some(Command::Status(args)), ..) => status::run(args),
        (None, Some(queue), Some(interface)) => {
            let number = match queue {
                QueueNumber::Given(number) => number,
                QueueNumber::OfInterface => motet_router::rules::queue_of(interface),
            };
            nfqueue::run(number, interface, args.rules, &args.shared)
        }
        // clap has required both.
        _ => Err(Error::input("a router needs --nfqueue and --interface")),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn policies_and_prefixes_are_those_of_the_router() {
        for name in motet_taim::Policy::NAMES {
            assert_eq!(super::policy(name), Ok(name.to_owned()));
            assert!(name.parse::<motet_taim::Policy>().is_ok(), "{name}");
        }
        assert_eq!(
            super::prefix("fd12:0:0:1::/64"),
            Ok("fd12:0:0:1::".parse().unwrap())
        );
        for wrong in [
            "fd12::",
            "fd12::1/64",
            "fd12::/63",
            "fe80::/64",
            "ff02::/64",
            "::/64",
        ] {
            assert!(super::prefix(wrong).is_err(), "{wrong}");
        }
        let refused = super::policy("fair").unwrap_err();
        for name in motet_taim::Policy::NAMES {
            assert!(refused.contains(name), "{refused}");
        }
    }
}
