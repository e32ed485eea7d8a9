//! A session with a radio co-processor, with arbitrary bytes on the line and arbitrary commands.
//! Invariants: the session reports the end of each transmission once, and the radio receives whole
//! frames only.

use motet::time::{Duration, Instant};
use motet_spinel::frame::{Command, Frame, Header, Property};
use motet_spinel::hdlc::{self, Decoder};
use motet_spinel::packed::Writer;
use motet_spinel::raw::{Flags, ReceivedFrame, Request};
use motet_spinel::{Event, LOG_LEN_MAX, Peer, Promiscuous, Session, Settings};

use crate::input::Input;

/// Takes the steps that the input says.
pub(crate) fn run(bytes: &[u8]) {
    let _ = line(bytes);
}

fn line(bytes: &[u8]) -> Line {
    let mut input = Input::new(bytes);
    let mut line = Line::new();
    let mut turns = 0;
    while !input.is_empty() && turns < TURNS_MAX {
        line.now += Duration::from_micros(u64::from(input.u8()).pow(3));
        line.step(&mut input);
        line.take(&mut input);
        turns += 1;
    }
    line.ends();
    line
}

/// A session, and the radio's end of its line.
struct Line {
    session: Session,
    now: Instant,
    decoder: Decoder,
    /// The latest frames that the host sent, which may be answered: transaction and property.
    asked: Vec<(u8, Property)>,
    /// Answers at once as a radio should.
    is_good: bool,
    accepted: u32,
    sent: u32,
    is_ready: bool,
    has_failed: bool,
}

impl Line {
    fn new() -> Self {
        Self {
            session: Session::new(Settings {
                channel: 15,
                pan: 0xabcd,
                short: Some(1),
                eui64: None,
                promiscuous: Promiscuous::Off,
            }),
            now: Instant::ORIGIN,
            decoder: Decoder::default(),
            asked: Vec::new(),
            is_good: false,
            accepted: 0,
            sent: 0,
            is_ready: false,
            has_failed: false,
        }
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let now = self.now;
        match input.u8() & 15 {
            0 => self.session.on_bytes(input.block(), now),
            1 => self.comes(input.block(), 1),
            2 => self.answers(Command::Is, None, input.block()),
            3 => self.answers(Command::Is, Some(Property::LastStatus), input.block()),
            4 => self.answers(Command::Inserted, None, input.block()),
            5 | 6 => {
                let at = Instant::from_micros(u64::from(input.u32()));
                let at = input.flag().then_some(at);
                let is_taken = self.session.transmit(input.block(), at, now).is_ok();
                self.accepted += u32::from(is_taken);
            }
            7 => self.set(input),
            8 => {
                let _ = self.session.scan(input.u8(), input.u16(), now);
            }
            9 => {
                let short = Peer::Short(u16::from(input.u8()) % 8);
                self.session.set_source_match(short, input.flag(), now);
            }
            10 => {
                let extended = Peer::Extended([input.u8() % 8; 8]);
                self.session.set_source_match(extended, input.flag(), now);
            }
            11 => {
                self.decoder = Decoder::default();
                self.asked.clear();
                self.session.on_restart_of_line(now);
            }
            12 => self.is_good = input.flag(),
            13 => self.hears(input),
            14 => self.now += Duration::from_millis(u64::from(input.u16())),
            _ => {
                let peers = input.block().iter().map(|peer| Peer::Short((*peer).into()));
                self.session.replace_source_match(peers, now);
            }
        }
    }

    fn set(&mut self, input: &mut Input<'_>) {
        let now = self.now;
        match input.u8() & 3 {
            0 => {
                let _ = self.session.set_channel(input.u8(), now);
            }
            1 => self.session.set_listening(input.flag(), now),
            2 => self.session.set_promiscuous(Promiscuous::All, now),
            _ => {
                let eui64 = input.flag().then_some([7; 8]);
                self.session.set_addresses(input.u16(), None, eui64, now);
            }
        }
    }

    /// A frame comes, well framed, in pieces.
    fn comes(&mut self, frame: &[u8], piece: usize) {
        let mut line = Vec::new();
        hdlc::encode(frame, &mut line);
        for piece in line.chunks(piece) {
            self.session.on_bytes(piece, self.now);
        }
    }

    /// The oldest request is answered, about itself where no other property is named.
    fn answers(&mut self, command: Command, property: Option<Property>, value: &[u8]) {
        if self.asked.is_empty() {
            return;
        }
        let (transaction, asked) = self.asked.remove(0);
        let frame = Frame {
            header: Header {
                interface: 0,
                transaction,
            },
            command,
            property: property.unwrap_or(asked),
            value,
        };
        self.comes(&frame.emit(), usize::MAX);
    }

