//! Runs the functions for memory and division that `minimal-node` brings, and says whether they are
//! right.
//!
//! Runs under QEMU, on a Cortex-M0: an access that is not aligned ends it.
#![no_std]
#![no_main]

mod check;

use core::panic::PanicInfo;

use cortex_m as _;
use cortex_m_rt::{ExceptionFrame, entry, exception};
use cortex_m_semihosting::{debug, hprintln};
use minimal_node as _;

#[entry]
fn main() -> ! {
    if !check::division_is_right() || !check::long_division_is_right() {
        end(false, "a quotient or a remainder is wrong");
    }
    let is_right = check::memory_is_right();
    end(is_right, "a copy, a move or a fill is wrong")
}

/// Prints the outcome, and ends the run.
fn end(is_right: bool, fault: &str) -> ! {
    match is_right {
        true => hprintln!("memory_is_right=1"),
        false => hprintln!("failed: {}", fault),
    }
    debug::exit(match is_right {
        true => debug::EXIT_SUCCESS,
        false => debug::EXIT_FAILURE,
    });
    loop {
        core::hint::spin_loop();
    }
}

#[exception]
unsafe fn HardFault(_: &ExceptionFrame) -> ! {
    end(false, "a fault, such as an access to an odd address")
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    end(false, "a panic")
}
