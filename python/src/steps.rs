//! A run that goes on as it is asked for. It lives in a thread of its own, because it owns memory that
//! no other thread may look at; the thread ends with its [`Steps`].

use std::mem;
use std::process;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant as Clock};

use motet::time::Instant;
use motet_lab::air::log::{Happening, LoggedFrame, Seen, Turn};
use motet_lab::air::medium::Fate;
use motet_lab::report::{Column, Table as Columns, Values};
use motet_lab::scenario::{Captures, Change, Plan, RunResult, STATES, Sample, Session, View};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::ScenarioError;
use crate::running::{Outcome, Work, wait};
use crate::table::Table;

/// A run that goes on as it is asked for.
#[pyclass(frozen, module = "motet")]
#[derive(Debug)]
pub(crate) struct Steps {
    plan: Arc<Plan>,
    step_us: u64,
    work: Arc<Work>,
    progress: Option<Py<PyAny>>,
    line: Mutex<RunAccess>,
    /// The process in which its thread is.
    process: u32,
    /// What all steps took.
    took: Mutex<Duration>,
}

/// What the way to the run is at.
#[derive(Debug)]
enum RunAccess {
    Free(Line),
    /// Some thread waits for an answer.
    Taken,
    Over,
}

/// The way to the run, and how far it has been asked to go.
#[derive(Debug)]
struct Line {
    ask: Sender<Ask>,
    answers: Receiver<Answer>,
    asked_us: u64,
    is_over: bool,
}

enum Ask {
    Advance(Instant),
    Change(Change),
    Finish,
}

enum Answer {
    Moment(Box<Seized>),
    Changed(Result<(), String>),
    Result(Box<RunResult>),
    Failed(String),
}

/// A moment as the run gave it.
#[derive(Debug)]
struct Seized {
    view: View,
    seen: Seen,
    samples: Vec<Sample>,
    is_over: bool,
}

impl Steps {
    pub(crate) fn new(
        plan: &Arc<Plan>,
        step: f64,
        observe: usize,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        if plan.runs() != 1 {
            return Err(ScenarioError::new_err(format!(
                "step goes through one run, but this scenario has {}: give seeds=1, and no sweep",
                plan.runs()
            )));
        }
        if !(STEP_MIN..=STEP_MAX).contains(&step) {
            return Err(ScenarioError::new_err(format!(
                "step is {step}, but must be a number of seconds from {STEP_MIN} to {STEP_MAX}"
            )));
        }
        let work = Arc::new(Work::default());
        let (ask, asked) = mpsc::channel();
        let (tell, answers) = mpsc::channel();
        let (own, shared) = (plan.clone(), work.clone());
        thread::spawn(move || serve(&own, observe, &shared, &asked, &tell));
        let line = Line {
            ask,
            answers,
            asked_us: 0,
            is_over: false,
        };
        Ok(Self {
            plan: plan.clone(),
            step_us: (step * 1e6) as u64,
            work,
            progress,
            line: Mutex::new(RunAccess::Free(line)),
            process: process::id(),
            took: Mutex::default(),
        })
    }

    /// Takes the line, if the run is not over; as a generator of Python, it serves one thread at a time.
    fn take(&self) -> PyResult<Option<Line>> {
        if process::id() != self.process {
            return Err(PyRuntimeError::new_err(
                "this run is in the process that began it: a process that was forked begins its own",
            ));
        }
        let mut way = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        match mem::replace(&mut *way, RunAccess::Taken) {
            RunAccess::Free(line) => Ok(Some(line)),
            RunAccess::Taken => Err(PyRuntimeError::new_err(
                "this run is being asked already: one thread at a time may ask it",
            )),
            RunAccess::Over => {
                *way = RunAccess::Over;
                Ok(None)
            }
        }
    }

    fn change(&self, py: Python<'_>, change: Change) -> PyResult<()> {
        let line = self.take()?.ok_or_else(over)?;
        let (line, answer) = self.ask(py, line, Ask::Change(change))?;
        self.put_back(RunAccess::Free(line));
        match answer {
            Answer::Changed(changed) => changed.map_err(ScenarioError::new_err),
            Answer::Failed(why) => Err(ScenarioError::new_err(why)),
            Answer::Moment(_) | Answer::Result(_) => Err(over()),
        }
    }

