//! Stand-in until the node arrives.
#![no_std]
#![no_main]

use cortex_m_rt::entry;
use minimal_node::radio::{Command, Interrupt, Radio};
use motet::random::Rng;

#[entry]
fn main() -> ! {
    static mut PSDU: [u8; 127] = [0; 127];
    let mut radio = Radio::new();
    let mut rng = Rng::from_seed([1, 2]);
    loop {
        if let Some(Interrupt::Received { len, .. }) = radio.interrupt() {
            let Some(psdu) = PSDU.get_mut(..len) else {
                continue;
            };
            radio.read_frame(psdu);
            if let Some(first) = psdu.first_mut() {
                *first = rng.next_u32() as u8;
            }
            radio.load_frame(psdu);
            radio.command(Command::Fire, 0);
        }
    }
}
