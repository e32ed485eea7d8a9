//! Mesh Link Establishment: the messages between neighbours, in UDP datagrams of port 19788.
//!
//! ```text
//!   0      1       counter 4, LE  sequence 4, BE  key index 1 | command 1  TLVs | MIC 4
//!   suite  control \_________ authenticated _____________/     \_ encrypted __/
//! ```
//!
//! The nonce has the extended address of the sender, which its link-local address is made of. Both
//! IPv6 addresses are authenticated before the header. Place: [`super::Child`] and analysers of
//! captures open and seal messages; whether a counter is new is their business. Left out: suite
//! 255, messages without security, which are for discovery only. Source: `draft-ietf-mle` 00 §7;
//! Thread 1.1 §4.

use core::net::Ipv6Addr;

use super::tlv::{self, Tlvs};
use crate::mac::security::{self, Engine, Keyed, NetworkKey, index};
use crate::wire::cursor::{self, Full, Writer};
use crate::wire::ieee802154::{Auxiliary, Level};

/// The UDP port of both ends.
pub const PORT: u16 = 19788;

/// Bytes before the command: suite and auxiliary security header.
pub const HEADER_LEN: usize = 11;

/// Bytes that a message has beside its TLVs.
pub const OVERHEAD: usize = HEADER_LEN + 1 + Level::Mic32.mic_len();

/// Commands (Thread 1.1 §4.4).
pub mod command {
    #![allow(missing_docs, reason = "the standard's names")]
    pub const LINK_REQUEST: u8 = 0;
    pub const LINK_ACCEPT: u8 = 1;
    pub const LINK_ACCEPT_AND_REQUEST: u8 = 2;
    pub const ADVERTISEMENT: u8 = 4;
    pub const DATA_REQUEST: u8 = 7;
    pub const DATA_RESPONSE: u8 = 8;
    pub const PARENT_REQUEST: u8 = 9;
    pub const PARENT_RESPONSE: u8 = 10;
    pub const CHILD_ID_REQUEST: u8 = 11;
    pub const CHILD_ID_RESPONSE: u8 = 12;
    pub const CHILD_UPDATE_REQUEST: u8 = 13;
    pub const CHILD_UPDATE_RESPONSE: u8 = 14;
    pub const ANNOUNCE: u8 = 15;
}

/// Types of TLVs (Thread 1.1 §4.5).
pub mod tlv_type {
    #![allow(missing_docs, reason = "the standard's names")]
    pub const SOURCE_ADDRESS: u8 = 0;
    pub const MODE: u8 = 1;
    pub const TIMEOUT: u8 = 2;
    pub const CHALLENGE: u8 = 3;
    pub const RESPONSE: u8 = 4;
    pub const LINK_FRAME_COUNTER: u8 = 5;
    pub const MLE_FRAME_COUNTER: u8 = 8;
    pub const ROUTE64: u8 = 9;
    pub const ADDRESS16: u8 = 10;
    pub const LEADER_DATA: u8 = 11;
    pub const NETWORK_DATA: u8 = 12;
    pub const TLV_REQUEST: u8 = 13;
    pub const SCAN_MASK: u8 = 14;
    pub const CONNECTIVITY: u8 = 15;
    pub const LINK_MARGIN: u8 = 16;
    pub const STATUS: u8 = 17;
    pub const VERSION: u8 = 18;
    pub const ADDRESS_REGISTRATION: u8 = 19;
    pub const ACTIVE_TIMESTAMP: u8 = 22;
    pub const ACTIVE_DATASET: u8 = 24;
    pub const SUPERVISION_INTERVAL: u8 = 27;
    pub const CSL_ACCURACY: u8 = 86;
}

/// The key sequence and the frame counter that a message was sealed with, in the order in which
/// they grow.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Numbers {
    /// The key sequence, which is the message's key source.
    pub sequence: u32,
    /// The MLE frame counter; no sender uses one twice with one sequence.
    pub counter: u32,
}

/// The IPv6 addresses of a message: from whom, and to whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// A link-local address.
    pub src: Ipv6Addr,
    /// A link-local address, or a link-local group.
    pub dst: Ipv6Addr,
}

impl Ends {
    /// The extended address that the sender's link-local address is made of.
    pub fn sender(&self) -> [u8; 8] {
        let octets = self.src.octets();
        let mut sender: [u8; 8] = octets.last_chunk().copied().unwrap_or_default();
        let [first, ..] = &mut sender;
        *first ^= UNIVERSAL;
        sender
    }
}

/// A message that was opened.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// What it was sealed with.
    pub numbers: Numbers,
    /// One of [`command`], or another.
    pub command: u8,
    /// Its TLVs, see [`tlv_type`].
    pub tlvs: Tlvs<'a>,
}

/// Why a message cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MleError {
    /// Shorter than its header and its MIC.
    Truncated,
    /// Not of suite 0, or of another level or key identifier mode than the one of Thread.
    Unsecured,
    /// The MIC is wrong: the message was changed, or sealed with another key.
    Forged,
    /// A TLV ends too early.
    BadTlv,
}

impl MleError {
    /// The reason in words, for counters and captures.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Truncated => "MLE message shorter than its header",
            Self::Unsecured => "MLE message of another security suite",
            Self::Forged => "MLE message sealed with another key",
            Self::BadTlv => "MLE message with a TLV that ends too early",
        }
    }
}

