//! Flows that are not known yet, and what proves that their peers have seen what motes sent.

use super::key::{Key, ack_of};
use crate::wire::tcp;

/// Flows that are not known yet; the latest one is the last.
#[derive(Debug)]
pub(super) struct Handshakes([Option<Handshake>; HANDSHAKES_MAX]);

/// A flow that is not known yet, as far as its mote has shown it.
#[derive(Clone, Copy, Debug)]
struct Handshake {
    key: Key,
    shown: Shown,
}

/// The number that a mote has sent in an unknown flow.
#[derive(Clone, Copy, Debug)]
enum Shown {
    /// Of its SYN-ACK: the number by which its peer acknowledges that.
    Syn { answer: u32 },
    /// Of a segment whose SYN was not seen: its acknowledgment number.
    Ack(u32),
}

impl Handshakes {
    pub(super) const NEW: Self = Self([None; HANDSHAKES_MAX]);

    /// Whether a mote sends such a segment only after a complete handshake: it has data or a FIN,
    /// or it acknowledges more than an earlier segment did. A bare ACK may also be the answer to a
    /// segment that does not fit the handshake (RFC 9293 §3.10.7.4); it then has the same
    /// acknowledgment number as the SYN-ACK. Where that was seen, the peer's answer proves more.
    /// The answer to a SYN that the mote sends first proves as much, but many short connections of
    /// motes, each with the precedence of a new flow, took a sixth from downloads beside them.
    pub(super) fn is_proven_by(&mut self, key: Key, segment: &tcp::Header, has_data: bool) -> bool {
        if segment.flags.contains(tcp::Flags::RST) || !segment.flags.contains(tcp::Flags::ACK) {
            return false;
        }
        let is_syn = segment.flags.contains(tcp::Flags::SYN);
        if !is_syn && (has_data || segment.flags.contains(tcp::Flags::FIN)) {
            return true;
        }
        let shown = match is_syn {
            true => Shown::Syn {
                answer: segment.seq.wrapping_add(1),
            },
            false => Shown::Ack(segment.ack),
        };
        let mut noted = self.0.iter_mut().flatten();
        match noted.find(|noted| noted.key == key) {
            Some(noted) if is_syn => noted.shown = shown,
            Some(noted) => {
                return matches!(noted.shown, Shown::Ack(ack) if ack != segment.ack);
            }
            None => {
                self.0.rotate_left(1);
                let [.., last] = &mut self.0;
                *last = Some(Handshake { key, shown });
            }
        }
        false
    }

    /// Whether a segment into the mesh, which begins so, acknowledges the SYN of its mote.
    pub(super) fn is_answered_by(&self, key: &Key, start: &[u8]) -> bool {
        let mut noted = self.0.iter().flatten();
        let (Some(noted), Some(ack)) = (noted.find(|noted| noted.key == *key), ack_of(start))
        else {
            return false;
        };
        matches!(noted.shown, Shown::Syn { answer } if answer == ack)
    }

    /// The flow is known.
    pub(super) fn forget(&mut self, key: &Key) {
        for noted in &mut self.0 {
            noted.take_if(|noted| noted.key == *key);
        }
    }
}

/// The number of handshakes that are tracked at the same time. A flow beyond that number becomes
/// known after two more acknowledgments.
const HANDSHAKES_MAX: usize = 16;
