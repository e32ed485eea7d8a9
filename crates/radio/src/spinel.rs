//! A radio co-processor on its line: a [`Session`] with its I/O.

use std::{
    os::fd::{AsFd as _, BorrowedFd},
    path::{Path, PathBuf},
    process::ExitStatus,
    time,
};

use motet::time::{Duration, Instant, earliest};
use motet_spinel::{
    self as spinel, Cause, Peer, Promiscuous, RadioInfo, Received, Refusal, Session, Settings,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

use crate::{Error, RadioUrl, Uart, line::Line};

/// A radio co-processor on its line.
///
/// Whoever owns it takes all events by [`Self::poll`], then waits by [`Self::wait`]. It has to be
/// read always: a radio acknowledges frames that its host then does not read.
#[derive(Debug)]
pub struct SpinelRadio {
    place: Place,
    session: Session,
    /// `None` while the radio is unplugged.
    line: Option<Line>,
    /// When the line is opened again, and how long to wait after that.
    reopen_at: Instant,
    backoff: Duration,
    /// Why the line could not be opened again.
    why: Option<Error>,
    /// How the program ended, where it is one.
    ended: Option<ExitStatus>,
    /// How often it has ended since the radio was ready.
    ends: u8,
    /// What came first over the line, for an error's sentence.
    first: Vec<u8>,
    buffer: Box<[u8]>,
}

/// What a radio reports.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// It is configured: it receives and sends from now on.
    Ready(RadioInfo),
    /// A frame came.
    Received(Received),
    /// A transmission has ended.
    Sent {
        /// How it ended.
        outcome: spinel::Outcome,
        /// When the frame's last symbol left the antenna, or the answer's arrival.
        at: Instant,
    },
    /// It has restarted, or its line is gone. It is started anew; [`Self::Ready`] follows.
    Restarted(Cause),
    /// An energy scan has ended.
    Scanned {
        /// The channel.
        channel: u8,
        /// The strongest power on it, dBm; `None`: the radio did not scan.
        rssi_dbm: Option<i8>,
    },
}

/// Where a radio co-processor is.
#[derive(Clone, Debug)]
enum Place {
    Uart(Uart),
    Program(PathBuf, Vec<String>),
}

impl Place {
    fn open(&self) -> Result<Line, Error> {
        match self {
            Self::Uart(uart) => Line::uart(uart),
            Self::Program(program, arguments) => Line::program(program, arguments),
        }
    }

    fn path(&self) -> &Path {
        match self {
            Self::Uart(uart) => &uart.path,
            Self::Program(program, _) => program,
        }
    }
}

impl SpinelRadio {
    /// Opens the line to a radio. The radio starts with the first [`Self::poll`].
    ///
    /// # Errors
    /// There is no such line, or none for this user, or it is in use.
    pub fn open(url: &RadioUrl, settings: Settings) -> Result<Self, Error> {
        let place = match url {
            RadioUrl::Uart(uart) => Place::Uart(uart.clone()),
            RadioUrl::ForkPty { program, arguments } => {
                Place::Program(program.clone(), arguments.clone())
            }
            RadioUrl::Wpan { .. } => return Err(Error::Unsupported(NO_WPAN)),
        };
        Ok(Self {
            line: Some(place.open()?),
            place,
            session: Session::new(settings),
            reopen_at: Instant::ORIGIN,
            backoff: BACKOFF_MIN,
            why: None,
            ended: None,
            ends: 0,
            first: Vec::new(),
            buffer: vec![0; READ_LEN].into(),
        })
    }

    /// Waits until the radio is ready: until it has answered and taken its settings.
    ///
    /// `now`: the caller's clock. `gives_up`: asked every 50 ms.
    ///
    /// # Errors
    /// It cannot be used, or the caller gave up.
    pub fn start(
        &mut self,
        now: impl Fn() -> Instant,
        gives_up: impl Fn() -> bool,
    ) -> Result<RadioInfo, Error> {
        let until = now() + AWAY_MAX;
        loop {
            while let Some(event) = self.poll(now())? {
                if let Event::Ready(info) = event {
                    return Ok(info);
                }
            }
            if gives_up() {
                return Err(Error::GivenUp);
            }
            if self.line.is_none() && now() >= until {
                return Err(self.give_up());
            }
            self.wait(Some(PATIENCE), &[], now())?;
        }
    }

