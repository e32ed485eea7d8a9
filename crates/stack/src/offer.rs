//! The offer of the path to a peer, for TCP.
//!
//! Place: at the floor, beside [`limits`](crate::limits). The link at which a path begins computes
//! frame sizes and header compression, `tcp` makes segments, and neither may import the other.
//! `node` gets an [`Offer`] from the link and passes it to `tcp`, with `Tcp::connect` and with each
//! segment that begins a connection.
//! Left out: the room for a single segment, which is computed when the segment is made.

/// The sizes that the path to a peer carries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Offer {
    /// The largest segment to send: bytes of payload and TCP options, as the MSS option counts
    /// them (RFC 6691).
    pub smss: u16,
    /// The largest segment that the peer should send: what the MSS option announces to it.
    /// Smaller than `smss` where the peer cannot know how long its headers become on the way.
    pub rmss: u16,
    /// The most bytes in flight, hence also the largest window, either way.
    ///
    /// An announced window must not shrink (RFC 9293 §3.8.6), and a connection may move to another
    /// interface, so a node uses the least value of all its links, from its start. Only header
    /// compression limits it, so TCP uses it only with the feature `tcphc`.
    pub flight_max: u16,
}

/// Whether a link of this build bounds the flight.
pub(crate) const BOUNDS_FLIGHT: bool = cfg!(feature = "tcphc");

impl Offer {
    /// A path without bounds of its own: the settings and the peer have theirs.
    pub const UNBOUNDED: Self = Self {
        smss: u16::MAX,
        rmss: u16::MAX,
        flight_max: u16::MAX,
    };
}
