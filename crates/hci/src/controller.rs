//! A controller at the other end of a stream: started once, then given commands and polled for
//! events.

use std::{
    fs::File,
    io::{self, Read as _, Write as _},
    os::fd::{AsFd, BorrowedFd},
    time::{Duration, Instant},
};

use bt_hci::FromHciBytes;
use bt_hci::cmd::controller_baseband::{Reset, SetEventMask};
use bt_hci::cmd::info::{ReadBdAddr, ReadLocalSupportedCmds, ReadLocalVersionInformation};
use bt_hci::cmd::le::{LeReadBufferSize, LeSetEventMask, LeSetRandomAddr};
use bt_hci::cmd::status::ReadRssi;
use bt_hci::cmd::{Cmd, Opcode, SyncCmd};
use bt_hci::param::{CmdMask, CoreSpecificationVersion, EventMask, LeEventMask};
use motet::ble::{Action, DeviceAddr, Event, Handle};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
};

use crate::events::{self, Answer};
use crate::h4::Cutter;
use crate::requests::{self, Request, command, on_line};
use crate::{ControllerAddress, Error};

/// A controller that has been started.
#[derive(Debug)]
pub struct Controller {
    line: Line,
    address: DeviceAddr,
    packet_len: u16,
    packets: u8,
    known: CmdMask,
    /// The command that has no answer yet.
    asked: Option<PendingCommand>,
    /// Whether the last command is one that this controller does not know.
    is_refused: bool,
}

/// The direction of an H4 packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// To the controller: a command or data.
    ToController,
    /// To the host: an event or data.
    ToHost,
}

impl AsFd for Controller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.line.file.as_fd()
    }
}

/// A command on its way.
#[derive(Clone, Copy, Debug)]
struct PendingCommand {
    opcode: Opcode,
    until: Instant,
    /// Whether a connection goes on without this command: then a missing answer counts as a
    /// refusal. Some controllers list a command as supported, and never answer it.
    is_optional: bool,
}

/// The stream, with buffers for received packets and for bytes to be sent.
#[derive(Debug)]
struct Line {
    file: File,
    cutter: Cutter,
    /// Bytes that the controller did not take at once. A host gives a controller no more than fits
    /// its buffers.
    outward: Vec<u8>,
    /// A copy of each packet not yet taken by `take_packets`; `None` if packets are not recorded.
    noted: Option<Vec<(Direction, Vec<u8>)>>,
}

impl Controller {
    /// Opens a controller, resets it and reads its version, buffers and features.
    ///
    /// `random`: the address of this device where the controller has none of its own. `gives_up`:
    /// called while an answer is outstanding; true ends the wait.
    ///
    /// # Errors
    /// There is no controller of Bluetooth 4.1 or later.
    pub fn start(
        place: &ControllerAddress,
        random: [u8; 6],
        gives_up: impl Fn() -> bool,
    ) -> Result<Self, Error> {
        let file = File::from(place.open().map_err(Error::Unreachable)?);
        let mut line = Line {
            file,
            cutter: Cutter::default(),
            outward: Vec::new(),
            noted: None,
        };
        let mut ask = Start {
            line: &mut line,
            gives_up: &gives_up,
        };
        ask.of(&Reset::new(), "Reset")?;
        let version = ask.of(&ReadLocalVersionInformation::new(), "its version")?;
        if version.hci_version < CoreSpecificationVersion::VERSION_4_1 {
            return Err(Error::Version(version.hci_version.into_inner()));
        }
        let known = ask.of(&ReadLocalSupportedCmds::new(), "its commands")?;
        ask.of(&SetEventMask::new(events_wanted()), "Set Event Mask")?;
        ask.of(
            &LeSetEventMask::new(le_events_wanted()),
            "LE Set Event Mask",
        )?;
        let buffers = ask.of(&LeReadBufferSize::new(), "LE Read Buffer Size")?;
        let (packet_len, packets) = (
            buffers.le_acl_data_packet_length,
            buffers.total_num_le_acl_data_packets,
        );
        // Zero: it shares the buffers of BR/EDR, which no host of LE alone reads.
        if packet_len == 0 || packets == 0 {
            return Err(Error::Refused("LE Read Buffer Size", 0));
        }
        let mut bytes = ask.of(&ReadBdAddr::new(), "Read BD_ADDR")?.into_inner();
        bytes.reverse();
        let mut address = DeviceAddr {
            bytes,
            is_random: false,
        };
        if bytes == [0; 6] {
            address = DeviceAddr {
                bytes: random,
                is_random: true,
            };
            ask.of(
                &LeSetRandomAddr::new(on_line(address)),
                "LE Set Random Address",
            )?;
        }
        Ok(Self {
            line,
            address,
            packet_len,
            packets,
            known,
            asked: None,
            is_refused: false,
        })
    }

