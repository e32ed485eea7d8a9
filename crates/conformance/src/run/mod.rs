//! Playing a script against a host.
//!
//! Place: [`run`] takes a text and gives a [`ScriptOutcome`]. Events happen in order; time passes
//! only between events and while a segment is awaited. A line that this runner cannot carry out is
//! a refusal with a place and a reason, never a pass.
//!
//! As in packetdrill: local sequence numbers are relative to the stack's ISN, learned from its
//! SYN; timestamps are matched by the values the script gave them; a line may stand for several
//! segments, unless [`Judge`] says otherwise; windows are compared where the script has one.
//! Unlike packetdrill: times have no tolerance in percent, and a segment that no line claims is a
//! failure at the end, unless the script's last calls provoked it.

mod arguments;
mod assert;
mod calls;
mod command;
mod compare;
mod flow;
mod syscall;

#[cfg(test)]
mod tests;

use std::fmt;

use bumpalo::Bump;
use motet::time::{Duration, Instant};

use crate::host::{Host, Profile, Settings};
use crate::packet::Packet;
use crate::script::{self, Action, Event, IcmpSpec, Position, Script, SegmentSpec, Time};

/// Parts for another player of scripts: the library's test, which plays packetdrill's part.
pub mod kit {
    pub use super::arguments::{constant, first, port_of};
    pub use super::assert::{Doubt, holds};
    pub use super::command::{Orders, finds, orders};
    pub use super::compare::Expected;
    pub use super::flow::{Flow, Flows};
}

use compare::Expected;
use flow::Flows;
use syscall::{Attempt, Pending};

/// The profile, the strictness and the tolerance by which scripts are judged.
#[derive(Clone, Debug, Default)]
pub struct Judge {
    /// The system whose defaults and option layout the host has.
    pub profile: Profile,
    /// The profile lends its settings alone: segments and calls stay the stack's own.
    pub unlent: bool,
    /// Options are compared byte for byte, not as a set.
    pub strict: bool,
    /// A line stands for one segment.
    pub strict_segments: bool,
    /// Tolerance of times, µs, instead of the script's.
    pub tolerance_us: Option<u64>,
    /// Largest packet, bytes, instead of the profile's.
    pub mtu: Option<u32>,
}

/// The outcome of a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ScriptOutcome {
    /// Everything happened as the script says.
    Passed,
    /// Something did not happen as the script says.
    Failed(Problem),
    /// The text is no script, or needs what this runner cannot do.
    Refused(Problem),
}

/// Where and why a script did not pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The place in the script.
    pub at: Position,
    /// The reason, in one line.
    pub message: String,
    /// The expected and the seen, line by line.
    pub details: Vec<String>,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.at.line, self.at.column, self.message)?;
        for line in &self.details {
            write!(f, "\n    {line}")?;
        }
        Ok(())
    }
}

/// The reason that playing stopped.
enum Stop {
    Failed(Problem),
    Refused(Problem),
}

fn failed<T>(at: Position, message: String) -> Result<T, Stop> {
    Err(Stop::Failed(Problem {
        at,
        message,
        details: Vec::new(),
    }))
}

fn refused<T>(at: Position, message: String) -> Result<T, Stop> {
    Err(Stop::Refused(Problem {
        at,
        message,
        details: Vec::new(),
    }))
}

/// Plays the script `text`.
pub fn run(text: &str, judge: &Judge) -> ScriptOutcome {
    let script = match script::parse(text) {
        Ok(script) => script,
        Err(error) => {
            return ScriptOutcome::Refused(Problem {
                at: error.at,
                message: error.message,
                details: Vec::new(),
            });
        }
    };
    let arena = Bump::new();
    match play(&script, judge, &arena) {
        Ok(()) => ScriptOutcome::Passed,
        Err(Stop::Failed(problem)) => ScriptOutcome::Failed(problem),
        Err(Stop::Refused(problem)) => ScriptOutcome::Refused(problem),
    }
}

