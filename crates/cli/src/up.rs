//! `motet up`: a mesh of motes to talk to, in a network of one's own.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args as ClapArgs, ValueEnum};

use crate::{
    capture::CaptureArgs,
    chain::{self, ChainArgs},
    error::Error,
    flags,
    number::whole,
};

/// Bring up a mesh of motes and run a command that can reach them
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Every mote answers ping, and serves echo (TCP and UDP port 7), discard (TCP and UDP 9), chargen \
(TCP 19) and iperf3's TCP test (5201). The command, or a shell, runs in a private network \
namespace; its exit status is ours. It finds the motes' addresses in the variable MOTET_MOTES, \
the first mote first (of a chain: the nearest), and each mote by its name: mote1, mote2, or as the scenario names it. \
motet attach opens a second shell there.

With --sleep the motes are reached when they ask their parent: the first packet to one at rest waits for \
its interval, at most 60 s with hinted, which is printed.

A scenario gives the mesh: topology, radio, interference and stack settings, the first point \
where it sweeps over several; its faults count from the command's start. Its flows and its \
duration are left out: the traffic is the command's.

With --hci there is one mote, and a controller of Bluetooth LE that speaks H4: over TCP, as virtual \
ones do, or over a serial line (serial:/dev/ttyACM0,1000000). The mote speaks with whatever device \
its controller finds, runs until Ctrl-C, and is reached from there: at its link-local address, or, as \
a central, as its peers' router. With a command a central is a border router: the command runs beside \
it once a first peer is there, and finds the peers' addresses in MOTET_MOTES. --pcap is then of what \
passes between the mote and its controller.

With --pcap - what the command prints goes to standard error. Ctrl-C is the command's business; \
any other signal to motet up, a SIGINT of kill(1) too, ends it. A killed motet up takes along \
whatever the command has started.

Examples:
  motet up                                a shell; leave it to end the mesh
  motet up --hops 2 -- ping -c 3 mote2
  motet up -- iperf3 -c fd6d:6f74:6574:1:4d:6f74:6574:3 -t 10
  motet up --app http -- sh -c 'curl -g http://[${MOTET_MOTES%% *}]/status'
  motet up --app firmware                 motes for curl -T, motet push
  motet up --scenario scenarios/office.toml
  motet up --hops 1 --sleep hinted:20     a mote that sleeps for 20 s at a time
  motet up --thread -- ping -c 3 mote1    a child of a Thread router
  motet up --hci tcp:127.0.0.1:7002 --role peripheral
  motet up --hci serial:/dev/ttyACM0 --role central -- sh
  motet up --pcap >(wireshark -k -i -)    watch the air live (bash, zsh)")]
pub(crate) struct Args {
    /// Bring up the mesh of this scenario instead of a chain
    #[arg(long, value_name = "SCENARIO.toml", conflicts_with_all = chain::SAID_BY_SCENARIO, conflicts_with_all = flags::names())]
    scenario: Option<PathBuf>,

    #[cfg(target_os = "linux")]
    #[command(flatten)]
    hci: crate::hci::HciArgs,

    /// TCP connections that each mote serves at a time; of more, one that is idle for 10 s yields
    #[arg(long, value_name = "N", default_value_t = 4, allow_negative_numbers = true, value_parser = whole::<usize>(1..=64))]
    connections: usize,

    /// An application that each mote has besides: a web server (port 80), /firmware (port 80), or a
    /// shell (port 23); or alone: readings of a sensor, put to the CoAP server of this host (coap,
    /// port 5683, /r)
    #[arg(
        long,
        value_name = "http|firmware|shell|coap",
        value_enum,
        hide_possible_values = true
    )]
    app: Option<AppName>,

    /// Who may write and read /firmware: whoever has the token in this file; without it everyone
    #[arg(long, value_name = "FILE")]
    token: Option<PathBuf>,

    #[command(flatten)]
    capture: CaptureArgs,

    /// Command to run, with its arguments; your shell when there is none
    #[arg(value_name = "CMD", last = true)]
    command: Vec<OsString>,

    #[command(flatten)]
    chain: ChainArgs,
}

/// The applications that [`Args::app`] names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum AppName {
    Http,
    Firmware,
    Shell,
    Coap,
}

/// Brings the mesh up, and runs the command.
#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: &Args) -> Result<(), Error> {
    Err(Error::failed(
        "the motes are joined to a Linux kernel: run motet up on Linux",
    ))
}

/// Brings the mesh up, and runs the command.
#[cfg(target_os = "linux")]
pub(crate) fn run(args: &Args) -> Result<(), Error> {
    linux::run(args)
}

