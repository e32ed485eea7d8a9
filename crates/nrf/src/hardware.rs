//! The chip's own registers, and the driver as a task sees it.

use core::cell::RefCell;
use core::future::poll_fn;
use core::sync::atomic::{Ordering, fence};
use core::task::Poll;

use embassy_nrf::interrupt::typelevel::{self, Binding, Handler, Interrupt};
use embassy_nrf::pac::clock::vals::HfclkstatSrc;
use embassy_nrf::pac::radio::vals;
use embassy_nrf::pac::{CLOCK, FICR, PPI, RADIO, TEMP, TIMER0, timer};
use embassy_nrf::peripherals;
use embassy_nrf::rng::Rng;
use embassy_nrf::{Peri, ppi};
use embassy_sync::blocking_mutex::Mutex;
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use embassy_sync::waitqueue::AtomicWaker;
use embassy_time::{Duration, Ticker};
use motet::mac::{self, Action, RadioCapabilities};
use motet::time::Instant;

use crate::counters::Counters;
use crate::driver::{CAPABILITIES, CrystalOff, Driver};
use crate::filter::Filter;
use crate::packet::{Frames, Packet};
use crate::registers::{Event, HEAD_BITS, Registers, Shortcuts, State, Task};

/// The radio of the nRF52840.
pub struct Radio {
    check: Ticker,
}

/// The chip's EUI-64: the number that its maker gave it, marked as locally administered.
pub fn eui64() -> [u8; 8] {
    let [mut first, rest @ ..] = (u64::from(FICR.deviceid(1).read()) << 32
        | u64::from(FICR.deviceid(0).read()))
    .to_be_bytes();
    // Not of a group, and of no registered maker (IEEE 802, U/L bit).
    first = first & !1 | 2;
    let [a, b, c, d, e, f, g] = rest;
    [first, a, b, c, d, e, f, g]
}

/// 128 bits from the chip's source of noise; waits some milliseconds for them.
pub fn seed(rng: Peri<'_, peripherals::RNG>) -> [u64; 2] {
    let mut rng = Rng::new_blocking(rng);
    let mut word = || {
        let mut bytes = [0; 8];
        rng.blocking_fill_bytes(&mut bytes);
        u64::from_le_bytes(bytes)
    };
    [word(), word()]
}

/// The handler that the interrupt RADIO is bound to.
pub struct InterruptHandler;

impl Radio {
    /// Sets the radio up, listening on channel 26. It takes TIMER0, TEMP for the strength of
    /// signals, one channel of PPI, and number 20 of those that are wired for it.
    ///
    /// # Errors
    /// The high-frequency clock does not run from the crystal: `embassy_nrf::init` has to be asked
    /// for that (`embassy_nrf::config::HfclkSource::ExternalXtal`).
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the channel is the radio's from now on"
    )]
    pub fn new(
        _radio: Peri<'static, peripherals::RADIO>,
        _timer: Peri<'static, peripherals::TIMER0>,
        _temp: Peri<'static, peripherals::TEMP>,
        channel: Peri<'static, impl ppi::ConfigurableChannel>,
        _irqs: impl Binding<typelevel::RADIO, InterruptHandler>,
    ) -> Result<Self, CrystalOff> {
        set_up(channel.number());
        let new = Driver::new(Chip, &FRAMES)?;
        DRIVER.lock(|driver| {
            if let Ok(mut driver) = driver.try_borrow_mut() {
                *driver = Some(new);
            }
        });
        typelevel::RADIO::unpend();
        #[expect(unsafe_code, reason = "an interrupt is allowed by an unsafe call")]
        // SAFETY: no critical section relies on this interrupt being off.
        unsafe {
            typelevel::RADIO::enable();
        }
        Ok(Self {
            check: Ticker::every(CHECK_EVERY),
        })
    }

    /// Sends from the next frame on with the most power that is not above this, or with the least;
    /// returns which, dBm: -40 to 8. Until then it is 0 dBm.
    pub fn set_power_dbm(&mut self, dbm: i8) -> i8 {
        with(|driver| driver.set_power_dbm(dbm)).unwrap_or_default()
    }

    /// The counts of frames and interrupts.
    pub fn counters(&self) -> Counters {
        with(|driver| driver.counters()).unwrap_or_default()
    }
}

impl motet_embassy::Radio for Radio {
    fn capabilities(&self) -> RadioCapabilities {
        CAPABILITIES
    }

    fn set_addresses(&mut self, config: &mac::Config) {
        with(|driver| driver.set_filter(Filter::of(config)));
    }

    fn perform(&mut self, action: Action, bytes: &[u8]) {
        with(|driver| driver.perform(action, bytes));
        // What it had to say at once.
        WAKER.wake();
    }

