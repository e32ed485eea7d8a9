//! A join proxy's forwarding, without state: it passes on the requests of neighbours without a key,
//! and stores nothing about them.
//!
//! ```text
//! pledge ── token of its own ──> proxy ── token: who asked, when, its token, a tag ──> JRC
//! pledge <── token of its own ── proxy <── the same token ─────────────────────────── JRC
//! ```
//!
//! Purpose: strangers take no memory of a join proxy. All that it needs for the answer travels
//! in the token of the request, and comes back with the answer; the tag shows that the proxy itself
//! wrote the token. Source: RFC 9031 §7.1; RFC 8974 §3 for what goes into such a token.

use super::coap::{self, Message, OSCORE, POST, TOKEN_LEN_MAX, URI_HOST};
use super::exchange::HOST;
use crate::random::{KeyedHash, Rng};
use crate::time::{Duration, Instant};
use crate::wire::cursor::{self, Reader, Writer};

/// The keys by which a join proxy writes its tokens.
#[derive(Clone, Debug)]
pub(crate) struct StatelessProxy {
    secret: KeyedHash,
}

/// A pledge: the identifier of its interface, and the number of the link that it is heard on.
pub(crate) type Asker = ([u8; 8], u8);

impl StatelessProxy {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        Self {
            secret: rng.keyed_hash(),
        }
    }

    /// Writes a neighbour's request for the JRC; returns its length. Only the encrypted
    /// payload and the OSCORE option are taken over. `None`: it is no request, or its token has
    /// more than 8 bytes.
    pub(crate) fn outward(
        &self,
        asker: Asker,
        datagram: &[u8],
        now: Instant,
        out: &mut [u8],
    ) -> Option<usize> {
        let message = Message::parse(datagram).filter(|message| message.code == POST)?;
        let token = self.token(asker, &message, now)?;
        let mut w = Writer::new(out);
        let mut write = || {
            coap::begin(&mut w, POST, message.id, &token)?;
            coap::option(&mut w, 0, URI_HOST, HOST)?;
            coap::option(&mut w, URI_HOST, OSCORE, message.oscore)?;
            coap::payload(&mut w)?;
            w.put(message.payload)
        };
        write().ok()?;
        Some(w.written())
    }

    /// Writes the JRC's answer for the pledge; returns the pledge, and the length. `None`: this
    /// proxy passed on no such request, or too long ago.
    pub(crate) fn homeward(
        &self,
        datagram: &[u8],
        now: Instant,
        out: &mut [u8],
    ) -> Option<(Asker, usize)> {
        let message = Message::parse(datagram).filter(|message| message.code != POST)?;
        let (asker, token) = self.open(message.token, now)?;
        let mut w = Writer::new(out);
        let mut write = || {
            coap::begin(&mut w, message.code, message.id, token)?;
            coap::option(&mut w, 0, OSCORE, message.oscore)?;
            coap::payload(&mut w)?;
            w.put(message.payload)
        };
        write().ok()?;
        Some((asker, w.written()))
    }

    /// The token of a forwarded request: the pledge, its link, the time, the pledge's own token,
    /// and the tag.
    fn token(&self, asker: Asker, message: &Message<'_>, now: Instant) -> Option<[u8; LEN]> {
        let len = u8::try_from(message.token.len()).ok()?;
        let (iid, link) = asker;
        let mut token = [0; LEN];
        let mut w = Writer::new(&mut token);
        let mut write = || {
            w.put(&iid)?;
            w.put(&[link, len, 0, 0])?;
            w.put(&seconds(now).to_be_bytes())?;
            w.put(message.token)
        };
        // A token that is longer than that of RFC 7252 finds no room.
        write().ok().filter(|()| usize::from(len) <= OWN_LEN)?;
        let tag = self.tag(&token)?.to_be_bytes();
        cursor::copy(token.get_mut(TAG_AT..)?, &tag);
        Some(token)
    }

    /// Reads a token that this proxy made at most [`PATIENCE`] ago: the pledge, and its own token.
    fn open<'t>(&self, token: &'t [u8], now: Instant) -> Option<(Asker, &'t [u8])> {
        let token: &[u8; LEN] = token.try_into().ok()?;
        let (_, tag) = token.split_at_checked(TAG_AT)?;
        if tag != self.tag(token)?.to_be_bytes() {
            return None;
        }
        let mut r = Reader::new(token);
        let iid = r.array().ok()?;
        let [link, len, ..]: [u8; 4] = r.array().ok()?;
        let asked_at = u32::from_be_bytes(r.array().ok()?);
        let own = r.slice(usize::from(len)).ok()?;
        let age = seconds(now).wrapping_sub(asked_at);
        (age <= PATIENCE).then_some(((iid, link), own))
    }

    fn tag(&self, token: &[u8; LEN]) -> Option<u64> {
        let (words, []) = token.get(..TAG_AT)?.as_chunks() else {
            return None;
        };
        Some(self.secret.hash(&[words]))
    }
}

fn seconds(now: Instant) -> u32 {
    (now.as_micros() / Duration::from_secs(1).as_micros()) as u32
}

/// How long after the request an answer is passed on, s: as long as CoAP waits for the answer to a
/// message that it does not repeat (RFC 7252 §4.8.2, `MAX_TRANSMIT_WAIT` of 93 s).
const PATIENCE: u32 = 93;

/// Bytes of a token: the pledge, its link and the time, 16; the pledge's own token; the tag.
const OWN_LEN: usize = 8;
const TAG_AT: usize = 16 + OWN_LEN;
const LEN: usize = TAG_AT + 8;
const _: () = assert!(LEN <= TOKEN_LEN_MAX, "it is read again");
