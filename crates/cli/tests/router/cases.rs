//! The cases.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::TcpStream,
    os::unix::process::CommandExt as _,
    process::{Child, Command, ExitCode, ExitStatus},
    time::Duration,
};

use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use serde_json::Value;

use crate::nets::{
    NOT_PERMITTED, Router, counted, file, finish, leaves_nothing, motet, queue, queue_rules,
    refused, rules, said, sh, start, three, within,
};
use crate::{air, flood, outside};

const CASES: &[(&str, fn())] = &[
    (
        "flows pass whole, and are seen",
        flows_pass_whole_and_are_seen,
    ),
    ("SIGTERM lets go what is held", sigterm_lets_go_what_is_held),
    (
        "SIGKILL loses what is held alone",
        sigkill_loses_what_is_held_alone,
    ),
    (
        "what cannot be is one sentence",
        what_cannot_be_is_one_sentence,
    ),
    (
        "an interface that goes ends it",
        an_interface_that_goes_ends_it,
    ),
    (
        "rules that go come back, last",
        rules_that_go_come_back_last,
    ),
    (
        "two routers leave each other's rules",
        outside::two_routers_leave_each_others_rules,
    ),
    (
        "a source inside is dropped, and counted",
        outside::a_source_inside_is_dropped_and_counted,
    ),
    ("a stranger's page is bounded", a_strangers_page_is_bounded),
    ("one capability is enough", one_capability_is_enough),
    (
        "relay: what is lost goes again",
        what_is_lost_goes_again_from_here,
    ),
    ("air: a border router", air::is_a_border_router),
    (
        "air: a key that changes",
        air::takes_the_key_and_the_next_one,
    ),
    ("air: without root", air::needs_no_root),
    ("air: both radios", air::reaches_motes_on_either_radio),
    ("air: an interface that goes", air::ends_with_its_interface),
    (
        "a flood passes, and leaves nothing",
        flood::passes_and_leaves_nothing,
    ),
];

/// Runs each case in a process of its own.
pub(crate) fn all(arguments: &[String]) -> ExitCode {
    let filter = arguments.iter().find(|argument| !argument.starts_with('-'));
    let filter = filter.map_or("", String::as_str);
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
    for program in ["ip", "ip6tables", "nc", "mount"] {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let is_here = std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
        if !is_here {
            println!("not run: {program} is not installed");
            return ExitCode::from(u8::from(is_ci));
        }
    }
    let mut failed = 0;
    for (name, _) in CASES.iter().filter(|(name, _)| name.contains(filter)) {
        let (status, said, why) = run(name);
        let word = match status.code() {
            Some(0) => "ok",
            Some(code) if code == i32::from(NOT_PERMITTED) && !is_ci => "not run",
            _ => "FAILED",
        };
        println!("{word}: {name}: {}", said.trim());
        if word == "FAILED" {
            println!("{why}");
            failed += 1;
        }
    }
    ExitCode::from(u8::from(failed > 0))
}

/// Runs a case to its end, and ends what it has left; returns what it says.
fn run(name: &str) -> (ExitStatus, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name| folder.path().join(name);
    let mut case = Command::new(std::env::current_exe().unwrap())
        .args(["case", name])
        .process_group(0)
        .stdout(fs::File::create(path("stdout")).unwrap())
        .stderr(fs::File::create(path("stderr")).unwrap())
        .spawn()
        .unwrap();
    let status = case.wait().unwrap();
    // Nobody is left in the group, as a rule.
    let _ = killpg(Pid::from_raw(case.id().cast_signed()), Signal::SIGKILL);
    let read = |name| fs::read_to_string(path(name)).unwrap();
    (status, read("stdout"), read("stderr"))
}

/// Runs one case, here.
pub(crate) fn main(arguments: &[String]) -> ExitCode {
    // A case that hangs is ended by SIGALRM.
    nix::unistd::alarm::set(120);
    let name = arguments.first().map_or("", String::as_str);
    let case = CASES.iter().find(|(this, _)| *this == name);
    let (_, case) = case.expect("a case of this name");
    case();
    ExitCode::SUCCESS
}

