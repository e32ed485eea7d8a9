//! The calls of TCP.

/// Every call that TCP has, by address: behind the black box anybody may make it with any
/// arguments, so that none is left out and none is cut to what one application passes.
pub(super) fn calls() -> &'static [*const ()] {
    use motet::Remote;
    use motet::node::{Node, Rejected};
    use motet::tcp::{Buffers, Config, Connection, Handle, Tcp};
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
        slice_queue as *const (),
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
fn send_with(
    tcp: &mut motet::tcp::Tcp<'static>,
    handle: motet::tcp::Handle,
    now: motet::time::Instant,
    fill: fn(&mut [u8]) -> usize,
) -> Result<usize, motet::tcp::SendError> {
    tcp.send_with(handle, now, fill)
}

/// [`SliceQueue::new`](motet::tcp::SliceQueue::new), where the build has it.
#[cfg(feature = "slices")]
fn slice_queue(
    pieces: &'static mut [motet::tcp::Piece<'static>],
    copies: &'static mut [u8],
) -> motet::tcp::SliceQueue<'static> {
    motet::tcp::SliceQueue::new(pieces, copies)
}

#[cfg(not(feature = "slices"))]
fn slice_queue() {}
