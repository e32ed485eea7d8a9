//! One run that is advanced, looked at, and explained.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use motet::time::{Duration, Instant};
use motet_decode::{Capture as Reader, Decoder, Frame, Look};
use motet_lab::air::log::{Happening, LoggedFrame, Seen, Sort};
use motet_lab::air::medium::Fate;
use motet_lab::capture::{Capture, Records};
use motet_lab::report;
use motet_lab::scenario::{Captures, Overrides, Plan, STATES, Session};
use wasm_bindgen::JsError;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::links::Layout;
use crate::{Files, Watching, plan};

/// A run of a scenario: of its first point, with its first seed.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Lab {
    plan: Plan,
    session: Session,
    watching: Watching,
    frames: Vec<f64>,
    turns: Vec<f64>,
    missed: u64,
}

#[wasm_bindgen]
impl Lab {
    /// Opens a scenario; `name` is what its file is called. No time has passed.
    ///
    /// # Errors
    /// The lab's sentence about the scenario.
    #[wasm_bindgen(constructor)]
    pub fn open(text: &str, name: &str, files: &Files) -> Result<Self, JsError> {
        let plan = plan(text, name, files, Overrides::default())?;
        let mut session = session(&plan, Captures::default())?;
        session.observe(SEEN_MAX);
        Ok(Self {
            plan,
            session,
            watching: Watching::default(),
            frames: Vec::new(),
            turns: Vec::new(),
            missed: 0,
        })
    }

    /// What the scenario is called.
    #[wasm_bindgen(getter)]
    pub fn title(&self) -> String {
        self.plan.title.clone()
    }

    /// How many runs the scenario has; this is the first.
    #[wasm_bindgen(getter)]
    pub fn runs(&self) -> usize {
        self.plan.runs()
    }

    /// How long a run goes on after all motes have joined, s.
    #[wasm_bindgen(getter)]
    pub fn duration_s(&self) -> f64 {
        self.plan.points[0].scenario.timing.duration_s
    }

    /// Where its nodes are, and how well they hear each other.
    pub fn layout(&self) -> Layout {
        Layout::of(&self.plan.points[0].scenario)
    }

    /// What each flow is, such as `bulk 3 → host`.
    pub fn flow_names(&self) -> Vec<String> {
        let flows = self.plan.points[0].scenario.flows.iter();
        let name = |flow: &motet_lab::scenario::FlowSettings| {
            format!("{} {} → {}", flow.kind.name(), flow.from, flow.to)
        };
        flows.map(name).collect()
    }

    /// Lets time pass up to `to_us`, µs since the nodes were switched on, or until the run is over;
    /// says whether it is.
    pub fn advance(&mut self, to_us: f64) -> bool {
        // What is no time, or before now, lets none pass.
        let to = Instant::from_micros(to_us as u64);
        let is_over = self.session.advance(to, &self.watching.watch());
        let seen = self.session.take_seen();
        self.missed += seen.missed;
        for happening in seen.all {
            match happening {
                Happening::Frame(frame) => self.frames.extend([
                    frame.from as f64,
                    frame.to.map_or(-1.0, |to| to as f64),
                    frame.start.as_micros() as f64,
                    frame.end.as_micros() as f64,
                    f64::from(frame.channel),
                    sort(frame.kind),
                    frame.fate.index() as f64,
                    frame.bytes.len() as f64,
                ]),
                Happening::Radio(turn) => self.turns.extend([
                    turn.node as f64,
                    turn.at.as_micros() as f64,
                    f64::from(turn.state as u8),
                ]),
            }
        }
        is_over
    }

    /// Virtual time since the nodes were switched on, µs.
    #[wasm_bindgen(getter)]
    pub fn now_us(&self) -> f64 {
        self.session.now().as_micros() as f64
    }

    /// When all motes had joined, µs; -1 before.
    #[wasm_bindgen(getter)]
    pub fn joined_us(&self) -> f64 {
        self.session.view().joined_s.map_or(-1.0, |s| s * 1e6)
    }

