//! How often an adapter for an async runtime wakes tasks in vain.
//!
//! Two engines over a link, a client task that asks, a server task that answers: written as
//! futures, with one waker for each slot and direction. What is counted, on either side: wakes,
//! and calls that did something (`recv`, `send`, `accept`).

use super::*;
use crate::tcp::{Changed, RecvError, SendError};
use core::cell::RefCell;
use core::future::{Future, poll_fn};
use core::pin::{Pin, pin};
use core::sync::atomic::{AtomicBool, Ordering};
use core::task::{Context, Poll, Waker};
use std::sync::Arc;
use std::task::Wake;

/// By what tasks are woken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// The edges that [`Tcp::poll_changed`] reports.
    Edges,
    /// Asking every connection after each event, as is done without.
    Levels,
}

/// What the task behind a writer's waker waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wait {
    Room,
    Acknowledgment,
}

/// What an adapter holds for one engine; a slot each, as there is one connection.
#[derive(Default)]
struct Side {
    reader: Option<Waker>,
    writer: Option<(Waker, Wait)>,
    acceptor: Option<Waker>,
    wakes: u32,
    useful: u32,
}

impl Side {
    fn wake_reader(&mut self) {
        if let Some(waker) = self.reader.take() {
            self.wakes += 1;
            waker.wake();
        }
    }

    fn wake_writer(&mut self, wanted: impl Fn(Wait) -> bool) {
        if let Some((waker, _)) = self.writer.take_if(|(_, wait)| wanted(*wait)) {
            self.wakes += 1;
            waker.wake();
        }
    }

    fn wake_acceptor(&mut self) {
        if let Some(waker) = self.acceptor.take() {
            self.wakes += 1;
            waker.wake();
        }
    }
}

struct World {
    net: Net,
    sides: [Side; 2],
    by: By,
}

impl World {
    /// After an event, and after the calls that it led to.
    fn wake(&mut self) {
        for (tcp, side) in self.net.hosts.iter_mut().zip(&mut self.sides) {
            let mut edges = Vec::new();
            while let Some(changed) = tcp.poll_changed() {
                edges.push(changed);
            }
            if self.by == By::Edges {
                for changed in edges {
                    match changed {
                        Changed::Listener(_) => side.wake_acceptor(),
                        Changed::Connection(_, edges) => {
                            if edges.is_readable() {
                                side.wake_reader();
                            }
                            side.wake_writer(|wait| match wait {
                                Wait::Room => edges.is_writable(),
                                Wait::Acknowledgment => edges.is_all_acknowledged(),
                            });
                        }
                    }
                }
                continue;
            }
            side.wake_acceptor();
            let slots = tcp.memory.connections.iter();
            for connection in slots.filter_map(|slot| slot.0.as_ref()) {
                if connection.can_recv() > 0 || connection.peer_closed() {
                    side.wake_reader();
                }
                if connection.can_send() > 0 || !connection.may_send() {
                    side.wake_writer(|_| true);
                }
            }
        }
    }
}

type Shared = RefCell<World>;

async fn accept(world: &Shared, listener: ListenerHandle) -> Handle {
    poll_fn(|cx| {
        let world = &mut *world.borrow_mut();
        let (tcp, now) = (
            &mut world.net.hosts[1],
            Instant::from_micros(world.net.now_us),
        );
        if !tcp.can_accept(listener) {
            world.sides[1].acceptor = Some(cx.waker().clone());
            return Poll::Pending;
        }
        world.sides[1].useful += 1;
        Poll::Ready(tcp.accept(listener, buffers(SEND, WINDOW), now).unwrap())
    })
    .await
}

/// How many bytes came; 0: the end.
async fn read(world: &Shared, at: usize, handle: Handle) -> usize {
    poll_fn(|cx| {
        let world = &mut *world.borrow_mut();
        match world.net.hosts[at].recv(handle, &mut [0; 256]) {
            Ok(count) => {
                world.sides[at].useful += 1;
                Poll::Ready(count)
            }
            Err(RecvError::Empty) => {
                world.sides[at].reader = Some(cx.waker().clone());
                Poll::Pending
            }
            Err(RecvError::Finished) => Poll::Ready(0),
            Err(error) => panic!("{error:?}"),
        }
    })
    .await
}

