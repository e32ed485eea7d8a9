//! An LED that is switched over TCP: a peer of port 7777 sends `1` for on, `0` for off, and gets
//! each back. Compiled and linked; never run on a chip.
#![no_std]
#![no_main]

use cortex_m as _;
use embassy_executor::Spawner;
use embassy_nrf::config::{Config, HfclkSource};
use embassy_nrf::gpio::{Level, Output, OutputDrive};
use embedded_io_async::{Read, Write};
use motet_embassy::{Error, Resources, Runner, Stack};
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
    let (stack, runner) = motet_embassy::new(&RESOURCES, radio, eui64, seed, mesh);
    spawner.spawn(net(runner).unwrap());

    // The application. LED1 of the nRF52840 DK, which shines while its pin is low.
    let led = Output::new(p.P0_13, Level::High, OutputDrive::Standard);
    let _ended = switch(stack, led).await;
}

/// Serves one peer after the other.
async fn switch(stack: Stack, mut led: Output<'static>) -> Result<(), Error> {
    let listener = stack.listen(7777)?;
    loop {
        let mut socket = listener.accept().await?;
        let mut asked = [0];
        while let Ok(1..) = socket.read(&mut asked).await {
            match asked {
                [b'1'] => led.set_low(),
                [b'0'] => led.set_high(),
                _ => continue,
            }
            let _sent = socket.write_all(&asked).await;
        }
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    cortex_m::peripheral::SCB::sys_reset()
}
