//! A server for iperf3's TCP test: one test at a time, as iperf3's own server.
//!
//! ```text
//! client                                server
//! control:  cookie (37 bytes)    ->
//!                                <-     PARAM_EXCHANGE
//!           length, JSON         ->
//!                                <-     CREATE_STREAMS
//! stream n: cookie (37 bytes)    ->     (once for each stream)
//! control:                       <-     TEST_START, TEST_RUNNING
//!           TEST_END             ->
//!                                <-     EXCHANGE_RESULTS
//!           length, JSON         ->
//!                                <-     length, JSON, DISPLAY_RESULTS
//!           IPERF_DONE           ->
//! ```
//!
//! A state is one byte; lengths have four, the most significant first. Streams carry any bytes. A
//! client that stalls loses the test, and its places: [`PATIENCE`].
//! Place: [`super::Services`] accepts the connections and takes their buffers back.
//! Left out: UDP and SCTP tests, authentication, what a server prints.
//! Source: iperf 3.12, `iperf_api.h`, and its conversation as seen on the wire.

use motet::tcp::{self, Handle, RecvError, SendError};
use motet::time::{Duration, Instant};
use serde::Deserialize;
use serde_json::{Value, json};

/// The port that iperf3 tests by default.
pub(super) const PORT: u16 = 5_201;

/// iperf3's server: at most one test, and the connections that do not belong to it yet or any more.
#[derive(Debug, Default)]
pub(super) struct Server {
    test: Option<Test>,
    newcomers: Vec<Newcomer>,
    /// Connections that are to end, and since when: what they still send is thrown away.
    leaving: Vec<(Handle, Instant)>,
}

/// A connection whose cookie has not come whole.
#[derive(Debug)]
struct Newcomer {
    handle: Handle,
    cookie: Vec<u8>,
    since: Instant,
}

#[derive(Debug)]
struct Test {
    cookie: Vec<u8>,
    control: Handle,
    phase: Phase,
    /// When this phase began, or a stream last carried anything.
    since: Instant,
    /// Bytes from the client, not yet understood.
    input: Vec<u8>,
    /// Bytes for the client, not yet taken by the stack.
    output: Vec<u8>,
    parameters: Parameters,
    streams: Vec<Stream>,
    /// When the streams began.
    began: Instant,
    /// When the test ended.
    ended: Instant,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// Waits for the client's parameters.
    Parameters,
    /// Waits until all streams are connected.
    Streams,
    /// Bytes flow.
    Running,
    /// The client has sent all that it was to send, and some of it is on its way.
    Draining,
    /// Waits for the client's results.
    Results,
    /// All messages have been exchanged.
    Over,
}

/// One connection that carries test bytes.
#[derive(Debug)]
struct Stream {
    handle: Handle,
    /// Whether the mote sends.
    sends: bool,
    /// Bytes that the stream carried, the omitted seconds aside.
    bytes: u64,
}

/// The client's parameters, as far as they matter here.
#[derive(Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(default)]
struct Parameters {
    tcp: bool,
    parallel: Option<usize>,
    reverse: bool,
    bidirectional: bool,
    /// Seconds at the beginning that do not count.
    omit: u32,
    /// Bytes to send in all; 0: as long as the client likes.
    num: u64,
    /// The length of the test in blocks of `len`.
    blockcount: u64,
    len: u64,
}

impl Parameters {
    fn streams_each_way(&self) -> usize {
        self.parallel.unwrap_or(1).max(1)
    }

    /// Saturates: a client may ask for any number.
    fn streams(&self) -> usize {
        let ways = 1 + usize::from(self.bidirectional);
        self.streams_each_way().saturating_mul(ways)
    }

    /// Whether the mote sends on the stream that is opened as number `place`. In a bidirectional
    /// test the client first opens the streams on which it sends.
    fn mote_sends(&self, place: usize) -> bool {
        match self.bidirectional {
            true => place >= self.streams_each_way(),
            false => self.reverse,
        }
    }

    /// Bytes that the client sends in all, if it says so.
    fn goal(&self) -> Option<u64> {
        let bytes = match self.num {
            0 => self.blockcount.saturating_mul(self.len),
            bytes => bytes,
        };
        (bytes > 0 && !self.reverse && !self.bidirectional).then_some(bytes)
    }
}

