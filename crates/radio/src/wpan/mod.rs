//! Linux's own IEEE 802.15.4 (`wpan0`) as the radio of a MAC, and as a monitor of the air.
//!
//! The kernel and its hardware back off, assess the channel, retry and take ACKs, and acknowledge
//! what is for the interface. How a transmission ends they keep to themselves: each is reported as
//! [`AttemptOutcome::Unknown`]. So the MAC knows no ETX and delays no retry. RPL asks neighbours
//! for answers instead; without RPL a neighbour that is gone is noticed by neighbour discovery
//! alone.
//!
//! Frames have neither FCS nor signal strength nor a time of the radio's. Channel, PAN and EUI-64
//! are the interface's: they are read and compared, and set by `iwpan`. The kernel drops frames
//! with link security that it has not made itself, and all MAC commands: there is no key, no
//! sleeping child and no parent of one.
//!
//! An interface that is down or gone is opened again for as long as it takes.
//!
//! Sources: packet(7); Linux's `net/mac802154`.

mod fault;
mod interface;
mod nl802154;
mod socket;

use std::{collections::VecDeque, io, os::fd::BorrowedFd, time};

use motet::{
    mac::{self, Action, AttemptOutcome, Event, RadioCapabilities, RxMeta},
    time::{Duration, Instant},
    wire::ieee802154::fcs,
};

pub use fault::Fault;
use interface::{Interface, Kind};
use socket::{FRAME_MAX, Socket, wait};

use crate::Error;

/// An interface of Linux's IEEE 802.15.4 as the radio of a MAC.
///
/// Whoever runs the node carries out its actions by [`Self::perform`], takes all reports by
/// [`Self::poll`], polls the node again, and then waits by [`Self::wait`].
#[derive(Debug)]
pub struct WpanRadio {
    interface: Interface,
    channel: u8,
    pan: u16,
    /// `None` while the interface is down or gone.
    socket: Option<Socket>,
    reopen_at: Instant,
    backoff: Duration,
    /// The frame of the last [`Action::Preload`].
    loaded: Vec<u8>,
    attempt: Attempt,
    /// Answers that the kernel is not asked for.
    answers: VecDeque<Event<'static>>,
    /// It was lost, which has not been said yet.
    is_lost: bool,
}

/// The attempt of the MAC at the frame that is loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Attempt {
    None,
    /// The kernel has no room for it yet.
    Due,
    /// It is the kernel's, which has no room for another one yet.
    Queued,
}

/// What happened to an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// It is down or gone. Until it is back, attempts fail.
    Lost,
    /// It is back, with its settings.
    Back,
}

impl WpanRadio {
    /// Opens the interface of this name, which has to be up, on this channel and in this PAN.
    ///
    /// # Errors
    /// There is none of use, or not for this user.
    pub fn open(name: &str, channel: u8, pan: u16) -> Result<Self, Error> {
        let interface = Interface::find(name, Kind::Node)?;
        interface.check(channel, Some(pan))?;
        Ok(Self {
            socket: Some(Socket::open(&interface)?),
            interface,
            channel,
            pan,
            reopen_at: Instant::ORIGIN,
            backoff: BACKOFF_MIN,
            loaded: Vec::new(),
            attempt: Attempt::None,
            answers: VecDeque::new(),
            is_lost: false,
        })
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.interface.name
    }

    /// The interface's EUI-64, big endian.
    pub const fn eui64(&self) -> [u8; 8] {
        self.interface.settings.eui64
    }

    /// Whether the interface is there and up.
    pub const fn has_line(&self) -> bool {
        self.socket.is_some()
    }

    /// What the kernel and its radio do by themselves.
    pub const fn capabilities(&self) -> RadioCapabilities {
        RadioCapabilities {
            stamp_delay_max: STAMP_DELAY_MAX,
            ..RadioCapabilities::OFFLOADING
        }
    }

    /// Changes the settings of a MAC to those of one over this radio. It asks for ACKs, since the
    /// hardware repeats only what does, and is told of none.
    pub const fn settle(config: &mut mac::Config) {
        config.answer_timeout = ANSWER_TIMEOUT;
    }

    /// Whether a node with link security, or one that sleeps, can use it.
    ///
    /// # Errors
    /// None of the two can. The kernel drops frames with link security that it has not secured
    /// itself. It sends no MAC command of others, such as a data request, does not report the ACK
    /// that answers one, and keeps the receiver on.
    pub fn check(&self, is_secured: bool, sleeps: bool) -> Result<(), Error> {
        let fault = match (is_secured, sleeps) {
            (true, _) => Fault::Security,
            (false, true) => Fault::Sleep,
            (false, false) => return Ok(()),
        };
        Err(Error::Interface(self.name().to_owned(), fault))
    }