    fn put_back(&self, way: RunAccess) {
        *self.line.lock().unwrap_or_else(PoisonError::into_inner) = way;
    }

    /// Asks, and waits for the answer; the run is over if there is none.
    fn ask(&self, py: Python<'_>, line: Line, ask: Ask) -> PyResult<(Line, Answer)> {
        let begun = Clock::now();
        let answered = match line.ask.send(ask) {
            Ok(()) => wait(py, line.answers, &self.work, || Ok(())),
            Err(_) => Err(over()),
        };
        *self.took.lock().unwrap_or_else(PoisonError::into_inner) += begun.elapsed();
        match answered {
            Ok((answers, answer)) => Ok((Line { answers, ..line }, answer)),
            Err(error) => {
                self.put_back(RunAccess::Over);
                Err(error)
            }
        }
    }
}

fn over() -> PyErr {
    PyRuntimeError::new_err("the run has ended")
}

/// Answers until nobody asks any more.
fn serve(plan: &Plan, observe: usize, work: &Work, asked: &Receiver<Ask>, tell: &Sender<Answer>) {
    let watch = work.watch();
    let scenario = plan.points[0].scenario.clone();
    let opened = Session::open(scenario, plan.seeds[0], Captures::default(), || {
        watch.stops()
    });
    let mut session = match opened {
        Ok(session) => session,
        Err(error) => {
            let _ = tell.send(Answer::Failed(error.to_string()));
            return;
        }
    };
    if observe > 0 {
        session.observe(observe);
    }
    while let Ok(ask) = asked.recv() {
        let answer = match ask {
            Ask::Advance(to) => {
                let is_over = session.advance(to, &watch);
                Answer::Moment(Box::new(Seized {
                    view: session.view(),
                    seen: session.take_seen(),
                    samples: session.take_samples(),
                    is_over,
                }))
            }
            Ask::Change(change) => Answer::Changed(session.change(&change)),
            Ask::Finish => {
                let _ = tell.send(Answer::Result(Box::new(session.finish())));
                return;
            }
        };
        if tell.send(answer).is_err() {
            return;
        }
    }
}

#[pymethods]
impl Steps {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Moment>> {
        let Some(mut line) = self.take()? else {
            return Ok(None);
        };
        if line.is_over {
            self.put_back(RunAccess::Free(line));
            return Ok(None);
        }
        line.asked_us = line.asked_us.saturating_add(self.step_us);
        let to = Instant::from_micros(line.asked_us);
        let (mut line, answer) = self.ask(py, line, Ask::Advance(to))?;
        let seized = match answer {
            Answer::Moment(seized) => seized,
            Answer::Failed(why) => {
                self.put_back(RunAccess::Over);
                return Err(ScenarioError::new_err(why));
            }
            Answer::Result(_) | Answer::Changed(_) => {
                self.put_back(RunAccess::Over);
                return Ok(None);
            }
        };
        line.is_over = seized.is_over;
        self.put_back(RunAccess::Free(line));
        if let Some(progress) = &self.progress {
            let since = seized
                .view
                .joined_s
                .map(|joined| seized.view.now_s - joined);
            let share = since.unwrap_or(0.0) / self.plan.seconds();
            progress.call1(py, (share.clamp(0.0, 1.0),))?;
        }
        Ok(Some(Moment(*seized)))
    }

    /// Ends the run where it is; what it gave. It is complete only if nothing was left to happen.
    fn finish(&self, py: Python<'_>) -> PyResult<Outcome> {
        let line = self.take()?.ok_or_else(over)?;
        let (_, answer) = self.ask(py, line, Ask::Finish)?;
        self.put_back(RunAccess::Over);
        match answer {
            Answer::Result(result) => Ok(Outcome::new(
                self.plan.clone(),
                vec![*result],
                *self.took.lock().unwrap_or_else(PoisonError::into_inner),
            )),
            Answer::Failed(why) => Err(ScenarioError::new_err(why)),
            Answer::Moment(_) | Answer::Changed(_) => Err(over()),
        }
    }

