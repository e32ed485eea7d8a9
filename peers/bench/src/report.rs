//! Tables for people, JSON lines for programs.

use std::io::{self, Write};

use anyhow::Result;
use serde_json::json;

use crate::compare::{Effort, Point, Role};
use crate::count::Load;
use crate::crowd::{CrowdRun, Fate, FlowRun, Row};
use crate::endpoint::Stack;
use crate::frames;
use crate::instructions::{Count, FLAGS};
use crate::memory::Memory;
use crate::plain::{CONTENT_LEN, STACKS, Transfer};
use crate::update::{IMAGE_LEN, Update};

/// One object a line: goodput, then instructions of segments and of frames.
///
/// # Errors
/// Of the output.
pub fn print_json(
    points: &[Point],
    counts: &[Count],
    frames: &[(frames::Load, f64)],
) -> Result<()> {
    let mut out = io::stdout().lock();
    for point in points.iter().filter(|point| point.role != Role::Both) {
        let goodput = point.goodput();
        let row = json!({
            "stack": point.stack.name(),
            "role": point.role.name(),
            "loss": point.loss,
            "window_segments": point.window_segments,
            "goodput_kbps": goodput.mean,
            "ci95": goodput.ci95,
        });
        writeln!(out, "{row}")?;
    }
    for count in counts {
        let row = json!({
            "stack": count.stack.name(),
            "test": count.load.name(),
            "instructions_per_segment": count.instructions_per_segment,
        });
        writeln!(out, "{row}")?;
    }
    for (load, instructions) in frames {
        let row = json!({
            "stack": Stack::Motet.name(),
            "test": load.name(),
            "instructions_per_frame": instructions,
        });
        writeln!(out, "{row}")?;
    }
    Ok(())
}

/// Instructions per frame, which the lab's processors are charged with.
pub fn print_frames(frames: &[(frames::Load, f64)]) {
    println!("\nInstructions per frame above the driver, without TCP\n");
    for (load, instructions) in frames {
        println!("{:30}{instructions:>9.0}", load.name());
    }
}

/// Instructions per segment, and whether Motet needs the fewest.
pub fn print_instructions(counts: &[Count]) {
    println!("Instructions per segment ({FLAGS})\n");
    print!("{:14}", "");
    for stack in Stack::ALL {
        print!("{stack:>9}");
    }
    println!();
    for load in Load::ALL {
        let of = |stack| {
            let found = counts
                .iter()
                .find(|count| count.stack == stack && count.load == load);
            found.map_or(f64::NAN, |count| count.instructions_per_segment)
        };
        print!("{:14}", load.name());
        for stack in Stack::ALL {
            print!("{:>9.0}", of(stack));
        }
        let motet = of(Stack::Motet);
        let is_least = Stack::ALL.into_iter().all(|stack| motet <= of(stack));
        println!("  {}", if is_least { "fewest" } else { "missed" });
    }
}

/// Memory of a connection.
pub fn print_memory(memories: &[Memory]) {
    println!("\nBytes of a connection and of a passive socket, without buffers, on this machine\n");
    for memory in memories {
        println!(
            "{:14}{:>9}{:>9}",
            memory.stack, memory.active_bytes, memory.passive_bytes
        );
    }
}

/// What became of the transfers between Motet and the kernel.
pub fn print_kernel(lines: &str) {
    println!("\nMotet and this machine's kernel, both ways, 60 kB; between them:\n");
    print!("{lines}");
}

/// Prints updates of lwIP devices.
///
/// # Errors
/// Standard output cannot be written to.
pub fn updates(updates: &[Update], json: bool) -> Result<()> {
    let mut out = io::stdout().lock();
    if !json {
        writeln!(
            out,
            "\n{} kB to an lwIP device in blocks of 8 KiB, without and with the policy relay, s\n",
            IMAGE_LEN / 1_000
        )?;
        writeln!(
            out,
            "hops  frames  packets         none        relay     part           must"
        )?;
    }
    for update in updates {
        let Update {
            setting,
            plain_s,
            relayed_s,
            part,
            latency,
            delivery,
        } = update;
        if json {
            let row = json!({
                "stack": Stack::Lwip.name(),
                "test": "update",
                "hops": setting.hops,
                "frame_loss": setting.frame_loss,
                "packet_loss": setting.packet_loss,
                "plain_s": plain_s.mean,
                "relayed_s": relayed_s.mean,
                "part": part.mean,
                "ci95": part.ci95,
                "must": setting.must,
                "latency_part": latency.map(|part| part.mean),
                "latency_ci95": latency.map(|part| part.ci95),
                "delivery": delivery.map(|both| both.map(|one| one.mean)),
            });
            writeln!(out, "{row}")?;
            continue;
        }
        let verdict = if part.mean <= setting.must {
            "holds"
        } else {
            "MISSED"
        };
        writeln!(
            out,
            "{:>4}{:>6.0} %{:>7.0} %{:>13.1}{:>13.1}{:>9.3} ± {:.3}  {:.2} {verdict}",
            setting.hops,
            100.0 * setting.frame_loss,
            100.0 * setting.packet_loss,
            plain_s.mean,
            relayed_s.mean,
            part.mean,
            part.ci95,
            setting.must,
        )?;
        if let Some((latency, [plain, relayed])) = latency.zip(*delivery) {
            writeln!(
                out,
                "      readings: p95 {:.3} ± {:.3} of that without, {:.4} and {:.4} came",
                latency.mean, latency.ci95, plain.mean, relayed.mean
            )?;
        }
    }
    Ok(())
}