fn play(script: &Script, judge: &Judge, arena: &Bump) -> Result<(), Stop> {
    let (settings, options) = configure(script, judge)?;
    let host = Host::new(arena, settings, START);
    let mut player = Player {
        host,
        options,
        flows: Flows::default(),
        pending: None,
        last_time: 0,
    };
    if let Some((at, command)) = &script.init {
        player.command(*at, command)?;
    }
    for event in &script.events {
        player.event(event)?;
    }
    player.finish(script)?;
    match &script.cleanup {
        Some((at, command)) => player.command(*at, command),
        None => Ok(()),
    }
}

/// The options of the judging that a script itself sets.
#[derive(Clone, Debug)]
struct Options {
    tolerance_us: u64,
    strict: bool,
    strict_segments: bool,
    /// Length of a tick of timestamps in the script, µs, if they are to be checked.
    ts_tick_us: Option<u64>,
    bind_port: u16,
    connect_port: u16,
}

fn configure(script: &Script, judge: &Judge) -> Result<(Settings, Options), Stop> {
    let mut settings = Settings::of(judge.profile);
    settings.unlent = judge.unlent;
    let mut options = Options {
        tolerance_us: TOLERANCE_US,
        strict: judge.strict,
        strict_segments: judge.strict_segments,
        ts_tick_us: None,
        bind_port: 8080,
        connect_port: 8080,
    };
    for (at, name, value) in &script.options {
        let text = value.as_deref().unwrap_or("");
        let number = || match text.parse::<u64>() {
            Ok(number) => Ok(number),
            Err(_) => refused(*at, format!("--{name} takes a number, not `{text}`")),
        };
        let said = |result: Result<(), String>| result.or_else(|e| refused(*at, e));
        match name.as_str() {
            "tolerance_usecs" => options.tolerance_us = number()?,
            "mtu" => said(settings.set_mtu(number()?.min(65_535) as u32))?,
            "tcp_ts_tick_usecs" => options.ts_tick_us = Some(number()?),
            "bind_port" => options.bind_port = number()? as u16,
            "connect_port" => options.connect_port = number()? as u16,
            "strict_segments" => options.strict_segments = true,
            // Overridden: scripts run over IPv6, on addresses of the runner's choice, and
            // times without tolerance in percent.
            "ip_version" | "local_ip" | "remote_ip" | "gateway_ip" | "netmask_ip"
            | "tolerance_percent" | "speed" | "verbose" | "non_fatal" => {}
            // How packetdrill's device hands over segments longer than that: here, whole.
            "mss" => _ = number()?,
            _ => return refused(*at, format!("the option --{name} cannot be expressed")),
        }
    }
    if let Some(mtu) = judge.mtu {
        let start = Position { line: 1, column: 1 };
        settings.set_mtu(mtu).or_else(|e| refused(start, e))?;
    }
    if script.is_for_ipv4() {
        settings.suit_ipv4();
    }
    options.tolerance_us = judge.tolerance_us.unwrap_or(options.tolerance_us);
    Ok((settings, options))
}

struct Player<'m> {
    host: Host<'m>,
    options: Options,
    flows: Flows,
    /// The call under way that has not returned.
    pending: Option<Pending>,
    /// When the last event happened: µs since the start.
    last_time: u64,
}

