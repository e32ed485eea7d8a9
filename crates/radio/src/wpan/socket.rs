//! A packet socket (AF_PACKET) on an interface.

use std::{
    io,
    os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
    time,
};

use nix::sys::socket::bind;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, eth, recv, send, socket_with,
        sockopt::set_socket_send_buffer_size,
    },
};

use super::{fault::Fault, interface::Interface};
use crate::Error;

/// A socket whose datagrams are the frames of one interface.
#[derive(Debug)]
pub(super) struct Socket {
    fd: OwnedFd,
}

impl Socket {
    /// # Errors
    /// This user may not open it, or the interface is gone.
    pub(super) fn open(interface: &Interface) -> Result<Self, Error> {
        Self::bound(interface).map_err(|error| {
            let why = match error.kind() {
                io::ErrorKind::PermissionDenied => Fault::NotPermitted,
                _ => Fault::System(error),
            };
            Error::Interface(interface.name.clone(), why)
        })
    }

    fn bound(interface: &Interface) -> io::Result<Self> {
        // Of this protocol are only frames that the interface has received: those that other
        // sockets send over it are not handed to this one.
        let fd = socket_with(
            AddressFamily::PACKET,
            SocketType::RAW,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            Some(eth::IEEE802154),
        )?;
        // The least there is, two to three frames: what waits in the kernel waits behind the MAC's
        // back.
        set_socket_send_buffer_size(&fd, 0)?;
        bind(fd.as_raw_fd(), &interface.place)?;
        let socket = Self { fd };
        // Up to here it has received the frames of all interfaces.
        let mut buffer = [0; FRAME_MAX];
        for _ in 0..EARLY_MAX {
            if socket.receive(&mut buffer)?.is_none() {
                break;
            }
        }
        Ok(socket)
    }

    /// The length of the next frame; `None`: none is there.
    ///
    /// # Errors
    /// The interface is down or gone.
    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match recv(&self.fd, buffer, RecvFlags::TRUNC) {
            Ok((_, len)) => Ok(Some(len)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether the kernel took the frame; it has no room for more where not.
    ///
    /// # Errors
    /// The interface is down or gone.
    pub(super) fn send(&self, frame: &[u8]) -> io::Result<bool> {
        match send(&self.fd, frame, SendFlags::empty()) {
            Ok(_) => Ok(true),
            // The last one: the interface's queue is full.
            Err(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether at most two frames are still the kernel's.
    pub(super) fn has_room(&self) -> bool {
        let mut fds = [PollFd::new(&self.fd, PollFlags::OUT)];
        let at_once = Timespec::default();
        poll(&mut fds, Some(&at_once)).is_ok() && fds[0].revents().contains(PollFlags::OUT)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Waits for frames or, where `socket` has one to send, for room; for something from `others`; or
/// for `timeout`.
///
/// # Errors
/// What poll(2) reports.
pub(super) fn wait(
    socket: Option<(&Socket, bool)>,
    others: &[BorrowedFd<'_>],
    timeout: Option<time::Duration>,
) -> Result<(), Error> {
    let mut fds: Vec<PollFd<'_>> = others
        .iter()
        .map(|other| PollFd::from_borrowed_fd(*other, PollFlags::IN))
        .collect();
    if let Some((socket, has_to_send)) = socket {
        let interest = match has_to_send {
            false => PollFlags::IN,
            true => PollFlags::IN | PollFlags::OUT,
        };
        fds.push(PollFd::from_borrowed_fd(socket.as_fd(), interest));
    }
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    match poll(&mut fds, timeout.as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(Error::Wait(error.into())),
    }
}

/// Bytes of a frame, with its FCS.
pub(super) const FRAME_MAX: usize = 127;

/// Frames of all interfaces that are thrown away at most.
const EARLY_MAX: usize = 10_000;
