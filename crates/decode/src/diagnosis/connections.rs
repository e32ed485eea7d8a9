//! What is wrong with TCP connections.
//!
//! Place: beside `findings`, which asks for each flow; `flows` has counted.

use super::flows::{self, Flow, Way};
use super::list::Findings;
use super::rules::{counted, many_again};

impl Findings {
    /// Notes what is wrong with a flow.
    pub(super) fn flow(&mut self, flow: &Flow) {
        let name = format!("{} ↔ {}", flow.ends[0], flow.ends[1]);
        if flow.syns.count >= 2 && flow.syn_acks.count == 0 && flow.reset.is_none() {
            let text = format!(
                "{} gets no answer to {} SYNs",
                flow.ends[0], flow.syns.count
            );
            self.add(92, "no-answer", &name, text, &flow.syns.frames);
            return;
        }
        if let Some((frame, way)) = flow.reset {
            let by = &flow.ends[way];
            let (code, text) = match flow.syn_acks.count {
                0 if flow.syns.count > 0 => (
                    "refused",
                    format!("{by} refuses the connection: nobody listens there"),
                ),
                _ => ("reset", format!("{by} resets the connection")),
            };
            self.add(80, code, &name, text, &[frame]);
        }
        let (syns, syn_acks) = (flow.syns.count, flow.syn_acks.count);
        let wait_s = flow.syn_acks.span_s.0 - flow.syns.span_s.0;
        // RFC 6298 §2.1: the first RTO.
        let is_slow = syns > 0 && syn_acks > 0 && wait_s >= 1.0;
        // One that is lost is sent again, as any other segment.
        if is_slow || syns.max(syn_acks) >= 3 || syns.min(syn_acks) >= 2 {
            let slow = match is_slow {
                true => format!(": the first answer took {wait_s:.1} s, longer than the first RTO"),
                false => String::new(),
            };
            let text = format!(
                "the handshake of {name} took {} and {}{slow}",
                counted(syns, "SYN"),
                counted(syn_acks, "SYN-ACK")
            );
            let frames = [&flow.syns.frames[..], &flow.syn_acks.frames].concat();
            self.add(28, "handshake", &name, text, &frames);
        }
        let (stall_s, frames, rtt_s) = flow.stall;
        if stall_s >= STALL_S.max(STALL_RTTS * rtt_s) {
            let text =
                format!("the flow {name} stands still for {stall_s:.0} s with data under way");
            self.add(68, "stall", &name, text, &frames);
        }
        let [client, server] = &flow.ends;
        let [there, back] = &flow.ways;
        self.way(&name, [client, server], [there, back]);
        self.way(&name, [server, client], [back, there]);
    }

    fn way(&mut self, name: &str, [sender, receiver]: [&str; 2], [way, peer]: [&Way; 2]) {
        for (cause, again) in &way.again {
            let events = &again.events;
            let share = 100.0 * events.count as f64 / way.sent.max(1) as f64;
            if events.count < 3 || share < many_again(cause) {
                continue;
            }
            let on: Vec<String> = way
                .lost_on
                .iter()
                .filter(|((of, _), _)| of == cause)
                .map(|((_, link), events)| format!("{link} ({})", events.count))
                .take(4)
                .collect();
            let is_of_link = [flows::LINK, flows::COLLISION].contains(cause);
            let on = match is_of_link && !on.is_empty() {
                true => format!(": {}", on.join(", ")),
                false => String::new(),
            };
            let text = format!(
                "{sender} sends {} again, {share:.0} % of what it sends, {cause}{on}",
                counted(events.count, "segment")
            );
            let severity = match *cause {
                flows::EARLY => 62,
                flows::ACK_CAME => 58,
                flows::BEYOND => 64,
                _ => 50,
            };
            self.add(severity, "retransmissions", name, text, &events.frames);
        }
        // A window that closes for a moment delays nobody.
        let is_long = way.closed_s >= CLOSED_S * way.closed.count as f64;
        if way.closed_s >= 1.0 || (way.closed.count >= 3 && is_long) {
            let text = format!(
                "{sender} closes its window {} times, for {:.1} s: its application reads too slowly for {receiver}",
                way.closed.count, way.closed_s
            );
            self.add(66, "zero-window", name, text, &way.closed.frames);
        } else if way.fresh >= 30 && way.one_by_one * 10 >= way.fresh * 9 {
            let text = format!(
                "{sender} sends one segment at a time, and waits for the ACK of each: its buffer or its congestion \
                 window holds no more"
            );
            self.add(48, "one-by-one", name, text, &[]);
        } else if let Some((_, most)) = peer.window
            && way.sent >= 20
            && most < 2 * u64::from(way.longest)
        {
            let text = format!(
                "{receiver} offers a window of {most} B at most, less than two segments: each segment waits for the ACK of the last"
            );
            self.add(48, "small-window", name, text, &[]);
        }
    }
}

/// A pause of a flow with data under way that is one: longer than an RTO of a second, doubled
/// twice, which a few losses in a row make.
const STALL_S: f64 = 8.0;
/// And longer than so many of the flow's own round trips, on which its RTO rests.
const STALL_RTTS: f64 = 20.0;
/// How long a window is closed each time, s, that delays its sender: a round trip over a few hops.
const CLOSED_S: f64 = 0.1;