#[cfg(target_os = "linux")]
pub(crate) mod linux {
    use std::{
        io::{self, Write as _},
        net::Ipv6Addr,
        path::Path,
        process::ExitStatus,
        sync::Arc,
        time,
    };

    use motet::{
        ble::GapRole,
        time::{Duration, Instant},
    };
    use motet_lab::{
        Arena,
        apps::{App, Application, Services},
        net::moves,
        net::network::{Host, HostOptions, Network, NetworkOptions},
        net::outages::{Outages, Switch},
        net::plan,
        scenario::{Overrides, Plan, Scenario},
    };
    use motet_router::guard::Guard;

    use super::{AppName, Args};
    use crate::{
        anemometers, capture,
        chain::{self, JOIN_ADVICE},
        command::linux::{Signals, report, start},
        error::Error,
        hci, hosts,
        live::{self, Live},
        output::{describe, say},
        state, targets, token,
    };

    /// Without the kernel there is nothing to run a command beside.
    const NO_OTHER_WAY: &str = "";

    /// How late the command's end, or a signal, may be noticed.
    const NAP: time::Duration = time::Duration::from_millis(20);

    pub(super) fn run(args: &Args) -> Result<(), Error> {
        let Some((place, role)) = args.hci.place()? else {
            return run_mesh(args);
        };
        if args.app == Some(AppName::Firmware) {
            return Err(Error::input(
                "a mote over --hci has no flash of the lab's: use --app firmware without it",
            ));
        }
        if args.app == Some(AppName::Coap) {
            return Err(Error::input(
                "a mote over --hci has no host with a CoAP server: use --app coap without it",
            ));
        }
        if role == GapRole::Peripheral && !args.command.is_empty() {
            return Err(Error::input(
                "a command reaches the peers of a central: use --role central, or leave the command out",
            ));
        }
        let ble = args.chain.ble()?;
        let mote = hci::Mote {
            role,
            phy: ble.phy,
            interval: ble.interval,
            seed: args.chain.seed(),
            sockets: [args.connections, LISTENERS, HALF_OPEN],
            application: args.app.and_then(application),
            has_tcple: ble.tcple_motes > 0,
        };
        let files: Vec<&Path> = args.capture.file().into_iter().collect();
        targets::check(&files, &[], args.capture.force)?;
        hci::run(place, &mote, &args.capture, &args.command)
    }

    fn run_mesh(args: &Args) -> Result<(), Error> {
        let service = service(args)?;
        let files: Vec<&Path> = args.capture.file().into_iter().collect();
        let read = args.scenario.as_deref().into_iter();
        let read: Vec<&Path> = read.chain(args.token.as_deref()).collect();
        targets::check(&files, &read, args.capture.force)?;
        let chain = args.chain.mesh()?;
        let namespace = live::enter_namespace(NO_OTHER_WAY)?;
        let mut mesh = Mesh::of(args, chain)?;
        let nodes = mesh.options.nodes.len();
        let (folder, security) = (args.chain.state.as_deref(), mesh.options.security.as_ref());
        mesh.options.counter_store = state::counter_store(folder, security, nodes)?;
        let signals = Signals::listen()?;
        let interrupt = signals.interrupt();
        let stops = signals.clone();
        let records = capture::records(&mesh.options);
        let capture = args.capture.create(records, move || stops.is_due());
        let capture = capture.map_err(|error| interrupt.check().err().unwrap_or(error))?;
        let rests = rests(&mesh.options);
        let prefixes = mesh.options.prefixes(plan::MESH_PREFIX);
        let arena = Arena::new();
        let mut network = Network::new(mesh.options, &arena)
            .map_err(|error| Error::input(format!("there is no such mesh: {error}")))?;
        network.world.set_capture(capture);
        let nodes = network.mesh_nodes();
        let scenario = &mesh.scenario;
        serve(scenario, &mut network, &arena, args.connections, service);
        if args.app == Some(AppName::Coap) {
            anemometers::put_readings(&mut network, &arena, args.chain.seed());
        }
        switch_on(scenario, &mut network, &arena);
        let world = &mut network.world;
        let (limit, advice) = (scenario.join_max(), mesh.join_advice);
        chain::join(world, nodes, limit, advice, interrupt)?;
        let now = network.world.now();
        let mut live = Live::start(&namespace, &prefixes, now, NO_OTHER_WAY)?;
        introduce(&network, &rests, args);
        if let Some(dataset) = network.dataset_hex() {
            say(&format!("the Thread network's dataset: {dataset}"));
        }
        let motes: Vec<Ipv6Addr> = (1..nodes).map(|mote| network.addr(mote)).collect();
        hosts::name_motes(
            &namespace,
            (1..nodes).map(|mote| (network.addr(mote), network.name(mote))),
        );
        signals.a_command_will_run()?;
        let mut guard = start(&args.command, &motes, args.capture.takes_stdout())?;
        let faults = Faults::begin(scenario, &mut network);
        let outcome = attend(
            &mut guard,
            &mut live,
            (&mut network, &arena),
            faults,
            &signals,
        );
        // The command must not outlive the mesh.
        drop(guard);
        let kept = args.capture.finish(&mut network.world);
        match outcome {
            Ok(status) => Error::all([report(status), kept.map(drop)]),
            Err(error) => {
                let kept_up_to_then = kept.as_ref().ok().cloned().flatten();
                let error = error.with_partial_output(kept_up_to_then.as_slice());
                Error::all([Err(error), kept.map(drop)])
            }
        }
    }

