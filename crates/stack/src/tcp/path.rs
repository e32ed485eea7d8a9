//! The facts that a connection learns about its path: from ICMPv6, from a link that gave its
//! segment up, and where no route leads to the peer.
//!
//! Place: `arrival` finds the connection of the quoted segment, and `departure` finds out that a
//! route is missing. Left out: the effect of a smaller MSS on segments (`output`).
//! Sources: RFC 1122 §4.2.3, RFC 5927, RFC 5461 §4, RFC 6069, RFC 8201.

use super::connection::Connection;
use super::facts::Facts;
use super::output::Plan;
use super::rtt;
use super::seq::SeqNum;
use super::timers::{Purpose, Timer};
use super::types::{Error, IcmpError};
use crate::limits::IPV6_MTU_MIN;

impl Connection<'_> {
    /// Handles an ICMPv6 error about a segment of ours that began at `seq`.
    pub(super) fn on_icmp_error(&mut self, seq: SeqNum, error: IcmpError) {
        if seq.before(self.snd_una) || !seq.before(self.snd_nxt) {
            return;
        }
        match error {
            IcmpError::PacketTooBig(mtu) => self.on_packet_too_big(mtu),
            // RFC 5461 §4: while connecting, believe it; later, an established path may
            // recover, and anybody may forge ICMP.
            IcmpError::Hard if self.is_connecting() => self.end(Some(Error::Unreachable)),
            IcmpError::Hard | IcmpError::Soft => self.facts.set(Facts::SOFT_ERROR),
            IcmpError::Disrupted => {
                self.facts.set(Facts::SOFT_ERROR);
                self.on_disrupted(seq);
            }
        }
    }

    /// A segment of ours that began at `seq` was not passed on, for want of a route or of an answer
    /// of the neighbour. If it was a retransmission of the oldest segment after a timeout, the last
    /// doubling of the RTO is taken back, and the timer brought forward by it (RFC 6069 §4.2). More
    /// retransmissions do not end the connection any sooner: time decides ([`super::clock`]).
    pub(super) fn on_disrupted(&mut self, seq: SeqNum) {
        let is_oldest = seq == self.snd_una && self.flight() > 0;
        let is_repair = self.retries > 0 && self.timers.purpose() == Some(Purpose::Retransmit);
        if !is_oldest || !is_repair || self.is_connecting() {
            return;
        }
        let left = self.left_ms(Timer::Transmit).unwrap_or_default();
        let limit = self.config.user_timeout_ms;
        // Where the user timeout comes before the RTO, the deadline does not tell when the timer
        // was armed. The latest time is now.
        let is_clipped = limit != 0 && self.since_progress_ms().saturating_add(left) >= limit;
        let elapsed = match is_clipped {
            true => 0,
            false => self.rtt.rto_ms(self.config).saturating_sub(left),
        };
        self.rtt.take_back_doubling();
        let wait = self.rtt.rto_ms(self.config).saturating_sub(elapsed);
        if wait < left {
            self.arm_transmit(Purpose::Retransmit, wait);
        }
    }

    /// As [`Self::on_disrupted`], where this node's own link gave the segment up: it is lost for
    /// certain. Before the first timeout the timer is brought forward to the least RTO from now. A
    /// fast retransmission that found no way would else wait for the whole RTO, which is half a
    /// minute where a router has held acknowledgments for long. Motet's own; Linux tries a segment
    /// that it could not pass on again within half a second.
    pub(super) fn on_given_up(&mut self, seq: SeqNum) {
        let is_oldest = seq == self.snd_una && self.flight() > 0;
        let is_armed = self.timers.purpose() == Some(Purpose::Retransmit);
        if self.retries > 0 || !is_oldest || !is_armed || self.is_connecting() {
            return self.on_disrupted(seq);
        }
        let left = self.left_ms(Timer::Transmit).unwrap_or_default();
        let least = rtt::least_ms(self.config);
        if least < left {
            self.arm_transmit(Purpose::Retransmit, least);
        }
    }

    /// There is no route to the peer for the segment `plan`. If the peer would have to acknowledge
    /// it, it counts as sent and lost, so that the connection gives up as on a path that loses
    /// everything. A missing route is a soft error, and does not end the connection at once (RFC
    /// 1122 §4.2.3.5 and §4.2.3.9). A reset is discarded, so that its slot becomes free.
    pub(super) fn on_no_route(&mut self, plan: &Plan) {
        self.facts.clear(Facts::RESET_DUE);
        self.facts.set(Facts::SOFT_ERROR);
        self.on_wait(plan);
    }

    /// The segment `plan` has to wait for as long as the link pleases. If the peer would have to
    /// acknowledge it, the connection gives up in time, as on a path that loses everything.
    pub(super) fn on_wait(&mut self, plan: &Plan) {
        if plan.is_insisted_on() && self.timers.purpose().is_none() {
            // The count so far was of unanswered keepalives.
            self.retries = 0;
            self.note_progress();
            self.arm_timeout(Purpose::Retransmit);
        }
    }

    /// Packet Too Big (RFC 8201): sends smaller segments from now on, and retransmits those that
    /// were too big.
    fn on_packet_too_big(&mut self, mtu: u32) {
        let mss = mtu.saturating_sub(PACKET_OVERHEAD).min(u32::from(u16::MAX)) as u16;
        // Below IPv6's minimum is forged or for a fragmenting router (RFC 8201 §4).
        if mtu < IPV6_MTU_MIN as u32 || mss >= self.smss {
            return;
        }
        self.smss = mss;
        if self.state().transmits() && self.flight() > 0 {
            self.loss.on_too_big(self.snd_nxt, self.now_ms);
        }
    }
}

/// IPv6 and TCP headers without options: what an MSS leaves out.
const PACKET_OVERHEAD: u32 = 60;
