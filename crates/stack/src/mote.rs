//! A mote in a few lines: all its memory in one static, all its settings in one value.

use core::mem::MaybeUninit;

use crate::ip::{self, Ip, Route};
use crate::link::{Link, Mesh, MeshConfig, MeshStorage};
use crate::mac::{self, Unfit};
use crate::node::Node;
use crate::random::Rng;
#[cfg(feature = "tcp-small")]
use crate::tcp::{self, Buffers, Tcp};
#[cfg(feature = "tcp-small")]
use crate::tcphc;
use crate::time::Instant;

/// All memory of a node with one mesh link, for one static. It takes no flash.
///
/// `CONNECTIONS`: how many TCP connections at one time; `BUFFER`: bytes each way of each of them.
/// The others are those of [`tcp::Storage`] and [`MeshStorage`], with a route for each
/// registration, and their defaults suit a leaf. A node of another shape lends from those two by
/// itself.
///
/// With the feature `tcphc` each connection compresses its headers where the border router offers
/// it ([`Config::AGREED`](crate::tcphc::Config::AGREED)). That takes 224 bytes on a processor of 32
/// bits, and 84 for each connection, and leaves a connection at most 16,384 bytes in flight.
///
/// ```
/// use motet::{mac::RadioCapabilities, mote::{MoteConfig, MoteStorage}, time::Instant};
///
/// let mut storage = MoteStorage::<2, 2048>::EMPTY; // a static, in firmware
/// let radio = RadioCapabilities::CC2420;
/// let config = MoteConfig::new(0x4d54, *b"Motet\0\0\x01", radio, [1, 2]);
/// let (node, [first, second]) = storage.lend(&config, Instant::ORIGIN)?;
/// # let _ = (node.next_deadline(), first, second);
/// # Ok::<(), motet::mac::Unfit>(())
/// ```
#[derive(Debug)]
pub struct MoteStorage<
    'm,
    const CONNECTIONS: usize,
    const BUFFER: usize,
    const LISTENERS: usize = 1,
    const HALF_OPEN: usize = 2,
    const FRAMES: usize = 8,
    const NEIGHBORS: usize = 4,
    const RECORDS: usize = 2,
    const BODIES: usize = 1,
    const QUEUE: usize = 256,
    const REGISTRATIONS: usize = 0,
> {
    mesh: MeshStorage<FRAMES, NEIGHBORS, RECORDS, BODIES, QUEUE, REGISTRATIONS>,
    routes: [Option<Route>; REGISTRATIONS],
    #[cfg(feature = "tcp-small")]
    tcp: tcp::Storage<'m, CONNECTIONS, BUFFER, LISTENERS, HALF_OPEN>,
    #[cfg(feature = "tcp-small")]
    headers: tcphc::Storage<'m, CONNECTIONS>,
    links: MaybeUninit<[Link<'m>; 1]>,
    node: MaybeUninit<Node<'m>>,
}

/// Settings of one mote, for [`MoteStorage::lend`].
#[derive(Clone, Debug)]
pub struct MoteConfig {
    /// The radio's capabilities.
    pub radio: mac::RadioCapabilities,
    /// Settings of the MAC layer (IEEE 802.15.4).
    pub mac: mac::Config,
    /// Settings of the link above the MAC.
    pub mesh: MeshConfig,
    /// Settings of IP: whether it forwards.
    pub ip: ip::Config,
    /// The seed of all randomness: 128 bits that no other node and no other start has.
    pub seed: [u64; 2],
}

impl MoteConfig {
    /// A leaf of a PAN with the EUI-64 `eui64`, most significant byte first.
    pub fn new(pan: u16, eui64: [u8; 8], radio: mac::RadioCapabilities, seed: [u64; 2]) -> Self {
        Self {
            radio,
            mac: mac::Config::new(pan, eui64),
            mesh: MeshConfig::default(),
            ip: ip::Config::default(),
            seed,
        }
    }

    /// Whether the radio can do what the settings ask for.
    ///
    /// # Errors
    /// What it cannot do.
    pub const fn check(&self) -> Result<(), Unfit> {
        self.mesh.check(&self.mac, &self.radio)
    }
}

impl<
    'm,
    const CONNECTIONS: usize,
    const BUFFER: usize,
    const LISTENERS: usize,
    const HALF_OPEN: usize,
    const FRAMES: usize,
    const NEIGHBORS: usize,
    const RECORDS: usize,
    const BODIES: usize,
    const QUEUE: usize,
    const REGISTRATIONS: usize,
>
    MoteStorage<
        'm,
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
    >
{
    /// Memory before it is lent to a node, for use in a `static`.
    pub const EMPTY: Self = Self {
        mesh: MeshStorage::EMPTY,
        routes: [None; REGISTRATIONS],
        #[cfg(feature = "tcp-small")]
        tcp: tcp::Storage::EMPTY,
        #[cfg(feature = "tcp-small")]
        headers: tcphc::Storage::EMPTY,
        links: MaybeUninit::uninit(),
        node: MaybeUninit::uninit(),
    };

    /// Lends everything to one node; returns it, and the buffers for its connections.
    ///
    /// Call it from a function that is not inlined: what it needs of the stack stays below `main`
    /// for good otherwise.
    ///
    /// # Errors
    /// As [`MoteConfig::check`].
    // Inlined, so that what the settings switch off costs no flash.
    #[cfg(feature = "tcp-small")]
    #[inline(always)]
    pub fn lend(
        &'m mut self,
        config: &MoteConfig,
        now: Instant,
    ) -> Result<(&'m mut Node<'m>, [Buffers<'m>; CONNECTIONS]), Unfit> {
        config.check()?;
        let mut rng = Rng::from_seed(config.seed);
        let mut mesh = mesh(&mut self.mesh, config, &mut rng);
        if let Some(tcphc) = self.headers.lend(now, &mut rng) {
            mesh.set_tcphc(tcphc);
        }
        let links = self.links.write([Link::Mesh(mesh)]);
        let (memory, buffers) = self.tcp.lend();
        let tcp = Tcp::new(memory, &mut rng);
        let ip = Ip::new(config.ip, &mut self.routes);
        Ok((
            self.node.write(Node::new(links, ip, tcp, rng, now)),
            buffers,
        ))
    }

    /// As [`Self::lend`], for a node without TCP.
    ///
    /// # Errors
    /// As [`MoteConfig::check`].
    #[inline(always)]
    pub fn lend_without_tcp(
        &'m mut self,
        config: &MoteConfig,
        now: Instant,
    ) -> Result<&'m mut Node<'m>, Unfit> {
        config.check()?;
        let mut rng = Rng::from_seed(config.seed);
        let mesh = mesh(&mut self.mesh, config, &mut rng);
        let links = self.links.write([Link::Mesh(mesh)]);
        let ip = Ip::new(config.ip, &mut self.routes);
        Ok(self.node.write(Node::without_tcp(links, ip, rng, now)))
    }
}

fn mesh<
    'm,
    const FRAMES: usize,
    const NEIGHBORS: usize,
    const RECORDS: usize,
    const BODIES: usize,
    const QUEUE: usize,
    const REGISTRATIONS: usize,
>(
    storage: &'m mut MeshStorage<FRAMES, NEIGHBORS, RECORDS, BODIES, QUEUE, REGISTRATIONS>,
    config: &MoteConfig,
    rng: &mut Rng,
) -> Mesh<'m> {
    let radio = (config.mac.clone(), config.radio);
    Mesh::of(config.mesh, radio, storage.lend(), rng)
}
