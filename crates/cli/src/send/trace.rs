//! The state of the sending TCP over time, as lines of JSON.
//!
//! Place: a transfer shows its sender here after each event of the air. Without `--trace` there
//! is no trace. Left out: the kernel's TCP, whose state this process cannot see.

use std::path::{Path, PathBuf};

use motet::{
    tcp::{RetransmissionCause, TcpCounters, Telemetry},
    time::Instant,
};
use motet_lab::files::RecordFile;
use serde::Serialize;

use crate::{error::Error, files::write_error, output::Versioned};

/// A trace being written, line by line, so that a program can follow it.
#[derive(Debug)]
pub(super) struct Trace {
    file: RecordFile,
    path: PathBuf,
    state: Option<State>,
    /// Retransmissions written, by cause.
    retransmissions: [u16; RetransmissionCause::COUNT],
}

/// One line of the trace.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Record {
    /// The state of congestion control or recovery has changed.
    State {
        time_s: f64,
        #[serde(flatten)]
        state: State,
    },
    /// A segment was sent again.
    Retransmission { time_s: f64, cause: &'static str },
}

/// The state of a connection in a trace; bytes, unless the name says milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
struct State {
    cwnd: u16,
    ssthresh: u16,
    /// `None` before the first sample.
    srtt_ms: Option<u32>,
    rttvar_ms: Option<u32>,
    rto_ms: u32,
    inflight: u16,
    snd_wnd: u16,
}

impl Trace {
    /// Begins a trace that will be called `path` from its first line on.
    ///
    /// # Errors
    /// [`Error::Input`] when `path` exists (unless `replace`) or its folder takes no new file.
    pub(super) fn create(path: &Path, replace: bool) -> Result<Self, Error> {
        let file = RecordFile::create(path, replace, b"");
        let file = file.map_err(|error| write_error(path, &error))?;
        Ok(Self {
            file,
            path: path.to_owned(),
            state: None,
            retransmissions: [0; RetransmissionCause::COUNT],
        })
    }

    /// Writes what has changed since the last look.
    ///
    /// # Errors
    /// When the disk is full.
    pub(super) fn look(
        &mut self,
        telemetry: &Telemetry,
        counters: &TcpCounters,
        now: Instant,
    ) -> Result<(), Error> {
        let time_s = now.as_micros() as f64 / 1e6;
        for (place, cause) in RetransmissionCause::ALL.into_iter().enumerate() {
            let count = counters.retransmitted(cause);
            while self.retransmissions[place] < count {
                self.retransmissions[place] += 1;
                let cause = cause.name();
                self.write(&Record::Retransmission { time_s, cause })?;
            }
        }
        let state = State::of(telemetry);
        // All figures are zero before the connection exists.
        if telemetry.rto_ms > 0 && self.state != Some(state) {
            self.state = Some(state);
            self.write(&Record::State { time_s, state })?;
        }
        Ok(())
    }

    /// Ends the trace; one without any line gets its name.
    ///
    /// # Errors
    /// When another file took the name meanwhile.
    pub(super) fn finish(self) -> Result<(), Error> {
        let Self { file, path, .. } = self;
        file.finish().map_err(|error| write_error(&path, &error))
    }

    fn write(&mut self, record: &Record) -> Result<(), Error> {
        serde_json::to_vec(&Versioned::new(record))
            .map_err(std::io::Error::from)
            .and_then(|mut line| {
                line.push(b'\n');
                self.file.append(&line)
            })
            .map_err(|error| write_error(&self.path, &error))
    }
}

impl State {
    fn of(telemetry: &Telemetry) -> Self {
        let is_measured = telemetry.srtt_ms > 0;
        Self {
            cwnd: telemetry.cwnd_bytes,
            ssthresh: telemetry.ssthresh_bytes,
            srtt_ms: is_measured.then_some(telemetry.srtt_ms),
            rttvar_ms: is_measured.then_some(telemetry.rttvar_ms),
            rto_ms: telemetry.rto_ms,
            inflight: telemetry.inflight_bytes,
            snd_wnd: telemetry.snd_wnd_bytes,
        }
    }
}
