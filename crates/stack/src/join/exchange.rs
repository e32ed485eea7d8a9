//! The two sides: a pledge that asks, and a JRC that answers.
//!
//! Source: RFC 9031 §7 for the identifiers of both sides, §8 for the messages.

use super::coap::{self, CHANGED, Message, OSCORE, POST, PROXY_SCHEME, URI_HOST, URI_PATH};
use super::objects::{Configuration, Request};
use super::oscore::{Context, Header, Ids, Number, Partial};
use crate::mac::security::{KEY_LEN, upper_half};
use crate::wire::cursor::{self, Full, Reader, Writer};

/// Bytes of the longest datagram that is written or understood.
pub const DATAGRAM_LEN_MAX: usize = 128;

/// The OSCORE name of a JRC (RFC 9031 §7.3). A pledge's name is empty, and the context between them
/// is named by the pledge's extended address.
pub(super) const JRC: &[u8] = b"JRC";
pub(super) const PLEDGE: &[u8] = b"";

pub(super) const HOST: &[u8] = b"6tisch.arpa";
const SCHEME: &[u8] = b"coap";
pub(super) const PATH: &[u8] = b"j";

/// The key of one device, which only the device and the JRC know (the PSK of RFC 9031 §3).
///
/// The [`Debug`](core::fmt::Debug) form does not show the key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct JoinKey([u8; KEY_LEN]);

impl JoinKey {
    /// A key of these bytes.
    pub const fn new(bytes: [u8; KEY_LEN]) -> Self {
        Self(bytes)
    }

    /// The key of the device with this extended address, derived from a secret of the network: the
    /// upper half of HMAC-SHA256(secret, "motet join" ‖ address).
    pub fn of_secret(secret: &[u8], eui64: [u8; 8]) -> Self {
        Self(upper_half(secret, &[b"motet join", &eui64]))
    }

    /// The bytes of the key, for the device to store.
    pub const fn as_bytes(&self) -> &[u8; KEY_LEN] {
        &self.0
    }
}

impl core::fmt::Debug for JoinKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("JoinKey(..)")
    }
}

/// Why a datagram is refused, or does not hold the expected answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JoinError {
    /// The datagram is no message of this protocol.
    Malformed,
    /// The datagram answers no request of this pledge.
    NotAsked,
    /// The OSCORE tag does not verify: the peer has another key, or the datagram is forged.
    Forged,
    /// The sequence number is not above the last one: the datagram is a recording.
    Replayed,
    /// The JRC has refused, with this CoAP code.
    Refused(u8),
}

impl core::fmt::Display for JoinError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Malformed => f.write_str("it is no message of CoJP"),
            Self::NotAsked => f.write_str("it answers no request"),
            Self::Forged => f.write_str("its tag is wrong"),
            Self::Replayed => f.write_str("its sequence number was used before"),
            Self::Refused(code) => write!(f, "the registrar says {}.{:02}", code >> 5, code & 31),
        }
    }
}

impl core::error::Error for JoinError {}

/// A device that wants to join.
pub struct Pledge {
    /// `None`: it cannot be derived, because an identifier is too long.
    context: Option<Context>,
    eui64: [u8; 8],
    /// The number of the next request.
    sequence: u32,
    /// The number of the request that may be answered.
    asked: Option<Partial>,
    /// The number of the JRC's last announcement.
    pub(super) heard: Option<u32>,
}

impl core::fmt::Debug for Pledge {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Pledge(next sequence {})", self.sequence)
    }
}

impl Pledge {
    /// `sequence`: the first number that no request with this key had, 0 at first.
    ///
    /// Two requests with one number betray each other: the application stores
    /// [`Self::next_sequence`] before it sends what [`Self::ask`] wrote, and begins with it after a
    /// reboot.
    pub fn new(key: &JoinKey, eui64: [u8; 8], sequence: u32) -> Self {
        Self {
            context: derived(key, eui64, (PLEDGE, JRC)),
            eui64,
            sequence,
            asked: None,
            heard: None,
        }
    }

    /// The context with the JRC.
    pub(super) const fn context(&self) -> Option<&Context> {
        self.context.as_ref()
    }

    /// The number of the next request.
    pub const fn next_sequence(&self) -> u32 {
        self.sequence
    }

