//! One run that is advanced, looked at, and explained.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use motet::time::{Duration, Instant};
use motet_lab::air::log::{Happening, LoggedFrame, Seen, Sort};
use motet_lab::air::medium::Fate;
use motet_lab::capture::Capture;
use motet_lab::report;
use motet_lab::scenario::{Captures, Change, Overrides, Plan, STATES, Session};
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
    /// What was done to the run by hand, in order: the same is done to each of its repetitions.
    changes: Vec<(Instant, Change)>,
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
            changes: Vec::new(),
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

    /// Switches a mesh node off or on, from now on.
    ///
    /// # Errors
    /// There is no such node.
    pub fn switch(&mut self, node: usize, on: bool) -> Result<(), JsError> {
        self.change(match on {
            true => Change::On(node),
            false => Change::Off(node),
        })
    }

    /// Lets the run go on in the air of another scenario with as many nodes: its places, links and
    /// frame loss. Gives its layout.
    ///
    /// # Errors
    /// The lab's sentence about the scenario.
    pub fn take_air(&mut self, text: &str, name: &str, files: &Files) -> Result<Layout, JsError> {
        let plan = plan(text, name, files, Overrides::default())?;
        let scenario = &plan.points[0].scenario;
        self.change(Change::Gains(scenario.network.gains.clone()))?;
        self.change(Change::FrameLoss(scenario.network.frame_loss))?;
        Ok(Layout::of(scenario))
    }

    /// Adds a mote, the last one of another scenario with one node more: from now on it is there,
    /// with its flows, and all are in that scenario's places. Gives the layout.
    ///
    /// The run is repeated up to now with the mote in it, switched off.
    ///
    /// # Errors
    /// The lab's sentence about the scenario.
    pub fn add_mote(&mut self, text: &str, name: &str, files: &Files) -> Result<Layout, JsError> {
        let wanted = plan(text, name, files, Overrides::default())?;
        let wanted = &wanted.points[0].scenario;
        let now = self.session.now();
        let joined_s = self.session.view().joined_s;
        let after_s = joined_s.map_or(0.0, |joined| self.now_us() / 1e6 - joined + ON_AFTER_S);
        let sentence = |sentence: String| JsError::new(&sentence);
        let more = self.plan.points[0].scenario.with_mote(wanted, after_s);
        let added = wanted.network.nodes.len() - 1;
        let before = self.plan.points[0].scenario.clone();
        self.plan.points[0].scenario = Arc::new(more.map_err(sentence)?);
        let changes = self.changes.iter();
        let changes: Vec<_> = changes
            .map(|(at, change)| (*at, change.with_mote()))
            .collect();
        let again = session(&self.plan, Captures::default()).and_then(|mut session| {
            self.repeat(&mut session, &changes, now)?;
            Ok(session)
        });
        let mut session = again.inspect_err(|_| self.plan.points[0].scenario = before)?;
        session.observe(SEEN_MAX);
        self.session = session;
        self.changes = changes;
        self.change(Change::Gains(wanted.network.gains.clone()))?;
        self.change(Change::On(added))?;
        Ok(Layout::of(wanted))
    }

    /// Lets this share of all frames be lost besides, from now on: 0 to 1.
    ///
    /// # Errors
    /// It is none.
    pub fn set_frame_loss(&mut self, share: f64) -> Result<(), JsError> {
        self.change(Change::FrameLoss(share))
    }

    /// How often the run was changed by hand.
    #[wasm_bindgen(getter)]
    pub fn changes(&self) -> usize {
        self.changes.len()
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

    /// Mesh nodes as they are, in rows of eight: whether it is on, parent (-1: none), frames in the
    /// MAC's queue (-1: no such queue), whether a whole packet waits behind them, radio's state
    /// (-1: none), rank, transmissions for each frame that the parent took, energy used in mJ (-1:
    /// none known).
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
                number(node.rank.map(usize::from)),
                node.etx.unwrap_or(-1.0),
                node.energy_mj.unwrap_or(-1.0),
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
    pub fn records(&self) -> String {
        report::json_lines(&self.plan, &[self.session.result()])
    }

    /// A capture of the air up to now, as `motet run --pcap` writes it.
    ///
    /// # Errors
    /// None for a scenario that could be opened.
    pub fn capture(&self) -> Result<Vec<u8>, JsError> {
        let now = self.session.now();
        Ok(self.captured(now, now)?.0)
    }

    /// The frame of `length` bytes that node `from` began at `start_us`, with a capture that ends
    /// soon after it. Its number there is that in [`Self::capture`].
    ///
    /// # Errors
    /// There is no such frame.
    pub fn captured_frame(
        &self,
        from: usize,
        start_us: f64,
        length: usize,
    ) -> Result<CapturedFrame, JsError> {
        let gone = || JsError::new("there is no such frame");
        let start = Instant::from_micros(start_us as u64);
        let to = (start + CAPTURED_WITHIN).min(self.session.now());
        let within = CAPTURED_WITHIN.as_micros();
        let from_when = Instant::from_micros(start.as_micros().saturating_sub(within));
        let (capture, seen) = self.captured(from_when, to)?;
        let is_it = |frame: &&LoggedFrame| {
            (frame.from, frame.start, frame.bytes.len()) == (from, start, length)
        };
        let mut frames = seen.all.iter().filter_map(|happening| match happening {
            Happening::Frame(frame) => Some(frame),
            Happening::Radio(_) => None,
        });
        let bytes = frames.find(is_it).ok_or_else(gone)?.bytes.to_vec();
        Ok(CapturedFrame { capture, bytes })
    }
}

