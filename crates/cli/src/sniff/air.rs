//! Listening: the radio, its clock, and the capture of what it hears.

use std::time;

use motet::wire::ieee802154::fcs;
use motet_lab::capture::{Capture, Records};
use motet_radio::{Event, RadioUrl};
use motet_spinel::{Cause, Promiscuous, RadioInfo, Received, Settings};
use serde::Serialize;

use crate::{
    capture::CaptureArgs,
    error::Error,
    interrupt::Interrupt,
    output::{self, BOLD, Out, say},
    real_radio::{self, Clock},
};

use super::source::{Counts, RSSI_UNKNOWN, Source};

/// A radio that receives everything, with the clock of its frames.
pub(super) struct Radio<'i> {
    source: Source,
    info: RadioInfo,
    channel: u8,
    clock: Clock,
    interrupt: &'i Interrupt,
}

impl<'i> Radio<'i> {
    /// Starts a radio; none where a signal came first.
    ///
    /// # Errors
    /// The URL is none; there is no such radio, or none of use.
    pub(super) fn start(
        url: &str,
        channel: u8,
        interrupt: &'i Interrupt,
    ) -> Result<Option<Self>, Error> {
        let settings = Settings {
            channel,
            pan: BROADCAST,
            short: None,
            eui64: None,
            promiscuous: Promiscuous::All,
        };
        // A capture's times are those of the real air.
        let clock = Clock::of_day();
        let started = match real_radio::parse(url)? {
            #[cfg(target_os = "linux")]
            RadioUrl::Wpan { interface } => Some(Source::monitor(&interface, channel)?),
            url => real_radio::start(&url, settings, clock, interrupt)?
                .map(|(radio, info)| (Source::Rcp(Box::new(radio)), info)),
        };
        Ok(started.map(|(source, info)| Self {
            source,
            info,
            channel,
            clock,
            interrupt,
        }))
    }

    pub(super) const fn info(&self) -> &RadioInfo {
        &self.info
    }

    pub(super) fn has_been_interrupted(&self) -> bool {
        self.interrupt.has_come()
    }

    /// Begins to measure a channel; whether the radio does.
    ///
    /// # Errors
    /// The radio does not have the channel, or cannot measure.
    pub(super) fn scan(&mut self, channel: u8, period_ms: u16) -> Result<bool, Error> {
        self.source.scan(channel, period_ms, self.clock.now())
    }

    /// The next event that is there now. What the user should know of it is said.
    ///
    /// # Errors
    /// The radio cannot be used any more.
    pub(super) fn poll(&mut self) -> Result<Option<Event>, Error> {
        let event = self.source.poll(self.clock.now())?;
        match &event {
            Some(Event::Restarted(_)) if !self.source.has_line() => {
                say("the radio is gone: plug it in again, or press Ctrl-C");
            }
            Some(Event::Restarted(Cause::Silence)) => {
                say(
                    "the radio does not answer: plug it in anew, unless it returns, or press Ctrl-C",
                );
            }
            Some(Event::Restarted(_)) => say("the radio has restarted"),
            Some(Event::Ready(_)) => say("the radio is ready again"),
            _ => {}
        }
        Ok(event)
    }

    /// Waits until there may be an event, or for `timeout`.
    ///
    /// # Errors
    /// What poll(2) reports.
    pub(super) fn wait(&mut self, timeout: time::Duration) -> Result<(), Error> {
        self.source.wait(timeout, self.clock.now())
    }
}

/// A capture in figures.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct CaptureSummary {
    firmware: String,
    api: u32,
    eui64: String,
    channel: u8,
    seconds: f64,
    frames: u64,
    /// Frames that the radio handed out as broken.
    broken: u64,
    /// Frames between radio and this program that the line has spoilt.
    spoilt: u64,
    /// Restarts of the radio, and times that it was unplugged.
    restarts: u64,
}

