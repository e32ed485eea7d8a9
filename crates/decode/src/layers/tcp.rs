//! TCP segments.
//!
//! Place: under `ip`. The stack's parser decides what is well formed; options it has no use
//! for are named from the bytes.
//! Sources: RFC 9293 §3.1; the IANA registry of TCP options.

use std::net::IpAddr;

use motet::wire::checksum::Checksum;
use motet::wire::tcp::{Flags, HEADER_LEN, Header, NEXT_HEADER, checksum_field};

use super::ip;
use crate::Decoder;
use crate::conversation::{Observation, Relation, Segment};
use crate::model::{Frame, Layer, Value, group, hex16};
use crate::next::{Next, Upper};

/// Explains a segment.
pub(super) fn explain<'a>(decoder: &mut Decoder, frame: &mut Frame, upper: Upper<'a>) -> Next<'a> {
    let Upper {
        src,
        dst,
        bytes: segment,
        ..
    } = upper;
    let (header, payload) = match Header::parse(segment) {
        Ok(found) => found,
        Err(error) => {
            frame.say_broken("TCP");
            frame.layers.extend(ip::ports("tcp", segment));
            return frame.malformed("tcp", error.reason());
        }
    };
    // Not all of the payload need have been captured.
    let payload_len = upper.len.saturating_sub(segment.len() - payload.len());
    let checksum_ok = (!frame.is_cut()).then(|| is_valid(src, dst, segment));
    let observed = decoder.now.countable().then(|| {
        decoder.conversations.observe(&Segment {
            src,
            dst,
            header: &header,
            len: payload_len,
            heard_from: decoder.now.heard_from,
            at_ns: decoder.now.at_ns,
        })
    });
    let shown = Shown {
        header: &header,
        segment,
        payload_len,
        observed: observed.flatten(),
        checksum_ok,
    };
    frame.say(shown.summary());
    frame.push(shown.layer());
    // Checksums of segments that the capturing machine sent are often left to its network card.
    if checksum_ok == Some(false) && decoder.now.heard_from.is_some() {
        frame.malformed("tcp", "TCP checksum wrong");
    }
    frame.payload(payload);
    Next::End
}

/// All that the output shows of a segment.
struct Shown<'a> {
    header: &'a Header,
    segment: &'a [u8],
    payload_len: usize,
    /// The segment's place in its conversation, where that is known.
    observed: Option<Observation>,
    checksum_ok: Option<bool>,
}

impl Shown<'_> {
    fn has_ack(&self) -> bool {
        self.header.flags.contains(Flags::ACK)
    }

    fn relation(&self) -> Option<&'static str> {
        relation_name(self.observed?.relation)
    }

    fn title(&self) -> String {
        let Header {
            src_port,
            dst_port,
            flags,
            ..
        } = self.header;
        format!(
            "{src_port} → {dst_port} [{}]",
            flag_names(*flags).join(", ")
        )
    }

    fn summary(&self) -> String {
        let (header, observed) = (self.header, self.observed);
        let seq = observed.map_or(header.seq, |observed| observed.seq_relative);
        let ack = observed.map_or(Some(header.ack), |observed| observed.ack_relative);
        let mut summary = format!("TCP {} seq {seq}", self.title());
        for (word, value) in [
            (" ack ", ack.filter(|_| self.has_ack())),
            (" win ", Some(u32::from(header.window))),
            (" mss ", header.options.mss.map(u32::from)),
        ] {
            summary.extend(value.map(|value| format!("{word}{value}")));
        }
        if self.payload_len > 0 {
            summary.push_str(&format!(" len {}", self.payload_len));
        }
        summary.extend(self.relation().map(|relation| format!(" ({relation})")));
        summary
    }

    fn layer(&self) -> Layer {
        let (header, segment) = (self.header, self.segment);
        let flags = flag_names(header.flags).into_iter().map(Value::from);
        let seq_relative = self.observed.map(|observed| observed.seq_relative);
        let ack_relative = self.observed.and_then(|observed| observed.ack_relative);
        let ack = Some(header.ack).filter(|_| self.has_ack());
        let urgent = Some(header.urgent).filter(|_| header.flags.contains(Flags::URG));
        Layer::new("tcp", self.title())
            .hidden("src_port", header.src_port)
            .hidden("dst_port", header.dst_port)
            .hidden("flags", flags.collect::<Vec<_>>())
            .hidden("seq", header.seq)
            .hidden("seq_relative", seq_relative)
            .hidden("ack", ack)
            .hidden("ack_relative", ack_relative)
            .remark("seq", both(header.seq, seq_relative))
            .remark("ack", ack.map(|ack| both(ack, ack_relative)))
            .remark("len", Some(self.payload_len).filter(|len| *len > 0))
            .with("window", header.window)
            .with("urgent", urgent)
            .with("options", options(header, segment))
            .hidden("checksum", checksum_field(segment).map(hex16))
            .hidden("checksum_ok", self.checksum_ok)
            .remark("checksum_wrong", self.checksum_ok == Some(false))
            .hidden("len", self.payload_len)
            .hidden("stream", self.observed.map(|observed| observed.stream))
            .with("relation", self.relation())
    }
}