/// Transfers to and from a peer without SACK and timestamps: a table, or one object a line.
///
/// # Errors
/// Of the output.
pub fn plain(transfers: &[Transfer], json: bool) -> Result<()> {
    let mut out = io::stdout().lock();
    if json {
        for transfer in transfers {
            let row = json!({
                "stack": transfer.stack.name(),
                "test": "pipe",
                "peer": Stack::Lwip.name(),
                "role": if transfer.sends { "sender" } else { "receiver" },
                "loss": transfer.harm.loss,
                "duplication": transfer.harm.duplication,
                "reordering": transfer.harm.reordering,
                "seconds": transfer.seconds.mean,
                "ci95": transfer.seconds.ci95,
            });
            writeln!(out, "{row}")?;
        }
        return Ok(());
    }
    writeln!(
        out,
        "\n{} kB to and from lwIP over a pipe (no SACK, no timestamps), s\n",
        CONTENT_LEN / 1_000
    )?;
    writeln!(
        out,
        "role      loss  twice   late          motet          tcplp"
    )?;
    for pair in transfers.chunks(STACKS.len()) {
        let [motet, tcplp] = pair else { continue };
        let Transfer { sends, harm, .. } = *motet;
        write!(out, "{:9}", if sends { "sender" } else { "receiver" })?;
        for chance in [harm.loss, harm.duplication, harm.reordering] {
            write!(out, "{:>4.0} % ", chance * 100.0)?;
        }
        for Transfer { seconds, .. } in [motet, tcplp] {
            write!(out, "{:>8.2} ±{:>5.2}", seconds.mean, seconds.ci95)?;
        }
        let part = motet.seconds.mean / tcplp.seconds.mean;
        let verdict = if part > 1.1 { " missed" } else { "" };
        writeln!(out, "  x{part:.2}{verdict}")?;
    }
    Ok(())
}

/// Crowds: those of one kind of motes and those of two are a table each; or one object a line.
///
/// # Errors
/// Of the output.
pub fn crowds(rows: &[Row], effort: Effort, json: bool) -> Result<()> {
    let mut out = io::stdout().lock();
    if json {
        for row in rows {
            writeln!(out, "{}", crowd_json(row))?;
        }
        return Ok(());
    }
    let length = effort.length.as_secs();
    for is_mixed in [false, true] {
        let of_kind = |row: &&Row| (row.occupants.len() > 1) == is_mixed;
        let mut rows = rows.iter().filter(of_kind).peekable();
        let Some(first) = rows.peek() else { continue };
        let who = if is_mixed {
            "motes of several kinds in turn, each kind everywhere once"
        } else {
            "motes of one kind"
        };
        writeln!(
            out,
            "\nCrowds up to Motet on the host, policy {}, kb/s: {who} (runs of {length} s)\n",
            first.policy.name()
        )?;
        writeln!(
            out,
            "scene   radio     motes            seeds            sum     Jain worst  least  \
             gave up silent starved of flows"
        )?;
        for row in rows {
            crowd_row(&mut out, row)?;
        }
    }
    Ok(())
}

