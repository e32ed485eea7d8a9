//! Edges: what became possible is reported, once, and nothing else is.

use super::*;
use crate::tcp::{Changed, Edges, RecvError, SendBuffer, SendError, SliceQueue, State};
use proptest::prelude::*;

/// All that changed, by connection; listeners apart.
fn drain(tcp: &mut Tcp<'_>) -> (Vec<(Handle, Edges)>, Vec<ListenerHandle>) {
    let (mut connections, mut listeners) = (Vec::new(), Vec::new());
    while let Some(changed) = tcp.poll_changed() {
        match changed {
            Changed::Connection(handle, edges) => connections.push((handle, edges)),
            Changed::Listener(listener) => listeners.push(listener),
        }
        assert!(connections.len() + listeners.len() < 100, "without end");
    }
    (connections, listeners)
}

/// The edges of the one connection of a script, as letters.
fn edges(s: &mut Script) -> &'static str {
    let (handle, (connections, listeners)) = (s.handle, drain(&mut s.tcp));
    assert_eq!(listeners, []);
    match connections[..] {
        [] => "",
        [(at, edges)] => {
            assert_eq!(Some(at), handle);
            letters(edges)
        }
        _ => panic!("reported twice: {connections:?}"),
    }
}

fn letters(edges: Edges) -> &'static str {
    let index = usize::from(edges.is_readable())
        | usize::from(edges.is_writable()) << 1
        | usize::from(edges.is_all_acknowledged()) << 2
        | usize::from(edges.is_over()) << 3;
    [
        "", "r", "w", "rw", "a", "ra", "wa", "rwa", "o", "ro", "wo", "rwo", "ao", "rao", "wao",
        "rwao",
    ][index]
}

#[test]
fn a_connection_reports_its_handshake_data_acknowledgments_and_end() {
    let (mut s, _) = Script::connecting(PLAIN);
    assert_eq!(edges(&mut s), "", "a SYN is on its way");
    s.send(100);
    assert_eq!(edges(&mut s), "");
    s.peer(say(SYN | ACK, 0, 1).mss(1000)).unwrap();
    assert_eq!(edges(&mut s), "w", "established");
    s.expect(ACK, 1, 1, 100);
    s.peer(say(ACK, 1, 51)).unwrap();
    assert_eq!(edges(&mut s), "", "half of it");
    s.peer(say(ACK, 1, 101)).unwrap();
    assert_eq!(edges(&mut s), "a");
    s.peer(say(ACK, 1, 101).data(&[7; 10])).unwrap();
    assert_eq!(edges(&mut s), "r");
    s.peer(say(ACK, 11, 101).data(&[7; 10])).unwrap();
    assert_eq!(edges(&mut s), "", "it was readable already");
    assert_eq!(s.recv().len(), 20);
    assert_eq!(edges(&mut s), "");
    s.peer(say(FIN | ACK, 21, 101)).unwrap();
    assert_eq!(edges(&mut s), "r", "the end");
    s.shutdown();
    assert_eq!(edges(&mut s), "", "a FIN acknowledges nothing");
    s.expect(FIN | ACK, 101, 22, 0);
    s.peer(say(ACK, 22, 102)).unwrap();
    assert_eq!(s.state(), State::Closed);
    assert_eq!(edges(&mut s), "o");
    s.tcp.remove(s.handle()).unwrap();
    assert_eq!(edges(&mut s), "");
}

#[test]
fn a_reset_ends_every_wait() {
    let mut s = Script::accepted(PLAIN);
    assert_eq!(edges(&mut s), "w");
    s.send(10);
    s.expect(ACK, 1, 1, 10);
    s.peer(say(RST, 1, 0)).unwrap_err();
    assert_eq!(edges(&mut s), "rao");
    let (handle, now) = (s.handle(), s.now());
    let refused = s.tcp.send(handle, b"x", now);
    assert_eq!(refused, Err(SendError::Failed(crate::tcp::Error::Reset)));
    assert_eq!(edges(&mut s), "");
}

