//! The messages of a packet queue, to bytes and back.
//!
//! ```text
//! | length u32 | type u16 | flags u16 | sequence u32 | port u32 |   netlink, native order
//! | family u8  | version u8 | queue number u16 |                   nfnetlink, big endian
//! | length u16 | attribute u16 | value, padded to 4 bytes | ...    lengths native, values big endian
//! ```
//!
//! Sources: netlink(7); the kernel's `include/uapi/linux/netfilter/nfnetlink.h`,
//! `nfnetlink_queue.h` and `net/netfilter/nfnetlink_queue.c`.

/// A packet that the kernel holds until it is given a verdict.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Packet<'a> {
    /// The kernel's name for the packet: counted up from 1, and wrapping.
    pub id: u32,
    /// The interface that the packet came in by, as an index.
    pub from: Option<u32>,
    /// The interface that the packet leaves by, as an index: where the queue's rule stands in
    /// front of routing there is none.
    pub to: Option<u32>,
    /// The packet's mark, where it has one.
    pub mark: Option<u32>,
    /// The packet's first bytes, from its IPv6 header on; at most [`COPY_LEN`], or
    /// [`COPY_LEN_WHOLE`] after [`super::Queue::copy_whole`].
    pub head: &'a [u8],
    /// Length of the whole packet in bytes.
    pub len: usize,
}

/// How many of a packet's bytes the kernel copies: IPv6 (40) and the longest TCP header (60), with
/// 156 for extension headers between them. A kernel buffer for 128 bytes is as large.
pub const COPY_LEN: usize = 256;

/// How many are copied of packets that may have to be sent again: more than fit any mesh.
pub const COPY_LEN_WHOLE: usize = 2_048;

/// A message from the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Message<'a> {
    Packet(Packet<'a>),
    /// The answer to a request: 0, or the number of an error.
    Answer(i32),
    /// No message that this program asks for, or one that is cut short.
    Other,
}

/// The messages in `bytes`, as one call of recv(2) gives them.
pub(super) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let len = native_u32(bytes.get(..4)?)? as usize;
        if len < HEADER_LEN {
            return None;
        }
        let message = bytes.get(HEADER_LEN..len);
        let kind = native_u16(bytes.get(4..6)?)?;
        bytes = bytes.get(aligned(len)..).unwrap_or_default();
        Some(message.map_or(Message::Other, |body| parse(kind, body)))
    })
}

fn parse(kind: u16, body: &[u8]) -> Message<'_> {
    let parsed = match kind {
        NLMSG_ERROR => body.get(..4).and_then(native_u32).map(|errno| {
            // The kernel's errors are negative.
            Message::Answer(errno.cast_signed().saturating_neg())
        }),
        PACKET => packet(body).map(Message::Packet),
        _ => None,
    };
    parsed.unwrap_or(Message::Other)
}

fn packet(body: &[u8]) -> Option<Packet<'_>> {
    let (mut id, mut from, mut to, mut whole, mut mark) = (None, None, None, None, None);
    let mut head: &[u8] = &[];
    for (kind, value) in attributes(body.get(FAMILY_LEN..)?) {
        match kind {
            NFQA_PACKET_HDR => id = value.get(..4).and_then(big_u32),
            NFQA_IFINDEX_INDEV => from = big_u32(value),
            NFQA_IFINDEX_OUTDEV => to = big_u32(value),
            NFQA_MARK => mark = big_u32(value),
            NFQA_CAP_LEN => whole = big_u32(value),
            NFQA_PAYLOAD => head = value,
            _ => {}
        }
    }
    Some(Packet {
        id: id?,
        from,
        to,
        mark,
        head,
        len: whole.map_or(head.len(), |len| len as usize),
    })
}

fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = usize::from(native_u16(bytes.get(..2)?)?);
        let kind = native_u16(bytes.get(2..4)?)? & ATTRIBUTE_TYPE_MASK;
        let value = bytes.get(ATTRIBUTE_LEN..len)?;
        bytes = bytes.get(aligned(len)..).unwrap_or_default();
        Some((kind, value))
    })
}