impl Server {
    /// A connection to our port was accepted.
    pub(super) fn greet(&mut self, handle: Handle, now: Instant) {
        self.newcomers.push(Newcomer {
            handle,
            cookie: Vec::new(),
            since: now,
        });
    }

    /// When the connection last got on; `None`: it is none of those here.
    pub(super) fn active(&self, handle: Handle) -> Option<Instant> {
        let newcomers = self.newcomers.iter();
        let newcomers = newcomers.map(|newcomer| (newcomer.handle, newcomer.since));
        let leaving = self.leaving.iter().copied();
        let test = self.test.iter().flat_map(|test| {
            let streams = test.streams.iter().map(|stream| stream.handle);
            streams
                .chain([test.control])
                .map(|handle| (handle, test.since))
        });
        let mut all = newcomers.chain(leaving).chain(test);
        all.find(|(one, _)| *one == handle).map(|(_, since)| since)
    }

    /// When the first of those here runs out of time.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        let newcomers = self.newcomers.iter().map(|newcomer| newcomer.since);
        let leaving = self.leaving.iter().map(|(_, since)| *since);
        let test = self.test.iter().map(|test| test.since);
        let first = newcomers.chain(leaving).chain(test).min();
        first.map(|since| since + PATIENCE)
    }

    /// Makes all progress that is possible without waiting; returns whether there was any. `room`:
    /// how many more connections can be accepted.
    pub(super) fn step(&mut self, tcp: &mut tcp::Tcp<'_>, room: usize, now: Instant) -> bool {
        let mut acted = self.meet(tcp, now);
        if let Some(test) = &mut self.test {
            acted |= test.step(tcp, room, now);
            if test.phase == Phase::Over && test.output.is_empty() {
                tcp.shutdown(test.control, now);
                let streams = test.streams.iter().map(|stream| stream.handle);
                let leaving = streams.chain([test.control]);
                self.leaving.extend(leaving.map(|handle| (handle, now)));
                self.test = None;
                acted = true;
            }
        }
        self.leaving.retain(|(handle, since)| {
            if is_over(*since, now) {
                tcp.abort(*handle);
                acted = true;
                return false;
            }
            let (count, end) = discard(tcp, *handle);
            acted |= count > 0;
            if end == RecvError::Finished {
                tcp.shutdown(*handle, now);
            }
            matches!(end, RecvError::Empty | RecvError::Finished)
                && tcp.connection(*handle).is_some()
        });
        acted
    }

    /// Reads the newcomers' cookies, and lets them in or not.
    fn meet(&mut self, tcp: &mut tcp::Tcp<'_>, now: Instant) -> bool {
        let mut acted = false;
        for mut newcomer in std::mem::take(&mut self.newcomers) {
            let Newcomer {
                handle,
                ref mut cookie,
                since,
            } = newcomer;
            if is_over(since, now) {
                tcp.abort(handle);
                acted = true;
                continue;
            }
            let mut bytes = [0; COOKIE_LEN];
            let end = loop {
                if cookie.len() == COOKIE_LEN {
                    break None;
                }
                match tcp.recv(handle, &mut bytes[cookie.len()..]) {
                    Ok(len) => {
                        let from = cookie.len();
                        cookie.extend_from_slice(&bytes[from..from + len]);
                        acted = true;
                    }
                    Err(end) => break Some(end),
                }
            };
            match end {
                None => self.admit(handle, newcomer.cookie, tcp, now),
                Some(RecvError::Empty) => self.newcomers.push(newcomer),
                Some(_) => {
                    tcp.shutdown(handle, now);
                    self.leaving.push((handle, now));
                    acted = true;
                }
            }
        }
        acted
    }

    /// A cookie is whole: it begins a test, belongs to the one under way, or has to go.
    fn admit(&mut self, handle: Handle, cookie: Vec<u8>, tcp: &mut tcp::Tcp<'_>, now: Instant) {
        match &mut self.test {
            None => self.test = Some(Test::new(handle, cookie, now)),
            Some(test) if test.phase == Phase::Streams && test.cookie == cookie => {
                test.add(handle, now);
            }
            Some(_) => {
                // The first byte of a new connection finds room.
                let _ = tcp.send(handle, &[ACCESS_DENIED], now);
                tcp.shutdown(handle, now);
                self.leaving.push((handle, now));
            }
        }
    }
}

