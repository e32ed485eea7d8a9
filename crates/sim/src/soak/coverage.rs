//! Which of TCP's transitions runs have gone through, and that none is illegal.
//!
//! Source: RFC 9293 §3.3.2, figure 5 with its notes. The figure leaves out resets and aborts,
//! which end a connection from any state; how connections end so is counted by error.

use motet::tcp::{Error, State};

/// A transition of figure 5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transition {
    /// The state before.
    pub from: State,
    /// The state after.
    pub to: State,
    /// The event that brings the transition about, in the words of RFC 9293's figure 5.
    pub event: &'static str,
    /// Why this stack does not have the transition, if it does not.
    pub absent: Option<&'static str>,
}

impl Transition {
    /// Whether the transition may be one of several that a single segment brings about: calls of
    /// the application and timers come alone, but a CLOSE may have waited for the handshake.
    fn is_of_segment(&self, is_first: bool) -> bool {
        self.event.starts_with("receive") || !is_first && self.to == State::FinWait1
    }
}

const fn legal(from: State, to: State, event: &'static str) -> Transition {
    Transition {
        from,
        to,
        event,
        absent: None,
    }
}

/// Every transition of figure 5, its notes included.
pub const TRANSITIONS: [Transition; 21] = [
    legal(State::Closed, State::Listen, "passive OPEN"),
    legal(State::Closed, State::SynSent, "active OPEN, send SYN"),
    legal(State::Listen, State::Closed, "CLOSE"),
    Transition {
        absent: Some("a listener does not send: RFC 9293 §3.10.2 is for sockets that turn active"),
        ..legal(State::Listen, State::SynSent, "SEND, send SYN")
    },
    legal(State::Listen, State::SynReceived, "receive SYN"),
    legal(State::SynReceived, State::Listen, "receive RST (note 1)"),
    legal(State::SynSent, State::Closed, "CLOSE"),
    legal(State::SynSent, State::Established, "receive SYN, ACK"),
    legal(State::SynSent, State::SynReceived, "receive SYN"),
    legal(State::SynReceived, State::Established, "receive ACK of SYN"),
    legal(State::SynReceived, State::FinWait1, "CLOSE, send FIN"),
    legal(State::Established, State::FinWait1, "CLOSE, send FIN"),
    legal(State::Established, State::CloseWait, "receive FIN"),
    legal(State::FinWait1, State::FinWait2, "receive ACK of FIN"),
    legal(State::FinWait1, State::Closing, "receive FIN"),
    legal(
        State::FinWait1,
        State::TimeWait,
        "receive FIN, ACK of FIN (note 2)",
    ),
    legal(State::CloseWait, State::LastAck, "CLOSE, send FIN"),
    legal(State::FinWait2, State::TimeWait, "receive FIN"),
    legal(State::Closing, State::TimeWait, "receive ACK of FIN"),
    legal(State::LastAck, State::Closed, "receive ACK of FIN"),
    legal(State::TimeWait, State::Closed, "two MSL have passed"),
];

/// Every way for a connection to end before its time.
pub(crate) const ERRORS: [(Error, &str); 7] = [
    (Error::Refused, "refused"),
    (Error::Reset, "reset by the peer"),
    (Error::TimedOut, "timed out"),
    (Error::KeepaliveTimedOut, "keepalive timed out"),
    (Error::UserTimeout, "user timeout"),
    (Error::Unreachable, "unreachable"),
    (Error::Aborted, "aborted here"),
];

/// How often each transition was seen.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Coverage {
    transitions: [u64; TRANSITIONS.len()],
    errors: [u64; ERRORS.len()],
    /// FIN-WAIT-2 left by its timer: nobody reads, and the peer is gone.
    pub fin_wait_2_timeouts: u64,
    /// A reset when both sides had closed: nothing was lost.
    pub late_resets: u64,
}

