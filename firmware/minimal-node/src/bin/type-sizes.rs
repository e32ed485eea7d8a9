//! Not a program: holds the sizes of the stack's main types on a 32-bit target, where
//! `cargo xtask sizes` reads them.
#![no_std]
#![no_main]

#[path = "../panic.rs"]
mod panic;

use core::mem::size_of;

use cortex_m_rt::entry;
use motet::tcp::{Connection, HalfOpen, Listener};

/// `connection_bytes`, `listener_bytes`, `half_open_bytes`, as little-endian words.
#[unsafe(no_mangle)]
static MOTET_TYPE_SIZES: [u32; 3] = [
    size_of::<Connection<'static>>() as u32,
    size_of::<Listener<'static>>() as u32,
    size_of::<HalfOpen>() as u32,
];

#[entry]
fn main() -> ! {
    loop {
        // SAFETY: reads a live static; volatile, so that the linker must keep it.
        unsafe { core::ptr::read_volatile(&raw const MOTET_TYPE_SIZES) };
    }
}
