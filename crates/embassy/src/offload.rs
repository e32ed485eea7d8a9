//! Radios whose interface is *send this frame* → acknowledged, not acknowledged, busy.
//!
//! Vendors' drivers back off, assess the channel and wait for ACKs by themselves. Their futures
//! must not be dropped half way, whereas [`Radio::event`] is dropped all the time: so a [`Driver`],
//! with a task of its own, owns the [`Chip`], and the node holds the [`Port`] to it.
//!
//! ```
//! use motet_embassy::offload::{Chip, Driver, Port, Shared};
//!
//! static SHARED: Shared = Shared::new();
//!
//! /// The port is the radio of `motet_embassy::new`; one task runs `driver.run().await`.
//! fn start<C: Chip>(chip: C) -> (Port, Driver<C>) {
//!     SHARED.attach(chip)
//! }
//! ```

use core::cell::RefCell;
use core::future::{Future, poll_fn};
use core::mem::take;
use core::task::{Context, Poll};

use embassy_futures::select::{Either, select};
use embassy_sync::waitqueue::WakerRegistration;
use motet::limits::PSDU_LEN_MAX;
use motet::mac::{self, Action, AttemptOutcome, Event, RadioCapabilities, RxMeta};
use motet::time::Instant;
use motet::wire::LinkAddr;
use static_cell::ConstStaticCell;

use crate::runner::Radio;

pub use crate::clock::now;

/// A vendor's driver of a radio. Frames have no FCS here; the radio appends and checks it.
pub trait Chip {
    /// What it does by itself: [`RadioCapabilities::assesses`], [`RadioCapabilities::takes_acks`],
    /// [`RadioCapabilities::auto_ack`] and [`RadioCapabilities::fcs_by_radio`] are set.
    fn capabilities(&self) -> RadioCapabilities;

    /// Sets addresses and backoffs, before anything else.
    fn set_up(&mut self, settings: &Settings);

    /// Tunes to a channel, 11 to 26.
    fn set_channel(&mut self, channel: u8);

    /// Switches the receiver on or off. It is so again after each transmission.
    fn set_listening(&mut self, is_listening: bool);

    /// Sets the frame pending bit of the ACKs to a neighbour
    /// ([`Pending::PerNeighbour`](mac::Pending::PerNeighbour)).
    fn set_pending(&mut self, _of: LinkAddr, _is_pending: bool) {}

    /// The next frame, and its length in `psdu`. Dropped at each order of the node; no frame may be
    /// lost by that. Not called while the receiver is off.
    fn receive(&mut self, psdu: &mut [u8; PSDU_LEN_MAX]) -> impl Future<Output = (usize, RxMeta)>;

    /// Makes one attempt: backoffs, assessments, the frame, the wait for its ACK where it asks for
    /// one; no retries. Gives how it ended, and when the frame's last symbol left the antenna.
    /// Never dropped before its end. Frames that come meanwhile wait in the chip.
    fn transmit(&mut self, psdu: &[u8]) -> impl Future<Output = (AttemptOutcome, Instant)>;
}

/// What a radio has to know of its MAC's settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// PAN identifier.
    pub pan: u16,
    /// EUI-64, most significant byte first.
    pub extended: [u8; 8],
    /// Short address, if any.
    pub short: Option<u16>,
    /// Smallest backoff exponent.
    pub be_min: u8,
    /// Largest backoff exponent.
    pub be_max: u8,
    /// Backoffs after the first one.
    pub csma_backoffs_max: u8,
}

/// What [`Port`] and [`Driver`] share, for one static. It takes some 900 bytes.
pub struct Shared {
    state: ConstStaticCell<RefCell<State>>,
}

impl Shared {
    /// No radio yet.
    #[expect(
        clippy::new_without_default,
        reason = "it is for a static, which needs a constant"
    )]
    pub const fn new() -> Self {
        Self {
            state: ConstStaticCell::new(RefCell::new(State::EMPTY)),
        }
    }

    /// Connects a node with a chip.
    ///
    /// # Panics
    /// When it has one already.
    pub fn attach<C: Chip>(&'static self, chip: C) -> (Port, Driver<C>) {
        let state = &*self.state.take();
        let capabilities = chip.capabilities();
        let port = Port {
            state,
            capabilities,
        };
        (port, Driver { state, chip })
    }
}

/// The radio as its node sees it.
#[derive(Debug)]
pub struct Port {
    state: &'static RefCell<State>,
    capabilities: RadioCapabilities,
}

impl Radio for Port {
    fn capabilities(&self) -> RadioCapabilities {
        self.capabilities
    }