#[test]
fn a_full_buffer_is_writable_again_with_the_first_acknowledgment() {
    let mut s = Script::accepted_with(PLAIN, say(SYN, 0, 0).mss(1000), 1500, 8000);
    assert_eq!(edges(&mut s), "w");
    s.send(1499);
    assert_eq!(edges(&mut s), "", "a byte is free");
    let (handle, now) = (s.handle(), s.now());
    assert_eq!(s.tcp.send(handle, b"xy", now), Ok(1));
    assert_eq!(edges(&mut s), "");
    s.expect(ACK, 1, 1, 1000);
    s.expect(ACK, 1001, 1, 500);
    s.peer(say(ACK, 1, 1001)).unwrap();
    assert_eq!(edges(&mut s), "w");
    s.peer(say(ACK, 1, 1501)).unwrap();
    assert_eq!(edges(&mut s), "a", "writable it was");
}

/// What came and was read before anybody asked is no news, and what came afterwards is.
#[test]
fn what_is_missed_between_two_polls_is_not_lost() {
    let mut s = Script::accepted(PLAIN);
    assert_eq!(edges(&mut s), "w");
    s.peer(say(ACK, 1, 1).data(&[7; 10])).unwrap();
    assert_eq!(s.recv().len(), 10);
    assert_eq!(edges(&mut s), "");
    s.peer(say(ACK, 11, 1).data(&[7; 10])).unwrap();
    assert_eq!(edges(&mut s), "r");
    assert_eq!(s.recv().len(), 10);
    // Read to the end, and more is here before the next poll.
    s.peer(say(ACK, 21, 1).data(&[7; 10])).unwrap();
    assert_eq!(edges(&mut s), "r");
}

#[test]
fn a_queue_of_slices_is_writable_when_it_takes_slices_and_copies() {
    let mut s = Script::listening(PLAIN);
    let pieces = Box::leak(vec![crate::tcp::Piece::EMPTY; 2].into_boxed_slice());
    let copies = Box::leak(vec![0; 4].into_boxed_slice());
    let queue = Box::leak(Box::new(SliceQueue::new(pieces, copies)));
    let mut lent = buffers(0, 8000);
    lent.send = SendBuffer::slices(queue);
    let (listener, now) = (s.listener.unwrap(), s.now());
    s.handle = Some(s.tcp.accept(listener, lent, now).unwrap());
    s.peer(say(SYN, 0, 0).mss(1000)).unwrap();
    s.iss = s.sent().header.seq;
    s.peer(say(ACK, 1, 1)).unwrap();
    assert_eq!(edges(&mut s), "w");
    let handle = s.handle();
    // The copies are full, and there is a place for a slice.
    assert_eq!(s.tcp.send(handle, b"12345", now), Ok(4));
    assert_eq!(s.tcp.send(handle, b"5", now), Err(SendError::BufferFull));
    assert_eq!(s.tcp.send_slice(handle, b"slice", now), Ok(()));
    assert_eq!(
        s.tcp.send_slice(handle, b"slice", now),
        Err(SendError::BufferFull)
    );
    s.expect(ACK, 1, 1, 9);
    assert_eq!(edges(&mut s), "");
    s.peer(say(ACK, 1, 5)).unwrap();
    assert_eq!(edges(&mut s), "w");
    assert_eq!(s.tcp.send_slice(handle, b"slice", now), Ok(()));
}

#[test]
fn each_connection_that_comes_to_wait_is_reported_once() {
    let mut s = Script::half_open(PLAIN, say(SYN, 0, 0).mss(1000));
    let listener = s.listener.unwrap();
    assert_eq!(listener.slot(), 0);
    assert_eq!(drain(&mut s.tcp).1, [], "its handshake is not done");
    s.peer(say(ACK, 1, 1)).unwrap();
    assert_eq!(drain(&mut s.tcp).1, [listener]);
    s.peer(say(ACK, 1, 1)).unwrap();
    assert_eq!(drain(&mut s.tcp).1, [], "the same one");
    let handle = s.tcp.accept(listener, buffers(100, 100), s.now()).unwrap();
    assert_eq!(handle.slot(), 0);
    s.handle = Some(handle);
    assert_eq!(edges(&mut s), "w");
    // One that goes before anybody asks is none.
    let mut s = Script::half_open(PLAIN, say(SYN, 0, 0).mss(1000));
    s.peer(say(ACK, 1, 1)).unwrap();
    s.peer(say(RST, 1, 0)).unwrap_err();
    assert_eq!(drain(&mut s.tcp).1, []);
}

