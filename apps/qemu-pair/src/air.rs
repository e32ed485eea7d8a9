//! Two radios that hear one another without loss, but for frames that meet.

use core::cell::RefCell;
use core::future::poll_fn;
use core::task::Poll;

use embassy_futures::select::select;
use embassy_sync::waitqueue::WakerRegistration;
use embassy_time::{Instant, Timer};
use motet_embassy::Radio;
use motet_embassy::mac::{Action, Event, RadioCapabilities, RxMeta};

/// The air, and what happens at both radios.
pub(crate) struct Air {
    sides: [Side; 2],
}

struct Side {
    reports: [Option<(u64, Report)>; REPORTS],
    loaded: Frame,
    heard: Frame,
    /// From when to when it sends, or sent last, µs.
    on_air: (u64, u64),
    waker: WakerRegistration,
}

#[derive(Clone, Copy)]
enum Report {
    Preloaded,
    Assessed { clear: bool },
    Sent,
    Heard,
}

#[derive(Clone, Copy)]
struct Frame {
    bytes: [u8; 127],
    len: usize,
}

/// One end of the air.
pub(crate) struct PairRadio {
    air: &'static RefCell<Air>,
    me: usize,
}

impl Air {
    pub(crate) const fn new() -> Self {
        Self {
            sides: [const { Side::new() }; 2],
        }
    }
}

impl Side {
    const fn new() -> Self {
        Self {
            reports: [None; REPORTS],
            loaded: Frame::EMPTY,
            heard: Frame::EMPTY,
            on_air: (0, 0),
            waker: WakerRegistration::new(),
        }
    }

    fn report(&mut self, at: u64, report: Report) {
        if let Some(place) = self.reports.iter_mut().find(|place| place.is_none()) {
            *place = Some((at, report));
        }
        self.waker.wake();
    }

    fn next_at(&self) -> Option<u64> {
        self.reports.iter().flatten().map(|(at, _)| *at).min()
    }

    fn take(&mut self, at: u64) -> Option<Report> {
        let is_due = |place: &&mut Option<(u64, Report)>| place.is_some_and(|(due, _)| due == at);
        let place = self.reports.iter_mut().find(is_due)?;
        place.take().map(|(_, report)| report)
    }
}

impl Frame {
    const EMPTY: Self = Self {
        bytes: [0; 127],
        len: 0,
    };

    fn of(bytes: &[u8]) -> Self {
        let mut frame = Self::EMPTY;
        for (to, from) in frame.bytes.iter_mut().zip(bytes) {
            *to = *from;
            frame.len += 1;
        }
        frame
    }
}

impl PairRadio {
    /// `me`: 0 or 1.
    pub(crate) const fn new(air: &'static RefCell<Air>, me: usize) -> Self {
        Self { air, me }
    }

    fn transmit(&self, frame: Frame, start: u64) {
        let end = start + (6 + frame.len as u64) * 32;
        let mut air = self.air.borrow_mut();
        let [a, b] = &mut air.sides;
        let (me, other) = if self.me == 0 { (a, b) } else { (b, a) };
        me.on_air = (start, end);
        me.report(end, Report::Sent);
        let (from, to) = other.on_air;
        if end <= from || to <= start {
            other.heard = frame;
            other.report(end, Report::Heard);
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut Side, &Side) -> T) -> T {
        let mut air = self.air.borrow_mut();
        let [a, b] = &mut air.sides;
        if self.me == 0 { act(a, b) } else { act(b, a) }
    }
}

impl Radio for PairRadio {
    fn capabilities(&self) -> RadioCapabilities {
        RadioCapabilities {
            auto_ack: false,
            ..RadioCapabilities::CC2420
        }
    }

    fn perform(&mut self, action: Action, bytes: &[u8]) {
        let now = Instant::now().as_micros();
        let frame = |len| Frame::of(bytes.get(..len).unwrap_or_default());
        match action {
            Action::Preload { len } => self.with(|me, _| {
                me.loaded = frame(len);
                me.report(now, Report::Preloaded);
            }),
            Action::AssessChannel => self.with(|me, other| {
                let (from, to) = other.on_air;
                let clear = !(from <= now + 128 && now < to);
                me.report(now + 128, Report::Assessed { clear });
            }),
            Action::Fire => {
                let loaded = self.with(|me, _| me.loaded);
                self.transmit(loaded, now + 192);
            }
            Action::Transmit { len, at } => self.transmit(frame(len), at.as_micros()),
            Action::Listen
            | Action::Sleep
            | Action::ChangeChannel { .. }
            | Action::SetPending { .. } => {}
        }
    }

    async fn event<'a>(&mut self, psdu: &'a mut [u8; 127]) -> Event<'a> {
        let (at, report) = loop {
            let next = self.with(|me, _| me.next_at());
            if let Some(at) = next.filter(|at| *at <= Instant::now().as_micros())
                && let Some(report) = self.with(|me, _| me.take(at))
            {
                break (at, report);
            }
            let mut is_called = false;
            let called = poll_fn(|cx| match core::mem::replace(&mut is_called, true) {
                true => Poll::Ready(()),
                false => {
                    self.with(|me, _| me.waker.register(cx.waker()));
                    Poll::Pending
                }
            });
            match next {
                Some(at) => {
                    select(Timer::at(Instant::from_micros(at)), called).await;
                }
                None => called.await,
            }
        };
        let at = motet::time::Instant::from_micros(at);
        match report {
            Report::Preloaded => Event::Preloaded,
            Report::Assessed { clear } => Event::ChannelAssessed { clear },
            Report::Sent => Event::TransmitDone { at },
            Report::Heard => {
                let frame = self.with(|me, _| me.heard);
                *psdu = frame.bytes;
                Event::FrameReceived {
                    psdu: psdu.get(..frame.len).unwrap_or_default(),
                    meta: RxMeta {
                        rssi_dbm: -50,
                        lqi: 255,
                        channel: 26,
                        at,
                    },
                }
            }
        }
    }
}

/// Reports that wait at one time: one of each kind, and a frame behind another's end.
const REPORTS: usize = 6;