    fn set_addresses(&mut self, config: &mac::Config) {
        let mut state = self.state.borrow_mut();
        state.orders.settings = Some(Settings {
            pan: config.pan,
            extended: config.extended,
            short: config.short,
            be_min: config.be_min,
            be_max: config.be_max,
            csma_backoffs_max: config.csma_backoffs_max,
        });
        state.orders.channel = Some(config.channel);
        state.wake_driver();
    }

    fn perform(&mut self, action: Action, bytes: &[u8]) {
        self.state.borrow_mut().perform(action, bytes);
    }

    async fn event<'a>(&mut self, psdu: &'a mut [u8; PSDU_LEN_MAX]) -> Event<'a> {
        let report = poll_fn(|cx| self.state.borrow_mut().poll_report(psdu, cx)).await;
        match report {
            Report::Preloaded => Event::Preloaded,
            Report::Sent { outcome, at } => Event::Sent { outcome, at },
            Report::Received { len, meta } => Event::FrameReceived {
                psdu: psdu.get(..len).unwrap_or_default(),
                meta,
            },
        }
    }
}

/// The owner of a chip.
#[derive(Debug)]
pub struct Driver<C> {
    state: &'static RefCell<State>,
    chip: C,
}

impl<C: Chip> Driver<C> {
    /// Runs for good. The radio does nothing while this is not polled; not to be dropped.
    pub async fn run(&mut self) -> ! {
        let mut psdu = [0; PSDU_LEN_MAX];
        loop {
            self.set_up();
            let state = self.state;
            let next = state.borrow_mut().begin(&mut psdu);
            let ordered = poll_fn(|cx| state.borrow_mut().poll_ordered(cx));
            match next {
                Next::Transmit { len } => {
                    let frame = psdu.get(..len).unwrap_or_default();
                    let (outcome, at) = self.chip.transmit(frame).await;
                    state.borrow_mut().end(outcome, at);
                }
                Next::Receive => {
                    let first = select(ordered, self.chip.receive(&mut psdu)).await;
                    if let Either::Second((len, meta)) = first {
                        let frame = psdu.get(..len).unwrap_or_default();
                        state.borrow_mut().receive(frame, meta);
                    }
                }
                Next::Wait => ordered.await,
            }
        }
    }

    /// Carries out what takes no time.
    fn set_up(&mut self) {
        let mut state = self.state.borrow_mut();
        state.is_ordered = false;
        let orders = &mut state.orders;
        if let Some(settings) = orders.settings.take() {
            self.chip.set_up(&settings);
        }
        if let Some(channel) = orders.channel.take() {
            self.chip.set_channel(channel);
        }
        for slot in &mut orders.pending {
            if let Some((of, is_pending)) = slot.take() {
                self.chip.set_pending(of, is_pending);
            }
        }
        if let Some(is_listening) = orders.listening.take() {
            self.chip.set_listening(is_listening);
        }
    }
}

/// The next thing that a driver does.
enum Next {
    Transmit { len: usize },
    Receive,
    Wait,
}

enum Report {
    Preloaded,
    Sent {
        outcome: AttemptOutcome,
        at: Instant,
    },
    Received {
        len: usize,
        meta: RxMeta,
    },
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    len: usize,
    psdu: [u8; PSDU_LEN_MAX],
}

impl Frame {
    const EMPTY: Self = Self {
        len: 0,
        psdu: [0; PSDU_LEN_MAX],
    };

    fn load(&mut self, bytes: &[u8]) {
        self.len = copy(bytes, &mut self.psdu);
    }
}

/// Orders to the driver that it has not carried out yet.
#[derive(Debug)]
struct Orders {
    settings: Option<Settings>,
    channel: Option<u8>,
    listening: Option<bool>,
    pending: [Option<(LinkAddr, bool)>; PENDING_MAX],
    /// The loaded frame is to be sent.
    is_fired: bool,
}

/// The attempt that the chip makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Attempt {
    None,
    Flying,
    /// The MAC has given it up, and must not learn how it ends.
    Abandoned,
}

#[derive(Debug)]
struct State {
    orders: Orders,
    is_ordered: bool,
    is_listening: bool,
    loaded: Frame,
    /// [`Event::Preloaded`] is due.
    is_preloaded: bool,
    attempt: Attempt,
    sent: Option<(AttemptOutcome, Instant)>,
    /// Frames for the node, the oldest first.
    received: [Option<(Frame, RxMeta)>; RECEIVED_MAX],
    port: WakerRegistration,
    driver: WakerRegistration,
}

impl State {
    const EMPTY: Self = Self {
        orders: Orders {
            settings: None,
            channel: None,
            listening: Some(true),
            pending: [None; PENDING_MAX],
            is_fired: false,
        },
        is_ordered: false,
        is_listening: true,
        loaded: Frame::EMPTY,
        is_preloaded: false,
        attempt: Attempt::None,
        sent: None,
        received: [None; RECEIVED_MAX],
        port: WakerRegistration::new(),
        driver: WakerRegistration::new(),
    };