#[test]
fn bytes_are_written_in_place_up_to_the_end_of_the_memory() {
    let mut s = Script::accepted_with(PLAIN, say(SYN, 0, 0).mss(1000), 100, 8000);
    let (handle, now) = (s.handle(), s.now());
    let fill = |s: &mut Script, count: usize| {
        let mut room = 0;
        let result = s.tcp.send_with(handle, now, |bytes| {
            room = bytes.len();
            let count = count.min(room);
            bytes[..count].fill(count as u8);
            count
        });
        (room, result)
    };
    assert_eq!(fill(&mut s, 0), (100, Ok(0)));
    s.silent();
    assert_eq!(fill(&mut s, 60), (100, Ok(60)));
    assert_eq!(s.expect(ACK, 1, 1, 60).payload, [60; 60]);
    s.peer(say(ACK, 1, 31)).unwrap();
    assert_eq!(fill(&mut s, 50), (40, Ok(40)), "up to the end");
    assert_eq!(fill(&mut s, 50), (30, Ok(30)), "from the beginning");
    assert_eq!(fill(&mut s, 50), (0, Err(SendError::BufferFull)));
    let sent = s.expect(ACK, 61, 1, 70).payload;
    assert_eq!((&sent[..40], &sent[40..]), (&[40; 40][..], &[30; 30][..]));
    s.peer(say(ACK, 1, 131)).unwrap();
    // A closure that says to have written more than there was room for.
    let most = s.tcp.send_with(handle, now, |bytes| bytes.len() + 1);
    assert_eq!(most, Ok(100), "all of an empty buffer");
    s.expect(ACK, 131, 1, 100);
    s.peer(say(ACK, 1, 231)).unwrap();
    s.shutdown();
    let closed = s.tcp.send_with(handle, now, |_| panic!("nothing is sent"));
    assert_eq!(closed, Err(SendError::Closing));
    s.tcp.abort(handle);
    let ended = s.tcp.send_with(handle, now, |_| panic!("nothing is sent"));
    let aborted = crate::tcp::Error::Aborted;
    assert_eq!(ended, Err(SendError::Failed(aborted)));
    s.tcp.remove(handle).unwrap();
    let gone = s.tcp.send_with(handle, now, |_| panic!("nothing is sent"));
    assert_eq!(gone, Err(SendError::NoConnection));
}

#[test]
fn bytes_written_before_the_handshake_wait_for_it() {
    let (mut s, _) = Script::connecting(PLAIN);
    let (handle, now) = (s.handle(), s.now());
    let written = s.tcp.send_with(handle, now, |room| {
        room[..3].copy_from_slice(b"abc");
        3
    });
    assert_eq!(written, Ok(3));
    s.peer(say(SYN | ACK, 0, 1).mss(1000)).unwrap();
    assert_eq!(s.expect(ACK, 1, 1, 3).payload, b"abc");
}

#[test]
fn slices_and_bytes_written_in_place_keep_their_order() {
    let mut pieces = [crate::tcp::Piece::EMPTY; 4];
    let mut copies = [0; 10];
    let mut queue = SliceQueue::new(&mut pieces, &mut copies);
    assert!(queue.push_slice(b"head"));
    let mut buffer = SendBuffer::slices(&mut queue);
    let spare = buffer.spare();
    assert_eq!(spare.len(), 10);
    spare[..4].copy_from_slice(b"body");
    buffer.commit(4);
    assert_eq!(buffer.push(b"tail, cut"), 6);
    let mut out = [0; 20];
    assert_eq!(buffer.peek(0, &mut out), 14);
    assert_eq!(&out[..14], b"headbodytail, ");
    assert!(buffer.spare().is_empty());
}

/// What a level-polling application sees of a connection, by the getters alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Levels {
    /// Nothing is in the receive buffer: whoever read it waits for more, or for the end.
    drained: bool,
    readable: bool,
    writable: bool,
    all_acknowledged: bool,
    over: bool,
}

fn levels(tcp: &Tcp<'_>, handle: Handle) -> Levels {
    let c = tcp.connection(handle).unwrap();
    let over = matches!(c.state(), State::Closed | State::TimeWait);
    let open = !c.is_connecting() && c.state() != State::Listen;
    Levels {
        drained: c.can_recv() == 0,
        readable: tcp.peek(handle) != Err(RecvError::Empty),
        writable: open && (c.can_send() > 0 || !c.may_send()),
        all_acknowledged: c.unacknowledged() == 0 || over,
        over,
    }
}

/// What the model remembers of one condition.
#[derive(Clone, Copy, Debug)]
struct Condition {
    /// It did not hold when the application last looked.
    seen_low: bool,
    /// It did not hold at some time since it was last reported.
    was_low: bool,
}