    /// Switches a node off from now on; its connections are lost.
    fn switch_off(&self, py: Python<'_>, node: usize) -> PyResult<()> {
        self.change(py, Change::Off(node))
    }

    /// Switches a node on from now on: a cold start.
    fn switch_on(&self, py: Python<'_>, node: usize) -> PyResult<()> {
        self.change(py, Change::On(node))
    }

    /// Lets this share of all frames be lost besides, from now on: 0 to 1.
    fn lose_frames(&self, py: Python<'_>, share: f64) -> PyResult<()> {
        self.change(py, Change::FrameLoss(share))
    }
}

impl Drop for Steps {
    /// A step that is under way ends soon.
    fn drop(&mut self) {
        self.work
            .stop
            .store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

/// A run as it is at a moment, and what has happened since the moment before.
#[pyclass(frozen, module = "motet")]
#[derive(Debug)]
pub(crate) struct Moment(Seized);

#[pymethods]
impl Moment {
    /// Virtual time since the nodes were switched on, s.
    #[getter]
    fn now_s(&self) -> f64 {
        self.0.view.now_s
    }

    /// When all motes had joined, on the same clock; ``None`` before.
    #[getter]
    fn joined_s(&self) -> Option<f64> {
        self.0.view.joined_s
    }

    /// Frames and changes that there were beyond ``observe``.
    #[getter]
    fn missed(&self) -> u64 {
        self.0.seen.missed
    }

    /// By flow: bytes delivered, windows in bytes, round-trip time in ms; empty before all motes have joined.
    #[getter]
    fn flows(&self) -> PyResult<Table> {
        let all = &self.0.view.flows;
        table(
            all.len(),
            vec![
                ("flow", whole(0..all.len() as u64)),
                ("bytes", whole(all.iter().map(|flow| flow.bytes))),
                ("rtt_ms", whole(all.iter().map(|flow| flow.rtt_ms))),
                ("cwnd_bytes", whole(all.iter().map(|flow| flow.cwnd_bytes))),
                (
                    "ssthresh_bytes",
                    whole(all.iter().map(|flow| flow.ssthresh_bytes)),
                ),
                (
                    "peer_window_bytes",
                    whole(all.iter().map(|flow| flow.peer_window_bytes)),
                ),
                (
                    "inflight_bytes",
                    whole(all.iter().map(|flow| flow.inflight_bytes)),
                ),
            ],
        )
    }

    /// By node: whether it is on, its parent, frames in its queue, what its radio is at, its rank, transmissions for each
    /// frame that its parent took, and the energy that it has used.
    #[getter]
    fn nodes(&self) -> PyResult<Table> {
        let all = &self.0.view.nodes;
        let number = |number: Option<usize>| number.map(|number| number as u64);
        let state = |state| STATES[state as usize].to_owned();
        table(
            all.len(),
            vec![
                ("node", whole(0..all.len() as u64)),
                (
                    "is_on",
                    Values::Flag(all.iter().map(|node| Some(node.is_on)).collect()),
                ),
                (
                    "parent",
                    Values::Whole(all.iter().map(|node| number(node.parent)).collect()),
                ),
                (
                    "queue_frames",
                    Values::Whole(all.iter().map(|node| number(node.queue_frames)).collect()),
                ),
                (
                    "radio",
                    Values::Text(all.iter().map(|node| node.radio.map(state)).collect()),
                ),
                (
                    "rank",
                    Values::Whole(all.iter().map(|node| node.rank.map(u64::from)).collect()),
                ),
                (
                    "etx",
                    Values::Real(all.iter().map(|node| node.etx).collect()),
                ),
                (
                    "energy_mj",
                    Values::Real(all.iter().map(|node| node.energy_mj).collect()),
                ),
            ],
        )
    }

    /// Frames that have left the air: from, to, start_s, end_s, channel, kind, fate, bytes in hexadecimal.
    #[getter]
    fn frames(&self) -> PyResult<Table> {
        let all: Vec<&LoggedFrame> = self.0.seen.all.iter().filter_map(frame).collect();
        let to = all.iter().map(|frame| frame.to.map(|to| to as u64));
        let fate = |frame: &&LoggedFrame| Fate::NAMES[frame.fate.index()];
        let hex = |frame: &&LoggedFrame| {
            frame
                .bytes
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect()
        };
        table(
            all.len(),
            vec![
                ("from", whole(all.iter().map(|frame| frame.from as u64))),
                ("to", Values::Whole(to.collect())),
                (
                    "start_s",
                    real(all.iter().map(|frame| seconds(frame.start))),
                ),
                ("end_s", real(all.iter().map(|frame| seconds(frame.end)))),
                ("channel", whole(all.iter().map(|frame| frame.channel))),
                ("kind", text(all.iter().map(|frame| frame.kind.name()))),
                ("fate", text(all.iter().map(fate))),
                (
                    "bytes",
                    Values::Text(all.iter().map(|frame| Some(hex(frame))).collect()),
                ),
            ],
        )
    }

    /// Changes of radios' states: node, at_s, state.
    #[getter]
    fn radios(&self) -> PyResult<Table> {
        let all: Vec<&Turn> = self.0.seen.all.iter().filter_map(turn).collect();
        table(
            all.len(),
            vec![
                ("node", whole(all.iter().map(|turn| turn.node as u64))),
                ("at_s", real(all.iter().map(|turn| seconds(turn.at)))),
                (
                    "state",
                    text(all.iter().map(|turn| STATES[turn.state as usize])),
                ),
            ],
        )
    }

    /// Flows at the scenario's own interval: goodput in kb/s, round-trip time in ms, windows in bytes.
    #[getter]
    fn samples(&self) -> PyResult<Table> {
        let all = &self.0.samples;
        table(
            all.len(),
            vec![
                ("flow", whole(all.iter().map(|one| one.flow as u64))),
                ("at_s", real(all.iter().map(|one| one.at_s))),
                ("goodput_kbps", real(all.iter().map(|one| one.goodput_kbps))),
                ("rtt_ms", whole(all.iter().map(|one| one.rtt_ms))),
                ("cwnd_bytes", whole(all.iter().map(|one| one.cwnd_bytes))),
                (
                    "ssthresh_bytes",
                    whole(all.iter().map(|one| one.ssthresh_bytes)),
                ),
                (
                    "window_bytes",
                    whole(all.iter().map(|one| one.window_bytes)),
                ),
                (
                    "inflight_bytes",
                    whole(all.iter().map(|one| one.inflight_bytes)),
                ),
            ],
        )
    }

    fn __repr__(&self) -> String {
        format!("<motet.Moment at {} s>", self.0.view.now_s)
    }
}

fn frame(happening: &Happening) -> Option<&LoggedFrame> {
    match happening {
        Happening::Frame(frame) => Some(frame),
        Happening::Radio(_) => None,
    }
}

fn turn(happening: &Happening) -> Option<&Turn> {
    match happening {
        Happening::Radio(turn) => Some(turn),
        Happening::Frame(_) => None,
    }
}

fn table(rows: usize, columns: Vec<(&str, Values)>) -> PyResult<Table> {
    let columns = columns.into_iter().map(|(name, values)| Column {
        name: name.to_owned(),
        values,
    });
    let columns = Columns {
        rows,
        columns: columns.collect(),
    };
    Table::of(columns, None)
}

fn whole<T: Into<u64>>(all: impl Iterator<Item = T>) -> Values {
    Values::Whole(all.map(|one| Some(one.into())).collect())
}

fn real(all: impl Iterator<Item = f64>) -> Values {
    Values::Real(all.map(Some).collect())
}

fn text(all: impl Iterator<Item = &'static str>) -> Values {
    Values::Text(all.map(|one| Some(one.to_owned())).collect())
}

fn seconds(at: Instant) -> f64 {
    at.as_micros() as f64 / 1e6
}

/// Shorter than any frame, and as long as a scenario may be.
const STEP_MIN: f64 = 1e-5;
const STEP_MAX: f64 = 1e6;
