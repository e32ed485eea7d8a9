//! Stand-in until the node arrives: echoes MAC payloads.
#![no_std]
#![no_main]
use cortex_m_rt::entry;
use minimal_node::radio::Radio;
use motet::mac::{Class, Config, FrameSlot, Mac, Neighbor};
use motet::random::Rng;

#[entry]
fn main() -> ! {
    static mut PSDU: [u8; 127] = [0; 127];
    static mut OUT: [u8; 127] = [0; 127];
    static mut SLOTS: [FrameSlot; 12] = [FrameSlot::EMPTY; 12];
    static mut NEIGHBORS: [Neighbor; 4] = [Neighbor::EMPTY; 4];
    let mut radio = Radio::new();
    let mut rng = Rng::from_seed(radio.seed());
    let mut mac = Mac::new(
        Config::new(1, [2; 8]),
        Radio::CAPABILITIES,
        SLOTS,
        NEIGHBORS,
        &mut rng,
    );
    loop {
        let now = radio.now();
        if let Some(event) = radio.event(PSDU) {
            if let Some(received) = mac.on_event(event, now, &mut rng) {
                let _ = mac.enqueue(received.src, 1, received.payload, Class::Own);
            }
        }
        while let Some(a) = mac.poll_action(now, &mut rng, OUT) {
            radio.perform(a, OUT);
        }
        mac.poll_outcome();
        if mac.next_deadline() == Some(now) {
            mac.cancel(1);
        }
    }
}