/// Bytes both ways; what is in them, and the page and the socket say so; then no trace is left.
fn flows_pass_whole_and_are_seen() {
    three();
    let router = Router::start("mesh0", "--policy none --metrics [::1]:9119");
    let path = file("sent", 500_000);
    let path = path.display();
    let up = start("ip netns exec wire nc -6 -dl fd02::2 4000 > /run/up");
    let down = start(&format!(
        "ip netns exec wire nc -6 -lN fd02::2 4001 < {path}"
    ));
    wait_for_listeners("wire", 2);
    finish(
        start(&format!("ip netns exec mote nc -N fd02::2 4000 < {path}")),
        SOON,
    );
    finish(
        start("ip netns exec mote nc -d fd02::2 4001 > /run/down"),
        SOON,
    );
    finish(up, SOON);
    finish(down, SOON);
    sh("cmp /run/sent /run/up && cmp /run/sent /run/down");

    let status = router.status();
    assert_eq!(status["schema"], 1);
    assert_eq!(status["policy"], "none");
    let [flows, motes] = ["flows", "motes"].map(|key| status[key].as_array().unwrap().clone());
    assert_eq!((flows.len(), motes.len()), (2, 1), "{status}");
    let bytes = |key: &str| {
        flows
            .iter()
            .map(|flow| flow[key].as_u64().unwrap())
            .sum::<u64>()
    };
    assert_eq!((bytes("bytes_up"), bytes("bytes_down")), (500_000, 500_000));
    assert_eq!(motes[0]["mote"], "fd01::2");
    assert_eq!(motes[0]["bytes_up"], 500_000);
    let [down, up] = counted();
    let packets = status["counters"]["packets"].as_u64().unwrap();
    assert_eq!(packets, down.0 + up.0, "each packet is seen once");
    assert_eq!((down.0, up.0), (down.1, up.1), "what came in went out");

    let page = page("GET /metrics HTTP/1.1\r\n\r\n");
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    let sample = "motet_mote_bytes_total{mote=\"fd01::2\",direction=\"down\"} 500000\n";
    assert!(page.contains(sample), "{page}");
    let table = motet("router status").output().unwrap();
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(
        table.contains("fd01::2") && table.contains("500 kB"),
        "{table}"
    );
    let json = motet("router status --json").output().unwrap();
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["flows"].as_array().unwrap().len(), 2);
    router.end();
    assert_eq!(rules("PREROUTING").len(), 1, "the rule of somebody else's");
    let gone = motet("router status").output().unwrap();
    refused(&gone, 1, "no router answers");
}

/// Ten downloads through a router that lets a packet go every 35 ms: its queue stands. They begin at
/// once, and are long enough to be under way together: one or two would pass as they come.
fn queue_up(router: &Router) -> Vec<Child> {
    file("sent", 500_000);
    sh("rm -f /run/go");
    let mut children = Vec::new();
    for port in 4000..4010 {
        children.push(start(&format!(
            "ip netns exec mote nc -6 -d -l fd01::2 {port} > /run/got{port}"
        )));
    }
    wait_for_listeners("mote", 10);
    for port in 4000..4010 {
        children.push(start(&format!(
            "(until [ -e /run/go ]; do sleep 0.02; done; cat /run/sent) |
             ip netns exec wire nc -N fd01::2 {port}"
        )));
    }
    wait_for_connections("mote", 10);
    file("go", 0);
    let stands = || router.status()["motes"][0]["held_now"].as_u64() >= Some(40);
    assert!(within(SOON, stands).is_some(), "{}", router.status());
    // On a busy machine some have long filled the queue when others begin.
    let have_begun = || !sh("ip netns exec wire cat /proc/net/tcp6").contains(" 01 00000000:");
    assert!(within(SOON, have_begun).is_some());
    children
}

fn all_came(children: Vec<Child>) {
    for child in children {
        finish(child, SOON);
    }
    for port in 4000..4010 {
        sh(&format!("cmp /run/sent /run/got{port}"));
    }
}

fn sigterm_lets_go_what_is_held() {
    three();
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut router = Router::start("mesh0", "--policy fq");
        let children = queue_up(&router);
        router.signal(signal);
        let is_empty = || queue().is_none_or(|(held, _)| held == 0);
        let took = within(SOON, is_empty).expect("it lets go");
        assert!(took < Duration::from_millis(200), "{took:?}");
        let status = router.ended();
        assert!(status.success(), "{status}: {}", said());
        leaves_nothing();
        all_came(children);
        let [down, up] = counted();
        assert_eq!((down.0, up.0), (down.1, up.1), "nothing was lost");
        println!("held packets went in {took:?}");
    }
}

