//! Requests to a mote's `/firmware`.

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, SocketAddrV6, TcpStream},
    ops::Range,
    time::Duration,
};

use motet_update::Response;

/// Asks one mote.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client<'t> {
    pub(super) mote: SocketAddrV6,
    token: Option<&'t [u8]>,
    /// How long a connection may take to come about.
    connect_max: Duration,
}

/// An answer: its head, and its sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Answer {
    pub(super) head: Response,
    pub(super) text: String,
}

impl<'t> Client<'t> {
    pub(super) const fn new(mote: SocketAddrV6, token: Option<&'t [u8]>) -> Self {
        Self {
            mote,
            token,
            connect_max: PATIENCE,
        }
    }

    /// The same client, but it gives a mote up that is not there at once.
    pub(super) const fn hasty(self) -> Self {
        Self {
            connect_max: HASTE,
            ..self
        }
    }

    /// Whether the mote answers; one that refuses the connection, or says something else, is there,
    /// too.
    pub(super) fn is_there(&self) -> bool {
        match self.head() {
            Ok(_) => true,
            Err(error) => matches!(
                error.kind(),
                io::ErrorKind::ConnectionRefused | io::ErrorKind::InvalidData
            ),
        }
    }

    /// How much the mote has.
    pub(super) fn head(&self) -> io::Result<Answer> {
        let mut stream = self.connect()?;
        stream.write_all(&self.request("HEAD", ""))?;
        answer(&mut stream, true)
    }

