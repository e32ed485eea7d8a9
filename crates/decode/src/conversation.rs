//! TCP conversations of a capture: relative numbers, retransmissions, the closing table.
//!
//! A mesh shows one segment on every hop it takes. A direction therefore keeps a separate
//! account for each link sender that was heard, and the retransmissions of a direction are
//! those heard from the first of them: the hop nearest to the origin.
//!
//! Left out: link-layer repeats, which `mac` keeps away from here.

use std::collections::HashMap;
use std::net::IpAddr;

use motet::wire::LinkAddr;
use motet::wire::tcp::{Flags, Header};

use super::ranges::Ranges;

/// An end of a conversation.
pub(super) type End = (IpAddr, u16);

/// One segment, and where it was heard.
#[derive(Clone, Copy, Debug)]
pub(super) struct Segment<'a> {
    /// The sender's address.
    pub(super) src: IpAddr,
    /// The receiver's address.
    pub(super) dst: IpAddr,
    /// The TCP header.
    pub(super) header: &'a Header,
    /// Length of the payload, bytes.
    pub(super) len: usize,
    /// The link sender, where the link has one.
    pub(super) heard_from: Option<LinkAddr>,
    /// Capture time, nanoseconds.
    pub(super) at_ns: u64,
}

/// How a segment relates to what was heard before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Relation {
    /// The next bytes, or none at all.
    Next,
    /// The segment comes after bytes that have not been heard.
    AfterGap,
    /// The segment fills a gap.
    OutOfOrder,
    /// All or some of the segment's bytes have been heard before.
    Retransmission,
}

/// A segment's conversation, its relative numbers, and its relation to earlier segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Observation {
    /// Position of the conversation in the table, from 0.
    pub(super) stream: usize,
    /// Sequence number from the initial one.
    pub(super) seq_relative: u32,
    /// Acknowledgment number from the peer's initial sequence number.
    pub(super) ack_relative: Option<u32>,
    /// How the segment relates to what was heard before.
    pub(super) relation: Relation,
}

/// All conversations, in order of appearance.
#[derive(Debug, Default)]
pub(super) struct Conversations {
    list: Vec<Conversation>,
    latest: HashMap<(End, End), usize>,
    /// Segments of conversations beyond [`CONVERSATIONS_MAX`].
    pub(super) untracked: u64,
}

/// One TCP connection, as far as the capture shows it.
#[derive(Debug)]
pub(super) struct Conversation {
    /// The end that opened, or that was heard first; then its peer.
    pub(super) ends: [End; 2],
    /// The bytes sent by each end.
    pub(super) directions: [Direction; 2],
    /// Capture time of the first and the last segment, nanoseconds.
    pub(super) span_ns: (u64, u64),
    /// Whether a segment with RST was heard.
    pub(super) reset: bool,
}

/// The bytes and numbers that one end of a connection has sent.
#[derive(Debug, Default)]
pub(super) struct Direction {
    /// Initial sequence number; if the SYN is not in the capture, the first sequence number seen
    /// minus 1.
    base: Option<u32>,
    /// Distinct sequence numbers heard on any hop, relative to `base`.
    seen: Ranges,
    syn: bool,
    fin: bool,
    hops: Vec<Hop>,
}

/// The account of one link sender.
#[derive(Debug)]
struct Hop {
    heard_from: Option<LinkAddr>,
    seen: Ranges,
    segments: u64,
    retransmissions: u64,
}

impl Conversations {
    /// Notes a segment; `None` when the table is full.
    pub(super) fn observe(&mut self, segment: &Segment<'_>) -> Option<Observation> {
        let (stream, from) = self.find(segment)?;
        let conversation = self.list.get_mut(stream)?;
        conversation.span_ns.1 = conversation.span_ns.1.max(segment.at_ns);
        conversation.reset |= segment.header.flags.contains(Flags::RST);
        let [first, second] = &mut conversation.directions;
        let (own, peer) = if from == 0 {
            (first, second)
        } else {
            (second, first)
        };
        let ack = segment.header.ack;
        let ack_relative = segment
            .header
            .flags
            .contains(Flags::ACK)
            .then(|| ack.wrapping_sub(*peer.base.get_or_insert(ack.wrapping_sub(1))));
        let (seq_relative, relation) = own.observe(segment);
        Some(Observation {
            stream,
            seq_relative,
            ack_relative,
            relation,
        })
    }

