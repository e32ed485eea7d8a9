//! An LED that is switched over TCP (`shared/led.rs`). Never run on a chip.
#![no_std]
#![no_main]

use embassy_executor::Spawner;
use esp_hal::gpio::{Level, Output, OutputConfig};
use esp_hal::timer::timg::TimerGroup;
use motet_embassy::offload::{Driver, Port, Shared};
use motet_embassy::{Resources, Runner};
use motet_esp::{Esp, Radio};

esp_bootloader_esp_idf::esp_app_desc!();

static RESOURCES: Resources<2, 2048> = Resources::new();
static SHARED: Shared = Shared::new();

#[embassy_executor::task]
async fn net(mut runner: Runner<Port>) {
    runner.run().await;
}

#[embassy_executor::task]
async fn air(mut driver: Driver<Esp<Radio>>) {
    driver.run().await;
}

#[esp_rtos::main]
async fn main(spawner: Spawner) {
    let p = esp_hal::init(esp_hal::Config::default());
    // For the frames that esp-radio keeps.
    esp_alloc::heap_allocator!(size: 16 * 1024);
    let timers = TimerGroup::new(p.TIMG0);
    esp_rtos::start(timers.timer0, p.FROM_CPU_INTR0);
    let (radio, driver) = motet_esp::new(p.IEEE802154, 10, &SHARED);
    let (eui64, seed) = (motet_esp::eui64(), motet_esp::seed());
    let mesh = motet_embassy::Config::mesh(0x4d54);
    let (stack, runner) = motet_embassy::new(&RESOURCES, radio, eui64, seed, mesh).unwrap();
    spawner.spawn(air(driver).unwrap());
    spawner.spawn(net(runner).unwrap());

    // The application. An LED with its resistor, from GPIO10 to ground.
    let mut led = Output::new(p.GPIO10, Level::Low, OutputConfig::default());
    let _ended = led::switch(stack, |on| led.set_level(Level::from(on))).await;
}

#[path = "../../../shared/led.rs"]
mod led;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    esp_hal::system::software_reset()
}
