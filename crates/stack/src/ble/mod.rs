//! A host above a Bluetooth LE controller: connections, and on each the channel that carries IPv6.
//!
//! Place: between HCI and the link. A driver reports HCI events and carries out HCI commands; the
//! link turns SDUs into IPv6 packets. Every other device is a [`Peer`]. On a connection the central
//! opens one credit-based channel of the service IPSP, and the peripheral waits for that. Credits
//! are returned early, and up to two SDUs are queued at controller and peer, so that a connection
//! event continues as long as there are data to send.
//!
//! With the feature `tcple` there may be a second channel, for TCPlE: see `peer::attributes`.
//!
//! Left out: pairing and encryption; GATT, except that the UUID of the service is advertised;
//! enhanced credit-based channels.
//!
//! Sources: Bluetooth Core 5.4 Vol 3 Part A (L2CAP) and Part C (GAP); the Internet Protocol Support
//! Profile 1.0; RFC 7668 §3.

mod counters;
mod event;
mod gap;
mod pace;
mod peer;
#[cfg(feature = "tcple")]
mod second;
#[cfg(not(feature = "tcple"))]
#[path = "second_absent.rs"]
mod second;

pub use counters::{ChannelDrop, HostCounters};
pub use event::{
    Action, Advertisement, DeviceAddr, Event, EventReport, GapRole, Handle, Phy, Timing,
};
pub(crate) use peer::ChannelKind;
pub use peer::{Connection, Peer, PeerMemory};

use crate::limits::{BLE_DATA_LEN_MAX, IPV6_MTU_MIN};
use crate::time::{Duration, Instant, earliest};
use gap::Gap;
use pace::Pace;
use peer::State;
use second::Second;

/// The longest SDU: an IPv6 packet (RFC 7668 §3).
pub const MTU: u16 = IPV6_MTU_MIN as u16;

/// The longest K-frame that this host takes: a whole SDU with its length. So a peer that can sends
/// one header for all of them.
pub const MPS: u16 = MTU + 2;

/// Bytes in front of an SDU that comes in, for headers that are longer once restored.
pub(crate) const SDU_HEADROOM: usize = 100;

/// Length of [`PeerMemory::inward`], bytes: the longest SDU, and room to decompress it.
pub const INWARD_LEN: usize = SDU_HEADROOM + IPV6_MTU_MIN;

/// The service of IPv6: the SPSM of IPSP.
const IPSP: u16 = 0x0023;

/// The channel identifier (CID) by which this end names the first channel of a connection.
const LOCAL: u16 = 0x0040;

/// K-frames that a peer may send ahead: two SDUs, where it cuts an SDU to packets of 251 bytes.
const CREDITS: u16 = 12;

/// Credits that are returned together: early enough that those left last for an SDU.
const CREDITS_RETURNED: u16 = CREDITS / 2;

/// Settings of a [`Host`].
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// The Bluetooth address of this device.
    pub address: DeviceAddr,
    /// The device's role on all its connections.
    pub role: GapRole,
    /// The PHY that a central asks for.
    pub phy: Phy,
    /// The times of connections that a central begins.
    pub timing: Timing,
    /// Whether a central's intervals become shorter than that as losses grow. This needs a
    /// controller that reports how connection events went: [`Event::Report`].
    pub is_adaptive: bool,
    /// The advertising interval, in units of 0.625 ms: 32 to 16,384.
    pub advertising_interval: u16,
}

impl Config {
    /// A device with this address: 1 Mb/s, connection events each 50 ms, a supervision timeout of 2
    /// s.
    pub const fn new(address: DeviceAddr, role: GapRole) -> Self {
        Self {
            address,
            role,
            phy: Phy::Le1M,
            timing: Timing {
                interval: 40,
                latency: 0,
                timeout: 200,
            },
            is_adaptive: true,
            advertising_interval: 160,
        }
    }
}

