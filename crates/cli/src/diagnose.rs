//! `motet diagnose`: what is wrong in a network, read from a capture of it.
//!
//! Place: `motet-decode` explains the frames and finds what is wrong; this file opens the capture
//! and prints.

use std::io::{self, Write as _};

use motet_decode::{CaptureError, Diagnosis, Examiner};

use crate::decode;
use crate::error::Error;
use crate::grid::{Grid, Head};
use crate::json::Json;
use crate::output::{self, BOLD, DIM, Out};
use crate::source::Source;

/// Say what is wrong in a network, from a capture of it: worst first, with the frames that show it.
///
/// Reads any capture that motet decode reads, and follows nodes, links and TCP flows through it:
/// frames, retries, losses, strength and duty; retransmissions by their cause; fragments that are
/// never completed; parents, floods, contradictions, forged frames. What a sniffer did not hear
/// it cannot know.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  motet diagnose air.pcap\n  \
                        motet diagnose home.pcap --key \"$(ot-ctl dataset active -x)\"\n  \
                        motet diagnose air.pcap --json | jq '.findings[].sentence'")]
pub(crate) struct Args {
    #[command(flatten)]
    source: Source,

    #[command(flatten)]
    json: Json,
}

/// Runs `motet diagnose`.
///
/// # Errors
/// [`Error::Input`] where the file is not a capture, or damaged; what comes before the damage is
/// judged.
pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let unreadable = |error: CaptureError| args.source.unreadable(&error);
    let (mut capture, mut decoder) = args.source.open(false)?;
    let mut examiner = Examiner::new();
    let ended = loop {
        match capture.next_record() {
            None => break Ok(()),
            Some(Err(error)) => break Err(unreadable(error)),
            Some(Ok(record)) if !record.link_type.is_supported() => {
                break Err(unreadable(CaptureError::LinkType(record.link_type)));
            }
            Some(Ok(record)) => examiner.observe(&decoder.decode(&record)),
        }
    };
    if ended.is_err() && decoder.frames() == 0 {
        return ended;
    }
    let diagnosis = examiner.conclude();
    match args.json.is_on() {
        true => output::json(&diagnosis)?,
        false => print(&diagnosis)?,
    }
    ended
}

/// Findings, then the tables behind them.
fn print(diagnosis: &Diagnosis) -> Result<(), Error> {
    let mut page = Vec::new();
    let look = decode::look_of_stdout();
    let written = diagnosis.print_findings(look, &mut page);
    written
        .and_then(|()| io::stdout().lock().write_all(&page))
        .map_err(|error| output::stdout_error(&error))?;
    for (columns, rows) in [
        diagnosis.node_table(),
        diagnosis.link_table(),
        diagnosis.flow_table(),
    ] {
        if rows.is_empty() {
            continue;
        }
        output::line("")?;
        table(columns, rows)?;
    }
    Ok(())
}

/// A table of the rows; of many those that come first.
fn table(columns: &[&str], rows: Vec<Vec<String>>) -> Result<(), Error> {
    let title = columns.first().copied().unwrap_or_default();
    output::line(format_args!("{BOLD}{title}s{BOLD:#}"))?;
    let heads = columns.iter().zip(0..).map(|(text, place)| match place {
        0 => Head::fixed("").words(),
        1..=3 => Head::fixed(text),
        _ => Head::new(text, place),
    });
    let mut grid = Grid::new(heads.collect());
    let more = rows.len().saturating_sub(ROWS_SHOWN);
    for row in rows.into_iter().take(ROWS_SHOWN) {
        grid.push(row);
    }
    grid.print(Out::Stdout)?;
    match more {
        0 => Ok(()),
        _ => output::line(format_args!("{DIM}and {more} more; --json has all{DIM:#}")),
    }
}

/// Rows of each table on the page.
const ROWS_SHOWN: usize = 40;
