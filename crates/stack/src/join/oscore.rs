//! OSCORE: a CoAP message encrypted whole within another one.
//!
//! Left out: every algorithm but AES-CCM-16-64-128 and HKDF with SHA-256, observation, groups; a
//! window for requests that overtake each other: a pledge has one at a time. Source: RFC 8613.

use hkdf::Hkdf;
use minicbor::Encoder;
use minicbor::encode::write::{Cursor, EndOfSlice};
use sha2::Sha256;

use crate::mac::security::ccm::{self, NONCE_LEN};
use crate::mac::security::{KEY_LEN, LinkKey, Software};
use crate::wire::cursor::{Full, Reader, Writer};

/// Bytes of the tag (AES-CCM-16-64-128).
pub(super) const TAG_LEN: usize = 8;

/// The algorithm's number (RFC 9053 §4.2).
const AES_CCM_16_64_128: u8 = 10;

/// The longest identifier of a side (RFC 8613 §3.3: nonce length - 6).
const ID_LEN_MAX: usize = NONCE_LEN - 6;

/// The longest partial IV, bytes (RFC 8613 §6.1).
const PARTIAL_LEN_MAX: usize = 5;

/// The longest identifier of a context: an extended address.
const CONTEXT_LEN_MAX: usize = 8;

/// Identifiers of the two sides, and of their context (§3.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct Ids<'a> {
    pub(super) sender: &'a [u8],
    pub(super) recipient: &'a [u8],
    pub(super) context: Option<&'a [u8]>,
}

/// The keys of one side (§3).
#[derive(Clone)]
pub(super) struct Context {
    sender: LinkKey,
    recipient: LinkKey,
    common_iv: [u8; NONCE_LEN],
}

/// The identifier of a side and the number of its message, of which nonces and what is
/// authenticated are made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number<'a> {
    pub(super) id: &'a [u8],
    pub(super) partial: Partial,
}

/// A partial IV: a sequence number without its leading zeros, a byte at least.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Partial {
    bytes: [u8; PARTIAL_LEN_MAX],
    len: u8,
}

impl Partial {
    pub(super) fn new(sequence: u32) -> Self {
        let len = (4 - sequence.leading_zeros() as u8 / 8).max(1);
        let [a, b, c, d] = sequence.to_be_bytes();
        let bytes = [0, a, b, c, d];
        Self { bytes, len }
    }

    /// Reads 1 to 5 bytes.
    pub(super) fn parse(given: &[u8]) -> Option<Self> {
        let from = PARTIAL_LEN_MAX.checked_sub(given.len())?;
        let mut bytes = [0; PARTIAL_LEN_MAX];
        bytes.get_mut(from..)?.copy_from_slice(given);
        (!given.is_empty()).then_some(Self {
            bytes,
            len: given.len() as u8,
        })
    }

    /// The sequence number, where four bytes hold it.
    pub(super) fn sequence(&self) -> Option<u32> {
        let [0, a, b, c, d] = self.bytes else {
            return None;
        };
        Some(u32::from_be_bytes([a, b, c, d]))
    }

    fn as_bytes(&self) -> &[u8] {
        let from = PARTIAL_LEN_MAX.saturating_sub(usize::from(self.len));
        self.bytes.get(from..).unwrap_or_default()
    }
}

impl Context {
    /// Derives it (§3.2); `None` where an identifier is too long.
    pub(super) fn derive(secret: &[u8], salt: &[u8], ids: Ids<'_>) -> Option<Self> {
        let hkdf = Hkdf::<Sha256>::new(Some(salt), secret);
        let mut sender = [0; KEY_LEN];
        let mut recipient = [0; KEY_LEN];
        let mut common_iv = [0; NONCE_LEN];
        expand(&hkdf, (ids.sender, ids.context), "Key", &mut sender)?;
        expand(&hkdf, (ids.recipient, ids.context), "Key", &mut recipient)?;
        expand(&hkdf, (&[], ids.context), "IV", &mut common_iv)?;
        Some(Self {
            sender: LinkKey::new(sender),
            recipient: LinkKey::new(recipient),
            common_iv,
        })
    }

    /// The nonce of a message (§5.2).
    pub(super) fn nonce(&self, number: Number<'_>) -> Option<[u8; NONCE_LEN]> {
        let mut nonce = [0; NONCE_LEN];
        let [len, middle @ .., a, b, c, d, e] = &mut nonce;
        *len = number.id.len() as u8;
        let from = ID_LEN_MAX.checked_sub(number.id.len())?;
        middle.get_mut(from..)?.copy_from_slice(number.id);
        [*a, *b, *c, *d, *e] = number.partial.bytes;
        for (byte, iv) in nonce.iter_mut().zip(self.common_iv) {
            *byte ^= iv;
        }
        Some(nonce)
    }

    /// Encrypts the message in the first `len` bytes of `text`, and writes the tag behind it;
    /// returns the length of both.
    ///
    /// `request`: the number of the request. An answer to it has the same nonce.
    pub(super) fn seal(&self, request: Number<'_>, text: &mut [u8], len: usize) -> Option<usize> {
        let (aad, aad_len) = authenticated(request)?;
        let sealed = text.get_mut(..len + TAG_LEN)?;
        let (message, tag) = sealed.split_at_mut_checked(len)?;
        let nonce = self.nonce(request)?;
        let cipher = Software::new(&self.sender);
        let made = ccm::seal(&cipher, &nonce, aad.get(..aad_len)?, message, TAG_LEN);
        tag.copy_from_slice(made.get(..TAG_LEN)?);
        Some(len + TAG_LEN)
    }

