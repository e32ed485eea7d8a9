//! A port of a mote behind which a program of this machine answers, a broker or a server of TLS,
//! and a port of this machine behind which a mote answers, for a browser.
//!
//! Virtual time stands while bytes go to the program and back. What it says later than [`PATIENCE`]
//! of real time arrives at the next look, [`LOOK_EVERY`] of virtual time later: times of such runs
//! are no figures, their bytes are.

use std::cell::Cell;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use embassy_futures::select::{Either, select};
use embassy_time::Timer;
use embedded_io_async::{Read, Write};
use motet_embassy::{Stack, TcpSocket};

/// A program that serves a port of this machine; it ends with this.
pub(crate) struct Program {
    child: Child,
    address: SocketAddr,
}

impl Program {
    /// Starts `name` with the arguments that `of` makes of the port, and waits until it listens;
    /// `None`, with a line that says why, where there is no such program.
    pub(crate) fn start(name: &str, of: impl FnOnce(u16) -> Vec<String>) -> Option<Self> {
        Self::start_in(Path::new("."), name, of)
    }

    /// The same, in this folder.
    pub(crate) fn start_in(
        folder: &Path,
        name: &str,
        of: impl FnOnce(u16) -> Vec<String>,
    ) -> Option<Self> {
        let path = find(name).or_else(|| {
            eprintln!("not run: no {name}");
            None
        })?;
        let address = free_address();
        let child = Command::new(path)
            .args(of(address.port()))
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = child.inspect_err(|error| eprintln!("cannot run {name}: {error}"));
        let program = Self {
            child: child.ok()?,
            address,
        };
        let begun = Instant::now();
        while TcpStream::connect(address).is_err() {
            if begun.elapsed() > START_LIMIT {
                eprintln!("{name} does not listen at {address}");
                return None;
            }
            thread::sleep(Duration::from_millis(20));
        }
        Some(program)
    }

    /// Where it listens.
    pub(crate) const fn address(&self) -> SocketAddr {
        self.address
    }
}

/// A folder for a program's files, which ends with this.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = env::temp_dir().join(format!("motet-{name}-{}", std::process::id()));
        fs::create_dir_all(&path).expect("a temporary folder can be made");
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Whatever is left is a temporary file.
        let _removed = fs::remove_dir_all(&self.0);
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ended = self.child.kill();
        let _status = self.child.wait();
    }
}

/// Lets the program at `to` answer at this port of a mote, one peer after the other.
pub(crate) async fn serve(stack: Stack, port: u16, to: SocketAddr) -> Result<(), String> {
    let listener = stack.listen(port).map_err(|error| error.to_string())?;
    loop {
        let socket = listener.accept().await.map_err(|error| error.to_string())?;
        let host = TcpStream::connect(to).map_err(|error| error.to_string())?;
        if let Err(reason) = pass(socket, host).await {
            eprintln!("the bridge to {to}: {reason}");
        }
    }
}

/// Lets the mote at `to` answer whoever connects to `listener`, which does not block, one peer
/// after the other, until `is_done`.
pub(crate) async fn offer(
    stack: Stack,
    listener: Rc<TcpListener>,
    to: SocketAddr,
    is_done: Rc<Cell<bool>>,
) {
    while !is_done.get() {
        let Ok((host, _)) = listener.accept() else {
            thread::sleep(PATIENCE);
            Timer::after_millis(LOOK_EVERY_MS).await;
            continue;
        };
        let passed = match stack.connect(to).await {
            Ok(socket) => pass(socket, host).await,
            Err(error) => Err(error.to_string()),
        };
        if let Err(reason) = passed {
            eprintln!("the bridge to {to}: {reason}");
        }
    }
}

/// Passes bytes on, both ways, until one end closes.
async fn pass(mut socket: TcpSocket, mut host: TcpStream) -> Result<(), String> {
    let timeout = host.set_read_timeout(Some(PATIENCE));
    timeout.map_err(|error| error.to_string())?;
    let mut bytes = [0; 2048];
    loop {
        match host.read(&mut bytes) {
            Ok(0) => {
                socket.shutdown();
                // Until the mote has closed, too.
                while let Ok(1..) = socket.read(&mut bytes).await {}
                return Ok(());
            }
            Ok(count) => {
                let written = socket.write_all(&bytes[..count]).await;
                written.map_err(|error| error.to_string())?;
                continue;
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => return Err(error.to_string()),
        }
        let look = Timer::after_millis(LOOK_EVERY_MS);
        match select(socket.read(&mut bytes), look).await {
            Either::First(Ok(0)) => return Ok(()),
            Either::First(Ok(count)) => {
                let written = host.write_all(&bytes[..count]);
                written.map_err(|error| error.to_string())?;
            }
            Either::First(Err(error)) => return Err(error.to_string()),
            Either::Second(()) => {}
        }
    }
}

/// Where a program is.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    // Where Debian has its daemons, which a user's PATH leaves out.
    let folders = env::split_paths(&path).chain(["/usr/sbin".into()]);
    let mut files = folders.map(|folder| folder.join(name));
    files.find(|file| file.is_file())
}

/// A port that was free a moment ago.
fn free_address() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    let address = listener.and_then(|listener| listener.local_addr());
    address.expect("this machine has a free port")
}

/// How long the program has to begin to listen.
const START_LIMIT: Duration = Duration::from_secs(10);

/// How long virtual time stands for an answer.
const PATIENCE: Duration = Duration::from_millis(5);

const LOOK_EVERY_MS: u64 = 100;
