//! Answers, and the writing of them.

use core::fmt::{self, Write as _};

use base64ct::{Base64, Encoding as _};
use embedded_io_async::Write;

use crate::slot::SlotError;

/// A status of HTTP (RFC 9110 §15).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// 200
    Ok,
    /// 201: an image is stored, verified and pending.
    Created,
    /// 202: a part is stored.
    Accepted,
    /// 206
    PartialContent,
    /// 400
    BadRequest,
    /// 401: no token, or not the right one.
    Unauthorized,
    /// 403: no place to fetch from.
    Forbidden,
    /// 404
    NotFound,
    /// 405
    NotAllowed,
    /// 409: the bytes begin elsewhere than those stored end, or there is no whole image to give.
    Conflict,
    /// 411
    LengthRequired,
    /// 413
    TooLarge,
    /// 415
    UnsupportedType,
    /// 416
    RangeNotSatisfiable,
    /// 417
    ExpectationFailed,
    /// 422: an image that is refused.
    Refused,
    /// 431
    HeadTooLarge,
    /// 500: flash has failed.
    Failed,
    /// 501
    NotImplemented,
    /// 502: the place to fetch from has not given what was asked for.
    BadGateway,
    /// 503: another upload is under way.
    Busy,
    /// 505
    WrongVersion,
}

impl Status {
    /// Its number and its words.
    pub const fn line(self) -> (u16, &'static str) {
        match self {
            Self::Ok => (200, "OK"),
            Self::Created => (201, "Created"),
            Self::Accepted => (202, "Accepted"),
            Self::PartialContent => (206, "Partial Content"),
            Self::BadRequest => (400, "Bad Request"),
            Self::Unauthorized => (401, "Unauthorized"),
            Self::Forbidden => (403, "Forbidden"),
            Self::NotFound => (404, "Not Found"),
            Self::NotAllowed => (405, "Method Not Allowed"),
            Self::Conflict => (409, "Conflict"),
            Self::LengthRequired => (411, "Length Required"),
            Self::TooLarge => (413, "Content Too Large"),
            Self::UnsupportedType => (415, "Unsupported Media Type"),
            Self::RangeNotSatisfiable => (416, "Range Not Satisfiable"),
            Self::ExpectationFailed => (417, "Expectation Failed"),
            Self::Refused => (422, "Unprocessable Content"),
            Self::HeadTooLarge => (431, "Request Header Fields Too Large"),
            Self::Failed => (500, "Internal Server Error"),
            Self::NotImplemented => (501, "Not Implemented"),
            Self::BadGateway => (502, "Bad Gateway"),
            Self::Busy => (503, "Service Unavailable"),
            Self::WrongVersion => (505, "HTTP Version Not Supported"),
        }
    }

    /// Fields that the status asks for, each line ended.
    const fn fields(self) -> &'static str {
        match self {
            Self::Unauthorized => "WWW-Authenticate: Bearer\r\n",
            Self::NotAllowed => "Allow: GET, HEAD, PUT, POST\r\n",
            Self::Busy => "Retry-After: 10\r\n",
            _ => "",
        }
    }
}

/// A sentence of an answer, cut at its end where it is too long.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Text<N> {
    pub(crate) fn new(arguments: fmt::Arguments<'_>) -> Self {
        let mut text = Self {
            bytes: [0; N],
            len: 0,
        };
        let _ = text.write_fmt(arguments);
        text
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl<const N: usize> fmt::Write for Text<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.len..).unwrap_or_default();
        let count = text.len().min(room.len());
        for (place, byte) in room.iter_mut().zip(text.bytes()) {
            *place = byte;
        }
        self.len += count;
        if count == text.len() {
            Ok(())
        } else {
            Err(fmt::Error)
        }
    }
}

/// An answer with a sentence for its body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    pub(crate) status: Status,
    pub(crate) text: Text<TEXT_LEN>,
    /// The SHA-256 of what is stored.
    sha256: Option<[u8; 32]>,
}

impl Answer {
    pub(crate) fn new(status: Status, arguments: fmt::Arguments<'_>) -> Self {
        Self {
            status,
            text: Text::new(arguments),
            sha256: None,
        }
    }