    /// Decrypts `text`, where its tag is right; returns the length of the message.
    ///
    /// `request`: the number of the request. `number`: the number that the message's nonce is made
    /// of.
    pub(super) fn open(
        &self,
        request: Number<'_>,
        number: Number<'_>,
        text: &mut [u8],
    ) -> Option<usize> {
        let (aad, aad_len) = authenticated(request)?;
        let len = text.len().checked_sub(TAG_LEN)?;
        let (message, tag) = text.split_at_mut_checked(len)?;
        let nonce = self.nonce(number)?;
        let cipher = Software::new(&self.recipient);
        ccm::open(&cipher, &nonce, aad.get(..aad_len)?, message, tag).ok()?;
        Some(len)
    }
}

/// Fills `out` with key material for this side (§3.2.1).
fn expand(
    hkdf: &Hkdf<Sha256>,
    (id, context): (&[u8], Option<&[u8]>),
    what: &str,
    out: &mut [u8],
) -> Option<()> {
    let mut info = [0; 5 + ID_LEN_MAX + CONTEXT_LEN_MAX + 8];
    let mut e = Encoder::new(Cursor::new(&mut info[..]));
    let mut write = || {
        e.array(5)?.bytes(id)?;
        match context {
            Some(context) => e.bytes(context)?,
            None => e.null()?,
        };
        e.u8(AES_CCM_16_64_128)?.str(what)?.u8(out.len() as u8)?;
        Ok::<_, minicbor::encode::Error<EndOfSlice>>(e.writer().position())
    };
    let len = write().ok()?;
    hkdf.expand(info.get(..len)?, out).ok()
}

/// The additional authenticated data of a message, and their length (§5.4).
fn authenticated(request: Number<'_>) -> Option<([u8; AAD_LEN_MAX], usize)> {
    let mut external = [0; EXTERNAL_LEN_MAX];
    let mut aad = [0; AAD_LEN_MAX];
    let mut write = || {
        let mut e = Encoder::new(Cursor::new(&mut external[..]));
        e.array(5)?.u8(1)?.array(1)?.u8(AES_CCM_16_64_128)?;
        e.bytes(request.id)?.bytes(request.partial.as_bytes())?;
        e.bytes(&[])?;
        let external_len = e.writer().position();
        let external = external.get(..external_len).unwrap_or_default();
        let mut e = Encoder::new(Cursor::new(&mut aad[..]));
        e.array(3)?.str("Encrypt0")?.bytes(&[])?.bytes(external)?;
        Ok::<_, minicbor::encode::Error<EndOfSlice>>(e.writer().position())
    };
    let len = write().ok()?;
    Some((aad, len))
}

/// Array, version, algorithms, the two identifiers with their lengths, no options.
const EXTERNAL_LEN_MAX: usize = 1 + 1 + 2 + 1 + ID_LEN_MAX + 1 + PARTIAL_LEN_MAX + 1;
/// Length of the AAD (RFC 8613 §5.4): the array, its name, an empty protected header, and the
/// external AAD with its length.
const AAD_LEN_MAX: usize = 1 + 9 + 1 + 2 + EXTERNAL_LEN_MAX;

/// The value of the OSCORE option (§6.1).
#[derive(Clone, Copy, Debug)]
pub(super) struct Header<'a> {
    pub(super) partial: Option<Partial>,
    pub(super) context: Option<&'a [u8]>,
    pub(super) id: Option<&'a [u8]>,
}

impl<'a> Header<'a> {
    /// Bytes of the longest one that is written.
    pub(super) const LEN_MAX: usize = 1 + PARTIAL_LEN_MAX + 1 + CONTEXT_LEN_MAX + ID_LEN_MAX;

    /// Reads it; `None` where it is damaged.
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut r = Reader::new(bytes);
        let flags = match r.is_empty() {
            true => 0,
            false => r.u8().ok()?,
        };
        let partial = r.slice(usize::from(flags & PARTIAL_LEN)).ok()?;
        let partial = match partial {
            [] => None,
            bytes => Some(Partial::parse(bytes)?),
        };
        let context = match flags & HAS_CONTEXT {
            0 => None,
            _ => {
                let len = r.u8().ok()?;
                Some(r.slice(len.into()).ok()?)
            }
        };
        let id = (flags & HAS_ID != 0).then(|| r.rest());
        let is_whole = id.is_some() || r.is_empty();
        (flags & RESERVED == 0 && is_whole).then_some(Self {
            partial,
            context,
            id,
        })
    }

    /// Writes the value of the option.
    pub(super) fn emit(&self, w: &mut Writer<'_>) -> Result<(), Full> {
        let partial = self.partial.as_ref().map_or(&[][..], Partial::as_bytes);
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        let flags = partial.len() as u8
            | flag(self.context.is_some(), HAS_CONTEXT)
            | flag(self.id.is_some(), HAS_ID);
        if flags == 0 {
            return Ok(());
        }
        w.u8(flags)?;
        w.put(partial)?;
        if let Some(context) = self.context {
            w.u8(context.len() as u8)?;
            w.put(context)?;
        }
        w.put(self.id.unwrap_or_default())
    }
}

const PARTIAL_LEN: u8 = 0x07;
const HAS_ID: u8 = 0x08;
const HAS_CONTEXT: u8 = 0x10;
const RESERVED: u8 = 0xe0;
