//! Nodes whose radios assess the channel, take ACKs, or both, by themselves, over an air that is
//! often busy and loses frames and ACKs.

use super::*;
use crate::mac::{Action as RadioAction, AttemptOutcome, Event as RadioEvent, Unfit};

/// Two nodes next to each other, and what is under way between them.
struct Pair {
    nodes: [Node<'static>; 2],
    radio: RadioCapabilities,
    now: Instant,
    events: BTreeMap<(Instant, u64), (usize, Pending)>,
    loaded: [Vec<u8>; 2],
    on_air_until: [Instant; 2],
    attempts: u64,
    /// How many attempts ended in each way: acknowledged, done, no ACK, busy, failed.
    outcomes: [u32; 5],
}

impl Pair {
    fn new(radio: RadioCapabilities) -> Self {
        let nodes = [0, 1].map(|n| {
            let mut rng = Rng::from_seed([11, n as u64]);
            // Both look for a router, by frames for all.
            let config = MeshConfig::default();
            let d = mac::config::RETRY_DELAY_MAX;
            let link = radio_with(radio, n, config, d, 16, &mut rng);
            let tcp = tcp_engine(&mut rng);
            let ip = Ip::new(IpConfig::default(), memory(None, 2));
            Node::new(Vec::leak(std::vec![link]), ip, tcp, rng, Instant::ORIGIN)
        });
        Self {
            nodes,
            radio,
            now: Instant::ORIGIN,
            events: BTreeMap::new(),
            loaded: Default::default(),
            on_air_until: [Instant::ORIGIN; 2],
            attempts: 0,
            outcomes: [0; 5],
        }
    }

    fn at(&mut self, at: Instant, node: usize, pending: Pending) {
        let sequence = self.events.len() as u64 + self.attempts * 1_000;
        self.events.insert((at, sequence), (node, pending));
    }

    fn poll(&mut self, node: usize) {
        let mut out = [0; ACTION_LEN_MAX];
        let now = self.now;
        while let Some((_, action)) = self.nodes[node].poll_action(now, &mut out) {
            let Action::Mesh(action) = action else {
                panic!("a node with one radio: {action:?}");
            };
            let us = Duration::from_micros;
            match action {
                RadioAction::Preload { len } => {
                    self.loaded[node] = out[..len].to_vec();
                    self.at(now + us(100), node, Pending::Radio(RadioEvent::Preloaded));
                }
                RadioAction::AssessChannel => {
                    assert!(!self.radio.assesses, "it does so by itself");
                    let clear = now >= self.on_air_until[1 - node];
                    let event = RadioEvent::ChannelAssessed { clear };
                    self.at(now + us(128), node, Pending::Radio(event));
                }
                RadioAction::Fire => self.attempt(node),
                RadioAction::Transmit { .. } => panic!("the radio acknowledges by itself"),
                _ => {}
            }
        }
    }

