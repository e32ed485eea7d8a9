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

/// A stretch in which a sender was heard far more weakly than at its best, and its frames failed
/// more often.
///
/// The strength is that at the sniffer, and falls where the sniffer moves; the link is worse where
/// its receiver shows it as well.
#[derive(Clone, Debug)]
pub(super) struct Weakness {
    /// From when to when, s.
    pub(super) times: [f64; 2],
    /// How weak, and how strong at its best, dBm.
    pub(super) dbm: [f64; 2],
    /// Failed attempts for each frame, then and where the sender was heard well.
    pub(super) failed: [f64; 2],
    /// Frames that show it, and failed attempts at them.
    counts: (u64, u64),
}

impl Weakness {
    pub(super) fn length_s(&self) -> f64 {
        self.times[1] - self.times[0]
    }
}

/// The longest such stretch of a link.
pub(super) fn weakening(link: &Link) -> Option<Weakness> {
    let levels = link.spans.pieces().map(|(_, span)| span.rssi_dbm());
    let best = levels.flatten().reduce(f64::max)?;
    let is_weak = |dbm: f64| dbm <= WEAK_DBM && dbm <= best - FALL_DB;
    let well = link.spans.pieces().map(|(_, span)| span);
    let well = well.filter(|span| span.rssi_dbm().is_some_and(|dbm| !is_weak(dbm)));
    let (asked, failed) = well.fold((0, 0), |(asked, failed), span| {
        (asked + span.asked, failed + span.failed())
    });
    let usual = failed as f64 / asked.max(1) as f64;
    let (mut longest, mut run) = (None, None);
    for ([from_s, to_s], span) in link.spans.pieces() {
        let rate = span.failed() as f64 / span.asked.max(1) as f64;
        let dbm = span.rssi_dbm().filter(|dbm| is_weak(*dbm));
        let dbm = dbm.filter(|_| rate >= RISE * usual + RISE_MIN);
        let Some(dbm) = dbm else {
            run = None;
            continue;
        };
        let begun = run.unwrap_or(Weakness {
            times: [from_s, to_s],
            dbm: [dbm, best],
            failed: [rate, usual],
            counts: (0, 0),
        });
        let counts = (begun.counts.0 + span.asked, begun.counts.1 + span.failed());
        let now = Weakness {
            times: [begun.times[0], to_s],
            dbm: [begun.dbm[0].min(dbm), best],
            failed: [counts.1 as f64 / counts.0.max(1) as f64, usual],
            counts,
        };
        let is_longer = |longest: &Weakness| now.length_s() > longest.length_s();
        if counts.0 >= WEAK_MIN && longest.as_ref().is_none_or(is_longer) {
            longest = Some(now.clone());
        }
        run = Some(now);
    }
    longest
}

/// Retries for each frame that are many.
///
/// A receiver that is busy acknowledges nothing. Where frames arrive and their acknowledgments are
/// lost, something disturbs the link, and fewer retries are many.
pub(super) fn many_retries(link: &Link) -> f64 {
    match link.acknowledged as f64 >= LOST_ACKS * link.asked as f64 {
        true => 0.8,
        false => 1.5,
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
/// By how much failures rise with a weak signal: a factor, and some of a hundred frames more.
const RISE: f64 = 1.5;
const RISE_MIN: f64 = 0.1;
/// Frames that show it.
const WEAK_MIN: u64 = 20;
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
        // While an answer is due a child asks each 100 ms (TCPlp, section 9.2), and while it is
        // sent data as often as there are frames for it.
        "data request" => 300,
        _ => 40,
    }
}