    /// Whether the `len` bytes that the mote has are a whole image, which is verified and pending
    /// then: its first byte is given with the length of the whole.
    pub(super) fn has_whole(&self, len: u64) -> io::Result<bool> {
        let mut stream = self.connect()?;
        stream.write_all(&self.request("GET", "Range: bytes=0-0\r\n"))?;
        let head = answer(&mut stream, false)?.head;
        match (head.status, head.content_range) {
            (206, Some(range)) => Ok(range.total == len),
            // Nothing is stored: the length of before is that of the image which the mote runs.
            (409, _) => Ok(false),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    /// Sends a part of the image; `sent` hears how many bytes have gone.
    pub(super) fn put(
        &self,
        image: &[u8],
        part: Range<usize>,
        mut sent: impl FnMut(usize),
    ) -> io::Result<Answer> {
        let Range { start: first, end } = part;
        let (total, body) = (image.len(), image.get(part).unwrap_or_default());
        let mut fields = format!("Expect: 100-continue\r\nContent-Length: {}\r\n", body.len());
        if body.len() < total {
            let last = end.saturating_sub(1);
            fields.push_str(&format!("Content-Range: bytes {first}-{last}/{total}\r\n"));
        }
        let mut stream = self.connect()?;
        stream.write_all(&self.request("PUT", &fields))?;
        let early = answer(&mut stream, false)?;
        if early.head.status != 100 {
            return Ok(early);
        }
        let mut gone = first;
        for piece in body.chunks(PIECE_LEN) {
            if let Err(error) = stream.write_all(piece) {
                // A mote that refuses says why before it closes.
                return answer(&mut stream, false).map_err(|_| error);
            }
            gone += piece.len();
            sent(gone);
        }
        answer(&mut stream, false)
    }

    /// Lets the mote fetch, up to the byte before `end` if there is one; `while_waiting` is called
    /// now and then until it answers.
    pub(super) fn post(
        &self,
        source: SocketAddrV6,
        end: Option<usize>,
        mut while_waiting: impl FnMut(),
    ) -> io::Result<Answer> {
        let list = format!("http://[{}]:{}/firmware\r\n", source.ip(), source.port());
        let mut fields = format!(
            "Content-Type: text/uri-list\r\nContent-Length: {}\r\n",
            list.len()
        );
        if let Some(last) = end.and_then(|end| end.checked_sub(1)) {
            fields.push_str(&format!("Range: bytes=0-{last}\r\n"));
        }
        let mut stream = self.connect()?;
        // A mote whose power went while it fetches would be waited for in vain.
        #[cfg(unix)]
        {
            use rustix::net::sockopt;
            sockopt::set_tcp_keepidle(&stream, KEEPALIVE_IDLE)?;
            sockopt::set_tcp_keepintvl(&stream, KEEPALIVE_INTERVAL)?;
            sockopt::set_socket_keepalive(&stream, true)?;
        }
        stream.write_all(&self.request("POST", &fields))?;
        stream.write_all(list.as_bytes())?;
        stream.set_read_timeout(Some(GLANCE))?;
        let mut first = [0];
        let mut waited = Duration::ZERO;
        loop {
            match stream.peek(&mut first) {
                Ok(_) => break,
                Err(error) if is_timeout(&error) && waited < FETCH_MAX => {
                    waited += GLANCE;
                    while_waiting();
                }
                Err(error) => return Err(error),
            }
        }
        stream.set_read_timeout(Some(PATIENCE))?;
        answer(&mut stream, false)
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&SocketAddr::V6(self.mote), self.connect_max)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        #[cfg(unix)]
        rustix::net::sockopt::set_socket_send_buffer_size(&stream, SEND_BUFFER_LEN)?;
        Ok(stream)
    }

    fn request(&self, method: &str, fields: &str) -> Vec<u8> {
        let host = self.mote.ip();
        let mut head =
            format!("{method} /firmware HTTP/1.1\r\nHost: [{host}]\r\n{fields}").into_bytes();
        if let Some(token) = self.token {
            head.extend_from_slice(b"Authorization: Bearer ");
            head.extend_from_slice(token);
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        head
    }
}

/// Reads an answer. Its body is a sentence; an answer to `HEAD` has none.
fn answer(stream: &mut TcpStream, is_head: bool) -> io::Result<Answer> {
    let wrong = || {
        io::Error::new(
            io::ErrorKind::InvalidData,
            "the answer is none of /firmware's",
        )
    };
    let mut bytes = Vec::new();
    let (head, body) = loop {
        let mut byte = [0];
        if stream.read(&mut byte)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.push(byte[0]);
        if bytes.len() > HEAD_LEN_MAX {
            return Err(wrong());
        }
        if !bytes.ends_with(b"\n") {
            continue;
        }
        match Response::parse(&bytes) {
            None => {}
            Some(Ok((head, _))) => break (head, head.content_length.unwrap_or(0)),
            Some(Err(_)) => return Err(wrong()),
        }
    };
    let mut text = Vec::new();
    if !is_head && head.status >= 200 {
        let body = body.min(TEXT_LEN_MAX);
        // A sentence that is cut off is better than none.
        let _ = stream.take(body).read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text);
    let text = text.trim().chars().filter(|char| !char.is_control());
    Ok(Answer {
        head,
        text: text.collect(),
    })
}

/// Whether a wait was over before anything came.
pub(super) fn is_timeout(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// How long a mote may say nothing: one that sleeps asks each minute at least.
const PATIENCE: Duration = Duration::from_secs(130);

/// How long a connection may take where its failure costs nothing: a mote that is awake answers
/// within some round trips.
const HASTE: Duration = Duration::from_secs(10);

/// How often a mote that fetches is looked at: each look takes ten packets over the mesh.
const GLANCE: Duration = Duration::from_secs(20);

/// Silence before a mote that fetches is asked whether it is still there, and between questions.
#[cfg(unix)]
const KEEPALIVE_IDLE: Duration = Duration::from_secs(20);
#[cfg(unix)]
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// How long a mote may fetch: a slot of 1 MiB over the slowest link that makes sense.
const FETCH_MAX: Duration = Duration::from_secs(7_200);

/// Bytes that the kernel holds at most, so that what has gone says how far the mote is.
const SEND_BUFFER_LEN: usize = 8 * 1_024;

/// Bytes that are written at a time.
const PIECE_LEN: usize = 512;

/// Bytes of an answer's head, and of its sentence.
const HEAD_LEN_MAX: usize = 4_096;
const TEXT_LEN_MAX: u64 = 1_024;
