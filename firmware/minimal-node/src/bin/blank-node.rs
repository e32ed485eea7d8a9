//! Stand-in until the node arrives.
#![no_std]
#![no_main]

#[path = "../panic.rs"]
mod panic;

use cortex_m_rt::entry;

#[entry]
fn main() -> ! {
    loop {
        core::hint::spin_loop();
    }
}
