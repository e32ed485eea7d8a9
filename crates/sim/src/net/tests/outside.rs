//! A border router and a mote whose radios are the test's: they assess the channel and take ACKs by
//! themselves, and hear each other always.

use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv6Addr;
use std::path::Path;

use motet::ip::InterfaceId;
use motet::link::Link;
use motet::mac::security::NetworkKey;
use motet::mac::{self, Action, AttemptOutcome, Event, Pending, Policy, RadioCapabilities, RxMeta};
use motet::node::{JoinProxy, JoinRole};
use motet::time::{Duration, Instant};
use motet::wire::LinkAddr;
use motet::wire::ieee802154::{Command, FrameType, Header};
use motet_state::{Counters, KeyName};

use super::super::counter_store::CounterStore;
use super::super::world::World;
use super::{Key, Role, Settings, node};
use crate::Arena;
use crate::apps::content::Content;
use crate::apps::{App, Ends, Receiver, Sender};
use crate::keys::{JoinSecret, SECRET_LEN};
use crate::net::plan;

const RADIO: RadioCapabilities = RadioCapabilities {
    stamp_delay_max: Duration::from_millis(2),
    pending: Pending::PerNeighbour,
    ..RadioCapabilities::OFFLOADING
};

/// A radio that is the test's.
#[derive(Default)]
struct Radio {
    loaded: Vec<u8>,
    /// When the frame under way has been sent and acknowledged.
    done_at: Option<Instant>,
    answers: VecDeque<Event<'static>>,
    /// Since when its receiver is off, if it is, and for how long it was before.
    off_since: Option<Instant>,
    off: Duration,
    /// Those whose data requests are answered by an ACK with the frame pending bit.
    pending: BTreeSet<[u8; 8]>,
}

impl Radio {
    fn perform(&mut self, action: Action, bytes: &[u8], now: Instant) {
        match action {
            Action::Preload { .. } => {
                self.loaded = bytes.to_vec();
                self.answers.push_back(Event::Preloaded);
            }
            Action::Fire => self.done_at = Some(now + AIRTIME),
            Action::Listen => {
                let off = self.off_since.take().map(|since| now.since(since));
                self.off = self.off + off.unwrap_or_default();
            }
            Action::Sleep => self.off_since = self.off_since.or(Some(now)),
            Action::ChangeChannel { .. } => {}
            Action::SetPending { of, pending } => {
                let Some(LinkAddr::Extended(of)) = of else {
                    panic!("{of:?}");
                };
                match pending {
                    true => self.pending.insert(of),
                    false => self.pending.remove(&of),
                };
            }
            Action::AssessChannel | Action::Transmit { .. } => panic!("{action:?}"),
        }
    }

    /// The answer to a frame that has been sent to this radio.
    fn answer(&self, psdu: &[u8]) -> AttemptOutcome {
        let (header, _, payload) = Header::parse_secured(psdu).unwrap();
        if !header.ack_request {
            return AttemptOutcome::Done;
        }
        if self.off_since.is_some() {
            return AttemptOutcome::NoAck;
        }
        let is_command = header.frame_type == FrameType::Command;
        let is_request = is_command && Command::parse(payload) == Ok(Command::DataRequest);
        let waits = header.src.is_some_and(|src| match src.addr {
            LinkAddr::Extended(src) => self.pending.contains(&src),
            _ => false,
        });
        AttemptOutcome::Acked {
            pending: is_request && waits,
        }
    }
}

