//! The head of a request, as far as `/firmware` asks for it.
//!
//! Sources: RFC 9110 (§14: ranges), RFC 9112 (§6: which length a body has).

use crate::answer::Status;

/// A request without its body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request<'h> {
    /// The method.
    pub method: Method,
    /// The target, from its first slash on.
    pub path: &'h str,
    /// Bytes of the body; `None` without one.
    pub content_length: Option<u64>,
    /// Which part of the whole the body is.
    pub content_range: Option<ContentRange>,
    /// Which part is asked for; `None` too where the range is in a form that may be ignored.
    pub range: Option<Range>,
    /// The value of `Authorization`.
    pub authorization: Option<&'h [u8]>,
    /// Whether the client sends its body only when told to (RFC 9110 §10.1.1).
    pub expects_continue: bool,
    /// Whether the body is a list of URIs (RFC 2483 §5).
    pub is_uri_list: bool,
}

/// What a request wants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// The bytes.
    Get,
    /// How many bytes there are, and their digest.
    Head,
    /// Stores bytes.
    Put,
    /// Lets the device fetch.
    Post,
    /// Anything else.
    Other,
}

/// A part of a whole (RFC 9110 §14.4): from `first` to `last`, both included, of `total` bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ContentRange {
    /// The first byte.
    pub first: u64,
    /// The last byte.
    pub last: u64,
    /// Bytes of the whole.
    pub total: u64,
}

impl ContentRange {
    /// Reads `bytes FIRST-LAST/TOTAL`. `None`: another form, or one without sense.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let text = unit(value, b' ')?;
        let (range, total) = text.split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let range = Self {
            first: number(first)?,
            last: number(last)?,
            total: number(total)?,
        };
        (range.first <= range.last && range.last < range.total).then_some(range)
    }
}

/// What part of the bytes is asked for (RFC 9110 §14.1.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Range {
    /// From the first byte to the last, which is included; to the end without it.
    From(u64, Option<u64>),
    /// As many bytes as this at the end.
    Last(u64),
}

impl Range {
    /// Reads `bytes=…`. `None`: another unit, several ranges, or no sense, which are to be ignored.
    pub fn parse(value: &[u8]) -> Option<Self> {
        let (first, last) = unit(value, b'=')?.split_once('-')?;
        match (first, last) {
            ("", last) => number(last).map(Self::Last),
            (first, "") => Some(Self::From(number(first)?, None)),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(Self::From(first, Some(last)))
            }
        }
    }

    /// One more than the last byte, where the range names it.
    pub(crate) fn end(self) -> Option<u32> {
        match self {
            Self::From(_, last) => u32::try_from(last?.checked_add(1)?).ok(),
            Self::Last(_) => None,
        }
    }

    /// The first byte and how many, of `len`; `None` if none of them is asked for.
    pub fn of(self, len: u32) -> Option<(u32, u32)> {
        let whole = u64::from(len);
        let (first, end) = match self {
            Self::From(first, last) => {
                let end = last.map_or(whole, |last| last.saturating_add(1).min(whole));
                (first, end)
            }
            Self::Last(count) => (whole.saturating_sub(count), whole),
        };
        let count = end.checked_sub(first).filter(|count| *count > 0)?;
        Some((u32::try_from(first).ok()?, u32::try_from(count).ok()?))
    }
}

