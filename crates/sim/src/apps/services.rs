//! The classic small services (echo, discard, character generator), a server for iperf3, and the
//! application of a mote that has one.
//!
//! Place: what `motet up` runs on each mote. Echo and discard answer datagrams too. All connections
//! share one pool of buffers: their number is the service's limit. A client that is gone, or that
//! acknowledges nothing, loses its place after two minutes. An idle client of a small service keeps
//! its place until somebody else needs it, as with everybody's echo service; one of a shell or of
//! `/firmware` loses it after five minutes, and a web server's client has a minute for its whole
//! request ([`Dialogue::idle_max`]), however it comes. If all places are taken, a new client
//! replaces the one that has been idle for longest, if that is at least [`YIELDS_AFTER`]. Sources:
//! RFC 862 (echo), RFC 863 (discard), RFC 864 (character generator); RFC 9293 §3.8.4 (keepalive),
//! RFC 5482 (user timeout); RFC 9112 §9.5 (a server closes what is idle).

use motet::node::Node;
use motet::tcp::{self, Buffers, Config, Handle, ListenerHandle, RecvError, SegmentDrop, State};
use motet::time::{Duration, Instant};
use motet::udp::Inbox;
#[cfg(feature = "firmware")]
use motet_update::{Access, Demands};

use super::dialogue::{Application, Dialogue, Facts, IDLE_MAX};
use super::ends::Ends;
use super::firmware::{self, Device, Stored, Upload};
use super::iperf3;
use super::readings::take_inbox;

/// Echo, discard, chargen and iperf3, for as many connections as there are buffers.
#[derive(Debug)]
pub struct Services<'m> {
    ends: Ends<'m>,
    listeners: [Option<ListenerHandle>; LISTENERS],
    /// Settings of the small services where `/firmware` has others.
    short: Option<&'m Config>,
    /// The small services that are left out, by their ports.
    omitted: Vec<u16>,
    application: Option<Application>,
    /// In place of an application: new firmware.
    firmware: Option<Device>,
    /// Buffers of connections that are over.
    free: Vec<Buffers<'m>>,
    /// How many more connections may get buffers.
    spare: usize,
    served: Vec<Served>,
    /// Clients that TCP had no slot for, as far as they were noted.
    refused: u16,
    /// When the last of them came, while it may still wait for a place.
    newcomer_at: Option<Instant>,
    iperf3: iperf3::Server,
    /// Given to the node at the first step.
    inbox: Option<Inbox<'m>>,
    datagram: Vec<u8>,
}

#[derive(Debug)]
struct Served {
    handle: Handle,
    service: usize,
    /// With a client of the application.
    dialogue: Option<Dialogue>,
    /// With a client of `/firmware`.
    upload: Option<Upload>,
    /// When the client last got on with what it is here for.
    active: Instant,
    /// Place in chargen's endless text.
    place: usize,
    shut: bool,
}

impl<'m> Services<'m> {
    /// The services, for up to `connections` at a time.
    pub fn new(connections: usize, ends: Ends<'m>) -> Self {
        let memory = ends.arena.alloc_slice_fill_copy(INBOX_LEN, 0);
        Self {
            ends: ends.with(bound_patience),
            listeners: [None; LISTENERS],
            short: None,
            omitted: Vec::new(),
            application: None,
            firmware: None,
            free: Vec::new(),
            spare: connections,
            served: Vec::new(),
            refused: 0,
            newcomer_at: None,
            iperf3: iperf3::Server::default(),
            inbox: Some(Inbox::new(&DATAGRAM_PORTS, memory)),
            datagram: vec![0; INBOX_LEN],
        }
    }

    /// The same, but of the small services those at these ports alone.
    #[must_use]
    pub fn only(mut self, ports: &[u16]) -> Self {
        let is_left_out = |port: &&u16| !ports.contains(port);
        self.omitted = PORTS.iter().filter(is_left_out).copied().collect();
        let datagrams = DATAGRAM_PORTS.iter().filter(|port| ports.contains(port));
        let datagrams: Vec<u16> = datagrams.copied().collect();
        let arena = self.ends.arena;
        // An inbox for no port would take datagrams to nobody.
        self.inbox = (!datagrams.is_empty()).then(|| {
            let memory = arena.alloc_slice_fill_copy(INBOX_LEN, 0);
            Inbox::new(arena.alloc_slice_copy(&datagrams), memory)
        });
        self
    }

