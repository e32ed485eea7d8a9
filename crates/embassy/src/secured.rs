//! A mote with a network key, whose frame counters outlive its power.

use core::fmt;
use core::future::Future;
use core::pin::pin;

use embassy_futures::select::{Either, select};
use motet::ip::InterfaceId;
use motet::limits::PSDU_LEN_MAX;
use motet::link::Link;
use motet::mac::security::{Peer, Reservation, Security, SecurityConfig};
use static_cell::{ConstStaticCell, StaticCell};

use crate::clock::now;
use crate::runner::{Radio, Runner};
use crate::stack::LINK;

/// A storage that keeps a [`Reservation`] while the power is gone: a page of flash, a file.
///
/// Two frames of one key with one counter betray both. So a storage must be for one key and one
/// EUI-64, and what it has stored must be what it loads after a power cut at any moment, never
/// something older: write the new one beside the old one, with a checksum, before the old one goes.
/// A storage that cannot be read is an error, never nothing.
pub trait Storage {
    /// Why the storage cannot be read or written.
    type Error: fmt::Debug;

    /// The last reservation that was stored; `None` for a device that has never had this key.
    ///
    /// # Errors
    /// Where that cannot be known: the stored data is damaged, or is not the latest reservation.
    /// The device then needs another key.
    fn load(&mut self) -> impl Future<Output = Result<Option<Reservation>, Self::Error>>;

    /// Stores a reservation; done when no power cut can take it back. Frames go on meanwhile. If it
    /// is dropped the storage holds this reservation or the one before.
    ///
    /// # Errors
    /// Where it is not stored, or the outcome is unknown. The mote then sends with the counters
    /// that it has, stops when they run out, and asks again after 10 s.
    fn store(&mut self, reservation: Reservation) -> impl Future<Output = Result<(), Self::Error>>;
}

/// The memory of a mote's security, for one static. `PEERS`: neighbours that are told apart by
/// their counters.
pub struct Secured<const PEERS: usize = 16> {
    peers: ConstStaticCell<[Peer; PEERS]>,
    security: StaticCell<Security<'static>>,
}

impl<const PEERS: usize> Secured<PEERS> {
    /// Memory that no mote uses yet. It takes no flash.
    #[expect(
        clippy::new_without_default,
        reason = "it is for a static, which needs a constant"
    )]
    pub const fn new() -> Self {
        Self {
            peers: ConstStaticCell::new([Peer::EMPTY; PEERS]),
            security: StaticCell::new(),
        }
    }
}

impl<const PEERS: usize> fmt::Debug for Secured<PEERS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secured").finish_non_exhaustive()
    }
}

impl<R: Radio> Runner<R> {
    /// Gives the mote a key, before it runs: every frame is sealed then, and no other believed. Its
    /// counters go on behind those that `storage` has.
    ///
    /// `config`: the settings of a mote that has never sent with this key. The network key and the
    /// sequence to begin with are those that `motet keys network` prints of a key file. Nonces are
    /// made of the EUI-64: [`short_source`](crate::mac::Config::short_source) has to be off.
    ///
    /// # Errors
    /// The storage's, of loading.
    ///
    /// # Panics
    /// When `memory` is in use already.
    pub async fn secure<S: Storage, const PEERS: usize>(
        self,
        memory: &'static Secured<PEERS>,
        config: SecurityConfig,
        mut storage: S,
    ) -> Result<SecuredRunner<R, S>, S::Error> {
        let config = match storage.load().await? {
            Some(stored) => config.resume(stored),
            None => config,
        };
        let security = Security::new(&config, memory.peers.take());
        let security = memory.security.init(security);
        if let Some(Link::Mesh(mesh)) = self.stack.state().node.link_mut(LINK) {
            mesh.set_security(security);
        }
        Ok(SecuredRunner {
            runner: self,
            storage,
            pending: None,
        })
    }
}

/// A [`Runner`] of a mote with a key, and the storage of its counters.
#[derive(Debug)]
pub struct SecuredRunner<R, S> {
    runner: Runner<R>,
    storage: S,
    /// The reservation that is being stored: a call of [`Self::run`] that was dropped leaves it to
    /// the next one.
    pending: Option<(InterfaceId, Reservation)>,
}

impl<R: Radio, S: Storage> SecuredRunner<R, S> {
    /// Runs for good. Nothing happens to any socket while this is not polled. Nothing is sent
    /// before the first counters are stored.
    pub async fn run(&mut self) -> ! {
        let mut psdu = [0; PSDU_LEN_MAX];
        let mut out = [0; PSDU_LEN_MAX];
        let stack = self.runner.stack;
        loop {
            let deadline = self.runner.poll(&mut out);
            let wanted = stack.state().node.poll_reservation(now());
            self.pending = wanted.or(self.pending);
            let Some((interface, reservation)) = self.pending else {
                self.runner.wait(deadline, &mut psdu).await;
                continue;
            };
            let is_stored = self.store(reservation, (&mut psdu, &mut out)).await;
            self.pending = None;
            let mut state = stack.state();
            let node = &mut state.node;
            node.on_reserved(interface, reservation, is_stored, now());
        }
    }

    /// Stores a reservation while frames come and go; says whether it is stored.
    async fn store(
        &mut self,
        reservation: Reservation,
        (psdu, out): (&mut [u8; PSDU_LEN_MAX], &mut [u8; PSDU_LEN_MAX]),
    ) -> bool {
        let Self {
            runner, storage, ..
        } = self;
        let mut stored = pin!(storage.store(reservation));
        loop {
            let deadline = runner.poll(out);
            match select(&mut stored, runner.wait(deadline, psdu)).await {
                Either::First(outcome) => return outcome.is_ok(),
                Either::Second(()) => {}
            }
        }
    }
}