    /// The conversations, in order of appearance.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Conversation> {
        self.list.iter()
    }

    /// The position of the segment's conversation, and which of its ends sent it.
    fn find(&mut self, segment: &Segment<'_>) -> Option<(usize, usize)> {
        let src = (segment.src, segment.header.src_port);
        let dst = (segment.dst, segment.header.dst_port);
        let key = if src <= dst { (src, dst) } else { (dst, src) };
        if let Some(&position) = self.latest.get(&key)
            && let Some(conversation) = self.list.get(position)
        {
            let from = usize::from(conversation.ends[0] != src);
            if !conversation.is_another(from, segment.header) {
                return Some((position, from));
            }
        }
        if self.list.len() >= CONVERSATIONS_MAX {
            self.untracked += 1;
            return None;
        }
        // A SYN-ACK shows which end opened, even where the SYN was not heard.
        let answers = segment.header.flags.contains(Flags::SYN | Flags::ACK);
        self.list.push(Conversation {
            ends: if answers { [dst, src] } else { [src, dst] },
            directions: Default::default(),
            span_ns: (segment.at_ns, segment.at_ns),
            reset: false,
        });
        let position = self.list.len() - 1;
        self.latest.insert(key, position);
        Some((position, usize::from(answers)))
    }
}

impl Conversation {
    /// Whether a header opens a new connection between the same ports.
    fn is_another(&self, from: usize, header: &Header) -> bool {
        let opens = header.flags.contains(Flags::SYN) && !header.flags.contains(Flags::ACK);
        opens
            && self
                .directions
                .get(from)
                .is_some_and(|own| own.syn && own.base != Some(header.seq))
    }

    /// Whether both ends have sent a FIN.
    pub(super) fn is_closed(&self) -> bool {
        self.directions.iter().all(|direction| direction.fin)
    }
}

impl Direction {
    fn observe(&mut self, segment: &Segment<'_>) -> (u32, Relation) {
        let flags = segment.header.flags;
        let (syn, fin) = (flags.contains(Flags::SYN), flags.contains(Flags::FIN));
        let seq = segment.header.seq;
        // A keepalive as the first segment heard may lie one below; this is rare and harmless.
        let base = if syn && !self.syn {
            *self.base.insert(seq)
        } else {
            *self.base.get_or_insert(seq.wrapping_sub(1))
        };
        self.syn |= syn;
        self.fin |= fin;
        let seq_relative = seq.wrapping_sub(base);
        let hop = self.hop(segment.heard_from);
        hop.segments += 1;
        let start = hop.unwrapped(seq_relative);
        let end = start + segment.len as i64 + i64::from(syn) + i64::from(fin);
        let heard_to = hop.seen.end();
        let new = hop.seen.insert(start, end);
        let relation = match heard_to {
            _ if start == end => Relation::Next,
            // Its first segment heard: nothing to compare with.
            None => Relation::Next,
            Some(_) if new < (end - start).unsigned_abs() => Relation::Retransmission,
            Some(heard_to) if start < heard_to => Relation::OutOfOrder,
            Some(heard_to) if start > heard_to => Relation::AfterGap,
            Some(_) => Relation::Next,
        };
        hop.retransmissions += u64::from(relation == Relation::Retransmission);
        self.seen.insert(start, end);
        (seq_relative, relation)
    }

    /// The account of a link sender; all senders beyond [`HOPS_MAX`] share the last account.
    fn hop(&mut self, heard_from: Option<LinkAddr>) -> &mut Hop {
        let known = self
            .hops
            .iter()
            .position(|hop| hop.heard_from == heard_from);
        let position = known.unwrap_or_else(|| {
            if self.hops.len() < HOPS_MAX {
                self.hops.push(Hop {
                    heard_from,
                    seen: Ranges::default(),
                    segments: 0,
                    retransmissions: 0,
                });
            }
            self.hops.len() - 1
        });
        &mut self.hops[position]
    }

    /// Distinct payload bytes heard.
    pub(super) fn bytes(&self) -> u64 {
        self.seen
            .len()
            .saturating_sub(u64::from(self.syn) + u64::from(self.fin))
    }

    /// Payload bytes that must have been sent but were not heard.
    pub(super) fn missing(&self) -> u64 {
        self.seen.missing()
    }

    /// Segments heard from the origin's side.
    pub(super) fn segments(&self) -> u64 {
        self.hops.first().map_or(0, |hop| hop.segments)
    }

    /// Retransmissions heard from the origin's side.
    pub(super) fn retransmissions(&self) -> u64 {
        self.hops.first().map_or(0, |hop| hop.retransmissions)
    }

    /// How many link senders were heard passing the direction on.
    pub(super) fn hops(&self) -> usize {
        self.hops.len()
    }
}

impl Hop {
    /// A 32-bit relative number as one that does not wrap, nearest to what was heard last.
    fn unwrapped(&self, relative: u32) -> i64 {
        let near = self.seen.end().unwrap_or(0);
        near + i64::from(relative.wrapping_sub(near as u32) as i32)
    }
}