    /// The next event; to be called until it returns nothing. It does not wait.
    ///
    /// # Errors
    /// The radio cannot be used. It is not opened again.
    pub fn poll(&mut self, now: Instant) -> Result<Option<Event>, Error> {
        if let Some(event) = self.take(now)? {
            return Ok(Some(event));
        }
        self.exchange(now);
        if self.ends >= ENDS_MAX {
            return Err(Error::Ends(self.place.path().to_owned(), self.ended));
        }
        self.take(now)
    }

    /// Waits until something has come from the radio or from one of `others`, until the radio has
    /// to be polled, or for `timeout`.
    ///
    /// # Errors
    /// What poll(2) reports.
    pub fn wait(
        &mut self,
        timeout: Option<time::Duration>,
        others: &[BorrowedFd<'_>],
        now: Instant,
    ) -> Result<(), Error> {
        let due = self.deadline(now).map(|at| at.since(now).as_micros());
        let due = due.map(time::Duration::from_micros);
        let timeout = [timeout, due].into_iter().flatten().min();
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut fds: Vec<PollFd<'_>> = others
            .iter()
            .map(|other| PollFd::from_borrowed_fd(*other, PollFlags::IN))
            .collect();
        if let Some(line) = &self.line {
            let interest = match self.session.poll_output(now).is_empty() {
                true => PollFlags::IN,
                false => PollFlags::IN | PollFlags::OUT,
            };
            fds.push(PollFd::from_borrowed_fd(line.as_fd(), interest));
        }
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(Error::Wait(error.into())),
        }
    }

    /// When to call [`Self::poll`] next though nothing came; `None`: only the line goes on.
    fn deadline(&self, now: Instant) -> Option<Instant> {
        match self.line {
            Some(_) => self.session.deadline(),
            None => earliest(self.session.deadline(), Some(self.reopen_at.max(now))),
        }
    }

    /// Sends a frame without its FCS; [`Event::Sent`] reports its end.
    ///
    /// # Errors
    /// As [`Session::transmit`].
    pub fn transmit(
        &mut self,
        psdu: &[u8],
        at: Option<Instant>,
        now: Instant,
    ) -> Result<(), Refusal> {
        self.session.transmit(psdu, at, now)?;
        self.write(now);
        Ok(())
    }

    /// Measures the strongest power on a channel, for [`Event::Scanned`].
    ///
    /// # Errors
    /// As [`Session::scan`].
    pub fn scan(&mut self, channel: u8, period_ms: u16, now: Instant) -> Result<(), Refusal> {
        self.session.scan(channel, period_ms, now)?;
        self.write(now);
        Ok(())
    }

    /// Changes the channel.
    ///
    /// # Errors
    /// The radio does not have it.
    pub fn set_channel(&mut self, channel: u8, now: Instant) -> Result<(), Refusal> {
        self.session.set_channel(channel, now)?;
        self.write(now);
        Ok(())
    }

    /// Changes the PAN identifier and the addresses; no extended address: the radio's own EUI-64.
    pub fn set_addresses(
        &mut self,
        pan: u16,
        short: Option<u16>,
        extended: Option<[u8; 8]>,
        now: Instant,
    ) {
        self.session.set_addresses(pan, short, extended, now);
        self.write(now);
    }

    /// Changes which frames of others are received.
    pub fn set_promiscuous(&mut self, promiscuous: Promiscuous, now: Instant) {
        self.session.set_promiscuous(promiscuous, now);
        self.write(now);
    }

    /// Switches the receiver on or off.
    pub fn set_listening(&mut self, is_listening: bool, now: Instant) {
        self.session.set_listening(is_listening, now);
        self.write(now);
    }

    /// Sets whether a frame waits for `peer`: the frame pending bit of ACKs to its polls.
    pub fn set_source_match(&mut self, peer: Peer, is_pending: bool, now: Instant) {
        self.session.set_source_match(peer, is_pending, now);
        self.write(now);
    }

    /// The session: its counters, its round trip, the radio's description of itself.
    pub const fn session(&self) -> &Session {
        &self.session
    }

    /// Whether the line is there. Without it the radio is unplugged, or its program has ended.
    pub const fn has_line(&self) -> bool {
        self.line.is_some()
    }

    /// Why the line could not be opened again the last time.
    pub const fn why_away(&self) -> Option<&Error> {
        self.why.as_ref()
    }

