//! As much of CoAP as one request and one answer take.
//!
//! Left out: blocks, observation, retransmissions: messages are non-confirmable.
//! Source: RFC 7252 §3; RFC 8974 §2.1 for longer tokens.

use crate::wire::cursor::{Full, Reader, Truncated, Writer};

/// Codes of a request by POST and of the answer 2.04 Changed (RFC 7252 §12.1).
pub(super) const POST: u8 = 0x02;
pub(super) const CHANGED: u8 = 0x44;

/// Options (RFC 7252 §5.10, RFC 8613 §2).
pub(super) const URI_HOST: u16 = 3;
pub(super) const OSCORE: u16 = 9;
pub(super) const URI_PATH: u16 = 11;
pub(super) const PROXY_SCHEME: u16 = 39;

/// The byte between options and payload (RFC 7252 §3).
const PAYLOAD_MARKER: u8 = 0xff;

/// Version 1, non-confirmable; and the mask of both, and of the token's length.
const NON: u8 = 0x50;
const VERSION_MASK: u8 = 0xc0;
const VERSION: u8 = 0x40;
const TYPE_MASK: u8 = 0x30;
const RESET: u8 = 0x30;
const TOKEN_LEN_MASK: u8 = 0x0f;

/// The longest token whose length stands in the first byte, and the longest one here (RFC 8974
/// §2.1).
pub(super) const PLAIN_TOKEN_LEN_MAX: u8 = EXTENDED - 1;
pub(super) const TOKEN_LEN_MAX: usize = 40;

/// The value of four bits that means: one byte follows, which is added to this value (RFC 7252
/// §3.1; for tokens RFC 8974 §2.1).
const EXTENDED: u8 = 13;

/// A CoAP message with an OSCORE option, parsed (RFC 7252 §3).
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'a> {
    pub(super) code: u8,
    pub(super) id: u16,
    /// The token, up to [`TOKEN_LEN_MAX`] bytes.
    pub(super) token: &'a [u8],
    /// The value of the OSCORE option (RFC 8613 §6.1).
    pub(super) oscore: &'a [u8],
    pub(super) payload: &'a [u8],
}

impl<'a> Message<'a> {
    /// Reads a message with an OSCORE option. `None`: the bytes are no message, it has no such
    /// option, or it has a critical option that is not known here.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut r = Reader::new(bytes);
        let [first, code, high, low] = r.array().ok()?;
        let is_known = first & VERSION_MASK == VERSION && first & TYPE_MASK != RESET;
        if !is_known {
            return None;
        }
        let token_len = match first & TOKEN_LEN_MASK {
            len @ 0..=PLAIN_TOKEN_LEN_MAX => len,
            EXTENDED => r.u8().ok()?.checked_add(EXTENDED)?,
            _ => return None,
        };
        let token = r.slice(usize::from(token_len)).ok()?;
        if token.len() > TOKEN_LEN_MAX {
            return None;
        }
        let mut oscore = None;
        let payload = for_each_option(&mut r, |number, value| {
            match number {
                OSCORE => oscore = Some(value),
                URI_HOST | PROXY_SCHEME => {}
                // Odd numbers are critical (§5.4.1).
                _ => return number.is_multiple_of(2),
            }
            true
        })?;
        Some(Self {
            code,
            id: u16::from_be_bytes([high, low]),
            token,
            oscore: oscore?,
            payload,
        })
    }
}

/// Whether a datagram is a message with an OSCORE option.
pub(crate) fn is_message(datagram: &[u8]) -> bool {
    Message::parse(datagram).is_some()
}

/// Whether a datagram is a request with an OSCORE option.
pub(crate) fn is_request(datagram: &[u8]) -> bool {
    Message::parse(datagram).is_some_and(|message| message.code == POST)
}

/// Writes the beginning of a non-confirmable message: header and token, of [`TOKEN_LEN_MAX`] bytes
/// at most.
pub(super) fn begin(w: &mut Writer<'_>, code: u8, id: u16, token: &[u8]) -> Result<(), Full> {
    let len = u8::try_from(token.len()).map_err(|_| Full)?;
    let (nibble, more) = match len.checked_sub(EXTENDED) {
        None => (len, None),
        more => (EXTENDED, more),
    };
    w.u8(NON | nibble)?;
    w.u8(code)?;
    w.put(&id.to_be_bytes())?;
    more.map_or(Ok(()), |more| w.u8(more))?;
    w.put(token)
}

/// Writes an option; `before` is the number of the one before it. Numbers lie less than 269 apart,
/// and values are shorter than that.
pub(super) fn option(
    w: &mut Writer<'_>,
    before: u16,
    number: u16,
    value: &[u8],
) -> Result<(), Full> {
    let (delta, more_delta) = coded(usize::from(number.saturating_sub(before)))?;
    let (len, more_len) = coded(value.len())?;
    w.u8(delta << 4 | len)?;
    for more in [more_delta, more_len].into_iter().flatten() {
        w.u8(more)?;
    }
    w.put(value)
}

/// Writes the marker between options and payload.
pub(super) fn payload(w: &mut Writer<'_>) -> Result<(), Full> {
    w.u8(PAYLOAD_MARKER)
}

/// Codes an option's number or length: four bits, and the byte that extends them, if any.
fn coded(value: usize) -> Result<(u8, Option<u8>), Full> {
    match u8::try_from(value) {
        Ok(value) if value < EXTENDED => Ok((value, None)),
        _ => {
            let more = value.checked_sub(usize::from(EXTENDED)).ok_or(Full)?;
            Ok((EXTENDED, Some(u8::try_from(more).map_err(|_| Full)?)))
        }
    }
}

/// Reads options until the payload begins, which is returned; `None` where they are damaged or
/// `take` says no to one.
pub(super) fn for_each_option<'a>(
    r: &mut Reader<'a>,
    mut take: impl FnMut(u16, &'a [u8]) -> bool,
) -> Option<&'a [u8]> {
    let mut number = 0_u16;
    while !r.is_empty() {
        let first = r.u8().ok()?;
        if first == PAYLOAD_MARKER {
            // A marker without a payload is a fault (§3).
            return (!r.is_empty()).then(|| r.rest());
        }
        let delta = extended(r, first >> 4).ok()??;
        let len = extended(r, first & 0x0f).ok()??;
        number = number.checked_add(delta)?;
        let value = r.slice(usize::from(len)).ok()?;
        if !take(number, value) {
            return None;
        }
    }
    Some(&[])
}

/// Reads an option delta or length (RFC 7252 §3.1): a value of four bits, or its extension in the
/// bytes behind. `None` for the reserved value 15.
fn extended(r: &mut Reader<'_>, coded: u8) -> Result<Option<u16>, Truncated> {
    Ok(match coded {
        0..EXTENDED => Some(u16::from(coded)),
        EXTENDED => Some(u16::from(r.u8()?) + u16::from(EXTENDED)),
        14 => u16::from_be_bytes(r.array()?).checked_add(269),
        _ => None,
    })
}
