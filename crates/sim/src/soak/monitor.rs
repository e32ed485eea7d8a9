//! A monitor between two engines: checks that each may send its segments, given the segments of the
//! other.
//!
//! Place: `pipe` passes every segment to it as it leaves an engine. It does not read the engines'
//! state, so it judges by the rules of the protocol alone.
//! Left out: rules that depend on timers, and connections to strangers.
//! Source: RFC 9293 §3.4, §3.7.1, §3.8.6.

use std::collections::BTreeMap;

use motet::tcp::SeqNum;
use motet::wire::tcp::{Flags, Header};

/// Everything sent by either side so far, as far as rules need it.
#[derive(Debug, Default)]
pub(crate) struct Monitor {
    flows: BTreeMap<OneWay, Flow>,
    /// Numbers that went through zero.
    pub(crate) wraps: Wraps,
}

/// Numbers that went through zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Wraps {
    /// Sequence numbers, within a connection.
    pub sequence: u64,
    /// Timestamps, within a connection.
    pub timestamp: u64,
    /// The 32-bit millisecond clock of an engine.
    pub clock: u64,
    /// Datagram tags of a node.
    pub tag: u64,
}

impl Wraps {
    pub(crate) fn add(&mut self, other: &Self) {
        self.sequence += other.sequence;
        self.timestamp += other.timestamp;
        self.clock += other.clock;
        self.tag += other.tag;
    }
}

/// One direction of a connection: the sending node, its port and the peer's port.
pub(crate) type OneWay = (usize, u16, u16);

#[derive(Clone, Copy, Debug)]
struct Flow {
    isn: SeqNum,
    /// Behind the last octet sent.
    end: SeqNum,
    /// The place of the FIN, once sent.
    fin: Option<SeqNum>,
    /// The other side's ISN and the last acknowledgment, once there was one.
    ack: Option<(SeqNum, SeqNum)>,
    /// The last window sent.
    window: u16,
    /// The MSS that the SYN offered.
    mss: u16,
    timestamp: Option<u32>,
}

impl Flow {
    fn new(header: &Header) -> Self {
        let isn = SeqNum::new(header.seq);
        Self {
            isn,
            end: isn.plus(1),
            fin: None,
            ack: None,
            window: header.window,
            mss: header.options.mss.unwrap_or(MSS_DEFAULT),
            timestamp: None,
        }
    }
}

impl Monitor {
    /// A segment leaves an engine.
    ///
    /// # Errors
    /// Which rule it breaks.
    pub(crate) fn on_sent(
        &mut self,
        from: usize,
        header: &Header,
        payload_len: usize,
    ) -> Result<(), String> {
        let way = (from, header.src_port, header.dst_port);
        if header.flags.contains(Flags::RST) {
            return Ok(());
        }
        if header.flags.contains(Flags::SYN) {
            let flow = self.flows.entry(way).or_insert_with(|| Flow::new(header));
            if flow.isn.get() != header.seq {
                *flow = Flow::new(header);
            }
        }
        let back = (1 - from, header.dst_port, header.src_port);
        let other = self.flows.get(&back).copied();
        let Some(flow) = self.flows.get_mut(&way) else {
            return Ok(());
        };
        let judged = judge(flow, other.as_ref(), header, payload_len, &mut self.wraps);
        judged.map_err(|what| {
            let (from, local, remote) = way;
            let flags = header.flags.bits();
            let (seq, ack) = (header.seq, header.ack);
            format!("node {from} port {local} to {remote}: {what} (flags {flags:#x}, seq {seq}, ack {ack}, {payload_len} bytes)")
        })
    }

    /// The window that a side announced last. `None` if the other side has since begun another
    /// connection: segments to the old one are not tracked.
    pub(crate) fn window(&self, way: OneWay) -> Option<u16> {
        let (from, local, remote) = way;
        let flow = self.flows.get(&way)?;
        let other = self.flows.get(&(1 - from, remote, local))?;
        let (isn, _) = flow.ack?;
        (isn == other.isn).then_some(flow.window)
    }
}

