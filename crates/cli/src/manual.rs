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
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render(&mut page)?;
    pages.push((man.get_filename(), page));
    for below in command.get_subcommands().filter(|one| !one.is_hide_set()) {
        collect(below, pages)?;
    }
    Ok(())
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
        args.folder = folder.path().join("new/folder");
        run(&args, crate::Arguments::command()).unwrap();
        assert!(args.folder.join("motet.1").is_file());
    }
}
