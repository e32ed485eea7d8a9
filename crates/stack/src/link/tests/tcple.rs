//! TCPlE between nodes whose controllers lose nothing: what goes ahead, and what happens where a
//! peer has no TCPlE, or no longer.

use super::*;
use crate::link::TcpleMemory;
use crate::tcple::{Counters, HELD_LEN, HeldSlot, TcpleConnection};
use crate::wire::l2cap::Header as L2capHeader;

fn with_tcple(link: Ble<'static>, places: usize, held: usize) -> Ble<'static> {
    let slot = || HeldSlot::new(memory(vec![0; HELD_LEN]));
    link.with_tcple(TcpleMemory {
        sides: memory((0..places).map(|_| TcpleConnection::NEW).collect()),
        held: memory((0..held).map(|_| slot()).collect()),
    })
}

/// A central and a mote, each with TCPlE or without.
fn pair(has_tcple: [bool; 2]) -> Ether {
    let roles = [GapRole::Central, GapRole::Peripheral];
    let nodes = [1_u8, 2].into_iter().zip(roles).zip(has_tcple);
    let nodes = nodes.map(|((n, role), has)| {
        let link = link(n, role, 1);
        node_over(n, if has { with_tcple(link, 1, 2) } else { link })
    });
    Ether::of(nodes.collect())
}

impl Ether {
    fn tcple(&self, n: usize) -> Counters {
        *self.ble(n).tcple_counters().expect("TCPlE")
    }

    fn is_open(&self) -> bool {
        [0, 1].iter().all(|n| {
            let mut connections = self.ble(*n).host().connections();
            connections.any(ble::Connection::has_tcple)
        })
    }

    /// Hands a node an L2CAP PDU, as if the other one had sent it.
    fn pdu(&mut self, to: usize, channel: u16, payload: &[u8]) {
        let header = L2capHeader {
            len: payload.len() as u16,
            channel,
        };
        let mut bytes = vec![0; 4];
        header
            .emit(&mut crate::wire::cursor::Writer::new(&mut bytes))
            .unwrap();
        bytes.extend_from_slice(payload);
        let event = Event::Data {
            handle: Handle(1),
            is_first: true,
            bytes: &bytes,
        };
        let now = self.now;
        self.nodes[to].on_event(ID, LinkEvent::Ble(event), now);
    }

    fn sdu(&mut self, to: usize, sdu: &[u8]) {
        let framed = [&(sdu.len() as u16).to_le_bytes()[..], sdu].concat();
        self.pdu(to, TCPLE, &framed);
    }
}

/// How both ends call TCPlE's channel.
const TCPLE: u16 = 0x41;

/// A window that has to grow.
static SLOW: tcp::Config = tcp::Config {
    initial_window: 1,
    ..tcp::Config::DEFAULT
};

impl Ether {
    /// Sends 40,000 bytes from the mote to the central; `amid` is called as soon as some have come.
    /// Whether all came.
    fn flow(&mut self, port: u16, amid: impl FnOnce(&mut Self)) -> bool {
        const LEN: usize = 40_000;
        let buffers = || tcp::Buffers::new(memory(vec![0; 16_000]), memory(vec![0; 18_000]));
        let now = self.now;
        let tcp = self.nodes[0].tcp_mut();
        let listener = tcp.listen(None, port, &SLOW).expect("a place");
        let accepted = tcp.accept(listener, buffers(), now).expect("a slot");
        let remote = (link_local(1), port);
        let handle = self.nodes[1].connect(remote, buffers(), &SLOW, now);
        let handle = handle.unwrap();
        let (mut sent, mut received, mut amid) = (0, 0, Some(amid));
        let is_done = self.run(Duration::from_secs(60), |ether| {
            loop {
                let now = ether.now;
                let piece: Vec<u8> = (sent..LEN.min(sent + 9_000)).map(|n| n as u8).collect();
                let taken = ether.nodes[1].tcp_mut().send(handle, &piece, now);
                let mut moved = taken.unwrap_or(0);
                sent += moved;
                let mut out = [0; 500];
                while let Ok(came @ 1..) = ether.nodes[0].tcp_mut().recv(accepted, &mut out) {
                    for byte in &out[..came] {
                        assert_eq!(*byte, received as u8);
                        received += 1;
                    }
                    moved += came;
                }
                if received > 4_000
                    && let Some(amid) = amid.take()
                {
                    amid(ether);
                }
                ether.settle();
                if moved == 0 {
                    return received == LEN;
                }
            }
        });
        self.nodes[0].tcp_mut().unlisten(listener);
        is_done
    }
}

#[test]
fn a_flow_goes_by_the_second_channel_and_part_of_it_ahead() {
    let mut ether = pair([true, true]);
    ether.join();
    assert!(ether.is_open(), "the channel opens");
    assert!(ether.flow(8, |_| {}), "up");
    let (central, mote) = (ether.tcple(0), ether.tcple(1));
    assert!(mote.prefetched > 0, "{mote:?}");
    assert_eq!(mote.prefetched, central.held, "all of it was held");
    assert_eq!(central.held, central.passed_on + central.dropped);
    assert_eq!(mote.released, central.passed_on, "nothing waits for ever");
    assert!(central.passed_on >= central.held / 2, "{central:?}");
    assert_eq!((central.no_room, central.malformed), (0, 0));
    assert!(
        ether.transfer(0, 1, ether.nodes[1].global_address().unwrap()),
        "down"
    );
    assert_eq!(ether.ble(0).counters(), &LinkCounters::default());
    let sent = ether.nodes[1].tcp().counters();
    assert_eq!(sent.retransmissions.iter().sum::<u16>(), 0, "{sent:?}");
}

#[test]
fn a_peer_without_it_sees_ipsp_alone() {
    for has in [[true, false], [false, true]] {
        let mut ether = pair(has);
        ether.join();
        assert!(ether.transfer(1, 0, link_local(1)), "{has:?}");
        assert!(!ether.is_open());
        let with = usize::from(!has[0]);
        assert_eq!(ether.tcple(with), Counters::default());
        let mut connections = ether.ble(with).host().connections();
        assert!(connections.all(ble::Connection::is_open), "{has:?}");
    }
}

#[test]
fn a_channel_that_is_lost_amid_a_flow_takes_nothing_with_it() {
    let mut ether = pair([true, true]);
    ether.join();
    assert!(ether.is_open());
    // Each end breaks a rule of the channel once the flow is under way.
    for (broken, port) in [(0, 8), (1, 9)] {
        // A type that there is not.
        let all = ether.flow(port, |ether| ether.sdu(broken, &[9, 9, 9]));
        assert!(all, "node {broken}");
        assert_eq!(ether.tcple(broken).malformed, 1);
        let opens = |ether: &mut Ether| ether.is_open();
        assert!(ether.run(Duration::from_secs(10), opens), "it opens again");
    }
}

#[test]
fn a_refused_channel_leaves_ipsp_as_it_is() {
    let mut ether = pair([true, false]);
    ether.join();
    // The mote says that it has TCPlE, and refuses its channel.
    let said = crate::wire::tcple::Characteristic {
        service: 0x0090,
        held_len: 2560,
    };
    let value = said.value();
    let answer = [&[0x09, 7, 3, 0][..], &value].concat();
    ether.pdu(0, crate::wire::att::CHANNEL, &answer);
    ether.settle();
    assert!(ether.transfer(1, 0, link_local(1)));
    assert!(!ether.is_open());
    let mut connections = ether.ble(0).host().connections();
    assert!(connections.all(ble::Connection::is_open));
}

#[test]
fn what_no_peer_may_say_is_counted() {
    let mut ether = pair([true, true]);
    ether.join();
    // A release of a segment that is not held; a prefetched segment that is malformed; a filler.
    ether.sdu(0, &[3, 200, 4, 0]);
    ether.sdu(0, &[2, 1, 0x41, 0x60]);
    ether.sdu(0, &[4, 0, 0, 0]);
    let central = ether.tcple(0);
    assert_eq!((central.malformed, central.fillers), (1, 1), "{central:?}");
    assert_eq!(ether.ble(0).counters().dropped(LinkDrop::Compression), 1);
    assert!(ether.is_open(), "nothing of that ends the channel");
    // An SDU within another channel's does.
    ether.pdu(0, 0x40, &[40, 0, 1, 2, 3]);
    ether.pdu(0, TCPLE, &[1, 0, 4]);
    let dropped = ether.ble(0).host().counters();
    assert_eq!(dropped.dropped(ble::ChannelDrop::Mixed), 1);
    assert!(!ether.is_open());
}
