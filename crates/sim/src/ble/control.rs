//! Procedures of the link layer: requests by control packets, and the instants at which they take
//! effect.
//!
//! Source: Bluetooth Core 5.4 Vol 6 Part B §2.4.2 and §5.1.

use motet::ble::{Action, Event, Handle, Phy, Timing};
use motet::time::Duration;

use super::connection::{Ask, CENTRAL, CONTROL, Change, PERIPHERAL, Pdu, Procedure};
use super::{Air, INVALID_PARAMETERS, NOT_ALLOWED, Report, SUCCESS};

impl Air {
    /// An end's host wants something of a connection; returns the status of the command.
    pub(super) fn ask(&mut self, (at, end): (usize, usize), action: Action) -> u8 {
        match action {
            Action::SetDataLength { octets, .. } => {
                self.connections[at].ends[end].wanted = octets.clamp(OCTETS_MIN, OCTETS_MAX);
                let pdu = self.lengths(LENGTH_REQ, at, end);
                self.begin(at, end, Ask::Pdu(Procedure::Length, pdu));
            }
            Action::SetPhy { phy, .. } => {
                self.connections[at].phy_wanted = phy;
                let pdu = vec![PHY_REQ, bit(phy), bit(phy)];
                self.begin(at, end, Ask::Pdu(Procedure::Phy, pdu));
            }
            Action::Update { timing, .. } if !timing.is_possible() => return INVALID_PARAMETERS,
            Action::Update {
                timing, event_len, ..
            } if end == CENTRAL => {
                let event_len = Duration::from_micros(625 * u64::from(event_len));
                let change = Change::Timing(timing, event_len, Duration::ZERO);
                self.begin(at, end, Ask::Propose(change));
            }
            // A peripheral asks by L2CAP.
            Action::Update { .. } => return NOT_ALLOWED,
            Action::Disconnect { reason, .. } => {
                self.control(at, end, vec![TERMINATE_IND, reason]);
            }
            _ => {}
        }
        SUCCESS
    }

    /// Begins a procedure as soon as the one before it is over.
    fn begin(&mut self, at: usize, end: usize, ask: Ask) {
        let own = &mut self.connections[at].ends[end];
        if own.asked.is_some() {
            return own.to_ask.push_back(ask);
        }
        match ask {
            Ask::Pdu(procedure, pdu) => {
                own.asked = Some(procedure);
                self.control(at, end, pdu);
            }
            Ask::Propose(change) => {
                own.asked = Some(Procedure::Timing);
                self.propose(at, change);
            }
        }
    }

    /// A procedure is over at an end, if that has begun it.
    pub(super) fn complete(&mut self, at: usize, end: usize, procedure: Procedure) {
        let own = &mut self.connections[at].ends[end];
        if own.asked.take_if(|asked| *asked == procedure).is_some()
            && let Some(next) = own.to_ask.pop_front()
        {
            self.begin(at, end, next);
        }
    }

    fn control(&mut self, at: usize, end: usize, bytes: Vec<u8>) {
        self.connections[at].ends[end].controls.push_back(Pdu {
            llid: CONTROL,
            bytes,
            ends_packet: false,
        });
    }

    fn lengths(&self, opcode: u8, at: usize, end: usize) -> Vec<u8> {
        let wanted = self.connections[at].ends[end].wanted;
        let words = [OCTETS_MAX, TIME_MAX_US, wanted, TIME_MAX_US];
        let mut pdu = vec![opcode];
        pdu.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        pdu
    }

    /// The central announces a change and its instant: at least six events from now, plus the
    /// events that the peripheral may skip.
    pub(super) fn propose(&mut self, at: usize, change: Change) {
        let connection = &mut self.connections[at];
        if connection.proposed.is_some() || connection.change.is_some() {
            return connection.waiting.push_back(change);
        }
        let after = INSTANT_AFTER + connection.timing.latency;
        let instant = connection.counter.wrapping_add(after);
        let change = self.in_its_slot(at, change, after);
        self.connections[at].proposed = Some((instant, change));
        let bytes = match change {
            Change::Phy(phy) => {
                let [low, high] = instant.to_le_bytes();
                vec![PHY_UPDATE_IND, bit(phy), bit(phy), low, high]
            }
            Change::Timing(timing, _, offset) => update_ind(&timing, offset, instant),
        };
        self.control(at, CENTRAL, bytes);
    }