    /// Writes a request, a datagram to the JRC's port 5683; returns its length. Answers to
    /// earlier requests are refused from then on.
    ///
    /// `None`: `out` is too short, for which [`DATAGRAM_LEN_MAX`] bytes suffice, or no number is
    /// left.
    pub fn ask(&mut self, request: &Request, out: &mut [u8]) -> Option<usize> {
        let sequence = self.sequence;
        self.sequence = sequence.checked_add(1)?;
        let partial = Partial::new(sequence);
        let header = Header {
            partial: Some(partial),
            context: Some(&self.eui64),
            id: Some(PLEDGE),
        };
        let mut option = [0; Header::LEN_MAX];
        let mut w = Writer::new(&mut option);
        header.emit(&mut w).ok()?;
        let option_len = w.written();
        let mut w = Writer::new(out);
        let begin = |w: &mut Writer<'_>| {
            coap::begin(w, POST, sequence as u16, &sequence.to_be_bytes())?;
            coap::option(w, 0, URI_HOST, HOST)?;
            let option = option.get(..option_len).unwrap_or_default();
            coap::option(w, URI_HOST, OSCORE, option)?;
            coap::option(w, OSCORE, PROXY_SCHEME, SCHEME)?;
            coap::payload(w)
        };
        begin(&mut w).ok()?;
        let at = w.written();
        let mut text = Text::new(POST);
        text.option(URI_PATH, PATH).ok()?;
        text.payload(|room| request.emit(room).ok())?;
        let number = Number {
            id: PLEDGE,
            partial,
        };
        let len = text.seal(self.context.as_ref()?, number, out.get_mut(at..)?)?;
        self.asked = Some(partial);
        Some(at + len)
    }

    /// Accepts the answer in a datagram. An answer is accepted once.
    ///
    /// # Errors
    /// The reason of a refusal. A request may still be answered after [`JoinError::Forged`],
    /// [`JoinError::Malformed`] and [`JoinError::NotAsked`].
    pub fn on_answer(&mut self, datagram: &[u8]) -> Result<Configuration, JoinError> {
        let asked = self.asked.ok_or(JoinError::NotAsked)?;
        let message = Message::parse(datagram).ok_or(JoinError::Malformed)?;
        let sequence = asked.sequence().map(u32::to_be_bytes);
        if sequence.as_ref().map(|token| &token[..]) != Some(message.token) {
            return Err(JoinError::NotAsked);
        }
        let header = Header::parse(message.oscore).ok_or(JoinError::Malformed)?;
        let request = Number {
            id: PLEDGE,
            partial: asked,
        };
        // An answer has the nonce of its request, or a number of its own.
        let number = header
            .partial
            .map_or(request, |partial| Number { id: JRC, partial });
        let mut text = [0; DATAGRAM_LEN_MAX];
        let context = self.context.as_ref().ok_or(JoinError::NotAsked)?;
        let inner = open(context, (request, number), &message, &mut text)?;
        self.asked = None;
        let (code, payload) = inner.ok_or(JoinError::Malformed)?;
        match code {
            CHANGED => Configuration::parse(payload).map_err(|_| JoinError::Malformed),
            code => Err(JoinError::Refused(code)),
        }
    }
}

/// The sender of a request that a JRC has heard; nothing of the request is believed yet.
#[derive(Clone, Copy, Debug)]
pub struct UnverifiedRequest<'a> {
    /// The extended address that the sender claims.
    pub eui64: [u8; 8],
    message: Message<'a>,
    partial: Partial,
    sequence: u32,
}

/// Reads a datagram that a JRC got.
///
/// # Errors
/// [`JoinError::Malformed`]: it is no request of a pledge.
pub fn hear(datagram: &[u8]) -> Result<UnverifiedRequest<'_>, JoinError> {
    let read = || {
        let message = Message::parse(datagram).filter(|message| message.code == POST)?;
        let header = Header::parse(message.oscore)?;
        let partial = header.partial?;
        let eui64 = header.context?.try_into().ok()?;
        (header.id == Some(PLEDGE)).then_some(UnverifiedRequest {
            eui64,
            message,
            partial,
            sequence: partial.sequence()?,
        })
    };
    read().ok_or(JoinError::Malformed)
}

