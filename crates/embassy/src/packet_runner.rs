//! The one task that moves packets between a node and the driver of another stack.

use core::convert::Infallible;
use core::fmt;
use core::future::{Future, poll_fn};
use core::net::Ipv6Addr;
use core::pin::Pin;
use core::task::{Context, Poll};

use embassy_net_driver::{Driver, LinkState, RxToken, TxToken};
use embassy_time::Timer;
use motet::ip::{Address, Prefix};
use motet::limits::ADDRESSES_MAX;
use motet::link::{Action, Event, Link};

use crate::clock::{now, tick_of};
use crate::over_error::OverError;
use crate::stack::{LINK, Stack};

/// Moves packets between a node and a driver, and wakes the tasks that wait for the node.
pub struct PacketRunner<D> {
    stack: Stack,
    driver: D,
    packet: &'static mut [u8],
}

impl<D> fmt::Debug for PacketRunner<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketRunner").finish_non_exhaustive()
    }
}

impl<D: Driver> PacketRunner<D> {
    pub(crate) const fn new(stack: Stack, driver: D, packet: &'static mut [u8]) -> Self {
        Self {
            stack,
            driver,
            packet,
        }
    }

    /// Runs for good. Nothing happens to any socket while this is not polled.
    ///
    /// TCP makes a segment when the driver has room for it, so none that TCP counts as sent is
    /// refused. While the driver is full, or its link is down, segments wait and TCP's time limits
    /// hold: a connection lives on if the link comes back before them.
    pub async fn run(&mut self) -> ! {
        match poll_fn(|cx| self.poll(cx)).await {}
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Infallible> {
        for _ in 0..BURST {
            let is_new = self.receive(cx);
            self.send(cx);
            let mut state = self.stack.state();
            state.note_changes();
            // Waits for the driver, the application and the node's clock.
            if is_new || state.poll_kicked(cx) {
                continue;
            }
            let Some(deadline) = state.node.next_deadline() else {
                return Poll::Pending;
            };
            drop(state);
            let mut timer = Timer::at(tick_of(deadline));
            if Pin::new(&mut timer).poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
        // The other tasks' turn.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Takes a packet from the driver, if there is one.
    fn receive(&mut self, cx: &mut Context<'_>) -> bool {
        let Some((token, _)) = self.driver.receive(cx) else {
            return false;
        };
        let stack = self.stack;
        token.consume(|packet| {
            let mut state = stack.state();
            state.node.on_event(LINK, Event::Cable(packet), now());
        });
        true
    }

    /// Hands packets to the driver while it has room; without room the node sees the time alone.
    fn send(&mut self, cx: &mut Context<'_>) {
        let is_up = self.driver.link_state(cx) == LinkState::Up;
        self.stack.state().begin_poll();
        loop {
            let token = if is_up {
                self.driver.transmit(cx)
            } else {
                None
            };
            let mut state = self.stack.state();
            if let Some(Link::Cable(cable)) = state.node.link_mut(LINK) {
                cable.set_full(token.is_none());
            }
            let action = state.node.poll_action(now(), self.packet);
            drop(state);
            let (Some((_, Action::Cable { len })), Some(token)) = (action, token) else {
                return;
            };
            let packet = self.packet.get(..len).unwrap_or_default();
            token.consume(len, |out| {
                for (to, from) in out.iter_mut().zip(packet) {
                    *to = *from;
                }
            });
        }
    }
}

impl Stack {
    /// Replaces all addresses of a node that was started by [`over`](crate::over): the driver's
    /// owner has others now. A connection from an address that is gone lives on and is silent; it
    /// fails with [`Error::TimedOut`](crate::Error::TimedOut) where the address does not come back
    /// in time.
    ///
    /// # Errors
    /// [`OverError::Addresses`]: the node keeps those that it had.
    pub fn set_addresses(self, addresses: &[Ipv6Addr]) -> Result<(), OverError> {
        if addresses.len() > ADDRESSES_MAX {
            return Err(OverError::Addresses);
        }
        let mut state = self.state();
        let ip = state.node.ip_mut();
        let all = Prefix {
            addr: Ipv6Addr::UNSPECIFIED,
            len: 0,
        };
        ip.remove_addresses(LINK, all);
        for addr in addresses {
            ip.add_address(Address {
                addr: *addr,
                interface: LINK,
            });
        }
        state.kick();
        Ok(())
    }
}

/// Packets of one turn, before other tasks have theirs.
const BURST: usize = 8;
