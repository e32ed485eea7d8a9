//! CCM*, the mode of operation in which IEEE 802.15.4 encrypts and authenticates frames.
//!
//! ```text
//! MAC     B0  header …  | message 1  message 2  …  message n
//! sealing A0            | A1         A2            An
//! opening A1            | A2         A3         …  A0
//! ```
//!
//! One call encrypts two blocks: a cipher in software that keeps two blocks side by side (bit
//! slicing) then costs half. The counter block beside each block of the MAC is in the table
//! above: a message can be sealed only after it was authenticated, and the reverse when it is
//! opened.
//! Place: [`super`] hands over frames. Nothing here knows of frames.
//! Left out: messages of 64 KiB and more, headers of 65,280 bytes and more.
//! Source: IEEE 802.15.4-2006 annex B; for tags that are not empty it is RFC 3610 with L = 2.

/// Length of an AES block, bytes.
pub const BLOCK_LEN: usize = 16;
/// Length of a CCM* nonce, bytes (IEEE 802.15.4-2006 §7.6.3.2).
pub(crate) const NONCE_LEN: usize = 13;

/// A block of the cipher, AES-128: 16 bytes.
pub type Block = [u8; BLOCK_LEN];

/// A block cipher with its key.
pub trait Cipher {
    /// Encrypts two blocks, each by itself.
    fn encrypt(&self, pair: &mut [Block; 2]);
}

/// The message is not what its sender sealed, or was sealed with another key or nonce.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Forged;

/// Encrypts `message` where it is, and returns the tag of it and of `header`; a frame carries
/// the first 4, 8 or 16 bytes of it, `tag_len` of them.
///
/// `tag_len` is part of what is authenticated: a tag cannot be shortened on its way.
pub(crate) fn seal(
    cipher: &impl Cipher,
    nonce: &[u8; NONCE_LEN],
    header: &[u8],
    message: &mut [u8],
    tag_len: usize,
) -> Block {
    let mut mac = Mac::begin(cipher, nonce, (header, message), tag_len);
    mac.step(0);
    let mask = *mac.stream();
    mac.take_header(header, 0);
    for (number, part) in (1..).zip(message.chunks_mut(BLOCK_LEN)) {
        mac.add(part);
        mac.step(number);
        mix(part, mac.stream());
    }
    mac.add(&mask);
    *mac.tag()
}

/// Decrypts `message` where it is, if `tag` is the tag of it and of `header`.
///
/// # Errors
/// [`Forged`]; `message` then holds zeros. The time that this takes depends on lengths alone.
pub(crate) fn open(
    cipher: &impl Cipher,
    nonce: &[u8; NONCE_LEN],
    header: &[u8],
    message: &mut [u8],
    tag: &[u8],
) -> Result<(), Forged> {
    let blocks = message.len().div_ceil(BLOCK_LEN) as u16;
    let mut mac = Mac::begin(cipher, nonce, (header, message), tag.len());
    // The last call has the counter block 0, which masks the tag.
    let ahead = |number: u16| if number > blocks { 0 } else { number };
    mac.step(ahead(1));
    mac.take_header(header, ahead(1));
    for (number, part) in (2..).zip(message.chunks_mut(BLOCK_LEN)) {
        mix(part, mac.stream());
        mac.add(part);
        mac.step(ahead(number));
    }
    let mask = *mac.stream();
    mac.add(&mask);
    let differs = mac
        .tag()
        .iter()
        .zip(tag)
        .fold(0, |differs, (own, other)| differs | (own ^ other));
    let is_genuine = core::hint::black_box(differs) == 0 && matches!(tag.len(), 4 | 8 | 16);
    if !is_genuine {
        message.fill(0);
        return Err(Forged);
    }
    Ok(())
}

/// How often the cipher is called for a message.
pub(super) const fn calls(header_len: usize, message_len: usize) -> u32 {
    let header_blocks = match header_len {
        0 => 0,
        len => (len + 2).div_ceil(BLOCK_LEN),
    };
    (1 + header_blocks + message_len.div_ceil(BLOCK_LEN)) as u32
}

/// The first bytes of the keystreams of two messages.
#[cfg(feature = "cit")]
pub(super) fn first_bytes(cipher: &impl Cipher, nonces: [[u8; NONCE_LEN]; 2]) -> [u8; 2] {
    let mut pair = nonces.map(|nonce| counter(&nonce, 1));
    cipher.encrypt(&mut pair);
    pair.map(|[first, ..]| first)
}

/// The chain of blocks that becomes the tag, and the keystream beside it.
struct Mac<'k, C> {
    cipher: &'k C,
    nonce: &'k [u8; NONCE_LEN],
    /// The last block of the chain, and of the keystream.
    pair: [Block; 2],
}

impl<'k, C: Cipher> Mac<'k, C> {
    /// Begins the CBC-MAC with block B0: flags, nonce and length of the message, which the next
    /// step encrypts.
    fn begin(
        cipher: &'k C,
        nonce: &'k [u8; NONCE_LEN],
        (header, message): (&[u8], &[u8]),
        tag_len: usize,
    ) -> Self {
        let has_header = u8::from(!header.is_empty()) << 6;
        let coded_len = (tag_len.saturating_sub(2) / 2) as u8;
        let flags = has_header | coded_len << 3 | LENGTH_LEN_CODED;
        Self {
            cipher,
            nonce,
            pair: [block(flags, nonce, message.len() as u16), [0; BLOCK_LEN]],
        }
    }

    /// Takes the header in, its length in front of it, filled up with zeros to whole blocks.
    /// `number`: of the keystream's block, which stays as it is.
    fn take_header(&mut self, header: &[u8], number: u16) {
        if header.is_empty() {
            return;
        }
        let mut block = [0; BLOCK_LEN];
        let [high, low, begin @ ..] = &mut block;
        [*high, *low] = (header.len() as u16).to_be_bytes();
        let (first, rest) = header.split_at(header.len().min(begin.len()));
        mix(begin, first);
        self.add(&block);
        self.step(number);
        for part in rest.chunks(BLOCK_LEN) {
            self.add(part);
            self.step(number);
        }
    }

    fn add(&mut self, part: &[u8]) {
        let [tag, _] = &mut self.pair;
        mix(tag, part);
    }

    /// Encrypts the chain's block, and beside it the counter block of that number.
    fn step(&mut self, number: u16) {
        let [_, stream] = &mut self.pair;
        *stream = counter(self.nonce, number);
        self.cipher.encrypt(&mut self.pair);
    }

    const fn tag(&self) -> &Block {
        let [tag, _] = &self.pair;
        tag
    }

    const fn stream(&self) -> &Block {
        let [_, stream] = &self.pair;
        stream
    }
}

/// The counter block of that number.
fn counter(nonce: &[u8; NONCE_LEN], number: u16) -> Block {
    block(LENGTH_LEN_CODED, nonce, number)
}

/// A block that begins with `flags` and the nonce, and ends with a number.
fn block(flags: u8, nonce: &[u8; NONCE_LEN], number: u16) -> Block {
    let mut block = [0; BLOCK_LEN];
    let [first, rest @ .., high, low] = &mut block;
    *first = flags;
    *rest = *nonce;
    [*high, *low] = number.to_be_bytes();
    block
}

/// Adds `other` to `bytes`, bit by bit; the shorter one ends it.
fn mix(bytes: &mut [u8], other: &[u8]) {
    for (byte, other) in bytes.iter_mut().zip(other) {
        *byte ^= other;
    }
}

/// A message's length has two bytes; coded as one less.
const LENGTH_LEN_CODED: u8 = 1;