    fn wake_driver(&mut self) {
        self.is_ordered = true;
        self.driver.wake();
    }

    fn perform(&mut self, action: Action, bytes: &[u8]) {
        match action {
            Action::Preload { len } => {
                self.give_up();
                self.loaded.load(bytes.get(..len).unwrap_or_default());
                self.is_preloaded = true;
                self.port.wake();
                return;
            }
            Action::Fire => {
                self.give_up();
                self.orders.is_fired = true;
            }
            Action::Listen => self.set_listening(true),
            Action::Sleep => self.set_listening(false),
            Action::ChangeChannel { channel } => self.orders.channel = Some(channel),
            Action::SetPending { of, pending } => {
                if let Some(of) = of {
                    self.set_pending(of, pending);
                }
            }
            // The radio's own: a MAC that knows its capabilities asks for neither.
            Action::AssessChannel | Action::Transmit { .. } => return,
        }
        self.wake_driver();
    }

    /// The attempt under way is the MAC's no more.
    fn give_up(&mut self) {
        self.orders.is_fired = false;
        self.sent = None;
        if self.attempt == Attempt::Flying {
            self.attempt = Attempt::Abandoned;
        }
    }

    fn set_listening(&mut self, is_listening: bool) {
        self.is_listening = is_listening;
        self.orders.listening = Some(is_listening);
    }

    /// The last order for each neighbour counts. One beyond the table's places is dropped: its
    /// child's ACKs are wrong until the next order for it.
    fn set_pending(&mut self, of: LinkAddr, is_pending: bool) {
        let pending = &mut self.orders.pending;
        let is_of = |slot: &Option<(LinkAddr, bool)>| slot.is_some_and(|(other, _)| other == of);
        let index = pending.iter().position(is_of);
        let index = index.or_else(|| pending.iter().position(Option::is_none));
        if let Some(slot) = index.and_then(|index| pending.get_mut(index)) {
            *slot = Some((of, is_pending));
        }
    }

    fn begin(&mut self, psdu: &mut [u8; PSDU_LEN_MAX]) -> Next {
        if take(&mut self.orders.is_fired) {
            self.attempt = Attempt::Flying;
            let frame = self.loaded.psdu.get(..self.loaded.len);
            let len = copy(frame.unwrap_or_default(), psdu);
            return Next::Transmit { len };
        }
        // A full table leaves further frames in the chip.
        match self.is_listening && self.received.iter().any(Option::is_none) {
            true => Next::Receive,
            false => Next::Wait,
        }
    }

    fn end(&mut self, outcome: AttemptOutcome, at: Instant) {
        let attempt = core::mem::replace(&mut self.attempt, Attempt::None);
        if attempt == Attempt::Flying {
            self.sent = Some((outcome, at));
            self.port.wake();
        }
    }

    fn receive(&mut self, bytes: &[u8], meta: RxMeta) {
        if let Some(slot) = self.received.iter_mut().find(|slot| slot.is_none()) {
            let (frame, _) = slot.insert((Frame::EMPTY, meta));
            frame.load(bytes);
            self.port.wake();
        }
    }

    fn poll_ordered(&mut self, cx: &Context<'_>) -> Poll<()> {
        match take(&mut self.is_ordered) {
            true => Poll::Ready(()),
            false => {
                self.driver.register(cx.waker());
                Poll::Pending
            }
        }
    }

    fn poll_report(&mut self, psdu: &mut [u8; PSDU_LEN_MAX], cx: &Context<'_>) -> Poll<Report> {
        if take(&mut self.is_preloaded) {
            return Poll::Ready(Report::Preloaded);
        }
        if let Some((outcome, at)) = self.sent.take() {
            return Poll::Ready(Report::Sent { outcome, at });
        }
        let was_full = self.received.iter().all(Option::is_some);
        let [first, ..] = &mut self.received;
        let Some((frame, meta)) = first.take() else {
            self.port.register(cx.waker());
            return Poll::Pending;
        };
        self.received.rotate_left(1);
        if was_full {
            self.wake_driver();
        }
        let bytes = frame.psdu.get(..frame.len).unwrap_or_default();
        let len = copy(bytes, psdu);
        Poll::Ready(Report::Received { len, meta })
    }
}

/// Copies as much as there is room for; returns how much.
fn copy(from: &[u8], to: &mut [u8]) -> usize {
    to.iter_mut()
        .zip(from)
        .map(|(to, from)| *to = *from)
        .count()
}

/// Frames that wait for the node; further ones wait in the chip.
const RECEIVED_MAX: usize = 4;

/// Orders about neighbours' pending bits between two turns of the driver.
const PENDING_MAX: usize = 8;
