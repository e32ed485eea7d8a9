//! What the connections do: TCP, as far as headers show it.
//!
//! They open, send, answer, ask, send again and close. Left out: payload, of which only
//! lengths count, and congestion control.

use crate::wire::tcp::{Flags, Header, SackBlock};

use super::peer::{Clock, Peer, Phase, before, close};
use super::{Dice, World};

impl World {
    /// Ends a connection's life at both ends.
    pub(super) fn finish(&mut self, at: usize) {
        let connection = &mut self.connections[at];
        for peer in &mut connection.peers {
            close(peer);
        }
        connection.restart_at = self.now_us + u64::from(self.dice.below(400)) * 10_000;
    }

    fn start(&mut self, at: usize) {
        let opener = self.dice.below(2) as usize;
        let dice = &mut self.dice;
        let isn = |dice: &mut Dice| match dice.below(4) {
            0 => 0u32.wrapping_sub(dice.below(30_000)),
            1 => (1u32 << 31).wrapping_sub(dice.below(30_000)),
            _ => dice.next() as u32,
        };
        let ports = match self.connections[at].peers[0].ports {
            (0, _) => (10_000 + at as u16, 80),
            ports if dice.chance(500) => ports,
            (port, _) => (port + 3, 80),
        };
        let has_timestamps = self.setup.timestamps;
        let last = self.connections[at].peers.each_ref().map(|peer| peer.nxt);
        let mut peers = [0, 1].map(|end| {
            let mut peer = Peer::closed();
            // As RFC 6528 has it: far from where the life before was.
            let last = last[end];
            peer.una = isn(dice);
            while (peer.una.wrapping_sub(last) as i32).unsigned_abs() < 200_000 {
                peer.una = isn(dice);
            }
            peer.nxt = peer.una;
            peer.ports = if end == 0 { ports } else { (ports.1, ports.0) };
            peer.window_max = if end == 0 {
                self.setup.window
            } else {
                [self.setup.window, 4096, 64_240][dice.below(3) as usize]
            };
            // What fits the contexts' bound of what may be in flight towards a mote.
            peer.shift = if end == 1 && dice.chance(300) { 2 } else { 0 };
            peer.to_send = match dice.below(3) {
                0 => 0,
                1 => dice.below(60) * self.setup.mss,
                _ => dice.below(4_000),
            };
            peer.ts = has_timestamps.then(|| Clock {
                offset: isn(dice),
                tick_ms: [1, 1, 4, 10, 100][dice.below(5) as usize],
                recent: 0,
            });
            peer
        });
        peers[opener].phase = Phase::Opening;
        let connection = &mut self.connections[at];
        connection.peers = peers;
        connection.life += 1;
        self.seen.connections += 1;
        self.send_syn(at, opener);
    }

    fn send_syn(&mut self, at: usize, end: usize) {
        let peer = &mut self.connections[at].peers[end];
        let mut header = Header {
            seq: peer.una,
            flags: Flags::SYN,
            ..Header::default()
        };
        header.options.mss = Some(self.setup.mss as u16);
        header.options.sack_permitted = true;
        header.options.window_scale = Some(peer.shift as u8);
        if peer.phase == Phase::Answering {
            header.flags = Flags::SYN | Flags::ACK;
            header.ack = peer.rcv_nxt;
        }
        header.window = peer.window_max.min(0xffff) as u16;
        peer.edge = peer.rcv_nxt.wrapping_add(u32::from(header.window));
        peer.nxt = peer.una.wrapping_add(1);
        peer.due = Some(self.now_us + 1_500_000);
        self.transmit(at, end, header, 0, false);
    }

    pub(super) fn act(&mut self, at: usize, end: usize) {
        let phases = self.connections[at].peers.each_ref().map(|peer| peer.phase);
        if phases == [Phase::Closed; 2] {
            if self.now_us >= self.connections[at].restart_at {
                self.start(at);
            }
            return;
        }
        if phases.contains(&Phase::Closed)
            && self.now_us >= self.connections[at].restart_at + 60_000_000
            || self.connections[at].peers.iter().all(Peer::is_done)
        {
            return self.finish(at);
        }
        match phases[end] {
            Phase::Closed => {}
            Phase::Opening | Phase::Answering => {
                if self.connections[at].peers[end]
                    .due
                    .is_some_and(|due| due <= self.now_us)
                {
                    let peer = &mut self.connections[at].peers[end];
                    peer.timeouts += 1;
                    if peer.timeouts > 12 {
                        return self.finish(at);
                    }
                    self.send_syn(at, end);
                }
            }
            Phase::Open => self.act_open(at, end),
        }
    }

