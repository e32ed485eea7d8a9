//! The contexts of a connection at an observer that only listens.
//!
//! Purpose: restores headers between two other nodes, from the segments overheard before. The rules
//! are those of the receiver; an observer that has heard the same segments as the receiver restores
//! the same headers.
//! Place: captures on the air. A node has no use for it. Left out: the list of connections,
//! segments heard twice, and draft mode.

use crate::time::Instant;
use crate::wire::tcphc::{Compressed, Header};

use super::belief::is_far;
use super::context::{Context, Form};
use super::restore::rebuild;
use super::rules::Rules;
use super::segment::Segment;
use super::{Config, Flow, HeaderDrop, Restored};

/// Both ends of a connection. A segment is the first end's or the second's.
#[derive(Clone, Copy, Debug)]
pub struct Overheard {
    ends: [Context; 2],
}

impl Overheard {
    /// A connection between two ports, of which nothing is known yet.
    pub const fn new(first_port: u16, second_port: u16) -> Self {
        let (mut first, mut second) = (Context::EMPTY, Context::EMPTY);
        first.ports = (first_port, second_port);
        second.ports = (second_port, first_port);
        Self {
            ends: [first, second],
        }
    }

    /// The ports of the first end and of the second.
    pub const fn ports(&self) -> (u16, u16) {
        let [first, _] = &self.ends;
        first.ports
    }

    /// Restores the header at the start of `bytes`, a whole packet from its NHC byte on, into
    /// `out` (60 bytes always suffice), and learns from it. `flow`: `local` is the destination.
    ///
    /// # Errors
    /// [`HeaderDrop`]; then nothing has changed. [`HeaderDrop::NoContext`] stands for full headers
    /// too, which need no restoring: [`Self::learn`].
    pub fn restore(
        &mut self,
        flow: &Flow,
        from_first: bool,
        bytes: &[u8],
        now: Instant,
        out: &mut [u8],
    ) -> Result<Restored, HeaderDrop> {
        let (header, payload) = Header::parse(bytes).map_err(HeaderDrop::Malformed)?;
        let Header::Compressed(frame) = header else {
            return Err(HeaderDrop::NoContext);
        };
        let (_, receiver) = self.roles(from_first);
        let (uncompressed_len, seg) = rebuild(receiver, flow, &frame, payload, RULES, out)?;
        self.take(from_first, &seg, form_of(&frame), now);
        Ok(Restored {
            compressed_len: bytes.len() - payload.len(),
            uncompressed_len,
        })
    }

    /// Updates the contexts from an uncompressed segment with a right checksum.
    pub fn learn(&mut self, from_first: bool, segment: &[u8], now: Instant) {
        if let Some(seg) = Segment::parse(segment) {
            self.take(from_first, &seg, Form::Full, now);
        }
    }

    fn take(&mut self, from_first: bool, seg: &Segment, form: Form, now: Instant) {
        let (sender, receiver) = self.roles(from_first);
        if is_far(sender, seg) {
            sender.forget_sent(seg);
        }
        sender.on_sent(seg, true, RULES, now);
        receiver.on_validated(seg, form, RULES, now);
    }

    /// The contexts of sender and receiver of a segment, which the first end sent or did not.
    const fn roles(&mut self, from_first: bool) -> (&mut Context, &mut Context) {
        let [first, second] = &mut self.ends;
        if from_first {
            (first, second)
        } else {
            (second, first)
        }
    }
}

/// The form of header that `frame` has.
pub(super) const fn form_of(frame: &Compressed) -> Form {
    if frame.mostly {
        Form::Mostly
    } else {
        Form::Compressed
    }
}

/// The rules for reading headers: the same in all modes but the draft's.
const RULES: Rules = Rules::of(&Config::DEFAULT);
