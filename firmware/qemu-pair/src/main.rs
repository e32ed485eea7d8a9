//! Stand-in until the node arrives.
#![no_std]
#![no_main]

mod stack;

use core::panic::PanicInfo;

use cortex_m as _;
use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};
use motet::random::Rng;

#[entry]
fn main() -> ! {
    let mut rng = Rng::from_seed([1, 2]);
    hprintln!("random={}", rng.next_u32());
    hprintln!("stack_high_water_bytes={}", stack::high_water_bytes());
    debug::exit(debug::EXIT_SUCCESS);
    loop {
        core::hint::spin_loop();
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