impl Condition {
    fn look(&mut self, holds: bool) {
        self.seen_low |= !holds;
        self.was_low |= !holds;
    }

    /// A poll, at which the condition holds or not.
    fn judge(&mut self, holds: bool, reported: bool) -> Result<(), &'static str> {
        if holds && self.seen_low && !reported {
            return Err("an edge was lost");
        }
        if reported && !(holds && self.was_low) {
            return Err("an edge without a cause");
        }
        if holds {
            (self.seen_low, self.was_low) = (false, false);
        }
        self.look(holds);
        Ok(())
    }
}

/// One end of a connection, with its model: readable, writable, all acknowledged, over.
struct End {
    handle: Handle,
    conditions: [Condition; 4],
}

impl End {
    fn new(handle: Handle) -> Self {
        // A connection begins with nothing sent: that all is acknowledged is no news.
        let conditions = [true, true, false, true].map(|low| Condition {
            seen_low: low,
            was_low: low,
        });
        Self { handle, conditions }
    }

    /// The application looks, after a call of its own.
    fn look(&mut self, tcp: &Tcp<'_>, has_read: bool) {
        let now = levels(tcp, self.handle);
        let [readable, writable, all_acknowledged, over] = &mut self.conditions;
        readable.look(now.readable);
        readable.was_low |= has_read && now.drained;
        writable.look(now.writable);
        all_acknowledged.look(now.all_acknowledged);
        over.look(now.over);
    }

