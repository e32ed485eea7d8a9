//! Networks to test a router in, and a router in them.

use std::{
    fs,
    io::Read as _,
    os::unix::net::UnixStream,
    path::PathBuf,
    process::{Child, Command, ExitStatus, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use motet_router::namespace;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;

/// Exit status of a case that the machine refused what it needs.
pub(crate) const NOT_PERMITTED: u8 = 77;

/// A mote and a wired server, each in a network of its own, and the router's between them:
///
/// ```text
/// mote fd01::2 --- fd01::1 mesh0, router, wire0 fd02::1 --- fd02::2 server
/// ```
const THREE: &str = "
    set -e
    for n in mote wire; do ip netns add $n; ip -n $n link set lo up; done
    ip link add mesh0 type veth peer name eth0 netns mote
    ip link add wire0 type veth peer name eth0 netns wire
    for i in mesh0 wire0; do ip link set $i up; done
    ip addr add fd01::1/64 dev mesh0 nodad
    ip addr add fd02::1/64 dev wire0 nodad
    ip -n mote addr add fd01::2/64 dev eth0 nodad
    ip -n wire addr add fd02::2/64 dev eth0 nodad
    # A packet is a segment: packets can be counted on either side.
    for n in mote wire; do ip -n $n link set eth0 up gso_max_segs 1; done
    ip -n mote route add default via fd01::1
    ip -n wire route add default via fd02::1
    echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
    ip6tables -t raw -A PREROUTING -i wire0 -p tcp
    ip netns exec mote ip6tables -t raw -A PREROUTING -i eth0 -p tcp
    ip6tables -t raw -A PREROUTING -i mesh0 -p tcp
    ip netns exec wire ip6tables -t raw -A PREROUTING -i eth0 -p tcp
    # A rule of somebody else's, to be found as it was.
    ip6tables -t mangle -A PREROUTING -i mesh0 -p tcp --dport 1 -j ACCEPT
";

/// A private network with a /run of its own; call it before any thread exists.
pub(crate) fn enter() -> namespace::Namespace {
    let namespace = match namespace::enter() {
        Ok(namespace) => namespace,
        Err(error) => {
            println!("{error}");
            std::process::exit(NOT_PERMITTED.into());
        }
    };
    sh("mount -t tmpfs tmpfs /run");
    namespace
}

/// As [`enter`], with mote and server.
pub(crate) fn three() {
    enter();
    sh(THREE);
}

/// Runs a script; panics where it fails. Returns what it prints.
pub(crate) fn sh(script: &str) -> String {
    let output = Command::new("sh").args(["-c", script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{script}\n{said}\n{stderr}");
    said
}

/// Starts a script; its end is waited for with [`finish`].
pub(crate) fn start(script: &str) -> Child {
    let mut command = Command::new("sh");
    command.args(["-c", script]).stdin(Stdio::null());
    command.spawn().unwrap()
}

/// Waits for a child; panics where it fails, or takes longer than `max`.
pub(crate) fn finish(mut child: Child, max: Duration) {
    let status = ended(&mut child, max).expect("the child ends in time");
    assert!(status.success(), "{status}");
}

/// The status of a child that ends within `max`.
pub(crate) fn ended(child: &mut Child, max: Duration) -> Option<ExitStatus> {
    let mut status = None;
    let _ = within(max, || {
        status = child.try_wait().unwrap();
        status.is_some()
    });
    status
}

/// Waits until `is_so`, for `max` at most; returns how long it took.
pub(crate) fn within(max: Duration, mut is_so: impl FnMut() -> bool) -> Option<Duration> {
    let start = Instant::now();
    loop {
        if is_so() {
            return Some(start.elapsed());
        }
        if start.elapsed() > max {
            return None;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// A file in /run, which is the case's own.
pub(crate) fn file(name: &str, len: usize) -> PathBuf {
    let path = PathBuf::from("/run").join(name);
    let bytes: Vec<u8> = (0..len).map(|i| (i * 7 + i / 251) as u8).collect();
    fs::write(&path, bytes).unwrap();
    path
}

/// The rules of a chain of the table mangle.
pub(crate) fn rules(chain: &str) -> Vec<String> {
    let rules = sh(&format!("ip6tables -t mangle -S {chain}"));
    let rules = rules.lines().filter(|line| line.starts_with("-A"));
    rules.map(str::to_owned).collect()
}

/// How many rules send packets into a queue.
pub(crate) fn queue_rules() -> usize {
    let chains = ["PREROUTING", "POSTROUTING"].map(rules);
    let rules = chains.iter().flatten();
    rules.filter(|rule| rule.contains("NFQUEUE")).count()
}

/// What the kernel says of packet queue 5: how many packets it holds, and has dropped.
pub(crate) fn queue() -> Option<(u64, u64)> {
    let text = fs::read_to_string("/proc/net/netfilter/nfnetlink_queue").unwrap();
    let line = text.lines().find(|line| line.trim().starts_with("5 "))?;
    let field = |n: usize| -> u64 { line.split_whitespace().nth(n).unwrap().parse().unwrap() };
    Some((field(2), field(5) + field(6)))
}

/// TCP packets that came into the router from one side and out of it on the other, into the mesh;
/// then out of it.
pub(crate) fn counted() -> [(u64, u64); 2] {
    let count = |command: &str, interface: &str| -> u64 {
        let rules = sh(&format!("{command} -t raw -nvxL PREROUTING"));
        let rule = rules.lines().find(|line| line.contains(interface));
        let count = rule.unwrap().split_whitespace().next().unwrap();
        count.parse().unwrap()
    };
    let down = (
        count("ip6tables", "wire0"),
        count("ip netns exec mote ip6tables", "eth0"),
    );
    let up = (
        count("ip6tables", "mesh0"),
        count("ip netns exec wire ip6tables", "eth0"),
    );
    [down, up]
}

/// A folder of programs in which nft(8) is missing: with it as `PATH` a router takes `ip6tables`.
pub(crate) fn path_without_nft() -> &'static str {
    sh("mkdir -p /run/bin
        for p in ip6tables ip6tables-nft ip6tables-legacy; do
            for p in $p $p-save $p-restore; do
                if command -v $p >/dev/null; then ln -sf $(command -v $p) /run/bin/$p; fi
            done
        done");
    "/run/bin"
}

/// A router that runs.
pub(crate) struct Router {
    child: Child,
    socket: &'static str,
}

impl Router {
    /// Starts a router for `interface` by queue 5, and waits until it has the queue and its rules.
    pub(crate) fn start(interface: &str, options: &str) -> Self {
        let words = format!("router --nfqueue 5 --interface {interface} --rules install {options}");
        Self::run(&words, "by packet queue 5")
    }

    /// Starts `motet` with these words, and waits until it has said `ready`.
    pub(crate) fn run(words: &str, ready: &str) -> Self {
        Self::spawn(motet(words), ready)
    }

    /// As [`Self::run`], by a command of the caller's.
    pub(crate) fn spawn(mut command: Command, ready: &str) -> Self {
        command.stderr(fs::File::create("/run/stderr").unwrap());
        let child = command.spawn().unwrap();
        let is_up = || said().contains(ready);
        let started = within(Duration::from_secs(20), is_up);
        assert!(started.is_some(), "{}", said());
        Self {
            child,
            socket: "/run/motet/router.sock",
        }
    }

    /// A second router, for another interface, by queue 6. What it says goes to the case's stderr.
    pub(crate) fn second(interface: &str, configure: impl FnOnce(&mut Command)) -> Self {
        let socket = "/run/second.sock";
        let mut command = motet(&format!(
            "router --nfqueue 6 --interface {interface} --rules install --socket {socket}"
        ));
        configure(&mut command);
        let child = command.spawn().unwrap();
        let router = Self { child, socket };
        let is_up = || UnixStream::connect(socket).is_ok() && queue_rules() == 4;
        assert!(within(Duration::from_secs(20), is_up).is_some());
        // It answers once all its rules are in.
        router.status();
        router
    }

    /// What `motet router status` says of it.
    pub(crate) fn status(&self) -> Value {
        let mut text = String::new();
        let mut socket = UnixStream::connect(self.socket).unwrap();
        socket.read_to_string(&mut text).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    /// Its exit status, once it has ended.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let status = ended(&mut self.child, Duration::from_secs(20));
        status.unwrap_or_else(|| panic!("the router does not end: {}", said()))
    }

    /// Ends it as an operator does; it must have left nothing behind.
    pub(crate) fn end(mut self) {
        self.signal(Signal::SIGTERM);
        let status = self.ended();
        assert!(status.success(), "{status}: {}", said());
        leaves_nothing();
    }
}

/// No rule, no socket, no queue is left.
pub(crate) fn leaves_nothing() {
    assert_eq!(queue_rules(), 0);
    assert_eq!(queue(), None);
    let filters = sh("ip6tables-save; if command -v nft >/dev/null; then nft list tables; fi");
    assert!(!filters.contains("motet"), "{filters}");
    assert!(!fs::exists("/run/motet/router.sock").unwrap());
}

/// A command that ended with this status and one sentence, which holds `words`; what it left out of
/// a scenario it may have said before.
pub(crate) fn refused(output: &Output, status: i32, words: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{stderr}");
    let remark = "motet: the scenario's flows and duration are left out";
    let sentences = stderr.lines().filter(|line| !line.starts_with(remark));
    assert_eq!(sentences.count(), 1, "{stderr}");
    assert!(stderr.contains(words), "{stderr}");
}

/// What the router has written to stderr.
pub(crate) fn said() -> String {
    fs::read_to_string("/run/stderr").unwrap()
}

/// The command with these words.
pub(crate) fn motet(words: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_motet"));
    command.args(words.split_whitespace()).stdin(Stdio::null());
    command
}