impl Player<'_> {
    fn event(&mut self, event: &Event) -> Result<(), Stop> {
        if self.host.is_runaway() {
            return failed(event.at, "the stack does not come to rest".to_owned());
        }
        match &event.action {
            Action::Expect(spec) => return self.expect(event, spec),
            Action::Inject(spec) => {
                self.wait_for(event)?;
                self.inject(event, spec)?;
            }
            Action::InjectIcmp(spec) => {
                self.wait_for(event)?;
                self.inject_icmp(*spec);
            }
            Action::Call(call) => {
                self.wait_for(event)?;
                self.call(event, call)?;
            }
            Action::Command(command) => {
                self.wait_for(event)?;
                self.command(event.at, command)?;
            }
            Action::Code(code) => {
                self.wait_for(event)?;
                self.code(event.at, code)?;
            }
        }
        self.retry_pending()
    }

    // ---- time ----

    /// Lets time pass until the event is due.
    fn wait_for(&mut self, event: &Event) -> Result<(), Stop> {
        let Some((at, _)) = event.time.span(self.last_time) else {
            return Ok(());
        };
        let now = self.script_now();
        if now > at + self.options.tolerance_us {
            return failed(
                event.at,
                format!(
                    "due at {} s, but it is {} s already",
                    seconds(at),
                    seconds(now)
                ),
            );
        }
        self.pass_until(START + Duration::from_micros(at))?;
        self.last_time = at;
        Ok(())
    }

    /// Lets time pass, timer by timer; a call under way may return on the way.
    fn pass_until(&mut self, until: Instant) -> Result<(), Stop> {
        while let Some(next) = self.next_stop().filter(|next| *next <= until) {
            self.host.advance_to(next);
            self.retry_pending()?;
            if self.host.is_runaway() {
                break;
            }
        }
        self.host.advance_to(until);
        self.retry_pending()
    }

    /// The next moment at which something happens by itself.
    fn next_stop(&self) -> Option<Instant> {
        let call = self.pending.as_ref().and_then(|pending| pending.deadline);
        motet::time::earliest(self.host.next_deadline(), call)
    }

    fn script_now(&self) -> u64 {
        self.host.now().since(START).as_micros()
    }

    // ---- segments ----

    fn inject(&mut self, event: &Event, spec: &SegmentSpec) -> Result<(), Stop> {
        let flow = self.flows.for_inbound(spec, self.options.bind_port);
        match flow.inbound(spec, self.host.settings.local) {
            Ok(packet) => self.host.deliver(&packet),
            Err(message) => return failed(event.at, message),
        }
        Ok(())
    }

    fn inject_icmp(&mut self, spec: IcmpSpec) {
        let flow = self.flows.current(self.options.bind_port);
        let packet = flow.icmp_error(spec, self.host.settings.local);
        self.host.deliver(&packet);
    }

    fn expect(&mut self, event: &Event, spec: &SegmentSpec) -> Result<(), Stop> {
        let window = event.time.span(self.last_time);
        let mut expected = Expected::new(spec, self.options.strict, self.options.strict_segments);
        loop {
            let Some((at, packet)) = self.next_packet(window)? else {
                return Err(self.missing(event, window));
            };
            if spec.ports.is_none() && self.flows.is_past(&packet) {
                continue;
            }
            let flow = self
                .flows
                .for_outbound(&packet, spec, self.options.bind_port);
            let seen = flow.translate(&packet, spec);
            let now = at.since(START).as_micros();
            let mut differences = expected.differences(&seen);
            if let Some(tick) = self.options.ts_tick_us {
                differences.extend(flow.check_tick(spec, &packet.segment, tick));
            }
            if let Some((from, to)) = window
                && (now + self.options.tolerance_us < from || now > to + self.options.tolerance_us)
            {
                differences.push(format!(
                    "time: expected {}, seen {} s",
                    range(from, to),
                    seconds(now)
                ));
            }
            if !differences.is_empty() {
                return Err(Stop::Failed(self.mismatch(
                    event,
                    spec,
                    &seen,
                    &differences,
                )));
            }
            flow.learn_timestamp(spec, &packet.segment);
            if expected.advance(&seen) {
                self.last_time = match event.time {
                    Time::Absolute(_) | Time::Relative(_) => window.map_or(now, |(from, _)| from),
                    _ => now,
                };
                return Ok(());
            }
        }
    }

    /// The next segment sent, waiting for it as long as its time has not passed, and, for
    /// the report's sake, until the next one after that.
    fn next_packet(
        &mut self,
        window: Option<(u64, u64)>,
    ) -> Result<Option<(Instant, Packet)>, Stop> {
        let patience = window.map_or(PATIENCE_US, |(_, to)| {
            (to + self.options.tolerance_us).saturating_sub(self.script_now()) + LATENESS_US
        });
        let until = self.host.now() + Duration::from_micros(patience);
        while self.host.peek_sent().is_none() {
            match self.next_stop().filter(|next| *next <= until) {
                Some(next) if !self.host.is_runaway() => {
                    self.host.advance_to(next);
                    self.retry_pending()?;
                }
                _ => return Ok(None),
            }
        }
        let sent = self.host.take_sent();
        Ok(sent.and_then(|sent| Some((sent.at, Packet::parse(&sent.bytes)?.0))))
    }

    fn missing(&self, event: &Event, window: Option<(u64, u64)>) -> Stop {
        let by = match window {
            Some((from, to)) => format!(" at {}", range(from, to)),
            None => String::new(),
        };
        Stop::Failed(Problem {
            at: event.at,
            message: format!("expected a segment{by}, but the stack sent none"),
            details: vec![format!("expected: {}", event.text)],
        })
    }

    fn mismatch(
        &self,
        event: &Event,
        spec: &SegmentSpec,
        seen: &Packet,
        differences: &[String],
    ) -> Problem {
        let mut details = vec![
            format!("expected: {}", event.text),
            format!("seen:     > {}", seen.segment),
            format!("decoded:  {}", compare::decode_spec(spec)),
            format!("          {}", compare::decode_seen(seen)),
        ];
        details.extend(differences.iter().cloned());
        let names: Vec<&str> = differences
            .iter()
            .filter_map(|line| line.split(':').next())
            .collect();
        Problem {
            at: event.at,
            message: format!("the segment sent differs in {}", names.join(", ")),
            details,
        }
    }

    // ---- the end ----

    /// Nothing may be left: no call under way, no segment that no line claimed.
    fn finish(&mut self, script: &Script) -> Result<(), Stop> {
        let Some(last) = script.events.last() else {
            return Ok(());
        };
        if let Some(pending) = &self.pending {
            self.pass_until(START + Duration::from_micros(pending.until))?;
        }
        if let Some(pending) = &self.pending {
            return failed(pending.at, "the call never returned".to_owned());
        }
        // A segment that the last calls provoke is not awaited: the script ends before it comes.
        // Public scripts do the same after the last segment that they inject.
        let public = self.host.settings.profile != Profile::Motet;
        let excused = public || matches!(&last.action, Action::Call(_));
        let start_of_end = START + Duration::from_micros(self.last_time);
        // Linux's scripts claim the first large packet of a burst and leave the rest.
        let bursts = self.host.settings.profile == Profile::Linux && !self.options.strict_segments;
        while let Some(sent) = self.host.take_sent() {
            if excused && sent.at >= start_of_end || bursts && sent.at <= start_of_end {
                continue;
            }
            let Some((packet, _)) = Packet::parse(&sent.bytes) else {
                continue;
            };
            // Calls may stand between a segment and the script's end, too: packetdrill never sees
            // the answer.
            if public && packet.segment.is_bare_ack() {
                continue;
            }
            let flow =
                self.flows
                    .for_outbound(&packet, &SegmentSpec::default(), self.options.bind_port);
            let seen = flow.translate(&packet, &SegmentSpec::default());
            return Err(Stop::Failed(Problem {
                at: last.at,
                message: "the script is over, but the stack sent more".to_owned(),
                details: vec![
                    format!(
                        "seen:     {} > {}",
                        seconds(sent.at.since(START).as_micros()),
                        seen.segment
                    ),
                    format!("          {}", compare::decode_seen(&seen)),
                ],
            }));
        }
        Ok(())
    }

    fn retry_pending(&mut self) -> Result<(), Stop> {
        let Some(mut pending) = self.pending.take() else {
            return Ok(());
        };
        let now = self.script_now();
        match self.attempt(&mut pending)? {
            Attempt::Blocked => {
                self.pending = Some(pending);
                Ok(())
            }
            Attempt::Done(result) => self.judge_return(&pending, &result, now),
        }
    }
}

/// Microseconds as seconds, for reports.
fn seconds(us: u64) -> String {
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

fn range(from: u64, to: u64) -> String {
    match from == to {
        true => format!("{} s", seconds(from)),
        false => format!("{} to {} s", seconds(from), seconds(to)),
    }
}

/// When scripts start on the host's clock: not at its origin, where a zero could pass for
/// "never".
const START: Instant = Instant::from_micros(1_000_000_000);
/// packetdrill's default tolerance of times, µs.
const TOLERANCE_US: u64 = 4_000;
/// How long a segment at any time is awaited: the longest backoff twice over.
const PATIENCE_US: u64 = 24 * 3600 * 1_000_000;
/// How much longer a segment is awaited, to report how late it came.
const LATENESS_US: u64 = 300 * 1_000_000;
