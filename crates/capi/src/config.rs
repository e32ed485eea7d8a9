//! The settings of a node, and what is wrong with settings that cannot be.

use core::ffi::{CStr, c_char};
use core::ptr;

use motet::link::MeshConfig;
use motet::mac::{self, Pending, RadioCapabilities};
use motet::time::Duration;

use crate::errno::{Errno, MOTET_EINVAL, code};
use crate::memory::{place, value};

/// The radio cannot say that something waits: its node is no parent of nodes that sleep.
pub const MOTET_PENDING_NONE: u8 = 0;
/// One flag for the ACKs of all data requests.
pub const MOTET_PENDING_ONE_FOR_ALL: u8 = 1;
/// A table of neighbours (source match table): the ACKs of all their frames say so.
pub const MOTET_PENDING_PER_NEIGHBOUR: u8 = 2;

/// What a node is, and how much of everything it has. motet_config_init fills it with values for a
/// leaf; addresses and seed are the caller's to set.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct motet_config {
    /// 128 bits that no other node and no other start has, from a true source of randomness.
    pub seed: [u64; 2],
    /// EUI-64, most significant byte first.
    pub eui64: [u8; 8],
    /// PAN identifier.
    pub pan: u16,
    /// Channel, 11 to 26.
    pub channel: u8,
    /// TCP connections at one time, 1 to 255.
    pub connections: u8,
    /// Listeners at one time, 0 to 16.
    pub listeners: u8,
    /// Handshakes at one time, as many as listeners at least.
    pub half_open: u8,
    /// Frames that wait for the air, 4 at least.
    pub frames: u8,
    /// Neighbours that the node knows at one time.
    pub neighbors: u8,
    /// Packets that arrive in fragments at one time, 1 at least.
    pub records: u8,
    /// Bytes each way of each connection, 128 at least.
    pub buffer_len: u16,
    /// Bytes of UDP datagrams that wait, each with 46 bytes more; 0: no UDP.
    pub datagrams_len: u16,
    /// Bytes of whole packets that wait; a datagram takes 54 more than its payload.
    pub queue_len: u16,
    /// Idle time before a peer is asked whether it is there, s; 0: never.
    pub keepalive_idle_s: u16,
    /// Time without progress before a connection fails, ms; 0: as TCP's retransmissions end.
    pub user_timeout_ms: u32,
    /// Not 0: wait for more to send (Nagle's algorithm).
    pub nagle: u8,
    /// Not 0: the radio has one buffer for both directions: a preloaded frame is lost with each reception.
    pub shared_buffer: u8,
    /// Not 0: the radio answers frames with ACKs by itself.
    pub auto_ack: u8,
    /// Not 0: the radio appends and checks the FCS, and frames here are without it.
    pub fcs_by_radio: u8,
    /// Not 0: the radio does CSMA-CA by itself, and answers MOTET_FIRE by motet_on_sent. Then
    /// auto_ack has to be set as well.
    pub assesses: u8,
    /// Not 0: the radio waits for the ACK of a frame by itself, and answers MOTET_FIRE by
    /// motet_on_sent. stamp_delay_max_us is then of no effect.
    pub takes_acks: u8,
    /// The longest time from the end of a frame to its time stamp, us; 0: hardware takes the time.
    pub stamp_delay_max_us: u32,
    /// Time to change the channel, us.
    pub channel_switch_us: u32,
    /// Short address (16 bits) of the node in its PAN; 0xffff: none. Frames to it are accepted; a radio
    /// that filters frames has to be given it, too. Nobody assigns one: each node's is set here.
    pub short_address: u16,
    /// Not 0: frames name the short address as their source, 6 bytes less in each, and the node's
    /// IPv6 addresses follow from it. A node with a key cannot do so: its nonces need the EUI-64.
    pub short_source: u8,
    /// How a radio with auto_ack shows in its ACKs that something waits: MOTET_PENDING_NONE or one of
    /// the others. Only a node with children needs it.
    pub pending: u8,
    /// Nodes below this one at most, whether they sleep or not; 0: a leaf. With any it is a router of the
    /// mesh: it takes part in RPL, passes on the packets of others, and needs `frames` of 12, as
    /// many `neighbors` as children, and some 2,600 bytes in `queue_len`. Takes the feature `relay`.
    pub children: u8,
    /// Bytes of packets that wait for children that sleep, with 7 bytes more for each packet; 0: it
    /// serves none.
    pub children_len: u16,
}

impl motet_config {
    /// Whether the node passes on the packets of others.
    pub(crate) const fn is_router(&self) -> bool {
        cfg!(feature = "relay") && self.children > 0
    }
}

/// Fills a configuration with values for a leaf with two connections of 2 KiB each way.
///
/// # Safety
/// Unless it is null or misaligned, `config` points to room for a configuration.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_config_init(config: *mut motet_config) -> i32 {
    let default = motet_config {
        seed: [0; 2],
        eui64: [0; 8],
        pan: 0xffff,
        channel: CHANNEL,
        connections: 2,
        listeners: 1,
        half_open: 2,
        frames: 8,
        neighbors: 4,
        records: 2,
        buffer_len: 2048,
        datagrams_len: 0,
        queue_len: 256,
        keepalive_idle_s: 90,
        user_timeout_ms: 60_000,
        nagle: 0,
        shared_buffer: 0,
        auto_ack: 0,
        fcs_by_radio: 0,
        assesses: 0,
        takes_acks: 0,
        stamp_delay_max_us: 0,
        channel_switch_us: 48,
        short_address: NO_SHORT,
        short_source: 0,
        pending: MOTET_PENDING_NONE,
        children: 0,
        children_len: 0,
    };
    // SAFETY: the caller's promise.
    code(unsafe { place(config) }.map(|config| {
        config.write(default);
        0
    }))
}