    /// Frames that have left the air since the last time, in rows of eight: from, to (-1: nobody in
    /// particular), start and end in µs, channel, sort by [`sort_names`], fate by [`fate_names`],
    /// bytes.
    pub fn take_frames(&mut self) -> Vec<f64> {
        std::mem::take(&mut self.frames)
    }

    /// Changes of radios since the last time, in rows of three: node, µs, state by [`state_names`].
    pub fn take_turns(&mut self) -> Vec<f64> {
        std::mem::take(&mut self.turns)
    }

    /// How many frames and changes were too many for one step, and are missing.
    #[wasm_bindgen(getter)]
    pub fn missed(&self) -> f64 {
        self.missed as f64
    }

    /// Mesh nodes as they are, in rows of five: whether it is on, parent (-1: none), frames in the
    /// MAC's queue (-1: no such queue), whether a whole packet waits behind them, radio's state
    /// (-1: none).
    pub fn nodes(&self) -> Vec<f64> {
        let nodes = self.session.view().nodes;
        let number = |number: Option<usize>| number.map_or(-1.0, |number| number as f64);
        let row = |node: &motet_lab::scenario::NodeView| {
            [
                f64::from(u8::from(node.is_on)),
                number(node.parent),
                number(node.queue_frames),
                f64::from(u8::from(node.packet_waits)),
                number(node.radio.map(|state| state as usize)),
            ]
        };
        nodes.iter().flat_map(row).collect()
    }

    /// Flows as they are, in rows of six: bytes that have come out, smoothed round-trip time in ms,
    /// congestion window, slow-start threshold, what the other end lets it send, and bytes in
    /// flight. Empty before all motes have joined.
    pub fn flows(&self) -> Vec<f64> {
        let flows = self.session.view().flows;
        let row = |flow: &motet_lab::scenario::FlowView| {
            [
                flow.bytes as f64,
                f64::from(flow.rtt_ms),
                f64::from(flow.cwnd_bytes),
                f64::from(flow.ssthresh_bytes),
                f64::from(flow.peer_window_bytes),
                f64::from(flow.inflight_bytes),
            ]
        };
        flows.iter().flat_map(row).collect()
    }

    /// What the run has given up to now, as `motet run --json` writes it.
    ///
    /// # Errors
    /// None for a scenario that could be opened.
    pub fn records(&self) -> Result<String, JsError> {
        let session = self.again(Captures::default(), self.session.now())?;
        Ok(report::json_lines(&self.plan, &[session.finish()]))
    }

    /// A capture of the air up to now, as `motet run --pcap` writes it.
    ///
    /// # Errors
    /// None for a scenario that could be opened.
    pub fn capture(&self) -> Result<Vec<u8>, JsError> {
        let now = self.session.now();
        Ok(self.captured(now, now)?.0)
    }

    /// Explains the frame of `length` bytes that node `from` began at `start_us`, as `motet decode`
    /// does, but without its time since a capture's first frame. Its number is that in
    /// [`Self::capture`].
    ///
    /// # Errors
    /// There is no such frame.
    pub fn decode(&self, from: usize, start_us: f64, length: usize) -> Result<String, JsError> {
        let gone = || JsError::new("there is no such frame");
        let start = Instant::from_micros(start_us as u64);
        let to = (start + CAPTURED_WITHIN).min(self.session.now());
        let within = CAPTURED_WITHIN.as_micros();
        let from_when = Instant::from_micros(start.as_micros().saturating_sub(within));
        let (capture, seen) = self.captured(from_when, to)?;
        let is_it = |frame: &&LoggedFrame| {
            (frame.from, frame.start, frame.bytes.len()) == (from, start, length)
        };
        let frames = seen.all.iter().filter_map(|happening| match happening {
            Happening::Frame(frame) => Some(frame),
            Happening::Radio(_) => None,
        });
        // Others may have begun at the same time, as long: the bytes say which it is.
        let bytes = &frames.clone().find(is_it).ok_or_else(gone)?.bytes;
        let mut reader = Reader::of_bytes(capture).map_err(|_| gone())?;
        let mut decoder = Decoder::new(&[]);
        let at_ns = start.as_micros() * 1_000;
        while let Some(Ok(record)) = reader.next_record() {
            let frame = decoder.decode(&record);
            if record.epoch_ns == at_ns && record.data.ends_with(bytes) {
                return explained(&frame).ok_or_else(gone);
            }
        }
        Err(gone())
    }
}

