//! The driver that both stacks are put above: two bounded queues of packets, a link that can be up
//! or down, and a driver that can be full.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Waker};

use embassy_net_driver::{Capabilities, Driver, HardwareAddress, LinkState, RxToken, TxToken};

/// Both queues, as the driver's owner sees them too.
#[derive(Default)]
pub(crate) struct Queues {
    /// Packets for the stack.
    pub(crate) inward: VecDeque<Vec<u8>>,
    /// Packets of the stack.
    pub(crate) outward: VecDeque<Vec<u8>>,
    is_down: bool,
    is_full: bool,
    stack: Option<Waker>,
    owner: Option<Waker>,
}

/// The driver; copies are the same.
#[derive(Clone, Default)]
pub(crate) struct Shim {
    queues: Rc<RefCell<Queues>>,
}

impl Shim {
    /// A packet for the stack; dropped where its queue is full, as by a driver.
    pub(crate) fn push(&self, packet: Vec<u8>) {
        let mut queues = self.queues.borrow_mut();
        if queues.inward.len() < INWARD {
            queues.inward.push_back(packet);
        }
        queues.stack.take().into_iter().for_each(Waker::wake);
    }

    /// The next packet of the stack, which has room for another one then.
    pub(crate) fn pop(&self) -> Option<Vec<u8>> {
        let mut queues = self.queues.borrow_mut();
        let packet = queues.outward.pop_front()?;
        queues.stack.take().into_iter().for_each(Waker::wake);
        Some(packet)
    }

    /// A copy of the next packet of the stack, whose place stays taken until [`Self::release`].
    #[cfg(feature = "openthread")]
    pub(crate) async fn next(&self) -> Vec<u8> {
        std::future::poll_fn(|cx| {
            self.register(cx);
            match self.queues.borrow().outward.front() {
                Some(packet) => std::task::Poll::Ready(packet.clone()),
                None => std::task::Poll::Pending,
            }
        })
        .await
    }

    /// Gives the place of the packet back that [`Self::next`] gave.
    #[cfg(feature = "openthread")]
    pub(crate) fn release(&self) {
        drop(self.pop());
    }

    pub(crate) fn has_packet(&self) -> bool {
        !self.queues.borrow().outward.is_empty()
    }

    /// Who takes packets, to be woken for the next one.
    pub(crate) fn register(&self, cx: &Context<'_>) {
        self.queues.borrow_mut().owner = Some(cx.waker().clone());
    }

    pub(crate) fn set_down(&self, is_down: bool) {
        self.change(|queues| queues.is_down = is_down);
    }

    pub(crate) fn set_full(&self, is_full: bool) {
        self.change(|queues| queues.is_full = is_full);
    }

    fn change(&self, change: impl FnOnce(&mut Queues)) {
        let mut queues = self.queues.borrow_mut();
        change(&mut queues);
        queues.stack.take().into_iter().for_each(Waker::wake);
    }
}

/// A packet that came.
pub(crate) struct Inward(Vec<u8>);

/// Room for one that leaves.
pub(crate) struct Outward(Shim);

impl RxToken for Inward {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(mut self, f: F) -> R {
        f(&mut self.0)
    }
}

impl TxToken for Outward {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut packet = vec![0; len];
        let result = f(&mut packet);
        let mut queues = self.0.queues.borrow_mut();
        queues.outward.push_back(packet);
        queues.owner.take().into_iter().for_each(Waker::wake);
        result
    }
}

impl Driver for Shim {
    type RxToken<'a> = Inward;
    type TxToken<'a> = Outward;

    fn receive(&mut self, cx: &mut Context<'_>) -> Option<(Inward, Outward)> {
        let mut queues = self.queues.borrow_mut();
        queues.stack = Some(cx.waker().clone());
        // As the drivers of embassy-net do: a packet comes in where its answer can leave.
        if queues.is_full || queues.outward.len() >= OUTWARD {
            return None;
        }
        let packet = queues.inward.pop_front()?;
        Some((Inward(packet), Outward(self.clone())))
    }

    fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Outward> {
        let mut queues = self.queues.borrow_mut();
        queues.stack = Some(cx.waker().clone());
        let has_room = !queues.is_full && queues.outward.len() < OUTWARD;
        has_room.then(|| Outward(self.clone()))
    }

    fn link_state(&mut self, cx: &mut Context<'_>) -> LinkState {
        let mut queues = self.queues.borrow_mut();
        queues.stack = Some(cx.waker().clone());
        match queues.is_down {
            true => LinkState::Down,
            false => LinkState::Up,
        }
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.max_transmission_unit = MTU;
        capabilities
    }

    fn hardware_address(&self) -> HardwareAddress {
        HardwareAddress::Ip
    }
}

/// Of Thread, and of IPv6.
pub(crate) const MTU: usize = 1280;
/// Packets that wait for the driver's owner, and for the stack.
const OUTWARD: usize = 2;
const INWARD: usize = 16;
