//! Two nodes in one image: one sends 10 KiB over TCP, the other checks every byte.
//!
//! Runs under QEMU. Time is virtual: it jumps to whatever is due next. The output ends with
//! the call stack's high-water mark; the exit status says whether all bytes arrived.
#![no_std]
#![no_main]

mod air;
mod stack;

use core::net::Ipv6Addr;
use core::panic::PanicInfo;

use cortex_m as _;
use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};
use minimal_node::{SETTINGS, Storage, start};
use motet::node::{ACTION_LEN_MAX, Node};
use motet::tcp::{Buffers, Handle, ListenerHandle, RecvError};
use motet::time::{Duration, Instant};

use crate::air::{Air, Side};

/// Bytes to carry.
const TRANSFER_LEN: usize = 10 * 1024;

/// More than ten times what the transfer takes on this air.
const TIME_MAX: Duration = Duration::from_secs(60);

/// Discard's, for the bytes are checked and dropped.
const PORT: u16 = 9;

const EUI64: [u8; 8] = *b"Motet\0\0\x01";
const EUI64_2: [u8; 8] = *b"Motet\0\0\x02";

#[entry]
fn main() -> ! {
    static mut STORAGES: [Storage; 2] = [Storage::EMPTY, Storage::EMPTY];
    static mut OUT: [u8; ACTION_LEN_MAX] = [0; ACTION_LEN_MAX];
    static mut AIR: Air = Air::EMPTY;

    let [first, second] = STORAGES;
    let mut now = Instant::ORIGIN;
    let (sender, buffers) = start(first, EUI64, [1, 2], now);
    let mut source = Source::new(buffers);
    let (receiver, buffers) = start(second, EUI64_2, [3, 4], now);
    let mut sink = Sink::new(receiver, buffers);
    let remote = receiver.ip().addresses().next().map(|address| address.addr);

    while sink.outcome.is_none() && now < Instant::ORIGIN + TIME_MAX {
        source.run(sender, remote, now);
        sink.run(receiver, now);
        AIR.perform(Side::Sender, sender, now, OUT);
        AIR.perform(Side::Receiver, receiver, now, OUT);
        now = AIR.advance(sender, receiver, now);
    }
    report(&sink, now);
    loop {
        core::hint::spin_loop();
    }
}

/// Prints the figures and ends the run.
fn report(sink: &Sink, now: Instant) {
    // Before printing, which needs stack of its own.
    let stack = stack::high_water_bytes();
    let outcome = sink.outcome.unwrap_or(Err("out of time"));
    if let Err(reason) = outcome {
        hprintln!("failed: {}", reason);
    }
    hprintln!("virtual_ms={}", now.as_micros() / 1_000);
    hprintln!("bytes={} stack_high_water_bytes={}", sink.received, stack);
    debug::exit(match outcome {
        Ok(()) => debug::EXIT_SUCCESS,
        Err(_) => debug::EXIT_FAILURE,
    });
}

/// The byte at each place of the transfer; its period of 251 divides no buffer or segment.
fn pattern(place: usize) -> u8 {
    (place % 251) as u8
}

/// The application that sends.
struct Source {
    buffers: Option<Buffers<'static>>,
    connection: Option<Handle>,
    sent: usize,
}

impl Source {
    fn new(buffers: Buffers<'static>) -> Self {
        Self {
            buffers: Some(buffers),
            connection: None,
            sent: 0,
        }
    }

    // Out of line, as the other application's: the stack's work is measured above a main loop, not
    // above an application's buffers.
    #[inline(never)]
    fn run(&mut self, node: &mut Node<'static>, remote: Option<Ipv6Addr>, now: Instant) {
        if let (Some(remote), Some(buffers)) = (remote, self.buffers.take()) {
            self.connection = node.connect((remote, PORT), buffers, &SETTINGS, now).ok();
        }
        let Some(connection) = self.connection else {
            return;
        };
        while self.sent < TRANSFER_LEN {
            let mut bytes = [0; 64];
            let places = self.sent..TRANSFER_LEN;
            let mut count = 0;
            for (byte, place) in bytes.iter_mut().zip(places) {
                *byte = pattern(place);
                count += 1;
            }
            let bytes = bytes.get(..count).unwrap_or_default();
            match node.tcp_mut().send(connection, bytes, now) {
                Ok(taken) => self.sent += taken,
                Err(_) => return,
            }
            if self.sent == TRANSFER_LEN {
                node.tcp_mut().close(connection, now);
            }
        }
    }
}

/// The application that receives.
struct Sink {
    port: Option<ListenerHandle>,
    buffers: Option<Buffers<'static>>,
    connection: Option<Handle>,
    received: usize,
    /// How the transfer ended, once it has.
    outcome: Option<Result<(), &'static str>>,
}

impl Sink {
    fn new(node: &mut Node<'static>, buffers: Buffers<'static>) -> Self {
        let port = node.tcp_mut().listen(None, PORT, &SETTINGS).ok();
        Self {
            port,
            buffers: Some(buffers),
            connection: None,
            received: 0,
            outcome: None,
        }
    }

    #[inline(never)]
    fn run(&mut self, node: &mut Node<'static>, now: Instant) {
        let tcp = node.tcp_mut();
        if let Some(port) = self.port
            && tcp.can_accept(port)
            && let Some(buffers) = self.buffers.take()
        {
            self.connection = tcp.accept(port, buffers, now).ok();
        }
        let Some(connection) = self.connection else {
            return;
        };
        let mut bytes = [0; 64];
        self.outcome = loop {
            match tcp.recv(connection, &mut bytes) {
                Ok(count) => {
                    for byte in bytes.iter().take(count) {
                        if *byte != pattern(self.received) {
                            self.outcome = Some(Err("a byte is wrong"));
                            return;
                        }
                        self.received += 1;
                    }
                }
                Err(RecvError::Empty) => break None,
                Err(RecvError::Finished) if self.received == TRANSFER_LEN => break Some(Ok(())),
                Err(RecvError::Finished) => break Some(Err("bytes are missing")),
                Err(_) => break Some(Err("the connection failed")),
            }
        };
    }
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    hprintln!("{}", info);
    debug::exit(debug::EXIT_FAILURE);
    loop {
        core::hint::spin_loop();
    }
}
