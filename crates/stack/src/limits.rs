//! Every table size and bound that is not borrowed from the caller, in one place.

/// IPv6's minimum link MTU, bytes (RFC 8200 §5): the largest packet a mesh carries.
pub const IPV6_MTU_MIN: usize = 1280;

/// The longest packet that fragments of IPv6 are put together to, bytes, and that this node cuts:
/// what every node accepts (RFC 8200 §5).
#[cfg(feature = "fragments")]
pub const REASSEMBLED_LEN_MAX: usize = 1500;

/// Routers on a source route, the last one included: each DODAG of Motet's is shallower.
#[cfg(feature = "rpl")]
pub const ROUTE_HOPS_MAX: usize = 16;

/// Bytes that routing puts on top of a packet within the mesh: an outer IPv6 header, and a source
/// route whose addresses differ in their last eight bytes. 0 where the feature `rpl` is off.
pub const ROUTING_LEN_MAX: usize = if cfg!(feature = "rpl") {
    40 + 8 + 15 * 8
} else {
    0
};

/// The longest packet within a mesh, bytes: a body that holds this gathers whatever a mesh with
/// RPL carries.
pub const MESH_PACKET_LEN_MAX: usize = IPV6_MTU_MIN + ROUTING_LEN_MAX;

/// IEEE 802.15.4 `aMaxPHYPacketSize`: PSDU bytes, FCS included.
pub const PSDU_LEN_MAX: usize = 127;

/// The longest payload of a data packet of Bluetooth LE, bytes (Bluetooth Core 5.4, Vol 6, Part B,
/// §2.4).
pub(crate) const BLE_DATA_LEN_MAX: usize = 251;

/// Contexts a 6LoWPAN may define (RFC 6282 §3.1.2: four bits).
pub const CONTEXTS_MAX: usize = 16;

/// Addresses of one node, over all its interfaces.
pub const ADDRESSES_MAX: usize = if cfg!(feature = "thread") { 5 } else { 4 };

/// Longest MAC payload: a PSDU less FCS, frame control, sequence number, one PAN id and two
/// short addresses (IEEE 802.15.4-2006 §7.2.2.2). Longer addresses leave less.
pub const FRAME_PAYLOAD_LEN_MAX: usize = PSDU_LEN_MAX - 2 - 2 - 1 - 2 - 2 - 2;

/// Runs of bytes that TCP's scoreboard tells apart between SND.UNA and SND.NXT: one per
/// segment for the windows of 2 to 8 segments a mote has, and two for what gets split.
pub const SENT_RUNS_MAX: usize = 10;

/// Listeners of one node (a half-open entry refers to one with four bits).
pub const TCP_LISTENERS_MAX: usize = 16;

/// Whether this build can pass on packets of other nodes. Without the feature, they are dropped.
pub(crate) const IS_RELAY: bool = cfg!(feature = "relay");