    /// The same, and an application.
    #[must_use]
    pub fn with(self, application: Option<Application>) -> Self {
        Self {
            application,
            ..self
        }
    }

    /// The same, and `/firmware` at port 80 in place of an application. It is open without a token.
    /// A full segment of its connections fills `firmware::MSS_FRAMES` frames.
    #[cfg(feature = "firmware")]
    #[must_use]
    pub fn with_firmware(self, token: Option<&'static [u8]>) -> Self {
        let access = token.map_or(Access::Open, Access::Bearer);
        self.with_device(
            Device::new(access, Demands::default()),
            firmware::MSS_FRAMES,
        )
    }

    /// The same, open, but for images alone that have the signature which is demanded.
    /// `mss_frames`: frames of a full segment.
    #[cfg(feature = "firmware")]
    #[must_use]
    pub(super) fn with_signed_firmware(self, demands: Demands, mss_frames: u8) -> Self {
        self.with_device(Device::new(Access::Open, demands), mss_frames)
    }

    #[cfg(feature = "firmware")]
    fn with_device(self, device: Device, mss_frames: u8) -> Self {
        Self {
            firmware: Some(device),
            application: None,
            ends: self.ends.with(|config| config.mss_frames = mss_frames),
            ..self
        }
    }

    /// What its firmware's flash holds of `image`.
    pub(super) fn stored(&self, image: &[u8]) -> Option<Stored> {
        Some(self.firmware.as_ref()?.stored(image))
    }

    /// How many connections there are.
    pub fn connections(&self) -> usize {
        self.served.len()
    }

