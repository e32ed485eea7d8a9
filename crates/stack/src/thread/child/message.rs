//! The messages of a child.

use core::net::Ipv6Addr;

use super::{
    ALL_WAIT, ANSWER_WAIT, Child, ChildState, Due, FORMED_MAX, Formed, Quest, ROUTERS_WAIT, local,
};
use crate::random::Rng;
use crate::thread::mle::{Builder, Ends, Numbers, command, tlv_type as tlv};
use crate::time::Instant;
use crate::wire::cursor::{Full, Writer};

impl Child {
    /// Whether a message is to be written: [`Self::write`] takes the first one.
    pub(crate) const fn has_message(&self) -> bool {
        self.due != 0
    }

    /// Writes the next message that is due to `out`, the payload of a UDP datagram; returns its
    /// addresses and its length, and whether an answer is awaited.
    ///
    /// `counter`: of the MLE message; the next ones of MAC and MLE are above it.
    pub(crate) fn write(
        &mut self,
        counter: u32,
        now: Instant,
        rng: &mut Rng,
        out: &mut [u8],
    ) -> Result<(Ends, usize), Full> {
        let kind = self.due & self.due.wrapping_neg();
        self.due &= !kind;
        if kind == Due::UPDATE_REQUEST && (self.unanswered > 0 || self.quest == Quest::Former) {
            // An answer to it is authentic whatever the parent's counters; a late one counts, too.
            let challenge = || rng.next_u64().to_be_bytes();
            self.own_challenge.get_or_insert_with(challenge);
        }
        let message = MESSAGES.get(kind.trailing_zeros() as usize);
        let &(number, types) = message.ok_or(Full)?;
        let mut builder = Builder::new(number, out);
        for &kind in types {
            self.put(kind, number, counter, &mut builder);
        }
        let ends = self.ends(kind);
        let numbers = Numbers {
            sequence: self.sequence,
            counter,
        };
        let len = builder.seal(&self.network, &ends, numbers)?;
        self.counters.sent = self.counters.sent.wrapping_add(1);
        if kind == Due::UPDATE_RESPONSE {
            self.their_challenge = None;
        }
        self.await_answer(kind, now);
        Ok((ends, len))
    }

    /// Notes until when the answer to a message may come.
    fn await_answer(&mut self, kind: u8, now: Instant) {
        if self.state == ChildState::Left {
            self.due = 0;
            return;
        }
        let is_quest = match kind {
            Due::PARENT_REQUEST | Due::CHILD_ID_REQUEST => true,
            Due::UPDATE_REQUEST => self.quest == Quest::Former,
            _ => false,
        };
        if is_quest {
            let wait = match self.quest {
                Quest::Routers => ROUTERS_WAIT,
                Quest::All => ALL_WAIT,
                _ => ANSWER_WAIT,
            };
            self.quest_at = Some(now + wait);
        } else if kind != Due::UPDATE_RESPONSE {
            // What is asked beside an open question gets no time of its own.
            if self.asked == 0 || self.update_at.is_none() {
                self.update_at = Some(now + ANSWER_WAIT);
            }
            self.asked |= kind;
        }
    }

    fn ends(&self, kind: u8) -> Ends {
        let dst = match (kind, &self.candidate) {
            (Due::PARENT_REQUEST, _) => ALL_ROUTERS,
            (Due::CHILD_ID_REQUEST, Some(candidate)) => local(candidate.parent.extended),
            _ => local(self.place.parent.extended),
        };
        Ends {
            src: local(self.identity.extended),
            dst,
        }
    }

    /// Appends one TLV.
    fn put(&self, kind: u8, number: u8, counter: u32, builder: &mut Builder<'_>) {
        let next = counter.wrapping_add(1).to_be_bytes();
        let timeout = match self.state {
            ChildState::Left => 0,
            _ => self.timeout,
        };
        let (timeout, rloc16) = (timeout.to_be_bytes(), self.place.rloc16.to_be_bytes());
        let is_asking = number == command::CHILD_ID_REQUEST;
        let asked_for = self.candidate.map(|candidate| candidate.challenge);
        let response = match is_asking {
            true => asked_for,
            false => self.their_challenge,
        };
        let mode = match self.is_sleepy {
            true => [MODE_SLEEPY],
            false => [MODE_AWAKE],
        };
        let scan = match self.quest {
            Quest::All => [SCAN_ALL],
            _ => [SCAN_ROUTERS],
        };
        let value: &[u8] = match kind {
            tlv::MODE => &mode,
            tlv::TIMEOUT => &timeout,
            tlv::CHALLENGE if number == command::PARENT_REQUEST => &self.challenge,
            tlv::CHALLENGE => match &self.own_challenge {
                Some(challenge) => challenge,
                None => return,
            },
            tlv::RESPONSE => match &response {
                Some(response) => response,
                None => return,
            },
            tlv::LINK_FRAME_COUNTER | tlv::MLE_FRAME_COUNTER => &next,
            tlv::SCAN_MASK => &scan,
            tlv::VERSION => &VERSION,
            tlv::SOURCE_ADDRESS => &rloc16,
            tlv::LEADER_DATA => &self.leader,
            tlv::ACTIVE_TIMESTAMP => &self.timestamp,
            tlv::TLV_REQUEST if is_asking => &[tlv::ADDRESS16, tlv::NETWORK_DATA],
            tlv::TLV_REQUEST => &[tlv::NETWORK_DATA],
            _ => return self.put_addresses(is_asking, builder),
        };
        builder.tlv(kind, &[value]);
    }

