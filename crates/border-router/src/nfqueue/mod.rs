//! A netfilter packet queue: the kernel holds packets until this program says that they may go.
//!
//! Place in the data flow: a rule of the packet filter sends packets into a numbered queue. The
//! kernel reports the head of each, and [`Queue::accept`] releases it, at once or later, or
//! [`Queue::discard`] drops it. No packet is altered.
//!
//! What happens when this program cannot keep up or is gone: the queue fails open, so packets for
//! which the kernel has no room pass without being reported, and [`QueueCounters`] counts them. A
//! rule with the flag `bypass` lets packets pass while no program holds the queue. The kernel drops
//! what it still holds when the queue's socket closes: [`Queue::close`] lets it go first.
//!
//! A packet that offload (GRO, GSO) has merged arrives as the single segments that the link will
//! carry: the flag `NFQA_CFG_F_GSO` is left unset, so the kernel cuts such a packet up in front of
//! the queue, and each segment gets its own verdict.
//!
//! The messages are written and read here, over nix's sockets, because the reading must not cost
//! memory: one buffer serves all packets, and verdicts gather in another. The crate `nfq` keeps a
//! receive buffer for each packet that is held and hides its descriptor from poll(2); the typed
//! messages of `netlink-packet-*`, which suit the few requests of interfaces, copy each attribute
//! of each packet into memory of its own, and know no packet queue.
//!
//! Sources: the kernel's `net/netfilter/nfnetlink_queue.c`; netlink(7).

mod wire;

use std::{
    fmt, io,
    os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
};

use nix::{
    errno::Errno,
    sys::socket::{
        AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, bind, recv, send,
        setsockopt, socket, sockopt,
    },
};

use wire::{Command, Message, Request};

pub use wire::{COPY_LEN, COPY_LEN_WHOLE, Packet};

/// A queue that is ours. Dropping it drops the packets that it still holds: [`Self::close`] does
/// not.
#[derive(Debug)]
pub struct Queue {
    socket: OwnedFd,
    number: u16,
    /// One report of the kernel.
    report: Vec<u8>,
    /// Verdicts that the kernel has not been sent yet.
    verdicts: Vec<u8>,
    counters: QueueCounters,
    /// The latest packet that the kernel reported.
    last: u32,
}

/// The counters of a queue.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct QueueCounters {
    /// Packets that the kernel has reported.
    pub packets: u64,
    /// Packets on which this process has given a verdict.
    pub verdicts: u64,
    /// Times that the kernel had no room for a report: it let those packets pass unseen.
    pub overruns: u64,
    /// Verdicts on packets that the kernel no longer held, because an interface went down.
    pub gone: u64,
    /// Messages that are none of a packet queue's.
    pub strange: u64,
}