async fn write_all(world: &Shared, at: usize, handle: Handle, mut left: usize) {
    while left > 0 {
        left -= poll_fn(|cx| {
            let world = &mut *world.borrow_mut();
            let now = world.net.now();
            match world.net.hosts[at].send(handle, &vec![0; left], now) {
                Ok(count) => {
                    world.sides[at].useful += 1;
                    Poll::Ready(count)
                }
                Err(SendError::BufferFull) => {
                    world.sides[at].writer = Some((cx.waker().clone(), Wait::Room));
                    Poll::Pending
                }
                Err(error) => panic!("{error:?}"),
            }
        })
        .await;
    }
}

async fn flush(world: &Shared, at: usize, handle: Handle) {
    poll_fn(|cx| {
        let world = &mut *world.borrow_mut();
        let connection = world.net.hosts[at].connection(handle).unwrap();
        if connection.unacknowledged() == 0 {
            return Poll::Ready(());
        }
        world.sides[at].writer = Some((cx.waker().clone(), Wait::Acknowledgment));
        Poll::Pending
    })
    .await;
}

async fn client(world: &Shared, handle: Handle, response: usize) {
    for _ in 0..REQUESTS {
        write_all(world, 0, handle, REQUEST).await;
        flush(world, 0, handle).await;
        let mut left = response;
        while left > 0 {
            left -= read(world, 0, handle).await;
        }
    }
    let world = &mut *world.borrow_mut();
    world.net.hosts[0].shutdown(handle, Instant::from_micros(world.net.now_us));
}

async fn server(world: &Shared, listener: ListenerHandle, response: usize) {
    let handle = accept(world, listener).await;
    loop {
        let mut left = REQUEST;
        while left > 0 {
            let count = read(world, 1, handle).await;
            if count == 0 {
                return;
            }
            left -= count;
        }
        write_all(world, 1, handle, response).await;
        flush(world, 1, handle).await;
    }
}

/// Whether a task is to be polled.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Wakes and useful calls at the client, then at the server.
fn run(by: By, response: usize, loss: u32) -> [(u32, u32); 2] {
    let config = leak(Config {
        rmss: 500,
        smss: 500,
        ..PLAIN
    });
    let mut net = Net::new(Link { loss, ..CLEAN }, 5);
    let now = net.now();
    let listener = net.hosts[1].listen(None, PORT, config).unwrap();
    let lent = buffers(SEND, WINDOW);
    let handle = net.hosts[0]
        .connect(US, (PEER, PORT), lent, config, Offer::UNBOUNDED, now)
        .unwrap();
    let sides = [Side::default(), Side::default()];
    let world = RefCell::new(World { net, sides, by });
    let mut client = pin!(client(&world, handle, response));
    let mut server = pin!(server(&world, listener, response));
    let mut tasks: [(Pin<&mut dyn Future<Output = ()>>, bool); 2] =
        [(client.as_mut(), false), (server.as_mut(), false)];
    let flags = [0, 1].map(|_| Arc::new(Flag(AtomicBool::new(true))));
    for _ in 0..1_000_000 {
        for ((task, is_done), flag) in tasks.iter_mut().zip(&flags) {
            while !*is_done && flag.0.swap(false, Ordering::Relaxed) {
                let waker = Waker::from(Arc::clone(flag));
                let polled = task.as_mut().poll(&mut Context::from_waker(&waker));
                *is_done = polled.is_ready();
            }
        }
        if tasks.iter().all(|(_, is_done)| *is_done) {
            let sides = &world.borrow().sides;
            return [0, 1].map(|at| (sides[at].wakes, sides[at].useful));
        }
        let mut world = world.borrow_mut();
        world.net.flush();
        world.wake();
        let is_woken = flags.iter().any(|flag| flag.0.load(Ordering::Relaxed));
        if !is_woken || by == By::Levels {
            assert!(world.net.step(), "stuck: an edge was lost");
            world.net.flush();
            world.wake();
        }
    }
    panic!("without end");
}

/// No more than 1.1 wakes for each call that did something, whatever is asked for; asking every
/// connection instead wakes more often.
#[test]
fn tasks_are_woken_for_something() {
    for (response, loss) in [(18, 0), (4000, 0), (18, 50), (4000, 50)] {
        let edges = run(By::Edges, response, loss);
        let levels = run(By::Levels, response, loss);
        std::println!("{response} bytes, loss {loss}: edges {edges:?}, levels {levels:?}");
        for ((wakes, useful), (more, _)) in edges.into_iter().zip(levels) {
            assert!(wakes * 10 <= useful * 11, "{wakes} wakes, {useful} calls");
            assert!(wakes <= more, "{wakes} wakes instead of {more}");
        }
    }
}

const REQUESTS: usize = 50;
/// Length of a request, bytes.
const REQUEST: usize = 100;
const SEND: usize = 1000;
const WINDOW: u16 = 1000;