/// A request about a queue, built attribute by attribute.
pub(super) struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// Settings of queue `number`; the kernel answers the request.
    pub(super) fn config(number: u16) -> Self {
        let mut request = Self { bytes: Vec::new() };
        let flags = NLM_F_REQUEST | NLM_F_ACK;
        push_header(&mut request.bytes, CONFIG, flags, number);
        request
    }

    pub(super) fn command(self, command: Command) -> Self {
        let [high, low] = AF_INET6.to_be_bytes();
        self.attribute(NFQA_CFG_CMD, &[command as u8, 0, high, low])
    }

    /// Copies at most `len` bytes of each packet.
    pub(super) fn copy_len(self, len: usize) -> Self {
        let [a, b, c, d] = (len as u32).to_be_bytes();
        self.attribute(NFQA_CFG_PARAMS, &[a, b, c, d, COPY_PACKET])
    }

    /// Sets the most packets that the kernel keeps in the queue.
    pub(super) fn queue_len(self, packets: u32) -> Self {
        self.attribute(NFQA_CFG_QUEUE_MAXLEN, &packets.to_be_bytes())
    }

    /// Lets packets pass for which there is no room, instead of dropping them.
    pub(super) fn fail_open(self) -> Self {
        let flag = FAIL_OPEN.to_be_bytes();
        self.attribute(NFQA_CFG_MASK, &flag)
            .attribute(NFQA_CFG_FLAGS, &flag)
    }

    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        end_message(&mut self.bytes, 0);
        self.bytes
    }

    fn attribute(mut self, kind: u16, value: &[u8]) -> Self {
        push_attribute(&mut self.bytes, kind, value);
        self
    }
}

/// The command of a [`Request::command`].
#[derive(Clone, Copy)]
pub(super) enum Command {
    /// Binds the queue to this socket.
    Bind = 1,
    /// Gives the queue up; the kernel drops what it still holds.
    Unbind = 2,
    /// Does nothing since Linux 3.8, but is refused without `CAP_NET_ADMIN`.
    Probe = 3,
}

/// Appends the verdict that packet `id` goes on its way. Unanswered unless it fails.
pub(super) fn push_accept(bytes: &mut Vec<u8>, number: u16, id: u32) {
    push_verdict(bytes, (VERDICT, NF_ACCEPT), number, id);
}

/// Appends the verdict that packet `id` goes nowhere. Unanswered unless it fails.
pub(super) fn push_drop(bytes: &mut Vec<u8>, number: u16, id: u32) {
    push_verdict(bytes, (VERDICT, NF_DROP), number, id);
}

/// As [`push_accept`], for all packets held up to `id`.
pub(super) fn push_accept_up_to(bytes: &mut Vec<u8>, number: u16, id: u32) {
    push_verdict(bytes, (VERDICT_BATCH, NF_ACCEPT), number, id);
}

fn push_verdict(bytes: &mut Vec<u8>, (kind, what): (u16, u32), number: u16, id: u32) {
    let start = bytes.len();
    push_header(bytes, kind, NLM_F_REQUEST, number);
    let mut value = [0; 8];
    let (verdict, to) = value.split_at_mut(4);
    verdict.copy_from_slice(&what.to_be_bytes());
    to.copy_from_slice(&id.to_be_bytes());
    push_attribute(bytes, NFQA_VERDICT_HDR, &value);
    end_message(bytes, start);
}

/// Appends a netlink header with a length yet to be filled in, and nfnetlink's.
fn push_header(bytes: &mut Vec<u8>, kind: u16, flags: u16, number: u16) {
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(&flags.to_ne_bytes());
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(&[0, 0]);
    bytes.extend_from_slice(&number.to_be_bytes());
}

fn push_attribute(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    // Each value above has a few bytes.
    let len = (ATTRIBUTE_LEN + value.len()) as u16;
    bytes.extend_from_slice(&len.to_ne_bytes());
    bytes.extend_from_slice(&kind.to_ne_bytes());
    bytes.extend_from_slice(value);
    bytes.resize(aligned(bytes.len()), 0);
}

/// Fills in the length of the message that began at `start`.
fn end_message(bytes: &mut [u8], start: usize) {
    let len = (bytes.len() - start) as u32;
    if let Some(field) = bytes.get_mut(start..start + 4) {
        field.copy_from_slice(&len.to_ne_bytes());
    }
}

fn aligned(len: usize) -> usize {
    len.next_multiple_of(4)
}

fn native_u16(bytes: &[u8]) -> Option<u16> {
    bytes.try_into().ok().map(u16::from_ne_bytes)
}

fn native_u32(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_ne_bytes)
}

fn big_u32(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_be_bytes)
}

/// Lengths of the netlink header, of nfnetlink's, and of an attribute's, in bytes.
const HEADER_LEN: usize = 16;
const FAMILY_LEN: usize = 4;
const ATTRIBUTE_LEN: usize = 4;

/// The upper two bits say how a value is coded.
const ATTRIBUTE_TYPE_MASK: u16 = 0x3fff;

const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLMSG_ERROR: u16 = 2;

/// `NFNL_SUBSYS_QUEUE` in the upper byte.
const PACKET: u16 = 0x300;
const VERDICT: u16 = 0x301;
const CONFIG: u16 = 0x302;
const VERDICT_BATCH: u16 = 0x303;

const NFQA_PACKET_HDR: u16 = 1;
const NFQA_VERDICT_HDR: u16 = 2;
const NFQA_MARK: u16 = 3;
const NFQA_IFINDEX_INDEV: u16 = 5;
const NFQA_IFINDEX_OUTDEV: u16 = 6;
const NFQA_PAYLOAD: u16 = 10;
const NFQA_CAP_LEN: u16 = 13;

