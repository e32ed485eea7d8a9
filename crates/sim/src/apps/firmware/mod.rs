//! `/firmware` of a simulated mote: `motet-update`, its flash, and the connections it fetches by.
//!
//! Place: [`super::Services`] accepts clients at port 80 and calls [`Device`]. Left out: the boot
//! loader. An image that is pending stays so; nothing restarts.

mod blocks;
mod flash;
mod stored;

use std::rc::Rc;

use embassy_futures::block_on;
use motet::node::Node;
use motet::tcp::{self, Buffers, Config, Handle};
use motet::time::{Duration, Instant};
use motet_update::{Access, Demands, Firmware, Served, Slot};

use self::flash::{Flash, Partition};
use super::lines::{Calls, Dial, Line, Plug, Task, line};

pub use self::blocks::BlockTaker;
pub use self::stored::Stored;

/// A mote's firmware: what stays when it is switched off, and what does not.
#[derive(Debug)]
pub(super) struct Device {
    access: Access<'static>,
    demands: Demands,
    flash: Rc<Flash>,
    running: Option<Running>,
    calls: Calls,
    /// When the processor runs again that flash has made stand still.
    halted_until: Instant,
    /// How long it stands still, until the node is charged with it.
    halt: Duration,
    /// When a client last got on.
    active: Instant,
    /// When an image first became pending.
    pending_since: Option<Instant>,
}

#[derive(Clone, Debug)]
struct Running {
    resource: Rc<Firmware<'static, Partition>>,
    dial: Rc<Dial>,
}

/// A client of `/firmware`.
#[derive(Debug)]
pub(super) struct Upload {
    plug: Plug,
    /// `None` once it was served.
    task: Option<Task<bool>>,
}

impl Device {
    pub(super) fn new(access: Access<'static>, demands: Demands) -> Self {
        Self {
            access,
            demands,
            flash: Flash::new(),
            running: None,
            calls: Calls::default(),
            halted_until: Instant::ORIGIN,
            halt: Duration::ZERO,
            active: Instant::ORIGIN,
            pending_since: None,
        }
    }

    /// What the flash holds of `image`.
    pub(super) fn stored(&self, image: &[u8]) -> Stored {
        Stored::new(&self.flash, image, self.pending_since)
    }

    /// Begins to serve a client; `None` if the flash cannot be served, which would be this file's
    /// fault.
    pub(super) fn begin(&mut self) -> Option<Upload> {
        if self.running.is_none() {
            let (slot, notes) = self.flash.partitions();
            let slot = block_on(Slot::open(slot, notes, self.demands.clone())).ok()?;
            self.running = Some(Running {
                resource: Rc::new(Firmware::new(slot, self.access)),
                dial: Rc::default(),
            });
        }
        let running = self.running.clone()?;
        let (line, plug) = line();
        let task = Task::new(serve(running, line));
        Some(Upload {
            plug,
            task: Some(task),
        })
    }

    /// Opens and carries the connections by which images are fetched.
    pub(super) fn call<'m>(
        &mut self,
        node: &mut Node<'m>,
        config: &'m Config,
        free: &mut Vec<Buffers<'m>>,
        buffers: impl FnMut(&mut Vec<Buffers<'m>>) -> Option<Buffers<'m>>,
        now: Instant,
    ) -> bool {
        if now >= self.halted_until {
            self.halted_until = Instant::ORIGIN;
        }
        let Some(running) = &self.running else {
            return false;
        };
        let acted = self
            .calls
            .step(&running.dial, node, config, free, buffers, now);
        if acted {
            self.active = now;
        }
        acted
    }

    /// Lets a client get on; returns whether it did.
    pub(super) fn serve(
        &mut self,
        upload: &mut Upload,
        handle: Handle,
        tcp: &mut tcp::Tcp<'_>,
        now: Instant,
    ) -> bool {
        if now < self.halted_until {
            return false;
        }
        let mut acted = upload.plug.carry(handle, tcp, now);
        if let Some(task) = &mut upload.task {
            if let Some(is_pending) = task.run() {
                upload.task = None;
                acted = true;
                if is_pending {
                    self.pending_since.get_or_insert(now);
                }
            }
            let halt = self.flash.take_halt();
            if halt > Duration::ZERO {
                self.halt = self.halt + halt;
                self.halted_until = now + halt;
                acted = true;
            } else {
                acted |= upload.plug.carry(handle, tcp, now);
            }
        }
        if acted {
            self.active = now;
        }
        acted
    }

    /// When a client last got on: one that waits while the mote fetches is not idle.
    pub(super) const fn active(&self) -> Instant {
        self.active
    }

    /// When flash lets the processor run again.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        Some(self.halted_until).filter(|at| *at > Instant::ORIGIN)
    }

    /// How long the processor stands still since the last call.
    pub(super) fn take_halt(&mut self) -> Duration {
        std::mem::take(&mut self.halt)
    }

    /// The mote is switched off: what flash has is all that stays.
    pub(super) fn switch_off<'m>(&mut self, tcp: &mut tcp::Tcp<'m>, free: &mut Vec<Buffers<'m>>) {
        self.calls.switch_off(tcp, free);
        self.running = None;
        self.halt = Duration::ZERO;
        self.halted_until = Instant::ORIGIN;
    }
}

/// Serves a client; returns whether its image is now pending.
async fn serve(running: Running, mut line: Line) -> bool {
    // A client that is gone needs no answer.
    let served = running
        .resource
        .serve(&mut line, &*running.dial, &mut [0; BUFFER_LEN])
        .await;
    matches!(served, Ok(Served::Pending(_)))
}

/// Where `/firmware` is.
pub(super) const PORT: u16 = 80;

/// Frames of a full segment of `/firmware`'s connections. An image is much data at once, so that
/// fewer headers and ACKs are worth more than a lost frame costs: over up to four hops twelve take
/// 7 to 22 % less time than the stack's five, without loss and with one frame or packet of ten lost
/// alike (`docs/reference/experiments.md`, "New firmware").
pub(super) const MSS_FRAMES: u8 = 12;

/// Bytes of a request's head, and of a body's piece.
const BUFFER_LEN: usize = 1_024;