/// A host above one controller.
#[derive(Debug)]
pub struct Host<'m> {
    config: Config,
    pub(crate) peers: &'m mut [Peer<'m>],
    controller: Option<Controller>,
    gap: Gap,
    /// The command that has no answer yet.
    asked: Option<PendingCommand>,
    /// The peer whose turn it is to send.
    turn: usize,
    pace: Pace,
    counters: HostCounters,
    second: Second,
}

/// The buffers of a controller.
#[derive(Clone, Copy, Debug)]
struct Controller {
    packet_len: u16,
    packets: u16,
}

/// The command that has no answer yet: decides what its refusal changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PendingCommand {
    Gap,
    Other,
}

/// A change that an event brings to the link above.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Change {
    Nothing,
    /// The SDU of `len` bytes in the memory of this peer is whole, and came by channel `which`.
    Sdu {
        peer: usize,
        which: ChannelKind,
        len: u16,
    },
    /// IPv6 passes to a peer.
    Up,
}

impl<'m> Host<'m> {
    /// A host whose controller has not started yet; `peers`: a place for each connection.
    pub fn new(config: Config, peers: &'m mut [Peer<'m>]) -> Self {
        Self {
            config,
            peers,
            controller: None,
            gap: Gap::Off,
            asked: None,
            turn: 0,
            pace: Pace::NEW,
            counters: HostCounters::default(),
            second: Second::NONE,
        }
    }

    /// Gives back the places it was lent; what they held of connections is forgotten.
    pub fn into_memory(self) -> &'m mut [Peer<'m>] {
        for peer in self.peers.iter_mut() {
            peer.forget();
        }
        self.peers
    }

    /// The settings that the host was made with.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The host's drops, by reason.
    pub const fn counters(&self) -> &HostCounters {
        &self.counters
    }

    /// The connections that are up, in the order of their places in memory.
    pub fn connections(&self) -> impl Iterator<Item = &Connection> {
        self.peers.iter().filter_map(Peer::connection)
    }

    /// Takes what the controller reports.
    pub(crate) fn on_event(&mut self, event: Event<'_>, now: Instant) -> Change {
        match event {
            Event::Started {
                packet_len,
                packets,
            } => self.start(packet_len, packets),
            Event::Answered { status } => self.on_answer(status, now),
            Event::Advertised(advertisement) => self.on_advertised(&advertisement),
            Event::Connected {
                status,
                handle,
                role,
                peer,
                timing,
            } => self.on_connected(status, (handle, peer, role), timing, now),
            Event::Disconnected { handle, .. } => self.on_disconnected(handle),
            Event::Updated {
                status,
                handle,
                timing,
            } => {
                if let Some(connection) = self.connection(handle).filter(|_| status == 0) {
                    connection.timing = timing;
                }
            }
            Event::TimingAsked {
                handle,
                interval_min,
                timing,
            } => {
                if let Some(connection) = self.connection(handle) {
                    connection.wishes.accept = Some((interval_min, timing));
                }
            }
            Event::DataLength { handle, sent, .. } => {
                if let Some(connection) = self.connection(handle) {
                    connection.pdu_len = sent.clamp(PDU_LEN_MIN, PDU_LEN_MAX);
                }
            }
            Event::Completed { handle, packets } => self.on_completed(handle, packets),
            Event::Rssi { handle, rssi } => {
                if let Some(connection) = self.connection(handle) {
                    connection.rssi = rssi;
                }
            }
            Event::Report(report) => self.pace.on_report(&report),
            Event::Phy { .. } => {}
            Event::Data {
                handle,
                is_first,
                bytes,
            } => return self.on_data(handle, (is_first, bytes), now),
        }
        Change::Nothing
    }

    /// The controller begins anew: of its connections none is left.
    fn start(&mut self, packet_len: u16, packets: u8) {
        for peer in self.peers.iter_mut() {
            peer.end(&mut self.counters);
        }
        self.controller = Some(Controller {
            packet_len: packet_len.max(PDU_LEN_MIN),
            packets: packets.into(),
        });
        self.asked = None;
        self.pace = Pace::NEW;
        self.gap = Gap::Parameters;
    }

    fn on_answer(&mut self, status: u8, now: Instant) {
        let asked = self.asked.take();
        if status != 0 {
            self.counters.count(ChannelDrop::CommandRefused);
        }
        if asked == Some(PendingCommand::Gap) {
            self.gap.on_answer(status == 0, self.config.role, now);
        }
    }

    fn on_connected(
        &mut self,
        status: u8,
        (handle, addr, role): (Handle, DeviceAddr, GapRole),
        timing: Timing,
        now: Instant,
    ) {
        self.gap.on_connected(now);
        if status != 0 {
            return;
        }
        if self.connection(handle).is_some() {
            return self.counters.count(ChannelDrop::BadReport);
        }
        match self.peers.iter_mut().find(|peer| peer.is_free()) {
            Some(peer) => {
                let connection = Connection::new((handle, addr, role), timing, now);
                let connection = Connection {
                    attributes: self.second.attributes(),
                    ..connection
                };
                peer.begin(connection);
            }
            None => self.counters.count(ChannelDrop::BadReport),
        }
    }

    fn on_disconnected(&mut self, handle: Handle) {
        match self.peers.iter_mut().find(|peer| peer.is_of(handle)) {
            Some(peer) => peer.end(&mut self.counters),
            None => self.counters.count(ChannelDrop::UnknownConnection),
        }
    }

    fn on_completed(&mut self, handle: Handle, packets: u16) {
        let completed = self.connection(handle).map(|connection| {
            let left = connection.held.checked_sub(packets);
            connection.held = left.unwrap_or(0);
            left.is_some()
        });
        if completed != Some(true) {
            self.counters.count(ChannelDrop::BadReport);
        }
    }

    fn on_data(&mut self, handle: Handle, data: (bool, &[u8]), now: Instant) -> Change {
        let Self {
            peers, counters, ..
        } = self;
        let mut peers = peers.iter_mut().enumerate();
        let Some((at, peer)) = peers.find(|(_, peer)| peer.is_of(handle)) else {
            counters.count(ChannelDrop::UnknownConnection);
            return Change::Nothing;
        };
        let Some(connection) = &mut peer.connection else {
            return Change::Nothing;
        };
        let was_open = connection.is_open();
        let sdu = connection.on_data(data, peer.inward, counters, now);
        match sdu {
            Some((which, len)) => Change::Sdu {
                peer: at,
                which,
                len,
            },
            None if connection.is_open() && !was_open => Change::Up,
            None => Change::Nothing,
        }
    }

    fn connection(&mut self, handle: Handle) -> Option<&mut Connection> {
        let mut connections = self.peers.iter_mut().filter_map(|p| p.connection.as_mut());
        connections.find(|connection| connection.handle == handle)
    }

    /// The place of the open channel to the device whose addresses have this identifier.
    pub(crate) fn find(&self, is_wanted: impl Fn(&DeviceAddr) -> bool) -> Option<usize> {
        let mut peers = self.peers.iter();
        peers.position(|peer| peer.open().is_some_and(|addr| is_wanted(&addr)))
    }

    /// The next order to the controller; `None` where it has nothing to do, or no room.
    pub(crate) fn poll_action(&mut self, now: Instant, out: &mut [u8]) -> Option<Action> {
        let controller = self.controller?;
        for peer in self.peers.iter_mut() {
            if let Some(connection) = &mut peer.connection {
                connection.give_up_second(&mut self.counters, now);
                connection.poll_signals(&mut self.counters, now);
            }
        }
        if self.asked.is_none()
            && let Some(action) = self.poll_command(now, out)
        {
            return Some(action);
        }
        let count = self.peers.len();
        for step in 0..count {
            let at = (self.turn + step).checked_rem(count)?;
            if let Some(action) = self.poll_data(at, controller, now, out) {
                self.turn = at + 1;
                return Some(action);
            }
        }
        None
    }

    /// The next command: about a connection, or to find one.
    fn poll_command(&mut self, now: Instant, out: &mut [u8]) -> Option<Action> {
        let timing = self.timing();
        let is_led = self.second.led().is_some();
        let config = &Config {
            timing,
            is_adaptive: self.config.is_adaptive || is_led,
            ..self.config
        };
        let connections = self.peers.iter_mut().filter_map(|p| p.connection.as_mut());
        for connection in connections {
            if let Some(action) = connection.poll_command(config) {
                self.asked = Some(PendingCommand::Other);
                return Some(action);
            }
        }
        let is_free = self.peers.iter().any(Peer::is_free);
        let action = self.gap.poll(config, is_free, now, out)?;
        self.asked = Some(PendingCommand::Gap);
        Some(action)
    }

    /// The next data packet to one peer: a signal, or a part of an SDU.
    fn poll_data(
        &mut self,
        at: usize,
        controller: Controller,
        now: Instant,
        out: &mut [u8],
    ) -> Option<Action> {
        if !self.has_room(at) {
            return None;
        }
        let Self {
            peers, counters, ..
        } = self;
        let Peer {
            connection,
            outward,
            ..
        } = peers.get_mut(at)?;
        let connection = connection.as_mut()?;
        let handle = connection.handle;
        // There is room for a signal in any packet.
        if let Ok(Some(len)) = connection.emit_signal(now, out) {
            connection.held += 1;
            return Some(Action::Data {
                handle,
                is_first: true,
                len,
            });
        }
        if !connection.may_go_on() {
            return None;
        }
        let packet_len = u16::try_from(out.len()).unwrap_or(u16::MAX);
        let len_max = connection.packet_len_max(controller.packet_len.min(packet_len));
        let (is_first, len) = connection.emit_data(outward, len_max, out).ok()?;
        connection.held += 1;
        let channel = connection.channel_mut(connection.outgoing.which());
        if channel.remote.credits == 0 && channel.dry_since.is_none() {
            channel.dry_since = Some(now);
        }
        if connection.outgoing.is_idle() {
            counters.sdus_sent = counters.sdus_sent.wrapping_add(1);
        }
        Some(Action::Data {
            handle,
            is_first,
            len,
        })
    }

    /// Whether the controller takes another packet for this peer. Each connection has a share of
    /// the controller's buffers, so that a silent peer cannot use up those of the others.
    pub(crate) fn has_room(&self, at: usize) -> bool {
        let Some(controller) = self.controller else {
            return false;
        };
        let held = |peer: &Peer<'_>| peer.connection().map_or(0, |connection| connection.held);
        let all: u16 = self.peers.iter().map(held).sum();
        let connections = self.connections().count() as u16;
        let share = controller.packets.div_ceil(connections.max(1));
        let own = self.peers.get(at).map_or(u16::MAX, held);
        all < controller.packets && own < share
    }

    /// Whether an SDU for this peer may begin now, and its first packet leave.
    pub(crate) fn is_ready(&self, at: usize) -> bool {
        let connection = self.peers.get(at).and_then(Peer::connection);
        connection.is_some_and(|connection| connection.may_begin(self.has_room(at)))
    }

    /// Whether this peer has given no credit for so long that no packet is kept for it.
    pub(crate) fn is_stalled(&self, at: usize, now: Instant) -> bool {
        let connection = self.peers.get(at).and_then(Peer::connection);
        let dry_since = connection.and_then(|connection| connection.channels.ip.dry_since);
        dry_since.is_some_and(|since| now.since(since) >= STALLED_AFTER)
    }

    /// Begins the SDU that lies in the memory of this peer, from `from` to `to`, on an open
    /// channel.
    pub(crate) fn begin(&mut self, at: usize, which: ChannelKind, from: u16, to: u16) {
        let peer = self.peers.get_mut(at);
        if let Some(connection) = peer.and_then(|peer| peer.connection.as_mut()) {
            connection.outgoing.begin(which, from, to);
        }
    }

    /// The longest SDU, up to the MTU, whose packets on the air to this peer are all full.
    #[cfg_attr(
        not(feature = "tcp-small"),
        expect(dead_code, reason = "only TCP asks how long a segment may be")
    )]
    pub(crate) fn sdu_len_max(&self, at: Option<usize>) -> u16 {
        let connection = at.and_then(|at| self.peers.get(at)?.connection());
        connection.map_or(MTU, |connection| connection.sdu_len_max(MTU))
    }

    /// When [`Self::poll_action`] has something to do though no event came.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let is_free = self.peers.iter().any(Peer::is_free);
        let connections = self.connections().map(Connection::next_deadline);
        connections.fold(self.gap.next_deadline(is_free), earliest)
    }
}

