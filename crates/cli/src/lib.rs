//! Motet's command line: parses, calls the lab and the border router, prints.
//!
//! One file (or folder) per command: its arguments, help and example beside its code. A
//! command returns `Result<(), Error>`; here the error becomes one sentence on stderr and
//! the exit status: 0 done, 1 the work failed, 2 bad usage or input.
//!
//! The program is [`main`].
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

#[cfg(target_os = "linux")]
mod anemometers;
mod attach;
mod capture;
mod chain;
mod command;
mod completions;
mod decode;
mod diagnose;
mod error;
mod figure;
mod files;
mod flags;
mod grid;
#[cfg(target_os = "linux")]
mod hci;
#[cfg(target_os = "linux")]
mod hosts;
mod import;
mod interrupt;
mod json;
mod keys;
#[cfg(target_os = "linux")]
mod live;
mod manual;
mod model;
mod mote;
mod number;
mod output;
mod pacer;
mod plan;
mod progress;
mod provenance;
mod push;
#[cfg(target_os = "linux")]
mod radio_node;
#[cfg(unix)]
mod real_radio;
mod replay;
mod reproduce;
mod router;
mod run;
mod send;
mod sniff;
mod soak;
mod source;
#[cfg(target_os = "linux")]
mod state;
mod targets;
mod token;
mod up;

use std::process::ExitCode;

use clap::{
    CommandFactory as _, Parser, Subcommand,
    error::{ContextKind, ContextValue, ErrorKind},
};

use crate::error::Error;

/// TCP for motes: send files, run meshes and read captures of low-power wireless networks.
#[derive(Debug, Parser)]
#[command(
    name = "motet",
    version = provenance::VERSION,
    propagate_version = true,
    arg_required_else_help = true
)]
#[command(after_help = "Example: motet send README.md")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Send(send::Args),
    Up(up::Args),
    Run(run::Args),
    Reproduce(reproduce::Args),
    Import(import::Args),
    Replay(replay::Args),
    Model(model::Args),
    Plan(plan::Args),
    Decode(decode::Args),
    Diagnose(diagnose::Args),
    Sniff(sniff::Args),
    Mote(mote::Args),
    Push(push::Args),
    Keys(keys::Args),
    Soak(soak::Args),
    Router(router::Args),
    Attach(attach::Args),
    Completions(completions::Args),
    Manual(manual::Args),
    #[command(hide = true)]
    Guard(command::GuardArgs),
}

/// The program: reads the process's arguments and runs the command that they name.
pub fn main() -> ExitCode {
    match Arguments::try_parse() {
        Ok(arguments) => match run(&arguments.command) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => error.report(),
        },
        Err(error) => report_usage(&error),
    }
}

/// The scenario that a topology of another simulator or testbed describes, as `motet import` writes
/// it. Public for the fuzzer.
///
/// # Errors
/// Why there is none, in words that end a sentence.
pub fn imported(file: &[u8]) -> Result<String, String> {
    import::scenario(file, "file")
}

fn run(command: &Command) -> Result<(), Error> {
    match command {
        Command::Send(args) => send::run(args),
        Command::Up(args) => up::run(args),
        Command::Run(args) => run::run(args),
        Command::Reproduce(args) => reproduce::run(args),
        Command::Import(args) => import::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Model(args) => model::run(args),
        Command::Plan(args) => plan::run(args),
        Command::Decode(args) => decode::run(args),
        Command::Diagnose(args) => diagnose::run(args),
        Command::Sniff(args) => sniff::run(args),
        Command::Mote(args) => mote::run(args),
        Command::Push(args) => push::run(args),
        Command::Keys(args) => keys::run(args),
        Command::Soak(args) => soak::run(args),
        Command::Router(args) => router::run(args),
        Command::Attach(args) => attach::run(args),
        Command::Completions(args) => completions::run(args, &Arguments::command()),
        Command::Manual(args) => manual::run(args, Arguments::command()),
        Command::Guard(args) => command::guard(args),
    }
}

/// Prints help on request, and turns an error of clap's about the command line into one sentence.
fn report_usage(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp
        | ErrorKind::DisplayVersion
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            // A closed pipe is no reason to complain about help.
            let _ = error.print();
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
        }
        _ => Error::input(sentence(error, named_command().as_deref())).report(),
    }
}

/// The error of a command line and its remedy, as a sentence: clap's words, or better ones.
fn sentence(error: &clap::Error, command: Option<&str>) -> String {
    let program = match command {
        Some(command) => format!("motet {command}"),
        None => "motet".to_owned(),
    };
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(missing))) => {
            return format!(
                "{} needs {}, see {program} --help",
                command.unwrap_or("motet"),
                missing.join(" and ")
            );
        }
        (ErrorKind::UnknownArgument, Some(ContextValue::String(word)))
            if command == Some("up") && !word.starts_with('-') =>
        {
            return format!("put -- before the command to run: motet up -- {word}");
        }
        _ => {}
    }
    let text = error.render().to_string();
    let text = text.split("\n\n").next().unwrap_or_default();
    let text = text.strip_prefix("error: ").unwrap_or(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    let advice = match meant(error) {
        Some(name) => format!("did you mean {name}?"),
        None => format!("see {program} --help"),
    };
    format!("{}, {advice}", words.join(" "))
}

/// The command that the command line names, if there is such a command.
fn named_command() -> Option<String> {
    named(&Arguments::command(), std::env::args().skip(1))
}

/// The command that `words` begin with, with those below it: `keys new`.
fn named(command: &clap::Command, words: impl Iterator<Item = String>) -> Option<String> {
    let mut command = command;
    let mut names = Vec::new();
    for word in words {
        let Some(below) = command.find_subcommand(&word) else {
            break;
        };
        names.push(word);
        command = below;
    }
    (!names.is_empty()).then(|| names.join(" "))
}

/// The option, command or value that was probably meant.
fn meant(error: &clap::Error) -> Option<&str> {
    let kinds = [
        ContextKind::SuggestedArg,
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedValue,
    ];
    match kinds.into_iter().find_map(|kind| error.get(kind))? {
        ContextValue::String(name) => Some(name),
        ContextValue::Strings(names) => names.first().map(String::as_str),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_the_whole_command() {
        let of = |words: &str| named(&Arguments::command(), words.split(' ').map(str::to_owned));
        assert_eq!(of("keys new --force").as_deref(), Some("keys new"));
        assert_eq!(of("router --air status").as_deref(), Some("router"));
        assert_eq!(of("none run"), None);
    }

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn help_breaks_lines_only_where_a_terminal_does() {
        for command in Arguments::command().get_subcommands() {
            let name = command.get_name();
            let Some(text) = command.get_after_help().map(ToString::to_string) else {
                continue;
            };
            for (line, next) in text.lines().zip(text.lines().skip(1)) {
                let is_prose = |line: &str| !line.is_empty() && !line.starts_with(' ');
                let is_broken = is_prose(line) && is_prose(next) && !line.ends_with('.');
                assert!(!is_broken, "motet {name} --help, behind: {line}");
            }
            for line in text.lines().filter(|line| line.starts_with(' ')) {
                assert!(line.chars().count() <= 80, "motet {name} --help: {line}");
            }
        }
    }

    #[test]
    fn every_command_shows_an_example() {
        let command = Arguments::command();
        for command in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            let help = command.clone().render_long_help().to_string();
            assert!(
                help.contains("Example"),
                "motet {} --help",
                command.get_name()
            );
        }
    }
}
