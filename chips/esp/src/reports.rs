//! What the interrupt reports to the task, with the time at which it did.

use core::cell::RefCell;
use core::future::poll_fn;
use core::task::Poll;

use embassy_sync::blocking_mutex::CriticalSectionMutex;
use embassy_sync::waitqueue::WakerRegistration;
use motet::time::Instant;

/// The end of a transmission, as the radio reports it. It does not say why one failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transmission {
    /// It was sent, and acknowledged if it asked for that.
    Done,
    /// The channel was busy, or no ACK came.
    Failed,
}

/// The reports of one radio's interrupt, for a static.
pub struct Reports {
    inner: CriticalSectionMutex<RefCell<Inner>>,
}

#[derive(Debug)]
struct Inner {
    ended: Option<(Transmission, Instant)>,
    /// When frames were reported, the oldest first.
    frames: [Option<Instant>; FRAMES_MAX],
    /// When the last one was.
    last_frame: Instant,
    transmitting: WakerRegistration,
    receiving: WakerRegistration,
}

impl Reports {
    /// Nothing has happened.
    #[expect(
        clippy::new_without_default,
        reason = "it is for a static, which needs a constant"
    )]
    pub const fn new() -> Self {
        Self {
            inner: CriticalSectionMutex::new(RefCell::new(Inner {
                ended: None,
                frames: [None; FRAMES_MAX],
                last_frame: Instant::from_micros(0),
                transmitting: WakerRegistration::new(),
                receiving: WakerRegistration::new(),
            })),
        }
    }

    /// A transmission has ended.
    pub fn on_transmission(&self, how: Transmission, at: Instant) {
        self.with(|inner| {
            inner.ended = Some((how, at));
            inner.transmitting.wake();
        });
    }

    /// A frame has come, and its ACK, if any, is out.
    pub fn on_frame(&self, at: Instant) {
        self.with(|inner| inner.last_frame = at);
        self.look(at);
    }

    /// There may be a frame, for which no interrupt was seen.
    pub(crate) fn look(&self, at: Instant) {
        self.with(|inner| {
            // Where there is no place the radio's own queue is full, too.
            if let Some(place) = inner.frames.iter_mut().find(|frame| frame.is_none()) {
                *place = Some(at);
            }
            inner.receiving.wake();
        });
    }

    /// When the frame was reported that is to be fetched next.
    pub(crate) async fn frame(&self) -> Instant {
        poll_fn(|cx| {
            self.with(|inner| {
                let [first, ..] = &mut inner.frames;
                let Some(at) = first.take() else {
                    inner.receiving.register(cx.waker());
                    return Poll::Pending;
                };
                inner.frames.rotate_left(1);
                Poll::Ready(at)
            })
        })
        .await
    }

    /// The end of the transmission under way.
    pub(crate) async fn transmission(&self) -> (Transmission, Instant) {
        poll_fn(|cx| {
            self.with(|inner| match inner.ended.take() {
                Some(ended) => Poll::Ready(ended),
                None => {
                    inner.transmitting.register(cx.waker());
                    Poll::Pending
                }
            })
        })
        .await
    }

    pub(crate) fn take_transmission(&self) -> Option<(Transmission, Instant)> {
        self.with(|inner| inner.ended.take())
    }

    pub(crate) fn last_frame(&self) -> Instant {
        self.with(|inner| inner.last_frame)
    }

    fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        self.inner.lock(|inner| act(&mut inner.borrow_mut()))
    }
}

/// More than `esp-radio` keeps frames.
const FRAMES_MAX: usize = 16;
