//! What TCP costs. Built as it is, a node whose application makes every call that TCP has, so
//! that no feature can be left out; built without the feature `tcp`, the same node without
//! TCP. `cargo xtask sizes` takes the difference of the two images.
#![no_std]
#![no_main]

#[path = "../panic.rs"]
mod panic;

use core::hint::black_box;

use cortex_m_rt::entry;
use minimal_node::Storage;
use minimal_node::radio::Radio;
use motet::ip::InterfaceId;
use motet::node::{ACTION_LEN_MAX, Action, Event};

#[entry]
fn main() -> ! {
    static mut STORAGE: Storage = Storage::EMPTY;
    static mut PSDU: [u8; 127] = [0; 127];
    static mut OUT: [u8; ACTION_LEN_MAX] = [0; ACTION_LEN_MAX];

    let mut radio = Radio::new();
    let (eui64, seed, now) = (radio.eui64(), radio.seed(), radio.now());
    #[cfg(feature = "tcp")]
    let node = {
        let (node, buffers) = minimal_node::start(STORAGE, eui64, seed, now);
        black_box((buffers, calls(), &minimal_node::SETTINGS));
        node
    };
    #[cfg(not(feature = "tcp"))]
    let node = minimal_node::start_without_tcp(STORAGE, eui64, seed, now);
    loop {
        let now = radio.now();
        if let Some(event) = radio.event(PSDU) {
            node.on_event(InterfaceId(0), Event::Mesh(event), now);
        }
        // The optimiser must assume that the calls behind the black box use the node, too.
        let node = black_box(&mut *node);
        while let Some((_, action)) = node.poll_action(now, OUT) {
            if let Action::Mesh(action) = action {
                radio.perform(action, OUT);
            }
        }
        radio.wake_at(node.next_deadline());
    }
}

/// Every call that TCP has, by address: behind the black box anybody may make it with any
/// arguments, so that none is left out and none is cut to what one application passes.
#[cfg(feature = "tcp")]
fn calls() -> &'static [*const ()] {
    use motet::Remote;
    use motet::node::{Node, Rejected};
    use motet::tcp::{Buffers, Config, Connection, Handle, SliceQueue, Tcp};
    use motet::time::Instant;

    /// [`Node::connect`] of the type that all others turn into.
    fn connect<'m>(
        node: &mut Node<'m>,
        remote: Remote,
        buffers: Buffers<'m>,
        config: &'m Config,
        now: Instant,
    ) -> Result<Handle, Rejected<'m>> {
        node.connect(remote, buffers, config, now)
    }

    &[
        Buffers::new as *const (),
        SliceQueue::new as *const (),
        connect as *const (),
        Tcp::listen as *const (),
        Tcp::unlisten as *const (),
        Tcp::can_accept as *const (),
        Tcp::accept as *const (),
        Tcp::send as *const (),
        send_with as *const (),
        Tcp::send_slice as *const (),
        Tcp::recv as *const (),
        Tcp::peek as *const (),
        Tcp::consume as *const (),
        Tcp::shutdown as *const (),
        Tcp::close as *const (),
        Tcp::abort as *const (),
        Tcp::set_config as *const (),
        Tcp::remove as *const (),
        Tcp::connection as *const (),
        Tcp::poll_changed as *const (),
        Connection::telemetry as *const (),
    ]
}

/// [`Tcp::send_with`](motet::tcp::Tcp::send_with), which has no address until its closure is known.
#[cfg(feature = "tcp")]
fn send_with(
    tcp: &mut motet::tcp::Tcp<'static>,
    handle: motet::tcp::Handle,
    now: motet::time::Instant,
    fill: fn(&mut [u8]) -> usize,
) -> Result<usize, motet::tcp::SendError> {
    tcp.send_with(handle, now, fill)
}
