//! A link of two radios in memory, on a virtual clock.
//!
//! Frames take the time that 250 kb/s gives them; a radio that transmits does not hear.
//! Left out: loss and noise, which belong to the lab.

use motet::ip::InterfaceId;
use motet::mac;
use motet::node::{Action, Event, Node};
use motet::time::{Duration, Instant, earliest};

/// Which of the two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The node that sends the file.
    Sender,
    /// The other.
    Receiver,
}

/// Both radios and what is under way.
pub(crate) struct Air {
    radios: [Radio; 2],
    /// The frame handed over, so that no node reads from a radio that it also changes.
    heard: Frame,
}

struct Radio {
    preloaded: Frame,
    acknowledgment: Frame,
    /// What the radio will report, and when; one answer may wait while an ACK is sent.
    pending: [Option<(Instant, Report)>; 2],
    /// When the radio last was, or is, on the air.
    on_air: (Instant, Instant),
}

#[derive(Clone, Copy)]
struct Frame {
    psdu: [u8; 127],
    len: usize,
}

#[derive(Clone, Copy)]
enum Report {
    Preloaded,
    ChannelAssessed,
    Fired,
    Acknowledged,
}

impl Air {
    pub(crate) const EMPTY: Self = Self {
        radios: [Radio::EMPTY, Radio::EMPTY],
        heard: Frame::EMPTY,
    };

    /// Takes a node's actions until it has none.
    pub(crate) fn perform(
        &mut self,
        side: Side,
        node: &mut Node<'static>,
        now: Instant,
        out: &mut [u8],
    ) {
        while let Some((_, action)) = node.poll_action(now, out) {
            if let Action::Mesh(action) = action {
                self.radio(side).perform(action, now, out);
            }
        }
    }

    /// Advances to the next event, and reports it to the node that it concerns.
    // Out of line: the call stack is measured as a device has it, which has no such medium.
    #[inline(never)]
    pub(crate) fn advance(
        &mut self,
        sender: &mut Node<'static>,
        receiver: &mut Node<'static>,
        now: Instant,
    ) -> Instant {
        let wake = earliest(sender.next_deadline(), receiver.next_deadline());
        let first = self.radio(Side::Sender).next().map(|at| (at, Side::Sender));
        let second = self
            .radio(Side::Receiver)
            .next()
            .map(|at| (at, Side::Receiver));
        let next = match (first, second) {
            (Some(a), Some(b)) if b.0 < a.0 => Some(b),
            (a, b) => a.or(b),
        };
        match next {
            Some((at, side)) if wake.is_none_or(|wake| at <= wake) => {
                let (this, other) = match side {
                    Side::Sender => (sender, receiver),
                    Side::Receiver => (receiver, sender),
                };
                self.report(side, this, other, at);
                at
            }
            // With no event at all to come, an hour on ends the run.
            _ => wake.unwrap_or(now + Duration::from_secs(3_600)).max(now),
        }
    }

    fn report(
        &mut self,
        side: Side,
        this: &mut Node<'static>,
        other: &mut Node<'static>,
        now: Instant,
    ) {
        let Some(report) = self.radio(side).take(now) else {
            return;
        };
        let partner = self.radio(side.other()).on_air;
        let radio = self.radio(side);
        let event = match report {
            Report::Preloaded => mac::Event::Preloaded,
            Report::ChannelAssessed => mac::Event::ChannelAssessed {
                clear: !(partner.0 <= now && now < partner.1),
            },
            Report::Fired | Report::Acknowledged => {
                let (start, end) = radio.on_air;
                let frame = match report {
                    Report::Fired => radio.preloaded,
                    _ => radio.acknowledgment,
                };
                self.heard = frame;
                if partner.1 <= start || end <= partner.0 {
                    deliver(other, &self.heard, now);
                }
                mac::Event::TransmitDone { at: end }
            }
        };
        this.on_event(RADIO, Event::Mesh(event), now);
    }