    /// Appends the addresses that the parent shall know: the ML-EID, and those that were formed,
    /// which a parent that is new gets in the update that follows.
    fn put_addresses(&self, is_asking: bool, builder: &mut Builder<'_>) {
        let mut entries = [0; ENTRY_LEN_MAX * (1 + FORMED_MAX)];
        let mut w = Writer::new(&mut entries);
        let mut written = w.put(&[BY_CONTEXT]).and(w.put(&self.identity.iid));
        for &Formed { prefix, context } in self.formed.iter().flatten().filter(|_| !is_asking) {
            let whole: &[u8] = match context {
                0 => &prefix,
                _ => &[],
            };
            let iid = self.iid_in(&prefix);
            let parts: [&[u8]; 3] = [&[context], whole, &iid];
            written = written.and(parts.iter().try_for_each(|part| w.put(part)));
        }
        debug_assert!(written.is_ok(), "the entries have at most this length");
        let len = w.written();
        let entries = entries.get(..len).unwrap_or_default();
        builder.tlv(tlv::ADDRESS_REGISTRATION, &[entries]);
    }
}

/// The command and the TLVs of each message, in the order of the bits of [`Due`].
const MESSAGES: [(u8, &[u8]); 5] = [
    (command::CHILD_UPDATE_RESPONSE, &UPDATE_RESPONSE),
    (command::CHILD_ID_REQUEST, &CHILD_ID_REQUEST),
    (command::CHILD_UPDATE_REQUEST, &UPDATE_REQUEST),
    (command::DATA_REQUEST, &DATA_REQUEST),
    (command::PARENT_REQUEST, &PARENT_REQUEST),
];
const PARENT_REQUEST: [u8; 4] = [tlv::MODE, tlv::CHALLENGE, tlv::SCAN_MASK, tlv::VERSION];
const CHILD_ID_REQUEST: [u8; 9] = [
    tlv::RESPONSE,
    tlv::LINK_FRAME_COUNTER,
    tlv::MLE_FRAME_COUNTER,
    tlv::MODE,
    tlv::TIMEOUT,
    tlv::VERSION,
    tlv::ADDRESS_REGISTRATION,
    tlv::TLV_REQUEST,
    tlv::ACTIVE_TIMESTAMP,
];
/// The last one where an answer has to be fresh.
const UPDATE_REQUEST: [u8; 6] = [
    tlv::MODE,
    tlv::SOURCE_ADDRESS,
    tlv::LEADER_DATA,
    tlv::TIMEOUT,
    tlv::ADDRESS_REGISTRATION,
    tlv::CHALLENGE,
];
const UPDATE_RESPONSE: [u8; 6] = [
    tlv::SOURCE_ADDRESS,
    tlv::LEADER_DATA,
    tlv::MODE,
    tlv::TIMEOUT,
    tlv::ADDRESS_REGISTRATION,
    tlv::RESPONSE,
];
const DATA_REQUEST: [u8; 3] = [tlv::TLV_REQUEST, tlv::LEADER_DATA, tlv::ACTIVE_TIMESTAMP];

/// The receiver is on when idle 08, data requests are secured 04, full network data 01; never a
/// router 02.
const MODE_AWAKE: u8 = 0x0d;
const MODE_SLEEPY: u8 = 0x04;

/// Who shall answer: routers, or also those that can become one.
const SCAN_ROUTERS: u8 = 0x80;
const SCAN_ALL: u8 = 0xc0;

/// Thread 1.3.
const VERSION: [u8; 2] = [0, 4];

/// An address in a registration: a byte, and all of it at most.
const ENTRY_LEN_MAX: usize = 17;

/// In the byte before an address: the number of a context stands for its first half.
pub(super) const BY_CONTEXT: u8 = 0x80;

const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
