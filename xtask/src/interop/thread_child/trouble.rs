//! What becomes of a connection when keys rotate, and when routers end and begin.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::attach::FIRST_RADIO;
use super::capture::{judge, keys};
use super::openthread::{Border, Mote, PREFIX};
use super::rig::{Bench, Child, Parts};
use super::transfer::{Place, outside};
use crate::interop::rcp::echo::{Echo, Pace, await_reachable};
use crate::interop::rcp::rig::PATIENCE;
use crate::interop::report::{Report, Row, rounded};

/// Every disturbance in a transfer of its own.
pub(super) fn all(parts: &Parts, report: &mut Report) -> Result<()> {
    let mut bench = Bench::new(parts, "trouble")?;
    let mut children = {
        let mut leader = Mote::form(&bench, 2)?;
        let dataset = leader.dataset()?;
        let border = Border::start(&bench, Some(&dataset))?;
        leader.console.ask("parentpriority -1")?;
        let mut place = Place::around(&bench, border)?;
        for row in rotations(&bench, &mut place, &mut leader)? {
            report.add(row);
        }
        report.add(border_router(&mut place)?);
        for row in prefix(&mut place)? {
            report.add(row);
        }
        report.add(parent(&bench, &mut place, false)?);
        let first = place.renew_child(&bench, FIRST_RADIO + 1)?;
        report.add(parent(&bench, &mut place, true)?);
        let second = place.renew_child(&bench, FIRST_RADIO + 2)?;
        report.add(leader_killed(&mut place, leader)?);
        [first, second, place.child]
    };
    for row in judge(&mut bench, "trouble", &mut children)? {
        report.add(row);
    }
    Ok(())
}

/// Three keys, each taken at once by all routers, and followed by the child within the transfer.
fn rotations(bench: &Bench<'_>, place: &mut Place<'_>, leader: &mut Mote) -> Result<[Row; 2]> {
    let mut order = |place: &mut Place<'_>, command: &str| {
        leader.console.ask(command)?;
        place.router.console.ask(command)?;
        place.border.control(command).map(drop)
    };
    order(place, NO_GUARD)?;
    let mut echo = Echo::start_slowly(place.address, KIB, PACE)?;
    let mut events = Vec::new();
    for (sequence, part) in [(5, 0.2), (6, 0.45), (7, 0.7)] {
        echo.await_part(part)?;
        events.push(Instant::now());
        order(place, &format!("keysequence counter {sequence}"))?;
    }
    let row = verdict(
        "three rotations of the key",
        echo,
        &events,
        BACK_S,
        Some(3.0),
    );
    let sequence = place.router.one("keysequence counter")?;
    let row = row.note(format!("the parent's key sequence is {sequence}"));
    // The last frames so far are the transfer's.
    let keys = keys(bench, &mut place.child)?;
    let last = keys.last.map(|index| index as f64 - 1.0);
    // An index is one above its sequence.
    let pass = keys.used == [1, 6, 7, 8] && keys.last == Some(8) && sequence == "7";
    let reached = Row::new(
        "three rotations of the key: the child's key sequence at the end of the transfer",
        last,
        "",
        pass,
    );
    Ok([row, reached.note(format!("key indices: {:?}", keys.used))])
}

/// The parent, killed and started again a second later: there are others within reach.
fn parent(bench: &Bench<'_>, place: &mut Place<'_>, forgets: bool) -> Result<Row> {
    let parent = place.child.current_parent();
    let router = place.router.one("extaddr")?;
    ensure!(
        parent.as_ref() == Some(&router),
        "the parent is {parent:?}, not {router}"
    );
    let mut echo = Echo::start_slowly(place.address, KIB, PACE)?;
    echo.await_part(0.3)?;
    let killed = Instant::now();
    let memory = forgets.then_some(place.dataset.as_str());
    let pause = Duration::from_secs(1);
    place.router.restart(bench, memory, pause)?;
    place.router.console.ask("parentpriority 1")?;
    let row = match forgets {
        false => verdict(
            "the parent killed, back with its memory",
            echo,
            &[killed],
            BACK_S,
            Some(3.0),
        ),
        true => verdict(
            "the parent killed, back without its memory",
            echo,
            &[killed],
            BACK_WITHOUT_MEMORY_S,
            Some(20.0),
        ),
    };
    Ok(row.note(place.child.history()))
}