impl Lab {
    /// The same run from its beginning up to `to`: every run of a scenario and seed is the same,
    /// which saves the memory of what few ask for.
    fn again(&self, captures: Captures, to: Instant) -> Result<Session, JsError> {
        let mut session = session(&self.plan, captures)?;
        session.advance(to, &self.watching.watch());
        Ok(session)
    }

    /// A capture up to `to`, and what happened from `from` on.
    fn captured(&self, from: Instant, to: Instant) -> Result<(Vec<u8>, Seen), JsError> {
        let records = match self.plan.points[0].scenario.network.ble {
            Some(_) => Records::Bluetooth,
            None => Records::TappedFrames,
        };
        let shared = Shared::default();
        let air = Capture::stream(Box::new(shared.clone()), records);
        let captures = Captures {
            air: Some(air.map_err(|error| JsError::new(&error.to_string()))?),
            ..Captures::default()
        };
        let mut session = self.again(captures, from)?;
        session.observe(SEEN_MAX);
        session.advance(to, &self.watching.watch());
        let seen = session.take_seen();
        session.finish();
        Ok((shared.take(), seen))
    }
}

/// Names of sorts of frames, by number.
#[wasm_bindgen]
pub fn sort_names() -> Vec<String> {
    SORTS.map(|sort| sort.name().to_owned()).to_vec()
}

/// Names of fates, by number.
#[wasm_bindgen]
pub fn fate_names() -> Vec<String> {
    Fate::NAMES.map(str::to_owned).to_vec()
}

/// Names of a radio's states, by number.
#[wasm_bindgen]
pub fn state_names() -> Vec<String> {
    STATES.map(str::to_owned).to_vec()
}

fn session(plan: &Plan, captures: Captures) -> Result<Session, JsError> {
    let scenario = plan.points[0].scenario.clone();
    let opened = Session::open(scenario, plan.seeds[0], captures, || false);
    opened.map_err(|error| JsError::new(&error.to_string()))
}

fn sort(sort: Sort) -> f64 {
    let place = SORTS.iter().position(|one| *one == sort);
    place.unwrap_or_default() as f64
}

/// A frame in words: its number and summary, then its layers. The first line of [`Look::frame`]
/// also has the time since the capture's first frame, and the length with what the capture puts
/// before it.
fn explained(frame: &Frame) -> Option<String> {
    let mut text = Vec::new();
    Look::PLAIN.frame(&mut text, frame).ok()?;
    let text = String::from_utf8(text).ok()?;
    // The first line is made anew, so what was folded from it goes with it.
    let layers = text.lines().skip(1);
    let layers = layers.skip_while(|line| line.starts_with(CONTINUED));
    let layers: String = layers.map(|line| format!("{line}\n")).collect();
    Some(format!("#{}  {}\n{layers}", frame.number, frame.summary))
}

/// Begins each line that goes on with the one before it, as [`Look::frame`] writes them.
const CONTINUED: &str = "           ";

/// A capture in memory, which the run writes and its caller reads.
#[derive(Clone, Debug, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Shared {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const SORTS: [Sort; 6] = [
    Sort::Beacon,
    Sort::Data,
    Sort::Ack,
    Sort::Command,
    Sort::Advertisement,
    Sort::Unknown,
];

/// Frames and changes that one step may have: 5,000 nodes make as many in a second.
const SEEN_MAX: usize = 1 << 18;

/// A frame is in a capture once it has begun, and is observed once it has ended; over Bluetooth LE
/// both are once its connection event is over, or when its advertising event begins.
const CAPTURED_WITHIN: Duration = Duration::from_millis(200);
