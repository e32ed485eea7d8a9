//! Not a program: holds the sizes of the stack's main types on a 32-bit target, where
//! `cargo xtask sizes` reads them.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use minimal_node as _;

/// `connection_bytes`, `listener_bytes`, `half_open_bytes`, as little-endian words.
#[unsafe(no_mangle)]
static MOTET_TYPE_SIZES: [u32; 3] = [0; 3];

#[entry]
fn main() -> ! {
    loop {
        // SAFETY: reads a live static; volatile, so that the linker must keep it.
        unsafe { core::ptr::read_volatile(&raw const MOTET_TYPE_SIZES) };
    }
}
