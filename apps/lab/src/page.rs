//! A server of pages: picoserve on a mote. The same file serves on a device.

use core::cell::Cell;

use embassy_time::Timer;
use embedded_io_async::{ErrorType, Read, Write};
use motet_embassy::{Error, ReadHalf, Stack, TcpSocket, WriteHalf};
use picoserve::io::Socket;
use picoserve::mem::BorrowedBuffer;
use picoserve::routing::get;
use picoserve::time::Duration;
use picoserve::{Router, Server, Timeouts};

/// 18 bytes.
pub(crate) const SHORT: &str = "hello from a mote\n";

/// 4,000 bytes, none of them like its neighbours' neighbours.
pub(crate) const LONG: &str = match core::str::from_utf8(&LONG_BYTES) {
    Ok(text) => text,
    Err(_) => "",
};

const LONG_BYTES: [u8; 4_000] = {
    let mut bytes = [0; 4_000];
    let mut at = 0;
    while at < bytes.len() {
        bytes[at] = b'a' + (at * at % 251 % 26) as u8;
        at += 1;
    }
    bytes
};

/// Serves `/` and `/long` to one peer after the other. `useful`: counts the calls of its sockets
/// that gave something.
pub(crate) async fn serve(stack: Stack, useful: &Cell<u32>) -> Result<(), Error> {
    let app = Router::new()
        .route("/", get(async || SHORT))
        .route("/long", get(async || LONG));
    let limit = Duration::from_secs(20);
    let config = picoserve::Config::new(Timeouts {
        start_read_request: limit,
        persistent_start_read_request: limit,
        read_request: limit,
        write: limit,
    });
    let listener = stack.listen(80)?;
    loop {
        let socket = listener.accept().await?;
        count(useful);
        let mut buffer = [0; 1024];
        let server = Server::custom(&app, EmbassyTimer, &config, &mut buffer);
        // A peer that breaks off is its own business.
        let _ended = server.serve(Served { socket, useful }).await;
    }
}

/// What picoserve calls a runtime: only a name.
struct Motet;

struct EmbassyTimer;

impl picoserve::time::Timer<Motet> for EmbassyTimer {
    async fn delay(&self, span: Duration) {
        Timer::after_millis(span.as_millis()).await;
    }
}

fn count(useful: &Cell<u32>) {
    useful.set(useful.get() + 1);
}

/// A connection, as picoserve wants it.
struct Served<'c> {
    socket: TcpSocket,
    useful: &'c Cell<u32>,
}

/// Its half to read.
struct ServedReader<'s> {
    half: ReadHalf<'s>,
    useful: &'s Cell<u32>,
}

/// Its half to write, which fills the socket's own buffer.
struct ServedWriter<'s> {
    half: WriteHalf<'s>,
    useful: &'s Cell<u32>,
}

impl Socket<Motet> for Served<'_> {
    type Error = Error;
    type ReadHalf<'a>
        = ServedReader<'a>
    where
        Self: 'a;
    type WriteHalf<'a>
        = ServedWriter<'a>
    where
        Self: 'a;

    fn split(&mut self) -> (ServedReader<'_>, ServedWriter<'_>) {
        let useful = self.useful;
        let (reader, writer) = self.socket.split();
        let reader = ServedReader {
            half: reader,
            useful,
        };
        let writer = ServedWriter {
            half: writer,
            useful,
        };
        (reader, writer)
    }

    async fn abort<T: picoserve::time::Timer<Motet>>(
        self,
        _: &Timeouts,
        _: &T,
    ) -> Result<(), picoserve::Error<Error>> {
        self.socket.abort();
        Ok(())
    }

    async fn shutdown<T: picoserve::time::Timer<Motet>>(
        mut self,
        timeouts: &Timeouts,
        timer: &T,
    ) -> Result<(), picoserve::Error<Error>> {
        self.socket.shutdown();
        // Bytes that nobody reads would reset the connection.
        let rest = async {
            let mut sink = [0; 64];
            while let Ok(1..) = self.socket.read(&mut sink).await {}
        };
        let limit = timer.delay(timeouts.read_request);
        embassy_futures::select::select(rest, limit).await;
        Ok(())
    }
}

impl ErrorType for ServedReader<'_> {
    type Error = Error;
}

impl Read for ServedReader<'_> {
    async fn read(&mut self, out: &mut [u8]) -> Result<usize, Error> {
        let read = self.half.read(out).await?;
        count(self.useful);
        Ok(read)
    }
}

impl ErrorType for ServedWriter<'_> {
    type Error = Error;
}

impl Write for ServedWriter<'_> {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let written = self.half.write(bytes).await?;
        count(self.useful);
        Ok(written)
    }

    /// Does nothing: what was written leaves by itself, and picoserve flushes between the parts of
    /// an answer.
    async fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }
}

impl picoserve::io::Write for ServedWriter<'_> {
    async fn write_with<F: FnOnce(picoserve::mem::BorrowedCursor<'_>) -> R, R>(
        &mut self,
        fill: F,
    ) -> Result<R, Error> {
        let mut result = None;
        self.half
            .write_with(|room| {
                let mut buffer = BorrowedBuffer::new(room);
                result = Some(fill(buffer.unfilled()));
                buffer.filled().len()
            })
            .await?;
        count(self.useful);
        // It was called: the stack reports failures before it asks for bytes.
        result.ok_or(Error::NotConnected)
    }
}