/// Conversations kept; segments of further ones are counted only.
const CONVERSATIONS_MAX: usize = 65_536;
/// Link senders that a direction keeps accounts for; longer chains exist only in a laboratory.
const HOPS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn header(src_port: u16, seq: u32, ack: u32, flags: Flags) -> Header {
        Header {
            src_port,
            dst_port: if src_port == 1 { 2 } else { 1 },
            seq,
            ack,
            flags,
            ..Header::default()
        }
    }

    fn observe(
        table: &mut Conversations,
        header: &Header,
        len: usize,
        from: Option<u16>,
    ) -> Observation {
        let address = |last: u16| IpAddr::from([0xfe80, 0, 0, 0, 0, 0, 0, last]);
        table
            .observe(&Segment {
                src: address(header.src_port),
                dst: address(header.dst_port),
                header,
                len,
                heard_from: from.map(LinkAddr::Short),
                at_ns: 0,
            })
            .expect("the table has room")
    }

    #[test]
    fn numbers_are_relative_and_wrap() {
        let mut table = Conversations::default();
        let isn = u32::MAX - 1;
        let syn = observe(&mut table, &header(1, isn, 0, Flags::SYN), 0, None);
        assert_eq!((syn.seq_relative, syn.ack_relative), (0, None));
        let answer = observe(
            &mut table,
            &header(2, 7, isn.wrapping_add(1), Flags::SYN | Flags::ACK),
            0,
            None,
        );
        assert_eq!((answer.seq_relative, answer.ack_relative), (0, Some(1)));
        let data = observe(
            &mut table,
            &header(1, isn.wrapping_add(1), 8, Flags::ACK),
            100,
            None,
        );
        assert_eq!(
            (data.seq_relative, data.ack_relative, data.relation),
            (1, Some(1), Relation::Next)
        );
        let more = observe(
            &mut table,
            &header(1, isn.wrapping_add(101), 8, Flags::ACK),
            100,
            None,
        );
        assert_eq!((more.seq_relative, more.relation), (101, Relation::Next));
        let conversation = table.iter().next().expect("one");
        assert_eq!(
            (
                conversation.directions[0].bytes(),
                conversation.directions[0].missing()
            ),
            (200, 0)
        );
    }

    #[test]
    fn gaps_and_repeats_are_told_apart() {
        let mut table = Conversations::default();
        let mut send =
            |seq, len| observe(&mut table, &header(1, seq, 0, Flags::ACK), len, None).relation;
        assert_eq!(send(1_000, 100), Relation::Next);
        assert_eq!(send(1_200, 100), Relation::AfterGap);
        assert_eq!(send(1_100, 100), Relation::OutOfOrder);
        assert_eq!(send(1_100, 100), Relation::Retransmission);
        assert_eq!(
            send(1_250, 100),
            Relation::Retransmission,
            "half of it is new"
        );
        assert_eq!(send(1_350, 0), Relation::Next, "nothing to repeat in it");
        let conversation = table.iter().next().expect("one");
        let direction = &conversation.directions[0];
        assert_eq!(
            (
                direction.bytes(),
                direction.retransmissions(),
                direction.segments()
            ),
            (350, 2, 6)
        );
    }

    #[test]
    fn each_hop_has_its_own_account() {
        let mut table = Conversations::default();
        let data = header(1, 1_000, 0, Flags::ACK);
        for hop in 1..=3 {
            assert_eq!(
                observe(&mut table, &data, 10, Some(hop)).relation,
                Relation::Next
            );
        }
        // The origin repeats itself; so do the relays, in turn.
        for hop in 1..=3 {
            assert_eq!(
                observe(&mut table, &data, 10, Some(hop)).relation,
                Relation::Retransmission
            );
        }
        let direction = &table.iter().next().expect("one").directions[0];
        assert_eq!(
            (
                direction.bytes(),
                direction.retransmissions(),
                direction.hops()
            ),
            (10, 1, 3)
        );
    }

    #[test]
    fn a_new_opening_between_old_ports_is_another_conversation() {
        let mut table = Conversations::default();
        observe(&mut table, &header(1, 5, 0, Flags::SYN), 0, None);
        assert_eq!(
            observe(&mut table, &header(1, 5, 0, Flags::SYN), 0, None).stream,
            0
        );
        assert_eq!(
            observe(&mut table, &header(1, 99_999, 0, Flags::SYN), 0, None).stream,
            1
        );
        assert_eq!(
            observe(
                &mut table,
                &header(2, 1, 100_000, Flags::SYN | Flags::ACK),
                0,
                None
            )
            .stream,
            1
        );
    }
}