    /// A change of times whose first event is where the central has its part of the interval: only
    /// so do its connections stay apart.
    fn in_its_slot(&self, at: usize, change: Change, events: u16) -> Change {
        let Change::Timing(timing, event_len, _) = change else {
            return change;
        };
        let connection = &self.connections[at];
        let usual = connection.anchor + connection.interval().saturating_mul(events.into());
        let central = connection.ends[CENTRAL].device;
        let offset = self.wait_for_slot(central, connection.slot, &timing, usual);
        Change::Timing(timing, event_len, offset)
    }

    /// A control packet has come to an end.
    pub(super) fn on_control(&mut self, at: usize, end: usize, bytes: &[u8]) {
        let Some((opcode, data)) = bytes.split_first() else {
            return;
        };
        match *opcode {
            CONNECTION_UPDATE_IND | PHY_UPDATE_IND if end == PERIPHERAL => {
                let connection = &mut self.connections[at];
                connection.change = connection.proposed.take();
                let late = connection.change.is_some_and(|(instant, _)| {
                    (instant.wrapping_sub(connection.counter) as i16) < 0
                });
                if late {
                    self.end_connection(at, [INSTANT_PASSED; 2]);
                }
            }
            TERMINATE_IND => {
                let reason = data.first().copied().unwrap_or(ENDED_BY_PEER);
                let mut reasons = [ENDED_HERE; 2];
                reasons[end] = reason;
                self.end_connection(at, reasons);
            }
            LENGTH_REQ => {
                let pdu = self.lengths(LENGTH_RSP, at, end);
                self.control(at, end, pdu);
                self.set_octets(at, end);
            }
            LENGTH_RSP => {
                self.set_octets(at, end);
                self.complete(at, end, Procedure::Length);
            }
            PHY_REQ if end == PERIPHERAL => {
                let pdu = [&[PHY_RSP], data].concat();
                self.control(at, end, pdu);
            }
            PHY_REQ | PHY_RSP if end == CENTRAL => {
                let phy = self.connections[at].phy_wanted;
                self.propose(at, Change::Phy(phy));
            }
            _ => {}
        }
    }

    /// Both ends know now what this one may send.
    fn set_octets(&mut self, at: usize, end: usize) {
        let end = &mut self.connections[at].ends[end];
        if end.octets != end.wanted {
            end.octets = end.wanted;
            let (device, sent) = (end.device, end.octets);
            let handle = Handle(at as u16);
            let event = Event::DataLength {
                handle,
                sent,
                received: OCTETS_MAX,
            };
            self.report(device, Report::Plain(event));
        }
    }
}

fn update_ind(timing: &Timing, offset: Duration, instant: u16) -> Vec<u8> {
    let mut pdu = vec![CONNECTION_UPDATE_IND, WINDOW_SIZE];
    // The window begins up to 1.25 ms before the event.
    let offset = (offset.as_micros() / 1_250) as u16;
    let words = [
        offset,
        timing.interval,
        timing.latency,
        timing.timeout,
        instant,
    ];
    pdu.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    pdu
}

const fn bit(phy: Phy) -> u8 {
    match phy {
        Phy::Le1M => 1,
        Phy::Le2M => 2,
    }
}

const CONNECTION_UPDATE_IND: u8 = 0x00;
const TERMINATE_IND: u8 = 0x02;
const LENGTH_REQ: u8 = 0x14;
const LENGTH_RSP: u8 = 0x15;
const PHY_REQ: u8 = 0x16;
const PHY_RSP: u8 = 0x17;
const PHY_UPDATE_IND: u8 = 0x18;

/// Events from a central's word to its effect, at least.
const INSTANT_AFTER: u16 = 6;

/// The window in which the first event after a change begins, in units of 1.25 ms.
const WINDOW_SIZE: u8 = 1;

const OCTETS_MIN: u16 = 27;
const OCTETS_MAX: u16 = 251;
const TIME_MAX_US: u16 = 2120;

/// Reasons (Vol 1 Part F).
const ENDED_BY_PEER: u8 = 0x13;
const ENDED_HERE: u8 = 0x16;
const INSTANT_PASSED: u8 = 0x28;
