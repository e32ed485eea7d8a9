//! A dongle on a pseudo-terminal: a radio that the tests play, in real time.

use std::{
    fs::{File, OpenOptions},
    io::{Read as _, Write as _},
    os::{fd::AsFd as _, unix::fs::OpenOptionsExt as _},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::OFlags,
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{self, OptionalActions},
};

use crate::fake::{Fake, Quirks};

/// A radio behind a link to a pseudo-terminal, which may be unplugged and plugged in again.
pub(crate) struct Dongle {
    radio: Arc<Mutex<Fake>>,
    path: PathBuf,
    began: Instant,
    plugged: Option<(Arc<AtomicBool>, JoinHandle<()>)>,
}

impl Dongle {
    /// `path`: the name that the device gets.
    pub(crate) fn new(path: &Path, quirks: Quirks) -> Self {
        let mut dongle = Self {
            radio: Arc::new(Mutex::new(Fake::new(quirks))),
            path: path.to_owned(),
            began: Instant::now(),
            plugged: None,
        };
        dongle.plug();
        dongle
    }

    pub(crate) fn url(&self) -> String {
        format!("spinel+hdlc+uart://{}", self.path.display())
    }

    pub(crate) fn radio(&self) -> MutexGuard<'_, Fake> {
        self.radio.lock().expect("the radio plays on")
    }

    /// The time on the radio's side, µs.
    pub(crate) fn now_us(&self) -> u64 {
        self.began.elapsed().as_micros() as u64
    }

    pub(crate) fn plug(&mut self) {
        let (ours, theirs) = terminal(&self.path);
        let is_plugged = Arc::new(AtomicBool::new(true));
        let (plugged, radio, began) = (is_plugged.clone(), self.radio.clone(), self.began);
        let play = move || {
            // Without a second end a read fails before the device is opened.
            let _theirs = theirs;
            while plugged.load(Ordering::Relaxed) {
                turn(&ours, &mut radio.lock().expect("it plays on"), began);
                let mut fds = [PollFd::from_borrowed_fd(ours.as_fd(), PollFlags::IN)];
                let wait = Timespec::try_from(Duration::from_micros(500)).expect("it is short");
                let _ = poll(&mut fds, Some(&wait));
            }
        };
        self.plugged = Some((is_plugged, thread::spawn(play)));
    }

    pub(crate) fn unplug(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        if let Some((is_plugged, played)) = self.plugged.take() {
            is_plugged.store(false, Ordering::Relaxed);
            played.join().expect("the radio finds nothing wrong");
        }
        let now_us = self.now_us();
        let mut radio = self.radio();
        radio.restart(112, now_us);
        radio.sent.clear();
    }
}

impl Drop for Dongle {
    fn drop(&mut self) {
        if let Some((is_plugged, _)) = &self.plugged {
            is_plugged.store(false, Ordering::Relaxed);
        }
    }
}

/// Reads and writes what there is.
pub(crate) fn turn(line: &File, radio: &mut Fake, began: Instant) {
    let now_us = began.elapsed().as_micros() as u64;
    let mut buffer = [0; 4_096];
    if let Ok(len) = (&*line).read(&mut buffer) {
        radio.on_bytes(&buffer[..len], now_us);
    }
    radio.poll(now_us);
    for (at, bytes) in std::mem::take(&mut radio.sent) {
        if at <= now_us {
            let _ = (&*line).write_all(&bytes);
        } else {
            radio.sent.push_back((at, bytes));
        }
    }
}

/// A pseudo-terminal whose end for the host has this name.
fn terminal(path: &Path) -> (File, File) {
    let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&ours).unwrap();
    unlockpt(&ours).unwrap();
    let name = ptsname(&ours, Vec::new()).unwrap().into_string().unwrap();
    let theirs = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(OFlags::NOCTTY.bits().cast_signed())
        .open(&name)
        .unwrap();
    let mut settings = termios::tcgetattr(&theirs).unwrap();
    settings.make_raw();
    termios::tcsetattr(&theirs, OptionalActions::Now, &settings).unwrap();
    rustix::fs::fcntl_setfl(&ours, OFlags::NONBLOCK).unwrap();
    std::os::unix::fs::symlink(name, path).unwrap();
    (ours.into(), theirs)
}
