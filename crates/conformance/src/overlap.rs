//! Scripts on overlapping segments, generated from a model of a receiver's reports.
//!
//! Purpose: [`scripts`] gives a script for each segment between any two of some places in the
//! sequence space, over one kept block and over two, with RCV.NXT below, inside and above it; and
//! for four blocks that arrive in any order. The expected ACK and SACK option come from
//! `Receiver`, a model that shares no code with the engine.
//!
//! Place: the tests of this crate play them, and so does packetdrill's library
//! (`crates/packetdrill/tests/agree`). Left out: data beyond the window, which scripts in
//! `conformance/` cover.
//! Sources: RFC 2018 §4, the order of blocks; RFC 2883 §4, the report of duplicates.

use std::fmt::Write as _;

/// A script that was written by [`scripts`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Generated {
    /// The file name for the script.
    pub name: String,
    /// The script's text.
    pub text: String,
}

/// Octets from a sequence number up to another one, which is not among them.
type Range = (u32, u32);

/// Every script, in the order of names within each group.
pub fn scripts() -> Vec<Generated> {
    let orders = orders().into_iter().map(recent_first);
    let one = pairs(&PLACES_ONE).map(|segment| overlap("one", &KEPT[..1], segment));
    let two = pairs(&PLACES_TWO).map(|segment| overlap("two", &KEPT, segment));
    orders.chain(one).chain(two).collect()
}

/// Blocks of 100 octets arrive in this order; then the gap before the lowest one is filled.
fn recent_first(order: [u32; 4]) -> Generated {
    let mut script = Script::new(
        "// RFC 2018 §4: behind the first block, those reported last come first; also when the ACK advances.\n",
    );
    for number in order {
        let left = 200 * number + 1;
        script.segment((left, left + 100), "0");
    }
    script.segment((1, 101), "0");
    script.segment((101, 201), "0");
    let digits = order.map(|number| number.to_string()).concat();
    script.end(format!("rfc2018_recent_first_{digits}.pkt"))
}

/// `segment` arrives where RCV.NXT is 301 and the blocks `kept` arrived in this order.
fn overlap(blocks: &str, kept: &[Range], segment: Range) -> Generated {
    let mut script = Script::new(match kept {
        [_] => {
            "// RFC 2883 §4: the duplicate part of a segment is reported. RCV.NXT is 301; 501:701 is kept.\n"
        }
        _ => {
            "// RFC 2883 §4: of what a segment holds twice, the first part is reported, then the block around\n\
             // it. RCV.NXT is 301; 501:701 and then 901:1101 are kept.\n"
        }
    });
    // A segment in order, with nothing kept: its ACK is delayed.
    script.segment((1, 301), ".1");
    for block in kept {
        script.segment(*block, "0");
    }
    script.segment(segment, "0");
    let (left, right) = segment;
    script.end(format!("rfc2883_overlap_{blocks}_{left}_{right}.pkt"))
}

/// A script under way, and the receiver that it describes.
struct Script {
    text: String,
    receiver: Receiver,
}

impl Script {
    /// A connection after its handshake.
    fn new(requirement: &str) -> Self {
        Self {
            text: format!("{requirement}{OPEN}"),
            receiver: Receiver {
                next: 1,
                kept: Vec::new(),
            },
        }
    }

    /// A segment arrives and is acknowledged after `delay`, in seconds.
    fn segment(&mut self, segment: Range, delay: &str) {
        let (left, right) = segment;
        let blocks = self.receiver.on_segment(segment);
        let blocks: Vec<String> = blocks
            .iter()
            .map(|(left, right)| format!("{left}:{right}"))
            .collect();
        let option = match blocks.as_slice() {
            [] => String::new(),
            blocks => format!(" <nop,nop,sack {}>", blocks.join(" ")),
        };
        // Writing to a string cannot fail.
        let _ = write!(
            self.text,
            "+.01 < P. {left}:{right}({}) ack 1 win 8000\n+{delay} > . 1:1(0) ack {}{option}\n",
            right - left,
            self.receiver.next,
        );
    }

    /// The application reads all that is in order.
    fn end(mut self, name: String) -> Generated {
        let in_order = self.receiver.next - 1;
        let _ = writeln!(self.text, "+0 read(4, ..., 10000) = {in_order}");
        Generated {
            name,
            text: self.text,
        }
    }
}

/// The model: what a receiver has, and reports.
struct Receiver {
    /// RCV.NXT: the next sequence number expected.
    next: u32,
    /// Blocks above RCV.NXT, the one that was reported last first.
    kept: Vec<Range>,
}

