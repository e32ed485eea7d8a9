//! Connections, whole and in halves.

use core::future::poll_fn;
use core::net::SocketAddrV6;
use core::task::{Context, Poll};

use embedded_io_async::{ErrorType, Read, ReadReady, Write, WriteReady};
use motet::tcp::{Connection, Handle};

use crate::clock::now;
use crate::error::{Error, of_recv, of_send};
use crate::stack::Stack;
use crate::stack_state::Awaits;

/// A TCP connection; dropped, it closes in the background.
///
/// One task at a time may wait to read, and one to write.
#[derive(Debug)]
pub struct TcpSocket {
    end: End,
}

/// The half of a [`TcpSocket`] that reads.
#[derive(Debug)]
pub struct ReadHalf<'s> {
    end: &'s End,
}

/// The half of a [`TcpSocket`] that writes.
#[derive(Debug)]
pub struct WriteHalf<'s> {
    end: &'s End,
}

/// A connection's end at this node. Each of its calls borrows the node for that call alone.
#[derive(Debug)]
struct End {
    stack: Stack,
    handle: Handle,
}

impl TcpSocket {
    pub(crate) const fn new(stack: Stack, handle: Handle) -> Self {
        Self {
            end: End { stack, handle },
        }
    }

    /// Waits for the end of the handshake.
    pub(crate) async fn begun(&mut self) -> Result<(), Error> {
        poll_fn(|cx| self.end.poll_begun(cx)).await
    }

    /// A half to read and one to write, for two futures at one time.
    pub fn split(&mut self) -> (ReadHalf<'_>, WriteHalf<'_>) {
        let end = &self.end;
        (ReadHalf { end }, WriteHalf { end })
    }

    /// Says that no more will be written; what was written still arrives, and reading goes on.
    pub fn shutdown(&mut self) {
        let mut state = self.end.stack.state();
        state.node.tcp_mut().shutdown(self.end.handle, now());
        state.kick();
    }

    /// Ends the connection at once with a reset; what was written may be lost.
    pub fn abort(self) {
        self.end.stack.state().abort(self.end.handle);
    }

    /// The peer; `None` when the connection is over.
    pub fn remote(&self) -> Option<SocketAddrV6> {
        let ends = self.end.ask(Connection::endpoints)?;
        Some(SocketAddrV6::new(
            ends.remote,
            ends.remote_port,
            0,
            ends.zone.into(),
        ))
    }

    /// This end; `None` when the connection is over.
    pub fn local(&self) -> Option<SocketAddrV6> {
        let ends = self.end.ask(Connection::endpoints)?;
        Some(SocketAddrV6::new(
            ends.local,
            ends.local_port,
            0,
            ends.zone.into(),
        ))
    }

