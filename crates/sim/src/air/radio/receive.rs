//! The receiving side: filter, ACK, copy to the processor.

use motet::limits::PSDU_LEN_MAX;
use motet::mac::{Pending, RxMeta};
use motet::time::Instant;
use motet::wire::LinkAddr;
use motet::wire::ieee802154::{FCS_LEN, FrameType, Header, fcs};

use super::{Activity, Answer, Due, IncomingFrame, Output, Radio};
use crate::air::filter;
use crate::air::medium::{Frame, Interest};
use crate::air::phy;
use crate::air::power::Power;
use crate::air::{Air, Event};

/// The neighbours for which packets wait at this node, as set in the radio's tables: they decide
/// the frame pending bit of ACKs.
#[derive(Debug, Default)]
pub(super) struct Waits {
    for_anyone: bool,
    neighbours: Vec<LinkAddr>,
}

impl Waits {
    pub(super) fn set(&mut self, of: Option<LinkAddr>, pending: bool) {
        let Some(neighbour) = of else {
            self.for_anyone = pending;
            return;
        };
        self.neighbours.retain(|known| *known != neighbour);
        if pending {
            self.neighbours.push(neighbour);
        }
    }

    /// The frame pending bit in the ACK of a frame with this header.
    fn says(&self, pending: Pending, header: &Header) -> bool {
        match pending {
            Pending::None => false,
            // AT86RF233 data sheet §7.2.3: data requests alone; no node sends other commands.
            Pending::OneForAll => self.for_anyone && header.frame_type == FrameType::Command,
            Pending::PerNeighbour => header
                .src
                .is_some_and(|src| self.neighbours.contains(&src.addr)),
        }
    }
}

impl Radio {
    /// Takes a frame without errors: filter, ACK, copy to the processor.
    pub(super) fn accept(&mut self, heard: &IncomingFrame<'_>, air: &mut Air, now: Instant) {
        let IncomingFrame {
            frame,
            header,
            power,
            from,
        } = *heard;
        if !self.filter.accepts(header) || self.is_foreign_ack(header) {
            return;
        }
        if self.takes_ack(header, air, now) {
            return;
        }
        self.heard_from = Some(from);
        if self.profile.capabilities.auto_ack && header.ack_request && self.filter.is_mine(header) {
            let pending = self.waits.says(self.profile.capabilities.pending, header);
            let ack = Frame::new(&filter::ack(header.sequence, pending));
            self.answer = Answer::Turning {
                ack,
                to: Some(from),
                by_software: false,
            };
            air.calendar.schedule(
                now + phy::TURNAROUND,
                Event::Radio {
                    place: self.place,
                    due: Due::AnswerTurned,
                },
            );
        }
        let at = self.notice(now);
        if self.profile.line.is_some() {
            let meta = self.meta(power, air, at);
            let frame = self.without_fcs(frame);
            let len = frame.psdu().len();
            return self.report(Output::Frame(frame, meta), len, air, now);
        }
        self.unloading
            .push((frame.clone(), self.meta(power, air, at)));
        if !self.profile.head_first {
            self.unload(frame.psdu().len(), Due::Unloaded, air, now);
        } else if self.unloading.len() == 1 {
            self.unload_first(air, now);
        }
    }

    /// A frame as the MAC gets it: the FCS stays with a radio that checks it.
    pub(super) fn without_fcs(&self, frame: &Frame) -> Frame {
        let kept = match self.profile.capabilities.fcs_by_radio {
            true => FCS_LEN,
            false => 0,
        };
        frame.clone().cut(frame.psdu().len().saturating_sub(kept))
    }

    /// Copies the frame that has waited longest out of the radio: its first bytes, to begin
    /// with, unless it is an ACK or the like.
    pub(super) fn unload_first(&mut self, air: &mut Air, now: Instant) {
        let Some((frame, _)) = self.unloading.first() else {
            return;
        };
        let psdu = frame.psdu();
        let is_data = filter::header(psdu).is_some_and(|h| h.frame_type == FrameType::Data);
        if is_data {
            // The verdict on the FCS is the last byte that such a radio keeps of a frame.
            let len = head_of(frame).psdu().len() + VERDICT_LEN;
            self.unload(len, Due::HeadUnloaded, air, now);
        } else {
            self.unload(psdu.len(), Due::Unloaded, air, now);
        }
    }

