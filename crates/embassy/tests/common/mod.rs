//! Two motes in one process: a clock that jumps to what is due next, an executor that counts
//! wakes, and an air between two radios.
#![allow(dead_code, reason = "each test binary uses a part of what they share")]

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::net::{Ipv6Addr, SocketAddr, SocketAddrV6};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use embassy_futures::select::select;
use embassy_time::Timer;
use motet_embassy::mac::{self, RadioCapabilities, RxMeta};
use motet_embassy::{Config, Radio, Resources, Runner, Stack};

// ---- The clock: one of each thread, hence of each test. ----

struct Clock;

thread_local! {
    static NOW_US: Cell<u64> = const { Cell::new(0) };
    static ALARMS: RefCell<Vec<(u64, Waker)>> = const { RefCell::new(Vec::new()) };
}

impl embassy_time_driver::Driver for Clock {
    fn now(&self) -> u64 {
        NOW_US.get()
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        ALARMS.with_borrow_mut(|alarms| {
            if !alarms
                .iter()
                .any(|(due, other)| *due == at && other.will_wake(waker))
            {
                alarms.push((at, waker.clone()));
            }
        });
    }
}

embassy_time_driver::time_driver_impl!(static CLOCK: Clock = Clock);

/// The clock of this thread begins anew.
pub(crate) fn restart_clock() {
    NOW_US.set(0);
    ALARMS.take();
}

pub(crate) fn now_us() -> u64 {
    NOW_US.get()
}

/// Goes on to the next alarm; false where there is none.
fn advance() -> bool {
    let due = ALARMS.with_borrow_mut(|alarms| {
        let at = alarms.iter().map(|(at, _)| *at).min()?;
        NOW_US.set(at.max(NOW_US.get()));
        let (due, later): (Vec<_>, Vec<_>) = alarms.drain(..).partition(|(when, _)| *when <= at);
        *alarms = later;
        Some(due)
    });
    let is_some = due.is_some();
    due.into_iter()
        .flatten()
        .for_each(|(_, waker)| waker.wake());
    is_some
}

// ---- The executor. ----

#[derive(Default)]
pub(crate) struct Task {
    is_ready: AtomicBool,
    wakes: AtomicU32,
}

impl Task {
    /// How often it was woken while it waited.
    pub(crate) fn wakes(&self) -> u32 {
        self.wakes.load(Ordering::Relaxed)
    }
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        if !self.is_ready.swap(true, Ordering::Relaxed) {
            self.wakes.fetch_add(1, Ordering::Relaxed);
        }
    }
}

type Boxed = Pin<Box<dyn Future<Output = ()>>>;

#[derive(Default)]
pub(crate) struct Executor {
    tasks: Vec<(Boxed, Arc<Task>)>,
}

impl Executor {
    pub(crate) fn spawn(&mut self, future: impl Future<Output = ()> + 'static) -> Arc<Task> {
        let task = Arc::new(Task::default());
        task.is_ready.store(true, Ordering::Relaxed);
        self.tasks.push((Box::pin(future), task.clone()));
        task
    }

    /// Runs every task until `done`; fails after `limit_s` seconds of virtual time.
    pub(crate) fn run_until(&mut self, limit_s: u64, mut done: impl FnMut() -> bool) {
        let end = now_us() + limit_s * 1_000_000;
        loop {
            while self.step() {}
            if done() {
                return;
            }
            assert!(advance(), "every task waits for good");
            assert!(now_us() <= end, "not done after {limit_s} s");
        }
    }

    fn step(&mut self) -> bool {
        let mut any = false;
        self.tasks.retain_mut(|(future, task)| {
            if !task.is_ready.swap(false, Ordering::Relaxed) {
                return true;
            }
            any = true;
            let waker = Waker::from(task.clone());
            future
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        });
        any
    }
}

/// Runs `future` to its end beside the tasks of `executor`.
pub(crate) fn block_on<T: 'static>(
    executor: &mut Executor,
    limit_s: u64,
    future: impl Future<Output = T> + 'static,
) -> T {
    let result = Rc::new(RefCell::new(None));
    let place = result.clone();
    executor.spawn(async move {
        let value = future.await;
        *place.borrow_mut() = Some(value);
    });
    executor.run_until(limit_s, || result.borrow().is_some());
    let value = result.borrow_mut().take();
    value.expect("it is done")
}

// ---- The air. ----