/// A row, the means of its kinds of motes, and each flow of its most unequal run.
fn crowd_row(out: &mut impl Write, row: &Row) -> Result<()> {
    let [first, last] = row.seeds;
    let sum = row.of(CrowdRun::sum);
    let worst = row.worst().map_or(f64::NAN, CrowdRun::jain);
    let least = row.runs.iter().map(CrowdRun::least);
    let flows: usize = row.runs.iter().map(|run| run.flows.len()).sum();
    write!(
        out,
        "{:8}{:10}{:17}{:12}{:>7.1} ±{:>5.1}  {:.2}  {:.2}{:>7.2}",
        row.scene.name,
        row.radio,
        crowd_names(row),
        format!("{first}-{last}"),
        sum.mean,
        sum.ci95,
        row.of(CrowdRun::jain).mean,
        worst,
        least.fold(f64::INFINITY, f64::min),
    )?;
    let [gave_up, silent, starved] =
        [Fate::GaveUp, Fate::Silent, Fate::Starves].map(|fate| row.count(fate));
    writeln!(out, "{gave_up:>9}{silent:>7}{starved:>8}{flows:>9}")?;
    if let [one, other] = row.occupants[..] {
        let of = |occupant| row.of(|run| run.share(occupant));
        let part = of(other).mean / of(one).mean;
        writeln!(
            out,
            "        a mote of {one} {:.2} ± {:.2}, of {other} {:.2} ± {:.2}: x{part:.2}",
            of(one).mean,
            of(one).ci95,
            of(other).mean,
            of(other).ci95
        )?;
    }
    let Some(run) = row.worst() else {
        return Ok(());
    };
    write!(out, "        seed {}:", run.seed)?;
    let mut kinds = row.occupants.clone();
    kinds.sort_unstable_by_key(|kind| kind.name());
    kinds.dedup();
    for kind in kinds {
        write!(out, " {kind}")?;
        for flow in run.flows.iter().filter(|flow| flow.occupant == kind) {
            let mark = match flow.fate {
                Fate::GaveUp => "!",
                Fate::Silent => "?",
                Fate::Lives | Fate::Starves => "",
            };
            write!(out, " {:.1}{mark}", flow.goodput_kbps)?;
        }
    }
    writeln!(out)?;
    Ok(())
}

fn crowd_names(row: &Row) -> String {
    let names: Vec<&str> = row.occupants.iter().map(|it| it.name()).collect();
    names.join(",")
}

fn crowd_json(row: &Row) -> serde_json::Value {
    let flow = |flow: &FlowRun| {
        json!({
            "mote": flow.mote,
            "stack": flow.occupant.name(),
            "hops": flow.hops,
            "goodput_kbps": flow.goodput_kbps,
            "fate": flow.fate.name(),
            "retransmitted": flow.retransmitted,
        })
    };
    let run = |run: &CrowdRun| {
        json!({
            "seed": run.seed,
            "goodput_kbps": run.sum(),
            "jain": run.jain(),
            "flows": run.flows.iter().map(flow).collect::<Vec<_>>(),
        })
    };
    let sum = row.of(CrowdRun::sum);
    json!({
        "test": "crowd",
        "scene": row.scene.name,
        "radio": row.radio,
        "policy": row.policy.name(),
        "motes": crowd_names(row),
        "seeds": row.seeds,
        "goodput_kbps": sum.mean,
        "ci95": sum.ci95,
        "jain": row.of(CrowdRun::jain).mean,
        "jain_worst": row.worst().map(CrowdRun::jain),
        "gave_up": row.count(Fate::GaveUp),
        "silent": row.count(Fate::Silent),
        "starved": row.count(Fate::Starves),
        "runs": row.runs.iter().map(run).collect::<Vec<_>>(),
    })
}

/// Goodput by loss and window, each role a table.
pub fn print_goodput(points: &[Point], effort: Effort) {
    for role in Role::ALL {
        if !points.iter().any(|point| point.role == role) {
            continue;
        }
        println!(
            "\nGoodput, kb/s: {} ({} seeds of {} s; retransmitted part of the segments in %)\n",
            describe(role),
            effort.seeds,
            effort.length.as_secs()
        );
        print!("window  loss");
        for stack in Stack::ALL {
            print!("{stack:>20}");
        }
        println!("  motet above");
        let motets = points
            .iter()
            .filter(|p| p.role == role && p.stack == Stack::Motet);
        for motet in motets {
            print_row(motet, points);
        }
    }
}

fn print_row(motet: &Point, points: &[Point]) {
    let of = |stack| {
        points
            .iter()
            .find(|p| p.stack == stack && p.is_beside(motet))
    };
    print!("{:>6}{:>5.0}%", motet.window_segments, motet.loss * 100.0);
    for stack in Stack::ALL {
        let Some(point) = of(stack) else { continue };
        let (goodput, again) = (point.goodput(), point.retransmitted());
        print!(
            "{:>7.2} ±{:>5.2}{:>5.1}%",
            goodput.mean,
            goodput.ci95,
            again.mean * 100.0
        );
    }
    for stack in Stack::ALL.into_iter().filter(|s| *s != Stack::Motet) {
        let Some(point) = of(stack) else { continue };
        let above = motet.above(point);
        let missed = if above.mean < -above.ci95 {
            " missed"
        } else {
            ""
        };
        print!(
            "  {stack} {:+.2} ±{:.2} (x{:.2}){missed}",
            above.mean,
            above.ci95,
            motet.goodput().mean / point.goodput().mean
        );
    }
    println!();
}

fn describe(role: Role) -> &'static str {
    match role {
        Role::Sender => "the mote sends, Motet receives at the host",
        Role::Receiver => "the mote receives, Motet sends from the host",
        Role::Both => "the mote sends, its own kind receives at the host",
    }
}
