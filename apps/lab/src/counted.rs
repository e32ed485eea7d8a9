//! A network that counts the calls of its sockets that gave something.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

use embedded_io_async::{ErrorType, Read, Write};
use embedded_nal_async::TcpConnect;
use motet_embassy::{Error, Stack, TcpSocket};

/// A mote, or one of its connections, and the count of both.
pub(crate) struct Counted<T> {
    of: T,
    useful: Rc<Cell<u32>>,
}

impl Counted<Stack> {
    pub(crate) const fn new(of: Stack, useful: Rc<Cell<u32>>) -> Self {
        Self { of, useful }
    }
}

impl<T> Counted<T> {
    fn count<V>(&self, result: Result<V, Error>) -> Result<V, Error> {
        if result.is_ok() {
            self.useful.set(self.useful.get() + 1);
        }
        result
    }
}

impl TcpConnect for Counted<Stack> {
    type Error = Error;
    type Connection<'a> = Counted<TcpSocket>;

    async fn connect(&self, remote: SocketAddr) -> Result<Counted<TcpSocket>, Error> {
        let of = self.count(self.of.connect(remote).await)?;
        let useful = self.useful.clone();
        Ok(Counted { of, useful })
    }
}

impl ErrorType for Counted<TcpSocket> {
    type Error = Error;
}

impl Read for Counted<TcpSocket> {
    async fn read(&mut self, out: &mut [u8]) -> Result<usize, Error> {
        let result = self.of.read(out).await;
        self.count(result)
    }
}

impl Write for Counted<TcpSocket> {
    async fn write(&mut self, data: &[u8]) -> Result<usize, Error> {
        let result = self.of.write(data).await;
        self.count(result)
    }

    async fn flush(&mut self) -> Result<(), Error> {
        let result = self.of.flush().await;
        self.count(result)
    }
}