    fn poll(&mut self, tcp: &mut Tcp<'_>) -> Result<(), TestCaseError> {
        let (reports, _) = drain(tcp);
        let mine = reports.iter().find(|(handle, _)| *handle == self.handle);
        prop_assert!(reports.len() == usize::from(mine.is_some()), "a stranger's");
        let told = mine.map_or([false; 4], |(_, edges)| {
            [
                edges.is_readable(),
                edges.is_writable(),
                edges.is_all_acknowledged(),
                edges.is_over(),
            ]
        });
        let now = levels(tcp, self.handle);
        let holds = [now.readable, now.writable, now.all_acknowledged, now.over];
        let names = ["readable", "writable", "all acknowledged", "over"];
        for (((condition, name), holds), told) in
            self.conditions.iter_mut().zip(names).zip(holds).zip(told)
        {
            let before = *condition;
            let fits = condition.judge(holds, told);
            prop_assert_eq!(fits, Ok(()), "{} {:?} {:?}", name, before, now);
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Send(usize),
    SendWith(usize),
    Recv(usize),
    Consume(usize),
    Shutdown,
    Close,
    Abort,
    Look,
    Poll,
    /// The network, for so many events.
    Run(usize),
}

fn ops() -> impl Strategy<Value = Vec<(usize, Op)>> {
    let op = prop_oneof![
        6 => (0..3000_usize).prop_map(Op::Send),
        4 => (0..3000_usize).prop_map(Op::SendWith),
        6 => (0..3000_usize).prop_map(Op::Recv),
        2 => (0..2000_usize).prop_map(Op::Consume),
        1 => Just(Op::Shutdown),
        1 => Just(Op::Close),
        1 => Just(Op::Abort),
        2 => Just(Op::Look),
        6 => Just(Op::Poll),
        12 => (1..6_usize).prop_map(Op::Run),
    ];
    prop::collection::vec((0..2_usize, op), 1..120)
}

/// Both ends of a connection, whatever either application and the link do to it.
struct Pair {
    net: Net,
    ends: [End; 2],
}

impl Pair {
    fn new(link: Link, seed: u64, sizes: (usize, u16), early: usize) -> Self {
        let config = leak(Config {
            retransmissions_max: 3,
            ..PLAIN
        });
        let mut net = Net::new(link, seed);
        let now = net.now();
        let listener = net.hosts[1].listen(None, PORT, config).unwrap();
        let ours = buffers(sizes.0, sizes.1);
        let client = net.hosts[0]
            .connect(US, (PEER, PORT), ours, config, Offer::UNBOUNDED, now)
            .unwrap();
        // Some events pass before the server lends its buffers, or none.
        let ready = |net: &Net| net.hosts[1].can_accept(listener);
        for _ in 0..early * 3 {
            let known = ready(&net);
            net.step();
            let reported = drain(&mut net.hosts[1]).1 == [listener];
            assert_eq!(reported, !known && ready(&net));
        }
        let now = net.now();
        let theirs = buffers(sizes.0, sizes.1);
        let server = net.hosts[1].accept(listener, theirs, now).unwrap();
        let mut ends = [client, server].map(End::new);
        for (end, tcp) in ends.iter_mut().zip(&net.hosts) {
            end.look(tcp, false);
        }
        Self { net, ends }
    }

    fn apply(&mut self, at: usize, op: Op) -> Result<(), TestCaseError> {
        let now = self.net.now();
        let tcp = &mut self.net.hosts[at];
        let end = &mut self.ends[at];
        let handle = end.handle;
        match op {
            Op::Send(len) => {
                let _ = tcp.send(handle, &pattern(0, len), now);
            }
            Op::SendWith(len) => {
                let _ = tcp.send_with(handle, now, |_| len);
            }
            Op::Recv(len) => {
                let _ = tcp.recv(handle, &mut vec![0; len]);
            }
            Op::Consume(len) => tcp.consume(handle, len),
            Op::Shutdown => tcp.shutdown(handle, now),
            Op::Close => tcp.close(handle, now),
            Op::Abort => tcp.abort(handle),
            Op::Look => {}
            Op::Poll => return end.poll(tcp),
            Op::Run(events) => {
                for _ in 0..events {
                    self.net.step();
                }
                return Ok(());
            }
        }
        let has_read = matches!(op, Op::Recv(_) | Op::Consume(_));
        end.look(&self.net.hosts[at], has_read);
        Ok(())
    }
}

proptest! {
    #[test]
    fn no_edge_is_lost_and_none_comes_without_a_cause(
        seed in any::<u64>(),
        loss in prop_oneof![Just(0_u32), 0..300_u32],
        sizes in (1..4000_usize, 1..4000_u16),
        early in 0..4_usize,
        ops in ops(),
    ) {
        let link = Link { loss, reorder: loss, duplicate: loss, ..CLEAN };
        let mut pair = Pair::new(link, seed >> 8, sizes, early);
        for (at, op) in ops {
            pair.apply(at, op)?;
        }
        for at in 0..2 {
            pair.apply(at, Op::Poll)?;
            pair.apply(at, Op::Abort)?;
            pair.apply(at, Op::Poll)?;
        }
    }
}

/// An application that fails while it fills the ring has handed over nothing.
#[test]
fn a_panic_of_the_application_hands_nothing_over() {
    let mut s = Script::accepted(PLAIN);
    assert_eq!(edges(&mut s), "w");
    let (handle, now) = (s.handle(), s.now());
    let fails = std::panic::AssertUnwindSafe(|| {
        let _ = s.tcp.send_with(handle, now, |room| {
            room.fill(9);
            std::panic::resume_unwind(Box::new("the application"))
        });
    });
    assert!(std::panic::catch_unwind(fails).is_err());
    assert_eq!(edges(&mut s), "");
    s.silent();
    s.send(10);
    let sent = s.expect(ACK, 1, 1, 10);
    assert_eq!(sent.payload, pattern(0, 10));
}

/// As many connections as handles can name; the slot behind them is never used.
#[test]
fn every_one_of_255_slots_reports_once() {
    let mut tcp = engine(300, 1, 3);
    let now = Instant::from_micros(1_000_000);
    let mut handles = Vec::new();
    loop {
        let path = Offer::UNBOUNDED;
        let remote = (PEER, 1_000 + handles.len() as u16);
        match tcp.connect(US, remote, buffers(10, 10), leak(PLAIN), path, now) {
            Ok(handle) => handles.push(handle),
            Err(rejected) => {
                assert_eq!(rejected.error, crate::tcp::OpenError::NoSlot);
                break;
            }
        }
    }
    assert_eq!(handles.len(), 255);
    assert_eq!(drain(&mut tcp), (Vec::new(), Vec::new()));
    for handle in &handles {
        tcp.abort(*handle);
    }
    let (reported, listeners) = (0..300).map_while(|_| tcp.poll_changed()).fold(
        (Vec::new(), 0),
        |(mut all, listeners), changed| match changed {
            Changed::Connection(handle, edges) => {
                assert!(edges.is_over());
                all.push(handle);
                (all, listeners)
            }
            Changed::Listener(_) => (all, listeners + 1),
        },
    );
    assert_eq!((reported, listeners), (handles, 0));
}