/// The border router killed, which is the way to Linux.
fn border_router(place: &mut Place<'_>) -> Result<Row> {
    let mut echo = Echo::start_slowly(place.address, KIB, PACE)?;
    echo.await_part(0.3)?;
    let killed = Instant::now();
    place.border.restart(None, Duration::from_secs(1))?;
    // Which it does not keep; children that begin later shall choose the second router.
    place.border.control("parentpriority -1")?;
    let up = killed.elapsed().as_secs_f64();
    let row = verdict(
        "the border router killed, back with its memory",
        echo,
        &[killed],
        up + BACK_S,
        None,
    );
    Ok(row.note(format!("itself back after {up:.1} s")))
}

/// A new prefix beside the old one, which motes are no longer to prefer.
fn prefix(place: &mut Place<'_>) -> Result<[Row; 2]> {
    let mut echo = Echo::start_slowly(place.address, KIB, PACE)?;
    echo.await_part(0.3)?;
    let changed = Instant::now();
    place
        .border
        .control(&format!("prefix add {PREFIX}/64 aros"))?;
    place.border.add_prefix(NEW_PREFIX)?;
    place.border.control("netdata register")?;
    let address = place.child.address(NEW_PREFIX.trim_end_matches(':'))?;
    let formed = changed.elapsed().as_secs_f64();
    // A router that asks for an address before the parent knows it asks again after 15 s.
    thread::sleep(REGISTERED_WITHIN);
    await_reachable(address, PATIENCE)?;
    let seconds = changed.elapsed().as_secs_f64();
    let row = verdict("another prefix", echo, &[changed], BACK_S, Some(3.0));
    let new = Row::new(
        "another prefix: Linux reaches the child's address in it",
        rounded(seconds),
        "s",
        seconds <= BACK_S,
    );
    (place.address, place.prefix) = (address, NEW_PREFIX);
    place
        .border
        .control(&format!("prefix remove {PREFIX}/64"))?;
    place.border.control("netdata register")?;
    let new = new.note(format!("the child has it after {formed:.1} s"));
    Ok([row, new.moonshot(seconds <= 3.0)])
}

/// The leader killed for good: the routers that are left agree upon another one, within the
/// transfer.
fn leader_killed(place: &mut Place<'_>, leader: Mote) -> Result<Row> {
    let router = place.router.one("extaddr")?;
    ensure!(
        place.child.parent == router,
        "the parent is {}, not {router}",
        place.child.parent
    );
    place.router.console.ask("networkidtimeout 10")?;
    place.border.control("networkidtimeout 10")?;
    let mut echo = Echo::start_slowly(place.address, KIB, SLOW)?;
    echo.await_part(0.1)?;
    let killed = Instant::now();
    drop(leader);
    let until = killed + LED_WITHIN;
    let led_by = loop {
        if place.router.state()? == "leader" {
            break "the parent";
        }
        if place.border.state()? == "leader" {
            break "the border router";
        }
        ensure!(Instant::now() < until, "there is no new leader");
        thread::sleep(Duration::from_millis(200));
    };
    let led = Instant::now();
    let name = "the leader killed, another one in its place";
    let row = verdict(name, echo, &[killed, led], BACK_S, Some(3.0));
    let seconds = (led - killed).as_secs_f64();
    Ok(row.note(format!("{led_by} leads after {seconds:.1} s")))
}

