//! The profile `freebsd`: FreeBSD's behaviour around its TCP where RFC 9293 leaves a choice.
//!
//! Place: between the edge and the engine. FreeBSD's test scripts expect FreeBSD's choices. Each
//! choice here stays within the RFCs, is made through the engine's own functions, and does not
//! depend on the script that runs.
//!
//! Frozen: the profile is kept for the scripts that pass with it; nothing is added to it.
//!
//! - The window that resets and SYNs are checked against is what the socket buffer has free,
//!   of which 65,535 bytes can be announced without a scale (RFC 9293 §3.4, RFC 5961 §3.2).
//! - TIME-WAIT ignores resets (RFC 1337 §4, F1), drops segments without ACK, and answers every
//!   segment except a repetition of the ACK that ended the close.
//! - A FIN that is not acknowledged goes out again with every ACK.
//! - The application learns of a reset in CLOSING or LAST-ACK.
//! - The SYN's timeout doubles first, and the slop is added afterwards. A second SYN requests ECN
//!   again. A SYN after the third may have no options (all by knobs).
//! - Knobs that give up RFC 5961 or drop a SYN with FIN act here.

use motet::tcp::{Handle, State};

use super::edge::Flow;
use super::{Errno, Host, Opening, Sent, Stream, config_of};
use crate::packet::{ACK, FIN, HOP_LIMIT, Packet, RST, SYN, Segment, TcpOption};

/// Knobs of this profile alone.
#[derive(Clone, Copy, Debug)]
pub struct Knobs {
    /// A reset anywhere in the window is taken, as RFC 793 had it.
    pub insecure_rst: bool,
    /// A SYN anywhere in the window is an error that resets the connection, as RFC 793 had it.
    pub insecure_syn: bool,
    /// Segments with both SYN and FIN are dropped.
    pub drop_synfin: bool,
    /// ICMPv6 errors may end an attempt to connect.
    pub icmp_may_rst: bool,
    /// How many SYNs after the first one ask for ECN.
    pub ecn_retries: u8,
    /// The third SYN sent again, and later ones, have no option but the MSS.
    pub drop_options: bool,
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            insecure_rst: false,
            insecure_syn: false,
            drop_synfin: false,
            icmp_may_rst: true,
            ecn_retries: 1,
            drop_options: false,
        }
    }
}

/// The last numbers sent on a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// The last acknowledgment, and the window with it, unscaled.
    acknowledged: u32,
    window: u32,
    /// One behind the last sequence number.
    next: u32,
    /// SYNs without ACK sent so far.
    syns: u8,
}

/// The state of a flow's connection.
struct Known {
    handle: Handle,
    state: State,
    space: u32,
}

