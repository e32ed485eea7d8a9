//! The status socket, and Prometheus' page: each connection a thread, few at a time.
//!
//! Whoever connects to the socket is sent one JSON object and the end. The page speaks as much of
//! HTTP/1.1 (RFC 9112) as a scraper needs: one GET a connection. By hand, because it is so little:
//! no server crate would bound connections, bytes and time as tightly, and any would be larger
//! than the rest of the command.

use std::{
    fs,
    io::{self, Read, Write},
    net::{Shutdown, SocketAddr, TcpListener, TcpStream},
    os::unix::net::{UnixListener, UnixStream},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::{metrics, snapshot_channel::SnapshotClient, socket_path};
use crate::{
    error::Error,
    output::{describe, say},
};

/// Answers whoever asks from now on: at the socket, and at `metrics` where it is given.
///
/// `path`: where the socket is to lie. Without one the usual places are tried, and a router that
/// finds none does its work without a socket.
///
/// # Errors
/// One sentence that says why not.
pub(super) fn open_doors(
    path: Option<&Path>,
    metrics: Option<SocketAddr>,
    snapshot_client: &SnapshotClient,
) -> Result<Option<Socket>, Error> {
    let page = metrics.map(Page::listen).transpose()?;
    let socket = match Socket::listen(path) {
        Ok(socket) => Some(socket),
        Err(error) if path.is_some() => return Err(error),
        Err(error) => {
            say(&format!("{error}; motet router status cannot ask"));
            None
        }
    };
    if let Some(page) = page {
        page.serve(snapshot_client.clone())
            .map_err(|error| no_thread(&error))?;
    }
    if let Some(socket) = &socket {
        socket
            .serve(snapshot_client.clone())
            .map_err(|error| no_thread(&error))?;
    }
    Ok(socket)
}

/// Why there is no thread.
pub(super) fn no_thread(error: &io::Error) -> Error {
    Error::failed(format!("cannot start a thread: {}", describe(error)))
}

/// A socket that answers; dropping it removes its file.
#[derive(Debug)]
pub(super) struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    /// Listens at `path`, or at the best of the usual places.
    ///
    /// # Errors
    /// One sentence that says why not. Of the usual places it is a warning: the router does its
    /// work without.
    pub(super) fn listen(path: Option<&Path>) -> Result<Self, Error> {
        if let Some(path) = path {
            return Self::at(path);
        }
        let mut last = None;
        for path in socket_path::candidates() {
            if let Some(folder) = path.parent() {
                // If this fails, the next call reports the reason.
                let _ = fs::create_dir(folder);
            }
            match Self::at(&path) {
                Ok(socket) => return Ok(socket),
                Err(error) => last = last.or(Some(error)),
            }
        }
        Err(last.unwrap_or_else(|| Error::input("there is no place for a socket, see --socket")))
    }

    fn at(path: &Path) -> Result<Self, Error> {
        let taken = |why: &str| {
            let path = path.display();
            Error::input(format!("cannot listen at {path}: {why}"))
        };
        match UnixStream::connect(path) {
            Ok(_) => {
                return Err(taken(
                    "another router answers there, choose another path with --socket",
                ));
            }
            // The socket of a router that was killed is replaced; for any other file, bind(2)
            // reports that it exists.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused && is_socket(path) => {
                let _ = fs::remove_file(path);
            }
            Err(_) => {}
        }
        let listener = UnixListener::bind(path).map_err(|error| taken(&describe(&error)))?;
        Ok(Self {
            listener,
            path: path.to_owned(),
        })
    }

    /// The path of the socket.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Answers from now on, in threads of its own.
    pub(super) fn serve(&self, snapshot_client: SnapshotClient) -> io::Result<()> {
        let listener = self.listener.try_clone()?;
        let slots = ConnectionSlots::default();
        thread::Builder::new()
            .name("status".to_owned())
            .spawn(move || {
                for stream in listener.incoming() {
                    attend(stream, &slots, &snapshot_client, tell);
                }
            })?;
        Ok(())
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // A drop can report no error.
        let _ = fs::remove_file(&self.path);
    }
}

fn is_socket(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket())
}

/// The HTTP page that Prometheus reads.
#[derive(Debug)]
pub(super) struct Page {
    listener: TcpListener,
}

impl Page {
    /// Listens at `addr`.
    ///
    /// # Errors
    /// One sentence that says why not.
    pub(super) fn listen(addr: SocketAddr) -> Result<Self, Error> {
        let listener = TcpListener::bind(addr).map_err(|error| {
            let why = describe(&error);
            Error::failed(format!(
                "cannot serve metrics at {addr}: {why}, choose another address with --metrics"
            ))
        })?;
        Ok(Self { listener })
    }

    /// Answers from now on, in threads of its own.
    pub(super) fn serve(self, snapshot_client: SnapshotClient) -> io::Result<()> {
        let slots = ConnectionSlots::default();
        thread::Builder::new()
            .name("metrics".to_owned())
            .spawn(move || {
                for stream in self.listener.incoming() {
                    attend(stream, &slots, &snapshot_client, answer);
                }
            })?;
        Ok(())
    }
}

/// How many connections are being served.
#[derive(Clone, Default, Debug)]
struct ConnectionSlots {
    taken: Arc<AtomicUsize>,
}

/// One connection's; given back on drop.
struct ConnectionSlot {
    taken: Arc<AtomicUsize>,
}

