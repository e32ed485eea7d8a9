//! A whole node, a border router, fed frames and packets: it never panics, always comes to
//! rest, and gives up every record.

use std::net::Ipv6Addr;

use motet::ip::Prefix;
use motet::link::{Advertised, MeshConfig, Relaying};
use motet::mac::{self, RadioCapabilities};
use motet::tcp::Config;
use motet::time::Duration;
use motet::wire::{LinkAddr, ieee802154};

use crate::driven::{Driven, PAN, Setup, Store, THEM, US, attempt, framed};
use crate::input::Input;
use crate::wire::{HOST, MESH};

/// Runs a border router through the events of an input.
pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let kind = input.u8();
    let relaying = match kind & 1 {
        0 => Relaying::Fragments,
        _ => Relaying::Reassembly,
    };
    let mut store = Store::new();
    let (driven, _listener) = store.node(&border_router(kind, relaying));
    let mut driver = Driver {
        driven,
        sequence: 0,
    };
    driver.rest();
    while !input.is_empty() {
        driver.step(&mut input);
    }
    driver.sleep();
}

struct Driver<'m> {
    driven: Driven<'m>,
    sequence: u8,
}

impl Driver<'_> {
    fn step(&mut self, input: &mut Input<'_>) {
        let driven = &mut self.driven;
        driven.now += Duration::from_micros(u64::from(input.u8()) * 100);
        let op = input.u8();
        match op & 7 {
            0 => driven.radio(mac::Event::Preloaded),
            1 => driven.radio(mac::Event::ChannelAssessed { clear: op & 8 != 0 }),
            2 if op & 8 != 0 => driven.radio(mac::Event::Sent {
                outcome: attempt(op >> 4),
                at: driven.now,
            }),
            2 => driven.radio(mac::Event::TransmitDone { at: driven.now }),
            3 => driven.now += Duration::from_millis(u64::from(input.u16())),
            4 => {
                let len = usize::from(input.u16() & 0x7ff);
                driven.packet(input.bytes(len));
            }
            _ => {
                let frame = frame(input.block(), op, &mut self.sequence);
                driven.receive(&frame, op & 64 != 0);
            }
        }
        self.rest();
    }

    /// Does whatever is due; the node must come to an end with it.
    fn rest(&mut self) {
        let mut out = [0; 1500];
        let ends = (0..1000).any(|_| self.driven.poll(&mut out).is_none());
        assert!(ends, "the node never rests");
    }

    /// Ten minutes in which nothing more comes.
    fn sleep(&mut self) {
        let end = self.driven.now + Duration::from_secs(600);
        let mut wakes = 0;
        while self.driven.wakes_before(end) {
            self.rest();
            wakes += 1;
            assert!(wakes < 5_000, "it does not sleep");
        }
        let _radio = self.driven.idle_radio();
    }
}

/// A frame as it comes from the radio: `body` as it is, or with a header to us and an FCS,
/// so that the layers above see it.
fn frame(body: &[u8], op: u8, sequence: &mut u8) -> Vec<u8> {
    if op & 8 != 0 {
        return body.get(..body.len().min(127)).unwrap_or(body).to_vec();
    }
    *sequence = sequence.wrapping_add(1);
    let dst = match op & 16 {
        0 => LinkAddr::Extended(US),
        _ => LinkAddr::BROADCAST,
    };
    let header = ieee802154::Header::data(PAN, dst, LinkAddr::Extended(THEM), *sequence);
    framed(&header, body)
}

/// A router that advertises the mesh's prefix, and leads to all of it by one neighbour. Bits of
/// `kind` say what its radio does by itself.
fn border_router(kind: u8, relaying: Relaying) -> Setup {
    let [a, b, c, d, ..] = HOST.segments();
    let [by_wire, by_radio] = [HOST, MESH].map(|addr| Prefix { addr, len: 64 });
    Setup {
        capabilities: RadioCapabilities {
            assesses: kind & 2 != 0,
            takes_acks: kind & 4 != 0,
            ..RadioCapabilities::CC2420
        },
        radio: MeshConfig {
            relaying,
            solicits: false,
            advertised: Some(Advertised {
                prefix: MESH,
                lifetime: Advertised::LIFETIME,
            }),
            ..MeshConfig::default()
        },
        addr: Ipv6Addr::new(a, b, c, d, 0, 0, 0, 2),
        by_wire,
        by_radio: (by_radio, THEM),
        settings: &Config::DEFAULT,
    }
}
