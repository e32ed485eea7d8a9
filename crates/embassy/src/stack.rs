//! [`Stack`]: what every task of an application asks for sockets.

use core::cell::{RefCell, RefMut};
use core::fmt;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use embassy_time::{Duration, with_timeout};
use embedded_nal_async::TcpConnect;
use motet::Remote;
use motet::ip::InterfaceId;
use motet::node::Node;
use motet::random::Rng;

use crate::clock::now;
use crate::connection::TcpSocket;
use crate::error::Error;
use crate::listener::TcpListener;
use crate::stack_state::StackState;
use crate::udp::UdpSocket;
use crate::waiters::wait;

/// A mote, as its tasks see it; copies are the same mote.
#[derive(Clone, Copy)]
pub struct Stack {
    shared: &'static Shared,
}

/// The state that all tasks and the runner share.
pub(crate) struct Shared {
    pub(crate) state: RefCell<StackState>,
    pub(crate) names: RefCell<Names>,
    pub(crate) connect_timeout: Duration,
    pub(crate) slot_timeout: Duration,
    /// Whether the mote passes on the packets of others.
    #[cfg(feature = "sleepy")]
    pub(crate) passes_on: bool,
}

/// The names known without asking, and the resolver for others.
pub(crate) struct Names {
    pub(crate) rng: Rng,
    pub(crate) known: &'static [(&'static str, Ipv6Addr)],
    pub(crate) resolver: Option<Ipv6Addr>,
    pub(crate) timeout: Duration,
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack").finish_non_exhaustive()
    }
}

impl Stack {
    pub(crate) const fn new(shared: &'static Shared) -> Self {
        Self { shared }
    }

    /// Never held across an await.
    pub(crate) fn state(self) -> RefMut<'static, StackState> {
        self.shared.state.borrow_mut()
    }

    #[cfg(feature = "sleepy")]
    pub(crate) const fn passes_on(self) -> bool {
        self.shared.passes_on
    }

    pub(crate) fn names(self) -> RefMut<'static, Names> {
        self.shared.names.borrow_mut()
    }

    /// Opens a connection to a port of `remote`, once a place for it is free and within
    /// [`StackConfig::connect_timeout`](crate::StackConfig::connect_timeout) from then on.
    ///
    /// # Errors
    /// [`Error::Refused`], `TimedOut`, `Unreachable`; at once `NotIpv6`, `Address`, `NoRoute`; and
    /// [`Error::NoSlot`] where no place became free within
    /// [`StackConfig::slot_timeout`](crate::StackConfig::slot_timeout).
    pub async fn connect(self, remote: SocketAddr) -> Result<TcpSocket, Error> {
        let remote = remote_of(remote)?;
        let slot = wait(self, |state, cx| state.connect(remote, now(), cx));
        let opened = with_timeout(self.shared.slot_timeout, slot).await;
        // Closes the connection where this future is dropped.
        let mut socket = TcpSocket::new(self, opened.map_err(|_| Error::NoSlot)??);
        let begun = with_timeout(self.shared.connect_timeout, socket.begun()).await;
        begun.map_err(|_| Error::TimedOut)??;
        Ok(socket)
    }

    /// Takes connections to `port`.
    ///
    /// # Errors
    /// [`Error::NoSlot`], `InUse`, `Address` (port 0).
    pub fn listen(self, port: u16) -> Result<TcpListener, Error> {
        let handle = self.state().listen(port)?;
        Ok(TcpListener::new(self, handle))
    }

    /// Opens a UDP port; 0: one of the stack's choice.
    ///
    /// # Errors
    /// [`Error::NoSlot`]: four are open already, or the [`Resources`](crate::Resources) have no
    /// memory for datagrams; `InUse`.
    pub fn udp(self, port: u16) -> Result<UdpSocket, Error> {
        UdpSocket::bind(self, port)
    }

    /// The address that hosts beyond the mesh know this mote by, once a router has given it one.
    pub fn global_address(self) -> Option<Ipv6Addr> {
        self.state().node.global_address()
    }

    /// Waits for [`Self::global_address`].
    pub async fn joined(self) -> Ipv6Addr {
        wait(self, |state, cx| {
            let address = state.node.global_address();
            address.ok_or_else(|| state.address.register(cx))
        })
        .await
    }

    /// The address that neighbours know this mote by.
    pub fn link_local_address(self) -> Option<Ipv6Addr> {
        let state = self.state();
        let mut addresses = state.node.ip().addresses();
        addresses
            .find(|a| a.addr.is_unicast_link_local())
            .map(|a| a.addr)
    }

    /// How many connections could be opened now.
    pub fn free_connections(self) -> usize {
        self.state().free_connections()
    }

    /// Lets `look` ask and set whatever the node offers: routes, settings, counters. It must not
    /// call this crate, nor end, close or remove connections.
    pub fn with_node<T>(self, look: impl FnOnce(&mut Node<'static>) -> T) -> T {
        let mut state = self.state();
        let result = look(state.node);
        state.kick();
        result
    }
}

impl TcpConnect for Stack {
    type Error = Error;
    type Connection<'a> = TcpSocket;

    async fn connect(&self, remote: SocketAddr) -> Result<TcpSocket, Error> {
        Self::connect(*self, remote).await
    }
}

/// The other end of a connection or a datagram's way.
///
/// An IPv4 address that is written as an IPv6 one (RFC 4291 §2.5.5.2) is an IPv4 address still.
pub(crate) fn remote_of(remote: SocketAddr) -> Result<Remote, Error> {
    let SocketAddr::V6(remote) = remote else {
        return Err(Error::NotIpv6);
    };
    if matches!(remote.ip().to_canonical(), IpAddr::V4(_)) {
        return Err(Error::NotIpv6);
    }
    let is_end = remote.port() != 0 && !remote.ip().is_unspecified();
    is_end.then(|| remote.into()).ok_or(Error::Address)
}

/// The node's one link.
pub(crate) const LINK: InterfaceId = InterfaceId(0);