const NFQA_CFG_CMD: u16 = 1;
const NFQA_CFG_PARAMS: u16 = 2;
const NFQA_CFG_QUEUE_MAXLEN: u16 = 3;
const NFQA_CFG_MASK: u16 = 4;
const NFQA_CFG_FLAGS: u16 = 5;

const AF_INET6: u16 = 10;
const COPY_PACKET: u8 = 2;
const FAIL_OPEN: u32 = 1;
const NF_DROP: u32 = 0;
const NF_ACCEPT: u32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet as the kernel reports it, with attributes that nobody reads in between.
    fn report(id: u32, head: &[u8], whole: Option<u32>) -> Vec<u8> {
        let mut bytes = Vec::new();
        push_header(&mut bytes, PACKET, 0, 7);
        let [a, b, c, d] = id.to_be_bytes();
        push_attribute(&mut bytes, NFQA_PACKET_HDR, &[a, b, c, d, 0x86, 0xdd, 4]);
        push_attribute(&mut bytes, NFQA_IFINDEX_INDEV, &3_u32.to_be_bytes());
        push_attribute(&mut bytes, NFQA_MARK, &[1, 2, 3, 4]);
        push_attribute(&mut bytes, 4, &[0; 16]);
        push_attribute(&mut bytes, NFQA_IFINDEX_OUTDEV, &9_u32.to_be_bytes());
        if let Some(whole) = whole {
            push_attribute(&mut bytes, NFQA_CAP_LEN, &whole.to_be_bytes());
        }
        push_attribute(&mut bytes, NFQA_PAYLOAD, head);
        end_message(&mut bytes, 0);
        bytes
    }

    #[test]
    fn a_report_names_the_packet_its_interfaces_and_its_whole_length() {
        let mut bytes = report(0x0102_0304, &[0x60; 61], None);
        bytes.extend(report(u32::MAX, &[0x60; 256], Some(1_280)));
        let expected = |id, head, len| {
            Message::Packet(Packet {
                id,
                from: Some(3),
                to: Some(9),
                mark: Some(0x0102_0304),
                head,
                len,
            })
        };
        assert_eq!(
            messages(&bytes).collect::<Vec<_>>(),
            [
                expected(0x0102_0304, &[0x60; 61], 61),
                expected(u32::MAX, &[0x60; 256], 1_280)
            ]
        );
    }

    #[test]
    fn an_answer_is_an_error_number_or_zero() {
        for (code, expected) in [(0, 0), (-2, 2), (i32::MIN, i32::MAX)] {
            let mut bytes = vec![0; 4];
            bytes.extend(NLMSG_ERROR.to_ne_bytes());
            bytes.extend([0; 10]);
            bytes.extend(i32::to_ne_bytes(code));
            end_message(&mut bytes, 0);
            assert_eq!(
                messages(&bytes).collect::<Vec<_>>(),
                [Message::Answer(expected)]
            );
        }
    }

    #[test]
    fn whatever_is_cut_short_ends_without_a_panic() {
        let bytes = report(1, &[0x60; 61], Some(900));
        for len in 0..bytes.len() {
            let cut = bytes.get(..len).unwrap();
            let found: Vec<_> = messages(cut).collect();
            assert!(!found.contains(&Message::Answer(0)), "{len}");
            assert!(found.len() <= 1, "{len}: {found:?}");
        }
        // A length of less than a header must not be read again and again.
        for len in 0..HEADER_LEN as u32 {
            let mut bytes = report(1, &[], None);
            bytes.splice(..4, len.to_ne_bytes());
            assert!(messages(&bytes).count() <= bytes.len(), "{len}");
        }
    }

    #[test]
    fn verdicts_follow_one_another_in_one_message() {
        let mut bytes = Vec::new();
        push_accept(&mut bytes, 0x0507, 1);
        push_accept_up_to(&mut bytes, 0x0507, 2);
        push_drop(&mut bytes, 0x0507, 3);
        let message = |kind: u16, verdict: u8, id: u8| {
            let mut bytes = 32_u32.to_ne_bytes().to_vec();
            bytes.extend(kind.to_ne_bytes());
            bytes.extend(1_u16.to_ne_bytes());
            bytes.extend([0; 8]);
            bytes.extend([0, 0, 5, 7]);
            bytes.extend(12_u16.to_ne_bytes());
            bytes.extend(2_u16.to_ne_bytes());
            bytes.extend([0, 0, 0, verdict, 0, 0, 0, id]);
            bytes
        };
        let messages = [
            message(0x301, 1, 1),
            message(0x303, 1, 2),
            message(0x301, 0, 3),
        ];
        assert_eq!(bytes, messages.concat());
    }
}
