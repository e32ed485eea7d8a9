//! TCP flows: what was sent again, by whom and why; handshakes, resets, closed windows.
//!
//! A segment shows itself on each hop, so that a capture near enough says how far it came. The
//! cause of a retransmission is the first of these that fits: its ACK had come, its ACK was under
//! way, a link lost it, a relay that passes others on did not pass it on, or it was lost where the
//! capture does not reach.

use std::collections::BTreeMap;

use super::link::Loss;
use super::seen::SeenFlow;
use super::sleep::Waits;
use super::stations::Stations;
use super::tally::{Events, Table};
use super::view::View;

/// All flows, by the stream's number.
#[derive(Debug, Default)]
pub(super) struct Flows {
    pub(super) flows: Table<u64, Flow>,
    /// By address and node: how often packets with that address began their way over the air at the
    /// node, or ended it there.
    pub(super) edges: Table<(String, String), i64>,
}

/// A TCP connection.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// The end that opened, or was heard first; then its peer.
    pub(super) ends: [String; 2],
    pub(super) ways: [Way; 2],
    pub(super) syns: Events,
    pub(super) syn_acks: Events,
    pub(super) reset: Option<(u64, usize)>,
    pub(super) span_s: (f64, f64),
    /// The longest time without any segment, with data under way, the frames around it, and the
    /// round trip before it, s.
    pub(super) stall: (f64, [u64; 2], f64),
    last_frame: u64,
    seen: bool,
}

