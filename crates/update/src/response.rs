//! The head of an answer, for those who fetch from `/firmware` or write to it.

use base64ct::{Base64, Encoding as _};

use crate::request::{ContentRange, FIELDS_MAX, number};

/// An answer without its body.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Response {
    /// The status: 100 to 199 precede another answer.
    pub status: u16,
    /// Bytes of the body, where the head says so.
    pub content_length: Option<u64>,
    /// Which part of the whole the body is.
    pub content_range: Option<ContentRange>,
    /// The SHA-256 of the whole (RFC 9530 `Repr-Digest`).
    pub sha256: Option<[u8; 32]>,
}

/// An answer that makes no sense: none of HTTP, or one whose body has no length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BadResponse;

impl Response {
    /// Reads a head and says how long it is; `None` while its end is missing.
    pub fn parse(head: &[u8]) -> Option<Result<(Self, usize), BadResponse>> {
        let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
        let mut parsed = httparse::Response::new(&mut fields);
        let len = match parsed.parse(head) {
            Ok(httparse::Status::Complete(len)) => len,
            Ok(httparse::Status::Partial) => return None,
            Err(_) => return Some(Err(BadResponse)),
        };
        let mut response = Self {
            status: parsed.code.unwrap_or(0),
            ..Self::default()
        };
        for field in parsed.headers.iter() {
            let value = field.value.trim_ascii();
            let is = |name| field.name.eq_ignore_ascii_case(name);
            if is("content-length") {
                let value = core::str::from_utf8(value).ok().and_then(number);
                let other = response.content_length;
                if value.is_none() || other.is_some_and(|other| value != Some(other)) {
                    return Some(Err(BadResponse));
                }
                response.content_length = value;
            } else if is("content-range") {
                response.content_range = ContentRange::parse(value);
            } else if is("repr-digest") {
                response.sha256 = sha256(value);
            } else if is("transfer-encoding") {
                return Some(Err(BadResponse));
            }
        }
        Some(Ok((response, len)))
    }
}

/// The SHA-256 among the digests of a field: `sha-256=:BASE64:`.
fn sha256(value: &[u8]) -> Option<[u8; 32]> {
    let value = core::str::from_utf8(value).ok()?;
    let mut digests = value.split(',').map(str::trim);
    let digest = digests.find_map(|digest| digest.strip_prefix("sha-256=:"))?;
    let digest = digest.strip_suffix(':')?;
    let mut bytes = [0; 32];
    let decoded = Base64::decode(digest, &mut bytes).ok()?;
    (decoded.len() == 32).then_some(bytes)
}