impl Queue {
    /// Takes queue `number`, which then holds at most `len` packets.
    ///
    /// # Errors
    /// See [`QueueError`].
    pub fn open(number: u16, len: u32) -> Result<Self, QueueError> {
        let socket = socket(
            AddressFamily::Netlink,
            SockType::Raw,
            SockFlag::SOCK_CLOEXEC,
            SockProtocol::NetlinkNetFilter,
        )
        .map_err(QueueError::of)?;
        bind(socket.as_raw_fd(), &NetlinkAddr::new(0, 0)).map_err(QueueError::of)?;
        // Room for bursts. The first call needs CAP_NET_ADMIN outside user namespaces; the second
        // gives as much as net.core.rmem_max allows. With less the queue fails open earlier.
        if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER).is_err() {
            let _ = setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER);
        }
        let queue = Self {
            socket,
            number,
            report: vec![0; REPORT_LEN_MAX],
            verdicts: Vec::with_capacity(VERDICTS_LEN_MAX),
            counters: QueueCounters::default(),
            last: 0,
        };
        // Both a missing capability and a queue of another process are EPERM: the first request
        // fails for the former alone.
        queue.request(Request::config(0).command(Command::Probe))?;
        match queue.request(Request::config(number).command(Command::Bind)) {
            Err(QueueError::NotPermitted) => return Err(QueueError::Taken { number }),
            bound => bound?,
        }
        let settings = Request::config(number)
            .copy_len(COPY_LEN)
            .queue_len(len)
            .fail_open();
        queue.request(settings)?;
        Ok(queue)
    }

    /// Asks for whole packets from now on.
    ///
    /// # Errors
    /// See [`QueueError`].
    pub fn copy_whole(&self) -> Result<(), QueueError> {
        self.request(Request::config(self.number).copy_len(COPY_LEN_WHOLE))
    }

    /// Takes the next report, if there is one: the packet stays with the kernel until
    /// [`Self::accept`].
    ///
    /// # Errors
    /// What recv(2) reports, but for an overrun, which is counted.
    pub fn recv(&mut self) -> io::Result<Option<Packet<'_>>> {
        let len = loop {
            match recv(
                self.socket.as_raw_fd(),
                &mut self.report,
                MsgFlags::MSG_DONTWAIT,
            ) {
                Err(Errno::EAGAIN) => return Ok(None),
                Err(Errno::EINTR) => continue,
                Err(Errno::ENOBUFS) => {
                    self.counters.overruns += 1;
                    continue;
                }
                Err(errno) => return Err(errno.into()),
                Ok(len) if self.is_packet(len) => break len,
                Ok(_) => continue,
            }
        };
        // The kernel sends one message at a time.
        let report = self.report.get(..len).unwrap_or_default();
        Ok(wire::messages(report).find_map(|message| match message {
            Message::Packet(packet) => Some(packet),
            Message::Answer(_) | Message::Other => None,
        }))
    }

    /// Whether the first `len` bytes of the buffer report a packet; counts what they are.
    fn is_packet(&mut self, len: usize) -> bool {
        let report = self.report.get(..len).unwrap_or_default();
        match wire::messages(report).next() {
            Some(Message::Packet(packet)) => {
                self.last = packet.id;
                self.counters.packets += 1;
                true
            }
            Some(Message::Answer(errno)) if errno == Errno::ENOENT as i32 => {
                self.counters.gone += 1;
                false
            }
            _ => {
                self.counters.strange += 1;
                false
            }
        }
    }

    /// Lets packet `id` go on, with the next [`Self::flush`] at the latest.
    ///
    /// # Errors
    /// As [`Self::flush`].
    pub fn accept(&mut self, id: u32) -> io::Result<()> {
        wire::push_accept(&mut self.verdicts, self.number, id);
        self.counters.verdicts += 1;
        if self.verdicts.len() >= VERDICTS_LEN_MAX {
            self.flush()?;
        }
        Ok(())
    }

    /// Ends packet `id`, with the next [`Self::flush`] at the latest.
    ///
    /// # Errors
    /// As [`Self::flush`].
    pub fn discard(&mut self, id: u32) -> io::Result<()> {
        wire::push_drop(&mut self.verdicts, self.number, id);
        self.counters.verdicts += 1;
        if self.verdicts.len() >= VERDICTS_LEN_MAX {
            self.flush()?;
        }
        Ok(())
    }

    /// Sends the kernel the verdicts given so far.
    ///
    /// # Errors
    /// What send(2) reports.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.verdicts.is_empty() {
            return Ok(());
        }
        let sent = self.send(&self.verdicts);
        self.verdicts.clear();
        sent
    }

    /// Lets all go that the kernel holds, in the order in which it came, and gives the queue up.
    ///
    /// Take the rules that fill the queue away first: a packet that meets a rule in the moment
    /// between the two would be lost.
    ///
    /// # Errors
    /// What send(2) reports.
    pub fn close(mut self) -> io::Result<()> {
        self.flush()?;
        let mut bytes = Vec::new();
        // Far enough ahead for packets that were not reported yet.
        let up_to = self.last.wrapping_add(u32::MAX / 4);
        wire::push_accept_up_to(&mut bytes, self.number, up_to);
        let unbind = Request::config(self.number).command(Command::Unbind);
        bytes.extend(unbind.into_bytes());
        // In one call: no packet comes in between.
        self.send(&bytes)
    }

    /// The counters so far.
    pub fn counters(&self) -> QueueCounters {
        self.counters
    }

    /// The queue's number, as the rule `NFQUEUE --queue-num` has it.
    pub fn number(&self) -> u16 {
        self.number
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        loop {
            match send(self.socket.as_raw_fd(), bytes, MsgFlags::empty()) {
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
                Ok(_) => return Ok(()),
            }
        }
    }

    /// Sends a request and waits for its answer. The kernel queues its answer before send(2)
    /// returns. Packet reports may be ahead of the answer; their packets are accepted.
    fn request(&self, request: Request) -> Result<(), QueueError> {
        self.send(&request.into_bytes()).map_err(QueueError::Io)?;
        let mut answer = vec![0; REPORT_LEN_MAX];
        loop {
            let len = match recv(self.socket.as_raw_fd(), &mut answer, MsgFlags::empty()) {
                Err(Errno::EINTR) => continue,
                other => other.map_err(QueueError::of)?,
            };
            let answer = answer.get(..len).unwrap_or_default();
            match wire::messages(answer).next() {
                Some(Message::Answer(0)) => return Ok(()),
                Some(Message::Answer(errno)) => {
                    return Err(QueueError::of(Errno::from_raw(errno)));
                }
                Some(Message::Packet(packet)) => {
                    let mut verdict = Vec::new();
                    wire::push_accept(&mut verdict, self.number, packet.id);
                    self.send(&verdict).map_err(QueueError::Io)?;
                }
                Some(Message::Other) | None => {}
            }
        }
    }
}