fn sigkill_loses_what_is_held_alone() {
    three();
    let mut router = Router::start("mesh0", "--policy fq");
    let children = queue_up(&router);
    // Stopped first, so that what it holds can be counted: until the senders have no more to send.
    router.signal(Signal::SIGSTOP);
    let mut held = 0;
    let has_settled = || {
        let before = std::mem::replace(&mut held, queue().unwrap().0);
        std::thread::sleep(Duration::from_millis(200));
        held == before
    };
    assert!(within(SOON, has_settled).is_some());
    router.signal(Signal::SIGKILL);
    router.ended();
    // The rules stand, and packets pass them.
    assert_eq!((queue_rules(), queue()), (2, None));
    all_came(children);
    let [down, up] = counted();
    let lost = (down.0 - down.1) + (up.0 - up.1);
    assert!(lost > 0 && lost <= held + 20, "{lost} lost of {held}");
    // The next one takes rules and socket over.
    let router = Router::start("mesh0", "--policy none");
    assert_eq!(queue_rules(), 2);
    router.end();
    println!("lost {lost}");
}

fn what_cannot_be_is_one_sentence() {
    three();
    let of = |words: &str| motet(words).output().unwrap();
    let nowhere = of("router --nfqueue 5 --interface mesh9");
    refused(&nowhere, 2, "no interface mesh9");
    refused(&of("router --nfqueue 5 --interface me;sh"), 2, "no name");
    refused(&of("router --nfqueue 65536 --interface mesh0"), 2, "65535");
    refused(&of("router --nfqueue 5"), 2, "--interface");
    refused(&of("router --interface mesh0"), 2, "--nfqueue");
    let unfair = of("router --nfqueue 5 --interface mesh0 --policy nice");
    refused(&unfair, 2, "admission");
    let printed = of("router --nfqueue 5 --interface mesh0 --rules print");
    assert!(printed.status.success());
    assert_eq!(queue_rules(), 0, "printing changes nothing");
    // What is printed works in a shell.
    let printed = String::from_utf8(printed.stdout).unwrap();
    let (install, remove) = printed.split_once("# to take them out").unwrap();
    sh(&format!("set -e\n{install}"));
    assert_eq!(queue_rules(), 2, "{install}");
    sh(&format!("set -e\n{remove}"));
    assert_eq!(queue_rules(), 0, "{remove}");

    let router = Router::start("mesh0", "");
    let second = of("router --nfqueue 5 --interface mesh0 --rules install");
    refused(&second, 1, "packet queue 5 belongs to another process");
    assert_eq!(queue_rules(), 2, "the first one's rules stand");
    let same = of("router --nfqueue 6 --interface mesh0 --socket /run/motet/router.sock");
    refused(&same, 2, "another router answers");
    router.end();

    let words = "router --nfqueue 5 --interface mesh0 --rules install";
    let mut powerless = Command::new("setpriv");
    powerless.args(["--bounding-set=-net_admin", "--inh-caps=-net_admin"]);
    powerless.arg(env!("CARGO_BIN_EXE_motet"));
    let powerless = powerless.args(words.split_whitespace()).output().unwrap();
    refused(&powerless, 1, "CAP_NET_ADMIN");
    leaves_nothing();
}