/// What one end sends.
#[derive(Debug, Default)]
pub(super) struct Way {
    /// The link sender nearest to the origin.
    origin: Option<String>,
    /// Nodes that were heard to pass segments on.
    relays: Vec<String>,
    segments: BTreeMap<u32, Segment>,
    pub(super) sent: u64,
    pub(super) bytes: u64,
    pub(super) fin: bool,
    pub(super) again: BTreeMap<&'static str, Again>,
    /// The links that lost segments, by the cause.
    pub(super) lost_on: Table<(&'static str, String), Events>,
    /// The window that this end announces: least and most.
    pub(super) window: Option<(u64, u64)>,
    pub(super) closed: Events,
    pub(super) closed_s: f64,
    closed_since: Option<f64>,
    /// The highest number that the peer acknowledged, as it sent it and as it came here.
    acked: u32,
    acked_here: u32,
    rtt_min_s: Option<f64>,
    /// The round trip of segments that were sent once, smoothed as TCP does (RFC 6298 §2.3).
    srtt_s: Option<f64>,
    /// The shortest time from a segment's last hop to its ACK's first.
    beyond_s: Option<f64>,
    last_again: Option<(u32, &'static str, f64, u64)>,
    /// Retransmissions of a node that polls.
    asleep: Waits,
    /// New segments of full length, and those that were sent at once after the ACK of all before.
    pub(super) fresh: u64,
    pub(super) one_by_one: u64,
    end: u32,
    acked_here_s: f64,
    /// Begins of new data after a pause with nothing under way: how many, the first and the last,
    /// s.
    bursts: (u64, f64, f64),
    /// The squares of the times between them, summed.
    burst_squares: f64,
    /// The first number heard.
    begin: Option<u32>,
    last_new_s: f64,
    /// The end of the path is not the node that is heard: what happens beyond is not.
    is_beyond: bool,
    /// Bytes of the longest segment.
    pub(super) longest: u32,
}

/// Retransmissions of one cause.
#[derive(Debug, Default)]
pub(super) struct Again {
    pub(super) events: Events,
}

#[derive(Debug)]
struct Segment {
    end: u32,
    at_s: f64,
    /// When it was last heard.
    last_s: f64,
    /// The hops on which it was heard: the sender, the receiver and the frame.
    path: Vec<(String, String, u64)>,
    again: bool,
}

impl Flows {
    /// Notes a segment that is no repeat of the link.
    pub(super) fn observe(&mut self, view: View<'_>, stations: &Stations) {
        let Some(stream) = view.number("tcp", "stream") else {
            return;
        };
        for (end, begins) in [("src", 1), ("dst", -1)] {
            let Some(addr) = view.text("ipv6", end) else {
                continue;
            };
            for (node, count) in [("src", begins), ("dst", -begins)] {
                let node = view.text("mac", node).unwrap_or_default().to_owned();
                let key = (addr.to_owned(), node);
                let has_room = self.edges.len() < EDGES_MAX || self.edges.get(&key).is_some();
                if has_room && let Some(edge) = self.edges.at(key) {
                    *edge += count;
                }
            }
        }
        if let Some(flow) = self.flows.at(stream) {
            flow.observe(view, stations);
        }
    }
}

impl Flows {
    /// The capture is over.
    pub(super) fn finish(&mut self, stations: &Stations) {
        let streams: Vec<u64> = self.flows.iter().map(|(stream, _)| *stream).collect();
        for stream in streams {
            if let Some(flow) = self.flows.get_mut(&stream) {
                flow.finish(stations);
            }
        }
    }
}

impl Flow {
    fn observe(&mut self, view: View<'_>, stations: &Stations) {
        let (number, at_s) = (view.0.number, view.at_s());
        let address = |key| view.text("ipv6", key).or_else(|| view.text("ipv4", key));
        let port = |key| view.number("tcp", key).unwrap_or(0);
        let end = |address: Option<&str>, port| format!("[{}]:{port}", address.unwrap_or("?"));
        let src = end(address("src"), port("src_port"));
        let dst = end(address("dst"), port("dst_port"));
        let flag = |name| view.lists("tcp", "flags", name);
        if !self.seen {
            let answers = flag("SYN") && flag("ACK");
            self.ends = if answers {
                [dst, src.clone()]
            } else {
                [src.clone(), dst]
            };
            self.span_s.0 = at_s;
            self.seen = true;
        }
        let way = usize::from(self.ends[0] != src);
        for way in &mut self.ways {
            let node = way.origin.as_ref();
            if let Some(node) = node.and_then(|origin| stations.nodes.get(origin)) {
                way.asleep.look(&node.polls);
            }
        }
        let silence = at_s - self.span_s.1.max(self.span_s.0);
        if self.last_frame > 0 && silence > self.stall.0 && self.is_under_way() {
            let rtt_s = self.ways.iter().filter_map(|way| way.srtt_s);
            let rtt_s = rtt_s.fold(0.0, f64::max);
            self.stall = (silence, [self.last_frame, number], rtt_s);
        }
        (self.span_s.1, self.last_frame) = (at_s, number);
        let hop = view.text("mac", "src").unwrap_or("wire").to_owned();
        let is_origin = *self.ways[way].origin.get_or_insert_with(|| hop.clone()) == hop;
        if is_origin {
            self.ways[way].is_beyond = is_beyond(address("src"), &hop);
            match (flag("SYN"), flag("ACK")) {
                (true, false) => self.syns.add(number, at_s),
                (true, true) => self.syn_acks.add(number, at_s),
                _ => {}
            }
            if flag("RST") && self.reset.is_none() {
                self.reset = Some((number, way));
            }
            self.ways[way].window(view, at_s, flag("SYN") || flag("RST"));
        }
        self.ways[way].fin |= flag("FIN");
        let len = view.number("tcp", "len").unwrap_or(0) as u32;
        let len = len + u32::from(flag("SYN")) + u32::from(flag("FIN"));
        let seq = view.number("tcp", "seq_relative").unwrap_or(0) as u32;
        let receiver = view.text("mac", "dst").unwrap_or("wire").to_owned();
        if len > 0 {
            let at = (number, at_s);
            self.ways[way].segment((seq, len), at, (hop.clone(), receiver.clone()), stations);
        }
        if let Some(ack) = view.number("tcp", "ack_relative").map(|ack| ack as u32) {
            let peer = &mut self.ways[1 - way];
            let is_here = peer.origin.as_deref() == Some(receiver.as_str());
            peer.acknowledged(ack, at_s, [is_origin, is_here, len == 0]);
        }
    }

    fn is_under_way(&self) -> bool {
        let open = |way: &Way| {
            way.segments
                .values()
                .any(|segment| segment.end > way.acked_here)
        };
        self.reset.is_none() && self.ways.iter().any(open)
    }

    /// The flow as one way from `begin_s` on, if it carried anything; `node` says whose an
    /// address is.
    pub(super) fn seen(
        &self,
        begin_s: f64,
        node: impl Fn(&str) -> Option<usize>,
    ) -> Option<SeenFlow> {
        let more = usize::from(self.ways[1].bytes > self.ways[0].bytes);
        let (way, back) = (&self.ways[more], &self.ways[1 - more]);
        let addr = |end: &str| {
            let end = end.strip_prefix('[').unwrap_or(end);
            node(end.split(']').next().unwrap_or_default())
        };
        let (from, to) = (addr(&self.ends[more]), addr(&self.ends[1 - more]));
        let is_flow = way.bytes > 1 && from != to;
        is_flow.then(|| SeenFlow {
            from,
            to,
            bytes: way.bytes.max(way.spanned()),
            start_s: self.span_s.0 - begin_s,
            seconds: self.span_s.1 - self.span_s.0,
            segment_bytes: way.longest,
            window_bytes: [way, back]
                .iter()
                .filter_map(|way| Some(way.window?.1))
                .min(),
            messages: way.messages(),
            is_closed: self.is_closed(),
            beyond_s: way.beyond_s,
            lost_beyond: way.again.get(BEYOND).map_or(0, |again| again.events.count),
            segments: way.sent,
        })
    }

    /// The capture is over.
    fn finish(&mut self, stations: &Stations) {
        for way in &mut self.ways {
            way.judge(stations, true);
        }
    }

    /// Whether both ends said that it is over.
    pub(super) fn is_closed(&self) -> bool {
        self.ways.iter().all(|way| way.fin)
    }
}

impl Way {
    fn window(&mut self, view: View<'_>, at_s: f64, is_special: bool) {
        let Some(window) = view.number("tcp", "window") else {
            return;
        };
        if is_special {
            return;
        }
        let (least, most) = self.window.unwrap_or((window, window));
        self.window = Some((least.min(window), most.max(window)));
        match (window, self.closed_since) {
            (0, None) => {
                self.closed.add(view.0.number, at_s);
                self.closed_since = Some(at_s);
            }
            (1.., Some(since)) => {
                self.closed_s += at_s - since;
                self.closed_since = None;
            }
            _ => {}
        }
    }

    fn segment(
        &mut self,
        (seq, len): (u32, u32),
        (number, at_s): (u64, f64),
        (hop, receiver): (String, String),
        stations: &Stations,
    ) {
        let is_origin = self.origin.as_deref() == Some(hop.as_str());
        self.longest = self.longest.max(len);
        let end = seq.wrapping_add(len);
        self.begin = Some(self.begin.map_or(seq, |begin| begin.min(seq)));
        if is_origin {
            self.sent += 1;
        }
        let known = self.segments.get(&seq).map(|known| known.at_s);
        match known {
            Some(first_s) if is_origin && at_s > first_s => {
                let cause = self.cause(seq, at_s, stations);
                let cause = self.unless_asleep(cause, seq, (number, at_s), stations);
                self.again
                    .entry(cause)
                    .or_default()
                    .events
                    .add(number, at_s);
                self.last_again = Some((end, cause, at_s, number));
                if let Some(segment) = self.segments.get_mut(&seq) {
                    segment.again = true;
                    segment.at_s = at_s;
                    segment.last_s = at_s;
                    segment.path = vec![(hop, receiver, number)];
                }
            }
            Some(_) => {
                if !is_origin && self.relays.len() < HOPS_MAX && !self.relays.contains(&hop) {
                    self.relays.push(hop.clone());
                }
                if let Some(segment) = self.segments.get_mut(&seq)
                    && segment.path.len() < HOPS_MAX
                {
                    segment.last_s = at_s;
                    segment.path.push((hop, receiver, number));
                }
            }
            None => {
                self.bytes += u64::from(len);
                if is_origin && len * 10 >= self.longest * 9 {
                    self.fresh += 1;
                    let is_idle =
                        self.acked_here >= self.end && at_s - self.acked_here_s < AT_ONCE_S;
                    self.one_by_one += u64::from(is_idle);
                }
                if is_origin {
                    self.begins(at_s);
                }
                self.end = self.end.max(end);
                if self.segments.len() >= SEGMENTS_MAX {
                    self.segments.pop_first();
                }
                let segment = Segment {
                    end,
                    at_s,
                    last_s: at_s,
                    path: vec![(hop, receiver, number)],
                    again: false,
                };
                self.segments.insert(seq, segment);
            }
        }
    }

    /// The origin sends new data: another message, where nothing was under way for a while.
    fn begins(&mut self, at_s: f64) {
        let is_rested = self.acked_here >= self.end && at_s - self.last_new_s > PAUSE_S;
        self.bursts = match self.bursts {
            (0, ..) => (1, at_s, at_s),
            (count, first_s, last_s) if is_rested => {
                self.burst_squares += (at_s - last_s).powi(2);
                (count + 1, first_s, at_s)
            }
            bursts => bursts,
        };
        self.last_new_s = at_s;
    }

    /// Bytes between the lowest number and the highest one that was heard or acknowledged: a
    /// sniffer misses segments.
    fn spanned(&self) -> u64 {
        let end = self.end.max(self.acked);
        self.begin
            .map_or(0, |begin| u64::from(end.saturating_sub(begin)))
    }

    /// The time between messages and the bytes of each, where data comes with pauses at even times.
    fn messages(&self) -> Option<(f64, u64)> {
        let (count, first_s, last_s) = self.bursts;
        if count < BURSTS_MIN {
            return None;
        }
        let intervals = (count - 1) as f64;
        let interval_s = (last_s - first_s) / intervals;
        let variance = self.burst_squares / intervals - interval_s.powi(2);
        // Pauses of a transfer, behind losses, come at any time: a few of them may seem even.
        let uneven = if count < BURSTS_MANY {
            UNEVEN_FEW
        } else {
            UNEVEN
        };
        let is_even = variance <= (uneven * interval_s).powi(2);
        is_even.then(|| (interval_s, self.bytes.max(self.spanned()) / count))
    }

    /// Why the segment that begins at `seq` was sent again at `now_s`.
    fn cause(&mut self, seq: u32, now_s: f64, stations: &Stations) -> &'static str {
        let Some(segment) = self.segments.get(&seq) else {
            return UNKNOWN;
        };
        if self.acked_here >= segment.end {
            // Its ACK came as far as the mesh goes, and has a way before it.
            return if self.is_beyond { EARLY } else { ACK_CAME };
        }
        if self.acked >= segment.end {
            return ACK_LATE;
        }
        let Some((from, to, frame)) = segment.path.last() else {
            return UNKNOWN;
        };
        let mut lost = |on: (&str, &str), loss| {
            let cause = match loss {
                Loss::Link => LINK,
                Loss::Collision => COLLISION,
            };
            if let Some(events) = self.lost_on.at((cause, format!("{} → {}", on.0, on.1))) {
                events.add(*frame, segment.at_s);
            }
            cause
        };
        if let Some(loss) = stations.loss_of(*frame) {
            return lost((from, to), loss);
        }
        // A link that loses a fragment drops the others: the segment is not seen on it.
        let mut onward = stations
            .links
            .of(to)
            .take(NEIGHBORS_MAX)
            .filter_map(|(ends, link)| Some((ends, link.loses_between(segment.last_s, now_s)?)));
        if let Some(((src, dst), loss)) = onward.next() {
            return lost((src, dst), loss);
        }
        match self.relays.contains(to) {
            true => RELAY,
            false => BEYOND,
        }
    }

    /// The cause, or that the sender sleeps: what its parent has for it waits until it polls.
    fn unless_asleep(
        &mut self,
        cause: &'static str,
        seq: u32,
        at: (u64, f64),
        stations: &Stations,
    ) -> &'static str {
        let node = self.origin.as_ref();
        let node = node.and_then(|origin| stations.nodes.get(origin));
        let sent = self.segments.get(&seq);
        if ![RELAY, BEYOND].contains(&cause)
            || !node
                .zip(sent)
                .is_some_and(|(node, sent)| node.polls.wait_since(sent.last_s))
        {
            return cause;
        }
        self.judge(stations, false);
        self.asleep.push(at, cause);
        ASLEEP
    }

