//! `cargo xtask sizes`: what a mote pays in flash and RAM, held against a snapshot.
//!
//! Every figure comes from a linked thumbv6m image, the call stack's depth from a run of
//! the node pair under QEMU.

mod cost;
mod verdicts;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use crate::Format;
use crate::budget::{Budget, mark};
use crate::composition::{code_by, module_of};
use crate::firmware::{
    BLE_COST, ECHO_NODE, FULL_NODE, RPL_COST, SECURITY_COST, SLEEPY_COST, THREAD_COST,
    build_full_node, build_minimal_node, build_small_node, image_path, run_pair,
};
use crate::image::Image;
use crate::over_text::OverText;
use crate::provenance::heading;
use crate::step::StepOutcome;
use crate::tools::{self, QEMU};
use crate::workspace::{Workspace, in_ci};
use cost::{
    advertise_cost, ble_cost, copies_cost, leaves_cost, plain_rpl_cost, rotation_cost, rpl_cost,
    security_cost, sleepy_cost, small_tcp_cost, tcp_cost, tcple_cost, thread_cost,
};
use verdicts::{
    ble_verdict, full_verdict, rpl_verdict, security_verdict, sleepy_verdict, tcp_verdict,
    tcple_verdict, thread_verdict,
};

/// Bytes of RAM that a minimal node may take, static and stack together: three quarters of
/// a 32 KiB mote, the rest is the application's.
const NODE_RAM_MAX: u32 = 24 * 1024;

/// The share of a figure that it may grow by without failing the check: 1 in 200.
///
/// A smaller growth is printed beside the figure. What a change costs is judged by its author and
/// reader, and a change of register allocation does not fail the check.
const GROWTH_SHARE: u32 = 200;

/// Bytes of RAM at most that an image brings with it: one that is not zero brings the whole static
/// that it is in. TCPHC's contexts take 456.
const DATA_MAX: u32 = 512;

/// How many figures there are.
const FIGURES: usize = 29;

