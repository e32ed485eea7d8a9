//! A serial line between a radio co-processor and its host.
//!
//! Purpose: the host's orders and the radio's reports queue on it, each way by itself; what the
//! radio does alone, its ACKs above all, needs no line. Left out: orders other than to send a
//! frame, and the escapes of HDLC (one byte in some fifty).

use motet::time::Instant;

use super::{Due, Output, Radio};
use crate::air::{Air, Event};

/// When each direction of the line is free, and what is on it.
#[derive(Clone, Debug, Default)]
pub(super) struct Traffic {
    down_free_at: Instant,
    up_free_at: Instant,
    /// Reports on their way to the host, and when they are there.
    reports: std::collections::VecDeque<(Instant, Output)>,
}

impl Traffic {
    pub(super) fn is_empty(&self) -> bool {
        self.reports.is_empty()
    }
}

impl Radio {
    /// When the order to send a frame of `psdu_len` bytes that the host gives now is at the radio.
    pub(super) fn order_crosses(&mut self, psdu_len: usize, now: Instant) -> Instant {
        let Some(line) = self.profile.line else {
            return now;
        };
        let free_at = self.traffic.down_free_at;
        let (there_at, free_at) = line.cross(free_at, ORDER_LEN + psdu_len, now);
        self.traffic.down_free_at = free_at;
        there_at
    }

    /// Sends a report with so many bytes of a frame to the host.
    pub(super) fn report(&mut self, output: Output, len: usize, air: &mut Air, now: Instant) {
        let Some(line) = self.profile.line else {
            self.outputs.push(output);
            return;
        };
        let (there_at, free_at) = line.cross(self.traffic.up_free_at, REPORT_LEN + len, now);
        self.traffic.up_free_at = free_at;
        self.traffic.reports.push_back((there_at, output));
        let (place, due) = (self.place, Due::Reported);
        air.calendar.schedule(there_at, Event::Radio { place, due });
    }

    /// Gives the MAC the reports that have come.
    pub(super) fn take_reports(&mut self, now: Instant) {
        while let Some((_, output)) = self.traffic.reports.pop_front_if(|(at, _)| *at <= now) {
            self.outputs.push(output);
        }
    }
}

/// Bytes of Spinel and HDLC around a frame to be sent: flags 2, FCS 2, header, command and property
/// 3, length 2, and the frame's settings in OpenThread, channel, attempts, CSMA, four flags, two
/// delays of four bytes, the channel afterwards.
const ORDER_LEN: usize = 27;

/// The same around a received frame (signal and noise, flags, channel, quality and a time stamp of
/// eight bytes), and around the outcome of an attempt.
const REPORT_LEN: usize = 26;
