//! One end of one connection, as its TCP knows it.

use std::vec::Vec;

use crate::wire::tcp::Header;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Phase {
    Closed,
    Opening,
    Answering,
    Open,
}

/// One end of one connection.
#[derive(Clone)]
pub(super) struct Peer {
    pub(super) phase: Phase,
    pub(super) ports: (u16, u16),
    pub(super) una: u32,
    pub(super) nxt: u32,
    pub(super) rcv_nxt: u32,
    pub(super) unread: u32,
    pub(super) window_max: u32,
    pub(super) edge: u32,
    pub(super) shift: u32,
    pub(super) peer_edge: u32,
    pub(super) peer_shift: u32,
    pub(super) to_send: u32,
    pub(super) fin_at: Option<u32>,
    pub(super) fin_heard: bool,
    pub(super) out_of_order: Vec<(u32, u32)>,
    pub(super) due: Option<u64>,
    pub(super) timeouts: u32,
    pub(super) ts: Option<Clock>,
    pub(super) owes_ack: bool,
    /// Headers sent in this life, for what was sent and what never was.
    pub(super) history: Vec<Header>,
}

#[derive(Clone, Copy)]
pub(super) struct Clock {
    pub(super) offset: u32,
    pub(super) tick_ms: u64,
    pub(super) recent: u32,
}

pub(super) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

impl Peer {
    pub(super) fn closed() -> Self {
        Self {
            phase: Phase::Closed,
            ports: (0, 0),
            una: 0,
            nxt: 0,
            rcv_nxt: 0,
            unread: 0,
            window_max: 0,
            edge: 0,
            shift: 0,
            peer_edge: 0,
            peer_shift: 0,
            to_send: 0,
            fin_at: None,
            fin_heard: false,
            out_of_order: Vec::new(),
            due: None,
            timeouts: 0,
            ts: None,
            owes_ack: false,
            history: Vec::new(),
        }
    }

    pub(super) fn is_done(&self) -> bool {
        self.fin_at.is_some_and(|at| before(at, self.una)) && self.fin_heard
    }

    pub(super) fn window(&mut self) -> u16 {
        let room = self.window_max.saturating_sub(self.unread);
        let kept = self.edge.wrapping_sub(self.rcv_nxt);
        let room = if self.phase == Phase::Open && (kept as i32) > room as i32 {
            kept
        } else {
            room
        };
        let field = (room >> self.shift).min(0xffff);
        let edge = self.rcv_nxt.wrapping_add(field << self.shift);
        if before(self.edge, edge) || self.phase != Phase::Open {
            self.edge = edge;
        }
        field as u16
    }

    pub(super) fn take(&mut self, seq: u32, len: u32) {
        if before(seq, self.rcv_nxt) && !before(self.rcv_nxt, seq.wrapping_add(len)) {
            return;
        }
        self.out_of_order.push((seq, len));
        self.out_of_order
            .sort_by_key(|(seq, _)| seq.wrapping_sub(self.rcv_nxt) as i32);
        let mut merged: Vec<(u32, u32)> = Vec::new();
        for (seq, len) in self.out_of_order.drain(..) {
            match merged.last_mut() {
                Some((s, l)) if !before(s.wrapping_add(*l), seq) => {
                    let end = seq.wrapping_add(len).wrapping_sub(*s);
                    *l = (*l).max(end);
                }
                _ => merged.push((seq, len)),
            }
        }
        if let Some((seq, len)) = merged.first().copied()
            && !before(self.rcv_nxt, seq)
        {
            let new = seq.wrapping_add(len).wrapping_sub(self.rcv_nxt);
            self.rcv_nxt = self.rcv_nxt.wrapping_add(new);
            self.unread += new;
            merged.remove(0);
        }
        self.out_of_order = merged;
    }
}

/// Forgets a life, but for what the next one, and the judge, must know of it.
pub(super) fn close(peer: &mut Peer) {
    let old = core::mem::replace(peer, Peer::closed());
    peer.ports = old.ports;
    peer.nxt = old.nxt;
    peer.history = old.history;
}
