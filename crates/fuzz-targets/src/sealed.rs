//! A node with a key, beside a neighbour that has the key and an attacker that does not.
//!
//! The input is a program: frames that the neighbour seals, with arbitrary contents; the same
//! frames changed, cut or repeated; unsecured frames; later keys; time; a host that stores
//! counters, or fails to. The neighbour answers challenges. Invariants after each step: the node
//! accepts nothing that its neighbour has not sealed; it uses no nonce for two frames; its frame
//! counter never exceeds the stored bound; its key sequence never goes back, and never beyond the
//! neighbour's.

use std::collections::HashMap;
use std::net::Ipv6Addr;

use motet::ip::Prefix;
use motet::link::{Link, MeshConfig};
use motet::mac::security::{
    NetworkKey, Peer, Security, SecurityConfig, Software, index, open, seal,
};
use motet::mac::{self, RadioCapabilities};
use motet::node::Action;
use motet::tcp::Config;
use motet::time::Duration;
use motet::wire::LinkAddr;
use motet::wire::ieee802154::{Auxiliary, FrameType, Header, Level, fcs};

use crate::driven::{Driven, PAN, RADIO, Setup, Store, THEM, US, framed};
use crate::input::Input;
use crate::wire::HOST;

/// Runs a node with a key through a program.
pub(crate) fn run(bytes: &[u8]) {
    let _reached = reach(bytes);
}

/// As [`run`]; whether the neighbour is known in the end, and how many of its frames were believed.
fn reach(bytes: &[u8]) -> (bool, u32) {
    let mut input = Input::new(bytes);
    // As a header alone, whatever it is of.
    let _any = Header::parse_secured(bytes);
    let config = SecurityConfig {
        counter: input.u32(),
        ..SecurityConfig::new(KEY, FIRST)
    };
    let mut table = [Peer::EMPTY; 4];
    let mut security = Security::new(&config, &mut table);
    let mut store = Store::new();
    let driven = store.sealed(&setup(), &mut security);
    let mut world = World {
        driven,
        bound: config.counter,
        counter: 0,
        sequence: FIRST,
        told: Vec::new(),
        nonces: HashMap::new(),
        answer: None,
        stores: true,
        preloaded: None,
        delivered: 0,
        seen: FIRST,
    };
    world.driven.now += Duration::from_secs(1);
    world.rest();
    while !input.is_empty() {
        world.step(&mut input);
        world.rest();
        world.check();
    }
    let Some(Link::Mesh(mesh)) = world.driven.node.link(RADIO) else {
        panic!("a radio");
    };
    let is_known = mesh.mac().security().is_some_and(|it| it.knows(THEM));
    (is_known, mesh.mac().counters().received)
}

struct World<'m> {
    driven: Driven<'m>,
    /// The bound of the node's counters that was stored last.
    bound: u32,
    /// The neighbour's last frame counter, and the latest key sequence that it has used.
    counter: u32,
    sequence: u32,
    /// The frames that the neighbour has sent.
    told: Vec<Vec<u8>>,
    /// The node's own frames by key index and counter.
    nonces: HashMap<(u8, u32), Vec<u8>>,
    /// The neighbour's answer to the node's last challenge.
    answer: Option<Vec<u8>>,
    stores: bool,
    /// The sequence number of the frame in the radio.
    preloaded: Option<u8>,
    /// Frames that the node got of its neighbour's own.
    delivered: u32,
    /// The node's key sequence.
    seen: u32,
}

