//! Thresholds of single findings, and what they mean.

use super::flows;
use super::link::Link;

/// What it means that an announcement changes: from how many changes on, how bad it is, and why.
pub(super) fn contradiction(
    what: &str,
    name: &str,
    changes: u64,
    values: &str,
) -> Option<(u64, u32, String)> {
    Some(match what {
        "prefix" => (
            3,
            81,
            format!(
                "{name} announces prefixes that contradict each other ({values}), {changes} changes"
            ),
        ),
        "version" => (
            2,
            79,
            format!(
                "the DODAG's version changes {changes} times by {name} ({values}): each time the whole network is built anew"
            ),
        ),
        "mode" | "dodag" => (
            2,
            79,
            format!(
                "{name} announces a DODAG of another {what} in turn ({values}), {changes} changes"
            ),
        ),
        "DTSN" => (
            4,
            77,
            format!("{name} asks for DAOs again and again: its DTSN changes {changes} times"),
        ),
        "rank" => (
            6,
            74,
            format!("the rank of {name} does not settle: {changes} changes ({values})"),
        ),
        "parent" => (
            4,
            76,
            format!("DAOs name changing parents of {name}: {changes} changes ({values})"),
        ),
        _ => return None,
    })
}

/// When a link needed many more retries than it usually does: since when, and how many for a
/// frame then and usually.
pub(super) fn worsening(link: &Link) -> Option<(f64, f64, f64)> {
    let rates = link.spans.pieces();
    let rates = rates.filter_map(|([from_s, _], span)| Some((span.own_retries()?, from_s)));
    let rates: Vec<(f64, f64)> = rates.collect();
    let bad = |rate: f64, usual: f64| rate >= 0.5 && rate >= 4.0 * usual + 0.2;
    // A step: all before it is good, and it lasts. A crowd makes single bad spans.
    for (at, pair) in rates.windows(2).enumerate().skip(1) {
        let before = rates.get(..at)?.iter().map(|(rate, _)| *rate);
        let usual = before.fold(0.0, f64::max);
        if let [(first, since), (second, _)] = pair
            && bad(*first, usual)
            && bad(*second, usual)
        {
            return Some((*since, first.max(*second), usual));
        }
    }
    None
}

/// When a link was far weaker than at its best, and weak: from when to when, s; how weak and how
/// strong, dBm.
pub(super) fn weakening(link: &Link) -> Option<([f64; 2], [f64; 2])> {
    let levels = link.spans.pieces();
    let levels: Vec<(f64, [f64; 2])> = levels
        .filter_map(|(times, span)| Some((span.rssi_dbm()?, times)))
        .collect();
    let best = levels.iter().map(|(dbm, _)| *dbm).fold(f64::MIN, f64::max);
    let is_weak = |dbm: f64| dbm <= WEAK_DBM && dbm <= best - FALL_DB;
    let weak = levels.iter().filter(|(dbm, _)| is_weak(*dbm));
    let worst = weak.clone().map(|(dbm, _)| *dbm).reduce(f64::min)?;
    let [from_s, _] = weak.clone().map(|(_, times)| *times).next()?;
    let [_, to_s] = weak.map(|(_, times)| *times).last()?;
    Some(([from_s, to_s], [worst, best]))
}

/// Retries for each frame that are many.
///
/// A receiver that is busy acknowledges nothing. Where acknowledgments are lost between nodes that
/// hear one another well, something disturbs the link, and fewer retries are many.
pub(super) fn many_retries(link: &Link) -> f64 {
    let loses_acks = link.acknowledged as f64 >= LOST_ACKS * link.asked as f64;
    match link.rssi_dbm() {
        Some(STRONG_DBM..) if loses_acks => 0.8,
        _ => 1.5,
    }
}

/// The share of retransmissions, in %, that is more than TCP's own search for its window makes.
pub(super) fn many_again(cause: &str) -> f64 {
    match cause {
        // Where senders do not hear each other, TCP finds its pace by collisions; where a mote
        // sleeps, its timers run while ACKs wait for it.
        flows::COLLISION | flows::ASLEEP => 30.0,
        flows::LINK | flows::RELAY | flows::ACK_LATE => 5.0,
        _ => 2.0,
    }
}

/// Within some 10 dB of what radios of IEEE 802.15.4 receive.
const WEAK_DBM: f64 = -88.0;
/// A fall that is no flicker of a link that stays as it is.
const FALL_DB: f64 = 10.0;
/// 20 dB and more above what radios of IEEE 802.15.4 receive.
const STRONG_DBM: f64 = -75.0;
/// Acknowledgments for each frame: a sender that hears the first sends the frame no more.
const LOST_ACKS: f64 = 1.2;

pub(super) fn counted(number: u64, what: &str) -> String {
    if number == 1 {
        format!("1 {what}")
    } else {
        format!("{number} {what}s")
    }
}

/// Messages of one sender in ten seconds that are a flood.
pub(super) fn limit_of(kind: &str) -> u64 {
    match kind {
        "router advertisement" | "router solicitation" | "DIS" | "beacon request" => 12,
        "DIO" | "DAO" | "beacon" => 30,
        // While an answer is due a child asks each 100 ms (TCPlp, section 9.2), and while it is sent
        // data as often as there are frames for it.
        "data request" => 300,
        _ => 40,
    }
}
