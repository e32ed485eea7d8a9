//! A connection to one device, with the one channel on it that carries IPv6.

#[cfg(feature = "tcple")]
mod attributes;
#[cfg(not(feature = "tcple"))]
#[path = "attributes_absent.rs"]
mod attributes;
#[cfg(feature = "tcple")]
mod channels;
#[cfg(not(feature = "tcple"))]
#[path = "channels_absent.rs"]
mod channels;
mod inward;
mod outward;
mod signalling;

pub(in crate::ble) use self::attributes::Attributes;
pub(crate) use self::channels::ChannelKind;
pub(in crate::ble) use self::channels::PerChannel;
use self::inward::Gather;
use self::outward::OutgoingSdu;
use self::signalling::Signalling;
use super::counters::{ChannelDrop, HostCounters};
use super::event::{DeviceAddr, GapRole, Handle, Timing};
use super::{CREDITS, INWARD_LEN, MTU};
use crate::storage::packet_queue::PacketQueue;
use crate::time::Instant;
use crate::wire::l2cap::End;

impl ChannelKind {
    /// The one that this end calls so.
    pub(in crate::ble) fn of_local(local: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|which| which.local() == local)
    }
}

/// A place for a connection, with its memory.
#[derive(Debug)]
pub struct Peer<'m> {
    /// The SDU that is coming in, behind `SDU_HEADROOM` bytes for headers that grow.
    pub(crate) inward: &'m mut [u8],
    /// The SDU that is going out.
    pub(crate) outward: &'m mut [u8],
    /// Packets that wait for [`Self::outward`].
    pub(crate) waiting: PacketQueue<'m>,
    pub(in crate::ble) connection: Option<Connection>,
}

/// The memory of a [`Peer`].
#[derive(Debug)]
pub struct PeerMemory<'m> {
    /// The packet that is coming in: [`INWARD_LEN`](super::INWARD_LEN) bytes.
    pub inward: &'m mut [u8],
    /// The packet that is going out: [`IPV6_MTU_MIN`](crate::limits::IPV6_MTU_MIN) bytes.
    pub outward: &'m mut [u8],
    /// Packets that wait to go out, TCP's aside, with six bytes each.
    pub queue: &'m mut [u8],
}

impl<'m> Peer<'m> {
    /// A place without a connection.
    pub fn new(memory: PeerMemory<'m>) -> Self {
        let PeerMemory {
            inward,
            outward,
            queue,
        } = memory;
        debug_assert!(
            inward.len() >= INWARD_LEN && outward.len() >= usize::from(MTU),
            "a packet of the MTU has no room"
        );
        Self {
            inward,
            outward,
            waiting: PacketQueue::new(queue),
            connection: None,
        }
    }

    /// Gives back the memory it was lent.
    pub fn into_memory(self) -> PeerMemory<'m> {
        PeerMemory {
            inward: self.inward,
            outward: self.outward,
            queue: self.waiting.into_memory(),
        }
    }

    pub(in crate::ble) const fn is_free(&self) -> bool {
        self.connection.is_none()
    }

    pub(in crate::ble) fn is_of(&self, handle: Handle) -> bool {
        self.connection()
            .is_some_and(|connection| connection.handle == handle)
    }

    pub(in crate::ble) fn begin(&mut self, connection: Connection) {
        self.connection = Some(connection);
    }

    /// The connection has ended: closes its channels and discards pending packets.
    pub(in crate::ble) fn end(&mut self, counters: &mut HostCounters) {
        if let Some(mut connection) = self.connection.take() {
            for which in ChannelKind::ALL {
                connection.close(which, counters);
            }
        }
        self.forget();
    }

    pub(in crate::ble) fn forget(&mut self) {
        self.connection = None;
        while self.waiting.pop() {}
    }

    /// The device at the other end, where its channel is open.
    pub(crate) fn open(&self) -> Option<DeviceAddr> {
        let connection = self.connection.as_ref()?;
        (connection.channels.ip.state == State::Open).then_some(connection.addr)
    }

    /// The connection, while there is one.
    pub fn connection(&self) -> Option<&Connection> {
        self.connection.as_ref()
    }
}

/// A connection to a peer, with its L2CAP channels.
#[derive(Debug)]
pub struct Connection {
    pub(in crate::ble) handle: Handle,
    pub(in crate::ble) addr: DeviceAddr,
    pub(in crate::ble) role: GapRole,
    pub(in crate::ble) timing: Timing,
    /// The connection interval that this central requested last, in units of 1.25 ms; the
    /// peripheral may since have requested another.
    pub(in crate::ble) wanted: u16,
    /// Packets of this connection that are in the controller's buffers.
    pub(in crate::ble) held: u16,
    /// The longest payload of a packet on the air, bytes.
    pub(in crate::ble) pdu_len: u16,
    /// Received signal strength as the controller measured it last, dBm.
    pub(in crate::ble) rssi: Option<i8>,
    pub(in crate::ble) gather: Gather,
    pub(in crate::ble) outgoing: OutgoingSdu,
    pub(in crate::ble) channels: PerChannel<Channel>,
    pub(in crate::ble) attributes: Attributes,
    pub(in crate::ble) signalling: Signalling,
    pub(in crate::ble) wishes: PendingCommands,
}

/// Commands that are still to be given about a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::ble) struct PendingCommands {
    pub(in crate::ble) data_length: bool,
    pub(in crate::ble) phy: bool,
    /// An update of its times.
    pub(in crate::ble) update: Option<Timing>,
    /// The connection parameters that the peer requested and that are accepted, after the shortest
    /// interval.
    pub(in crate::ble) accept: Option<(u16, Timing)>,
    /// The end of the connection, and why.
    pub(in crate::ble) end: Option<u8>,
    /// Whether the connection's signal strength is to be read.
    #[cfg(feature = "tcple")]
    pub(in crate::ble) rssi: bool,
}

