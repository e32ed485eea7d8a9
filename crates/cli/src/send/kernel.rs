//! The kernel's end of a transfer: a standard blocking socket on a thread of its own.

use std::{
    io::{self, Read, Write},
    net::{Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    thread::{self, JoinHandle},
    time::Instant,
};

use sha2::{Digest as _, Sha256};

use crate::{error::Error, output::describe};

/// A transfer that the kernel's TCP takes part in.
#[derive(Debug)]
pub(super) struct KernelEnd {
    bytes: Arc<AtomicU64>,
    thread: JoinHandle<io::Result<Finished>>,
}

/// What the kernel's end knows when it is done.
#[derive(Debug)]
pub(super) struct Finished {
    /// SHA-256 of the bytes read from the socket; `None` at the sending end.
    pub(super) sha256: Option<[u8; 32]>,
    /// When the last byte was read, or the other end's close was.
    pub(super) at: Instant,
}

impl KernelEnd {
    /// Listens at `address`, and reads one connection to its end.
    ///
    /// Returns the port as well, which the kernel chose.
    pub(super) fn receive(address: Ipv6Addr) -> Result<(Self, u16), Error> {
        let refused = |error: io::Error| {
            Error::failed(format!("cannot listen at {address}: {}", describe(&error)))
        };
        let listener = TcpListener::bind((address, 0)).map_err(refused)?;
        let port = listener.local_addr().map_err(refused)?.port();
        let end = Self::spawn(move |bytes| read_all(&listener, bytes))?;
        Ok((end, port))
    }

    /// Connects to `address`, writes `content`, closes, and waits for the other end's close.
    pub(super) fn send(address: SocketAddrV6, content: Vec<u8>) -> Result<Self, Error> {
        Self::spawn(move |bytes| write_all(address.into(), &content, bytes))
    }

    /// Bytes read from, or written to, the socket so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Whether [`Self::finish`] will return at once.
    pub(super) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for the end.
    pub(super) fn finish(self) -> io::Result<Finished> {
        self.thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("its thread panicked")))
    }

    fn spawn(
        work: impl FnOnce(&AtomicU64) -> io::Result<Finished> + Send + 'static,
    ) -> Result<Self, Error> {
        let bytes = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&bytes);
        let thread = thread::Builder::new()
            .name("kernel end".to_owned())
            .spawn(move || work(&counter))
            .map_err(|error| {
                Error::failed(format!("cannot start a thread: {}", describe(&error)))
            })?;
        Ok(Self { bytes, thread })
    }
}

fn read_all(listener: &TcpListener, bytes: &AtomicU64) -> io::Result<Finished> {
    let (mut stream, _) = listener.accept()?;
    let mut hash = Sha256::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer)? {
            0 => break,
            len => {
                hash.update(buffer.get(..len).unwrap_or_default());
                bytes.fetch_add(u64::try_from(len).unwrap_or(0), Ordering::Relaxed);
            }
        }
    }
    Ok(Finished {
        sha256: Some(hash.finalize().into()),
        at: Instant::now(),
    })
}

fn write_all(address: SocketAddr, content: &[u8], bytes: &AtomicU64) -> io::Result<Finished> {
    let mut stream = TcpStream::connect(address)?;
    for piece in content.chunks(4096) {
        stream.write_all(piece)?;
        bytes.fetch_add(u64::try_from(piece.len()).unwrap_or(0), Ordering::Relaxed);
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    // The mote sends nothing; its close is what we wait for.
    io::copy(&mut stream, &mut io::sink())?;
    Ok(Finished {
        sha256: None,
        at: Instant::now(),
    })
}
