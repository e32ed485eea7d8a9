//! The start of a radio: a reset, then questions. And what makes a start necessary again: restarts
//! of the radio, of its line, and silence.

use motet::time::{Duration, Instant};

use super::{Cause, Event, Phase, RadioCaps, SILENCE_MAX, Session};
use crate::Error;
use crate::error::{API_MIN, HOST_API};
use crate::frame::{Command, Frame, Header, Property, Status};
use crate::packed::Reader;

/// Properties that are read at the start, in this order.
pub(super) const QUESTIONS: [Property; 10] = [
    Property::ProtocolVersion,
    Property::NcpVersion,
    Property::InterfaceType,
    Property::Caps,
    Property::RcpApiVersion,
    Property::RcpMinHostApiVersion,
    Property::RadioCaps,
    Property::Hwaddr,
    Property::PhyChanSupported,
    Property::RcpTimestamp,
];

impl Session {
    /// Resets the radio where that is due.
    pub(super) fn advance_start(&mut self, now: Instant) {
        let (since, again_at, interval) = match self.phase {
            Phase::Begin => (now, now, RESET_INTERVAL),
            Phase::Resetting {
                since,
                again_at,
                interval,
            } => (since, again_at, interval),
            _ => return,
        };
        if !self.was_ready && now.since(since) >= SILENCE_MAX {
            self.counters.silences += 1;
            return self.fail(Error::NoAnswer(SILENCE_MAX), now);
        }
        if now < again_at {
            return;
        }
        // A reset that the line has not taken yet is enough.
        if self.output.is_empty() || self.phase == Phase::Begin {
            self.send_reset(now);
        }
        self.phase = Phase::Resetting {
            since,
            again_at: now + interval,
            interval: interval.saturating_mul(2).min(RESET_INTERVAL_MAX),
        };
    }

    fn send_reset(&mut self, now: Instant) {
        let reset = Frame {
            header: Header::default(),
            command: Command::Reset,
            property: Property::LastStatus,
            value: &[RESET_STACK],
        };
        match self.output.push(&reset.emit()) {
            Some(_) => {
                self.counters.resets += 1;
                self.resets = self.resets.saturating_add(1);
                self.reset_at = Some(now);
            }
            None => self.counters.output_dropped += 1,
        }
    }

    /// Handles a restart that the radio reports.
    pub(super) fn on_restart(&mut self, status: Status, now: Instant) {
        match self.phase {
            Phase::Begin | Phase::Away | Phase::Failed => {}
            Phase::Resetting { .. } => {
                // Firmware reports a restart up to twice.
                self.echoes = 2 * u16::from(self.resets.max(1)) - 1;
                self.ask_anew();
            }
            // The second report may come behind the answer to a question, and the radio may have
            // lost that one or its settings.
            Phase::Asking(_) | Phase::Configuring if self.echoes > 0 => {
                self.echoes -= 1;
                self.forget();
                self.ask_anew();
            }
            _ => {
                self.counters.restarts += 1;
                if !self.restarts.take(now) {
                    return self.fail(Error::KeepsRestarting { last: Some(status) }, now);
                }
                self.lose(Cause::Status(status), now);
                self.echoes = 1;
                self.ask_anew();
            }
        }
    }

    /// Handles a line that is gone.
    pub(super) fn line_lost(&mut self, now: Instant) {
        // A start that has not begun is not disturbed.
        if matches!(self.phase, Phase::Begin | Phase::Away | Phase::Failed) {
            return;
        }
        self.lose(Cause::Line, now);
        self.round_trips.clear();
        self.phase = Phase::Away;
    }

    /// Handles a line that was opened anew.
    pub(super) fn line_restarted(&mut self, now: Instant) {
        if self.phase != Phase::Away {
            return;
        }
        // Old firmware closes its line when it is reset. A second reset would close it again.
        let reset_at = self.reset_at.take();
        let is_ours = reset_at.is_some_and(|at| now.since(at) < REOPENED_WITHIN);
        if !is_ours {
            self.counters.restarts += 1;
            if !self.restarts.take(now) {
                return self.fail(Error::KeepsRestarting { last: None }, now);
            }
        }
        self.echoes = 2;
        if is_ours {
            self.ask_anew();
        } else {
            self.phase = Phase::Begin;
        }
    }

    /// Handles a request that had no answer for [`SILENCE_MAX`].
    pub(super) fn on_silence(&mut self, now: Instant) {
        self.counters.silences += 1;
        if self.was_ready {
            self.lose(Cause::Silence, now);
            self.phase = Phase::Begin;
            self.advance_start(now);
        } else {
            self.fail(Error::NoAnswer(SILENCE_MAX), now);
        }
    }

    pub(super) fn fail(&mut self, error: Error, now: Instant) {
        self.end_flight_lost(now);
        self.end_scan(None);
        self.forget();
        self.phase = Phase::Failed;
        self.output.clear();
        self.events.push_back(Event::Failed(error));
    }

    /// The radio has to be configured anew: what was open fails.
    fn lose(&mut self, cause: Cause, now: Instant) {
        self.end_flight_lost(now);
        self.end_scan(None);
        self.forget();
        if std::mem::take(&mut self.is_up) {
            self.events.push_back(Event::Restarted(cause));
        }
    }

    fn forget(&mut self) {
        (self.asked, self.flight, self.scan) = (None, None, None);
        self.applied.forget();
        self.source_match.forget();
        self.clock = super::Clock::default();
        self.is_suspect = false;
        self.refusals = 0;
    }