    fn attempt(&mut self, node: usize) {
        self.attempts += 1;
        let (n, frame, other) = (self.attempts, self.loaded[node].clone(), 1 - node);
        let us = Duration::from_micros;
        let asks = frame[0] & 0x20 != 0;
        let (outcome, is_heard) = match n {
            _ if n % 11 == 0 => (AttemptOutcome::Busy, false),
            _ if n % 97 == 0 => (AttemptOutcome::Failed, false),
            _ if asks && n % 7 == 0 => (AttemptOutcome::NoAck, false),
            // The ACK is lost.
            _ if asks && n % 13 == 0 => (AttemptOutcome::NoAck, true),
            _ if asks => (AttemptOutcome::Acked { pending: false }, true),
            _ => (AttemptOutcome::Done, true),
        };
        self.outcomes[match outcome {
            AttemptOutcome::Acked { .. } => 0,
            AttemptOutcome::Done => 1,
            AttemptOutcome::NoAck => 2,
            AttemptOutcome::Busy => 3,
            AttemptOutcome::Failed => 4,
            AttemptOutcome::Unknown => unreachable!("it is not among the cases"),
        }] += 1;
        if matches!(outcome, AttemptOutcome::Busy | AttemptOutcome::Failed) {
            let (at, until) = (self.now, self.now + us(10_000));
            let event = RadioEvent::Sent { outcome, at };
            return self.at(until, node, Pending::Radio(event));
        }
        let mut start = self.now + us(192);
        if self.radio.assesses {
            start = (start + us(1_120)).max(self.on_air_until[other] + us(320));
        }
        let end = start + us((6 + frame.len() as u64) * 32);
        let ack_end = end + us(544);
        self.on_air_until[node] = ack_end;
        let reported = match self.radio.takes_acks && asks {
            true => (outcome, ack_end),
            false => (AttemptOutcome::Done, end),
        };
        let event = RadioEvent::Sent {
            outcome: reported.0,
            at: end,
        };
        self.at(reported.1, node, Pending::Radio(event));
        if is_heard {
            self.at(end, other, Pending::Frame(frame.clone()));
        }
        if !self.radio.takes_acks && matches!(outcome, AttemptOutcome::Acked { .. }) {
            let mut ack = [0; 5];
            let header = crate::wire::ieee802154::Header::ack(frame[2], false);
            header.emit_frame(&[], &mut ack).unwrap();
            self.at(ack_end, node, Pending::Frame(ack.to_vec()));
        }
    }

    fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            (0..2).for_each(|node| self.poll(node));
            let deadlines = self.nodes.iter().filter_map(Node::next_deadline);
            let event = self.events.keys().next().copied();
            let next = earliest(deadlines.min(), event.map(|(at, _)| at));
            let Some(next) = next.filter(|at| *at <= end) else {
                break;
            };
            self.now = self.now.max(next);
            if let Some(key) = event.filter(|(at, _)| *at <= self.now) {
                let (node, pending) = self.events.remove(&key).unwrap();
                let meta = RxMeta {
                    rssi_dbm: -60,
                    lqi: 255,
                    channel: 26,
                    at: self.now,
                };
                let event = match &pending {
                    Pending::Frame(psdu) => RadioEvent::FrameReceived { psdu, meta },
                    Pending::Radio(event) => *event,
                    Pending::Packet(_) => panic!("there is no wire"),
                };
                self.nodes[node].on_event(RADIO, Event::Mesh(event), self.now);
            }
        }
        self.now = end;
    }

    fn mac(&self, node: usize) -> &mac::Mac<'static> {
        match self.nodes[node].link(RADIO) {
            Some(Link::Mesh(mesh)) => mesh.mac(),
            _ => panic!("node {node} has a radio"),
        }
    }
}

const WHOLE: RadioCapabilities = RadioCapabilities {
    assesses: true,
    takes_acks: true,
    ..RadioCapabilities::CC2420
};

const RADIOS: [RadioCapabilities; 4] = [
    WHOLE,
    RadioCapabilities {
        takes_acks: false,
        ..WHOLE
    },
    RadioCapabilities {
        assesses: false,
        ..WHOLE
    },
    RadioCapabilities {
        shared_buffer: true,
        ..WHOLE
    },
];