impl World<'_> {
    fn step(&mut self, input: &mut Input<'_>) {
        let op = input.u8();
        match op & 7 {
            0 => self.driven.receive(input.block(), op & 8 != 0),
            1 => {
                let payload = self.answer.take().filter(|_| op & 8 != 0);
                let payload = payload.unwrap_or_else(|| input.block().to_vec());
                let psdu = self.sealed(&payload, op & 16 != 0, op & 32 != 0);
                self.deliver(&psdu, op & 64 != 0);
            }
            2 => {
                // Changed, and with a right FCS.
                let mut psdu = self.sealed(input.block(), op & 16 != 0, false);
                let at = usize::from(input.u8()) % (psdu.len() - 2);
                psdu[at] ^= input.u8() | 1;
                let psdu = with_fcs(&psdu[..psdu.len() - 2]);
                self.driven.receive(&psdu, op & 64 != 0);
            }
            3 => {
                let pick = usize::from(input.u8());
                if let Some(old) = self.told.get(pick % self.told.len().max(1)).cloned() {
                    self.deliver(&old, op & 64 != 0);
                }
            }
            4 => self.sequence = self.sequence.saturating_add(u32::from(op >> 3)),
            5 => self.driven.now += Duration::from_millis(u64::from(input.u16())),
            6 => self.stores = op & 8 == 0,
            _ => {
                let header =
                    Header::data(PAN, LinkAddr::Extended(US), LinkAddr::Extended(THEM), op);
                let psdu = framed(&header, input.block());
                self.driven.receive(&psdu, op & 64 != 0);
            }
        }
    }

    /// The neighbour's next frame.
    fn sealed(&mut self, payload: &[u8], is_command: bool, to_all: bool) -> Vec<u8> {
        self.counter += 1;
        let (them, us) = (LinkAddr::Extended(THEM), LinkAddr::Extended(US));
        let number = self.counter as u8;
        let header = match (is_command, to_all) {
            (true, _) => Header::command(PAN, us, them, number),
            (false, true) => Header::data(PAN, LinkAddr::BROADCAST, them, number),
            (false, false) => Header::data(PAN, us, them, number),
        };
        let auxiliary = Auxiliary {
            level: Level::Mic32,
            counter: self.counter,
            key_index: index(self.sequence),
        };
        let mut out = [0; 125];
        let begin = header.emit_secured(&auxiliary, &mut out).expect("it fits");
        let payload = &payload[..payload.len().min(out.len() - begin - 4)];
        let len = begin + payload.len() + 4;
        out[begin..begin + payload.len()].copy_from_slice(payload);
        let clear_len = begin + usize::from(is_command && !payload.is_empty());
        let (clear, body) = out[..len].split_at_mut(clear_len);
        let cipher = Software::new(&KEY.link_key(self.sequence));
        seal(&cipher, THEM, auxiliary, clear, body).expect("there is room for a MIC");
        let psdu = with_fcs(&out[..len]);
        self.told.push(psdu.clone());
        psdu
    }

    fn deliver(&mut self, psdu: &[u8], by_head: bool) {
        self.delivered += 1;
        self.driven.receive(psdu, by_head);
    }

    /// Does whatever is due; the node must come to an end with it.
    fn rest(&mut self) {
        let mut out = [0; 1_500];
        for _ in 0..3_000 {
            let now = self.driven.now;
            if let Some((id, asked)) = self.driven.node.poll_reservation(now) {
                if self.stores {
                    self.bound = asked.counter;
                }
                self.driven.node.on_reserved(id, asked, self.stores, now);
            }
            let Some(action) = self.driven.poll(&mut out) else {
                return;
            };
            if let Action::Mesh(action) = action {
                self.obey(action, &out);
            }
        }
        panic!("the node never rests");
    }

    fn obey(&mut self, action: mac::Action, out: &[u8]) {
        match action {
            mac::Action::Preload { len } => {
                self.look(&out[..len]);
                let asks = out[0] & 0x20 != 0;
                self.preloaded = asks.then_some(out[2]);
                self.driven.radio(mac::Event::Preloaded);
            }
            mac::Action::AssessChannel => {
                self.driven
                    .radio(mac::Event::ChannelAssessed { clear: true });
            }
            mac::Action::Fire => {
                self.driven.now += Duration::from_micros(4_000);
                let at = self.driven.now;
                self.driven.radio(mac::Event::TransmitDone { at });
                if let Some(sequence) = self.preloaded {
                    self.driven.now += Duration::from_micros(192 + 352);
                    let ack = framed(&Header::ack(sequence, false), &[]);
                    self.driven.receive(&ack, false);
                }
            }
            _ => {}
        }
    }

    /// A frame of the node's own: sealed, its nonce new, its counter below what was stored. A
    /// challenge is noted.
    fn look(&mut self, psdu: &[u8]) {
        let mpdu = &psdu[..psdu.len() - 2];
        let (header, auxiliary, body) = Header::parse_secured(mpdu).expect("its own");
        let auxiliary = auxiliary.expect("a node with a key seals everything");
        assert!(
            auxiliary.counter < self.bound,
            "a counter that is not stored"
        );
        let nonce = (auxiliary.key_index, auxiliary.counter);
        let before = self.nonces.insert(nonce, psdu.to_vec());
        assert!(before.is_none_or(|before| before == psdu), "a nonce again");
        if header.frame_type != FrameType::Data {
            return;
        }
        let (clear, mut body) = (&mpdu[..mpdu.len() - body.len()], body.to_vec());
        let cipher = Software::new(&KEY.link_key(self.seen));
        let opened = open(&cipher, US, auxiliary, clear, &mut body);
        if let Ok([0x3c, flags, challenge @ ..]) = opened
            && *flags & 1 != 0
            && let Some((challenge, _)) = challenge.split_first_chunk::<8>()
        {
            self.answer = Some([&[0x3c, 2], &challenge[..]].concat());
        }
    }

    fn check(&mut self) {
        let Some(Link::Mesh(mesh)) = self.driven.node.link(RADIO) else {
            panic!("a radio");
        };
        let mac = mesh.mac();
        let security = mac.security().expect("it has a key");
        let sequence = security.sequence();
        assert!(sequence >= self.seen, "a key of the past");
        assert!(sequence <= self.sequence, "a key that nobody has used");
        for (addr, counter) in security.neighbours() {
            assert_eq!(addr, THEM, "a neighbour that nobody is");
            assert!(counter <= self.counter, "a frame that nobody has sealed");
        }
        let (received, opened) = (mac.counters().received, security.counters().opened);
        assert!(received <= opened, "believed unopened");
        assert!(opened <= self.delivered, "opened, but not sealed");
        self.seen = sequence;
    }
}

