//! Connections for futures: the async traits above a simulated node's TCP.
//!
//! Place: an application that is written for async firmware runs on a node of the lab. Its future
//! reads and writes a [`Line`]; the node's application carries bytes between that and TCP whenever
//! its node has something new, and polls the future. Buffers between the two are small, so that
//! TCP's window closes when the future does not read. Left out: names and datagrams.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use embedded_io_async::{ErrorKind, ErrorType, Read, Write};
use embedded_nal_async::TcpConnect;
use motet::node::Node;
use motet::tcp::{self, Buffers, Config, Handle, RecvError, SendError, State};
use motet::time::Instant;

/// One end of a connection, for a future; dropped, it closes.
#[derive(Debug)]
pub(super) struct Line(Rc<RefCell<Pipe>>);

/// What lies between a connection and the future that has it.
#[derive(Debug, Default)]
struct Pipe {
    input: VecDeque<u8>,
    output: VecDeque<u8>,
    is_open: bool,
    /// The peer has sent all it had.
    has_ended: bool,
    has_failed: bool,
    is_dropped: bool,
}

/// The side of a line that the node's application has.
#[derive(Debug)]
pub(super) struct Plug {
    pipe: Rc<RefCell<Pipe>>,
    is_shut: bool,
}

/// Both ends of a line.
pub(super) fn line() -> (Line, Plug) {
    let pipe = Rc::new(RefCell::new(Pipe::default()));
    let plug = Plug {
        pipe: pipe.clone(),
        is_shut: false,
    };
    (Line(pipe), plug)
}

impl Plug {
    /// Carries bytes both ways; returns whether there were any. The line closes once its future
    /// has dropped it and everything was sent.
    pub(super) fn carry(&mut self, handle: Handle, tcp: &mut tcp::Tcp<'_>, now: Instant) -> bool {
        let mut pipe = self.pipe.borrow_mut();
        let Some(connection) = tcp.connection(handle) else {
            pipe.has_failed = true;
            return false;
        };
        pipe.is_open |= !connection.is_connecting() && connection.error().is_none();
        pipe.has_failed |= connection.error().is_some();
        let mut acted = false;
        while pipe.input.len() < PIPE_LEN && !pipe.is_dropped {
            let room = PIPE_LEN - pipe.input.len();
            match tcp.peek(handle) {
                Ok(bytes) => {
                    let count = bytes.len().min(room);
                    pipe.input.extend(&bytes[..count]);
                    tcp.consume(handle, count);
                    acted = true;
                }
                Err(RecvError::Finished) => {
                    acted |= !std::mem::replace(&mut pipe.has_ended, true);
                    break;
                }
                Err(RecvError::Failed(_)) => {
                    pipe.has_failed = true;
                    break;
                }
                Err(_) => break,
            }
        }
        while !pipe.output.is_empty() {
            let (first, _) = pipe.output.as_slices();
            match tcp.send(handle, first, now) {
                Ok(0) => break,
                Ok(count) => {
                    pipe.output.drain(..count);
                    acted = true;
                }
                Err(SendError::Closing) => {
                    pipe.has_failed = true;
                    break;
                }
                Err(_) => break,
            }
        }
        if pipe.is_dropped && pipe.output.is_empty() && !self.is_shut {
            self.is_shut = true;
            tcp.shutdown(handle, now);
            acted = true;
        }
        acted
    }

    /// Whether the line's future has dropped it.
    fn is_dropped(&self) -> bool {
        self.pipe.borrow().is_dropped
    }

    /// The connection is gone.
    fn fail(&self) {
        self.pipe.borrow_mut().has_failed = true;
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.0.borrow_mut().is_dropped = true;
    }
}

impl ErrorType for Line {
    type Error = ErrorKind;
}

impl Read for Line {
    async fn read(&mut self, out: &mut [u8]) -> Result<usize, ErrorKind> {
        poll_fn(|_| {
            let mut pipe = self.0.borrow_mut();
            if !pipe.input.is_empty() {
                let count = out.len().min(pipe.input.len());
                for (place, byte) in out.iter_mut().zip(pipe.input.drain(..count)) {
                    *place = byte;
                }
                return Poll::Ready(Ok(count));
            }
            match (pipe.has_ended, pipe.has_failed) {
                (true, _) => Poll::Ready(Ok(0)),
                (false, true) => Poll::Ready(Err(ErrorKind::ConnectionReset)),
                (false, false) => Poll::Pending,
            }
        })
        .await
    }
}