    /// Waits for room and lets `fill` write into it, without a copy; see
    /// [`Tcp::send_with`](motet::tcp::Tcp::send_with). `fill` is called once, and returns how many
    /// bytes from the front it has written. It must not call this crate.
    ///
    /// # Errors
    /// As writing has.
    pub async fn write_with(
        &mut self,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<usize, Error> {
        self.end.write_with(fill).await
    }
}

impl Drop for TcpSocket {
    fn drop(&mut self) {
        self.end.stack.state().close(self.end.handle, now());
    }
}

impl WriteHalf<'_> {
    /// As [`TcpSocket::write_with`].
    ///
    /// # Errors
    /// As writing has.
    pub async fn write_with(
        &mut self,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<usize, Error> {
        self.end.write_with(fill).await
    }

    /// As [`TcpSocket::shutdown`].
    pub fn shutdown(&mut self) {
        let mut state = self.end.stack.state();
        state.node.tcp_mut().shutdown(self.end.handle, now());
        state.kick();
    }
}

impl End {
    fn ask<T>(&self, question: impl FnOnce(&Connection<'static>) -> T) -> Option<T> {
        let state = self.stack.state();
        state.node.tcp().connection(self.handle).map(question)
    }

    fn poll_begun(&self, cx: &Context<'_>) -> Poll<Result<(), Error>> {
        let Some((error, is_connecting)) = self.ask(|c| (c.error(), c.is_connecting())) else {
            return Poll::Ready(Err(Error::NotConnected));
        };
        match error {
            Some(error) => return Poll::Ready(Err(error.into())),
            None if !is_connecting => return Poll::Ready(Ok(())),
            None => {}
        }
        let mut state = self.stack.state();
        state.await_write(self.handle, Awaits::Room, cx);
        Poll::Pending
    }

    fn poll_read(&self, out: &mut [u8], cx: &Context<'_>) -> Poll<Result<usize, Error>> {
        if out.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let mut state = self.stack.state();
        match state.node.tcp_mut().recv(self.handle, out) {
            Ok(count) => {
                state.kick();
                Poll::Ready(Ok(count))
            }
            Err(error) => match of_recv(error) {
                Some(result) => Poll::Ready(result),
                None => {
                    state.await_read(self.handle, cx);
                    Poll::Pending
                }
            },
        }
    }

    fn poll_write(&self, data: &[u8], cx: &Context<'_>) -> Poll<Result<usize, Error>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let mut state = self.stack.state();
        match state.node.tcp_mut().send(self.handle, data, now()) {
            Ok(count) => {
                state.kick();
                Poll::Ready(Ok(count))
            }
            Err(error) => match of_send(error) {
                Some(error) => Poll::Ready(Err(error)),
                None => {
                    state.await_write(self.handle, Awaits::Room, cx);
                    Poll::Pending
                }
            },
        }
    }

    async fn write_with(&self, fill: impl FnOnce(&mut [u8]) -> usize) -> Result<usize, Error> {
        let mut fill = Some(fill);
        poll_fn(|cx| {
            let mut state = self.stack.state();
            // TCP calls it once, and only where there is room.
            let fill_once = |room: &mut [u8]| fill.take().map_or(0, |fill| fill(room));
            let filled = state
                .node
                .tcp_mut()
                .send_with(self.handle, now(), fill_once);
            match filled {
                Ok(count) => {
                    state.kick();
                    Poll::Ready(Ok(count))
                }
                Err(error) => match of_send(error) {
                    Some(error) => Poll::Ready(Err(error)),
                    None => {
                        state.await_write(self.handle, Awaits::Room, cx);
                        Poll::Pending
                    }
                },
            }
        })
        .await
    }

    /// Whether the peer has acknowledged everything.
    fn poll_flush(&self, cx: &Context<'_>) -> Poll<Result<(), Error>> {
        let Some((error, left)) = self.ask(|c| (c.error(), c.unacknowledged())) else {
            return Poll::Ready(Err(Error::NotConnected));
        };
        match (error, left) {
            (Some(error), _) => return Poll::Ready(Err(error.into())),
            (None, 0) => return Poll::Ready(Ok(())),
            (None, _) => {}
        }
        let mut state = self.stack.state();
        state.await_write(self.handle, Awaits::Acknowledged, cx);
        Poll::Pending
    }

    fn read_ready(&self) -> Result<bool, Error> {
        let ready = self.ask(|c| c.can_recv() > 0 || !c.may_recv());
        ready.ok_or(Error::NotConnected)
    }

    fn write_ready(&self) -> Result<bool, Error> {
        let ready = self.ask(|c| c.can_send() > 0 || !c.may_send());
        ready.ok_or(Error::NotConnected)
    }
}

/// Both traits to read by, of a type that has an `end`.
macro_rules! reads {
    ($socket:ty) => {
        impl Read for $socket {
            async fn read(&mut self, out: &mut [u8]) -> Result<usize, Error> {
                poll_fn(|cx| self.end.poll_read(out, cx)).await
            }
        }

        impl ReadReady for $socket {
            fn read_ready(&mut self) -> Result<bool, Error> {
                self.end.read_ready()
            }
        }
    };
}

/// Both traits to write by, of a type that has an `end`. A flush waits until the peer's TCP has
/// everything.
macro_rules! writes {
    ($socket:ty) => {
        impl Write for $socket {
            async fn write(&mut self, data: &[u8]) -> Result<usize, Error> {
                poll_fn(|cx| self.end.poll_write(data, cx)).await
            }

            async fn flush(&mut self) -> Result<(), Error> {
                poll_fn(|cx| self.end.poll_flush(cx)).await
            }
        }

        impl WriteReady for $socket {
            fn write_ready(&mut self) -> Result<bool, Error> {
                self.end.write_ready()
            }
        }
    };
}

impl ErrorType for TcpSocket {
    type Error = Error;
}
impl ErrorType for ReadHalf<'_> {
    type Error = Error;
}
impl ErrorType for WriteHalf<'_> {
    type Error = Error;
}
reads!(TcpSocket);
reads!(ReadHalf<'_>);
writes!(TcpSocket);
writes!(WriteHalf<'_>);