/// A number as sent, and from the beginning of the stream where that is known.
fn both(absolute: u32, relative: Option<u32>) -> String {
    relative.map_or_else(
        || absolute.to_string(),
        |relative| format!("{relative} ({absolute})"),
    )
}

fn is_valid(src: IpAddr, dst: IpAddr, segment: &[u8]) -> bool {
    let mut sum = match (src, dst) {
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            Checksum::pseudo_header(&src, &dst, NEXT_HEADER, segment.len())
        }
        (src, dst) => {
            let mut sum = Checksum::new();
            for address in [src, dst] {
                if let IpAddr::V4(address) = address {
                    sum.add(&address.octets());
                }
            }
            sum.add_u16(u16::from(NEXT_HEADER));
            sum.add(&(segment.len() as u32).to_be_bytes());
            sum
        }
    };
    sum.add(segment);
    sum.sum() == 0xffff
}

const fn relation_name(relation: Relation) -> Option<&'static str> {
    match relation {
        Relation::Next => None,
        Relation::AfterGap => Some("previous bytes not in the capture"),
        Relation::OutOfOrder => Some("out of order"),
        Relation::Retransmission => Some("retransmission"),
    }
}

/// The names of the flags that are set.
pub(super) fn flag_names(flags: Flags) -> Vec<&'static str> {
    [
        (Flags::SYN, "SYN"),
        (Flags::FIN, "FIN"),
        (Flags::RST, "RST"),
        (Flags::PSH, "PSH"),
        (Flags::ACK, "ACK"),
        (Flags::URG, "URG"),
        (Flags::ECE, "ECE"),
        (Flags::CWR, "CWR"),
        (Flags::AE, "AE"),
    ]
    .into_iter()
    .filter(|(flag, _)| flags.contains(*flag))
    .map(|(_, name)| name)
    .collect()
}

/// The options: what the stack knows by name, the rest by number.
fn options(header: &Header, segment: &[u8]) -> Vec<Value> {
    let known = &header.options;
    let mut list = Vec::new();
    list.extend(known.mss.map(|mss| group([("mss", mss.into())])));
    list.extend(
        known
            .window_scale
            .map(|shift| group([("window_scale", shift.into())])),
    );
    list.extend(
        known
            .sack_permitted
            .then(|| group([("sack_permitted", true.into())])),
    );
    list.extend(
        known
            .timestamps
            .map(|(value, echo)| group([("tsval", value.into()), ("tsecr", echo.into())])),
    );
    list.extend(known.sack.as_slice().iter().map(|block| {
        group([
            ("sack_left", block.left.into()),
            ("sack_right", block.right.into()),
        ])
    }));
    let header_len = usize::from(segment.get(12).copied().unwrap_or(0) >> 4) * 4;
    let mut rest = segment.get(HEADER_LEN..header_len).unwrap_or_default();
    while let Some((&kind, after)) = rest.split_first() {
        match kind {
            OPTION_END => break,
            OPTION_NOP => rest = after,
            _ => {
                let len = usize::from(after.first().copied().unwrap_or(0)).max(2);
                if !OPTIONS_KNOWN.contains(&kind) {
                    list.push(group([
                        ("kind", kind.into()),
                        ("data", rest.get(2..len).unwrap_or_default().into()),
                    ]));
                }
                rest = rest.get(len..).unwrap_or_default();
            }
        }
    }
    list
}

const OPTION_END: u8 = 0;
const OPTION_NOP: u8 = 1;
/// MSS, window scale, SACK-permitted, SACK, timestamps: named above.
const OPTIONS_KNOWN: [u8; 5] = [2, 3, 4, 5, 8];
