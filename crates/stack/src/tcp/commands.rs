//! The application's calls on a connection: open, wait, send, receive, close.
//!
//! Place: [`Tcp`](super::Tcp) finds the connection and calls in. Segments to be sent are marked due
//! here, and written by `output`. Left out: changes over time ([`super::clock`]).
//! Sources: RFC 9293 §3.10.1 to §3.10.6, §3.8.6.2.2.

use super::config::{HAS_LISTEN, SMSS_FOR_OPTIONS};
use super::connection::Connection;
use super::facts::Facts;
use super::listener::HalfOpen;
use super::reassembly::RecvBuffer;
use super::send_buffer::SendBuffer;
use super::seq::SeqNum;
use super::state::State;
use super::types::{Buffers, Error, RecvError, SendError};

impl<'m> Connection<'m> {
    /// Starts an active open.
    ///
    /// `iss`, `ts_offset`: where sequence numbers and the timestamp clock start.
    pub(super) fn open(&mut self, iss: SeqNum, ts_offset: u32) {
        self.set_state(State::SynSent);
        self.snd_una = iss;
        self.snd_nxt = iss.plus(1);
        self.loss.begin_at(iss);
        self.ts_offset = ts_offset;
        self.note_progress();
        self.facts.set(Facts::SYN_DUE);
        // The settings may change before the SYN-ACK arrives, but the SYN's offer does not, so it
        // is stored.
        self.facts.add(Facts::offered_by(self.config));
    }

    /// Waits in LISTEN for a handshake of a listener, given by its index and port.
    pub(super) fn wait_for(&mut self, listener: u8, port: u16) {
        self.set_state(State::Listen);
        self.ends.local_port = port;
        self.ends.remote_port = u16::from(listener);
    }

    /// Whether the connection waits for a handshake of this listener.
    pub(super) fn waits_for(&self, listener: u8) -> bool {
        HAS_LISTEN && self.state() == State::Listen && self.ends.remote_port == u16::from(listener)
    }

    /// Continues a handshake that ended as a [`HalfOpen`] entry.
    pub(super) fn take_over(&mut self, entry: &HalfOpen, ts_offset: u32) {
        self.ends = entry.ends;
        self.ts_offset = ts_offset;
        self.facts.add(entry.agreed());
        // An end that retransmitted its SYN-ACK has no sample of the round trip.
        if entry.was_resent() {
            self.rtt.distrust();
        } else if !self.facts.has(Facts::TIMESTAMPS) && entry.ts_recent != 0 {
            self.rtt.sample_handshake(entry.ts_recent);
        }
        self.smss = entry.smss.min(self.config.smss);
        // From now on `rmss` is used only for the threshold of window updates, which RFC 9293
        // §3.8.6.2.2 gives in Eff.snd.MSS, limited by the link. A peer with a smaller MSS may get
        // updates more rarely.
        self.rmss = self.config.rmss.min(self.smss.max(SMSS_FOR_OPTIONS));
        self.snd_una = entry.iss.plus(1);
        self.snd_nxt = self.snd_una;
        self.rcv_nxt = entry.irs.plus(1);
        self.ts_recent = entry.ts_recent;
        self.ts_recent_at = self.now_ms;
        // In LISTEN there was no time to compare.
        self.facts.clear(Facts::TS_OUTDATED);
        // The peer has connected to ask something, and its question often follows its ACK.
        #[cfg(feature = "sleepy")]
        self.facts.set(Facts::HAS_CONNECTED);
        // No peer was promised more than there is, unless the settings were wrong.
        self.rcv_wnd = self.recv.window();
        self.loss.begin_at(entry.iss);
        self.begin(entry.irs, entry.window());
        // Data that arrived before the connection had buffers were dropped: an ACK requests them.
        self.facts.put(Facts::ACK_DUE, entry.has_missed_data());
    }

    /// The application has handed data over to the send buffer.
    pub(super) fn on_taken(&mut self) {
        self.note_taken();
        self.on_data_queued();
    }

    /// Data or a FIN were handed over: should the window be shut, probing begins.
    pub(super) fn on_data_queued(&mut self) {
        if self.state().transmits() && self.timers.purpose().is_none() {
            self.rearm();
        }
    }

    /// Whether data can be taken to send.
    pub(super) fn check_send(&self) -> Result<(), SendError> {
        match self.error {
            Some(error) => Err(SendError::Failed(error)),
            None if self.may_send() => Ok(()),
            None => Err(SendError::Closing),
        }
    }

