//! What the packet filter holds beside the queue: rules of several routers, and those against forged
//! sources.

use std::{process::Command, thread, time::Duration};

use nix::sys::signal::Signal;

use crate::nets::{Router, leaves_nothing, motet, path_without_nft, rules, sh, three, within};

const SOON: Duration = Duration::from_secs(30);

/// Looks at the rules are five seconds apart: two of them.
const TWO_LOOKS: Duration = Duration::from_secs(12);

/// As two units of systemd are started. A program that sets its rules last would find the other's
/// behind them each time.
pub(crate) fn two_routers_leave_each_others_rules() {
    three();
    sh("set -e
        ip link add mesh1 type veth peer name eth1 netns mote
        ip link set mesh1 up; ip addr add fd03::1/64 dev mesh1 nodad");
    let path = path_without_nft();
    let mut command = motet("router --nfqueue 5 --interface mesh0 --rules install");
    command.env("PATH", path);
    let first = Router::spawn(command, "by packet queue 5");
    let mut second = Router::second("mesh1", |command| {
        command.env("PATH", path);
    });
    let before = ["PREROUTING", "POSTROUTING", "FORWARD"].map(rules);
    thread::sleep(TWO_LOOKS);
    for router in [&first, &second] {
        let status = router.status();
        assert_eq!(status["counters"]["rules_restored"], 0, "{status}");
    }
    assert_eq!(["PREROUTING", "POSTROUTING", "FORWARD"].map(rules), before);
    // Somebody else's rule behind both has each put its own behind it, and then they are content.
    sh("ip6tables -t mangle -A PREROUTING -p udp -j ACCEPT");
    let restored = |router: &Router| router.status()["counters"]["rules_restored"].as_u64();
    let have_restored = || [&first, &second].map(restored) == [Some(1), Some(1)];
    assert!(within(SOON, have_restored).is_some());
    thread::sleep(TWO_LOOKS);
    assert!(have_restored());
    second.signal(Signal::SIGTERM);
    assert!(second.ended().success());
    first.end();
}

/// From outside, with a mote's address: neither TCP nor UDP nor ICMPv6 comes through, by either tool;
/// everybody else's does.
pub(crate) fn a_source_inside_is_dropped_and_counted() {
    three();
    sh(
        "ip netns exec mote ip6tables -t raw -A PREROUTING -s fd01::77 -i eth0
        ip -n wire addr add fd01::77/128 dev eth0 nodad
        ip -n wire addr add fd04::77/128 dev eth0 nodad
        ip -n mote addr add fd04::2/128 dev eth0 nodad",
    );
    let came = || -> u64 {
        let rules = sh("ip netns exec mote ip6tables -t raw -nvxL PREROUTING");
        let rule = rules.lines().find(|line| line.contains("fd01::77"));
        let count = rule.unwrap().split_whitespace().next().unwrap();
        count.parse().unwrap()
    };
    assert_eq!(
        forge("fd01::77", "fd01::2"),
        came(),
        "all come, without a router"
    );
    let before = came();
    let path = std::env::var("PATH").unwrap();
    for (tool, path) in [("nft", &*path), ("ip6tables", path_without_nft())] {
        if tool == "nft"
            && let Err(why) = has_nft()
        {
            println!("not run with nft: {why}");
            continue;
        }
        let mut command =
            motet("router --nfqueue 5 --interface mesh0 --rules install --policy none");
        command.env("PATH", path);
        let router = Router::spawn(command, "by packet queue 5");
        let ours = sh("ip6tables -t mangle -S");
        assert_eq!(
            ours.contains("motet-inside-5"),
            tool == "ip6tables",
            "{ours}"
        );
        let forged = || router.status()["counters"]["forged"].as_u64().unwrap();
        let count_to = |count: u64| {
            let is_so = || forged() == count;
            assert!(
                within(SOON, is_so).is_some(),
                "{tool}: {} of {count}",
                forged()
            );
        };
        let mut sent = forge("fd01::77", "fd01::2");
        count_to(sent);
        assert_eq!(came(), before, "{tool}");
        // Whose address is outside, this machine's own among them, comes through; so does what a
        // mote sends.
        sh("set -e
            ip netns exec wire ping -c 1 -W 5 -I fd02::2 fd01::2
            ping -c 1 -W 5 -I fd01::1 fd01::2
            ip netns exec mote ping -c 1 -W 5 -I fd01::2 fd02::2");
        // The rules follow the routes, and what was counted stays.
        sh("ip route add fd04::/64 dev mesh0");
        let follows = || match tool {
            "nft" => sh("nft list table ip6 motet_inside_5").contains("fd04::/64"),
            _ => sh("ip6tables -t mangle -S").contains("fd04::/64"),
        };
        assert!(within(SOON, follows).is_some(), "{tool}");
        sent += forge("fd04::77", "fd01::2");
        count_to(sent);
        sh("ip route del fd04::/64 dev mesh0");
        // What another program removes is put in again.
        match tool {
            "nft" => sh("nft delete table ip6 motet_inside_5"),
            _ => sh("ip6tables -t mangle -F FORWARD"),
        };
        let is_restored = || router.status()["counters"]["rules_restored"] == 1;
        assert!(within(SOON, is_restored).is_some(), "{}", router.status());
        sent += forge("fd01::77", "fd01::2");
        count_to(sent);
        assert_eq!(came(), before, "{tool}");
        let killed = tool == "ip6tables";
        if killed {
            is_taken_over(router, path);
        } else {
            router.end();
        }
        println!("{tool}: {sent} forged packets dropped");
    }
}

/// The rules that a killed router leaves are the next one's.
fn is_taken_over(mut router: Router, path: &str) {
    router.signal(Signal::SIGKILL);
    router.ended();
    let mut command = motet("router --nfqueue 5 --interface mesh0 --rules install");
    command.env("PATH", path);
    let router = Router::spawn(command, "by packet queue 5");
    assert_eq!(rules("FORWARD").len(), 1, "{:?}", rules("FORWARD"));
    router.end();
    leaves_nothing();
}

/// A SYN, a datagram and an echo request from the wired server, with that source; returns how many
/// packets left it.
fn forge(source: &str, to: &str) -> u64 {
    let count = format!("ip netns exec wire ip6tables -t raw -A OUTPUT -s {source} -d {to}");
    sh(&count);
    sh(&format!(
        "ip netns exec wire nc -z -s {source} -w 1 {to} 4000
         echo x | ip netns exec wire nc -u -s {source} -w 1 {to} 4000
         ip netns exec wire ping -c 1 -W 1 -I {source} {to}
         true"
    ));
    let rules = sh("ip netns exec wire ip6tables -t raw -nvxL OUTPUT");
    sh("ip netns exec wire ip6tables -t raw -F OUTPUT");
    let rule = rules.lines().find(|line| line.contains(source)).unwrap();
    let count = rule.split_whitespace().next().unwrap().parse().unwrap();
    assert!(count >= 3, "{rules}");
    count
}

/// Whether the machine has nft, and its kernel the filter that nft sets.
fn has_nft() -> Result<(), String> {
    match Command::new("nft").args(["list", "tables"]).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(format!(
            "the kernel refuses: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        )),
        Err(error) => {
            let is_ci = std::env::var("CI").is_ok_and(|value| value == "true");
            assert!(!is_ci, "nft: {error}");
            Err(error.to_string())
        }
    }
}