impl<'h> Request<'h> {
    /// Reads a head and says how long it is; `None` while its end is missing.
    ///
    /// # Errors
    /// The status that answers it: 400, 411 (a body without a length), 415 (a coded body), 417,
    /// 431 (more than 24 fields), 501 (a coding of the transfer), 505.
    pub fn parse(head: &'h [u8]) -> Result<Option<(Self, usize)>, Status> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut parsed = httparse::Request::new(&mut fields);
        let len = match parsed.parse(head) {
            Ok(httparse::Status::Complete(len)) => len,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(httparse::Error::TooManyHeaders) => return Err(Status::HeadTooLarge),
            Err(httparse::Error::Version) => return Err(Status::WrongVersion),
            Err(_) => return Err(Status::BadRequest),
        };
        let mut request = Self {
            method: method(parsed.method.unwrap_or_default()),
            path: path(parsed.path.unwrap_or_default()),
            content_length: None,
            content_range: None,
            range: None,
            authorization: None,
            expects_continue: false,
            is_uri_list: false,
        };
        let mut hosts = 0_u8;
        for field in parsed.headers.iter() {
            hosts = hosts.saturating_add(u8::from(field.name.eq_ignore_ascii_case("host")));
            request.take(field.name, field.value.trim_ascii())?;
        }
        // RFC 9112 §3.2.
        let needs_host = parsed.version == Some(1);
        if hosts > 1 || (needs_host && hosts == 0) {
            return Err(Status::BadRequest);
        }
        Ok(Some((request, len)))
    }

    fn take(&mut self, name: &str, value: &'h [u8]) -> Result<(), Status> {
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if is("content-length") {
            let len = core::str::from_utf8(value).ok().and_then(number);
            let len = len.ok_or(Status::BadRequest)?;
            // Two lengths that differ are how requests are smuggled (RFC 9112 §6.3).
            if self.content_length.is_some_and(|other| other != len) {
                return Err(Status::BadRequest);
            }
            self.content_length = Some(len);
        } else if is("transfer-encoding") {
            return Err(if value.eq_ignore_ascii_case(b"chunked") {
                Status::LengthRequired
            } else {
                Status::NotImplemented
            });
        } else if is("content-encoding") && !value.eq_ignore_ascii_case(b"identity") {
            return Err(Status::UnsupportedType);
        } else if is("content-range") {
            let range = ContentRange::parse(value).ok_or(Status::BadRequest)?;
            if self.content_range.replace(range).is_some() {
                return Err(Status::BadRequest);
            }
        } else if is("range") {
            self.range = Range::parse(value);
        } else if is("authorization") {
            if self.authorization.replace(value).is_some() {
                return Err(Status::BadRequest);
            }
        } else if is("expect") {
            if !value.eq_ignore_ascii_case(b"100-continue") {
                return Err(Status::ExpectationFailed);
            }
            self.expects_continue = true;
        } else if is("content-type") {
            let kind = value.split(|byte| *byte == b';').next();
            let kind = kind.unwrap_or_default().trim_ascii();
            self.is_uri_list = kind.eq_ignore_ascii_case(b"text/uri-list");
        }
        Ok(())
    }

    /// The token of `Authorization: Bearer TOKEN` (RFC 6750 §2.1).
    pub fn bearer(&self) -> Option<&'h [u8]> {
        let (scheme, token) = self.authorization?.split_at_checked(BEARER.len())?;
        let is_bearer = scheme.eq_ignore_ascii_case(BEARER);
        is_bearer.then(|| token.trim_ascii())
    }
}

fn method(name: &str) -> Method {
    match name {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "PUT" => Method::Put,
        "POST" => Method::Post,
        _ => Method::Other,
    }
}

/// The path of a target, which may be a whole URI (RFC 9112 §3.2.2), without its query.
fn path(target: &str) -> &str {
    let after_scheme = target.split_once("://").map(|(_, rest)| rest);
    let path = match after_scheme {
        Some(rest) => rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/"),
        None => target,
    };
    path.split(['?', '#']).next().unwrap_or_default()
}

/// What follows `bytes` and a separator.
fn unit(value: &[u8], separator: u8) -> Option<&str> {
    let (name, rest) = value.split_at_checked(UNIT.len())?;
    let (first, rest) = rest.split_first()?;
    let is_bytes = name.eq_ignore_ascii_case(UNIT) && *first == separator;
    let text = core::str::from_utf8(rest).ok()?;
    is_bytes.then(|| text.trim())
}

/// A number of digits alone: `parse` takes a sign as well.
pub(crate) fn number(text: &str) -> Option<u64> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits.then(|| text.parse().ok())?
}

const UNIT: &[u8] = b"bytes";
const BEARER: &[u8] = b"Bearer ";

/// Fields of a head that are read.
pub(crate) const FIELDS_MAX: usize = 24;
