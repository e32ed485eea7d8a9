//! The router as a border router of its own, in the network that it is started in.

use std::{fs, process::Command, time::Duration};

use nix::sys::signal::Signal;

use crate::nets::{Router, enter, file, finish, motet, refused, said, sh, start, within};

/// Two hops; the second mote hears the first alone.
const SCENARIO: &str = "\
[topology]
joining = \"static\"
matrix = \"chain.txt\"
parents = [0, 1]
[[flow]]
from = 1
";

/// Nobody is hidden: bytes that come for the first time behind later ones would not be counted.
const MATRIX: &str = "\
- -60 -70
-60 - -60
-70 -60 -
";

/// A mote in the mesh, and one over Bluetooth LE.
const MIXED: &str = include_str!("../mixed.toml");

const OVER_BLE: &str = "fd12::2:c24d:6fff:fe74:2";
const NEAR: &str = "fd12::1:4d:6f74:6574:1";
const FAR: &str = "fd12::1:4d:6f74:6574:2";

const WORDS: &str = "router --air /run/mesh.toml --tun mesh0 --prefix fd12:0:0:1::/64";

const SOON: Duration = Duration::from_secs(30);

fn scenario() {
    fs::write("/run/mesh.toml", SCENARIO).unwrap();
    fs::write("/run/chain.txt", MATRIX).unwrap();
}

/// Interfaces, addresses and routes, but for those of link-local scope: the kernel gives an
/// interface one of its own accord, once somebody is at its other end.
fn network() -> String {
    let all = sh("ip -o link; ip -o addr; ip -6 route show table all; ip6tables-save || true");
    let is_told = |line: &&str| !line.starts_with('#') && !line.contains("fe80::");
    all.lines().filter(is_told).collect::<Vec<_>>().join("\n")
}

