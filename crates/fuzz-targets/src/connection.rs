//! Segment sequences against a live connection, with what must hold after each step.
//!
//! The input is a program: segments whose numbers lie near those the connection expects, time, and
//! calls of the application. The value of each byte follows from its position in the stream and
//! from the connection, so received bytes are checked regardless of the segment that carried them.
//! The same buffers serve one connection after the other.

use std::net::Ipv6Addr;

use motet::random::Rng;
use motet::tcp::{
    Buffers, Config, Connection, HalfOpen, Handle, IcmpError, IncomingSegment, Listener,
    ListenerHandle, Memory, Offer, Piece, RecvBuffer, RecvError, SendBuffer, SliceQueue, Slot,
    State, Tcp, recv_memory_len,
};
use motet::time::{Duration, Instant};
use motet::wire::tcp::{Flags, Header, Options, SackBlock, fill_checksum, is_checksum_valid};

use crate::input::Input;

/// Runs a program against one connection after the other, all in the same buffers.
pub(crate) fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let kind = input.u8();
    let config = settings(kind);
    let mut connections = [const { Slot::EMPTY }; 1];
    let (mut listeners, mut half_open) = ([Listener::EMPTY; 1], [HalfOpen::EMPTY; 1]);
    let (mut send, mut recv) = ([0; 3000], vec![0; recv_memory_len(WINDOW)]);
    let mut pieces = [Piece::EMPTY; 3];
    let memory = Memory {
        connections: &mut connections,
        listeners: &mut listeners,
        half_open: &mut half_open,
    };
    let tcp = Tcp::new(memory, &mut Rng::from_seed([8, 9]));
    let now = Instant::ORIGIN + Duration::from_secs(u64::from(input.u16()) << 8);
    let irs = input.u32();
    let mut slices;
    let send = if irs & 1 == 0 {
        SendBuffer::ring(&mut send)
    } else {
        slices = SliceQueue::new(&mut pieces, &mut send);
        SendBuffer::slices(&mut slices)
    };
    let recv = RecvBuffer::new(&mut recv);
    let mut world = World::new(tcp, &config, now);
    world.open(kind & 1 == 0, irs, Buffers { send, recv });
    if kind & 2 != 0 {
        world.shake_hands(kind & 1 == 0);
    }
    while !input.is_empty() {
        world.step(&mut input);
        world.drain();
    }
    world.wait_for_the_end();
}

fn settings(kind: u8) -> Config {
    Config {
        rmss: 200,
        smss: 200,
        timestamps: kind & 4 != 0,
        sack: kind & 8 != 0,
        ecn: kind & 16 != 0,
        nagle: kind & 32 != 0,
        rack: kind & 64 == 0,
        header_prediction: kind & 128 == 0,
        keepalive_idle_s: u16::from(kind & 128 != 0) * 60,
        ..Config::DEFAULT
    }
}

struct World<'m> {
    tcp: Tcp<'m>,
    config: &'m Config,
    listener: Option<ListenerHandle>,
    /// `None`: the buffers could not be lent again.
    handle: Option<Handle>,
    now: Instant,
    /// Connections so far; each has bytes and a peer's port of its own.
    number: u16,
    local_port: u16,
    /// The peer's ISN and ours, once known.
    irs: u32,
    iss: Option<u32>,
    /// The highest acknowledgment that the connection sent.
    told: u32,
    /// Bytes that the application handed over, and took.
    given: u32,
    read: u32,
    /// Bytes of the peer's stream that the peer ever sent, from the first one on.
    injected: u32,
    /// The right edge of the window that the connection announced.
    edge: Option<u32>,
    stamps: u32,
}

impl<'m> World<'m> {
    fn new(tcp: Tcp<'m>, config: &'m Config, now: Instant) -> Self {
        Self {
            tcp,
            config,
            listener: None,
            handle: None,
            now,
            number: 0,
            local_port: PORT,
            irs: 0,
            iss: None,
            told: 0,
            given: 0,
            read: 0,
            injected: 0,
            edge: None,
            stamps: 1,
        }
    }

    /// Begins the next connection, up to the point where the peer must answer.
    fn open(&mut self, active: bool, irs: u32, buffers: Buffers<'m>) {
        self.number += 1;
        (self.irs, self.told, self.iss, self.edge) = (irs, irs, None, None);
        (self.given, self.read, self.injected) = (0, 0, 0);
        let (config, remote) = (self.config, (PEER, self.peer_port()));
        self.local_port = PORT;
        let opened = if active && self.number % 2 == 1 {
            let local = (US, PORT);
            self.tcp
                .connect_from(local, remote, buffers, config, Offer::UNBOUNDED, self.now)
        } else if active {
            self.tcp
                .connect(US, remote, buffers, config, Offer::UNBOUNDED, self.now)
        } else {
            let tcp = &mut self.tcp;
            let listener = *self
                .listener
                .get_or_insert_with(|| tcp.listen(None, PORT, config).expect("a free place"));
            tcp.accept(listener, buffers, self.now)
        };
        let handle = opened.expect("a free slot");
        self.handle = Some(handle);
        let connection = self.tcp.connection(handle);
        self.local_port = connection.map_or(PORT, |c| c.endpoints().local_port);
        self.drain();
    }

