//! Another key for a device that has joined: the JRC announces it, and the device confirms.
//!
//! ```text
//! JRC         POST /j { keys: [index, network key, sequence] }  ----------->   device
//!                                                      <-----------  2.04    notes it for later
//! ```
//!
//! Purpose: to revoke a device, all others get another network key. Each goes over to it when it
//! hears the first frame with that key, so that the JRC can announce the key to all of them
//! first. Source: RFC 9031 §8.2, parameter updates; RFC 8613 §8.3 for answers without a number of
//! their own.

use super::coap::{self, CHANGED, Message, OSCORE, POST, URI_PATH};
use super::exchange::{
    DATAGRAM_LEN_MAX, JRC, JoinError, JoinKey, PATH, PLEDGE, Pledge, Text, derived, open,
};
use super::objects::Configuration;
use super::oscore::{Header, Number, Partial};
use crate::wire::cursor::Writer;

/// Writes an announcement of `given` for the device with this extended address; returns its length.
/// `None`: `out` is too short; [`DATAGRAM_LEN_MAX`] bytes suffice.
///
/// `number`: counts the JRC's messages to this device, from 0. Two messages with one number
/// betray each other, so the JRC stores the next number before it sends. It may repeat the
/// same bytes.
pub fn announce(
    key: &JoinKey,
    eui64: [u8; 8],
    number: u32,
    given: &Configuration,
    out: &mut [u8],
) -> Option<usize> {
    let partial = Partial::new(number);
    let header = Header {
        partial: Some(partial),
        context: None,
        id: Some(JRC),
    };
    let mut option = [0; Header::LEN_MAX];
    let mut w = Writer::new(&mut option);
    header.emit(&mut w).ok()?;
    let option_len = w.written();
    let mut w = Writer::new(out);
    let mut begin = || {
        coap::begin(&mut w, POST, number as u16, &eui64)?;
        let option = option.get(..option_len).unwrap_or_default();
        coap::option(&mut w, 0, OSCORE, option)?;
        coap::payload(&mut w)
    };
    begin().ok()?;
    let at = w.written();
    let mut text = Text::new(POST);
    text.option(URI_PATH, PATH).ok()?;
    text.payload(|room| given.emit(room).ok())?;
    let context = derived(key, eui64, (JRC, PLEDGE))?;
    let number = Number { id: JRC, partial };
    let len = text.seal(&context, number, out.get_mut(at..)?)?;
    Some(at + len)
}

/// The extended address of the device that a datagram claims to confirm an announcement for; see
/// [`is_confirmed`].
pub fn confirming(datagram: &[u8]) -> Option<[u8; 8]> {
    let message = Message::parse(datagram).filter(|message| message.code != POST)?;
    message.token.try_into().ok()
}

/// Whether a datagram is the device's positive answer to the announcement with this number.
pub fn is_confirmed(key: &JoinKey, eui64: [u8; 8], number: u32, datagram: &[u8]) -> bool {
    let read = || {
        let message = Message::parse(datagram).filter(|message| message.code != POST)?;
        let header = Header::parse(message.oscore)?;
        let context = derived(key, eui64, (JRC, PLEDGE))?;
        let number = Number {
            id: JRC,
            partial: Partial::new(number),
        };
        let is_bare = header.partial.is_none() && message.token == eui64;
        let mut text = [0; DATAGRAM_LEN_MAX];
        let inner = open(&context, (number, number), &message, &mut text).ok()?;
        inner.filter(|_| is_bare).map(|(code, _)| code == CHANGED)
    };
    read().unwrap_or(false)
}

impl Pledge {
    /// Takes a JRC's announcement to a device that has joined, and writes the answer into
    /// `out`. Returns the configuration that will hold, and the answer's length. A repeated
    /// announcement is confirmed again.
    ///
    /// # Errors
    /// Why the announcement is not believed.
    pub fn on_announcement(
        &mut self,
        datagram: &[u8],
        out: &mut [u8],
    ) -> Result<(Configuration, usize), JoinError> {
        let message = Message::parse(datagram).filter(|message| message.code == POST);
        let message = message.ok_or(JoinError::Malformed)?;
        let header = Header::parse(message.oscore).filter(|header| header.id == Some(JRC));
        let partial = header.and_then(|header| header.partial);
        let partial = partial.ok_or(JoinError::Malformed)?;
        let sequence = partial.sequence().ok_or(JoinError::Malformed)?;
        let number = Number { id: JRC, partial };
        let mut text = [0; DATAGRAM_LEN_MAX];
        let context = self.context().ok_or(JoinError::NotAsked)?;
        let inner = open(context, (number, number), &message, &mut text)?;
        if self.heard.is_some_and(|heard| sequence < heard) {
            return Err(JoinError::Replayed);
        }
        let (code, payload) = inner.ok_or(JoinError::Malformed)?;
        let given = Configuration::parse(payload).ok().filter(|_| code == POST);
        let given = given.ok_or(JoinError::Malformed)?;
        let mut write = || {
            let mut w = Writer::new(&mut *out);
            coap::begin(&mut w, CHANGED, message.id, message.token).ok()?;
            coap::option(&mut w, 0, OSCORE, &[]).ok()?;
            coap::payload(&mut w).ok()?;
            let at = w.written();
            Some(at + Text::new(CHANGED).seal(context, number, out.get_mut(at..)?)?)
        };
        let len = write().ok_or(JoinError::Malformed)?;
        self.heard = Some(sequence);
        Ok((given, len))
    }
}
