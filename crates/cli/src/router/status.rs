//! `motet router status`: asks a running router.

use std::{
    io::{self, IsTerminal as _, Read as _},
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use super::{StatusArgs, place, snapshot::Snapshot, table};
use crate::{
    error::Error,
    output::{self, describe},
};

pub(super) fn run(args: &StatusArgs) -> Result<(), Error> {
    let paths = match &args.socket {
        Some(path) => vec![path.clone()],
        None => place::candidates(),
    };
    let Some(first) = paths.first() else {
        return Err(Error::input("there is no place for a socket, see --socket"));
    };
    let ask = || ask_any(&paths, first);
    if args.json {
        // As the router has sent it, once it is known to be whole.
        return output::line(ask()?.0.trim_end());
    }
    if !args.watch {
        return show(&ask()?.1, "");
    }
    // Up and clear, where there is something to clear.
    let clear = match io::stdout().is_terminal() {
        true => "\x1b[H\x1b[2J",
        false => "",
    };
    loop {
        show(&ask()?.1, clear)?;
        if clear.is_empty() {
            output::line("")?;
        }
        thread::sleep(Duration::from_secs(1));
    }
}

fn show(snapshot: &Snapshot, before: &str) -> Result<(), Error> {
    let lines = table::lines(snapshot);
    output::line(format!("{before}{}", lines.join("\n")))
}

/// The first of `paths` at which a router answers.
fn ask_any(paths: &[PathBuf], first: &Path) -> Result<(String, Snapshot), Error> {
    let mut refused = None;
    for path in paths {
        match ask(path) {
            Ok(text) => {
                let snapshot = serde_json::from_str(&text).map_err(|_| {
                    let path = path.display();
                    Error::failed(format!(
                        "what answers at {path} is no router of this version, or too busy: try again"
                    ))
                })?;
                return Ok((text, snapshot));
            }
            // Nothing there says less than a refusal.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => refused = refused.or(Some((path, error))),
        }
    }
    let (path, why) = match &refused {
        Some((path, error)) => (path.as_path(), describe(error)),
        None => (first, "there is no such socket".to_owned()),
    };
    Err(Error::failed(format!(
        "no router answers at {} ({why}): start one, or name its socket with --socket",
        path.display()
    )))
}

fn ask(path: &Path) -> io::Result<String> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

const PATIENCE: Duration = Duration::from_secs(5);
