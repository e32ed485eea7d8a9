//! Instructions per segment and per frame: this very program under callgrind, which counts what
//! [`crate::count`] and [`crate::frames`] mark.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::count::{Load, UNITS};
use crate::endpoint::Stack;
use crate::frames::{self, FRAMES};

/// One figure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Count {
    /// The stack that was counted.
    pub stack: Stack,
    /// The load it was under.
    pub load: Load,
    /// Instructions for one unit of the load.
    pub instructions_per_segment: f64,
}

/// Counts every stack under every load.
///
/// # Errors
/// valgrind is missing, or failed.
pub fn measure() -> Result<Vec<Count>> {
    let mut counts = Vec::new();
    for stack in Stack::ALL {
        for load in Load::ALL {
            counts.push(count(stack, load)?);
        }
    }
    Ok(counts)
}

/// How the code that is counted was compiled.
pub const FLAGS: &str = "TCPlp's core, lwIP and their hosts: C at -O2; Motet and smoltcp: Rust at opt-level 3, one codegen unit";

/// Counts a frame sent and one received, with the check sequence by the radio and by software;
/// Motet alone has frames.
///
/// # Errors
/// valgrind is missing, or failed.
pub fn measure_frames() -> Result<Vec<(frames::Load, f64)>> {
    let of = |load: frames::Load| {
        let number = callgrind(
            "motet_peers::frames::counted_*",
            &["count-frames", load.name()],
        )?;
        Ok((load, number / f64::from(FRAMES)))
    };
    frames::Load::ALL.into_iter().map(of).collect()
}

fn count(stack: Stack, load: Load) -> Result<Count> {
    let number = callgrind(
        "motet_peers::count::counted_*",
        &["count", stack.name(), load.name()],
    )?;
    Ok(Count {
        stack,
        load,
        instructions_per_segment: number / f64::from(UNITS),
    })
}

/// The instructions of the functions with such names in this program, run so.
fn callgrind(counted: &str, arguments: &[&str]) -> Result<f64> {
    let program = std::env::current_exe().context("cannot tell which program this is")?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(format!("--toggle-collect={counted}"))
        .arg(program)
        .args(arguments)
        .output()
        .context("cannot run valgrind: install it, for instance with `apt-get install valgrind`")?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "valgrind failed: {}", text.trim());
    let collected = text.lines().find_map(|line| line.split_once("Collected :"));
    let number = collected.and_then(|(_, number)| number.trim().parse::<f64>().ok());
    number.with_context(|| format!("valgrind counted nothing: {}", text.trim()))
}
