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
    let mut mac = Mac::begin(nonce, header.len(), message.len(), tag_len);
    let mut pair = [mac.state, counter(nonce, 0)];
    cipher.encrypt(&mut pair);
    let [state, mask] = pair;
    mac.state = state;
    mac.take_header(cipher, header);
    for (number, part) in (1..).zip(message.chunks_mut(BLOCK_LEN)) {
        mac.add(part);
        let mut pair = [mac.state, counter(nonce, number)];
        cipher.encrypt(&mut pair);
        let [state, stream] = pair;
        mac.state = state;
        mix(part, &stream);
    }
    let mut tag = mac.state;
    mix(&mut tag, &mask);
    tag
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
    let mut mac = Mac::begin(nonce, header.len(), message.len(), tag.len());
    // The last call has the counter block 0, which masks the tag.
    let ahead = |number: u16| counter(nonce, if number > blocks { 0 } else { number });
    let mut pair = [mac.state, ahead(1)];
    cipher.encrypt(&mut pair);
    let [state, mut stream] = pair;
    mac.state = state;
    mac.take_header(cipher, header);
    for (number, part) in (2..).zip(message.chunks_mut(BLOCK_LEN)) {
        mix(part, &stream);
        mac.add(part);
        let mut pair = [mac.state, ahead(number)];
        cipher.encrypt(&mut pair);
        [mac.state, stream] = pair;
    }
    mix(&mut mac.state, &stream);
    let differs = mac
        .state
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
pub(super) fn first_bytes(cipher: &impl Cipher, nonces: [[u8; NONCE_LEN]; 2]) -> [u8; 2] {
    let mut pair = nonces.map(|nonce| counter(&nonce, 1));
    cipher.encrypt(&mut pair);
    pair.map(|[first, ..]| first)
}

/// The chain of blocks that becomes the tag.
struct Mac {
    state: Block,
}

impl Mac {
    /// Begins the CBC-MAC with block B0: flags, nonce and length of the message.
    fn begin(
        nonce: &[u8; NONCE_LEN],
        header_len: usize,
        message_len: usize,
        tag_len: usize,
    ) -> Self {
        let has_header = u8::from(header_len > 0) << 6;
        let coded_len = (tag_len.saturating_sub(2) / 2) as u8;
        let mut state = [0; BLOCK_LEN];
        let [first, rest @ .., high, low] = &mut state;
        *first = has_header | coded_len << 3 | LENGTH_LEN_CODED;
        *rest = *nonce;
        [*high, *low] = (message_len as u16).to_be_bytes();
        Self { state }
    }

    /// Takes the header in, its length in front of it, filled up with zeros to whole blocks.
    fn take_header(&mut self, cipher: &impl Cipher, header: &[u8]) {
        if header.is_empty() {
            return;
        }
        let mut block = [0; BLOCK_LEN];
        let [high, low, begin @ ..] = &mut block;
        [*high, *low] = (header.len() as u16).to_be_bytes();
        let (first, rest) = header.split_at(header.len().min(begin.len()));
        mix(begin, first);
        self.add(&block);
        self.step(cipher);
        for part in rest.chunks(BLOCK_LEN) {
            self.add(part);
            self.step(cipher);
        }
    }

    fn add(&mut self, part: &[u8]) {
        mix(&mut self.state, part);
    }

    /// A step beside which no counter block is needed.
    fn step(&mut self, cipher: &impl Cipher) {
        let mut pair = [self.state, [0; BLOCK_LEN]];
        cipher.encrypt(&mut pair);
        [self.state, _] = pair;
    }
}

/// The counter block of that number.
fn counter(nonce: &[u8; NONCE_LEN], number: u16) -> Block {
    let mut block = [0; BLOCK_LEN];
    let [first, rest @ .., high, low] = &mut block;
    *first = LENGTH_LEN_CODED;
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