speaks!(MleError);

/// Opens a message where it is: the payload of a UDP datagram of [`PORT`]. The key follows from the
/// sequence that it names.
///
/// # Errors
/// [`MleError`].
pub fn open<'a>(
    network: &NetworkKey,
    ends: &Ends,
    payload: &'a mut [u8],
) -> Result<Message<'a>, MleError> {
    let (head, body) = payload
        .split_first_chunk_mut::<HEADER_LEN>()
        .ok_or(MleError::Truncated)?;
    let [suite, control, c @ .., s3, s2, s1, s0, key_index] = *head;
    let numbers = Numbers {
        sequence: u32::from_be_bytes([s3, s2, s1, s0]),
        counter: u32::from_le_bytes(c),
    };
    let is_known = (suite, control) == (SUITE, CONTROL) && key_index == index(numbers.sequence);
    if !is_known {
        return Err(MleError::Unsecured);
    }
    let envelope = Envelope::new(network, ends, numbers);
    let Envelope {
        cipher,
        auxiliary,
        authenticated,
    } = &envelope;
    let opened = security::open(cipher, ends.sender(), *auxiliary, authenticated, body);
    let opened = opened.map_err(|_| MleError::Forged)?;
    let (&mut command, tlvs) = opened.split_first_mut().ok_or(MleError::Truncated)?;
    let tlvs = Tlvs::parse(tlvs).map_err(|_| MleError::BadTlv)?;
    Ok(Message {
        numbers,
        command,
        tlvs,
    })
}

/// Writes a message, TLV by TLV, and seals it.
///
/// A TLV that finds no room makes [`Self::seal`] fail.
#[derive(Debug)]
pub struct Builder<'a> {
    out: &'a mut [u8],
    len: Result<usize, Full>,
}

impl<'a> Builder<'a> {
    /// Begins a message of this command.
    pub fn new(command: u8, out: &'a mut [u8]) -> Self {
        let place = out.get_mut(HEADER_LEN).ok_or(Full);
        let len = place.map(|place| {
            *place = command;
            HEADER_LEN + 1
        });
        Self { out, len }
    }

    /// Appends a TLV whose value is `parts`, one behind the other.
    pub fn tlv(&mut self, kind: u8, parts: &[&[u8]]) -> &mut Self {
        self.len = self.len.and_then(|len| {
            let mut w = Writer::new(self.out.get_mut(len..).unwrap_or_default());
            tlv::put(&mut w, kind, parts)?;
            Ok(len + w.written())
        });
        self
    }

    /// Seals the message; returns its length. The sender is the source of `ends`.
    ///
    /// # Errors
    /// [`Full`]: the output is too short.
    pub fn seal(
        &mut self,
        network: &NetworkKey,
        ends: &Ends,
        numbers: Numbers,
    ) -> Result<usize, Full> {
        let len = self.len? + Level::Mic32.mic_len();
        let out = self.out.get_mut(..len).ok_or(Full)?;
        let (head, body) = out.split_first_chunk_mut().ok_or(Full)?;
        let envelope = Envelope::new(network, ends, numbers);
        let [suite, header @ ..]: &mut [u8; HEADER_LEN] = head;
        *suite = SUITE;
        cursor::copy(header, envelope.header());
        let Envelope {
            cipher,
            auxiliary,
            authenticated,
        } = &envelope;
        security::seal(cipher, ends.sender(), *auxiliary, authenticated, body).ok_or(Full)?;
        Ok(len)
    }
}

/// What a message is sealed with and opened with, beside its bytes.
struct Envelope {
    cipher: Keyed,
    auxiliary: Auxiliary,
    /// Both addresses, and the auxiliary security header.
    authenticated: [u8; AUTHENTICATED_LEN],
}

impl Envelope {
    fn new(network: &NetworkKey, ends: &Ends, numbers: Numbers) -> Self {
        let auxiliary = Auxiliary {
            level: Level::Mic32,
            counter: numbers.counter,
            key_index: index(numbers.sequence),
        };
        let mut authenticated = [0; AUTHENTICATED_LEN];
        let mut w = Writer::new(&mut authenticated);
        let parts: [&[u8]; 6] = [
            &ends.src.octets(),
            &ends.dst.octets(),
            &[CONTROL],
            &numbers.counter.to_le_bytes(),
            &numbers.sequence.to_be_bytes(),
            &[auxiliary.key_index],
        ];
        let written = parts.iter().try_for_each(|part| w.put(part));
        debug_assert!(written.is_ok(), "the parts have this length");
        Self {
            // The type of the cipher of frames: one copy of CCM* serves both.
            cipher: Keyed::new(Engine::Software, &network.mle_key(numbers.sequence)),
            auxiliary,
            authenticated,
        }
    }

    fn header(&self) -> &[u8] {
        self.authenticated.get(ADDRESSES_LEN..).unwrap_or_default()
    }
}

const ADDRESSES_LEN: usize = 2 * 16;
const AUTHENTICATED_LEN: usize = ADDRESSES_LEN + HEADER_LEN - 1;

/// Secured as frames are.
const SUITE: u8 = 0;

/// Level 5, key identifier mode 2: a key source of four bytes.
const CONTROL: u8 = 0x15;

/// The bit in which an extended address and the interface identifier of it differ.
const UNIVERSAL: u8 = 0x02;