impl Test {
    fn new(control: Handle, cookie: Vec<u8>, now: Instant) -> Self {
        Self {
            cookie,
            control,
            phase: Phase::Parameters,
            since: now,
            input: Vec::new(),
            output: vec![PARAM_EXCHANGE],
            parameters: Parameters::default(),
            streams: Vec::new(),
            began: now,
            ended: now,
        }
    }

    fn add(&mut self, handle: Handle, now: Instant) {
        self.streams.push(Stream {
            handle,
            sends: self.parameters.mote_sends(self.streams.len()),
            bytes: 0,
        });
        if self.streams.len() == self.parameters.streams() {
            self.output.extend([TEST_START, TEST_RUNNING]);
            self.enter(Phase::Running, now);
            self.began = now;
        }
    }

    fn enter(&mut self, phase: Phase, now: Instant) {
        self.phase = phase;
        self.since = now;
    }

    fn step(&mut self, tcp: &mut tcp::Tcp<'_>, room: usize, now: Instant) -> bool {
        if is_over(self.since, now) {
            tcp.abort(self.control);
            self.give_up(tcp);
            return true;
        }
        let mut acted = self.listen(tcp, room, now);
        if matches!(self.phase, Phase::Running | Phase::Draining) {
            acted |= self.carry(tcp, now);
        }
        if self.phase == Phase::Draining && self.has_drained(tcp) {
            self.conclude(tcp, now);
            acted = true;
        }
        while !self.output.is_empty() {
            match tcp.send(self.control, &self.output, now) {
                Ok(taken) => {
                    self.output.drain(..taken);
                    acted = true;
                }
                Err(SendError::BufferFull) => break,
                Err(_) => self.give_up(tcp),
            }
        }
        acted
    }

    /// Reads the control connection and acts on its messages.
    fn listen(&mut self, tcp: &mut tcp::Tcp<'_>, room: usize, now: Instant) -> bool {
        let mut bytes = [0; 256];
        let mut acted = false;
        loop {
            match tcp.recv(self.control, &mut bytes) {
                Ok(len) => self.input.extend_from_slice(&bytes[..len]),
                Err(RecvError::Empty) => return acted,
                Err(_) => {
                    let is_news = self.phase != Phase::Over;
                    self.give_up(tcp);
                    return acted | is_news;
                }
            }
            acted = true;
            while self.understand(tcp, room, now) {}
        }
    }

    /// Acts on the next state or object of the client's; false when it has not come whole.
    fn understand(&mut self, tcp: &mut tcp::Tcp<'_>, room: usize, now: Instant) -> bool {
        let Some(first) = self.input.first().copied() else {
            return false;
        };
        // No object is as long as one whose length begins with another byte than 0.
        let is_object = first == 0 && matches!(self.phase, Phase::Parameters | Phase::Results);
        if !is_object {
            self.input.remove(0);
            match (first, self.phase) {
                (TEST_END, Phase::Running) => self.end(tcp, now),
                _ => self.give_up(tcp),
            }
            return true;
        }
        let Some(length) = self.input.first_chunk() else {
            return false;
        };
        let length = u32::from_be_bytes(*length) as usize;
        if length > OBJECT_LEN_MAX {
            self.give_up(tcp);
            return false;
        }
        let Some(object) = self.input.get(LENGTH_LEN..LENGTH_LEN + length) else {
            return false;
        };
        let object = object.to_vec();
        self.input.drain(..LENGTH_LEN + length);
        match self.phase {
            Phase::Parameters => self.agree(&object, room, now),
            _ => self.answer(&object, now),
        }
        true
    }

    /// Accepts the client's parameters, or refuses them with a reason.
    fn agree(&mut self, object: &[u8], room: usize, now: Instant) {
        match parameters(object, room) {
            Ok(parameters) => {
                self.parameters = parameters;
                self.output.push(CREATE_STREAMS);
                self.enter(Phase::Streams, now);
            }
            Err(error) => {
                self.output.push(SERVER_ERROR);
                self.output.extend(error.to_be_bytes());
                // No error of the system.
                self.output.extend([0; 4]);
                self.enter(Phase::Over, now);
            }
        }
    }

