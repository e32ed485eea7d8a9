//! A mesh of three: a root of Rust, a router of the C API below it, and a node of the C API that
//! sleeps below that router, all of them with one key. Their radios are the test's: they assess the
//! channel and take ACKs by themselves, as those behind an operating system's driver do.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ffi::CStr;
use std::net::Ipv6Addr;
use std::ptr;

use motet::ip::{self, InterfaceId, Ip, Registration};
use motet::join::{self, Configuration, DATAGRAM_LEN_MAX, JoinKey};
use motet::link::{self, Advertised, Link, Mesh, MeshConfig, MeshMemory, MeshStorage};
use motet::mac::security::{NetworkKey, Peer, Reservation, Security, SecurityConfig};
use motet::mac::{self, AttemptOutcome, Pending, RadioCapabilities, RxMeta};
use motet::node::{JoinProxy, JoinRole, Node};
use motet::random::Rng;
use motet::rpl::{self, RplRole};
use motet::tcp::{self, Buffers, Tcp};
use motet::tcphc::{self, Tcphc};
use motet::time::Instant;
use motet::udp::Inbox;
use motet::wire::LinkAddr;
use motet::wire::ieee802154::Header;
use motet_c::*;

const PAN: u16 = 0x4d54;
const KEY: [u8; 16] = *b"sixteen bytes of";
const SEQUENCE: u32 = 3;
const PREFIX: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, 0);
const ROOT: usize = 0;
const ROUTER: usize = 1;
const SLEEPER: usize = 2;
const SECOND: u64 = 1_000_000;
/// Time between the sleeper's requests at rest.
const INTERVAL_MS: u32 = 2_000;

fn eui64(n: usize) -> [u8; 8] {
    [2, 0, 0, 0, 0, 0, 0, n as u8 + 1]
}

fn address(n: usize) -> Ipv6Addr {
    let mut octets = PREFIX.octets();
    octets[8..].copy_from_slice(&eui64(n));
    octets[8] ^= 2;
    octets.into()
}

/// Whether two hear each other: the sleeper and the root do not.
fn are_near(one: usize, other: usize) -> bool {
    one.abs_diff(other) == 1
}

// ---- The motes. ----

enum Mote {
    Rust(Box<Node<'static>>),
    C(*mut motet_node),
}

/// What a radio is asked to do.
enum Order {
    Preload(Vec<u8>),
    Fire,
    Listen,
    Sleep,
    Tune,
    Show(Option<[u8; 8]>, bool),
}

const CAPABILITIES: RadioCapabilities = RadioCapabilities {
    pending: Pending::PerNeighbour,
    ..RadioCapabilities::OFFLOADING
};

fn leak<T>(value: T) -> &'static mut T {
    Box::leak(Box::new(value))
}

fn root() -> Mote {
    let mut rng = Rng::from_seed([1, 1]);
    let config = MeshConfig {
        solicits: false,
        advertised: Some(Advertised {
            prefix: PREFIX,
            lifetime: Advertised::LIFETIME,
        }),
        ..MeshConfig::default()
    };
    let memory = MeshMemory {
        registrations: leak([const { Registration::EMPTY }; 4]),
        ..leak(MeshStorage::<16, 8, 8, 2, 4096>::EMPTY).lend()
    };
    let radio = (mac::Config::new(PAN, eui64(ROOT)), CAPABILITIES);
    let mut mesh = Mesh::new(config, radio, memory, &mut rng).unwrap();
    let key = SecurityConfig::new(NetworkKey::new(KEY), SEQUENCE);
    let peers = leak([const { Peer::EMPTY }; 16]);
    mesh.set_security(leak(Security::new(&key, peers)));
    mesh.contexts_mut().set(0, PREFIX, 64, true);
    let headers = tcphc::Config {
        end: tcphc::End::Router,
        frames_expire: false,
        ..tcphc::Config::AGREED
    };
    let contexts = leak([tcphc::Context::EMPTY; 4]);
    let headers = Tcphc::new(contexts, headers, Instant::ORIGIN, &mut rng);
    mesh.set_tcphc(leak(headers));
    let ip = ip::Config {
        forwards: true,
        ..ip::Config::default()
    };
    let ip = Ip::new(ip, leak([None; 4]));
    let links = leak([Link::Mesh(mesh)]);
    let memory = tcp::Memory {
        connections: leak([tcp::Slot::EMPTY]),
        listeners: leak([tcp::Listener::EMPTY]),
        half_open: leak([tcp::HalfOpen::EMPTY; 2]),
    };
    let tcp = Tcp::new(memory, &mut rng);
    let mut node = Node::new(links, ip, tcp, rng, Instant::ORIGIN);
    let mut inbox = Inbox::with_places(leak([0; 2]), leak([0; 2048]));
    assert!(inbox.bind(7));
    node.set_inbox(inbox);
    let role = RplRole::Root(rpl::Root::new(PREFIX));
    let steps = leak([None; 4]);
    node.start_rpl(InterfaceId(0), role, &mut [], steps, Instant::ORIGIN);
    Mote::Rust(Box::new(node))
}

/// A root that gives devices the key; the other half of it is [`World::register`].
fn registrar() -> Mote {
    let Mote::Rust(mut node) = root() else {
        panic!("the root is of Rust");
    };
    let mut rng = Rng::from_seed([1, 2]);
    node.set_join_proxy(leak(JoinProxy::new(JoinRole::Jrc, &mut rng)));
    Mote::Rust(node)
}

