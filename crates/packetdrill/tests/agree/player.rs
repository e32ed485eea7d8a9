//! packetdrill's part: events in order, times, packets.

use std::collections::BTreeMap;
use std::path::Path;

use motet_conformance::host::{LOCAL, REMOTE};
use motet_conformance::packet::Packet;
use motet_conformance::run::kit::{Doubt, Expected, Flows, finds, holds};
use motet_conformance::script::{self, Action, Call, Event, IcmpSpec, Script, SegmentSpec, Time};

use crate::calls::{Background, Done};
use crate::table::Table;

/// Plays a script; why it does not pass.
pub(crate) fn play(path: &Path, profile: &str) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let script = script::parse(&text).map_err(|e| e.message)?;
    let mut player = Player::new(&script, profile)?;
    if let Some((_, command)) = &script.init {
        player.command(command)?;
    }
    for event in &script.events {
        let result = player.event(event);
        result.map_err(|why| format!("{}: {why}", event.at.line))?;
    }
    player.await_background()?;
    if let Some((_, command)) = &script.cleanup {
        player.command(command)?;
    }
    (player.table.0.free)(player.table.0.userdata);
    Ok(())
}

pub(crate) struct Player {
    pub(crate) table: Table,
    pub(crate) flows: Flows,
    /// The script's descriptors, and the library's.
    pub(crate) descriptors: BTreeMap<i32, i32>,
    /// Descriptors that a `connect` was made on.
    pub(crate) connected: Vec<i32>,
    pub(crate) bind_port: u16,
    pub(crate) connect_port: u16,
    pub(crate) tolerance_us: u64,
    tick_us: Option<u64>,
    whole: bool,
    /// When the script starts, and when its last event happened, µs.
    pub(crate) start: u64,
    pub(crate) last: u64,
    pub(crate) background: Option<Background>,
}

impl Player {
    fn new(script: &Script, profile: &str) -> Result<Self, String> {
        let number = |name: &str, otherwise: u64| match script.option(name) {
            Some(text) => text.parse().map_err(|_| format!("--{name}={text}")),
            None => Ok(otherwise),
        };
        let table = Table::load(&format!("local={LOCAL},profile={profile},quiet"));
        let tick = number("tcp_ts_tick_usecs", 0)?;
        Ok(Self {
            table,
            flows: Flows::default(),
            descriptors: BTreeMap::new(),
            connected: Vec::new(),
            bind_port: number("bind_port", 8080)? as u16,
            connect_port: number("connect_port", 8080)? as u16,
            tolerance_us: number("tolerance_usecs", 4_000)?,
            tick_us: (tick > 0).then_some(tick),
            whole: script
                .options
                .iter()
                .any(|(_, name, _)| name == "strict_segments"),
            start: table.now(),
            last: 0,
            background: None,
        })
    }

    fn event(&mut self, event: &Event) -> Result<(), String> {
        if let Action::Expect(spec) = &event.action {
            return self.expect(event.time, spec);
        }
        if let Some((at, _)) = event.time.span(self.last) {
            self.table.wait_until(self.start + at);
            let late = self.table.now().saturating_sub(self.start + at);
            if late > self.tolerance_us {
                return Err(format!("{late} us late"));
            }
            self.last = at;
        }
        match &event.action {
            Action::Inject(spec) => self.inject(spec),
            Action::InjectIcmp(spec) => {
                self.inject_icmp(*spec);
                Ok(())
            }
            Action::Call(call) => self.call(event.time, call),
            Action::Command(command) => self.command(command),
            Action::Code(code) => self.code(code),
            Action::Expect(_) => Ok(()),
        }
    }

    fn inject(&mut self, spec: &SegmentSpec) -> Result<(), String> {
        let flow = self.flows.for_inbound(spec, self.bind_port);
        let packet = flow.inbound(spec, LOCAL)?;
        self.table.send(&packet);
        Ok(())
    }

    fn inject_icmp(&mut self, spec: IcmpSpec) {
        let flow = self.flows.current(self.bind_port);
        self.table.send(&flow.icmp_error(spec, LOCAL));
    }

