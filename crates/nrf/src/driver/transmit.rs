//! Frames on their way out: what is fired, and ACKs.

use motet::wire::ieee802154::Header;

use super::{ACK_LEN, Driver, Phase};
use crate::counters::count;
use crate::packet::{FCS_LEN, Packet};
use crate::registers::{Event, Registers, Shortcuts, State, Task};
use crate::times::{BUSY_MAX, MARGIN, RAMP_DOWN, RAMP_UP, START_TO_AIR, TICK, TURNAROUND};

impl<R: Registers> Driver<R> {
    pub(super) fn fire(&mut self) {
        if !self.is_loaded() {
            return;
        }
        match self.phase {
            Phase::Answering | Phase::Sending => self.is_fire_due = true,
            _ if self.is_receiving() => self.is_fire_due = true,
            _ => {
                let start = self.registers.count().wrapping_add(TURNAROUND);
                self.send(start);
            }
        }
    }

    /// Whether the radio is to fire now what it could not before; what is loaded since may be no
    /// frame.
    pub(super) fn take_fire(&mut self) -> bool {
        core::mem::take(&mut self.is_fire_due) && self.is_loaded()
    }

    /// Whether there is a frame to fire, which is counted if there is none.
    fn is_loaded(&mut self) -> bool {
        let is_loaded = (ACK_LEN..=127).contains(&self.to_transmit().len());
        if !is_loaded {
            count(&mut self.counters.empty_fires);
        }
        is_loaded
    }

    /// Sends the loaded frame, its first symbol at this count or as soon as can be.
    pub(super) fn send(&mut self, start: u32) {
        self.sent = self.loaded;
        self.enter(Phase::Sending);
        let ramp_up = self.ramp_up_for(start, RAMP_DOWN);
        let soon = self.registers.count().wrapping_add(RAMP_DOWN + MARGIN);
        self.transmit(self.to_transmit(), ramp_up.unwrap_or(soon));
    }

    /// Sends an ACK a turnaround after a frame that ended at this count.
    pub(super) fn answer(&mut self, sequence: u8, end: u32) {
        let mut psdu = [0; ACK_LEN];
        let header = Header::ack(sequence, false);
        // Cannot fail: the array is as long as an ACK.
        let _emitted = header.emit_frame(&[], &mut psdu);
        let answer = &self.frames.answer;
        answer.load(psdu.get(..ACK_LEN - FCS_LEN).unwrap_or_default());
        self.enter(Phase::Answering);
        match self.ramp_up_for(end.wrapping_add(TURNAROUND), MARGIN) {
            Some(ramp_up) => self.transmit(answer, ramp_up),
            None => {
                count(&mut self.counters.late_acks);
                self.listen_on(end);
            }
        }
    }

    /// The count at which the radio has to ramp up for a first symbol at `start`, not earlier and
    /// at most a microsecond later; `None`: less than `margin` is left.
    fn ramp_up_for(&mut self, start: u32, margin: u32) -> Option<u32> {
        let ramp_up = start
            .wrapping_add(TICK)
            .wrapping_sub(RAMP_UP + START_TO_AIR);
        let left = ramp_up.wrapping_sub(self.registers.count());
        ((margin..BUSY_MAX).contains(&left)).then_some(ramp_up)
    }

    fn transmit(&mut self, packet: &'static Packet, ramp_up: u32) {
        self.ramp_down();
        self.registers.set_shortcuts(Shortcuts::Transmit);
        self.hand_over(packet);
        // The end of a reception, until the radio went down, is not that of this frame.
        self.registers.clear(Event::PhyEnd);
        self.registers.transmit_at(Some(ramp_up));
        // The count may have gone by before it was set.
        let is_over = self.registers.count().wrapping_sub(ramp_up) < BUSY_MAX;
        if is_over && self.registers.state() == State::Disabled {
            self.registers.trigger(Task::TransmitEnable);
        }
    }
}