fn with_fcs(mpdu: &[u8]) -> Vec<u8> {
    [mpdu, &fcs(mpdu).to_le_bytes()].concat()
}

fn setup() -> Setup {
    let addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 9);
    let [by_wire, by_radio] = [HOST, addr].map(|addr| Prefix { addr, len: 128 });
    Setup {
        capabilities: RadioCapabilities::CC2420,
        radio: MeshConfig::default(),
        addr,
        by_wire,
        by_radio: (by_radio, THEM),
        settings: &SETTINGS,
    }
}

static SETTINGS: Config = Config {
    smss: 1440,
    ..Config::DEFAULT
};

const KEY: NetworkKey = NetworkKey::new([7; 16]);

/// The key sequence to begin with.
const FIRST: u32 = 5;

/// An acquaintance, then frames, changed ones, repeated ones, and a later key.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let zero = [0, 0, 0, 0];
    let hello = [1, 2, 0x41, 0x60];
    let acquainted = [&zero[..], &hello, &[5, 0, 50, 9]].concat();
    let after = |steps: &[u8]| [&acquainted, steps].concat();
    vec![
        acquainted.clone(),
        after(&[1, 3, 0x41, 0x60, 0, 3, 1, 3, 0, 2, 2, 1, 2, 30, 1]),
        after(&[0x0c, 1, 1, 0x41, 5, 0, 200, 1, 2, 0x41, 0, 3, 0]),
        after(&[
            0x11, 1, 4, 0x21, 2, 0x41, 0x60, 7, 2, 0x41, 0x60, 0, 2, 0x41, 0xc8,
        ]),
        [&[0xff, 0xff, 0xff, 0xf0][..], &hello, &[5, 0, 50, 9]].concat(),
        [
            &zero[..],
            &[14],
            &hello,
            &[5, 0, 50, 6, 5, 80, 0, 1, 1, 0x41],
        ]
        .concat(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A target that stops at the door proves nothing.
    #[test]
    fn the_seeds_make_an_acquaintance() {
        let reached: Vec<_> = seeds().iter().map(|seed| reach(seed)).collect();
        assert!(reached.iter().any(|(is_known, _)| *is_known), "{reached:?}");
        assert!(
            reached.iter().any(|(_, believed)| *believed > 0),
            "{reached:?}"
        );
    }
}