/// The figures, in bytes.
#[derive(Serialize, Deserialize, Clone, Copy)]
struct Sizes {
    /// One TCP connection's state, without its buffers.
    connection_bytes: u32,
    /// A passive socket.
    listener_bytes: u32,
    /// A connection whose handshake is not done.
    half_open_bytes: u32,
    /// Code and constants that TCP adds to a node, every call and feature of it included.
    tcp_text_bytes: u32,
    /// The same without what TCP's features add: SACK, recovery by time, timestamps, ECN, passive
    /// opens, SYN cookies, header prediction. None in a snapshot of before.
    #[serde(default)]
    tcp_small_text_bytes: Option<u32>,
    /// Code and constants that RPL adds to a router without TCP: compressed routing headers belong
    /// to it, advertisements of what the mesh shares and leaves do not.
    rpl_text_bytes: u32,
    /// Static RAM that RPL adds to it, with eight neighbours that may become its parent.
    rpl_ram_bytes: u32,
    /// Code and constants that RPL's headers as IPv6 has them add to it, for DODAGs whose root does
    /// not compress them. None in a snapshot of before.
    #[serde(default)]
    plain_rpl_text_bytes: Option<u32>,
    /// Code and constants that passing on the contexts of the mesh adds to it, in router
    /// advertisements. None in a snapshot of before.
    #[serde(default)]
    advertise_text_bytes: Option<u32>,
    /// Code and constants that leaves add to that: their registrations, and what the root hears of
    /// them. None in a snapshot of before.
    #[serde(default)]
    leaves_text_bytes: Option<u32>,
    /// Code and constants that a link over Bluetooth LE adds to a mote with TCP and another link:
    /// the host above the controller with its L2CAP, and RFC 7668. None in a snapshot of before.
    #[serde(default)]
    ble_text_bytes: Option<u32>,
    /// Static RAM that it adds, the buffers of one connection included.
    #[serde(default)]
    ble_ram_bytes: Option<u32>,
    /// Code and constants that TCPlE adds to such a link. None in a snapshot of before.
    #[serde(default)]
    tcple_text_bytes: Option<u32>,
    /// Static RAM that it adds, with two places for prefetched segments of one connection.
    #[serde(default)]
    tcple_ram_bytes: Option<u32>,
    /// Code and constants that link security with one key for good adds to a router without TCP,
    /// AES and SHA-256 included. None in a snapshot of before.
    #[serde(default)]
    security_text_bytes: Option<u32>,
    /// Static RAM that it adds, with sixteen neighbours.
    #[serde(default)]
    security_ram_bytes: Option<u32>,
    /// Code and constants that keys add to it which follow one another. None in a snapshot of
    /// before.
    #[serde(default)]
    rotation_text_bytes: Option<u32>,
    /// Code and constants that both sides of sleep, child and parent, add to a router without TCP.
    /// None in a snapshot of before.
    #[serde(default)]
    sleepy_text_bytes: Option<u32>,
    /// Static RAM that they add, with four children and room for two packets of full length.
    #[serde(default)]
    sleepy_ram_bytes: Option<u32>,
    /// Code and constants that a parent takes which keeps one copy of a segment. None in a snapshot
    /// of before.
    #[serde(default)]
    copies_text_bytes: Option<u32>,
    /// Flash of a client and a server above another stack's driver, with TCP and IP alone. None in
    /// a snapshot of before.
    #[serde(default)]
    over_text_bytes: Option<u32>,
    /// Code and constants that a child of a Thread network adds to a mote with a key that may
    /// sleep, without TCP. None in a snapshot of before.
    #[serde(default)]
    thread_text_bytes: Option<u32>,
    /// Static RAM that it adds.
    #[serde(default)]
    thread_ram_bytes: Option<u32>,
    /// Flash of a mote with all parts at once: TCP, TCPHC, RPL, a key, CIT, its own pace, both
    /// sides of sleep, Bluetooth LE with TCPlE. None in a snapshot of before.
    #[serde(default)]
    full_node_text_bytes: Option<u32>,
    /// Its static RAM, buffers and queues included.
    #[serde(default)]
    full_node_ram_bytes: Option<u32>,
    /// Flash of the minimal node with the smallest TCP that peers may connect to, as stacks have it
    /// that know none of what TCP's other features add. None in a snapshot of before.
    #[serde(default)]
    small_node_text_bytes: Option<u32>,
    /// Flash of the minimal node.
    minimal_node_text_bytes: u32,
    /// Its static RAM, buffers and queues included.
    minimal_node_ram_bytes: u32,
    /// The call stack at its deepest; none where QEMU is missing.
    stack_high_water_bytes: Option<u32>,
}