    /// Judges retransmissions that the sender's sleep may explain: all, or one to make room.
    fn judge(&mut self, stations: &Stations, all: bool) {
        let node = self.origin.as_ref();
        let Some(node) = node.and_then(|origin| stations.nodes.get(origin)) else {
            return;
        };
        for wait in self.asleep.judge(&node.polls, all) {
            self.is_instead(ASLEEP, wait.cause, (wait.frame, wait.at_s));
        }
    }

    /// A retransmission had another cause than it seemed.
    fn is_instead(&mut self, of: &str, cause: &'static str, (frame, at_s): (u64, f64)) {
        if let Some(again) = self.again.get_mut(of) {
            again.events.count = again.events.count.saturating_sub(1);
            again.events.frames.retain(|one| *one != frame);
        }
        let again = self.again.entry(cause).or_default();
        again.events.add(frame, at_s);
    }

    /// The peer acknowledges up to `ack`; whether it is heard where the peer sends it, whether it
    /// reaches this end, and whether it carries no data.
    fn acknowledged(&mut self, ack: u32, at_s: f64, [is_sent, is_here, is_bare]: [bool; 3]) {
        if is_here || self.origin.as_deref() == Some("wire") {
            self.acked_here = self.acked_here.max(ack);
            // What follows data of the peer's may be the answer to it.
            if is_bare {
                self.acked_here_s = at_s;
            }
        }
        if !is_sent || ack <= self.acked {
            return;
        }
        self.acked = ack;
        let (mut rtt_s, mut done) = (None, Vec::new());
        for (seq, segment) in &self.segments {
            if segment.end == ack && !segment.again {
                rtt_s = Some(at_s - segment.at_s);
                let beyond_s = at_s - segment.last_s;
                let least = self.beyond_s.unwrap_or(beyond_s);
                self.beyond_s = Some(least.min(beyond_s));
            }
            if segment.end.saturating_add(KEPT_BEHIND) <= ack {
                done.push(*seq);
            }
        }
        done.iter().for_each(|seq| drop(self.segments.remove(seq)));
        if let Some(rtt_s) = rtt_s {
            let before_s = self.srtt_s.unwrap_or(rtt_s);
            self.srtt_s = Some(before_s + (rtt_s - before_s) / 8.0);
            self.rtt_min_s = Some(self.rtt_min_s.map_or(rtt_s, |least| least.min(rtt_s)));
        }
        // An ACK that comes sooner than any way there and back answers the first copy.
        if let (Some((end, cause, sent_s, number)), Some(rtt_min_s)) =
            (self.last_again, self.rtt_min_s)
            && ack >= end
            && [BEYOND, LINK, COLLISION].contains(&cause)
        {
            self.last_again = None;
            if at_s - sent_s < 0.7 * rtt_min_s {
                self.is_instead(cause, EARLY, (number, sent_s));
            }
        }
    }
}