    const fn peer_port(&self) -> u16 {
        PORT + self.number
    }

    fn step(&mut self, input: &mut Input<'_>) {
        let op = input.u8();
        match op & 15 {
            0..=8 => self.inject(input, op),
            9 | 10 => self.now += Duration::from_millis(u64::from(input.u16())),
            11 => self.now += Duration::from_millis(u64::from(input.u8())),
            12 => self.send(usize::from(input.u8()) * 4),
            13 | 14 => self.recv(usize::from(input.u8()) * 4),
            _ => self.command(input),
        }
    }

    /// One of the rarer steps: a call of the application, an ICMPv6 error, a leap of the clock.
    fn command(&mut self, input: &mut Input<'_>) {
        let command = input.u8();
        match (command & 7, self.handle) {
            (0, Some(handle)) => self.tcp.shutdown(handle, self.now),
            (1, Some(handle)) => self.tcp.close(handle, self.now),
            (2, Some(handle)) => self.tcp.abort(handle),
            (3, Some(handle)) => self.begin_again(handle, command, input),
            (4, _) => self.report(input),
            (5, _) => self.refer(usize::from(input.u8())),
            (6, _) => {
                if let Some(listener) = self.listener.take() {
                    self.tcp.unlisten(listener);
                }
            }
            // A leap of the clock, up to 18 years.
            _ => self.now += Duration::from_secs(u64::from(input.u16()) << 13),
        }
    }

    /// Ends the connection, by its own timers or at once, and opens the next one in its buffers.
    fn begin_again(&mut self, handle: Handle, command: u8, input: &mut Input<'_>) {
        if command & 8 != 0 {
            self.wait_for_the_end();
        }
        if !matches!(self.state(), Some(State::Closed | State::TimeWait)) {
            self.tcp.abort(handle);
        }
        let buffers = self.tcp.remove(handle).expect("it is over");
        assert!(self.tcp.connection(handle).is_none(), "a stale handle");
        self.handle = None;
        // Takes the connection's reset, and whatever else waits.
        self.drain();
        let active = command & 16 == 0;
        self.open(active, input.u32(), buffers);
        if command & 32 != 0 {
            self.shake_hands(active);
        }
    }

    /// An ICMPv6 error quotes a segment that begins near the bytes sent.
    fn report(&mut self, input: &mut Input<'_>) {
        let kind = input.u8();
        let error = match kind & 3 {
            0 => IcmpError::Soft,
            1 => IcmpError::Hard,
            2 => IcmpError::Disrupted,
            _ => IcmpError::PacketTooBig(u32::from(input.u16())),
        };
        let sent = self.iss.unwrap_or(0).wrapping_add(self.given);
        let seq = sent.wrapping_add_signed(i32::from(input.i16()) >> (kind >> 4));
        let mut quoted = Vec::new();
        quoted.extend(self.local_port.to_be_bytes());
        quoted.extend(self.peer_port().to_be_bytes());
        quoted.extend(seq.to_be_bytes());
        quoted.truncate(usize::from(input.u8()));
        self.tcp
            .on_icmp_error(&US, &PEER, 0, &quoted, error, self.now);
    }

    /// Hands over bytes by reference, where the buffer takes them so.
    fn refer(&mut self, len: usize) {
        let Some(handle) = self.handle else { return };
        let at = place_in_noise(Stream::Ours, self.number, self.given);
        let data = NOISE.get(at..at + len).expect("noise is long enough");
        if self.tcp.send_slice(handle, data, self.now).is_ok() {
            self.given += len as u32;
        }
    }

    fn shake_hands(&mut self, active: bool) {
        let syn = if active {
            Flags::SYN | Flags::ACK
        } else {
            Flags::SYN
        };
        self.deliver(
            syn,
            self.irs,
            self.iss.unwrap_or(0).wrapping_add(1),
            3000,
            &[],
            true,
        );
        self.drain();
        if !active {
            let ack = self.iss.unwrap_or(0).wrapping_add(1);
            self.deliver(Flags::ACK, self.irs.wrapping_add(1), ack, 3000, &[], true);
            self.drain();
        }
    }

