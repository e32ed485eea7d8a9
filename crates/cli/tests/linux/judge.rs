//! Runs the checks and prints what they found.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    env, fs,
    net::Ipv6Addr,
    process::ExitCode,
    time::Instant,
};

use serde_json::json;

use crate::peer::{NotPermitted, Peer};
use crate::{coap, forwarding, hostile, live, settings, tshark};

/// What one check found.
pub(crate) struct Row {
    pub(crate) check: String,
    pub(crate) value: f64,
    pub(crate) unit: &'static str,
    pub(crate) pass: bool,
    /// A few words beside it.
    pub(crate) note: String,
}

impl Row {
    /// A check that counts cases: all of `cases` are to be `good`.
    pub(crate) fn all(check: &str, unit: &'static str, good: usize, cases: usize) -> Self {
        Self {
            check: check.to_owned(),
            value: good as f64,
            unit,
            pass: good == cases && cases > 0,
            note: format!("of {cases}"),
        }
    }

    pub(crate) fn with(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }
}

/// The routers of Linux, by their addresses; started when they are first needed.
#[derive(Default)]
pub(crate) struct Routers(BTreeMap<Ipv6Addr, Peer>);

impl Routers {
    /// The router with this address, with `rpl_seg_enabled` on.
    pub(crate) fn at(&mut self, addr: Ipv6Addr) -> Result<&mut Peer, NotPermitted> {
        Ok(match self.0.entry(addr) {
            Entry::Occupied(router) => router.into_mut(),
            Entry::Vacant(place) => place.insert(Peer::start(addr)?),
        })
    }
}

/// Name and function of each group of checks.
type Group = (
    &'static str,
    fn(&mut Routers) -> Result<Vec<Row>, NotPermitted>,
);

const GROUPS: &[Group] = &[
    ("coap", coap::checks),
    ("forwarding", forwarding::checks),
    ("hostile", hostile::checks),
    ("settings", settings::checks),
    ("tshark", tshark::checks),
];

pub(crate) fn main(arguments: &[String]) -> ExitCode {
    let has = |flag: &str| arguments.iter().any(|argument| argument == flag);
    let (is_json, is_live) = (has("--json"), has("--live"));
    let mut words = arguments.iter().filter(|word| !word.starts_with('-'));
    let filter = words.next().map_or("", String::as_str);
    let start = Instant::now();
    let mut routers = Routers::default();
    let live_groups: &[Group] = &[("live", live::checks)];
    let groups = GROUPS.iter().chain(live_groups.iter().filter(|_| is_live));
    let peer = kernel();
    let (mut passed, mut failed) = (0, 0);
    for (_, group) in groups.filter(|(name, _)| name.contains(filter)) {
        let rows = match group(&mut routers) {
            Ok(rows) => rows,
            Err(NotPermitted(why)) => return not_run(&why),
        };
        for row in rows {
            passed += usize::from(row.pass);
            failed += usize::from(!row.pass);
            print(&peer, &row, is_json);
        }
    }
    if !is_json {
        let word = if failed == 0 { "ok" } else { "FAILED" };
        let seconds = start.elapsed().as_secs_f32();
        println!(
            "\ntest result: {word}. {passed} passed; {failed} failed; finished in {seconds:.2}s"
        );
    }
    ExitCode::from(u8::from(failed > 0))
}

fn print(peer: &str, row: &Row, is_json: bool) {
    let Row {
        check,
        value,
        unit,
        pass,
        note,
    } = row;
    if is_json {
        let object = json!({
            "schema": 1, "peer": peer, "check": check, "value": value, "unit": unit, "pass": pass,
            "note": note,
        });
        println!("{object}");
    } else {
        let word = if *pass { "ok" } else { "FAILED" };
        println!("{word:<7}{check:<52}{value:>8} {unit:<9}{note}");
    }
}

/// What this machine does not permit is no failure, but in continuous integration.
fn not_run(why: &str) -> ExitCode {
    eprintln!("not run: {why}");
    ExitCode::from(u8::from(is_ci()))
}

fn is_ci() -> bool {
    env::var("CI").is_ok_and(|value| value == "true")
}

/// The row of a check that needs a program which is not here; `None`: it is here.
pub(crate) fn missing(program: &str) -> Option<Row> {
    let path = env::var_os("PATH").unwrap_or_default();
    let is_here = env::split_paths(&path).any(|folder| folder.join(program).is_file());
    (!is_here).then(|| Row {
        check: format!("{program} is installed"),
        value: 0.0,
        unit: "1",
        pass: !is_ci(),
        note: format!("not run: {program} is not installed"),
    })
}

fn kernel() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {}", release.trim())
}