impl UnverifiedRequest<'_> {
    /// The number of the request: the JRC stores it for this pledge before it sends an
    /// answer, for two answers to one request would have one nonce.
    pub const fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Writes the answer with the configuration that `configure` returns for the pledge's request;
    /// returns the answer's length. `configure` may refuse by a code of CoAP, such as 0x83,
    /// forbidden.
    ///
    /// `key`: the join key of the device [`Self::eui64`]. `last`: the number of that device's last
    /// request that was answered.
    ///
    /// # Errors
    /// Why the request is not answered at all.
    pub fn answer(
        &self,
        key: &JoinKey,
        last: Option<u32>,
        configure: impl FnOnce(Request) -> Result<Configuration, u8>,
        out: &mut [u8],
    ) -> Result<usize, JoinError> {
        let context = derived(key, self.eui64, (JRC, PLEDGE)).ok_or(JoinError::Malformed)?;
        let number = Number {
            id: PLEDGE,
            partial: self.partial,
        };
        let mut text = [0; DATAGRAM_LEN_MAX];
        let inner = open(&context, (number, number), &self.message, &mut text)?;
        if last.is_some_and(|last| self.sequence <= last) {
            return Err(JoinError::Replayed);
        }
        let (code, payload) = inner.ok_or(JoinError::Malformed)?;
        let request = Request::parse(payload).ok().filter(|_| code == POST);
        let configured = configure(request.ok_or(JoinError::Malformed)?);
        let mut write = || {
            let mut w = Writer::new(&mut *out);
            coap::begin(&mut w, CHANGED, self.message.id, self.message.token).ok()?;
            coap::option(&mut w, 0, OSCORE, &[]).ok()?;
            coap::payload(&mut w).ok()?;
            let at = w.written();
            let text = match configured {
                Ok(configuration) => {
                    let mut text = Text::new(CHANGED);
                    text.payload(|room| configuration.emit(room).ok())?;
                    text
                }
                Err(code) => Text::new(code),
            };
            Some(at + text.seal(&context, number, out.get_mut(at..)?)?)
        };
        write().ok_or(JoinError::Malformed)
    }
}

/// The context between a pledge and its JRC, for the side that is called `sender`.
pub(super) fn derived(
    key: &JoinKey,
    eui64: [u8; 8],
    (sender, recipient): (&'static [u8], &'static [u8]),
) -> Option<Context> {
    let ids = Ids {
        sender,
        recipient,
        context: Some(&eui64),
    };
    Context::derive(&key.0, &[], ids)
}

/// Decrypts the CoAP message within an OSCORE message (RFC 8613 §5.3), in `text`. Returns its code
/// and payload, or `None` where the plaintext is no CoAP message.
pub(super) fn open<'a>(
    context: &Context,
    (request, number): (Number<'_>, Number<'_>),
    message: &Message<'_>,
    text: &'a mut [u8; DATAGRAM_LEN_MAX],
) -> Result<Option<(u8, &'a [u8])>, JoinError> {
    let len = message.payload.len();
    let sealed = text.get_mut(..len).ok_or(JoinError::Malformed)?;
    cursor::copy(sealed, message.payload);
    let len = context
        .open(request, number, sealed)
        .ok_or(JoinError::Forged)?;
    let mut r = Reader::new(text.get(..len).unwrap_or_default());
    let Ok(code) = r.u8() else {
        return Ok(None);
    };
    // A request names its resource, and an answer may name its format.
    let is_known = |number: u16, value: &[u8]| match number {
        URI_PATH => code == POST && value == PATH,
        _ => number.is_multiple_of(2),
    };
    Ok(coap::for_each_option(&mut r, is_known).map(|payload| (code, payload)))
}

/// A message in clear that is to be encrypted.
pub(super) struct Text {
    bytes: [u8; DATAGRAM_LEN_MAX],
    len: usize,
}

impl Text {
    pub(super) fn new(code: u8) -> Self {
        let mut bytes = [0; DATAGRAM_LEN_MAX];
        if let Some(first) = bytes.first_mut() {
            *first = code;
        }
        Self { bytes, len: 1 }
    }

    fn room(&mut self) -> &mut [u8] {
        self.bytes.get_mut(self.len..).unwrap_or_default()
    }

    /// Writes the only option of the message.
    pub(super) fn option(&mut self, number: u16, value: &[u8]) -> Result<(), Full> {
        let mut w = Writer::new(self.room());
        coap::option(&mut w, 0, number, value)?;
        self.len += w.written();
        Ok(())
    }

    pub(super) fn payload(&mut self, emit: impl FnOnce(&mut [u8]) -> Option<usize>) -> Option<()> {
        let mut w = Writer::new(self.room());
        coap::payload(&mut w).ok()?;
        self.len += w.written();
        self.len += emit(self.room())?;
        Some(())
    }

    /// Encrypts it into `out`; returns the length of that.
    pub(super) fn seal(
        &self,
        context: &Context,
        number: Number<'_>,
        out: &mut [u8],
    ) -> Option<usize> {
        let bytes = self.bytes.get(..self.len)?;
        out.get_mut(..bytes.len())?.copy_from_slice(bytes);
        context.seal(number, out, bytes.len())
    }
}
