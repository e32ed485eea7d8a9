//! `motet completions`: what a shell needs to complete Motet's commands.

use std::io::Write as _;

use clap::builder::PossibleValue;
use clap_complete::Shell;

use crate::error::Error;
use crate::output::stdout_error;

/// Print what your shell needs to complete Motet's commands and options.
///
/// The script goes to standard output. Where a shell reads such scripts, its manual says.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    motet completions bash > ~/.local/share/bash-completion/completions/motet\n  \
    motet completions fish > ~/.config/fish/completions/motet.fish\n  \
    motet completions zsh > \"${fpath[1]}/_motet\"")]
pub(crate) struct Args {
    /// The shell.
    shell: Shell,
}

/// Prints the script of the shell, for `command` and all below it.
///
/// # Errors
/// When standard output cannot be written to.
pub(crate) fn run(args: &Args, command: &clap::Command) -> Result<(), Error> {
    // Scripts would offer hidden commands too.
    let shown = command.get_subcommands().filter(|one| !one.is_hide_set());
    let mut shown = clap::Command::new("motet")
        .version(crate::provenance::VERSION)
        .subcommands(shown.cloned());
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut shown, "motet", &mut script);
    if args.shell == Shell::Fish {
        script.extend(values_for_fish(&shown).into_bytes());
    }
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(&script)
        .and_then(|()| stdout.flush())
        .map_err(|error| stdout_error(&error))
}

/// Lines that complete arguments without a dash that have a list of values, as the IDs of
/// `motet reproduce`: clap_complete's script for fish has none of them.
fn values_for_fish(command: &clap::Command) -> String {
    let mut lines = String::new();
    for subcommand in command.get_subcommands() {
        for argument in subcommand.get_positionals() {
            let values = argument.get_possible_values();
            let names: Vec<&str> = values.iter().map(PossibleValue::get_name).collect();
            if !names.is_empty() {
                lines += &format!(
                    "complete -c motet -n \"__fish_motet_using_subcommand {}\" -f -a \"{}\"\n",
                    subcommand.get_name(),
                    names.join(" ")
                );
            }
        }
    }
    lines
}
