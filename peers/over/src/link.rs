//! The link between device and host: 60 kb/s for both directions together, 50 ms each way, and
//! losses by packet or by frame.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use embassy_time::Timer;
use motet::random::Rng;
use motet::time::Instant;

use crate::clock::now_us;
use crate::host::Host;
use crate::shim::Shim;

/// What the link loses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Loss {
    /// That share of packets.
    Packets(f64),
    /// That share of frames of [`FRAME`] bytes; with one of them a packet is lost.
    Frames(f64),
}

pub(crate) struct Air {
    shim: Shim,
    pub(crate) host: Host,
    loss: Loss,
    rng: Rng,
    /// Until when the medium is busy, us.
    busy_until: u64,
    is_hosts_turn: bool,
    under_way: Vec<(u64, bool, Vec<u8>)>,
    /// The peer does not hear or say anything any more.
    pub(crate) is_dead: bool,
}

impl Air {
    pub(crate) fn new(shim: &Shim, host: Host, loss: Loss, seed: u64) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self {
            shim: shim.clone(),
            host,
            loss,
            rng: Rng::from_seed([seed, 6]),
            busy_until: 0,
            is_hosts_turn: false,
            under_way: Vec::new(),
            is_dead: false,
        }))
    }

    /// Moves what can be moved; gives when to look again.
    fn step(&mut self, now: u64, cx: &Context<'_>) -> Option<u64> {
        let at = Instant::from_micros(now);
        while let Some(first) = self.under_way.iter().position(|(due, ..)| *due <= now) {
            let (_, to_host, packet) = self.under_way.remove(first);
            match to_host {
                true if !self.is_dead => self.host.on_packet(&packet, at),
                true => {}
                false => self.shim.push(packet),
            }
        }
        if !self.is_dead {
            self.host.poll(at);
        }
        if self.busy_until <= now
            && let Some((to_host, packet)) = self.next_packet()
        {
            self.busy_until = now + packet.len() as u64 * 8 * 1_000_000 / BITS_PER_S;
            if !self.is_lost(packet.len()) {
                let due = self.busy_until + DELAY_US;
                self.under_way.push((due, to_host, packet));
            }
            if !self.is_dead {
                self.host.poll(at);
            }
        }
        self.shim.register(cx);
        let waits = self.shim.has_packet() || !self.is_dead && self.host.has_packet();
        let deadline = self.host.next_deadline().filter(|_| !self.is_dead);
        let due = self.under_way.iter().map(|(due, ..)| *due).min();
        let free = (waits && self.busy_until > now).then_some(self.busy_until);
        let times = [deadline.map(Instant::as_micros), due, free];
        times.into_iter().flatten().min()
    }

    /// By turns where both have one.
    fn next_packet(&mut self) -> Option<(bool, Vec<u8>)> {
        let of_host = !self.is_dead && self.host.has_packet();
        let is_hosts = match (of_host, self.shim.has_packet()) {
            (true, true) => self.is_hosts_turn,
            (of_host, _) => of_host,
        };
        self.is_hosts_turn = !is_hosts;
        match is_hosts {
            true => Some((false, self.host.pop()?)),
            false => Some((true, self.shim.pop()?)),
        }
    }

    fn is_lost(&mut self, len: usize) -> bool {
        let (chance, times) = match self.loss {
            Loss::Packets(chance) => (chance, 1),
            Loss::Frames(chance) => (chance, len.div_ceil(FRAME)),
        };
        (0..times).any(|_| f64::from(self.rng.next_u32()) < chance * f64::from(u32::MAX))
    }
}

/// Moves packets for good.
pub(crate) async fn carry(air: Rc<RefCell<Air>>) {
    poll_fn(|cx| {
        loop {
            let now = now_us();
            let Some(at) = air.borrow_mut().step(now, cx) else {
                return Poll::<()>::Pending;
            };
            let mut timer = Timer::at(embassy_time::Instant::from_micros(at));
            if Pin::new(&mut timer).poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await;
}

const BITS_PER_S: u64 = 60_000;
const DELAY_US: u64 = 50_000;
/// Bytes of a frame's payload.
pub(crate) const FRAME: usize = 80;