    /// What each mote serves besides its small services.
    #[derive(Clone, Copy, Debug)]
    pub(crate) enum Service {
        Application(Option<Application>),
        Firmware(Option<&'static [u8]>),
    }

    /// What the options ask for.
    fn service(args: &Args) -> Result<Service, Error> {
        if args.app == Some(AppName::Firmware) {
            let token = args.token.as_deref().map(token::read).transpose()?;
            // It is as old as the command.
            return Ok(Service::Firmware(token.map(|token| &*token.leak())));
        }
        if args.token.is_some() {
            return Err(Error::input(
                "--token says who may write /firmware: add --app firmware, or leave it out",
            ));
        }
        Ok(Service::Application(args.app.and_then(application)))
    }

    /// Gives each mote its small services, with TCP as the scenario says.
    pub(crate) fn serve<'m>(
        scenario: &Scenario,
        network: &mut Network<'m>,
        arena: &'m Arena,
        connections: usize,
        service: Service,
    ) {
        for (mote, stack) in scenario.stacks.iter().enumerate().skip(1) {
            let ends = network.ends(mote, plan::HOST, arena);
            let ends = ends.with(|config| stack.apply(config));
            let services = Services::new(connections, ends);
            let services = match service {
                Service::Application(application) => services.with(application),
                Service::Firmware(token) => services.with_firmware(token),
            };
            network
                .world
                .set_app(mote, App::Services(Box::new(services)));
        }
    }

    /// The mesh to bring up.
    pub(crate) struct Mesh {
        pub(crate) options: NetworkOptions,
        /// The scenario that the mesh was made of: it has each node's TCP, and the faults.
        pub(crate) scenario: Scenario,
        pub(crate) join_advice: &'static str,
    }

    impl Mesh {
        /// The mesh of the scenario, or else of `chain`.
        pub(super) fn of(args: &Args, chain: Scenario) -> Result<Self, Error> {
            let mut mesh = match &args.scenario {
                Some(file) => Self::of_scenario(file, args.chain.seed)?,
                None => {
                    let mut mesh = Self::beside_kernel(chain, JOIN_ADVICE);
                    args.chain.secure(&mut mesh.options)?;
                    mesh
                }
            };
            mesh.make_room(args.connections);
            Ok(mesh)
        }

        /// A scenario's mesh with the kernel in the place of its host.
        fn beside_kernel(scenario: Scenario, join_advice: &'static str) -> Self {
            let mut options = scenario.network.clone();
            options.hosts.truncate(1);
            for host in &mut options.hosts {
                *host = HostOptions {
                    delay: host.delay,
                    kind: Host::Outside,
                    ..HostOptions::new("host")
                };
            }
            Self {
                options,
                scenario,
                join_advice,
            }
        }

        /// A place for each connection that there are buffers for, and no more: what cannot be
        /// served is not taken on.
        pub(crate) fn make_room(&mut self, connections: usize) {
            for node in &mut self.options.nodes {
                node.tables.connections = connections;
                node.tables.listeners = LISTENERS;
                node.tables.half_open = HALF_OPEN;
            }
        }

        /// The first point of a scenario, with the kernel in the place of its host.
        pub(crate) fn of_scenario(file: &Path, seed: Option<u64>) -> Result<Self, Error> {
            let overrides = Overrides {
                seed,
                ..Overrides::default()
            };
            let plan =
                Plan::read(file, overrides).map_err(|error| Error::input(error.to_string()))?;
            let Some(point) = plan.points.into_iter().next() else {
                return Err(Error::input("the scenario has no point to bring up"));
            };
            say_what_is_left_out(&point.values);
            let mut mesh = Self::beside_kernel(Arc::unwrap_or_clone(point.scenario), "");
            if let Some(seed) = plan.seeds.first() {
                mesh.options.seed = *seed;
            }
            Ok(mesh)
        }
    }