    /// Carries out an action of the MAC. `bytes`: those that it speaks of.
    pub fn perform(&mut self, action: Action, bytes: &[u8], now: Instant) {
        match action {
            Action::Preload { .. } => {
                self.attempt = Attempt::None;
                self.loaded.clear();
                self.loaded.extend_from_slice(bytes);
                self.answers.push_back(Event::Preloaded);
            }
            Action::Fire => {
                self.attempt = Attempt::Due;
                self.go_on(now);
            }
            // The receiver is always on, and the channel that of the interface.
            Action::Listen | Action::Sleep | Action::ChangeChannel { .. } => {}
            // A MAC that knows the radio's capabilities asks for none of these.
            Action::SetPending { .. } => {}
            Action::AssessChannel => self
                .answers
                .push_back(Event::ChannelAssessed { clear: true }),
            Action::Transmit { at, .. } => self.answers.push_back(Event::TransmitDone { at }),
        }
    }

    /// Reports all that has happened to `report`. A change ends the turn: call it until it returns
    /// nothing. It does not wait.
    ///
    /// # Errors
    /// Another radio has taken the interface's name, or its settings were changed meanwhile.
    pub fn poll(
        &mut self,
        now: Instant,
        mut report: impl FnMut(Event<'_>),
    ) -> Result<Option<Change>, Error> {
        if self.socket.is_none() && now >= self.reopen_at && self.reopen(now)? {
            return Ok(Some(Change::Back));
        }
        self.go_on(now);
        let mut buffer = [0; FRAME_MAX];
        for _ in 0..FRAMES_MAX {
            let received = self
                .socket
                .as_ref()
                .map(|socket| socket.receive(&mut buffer));
            match received {
                None | Some(Ok(None)) => break,
                // Without an FCS a frame is at most two bytes shorter than the longest.
                Some(Ok(Some(len))) => {
                    if let Some(psdu) = buffer.get(..len) {
                        report(self.frame(psdu, now));
                    }
                }
                Some(Err(_)) => self.lose(now),
            }
        }
        while let Some(event) = self.answers.pop_front() {
            report(event);
        }
        Ok(std::mem::take(&mut self.is_lost).then_some(Change::Lost))
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
        let reopens = self.socket.is_none().then(|| self.reopen_at.since(now));
        let reopens = reopens.map(|wait| time::Duration::from_micros(wait.as_micros()));
        let at_once = (!self.answers.is_empty() || self.is_lost).then_some(time::Duration::ZERO);
        let timeout = [timeout, reopens, at_once].into_iter().flatten().min();
        let has_to_send = self.attempt != Attempt::None;
        wait(
            self.socket.as_ref().map(|socket| (socket, has_to_send)),
            others,
            timeout,
        )
    }

    fn frame<'a>(&self, psdu: &'a [u8], at: Instant) -> Event<'a> {
        let meta = RxMeta {
            rssi_dbm: RSSI_DBM,
            lqi: LQI,
            channel: self.channel,
            at,
        };
        Event::FrameReceived { psdu, meta }
    }

    /// Hands the frame to the kernel, and answers once that has room for the next one.
    fn go_on(&mut self, now: Instant) {
        if self.attempt == Attempt::Due {
            match self.socket.as_ref().map(|socket| socket.send(&self.loaded)) {
                Some(Ok(true)) => self.attempt = Attempt::Queued,
                Some(Ok(false)) => {}
                None => self.answer(AttemptOutcome::Failed, now),
                Some(Err(error)) => {
                    self.answer(AttemptOutcome::Failed, now);
                    if is_loss(&error) {
                        self.lose(now);
                    }
                }
            }
        }
        if self.attempt == Attempt::Queued && self.socket.as_ref().is_some_and(Socket::has_room) {
            self.answer(AttemptOutcome::Unknown, now);
        }
    }

    fn answer(&mut self, outcome: AttemptOutcome, at: Instant) {
        self.attempt = Attempt::None;
        self.answers.push_back(Event::Sent { outcome, at });
    }

    /// The interface is down or gone.
    fn lose(&mut self, now: Instant) {
        if self.socket.take().is_none() {
            return;
        }
        self.is_lost = true;
        if self.attempt != Attempt::None {
            self.answer(AttemptOutcome::Failed, now);
        }
        self.backoff = BACKOFF_MIN;
        self.reopen_later(now);
    }

    fn reopen_later(&mut self, now: Instant) {
        self.reopen_at = now + self.backoff;
        self.backoff = self.backoff.saturating_mul(2).min(BACKOFF_MAX);
    }

    /// Whether the interface is back.
    fn reopen(&mut self, now: Instant) -> Result<bool, Error> {
        let found = Interface::find(self.name(), Kind::Node);
        let opened = found.and_then(|interface| {
            interface.check(self.channel, Some(self.pan))?;
            let socket = Socket::open(&interface)?;
            Ok((interface, socket))
        });
        match opened {
            Ok((interface, _)) if interface.settings.eui64 != self.eui64() => {
                let name = self.name().to_owned();
                Err(Error::Interface(name, Fault::Exchanged))
            }
            Ok((interface, socket)) => {
                (self.interface, self.socket) = (interface, Some(socket));
                Ok(true)
            }
            // It is there again, and somebody is about to set it.
            Err(_) => {
                self.reopen_later(now);
                Ok(false)
            }
        }
    }
}