    fn radio(&mut self, side: Side) -> &mut Radio {
        let [sender, receiver] = &mut self.radios;
        match side {
            Side::Sender => sender,
            Side::Receiver => receiver,
        }
    }
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Sender => Self::Receiver,
            Self::Receiver => Self::Sender,
        }
    }
}

impl Radio {
    const EMPTY: Self = Self {
        preloaded: Frame::EMPTY,
        acknowledgment: Frame::EMPTY,
        pending: [None; 2],
        on_air: (Instant::ORIGIN, Instant::ORIGIN),
    };

    fn perform(&mut self, action: mac::Action, now: Instant, out: &[u8]) {
        match action {
            mac::Action::Preload { len } => {
                self.preloaded.load(out, len);
                self.later(now, Report::Preloaded);
            }
            mac::Action::AssessChannel => self.later(now + ASSESSMENT, Report::ChannelAssessed),
            mac::Action::Fire => {
                let len = self.preloaded.len;
                self.transmit(now + TURNAROUND, len, Report::Fired);
            }
            mac::Action::Transmit { len, at } => {
                self.acknowledgment.load(out, len);
                // Transmitting ends an assessment under way.
                for place in &mut self.pending {
                    if matches!(place, Some((_, Report::ChannelAssessed))) {
                        *place = None;
                    }
                }
                self.transmit(at, len, Report::Acknowledged);
            }
            // The radio always listens, on the one channel there is, and nobody sleeps.
            mac::Action::Listen
            | mac::Action::Sleep
            | mac::Action::ChangeChannel { .. }
            | mac::Action::SetPending { .. } => {}
        }
    }

    fn transmit(&mut self, start: Instant, len: usize, report: Report) {
        let end = start + Duration::from_micros(BYTE_US * (len + SYNCHRONIZATION_LEN) as u64);
        self.on_air = (start, end);
        self.later(end, report);
    }

    fn later(&mut self, at: Instant, report: Report) {
        match self.pending.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some((at, report)),
            None => panic!("more answers due than actions can be under way"),
        }
    }

    fn next(&self) -> Option<Instant> {
        self.pending.iter().flatten().map(|(at, _)| *at).min()
    }

    /// What is due at `now`.
    fn take(&mut self, now: Instant) -> Option<Report> {
        let due =
            |place: &&mut Option<(Instant, Report)>| matches!(place, Some((at, _)) if *at == now);
        let (_, report) = self.pending.iter_mut().find(due)?.take()?;
        Some(report)
    }
}

impl Frame {
    const EMPTY: Self = Self {
        psdu: [0; 127],
        len: 0,
    };

    fn load(&mut self, out: &[u8], len: usize) {
        self.len = len;
        for (byte, from) in self.psdu.iter_mut().zip(out.iter().take(len)) {
            *byte = *from;
        }
    }
}

/// Hands a frame to a node.
fn deliver(node: &mut Node<'static>, frame: &Frame, now: Instant) {
    let Some(psdu) = frame.psdu.get(..frame.len) else {
        return;
    };
    let meta = mac::RxMeta {
        rssi_dbm: -60,
        lqi: 255,
        channel: 26,
        at: now,
    };
    let event = mac::Event::FrameReceived { psdu, meta };
    node.on_event(RADIO, Event::Mesh(event), now);
}

const RADIO: InterfaceId = InterfaceId(0);

/// 8 symbols (IEEE 802.15.4-2006 §6.9.9).
const ASSESSMENT: Duration = Duration::from_micros(128);

/// 12 symbols (IEEE 802.15.4-2006 table 22).
const TURNAROUND: Duration = Duration::from_micros(192);

/// Air time of a byte at 250 kb/s.
const BYTE_US: u64 = 32;

/// Preamble, delimiter and length byte.
const SYNCHRONIZATION_LEN: usize = 6;
