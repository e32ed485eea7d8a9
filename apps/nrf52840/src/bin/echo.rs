//! An echo node: two connections of 2 KiB each way. Up to the first socket it has as many lines as
//! `cargo xtask apps` counts.
#![no_std]
#![no_main]

use cortex_m as _;
use embassy_executor::Spawner;
use embassy_nrf::config::{Config, HfclkSource};
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

    // The application. It ends only where its port cannot be had, which nobody else asks for.
    let _ended = echo::echo(stack).await;
}

#[path = "../../../shared/echo.rs"]
mod echo;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    cortex_m::peripheral::SCB::sys_reset()
}