impl Receiver {
    /// Takes a segment; returns the blocks of the SACK option in the ACK of it.
    fn on_segment(&mut self, segment: Range) -> Vec<Range> {
        let duplicate = self.duplicate(segment);
        let around = self.join(segment);
        // RFC 2018 §4: the block around the segment first, then the others, the latest first.
        self.kept.extend(around);
        self.kept.rotate_right(usize::from(around.is_some()));
        while let Some(at) = self.kept.iter().position(|(left, _)| *left <= self.next) {
            let (_, right) = self.kept.remove(at);
            self.next = self.next.max(right);
        }
        // RFC 2883 §4: a duplicate goes before them.
        let blocks = duplicate.into_iter().chain(self.kept.iter().copied());
        blocks.take(SACK_BLOCKS_MAX).collect()
    }

    /// The first part of a segment that the receiver has already.
    fn duplicate(&self, (left, right): Range) -> Option<Range> {
        let below = (0, self.next);
        let known = self.kept.iter().chain([&below]);
        known
            .map(|(from, to)| (left.max(*from), right.min(*to)))
            .filter(|(from, to)| from < to)
            .min()
    }

    /// Takes the blocks out that a segment touches, and returns the block of all of them; none
    /// where all the segment lies below RCV.NXT.
    fn join(&mut self, (left, right): Range) -> Option<Range> {
        let mut whole = (left.max(self.next), right);
        if whole.0 >= right {
            return None;
        }
        self.kept.retain(|(from, to)| {
            let touches = *from <= right && *to >= left;
            if touches {
                whole = (whole.0.min(*from), whole.1.max(*to));
            }
            !touches
        });
        Some(whole)
    }
}

/// The four numbers in every order.
fn orders() -> Vec<[u32; 4]> {
    let mut orders = Vec::new();
    for code in 0..4_u32.pow(4) {
        let order = [64, 16, 4, 1].map(|weight| code / weight % 4 + 1);
        if (1..=4).all(|number| order.contains(&number)) {
            orders.push(order);
        }
    }
    orders
}

/// All segments between two of these places.
fn pairs(places: &[u32]) -> impl Iterator<Item = Range> + '_ {
    let lefts = places.iter().enumerate();
    lefts.flat_map(|(at, left)| places[at + 1..].iter().map(|right| (*left, *right)))
}

/// Blocks that are kept, in the order in which they arrive.
const KEPT: [Range; 2] = [(501, 701), (901, 1101)];

/// Edges of what was received, places inside it and places between: with one block kept.
const PLACES_ONE: [u32; 7] = [101, 301, 401, 501, 601, 701, 801];

/// The places for the cases with two blocks kept.
const PLACES_TWO: [u32; 12] = [
    101, 201, 301, 401, 501, 601, 701, 801, 901, 1001, 1101, 1201,
];

/// Blocks for which a TCP header without timestamps has room (RFC 2018 §3).
const SACK_BLOCKS_MAX: usize = 4;

const OPEN: &str = "\
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < S 0:0(0) win 8000 <mss 1000,nop,nop,sackOK>
+0 > S. 0:0(0) ack 1 win 9760 <mss 1440,nop,nop,sackOK>
+.1 < . 1:1(0) ack 1 win 8000
+0 accept(3, ..., ...) = 4
";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_case_is_there_once() {
        let all = scripts();
        let names: BTreeSet<&str> = all.iter().map(|script| script.name.as_str()).collect();
        // 4! orders; 7 places over one block, 12 over two.
        assert_eq!((all.len(), names.len()), (24 + 21 + 66, 111));
    }

    /// The examples of RFC 2883 §4.2.2 and §4.2.3, with other numbers.
    #[test]
    fn the_model_reports_as_the_rfc_does() {
        let receiver = || Receiver {
            next: 301,
            kept: vec![(501, 701)],
        };
        let cases: [(Range, u32, &[Range]); 6] = [
            ((101, 301), 301, &[(101, 301), (501, 701)]),
            ((301, 401), 401, &[(501, 701)]),
            ((601, 801), 301, &[(601, 701), (501, 801)]),
            ((701, 801), 301, &[(501, 801)]),
            ((101, 801), 801, &[(101, 301)]),
            ((801, 901), 301, &[(801, 901), (501, 701)]),
        ];
        for (segment, next, blocks) in cases {
            let mut receiver = receiver();
            let reported = receiver.on_segment(segment);
            assert_eq!(
                (receiver.next, reported.as_slice()),
                (next, blocks),
                "{segment:?}"
            );
        }
    }
}
