//! OpenThread below, Motet above, and the tasks between.

use core::net::Ipv6Addr;

use embassy_executor::{SpawnError, Spawner};
use embassy_futures::join::join;
use embassy_net_driver_channel as channel;
use embassy_net_driver_channel::driver::{HardwareAddress, LinkState};
use embassy_time::Timer;
use motet_embassy::{OverError, PacketResources, PacketRunner, Stack, StackConfig, over};
use openthread::{OpenThread, OtError, OtResources, OtRng, SimpleRamSettings};
use static_cell::{ConstStaticCell, StaticCell};

/// Why a device does not start.
#[derive(Debug)]
pub enum Refused {
    /// OpenThread takes no such dataset, or is started already.
    OpenThread(OtError),
    /// Motet takes no such driver.
    Motet(OverError),
    /// No room for a task.
    Task(SpawnError),
}

/// Starts OpenThread with the network's dataset, and the tasks that carry packets between it and
/// Motet's sockets. The chip's own task has to run the radio: `OpenThread::run`.
///
/// # Errors
/// [`Refused`].
pub fn start(
    spawner: Spawner,
    eui64: [u8; 8],
    rng: &'static mut dyn OtRng,
    dataset: &str,
) -> Result<(OpenThread<'static>, Stack), Refused> {
    let seed = [rng.next_u64(), rng.next_u64()];
    let settings = SETTINGS.init(SimpleRamSettings::new(SETTINGS_BYTES.take()));
    let resources = OPENTHREAD.init(OtResources::new());
    let ot = OpenThread::new(eui64, rng, settings, resources)?;
    ot.set_active_dataset_tlv_hexstr(dataset)?;
    // A child that is always awake, and needs stable network data alone.
    ot.set_link_mode(true, false, false)?;
    ot.enable_ipv6(true)?;
    ot.enable_thread(true)?;
    ot.enable_ipv6_rx(true);

    let (below, driver) = channel::new(CHANNEL.take(), HardwareAddress::Ip);
    let (link, inward, outward) = below.split();
    let config = StackConfig::packets();
    let (stack, runner) = over(driver, &SOCKETS, &[], seed, config).map_err(Refused::Motet)?;
    spawner.spawn(sockets(runner)?);
    spawner.spawn(packets(ot.clone(), inward, outward)?);
    spawner.spawn(follow(ot.clone(), link, stack)?);
    Ok((ot, stack))
}

#[embassy_executor::task]
async fn sockets(mut runner: PacketRunner<channel::Device<'static, MTU>>) {
    runner.run().await;
}

/// Stands in the place of the crate's own runner, which panics where OpenThread refuses a packet.
#[embassy_executor::task]
async fn packets(
    ot: OpenThread<'static>,
    mut inward: channel::RxRunner<'static, MTU>,
    mut outward: channel::TxRunner<'static, MTU>,
) {
    let inward = async {
        loop {
            let place = inward.rx_buf().await;
            if let Ok(len) = ot.rx(place).await {
                inward.rx_done(len);
            }
        }
    };
    let outward = async {
        loop {
            let packet = outward.tx_buf().await;
            // What waits holds Motet back: OpenThread takes more than its queue holds, and drops
            // it.
            let mut waits = 0;
            while is_busy(&ot) && waits < WAITS_MAX {
                waits += 1;
                Timer::after_millis(WAIT_MS).await;
            }
            // OpenThread has no buffer, or the device is detached.
            while ot.tx(packet).is_err() && waits < 2 * WAITS_MAX {
                waits += 1;
                Timer::after_millis(WAIT_MS).await;
            }
            outward.tx_done();
        }
    };
    let _: ((), ()) = join(inward, outward).await;
}

/// Whether OpenThread has still to send the most of a packet, by its message buffers in use.
fn is_busy(ot: &OpenThread<'_>) -> bool {
    let buffers = ot.buffer_info();
    buffers.total.saturating_sub(buffers.free) > IN_USE_MAX
}

/// Tells Motet what changes below: whether the device is attached, and its addresses.
#[embassy_executor::task]
async fn follow(ot: OpenThread<'static>, link: channel::StateRunner<'static>, stack: Stack) {
    loop {
        let is_attached = ot.net_status().role.is_connected();
        link.set_link_state(match is_attached {
            true => LinkState::Up,
            false => LinkState::Down,
        });
        let mut addresses = heapless::Vec::<Ipv6Addr, ADDRESSES_MAX>::new();
        let _listed = ot.ipv6_addrs(|addr| {
            let lasting = addr.map(|(addr, _)| addr).filter(|addr| !is_locator(addr));
            let _fits = lasting.is_none_or(|addr| addresses.push(addr).is_ok());
            Ok(())
        });
        let _taken = stack.set_addresses(&addresses);
        ot.wait_changed().await;
    }
}

/// Whether `addr` says where in the network a device is: another one after its next parent.
fn is_locator(addr: &Ipv6Addr) -> bool {
    matches!(addr.segments(), [.., 0, 0xff, 0xfe00, _])
}

impl From<OtError> for Refused {
    fn from(error: OtError) -> Self {
        Self::OpenThread(error)
    }
}

impl From<SpawnError> for Refused {
    fn from(error: SpawnError) -> Self {
        Self::Task(error)
    }
}

/// Of Thread, and of IPv6.
const MTU: usize = 1280;
/// Of one device, in Motet's tables.
const ADDRESSES_MAX: usize = 4;
/// Message buffers (128 bytes each) in use with which OpenThread gets another packet. A packet of
/// 1,280 bytes takes 11 of them, and 13 frames of the 100 that its queue holds
/// (`OPENTHREAD_CONFIG_MAX_FRAMES_IN_DIRECT_TX_QUEUE`). So two packets at most wait there.
const IN_USE_MAX: u16 = 12;
const WAIT_MS: u64 = 5;
/// A second; then OpenThread gets the packet, or it is lost, as in a network.
const WAITS_MAX: u32 = 200;

/// Two connections of 4 KiB each way: MQTT's and HTTP's.
static SOCKETS: PacketResources<2, 4096> = PacketResources::new();
/// Four packets for Motet, and one of its own: it makes the next one when this has left.
static CHANNEL: ConstStaticCell<channel::State<MTU, 4, 1>> =
    ConstStaticCell::new(channel::State::new());
static OPENTHREAD: StaticCell<OtResources> = StaticCell::new();
/// OpenThread's settings. They are lost at a restart: the device attaches as a new one then.
static SETTINGS: StaticCell<SimpleRamSettings<'static>> = StaticCell::new();
static SETTINGS_BYTES: ConstStaticCell<[u8; 1024]> = ConstStaticCell::new([0; 1024]);