    fn act_open(&mut self, at: usize, end: usize) {
        let lazy = self.setup.lazy;
        let (mss, now_us) = (self.setup.mss, self.now_us);
        let peer = &mut self.connections[at].peers[end];
        if peer.due.is_some_and(|due| due <= now_us) {
            peer.timeouts += 1;
            if peer.timeouts > 12 {
                return self.finish(at);
            }
            return self.retransmit(at, end);
        }
        if peer.unread != 0 && !self.dice.chance(lazy) && self.dice.chance(300) {
            peer.unread = if self.dice.chance(600) {
                0
            } else {
                peer.unread / 2
            };
            if self.setup.leaves != 0 && self.dice.chance(self.setup.leaves) {
                peer.unread = 1;
            }
            peer.owes_ack = true;
        }
        let inflight = peer.nxt.wrapping_sub(peer.una);
        let room = (peer.peer_edge.wrapping_sub(peer.nxt) as i32).max(0) as u32;
        let room = room.min((6 * mss).min(16_000).saturating_sub(inflight));
        if peer.fin_at.is_some() {
            if peer.owes_ack {
                self.send_data(at, end, 0, 0);
            }
            return;
        }
        let len = peer.to_send.min(mss);
        if len != 0 && room >= len {
            let len = if self.dice.chance(100) {
                1 + self.dice.below(len)
            } else {
                len
            };
            self.connections[at].peers[end].to_send -= len;
            self.send_data(at, end, 0, len);
        } else if len != 0 && inflight == 0 && self.dice.chance(30) {
            self.probe(at, end);
        } else if self.connections[at].peers[end].owes_ack {
            self.send_data(at, end, 0, 0);
        } else if len == 0 && inflight == 0 && self.dice.chance(20) {
            // Done; or idle, and asking whether the other is still there.
            match self.dice.below(3) {
                0 => self.send_fin(at, end),
                1 => self.probe(at, end),
                _ => self.connections[at].peers[end].to_send += self.dice.below(20) * mss / 4,
            }
        } else if len == 0 && self.dice.chance(10) {
            self.send_fin(at, end);
        }
    }

    /// A window probe or keepalive: a number already acknowledged, or a byte too many.
    fn probe(&mut self, at: usize, end: usize) {
        let peer = &mut self.connections[at].peers[end];
        if peer.to_send != 0 && self.dice.chance(300) {
            peer.to_send -= 1;
            return self.send_data(at, end, 0, 1);
        }
        self.send_data(at, end, 1, 0);
    }

    fn send_fin(&mut self, at: usize, end: usize) {
        let peer = &mut self.connections[at].peers[end];
        if peer.fin_at.is_some() || peer.to_send != 0 {
            return;
        }
        peer.fin_at = Some(peer.nxt);
        self.send_data(at, end, 0, 0);
    }

    fn retransmit(&mut self, at: usize, end: usize) {
        let mss = self.setup.mss;
        let peer = &mut self.connections[at].peers[end];
        let mut inflight = peer.nxt.wrapping_sub(peer.una);
        if inflight == 0 {
            peer.due = None;
            return;
        }
        // What was sent again may go out together with what was not sent yet.
        if inflight < mss && peer.fin_at.is_none() && peer.to_send != 0 && self.dice.chance(300) {
            let more = peer.to_send.min(mss - inflight);
            let room = peer.peer_edge.wrapping_sub(peer.nxt) as i32;
            if room >= more as i32 {
                peer.to_send -= more;
                peer.nxt = peer.nxt.wrapping_add(more);
                inflight += more;
            }
        }
        let data = inflight - u32::from(peer.fin_at.is_some());
        self.send(at, end, peer_una, data.min(mss));
        fn peer_una(peer: &Peer) -> u32 {
            peer.una
        }
    }

    /// Sends `len` bytes at the next number less `back`.
    fn send_data(&mut self, at: usize, end: usize, back: u32, len: u32) {
        match back {
            0 => self.send(at, end, |peer| peer.nxt, len),
            _ => self.send(at, end, |peer| peer.una.wrapping_sub(1), len),
        }
    }