    /// When a client's time is over.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let idle = self
            .served
            .iter()
            .filter_map(|served| Some(served.active + served.idle_max()?));
        let oldest = self.served.iter().map(|served| self.active(served)).min();
        let yields = oldest.filter(|_| self.newcomer_at.is_some() && !self.has_room());
        let yields = yields.map(|active| active + YIELDS_AFTER);
        let flash = self.firmware.as_ref().and_then(Device::next_deadline);
        let own = self.iperf3.next_deadline().into_iter().chain(flash);
        idle.chain(yields).chain(own).min()
    }

    /// When a client was last active: iperf3 knows that of its own.
    fn active(&self, served: &Served) -> Instant {
        self.iperf3.active(served.handle).unwrap_or(served.active)
    }

    /// Their node is switched off: all connections are gone.
    pub(super) fn switch_off(&mut self, node: &mut Node<'m>) {
        self.inbox = take_inbox(node).or(self.inbox.take());
        let tcp = node.tcp_mut();
        if let Some(device) = &mut self.firmware {
            device.switch_off(tcp, &mut self.free);
        }
        for served in self.served.drain(..) {
            tcp.abort(served.handle);
            self.free.extend(tcp.remove(served.handle));
        }
        self.listeners = [None; LISTENERS];
        self.refused = 0;
        self.newcomer_at = None;
        self.iperf3 = iperf3::Server::default();
    }

    pub(super) fn step(&mut self, node: &mut Node<'m>, now: Instant) -> bool {
        let Some(config) = self.ends.config(node) else {
            return false;
        };
        let mut acted = self.answer_datagrams(node);
        let facts = self
            .application
            .map(|_| facts(node, self.served.len(), now));
        acted |= self.fetch(node, config, now);
        let tcp = node.tcp_mut();
        let application = self.application.map(Application::port);
        let application = application.or(self.firmware.as_ref().map(|_| firmware::PORT));
        acted |= self.make_room(tcp, now);
        for (service, port) in PORTS.into_iter().chain(application).enumerate() {
            if self.omitted.contains(&port) {
                continue;
            }
            if self.listeners[service].is_none() {
                let config = match self.firmware.is_some() && port != firmware::PORT {
                    true => self.short(config),
                    false => config,
                };
                self.listeners[service] = tcp.listen(None, port, config).ok();
            }
            acted |= self.accept(service, tcp, config, now);
        }
        let room = self.free.len() + self.spare;
        acted |= self.iperf3.step(tcp, room, now);
        let (free, device) = (&mut self.free, &mut self.firmware);
        self.served.retain_mut(|served| {
            acted |= served.serve(tcp, facts.as_ref(), device.as_mut(), now);
            match served.release(tcp) {
                None => true,
                Some(buffers) => {
                    free.extend(buffers);
                    acted = true;
                    false
                }
            }
        });
        acted
    }

    fn accept(
        &mut self,
        service: usize,
        tcp: &mut tcp::Tcp<'m>,
        config: &'m Config,
        now: Instant,
    ) -> bool {
        let Some(listener) = self.listeners[service] else {
            return false;
        };
        if !tcp.can_accept(listener) {
            return false;
        }
        let buffers = match self.free.pop() {
            Some(buffers) => buffers,
            None if self.spare == 0 => return false,
            None => {
                self.spare -= 1;
                self.ends.buffers(config)
            }
        };
        match tcp.accept(listener, buffers, now) {
            Ok(handle) => {
                let port = PORTS.get(service);
                if port == Some(&iperf3::PORT) {
                    self.iperf3.greet(handle, now);
                }
                let application = self.application.filter(|_| port.is_none());
                let device = self.firmware.as_mut().filter(|_| port.is_none());
                self.served.push(Served {
                    handle,
                    service,
                    dialogue: application.map(Application::begin),
                    upload: device.and_then(Device::begin),
                    active: now,
                    place: 0,
                    shut: false,
                });
                true
            }
            Err(rejected) => {
                self.free.push(rejected.buffers);
                false
            }
        }
    }

    /// The settings of small services beside `/firmware`: long segments are for that alone, though
    /// all share its buffers.
    fn short(&mut self, config: &'m Config) -> &'m Config {
        let arena = self.ends.arena;
        let make = || {
            &*arena.alloc(Config {
                mss_frames: 0,
                ..*config
            })
        };
        self.short.get_or_insert_with(make)
    }

    /// Lets the mote's firmware fetch what it was told to, by connections out of the same pool.
    fn fetch(&mut self, node: &mut Node<'m>, config: &'m Config, now: Instant) -> bool {
        let Some(device) = &mut self.firmware else {
            return false;
        };
        let (spare, ends) = (&mut self.spare, &self.ends);
        let buffers = |free: &mut Vec<Buffers<'m>>| {
            if let Some(buffers) = free.pop() {
                return Some(buffers);
            }
            *spare = spare.checked_sub(1)?;
            Some(ends.buffers(config))
        };
        device.call(node, config, &mut self.free, buffers, now)
    }

    /// How long the processor stands still for flash, since the last call.
    pub(super) fn take_halt(&mut self) -> Duration {
        let device = self.firmware.as_mut();
        device.map_or(Duration::ZERO, Device::take_halt)
    }

    /// Notes how many clients TCP has refused for want of a slot. The counter saturates; from then
    /// on a client is assumed to be waiting at any time.
    fn note_refused(&mut self, refused: u16, now: Instant) {
        if refused != self.refused || refused == u16::MAX {
            self.refused = refused;
            self.newcomer_at = Some(now);
        }
    }

    /// Notes whether a client has found no place, and takes that of the client which has been idle
    /// for longest, if that is long enough. TCP leaves whom it has no slot for unanswered; the
    /// newcomer asks again, and finds one then.
    fn make_room(&mut self, tcp: &mut tcp::Tcp<'m>, now: Instant) -> bool {
        self.note_refused(tcp.counters().dropped(SegmentDrop::NoSlot), now);
        let waits = |at: &Instant| now < *at + NEWCOMER_WAITS;
        self.newcomer_at = self.newcomer_at.filter(waits);
        if self.newcomer_at.is_none() || self.has_room() {
            return false;
        }
        let actives = self.served.iter().map(|served| self.active(served));
        let oldest = actives.enumerate().min_by_key(|(_, active)| *active);
        let Some((oldest, _)) = oldest.filter(|(_, active)| now >= *active + YIELDS_AFTER) else {
            return false;
        };
        let Served { handle, .. } = self.served.swap_remove(oldest);
        tcp.abort(handle);
        self.free.extend(tcp.remove(handle));
        self.newcomer_at = None;
        true
    }

    /// Whether one more connection finds buffers.
    fn has_room(&self) -> bool {
        !self.free.is_empty() || self.spare > 0
    }
}