/// Lets both worlds go on until `until`.
fn run(worlds: &mut [World<'_>; 2], radios: &mut [Radio; 2], until: Instant) {
    loop {
        let now = worlds[0].now();
        let mut acted = false;
        for here in 0..2 {
            while let Some((action, bytes)) = worlds[here].take_order(0) {
                radios[here].perform(action, &bytes, now);
                acted = true;
            }
            if radios[here].done_at.is_some_and(|at| at <= now) {
                radios[here].done_at = None;
                let meta = RxMeta {
                    rssi_dbm: -50,
                    lqi: 255,
                    channel: 26,
                    at: now,
                };
                let psdu = &radios[here].loaded;
                // Before the frame reaches the stack there: the radio acknowledges by itself.
                let outcome = radios[1 - here].answer(psdu);
                if radios[1 - here].off_since.is_none() {
                    worlds[1 - here].hear(0, Event::FrameReceived { psdu, meta });
                }
                worlds[here].hear(0, Event::Sent { outcome, at: now });
                acted = true;
            }
            while let Some(event) = radios[here].answers.pop_front() {
                worlds[here].hear(0, event);
                acted = true;
            }
        }
        if acted {
            continue;
        }
        if now >= until {
            return;
        }
        let nexts = worlds.iter().map(World::next_event_at);
        let nexts = nexts.chain(radios.iter().map(|radio| radio.done_at));
        let next = nexts.flatten().min().unwrap_or(until).min(until);
        worlds.iter_mut().for_each(|world| world.run_until(next));
    }
}

fn settings(n: u16, role: Role, key: Option<CounterStore>) -> Settings {
    Settings {
        thread: None,
        radio: RADIO,
        mac: mac::Config {
            answer_timeout: Duration::from_secs(1),
            ..mac::Config::new(0xabcd, plan::eui64(n))
        },
        role,
        key: key.map(|store| (Key::Network(NetworkKey::new([1; 16]), 0), store)),
        sockets: [2, 1, 1],
        seed: n.into(),
    }
}

const ROUTER: Role = Role::Router {
    prefix: plan::MESH_PREFIX,
    motes: 4,
    offers_compression: true,
};

/// Lets a mote join, and carries a stream from it to the router.
fn carry(keys: [Option<CounterStore>; 2]) {
    let [router_key, mote_key] = keys;
    let mote = settings(1, Role::Mote, mote_key);
    carry_between(&[settings(0, ROUTER, router_key), mote]);
}

/// Lets node 1 join, and carries a stream from it to node 0.
fn carry_between(settings: &[Settings; 2]) {
    let arena = Arena::new();
    let mut worlds = settings
        .each_ref()
        .map(|settings| node(settings, &arena).unwrap());
    let mut radios = [Radio::default(), Radio::default()];
    run(&mut worlds, &mut radios, Instant::from_micros(30_000_000));
    let global = worlds[1].node(0).global_address();
    assert_eq!(global, Some(plan::mesh_addr(1)));
    let steps: Vec<_> = worlds[0].node(0).routes_down().copied().collect();
    assert_eq!(steps.len(), 1, "{steps:?}");

    let content = Content::made([9; 2], 20_000);
    let link_local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0);
    let router = plan::addr_of(link_local, LinkAddr::Extended(plan::eui64(0)));
    let receiver = Receiver::checking(4_000, Ends::host(&arena), content.clone());
    worlds[0].set_app(0, App::Receiver(receiver));
    let sender = Sender::new(content, (router, 4_000), Ends::host(&arena));
    worlds[1].set_app(0, App::Sender(sender));
    run(&mut worlds, &mut radios, Instant::from_micros(60_000_000));
    let App::Receiver(receiver) = worlds[0].app(0) else {
        panic!("it was given one");
    };
    assert_eq!((receiver.received, receiver.progress.error), (20_000, None));
}

/// A mote that asks every ten seconds registers with the router, which keeps the segments of a
/// stream to it until it asks.
#[test]
fn a_mote_sleeps_while_its_router_keeps_its_packets() {
    let arena = Arena::new();
    let sleeper = Role::Sleeper(Policy::Hinted(Duration::from_secs(10)));
    let mut worlds = [
        node(&settings(0, ROUTER, None), &arena).unwrap(),
        node(&settings(1, sleeper, None), &arena).unwrap(),
    ];
    let mut radios = [Radio::default(), Radio::default()];
    run(&mut worlds, &mut radios, Instant::from_micros(30_000_000));
    let global = worlds[1].node(0).global_address();
    assert_eq!(global, Some(plan::mesh_addr(1)));
    let steps: Vec<_> = worlds[0].node(0).routes_down().copied().collect();
    assert_eq!(steps.len(), 1, "{steps:?}");

    let before = radios[1].off;
    run(&mut worlds, &mut radios, Instant::from_micros(130_000_000));
    let off = radios[1].off.as_micros() - before.as_micros();
    // A request each ten seconds, and neighbour discovery.
    assert!(
        off > 95_000_000,
        "its receiver was off for {off} us of 100 s"
    );

    let content = Content::made([9; 2], 20_000);
    let ends = Ends::host(&arena);
    let receiver = Receiver::checking(4_000, ends, content.clone());
    worlds[1].set_app(0, App::Receiver(receiver));
    let to = (plan::mesh_addr(1), 4_000);
    worlds[0].set_app(0, App::Sender(Sender::new(content, to, ends)));
    run(&mut worlds, &mut radios, Instant::from_micros(200_000_000));
    let App::Receiver(receiver) = worlds[1].app(0) else {
        panic!("it was given one");
    };
    assert_eq!((receiver.received, receiver.progress.error), (20_000, None));
}