    /// Gives the processor `len` bytes to copy out of the radio.
    pub(super) fn unload(&mut self, len: usize, due: Due, air: &mut Air, now: Instant) {
        let mut span = self.profile.receive_copy(len);
        if due == Due::Unloaded {
            span = span + self.profile.handle;
        }
        let copied_at = self.occupy(span, now);
        air.calendar.schedule(
            copied_at,
            Event::Radio {
                place: self.place,
                due,
            },
        );
    }

    /// A chip that acknowledges by itself also knows which ACK it waits for.
    fn is_foreign_ack(&self, header: &Header) -> bool {
        self.profile.capabilities.auto_ack
            && header.frame_type == FrameType::Ack
            && self.sent.is_none_or(|sequence| sequence != header.sequence)
    }

    /// The changes by others that the radio has to hear of: a waiting frame may wait for the end of
    /// any frame, and only a chip that acknowledges by itself tells its ACKs from others.
    pub(super) fn interest(&self) -> Interest {
        let waits = !self.waiting.is_empty() || matches!(self.activity, Activity::Holding);
        match self.sent {
            _ if waits || !self.profile.capabilities.auto_ack => Interest::All,
            Some(number) => Interest::AcksWith(number),
            None => Interest::Nothing,
        }
    }

    fn meta(&self, power: Power, air: &Air, at: Instant) -> RxMeta {
        let dbm = power.dbm();
        // Casts saturate. LQI: a few dB over the sensitivity are as good as it gets.
        let lqi = (dbm - self.profile.sensitivity_dbm) * LQI_PER_DB;
        RxMeta {
            rssi_dbm: libm::round(dbm) as i8,
            lqi: lqi as u8,
            channel: air.medium.channel(self.place),
            at,
        }
    }

    pub(super) fn answer_by_software(
        &mut self,
        ack: Frame,
        at: Instant,
        air: &mut Air,
        now: Instant,
    ) {
        self.cancel_assessment();
        let copy = self.profile.transmit_copy(ack.psdu().len());
        self.answer = Answer::Turning {
            ack,
            to: self.heard_from,
            by_software: true,
        };
        let copied = self.occupy(copy, now);
        air.calendar.schedule(
            at.max(copied),
            Event::Radio {
                place: self.place,
                due: Due::AnswerTurned,
            },
        );
    }

    pub(super) fn cancel_assessment(&mut self) {
        let is_assessing = matches!(self.activity, Activity::Assessing | Activity::Preparing);
        if is_assessing && self.attempt.is_none() {
            self.activity = Activity::Idle;
            self.prepared = false;
        }
    }

    pub(super) fn send_answer(&mut self, air: &mut Air, now: Instant) {
        if let Answer::Turning {
            ack,
            to,
            by_software,
        } = &self.answer
        {
            let (ack, to, by_software) = (ack.clone(), *to, *by_software);
            self.answer = Answer::Sending { by_software };
            self.refresh(air, now);
            air.transmit(self.place, ack, to, now);
        }
    }
}

/// A frame of these bytes and their FCS.
pub(super) fn with_fcs(bytes: &[u8]) -> Frame {
    let mut psdu = [0; PSDU_LEN_MAX];
    let len = bytes.len().min(PSDU_LEN_MAX - FCS_LEN);
    let (frame, rest) = psdu.split_at_mut(len);
    frame.copy_from_slice(&bytes[..len]);
    rest[..FCS_LEN].copy_from_slice(&fcs(bytes).to_le_bytes());
    Frame::new(&psdu[..len + FCS_LEN])
}

/// The beginning of a frame by which a MAC decides: the header, and the byte that tells the
/// protocol.
pub(super) fn head_of(frame: &Frame) -> Frame {
    let psdu = frame.psdu();
    let mpdu = psdu.get(..psdu.len().saturating_sub(FCS_LEN));
    let parsed = mpdu.and_then(|mpdu| Some((mpdu, Header::parse_secured(mpdu).ok()?)));
    let head = parsed.and_then(|(mpdu, (.., payload))| {
        let end = mpdu.len() - payload.len() + 1;
        mpdu.get(..end.min(mpdu.len()))
    });
    Frame::new(head.unwrap_or_default())
}

/// The byte in which a CC2420 leaves CRC result and link quality (data sheet §17).
const VERDICT_LEN: usize = 1;

/// AT86RF233: link quality reaches its top about 10 dB over the sensitivity.
const LQI_PER_DB: f64 = 25.0;