    /// Sends and receives the streams' bytes; returns whether any moved.
    fn carry(&mut self, tcp: &mut tcp::Tcp<'_>, now: Instant) -> bool {
        let counts = now.since(self.began).as_millis() / 1_000 >= self.parameters.omit.into();
        let mut moved = 0;
        for stream in &mut self.streams {
            let mut count = 0;
            if stream.sends {
                while self.phase == Phase::Running
                    && let Ok(taken) = tcp.send(stream.handle, &TEST_BYTES, now)
                {
                    count += taken as u64;
                }
                discard(tcp, stream.handle);
            } else {
                count = discard(tcp, stream.handle).0;
            }
            if counts {
                stream.bytes += count;
            }
            moved += count;
        }
        if moved > 0 {
            self.since = now;
        }
        moved > 0
    }

    /// The client says that the test is over.
    fn end(&mut self, tcp: &mut tcp::Tcp<'_>, now: Instant) {
        match self.parameters.goal() {
            Some(_) => self.enter(Phase::Draining, now),
            None => self.conclude(tcp, now),
        }
    }

    /// Whether everything has come that the client was to send, or nothing more can.
    fn has_drained(&self, tcp: &tcp::Tcp<'_>) -> bool {
        let received: u64 = self.streams.iter().map(|stream| stream.bytes).sum();
        let goal = self.parameters.goal().unwrap_or(0);
        let can_receive = |stream: &Stream| {
            tcp.connection(stream.handle).is_some()
                && !matches!(
                    tcp.peek(stream.handle),
                    Err(RecvError::Finished | RecvError::Failed(_))
                )
        };
        received >= goal || !self.streams.iter().any(can_receive)
    }

    /// Ends the streams, and asks for the client's results.
    fn conclude(&mut self, tcp: &mut tcp::Tcp<'_>, now: Instant) {
        self.ended = now;
        for stream in &self.streams {
            if stream.sends {
                tcp.shutdown(stream.handle, now);
            } else {
                // What the client's buffers still hold has no place in the results.
                tcp.abort(stream.handle);
            }
        }
        self.output.push(EXCHANGE_RESULTS);
        self.enter(Phase::Results, now);
    }

    /// Answers the client's results by ours; its names of the streams are in their order.
    fn answer(&mut self, object: &[u8], now: Instant) {
        let theirs: Value = serde_json::from_slice(object).unwrap_or_default();
        let seconds = self.ended.since(self.began).as_micros() as f64 / 1e6;
        let seconds = (seconds - f64::from(self.parameters.omit)).max(0.0);
        let streams: Vec<Value> = self
            .streams
            .iter()
            .enumerate()
            .map(|(place, stream)| {
                let id = theirs["streams"][place]["id"].as_i64();
                json!({
                    "id": id.unwrap_or_else(|| usual_id(place)),
                    "bytes": stream.bytes,
                    // Not counted by connection.
                    "retransmits": -1,
                    "jitter": 0,
                    "errors": 0,
                    "packets": 0,
                    "start_time": 0,
                    "end_time": seconds,
                })
            })
            .collect();
        let ours = json!({
            "cpu_util_total": 0,
            "cpu_util_user": 0,
            "cpu_util_system": 0,
            // They are not counted by connection.
            "sender_has_retransmits": 0,
            "streams": streams,
        });
        let ours = ours.to_string();
        self.output.extend((ours.len() as u32).to_be_bytes());
        self.output.extend(ours.bytes());
        self.output.push(DISPLAY_RESULTS);
        self.enter(Phase::Over, now);
    }

    /// Ends the test: the client is gone, or sends what iperf3 never sends.
    fn give_up(&mut self, tcp: &mut tcp::Tcp<'_>) {
        self.output.clear();
        self.input.clear();
        for stream in &self.streams {
            tcp.abort(stream.handle);
        }
        self.phase = Phase::Over;
    }
}

/// The parameters that a client asks for, where there is room for its streams; else iperf3's error.
fn parameters(object: &[u8], room: usize) -> Result<Parameters, u32> {
    match serde_json::from_slice::<Parameters>(object) {
        Ok(parameters) if !parameters.tcp => Err(ERROR_NOT_IMPLEMENTED),
        Ok(parameters) if parameters.streams() > room => Err(ERROR_TOO_MANY_STREAMS),
        Ok(parameters) => Ok(parameters),
        Err(_) => Err(ERROR_PARAMETERS),
    }
}

/// Whether what began at `since` has had its time.
fn is_over(since: Instant, now: Instant) -> bool {
    now >= since + PATIENCE
}

