//! `motet model`: the published models of TCP's goodput, for given figures.

use motet_lab::experiments::model::Path;
use serde::Serialize;

use crate::error::Error;
use crate::json::Json;
use crate::number::whole;
use crate::output::{self, BOLD, DIM};

/// What TCP's goodput should be, given segment size, RTT, loss and window.
///
/// Equation 1 of TCPlp (Mathis) has loss alone limit the window; equation 2 has the buffer
/// limit it, as on a mote; equation 3 is what equation 2 approximates for small losses.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "motet model [OPTIONS] --mss <BYTES> --rtt <MS> --loss <FRACTION>\n                   \
                      --window <SEGMENTS>",
    after_help = "Example:\n  motet model --mss 462 --rtt 755 --loss 0.0044 --window 4\n\n\
                  TCPlp measured 19.8 kb/s there (Table 9)."
)]
pub(crate) struct Args {
    /// Application bytes of a full segment, 1 to 65535.
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true, value_parser = whole::<u32>(1..=65_535))]
    mss: u32,

    /// Round-trip time in milliseconds, above 0 and at most 600000.
    #[arg(long, value_name = "MS", allow_negative_numbers = true, value_parser = parse_rtt)]
    rtt: f64,

    /// Part of segments lost end to end, from 0 to below 1.
    #[arg(long, value_name = "FRACTION", allow_negative_numbers = true, value_parser = parse_loss)]
    loss: f64,

    /// Window in full segments, 1 to 65535.
    #[arg(long, value_name = "SEGMENTS", allow_negative_numbers = true, value_parser = whole::<u32>(1..=65_535))]
    window: u32,

    #[command(flatten)]
    json: Json,
}

/// The output; goodput in kb/s.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
struct Answer {
    mss: u32,
    rtt_ms: f64,
    loss: f64,
    window: u32,
    /// `None` without loss: the equation has no value then.
    eq1_kbps: Option<f64>,
    eq2_kbps: f64,
    eq3_kbps: f64,
}

/// Computes and prints.
///
/// # Errors
/// When standard output cannot be written to.
pub(crate) fn run(args: &Args) -> Result<(), Error> {
    let answer = Answer::of(args);
    if args.json.is_on() {
        return output::json(&answer);
    }
    let rows = [
        (
            "equation 1",
            answer.eq1_kbps,
            "loss limits the window (no value without loss)",
        ),
        (
            "equation 2",
            Some(answer.eq2_kbps),
            "the buffer limits the window",
        ),
        (
            "equation 3",
            Some(answer.eq3_kbps),
            "as equation 2, without its approximation",
        ),
    ];
    for (name, value, meaning) in rows {
        let value = value.map_or_else(|| "-".into(), |value| format!("{value:.2}"));
        output::line(format_args!(
            "{name}  {BOLD}{value:>9} kb/s{BOLD:#}  {DIM}{meaning}{DIM:#}"
        ))?;
    }
    Ok(())
}

impl Answer {
    fn of(args: &Args) -> Self {
        let path = Path {
            mss_bytes: args.mss.into(),
            rtt_s: args.rtt / 1_000.0,
            loss: args.loss,
            window: args.window.into(),
        };
        let first = path.loss_limited_kbps();
        Self {
            mss: args.mss,
            rtt_ms: args.rtt,
            loss: args.loss,
            window: args.window,
            eq1_kbps: first.is_finite().then_some(first),
            eq2_kbps: path.buffer_limited_kbps(),
            eq3_kbps: path.bursts_kbps(),
        }
    }
}

fn parse_rtt(text: &str) -> Result<f64, String> {
    let rtt: f64 = parse(text)?;
    if rtt > 0.0 && rtt <= 600_000.0 {
        Ok(rtt)
    } else {
        Err("give milliseconds above 0 and at most 600000".into())
    }
}

fn parse_loss(text: &str) -> Result<f64, String> {
    let loss: f64 = parse(text)?;
    if (0.0..1.0).contains(&loss) {
        Ok(loss)
    } else {
        Err("give a fraction from 0 to below 1, such as 0.03 for 3 %".into())
    }
}

fn parse(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "give a number".to_owned())
}