/// Judges a segment of `flow`, and takes it in.
fn judge(
    flow: &mut Flow,
    other: Option<&Flow>,
    header: &Header,
    payload_len: usize,
    wraps: &mut Wraps,
) -> Result<(), String> {
    let seq = SeqNum::new(header.seq);
    let is_syn = header.flags.contains(Flags::SYN);
    let has_fin = header.flags.contains(Flags::FIN);
    // Lossless: payload is shorter than a packet.
    let data_at = seq.plus(u32::from(is_syn));
    let data_end = data_at.plus(payload_len as u32);
    let end = data_end.plus(u32::from(has_fin));
    if let Some(fin) = flow.fin {
        if payload_len > 0 && data_end.after(fin) || has_fin && data_end != fin {
            return Err("data behind the FIN, or a second FIN".into());
        }
    } else if has_fin {
        flow.fin = Some(data_end);
    }
    if end.after(flow.end) {
        wraps.sequence += u64::from(end.get() < flow.end.get());
        flow.end = end;
    }
    note_timestamp(flow, header, wraps);
    if header.flags.contains(Flags::ACK) {
        judge_ack(flow, other, header)?;
    }
    let acknowledged = other.filter(|other| {
        // Only the other side of this very connection limits it.
        flow.ack.is_some_and(|(isn, _)| isn == other.isn)
            && other.ack.is_some_and(|(isn, _)| isn == flow.isn)
    });
    if let Some(other) = acknowledged
        && let Some((_, ack)) = other.ack
    {
        let limit = ack.plus(u32::from(other.window) + PROBE_LEN);
        if payload_len > 0 && end.after(limit) {
            return Err(format!(
                "sent beyond the window, which ends at {}",
                limit.get()
            ));
        }
        let most = usize::from(other.mss.max(MSS_MIN));
        if payload_len + header.header_len() - HEADER_LEN > most {
            return Err(format!("longer than the peer's MSS of {most}"));
        }
    }
    Ok(())
}

/// The acknowledgment and the window's right edge never go back, and nothing is acknowledged
/// that was not sent.
fn judge_ack(flow: &mut Flow, other: Option<&Flow>, header: &Header) -> Result<(), String> {
    let (ack, window) = (SeqNum::new(header.ack), header.window);
    let Some(other) = other else { return Ok(()) };
    let is_within = ack.after(other.isn) && !ack.after(other.end);
    match flow.ack {
        // The first one says which connection of these ports it is.
        None if is_within => {}
        None => return Ok(()),
        Some((isn, _)) if isn != other.isn => return Ok(()),
        Some(_) if !is_within => {
            return Err(format!(
                "acknowledges what was not sent: {}",
                other.end.get()
            ));
        }
        Some((_, before)) => {
            let edge = before.plus(u32::from(flow.window));
            if ack.before(before) {
                return Err(format!(
                    "the acknowledgment went back from {}",
                    before.get()
                ));
            }
            // Behind the peer's FIN a window means nothing, and the buffers may be gone.
            let is_needed = other.fin.is_none_or(|fin| !ack.after(fin));
            if is_needed && ack.plus(u32::from(window)).before(edge) {
                return Err(format!("the window shrank from {}", edge.get()));
            }
        }
    }
    flow.ack = Some((other.isn, ack));
    flow.window = window;
    Ok(())
}

fn note_timestamp(flow: &mut Flow, header: &Header, wraps: &mut Wraps) {
    let Some((value, _)) = header.options.timestamps else {
        return;
    };
    if let Some(before) = flow.timestamp {
        let passed = value.wrapping_sub(before);
        wraps.timestamp += u64::from(value < before && passed < 1 << 31);
    }
    flow.timestamp = Some(value);
}

/// A probe may go one octet beyond the window (RFC 9293 §3.8.6.1).
const PROBE_LEN: u32 = 1;