    fn send(&mut self, at: usize, end: usize, seq: fn(&Peer) -> u32, len: u32) {
        let sack = !self.dice.chance(100);
        let peer = &mut self.connections[at].peers[end];
        let seq = match peer.fin_at {
            // Nothing but the FIN is new.
            Some(fin) if seq(peer) == fin.wrapping_add(1) => seq(peer),
            _ => seq(peer),
        };
        let mut header = Header {
            seq,
            ack: peer.rcv_nxt,
            flags: Flags::ACK,
            ..Header::default()
        };
        if len != 0 && seq.wrapping_add(len) == peer.nxt.wrapping_add(len) {
            header.flags = header.flags | Flags::PSH;
        }
        let end_of_data = seq.wrapping_add(len);
        let mut behind = end_of_data;
        if peer.fin_at == Some(end_of_data) {
            header.flags = header.flags | Flags::FIN;
            behind = behind.wrapping_add(1);
        }
        if before(peer.nxt, behind) {
            peer.nxt = behind;
        }
        header.window = peer.window();
        if sack {
            let max = if peer.ts.is_some() { 3 } else { 4 };
            for (seq, len) in peer.out_of_order.iter().take(max) {
                let right = seq.wrapping_add(*len);
                header.options.sack.push(SackBlock { left: *seq, right });
            }
        }
        peer.owes_ack = false;
        if peer.nxt != peer.una {
            let wait = 700_000u64 << peer.timeouts.min(4);
            if behind != seq || peer.due.is_none() {
                peer.due = Some(self.now_us + wait);
            }
        }
        self.transmit(at, end, header, len, false);
    }

    pub(super) fn on_segment(&mut self, at: usize, end: usize, header: &Header, len: u32) {
        let calm = self.setup.loss + self.setup.reorder + self.setup.late == 0;
        let peer = &mut self.connections[at].peers[end];
        if header.flags.contains(Flags::RST) {
            return;
        }
        if let (Some(clock), Some((value, _))) = (&mut peer.ts, header.options.timestamps)
            && (header.flags.contains(Flags::SYN)
                || !before(value, clock.recent) && !before(peer.rcv_nxt, header.seq))
        {
            clock.recent = value;
        }
        match peer.phase {
            Phase::Closed if header.flags == Flags::SYN => {
                peer.phase = Phase::Answering;
                peer.rcv_nxt = header.seq.wrapping_add(1);
                peer.peer_shift = u32::from(header.options.window_scale.unwrap_or(0));
                return self.send_syn(at, end);
            }
            Phase::Closed => return,
            Phase::Opening if header.flags == Flags::SYN | Flags::ACK => {
                peer.phase = Phase::Open;
                peer.rcv_nxt = header.seq.wrapping_add(1);
                peer.edge = peer.rcv_nxt.wrapping_add(peer.window_max.min(0xffff));
                peer.peer_shift = u32::from(header.options.window_scale.unwrap_or(0));
                peer.una = header.ack;
                peer.peer_edge = header.ack.wrapping_add(u32::from(header.window));
                peer.due = None;
                peer.timeouts = 0;
                return self.send_data(at, end, 0, 0);
            }
            Phase::Opening => return,
            Phase::Answering if header.flags == Flags::SYN => return self.send_syn(at, end),
            Phase::Answering if header.ack != peer.nxt => return,
            Phase::Answering => {
                peer.phase = Phase::Open;
                peer.una = header.ack;
                peer.due = None;
                peer.timeouts = 0;
                peer.peer_edge = header.ack;
            }
            Phase::Open if header.flags.contains(Flags::SYN) => {
                return self.send_data(at, end, 0, 0);
            }
            Phase::Open => {}
        }
        if before(peer.una, header.ack) && !before(peer.nxt, header.ack) {
            peer.una = header.ack;
            if calm {
                self.seen.timeouts = self.seen.timeouts.max(peer.timeouts);
            }
            peer.timeouts = 0;
            peer.due = (peer.una != peer.nxt).then_some(self.now_us + 700_000);
        }
        let edge = header
            .ack
            .wrapping_add(u32::from(header.window) << peer.peer_shift);
        if before(peer.peer_edge, edge) {
            peer.peer_edge = edge;
        }
        let is_old = before(header.seq, peer.rcv_nxt);
        let fin = header.flags.contains(Flags::FIN);
        if len != 0 {
            let within = !before(peer.edge.wrapping_add(1), header.seq.wrapping_add(len));
            if within && !peer.fin_heard {
                peer.take(header.seq, len);
            }
            peer.owes_ack = true;
        }
        if fin && !peer.fin_heard && header.seq.wrapping_add(len) == peer.rcv_nxt {
            peer.fin_heard = true;
            peer.rcv_nxt = peer.rcv_nxt.wrapping_add(1);
        }
        peer.owes_ack |= fin || is_old;
        let at_once = self.connections[at].peers[end].owes_ack && !self.dice.chance(250);
        if at_once {
            if self.dice.chance(1000 - self.setup.lazy) {
                self.connections[at].peers[end].unread = 0;
            }
            self.send_data(at, end, 0, 0);
        }
        // Duplicate acknowledgments with holes: repeat at once, now and then.
        let peer = &self.connections[at].peers[end];
        if !header.options.sack.is_empty() && peer.una != peer.nxt && self.dice.chance(200) {
            self.retransmit(at, end);
        }
    }
}
