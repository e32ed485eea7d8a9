//! Signals of one connection: what the peer asks, and what this end asks of it.

use super::{Connection, State};
use crate::ble::counters::{ChannelDrop, HostCounters};
use crate::ble::event::{Role, Timing};
use crate::ble::{CREDITS, CREDITS_RETURNED, IPSP, LOCAL, MPS, MTU};
use crate::time::{Duration, Instant, earliest};
use crate::wire::cursor::{Full, Writer};
use crate::wire::l2cap::{
    DYNAMIC, End, HEADER_LEN, Header, Intervals, MTU_MIN, SIGNALLING, Signal, SignalError, reject,
    result,
};

/// What is asked, and what is to be answered.
#[derive(Debug)]
pub(in crate::ble) struct Signalling {
    /// Answers that wait for room in the controller, each with its identifier.
    answers: [Option<(u8, Signal)>; ANSWERS_MAX],
    request: Option<Request>,
    /// Of the signal that was sent last, answers aside.
    identifier: u8,
    /// When to ask for a channel, where there is none.
    opens_at: Instant,
    /// How often it was refused in a row.
    refusals: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Request {
    what: Asked,
    /// Its identifier, and when it was sent; `None`: it waits for room in the controller.
    sent: Option<(u8, Instant)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Asked {
    Channel,
    Disconnection { destination: u16 },
}

impl Signalling {
    pub(in crate::ble) const fn new(now: Instant) -> Self {
        Self {
            answers: [None; ANSWERS_MAX],
            request: None,
            identifier: 0,
            opens_at: now,
            refusals: 0,
        }
    }

    fn answer(&mut self, identifier: u8, signal: Signal, counters: &mut HostCounters) {
        match self.answers.iter_mut().find(|slot| slot.is_none()) {
            Some(slot) => *slot = Some((identifier, signal)),
            None => counters.count(ChannelDrop::AnswersFull),
        }
    }

    /// Takes the request that this is an answer to.
    fn take_request(&mut self, identifier: u8) -> Option<Asked> {
        let is_answered = |request: &mut Request| {
            let sent = request.sent;
            sent.is_some_and(|(asked, _)| asked == identifier)
        };
        let request = self.request.take_if(is_answered);
        request.map(|request| request.what)
    }

    /// The identifier of the next signal that is no answer: never 0.
    const fn new_identifier(&mut self) -> u8 {
        self.identifier = match self.identifier {
            u8::MAX => 1,
            before => before + 1,
        };
        self.identifier
    }
}

impl Connection {
    /// Asks the peer to end the channel that has been given up.
    pub(in crate::ble) fn ask_to_close(&mut self) {
        self.signalling.request = Some(Request {
            what: Asked::Disconnection {
                destination: self.channel.remote.channel,
            },
            sent: None,
        });
    }

    /// Takes a signal. `is_too_long`: it is longer than the signalling MTU, and this its beginning.
    pub(in crate::ble) fn on_signal(
        &mut self,
        (bytes, is_too_long): (&[u8], bool),
        counters: &mut HostCounters,
        now: Instant,
    ) {
        let identifier = bytes.get(1).copied();
        if let Some(identifier) = identifier.filter(|_| is_too_long) {
            counters.count(ChannelDrop::MalformedSignal);
            let reason = reject::TOO_LONG;
            self.signalling
                .answer(identifier, Signal::Reject { reason }, counters);
            return;
        }
        match Signal::parse(bytes) {
            Ok((identifier, signal)) => self.on_parsed(identifier, signal, counters, now),
            Err(SignalError::Unknown { identifier }) => {
                counters.count(ChannelDrop::UnknownSignal);
                self.reject(identifier, reject::NOT_UNDERSTOOD, counters);
            }
            // Whether it was a request, which has an answer, cannot be known.
            Err(SignalError::Malformed) => {
                counters.count(ChannelDrop::MalformedSignal);
            }
        }
    }

    fn reject(&mut self, identifier: u8, reason: u16, counters: &mut HostCounters) {
        let signal = Signal::Reject { reason };
        self.signalling.answer(identifier, signal, counters);
    }

    fn on_parsed(
        &mut self,
        identifier: u8,
        signal: Signal,
        counters: &mut HostCounters,
        now: Instant,
    ) {
        match signal {
            Signal::ConnectionRequest { service, end } => {
                self.on_request(identifier, service, end, counters, now);
            }
            Signal::ConnectionResponse { result, end } => {
                self.on_response(identifier, (result, end), counters, now);
            }
            Signal::Reject { .. } => self.on_reject(identifier, counters, now),
            Signal::DisconnectionRequest {
                destination,
                source,
            } => {
                let ends = (destination, source);
                self.on_disconnection(identifier, ends, counters, now);
            }
            Signal::DisconnectionResponse { .. } => {
                match self.signalling.take_request(identifier) {
                    Some(Asked::Disconnection { .. }) => self.end_channel(counters, now),
                    _ => counters.count(ChannelDrop::StrayAnswer),
                }
            }
            Signal::ParameterRequest(asked) => self.on_intervals(identifier, asked, counters),
            Signal::ParameterResponse { .. } => counters.count(ChannelDrop::StrayAnswer),
            Signal::Credits { channel, credits } => {
                self.on_credits(channel, credits, counters);
            }
        }
    }

    /// The peer asks for a channel.
    fn on_request(
        &mut self,
        identifier: u8,
        service: u16,
        end: End,
        counters: &mut HostCounters,
        now: Instant,
    ) {
        let is_open = self.channel.state != State::Closed;
        let is_asking = self.signalling.request.is_some();
        let result = if service != IPSP {
            result::UNKNOWN_SERVICE
        } else if !DYNAMIC.contains(&end.channel) {
            result::INVALID_SOURCE
        } else if is_open && self.channel.remote.channel == end.channel {
            result::SOURCE_TAKEN
        } else if is_open || is_asking {
            result::NO_RESOURCES
        } else if !is_usable(&end) {
            result::UNACCEPTABLE
        } else {
            result::SUCCESS
        };
        let is_accepted = result == result::SUCCESS;
        let end_here = if is_accepted { END } else { NO_END };
        let answer = Signal::ConnectionResponse {
            result,
            end: end_here,
        };
        self.signalling.answer(identifier, answer, counters);
        if !is_accepted {
            return;
        }
        self.open(end, now);
    }

    /// The answer to a request for a channel.
    fn on_response(
        &mut self,
        identifier: u8,
        (result, end): (u16, End),
        counters: &mut HostCounters,
        now: Instant,
    ) {
        let Some(Asked::Channel) = self.signalling.take_request(identifier) else {
            counters.count(ChannelDrop::StrayAnswer);
            return;
        };
        if result != result::SUCCESS {
            self.put_off(now);
            return;
        }
        self.open(end, now);
        if !DYNAMIC.contains(&end.channel) || !is_usable(&end) {
            self.fail(ChannelDrop::MalformedSignal, counters);
            return;
        }
        self.signalling.refusals = 0;
    }

    /// The peer did not understand what it was asked.
    fn on_reject(&mut self, identifier: u8, counters: &mut HostCounters, now: Instant) {
        match self.signalling.take_request(identifier) {
            Some(Asked::Channel) => self.put_off(now),
            // It does not know the channel: then there is none.
            Some(Asked::Disconnection { .. }) => self.end_channel(counters, now),
            None => counters.count(ChannelDrop::StrayAnswer),
        }
    }

    /// The peer ends a channel, by the names of its ends.
    fn on_disconnection(
        &mut self,
        identifier: u8,
        (destination, source): (u16, u16),
        counters: &mut HostCounters,
        now: Instant,
    ) {
        if destination != LOCAL || self.channel.state == State::Closed {
            counters.count(ChannelDrop::MalformedSignal);
            self.reject(identifier, reject::INVALID_CHANNEL, counters);
            return;
        }
        // Core 5.4 Vol 3 Part A §4.6: a wrong source is discarded in silence.
        if source != self.channel.remote.channel {
            counters.count(ChannelDrop::MalformedSignal);
            return;
        }
        self.end_channel(counters, now);
        let answer = Signal::DisconnectionResponse {
            destination,
            source,
        };
        self.signalling.answer(identifier, answer, counters);
    }

    /// The peripheral asks for other times of the connection.
    fn on_intervals(&mut self, identifier: u8, asked: Intervals, counters: &mut HostCounters) {
        if self.role == Role::Peripheral {
            counters.count(ChannelDrop::UnknownSignal);
            return self.reject(identifier, reject::NOT_UNDERSTOOD, counters);
        }
        let is_possible = is_possible(&asked);
        if is_possible {
            self.wishes.update = Some(Timing {
                interval: asked.max,
                latency: asked.latency,
                timeout: asked.timeout,
            });
        }
        let answer = Signal::ParameterResponse {
            result: u16::from(!is_possible),
        };
        self.signalling.answer(identifier, answer, counters);
    }

    fn on_credits(&mut self, channel: u16, credits: u16, counters: &mut HostCounters) {
        let remote = &mut self.channel.remote;
        if self.channel.state != State::Open || channel != remote.channel || credits == 0 {
            counters.count(ChannelDrop::MalformedSignal);
            return;
        }
        match remote.credits.checked_add(credits) {
            Some(sum) => {
                remote.credits = sum;
                self.channel.dry_since = None;
            }
            None => {
                self.fail(ChannelDrop::CreditOverflow, counters);
            }
        }
    }

    /// The channel is over at both ends; a central opens another one after a while.
    fn end_channel(&mut self, counters: &mut HostCounters, now: Instant) {
        self.close(counters);
        self.signalling.request = None;
        self.put_off(now);
    }

    /// Asks for a channel later, and ever later.
    fn put_off(&mut self, now: Instant) {
        let signalling = &mut self.signalling;
        let pause = PAUSE.saturating_mul(1 << signalling.refusals.min(5));
        signalling.refusals = signalling.refusals.saturating_add(1);
        signalling.opens_at = now + pause;
    }

    /// Does what is due: a central asks for its channel, and a request that has no answer ends the
    /// connection.
    pub(in crate::ble) fn poll_signals(&mut self, counters: &mut HostCounters, now: Instant) {
        let is_wanted = self.role == Role::Central && self.channel.state == State::Closed;
        let signalling = &mut self.signalling;
        match signalling.request {
            None if is_wanted && now >= signalling.opens_at => {
                signalling.request = Some(Request {
                    what: Asked::Channel,
                    sent: None,
                });
            }
            Some(Request {
                sent: Some((_, at)),
                ..
            }) if now.since(at) >= ANSWER_TIMEOUT => {
                counters.count(ChannelDrop::NoAnswer);
                signalling.request = None;
                self.wishes.end = Some(ENDED_BY_USER);
            }
            _ => {}
        }
    }

    /// When [`Self::poll_signals`] has something to do.
    pub(in crate::ble) fn signals_deadline(&self) -> Option<Instant> {
        let signalling = &self.signalling;
        let is_wanted = self.role == Role::Central && self.channel.state == State::Closed;
        let opens = (is_wanted && signalling.request.is_none()).then_some(signalling.opens_at);
        let answer = signalling.request.and_then(|request| request.sent);
        earliest(opens, answer.map(|(_, at)| at + ANSWER_TIMEOUT))
    }

    /// Writes the next signal, as a PDU; returns its length.
    pub(in crate::ble) fn emit_signal(
        &mut self,
        now: Instant,
        out: &mut [u8],
    ) -> Result<Option<usize>, Full> {
        if self.outgoing.is_within() {
            return Ok(None);
        }
        let Some((identifier, signal)) = self.next_signal(now) else {
            return Ok(None);
        };
        let (head, body) = out.split_at_mut_checked(HEADER_LEN).ok_or(Full)?;
        let mut w = Writer::new(body);
        signal.emit(identifier, &mut w)?;
        let len = w.written();
        let header = Header {
            len: len as u16,
            channel: SIGNALLING,
        };
        header.emit(&mut Writer::new(head))?;
        Ok(Some(HEADER_LEN + len))
    }

    fn next_signal(&mut self, now: Instant) -> Option<(u8, Signal)> {
        let signalling = &mut self.signalling;
        let [first, later @ ..] = &mut signalling.answers;
        if let Some(answer) = first.take() {
            *first = later.iter_mut().find_map(Option::take);
            return Some(answer);
        }
        let channel = &mut self.channel;
        if channel.state == State::Open && channel.owed >= CREDITS_RETURNED {
            let credits = core::mem::take(&mut channel.owed);
            channel.granted = channel.granted.saturating_add(credits);
            let signal = Signal::Credits {
                channel: LOCAL,
                credits,
            };
            return Some((signalling.new_identifier(), signal));
        }
        let waiting = signalling.request.filter(|request| request.sent.is_none());
        let signal = match waiting?.what {
            Asked::Channel => Signal::ConnectionRequest {
                service: IPSP,
                end: END,
            },
            Asked::Disconnection { destination } => Signal::DisconnectionRequest {
                destination,
                source: LOCAL,
            },
        };
        let identifier = signalling.new_identifier();
        if let Some(request) = &mut signalling.request {
            request.sent = Some((identifier, now));
        }
        Some((identifier, signal))
    }
}

/// Whether the other end takes what IPv6 needs (RFC 7668 §3: an MTU of 1,280 bytes).
const fn is_usable(end: &End) -> bool {
    end.mtu >= MTU && end.mps >= MTU_MIN
}

/// Whether a connection can have these times (Core 5.4 Vol 3 Part A §4.20).
fn is_possible(asked: &Intervals) -> bool {
    let is_in_range = asked.min >= 6
        && asked.min <= asked.max
        && asked.max <= 3200
        && asked.latency <= 499
        && (10..=3200).contains(&asked.timeout);
    // The timeout, in units of 10 ms, holds two intervals of 1.25 ms with all that may be left out.
    let shortest = u32::from(asked.max) * (1 + u32::from(asked.latency));
    is_in_range && u32::from(asked.timeout) * 4 > shortest
}

/// This end of a channel.
const END: End = End {
    channel: LOCAL,
    mtu: MTU,
    mps: MPS,
    credits: CREDITS,
};

const NO_END: End = End {
    channel: 0,
    mtu: 0,
    mps: 0,
    credits: 0,
};

/// Answers that wait for room: a peer has one request open at a time, and credits have no answer.
const ANSWERS_MAX: usize = 2;

/// The first pause before a refused channel is asked for again; it doubles up to 32 times.
const PAUSE: Duration = Duration::from_secs(1);

/// How long a request waits for its answer: RTX, 1 to 60 s (Core 5.4 Vol 3 Part A §6.2.1).
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// "Remote user terminated connection" (Core 5.4 Vol 1 Part F §2.19).
const ENDED_BY_USER: u8 = 0x13;