/// Captures until a signal comes, until `after`, or until the capture's reader goes away.
///
/// # Errors
/// The capture cannot be written; the radio cannot be used any more.
pub(super) fn run(
    mut radio: Radio<'_>,
    args: &CaptureArgs,
    after: Option<time::Duration>,
    json: bool,
) -> Result<(), Error> {
    let interrupt = radio.interrupt.clone();
    let begun = args.create(Records::TappedFrames, move || interrupt.has_come());
    let mut capture = match begun {
        Err(_) if radio.has_been_interrupted() => return Ok(()),
        // The reader has gone already.
        Ok(None) => return Ok(()),
        Ok(Some(capture)) => capture,
        Err(error) => return Err(error),
    };
    let (firmware, channel) = (&radio.info.firmware, radio.channel);
    say(&format!("{firmware} listens on channel {channel}"));
    let started = time::Instant::now();
    let until = after.map(|after| started + after);
    let listened = listen(&mut radio, &mut capture, until);
    let kept = args.end(Some(capture));
    let figures = summary(&radio, started.elapsed());
    let out = match args.takes_stdout() {
        true => Out::Stderr,
        false => Out::Stdout,
    };
    match listened {
        Ok(()) => Error::all([kept.map(drop), show(&figures, json, out)]),
        Err(error) => {
            let kept_up_to_then = kept.as_ref().ok().cloned().flatten();
            let error = error.with_partial_output(kept_up_to_then.as_slice());
            Error::all([Err(error), kept.map(drop)])
        }
    }
}

fn listen(
    radio: &mut Radio<'_>,
    capture: &mut Capture,
    until: Option<time::Instant>,
) -> Result<(), Error> {
    loop {
        while let Some(event) = radio.poll()? {
            if let Event::Received(frame) = event {
                write(capture, &frame);
            }
        }
        let left = until.map(|until| until.saturating_duration_since(time::Instant::now()));
        let is_over = left.is_some_and(|left| left.is_zero());
        if is_over || radio.has_been_interrupted() || capture.has_failed() {
            return Ok(());
        }
        radio.wait(left.unwrap_or(NAP).min(NAP))?;
    }
}

fn write(capture: &mut Capture, frame: &Received) {
    // The radio has checked it, and keeps it to itself.
    let fcs = fcs(&frame.psdu).to_le_bytes();
    let psdu = [&frame.psdu[..], &fcs].concat();
    let dbm = Some(f64::from(frame.rssi_dbm)).filter(|_| frame.rssi_dbm != RSSI_UNKNOWN);
    capture.frame(frame.at, &psdu, frame.channel, dbm);
}

fn summary(radio: &Radio<'_>, elapsed: time::Duration) -> CaptureSummary {
    let Counts {
        frames,
        broken,
        spoilt,
        restarts,
    } = radio.source.counts();
    CaptureSummary {
        firmware: radio.info.firmware.clone(),
        api: radio.info.api,
        eui64: motet_lab::keys::hex(&radio.info.eui64),
        channel: radio.channel,
        seconds: elapsed.as_millis() as f64 / 1_000.0,
        frames,
        broken,
        spoilt,
        restarts,
    }
}

fn show(summary: &CaptureSummary, json: bool, out: Out) -> Result<(), Error> {
    if json {
        return output::json_to(out, summary);
    }
    let CaptureSummary {
        frames,
        seconds,
        channel,
        broken,
        spoilt,
        ..
    } = summary;
    let frames = format!("{BOLD}{frames} frames{BOLD:#}");
    output::line_to(
        out,
        format_args!("{frames} in {seconds:.1} s on channel {channel}"),
    )?;
    if broken + spoilt > 0 {
        output::line_to(
            out,
            format_args!("lost besides: {broken} broken on the air, {spoilt} spoilt on the line"),
        )?;
    }
    Ok(())
}

/// No PAN's identifier.
const BROADCAST: u16 = 0xffff;

/// How late a signal may be noticed.
const NAP: time::Duration = time::Duration::from_millis(50);