    fn hears(&mut self, input: &mut Input<'_>) {
        let heard = ReceivedFrame {
            rssi_dbm: -20,
            noise_dbm: -128,
            flags: Flags(input.u16()),
            channel: input.u8(),
            lqi: input.u8(),
            sfd_us: input.flag().then(|| u64::from(input.u32())),
            error: u32::from(input.u8() & 1),
            psdu: input.block(),
        };
        let value = heard.write(Writer::new()).finish();
        let frame = Frame {
            header: Header::default(),
            command: Command::Is,
            property: Property::StreamRaw,
            value: &value,
        };
        self.comes(&frame.emit(), usize::MAX);
    }

    /// Takes the session's output: bytes for the line, and events for its owner.
    fn take(&mut self, input: &mut Input<'_>) {
        for _ in 0..ROUNDS_MAX {
            let output = self.session.poll_output(self.now).to_vec();
            assert!(output.len() < OUTPUT_MAX, "{} bytes wait", output.len());
            assert!(!self.has_failed || output.is_empty());
            let len = match self.is_good {
                true => output.len(),
                false => usize::from(input.u8()).min(output.len()),
            };
            self.session.on_written(len, self.now);
            self.take_frames(output.get(..len).unwrap_or_default());
            self.take_events();
            if let Some(deadline) = self.session.deadline() {
                assert!(deadline > self.now, "due, and not done");
            }
            if !self.is_good || self.asked.is_empty() {
                return;
            }
            while let Some((_, property)) = self.asked.first() {
                let (property, value) = right_answer(*property, self.now);
                self.answers(Command::Is, property, &value);
            }
        }
        panic!("it never rests");
    }

    fn take_frames(&mut self, mut bytes: &[u8]) {
        let mut decoder = std::mem::take(&mut self.decoder);
        while let Some(frame) = decoder.next(&mut bytes) {
            let frame = Frame::parse(frame).expect("the host sends frames");
            let transaction = frame.header.transaction;
            match frame.command {
                Command::Reset => assert_eq!(transaction, 0),
                _ => assert_ne!(transaction, 0),
            }
            if frame.property == Property::StreamRaw {
                let request = Request::parse(frame.value).expect("a frame to send");
                assert!((3..=125).contains(&request.psdu.len()));
            }
            self.asked.push((transaction, frame.property));
        }
        let surplus = self.asked.len().saturating_sub(ASKED_MAX);
        self.asked.drain(..surplus);
        assert_eq!(decoder.counters().bytes_dropped, 0);
        self.decoder = decoder;
    }

    fn take_events(&mut self) {
        while let Some(event) = self.session.poll_event(self.now) {
            assert!(!self.has_failed, "{event:?} after the end");
            match event {
                Event::Ready(_) => {
                    assert!(!self.is_ready, "ready twice");
                    self.is_ready = true;
                }
                Event::Restarted(_) => {
                    assert!(self.is_ready, "restarted, and never ready");
                    self.is_ready = false;
                }
                Event::Received(received) => {
                    assert!((3..=125).contains(&received.psdu.len()));
                    assert!(received.at <= self.now);
                }
                Event::Sent { at, .. } => {
                    assert!(at <= self.now);
                    self.sent += 1;
                }
                Event::Failed(error) => {
                    assert!(!error.to_string().is_empty());
                    self.has_failed = true;
                }
                Event::ScanResult { .. } => {}
            }
        }
        let open = self.accepted - self.sent;
        assert!(open <= 1, "{open} frames at a time");
        assert!(self.session.log_line().len() <= LOG_LEN_MAX);
    }

    /// Every frame has its end within seconds, even if nothing comes any more.
    fn ends(&mut self) {
        for _ in 0..20 {
            self.now += Duration::from_secs(300);
            self.take(&mut Input::new(&[]));
        }
        assert_eq!(self.accepted, self.sent, "a frame without an end");
    }
}

/// The right answer of a radio to a request about `property`: another property if the answer names
/// one, and the value.
fn right_answer(property: Property, now: Instant) -> (Option<Property>, Vec<u8>) {
    let value = match property {
        // A reset; told twice.
        Property::LastStatus => vec![0x70],
        Property::ProtocolVersion => vec![4, 3],
        Property::NcpVersion => b"radio\0".to_vec(),
        Property::InterfaceType => vec![3],
        Property::Caps => vec![5, 34, 64, 65],
        Property::RcpApiVersion => vec![11],
        Property::RcpMinHostApiVersion => vec![4],
        Property::RadioCaps => vec![0x7f],
        Property::Hwaddr => vec![1; 8],
        Property::PhyChanSupported => (11..=26).collect(),
        Property::RcpTimestamp => now.as_micros().to_le_bytes().to_vec(),
        _ => return (Some(Property::LastStatus), vec![0]),
    };
    (None, value)
}