/// The own key of a device.
fn join_key(n: usize, stored: motet_reservation) -> motet_join_key {
    motet_join_key {
        key: [n as u8 + 0x40; 16],
        registrar: [0; 16],
        stored,
        neighbors: 16,
    }
}

/// A node of the C API that joins.
fn pledge(config: &motet_config, key: &motet_join_key, now: u64) -> *mut motet_node {
    let room = |size: usize| leak(vec![0_u64; size.div_ceil(8)]).as_mut_ptr();
    let mut node = ptr::null_mut();
    // SAFETY: memory as long as was asked for, and values.
    unsafe {
        let size = motet_node_size(config);
        let memory = room(size).cast();
        assert_eq!(motet_node_init(memory, size, config, now, &mut node), 0);
        assert_eq!(motet_join_state(node), -MOTET_EINVAL);
        let size = motet_join_key_size(key);
        // As much as the examples give.
        assert!(size <= 4_000, "{size}");
        let memory = room(size).cast();
        let less = motet_set_join_key(node, memory, size - 1, key);
        assert_eq!(less, -MOTET_ENOMEM);
        assert_eq!(motet_set_join_key(node, memory, size, key), 0);
        let again = motet_set_join_key(node, memory, size, key);
        assert_eq!(again, -MOTET_EINVAL);
    }
    node
}

fn config(n: usize) -> motet_config {
    let mut config = std::mem::MaybeUninit::uninit();
    // SAFETY: room for a configuration, which is written.
    let mut config = unsafe {
        assert_eq!(motet_config_init(config.as_mut_ptr()), 0);
        config.assume_init()
    };
    config.eui64 = eui64(n);
    config.seed = [n as u64, 7];
    config.pan = PAN;
    config.datagrams_len = 512;
    config.auto_ack = 1;
    config.fcs_by_radio = 1;
    config.assesses = 1;
    config.takes_acks = 1;
    config
}

fn router() -> motet_config {
    motet_config {
        pending: MOTET_PENDING_PER_NEIGHBOUR,
        children: 4,
        children_len: 2_600,
        frames: 16,
        neighbors: 8,
        records: 8,
        queue_len: 2_600,
        ..config(ROUTER)
    }
}

fn key(stored: motet_reservation) -> motet_key {
    motet_key {
        network: KEY,
        sequence: SEQUENCE,
        stored,
        neighbors: 16,
    }
}

fn sleep() -> motet_sleep {
    let mut sleep = std::mem::MaybeUninit::uninit();
    // SAFETY: room for settings, which are written.
    let mut sleep = unsafe {
        assert_eq!(motet_sleep_init(sleep.as_mut_ptr()), 0);
        sleep.assume_init()
    };
    sleep.interval_ms = INTERVAL_MS;
    sleep
}

/// A node of the C API with a key, in memory of the heap.
fn node(config: &motet_config, stored: motet_reservation, now: u64) -> *mut motet_node {
    let room = |size: usize| leak(vec![0_u64; size.div_ceil(8)]).as_mut_ptr();
    let key = key(stored);
    let mut node = ptr::null_mut();
    // SAFETY: memory as long as was asked for, and values.
    unsafe {
        let size = motet_node_size(config);
        assert!(size > 0);
        let memory = room(size).cast();
        assert_eq!(motet_node_init(memory, size, config, now, &mut node), 0);
        let size = motet_key_size(&key);
        assert_eq!(motet_set_key(node, room(size).cast(), size, &key), 0);
    }
    node
}

impl Mote {
    fn poll(&mut self, now: u64) -> Option<Order> {
        match self {
            Self::Rust(node) => {
                let mut out = [0; 1500];
                let at = Instant::from_micros(now);
                let (_, link::Action::Mesh(action)) = node.poll_action(at, &mut out)? else {
                    panic!("a mesh");
                };
                Some(match action {
                    mac::Action::Preload { len } => Order::Preload(out[..len].to_vec()),
                    mac::Action::Fire => Order::Fire,
                    mac::Action::Listen => Order::Listen,
                    mac::Action::Sleep => Order::Sleep,
                    mac::Action::ChangeChannel { .. } => Order::Tune,
                    mac::Action::SetPending { .. } => panic!("the root serves no sleepers"),
                    mac::Action::AssessChannel | mac::Action::Transmit { .. } => {
                        panic!("{action:?}")
                    }
                })
            }
            Self::C(node) => {
                let mut action = std::mem::MaybeUninit::<motet_action>::uninit();
                // SAFETY: a node, and room for an action, which is read where it was written.
                let action = unsafe {
                    match motet_poll(*node, now, action.as_mut_ptr()) {
                        0 => return None,
                        result => assert_eq!(result, 1),
                    }
                    action.assume_init()
                };
                // SAFETY: the node's own bytes, as many as it says.
                let bytes = unsafe { std::slice::from_raw_parts(action.bytes, action.len.into()) };
                Some(match action.kind {
                    MOTET_PRELOAD => Order::Preload(bytes.to_vec()),
                    MOTET_FIRE => Order::Fire,
                    MOTET_LISTEN => Order::Listen,
                    MOTET_SLEEP => Order::Sleep,
                    MOTET_CHANGE_CHANNEL => Order::Tune,
                    kind @ (MOTET_SET_PENDING | MOTET_CLEAR_PENDING) => {
                        Order::Show(bytes.try_into().ok(), kind == MOTET_SET_PENDING)
                    }
                    kind => panic!("{kind}"),
                })
            }
        }
    }

