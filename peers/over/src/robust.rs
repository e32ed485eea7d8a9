//! What happens to a connection when the peer, the driver, the link or the address goes: an error,
//! or the connection lives. A panic would end this program.

use std::cell::RefCell;
use std::net::{Ipv6Addr, SocketAddrV6};
use std::rc::Rc;
use std::time::Duration;

use crate::clock::{self, Executor, now_us};
use crate::device::{DEVICE, End, Kind, Stack, Task};
use crate::host::{HOST, Host, PORT};
use crate::link::{Air, Loss, carry};
use crate::report::{Report, Row};
use crate::shim::Shim;

/// A transfer that something happens to.
struct World {
    executor: Executor,
    shim: Shim,
    air: Rc<RefCell<Air>>,
    stack: Stack,
    outcome: Rc<crate::device::Outcome>,
}

impl World {
    /// A transfer of which some has arrived.
    fn under_way() -> Self {
        clock::restart(false);
        let mut executor = Executor::default();
        let shim = Shim::default();
        let air = Air::new(&shim, Host::new(0, 1), Loss::Packets(0.0), 1);
        executor.spawn(carry(air.clone()));
        let what = (SocketAddrV6::new(HOST, PORT, 0, 0), Task::Send(LEN));
        let (stack, outcome) = Kind::Motet.start(&mut executor, &shim, what, (4096, 1));
        let mut world = Self {
            executor,
            shim,
            air,
            stack,
            outcome,
        };
        world.wait(3);
        world
    }

    fn wait(&mut self, seconds: u64) {
        let end = now_us() + seconds * 1_000_000;
        // Where nobody waits for anything, nothing will change either.
        self.executor.spawn(async move {
            embassy_time::Timer::at(embassy_time::Instant::from_micros(end)).await;
        });
        self.executor.run_until(LIMIT, || now_us() >= end);
    }

    /// Runs to the end of the connection: whether the transfer ended whole, or by an error.
    fn end(mut self) -> Option<End> {
        let outcome = self.outcome.clone();
        let is_over = || outcome.end.get() != End::Open;
        let ended = self.executor.run_until(LIMIT, is_over);
        let is_whole = self.air.borrow().host.read == LEN;
        match (ended, outcome.end.get(), is_whole) {
            (true, End::Done, true) => Some(End::Done),
            (true, End::Failed, _) => Some(End::Failed),
            _ => None,
        }
    }
}

/// Runs every check.
pub(crate) fn run(report: &mut Report) {
    let mut check = |name: &str, lives: bool, change: &mut dyn FnMut(&mut World)| {
        let mut world = World::under_way();
        change(&mut world);
        let begun = now_us();
        let end = world.end();
        let seconds = (now_us() - begun) as f64 / 1e6;
        let is_good = match lives {
            true => end == Some(End::Done),
            false => end == Some(End::Failed),
        };
        let word = match end {
            Some(End::Done) => "whole, on the same connection",
            Some(_) => "an error",
            None => "neither an end nor an error",
        };
        report.add(Row::new(name, seconds, "s", is_good).note(word));
    };
    check("the peer is killed", false, &mut |world| {
        world.air.borrow_mut().is_dead = true;
    });
    check("the driver is full for 10 s", true, &mut |world| {
        world.shim.set_full(true);
        world.wait(10);
        world.shim.set_full(false);
    });
    check("the driver stays full", false, &mut |world| {
        world.shim.set_full(true);
    });
    check("the address is another one", false, &mut |world| {
        world.stack.set_address(OTHER);
    });
    check("the address is another one for 5 s", true, &mut |world| {
        world.stack.set_address(OTHER);
        world.wait(5);
        world.stack.set_address(DEVICE);
    });
    check("the link is down for 10 s", true, &mut |world| {
        world.shim.set_down(true);
        world.wait(10);
        world.shim.set_down(false);
    });
    check("the link stays down", false, &mut |world| {
        world.shim.set_down(true);
    });
}

const OTHER: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 3, 0, 0, 0, 1);
/// Bytes of a transfer.
const LEN: usize = 100_000;
/// Virtual time.
const LIMIT: Duration = Duration::from_secs(600);
