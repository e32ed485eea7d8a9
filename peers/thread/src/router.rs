//! `motet router` beside OpenThread's border router.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::border::INTERFACE;
use crate::network::run;

/// The queue of packets that the daemon takes.
const QUEUE: &str = "5";

/// A running daemon.
pub(crate) struct Router {
    motet: PathBuf,
    socket: PathBuf,
    child: Child,
}

impl Router {
    /// Starts the daemon with its rules, and returns once it answers on its socket.
    pub(crate) fn start(motet: &Path, folder: &Path) -> Result<Self> {
        let socket = folder.join("router.socket");
        let child = Command::new(motet)
            .args(["router", "--nfqueue", QUEUE, "--interface", INTERFACE])
            .args(["--policy", "admission", "--rules", "install", "--socket"])
            .arg(&socket)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .context("cannot start `motet router`")?;
        let mut router = Self {
            motet: motet.to_owned(),
            socket,
            child,
        };
        let start = Instant::now();
        while router.status().is_err() {
            if let Some(status) = router.child.try_wait()? {
                bail!("`motet router` has ended: {status}");
            }
            if start.elapsed() > Duration::from_secs(20) {
                bail!("`motet router` does not answer on its socket");
            }
            thread::sleep(Duration::from_millis(100));
        }
        Ok(router)
    }

    /// What `motet router status --json` prints.
    pub(crate) fn status(&self) -> Result<Value> {
        let mut command = Command::new(&self.motet);
        command
            .args(["router", "status", "--json", "--socket"])
            .arg(&self.socket);
        serde_json::from_str(&run(&mut command)?).context("the status is no JSON")
    }

    /// Sends the daemon a signal and waits for its end; gives how it ended, and after how long.
    pub(crate) fn end(mut self, signal: Signal) -> Result<(ExitStatus, Duration)> {
        let start = Instant::now();
        kill(Pid::from_raw(i32::try_from(self.child.id())?), signal)?;
        loop {
            if let Some(status) = self.child.try_wait()? {
                return Ok((status, start.elapsed()));
            }
            if start.elapsed() > Duration::from_secs(10) {
                bail!("`motet router` does not end after {signal}");
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Router {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
