//! Buffers of every size, the zero-copy send buffer, and what things cost.

use super::super::{
    Buffers, Config, Connection, HalfOpen, Handle, Listener, Piece, RecvBuffer, RecvError,
    SendBuffer, SendError, SliceQueue, recv_memory_len,
};
use super::*;

/// On a 64-bit host, references count double; the limits of a mote are asserted where the
/// types are compiled for one.
#[test]
fn sizes_stay_in_proportion() {
    assert!(
        size_of::<Connection<'_>>() <= 336,
        "{}",
        size_of::<Connection<'_>>()
    );
    assert!(size_of::<Listener<'_>>() <= 32);
    assert!(size_of::<HalfOpen>() <= 60);
}

#[test]
fn tiny_buffers_work() {
    for (send, window) in [(1, 1), (1, 3000), (3000, 1), (3, 2)] {
        let config = Config {
            accept_window: window,
            ack_delay_ms: 0,
            nagle: false,
            ..PLAIN
        };
        transfer::transfer_in(Net::new(CLEAN, 1), config, 60, (send, window));
    }
}

#[test]
fn no_buffers_at_all_is_no_crash() {
    let mut s = Script::listening(PLAIN);
    let listener = s.listener.unwrap();
    let none = Buffers::new(&mut [], &mut []);
    s.handle = Some(s.tcp.accept(listener, none, s.now()).unwrap());
    s.peer(say(SYN, 0, 0)).unwrap();
    s.iss = s.sent().header.seq;
    s.peer(say(ACK, 1, 1).data(b"nowhere to go")).unwrap();
    assert_eq!(s.expect(ACK, 1, 1, 0).header.window, 0);
    let (handle, now) = (s.handle(), s.now());
    assert_eq!(s.tcp.send(handle, b"x", now), Err(SendError::BufferFull));
    assert_eq!(s.tcp.recv(handle, &mut [0]), Err(RecvError::Empty));
}

#[test]
fn huge_buffers_are_used_up_to_65535() {
    let mut memory = std::vec![0; 200_000];
    let buffer = RecvBuffer::new(&mut memory);
    assert_eq!(buffer.capacity(), u16::MAX);
    let mut memory = std::vec![0; 200_000];
    assert_eq!(SendBuffer::ring(&mut memory).room(), u16::MAX);
    assert_eq!(recv_memory_len(u16::MAX), 65_535 + 8_192);
    let config = Config {
        accept_window: u16::MAX,
        ..Config::DEFAULT
    };
    let link = Link { loss: 20, ..CLEAN };
    transfer::transfer_in(Net::new(link, 4), config, 300_000, (100_000, u16::MAX));
}

#[test]
fn bytes_can_be_looked_at_in_place() {
    let mut s = Script::accepted(PLAIN);
    s.peer(say(ACK, 1, 1).data(b"headbody")).unwrap();
    let handle = s.handle();
    assert_eq!(s.tcp.peek(handle), Ok(&b"headbody"[..]));
    s.tcp.consume(handle, 4);
    assert_eq!(s.tcp.peek(handle), Ok(&b"body"[..]));
    s.tcp.consume(handle, 100);
    assert_eq!(s.tcp.peek(handle), Err(RecvError::Empty));
}

pub(super) fn slices(pieces: usize, copies: usize) -> SendBuffer<'static> {
    let pieces = Box::leak(vec![Piece::EMPTY; pieces].into_boxed_slice());
    let copies = Box::leak(vec![0; copies].into_boxed_slice());
    SendBuffer::slices(Box::leak(Box::new(SliceQueue::new(pieces, copies))))
}

/// A constant image and small writes around it, over a bad link: sent from where they lie.
#[test]
fn zero_copy_sends_the_same_stream() {
    let image: &'static [u8] = Box::leak(pattern(7, 30_000).into_boxed_slice());
    let link = Link {
        loss: 60,
        reorder: 100,
        ..CLEAN
    };
    for seed in 0..5 {
        let mut net = Net::new(link, seed);
        let (config, now) = (leak(Config::DEFAULT), net.now());
        let listener = net.hosts[1].listen(None, PORT, config).unwrap();
        let server = net.hosts[1]
            .accept(listener, buffers(10, 3000), now)
            .unwrap();
        let lent = Buffers {
            send: slices(3, 64),
            recv: buffers(0, 100).recv,
        };
        let client: Handle = net.hosts[0]
            .connect(US, (PEER, PORT), lent, config, Offer::UNBOUNDED, now)
            .unwrap();
        assert_eq!(net.hosts[0].send(client, b"length: ", now), Ok(8));
        assert_eq!(
            net.hosts[0].send(client, b"30000\n", now),
            Ok(6),
            "coalesced"
        );
        net.hosts[0].send_slice(client, image, now).unwrap();
        assert_eq!(net.hosts[0].send(client, b"end", now), Ok(3));
        assert_eq!(
            net.hosts[0].send_slice(client, image, now),
            Err(SendError::BufferFull)
        );
        net.hosts[0].shutdown(client, now);
        let mut received = Vec::<u8>::new();
        loop {
            let mut out = [0; 999];
            match net.hosts[1].recv(server, &mut out) {
                Ok(count) => received.extend(&out[..count]),
                Err(RecvError::Empty) => assert!(net.step()),
                Err(error) => {
                    assert_eq!(error, RecvError::Finished);
                    break;
                }
            }
        }
        let expected = [b"length: 30000\n", image, b"end"].concat();
        assert!(received == expected, "seed {seed}");
    }
    // A ring takes no slices.
    let mut s = Script::accepted(PLAIN);
    let (handle, now) = (s.handle(), s.now());
    assert_eq!(
        s.tcp.send_slice(handle, image, now),
        Err(SendError::BufferFull)
    );
}

/// Memory of handshakes may be lent again: what it knew of another node's peers is gone.
#[test]
fn a_new_engine_knows_no_handshake_of_the_one_before() {
    let mut half_open = [HalfOpen::EMPTY; 2];
    for has_peer in [true, false] {
        let mut connections = [Slot::EMPTY];
        let mut listeners = [Listener::EMPTY];
        let memory = Memory {
            connections: &mut connections,
            listeners: &mut listeners,
            half_open: &mut half_open,
        };
        let mut tcp = Tcp::new(memory, &mut Rng::from_seed([1, 1]));
        let listener = tcp.listen(None, PORT, leak(PLAIN)).unwrap();
        if has_peer {
            let mut script = Script::listening(PLAIN);
            let syn = script.peer_bytes(&say(SYN, 0, 0));
            let syn = incoming(PEER, US, 0, &syn);
            tcp.on_segment(&syn, script.now()).unwrap();
        }
        assert_eq!(tcp.handshakes().count(), usize::from(has_peer));
        assert!(!tcp.can_accept(listener));
        assert_eq!(tcp.next_deadline().is_some(), has_peer);
    }
}