    async fn event<'a>(&mut self, psdu: &'a mut [u8; 127]) -> mac::Event<'a> {
        poll_fn(|cx| {
            WAKER.register(cx.waker());
            // Makes up for interrupts that were lost.
            if core::pin::pin!(self.check.next()).poll(cx).is_ready() {
                with(Driver::check);
            }
            match with(|driver| driver.has_report()) {
                Some(true) => Poll::Ready(()),
                _ => Poll::Pending,
            }
        })
        .await;
        let now = Instant::from_micros(embassy_time::Instant::now().as_micros());
        // There is a report, since only this future takes any.
        with(|driver| driver.poll(now, psdu))
            .flatten()
            .unwrap_or(mac::Event::Preloaded)
    }
}

impl Handler<typelevel::RADIO> for InterruptHandler {
    #[expect(unsafe_code, reason = "the trait says so; nothing in it is unsafe")]
    unsafe fn on_interrupt() {
        let has_report = with(|driver| {
            driver.on_interrupt();
            driver.has_report()
        });
        if has_report == Some(true) {
            WAKER.wake();
        }
    }
}

/// Calls `act` with the driver; `None` before there is one.
fn with<T>(act: impl FnOnce(&mut Driver<Chip>) -> T) -> Option<T> {
    DRIVER.lock(|driver| Some(act(driver.try_borrow_mut().ok()?.as_mut()?)))
}

/// The registers of the one chip.
struct Chip;

impl Registers for Chip {
    fn trigger(&mut self, task: Task) {
        let register = match task {
            Task::TransmitEnable => RADIO.tasks_txen(),
            Task::ReceiveEnable => RADIO.tasks_rxen(),
            Task::Start => RADIO.tasks_start(),
            Task::Disable => RADIO.tasks_disable(),
        };
        register.write_value(1);
    }

    fn is_set(&self, event: Event) -> bool {
        register_of(event).read() != 0
    }

    fn clear(&mut self, event: Event) {
        register_of(event).write_value(0);
        // Read back: the write is through before the interrupt ends, and does not bring it again.
        let _done = register_of(event).read();
    }

    fn set_shortcuts(&mut self, shortcuts: Shortcuts) {
        RADIO.shorts().write(|w| match shortcuts {
            Shortcuts::None => {}
            Shortcuts::Receive => {
                w.set_disabled_rxen(true);
                w.set_rxready_start(true);
                w.set_address_rssistart(true);
                w.set_framestart_bcstart(true);
            }
            Shortcuts::Assess => {
                w.set_disabled_rxen(true);
                w.set_rxready_ccastart(true);
            }
            Shortcuts::Transmit => {
                w.set_txready_start(true);
                w.set_phyend_disable(true);
            }
        });
    }

    fn set_packet(&mut self, packet: &'static Packet) {
        RADIO.packetptr().write_value(packet.address());
    }

    fn fence(&mut self) {
        // For the compiler and, as ARM asks for before and after DMA, for the processor.
        fence(Ordering::SeqCst);
    }

    fn set_channel(&mut self, channel: u8) {
        // Channel 11 is 2,405 MHz, and each has 5 MHz.
        let above_2400_mhz = channel.saturating_sub(10).saturating_mul(5);
        RADIO.frequency().write(|w| w.set_frequency(above_2400_mhz));
    }

    fn set_power_dbm(&mut self, dbm: i8) {
        // The register has dBm in two's complement.
        let power = vals::Txpower::from_bits(dbm as u8);
        RADIO.txpower().write(|w| w.set_txpower(power));
    }

    fn set_busy_energy(&mut self, energy: u8) {
        RADIO.ccactrl().modify(|w| w.set_ccaedthres(energy));
    }

    fn state(&self) -> State {
        match RADIO.state().read().state() {
            vals::State::RxRu | vals::State::TxRu => State::RampingUp,
            vals::State::RxIdle => State::ReceiveIdle,
            vals::State::Rx => State::Receiving,
            vals::State::TxIdle | vals::State::Tx => State::Transmitting,
            vals::State::RxDisable | vals::State::TxDisable => State::RampingDown,
            _ => State::Disabled,
        }
    }

    fn is_crc_good(&self) -> bool {
        RADIO.crcstatus().read().crcstatus() == vals::Crcstatus::CrcOk
    }

    fn rssi_dbm(&self) -> i8 {
        // Seven bits, the strength without its sign.
        -(RADIO.rssisample().read().rssisample() as i8)
    }

    fn has_crystal(&self) -> bool {
        let clock = CLOCK.hfclkstat().read();
        clock.state() && clock.src() == HfclkstatSrc::Xtal
    }

    fn heat(&mut self) -> i32 {
        // Two's complement.
        let heat = TEMP.temp().read() as i32;
        TEMP.tasks_start().write_value(1);
        heat
    }

    fn count(&mut self) -> u32 {
        TIMER0.tasks_capture(NOW).write_value(1);
        TIMER0.cc(NOW).read()
    }