    fn next_deadline(&self) -> Option<u64> {
        match self {
            Self::Rust(node) => node.next_deadline().map(Instant::as_micros),
            Self::C(node) => {
                let mut at = 0;
                // SAFETY: a node, and room for a time.
                let result = unsafe { motet_next_deadline(*node, &mut at) };
                (result == 1).then_some(at)
            }
        }
    }

    fn report(&mut self, event: mac::Event<'_>, now: u64) {
        let node = match self {
            Self::Rust(node) => {
                let event = link::Event::Mesh(event);
                return node.on_event(InterfaceId(0), event, Instant::from_micros(now));
            }
            Self::C(node) => *node,
        };
        // SAFETY: a node, and bytes as many as said.
        let result = unsafe {
            match event {
                mac::Event::Preloaded => motet_on_preloaded(node, now),
                mac::Event::FrameReceived { psdu, .. } => {
                    motet_on_frame(node, psdu.as_ptr(), psdu.len(), -50, 255, 26, now, now)
                }
                mac::Event::Sent { outcome, .. } => {
                    let (outcome, pending) = match outcome {
                        AttemptOutcome::Acked { pending } => (MOTET_ACKED, pending),
                        AttemptOutcome::Done => (MOTET_DONE, false),
                        AttemptOutcome::NoAck => (MOTET_NO_ACK, false),
                        AttemptOutcome::Busy => (MOTET_BUSY, false),
                        AttemptOutcome::Failed => (MOTET_FAILED, false),
                        AttemptOutcome::Unknown => (MOTET_UNKNOWN, false),
                    };
                    motet_on_sent(node, outcome, pending, now, now)
                }
                _ => panic!("{event:?}"),
            }
        };
        assert_eq!(result, 0);
    }

    /// What it asks to be stored.
    fn wanted(&mut self, now: u64) -> Option<motet_reservation> {
        match self {
            Self::Rust(node) => {
                let (_, wanted) = node.poll_reservation(Instant::from_micros(now))?;
                Some(motet_reservation {
                    sequence: wanted.sequence,
                    counter: wanted.counter,
                    requests: 0,
                })
            }
            Self::C(node) => {
                let mut wanted = NEVER;
                // SAFETY: a node, and room for a reservation.
                let asks = unsafe { motet_poll_reservation(*node, now, &mut wanted) };
                (asks == 1).then_some(wanted)
            }
        }
    }

    fn on_reserved(&mut self, wanted: motet_reservation, is_stored: bool, now: u64) {
        match self {
            Self::Rust(node) => {
                let reservation = Reservation {
                    sequence: wanted.sequence,
                    counter: wanted.counter,
                };
                let at = Instant::from_micros(now);
                node.on_reserved(InterfaceId(0), reservation, is_stored, at);
            }
            Self::C(node) => {
                // SAFETY: a node, and a reservation.
                let result = unsafe { motet_on_reserved(*node, &wanted, is_stored, now) };
                assert_eq!(result, 0);
            }
        }
    }
}

/// Of a node that has never had the key.
const NEVER: motet_reservation = motet_reservation {
    sequence: 0,
    counter: 0,
    requests: 0,
};

/// Flash, as slow as it is made, or broken.
#[derive(Default)]
struct Flash {
    takes_us: u64,
    is_broken: bool,
    /// What is being written, and when that ends.
    writes: VecDeque<(u64, motet_reservation)>,
    /// How often it was asked to.
    asked: u32,
    stored: Option<motet_reservation>,
}

// ---- The air. ----

#[derive(Default)]
struct Radio {
    loaded: Vec<u8>,
    is_loaded: bool,
    done_at: Option<u64>,
    /// Since when the receiver is off, and for how long it was before.
    off_since: Option<u64>,
    off_us: u64,
    shown: BTreeSet<[u8; 8]>,
}

struct World {
    now: u64,
    motes: [Mote; 3],
    radios: [Radio; 3],
    flashes: [Flash; 3],
    /// What the registrar says instead of the key; and whether it is damaged on its way.
    refuses: Option<u8>,
    damages: bool,
    /// Of each device, the number of its last request.
    requests: HashMap<[u8; 8], u32>,
    /// Frames in clear, of each mote.
    in_clear: [u32; 3],
    /// Of each sender, key index and counter: the frame.
    nonces: HashMap<(String, u8, u32), Vec<u8>>,
}

impl World {
    fn new(motes: [Mote; 3]) -> Self {
        Self {
            now: 0,
            motes,
            radios: Default::default(),
            flashes: Default::default(),
            refuses: None,
            damages: false,
            requests: HashMap::new(),
            in_clear: [0; 3],
            nonces: HashMap::new(),
        }
    }

