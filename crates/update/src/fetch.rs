//! Fetches an image from a web server, or from another device's `/firmware`.
//!
//! What is stored already is not fetched again: the request begins a little before its end, and the
//! bytes that both have must agree. Where they do not, or the server does not serve ranges, or the
//! whole then has the wrong hash, the image is fetched from its begin.

use embedded_io_async::{Read, Write};
use embedded_nal_async::TcpConnect;
use embedded_storage_async::nor_flash::NorFlash;

use crate::answer::{Answer, Status, Text, slot_answer};
use crate::body::{Body, Broken};
use crate::image::{ImageError, Version};
use crate::request::ContentRange;
use crate::response::Response;
use crate::shared::Shared;
use crate::slot::SlotError;
use crate::store::{Fault, store};
use crate::uri::{Source, UriError};

/// A device that fetches nothing: `POST` is answered by 502.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoConnect;

impl TcpConnect for NoConnect {
    type Error = embedded_io_async::ErrorKind;
    type Connection<'a> = Never;

    async fn connect<'a>(
        &'a self,
        _: core::net::SocketAddr,
    ) -> Result<Self::Connection<'a>, Self::Error> {
        Err(embedded_io_async::ErrorKind::Unsupported)
    }
}

/// A connection that nobody has.
#[derive(Clone, Copy, Debug)]
pub enum Never {}

impl embedded_io_async::ErrorType for Never {
    type Error = embedded_io_async::ErrorKind;
}

impl Read for Never {
    async fn read(&mut self, _: &mut [u8]) -> Result<usize, Self::Error> {
        match *self {}
    }
}

impl Write for Never {
    async fn write(&mut self, _: &[u8]) -> Result<usize, Self::Error> {
        match *self {}
    }

    async fn flush(&mut self) -> Result<(), Self::Error> {
        match *self {}
    }
}

/// What came of one request.
enum Fetched {
    Version(Version),
    /// The part that was asked for is stored.
    Part,
    /// Once more, from the begin.
    Again,
}

/// Fetches what the first URI of a list names, up to the byte before `end` if there is one.
/// Verified and pending where it returns a version; otherwise a part is stored.
///
/// # Errors
/// The answer to who asked for it.
pub(crate) async fn fetch<F: NorFlash, S: NorFlash, T: TcpConnect>(
    shared: &Shared<F, S>,
    connect: &T,
    (list, token): (&[u8], Option<&[u8]>),
    end: Option<u32>,
    buffer: &mut [u8],
) -> Result<Option<Version>, Answer> {
    let source = Source::parse(list).map_err(uri_answer)?;
    // The token is for devices like this one, and not for whichever web server has the image.
    let token = token.filter(|_| source.path == "/firmware");
    for resumes in [true, false] {
        let stored = shared.extent().await.stored;
        if resumes && end.is_some_and(|end| end <= stored) {
            return Ok(None);
        }
        let known = if resumes { stored } else { 0 };
        let overlap = known.min(OVERLAP);
        let part = Wanted {
            from: known - overlap,
            overlap,
            end,
        };
        let mut connection = connect.connect(source.server).await.map_err(|_| {
            let server = source.server;
            Answer::new(
                Status::BadGateway,
                format_args!("no connection to {server}"),
            )
        })?;
        let asked = ask(&mut connection, &source, token, part).await;
        asked.map_err(|_| broken())?;
        match take(shared, connection, part, buffer).await? {
            Fetched::Version(version) => return Ok(Some(version)),
            Fetched::Part => return Ok(None),
            Fetched::Again => {}
        }
    }
    Err(Answer::new(
        Status::BadGateway,
        format_args!("the source does not give the whole image"),
    ))
}

/// The part that is asked for.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    from: u32,
    /// So many bytes from there on are known.
    overlap: u32,
    /// One more than the last byte; none: all.
    end: Option<u32>,
}

impl Wanted {
    /// Whether an answer is this part, up to its end or to that of the image.
    fn is(self, range: ContentRange) -> bool {
        let after = range.last.saturating_add(1);
        let is_end = after == range.total || self.end.map(u64::from) == Some(after);
        range.first == u64::from(self.from) && is_end
    }
}

/// Sends the request.
async fn ask<C: Write>(
    connection: &mut C,
    source: &Source<'_>,
    token: Option<&[u8]>,
    Wanted { from, end, .. }: Wanted,
) -> Result<(), C::Error> {
    let Source {
        authority, path, ..
    } = source;
    let head: Text<REQUEST_LEN> = Text::new(format_args!(
        "GET {path} HTTP/1.1\r\nHost: {authority}\r\nConnection: close\r\n"
    ));
    connection.write_all(head.as_bytes()).await?;
    let range: Option<Text<FIELD_LEN>> = match end {
        Some(end) => {
            let last = end.saturating_sub(1);
            Some(Text::new(format_args!("Range: bytes={from}-{last}\r\n")))
        }
        None if from > 0 => Some(Text::new(format_args!("Range: bytes={from}-\r\n"))),
        None => None,
    };
    if let Some(range) = range {
        connection.write_all(range.as_bytes()).await?;
    }
    if let Some(token) = token {
        connection.write_all(b"Authorization: Bearer ").await?;
        connection.write_all(token).await?;
        connection.write_all(b"\r\n").await?;
    }
    connection.write_all(b"\r\n").await?;
    connection.flush().await
}