    fn take(&mut self, now: Instant) -> Result<Option<Event>, Error> {
        let Some(event) = self.session.poll_event(now) else {
            return Ok(None);
        };
        Ok(Some(match event {
            spinel::Event::Ready(info) => {
                (self.backoff, self.ends) = (BACKOFF_MIN, 0);
                Event::Ready(info)
            }
            spinel::Event::Received(received) => Event::Received(received),
            spinel::Event::Sent { outcome, at } => Event::Sent { outcome, at },
            spinel::Event::Restarted(cause) => Event::Restarted(cause),
            spinel::Event::ScanResult { channel, rssi_dbm } => Event::Scanned { channel, rssi_dbm },
            spinel::Event::Failed(error) => return Err(self.explain(error)),
        }))
    }

    /// Reads and writes what there is.
    fn exchange(&mut self, now: Instant) {
        if self.line.is_none() && now >= self.reopen_at {
            self.reopen(now);
        }
        self.read(now);
        self.write(now);
    }

    fn read(&mut self, now: Instant) {
        for _ in 0..READS_MAX {
            let Some(line) = &self.line else {
                return;
            };
            match line.read(&mut self.buffer) {
                Ok(Some(len)) => {
                    let bytes = self.buffer.get(..len).unwrap_or_default();
                    let room = FIRST_MAX.saturating_sub(self.first.len());
                    self.first.extend(bytes.iter().take(room));
                    self.session.on_bytes(bytes, now);
                }
                Ok(None) => return,
                Err(_) => return self.lose(now),
            }
        }
    }

    fn write(&mut self, now: Instant) {
        loop {
            let bytes = self.session.poll_output(now);
            let Some(line) = &self.line else {
                return;
            };
            if bytes.is_empty() {
                return;
            }
            match line.write(bytes) {
                Ok(0) => return,
                Ok(len) => self.session.on_written(len, now),
                Err(_) => return self.lose(now),
            }
        }
    }

    /// The line is gone.
    fn lose(&mut self, now: Instant) {
        if let Some(ended) = self.line.take().and_then(Line::end) {
            self.ended = Some(ended);
            self.ends = self.ends.saturating_add(1);
        }
        self.session.on_loss_of_line(now);
        self.reopen_later(now);
    }

    fn reopen_later(&mut self, now: Instant) {
        self.reopen_at = now + self.backoff;
        self.backoff = self.backoff.saturating_mul(2).min(BACKOFF_MAX);
    }

    fn reopen(&mut self, now: Instant) {
        match self.place.open() {
            Ok(line) => {
                self.line = Some(line);
                self.why = None;
                self.session.on_restart_of_line(now);
            }
            Err(why) => {
                self.why = Some(why);
                self.reopen_later(now);
            }
        }
    }

    /// The line went away during the first start, and did not return.
    fn give_up(&mut self) -> Error {
        let path = self.place.path().to_owned();
        self.why.take().unwrap_or(Error::NoSuchDevice(path))
    }

    /// Whether something came over the line, and never a frame of Spinel's.
    fn is_foreign(&self) -> bool {
        !self.first.is_empty() && self.session.counters().line.frames == 0
    }

    /// The session's error, with what only the line knows.
    fn explain(&self, error: spinel::Error) -> Error {
        let path = self.place.path().to_owned();
        match &error {
            spinel::Error::NoAnswer(_) if self.is_foreign() => {
                let text = String::from_utf8_lossy(&self.first).to_lowercase();
                match text.contains("bootloader") || text.contains("bl >") {
                    true => Error::Bootloader(path),
                    false => Error::Babble(path),
                }
            }
            _ => Error::Radio(path, error),
        }
    }
}

const NO_WPAN: &str = "wpan:… is an interface of Linux, and no radio co-processor: one is needed here, such as spinel+hdlc+uart://DEVICE";

/// Waits between attempts to open a line that is gone.
const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(2);

/// How long a line that a reset has closed may stay away during the first start.
const AWAY_MAX: Duration = Duration::from_secs(10);

/// How often a start asks whether to give up.
const PATIENCE: time::Duration = time::Duration::from_millis(50);

/// Bytes read at once, and how often in one go: a radio that never stops speaking lets others
/// speak.
const READ_LEN: usize = 4_096;
const READS_MAX: usize = 16;

/// A program that ends so often before it is ready has failed.
const ENDS_MAX: u8 = 5;

/// Bytes that are kept of what comes first.
const FIRST_MAX: usize = 256;