impl Coverage {
    /// Notes that a connection went from one state to another, perhaps through others: one
    /// segment may complete a handshake, and bring a FIN too.
    ///
    /// # Errors
    /// The transition in words, when no path of figure 5 leads there.
    pub(crate) fn note(
        &mut self,
        from: State,
        to: State,
        error: Option<Error>,
    ) -> Result<(), String> {
        if from == to {
            return Ok(());
        }
        if let (State::Closed, Some(error)) = (to, error) {
            if let Some(at) = ERRORS.iter().position(|(known, _)| *known == error) {
                self.errors[at] += 1;
            }
            return Ok(());
        }
        match (from, to) {
            (State::FinWait2, State::Closed) => self.fin_wait_2_timeouts += 1,
            (State::Closing, State::Closed) => self.late_resets += 1,
            _ => {
                let path = path(from, to).ok_or_else(|| {
                    format!("a connection went from {from:?} to {to:?}, which is no transition")
                })?;
                for step in path {
                    self.transitions[step] += 1;
                }
            }
        }
        Ok(())
    }

    /// Adds what another run has seen.
    pub(crate) fn add(&mut self, other: &Self) {
        let pairs = self.transitions.iter_mut().zip(other.transitions);
        for (sum, count) in pairs.chain(self.errors.iter_mut().zip(other.errors)) {
            *sum += count;
        }
        self.fin_wait_2_timeouts += other.fin_wait_2_timeouts;
        self.late_resets += other.late_resets;
    }

    /// Every transition with how often it was seen.
    pub fn transitions(&self) -> impl Iterator<Item = (&'static Transition, u64)> {
        TRANSITIONS.iter().zip(self.transitions)
    }

    /// Every error with how many connections ended by it.
    pub fn errors(&self) -> impl Iterator<Item = (&'static str, u64)> {
        ERRORS.iter().map(|(_, name)| *name).zip(self.errors)
    }
}

/// The shortest way from one state to another, as places in [`TRANSITIONS`].
fn path(from: State, to: State) -> Option<Vec<usize>> {
    let mut ways = vec![(from, Vec::new())];
    for _ in 0..STEPS_MAX {
        let mut longer = Vec::new();
        for (state, way) in &ways {
            for (place, transition) in TRANSITIONS.iter().enumerate() {
                let leads_on = transition.from == *state && transition.absent.is_none();
                let is_alone = way.is_empty() && transition.to == to;
                if leads_on && (is_alone || transition.is_of_segment(way.is_empty())) {
                    let mut way: Vec<usize> = way.clone();
                    way.push(place);
                    if transition.to == to {
                        return Some(way);
                    }
                    longer.push((transition.to, way));
                }
            }
        }
        ways = longer;
    }
    None
}

/// The most that one segment does: ends a handshake, acknowledges the FIN and brings one.
const STEPS_MAX: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_event_may_go_through_several_states_but_not_through_illegal_ones() {
        use State::{
            CloseWait, Closed, Established, FinWait1, LastAck, Listen, SynReceived, SynSent,
            TimeWait,
        };
        let cases = [
            (Closed, SynSent, Some(1)),
            (Listen, Established, Some(2)),
            (Listen, CloseWait, Some(3)),
            (SynSent, CloseWait, Some(2)),
            (SynSent, FinWait1, Some(2)),
            (Listen, Closed, Some(1)),
            (FinWait1, TimeWait, Some(1)),
            (SynReceived, FinWait1, Some(1)),
            (Established, SynSent, None),
            (CloseWait, FinWait1, None),
            (Established, LastAck, None),
            (Established, Closed, None),
            (FinWait1, Closed, None),
            (TimeWait, Established, None),
            (LastAck, TimeWait, None),
        ];
        for (from, to, steps) in cases {
            let found = path(from, to).map(|way| way.len());
            assert_eq!(found, steps, "{from:?} to {to:?}");
            let noted = Coverage::default().note(from, to, None);
            assert_eq!(noted.is_ok(), steps.is_some(), "{from:?} to {to:?}");
        }
    }

    #[test]
    fn ends_by_error_are_legal_from_everywhere_and_counted() {
        let mut coverage = Coverage::default();
        let reset = Some(Error::Reset);
        coverage
            .note(State::Established, State::Closed, reset)
            .unwrap();
        assert!(
            coverage
                .errors()
                .any(|seen| seen == ("reset by the peer", 1))
        );
        let silent = coverage.note(State::Established, State::Closed, None);
        assert!(silent.unwrap_err().contains("Established"));
    }
}