/// The descriptor, for a poll of several: readable when there is a report.
impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Why a queue cannot be had. `Display` is one sentence for the user.
#[derive(Debug)]
pub enum QueueError {
    /// Another process holds the queue.
    Taken {
        /// The queue's number, as the rule `NFQUEUE --queue-num` has it.
        number: u16,
    },
    /// This process lacks `CAP_NET_ADMIN`.
    NotPermitted,
    /// This process lacks `CAP_NET_RAW`, and its policy sends packets again.
    MayNotSend,
    /// The kernel has no packet queues.
    NotInKernel,
    /// The error of a system call.
    Io(io::Error),
}

impl QueueError {
    fn of(errno: Errno) -> Self {
        match errno {
            Errno::EPERM | Errno::EACCES => Self::NotPermitted,
            // nfnetlink answers EINVAL if the kernel lacks the subsystem.
            Errno::EPROTONOSUPPORT | Errno::EINVAL | Errno::EOPNOTSUPP => Self::NotInKernel,
            other => Self::Io(other.into()),
        }
    }
}

impl fmt::Display for QueueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken { number } => write!(
                f,
                "packet queue {number} belongs to another process: end it, or choose another number"
            ),
            Self::NotPermitted => f.write_str(
                "this user may not hold packets: run as root, or with the capability CAP_NET_ADMIN",
            ),
            Self::MayNotSend => f.write_str(
                "this user may not send packets again: run as root, or with the capabilities CAP_NET_ADMIN and CAP_NET_RAW",
            ),
            Self::NotInKernel => {
                f.write_str("this kernel has no packet queues: load the module nfnetlink_queue")
            }
            Self::Io(error) => write!(f, "cannot take the packet queue ({error})"),
        }
    }
}

impl std::error::Error for QueueError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Taken { .. } | Self::NotPermitted | Self::MayNotSend | Self::NotInKernel => None,
        }
    }
}

/// Room for reports in the kernel, which doubles it. It accounts a report by its buffer: by
/// `alloc_skb` that of [`COPY_LEN`] bytes takes 1,280, and that of a whole packet of 1,280 bytes
/// takes 2,304. So there is room for some 6,500 packets, or 3,600 where they are copied whole.
const RECEIVE_BUFFER: usize = 4 << 20;

/// A report has at most [`COPY_LEN_WHOLE`] bytes of the packet and some 200 bytes about it.
const REPORT_LEN_MAX: usize = 4_096;

/// Verdicts go in batches of at most 256, 32 bytes each.
const VERDICTS_LEN_MAX: usize = 256 * 32;