#[test]
fn streams_cross_an_air_that_is_busy_and_loses_frames() {
    for radio in RADIOS {
        let mut pair = Pair::new(radio);
        let target = (ip::link_local(link(1).iid()), 9);
        let buffers = || Buffers::new(memory(0, 2048), memory(0, 2304));
        let tcp = pair.nodes[1].tcp_mut();
        let listener = tcp.listen(None, target.1, &SETTINGS).unwrap();
        let now = pair.now;
        let client = pair.nodes[0].connect(target, buffers(), &SETTINGS, now);
        let server = pair.nodes[1].tcp_mut().accept(listener, buffers(), now);
        let handles = [client.unwrap(), server.unwrap()];
        let data = [bytes(10_000), bytes(12_000)];
        let (mut sent, mut received) = ([0, 0], [Vec::new(), Vec::new()]);
        for _ in 0..20_000 {
            let now = pair.now;
            for node in 0..2 {
                let tcp = pair.nodes[node].tcp_mut();
                let rest = &data[node][sent[node]..];
                match tcp.send(handles[node], rest, now) {
                    Ok(count) => sent[node] += count,
                    Err(SendError::BufferFull) => {}
                    Err(error) => panic!("{error:?} after {sent:?} bytes"),
                }
                let mut part = [0; 512];
                if let Ok(count) = tcp.recv(handles[node], &mut part) {
                    received[node].extend_from_slice(&part[..count]);
                }
            }
            if received[0].len() == data[1].len() && received[1].len() == data[0].len() {
                break;
            }
            pair.run_for(Duration::from_millis(2));
        }
        assert!(
            received[0] == data[1] && received[1] == data[0],
            "{radio:?}"
        );
        assert!(
            pair.outcomes.iter().all(|count| *count > 0),
            "{:?}",
            pair.outcomes
        );
        // What is under way ends.
        pair.run_for(Duration::from_secs(3));
        let mut counted = [0; 4];
        for node in 0..2 {
            let counters = pair.mac(node).counters();
            counted[0] += counters.transmissions;
            counted[1] += counters.ack_timeouts;
            counted[2] += counters.csma_failures;
            counted[3] += counters.radio_resets;
            assert_eq!(
                counters.dropped(mac::FrameDrop::NoAck),
                0,
                "eight attempts suffice"
            );
        }
        let [acked, done, no_ack, busy, failed] = pair.outcomes;
        assert_eq!((counted[1], counted[3]), (no_ack, failed), "{radio:?}");
        // The MAC's own assessments come on top.
        let is_told = match radio.assesses {
            true => counted[2] == busy,
            false => counted[2] >= busy,
        };
        assert!(is_told, "{} of {busy}, {radio:?}", counted[2]);
        assert_eq!(counted[0], acked + done + no_ack);
        // A seventh of the frames is lost, and a thirteenth of the ACKs: 1.28 attempts for each
        // frame, whatever the channel is.
        let etx = pair.mac(0).neighbor(link(1)).unwrap().etx().unwrap();
        assert!((140..190).contains(&etx), "{etx} of 128");
    }
}

#[test]
fn a_link_refuses_what_its_radio_cannot_do() {
    let build = |config: MeshConfig, radio: RadioCapabilities, change: fn(&mut mac::Config)| {
        let mut mac = mac::Config::new(0x4d54, eui(1));
        change(&mut mac);
        let mut rng = Rng::from_seed([1, 2]);
        let mesh = Mesh::new(config, (mac, radio), mesh_memory(4, 1), &mut rng);
        mesh.map(|_| ()).err()
    };
    let immediate = MeshConfig {
        forwarding: Forwarding::Immediate,
        ..MeshConfig::default()
    };
    let plain = MeshConfig::default();
    for radio in RADIOS {
        assert_eq!(build(plain, radio, |_| {}), None);
        assert_eq!(build(immediate, radio, |_| {}), Some(Unfit::Immediate));
    }
    for radio in [RadioCapabilities::CC2420, RadioCapabilities::AT86RF233] {
        assert_eq!(build(immediate, radio, |mac| mac.assessed = false), None);
    }
    let unassessed = build(plain, WHOLE, |mac| mac.assessed = false);
    assert_eq!(unassessed, Some(Unfit::Unassessed));
    let deaf = build(plain, WHOLE, |mac| mac.deaf_backoff = true);
    assert_eq!(deaf, Some(Unfit::DeafBackoff));
    let of_software = RadioCapabilities {
        auto_ack: false,
        ..WHOLE
    };
    assert_eq!(build(plain, of_software, |_| {}), Some(Unfit::SoftwareAcks));
}
