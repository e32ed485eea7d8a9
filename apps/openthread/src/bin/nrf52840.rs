//! The nRF52840's part: Nordic's radio driver and what it runs on (MPSL), its source of randomness.
//! Never run on a chip.
#![no_std]
#![no_main]

use embassy_executor::Spawner;
use embassy_nrf::interrupt::Priority;
use embassy_nrf::mode::Blocking;
use embassy_nrf::pac::FICR;
use embassy_nrf::rng::Rng;
use nrf_802154::{OpenThreadRadio, Radio, RadioPeripherals};
use nrf_mpsl::{MultiprotocolServiceLayer, Peripherals, raw};
use openthread::OpenThread;
use openthread_node::{DATASET, report, start};
use static_cell::StaticCell;
use tinyrlibc as _;

embassy_nrf::bind_interrupts!(struct Irqs {
    EGU0_SWI0 => nrf_mpsl::LowPrioInterruptHandler, nrf_802154::EguInterruptHandler;
    CLOCK_POWER => nrf_mpsl::ClockInterruptHandler;
    RADIO => nrf_mpsl::HighPrioInterruptHandler;
    TIMER0 => nrf_mpsl::HighPrioInterruptHandler;
    RTC0 => nrf_mpsl::HighPrioInterruptHandler;
    RTC2 => nrf_802154::LpTimerInterruptHandler;
});

static MPSL: StaticCell<MultiprotocolServiceLayer<'static>> = StaticCell::new();
static RNG: StaticCell<Rng<'static, Blocking>> = StaticCell::new();

#[embassy_executor::task]
async fn clocks(mpsl: &'static MultiprotocolServiceLayer<'static>) {
    mpsl.run().await;
}

#[embassy_executor::task]
async fn radio(ot: OpenThread<'static>, radio: OpenThreadRadio<'static>) {
    ot.run(radio).await;
}

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    let mut config = embassy_nrf::config::Config::default();
    // MPSL has priorities 0 and 1 for itself.
    config.time_interrupt_priority = Priority::P2;
    let p = embassy_nrf::init(config);
    let its = Peripherals::new(p.RTC0, p.TIMER0, p.TEMP, p.PPI_CH19, p.PPI_CH30, p.PPI_CH31);
    let mpsl = MultiprotocolServiceLayer::new(its, Irqs, SLOW_CLOCK).unwrap();
    let mpsl = &*MPSL.init(mpsl);
    spawner.spawn(clocks(mpsl).unwrap());
    let its = RadioPeripherals::new(p.EGU0, p.TIMER2, p.RTC2);
    let driver = OpenThreadRadio::new(Radio::new(p.RADIO, its, Irqs, mpsl));
    let rng = RNG.init(Rng::new_blocking(p.RNG));
    let (ot, stack) = start(spawner, eui64(), rng, DATASET).unwrap();
    spawner.spawn(radio(ot, driver).unwrap());
    report(stack).await;
}

/// The chip's number as an EUI-64: not of a group, and of no registered maker (IEEE 802, U/L bit).
fn eui64() -> [u8; 8] {
    let low = u64::from(FICR.deviceid(0).read());
    let high = u64::from(FICR.deviceid(1).read());
    let [first, rest @ ..] = (high << 32 | low).to_be_bytes();
    let [a, b, c, d, e, f, g] = rest;
    [first & !1 | 2, a, b, c, d, e, f, g]
}

/// The slow clock from the chip's own oscillator, as every board has it.
const SLOW_CLOCK: raw::mpsl_clock_lfclk_cfg_t = raw::mpsl_clock_lfclk_cfg_t {
    source: raw::MPSL_CLOCK_LF_SRC_RC as u8,
    rc_ctiv: raw::MPSL_RECOMMENDED_RC_CTIV as u8,
    rc_temp_ctiv: raw::MPSL_RECOMMENDED_RC_TEMP_CTIV as u8,
    accuracy_ppm: raw::MPSL_DEFAULT_CLOCK_ACCURACY_PPM as u16,
    skip_wait_lfclk_started: raw::MPSL_DEFAULT_SKIP_WAIT_LFCLK_STARTED != 0,
};

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    cortex_m::peripheral::SCB::sys_reset()
}
