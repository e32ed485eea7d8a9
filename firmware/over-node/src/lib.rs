//! What both images share: the driver, the clock, the executor and the application, so that they
//! differ in the stack alone.
//!
//! Driver and clock are registers of a device that does not exist: the compiler cannot leave out
//! what reads and writes them. The images are linked and measured, never run.
#![no_std]

use core::future::Future;
use core::pin::pin;
use core::ptr;
use core::task::{Context, Waker};

use cortex_m as _;
use embassy_net_driver::{Capabilities, Driver, HardwareAddress, LinkState, RxToken, TxToken};
use embedded_io_async::{Read, Write};

/// The driver: packets of up to 1,280 bytes, one at a time each way.
#[derive(Debug)]
pub struct Device;

/// A packet that came.
#[derive(Debug)]
pub struct Inward;

/// Room for one that leaves.
#[derive(Debug)]
pub struct Outward;

impl RxToken for Inward {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, f: F) -> R {
        let mut packet = [0; MTU];
        let len = (read(LEN) as usize).min(MTU);
        let packet = packet.get_mut(..len).unwrap_or_default();
        for byte in packet.iter_mut() {
            *byte = read(DATA) as u8;
        }
        f(packet)
    }
}

impl TxToken for Outward {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let mut packet = [0; MTU];
        let packet = packet.get_mut(..len).unwrap_or_default();
        let result = f(packet);
        for byte in packet.iter() {
            write(DATA, (*byte).into());
        }
        write(LEN, len as u32);
        result
    }
}

impl Driver for Device {
    type RxToken<'a> = Inward;
    type TxToken<'a> = Outward;

    fn receive(&mut self, _: &mut Context<'_>) -> Option<(Inward, Outward)> {
        (read(ARRIVED) != 0).then_some((Inward, Outward))
    }

    fn transmit(&mut self, _: &mut Context<'_>) -> Option<Outward> {
        (read(ROOM) != 0).then_some(Outward)
    }

    fn link_state(&mut self, _: &mut Context<'_>) -> LinkState {
        match read(UP) {
            0 => LinkState::Down,
            _ => LinkState::Up,
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

struct Clock;

impl embassy_time_driver::Driver for Clock {
    fn now(&self) -> u64 {
        u64::from(read(TIME_HIGH)) << 32 | u64::from(read(TIME))
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        write(ALARM, at as u32);
        waker.wake_by_ref();
    }
}

embassy_time_driver::time_driver_impl!(static CLOCK: Clock = Clock);

/// Random bits.
pub fn seed() -> u64 {
    u64::from(read(RANDOM)) << 32 | u64::from(read(RANDOM))
}

/// Polls a future for good.
pub fn run(future: impl Future<Output = ()>) -> ! {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        let _ended = future.as_mut().poll(&mut cx).is_ready();
    }
}

/// The server's part of a connection: sends back what comes.
///
/// # Errors
/// The socket's.
pub async fn echo<S: Read + Write>(socket: &mut S) -> Result<(), S::Error> {
    let mut bytes = [0; 64];
    loop {
        let count = socket.read(&mut bytes).await?;
        let Some(bytes @ [_, ..]) = bytes.get(..count) else {
            return Ok(());
        };
        socket.write_all(bytes).await?;
    }
}

/// The client's part of a connection: a question, and its answer.
///
/// # Errors
/// The socket's.
pub async fn ask<S: Read + Write>(socket: &mut S) -> Result<(), S::Error> {
    socket.write_all(b"How warm is it?\n").await?;
    socket.flush().await?;
    let mut bytes = [0; 64];
    while socket.read(&mut bytes).await? > 0 {
        write(LEN, bytes.len() as u32);
    }
    Ok(())
}

fn read(register: usize) -> u32 {
    // SAFETY: a word of a device's registers; the image never runs.
    unsafe { ptr::read_volatile(register as *const u32) }
}

fn write(register: usize, value: u32) {
    // SAFETY: as in `read`.
    unsafe { ptr::write_volatile(register as *mut u32, value) }
}

const MTU: usize = 1280;
const ARRIVED: usize = 0x4000_0000;
const ROOM: usize = 0x4000_0004;
const UP: usize = 0x4000_0008;
const LEN: usize = 0x4000_000c;
const DATA: usize = 0x4000_0010;
const TIME: usize = 0x4000_0014;
const TIME_HIGH: usize = 0x4000_0018;
const ALARM: usize = 0x4000_001c;
const RANDOM: usize = 0x4000_0020;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    cortex_m::peripheral::SCB::sys_reset()
}