    /// The address of this device.
    pub const fn address(&self) -> DeviceAddr {
        self.address
    }

    /// The event that a host gets first.
    pub const fn started(&self) -> Event<'static> {
        Event::Started {
            packet_len: self.packet_len,
            packets: self.packets,
        }
    }

    /// Keeps each packet from now on, for [`Self::take_packets`].
    pub fn keep_packets(&mut self) {
        self.line.noted.get_or_insert_default();
    }

    /// The packets since the last call, in their order, each with H4's first byte. Call it after
    /// each
    /// [`Self::poll`]: whatever nobody takes piles up.
    pub fn take_packets(&mut self) -> Vec<(Direction, Vec<u8>)> {
        let noted = self.line.noted.as_mut();
        noted.map(std::mem::take).unwrap_or_default()
    }

    /// Carries an action out; `bytes`: the data that the action refers to. Call [`Self::poll`]
    /// afterwards: an event may be ready at once.
    ///
    /// # Errors
    /// The stream broke.
    pub fn command(&mut self, action: Action, bytes: &[u8]) -> Result<(), Error> {
        match requests::request(action, bytes, self.address, self.known) {
            Request::Command(opcode, line) => {
                let is_optional = matches!(
                    action,
                    Action::SetPhy { .. } | Action::SetDataLength { .. } | Action::ReadRssi { .. }
                );
                self.asked = Some(PendingCommand {
                    opcode,
                    until: Instant::now() + if is_optional { OPTION_MAX } else { ANSWER_MAX },
                    is_optional,
                });
                self.line.write(&line)
            }
            Request::Data(line) => self.line.write(&line),
            Request::Unknown => {
                self.is_refused = true;
                Ok(())
            }
        }
    }

    /// Waits until the controller has sent something, or accepts bytes that wait for it; at most
    /// `timeout`.
    ///
    /// # Errors
    /// What poll(2) reports.
    pub fn wait(&self, timeout: Duration) -> Result<(), Error> {
        self.line.wait(timeout)
    }

    /// Reports each event that the controller has sent by calling `tell`; returns whether there was
    /// any. It does not wait.
    ///
    /// # Errors
    /// The controller is gone, or its data are not HCI.
    pub fn poll(&mut self, mut tell: impl FnMut(Event<'_>)) -> Result<bool, Error> {
        let mut told = false;
        if std::mem::take(&mut self.is_refused) {
            tell(Event::Answered {
                status: UNKNOWN_COMMAND,
            });
            told = true;
        }
        self.line.flush()?;
        let is_open = self.line.read()?;
        let Self { line, asked, .. } = self;
        while let Some(packet) = line.cutter.next()? {
            told = true;
            if let Some(noted) = &mut line.noted {
                let (kind, rest) = packet;
                noted.push((Direction::ToHost, [&[kind][..], rest].concat()));
            }
            let answer = events::read(packet, &mut tell)?;
            let Some(answer) = answer.filter(|answer| is_for(asked, answer)) else {
                continue;
            };
            *asked = None;
            tell(Event::Answered {
                status: answer.status,
            });
            if let (ReadRssi::OPCODE, 0, [low, high, rssi, ..]) =
                (answer.opcode, answer.status, answer.rest)
            {
                tell(Event::Rssi {
                    handle: Handle(u16::from_le_bytes([*low, *high])),
                    rssi: Some(rssi.cast_signed()).filter(|rssi| *rssi != NO_RSSI),
                });
            }
        }
        if !is_open {
            return Err(Error::Gone(io::ErrorKind::UnexpectedEof.into()));
        }
        match self.asked.filter(|asked| Instant::now() >= asked.until) {
            Some(asked) if asked.is_optional => {
                self.asked = None;
                tell(Event::Answered {
                    status: UNKNOWN_COMMAND,
                });
                Ok(true)
            }
            Some(_) => Err(Error::Silent),
            None => Ok(told),
        }
    }
}

fn is_for(asked: &Option<PendingCommand>, answer: &Answer<'_>) -> bool {
    asked.is_some_and(|asked| asked.opcode == answer.opcode)
}

impl Line {
    /// Writes one packet.
    fn write(&mut self, bytes: &[u8]) -> Result<(), Error> {
        if let Some(noted) = &mut self.noted {
            noted.push((Direction::ToController, bytes.to_vec()));
        }
        self.outward.extend_from_slice(bytes);
        self.flush()
    }

