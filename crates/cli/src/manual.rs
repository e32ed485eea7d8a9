//! `motet manual`: the pages that `man motet` and `man motet-run` show.

use std::path::PathBuf;

use clap_mangen::Man;
use motet_lab::files::write_file;

use crate::error::Error;
use crate::files::write_error;
use crate::output;

/// Write the manual pages of Motet's commands into a folder.
///
/// A page for motet and one for each command: motet.1, motet-run.1 and so on. They say what --help
/// says.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  \
    motet manual ~/.local/share/man/man1\n  \
    man motet-run")]
pub(crate) struct Args {
    /// The folder; it is made if there is none.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,

    /// Overwrite existing pages.
    #[arg(long)]
    force: bool,
}

/// Writes the pages of `command` and all below it.
///
/// # Errors
/// When a page exists, or cannot be written.
pub(crate) fn run(args: &Args, command: clap::Command) -> Result<(), Error> {
    if args.folder.exists() && !args.folder.is_dir() {
        let folder = args.folder.display();
        return Err(Error::input(format!(
            "{folder} is a file, name a directory"
        )));
    }
    let pages = pages(command)
        .map_err(|error| Error::failed(format!("cannot make the manual pages: {error}")))?;
    for (name, page) in &pages {
        let path = args.folder.join(name);
        write_file(&path, page, args.force).map_err(|error| write_error(&path, &error))?;
    }
    output::line(format_args!(
        "{} pages written to {}",
        pages.len(),
        args.folder.display()
    ))
}

/// The pages of a command and of all below it, with their names.
fn pages(command: clap::Command) -> std::io::Result<Vec<(String, Vec<u8>)>> {
    // Pages refer to those below them: `help` has none, since it says nothing of its own.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let mut pages = Vec::new();
    collect(&command, &mut pages)?;
    Ok(pages)
}

fn collect(command: &clap::Command, pages: &mut Vec<(String, Vec<u8>)>) -> std::io::Result<()> {
    let man = Man::new(command.clone().override_usage(synopsis(command)));
    let mut page = Vec::new();
    man.render(&mut page)?;
    pages.push((man.get_filename(), page));
    for below in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        collect(below, pages)?;
    }
    Ok(())
}

/// What may stand on the command line, each option with its value: clap_mangen leaves values out.
fn synopsis(command: &clap::Command) -> String {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    let mut words = vec![name.to_owned()];
    let shown = command.get_arguments().filter(|one| !one.is_hide_set());
    let (last, options): (Vec<_>, Vec<_>) = shown.partition(|one| one.is_positional());
    for argument in options.into_iter().chain(last) {
        let word = usage(argument);
        words.push(match argument.is_required_set() {
            true => word,
            false => format!("[{word}]"),
        });
    }
    if command.has_subcommands() {
        words.push(match command.is_subcommand_required_set() {
            true => "COMMAND".to_owned(),
            false => "[COMMAND]".to_owned(),
        });
    }
    words.join(" ")
}

/// An option with the name of its value, or the name of an operand.
fn usage(argument: &clap::Arg) -> String {
    let names = argument.get_value_names().unwrap_or_default();
    let names: Vec<&str> = names.iter().map(clap::builder::Str::as_str).collect();
    let takes = argument.get_num_args().unwrap_or_default();
    let mut value = match names.is_empty() {
        true => argument.get_id().to_string(),
        false => names.join(" "),
    };
    if takes.max_values() > names.len().max(1) {
        value += "...";
    }
    let Some(long) = argument.get_long() else {
        return match argument.is_last_set() {
            true => format!("-- {value}"),
            false => value,
        };
    };
    match (argument.get_action().takes_values(), takes.min_values()) {
        (false, _) => format!("--{long}"),
        (true, 0) => format!("--{long} [{value}]"),
        (true, _) => format!("--{long} {value}"),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn every_command_that_help_shows_has_a_page_and_no_other() {
        let pages = pages(crate::Arguments::command()).unwrap();
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        for name in ["motet.1", "motet-run.1", "motet-router-status.1"] {
            assert!(names.contains(&name), "{names:?}");
        }
        for (name, page) in &pages {
            let text = String::from_utf8(page.clone()).unwrap();
            let title = name.strip_suffix(".1").unwrap();
            assert!(text.contains(&format!(".TH {title} 1")), "{name}: {text}");
            // The names of other pages, as roff writes a hyphen.
            let others = text.split("\n").filter_map(|line| line.strip_suffix("(1)"));
            for other in others.map(|other| other.replace("\\-", "-")) {
                assert!(
                    names.contains(&format!("{other}.1").as_str()),
                    "{name} refers to {other}"
                );
            }
        }
    }

    #[test]
    fn a_synopsis_names_the_values_of_options() {
        let mut command = crate::Arguments::command();
        command.build();
        let of = |name: &str| synopsis(command.find_subcommand(name).unwrap());
        let run = of("run");
        for words in [
            "motet run",
            "[--seed S]",
            "[--json [PATH]]",
            "[--force]",
            "SCENARIO.toml",
        ] {
            assert!(run.contains(words), "{run}");
        }
        let model = of("model");
        assert!(model.contains(" --mss BYTES "), "{model}");
        assert!(of("reproduce").ends_with("[ID...]"), "{}", of("reproduce"));
        assert!(of("keys").ends_with("COMMAND"), "{}", of("keys"));
    }

    #[test]
    fn pages_that_exist_stay_unless_forced() {
        let folder = tempfile::tempdir().unwrap();
        let mut args = Args {
            folder: folder.path().to_owned(),
            force: false,
        };
        run(&args, crate::Arguments::command()).unwrap();
        let again = run(&args, crate::Arguments::command());
        assert!(matches!(again, Err(Error::Input(text)) if text.contains("--force")));
        args.force = true;
        run(&args, crate::Arguments::command()).unwrap();
        args.folder = folder.path().join("motet.1");
        let file = run(&args, crate::Arguments::command());
        assert!(matches!(file, Err(Error::Input(text)) if text.contains("name a directory")));
        args.folder = folder.path().join("new/folder");
        run(&args, crate::Arguments::command()).unwrap();
        assert!(args.folder.join("motet.1").is_file());
    }
}