/// A monitor: an interface that receives all frames of its channel, of every network, and
/// acknowledges none.
#[derive(Debug)]
pub struct WpanMonitor {
    interface: Interface,
    socket: Socket,
}

impl WpanMonitor {
    /// Opens the monitor of this name, which has to be up and on this channel.
    ///
    /// # Errors
    /// There is none of use, or not for this user.
    pub fn open(name: &str, channel: u8) -> Result<Self, Error> {
        let interface = Interface::find(name, Kind::Monitor)?;
        interface.check(channel, None)?;
        Ok(Self {
            socket: Socket::open(&interface)?,
            interface,
        })
    }

    /// The interface's name.
    pub fn name(&self) -> &str {
        &self.interface.name
    }

    /// The EUI-64 of its radio, big endian.
    pub const fn eui64(&self) -> [u8; 8] {
        self.interface.settings.eui64
    }

    /// The next frame that is there now, FCS included, and whether that is right. It does not
    /// wait.
    ///
    /// # Errors
    /// The interface is down or gone.
    pub fn receive<'b>(
        &self,
        buffer: &'b mut [u8; 127],
    ) -> Result<Option<(&'b [u8], bool)>, Error> {
        let received = self.socket.receive(buffer);
        let received = received.map_err(|error| {
            let why = match is_loss(&error) {
                true => Fault::Down,
                false => Fault::System(error),
            };
            Error::Interface(self.interface.name.clone(), why)
        });
        let psdu = received?.and_then(|len| buffer.get(..len));
        Ok(psdu.map(|psdu| (psdu, is_whole(psdu))))
    }

    /// Waits until a frame has come, or for `timeout`.
    ///
    /// # Errors
    /// What poll(2) reports.
    pub fn wait(&self, timeout: time::Duration) -> Result<(), Error> {
        wait(Some((&self.socket, false)), &[], Some(timeout))
    }
}

/// Whether the last two bytes are the FCS of the others.
fn is_whole(psdu: &[u8]) -> bool {
    let Some((mpdu, end)) = psdu.split_last_chunk::<2>() else {
        return false;
    };
    fcs(mpdu).to_le_bytes() == *end
}

/// Whether the interface is down or gone.
fn is_loss(error: &io::Error) -> bool {
    use io::ErrorKind::{NetworkDown, NotConnected};
    // ENXIO has no kind: the interface that the socket was bound to is no more.
    matches!(error.kind(), NetworkDown | NotConnected)
        || [ENXIO, ENODEV].contains(&error.raw_os_error())
}

const ENXIO: Option<i32> = Some(6);
const ENODEV: Option<i32> = Some(19);

/// A frame's way through the kernel to this program; a busy machine takes longer. Nothing is timed
/// by it, for the ACKs are the hardware's.
const STAMP_DELAY_MAX: Duration = Duration::from_millis(20);

/// Three frames with all attempts of the hardware, on a busy channel.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(1_200);

/// The kernel does not tell them: of a strong signal no link is thought badly before it is used.
const RSSI_DBM: i8 = -60;
const LQI: u8 = 255;

/// Frames that are reported in one turn.
const FRAMES_MAX: usize = 64;

/// Waits between attempts to open an interface that is gone.
const BACKOFF_MIN: Duration = Duration::from_millis(100);
const BACKOFF_MAX: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fcs_of_a_monitor_is_checked() {
        let mpdu = [0x02, 0x00, 1];
        let psdu = [&mpdu[..], &fcs(&mpdu).to_le_bytes()].concat();
        assert!(is_whole(&psdu));
        for at in 0..psdu.len() {
            let mut broken = psdu.clone();
            broken[at] ^= 1;
            assert!(!is_whole(&broken), "{at}");
        }
        assert!(!is_whole(&[1]));
    }

    #[test]
    fn a_mac_waits_for_the_kernel_as_long_as_three_frames_take() {
        let mut config = mac::Config::new(0xabcd, [1; 8]);
        WpanRadio::settle(&mut config);
        assert!(config.answer_timeout > Duration::from_millis(3 * 45));
    }
}