    /// Looks at the root, or changes it.
    fn root<T>(&mut self, act: impl FnOnce(&mut Node<'static>) -> T) -> T {
        match &mut self.motes[ROOT] {
            Mote::Rust(root) => act(root),
            Mote::C(_) => panic!("the root is of Rust"),
        }
    }

    fn c(&self, n: usize) -> *mut motet_node {
        match self.motes[n] {
            Mote::C(node) => node,
            Mote::Rust(_) => panic!("node {n} is of Rust"),
        }
    }

    fn perform(&mut self, n: usize, order: Order) {
        let (now, radio) = (self.now, &mut self.radios[n]);
        match order {
            Order::Preload(frame) => {
                (radio.loaded, radio.is_loaded) = (frame, true);
                radio.done_at = None;
            }
            // A backoff, an assessment, the frame and its ACK.
            Order::Fire => {
                radio.done_at = Some(now + 1_500 + 32 * (8 + radio.loaded.len() as u64));
            }
            Order::Listen => {
                let off = radio.off_since.take();
                radio.off_us += off.map_or(0, |since| now - since);
            }
            Order::Sleep => radio.off_since = radio.off_since.or(Some(now)),
            Order::Tune => {}
            Order::Show(of, pending) => {
                let of = of.expect("a table of neighbours");
                match pending {
                    true => radio.shown.insert(of),
                    false => radio.shown.remove(&of),
                };
            }
        }
    }

    /// The frame of this radio has been sent: who hears it, and what its sender learns.
    fn deliver(&mut self, from: usize) {
        let psdu = std::mem::take(&mut self.radios[from].loaded);
        let (header, auxiliary, _) = Header::parse_secured(&psdu).unwrap();
        match auxiliary {
            None => self.in_clear[from] += 1,
            Some(auxiliary) => {
                let source = format!("{:?}", header.src);
                let nonce = (source, auxiliary.key_index, auxiliary.counter);
                let before = self.nonces.entry(nonce.clone()).or_insert(psdu.clone());
                assert_eq!(*before, psdu, "{nonce:?} is of two frames");
            }
        }
        let hears = |n: &usize| are_near(from, *n) && self.radios[*n].off_since.is_none();
        let hearers: Vec<usize> = (0..3).filter(hears).collect();
        let to = header.dst.map(|dst| dst.addr);
        let is_for = |n: &&usize| to == Some(LinkAddr::Extended(eui64(**n)));
        let receiver = hearers.iter().find(is_for);
        // A table of neighbours answers frames of any kind.
        let outcome = match receiver {
            _ if !header.ack_request => AttemptOutcome::Done,
            Some(n) => AttemptOutcome::Acked {
                pending: self.radios[*n].shown.contains(&eui64(from)),
            },
            None => AttemptOutcome::NoAck,
        };
        let (now, at) = (self.now, Instant::from_micros(self.now));
        for n in hearers {
            let meta = RxMeta {
                rssi_dbm: -50,
                lqi: 255,
                channel: 26,
                at,
            };
            let psdu = &psdu[..];
            self.motes[n].report(mac::Event::FrameReceived { psdu, meta }, now);
        }
        self.radios[from].loaded = psdu;
        self.motes[from].report(mac::Event::Sent { outcome, at }, now);
    }

    /// All that is to be done now; whether something was.
    fn settle(&mut self) -> bool {
        let mut acted = self.register();
        for n in 0..3 {
            while let Some(order) = self.motes[n].poll(self.now) {
                self.perform(n, order);
                acted = true;
            }
            acted |= self.store(n);
            if std::mem::take(&mut self.radios[n].is_loaded) {
                self.motes[n].report(mac::Event::Preloaded, self.now);
                acted = true;
            }
            if self.radios[n].done_at.is_some_and(|at| at <= self.now) {
                self.radios[n].done_at = None;
                self.deliver(n);
                acted = true;
            }
        }
        acted
    }

    /// How many sealed frames this mote has sent.
    fn sealed(&self, n: usize) -> usize {
        let source = format!("{:?}", LinkAddr::Extended(eui64(n)));
        let nonces = self.nonces.keys();
        nonces.filter(|(of, ..)| of.contains(&source)).count()
    }

    /// Lets a mote's flash go on.
    fn store(&mut self, n: usize) -> bool {
        let (now, flash) = (self.now, &mut self.flashes[n]);
        let mut acted = false;
        while let Some(wanted) = self.motes[n].wanted(now) {
            flash.writes.push_back((now + flash.takes_us, wanted));
            flash.asked += 1;
            acted = true;
        }
        while flash.writes.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, wanted)) = flash.writes.pop_front() else {
                break;
            };
            if !flash.is_broken {
                flash.stored = Some(wanted);
            }
            self.motes[n].on_reserved(wanted, !flash.is_broken, now);
            acted = true;
        }
        acted
    }

    /// What the host of the root does: gives devices the key. Whether it did something.
    fn register(&mut self) -> bool {
        let Mote::Rust(node) = &mut self.motes[ROOT] else {
            panic!("the root is of Rust");
        };
        let mut datagram = [0; DATAGRAM_LEN_MAX];
        let Some((from, len)) = node.recv_join(&mut datagram) else {
            return false;
        };
        let Ok(heard) = join::hear(&datagram[..len]) else {
            return true;
        };
        let n = usize::from(heard.eui64[7]) - 1;
        let key = JoinKey::new([n as u8 + 0x40; 16]);
        let given = Configuration {
            network: NetworkKey::new(KEY),
            sequence: SEQUENCE,
        };
        let configure = |request: join::Request| {
            assert_eq!(request.pan, PAN);
            self.refuses.map_or(Ok(given), Err)
        };
        let last = self.requests.get(&heard.eui64).copied();
        let mut out = [0; DATAGRAM_LEN_MAX];
        // A request with another key is not answered.
        let Ok(len) = heard.answer(&key, last, configure, &mut out) else {
            assert!(last.is_none_or(|last| heard.sequence() > last));
            return true;
        };
        self.requests.insert(heard.eui64, heard.sequence());
        out[len - 1] ^= u8::from(self.damages);
        let at = Instant::from_micros(self.now);
        assert_eq!(node.send_join(&from, &out[..len], at), Ok(()));
        true
    }

    /// Goes on until `done`; fails after so many seconds.
    fn run_until(&mut self, what: &str, seconds: u64, mut done: impl FnMut(&mut Self) -> bool) {
        let end = self.now + seconds * SECOND;
        loop {
            while self.settle() {}
            if done(self) {
                return;
            }
            while self.settle() {}
            assert!(self.now < end, "{what}: not after {seconds} s");
            let deadlines = self.motes.iter().filter_map(Mote::next_deadline);
            let radios = self.radios.iter().filter_map(|radio| radio.done_at);
            let writes = self.flashes.iter().filter_map(|flash| flash.writes.front());
            let writes = writes.map(|(at, _)| *at);
            let next = deadlines.chain(radios).chain(writes).min().unwrap_or(end);
            self.now = next.clamp(self.now, end);
        }
    }

    fn run(&mut self, seconds: u64) {
        let end = self.now + seconds * SECOND;
        self.run_until("time", seconds + 1, |world| world.now >= end);
    }

    fn off_us(&self, n: usize) -> u64 {
        let radio = &self.radios[n];
        radio.off_us + radio.off_since.map_or(0, |since| self.now - since)
    }

    fn has_address(&self, n: usize) -> bool {
        let mut found = [0; 16];
        // SAFETY: a node, and room for an address.
        let result = unsafe { motet_address(self.c(n), 1, &mut found) };
        result == 0 && found == address(n).octets()
    }

    /// The root asks the sleeper, which answers; returns how long that took, us.
    fn ask(&mut self, port: i32) -> u64 {
        let asked_at = self.now;
        let Mote::Rust(root) = &mut self.motes[ROOT] else {
            panic!("the root is of Rust");
        };
        root.send_datagram((address(SLEEPER), 90), 7, b"there?")
            .unwrap();
        let sleeper = self.c(SLEEPER);
        self.run_until("an answer", 30, |world| {
            let mut bytes = [0; 16];
            let mut source = motet_source {
                address: [0; 16],
                port: 0,
                zone: 0,
            };
            // SAFETY: a node, and room for what is written.
            unsafe {
                let len =
                    motet_udp_recv(sleeper, port, bytes.as_mut_ptr(), bytes.len(), &mut source);
                if len > 0 {
                    let (to, zone) = (&source.address, source.zone);
                    let bytes = b"here".as_ptr();
                    let sent = motet_udp_send(sleeper, port, to, source.port, zone, bytes, 4);
                    assert_eq!(sent, 0);
                }
            }
            let Mote::Rust(root) = &mut world.motes[ROOT] else {
                panic!("the root is of Rust");
            };
            let answer = root.inbox_mut().unwrap().recv(&mut bytes);
            answer.is_some_and(|answer| bytes[..answer.len] == *b"here")
        });
        self.now - asked_at
    }

    /// The router sends the sleeper bytes over TCP.
    fn transfer(&mut self, total: usize) {
        let (router, sleeper) = (self.c(ROUTER), self.c(SLEEPER));
        let to = address(SLEEPER).octets();
        let (mut sent, mut received, mut there) = (0, 0, 0);
        // SAFETY: nodes.
        let (listener, here) = unsafe {
            let listener = motet_tcp_listen(sleeper, 9);
            (listener, motet_tcp_connect(router, &to, 9, 0, self.now))
        };
        assert!(listener > 0 && here > 0, "{listener}, {here}");
        self.run_until("bytes over TCP", 120, |world| {
            let bytes: Vec<u8> = (sent..total.min(sent + 200)).map(|at| at as u8).collect();
            let mut place = [0; 200];
            // SAFETY: nodes, and bytes as many as said.
            unsafe {
                if !bytes.is_empty() {
                    let len = bytes.len();
                    let count = motet_tcp_send(router, here, bytes.as_ptr(), len, world.now);
                    assert!(count > 0 || count == -MOTET_EAGAIN, "{count}");
                    sent += usize::try_from(count).unwrap_or(0);
                }
                if there <= 0 {
                    there = motet_tcp_accept(sleeper, listener, world.now);
                } else {
                    let len = place.len();
                    let count = motet_tcp_recv(sleeper, there, place.as_mut_ptr(), len);
                    let count = usize::try_from(count).unwrap_or(0);
                    let is_next = |(at, byte): (usize, &u8)| *byte == (received + at) as u8;
                    assert!(place[..count].iter().enumerate().all(is_next));
                    received += count;
                }
            }
            received == total
        });
        // SAFETY: nodes.
        unsafe {
            assert_eq!(motet_close(router, here, self.now), 0);
            assert_eq!(motet_close(sleeper, there, self.now), 0);
            assert_eq!(motet_close(sleeper, listener, self.now), 0);
        }
    }
}