/// Takes the answer.
async fn take<F: NorFlash, S: NorFlash, C: Read + Write>(
    shared: &Shared<F, S>,
    mut connection: C,
    wanted: Wanted,
    buffer: &mut [u8],
) -> Result<Fetched, Answer> {
    let Wanted { from, overlap, end } = wanted;
    let (response, filled) = answer(&mut connection, buffer).await?;
    let (len, total) = match (response.status, response.content_range) {
        (200, _) => (response.content_length, response.content_length),
        (206, Some(range)) if wanted.is(range) => {
            (Some(range.last + 1 - range.first), Some(range.total))
        }
        // More is stored than the source has: that is another image.
        (416, _) if from > 0 => return Ok(Fetched::Again),
        (status, _) => {
            let text = format_args!("the source answered {status}");
            return Err(Answer::new(Status::BadGateway, text));
        }
    };
    let (Some(len), Some(total)) = (len, total) else {
        let text = format_args!("the source does not say how long the image is");
        return Err(Answer::new(Status::BadGateway, text));
    };
    let (capacity, known) = {
        let slot = shared.change().await;
        (slot.capacity(), slot.total())
    };
    let too_large = slot_answer(SlotError::TooLarge, capacity);
    let total = u32::try_from(total).map_err(|_| too_large)?;
    let mut body = Body::new(connection, buffer, filled, len);
    let is_part = response.status == 206 && from + overlap > 0;
    let mut first = 0;
    if is_part {
        let is_same = total == known && agrees(shared, &mut body, wanted).await?;
        if !is_same {
            return Ok(Fetched::Again);
        }
        first = from + overlap;
        body.skip(overlap as usize);
        if let Some(version) = shared.change().await.verified_version().await {
            return Ok(Fetched::Version(version));
        }
    }
    match store(shared, &mut body, (first, total)).await {
        Ok(Some(version)) => Ok(Fetched::Version(version)),
        Ok(None) if end.is_some() => Ok(Fetched::Part),
        Err(Fault::Slot(SlotError::Image(ImageError::WrongHash))) if is_part => Ok(Fetched::Again),
        Err(Fault::Slot(error)) => Err(slot_answer(error, capacity)),
        Ok(None) | Err(Fault::Body(_)) => Err(broken()),
    }
}

/// Reads the head of the answer; what follows it is then at the buffer's begin.
async fn answer<C: Read>(
    connection: &mut C,
    buffer: &mut [u8],
) -> Result<(Response, usize), Answer> {
    let mut filled = 0;
    loop {
        let room = buffer.get_mut(filled..).unwrap_or_default();
        let read = if room.is_empty() {
            0
        } else {
            let read = connection.read(room).await.map_err(|_| broken())?;
            read.min(room.len())
        };
        if read == 0 {
            return Err(broken());
        }
        filled += read;
        match Response::parse(buffer.get(..filled).unwrap_or_default()) {
            None => {}
            Some(Ok((response, head_len))) => {
                buffer.copy_within(head_len..filled, 0);
                return Ok((response, filled - head_len));
            }
            Some(Err(_)) => {
                let text = format_args!("the source's answer makes no sense here");
                return Err(Answer::new(Status::BadGateway, text));
            }
        }
    }
}

/// Whether the body begins with the bytes that are stored there.
async fn agrees<F: NorFlash, S: NorFlash, C: Read>(
    shared: &Shared<F, S>,
    body: &mut Body<'_, C>,
    Wanted { from, overlap, .. }: Wanted,
) -> Result<bool, Answer> {
    let mut stored = [0; OVERLAP as usize];
    let stored = stored.get_mut(..overlap as usize).unwrap_or_default();
    let read = shared.change().await.read(from, stored).await;
    let read = read.map_err(|error| slot_answer(error, 0))?;
    match body.gather(overlap as usize).await {
        Ok(begin) => Ok(read == stored.len() && begin.get(..read) == Some(&*stored)),
        Err(Broken::Ended | Broken::Failed(_)) => Err(broken()),
    }
}

fn broken() -> Answer {
    Answer::new(
        Status::BadGateway,
        format_args!("the connection to the source ended: what came is stored"),
    )
}

fn uri_answer(error: UriError) -> Answer {
    match error {
        UriError::Empty => Answer::new(
            Status::BadRequest,
            format_args!("the list names no place to fetch from"),
        ),
        UriError::Unusable => Answer::new(
            Status::Refused,
            format_args!("name the source as http://[ADDRESS]:PORT/PATH"),
        ),
        UriError::Forbidden => Answer::new(
            Status::Forbidden,
            format_args!("that address is no other host's"),
        ),
    }
}

/// Bytes that are fetched although they are stored, to know that it is the same image.
const OVERLAP: u32 = 256;

/// Bytes of a request's first lines: a URI of 256 bytes and what is around it.
const REQUEST_LEN: usize = 360;

/// Bytes of a field with a number.
const FIELD_LEN: usize = 32;