    fn expect(&mut self, time: Time, spec: &SegmentSpec) -> Result<(), String> {
        let window = time.span(self.last);
        let mut expected = Expected::new(spec, true, self.whole);
        loop {
            let (at, bytes) = self.table.receive();
            let Some((packet, _)) = Packet::parse(&bytes) else {
                return Err("a bad packet".to_owned());
            };
            if (packet.src, packet.dst) != (LOCAL, REMOTE) {
                return Err("a packet between others".to_owned());
            }
            if spec.ports.is_none() && self.flows.is_past(&packet) {
                continue;
            }
            let flow = self.flows.for_outbound(&packet, spec, self.bind_port);
            let seen = flow.translate(&packet, spec);
            let now = at.saturating_sub(self.start);
            let mut differences = expected.differences(&seen);
            if let Some(tick) = self.tick_us {
                differences.extend(flow.check_tick(spec, &packet.segment, tick));
            }
            if let Some((from, to)) = window
                && (now + self.tolerance_us < from || now > to + self.tolerance_us)
            {
                differences.push(format!("time: {now} us, not {from} to {to}"));
            }
            if !differences.is_empty() {
                return Err(differences.join("; "));
            }
            flow.learn_timestamp(spec, &packet.segment);
            if expected.advance(&seen) {
                self.last = match time {
                    Time::Absolute(_) | Time::Relative(_) => window.map_or(now, |(from, _)| from),
                    _ => now,
                };
                return Ok(());
            }
        }
    }

    fn call(&mut self, time: Time, call: &Call) -> Result<(), String> {
        self.await_background()?;
        let job = self.job(call)?;
        let Some(until) = call.until else {
            let done = job(self.table);
            return self.judge(call, &done);
        };
        let base = match time {
            Time::Relative(after) => self.last - after.min(self.last),
            _ => 0,
        };
        self.background = Some(Background::start(self.table, job, call, base + until));
        self.take_background_if_over()
    }

    /// A shell command: what sets something, the library reads for itself.
    fn command(&mut self, command: &str) -> Result<(), String> {
        let joined = command.replace("\\\n", " ");
        for line in joined.split(['\n', ';']).map(str::trim) {
            let word = line.split_whitespace().next().unwrap_or("#");
            let word = word.rsplit('/').next().unwrap_or(word);
            match word {
                "sockstat" => {
                    let path = std::env::var_os("PD_STATE").unwrap_or_default();
                    let table = std::fs::read_to_string(path).unwrap_or_default();
                    if !finds(line, table.lines().map(str::to_owned).collect())? {
                        return Err(format!("`{line}` finds nothing in: {table}"));
                    }
                }
                "sysctl" | "set" | "set_sysctls.py" | "defaults.sh" | "ip" | "tc" | "true" => {}
                word if word.starts_with('#') || word.starts_with("sysctl_restore_") => {}
                _ => return Err(format!("no shell for `{line}`")),
            }
        }
        Ok(())
    }

    fn code(&mut self, code: &str) -> Result<(), String> {
        match holds(code, &self.tcp_info()?) {
            Ok(()) => Ok(()),
            Err(Doubt::Wrong(why) | Doubt::Unknown(why)) => Err(why),
        }
    }

    fn await_background(&mut self) -> Result<(), String> {
        match self.background.take() {
            Some(background) => self.judge_background(background),
            None => Ok(()),
        }
    }

    fn take_background_if_over(&mut self) -> Result<(), String> {
        if self.background.as_ref().is_some_and(Background::is_over) {
            return self.await_background();
        }
        Ok(())
    }

    fn judge_background(&mut self, background: Background) -> Result<(), String> {
        let (call, until) = (background.call.clone(), background.until);
        let (done, at) = background.join(self.table, self.start)?;
        self.judge(&call, &done)?;
        let at = at.saturating_sub(self.start);
        match at.abs_diff(until) > self.tolerance_us {
            true => Err(format!("{} returned at {at} us, not {until}", call.name)),
            false => Ok(()),
        }
    }

    /// Compares what a call did with its line; learns descriptors.
    fn judge(&mut self, call: &Call, done: &Done) -> Result<(), String> {
        if let Some(why) = done.wrong.first() {
            return Err(format!("{}: {why}", call.name));
        }
        self.judge_value(call, done)
    }
}