impl ConnectionSlots {
    fn take(&self) -> Option<ConnectionSlot> {
        let before = self.taken.fetch_add(1, Ordering::Relaxed);
        let slot = ConnectionSlot {
            taken: Arc::clone(&self.taken),
        };
        // Dropped at once where there is no room.
        (before < CONNECTIONS_MAX).then_some(slot)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves a connection in a thread of its own; one too many is closed.
fn attend<S: Send + 'static>(
    stream: io::Result<S>,
    slots: &ConnectionSlots,
    snapshot_client: &SnapshotClient,
    serve: fn(S, &SnapshotClient) -> io::Result<()>,
) {
    let Ok(stream) = stream else {
        // Out of descriptors, say: not to be tried again at once.
        thread::sleep(Duration::from_millis(100));
        return;
    };
    let Some(slot) = slots.take() else {
        return;
    };
    let snapshot_client = snapshot_client.clone();
    let thread = thread::Builder::new().name("connection".to_owned());
    // If no thread can be started, the connection is closed. Errors of the peer are ignored.
    let _ = thread.spawn(move || {
        let _ = serve(stream, &snapshot_client);
        drop(slot);
    });
}

/// Sends the status as JSON.
fn tell(mut stream: UnixStream, snapshot_client: &SnapshotClient) -> io::Result<()> {
    stream.set_write_timeout(Some(CONNECTION_MAX))?;
    let Some(snapshot) = snapshot_client.ask() else {
        return Ok(());
    };
    let mut text = serde_json::to_vec(&*snapshot)?;
    text.push(b'\n');
    stream.write_all(&text)
}

/// Answers one HTTP request.
fn answer(mut stream: TcpStream, snapshot_client: &SnapshotClient) -> io::Result<()> {
    stream.set_write_timeout(Some(CONNECTION_MAX))?;
    let request = read_request(&mut stream)?;
    let (status, kind, body) = match target(&request) {
        None => ("400 Bad Request", PLAIN, "not an HTTP request\n".to_owned()),
        Some((method, _)) if method != "GET" => {
            ("405 Method Not Allowed", PLAIN, "only GET\n".to_owned())
        }
        Some((_, "/metrics")) => match snapshot_client.ask() {
            Some(snapshot) => ("200 OK", metrics::CONTENT_TYPE, metrics::text(&snapshot)),
            None => ("503 Service Unavailable", PLAIN, "too busy\n".to_owned()),
        },
        Some(_) => ("404 Not Found", PLAIN, "see /metrics\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())?;
    stream.shutdown(Shutdown::Write)
}

/// Reads up to the empty line behind the header fields.
///
/// # Errors
/// When it does not come in time, or is too long.
fn read_request(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let give_up = Instant::now() + CONNECTION_MAX;
    let mut request = Vec::new();
    while !request.windows(4).any(|four| four == b"\r\n\r\n") {
        let left = give_up.saturating_duration_since(Instant::now());
        if left.is_zero() || request.len() > REQUEST_LEN_MAX {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        let mut piece = [0; 1_024];
        match stream.read(&mut piece)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            len => request.extend_from_slice(piece.get(..len).unwrap_or_default()),
        }
    }
    Ok(request)
}

/// Method and path of a request, without a query.
fn target(request: &[u8]) -> Option<(&str, &str)> {
    let line = request.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let (method, path, version) = (words.next()?, words.next()?, words.next()?);
    let is_http = version.starts_with("HTTP/1.") && words.next().is_none();
    let path = path.split('?').next()?;
    is_http.then_some((method, path))
}

const PLAIN: &str = "text/plain; charset=utf-8";

/// Connections that are served at a time, of either kind.
const CONNECTIONS_MAX: usize = 8;

/// How long one may take to say what it wants, and to take each piece of the answer.
const CONNECTION_MAX: Duration = Duration::from_secs(5);

/// Longer than a scraper's request.
const REQUEST_LEN_MAX: usize = 8_192;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_request_lines_have_a_target() {
        let cases: [(&[u8], _); 7] = [
            (b"GET /metrics HTTP/1.1\r\n\r\n", Some(("GET", "/metrics"))),
            (b"GET /metrics?x=1 HTTP/1.0\r\n", Some(("GET", "/metrics"))),
            (b"POST / HTTP/1.1\r\n", Some(("POST", "/"))),
            (b"GET /metrics\r\n", None),
            (b"GET / a HTTP/1.1\r\n", None),
            (b"\xff\xfe HTTP/1.1\r\n", None),
            (b"", None),
        ];
        for (request, expected) in cases {
            assert_eq!(target(request), expected);
        }
    }

    #[test]
    fn no_more_seats_are_taken_than_there_are() {
        let slots = ConnectionSlots::default();
        let taken: Vec<_> = std::iter::from_fn(|| slots.take()).collect();
        assert_eq!(taken.len(), CONNECTIONS_MAX);
        assert!(slots.take().is_none());
        drop(taken);
        assert!(slots.take().is_some());
    }

    #[test]
    fn a_killed_routers_socket_is_taken_over_and_a_living_ones_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("router.sock");
        let socket = Socket::listen(Some(&path)).unwrap();
        let refused = Socket::listen(Some(&path)).unwrap_err().to_string();
        assert!(refused.contains("another router"), "{refused}");
        drop(socket);
        assert!(!path.exists());
        // As a killed one leaves it: the file without a listener.
        drop(UnixListener::bind(folder.path().join("left")).unwrap());
        Socket::listen(Some(&folder.path().join("left"))).unwrap();
        assert!(!folder.path().join("left").exists());
        // What is no socket stays.
        let file = folder.path().join("file");
        fs::write(&file, "mine").unwrap();
        assert!(Socket::listen(Some(&file)).is_err());
        assert_eq!(fs::read(&file).unwrap(), b"mine");
    }
}
