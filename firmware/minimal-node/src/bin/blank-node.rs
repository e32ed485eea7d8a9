//! Stand-in until the node arrives.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use minimal_node as _;

#[entry]
fn main() -> ! {
    loop {
        core::hint::spin_loop();
    }
}