    /// Whether a call of `recv` would give something.
    pub(super) fn check_recv(&self) -> Result<(), RecvError> {
        match self.error {
            _ if !self.recv.is_empty() => Ok(()),
            Some(error) => Err(RecvError::Failed(error)),
            None if self.state().may_receive() && !self.facts.has(Facts::READ_CLOSED) => {
                Err(RecvError::Empty)
            }
            None => Err(RecvError::Finished),
        }
    }

    /// Whether the application needs the connection no more.
    pub(super) const fn is_removable(&self) -> bool {
        matches!(self.state(), State::Closed | State::TimeWait)
    }

    /// Gives the buffers back and becomes an orphan, in CLOSED or TIME-WAIT only.
    pub(super) fn release(&mut self) -> Option<Buffers<'m>> {
        if !self.is_removable() {
            return None;
        }
        self.facts.set(Facts::ORPHANED);
        let send = core::mem::replace(&mut self.send, SendBuffer::ring(&mut []));
        let recv = core::mem::replace(&mut self.recv, RecvBuffer::new(&mut []));
        Some(Buffers { send, recv })
    }

    /// Copies received bytes out; may announce the window that this opens.
    pub(super) fn read(&mut self, out: &mut [u8]) -> usize {
        let count = self.recv.read(out);
        self.note_read();
        self.announce_window();
        count
    }

    /// As [`Self::read`], for bytes looked at in place.
    pub(super) fn consume(&mut self, count: u16) {
        self.recv.consume(count);
        self.note_read();
        self.announce_window();
    }

    /// The application has no more to send: a FIN follows the data. Before the handshake is over
    /// too: the FIN then waits, where RFC 9293 §3.10.4 deletes the connection, as [`Self::close`]
    /// does.
    pub(super) fn shutdown(&mut self) {
        if !self.may_send() {
            return;
        }
        match self.state() {
            State::Established => self.set_state(State::FinWait1),
            State::CloseWait => self.set_state(State::LastAck),
            _ => {}
        }
        self.facts.set(Facts::FIN_QUEUED);
        self.bound_end();
    }

    /// The application neither sends nor reads any more.
    pub(super) fn close(&mut self) {
        if matches!(self.state(), State::Listen | State::SynSent) {
            return self.end(None);
        }
        self.shutdown();
        let was_closed = self.facts.has(Facts::READ_CLOSED);
        self.facts.set(Facts::READ_CLOSED);
        if !self.recv.is_empty()
            && self.state().is_synchronized()
            && self.state() != State::TimeWait
        {
            // Unread data are lost, so the peer gets a reset (RFC 1122 §4.2.2.13, by RFC 9293
            // §3.10.4).
            return self.abort();
        }
        if !was_closed {
            self.bound_end();
        }
    }

    /// Ends at once, with a reset where the peer knows the connection.
    pub(super) fn abort(&mut self) {
        let reset = !matches!(
            self.state(),
            State::Closed | State::Listen | State::SynSent | State::TimeWait
        );
        if self.state() != State::Closed {
            self.end(Some(Error::Aborted));
        }
        self.facts.put(Facts::RESET_DUE, reset);
    }

    /// Enters CLOSED; nothing is sent or awaited any more.
    // Out of line: inlined, it would stand at each of its many callers.
    #[inline(never)]
    pub(super) fn end(&mut self, error: Option<Error>) {
        if self.state() == State::SynSent {
            self.facts.clear(Facts::AGREED);
        }
        self.set_state(State::Closed);
        self.error = error;
        self.timers.disarm_all();
        self.loss.give_up();
        self.facts.clear(
            Facts::ACK_DUE
                | Facts::SYN_DUE
                | Facts::PERSIST_DUE
                | Facts::TAIL_PROBE_DUE
                | Facts::KEEPALIVE_DUE,
        );
    }

    /// Whether the slot can be freed: closed, and its reset (if any) is out.
    pub(super) const fn is_over(&self) -> bool {
        matches!(self.state(), State::Closed) && !self.facts.has(Facts::RESET_DUE)
    }

    /// Sends an ACK when reading has opened the window by two segments and a quarter of the
    /// buffer, by half the buffer, or from nothing to one segment: the receiver's half of
    /// silly-window avoidance, and no more ACKs than a wide window needs.
    fn announce_window(&mut self) {
        if !self.state().may_receive() || self.is_connecting() {
            return;
        }
        let (window, half) = (self.recv.window(), self.recv.capacity() / 2);
        let gain = window.saturating_sub(self.rcv_wnd);
        let was_shut = self.rcv_wnd < self.rmss.min(half);
        let step = self.rmss.saturating_mul(2).max(half / 2).min(half);
        if gain >= step || was_shut && gain >= self.gain_min() {
            self.facts.set(Facts::ACK_DUE);
        }
    }
}
