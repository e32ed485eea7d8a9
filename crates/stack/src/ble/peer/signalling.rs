//! L2CAP signals of one connection: requests of the peer, and requests of this end.

use super::{ChannelKind, Connection, PerChannel, State};
use crate::ble::counters::{ChannelDrop, HostCounters};
use crate::ble::event::{GapRole, Timing};
use crate::ble::{CREDITS, CREDITS_RETURNED, MPS, MTU};
use crate::time::{Duration, Instant, earliest};
use crate::wire::cursor::{Full, Writer};
use crate::wire::l2cap::{
    DYNAMIC, End, HEADER_LEN, Header, Intervals, MTU_MIN, SIGNALLING, Signal, SignalError, reject,
    result,
};

/// Requests that wait for a response, sent or received.
#[derive(Debug)]
pub(in crate::ble) struct Signalling {
    /// Answers that wait for room in the controller, each with its identifier.
    answers: [Option<(u8, Signal)>; ANSWERS_MAX],
    /// Identifier of the last signal that this end sent and that answered no request.
    identifier: u8,
    attempts: PerChannel<Attempt>,
}

/// The request about a channel that is under way.
#[derive(Clone, Copy, Debug)]
struct Attempt {
    request: Option<Request>,
    /// When to request the channel, if there is none.
    opens_at: Instant,
    /// Number of refusals in a row.
    refusals: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Request {
    what: SignalRequest,
    /// The request's identifier, and when it was sent; `None`: it waits for room in the controller.
    sent: Option<(u8, Instant)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SignalRequest {
    Channel,
    Disconnection { destination: u16 },
}

impl Signalling {
    pub(in crate::ble) const fn new(now: Instant) -> Self {
        let attempt = Attempt {
            request: None,
            opens_at: now,
            refusals: 0,
        };
        Self {
            answers: [None; ANSWERS_MAX],
            identifier: 0,
            attempts: PerChannel::all(attempt),
        }
    }

    const fn attempt(&self, which: ChannelKind) -> &Attempt {
        self.attempts.get(which)
    }

    const fn attempt_mut(&mut self, which: ChannelKind) -> &mut Attempt {
        self.attempts.get_mut(which)
    }

    fn answer(&mut self, identifier: u8, signal: Signal, counters: &mut HostCounters) {
        match self.answers.iter_mut().find(|slot| slot.is_none()) {
            Some(slot) => *slot = Some((identifier, signal)),
            None => counters.count(ChannelDrop::AnswersFull),
        }
    }

    /// Takes the request that this is an answer to, and which channel it was about.
    fn take_request(&mut self, identifier: u8) -> Option<(ChannelKind, SignalRequest)> {
        let is_answered = |request: &mut Request| {
            let sent = request.sent;
            sent.is_some_and(|(asked, _)| asked == identifier)
        };
        ChannelKind::ALL.into_iter().find_map(|which| {
            let request = self.attempt_mut(which).request.take_if(is_answered);
            request.map(|request| (which, request.what))
        })
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
    /// Asks the peer to end a channel that has been given up.
    pub(in crate::ble) fn ask_to_close(&mut self, which: ChannelKind) {
        let destination = self.channel(which).remote.channel;
        self.signalling.attempt_mut(which).request = Some(Request {
            what: SignalRequest::Disconnection { destination },
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
                    Some((which, SignalRequest::Disconnection { .. })) => {
                        self.end_channel(which, counters, now);
                    }
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
        let which = self.attributes.which_of(service);
        let to = which.unwrap_or(ChannelKind::Ip);
        let is_open = self.channel(to).state != State::Closed;
        let is_asking = self.signalling.attempt(to).request.is_some();
        let is_taken = ChannelKind::ALL.into_iter().any(|which| {
            let channel = self.channel(which);
            channel.state != State::Closed && channel.remote.channel == end.channel
        });
        let result = if which.is_none() {
            result::UNKNOWN_SERVICE
        } else if !DYNAMIC.contains(&end.channel) {
            result::INVALID_SOURCE
        } else if is_taken {
            result::SOURCE_TAKEN
        } else if is_open || is_asking {
            result::NO_RESOURCES
        } else if !is_usable(&end) {
            result::UNACCEPTABLE
        } else {
            result::SUCCESS
        };
        let is_accepted = result == result::SUCCESS;
        let end_here = if is_accepted { end_of(to) } else { NO_END };
        let answer = Signal::ConnectionResponse {
            result,
            end: end_here,
        };
        self.signalling.answer(identifier, answer, counters);
        if !is_accepted {
            return;
        }
        self.open(to, end, now);
    }

    /// The answer to a request for a channel.
    fn on_response(
        &mut self,
        identifier: u8,
        (result, end): (u16, End),
        counters: &mut HostCounters,
        now: Instant,
    ) {
        let Some((which, SignalRequest::Channel)) = self.signalling.take_request(identifier) else {
            counters.count(ChannelDrop::StrayAnswer);
            return;
        };
        if result != result::SUCCESS {
            self.put_off(which, now);
            return;
        }
        self.open(which, end, now);
        if !DYNAMIC.contains(&end.channel) || !is_usable(&end) {
            self.fail(which, ChannelDrop::MalformedSignal, counters);
            return;
        }
        self.signalling.attempt_mut(which).refusals = 0;
    }

    /// The peer has rejected a request as not understood.
    fn on_reject(&mut self, identifier: u8, counters: &mut HostCounters, now: Instant) {
        match self.signalling.take_request(identifier) {
            Some((which, SignalRequest::Channel)) => self.put_off(which, now),
            // It does not know the channel: then there is none.
            Some((which, SignalRequest::Disconnection { .. })) => {
                self.end_channel(which, counters, now);
            }
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
        let which = ChannelKind::of_local(destination);
        let Some(which) = which.filter(|which| self.channel(*which).state != State::Closed) else {
            counters.count(ChannelDrop::MalformedSignal);
            self.reject(identifier, reject::INVALID_CHANNEL, counters);
            return;
        };
        // Core 5.4 Vol 3 Part A §4.6: a wrong source is discarded in silence.
        if source != self.channel(which).remote.channel {
            counters.count(ChannelDrop::MalformedSignal);
            return;
        }
        self.end_channel(which, counters, now);
        let answer = Signal::DisconnectionResponse {
            destination,
            source,
        };
        self.signalling.answer(identifier, answer, counters);
    }

    /// The peripheral asks for other times of the connection.
    fn on_intervals(&mut self, identifier: u8, asked: Intervals, counters: &mut HostCounters) {
        if self.role == GapRole::Peripheral {
            counters.count(ChannelDrop::UnknownSignal);
            return self.reject(identifier, reject::NOT_UNDERSTOOD, counters);
        }
        let timing = Timing {
            interval: asked.max,
            latency: asked.latency,
            timeout: asked.timeout,
        };
        // Core 5.4 Vol 3 Part A §4.20.
        let is_possible = (6..=asked.max).contains(&asked.min) && timing.is_possible();
        if is_possible {
            self.wishes.update = Some(timing);
        }
        let answer = Signal::ParameterResponse {
            result: u16::from(!is_possible),
        };
        self.signalling.answer(identifier, answer, counters);
    }

    fn on_credits(&mut self, channel: u16, credits: u16, counters: &mut HostCounters) {
        let which = ChannelKind::ALL.into_iter().find(|which| {
            let found = self.channel(*which);
            found.state != State::Closed && found.remote.channel == channel
        });
        let Some(which) = which.filter(|_| credits > 0) else {
            counters.count(ChannelDrop::MalformedSignal);
            return;
        };
        let channel = self.channel_mut(which);
        if channel.state == State::Closing {
            // The peer sent them before it heard of the end.
            return;
        }
        match channel.remote.credits.checked_add(credits) {
            Some(sum) => {
                channel.remote.credits = sum;
                channel.dry_since = None;
            }
            None => self.fail(which, ChannelDrop::CreditOverflow, counters),
        }
    }

    /// A channel is over at both ends; a central opens another one after a while.
    fn end_channel(&mut self, which: ChannelKind, counters: &mut HostCounters, now: Instant) {
        self.close(which, counters);
        self.signalling.attempt_mut(which).request = None;
        self.put_off(which, now);
    }

    /// Repeats the request for a channel later, at growing intervals.
    fn put_off(&mut self, which: ChannelKind, now: Instant) {
        let attempt = self.signalling.attempt_mut(which);
        let pause = PAUSE.saturating_mul(1 << attempt.refusals.min(5));
        attempt.refusals = attempt.refusals.saturating_add(1);
        attempt.opens_at = now + pause;
    }

    /// Whether a central wants a channel that it has not.
    fn is_wanted(&self, which: ChannelKind) -> bool {
        self.role == GapRole::Central
            && self.channel(which).state == State::Closed
            && (which == ChannelKind::Ip || self.is_open())
            && self.attributes.service_of(which).is_some()
    }

    /// Does what is due: a central requests its channels, and a request without an answer ends the
    /// connection after a timeout.
    pub(in crate::ble) fn poll_signals(&mut self, counters: &mut HostCounters, now: Instant) {
        for which in ChannelKind::ALL {
            let is_wanted = self.is_wanted(which);
            let attempt = self.signalling.attempt_mut(which);
            match attempt.request {
                None if is_wanted && now >= attempt.opens_at => {
                    attempt.request = Some(Request {
                        what: SignalRequest::Channel,
                        sent: None,
                    });
                }
                Some(Request {
                    sent: Some((_, at)),
                    ..
                }) if now.since(at) >= ANSWER_TIMEOUT => {
                    counters.count(ChannelDrop::NoAnswer);
                    attempt.request = None;
                    self.wishes.end = Some(ENDED_BY_USER);
                }
                _ => {}
            }
        }
    }

    /// When [`Self::poll_signals`] has something to do.
    pub(in crate::ble) fn signals_deadline(&self) -> Option<Instant> {
        let deadlines = ChannelKind::ALL.into_iter().map(|which| {
            let attempt = self.signalling.attempt(which);
            let is_due = self.is_wanted(which) && attempt.request.is_none();
            let answer = attempt.request.and_then(|request| request.sent);
            let opens = is_due.then_some(attempt.opens_at);
            earliest(opens, answer.map(|(_, at)| at + ANSWER_TIMEOUT))
        });
        deadlines.fold(None, earliest)
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
        if let Some(len) = self.emit_attribute(out)? {
            return Ok(Some(len));
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
        for which in ChannelKind::ALL {
            let channel = self.channel_mut(which);
            if channel.state == State::Open && channel.owed >= CREDITS_RETURNED {
                let credits = core::mem::take(&mut channel.owed);
                channel.granted = channel.granted.saturating_add(credits);
                let signal = Signal::Credits {
                    channel: which.local(),
                    credits,
                };
                return Some((self.signalling.new_identifier(), signal));
            }
        }
        ChannelKind::ALL
            .into_iter()
            .find_map(|which| self.next_request(which, now))
    }

    /// The request about a channel that waits for room in the controller.
    fn next_request(&mut self, which: ChannelKind, now: Instant) -> Option<(u8, Signal)> {
        let service = self.attributes.service_of(which);
        let signalling = &mut self.signalling;
        let waiting = signalling.attempt(which).request;
        let waiting = waiting.filter(|request| request.sent.is_none());
        let signal = match waiting?.what {
            SignalRequest::Channel => Signal::ConnectionRequest {
                service: service?,
                end: end_of(which),
            },
            SignalRequest::Disconnection { destination } => Signal::DisconnectionRequest {
                destination,
                source: which.local(),
            },
        };
        let identifier = signalling.new_identifier();
        if let Some(request) = &mut signalling.attempt_mut(which).request {
            request.sent = Some((identifier, now));
        }
        Some((identifier, signal))
    }
}

/// Whether the other end takes what IPv6 needs (RFC 7668 §3: an MTU of 1,280 bytes).
const fn is_usable(end: &End) -> bool {
    end.mtu >= MTU && end.mps >= MTU_MIN
}

/// This end of a channel.
const fn end_of(which: ChannelKind) -> End {
    End {
        channel: which.local(),
        mtu: MTU,
        mps: MPS,
        credits: CREDITS,
    }
}

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