    /// Writes what waits, as far as the stream takes it.
    fn flush(&mut self) -> Result<(), Error> {
        while !self.outward.is_empty() {
            match self.file.write(&self.outward) {
                Ok(0) => return Err(Error::Gone(io::ErrorKind::WriteZero.into())),
                Ok(len) => drop(self.outward.drain(..len)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::Gone(error)),
            }
        }
        Ok(())
    }

    /// Reads the available bytes, up to a limit; returns whether the stream is still open.
    fn read(&mut self) -> Result<bool, Error> {
        let mut buffer = [0; 4_096];
        for _ in 0..READS_MAX {
            match self.file.read(&mut buffer) {
                Ok(0) => return Ok(false),
                Ok(len) => self.cutter.push(buffer.get(..len).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::Gone(error)),
            }
        }
        Ok(true)
    }

    /// Waits until something has come, `timeout` at most.
    fn wait(&self, timeout: Duration) -> Result<(), Error> {
        let interest = match self.outward.is_empty() {
            true => PollFlags::POLLIN,
            false => PollFlags::POLLIN | PollFlags::POLLOUT,
        };
        let mut fds = [PollFd::new(self.file.as_fd(), interest)];
        // Rounds up to whole milliseconds, so that a caller with less than 1 ms to wait does not
        // spin.
        let timeout = timeout + Duration::from_micros(999);
        let timeout = PollTimeout::try_from(timeout).unwrap_or(PollTimeout::MAX);
        match poll(&mut fds, timeout) {
            Ok(_) | Err(Errno::EINTR) => Ok(()),
            Err(errno) => Err(Error::Gone(errno.into())),
        }
    }
}

/// A controller that is being started: one command after the other, each with its answer.
struct Start<'a> {
    line: &'a mut Line,
    gives_up: &'a dyn Fn() -> bool,
}

impl Start<'_> {
    /// Gives a command, and waits for what it returns; `name`: in an error.
    fn of<C: SyncCmd>(&mut self, asked: &C, name: &'static str) -> Result<C::Return, Error> {
        let Request::Command(opcode, line) = command(asked) else {
            return Err(Error::Silent);
        };
        self.line.write(&line)?;
        let until = Instant::now() + ANSWER_MAX;
        let mut is_open = true;
        loop {
            while let Some(packet) = self.line.cutter.next()? {
                let answer = events::read(packet, &mut |_| {})?;
                let Some(answer) = answer.filter(|answer| answer.opcode == opcode) else {
                    continue;
                };
                if answer.status != 0 {
                    return Err(Error::Refused(name, answer.status));
                }
                return match C::Return::from_hci_bytes(answer.rest) {
                    Ok((returned, _)) => Ok(returned),
                    Err(_) => Err(Error::Malformed(COMMAND_COMPLETE)),
                };
            }
            if !is_open {
                return Err(Error::Gone(io::ErrorKind::UnexpectedEof.into()));
            }
            if (self.gives_up)() {
                return Err(Error::GivenUp);
            }
            if Instant::now() >= until {
                return Err(Error::Silent);
            }
            self.line.wait(PATIENCE)?;
            self.line.flush()?;
            is_open = self.line.read()?;
        }
    }
}

/// The events to be enabled, besides those that are always enabled.
fn events_wanted() -> EventMask {
    EventMask::new()
        .enable_disconnection_complete(true)
        .enable_hardware_error(true)
        .enable_le_meta(true)
}

/// The LE events that the host wants, as a mask.
fn le_events_wanted() -> LeEventMask {
    LeEventMask::new()
        .enable_le_conn_complete(true)
        .enable_le_adv_report(true)
        .enable_le_conn_update_complete(true)
        .enable_le_remote_conn_parameter_request(true)
        .enable_le_data_length_change(true)
        .enable_le_phy_update_complete(true)
}

/// The longest wait for the answer to a command. A controller answers within a second (§4.4), but
/// may be at the other end of a slow network.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// The longest wait for an optional command, without which a connection goes on.
const OPTION_MAX: Duration = Duration::from_secs(1);

/// How often a start asks whether to give up.
const PATIENCE: Duration = Duration::from_millis(50);

/// Pieces that are read in one go, so that a controller that never stops speaking lets others
/// speak.
const READS_MAX: usize = 16;

/// Unknown HCI Command (Vol 1 Part F).
const UNKNOWN_COMMAND: u8 = 0x01;

/// The code of the event Command Complete.
const COMMAND_COMPLETE: u8 = 0x0e;

/// A signal strength that is not available (Core Specification, Vol 4 Part E, §7.5.4).
const NO_RSSI: i8 = 127;

#[cfg(test)]
#[path = "tests/controller.rs"]
mod tests;
