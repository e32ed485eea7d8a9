//! All memory of a mote in one static, and the call that starts it.

use motet::mac::Unfit;
use motet::mote::{MoteConfig, MoteStorage};
use motet::udp::Inbox;
use static_cell::{ConstStaticCell, StaticCell};

use crate::clock::now;
use crate::config::Config;
use crate::parts::{Parts, Tables, share, window_of};
use crate::runner::{Radio, Runner};
use crate::stack::{Shared, Stack};
use crate::udp::UDP_PORTS;

/// All memory of one mote, for one static.
///
/// `CONNECTIONS`: TCP connections at one time; `BUFFER`: bytes each way of each of them;
/// `DATAGRAMS`: bytes of UDP datagrams that wait, 46 more than the payload of each, 0: no UDP and
/// no asking for names; `LISTENERS`: ports to listen at. The others are those of [`MoteStorage`],
/// and their defaults suit a leaf. A datagram waits in `QUEUE` for the air, and takes 54 bytes more
/// than its payload there: by default the longest payload is 202 bytes. `REGISTRATIONS`: neighbours
/// below a mote that passes packets on, whether they sleep or not; a leaf needs none.
pub struct Resources<
    const CONNECTIONS: usize,
    const BUFFER: usize,
    const DATAGRAMS: usize = 0,
    const LISTENERS: usize = 1,
    const HALF_OPEN: usize = 2,
    const FRAMES: usize = 8,
    const NEIGHBORS: usize = 4,
    const RECORDS: usize = 2,
    const BODIES: usize = 1,
    const QUEUE: usize = 256,
    const REGISTRATIONS: usize = 0,
> {
    mote: ConstStaticCell<
        MoteStorage<
            'static,
            CONNECTIONS,
            BUFFER,
            LISTENERS,
            HALF_OPEN,
            FRAMES,
            NEIGHBORS,
            RECORDS,
            BODIES,
            QUEUE,
            REGISTRATIONS,
        >,
    >,
    tables: StaticCell<Tables<CONNECTIONS, LISTENERS>>,
    datagrams: ConstStaticCell<([u16; UDP_PORTS], [u8; DATAGRAMS])>,
    shared: StaticCell<Shared>,
}

impl<
    const CONNECTIONS: usize,
    const BUFFER: usize,
    const DATAGRAMS: usize,
    const LISTENERS: usize,
    const HALF_OPEN: usize,
    const FRAMES: usize,
    const NEIGHBORS: usize,
    const RECORDS: usize,
    const BODIES: usize,
    const QUEUE: usize,
    const REGISTRATIONS: usize,
>
    Resources<
        CONNECTIONS,
        BUFFER,
        DATAGRAMS,
        LISTENERS,
        HALF_OPEN,
        FRAMES,
        NEIGHBORS,
        RECORDS,
        BODIES,
        QUEUE,
        REGISTRATIONS,
    >
{
    /// Memory that no mote uses yet. It takes no flash.
    #[expect(
        clippy::new_without_default,
        reason = "it is for a static, which needs a constant"
    )]
    pub const fn new() -> Self {
        Self {
            mote: ConstStaticCell::new(MoteStorage::EMPTY),
            tables: StaticCell::new(),
            datagrams: ConstStaticCell::new(([0; UDP_PORTS], [0; DATAGRAMS])),
            shared: StaticCell::new(),
        }
    }

    // Not inlined: what starting needs of the call stack does not stay below `main`.
    #[inline(never)]
    fn start(
        &'static self,
        radio: motet::mac::RadioCapabilities,
        eui64: [u8; 8],
        seed: [u64; 2],
        config: &mut Config,
    ) -> Result<Stack, Unfit> {
        config.stack.tcp.accept_window = window_of(BUFFER);
        let mote = MoteConfig {
            radio,
            mac: config.mac.clone(),
            mesh: config.mesh,
            ip: config.stack.ip,
            seed,
        };
        let (node, buffers) = self.mote.take().lend(&mote, now())?;
        if DATAGRAMS > 0 {
            let (ports, bytes) = self.datagrams.take();
            node.set_inbox(Inbox::with_places(ports, bytes));
        }
        let shared = share(Parts {
            node,
            tables: self.tables.init(Tables::new(buffers, config.stack.tcp)),
            seed,
            salt: u64::from_be_bytes(eui64),
            config: config.stack.clone(),
        });
        Ok(Stack::new(self.shared.init(shared)))
    }
}

/// Starts a mote: a [`Stack`] for the application, and the [`Runner`] that one task has to run.
///
/// `eui64`: its link address, most significant byte first; `seed`: 128 bits from a true source of
/// randomness, that no other mote and no other start has.
///
/// # Errors
/// What the radio cannot do, and the settings ask for.
///
/// # Panics
/// When `resources` are in use already.
pub fn new<
    R: Radio,
    const CONNECTIONS: usize,
    const BUFFER: usize,
    const DATAGRAMS: usize,
    const LISTENERS: usize,
    const HALF_OPEN: usize,
    const FRAMES: usize,
    const NEIGHBORS: usize,
    const RECORDS: usize,
    const BODIES: usize,
    const QUEUE: usize,
    const REGISTRATIONS: usize,
>(
    resources: &'static Resources<
        CONNECTIONS,
        BUFFER,
        DATAGRAMS,
        LISTENERS,
        HALF_OPEN,
        FRAMES,
        NEIGHBORS,
        RECORDS,
        BODIES,
        QUEUE,
        REGISTRATIONS,
    >,
    mut radio: R,
    eui64: [u8; 8],
    seed: [u64; 2],
    mut config: Config,
) -> Result<(Stack, Runner<R>), Unfit> {
    config.mac.extended = eui64;
    radio.set_addresses(&config.mac);
    let stack = resources.start(radio.capabilities(), eui64, seed, &mut config)?;
    Ok((stack, Runner::new(stack, radio)))
}