impl Host<'_> {
    /// Changes a segment on its way to the engine; returns whether it gets there, and whether with
    /// its payload.
    pub(super) fn freebsd_inbound(&mut self, flow: Flow, segment: &mut Segment) -> Fate {
        let knobs = self.settings.freebsd;
        if knobs.drop_synfin && segment.has(SYN) && segment.has(FIN) {
            return Fate::Dropped;
        }
        // Answers to these segments are sent as they are, without the FIN.
        self.is_challenged = segment.flags & (SYN | RST) != 0;
        let Some(seen) = self.seen.get(&flow).copied() else {
            return Fate::Whole;
        };
        let known = self.known(flow);
        let state = known.as_ref().map(|known| known.state);
        if state == Some(State::SynSent) {
            return Fate::Whole;
        }
        let space = known.as_ref().map_or(WINDOW_MAX, |known| known.space);
        let ahead = segment.seq.wrapping_sub(seen.acknowledged);
        let in_space = ahead < space;
        if segment.has(RST) {
            match state {
                Some(State::TimeWait) => return Fate::Dropped,
                _ if in_space && knobs.insecure_rst => segment.seq = seen.acknowledged,
                // The segment lies beyond the announced window, but there is room: it counts as
                // if at the window's very end.
                _ if in_space && ahead >= seen.window && seen.window > 0 => {
                    segment.seq = seen.acknowledged.wrapping_add(seen.window - 1);
                }
                _ => {}
            }
            return Fate::Whole;
        }
        let Some(known) = known else {
            return Fate::Whole;
        };
        if segment.has(SYN) {
            let in_space = ahead < space.min(WINDOW_MAX) || in_space && state != TIME_WAIT;
            if knobs.insecure_syn && in_space && known.state != State::SynReceived {
                let is_told = known.state != State::TimeWait;
                self.tcp.abort(known.handle);
                self.lend_error(flow, Errno::ECONNRESET);
                return if is_told { Fate::Dropped } else { Fate::Reset };
            }
            return Fate::Whole;
        }
        if known.state == State::TimeWait {
            return in_time_wait(seen, segment);
        }
        Fate::Whole
    }

    /// Judges what the engine did with a segment with these flags, of a connection that was in
    /// the state `before`.
    pub(super) fn freebsd_after(&mut self, flow: Flow, flags: u16, before: Option<State>) {
        let waited = matches!(before, Some(State::Closing | State::LastAck));
        if waited && flags & RST != 0 && self.known(flow).is_none() {
            self.lend_error(flow, Errno::ECONNRESET);
        }
    }

    /// Changes a segment on its way out, and remembers it.
    pub(super) fn freebsd_outbound(&mut self, flow: Flow, segment: &mut Segment) {
        let known = self.known(flow);
        let state = known.as_ref().map(|known| known.state);
        let closing = matches!(
            state,
            Some(State::FinWait1 | State::Closing | State::LastAck)
        );
        let mut seen = self.seen.get(&flow).copied().unwrap_or_default();
        let bare = segment.flags == ACK && segment.len == 0 && segment.seq == seen.next;
        if closing && bare && !self.is_challenged {
            segment.flags |= FIN;
            segment.seq = segment.seq.wrapping_sub(1);
        }
        if segment.has(SYN) && !segment.has(ACK) {
            let again = seen.syns > 0 && seen.next == segment.seq.wrapping_add(1);
            seen.syns = if again {
                seen.syns.saturating_add(1)
            } else {
                1
            };
            let asks = seen.syns <= self.settings.freebsd.ecn_retries.saturating_add(1);
            if self.settings.ecn_active && asks {
                segment.flags |= ECE | CWR;
            }
            self.stretch_syn_timeout(flow, seen.syns);
        }
        let control = u32::from(segment.has(SYN)) + u32::from(segment.has(FIN));
        let next = segment.seq.wrapping_add(segment.len as u32 + control);
        if segment.has(SYN) || next.wrapping_sub(seen.next) as i32 > 0 {
            seen.next = next;
        }
        if segment.has(ACK) && !segment.has(RST) {
            seen.acknowledged = segment.ack;
            seen.window = u32::from(segment.window);
        }
        self.seen.insert(flow, seen);
    }

    /// Takes options away that a segment of this profile must not bear.
    pub(super) fn freebsd_options(&self, flow: Flow, segment: &mut Segment) {
        let options = self.stream_of_ref(flow).map(|stream| &stream.options);
        if options.is_some_and(|options| options.no_options) {
            segment.options.clear();
        }
        let count = self.seen.get(&flow).map_or(0, |seen| seen.syns);
        if segment.flags & (SYN | ACK) != SYN {
            return;
        }
        if self.settings.freebsd.drop_options && count > 3 {
            let is_mss = |option: &TcpOption| matches!(option, TcpOption::Mss(_));
            segment.options.retain(is_mss);
        }
        for option in &mut segment.options {
            if let (TcpOption::Mss(mss), Some(max)) = (option, options.and_then(|o| o.mss_max)) {
                *mss = max.min(*mss);
            }
        }
    }

    /// Makes the engine's next timeout the first one doubled, with the slop once. The engine
    /// doubles its value; so the value set here is the wanted one divided by as much.
    fn stretch_syn_timeout(&mut self, flow: Flow, count: u8) {
        let settings = &self.settings;
        let Some(stream) = self
            .stream_of_ref(flow)
            .filter(|stream| stream.opening == Opening::Connecting)
        else {
            return;
        };
        let mut config = config_of(settings, &stream.options, Opening::Connecting);
        let slop = config.rto_slop_ms.checked_shr(u32::from(count));
        config.rto_initial_ms = config.rto_initial_ms.saturating_add(slop.unwrap_or(0));
        let handle = stream.handle;
        let config = self.arena.alloc(config);
        self.tcp.set_config(handle, config, self.now);
    }

    /// A path's MTU bounds the MSS that a SYN announces, too.
    pub(super) fn freebsd_packet_too_big(&mut self, flow: Flow, mtu: u32, seq: Option<u32>) {
        let syn = self.seen.get(&flow).map(|seen| seen.next.wrapping_sub(1));
        let mss = mtu.saturating_sub(60).min(65_535) as u16;
        if seq.is_none() || syn != seq || mss < IPV6_MSS_MIN {
            return;
        }
        let count = self.seen.get(&flow).map_or(1, |seen| seen.syns);
        if let Some(stream) = self
            .stream_of(flow)
            .filter(|stream| stream.opening == Opening::Connecting)
        {
            let limit = stream.options.mss_max.unwrap_or(mss).min(mss);
            stream.options.mss_max = Some(limit);
            self.stretch_syn_timeout(flow, count);
        }
    }

    /// The reset of a connection that is over, as an answer to `packet`.
    pub(super) fn freebsd_reset(&mut self, flow: Flow, packet: &Packet) {
        let seen = self.seen.get(&flow).copied().unwrap_or_default();
        let answer = Packet {
            src: packet.dst,
            dst: packet.src,
            traffic_class: 0,
            hop_limit: HOP_LIMIT,
            segment: Segment {
                src_port: packet.segment.dst_port,
                dst_port: packet.segment.src_port,
                seq: seen.next,
                ack: seen.acknowledged,
                flags: RST | ACK,
                window: 0,
                urgent: 0,
                options: Vec::new(),
                len: 0,
            },
        };
        self.sent.push_back(Sent {
            at: self.now,
            bytes: answer.emit(&[]),
        });
    }

    fn known(&self, flow: Flow) -> Option<Known> {
        let stream = self.stream_of_ref(flow)?;
        let connection = self.tcp.connection(stream.handle)?;
        let state = connection.state();
        (state != State::Closed).then_some(Known {
            handle: stream.handle,
            state,
            space: stream.recv_space,
        })
    }

    /// The state of a flow's connection, while it has one.
    pub(super) fn state_of(&self, flow: Flow) -> Option<State> {
        self.known(flow).map(|known| known.state)
    }

    fn stream_of_ref(&self, flow: Flow) -> Option<&Stream> {
        let ends_here = |stream: &Stream| {
            self.tcp
                .connection(stream.handle)
                .is_some_and(|connection| {
                    let ends = connection.endpoints();
                    (ends.remote, ends.remote_port, ends.local_port) == flow
                })
        };
        self.streams()
            .map(|(_, stream)| stream)
            .find(|stream| ends_here(stream))
    }

    fn lend_error(&mut self, flow: Flow, errno: Errno) {
        if let Some(stream) = self.stream_of(flow) {
            stream.lent_error = Some(errno);
        }
    }
}