enum Report {
    Preloaded,
    Assessed { clear: bool },
    Done,
    Heard(Vec<u8>),
}

#[derive(Default)]
struct Side {
    /// What happens at this radio, and when.
    reports: VecDeque<(u64, Report)>,
    preloaded: Vec<u8>,
    /// From when to when it sends, or sent last.
    on_air: (u64, u64),
    /// Since when the receiver is off, and for how long it was before.
    off_since: Option<u64>,
    off_us: u64,
    waker: Option<Waker>,
}

/// Two radios that hear one another, without loss but for frames that meet.
pub(crate) struct Air {
    sides: [Side; 2],
    /// Of every so many frames with data one is lost; 0: none.
    pub(crate) loses_every: u32,
    /// Somebody else sends all the time.
    pub(crate) is_jammed: bool,
    sent: u32,
    /// Frames, as they were sent.
    pub(crate) frames: Vec<Vec<u8>>,
}

impl Air {
    /// An air without a frame in it.
    pub(crate) fn new() -> Rc<RefCell<Self>> {
        restart_clock();
        Rc::new(RefCell::new(Self {
            sides: Default::default(),
            loses_every: 0,
            is_jammed: false,
            sent: 0,
            frames: Vec::new(),
        }))
    }

    /// How long the receiver of this radio has been off, us.
    pub(crate) fn off_us(&self, side: usize) -> u64 {
        let side = &self.sides[side];
        side.off_us + side.off_since.map_or(0, |since| now_us() - since)
    }
}

pub(crate) struct AirRadio {
    air: Rc<RefCell<Air>>,
    me: usize,
}

impl AirRadio {
    pub(crate) const fn new(air: Rc<RefCell<Air>>, me: usize) -> Self {
        Self { air, me }
    }

    fn transmit(&self, psdu: Vec<u8>, start: u64) {
        let mut air = self.air.borrow_mut();
        let end = start + (6 + psdu.len() as u64) * 32;
        air.sent += 1;
        air.frames.push(psdu.clone());
        // An ACK has five bytes.
        let is_lost =
            air.loses_every > 0 && psdu.len() > 5 && air.sent.is_multiple_of(air.loses_every);
        let (from, to) = air.sides[1 - self.me].on_air;
        let collides = from < end && start < to;
        let me = &mut air.sides[self.me];
        me.on_air = (start, end);
        me.reports.push_back((end, Report::Done));
        let is_deaf = air.sides[1 - self.me].off_since.is_some();
        if !collides && !is_lost && !is_deaf {
            let other = &mut air.sides[1 - self.me];
            other.reports.push_back((end, Report::Heard(psdu)));
            if let Some(waker) = other.waker.take() {
                waker.wake();
            }
        }
    }

    fn report(&self, at: u64, report: Report) {
        self.air.borrow_mut().sides[self.me]
            .reports
            .push_back((at, report));
    }
}

impl Radio for AirRadio {
    fn capabilities(&self) -> RadioCapabilities {
        RadioCapabilities {
            auto_ack: false,
            ..RadioCapabilities::CC2420
        }
    }

    fn perform(&mut self, action: mac::Action, bytes: &[u8]) {
        let now = now_us();
        match action {
            mac::Action::Preload { len } => {
                self.air.borrow_mut().sides[self.me].preloaded = bytes[..len].to_vec();
                self.report(now, Report::Preloaded);
            }
            mac::Action::AssessChannel => {
                let at = now + 128;
                let air = self.air.borrow();
                let (from, to) = air.sides[1 - self.me].on_air;
                let is_busy = air.is_jammed || (from <= at && now < to);
                drop(air);
                self.report(at, Report::Assessed { clear: !is_busy });
            }
            mac::Action::Fire => {
                let psdu = self.air.borrow().sides[self.me].preloaded.clone();
                self.transmit(psdu, now + 192);
            }
            mac::Action::Transmit { len, at } => {
                self.transmit(bytes[..len].to_vec(), at.as_micros());
            }
            mac::Action::Listen => {
                let side = &mut self.air.borrow_mut().sides[self.me];
                side.off_us += side.off_since.take().map_or(0, |since| now - since);
            }
            mac::Action::Sleep => {
                let side = &mut self.air.borrow_mut().sides[self.me];
                side.off_since = side.off_since.or(Some(now));
            }
            mac::Action::ChangeChannel { .. } | mac::Action::SetPending { .. } => {}
        }
    }