/// A frame, and a capture with it.
#[wasm_bindgen]
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CapturedFrame {
    capture: Vec<u8>,
    bytes: Vec<u8>,
}

#[wasm_bindgen]
impl CapturedFrame {
    /// The capture, as `motet run --pcap` writes it.
    #[wasm_bindgen(getter)]
    pub fn capture(&self) -> Vec<u8> {
        self.capture.clone()
    }

    /// The frame's bytes.
    #[wasm_bindgen(getter)]
    pub fn bytes(&self) -> Vec<u8> {
        self.bytes.clone()
    }
}

impl Lab {
    fn change(&mut self, change: Change) -> Result<(), JsError> {
        let changed = self.session.change(&change);
        changed.map_err(|sentence| JsError::new(&sentence))?;
        self.changes.push((self.session.now(), change));
        Ok(())
    }

    /// The same run from its beginning up to `to`: every run of a scenario and seed is the same,
    /// which saves the memory of what few ask for.
    fn again(&self, captures: Captures, to: Instant) -> Result<Session, JsError> {
        let mut session = session(&self.plan, captures)?;
        self.repeat(&mut session, &self.changes, to)?;
        Ok(session)
    }

    /// Lets time pass in a repetition up to `to`, with these changes when their times come.
    fn repeat(
        &self,
        session: &mut Session,
        changes: &[(Instant, Change)],
        to: Instant,
    ) -> Result<(), JsError> {
        for (at, change) in changes.iter().filter(|(at, _)| *at <= to) {
            session.advance(*at, &self.watching.watch());
            let changed = session.change(change);
            changed.map_err(|sentence| JsError::new(&sentence))?;
        }
        session.advance(to, &self.watching.watch());
        Ok(())
    }

    /// A capture up to `to`, and what happened from `from` on.
    fn captured(&self, from: Instant, to: Instant) -> Result<(Vec<u8>, Seen), JsError> {
        let records = self.plan.points[0].scenario.network.air_records();
        let shared = Shared::default();
        let air = Capture::stream(Box::new(shared.clone()), records);
        let captures = Captures {
            air: Some(air.map_err(|error| JsError::new(&error.to_string()))?),
            ..Captures::default()
        };
        let mut session = self.again(captures, from)?;
        session.observe(SEEN_MAX);
        let meanwhile = self.changes.iter().position(|(at, _)| *at > from);
        let meanwhile = meanwhile.and_then(|first| self.changes.get(first..));
        self.repeat(&mut session, meanwhile.unwrap_or_default(), to)?;
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

/// After how long a mote that is added begins to send, s: it is on by then.
const ON_AFTER_S: f64 = 0.2;

/// A frame is in a capture once it has begun, and is observed once it has ended; over Bluetooth LE
/// both are once its connection event is over, or when its advertising event begins.
const CAPTURED_WITHIN: Duration = Duration::from_millis(200);
