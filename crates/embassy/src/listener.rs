//! Listeners.

use motet::tcp::ListenerHandle;

use crate::clock::now;
use crate::connection::TcpSocket;
use crate::error::Error;
use crate::stack::Stack;
use crate::waiters::wait;

/// Takes connections to a port; closed when it is dropped.
#[derive(Debug)]
pub struct TcpListener {
    stack: Stack,
    handle: ListenerHandle,
}

impl TcpListener {
    pub(crate) const fn new(stack: Stack, handle: ListenerHandle) -> Self {
        Self { stack, handle }
    }

    /// Waits for the next peer. Up to four tasks at one listener are woken when a peer is there;
    /// further ones look every 20 ms.
    ///
    /// While a task waits, one place for a connection is kept for the next peer, so that what the
    /// peer sends first is not lost. A peer that connects while none waits, or no place is free,
    /// waits itself for up to a minute, and its first bytes have to come again.
    ///
    /// # Errors
    /// None that a caller can mend.
    pub async fn accept(&self) -> Result<TcpSocket, Error> {
        let _waiting = Waiting::begin(self);
        let handle = wait(self.stack, |state, cx| state.accept(self.handle, now(), cx));
        Ok(TcpSocket::new(self.stack, handle.await?))
    }
}

impl Drop for TcpListener {
    fn drop(&mut self) {
        self.stack.state().unlisten(self.handle);
    }
}

/// A task in `accept`, counted for as long as it is there.
struct Waiting<'l>(&'l TcpListener);

impl<'l> Waiting<'l> {
    fn begin(listener: &'l TcpListener) -> Self {
        let mut state = listener.stack.state();
        state.count_accepting(listener.handle, true, now());
        Self(listener)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Self(listener) = self;
        let mut state = listener.stack.state();
        state.count_accepting(listener.handle, false, now());
    }
}