    async fn event<'a>(&mut self, psdu: &'a mut [u8; 127]) -> mac::Event<'a> {
        let (at, report) = loop {
            let next = {
                let air = self.air.borrow();
                air.sides[self.me].reports.iter().map(|(at, _)| *at).min()
            };
            if let Some(at) = next.filter(|at| *at <= now_us()) {
                let mut air = self.air.borrow_mut();
                let reports = &mut air.sides[self.me].reports;
                let index = reports.iter().position(|(due, _)| *due == at);
                break reports
                    .remove(index.expect("just seen"))
                    .expect("just seen");
            }
            let mut is_first = true;
            let called = poll_fn(|cx| {
                if !std::mem::take(&mut is_first) {
                    return Poll::Ready(());
                }
                self.air.borrow_mut().sides[self.me].waker = Some(cx.waker().clone());
                Poll::Pending
            });
            match next {
                Some(at) => {
                    let due = Timer::at(embassy_time::Instant::from_micros(at));
                    select(due, called).await;
                }
                None => called.await,
            }
        };
        let at = instant(at);
        match report {
            Report::Preloaded => mac::Event::Preloaded,
            Report::Assessed { clear } => mac::Event::ChannelAssessed { clear },
            Report::Done => mac::Event::TransmitDone { at },
            Report::Heard(bytes) => {
                let psdu = &mut psdu[..bytes.len()];
                psdu.copy_from_slice(&bytes);
                let meta = RxMeta {
                    rssi_dbm: -50,
                    lqi: 255,
                    channel: 26,
                    at,
                };
                mac::Event::FrameReceived { psdu, meta }
            }
        }
    }
}

fn instant(us: u64) -> motet::time::Instant {
    motet::time::Instant::from_micros(us)
}

// ---- The motes. ----

pub(crate) const CONNECTIONS: usize = 2;

pub(crate) struct Pair {
    pub(crate) executor: Executor,
    pub(crate) air: Rc<RefCell<Air>>,
    pub(crate) client: Stack,
    pub(crate) server: Stack,
}

impl Pair {
    pub(crate) fn new(seed: u64, config: &Config) -> Self {
        Self::running(seed, config, |_, mut runner| async move {
            runner.run().await;
        })
    }

    /// Two motes, each with its EUI-64 and what `run` makes of its runner.
    pub(crate) fn running<F: Future<Output = ()> + 'static>(
        seed: u64,
        config: &Config,
        mut run: impl FnMut([u8; 8], Runner<AirRadio>) -> F,
    ) -> Self {
        let air = Air::new();
        let mut executor = Executor::default();
        let mut mote = |me: u8| {
            let resources: &'static Resources<CONNECTIONS, 2048, 1024, 2> =
                Box::leak(Box::new(Resources::new()));
            let radio = AirRadio::new(air.clone(), me.into());
            let eui64 = [0x02, 0, 0, 0, 0, 0, 0, me + 1];
            let seed = [seed, me.into()];
            let config = config.clone();
            let mote = motet_embassy::new(resources, radio, eui64, seed, config);
            let (stack, runner) = mote.expect("the radio fits the settings");
            executor.spawn(run(eui64, runner));
            stack
        };
        let (client, server) = (mote(0), mote(1));
        Self {
            executor,
            air,
            client,
            server,
        }
    }

    /// A port of the server.
    pub(crate) fn at(&self, port: u16) -> SocketAddr {
        SocketAddrV6::new(self.server_addr(), port, 0, 0).into()
    }

    pub(crate) fn server_addr(&self) -> Ipv6Addr {
        self.server
            .link_local_address()
            .expect("formed at the start")
    }
}

/// The byte at each place of a stream; the period divides no buffer or segment.
pub(crate) fn pattern(place: usize) -> u8 {
    (place % 251) as u8
}

/// Polls what `make` makes and drops it again, `turns` giving after how many milliseconds, until
/// one is done in its time.
pub(crate) async fn with_cancels<T, F: AsyncFnMut() -> T>(
    mut turns: impl Iterator<Item = u64>,
    mut make: F,
) -> T {
    loop {
        match turns.next() {
            Some(ms) => {
                let limit = Timer::after_millis(ms);
                if let embassy_futures::select::Either::First(result) = select(make(), limit).await
                {
                    return result;
                }
            }
            None => return make().await,
        }
    }
}