/// The mote's side loses packets, and the copies from here arrive. The kernel may lack the match
/// that loses them: then there is nothing to repair.
fn what_is_lost_goes_again_from_here() {
    three();
    let loses = "ip netns exec mote ip6tables -A INPUT -p tcp -m statistic --mode random --probability 0.05 -j DROP";
    let can_lose = Command::new("sh").args(["-c", loses]).output().unwrap();
    // As small devices have it: few segments under way, and neither SACK nor timestamps.
    sh("for n in mote wire; do
            ip netns exec $n sh -c 'echo 0 > /proc/sys/net/ipv4/tcp_sack
                echo 0 > /proc/sys/net/ipv4/tcp_timestamps
                echo 4096 4096 4096 > /proc/sys/net/ipv4/tcp_rmem'
            ip -n $n link set eth0 mtu 1280
        done");
    let router = Router::start("mesh0", "--policy relay");
    file("sent", 400_000);
    let got = start("ip netns exec mote nc -6 -d -l fd01::2 4000 > /run/got");
    wait_for_listeners("mote", 1);
    finish(
        start("ip netns exec wire nc -N fd01::2 4000 < /run/sent"),
        SOON,
    );
    finish(got, SOON);
    sh("cmp /run/sent /run/got");
    let counters = router.status()["counters"].clone();
    let count = |name: &str| counters[name].as_u64().unwrap();
    if can_lose.status.success() {
        assert!(count("resent") > 0, "{counters}");
    }
    println!(
        "{} sent again, {} swallowed",
        count("resent"),
        count("swallowed")
    );
    router.end();
}

/// As a unit of systemd starts it.
fn one_capability_is_enough() {
    three();
    let mut command = Command::new("setpriv");
    command.args([
        "--bounding-set=-all,+net_admin",
        "--inh-caps=-all,+net_admin",
    ]);
    command.args(["--no-new-privs", env!("CARGO_BIN_EXE_motet")]);
    let words = "router --nfqueue 5 --interface mesh0 --rules install";
    command.args(words.split_whitespace());
    let router = Router::spawn(command, "by packet queue 5");
    let status = fs::read_to_string(format!("/proc/{}/status", router.pid())).unwrap();
    assert!(status.contains("CapEff:\t0000000000001000"), "{status}");
    assert_eq!(queue_rules(), 2);
    router.end();
}

fn an_interface_that_goes_ends_it() {
    three();
    let mut router = Router::start("mesh0", "--policy fq");
    let children = queue_up(&router);
    sh("ip link del mesh0");
    let status = router.ended();
    assert_eq!(status.code(), Some(1), "{}", said());
    assert!(said().contains("interface mesh0 is gone"), "{}", said());
    leaves_nothing();
    for mut child in children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}

fn rules_that_go_come_back_last() {
    three();
    let router = Router::start("mesh0", "--policy none");
    let restored = |count: u64| {
        let is_so = || router.status()["counters"]["rules_restored"] == count;
        assert!(within(SOON, is_so).is_some(), "{}", router.status());
        assert_eq!(queue_rules(), 2);
    };
    sh("ip6tables -t mangle -F POSTROUTING");
    restored(1);
    // A rule behind ours would be skipped by what passes the queue.
    let other = "-A PREROUTING -i mesh0 -p udp -j ACCEPT";
    sh(&format!("ip6tables -t mangle {other}"));
    restored(2);
    let rules = rules("PREROUTING");
    assert!(rules.contains(&other.to_owned()), "{rules:?}");
    assert!(rules.last().unwrap().contains("NFQUEUE"), "{rules:?}");
    router.end();
}

/// Connections that say nothing, too much or nonsense keep nobody out.
fn a_strangers_page_is_bounded() {
    three();
    let router = Router::start("mesh0", "--metrics [::1]:9119");
    let connect = || TcpStream::connect("[::1]:9119").unwrap();
    assert!(page("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    assert!(page("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(page("nonsense\r\n\r\n").starts_with("HTTP/1.1 400"));
    let mut endless = connect();
    // It is cut off: writing fails in the end.
    let cut = within(SOON, || endless.write_all(&[b'a'; 4_096]).is_err());
    assert!(cut.is_some());
    let silent: Vec<TcpStream> = (0..200).map(|_| connect()).collect();
    let threads = || {
        fs::read_dir(format!("/proc/{}/task", router.pid()))
            .unwrap()
            .count()
    };
    assert!(threads() < 20, "{}", threads());
    let is_served = || {
        let request = "GET /metrics HTTP/1.1\r\n\r\n";
        page(request).starts_with("HTTP/1.1 200")
    };
    assert!(
        within(SOON, is_served).is_some(),
        "the silent are turned out"
    );
    drop(silent);
    router.end();
}

/// What the page answers; nothing where it hangs up.
fn page(request: &str) -> String {
    let mut page = TcpStream::connect("[::1]:9119").unwrap();
    let mut answer = String::new();
    let _ = page.write_all(request.as_bytes());
    let _ = page.read_to_string(&mut answer);
    answer
}

fn wait_for_listeners(network: &str, count: usize) {
    wait_for(network, count, " 0A ");
}

fn wait_for_connections(network: &str, count: usize) {
    wait_for(network, count, " 01 ");
}

/// Waits until so many sockets of a network are in a state.
fn wait_for(network: &str, count: usize, state: &str) {
    let table = format!("ip netns exec {network} cat /proc/net/tcp6");
    let are_there = || sh(&table).matches(state).count() == count;
    assert!(within(SOON, are_there).is_some());
}

const SOON: Duration = Duration::from_secs(30);
