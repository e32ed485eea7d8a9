//! An LED that is switched over TCP (`shared/led.rs`). Compiled and linked; never run on a chip.
#![no_std]
#![no_main]

use cortex_m as _;
use embassy_executor::Spawner;
use embassy_nrf::config::{Config, HfclkSource};
use embassy_nrf::gpio::{Level, Output, OutputDrive};
use motet_embassy::{Resources, Runner};
use motet_nrf::{InterruptHandler, Radio};

embassy_nrf::bind_interrupts!(struct Irqs { RADIO => InterruptHandler; });

static RESOURCES: Resources<2, 2048> = Resources::new();

#[embassy_executor::task]
async fn net(mut runner: Runner<Radio>) {
    runner.run().await;
}

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    let mut config = Config::default();
    config.hfclk_source = HfclkSource::ExternalXtal;
    let p = embassy_nrf::init(config);
    let radio = Radio::new(p.RADIO, p.TIMER0, p.TEMP, p.PPI_CH0, Irqs).unwrap();
    let (eui64, seed) = (motet_nrf::eui64(), motet_nrf::seed(p.RNG));
    let mesh = motet_embassy::Config::mesh(0x4d54);
    let (stack, runner) = motet_embassy::new(&RESOURCES, radio, eui64, seed, mesh).unwrap();
    spawner.spawn(net(runner).unwrap());

    // The application. LED1 of the nRF52840 DK, which shines while its pin is low.
    let mut led = Output::new(p.P0_13, Level::High, OutputDrive::Standard);
    let _ended = led::switch(stack, |on| led.set_level(Level::from(!on))).await;
}

#[path = "../../../shared/led.rs"]
mod led;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    cortex_m::peripheral::SCB::sys_reset()
}
