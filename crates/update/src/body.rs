//! Bytes that follow a head, through one buffer of fixed length.

use embedded_io_async::Read;

/// A body as it arrives.
#[derive(Debug)]
pub(crate) struct Body<'b, R> {
    pub(crate) from: R,
    buffer: &'b mut [u8],
    /// Bytes of the body in the buffer.
    filled: usize,
    /// Bytes of the body that are not in the buffer yet.
    left: u64,
}

/// Why a body has no more bytes before its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Broken<E> {
    /// The connection ended.
    Ended,
    /// It failed.
    Failed(E),
}

impl<'b, R: Read> Body<'b, R> {
    /// A body of `len` bytes, of which `filled` are in the buffer.
    pub(crate) fn new(from: R, buffer: &'b mut [u8], filled: usize, len: u64) -> Self {
        let filled = filled.min(usize::try_from(len).unwrap_or(usize::MAX));
        Self {
            from,
            buffer,
            filled,
            left: len - filled as u64,
        }
    }

    /// Whether none of its bytes has come.
    pub(crate) fn is_awaited(&self) -> bool {
        self.filled == 0
    }

    /// Waits until the buffer has `count` bytes, or all that there are, and shows what it has.
    pub(crate) async fn gather(&mut self, count: usize) -> Result<&[u8], Broken<R::Error>> {
        while self.filled < count && self.left > 0 {
            if self.fill().await? == 0 {
                break;
            }
        }
        Ok(self.buffer.get(..self.filled).unwrap_or_default())
    }

    /// The next bytes, at least one; `None` at the end. They are then gone from the body.
    pub(crate) async fn next(&mut self) -> Result<Option<&[u8]>, Broken<R::Error>> {
        if self.filled == 0 && (self.left == 0 || self.fill().await? == 0) {
            return Ok(None);
        }
        let count = core::mem::take(&mut self.filled);
        Ok(self.buffer.get(..count))
    }

    /// The buffer, once the body's bytes are gone from it.
    pub(crate) fn buffer(&mut self) -> &mut [u8] {
        self.filled = 0;
        self.buffer
    }

    /// Drops the first bytes of what the buffer has.
    pub(crate) fn skip(&mut self, count: usize) {
        let count = count.min(self.filled);
        self.buffer.copy_within(count..self.filled, 0);
        self.filled -= count;
    }

    /// Reads once; 0 where the buffer is full.
    async fn fill(&mut self) -> Result<usize, Broken<R::Error>> {
        let room = self.buffer.get_mut(self.filled..).unwrap_or_default();
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let count = room.len().min(left);
        let Some(room) = room.get_mut(..count).filter(|room| !room.is_empty()) else {
            return Ok(0);
        };
        match self.from.read(room).await {
            Ok(0) => Err(Broken::Ended),
            Ok(read) => {
                let read = read.min(count);
                self.filled += read;
                self.left -= read as u64;
                Ok(read)
            }
            Err(error) => Err(Broken::Failed(error)),
        }
    }

    /// Reads and forgets what is left, up to a limit: a connection that closes before would answer
    /// the rest by a reset, and the peer might never see the answer.
    pub(crate) async fn drain(&mut self) {
        let mut rest = DRAINED_MAX;
        while rest > 0 {
            match self.next().await {
                Ok(Some(bytes)) => rest = rest.saturating_sub(bytes.len()),
                _ => return,
            }
        }
    }
}

/// Bytes of a refused body that are read all the same.
const DRAINED_MAX: usize = 32 * 1_024;
