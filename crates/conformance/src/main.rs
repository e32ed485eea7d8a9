//! `motet-conformance PATH… [--profile freebsd|linux] [--strict] [--tsv OUT]`

#![cfg_attr(not(test), warn(clippy::too_many_lines))]

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use motet_conformance::host::Profile;
use motet_conformance::run::{Judge, ScriptOutcome, run};

/// Runs packetdrill scripts against Motet's TCP, in process and in virtual time.
///
/// Shell commands in scripts are never executed. Exit status: 0 when every script passed, 1 when
/// a script failed, 2 when a script could not be read or expressed, or the command line is wrong.
#[derive(Parser)]
#[command(version)]
struct Options {
    /// Scripts, or directories of them (*.pkt, in order of name).
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// System whose defaults and option layout the host has; without it, the stack's own
    #[arg(long, value_parser = ["freebsd", "linux"])]
    profile: Option<String>,
    /// Take only the settings of the profile: change neither segments nor calls to match it
    #[arg(long, requires = "profile")]
    unlent: bool,
    /// Compare TCP options byte for byte.
    #[arg(long)]
    strict: bool,
    /// A line stands for exactly one segment.
    #[arg(long)]
    strict_segments: bool,
    /// Tolerance of times, microseconds, instead of the script's.
    #[arg(long, value_name = "N")]
    tolerance_usecs: Option<u64>,
    /// Largest packet, bytes, instead of the profile's.
    #[arg(long, value_name = "N")]
    mtu: Option<u32>,
    /// Write one line per script: path, verdict, place and reason, between tabs.
    #[arg(long, value_name = "OUT")]
    tsv: Option<PathBuf>,
    /// Print only the summary and what did not pass.
    #[arg(long, short)]
    quiet: bool,
}

fn main() -> ExitCode {
    let options = Options::parse();
    let judge = Judge {
        profile: options
            .profile
            .as_deref()
            .and_then(Profile::of)
            .unwrap_or_default(),
        unlent: options.unlent,
        strict: options.strict,
        strict_segments: options.strict_segments,
        tolerance_us: options.tolerance_usecs,
        mtu: options.mtu,
    };
    match judge_all(&options, &judge) {
        Ok(code) => ExitCode::from(code),
        Err(message) => {
            eprintln!("motet-conformance: {message}");
            ExitCode::from(2)
        }
    }
}

fn judge_all(options: &Options, judge: &Judge) -> Result<u8, String> {
    let mut scripts = Vec::new();
    for path in &options.paths {
        collect(path, &mut scripts)?;
    }
    if scripts.is_empty() {
        return Err("there is no *.pkt script there".to_owned());
    }
    let mut out = std::io::stdout().lock();
    let mut table = String::from("script\tverdict\tline\treason\n");
    let (mut passed, mut failed, mut refused) = (0, 0, 0);
    for path in &scripts {
        let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let outcome = run(&text, judge);
        let (word, problem) = match &outcome {
            ScriptOutcome::Passed => ("pass", None),
            ScriptOutcome::Failed(problem) => ("fail", Some(problem)),
            ScriptOutcome::Refused(problem) => ("unsupported", Some(problem)),
        };
        match &outcome {
            ScriptOutcome::Passed => passed += 1,
            ScriptOutcome::Failed(_) => failed += 1,
            ScriptOutcome::Refused(_) => refused += 1,
        }
        let name = path.display();
        let line = problem.map_or(String::new(), |problem| problem.at.line.to_string());
        let reason = problem.map_or("", |problem| problem.message.as_str());
        table.push_str(&format!("{name}\t{word}\t{line}\t{reason}\n"));
        let text = match problem {
            Some(problem) => format!("{word} {name}:{problem}\n"),
            None if options.quiet => continue,
            None => format!("{word} {name}\n"),
        };
        out.write_all(text.as_bytes()).map_err(|e| e.to_string())?;
    }
    let summary = format!("{passed} passed, {failed} failed, {refused} unsupported\n");
    out.write_all(summary.as_bytes())
        .map_err(|e| e.to_string())?;
    if let Some(path) = &options.tsv {
        fs::write(path, table).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(match (failed, refused) {
        (0, 0) => 0,
        (0, _) => 2,
        _ => 1,
    })
}

/// Adds `path`, or the scripts below it.
fn collect(path: &Path, scripts: &mut Vec<PathBuf>) -> Result<(), String> {
    let error = |e: std::io::Error| format!("{}: {e}", path.display());
    if !fs::metadata(path).map_err(error)?.is_dir() {
        scripts.push(path.to_owned());
        return Ok(());
    }
    let mut inside: Vec<PathBuf> = fs::read_dir(path)
        .map_err(error)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()
        .map_err(error)?;
    inside.sort();
    for entry in inside {
        let is_dir = fs::metadata(&entry).is_ok_and(|meta| meta.is_dir());
        if is_dir {
            collect(&entry, scripts)?;
        } else if entry
            .extension()
            .is_some_and(|extension| extension == "pkt")
        {
            scripts.push(entry);
        }
    }
    Ok(())
}
