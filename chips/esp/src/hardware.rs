//! The driver of `esp-radio`.

use esp_hal::efuse;
use esp_hal::peripherals::IEEE802154;
use esp_hal::rng::Rng;
use esp_radio::ieee802154::{CcaMode, Config, Ieee802154, RawReceived};
use motet_embassy::offload::{Driver, Port, Shared, now};

use crate::chip::{Configuration, Esp, Hardware};
use crate::raw::Raw;
use crate::reports::{Reports, Transmission};

/// The radio of the chip.
pub struct Radio {
    driver: Ieee802154<'static>,
    power_dbm: i8,
}

/// Starts the radio; it sends with at most `power_dbm`. Needs a heap for its queue, 3 KiB, and the
/// clock of `embassy-time`.
///
/// # Panics
/// When `shared` has a radio already.
pub fn new(
    radio: IEEE802154<'static>,
    power_dbm: i8,
    shared: &'static Shared,
) -> (Port, Driver<Esp<Radio>>) {
    let mut driver = Ieee802154::new(radio);
    driver.set_tx_done_callback_fn(|| REPORTS.on_transmission(Transmission::Done, now()));
    driver.set_tx_failed_callback_fn(|| REPORTS.on_transmission(Transmission::Failed, now()));
    driver.set_rx_available_callback_fn(|| REPORTS.on_frame(now()));
    let radio = Radio { driver, power_dbm };
    shared.attach(Esp::new(radio, &REPORTS))
}

/// The chip's EUI-64, made of its 48-bit address, most significant byte first.
pub fn eui64() -> [u8; 8] {
    let mut eui64 = [0, 0, 0, 0xff, 0xfe, 0, 0, 0];
    let address = efuse::base_mac_address();
    let (vendor, device) = address.as_bytes().split_at(3);
    if let Some(place) = eui64.get_mut(..3) {
        place.copy_from_slice(vendor);
    }
    if let Some(place) = eui64.get_mut(5..) {
        place.copy_from_slice(device);
    }
    eui64
}

/// 128 random bits. They come from the noise of the radio, and are true ones only after it was
/// started.
pub fn seed() -> [u64; 2] {
    let rng = Rng::new();
    let word = || u64::from(rng.random()) << 32 | u64::from(rng.random());
    [word(), word()]
}

impl Hardware for Radio {
    fn configure(&mut self, configuration: &Configuration) {
        self.driver.set_config(Config {
            auto_ack_tx: true,
            auto_ack_rx: true,
            enhance_ack_tx: false,
            promiscuous: false,
            coordinator: false,
            rx_when_idle: configuration.is_listening,
            txpower: self.power_dbm,
            channel: configuration.channel,
            cca_threshold: BUSY_DBM,
            cca_mode: CcaMode::Ed,
            pan_id: Some(configuration.pan),
            short_addr: Some(configuration.short),
            // It takes the value, and sends its bytes in the order of the air.
            ext_addr: Some(u64::from_be_bytes(configuration.extended)),
            rx_queue_size: QUEUE,
        });
    }

    fn listen(&mut self) {
        self.driver.start_receive();
    }

    fn transmit(&mut self, psdu: &[u8]) {
        // It gives no error; a frame of 127 bytes at most has room in its buffer.
        let _always_ok = self.driver.transmit_raw(psdu, true);
    }

    fn take(&mut self) -> Option<Raw> {
        self.driver.raw_received().map(raw)
    }

    fn ack(&self) -> Option<Raw> {
        self.driver.get_ack_frame().map(raw)
    }

    fn random(&mut self) -> u32 {
        Rng::new().random()
    }
}

fn raw(received: RawReceived) -> Raw {
    Raw {
        data: received.data,
        channel: received.channel,
    }
}

static REPORTS: Reports = Reports::new();

/// Energy beyond which a channel counts as busy, dBm.
const BUSY_DBM: i8 = -75;

/// Frames that wait for the task.
const QUEUE: usize = 10;