/// The motes answer, are seen, and nothing of the network but the interface has changed; with it
/// all goes.
pub(crate) fn is_a_border_router() {
    enter();
    scenario();
    sh("ip link add other0 type veth peer name other1; ip link set other0 up; ip link set other1 up
        ip addr add fd77::1/64 dev other0 nodad");
    // Their link-local addresses are there.
    let has_settled = || {
        let addresses = sh("ip -o addr");
        addresses.matches("fe80::").count() == 2
            && !addresses.contains("tentative")
            && network().contains("local fd77::1")
    };
    assert!(within(SOON, has_settled).is_some());
    let before = network();
    let mut router = Router::run(WORDS, "motes below fd12:0:0:1::/64");
    // Where its motes are is seen before any of them has traffic.
    let status = router.status();
    let motes = status["motes"].as_array().unwrap();
    let hops: Vec<_> = motes.iter().map(|mote| mote["hops"].as_u64()).collect();
    assert_eq!(hops, [Some(1), Some(2)], "{status}");
    assert_eq!(motes[1]["mote"], FAR);
    assert_eq!(motes[1]["name"], "mote2");
    echo(3_000);
    let status = router.status();
    let motes = status["motes"].as_array().unwrap();
    let mote = motes
        .iter()
        .find(|mote| mote["mote"] == FAR)
        .unwrap_or_else(|| panic!("{status}"));
    let bytes = [&mote["bytes_up"], &mote["bytes_down"]];
    assert_eq!(bytes, [3_000, 3_000], "{mote}");
    assert_eq!(
        (mote["hops"].as_u64(), mote["parent"].as_str()),
        (Some(2), Some(NEAR))
    );
    assert_eq!(status["policy"], "auto");
    router.signal(Signal::SIGTERM);
    let status = router.ended();
    assert!(status.success(), "{status}: {}", said());
    within(SOON, || network() == before);
    assert_eq!(network(), before);
    assert!(!fs::exists("/run/motet/router.sock").unwrap());

    // The policy is the scenario's, unless the command line names one.
    fs::write(
        "/run/mesh.toml",
        format!("{SCENARIO}[router]\npolicy = \"taim\"\nspacing_ms = 20.0\n"),
    )
    .unwrap();
    for (option, policy) in [("", "taim"), (" --policy fq", "fq")] {
        let router = Router::run(&format!("{WORDS}{option}"), "motes below");
        assert_eq!(router.status()["policy"], policy);
        router.end();
    }
    scenario();

    // What others have stays theirs.
    let words = |tun: &str, prefix: &str| {
        format!("router --air /run/mesh.toml --tun {tun} --prefix {prefix}")
    };
    let of = |words: &str| motet(words).output().unwrap();
    refused(
        &of(&words("other0", "fd12:0:0:1::/64")),
        1,
        "no TUN interface",
    );
    refused(&of(&words("a/b", "fd12:0:0:1::/64")), 2, "no name");
    refused(&of(&words("mesh0", "fd12::/48")), 2, "prefix");
    sh("ip route add fd12:0:0:9::/64 dev other0");
    refused(&of(&words("mesh0", "fd12:0:0:9::/64")), 1, "route already");
    sh("ip route del fd12:0:0:9::/64 dev other0");
    within(SOON, || network() == before);
    assert_eq!(network(), before);
}

/// Without any capability: an interface that was made for this user, and is as it must be.
pub(crate) fn needs_no_root() {
    enter();
    scenario();
    let bare = || {
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set=-all", "--inh-caps=-all"]);
        command.arg(env!("CARGO_BIN_EXE_motet"));
        command.args(WORDS.split_whitespace());
        command
    };
    let output = bare().output().unwrap();
    refused(&output, 1, "ip tuntap add dev mesh0 mode tun user 0;");
    sh("ip tuntap add dev mesh0 mode tun user 0");
    refused(
        &bare().output().unwrap(),
        1,
        "is not up and has not the MTU 1280 and has no route",
    );
    let said = String::from_utf8(bare().output().unwrap().stderr).unwrap();
    let (_, commands) = said.split_once(';').unwrap();
    let (commands, _) = commands.rsplit_once('`').unwrap();
    sh(commands);
    sh("ip addr add fd34::1/128 dev mesh0 nodad");
    // The kernel adds the address's own route a moment later.
    let has_settled = || network().contains("local fd34::1");
    assert!(within(SOON, has_settled).is_some());
    let before = network();
    let mut router = Router::spawn(bare(), "motes below");
    echo(500);
    let second = bare().output().unwrap();
    refused(&second, 1, "another program uses the interface mesh0");
    router.signal(Signal::SIGTERM);
    assert!(router.ended().success());
    // The kernel says a moment later that nobody holds the interface.
    within(SOON, || network() == before);
    assert_eq!(network(), before, "what root has made stays");
}

/// An interface that somebody deletes.
pub(crate) fn ends_with_its_interface() {
    enter();
    scenario();
    let mut router = Router::run(WORDS, "motes below");
    sh("ip link del mesh0");
    let status = router.ended();
    assert_eq!(status.code(), Some(1), "{}", said());
    let said = said();
    let last = said.lines().last().unwrap();
    assert!(last.contains("the link to the kernel broke"), "{said}");
    // Killed outright, it leaves no interface either.
    let mut router = Router::run(WORDS, "motes below");
    router.signal(Signal::SIGKILL);
    router.ended();
    assert!(!sh("ip -o link").contains("mesh0"));
}

/// A mesh with a key carries bytes, and goes on with the next link key when it is told so.
pub(crate) fn takes_the_key_and_the_next_one() {
    enter();
    scenario();
    let keys = |words: &str| {
        let made = motet(words).output().unwrap();
        assert!(made.status.success(), "{words}: {made:?}");
    };
    keys("keys new /run/team.key");
    let words = format!("{WORDS} --key /run/team.key --state /run/state");
    let mut router = Router::run(&words, "motes below fd12:0:0:1::/64");
    echo(2_000);
    keys("keys rotate /run/team.key");
    router.signal(Signal::SIGHUP);
    let has_reread = || said().contains("the key sequence is 1");
    assert!(within(SOON, has_reread).is_some(), "{}", said());
    echo(2_000);
    // The same again, and a backup of a day before, change nothing and say so.
    router.signal(Signal::SIGHUP);
    let is_known = || said().contains("names the same one as before");
    assert!(within(SOON, is_known).is_some(), "{}", said());
    let newest = fs::read_to_string("/run/team.key").unwrap();
    let older = newest.replace("sequence = 1", "sequence = 0");
    fs::write("/run/team.key", older).unwrap();
    router.signal(Signal::SIGHUP);
    let has_gone_back =
        || said().contains("has gone back, from network key 0 and key sequence 1 to 0 and 0");
    assert!(within(SOON, has_gone_back).is_some(), "{}", said());
    echo(2_000);
    fs::write("/run/team.key", &newest).unwrap();
    // A file that is none changes nothing.
    fs::write("/run/team.key", "no key").unwrap();
    router.signal(Signal::SIGHUP);
    let has_refused = || said().contains("is no key file, or damaged");
    assert!(within(SOON, has_refused).is_some(), "{}", said());
    echo(2_000);
    // Another router with the key would use the same counters.
    refused(&motet(&words).output().unwrap(), 2, "no key file");
    fs::write("/run/other.key", &newest).unwrap();
    sh("chmod 600 /run/other.key");
    let other = words.replace("team.key", "other.key");
    refused(&motet(&other).output().unwrap(), 2, "is in use");
    router.signal(Signal::SIGTERM);
    let status = router.ended();
    assert!(status.success(), "{status}: {}", said());
    refused(&motet(&words).output().unwrap(), 2, "no key file");
}

/// Motes over Bluetooth LE are below the prefix behind the mesh's.
pub(crate) fn reaches_motes_on_either_radio() {
    enter();
    fs::write("/run/mesh.toml", MIXED).unwrap();
    let router = Router::run(WORDS, "motes below fd12:0:0:1::/64");
    for mote in [NEAR, OVER_BLE] {
        echo_of(mote, 2_000);
    }
    router.end();
}

/// The far mote sends back what it is sent.
fn echo(len: usize) {
    echo_of(FAR, len);
}

fn echo_of(mote: &str, len: usize) {
    file("sent", len);
    finish(
        start(&format!("nc -N -w 20 {mote} 7 < /run/sent > /run/got")),
        SOON,
    );
    sh("cmp /run/sent /run/got");
}
