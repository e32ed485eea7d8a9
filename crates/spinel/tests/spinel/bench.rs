//! A session and a radio at both ends of a line that takes its time.

use std::collections::VecDeque;

use motet::time::{Duration, Instant};
use motet_spinel::{Event, Outcome, Promiscuous, Session, Settings};

use crate::fake::{Fake, Quirks};

pub(crate) struct Bench {
    pub(crate) session: Session,
    pub(crate) radio: Fake,
    pub(crate) now_us: u64,
    /// Each way of the line, µs.
    pub(crate) way_us: u64,
    pub(crate) is_stopped: bool,
    /// How many bytes come at a time.
    pub(crate) cut: usize,
    to_radio: VecDeque<(u64, Vec<u8>)>,
    to_host: VecDeque<(u64, Vec<u8>)>,
    pub(crate) events: Vec<Event>,
}

pub(crate) const SETTINGS: Settings = Settings {
    channel: 15,
    pan: 0xabcd,
    short: Some(1),
    eui64: None,
    promiscuous: Promiscuous::Off,
};

impl Bench {
    pub(crate) fn new(quirks: Quirks) -> Self {
        Self::with(quirks, SETTINGS)
    }

    pub(crate) fn with(quirks: Quirks, settings: Settings) -> Self {
        Self {
            session: Session::new(settings),
            radio: Fake::new(quirks),
            now_us: 1_000_000,
            way_us: 300,
            is_stopped: false,
            cut: usize::MAX,
            to_radio: VecDeque::new(),
            to_host: VecDeque::new(),
            events: Vec::new(),
        }
    }

    /// A radio that is ready; its events so far are taken.
    pub(crate) fn ready(quirks: Quirks) -> Self {
        let mut bench = Self::new(quirks);
        bench.run_ms(100);
        assert!(bench.session.is_ready(), "{:?}", bench.events);
        bench.events.clear();
        bench
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::from_micros(self.now_us)
    }

    pub(crate) fn run_ms(&mut self, ms: u64) {
        let until = self.now_us + ms * 1_000;
        let mut turns = 0;
        loop {
            turns += 1;
            assert!(turns < 200_000, "it never rests");
            self.turn();
            let next = self.next();
            if next > until {
                break;
            }
            self.now_us = self.now_us.max(next);
        }
        self.now_us = until;
        self.turn();
    }

    /// When something happens next.
    fn next(&self) -> u64 {
        let session = self.session.deadline().map(Instant::as_micros);
        if let Some(at) = session {
            assert!(at > self.now_us, "it is due and did nothing");
        }
        let running = !self.is_stopped;
        let radio = self.radio.deadline().filter(|_| running);
        let arrives = self.to_radio.front().map(|(at, _)| *at).filter(|_| running);
        let returns = self.to_host.front().map(|(at, _)| *at);
        let leaves = self.radio.sent.iter().map(|(at, _)| *at).min();
        let leaves = leaves.filter(|_| running);
        let all = [session, radio, arrives, returns, leaves];
        all.into_iter().flatten().min().unwrap_or(u64::MAX)
    }

    /// All that happens now.
    fn turn(&mut self) {
        let now = self.now();
        loop {
            let output = self.session.poll_output(now).to_vec();
            if !output.is_empty() {
                self.to_radio
                    .push_back((self.now_us + self.way_us, output.clone()));
                self.session.on_written(output.len(), now);
            }
            self.let_radio_work();
            let Some((at, _)) = self.to_host.front() else {
                break;
            };
            if *at > self.now_us {
                break;
            }
            let (_, bytes) = self.to_host.pop_front().unwrap();
            for piece in bytes.chunks(self.cut) {
                self.session.on_bytes(piece, now);
            }
            self.take_events();
        }
        self.take_events();
    }

    fn let_radio_work(&mut self) {
        if self.is_stopped {
            return;
        }
        while let Some((at, _)) = self.to_radio.front()
            && *at <= self.now_us
        {
            let (_, bytes) = self.to_radio.pop_front().unwrap();
            self.radio.on_bytes(&bytes, self.now_us);
        }
        self.radio.poll(self.now_us);
        let sent = std::mem::take(&mut self.radio.sent);
        for (at, bytes) in sent {
            if at <= self.now_us {
                self.to_host.push_back((self.now_us + self.way_us, bytes));
            } else {
                self.radio.sent.push_back((at, bytes));
            }
        }
    }

    fn take_events(&mut self) {
        while let Some(event) = self.session.poll_event(self.now()) {
            self.events.push(event);
        }
    }

    /// The line breaks: what was on it is lost, and it is opened anew.
    pub(crate) fn reopen(&mut self) {
        self.to_radio.clear();
        self.to_host.clear();
        self.radio.sent.clear();
        self.session.on_restart_of_line(self.now());
    }

    /// Sends a frame, and tells how that ended.
    pub(crate) fn transmit(&mut self, psdu: &[u8]) -> (Outcome, Instant) {
        self.session.transmit(psdu, None, self.now()).unwrap();
        self.run_ms(50);
        self.sent()
    }

    /// How the last transmission ended.
    pub(crate) fn sent(&self) -> (Outcome, Instant) {
        let mut sent = self.events.iter().rev().filter_map(|event| match event {
            Event::Sent { outcome, at } => Some((*outcome, *at)),
            _ => None,
        });
        sent.next().expect("a transmission that ended")
    }

    pub(crate) fn count(&self, is: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().filter(|event| is(event)).count()
    }
}

/// A data frame from node 1 to node 2 that asks for an ACK.
pub(crate) fn data(sequence: u8) -> Vec<u8> {
    vec![0x61, 0x88, sequence, 0xcd, 0xab, 2, 0, 1, 0, b'h', b'i']
}

pub(crate) fn is_ready(event: &Event) -> bool {
    matches!(event, Event::Ready(_))
}

pub(crate) fn is_restarted(event: &Event) -> bool {
    matches!(event, Event::Restarted(_))
}

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