    fn say_what_is_left_out(values: &[(String, impl std::fmt::Display)]) {
        let mut stderr = io::stderr().lock();
        let _ = writeln!(
            stderr,
            "motet: the scenario's flows and duration are left out, the traffic comes from outside"
        );
        if !values.is_empty() {
            let point: Vec<String> = values
                .iter()
                .map(|(key, value)| format!("{key} = {value}"))
                .collect();
            let _ = writeln!(
                stderr,
                "motet: of its sweep, the first point: {}",
                point.join(", ")
            );
        }
    }

    /// Switches all nodes on, where a scenario says that they are not from the start.
    pub(crate) fn switch_on<'m>(scenario: &Scenario, network: &mut Network<'m>, arena: &'m Arena) {
        if scenario.switched_on_within == Duration::ZERO {
            return;
        }
        let (mut outages, _) = Outages::staggered(network, scenario.switched_on_within);
        while let Some(at) = outages.next_at() {
            network.world.run_until(at);
            outages.pass(network, arena, |_, _, _| {});
        }
    }

    /// The faults of a scenario, from the command's start on.
    pub(crate) struct Faults {
        from: Instant,
        outages: Outages,
    }

    impl Faults {
        pub(crate) fn begin(scenario: &Scenario, network: &mut Network<'_>) -> Self {
            let from = network.world.now();
            network.world.change_later(scenario.link_faults(from));
            Self {
                from,
                outages: scenario.outages(from),
            }
        }

        /// Switches each node off or on when its time has come, and prints a line for it.
        pub(crate) fn pass<'m>(&mut self, network: &mut Network<'m>, arena: &'m Arena) {
            let from = self.from;
            self.outages.pass(network, arena, |network, node, switch| {
                let seconds = network.world.now().since(from).as_micros() as f64 / 1e6;
                let name = match node {
                    0 => "the border router".to_owned(),
                    _ => format!("mote {}", network.name(node)),
                };
                let what = match switch {
                    Switch::Off => "is switched off",
                    Switch::On => "is switched on again",
                };
                let _ = writeln!(io::stderr(), "motet: {seconds:.1} s: {name} {what}");
            });
        }
    }

    /// Runs the mesh until the command ends.
    fn attend<'m>(
        guard: &mut Guard,
        live: &mut Live,
        (network, arena): (&mut Network<'m>, &'m Arena),
        mut faults: Faults,
        signals: &Signals,
    ) -> Result<ExitStatus, Error> {
        loop {
            live.turn(&mut network.world, NAP, |_, _| {})?;
            faults.pass(network, arena);
            let ended = guard.try_wait().map_err(|error| {
                Error::failed(format!("lost the command: {}", describe(&error)))
            })?;
            if let Some(status) = ended {
                return Ok(status);
            }
            signals.check()?;
        }
    }

    /// The interval between requests of each node that sleeps, where nothing is expected.
    pub(super) fn rests(options: &NetworkOptions) -> Vec<Option<Duration>> {
        let nodes = options.nodes.iter();
        let rests = nodes.map(|node| node.sleep.map(|sleep| sleep.policy.rest()));
        rests.collect()
    }

    /// A sentence about the delay that sleeping motes add for hosts outside; `None` if no mote
    /// sleeps.
    pub(crate) fn latency(rests: &[Option<Duration>]) -> Option<String> {
        let longest = rests.iter().flatten().max()?;
        let mut text = format!(
            "motes that sleep are reached when they ask: the first packet to one at rest waits up to {} s",
            seconds(*longest)
        );
        if *longest >= SYN_GIVEN_UP {
            text.push_str(
                ",\nlonger than Linux tries to connect (127 s): let them ask more often (--sleep \
                 hinted:SECONDS; stack.sleep_idle_s with sleep \"hinted\")",
            );
        }
        Some(text)
    }

    fn seconds(duration: Duration) -> f64 {
        duration.as_micros() as f64 / 1e6
    }

    /// Prints each mote's name and address to stderr: stdout belongs to the command.
    fn introduce(network: &Network<'_>, rests: &[Option<Duration>], args: &Args) {
        let mut stderr = io::stderr().lock();
        for mote in 1..network.mesh_nodes() {
            let (name, addr) = (network.name(mote), network.addr(mote));
            let way = match moves::way_up(network, mote).as_deref() {
                None => "without a way up now".to_owned(),
                Some([_]) => "1 hop".to_owned(),
                Some(way) => {
                    let parent = way.first().map_or("", |parent| network.name(*parent));
                    format!("{} hops, by way of mote {parent}", way.len())
                }
            };
            let asks = match rests.get(mote) {
                Some(Some(rest)) => format!(", asleep: asks each {} s at least", seconds(*rest)),
                _ => String::new(),
            };
            let _ = writeln!(stderr, "mote {name}: {addr} ({way}{asks})");
        }
        let connections = args.connections;
        let plural = if connections == 1 { "" } else { "s" };
        let besides = match args.app {
            Some(AppName::Http) => ", http (80)",
            Some(AppName::Firmware) => ", /firmware (http, 80)",
            Some(AppName::Shell) => ", a shell (23)",
            Some(AppName::Coap) | None => "",
        };
        let _ = match args.app {
            Some(AppName::Coap) => writeln!(
                stderr,
                "this host: {0}\n\
                 each mote answers ping,\n\
                 and puts readings to coap://[{0}]/r, four at a time",
                plan::HOST
            ),
            _ => writeln!(
                stderr,
                "this host: {}\n\
                 each mote answers ping, echo (TCP and UDP 7), discard (TCP and UDP 9),\n\
                 chargen (TCP 19) and iperf3 (5201){besides}, and serves\n\
                 {connections} TCP connection{plural} at a time (--connections)",
                plan::HOST
            ),
        };
        if let Some(latency) = latency(rests) {
            let _ = writeln!(stderr, "{latency}");
        }
        if args.command.is_empty() {
            let _ = writeln!(stderr, "your shell follows: leave it to end the mesh");
        }
    }

    /// The application that a mote serves besides; none for readings.
    const fn application(name: AppName) -> Option<Application> {
        match name {
            AppName::Http => Some(Application::Http),
            AppName::Shell => Some(Application::Shell),
            AppName::Coap | AppName::Firmware => None,
        }
    }

    /// How long Linux tries to open a connection: six repetitions of its SYN, the last one after 63
    /// s (`tcp_syn_retries`, ip-sysctl).
    const SYN_GIVEN_UP: Duration = Duration::from_secs(127);

    /// Echo, discard, chargen, iperf3 and an application each have one.
    const LISTENERS: usize = 5;

    /// Handshakes under way at a time; more are answered by cookies.
    const HALF_OPEN: usize = 8;
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use clap::Parser;

    use super::{
        Args,
        linux::{Mesh, latency, rests},
    };

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn mesh(options: &[&str]) -> Mesh {
        let line = Line::try_parse_from(["up"].iter().chain(options)).unwrap();
        let chain = line.args.chain.mesh();
        let mesh = chain.and_then(|chain| Mesh::of(&line.args, chain));
        mesh.unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn what_sleep_costs_those_outside_is_said() {
        let said = |options: &[&str]| {
            let mesh = mesh(options);
            latency(&rests(&mesh.options))
        };
        assert_eq!(said(&["--hops", "2"]), None);
        for (policy, seconds) in [
            ("hinted", "60 s"),
            ("hinted:12.5", "12.5 s"),
            ("fixed:3", "3 s"),
            ("adaptive", "5 s"),
        ] {
            let text = said(&["--sleep", policy]).unwrap_or_default();
            let expected = format!("waits up to {seconds}");
            assert!(text.ends_with(&expected), "{policy}: {text}");
        }
        for policy in ["paper", "hinted:200"] {
            let text = said(&["--sleep", policy]).unwrap_or_default();
            assert!(text.contains("longer than Linux tries"), "{policy}: {text}");
        }
    }

    /// The pace of each node, %, and whether the border router thins ACKs.
    fn pace(options: &[&str]) -> (Vec<u8>, bool) {
        let mesh = mesh(options);
        let nodes = mesh.options.nodes.iter().map(|node| node.pace_percent);
        (nodes.collect(), mesh.options.thins_acks)
    }

    #[test]
    fn a_mesh_measures_its_pace_unless_it_is_told_not_to() {
        assert_eq!(pace(&["--hops", "2"]), (vec![100; 3], true));
        assert_eq!(
            pace(&["--hops", "2", "--pacing", "auto"]),
            (vec![100; 3], true)
        );
        for by_hand in [
            ["--pacing", "off"],
            ["--hold", "7"],
            ["--retry-delay", "40"],
        ] {
            let options = ["--hops", "2", by_hand[0], by_hand[1]];
            assert_eq!(pace(&options), (vec![0; 3], false), "{by_hand:?}");
        }
    }
}
