//! `motet router status`: asks a running router.

use std::{
    io::{self, IsTerminal as _, Read as _},
    net::Ipv6Addr,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use super::{StatusArgs, snapshot::Snapshot, socket_path, table};
use crate::{
    error::Error,
    grid,
    output::{self, describe},
};

/// Each mote's next hop up, as the router at `socket`, or the one that is found, knows it.
pub(super) fn parents(socket: Option<&Path>) -> Result<Vec<(Ipv6Addr, Option<Ipv6Addr>)>, Error> {
    let (paths, first) = paths(socket)?;
    let (_, snapshot) = ask_any(&paths, &first)?;
    let motes = snapshot.motes.iter();
    Ok(motes.map(|row| (row.mote, row.place.parent)).collect())
}

/// Where a router may be asked, the first place first.
fn paths(socket: Option<&Path>) -> Result<(Vec<PathBuf>, PathBuf), Error> {
    let paths = match socket {
        Some(path) => vec![path.to_owned()],
        None => {
            let units = socket_path::of_units();
            if units.len() > 1 {
                return Err(several(&units));
            }
            socket_path::candidates().into_iter().chain(units).collect()
        }
    };
    match paths.first().cloned() {
        Some(first) => Ok((paths, first)),
        None => Err(Error::input("there is no place for a socket, see --socket")),
    }
}

pub(super) fn run(args: &StatusArgs) -> Result<(), Error> {
    let (paths, first) = paths(args.socket.as_deref())?;
    let ask = || ask_any(&paths, &first);
    if args.json.is_on() {
        // As the router has sent it, once it is known to be whole.
        return output::line(ask()?.0.trim_end());
    }
    if args.hosts {
        let lines = table::hosts_lines(&ask()?.1);
        return lines.iter().try_for_each(output::line);
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

/// Which of them is meant only the caller knows.
fn several(units: &[PathBuf]) -> Error {
    let units: Vec<String> = units
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    Error::input(format!(
        "several routers run here: name one's socket with --socket: {}",
        units.join(", ")
    ))
}

fn show(snapshot: &Snapshot, before: &str) -> Result<(), Error> {
    // What is no table is folded; tables fit.
    let width = grid::columns();
    let lines = table::lines(snapshot).into_iter();
    let lines: Vec<String> = lines
        .flat_map(|line| grid::folded(&line, width, 2))
        .collect();
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

/// The answer of whatever listens at `path`, within a time and a length that bound a router's
/// answer.
fn ask(path: &Path) -> io::Result<String> {
    let give_up = Instant::now() + PATIENCE;
    let mut stream = UnixStream::connect(path)?;
    let mut text = Vec::new();
    let mut piece = [0; 16_384];
    loop {
        let left = give_up.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut piece)? {
            0 => break,
            len => text.extend_from_slice(piece.get(..len).unwrap_or_default()),
        }
        if text.len() > ANSWER_LEN_MAX {
            return Err(io::Error::other("its answer is no router's"));
        }
    }
    String::from_utf8(text).map_err(|_| io::Error::other("its answer is no router's"))
}

/// How long a whole answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Longer than any router's answer: a row has less than a kilobyte, and a mesh at most some
/// thousand.
const ANSWER_LEN_MAX: usize = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use std::{io::Write as _, os::unix::net::UnixListener};

    /// Something that sends `piece` for ever, with a pause after each.
    fn endless(pause: Duration, piece: &'static [u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("router.sock");
        let listener = UnixListener::bind(&path).unwrap();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            while stream.write_all(piece).is_ok() {
                thread::sleep(pause);
            }
        });
        (folder, path)
    }

    #[test]
    fn an_answer_without_an_end_is_given_up() {
        let (_folder, path) = endless(Duration::ZERO, &[b'{'; 65_536]);
        let refused = ask(&path).unwrap_err();
        assert!(refused.to_string().contains("no router's"), "{refused}");
        let (_folder, path) = endless(Duration::from_millis(100), b"{");
        let began = Instant::now();
        let refused = ask(&path).unwrap_err();
        let kind = refused.kind();
        let is_late = matches!(kind, io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock);
        assert!(is_late, "{refused}");
        assert!(began.elapsed() < PATIENCE * 2);
    }
}