impl Sizes {
    fn rows(&self) -> [(&'static str, Option<u32>); FIGURES] {
        [
            ("connection_bytes", Some(self.connection_bytes)),
            ("listener_bytes", Some(self.listener_bytes)),
            ("half_open_bytes", Some(self.half_open_bytes)),
            ("tcp_text_bytes", Some(self.tcp_text_bytes)),
            ("tcp_small_text_bytes", self.tcp_small_text_bytes),
            ("rpl_text_bytes", Some(self.rpl_text_bytes)),
            ("rpl_ram_bytes", Some(self.rpl_ram_bytes)),
            ("plain_rpl_text_bytes", self.plain_rpl_text_bytes),
            ("advertise_text_bytes", self.advertise_text_bytes),
            ("leaves_text_bytes", self.leaves_text_bytes),
            ("ble_text_bytes", self.ble_text_bytes),
            ("ble_ram_bytes", self.ble_ram_bytes),
            ("tcple_text_bytes", self.tcple_text_bytes),
            ("tcple_ram_bytes", self.tcple_ram_bytes),
            ("security_text_bytes", self.security_text_bytes),
            ("security_ram_bytes", self.security_ram_bytes),
            ("rotation_text_bytes", self.rotation_text_bytes),
            ("sleepy_text_bytes", self.sleepy_text_bytes),
            ("sleepy_ram_bytes", self.sleepy_ram_bytes),
            ("copies_text_bytes", self.copies_text_bytes),
            ("over_text_bytes", self.over_text_bytes),
            ("thread_text_bytes", self.thread_text_bytes),
            ("thread_ram_bytes", self.thread_ram_bytes),
            ("full_node_text_bytes", self.full_node_text_bytes),
            ("full_node_ram_bytes", self.full_node_ram_bytes),
            ("small_node_text_bytes", self.small_node_text_bytes),
            (
                "minimal_node_text_bytes",
                Some(self.minimal_node_text_bytes),
            ),
            ("minimal_node_ram_bytes", Some(self.minimal_node_ram_bytes)),
            ("stack_high_water_bytes", self.stack_high_water_bytes),
        ]
    }
}

/// The command: prints the figures, writes the snapshot on demand.
pub(crate) fn run(workspace: &Workspace, format: Format, update: bool) -> Result<bool> {
    let budget = Budget::read(workspace)?;
    let measured = measure(workspace)?;
    let Measured {
        sizes,
        panics,
        filled,
        ..
    } = &measured;
    match format {
        Format::Json => println!("{}", serde_json::to_string(sizes)?),
        Format::Markdown => {
            let command = "cargo xtask sizes --markdown";
            println!("{}", heading(workspace, "Sizes", command));
            print!("{}", measured.page(&budget));
        }
        Format::Table => {
            let snapshot = read_snapshot(workspace).ok();
            print!("{}", measured.tables(snapshot.as_ref(), &budget));
        }
    }
    for line in panics {
        eprintln!("a panic is reachable from {line}");
    }
    for line in filled {
        eprintln!("{line}");
    }
    if update {
        ensure!(
            sizes.stack_high_water_bytes.is_some(),
            "the snapshot needs the stack's depth, so install {QEMU} first"
        );
        let mut text = serde_json::to_string_pretty(sizes)?;
        text.push('\n');
        let path = snapshot_path(workspace);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(panics.is_empty() && filled.is_empty())
}

impl Measured {
    /// The page of evidence.
    fn page(&self, budget: &Budget) -> String {
        let added = [
            &self.tcp_code,
            &self.rpl_code,
            &self.ble_code,
            &self.tcple_code,
            &self.security_code,
            &self.sleepy_code,
            &self.thread_code,
        ];
        page(&self.sizes, &self.code, budget, &added)
    }

    /// What a terminal shows: all figures, and the parts of the code, each beside its budget.
    fn tables(&self, snapshot: Option<&Sizes>, budget: &Budget) -> String {
        let sizes = &self.sizes;
        let over_max = verdicts::limit(budget, "over_text_bytes");
        [
            table(sizes, snapshot, budget),
            "minimal node's code by module, and its budget".to_owned()
                + "\n"
                + &budget.modules(&self.code),
            tcp_verdict(sizes, budget) + &rows(&self.tcp_code),
            rpl_verdict(sizes, budget) + &rows(&self.rpl_code),
            ble_verdict(sizes, budget) + &rows(&self.ble_code),
            tcple_verdict(sizes, budget) + &rows(&self.tcple_code),
            security_verdict(sizes, budget) + &rows(&self.security_code),
            sleepy_verdict(sizes) + &rows(&self.sleepy_code),
            self.over.verdict(over_max),
            thread_verdict(sizes, budget) + &rows(&self.thread_code),
            full_verdict(sizes, budget),
        ]
        .join("\n")
    }
}

/// The step of the check: nothing grew much, no panic is reachable, the node fits its RAM.
pub(crate) fn check(workspace: &Workspace) -> Result<StepOutcome> {
    let Measured {
        sizes,
        panics,
        filled,
        ..
    } = measure(workspace)?;
    let snapshot = read_snapshot(workspace)?;
    let mut wrong: Vec<_> = panics
        .iter()
        .map(|line| format!("a panic is reachable from {line}"))
        .collect();
    wrong.extend(filled);
    wrong.extend(growth(&sizes, &snapshot));
    let ram = sizes.minimal_node_ram_bytes + sizes.stack_high_water_bytes.unwrap_or(0);
    if ram > NODE_RAM_MAX {
        wrong.push(format!(
            "the minimal node takes {ram} B of RAM, stack included, of {NODE_RAM_MAX}"
        ));
    }
    let mut note = format!(
        "minimal node: {} B of flash, {ram} B of RAM, stack included",
        sizes.minimal_node_text_bytes
    );
    for (name, now, before) in grown(&sizes, &snapshot) {
        // Writing to a string cannot fail.
        let _ = write!(note, "; {name} {before} -> {now}");
    }
    let table = table(&sizes, Some(&snapshot), &Budget::read(workspace)?);
    let output = format!("{table}\n{}", wrong.join("\n"));
    Ok(StepOutcome::single(wrong.is_empty(), note, output))
}

/// What building, reading and running gives.
struct Measured {
    sizes: Sizes,
    /// Bytes of the minimal node's code by module of the stack.
    code: BTreeMap<String, i64>,
    /// What TCP adds to that, each of its own files by itself.
    tcp_code: BTreeMap<String, i64>,
    /// What RPL adds to a router, by file.
    rpl_code: BTreeMap<String, i64>,
    /// What Bluetooth LE adds to a mote, by file.
    ble_code: BTreeMap<String, i64>,
    /// What TCPlE adds to that, by file.
    tcple_code: BTreeMap<String, i64>,
    /// What link security adds to a router, by file.
    security_code: BTreeMap<String, i64>,
    /// What both sides of sleep add to a router, by file.
    sleepy_code: BTreeMap<String, i64>,
    over: OverText,
    /// What a child of a Thread network adds to a mote with a key, by file.
    thread_code: BTreeMap<String, i64>,
    /// Lines that can panic.
    panics: Vec<String>,
    /// Images whose memory at rest is not zero, and takes flash.
    filled: Vec<String>,
}

/// Builds, reads, runs.
fn measure(workspace: &Workspace) -> Result<Measured> {
    let node = build_minimal_node(workspace)?;
    let [connection_bytes, listener_bytes, half_open_bytes] = type_sizes(workspace)?;
    let echo_node = Image::open(&image_path(workspace, ECHO_NODE))?;
    let stack_high_water_bytes = stack_depth(workspace)?;
    let code = code_by(module_of, &image_path(workspace, ECHO_NODE))?;
    let (tcp_text_bytes, tcp_code) = tcp_cost(workspace)?;
    let small = small_tcp_cost(workspace)?;
    let rpl = rpl_cost(workspace)?;
    let plain_rpl = plain_rpl_cost(workspace)?;
    let advertise = advertise_cost(workspace)?;
    let leaves = leaves_cost(workspace)?;
    let ble = ble_cost(workspace)?;
    let tcple = tcple_cost(workspace)?;
    let security = security_cost(workspace)?;
    let rotation = rotation_cost(workspace)?;
    let sleepy = sleepy_cost(workspace)?;
    let copies = copies_cost(workspace)?;
    let over = OverText::measure(workspace)?;
    let thread = thread_cost(workspace)?;
    let (small_node, small_panics) = built(workspace, ECHO_NODE, build_small_node)?;
    let (full_node, full_panics) = built(workspace, FULL_NODE, build_full_node)?;
    let sizes = Sizes {
        connection_bytes,
        listener_bytes,
        half_open_bytes,
        tcp_text_bytes,
        tcp_small_text_bytes: Some(small.text_bytes),
        rpl_text_bytes: rpl.text_bytes,
        rpl_ram_bytes: rpl.ram_bytes,
        plain_rpl_text_bytes: Some(plain_rpl.text_bytes),
        advertise_text_bytes: Some(advertise.text_bytes),
        leaves_text_bytes: Some(leaves.text_bytes),
        ble_text_bytes: Some(ble.text_bytes),
        ble_ram_bytes: Some(ble.ram_bytes),
        tcple_text_bytes: Some(tcple.text_bytes),
        tcple_ram_bytes: Some(tcple.ram_bytes),
        security_text_bytes: Some(security.text_bytes),
        security_ram_bytes: Some(security.ram_bytes),
        rotation_text_bytes: Some(rotation.text_bytes),
        sleepy_text_bytes: Some(sleepy.text_bytes),
        sleepy_ram_bytes: Some(sleepy.ram_bytes),
        copies_text_bytes: Some(copies.text_bytes),
        over_text_bytes: Some(over.motet),
        thread_text_bytes: Some(thread.text_bytes),
        thread_ram_bytes: Some(thread.ram_bytes),
        full_node_text_bytes: Some(full_node.flash_bytes()?),
        full_node_ram_bytes: Some(full_node.ram_bytes()?),
        small_node_text_bytes: Some(small_node.flash_bytes()?),
        minimal_node_text_bytes: echo_node.flash_bytes()?,
        minimal_node_ram_bytes: echo_node.ram_bytes()?,
        stack_high_water_bytes,
    };
    let parts = [&small, &rpl, &plain_rpl, &advertise, &leaves, &ble, &tcple];
    let others = [&security, &rotation, &sleepy, &copies, &thread];
    let of_parts = parts.into_iter().chain(others);
    let of_parts = of_parts.flat_map(|part| part.panics.clone()).collect();
    Ok(Measured {
        sizes,
        code,
        tcp_code,
        rpl_code: rpl.code,
        ble_code: ble.code,
        tcple_code: tcple.code,
        security_code: security.code,
        sleepy_code: sleepy.code,
        over,
        thread_code: thread.code,
        panics: [node.panics, of_parts, small_panics, full_panics].concat(),
        filled: filled(workspace)?,
    })
}

/// An image as `build` makes it, and its lines that can panic.
fn built(
    workspace: &Workspace,
    name: &str,
    build: fn(&Workspace) -> Result<Vec<String>>,
) -> Result<(Image, Vec<String>)> {
    let panics = build(workspace)?;
    Ok((Image::open(&image_path(workspace, name))?, panics))
}

/// One sentence for each image, as built last, that carries more than [`DATA_MAX`] of what its RAM
/// holds at first.
fn filled(workspace: &Workspace) -> Result<Vec<String>> {
    let mut filled = Vec::new();
    let images = [RPL_COST, SECURITY_COST, SLEEPY_COST, THREAD_COST, BLE_COST];
    for name in images.into_iter().chain([ECHO_NODE, FULL_NODE]) {
        let bytes = Image::open(&image_path(workspace, name))?.data_bytes()?;
        if bytes > DATA_MAX {
            filled.push(format!(
                "{bytes} B of {name}'s RAM are in flash, too: the `EMPTY` of a type is not all zeros"
            ));
        }
    }
    Ok(filled)
}

/// The call stack of the pair of nodes at its deepest; `None` where there is no QEMU.
fn stack_depth(workspace: &Workspace) -> Result<Option<u32>> {
    if tools::find(QEMU).is_none() && !in_ci() {
        return Ok(None);
    }
    let run = run_pair(workspace)?;
    let depth = run.figure("stack_high_water_bytes");
    ensure!(
        depth.is_some(),
        "the pair of nodes printed no stack depth:\n{}",
        run.output
    );
    Ok(depth)
}

/// What TCP costs, by itself: code and constants, a connection, a passive socket.
pub(crate) fn measure_tcp(workspace: &Workspace) -> Result<(u32, u32, u32)> {
    build_minimal_node(workspace)?;
    let [connection_bytes, listener_bytes, _] = type_sizes(workspace)?;
    let (code_bytes, _) = tcp_cost(workspace)?;
    Ok((code_bytes, connection_bytes, listener_bytes))
}

/// A connection, a passive socket, a half-open entry. After [`build_minimal_node`].
fn type_sizes(workspace: &Workspace) -> Result<[u32; 3]> {
    let types = Image::open(&image_path(workspace, "type-sizes"))?.words("MOTET_TYPE_SIZES")?;
    let found = types.len();
    <[u32; 3]>::try_from(types)
        .map_err(|_| anyhow::anyhow!("type-sizes holds {found} figures instead of 3"))
}

fn rows(code: &BTreeMap<String, i64>) -> String {
    let row = |(name, bytes): (&String, &i64)| format!("{name:<26}{bytes:>9}\n");
    code.iter().map(row).collect()
}

/// The figures as tables of Markdown, files with most code first.
fn page(
    sizes: &Sizes,
    code: &BTreeMap<String, i64>,
    budget: &Budget,
    [
        tcp_code,
        rpl_code,
        ble_code,
        tcple_code,
        security_code,
        sleepy_code,
        thread_code,
    ]: &[&BTreeMap<String, i64>; 7],
) -> String {
    let figures = sizes.rows().map(|(name, value)| {
        let value = value.map_or_else(|| "not measured".to_owned(), |value| value.to_string());
        format!("| `{name}` | {value} |\n")
    });
    let by_size = |code: &BTreeMap<String, i64>| -> String {
        let mut rows: Vec<_> = code.iter().collect();
        rows.sort_by_key(|(_, bytes)| -**bytes);
        let row = |(name, bytes): (&String, &i64)| format!("| `{name}` | {bytes} |\n");
        rows.into_iter().map(row).collect()
    };
    format!(
        "| figure | bytes |\n|---|---:|\n{}\n\
         ## The minimal node's code by module\n\n| module | bytes |\n|---|---:|\n{}\n\
         ## TCP's code by file\n\n{}\n| file | bytes |\n|---|---:|\n{}\n\
         ## RPL's code by file\n\n{}\n| file | bytes |\n|---|---:|\n{}\n\
         ## Bluetooth LE's code by file\n\n{}\n| file | bytes |\n|---|---:|\n{}\n\
         ## TCPlE's code by file\n\n{}\n| file | bytes |\n|---|---:|\n{}\n\
         ## Link security's code by file\n\n{}\n| file | bytes |\n|---|---:|\n{}\n\
         ## Sleep's code by file\n\n{}\n| file | bytes |\n|---|---:|\n{}\n\
         ## A Thread child's code by file\n\n{}\n| file | bytes |\n|---|---:|\n{}",
        figures.concat(),
        by_size(code),
        tcp_verdict(sizes, budget),
        by_size(tcp_code),
        rpl_verdict(sizes, budget),
        by_size(rpl_code),
        ble_verdict(sizes, budget),
        by_size(ble_code),
        tcple_verdict(sizes, budget),
        by_size(tcple_code),
        security_verdict(sizes, budget),
        by_size(security_code),
        sleepy_verdict(sizes),
        by_size(sleepy_code),
        thread_verdict(sizes, budget),
        by_size(thread_code)
    )
}

fn snapshot_path(workspace: &Workspace) -> PathBuf {
    workspace.root.join("firmware").join("sizes.json")
}

fn read_snapshot(workspace: &Workspace) -> Result<Sizes> {
    let path = snapshot_path(workspace);
    let text = fs::read(&path).with_context(|| {
        format!(
            "cannot read {}: write it with `cargo xtask sizes --update`",
            path.display()
        )
    })?;
    serde_json::from_slice(&text).with_context(|| format!("{} is no snapshot", path.display()))
}

/// Figures above their snapshot: their name, what they are now and what they were.
fn grown(now: &Sizes, snapshot: &Sizes) -> Vec<(&'static str, u32, u32)> {
    now.rows()
        .into_iter()
        .zip(snapshot.rows())
        .filter_map(|((name, now), (_, before))| Some((name, now?, before?)))
        .filter(|(_, now, before)| now > before)
        .collect()
}

/// One sentence for each figure that has grown by [`GROWTH_SHARE`] or more.
fn growth(now: &Sizes, snapshot: &Sizes) -> Vec<String> {
    grown(now, snapshot)
        .into_iter()
        .filter(|(_, now, before)| (now - before).saturating_mul(GROWTH_SHARE) >= *before)
        .map(|(name, now, before)| {
            format!(
                "{name} grew from {before} to {now}: shrink it, or accept it with \
                 `cargo xtask sizes --update`"
            )
        })
        .collect()
}

fn table(now: &Sizes, snapshot: Option<&Sizes>, budget: &Budget) -> String {
    let cell = |value: Option<u32>| value.map_or_else(|| "-".to_owned(), |value| value.to_string());
    let before = snapshot.map_or([None; FIGURES], |snapshot| {
        snapshot.rows().map(|(_, value)| value)
    });
    let mut text = format!("{:<26}{:>9}{:>11}{:>9}\n", "", "now", "snapshot", "budget");
    for ((name, now), before) in now.rows().into_iter().zip(before) {
        // Writing to a string cannot fail.
        let limit = budget.figure(name);
        let above = now
            .zip(limit)
            .map_or(0, |(now, limit)| now.saturating_sub(limit));
        let (now, before, limit, above) = (cell(now), cell(before), cell(limit), mark(above));
        let _ = writeln!(text, "{name:<26}{now:>9}{before:>11}{limit:>9}{above}");
    }
    text
}

/// The names of all figures.
#[cfg(test)]
pub(crate) fn figure_names() -> [&'static str; FIGURES] {
    tests::SNAPSHOT.rows().map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) const SNAPSHOT: Sizes = Sizes {
        connection_bytes: 300,
        listener_bytes: 24,
        half_open_bytes: 40,
        tcp_text_bytes: 20_000,
        tcp_small_text_bytes: None,
        rpl_text_bytes: 12_000,
        rpl_ram_bytes: 500,
        plain_rpl_text_bytes: None,
        advertise_text_bytes: None,
        leaves_text_bytes: None,
        ble_text_bytes: None,
        ble_ram_bytes: None,
        tcple_text_bytes: None,
        tcple_ram_bytes: None,
        security_text_bytes: None,
        security_ram_bytes: None,
        rotation_text_bytes: None,
        sleepy_text_bytes: None,
        sleepy_ram_bytes: None,
        copies_text_bytes: None,
        over_text_bytes: None,
        thread_text_bytes: None,
        thread_ram_bytes: None,
        full_node_text_bytes: None,
        full_node_ram_bytes: None,
        small_node_text_bytes: None,
        minimal_node_text_bytes: 40_000,
        minimal_node_ram_bytes: 9_000,
        stack_high_water_bytes: Some(2_000),
    };

    #[test]
    fn only_growth_fails() {
        assert!(growth(&SNAPSHOT, &SNAPSHOT).is_empty());
        let smaller = Sizes {
            tcp_text_bytes: 1,
            stack_high_water_bytes: None,
            ..SNAPSHOT
        };
        assert!(growth(&smaller, &SNAPSHOT).is_empty());
        let larger = Sizes {
            connection_bytes: 302,
            stack_high_water_bytes: Some(2_010),
            ..SNAPSHOT
        };
        let wrong = growth(&larger, &SNAPSHOT);
        assert_eq!(wrong.len(), 2);
        assert!(wrong[0].starts_with("connection_bytes grew from 300 to 302"));
    }

    #[test]
    fn a_growth_of_less_than_half_a_percent_is_shown_and_does_not_fail() {
        let of = |tcp_text_bytes| Sizes {
            tcp_text_bytes,
            ..SNAPSHOT
        };
        assert_eq!(
            grown(&of(20_099), &SNAPSHOT),
            [("tcp_text_bytes", 20_099, 20_000)]
        );
        assert!(growth(&of(20_099), &SNAPSHOT).is_empty());
        assert_eq!(growth(&of(20_100), &SNAPSHOT).len(), 1);
        assert!(grown(&of(20_000), &SNAPSHOT).is_empty());
    }

    #[test]
    fn a_page_has_every_figure_and_the_largest_file_first() {
        let code = BTreeMap::from([("mac".to_owned(), 7), ("tcp".to_owned(), 90)]);
        let each = [&code; 7];
        let budget = toml::from_str(include_str!("../../firmware/budget.toml")).unwrap();
        let text = page(&SNAPSHOT, &code, &budget, &each);
        assert!(text.contains("| `connection_bytes` | 300 |\n"), "{text}");
        assert_eq!(
            text.matches("| `tcp` | 90 |\n| `mac` | 7 |").count(),
            8,
            "{text}"
        );
        let without = Sizes {
            stack_high_water_bytes: None,
            ..SNAPSHOT
        };
        assert!(page(&without, &code, &budget, &each).contains("| not measured |"));
    }
}