/// What is wrong with a configuration that cannot be, in words; null: nothing. A program that does
/// not call it has none of the words in its flash.
///
/// # Safety
/// Unless it is null or misaligned, `config` points to a configuration.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn motet_config_fault(config: *const motet_config) -> *const c_char {
    // SAFETY: the caller's promise.
    let Ok(config) = (unsafe { value(config) }) else {
        return c"the pointer is null or misaligned".as_ptr();
    };
    fault(&config).map_or(ptr::null(), CStr::as_ptr)
}

/// A configuration that can be.
///
/// # Safety
/// Unless it is null or misaligned, `config` points to a configuration.
pub(crate) unsafe fn read(config: *const motet_config) -> Result<motet_config, Errno> {
    // SAFETY: the caller's promise.
    let config = unsafe { value(config) }?;
    let is_possible = fault(&config).is_none();
    is_possible.then_some(config).ok_or(Errno(MOTET_EINVAL))
}

/// Returns the words of the first fault that there is.
macro_rules! refuse {
    ($($is_fault:expr => $why:literal,)*) => {
        $(if $is_fault {
            return Some($why);
        })*
    };
}

/// What is wrong with a configuration.
// Inlined, so that the words are only where they are asked for.
#[inline(always)]
fn fault(config: &motet_config) -> Option<&'static CStr> {
    refuse! {
        config.connections == 0 => c"connections is 0",
        config.listeners > 16 => c"listeners is above 16",
        config.half_open < config.listeners => c"half_open is below listeners",
        !(11..=26).contains(&config.channel) => c"channel is not 11 to 26",
        config.frames < 4 => c"frames is below 4",
        config.records == 0 => c"records is 0",
        config.buffer_len < 128 => c"buffer_len is below 128",
        config.short_source != 0 && config.short_address >= SHORT_UNASSIGNED =>
            c"short_source is set, and short_address is none",
        !cfg!(feature = "relay") && config.children > 0 =>
            c"children is above 0, and the archive lacks the feature relay",
    }
    if config.is_router() {
        refuse! {
            config.frames < FRAMES_MIN => c"frames is below 12, and children above 0",
            config.neighbors < config.children => c"neighbors is below children",
            config.pending > MOTET_PENDING_PER_NEIGHBOUR =>
                c"pending is none of MOTET_PENDING_NONE, ONE_FOR_ALL, PER_NEIGHBOUR",
            config.children_len > 0 && config.auto_ack != 0 && config.pending == MOTET_PENDING_NONE =>
                c"children_len is above 0, and the radio cannot say that something waits (pending)",
        }
    }
    let (mac, radio) = radio(config);
    // All that such settings can ask in vain.
    let why = c"assesses is set, and auto_ack is 0: no ACK of software can leave while the radio backs off";
    mesh(config).check(&mac, &radio).err().map(|_| why)
}

/// The settings of the link above the MAC.
pub(crate) fn mesh(config: &motet_config) -> MeshConfig {
    MeshConfig {
        // RPL leads a router to whom to ask.
        solicits: !config.is_router(),
        ..MeshConfig::default()
    }
}

/// The settings of the MAC, and what the radio below it can do.
pub(crate) fn radio(config: &motet_config) -> (mac::Config, RadioCapabilities) {
    let mut mac = mac::Config::new(config.pan, config.eui64);
    mac.channel = config.channel;
    mac.short = Some(config.short_address).filter(|short| *short != NO_SHORT);
    mac.short_source = config.short_source != 0;
    if !config.is_router() {
        // A leaf has no frames of others; nothing is kept free for them.
        mac.reserve_forward = 0;
    }
    let radio = RadioCapabilities {
        shared_buffer: config.shared_buffer != 0,
        auto_ack: config.auto_ack != 0,
        channel_switch: Duration::from_micros(config.channel_switch_us.into()),
        stamp_delay_max: Duration::from_micros(config.stamp_delay_max_us.into()),
        fcs_by_radio: config.fcs_by_radio != 0,
        pending: pending(config.pending),
        assesses: config.assesses != 0,
        takes_acks: config.takes_acks != 0,
    };
    (mac, radio)
}

const fn pending(pending: u8) -> Pending {
    match pending {
        MOTET_PENDING_ONE_FOR_ALL if cfg!(feature = "relay") => Pending::OneForAll,
        MOTET_PENDING_PER_NEIGHBOUR if cfg!(feature = "relay") => Pending::PerNeighbour,
        _ => Pending::None,
    }
}

/// The channel of TCPlp's testbed, as `motet::mac` has it.
const CHANNEL: u8 = 26;

/// No short address; the one before means that a coordinator gave none (IEEE 802.15.4-2006 §7.5.3.1).
const NO_SHORT: u16 = 0xffff;
const SHORT_UNASSIGNED: u16 = 0xfffe;

/// Frames of a router: what its MAC keeps free for control, for children and for the frames of
/// others, and as much as a leaf's least.
const FRAMES_MIN: u8 = 12;
