//! Motet's sockets above a driver of whole packets, where embassy-net's were: `cargo xtask interop
//! over` runs this.
//!
//! The same driver, link and losses stand under Motet and under embassy-net, in virtual time
//! ([`rates`]); [`robust`] takes peer, driver, link and address away; [`tun`] puts this machine's
//! kernel behind the driver, and [`clients`] a broker and a server.

#[cfg(target_os = "linux")]
mod clients;
#[cfg(target_os = "linux")]
mod clock;
#[cfg(target_os = "linux")]
mod device;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod link;
#[cfg(all(target_os = "linux", feature = "openthread"))]
mod mote;
#[cfg(target_os = "linux")]
mod rates;
#[cfg(target_os = "linux")]
mod report;
#[cfg(target_os = "linux")]
mod robust;
#[cfg(target_os = "linux")]
mod shim;
#[cfg(target_os = "linux")]
mod tun;

use std::process::ExitCode;

use clap::Parser;

/// Motet's TCP and embassy-net above the same driver
#[derive(Parser)]
struct Arguments {
    /// Print one JSON object a line, one for each check
    #[arg(long)]
    json: bool,
    /// Seeds of each comparison
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    seeds: u64,
    #[command(subcommand)]
    part: Option<Part>,
}

#[derive(clap::Subcommand)]
enum Part {
    /// A mote of a Thread network, with Motet above OpenThread
    #[cfg(all(target_os = "linux", feature = "openthread"))]
    Mote(mote::Arguments),
}

#[cfg(target_os = "linux")]
fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(all_hold) => ExitCode::from(u8::from(!all_hold)),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(target_os = "linux")]
fn run(arguments: &Arguments) -> anyhow::Result<bool> {
    #[cfg(feature = "openthread")]
    if let Some(Part::Mote(arguments)) = &arguments.part {
        return mote::run(arguments).map(|()| true);
    }
    // Before any thread is started.
    let namespace = motet_router::namespace::enter()?;
    let mut report = report::Report::new(arguments.json);
    rates::run(&mut report, arguments.seeds)?;
    robust::run(&mut report);
    let (port, host) = tun::open(&namespace)?;
    tun::run(&mut report, &port, host)?;
    clients::run(&mut report, &port, host)?;
    Ok(report.is_good)
}

#[cfg(not(target_os = "linux"))]
fn main() -> ExitCode {
    let _ = Arguments::parse();
    eprintln!("error: this needs Linux");
    ExitCode::FAILURE
}
