//! Attaching, awake and asleep, and a child of OpenThread beside Motet's.

use std::time::Duration;

use anyhow::{Context as _, Result};

use super::capture::judge;
use super::openthread::Mote;
use super::rig::{Bench, Child, MESH_LOCAL, Parts};
use crate::interop::report::{Report, Row, load, rounded};

/// Attaches three times awake and three times asleep, a new child each time.
pub(super) fn all(parts: &Parts, report: &mut Report) -> Result<()> {
    let mut bench = Bench::new(parts, "attach")?;
    let mut parent = Mote::form(&bench, 2)?;
    let dataset = parent.dataset()?;
    let mut children = Vec::new();
    for (name, options) in [("awake", &[][..]), ("asleep", &["--sleep", "fixed:1"])] {
        let (mut longest, mut listed) = (Duration::ZERO, 0);
        for _ in 0..TIMES {
            let number = FIRST_RADIO + children.len() as u8;
            let state = format!("state{number}");
            let options = [options, &["--state", &state]].concat();
            let child = Child::start(&bench, number, &dataset, &options)?;
            longest = longest.max(child.attached_after);
            let table = parent.all("child table")?;
            listed += usize::from(table.contains(&child.extended));
            children.push(child);
        }
        let seconds = longest.as_secs_f64();
        let check = format!("attaches over an RCP, {name}: the longest of {TIMES}");
        let row = Row::new(check, rounded(seconds), "s", seconds <= ATTACHED_S);
        report.add(row.moonshot(seconds <= ATTACHED_MOONSHOT_S).note(load()));
        let check = format!("is listed in the parent's child table, {name}");
        let pass = listed == TIMES;
        report.add(Row::new(check, listed as f64, "children", pass));
    }
    for mut row in again(&bench, &mut parent, &dataset, &mut children)? {
        row.check.insert_str(0, "ended and started again: ");
        report.add(row);
    }
    for row in judge(&mut bench, "attach", &mut children)? {
        report.add(row);
    }
    Ok(())
}

/// The first child once more, with its folder of state.
fn again(
    bench: &Bench<'_>,
    parent: &mut Mote,
    dataset: &str,
    children: &mut Vec<Child>,
) -> Result<[Row; 3]> {
    let mut first = children.remove(0);
    first.node.end();
    // A parent of OpenThread looks for children whose time is over once a second.
    std::thread::sleep(LEFT_WITHIN);
    let has_left = !parent.all("child table")?.contains(&first.extended);
    let state = format!("state{FIRST_RADIO}");
    let child = Child::start(bench, FIRST_RADIO, dataset, &["--state", &state])?;
    let is_same = child.extended == first.extended && child.mesh_local == first.mesh_local;
    let seconds = child.attached_after.as_secs_f64();
    let table = parent.all("child table")?;
    let is_listed = table.contains(&child.extended);
    children.push(child);
    Ok([
        Row::new(
            "gone from the child table with the end",
            f64::from(u8::from(has_left)),
            "",
            has_left,
        ),
        Row::new(
            "attached",
            rounded(seconds),
            "s",
            seconds <= ATTACHED_S && is_listed,
        ),
        Row::new(
            "the same addresses",
            f64::from(u8::from(is_same)),
            "",
            is_same,
        ),
    ])
}

/// Pings from the parent to a child of Motet and to one of OpenThread.
pub(super) fn beside(parts: &Parts, report: &mut Report) -> Result<()> {
    let mut bench = Bench::new(parts, "beside")?;
    let mut parent = Mote::form(&bench, 2)?;
    let dataset = parent.dataset()?;
    let mut other = Mote::join(&bench, 3, &dataset, Some("rn"))?;
    let ours = Child::start(&bench, FIRST_RADIO, &dataset, &[])?;
    let theirs = other.one("ipaddr mleid")?;
    let addresses = [
        ("Motet's", ours.mesh_local.to_string()),
        ("OpenThread's", theirs),
    ];
    for (whose, address) in addresses {
        let (answered, average) = ping(&mut parent, &address)?;
        let check = format!("beside one another, {whose} child: pings of its parent");
        let row = Row::new(check, answered, "of 20", answered == 20.0);
        report.add(row.note(format!("{average} ms on average")));
    }
    let address = ours.mesh_local.to_string();
    let (answered, average) = ping(&mut other, &address)?;
    let check = "beside one another: pings of OpenThread's child to Motet's";
    let row = Row::new(check, answered, "of 20", answered == 20.0);
    report.add(row.note(format!("{average} ms on average")));
    let table = parent.all("child table")?;
    let listed = [&ours.extended, &other.one("extaddr")?].map(|child| table.contains(child));
    let count = listed.iter().filter(|is_listed| **is_listed).count();
    report.add(Row::new(
        "both are in the child table",
        count as f64,
        "children",
        count == 2,
    ));
    for row in judge(&mut bench, "beside", &mut [ours])? {
        report.add(row);
    }
    Ok(())
}

/// Twenty echo requests; how many were answered, and after how many ms.
fn ping(mote: &mut Mote, address: &str) -> Result<(f64, String)> {
    debug_assert!(address.starts_with(MESH_LOCAL));
    mote.console
        .say(&format!("ping {address} 64 20 0.2 64 2"))?;
    let line = mote
        .console
        .await_line("packets transmitted", Duration::from_secs(40))?;
    // 20 packets transmitted, 20 packets received. Packet loss = 0.0%. Round-trip … = 1/2.5/4 ms.
    let received = line.split(", ").nth(1).unwrap_or_default();
    let received = received.split(' ').next().unwrap_or_default();
    let average = line.rsplit(" = ").next().unwrap_or_default();
    let average = average.split('/').nth(1).unwrap_or("-").to_owned();
    let received = received
        .parse()
        .with_context(|| format!("no count in `{line}`"))?;
    Ok((received, average))
}

const TIMES: usize = 3;
/// The radio of the first child: above those of OpenThread's motes.
pub(super) const FIRST_RADIO: u8 = 20;
const LEFT_WITHIN: Duration = Duration::from_millis(1_500);
const ATTACHED_S: f64 = 2.0;
const ATTACHED_MOONSHOT_S: f64 = 0.5;