impl<'m> Services<'m> {
    /// Echoes datagrams or throws them away; returns whether there were any.
    fn answer_datagrams(&mut self, node: &mut Node<'m>) -> bool {
        if let Some(inbox) = self.inbox.take() {
            node.set_inbox(inbox);
            return true;
        }
        let mut acted = false;
        while let Some(inbox) = node.inbox_mut()
            && let Some(datagram) = inbox.recv(&mut self.datagram)
        {
            acted = true;
            // Two services that answer each other would never stop.
            let is_service = PORTS.contains(&datagram.from.port);
            if datagram.port == ECHO && !is_service {
                let payload = &self.datagram[..datagram.len];
                // Where the queue is full the answer is lost, as on any link.
                let _ = node.send_datagram(datagram.from, ECHO, payload);
            }
        }
        acted
    }
}

impl Served {
    /// Does what the client's service does, and ends it where its time is over. Returns whether
    /// anything happened.
    fn serve(
        &mut self,
        tcp: &mut tcp::Tcp<'_>,
        facts: Option<&Facts>,
        device: Option<&mut Device>,
        now: Instant,
    ) -> bool {
        if self.service_port() == Some(iperf3::PORT) {
            // It looks after its clients by itself.
            self.active = now;
            return false;
        }
        if let (Some(upload), Some(device)) = (&mut self.upload, device) {
            let acted = device.serve(upload, self.handle, tcp, now);
            self.active = self.active.max(device.active());
            return self.end_if_idle(acted, tcp, now);
        }
        let (acted, gets_on) = match (&mut self.dialogue, facts) {
            (Some(dialogue), Some(facts)) => {
                let acted = dialogue.step(self.handle, tcp, facts, now);
                (acted, acted && !dialogue.awaits_request())
            }
            _ => {
                let acted = self.step(tcp, now);
                (acted, acted)
            }
        };
        if gets_on {
            self.active = now;
        }
        self.end_if_idle(acted, tcp, now)
    }

    /// Ends a client whose time is over; otherwise returns `acted`.
    fn end_if_idle(&self, acted: bool, tcp: &mut tcp::Tcp<'_>, now: Instant) -> bool {
        if self.idle_max().is_none_or(|idle| now < self.active + idle) {
            return acted;
        }
        tcp.abort(self.handle);
        true
    }

    /// How long the client may be idle where nobody else needs its place.
    fn idle_max(&self) -> Option<Duration> {
        // One image is written at a time: a pusher that has gone silent does not keep others out.
        let upload = self.upload.as_ref().map(|_| IDLE_MAX);
        upload.or_else(|| self.dialogue.as_ref().map(Dialogue::idle_max))
    }

    /// The port of its service, unless that is the application.
    fn service_port(&self) -> Option<u16> {
        PORTS.get(self.service).copied()
    }

    fn step(&mut self, tcp: &mut tcp::Tcp<'_>, now: Instant) -> bool {
        let mut acted = false;
        if PORTS[self.service] == CHARGEN {
            acted |= self.generate(tcp, now);
        }
        loop {
            let bytes = match tcp.peek(self.handle) {
                Ok(bytes) => bytes,
                Err(RecvError::Finished) if !self.shut => {
                    self.shut = true;
                    tcp.shutdown(self.handle, now);
                    return true;
                }
                Err(_) => return acted,
            };
            let count = if PORTS[self.service] == ECHO {
                let mut copy = [0; 256];
                let len = bytes.len().min(copy.len());
                copy[..len].copy_from_slice(&bytes[..len]);
                match tcp.send(self.handle, &copy[..len], now) {
                    Ok(taken) => taken,
                    Err(_) => return acted,
                }
            } else {
                bytes.len()
            };
            tcp.consume(self.handle, count);
            acted = true;
        }
    }

