//! The load under which the instructions of a frame are counted: two of Motet's motes whose radios
//! lose nothing.
//!
//! Place: as in [`crate::count`], callgrind counts what is called `counted_*`, here all that one of
//! the two nodes does: IP, UDP, 6LoWPAN and MAC, from a datagram's bytes to the radio's commands,
//! and back. Datagrams have five frames, as full segments do; the radio acknowledges by itself.
//! Radios of this kind compute the frame check sequence (FCS); a mote that computes it by software
//! is counted beside. Left out: the driver; TCP, which [`crate::count`] has; relays.

use motet::ip::InterfaceId;
use motet::mac::{self, RadioCapabilities, RxMeta};
use motet::mote::{MoteConfig, MoteStorage};
use motet::node::{ACTION_LEN_MAX, Action, Event, Node};
use motet::time::{Duration, Instant, earliest};
use motet::udp::Inbox;
use motet::wire::ieee802154::{ACK_LEN, FCS_LEN, Header};

/// One of the two motes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Side {
    /// The one that sends.
    Sender,
    /// The other.
    Receiver,
}

impl Side {
    /// Both.
    const ALL: [Self; 2] = [Self::Sender, Self::Receiver];
}

/// A load: the mote that is counted, and where both have their FCS from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    side: Side,
    fcs_by_radio: bool,
}

impl Load {
    /// Every load, those of radios that compute the FCS first.
    pub const ALL: [Self; 4] = [
        Self::new(Side::Sender, true),
        Self::new(Side::Receiver, true),
        Self::new(Side::Sender, false),
        Self::new(Side::Receiver, false),
    ];

    const fn new(side: Side, fcs_by_radio: bool) -> Self {
        Self { side, fcs_by_radio }
    }

    /// As tables and JSON call what is counted.
    pub const fn name(self) -> &'static str {
        match (self.side, self.fcs_by_radio) {
            (Side::Sender, true) => "frame_sent",
            (Side::Receiver, true) => "frame_received",
            (Side::Sender, false) => "frame_sent_fcs_by_software",
            (Side::Receiver, false) => "frame_received_fcs_by_software",
        }
    }
}

/// Frames that are counted: so many that what nodes say at first is nothing.
pub const FRAMES: u32 = 10_000;

/// Sends [`FRAMES`] frames from one mote to the other.
///
/// # Panics
/// A datagram does not arrive, or is not of five frames: a fault of this harness.
pub fn run(load: Load) {
    let mut air = Air::new(load);
    // The motes listen and say what they have to say of themselves.
    air.settle(|_| false);
    let (mut frames, mut before) = (0, air.fired);
    while frames < FRAMES {
        let sent = air.node(Side::Sender, |node, is_counted| match is_counted {
            true => counted_send(node),
            false => send(node),
        });
        assert!(sent, "there is room for a datagram");
        assert!(air.settle(Air::take), "nothing is lost");
        frames += air.fired - before;
        before = air.fired;
    }
    let each = f64::from(frames) / f64::from(air.taken);
    assert!((5.0..5.1).contains(&each), "{each} frames a datagram");
}

type Storage = MoteStorage<'static, 1, 64, 1, 1, 8, 4, 2, 1, 1_280>;

/// Two nodes, their radios, and the time.
struct Air {
    load: Load,
    nodes: [&'static mut Node<'static>; 2],
    loaded: [Vec<u8>; 2],
    now: Instant,
    /// Which of them has something to do: it was told something, or its deadline has come.
    is_up: [bool; 2],
    /// When each wants to be called, and whether that may have changed.
    deadlines: [Option<Instant>; 2],
    is_new: [bool; 2],
    /// Frames of the sender to the receiver.
    fired: u32,
    /// Datagrams that arrived.
    taken: u32,
}