    fn captured(&self) -> u32 {
        TIMER0.cc(END).read()
    }

    fn transmit_at(&mut self, count: Option<u32>) {
        match count {
            Some(count) => {
                TIMER0.cc(RAMP_UP).write_value(count);
                PPI.chenset().write(|w| w.set_ch(RAMP_UP_CHANNEL, true));
            }
            None => PPI.chenclr().write(|w| w.set_ch(RAMP_UP_CHANNEL, true)),
        }
    }
}

fn register_of(event: Event) -> embassy_nrf::pac::common::Reg<u32, embassy_nrf::pac::common::RW> {
    match event {
        Event::FrameStart => RADIO.events_framestart(),
        Event::HeadMatch => RADIO.events_bcmatch(),
        Event::PhyEnd => RADIO.events_phyend(),
        Event::ChannelClear => RADIO.events_ccaidle(),
        Event::ChannelBusy => RADIO.events_ccabusy(),
    }
}

/// Sets the registers that never change: the format of IEEE 802.15.4, the timer, and the channels
/// of PPI; and measures the temperature.
fn set_up(channel: usize) {
    RADIO.power().write(|w| w.set_power(false));
    RADIO.power().write(|w| w.set_power(true));
    RADIO
        .mode()
        .write(|w| w.set_mode(vals::Mode::Ieee802154250kbit));
    RADIO.modecnf0().write(|w| {
        w.set_ru(vals::Ru::Fast);
        w.set_dtx(vals::Dtx::Center);
    });
    RADIO.crccnf().write(|w| {
        w.set_len(vals::Len::Two);
        w.set_skipaddr(vals::Skipaddr::Ieee802154);
    });
    RADIO.crcpoly().write(|w| w.set_crcpoly(CRC_POLYNOMIAL));
    RADIO.pcnf0().write(|w| {
        w.set_lflen(8);
        w.set_plen(vals::Plen::_32bitZero);
        w.set_crcinc(vals::Crcinc::Include);
    });
    RADIO.pcnf1().write(|w| w.set_maxlen(PSDU_LEN_MAX));
    RADIO.ccactrl().write(|w| {
        w.set_ccamode(vals::Ccamode::CarrierOrEdMode);
        w.set_ccacorrthres(CCA_CORRELATION);
        w.set_ccacorrcnt(CCA_CORRELATIONS);
    });
    RADIO.bcc().write_value(HEAD_BITS);
    RADIO.intenset().write(|w| {
        w.set_bcmatch(true);
        w.set_phyend(true);
        w.set_ccaidle(true);
        w.set_ccabusy(true);
    });
    TIMER0
        .bitmode()
        .write(|w| w.set_bitmode(timer::vals::Bitmode::_32bit));
    // 16 MHz by 2^4.
    TIMER0.prescaler().write(|w| w.set_prescaler(4));
    TIMER0.tasks_start().write_value(1);
    let ends = PPI.ch(channel);
    ends.eep()
        .write_value(RADIO.events_phyend().as_ptr().addr() as u32);
    ends.tep()
        .write_value(TIMER0.tasks_capture(END).as_ptr().addr() as u32);
    PPI.chenset().write(|w| w.set_ch(channel, true));
    TEMP.events_datardy().write_value(0);
    TEMP.tasks_start().write_value(1);
    // 36 µs; a bound all the same.
    for _ in 0..MEASURE_LOOKS {
        if TEMP.events_datardy().read() != 0 {
            break;
        }
    }
}

static DRIVER: Mutex<CriticalSectionRawMutex, RefCell<Option<Driver<Chip>>>> =
    Mutex::new(RefCell::new(None));
static FRAMES: Frames = Frames::new();
static WAKER: AtomicWaker = AtomicWaker::new();

/// How often [`Driver::check`] looks for a radio that is stuck.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// How often [`set_up`] looks for a temperature at most: milliseconds.
const MEASURE_LOOKS: u32 = 50_000;

/// Compare and capture registers of TIMER0: where a ramp-up is due, the end of a frame, now. The
/// first is the one that [`RAMP_UP_CHANNEL`] is wired to.
const RAMP_UP: usize = 0;
const END: usize = 1;
const NOW: usize = 3;

/// The PPI channel from TIMER0's COMPARE\[0\] to RADIO's TXEN (pre-programmed).
const RAMP_UP_CHANNEL: usize = 20;

/// x^16 + x^12 + x^5 + 1 (IEEE 802.15.4-2006 §7.2.1.9), from 0 on, which is the register's reset
/// value.
const CRC_POLYNOMIAL: u32 = 0x1_1021;

const PSDU_LEN_MAX: u8 = 127;

/// How alike a carrier must be, and how often, to count.
const CCA_CORRELATION: u8 = 45;
const CCA_CORRELATIONS: u8 = 2;