fn open(node: *mut motet_node) -> i32 {
    // SAFETY: a node.
    let port = unsafe { motet_udp_open(node, 90) };
    assert!(port > 0);
    port
}

#[test]
fn a_node_with_a_key_sleeps_below_another_and_no_nonce_repeats_after_its_restart() {
    let nodes = [
        root(),
        Mote::C(node(&router(), NEVER, 0)),
        Mote::C(node(&config(SLEEPER), NEVER, 0)),
    ];
    let mut world = World::new(nodes);
    for life in 0..3 {
        // SAFETY: a node, and settings.
        let set = unsafe { motet_set_sleep(world.c(SLEEPER), &sleep()) };
        assert_eq!(set, 0);
        let port = open(world.c(SLEEPER));
        world.run_until("addresses", 120, |world| {
            world.has_address(ROUTER) && world.has_address(SLEEPER)
        });
        // What the root has to hear of the leaf.
        world.run(10);
        let (off, from) = (world.off_us(SLEEPER), world.now);
        world.run(60);
        let share = (world.off_us(SLEEPER) - off) * 100 / (world.now - from);
        assert!(share >= 95, "life {life}: off for {share} % of the time");
        assert_eq!(world.off_us(ROUTER), 0);
        let took = world.ask(port);
        let longest = u64::from(INTERVAL_MS) * 1_000 + SECOND;
        assert!(took < longest, "life {life}: answered after {took} us");
        world.transfer(3_000);
        // The power goes, and comes back.
        let stored = world.flashes[SLEEPER].stored.expect("it has sent");
        assert_eq!(stored.sequence, SEQUENCE);
        // SAFETY: a node.
        assert_eq!(unsafe { motet_node_end(world.c(SLEEPER)) }, 0);
        let mut config = config(SLEEPER);
        config.seed[1] += life;
        world.motes[SLEEPER] = Mote::C(node(&config, stored, world.now));
        world.radios[SLEEPER] = Radio::default();
    }
    assert!(world.nonces.len() > 300, "{}", world.nonces.len());
}