/// The one router that there is, killed and started again: nobody else takes the child meanwhile.
pub(super) fn alone(parts: &Parts, report: &mut Report) -> Result<()> {
    let mut bench = Bench::new(parts, "alone")?;
    let mut children = {
        let mut border = Border::start(&bench, None)?;
        let dataset = border.dataset()?;
        let mut child = Child::start(&bench, FIRST_RADIO, &dataset, &[])?;
        let address = outside(&mut child)?;
        for forgets in [false, true] {
            let mut echo = Echo::start_slowly(address, KIB, PACE)?;
            echo.await_part(0.3)?;
            let killed = Instant::now();
            let memory = forgets.then_some(dataset.as_str());
            border.restart(memory, Duration::from_secs(1))?;
            let up = killed.elapsed().as_secs_f64();
            // Searches in vain rest ever longer: no longer than the parent was away.
            let (name, limit_s) = match forgets {
                false => ("the only parent killed, back with its memory", BACK_S),
                true => (
                    "the only parent killed, back without its memory",
                    BACK_WITHOUT_MEMORY_S,
                ),
            };
            let row = verdict(name, echo, &[killed], up + limit_s.max(up), None);
            report.add(row.note(format!("itself back after {up:.1} s: {}", child.history())));
        }
        [child]
    };
    for row in judge(&mut bench, "alone", &mut children)? {
        report.add(row);
    }
    Ok(())
}

/// Nothing said for half an hour, in the midst of a transfer.
pub(super) fn silent(parts: &Parts, report: &mut Report) -> Result<()> {
    if !parts.is_full {
        return Ok(());
    }
    let bench = Bench::new(parts, "silent")?;
    let border = Border::start(&bench, None)?;
    let dataset = border.dataset()?;
    let mut child = Child::start(&bench, FIRST_RADIO, &dataset, &[])?;
    let address = outside(&mut child)?;
    let half = Duration::from_secs(30 * 60);
    let pace = Pace {
        half_time: half,
        ..PACE
    };
    let outcome = Echo::start_slowly(address, KIB, pace)?.finish();
    report.add(Row::new(
        "30 silent minutes: one connection, whole",
        rounded(outcome.kib()),
        "KiB",
        outcome.is_whole && outcome.took >= half,
    ));
    Ok(())
}

/// Waits for the end of a transfer: whether it is whole, and how long nothing came after events.
pub(super) fn verdict(
    name: &str,
    echo: Echo,
    events: &[Instant],
    limit_s: f64,
    moonshot_s: Option<f64>,
) -> Row {
    let outcome = echo.finish();
    let silences = events.iter().map(|event| outcome.silence_after(*event));
    let check = format!("{name}: 250 KiB each way whole, the longest silence after it");
    let Some(longest) = silences.collect::<Option<Vec<_>>>() else {
        return Row::failed(check, "the transfer was over before all had happened");
    };
    let longest = longest
        .iter()
        .max()
        .copied()
        .unwrap_or_default()
        .as_secs_f64();
    let pass = outcome.is_whole && longest <= limit_s && longest > 0.0;
    let row = Row::new(check, rounded(longest), "s", pass);
    let row = match outcome.is_whole {
        true => row,
        false => row.note(format!("only {:.1} KiB came back", outcome.kib())),
    };
    match moonshot_s {
        Some(moonshot_s) => row.moonshot(outcome.is_whole && longest <= moonshot_s),
        None => row,
    }
}

pub(super) const KIB: usize = 250;
/// So slow that a transfer outlasts what is done to it: 8 KiB/s.
pub(super) const PACE: Pace = Pace {
    piece: 1_024,
    every: Duration::from_millis(125),
    half_time: Duration::ZERO,
};
/// For what takes longer: 4 KiB/s.
const SLOW: Pace = Pace {
    every: Duration::from_millis(250),
    ..PACE
};
/// Routers miss the leader after 10 s, and agree upon another one.
const LED_WITHIN: Duration = Duration::from_secs(60);
/// Otherwise a key is taken no sooner than half a day after the one before.
pub(super) const NO_GUARD: &str = "keysequence guardtime 0";
pub(super) const BACK_S: f64 = 10.0;
const BACK_WITHOUT_MEMORY_S: f64 = 60.0;
/// A Child Update there and back.
const REGISTERED_WITHIN: Duration = Duration::from_millis(500);
const NEW_PREFIX: &str = "fd11:33::";