impl Connection {
    /// The next command about it.
    fn poll_command(&mut self, config: &Config) -> Option<Action> {
        let handle = self.handle;
        let wishes = &mut self.wishes;
        if let Some(reason) = wishes.end.take() {
            return Some(Action::Disconnect { handle, reason });
        }
        if let Some((interval_min, timing)) = wishes.accept.take() {
            return Some(Action::AcceptTiming {
                handle,
                interval_min,
                timing,
            });
        }
        if core::mem::take(&mut wishes.data_length) {
            return Some(Action::SetDataLength {
                handle,
                octets: PDU_LEN_MAX,
                time_us: PDU_TIME_MAX_US,
            });
        }
        if core::mem::take(&mut wishes.phy) && config.phy == Phy::Le2M {
            return Some(Action::SetPhy {
                handle,
                phy: config.phy,
            });
        }
        let is_other = config.is_adaptive
            && self.role == GapRole::Central
            && self.wanted != config.timing.interval;
        if is_other {
            self.wanted = config.timing.interval;
            wishes.update = Some(config.timing);
        }
        #[cfg(feature = "tcple")]
        if wishes.update.is_none() && core::mem::take(&mut wishes.rssi) {
            return Some(Action::ReadRssi { handle });
        }
        let timing = wishes.update.take()?;
        Some(Action::Update {
            handle,
            timing,
            event_len: gap::event_len(&timing),
        })
    }