/// The root offers to restore TCP headers, the router of C passes that on, and the node that sleeps
/// below it takes the offer, in a connection that begins after its first two minutes.
#[test]
fn a_node_below_another_compresses_its_headers_where_the_root_offers_it() {
    static SETTINGS: tcp::Config = tcp::Config::DEFAULT;
    let nodes = [
        root(),
        Mote::C(node(&router(), NEVER, 0)),
        Mote::C(node(&config(SLEEPER), NEVER, 0)),
    ];
    let mut world = World::new(nodes);
    // SAFETY: a node, and settings.
    let set = unsafe { motet_set_sleep(world.c(SLEEPER), &sleep()) };
    assert_eq!(set, 0);
    world.run_until("addresses", 120, |world| {
        world.has_address(ROUTER) && world.has_address(SLEEPER)
    });
    world.run(130);
    let (sleeper, now) = (world.c(SLEEPER), Instant::from_micros(world.now));
    let listener = world.root(|root| root.tcp_mut().listen(None, 9, &SETTINGS).unwrap());
    let to = address(ROOT).octets();
    // SAFETY: a node, and an address.
    let here = unsafe { motet_tcp_connect(sleeper, &to, 9, 0, world.now) };
    assert!(here > 0, "{here}");
    let buffers = Buffers::new(leak([0; 2_048]), leak([0; 2_304]));
    let there = world.root(|root| root.tcp_mut().accept(listener, buffers, now).unwrap());
    let bytes = [7; 600];
    let (mut sent, mut received) = (0, 0);
    world.run_until("bytes over TCP", 300, |world| {
        let left = &bytes[sent..];
        // SAFETY: a node, and bytes as many as said.
        let count = unsafe { motet_tcp_send(sleeper, here, left.as_ptr(), left.len(), world.now) };
        sent += usize::try_from(count).unwrap_or(0);
        let mut place = [0; 200];
        received += world.root(|root| root.tcp_mut().recv(there, &mut place).unwrap_or(0));
        received == bytes.len()
    });
    let [_, mostly, compressed, _] = world.root(|root| {
        let mesh = root.link(InterfaceId(0)).and_then(Link::mesh).unwrap();
        mesh.tcphc().unwrap().counters().sent
    });
    // It compresses what it sends only where it has restored a header of the node.
    assert!(mostly + compressed > 0);
}

#[test]
fn a_node_goes_to_sleep_and_stays_awake_as_it_is_told() {
    let nodes = [
        root(),
        Mote::C(node(&router(), NEVER, 0)),
        Mote::C(node(&config(SLEEPER), NEVER, 0)),
    ];
    let mut world = World::new(nodes);
    let mut off_in_10_s = |policy: u8| {
        let sleep = motet_sleep { policy, ..sleep() };
        // SAFETY: a node, and settings.
        assert_eq!(unsafe { motet_set_sleep(world.c(SLEEPER), &sleep) }, 0);
        world.run_until("an address", 120, |world| world.has_address(SLEEPER));
        world.run(20);
        let off = world.off_us(SLEEPER);
        world.run(10);
        world.off_us(SLEEPER) - off
    };
    assert_eq!(off_in_10_s(MOTET_AWAKE), 0);
    for policy in [
        MOTET_SLEEP_FIXED,
        MOTET_SLEEP_PAPER,
        MOTET_SLEEP_ADAPTIVE,
        MOTET_SLEEP_HINTED,
    ] {
        assert!(off_in_10_s(policy) > 9 * SECOND, "{policy}");
    }
    assert_eq!(off_in_10_s(MOTET_AWAKE), 0);
}

/// The words of a fault.
fn words(fault: *const std::ffi::c_char) -> String {
    match fault.is_null() {
        true => String::new(),
        // SAFETY: a text that ends with a zero.
        false => unsafe { CStr::from_ptr(fault) }
            .to_string_lossy()
            .into_owned(),
    }
}