/// Reads and forgets; how much, and why there was no more.
fn discard(tcp: &mut tcp::Tcp<'_>, handle: Handle) -> (u64, RecvError) {
    let mut count = 0;
    loop {
        let len = match tcp.peek(handle) {
            Ok(bytes) => bytes.len(),
            Err(end) => return (count, end),
        };
        tcp.consume(handle, len);
        count += len as u64;
    }
}

/// How iperf3 numbers the stream that comes at `place`: 1, 3, 4 and so on.
fn usual_id(place: usize) -> i64 {
    match place {
        0 => 1,
        place => place as i64 + 2,
    }
}

/// How long a client may take for each part of the conversation, and how long the streams may
/// carry nothing while they run: iperf3's own server waits as long for data (`--rcv-timeout`).
const PATIENCE: Duration = Duration::from_secs(120);

/// A client's random name for its test: 36 characters and a zero.
const COOKIE_LEN: usize = 37;
const LENGTH_LEN: usize = 4;

/// The longest object that is read: iperf3's have some hundred bytes, and more for each stream.
const OBJECT_LEN_MAX: usize = 64 << 10;

/// The bytes that streams from a mote repeat.
const TEST_BYTES: [u8; 512] = [b'm'; 512];

const TEST_START: u8 = 1;
const TEST_RUNNING: u8 = 2;
const TEST_END: u8 = 4;
const PARAM_EXCHANGE: u8 = 9;
const CREATE_STREAMS: u8 = 10;
const EXCHANGE_RESULTS: u8 = 13;
const DISPLAY_RESULTS: u8 = 14;
/// -1.
const ACCESS_DENIED: u8 = 0xff;
/// -2; two 32-bit numbers follow: iperf3's error and the system's.
const SERVER_ERROR: u8 = 0xfe;

/// IENUMSTREAMS: too many parallel streams.
const ERROR_TOO_MANY_STREAMS: u32 = 6;
/// IEUNIMP: an option that is not implemented.
const ERROR_NOT_IMPLEMENTED: u32 = 13;
/// IERECVPARAMS: the parameters cannot be read.
const ERROR_PARAMETERS: u32 = 114;

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Parameters {
        parameters(text.as_bytes(), usize::MAX).unwrap()
    }

    #[test]
    fn what_a_client_asks_for_is_understood() {
        let plain = asked(
            r#"{"tcp":true,"omit":0,"time":10,"num":0,"blockcount":0,"parallel":1,
                "len":131072,"pacing_timer":1000,"client_version":"3.12"}"#,
        );
        assert!(plain.streams() == 1 && !plain.mote_sends(0));
        assert_eq!(plain.goal(), None);
        let reverse = asked(r#"{"tcp":true,"num":5000,"parallel":3,"reverse":true}"#);
        assert!(reverse.streams() == 3 && (0..3).all(|place| reverse.mote_sends(place)));
        assert_eq!(reverse.goal(), None, "the client sends nothing");
        let blocks = asked(r#"{"tcp":true,"blockcount":3,"len":1000}"#);
        assert_eq!(blocks.goal(), Some(3_000));
        let both = asked(r#"{"tcp":true,"parallel":2,"bidirectional":true,"num":9}"#);
        let ways = (0..both.streams()).map(|place| both.mote_sends(place));
        assert_eq!(ways.collect::<Vec<_>>(), [false, false, true, true]);
        assert_eq!(both.goal(), None);
    }

    #[test]
    fn what_cannot_be_is_refused_with_a_reason() {
        let huge = format!(
            r#"{{"tcp":true,"parallel":{0},"bidirectional":true,"blockcount":{0},"len":{0}}}"#,
            u64::MAX
        );
        for (object, error) in [
            (r#"{"tcp":true,"parallel":4}"#, ERROR_TOO_MANY_STREAMS),
            (&huge, ERROR_TOO_MANY_STREAMS),
            (r#"{"udp":true}"#, ERROR_NOT_IMPLEMENTED),
            (r#"{"tcp":true,"parallel":-1}"#, ERROR_PARAMETERS),
            ("nonsense", ERROR_PARAMETERS),
        ] {
            assert_eq!(parameters(object.as_bytes(), 3), Err(error), "{object}");
        }
        assert!(parameters(br#"{"tcp":true,"parallel":3}"#, 3).is_ok());
    }
}