    /// A segment near what the connection expects.
    fn inject(&mut self, input: &mut Input<'_>, op: u8) {
        let flags = match op & 15 {
            0..=5 => Flags::ACK,
            6 => Flags::FIN | Flags::ACK,
            7 => Flags::RST,
            _ => Flags::from_bits(u16::from(input.u8())),
        };
        let near = |input: &mut Input<'_>, base: u32| match input.u8() {
            0 => base,
            1 => base.wrapping_add(200),
            2 => base.wrapping_sub(200),
            3 => base.wrapping_add_signed(i32::from(input.i16())),
            4 => base.wrapping_add(input.u32()),
            more => base.wrapping_add(u32::from(more)),
        };
        let seq = near(input, self.told.max(self.irs));
        let sent = self
            .iss
            .unwrap_or(0)
            .wrapping_add(1)
            .wrapping_add(self.given);
        let ack = match op >> 4 & 3 {
            0 => sent,
            1 => self.iss.unwrap_or(0).wrapping_add(1),
            _ => near(input, sent).wrapping_sub(400),
        };
        let window = match op >> 6 {
            0 => 3000,
            1 => 0,
            _ => input.u16(),
        };
        let len = usize::from(input.u8()) * 2;
        // The byte after a SYN is the first of the stream, both for this connection and for one
        // that opens now.
        let place = match flags.contains(Flags::SYN) {
            true => 0,
            false => seq.wrapping_sub(self.irs).wrapping_sub(1),
        };
        let payload: Vec<u8> = (0..len as u32)
            .map(|n| byte(Stream::Peers, self.number, place.wrapping_add(n)))
            .collect();
        let stamped = input.u8() & 7 != 0;
        self.deliver(flags, seq, ack, window, &payload, stamped);
    }

    fn deliver(
        &mut self,
        flags: Flags,
        seq: u32,
        ack: u32,
        window: u16,
        data: &[u8],
        stamped: bool,
    ) {
        let has_ack = flags.contains(Flags::ACK);
        self.stamps = self.stamps.wrapping_add(10);
        let mut options = Options {
            timestamps: stamped.then_some((self.stamps, 0)),
            ..Options::default()
        };
        if flags.contains(Flags::SYN) {
            options.mss = Some(200);
            options.sack_permitted = true;
        } else if window & 1 == 1 {
            options.sack.push(SackBlock {
                left: ack.wrapping_add(200),
                right: ack.wrapping_add(200 + u32::from(window >> 8)),
            });
        }
        let header = Header {
            src_port: self.peer_port(),
            dst_port: self.local_port,
            seq,
            ack: if has_ack { ack } else { 0 },
            flags,
            window,
            options,
            ..Header::default()
        };
        let mut bytes = vec![0; 60];
        let len = header.emit(&mut bytes).expect("60 bytes suffice");
        bytes.truncate(len);
        bytes.extend(data);
        fill_checksum(&PEER, &US, &mut bytes);
        let before = self.state();
        let ecn = (window >> 1 & 3) as u8;
        let incoming = IncomingSegment {
            src: PEER,
            dst: US,
            zone: 0,
            ecn,
            offer: Offer::UNBOUNDED,
            bytes: &bytes,
        };
        let _dropped = self.tcp.on_segment(&incoming, self.now);
        if before == Some(State::SynSent) && self.state() != before {
            (self.irs, self.told) = (seq, seq);
        }
        let end = seq.wrapping_add(data.len() as u32).wrapping_sub(self.irs);
        if end < 1 << 31 {
            self.injected = self.injected.max(end);
        }
    }

    fn state(&self) -> Option<State> {
        let connection = self.tcp.connection(self.handle?);
        connection.map(Connection::state)
    }

    fn send(&mut self, len: usize) {
        let Some(handle) = self.handle else { return };
        let data: Vec<u8> = (0..len as u32)
            .map(|n| byte(Stream::Ours, self.number, self.given + n))
            .collect();
        if let Ok(taken) = self.tcp.send(handle, &data, self.now) {
            assert!(taken <= len);
            self.given += taken as u32;
        }
    }

    fn recv(&mut self, len: usize) {
        let Some(handle) = self.handle else { return };
        let mut out = vec![0; len];
        match self.tcp.recv(handle, &mut out) {
            Ok(count) => {
                for (n, seen) in out.iter().take(count).enumerate() {
                    assert_eq!(
                        *seen,
                        byte(Stream::Peers, self.number, self.read + n as u32),
                        "a wrong byte was delivered"
                    );
                }
                self.read += count as u32;
                assert!(self.read <= self.injected, "bytes that the peer never sent");
            }
            Err(RecvError::Empty | RecvError::Finished | RecvError::Failed(_)) => {}
            Err(RecvError::NoConnection) => panic!("the handle is not given back"),
        }
    }

    /// Takes what the connection sends now, and checks it.
    fn drain(&mut self) {
        let mut out = [0; 1500];
        for _ in 0..200 {
            let Some(outgoing) = self.tcp.poll_segment(self.now, |_| true, &mut out) else {
                let next = self.tcp.next_deadline();
                assert!(next.is_none_or(|at| at > self.now), "it wakes at once");
                return self.check_timer();
            };
            assert!(is_checksum_valid(&US, &PEER, &out[..outgoing.len]));
            let (header, payload) = Header::parse(&out[..outgoing.len]).expect("a segment");
            self.check(&header, payload);
        }
        panic!("it never stops sending");
    }

    fn check(&mut self, header: &Header, payload: &[u8]) {
        // A handshake with an earlier peer may go on, in vain.
        if header.flags.contains(Flags::RST) || header.dst_port != self.peer_port() {
            return;
        }
        if header.flags.contains(Flags::SYN) {
            let iss = *self.iss.get_or_insert(header.seq);
            let again = header.seq == iss;
            if !again {
                // Another handshake: the listener has forgotten the first.
                self.iss = Some(header.seq);
            }
            if header.flags.contains(Flags::ACK) {
                self.irs = header.ack.wrapping_sub(1);
                self.told = header.ack;
            }
            // An earlier window was announced for another of the peer's initial numbers.
            self.edge = None;
            return;
        }
        let first = self.iss.unwrap_or(0).wrapping_add(1);
        let start = header.seq.wrapping_sub(first);
        for (n, seen) in payload.iter().enumerate() {
            assert_eq!(
                *seen,
                byte(Stream::Ours, self.number, start.wrapping_add(n as u32)),
                "a wrong byte was sent"
            );
        }
        let end = start.wrapping_add(payload.len() as u32);
        if !payload.is_empty() {
            assert!(
                end <= self.given,
                "bytes beyond those handed over: {end} of {}",
                self.given
            );
        }
        if self.state().is_some_and(|state| state != State::Listen) {
            assert!(
                before_or_at(self.told, header.ack),
                "an acknowledgment taken back"
            );
            self.told = header.ack;
            let edge = header.ack.wrapping_add(u32::from(header.window));
            let kept = self.edge.is_none_or(|last| before_or_at(last, edge));
            assert!(kept, "the window's right edge moved left");
            self.edge = Some(edge);
        }
    }

    /// Checks that a timer runs while data or a handshake waits to be acknowledged.
    fn check_timer(&self) {
        let handle = self.handle;
        let Some(connection) = handle.and_then(|handle| self.tcp.connection(handle)) else {
            return;
        };
        let waits = connection.unacknowledged() > 0 || connection.is_connecting();
        let open = !matches!(
            connection.state(),
            State::Closed | State::Listen | State::TimeWait
        );
        if open && waits {
            assert!(self.tcp.next_deadline().is_some(), "stuck: {connection:?}");
        }
    }

    /// The peer falls silent: the connection ends, or has nothing left to do but keepalive.
    fn wait_for_the_end(&mut self) {
        for _ in 0..2_000 {
            let Some(at) = self.tcp.next_deadline() else {
                return;
            };
            self.now = self.now.max(at);
            self.drain();
        }
        panic!("timers run for ever");
    }
}