/// Whether the node that is heard is not the one that has the address, as far as its last bits
/// show.
fn is_beyond(address: Option<&str>, hop: &str) -> bool {
    let Some(Ok(address)) = address.map(str::parse::<std::net::Ipv6Addr>) else {
        return false;
    };
    let bytes = hop.split(':').map(|byte| u8::from_str_radix(byte, 16).ok());
    let Some(link) = bytes
        .collect::<Option<Vec<u8>>>()
        .filter(|link| link.len() == 8)
    else {
        return false;
    };
    // The first byte differs in the bit that says whether the address is universal.
    !address.octets().ends_with(&link[1..])
}

/// Causes of retransmissions.
pub(super) const ACK_CAME: &str = "although its ACK had come";
pub(super) const ACK_LATE: &str = "because its ACK was lost or late";
pub(super) const EARLY: &str = "before its ACK could come (RTO below the round-trip time)";
pub(super) const LINK: &str = "because a link lost it";
pub(super) const COLLISION: &str = "because it was lost while others sent at the same time";
pub(super) const ASLEEP: &str = "because the ACK waits at its parent until it polls";
pub(super) const BEYOND: &str = "because it was lost or held up beyond what the capture shows";
pub(super) const RELAY: &str = "because a relay took it and did not pass it on in time";
const UNKNOWN: &str = "for a cause that the capture does not show";

