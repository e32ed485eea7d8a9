//! The application's bytes: handed over to be sent, and read.
//!
//! Place: calls of [`Tcp`](super::Tcp) that find the connection and move bytes between the
//! application's memory and the connection's buffers. Left out: what a connection does about that
//! ([`super::commands`]).

use super::Tcp;
use super::types::{Handle, RecvError, SendError};
use crate::time::Instant;

impl<'m> Tcp<'m> {
    /// Copies what fits of `data` to the send buffer; returns how many bytes that is.
    ///
    /// # Errors
    /// [`SendError`]; nothing was taken.
    pub fn send(&mut self, handle: Handle, data: &[u8], now: Instant) -> Result<usize, SendError> {
        let found = self.connection_at(handle, now);
        let connection = found.ok_or(SendError::NoConnection)?;
        connection.check_send()?;
        match connection.send.push(data) {
            0 if !data.is_empty() => Err(SendError::BufferFull),
            taken => {
                connection.on_taken();
                Ok(taken)
            }
        }
    }

    /// Lets `fill` write the next bytes directly into the send buffer: like [`Self::send`], but
    /// without a copy. Returns how many bytes were taken.
    ///
    /// `fill`: gets a contiguous slice of free bytes, and returns how many of them it has written,
    /// from the front; a larger number counts as all. The slice is the whole memory of an empty
    /// buffer, else it ends at the end of the memory at the latest: the next call then gets the
    /// rest, from the beginning. Its contents are undefined. If the buffer is full, `fill` is not
    /// called.
    ///
    /// # Errors
    /// [`SendError`]; nothing was taken.
    pub fn send_with(
        &mut self,
        handle: Handle,
        now: Instant,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) -> Result<usize, SendError> {
        let found = self.connection_at(handle, now);
        let connection = found.ok_or(SendError::NoConnection)?;
        connection.check_send()?;
        let room = connection.send.spare();
        if room.is_empty() {
            return Err(SendError::BufferFull);
        }
        let count = fill(room).min(room.len());
        connection.send.commit(count as u16);
        connection.on_taken();
        Ok(count)
    }

    /// Hands over `data` without copying it, all or nothing; needs a
    /// [`SendBuffer::slices`](super::SendBuffer::slices).
    ///
    /// # Errors
    /// [`SendError`]; nothing was taken.
    pub fn send_slice(
        &mut self,
        handle: Handle,
        data: &'m [u8],
        now: Instant,
    ) -> Result<(), SendError> {
        let found = self.connection_at(handle, now);
        let connection = found.ok_or(SendError::NoConnection)?;
        connection.check_send()?;
        if !connection.send.push_slice(data) {
            return Err(SendError::BufferFull);
        }
        connection.on_taken();
        Ok(())
    }

    /// Copies received bytes to `out`; returns how many, at least one.
    ///
    /// # Errors
    /// [`RecvError`]; what arrived before a failure can still be read.
    pub fn recv(&mut self, handle: Handle, out: &mut [u8]) -> Result<usize, RecvError> {
        let connection = self.connection_mut(handle).ok_or(RecvError::NoConnection)?;
        connection.check_recv()?;
        Ok(connection.read(out))
    }

    /// The received bytes that lie in one piece; [`Self::consume`] frees them.
    ///
    /// # Errors
    /// [`RecvError`].
    pub fn peek(&self, handle: Handle) -> Result<&[u8], RecvError> {
        let connection = self.connection(handle).ok_or(RecvError::NoConnection)?;
        connection.check_recv()?;
        Ok(connection.recv.front())
    }

    /// Frees `count` received bytes that were looked at with [`Self::peek`].
    pub fn consume(&mut self, handle: Handle, count: usize) {
        if let Some(connection) = self.connection_mut(handle) {
            connection.consume(count.min(usize::from(u16::MAX)) as u16);
        }
    }
}
