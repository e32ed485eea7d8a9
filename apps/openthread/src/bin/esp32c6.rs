//! The ESP32-C6's part: its radio by esp-radio, its source of randomness. Never run on a chip.
#![no_std]
#![no_main]

use embassy_executor::Spawner;
use esp_hal::efuse;
use esp_hal::rng::{Trng, TrngSource};
use esp_hal::timer::timg::TimerGroup;
use esp_radio::ieee802154::Ieee802154;
use openthread::OpenThread;
use openthread::esp::EspRadio;
use openthread_node::{DATASET, report, start};
use static_cell::StaticCell;

esp_bootloader_esp_idf::esp_app_desc!();

static RNG: StaticCell<Trng> = StaticCell::new();

#[embassy_executor::task]
async fn radio(ot: OpenThread<'static>, radio: EspRadio<'static>) {
    ot.run(radio).await;
}

#[esp_rtos::main]
async fn main(spawner: Spawner) {
    let p = esp_hal::init(esp_hal::Config::default());
    // For the frames that esp-radio keeps.
    esp_alloc::heap_allocator!(size: 16 * 1024);
    let timers = TimerGroup::new(p.TIMG0);
    esp_rtos::start(timers.timer0, p.FROM_CPU_INTR0);
    // Random bits are true ones while this is held: to the end.
    let _source = TrngSource::new(p.RNG, p.ADC1);
    let rng = RNG.init(Trng::try_new().unwrap());
    let (ot, stack) = start(spawner, eui64(), rng, DATASET).unwrap();
    let driver = EspRadio::new(Ieee802154::new(p.IEEE802154));
    spawner.spawn(radio(ot, driver).unwrap());
    report(stack).await;
}

/// The chip's MAC address as an EUI-64.
fn eui64() -> [u8; 8] {
    let [a, b, c, d, e, f] = *efuse::base_mac_address().as_bytes().first_chunk().unwrap();
    [a, b, c, 0xff, 0xfe, d, e, f]
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    esp_hal::system::software_reset()
}