#[test]
fn settings_that_cannot_be_are_refused_and_said() {
    type Change = fn(&mut motet_config);
    let cases: [(Change, &str); 7] = [
        (|config| config.channel = 27, "channel"),
        (|config| config.frames = 11, "frames is below 12"),
        (|config| config.neighbors = 3, "neighbors"),
        (|config| config.pending = 3, "pending is none of"),
        (
            |config| config.pending = MOTET_PENDING_NONE,
            "cannot say that something waits",
        ),
        (|config| config.auto_ack = 0, "assesses"),
        (|config| config.short_source = 1, "short_address"),
    ];
    for (change, said) in cases {
        let mut config = router();
        change(&mut config);
        // SAFETY: a configuration.
        let (why, size) = unsafe { (motet_config_fault(&config), motet_node_size(&config)) };
        assert!(words(why).contains(said), "{said}: {}", words(why));
        assert_eq!(size, 0, "{said}");
    }
    let (mut config, mut sleep, mut key) = (config(SLEEPER), sleep(), key(NEVER));
    // SAFETY: settings, and nodes.
    unsafe {
        assert_eq!(words(motet_config_fault(&router())), "");
        assert!(words(motet_config_fault(ptr::null())).contains("null"));
        assert_eq!(words(motet_key_fault(&key)), "");
        key.neighbors = 3;
        assert!(words(motet_key_fault(&key)).contains("neighbors"));
        assert_eq!(words(motet_sleep_fault(&sleep)), "");
        let leaf = node(&config, NEVER, 0);
        let parent = node(&router(), NEVER, 0);
        assert_eq!(motet_set_sleep(leaf, &sleep), 0);
        // A router never sleeps.
        assert_eq!(motet_set_sleep(parent, &sleep), -MOTET_EINVAL);
        assert_eq!(motet_set_sleep(leaf, ptr::null()), -MOTET_EFAULT);
        assert_eq!(motet_expect_answer(leaf, 1_000), 0);
        assert_eq!(motet_expect_answer(leaf, 1 << 63), -MOTET_EINVAL);
        sleep.interval_ms = 0;
        assert!(words(motet_sleep_fault(&sleep)).contains("interval_ms"));
        assert_eq!(motet_set_sleep(leaf, &sleep), -MOTET_EINVAL);
        sleep.policy = 9;
        assert!(words(motet_sleep_fault(&sleep)).contains("policy"));
        // Nonces are made of the EUI-64.
        (config.short_address, config.short_source) = (5, 1);
        let size = motet_node_size(&config);
        let memory = leak(vec![0_u64; size.div_ceil(8)]).as_mut_ptr();
        let mut short = ptr::null_mut();
        assert_eq!(
            motet_node_init(memory.cast(), size, &config, 0, &mut short),
            0
        );
        let mut first = [0; 16];
        assert_eq!(motet_address(short, 0, &mut first), 0);
        assert_eq!(first[8..], [0, 0, 0, 0xff, 0xfe, 0, 0, 5]);
        key.neighbors = 16;
        let size = motet_key_size(&key);
        let memory = leak(vec![0_u64; size.div_ceil(8)]).as_mut_ptr();
        let given = motet_set_key(short, memory.cast(), size, &key);
        assert_eq!(given, -MOTET_EINVAL);
    }
}

fn state(node: *mut motet_node) -> i32 {
    // SAFETY: a node.
    unsafe { motet_join_state(node) }
}

/// A router and a leaf that join, as far as they are not told otherwise.
fn pledges() -> World {
    let leaf = pledge(&config(SLEEPER), &join_key(SLEEPER, NEVER), 0);
    let router = pledge(&router(), &join_key(ROUTER, NEVER), 0);
    World::new([registrar(), Mote::C(router), Mote::C(leaf)])
}

#[test]
fn nodes_join_one_below_another_and_once_more_after_a_restart() {
    let mut world = pledges();
    let mut last = 0;
    for life in 0..3 {
        assert_eq!(state(world.c(SLEEPER)), MOTET_JOIN_ASKS);
        // SAFETY: a node, and settings.
        let set = unsafe { motet_set_sleep(world.c(SLEEPER), &sleep()) };
        assert_eq!(set, 0);
        let port = open(world.c(SLEEPER));
        world.run_until("the key", 120, |world| {
            [ROUTER, SLEEPER].map(|n| state(world.c(n))) == [MOTET_JOINED; 2]
        });
        world.run_until("addresses", 120, |world| {
            world.has_address(ROUTER) && world.has_address(SLEEPER)
        });
        let in_clear = world.in_clear;
        world.run(30);
        world.ask(port);
        world.transfer(2_000);
        // Who has the key, speaks in clear to nobody.
        assert_eq!(world.in_clear, in_clear);
        let requests = world.requests[&eui64(SLEEPER)];
        assert!(life == 0 || requests > last, "{requests} after {last}");
        last = requests;
        let stored = world.flashes[SLEEPER].stored.expect("it has sent");
        assert!(
            stored.requests > requests && stored.counter > 0,
            "{stored:?}"
        );
        // SAFETY: a node.
        assert_eq!(unsafe { motet_node_end(world.c(SLEEPER)) }, 0);
        let mut config = config(SLEEPER);
        config.seed[1] += life + 1;
        let leaf = pledge(&config, &join_key(SLEEPER, stored), world.now);
        world.motes[SLEEPER] = Mote::C(leaf);
        world.radios[SLEEPER] = Radio::default();
    }
}