    /// The same, with the SHA-256 of what is stored.
    pub(crate) const fn with_digest(mut self, sha256: [u8; 32]) -> Self {
        self.sha256 = Some(sha256);
        self
    }

    /// Writes it; the body is left out for `HEAD`.
    pub(crate) async fn write<W: Write>(&self, to: &mut W, is_head: bool) -> Result<(), W::Error> {
        let text = self.text.as_bytes();
        let ((number, words), fields) = (self.status.line(), self.status.fields());
        let len = text.len() + 1;
        let mut head: Text<HEAD_LEN> = Text::new(format_args!(
            "HTTP/1.1 {number} {words}\r\n{fields}Content-Type: text/plain\r\n\
             Content-Length: {len}\r\n"
        ));
        write_digest(&mut head, self.sha256.as_ref());
        let _ = head.write_str("Connection: close\r\n\r\n");
        to.write_all(head.as_bytes()).await?;
        if !is_head {
            to.write_all(text).await?;
            to.write_all(b"\n").await?;
        }
        to.flush().await
    }
}

impl From<Status> for Answer {
    fn from(status: Status) -> Self {
        let (_, words) = status.line();
        Self::new(status, format_args!("{words}"))
    }
}

/// The answer where a slot refuses.
pub(crate) fn slot_answer(error: SlotError, capacity: u32) -> Answer {
    match error {
        SlotError::TooLarge => Answer::new(
            Status::TooLarge,
            format_args!("the slot takes {capacity} bytes"),
        ),
        SlotError::Misplaced => Answer::new(
            Status::Conflict,
            format_args!("the bytes begin elsewhere than those stored end"),
        ),
        SlotError::Image(error) => Answer::new(Status::Refused, format_args!("{error}")),
        SlotError::Flash => Answer::new(Status::Failed, format_args!("flash has failed")),
    }
}

/// Writes the head of an answer with bytes of an image: those from `first` on, `count` of `len`.
pub(crate) async fn write_image_head<W: Write>(
    to: &mut W,
    status: Status,
    (first, count, len): (u32, u32, u32),
    sha256: Option<&[u8; 32]>,
) -> Result<(), W::Error> {
    let (number, words) = status.line();
    let mut head: Text<HEAD_LEN> = Text::new(format_args!(
        "HTTP/1.1 {number} {words}\r\nContent-Type: application/octet-stream\r\n\
         Content-Length: {count}\r\nAccept-Ranges: bytes\r\n"
    ));
    write_digest(&mut head, sha256);
    if status == Status::PartialContent {
        let last = first + count.saturating_sub(1);
        let _ = head.write_fmt(format_args!(
            "Content-Range: bytes {first}-{last}/{len}\r\n"
        ));
    }
    let _ = head.write_str("Connection: close\r\n\r\n");
    to.write_all(head.as_bytes()).await
}

/// The field with the digest (RFC 9530), where it is known.
fn write_digest<const N: usize>(head: &mut Text<N>, sha256: Option<&[u8; 32]>) {
    if let Some(sha256) = sha256 {
        let mut digest = [0; DIGEST_LEN];
        let digest = Base64::encode(sha256, &mut digest).unwrap_or_default();
        let _ = head.write_fmt(format_args!("Repr-Digest: sha-256=:{digest}:\r\n"));
    }
}

/// Writes that no byte asked for is there (RFC 9110 §15.5.17).
pub(crate) async fn write_unsatisfiable<W: Write>(to: &mut W, len: u32) -> Result<(), W::Error> {
    let head: Text<HEAD_LEN> = Text::new(format_args!(
        "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */{len}\r\n\
         Content-Length: 0\r\nConnection: close\r\n\r\n"
    ));
    to.write_all(head.as_bytes()).await?;
    to.flush().await
}

/// Bytes of an answer's head.
const HEAD_LEN: usize = 320;

/// Bytes of the sentence that explains a status.
const TEXT_LEN: usize = 72;

/// Characters of a SHA-256 in base64.
const DIGEST_LEN: usize = 44;