/// The MSS of a peer that offers none (RFC 9293 §3.7.1).
const MSS_DEFAULT: u16 = 1_220;

/// The stack sends no smaller segments, even if the peer's MSS is smaller: 40 bytes of options and
/// 24 of data.
const MSS_MIN: u16 = 64;

/// A header without options, which the MSS leaves out.
const HEADER_LEN: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn header(from: usize, flags: Flags, seq: u32, ack: u32, window: u16) -> Header {
        let (src_port, dst_port) = if from == 0 { (1, 2) } else { (2, 1) };
        Header {
            src_port,
            dst_port,
            seq,
            ack,
            flags,
            window,
            ..Header::default()
        }
    }

    /// A connection with a window of 100 both ways; ISNs are two before zero, and 1000.
    fn connected() -> Monitor {
        let mut monitor = Monitor::default();
        let (syn, ack) = (Flags::SYN, Flags::ACK);
        for (from, flags, seq, acked) in [
            (0, syn, u32::MAX - 1, 0),
            (1, syn | ack, 1_000, u32::MAX),
            (0, ack, u32::MAX, 1_001),
        ] {
            let header = header(from, flags, seq, acked, 100);
            monitor.on_sent(from, &header, 0).unwrap();
        }
        monitor
    }

    #[test]
    fn each_rule_is_enforced() {
        let (ack, fin) = (Flags::ACK, Flags::ACK | Flags::FIN);
        let last = u32::MAX;
        // (segments: from, flags, seq, ack, window, length; what is said of the last one)
        type Sent = (usize, Flags, u32, u32, u16, usize);
        let cases: [(&[Sent], Option<&str>); 10] = [
            (&[(0, ack, last, 1_001, 100, 100)], None),
            (&[(0, ack, last, 1_001, 100, 101)], None),
            (
                &[(0, ack, last, 1_001, 100, 102)],
                Some("beyond the window"),
            ),
            (&[(1, ack, 1_001, last, 99, 0)], Some("window shrank")),
            (&[(1, ack, 1_001, 0, 99, 0)], Some("not sent")),
            (
                &[(0, ack, last, 1_001, 100, 50), (1, ack, 1_001, 49, 50, 0)],
                None,
            ),
            (
                &[
                    (0, ack, last, 1_001, 100, 50),
                    (1, ack, 1_001, 49, 50, 0),
                    (1, ack, 1_001, 48, 51, 0),
                ],
                Some("went back"),
            ),
            (
                &[
                    (0, fin, last, 1_001, 100, 10),
                    (0, ack, last, 1_001, 100, 11),
                ],
                Some("behind the FIN"),
            ),
            (
                &[
                    (0, fin, last, 1_001, 100, 10),
                    (0, fin, last, 1_001, 100, 9),
                ],
                Some("second FIN"),
            ),
            (
                &[
                    (1, ack, 1_001, last, 9_000, 0),
                    (0, ack, last, 1_001, 100, 1_221),
                ],
                Some("MSS"),
            ),
        ];
        for (segments, expected) in cases {
            let mut monitor = connected();
            let mut result = Ok(());
            for (from, flags, seq, acked, window, len) in segments {
                assert_eq!(result, Ok(()));
                let header = header(*from, *flags, *seq, *acked, *window);
                result = monitor.on_sent(*from, &header, *len);
            }
            match expected {
                None => assert_eq!(result, Ok(()), "{segments:?}"),
                Some(words) => {
                    let error = result.expect_err(words);
                    assert!(error.contains(words), "{error}");
                }
            }
        }
    }

    #[test]
    fn wraps_are_counted_once() {
        let mut monitor = connected();
        let header = header(0, Flags::ACK, u32::MAX, 1_001, 100);
        monitor.on_sent(0, &header, 50).unwrap();
        monitor.on_sent(0, &header, 50).unwrap();
        assert_eq!(monitor.wraps.sequence, 1);
    }
}
