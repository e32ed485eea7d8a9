//! `motet attach`: a shell beside a mesh that runs in another terminal.

use std::ffi::OsString;

use clap::Args as ClapArgs;

use crate::error::Error;

/// Open a shell in the network of a running motet up or router
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
From a second terminal, as the user who started the mesh. The shell, or the command, reaches the motes as that of \
motet up does, by name too, and finds their addresses in the variable MOTET_MOTES. Beside motet router motes have \
addresses alone: motet router status --hosts prints them with their names. A router that was not started in a network \
of its own is found in the machine's. The mesh does not wait for the shell: when it ends, the shell goes on without motes.

Examples:
  motet attach
  motet attach -- ping -c 3 mote2
  motet attach 4711 -- tcpdump -n -i any")]
pub(crate) struct Args {
    /// The process of the mesh; needed only where several run
    #[arg(value_name = "PID")]
    process: Option<u32>,

    /// Command to run, with its arguments; your shell when there is none
    #[arg(value_name = "CMD", last = true)]
    command: Vec<OsString>,
}

/// Opens the shell: only on Linux, where the networks are.
#[cfg(not(target_os = "linux"))]
pub(crate) fn run(_: &Args) -> Result<(), Error> {
    Err(Error::failed(
        "a mesh has a network of its own on Linux only: run motet attach there",
    ))
}

/// Opens the shell.
///
/// # Errors
/// There is no such mesh, it is another user's, or the command cannot be run.
#[cfg(target_os = "linux")]
pub(crate) fn run(args: &Args) -> Result<(), Error> {
    linux::run(args)
}

#[cfg(target_os = "linux")]
mod linux {
    use std::{env, fs, io, os::unix::process::CommandExt as _, path::Path, process::Command};

    use motet_router::namespace;

    use super::Args;
    use crate::{error::Error, hosts, output::describe};

    pub(super) fn run(args: &Args) -> Result<(), Error> {
        let mesh = match args.process {
            Some(pid) => of_process(pid).ok_or_else(|| {
                Error::input(format!(
                    "process {pid} is no motet up and no motet router that runs: leave it out, or name another"
                ))
            })?,
            None => only_one()?,
        };
        namespace::join(mesh.pid).map_err(|error| {
            let (pid, command) = (mesh.pid, mesh.name());
            match error.kind() {
                io::ErrorKind::PermissionDenied => Error::failed(format!(
                    "{command} (process {pid}) runs in a network that this user may not enter: run motet attach as \
                     the user who started it, or as root"
                )),
                _ => Error::failed(format!(
                    "cannot enter the network of {command} (process {pid}): {}, see whether it still runs",
                    describe(&error)
                )),
            }
        })?;
        let hosts = fs::read_to_string(hosts::PATH).unwrap_or_default();
        let shell = env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into());
        let (program, arguments) = match args.command.split_first() {
            Some((program, arguments)) => (program, arguments),
            None => (&shell, &[][..]),
        };
        let mut command = Command::new(program);
        command.args(arguments);
        let motes = hosts::motes_of(&hosts);
        if !motes.is_empty() {
            command.env("MOTET_MOTES", motes.join(" "));
        }
        let error = command.exec();
        Err(Error::input(format!(
            "cannot run {}: {}, check its name",
            program.display(),
            describe(&error)
        )))
    }

    /// A running mesh: its process, and the words of its command line.
    #[derive(Clone, PartialEq, Eq, Debug)]
    struct Mesh {
        pid: u32,
        words: Vec<String>,
    }

    impl Mesh {
        /// The beginning of its command line.
        fn name(&self) -> String {
            let line = self.words.join(" ");
            match line.char_indices().nth(NAME_LEN_MAX) {
                Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
                None => line,
            }
        }
    }

    /// Characters of a command line that tell one mesh from another.
    const NAME_LEN_MAX: usize = 60;

    /// The mesh that runs, where it is one.
    fn only_one() -> Result<Mesh, Error> {
        let processes = fs::read_dir("/proc").map_err(|error| {
            Error::failed(format!("cannot read /proc: {}, mount it", describe(&error)))
        })?;
        let numbers = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        let mut meshes: Vec<Mesh> = numbers.filter_map(of_process).collect();
        meshes.sort_by_key(|mesh| mesh.pid);
        match &meshes[..] {
            [mesh] => Ok(mesh.clone()),
            [] => Err(Error::failed(
                "no motet up and no motet router runs here: start one in another terminal",
            )),
            several => {
                let several = several.iter();
                let named = several.map(|mesh| format!("{} ({})", mesh.pid, mesh.name()));
                Err(Error::input(format!(
                    "several meshes run here: name the process of one: {}",
                    named.collect::<Vec<_>>().join(", ")
                )))
            }
        }
    }

    /// The mesh of a process, where it has one.
    fn of_process(pid: u32) -> Option<Mesh> {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let own = env::current_exe().ok();
        let own = own.as_deref().and_then(Path::file_name);
        let words = mesh_of(&line, own.unwrap_or_default().to_str()?)?;
        Some(Mesh { pid, words })
    }

    /// The words of a command line, if they are those of a mesh. `own`: the name of this program.
    fn mesh_of(line: &[u8], own: &str) -> Option<Vec<String>> {
        let line = line.strip_suffix(&[0]).unwrap_or(line);
        let words = line.split(|byte| *byte == 0);
        let words: Vec<String> = words
            .map(|word| String::from_utf8_lossy(word).into_owned())
            .collect();
        let (program, rest) = words.split_first()?;
        let program = Path::new(program).file_name()?.to_str()?;
        let is_mesh = match rest {
            [command, ..] if command == "up" => true,
            [command, rest @ ..] if command == "router" => {
                !rest.iter().any(|word| word == "status")
            }
            _ => false,
        };
        let words = [program.to_owned()].into_iter().chain(rest.to_vec());
        (program == own && is_mesh).then(|| words.collect())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_mesh_is_known_by_its_command_line() {
            let words = |line: &str| mesh_of(line.replace(' ', "\0").as_bytes(), "motet");
            for (line, expected) in [
                ("/usr/bin/motet up --hops 2 ", Some("motet up --hops 2")),
                ("motet router --radio x", Some("motet router --radio x")),
                ("motet router status --watch", None),
                ("motet send README.md", None),
                ("motet attach ", None),
                ("/proc/self/exe guard --parent=1 -- sh", None),
                ("vim up", None),
                ("motet", None),
                ("", None),
            ] {
                let found = words(line).map(|words| words.join(" "));
                assert_eq!(found.as_deref(), expected, "{line}");
            }
        }
    }
}