    /// When there is something to do without an event.
    fn next_deadline(&self) -> Option<Instant> {
        let stalls = ChannelKind::ALL.into_iter().map(|which| {
            let since = self.channel(which).dry_since;
            since.map(|since| since + STALLED_AFTER)
        });
        stalls.fold(self.signals_deadline(), earliest)
    }

    /// Whether the SDU that is going out may go on.
    fn may_go_on(&self) -> bool {
        let outgoing = &self.outgoing;
        let channel = self.channel(outgoing.which());
        let is_open = channel.state == State::Open;
        outgoing.is_within() || (is_open && !outgoing.is_idle() && channel.remote.credits > 0)
    }

    /// The longest data packet for the controller: whole packets on the air.
    const fn packet_len_max(&self, len_max: u16) -> usize {
        let whole = match len_max.checked_div(self.pdu_len) {
            Some(packets) if packets > 0 => packets * self.pdu_len,
            _ => len_max,
        };
        whole as usize
    }
}

/// The longest payload of a packet on the air before data length was spoken of, and ever, bytes.
const PDU_LEN_MIN: u16 = 27;
const PDU_LEN_MAX: u16 = BLE_DATA_LEN_MAX as u16;
/// The time of a packet of the longest payload at 1 Mb/s, µs.
const PDU_TIME_MAX_US: u16 = 2120;

/// A peer that gives no credit for so long has stopped taking packets.
pub(crate) const STALLED_AFTER: Duration = Duration::from_secs(5);

#[cfg(test)]
mod tests;