/// The fate of a segment that arrives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// Passed to the engine, payload and all.
    Whole,
    /// Passed to the engine, without its payload.
    Bare,
    /// Not passed on.
    Dropped,
    /// Not passed on, and answered with a reset: the engine's TIME-WAIT ends without one.
    Reset,
}

/// TIME-WAIT: the ACK that ends the peer's close passes unchanged. Any other segment with an ACK is
/// replaced by an ACK whose sequence number is one left of the window, so that the engine answers
/// it with its own ACK (RFC 9293 §3.10.7.4).
fn in_time_wait(seen: Seen, segment: &mut Segment) -> Fate {
    if !segment.has(ACK) {
        return Fate::Dropped;
    }
    let is_known = segment.flags == ACK
        && (segment.seq, segment.len, segment.ack) == (seen.acknowledged, 0, seen.next);
    if !is_known {
        segment.flags = ACK;
        segment.seq = seen.acknowledged.wrapping_sub(1);
        segment.ack = seen.next;
        segment.len = 0;
    }
    Fate::Bare
}

/// The greatest window without a scale, bytes.
const WINDOW_MAX: u32 = 65_535;
const TIME_WAIT: Option<State> = Some(State::TimeWait);
const ECE: u16 = 0x40;
const CWR: u16 = 0x80;
/// The MSS that IPv6's least MTU, 1,280, leaves (RFC 8201 §4).
const IPV6_MSS_MIN: u16 = 1220;