/// Whether a channel is open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ble) enum State {
    Closed,
    Open,
    /// This end has sent a disconnection request, and the answer has not come.
    Closing,
}

/// A credit-based channel; this end of it is [`ChannelKind::local`].
#[derive(Clone, Copy, Debug)]
pub(in crate::ble) struct Channel {
    pub(in crate::ble) state: State,
    /// The channel's end at the peer; `credits`: K-frames that this end may still send.
    pub(in crate::ble) remote: End,
    /// Since when there is no credit.
    pub(in crate::ble) dry_since: Option<Instant>,
    /// K-frames that the peer may still send.
    pub(in crate::ble) granted: u16,
    /// Credits that it used, and gets back.
    pub(in crate::ble) owed: u16,
    /// The length of the SDU that is coming in; 0: there is none.
    pub(in crate::ble) sdu_len: u16,
    /// Bytes of the SDU that have arrived.
    pub(in crate::ble) sdu_have: u16,
}

impl Channel {
    const CLOSED: Self = Self {
        state: State::Closed,
        remote: End {
            channel: 0,
            mtu: 0,
            mps: 0,
            credits: 0,
        },
        dry_since: None,
        granted: 0,
        owed: 0,
        sdu_len: 0,
        sdu_have: 0,
    };
}

impl Connection {
    pub(in crate::ble) const fn new(
        (handle, addr, role): (Handle, DeviceAddr, GapRole),
        timing: Timing,
        now: Instant,
    ) -> Self {
        Self {
            handle,
            addr,
            role,
            timing,
            wanted: timing.interval,
            held: 0,
            // Core 5.4 Vol 6 Part B §4.5.10: until both ends can do more.
            pdu_len: 27,
            rssi: None,
            gather: Gather::EMPTY,
            outgoing: OutgoingSdu::IDLE,
            channels: PerChannel::all(Channel::CLOSED),
            attributes: Attributes::NONE,
            signalling: Signalling::new(now),
            wishes: PendingCommands {
                data_length: true,
                phy: matches!(role, GapRole::Central),
                update: None,
                accept: None,
                end: None,
                #[cfg(feature = "tcple")]
                rssi: false,
            },
        }
    }

    /// The device at the other end.
    pub const fn addr(&self) -> DeviceAddr {
        self.addr
    }

    /// This device's role on the connection.
    pub const fn role(&self) -> GapRole {
        self.role
    }

    /// The handle by which the controller names the connection.
    pub const fn handle(&self) -> Handle {
        self.handle
    }

    /// Interval, latency and supervision timeout of the connection.
    pub const fn timing(&self) -> Timing {
        self.timing
    }

    /// Received signal strength, dBm, as the controller read it last; `None`: it has not, or the
    /// strength was not available.
    pub const fn rssi(&self) -> Option<i8> {
        self.rssi
    }

    /// Whether the channel of IPv6 packets is open.
    pub fn is_open(&self) -> bool {
        self.channels.ip.state == State::Open
    }

    /// K-frames that may be sent before the peer gives more credits.
    pub const fn credits(&self) -> u16 {
        self.channels.ip.remote.credits
    }

    pub(in crate::ble) const fn channel(&self, which: ChannelKind) -> &Channel {
        self.channels.get(which)
    }

    pub(in crate::ble) const fn channel_mut(&mut self, which: ChannelKind) -> &mut Channel {
        self.channels.get_mut(which)
    }

    /// Opens a channel to the end `remote`.
    pub(in crate::ble) fn open(&mut self, which: ChannelKind, remote: End, now: Instant) {
        *self.channel_mut(which) = Channel {
            state: State::Open,
            remote,
            dry_since: (remote.credits == 0).then_some(now),
            granted: CREDITS,
            ..Channel::CLOSED
        };
    }

    /// Closes a channel, at the wish of either end; SDUs under way in both directions are lost.
    pub(in crate::ble) fn close(&mut self, which: ChannelKind, counters: &mut HostCounters) {
        let channel = self.channel_mut(which);
        if channel.sdu_len > 0 {
            counters.count(ChannelDrop::CutSdu);
        }
        *channel = Channel::CLOSED;
        self.gather.skip(which);
        self.outgoing.abort(which);
    }

    /// Closes a channel because the peer has broken a rule.
    pub(in crate::ble) fn fail(
        &mut self,
        which: ChannelKind,
        reason: ChannelDrop,
        counters: &mut HostCounters,
    ) {
        counters.count(reason);
        let channel = self.channel_mut(which);
        let remote = channel.remote;
        channel.sdu_len = 0;
        self.close(which, counters);
        let channel = self.channel_mut(which);
        channel.state = State::Closing;
        channel.remote = remote;
        self.ask_to_close(which);
    }

    /// Whether an SDU may begin, and its first packet leave: `packets`, that the controller has
    /// room for a packet of this connection.
    pub(in crate::ble) fn may_begin(&self, packets: bool) -> bool {
        self.is_open() && self.outgoing.is_idle() && self.has_credits() && packets
    }

    /// Whether each channel that is open has a credit.
    fn has_credits(&self) -> bool {
        ChannelKind::ALL.into_iter().all(|which| {
            let channel = self.channel(which);
            channel.state != State::Open || channel.remote.credits > 0
        })
    }
}