#[test]
fn a_node_that_does_not_get_the_key_says_why() {
    let mut world = pledges();
    // SAFETY: a node.
    assert_eq!(unsafe { motet_node_end(world.c(ROUTER)) }, 0);
    let mut key = join_key(ROUTER, NEVER);
    key.key[0] ^= 1;
    world.motes[ROUTER] = Mote::C(pledge(&router(), &key, 0));
    world.run(60);
    assert!(world.in_clear[ROUTER] > 3);
    assert_eq!(state(world.c(ROUTER)), MOTET_JOIN_ASKS);

    let mut world = pledges();
    world.refuses = Some(0x83);
    world.run(30);
    assert_eq!(state(world.c(ROUTER)), MOTET_JOIN_REFUSED);
    (world.refuses, world.damages) = (None, true);
    world.run(40);
    assert_eq!(state(world.c(ROUTER)), MOTET_JOIN_FORGED);
    world.damages = false;
    world.run_until("the key", 60, |world| {
        state(world.c(ROUTER)) == MOTET_JOINED
    });
    for state in MOTET_JOIN_ASKS..=MOTET_JOIN_EXHAUSTED {
        let text = words(motet_join_words(state));
        assert!(!text.is_empty() && !text.contains("not join"), "{text}");
    }
    assert!(words(motet_join_words(-1)).contains("not join"));
}

#[test]
fn nothing_is_asked_before_slow_or_broken_flash_has_stored_its_number() {
    let mut world = pledges();
    world.flashes[ROUTER].takes_us = 5 * SECOND;
    world.flashes[SLEEPER].is_broken = true;
    world.run(4);
    assert_eq!(state(world.c(ROUTER)), MOTET_JOIN_UNSTORED);
    assert_eq!(world.in_clear, [0; 3]);
    world.run_until("the key", 60, |world| {
        state(world.c(ROUTER)) == MOTET_JOINED
    });
    // Its frame counters take as long.
    let joined_at = world.now;
    world.run_until("a frame", 60, |world| world.sealed(ROUTER) > 0);
    assert!(
        world.now >= joined_at + 5 * SECOND,
        "{}",
        world.now - joined_at
    );
    world.run(60);
    // Asked each 10 s, and nothing sent.
    assert_eq!(state(world.c(SLEEPER)), MOTET_JOIN_UNSTORED);
    let asked = u64::from(world.flashes[SLEEPER].asked);
    let expected = world.now / (10 * SECOND);
    assert!(asked.abs_diff(expected) <= 1, "{asked}, {expected}");
    assert_eq!((world.in_clear[SLEEPER], world.sealed(SLEEPER)), (0, 0));
    world.flashes[SLEEPER].is_broken = false;
    world.run_until("an address", 120, |world| world.has_address(SLEEPER));
    world.transfer(500);
}

#[test]
fn a_node_with_a_key_waits_for_slow_flash_and_for_broken_flash() {
    let nodes = [
        root(),
        Mote::C(node(&router(), NEVER, 0)),
        Mote::C(node(&config(SLEEPER), NEVER, 0)),
    ];
    let mut world = World::new(nodes);
    world.flashes[ROUTER].takes_us = 5 * SECOND;
    world.flashes[SLEEPER].is_broken = true;
    world.run(4);
    assert_eq!(world.sealed(ROUTER), 0);
    world.run_until("an address", 60, |world| world.has_address(ROUTER));
    assert!(world.sealed(ROUTER) > 0);
    world.run(40);
    assert!(world.flashes[SLEEPER].asked >= 4);
    assert_eq!(world.sealed(SLEEPER), 0);
    world.flashes[SLEEPER].is_broken = false;
    world.run_until("an address", 60, |world| world.has_address(SLEEPER));
    world.transfer(500);
}

#[test]
fn join_keys_that_cannot_be_are_refused_and_said() {
    type Change = fn(&mut motet_join_key);
    let cases: [(Change, &str); 4] = [
        (|key| key.neighbors = 3, "neighbors"),
        (|key| key.registrar[0] = 0xff, "registrar"),
        (
            |key| key.registrar[..2].copy_from_slice(&[0xfe, 0x80]),
            "registrar",
        ),
        (|key| key.stored.requests = u32::MAX, "no number"),
    ];
    for (change, said) in cases {
        let mut key = join_key(SLEEPER, NEVER);
        change(&mut key);
        // SAFETY: a key.
        let (why, size) = unsafe { (motet_join_key_fault(&key), motet_join_key_size(&key)) };
        assert!(words(why).contains(said), "{said}: {}", words(why));
        assert_eq!(size, 0, "{said}");
    }
    let key = join_key(SLEEPER, NEVER);
    // SAFETY: a key, null, and a node that has a key.
    unsafe {
        assert!(motet_join_key_fault(&key).is_null());
        assert_eq!(motet_join_key_size(ptr::null()), 0);
        let keyed = node(&config(SLEEPER), NEVER, 0);
        let size = motet_join_key_size(&key);
        let memory = leak(vec![0_u64; size.div_ceil(8)]).as_mut_ptr();
        let given = motet_set_join_key(keyed, memory.cast(), size, &key);
        assert_eq!(given, -MOTET_EINVAL);
        assert_eq!(motet_join_state(keyed), -MOTET_EINVAL);
    }
}
