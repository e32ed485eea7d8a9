//! Crates that others wrote for async firmware, unchanged, on motes in the lab.
//!
//! `cargo xtask apps` runs it. Time is virtual and the air the lab's: nothing here touches a real
//! radio, and no figure is one of a real radio.

mod air;
mod bridge;
mod browser;
mod counted;
mod edge;
mod executor;
mod http;
mod https;
mod motes;
mod mqtt;
mod page;
mod report;

use std::process::ExitCode;

use clap::Parser;

use crate::report::Check;

/// Runs every application, and prints a line a check
#[derive(Parser)]
struct Arguments {
    /// Only these: picoserve, chromium, edge-http, embedded-tls, rust-mqtt
    apps: Vec<String>,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    /// Requests, and messages, over three hops at each loss
    #[arg(long, default_value_t = 1_000)]
    count: u32,
}

/// An application's name, and a part of what is asked of it.
type Part<'a> = (&'a str, &'a dyn Fn() -> Vec<Check>);

fn main() -> ExitCode {
    let Arguments { apps, json, count } = Arguments::parse();
    let parts: [Part<'_>; 12] = [
        ("picoserve", &http::times),
        ("picoserve", &http::wakes),
        ("picoserve", &|| http::pages(0.0, count)),
        ("picoserve", &|| http::pages(0.05, count)),
        ("chromium", &|| browser::pages(0.0)),
        ("chromium", &|| browser::pages(0.05)),
        ("edge-http", &|| edge::pages(0.0, count)),
        ("edge-http", &|| edge::pages(0.05, count)),
        ("embedded-tls", &|| https::download(0.0)),
        ("embedded-tls", &|| https::download(0.05)),
        ("rust-mqtt", &|| mqtt::messages(0.0, count)),
        ("rust-mqtt", &|| mqtt::messages(0.05, count)),
    ];
    if let Some(unknown) = apps
        .iter()
        .find(|app| parts.iter().all(|(name, _)| name != app))
    {
        eprintln!("motet-apps: there is no application {unknown}");
        return ExitCode::from(2);
    }
    let mut all_pass = true;
    for (name, part) in parts {
        if apps.is_empty() || apps.iter().any(|app| app == name) {
            for check in part() {
                check.print(json);
                all_pass &= check.passes();
            }
        }
    }
    match all_pass {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