/// For [`run`]: a start, frames in both directions, whatever a radio may do wrong.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    const GOOD: [u8; 3] = [0, 12, 1];
    const BAD: [u8; 3] = [0, 12, 0];
    let frame = [0x61, 0x88, 1, 0xcd, 0xab, 2, 0, 1, 0, 7];
    let send = [&[9, 5, 0, 0, 0, 0, 0, 10][..], &frame].concat();
    let broadcast = [&[9, 5, 0, 0, 0, 0, 0, 10, 0x41][..], &frame[1..]].concat();
    let refused = [9, 13, 0, 4, 15, 200, 0, 0, 3, 1, 2, 3];
    let hear = [
        &[9, 13, 0, 0, 15, 200, 1, 0, 0, 1, 0, 0, 12][..],
        &frame,
        &[0, 0],
    ]
    .concat();
    // Output is taken by the byte that follows each step of a bad radio.
    let bad = |steps: &[&[u8]]| -> Vec<u8> {
        let steps = steps.iter().flat_map(|step| [step, &[255][..]].concat());
        [&GOOD[..], &BAD, &[255]]
            .concat()
            .into_iter()
            .chain(steps)
            .collect()
    };
    let report = |status: u8| [9, 3, 3, status, 1, 0];
    vec![
        GOOD.to_vec(),
        [&GOOD[..], &send, &hear, &send].concat(),
        [
            &GOOD[..],
            &[9, 8, 20, 0, 30, 9, 7, 0, 26, 9, 7, 1, 0, 9, 7, 1, 1],
            &send,
        ]
        .concat(),
        [
            &GOOD[..],
            &[9, 9, 3, 1, 9, 10, 4, 1, 9, 15, 2, 1, 2, 9, 9, 1, 0],
        ]
        .concat(),
        bad(&[&send, &report(0), &send, &report(17), &send, &report(18)]),
        bad(&[&send, &[9, 1, 4, 0x80, 6, 0, 0x74], &[200, 2, 2, 4, 3]]),
        bad(&[&send, &[0, 14, 8, 0], &[0, 14, 8, 0], &[0, 12, 1]]),
        bad(&[&[9, 9, 3, 1], &[9, 3, 1, 11], &[9, 3, 1, 0]]),
        bad(&[&broadcast, &[9, 4, 1, 9], &refused]),
        [
            &GOOD[..],
            &broadcast,
            &refused,
            &[0, 0, 8, 0x7e, 1, 2, 3, 4, 5, 6, 0x7e],
        ]
        .concat(),
        bad(&[&[0, 0, 6, 0x7e, 0x7d, 0x7e, 1, 2, 3], &hear]),
        [&GOOD[..], &[0, 11], &GOOD[..], &send, &[0, 11], &send].concat(),
        [&GOOD[..], &[0, 14, 250, 0, 0, 14, 250, 0], &hear].concat(),
        // A radio that answers the reset, and then that it is too old.
        vec![
            0, 14, 0, 0, 255, 1, 1, 4, 0x80, 6, 0, 0x70, 255, 9, 2, 2, 5, 0, 255,
        ],
    ]
}

/// Steps of one input, and rounds of answers after each.
const TURNS_MAX: usize = 200;
const ROUNDS_MAX: usize = 2_000;
/// Requests that may still be answered.
const ASKED_MAX: usize = 40;
/// More bytes than ever wait for the line.
const OUTPUT_MAX: usize = 4_500;

#[cfg(test)]
mod tests {
    use super::*;

    /// Seeds that stop at the door prove nothing.
    #[test]
    fn the_seeds_reach_each_end_of_a_transmission() {
        let (mut ends, mut others) = ([0; 5], [0; 8]);
        for seed in seeds() {
            let counters = line(&seed).session.counters();
            let of_seed = [
                counters.acked,
                counters.no_ack,
                counters.busy,
                counters.failed,
                counters.done,
            ];
            ends.iter_mut()
                .zip(of_seed)
                .for_each(|(all, one)| *all += one);
            let of_seed = [
                counters.received,
                counters.restarts,
                counters.silences,
                counters.stale,
                counters.mismatched,
                counters.refused,
                counters.line.wrong_crc,
                counters.line.half,
            ];
            others
                .iter_mut()
                .zip(of_seed)
                .for_each(|(all, one)| *all += one);
        }
        println!("{ends:?} {others:?}");
        assert!(ends.iter().all(|count| *count > 0), "{ends:?}");
        assert!(others.iter().all(|count| *count > 0), "{others:?}");
    }
}