impl Write for Line {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, ErrorKind> {
        poll_fn(|_| {
            let mut pipe = self.0.borrow_mut();
            if pipe.has_failed {
                return Poll::Ready(Err(ErrorKind::ConnectionReset));
            }
            let count = bytes.len().min(PIPE_LEN - pipe.output.len().min(PIPE_LEN));
            if count == 0 && !bytes.is_empty() {
                return Poll::Pending;
            }
            pipe.output.extend(&bytes[..count]);
            Poll::Ready(Ok(count))
        })
        .await
    }

    async fn flush(&mut self) -> Result<(), ErrorKind> {
        poll_fn(|_| {
            let pipe = self.0.borrow();
            match (pipe.output.is_empty(), pipe.has_failed) {
                (true, _) => Poll::Ready(Ok(())),
                (false, true) => Poll::Ready(Err(ErrorKind::ConnectionReset)),
                (false, false) => Poll::Pending,
            }
        })
        .await
    }
}

/// Where a future asks for connections.
#[derive(Debug, Default)]
pub(super) struct Dial {
    wanted: RefCell<Vec<(Ipv6Addr, u16, Plug)>>,
}

impl TcpConnect for Dial {
    type Error = ErrorKind;
    type Connection<'a> = Line;

    async fn connect(&self, remote: SocketAddr) -> Result<Line, ErrorKind> {
        let IpAddr::V6(addr) = remote.ip() else {
            return Err(ErrorKind::Unsupported);
        };
        let (line, plug) = line();
        self.wanted.borrow_mut().push((addr, remote.port(), plug));
        poll_fn(|_| {
            let pipe = line.0.borrow();
            match (pipe.is_open, pipe.has_failed) {
                (true, _) => Poll::Ready(Ok(())),
                (false, true) => Poll::Ready(Err(ErrorKind::ConnectionRefused)),
                (false, false) => Poll::Pending,
            }
        })
        .await?;
        Ok(line)
    }
}

/// The connections that a node's futures have opened.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: Vec<(Handle, Plug)>,
}

impl Calls {
    /// Opens the connections that were asked for, carries the bytes of those there are, and gives
    /// back the buffers of those that are over. `buffers` is asked for each new one.
    pub(super) fn step<'m>(
        &mut self,
        dial: &Dial,
        node: &mut Node<'m>,
        config: &'m Config,
        free: &mut Vec<Buffers<'m>>,
        mut buffers: impl FnMut(&mut Vec<Buffers<'m>>) -> Option<Buffers<'m>>,
        now: Instant,
    ) -> bool {
        let mut acted = false;
        for (addr, port, plug) in dial.wanted.take() {
            acted = true;
            let Some(buffers) = buffers(free) else {
                plug.fail();
                continue;
            };
            match node.connect((addr, port), buffers, config, now) {
                Ok(handle) => self.open.push((handle, plug)),
                Err(rejected) => {
                    free.push(rejected.buffers);
                    plug.fail();
                }
            }
        }
        let tcp = node.tcp_mut();
        self.open.retain_mut(|(handle, plug)| {
            acted |= plug.carry(*handle, tcp, now);
            match tcp.connection(*handle).map(tcp::Connection::state) {
                None => false,
                Some(State::Closed | State::TimeWait) if plug.is_dropped() => {
                    free.extend(tcp.remove(*handle));
                    acted = true;
                    false
                }
                Some(_) => true,
            }
        });
        acted
    }

    /// The node is switched off.
    pub(super) fn switch_off<'m>(&mut self, tcp: &mut tcp::Tcp<'m>, free: &mut Vec<Buffers<'m>>) {
        for (handle, plug) in self.open.drain(..) {
            plug.fail();
            tcp.abort(handle);
            free.extend(tcp.remove(handle));
        }
    }
}

/// A future and what wakes it.
pub(super) struct Task<T> {
    future: Pin<Box<dyn Future<Output = T>>>,
    woken: Arc<Woken>,
    waker: Waker,
}

impl<T> std::fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Task").finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<T> Task<T> {
    pub(super) fn new(future: impl Future<Output = T> + 'static) -> Self {
        let woken = Arc::new(Woken::default());
        Self {
            future: Box::pin(future),
            waker: woken.clone().into(),
            woken,
        }
    }

    /// Runs the future until it waits for something else than its turn.
    pub(super) fn run(&mut self) -> Option<T> {
        loop {
            let mut cx = Context::from_waker(&self.waker);
            if let Poll::Ready(output) = self.future.as_mut().poll(&mut cx) {
                return Some(output);
            }
            if !self.woken.0.swap(false, Ordering::Relaxed) {
                return None;
            }
        }
    }
}

/// Bytes between a future and TCP, each way.
const PIPE_LEN: usize = 512;
