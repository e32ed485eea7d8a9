//! Requests to `/firmware`, as `motet push` makes them.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::ops::Range;
use std::rc::Rc;

use embedded_io_async::{ErrorKind, Read as _, Write as _};
use embedded_nal_async::TcpConnect as _;
use motet::time::Duration;
use motet_update::Response;

use super::clock::Clock;
use crate::apps::lines::{Dial, Line};

/// Makes requests to motes.
#[derive(Clone, Debug)]
pub(super) struct Client {
    pub(super) dial: Rc<Dial>,
    pub(super) clock: Rc<Clock>,
    /// How long a connection may take to come about.
    connect_max: Duration,
}

impl Client {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            dial: Rc::default(),
            clock: Rc::new(clock),
            connect_max: PATIENCE,
        }
    }

    /// The same client, but it gives a mote up that is not there soon.
    pub(super) fn hasty(&self) -> Self {
        Self {
            connect_max: HASTE,
            ..self.clone()
        }
    }

    /// How much the mote has.
    pub(super) async fn head(&self, mote: Ipv6Addr) -> Result<Response, ErrorKind> {
        let mut line = self.connect(mote).await?;
        self.write(&mut line, head("HEAD", mote, "").as_bytes())
            .await?;
        self.answer(&mut line, PATIENCE).await
    }

    /// Sends a part of the image; `sent` hears how many bytes have gone.
    pub(super) async fn put(
        &self,
        mote: Ipv6Addr,
        image: &[u8],
        part: Range<usize>,
        mut sent: impl FnMut(usize),
    ) -> Result<Response, ErrorKind> {
        let Range { start: first, end } = part;
        let (total, body) = (image.len(), &image[first..end]);
        let mut fields = format!("Expect: 100-continue\r\nContent-Length: {}\r\n", body.len());
        if body.len() < total {
            let last = end - 1;
            // Nothing fails that writes to a string.
            let _ = write!(fields, "Content-Range: bytes {first}-{last}/{total}\r\n");
        }
        let mut line = self.connect(mote).await?;
        self.write(&mut line, head("PUT", mote, &fields).as_bytes())
            .await?;
        let early = self.answer(&mut line, PATIENCE).await?;
        if early.status != 100 {
            return Ok(early);
        }
        let mut gone = first;
        for piece in body.chunks(PIECE_LEN) {
            self.write(&mut line, piece).await?;
            gone += piece.len();
            sent(gone);
        }
        self.answer(&mut line, PATIENCE).await
    }

    /// Lets the mote fetch from `source`, up to the byte before `end` if there is one, and waits
    /// until it has.
    pub(super) async fn post(
        &self,
        mote: Ipv6Addr,
        source: Ipv6Addr,
        end: Option<usize>,
    ) -> Result<Response, ErrorKind> {
        let list = format!("http://[{source}]/firmware\r\n");
        let len = list.len();
        let mut fields = format!("Content-Type: text/uri-list\r\nContent-Length: {len}\r\n");
        if let Some(last) = end.and_then(|end| end.checked_sub(1)) {
            let _ = write!(fields, "Range: bytes=0-{last}\r\n");
        }
        let mut line = self.connect(mote).await?;
        let request = head("POST", mote, &fields) + &list;
        self.write(&mut line, request.as_bytes()).await?;
        self.answer(&mut line, FETCH_MAX).await
    }

    async fn connect(&self, mote: Ipv6Addr) -> Result<Line, ErrorKind> {
        let remote = SocketAddr::new(IpAddr::V6(mote), PORT);
        self.within(self.connect_max, self.dial.connect(remote))
            .await
    }

    async fn write(&self, line: &mut Line, bytes: &[u8]) -> Result<(), ErrorKind> {
        self.within(PATIENCE, line.write_all(bytes)).await
    }

    /// Reads the head of an answer; the sentence behind it says nothing that the lab needs.
    async fn answer(&self, line: &mut Line, limit: Duration) -> Result<Response, ErrorKind> {
        let mut bytes = Vec::new();
        loop {
            let mut byte = [0];
            let read = self.within(limit, line.read(&mut byte)).await?;
            if read == 0 || bytes.len() > HEAD_LEN_MAX {
                return Err(ErrorKind::ConnectionAborted);
            }
            bytes.push(byte[0]);
            match Response::parse(&bytes) {
                None => {}
                Some(Ok((response, _))) => return Ok(response),
                Some(Err(_)) => return Err(ErrorKind::InvalidData),
            }
        }
    }

    async fn within<T>(
        &self,
        limit: Duration,
        future: impl Future<Output = Result<T, ErrorKind>>,
    ) -> Result<T, ErrorKind> {
        let output = self.clock.within(limit, future).await;
        output.unwrap_or(Err(ErrorKind::TimedOut))
    }
}

fn head(method: &str, mote: Ipv6Addr, fields: &str) -> String {
    format!("{method} /firmware HTTP/1.1\r\nHost: [{mote}]\r\n{fields}\r\n")
}

/// Where `/firmware` is.
const PORT: u16 = 80;

/// How long a mote may say nothing, and how long it may fetch: as with `motet push`.
const PATIENCE: Duration = Duration::from_secs(130);
const FETCH_MAX: Duration = Duration::from_secs(7_200);

/// How long a connection may take where its failure costs nothing: as with `motet push`.
const HASTE: Duration = Duration::from_secs(10);

/// Bytes that are written at a time.
const PIECE_LEN: usize = 512;

/// Bytes of an answer's head.
const HEAD_LEN_MAX: usize = 4_096;