impl Air {
    fn new(load: Load) -> Self {
        let now = Instant::ORIGIN;
        let radio = RadioCapabilities {
            fcs_by_radio: load.fcs_by_radio,
            ..RadioCapabilities::AT86RF233
        };
        let nodes = EUI64.map(|eui64| {
            let storage: &'static mut Storage = Box::leak(Box::new(Storage::EMPTY));
            let seed = [u64::from_be_bytes(eui64), 1];
            let config = MoteConfig::new(PAN, eui64, radio, seed);
            let lent = storage.lend(&config, now);
            let (node, _) = lent.expect("the radio fits the settings");
            node.set_inbox(Inbox::new(&[PORT], Box::leak(Box::new([0; 1_280]))));
            node
        });
        Self {
            load,
            nodes,
            loaded: [Vec::new(), Vec::new()],
            now,
            is_up: [true; 2],
            deadlines: [None; 2],
            is_new: [true; 2],
            fired: 0,
            taken: 0,
        }
    }

    /// Does something to a node; `act` is told whether that counts.
    fn node<T>(&mut self, side: Side, act: impl FnOnce(&mut Node<'static>, bool) -> T) -> T {
        self.is_up[side as usize] = true;
        act(self.nodes[side as usize], side == self.load.side)
    }

    /// Lets both nodes do what they want until `is_done`, or for [`SETTLE`] of them; says whether
    /// it was.
    fn settle(&mut self, mut is_done: impl FnMut(&mut Self) -> bool) -> bool {
        let until = self.now + SETTLE;
        while self.now < until {
            let acted = Side::ALL.map(|side| self.is_up[side as usize] && self.act(side));
            if acted.contains(&true) {
                continue;
            }
            if is_done(self) {
                return true;
            }
            let deadlines @ [first, second] = Side::ALL.map(|side| self.deadline(side));
            let next = earliest(first, second).unwrap_or(until);
            self.now = next.max(self.now + Duration::from_micros(1));
            self.is_up = deadlines.map(|at| at.is_some_and(|at| at <= self.now));
        }
        false
    }

    /// When a node wants to be called; asked once for each time that it has had something to do.
    fn deadline(&mut self, side: Side) -> Option<Instant> {
        let place = side as usize;
        if std::mem::take(&mut self.is_new[place]) {
            let is_counted = side == self.load.side;
            self.deadlines[place] = match is_counted {
                true => counted_deadline(self.nodes[place]),
                false => self.nodes[place].next_deadline(),
            };
        }
        self.deadlines[place]
    }

    /// The receiver reads what has come; says whether there was anything.
    fn take(&mut self) -> bool {
        let inbox = self.nodes[Side::Receiver as usize].inbox_mut();
        if inbox.is_none_or(|inbox| inbox.waiting() == 0) {
            return false;
        }
        let read = self.node(Side::Receiver, |node, is_counted| match is_counted {
            true => counted_recv(node),
            false => recv(node),
        });
        self.taken += u32::from(read);
        read
    }

    /// Carries out what a node wants; says whether there was anything.
    fn act(&mut self, side: Side) -> bool {
        let mut out = [0; ACTION_LEN_MAX];
        let now = self.now;
        let action = self.node(side, |node, is_counted| match is_counted {
            true => counted_action(node, now, &mut out),
            false => node.poll_action(now, &mut out),
        });
        let Some((_, action)) = action else {
            self.is_up[side as usize] = false;
            self.is_new[side as usize] = true;
            return false;
        };
        match action {
            Action::Mesh(mac::Action::Preload { len }) => {
                self.loaded[side as usize] = out[..len].to_vec();
                self.tell(side, mac::Event::Preloaded);
            }
            Action::Mesh(mac::Action::AssessChannel) => {
                self.now += ASSESSMENT;
                self.tell(side, mac::Event::ChannelAssessed { clear: true });
            }
            Action::Mesh(mac::Action::Fire) => self.fire(side),
            _ => {}
        }
        true
    }

    /// What is in a node's radio goes to the other one, which acknowledges it where it is asked to.
    fn fire(&mut self, side: Side) {
        let psdu = self.loaded[side as usize].clone();
        // The bytes of the FCS are on the air in any case.
        let added = FCS_LEN * usize::from(self.load.fcs_by_radio);
        self.now += TURNAROUND + air_time(psdu.len() + added);
        self.tell(side, mac::Event::TransmitDone { at: self.now });
        let other = match side {
            Side::Sender => Side::Receiver,
            Side::Receiver => Side::Sender,
        };
        self.hear(other, &psdu);
        let (header, _) =
            Header::parse(&psdu[..psdu.len() + added - FCS_LEN]).expect("a node's own frame");
        if header.ack_request {
            self.fired += u32::from(side == Side::Sender);
            let mut ack = [0; ACK_LEN];
            let emitted = Header::ack(header.sequence, false).emit_frame(&[], &mut ack);
            assert!(emitted.is_ok(), "an ACK has a length of its own");
            self.now += TURNAROUND + air_time(ACK_LEN);
            self.hear(side, &ack[..ACK_LEN - added]);
        }
    }

    fn hear(&mut self, side: Side, psdu: &[u8]) {
        let meta = RxMeta {
            rssi_dbm: -60,
            lqi: 255,
            channel: 26,
            at: self.now,
        };
        self.tell(side, mac::Event::FrameReceived { psdu, meta });
    }

    fn tell(&mut self, side: Side, event: mac::Event<'_>) {
        let now = self.now;
        self.node(side, |node, is_counted| match is_counted {
            true => counted_event(node, event, now),
            false => node.on_event(RADIO, Event::Mesh(event), now),
        });
    }
}

fn send(node: &mut Node<'static>) -> bool {
    let [.., eui64] = EUI64;
    node.send_datagram((link_local(eui64), PORT), PORT, &DATA)
        .is_ok()
}

fn recv(node: &mut Node<'static>) -> bool {
    let inbox = node.inbox_mut().expect("both have one");
    inbox.recv(&mut [0; DATA.len()]).is_some()
}

#[inline(never)]
fn counted_send(node: &mut Node<'static>) -> bool {
    send(node)
}

#[inline(never)]
fn counted_recv(node: &mut Node<'static>) -> bool {
    recv(node)
}

#[inline(never)]
fn counted_event(node: &mut Node<'static>, event: mac::Event<'_>, now: Instant) {
    node.on_event(RADIO, Event::Mesh(event), now);
}

#[inline(never)]
fn counted_action(
    node: &mut Node<'static>,
    now: Instant,
    out: &mut [u8],
) -> Option<(InterfaceId, Action)> {
    node.poll_action(now, out)
}

#[inline(never)]
fn counted_deadline(node: &Node<'static>) -> Option<Instant> {
    node.next_deadline()
}

/// The link-local address of the node with that EUI-64 (RFC 4291 appendix A).
fn link_local([first, rest @ ..]: [u8; 8]) -> std::net::Ipv6Addr {
    let mut octets = [0; 16];
    octets[..2].copy_from_slice(&[0xfe, 0x80]);
    octets[8] = first ^ 2;
    octets[9..].copy_from_slice(&rest);
    octets.into()
}

/// Of a frame, with preamble, delimiter and length: 32 µs a byte.
const fn air_time(psdu_len: usize) -> Duration {
    Duration::from_micros(32 * (6 + psdu_len as u64))
}

const RADIO: InterfaceId = InterfaceId(0);
const PAN: u16 = 0x4d54;
const PORT: u16 = 7;
const EUI64: [[u8; 8]; 2] = [*b"Motet\0\0\x01", *b"Motet\0\0\x02"];
const DATA: [u8; 440] = [0x5a; 440];

const ASSESSMENT: Duration = Duration::from_micros(128);
const TURNAROUND: Duration = Duration::from_micros(192);

/// Longer than a datagram takes.
const SETTLE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    /// It checks itself that datagrams have five frames, and arrive.
    #[test]
    fn each_load_can_be_counted() {
        for load in Load::ALL {
            run(load);
        }
    }
}