    /// Lines of 72 characters, each beginning one further (RFC 864).
    fn generate(&mut self, tcp: &mut tcp::Tcp<'_>, now: Instant) -> bool {
        let mut acted = false;
        loop {
            let mut text = [0; 148];
            for (offset, byte) in text.iter_mut().enumerate() {
                *byte = generated(self.place + offset);
            }
            match tcp.send(self.handle, &text, now) {
                Ok(taken) => self.place = (self.place + taken) % GENERATED_PERIOD,
                Err(_) => return acted,
            }
            acted = true;
        }
    }

    /// The buffers, once the connection is over. `Some(None)`: it is gone, and they too.
    fn release<'m>(&self, tcp: &mut tcp::Tcp<'m>) -> Option<Option<Buffers<'m>>> {
        match tcp.connection(self.handle).map(tcp::Connection::state) {
            None => Some(None),
            Some(State::Closed | State::TimeWait) => tcp.remove(self.handle).map(Some),
            Some(_) => None,
        }
    }
}

/// The facts about its mote that an application may tell.
fn facts(node: &Node<'_>, connections: usize, now: Instant) -> Facts {
    let addresses = node.ip().addresses();
    Facts {
        uptime_s: now.as_micros() / 1_000_000,
        addresses: addresses.map(|own| format!("{}\n", own.addr)).collect(),
        connections,
        segments: node.tcp().counters().sent,
    }
}

/// Gives up clients that are gone, so that others get their places.
fn bound_patience(config: &mut Config) {
    config.keepalive_idle_s = KEEPALIVE_IDLE_S;
    config.keepalive_interval_s = KEEPALIVE_INTERVAL_S;
    config.keepalive_probes = KEEPALIVE_PROBES;
    config.user_timeout_ms = USER_TIMEOUT_MS;
}

/// The character at a place of chargen's text.
fn generated(place: usize) -> u8 {
    let (line, column) = (place / LINE_LEN, place % LINE_LEN);
    match column {
        72 => b'\r',
        73 => b'\n',
        _ => b' ' + ((line + column) % PRINTABLE) as u8,
    }
}

const ECHO: u16 = 7;
const DISCARD: u16 = 9;
const CHARGEN: u16 = 19;
/// The ports of the small services: echo, discard, chargen and iperf3.
pub const PORTS: [u16; 4] = [ECHO, DISCARD, CHARGEN, iperf3::PORT];
/// Listeners of the services, and one of an application.
const LISTENERS: usize = PORTS.len() + 1;
const DATAGRAM_PORTS: [u16; 2] = [ECHO, DISCARD];

/// Silence before a client is asked whether it is still there, s. RFC 9293 §3.8.4 wants two hours
/// as the default; a service with four places may not wait for so long.
const KEEPALIVE_IDLE_S: u16 = 60;

/// Time from one keepalive probe to the next, s: longer than a mesh takes for an answer.
const KEEPALIVE_INTERVAL_S: u16 = 15;

/// Questions without an answer before the client counts as gone: two minutes in all.
const KEEPALIVE_PROBES: u8 = 4;

/// The longest time for which a client may acknowledge no data, with its window shut or not, ms:
/// above the minimum of 100 s in RFC 1122 §4.2.3.5.
const USER_TIMEOUT_MS: u32 = 120_000;

/// How long a client must have been idle before it yields its place to a newcomer: longer than a
/// segment that was lost takes to come again, and again.
const YIELDS_AFTER: Duration = Duration::from_secs(10);

/// How long a newcomer is thought to wait: hosts ask again after 1, 3, 7, 15 and 31 s.
const NEWCOMER_WAITS: Duration = Duration::from_secs(32);

/// Bytes of datagrams that wait to be answered: two as long as a packet in fragments may be, and as
/// much that they leave to the other port.
const INBOX_LEN: usize = 4 * motet::limits::REASSEMBLED_LEN_MAX;

/// Characters of a line, its end included.
const LINE_LEN: usize = 74;

/// ASCII characters from space to tilde.
const PRINTABLE: usize = 95;

/// The characters after which the text repeats.
const GENERATED_PERIOD: usize = LINE_LEN * PRINTABLE;

#[cfg(test)]
#[path = "tests/services.rs"]
mod tests;