/// New data after so long, with nothing under way, is another message.
const PAUSE_S: f64 = 0.7;
/// Messages from which on a flow is one of messages.
const BURSTS_MIN: u64 = 4;
/// By how much times between messages differ, a standard deviation, as a part of their mean: where
/// there are so many, and fewer.
const BURSTS_MANY: u64 = 8;
const UNEVEN: f64 = 0.3;
const UNEVEN_FEW: f64 = 0.1;
/// So soon after an ACK the sender waited for it.
const AT_ONCE_S: f64 = 0.1;
/// Links of a node that may have lost a segment: a hostile node has as many as it likes.
const NEIGHBORS_MAX: usize = 256;
const HOPS_MAX: usize = 64;
/// Pairs of an address and a node: each costs a look at all nodes.
const EDGES_MAX: usize = 256;
/// Segments remembered each way.
const SEGMENTS_MAX: usize = 512;
/// Sequence numbers below the acknowledged ones that stay known.
const KEPT_BEHIND: u32 = 65_536;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_pauses_of_a_transfer_are_no_messages() {
        let messages = |begins_s: &[f64]| {
            let mut way = Way::default();
            for at_s in begins_s {
                way.begins(*at_s);
            }
            way.messages().map(|(interval_s, _)| interval_s)
        };
        let interval_s = messages(&[0.0, 10.1, 20.0, 30.2]).unwrap();
        assert!((interval_s - 10.07).abs() < 0.01, "{interval_s}");
        assert_eq!(messages(&[0.0, 8.0, 20.0, 31.0]), None);
        let many = [0.0, 1.8, 4.3, 6.0, 8.2, 9.8, 12.1, 14.0];
        assert!(messages(&many).is_some());
        assert_eq!(messages(&[0.0, 10.0, 20.0]), None);
    }
}