/// Which way bytes go.
#[derive(Clone, Copy)]
enum Stream {
    Ours,
    Peers,
}

/// The byte at `place` of a stream of the connection with this number.
fn byte(stream: Stream, number: u16, place: u32) -> u8 {
    NOISE[place_in_noise(stream, number, place)]
}

/// Every stream is the same noise from a place of its own on.
const fn place_in_noise(stream: Stream, number: u16, place: u32) -> usize {
    let start = number as u32 * 2_039 + stream as u32 * 977;
    (place.wrapping_add(start) % NOISE_PERIOD as u32) as usize
}

const NOISE_PERIOD: usize = 1 << 14;

/// Noise, and its begin once more for slices across the end: Knuth's 64-bit generator.
static NOISE: [u8; NOISE_PERIOD + 256] = {
    let mut noise = [0; NOISE_PERIOD + 256];
    let (mut state, mut at) = (1_u64, 0);
    while at < noise.len() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        noise[at] = match at.checked_sub(NOISE_PERIOD) {
            Some(again) => noise[again],
            None => (state >> 56) as u8,
        };
        at += 1;
    }
    noise
};

const fn before_or_at(earlier: u32, later: u32) -> bool {
    later.wrapping_sub(earlier) < 1 << 31
}

const US: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 1);
const PEER: Ipv6Addr = Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 2);
const PORT: u16 = 7;
const WINDOW: u16 = 1600;