/// Headers are compressed where the border router offers it, in a connection that begins after the
/// mote's first two minutes.
#[test]
fn headers_are_compressed_where_the_router_offers_it() {
    for offers_compression in [true, false] {
        let router = Role::Router {
            prefix: plan::MESH_PREFIX,
            motes: 4,
            offers_compression,
        };
        let arena = Arena::new();
        let settings = [settings(0, router, None), settings(1, Role::Mote, None)];
        let mut worlds = settings.map(|settings| node(&settings, &arena).unwrap());
        let mut radios = [Radio::default(), Radio::default()];
        run(&mut worlds, &mut radios, Instant::from_micros(150_000_000));
        let content = Content::made([9; 2], 20_000);
        let ends = Ends::host(&arena);
        let receiver = Receiver::checking(4_000, ends, content.clone());
        worlds[1].set_app(0, App::Receiver(receiver));
        let to = (plan::mesh_addr(1), 4_000);
        worlds[0].set_app(0, App::Sender(Sender::new(content, to, ends)));
        run(&mut worlds, &mut radios, Instant::from_micros(200_000_000));
        let App::Receiver(receiver) = worlds[1].app(0) else {
            panic!("it was given one");
        };
        assert_eq!((receiver.received, receiver.progress.error), (20_000, None));
        let sent = |world: &World<'_>| {
            let mesh = world.node(0).link(InterfaceId(0)).and_then(Link::mesh);
            let tcphc = mesh.and_then(|mesh| mesh.tcphc());
            tcphc.map_or(0, |tcphc| tcphc.counters().sent[..3].iter().sum::<u32>())
        };
        let [router, mote] = worlds.each_ref().map(sent);
        assert_eq!(router > 20, offers_compression, "{router}");
        assert_eq!(mote > 20, offers_compression, "{mote}");
        assert_eq!(router + mote == 0, !offers_compression);
    }
}

#[test]
fn what_the_radio_cannot_do_is_refused() {
    let mut settings = settings(0, Role::Mote, None);
    settings.mac.assessed = false;
    let refused = node(&settings, &Arena::new()).map(drop);
    assert_eq!(refused, Err(mac::Unfit::Unassessed));
}

#[test]
fn a_mote_joins_and_sends_a_stream() {
    carry([None, None]);
}

/// The place for the frame counters of a node in `folder`, under a key's name.
fn store(folder: &Path, name: &[u8], n: u16) -> CounterStore {
    let counters = Counters::open(folder, KeyName::of(name), &n.to_string());
    let node = std::iter::once(plan::eui64(n));
    CounterStore::begin(counters.unwrap(), 0, node, |_| {}).unwrap()
}

/// A mote gets the network's key from the border router by its own key, then another one that
/// replaces it; a revoked mote gets none.
#[test]
fn a_mote_without_the_key_asks_for_it_and_a_revoked_one_gets_none() {
    let secret = JoinSecret::new([3; SECRET_LEN]);
    let network = NetworkKey::new([1; 16]);
    for revoked in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let arena = Arena::new();
        let left_out = revoked.then_some(plan::eui64(1)).into_iter().collect();
        let registrar = Key::Registrar(network, 5, secret, left_out);
        let stores = [0, 1].map(|n| store(folder.path(), &[7; 16], n));
        let [router_store, mote_store] = stores;
        let settings_of = |n, role, key| Settings {
            key: Some(key),
            ..settings(n, role, None)
        };
        let own = Key::Join(secret.key(plan::eui64(1)));
        let mut worlds = [
            node(
                &settings_of(0, ROUTER, (registrar, router_store.clone())),
                &arena,
            )
            .unwrap(),
            node(&settings_of(1, Role::Mote, (own, mote_store)), &arena).unwrap(),
        ];
        let mut radios = [Radio::default(), Radio::default()];
        run(&mut worlds, &mut radios, Instant::from_micros(60_000_000));
        let given = worlds[1]
            .given(0)
            .map(|given| (given.network, given.sequence));
        let global = worlds[1].node(0).global_address();
        let role = worlds[1].node(0).join_proxy().map(JoinProxy::role);
        let kept = router_store.stored(plan::eui64(1)).number;
        if revoked {
            assert_eq!((given, global, kept), (None, None, 0));
            continue;
        }
        assert_eq!(given, Some((network, 5)));
        assert_eq!(global, Some(plan::mesh_addr(1)));
        assert_eq!(role, Some(JoinRole::Proxy(plan::mesh_addr(0))));
        assert!(kept > 0, "the number of its request is stored");
        // Another network key is announced to it.
        let other = NetworkKey::new([2; 16]);
        assert!(worlds[0].replace_key((other, 0), std::iter::empty()));
        run(&mut worlds, &mut radios, Instant::from_micros(90_000_000));
        assert_eq!(worlds[0].given(0).map(|given| given.network), Some(other));
        assert_eq!(worlds[1].given(0).map(|given| given.network), Some(other));
    }
}

#[test]
fn a_mote_whose_radio_tells_of_no_ack_joins_and_sends_a_stream() {
    let mut both = [settings(0, ROUTER, None), settings(1, Role::Mote, None)];
    for settings in &mut both {
        settings.mac.acknowledged = false;
    }
    carry_between(&both);
}

#[test]
fn a_host_without_rpl_registers_and_sends_a_stream() {
    carry_between(&[settings(0, ROUTER, None), settings(1, Role::Host, None)]);
}

#[test]
fn a_mote_with_a_key_joins_and_sends_a_stream() {
    let folder = tempfile::tempdir().unwrap();
    let keys = [0, 1].map(|n| Some(store(folder.path(), &[1; 16], n)));
    carry(keys);
}

/// From the order to send until the ACK is there.
const AIRTIME: Duration = Duration::from_millis(5);