    fn ask_anew(&mut self) {
        self.asked = None;
        self.phase = Phase::Asking(0);
    }

    /// Handles the answer to a question of the start.
    pub(super) fn on_start_answer(
        &mut self,
        property: Property,
        answer: Result<&[u8], Status>,
        sent: Instant,
        now: Instant,
    ) {
        if property == Property::RcpTimestamp {
            let radio_us = answer.ok().and_then(|value| Reader::new(value).u64());
            self.clock.on_answer(radio_us, sent, now);
        } else if let Err(error) = self.judge(property, answer) {
            return self.fail(error, now);
        }
        if let Phase::Asking(n) = self.phase {
            self.phase = match n + 1 {
                n if n < QUESTIONS.len() => Phase::Asking(n),
                _ => Phase::Configuring,
            };
        }
    }

    /// Whether the firmware has such a property.
    pub(super) fn is_asked_for(&self, property: Property) -> bool {
        match property {
            Property::RcpApiVersion => self.caps.contains(&CAP_API),
            Property::RcpMinHostApiVersion => self.caps.contains(&CAP_MIN_HOST_API),
            _ => true,
        }
    }

    /// Keeps an answer; an error where the radio cannot be used.
    fn judge(&mut self, property: Property, answer: Result<&[u8], Status>) -> Result<(), Error> {
        let mut reader = Reader::new(answer.unwrap_or_default());
        let firmware = || self.radio.firmware.clone();
        match property {
            Property::ProtocolVersion => {
                let version = (reader.packed().unwrap_or(0), reader.packed().unwrap_or(0));
                if version.0 != MAJOR {
                    return Err(Error::OtherProtocol { version });
                }
                self.radio = super::RadioInfo::default();
            }
            Property::NcpVersion => self.radio.firmware = text(reader.rest()),
            Property::InterfaceType if reader.packed() != Some(TYPE_THREAD) => {
                return Err(Error::NotAnRcp {
                    firmware: firmware(),
                });
            }
            Property::Caps => {
                self.caps = std::iter::from_fn(|| reader.packed())
                    .take(CAPS_MAX)
                    .collect();
                let is_rcp = self.caps.contains(&CAP_RADIO) || self.caps.contains(&CAP_RAW);
                let firmware = self.radio.firmware.clone();
                if !is_rcp {
                    return Err(Error::NotAnRcp { firmware });
                }
                if !self.caps.contains(&CAP_API) {
                    return Err(Error::TooOld {
                        firmware,
                        api: None,
                    });
                }
            }
            Property::RcpApiVersion => match reader.packed() {
                Some(api) if api >= API_MIN => self.radio.api = api,
                api => {
                    return Err(Error::TooOld {
                        firmware: firmware(),
                        api,
                    });
                }
            },
            Property::RcpMinHostApiVersion => {
                if let Some(least) = reader.packed().filter(|least| *least > HOST_API) {
                    return Err(Error::TooNew {
                        firmware: firmware(),
                        least,
                    });
                }
            }
            Property::RadioCaps => {
                self.radio.capabilities = RadioCaps(reader.packed().unwrap_or(0));
            }
            Property::Hwaddr => match (reader.eui64(), answer) {
                (Some(eui64), _) => self.radio.eui64 = eui64,
                (None, _) if self.settings.eui64.is_some() => {}
                (None, answer) => {
                    let status = answer.err().unwrap_or(Status::ParseError);
                    return Err(Error::Refused { property, status });
                }
            },
            Property::PhyChanSupported => return self.judge_channels(reader.rest()),
            _ => {}
        }
        Ok(())
    }

    fn judge_channels(&mut self, channels: &[u8]) -> Result<(), Error> {
        self.radio.channels = match channels {
            // Not reported: the channels of 2.4 GHz.
            [] => (11..=26).collect(),
            channels => channels.to_vec(),
        };
        let channel = self.settings.channel;
        if self.radio.channels.contains(&channel) {
            return Ok(());
        }
        let channels = self.radio.channels.clone();
        Err(Error::NoSuchChannel { channel, channels })
    }
}

/// Text that ends in NUL, for people.
fn text(bytes: &[u8]) -> String {
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    let printable = text.chars().filter(|char| !char.is_control());
    printable.take(FIRMWARE_LEN_MAX).collect()
}

/// Kind of a reset: the stack, not the platform or the bootloader.
const RESET_STACK: u8 = 2;

/// How long to wait before the first repetition of a reset; then twice as long each time.
const RESET_INTERVAL: Duration = Duration::from_millis(250);
const RESET_INTERVAL_MAX: Duration = Duration::from_secs(8);

/// A line that is opened anew within this time after a reset was closed by the reset.
const REOPENED_WITHIN: Duration = Duration::from_secs(10);

/// Major version of Spinel.
const MAJOR: u32 = 4;
/// The interface's type of all firmware of OpenThread.
const TYPE_THREAD: u32 = 3;
/// Capability: an RCP of OpenThread.
const CAP_RADIO: u32 = 34;
/// Capability: raw frames.
const CAP_RAW: u32 = 513;
/// Capability: has [`Property::RcpApiVersion`].
const CAP_API: u32 = 64;
/// Capability: has [`Property::RcpMinHostApiVersion`].
const CAP_MIN_HOST_API: u32 = 65;

/// Capabilities and characters that are kept.
const CAPS_MAX: usize = 256;
const FIRMWARE_LEN_MAX: usize = 200;
